"""How to build and call what a student wrote, and with which sizes.

A plan is read from calls written the way one would type them, with the shape of every tensor:
`SelfAttention(input_size, hidden)(x[batch_size, seq_len, input_size])`. Several calls (for
several modes) are separated by `;`, sizes that follow from others come after `where`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter

from autograder.notation import NotationError, called_name, names_in, read_call, value_of
from autograder.shapes.text.names import concept

RUNS = 3
IMAGE, LARGEST, ROUNDS = 4, 20_000, 3  # axes of an image; numbers of a tensor; tries for fewer
SMALL = 256  # a size up to which no run is slow
SLOW, NAMES, WAYS = 500_000, 5, 24  # numbers of a tensor that make a run slow; what is tried then
PRIMES = (3, 5, 7, 11, 13, 17, 19, 2, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61)
PRIMES += (67, 71, 73, 79, 83, 113)
LARGE = (97, 89, 101, 103, 107, 109)  # room for every sequence: a block size, a context length
# How often something is done, one time after the other.
LAYERS = re.compile(r"layers?$|^(?:num|n)_?blocks?$|^blocks$|depth$|stages$", re.I)
ROOM = re.compile(r"context|^block$|block_?(?:size|len)|max_|n_ctx|vocab", re.I)


class PlanError(NotationError):
    """A call that could not be read; the message says which and why."""


@dataclass(frozen=True)
class Plan:
    """Calls (as JSON-able trees), the names of the sizes, and the sizes of each run."""

    calls: tuple[dict, ...]
    roles: tuple[str, ...]
    sizes: tuple[dict[str, int], ...]
    entries: tuple[str, ...]
    public: dict[str, int] | None = None
    where: dict[str, str] = field(default_factory=dict)
    own: tuple[tuple[str, frozenset[str]], ...] = ()  # of each call: the entry, and its sizes


def numbers_of(tree: object) -> set[int]:
    """The numbers that stand in a call: sizes that another call would have otherwise."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        return set().union(*map(numbers_of, tree))
    return {int(tree)} if isinstance(tree, str) and tree.isdecimal() else set()


def plan(call: str, *, where: dict[str, str] | None = None, public: dict | None = None) -> Plan:
    """Reads calls such as `F(a, b)(x[n, a], causal=True)`.

    `where` gives sizes that follow from others, `{"hidden": "num_heads * head_size"}`; a hidden
    size and a number of heads are tied like this unasked. `public` is a set of sizes that the
    students know, for comments in numbers. Raises PlanError with what could not be read.
    """
    derived = dict(where or {})
    calls, entries, roles = [], [], []
    own: list[set[str]] = []
    for text in (part.strip() for part in re.split(r";|\n", call)):
        if not text:
            continue
        text, _, rules = text.partition(" where ")
        for rule in filter(None, (r.strip() for r in rules.split(","))):
            name, sign, value = rule.partition("=")
            if not sign:
                raise PlanError(f"`where {rule}`: expected `name = expression`.")
            derived[name.strip()] = value.strip()
        try:
            tree, found = read_call(text)
        except NotationError as error:
            raise PlanError(str(error)) from None
        calls.append(tree)
        entries.append(called_name(tree))
        roles += [r for r in found if r not in roles]
        own.append({r for r in found if concept(r) != "seq" or r in _of_tensors(tree)})
    if not calls:
        raise PlanError("No call to make: expected something like `Model(size)(x[batch, size])`.")
    _tie_heads(roles, derived)
    derived = _in_order(derived)
    free = [r for r in roles if r not in derived]
    for value in derived.values():
        free += [n for n in names_in(value) if n not in free and n not in derived]
    sizes = _with_little_work(tuple(free), derived, calls)
    every = tuple(dict.fromkeys([*roles, *free, *derived]))
    if public:
        public = {
            **public,
            **{k: int(value_of(v, public)) for k, v in derived.items() if k not in public},
        }
    for names in own:
        # A letter of a rule need not be the letter of the comments: `channels = 4 * c`. What is
        # added only keeps sizes apart: `points = sampled + rest`.
        tied = [derived[r] for r in names & set(derived)]
        rules = {n for rule in tied if "+" not in rule for n in names_in(rule)}
        names |= {n for n in rules if len(n) > 1}
    return Plan(
        tuple(calls),
        every,
        sizes,
        tuple(dict.fromkeys(entries)),
        public,
        derived,
        tuple(zip(entries, map(frozenset, own), strict=True)),
    )


def _of_tensors(tree: object) -> set[str]:
    """The sizes of the tensors in a call. A length that is only handed over may be the longest."""
    return {n for dims in _dims_of(tree) for dim in dims for n in names_in(dim)}


def _with_little_work(free: tuple[str, ...], derived: dict[str, str], calls: list) -> tuple:
    """Sizes with which the calls take little time: the smallest ones for how many layers there are,
    for images, and for what makes a tensor large. Where one stays large, there are two runs."""
    images = (dims for dims in _dims_of(calls) if len(dims) >= IMAGE)
    work = {n for n in free if LAYERS.search(n)}
    work |= {n for dims in images for dim in dims[2:] for n in names_in(dim)}
    rules = tuple(derived.items())
    sizes = ()
    for _ in range(ROUNDS):
        work = {n for n in work if n in free and not ROOM.search(n)}
        try:
            sizes = _choose(free, rules, tuple(n for n in free if n in work))
        except PlanError:
            if not sizes:
                raise
            return sizes
        large = set()
        for run in sizes:
            for dims in _dims_of(calls):
                if math.prod(value_of(dim, run) for dim in dims) > LARGEST:
                    large |= {n for d in dims for n in _needed(d, derived)}
            large |= {n for d in derived if run[d] > SMALL for n in _needed(d, derived)}
        if large <= work:
            break
        work |= large
    few = tuple(n for n in free if n in work)
    if max(_numbers(run, calls) for run in sizes) > SLOW and len(few) <= NAMES:
        return _two_runs(free, rules, few, sizes, calls) or sizes
    return sizes


def _numbers(run: dict[str, int], calls: list) -> int:
    """How many numbers the tensors of the calls have in a run."""
    return sum(math.prod(value_of(dim, run) for dim in dims) for dims in _dims_of(calls))


def _two_runs(
    free: tuple[str, ...], rules: tuple, few: tuple[str, ...], sizes: tuple, calls: list
) -> tuple[dict[str, int], ...]:
    """Two runs with the smallest primes for a few names, in the order that makes the least work of
    those that leave no two expressions alike; none where there is no such order."""
    dealt = list(itertools.permutations(sorted(PRIMES)[: len(few) + 1], len(few)))
    ways = []
    for run in sizes[:2]:
        every = (_followed({**run, **dict(zip(few, p, strict=True))}, rules) for p in dealt)
        apart = [r for r in every if len({r[n] for n in free}) == len(free)]
        ways.append(sorted(apart, key=lambda r: _numbers(r, calls))[:WAYS])
    pairs = sorted(itertools.product(*ways), key=lambda p: sum(_numbers(r, calls) for r in p))
    return next((p for p in pairs if not any(collisions(free, list(p)))), ())


def _needed(dim: str, derived: dict[str, str]) -> set[str]:
    """The names that a size is made of, through the rules that give some of them."""
    found = names_in(dim)
    return set(found).union(*(_needed(derived[n], derived) for n in found if n in derived))


def _dims_of(tree: object) -> Iterator[list[str]]:
    """The dimensions of each tensor in a call."""
    if isinstance(tree, dict):
        if tree.get("kind") == "tensor":
            yield tree.get("dims", [])
        tree = list(tree.values())
    for part in tree if isinstance(tree, (list, tuple)) else ():
        yield from _dims_of(part)


def _in_order(derived: dict[str, str]) -> dict[str, str]:
    """The sizes that follow from others, each behind those that it follows from."""
    if wrong := [name for name in derived if not name.isidentifier()]:
        raise PlanError(
            f"`{wrong[0]}={derived[wrong[0]]}`: expected the name of a size before `=`."
        )
    try:
        needed = {name: names_in(expr) for name, expr in derived.items()}
        order = TopologicalSorter(needed).static_order()
        return {name: derived[name] for name in order if name in derived}
    except SyntaxError:
        raise PlanError("A size after `where` is no expression of names and numbers.") from None
    except CycleError as error:
        around = " from ".join(f"`{name}`" for name in error.args[1])
        raise PlanError(f"Each of these sizes follows from the next: {around}.") from None


def _tie_heads(roles: list[str], derived: dict[str, str]) -> None:
    """A hidden size that is split over heads must be a multiple of their number."""
    heads = [r for r in roles if concept(r) == "heads"]
    if not heads or any(r in derived for r in roles):
        return
    wide = [r for r in roles if concept(r) == "hidden"]
    other = [r for r in roles if concept(r) not in ("heads", "head_size")]
    wide = wide or [r for r in other if re.search(r"emb|model|channel|dim|^C$|^D$", r)]
    if wide:
        sized = next((r for r in roles if concept(r) == "head_size"), "head_size")
        derived[wide[0]] = f"{heads[0]} * {sized}"


@lru_cache(64)
def _choose(
    free: tuple[str, ...], derived: tuple[tuple[str, str], ...], work: tuple[str, ...]
) -> tuple[dict[str, int], ...]:
    """Sizes for each run: distinct primes, and no two expressions alike in all the runs."""
    if len(free) > len(PRIMES) - RUNS:
        raise PlanError(f"{len(free)} sizes are more than the checker can keep apart.")
    for shift in range(40):
        runs = [_sizes(free, derived, work, run, shift) for run in range(RUNS)]
        if all(s > 0 for run in runs for s in run.values()) and not any(collisions(free, runs)):
            return tuple(runs)
    raise PlanError("No sizes could be found that cannot be confused.")


def _sizes(
    free: tuple[str, ...], derived: tuple, work: tuple[str, ...], run: int, shift: int
) -> dict[str, int]:
    """The sizes of a run. Where a product is large, its factors have the smallest primes, and those
    that cost the most work always: how many layers there are, and the sizes of an image."""
    order = PRIMES[: max(len(free) + 3, 8)]
    turn = (run * (3 + shift % 5) + shift) % len(order)
    order = order[turn:] + order[:turn]
    large = iter(LARGE[run:] + LARGE[:run])
    least = sorted(order)[: len(work) + 1 + shift // 5]
    least = dict(zip(work, least[run % len(least) :] + least[: run % len(least)], strict=False))
    left = iter([p for p in order if p not in least.values()])
    dealt = {r: least.get(r) or next(left) for r in free}
    dealt |= {r: next(large, dealt[r]) for r in free if ROOM.search(r)}
    sizes = _followed(dealt, derived)
    if max(sizes.values(), default=0) <= SMALL:
        return sizes
    factors = {n for _, expr in derived if "*" in expr for n in names_in(expr)}
    rest = [r for r in free if not ROOM.search(r) and r not in work]
    primes = [dealt[r] for r in rest]
    few = sorted(primes)[: sum(r in factors for r in rest)]
    least, others = iter(few), iter([p for p in primes if p not in few])
    again = {r: next(least if r in factors else others) for r in rest}
    return _followed({**dealt, **again}, derived)


def _followed(sizes: dict[str, int], derived: tuple) -> dict[str, int]:
    """With the sizes that follow from others."""
    sizes = dict(sizes)
    for name, expr in derived:
        sizes[name] = value_of(expr, sizes)
    return sizes


def collisions(free: tuple[str, ...], runs: list[dict[str, int]]) -> Iterator[tuple[str, str]]:
    """Pairs of different size expressions that agree in every run.

    The expressions: products of up to three sizes (up to two when there are many), their
    quotients by a size, each of them plus or minus 1, and the numbers up to 64.
    """
    seen: dict[tuple[int, ...], str] = {(n,) * len(runs): str(n) for n in range(2, 65)}
    degree = 3 if len(free) <= 7 else 2
    for n in range(1, degree + 1):
        for product in itertools.combinations_with_replacement(free, n):
            values = tuple(math.prod(run[role] for role in product) for run in runs)
            text = "*".join(product)
            options = [(text, values)]
            options += [
                (f"{text}/{d}", tuple(v // run[d] for v, run in zip(values, runs, strict=True)))
                for d in free
                if d not in product
                if not any(v % run[d] for v, run in zip(values, runs, strict=True))
            ]
            for name, sizes in options:
                for offset in (0, 1, -1) if name in free else (0,):
                    shown = name + (f"{offset:+d}" if offset else "")
                    key = tuple(v + offset for v in sizes)
                    if seen.setdefault(key, shown) != shown:
                        yield seen[key], shown
