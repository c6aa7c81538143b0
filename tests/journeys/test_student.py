"""A student or self-learner: solves in place, saves, checks, comes back."""

import json
import re

import pytest

from tests import forms
from tests.conftest import ROOT
from tests.journeys.walk import after_setup, commands_of, shown, solve

HOMEWORK = "05_homework"
CHECK = ".venv/bin/autograder check"


def check_commands(text: str, section: str) -> list[str]:
    """The README's commands that check the homework from a shell."""
    found = [c for c in commands_of(text, section) if c.startswith(f"{CHECK} notebooks/")]
    assert found
    return found


def false_comment(answer: str) -> str:
    """The answer with two axes exchanged in the comment on its last line."""
    lines = answer.rstrip().split("\n")
    lines[-1], count = re.subn(
        r"\[batch_size, seq_len, hidden\]", "[batch_size, hidden, seq_len]", lines[-1]
    )
    assert count == 1, lines[-1]
    return "\n".join(lines)


def test_a_student_solves_the_hand_out_in_place_and_comes_back(unzipped, right_answers):
    commands = commands_of((unzipped.folder / "README.md").read_text(encoding="utf-8"))
    (check,) = [c for c in after_setup(commands) if c.startswith(CHECK)]
    path, right = unzipped.notebook(HOMEWORK), right_answers(HOMEWORK)

    # The first evening: all is right, an own cell is at the end, the class goes to the library.
    keep = 'from autograder.keep import keep\nkeep("SelfAttention")'
    solve(path, right, more=("my_own = SelfAttention(3, 5)", keep))
    screen = shown(unzipped.run_all(path))
    assert screen.count("[passed]") == 7 and "[not yet]" not in screen
    assert "now stands in modeling_attention.py" in screen
    kept = (unzipped.folder / "transformer_lm" / "modeling_attention.py").read_text()
    assert "# kept from your notebook" in kept
    said = unzipped.do(check)
    assert re.search(r"10\s+of\s+10", said) and "not filled in" not in said

    # The next day: it is opened as it was saved, and a comment is changed for the worse.
    saved = json.loads(path.read_text(encoding="utf-8"))
    assert any(cell.get("outputs") for cell in saved["cells"])
    solve(path, {"self_attention": false_comment(right["self_attention"])})
    if not forms.small:
        screen = shown(unzipped.run_all(path, allow_errors=True))
        assert screen.count("[passed]") == 6
        assert "[not yet] self_attention.shape_comments" in screen
    said = unzipped.run(check).text
    assert re.search(r"9\s+of\s+10", said) and "[batch_size, hidden, seq_len]" in said


@pytest.mark.slow
def test_a_self_learner_is_told_the_mistake_gets_hints_and_goes_on(course_folder, right_answers):
    lesson, task, cell = "00_shape_gym", "shape_gym.axes", "shape_gym-axes"
    path = course_folder.notebook(lesson)
    right = right_answers(lesson)[cell]
    wrong = right.replace("dim=1", "dim=2")
    assert wrong != right
    hints = tuple(f'hint("{task}", {step})' for step in (1, 2, 3))
    solve(path, {cell: wrong}, more=(*hints, right, f'check("{task}")'))
    screen = shown(course_folder.run_all(path, allow_errors=True))
    before, _, after = screen.partition(f"[hint 3 of 3] {task}")
    assert f"[not yet] {task}" in before and f"CheckFailed: {task}" in before
    assert f"[hint 1 of 3] {task}" in before and f"[hint 2 of 3] {task}" in before
    assert f"[passed] {task}" not in before and f"[passed] {task}" in after


@pytest.mark.slow
def test_a_self_learner_solves_the_course_folder_in_place_twice(course_folder, right_answers):
    page = (ROOT / "docs" / "learn.md").read_text(encoding="utf-8")
    (check,) = check_commands(page, "Learn")
    path, right = course_folder.notebook(HOMEWORK), right_answers(HOMEWORK)
    for attempt in ("first", "second"):
        solve(path, right, more=(f'attempt = "{attempt}"',))
        assert shown(course_folder.run_all(path)).count("[passed]") == 7
        said = course_folder.do(check)
        report = json.loads(said.splitlines()[-1])
        assert (report["score"], report["max_score"], report["error"]) == (10, 10, None)
    solve(path, {"self_attention": false_comment(right["self_attention"])})
    screen = shown(course_folder.run_all(path, allow_errors=True))
    assert "[not yet] self_attention.shape_comments" in screen
    assert json.loads(course_folder.run(check).text.splitlines()[-1])["score"] == 9


@pytest.mark.slow
def test_every_lesson_solved_in_place_gets_all_its_points(course_folder, right_answers):
    notebooks = sorted((course_folder.folder / "notebooks").glob("*/*.ipynb"))
    for path in notebooks:
        solve(path, right_answers(path.stem), more=("x = 1",))
    paths = " ".join(str(p.relative_to(course_folder.folder)) for p in notebooks)
    lines = course_folder.do(f"{CHECK} --json {paths}").splitlines()
    reports = [json.loads(line) for line in lines]
    assert [r["lesson"] for r in reports] == [p.stem for p in notebooks]
    assert [r["lesson"] for r in reports if r["score"] < r["max_score"]] == []


@pytest.mark.slow
def test_jupyter_opens_as_the_readmes_say_and_saves(unzipped, course_folder):
    for place, readme in ((unzipped, "README.md"), (course_folder, "README.md")):
        text = (place.folder / readme).read_text(encoding="utf-8")
        command = next(c for c in commands_of(text) if "jupyter lab notebooks" in c)
        with place.serving(command) as server:
            assert "JupyterLab" in server.get("/lab")
            listed = json.loads(server.get(f"/api/contents/{HOMEWORK}"))["content"]
            assert [entry["name"] for entry in listed] == [f"{HOMEWORK}.ipynb"]
