"""What the names in one function's comments stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from autograder.shapes import names
from autograder.shapes.dims import Expr, evaluate
from autograder.shapes.plan import Plan
from autograder.shapes.recording import Execution

Vector = tuple[int, ...]  # one size a configuration


@dataclass
class Scope:
    """Sizes by name: what evidence settles, and what the solver chose for the free symbols.

    legend: names that a comment explains. constants: integers of the module. bound: the solver's
    choice for each free symbol. loops: names that count; no size of a tensor.
    """

    plan: Plan
    configs: tuple[int, ...]
    legend: dict[str, Expr] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    bound: dict[str, Vector] = field(default_factory=dict)
    loops: frozenset[str] = frozenset()
    meant: dict[tuple[str, int], int | None] = field(default_factory=dict)

    def lookup(self, execution: Execution) -> Callable[[str], int | None]:
        """Sizes by name, as they are while this execution runs."""

        def find(name: str) -> int | None:
            size = self.fixed(name, execution)
            if size is not None:
                return size
            vector = self.bound.get(names.normal(name))
            if vector is None or execution.config not in self.configs:
                return None  # the sizes that students know are no evidence for a letter
            return vector[self.configs.index(execution.config)]

        return find

    def fixed(self, name: str, execution: Execution, deep: int = 0) -> int | None:
        """The size of a name that evidence settles; None for a free symbol.

        In this order: a variable of the code, a size of the plan, a legend, a constant of the
        module, a word with one meaning. An attribute of one or two letters settles nothing:
        `self.d` need not be the d of the comments.
        """
        plain = names.normal(name)
        if name not in self.loops:
            spelled = [name, plain]
            if len(plain) > 2 or name.startswith("self."):
                spelled += [f"self.{name}", f"self.{plain}"]
            for spelling in spelled:
                if (size := execution.size(spelling)) is not None:
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
        key = (plain, execution.config)
        if key not in self.meant:
            self.meant[key] = self.by_concept(plain, sizes)
        return self.meant[key]

    def by_concept(self, plain: str, sizes: dict[str, int]) -> int | None:
        """The size of a word that can mean one thing only, a slip of the keyboard allowed."""
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
        """The plan's sizes in a configuration."""
        if config < len(self.plan.sizes):
            return self.plan.sizes[config]
        return self.plan.public or {}

    def free(self, name: str, execution: Execution) -> bool:
        """Whether only the comments themselves can say what the name means."""
        return self.fixed(name, execution) is None

    def liked(self, name: str, executions: list[Execution]) -> list[Vector]:
        """The sizes that a letter usually stands for, likeliest first."""
        found = []
        own = {e.config: e.size(f"self.{name}") for e in executions}
        if all(own.get(c) is not None for c in self.configs):
            found.append(tuple(own[c] for c in self.configs))
        head = [self.by_concept("head_size", self.sizes(c)) for c in self.configs]
        for meant in names.choices(name):
            for role in self.sizes(self.configs[0]) if self.configs else ():
                if names.concept(role) == meant:
                    found.append(tuple(self.sizes(c)[role] for c in self.configs))
            if meant == "head_size" and None not in head:
                found.append(tuple(head))
        return list(dict.fromkeys(found))
