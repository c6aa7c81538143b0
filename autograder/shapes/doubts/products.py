"""What a comment says of a product that the line itself does not show.

Each function is a fact for `facts.FACTS`: it gives the reason for its doubt, or an empty text.
"""

from __future__ import annotations

from collections import Counter

from autograder.shapes.doubts.case import Case
from autograder.shapes.recording import Execution
from autograder.shapes.text.lexer import Token, plain, tokens
from autograder.shapes.tracer import TURNS

TURNED = (*TURNS, "t", "transpose", "permute")  # `[b, t, d].T`, `[b, t, d].transpose(1, 2)`


def arrows_of_the_whole(case: Case) -> str:
    """`[b, t, d] x ([b, s, d] -> [b, d, s])`: such an arrow is of one operand."""
    depth, arrows = 0, [0]  # how many brackets are around each
    brackets: Counter[int] = Counter()  # by how many are around them
    for token in tokens(plain(case.sighting.text)):
        if token.kind == "open":
            brackets[depth] += 1
            depth += 1
        elif token.kind == "close":
            depth = max(0, depth - 1)
        elif token.kind == "arrow":
            arrows.append(depth)
    beside = any(count > 1 and level < max(arrows) for level, count in brackets.items())
    return "an arrow in brackets is of one operand" if beside else ""


def operands_as_they_are_taken(case: Case) -> str:
    """`[b, t, d] @ [b, s, d].T`: an operand is told as it was before it is turned."""
    terms = [t for stage in case.claim.stages[:-1] if len(stage.terms) > 1 for t in stage.terms]
    found = tokens(plain(case.sighting.text))
    ends = {t.text[-1:] for t in terms}
    turned = any(
        one.text in ends and _turns(two, three)
        for one, two, three in zip(found, found[1:], [*found[2:], *found[-1:]], strict=False)
    )
    return "an operand is told as it was before it is turned" if turned else ""


def _turns(sign: Token, name: Token) -> bool:
    """Whether what stands behind a shape says that it is turned: `.T`, `^T`."""
    said = name.text if sign.text in (".", "^") else sign.text
    return sign.glued and said in TURNED


def a_product_that_is_seen(case: Case) -> str:
    """`self.project(x)  # [b, t, d] @ [d, d] -> [b, t, d]`: what a call does inside is not seen."""
    if not (_of_a_product(case) and case.ends_right()):
        return ""
    calls = case.matcher.node(case.stmt).kind == "Call"
    hidden = calls and not _multiplies(case, case.runs)
    return "what the call multiplies is not seen" if hidden else ""


def a_product_of_this_line(case: Case) -> str:
    """`# [b, 1, d] @ [b, d, 1]` above two lines: the second one multiplies, and not the first."""
    if case.sighting.trailing or not _of_a_product(case) or _multiplies(case, case.runs):
        return ""
    below = {*case.sighting.stmts, *case.sighting.block}
    later = (runs for stmt, runs in case.room if stmt.id in below and stmt.line > case.stmt.line)
    return "a line further down multiplies" if any(_multiplies(case, r) for r in later) else ""


def _of_a_product(case: Case) -> bool:
    """Whether the claim tells operands, and what comes of them."""
    return any(len(stage.terms) > 1 for stage in case.claim.stages[:-1])


def _multiplies(case: Case, runs: list[Execution]) -> bool:
    return any(next(iter(case.matcher.operations(e)), None) is not None for e in runs)


PRODUCTS = (
    arrows_of_the_whole,
    operands_as_they_are_taken,
    a_product_that_is_seen,
    a_product_of_this_line,
)
