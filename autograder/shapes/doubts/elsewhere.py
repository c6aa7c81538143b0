"""That a comment is true of another reading of its names, or of what was there before.

Each public function is a fact for `facts.FACTS`: it gives the reason for its doubt, or an empty
text.
"""

from __future__ import annotations

import itertools

from autograder.shapes.doubts.by_the_code import all_wrong
from autograder.shapes.doubts.case import Case, made
from autograder.shapes.doubts.other_sizes import is_a_variable
from autograder.shapes.recording import Execution, tensors
from autograder.shapes.text.dims import (
    Expr,
    evaluate,
    fits,
    names_of,
    shape_fits,
    shape_names,
    without,
)
from autograder.shapes.text.flat import instead
from autograder.shapes.text.names import normal
from autograder.shapes.tracer import flat

MOST = 3  # names of a dimension that may stand for other sizes


def no_name_is_told_otherwise(case: Case) -> str:
    """`[b, n]`, where true comments of this function have `n` for the size that is there."""

    def may(dim: Expr, size: int, axis: int, e: Execution) -> bool:
        names = sorted(names_of(dim))[:MOST]
        ways = [_sizes(n, names, case, e) for n in names]
        first = case.scope.lookup(e)
        for way in itertools.product(*ways):
            told = dict(zip(names, way, strict=True))
            if evaluate(dim, lambda n, told=told: told.get(n, first(n))) == size:
                return True
        return False

    told = all_wrong(case, may)
    return "a name stands for that size in another true comment" if told else ""


def no_letter_is_wrong_alike(case: Case) -> str:
    """`[b, n, C]` behind several lines, where `C` alone is wrong, and each time for one size."""

    def may(dim: Expr, size: int, axis: int, e: Execution) -> bool:
        letters = {n: case.apart.get((e.config, n), []) for n in names_of(dim)}
        alike = {n: sizes[0] for n, sizes in letters.items() if len({*sizes}) == 1 < len(sizes)}
        return any(
            fits(dim, size, instead(case.scope.lookup(e), {name: other}))
            and len(letters[name]) > len(_lines_of(name, other, case, e))
            and not is_a_variable(other, e)
            for name, other in alike.items()
        )

    alike = not case.exchanged() and all_wrong(case, may)
    return "a letter stands for that size in other comments, too" if alike else ""


def _lines_of(name: str, size: int, case: Case, execution: Execution) -> set[int]:
    """The lines of the function in which a true comment has a name for some size, or another name
    for this one."""
    (first, last), found = case.scope.lines, case.scope.confirmed
    said = [
        *found.of(execution.config, normal(name)).values(),
        found.lines_of(execution.config, size),
    ]
    return {n for lines in said for n in lines if first <= n <= last}


def _sizes(name: str, beside: list[str], case: Case, execution: Execution) -> list[int]:
    """The sizes that a name stands for in true comments of the function, and its own. beside: the
    names of its dimension."""
    said = case.scope.confirmed.of(execution.config, normal(name))
    first, last = case.scope.lines
    here = [s for s, of in said.items() if any(first <= n <= last for n in of)]
    here = [s for s in here if not _has_another_name(s, {*beside}, case, execution)]
    own = case.scope.lookup(execution)(name)
    return here + [own] * (own is not None)


def _has_another_name(size: int, own: set[str], case: Case, execution: Execution) -> bool:
    """Whether the comments have a name for a size beside these."""
    told = {n for group in case.scope.comments for n in group} - {*map(normal, own)} - own
    return size in map(case.scope.lookup(execution), told)


def not_as_it_was(case: Case) -> str:
    """Above `x = x.reshape(..)` in a loop: it may be told of `x` as it came to the first round."""
    label, above = case.last.label, not (case.sighting.trailing or case.below)
    if not (above and label in flat(case.stmt.targets)):
        return ""
    came = [_came(case, e) for e in case.runs]
    changed = [tensors(e.before.get(label)) != tensors(e.after.get(label)) for e in case.runs]
    first = any(came) and came == changed and not all(came)
    return "it may be told of what came in" if first else ""


def not_as_it_comes_in(case: Case) -> str:
    """`x: [n, t, d, 1]` above `x = x.reshape(..)`, with names nobody has: as `x` comes in."""
    label, above = case.last.label, not (case.sighting.trailing or case.below)
    if not (above and case.unproven and label in flat(case.stmt.targets)):
        return ""
    dims, came = without(case.last.dims, set(case.unproven)), False
    for e in case.runs:  # in the rounds of a loop behind the first it may come in otherwise
        find, shapes = case.scope.lookup(e), tensors(e.before.get(label))
        came = came or any(shape_fits(dims, s, find) for s in shapes)
        if len(dims) in map(len, made(case, e)):
            return ""
    return "it may be told of what came in" if came else ""


def _came(case: Case, execution: Execution) -> bool:
    """Whether what has the name of a label has the shape before the line runs."""
    shapes, find = tensors(execution.before.get(case.last.label)), case.scope.lookup(execution)
    return any(shape_fits(case.last.dims, s, find) for s in shapes)


def not_of_what_is_gone(case: Case) -> str:
    """`heads: [h, b]`, where no code has `heads`, beside a line that is told behind it already."""
    labels = {t.label for t in case.claim.terms()} - {""}
    told = any(stmt is case.stmt and s.trailing for s, stmt in case.twins)
    gone = labels and not any(map(case.in_code, labels)) and not case.sighting.trailing
    return "what it names is nowhere in the code" if told and gone else ""


def not_what_it_was_made_of(case: Case) -> str:
    """`[b, n, hidden]` beside `self.hidden = hidden // 2`: the name is that of both sizes."""
    names = [n for n in sorted(shape_names(case.last.dims)) if _made_of_itself(case, n)]
    if names and all(_fits_for_some(names, case, e) for e in case.runs):
        return "a name may stand for two sizes"
    return ""


def _fits_for_some(names: list[str], case: Case, execution: Execution) -> bool:
    """Whether what is made has the shape that is told, for some size of one of the names."""
    lookup = case.scope.lookup(execution)
    return any(
        shape_fits(case.last.dims, shape, instead(lookup, {name: size}))
        for shape in made(case, execution)
        for name in names
        for size in shape
    )


def _made_of_itself(case: Case, name: str) -> bool:
    """Whether an attribute is worked out from an argument of its own name."""
    traced = case.matcher.traced
    made = [s for s in traced.stmts if s.targets == [f"self.{name}"] and s.value is not None]
    nodes = {node.id: node for node in traced.nodes} if made else {}
    read = [nodes[i].text for s in made for i in nodes[s.value].operands if i in nodes]
    return name in read


ELSEWHERE = (
    not_what_it_was_made_of,
    no_name_is_told_otherwise,
    no_letter_is_wrong_alike,
    not_as_it_was,
    not_as_it_comes_in,
    not_of_what_is_gone,
)
