"""What a chain says of its own names: its begin is what comes in, whatever they are elsewhere."""

from __future__ import annotations

from autograder.shapes.doubts.case import Case, made
from autograder.shapes.text.dims import (
    Dims,
    Lookup,
    aligned,
    alone,
    fits,
    shape_fits,
    shape_names,
    without,
)


def at_odds(case: Case) -> bool:
    """Whether the begin of a chain gives its names sizes with which its end is false.

    `[b, d, h, w] -> [b, d, h * w]` for what is turned at last, whatever `h` and `w` are elsewhere.
    """
    stages = case.claim.stages
    if len(stages) < 2 or case.claim.others or any(len(s.terms) > 1 for s in stages):
        return False
    first = stages[0].terms[0].dims
    last = without(case.last.dims, set(case.unproven) - shape_names(first))
    if not shape_names(last):
        return False
    for e in case.runs:
        free = {n for n in shape_names(first) if case.scope.free(n, e)} | set(case.unproven)
        begun = [_begun(first, s, free, case.scope.lookup(e)) for s in case.entered(e)]
        finds = [find for find in begun if find is not None]
        if not finds or any(shape_fits(last, s, find) for find in finds for s in made(case, e)):
            return False
    return True


def is_by_its_begin(case: Case) -> bool:
    """Whether each step of a chain is there, for the sizes that its begin gives the names; the end
    is right as it is. `[b, n, f] -> [b, f, n] -> [b, f, n]` before and behind a layer: two `f`."""
    stages = case.claim.stages
    if len(stages) < 3 or any(len(s.terms) > 1 for s in stages) or not case.ends_right():
        return False
    first, *middle = [s.terms[0].dims for s in stages[:-1]]
    for e in case.runs:
        free = {n for n in shape_names(first) if len(n) < 3}
        entered, known = case.entered(e), case.scope.lookup(e)
        begun = [_begun(first, s, free, known) for s in entered]
        finds = [f for f in begun if f is not None and any(f(n) != known(n) for n in free)]
        if not any(all(any(shape_fits(d, s, f) for s in entered) for d in middle) for f in finds):
            return False
    return True


def _begun(dims: Dims, shape: tuple[int, ...], free: set[str], lookup: Lookup) -> Lookup | None:
    """The sizes of names, where the free ones have those that make dimensions a shape."""
    own: dict[str, int] = {}
    pairs = aligned(dims, len(shape))
    for i, j in pairs or ():
        for name in set(alone(dims[i])) & free:
            if own.setdefault(name, shape[j]) != shape[j]:
                return None

    def find(name: str) -> int | None:
        return own.get(name) or lookup(name)

    return find if pairs and all(fits(dims[i], shape[j], find) for i, j in pairs) else None
