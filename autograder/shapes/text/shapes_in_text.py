"""Shapes among the tokens of a comment: which brackets and lists are meant as one, which are not.

A pair of brackets is a shape when what is inside can be read as sizes, and what it looks like and
what stands before it say so. A list of values, a call, a range, a formula and a remark are none.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from autograder.shapes.text import names
from autograder.shapes.text.dims import (
    PROSE,
    Dims,
    NotADim,
    crosses,
    factors,
    read_dims,
    shape_names,
    split,
)
from autograder.shapes.text.lexer import CLOSES, EASTERN, Token

LARGEST = 120  # tokens between two brackets
VIEWS = ("view", "reshape")
INDICES = ("i", "j", "I", "J")
LEADS = ("shape", "output", "is")
RANGES = ("range", "interval")
ARTICLES = ("the", "of", "new", "resulting", "a", "an")


@dataclass(frozen=True)
class Term:
    """One shape, and what it is said to be of.

    sure: a label, an arrow or a word says that it is meant as a shape. style: the bracket, or the
    sign between the dimensions where there is none. count: `num_heads x [b, s, d]`.
    """

    dims: Dims
    text: str
    label: str = ""
    sure: bool = False
    count: str = ""
    style: str = ""


@dataclass(frozen=True)
class Span:
    """A shape and the tokens that it takes."""

    start: int
    end: int
    term: Term
    op: str = ""


@dataclass(frozen=True)
class Vocabulary:
    """Names of the function a comment stands in: its tensors, and its sizes."""

    tensors: Collection[str] = ()
    sizes: Collection[str] = ()

    def known(self, name: str) -> bool:
        plain = names.normal(name)
        return (
            (len(plain) <= 2 and all(c.isascii() or "α" <= c.lower() <= "ω" for c in plain))
            or (name[1:2] == "_" and len(name) > 2)  # N_src, T_in
            or names.known(name)
            or plain in self.sizes
            or name in self.sizes
            or names.stem(plain) in map(names.stem, self.sizes)
            or bool(names.alike(plain, names.WORDS) or names.alike(plain, self.sizes))
        )

    def is_size(self, name: str) -> bool:
        """Whether the name is surely one of a size."""
        plain = names.normal(name)
        counts = plain.startswith(("n_", "num_")) or plain.endswith(("_len", "_size", "_dim"))
        return name in self.sizes or plain in self.sizes or names.known(name) or counts


# --- in brackets ----------------------------------------------------------------------------------
def spans(found: list[Token], text: str, vocabulary: Vocabulary) -> list[Span]:
    """The shapes in brackets, the outermost that can be read."""
    pairs = pairs_of(found)
    shapes: list[Span] = []
    i = 0
    while i < len(found):
        end = pairs.get(i)
        if end is not None and end - i <= LARGEST:
            span = _admit(found, i, end, text, vocabulary)
            if span:
                shapes.append(span)
            if span or _has_parts(found[i + 1 : end]):
                i = end + 1
                continue
        i += 1
    return _without_indexing(shapes)


def _has_parts(inner: list[Token]) -> bool:
    """`(b, t, (h, d))`: whether sizes come before a bracket in which a comma parts one of them."""
    parts = split(inner, lambda t: t.text == ",")
    plain = [p for p in parts if all(t.kind != "open" for t in p)]
    apart = [p for p in parts if p and p[0].text == "(" and any(t.text == "," for t in p)]
    return bool(apart) and len(plain) > 1 and len(plain) + len(apart) == len(parts)


def pairs_of(found: list[Token]) -> dict[int, int]:
    """Opening brackets and what closes them."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    for i, token in enumerate(found):
        if token.kind == "open":
            stack.append(i)
        elif token.text in CLOSES.values():
            while stack and found[stack[-1]].text == "<" != token.text and token.text != ">":
                stack.pop()
            if stack and CLOSES[found[stack[-1]].text] == token.text:
                pairs[stack.pop()] = i
    return pairs


def _without_indexing(shapes: list[Span]) -> list[Span]:
    """Without the `p[b, i]` of a formula, where a shape stands for itself in the same comment."""
    formula = [
        s
        for s in shapes
        if s.term.label
        and s.op == "glued"
        and s.term.style == "["
        and all(len(n) == 1 for n in shape_names(s.term.dims))
    ]
    kept = [s for s in shapes if s not in formula] or shapes
    return [replace(s, op="") if s.op == "glued" else s for s in kept]


def _admit(found: list[Token], i: int, j: int, text: str, vocabulary: Vocabulary) -> Span | None:
    inner = found[i + 1 : j]
    before = found[i - 1] if i else None
    after = found[j + 1] if j + 1 < len(found) else None
    annotated = _annotation(inner) if before and before.word and found[i].glued else None
    try:
        dims = read_dims(annotated or inner)
    except NotADim:
        return None
    if _values(dims, inner) or (after and after.glued and (latin(after) or after.kind == "number")):
        return None  # `[0, 1, ..., n]`, `(HW)NC`
    if after and after.glued and after.text == "[" and _index(found[j + 2 : j + 12]):
        return None  # `(b, t, d)[:, -1]`
    bracket, begin, label, op = found[i].text, i, "", ""
    counted = bracket == "(" and [d[0] for d in dims] == ["num"] and not found[i].glued
    if counted and before and before.kind == "name" and before.text not in vocabulary.tensors:
        return None  # `equation (26) -> [b, d]`
    if bracket == "[" and found[i].glued and _is_slice(inner):
        return None  # `table[start : start + length]`
    used = shape_names(dims)
    sure = _told(found, i)
    if before and found[i].glued and (latin(before) or before.kind == "other"):
        word = before.text
        if before.kind == "other":
            if word in (".", "#", "_", "&", "%"):
                return None  # `self.(q, k, v)`
        elif before.kind == "shape" or annotated or word.endswith((".shape", ".size", "Tensor")):
            if not dims and "." in word:  # `q.size() -> [..]`
                return None
            sure, of = True, word.removesuffix(".shape").removesuffix(".size")
            label = of if of in vocabulary.tensors else ""
        elif word.rsplit(".", 1)[-1] in VIEWS:
            if not used or not all(map(vocabulary.known, used)):
                return None
            op, sure = word.rsplit(".", 1)[-1], True
        elif word in vocabulary.tensors:
            if not used or used <= set(vocabulary.tensors) or not all(map(vocabulary.known, used)):
                return None
            label, sure, op = word, True, "glued"
        elif before.kind not in ("times", "and", "or", "arrow", "plus") and word not in ("R", "ℝ"):
            return None
        begin = i - 1
    if bracket == "(" and len(inner) > 1 and inner[-1].text == ",":
        sure = True  # `(hidden,)` is a tuple, and no remark
    elif bracket == "(" and len(dims) == 1 and before and before.text in ("dim", "axis"):
        return None
    arrow = any(t and t.kind == "arrow" and not t.word for t in (before, after))
    if not _meant(dims, used, bracket, sure or arrow, found, i, j, vocabulary):
        return None
    shown = text[found[i].start : found[j].end]
    return Span(begin, j + 1, Term(dims, shown, label, sure or arrow, "", bracket), op)


def _annotation(inner: list[Token]) -> list[Token] | None:
    """The dimensions of `Float[Tensor, "b s d"]`."""
    if len(inner) > 2 and inner[0].kind == "shape" and inner[1].text == ",":
        return inner[2:]
    return None


def latin(token: Token) -> bool:
    """Whether it is a word that stands apart from others: Chinese is written without spaces."""
    return token.word and token.text[-1] < EASTERN


def _index(found: list[Token]) -> bool:
    """Whether what follows an open bracket are positions, and no sizes."""
    end = next((i for i, t in enumerate(found) if t.text == "]"), len(found))
    return any(t.text in (":", "::", "None", "-") for t in found[:end])


def _is_slice(inner: list[Token]) -> bool:
    """Whether a bracket holds two names and a colon between them, and no comma."""
    signs = [t.text for t in inner]
    return ":" in signs[1:-1] and "," not in signs


def _values(dims: Dims, inner: list[Token]) -> bool:
    """Whether the items are values, or positions, and no sizes: nothing has the size 0."""
    if dims and all(d[0] == "any" for d in dims) and ("any", ":") in dims:
        return True  # `[:, -1, :]`
    if ("num", 0) in dims or any(t.kind == "number" and "." in t.text for t in inner):
        return True
    if dims and all(d[0] == "*" and d[1][0] == d[2][0] == "num" for d in dims):
        return True  # `(1 x 1, 3 x 3)`
    numbers = sum(d[0] == "num" for d in dims)
    at = dims.index(("...",)) if ("...",) in dims else 0
    if 0 < at < len(dims) - 1 and numbers and dims[at - 1][0] != "name":
        return True  # `[1, 2, ..., n]`
    size = bool(dims) and dims[0][0] == "name" and names.known(dims[0][1])
    length = size and names.may_be_length(dims[0][1])
    if len(dims) == 2 and dims[1][0] in "+-" and dims[1][1] == dims[0] and (length or not size):
        return True  # `[start, start + length]`
    signed = any(
        t.text == "-" and n.kind == "number" and (k == 0 or inner[k - 1].text in (",", "["))
        for k, (t, n) in enumerate(zip(inner, inner[1:], strict=False))
    )
    return signed and ("any", "-1") not in dims  # `[-100, 0]`


def _told(found: list[Token], i: int) -> bool:
    """Whether a word or a sign before a bracket says that a shape comes."""
    back = found[max(0, i - 3) : i]
    if not back:
        return False
    if len(back) > 1 and back[-1].text == "(":  # `torch.Size([2, 5])`
        back.pop()
    if back[-1].kind == "shape" or back[-1].text in (":", "=", "=="):
        return True
    if back[-1].text == "of" and len(back) > 1:
        return back[-2].text.lower() not in RANGES  # `to a range of [-1, 1]`
    return back[-1].kind == "is"


def _meant(dims, used, bracket, sure, found, i, j, vocabulary: Vocabulary) -> bool:
    """Whether sizes in brackets are meant as a shape."""
    if not dims:
        return sure or len(found) <= 4 or bracket == "["
    tensors = set(vocabulary.tensors)
    if used and used <= tensors and not any(n in vocabulary.sizes for n in used):
        return False
    if used and used <= set(INDICES) - set(vocabulary.sizes):
        return False
    known = {n for n in used if vocabulary.known(n)}
    if bracket == "[" and dims[0] == ("...",) and i == 0 and j == len(found) - 1:
        return True
    if not used:
        whole = i == 0 and j == len(found) - 1
        if any(d[0] in ("...", "any") for d in dims) and ("any", "-1") not in dims:
            begins = whole and dims[0] in (("...",), ("any", "*")) and len(dims) > 1
            return sure or bracket == "[" or begins  # `(..., 24, 6)`, `(*, 3)`
        behind = bracket == "(" and j == len(found) - 1 and len(dims) > 2  # `maps (1, 8, 65, 65)`
        return sure or behind or (whole and (bracket == "[" or len(dims) > 1))
    if len(dims) == 1:
        whole = i == 0 and j == len(found) - 1
        if dims[0][0] != "name" and bracket == "(":  # `(x * w)` is none, `(d_model / 2)` is one
            return (sure and known == used) or (whole and all(map(vocabulary.is_size, used)))
        if bracket == "[":
            return sure or bool(known)
        sized = any(map(vocabulary.is_size, used))
        return (sure and known == used and sized) or (sized and len(found) <= 4)
    if known == used:
        return True
    if not known and not sure:
        return False
    if i == 0 and j == len(found) - 1 and len(dims) > 1:
        return True
    return sure or bracket == "[" or (len(known) >= 2 and len(used - known) < len(dims))


# --- without brackets -----------------------------------------------------------------------------
def strip_lead(found: list[Token], vocabulary: Vocabulary) -> tuple[str, list[Token]]:
    """The label and the rest of `shape of q: b, s, d`, `q - b x t x d`, `q: b s d`."""
    label, rest = "", list(found)
    for _ in range(4):
        row = len(rest) > 1 and rest[1].kind in ("times", "comma")  # `dim x batch`
        if rest and not row and (rest[0].kind in LEADS or rest[0].text.lower() in ARTICLES):
            rest = rest[1:]
        elif len(rest) > 2 and _names(rest[0]) and _says(rest[1], rest[2]):
            label, rest = rest[0].text, rest[1:]
        elif len(rest) > 2 and _names(rest[0]) and rest[1].kind == "minus":
            dashed = not rest[1].glued and not rest[2].glued
            meant = rest[0].text in vocabulary.tensors or not vocabulary.known(rest[0].text)
            if not (dashed and meant):
                break
            label, rest = rest[0].text, rest[2:]
        else:
            break
    for end in (".shape", ".size"):
        label = label.removesuffix(end)
    return label, rest or list(found)


def _says(sign: Token, after: Token) -> bool:
    """Whether a label ends here; in `batch size * steps` it does not."""
    return sign.kind == "is" or (sign.kind == "shape" and after.kind not in ("times", "comma"))


def _names(token: Token) -> bool:
    return token.kind == "name" or token.text == "x"


def bare_terms(
    found: list[Token],
    text: str,
    label: str,
    vocabulary: Vocabulary,
    times: str = "@",
    chain: bool = False,
) -> tuple[Term, ...]:
    """One shape, or several: `b h s d, b h d s`, `b,s,h @ b,h,s`; a star stands apart then.

    chain: whether an arrow says that shapes are meant: `b * t -> b * t * 512`.
    """
    inside = spans(found, text, vocabulary)
    if len(inside) == 1 and all(
        t.kind in LEADS or t.text in ("[", "(", "]", ")")
        for t in found[: inside[0].start] + found[inside[0].end :]
    ):
        return (replace(inside[0].term, label=label, sure=True),)
    sides = split(found, lambda t: t.cross) if chain else []  # `n, 1, l x n, l, h -> n, 1, h`
    if len(sides) == 2 and all(len(split(s, lambda t: t.text == ",")) > 1 for s in sides):
        both = [_bare_dims(side, vocabulary) for side in sides]
        if all(both):
            return tuple(_bare_term(d, s, text, label) for d, s in zip(both, sides, strict=True))
    several = split(found, lambda t: t.text == ",")
    listed = len(several) > 1 and all(len(crosses(p)) > 1 for p in several)  # `b x t, b x d`
    starred = times == "*" and any(t.text == times and not t.glued for t in found)
    read = None if listed or starred else _bare_dims(found, vocabulary, chain)
    size = bool(read) and read[1] == "*" and label and label not in vocabulary.tensors
    if read and not (size and (not chain or vocabulary.known(label))):  # `N = b * t` is a size
        return (_bare_term(read, found, text, label),)
    for sign in (times, ","):
        parts = split(found, lambda t, s=sign: t.text == s and not (t.glued and s == "*"))
        several = [_bare_dims(part, vocabulary) for part in parts]
        if 1 < len(parts) <= 4 and all(several):
            return tuple(
                _bare_term(d, p, text, label) for d, p in zip(several, parts, strict=True) if d
            )
    return ()


def _bare_term(read: tuple[Dims, str], found: list[Token], text: str, label: str) -> Term:
    shown = text[found[0].start : found[-1].end]
    return Term(read[0], shown, label, bool(label), "", read[1])


def _bare_dims(
    found: list[Token], vocabulary: Vocabulary, chain: bool = False
) -> tuple[Dims, str] | None:
    """Dimensions, and the sign that stands between them."""
    if not found or len(found) > 40 or any(t.text in ("[", "]", "{", "}", "@") for t in found):
        return None
    if found[-1].kind == "shape" and found[-1].text.lower().startswith("shape"):
        return None  # `q, k, v shape: (b, t, d)` tells whose shape it is
    commas = len(split(found, lambda t: t.text == ",")) > 1
    if commas:  # `b, s, n and d`
        found = [replace(t, kind="comma", text=",") if t.text == "and" else t for t in found]
        kept = zip(found, [*found[1:], found[-1]], strict=True)
        found = [t for t, after in kept if not (t.text == after.text == "," and t is not after)]
    style = "," if commas else "x" if len(crosses(found)) > 1 else " "
    words = [t.text for t in found if t.word and t.kind != "times"]
    if any(w.lower() in PROSE and not (style == "x" and w.istitle()) for w in words):
        return None  # `n x To x h` has a length
    if style == " " and not _spaced_names(found, words, vocabulary):
        return None
    if commas and found[0].text == "(" and found[-1].text == ")":
        return None
    try:
        dims = read_dims(found)
    except NotADim:
        return None
    used = shape_names(dims)
    apart = factors(dims[0]) if len(dims) == 1 else ()
    begun = bool(apart) and apart[0][0] == "name"  # `n * 196 * 512`
    if (
        len(apart) > (1 if chain else 2)
        and begun
        or (
            len(used) > 1
            and (len(apart) > 2 or (len(apart) == 2 and used <= set(vocabulary.sizes)))
        )
    ):
        style = "*"  # `bs * n * sl`
    elif len(dims) < 2:
        return None
    known = sum(vocabulary.known(n) or vocabulary.is_size(n) for n in used)
    row = style == "x" and len(dims) > 2  # nobody multiplies three things in prose
    if not known or known < len(used) / (1 + row):
        return None
    if used <= set(vocabulary.tensors) and not any(n in vocabulary.sizes for n in used):
        return None
    if style == "," and not any(vocabulary.is_size(n) for n in used) and len(dims) < 3:
        return None
    return (dims, style) if not _values(dims, found) else None


def _spaced_names(found: list[Token], words: list[str], vocabulary: Vocabulary) -> bool:
    stars = any(t.text == "*" for t in found)
    if len(words) < (1 if stars else 2) or not all(map(vocabulary.known, words)):
        return False
    short = sum(len(w) <= 2 for w in words)
    grouped = any(t.text == "(" for t in found) or any("_" in w for w in words)
    return short >= max(2, len(words) - 1) or grouped or stars
