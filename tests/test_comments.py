"""Shape comments in marks and in the notebook: what they cost, and what is said."""

import pytest

from tests.conftest import ROOT

HOMEWORK = "05_homework"


def comments(report, exercise):
    found = [f for r in report.results if r.task.startswith(exercise) for f in r.findings]
    return [f for f in found if f.check == "shape_comments"]


@pytest.fixture
def graded(grader, hand_in, model):
    def grade(cell, old, new):
        assert old in model[cell]
        return grader.grade(hand_in(HOMEWORK, {**model, cell: model[cell].replace(old, new)}))

    return grade


def test_true_comments_cost_nothing_and_are_all_listed(grader, hand_in, model):
    report = grader.grade(hand_in(HOMEWORK, model))
    assert report.score == report.max_score
    listed = comments(report, "self_attention")
    assert len(listed) == 4 and {f.verdict for f in listed} == {"true"}


def test_a_false_comment_costs_one_point_and_is_named(graded):
    old = "# [batch_size, seq_len, seq_len]\n        return"
    report = graded("self_attention", old, "# [batch_size, seq_len, hidden]\n        return")
    assert report.score == 9
    (false,) = [f for f in comments(report, "self_attention") if f.verdict == "false"]
    assert "`probs` is [batch_size, seq_len, seq_len]" in false.message
    assert "[batch_size, seq_len, hidden]" in false.message
    assert false.statement.startswith("probs = ")


def test_what_it_costs_is_said_beside_the_task_with_the_comments(graded):
    """What is wrong with a comment stands with the comment, and once."""
    old = "# [batch_size, seq_len, seq_len]\n        return"
    report = graded("self_attention", old, "# [batch_size, seq_len, hidden]\n        return")
    init, forward = (report.result(f"self_attention.{t}") for t in ("init", "forward"))
    assert not init.findings and init.points == 1
    (false,) = [f for f in forward.findings if f.verdict == "false"]
    (taken,) = forward.taken
    assert taken.message == f"1 point off for shape comments: line {false.line}."
    assert taken.line == false.line and forward.points == 2


def test_the_comments_stand_with_a_task_that_has_no_points_left(graded):
    old = "# [batch_size, seq_len, seq_len]\n        return"
    new = "# [batch_size, seq_len, hidden]\n        return -"
    report = graded("self_attention", old, new)
    init, forward = (report.result(f"self_attention.{t}") for t in ("init", "forward"))
    assert "false" in [f.verdict for f in forward.findings]
    assert [f.verdict for f in init.findings] == ["deduction"]
    assert (init.points, forward.points) == (0, 0)


def test_one_missing_comment_is_named_and_costs_nothing(graded):
    report = graded(
        "self_attention", "q = self.q(x)  # [batch_size, seq_len, hidden]", "q = self.q(x)"
    )
    assert report.score == 10
    unsure = [f for f in comments(report, "self_attention") if f.verdict == "cannot tell"]
    assert [f.statement for f in unsure] == ["q = self.q(x)"]
    assert "not in a comment" in unsure[0].message


def test_comments_that_are_missing_from_most_lines_cost_one_point(grader, hand_in, model):
    lines = model["self_attention"].splitlines()
    first = next(i for i, line in enumerate(lines) if "  # [" in line)
    kept = [s if i <= first else s.partition("  # [")[0] for i, s in enumerate(lines)]
    report = grader.grade(hand_in(HOMEWORK, {**model, "self_attention": "\n".join(kept)}))
    assert report.score == 9
    missing = [f for f in comments(report, "self_attention") if f.verdict == "missing"]
    assert len(missing) == 3


def test_a_comment_that_once_hung_the_grader_costs_nothing(graded):
    report = graded(
        "self_attention",
        "q = self.q(x)  # [batch_size, seq_len, hidden]",
        "# k is the projected_input_of_the_attention + bias\n"
        "        q = self.q(x)  # [batch_size, seq_len, hidden]",
    )
    assert report.score == 10


def test_several_wrong_comments_cost_one_point_a_class(grader, hand_in, model):
    stripped = {
        cell: "\n".join(line.partition("  # [")[0] for line in model[cell].splitlines())
        for cell in ("self_attention", "multi_head")
    }
    report = grader.grade(hand_in(HOMEWORK, {**model, **stripped}))
    assert report.score == 8


def test_a_slip_that_cannot_be_decided_costs_nothing(graded):
    report = graded(
        "self_attention",
        "q = self.q(x)  # [batch_size, seq_len, hidden]",
        "q = self.q(x)  # [3, 5, 9]",
    )
    assert report.score == 10
    assert "cannot tell" in {f.verdict for f in comments(report, "self_attention")}


def test_a_student_sees_the_same_verdicts(model, capsys):
    from autograder.course.course import Course
    from autograder.grading.shape_comments import check_comments

    task = "self_attention.shape_comments"
    source = model["self_attention"]
    findings, _ = check_comments(Course.at(ROOT), task, lambda name: source)
    assert {f.verdict for f in findings} == {"true"}
    broken = source.replace("[batch_size, seq_len, seq_len]", "[batch_size, hidden, seq_len]")
    findings, _ = check_comments(Course.at(ROOT), task, lambda name: broken)
    assert "false" in {f.verdict for f in findings}


def test_the_library_passes_its_own_checker():
    from autograder.shapes import check_source, plan

    source = (ROOT / "transformer_lm" / "modeling_attention.py").read_text()
    calls = (
        "simple_attention(x[seq_len, hidden])",
        "ParameterAttention(input_size, hidden)(x[seq_len, input_size])",
        "SelfAttention(input_size, hidden)(x[batch_size, seq_len, input_size])",
        "CausalSelfAttention(input_size, hidden, context_length)"
        "(x[batch_size, seq_len, input_size])",
        "MultiHeadSelfAttention(input_size, hidden, num_heads, causal=True)"
        "(x[batch_size, seq_len, input_size], return_attention=True)",
    )
    verdicts = [v for call in calls for v in check_source(source, plan(call))]
    judged = [v for v in verdicts if v.verdict != "cannot tell"]
    assert len(judged) >= 25
    assert {v.verdict for v in judged} == {"true"}


EINSUM = """import torch
from torch import nn


class Scores(nn.Module):
    def forward(self, q, k):
        return torch.einsum("bqd,bkd->bqk", q, k)  # {comment}
"""


@pytest.mark.parametrize(
    ("comment", "verdict"),
    [
        ("[b, q, d] @ [b, d, k] -> [b, q, k]", "true"),
        ("[b, q, d], [b, k, d] -> [b, q, k]", "true"),
        ("[b, q, d] @ [b, d, k] -> [b, k, q]", "false"),
        ("[b, q, k] @ [b, d, k] -> [b, q, k]", "false"),
    ],
)
def test_an_einsum_may_be_described_as_the_product_that_it_stands_for(comment, verdict):
    from autograder.shapes import check_source, plan

    asked = plan("Scores()(q[b, q, d], k[b, k, d])")
    found = check_source(EINSUM.format(comment=comment), asked)
    assert [v.verdict for v in found] == [verdict]
