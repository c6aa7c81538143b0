"""Random mutations of a solved notebook: reading never fails, and what was not touched stays."""

import copy
import json

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.intake.read import read
from autograder.intake.repair import match, raw_cells, rebuild
from tests.forms import examples
from tests.intake.lesson_files import code, save, solved, words

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
TEXT = st.text(max_size=40) | st.sampled_from(
    ["%cd", "!ls", "x = 1", "def f(:", "  y", "'''", "class Pox: pass", "add(1, 2)", "print('a')"]
)
TASKS = ("add", "Box", "q1", "q2")
MUTATIONS = (
    "delete", "duplicate", "move", "strip", "strip all", "retype", "shorten", "cut", "rename",
    "edit", "junk", "junk cell", "own code", "own words", "renumber", "grade id",
)  # fmt: skip


@st.composite
def mutated(draw):
    """A list of (mutation, place, another place, text, junk)."""
    step = st.tuples(st.sampled_from(MUTATIONS), st.integers(0, 40), st.integers(0, 40), TEXT, JUNK)
    return draw(st.lists(step, min_size=1, max_size=6))


def mutate(notebook, steps):
    """Applies the mutations; returns the notebook, its name, and the tasks that were touched."""
    cells, name, touched = list(notebook.cells), "05_homework.ipynb", set()
    origin, alive = {id(cell): cell.id for cell in cells}, []
    for what, place, other, text, junk in steps:
        if not cells:
            break
        place %= len(cells)
        cell = cells[place]
        hit = origin.get(id(cell))
        if not isinstance(cell["source"], str):
            continue  # a junk cell
        if what == "delete":
            touched.add(hit)
            del cells[place]
        elif what == "duplicate":
            alive.append(copy.deepcopy(cell))
            origin[id(alive[-1])] = hit  # a copy of an answer is that answer, wherever it stands
            cells.insert(other % (len(cells) + 1), alive[-1])
        elif what == "move":
            touched |= {"q1", "q2"}  # without ids they are known by their places alone
            cells.insert(other % len(cells), cells.pop(place))
        elif what == "strip":
            cell["metadata"] = {}
        elif what == "strip all":
            touched |= {"q1", "q2"}
            for each in cells:
                if isinstance(each, dict):
                    each["metadata"] = {}
                    each.pop("id", None)
        elif what == "retype":
            touched.add(hit if hit in ("q1", "q2") else None)
            cell["cell_type"] = ("code", "markdown", "raw")[other % 3]
        elif what == "shorten":
            touched.add(hit)
            cell["source"] = cell["source"][: other * 3]
        elif what == "cut":
            touched.add(hit)
            second = copy.deepcopy(cell)
            alive.append(second)
            origin[id(second)] = hit
            cell["source"], second["source"] = (
                cell["source"][: other * 3],
                cell["source"][other * 3 :],
            )
            cells.insert(place + 1, second)
        elif what == "rename":
            name = ("Untitled.ipynb", "05-homework (2).ipynb", "04_before.ipynb")[other % 3]
        elif what == "edit":
            touched.add(hit)
            cell["source"] = text + "\n" + cell["source"]
        elif what == "junk":
            cell["metadata"] = junk
        elif what == "junk cell":
            cells.insert(place, {"cell_type": junk, "source": junk, "metadata": junk, "id": junk})
        elif what == "own code":
            cells.insert(place, code(text))
        elif what == "own words":
            touched |= {"q1", "q2"}  # with nothing else to go by, words may be an answer
            cells.insert(place, words(text))
        elif what == "renumber":
            touched |= {"q1", "q2"}
            for i, each in enumerate(cells):
                each["id"] = f"cell-{i}"
        elif what == "grade id" and hit is not None:
            cell["metadata"] = {"nbgrader": {"grade_id": TASKS[other % 4], "points": 99}}
            touched |= {"q1", "q2"}
    return {**notebook, "cells": cells}, name, touched


def claim(lessons, folder, steps):
    lesson = lessons["05_homework"]
    right = {c.id: c for c in _cells(lesson, solved(lesson))}
    notebook, name, touched = mutate(solved(lesson), steps)
    submission = read(save(notebook, folder, name), lessons)
    json.dumps([submission.notebook, submission.repairs, submission.error])
    if submission.error is not None:
        assert submission.error.endswith(".") and submission.cells == ()
        return
    if submission.lesson != "05_homework":
        return
    by_id = {c.id: c for c in submission.cells}
    assert len(by_id) == len(submission.cells)
    for cell in lesson.cells:
        if cell.role in ("exercise", "question", "setup", "demo"):
            assert (by_id[cell.id].role, by_id[cell.id].kind) == (cell.role, cell.kind)
    for task in set(TASKS) - touched:
        assert by_id[task] == right[task]
    built = rebuild(lesson, submission)
    nbformat.validate(built)
    released = [c.id for c in built.cells if not c.id.startswith("added-")]
    assert released == [c.id for c in lesson.cells]
    match(lesson, raw_cells(built))


def _cells(lesson, notebook):
    return match(lesson, raw_cells(notebook))[0]


OPTIONS = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
}


@settings(max_examples=examples(25, 60), **OPTIONS)
@given(steps=mutated())
def test_mutations_leave_untouched_answers_alone(lessons, tmp_path, steps):
    claim(lessons, tmp_path, steps)


@pytest.mark.slow
@settings(max_examples=500, **OPTIONS)
@given(steps=mutated())
def test_500_mutations_leave_untouched_answers_alone(lessons, tmp_path, steps):
    claim(lessons, tmp_path, steps)


@settings(max_examples=examples(25, 60), **OPTIONS)
@given(start=st.integers(0, 3000), junk=st.binary(max_size=20))
def test_a_file_with_damaged_bytes_never_raises(lessons, tmp_path, start, junk):
    data = bytearray(json.dumps(solved(lessons["05_homework"])).encode())
    data[start : start + len(junk)] = junk
    path = tmp_path / "05_homework.ipynb"
    path.write_bytes(data)
    submission = read(path, lessons)
    assert submission.error or submission.lesson


@settings(max_examples=examples(25, 60), **OPTIONS)
@given(content=JUNK)
def test_any_json_never_raises(lessons, tmp_path, content):
    for document in (content, {"cells": content}, {"cells": [content]}, {"worksheets": content}):
        path = tmp_path / "05_homework.ipynb"
        path.write_text(json.dumps(document))
        assert read(path, lessons).error
