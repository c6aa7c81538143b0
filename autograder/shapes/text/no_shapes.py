"""What is no shape, and still looks like one: garbled ones, lists of values, legends."""

from __future__ import annotations

from autograder.shapes.text import names
from autograder.shapes.text.dims import Expr, NotADim, read_dims, shape_names, split
from autograder.shapes.text.lexer import Token
from autograder.shapes.text.perhaps import sized
from autograder.shapes.text.shapes_in_text import LARGEST, Span, Vocabulary, pairs_of

ENDS = ("comma", "and", "input", "is", "open", "close", "arrow")  # of what a name is said to be


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
    named = [t.word and t.kind != "times" and sized(t, vocabulary) for t in found]
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
        words, end = [], ""
        for token in found[i + 2 : i + 12]:
            end = token.kind
            if end in ENDS or token.text in (".", "per", "for"):
                break
            if token.text not in ("the", "a", "an"):
                words.append(token)
        if sign.text == ":" and end == "is":
            continue  # `[b, n]: b is the batch` explains no n
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
