"""One claim at one statement, and what was seen around it: what the facts are asked about."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property

from autograder.shapes.attach import Sighting
from autograder.shapes.binding import CODE, Scope
from autograder.shapes.match import Matcher, results, unpacks
from autograder.shapes.recording import Execution, tensors
from autograder.shapes.text.dims import (
    aligned,
    evaluate,
    fits,
    names_of,
    shape_fits,
    shape_names,
)
from autograder.shapes.text.lexer import tokens
from autograder.shapes.text.limits import Clock
from autograder.shapes.text.reader import Claim
from autograder.shapes.text.shapes_in_text import Term
from autograder.shapes.tracer import Stmt, flat

OFTEN = 3  # true comments with a letter, from which on it means nothing else


@dataclass
class Case:
    """One claim at the statement that it is likeliest about, and what is around.

    every: the executions with the sizes that students know, too. near: statements within reach.
    room: all statements of the function.
    twins: the comments behind lines that are true, with their statements.
    bare: statements that make a tensor and have no comment behind them. styles: how many comments
    of each place are true in this function.
    """

    claim: Claim
    sighting: Sighting
    stmt: Stmt
    runs: list[Execution]
    every: list[Execution]
    matcher: Matcher
    scope: Scope
    tensors: frozenset[str]
    clock: Clock
    near: list[tuple[Stmt, list[Execution]]] = field(default_factory=list)
    room: list[tuple[Stmt, list[Execution]]] = field(default_factory=list)
    twins: list[tuple[str, Stmt]] = field(default_factory=list)
    bare: frozenset[int] = frozenset()
    styles: dict[str, int] = field(default_factory=dict)

    @property
    def last(self) -> Term:
        return self.claim.stages[-1].terms[-1]

    def names(self) -> set[str]:
        return {n for t in self.claim.terms() for n in shape_names(t.dims)}

    @cached_property
    def unproven(self) -> list[str]:
        """The names of what is false in the claim that nothing proves."""
        wrong = self.claim.terms()
        if len(self.claim.stages) > 1 and not self.claim.others:
            wrong = wrong if self.ends_right() else [self.last]
        code = (
            self.matcher.traced.nodes[self.stmt.value].text if self.stmt.value is not None else ""
        )
        strings = "".join(re.findall(r"[\"'][^\"']*[\"']", code)) if "einsum" in code else ""
        return [
            n
            for n in sorted({n for t in wrong for n in shape_names(t.dims)})
            if not (len(n) == 1 and n in strings)  # an einsum names its dimensions
            if not all(self.scope.proven(n, e, self.sighting.line) for e in self.runs[:8])
        ]

    @cached_property
    def nowhere(self) -> bool:
        """Whether no tensor has the claimed shape: that of the label's name, or any at all."""
        label = self.last.label if self.last.label in self.tensors else ""
        terms = [t for c in (self.claim, *self.claim.others) for t in c.stages[-1].terms]
        for dims in (opened(t.dims, set(self.unproven), self) for t in terms):
            for stmt, runs in self.room:
                self.clock.check()
                if runs and all(_has(dims, stmt, e, label, self) for e in runs):
                    return False
        return True

    def proofs(self) -> list[str]:
        """What settles the names of the dimensions that do not fit, where the ranks agree."""
        run, lookup = self.runs[0], self.scope.lookup(self.runs[0])
        wrong: set[str] = set()
        for shape in made(self, run):
            for i, j in aligned(self.last.dims, len(shape)) or ():
                if not fits(self.last.dims[i], shape[j], lookup):
                    wrong |= names_of(self.last.dims[i])
        return [self.scope.fixed(n, run)[1] for n in sorted(wrong)]

    @cached_property
    def argument(self) -> int | None:
        """The expression that has a line inside a statement for itself: `x,  # [b, t, d]`."""
        if self.sighting.place != "inner":
            return None
        line, code = self.sighting.line, self.sighting.code.rstrip(", ")
        found = (n for e in self.runs[:1] for n, _ in e.events)
        nodes = [self.matcher.traced.nodes[n] for n in found]
        return next((n.id for n in nodes if n.line == n.end_line == line and n.text == code), None)

    def at(self, stmt: Stmt) -> list[Execution]:
        """The executions of another statement of the function."""
        return next((runs for s, runs in self.room if s is stmt), [])

    def ends_right(self) -> bool:
        """Whether the last shape of the claim is that of the result."""
        return all(
            any(shape_fits(self.last.dims, s, self.scope.lookup(e)) for s in made(self, e))
            for e in self.runs
        )

    def exchanged(self) -> bool:
        """Whether the claim has the sizes of what was made, in another order."""
        for e in self.runs:
            sizes = [evaluate(d, self.scope.lookup(e)) for d in self.last.dims]
            if None in sizes or not any(sorted(s) == sorted(sizes) for s in made(self, e)):
                return False
        return True

    def reusable(self, name: str, size: int, execution: Execution) -> bool:
        """Whether a letter may mean another size in this comment: it is only of a few comments, or
        no comment and no variable of the code has a name for that size.
        """
        if len(name.rstrip("'")) > 1 or not self.scope.free(name, execution):
            return False
        local = {**execution.before, **execution.after}
        lookup = self.scope.lookup(execution)
        spoken = any(
            lookup(n) == size and self.lines_with(n, execution)
            for n in self.scope.bound.get(execution.unit, {})
        )
        named = any(v == size for n, v in local.items() if "." not in n)
        return self.lines_with(name, execution) < OFTEN or not (spoken or named)

    def lines_with(self, name: str, execution: Execution) -> int:
        """How many other comments prove the name."""
        return self.scope.lines_with(name, execution, self.sighting.line)

    def subject(self) -> str:
        """The tensor that a label names, where the statement does not make it; else empty."""
        value = (
            self.matcher.traced.nodes[self.stmt.value].text if self.stmt.value is not None else ""
        )
        own = set(flat(self.stmt.targets))
        if self.stmt.kind == "return":
            own |= {t.text.split(".")[0] for t in tokens(value)}
        stages = self.claim.stages
        if len(stages) > 1 or len(stages[0].terms) > 1:
            return ""
        label = stages[0].terms[0].label
        several = unpacks(self.stmt) and label in own
        return label if label in self.tensors and (several or label not in own) else ""

    def begins_here(self) -> bool:
        """Whether a chain above a line begins with what enters that line."""
        first = self.claim.stages[0]
        if len(self.claim.stages) < 2:
            return False
        start = replace(self.claim, stages=(first,), others=())
        hold = self.matcher.product if len(first.terms) > 1 else self.matcher.enters
        return all(hold(start, self.stmt, e) for e in self.runs)

    def always_above(self) -> bool:
        """Whether the comments above lines are about the next line, in all of this file."""
        above, below = self.styles.get("above", 0), self.styles.get("below", 0)
        return above >= 3 and (below + self.styles.get("block", 0)) * 10 <= above

    def alive(self, dims, only: set[str] | None) -> bool:
        """Whether a variable around the statement has the shape, in all runs; `only` these."""
        return all(
            any(
                shape_fits(dims, s, self.scope.lookup(e))
                for name, value in e.before.items()
                for s in tensors(value)
                if only is None or name in only
            )
            for e in self.runs
        )

    def below_alike(self) -> bool:
        """Whether all lines below a comment make the same shape, so that it is false of each."""
        found = {
            frozenset((e.config, tuple(results(s, e))) for e in runs)
            for s, runs in self.room
            if s.id in self.sighting.block
        }
        return len(found) == 1

    def by_call(self, values: list) -> list[list]:
        """Values of executions, those of one call of the function together."""
        found: dict[tuple, list] = {}
        for value, run in zip(values, self.runs, strict=True):
            found.setdefault((run.config, run.unit), []).append(value)
        return list(found.values())


def beside_a_true_one(claim: Claim, stmt: Stmt, true: list[Claim]) -> bool:
    """Whether a claim may be of something else, since another one in the comment is true.

    `# [b, n, n], [b, n, d]`: an operand perhaps. One with the same dimensions is of the same, and
    so is one behind `out:`.
    """

    def end(c: Claim) -> list[str]:
        return sorted(map(repr, c.stages[-1].terms[-1].dims))

    sure = claim.role == "output" or {t.label for t in claim.terms()} & set(flat(stmt.targets))
    return not sure and all(end(claim) != end(c) for c in true if c.stages)


def made(case: Case, execution: Execution) -> list[tuple[int, ...]]:
    """The shapes that a comment is about: what a statement makes, or takes apart; or a label's."""
    stmt = case.stmt
    if subject := case.subject():
        own = subject in flat(stmt.targets)
        return tensors((execution.after if own else execution.before).get(subject))
    if case.argument is not None:
        return tensors(execution.last(case.argument))
    text = case.matcher.traced.nodes[stmt.value].text if stmt.value is not None else ""
    if case.sighting.trailing and unpacks(stmt) and text.endswith((".shape", ".size()")):
        return [s for _, v in execution.events for s in tensors(v)][-1:]
    return results(stmt, execution)


def opened(dims, unproven: set[str], case: Case):
    """The dimensions, any size for what is not proven, or a letter of a few comments only."""
    local = {n for n in shape_names(dims) if case.scope.fixed(n, case.runs[0])[1] == CODE}
    open_ = unproven | {
        n
        for n in shape_names(dims) - local
        if len(n) <= 2 and any(case.lines_with(n, e) < OFTEN for e in case.runs)
    }
    return tuple(("any", "?") if names_of(d) & open_ else d for d in dims)


def _has(dims, stmt: Stmt, execution: Execution, label: str, case: Case) -> bool:
    """Whether a tensor that is seen while a statement runs has the shape."""
    around = [execution.before, execution.after]
    values = [v for scope in around for n, v in scope.items() if not label or n == label]
    values += [v for _, v in execution.events if not label]
    lookup = case.scope.lookup(execution)
    return any(shape_fits(dims, s, lookup) for v in values for s in tensors(v))
