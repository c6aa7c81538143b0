"""What else a comment may mean that is not true: other readings of it, and the slip that it may be.

Each function of the first part is a fact for `facts.FACTS`: it gives the reason for its doubt where
another reading would make the comment true, or an empty text.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from autograder.shapes.binding import CODE
from autograder.shapes.case import Case, made, opened
from autograder.shapes.match import results, unpacks
from autograder.shapes.recording import Execution, Weight, tensors
from autograder.shapes.text import names
from autograder.shapes.text.dims import (
    Expr,
    aligned,
    evaluate,
    fits,
    names_of,
    number_apart,
    rounded,
    shape_fits,
    shape_names,
)
from autograder.shapes.text.flat import end_of, pieces_of, segments_of, sizes_in
from autograder.shapes.text.lexer import tokens
from autograder.shapes.text.shapes_in_text import Term
from autograder.shapes.tracer import Stmt, flat
from autograder.shapes.wording import nameable

REMARK = 6  # words beside a shape in round brackets, from which on it may be a remark
SAID = 2  # other true comments that name the batch by a letter, after which to omit it is a slip
MAX_ATOMS = 60  # sizes in one comment that are read without what stands between them


# --- other readings -------------------------------------------------------------------------------
def no_comma_is_missing(case: Case) -> str:
    """`[batch seq, hidden]` may be `[batch, seq, hidden]`."""
    for term in case.claim.terms():
        if any("_" in n and n.replace("_", " ") in term.text for n in case.unproven):
            return "a comma may be missing"
        names = tuple(
            ("name", part)
            for dim in term.dims
            for part in (dim[1].split("_") if dim[0] == "name" and " " in term.text else [None])
            if part
        )
        for apart in (names, tuple(d for dim in term.dims for d in number_apart(dim))):
            if len(apart) > len(term.dims) and any(
                shape_fits(apart, s, case.scope.lookup(e))
                for e in case.runs
                for s in results(case.stmt, e)
            ):
                return "a comma may be missing"
    return ""


def no_half_is_rounded(case: Case) -> str:
    """`irfft(x)  # [b, t]` is true of an even `t`, and the sizes of the runs are odd."""
    node = case.matcher.traced.nodes[case.stmt.value] if case.stmt.value is not None else None
    if node is None or node.kind != "Call" or case.ends_right():
        return ""
    for e in case.runs:
        sizes = [evaluate(d, case.scope.lookup(e)) for d in case.last.dims]
        if not any(rounded(sizes, shape) for shape in made(case, e)):
            return ""
    return "a size may be rounded"


def nothing_on_the_way(case: Case) -> str:
    """Where words stand around, or above a line, the shape of something on the way counts."""
    claim, last = case.claim, case.last
    many = last.count.isdecimal() or case.scope.fixed(last.count, case.runs[0])[1]
    wordy = claim.told or claim.tail or claim.words > REMARK or many
    hold = case.matcher.passes if wordy else case.matcher.made_on_the_way
    asked = wordy or not case.sighting.trailing
    if claim.tail and len(claim.stages) > 1:  # `[..] -> [..], then transposed`
        claim = replace(claim, stages=claim.stages[-1:], others=())
    there = asked and all(hold(claim, case.stmt, e) for e in case.runs)
    return "it may be a step on the way" if there else ""


def not_a_product_on_the_way(case: Case) -> str:
    """`(q @ k).squeeze(1)  # [..] @ [..] -> [..]` may tell of the product alone."""
    stages = case.claim.stages
    if (
        len(stages) > 1
        and len(stages[-2].terms) > 1
        and all(case.matcher.product_on_the_way(case.claim, case.stmt, e) for e in case.runs)
    ):
        return "it may be a step on the way"
    return ""


def not_the_next_step(case: Case) -> str:
    """`x = x.mT  # [b, c, t] -> [b * t, c]` may tell what the next line makes of it."""
    stages = case.claim.stages
    later = [runs for s, runs in case.near if s.line > case.stmt.line][:1]
    if len(stages) != 2 or not later or any(len(s.terms) > 1 for s in stages):
        return ""
    first, last = (s.terms[0].dims for s in stages)
    here = all(shape_fits(first, s, case.scope.lookup(e)) for e in case.runs for s in made(case, e))
    short = {n for n in names_of(("", *last)) if len(n) <= 2} | set(case.unproven)
    anew = tuple(("any", "?") if names_of(d) & short else d for d in last)  # letters used anew
    there = all(
        any(shape_fits(anew, s, case.scope.lookup(e)) for _, v in e.events for s in tensors(v))
        for e in later[0]
    )
    before = any(
        shape_fits(last, s, case.scope.lookup(e))
        for e in case.runs
        for _, v in e.events
        for s in tensors(v)
    )
    return "it may be a step of the next line" if here and there and not before else ""


def not_unpacked(case: Case) -> str:
    """`q, k = a, b  # [..]` may be about the one or the other."""
    if unpacks(case.stmt) and len({len(results(case.stmt, e)) for e in case.runs}) > 1:
        return "this line makes tensors of several shapes"
    return ""


def no_twin_says_it(case: Case) -> str:
    """`q = self.q(x)  # [b, t, d]`, and the same of `k`: one length may stand for each."""
    if set(case.proofs()) <= {CODE} or case.exchanged():
        return ""
    op = _operation(case.stmt, case)
    for other, stmt in case.twins:
        alike = other == case.sighting.text and stmt.id != case.stmt.id
        if alike and op and _operation(stmt, case) == op:
            return "the same words are true of another line"
    return ""


def _operation(stmt: Stmt, case: Case) -> str:
    node = case.matcher.traced.nodes[stmt.value] if stmt.value is not None else None
    return node.op if node else ""


def in_order(case: Case) -> str:
    """Shapes that only a comma joins need not be the operands."""
    if not case.ends_right():
        return ""
    most = max(len(s.terms) for s in case.claim.stages)
    seen = [len(o) for e in case.runs for _, o in case.matcher.operations(e)]
    if most > max(seen, default=0) and most > 1:
        return "what it is multiplied with is not seen"  # a layer that a function is given
    loose = any(s.joined in (",", "*") for s in case.claim.stages)
    return "it lists shapes in an order of its own" if loose else ""


def not_one_item(case: Case) -> str:
    """`x @ x.mT  # [t, t]` may tell of each item, where no other comment names the batch."""
    dims = case.last.dims
    if not dims or not all(
        len(s) > 1 and shape_fits(dims, s[1:], case.scope.lookup(e))
        for e in case.runs
        for s in made(case, e)
    ):
        return ""
    shapes = made(case, case.runs[0])
    words = any(len(n) > 2 for n in case.names())
    whole = {
        stmt.id
        for _, stmt in case.twins
        for e in case.at(stmt)[:1]
        for s in results(stmt, e)
        if (words and len(s) >= len(shapes[0])) or s[:1] in [made_[:1] for made_ in shapes]
    }
    return "" if len(whole) >= (1 if words else SAID) else "it may be the shape of each item"


def not_read_flat(case: Case) -> str:
    """`batch x t, width`, `[batch, t], width`: read without its signs, it is the right shape."""
    if all(any(_spaced(case, s, e) for s in made(case, e)) for e in case.runs):
        return "its signs leave open where a dimension begins and ends"
    for segment in segments_of(tokens(case.sighting.text)):
        if all(
            any(len(s) > 1 and _runs_over(case.last, segment, s, e, case) for s in made(case, e))
            for e in case.runs
        ):
            return "its signs leave open where a shape begins and ends"
        pieces = pieces_of(segment)
        if pieces and all(
            any(shape_fits(pieces, s, case.scope.lookup(e)) for s in made(case, e))
            for e in case.runs
        ):
            return "its signs leave open where a shape begins and ends"
    return ""


def _spaced(case: Case, shape: tuple[int, ...], execution: Execution) -> bool:
    """Whether dimensions with spaces between make the shape, some of them multiplied.

    Those of `n x [b, t]` make it in any order.
    """
    lookup, term = case.scope.lookup(execution), case.last
    sizes = sizes_in(tokens(term.text), lookup)
    if term.count:
        return sorted([*sizes_in(tokens(term.count), lookup), *sizes]) == sorted(shape)
    plain = ("open", "close", "number")
    if term.style == " " or any(not t.word and t.kind not in plain for t in tokens(term.text)):
        return False
    return len(sizes) > 1 and end_of(sizes, 0, shape) == len(sizes)


def _runs_over(term: Term, segment, shape: tuple[int, ...], execution, case: Case) -> bool:
    """Whether sizes of a written shape, and of what stands beside it, follow one another so.

    Some of them may be multiplied.
    """
    lookup = case.scope.lookup(execution)
    own, atoms = sizes_in(tokens(term.text), lookup), sizes_in(segment, lookup)
    if not len(own) < len(atoms) <= MAX_ATOMS:
        return False
    places = [i for i in range(len(atoms)) if own and atoms[i : i + len(own)] == own]
    mine = {i for p in places[-1:] for i in range(p, p + len(own))}
    for start in range(len(atoms)):
        end = end_of(atoms, start, shape)
        run = set(range(start, end)) if end is not None else set()
        if run & mine and run - mine:
            return True
    return False


def not_the_operands(case: Case) -> str:
    """`(b, t, d) (d, n)`: where each of several shapes is of something that comes in."""
    claims = [c for c in case.sighting.claims if c.stages]
    several = len(claims) > 1 or (unpacks(case.stmt) and case.last.style == ",")
    if several and all(case.matcher.passes(c, case.stmt, e) for c in claims for e in case.runs):
        return "it may be what comes in"
    first = tokens(case.sighting.text)[:1]
    signed = bool(first) and first[0].kind in ("times", "plus") and not first[0].word
    foreign = case.last.label and case.last.label not in flat(case.stmt.targets)
    if (signed or foreign) and all(
        case.matcher.passes(case.claim, case.stmt, e)
        and all(len(s) > len(case.last.dims) for s in made(case, e))
        for e in case.runs
    ):
        return "it may be what comes in"  # `* [d]`, `scale: [d]`
    stages = case.claim.stages
    if len(stages) == 1 < len(stages[0].terms):  # `(b * t, d) @ (d, n)`: made flat
        for e in case.runs:
            seen = {math.prod(s) for _, v in e.events for s in tensors(v)}
            sizes = [[evaluate(d, case.scope.lookup(e)) for d in t.dims] for t in stages[0].terms]
            flat_ = any(d[0] == "*" for t in stages[0].terms for d in t.dims)
            if not flat_ or not all(None not in s and math.prod(s) in seen for s in sizes):
                return ""
        return "it may be what comes in"
    return ""


def no_size_is_nameless(case: Case) -> str:
    """`b h n d`, `[b, t, t]`: a name may be used again for a size that has none."""
    dims = case.last.dims
    for e in case.runs:
        lookup = case.scope.lookup(e)
        sizes = [evaluate(d, lookup) for d in dims]
        for shape in made(case, e):
            pairs = aligned(dims, len(shape))
            if pairs is None or sorted(map(str, sizes)) == sorted(map(str, shape)):
                return ""
            for i, j in pairs:
                again = _short(dims[i]) or dims[i] in (
                    *dims[max(0, i - 1) : i],
                    *dims[i + 1 : i + 2],
                )
                wrong = not fits(dims[i], shape[j], lookup)
                if wrong and any(d == dims[i] for k, d in enumerate(dims) if abs(k - i) > 1):
                    return ""  # `[b, t, b]`
                if wrong and not (again and _nameless(shape[j], names_of(dims[i]), e, case)):
                    return ""
    return "a name may stand for two sizes"


def _free(name: str, execution: Execution, case: Case) -> bool:
    return case.scope.free(name, execution) and execution.size(f"self.{name}") is None


def _short(dim: Expr) -> bool:
    found = names_of(dim)
    return bool(found) and all(len(names.normal(n).rstrip("'")) <= 2 for n in found)


def _nameless(size: int, used: set[str], execution: Execution, case: Case) -> bool:
    """Whether no variable has the size, and no other name in a comment that is true.

    `N2` is no other name than `N`: who writes `[B, N, N]` may think of both as the same. So are two
    lengths, where nobody says what the other one is.
    """
    stems = {names.normal(n).rstrip("0123456789_'") for n in used}
    short = all(len(stem) <= 2 for stem in stems)
    length = any(map(names.may_be_length, used))
    around = {**execution.before, **execution.after}
    given = case.scope.sizes(execution.config, execution.unit[0])
    known = [(n, v) for n, v in around.items() if "." not in n or not short]
    known += [] if short else [(n, v) for n, v in given.items()]
    sizes = {
        v
        for n, v in known
        if isinstance(v, int)
        and names.normal(n).rstrip("0123456789_'") not in stems
        and not (length and names.may_be_length(n.rsplit(".", 1)[-1]))
    }
    own = {names.normal(n) for n in used}
    sizes |= {
        s
        for (call, config, name, s), lines in case.scope.confirmed.items()
        if (call, config) == (execution.unit[0], execution.config)
        and name not in own
        and lines - {case.sighting.line}
        and s
    }
    if all(_free(n, execution, case) for n in used):
        return size not in sizes  # `[tokens, d]`, where the tokens are those of all sequences
    every = sizes | {case.scope.lookup(execution)(n) for n in used}
    return size not in sizes and not any(
        size % n == 0 and size // n in every and size // n > 2 for n in sizes if n > 2
    )


# --- the slip that explains it --------------------------------------------------------------------
def explained_by_a_slip(case: Case) -> str:
    """Axes exchanged, one dropped or added, one name for another, or a stage that is past."""
    wrong = [
        e for e in case.runs if not case.matcher.holds(case.claim, case.sighting, case.stmt, e)
    ]
    if all(any(_slip(t, shape, e, case) for t, shape in _compared(case, e)) for e in wrong):
        return ""
    return "it is unlike anything that this line makes"


def _compared(case: Case, execution: Execution) -> list[tuple[Term, tuple[int, ...]]]:
    """The written shapes that do not hold, each with the shapes that it may be a slip for."""
    shapes = made(case, execution)
    if not case.subject():
        shapes = shapes + tensors(execution.last(case.stmt.value))
    lookup = case.scope.lookup(execution)
    stages = case.claim.stages
    wrong = [(case.last, s) for s in shapes if not shape_fits(case.last.dims, s, lookup)]
    if len(stages[-1].terms) > 1:
        wrong = []  # a product without its result
    if wrong or (len(stages) == 1 and len(stages[0].terms) == 1):
        return wrong
    seen = [s for _, v in execution.events for s in tensors(v)] + shapes
    weights = [v.shape[::-1] for _, v in execution.events if isinstance(v, Weight) and v.shape]
    return [(t, s) for stage in stages for t in stage.terms for s in [*seen, *weights]]


def _slip(term: Term, shape: tuple[int, ...], execution: Execution, case: Case) -> bool:
    """Whether a shape was meant: what nothing proves in the written one may be any size."""
    lookup = case.scope.lookup(execution)
    dims = opened(term.dims, set(case.unproven), case) if case.unproven else term.dims
    if any(d[0] == "..." for d in dims):
        pairs = aligned(dims, len(shape))
        return pairs is not None and sum(not fits(dims[i], shape[j], lookup) for i, j in pairs) == 1
    sizes = [None if d[0] == "any" else evaluate(d, lookup) for d in dims]
    if any(size is None and d[0] != "any" for size, d in zip(sizes, dims, strict=True)):
        return False
    known = [int(s) for s in sizes if s is not None]
    if len(known) == len(dims) and math.prod(known) == math.prod(shape) and min(known, default=1):
        return True  # the same numbers in another order, or split and joined
    if len(dims) == len(shape):
        if not Counter(known) - Counter(shape):
            return True  # in another order
        wrong = [i for i, d in enumerate(dims) if not fits(d, shape[i], lookup)]
        right = {d for i, d in enumerate(dims) if i not in wrong}
        named = all(nameable(shape[i], execution, case.scope) or dims[i] in right for i in wrong)
        reused = any(
            case.reusable(n, shape[i], execution) for i in wrong for n in shape_names((dims[i],))
        )
        return named and not reused and len({dims[i] for i in wrong}) == 1
    if _one_more(sizes, list(shape)) or _one_more(list(shape), sizes):
        return True
    past = [s for _, v in execution.events for s in tensors(v)]
    past += [s for t in flat(case.stmt.targets) for s in tensors(execution.before.get(t))]
    return any(shape_fits(dims, s, lookup) for s in past)


def _one_more(long: list, short: list) -> bool:
    """Whether one list is the other with one more in it; None is any number."""
    if len(long) != len(short) + 1:
        return False
    rests = (long[:i] + long[i + 1 :] for i in range(len(long)))
    return any(
        all(None in pair or pair[0] == pair[1] for pair in zip(rest, short, strict=True))
        for rest in rests
    )
