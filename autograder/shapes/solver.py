"""The sizes of free names: those that make most comments of one call of a function true."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field

from autograder.shapes.binding import Scope, Unit, Vector
from autograder.shapes.match import Matcher, results
from autograder.shapes.places.attach import Sighting
from autograder.shapes.recording import Execution, tensors
from autograder.shapes.several import columns
from autograder.shapes.text import names
from autograder.shapes.text.dims import aligned, alone, counted, shape_fits, shape_names
from autograder.shapes.text.limits import Clock
from autograder.shapes.text.reader import Claim
from autograder.shapes.tracer import Stmt

MAX_DOMAIN, MAX_PAIRS, MAX_CHOICES, ROUNDS, MAX_NAMES = 8, 40, 512, 3, 40
MAX_EVENTS = 200  # of a statement, in which what a name stands for is looked for
AS_IT_IS = ("*", "+", "-", "num")  # what is told again as it is
WORD = 1.2  # comments: what a word that can mean one thing only weighs


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
        told = {vector for counted in self.votes.values() for vector in +counted}
        self.meant = {n: self.scope.word(n, unit[0]) for n in self.votes}
        self.meant = {n: v if v in told else None for n, v in self.meant.items()}
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
        for votes_for in votes.values():
            for vector in (*usual, *(v for v, _ in seen.most_common(4))):
                votes_for[vector] += 0
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
                    whole = [repr(term.dims[d])] if term.dims[d][0] in AS_IT_IS else []
                    found = [names.normal(n) for n in alone(term.dims[d]) if lookup(n) == shape[s]]
                    for name in (*found, *whole):
                        self.scope.confirmed.note(execution.config, name, shape[s], line)
                    if (name := counted(term.dims[d])) and (size := lookup(name)):
                        self.scope.confirmed.note(
                            execution.config, names.normal(name), size, line, True
                        )
