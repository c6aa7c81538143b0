"""Writes down each step of a call: what every torch operation of the answer gave, and where.

Loaded by its path inside the sandbox, beside the runner; standard library and torch only. It sees
the operations that the answer's own code asks for, in order, with the lines they stand in and the
steps that they were made from. How much it writes down is bounded in steps and in numbers. What has
no numbers to write down, such as a tensor inside `torch.vmap`, is left out with all made of it.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import sys

import torch
from torch.overrides import TorchFunctionMode

if __package__:
    from .sandbox_values import has_numbers
else:  # in the sandbox, where the engine is not
    from sandbox_values import has_numbers

MAX_STEPS = 1_500
MAX_ONE = 20_000  # numbers of one tensor
MAX_ALL = 300_000  # numbers of all tensors of a call
MAX_INPUTS = 64
MAX_NAMED = 200  # variables of a function that are looked at
MAX_OUTER = 4  # lines that lead to an operation
MAX_CALLS = 400  # changes of one tensor that are written into one row
LEAF = "given"  # the operation of what was there before


def run(runner, header: dict, tensors: dict) -> tuple[dict, dict]:
    """Makes each call once more under the recorder; `named` asks for variables' names too."""
    traces, out = [], {}
    for number, call in enumerate(header["calls"]):
        recorder = Recorder(file_of(runner.namespace.get(call["name"])), header.get("named"))
        runner.watch, runner.last = recorder, None
        outcome = runner.call(call, tensors, {})
        values = recorder.values()
        out[f"values{number}"] = values
        traces.append(
            {
                "steps": [row for row in recorder.rows if row is not None],
                "returned": recorder.returned(runner.last),
                "stopped": recorder.stopped if outcome.get("error") else None,
                "full": recorder.full,
            }
        )
        runner.watch, runner.last = contextlib.nullcontext(), None
    return {"traces": traces}, out


def file_of(target) -> str | None:
    """The file that the text of a function or a class stands in."""
    target = getattr(target, "func", target)  # of a functools.partial
    own = getattr(target, "__dict__", {})
    for part in (target, *(own.values() if isinstance(target, type) else ())):
        code = getattr(part, "__code__", None)
        if code is not None:
            return code.co_filename
    return None


class Recorder(TorchFunctionMode):
    """Keeps a row for each tensor that an operation gave.

    A row: its number, the operation, [line, end line, column, end column], the lines that called
    the function it stands in, the numbers of the rows it was made from, its shape, its kind, and,
    where asked for, a variable's name. `calls`: how it was made, as [operation, arguments, which of
    the results it is], several where one line changed it again and again; None where that cannot
    be written down.
    """

    def __init__(self, file: str | None, named: bool = False):
        super().__init__()
        self.file, self.named = file, bool(named)
        self.rows: list[dict | None] = []
        self.kept: list[torch.Tensor | None] = []
        self.alive: list[torch.Tensor] = []  # so that no identity is used twice
        self.row_of: dict[int, int] = {}
        self.version: dict[int, int] = {}
        self.read: set[int] = set()
        self.part_of: dict[int, tuple[int, list]] = {}  # of a view: its base, and the index
        self.total, self.full, self.stopped = 0, False, None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        place, outer = self._place()
        if self.full or (place is None and self.file is not None):
            return func(*args, **kwargs)
        given = list(itertools.islice(_tensors((args, kwargs)), MAX_INPUTS))
        if not all(map(has_numbers, given)):
            return func(*args, **kwargs)
        inputs = [self._row(t) for t in given]
        try:
            value = func(*args, **kwargs)
        except BaseException:
            if self.stopped is None:
                op = str(getattr(func, "__name__", ""))[:60]
                self.stopped = {"op": op, "inputs": inputs, "place": place, "outer": outer}
            raise
        name = getattr(func, "__name__", "")
        in_place = _is_in_place(name, args, kwargs)
        made = [args[0]] if name == "__setitem__" else list(_tensors(value))
        if made and not self.full and all(map(has_numbers, made)):
            call = _written(
                func, name, args, kwargs, dict(zip(map(id, given), inputs, strict=True))
            )
            self._note(name, (place, outer), inputs, made, in_place, call)
            if name == "__getitem__" and call is not None and made[0]._base is args[0]:
                self.part_of[id(made[0])] = id(args[0]), call[1][1]
        return value

    def _note(self, name: str, where, inputs: list[int], made: list, in_place: bool, call) -> None:
        self.read.update(inputs)
        for place, tensor in enumerate(made):
            calls = None if call is None else [[*call[:2], place if len(made) > 1 else -1]]
            if not in_place:
                self._add(tensor, name, where, inputs, calls)
                continue
            base = tensor._base
            number = self._add(
                tensor, name, where, *self._change(tensor, name, where, inputs, calls)
            )
            if base is not None and id(base) in self.row_of:
                whole, index = self.part_of.get(id(tensor), (None, None))
                put = None
                if whole == id(base):
                    last = ["t", self.row_of[id(base)]]
                    put = [["__setitem__", [last, index, ["t", number]], -1]]
                self._add(base, name, where, *self._change(base, name, where, [number], put))
        if self.named:
            self._name()

    def _change(self, tensor, name: str, where, inputs: list[int], calls) -> tuple:
        """What a changed tensor is made from, and how. The same line changing it again makes one
        row."""
        last = self.row_of.get(id(tensor))
        if last is None:
            return inputs, calls
        row = self.rows[last]
        others = [i for i in inputs if i != last]
        same = row and row["op"] == name and row["place"] == where[0]
        if same and last not in self.read - {last}:
            self.rows[last], self.total = None, self.total - self.kept[last].numel()
            self.kept[last] = None
            made_of = list(dict.fromkeys([*row["inputs"], *others]))[:MAX_INPUTS]
            return made_of, _after(row["calls"], calls, last)
        return list(dict.fromkeys([last, *others])), calls

    def _row(self, tensor) -> int:
        """The row of a tensor; a new one where it was not seen, or changed since."""
        number, known = id(tensor), self.row_of.get(id(tensor))
        if known is None:
            return self._add(tensor, LEAF, (None, []), [])
        if self.version[number] != _version(tensor):
            return self._add(tensor, "changed", (None, []), [known])
        return known

    def _add(self, tensor, name: str, where, inputs: list[int], calls: list | None = None) -> int:
        number = len(self.rows)
        size = tensor.numel()
        if number >= MAX_STEPS or size > MAX_ONE or self.total + size > MAX_ALL:
            self.full = True
            return max(number - 1, 0)
        plain = tensor.detach().to("cpu").to_dense()
        kind = "float" if plain.is_floating_point() else "bool" * (plain.dtype == torch.bool)
        if plain.is_complex():  # nothing is said of such numbers
            plain, kind = plain.abs() > 0, "complex"
        row = {"number": number, "op": str(name)[:60], "place": where[0], "outer": where[1]}
        row["calls"] = calls
        row |= {"inputs": [i for i in inputs if self.rows[i] is not None]}
        self.rows.append(row | {"shape": list(plain.shape), "kind": kind or "int", "name": ""})
        self.kept.append(plain.double().flatten().clone())
        self.total += size
        self.alive.append(tensor)
        self.row_of[id(tensor)], self.version[id(tensor)] = number, _version(tensor)
        return number

    def _place(self) -> tuple[list[int] | None, list[int]]:
        """Where in the answer's text the operation is asked for, and the lines that lead there."""
        frame, place, outer = sys._getframe(2), None, []
        while frame is not None and len(outer) < MAX_OUTER:
            code = frame.f_code
            if code.co_filename == self.file and place is None:
                at = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None))
                line, end, column, last = at
                place = [frame.f_lineno if line is None else line, end or line, column, last]
            elif code.co_filename == self.file:
                outer.append(frame.f_lineno)
            frame = frame.f_back
        return place, outer

    def _name(self) -> None:
        """Gives rows the names of the variables that hold their tensors; arguments are none."""
        frame = sys._getframe(3)
        for _ in range(8):
            if frame is None:
                return
            self._name_in(frame)
            frame = frame.f_back

    def _name_in(self, frame) -> None:
        code = frame.f_code
        if self.file is None or code.co_filename == self.file:
            for name in code.co_varnames[code.co_argcount + code.co_kwonlyargcount :][:MAX_NAMED]:
                held = frame.f_locals.get(name)
                row = self.row_of.get(id(held)) if isinstance(held, torch.Tensor) else None
                if row is not None and self.rows[row] and not self.rows[row]["name"]:
                    self.rows[row]["name"] = name

    def __enter__(self):
        if self.named:  # what a function assigned last is seen when it returns
            self.profile = sys.getprofile()
            sys.setprofile(lambda frame, event, _: event == "return" and self._name_in(frame))
        return super().__enter__()

    def __exit__(self, *error):
        try:
            return super().__exit__(*error)
        finally:
            if self.named:
                sys.setprofile(self.profile)

    def returned(self, value) -> list[int]:
        """The rows of what the call returned."""
        rows = [self.row_of.get(id(t)) for t in itertools.islice(_tensors(value), 8)]
        return [r for r in rows if r is not None]

    def values(self) -> torch.Tensor:
        """The numbers of all rows, one after the other."""
        kept = [t for t in self.kept if t is not None]
        return torch.cat(kept) if kept else torch.zeros(0, dtype=torch.float64)


def _written(func, name: str, args: tuple, kwargs: dict, rows: dict[int, int]) -> list | None:
    """How an operation was asked for, as [its name, its arguments]; None where it holds something
    that cannot be written down. Of a property, such as `x.T`, the name is that of the property."""
    if name == "__get__":
        name = f".{getattr(getattr(func, '__self__', None), '__name__', '')}"
    try:
        given = [_plain(value, rows) for value in args]
        named = {str(key): _plain(value, rows) for key, value in kwargs.items()}
    except (KeyError, TypeError):
        return None
    return [name[:60], [*given, ["k", named]] if named else given]


def _plain(value, rows: dict[int, int], depth: int = 0) -> list:
    """A value as data: [its kind, ...]; raises TypeError for what is none."""
    if isinstance(value, torch.Tensor):
        return ["t", rows[id(value)]]
    if isinstance(value, float) and not math.isfinite(value):
        return ["f", str(value)]
    if value is None or isinstance(value, bool | int | float | str):
        return ["v", value[:200] if isinstance(value, str) else value]
    if value is Ellipsis:
        return ["e"]
    if isinstance(value, slice):
        return ["s", *(_plain(part, rows, depth + 1) for part in _ends(value))]
    if isinstance(value, torch.dtype):
        return ["d", str(value).removeprefix("torch.")]
    if isinstance(value, torch.device):
        return ["v", "cpu"]
    if isinstance(value, list | tuple) and depth < 3 and len(value) <= MAX_INPUTS:
        kind = "l" if isinstance(value, list) else "u"
        return [kind, *(_plain(each, rows, depth + 1) for each in value)]
    raise TypeError(type(value).__name__)


def _ends(part: slice) -> tuple:
    return part.start, part.stop, part.step


def _after(first: list | None, then: list | None, row: int) -> list | None:
    """One change after the other; in the second, the row is the tensor as it was before."""
    if first is None or then is None or len(first) >= MAX_CALLS:
        return None
    before = ["t", row]
    return [*first, *([op, [["p"] if a == before else a for a in args], i] for op, args, i in then)]


def _version(tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # of a tensor made in inference mode
        return 0


def _is_in_place(name: str, args: tuple, kwargs: dict) -> bool:
    changes = name.endswith("_") and not name.endswith("__")
    augmented = name.startswith("__i") and name not in ("__invert__", "__iter__", "__index__")
    return bool(changes or augmented or name == "__setitem__" or kwargs.get("out") is not None)


def _tensors(value, depth: int = 0):
    """The tensors in a value, down into lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < 4 and isinstance(value, list | tuple):
        for each in value[:MAX_INPUTS]:
            yield from _tensors(each, depth + 1)
    elif depth < 4 and isinstance(value, dict):
        for each in list(value.values())[:MAX_INPUTS]:
            yield from _tensors(each, depth + 1)
