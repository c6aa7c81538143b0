"""What `autograder build` tries before students do: each exercise of a course on its own programs.

The answer must pass its own check, and so must the other right ones. Each wrong program must fail,
and no other may give the same in every call, or nobody would ever be told of it. What does not fit
is said with file and line, at the build and never at grading.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import torch

from autograder.course import data
from autograder.course.answers import PUBLIC_SEED, Answers, compute
from autograder.course.asking import Exercise, Finding, Mistake, Sight
from autograder.course.calls import Call, Draw, Outcome, run_here
from autograder.course.cases import linear_layers
from autograder.course.course import Course
from autograder.course.exercises import Written
from autograder.course.settings import CourseError, did_you_mean
from autograder.judging.verdict import findings
from autograder.sandbox.inside.sandbox_values import Other
from autograder.whole import write_whole

SEEDS = (PUBLIC_SEED, 1)
MOST_SAID = 12  # problems that are told at once
KEPT = Path("build") / "rehearsed.json"  # what was tried already, and has not changed since
# Errors of who wrote the answer; no exercise asks for them.
SLIPS = {"NameError", "UnboundLocalError", "AttributeError", "ImportError", "ModuleNotFoundError"}
# How Python says that a function was called with other arguments than it has.
WRONGLY_CALLED = re.compile(
    r"\(\) (got an unexpected keyword|got multiple values|missing \d+ required|takes .* but )"
)


def rehearse(course: Course, only: str = "", watch: Callable[[list], Iterable] = iter) -> None:
    """Raises `CourseError` with all that does not fit in the exercises of the course.

    only: the lessons whose name starts with this. A file that was tried and has not changed since
    is not tried again. watch: wraps the list of the files, to show how far it is.
    """
    files = _files(course, only)
    kept = _kept(course.folder / KEPT)
    said: list[str] = []
    for file in watch(sorted(files)):
        key = data.digest_of(course, file)
        if kept.get(file.name) == key:
            continue
        problems = list(_problems(files[file]))
        said += problems
        if not problems:
            kept[file.name] = key
    with suppress(OSError):  # a folder that may only be read: tried each time
        write_whole(course.folder / KEPT, json.dumps(kept, indent=1, sort_keys=True) + "\n")
    if said:
        more = [f"and {len(said) - MOST_SAID} more like these."] if said[MOST_SAID:] else []
        raise CourseError("\n".join([*said[:MOST_SAID], *more]))


def _files(course: Course, only: str) -> dict[Path, list[Written]]:
    """The exercises of the lessons that are meant, by file."""
    lessons = (lesson for name, lesson in course.lessons.items() if name.startswith(only))
    tasks = {cell.task for lesson in lessons for cell in lesson.cells}
    files: dict[Path, list[Written]] = {}
    for task, written in course.written.items():
        if task in tasks:
            files.setdefault(Path(written.where.rpartition(":")[0]), []).append(written)
    return files


def _kept(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _problems(exercises: Sequence[Written]) -> Iterator[str]:
    """All that does not fit in the exercises of one file."""
    unseen: dict[int, str] = {}  # mistakes that no task has told yet, by their program
    told: set[int] = set()
    for written in exercises:
        tries = []
        for seed in SEEDS:
            try:
                tries.append(Try(written, tuple(written.exercise.cases(Draw(seed)))))
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                yield f"{written.where}: the calls of {written.exercise.task!r} fail: {why}"
                break
        if len(tries) < len(SEEDS):
            continue
        problem = next((p for each in tries for p in each.of_the_answers()), None)
        if problem:
            yield problem
            continue
        for mistake in written.mistakes:
            program = id(mistake.namespace[written.exercise.name])
            problem = _of_all(tries, mistake)
            if problem is None:
                told.add(program)
            else:
                unseen.setdefault(program, problem)
    yield from (problem for program, problem in unseen.items() if program not in told)


def _of_all(tries: Sequence[Try], mistake: Mistake) -> str | None:
    """Why who makes a mistake might pass, or is never told of it; None where all is well."""
    written = tries[0].written
    stopped = tries[0].never_runs(mistake.namespace[written.exercise.name])
    if stopped:
        return (
            f"{mistake.where}: the mistake {mistake.check!r} cannot be called as the answer can: "
            f"{stopped}"
        )
    told = [each.told(mistake.namespace[written.exercise.name]) for each in tries]
    slip = next((e for each in tries for e in each.slips if _is_the_authors(e)), None)
    if slip is not None:
        return _of_the_judge(written, slip)
    if not all(told):
        often = ", by luck, in some drawings of its calls" if any(told) else ""
        return (
            f"{mistake.where}: the mistake {mistake.check!r} passes the check "
            f"{written.exercise.task!r}{often}: it gives what the answer gives. Another call, or "
            "other sizes, would show it."
        )
    others = [_taken_for(written, mistake, found[0]) for found in told]
    if None in others:
        return None
    return (
        f"{mistake.where}: the mistake {mistake.check!r} gives the same as {others[0].check!r} "
        f"({_line(others[0].where)}) in every call, so that nobody is told of it. Another call "
        "would tell them apart; or leave one of them out."
    )


def _taken_for(written: Written, mistake: Mistake, told: Finding) -> Mistake | None:
    """An earlier mistake of another name, whose words are told in the place of this one's."""
    for each in written.mistakes:
        if each is mistake:
            return None
        if each.check != mistake.check and each.check == told.check:
            return each
    return None


@dataclass(frozen=True)
class Try:
    """An exercise and one drawing of its calls."""

    written: Written
    calls: tuple[Call, ...]
    slips: list[Exception] = field(default_factory=list)  # what the exercise's own judge raised

    @cached_property
    def known(self) -> Answers:
        return compute(self.written, self.calls)

    def of_the_answers(self) -> Iterator[str]:
        """What is wrong with the answer itself, or with the other right ones."""
        task, where = self.written.exercise.task, self.written.where
        yield from self._of_what_it_gives()
        for number, answer in enumerate((self.written.answer, *self.written.also)):
            found = self.told(answer)
            if self.slips:
                yield _of_the_judge(self.written, self.slips[0])
                return
            if found:
                which = f"number {number} of `also=`" if number else "the answer"
                yield f"{where}: {which} of {task!r} fails its own check: {_said(found[0])}"

    def _of_what_it_gives(self) -> Iterator[str]:
        task, where = self.written.exercise.task, self.written.where
        try:
            data.judge_name(self.written.exercise.judge, where)
        except ValueError as error:
            yield str(error)
            return
        expected = list(self.known.expected)
        errors = [o.error for o in expected if o.error]
        slip = next((e for e in errors if e["type"] in SLIPS), None)
        if slip or (errors and len(errors) == len(expected)):
            error = slip or errors[0]
            how = "in some calls" if len(errors) < len(expected) else "in every call"
            told = f"{error['type']}: {error['message']}"
            yield f"{where}: the answer of {task!r} stops with an error {how}: {told}"
        elif not any(map(_tells_something, self.calls, expected)):
            yield (
                f"{where}: the answer of {task!r} gives None in every call and changes nothing "
                "that it is given, so that there is nothing to compare. Is a `return` missing?"
            )
        asked = [
            o.gradients or {} for c, o in zip(self.calls, expected, strict=True) if c.gradients
        ]
        if asked and not any(g is not None for held in asked for g in held.values()):
            yield f"{where}: {task!r} asks for gradients, but nothing that it is given has any."
        yield from self._of_its_layers(expected)
        for outcome in expected:
            other = _other(outcome.value)
            if other:
                yield (
                    f"{where}: the answer of {task!r} gives a {other}, which cannot be compared. "
                    "Numbers, truth values, texts, tensors, None, and lists, tuples and dicts of "
                    "these can."
                )
                return

    def _of_its_layers(self, expected: Sequence[Outcome]) -> Iterator[str]:
        """What `layers=` names, and no call ever builds: such a layer would be asked of nobody."""
        exercise = self.written.exercise
        there = {
            name.removesuffix(".weight")
            for outcome in expected
            for name, shape in outcome.parameters.items()
            if name.endswith(".weight") and len(shape) == 2
        }
        own = linear_layers(self.written.answer, exercise.cases)
        for name in exercise.layers:
            if name not in there and name not in own:
                has = f"has {', '.join(map(repr, sorted(there)))}" if there else "has none"
                yield (
                    f"{self.written.where}: layers= of {exercise.task!r} names {name!r}, but the "
                    f"answer that its calls build has no `nn.Linear` layer of that name: it {has}."
                    f"{did_you_mean(name, there)} Without layers=, those of the answer are taken."
                )

    def never_runs(self, program: object) -> str:
        """Why a program cannot be called as the answer can; '' where it can."""
        name = self.written.exercise.name
        outcomes = run_here({name: program}, list(self.calls))
        errors = [o.error for o in outcomes if o.error and o.error["type"] == "TypeError"]
        texts = [e["message"] for e in errors if re.search(r"argument", e["message"])]
        own = any(o.error for o in self.known.expected)
        return texts[0] if len(texts) == len(outcomes) and not own else ""

    def told(self, program: object) -> list[Finding]:
        """What a student is told whose cell defines this program."""
        name = self.written.exercise.name
        state = torch.get_rng_state()

        def ask(calls: list[Call]) -> tuple[Outcome, ...]:
            return run_here({name: program}, calls)

        try:
            found = findings(
                self._watched(), self.calls, ask(list(self.calls)), self.known, ask=ask
            )
        finally:
            torch.set_rng_state(state)
        return [f for f in found if f.fails]

    def _watched(self) -> Exercise:
        """The exercise, whose judge leaves what it raises in `slips`: students never see that."""
        exercise = self.written.exercise
        if exercise.judge is None:
            return exercise

        def watched(sight: Sight) -> list[Finding]:
            try:
                return exercise.judge(sight)
            except Exception as error:
                self.slips.append(error)
                raise

        return replace(exercise, judge=watched)


def _is_the_authors(error: Exception) -> bool:
    """Whether an error of a judge is a slip in its text, whatever it was given.

    A wrong program may give what the judge cannot read; then the plain comparison speaks for it.
    """
    wrongly_called = isinstance(error, TypeError) and WRONGLY_CALLED.search(str(error))
    return isinstance(error, NameError | ImportError) or bool(wrongly_called)


def _of_the_judge(written: Written, error: Exception) -> str:
    """An error of the exercise's own judge, with the author's line that it came from."""
    folder = Path(written.where.rpartition(":")[0]).parent
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{f.filename}:{f.lineno}" for f in frames if Path(f.filename).is_relative_to(folder)]
    name = getattr(written.exercise.judge, "func", written.exercise.judge)
    name = getattr(name, "__name__", type(name).__name__)
    return (
        f"{own[-1] if own else written.where}: the judge {name!r} of {written.exercise.task!r} "
        f"stops with an error: {type(error).__name__}: {error}. Students would be judged by the "
        "plain comparison of values in its place."
    )


def _tells_something(call: Call, outcome: Outcome) -> bool:
    return call.inspect or outcome.value is not None or bool(outcome.error or outcome.after)


def _other(value) -> str:
    """What of a value is no plain data, by its type's name; '' where all is."""
    if isinstance(value, Other):
        return value.name.rpartition(".")[2]
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(parts, str) or not isinstance(value, dict | list | tuple):
        return ""
    return next(filter(None, map(_other, parts)), "")


def _said(finding: Finding) -> str:
    tried = f" (tried: {finding.tried})" if finding.tried else ""
    return f"{finding.message}{tried}"


def _line(where: str) -> str:
    return f"line {where.rpartition(':')[2]}"
