"""Compares the claims of comments with what a recording says the tensors were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from autograder.shapes import names
from autograder.shapes.dims import Expr, evaluate, shape_fits
from autograder.shapes.parser import Claim, Stage, Term
from autograder.shapes.plan import Plan
from autograder.shapes.recording import Evidence, Execution, Sequence, Weight, tensors
from autograder.shapes.tracer import Stmt, Traced

Shape = tuple[int, ...]
Vector = tuple[int, ...]  # one size a configuration
PRODUCTS = ("@", "matmul", "bmm", "mm", "einsum", "baddbmm", "dot", "linear", "addmm")


@dataclass(frozen=True)
class Sighting:
    """A claim and the statements that it may be about (above, below, or its own line)."""

    claims: tuple[Claim, ...]
    stmts: tuple[int, ...]
    trailing: bool
    line: int
    text: str


@dataclass
class Scope:
    """What the names of one function's comments stand for."""

    plan: Plan
    configs: tuple[int, ...]
    legend: dict[str, Expr] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    bound: dict[str, Vector] = field(default_factory=dict)

    def lookup(self, execution: Execution) -> Callable[[str], int | None]:
        """Sizes by name, as they are while this execution runs."""

        def find(name: str, deep: int = 0) -> int | None:
            fixed = self.fixed(name, execution, deep)
            if fixed is not None:
                return fixed
            vector = self.bound.get(names.normal(name))
            place = self.configs.index(execution.config) if vector else 0
            return vector[place] if vector else None

        return find

    def fixed(self, name: str, execution: Execution, deep: int = 0) -> int | None:
        """The size of a name that evidence settles; None for a free symbol."""
        plain = names.normal(name)
        for spelled in (name, plain, f"self.{name}", f"self.{plain}"):
            if (size := execution.size(spelled)) is not None:
                return size
        sizes = self.sizes(execution.config)
        for role, size in sizes.items():
            if names.normal(role) == plain:
                return size
        if plain in self.legend and deep < 3:
            value = evaluate(self.legend[plain], lambda n: self.fixed(n, execution, deep + 1))
            return int(value) if value is not None and value.denominator == 1 else None
        if name in self.constants:
            return self.constants[name]
        return self.by_concept(plain, sizes)

    def by_concept(self, plain: str, sizes: dict[str, int]) -> int | None:
        meant = names.concept(plain)
        if meant is None:
            near = names.near(plain, {*names.WORDS, *map(names.normal, sizes)})
            meant = names.concept(near) if near else None
        if meant is None:
            return None
        found = {size for role, size in sizes.items() if names.concept(role) == meant}
        if not found and meant == "head_size":
            wide = [s for r, s in sizes.items() if names.concept(r) == "hidden"]
            heads = [s for r, s in sizes.items() if names.concept(r) == "heads"]
            found = {w // h for w in wide for h in heads if w % h == 0}
        return found.pop() if len(found) == 1 else None

    def sizes(self, config: int) -> dict[str, int]:
        if config < len(self.plan.sizes):
            return self.plan.sizes[config]
        return self.plan.public or {}

    def free(self, name: str, execution: Execution) -> bool:
        return self.fixed(name, execution) is None


# --- one statement ---------------------------------------------------------------------------------
def results(stmt: Stmt, execution: Execution) -> list[Shape]:
    """The shapes of what a statement makes: assigned, returned, or changed in place."""
    if stmt.kind == "augmented" or (stmt.kind == "expression" and stmt.receiver is not None):
        found = []
        for target in _flat(stmt.targets):
            found += tensors(execution.after.get(target))
        if stmt.receiver is not None:
            found = found or tensors(execution.last(stmt.receiver))
        return found or tensors(execution.last(stmt.value))
    return tensors(execution.last(stmt.value))


def value_of(stmt: Stmt, execution: Execution):
    return execution.last(stmt.value)


def _flat(targets) -> list[str]:
    return [t for part in targets for t in (_flat(part) if isinstance(part, list) else [part])]


class Matcher:
    """Whether a claim holds for a statement in one execution."""

    def __init__(self, traced: Traced, scope: Scope):
        self.traced, self.scope = traced, scope

    def holds(self, claim: Claim, stmt: Stmt, execution: Execution) -> bool:
        lookup = self.scope.lookup(execution)
        one = self._chain(claim, stmt, execution, lookup)
        return one or any(self._chain(o, stmt, execution, lookup) for o in claim.others)

    def _chain(self, claim: Claim, stmt, execution, lookup) -> bool:
        stages = claim.stages
        if not stages:
            return False
        last = stages[-1]
        if len(stages) == 1:
            if len(last.terms) > 1:
                return self._product(last, stmt, execution, lookup) or all(
                    self._result(t, stmt, execution, lookup) for t in last.terms
                )
            return self._result(last.terms[0], stmt, execution, lookup)
        if len(last.terms) > 1 or not self._result(last.terms[0], stmt, execution, lookup):
            return False
        return self._earlier(stages[:-1], stmt, execution, lookup)

    def _earlier(self, stages: tuple[Stage, ...], stmt, execution, lookup) -> bool:
        """The stages before the result: an ordered part of what was evaluated on the way."""
        shapes = [s for _, v in execution.events for s in tensors(v)]
        at = 0
        for stage in stages:
            if len(stage.terms) > 1:
                if not self._product(stage, stmt, execution, lookup):
                    return False
                continue
            dims = stage.terms[0].dims
            found = next(
                (i for i in range(at, len(shapes)) if shape_fits(dims, shapes[i], lookup)), None
            )
            if found is None:
                return False
            at = found + 1
        return True

    def _product(self, stage: Stage, stmt, execution, lookup) -> bool:
        """`[..] @ [..]`: the operands of one operation, in order."""
        dims = [t.dims for t in stage.terms]
        for operands in self._operations(execution):
            if len(operands) >= len(dims) and all(
                shape_fits(d, s, lookup) for d, s in zip(dims, operands, strict=False)
            ):
                return True
        return False

    def _operations(self, execution: Execution) -> Iterator[list[Shape]]:
        values: dict[int, object] = {}
        for node, value in execution.events:
            values[node] = value
            operands = []
            for part in self.traced.nodes[node].operands:
                seen = values.get(part)
                operands += tensors(seen)
            if len(operands) >= 2:
                yield operands
            called = self._weight(node, values)
            if called and operands:
                yield [operands[0], called[::-1]]

    def _weight(self, node: int, values: dict) -> Shape | None:
        """The weight of a module that an expression calls, or that stands among its operands."""
        for other in range(max(0, node - 6), node):
            seen = values.get(other)
            if isinstance(seen, Weight) and seen.shape is not None and len(seen.shape) == 2:
                return seen.shape
        return None

    def _result(self, term: Term, stmt, execution, lookup) -> bool:
        if term.label and self._labelled(term, execution, lookup):
            return True
        made = results(stmt, execution)
        if made:
            return all(shape_fits(term.dims, s, lookup) for s in made)
        shapes = [s for _, v in execution.events for s in tensors(v)]
        if stmt.kind in ("def", "header"):
            shapes += [s for v in execution.before.values() for s in tensors(v)]
        return any(shape_fits(term.dims, s, lookup) for s in shapes)

    def _labelled(self, term: Term, execution, lookup) -> bool:
        for names_then in (execution.after, execution.before):
            value = names_then.get(term.label) or names_then.get(f"self.{term.label}")
            shapes = tensors(value)
            if shapes and all(shape_fits(term.dims, s, lookup) for s in shapes):
                return True
        return False


def positional(claims: tuple[Claim, ...], stmt: Stmt, execution: Execution, matcher) -> bool:
    """Several shapes for several targets: one each, in order."""
    value = value_of(stmt, execution)
    if not isinstance(value, Sequence) or len(claims) != value.length:
        return False
    lookup = matcher.scope.lookup(execution)
    for claim, part in zip(claims, value.parts, strict=False):
        shapes = tensors(part)
        dims = claim.stages[-1].terms[-1].dims if claim.stages else None
        if dims is None or not shapes or not all(shape_fits(dims, s, lookup) for s in shapes):
            return False
    return True


# --- free symbols ----------------------------------------------------------------------------------
def bind(
    scope: Scope,
    sightings: list[Sighting],
    stmts: dict[int, Stmt],
    evidence: Evidence,
    matcher: Matcher,
) -> None:
    """Gives each free symbol of a function the sizes that make most of its claims true."""
    votes: dict[str, Counter] = {}
    for sighting in sightings:
        for stmt_id in sighting.stmts:
            vectors = _vectors(stmts[stmt_id], evidence, scope.configs)
            first = _first(evidence, stmt_id)
            if first is None:
                continue
            for claim in sighting.claims:
                for term in claim.terms():
                    for dims_vector in vectors.get(len(term.dims), []):
                        for dim, vector in zip(term.dims, dims_vector, strict=True):
                            if dim[0] == "name" and scope.free(dim[1], first):
                                plain = names.normal(dim[1])
                                votes.setdefault(plain, Counter())[vector] += 1
    for name, counted in votes.items():
        liked = _liked(scope, name)
        scope.bound[name] = max(
            counted,
            key=lambda v: (counted[v] + 0.5 * (v in liked), -liked.index(v) if v in liked else -99),
        )
    for _ in range(2):
        for name in sorted(votes):
            best, kept = -1.0, scope.bound[name]
            liked = _liked(scope, name)
            for vector in votes[name]:
                scope.bound[name] = vector
                true = _count(sightings, stmts, evidence, matcher)
                score = (
                    true
                    + 0.3 * (vector in liked)
                    - 0.1 * sum(v == vector for n, v in scope.bound.items() if n != name)
                )
                if score > best:
                    best, kept = score, vector
            scope.bound[name] = kept


def _liked(scope: Scope, name: str) -> list[Vector]:
    """The sizes that a letter usually stands for, most likely first."""
    found = []
    for meant in names.choices(name):
        for role in scope.sizes(scope.configs[0]) if scope.configs else ():
            if names.concept(role) == meant:
                found.append(tuple(scope.sizes(c)[role] for c in scope.configs))
    return found


def _vectors(stmt: Stmt, evidence: Evidence, configs) -> dict[int, list[tuple[Vector, ...]]]:
    """The shapes on the way through a statement, each dimension as its size in every config."""
    found: dict[int, list[tuple[Vector, ...]]] = {}
    per: dict[int, list[Shape]] = {}
    for execution in evidence.executions.get(stmt.id, []):
        if execution.config in configs and execution.config not in per:
            shapes = [s for _, v in execution.events for s in tensors(v)]
            per[execution.config] = shapes + results(stmt, execution)
    if set(per) != set(configs) or len({len(s) for s in per.values()}) != 1:
        return found
    for column in zip(*(per[c] for c in configs), strict=True):
        if len({len(s) for s in column}) == 1 and column[0]:
            vector = tuple(zip(*column, strict=True))
            if vector not in found.setdefault(len(vector), []):
                found[len(vector)].append(vector)
    return found


def _first(evidence: Evidence, stmt: int) -> Execution | None:
    return next(iter(evidence.executions.get(stmt, [])), None)


def _count(sightings, stmts, evidence, matcher) -> int:
    return sum(
        any(
            all(matcher.holds(c, stmts[i], e) for e in evidence.executions.get(i, []))
            and bool(evidence.executions.get(i))
            for i in s.stmts
        )
        for s in sightings
        for c in s.claims
    )
