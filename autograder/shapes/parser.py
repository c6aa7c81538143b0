"""Reads the text of a comment as claims about shapes. Text in, claims out; nothing else is known.

A claim is a chain of stages, `[..] -> view [..] -> [..]`; a stage is one shape, or several that an
operator joins, `[..] @ [..]`. What stands around a shape is kept as far as it says what the shape
is of: a label (`q:`), the name of an operation, an arrow, a word.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from autograder.shapes import names
from autograder.shapes.dims import (
    Expr,
    NotADim,
    parse_dims,
    shape_names,
    split_crosses,
    split_top,
)

ARROW = re.compile(r"<?[-=~]+>+|→|⟶|⇒|➔|➜|↦|⟹|>>+|\|>|➡️?")
ARROW_WORD = re.compile(
    r"^\W*(?:which |that |is |and |then |now )*(?:becomes?|becoming|to|into|gives?|yields?|"
    r"results? in|turns into|goes to|transposed to|reshaped to|broadcast(?:ed|s)? to|"
    r"expanded to|split into)\W*$",
    re.I,
)
PRODUCT = re.compile(r"^\s*(@|[x×*·+/]|-|dot|matmul|mm|bmm|times|by|⊗|⊙|mat ?mul)\s*$", re.I)
ALTERNATIVE = re.compile(r"(^|\W)(or|otherwise|else)(\W|$)|^\s*;?\s*,?\s*\(?(if|when)\b", re.I)
KEYWORD = re.compile(
    r"(shapes?|sizes?|dims?|dimensions?|torch\.Size|Size|Tensor|tensor|Array|array|view|reshape)"
    r"\s*(is|are|of|=|==|:|\()?\s*$|(\bis|\bhas|:|=|of shape|\bas)\s*$",
    re.I,
)
GLUED = re.compile(r"([\w.]*\w)$")
SHAPE_WORD = re.compile(
    r"(?i)(^|\.)(\w*tensor|shapes?|sizes?|dims?|array|float|ndarray|t|view|reshape|rank\d?|r|ℝ)$"
)
LABEL = re.compile(r"""['"`]?([^\W\d][\w.]*(?:\^?T\b|\.T\b)?)['"`]?\s*(:|=|is|has|==|∈)?\s*$""")
COUNT = re.compile(
    r"(\w+)\s*(?:[x×*]|\s(?:times|matrices|tensors|arrays)\b(?: of (?:shape|size|dim\w*))?:?)\s*$"
)
WRAPPED = re.compile(r"(?:torch\.)?Size\(\s*$")  # `q.shape: torch.Size([..])`
OF_INPUT = re.compile(r"^\W*(in|inputs?|from|before|given)\W*$", re.I)  # `in: [..]`
ONLY = re.compile(r"\W*(torch\.size|size|shape)?\W*", re.I)
SHAPES = re.compile(r"[\[(][^\[\]()]*[\])]")
BRACKETS = {"[": "]", "(": ")", "{": "}", "<": ">"}
SCALAR = re.compile(
    r"^\W*(?:a |is |-> *)*(scalar|0-?d(?:im)?(?: tensor)?|single (?:number|value))\b", re.I
)
LEAD = re.compile(
    r"^\s*(?:(?:the |of |output |result(?:ing)? |new |final )*(?:shapes?|sizes?|dims?|dimensions?)"
    r"(?: is| of [\w.]+)?\s*[:=]?\s*|(?P<label>[^\W\d][\w.]*)\s*[:=]\s*)",
    re.I,
)
DASHED = re.compile(r"^\s*(?P<label>[^\W\d]\w*)\s+[-–—]\s+(?=\S)")  # `q - b x t x d`
REALS = re.compile(r"(?:ℝ|\bR|\\mathbb\{R\})\s*\^\s*$")  # `q ∈ ℝ^{b×s×h}`
# Between two shapes: the second is not what this line makes.
ASIDE = re.compile(
    r"\b(not|no longer|instead of|rather than|unlike|broadcast\w*|needs?|expects?|requires?|since|"
    r"because|otherwise|would|was|were)\b",
    re.I,
)
SPREADS = re.compile(r"\bbroadcast", re.I)
ONE_DIM = re.compile(r"\b(dim|dimension|axis)\s*$", re.I)  # `over the last dim (keys)`
INDICES = frozenset("ijIJ")  # `(i, j) is how much token i looks at token j`
RANGE = re.compile(r"\b(in|within|between|range|interval|from)\W*$", re.I)
UNCHANGED = re.compile(
    r"^\W*(ditto|idem|unchanged|same\W*$|(the )?same (shape|size|as|dim|for|here|again)|likewise|"
    r"as (above|before)|"
    r"(keeps|preserves) (the )?(shape|size)|no change)\b|"
    r"\b(shapes?|sizes?|dims?|dimensions?) (is |are )?(still |stays? |remains? )?(the )?"
    r"(unchanged|same|kept|preserved)\b|"
    r"\b(same|unchanged) (shapes?|sizes?|dims?|dimensions?)\b",
    re.I,
)
PROSE = re.compile(
    r"\b(as|is|of|to|it|we|by|an|at|or|so|if|be|the|same|and|for|not|are|was|with|than|like)\b"
)
# A remark behind a shape without brackets: `b x t x c, c = n * d`, `b x t x t (t x t is broadcast)`
REMARK = re.compile(r"(?:[,;]|\s(?:where|with|and))\s*\w+\s*==?\s*[\w\s*/·×]+$|\s\([^()]*\)\s*$")
MAX_TEXT = 400  # of one line; what is longer is not read


@dataclass(frozen=True)
class Term:
    """One shape, and what it is said to be of."""

    dims: tuple[Expr, ...]
    text: str
    label: str = ""
    keyword: bool = False  # "shape", "size", an arrow, a label: surely meant as a shape
    count: str = ""  # `num_heads x [b, s, d]`


@dataclass(frozen=True)
class Stage:
    terms: tuple[Term, ...]
    joined: str = ""
    op: str = ""


@dataclass(frozen=True)
class Claim:
    """One chain, and where several are given as alternatives, the others."""

    stages: tuple[Stage, ...]
    line: int = 0
    others: tuple[Claim, ...] = ()
    told: bool = False  # in words, which may say that a shape is not of the result
    aside: bool = False  # behind words that set it against what the line makes
    unsure: bool = False

    @property
    def text(self) -> str:
        return " -> ".join(f" {s.joined} ".join(t.text for t in s.terms) for s in self.stages)

    def terms(self) -> list[Term]:
        own = [t for s in self.stages for t in s.terms]
        return own + [t for o in self.others for t in o.terms()]


@dataclass(frozen=True)
class Vocabulary:
    """Names of the function a comment stands in: its tensors, and its sizes."""

    tensors: Collection[str] = ()
    sizes: Collection[str] = ()

    def known(self, name: str) -> bool:
        plain = names.normal(name)
        return (
            len(plain) <= 2
            or names.known(name)
            or plain in self.sizes
            or name in self.sizes
            or names.near(plain, names.WORDS) is not None
            or names.near(plain, self.sizes) is not None
        )


def parse(lines: list[tuple[int, str]], vocabulary: Vocabulary) -> list[Claim]:
    """The claims of a comment of one or more lines (numbers and texts)."""
    found: list[list[Claim]] = []
    joined = _joined(lines)
    for number, text in joined:
        if len(text) > MAX_TEXT:
            found.append([Claim((), line=number, unsure=True)])
            continue
        text = text.replace("\\rightarrow", "→").replace("\\to", "→")
        found.append([replace(c, line=number) for c in _parse_text(text, vocabulary)])
    if sum(map(bool, found)) > 1:  # a sentence over several lines
        found = [
            [replace(c, told=c.told or _in_words(SHAPES.sub(" ", text), vocabulary)) for c in line]
            for line, (_, text) in zip(found, joined, strict=True)
        ]
    return [claim for line in found for claim in line]


def _joined(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """A line that begins with an arrow or an operator goes on with the line before."""
    joined: list[tuple[int, str]] = []
    for number, text in lines:
        if len(text) > MAX_TEXT:
            joined.append((number, text))
            continue
        starts = re.match(r"\s*(?:[-=]+>|→|⇒|@|×\s*[\[(]|\*\s*[\[(]|x\s*[\[(])", text)
        if joined and (starts or re.search(r"([-=]>|→|@|,)\s*$", joined[-1][1])):
            joined[-1] = (joined[-1][0], joined[-1][1] + " " + text)
        else:
            joined.append((number, text))
    return joined


def _parse_text(text: str, vocabulary: Vocabulary) -> list[Claim]:
    jax = re.sub(
        r"""\w+\[\s*\w*[Tt]ensor\s*,\s*["']([^"']+)["']\s*\]""",
        lambda m: "shape [" + ", ".join(m[1].split()) + "]",
        text,
    )
    if _explains(jax, vocabulary):
        return []
    if _garbled(jax, vocabulary):
        return [Claim((), unsure=True)]
    bare = _bare(jax, vocabulary)
    if bare:
        return bare
    spans = _spans(jax, vocabulary)
    if not spans:
        if SCALAR.search(jax):
            return [Claim((Stage((Term((), "scalar", keyword=True),)),))]
        unsure = _half_a_shape(jax, vocabulary) or UNCHANGED.search(jax)
        return [Claim((), unsure=True)] if unsure else []
    return _chains(jax, spans, vocabulary)


# --- shapes in brackets ---------------------------------------------------------------------------
@dataclass(frozen=True)
class _Span:
    start: int
    end: int
    term: Term
    op: str = ""


def _spans(text: str, vocabulary: Vocabulary) -> list[_Span]:
    spans, i = [], 0
    while i < len(text):
        end = _closing(text, i) if text[i] in BRACKETS else None
        if end is not None:
            found = _admit(text, i, end, vocabulary)
            if found:
                spans.append(found)
                i = end + 1
                continue
        i += 1
    return _without_indexing(text, spans)


def _without_indexing(text: str, spans: list[_Span]) -> list[_Span]:
    """Without the `p[b, i]` of a formula, where a shape stands for itself in the same comment."""
    formula = [
        s
        for s in spans
        if s.term.label
        and text[: s.end].endswith(s.term.label + s.term.text)
        and s.term.text.startswith("[")
        and all(len(n) == 1 for n in shape_names(s.term.dims))
    ]
    return [s for s in spans if s not in formula] or spans


def _closing(text: str, start: int) -> int | None:
    opener, closer, depth = text[start], BRACKETS[text[start]], 0
    if opener == "<" and start and text[start - 1] in "-=<":
        return None
    for i in range(start, min(len(text), start + 300)):
        depth += (text[i] == opener) - (text[i] == closer)
        if depth == 0:
            return i
    return None


def _admit(text: str, start: int, end: int, vocabulary: Vocabulary) -> _Span | None:
    """A bracket that is meant as a shape, or None."""
    inside, left, right = text[start + 1 : end], text[:start], text[end + 1 :]
    try:
        dims = parse_dims(inside)
    except NotADim:
        return None
    if len(dims) > 9:
        return None
    bracket = text[start]
    found = shape_names(dims)
    if not found and dims and RANGE.search(left):  # `all in [0, 1]`
        return None
    if not re.search(r"[,;|]", inside) and PROSE.search(inside):
        return None  # `[same as q]`
    glued = GLUED.search(left)
    label, op, begin = "", "", start
    if glued and not re.search(r"\^$|_$", left):
        word = glued[1]
        if SHAPE_WORD.search(word):
            if not dims and "." in word:  # `q.size() -> [..]`
                return None
            if word.rsplit(".", 1)[-1] in ("view", "reshape"):
                if not found or not all(vocabulary.known(n) for n in found):
                    return None
                op = word.rsplit(".", 1)[-1]
        elif (
            word in vocabulary.tensors
            and found
            and all(map(vocabulary.known, found))
            and (not found <= set(vocabulary.tensors))
        ):
            label = word
        elif word.lower() not in ("x", "and", "or", "to"):
            return None
        begin = start - len(word)
        keyword = True
    else:
        keyword = bool(KEYWORD.search(left)) and len(left.split()) <= 12
    if bracket == "(" and len(dims) == 1:
        if inside.rstrip().endswith(","):  # `(hidden,)` is a tuple, and no remark
            keyword = True
        elif ONE_DIM.search(left):
            return None
    arrow = bool(ARROW.search(left[-12:]) or ARROW.match(right.lstrip()[:3] or " "))
    sure = keyword or arrow
    if not _looks_meant(dims, found, bracket, sure, text, vocabulary):
        return None
    plain = text[start : end + 1]
    return _Span(begin, end + 1, Term(dims, plain, label, sure), op)


def _looks_meant(dims, found, bracket, sure, text, vocabulary: Vocabulary) -> bool:
    if not dims:
        return sure or len(text.split()) <= 2 or bracket == "["
    if (
        found
        and found <= set(vocabulary.tensors)
        and not any(names.concept(n) or n in vocabulary.sizes for n in found)
    ):
        return False
    if any(len(re.sub(r"[^_]", "", n)) > 3 for n in found):
        return False
    recognised = {n for n in found if vocabulary.known(n)}
    if found and found <= INDICES - set(vocabulary.sizes):
        return False
    if not found:
        if any(d[0] in ("...", "any") for d in dims) and ("any", "-1") not in dims:
            return sure or bracket == "["
        alone = text.strip().startswith((bracket,)) and text.strip().endswith(BRACKETS[bracket])
        return sure or (alone and (bracket == "[" or len(dims) > 1))
    if len(dims) == 1:
        if bracket == "[":
            return sure or bool(recognised)
        return sure or (
            bool(recognised)
            and len(text.split()) <= 3
            and (text.rstrip().endswith(",)") or names.concept(next(iter(found))))
        )
    if recognised == found:
        return True
    if sure or bracket == "[":
        return True
    return len(recognised) >= 2 and len(found - recognised) < len(dims)


def _half_a_shape(text: str, vocabulary: Vocabulary) -> bool:
    """`bs, query_seq_len, hidden]`: meant as a shape, but not readable as one."""
    if any(text.count(a) != text.count(b) for a, b in ("[]", "()")):
        words = [w for w in re.split(r"[,\[\]()\s:=]+", text) if w]
        return sum(bool(names.concept(w)) for w in words) >= 2 and "," in text
    return False


def _garbled(text: str, vocabulary: Vocabulary) -> bool:
    """`[batch, seq. hidden]`: a slip between two names, so that the shape cannot be read."""
    for inside in re.findall(r"[\[(]([^\[\]()]*)[\])]", text):
        words = re.findall(r"[^\W\d]\w*", inside)
        slip = re.fullmatch(r"\s*\w+(?:\s*[,.;]+\s*\w+)+\s*", inside) and re.search(
            r"\w\s*(?:\.\s|,\s*[.,]|\.,)", inside
        )
        if slip and len(words) > 1 and all(map(vocabulary.known, words)):
            return True
    return False


# --- shapes without brackets --------------------------------------------------------------------
def _bare(text: str, vocabulary: Vocabulary) -> list[Claim]:
    """`b x s x h`, `batch, seq, hidden` or `b s (n d) -> b s n d`, with no more than a remark."""
    remark = REMARK.search(text)
    cut = text[: remark.start()].rstrip() if remark else ""
    if remark and (re.search(r"=", remark[0]) or not _bare_whole(text, vocabulary)):
        found = _bare_whole(cut, vocabulary) if not ARROW.search(remark[0]) else []
        if found and all(len(t.dims) > 1 for c in found for t in c.terms()):
            return found
    return _bare_whole(text, vocabulary)


def _bare_whole(text: str, vocabulary: Vocabulary) -> list[Claim]:
    """Shapes without brackets, and nothing else."""
    segments = [s.strip() for s in ARROW.split(text)]
    first = segments[0]
    lead = LEAD.match(first)
    dash = DASHED.match(first)
    if dash and (dash["label"] in vocabulary.tensors or not vocabulary.known(dash["label"])):
        lead = dash
    label = ""
    if lead and lead.end():
        label = lead["label"] or ""
        segments[0] = first[lead.end() :].strip()
    stages = []
    for i, segment in enumerate(segments):
        segment = segment.strip(" .;:")
        if i and (found := re.match(r"(\w+)\s*:\s*(.*)", segment)):
            segment = found[2]
        if not segment and i == 0 and len(segments) > 1:
            continue
        here = label if i == 0 else ""
        terms = _bare_terms(segment, here, vocabulary)
        if not terms:
            return []
        sign = "@" if "@" in segment else ","
        stages.append(Stage(terms, sign if len(terms) > 1 else ""))
    if (
        label
        and label not in vocabulary.tensors
        and len(stages) == 1
        and (not re.search(r"[,×]|\sx\s", segments[0]))
    ):
        return []
    bare = any(not _enclosed(t.text) for s in stages for t in s.terms)
    return [Claim(tuple(stages))] if bare else []  # with brackets alone more can be told


def _enclosed(text: str) -> bool:
    """`[b, t]` is a shape in brackets; `(b h) t t` is not."""
    return text[0] in BRACKETS and _closing(text, 0) == len(text) - 1


def _bare_terms(text: str, label: str, vocabulary: Vocabulary) -> tuple[Term, ...]:
    """One shape, or several: `b h s d, b h d s`, `b,s,h @ b,h,s`."""
    spans = _spans(text, vocabulary)  # `[b, t, n * d] -> b x t x t`
    if len(spans) == 1 and ONLY.fullmatch(text[: spans[0].start] + text[spans[0].end :]):
        return (replace(spans[0].term, label=label, keyword=True),)
    dims = _bare_dims(text, vocabulary)
    if dims is not None:
        return (Term(dims, text, label, True),)
    for sign in ("@", ","):
        parts = [part.strip() for part in split_top(text, sign)]
        found = [_bare_dims(part, vocabulary) for part in parts]
        if len(parts) > 1 and None not in found:
            return tuple(Term(d, p, label, True) for d, p in zip(found, parts, strict=True))
    return ()


def _bare_dims(text: str, vocabulary: Vocabulary) -> tuple[Expr, ...] | None:
    if not text or re.search(r"[\[\]{}@]", text) or len(text) > 120:
        return None
    crosses, commas = len(split_crosses(text)) > 1, len(split_top(text, ",")) > 1
    if not crosses and not commas:
        words = re.findall(r"\w+", text)
        if sum(not w.isdigit() for w in words) < 2 or not all(vocabulary.known(w) for w in words):
            return None
        short = sum(len(w) <= 2 for w in words)
        if not (short >= max(2, len(words) - 1) or "_" in text or "(" in text):
            return None
        if any(w in ("is", "of", "to", "in", "it", "we", "by", "as", "a", "an") for w in words):
            return None
    if commas and text.startswith("(") and text.endswith(")"):
        return None
    try:
        dims = parse_dims(text)
    except NotADim:
        return None
    found = shape_names(dims)
    if len(dims) < 2 or not found or not all(vocabulary.known(n) for n in found):
        return None
    if found <= set(vocabulary.tensors) and not any(n in vocabulary.sizes for n in found):
        return None
    return dims


# --- what stands between --------------------------------------------------------------------------
def _chains(text: str, spans: list[_Span], vocabulary: Vocabulary) -> list[Claim]:
    claims: list[list[Stage]] = []
    joins: list[str] = []  # how each claim follows the one before: "" or "or"
    previous_end, equals_ok = 0, False
    asides: list[bool] = []  # whether each claim is set against the one before
    for span in spans:
        glue = REALS.sub("", WRAPPED.sub("", text[previous_end : span.start]))
        first = not claims
        kind, op, joined = _kind(glue, first, equals_ok)
        op = op or span.op
        term = _labelled(span.term, glue, op, kind)
        if first or kind in ("new", "or"):
            claims.append([Stage((term,), "", op if ARROW.search(glue) else span.op)])
            joins.append("or" if kind == "or" and not first else "")
            asides.append(not first and bool(ASIDE.search(glue)))
            equals_ok = False
        elif kind == "join":
            last = claims[-1][-1]
            claims[-1][-1] = replace(last, terms=(*last.terms, term), joined=joined)
            equals_ok = True
        elif SPREADS.search(glue):  # by a later line, or by this one
            claims.append([*claims[-1], Stage((term,), "", op)])
            joins.append("or")
            asides.append(False)
        else:
            claims[-1].append(Stage((term,), "", op))
        previous_end = span.end
    told = bool(OF_INPUT.search(text[: spans[0].start])) or any(
        _in_words(text[a.end : b.start], vocabulary) for a, b in zip(spans, spans[1:], strict=False)
    )
    made = [Claim(tuple(c), told=told, aside=a) for c, a in zip(claims, asides, strict=True)]
    return _with_alternatives(made, joins)


def _in_words(glue: str, vocabulary: Vocabulary) -> bool:
    """Whether more stands there than the name of a tensor, or a label."""
    words = re.findall(r"(?!shape|size|dim)[^\W\d]\w+", re.sub(r"[\w.]+['\"`]?\s*[:=]", "", glue))
    return any(w not in vocabulary.tensors for w in words)


def _with_alternatives(claims: list[Claim], joins: list[str]) -> list[Claim]:
    merged: list[Claim] = []
    for claim, join in zip(claims, joins, strict=True):
        if join == "or" and merged:
            merged[-1] = replace(merged[-1], others=(*merged[-1].others, claim))
        else:
            merged.append(claim)
    return _comma_operands(merged)


def _comma_operands(claims: list[Claim]) -> list[Claim]:
    """`[..], [..] -> [..]`: shapes before the arrow that only a comma parts are its operands."""
    if len(claims) < 2 or len(claims[-1].stages) < 2 or any(len(c.stages) > 1 for c in claims[:-1]):
        return claims
    if any(c.others for c in claims):
        return claims
    terms = tuple(t for c in claims[:-1] for t in c.stages[0].terms)
    last = claims[-1]
    first = replace(last.stages[0], terms=(*terms, *last.stages[0].terms), joined=",")
    return [replace(last, stages=(first, *last.stages[1:]))]


def _kind(glue: str, first: bool, equals_ok: bool) -> tuple[str, str, str]:
    """How a shape follows what stands before it: ("arrow" | "join" | "or" | "new", op, sign)."""
    arrows = list(ARROW.finditer(glue))
    if arrows:
        outside = ARROW.sub(" ", glue)
        words = list(re.findall(r"\.?([^\W\d]\w*)", re.sub(r"\([^)]*\)", "", outside)))
        op = next((w for w in words if w.lower() not in ("the", "then", "shape", "a", "is")), "")
        if first:
            return "new", op, ""
        return "arrow", op, ""
    if first:
        return "new", "", ""
    plain = re.sub(r"""['"`]?[\w.]+(\^?T|\.T)?['"`]?\s*[:=]?\s*$""", "", glue)
    for candidate in (glue, plain):
        found = PRODUCT.match(candidate)
        if found:
            return "join", "", found[1].lower().replace("×", "x").replace("·", "x")
    sign = re.match(
        r"""\s*([@*×+]|x\s)\s*['"`(]?[\w.^]*(\([^)]*\))?['"`]?\s*[:=]?\s*(shape)?\s*$""", glue
    )
    if sign:
        return "join", "", sign[1].strip().replace("×", "x")
    if ARROW_WORD.match(glue):
        return "arrow", "", ""
    if equals_ok and re.match(r"^\s*==?\s*['\"`]?\w*['\"`]?\s*:?\s*$", glue):
        return "arrow", "", ""
    if re.match(r"^\s*/\s*$", glue) or ALTERNATIVE.search(glue):
        return "or", "", ""
    if re.match(r"^\s*(and|with)\s*$", glue):
        return "new", "", ""
    return "new", "", ""


def _labelled(term: Term, glue: str, op: str, kind: str) -> Term:
    if term.label:
        return term
    count = COUNT.search(glue)
    if count and kind != "join" and not re.search(r"[\])}]\s*[x×*]\s*$", glue):
        return replace(term, count=count[1])
    of = re.search(r"(?:shape|size|dims?)\s+of\s+[`'\"]?([\w.]+)[`'\"]?\s*(?:is|:|=)?\s*$", glue)
    found = of or LABEL.search(glue)
    if not found:
        return term
    word = found[1]
    word = re.sub(r"\.(shape|size)$", "", word)
    if word.lower() in (
        "shape",
        "size",
        "dims",
        "dim",
        "is",
        "of",
        "and",
        "or",
        "with",
        "x",
    ) and not (word == "x" and found.re is LABEL and found[2]):
        before = LABEL.search(re.sub(r"[\w.]+\s*[:=]?\s*$", "", glue)) if word == "shape" else None
        return replace(term, label=before[1]) if before else term
    if word == op and found.re is LABEL and not found[2]:
        return term
    return replace(term, label=word)


LEGEND = re.compile(
    r"(?<![\w.])([^\W\d]\w*)\s*(?:=|:|\bis\b|stands for|denotes|means|-|—)\s*(?:the |an? )?"
    r"([^\W\d][\w ]*(?:\s*(?:[*/·×+-]|//)\s*[\w ]+)*)",
    re.I,
)


def _explains(text: str, vocabulary: Vocabulary) -> bool:
    """`B = batch size, T = tokens`: names with their meanings, and no shape."""
    parts = [p for p in re.split(r"[,;]", text) if p.strip()]
    told = [p for p in parts if re.match(r"\W*\w+\s*(=|:|\bis\b)\s*\w", p)]
    return len(parts) > 1 and len(told) == len(parts) and len(legends(text, vocabulary)) > 1


def legends(text: str, vocabulary: Vocabulary) -> dict[str, Expr]:
    """`B = batch size, d: hidden / num_heads`: names that the text explains by known words."""
    found: dict[str, Expr] = {}
    for match in LEGEND.finditer(text):
        name, words = match[1], re.sub(r"\s+(and|is|in|of the|per|for)\s.*$", "", match[2]).strip()
        if name in vocabulary.tensors or names.concept(name) or len(name) > 12:
            continue
        try:
            dims = parse_dims(words)
        except NotADim:
            continue
        if (
            len(dims) == 1
            and dims[0][0] != "any"
            and (used := shape_names(dims))
            and all(names.concept(n) or n in vocabulary.sizes for n in used)
            and name not in used
        ):
            found.setdefault(name, dims[0])
    return found
