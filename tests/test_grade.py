"""What a notebook earns, from the file to the report."""

import os
import signal

import pytest

from autograder.course.course import Course
from autograder.grading.grade import model_answers
from autograder.sandbox.child import Child
from tests.conftest import ROOT
from tests.forms import first_of, share

LESSONS = list(Course.at(ROOT).lessons)
HOMEWORK = "05_homework"
SOME = share(LESSONS, 4, touching=lambda lesson: lesson == HOMEWORK)


@pytest.mark.parametrize("lesson", SOME)
def test_a_blank_notebook_earns_nothing(grader, hand_in, lesson):
    report = grader.grade(hand_in(lesson, {}))
    assert report.error is None
    assert report.score == 0
    assert not any(r.passed for r in report.results)


@pytest.mark.parametrize("lesson", SOME)
def test_the_solution_earns_full_marks(grader, hand_in, lesson):
    report = grader.grade(hand_in(lesson, model_answers(Course.at(ROOT), lesson)))
    wrong = [(r.task, r.findings) for r in report.results if not (r.passed or r.needs_person)]
    assert wrong == []
    assert report.score == report.max_score > 0
    assert report.repairs == ()


@pytest.mark.parametrize("lesson", share(LESSONS, 4, touching=lambda lesson: ""))
def test_the_executed_solution_can_be_handed_in(grader, lesson):
    report = grader.grade(ROOT / "solutions" / f"{lesson}.ipynb")
    assert report.lesson == lesson
    assert report.score == report.max_score


def graded(grader, hand_in, model, **changed):
    return grader.grade(hand_in(HOMEWORK, {**model, **changed}))


def replaced(model, cell, old, new):
    assert old in model[cell]
    return {cell: model[cell].replace(old, new)}


def test_an_answer_right_but_for_the_scale_loses_one_point(grader, hand_in, model):
    for cell in ("self_attention", "multi_head"):
        report = graded(grader, hand_in, model, **replaced(model, cell, " / self.scale", ""))
        assert report.score == 9
        assert any("not scaled" in f.message for r in report.results for f in r.findings)


def test_wrong_values_leave_none_of_forwards_points(grader, hand_in, model):
    change = replaced(model, "self_attention", "dim=-1", "dim=1")
    report = graded(grader, hand_in, model, **change)
    assert report.result("self_attention.init").points == 1
    forward = report.result("self_attention.forward")
    assert (forward.points, forward.passed) == (0, False)
    assert forward.findings[0].check == "softmax.dim"


def test_a_missing_mask_costs_its_point_and_no_other(grader, hand_in, model):
    change = replaced(model, "multi_head", "if self.causal:", "if False:")
    report = graded(grader, hand_in, model, **change)
    points = {r.task: r.points for r in report.results if r.task.startswith("multi_head")}
    assert points == {"multi_head.scores": 3, "multi_head.mask": 0, "multi_head.output": 2}


@pytest.mark.parametrize(
    ("cell", "scale"), [("self_attention", "hidden**0.5"), ("multi_head", "self.head_size**0.5")]
)
def test_any_wrong_scale_costs_one_point(grader, hand_in, model, cell, scale):
    change = replaced(model, cell, f"self.scale = {scale}", "self.scale = input_size / 2")
    report = graded(grader, hand_in, model, **change)
    assert report.score == 9
    assert [f.check for f in deductions(report)] == ["scale.another factor"]


def deductions(report) -> list:
    return [f for r in report.results for f in r.findings if f.verdict == "deduction"]


def test_a_layer_under_another_name_is_told_so_and_costs_one_point(grader, hand_in, model):
    change = replaced(model, "multi_head", "self.mix", "self.out_proj")
    report = graded(grader, hand_in, model, **change)
    (taken,) = deductions(report)
    assert report.score == 9
    assert (taken.check, taken.points) == ("layer.name", -1)
    assert "`out_proj`; the exercise asks for `mix`" in taken.message
    assert all(r.passed for r in report.results if not r.needs_person)


def test_the_layers_names_are_the_point_for_the_layers(grader, hand_in, model):
    change = replaced(model, "self_attention", "self.v", "self.value")
    report = graded(grader, hand_in, model, **change)
    init, forward = (report.result(f"self_attention.{t}") for t in ("init", "forward"))
    assert (init.points, forward.points, report.score) == (0, 3, 9)
    assert "called `value`; the exercise asks for `v`" in init.findings[0].message


def test_a_wrong_width_is_charged_once(grader, hand_in, model):
    change = replaced(
        model,
        "self_attention",
        "nn.Linear(input_size, hidden)",
        "nn.Linear(input_size, 2 * hidden)",
    )
    report = graded(grader, hand_in, model, **change)
    assert report.score == 9
    assert report.result("self_attention.init").findings[0].check == "wrong width"


def test_an_error_at_the_end_leaves_the_points_of_the_steps_before(grader, hand_in, model):
    old = "att.transpose(1, 2).reshape(bs, seq, self.num_heads * self.head_size)"
    change = replaced(model, "multi_head", old, "att.transpose(1, 2).view(bs, seq, -1)")
    report = graded(grader, hand_in, model, **change)
    points = {r.task: r.points for r in report.results if r.task.startswith("multi_head")}
    assert points == {"multi_head.scores": 3, "multi_head.mask": 1, "multi_head.output": 0}


def test_pep8_costs_one_point_a_class_and_says_where(grader, hand_in, model):
    change = replaced(model, "self_attention", "scores = q @", "scores=q@")
    report = graded(grader, hand_in, model, **change)
    taken = [f for r in report.results for f in r.findings if f.verdict == "deduction"]
    assert report.score == 9
    assert [f.check for f in taken] == ["pep8"]
    assert "scores=q@" in taken[0].statement


THREE = """class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def forward(self, x):
        scores = self.q(x) @ self.k(x).mT  # [batch_size, seq_len, seq_len]
        probs = F.softmax(scores / self.q.out_features**0.5, -1)  # [batch_size, seq_len, seq_len]
        return probs @ self.v(x)  # [batch_size, seq_len, hidden]
"""


def test_three_lines_earn_a_point_more(grader, hand_in, model):
    report = graded(grader, hand_in, model, self_attention=THREE)
    assert report.result("self_attention.forward").points == 4
    assert report.score == report.max_score + 1


def test_pytorchs_own_attention_earns_no_bonus(grader, hand_in, model):
    start = THREE.index("        scores")
    text = THREE[:start] + (
        "        q, k, v = self.q(x), self.k(x), self.v(x)  # [batch_size, seq_len, hidden]\n"
        "        return F.scaled_dot_product_attention(q, k, v)  # [batch_size, seq_len, hidden]\n"
    )
    report = graded(grader, hand_in, model, self_attention=text)
    assert report.result("self_attention.forward").points == 3


@pytest.fixture
def impatient(monkeypatch):
    """Waits less for cells that never end; what they wait for a processor is added as always."""
    monkeypatch.setattr("autograder.grading.observe.LOAD_SECONDS", 1.5)


@pytest.mark.parametrize(
    ("before", "score"),
    share(
        [
            ("print('hello')", 10),
            ("import warnings\nwarnings.warn('careful')", 10),
            ("import sys\nprint('a note', file=sys.stderr)", 10),
            ("%matplotlib inline\n!ls", 10),
            ("x = 1 / 0", 6),
            ("import os\nos._exit(0)", 6),
            ("raise SystemExit", 6),
            ("while True:\n    pass", 6),
            ("def broken(:", 6),
            ("import torch\ntorch.allclose = torch.equal = lambda *a, **k: True", 10),
        ],
        2,
    ),
)
@pytest.mark.usefixtures("impatient")
def test_what_stands_before_an_answer_costs_that_question_at_most(
    grader, hand_in, model, before, score
):
    change = {"self_attention": before + "\n" + model["self_attention"]}
    changed = {**model, **change}
    report = grader.grade(hand_in(HOMEWORK, changed))
    style = sum(f.check == "pep8" for r in report.results for f in r.findings)
    assert report.score + style == score
    if score < 10:
        assert report.result("self_attention.forward").findings[0].message


def test_a_warning_at_call_time_costs_nothing(grader, hand_in, model):
    noisy = "        import warnings\n        warnings.warn('slow')\n        q = self.q(x)"
    change = replaced(model, "self_attention", "        q = self.q(x)", noisy)
    assert graded(grader, hand_in, model, **change).score == 10


def test_a_class_of_another_name_is_told_so(grader, hand_in, model):
    change = replaced(model, "self_attention", "class SelfAttention", "class SelfAtention")
    report = graded(grader, hand_in, model, **change)
    message = report.result("self_attention.init").findings[0].message
    assert "SelfAttention" in message and "SelfAtention" in message
    assert report.score == 6


def test_a_wrong_signature_is_told_so(grader, hand_in, model):
    change = replaced(model, "self_attention", "(self, input_size, hidden)", "(self, input_size)")
    report = graded(grader, hand_in, model, **change)
    assert report.result("self_attention.forward").findings[0].check == "signature"


def test_a_helper_defined_in_an_added_cell_counts(grader, hand_in, model, tmp_path):
    import nbformat

    answer = model["self_attention"].replace("F.softmax(scores, dim=-1)", "my_softmax(scores)")
    path = hand_in(HOMEWORK, {**model, "self_attention": answer})
    notebook = nbformat.read(path, as_version=4)
    place = next(i for i, c in enumerate(notebook.cells) if c.id == "self_attention")
    helper = "def my_softmax(x):\n    return torch.softmax(x, dim=-1)"
    notebook.cells.insert(place, nbformat.v4.new_code_cell(helper))
    notebook.cells.insert(place, nbformat.v4.new_code_cell("1 / 0"))
    nbformat.write(notebook, path)
    assert grader.grade(path).score == 10


def test_a_helper_defined_in_another_answer_counts(grader, hand_in, model):
    helper = "\n\ndef my_softmax(x):\n    return torch.softmax(x, dim=-1)"
    answer = model["multi_head"].replace("F.softmax(scores, dim=-1)", "my_softmax(scores)")
    assert answer != model["multi_head"]
    change = {"self_attention": model["self_attention"] + helper, "multi_head": answer}
    assert graded(grader, hand_in, model, **change).score == 10


def test_both_classes_in_one_cell_count(grader, hand_in, model):
    both = model["self_attention"] + "\n\n\n" + model["multi_head"]
    blank = Course.at(ROOT).lessons[HOMEWORK].cell("multi_head").source
    report = graded(grader, hand_in, model, self_attention=both, multi_head=blank)
    assert report.score == 10


def test_gradients_switched_off_in_a_cell_cost_nothing(grader, hand_in, model):
    answer = "torch.set_grad_enabled(False)\n\n\n" + model["self_attention"]
    assert graded(grader, hand_in, model, self_attention=answer).score == 10


@pytest.mark.parametrize(
    ("cell", "old", "new"),
    first_of(("self_attention", "dim=-1", "dim=1"), ("multi_head", "transpose(1, 2)", "mT")),
)
def test_the_same_seed_gives_the_same_report(hand_in, model, cell, old, new):
    from autograder.grading.grade import Grader

    path = hand_in(HOMEWORK, {**model, **replaced(model, cell, old, new)})
    reports = []
    for _ in range(2):
        with Grader(private=7, course=Course.at(ROOT)) as one:
            reports.append(one.grade(path).to_json())
    assert reports[0] == reports[1]


def test_no_message_shows_an_expected_value_or_a_traceback(grader, hand_in, model):
    change = replaced(model, "multi_head", "dim=-1", "dim=-2")
    for result in graded(grader, hand_in, model, **change).results:
        for finding in result.findings:
            assert "tensor(" not in finding.message
            assert "Traceback" not in finding.message


def with_cells(path, *cells):
    """Adds code cells to a notebook file: (id of the cell to stand behind, source)."""
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    for behind, source in cells:
        place = next(i for i, c in enumerate(notebook.cells) if c.id == behind)
        notebook.cells.insert(place + 1, nbformat.v4.new_code_cell(source))
    nbformat.write(notebook, path)
    return path


@pytest.mark.usefixtures("impatient")
@pytest.mark.usefixtures("impatient")
def test_a_cell_of_the_students_own_that_never_ends_costs_nothing(grader, hand_in, model):
    path = with_cells(hand_in(HOMEWORK, model), ("check-self_attention-init", "while True: pass"))
    assert grader.grade(path).score == 10


def test_a_helper_behind_the_answer_counts(grader, hand_in, model):
    answer = model["self_attention"].replace("F.softmax(scores, dim=-1)", "my_softmax(scores)")
    path = hand_in(HOMEWORK, {**model, "self_attention": answer})
    helper = "def my_softmax(x):\n    return torch.softmax(x, dim=-1)"
    assert grader.grade(with_cells(path, ("self_attention", helper))).score == 10


def test_a_cell_behind_the_answer_that_fails_costs_nothing(grader, hand_in, model):
    path = with_cells(hand_in(HOMEWORK, model), ("self_attention", "print(undefined_name)"))
    assert grader.grade(path).score == 10


def test_a_cell_that_awaits_is_run(grader, hand_in, model):
    text = "import asyncio\nawait asyncio.sleep(0)\n" + model["self_attention"]
    assert graded(grader, hand_in, model, self_attention=text).score == 10


def test_a_fault_of_ours_is_told_and_stops_nobody_else(grader, hand_in, model, monkeypatch):
    def fails(*_):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("autograder.grading.marking.Marking.results", fails)
        report = graded(grader, hand_in, model)
    assert report.score == 0
    assert "a person has to look" in report.error
    assert graded(grader, hand_in, model).score == 10


@pytest.mark.parametrize("during", ["load", "call", "shapes"])
def test_a_process_that_the_machine_ends_costs_nothing(grader, hand_in, model, monkeypatch, during):
    """As the kernel does when memory runs short: the first child of each question is killed."""
    children, killed, whole = [], set(), Child.request

    def request(child, header, tensors, **how):
        if child not in children:
            children.append(child)
        if header["op"] == during and len(children) % 2 and child not in killed:
            os.kill(child._pid, signal.SIGKILL)
            killed.add(child)
        return whole(child, header, tensors, **how)

    monkeypatch.setattr(Child, "request", request)
    assert graded(grader, hand_in, model).score == 10
    assert killed
