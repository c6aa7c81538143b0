"""Of the statements that a comment may be about, the one that is meant.

The functions are given the `judge._Room` of the comment: the statements of its function, and what
they made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autograder.shapes.places.attach import Sighting
from autograder.shapes.recording import Execution, tensors
from autograder.shapes.text.lexer import plain, tokens
from autograder.shapes.text.reader import Claim
from autograder.shapes.text.shapes_in_text import Term
from autograder.shapes.tracer import Stmt, flat

STEPS = 4  # statements that a chain above them may go through
FEW, SENTENCE = 2, 4  # words before a shape that are no sentence, and that may be a thought


# --- the side -------------------------------------------------------------------------------------
def vote(sighting: Sighting, room) -> str:
    """The side of its statement on which a comment stands: "above", "below", or nothing.

    It is known of one that is true of the line on one side only.
    """
    if sighting.trailing or sighting.place in ("loose", "docstring"):
        return ""
    if room.stmts[sighting.stmts[0]].kind == "def":
        return ""
    first = {i for i in sighting.stmts if room.stmts[i].line > sighting.line}

    def holds(stmts) -> bool:
        some = any(room.holds(c, sighting, i) for c in sighting.claims for i in stmts)
        return some or any(room.all_hold(sighting, i) for i in stmts)

    below, above = holds(first), holds(set(sighting.stmts) - first)
    return "" if below == above else "above" if below else "below"


def side_of(votes: Mapping[str, int]) -> str:
    """The side on which comments stand always; empty where nobody can say."""
    above, below = votes.get("above", 0), votes.get("below", 0)
    if above >= 2 and below * 10 <= above:
        return "above"
    return "below" if below >= 2 and above * 10 <= below else ""


def on_its_side(sighting: Sighting, side: str, room) -> Sighting:
    """A comment between lines that make tensors, or the same names, about the side that is meant.

    One that is true of the other line alone stays with both, where that line has no comment of its
    own.
    """
    above = side == "above"
    mine = tuple(i for i in sighting.stmts if (room.stmts[i].line > sighting.line) == above)
    apart = sighting.place == "between" or (sighting.place == "named" and len(mine) == 1)
    if not apart or not side or not set(mine) & room.makers or room.heads & {*sighting.stmts}:
        return sighting
    of = {i: room.tellers.get(i, []) for i in sighting.stmts}
    alone = [i for i in set(sighting.stmts) - set(mine) if of[i] == [sighting]]
    if alone and not any(sighting in of[i] for i in mine):
        return sighting
    place = side if sighting.place == "between" else "named"
    return replace(sighting, stmts=mine, place=place, block=sighting.block * above)


# --- the statement --------------------------------------------------------------------------------
def likeliest(sighting: Sighting, votes: Mapping[str, int], room) -> int:
    """The statement that a comment is about, where it is true of none."""
    stmts = room.stmts
    labels = {t.label for c in sighting.claims for t in c.terms() if t.label}
    up = votes.get("below", 0) > votes.get("above", 0)
    own = [i for i in sighting.stmts if labels & set(flat(stmts[i].targets))]
    if own and stmts[sighting.stmts[0]].kind != "def":  # what comes in is told first
        if sighting.place == "named":
            own.sort(key=lambda i: (stmts[i].line < sighting.line) != up)
        after = {i: [e.after.get(n) for e in room.runs[i] for n in labels] for i in own}
        one = [i for i in own if any(len(tensors(v)) == 1 for v in after[i])]
        return (one or own)[0]
    if sighting.place == "loose":
        return sighting.stmts[-1]
    asked = [*sighting.stmts]
    if sighting.place == "between":
        asked.sort(key=lambda i: (stmts[i].line < sighting.line) != up)
    elif sighting.place != "above" or (
        len(sighting.block) != 2 and all(len(c.stages) < 2 for c in sighting.claims)
    ):
        return asked[0]
    else:  # `[b, t, h, d]` above `b, t, d = x.shape` and one more line
        asked += sighting.block
    return next((i for i in asked if not _takes_sizes(i, room)), asked[0])


def _takes_sizes(stmt_id: int, room) -> bool:
    """Whether a line takes only sizes: `b, t, d = x.shape`."""
    targets = flat(room.stmts[stmt_id].targets)
    return any(e.size(t) is not None for e in room.runs[stmt_id] for t in targets)


def paragraph(sighting: Sighting, room) -> list[tuple[int, list[Execution]]]:
    """The statements that go on from what is below a chain, each with all that ran up to it.

    `[b, t, d] -> [b, t, h, k] -> [b, h, t, k]` above `x = x.view(..)`, `x = x.mT`.
    """
    chain = len(sighting.claims) == 1 and len(sighting.claims[0].stages) > 1
    if not chain or sighting.place not in ("above", "between") or not sighting.block:
        return []
    first, *more = sighting.block[:STEPS]
    found, made, so_far = [], set(flat(room.stmts[first].targets)), room.runs[first]
    for i in more:
        calls = [[(e.config, e.unit) for e in runs] for runs in (so_far, room.runs[i])]
        read = {t.text.split(".")[0] for t in tokens(room.matcher.node(room.stmts[i]).text)}
        if not (made & read) or calls[0] != calls[1]:
            break
        both = zip(so_far, room.runs[i], strict=True)
        so_far = [
            replace(b, before=a.before, events=[*a.events, *b.events], settled={}) for a, b in both
        ]
        made = set(flat(room.stmts[i].targets))
        found.append((i, so_far))
    return found


def operations(
    claim: Claim, sighting: Sighting, stmt_id: int, room
) -> list[tuple[Stmt, list[Execution]]]:
    """The statement as it is up to each operation with which a line of the comment begins.

    `reshape: -> [b, t, h, k]`, `permute: -> [b, h, t, k]` above `x.reshape(..).permute(..)`.
    """
    if sighting.trailing or not sighting.alone(claim) or not claim.stages:
        return []
    row = next((text for line, text in sighting.rows if line == claim.line), "")
    words = {t.text for t in tokens(row[:40])[:1]} - room.tensors
    nodes, stmt, runs = room.matcher.traced.nodes, room.stmts[stmt_id], room.runs[stmt_id]
    ops = {n for e in runs[:1] for n, v in e.events if nodes[n].op in words and tensors(v)}
    found = []
    for node in sorted(ops):
        ends = [
            max((i for i, (n, _) in enumerate(e.events) if n == node), default=-1) for e in runs
        ]
        if min(ends) >= 0:
            part = replace(stmt, value=node, targets=[], receiver=None)
            cut = [replace(e, events=e.events[: i + 1]) for e, i in zip(runs, ends, strict=True)]
            found.append((part, cut))
    return found


# --- what is told beside it -----------------------------------------------------------------------
def of_another(claim: Claim, sighting: Sighting, stmt: Stmt, execution: Execution) -> Term | None:
    """`# mask: [b, t]` in a line of a block for itself: of that tensor, and not of the result."""
    one = len(claim.stages) == 1 and len(claim.terms()) == 1
    if sighting.trailing or not (one and sighting.alone(claim)):
        return None
    term = claim.stages[0].terms[0]
    known = tensors(execution.before.get(term.label)) and term.label not in flat(stmt.targets)
    return term if known else None


def left_open(sighting: Sighting, case, true: list[Claim], room) -> str:
    """Why it is open which line a claim is about, where others of its comment are true or not."""
    claim, stmt = case.claim, case.stmt
    told = true and beside_a_true_one(claim, sighting, stmt, room.tensors)
    told = told and case.last.label not in case.returned()  # `out: [..], probs: [..]`
    if sighting.on_a_line and in_a_sentence(sighting, case):
        return "the words around it leave open what is meant"
    thought = true and claim.words > SENTENCE and not sighting.trailing
    if thought or (told and not (sighting.alone(claim) and case.nowhere)):
        return "another shape in this comment is true"
    if sighting.on_a_line and stmt.id in room.told and case.looser():
        return "the line has a comment of its own"
    if in_prose(sighting, case):
        return "it may tell of several steps"
    if sighting.place == "loose" and case.looser():
        return "it may be about another line"
    return ""


def in_a_sentence(sighting: Sighting, case) -> bool:
    """Whether many words lead to a shape in its line, and no name or word for a shape: it may tell
    of what was, will be or could be."""
    first = case.claim.stages[0].terms[0]
    row = next((text for line, text in sighting.rows if line == case.claim.line), "")
    words = [t for t in tokens(plain(row).partition(first.text)[0]) if t.word]
    named = case.stmt.kind == "def" or case.last.label in flat(case.stmt.targets)
    sure = named or any(t.sure for t in case.claim.terms())
    return min(len(words), case.claim.words) >= SENTENCE and not sure


def in_prose(sighting: Sighting, case) -> bool:
    """Whether a comment of several lines may tell a thought, or several steps.

    Not where one line of it has shapes, with few words; nor where a line has a name for its shape,
    or tells what comes out. A chain beside other shapes, with a right end, may be of an item.
    """
    claim, stmt = case.claim, case.stmt
    of_it = stmt.kind == "def" or case.part or sighting.place == "loose"  # by its name
    of_it = of_it or case.out_of_order()  # it has all steps of this line
    if not sighting.on_a_line or len(sighting.rows) == 1 or of_it:
        return False
    plain = not claim.tail and claim.words <= FEW
    if len({c.line for c in sighting.claims if c.stages}) == 1:
        return not plain
    if len(claim.stages) > 1 and case.ends_right():
        return True
    named = all(t.label for t in claim.terms()) and plain and sighting.alone(claim)
    named = named or sighting.by_itself(claim, case.tensors) or claim.role == "output"
    return not named and case.last.label not in flat(stmt.targets)


def beside_a_true_one(claim: Claim, sighting: Sighting, stmt: Stmt, known) -> bool:
    """Whether a claim may be of something else, since another one in the comment is true.

    `# [b, n, n], [b, n, d]`: an operand perhaps, `# [b, t, d] ([b, d, t] for the next)`. One behind
    `out:`, or behind the name of what the line makes, is of the same; a line of a block that names
    another tensor is of that one.
    """
    own = {t.label for t in claim.terms()} & set(flat(stmt.targets))
    alone = sighting.by_itself(claim, known)
    if alone and not own:
        return False
    if sighting.comes_in(claim):
        return True
    if sighting.led_to(claim):
        return False
    return not alone and claim.role != "output" and not own
