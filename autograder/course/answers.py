"""What should come back, and what each known mistake gives, for one set of calls."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

import torch

from autograder.course.asking import Fitted, Late, Lazy, Mistake
from autograder.course.calls import Call, Outcome, run_here
from autograder.course.exercises import Written
from autograder.course.general.altered import altered
from autograder.course.general.exchanged import exchanged
from autograder.course.general.operations import operations
from autograder.course.steps.bank import Bank, Programs
from autograder.sandbox.inside.sandbox_modules import Kept
from autograder.sandbox.inside.sandbox_wire import Failure

PUBLIC_SEED = 20170612  # the seed of the checks that students run; marks use another

# What a program that could not be fitted gives: an error of a type that no program raises.
NOTHING = Outcome(error={"kind": Failure.NOT_FITTED, "type": None, "message": ""})

KEPT = Kept()  # the models that our own programs are asked about

Named = tuple[str, str, Sequence[Outcome]]


def _none(outcomes: Sequence[Outcome]) -> tuple[Named, ...]:
    return ()


def _nothing(check: str, place: int) -> Sequence[torch.Tensor]:
    return ()


@dataclass(frozen=True)
class Answers:
    """Expected outcomes, and those of every known mistake as (check, message, outcomes).

    A mistake's outcomes are computed (or read) when they are first looked at. exchanged: an input
    or a layer taken for another. pairs: two slips at once. altered: what is right for an input that
    was changed. All three are looked at where no single mistake fits, in this order. fitted: given
    what came back, the mistakes with a free number in them. stages: the steps that each mistake
    belongs to, by its check. bank: the steps of the answer and of the mistakes, operation by
    operation. changed: what an operation that is changed gives in the call at a place, by the
    change's check; nothing where that is not known.
    """

    expected: Sequence[Outcome]
    mistakes: tuple[Named, ...] = ()
    exchanged: Sequence[Named] = ()
    pairs: Sequence[Named] = ()
    altered: Sequence[Named] = ()
    fitted: Callable[[Sequence[Outcome]], tuple[Named, ...]] = _none
    stages: Mapping[str, str] = field(default_factory=dict)
    bank: Bank | None = None
    changed: Callable[[str, int], Sequence[torch.Tensor]] = _nothing


def compute(written: Written, calls: Sequence[Call]) -> Answers:
    """What the answer gives, in float64, and each known mistake as it is asked for."""
    double = [call.double() for call in calls]
    values = [replace(call, work=False) for call in double]  # a mistake is known by these alone

    def one(mistake: Mistake) -> Named:
        return mistake.check, mistake.message, program(mistake.namespace, values)

    def fitted(outcomes: Sequence[Outcome]) -> tuple[Named, ...]:
        kinds = written.fitted
        return tuple((k.check, k.message, _fitted(k, double, outcomes)) for k in kinds)

    def changed(check: str, place: int) -> Sequence[torch.Tensor]:
        if check not in ways:
            return ()
        mode = ways[check]()
        _changed(written, double, place, mode)
        return mode.made

    ways: dict[str, Callable] = {}
    stages = {m.check: m.stage for m in (*written.mistakes, *written.fitted) if m.stage}
    return Answers(
        program(written.namespace, double),
        tuple(one(m) for m in written.mistakes),
        _exchanged(written, double),
        # Thousands, for a right answer of which none is looked at.
        Lazy(len(written.pairs), lambda place: one(written.pairs[place])),
        _altered(written, double, ways),
        fitted,
        stages,
        Programs(written, double),
        changed,
    )


def _exchanged(written: Written, calls: Sequence[Call]) -> tuple[Named, ...]:
    """What the answer gives where an input or a layer is taken for another.

    Not of an exercise by steps: nobody says which of them such a slip belongs to.
    """
    if written.exercise.stages or not calls:
        return ()
    return tuple(
        (
            check,
            message,
            Lazy(len(others), lambda place, others=others: _value(written, others, place)),
        )
        for check, message, others in exchanged(calls, _names(written))
    )


def _altered(written: Written, calls: Sequence[Call], ways: dict) -> Sequence[Named]:
    """What the answer gives where one input was changed, or one of its operations; not of an
    exercise by steps either. ways: takes what changes an operation, by its check."""
    if written.exercise.stages or not calls:
        return ()
    return Late(lambda: (*_inputs_altered(written, calls), *_operations(written, calls, ways)))


def _inputs_altered(written: Written, calls: Sequence[Call]) -> Iterator[Named]:
    def outcomes(change: Callable[[Call], Call]) -> Lazy:
        return Lazy(len(calls), lambda place: _value(written, [change(calls[place])], 0))

    if any(call.on for call in calls):  # what one call was given counts in the next
        return
    for check, message, change in altered(calls, _names(written)):
        yield check, message, outcomes(change)


def _operations(written: Written, calls: Sequence[Call], ways: dict) -> Iterator[Named]:
    def outcomes(way: Callable) -> Lazy:
        return Lazy(len(calls), lambda place: _changed(written, calls, place, way()))

    folder = Path(written.where.rpartition(":")[0]).parent
    for check, message, way in operations(folder, partial(_changed, written, calls, 0)):
        ways[check] = way
        yield check, message, outcomes(way)


def _changed(written: Written, calls: Sequence[Call], place: int, mode) -> Outcome:
    """What comes back where a mode changes what the answer does."""
    with warnings.catch_warnings(), mode:
        warnings.simplefilter("ignore")  # of what a changed operation is given, nobody hears
        return _value(written, calls, place)


def _names(written: Written) -> list[str]:
    """What the answer calls its inputs, in order."""
    is_class = inspect.isclass(written.answer)
    function = getattr(written.answer, "forward", None) if is_class else written.answer
    return list(inspect.signature(function).parameters)[is_class:] if function else []


def _value(written: Written, calls: Sequence[Call], place: int) -> Outcome:
    """What comes back, alone: gradients go to other layers; an error tells nothing."""
    *before, last = _up_to(calls, place)
    outcome = _run(written.namespace, [*before, replace(last, work=False, gradients=False)])
    return NOTHING if outcome.error or _no_numbers(outcome.value) else outcome


def _no_numbers(value) -> bool:
    """Whether half of a result is NaN: many a slip gives that, so that it says nothing of one."""
    parts = value if isinstance(value, tuple | list) else [value]
    floats = [p for p in parts if isinstance(p, torch.Tensor) and p.is_floating_point()]
    return any(2 * int(p.isnan().sum()) >= p.numel() > 0 for p in floats)


def program(namespace: Mapping, calls: Sequence[Call]) -> Lazy:
    """What a program of ours gives for each call."""
    return Lazy(len(calls), lambda place: _run(namespace, _up_to(calls, place)))


def _up_to(calls: Sequence[Call], place: int) -> list[Call]:
    """A call, after those that work on the same object."""
    label = calls[place].on
    return [c for c in calls[:place] if label and c.on == label] + [calls[place]]


def _run(namespace: Mapping, calls: list[Call]) -> Outcome:
    """The outcome of the last of these calls."""
    default = torch.get_default_dtype()
    state = torch.get_rng_state()
    torch.set_default_dtype(torch.float64)
    try:
        with warnings.catch_warnings():  # of programs of ours: nobody is to read them
            warnings.simplefilter("ignore")
            return run_here(dict(namespace), calls, KEPT)[-1]
    finally:
        torch.set_default_dtype(default)
        torch.set_rng_state(state)


def _fitted(kind: Fitted, calls: Sequence[Call], outcomes: Sequence[Outcome]) -> Lazy:
    programs = cache(lambda: kind.fit(calls, outcomes))

    def outcome(place: int) -> Outcome:
        fitting = programs()[place]
        return NOTHING if fitting is None else _run(fitting, _up_to(calls, place))

    return Lazy(len(calls), outcome)
