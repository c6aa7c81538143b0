"""Shapes in the words that a student uses: from sizes back to names, the proven ones only."""

from __future__ import annotations

from autograder.shapes.binding import Scope, Vector
from autograder.shapes.recording import Execution
from autograder.shapes.text.dims import shape_names
from autograder.shapes.text.reader import Claim

UNKNOWN = "?"


def spelled(
    runs: list[Execution],
    made: list[list[tuple[int, ...]]],
    scope: Scope,
    claims: tuple[Claim, ...] = (),
    line: int = 0,
    unknown: str = "",
) -> list[str]:
    """What a statement made in its runs, each shape as text.

    Names of the claims come first, then those of the other comments, of the code and of the call;
    a name is used only where it is proven and right in every run. A size without one is a product,
    one more or less than a named size, or else `unknown`: if not given, the number that it was in
    the first run.
    """
    first: dict[int, tuple[Execution, list[tuple[int, ...]]]] = {}
    for run, shapes in zip(runs, made, strict=True):
        if shapes:
            first.setdefault(run.config, (run, shapes))
    executions = [first[c][0] for c in sorted(first)]
    shapes = [first[c][1] for c in sorted(first)]
    if not shapes or len({tuple(map(len, made)) for made in shapes}) != 1:
        executions, shapes = executions[:1], shapes[:1]
    known = _known(executions, scope, claims, line)

    def shape(column) -> str:
        sizes = zip(*column, strict=True)
        return ", ".join(_word(s, known) or unknown or str(s[0]) for s in sizes)

    return [f"[{shape(column)}]" for column in zip(*shapes, strict=True)]


def _known(executions: list[Execution], scope: Scope, claims, line: int) -> dict[Vector, str]:
    """Proven names by their sizes, one size an execution."""
    if not executions:
        return {}
    terms = [t for c in claims for t in reversed(c.terms())]
    words = [n for t in terms for d in t.dims for n in sorted(shape_names((d,)))]
    words += list(scope.bound.get(executions[0].unit, {}))
    words += [n for n in executions[0].after or executions[0].before if "." not in n]
    call = executions[0].unit[0]
    words += list(scope.sizes(executions[0].config, call)) if call in scope.homes else []
    finders = [scope.lookup(e) for e in executions]
    known: dict[Vector, str] = {}
    for word in dict.fromkeys(words):
        sizes = tuple(find(word) for find in finders)
        if None not in sizes and all(scope.proven(word, e, line) for e in executions):
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
        rest = tuple(n // m if m else 0 for n, m in zip(sizes, one, strict=True))
        if rest in known and all(m * n == s for m, n, s in zip(one, rest, sizes, strict=True)):
            return f"{a} * {known[rest]}"
    for number in (2, 3, 4):
        whole = tuple(n // number for n in sizes)
        if whole in known and tuple(n * number for n in whole) == sizes:
            return f"{number} * {known[whole]}"
    return ""


def nameable(size: int, execution: Execution, scope: Scope) -> bool:
    """Whether a name, a product of two or a small number would be right for a size."""
    if size <= 4:
        return True
    words = [*scope.bound.get(execution.unit, {}), *(execution.after or execution.before)]
    words += list(scope.sizes(execution.config, execution.unit[0]))
    find = scope.lookup(execution)
    known = {value for word in words if (value := find(word)) is not None and value > 0}
    if size in known:
        return True
    return any(size % n == 0 and size // n in known for n in known | {2, 3, 4} if n > 1)
