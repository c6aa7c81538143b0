"""Looks at one question in the sandbox: loads the code it needs, then asks for its calls.

Inputs are drawn after the student's code has been loaded, in this process; what comes back is
plain data. Nothing here decides about marks.
"""

from __future__ import annotations

import contextlib
import secrets
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from autograder.course.calls import Call, Observation, Outcome, clean_error, from_reply, to_request
from autograder.course.lesson import Cell, Lesson, Role
from autograder.intake.magics import plain_python
from autograder.intake.submission import StudentCell, Submission
from autograder.sandbox import ChildFailed, Failure, Sandbox, Shared

LOAD_SECONDS = 10.0
CALL_SECONDS = 10.0
# Of a child: perhaps the machine's, not the code's.
FAILURES = (Failure.DIED, Failure.TIMED_OUT, Failure.MEMORY)

STEPS_SECONDS = 3.0  # for looking at the steps of a wrong answer, in the same child
VERSIONS_SECONDS = 5.0  # for other versions of it, there as well

# Looks at more in a child that has answered: given it, what was asked, the calls, their outcomes.
Again = Callable[[Any, "Question", list[Call], tuple[Outcome, ...]], Any]
# Whether all is right, given the calls and what was seen of them.
Right = Callable[[list[Call], Observation], bool]
Load = dict[str, str]  # a cell to run: its id and its source


@dataclass(frozen=True)
class Question:
    """One task of one submission: the cell that answers it, and what runs before and after.

    before: setup, the student's own cells, and the model answers that it builds on, in order.
    after: own cells that stand right behind the answer. others: the student's other answers.
    """

    task: str
    cell: StudentCell
    before: tuple[Load, ...]
    after: tuple[Load, ...] = ()
    others: tuple[Load, ...] = ()
    added: frozenset[str] = frozenset()

    @property
    def text(self) -> tuple:
        """All that decides what comes of it; equal for equal code around an equal answer."""
        loads = (self.before, self.after, self.others)
        codes = (tuple((c["id"], c["source"]) for c in each) for each in loads)
        return self.task, self.cell.source, *codes, self.added

    def without_added(self) -> Question:
        """The same without the student's own cells, for when one of them never ends."""
        kept = tuple(c for c in self.before if c["id"] not in self.added)
        return replace(self, before=kept, after=())

    def with_others(self) -> Question:
        """The same after the student's other answers; model answers still come last."""
        return replace(self, before=(*self.before, *self.others, *self._models()))

    def _models(self) -> tuple[Load, ...]:
        return tuple(c for c in self.before if c["id"] not in self.added)


def question(lesson: Lesson, submission: Submission, check: Cell, models: dict) -> Question:
    """Collects what has to run for one check. `models` are model answers by cell id."""
    needs = lesson.cell(check.of).needs
    own = next(c for c in submission.cells if c.id == check.of)
    place = submission.cells.index(own)
    before, after, others, added = [], [], [], set()
    for i, cell in enumerate(submission.cells):
        if cell.kind != "code" or cell.id == own.id:
            continue
        load = {"id": cell.id, "source": plain_python(cell.source)}
        if cell.role == Role.SETUP:
            before.append(load)
        elif cell.role == Role.ADDED:
            added.add(cell.id)
            if i < place:
                before.append(load)
            elif cell.after == own.id:
                after.append(load)
            else:
                others.append(load)
        elif cell.id in needs:
            before.append({"id": cell.id, "source": models.get(cell.id, load["source"])})
        elif cell.answered:
            others.append(load)
    return Question(check.task, own, tuple(before), tuple(after), tuple(others), frozenset(added))


def seed_for(task: str, private: int | None) -> int:
    """A seed nobody can foresee, or one made from a given private seed and the task's name."""
    if private is None:
        return secrets.randbits(62)
    return (private * 1_000_003 + zlib.crc32(task.encode())) % 2**62


class PreludeFailed(Exception):
    """What runs before the answer ended the child; the answer itself was not reached."""


def observe(
    box: Sandbox,
    asked: Question,
    draw: Callable[[], list[Call]],
    again: Again | None = None,
    shared: Shared | None = None,
    right: Right = lambda calls, seen: False,
) -> tuple[list[Call], Observation]:
    """The calls that were made and what came of them; `draw` makes the calls, after loading.

    shared: where to ask first; only what is `right` there counts.
    Where a cell of the student's own ends the child, the question is asked without those cells.
    Where a child fails, a second one is asked: a busy machine must not cost anybody a point. Where
    a name is missing, it is asked once more after the student's other answers: a helper may have
    been defined in one of them. again: looks at more in the same child; nothing that comes of it
    changes the outcomes.
    """
    alone = False
    try:
        calls, seen = _first(box, asked, draw, again, shared, right)
    except PreludeFailed:
        alone, asked = bool(asked.added), asked.without_added()
        calls, seen = _last(box, asked, draw, again)
    if seen.error and seen.error["kind"] in FAILURES:
        calls, seen = _last(box, asked, draw, again)
    if asked.others and _lacks_a_name(seen):
        more_calls, more = _last(box, asked.with_others(), draw, again)
        if more.outcomes and not _lacks_a_name(more):
            calls, seen = more_calls, more
    return calls, replace(seen, alone=alone)


def _first(box, asked: Question, draw, again, shared, right) -> tuple[list[Call], Observation]:
    """As `_once`: in a branch of the shared child, and where that is not right in an own one."""
    place = shared.place(asked.cell.id) if shared is not None else None
    if place is not None:
        calls, seen = _once(place, asked, draw, None)
        if seen.error and seen.error["kind"] in FAILURES:
            return calls, seen  # that was the first time
        if seen.outcomes and right(calls, seen):
            return calls, replace(seen, right=True)
    return _once(box, asked, draw, again)


def _last(box, asked: Question, draw, again) -> tuple[list[Call], Observation]:
    """As `_once`, where nothing else can be tried."""
    try:
        return _once(box, asked, draw, again)
    except PreludeFailed as failed:
        return [], _failed(Failure.DIED, str(failed), asked)


def _once(box, asked: Question, draw, again) -> tuple[list[Call], Observation]:
    own = {"id": asked.cell.id, "source": plain_python(asked.cell.source)}
    calls: list[Call] = []
    more = None
    try:
        with box.child() as child:
            try:
                _load(child, asked.before)
            except ChildFailed as failed:
                if failed.kind == Failure.CANNOT_START:
                    raise
                raise PreludeFailed(failed.reason) from None
            errors = _load(child, (own, *asked.after))
            stopped = clean_error(errors[0]) if errors[0] else None
            calls = draw()
            header, tensors = child.request(*to_request(calls), seconds=CALL_SECONDS)
            outcomes = from_reply(header, tensors, len(calls))
            if again is not None:
                with contextlib.suppress(ChildFailed, LookupError, TypeError, ValueError):
                    more = again(child, asked, calls, outcomes)
    except ChildFailed as failed:
        if failed.kind == Failure.CANNOT_START:
            raise
        return calls, _failed(failed.kind, failed.reason, asked)
    except (AttributeError, LookupError, TypeError, ValueError):
        text = "What came back from your code is not what was asked for."
        return calls, _failed(Failure.BAD_REPLY, text, asked)
    if stopped is not None and all(o.missing for o in outcomes):
        return calls, Observation(error=stopped, source=asked.cell.source)
    return calls, Observation(outcomes, source=asked.cell.source, again=more)


def _load(child, cells: tuple[Load, ...]) -> list:
    """Runs cells in the child; one error or None for each."""
    header, _ = child.request({"op": "load", "cells": list(cells)}, {}, seconds=LOAD_SECONDS)
    errors = header.get("errors")
    if not isinstance(errors, list) or len(errors) != len(cells):
        raise ChildFailed(Failure.BAD_REPLY, "Your code answered in the place of the grader.")
    return errors


def asked_in(child) -> Callable[[dict, dict], tuple[dict, dict]]:
    """Puts requests about an answer to the child that has loaded it; ValueError where it fails."""

    def send(header: dict, tensors: dict) -> tuple[dict, dict]:
        try:
            return child.request(header, tensors, seconds=VERSIONS_SECONDS)
        except ChildFailed as failed:
            raise ValueError(failed.reason) from None

    return send


def _failed(kind: Failure, reason: str, asked: Question) -> Observation:
    error = clean_error({"kind": kind, "message": reason, "cell": asked.cell.id})
    return Observation(error=error, source=asked.cell.source)


def _lacks_a_name(seen: Observation) -> bool:
    errors = [seen.error, *(o.error for o in seen.outcomes)]
    return any(e and (e["type"] == "NameError" or e["kind"] == Failure.MISSING) for e in errors)
