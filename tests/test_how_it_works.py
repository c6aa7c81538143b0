"""docs/how_it_works.md gives the rooms and the limits as they are."""

import re

from autograder.grading import figures, observe, shape_comments
from autograder.intake import collect, read
from autograder.judging import look_again
from autograder.sandbox import Limits, child
from autograder.sandbox.inside import steps
from autograder.shapes.text import lexer
from autograder.shapes.text import limits as shapes
from autograder.tracing import look
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "how_it_works.md").read_text(encoding="utf-8")
MIB = 1 << 20


def section(heading: str) -> str:
    return PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def limit(what: str) -> list[float]:
    """The numbers that the page gives for one thing."""
    (row,) = re.findall(
        rf"^\| {what} \| (.*?) \|", section("What one submission can cost at most"), re.M
    )
    return [float(number.replace(",", "")) for number in re.findall(r"[\d,]*\d", row)]


def test_every_room_is_in_the_table():
    folders = [p.name for p in (ROOT / "autograder").iterdir() if (p / "__init__.py").exists()]
    named = re.findall(r"^\| `([\w/]+)` \|", section("The rooms"), re.MULTILINE)
    assert sorted(named) == sorted([*folders, "sandbox/inside"])


def test_the_limits_of_a_child_are_those_of_the_page():
    held = Limits()
    assert limit("loading the cells of a question") == [observe.LOAD_SECONDS] * 2
    assert limit("the calls of a question") == [observe.CALL_SECONDS]
    assert limit("a child") == [held.child_seconds, held.cpu_seconds]
    assert limit("memory") == [held.memory / MIB / 1024]
    assert limit("processes, open files, disk") == [
        held.processes,
        held.open_files,
        held.disk / MIB,
    ]
    assert limit("printed text") == [held.printed / 1024, held.drained / MIB / 1024]
    assert limit("a reply") == [held.header / MIB, held.reply / MIB]
    assert limit("the steps of a wrong answer") == [
        observe.STEPS_SECONDS,
        steps.MAX_STEPS,
        steps.MAX_ONE,
        steps.MAX_ALL,
        look.SECONDS,
    ]
    assert look_again.TRIES == 6 and "up\nto six times" in PAGE
    assert child.PATIENCE == 5 and "up to five times its limit" in PAGE


def test_the_limits_of_what_is_read_are_those_of_the_page():
    assert limit("the file") == [
        read.LARGEST_FILE / 1e6,
        read.MOST_CELLS,
        read.LARGEST_CELL,
        read.MOST_TEXT,
        read.MOST_BRACKETS,
    ]
    assert limit("an archive") == [collect.MOST_FILES, collect.DEEPEST, collect.LARGEST_RATIO]
    assert limit("shape comments") == [shape_comments.SECONDS, shapes.SECONDS, lexer.MAX_TEXT]
    assert limit("figures for the feedback") == [
        figures.CELL_SECONDS,
        figures.ALL_SECONDS,
        figures.MOST_BYTES / 1e6,
    ]


def test_the_mistake_of_the_page_is_told_as_the_page_says():
    from autograder.course.calls import Draw, run_here
    from autograder.course.course import Course
    from autograder.judging.verdict import findings

    (cell,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    course = Course.at(ROOT / "examples" / "normalisation")
    exercise = course.exercises["norm.rms_norm"]
    calls, namespace = exercise.cases(Draw(3)), {}
    exec(cell, namespace)
    outcomes = run_here(namespace, calls)
    (found,) = findings(exercise, calls, outcomes, course.answers(exercise, calls))
    assert len(calls) == 3 and found.check == "rms.eps outside"
    assert found.check in PAGE and found.message.partition(";")[0] in PAGE
