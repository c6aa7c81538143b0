"""The hand-out's checks: calls, expected values, what each mistake gives, hints; in one file.

`autograder release` writes it for the public seed, and `check` reads it where there are no answers
to compute with. It holds numbers and texts, and no program; a judge is written down by its name:
one of the engine's, or one of the course's own files in `judges/`, which hold no answer.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from autograder.course.answers import PUBLIC_SEED, Answers, compute
from autograder.course.asking import Exercise, Lazy
from autograder.course.calls import Call, Draw, Outcome, from_reply, pack_call, unpack_call
from autograder.course.exercises import ExerciseError, Written, package_of
from autograder.course.general.operations import OPERATION
from autograder.course.settings import CourseError
from autograder.course.sketch import Sketch, alike, count, sketch, sketched
from autograder.course.steps import stored as steps
from autograder.course.steps.bank import Programs
from autograder.sandbox.inside.sandbox_values import encode

FOLDER = Path("released")  # of the hand-out, beside its notebooks
CHECKS = FOLDER / "checks.safetensors"
JUDGES = "judges"  # of a course's exercises: judges of its own
KEPT = Path("build") / "checks"  # where a course keeps what it computed for its last hand-out
ROUGH = 1e-5  # an rtol for which float32 is exact enough
OPERATIONS = 80  # of an exercise: the likeliest changes of its operations go along, by sketches
FEW = 16  # numbers that are not worth a sketch
SKETCHED = ("exchanged", "pairs", "altered")  # kinds of slips of which sketches go along


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
    for name in watch(sorted(files)):
        key = digest_of(course, Path(name))
        part, entries = _part(course.folder, Path(name), files[name], key)
        tensors |= part
        index |= entries
    path.parent.mkdir(parents=True, exist_ok=True)
    once, same = _once(tensors)
    path.touch()  # with the rights of any other file; the library's own leave others out
    rights = path.stat().st_mode
    save_file(once, path, metadata={"index": _small(index), "same": _small(same)})
    path.chmod(rights)


def _once(tensors: Mapping[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Each tensor once, and of the others the name of the one that is the same."""
    first: dict[tuple, str] = {}
    same: dict[str, str] = {}
    for name, tensor in tensors.items():
        bits = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        known = first.setdefault((tensor.dtype, tensor.shape, bits), name)
        if known != name:
            same[name] = known
    return {name: tensors[name] for name in first.values()}, same


def _small(content: dict) -> str:
    """JSON in few characters, for a file's metadata, which are texts."""
    text = json.dumps(content, separators=(",", ":"))
    return base64.b85encode(zlib.compress(text.encode(), 9)).decode()


def _large(text: str) -> dict:
    """The inverse of `_small`."""
    return json.loads(zlib.decompress(base64.b85decode(text)))


def digest_of(course, file: Path) -> str:
    """Another text whenever something else may come of the exercises in a file."""
    exercises = course.folder / course.settings.exercises
    beside = _digest(exercises, "_*.py") + _digest(exercises / JUDGES)
    library = _digest(course.folder / course.settings.library) if course.settings.library else ""
    decides = (beside + library + _engine()).encode() + file.read_bytes()
    return hashlib.sha256(decides).hexdigest()[:20]


def _part(folder: Path, file: Path, exercises: list[Written], key: str) -> tuple[dict, dict]:
    """The tensors and entries of one file of exercises: kept ones where nothing has changed."""
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
    right = sketch(answers.expected[0])
    slips = {kind: _sketches(_likely(getattr(answers, kind)), right) for kind in SKETCHED}
    if count(answers.expected[0]) < FEW:  # too few for what is known of one call only
        slips["altered"] = []
    return {
        "name": exercise.name,
        "hints": exercise.hints,
        "rtol": exercise.rtol,
        "judge": judge_name(exercise.judge, written.where),
        "stages_of": list(exercise.stages),
        "layers": list(exercise.layers),
        "calls": [pack_call(call, tensors) for call in calls],
        "expected": [_pack(o, tensors, exercise.rtol >= ROUGH) for o in answers.expected],
        "mistakes": [
            [c, m, [_pack_mistake(o, tensors, exercise, i) for i, o in enumerate(them)]]
            for c, m, them in answers.mistakes
        ],
        **slips,
        "stages": dict(answers.stages),
        "steps": steps.pack(Programs(written, [call.double() for call in calls]), tensors),
    }


def _likely(slips: Iterable) -> Iterator:
    """All slips but the less likely ones among hundreds of changed operations."""
    left = OPERATIONS
    for slip in slips:
        left -= slip[0].startswith(OPERATION)
        if left >= 0:
            yield slip


def _sketches(slips: Iterable, right: list[float] | None) -> list:
    """Of each slip the first outcome, in a few numbers; none of one that shows later only.

    right: the sketch of the right outcome.
    """
    told: dict[tuple, list] = {}
    for check, message, outcomes in slips:
        numbers = sketch(outcomes[0])
        if numbers is not None and not (right and alike(numbers, right)):
            told.setdefault(tuple(numbers), [check, message, numbers])
    return list(told.values())


def _pack_mistake(outcome: Outcome, tensors: dict, exercise: Exercise, place: int) -> dict:
    """What a mistake gives: whole for the first call, and for all where a judge reads values."""
    own: dict[str, torch.Tensor] = {}
    _pack(outcome, own)
    large = sum(t.numel() for t in own.values()) > FEW
    if place and large and exercise.judge is None and outcome.gradients is None:
        numbers = sketch(outcome)
        if numbers is not None:
            return {"sketch": numbers}
    return _pack(outcome, tensors, short=True)


def _pack(outcome: Outcome, tensors: dict, short: bool = False) -> dict:
    """An outcome as plain data. short: numbers in float32, where that can hold them."""
    before = set(tensors)
    packed = {
        **{k: getattr(outcome, k) for k in ("error", "parameters", "buffers", "state", "unset")},
        "after": {name: encode(value, tensors) for name, value in outcome.after.items()},
        "work": outcome.work,
        "value": encode(outcome.value, tensors),
        "gradients": encode(outcome.gradients, tensors),
    }
    for name in set(tensors) - before:
        if short and tensors[name].dtype == torch.float64:
            less = tensors[name].float()
            if torch.equal(less.isfinite(), tensors[name].isfinite()):
                tensors[name] = less
    return packed


def judge_name(judge: Callable | None, where: str) -> dict | None:
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
    # A judge may be handed another one, which it asks first.
    plain = {k: judge_name(v, where) if callable(v) else v for k, v in keywords.items()}
    asks = [k for k, v in keywords.items() if callable(v)]
    return {"module": module, "name": name, "keywords": json.loads(json.dumps(plain)), "asks": asks}


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
            held = self._file.metadata()
            self._index, self._same = _large(held["index"]), _large(held["same"])
        except (KeyError, TypeError, ValueError, zlib.error):
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
        asked = {k: self._judge(named["keywords"][k]) for k in named["asks"]}
        keywords = {**named["keywords"], **asked}
        return functools.partial(judge, **keywords) if keywords else judge

    def _tensors(self, task: str) -> _Tensors:
        return _Tensors(self._file, f"{task}/", self._same)

    def answers(self, task: str) -> Answers:
        """What should come back for the public calls of a task, and what each mistake gives."""
        entry, tensors = self._index[task], self._tensors(task)
        count = len(entry["calls"])

        def stored(raw: list) -> Lazy:
            return Lazy(count, lambda i: _unpack(raw[i], tensors))

        named = tuple((check, message, stored(raw)) for check, message, raw in entry["mistakes"])
        slips = (
            tuple((c, m, sketched(numbers, count)) for c, m, numbers in entry[kind])
            for kind in SKETCHED
        )
        return Answers(
            stored(entry["expected"]),
            named,
            *slips,
            stages=entry["stages"],
            bank=steps.Stored(entry["steps"], tensors),
        )


def _unpack(raw: dict, tensors: Mapping[str, torch.Tensor]) -> Outcome:
    if "sketch" in raw:
        return Outcome(value=Sketch(raw["sketch"]))
    return from_reply({"outcomes": [raw]}, tensors, 1)[0]


class _Tensors(dict):
    """Reads a tensor out of an open file when it is first asked for."""

    def __init__(self, file, prefix: str, same: Mapping[str, str]):
        super().__init__()
        self._file, self._prefix, self._same = file, prefix, same

    def __missing__(self, key: str) -> torch.Tensor:
        name = self._prefix + key
        return self._file.get_tensor(self._same.get(name, name))
