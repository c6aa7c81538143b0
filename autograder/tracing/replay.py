"""An answer's recorded steps made again, with other tensors in the place of some; and a bench that
says what comes of it.

The steps say how each was made: an operation with its arguments, as data. What follows from a step
can so be computed here for another value of it, and nothing of a student's runs: an operation is
one of a list, works on numbers that were recorded, and may give no more numbers than it gave. A
step that does not come out as it was recorded (another order of random numbers, an operation that
is not on the list) is never made again: what depends on it stays unknown.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F

from autograder.course.steps.traces import LEAF, Done, Step, Trace
from autograder.tracing.alike import Known, likeness, near, plain, tells
from autograder.tracing.first_wrong import LAYOUT as MOVES
from autograder.tracing.first_wrong import PARTS, Judged
from autograder.tracing.text import Text

MOST_NUMBERS = 200_000  # that one operation may touch
MOST_TRIES = 600  # ways to mend the steps of one answer
REACH = 10  # steps after a mended one that are looked at
ARITHMETIC = (
    "add sub mul div true_divide pow neg reciprocal square sqrt rsqrt exp exp2 log log2 abs"
)
ARITHMETIC += " sigmoid tanh relu elu gelu clamp clip clamp_min clamp_max maximum minimum sin cos"
ARITHMETIC += " outer dot mv mm bmm matmul einsum linear baddbmm addmm rsub"
REDUCED = "sum mean amax amin max min softmax log_softmax logsumexp norm var std cumsum prod median"
LAYOUT = "transpose permute view reshape unflatten flatten squeeze unsqueeze contiguous movedim t"
LAYOUT += " swapaxes swapdims expand expand_as view_as reshape_as moveaxis adjoint flip roll narrow"
LAYOUT += (
    " select split chunk unbind tensor_split index_select gather cat concat stack hstack clone"
)
LAYOUT += " vstack repeat repeat_interleave tile diagonal diag ravel detach to float double type_as"
CHOSEN = "masked_fill where tril triu eq ne lt le gt ge logical_not logical_and logical_or bool"
CHOSEN += " bitwise_not nan_to_num isnan dist any all zeros_like ones_like full_like"
CHOSEN += " scaled_dot_product_attention"
CHOSEN += " dropout layer_norm unsafe_chunk unsafe_split multiply divide subtract negative"
NAMES = frozenset(f"{ARITHMETIC} {REDUCED} {LAYOUT} {CHOSEN}".split())
SIGNS = (
    "add sub mul truediv pow matmul neg getitem radd rsub rmul rdiv rtruediv rpow rmatmul invert eq"
)
SIGNS += " ne lt le gt ge and or abs iter xor"
PROPERTIES = (".T", ".mT", ".data", ".real")


@dataclass
class Proof:
    """The step that is to blame, the trace as it is with that mended, and what mends it.

    all_right: whether the result is right then. mend: how the operation was mended, in words.
    """

    number: int
    trace: Trace
    all_right: bool
    should: Known | None = None
    mend: str = ""
    suspects: tuple[int, ...] = ()
    earlier: Proof | None = None  # one that makes more right, where this one is not one statement


class NotAgain(Exception):
    """A step that cannot be made again."""


class Replay:
    """A trace that can be made again from some step on."""

    def __init__(self, trace: Trace):
        self.trace = trace
        self.steps = trace.steps
        self.sound: dict[int, bool] = {}
        self.typed: dict[int, torch.Tensor] = {}

    def value(self, number: int) -> torch.Tensor:
        """What a step gave, in the dtype of its kind."""
        if number not in self.typed:
            step = self.steps[number]
            kinds = {"bool": torch.bool, "int": torch.int64}
            self.typed[number] = step.value.to(kinds.get(step.kind, torch.float64))
        return self.typed[number]

    def after(
        self,
        values: Mapping[int, torch.Tensor],
        calls: Mapping[int, tuple[Done, ...]] | None = None,
    ) -> dict[int, torch.Tensor]:
        """All steps that change, with their new values, where some have other values or are made
        in another way; raises `NotAgain` where that cannot be known."""
        changed = dict(values)
        calls = calls or {}
        first = min([*changed, *calls], default=len(self.steps))
        for number in range(first, len(self.steps)):
            step = self.steps[number]
            if number in values or not (number in calls or changed.keys() & set(step.inputs)):
                continue
            if number not in calls and not self.is_sound(number):
                raise NotAgain
            new = self._made(step, calls.get(number, step.calls), changed)
            if new.numel() > max(step.value.numel(), 1):
                raise NotAgain
            if number in calls or not torch.equal(new, self.value(number)):
                changed[number] = new
        return changed

    def is_sound(self, number: int) -> bool:
        """Whether a step comes out as it was recorded when it is made again."""
        if number not in self.sound:
            self.sound[number] = self._comes_out(self.steps[number])
        return self.sound[number]

    def _comes_out(self, step: Step) -> bool:
        if step.op == LEAF or step.calls is None:
            return False
        try:
            new = self._made(step, step.calls, {})
        except NotAgain:
            return False
        return new.shape == step.value.shape and near(plain(new.double()), plain(step.value))

    def _made(self, step: Step, calls, changed: Mapping[int, torch.Tensor]) -> torch.Tensor:
        before = None
        for done in calls or ():
            before = self._one(done, before, changed)
        if before is None:
            raise NotAgain
        return before

    def _one(self, done: Done, before, changed: Mapping[int, torch.Tensor]) -> torch.Tensor:
        given, named = [], {}
        try:
            for each in done.given:
                if each[0] == "k":
                    named = {name: self._argument(a, before, changed) for name, a in each[1]}
                else:
                    given.append(self._argument(each, before, changed))
            made = call(done.op, given, named)
        except NotAgain:
            raise
        except Exception:  # what a recorded operation may raise is as wide as torch
            raise NotAgain from None
        if done.which >= 0 and isinstance(made, tuple | list):
            made = made[done.which] if done.which < len(made) else None
        if not isinstance(made, torch.Tensor):
            raise NotAgain
        return made

    def _argument(self, each: tuple, before, changed):
        kind, *rest = each
        if kind == "c":  # a tensor that was not recorded
            return rest[0]
        if kind == "t":
            return changed[rest[0]] if rest[0] in changed else self.value(rest[0])
        if kind == "p":
            return before
        if kind == "v":
            return rest[0]
        if kind == "e":
            return Ellipsis
        if kind == "s":
            return slice(*(self._argument(part, before, changed) for part in rest))
        if kind == "l":
            return [self._argument(part, before, changed) for part in rest]
        if kind == "u":
            return tuple(self._argument(part, before, changed) for part in rest)
        kinds = {"float32": torch.float64, "float64": torch.float64, "float16": torch.float64}
        kinds |= {"bool": torch.bool, "int64": torch.int64, "int32": torch.int64}
        return kinds[rest[0]]

    def trace_with(self, changed: Mapping[int, torch.Tensor]) -> Trace:
        """The trace with these values in the place of the recorded ones."""
        steps = tuple(
            replace(step, value=changed[i].double()) if i in changed else step
            for i, step in enumerate(self.steps)
        )
        return replace(self.trace, steps=steps)


@dataclass
class Bench:
    """A judged trace on which steps can be mended."""

    judged: Judged
    until: float
    text: Text
    replay: Replay = field(init=False)

    def __post_init__(self):
        self.replay = Replay(self.judged.trace)
        self.group_of = self._groups(lambda step: step.outer)
        self.wide_group_of = self._groups(lambda step: ())
        own = self.judged.own
        self.wanted = [plain(own.trace.steps[i].value) for i in own.trace.returned]

    def _groups(self, more) -> dict[int, tuple[int, ...]]:
        """The steps that one place in the text made, by each of them."""
        groups: dict = {}
        for number, step in enumerate(self.judged.steps):
            if step.place is not None:
                key = (step.place, step.op, step.calls[-1].which if step.calls else 0, more(step))
                groups.setdefault(key, []).append(number)
        return {i: tuple(group) for group in groups.values() for i in group}

    # --- what comes of a mended step -------------------------------------------------------------
    def outcome(self, values: dict, calls: dict | None = None) -> tuple[dict, bool] | None:
        """What changes, and whether the result is right; None where that cannot be known."""
        self.judged.work.tries += 1
        if self.judged.work.tries > MOST_TRIES or time.thread_time() > self.until:
            return None
        try:
            changed = self.replay.after(values, calls)
        except NotAgain:
            return None
        return changed, self.is_right(changed)

    def is_right(self, changed: dict) -> bool:
        """Whether what is returned is right."""
        returned = self.judged.trace.returned
        if len(returned) != len(self.wanted) or not returned:
            return False
        for number, wanted in zip(returned, self.wanted, strict=True):
            value = changed[number] if number in changed else self.judged.steps[number].value
            if value.shape != wanted.shape or not near(plain(value.double()), wanted):
                return False
        return True

    def gains(self, changed: dict, mended: dict) -> int:
        """How many of the next steps are right now that were not, beside what was put in."""
        own = [plain(v.double()).flatten().sort().values for v in mended.values()]
        count = 0
        after = [i for i in sorted(changed) if i not in mended][:REACH]
        for number in after:
            old = self.judged.like.get(number)
            if (old is not None and old.in_order) or number in self.judged.right:
                continue
            value = changed[number]
            if not value.is_floating_point() or not tells(value.double()):
                continue
            found = likeness(value.double(), self.judged.own.right)
            if found is None or not found.in_order or found.turned:
                continue
            ordered = plain(value.double()).flatten().sort().values
            count += not any(len(o) == len(ordered) and near(o, ordered) for o in own)
        return count

    def places_returned_wrong(self) -> list[int]:
        """The returned steps that are not what is wanted there."""
        returned = self.judged.trace.returned
        pairs = zip(returned, self.wanted, strict=False)
        steps = self.judged.steps
        return [
            i
            for i, wanted in pairs
            if i < len(steps)
            and (steps[i].value.shape != wanted.shape or not near(plain(steps[i].value), wanted))
        ]

    def one_statement(self, numbers: Iterable[int]) -> bool:
        """Whether one statement made these steps."""
        lines = {self.text.line(self.judged.steps[i]) for i in numbers}
        return len(lines) == 1 and None not in lines

    # --- which steps may be wrong ----------------------------------------------------------------
    def ancestors(self, numbers) -> set[int]:
        """These steps and all that they were made from."""
        left, seen = list(numbers), set()
        while left:
            number = left.pop()
            if number not in seen:
                seen.add(number)
                left += self.judged.steps[number].inputs
        return seen

    def suspects(self) -> list[int]:
        """The steps that are not right and that the result depends on, in order."""
        judged = self.judged
        roots = self.places_returned_wrong() or list(judged.trace.returned)
        on_the_way = self.ancestors(i for i in roots if i < len(judged.steps))
        return sorted(i for i in on_the_way & (judged.bad | judged.unsure))

    def before(self, number: int) -> list[int]:
        """The right steps that a wrong one was made of, through changes of layout, in order."""
        judged, found = self.judged, set()
        left = list(judged.steps[number].inputs)
        while left:
            each = left.pop()
            step = judged.steps[each]
            if each in found or step.op == LEAF or step.kind != "float" or step.place is None:
                continue
            found.add(each)
            like = judged.like.get(each)
            moved = like is not None and like.order is not None
            moved = moved and list(like.order) != sorted(like.order)
            if step.op in MOVES or step.op in PARTS or moved:
                left += step.inputs
        return sorted(found - judged.bad)


def call(name: str, given: list, named: dict):
    """An operation by its name, on tensors; raises NotAgain for one that is not on the list."""
    named = {k: v for k, v in named.items() if k not in ("out", "_stacklevel", "inplace")}
    if name in PROPERTIES:
        return given[0] if name in (".data", ".real") else getattr(given[0], name[1:])
    if name == "__setitem__":
        new = given[0].clone()
        new[given[1]] = given[2]
        return new
    function = _function(name, given)
    shapes = [t.shape for t in _flat([*given, *named.values()]) if isinstance(t, torch.Tensor)]
    if _touched(name, given, named, shapes) > MOST_NUMBERS:
        raise NotAgain
    return function(*given, **named)


def _function(name: str, given: list):
    if name == "where" and given[0].dtype == torch.bool:  # also a method, with other places
        return torch.where
    if name == "dropout":  # in evaluation; what was dropped does not come out as recorded
        return lambda x, *_, **__: x
    if name.startswith("__") and name.endswith("__"):
        bare = name[2:-2]
        if bare in SIGNS.split():
            return getattr(torch.Tensor, name)
        if bare.startswith("i") and bare[1:] in SIGNS.split():
            return getattr(torch.Tensor, f"__{bare[1:]}__")
        raise NotAgain
    bare = name.rstrip("_")
    if bare not in NAMES:
        raise NotAgain
    homes = (torch.Tensor, F, torch) if given and isinstance(given[0], torch.Tensor) else (torch, F)
    for home in homes:
        if hasattr(home, bare):
            return getattr(home, bare)
    raise NotAgain


def _touched(name: str, given: list, named: dict, shapes: list) -> int:
    """A bound on the numbers that an operation touches, computed without making one."""
    sizes = [math.prod(shape) for shape in shapes]
    if name == "einsum":
        return _in_einsum(given[0], shapes)
    if name in ("repeat", "tile", "expand", "repeat_interleave"):
        meta = [each.to("meta") if isinstance(each, torch.Tensor) else each for each in given]
        return getattr(torch.Tensor, name)(*meta, **named).numel()
    if name in ("matmul", "bmm", "mm", "__matmul__", "linear", "outer"):
        last = shapes[1][-2 if name == "linear" else -1] if len(shapes) > 1 and shapes[1] else 1
        return sizes[0] * last
    if name in ("baddbmm", "addmm", "scaled_dot_product_attention"):
        one, two = (1, 2) if "add" in name else (0, 1)
        return sizes[one] * max(shapes[two])
    if name in ("index_select", "gather", "__getitem__"):
        places = [
            t for t in _flat(given[1:]) if isinstance(t, torch.Tensor) and not t.is_floating_point()
        ]
        counts = [t.numel() for t in places if t.dtype != torch.bool]
        return max(sizes[0], math.prod(counts) * sizes[0] // max(shapes[0][0], 1) if counts else 0)
    if name in ("cat", "concat", "stack", "hstack", "vstack"):
        return sum(sizes)
    if name == "diag":
        return sizes[0] ** 2
    try:
        wide = torch.broadcast_shapes(*shapes) if len(shapes) > 1 else ()
    except RuntimeError:
        wide = ()
    return max([math.prod(wide), *sizes], default=0)


def _in_einsum(words: str, shapes: list) -> int:
    """All letters' sizes multiplied: no order of the products touches more."""
    operands = words.replace(" ", "").partition("->")[0].split(",")
    sizes: dict[str, int] = {}
    most = 1
    for letters, shape in zip(operands, shapes, strict=True):
        front, _, back = letters.partition("...")
        own = [*zip(front, shape, strict=False)]
        own += zip(reversed(back), reversed(shape), strict=False)
        for letter, size in own:
            sizes[letter] = max(sizes.get(letter, 1), size)
        most = max(most, math.prod(shape) // max(math.prod(n for _, n in own), 1))
    return math.prod(sizes.values()) * most


def _flat(values: list) -> list:
    return [t for each in values for t in (each if isinstance(each, list | tuple) else [each])]
