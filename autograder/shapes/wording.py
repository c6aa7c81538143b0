"""What is said: verdicts and their sentences, shapes in the words that a student uses.

From sizes back to names; only those that are proven.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from autograder.shapes.binding import Scope, Vector
from autograder.shapes.doubts.case import Case, made
from autograder.shapes.places.attach import Sighting
from autograder.shapes.recording import Execution
from autograder.shapes.text.dims import shape_names
from autograder.shapes.text.reader import Claim
from autograder.shapes.tracer import Stmt

UNKNOWN = "?"


@dataclass(frozen=True)
class Verdict:
    """What is said of one comment, or of a statement that lacks one.

    verdict: "true" | "false" | "missing" | "cannot tell". deducts: whether a rubric may take a
    point off for it: what is false, and what is missing where most lines have no comment.
    clear: whether a reader knows the shape of a line without a comment all the same.
    evidence: the facts that were asked, each with its condition and its doubt.
    """

    line: int
    statement: str
    comment: str
    verdict: str
    message: str
    confidence: str = "high"
    deducts: bool = False
    proposal: str = ""  # for a missing comment: the shape to write
    clear: bool = False
    evidence: tuple[tuple[str, str, str], ...] = ()


def cannot_tell(line, statement, comment, why, facts=()) -> Verdict:
    message = f"Line {line}: cannot tell: {why}."
    return Verdict(line, statement, comment, "cannot tell", message, "low", evidence=tuple(facts))


def accusation(case: Case) -> str:
    """What the statement makes, and what the comment says of it."""
    stmt, claim = case.stmt, case.claim
    line, place = case.sighting.line, place_of(case.sighting, case.stmt)
    said, what = claim.text, f"`{case.subject()}`" if case.subject() else what_it_makes(stmt)
    what = f"what `{case.part}` makes" if case.part else what
    what = "this part" if case.argument is not None else what
    if case.sighting.place == "loose":
        return f"Line {place}: no tensor of this function is {said}, as your comment says."
    if claim.role == "input":
        return f"Line {place}: nothing that comes into this line is {said}."
    runs = case.wrong or case.runs
    shapes = [made(case, e) for e in runs]
    seen = next(iter(spelled(runs, shapes, case.scope, (claim,), line)), "unknown")
    steps = len(claim.stages) > 1 or len(claim.stages[-1].terms) > 1
    result = replace(claim, stages=claim.stages[-1:])
    if steps and all(case.matcher.holds(result, case.sighting, stmt, e) for e in case.runs):
        return f"Line {place}: {what} is {seen}, but a step of {said} is not what the code does."
    text = case.sighting.place == "docstring" and not case.sighting.as_docstring
    yours = "the docstring" if text else "your comment"
    return f"Line {place}: {what} is {seen}; {yours} says {said}."


def place_of(sighting: Sighting, stmt: Stmt) -> int:
    """Where a verdict stands: at the statement, or at the comment on an argument or a part."""
    own = stmt.kind == "def" or sighting.place in ("docstring", "inner")
    return sighting.line if own else stmt.line


def what_it_makes(stmt: Stmt) -> str:
    if stmt.kind == "return":
        return "what is returned"
    target = stmt.targets[0] if stmt.targets else ""
    return f"`{target}`" if isinstance(target, str) and target else "the result"


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
    for word in (w for w in dict.fromkeys(words) if w.strip("_")):
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
