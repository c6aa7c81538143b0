"""A comment as a whole: a row of shapes for a row of tensors, and a heading over a paragraph.

The functions are given the `judge._Room` of the comment.
"""

from __future__ import annotations

from autograder.shapes.match import results
from autograder.shapes.places.attach import Sighting
from autograder.shapes.text.lexer import tokens
from autograder.shapes.tracer import Stmt, flat
from autograder.shapes.wording import Verdict, cannot_tell, spelled, what_it_makes


def row(sighting: Sighting, stmt: Stmt, room) -> Verdict:
    """As many shapes as tensors, and one of them does not fit."""
    text = room.text(stmt)
    value = room.matcher.node(stmt).text if stmt.kind == "return" else ""
    mine = {t.text.split(".")[0] for t in tokens(value)}
    named = room.tensors - set(flat(stmt.targets)) - mine
    for claim in sighting.claims:
        unproven = room.case(claim, sighting, stmt).unproven
        why = f"nothing proves what `{unproven[0]}` stands for" if unproven else ""
        if claim.unreadable or {t.label for t in claim.terms()} & named:
            why = "it is not clear which tensor is meant"
        if why:
            return cannot_tell(stmt.line, text, sighting.text, why)
    runs = room.runs[stmt.id]
    if _as_elsewhere(sighting, stmt, room):
        return cannot_tell(stmt.line, text, sighting.text, "a name may stand for two sizes")
    shapes = [results(stmt, e) for e in runs]
    is_ = ", ".join(spelled(runs, shapes, room.scope, sighting.claims))
    said = ", ".join(c.text for c in sighting.claims)
    message = f"Line {stmt.line}: {what_it_makes(stmt)} is {is_}; your comment says {said}."
    return Verdict(stmt.line, text, sighting.text, "false", message, deducts=True)


def _as_elsewhere(sighting: Sighting, stmt: Stmt, room) -> bool:
    """Whether a letter stands for another size here as it does, alone, behind another line."""
    for e in room.runs[stmt.id][:1]:
        for claim, shape in zip(sighting.claims, results(stmt, e), strict=False):
            found = room.matcher.apart(claim.terms()[0].dims, shape, e)
            if found is not None and found[1] in room.apart.get((e.config, found[0]), ()):
                return True
    return False


def heading(sighting: Sighting, stmt_id: int, room) -> tuple[list[Verdict], set[int]]:
    """`# Shapes: [b, t]` over a paragraph: only what is false of every tensor is said."""
    stmt, found = room.stmts[stmt_id], []
    for claim in sighting.claims if stmt.line > sighting.line else ():
        first = tokens(sighting.only(claim, room.tensors).text)[:2]
        kinds = [t.kind for t in first if len(claim.terms()) == 1]
        named = kinds[:1] in (["name"], ["times"]) and kinds[1:] in (["arrow"], ["is"])
        if named and first[0].text not in room.tensors:  # `x` is a sign too
            named = not room.case(claim, sighting, stmt).in_code(first[0].text)
        if named or kinds[:1] == ["shape"]:
            found.append(room.decide(claim, sighting, stmt, []))
    found = [v for v in found if v.verdict == "false"]
    return found, {stmt_id} if found else set()
