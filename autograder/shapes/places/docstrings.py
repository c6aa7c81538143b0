"""What a docstring, or a comment in its place, says of the arguments of a function, and of what it
returns."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from autograder.shapes.places.layout import of_argument
from autograder.shapes.text.lexer import Token, tokens
from autograder.shapes.text.lines import described
from autograder.shapes.text.reader import Claim, read
from autograder.shapes.text.shapes_in_text import Vocabulary
from autograder.shapes.tracer import Function

MAX_DOC = 4_000  # characters of a docstring that are read
FIELDS = (":", "@")  # before `param`, `return`

Told = tuple[Claim, tuple[int, str]]  # what is claimed, and the line that says it


def of_class(function: Function, source: str) -> Function:
    """With the docstring of its class, where what a module is called with has none of its own."""
    if function.docstring or function.name not in ("forward", "__call__"):
        return function
    text, line = docstrings_of_classes(source).get(function.owner, ("", 0))
    return replace(function, docstring=text, doc_line=line) if text else function


@lru_cache(maxsize=4)
def docstrings_of_classes(source: str) -> dict[str, tuple[str, int]]:
    """The docstrings of the classes of a text by their names, each with its line."""
    found: dict[str, tuple[str, int]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            text = ast.get_docstring(node, clean=False) or ""
            found.setdefault(node.name, (text, node.body[0].lineno))
    return found


@lru_cache(maxsize=4)
def texts_by_end(source: str) -> dict[int, str]:
    """The texts that stand in a program as statements of their own, by the line of their end."""
    found = (n.value for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Expr))
    texts = (v for v in found if isinstance(v, ast.Constant) and isinstance(v.value, str))
    return {text.end_lineno: text.value for text in texts}


def comment_above(function: Function, lines: Sequence[str]) -> Function:
    """A function with the comment right above its `def` in the place of its docstring."""
    end = function.line - 1
    while end > 0 and lines[end - 1].strip().startswith("@"):
        end -= 1
    start = end
    while start > 0 and lines[start - 1].strip().startswith("#"):
        start -= 1
    return _with_comment(function, lines, start, end)


def comment_below(function: Function, lines: Sequence[str]) -> Function:
    """A function with the comment at the begin of its body in the place of its docstring."""
    start, last = function.line, min(function.end_line, len(lines))
    while start < last and not lines[start - 1].split("#")[0].rstrip().endswith(":"):
        start += 1  # a longer `def`
    if function.docstring and function.doc_line == start + 1:
        start = function.doc_line + function.docstring.count("\n")
    while start < last and not lines[start].strip():
        start += 1
    end = start
    while end < len(lines) and lines[end].strip().startswith("#"):
        end += 1
    return _with_comment(function, lines, start, end)


def _with_comment(function: Function, lines: Sequence[str], start: int, end: int) -> Function:
    text = "\n".join(line.strip().lstrip("#") for line in lines[start:end])
    return replace(function, docstring=text[:MAX_DOC], doc_line=start + 1)


def of_arguments(function: Function, vocabulary: Vocabulary) -> list[Told]:
    """`x: (b, t, c)`, `x (Tensor): of shape (b, t, c)`: one shape in a line of an argument."""
    found = []
    for line, text, results in entries(function):
        name, rest = described(text)
        if results or name not in function.parameters:
            continue
        claims = read([(line, f"{name}: {rest}")], vocabulary)
        if len(claims) == 1 and _single(claims[0]):
            found.append((of_argument(claims[0], name), (line, text.strip())))
    return found


def of_result(
    function: Function, names: Sequence[str] | None, vocabulary: Vocabulary
) -> list[Told]:
    """`Returns: (b, t, c)`, `:return: [b, t, c]`, `Output shape: (b, t, c)`.

    names: those in the rows that are returned, None where that is no row. Of several tensors only
    those are told that the docstring calls by these names; or each, in order, where it has its own
    name for every one.
    """
    found = [
        (claim, (line, text.strip()))
        for line, text, results in entries(function)
        if results
        for claim in read([(line, results)], vocabulary)
    ]
    found = [(c, row) for c, row in found if _single(c) and not c.aside]
    if names is not None:
        lines = [n for n, text, results in entries(function) if results and _names_one(text)]
        each = dict(zip(lines, names, strict=True)) if len(lines) == len(names) else {}
        told = [(c, row, c.terms()[0].label) for c, row in found]
        told = [(c, row, label if label in names else each.get(c.line)) for c, row, label in told]
        return [(of_argument(c, label), row) for c, row, label in told if label]
    return [(of_argument(c, ""), row) for c, row in found] if len(found) == 1 else []


def entries(function: Function) -> list[tuple[int, str, str]]:
    """Each line of a docstring with its number, and what it says of the result, if it does."""
    found, results = [], False
    for line, text in enumerate(function.docstring[:MAX_DOC].splitlines(), function.doc_line):
        words = tokens(text)
        field = bool(words) and words[0].text in FIELDS
        words = words[field:]
        begins = _begins(words, field) if described(text)[0] not in function.parameters else None
        other = (len(words) == 1 and words[0].word) or (
            len(words) > 1 and (field or words[0].kind == "input")
        )
        other = other or [t.text for t in words[1:]] == [":"]
        results = begins is not None or (results and not other)
        rest = text if begins is None else text[begins:]
        found.append((line, text, rest if results else ""))
    return found


def _names_one(text: str) -> bool:
    """Whether a line begins with the name of one result; `Returns:` is none."""
    name = described(text)[0]
    return bool(name) and not name.lower().startswith("return")


def _begins(words: list[Token], field: bool) -> int | None:
    """Where a line goes on behind `Returns:`, `:return:`, `Output shape`; None for another one."""
    if not words or words[0].kind != "output":
        return None
    after = words[1] if len(words) > 1 else words[0]
    if after.kind == "shape" or (field and after.text != ":"):
        return after.start
    leads = len(words) == 1 or after.text == ":" or after.kind == "minus"  # `outputs --- [b, d]`
    return after.end if leads else None


def _single(claim: Claim) -> bool:
    return len(claim.stages) == 1 and len(claim.terms()) == 1
