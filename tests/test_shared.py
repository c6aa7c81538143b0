"""What is saved changes no mark: one child for several questions, answers that were seen before."""

import pytest

from autograder.course.course import Course
from autograder.grading.grade import Grader
from autograder.intake.read import read
from autograder.sandbox import Sandbox, strongest
from tests.conftest import ROOT
from tests.forms import first_of, share
from tests.test_grade import HOMEWORK, replaced

# What the first answer of a notebook may do, to itself and to those that come behind it.
FIRST = {
    "nothing": "",
    "leaves a file": "open('left', 'w').write('x')",
    "leaves a process": "import os, time\nif not os.fork():\n    time.sleep(100)",
    "ends": "import os\nos._exit(0)",
    "kills its parent": "import os\nos.kill(os.getppid(), 9)",
    "stops its parent": "import os\nos.kill(os.getppid(), 19)",
    "switches torch": "import torch\ntorch.set_default_dtype(torch.float64)\ntorch.relu = None",
    "answers itself": "import sandbox_branch\nsandbox_branch.join = lambda: None",
}


HARMLESS = ("nothing", "leaves a file", "leaves a process")


@pytest.fixture
def alone(monkeypatch):
    """Has every question asked in a child of its own."""
    monkeypatch.setattr(Sandbox, "branches", property(lambda self: False))


def report(path, seed=11):
    with Grader(strongest(), course=Course.at(ROOT)) as one:
        return one.grade_submission(read(path, one.lessons), seed=seed)


def same(one, other) -> bool:
    return (one.score, one.results) == (other.score, other.results)


@pytest.mark.parametrize("what", share(FIRST, 3, touching=lambda w: w in HARMLESS))
def test_what_an_answer_does_costs_no_later_one(hand_in, model, what):
    first = f"{FIRST[what]}\n{model['self_attention']}"
    found = report(hand_in(HOMEWORK, {**model, "self_attention": first}))
    for task in ("multi_head.scores", "multi_head.mask", "multi_head.output"):
        assert found.result(task).passed, task


@pytest.mark.parametrize("what", first_of("ends", "nothing", "leaves a file", "switches torch"))
def test_one_child_for_all_gives_the_report_of_one_for_each(hand_in, model, what, monkeypatch):
    wrong = replaced(model, "multi_head", "dim=-1", "dim=1")["multi_head"]
    first = f"{FIRST[what]}\n{model['self_attention']}"
    path = hand_in(HOMEWORK, {**model, "self_attention": first, "multi_head": wrong})
    together = report(path)
    monkeypatch.setattr(Sandbox, "branches", property(lambda self: False))
    assert same(together, report(path))


def test_an_answer_cannot_be_right_by_what_another_left(hand_in, model, alone, monkeypatch):
    """The second class works only where the first has left a file, or a name in a module."""
    leaves = "import builtins\nbuiltins.left = True\nopen('left', 'w').close()\n"
    needs = "import builtins, os\nassert os.path.exists('left') or hasattr(builtins, 'left')\n"
    answers = {
        "self_attention": leaves + model["self_attention"],
        "multi_head": needs + model["multi_head"],
    }
    path = hand_in(HOMEWORK, {**model, **answers})
    by_itself = report(path)
    monkeypatch.undo()
    together = report(path)
    assert same(together, by_itself)
    assert not together.result("multi_head.output").passed


def test_a_question_is_right_or_wrong_whatever_was_graded_before(hand_in, model):
    wrong = {**model, **replaced(model, "self_attention", "dim=-1", "dim=1")}
    texts = {"right": model, "wrong": wrong, "blank": {}}
    paths = {name: hand_in(HOMEWORK, text, f"{name}.ipynb") for name, text in texts.items()}
    fresh = {name: report(path) for name, path in paths.items()}
    assert fresh["wrong"].score < fresh["right"].score
    with Grader(strongest(), course=Course.at(ROOT)) as one:
        for name in ("wrong", "right", "blank", "right", "wrong"):
            again = one.grade_submission(read(paths[name], one.lessons), seed=11)
            assert same(again, fresh[name]), name


def test_an_equal_answer_behind_other_cells_is_looked_at_itself(hand_in, model, tmp_path):
    """Word for word the same answer, once with a cell before it that breaks it."""
    import json

    path = hand_in(HOMEWORK, model)
    notebook = json.loads(path.read_text())
    before = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cell = {**before, "id": "mine", "source": "import torch\ntorch.softmax = torch.relu = None\n"
            "torch.Tensor.softmax = torch.nn.functional.softmax = None"}  # fmt: skip
    notebook["cells"].insert(1, cell)
    broken = tmp_path / "broken.ipynb"
    broken.write_text(json.dumps(notebook))
    with Grader(strongest(), course=Course.at(ROOT)) as one:
        for _ in range(2):
            assert one.grade_submission(read(path, one.lessons), seed=11).score == 10
            assert one.grade_submission(read(broken, one.lessons), seed=11).score < 10


def test_shapes_are_seen_once_of_equal_code_and_judged_for_each_comment(
    hand_in, model, monkeypatch
):
    """The same code by four students: with other words, with false comments and with none."""
    from autograder.grading import shape_comments

    lines = model["self_attention"].splitlines()
    bare = [line.partition("  # [")[0] for line in lines]
    assert bare != lines
    texts = {
        "right": lines,
        "other words": ["# I did this alone.", *lines],
        "none": bare,
        "false": [
            *lines[:-4],
            lines[-4].replace("seq_len, hidden", "hidden, seq_len"),
            *lines[-3:],
        ],
    }
    paths = {
        name: hand_in(HOMEWORK, {**model, "self_attention": "\n".join(text)}, f"{name}.ipynb")
        for name, text in texts.items()
    }
    fresh = {name: report(path) for name, path in paths.items()}
    assert fresh["none"].score < fresh["right"].score > fresh["false"].score
    asked = []
    inner = shape_comments._recording
    monkeypatch.setattr(shape_comments, "_recording", lambda *a: asked.append(a) or inner(*a))
    with Grader(strongest(), course=Course.at(ROOT)) as one:
        for name in (*texts, *texts):
            again = one.grade_submission(read(paths[name], one.lessons), seed=11)
            assert same(again, fresh[name]), name
    own = [box for box, _ in asked if isinstance(box, Sandbox)]
    # Each class once for all, and what costs once more, in a child of its own: it is remembered.
    assert len(asked) - len(own) == 2 and len(own) == 2


def test_an_answer_that_the_machine_failed_is_not_remembered(hand_in, model, monkeypatch):
    path = hand_in(HOMEWORK, model)
    with Grader(strongest(), course=Course.at(ROOT)) as one:
        submission = read(path, one.lessons)
        with monkeypatch.context() as patch:
            patch.setattr("autograder.grading.observe.LOAD_SECONDS", 0.0)
            assert one.grade_submission(submission, seed=11).score < 10
        assert one.grade_submission(submission, seed=11).score == 10


def test_everybody_of_a_run_is_asked_the_same_and_nobody_can_foresee_it(hand_in, model):
    with Grader(strongest(), course=Course.at(ROOT)) as one:
        exercise = one.course.exercise("self_attention.forward")
        first, again = one._asked(exercise, 11), one._asked(exercise, 11)
        assert first.draw() is again.draw() and first.to(first.draw()) is again.to(again.draw())
        other = one._asked(exercise, 12)
        assert other.draw()[0].says != first.draw()[0].says or any(
            a.shape != b.shape or not bool((a == b).all())
            for a, b in zip(other.draw()[0].args, first.draw()[0].args, strict=True)
        )
