"""Right or wrong, and if wrong, why: compares what came back with what should have.

Values are compared in float64 with a tolerance relative to the size of what is expected. Where
they differ, the wrong answers that we know (`reference/`) are compared too: the one that matches
on every call names the mistake.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch

from autograder.course.asking import Finding, Sight, Verdict
from autograder.course.calls import Call, Outcome
from autograder.course.general.altered import ALTERED
from autograder.course.general.exchanged import EXCHANGED
from autograder.course.sketch import Sketch, weight
from autograder.judging.explain import explain_error
from autograder.judging.relation import VAGUE, relation
from autograder.judging.relations.parts import in_one_part
from autograder.judging.relations.two import FEW
from autograder.judging.relations.where import what_is_right
from autograder.sandbox.inside.sandbox_values import Other

# What a call may leave behind in a model that it was given: (its trace, what is said of it).
LEFT = {
    "hook left in": (
        "a hook",
        "the values are right, but a hook is still in the model afterwards: it will run in every "
        "later experiment. Remove it, also where the model raises an error (`try` ... `finally`)",
    ),
    "model changed": (
        "changed weights",
        "the values are right, but the model's weights are not what they were: every later "
        "experiment runs on a damaged model. Leave the weights alone, or put them back",
    ),
    "another mode": (
        "another mode",
        "the values are right, but the model is left in another mode (training or evaluation) "
        "than it was given in",
    ),
}
MOST_EXACT = 2**53  # below it, a whole number is the same in floating point
FLOOR = 1e-6  # where all that is expected is zero, differences up to this are rounding


ORDINALS = {"0": "first", "1": "second", "2": "third", "3": "fourth", "4": "fifth"}


@dataclass(frozen=True)
class Difference:
    """How a value differs from what was expected; `text` says it without showing the value.

    lost: the keys that are missing in a dict.
    """

    kind: str  # type | length | shape | dtype | nan | values
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
        return _first(difference(g, e, rtol, f"part {i} of {where}") for i, (g, e) in pairs)
    if isinstance(expected, dict):
        if not isinstance(got, dict):
            return Difference("type", f"{where} should be a dict", word(expected), word(got))
        got, expected = ({str(k): v for k, v in each.items()} for each in (got, expected))
        lost = [k for k in expected if k not in got]
        if lost or len(got) != len(expected):
            text = f"{where} has other keys than it should"
            return Difference("length", text, word(expected), word(got), tuple(lost))
        return _first(difference(got[k], e, rtol, f"{where}[{k!r}]") for k, e in expected.items())
    if isinstance(expected, bool) or expected is None or isinstance(expected, str):
        got = got.item() if isinstance(got, torch.Tensor) and got.numel() == 1 else got
        same = type(got) is type(expected) and got == expected
        if same:
            return None
        return Difference("values", f"{where} is not right", word(expected), word(got))
    if isinstance(expected, int) and abs(expected) >= MOST_EXACT:
        same = got == expected if isinstance(got, int | float) else False
        return (
            None
            if same
            else Difference("values", f"{where} is not right", word(expected), word(got))
        )
    return _tensor_difference(got, torch.tensor(expected), rtol, where)


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
        text = f"{where} is another number than expected"
    if exact or g.numel() == 1:  # here the difference would give the value away
        return Difference("values", text, shape(expected), "another value")
    far = _short(largest)
    return Difference("values", text, shape(expected), f"largest difference {far}")


def _not_finite(g, e, expected, got, where: str) -> Difference | None:
    """How the NaN and the infinite values of two tensors differ."""
    if not torch.equal(g.isnan(), e.isnan()):
        count = int((g.isnan() & ~e.isnan()).sum())
        return Difference("nan", f"{where} has {count} NaN", shape(expected), f"{count} NaN")
    infinite = e.isinf() | g.isinf()
    if not torch.equal(g[infinite], e[infinite]):
        text = f"{where} is infinite at other places than expected"
        return Difference("values", text, shape(expected), shape(got))
    return None


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


# --- an outcome, a question ----------------------------------------------------------------------
def outcome_difference(got: Outcome, expected: Outcome, rtol: float) -> Difference | None:
    """How an outcome without an error differs: its value, what it changed in place, gradients."""
    found = difference(got.value, expected.value, rtol)
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
                f"is lost, by `.detach()`, `.data`, `no_grad` or a copy. {_sentence(found.text)}"
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


def failures(sight: Sight) -> list[tuple[Call, Outcome, Difference | None]]:
    """The calls that do not give what is expected, what came, and how it differs; None: an error.

    Where a call changed its input in place, that is a mistake too (call it 'input changed').
    """
    rtol = sight.exercise.rtol
    failed = []
    for call, got, expected in zip(sight.calls, sight.outcomes, sight.expected, strict=True):
        if expected.error is not None:
            if not got.error or got.error["type"] != expected.error["type"]:
                text = f"this should raise a {expected.error['type']}"
                found = Difference(
                    "no error",
                    text,
                    expected.error["type"],
                    got.error["type"] if got.error else "no error",
                )
                failed.append((call, got, found))
            elif got.left:
                failed.append((call, got, _left(got)))
        elif got.error is not None:
            failed.append((call, got, None))
        else:
            found = outcome_difference(got, expected, rtol)
            if found is None and _changed_tensors(call, got) - set(expected.after):
                found = Difference("input changed", "the input was changed in place")
            if found is None and got.left:
                found = _left(got)
            if found is not None:
                failed.append((call, got, found))
    return failed


def compare(sight: Sight, named: tuple[str, str] | None = None) -> list[Finding]:
    """The usual judge: every call must give what is expected; else say which mistake it was.

    named: the mistake that it is known to be, as (check, message); else it is looked for.
    """
    failed = failures(sight)
    if not failed:
        return []
    call, got, found = failed[0]
    named = named or name_mistake(sight)
    if found is not None and found.lost and not _of_the_input(found.lost, call):
        found = replace(found, text=f"{found.text}; {', '.join(found.lost)} is missing")
    if found is None:
        finding = explain_error(got.error, sight.exercise.name, sight.source)
        finding = replace(finding, tried=call.says)
    else:
        finding = Finding(
            f"{sight.exercise.task}.{found.kind}",
            Verdict.WRONG,
            _sentence(found.text),
            tried=call.says,
            expected=found.expected,
            got=found.got,
        )
        if found.kind == "input changed":
            finding = replace(
                finding,
                message="Your code changes its input in place: whoever "
                "called it finds other numbers there afterwards. Work on a copy.",
            )
    if found is not None and (named is None or named[0].startswith(ALTERED)):
        stands = relation(sight)
        if stands is None or not stands[0] or stands[0].startswith(VAGUE):
            # What was done to an input says more, and so does a mistake in one of several results.
            stands = None if named is not None else in_one_part(sight) or stands
        if stands is not None:
            named = None
            text = f"{finding.message} {stands[1]}".rstrip()
            finding = replace(finding, mistake=stands[0], message=text)
        if named is None and not finding.mistake and (right := what_is_right(sight)):
            finding = replace(finding, message=f"{finding.message} {right}")
    if named is not None and not (found is not None and found.kind in LEFT):
        check, message = named
        finding = replace(
            finding,
            check=check,
            verdict=Verdict.WRONG,
            message=f"{message} ({finding.message})"
            if found is None
            else f"{message} {finding.message}",
        )
    return [finding]


def _of_the_input(keys: Iterable[str], call: Call) -> bool:
    """Whether some key of an expected dict comes out of what was given: then it is a value, and no
    name that the exercise asks for."""
    given = repr((call.args, call.kwargs))
    return any(not key.isidentifier() or key in given for key in keys)


def _changed_tensors(call: Call, got: Outcome) -> set[str]:
    """The arguments that are tensors and were changed in place."""
    tensors = {str(i) for i, a in enumerate(call.args) if isinstance(a, torch.Tensor)}
    return tensors & set(got.after)


def _left(got: Outcome) -> Difference:
    """The values are right, but the model is not as it was."""
    kind = next((k for k, (trace, _) in LEFT.items() if trace in got.left), "another mode")
    return Difference(kind, LEFT[kind][1])


def name_mistake(sight: Sight) -> tuple[str, str] | None:
    """The first known mistake whose outcomes equal the student's on every call.

    Where there is none, and some calls stopped with an error that only the student's code makes:
    the first that gives the same wrong values wherever it ran.
    """
    every = range(len(sight.outcomes))
    ran = [i for i in every if not sight.outcomes[i].error or sight.expected[i].error]
    asked = [every]
    by_steps = bool(sight.exercise.stages)  # there an error says which step it is in
    if len(ran) < len(every) and not by_steps and any(_is_wrong(sight, i) for i in ran):
        asked.append(ran)
    wrong = sum(weight(sight.outcomes[i]) for i in every if _gives_wrong(sight, i))
    for places, of in itertools.product(asked, (_as_it_is, _without_nan)):
        for check, message, outcomes in sight.mistakes:
            if wrong < FEW and check.startswith(ALTERED):
                break  # they are the last
            if not wrong and check.startswith(EXCHANGED):
                continue  # a lost gradient proves nothing of inputs
            if all(_is_same(sight, i, of(outcomes[i])) for i in places):
                return check, message
    return None


def _as_it_is(outcome: Outcome) -> Outcome:
    return outcome


def _without_nan(outcome: Outcome) -> Outcome:
    """With 0 for NaN, as a loop over nothing gives it, or `nan_to_num`."""
    value = outcome.value
    if isinstance(value, torch.Tensor) and value.is_floating_point() and value.isnan().any():
        return replace(outcome, value=value.masked_fill(value.isnan(), 0.0))
    return outcome


def _is_wrong(sight: Sight, place: int) -> bool:
    return not matches(sight.outcomes[place], sight.expected[place], sight.exercise.rtol)


def _gives_wrong(sight: Sight, place: int) -> bool:
    """Whether more is wrong than gradients."""
    got, wanted = (replace(o[place], gradients=None) for o in (sight.outcomes, sight.expected))
    return not matches(got, wanted, sight.exercise.rtol)


def _is_same(sight: Sight, place: int, other: Outcome) -> bool:
    """Whether a program gave what the student's did, and changed the same in place."""
    got, asked = sight.outcomes[place], sight.expected[place].after.keys()
    if not matches(got, other, sight.exercise.rtol):
        return False
    whole = not isinstance(other.value, Sketch)
    return not whole or got.after.keys() & asked == other.after.keys() & asked


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def judge(sight: Sight) -> list[Finding]:
    """The findings of one question; empty where all is right. Never raises."""
    if sight.outcomes and all(o.missing for o in sight.outcomes):
        return [explain_error(sight.outcomes[0].error, sight.exercise.name, sight.source)]
    try:
        return (sight.exercise.judge or compare)(sight)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        # A custom judge met a value of a kind it did not expect: the plain comparison says which.
        return compare(sight) or [
            Finding(
                f"{sight.exercise.task}.type",
                Verdict.WRONG,
                "What came back cannot be compared with what was expected: it is another "
                "kind of thing. Look at what the exercise asks you to return.",
            )
        ]
