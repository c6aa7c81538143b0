"""What is done and what comes next, from notebooks as they were saved."""

import json
from types import SimpleNamespace

import pytest

from autograder import notebook
from autograder.cli import main
from autograder.course.course import Course
from autograder.reports.outline import Asked, outline
from autograder.reports.progress import InLesson, Progress, read_progress, what_checks_said
from tests.conftest import ROOT

COURSE = Course.at(ROOT)
FIRST = "00_shape_gym"
TASKS = [asked.tasks[0] for asked in outline(COURSE.lessons[FIRST])]


def saved(path, *said, kind="display_data", as_list=False):
    """A notebook whose checks said this, one cell each."""
    cells = []
    for text in said:
        text = text.splitlines(keepends=True) if as_list else text
        output = {"output_type": kind, "data": {"text/plain": text}}
        cells.append({"cell_type": "code", "source": "check(...)", "outputs": [output]})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "# x"}, *cells]}))
    return path


def test_the_outline_says_what_the_lesson_says():
    first = outline(COURSE.lessons[FIRST])[0]
    assert first == Asked("shape_gym-axes", ("shape_gym.axes",), 1.0, 1, "the average token", 1, 4)
    homework = outline(COURSE.lessons["05_homework"])
    assert [a.points for a in homework] == [4, 6]
    assert homework[1].tasks == ("multi_head.scores", "multi_head.mask", "multi_head.output")


def test_an_empty_folder_is_no_progress(tmp_path):
    found = read_progress(COURSE, tmp_path)
    assert [each.lesson for each in found.lessons] == list(COURSE.lessons)
    assert not any(each.done or each.tried for each in found.lessons)
    assert found.next[0] == FIRST and found.next[1].number == 1


@pytest.mark.parametrize("as_list", [False, True])
def test_what_passed_is_done_and_what_did_not_is_tried(tmp_path, as_list):
    said = [f"[passed] {TASKS[0]}", f"[not yet] {TASKS[1]}\n  likely  ...", f"[nearly] {TASKS[2]}"]
    saved(tmp_path / "mine" / "a.ipynb", *said, as_list=as_list)
    gym = read_progress(COURSE, tmp_path).lessons[0]
    assert [a.tasks[0] for a in gym.done] == [TASKS[0], TASKS[2]]
    assert [a.tasks[0] for a in gym.tried] == [TASKS[1]]
    assert gym.asked == 8 and gym.minutes == 47 - 4 - 5


def test_a_class_is_done_when_all_of_its_checks_passed(tmp_path):
    saved(tmp_path / "a.ipynb", "[passed] multi_head.scores", "[passed] multi_head.mask")
    homework = next(e for e in read_progress(COURSE, tmp_path).lessons if e.lesson == "05_homework")
    assert not homework.done and len(homework.tried) == 1


def test_what_a_cell_prints_is_no_card(tmp_path):
    path = saved(tmp_path / "a.ipynb", f"[passed] {TASKS[0]}", kind="stream")
    assert what_checks_said(path) == {}


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"cells": 3}', '{"cells": [3]}', "[" * 99])
def test_what_is_no_notebook_says_nothing(tmp_path, text):
    path = tmp_path / "a.ipynb"
    path.write_text(text)
    assert what_checks_said(path) == {}


def test_checkpoints_are_not_read(tmp_path):
    saved(tmp_path / ".ipynb_checkpoints" / "a.ipynb", f"[passed] {TASKS[0]}")
    assert not read_progress(COURSE, tmp_path).lessons[0].done


def test_what_was_said_since_counts_for_more(tmp_path):
    saved(tmp_path / "a.ipynb", f"[passed] {TASKS[0]}")
    assert not read_progress(COURSE, tmp_path, {TASKS[0]: False}).lessons[0].done


def test_next_is_what_follows_the_work_and_then_what_was_left_out():
    one, two = Asked("a", ("a",), 1.0, 1, "one"), Asked("b", ("b",), 1.0, 2, "two")
    early, late = InLesson("early", (), (), (one,)), InLesson("late", (one,), (), (two,))
    assert Progress((early, late)).next == ("late", two)
    done = InLesson("late", (one, two), (), ())
    assert Progress((early, done)).next == ("early", one)
    assert Progress((done,)).next is None and "Everything" in repr(Progress((done,)))


def test_the_command_prints_every_lesson(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("AUTOGRADER_COURSE", str(ROOT))
    saved(tmp_path / "a.ipynb", f"[passed] {TASKS[0]}")
    assert main(["progress", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "1 of 8" in out and "12_causal_experiments" in out and "Next: 00_shape_gym" in out
    assert main(["progress", str(tmp_path / "gone")]) == 2


# --- in a notebook --------------------------------------------------------------------------------
@pytest.fixture
def fresh(monkeypatch):
    for name in ("_tries", "_hinted", "_said"):
        monkeypatch.setattr(notebook, name, {})
    monkeypatch.setattr(notebook, "find", lambda task: SimpleNamespace(hints=("a", "b", "c")))


def failed(times: int) -> None:
    notebook._tries["x"] = notebook._tries.get("x", 0) + times


def test_the_next_hint_is_offered_after_several_tries(fresh):
    failed(1)
    assert (notebook._offer("x").step, notebook._offer("x").tries) == (1, 0)
    failed(2)
    assert (notebook._offer("x").step, notebook._offer("x").tries) == (1, 3)
    notebook.hint("x", 1)
    failed(1)
    assert (notebook._offer("x").step, notebook._offer("x").tries) == (1, 0)
    failed(2)
    assert (notebook._offer("x").step, notebook._offer("x").tries) == (2, 3)


def test_after_the_last_hint_there_is_no_next(fresh):
    notebook.hint("x", 3)
    failed(9)
    assert (notebook._offer("x").step, notebook._offer("x").tries) == (3, 0)


def test_a_notebook_shows_the_same(fresh, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("AUTOGRADER_COURSE", str(ROOT))
    notebook._said[TASKS[0]] = True
    notebook.progress(tmp_path)
    assert "1 of 8" in capsys.readouterr().out
