"""Finds the comments of a source that may hold shapes: no pragmas, no commented-out code."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass, replace

MAX_COMMENTS, MAX_CODE = 1_000, 400
PRAGMAS = ("noqa", "type:", "pylint:", "pragma:", "fmt:", "isort:", "pyright:", "mypy:", "%%")
IGNORE = "shapes: ignore"
HEADINGS = (
    *("your code", "begin solution", "end solution", "begin hidden", "end hidden", "todo"),
    *("code starts", "code ends", "fill in", "write shape", "write the shape", "for example"),
    *("=====", "-----", "#####", "*****"),
)
OPENINGS = ("note ", "note:", "suppose ", "task ")
SETS = re.compile(r"[\w.]+ ?=(?!=)")  # how a statement begins that gives something a value
_NO_CALLS = """
    shape size tensor floattensor longtensor view reshape dim dims x
"""
NO_CALLS = frozenset(_NO_CALLS.split())
BLOCKS = ("for ", "if ", "while ", "with ", "def ", "class ", "elif ", "else:", "try:", "except")


@dataclass(frozen=True)
class Comment:
    """One comment: its line, its text without the `#`, whether it has the line to itself.

    barrier: a heading of the hand-out, or a line of it: it says nothing and parts what is around.
    behind_code: the line before is a statement that is switched off, `# x = x.mT`.
    """

    line: int
    text: str
    own: bool
    indent: int
    barrier: bool = False
    behind_code: bool = False


@dataclass(frozen=True)
class Given:
    """What the hand-out holds: its lines, its statements, and its comments of their own line."""

    lines: frozenset[str] = frozenset()
    code: frozenset[str] = frozenset()
    comments: frozenset[str] = frozenset()


NOTHING = Given()


def given(starter: str | None) -> Given:
    """The parts of a hand-out that are not the student's."""
    if not starter:
        return Given()
    lines = starter.splitlines()
    found = list(_tokenized(starter))
    cut = {line: column for line, column, _ in found}
    code = {s[: cut.get(i, len(s))].strip() for i, s in enumerate(lines, start=1)}
    own = {text for line, column, text in found if not lines[line - 1][:column].strip()}
    return Given(frozenset(s.strip() for s in lines), frozenset(code - {""}), frozenset(own))


def _tokenized(source: str):
    """(line, column, text) of each comment, as far as the source can be cut into tokens."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield *token.start, token.string.lstrip("#!").strip()
    except (tokenize.TokenError, SyntaxError):
        return


def find_comments(source: str, handed_out: Given = NOTHING) -> list[Comment]:
    """Every comment that may be about shapes, in order."""
    lines = source.splitlines()
    found: list[Comment] = []
    for line, column, text in _tokenized(source):
        if len(found) >= MAX_COMMENTS or line > len(lines):
            break
        own = not lines[line - 1][:column].strip()
        if text.lower().startswith(PRAGMAS) or (not text and not own):
            continue
        low = text.lower()
        heading = any(h in low for h in HEADINGS) or low.startswith(OPENINGS)
        handed = (own and text in handed_out.comments) or lines[line - 1].strip() in (
            handed_out.lines
        )
        found.append(Comment(line, text, own, column, handed or (own and heading)))
    return _without_code(found)


def ignored(source: str) -> frozenset[int]:
    """The lines that say `# shapes: ignore`."""
    return frozenset(line for line, _, text in _tokenized(source) if IGNORE in text.lower())


def _without_code(comments: list[Comment]) -> list[Comment]:
    """Switched-off code is no comment; one line of it, or several that are one statement."""
    kept, i, off = [], 0, 0  # off: the line of the last statement that is switched off
    while i < len(comments):
        comment = comments[i]
        if comment.own and comment.line == off + 1:
            comment = replace(comment, behind_code=True)
        if comment.own and comment.text.startswith("#"):  # `# # [b, t, d]`, switched off as well
            i += 1
            continue
        if is_code(comment.text):
            code, _, rest = comment.text.rpartition("#")
            if code and not comment.own:  # `p = s.softmax(-1)  # softmax(s)  # [b, t, t]`
                kept.append(replace(comment, text=rest.strip()))
            off = comment.line if comment.own and SETS.match(comment.text) else off
            i += 1
            continue
        told, _, code = comment.text.rpartition("#")
        if told.strip() and is_code(code.strip()):  # `[b, t, d]  # print(x.shape)`
            comment = replace(comment, text=told.rstrip())
        taken = _several(comments, i) if comment.own and _opens(comment.text) else 0
        if not taken:
            kept.append(comment)
        i += max(taken, 1)
    return kept


def _several(comments: list[Comment], first: int) -> int:
    """How many lines of comment from here on are one statement; 0 where they are none."""
    text = comments[first].text
    for more in range(1, 12):
        i = first + more
        if (
            i >= len(comments)
            or not comments[i].own
            or comments[i].line != comments[i - 1].line + 1
        ):
            return 0
        text += "\n" + comments[i].text
        if is_code(text):
            return more + 1
    return 0


def _opens(text: str) -> bool:
    """Whether the text looks like the first line of a statement that goes on."""
    code = text.split("#")[0].strip()
    head = code.split("(")[0].split("=")[0].replace(",", " ").replace(".", " ")
    named = all(word.isidentifier() for word in head.split()) and head.strip() != ""
    begun = "=" in code or code.startswith("return ") or len(head.split()) <= 3 and "(" in code
    return named and begun and sum(map(code.count, "([{")) > sum(map(code.count, ")]}"))


def is_code(text: str) -> bool:
    """Whether a comment is a statement that somebody switched off."""
    if len(text) > MAX_CODE * 4:
        return False
    text = text.lstrip("> \t")
    code, sign, _ = text.partition("#")
    if sign and " = " in code and _parses(code):  # `z = y * j  # [b, t, d]`
        return True
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return text.startswith(BLOCKS) and text.split("#")[0].rstrip().endswith(":")
    if len(body) == 1 and isinstance(body[0], ast.Expr | ast.Assign) and "\n" not in text:
        return _is_statement(body[0]) and not _apart(body[0], text.encode())
    return any(_is_statement(s) for s in body)


def _apart(node: ast.stmt, text: bytes) -> bool:
    """Whether a space stands before the brackets: `x * w (b, t, 1)` is no call of w."""
    calls = [c for c in ast.walk(node) if isinstance(c, ast.Call)]
    return any(text[c.func.end_col_offset or 0 :][:1] == b" " for c in calls)


def _parses(code: str) -> bool:
    try:
        node = ast.parse(code.strip()).body[0]
    except (SyntaxError, ValueError, MemoryError, RecursionError, IndexError):
        return False
    told = isinstance(node, ast.Assign) and getattr(node.targets[0], "attr", "") == "shape"
    return isinstance(node, ast.Assign) and not told  # `q.shape = (b, t)  # prose`


def _is_statement(node: ast.stmt) -> bool:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Raise() | ast.AugAssign():
            return True
        case ast.Assign():
            nested = getattr(node.targets[0], "elts", [])[:1]  # `(b, t), t = 5`
            if any(isinstance(n, ast.Tuple | ast.List) for n in nested):
                return False
            if isinstance(node.value, ast.List | ast.Tuple | ast.Set):
                return bool(node.value.elts) and all(
                    isinstance(e, ast.Call) and _has_call(e) for e in node.value.elts
                )
            return _has_call(node.value) or not isinstance(node.value, ast.BinOp | ast.Name)
        case ast.AnnAssign():
            return node.value is not None and _has_call(node.value)
        case ast.Return():
            return node.value is not None and _has_call(node.value)
        case ast.Expr(value=ast.BinOp(left=ast.List() | ast.Tuple())):
            return False  # `[(b, t), ...] * len(parts)`
        case ast.Expr(value=ast.BinOp(right=ast.List() | ast.Tuple())):
            return False  # `len(parts) * [b, t]`
        case ast.Expr(value=ast.Call() | ast.BinOp() as value):
            return _has_call(value)
    return False


def _has_call(node: ast.expr) -> bool:
    """A call of something that has a name and is not `shape(...)`, `torch.Size(...)`, `view(...)`.

    `[bs, hidden, seq] (bs, seq, hidden)` parses as a call too, and so does `q (bs, seq, hidden)`.
    """
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name | ast.Attribute):
            name = part.func.id if isinstance(part.func, ast.Name) else part.func.attr
            if name.lower() in NO_CALLS:
                continue
            if isinstance(part.func, ast.Attribute) and isinstance(part.func.value, ast.Tuple):
                continue  # `(t, b, d).transpose(0, 1)`
            if isinstance(part.func, ast.Attribute) or part.keywords:
                return True
            plain = all(isinstance(a, ast.Name | ast.BinOp) for a in part.args)
            if len(part.args) < 2 or not plain:
                return True
    return False
