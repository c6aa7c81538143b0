"""Cells that were deleted, copied, cut, moved, retyped, stripped or edited find their places."""

import copy

import nbformat
import pytest

from autograder.intake.repair import match, raw_cells, rebuild
from tests.intake.lesson_files import ADD, BOX, BOX_REST, BOX_TOP, at, code, place, strip, words


def answers(submission):
    assert submission.error is None
    return {c.id: c.source for c in submission.cells if c.role in ("exercise", "question")}


RIGHT = {"add": ADD, "Box": BOX, "q1": "Addition commutes.", "q2": "To leave things as they are."}


def test_a_solved_notebook_needs_no_repair(notebook, reread):
    submission = reread(notebook)
    assert answers(submission) == RIGHT
    assert submission.repairs == ()
    assert [c.role for c in submission.cells] == [
        "setup",
        "demo",
        "exercise",
        "question",
        "question",
        "exercise",
    ]
    assert [c.answered for c in submission.cells] == [False, False, True, True, True, True]


def test_a_blank_notebook_has_no_answers(lesson, reread):
    submission = reread(lesson.notebook)
    assert not any(c.answered for c in submission.cells)


@pytest.mark.parametrize("text", ["", "   \n\n"])
def test_an_empty_answer_cell_is_unanswered(notebook, reread, text):
    at(notebook, "add").source = text
    cell = next(c for c in reread(notebook).cells if c.id == "add")
    assert cell.role == "exercise" and not cell.answered


def test_blanks_at_line_ends_are_no_answer(lesson, reread):
    notebook = copy.deepcopy(lesson.notebook)
    at(notebook, "add").source = at(notebook, "add").source.replace("\n", "  \n") + "\n\n"
    assert not any(c.answered for c in reread(notebook).cells if c.id == "add")


def test_a_notebook_without_ids_and_metadata_is_known_by_its_text(notebook, reread):
    assert answers(reread(strip(notebook))) == RIGHT


def test_an_answer_with_ids_lost_and_another_class_name_is_known_by_its_lines(lesson, reread):
    notebook = copy.deepcopy(lesson.notebook)
    at(notebook, "Box").source = at(notebook, "Box").source.replace("class Box", "class Bx")
    assert "class Bx" in answers(reread(strip(notebook)))["Box"]


def test_an_unanswered_question_keeps_the_next_ones_answer_in_place(notebook, reread):
    at(notebook, "q1").source = "YOUR ANSWER HERE"
    got = answers(reread(strip(notebook)))
    assert (got["q1"], got["q2"]) == ("YOUR ANSWER HERE", RIGHT["q2"])


def test_a_question_answered_in_the_next_cell_is_answered(notebook, reread):
    at(notebook, "q1").source = "YOUR ANSWER HERE"
    notebook.cells.insert(place(notebook, "q1") + 1, words("Here it is."))
    assert answers(reread(notebook))["q1"] == "Here it is."


def test_a_question_answered_below_its_own_words_is_answered(notebook, reread):
    where = place(notebook, "q1")
    notebook.cells[where].source = "YOUR ANSWER HERE"
    notebook.cells[where - 1].source += "\n\nBecause a + b = b + a."
    submission = reread(notebook)
    question = next(c for c in submission.cells if c.id == "q1")
    assert question.answered and "b + a" in question.source


@pytest.mark.parametrize("stripped", [False, True])
def test_deleted_answers_come_back_unanswered(notebook, reread, stripped):
    del notebook.cells[place(notebook, "add")]
    submission = reread(strip(notebook) if stripped else notebook)
    cell = next(c for c in submission.cells if c.id == "add")
    assert not cell.answered and "NotImplementedError" in cell.source
    assert answers(submission)["Box"] == BOX
    assert any("'add' was missing" in text for text in submission.repairs)


def test_deleted_setup_comes_back_at_its_place(notebook, reread):
    del notebook.cells[1]
    submission = reread(notebook)
    assert submission.cells[0].role == "setup" and submission.cells[0].source == "import math"
    assert len(submission.repairs) == 1


def test_of_two_copies_the_last_filled_one_counts(notebook, reread):
    where = place(notebook, "add")
    copied = copy.deepcopy(notebook.cells[where])  # as copy and paste: new id, same grade id
    copied.id, copied.source = "abc", "def add(a, b):\n    return b + a"
    notebook.cells.insert(where + 2, copied)
    submission = reread(notebook)
    assert answers(submission)["add"] == copied.source
    assert [c.source for c in submission.cells if c.role == "added"] == [ADD]
    assert any("more than once" in text for text in submission.repairs)


@pytest.mark.parametrize("same_id", [True, False])
def test_an_untouched_copy_after_the_answer_does_not_undo_it(lesson, notebook, reread, same_id):
    copied = copy.deepcopy(at(lesson.notebook, "add"))
    copied.id = "add" if same_id else "abc"
    notebook.cells.append(copied)
    submission = reread(notebook)
    assert answers(submission) == RIGHT
    assert not [c for c in submission.cells if c.role == "added"]


def test_a_copy_that_became_a_scratch_cell_is_not_the_answer(notebook, reread):
    copied = copy.deepcopy(at(notebook, "add"))
    copied.id, copied.source = "abc", "add(2, 3)"
    notebook.cells.insert(place(notebook, "add") + 1, copied)
    submission = reread(notebook)
    assert answers(submission) == RIGHT
    assert [c.source for c in submission.cells if c.role == "added"] == ["add(2, 3)"]


def test_an_answer_in_a_new_cell_counts_where_its_own_was_left_blank(lesson, reread):
    notebook = copy.deepcopy(lesson.notebook)
    notebook.cells.insert(place(notebook, "add") + 1, code(ADD))
    submission = reread(notebook)
    assert answers(submission)["add"] == ADD
    assert next(c for c in submission.cells if c.id == "add").answered
    assert any("another cell" in text for text in submission.repairs)


def test_two_answers_in_one_cell_are_each_put_in_their_own(lesson, notebook, reread):
    box = at(notebook, "Box").source
    at(notebook, "add").source = f"import math\n\n{ADD}\n\n\n@str\n{box}"
    at(notebook, "Box").source = at(lesson.notebook, "Box").source
    submission = reread(notebook)
    assert answers(submission)["add"].strip() == f"import math\n\n{ADD}".strip()
    assert answers(submission)["Box"].strip() == f"@str\n{box}".strip()
    assert any("'Box' was found in the cell 'add'" in text for text in submission.repairs)


def test_a_definition_that_the_cells_own_answer_uses_stays_in_it_too(lesson, notebook, reread):
    both = f"{at(notebook, 'Box').source}\n\n\ndef add(a, b):\n    return Box(a + b).value"
    at(notebook, "add").source = both
    at(notebook, "Box").source = at(lesson.notebook, "Box").source
    found = answers(reread(notebook))
    assert found["add"] == both
    assert found["Box"].strip() == at(notebook, "add").source.split("\n\n\ndef add")[0].strip()


@pytest.mark.parametrize("home", ["code-002", "check-add"])
def test_an_answer_typed_into_an_example_or_a_check_counts(lesson, reread, home):
    notebook = copy.deepcopy(lesson.notebook)
    at(notebook, home).source = ADD
    submission = reread(notebook)
    assert answers(submission)["add"] == ADD
    assert rebuild(lesson, submission).cells[place(lesson.notebook, home)].source == (
        at(lesson.notebook, home).source
    )


def test_a_variant_in_a_scratch_cell_does_not_replace_the_answer(notebook, reread):
    notebook.cells.append(code("def add(a, b):\n    return a - b  # what if?"))
    assert answers(reread(notebook)) == RIGHT


@pytest.mark.parametrize("stripped", [False, True])
@pytest.mark.parametrize("piece", ["first", "second"])
def test_a_class_that_was_cut_in_two_is_joined(notebook, reread, stripped, piece):
    where = place(notebook, "Box")
    if piece == "first":
        notebook.cells[where].source = BOX_TOP
        notebook.cells.insert(where + 1, code(BOX_REST))
    else:
        notebook.cells[where].source = BOX_REST
        notebook.cells.insert(where, code(BOX_TOP))
    submission = reread(strip(notebook) if stripped else notebook)
    assert answers(submission)["Box"] == BOX
    assert not [c for c in submission.cells if c.role == "added"]
    assert any("joined" in text for text in submission.repairs)


def test_a_class_that_was_cut_in_three_is_joined_without_the_scratch_cell_after_it(
    notebook, reread
):
    where = place(notebook, "Box")
    pieces = [
        "class Box:",
        "    def __init__(self, number):\n        self.number = number",
        BOX_REST,
    ]
    notebook.cells[where].source = pieces[0]
    notebook.cells[where + 1 : where + 1] = [*map(code, pieces[1:]), code("!ls\nBox(3).get()")]
    submission = reread(notebook)
    assert answers(submission)["Box"] == BOX
    assert [c.source for c in submission.cells if c.role == "added"] == ["!ls\nBox(3).get()"]


def test_a_class_cut_by_jupyter_has_the_same_grade_id_twice_and_is_joined(notebook, reread):
    where = place(notebook, "Box")
    second = copy.deepcopy(notebook.cells[where])
    second.id, second.source = "abc", BOX_REST
    notebook.cells[where].source = BOX_TOP
    notebook.cells.insert(where + 1, second)
    assert answers(reread(notebook))["Box"] == BOX


def test_a_scratch_line_with_a_magic_after_the_answer_is_not_joined(notebook, reread):
    for text in ("!pip list", "%matplotlib inline", "add(1, 2)", "add(", "  add(1, 2)"):
        trial = copy.deepcopy(notebook)
        trial.cells.insert(place(trial, "add") + 1, code(text))
        submission = reread(trial)
        assert answers(submission)["Box"] == BOX
        if not text.startswith("  "):
            assert answers(submission)["add"] == ADD
            assert [c.source for c in submission.cells if c.role == "added"] == [text]


@pytest.mark.parametrize("kind", ["markdown", "raw"])
@pytest.mark.parametrize("stripped", [False, True])
def test_a_retyped_answer_is_read_as_code(notebook, reread, kind, stripped):
    cell = at(notebook, "Box")
    cell.cell_type = kind
    submission = reread(strip(notebook) if stripped else notebook)
    assert answers(submission) == RIGHT
    box = next(c for c in submission.cells if c.id == "Box")
    assert (box.kind, box.role) == ("code", "exercise")
    assert any(kind in text for text in submission.repairs)


def test_a_changed_setup_cell_runs_as_released_with_the_students_text_after_it(notebook, reread):
    notebook.cells[1].source = "import math\nimport os"
    cells = reread(notebook).cells
    assert (cells[0].role, cells[0].source) == ("setup", "import math")
    assert (cells[1].role, cells[1].source) == ("added", "import math\nimport os")
    assert cells[1].after == cells[0].id


def test_a_students_check_cell_never_comes_through(notebook, reread, lesson):
    at(notebook, "check-add").source = "print('forged')"
    notebook.cells.append(copy.deepcopy(at(notebook, "check-add")))
    submission = reread(notebook)
    assert not any("forged" in c.source for c in submission.cells)
    built = rebuild(lesson, submission)
    assert not any("forged" in c.source for c in built.cells)
    assert any("The check 'add' was changed" in text for text in submission.repairs)


def test_own_cells_keep_their_place_behind_what_they_followed(notebook, reread, lesson):
    notebook.cells.insert(0, code("first = 1"))
    notebook.cells.insert(place(notebook, "add") + 1, code("helper = 2"))
    notebook.cells.insert(place(notebook, "check-add") + 1, words("my note"))
    submission = reread(notebook)
    own = [(c.id, c.role, c.source, c.after) for c in submission.cells if c.id[:5] == "added"]
    assert own == [
        ("added-1", "added", "first = 1", ""),
        ("added-2", "added", "helper = 2", "add"),
        ("added-3", "note", "my note", "check-add"),
    ]
    assert [c.source for c in rebuild(lesson, submission).cells] == [
        c.source for c in notebook.cells
    ]


def test_reordered_cells_keep_the_students_order(notebook, reread):
    moved = notebook.cells.pop(place(notebook, "Box"))
    notebook.cells.insert(2, moved)
    submission = reread(notebook)
    ids = [c.id for c in submission.cells]
    assert ids.index("Box") < ids.index("add")
    assert answers(submission) == RIGHT


def test_a_text_cell_that_a_student_wrote_in_is_kept(notebook, reread, lesson):
    notebook.cells[0].source += "\n\nMy name is Jo."
    submission = reread(notebook)
    built = rebuild(lesson, submission)
    assert built.cells[0].source == lesson.cells[0].source
    assert "My name is Jo." in built.cells[1].source


def test_rebuild_has_nothing_of_the_students_but_text(notebook, reread, lesson):
    for cell in notebook.cells:
        cell.metadata = {"tags": ["skip-execution"], "nbgrader": {"points": 1000}, "x": 1}
        if cell.cell_type == "code":
            cell.outputs = [nbformat.v4.new_output("stream", text="<script>")]
    notebook.metadata = {"kernelspec": {"name": "../x", "display_name": "x", "argv": ["rm"]}}
    notebook.cells.append(code("extra = 1"))
    built = rebuild(lesson, reread(notebook))
    nbformat.validate(built)
    text = nbformat.writes(built)
    assert not any(word in text for word in ("skip-execution", "1000", "<script>", "argv"))
    assert built.metadata == lesson.notebook.metadata
    assert {c.id: c.metadata for c in built.cells if c.id[:5] != "added"} == {
        c.id: c.metadata for c in lesson.notebook.cells
    }
    assert len({c.id for c in built.cells}) == len(built.cells)


def test_rebuild_leaves_the_lesson_itself_alone(notebook, reread, lesson):
    before = nbformat.writes(lesson.notebook)
    rebuild(lesson, reread(notebook))
    assert nbformat.writes(lesson.notebook) == before


def test_a_rebuilt_notebook_is_read_as_it_was_without_repairs(notebook, reread, lesson):
    notebook.cells.insert(place(notebook, "add"), code("helper = 1"))
    notebook.cells[1].source = "import os"
    submission = reread(strip(notebook))
    cells, repairs = match(lesson, raw_cells(rebuild(lesson, submission)))
    assert cells == submission.cells
    assert repairs == ()


def test_metadata_that_names_another_exercise_does_not_move_an_answer(notebook, reread):
    at(notebook, "add").metadata["nbgrader"]["grade_id"] = "Box"
    at(notebook, "Box").metadata["nbgrader"]["grade_id"] = "add"
    assert answers(reread(notebook)) == RIGHT


def test_junk_in_place_of_metadata_ids_and_sources_is_harmless(notebook, reread):
    junk = [None, 3, [], {}, "x" * 10_000, {"nbgrader": 7}, {"nbgrader": {"grade_id": ["add"]}}]
    plain = strip(notebook)
    for i, cell in enumerate(plain.cells):
        cell["metadata"] = junk[i % len(junk)]
        cell["id"] = junk[(i + 3) % len(junk)]
    plain.cells += [{}, {"cell_type": 5}, {"cell_type": "code", "source": 4}, 7, None]
    plain.cells.append({"cell_type": "code", "source": ["y = ", 3, "1"]})
    assert answers(reread(plain)) == RIGHT
