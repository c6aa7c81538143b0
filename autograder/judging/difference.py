"""Where a value, a result with all that belongs to it, or an outcome is not what was expected.

Values are compared in float64 with a tolerance relative to the size of what is expected.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch

from autograder.course.calls import Outcome
from autograder.course.sketch import Sketch
from autograder.sandbox.inside.sandbox_values import Other

MOST_EXACT = 2**53  # below it, a whole number is the same in floating point
FLOOR = 1e-6  # where all that is expected is zero, differences up to this are rounding
LARGE = 1e4  # from here on a number may stand for infinity, also in half precision
PLAIN = (bool, int, float, complex, str)
ORDINALS = {"0": "first", "1": "second", "2": "third", "3": "fourth", "4": "fifth"}


KINDS = (
    *("type", "length", "shape", "dtype", "nan", "values", "gradient", "not in place"),
    *("no error", "input changed", "hook left in", "model changed", "another mode"),
)


def is_nameless(check: str, task: str) -> bool:
    """Whether a finding tells how a value differs, and no mistake that somebody named: an author's
    own name may begin with the task's, too."""
    start, _, kind = check.rpartition(".")
    return start == task and kind in KINDS


@dataclass(frozen=True)
class Difference:
    """How a value differs from what was expected; `text` says it without showing the value.

    lost: the keys that are missing in a dict.
    """

    kind: str  # one of KINDS
    text: str
    expected: str = ""
    got: str = ""
    lost: tuple[str, ...] = ()


def difference(
    got, expected, rtol: float, where: str = "the result", size: float = 0.0
) -> Difference | None:
    """None where `got` is `expected` up to the tolerance, else how they differ.

    The tolerance is rtol times the largest magnitude in a tensor, or `size` if that is larger.
    """
    if isinstance(got, Other):
        kind = got.name.rpartition(".")[2]
        return Difference("type", f"{where} is a {kind}", word(expected), f"a {kind}")
    if got is None and expected is not None:
        text = f"{where} is None; perhaps a `return` is missing"
        return Difference("type", text, word(expected), "None")
    if isinstance(expected, torch.Tensor):
        return _tensor_difference(got, expected, rtol, where, size)
    if isinstance(expected, (tuple, list)):
        if not isinstance(got, (tuple, list)):
            text = f"{where} should hold {len(expected)} things"
            return Difference("type", text, word(expected), word(got))
        if len(got) != len(expected):
            text = f"{where} holds {len(got)} things, not {len(expected)}"
            return Difference("length", text, word(expected), word(got))
        pairs = enumerate(zip(got, expected, strict=True), 1)
        return _first(
            _at(difference(g, e, rtol, f"part {i} of {where}"), g, e, where, f"at place {i}")
            for i, (g, e) in pairs
        )
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return Difference("type", f"{where} should be a dict", word(expected), word(got))
        got, expected = ({str(k): v for k, v in each.items()} for each in (got, expected))
        lost = [k for k in expected if k not in got]
        if lost or len(got) != len(expected):
            text = f"{where} has other keys than it should"
            return Difference("length", text, word(expected), word(got), tuple(lost))
        return _first(
            _at(
                difference(got[k], e, rtol, f"{where}[{k!r}]"), got[k], e, where, f"under key {k!r}"
            )
            for k, e in expected.items()
        )
    if isinstance(expected, bool) or expected is None or isinstance(expected, str):
        got = got.item() if isinstance(got, torch.Tensor) and got.numel() == 1 else got
        same = type(got) is type(expected) and got == expected
        if same:
            return None
        if type(got) is not type(expected):
            text = f"{where} should be {word(expected)}"
            return Difference("values", text, word(expected), word(got))
        kind = "text" if isinstance(expected, str) else "value"
        text = f"{where} is another {kind} than expected"
        return Difference("values", text, "", f"another {kind}")
    if isinstance(expected, int) and abs(expected) >= MOST_EXACT:
        same = got == expected if isinstance(got, int | float) else False
        return (
            None
            if same
            else Difference("values", f"{where} is not right", word(expected), word(got))
        )
    if not isinstance(expected, int | float | complex):  # what crosses the wall as a name alone
        return Difference("type", f"{where} is no plain value", word(expected), word(got))
    found = _tensor_difference(got, torch.tensor(expected), rtol, where)
    if found is None or isinstance(got, torch.Tensor) and got.dim():
        return found
    if found.kind == "type":
        return replace(found, text=f"{where} should be a number", expected=word(expected))
    if found.kind == "nan":
        return replace(found, text=f"{where} is NaN", expected=word(expected), got="NaN")
    return replace(found, expected="", got="another value")  # more would tell the number


def _at(found: Difference | None, got, expected, where: str, place: str) -> Difference | None:
    """The difference of one part of a list or dict; of a plain value the place alone is told."""
    if found is None or found.kind != "values" or type(got) is not type(expected):
        return found
    if not isinstance(expected, PLAIN):
        return found
    text = f"{where} has another value {place}"
    return replace(found, text=text, expected="", got=f"another value {place}")


def _first(differences):
    return next((d for d in differences if d is not None), None)


def _tensor_difference(
    got, expected: torch.Tensor, rtol: float, where: str, size: float = 0.0
) -> Difference | None:
    if isinstance(got, (int, float)) and not isinstance(got, bool):
        try:
            got = torch.tensor(got, dtype=torch.float64)
        except OverflowError:
            return Difference("values", f"{where} is far too large", word(expected), word(got))
    if isinstance(got, list) and expected.dim() > 0:
        try:
            got = torch.tensor(got)
        except (OverflowError, TypeError, ValueError, RuntimeError):
            return Difference("type", f"{where} is a list", word(expected), "a list")
    if not isinstance(got, torch.Tensor):
        return Difference("type", f"{where} should be a tensor", word(expected), word(got))
    if got.shape != expected.shape:
        text = f"{where} has shape {list(got.shape)}, expected {list(expected.shape)}"
        return Difference("shape", text, shape(expected), shape(got))
    if expected.is_complex() and got.is_complex():
        got, expected = torch.view_as_real(got), torch.view_as_real(expected)
    if (
        got.is_complex()
        or expected.is_complex()
        or (expected.dtype == torch.bool and got.dtype != torch.bool)
    ):
        text = f"{where} has dtype {dtype(got)}, expected {dtype(expected)}"
        return Difference("dtype", text, dtype(expected), dtype(got))
    g, e = got.double(), expected.double()
    if g.numel() == 0:
        return None
    largest = (g - e).abs().max().item()
    if math.isfinite(largest):  # and so is all that there is
        finite = ...
        scale = e.abs().max().item()
    else:
        found = _not_finite(g, e, expected, got, where)
        finite = e.isfinite()
        if found is not None or not finite.any():
            return found
        largest = (g[finite] - e[finite]).abs().max().item()
        scale = e[finite].abs().max().item()
    exact = not expected.is_floating_point()
    allowed = 0.0 if exact else max(rtol * max(scale, size), FLOOR)
    if largest <= allowed:
        return None
    wrong = int(((g - e).abs()[finite] > allowed).sum())
    text = f"{where} has the right shape, but {wrong} of {g.numel()} values differ"
    if g.dim() == 0:
        text = f"{where} is {_which(got, g, e)}"
    if exact or g.numel() == 1:  # here the difference would give the value away
        return Difference("values", text, shape(expected), "another value")
    far = _short(largest)
    return Difference("values", text, shape(expected), f"largest difference {far}")


def _which(got, g, e) -> str:
    """How a number differs, without the one that was asked for."""
    if got.dtype == torch.bool or not (g.isfinite() and e.isfinite()):
        return "another one than asked for"
    return f"too {'large' if g > e else 'small'}"


def _not_finite(g, e, expected, got, where: str) -> Difference | None:
    """How the NaN and the infinite values of two tensors differ."""
    if not torch.equal(g.isnan(), e.isnan()):
        count = int((g.isnan() & ~e.isnan()).sum())
        return Difference("nan", f"{where} has {count} NaN", shape(expected), f"{count} NaN")
    infinite = e.isinf() | g.isinf()
    if not torch.equal(g[infinite], e[infinite]):
        count = int(g.isinf().sum())
        wanted = "is infinite at other places than expected"
        text = f"{where} {wanted if e.isinf().any() else f'has {count} infinite numbers'}"
        return Difference("values", text, shape(expected), shape(got))
    return None


def odd_numbers(value) -> set[str]:
    """Which of "NaN" and "infinity" a value holds, at whatever depth."""
    found: set[str] = set()
    for numbers in _numbers(value):
        found |= {"NaN"} if numbers.isnan().any() else set()
        found |= {"infinity"} if numbers.isinf().any() else set()
    return found


def large(value) -> bool:
    """Whether a value holds a number that may stand for infinity, as -1e9 does for a score."""
    return any((numbers.abs() > LARGE).any() for numbers in _numbers(value))


def _numbers(value) -> Iterator[torch.Tensor]:
    """The tensors and plain numbers in a value that may be no number: those in floating point."""
    if isinstance(value, torch.Tensor):
        if value.is_floating_point() or value.is_complex():
            yield value.detach()
    elif isinstance(value, float | complex):
        yield torch.tensor(value)
    elif isinstance(value, dict | list | tuple | set):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)


def _short(number: float) -> str:
    return f"{number:.2g}" if math.isfinite(number) else str(number)


def shape(tensor: torch.Tensor) -> str:
    return f"shape {list(tensor.shape)}"


def dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def word(value) -> str:
    """What kind of thing a value is, without showing it."""
    if isinstance(value, torch.Tensor):
        return f"a tensor of {shape(value)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if value is None:
        return "None"
    names = {"bool": "True or False", "int": "a whole number", "float": "a number", "str": "text"}
    return names.get(type(value).__name__, f"a {type(value).__name__}")


# --- an outcome ----------------------------------------------------------------------------------
def outcome_difference(got: Outcome, expected: Outcome, rtol: float) -> Difference | None:
    """How an outcome without an error differs: its value, what it changed in place, gradients."""
    found = difference(got.value, expected.value, rtol)
    if found is not None and expected.value is None and expected.after:
        text = "return nothing: what your code is given is to be changed in place, and that is all"
        found = replace(found, text=text)
    if found is None:
        found = _first(_change(got, n, v, rtol) for n, v in expected.after.items())
    if found is None and expected.gradients is not None:
        found = _gradient_difference(got.gradients, expected.gradients, rtol)
    return found


def _change(got: Outcome, name: str, expected, rtol: float) -> Difference | None:
    """How an argument differs that should have been changed in place."""
    which = f"the {ORDINALS.get(name, f'`{name}`')} argument"
    if name not in got.after:
        text = f"{which} is the same afterwards; it should be changed in place"
        return Difference("not in place", text, "another value", "the same")
    return difference(got.after[name], expected, rtol, f"{which}, after the call,")


def _gradient_difference(got, expected: dict, rtol: float) -> Difference | None:
    got = got if isinstance(got, dict) else {}
    # One scale for all: some gradients are zero by algebra (that of the keys' bias is one).
    largest = max((_size(g) for g in expected.values() if g is not None), default=0.0)
    for name, wanted in expected.items():
        if wanted is None:
            continue
        if got.get(name) is None:
            text = f"no gradient reaches {name}: something was detached on the way"
            return Difference("gradient", text, "a gradient", "None")
        found = difference(got[name], wanted, rtol, f"the gradient of {name}", largest)
        if found is not None:
            text = (
                "the values are right, the gradients are not: on a part of the way back something "
                f"is lost, by `.detach()`, `.data`, `no_grad` or a copy. {sentence(found.text)}"
            )
            return replace(found, kind="gradient", text=text)
    return None


def _size(tensor: torch.Tensor) -> float:
    """The largest finite magnitude in a tensor."""
    finite = tensor[tensor.isfinite()]
    return finite.abs().max().item() if finite.numel() else 0.0


def matches(got: Outcome, other: Outcome, rtol: float) -> bool:
    """Whether this other program gave the same: equal values, or the same kind of error."""
    if isinstance(other.value, Sketch):
        return got.error is None and other.value.fits(got)
    if got.error or other.error:
        return bool(got.error and other.error) and got.error["type"] == other.error["type"]
    return outcome_difference(got, other, rtol) is None


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
