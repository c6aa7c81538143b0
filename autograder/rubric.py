"""The homework's rubric: what is taken off and what is added, each with its reason.

Per class: one point off for PEP 8, one for shape comments, one for scores that are not scaled
(an answer that is right but for the scale loses that point and no other). One point more for a
`SelfAttention.forward` of three statements. A class never falls below zero.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from autograder.asking import Finding
from autograder.report import Result
from autograder.style import pep8

SCALE = "scale.missing"
THREE_LINES = 3


@dataclass(frozen=True)
class Rubric:
    """What holds for one class: the task that can earn the bonus, if any."""

    bonus_task: str = ""
    bonus_class: str = ""


# By the id of the exercise cell.
RUBRICS = {
    "self_attention": Rubric("self_attention.forward", "SelfAttention"),
    "multi_head": Rubric(),
}


def apply(
    exercise: str, results: list[Result], source: str, released: str, comments: list[Finding]
) -> list[Result]:
    """The results of one exercise's tasks after deductions and bonus.

    source: the student's cell; released: the cell as handed out; comments: verdicts on its shape
    comments, of which those that say 'deduction' by `deducts` cost a point.
    """
    rubric = RUBRICS.get(exercise)
    if rubric is None or not results:
        return results
    results, scale = _forgive_scale(results)
    deductions = [*scale, *_style(source, released), *_comments(comments)]
    results = _bonus(rubric, results, source, blocked=bool(scale))
    results = [replace(results[0], findings=(*results[0].findings, *comments)), *results[1:]]
    for deduction in deductions:
        results = _take_one(results, deduction)
    return results


def _forgive_scale(results: list[Result]) -> tuple[list[Result], list[Finding]]:
    """Gives back the points of tasks that fail for the missing scale only; says what it costs."""
    unscaled = [r for r in results if r.findings and r.findings[0].check == SCALE]
    if not unscaled:
        return results, []
    message = "1 point off: the scores are not scaled."
    given = [replace(r, points=r.max_points) if r in unscaled else r for r in results]
    return given, [Finding(SCALE, "deduction", message)]


def _style(source: str, released: str) -> list[Finding]:
    found = pep8(source, released)
    if not found:
        return []
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    message = f"1 point off for PEP 8: {first.message}{more}"
    return [replace(first, message=message)]


def _comments(comments: list[Finding]) -> list[Finding]:
    costly = [f for f in comments if f.verdict in ("false", "missing")]
    if not costly:
        return []
    more = f" (and {len(costly) - 1} more)" if len(costly) > 1 else ""
    message = f"1 point off for shape comments: {costly[0].message}{more}"
    return [replace(costly[0], verdict="deduction", message=message)]


def _take_one(results: list[Result], deduction: Finding) -> list[Result]:
    """Takes a point off the task that has most left, and says so there."""
    best = max(range(len(results)), key=lambda i: results[i].points)
    result = results[best]
    if result.points <= 0:
        return results
    taken = replace(
        result, points=max(0.0, result.points - 1), findings=(*result.findings, deduction)
    )
    return [*results[:best], taken, *results[best + 1 :]]


def _bonus(rubric: Rubric, results: list[Result], source: str, blocked: bool) -> list[Result]:
    def better(result: Result) -> Result:
        right = result.task == rubric.bonus_task and result.passed and not blocked
        if not right or not forward_in_three(source, rubric.bonus_class):
            return result
        message = "1 point more: forward in three lines."
        bonus = Finding("three lines", "bonus", message)
        return replace(result, points=result.points + 1, findings=(*result.findings, bonus))

    return [better(r) for r in results]


def forward_in_three(source: str, name: str) -> bool:
    """Whether class `name` computes all of its forward in at most three statements and lines.

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
    return simple and 0 < len(body) <= THREE_LINES and len(lines) <= THREE_LINES


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
