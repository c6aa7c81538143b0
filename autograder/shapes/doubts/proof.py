"""That a comment is false whatever its names mean, or that they are proven."""

from __future__ import annotations

import itertools
from collections import Counter

from autograder.shapes.binding import CALL
from autograder.shapes.doubts.case import Case, made, opened
from autograder.shapes.doubts.chains import at_odds
from autograder.shapes.doubts.other_sizes import numbers_that_hold
from autograder.shapes.text.dims import (
    aligned,
    evaluate,
    fits,
    names_of,
    shape_fits,
    without,
)
from autograder.shapes.text.flat import clash
from autograder.shapes.text.lexer import tokens
from autograder.shapes.text.names import ENOUGH
from autograder.shapes.tracer import flat


def names_are_proven(case: Case) -> str:
    """Each name is of the code, of the call, or confirmed by two other comments."""
    if not case.names() and case.last.dims and not numbers_that_hold(case):
        return ""
    sure = case.sighting.trailing or case.exchanged()
    unproven = [*case.unproven, *([] if sure else _only_of_the_call(case))]
    unproven += _sides(case, unproven)
    free = set(unproven)
    ways = (
        _exchanged(case, free),
        _twice(case),
        _false_whatever(case, free),
        at_odds(case),
        _misnamed(case),
        _copied(case),
    )
    if unproven and not any(ways):
        return f"nothing proves what `{unproven[0]}` stands for"
    return ""


def _sides(case: Case, unproven: list[str]) -> list[str]:
    """Of `h, w` side by side the one that is proven, where the other is not: height and width
    belong together, whatever `h` is elsewhere."""
    texts = [str(d[1]) if d[0] == "name" else "" for d in case.last.dims]
    both = [p for p in itertools.pairwise(texts) if {n.lower() for n in p} == {"h", "w"}]
    return [n for pair in both if {*pair} & {*unproven} for n in pair if n not in unproven]


def _only_of_the_call(case: Case) -> list[str]:
    """The names in what is wrong that the call gives, and no true comment has: the words of the
    call are not those of the file. Behind a line they are told of it all the same."""
    found: set[str] = set()
    for e, lookup, shape in case.seen():
        pairs = aligned(case.last.dims, len(shape))
        wrong = case.last.dims
        if pairs is not None:
            wrong = tuple(wrong[i] for i, j in pairs if not fits(wrong[i], shape[j], lookup))
        used = {
            n
            for d in wrong
            if not case.scope.repeated(d, e, case.sighting.line)
            for n in names_of(d)
        }
        found |= {n for n in used if case.scope.fixed(n, e)[1] == CALL}
    return sorted(n for n in found if not any(case.lines_with(n, e) for e in case.runs))


def _exchanged(case: Case, unproven: set[str]) -> bool:
    """Whether the proven names are all of this tensor, and stand elsewhere: `[b, h, s]`."""
    dims = without(case.last.dims, unproven)
    if not case.next_to_it:
        return False
    for _, lookup, shape in case.seen():
        known = Counter(evaluate(d, lookup) for d in dims if names_of(d) or d == ("num", 1))
        apart = len(shape) != len(dims) or shape_fits(dims, shape, lookup)
        least = 1 if case.sighting.place == "end" else 2
        if apart or len(known) < least or known - Counter(shape):
            return False
    return True


def _misnamed(case: Case) -> bool:
    """Whether each wrong name stands for another size in a true comment here, and two comments
    have another name for the size that it is put for."""
    found = False
    for e, lookup, shape in case.seen():
        pairs = aligned(case.last.dims, len(shape))
        if pairs is None:
            return False
        for i, j in pairs:
            dim = case.last.dims[i]
            if fits(dim, shape[j], lookup):
                continue
            name = str(dim[1]) if dim[0] == "name" and "." not in dim[1] else ""
            other = case.scope.confirmed.called(e.config, shape[j], name, case.scope.lines)
            if not name or other < ENOUGH or not case.lines_with(name, e):
                return False
            found = True
    return found


def _copied(case: Case) -> bool:
    """Whether it repeats what a line before is told, which this one works on, and changes."""
    read = {t.text.split(".")[0] for t in tokens(case.matcher.node(case.stmt).text)}
    return case.sighting.place == "end" and any(
        sighting.trailing
        and stmt.line < case.stmt.line
        and read & set(flat(stmt.targets))
        and [c.terms()[-1].dims for c in sighting.claims if c.stages] == [case.last.dims]
        for sighting, stmt in case.twins
    )


def _twice(case: Case) -> bool:
    """Whether a name stands for two sizes of one tensor: `[b, t, b]` is false whatever `b` is."""
    return all(clash(case.last.dims, shape, case.names()) for _, _, shape in case.seen())


def _false_whatever(case: Case, unproven: set[str]) -> bool:
    """Whether a comment is false whatever the names that nothing proves stand for.

    `[batch, width, seq_len]` cannot be `[batch, seq_len, *]`: one with a name that is not proven
    counts as any size. Half of the dimensions must be told: by proven names, or behind a line, and
    where their number is wrong, by numbers and the names of one other true comment too.
    """
    once = {n for n in unproven - case.foreign if all(case.lines_with(n, e) for e in case.runs)}
    dims = opened(case.last.dims, unproven, case)
    told = [d[0] not in ("any", "...", "num") for d in dims]
    known = [not names_of(d) & (unproven - once) for d in case.last.dims]
    apart = all(aligned(dims, len(s)) is None for e in case.runs for s in made(case, e))
    if case.sighting.place == "end" or apart:
        named = [k and bool(names_of(d)) for k, d in zip(known, case.last.dims, strict=True)]
        told = [n or (d[0] == "num" and any(named)) for n, d in zip(named, dims, strict=True)]
    if 2 * sum(told) < len(dims) or not case.next_to_it:
        return False
    # A batch that this call lacks, all of the comments have; what only one has was put in.
    others = set().union(*map(names_of, case.last.dims)) - unproven
    often = {n for n in unproven if case.mentions(n) > 1 or len(others) < 2}
    kept = [k or not names_of(d) & often for d, k in zip(case.last.dims, known, strict=True)]
    fewer = tuple(d for d, k in zip(dims, kept, strict=True) if k)
    return all(
        not shape_fits(some, s, case.scope.lookup(e))
        for e in case.runs
        if not case.matcher.holds(case.claim, case.sighting, case.stmt, e)
        for s in made(case, e)
        for some in (dims, fewer)
    )
