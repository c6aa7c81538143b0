"""What is said of a comment: the line, the shape in the student's own words, and no more."""

import pytest

from autograder.shapes import check_source, plan

CALL = "f(x[batch_size, seq_len, hidden])"


def said(*lines, call=CALL, **more):
    source = "def f(x):\n" + "".join(f"    {line}\n" for line in lines)
    return check_source(source, plan(call), **more)


def test_a_false_comment_is_answered_in_the_words_of_the_student():
    (verdict,) = said("y = x.transpose(1, 2)  # [batch, seq, hidden]", "return y")
    assert verdict.message == (
        "Line 2: `y` is [batch, hidden, seq]; your comment says [batch, seq, hidden]."
    )
    assert verdict.verdict == "false" and verdict.deducts and verdict.confidence == "high"


@pytest.mark.parametrize(
    "code, shape",
    [
        ("x.flatten(0, 1)", "[batch_size * seq_len, hidden]"),
        ("x[:, 1:]", "[batch_size, seq_len - 1, hidden]"),
        ("torch.cat([x, x], -1)", "[batch_size, seq_len, 2 * hidden]"),
        ("x.sum(1, keepdim=True)", "[batch_size, 1, hidden]"),
        ("x.view(-1)[:5].view(5, 1)", "[5, 1]"),
    ],
)
def test_a_missing_comment_is_proposed_and_the_proposal_is_true(code, shape):
    (verdict,) = said(f"return {code}")
    assert (verdict.verdict, verdict.proposal) == ("missing", shape)
    assert [v.verdict for v in said(f"return {code}  # {shape}")] in (["true"], ["cannot tell"])


def test_lines_that_the_handout_gave_are_nobodys_mistake():
    line = "y = x * 2"
    assert said(line, "return y", starter=f"    {line}\n") == []


def test_a_row_of_the_handout_about_the_result_is_nobodys_mistake():
    row = "# output: [batch, hidden, seq]"
    (false,) = said(row, "return x * 2")
    assert (false.line, false.verdict) == (2, "false") and "your comment" in false.message
    assert "false" not in [v.verdict for v in said(row, "return x * 2", starter=f"    {row}\n")]


def test_no_size_of_a_run_is_in_a_message():
    for verdict in said("y = x.flatten()[3:]  # [batch]", "return y * 2"):
        assert not any(digit in verdict.message.split(":", 1)[1] for digit in "0456789")


def test_a_name_in_a_message_is_proven_or_else_the_size_is_shown():
    found = said(
        "b, t, h = x.shape",
        "q = x[:, :, :4]  # [b, t, width]",
        "y = q.mT  # [b, t, t]",
    )
    (false,) = [v for v in found if v.verdict == "false"]
    assert false.message == "Line 4: `y` is [b, 4, t]; your comment says [b, t, t]."


def test_a_line_that_never_ran_costs_nothing():
    (verdict,) = said("if x is None:", "    x = x.T  # [a, b]", "return x")
    assert verdict.verdict == "cannot tell" and not verdict.deducts
