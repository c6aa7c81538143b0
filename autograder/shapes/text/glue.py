"""What stands between two shapes of a comment: whether it joins them, and what it says of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from autograder.shapes.text.dims import PROSE
from autograder.shapes.text.lexer import Token
from autograder.shapes.text.shapes_in_text import Term, pairs_of

_FILLERS = """
    which that then now by a an the is of shape as it , and be with via
"""
FILLERS = frozenset(_FILLERS.split())
LABELS = (":", "=")
FAR = 2  # names between a word for what comes in and its shape, at most
COUNTED = ("matrices", "tensors", "arrays", "times", "vectors")


@dataclass
class Glue:
    """How a shape follows what stands before it."""

    kind: str  # "arrow" | "join" | "or" | "spread" | "new"
    op: str = ""
    sign: str = ""


def last_sentence(glue: list[Token]) -> list[Token]:
    """What stands behind the last full stop: `the scores from the paper. [b, t, t]`."""
    ends = [i for i, t in enumerate(glue) if t.text in (".", ";")]
    return glue[ends[-1] + 1 :] if ends else glue


def behind_signs(glue: list[Token]) -> list[Token]:
    """What stands behind the last arrow or colon: in `sum over t -> [b, d]` nothing does."""
    ends = [i for i, t in enumerate(glue) if is_arrow(t) or t.text in LABELS]
    return glue[ends[-1] + 1 :] if ends else glue


def roles_in(glue: list[Token]) -> list[Token]:
    """The words for what comes in or out; no `in the world`, nor one that is far from the shape."""
    said = last_sentence(glue)
    found = []
    for i, token in enumerate(said):
        behind = sum(t.kind == "name" and t.text not in FILLERS for t in said[i + 1 :])
        near = behind == 0 if token.text == "in" else behind <= FAR
        if token.kind == "output" or (token.kind == "input" and near):
            found.append(token)
    return found


def says(token: Token) -> bool:
    """Whether a sign parts a label from its shape: `q: [b, t]`, `q -- (b, t)`."""
    return token.text in LABELS or (token.kind == "minus" and not token.glued)


def is_arrow(token: Token) -> bool:
    return token.kind in ("arrow", "spread")


def leads_on(token: Token) -> bool:
    return is_arrow(token) and not token.word


def without_calls(glue: list[Token]) -> list[Token]:
    """Without what stands in brackets: `view(b, -1, d) -> [..]` tells of a view.

    In `k = f(x): [b, t, d]` the label is `k`, and the call is all that is equal to it.
    """
    kept: list[Token] = []
    depth = 0
    for token in glue:
        depth += token.kind == "open"
        if token.kind == "open" and [t.kind for t in kept] == ["name", "is", "name"]:
            del kept[1:]
        if depth == 0:
            kept.append(token)
        depth -= token.kind == "close" and depth > 0
    return kept


def kind_of(glue: list[Token], first: bool, equals: bool) -> Glue:
    signs = [t for t in glue if is_arrow(t) and not t.word]
    words = [t for t in glue if t.kind == "name" and t.text.lower() not in FILLERS]
    op = words[0].text.rsplit(".", 1)[-1] if words else ""
    if signs:
        kind = "spread" if any(t.kind == "spread" for t in glue) else "arrow"
        return Glue("new" if first else kind, op)
    if first:
        return Glue("new")
    if any(t.kind == "spread" for t in glue) and len(words) < 3:
        return Glue("spread")
    plain_words = [t for t in words if not t.glued]
    if glue and glue[0].kind in ("times", "plus", "minus") and len(glue) <= 4:
        rest = [t for t in glue[1:] if t.kind not in ("is", "shape", "power")]
        if len(rest) <= 2 and all(t.word for t in rest) and (glue[0].text != "-" or not rest):
            sign = glue[0].text if glue[0].text in ("@", "+", "*") else "x"
            return Glue("join", "", sign)
    if any(t.kind == "arrow" for t in glue) and len(words) <= 1:
        return Glue("arrow")
    if equals and glue and glue[0].text in ("=", "==") and len(plain_words) <= 1:
        return Glue("arrow")
    if [t.text for t in glue] in (["/"], ["|"]) or any(t.kind == "or" for t in glue):
        return Glue("or")
    return Glue("new")


def led_by_words(glue: list[Token]) -> bool:
    """`the rows of [b, t]`: several words, or one of another language, and no sign behind them."""
    ends = [i for i, t in enumerate(glue) if says(t) or leads_on(t) or t.text in ("-", ";")]
    last = glue[ends[-1] + 1 :] if ends else glue
    words = [t.text for t in last if t.word and t.kind != "shape"]
    words = [w for w in words if w.lower() not in ("the", "a", "an")]
    return len(words) > 1 or not "".join(words).isascii()


def in_words(glue: list[Token], term: Term) -> bool:
    """Whether more stands there than the name of a tensor, or a label."""
    words = [t.text for t in glue if t.kind in ("name", "input", "aside") and t.text != term.label]
    return any(len(w) > 1 and w.lower() not in FILLERS for w in words)


def labelled(term: Term, glue: list[Token], op: str, kind: str, first: bool) -> Term:
    """The term with the name, or the number of tensors, that stands before it."""
    if term.label:
        return term
    rest = list(glue)
    named = len(rest) == 2 and rest[0].kind == "name" and says(rest[1])  # `q -- (b, t)`
    rest = rest[:1] if named else rest
    while rest and (rest[-1].kind in ("is", "shape") or rest[-1].text == "of"):
        named = named or rest[-1].kind == "is" or rest[-1].kind == "shape"
        rest.pop()
    if not rest:
        return term
    last = rest[-1]
    times = last.kind == "times" and not (named and last.text == "x")  # `input x: [b, t]`
    counted = times or last.text in COUNTED or glue[-1].text in COUNTED
    counted = counted or any(t.text in COUNTED for t in glue[-3:])
    if counted and kind != "join":
        number = [t for t in rest[-3:] if t.kind in ("name", "number") and t.text not in COUNTED]
        if number and (first or kind == "new") and len(rest) <= 6:
            return replace(term, count=number[-1].text)
    if last.text.lower() in PROSE:
        return term
    if last.kind == "name" or (last.text == "x" and named):
        text = last.text
        for end in (".shape", ".size"):
            text = text.removesuffix(end)
        if len(rest) > 1 and rest[-2].kind == "power":
            text = f"{rest[-3].text if len(rest) > 2 else ''}^{text}"
        if text == op and not named:
            return term
        return replace(term, label=text)
    return term


def of_another_expression(lead: list[Token], code: str) -> bool:
    """Whether a call or an item is named that the code does not have: `probs[0] is [n, t, t]`."""
    signed = bool(lead) and lead[-1].kind in ("is", "shape")
    while lead and (lead[-1].kind in ("is", "shape") or lead[-1].text == "of"):
        lead = lead[:-1]
    end = len(lead) - 1
    begin = next((i for i, j in pairs_of(lead).items() if j == end), 0)
    if not signed or not begin or not lead[begin].glued or not lead[begin - 1].word:
        return False
    name = lead[begin - 1].text.rsplit(".", 1)[-1]
    if name == "size" and begin == end - 1:
        return False  # `x.size() = (b, t)` is a label
    return name + "[" * (lead[begin].text == "[") not in code
