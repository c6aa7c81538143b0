"""Whole numbers are not compared, and rows that are joined in order are not what is wrong."""

import pytest

from tests.tracing.helper import told


def said(task: str, source: str):
    return next(f for f in told(task, source.lstrip()) if f.fails)


ROUND = """
def prefix_matching(probs, input_ids):
    before = torch.roll(input_ids, 1, -1)
    hit = (input_ids.unsqueeze(2) == before.unsqueeze(1)).tril()
    got = (probs * hit.unsqueeze(1)).sum(-1)
    return got.transpose(1, 2)[hit.any(2)].mean(0)
"""
MEAN = """
def prefix_matching(probs, input_ids):
    n = input_ids.shape[1]
    hit = torch.zeros(len(input_ids), n, n, dtype=torch.bool)
    hit[:, :, 1:] = input_ids[:, :, None] == input_ids[:, None, :-1]
    hit = hit.tril()
    got = (probs * hit[:, None].float()).mean(-1)
    return got.transpose(1, 2)[hit.any(2)].mean(0)
"""


def test_a_product_with_truth_values_that_nobody_compared_is_not_the_first_wrong_line():
    """The words name `torch.roll`, which stands on one line."""
    assert said("causal.induction", ROUND).where.first_wrong == 2


def test_where_the_truth_values_are_the_answers_own_the_line_is_told():
    assert said("causal.induction", MEAN).where.first_wrong == 6


JOINED = """
def linear_backward(grad_y, x, weight):
    rows = grad_y{grads}.reshape(-1, grad_y.shape[-1])
    ins = x{inputs}.reshape(-1, x.shape[-1])
    return grad_y @ weight, rows.T @ ins, rows{last}
"""


@pytest.mark.parametrize(
    "grads, inputs, line", [("", ".transpose(0, 1)", 3), (".transpose(0, 1)", "", 2)]
)
@pytest.mark.parametrize("last", [".sum(0)", ".mean(0)", "[:13].sum(0)"])
def test_of_two_tensors_the_one_whose_rows_are_moved_is_told(grads, inputs, line, last):
    source = JOINED.format(grads=grads, inputs=inputs, last=last)
    where = said("backward.linear", source).where
    assert where is None or where.first_wrong in (line, 4)
