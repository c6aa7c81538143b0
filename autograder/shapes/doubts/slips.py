"""The slip that explains a comment which is not true: what people do when they write a shape.

Two axes exchanged, one dropped or added, one name for another, or a stage that is past.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter

from autograder.shapes.doubts.case import Case, in_one_call, made, opened
from autograder.shapes.doubts.other_sizes import may_be_two
from autograder.shapes.match import results
from autograder.shapes.recording import Execution, Weight, tensors, wholes
from autograder.shapes.text import names
from autograder.shapes.text.dims import (
    Dims,
    Expr,
    aligned,
    evaluate,
    fits,
    is_dots,
    names_of,
    options,
    shape_fits,
    shape_names,
    wild,
)
from autograder.shapes.text.flat import instead, one_more
from autograder.shapes.text.shapes_in_text import Term

SMALL = 4  # a number that may be told as it is


def explained_by_a_slip(case: Case) -> str:
    """Axes exchanged, one dropped or added, one name for another, or a stage that is past."""
    slips = [
        any(slip(d, shape, e, case) for t, shape in _compared(case, e) for d in options(t.dims))
        for e in case.wrong
    ]
    if not case.wrong or in_one_call(slips, case.wrong) or _of_another_line(case):
        return ""
    return "it is unlike anything that this line makes"


def _of_another_line(case: Case) -> bool:
    """Whether it tells what a true comment tells behind another line, and not what this one makes.

    Whatever is not proven, and each letter of a few comments, may be any size.
    """
    rest = [s.claims for s, _ in case.twins if s.trailing and s.line != case.sighting.line]
    told = {c.stages[-1].terms[-1].dims for claims in rest for c in claims if c.stages}
    dims = opened(case.last.dims, {*case.unproven, *case.foreign, *case.lengths}, case)
    terms, stages = case.claim.terms(), case.claim.stages
    alone = len(terms) == 1 or (len(terms) == len(stages) and case.enters())  # `[b, t] -> [b]`
    alone = alone and not (case.claim.words or case.claim.tail)
    behind = case.sighting.place == "end" and alone and not case.last.count
    alike = any(shape_fits(dims, s, lookup) for _, lookup, s in case.seen())
    return behind and case.last.dims in told and not alike


def _compared(case: Case, execution: Execution) -> list[tuple[Term, tuple[int, ...]]]:
    """The written shapes that do not hold, each with the shapes that it may be a slip for."""
    shapes = made(case, execution)
    if not case.subject():
        shapes = shapes + [s for w in wholes(execution.last(case.stmt.value)) for s in w]
    if case.last.label:  # of what is there before: `slots: [..]` above `x = decode(slots)`
        shapes = shapes + tensors(execution.before.get(case.last.label))
    if case.claim.role == "input":
        shapes = shapes + [s for _, v in execution.events for s in tensors(v)]
    if case.sighting.place == "loose":  # it may be of any line
        every = [(s, e) for s, runs in case.room for e in runs if e.unit == execution.unit]
        shapes = shapes + [s for of, e in every for s in results(of, e)]
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


def slip(dims: Dims, shape: tuple[int, ...], execution: Execution, case: Case) -> bool:
    """Whether a shape was meant: what nothing proves in the written one may be any size.

    So may a length, a letter of a few comments, and a name of other functions, where it is not the
    right shape then.
    """
    lookup = case.scope.lookup(execution)
    dims = opened(dims, set(case.unproven), case) if case.unproven else dims
    if _slip(dims, shape, execution, case):
        return True
    used = shape_names(dims)
    lengths = {n for n in used if names.may_be_length(n) and case.scope.free(n, execution)}
    free = opened(dims, case.foreign | lengths, case)
    some = any(d[0] not in ("any", "num") for d in free)
    return some and not shape_fits(free, shape, lookup) and _slip(free, shape, execution, case)


def _slip(dims: Dims, shape: tuple[int, ...], execution: Execution, case: Case) -> bool:
    lookup = case.scope.lookup(execution)
    if len(dims) == 1 and case.last.style == "*" and dims[0][0] == "*":
        dims = _row(dims[0])  # `b * t * d` without brackets
    if any(d[0] == "..." for d in dims):
        pairs = aligned(dims, len(shape)) or ()
        less = (dims[:i] + dims[i + 1 :] for i in range(len(dims)) if not is_dots(dims, i))
        one = sum(not fits(dims[i], shape[j], lookup) for i, j in pairs) == 1
        return one or any(len(d) > 1 and shape_fits(d, shape, lookup) for d in less)
    sizes = [None if wild(d) else evaluate(d, lookup) for d in dims]
    if any(size is None and not wild(d) for size, d in zip(sizes, dims, strict=True)):
        return False
    known = [int(s) for s in sizes if s is not None]
    if len(known) == len(dims) and math.prod(known) == math.prod(shape) and min(known, default=1):
        return True  # the same numbers in another order, or split and joined
    if any(
        shape_fits(dims, shape, instead(lookup, {a: lookup(b), b: lookup(a)}))
        for a, b in itertools.combinations(sorted(shape_names(dims)), 2)
    ):
        return True  # two names in the place of each other
    was = any(shape_fits(dims, s, lookup) for _, v in execution.events for s in tensors(v))
    if len(dims) != len(shape):
        less = one_more(sizes, list(shape)) or one_more(list(shape), sizes)
        return was or less or _is_sum_in_two(sizes, list(shape))
    if not Counter(known) - Counter(shape):
        return True  # in another order
    wrong = [i for i, d in enumerate(dims) if not fits(d, shape[i], lookup)]
    right = {d for i, d in enumerate(dims) if i not in wrong}
    named = all(
        dims[i] in right
        or nameable(shape[i], execution, case)
        or _is_number(dims[i], case)
        or _a_part_is_wrong(dims[i], shape[i], execution, case)
        for i in wrong
    )
    reused = any(
        case.reusable(n, shape[i], execution)
        for i in wrong
        if not _once_only(dims, i, shape[i])
        for n in names_of(dims[i])
    )
    one = len({dims[i] for i in wrong}) == 1 or _is_one_ratio(sizes, shape, wrong)
    return (was or (named and one)) and not reused


def _is_one_ratio(sizes: list[int | None], shape: tuple[int, ...], wrong: list[int]) -> bool:
    """Whether all sizes that are wrong are too large by one whole factor: `[b, h, w]` for
    `[b, h / p, w / p]`."""
    ratios = {divmod(sizes[i] or 0, shape[i]) if shape[i] else (0, 1) for i in wrong}
    (times, rest), *others = ratios or {(0, 1)}
    return not others and not rest and times > 1


def _is_sum_in_two(sizes: list[int | None], shape: list[int]) -> bool:
    """Whether two dimensions stand for their sum: `[b, t, s]` for `[b, t + s]`."""
    pairs = (
        [*sizes[:i], one + two, *sizes[i + 2 :]]
        for i, (one, two) in enumerate(itertools.pairwise(sizes))
        if one is not None and two is not None
    )
    return any(joined == shape for joined in pairs)


def _row(expr: Expr) -> Dims:
    """`b * t * (2 * d)` as a row of three."""
    return (*_row(expr[1]), expr[2]) if expr[0] == "*" else (expr,)


def _a_part_is_wrong(dim: Expr, size: int, execution: Execution, case: Case) -> bool:
    """Whether a factor is left out, put in, or another number: `6 * d`; or one name in a sum or a
    product is another."""
    lookup = case.scope.lookup(execution)
    value = evaluate(dim, lookup)
    if dim[0] == "*" and "num" in (dim[1][0], dim[2][0]):
        whole = evaluate(dim[2] if dim[1][0] == "num" else dim[1], lookup)
        if whole and whole > SMALL and size % whole == 0:
            return True
    if value is not None and min(value, size) > SMALL and 0 in (size % value, value % size):
        return True
    if dim[0] == "name":
        return False
    other = _known(execution, case)
    return any(evaluate(dim, instead(lookup, {n: k})) == size for n in names_of(dim) for k in other)


def _once_only(dims: Dims, i: int, size: int) -> bool:
    """Whether a dimension stands elsewhere in the shape, and not as in a square: `[b, t, b]`."""
    apart = (*dims[: max(0, i - 1)], *dims[i + 2 :])
    return dims[i] in apart or (dims.count(dims[i]) > 1 and not may_be_two(dims[i], size))


def _is_number(dim: Expr, case: Case) -> bool:
    """Whether a size is told as a number, that other comments have too: so can any other be."""
    return dim[0] == "num" and case.told_again(dim)


def nameable(size: int, execution: Execution, case: Case) -> bool:
    """Whether a name would be right for a size, a product of two, or a small number."""
    confirmed = case.scope.confirmed.lines_of(execution.config, size)
    if size <= SMALL or confirmed - {case.sighting.line}:
        return True
    known = _known(execution, case)
    if size in known:
        return True
    return any(size % n == 0 and size // n in known for n in known | {2, 3, 4} if n > 1)


def _known(execution: Execution, case: Case) -> set[int]:
    """The sizes that a name is known for."""
    scope = case.scope
    words = [*scope.bound.get(execution.unit, {}), *(execution.after or execution.before)]
    words += [*scope.sizes(execution.config, execution.unit[0]), *scope.constants]
    words += scope.arguments.get(execution.config, {})
    find = scope.lookup(execution)
    return {value for word in words if (value := find(word)) is not None and value > 0}
