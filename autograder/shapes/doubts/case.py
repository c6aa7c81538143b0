"""One claim at one statement, and what was seen around it: what the facts are asked about."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from autograder.shapes.binding import CALL, CODE, Scope
from autograder.shapes.match import Matcher, results, unpacks
from autograder.shapes.places.attach import Sighting
from autograder.shapes.places.meant import side_of
from autograder.shapes.recording import Execution, Weight, tensors, wholes
from autograder.shapes.text import names
from autograder.shapes.text.dims import (
    Dims,
    Expr,
    Lookup,
    alone,
    evaluate,
    names_of,
    shape_fits,
    shape_names,
    without,
)
from autograder.shapes.text.lexer import plain, tokens
from autograder.shapes.text.limits import Clock
from autograder.shapes.text.lines import ends_in_arrow
from autograder.shapes.text.reader import Claim
from autograder.shapes.text.shapes_in_text import Term
from autograder.shapes.tracer import Stmt, flat

QUOTED = re.compile("[\"'][^\"']*[\"']")
PROMISES = (("such", "that"), ("so", "that"))  # what is told then comes of the line
LEAD = 6  # words in front of a shape that lead to it
SAYS = ("is", "minus", "shape")  # between a word and its shape
SEVERAL = 3  # comments that are wrong in the same way, from which on that is meant
OFTEN = 3  # true comments with a letter, from which on it means nothing else


@dataclass
class Case:
    """One claim at the statement that it is likeliest about, and what is around.

    every: the executions with the sizes that students know, too. near: statements within reach.
    room: all statements of the function.
    twins: the comments behind lines that are true, with their statements.
    arguments: what is told of them, each with its name and the runs of the function's head.
    bare: statements that make a tensor and have no comment behind them. styles: how many comments
    of each place are true in this function.
    apart: by run and letter that alone is wrong behind lines, the sizes that it stands for there.
    early: whether it is true of the next line, as several others behind lines are.
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
    twins: list[tuple[Sighting, Stmt]] = field(default_factory=list)
    arguments: list[tuple[str, Dims, list[Execution]]] = field(default_factory=list)
    bare: frozenset[int] = frozenset()
    styles: dict[str, int] = field(default_factory=dict)
    apart: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    early: bool = False

    @property
    def part(self) -> str:
        """The operation of the statement that its line of the comment names, if it does."""
        node = self.matcher.node(self.stmt)
        return node.op if all(s is not self.stmt for s, _ in self.room) else ""

    @property
    def last(self) -> Term:
        return self.claim.stages[-1].terms[-1]

    @cached_property
    def wrong(self) -> list[Execution]:
        """The executions in which the claim does not hold."""
        hold = self.matcher.holds
        return [e for e in self.runs if not hold(self.claim, self.sighting, self.stmt, e)]

    def names(self) -> set[str]:
        return {n for t in self.claim.terms() for n in shape_names(t.dims)}

    @cached_property
    def unproven(self) -> list[str]:
        """The names of what is false in the claim that nothing proves."""
        wrong = self.claim.terms()
        if len(self.claim.stages) > 1 and not self.claim.others:
            wrong = wrong if self.ends_right() else [self.last]
        line, dims = self.sighting.line, self._single(wrong)
        return [
            n
            for n in sorted({n for d in dims for n in names_of(d)})
            if n not in self.letters
            if not all(self.scope.proven(n, e, line) for e in self.runs[:8])
            or (n in self.foreign and not any(n in alone(d) for d in dims))
        ]

    def _single(self, terms: list[Term]) -> set[Expr]:
        """The dimensions of shapes, without the products that other comments repeat."""
        return {d for t in terms for d in t.dims if not self.told_again(d)}

    def told_again(self, dim: Expr) -> bool:
        """Whether a product, a sum or a number stands for its size in two other comments."""
        line = self.sighting.line
        return all(self.scope.repeated(dim, e, line) for e in self.runs[:8])

    @cached_property
    def foreign(self) -> set[str]:
        """The names that stand for a size in comments of other functions only.

        So does a letter of the call that is told twice here, and never for the size of the call.
        """
        return {
            n
            for n in shape_names(tuple(self._single(self.claim.terms())))
            for e in self.runs[:8]
            if (self.scope.free(n, e) or (len(n) == 1 and self._of_the_call(n, e)))
            and not self.scope.lines_with(n, e, self.sighting.line, here=True)
        }

    def _of_the_call(self, name: str, execution: Execution) -> bool:
        return self.scope.fixed(name, execution)[1] == CALL and self.mentions(name) > 1

    @cached_property
    def letters(self) -> set[str]:
        """What an einsum of the statement calls its dimensions."""
        code = self.matcher.node(self.stmt).text
        return set("".join(QUOTED.findall(code))) if "einsum" in code else set()

    @cached_property
    def lengths(self) -> set[str]:
        """The names of lengths in it that no variable of the code settles."""
        first = self.runs[:1]
        long = {n for n in self.names() if names.may_be_length(n)}
        return {
            n for n in long - self.letters if all(self.scope.fixed(n, e)[1] != CODE for e in first)
        }

    @property
    def next_to_it(self) -> bool:
        """Whether the comment stands beside what it is about, or names it."""
        named = self.stmt.kind == "def" or self.last.label in flat(self.stmt.targets)
        place = self.sighting.place
        return place in ("end", "above", "between") or (place in ("named", "below") and named)

    @property
    def led_to(self) -> bool:
        """`transpose to [b, d, t]`: whether words lead to the only shape of the claim."""
        arrow = ends_in_arrow(self.sighting.text, self.last.text)
        return (arrow or self.promised) and len(self.claim.stages) == 1

    @property
    def promised(self) -> bool:
        """`turned, such that its shape is [b, d, t]`: whether words promise the shape."""
        lead = tokens(plain(self.sighting.text).rpartition(self.last.text)[0])
        words = [t.text.lower() for t in lead[-LEAD:]]
        return any(pair in PROMISES for pair in itertools.pairwise(words))

    @property
    def is_output(self) -> bool:
        """`q is now [b, d, t]`: whether a word before the shape says that it is what comes out."""
        lead = plain(self.sighting.text).rpartition(self.last.text)[0]
        said = [t.kind for t in tokens(lead) if t.kind not in SAYS][-1:]
        return self.claim.role == "output" and said == ["output"]

    def explained_behind(self) -> bool:
        """`[b, t] : the last step`, `[b, n] where n = h * w`: what the shape, or a name, is."""
        rest = tokens(plain(self.sighting.text).rpartition(self.last.text)[2])
        legend = [t.text for t in rest[:1]] == ["where"] and any(t.kind == "is" for t in rest)
        colon = [t.text for t in rest[:1]] == [":"] and rest[1:2] != [] and rest[1].kind == "name"
        return legend or (colon and not self.tensors & {t.text for t in rest})

    @property
    def becomes(self) -> bool:
        """`x -> [b, t, d]`: what has that name, or what it becomes."""
        return [t.kind for t in tokens(self.sighting.text)[1:2]] == ["arrow"]

    @cached_property
    def nowhere(self) -> bool:
        """Whether no tensor has the claimed shape: that of the label's name, or any at all. What
        never ran, of the lines that a comment stands above, may have it."""
        ids = {*self.sighting.stmts, *self.sighting.block} if not self.sighting.trailing else set()
        if any(stmt.id in ids and not runs for stmt, runs in self.room):
            return False
        label = self.last.label if self.last.label in self.tensors else ""
        label = "" if self.becomes else label
        terms = [t for c in (self.claim, *self.claim.others) for t in c.stages[-1].terms]
        free = set(self.unproven) | self.lengths
        for dims in (without(t.dims, free) if label else opened(t.dims, free, self) for t in terms):
            for stmt, runs in self.room:
                self.clock.check()
                if in_one_call([_has(dims, stmt, e, label, self) for e in runs], runs):
                    return False
        return True

    def in_code(self, label: str) -> bool:
        """Whether the function has a name or an attribute that is spelled like a label."""
        traced = self.matcher.traced
        texts = [p for f in traced.functions if f.id == self.stmt.function for p in f.parameters]
        for stmt, _ in self.room:
            texts += [self.matcher.node(stmt).text, *flat(stmt.targets)]
        return any(label in t.text.split(".") for text in texts for t in tokens(text))

    @cached_property
    def argument(self) -> int | None:
        """The expression that has a line inside a statement for itself: `x,  # [b, t, d]`."""
        return next((self.matcher.item(self.sighting, e) for e in self.runs), None)

    def at(self, stmt: Stmt) -> list[Execution]:
        """The executions of another statement of the function."""
        return next((runs for s, runs in self.room if s is stmt), [])

    def ends_right(self) -> bool:
        """Whether the last shape of the claim is that of the result."""
        return self.fits(self.last.dims)

    def fits(self, dims) -> bool:
        """Whether dimensions are those of a tensor that the statement makes, in each run."""
        return self.each(lambda shape, lookup: shape_fits(dims, shape, lookup))

    def each(self, holds) -> bool:
        """Whether something holds of a shape that the statement makes, in each run."""
        return all(any(holds(s, self.scope.lookup(e)) for s in made(self, e)) for e in self.runs)

    def seen(self) -> Iterator[tuple[Execution, Lookup, tuple[int, ...]]]:
        """Every shape that the statement makes, with its run, and the sizes of names in it."""
        for e in self.runs:
            yield from ((e, self.scope.lookup(e), s) for s in made(self, e))

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
        lines = self.scope.confirmed.lines_of(execution.config, size)  # `n + 1` is a name, too
        spoken = bool(lines - {self.sighting.line})
        named = size == 1 or any(v == size for n, v in local.items() if "." not in n)
        return self.lines_with(name, execution) < OFTEN or not (spoken or named)

    def mentions(self, name: str) -> int:
        """How many comments of the function have the name."""
        return sum(names.normal(name) in group for group in self.scope.comments)

    def told_elsewhere(self, execution: Execution, size: int) -> bool:
        """Whether other comments of the function have a word for a size that the code settles."""
        said = {n for group in self.scope.comments for n in group if len(n) > 2} - self.names()
        settled = (self.scope.fixed(n, execution) for n in said)
        return any(value == size and proof in (CODE, CALL) for value, proof in settled)

    def lines_with(self, name: str, execution: Execution) -> int:
        """How many other comments prove the name."""
        return self.scope.lines_with(name, execution, self.sighting.line)

    def subject(self) -> str:
        """The tensor that a label names, where the statement does not make it; else empty."""
        own = set(flat(self.stmt.targets))
        if self.stmt.kind == "return":
            own |= {t.text.split(".")[0] for t in tokens(self.matcher.node(self.stmt).text)}
        stages = self.claim.stages
        if len(stages) > 1 or len(stages[0].terms) > 1:
            return ""
        label = stages[0].terms[0].label
        several = label in own and (unpacks(self.stmt) or label in self.returned())
        return label if label in self.tensors and (several or label not in own) else ""

    def returned(self) -> list[str]:
        """The names that stand for themselves in a row that is returned: `return out, probs`."""
        text = self.matcher.node(self.stmt).text if self.stmt.kind == "return" else ""
        names_ = [part.strip() for part in text.strip("()").split(",")]
        return [n for n in names_ if n.isidentifier()] if len(names_) > 1 else []

    def begins_here(self) -> bool:
        """Whether a chain above a line begins with what enters that line."""
        stages = self.claim.stages
        start = replace(self.claim, stages=stages[:1], others=())
        hold = self.matcher.product if len(stages[0].terms) > 1 else self.matcher.enters
        return len(stages) > 1 and all(hold(start, self.stmt, e) for e in self.runs)

    def looser(self) -> bool:
        """Whether some tensor has the shape, or this one has, for some sizes of its free names."""
        free = {n for n in self.names() if self.scope.free(n, self.runs[0])} if self.runs else set()
        return not self.nowhere or self.fits(without(self.last.dims, free))

    def entered(self, execution: Execution) -> set[tuple[int, ...]]:
        """The shapes on the way to the result."""
        return {shape for _, shape in self.matcher.on_the_way(self.stmt, execution)}

    def out_of_order(self) -> bool:
        """Whether each shape of a chain is on the way to the result, but in another order."""
        stages = self.claim.stages
        if len(stages) < 3 or self.claim.others or any(len(s.terms) > 1 for s in stages):
            return False
        dims = [s.terms[0].dims for s in stages]
        for e in self.runs:
            way = [shape for _, shape in self.matcher.on_the_way(self.stmt, e)]
            way, find = [*way, *made(self, e)[-1:]], self.scope.lookup(e)
            there = all(any(shape_fits(d, s, find) for s in way) for d in dims)
            rest = iter(way)
            if not there or all(any(shape_fits(d, s, find) for s in rest) for d in dims):
                return False
        return bool(self.runs)

    def enters(self) -> bool:
        """Whether the first shape of the claim is of something that the line works on."""
        return all(self.matcher.enters(self.claim, self.stmt, e) for e in self.runs)

    def always_there(self) -> bool:
        """Whether the comments of this file stand always on this side of their lines."""
        if self.sighting.trailing or self.sighting.place in ("between", "loose", "docstring"):
            return False
        return side_of(self.styles) == ("below" if self.below else "above")

    @property
    def below(self) -> bool:
        """Whether the comment stands below the statement."""
        return self.stmt.line < self.sighting.line

    def as_always(self) -> bool:
        """Whether it is one shape, where the comments of this file stand always."""
        return self.always_there() and len(self.sighting.claims) == 1

    def plain(self) -> bool:
        """Whether there are no words around the shape."""
        return not (self.claim.told or self.claim.tail or self.claim.words)

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

    @cached_property
    def spoken_for(self) -> set[int]:
        """The statements of which another comment of its own line tells what they make.

        One behind the last line of a paragraph repeats what the one above all of it told.
        """
        return {stmt.id for s, stmt in self.twins if s.on_a_line}

    def goes_into(self, stmt: Stmt) -> bool:
        """Whether another statement works on what this one makes."""
        read = {t.text.split(".")[0] for t in tokens(self.matcher.node(stmt).text)}
        return bool(read & set(flat(self.stmt.targets)))

    def seen_near(self) -> bool:
        """Whether a tensor that is alive, or made within three statements, has the last shape."""
        find, dims = self.scope.lookup(self.runs[0]), self.last.dims
        values = (v for _, runs in self.near for e in runs for _, v in e.events)
        made_ = any(shape_fits(dims, s, find) for s in {s for v in values for s in tensors(v)})
        return made_ or self.alive(dims, None)

    def by_call(self, values: list) -> list[list]:
        """Values of executions, those of one call of the function together."""
        found: dict[tuple, list] = {}
        for value, run in zip(values, self.runs, strict=True):
            found.setdefault((run.config, run.unit), []).append(value)
        return list(found.values())


def in_one_call(held: list[bool], runs: list[Execution]) -> bool:
    """Whether something holds in all the executions of one call of the function."""
    asked: dict[tuple[int, int], list[bool]] = {}
    for holds, run in zip(held, runs, strict=True):
        asked.setdefault(run.unit, []).append(holds)
    return any(map(all, asked.values()))


def made(case: Case, execution: Execution) -> list[tuple[int, ...]]:
    """The shapes that a comment is about: what a statement makes, or takes apart; or a label's."""
    stmt = case.stmt
    if subject := case.subject():
        own = subject in flat(stmt.targets)
        value = (execution.after if own else execution.before).get(subject)
        return _as_one(value, tensors(value), case)
    if case.argument is not None:
        return tensors(execution.last(case.argument))
    text = case.matcher.node(stmt).text
    if case.sighting.trailing and unpacks(stmt) and text.endswith((".shape", ".size()")):
        return [s for _, v in execution.events for s in tensors(v)][-1:]
    items = results(stmt, execution)
    return items if unpacks(stmt) else _as_one(execution.last(stmt.value), items, case)


def _as_one(value, items: list[tuple[int, ...]], case: Case) -> list[tuple[int, ...]]:
    """The shapes of a value; of a list of like tensors, which is told as one perhaps, that one."""
    rank, listed = len(case.last.dims), wholes(value)[1:]
    as_one = [w for w in listed for s in w if len(s) == rank != len(items[0])]
    return as_one[0] if as_one else items


def opened(dims, unproven: set[str], case: Case):
    """The dimensions, any size for what is not proven, or a letter of a few comments only."""
    local = {n for n in shape_names(dims) if case.scope.fixed(n, case.runs[0])[1] == CODE}
    open_ = unproven | {
        n
        for n in shape_names(dims) - local
        if len(n) <= 2 and any(case.lines_with(n, e) < OFTEN for e in case.runs)
    }
    return without(dims, open_)


def _has(dims, stmt: Stmt, execution: Execution, label: str, case: Case) -> bool:
    """Whether a tensor that is seen while a statement runs has the shape."""
    around = [execution.before, execution.after]
    values = [v for scope in around for n, v in scope.items() if not label or n == label]
    values += [v for _, v in execution.events if not label]
    lookup = case.scope.lookup(execution)
    weights = [v.shape for v in values if isinstance(v, Weight) and v.shape]
    shapes = [s for v in values for s in tensors(v)] + [
        s[::step] for s in weights for step in (1, -1)
    ]
    return any(shape_fits(dims, s, lookup) for s in shapes)
