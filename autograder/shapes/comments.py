"""Finds the comments of a source that may hold shapes: no pragmas, no commented-out code."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass, replace

PRAGMA = re.compile(
    r"^\s*(noqa|type:\s*ignore|pylint:|pragma:|fmt:|isort:|pyright:|mypy:|%%)", re.I
)
BARRIER = re.compile(
    r"(your code|(begin|end) (solution|hidden)|todo|task\s*\d|code (starts|ends)|fill in|"
    r"write (the )?shape|for example|^\s*note\b|^\s*suppose\b|=====|-----|#####)",
    re.I,
)
CODE_CALL = re.compile(
    r"(?i)(^|\.)(shape|size|tensor|floattensor|longtensor|view|reshape|dims?|x)$"
)
MAX_COMMENT = 400  # characters; in a longer one nobody looks for code
MAX_COMMENTS = 1_000  # of one source


@dataclass(frozen=True)
class Comment:
    """One comment: its line, its text without the `#`, whether it has the line to itself."""

    line: int
    text: str
    own: bool
    indent: int
    barrier: bool = False


def find_comments(source: str, starter: str | None = None) -> list[Comment]:
    """Every comment that may be about shapes, in order; `barrier` marks the handout's headings."""
    given = {line.strip() for line in (starter or "").splitlines() if "#" in line}
    lines = source.splitlines()
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type != tokenize.COMMENT:
                continue
            line, column = token.start
            text = token.string.lstrip("#!").strip()
            own = not lines[line - 1][:column].strip()
            if PRAGMA.match(text) or (not text and not own):
                continue
            if len(found) >= MAX_COMMENTS:
                break
            barrier = lines[line - 1].strip() in given or (own and bool(BARRIER.search(text)))
            found.append(Comment(line, text, own, column, barrier))
    except (tokenize.TokenError, IndentationError):
        return found
    return _without_code(found)


def _without_code(comments: list[Comment]) -> list[Comment]:
    kept, i = [], 0
    while i < len(comments):
        taken = 1
        if is_code(comments[i].text):
            code, _, rest = comments[i].text.rpartition("#")
            if code and not comments[i].own:  # `p = s.softmax(-1)  # softmax(s)  # [b, t, t]`
                kept.append(replace(comments[i], text=rest.strip()))
            i += 1
            continue
        if comments[i].own and _opens(comments[i].text):
            text = comments[i].text
            while (
                i + taken < len(comments)
                and taken < 12
                and comments[i + taken].own
                and comments[i + taken].line == comments[i].line + taken
            ):
                text += "\n" + comments[i + taken].text
                taken += 1
                if is_code(text):
                    break
            else:
                taken = 0
            if taken and is_code(text):
                i += taken
                continue
        kept.append(comments[i])
        i += 1
    return kept


def _opens(text: str) -> bool:
    """Whether the text looks like the first line of a statement that goes on."""
    code = text.split("#")[0]
    return bool(re.match(r"[\w.]+(\s*,\s*[\w.]+)*\s*=[^=]|return\b|[\w.]+\(", code)) and (
        sum(code.count(c) for c in "([{") > sum(code.count(c) for c in ")]}")
    )


def is_code(text: str) -> bool:
    """Whether a comment is a statement that somebody switched off."""
    if len(text) > MAX_COMMENT:
        return False
    text = re.sub(r"^[>\s]+", "", text)
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return bool(re.match(r"(for|if|while|with|def|class|elif|else)\b.*:\s*(#.*)?$", text))
    return any(_is_statement(s) for s in body)


def _is_statement(node: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Raise() | ast.AugAssign():
            return True
        case ast.Assign() | ast.AnnAssign():
            if node.value is None or isinstance(node.value, ast.List | ast.Tuple | ast.Set):
                return False
            if isinstance(node, ast.AnnAssign):
                return False
            return _has_call(node.value) or not isinstance(node.value, ast.BinOp | ast.Name)
        case ast.Return():
            return node.value is not None and _has_call(node.value)
        case ast.Expr(value=ast.Call() as call):
            return _has_call(call)
    return False


def _has_call(node: ast.expr) -> bool:
    """A call of something that has a name and is not `shape(...)`, `torch.Size(...)`, `view(...)`.

    `[bs, hidden, seq] (bs, seq, hidden)` parses as a call too, and so does `q (bs, seq, hidden)`.
    """
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name | ast.Attribute):
            name = ast.unparse(part.func)
            if CODE_CALL.search(name):
                continue
            if isinstance(part.func, ast.Attribute) or part.keywords:
                return True
            if len(part.args) < 2 or any(
                not isinstance(a, ast.Name | ast.BinOp) for a in part.args
            ):
                return True
    return False
