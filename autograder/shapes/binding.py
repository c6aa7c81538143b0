"""What the names in one function's comments stand for, and what proves it.

A name is settled by the code (a variable, an attribute, an argument), by the call that was asked
for, by a legend, or by a word that can mean one thing only. What nothing settles is free: `b, s, h`
in a function that never says what they are. Free names get the sizes that make most comments true;
what such a choice rests on is counted, since a comment is called false only where its names are
proven.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from autograder.shapes.attach import Sighting
from autograder.shapes.match import Matcher, columns, results
from autograder.shapes.plan import Plan
from autograder.shapes.recording import Execution, tensors
from autograder.shapes.text import names
from autograder.shapes.text.dims import (
    Expr,
    aligned,
    alone,
    evaluate,
    names_of,
    shape_fits,
    shape_names,
)
from autograder.shapes.text.limits import Clock
from autograder.shapes.text.reader import Claim
from autograder.shapes.tracer import Stmt

MAX_DOMAIN, MAX_PAIRS, MAX_CHOICES, ROUNDS, MAX_NAMES = 8, 40, 512, 3, 40
MAX_EVENTS = 200  # of a statement, in which what a name stands for is looked for

Vector = tuple[int, ...]  # one size a configuration
SURE_WORDS = ("batch", "seq", "heads", "head_size")  # whose words mean nothing else
WORD = 1.2  # comments: what a word that can mean one thing only weighs
Unit = tuple[int, int]  # a call of the plan, and a call of the function in it
CODE, CALL, LEGEND, CONSTANT = "code", "call", "legend", "constant"  # what settles a name


@dataclass
class Scope:
    """Sizes by name, in one function.

    homes: by the calls that are of this function or of its class, the names of each.
    arguments: integers that the class was built with, by configuration. legend: names that a
    comment explains. loops: names that count. bound: the choice for each free name, in each call
    of the function. confirmed: the lines of the true comments of all functions in which a name
    stands alone for a size; told: those of a first look. lines: the first and the last of the
    function. comments: the names in each. strangers: names of other functions, put for its own.
    """

    plan: Plan
    configs: tuple[int, ...]
    homes: dict[int, frozenset[str]] = field(default_factory=dict)
    arguments: dict[int, dict[str, int]] = field(default_factory=dict)
    legend: dict[str, Expr] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    bound: dict[Unit, dict[str, Vector]] = field(default_factory=dict)
    confirmed: names.Confirmed = field(default_factory=names.Confirmed)
    told: names.Confirmed = field(default_factory=names.Confirmed)
    loops: frozenset[str] = frozenset()
    lines: tuple[int, int] = (0, 0)
    comments: list[set[str]] = field(default_factory=list)
    solvers: dict[Unit, Solver] = field(default_factory=dict)
    strangers: set[str] = field(default_factory=set)

    def lookup(self, execution: Execution) -> Callable[[str], int | None]:
        """Sizes by name, as they are while this execution runs."""

        def find(name: str) -> int | None:
            size = self.fixed(name, execution)[0]
            if size is not None:
                return size
            vector = self.bound.get(execution.unit, {}).get(names.normal(name))
            if vector is None or execution.config not in self.configs:
                return None  # the sizes that students know are no evidence for a letter
            return vector[self.configs.index(execution.config)]

        return find

    def fixed(self, name: str, execution: Execution) -> tuple[int | None, str]:
        """The size of a name that is settled, and by what; (None, "") for a free one.

        An attribute of one or two letters settles nothing: `self.d` need not be the comments' d.
        """
        found = execution.settled.get(name)
        if found is None:
            found = execution.settled[name] = self._fixed(name, execution)
        return found

    def _fixed(self, name: str, execution: Execution) -> tuple[int | None, str]:
        plain = names.normal(name)
        if name not in self.loops:
            spelled = [name, plain] if name != plain else [name]
            length = names.may_be_length(plain)  # that of the object may be the longest
            if (len(plain) > 2 and not length) or name.startswith("self."):
                spelled += [f"self.{s}" for s in spelled]
            for spelling in spelled:
                if (size := execution.size(spelling)) is not None:
                    return size, CODE
        call = execution.unit[0]
        sizes = self.sizes(execution.config, call)
        argument = self.arguments.get(execution.config, {}).get(plain)
        if argument is not None and len(plain) > 2 and not names.may_be_length(plain):
            return argument, CODE  # a length that a class is built with may be the longest
        if call in self.homes and (size := names.of_role(plain, sizes)) is not None:
            return size, CALL
        if plain in self.legend and (value := self._explained(plain, execution)) is not None:
            return value, LEGEND
        if name in self.constants:
            return self.constants[name], CONSTANT
        return self._meant(plain, sizes, call)

    def _explained(self, plain: str, execution: Execution, deep: int = 0) -> int | None:
        """The size that a legend gives a name: `D = H / N`, `H = hidden`."""
        rule = self.legend[plain]
        if deep > 2 or plain in {names.normal(n) for n in names_of(rule)}:
            return None

        def find(name: str) -> int | None:
            if (size := execution.size(name)) is not None:
                return size
            word, call = names.normal(name), execution.unit[0]
            sizes = self.sizes(execution.config, call)
            if (size := names.of_role(word, sizes)) is not None:
                return size
            if word in self.legend:
                return self._explained(word, execution, deep + 1)
            return self._meant(word, sizes, call)[0] or names.by_concept(word, sizes)

        value = evaluate(rule, find)
        return int(value) if value is not None and value.denominator == 1 else None

    def _meant(self, plain: str, sizes: dict[str, int], call: int) -> tuple[int | None, str]:
        if call in self.homes and len(plain) > 2:
            alike = {s for r, s in sizes.items() if names.stem(r) == names.stem(plain)}
            beside = {n for group in self.comments if plain in group for n in group}
            slip = names.near(plain, {*map(names.normal, sizes)} - beside) if not alike else None
            alike = alike or {s for r, s in sizes.items() if names.normal(r) == slip}
            return (alike.pop(), CALL) if len(alike) == 1 else (None, "")
        return None, ""

    def sizes(self, config: int, call: int) -> dict[str, int]:
        """The sizes of one call of the plan in a configuration."""
        home = self.plan.own[call][1] if call < len(self.plan.own) else None
        given = self.plan.sizes[config] if config < len(self.plan.sizes) else self.plan.public
        return {n: s for n, s in (given or {}).items() if home is None or n in home}

    def free(self, name: str, execution: Execution) -> bool:
        """Whether only the comments themselves can say what the name means."""
        return self.fixed(name, execution)[0] is None

    def word(self, name: str, call: int) -> Vector | None:
        """The sizes of a word that can mean one thing only."""
        sizes = [names.by_concept(name, self.sizes(c, call)) for c in self.configs]
        return tuple(sizes) if call in self.homes and sizes and None not in sizes else None

    def lines_with(self, name: str, execution: Execution, line: int, here: bool = False) -> int:
        """How many other comments are true in which a name stands alone for its size.

        Those of other functions count where the name hardly ever stands for another size; not at
        all if only `here` is asked.
        """
        said = self.confirmed.of(execution.config, names.normal(name))
        own = said.get(self.lookup(execution)(name), set()) - {line}
        others = sum(map(len, said.values())) - len(own)
        here = here or 4 * others > len(own) + 4
        return sum(self.lines[0] <= n <= self.lines[1] or not here for n in own)

    def repeated(self, dim: Expr, execution: Execution, line: int) -> bool:
        """Whether a product or a sum stands for its size in two other comments, as it is."""
        size = evaluate(dim, self.lookup(execution))
        said = self.confirmed.of(execution.config, repr(dim))
        return len(said) == 1 and size is not None and len(said.get(int(size), set()) - {line}) > 1

    def proven(self, name: str, execution: Execution, line: int) -> bool:
        """Whether a name's size rests on more than the comment in this line."""
        proof = self.fixed(name, execution)[1]
        plain = names.normal(name)
        size = self.lookup(execution)(name)
        others = self.lines_with(name, execution, line)
        sure = proof not in (CALL, CONSTANT) or (proof == CALL and len(plain) > 2)
        alike = names.spelled_like(name, {**execution.before, **execution.after})
        product = "." in name and self.lookup(execution)(name.split(".")[0]) is not None
        if product or (proof == CALL and not {size}.issuperset(alike)):
            return False  # `b.t`; `num_label`, and an attribute `num_labels` of another size
        if proof and (sure or others):
            return True  # a letter of the call, or a constant, need not be that of the comments
        if not proof and size is not None and execution.size(f"self.{name}") == size:
            return True
        roles = self.plan.sizes[execution.config] if execution.config < len(self.plan.sizes) else {}
        alike = {s for r, s in roles.items() if names.stem(r) == names.stem(plain)}
        meant = names.concept(name) in SURE_WORDS and execution.unit[0] in self.homes
        given = self.sizes(execution.config, execution.unit[0])
        if meant and others and size == names.by_concept(plain, given):
            return True
        return others >= 2 or (len(plain) > 2 and alike == {size})

    def liked(self, name: str, executions: list[Execution], call: int) -> list[Vector]:
        """The sizes that a name usually stands for, likeliest first."""
        found = []
        own = {e.config: e.size(f"self.{name}") for e in executions}
        if all(own.get(c) is not None for c in self.configs):
            found.append(tuple(own[c] for c in self.configs))
        given = [self.sizes(c, call) for c in self.configs]
        head = [names.by_concept("head_size", sizes) for sizes in given]
        word = [names.by_concept(name, sizes) for sizes in given]
        found += [tuple(word)] if None not in word else []
        for meant in names.choices(name):
            for role in given[0] if given else ():
                if names.concept(role) == meant:
                    found.append(tuple(sizes[role] for sizes in given))
            if meant == "head_size" and None not in head:
                found.append(tuple(head))
        return list(dict.fromkeys([*self._said(names.normal(name)), *found]))

    def of_others(self, name: str, vector: Vector) -> Vector | None:
        """The size of a name in other functions, where this one has another name for the vector."""
        if names.may_be_length(name) or sum(name in group for group in self.comments) > 1:
            return None
        usual = tuple(self.told.elsewhere(c, name, self.lines) for c in self.configs)
        sizes = zip(self.configs, vector, strict=True)
        called = all(self.told.called(c, s, name, self.lines) >= names.ENOUGH for c, s in sizes)
        return usual if called and None not in usual and usual != vector else None

    def _said(self, plain: str) -> list[Vector]:
        """The sizes that a name has in most of the true comments of the source."""
        sizes = [self.told.usual(config, plain) for config in self.configs]
        return [] if None in sizes else [tuple(sizes)]


@dataclass(eq=False)
class _Case:
    """One claim with the statements it may be about, and its truth under each choice so far."""

    claim: Claim
    sighting: Sighting
    symbols: tuple[str, ...]
    known: dict[tuple, bool] = field(default_factory=dict)


class Solver:
    """The free symbols of one function (a `judge._Room`), in one call of it."""

    def __init__(self, room, unit: Unit, clock: Clock):
        self.clock, self.unit = clock, unit
        self.scope: Scope = room.scope
        self.matcher: Matcher = room.matcher
        self.stmts: dict[int, Stmt] = room.stmts
        self.runs = {i: [e for e in found if e.unit == unit] for i, found in room.runs.items()}
        self.bound = self.scope.bound.setdefault(unit, {})
        self.scope.solvers[unit] = self
        self.votes = self._votes(room.sightings)
        some = [r for runs in self.runs.values() for r in runs[-3:]]
        self.usual = {n: self.scope.liked(n, some, unit[0]) for n in self.votes}
        self.meant = {n: self.scope.word(n, unit[0]) for n in self.votes}
        self.domains = {n: self._domain(n) for n in self.votes}
        self.cases = [
            _Case(c, s, tuple(sorted(self._symbols(c))))
            for s in room.sightings
            for c in s.claims
            if not c.aside and c.stages
        ]

    # --- domains ---------------------------------------------------------------------------------
    def _votes(self, sightings: list[Sighting]) -> dict[str, Counter]:
        """How often each symbol stood where a size was seen."""
        votes: dict[str, Counter] = {}
        seen: Counter = Counter()
        for sighting in sightings:
            for stmt_id in sighting.stmts:
                if not self.runs[stmt_id]:
                    continue
                labels = {t.label for c in sighting.claims for t in c.terms() if t.label}
                vectors = columns(
                    self.stmts[stmt_id], self.runs[stmt_id], labels, self.scope.configs
                )
                for shape in vectors:
                    seen.update(set(shape))
                for claim in sighting.claims:
                    for term in claim.terms():
                        self._vote(term.dims, vectors, self.runs[stmt_id][0], votes)
        given = [self.scope.sizes(c, self.unit[0]) for c in self.scope.configs]
        usual = [tuple(sizes[role] for sizes in given) for role in given[0]]
        for counted in votes.values():
            for vector in (*usual, *(v for v, _ in seen.most_common(4))):
                counted[vector] += 0
        return votes

    def _vote(self, dims, vectors, execution: Execution, votes: dict[str, Counter]) -> None:
        for name in shape_names(dims):
            if len(votes) < MAX_NAMES and self.scope.free(name, execution):
                votes.setdefault(names.normal(name), Counter())
        for vector in vectors:
            for i, j in aligned(dims, len(vector)) or ():
                for name in alone(dims[i]):
                    if (plain := names.normal(name)) in votes:
                        votes[plain][vector[j]] += 1

    def _domain(self, name: str) -> list[Vector]:
        counted, usual = self.votes[name], self.usual[name]
        every = [*counted, *(v for v in usual if v not in counted)]
        every.sort(key=lambda v: (-counted[v] - (v in usual), usual.index(v) if v in usual else 99))
        return every[:MAX_DOMAIN]

    def _symbols(self, claim: Claim) -> set[str]:
        found = {names.normal(n) for t in claim.terms() for n in shape_names(t.dims)}
        return found & set(self.votes)

    # --- the choice ------------------------------------------------------------------------------
    def solve(self) -> None:
        """Fills `scope.bound`, and notes what is confirmed."""
        self.bound.update({n: d[0] for n, d in self.domains.items() if d})
        best = self.score()
        for _ in range(ROUNDS):
            before = best
            best = self._best_of([(name,) for name in sorted(self.domains)], best)
            doubtful = {n for c in self.cases if not self.true(c) for n in c.symbols}
            pairs = itertools.combinations(sorted(self.domains), 2)
            pairs = [pair for pair in pairs if doubtful & set(pair)]
            best = self._best_of(pairs[:MAX_PAIRS], best)
            if best <= before:
                break
        for case in self.cases:
            few = math.prod(len(self.domains[n]) for n in case.symbols) <= MAX_CHOICES
            if few and not self.true(case):
                best = self._best_of([case.symbols], best, case)
        for name, vector in list(self.bound.items()):
            if usual := self.scope.of_others(name, vector):
                self.bound[name] = usual
                self.scope.strangers.add(name)
        self._confirm()

    def _best_of(self, groups, best: float, case: _Case | None = None) -> float:
        """Gives each group of names the sizes with the best score; those that make a case true."""
        bound = self.bound
        for group in groups:
            kept = tuple(bound[n] for n in group)
            for choice in itertools.product(*(self.domains[n] for n in group)):
                bound.update(zip(group, choice, strict=True))
                if case is not None and not self.true(case):
                    continue
                score = self.score()
                if score > best + 1e-9:
                    best, kept = score, choice
            bound.update(zip(group, kept, strict=True))
        return best

    def score(self) -> float:
        """True claims first; then usual meanings, and different symbols for different sizes."""
        self.clock.check()
        bound, true = self.bound, sum(self.true(case) for case in self.cases)
        liked = [(self.usual.get(n, []), v) for n, v in bound.items()]
        usual = sum(0.1 / (1 + found.index(v)) for found, v in liked if v in found)
        meant = sum(v == self.meant.get(n) for n, v in bound.items())
        alike = len(bound) - len(set(bound.values()))
        return true + usual + WORD * meant - 0.05 * alike

    def true(self, case: _Case) -> bool:
        """Whether a claim holds for one of its statements, under the present choice."""
        key = tuple(self.bound[n] for n in case.symbols)
        found = case.known.get(key)
        if found is None:
            found = case.known[key] = any(
                self.runs[i]
                and all(
                    self.matcher.holds(case.claim, case.sighting, self.stmts[i], e)
                    for e in self.runs[i]
                )
                for i in case.sighting.stmts
            )
        return found

    def _confirm(self) -> None:
        """Notes the lines of true comments in which each name stands alone for a dimension."""
        for case in self.cases:
            if self.true(case):
                for i in case.sighting.stmts:
                    for execution in self.runs[i]:
                        self._note(case.claim, self.stmts[i], execution, case.sighting.line)

    def _note(self, claim: Claim, stmt: Stmt, execution: Execution, line: int) -> None:
        lookup = self.scope.lookup(execution)
        seen = {s for _, v in execution.events[:MAX_EVENTS] for s in tensors(v)}
        seen |= set(results(stmt, execution))
        for term in claim.terms():
            for shape in seen | set(tensors(execution.after.get(term.label))):
                if not shape_fits(term.dims, shape, lookup):
                    continue
                for d, s in aligned(term.dims, len(shape)) or ():
                    whole = [repr(term.dims[d])] if term.dims[d][0] in "*+-" else []
                    found = [names.normal(n) for n in alone(term.dims[d]) if lookup(n) == shape[s]]
                    for name in (*found, *whole):
                        self.scope.confirmed.note(execution.config, name, shape[s], line)
