"""Shape comments of an exercise: the checker of `shapes/`, in the notebook and in the sandbox."""

from __future__ import annotations

import json
from contextlib import suppress

from autograder.course.asking import Finding, Verdict
from autograder.course.course import Course
from autograder.course.lesson import Cell, Lesson, Role
from autograder.course.settings import CourseError
from autograder.intake.magics import plain_python
from autograder.sandbox import ChildFailed, Failure, Place, Sandbox, Shared
from autograder.shapes import Verdict as OfComment
from autograder.shapes import judge, plan, prepare, record

CHECK = "shape_comments"
SECONDS = 20.0
UNSEEN = "The shapes could not be seen"
COSTS = (Verdict.FALSE, Verdict.MISSING)
MOST_KEPT = 200  # recordings, of some 50 KB each
UNREADABLE = "no readable recording"  # as `shapes.judge` says it


def comment_findings(
    box: Sandbox,
    lesson: Lesson,
    exercise: Cell,
    source: str,
    shared: Shared | None = None,
    kept: dict[str, object] | None = None,
) -> list[Finding]:
    """Verdicts on the shape comments of one exercise's cell; empty where none are asked for.

    'false' and 'missing' are those that cost: what meets all the conditions of an accusation, and
    missing comments where most lines have none. Anything else comes as 'cannot tell', for a person
    to look at; so does a comment that is longer, or takes longer, than anyone's should. An answer
    that twice ends the process which looks at its shapes, or replaces what was seen, counts as one
    without comments. shared: where to look first; what costs is looked at again in a child of its
    own. kept: what was seen of code before, by the code alone: comments and blank lines are no part
    of it. It stands for the first look only, and what is seen now is added.
    """
    if not exercise.calls:
        return []
    place = shared.place(exercise.id) if shared is not None else None
    if place is not None:
        with suppress(ChildFailed):
            found = _found(place, lesson, exercise, source, kept)
            if not any(f.verdict in COSTS for f in found):
                return found
    return _found(box, lesson, exercise, source)


def _found(
    box: Sandbox | Place,
    lesson: Lesson,
    exercise: Cell,
    source: str,
    kept: dict[str, object] | None = None,
) -> list[Finding]:
    kept = {} if kept is None else kept
    asked = plan("; ".join(exercise.calls))
    setup = "\n".join(c.source for c in lesson.with_role(Role.SETUP))
    try:
        job = prepare(source, asked, setup=setup)
        code = json.dumps(job, sort_keys=True)
        recording = kept.get(code)
        if recording is None:
            try:
                recording = _recording(box, job)
            except ChildFailed:  # a busy machine, perhaps
                recording = _recording(box, job)
        verdicts = judge(source, asked, recording, starter=exercise.source)
    except ChildFailed as failed:
        if failed.kind == Failure.CANNOT_START:
            raise
        return [Finding(CHECK, Verdict.MISSING, f"{UNSEEN}: {failed.reason}")]
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [Finding(CHECK, Verdict.CANNOT_TELL, f"{UNSEEN}: {error}")]
    if any(UNREADABLE in v.message for v in verdicts):
        return [
            Finding(CHECK, Verdict.MISSING, f"{UNSEEN}: your code changed what was written down.")
        ]
    if code not in kept:
        while len(kept) >= MOST_KEPT:
            del kept[next(iter(kept))]
        kept[code] = recording
    return [_finding(v) for v in verdicts]


def _recording(box: Sandbox | Place, job: dict) -> object:
    with box.child() as child:
        header, _ = child.request({"op": "shapes", "job": job}, {}, seconds=SECONDS)
    return header.get("recording")


def check_comments(course: Course, task: str, source_of) -> tuple[list[Finding], str]:
    """The same for a student's own notebook, in this process. `source_of(name)` finds the text."""
    wanted = task.removesuffix(f".{CHECK}")
    for lesson in course.lessons.values():
        for exercise in lesson.with_role(Role.EXERCISE):
            if exercise.id == wanted and exercise.calls:
                return _here(lesson, exercise, source_of)
    raise CourseError(f"No exercise called {wanted!r} asks for shape comments.")


def _here(lesson: Lesson, exercise: Cell, source_of) -> tuple[list[Finding], str]:
    name = exercise.calls[0].partition("(")[0]
    source = source_of(name)
    if source is None:
        message = f"There is no `{name}` yet. Run the cell that defines it first."
        return [Finding(CHECK, Verdict.ERROR, message)], ""
    text, asked = plain_python(source), plan("; ".join(exercise.calls))
    setup = "\n".join(c.source for c in lesson.with_role(Role.SETUP))
    try:
        recording = record.run(prepare(text, asked, setup=setup))
        verdicts = judge(text, asked, recording, starter=exercise.source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [Finding(CHECK, Verdict.ERROR, f"The shapes could not be seen: {error}")], ""
    tried = "three sets of sizes, pairwise different, and every tensor on the way"
    return [_finding(v) for v in verdicts], tried


def _finding(verdict: OfComment) -> Finding:
    word = Verdict(verdict.verdict)
    if word in COSTS and not verdict.deducts:
        word = Verdict.CANNOT_TELL
    return Finding(CHECK, word, verdict.message, verdict.line, verdict.statement)
