"""Claims about reading the files of a course's exercises."""

from pathlib import Path

from autograder.course.calls import Draw
from autograder.course.course import Course
from autograder.course.exercises import load
from tests.conftest import ROOT

FILE = """
from autograder import exercise

@exercise("t.double", "double(x[n], sign=1.0)", hints=("one", "two", "three"))
def double(x, sign):
    return 2 * x * sign

for answer in (double,):
    answer.wrong("t.kept", "Nothing happened.", lambda x, sign: x)

@exercise("t.half", "half(x[n])", hints=("one", "two", "three"))
def half(x):
    return x / 2

@exercise("t.third", "third(x[n])", hints=("one", "two", "three"))
def third(x):
    return x / 3

for answer in (half, third):
    answer.wrong("t.kept", "Nothing happened.", lambda x: x)
"""


def written(tmp_path):
    (tmp_path / "01_lesson.py").write_text(FILE)
    return load(tmp_path)


def test_an_answer_with_several_names_in_its_file_is_one_exercise(tmp_path):
    assert [len(w.mistakes) for w in written(tmp_path).values()] == [1, 1, 1]


def test_exercises_come_in_the_order_of_their_lines(tmp_path):
    assert list(written(tmp_path)) == ["t.double", "t.half", "t.third"]


def test_what_is_handed_over_by_name_is_said(tmp_path):
    calls = written(tmp_path)["t.double"].exercise.cases(Draw(1))
    assert [c.says for c in calls] == [f"n {len(c.args[0])}, sign=1.0" for c in calls] != []


PLAIN = """
from autograder import exercise

@exercise("t.label", 'label("abc")', "label(3, short=True)", hints=("one", "two", "three"))
def label(name, short=False):
    return "short" if short else "fine"
"""


def test_a_call_in_which_nothing_is_drawn_is_said_as_it_stands(tmp_path):
    (tmp_path / "01_lesson.py").write_text(PLAIN)
    calls = load(tmp_path)["t.label"].exercise.cases(Draw(1))
    assert list(dict.fromkeys(c.says for c in calls)) == ['label("abc")', "label(3, short=True)"]


# --- the files of this course ---------------------------------------------------------------------
EXERCISES = ROOT / "solutions" / "exercises"
LATER = ("06_", "07_", "08_", "backward.py", "speed.py", "variants.py")  # lessons that came later


def lines(path):
    return len(path.read_text(encoding="utf-8").splitlines())


def of_first_lessons(path):
    return not path.name.startswith(LATER)


def test_every_named_mistake_was_carried_over_in_three_fifths_of_the_lines():
    """Of the lessons that stood when exercises took 11,900 lines, for 1,350 mistakes with names."""
    course = Course.at(ROOT).written.values()
    named = sum(len(w.mistakes) for w in course if of_first_lessons(Path(w.where)))
    assert named >= 1350
    files = [p for p in EXERCISES.rglob("*.py") if of_first_lessons(p)]
    assert sum(map(lines, files)) <= 0.6 * 11_900


def test_a_named_mistake_takes_no_more_lines_than_it_did_then():
    named = sum(len(w.mistakes) for w in Course.at(ROOT).written.values())
    assert named >= 2400
    assert sum(map(lines, EXERCISES.rglob("*.py"))) / named <= 0.6 * 11_900 / 1350
