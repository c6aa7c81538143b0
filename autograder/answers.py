"""What should come back, and what each known mistake gives, for one set of calls.

Where `autograder.reference` is at hand (a checkout, an instructor's machine), both are computed.
The students' hand-out has no reference in it: there they are read from a file of numbers, made
for the public seed by `autograder release`.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from autograder.asking import Exercise, Finding, Mistake, Sight
from autograder.calls import Call, Draw, Outcome, from_reply, run_here
from autograder.judge import judge
from autograder.sandbox.inside.runner import encode

PUBLIC_SEED = 20170612  # the seed of the checks that students run; marks use another
FILE = Path(__file__).parent / "answers.safetensors"

Named = tuple[str, str, tuple[Outcome, ...]]


@dataclass(frozen=True)
class Answers:
    """Expected outcomes, and those of every known mistake as (check, message, outcomes)."""

    expected: tuple[Outcome, ...]
    mistakes: tuple[Named, ...]


def have_reference() -> bool:
    """Whether expected values can be computed here."""
    return importlib.util.find_spec("autograder.reference") is not None


def compute(exercise: Exercise, calls: list[Call], named: bool = True) -> Answers:
    """Runs the reference and, where `named`, the known mistakes, in float64."""
    solve, mistakes = _reference(exercise.task)
    double = [call.double() for call in calls]
    expected = _run(solve, double)
    if not named:
        return Answers(expected, ())
    known = tuple((m.check, m.message, _run(m.namespace, double)) for m in mistakes)
    return Answers(expected, known)


def _run(namespace: dict, calls: list[Call]) -> tuple[Outcome, ...]:
    default = torch.get_default_dtype()
    state = torch.get_rng_state()
    torch.set_default_dtype(torch.float64)
    try:
        return run_here(dict(namespace), calls)
    finally:
        torch.set_default_dtype(default)
        torch.set_rng_state(state)


def _reference(task: str) -> tuple[dict, tuple[Mistake, ...]]:
    from autograder.course import reference_modules, written

    if task in written():
        return written()[task].namespace, tuple(written()[task].mistakes)
    for module in reference_modules():
        if task in module.SOLVE:
            return module.SOLVE[task], tuple(module.MISTAKES.get(task, ()))
    raise LookupError(f"no reference answers {task!r}")


def findings(
    exercise: Exercise, calls: list[Call], outcomes: tuple[Outcome, ...], source: str = ""
) -> list[Finding]:
    """What is found in these outcomes; empty where all is right.

    The known mistakes are run only where something is wrong: they take longer than the rest.
    """
    for named in (False, True):
        known = compute(exercise, calls, named) if have_reference() else read(exercise, len(calls))
        sight = Sight(exercise, tuple(calls), outcomes, known.expected, known.mistakes, source)
        found = judge(sight)
        if not found:
            break
    return found


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
    with safe_open(path, framework="pt") as file:
        index = json.loads(file.metadata()["index"])
        tensors = _Lazy(file)
        entry = index[exercise.task]
        named = [
            (check, message, from_reply({"outcomes": outcomes}, tensors, count))
            for check, message, outcomes in entry["mistakes"]
        ]
        return Answers(from_reply({"outcomes": entry["expected"]}, tensors, count), tuple(named))


class _Lazy(dict):
    """Reads a tensor out of an open file when it is first asked for."""

    def __init__(self, file):
        super().__init__()
        self.file = file

    def __missing__(self, key: str) -> torch.Tensor:
        return self.file.get_tensor(key)
