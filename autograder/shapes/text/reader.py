"""Reads the tokens of a comment as claims about shapes. Text in, claims out; nothing else is known.

    chain := stage (ARROW operation? stage)*        stage := shape (TIMES shape)*

What stands around a shape is kept as far as it says what the shape is of: a label (`q:`), the name
of an operation, an arrow, a word. Which signs and words these are is in the lexer's table.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from autograder.shapes.text.dims import Expr, alone, names_of, split
from autograder.shapes.text.glue import (
    LABELS,
    Glue,
    behind_signs,
    in_words,
    is_arrow,
    kind_of,
    labelled,
    leads_on,
    led_by_words,
    roles_in,
    says,
    without_calls,
)
from autograder.shapes.text.lexer import MAX_TEXT, Token, plain, tokens
from autograder.shapes.text.lines import Rows, joined
from autograder.shapes.text.no_shapes import (
    explained,
    garbled,
    looks_like_one,
    meanings,
    without_values,
)
from autograder.shapes.text.perhaps import perhaps_one
from autograder.shapes.text.shapes_in_text import (
    Span,
    Term,
    Vocabulary,
    bare_terms,
    spans,
    strip_lead,
)

FORWARDS = Token("arrow", "->", 0, 0)
COLUMN = 3  # spaces, at least, between a shape and a remark in a column of its own
BEFORE = ("before", "original", "originally", "input", "inputs")  # behind a shape


@dataclass(frozen=True)
class Stage:
    terms: tuple[Term, ...]
    joined: str = ""
    op: str = ""


@dataclass(frozen=True)
class Claim:
    """One chain, and where several are given as alternatives, the others.

    told: words stand between its shapes. aside: behind words that set it against what the line
    makes. role: "input" or "output" where a word says so. tail: words stand behind its last shape.
    unreadable: why it is no claim at all. perhaps: it may be none, and tell of something else.
    """

    stages: tuple[Stage, ...] = ()
    line: int = 0
    others: tuple[Claim, ...] = ()
    told: bool = False
    aside: bool = False
    role: str = ""
    role_of: frozenset[str] = frozenset()  # the words that say so, which may be names
    words: int = 0
    tail: bool = False
    unreadable: str = ""
    perhaps: bool = False

    @property
    def text(self) -> str:
        return " -> ".join(f" {s.joined} ".join(t.text for t in s.terms) for s in self.stages)

    def terms(self) -> list[Term]:
        own = [t for s in self.stages for t in s.terms]
        return own + [t for o in self.others for t in o.terms()]


def read(lines: Rows, vocabulary: Vocabulary) -> list[Claim]:
    """The claims of a comment of one or more lines (numbers and texts)."""
    found: list[list[Claim]] = []
    for number, text in joined(lines):
        if len(text) > MAX_TEXT:
            found.append([Claim(line=number, unreadable="the comment is too long to be read")])
            continue
        found.append([replace(c, line=number) for c in _read_text(plain(text), vocabulary)])
    if any(c.stages for line in found for c in line):
        found = [[c for c in line if not c.perhaps] for line in found]
        told = {
            n for line in found for c in line for t in c.terms() for n in names_of(("", *t.dims))
        }
        legend = [_explains(text, told) for _, text in joined(lines)]
        found = [
            [c for c in of if c.stages or not le] for of, le in zip(found, legend, strict=True)
        ]
    if sum(map(bool, found)) > 1:  # a sentence over several lines
        found = [[replace(c, told=c.told or c.words > 1) for c in line] for line in found]
    return [claim for line in found for claim in line]


def _explains(text: str, names: set[str]) -> bool:
    """`n: tokens (= h * w)` below `[b, n, d]`: a line that tells of a name, and no shape."""
    first = tokens(text[:40])[:2]
    return len(first) > 1 and first[0].text in names and first[1].kind == "is"


def _read_text(text: str, vocabulary: Vocabulary) -> list[Claim]:
    found = _without_asides(_with_colons(tokens(text), vocabulary))
    found = _named(_forwards(found), vocabulary)
    if not found or explained(found, vocabulary):
        return []
    bare = _bare(found, text, vocabulary)
    if bare:
        return [bare]
    shapes = spans(found, text, vocabulary)
    if garbled(found, shapes, vocabulary):
        return [Claim(unreadable="the comment is not readable as a shape")]
    if shapes:
        ends = _bare_end(found, shapes[-1].end, text, vocabulary)
        return _of_each(found[: shapes[0].start], _chains(found, [*shapes, *ends]), vocabulary)
    if _scalar(found):
        return [Claim((Stage((Term((), "scalar", sure=True),)),))]
    if perhaps_one(found, vocabulary) or looks_like_one(without_values(found), vocabulary):
        return [Claim(unreadable="the comment is not readable as a shape", perhaps=True)]
    return []


def _with_colons(found: list[Token], vocabulary: Vocabulary) -> list[Token]:
    """`q->(b, t), k->(b, s)`: arrows behind the names of several tensors are no steps."""
    rows = zip(found, found[1:], found[2:], strict=False)
    told = [
        arrow
        for name, arrow, after in rows
        if name.text in vocabulary.tensors and leads_on(arrow) and after.kind == "open"
    ]
    several = len(told) > 1
    return [replace(t, kind="is", text=":") if several and t in told else t for t in found]


def _without_asides(found: list[Token]) -> list[Token]:
    """`b x t (asks) x s`: a word in brackets, between two dimensions, says which is meant."""
    kept, i = [], 0
    while i < len(found):
        aside = found[i : i + 4]
        texts = [t.text for t in aside]
        between = len(aside) == 4 and texts[0] == "(" and texts[2] == ")" and aside[3].cross
        behind = bool(kept) and (kept[-1].word or kept[-1].kind == "close")
        if between and behind and aside[1].word and not aside[0].glued:
            i += 3
        else:
            kept.append(found[i])
            i += 1
    return kept


def _forwards(found: list[Token]) -> list[Token]:
    """`[b, c, t] <- [b, t, c]` in the order of `[b, t, c] -> [b, c, t]`."""
    *rest, last = split(found, lambda t: t.kind == "back")
    return [*last, *(t for piece in rest[::-1] for t in (FORWARDS, *piece))]


def _of_each(lead: list[Token], claims: list[Claim], vocabulary: Vocabulary) -> list[Claim]:
    """`q, k: [b, t, d]`, `shapes of q, k and v are all [b, t, d]`: one claim for each of them."""
    while lead and (lead[-1].kind in ("is", "shape", "each") or lead[-1].text in ("of", "both")):
        lead = lead[:-1]
    listed: list[str] = []
    while lead and (lead[-1].text in (*vocabulary.tensors, ",") or lead[-1].kind == "and"):
        listed += [lead[-1].text] if lead[-1].word and lead[-1].kind != "and" else []
        lead = lead[:-1]
    more = any(t.kind != "shape" and t.text not in ("of", "the", "both") for t in lead)
    if (
        more
        or len(claims) != 1
        or len(claims[0].terms()) != 1
        or not 1 < len(listed) == len(set(listed))
    ):
        return claims
    stage = claims[0].stages[0]
    terms = [replace(stage.terms[0], label=name, sure=True) for name in reversed(listed)]
    return [replace(claims[0], stages=(replace(stage, terms=(t,)),), words=0) for t in terms]


def _named(found: list[Token], vocabulary: Vocabulary) -> list[Token]:
    """With `out: [b, t]`, `input shape [b, t]` as labels, where there is a tensor of that name."""
    return [
        replace(t, kind="name")
        if t.text in vocabulary.tensors
        and (
            (t.kind in ("input", "output") and says(after))
            or (t.kind == "input" and after.kind == "shape")
        )
        else t
        for t, after in zip(found, [*found[1:], *found[-1:]], strict=True)
    ]


def _bare_end(found: list[Token], end: int, text: str, vocabulary: Vocabulary) -> list[Span]:
    """`[b, t, d] -> b, t`: behind the last arrow there may be a shape without brackets."""
    if end < len(found) and found[end].kind == "arrow" and not found[end].word:
        rest = found[end + 1 :]
        terms = bare_terms(rest, text, "", vocabulary, chain=True)
        if len(terms) == 1:
            return [Span(end + 1, len(found), replace(terms[0], sure=True))]
        name = rest[0].text if len(rest) == 1 and rest[0].kind == "name" else ""
        if name and vocabulary.known(name) and name not in vocabulary.tensors:  # `(t, n) -> n`
            one = Term((("name", name),), name, sure=True, style=",")
            return [Span(end + 1, len(found), one)]
    return []


def _scalar(found: list[Token]) -> bool:
    """`scalar`, `a scalar`, `0-d tensor` at the beginning."""
    kinds = [t for t in found[:3] if t.text not in ("a", "is", "->")]
    return bool(kinds) and kinds[0].kind == "scalar"


# --- shapes without brackets --------------------------------------------------------------------
def _bare(found: list[Token], text: str, vocabulary: Vocabulary) -> Claim | None:
    """`b x s x h`, `batch, seq, hidden` or `b s (n d) -> b s n d`, and no more than a remark."""
    while found and found[-1].text in (".", "!", ";", ","):
        found = found[:-1]
    apart = [i for i in _far_apart(found) if all(t.word for t in found[:i])][:1]
    if all(vocabulary.known(t.text) for i in apart for t in found[:i]):
        apart = []
    for start in (*apart, *_labels_in_prose(found)):
        claim = _bare_whole(found[start:], text, vocabulary)
        if claim and start in apart:
            return replace(claim, words=start)
        if claim and claim.terms()[0].style == "x":
            in_words = found[start - 1].kind == "shape"
            return replace(claim, told=True, words=start) if in_words else claim
    cuts = _remarks(found)
    whole = [len(found)] if any(map(_multiplies, found)) else []  # `n,t,j * n,j,h = n,t,h`
    for cut in [*whole, *(c for c in cuts if found[c].text != "("), len(found), *cuts]:
        claim = _starred(found[:cut], text, vocabulary)
        if claim and (cut == len(found) or all(len(t.dims) > 1 for t in claim.terms())):
            return claim
    return None


def _starred(found: list[Token], text: str, vocabulary: Vocabulary) -> Claim | None:
    """`b,t,d * b,d,1 -> b,t`: two operands, or one shape with a product in the middle.

    A name that stands on both sides of the star is of two operands: a shape has it only once.
    """
    whole = _bare_whole(found, text, vocabulary)
    if not any(t.text == "*" and not t.glued for t in found):
        return whole
    apart = _bare_whole(found, text, vocabulary, times="*")
    if not apart or not whole or apart.stages == whole.stages:
        return whole or apart
    terms = [{n for d in t.dims for n in alone(d)} for t in apart.stages[0].terms]
    twice = len(terms) > 1 and terms[0] & terms[1]
    return replace(apart, others=(whole,)) if twice else replace(whole, others=(apart,))


def _labels_in_prose(found: list[Token]) -> list[int]:
    """Where a label may begin behind other words: `the last item, x: b x n x d`.

    Or a shape: `should have shape n x n`.
    """
    last = [i for i, t in enumerate(found) if t.text == ":" and i > 1]
    told = [i + 1 for i, t in enumerate(found) if t.kind == "shape" and i > 1]
    return [i - 1 for i in last[-1:] if found[i - 1].word] + told[-1:]


def _far_apart(found: list[Token]) -> list[int]:
    """Where a word stands far behind another, as in a column of its own."""
    pairs = enumerate(itertools.pairwise(found), start=1)
    far = [(i, a, b) for i, (a, b) in pairs if b.start - a.end >= COLUMN]
    return [i for i, a, b in far if a.word and b.word and not b.cross]


def _remarks(found: list[Token]) -> list[int]:
    """Where a remark may begin: `b x t x c, c = n * d`, `b x t x t (t x t is broadcast)`."""
    columns = _far_apart(found)
    cuts, depth, crossed, listed = [], 0, False, False
    last = max((i for i, t in enumerate(found) if t.cross or t.kind == "arrow"), default=0)
    for i, token in enumerate(found):
        if depth == 0 and i > 2:
            sign = found[i + 2].text if i + 2 < len(found) else ""
            defines = sign in ("=", "==") and token.text in (",", ";", "where", "with", "and")
            listed_too = found[i - 1].text == ","  # `b, t, (h, d)`, the parts of one dimension
            aside = token.text == "(" and not (token.glued or listed_too)
            aside = aside or (token.text == "," and crossed and i > last)  # `b x 1 x t, a mask`
            if defines or aside or token.text == ";" or i in columns:
                cuts.append(i)
        if depth == 0 and (token.text == "," or token.kind == "arrow"):
            listed = token.text == ","
        crossed = crossed or (token.cross and not listed and i > 0)  # `x: b, t * h, c`
        depth += (token.kind == "open") - (token.kind == "close")
    return cuts[:3]


def _bare_whole(
    found: list[Token], text: str, vocabulary: Vocabulary, times: str = "@"
) -> Claim | None:
    """Shapes without brackets, and nothing else. times: the sign between the operands."""
    segments: list[list[Token]] = [[]]
    for token in found:
        result = token.text in ("=", "==") and any(_multiplies(t) for t in segments[-1][1:])
        if result or (token.kind == "arrow" and (not token.word or token.text == "to")):
            segments.append([])
        else:
            segments[-1].append(token)
    label, first = strip_lead(segments[0], vocabulary)
    stages = []
    for i, segment in enumerate([first, *segments[1:]]):
        while segment and segment[-1].text in (".", ";", ":"):
            segment = segment[:-1]
        if not segment and i == 0 and len(segments) > 1:
            continue
        label_ = label if i == 0 else ""
        terms = bare_terms(segment, text, label_, vocabulary, times, len(segments) > 1)
        if not terms:
            return None
        sign = times if any(t.text == times for t in segment) else ","
        stages.append(Stage(terms, sign if len(terms) > 1 else ""))
    told = label and label not in vocabulary.tensors and len(stages) == 1
    if told and stages[0].terms[0].style not in ("x", ","):
        return None
    bare = any(t.style not in ("[", "(", "{", "<") for s in stages for t in s.terms)
    return Claim(tuple(stages)) if bare else None  # with brackets alone more can be told


def _multiplies(token: Token) -> bool:
    """`n,t,j * n,j,h = n,t,h`: a sign between two shapes, behind which `=` tells the result."""
    return token.text == "@" or (token.text == "*" and not token.glued)


# --- what stands between --------------------------------------------------------------------------
def _chains(found: list[Token], shapes: list[Span]) -> list[Claim]:
    claims: list[list[Stage]] = []
    more: list[dict] = []  # what else is known of each claim
    joins: list[str] = []
    end, equals, along = 0, False, False
    for span in shapes:
        glue = without_calls(found[end : span.start])
        first = not claims
        how = kind_of(glue, first, equals)
        if not first and span.start == end and found[end].glued:  # `(b, t)(t, d)`: a product
            how = Glue("join", "", ",")
        op = how.op or span.op
        term = labelled(span.term, glue, op, how.kind, first)
        roles = roles_in(glue)
        signs = any(is_arrow(t) or t.text in LABELS for t in glue)
        along = (along and not signs) or any(t.kind == "along" for t in behind_signs(glue))
        if first or how.kind in ("new", "or"):
            claims.append([Stage((term,), "", op if any(is_arrow(t) for t in glue) else span.op)])
            listed = "," if [t.text for t in glue] == [","] else ""
            joins.append("or" if how.kind == "or" and not first else listed)
            more.append(
                {
                    "aside": along or (not first and any(t.kind == "aside" for t in glue)),
                    "role": next((t.kind for t in roles), ""),
                    "role_of": frozenset(t.text for t in roles),
                    "words": sum(t.kind == "name" for t in glue) - bool(term.label),
                    "told": led_by_words(glue) or (not first and in_words(glue, term)),
                }
            )
            equals = False
        elif how.kind == "join":
            last = claims[-1][-1]
            claims[-1][-1] = replace(last, terms=(*last.terms, term), joined=how.sign)
            equals = True
        elif how.kind == "spread":  # by a later line, or by this one
            claims.append([*claims[-1], Stage((term,), "", op)])
            joins.append("or")
            more.append({})
        else:
            claims[-1].append(Stage((term,), "", op))
            named = leads_on(glue[-1]) and sum(t.word for t in glue) == 1  # `-softmax->`
            more[-1]["told"] = more[-1].get("told") or (in_words(glue, term) and not named)
        end = span.end
    tail = sum(t.kind == "name" for t in found[end:])
    if end < len(found) and (leads_on(found[end]) or found[end].text in BEFORE):
        more[-1]["role"] = more[-1].get("role") or "input"  # of what it becomes nothing is read
    told = any(m.get("told") for m in more)
    made = []
    for stages, extra in zip(claims, more, strict=True):
        kept = {**extra, "told": told or extra.get("role") == "input"}
        kept["words"] = extra.get("words", 0) + tail if shapes[0].start else 0
        kept["tail"] = any(t.kind == "name" for t in without_calls(found[end:]))
        made.append(Claim(tuple(stages), **kept))
    return _comma_operands(_with_alternatives(made, joins))


def _with_alternatives(claims: list[Claim], joins: list[str]) -> list[Claim]:
    merged: list[Claim] = []
    row = 0  # shapes before, with commas between
    for claim, join in zip(claims, joins, strict=True):
        if join == "or" and merged:
            merged[-1] = replace(merged[-1], others=(*merged[-1].others, claim))
            while row and len(merged) > 1:  # `[..], [..] or [..]`
                last, row = merged.pop(), row - 1
                merged[-1] = replace(merged[-1], others=(*merged[-1].others, last, *last.others))
        else:
            row = row + 1 if join == "," else 0
            merged.append(claim)
    return merged


def _comma_operands(claims: list[Claim]) -> list[Claim]:
    """`[..], [..] -> [..]`: shapes before the arrow that only a comma parts are its operands.

    What stands behind, `[..], [..] -> [..], [..]`, are more results.
    """
    chains = [i for i, c in enumerate(claims) if len(c.stages) > 1]
    at = chains[0] if len(chains) == 1 else 0
    if not at or any(c.others for c in claims):
        return claims
    terms = tuple(t for c in claims[:at] for t in c.stages[0].terms)
    one = claims[at]
    first = replace(one.stages[0], terms=(*terms, *one.stages[0].terms), joined=",")
    return [replace(one, stages=(first, *one.stages[1:])), *claims[at + 1 :]]


def legends(text: str, vocabulary: Vocabulary) -> dict[str, Expr]:
    """`B = batch size, d: hidden / num_heads`: names that a comment explains by known words."""
    told: dict[str, Expr] = {}
    for line in text.splitlines():  # `npoint:` on a line of its own is not what the next one says
        told = meanings(tokens(plain(line)), vocabulary) | told
    return told
