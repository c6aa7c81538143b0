"""What does not fit in a course's exercises is said at the build, with file and line."""

import shutil
from pathlib import Path

import pytest

from autograder import rehearsal
from autograder.cli import main
from autograder.course.course import Course
from autograder.course.settings import CourseError
from autograder.rehearsal import rehearse
from tests.conftest import ROOT

LESSON = """\
# %% role="setup"
import torch

# %% exercise="sum"
# YOUR CODE HERE

# %% check="sum.value" points=1
"""
START = """\
import math
import torch
from autograder import Call, exercise

"""
ANSWER = START + (
    '@exercise("sum.value", {calls}, hints=("one", "two", "three"){more})\n'
    "def add(a, b{switches}):\n"
    "    {body}\n"
)
HERE = "solutions/exercises/00_small.py:{line}: "
LINES = START.count("\n")


def made(folder: Path, wrong: str = "", **parts: str) -> Course:
    """A course of one exercise, whose file ends with the lines `wrong`."""
    parts = {
        "calls": '"add(a[n], b[n])"',
        "more": "",
        "switches": ", sign=1",
        "body": "return a + sign * b",
        **parts,
    }
    for name, text in {
        "pyproject.toml": "[tool.autograder]\n",
        "solutions/00_small.py": LESSON,
        "solutions/exercises/00_small.py": ANSWER.format(**parts) + wrong,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return Course(folder, Course.at(folder).settings)


def said(course: Course) -> str:
    with pytest.raises(CourseError) as raised:
        rehearse(course)
    return str(raised.value)


def test_what_fits_is_not_mentioned(tmp_path):
    rehearse(made(tmp_path, 'add.wrong("difference", "b is taken off.", sign=-1)\n'))


def test_the_course_of_the_examples_fits(tmp_path):
    copy = tmp_path / "normalisation"
    shutil.copytree(ROOT / "examples" / "normalisation", copy)
    rehearse(Course.at(copy))


@pytest.mark.parametrize(
    "program, words",
    [
        ("sign=1", ["the mistake 'slip' passes the check 'sum.value'"]),
        ("lambda a, b: b + a", ["the mistake 'slip' passes the check 'sum.value'"]),
        (
            "lambda a, b: a if len(a) == 3 else a + b",
            ["'slip' passes the check 'sum.value', by luck"],
        ),
        ("lambda a, b: a - b", ["'slip' gives the same as 'difference' (line {first}) in every"]),
    ],
)
def test_a_mistake_that_nobody_is_told_of_is_said(tmp_path, program, words):
    course = made(
        tmp_path,
        'add.wrong("difference", "b is taken off.", sign=-1)\n'
        f'add.wrong("slip", "Something else.", {program})\n',
        more=', sizes={"n": (3, 5)}' if "len" in program else "",
    )
    text = said(course)
    assert HERE.format(line=LINES + 5) in text
    for word in words:
        assert word.format(first=LINES + 4) in text


@pytest.mark.parametrize(
    "parts, words",
    [
        ({"body": "a + b"}, "gives None in every call"),
        ({"body": "return a + c"}, "stops with an error in every call: NameError: name 'c' is"),
        ({"body": "return a + b[99]"}, "stops with an error in every call: IndexError"),
        ({"body": "return a + b if len(a) < 13 else b.sun()"}, "AttributeError"),
        ({"body": "return (x for x in a)"}, "gives a generator, which cannot be compared"),
        ({"body": "return {'sum': [slice(3)]}"}, "gives a slice, which cannot be compared"),
        ({"more": ", also=(lambda a, b: a,)"}, "number 1 of `also=` of 'sum.value' fails its own"),
        ({"body": "return torch.rand(3)"}, "the answer of 'sum.value' fails its own check"),
        ({"calls": "lambda draw: Call('add', (draw.normal(3), draw.smal(3)))"}, "'smal'"),
    ],
)
def test_an_answer_that_is_no_answer_is_said(tmp_path, parts, words):
    text = said(made(tmp_path, **parts))
    assert HERE.format(line=LINES + 1) in text and words in text


CLASS = """
class Scores(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.query, self.norm = torch.nn.Linear(size, size), torch.nn.LayerNorm(size)
        self.heads = torch.nn.ModuleList([torch.nn.Linear(size, 2), torch.nn.Linear(size, 2)])

    def forward(self, x):
        x = self.norm(self.query(x))
        return torch.cat([head(x) for head in self.heads], -1)
"""


def with_layers(folder: Path, layers: str) -> Course:
    """A course whose answer is a class, with this value of `layers=`."""
    course = made(folder)
    text = START + (
        '@exercise("sum.value", "Scores(size)(x[n, size])", hints=("one", "two", "three"), '
        f"layers={layers}){CLASS}"
    )
    (folder / "solutions" / "exercises" / "00_small.py").write_text(text, encoding="utf-8")
    return course


@pytest.mark.parametrize(
    "layers, words",
    [
        ('["querry"]', ["names 'querry'", "has 'heads.0', 'heads.1', 'query'", "mean 'query'?"]),
        ('("query", "norm")', ["names 'norm', but the answer that its calls build has no `nn.L"]),
        ('["heads"]', ["names 'heads'"]),
        ('["query.weight"]', ["names 'query.weight'", "Did you mean 'query'?"]),
    ],
)
def test_layers_that_the_answer_does_not_have_are_said(tmp_path, layers, words):
    text = said(with_layers(tmp_path, layers))
    assert HERE.format(line=LINES + 1) in text
    for word in words:
        assert word in text


def test_layers_of_an_answer_that_is_no_class_are_said(tmp_path):
    text = said(made(tmp_path, more=", layers=['a']"))
    assert HERE.format(line=LINES + 1) in text and "names 'a'" in text and "it has none" in text
    with pytest.raises(CourseError, match="layers= are names of attributes"):
        rehearse(made(tmp_path / "text", more=", layers='query'"))


@pytest.mark.parametrize("layers", ['["query"]', '("query", "heads.1")', "()", "None"])
def test_layers_that_the_answer_has_are_not_mentioned(tmp_path, layers):
    rehearse(with_layers(tmp_path, layers))


def test_an_error_that_is_asked_for_is_no_slip(tmp_path):
    body = "return a + sign * b if len(a) == len(b) else int('no number')"
    calls = '"add(a[n], b[n])", "add(a[n], b[m])"'
    wrong = 'add.wrong("cut", "What is too long is cut off.", lambda a, b: (a[:2], b[:2]))\n'
    rehearse(made(tmp_path, wrong, calls=calls, body=body))


def test_all_that_does_not_fit_is_said_at_once(tmp_path):
    lines = "".join(f'add.wrong("slip {i}", "Slip {i}.", lambda a, b: a + b)\n' for i in range(20))
    text = said(made(tmp_path, lines))
    assert text.count("passes the check") == rehearsal.MOST_SAID
    assert text.endswith("and 8 more like these.")


def test_a_file_that_fits_is_tried_again_when_it_changes(tmp_path, monkeypatch):
    course = made(tmp_path)
    rehearse(course)
    monkeypatch.setattr(rehearsal, "_problems", lambda exercises: ["tried"])
    rehearse(course)
    path = tmp_path / "solutions" / "exercises" / "00_small.py"
    path.write_text(path.read_text() + "# more\n")
    assert said(Course(tmp_path, course.settings)) == "tried"


def test_the_build_says_it_in_a_sentence_and_builds_nothing(tmp_path, monkeypatch, capsys):
    made(tmp_path, 'add.wrong("slip", "Something else.", sign=1)\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOGRADER_COURSE", raising=False)
    assert main(["build", "--no-run"]) == 2
    text = capsys.readouterr().err
    assert "'slip' passes the check" in text and "Traceback" not in text
    assert not (tmp_path / "notebooks").exists()


def test_more_slips_of_an_exercise_are_said(tmp_path):
    judge = made(tmp_path / "judge", more=", judge=lambda sight: []")
    assert "the judge <lambda> has no name of its own" in said(judge)
    no_gradients = {"calls": '"add(a[n].long(), b[n].long())"', "more": ", gradients=True"}
    assert "nothing that it is given has any" in said(made(tmp_path / "grads", **no_gradients))
    clash = made(tmp_path / "clash", 'add.wrong("slip", "Something.", b=3)\n')
    assert "'slip' cannot be called as the answer can: add() got multiple" in said(clash)


JUDGE = """\
from autograder import Finding
from autograder.judging.compare import compare


def close(sight, *, slack):
    for got, right in zip(sight.outcomes, sight.expected, strict=True):
        if got.error:
            return compare(sight)
        far = (got.value - right.value).abs().max()
        if not float(far) <= slack:
            return [Finding("far", "wrong", "It is far off.")]
    return []
"""
WRONG = (
    'add.wrong("difference", "b is taken off.", sign=-1)\n'
    'add.wrong("nothing", "Nothing comes back.", lambda a, b: None)\n'
)


def with_judge(folder: Path, judge: str = JUDGE, given: str = "slack=0.1") -> Course:
    made(folder, WRONG, more=f", judge=partial(close, {given})")
    path = folder / "solutions" / "exercises" / "00_small.py"
    text = path.read_text(encoding="utf-8")
    start = "from functools import partial\nfrom .judges.near import close\n"
    path.write_text(start + text, encoding="utf-8")
    (path.parent / "judges").mkdir()
    (path.parent / "judges" / "near.py").write_text(judge, encoding="utf-8")
    return Course.at(folder)


def test_a_judge_of_its_own_without_slips_is_not_mentioned(tmp_path):
    """Also where a wrong program gives what the judge cannot read."""
    rehearse(with_judge(tmp_path))


@pytest.mark.parametrize(
    "was, becomes, place, words",
    [
        ("slack=0.1", "slak=0.1", "00_small.py:7: ", "unexpected keyword argument 'slak'"),
        (".abs()", ".abbs()", "judges/near.py:9: ", "AttributeError: 'Tensor' object has no"),
        ("strict=True", "strict=1 / 0", "judges/near.py:6: ", "ZeroDivisionError"),
        ('[Finding("far"', '[Findin("far"', "judges/near.py:11: ", "name 'Findin' is not defined"),
        ('"wrong", ', '"wrong", chek=1, message=', "judges/near.py:11: ", "argument 'chek'"),
    ],
)
def test_a_slip_in_a_judge_of_its_own_is_said_with_its_line(tmp_path, was, becomes, place, words):
    assert was in JUDGE + "slack=0.1"
    given = "slack=0.1".replace(was, becomes)
    text = said(with_judge(tmp_path, JUDGE.replace(was, becomes), given))
    assert place in text and "the judge 'close' of 'sum.value' stops" in text and words in text
    assert "fails its own check" not in text
