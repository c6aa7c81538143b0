"""Gives the free symbols of a function's comments the sizes that make most of them true.

A symbol is free where neither the code nor a word's meaning settles it: `b, s, h` in a function
that never says what they are. Each has a domain, the sizes seen where it was written; the choice
is the one with most true claims, then with the meanings that letters usually have.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field

from autograder.shapes import names
from autograder.shapes.attach import Sighting
from autograder.shapes.dims import Expr, is_dots, shape_names
from autograder.shapes.limits import Clock
from autograder.shapes.match import Matcher, results
from autograder.shapes.parser import Claim
from autograder.shapes.recording import Evidence, Execution, tensors
from autograder.shapes.scope import Scope, Vector
from autograder.shapes.tracer import Stmt

MAX_DOMAIN, MAX_PAIRS, MAX_CHOICES, ROUNDS = 8, 40, 4_096, 3


@dataclass(eq=False)
class _Case:
    """One claim with the statements it may be about, and its truth under each choice so far."""

    claim: Claim
    sighting: Sighting
    symbols: tuple[str, ...]
    known: dict[tuple, bool] = field(default_factory=dict)


class Solver:
    """The free symbols of one function."""

    def __init__(
        self,
        scope: Scope,
        sightings: list[Sighting],
        stmts: dict[int, Stmt],
        evidence: Evidence,
        matcher: Matcher,
        clock: Clock,
    ):
        self.clock = clock
        self.scope, self.matcher, self.stmts = scope, matcher, stmts
        self.runs = {
            i: [e for e in evidence.executions.get(i, []) if e.config in scope.configs]
            for i in stmts
        }
        self.votes = self._votes(sightings)
        self.usual = {n: scope.liked(n, self._some_runs()) for n in self.votes}
        self.domains = {n: self._domain(n) for n in self.votes}
        self.cases = [
            _Case(c, s, tuple(sorted(self._symbols(c))))
            for s in sightings
            for c in s.claims
            if not c.aside
        ]

    # --- domains ---------------------------------------------------------------------------------
    def _some_runs(self) -> list[Execution]:
        return [r for runs in self.runs.values() for r in runs[-3:]]

    def _votes(self, sightings: list[Sighting]) -> dict[str, Counter]:
        """How often each symbol stood where a size was seen."""
        votes: dict[str, Counter] = {}
        seen: Counter = Counter()
        for sighting in sightings:
            for stmt_id in sighting.stmts:
                if not self.runs[stmt_id]:
                    continue
                vectors = self._vectors(self.stmts[stmt_id])
                for shape in vectors:
                    seen.update(set(shape))
                for claim in sighting.claims:
                    for term in claim.terms():
                        self._vote(term.dims, vectors, self.runs[stmt_id][0], votes)
        roles = [
            tuple(self.scope.sizes(c)[role] for c in self.scope.configs)
            for role in self.scope.sizes(self.scope.configs[0])
        ]
        for counted in votes.values():
            for vector in roles:
                counted[vector] += 0
            for vector, _ in seen.most_common(4):
                counted[vector] += 0
        return votes

    def _vote(self, dims, vectors, execution: Execution, votes: dict[str, Counter]) -> None:
        for name in shape_names(dims):
            if self.scope.free(name, execution):
                votes.setdefault(names.normal(name), Counter())
        dots = [i for i in range(len(dims)) if is_dots(dims, i)]
        for vector in vectors:
            if not dots and len(vector) == len(dims):
                pairs = list(zip(dims, vector, strict=True))
            elif dots and len(vector) >= len(dims) - 1:
                tail = len(dims) - dots[0] - 1
                pairs = list(zip(dims[: dots[0]], vector, strict=False))
                pairs += list(zip(dims[dots[0] + 1 :], vector[len(vector) - tail :], strict=True))
            else:
                continue
            for dim, sizes in pairs:
                for name in _plain(dim):
                    if (plain := names.normal(name)) in votes:
                        votes[plain][sizes] += 1

    def _vectors(self, stmt: Stmt) -> list[tuple[Vector, ...]]:
        """The shapes on the way through a statement, each dimension as its size in every run."""
        per: dict[int, list] = {}
        for execution in self.runs[stmt.id]:
            if execution.config not in per:
                shapes = [s for _, v in execution.events for s in tensors(v)]
                per[execution.config] = shapes + results(stmt, execution)
        if set(per) != set(self.scope.configs) or len({len(s) for s in per.values()}) != 1:
            return []
        found = []
        for column in zip(*(per[c] for c in self.scope.configs), strict=True):
            if len({len(s) for s in column}) == 1 and column[0]:
                vector = tuple(zip(*column, strict=True))
                if vector not in found:
                    found.append(vector)
        return found

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
        """Fills `scope.bound`."""
        self.scope.bound.update({n: d[0] for n, d in self.domains.items() if d})
        best = self.score()
        for _ in range(ROUNDS):
            before = best
            best = self._best_of([(name,) for name in sorted(self.domains)], best)
            doubtful = {n for c in self.cases if not self.true(c) for n in c.symbols}
            pairs = [
                pair
                for pair in itertools.combinations(sorted(self.domains), 2)
                if doubtful & set(pair)
            ]
            best = self._best_of(pairs[:MAX_PAIRS], best)
            if best <= before:
                break
        for case in self.cases:
            if not self.true(case):
                self._make_true(case)

    def _make_true(self, case: _Case) -> None:
        """Takes a choice under which the claim is true, where that is no worse for the others."""
        best, kept = self.score(), tuple(self.scope.bound[n] for n in case.symbols)
        for choice in self._choices(case):
            self.scope.bound.update(zip(case.symbols, choice, strict=True))
            if self.true(case) and (score := self.score()) > best + 1e-9:
                best, kept = score, choice
        self.scope.bound.update(zip(case.symbols, kept, strict=True))

    def _best_of(self, groups, best: float) -> float:
        bound = self.scope.bound
        for group in groups:
            kept = tuple(bound[n] for n in group)
            for choice in itertools.product(*(self.domains[n] for n in group)):
                bound.update(zip(group, choice, strict=True))
                score = self.score()
                if score > best + 1e-9:
                    best, kept = score, choice
            bound.update(zip(group, kept, strict=True))
        return best

    def score(self) -> float:
        """True claims first; then usual meanings, and different symbols for different sizes."""
        self.clock.check()
        bound = self.scope.bound
        true = sum(self.true(case) for case in self.cases)
        usual = sum(
            0.1 / (1 + self.usual[n].index(v))
            for n, v in bound.items()
            if v in self.usual.get(n, ())
        )
        alike = len(bound) - len(set(bound.values()))
        return true + usual - 0.05 * alike

    def true(self, case: _Case) -> bool:
        """Whether a claim holds for one of its statements, under the present choice."""
        key = tuple(self.scope.bound[n] for n in case.symbols)
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

    # --- who contradicts whom --------------------------------------------------------------------
    def ties(self) -> dict[int, Sighting]:
        """By the line of a comment: the other one, where it is one against one.

        A false claim that some choice makes true at the cost of one other claim, no more usual
        meanings speaking for either, is as likely to be right as that other one.
        """
        found: dict[int, Sighting] = {}
        false = [c for c in self.cases if not self.true(c)]
        for case in false:
            others = self._instead(case, false)
            if len(others) == 1 and not (case.sighting.loose or others[0].loose):
                found[case.sighting.line] = others[0]
                found[others[0].line] = case.sighting
        return found

    def _instead(self, case: _Case, false: list[_Case]) -> list[Sighting]:
        """The comments that would be false instead of a false one, if that is no worse."""
        if not case.symbols:
            return []
        score, chosen = self.score(), dict(self.scope.bound)
        found: list[Sighting] = []
        for choice in self._choices(case):
            self.scope.bound.update(zip(case.symbols, choice, strict=True))
            if self.true(case) and self.score() > score - 0.04:
                others = [c for c in self.cases if not self.true(c) and c not in false]
                found = [c.sighting for c in others if c.sighting is not case.sighting]
                break
        self.scope.bound.update(chosen)
        return found

    def _choices(self, case: _Case):
        sizes = [self.domains[n] for n in case.symbols]
        return itertools.product(*sizes) if math.prod(map(len, sizes)) <= MAX_CHOICES else ()


def _plain(dim: Expr) -> list[str]:
    """The names that stand for a whole dimension."""
    if dim[0] == "name":
        return [dim[1]]
    return [n for part in dim[1:] for n in _plain(part)] if dim[0] == "alt" else []
