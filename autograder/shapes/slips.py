"""Whether a slip explains a comment that does not hold: what people do when they get it wrong."""

from __future__ import annotations

import math
from collections import Counter

from autograder.shapes.case import Case, made, opened
from autograder.shapes.recording import Execution, Weight, tensors
from autograder.shapes.text.dims import aligned, evaluate, fits, shape_fits, shape_names
from autograder.shapes.text.shapes_in_text import Term
from autograder.shapes.tracer import flat
from autograder.shapes.wording import nameable


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
