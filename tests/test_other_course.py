"""A course that the engine knows nothing of: examples/normalisation, copied elsewhere."""

import shutil
from pathlib import Path

import pytest

from autograder.course.build import build
from autograder.course.calls import Draw, run_here
from autograder.course.course import Course
from autograder.course.handout import build_release
from autograder.grading.batch import grade_source
from autograder.grading.demo import fill_in
from autograder.grading.grade import Grader, model_answers
from autograder.judging.verdict import findings
from autograder.sandbox import strongest
from autograder.wish import Wish
from tests.conftest import ROOT

EXAMPLE = ROOT / "examples" / "normalisation"
LESSONS = {"01_normalisation": 5, "02_positions": 4}
WRITTEN = Course.at(EXAMPLE).written
MISTAKES = [(t, i) for t, w in WRITTEN.items() for i in range(len(w.mistakes))]


@pytest.fixture
def folder(tmp_path) -> Path:
    """The course as a folder of its own, as another repository would have it."""
    copy = tmp_path / "elsewhere" / "my normalisation"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("build", "notebooks", "*.ipynb"))
    return copy


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """The reports of a blank and of a solved submission of each lesson, by (who, lesson)."""
    copy = tmp_path_factory.mktemp("other") / "course"
    shutil.copytree(EXAMPLE, copy)
    course, reports = Course.at(copy), {}
    with Grader(strongest(), private=7, course=course) as grader:
        for name, lesson in course.lessons.items():
            for who, answers in (("blank", {}), ("solved", dict(model_answers(course, name)))):
                path = copy.parent / who / f"{name}.ipynb"
                path.parent.mkdir(exist_ok=True)
                path.write_text(fill_in(lesson, answers), encoding="utf-8")
                reports[who, name] = grader.grade(path)
    return reports


def told(task: str, program: object) -> list:
    """What a student is told whose notebook defines this program."""
    exercise = WRITTEN[task].exercise
    calls = exercise.cases(Draw(11))

    def ask(calls):
        return run_here({exercise.name: program}, calls)

    known = Course.at(EXAMPLE).answers(exercise, calls)
    return findings(exercise, calls, ask(calls), known, ask=ask)


def test_the_engine_has_no_line_about_it():
    # (`layer_norm` alone is a name of PyTorch's, too.)
    words = [*WRITTEN, "normalisation", "RMSNorm", "FeedForward"]
    for path in sorted((ROOT / "autograder").rglob("*.py")):
        if path.name == "exercises.py":
            continue  # its docstring has an exercise as an example
        text = path.read_text(encoding="utf-8")
        assert [w for w in words if w in text] == [], path


def test_it_builds_elsewhere(folder):
    course = Course.at(folder)
    written = build(course, run=False)
    assert [p.stem for p in written] == list(LESSONS)
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert "YOUR CODE HERE" in text and "SOLUTION" not in text
    assert not course.settings.library and course.settings.id == "normalisation"


def test_its_hand_out_has_lessons_and_checks_and_no_answer(folder):
    course = Course.at(folder)
    build(course, run=False)
    archive, edited = build_release(course, folder / "build" / "hand-out" / "normalisation")
    assert edited == [] and archive.exists()
    target = folder / "build" / "hand-out" / "normalisation"
    held = {p.relative_to(target).parts[0] for p in target.rglob("*") if p.is_file()}
    assert {"autograder", "notebooks", "released", "pyproject.toml"} <= held
    assert not held & {"solutions", "transformer_lm", "models"}
    answer = "torch.sqrt(variance + eps)"
    assert answer in (folder / "solutions" / "01_normalisation.py").read_text()
    assert [p for p in target.rglob("*") if p.is_file() and answer.encode() in p.read_bytes()] == []


def test_a_student_s_hand_out_names_the_mistake_without_the_answers(folder):
    course = Course.at(folder)
    target = folder / "build" / "hand-out" / "normalisation"
    build_release(course, target)
    theirs = Course.at(target)
    assert not theirs.has_answers
    for task, exercise in theirs.exercises.items():
        calls = theirs.public_calls(exercise)
        written = course.written[task]
        for program, wanted in (
            (written.answer, []),
            (written.mistakes[0].namespace[exercise.name], [written.mistakes[0].check]),
        ):

            def ask(calls, program=program, name=exercise.name):
                return run_here({name: program}, calls)

            known = theirs.answers(exercise, calls)
            found = findings(exercise, calls, ask(calls), known, ask=ask)
            assert [f.check for f in found] == wanted, task


@pytest.mark.parametrize("name", LESSONS)
def test_its_blank_release_earns_nothing(graded, name):
    assert (graded["blank", name].score, graded["blank", name].max_score) == (0, LESSONS[name])


@pytest.mark.parametrize("name", LESSONS)
def test_its_solution_earns_all(graded, name):
    report = graded["solved", name]
    assert report.score == LESSONS[name] and report.error is None and not report.repairs


@pytest.mark.parametrize("task, place", MISTAKES, ids=lambda v: str(v))
def test_each_of_its_mistakes_is_told(task, place):
    mistake = WRITTEN[task].mistakes[place]
    (found,) = told(task, mistake.namespace[WRITTEN[task].exercise.name])
    assert found.check == mistake.check and mistake.message.rstrip(".") in found.message


@pytest.mark.parametrize("task", WRITTEN)
def test_its_answers_are_right_and_have_three_hints(task):
    assert told(task, WRITTEN[task].answer) == []
    hints = WRITTEN[task].exercise.hints
    assert len(set(hints)) == 3 and all(hints)


def test_two_slips_at_once_are_both_told_in_it():
    (found,) = told(
        "norm.layer_norm",
        lambda x, weight, bias, eps: WRITTEN["norm.layer_norm"].answer(
            x, weight, bias, eps, unbiased=True, inside=False
        ),
    )
    assert "n - 1" in found.message and "belongs under it" in found.message


def test_what_its_class_hands_in_is_graded_in_one_go(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("AUTOGRADER_COURSE", raising=False)
    course = Course.find()
    assert course.folder == folder.resolve()
    right = dict(model_answers(course, "01_normalisation"))
    wrong = {**right, "norm-rms_norm": right["norm-rms_norm"].replace("(dim=-1", "(dim=1")}
    assert wrong != right
    for who, answers in (("ada", right), ("bob", wrong)):
        path = folder / "submitted" / who / "01_normalisation" / "01_normalisation.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(fill_in(course.lessons["01_normalisation"], answers), encoding="utf-8")
    assert grade_source(Path("submitted"), Wish(tier=strongest(), seed=3), as_json=True) == 0
    ada, bob = capsys.readouterr().out.strip().splitlines()
    assert '"score": 5.0' in ada and '"score": 4.0' in bob
    assert "runs over the tokens" in bob and "runs over the tokens" not in ada
