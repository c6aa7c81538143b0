"""Expressions for one dimension of a tensor: parsed from a comment, evaluated on sizes.

An expression is a small tuple: ("num", 3), ("name", "heads"), ("*", a, b) and the like for + - /,
("any",) for a wildcard, ("...",) for an ellipsis, ("alt", a, b) where a comment gives two names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

from autograder.shapes.names import WORDS

Expr = tuple
Lookup = Callable[[str], int | None]

MAX_TEXT = 300
OPERATORS = {"·": "*", "×": "*", "⋅": "*", "∗": "*", "//": "/", "÷": "/", "−": "-", "–": "-"}
TOKEN = re.compile(
    r"""\s*(?:
      (?P<dots>\.\.\.|…|\.\.)
    | (?P<sized>[^\W\d]\w*\.(?:shape\[-?\d+\]|size\(-?\d+\)))
    | (?P<num>\d+(?![\w.])|\d+(?=[^\W\d_]))
    | (?P<name>[^\W\d]\w*(?:\.[^\W\d]\w*)*'*)
    | (?P<op>//|\*\*|[-+*/·×⋅∗÷−–()^=:?])
    )""",
    re.X,
)
# Words joined by a hyphen that are one name, and no subtraction: seq-len, head-dim, batch-size.
HYPHENATED = re.compile(
    r"\b(batch|seq|sequence|head|heads|hidden|input|output|num|n|embed|embedding|emb|model|token)"
    r"-(size|len|length|dim|dims|heads|head|tokens|state|features)\b",
    re.I,
)
# What has been read is never read again (`++`): a repetition of repetitions would take time that
# doubles with each letter of a long word.
SPACED = re.compile(r"(?:\w++|\.\.\.|\([\w\s*/]++\)|\s++)++")


class NotADim(ValueError):
    """The text is not the text of a shape."""


def parse_dims(text: str) -> tuple[Expr, ...]:
    """The dimensions inside a pair of brackets; raises NotADim where it is none."""
    if len(text) > MAX_TEXT:
        raise NotADim(text)
    text = HYPHENATED.sub(r"\1_\2", text.replace("\\times", "×").replace("$", "").strip())
    text = re.sub(r"[`'\"](\w[\w ]*)[`'\"]", r"\1", text)
    if not text.strip(" ,"):
        return ()
    for separator in (",", ";", "|"):
        parts = split_top(text, separator)
        if len(parts) > 1:
            if not parts[-1].strip():
                parts.pop()
            if separator == "," and len(parts) > 1:
                parts = [piece for part in parts for piece in _split_dots(part)]
            return tuple(_parse_one(part) for part in parts)
    parts = split_crosses(text)
    if len(parts) > 1:
        return tuple(_parse_one(part) for part in parts)
    spaced = _parse_spaced(text)
    return spaced if spaced else tuple(_parse_one(part) for part in _split_dots(text))


def split_top(text: str, separator: str) -> list[str]:
    """Splits at a separator that is inside no bracket."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def split_crosses(text: str) -> list[str]:
    """Splits `b x s x (n*d)`, `B × T × C` or `b by s` at the crosses that are inside no bracket."""
    parts, depth, start = [], 0, 0
    for match in re.finditer(r"[(\[{]|[)\]}]|(?<=[\s)\d])(?:[xX]|by)(?=[\s(])|×", text):
        c = match.group()
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif depth == 0:
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]


def _split_dots(part: str) -> list[str]:
    """`... m` and `...m` are an ellipsis and a dimension."""
    match = re.match(r"\s*(\.\.\.|…)\s*(\w.*)$", part)
    return [match[1], match[2]] if match else [part]


def _parse_spaced(text: str) -> tuple[Expr, ...] | None:
    """`b s (n d)`: names, numbers and groups with nothing but spaces between, as einops writes."""
    if not SPACED.fullmatch(text):
        return None
    parts = re.findall(r"\([^)]*\)|[^\s()]+", text)
    if len(parts) < 2 or "_".join(parts).lower() in WORDS:
        return None
    if not any("(" in p or len(p) <= 3 for p in parts) and len(parts) == 2:
        return None
    return tuple(_parse_one(part) for part in parts)


def _parse_one(text: str) -> Expr:
    text = text.strip()
    if text in ("...", "…", ".."):
        return ("...",)
    if text in ("*", "_", "?", "-1", ":", "-"):
        return ("any", text)
    if re.fullmatch(r"\*[^\W\d]\w*", text):
        return ("...",)
    tokens, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match or match.end() == at:
            raise NotADim(text)
        kind = match.lastgroup
        tokens.append((kind, OPERATORS.get(match[kind], match[kind])))
        at = match.end()
    if len(tokens) > 24:
        raise NotADim(text)
    reader = _Reader(tokens)
    expr = reader.alternatives()
    if reader.at != len(tokens):
        raise NotADim(text)
    return expr


class _Reader:
    """A recursive-descent reader of the tokens of one dimension."""

    def __init__(self, tokens: list[tuple[str, str]]):
        self.tokens, self.at = tokens, 0

    def peek(self, ahead: int = 0) -> tuple[str | None, str]:
        i = self.at + ahead
        return self.tokens[i] if i < len(self.tokens) else (None, "")

    def take(self) -> tuple[str, str]:
        self.at += 1
        return self.tokens[self.at - 1]

    def alternatives(self) -> Expr:
        left = self.sum()
        while self.peek()[1] in ("=", ":"):
            self.take()
            left = ("alt", left, self.sum())
        return left

    def sum(self) -> Expr:
        left = self.product()
        while self.peek()[1] in ("+", "-"):
            left = (self.take()[1], left, self.product())
        return left

    def product(self) -> Expr:
        left = self.power()
        while True:
            kind, text = self.peek()
            cross = kind == "name" and text in ("x", "X") and self.peek(1)[0] in ("name", "num")
            if text in ("*", "/") or cross:
                self.take()
                left = ("/" if text == "/" else "*", left, self.power())
            elif left[0] == "num" and kind == "name":
                left = ("*", left, self.power())
            elif left[0] == "name" and text == "(":  # B (batch): two names of one thing
                left = ("alt", left, self.power())
            else:
                return left

    def power(self) -> Expr:
        left = self.atom()
        if self.peek()[1] in ("**", "^"):
            self.take()
            kind, text = self.peek()
            if kind != "num" or not 1 <= int(text) <= 4:
                raise NotADim("power")
            self.take()
            base = left
            for _ in range(int(text) - 1):
                left = ("*", left, base)
        return left

    def atom(self) -> Expr:
        kind, text = self.peek()
        if kind == "num":
            self.take()
            if len(text) > 9:
                raise NotADim(text)
            return ("num", int(text))
        if kind in ("name", "sized"):
            words = [self.take()[1]]
            while self.peek()[0] == "name" and not self._cross_next():
                words.append(self.take()[1])
            return self._name(words)
        if text == "?":
            self.take()
            return ("any", "?")
        if text == "(":
            self.take()
            inner = self.group()
            if self.peek()[1] != ")":
                raise NotADim("bracket")
            self.take()
            return inner
        raise NotADim(text)

    def _cross_next(self) -> bool:
        return self.peek()[1] in ("x", "X") and self.peek(1)[0] in ("name", "num")

    def _name(self, words: list[str]) -> Expr:
        if len(words) > 4:
            raise NotADim(" ".join(words))
        return ("name", "_".join(words))

    def group(self) -> Expr:
        """Inside round brackets: `(h d)` is a product, unless its words make one known name."""
        words, i = [], 0
        while self.peek(i)[0] == "name":
            words.append(self.peek(i)[1])
            i += 1
        if self.peek(i)[1] == ")" and len(words) > 1 and "_".join(words).lower() not in WORDS:
            if "x" in words:
                return self.alternatives()
            self.at += i
            expr: Expr = ("name", words[0])
            for word in words[1:]:
                expr = ("*", expr, ("name", word))
            return expr
        return self.alternatives()


def evaluate(expr: Expr, lookup: Lookup) -> Fraction | None:
    """The size, exactly; None where a name has none (or a quotient would divide by zero)."""
    kind = expr[0]
    if kind == "num":
        return Fraction(expr[1])
    if kind == "name":
        value = lookup(expr[1])
        return None if value is None else Fraction(value)
    if kind in "+-*/":
        a, b = evaluate(expr[1], lookup), evaluate(expr[2], lookup)
        if a is None or b is None or (kind == "/" and b == 0):
            return None
        return a + b if kind == "+" else a - b if kind == "-" else a * b if kind == "*" else a / b
    return None


def fits(expr: Expr, size: int, lookup: Lookup) -> bool:
    """Whether the expression says `size`."""
    kind = expr[0]
    if kind == "any":
        return True
    if kind == "alt":
        return fits(expr[1], size, lookup) or fits(expr[2], size, lookup)
    if kind == "name":  # by far the most frequent
        return lookup(expr[1]) == size
    value = evaluate(expr, lookup)
    if kind == "/" and (value is None or value.denominator != 1):
        return fits(expr[1], size, lookup) or fits(expr[2], size, lookup)  # 'S/T': S or T
    return value == size


def shape_fits(dims: tuple[Expr, ...], shape: tuple[int, ...], lookup: Lookup) -> bool:
    """Whether dimensions with at most one ellipsis describe a shape."""
    dots = [i for i, d in enumerate(dims) if is_dots(dims, i)]
    if len(dims) == 1 and len(shape) > 1 and dims[0][0] == "*":
        dims = _factors(dims[0])  # `[batch * seq * hidden]`, with stars for commas
    if not dots:
        return len(dims) == len(shape) and all(
            fits(d, s, lookup) for d, s in zip(dims, shape, strict=True)
        )
    if len(dots) > 1 or len(dims) - 1 > len(shape):
        return False
    head, tail = dims[: dots[0]], dims[dots[0] + 1 :]
    end = shape[len(shape) - len(tail) :]
    return all(fits(d, s, lookup) for d, s in zip(head, shape, strict=False)) and all(
        fits(d, s, lookup) for d, s in zip(tail, end, strict=True)
    )


def _factors(expr: Expr) -> tuple[Expr, ...]:
    """The factors of a product, in order."""
    return (*_factors(expr[1]), *_factors(expr[2])) if expr[0] == "*" else (expr,)


def is_dots(dims: tuple[Expr, ...], i: int) -> bool:
    """An ellipsis, or the only star of a shape, stands for any number of dimensions."""
    if dims[i][0] == "...":
        return True
    return dims[i] == ("any", "*") and sum(d == ("any", "*") for d in dims) == 1


def names(expr: Expr) -> set[str]:
    """Every name in an expression."""
    if expr[0] == "name":
        return {expr[1]}
    return set().union(*(names(e) for e in expr[1:] if isinstance(e, tuple)))


def shape_names(dims: tuple[Expr, ...]) -> set[str]:
    return set().union(*(names(d) for d in dims))


def only_numbers(dims: tuple[Expr, ...]) -> bool:
    """Numbers alone, and one that is not 1: `[3, 5, 9]`."""
    return bool(dims) and not shape_names(dims) and any(d[0] == "num" and d[1] != 1 for d in dims)
