"""An exercise, written in one place: its answer, what is tried on it, wrong programs with names.

    @exercise("blocks.layer_norm", "layer_norm(x[b, s, h], weight[h], bias[h], 0.1)", hints=(...))
    def layer_norm(x, weight, bias, eps, unbiased=False):
        ...                            # the answer; keywords behind the call's own are switches

    layer_norm.wrong("norm.unbiased", "The variance divides by n - 1, not by n.", unbiased=True)
    layer_norm.wrong("norm.batch", "The mean runs over the batch.", lambda x, w, b, e: ...)

The decorator gives the answer back as it is, so that other answers can use it. Of a class the
switches are class attributes. Several exercises on one class share its answer and its mistakes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import itertools
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType

from autograder.course.asking import Exercise, Finding, Fitted, Mistake, Sight
from autograder.course.calls import Call, Draw
from autograder.course.cases import cases_from, linear_layers
from autograder.course.settings import CourseError, did_you_mean

Cases = str | Callable[[Draw], Call | list[Call]]


class ExerciseError(CourseError):
    """An exercise that cannot be used as it is written; the text says where and why."""


@dataclass
class Written:
    """An exercise as its author wrote it.

    answer: the function or class that solves it. also: other right answers, whose steps are right,
    too. mistakes: the wrong programs with names, in the order in which they were written.
    switches: for each mistake the switches that make it out of the answer, or None where it is a
    program of its own. fitted: kinds of mistakes with a free number in them. where: file and line.
    """

    exercise: Exercise
    answer: Callable
    where: str
    also: tuple = ()
    mistakes: list[Mistake] = field(default_factory=list)
    switches: list[Mapping | None] = field(default_factory=list)
    fitted: list[Fitted] = field(default_factory=list)

    @property
    def namespace(self) -> dict[str, object]:
        """The names that the answer's cell defines."""
        return {self.exercise.name: self.answer}

    @cached_property
    def pairs(self) -> list[Mistake]:
        """Two slips at once, of those that are switches: each pair that can be set together."""
        switched = [(m, s) for m, s in zip(self.mistakes, self.switches, strict=True) if s]
        return [
            Mistake(
                f"{one.check} + {two.check}",
                f"Two things at once. {one.message} And: {two.message}",
                {self.exercise.name: variant(self.answer, {**a, **b})},
            )
            for (one, a), (two, b) in itertools.combinations(switched, 2)
            if one.check != two.check and not a.keys() & b.keys()
        ]


def exercise(
    task: str,
    *cases: Cases,
    hints: Sequence[str] = (),
    name: str = "",
    times: int = 3,
    sizes: Mapping[str, int | str | Sequence[int]] | None = None,
    gradients: bool = False,
    also: Sequence[Callable] = (),
    judge: Callable[[Sight], list[Finding]] | None = None,
    rtol: float = 1e-4,
    stages: Sequence[str] = (),
    layers: Sequence[str] | None = None,
    **unknown,
):
    """Makes what it decorates the answer to `task`.

    cases: what is tried. A call in the notation of `notation.py`, drawn `times` times with fresh
    sizes, or a function of a `Draw` that gives a `Call` (drawn `times` times too) or a list of
    calls (drawn once). `Call`s may leave their name out: it is the answer's. hints: three, from a
    nudge to nearly there. name: what a student's cell has to define, by default the answer's own
    name. sizes: for the notation, sizes that are given, chosen from several, or follow from
    others ('num_heads * head_size'). gradients: the last of the drawn calls looks at gradients
    too. also: other right answers, for the tests. judge, rtol, stages: see `Exercise`. layers: the
    attributes that must be `nn.Linear` layers, by default those that are in the answer.
    """
    where = _caller()
    if unknown:
        wrong, known = min(unknown), list(inspect.signature(exercise).parameters)[2:-1]
        raise ExerciseError(
            f"{where}: @exercise({task!r}) has no keyword {wrong!r}.{did_you_mean(wrong, known)} "
            f"There are {', '.join(known)}."
        )

    def decorate(answer):
        if not callable(answer):
            raise ExerciseError(f"{where}: @exercise({task!r}) stands on something not callable.")
        _check_keywords(where, task, hints, times, sizes or {}, rtol, judge, layers)
        if not cases:
            raise ExerciseError(f"{where}: {task!r} tries nothing: give a call, or a function.")
        known = name or answer.__name__
        draw = _checked(where, cases_from, cases, answer, known, times, sizes or {}, gradients)
        linear = _checked(where, linear_layers, answer, draw) if layers is None else layers
        made = Exercise(task, known, draw, tuple(hints), rtol, judge, tuple(stages), tuple(linear))
        own = answer.__dict__.get("exercises", ())
        answer.exercises = (Written(made, answer, where, tuple(also)), *own)
        if not own:
            told = partial(_wrong, answer)
            kinds = partial(_fits, answer)
            is_class = inspect.isclass(answer)
            answer.wrong = staticmethod(told) if is_class else told
            answer.fits = staticmethod(kinds) if is_class else kinds
        return answer

    return decorate


def _check_keywords(where: str, task: str, hints, times, sizes, rtol, judge, layers) -> None:
    """Raises `ExerciseError` for a keyword's value of another kind."""
    texts = isinstance(hints, (list, tuple)) and all(isinstance(h, str) and h for h in hints)
    problems = {
        "hints= are three texts, from a nudge to nearly there": texts and len(hints) == 3,
        "times= is a whole number from 1": isinstance(times, int) and times >= 1,
        "rtol= is a number above 0": isinstance(rtol, int | float) and rtol > 0,
        "judge= is a function": judge is None or callable(judge),
        "layers= are names of attributes, such as ('q', 'k')": layers is None
        or isinstance(layers, list | tuple)
        and all(isinstance(name, str) for name in layers),
        "sizes= gives for each name a number, several numbers, or a text": all(
            isinstance(s, int | str)
            or isinstance(s, list | tuple | range)
            and s
            and all(isinstance(n, int) for n in s)
            for s in sizes.values()
        ),
    }
    for text, fits in problems.items():
        if not fits:
            raise ExerciseError(f"{where}: {task!r}: {text}.")


def _wrong(
    answer: Callable,
    check: str,
    message: str,
    *programs: Callable,
    stage: str = "",
    tasks: str | Sequence[str] = (),
    **switches,
):
    """Names a mistake: one or several programs that make it, or switches of the answer.

    check: its name, such as 'scale.missing'; several mistakes may share it. message: what a
    student is told. stage: the step of the computation that it belongs to, for a judge by stages.
    tasks: those that it belongs to, by default all whose answer this is.
    """
    where = _caller()
    if not (isinstance(check, str) and check and isinstance(message, str) and message.strip()):
        raise ExerciseError(f"{where}: wrong() needs a name and a message, both texts.")
    if bool(programs) == bool(switches):
        raise ExerciseError(
            f"{where}: wrong({check!r}) needs programs or switches, one of the two."
        )
    if switches:
        _know_switches(answer, switches, where)
        programs = (variant(answer, switches),)
    for written in _of(answer, tasks, where):
        for program in programs:
            namespace = {written.exercise.name: program}
            written.mistakes.append(Mistake(check, message, namespace, stage, where))
            written.switches.append(switches or None)


def _fits(
    answer: Callable,
    check: str,
    message: str,
    fit: Callable,
    stage: str = "",
    tasks: str | Sequence[str] = (),
):
    """Names a kind of mistake with a free number in it: see `Fitted`; the rest as of `wrong`."""
    for written in _of(answer, tasks, _caller()):
        written.fitted.append(Fitted(check, message, fit, stage))


def _of(answer: Callable, tasks: str | Sequence[str], where: str) -> list[Written]:
    """The exercises of these tasks that the answer solves; all of them where none is named."""
    known = {written.exercise.task: written for written in answer.__dict__["exercises"]}
    tasks = (tasks,) if isinstance(tasks, str) else tasks
    for task in tasks:
        if task not in known:
            raise ExerciseError(f"{where}: {answer.__name__} does not answer {task!r}.")
    return [known[task] for task in tasks or known]


def variant(answer: Callable, switches: Mapping) -> Callable:
    """The answer with these switches: keywords of a function, attributes of a class."""
    if inspect.isclass(answer):
        return type(answer.__name__, (answer,), dict(switches))
    return partial(answer, **switches)


def _know_switches(answer: Callable, switches: Mapping, where: str) -> None:
    if inspect.isclass(answer):
        unknown = [s for s in switches if not hasattr(answer, s)]
        kind = "attributes of the class"
    else:
        unknown = [s for s in switches if s not in inspect.signature(answer).parameters]
        kind = "parameters of the function"
    if unknown:
        raise ExerciseError(f"{where}: {answer.__name__} has no switch {unknown}: {kind} are.")


def _checked(where: str, make: Callable, *args):
    try:
        return make(*args)
    except ExerciseError:
        raise
    except ValueError as error:
        raise ExerciseError(f"{where}: {error}") from None
    except Exception as error:  # of the author's own code, such as an answer's __init__
        raise ExerciseError(f"{where}: {type(error).__name__}: {error}") from None


def _caller() -> str:
    """File and line of who called the public function."""
    frame = sys._getframe(2)
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


# --- the files of a course -----------------------------------------------------------------------
def load(folder: Path) -> dict[str, Written]:
    """All exercises of the files in `folder`, by task, in the order of files and lines.

    The files make up a package, so that they may share what stands in `_shared.py` by
    `from ._shared import ...`; a name that begins with `_` is no lesson's. Raises `ExerciseError`
    where a file cannot be imported or two exercises have one name.
    """
    return dict(Exercises(folder))


class Exercises(Mapping):
    """The exercises of a folder, by task; a file is imported when one of its tasks is asked for.

    A lesson's exercises may import a large library, and who grades another one never needs it.
    """

    def __init__(self, folder: Path):
        self._package = package_of(folder)
        self._files = sorted(folder.glob("[!_]*.py"))
        self._found: dict[Path, dict[str, Written]] = {}

    def __getitem__(self, task: str) -> Written:
        for path in self._files:
            # Whoever writes a task's name out has it in the file's text.
            if path in self._found or f'"{task}"' in path.read_text(encoding="utf-8"):
                found = self._of(path)
                if task in found:
                    return found[task]
        return self._all[task]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @cached_property
    def _all(self) -> dict[str, Written]:
        found: dict[str, Written] = {}
        for path in self._files:
            for task, written in self._of(path).items():
                if task in found:
                    raise _twice(found[task], written)
                found[task] = written
        return found

    def _of(self, path: Path) -> dict[str, Written]:
        if path not in self._found:
            module = _module(f"{self._package.__name__}.{path.stem}", path)
            # An answer may have several names in its file: a loop's variable is one.
            answers = {id(v): v for v in vars(module).values() if _is_answer(v, module)}.values()
            found: dict[str, Written] = {}
            for written in sorted((w for a in answers for w in a.__dict__["exercises"]), key=_line):
                if written.exercise.task in found:
                    raise _twice(found[written.exercise.task], written)
                found[written.exercise.task] = written
            self._found[path] = found
        return self._found[path]


def _twice(first: Written, second: Written) -> ExerciseError:
    return ExerciseError(f"{second.where}: {second.exercise.task!r} is already at {first.where}.")


def _line(written: Written) -> int:
    return int(written.where.rpartition(":")[2])


def _is_answer(value: object, module: ModuleType) -> bool:
    own = getattr(value, "__dict__", {})
    return "exercises" in own and getattr(value, "__module__", "") == module.__name__


def package_of(folder: Path) -> ModuleType:
    """A package of the folder's files, under a name that no other course's has."""
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
    package = ModuleType(f"_exercises_{digest}")
    package.__path__ = [str(folder)]
    sys.modules[package.__name__] = package
    for name in [n for n in sys.modules if n.startswith(f"{package.__name__}.")]:
        del sys.modules[name]
    return package


def _module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ExerciseError:
        raise
    except Exception as error:
        line = next((f.lineno for f in _frames(error) if f.filename == str(path)), None)
        place = f"{path}:{line}" if line else str(path)
        if isinstance(error, SyntaxError) and error.filename:  # perhaps in a file that it imports
            place = f"{error.filename}:{error.lineno}"
        raise ExerciseError(f"{place}: {type(error).__name__}: {error}") from error
    return module


def load_module(path: Path) -> ModuleType:
    """One file of a course, as a module. Raises `ExerciseError` where it cannot be imported."""
    return _module(f"{package_of(path.parent).__name__}.{path.stem}", path)


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(reversed(traceback.extract_tb(error.__traceback__)))
