"""The lines of a comment, before anything is read of them: which of them say one thing together."""

from __future__ import annotations

from autograder.shapes.text.lexer import Token, plain, tokens

Rows = tuple[tuple[int, str], ...]  # numbers of lines, and their texts
SHORT = 5  # letters of a word, below which a full stop may shorten it: `prev.`
LEADING = ("be", "of", "as", "with", "than", "by", "on", "if", "where")  # a shape


def joined(lines: Rows) -> Rows:
    """A line that begins with an arrow or an operator goes on with the line before."""
    found: list[tuple[int, str]] = []
    last = ""
    for number, text in lines:
        first = tokens(text[:40])[:2]
        more = bool(first) and (
            (first[0].kind in ("arrow", "spread") and not first[0].word)
            or (first[0].kind == "times" and first[-1].kind in ("open", "name"))
        )
        if found and (more or last in ("arrow", "@", ",")):
            found[-1] = (found[-1][0], f"{found[-1][1]} {text}")
        else:
            found.append((number, text))
        tail = tokens(text[-40:])
        last = tail[-1].kind if tail and tail[-1].kind == "arrow" else tail[-1].text if tail else ""
    return tuple(found)


def sentence(lines: Rows, line: int, others: set[int], shape: str) -> str:
    """What is said in one breath with a shape of a line; others: lines that tell a shape, too.

    The line before goes on into it, unless it ends, or a shape begins the line anew; of the one
    behind the first word says whether it is of the same: `[b, t, d]`, `for each head`.
    """
    rows = dict(joined(lines))
    numbers, text = list(rows), _part(rows[line], shape)
    i = numbers.index(line)
    before = rows[numbers[i - 1]] if i and numbers[i - 1] not in others else ""
    if before and rows[line].startswith(text) and _goes_on(tokens(before), tokens(text)):
        before = _part(before, before[-1:])
        text = f"{before} {text}"
    if i + 1 < len(numbers) and rows[line].endswith(text) and not text.endswith("."):
        text = f"{text} {' '.join(t.text for t in tokens(rows[numbers[i + 1]])[:1])}"
    return text


def numbered(lines: Rows) -> bool:
    """Whether several lines begin with a number: `1. cut`, `2. project`."""
    first = [tokens(text[:20])[:2] for _, text in lines]
    signs = [t for t in first if len(t) > 1 and t[1].text in (".", ")")]
    return sum(t[0].text.isdecimal() for t in signs) > 1


def _goes_on(before: list[Token], after: list[Token]) -> bool:
    """Whether a line goes on into the next one."""
    last = before[-1] if before else None
    if last is None or last.text in (".", ":") or not after:
        return False
    return after[0].kind != "open" or last.kind != "name" or last.text in LEADING


def _part(text: str, shape: str) -> str:
    """The last sentence of a text that has the shape in it."""
    found, begin = tokens(text), 0
    parts = []
    for word, stop, after in zip(found, found[1:], found[2:], strict=False):
        if (
            stop.text in (".", "#", ";")
            and not after.glued
            and not (word.word and len(word.text) < SHORT)
        ):
            parts.append(text[begin : stop.end])
            begin = after.start
    parts.append(text[begin:])
    return next((p for p in reversed(parts) if shape in p), text)


def described(text: str) -> tuple[str, str]:
    """The name that a line of a docstring begins with, and what follows it; type left out."""
    found = [t for t in tokens(text) if t.text not in ("-", "*", "**", "param")]
    if found and found[0].text in (":", "@"):
        found = found[2:] if [t.text for t in found[3:4]] == [":"] else found[1:]  # `:arg x: ..`
    if len(found) < 3 or not found[0].word or found[1].text not in (":", "("):
        return "", ""
    rest = found[1].end if found[1].text == ":" else found[1].start
    if found[2].kind == "shape" and [t.text for t in found[3:4]] == ["("]:
        return found[0].text, text[found[3].start :]  # `x (Tensor(b, t, c)): ..`
    end = next((i for i, t in enumerate(found) if t.text == ")"), 0)
    if found[1].text == "(" and any(t.kind == "shape" for t in found[2:end]):
        rest = found[end].end  # `x (torch.Tensor, optional): ..`
    return found[0].text, text[rest:].lstrip(" :*")


def ends_in_arrow(text: str, shape: str) -> bool:
    """Whether an arrow leads to a shape: `transpose to [b, d, t]`, `x -> Shape: [b, d, t]`."""
    lead = tokens(plain(text).rpartition(shape)[0])
    return [t.kind for t in lead if t.kind not in ("shape", "is")][-1:] == ["arrow"]


def becoming(text: str) -> str:
    """The name in `x -> [b, t, d]`."""
    first = tokens(text)[:2]
    return first[0].text if [t.kind for t in first[1:]] == ["arrow"] else ""
