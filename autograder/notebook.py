"""`check`, `hint` and `progress`: what a student calls in a notebook. Advice; marks come from
elsewhere."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import torch

from autograder.course.asking import Exercise, Finding, Verdict
from autograder.course.calls import run_here
from autograder.course.course import Course
from autograder.course.settings import did_you_mean
from autograder.course.steps.traces import text_of, trace_here
from autograder.judging.verdict import findings
from autograder.reports import cards
from autograder.reports.progress import read_progress
from autograder.tracing.edits.ask import here, in_time
from autograder.tracing.edits.versions import WrongAnswer
from autograder.tracing.findings import Steps, with_where, wrong_call

MANY_TRIES = 3  # that failed, since the last hint: after so many the next hint is offered
_tries: dict[str, int] = {}  # by task: how often its check failed since its last hint
_hinted: dict[str, int] = {}  # by task: the highest hint shown
_said: dict[str, bool] = {}  # by task: what its check said last


class CheckFailed(AssertionError):
    """A check found a mistake. The card above says which; this keeps the traceback short."""

    def _render_traceback_(self):
        return [f"CheckFailed: {self}"]


class UnknownTask(ValueError):
    """There is no check of that name."""

    def _render_traceback_(self):
        return [f"UnknownTask: {self}"]


def check(task: str, *more: str) -> None:
    """Checks your answer to `task` and shows a card that says what was tried and what came out.

    Looks for the function or class of the exercise among the names defined in the notebook (or
    module) it is called from. Raises `CheckFailed` where the answer is not right, so that 'run
    all' stops there, and `UnknownTask` where no check has that name.
    """
    namespace = _namespace(inspect.currentframe().f_back)
    if more or not isinstance(task, str):
        raise UnknownTask('check takes one name, a text, such as check("softmax").')
    if task.endswith(".shape_comments"):
        from autograder.grading.shape_comments import check_comments

        found, tried = check_comments(Course.find(), task, _source_of(namespace))
    else:
        found, tried = look(find(task), namespace)
    failing = [f for f in found if f.fails or f.verdict in (Verdict.FALSE, Verdict.MISSING)]
    _said[task] = not failing
    _tries[task] = _tries.get(task, 0) + 1 if failing else 0
    cards.show(cards.Card(task, not failing, tuple(found), tried, _offer(task)))
    if failing:
        raise CheckFailed(f"{task}: {failing[0].message}")


def _offer(task: str) -> cards.Offer:
    """Which hint the card offers: the first, and after several tries the one after the last."""
    shown, tries = _hinted.get(task, 0), _tries.get(task, 0)
    if shown and tries < MANY_TRIES:
        return cards.Offer(shown)
    return cards.Offer(min(shown + 1, 3), tries if tries >= MANY_TRIES and shown < 3 else 0)


def progress(folder: str | Path | None = None) -> None:
    """Shows what is done and what comes next, in all lessons.

    Read from the notebooks as they were last saved, by default all of the course's, and from what
    this notebook's checks have said since.
    """
    course = Course.find()
    place = course.folder / course.settings.notebooks if folder is None else Path(folder)
    cards.display(read_progress(course, place, _said))


def hint(task: str, step: int = 1) -> None:
    """Shows hint 1, 2 or 3 for `task`: from a nudge to nearly there."""
    exercise = find(task)
    if step not in (1, 2, 3):
        raise UnknownTask(f"{task} has the hints 1, 2 and 3; you asked for {step!r}.")
    _hinted[task], _tries[task] = max(step, _hinted.get(task, 0)), 0
    cards.show_hint(task, step, exercise.hints[step - 1])


def passes(task: str) -> bool:
    """Whether the check of a task finds nothing wrong in this notebook right now; says nothing."""
    findings, _ = look(find(task), _namespace(inspect.currentframe().f_back))
    return not any(finding.fails for finding in findings)


def find(task: str) -> Exercise:
    """The exercise of that name; `UnknownTask` names the nearest where there is none."""
    known = Course.find().exercises
    if task in known:
        return known[task]
    likely = did_you_mean(str(task), known, 0.6)
    raise UnknownTask(f"There is no check called {task!r}.{likely}")


def look(exercise: Exercise, namespace: dict) -> tuple[list[Finding], str]:
    """Findings for the public cases, and what was tried, in words."""
    course = Course.find()
    calls = course.public_calls(exercise)

    def ask(calls):
        state = torch.get_rng_state()
        outcomes = run_here(namespace, calls)
        torch.set_rng_state(state)
        return outcomes

    said = list(dict.fromkeys(c.says for c in calls if c.says))
    known = course.answers(exercise, calls)
    outcomes = ask(calls)
    source = text_of(namespace.get(exercise.name)) or ""
    found = findings(exercise, calls, outcomes, known, source, ask=ask)
    if any(f.fails for f in found):
        found = _with_where(found, exercise, namespace, calls, outcomes, known)
    return found, "; ".join(said)


def _with_where(found, exercise: Exercise, namespace: dict, calls, outcomes, known):
    """The findings with the line where the answer goes wrong, if its text can be found."""
    place = wrong_call(exercise, calls, outcomes, known)
    source = text_of(namespace.get(exercise.name))
    if not source:
        return found
    asked = WrongAnswer(exercise, calls, outcomes, known, source, in_time(here(namespace)), place)
    if place is None:  # nothing to record; the text alone says where it goes wrong
        return with_where(found, None, known, exercise, source, asked)
    state = torch.get_rng_state()
    try:
        trace = trace_here(namespace, [calls[place]])
    except ValueError:
        return found
    finally:
        torch.set_rng_state(state)
    steps = Steps(place, trace, outcomes[place])
    return with_where(found, steps, known, exercise, source, asked)


def _namespace(frame) -> dict:
    try:
        from IPython import get_ipython

        shell = get_ipython()
    except ImportError:
        shell = None
    return shell.user_ns if shell is not None else frame.f_globals


def _source_of(namespace: dict):
    """Finds the source of the last cell that defines a name, or of its module."""

    def source(name: str) -> str | None:
        pattern = re.compile(rf"^\s*(class|def)\s+{re.escape(name)}\b", re.MULTILINE)
        for text in reversed(namespace.get("In") or []):
            if pattern.search(text):
                return text
        try:
            return inspect.getsource(inspect.getmodule(namespace[name]))
        except (KeyError, OSError, TypeError):
            return None

    return source
