"""Claims about reading the files of a course's exercises."""

from autograder.course.calls import Draw
from autograder.course.exercises import load

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
