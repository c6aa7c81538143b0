"""Whether a claim holds for a statement in one execution of it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from autograder.shapes.places.attach import Sighting
from autograder.shapes.places.meant import of_another
from autograder.shapes.recording import (
    Execution,
    Sequence,
    Weight,
    tensors,
    wholes,
)
from autograder.shapes.text.dims import Expr, aligned, evaluate, fits, names_of, shape_fits
from autograder.shapes.text.flat import instead
from autograder.shapes.text.reader import Claim, Stage
from autograder.shapes.text.shapes_in_text import Term
from autograder.shapes.tracer import Node, Stmt, Traced, flat

KEYED = re.compile(r"^\s*(?:[\"'][^\"']*[\"']\s*:|\w+\s*=(?!=))\s*")  # `"h": h`, `dim=1`
MOST_TURNED = 5  # dimensions of an operand that may be written in another order
MOST_TRIED = 256  # sizes of a letter in a product or a sum that are tried

NOTHING = Node(-1, -1, "", 0, 0, "")

Shape = tuple[int, ...]


def results(stmt: Stmt, execution: Execution) -> list[Shape]:
    """The shapes of what a statement makes: assigned, returned, or changed in place."""
    if stmt.kind == "augmented":
        found = []
        for target in flat(stmt.targets):
            found += tensors(execution.after.get(target))
        if stmt.receiver is not None:
            found = found or tensors(execution.last(stmt.receiver))
        return found or tensors(execution.last(stmt.value))
    if stmt.kind == "expression" and stmt.receiver is not None:
        return tensors(execution.last(stmt.value)) or tensors(execution.last(stmt.receiver))
    if stmt.receiver is not None:  # `scores[mask] = 0`: the whole of it
        return tensors(execution.last(stmt.receiver)) or tensors(execution.last(stmt.value))
    if unpacks(stmt) and not isinstance(execution.last(stmt.value), Sequence):
        return [s for t in flat(stmt.targets) for s in tensors(execution.after.get(t))]
    return tensors(execution.last(stmt.value))


def as_many(sighting: Sighting, stmt: Stmt, room) -> bool:
    """Whether a shape of the comment has as many dimensions as what the statement makes."""
    written = {len(t.dims) for c in sighting.claims for s in c.stages for t in s.terms}
    return any(len(s) in written for e in room.runs[stmt.id] for s in results(stmt, e))


def unpacks(stmt: Stmt) -> bool:
    """Whether a statement takes a value apart: `q, k, v = qkv`."""
    return stmt.kind == "assign" and any(isinstance(t, list) for t in stmt.targets)


def part_of(stmt: Stmt, execution: Execution, node: int) -> tuple[Stmt, Execution]:
    """A statement as if it were only one of its expressions, and what ran up to that."""
    end = max(i for i, (n, _) in enumerate(execution.events) if n == node)
    part = replace(stmt, value=node, targets=[], receiver=None)
    return part, replace(execution, events=execution.events[: end + 1])


class Matcher:
    """Compares claims with executions, in the scope of one function."""

    def __init__(self, traced: Traced, scope, strict: bool = False):
        self.traced, self.scope, self.strict = traced, scope, strict

    def node(self, stmt: Stmt) -> Node:
        """The expression on the right of a statement; an empty one where there is none."""
        return self.traced.nodes[stmt.value] if stmt.value is not None else NOTHING

    def holds(self, claim: Claim, sighting: Sighting, stmt: Stmt, execution: Execution) -> bool:
        """Whether the claim, or one of its alternatives, is what happened."""
        lookup = self.scope.lookup(execution)
        inside = sighting.place in ("inner", "link")
        item = self.item(sighting, execution)
        if item is not None and tensors(execution.last(item)):
            stmt, execution = part_of(stmt, execution, item)
            inside = False
        inner = self._inner(sighting, stmt, execution) if inside else []
        if term := of_another(claim, sighting, stmt, execution):
            return self._labelled(term, stmt, execution, lookup)
        claims = (claim, *claim.others)
        return any(self._chain(c, stmt, execution, lookup, inner) for c in claims)

    def item(self, sighting: Sighting, execution: Execution) -> int | None:
        """The expression that has the comment's line inside a statement for itself."""
        if sighting.place != "inner" or not sighting.code:
            return None
        code = KEYED.sub("", sighting.code).rstrip(", ")
        nodes = (self.traced.nodes[n] for n, _ in execution.events)
        lines = (sighting.line, sighting.line)
        return next((n.id for n in nodes if (n.line, n.end_line) == lines and n.text == code), None)

    def _inner(self, sighting: Sighting, stmt: Stmt, execution: Execution) -> list[Shape]:
        """What came about on the line of a comment that stands inside a statement."""
        near = (0,) if sighting.trailing else (-1, 1)
        lines = [sighting.line + step for step in near]
        return [
            shape
            for node, value in execution.events
            if self.traced.nodes[node].end_line in lines
            for shape in tensors(value)
        ]

    def _chain(self, claim: Claim, stmt, execution, lookup, inner) -> bool:
        stages = claim.stages
        if not stages:
            return False
        last = stages[-1]
        if len(stages) == 1:
            if len(last.terms) > 1:
                return self._product(last, stmt, execution, lookup) or all(
                    self._result(t, stmt, execution, lookup, inner) for t in last.terms
                )
            return self._result(last.terms[0], stmt, execution, lookup, inner)
        if len(last.terms) > 1 or not self._result(last.terms[0], stmt, execution, lookup, inner):
            return False
        return self._steps(stages, stmt, execution, lookup)

    def _steps(self, stages: tuple[Stage, ...], stmt, execution, lookup) -> bool:
        """The stages before the result: an ordered part of what was evaluated on the way.

        A stage that names an operation of the statement must be what that operation made.
        """
        on_the_way = self.on_the_way(stmt, execution)
        ops = {op for op, _ in on_the_way}
        at = 0
        for stage, after in itertools.pairwise(stages):
            if _worked_out(stage, after, lookup):
                continue
            if len(stage.terms) > 1:
                if not self._product(stage, stmt, execution, lookup):
                    return False
                continue
            if self._of_last(stage, stmt, execution, lookup):
                continue
            named = stage.op if stage.op in ops else ""
            found = next(
                (
                    i
                    for i in range(at, len(on_the_way))
                    if (not named or on_the_way[i][0] == named)
                    and shape_fits(stage.terms[0].dims, on_the_way[i][1], lookup)
                ),
                None,
            )
            if found is None:
                return False
            at = found + 1
        return not self.strict or self._received(stages, execution, lookup)

    def _of_last(self, stage: Stage, stmt, execution, lookup) -> bool:
        """`view(b, -1, n, d) -> [b, t, n, d]`: the last call of the line, as it is written."""
        last = self.node(stmt).op
        made = results(stmt, execution)
        dims = stage.terms[0].dims
        return bool(last and stage.op == last and made) and all(
            shape_fits(dims, s, lookup) for s in made
        )

    def apart(self, dims, shape: tuple[int, ...], execution: Execution) -> tuple[str, int] | None:
        """The letter that alone is wrong of a shape, with the size that it would have to have."""
        lookup = self.scope.lookup(execution)
        pairs = aligned(dims, len(shape)) or ()
        wrong = [(i, j) for i, j in pairs if not fits(dims[i], shape[j], lookup)]
        dim, size = (dims[wrong[0][0]], shape[wrong[0][1]]) if len(wrong) == 1 else (("", ""), 0)
        letters = [n for n in names_of(dim) if len(n) == 1]
        if len(letters) != 1:
            return None
        sizes = [size] if dim[0] == "name" else range(1, min(size, MOST_TRIED) + 1)
        meant = (n for n in sizes if fits(dim, size, instead(lookup, {letters[0]: n})))
        found = next(meant, None)
        return (letters[0], found) if found is not None else None

    def passes(self, claim: Claim, stmt: Stmt, execution: Execution) -> bool:
        """Whether a single shape is that of something on the way."""
        return _one_shape(claim) and self.enters(claim, stmt, execution)

    def is_new(self, node: int, stmt: Stmt) -> bool:
        """Whether an expression made something before the result: no variable, and no list."""
        whole = self.traced.nodes[node]
        return bool(whole.operands) and node != stmt.value and whole.kind not in ("List", "Tuple")

    def made_on_the_way(self, claim: Claim, stmt: Stmt, execution: Execution) -> bool:
        """Whether a single shape is that of something computed before the result."""
        lookup = self.scope.lookup(execution)
        return _one_shape(claim) and any(
            shape_fits(claim.stages[0].terms[0].dims, shape, lookup)
            for node, value in execution.events
            if self.is_new(node, stmt)
            for shape in tensors(value)
        )

    def goes_before(self, claim: Claim, stmt: Stmt, execution: Execution) -> bool:
        """Whether all stages of a chain, the last one too, are of what comes before the result."""
        stages = (*claim.stages, claim.stages[-1])
        return self._steps(stages, stmt, execution, self.scope.lookup(execution))

    def product(self, claim: Claim, stmt: Stmt, execution: Execution) -> bool:
        """Whether the first stage is the operands of an operation of the statement."""
        return self._product(claim.stages[0], stmt, execution, self.scope.lookup(execution))

    def enters(self, claim: Claim, stmt: Stmt, execution: Execution) -> bool:
        """Whether the first stage is the shape of something that the statement works on."""
        lookup, dims = self.scope.lookup(execution), claim.stages[0].terms[0].dims
        return any(shape_fits(dims, s, lookup) for _, s in self.on_the_way(stmt, execution))

    def product_on_the_way(self, claim: Claim, stmt: Stmt, execution: Execution) -> bool:
        """Whether a product and its result are those of an operation that the line goes on from."""
        lookup = self.scope.lookup(execution)
        last = claim.stages[-1].terms[-1].dims
        for i, (node, value) in enumerate(execution.events):
            if self.is_new(node, stmt) and any(shape_fits(last, s, lookup) for s in tensors(value)):
                so_far = replace(execution, events=execution.events[: i + 1])
                if self._product(claim.stages[-2], stmt, so_far, lookup):
                    return True
        return False

    def skips(self, claim: Claim, execution: Execution) -> bool:
        """Whether a chain names an operation whose input is not the shape that stands before it."""
        return not self._received(claim.stages, execution, self.scope.lookup(execution))

    def on_the_way(self, stmt: Stmt, execution: Execution) -> list[tuple[str, Shape]]:
        """Operations and shapes in the order they came about, the result itself left out."""
        events = list(execution.events)
        if len(events) > 1 and events[-1][0] == stmt.value:
            events.pop()
        found = []
        if stmt.kind == "augmented":
            for target in flat(stmt.targets):
                found += [("", s) for s in tensors(execution.before.get(target))]
        return found + [
            (self.traced.nodes[node].op, shape) for node, v in events for shape in tensors(v)
        ]

    def _received(self, stages: tuple[Stage, ...], execution: Execution, lookup) -> bool:
        """Whether each operation named in a chain was given the shape that stands before it."""
        for before, stage in zip(stages, stages[1:], strict=False):
            if not stage.op or len(before.terms) > 1:
                continue
            given = [
                operands[0]
                for op, operands in self.operations(execution, least=1)
                if op == stage.op
            ]
            if given and not any(shape_fits(before.terms[0].dims, s, lookup) for s in given):
                return False
        return True

    def _product(self, stage: Stage, stmt, execution, lookup) -> bool:
        """`[..] @ [..]`: the operands of one operation, in order."""
        dims = [t.dims for t in stage.terms]
        if len(dims) > 2:  # `[..] @ [..] + [..]`: the bias is no operand of the product
            dims = [d for d in dims if len(d) > 1] or dims
        for op, operands in self.operations(execution):
            for first in range(len(operands) - len(dims) + 1):  # baddbmm: what is added is first
                if all(
                    any(shape_fits(d, turned, lookup) for turned in _turned(op, s))
                    for d, s in zip(dims, operands[first:], strict=False)
                ):
                    return True
        if stmt.kind == "augmented":
            before = [s for t in flat(stmt.targets) for s in tensors(execution.before.get(t))]
            operands = before + tensors(execution.last(stmt.value))
            return len(operands) >= len(dims) and all(
                shape_fits(d, s, lookup) for d, s in zip(dims, operands, strict=False)
            )
        return False

    def operations(self, execution: Execution, least: int = 2) -> Iterator[tuple[str, list[Shape]]]:
        values: dict[int, object] = {}
        for node, value in execution.events:
            values[node] = value
            operands = []
            for part in self.traced.nodes[node].operands:
                operands += tensors(values.get(part))
            if len(operands) >= least:
                yield self.traced.nodes[node].op, operands
            spread = [s for part in self._spread(node) for s in tensors(values.get(part))]
            if len(spread) > len(operands):  # `a @ b @ c`
                yield self.traced.nodes[node].op, spread
            called = self._weight(node, values, execution)
            if called and operands:
                yield self.traced.nodes[node].op, [operands[0], called[::-1]]

    def _spread(self, node: int) -> list[int]:
        """The operands of an operation; of one that is the same again, its own."""
        whole = self.traced.nodes[node]
        if not whole.op:
            return list(whole.operands)
        found: list[int] = []
        for part in whole.operands:
            same = self.traced.nodes[part].op == whole.op
            found += self._spread(part) if same else [part]
        return found

    def _weight(self, node: int, values: dict, execution: Execution) -> Shape | None:
        """The weight of a module that an expression calls, or that stands among its operands."""
        for other in range(max(0, node - 6), node):
            seen = values.get(other)
            if isinstance(seen, Weight) and seen.shape is not None and len(seen.shape) == 2:
                return seen.shape
        given = tensors(execution.before.get(f"{self.traced.nodes[node].op}.weight"))
        return next((shape for shape in given if len(shape) == 2), None)  # of an argument

    def _result(self, term: Term, stmt, execution, lookup, inner) -> bool:
        if any(shape_fits(term.dims, shape, lookup) for shape in inner):
            return True
        if term.label and self._labelled(term, stmt, execution, lookup):
            return True
        made = results(stmt, execution)
        listed = wholes(execution.last(stmt.value))[1:] if not unpacks(stmt) else ()
        if made and any(shape_fits(term.dims, s, lookup) for whole in listed for s in whole):
            return True
        whole = self._other_reading(stmt, execution)
        if whole and all(shape_fits(term.dims, s, lookup) for s in whole):
            return True
        if made:
            return any(all(shape_fits(dims, s, lookup) for s in made) for dims in _with_count(term))
        shapes = [s for _, v in execution.events for s in tensors(v)]
        if stmt.kind == "def" and tensors(execution.before.get(term.label)):
            return False  # of that one argument
        if stmt.kind in ("def", "header"):
            shapes += [s for v in execution.before.values() for s in tensors(v)]
        return any(shape_fits(term.dims, s, lookup) for s in shapes) or self._module(
            term, stmt, execution, lookup
        )

    def _other_reading(self, stmt, execution) -> list[Shape]:
        """The part that is stored into a whole, or the whole that is taken apart."""
        if stmt.kind == "assign" and (stmt.receiver is not None or unpacks(stmt)):
            return tensors(execution.last(stmt.value))
        return []

    def _labelled(self, term: Term, stmt, execution, lookup) -> bool:
        """Whether the tensor of that name has the shape, before or after the statement."""
        own = term.label in flat(stmt.targets)
        for names_then in (execution.after,) if own else (execution.after, execution.before):
            value = names_then.get(term.label) or names_then.get(f"self.{term.label}")
            if any(w and all(shape_fits(term.dims, s, lookup) for s in w) for w in wholes(value)):
                return True
        return not own and any(  # `mask: [1, t, t]` where the line says `mask[None]`
            self.traced.nodes[node].text.startswith(f"{term.label}[")
            and any(shape_fits(term.dims, s, lookup) for s in tensors(value))
            for node, value in execution.events
        )

    def _module(self, term: Term, stmt, execution, lookup) -> bool:
        """`nn.Linear(i, h)`: as its arguments stand, or as its weight is stored."""
        value = execution.last(stmt.value)
        if not isinstance(value, Weight) or value.shape is None:
            return False
        return shape_fits(term.dims, value.shape, lookup) or shape_fits(
            term.dims, value.shape[::-1], lookup
        )


def _with_count(term: Term) -> list[tuple[Expr, ...]]:
    """`n x [b, t]`: n tensors of that shape, or one that holds them."""
    if not term.count:
        return [term.dims]
    count = ("num", int(term.count)) if term.count.isdecimal() else ("name", term.count)
    return [term.dims, (count, *term.dims)]


def _worked_out(stage: Stage, after: Stage, lookup) -> bool:
    """`[b, t - t + 1, d] => [b, 1, d]`: one shape twice, the arrow is an equals sign."""
    if len(stage.terms) > 1 or len(after.terms) > 1:
        return False
    one, other = stage.terms[0].dims, after.terms[0].dims
    apart = [(a, b) for a, b in zip(one, other, strict=False) if a != b]
    return (
        len(one) == len(other)
        and bool(apart)
        and all({a[0], b[0]} & {*"+-*/"} for a, b in apart)
        and all(evaluate(a, lookup) == evaluate(b, lookup) is not None for a, b in apart)
    )


def _one_shape(claim: Claim) -> bool:
    return len(claim.stages) == 1 and len(claim.stages[0].terms) == 1 and not claim.others


def _turned(op: str, shape: Shape) -> Iterable[Shape]:
    """How an operand may be written: an einsum's also as the matrix product that it stands for."""
    if op.endswith("einsum") and len(shape) <= MOST_TURNED:
        return itertools.permutations(shape)
    return (shape,)
