"""Whether a comment in which no shape can be read may tell one all the same, in its own notation.

Prose is words with spaces between them. A notation is a row: short pieces with one sign between,
each of which may be a size. It is looked for in the whole comment, in its sentences and in its
brackets. Where one may be meant, nobody can say that the shape is missing, and nothing is asked.
"""

from __future__ import annotations

import itertools

from autograder.shapes.text import names
from autograder.shapes.text.dims import PROSE, split
from autograder.shapes.text.lexer import Token
from autograder.shapes.text.shapes_in_text import INDICES, LARGEST, Vocabulary, latin, pairs_of

OBJECTS = ("vector", "vectors", "matrix", "matrices", "array")  # what has a shape, like a tensor
LIKE = ("like", "as")
LONG = 3  # words of one size, at most: `number of heads`
PLAIN = ("over", "number", "open", "close")
SIGNS = ("times", "plus", "minus", "power", "is", "name", "any", "shape", "scalar", "#", ".")
SURE, MAYBE, NONE = 2, 1, 0  # that a piece is a size


def sized(token: Token, vocabulary: Vocabulary) -> bool:
    """Whether a word is a letter, capitals like `NCHW`, or a name that is surely one of a size."""
    if token.text in vocabulary.tensors or not token.word:
        return False
    letter = len(token.text) == 1 and token.text not in INDICES
    letter = letter or (token.text.isupper() and len(token.text) <= 5)
    return letter or (vocabulary.is_size(token.text) and token.text.lower() not in PROSE)


def perhaps_one(found: list[Token], vocabulary: Vocabulary) -> bool:
    """Whether some place in the comment may be a shape in a notation that is not read."""
    return (
        any(_place(p, len(p) == len(found), vocabulary) for p in _sentences(found))
        or any(_in_brackets(found, i, j, vocabulary) for i, j in pairs_of(found).items())
        or _told_in_words(found, vocabulary)
        or _of_initials(found, vocabulary)
        or _multiplied(found)
    )


def _multiplied(found: list[Token]) -> bool:
    """`each are 30 x 8 x 200`: three numbers or more with crosses between, within other words."""
    kinds = [t.kind for t in found]
    row = ["number", "times"] * 2 + ["number"]
    return any(kinds[i : i + len(row)] == row for i in range(len(kinds)))


def _sentences(found: list[Token]) -> list[list[Token]]:
    """The whole comment, and what stands between full stops, colons and equals signs; without its
    brackets."""
    while found and found[-1].text in (".", "!", ";", ","):
        found = found[:-1]
    parts = split(found, lambda t: t.text in (".", ":", "=") or (t.kind == "minus" and not t.glued))
    inner = [p[1:-1] for p in parts if len(p) > 4 and pairs_of(p).get(0) == len(p) - 1]
    names_one = (p for p in parts[-8:] if len(p) > 1 or p == found[-1:])  # `NCHW`, and no `LSTM:`
    return [p for p in (found, *names_one, *inner[-2:]) if p]


def _place(found: list[Token], whole: bool, vocabulary: Vocabulary) -> bool:
    if _crossed(found) or len(found) == 1:
        return _crossed(found) or _one_word(found[0], whole, vocabulary)
    return (
        _rows(found, vocabulary)
        or _numbers(found)
        or _reference(found, vocabulary)
        or _einsum(found)
    )


def _of_initials(found: list[Token], vocabulary: Vocabulary) -> bool:
    """`bchw > b*h*w-d`: nothing but letters that sizes of the function begin with, and signs."""
    begin = {part[:1] for size in vocabulary.sizes for part in size.lower().split("_")}
    words = [t for t in found if t.word and t.kind not in ("arrow", "times")]
    rest = [t for t in found if not t.word and t.kind not in ("arrow", "times", "minus", "comma")]
    texts = [t.text.lower() for t in words]
    ours = all(set(text) <= begin | set("bnc") and text not in PROSE for text in texts)
    return not rest and ours and sum(map(len, texts)) > 2


# --- a row of sizes -------------------------------------------------------------------------------
def _rows(found: list[Token], vocabulary: Vocabulary) -> bool:
    """`utt x frame x dim -> utt x frame`: rows, with an arrow from one to the next."""
    parts = split(found, lambda t: t.kind == "arrow" and not t.word)
    one = any(p and _row(p, vocabulary) for p in parts)
    pieces = [q for p in parts[:8] for q in split(p, lambda t: t.kind == "times")]
    return one and (len(parts) == 1 or all(_piece(q, vocabulary) for q in pieces))


def _row(found: list[Token], vocabulary: Vocabulary) -> bool:
    """`2, w_q * h_q`, `батч x длина x канал`, `B/T/C`, `heads None F D/heads`."""
    if not any(t.word and not t.cross for t in found):
        return False
    for kind, least in (("comma", 2), ("times", 2), ("over", 3), ("minus", 3)):
        parts = split(found, lambda t, k=kind: t.kind == k)
        if len(parts) >= least:
            sure = [_piece(p, vocabulary) for p in parts]
            if kind == "times" and len(parts) > 2:  # nobody multiplies three things in prose
                return NONE not in sure
            return NONE not in sure and SURE in sure and (least < 3 or MAYBE not in sure)
    apart = [t for t in found if t.kind not in PLAIN and t.text != "None"]
    spaced = all(sized(t, vocabulary) for t in apart) and not any(map(_calls, found, found[1:]))
    return spaced and len(apart) > 1


def _calls(name: Token, bracket: Token) -> bool:
    return name.word and bracket.text == "(" and bracket.glued


def _piece(part: list[Token], vocabulary: Vocabulary) -> int:
    """How sure it is that a piece is one size."""
    words = [t for t in part if t.word and t.kind not in ("times", "scalar")]
    texts, plain = [t.text for t in words], (*PLAIN, *SIGNS)
    if (
        not part
        or not all(t.kind in plain or t.text in plain or names.known(t.text) for t in part)
        or any(map(_calls, part, part[1:]))
        or any(t.kind == "number" and ("." in t.text or t.text == "0") for t in part)
        or any(t.lower() in PROSE or t in vocabulary.tensors for t in texts)
        or len(words) > LONG
    ):
        return NONE
    if not words:
        kinds = [t.kind for t in part if t.kind != "scalar"]
        return SURE if kinds in (["number"], ["any"]) else NONE
    one = vocabulary.is_size("_".join(texts)) or all(sized(t, vocabulary) for t in words)
    return SURE if one else MAYBE


def _in_brackets(found: list[Token], i: int, end: int, vocabulary: Vocabulary) -> bool:
    """`[foo, bar]`, `(#words, batch size)`: names that may be of sizes, and no call."""
    if end - i > LARGEST or (i and found[i].glued and latin(found[i - 1])):
        return False
    inner = found[i + 1 : end]
    alone = i == 0 and end == len(found) - 1  # `[i, j]` and no more, where i and j may be sizes
    words = {t.text for t in inner if t.word and not t.cross}
    parts = split(inner, lambda t: t.kind == "comma")
    if words and len(parts) > 1 and inner[0].kind == "dots":
        return True  # `[.., i, j]`
    if not words or (not alone and words <= set(INDICES)):
        return False
    if len(parts) > 1:
        if [t.text for t in parts[0]] == [t.text for t in parts[1][: len(parts[0])]]:
            return False  # `[start, start + length]`
        zero = any(p and p[0].text == "0" for p in parts)  # a range
        if alone and not zero and found[i].text == "[" and words.isdisjoint(vocabulary.tensors):
            return True  # `[from, to]`, `[b, net(7)_out=14]`
        year = [t.text[:2] in ("19", "20") and len(t.text) == 4 for t in parts[-1]]
        return year != [True] and all(_piece(p, vocabulary) for p in parts if p)  # `(n, )`
    factors = split(inner, lambda t: t.kind == "times")
    if len(factors) >= (2 if alone else 3):
        return all(_piece(p, vocabulary) for p in factors)
    if len(factors) == 2 and end == len(found) - 1:  # `the write gate (BATCH * 1)`
        return all(_piece(p, vocabulary) == SURE for p in factors)
    one = i == 0 and len(inner) == 1  # `(Kc)`; `(num_rays), their lengths`
    return one and ((alone and len(inner[0].text) <= 3) or sized(inner[0], vocabulary))


def _crossed(found: list[Token]) -> bool:
    """`2W-1xC`, `WxW'xE`: crosses without spaces, and no piece begins with a small letter."""
    chunk = ""
    for token in [*found, Token("end", "", 0, 0)]:
        if not token.glued:
            pieces = chunk.split("x")
            capitals = any(p[:1].isupper() for p in pieces)
            if len(pieces) > 1 and capitals and all(p and not p[0].islower() for p in pieces):
                return True
            chunk = ""
        chunk += token.text
    return False


def _numbers(found: list[Token]) -> bool:
    """`32x64x7`, `(64, 64, 256) after padding (64, 64, 384)`: for somebody's own sizes."""
    signs = ("times", "comma", "open", "close")
    run = itertools.takewhile(
        lambda t: t.kind in signs or t.text.strip("xX")[:1].isdecimal(), found
    )
    text = "".join(" " if t.kind in signs else t.text.replace("x", " ") for t in run)
    sizes = text.split()
    least = 2 if found[0].kind == "open" else 3
    return len(sizes) >= least and all(n.isdecimal() and n != "0" for n in sizes)


# --- other ways -----------------------------------------------------------------------------------
def _one_word(token: Token, whole: bool, vocabulary: Vocabulary) -> bool:
    """`batch_seq_dim`, `NCHW`, `B.T.C`; `hidden` alone; `e.g.: 12x64`."""
    pieces = token.text.replace(".", "_").split("_")
    letters = len(pieces) > 2 and all(len(p) == 1 for p in pieces)
    if letters or (len(pieces) > 1 and all(map(names.known, pieces))):
        return True
    if token.kind == "pixels":
        return not whole
    capitals = token.kind == "name" and token.text.isupper() and len(token.text) < 6
    sure = whole and token.word and vocabulary.is_size(token.text)
    return sure or token.kind == "same" or capitals


def _reference(found: list[Token], vocabulary: Vocabulary) -> bool:
    """`same shape as q`, `y.shape == x.shape`, `like x`: the shape of another tensor."""
    if any(t.kind == "same" for t in found[:4]):
        return True
    of = {t.text.removesuffix(".shape").removesuffix(".size") for t in found}
    shaped = any(t.kind == "shape" or t.text.endswith(".shape") for t in found)
    named = of & {*vocabulary.tensors, *(("input", "above", "before") if shaped else ())}
    return bool(named and (shaped or of & set(LIKE))) and all(
        t.kind in ("shape", "is", "same", "open", "close", "times", "arrow")
        or t.text.lower() in PROSE
        or t.text in LIKE
        or t.text.split(".")[0] in named
        for t in found
    )


def _einsum(found: list[Token]) -> bool:
    """`bhqd,bhkd->bhqk`, `batch-seq-dim`."""
    words = [t.text for t in found if t.word and t.kind != "times"]
    if len(words) > 1 and all(map(names.known, words)) and not any(map(_calls, found, found[1:])):
        return True
    return any(
        sign.kind == "arrow"
        and not sign.word
        and sign.glued
        and after.glued
        and before.word
        and after.word
        and len(after.text) < 6
        for before, sign, after in zip(found, found[1:], found[2:], strict=False)
    )


def _told_in_words(found: list[Token], vocabulary: Vocabulary) -> bool:
    """`the shape stays the same`, `a 2n x 1 vector`, `feature dimension 50`."""
    for i, token in enumerate(found):
        near = found[max(0, i - 4) : i]
        kept = token.kind == "same" or token.text == "change"  # `its shape does not change`
        if kept and any(t.kind == "shape" for t in near):
            return True
        if token.text in OBJECTS and i > 2 and any(t.cross for t in near):
            return True
        if (token.kind == "shape" and token.text != "dim") or token.text in OBJECTS:
            after = [t for t in found[i + 1 : i + 3] if t.kind != "is" and t.text != "of"][:1]
            if any(_told(t, vocabulary) for t in after):
                return True
    return False


def _told(token: Token, vocabulary: Vocabulary) -> bool:
    """Whether it is a size beside a word for one; a small number is more likely an axis."""
    if token.kind == "number":
        return token.text.isdecimal() and len(token.text) > 1
    letter = len(token.text) == 1 and token.text.isupper()
    return token.kind == "name" and sized(token, vocabulary) and (letter or "_" in token.text)
