"""All lessons announce their exercises in one form: number, title, difficulty, minutes, points."""

import re

import pytest

from autograder.course.course import Course
from autograder.course.lesson import Role
from autograder.reports.outline import FORM, outline
from tests.conftest import ROOT

LESSONS = Course.at(ROOT).lessons
NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
NUMBERS = [*NUMBERS.split(), "fifteen", "sixteen", "seventeen", "eighteen"]


def text(lesson) -> str:
    return "\n".join(c.source for c in lesson.cells if c.kind == "markdown")


@pytest.mark.parametrize("name", LESSONS)
def test_every_exercise_has_number_title_difficulty_and_minutes(name):
    asked = outline(LESSONS[name])
    assert len(asked) == len(LESSONS[name].with_role(Role.EXERCISE))
    assert [each.number for each in asked] == list(range(1, len(asked) + 1))
    for each in asked:
        assert each.title and 1 <= each.difficulty <= 5 and 1 <= each.minutes <= 60, each


@pytest.mark.parametrize("name", LESSONS)
def test_the_points_announced_are_those_of_the_checks(name):
    lines = [found for line in text(LESSONS[name]).split("\n") if (found := FORM.match(line))]
    assert [float(found["points"]) for found in lines] == [a.points for a in outline(LESSONS[name])]
    assert all(len(found["full"] + found["empty"]) == 5 for found in lines)


@pytest.mark.parametrize("name", LESSONS)
def test_the_head_says_time_difficulty_and_importance(name):
    head = text(LESSONS[name])
    minutes = re.search(r"^\| Time \| (\d+) minutes", head, re.MULTILINE)
    assert minutes and sum(a.minutes for a in outline(LESSONS[name])) < int(minutes[1])
    for word in ("Difficulty", "Importance"):
        dots = re.search(rf"^\| {word} \| (●+○*) \|$", head, re.MULTILINE)
        assert dots and len(dots[1]) == 5


@pytest.mark.parametrize("name", [name for name in LESSONS if name != "05_homework"])
def test_the_head_counts_exercises_and_points(name):
    asked = outline(LESSONS[name])
    points = int(sum(a.points for a in asked))
    said = f"{NUMBERS[len(asked)].capitalize()} exercises, {NUMBERS[points]} points"
    assert said in text(LESSONS[name])


QUIZ = "## Did it stick?"
ANSWER = "<details><summary>Answer</summary>"


@pytest.mark.parametrize("name", LESSONS)
def test_every_lesson_ends_with_a_quiz_of_one_form(name):
    """A number, a question, and the answer folded right below it."""
    (_, quiz) = text(LESSONS[name]).split(f"{QUIZ}\n")
    asked = re.findall(r"^\*\*(\d+)\.\*\* ([^<]*)\n<details><summary>Answer</summary>", quiz, re.M)
    assert [int(number) for number, _ in asked] == list(range(1, len(asked) + 1))
    assert len(asked) >= 5 and all("?" in question for _, question in asked)
    assert len(asked) == quiz.count("<details>") == quiz.count("</details>")


@pytest.mark.parametrize("name", LESSONS)
def test_what_is_folded_reads_as_it_is_written(name):
    """Markdown is not read inside of an HTML block: code in backticks would show them."""
    for folded in re.findall(rf"{ANSWER}(.*?)</details>", text(LESSONS[name]), re.S):
        assert folded.startswith("\n\n") or "`" not in folded, folded
