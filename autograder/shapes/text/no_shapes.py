"""What is no shape, and still looks like one: garbled ones, lists of values, legends."""

from __future__ import annotations

import itertools

from autograder.shapes.text import names
from autograder.shapes.text.dims import PROSE, Expr, NotADim, read_dims, shape_names, split
from autograder.shapes.text.lexer import Token
from autograder.shapes.text.shapes_in_text import INDICES, LARGEST, Span, Vocabulary, pairs_of

OBJECTS = ("vector", "matrix", "tensor", "array")  # what has a shape


def garbled(found: list[Token], shapes: list[Span], vocabulary: Vocabulary) -> bool:
    """Whether brackets that hold sizes cannot be read: `[batch, seq. hidden]`."""
    for i, end in pairs_of(found).items():
        if any(s.start <= i < s.end for s in shapes) or end - i > LARGEST:
            continue
        apart = not (found[i].glued and i and found[i - 1].word)
        inner = found[i + 1 : end]
        flat = not any(t.kind == "open" for t in inner)
        if apart and flat and looks_like_one(inner, vocabulary) and not _readable(inner):
            return True
    return False


def without_values(found: list[Token]) -> list[Token]:
    """Without brackets that can be read and still are no shape: a list of values, a call."""
    pairs, kept, i = pairs_of(found), [], 0
    while i < len(found):
        end = pairs.get(i)
        if end is not None and end - i <= LARGEST and _readable(found[i + 1 : end]):
            i = end
        else:
            kept.append(found[i])
        i += 1
    return kept


def _readable(inner: list[Token]) -> bool:
    try:
        return bool(read_dims(inner))
    except NotADim:
        return False


def looks_like_one(found: list[Token], vocabulary: Vocabulary) -> bool:
    """Whether somebody may have meant a shape that cannot be read: `bs, seq, hidden]`."""
    named = [t.word and t.kind != "times" and _sized(t, vocabulary) for t in found]
    for i in range(len(found) - 2):
        sign = found[i + 1]
        joint = sign.kind in ("comma", "arrow") or sign.text in ("x", "X", "×", "by", "*")
        more = [t.text for t in found[i + 3 : i + 4]] == ["*"]  # `B * 1 * M`
        other = named[i + 2] or found[i + 2].kind == "open" or (more and sign.text == "*")
        if named[i] and joint and other:
            return True
    spaced = all(
        t.kind == "over" or (t.word and (n or t.text == "None"))
        for t, n in zip(found, named, strict=True)
    )
    if spaced and sum(named) > 1:  # `heads None F D/heads`
        return True
    parts = split(found, lambda t: t.text == ",")
    signs = ("times", "over", "plus", "is")  # `b, 1:, d`
    words = all(len(p) == 1 or p[1].kind in signs for p in parts if p)
    return len(parts) > 2 and words and any(named)  # `nW*B, window, window, C`


def perhaps_one(found: list[Token], vocabulary: Vocabulary) -> bool:
    """`batch-seq-dim`, `NCHW`, `bhqd,bhkd->bhqk`, `[from, to]`: nobody can say that it is none."""
    words = [t.text for t in found if t.word and t.kind != "times"]
    pieces = [p for w in words for p in (w.split("_") if len(words) == 1 else [w])]
    if len(pieces) > 1 and all(map(names.known, pieces)):
        return True
    if _crossed_capitals(found) or _underscored(found, vocabulary):
        return True
    if _product(found, vocabulary) or _part_known(found, vocabulary) or _in_words(found):
        return True
    if len(found) == 1:
        capitals = words == [found[0].text.upper()] and len(words[0]) < 6
        capitals = capitals and found[0].kind == "name"
        return capitals or (bool(words) and vocabulary.is_size(words[0]))  # `hidden`
    for before, sign, after in zip(found, found[1:], found[2:], strict=False):
        joined = sign.kind == "arrow" and not sign.word and sign.glued and after.glued
        if joined and before.word and after.word and len(after.text) < 6:
            return True
    square = found[0].text == "[" and pairs_of(found).get(0) == len(found) - 1
    inner = found[1:-1]
    listed = any(t.text == "," for t in inner)
    return square and listed and all(t.word or t.text == "," for t in inner)


def _crossed_capitals(found: list[Token]) -> bool:
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


def _underscored(found: list[Token], vocabulary: Vocabulary) -> bool:
    """`2, w_q * h_q, w_k`: nothing but commas between names of no tensors, numbers and products."""
    parts = split(found, lambda t: t.text == ",")
    whole = all(
        p
        and all(t.word or t.kind == "number" for t in p[::2])
        and all(t.kind in ("times", "over", "plus", "minus") for t in p[1::2])
        for p in parts
    )
    words = {t.text for t in found if t.word}
    return (
        whole
        and len(parts) > 1
        and any("_" in w for w in words)
        and words.isdisjoint(vocabulary.tensors)
    )


def _product(found: list[Token], vocabulary: Vocabulary) -> bool:
    """`(b * parts) * 1`, `batch size * part num`: nothing but stars between names and numbers."""
    parts = split([t for t in found if t.text not in ("(", ")")], lambda t: t.text == "*")
    words = ["_".join(t.text for t in p) for p in parts if p and all(t.word for t in p)]
    whole = all(p and (p[0].word or p[0].kind == "number") and len(p) < 4 for p in parts)
    sized = any(len(w) > 2 and vocabulary.is_size(w) for w in words)
    numbers = [p for p in parts if len(p) == 1 and p[0].kind == "number"]
    return (
        whole
        and sized
        and len(parts) > 1
        and len(words) + len(numbers) == len(parts)
        and set(words).isdisjoint(vocabulary.tensors)
    )


def _part_known(found: list[Token], vocabulary: Vocabulary) -> bool:
    """`[batch_size, net16(7)=14]`, `b, 1 scalar`: a list in which one size alone is known."""
    square = found[0].text == "[" and pairs_of(found).get(0) == len(found) - 1
    parts = split(found[1:-1] if square else found, lambda t: t.text == ",")
    first = parts[0]
    if len(parts) < 2 or len(first) != 1 or not first[0].word or not _sized(first[0], vocabulary):
        return False
    return square or (len(parts) == 2 and parts[1][:1] != [] and parts[1][0].kind == "number")


def _in_words(found: list[Token]) -> bool:
    """`the shape stays the same`, `a 2n x 1 vector`: told in a sentence."""
    for i, token in enumerate(found):
        near = found[max(0, i - 4) : i]
        if token.kind == "same" and any(t.kind == "shape" for t in near):
            return True
        if token.text in OBJECTS and i > 2 and any(t.cross for t in near):
            return True
    return False


def begins_with_numbers(found: list[Token]) -> bool:
    """`(64, 64, 256) after padding (64, 64, 384)`: perhaps a shape, for somebody's own sizes."""
    lead = next((i + 1 for i, t in enumerate(found[:4]) if t.text == ":"), 0)  # `e.g.: 32x64`
    crossed = "".join(t.text for t in itertools.takewhile(_of_numbers, found[lead:])).split("x")
    if len(crossed) > (1 if lead else 2) and all(c.isdecimal() for c in crossed):
        return True
    end = pairs_of(found).get(0)
    inner = split(found[1:end], lambda t: t.text == ",") if end else []
    whole = [p[0].text for p in inner if len(p) == 1 and p[0].kind == "number"]
    return len(inner) > 1 and len(whole) == len(inner) and all(w.isdecimal() for w in whole)


def names_in_brackets(found: list[Token], vocabulary: Vocabulary) -> bool:
    """Whether brackets hold names that may be of sizes, whatever they are."""
    return any(_list_of_names(found, i, end, vocabulary) for i, end in pairs_of(found).items())


def _of_numbers(token: Token) -> bool:
    """Whether it may be a piece of `32x64x7`, with or without spaces."""
    return token.kind in ("number", "pixels") or token.text.lstrip("x").isdecimal() or token.cross


def _list_of_names(found: list[Token], i: int, end: int, vocabulary: Vocabulary) -> bool:
    """`[foo, bar]`: names in brackets that may be of sizes which nobody knows, and no call."""
    if end - i > LARGEST or (i and found[i].glued and found[i - 1].word):
        return False
    parts = split(found[i + 1 : end], lambda t: t.text == ",")
    names_in = [t.text for p in parts for t in p if t.word]
    alone = i == 0 and end == len(found) - 1  # `[i, j]` and no more, where i and j may be sizes
    product = len(names_in) > 1 and all(t.kind == "times" for t in parts[0][1::2])
    short = alone and (product or (len(names_in) == 1 and len(names_in[0]) <= 3))  # `(Kc)`
    if (len(parts) < 2 and not short) or any(w.lower() in PROSE for w in names_in):
        return False
    if any(p and p[0].kind == "dots" for p in parts[:1]):
        return True  # `[.., i, j]`
    if alone and len(parts) > 1:  # `(n,)`, `(n, 4)`
        parts = parts[:-1] if not parts[-1] else parts
        parts = [p for p in parts if len(p) != 1 or p[0].kind != "number"]
    plain = bool(parts) and all(len(p) == 1 and p[0].word for p in parts)
    if alone and len(parts) == 1:  # `(batch * max_words)`
        plain = all(t.word and t.kind != "times" for t in parts[0][::2])
    none = set(vocabulary.tensors) | (set() if alone else set(INDICES))
    return plain and none.isdisjoint(names_in)


def _sized(token: Token, vocabulary: Vocabulary) -> bool:
    if token.text in vocabulary.tensors:
        return False
    letter = len(token.text) == 1 and token.text not in INDICES
    letter = letter or (token.text.isupper() and len(token.text) <= 5)  # NCHW
    return letter or (vocabulary.is_size(token.text) and token.text.lower() not in PROSE)


def explained(found: list[Token], vocabulary: Vocabulary) -> bool:
    """`B = batch size, T = tokens`: names with their meanings, and no shape."""
    parts = [p for p in split(found, lambda t: t.text in (",", ";")) if p]
    told = [p for p in parts if len(p) > 2 and p[0].word and p[1].kind == "is" and p[2].word]
    return len(parts) > 1 and len(told) == len(parts) and bool(meanings(found, vocabulary))


def meanings(found: list[Token], vocabulary: Vocabulary) -> dict[str, Expr]:
    """The names that are explained by known words, with what they stand for."""
    legend: dict[str, Expr] = {}
    for i in range(len(found) - 2):
        name, sign = found[i], found[i + 1]
        if name.kind != "name" or not (sign.kind in ("is", "minus") and found[i + 2].word):
            continue
        if name.text in vocabulary.tensors or names.concept(name.text) or len(name.text) > 12:
            continue
        if i and found[i - 1].kind in ("times", "over", "plus", "minus", "power"):
            continue  # `heads * kdim = width`
        words = []
        for token in found[i + 2 : i + 12]:
            if token.kind in ("comma", "and", "input", "is") or token.text in (".", "per", "for"):
                break
            if token.kind in ("open", "close", "arrow"):
                break
            if token.text not in ("the", "a", "an"):
                words.append(token)
        try:
            dims = read_dims(words)
        except NotADim:
            continue
        if len(dims) != 1 or dims[0][0] == "any":
            continue
        used = shape_names(dims)
        if used and name.text not in used and all(map(vocabulary.is_size, used)):
            legend.setdefault(name.text, dims[0])
    return legend
