"""Shapes in the words that a student uses: from sizes back to names."""

from __future__ import annotations

from autograder.shapes.dims import shape_names
from autograder.shapes.match import results
from autograder.shapes.parser import Claim
from autograder.shapes.recording import Execution, Weight
from autograder.shapes.scope import Scope, Vector
from autograder.shapes.tracer import Stmt

UNKNOWN = "?"


def spelled(
    stmt: Stmt, runs: list[Execution], scope: Scope, claims: tuple[Claim, ...] = ()
) -> list[str]:
    """What a statement made, each shape as text: names that are right in every configuration.

    Names of the claims come first, then the function's free symbols, its variables and the plan's
    sizes; a size with no name is a product, one more or less than a named one, or `?`.
    """
    first: dict[int, Execution] = {}
    for run in runs:
        if _made(stmt, run):
            first.setdefault(run.config, run)
    executions = [first[c] for c in sorted(first)]
    shapes = [_made(stmt, e) for e in executions]
    if not shapes or len({tuple(map(len, made)) for made in shapes}) != 1:
        executions, shapes = executions[:1], shapes[:1]
    known = _known(executions, scope, claims)
    return [
        "[" + ", ".join(_word(sizes, known) for sizes in zip(*column, strict=True)) + "]"
        for column in zip(*shapes, strict=True)
    ]


def _made(stmt: Stmt, execution: Execution) -> list[tuple[int, ...]]:
    value = execution.last(stmt.value)
    if isinstance(value, Weight) and value.shape is not None:
        return [value.shape]
    return results(stmt, execution)


def _known(executions: list[Execution], scope: Scope, claims) -> dict[Vector, str]:
    """Names by their sizes, one size an execution."""
    if not executions:
        return {}
    words = [n for c in claims for t in c.terms() for n in sorted(shape_names(t.dims))]
    words += list(scope.bound)
    words += [n for n in executions[0].after or executions[0].before if "." not in n]
    words += list(scope.sizes(executions[0].config))
    finders = [scope.lookup(e) for e in executions]
    known: dict[Vector, str] = {}
    for word in words:
        sizes = tuple(find(word) for find in finders)
        if None not in sizes:
            known.setdefault(sizes, word)
    return known


def _word(sizes: Vector, known: dict[Vector, str]) -> str:
    if all(n == sizes[0] for n in sizes) and (sizes[0] == 1 or len(sizes) > 1):
        return str(sizes[0])
    if sizes in known:
        return known[sizes]
    for step, sign in ((1, "- 1"), (-1, "+ 1"), (2, "- 2")):
        near = tuple(n + step for n in sizes)
        if near in known:
            return f"{known[near]} {sign}"
    for one, a in known.items():
        for other, b in known.items():
            if tuple(m * n for m, n in zip(one, other, strict=True)) == sizes:
                return f"{a} * {b}"
    for number in (2, 3, 4):
        whole = tuple(n // number for n in sizes)
        if whole in known and tuple(n * number for n in whole) == sizes:
            return f"{number} * {known[whole]}"
    return UNKNOWN
