"""Cuts the text of a comment into tokens, and holds the one table of what people write there.

To add a spelling, add it to its row of `TABLE`: the lexer, the reader and the page in the docs take
it from there. Each character is looked at once; a text of more than `MAX_TEXT` is not read.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

MAX_TEXT = 600  # characters of a comment, its lines together
KEPT = 1_024  # texts whose tokens are kept


@dataclass(frozen=True)
class Row:
    """One kind of token: signs, words and phrases that are all the same to the reader."""

    kind: str
    means: str
    example: str
    signs: tuple[str, ...]
    words: tuple[str, ...]


def _row(kind: str, means: str, example: str, signs: str, words: str = "") -> Row:
    """A row; spaces stand between the signs, commas between the words."""
    told = tuple(words.split(", ")) if words else ()
    return Row(kind, means, example, tuple(signs.split()), told)


TABLE = (
    _row(
        "arrow",
        "from one shape to the next",
        "[b, t, c] -> [b, c, t]",
        "-> => ~> → ⟶ ⇒ ⟹ ➔ ➜ ➡ ↦ ⇨ ▶ |> > <->",
        "becomes, become, becoming, to, into, gives, give, giving, yields, results in, "
        "resulting in, turns into, turned into, goes to, transposed to, reshaped to, reshape to, "
        "reshaped into, viewed as, permuted to, projected to, mapped to, expanded to, "
        "flattened to, squeezed to, unsqueezed to, converted to, split into, devient, wird zu, "
        "变为, 变成",
    ),
    _row("back", "from a shape to what it was before", "[b, c, t] <- [b, t, c]", "<- ← ⟵ ⇐ ⟸"),
    _row(
        "spread",
        "an arrow to the shape that a later line makes of it",
        "[1, t, t] broadcast to [b, t, t]",
        "",
        "broadcast to, broadcasted to, broadcasts to, broadcastable to, broadcast over",
    ),
    _row(
        "times",
        "the operands of one operation",
        "[b, t, d] @ [b, d, t]",
        "@ × · ⋅ ∗ ⊗ ⊙ *",
        "x, X, dot, matmul, mm, bmm, times, by, multiplied by, mat mul",
    ),
    _row("plus", "a sum, of shapes or sizes", "[b, t, t] + [t, t]", "+"),
    _row("minus", "a difference of sizes, or a dash", "[b, t - 1]", "- − – — ─ ~"),
    _row("over", "a quotient of sizes, or `or` between shapes", "[b, t, d / n]", "/ // ÷"),
    _row("power", "a power of a size", "[b, w^2]", "^ **"),
    _row("comma", "between dimensions", "[b, t, c]", ", ; | 、"),
    _row(
        "is",
        "between a label and its shape",
        "q: [b, t, d]",
        ": = == := ∈ ≡",
        "is, are, has, have, being, will be, to be, equals, equal to",
    ),
    _row(
        "shape",
        "a word for a shape: what follows is meant as one",
        "shape (b, t, c)",
        "",
        "shape, shapes, size, sizes, dim, dims, dimension, dimensions, torch.size, torch.shape, "
        "tensor, tensors, array, float32, float16, int64, floattensor, longtensor, torch.tensor, "
        "torch.floattensor, torch.longtensor, tensortype, of shape, of size, in shape, in size, "
        "forme, vorm, form, taille, forma, tamaño, размер, форма, 形状, 形状为, 形状是, 的形状, "
        "维度, 维度为, 维度是, 大小为, 形狀",
    ),
    _row("or", "one of two", "[b, t] or [b, 1]", "", "or, otherwise, else, if, when, oder, ou"),
    _row(
        "case",
        "a circumstance, or what is done to it yet",
        "[b, t, c] transposed",
        "",
        "for, while, during, transposed, permuted",
    ),
    _row("and", "two shapes, or the last comma of a list", "b, t and c", "&", "and, und"),
    _row(
        "each", "one of several tensors", "[b, t, d] each", "", "each, every, per, all, one, single"
    ),
    _row(
        "aside",
        "what follows is not of this line",
        "[b, t] (not [t, b])",
        "!= ≠",
        "not, no longer, instead of, rather than, unlike, broadcast, broadcasts, broadcastable, "
        "broadcasted, needs, need, expects, expect, requires, since, because, would, were, "
        "until, assumes, must, should, vs, was, next, later, earlier, previous, previously, undo, "
        "undoes, will, todo, fixme, hack, xxx, could, maybe, perhaps, might, "
        "wants, default, defaults, without, unless, old, prev, afterwards, which, whose",
    ),
    _row(
        "input",
        "what comes in",
        "in: [b, t]",
        "",
        "in, input, inputs, from, before, given, takes, original, originally",
    ),
    _row(
        "along",
        "what an operation goes over",
        "sum over [t]",
        "",
        "over, along, across, contract, contracts, contracting, reduce, reduces, reducing",
    ),
    _row(
        "output",
        "what comes out",
        "out: [b, t]",
        "",
        "out, output, outputs, result, returns, return, after, now, final",
    ),
    _row(
        "same",
        "a shape that was told before",
        "same shape as q",
        "",
        "ditto, idem, unchanged, same, same shape, same size, same as, likewise, no change, "
        "keeps shape, keeps the shape, preserves shape, preserves the shape, as above, as before, "
        "形状不变, 形状保持不变, 维度不变, 维度保持不变, 形状相同, 形状同上, 同上",
    ),
    _row("scalar", "a tensor without dimensions", "scalar", "", "scalar, 0-d, 0d, 0-dim"),
    _row("none", "capitals that are no dimension", "MLP", "", "MLP, FFN, OK, NOTE"),
    _row("dots", "any number of dimensions", "[..., c]", "... .. …"),
    _row("any", "any size", "[b, ?]", "?"),
    _row("open", "the begin of a shape", "[b, t]", "[ ( { <"),
    _row("close", "the end of a shape", "(b, t)", "] ) }"),
)
LATEX = {
    "\\times": "×",
    "\\rightarrow": "→",
    "\\to": "→",
    "\\Rightarrow": "⇒",
    "\\cdot": "·",
    "\\in": "∈",
    "\\dots": "...",
    "\\ldots": "...",
}
SIGNS = {sign: row.kind for row in TABLE for sign in row.signs}
WORDS = {word: row.kind for row in TABLE for word in row.words}
TYPED = str.maketrans({"²": "^2", "³": "^3", "。": ". ", "′": "'", "″": "''"})
EASTERN = "\u3000"  # scripts from here on have no capitals, and words often no spaces between
LONGEST = max(len(w.split()) for w in WORDS)
# No alternative can begin where another one goes on, and what is taken is never given back (`++`).
TOKEN = re.compile(
    r"""(?P<space>\s++)
    | (?P<eastern>[^\W\d\x00-\u2fff]++)
    | (?P<name>[^\W\d][^\W\u3000-\U0010ffff]*+
        (?:\.[^\W\d\u3000-\U0010ffff][^\W\u3000-\U0010ffff]*+)*'*+)
    | (?P<pixels>\d++x\d++)
    | (?P<number>\d++(?:\.\d++)?)
    | (?P<latex>\\[A-Za-z]++)
    | (?P<dots>\.\.++|…)
    | (?P<dash>[-=~─—–−<|]*+>++|<[-─—–−]++|[-─—–−~]++|=++)
    | (?P<quote>['"`$]++)
    | (?P<other>\*\*|//|:=|!=|.)""",
    re.X | re.S,
)
CLOSES = {"[": "]", "(": ")", "{": "}", "<": ">"}


@dataclass(frozen=True)
class Token:
    """A piece of a comment. glued: no space stands before it."""

    kind: str
    text: str
    start: int
    end: int
    glued: bool = False

    @property
    def word(self) -> bool:
        """Whether it is written in letters."""
        return self.text[:1].isalpha() or self.text[:1] == "_"

    @property
    def cross(self) -> bool:
        """Whether it may stand between dimensions: `b x t`, `b by t`."""
        return self.kind == "times" and self.text in ("x", "X", "×", "by")


def tokens(text: str) -> list[Token]:
    """The tokens of a text, spaces and quotes left out. Words of the table have their kind."""
    return list(_cut(text[:MAX_TEXT]))


@lru_cache(KEPT)
def _cut(text: str) -> tuple[Token, ...]:
    """The same; each comment is asked for several times while it is judged."""
    found: list[Token] = []
    glued = quoted = False
    for match in TOKEN.finditer(text):
        kind, piece = match.lastgroup or "other", match.group()
        if kind == "space":
            glued = False
            continue
        kind = "name" if kind == "eastern" else kind
        if kind == "latex":
            piece = LATEX.get(piece, piece)
            kind = "sign"
        if kind == "quote":
            quoted = True
            continue
        if kind == "name" and quoted:
            piece = piece.rstrip("'")  # 'k' is no k prime
        quoted = False
        if kind in ("dash", "dots", "other", "sign"):
            piece, kind = _sign(piece)
        found.append(Token(kind, piece, match.start(), match.end(), glued))
        glued = True
    return tuple(_phrases(_crossed(_without_signs(found))))


def _without_signs(found: list[Token]) -> list[Token]:
    """`|q| : [b, t]` is `q : [b, t]`, and `(#words, dim)` is `(words, dim)`."""
    kept = list(found)
    for i in range(len(found) - 2, 0, -1):
        before, sign, name = found[i - 1 : i + 2]
        counts = before.kind in ("open", "comma", "times") and name.kind == "name" and name.glued
        if sign.text == "#" and counts:
            del kept[i]
    found = list(kept)
    for i in range(len(found) - 3, 0, -1):
        one, name, other, sign = found[i - 1 : i + 3]
        if one.text == other.text == "|" and name.kind == "name" and sign.kind == "is":
            del kept[i + 1], kept[i - 1]
    return kept


def _crossed(found: list[Token]) -> list[Token]:
    """`BX (N) X (N)` is `B X (N) X (N)`: where one cross stands alone, one may be written close."""
    if all(t.text != "X" for t in found):
        return found
    kept: list[Token] = []
    for one, after in zip(found, [*found[1:], None], strict=True):
        close = one.kind == "name" and len(one.text) == 2 and one.text.isupper()
        if close and one.text.endswith("X") and after is not None and after.text == "(":
            middle = one.start + 1
            kept.append(Token("name", one.text[0], one.start, middle, one.glued))
            kept.append(Token("name", "X", middle, one.end, True))
        else:
            kept.append(one)
    return kept


def table() -> str:
    """The table of spellings in Markdown, as the docs print it."""
    rows = ["| kind | means | example | signs | words |", "|---|---|---|---|---|"]
    for row in TABLE:
        cells = [", ".join(f"`{s}`" for s in part) for part in (row.signs, row.words)]
        example = f"`# {row.example}`"
        line = " | ".join(c.replace("|", "\\|") for c in (row.kind, row.means, example, *cells))
        rows.append(f"| {line} |")
    return "\n".join(rows)


def plain(text: str) -> str:
    """Wide brackets and the like as on an English keyboard."""
    return unicodedata.normalize("NFKC", text.translate(TYPED))[:MAX_TEXT]


def _sign(piece: str) -> tuple[str, str]:
    """A sign and its kind; `-->` is `->`, `....` is `...`."""
    short = "..." if piece[:2] == ".." else re.sub(r"([-=~─—–−<|>])\1++", r"\1", piece)
    if piece == "==" or piece == "//":
        short = piece
    if short.endswith(">") and len(short) > 1 and short not in SIGNS:
        short = "->"  # an arrow of mixed dashes
    return short, SIGNS.get(short, "other")


def _is_listed(found: list[Token], i: int) -> bool:
    """Whether a word stands alone between commas, crosses or brackets, as a size does."""
    sides = [t.text for t in (*found[max(0, i - 1) : i], *found[i + 1 : i + 2])]
    left, right = (",", "x", "×", "(", "["), (",", "x", "×", ")", "]")
    return len(sides) == 2 and sides[0] in left and sides[1] in right


def _phrases(found: list[Token]) -> list[Token]:
    """Words of the table, of one word or of several, as tokens of their kind."""
    merged: list[Token] = []
    i = 0
    while i < len(found):
        if found[i].kind != "name":
            merged.append(found[i])
            i += 1
            continue
        for size in range(min(LONGEST, len(found) - i), 0, -1):
            part = found[i : i + size]
            text = " ".join(t.text for t in part)
            kind = WORDS.get(text) or WORDS.get(text.lower()) if text != "X" else "times"
            if kind == "arrow" and size == 1 and _is_listed(found, i):  # `(n, To, h)`
                continue
            if kind and all(t.kind == "name" for t in part):
                merged.append(Token(kind, text, part[0].start, part[-1].end, part[0].glued))
                i += size
                break
        else:
            merged.append(found[i])
            i += 1
    return merged
