"""Looks at one question in the sandbox: loads the code it needs, then asks for its calls.

Inputs are drawn after the student's code has been loaded, in this process; what comes back is
plain data. Nothing here decides about marks.
"""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from autograder.calls import Call, Observation, clean_error, from_reply, to_request
from autograder.course import Cell, Lesson
from autograder.magics import plain_python
from autograder.sandbox import ChildFailed, Sandbox
from autograder.submission import StudentCell, Submission

LOAD_SECONDS = 10.0
CALL_SECONDS = 10.0


@dataclass(frozen=True)
class Question:
    """One task of one submission: the cell that answers it, and all that runs before."""

    task: str
    cell: StudentCell
    alone: tuple[dict, ...]  # setup, added cells, model answers that it builds on, the cell
    together: tuple[dict, ...]  # the same with the student's other answers before


def question(lesson: Lesson, submission: Submission, check: Cell, models: dict) -> Question:
    """Collects what has to run for one check. `models` are model answers by cell id."""
    needs = lesson.cell(check.of).needs
    own = next(c for c in submission.cells if c.id == check.of)
    place = submission.cells.index(own)
    alone, together = [], []
    for i, cell in enumerate(submission.cells):
        if cell.kind != "code" or cell.id == own.id:
            continue
        load = {"id": cell.id, "source": plain_python(cell.source)}
        if cell.role == "setup":
            alone.append(load)
            together.append(load)
        elif cell.role == "added":
            if i < place:
                alone.append(load)
                together.append(load)
        elif cell.id in needs:
            model = {"id": cell.id, "source": models.get(cell.id, cell.source)}
            alone.append(model)
            together.append(model)
        elif i < place and cell.answered:
            together.append(load)
    last = {"id": own.id, "source": plain_python(own.source)}
    return Question(check.task, own, (*alone, last), (*together, last))


def seed_for(task: str, private: int | None) -> int:
    """A seed nobody can foresee, or one made from a given private seed and the task's name."""
    if private is None:
        return secrets.randbits(62)
    return (private * 1_000_003 + zlib.crc32(task.encode())) % 2**62


def observe(
    box: Sandbox, asked: Question, draw: Callable[[], list[Call]]
) -> tuple[list[Call], Observation]:
    """The calls that were made and what came of them; `draw` makes the calls, after loading.

    Where a name is missing when the question is run alone, it is run once more after the
    student's other answers: a helper may have been defined in one of them.
    """
    calls, seen = _once(box, asked.alone, asked.cell, draw)
    if _lacks_a_name(seen) and asked.together != asked.alone:
        again_calls, again = _once(box, asked.together, asked.cell, draw)
        if not _lacks_a_name(again) and again.outcomes:
            return again_calls, again
    return calls, seen


def _once(box, cells, own, draw) -> tuple[list[Call], Observation]:
    calls: list[Call] = []
    try:
        with box.child() as child:
            request = {"op": "load", "cells": list(cells)}
            header, _ = child.request(request, {}, seconds=LOAD_SECONDS)
            errors = header.get("errors")
            if not isinstance(errors, list) or len(errors) != len(cells):
                raise ChildFailed("bad reply", "Your code answered in the place of the grader.")
            stopped = clean_error(errors[-1]) if errors[-1] else None
            calls = draw()
            header, tensors = child.request(*to_request(calls), seconds=CALL_SECONDS)
            outcomes = from_reply(header, tensors, len(calls))
    except ChildFailed as failed:
        error = {
            "kind": failed.kind,
            "type": "",
            "message": failed.reason,
            "line": None,
            "statement": "",
            "cell": own.id,
            "names": [],
        }
        return calls, Observation(error=error, source=own.source)
    except (AttributeError, LookupError, TypeError, ValueError):
        error = {
            "kind": "bad reply",
            "type": "",
            "line": None,
            "statement": "",
            "cell": own.id,
            "message": "What came back from your code is not what was asked for.",
            "names": [],
        }
        return calls, Observation(error=error, source=own.source)
    missing = all(o.error and o.error["kind"] == "missing" for o in outcomes)
    if stopped is not None and missing:
        return calls, Observation(error=stopped, source=own.source)
    return calls, Observation(outcomes, source=own.source)


def _lacks_a_name(seen: Observation) -> bool:
    errors = [seen.error, *(o.error for o in seen.outcomes)]
    return any(e and (e["type"] == "NameError" or e["kind"] == "missing") for e in errors)
