"""What the names in one function's comments stand for, and what proves it.

A name is settled by the code (a variable, an attribute, an argument), by the call that was asked
for, by a legend, or by a word that can mean one thing only. What nothing settles is free: `b, s, h`
in a function that never says what they are. A `solver.Solver` gives them the sizes that make most
comments true; what such a choice rests on is counted, since a comment is called false only where
its names are proven.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from autograder.shapes.plan import Plan
from autograder.shapes.recording import Execution, Tensor
from autograder.shapes.text import names
from autograder.shapes.text.dims import Expr, evaluate, names_of
from autograder.shapes.tracer import Function, Stmt, flat

if TYPE_CHECKING:
    from autograder.shapes.solver import Solver

Vector = tuple[int, ...]  # one size a configuration
SURE_WORDS = ("batch", "seq", "heads", "head_size")  # whose words mean nothing else
Unit = tuple[int, int]  # a call of the plan, and a call of the function in it
NUMBER = Tensor(())  # a tensor of one number, which nobody looked into
SIZES = re.compile(r"(\w+)\.(?:shape|size\()")  # `x.shape[0]`, `x.size()`
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
    building: whether it builds an object. called: what variables of the source are called so.
    ahead: by run and call, the sizes of arguments for which the function has a name later on.
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
    building: bool = False
    called: dict[tuple[int, str], set[int]] = field(default_factory=dict)
    ahead: dict[tuple[int, Unit], dict[str, int]] = field(default_factory=dict)

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
                if (size := execution.size(spelling)) is not None and size >= 0:
                    return size, CODE
            if NUMBER in (execution.after.get(name), execution.before.get(name)):
                return None, ""  # `longest = lengths.max()` is not what the call has by that name
            size = self.ahead.get((execution.config, execution.unit), {}).get(name)
            if size is not None and name not in execution.before:
                return size, CODE
        call = execution.unit[0]
        sizes = self.sizes(execution.config, call)
        argument = self.arguments.get(execution.config, {}).get(plain)
        if argument is not None and len(plain) > 2 and not names.may_be_length(plain):
            return argument, CODE  # a length that a class is built with may be the longest
        if call in self.homes and (size := names.of_role(plain, sizes)) is not None:
            return size, CALL
        if plain in self.legend and (value := self._explained(plain, execution)) is not None:
            return value, LEGEND if self._is_of_the_code(plain, execution) else CALL
        if name in self.constants:
            return self.constants[name], CONSTANT
        return self._meant(plain, sizes, call)

    def _is_of_the_code(self, plain: str, execution: Execution) -> bool:
        """Whether what explains a name has no letters that only the call gives a size."""
        letters = [n for n in names_of(self.legend[plain]) if len(n) == 1]
        return all(execution.size(n) is not None for n in letters)

    def _explained(self, plain: str, execution: Execution, deep: int = 0) -> int | None:
        """The size that a legend gives a name: `D = H / N`, `H = hidden`."""
        rule = self.legend[plain]
        if deep > 2 or plain in {names.normal(n) for n in names_of(rule)}:
            return None

        def find(name: str) -> int | None:
            for spelling in (name, f"self.{name}"):
                if (size := execution.size(spelling)) is not None:
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
            others = self._not_beside(plain, sizes)
            slip = names.near(plain, set(map(names.normal, others)))
            alike = {s for r, s in others.items() if names.normal(r) == slip}
            alike = alike or {s for r, s in others.items() if names.akin(r, plain)}
            return (alike.pop(), CALL) if len(alike) == 1 else (None, "")
        return None, ""

    def _not_beside(self, plain: str, sizes: dict[str, int]) -> dict[str, int]:
        """The sizes without those that a comment names beside a name: two names are two sizes."""
        beside = {n for group in self.comments if plain in group for n in group} - {plain}
        return {n: s for n, s in sizes.items() if names.normal(n) not in beside}

    def sizes(self, config: int, call: int) -> dict[str, int]:
        """The sizes of one call of the plan in a configuration."""
        home = self.plan.own[call][1] if call < len(self.plan.own) else None
        given = self.plan.sizes[config] if config < len(self.plan.sizes) else self.plan.public
        return {n: s for n, s in (given or {}).items() if home is None or n in home}

    def _of_another_call(self, name: str, call: int) -> bool:
        """Whether the plan has such a size for other calls only: the comments of theirs prove
        nothing of this one's."""
        plain = names.normal(name)
        every = {names.normal(n) for n in (self.plan.sizes[0] if self.plan.sizes else ())}
        own = {names.normal(n) for config in self.configs[:1] for n in self.sizes(config, call)}
        return plain in every - own

    def free(self, name: str, execution: Execution) -> bool:
        """Whether only the comments themselves can say what the name means."""
        return self.fixed(name, execution)[0] is None

    def word(self, name: str, call: int) -> Vector | None:
        """The sizes of a word that can mean one thing only; as it is spelled in an inner module."""
        given = [self.sizes(c, call) for c in self.configs]
        find = names.by_concept if call in self.homes else names.of_role
        sizes = [find(name, of) for of in given] if call in self.homes or len(name) > 2 else []
        return tuple(sizes) if sizes and None not in sizes else None

    def lines_with(self, name: str, execution: Execution, line: int, here: bool = False) -> int:
        """How many other comments are true in which a name stands alone for its size.

        Those of other functions count where the name hardly ever stands for another size; not at
        all if only `here` is asked.
        """
        said = self.confirmed.of(execution.config, names.normal(name))
        size = self.lookup(execution)(name)
        own = said.get(size, set()) - {line}
        others = sum(map(len, said.values())) - len(own)
        if own:  # with `n + 1`, where `n` is told too
            parts = self.confirmed.parts.get((execution.config, names.normal(name)), {})
            own = own | parts.get(size, set()) - {line}
        here = here or 4 * others > len(own) + 4 or self._of_another_call(name, execution.unit[0])
        return sum(self.lines[0] <= n <= self.lines[1] or not here for n in own)

    def repeated(self, dim: Expr, execution: Execution, line: int) -> bool:
        """Whether a product, a sum or a number stands for its size in two other comments."""
        size = evaluate(dim, self.lookup(execution))
        said = self.confirmed.of(execution.config, repr(dim))
        return len(said) == 1 and size is not None and len(said.get(int(size), set()) - {line}) > 1

    def proven(self, name: str, execution: Execution, line: int) -> bool:
        """Whether a name's size rests on more than the comment in this line."""
        proof = self.fixed(name, execution)[1]
        plain = names.normal(name)
        size = self.lookup(execution)(name)
        others = self.lines_with(name, execution, line)
        if proof == CALL and self.building:  # what the object is called with is not there yet
            return self.lines_with(name, execution, line, here=True) >= names.ENOUGH
        sure = proof not in (CALL, CONSTANT) or (proof == CALL and len(plain) > 2)
        alike = names.spelled_like(name, {**execution.before, **execution.after})
        product = "." in name and self.lookup(execution)(name.split(".")[0]) is not None
        if product or (proof == CALL and not {size}.issuperset(alike)):
            return False  # `b.t`; `num_label`, and an attribute `num_labels` of another size
        if proof and (sure or others):
            return True  # a letter of the call, or a constant, need not be that of the comments
        if not proof and size is not None and execution.size(f"self.{name}") == size:
            return True
        given = self.sizes(execution.config, execution.unit[0])
        roles = self._not_beside(plain, given)
        alike = {s for r, s in roles.items() if names.akin(r, plain)}
        meant = names.concept(name) in SURE_WORDS and execution.unit[0] in self.homes
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
        role = [names.of_role(name, sizes) for sizes in given]  # of an inner module, it need not be
        found += [tuple(role)] if len(name) > 2 and None not in role else []
        head = [names.by_concept("head_size", sizes) for sizes in given]
        word = [names.by_concept(name, sizes) for sizes in given]
        found += [tuple(word)] if None not in word else []
        for meant in names.choices(name):
            for role in given[0] if given else ():
                if names.concept(role) == meant:
                    found.append(tuple(sizes[role] for sizes in given))
            if meant == "head_size" and None not in head:
                found.append(tuple(head))
        said = [] if self._of_another_call(name, call) else self._said(names.normal(name))
        return list(dict.fromkeys([*said, *found]))

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


def whole_numbers(executions: Iterable[Execution]) -> dict[tuple[int, str], set[int]]:
    """The whole numbers that variables and attributes of a name are, by run and name."""
    found: dict[tuple[int, str], set[int]] = {}
    for execution in executions:
        for name, value in [*execution.before.items(), *execution.after.items()]:
            if isinstance(value, int):
                found.setdefault((execution.config, names.normal(name)), set()).add(value)
    return found


def taken_ahead(
    function: Function, stmts: Iterable[tuple[Stmt, str, list[Execution]]]
) -> dict[tuple[int, Unit], dict[str, int]]:
    """The names that a function gives the sizes of its arguments as they come in: a comment above
    `b, t, d = x.shape` has them, too.

    stmts: its statements in their order, each with the text of its value, and its executions.
    """
    found: dict[tuple[int, Unit], dict[str, int]] = {}
    changed: set[str] = set()
    for stmt, text, runs in stmts:
        of = SIZES.match(text)
        if of and of[1] in function.parameters and of[1] not in changed:
            for e in runs:
                own = found.setdefault((e.config, e.unit), {})
                sizes = {n: e.after.get(n) for n in flat(stmt.targets)}
                own |= {n: s for n, s in sizes.items() if isinstance(s, int) and n not in own}
        changed |= set(flat(stmt.targets))
    return found
