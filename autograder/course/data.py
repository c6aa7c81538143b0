"""The hand-out's checks: calls, expected values, what each mistake gives, hints; in one file.

`autograder release` writes it for the public seed, and `check` reads it where there are no answers
to compute with. It holds numbers and texts, and no program; a judge is written down by its name:
one of the engine's, or one of the course's own files in `judges/`, which hold no answer.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from autograder.course.answers import PUBLIC_SEED, Answers, compute
from autograder.course.asking import Exercise, Lazy
from autograder.course.calls import Call, Draw, Outcome, from_reply, pack_call, unpack_call
from autograder.course.exercises import ExerciseError, Written, package_of
from autograder.course.settings import CourseError
from autograder.course.sketch import sketch, sketched
from autograder.course.steps import stored as steps
from autograder.course.steps.bank import Programs
from autograder.sandbox.inside.runner import encode

FOLDER = Path("released")  # of the hand-out, beside its notebooks
CHECKS = FOLDER / "checks.safetensors"
JUDGES = "judges"  # of a course's exercises: judges of its own
KEPT = Path("build") / "checks"  # where a course keeps what it computed for its last hand-out


# --- writing -------------------------------------------------------------------------------------
def write(course, path: Path, watch: Callable[[list], Iterable] = iter) -> None:
    """Writes the checks of all exercises to `path`; computes only what has changed since.

    watch: wraps the list of exercise files, to show how far it is.
    """
    files: dict[str, list[Written]] = {}
    for each in course.written.values():
        files.setdefault(each.where.rpartition(":")[0], []).append(each)
    tensors: dict[str, torch.Tensor] = {}
    index: dict[str, dict] = {}
    shared = _digest(course.folder / course.settings.exercises, only="_*.py")
    for name in watch(sorted(files)):
        part, entries = _part(course.folder, Path(name), files[name], shared)
        tensors |= part
        index |= entries
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, path, metadata={"index": json.dumps(index)})


def _part(folder: Path, file: Path, exercises: list[Written], shared: str) -> tuple[dict, dict]:
    """The tensors and entries of one file of exercises: kept ones where nothing has changed."""
    key = hashlib.sha256((shared + _engine()).encode() + file.read_bytes()).hexdigest()[:20]
    kept = folder / KEPT / f"{file.stem}-{key}.safetensors"
    if kept.exists():
        with safe_open(kept, framework="pt") as opened:
            found = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            return found, json.loads(opened.metadata()["index"])
    tensors: dict[str, torch.Tensor] = {}
    index = {}
    for each in exercises:
        own: dict[str, torch.Tensor] = {}
        index[each.exercise.task] = _entry(each, own)
        tensors |= {f"{each.exercise.task}/{name}": tensor for name, tensor in own.items()}
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        for old in kept.parent.glob(f"{file.stem}-*.safetensors"):
            old.unlink()
        beside = kept.with_name(f".{kept.name}.{os.getpid()}")
        save_file(tensors, beside, metadata={"index": json.dumps(index)})
        beside.replace(kept)
    except OSError:  # a folder that may only be read: computed each time
        pass
    return tensors, index


def _entry(written: Written, tensors: dict[str, torch.Tensor]) -> dict:
    exercise = written.exercise
    calls = exercise.cases(Draw(PUBLIC_SEED))
    answers = compute(written, calls)
    slips = {
        kind: [[c, m, numbers] for c, m, them in those if (numbers := sketch(them[0])) is not None]
        for kind, those in (("exchanged", answers.exchanged), ("pairs", answers.pairs))
    }
    return {
        "name": exercise.name,
        "hints": exercise.hints,
        "rtol": exercise.rtol,
        "judge": _judge_name(exercise.judge, written.where),
        "stages_of": list(exercise.stages),
        "layers": list(exercise.layers),
        "calls": [pack_call(call, tensors) for call in calls],
        "expected": [_pack(o, tensors) for o in answers.expected],
        "mistakes": [
            [c, m, [_pack(o, tensors, torch.float32) for o in them]]
            for c, m, them in answers.mistakes
        ],
        **slips,
        "stages": dict(answers.stages),
        "steps": steps.pack(Programs(written, [call.double() for call in calls]), tensors),
    }


def _pack(outcome: Outcome, tensors: dict, dtype: torch.dtype | None = None) -> dict:
    before = set(tensors)
    packed = {
        **{k: getattr(outcome, k) for k in ("error", "parameters", "buffers", "state", "unset")},
        "changed": list(outcome.changed),
        "work": outcome.work,
        "value": encode(outcome.value, tensors),
        "gradients": encode(outcome.gradients, tensors),
    }
    for name in set(tensors) - before:
        if dtype is not None and tensors[name].dtype == torch.float64:
            tensors[name] = tensors[name].to(dtype)
    return packed


def _judge_name(judge: Callable | None, where: str) -> dict | None:
    """A judge as a name that can be written down: module, function, keywords."""
    if judge is None:
        return None
    keywords = judge.keywords if isinstance(judge, functools.partial) else {}
    function = judge.func if isinstance(judge, functools.partial) else judge
    module, name = function.__module__, function.__qualname__
    if "<" in name:
        raise ExerciseError(
            f"{where}: the judge {name} has no name of its own: write a function, with "
            "functools.partial for its keywords."
        )
    if module.startswith("_exercises_"):
        module = "." + module.partition(".")[2]
        if not module.startswith(f".{JUDGES}."):
            raise ExerciseError(
                f"{where}: the judge {name} goes along to students, so it stands in a file of its "
                f"own in {JUDGES}/, which holds no answer."
            )
    return {"module": module, "name": name, "keywords": json.loads(json.dumps(keywords))}


@functools.cache
def _engine() -> str:
    """A digest of all that decides what the answers give."""
    here = Path(__file__).resolve().parent
    versions = f"{torch.__version__}"
    rooms = (here, here.parent / "sandbox" / "inside", here.parent / "judging")
    return versions + "".join(_digest(room) for room in rooms)


def _digest(folder: Path, only: str = "*.py") -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob(only)):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


# --- reading -------------------------------------------------------------------------------------
class Checks:
    """The file of a hand-out: its exercises, and the answers to their public calls."""

    def __init__(self, path: Path):
        self._file = safe_open(path, framework="pt")
        self._judges = path.parent / JUDGES
        try:
            self._index = json.loads(self._file.metadata()["index"])
        except (KeyError, TypeError, ValueError):
            raise CourseError(
                f"{path} is not as it was handed out. Take it anew out of the hand-out's zip; your "
                "notebooks stay as they are."
            ) from None

    @functools.cached_property
    def exercises(self) -> dict[str, Exercise]:
        return {task: self._exercise(task, entry) for task, entry in self._index.items()}

    def _exercise(self, task: str, entry: dict) -> Exercise:
        def cases(draw: Draw) -> list[Call]:
            return [unpack_call(call, self._tensors(task)) for call in entry["calls"]]

        return Exercise(
            task,
            entry["name"],
            cases,
            tuple(entry["hints"]),
            entry["rtol"],
            self._judge(entry["judge"]),
            tuple(entry["stages_of"]),
            tuple(entry["layers"]),
        )

    def _judge(self, named: dict | None) -> Callable | None:
        if named is None:
            return None
        module = named["module"]
        if module.startswith("."):
            package = package_of(self._judges.parent)
            found: ModuleType = importlib.import_module(package.__name__ + module)
        else:
            found = importlib.import_module(module)
        judge = getattr(found, named["name"])
        return functools.partial(judge, **named["keywords"]) if named["keywords"] else judge

    def _tensors(self, task: str) -> _Tensors:
        return _Tensors(self._file, f"{task}/")

    def answers(self, task: str) -> Answers:
        """What should come back for the public calls of a task, and what each mistake gives."""
        entry, tensors = self._index[task], self._tensors(task)
        count = len(entry["calls"])

        def stored(raw: list) -> Lazy:
            return Lazy(count, lambda i: from_reply({"outcomes": raw[i : i + 1]}, tensors, 1)[0])

        named = tuple((check, message, stored(raw)) for check, message, raw in entry["mistakes"])
        exchanged, pairs = (
            tuple((c, m, sketched(numbers, count)) for c, m, numbers in entry[kind])
            for kind in ("exchanged", "pairs")
        )
        return Answers(
            stored(entry["expected"]),
            named,
            exchanged,
            pairs,
            stages=entry["stages"],
            bank=steps.Stored(entry["steps"], tensors),
        )


class _Tensors(dict):
    """Reads a tensor out of an open file when it is first asked for."""

    def __init__(self, file, prefix: str):
        super().__init__()
        self._file, self._prefix = file, prefix

    def __missing__(self, key: str) -> torch.Tensor:
        return self._file.get_tensor(self._prefix + key)
