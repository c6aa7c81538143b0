"""Several tensors of one statement, and the claims about them: one each, in order."""

from __future__ import annotations

from autograder.shapes.match import results, unpacks
from autograder.shapes.recording import Execution, Sequence, Tensor, hides, tensors, wholes
from autograder.shapes.text.dims import shape_fits
from autograder.shapes.text.reader import Claim
from autograder.shapes.tracer import Stmt


def positional(claims: tuple[Claim, ...], stmt: Stmt, execution: Execution, matcher) -> bool:
    """Several shapes for several tensors, one each, in order; the first where there is only one."""
    value = execution.last(stmt.value)
    parts = value.parts if isinstance(value, Sequence) else (value,)
    if isinstance(value, Sequence) and len(claims) != value.length:
        parts = [Tensor(s) for s in tensors(value)]  # `out, (h, c)`: a tuple in a tuple
        if len(parts) != len(claims):
            return False
    lookup = matcher.scope.lookup(execution)
    for claim, part in zip(claims, parts, strict=False):
        shapes = tensors(part)
        dims = claim.stages[-1].terms[-1].dims if claim.stages else None
        if dims is None or not shapes or not all(shape_fits(dims, s, lookup) for s in shapes):
            return False
    return True


def pairs(claims: tuple[Claim, ...], stmt: Stmt, runs: list[Execution]) -> bool:
    """Whether the claims are one for each tensor of a tuple that the statement makes."""
    return len(claims) > 1 and any(len(claims) in _lengths(stmt, e) for e in runs)


def _lengths(stmt: Stmt, execution: Execution) -> tuple[int, ...]:
    """How many tensors came about, where it was more than one value."""
    value = execution.last(stmt.value)
    if hides(value):
        return ()
    if isinstance(value, Sequence):
        return value.length, len(tensors(value))
    return (len(results(stmt, execution)),) if unpacks(stmt) else ()


def columns(stmt: Stmt, runs: list[Execution], labels: set[str], configs) -> list[tuple]:
    """The shapes on the way through a statement, each dimension as its size in every run."""
    per: dict[int, list] = {}
    for execution in runs:
        seen = [v for _, v in execution.events]
        seen += [v for n, v in execution.after.items() if n in labels]
        shapes = [s for v in seen for w in wholes(v) for s in w] + results(stmt, execution)
        per.setdefault(execution.config, shapes)
    if set(per) != set(configs) or len({len(s) for s in per.values()}) != 1:
        return []
    found = []
    for column in zip(*(per[c] for c in configs), strict=True):
        if len({len(s) for s in column}) == 1 and column[0]:
            vector = tuple(zip(*column, strict=True))
            if vector not in found:
                found.append(vector)
    return found
