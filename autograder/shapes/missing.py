"""Which statements ask for a comment on their shape, and which have one that may be theirs."""

from __future__ import annotations

import ast

from autograder.shapes.doubts.facts import NEAR
from autograder.shapes.match import as_many, results
from autograder.shapes.places.attach import Sighting
from autograder.shapes.places.clear import SHAPES, is_clear, words_of
from autograder.shapes.places.layout import MAKES
from autograder.shapes.places.told_before import is_told
from autograder.shapes.places.told_elsewhere import is_told_elsewhere
from autograder.shapes.recording import Execution, Sequence
from autograder.shapes.text.comments import Given
from autograder.shapes.text.lexer import tokens
from autograder.shapes.tracer import TURNS, Stmt, flat, syntax_of, trace
from autograder.shapes.wording import UNKNOWN, Verdict, spelled

# What gives the same tensor again: of another kind, in another place, or on its own.
KEEPS = {"to", "cpu", "cuda", "detach", "clone", "contiguous"}
KEEPS |= {"float", "double", "half", "long", "int", "bool"}
NUMBERS = {"data"}  # of a parameter


def needs_one(stmt: Stmt, runs: list[Execution], lines: list[str], given: Given) -> bool:
    """Whether a statement makes a tensor: not in place, no number, no other name for one."""
    if stmt.kind not in ("assign", "return") or stmt.alias or stmt.receiver is not None:
        return False
    if lines[stmt.line - 1].split("#")[0].strip() in given.code or _only_names(stmt, lines):
        return False
    return any(s for e in runs for s in results(stmt, e))  # without dimensions it asks for nothing


def _only_names(stmt: Stmt, lines: list[str]) -> bool:
    """`return (att, probs) if flag else att`, `kept = weights.detach()`: nothing new is made."""
    node = syntax_of(stmt, lines)
    value = getattr(node, "value", None)
    made = ast.Call | ast.BinOp | ast.Subscript | ast.ListComp | ast.UnaryOp
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "getattr":
        return True
    if isinstance(node, ast.Assign) and _is_itself(value):
        return True
    return value is not None and not any(
        isinstance(n, made) or (isinstance(n, ast.Attribute) and n.attr in TURNS)
        for n in ast.walk(value)
    )


def _is_itself(value: ast.expr) -> bool:
    """`weights.detach()`, `next(self.parameters()).data`: what is there already, on its own or in
    another place."""
    calls = 0
    while isinstance(of := getattr(value, "func", value), ast.Attribute):
        if of.attr not in (KEEPS if of is not value else NUMBERS):
            return False
        value, calls = of.value, calls + 1
    is_next = isinstance(value, ast.Call) and getattr(value.func, "id", "") == "next"
    return is_next or (calls > 0 and isinstance(value, ast.Name))


def lacking(described: set[int], room) -> list[Verdict]:
    """The statements that make a tensor and that no comment can be about."""
    found, described, order = [], set(described), room.order
    for stmt, after in zip(order, [*order[1:], None], strict=False):
        if not room.needs_one(stmt):
            continue
        room.source.needed += 1
        if stmt.id in described or covered(stmt, room) or _is_printed(stmt, room):
            continue
        if (after and after.id in described and _is_it(after, stmt, room)) or _is_the_begin(
            stmt, room
        ):
            described.add(stmt.id)
            continue
        if is_told(stmt, after, room) or is_told_elsewhere(stmt, room):
            continue
        if _is_a_row(stmt, room) or _is_of_a_row(stmt, room):
            continue
        text, runs = room.text(stmt), room.runs[stmt.id]
        message = f"Line {stmt.line}: `{text}` makes a tensor; its shape is not in a comment."
        shapes = [results(stmt, e) for e in runs]
        proposal = ", ".join(spelled(runs, shapes, room.scope, unknown=UNKNOWN))
        clear = is_clear(stmt, after, room)
        found.append(
            Verdict(stmt.line, text, "", "missing", message, proposal=proposal, clear=clear)
        )
    return found


def _is_a_row(stmt: Stmt, room) -> bool:
    """Whether several tensors are kept by one name: a tuple or a list is no tensor."""
    if stmt.kind != "assign" or len(stmt.targets) != 1 or not isinstance(stmt.targets[0], str):
        return False
    values = [e.last(stmt.value) for e in room.runs[stmt.id] if e.finished]
    return bool(values) and all(isinstance(value, Sequence) for value in values)


def _is_of_a_row(stmt: Stmt, room) -> bool:
    """Whether it names one of several things that are kept by one name: `y = found[-1]`,
    `y = state["logits"]`."""
    node = room.matcher.node(stmt)
    if stmt.kind != "assign" or node.kind != "Subscript" or not node.operands:
        return False
    of = room.source.traced.nodes[node.operands[0]]
    values = [e.last(node.operands[0]) for e in room.runs[stmt.id] if e.finished]
    several = bool(values) and all(v is None or isinstance(v, Sequence) for v in values)
    return several and of.kind in ("Name", "Attribute")


def _is_it(after: Stmt, stmt: Stmt, room) -> bool:
    """Whether what follows returns what this one makes, and nothing else: `return x  # [b, t]`."""
    between = room.source.lines[stmt.end_line : after.line - 1]
    touches = after.kind == "return" and not any(map(str.strip, between))
    own = [name for name in flat(stmt.targets) if not name.startswith(("self.", "_"))]
    return touches and [room.matcher.node(after).text] == own


def _is_the_begin(stmt: Stmt, room) -> bool:
    """Whether what takes it next has a comment that begins with what comes in: `[b, t, f] -> ..`
    between the two, or behind the second."""
    own = set(flat(stmt.targets))
    later = (s for s in room.order if s.line > stmt.end_line)
    taker = next((s for s in later if own & words_of(s, room)), None)
    if taker is None:
        return False
    shapes = [len(s) for e in room.runs[stmt.id] for s in results(stmt, e)]
    told = [s for s in room.tellers.get(taker.id, ()) if s.trailing or stmt.end_line < s.line]
    begins = (c.stages[0].terms for s in told for c in s.claims if len(c.stages) > 1)
    return any(len(term.dims) in shapes for terms in begins for term in terms)


def covered(stmt: Stmt, room) -> bool:
    """Whether a comment of its own line may be about this statement too."""
    for sighting in (*room.sightings, *room.homeless):
        if sighting.place == "docstring" and room.stmts[sighting.stmts[0]].kind == "return":
            text = room.source.lines[sighting.line - 1].strip()
            if stmt.id in sighting.stmts and text not in room.source.given.lines:
                return True  # `Returns: [b, t, d]`
            continue
        if sighting.trailing or not _in_a_row(sighting, stmt, room):
            if sighting.trailing and stmt.line <= sighting.line <= stmt.end_line:
                return True
            if not sighting.trailing and _of_its_name(sighting, stmt, room):
                return True
            if not sighting.trailing and _of_all_above(sighting, stmt, room):
                return True
            continue
        about = (*sighting.stmts, *sighting.block)
        if stmt.id in about and as_many(sighting, stmt, room):
            return True  # one comment above several lines, or between two
        if sighting not in room.placed and (stmt.id in about or not about):
            return True
        own = set(flat(stmt.targets))
        named = own & {t.text for t in tokens(sighting.text) if t.word}
        for claim in sighting.claims:
            labels = {t.label.split(".")[0] for t in claim.terms()} & room.tensors
            if (named or not labels - own) and room.holds(claim, sighting, stmt.id):
                return True
    return False


def _is_printed(stmt: Stmt, room) -> bool:
    """Whether a line below, before the name is made again, holds a `print` of its shape that does
    not run any more, with what it printed: `# print(x.size())  # torch.Size([2, 3])`."""
    own = set(flat(stmt.targets))
    again = [s.line for s in room.order if s.line > stmt.end_line and own & set(flat(s.targets))]
    below = room.source.lines[stmt.end_line : min([*again, stmt.end_line + 2 * NEAR]) - 1]
    asked = {f"{name}.{shape}" for name in own for shape in SHAPES}
    for line in (text.strip() for text in below):
        found = tokens(line) if line.startswith("#") else []
        printed = any(t.text == "print" for t in found[:2])
        if printed and asked & {t.text for t in found} and any(t.kind == "number" for t in found):
            return True
    return False


def _of_its_name(sighting: Sighting, stmt: Stmt, room) -> bool:
    """Whether a line below tells what the statement has made by its name, `x: [b, t]`, also where
    the name is made again before that."""
    own = set(flat(stmt.targets))
    told = [c for c in sighting.claims if c.stages and {t.label for t in c.terms()} & own]
    below = stmt.end_line < sighting.line
    return below and any(room.holds(c, sighting, stmt.id) for c in told)


def _of_all_above(sighting: Sighting, stmt: Stmt, room) -> bool:
    """Whether a comment says that it is about the lines above: `all above are [b, t, d]`."""
    words = {t.text.lower() for t in tokens(sighting.text) if t.word}
    near = stmt.end_line < sighting.line <= stmt.end_line + 2 * NEAR
    return near and "above" in words and as_many(sighting, stmt, room)


def _alike(sighting: Sighting, stmt: Stmt, room) -> bool:
    """Whether the lines from the comment on to this one do the same: one each for q, k and v."""
    block = [i for i in sighting.block if i in room.makers][:NEAR]
    ops = {room.matcher.node(room.stmts[i]).op for i in block if i <= stmt.id}
    return stmt.id in block and len(ops) == 1 and "" not in ops


def _in_a_row(sighting: Sighting, stmt: Stmt, room) -> bool:
    """Whether no other comment, and no blank line, stands between."""
    edge = sighting.rows[-1][0] if stmt.line > sighting.line else sighting.line
    low, high = sorted((edge, stmt.line))
    if high - low > 2 * NEAR and not _alike(sighting, stmt, room):
        return False
    others = [s.line for s in room.sightings if s.place != "docstring"]
    between = any(low < line < high for line in others)
    blank = sum(not room.source.lines[i - 1].strip() for i in range(low, high + 1))
    return not between and blank <= (sighting.place == "loose" or stmt.id in sighting.block)


def write_missing(source: str, verdicts: list[Verdict]) -> str:
    """The source with a comment behind each statement that lacks one."""
    lines = source.splitlines()
    ends = {s.line: s.end_line for s in trace(source).stmts if s.kind in MAKES}
    for verdict in verdicts:
        if verdict.verdict == "missing" and UNKNOWN not in verdict.proposal:
            place = ends.get(verdict.line, verdict.line) - 1
            glue = "; " if "#" in lines[place] else "  # "
            lines[place] = f"{lines[place].rstrip()}{glue}{verdict.proposal}"
    return "\n".join(lines) + ("\n" if source.endswith("\n") else "")
