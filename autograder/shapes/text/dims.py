"""Expressions for the dimensions of a tensor: read from tokens, evaluated on sizes.

An expression is a small tuple: ("num", 3), ("name", "heads"), ("*", a, b) and the like for + - /,
("any", text) for a wildcard, ("...",) for an ellipsis, ("alt", a, b) where a comment gives two
names for one dimension.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

from autograder.shapes.text import names
from autograder.shapes.text.lexer import Token

Expr = tuple
Dims = tuple[Expr, ...]
Lookup = Callable[[str], int | None]

MAX_DIMS, MAX_TOKENS, MAX_DEPTH, MAX_OPTIONS = 9, 60, 5, 16
MAX_BASE = 7  # parts of what has a power: `(2r + 1)^2`
CALLED = ("len", "max", "min", "int", "sum", "ceil", "floor", "round")
ANY = ("*", "_", "?", "-1", ":", "-", "...", "None")
_PROSE = """
    as is of to it we by an at or so if be the same and for not are was with than like then this
    that from on see also e.g i.e vs etc but
"""
PROSE = frozenset(_PROSE.split())


class NotADim(ValueError):
    """The tokens are not those of a shape."""


def read_dims(found: list[Token]) -> Dims:
    """The dimensions between a pair of brackets, or of a shape without any; raises NotADim."""
    if len(found) > MAX_TOKENS:
        raise NotADim("long")
    for separator in (",", ";", "|"):
        parts = split(found, lambda t, s=separator: t.text == s)
        if len(parts) > 1:
            if not parts[-1]:
                parts.pop()
            return _all(piece for part in parts for piece in _dots_apart(part))
    if len(parts := crosses(found)) > 1:
        return _all(parts)
    if not found:
        return ()
    return _spaced(found) or _all(_dots_apart(found))


def _all(parts) -> Dims:
    dims = tuple(_one(part) for part in parts)
    if len(dims) > MAX_DIMS:
        raise NotADim("many")
    return dims


def split(found: list[Token], at: Callable[[Token], bool]) -> list[list[Token]]:
    """Splits at tokens that are inside no bracket."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in found:
        depth += (token.kind == "open") - (token.kind == "close")
        if depth == 0 and at(token):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def crosses(found: list[Token]) -> list[list[Token]]:
    """`b x s x (n*d)`, `B × T × C`, `b by s`, `bxsxd`: split at the crosses."""
    if len(found) == 1 and found[0].kind == "name":
        pieces = found[0].text.split("x")
        short = all(0 < len(p) <= 2 or names.known(p) for p in pieces)
        if len(pieces) > 2 and short and not names.known(found[0].text):
            place = found[0]
            return [[Token("name", p, place.start, place.end)] for p in pieces]
    whole = [part for token in found for part in _glued(token)]
    return split(whole if any(t.cross for t in found) else found, lambda t: t.cross)


def _glued(token: Token) -> list[Token]:
    """`x1` as a cross and a number, as in `b x 1 x1`."""
    if token.kind != "name" or token.text[0] not in "xX" or not token.text[1:].isdecimal():
        return [token]
    cross = Token("times", token.text[0], token.start, token.start + 1)
    return [cross, Token("number", token.text[1:], token.start + 1, token.end, True)]


def _dots_apart(part: list[Token]) -> list[list[Token]]:
    """`... m` and `...m` are an ellipsis and a dimension."""
    return [part[:1], part[1:]] if len(part) > 1 and part[0].kind == "dots" else [part]


def _spaced(found: list[Token]) -> Dims:
    """`b s (n d)`: names, numbers and groups with nothing but spaces between, as einops writes."""
    parts: list[list[Token]] = []
    depth = 0
    for token in found:
        if depth == 0 and (token.kind in ("number", "dots", "open") or token.word):
            parts.append([])
        elif depth == 0:
            return ()
        parts[-1].append(token)
        depth += (token.kind == "open") - (token.kind == "close")
    words = [p[0].text for p in parts if len(p) == 1]
    if len(parts) < 2 or names.known("_".join(words)):
        return ()
    groups = len(words) < len(parts)
    if not groups and sum(not w[:1].isdecimal() for w in words) < 2:
        return ()  # `(dim 3)`
    if not (groups or any(len(w) <= 3 for w in words) or len(parts) > 2):
        return ()
    return _all(parts)


def _parts(expr: Expr) -> int:
    """How many parts an expression has, itself counted."""
    return 1 + sum(_parts(e) for e in expr[1:] if isinstance(e, tuple))


def _one(part: list[Token]) -> Expr:
    text = "".join(t.text for t in part)
    if text == "...":
        return ("...",)
    if text in ANY:
        return ("any", text)
    kinds = [t.kind for t in part]
    if "dots" in kinds[1:-1] and "plus" in kinds and kinds[0] == kinds[-1] == "name":
        return ("any", "+")  # `n1 + n2 + ... + nb`: a sum that nobody counts
    reader = _Reader(part)
    expr = reader.alternatives()
    if reader.at != len(part):
        raise NotADim(text)
    return expr


def _joined(sign: str, left: Expr, right: Expr) -> Expr:
    """An expression of two; any size where nobody checks one of them: `d * (1 + int(twice))`."""
    return ("any", sign) if "any" in (left[0], right[0]) else (sign, left, right)


class _Reader:
    """A recursive-descent reader of the tokens of one dimension."""

    def __init__(self, found: list[Token]):
        self.tokens, self.at, self.depth = found, 0, 0

    def peek(self, ahead: int = 0) -> Token:
        i = self.at + ahead
        return self.tokens[i] if i < len(self.tokens) else Token("end", "", 0, 0)

    def take(self) -> Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def alternatives(self) -> Expr:
        left = self.sum()
        while self.peek().text in ("=", ":", "==", "|"):
            sign = self.take().text
            left = ("alt", left, self.sum(), *([sign] if sign == "|" else []))
        return left

    def sum(self) -> Expr:
        left = self.product()
        while self.peek().kind in ("plus", "minus"):
            sign = "+" if self.take().kind == "plus" else "-"
            left = _joined(sign, left, self.product())
        return left

    def product(self) -> Expr:
        left = self.power()
        while True:
            token = self.peek()
            if token.kind == "over" or (token.kind == "times" and self.peek(1).kind != "end"):
                self.take()
                left = _joined("/" if token.kind == "over" else "*", left, self.counted())
            elif left[0] == "num" and token.kind == "name":
                left = ("*", left, self.power())  # `3 d`, `2h`
            elif left[0] == "name" and token.text == "(":  # `B (batch)`: two names of one thing
                left = ("alt", left, self.power())
            else:
                return left

    def counted(self) -> Expr:
        """A factor: `2h` in `b * 2h`."""
        left = self.power()
        close = self.peek().kind == "name" and self.peek().glued
        return ("*", left, self.power()) if left[0] == "num" and close else left

    def power(self) -> Expr:
        base = self.atom()
        if self.peek().kind != "power":
            return base
        if base[0] in ("any", "alt") or _parts(base) > MAX_BASE:
            raise NotADim("power")
        self.take()
        token = self.take() if self.peek().kind == "number" else self.peek()
        if token.text not in ("2", "3", "4"):
            raise NotADim("power")
        found = base
        for _ in range(int(token.text) - 1):
            found = ("*", found, base)
        return found

    def atom(self) -> Expr:
        token = self.peek()
        if token.kind == "number" and token.text.isascii() and token.text.isdecimal():
            self.take()
            if len(token.text) > 9:
                raise NotADim(token.text)
            return ("num", int(token.text))
        if token.kind == "any":
            self.take()
            return ("any", "?")
        if token.text == "(" and self.depth < MAX_DEPTH:
            self.take()
            self.depth += 1
            inner = self.group()
            self.depth -= 1
            if self.peek().text != ")":
                raise NotADim("bracket")
            self.take()
            return inner
        alone = token.text in ("x", "X") and self.peek(1).kind in ("end", "close")
        if token.word and (token.kind != "times" or alone):
            return self.name()
        raise NotADim(token.text)

    def name(self) -> Expr:
        words = [self.take()]
        while self.peek().word and self.peek().kind != "times":
            words.append(self.take())
        sized = self._of_a_tensor(words)
        if sized:
            return sized
        hyphen = self.peek().text == "-" and self.peek().glued and self.peek(1).glued
        if hyphen and self.peek(1).word:  # `seq-len` is one name, `seq-k` is none
            joined = f"{words[-1].text}_{self.peek(1).text}"
            if names.hyphenated(joined):
                self.take()
                self.take()
                return ("name", joined)
        texts = " ".join(t.text for t in words).split()
        known = names.concept("_".join(texts))  # `number of heads`
        capital = len(texts) == 1 and texts[0][0].isupper()  # `(n, To, h)`, `(B, TO, N)`
        prose = not (known or capital) and any(t.lower() in PROSE for t in texts)
        if len(texts) > 4 or prose:
            raise NotADim(" ".join(texts))
        return ("name", "_".join(texts))

    def _of_a_tensor(self, words: list[Token]) -> Expr | None:
        """`x.shape[1]`, `x.size(-1)`, `len(x)`: a size by its place, which nobody checks."""
        ends = words[-1].text.endswith((".shape", ".size")) or words[-1].text in CALLED
        if not ends or self.peek().text not in ("[", "("):
            return None
        while self.peek().kind not in ("close", "end"):
            self.take()
        if self.peek().kind == "close":
            self.take()
        return ("any", words[-1].text)

    def group(self) -> Expr:
        """Inside round brackets: `(h d)` is a product, unless its words make one known name."""
        if self.peek().text in ("=", "=="):  # `len_q(=len_k)`
            self.take()
        i = 0
        while self.peek(i).word and self.peek(i).kind != "times":
            i += 1
        found = [self.peek(n).text for n in range(i)]
        one = names.known("_".join(found)) and any(len(n) > 1 for n in found)  # `(h d)` are two
        if self.peek(i).text == ")" and len(found) > 1 and not one:
            self.at += i
            expr: Expr = ("name", found[0])
            for word in found[1:]:
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
    if kind == "*" and value is None:  # `heads * ?`
        known = [evaluate(f, lookup) for f in factors(expr) if f[0] != "any"]
        product = math.prod(n or 0 for n in known)
        return 0 < len(known) < len(factors(expr)) and product > 0 and size % product == 0
    if kind == "/" and (value is None or value.denominator != 1):
        up = expr[2][0] == "num"  # `L // 2`, as Python divides; or what a stride makes
        rounded = value is not None and size in (int(value), int(value) + up)
        return rounded or fits(expr[1], size, lookup) or fits(expr[2], size, lookup)  # 'S/T'
    return value == size


def counted(expr: Expr) -> str:
    """The name in `n + 1`, `2 * n`, `n / 4`: a number tells its size as if it stood alone."""
    signed = len(expr) == 3 and expr[0] in ("+", "-", "*", "/")
    kinds = {part[0]: part for part in expr[1:]} if signed else {}
    return kinds["name"][1] if set(kinds) == {"name", "num"} else ""


def wild(expr: Expr) -> bool:
    """Whether it may be any size, or any multiple of one: `?`, `heads * ?`."""
    return expr[0] == "any" or any(wild(e) for e in expr[1:] if isinstance(e, tuple))


def uneven(expr: Expr, lookup: Lookup) -> bool:
    """Whether a part in the expression does not come out even: `h / 2 * w / 2`."""
    value = evaluate(expr, lookup) if expr[0] == "/" and expr[2][0] == "num" else None
    if value is not None and value.denominator > 1:
        return True
    return any(uneven(e, lookup) for e in expr[1:] if isinstance(e, tuple))


def shape_fits(dims: Dims, shape: tuple[int, ...], lookup: Lookup) -> bool:
    """Whether dimensions with at most one ellipsis describe a shape."""
    if len(dims) == 1 and len(shape) > 1 and dims[0][0] == "*":
        dims = _with_stars_for_commas(dims[0], len(shape))
    pairs = aligned(dims, len(shape))
    return pairs is not None and all(fits(dims[i], shape[j], lookup) for i, j in pairs)


def aligned(dims: Dims, rank: int) -> list[tuple[int, int]] | None:
    """Which written dimension stands for which of the tensor's; None where the ranks differ."""
    dots = [i for i in range(len(dims)) if is_dots(dims, i)]
    if not dots:
        return [(i, i) for i in range(rank)] if len(dims) == rank else None
    if len(dots) > 1 or len(dims) - 1 > rank:
        return None
    head = [(i, i) for i in range(dots[0])]
    shift = rank - len(dims)
    return head + [(i, i + shift) for i in range(dots[0] + 1, len(dims))]


def _with_stars_for_commas(expr: Expr, rank: int) -> Dims:
    """`batch * seq * hidden`; of fewer dimensions the last ones, and in front of them a product, as
    in `(batch * seq) * hidden`. A 1 is a dimension: nobody multiplies by it."""
    every = factors(expr)
    if ("num", 1) in every:
        return every
    dims: Dims = ()
    while len(every) > rank > len(dims) + 1 and expr[0] == "*":
        expr, dims = expr[1], (expr[2], *dims)
    return (expr, *dims) if dims else every


def factors(expr: Expr) -> Dims:
    """The factors of a product, in order."""
    return (*factors(expr[1]), *factors(expr[2])) if expr[0] == "*" else (expr,)


def parts_of(expr: Expr, count: int) -> Dims:
    """The last factors of a product, one by one, and what is in front of them as a whole."""
    parts = [expr]
    while len(parts) < count and parts[0][0] == "*":
        parts[:1] = parts[0][1:3]
    return tuple(parts)


def crossed(expr: Expr) -> bool:
    """Whether an expression may be a shape written with crosses: `b x c x h / 4`."""
    return expr[0] == "*" or (expr[0] == "/" and crossed(expr[1]))


def is_dots(dims: Dims, i: int) -> bool:
    """An ellipsis, or the only star of a shape, stands for any number of dimensions."""
    if dims[i][0] == "...":
        return True
    return dims[i] == ("any", "*") and sum(d == ("any", "*") for d in dims) == 1


def number_apart(dim: Expr) -> list[Expr]:
    """`1 d // 2` as `1` and `d // 2`: a comma may be missing."""
    if dim[0] not in "*/+-" or dim[1][0] == "num":
        return [dim[1], dim[2]] if dim[0] == "*" else [dim]
    first = number_apart(dim[1])
    return [*first[:-1], (dim[0], first[-1], *dim[2:])]


def rounded(sizes: list[Fraction | None], shape: tuple[int, ...]) -> bool:
    """Whether a shape has these sizes, or one less where a size is odd."""
    return len(sizes) == len(shape) and all(
        size is not None and (size == n or (size % 2 == 1 and n == size - 1))
        for size, n in zip(sizes, shape, strict=True)
    )


def names_of(expr: Expr) -> set[str]:
    """Every name in an expression."""
    if expr[0] == "name":
        return {expr[1]}
    return set().union(*(names_of(e) for e in expr[1:] if isinstance(e, tuple)))


def without(dims: Dims, unknown: set[str]) -> Dims:
    """The dimensions with any size where one of these names stands."""
    return tuple(("any", "?") if names_of(d) & unknown else d for d in dims)


def shape_names(dims: Dims) -> set[str]:
    return set().union(*(names_of(d) for d in dims))


def alone(dim: Expr) -> list[str]:
    """The names that stand for a whole dimension."""
    if dim[0] == "name":
        return [dim[1]]
    return [n for part in dim[1:] for n in alone(part)] if dim[0] == "alt" else []


def options(dims: Dims) -> Iterator[Dims]:
    """Each way to read dimensions of which some have two names: `[b, d = width]`."""
    ways = [_names_for(d) for d in dims]
    return itertools.islice(itertools.product(*ways), MAX_OPTIONS)


def _names_for(dim: Expr) -> list[Expr]:
    if dim[0] != "alt" or dim[3:]:  # `[b, d|d]`: two things side by side, and no two names
        return [dim]
    return [*_names_for(dim[1]), *_names_for(dim[2])]


def only_numbers(dims: Dims) -> bool:
    """Numbers alone, and one that is not 1: `[3, 5, 9]`."""
    return bool(dims) and not shape_names(dims) and any(d[0] == "num" and d[1] != 1 for d in dims)
