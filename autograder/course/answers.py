"""What should come back, and what each known mistake gives, for one set of calls.

Where `autograder.reference` is at hand (a checkout, an instructor's machine), both are computed.
The students' hand-out has no reference in it: there they are read from a file of numbers, made
for the public seed by `autograder release`.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from autograder.course.asking import Exercise, Finding, Fitted, Lazy, Mistake, Sight
from autograder.course.calls import Call, Draw, Outcome, from_reply, run_here
from autograder.judging import look_again as layers
from autograder.judging.compare import judge
from autograder.sandbox.inside.runner import encode

PUBLIC_SEED = 20170612  # the seed of the checks that students run; marks use another
FILE = Path(__file__).parent / "answers.safetensors"

# What a program that could not be fitted gives: an error of a type that no program raises.
NOTHING = Outcome(error={"kind": "not fitted", "type": None, "message": ""})

Named = tuple[str, str, Sequence[Outcome]]


@dataclass(frozen=True)
class Answers:
    """Expected outcomes, and those of every known mistake as (check, message, outcomes).

    A mistake's outcomes are computed (or read) when they are first looked at. stages: the steps
    that each mistake belongs to, by its check, where the exercise has steps.
    """

    expected: tuple[Outcome, ...]
    mistakes: tuple[Named, ...]
    stages: Mapping[str, str] = field(default_factory=dict)


def have_reference() -> bool:
    """Whether expected values can be computed here."""
    return importlib.util.find_spec("autograder.reference") is not None


def compute(exercise: Exercise, calls: list[Call]) -> Answers:
    """What the reference gives, in float64, and each known mistake as it is asked for."""
    solve, mistakes = _reference(exercise.task)
    double = [call.double() for call in calls]
    known = tuple((m.check, m.message, _program(m.namespace, double)) for m in mistakes)
    stages = _stages(exercise, mistakes)
    return Answers(tuple(_program(solve, double)), known, stages)


def _program(namespace: Mapping, calls: list[Call]) -> Lazy:
    """What a program of ours gives for each call."""
    return Lazy(len(calls), lambda place: _run(namespace, _up_to(calls, place)))


def _up_to(calls: list[Call], place: int) -> list[Call]:
    """A call, after those that work on the same object."""
    label = calls[place].on
    return [c for c in calls[:place] if label and c.on == label] + [calls[place]]


def _run(namespace: Mapping, calls: list[Call]) -> Outcome:
    """The outcome of the last of these calls."""
    default = torch.get_default_dtype()
    state = torch.get_rng_state()
    torch.set_default_dtype(torch.float64)
    try:
        return run_here(dict(namespace), calls)[-1]
    finally:
        torch.set_default_dtype(default)
        torch.set_rng_state(state)


def _fitted(exercise: Exercise, calls: list[Call], outcomes: Sequence[Outcome]) -> Answers:
    """The kinds of mistakes that are fitted to what came back; nothing is expected here."""
    kinds = _from_modules(exercise.task, "FITTED", ())
    double = [call.double() for call in calls]

    def fitted(kind: Fitted) -> Lazy:
        programs = cache(lambda: kind.fit(double, outcomes))

        def outcome(place: int) -> Outcome:
            program = programs()[place]
            return NOTHING if program is None else _run(program, _up_to(double, place))

        return Lazy(len(calls), outcome)

    known = tuple((kind.check, kind.message, fitted(kind)) for kind in kinds)
    return Answers((), known, _stages(exercise, kinds))


def _reference(task: str) -> tuple[dict, tuple[Mistake, ...]]:
    from autograder.course.lesson import written

    if task in written():
        return written()[task].namespace, tuple(written()[task].mistakes)
    solve = _from_modules(task, "SOLVE", None)
    if solve is None:
        raise LookupError(f"no reference answers {task!r}")
    return solve, tuple(_from_modules(task, "MISTAKES", ()))


def _from_modules(task: str, table: str, otherwise):
    """What the first reference module that knows the task says about it in one of its tables."""
    from autograder.course.lesson import reference_modules, written

    if task in written():
        return {"FITTED": written()[task].fitted}.get(table, otherwise)
    tables = (getattr(module, table, {}) for module in reference_modules())
    return next((known[task] for known in tables if task in known), otherwise)


def _stages(exercise: Exercise, mistakes: Iterable[Mistake | Fitted]) -> dict[str, str]:
    """The steps that each mistake belongs to; a CourseError where one names a step that is none."""
    if not exercise.stages:
        return {}
    stages: dict[str, str] = {}
    for each in mistakes:
        unknown = set(each.stage.split() or [""]) - set(exercise.stages)
        if unknown or stages.setdefault(each.check, each.stage) != each.stage:
            from autograder.course.lesson import CourseError

            raise CourseError(
                f"{exercise.task}: the mistake {each.check!r} belongs to the step {each.stage!r}; "
                f"the steps are {', '.join(exercise.stages)}, the same for all of one name."
            )
    return stages


def findings(
    exercise: Exercise,
    calls: list[Call],
    outcomes: tuple[Outcome, ...],
    source: str = "",
    ask: Callable[[list[Call]], Sequence[Outcome]] | None = None,
) -> list[Finding]:
    """What is found in these outcomes; empty where all is right.

    ask: puts other calls to the same answer. It is used where the answer's layers are not as they
    were asked for, to see whether all else is right.
    """
    known = compute(exercise, calls) if have_reference() else read(exercise, len(calls))
    found = _findings(exercise, calls, outcomes, source, known)
    if not found or ask is None or not exercise.layers:
        return found
    return layers.look_again(
        exercise,
        calls,
        outcomes,
        known.expected,
        found,
        ask,
        lambda again: _findings(exercise, calls, again, source, known),
    )


def _findings(exercise, calls, outcomes, source, known: Answers) -> list[Finding]:
    more = _fitted(exercise, calls, outcomes) if have_reference() else Answers((), ())
    mistakes, stages = (*known.mistakes, *more.mistakes), {**known.stages, **more.stages}
    return judge(
        Sight(exercise, tuple(calls), tuple(outcomes), known.expected, mistakes, source, stages)
    )


# --- the file of numbers in the hand-out ---------------------------------------------------------
def write(exercises: Iterable[Exercise], path: Path) -> None:
    """Stores the answers of the public calls of these exercises."""
    tensors: dict[str, torch.Tensor] = {}
    index = {}
    for exercise in exercises:
        answers = compute(exercise, exercise.cases(Draw(PUBLIC_SEED)))
        index[exercise.task] = {
            "expected": [_pack(o, tensors) for o in answers.expected],
            "mistakes": [[c, m, [_pack(o, tensors) for o in os]] for c, m, os in answers.mistakes],
            "stages": answers.stages,
        }
    save_file(tensors, path, metadata={"index": json.dumps(index)})


def _pack(outcome: Outcome, tensors: dict) -> dict:
    return {
        **{k: getattr(outcome, k) for k in ("error", "parameters", "buffers", "state", "unset")},
        "changed": list(outcome.changed),
        "value": encode(outcome.value, tensors),
        "gradients": encode(outcome.gradients, tensors),
    }


def read(exercise: Exercise, count: int, path: Path = FILE) -> Answers:
    """The stored answers of one exercise; LookupError where the file does not hold them."""
    file = safe_open(path, framework="pt")  # open as long as a mistake may be looked at
    entry = json.loads(file.metadata()["index"])[exercise.task]
    tensors = _Tensors(file)

    def stored(raw: list) -> Lazy:
        if len(raw) != count:
            raise ValueError(f"{path.name} holds {len(raw)} outcomes for {count} calls")
        return Lazy(count, lambda i: from_reply({"outcomes": raw[i : i + 1]}, tensors, 1)[0])

    named = tuple((check, message, stored(raw)) for check, message, raw in entry["mistakes"])
    return Answers(tuple(stored(entry["expected"])), named, entry["stages"])


class _Tensors(dict):
    """Reads a tensor out of an open file when it is first asked for."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def __missing__(self, key: str) -> torch.Tensor:
        return self.file.get_tensor(key)
