"""A rubric: what is taken off and what is added for one exercise, each with its reason.

A course names it in its settings, by the id of the exercise's cell: `[tool.autograder.rubric.ID]`.
One point off for PEP 8, one for shape comments, one for each slip that it forgives, one for layers
that are not as they were asked for (where no task is about the layers). An answer that is right but
for what is forgiven, or for its layers, loses that point and no other. One point more for a short
method, where the rubric offers it. An exercise never falls below zero.

What a rubric takes or gives is a finding of its own, with its points. `Result.points` is the number
that is left, for nbgrader's cell; `Result.earned` is what the task was worth before that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import replace

from autograder.course.asking import Finding, Verdict
from autograder.course.settings import Rubric
from autograder.judging.look_again import PREFIX as LAYER
from autograder.judging.style import pep8
from autograder.reports.report import Result

WIDTHS = ("wrong width", f"{LAYER}width")  # the checks of a layer of a wrong width


def apply(
    rubric: Rubric, results: list[Result], source: str, released: str, comments: list[Finding]
) -> list[Result]:
    """The results of one exercise's tasks after deductions and bonus.

    source: the student's cell; released: the cell as handed out; comments: verdicts on its shape
    comments, of which those that say 'deduction' by `deducts` cost a point. They stand with the
    first task that is not about the layers alone.
    """
    if not results:
        return results
    results, owed = _forgive(rubric, results)
    for task, deduction in owed:
        results = _take_one(results, deduction, task)
    results = _bonus(rubric, results, source)
    at = next((i for i, r in enumerate(results) if r.task != rubric.layers), 0)
    own = replace(results[at], findings=(*results[at].findings, *comments))
    results = [*results[:at], own, *results[at + 1 :]]
    widths = any(f.check in WIDTHS for r in results for f in r.findings)
    for deduction in _style(source, released):
        results = _take_one(results, deduction)
    for deduction in _comments(comments, widths):
        results = _take_one(results, deduction, own.task)
    return results


def _forgive(rubric: Rubric, results: list[Result]) -> tuple[list[Result], list]:
    """Gives back the points of tasks that are right but for what is forgiven.

    Returns the results and what is owed for it: (task, deduction), once for each kind in a class.
    Layers are not charged twice where a task of their own has lost its points.
    """
    forgives = {**rubric.forgives, LAYER: "the layers"}
    paid = {LAYER} if any(r.task == rubric.layers and not r.passed for r in results) else set()
    given, owed = [], []
    for result in results:
        kinds = {f: _kind(forgives, f) for f in result.findings if f.fails}
        forgiven = {f: kind for f, kind in kinds.items() if kind}
        if result.task == rubric.layers or not forgiven:
            given.append(result)
            continue
        for finding, kind in forgiven.items():
            if kind not in paid:
                paid.add(kind)
                owed.append((result.task, _deduction(finding, forgives[kind])))
        others = tuple(f for f in result.findings if f not in forgiven)
        if not any(f.fails for f in others):
            right = set(forgiven.values()) == {LAYER}  # with right layers the answer is right
            result = replace(result, points=result.max_points, passed=right)
        given.append(replace(result, findings=others))
    return given, owed


def _kind(forgives: Mapping, finding: Finding) -> str:
    """The kind of what is forgiven that a finding is about, or ''; of two slips both must be."""
    parts = finding.check.split(" + ")
    kinds = [next((k for k in forgives if part.startswith(k)), "") for part in parts]
    return kinds[0] if all(kinds) else ""


def _deduction(finding: Finding, what: str, more: int = 0) -> Finding:
    others = f" (and {more} more)" if more else ""
    message = f"1 point off for {what}: {finding.message}{others}"
    return replace(finding, verdict=Verdict.DEDUCTION, message=message, points=-1.0)


def _style(source: str, released: str) -> Iterable[Finding]:
    found = pep8(source, released)
    return [_deduction(found[0], "PEP 8", len(found) - 1)] if found else []


def _comments(comments: list[Finding], widths: bool) -> Iterable[Finding]:
    """What comments cost, with their line: the comment itself says what is wrong with it.

    widths: whether a layer of a wrong width is charged already. It makes comments false that would
    be true of the right one, so that they cost nothing more.
    """
    costly = [
        f
        for f in comments
        if f.verdict == Verdict.MISSING or f.verdict == Verdict.FALSE and not widths
    ]
    if not costly:
        return []
    first, more = costly[0], len(costly) - 1
    if first.line:
        others = f" and {more} more" if more else ""
        first, more = replace(first, message=f"line {first.line}{others}."), 0
    return [_deduction(first, "shape comments", more)]


def _take_one(results: list[Result], deduction: Finding, task: str = "") -> list[Result]:
    """Takes a point off a task, by default the one that has most left, and says so there."""
    places = range(len(results))
    best = max(
        places, key=lambda i: (results[i].task == task and results[i].points > 0, results[i].points)
    )
    result = results[best]
    taken = min(-deduction.points, result.points)
    if taken <= 0:
        return results
    deduction = replace(deduction, points=-taken)
    result = replace(result, points=result.points - taken, findings=(*result.findings, deduction))
    return [*results[:best], result, *results[best + 1 :]]


def _bonus(rubric: Rubric, results: list[Result], source: str) -> list[Result]:
    def better(result: Result) -> Result:
        right = result.task == rubric.short_task and result.passed
        if not right or not short_forward(source, rubric.short_class, rubric.short_lines):
            return result
        words = {1: "one line", 2: "two lines", 3: "three lines"}
        lines = words.get(rubric.short_lines, f"{rubric.short_lines} lines")
        bonus = Finding(lines, Verdict.BONUS, f"1 point more: forward in {lines}.", points=1.0)
        return replace(result, points=result.points + 1, findings=(*result.findings, bonus))

    return [better(r) for r in results]


def short_forward(source: str, name: str, most: int = 3) -> bool:
    """Whether class `name` computes all of its forward in at most `most` statements and lines.

    What stands elsewhere does not count as short: methods of its own beside __init__ and forward,
    functions, lambdas, texts that are run, and names that the cell does not define. PyTorch's
    ready-made attention does not either.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    if any(isinstance(n, ast.FunctionDef) for n in tree.body) or len(classes) != 1:
        return False
    methods = [n for n in classes[0].body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    forward = next((m for m in methods if m.name == "forward"), None)
    if classes[0].name != name or forward is None or len(methods) > 2:
        return False
    if uses_ready_made(source) or _borrows(tree):
        return False
    body = forward.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    simple = all(isinstance(n, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr) for n in body)
    lines = {n.lineno for n in body} | {n.end_lineno for n in body}
    return simple and 0 < len(body) <= most and len(lines) <= most


# What a short forward may be made of, besides the names that it defines itself.
MODULES = {"torch", "nn", "F", "math", "np", "numpy", "einops"}
BUILTINS = {"abs", "float", "int", "len", "max", "min", "print", "range", "sum", "super", "zip"}
TYPES = {"bool", "str", "tuple", "Tensor"}


def _borrows(tree: ast.Module) -> bool:
    """Whether a cell uses what is defined elsewhere, or hides work in a lambda or a text."""
    known = MODULES | BUILTINS | TYPES
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            return True
        if isinstance(node, ast.Import | ast.ImportFrom):
            origin = getattr(node, "module", None)
            names = [origin] if origin else [a.name for a in node.names]
            if any(n.partition(".")[0] not in MODULES for n in names):
                return True
            known |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.add(node.id)
        elif isinstance(node, ast.Attribute) and node.attr.startswith("__"):
            if node.attr != "__init__":
                return True
        elif isinstance(node, ast.Attribute) and node.attr == "jit":
            return True
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return not used <= known


READY_MADE = ("scaled_dot_product_attention", "MultiheadAttention", "multi_head_attention_forward")


def uses_ready_made(source: str) -> bool:
    """Whether the text names PyTorch's own attention."""
    return any(name in source for name in READY_MADE)
