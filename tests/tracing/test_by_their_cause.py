"""Errors whose text alone does not say it: axes that a product takes, layers made of a tensor."""

import pytest

from tests.tracing.helper import told
from tests.tracing.styles import single


def said(task: str, source: str):
    return next(f for f in told(task, source.lstrip()) if f.fails)


@pytest.mark.parametrize(
    "product, words",
    [
        ("torch.dot(inputs, query)", "`dot` takes two vectors of one axis each"),
        ("torch.mv(query, inputs)", "`mv` takes a table of 2 axes and a vector of one"),
        ("torch.mm(inputs, query)", "`mm` takes two tensors of 2 axes each"),
        ("torch.bmm(inputs, query)", "`bmm` takes two tensors of 3 axes each"),
    ],
)
def test_a_product_with_other_axes_than_it_takes_says_which_it_takes(product, words):
    found = said("simple.scores", f"def attention_scores(query, inputs):\n    return {product}\n")
    assert words in found.message


LAYERS = """
table = self.q(x) @ self.k(x).mT / self.hidden ** 0.5
{step}
return shares @ self.v(x)"""


@pytest.mark.parametrize(
    "step, line",
    [
        ("shares = nn.Softmax(table)", 11),
        ("shares = nn.Softmax(dim=-1)(table)\nshares = nn.Dropout(shares)", 12),
        ("shares = nn.ReLU(table)\nshares = shares.softmax(-1)", 11),
        ("act = nn.Softmax(self.q(x) @ self.k(x).mT)\nshares = F.dropout(act, 0.0)", 11),
    ],
)
def test_a_layer_made_of_a_tensor_has_the_line_that_makes_it(step, line):
    found = said("one_head.forward", single(LAYERS.format(step=step), "Attention"))
    assert "makes a layer and applies it to nothing" in found.message
    assert found.where.first_wrong == line


def test_a_layer_made_of_numbers_is_no_layer_made_of_a_tensor():
    step = "n = x.shape[0]\nshares = nn.Softmax(n)"
    found = said("one_head.forward", single(LAYERS.format(step=step), "Attention"))
    assert "applies it to nothing" not in found.message


def test_of_a_result_that_is_no_tensor_no_dice_are_seen():
    source = "def attention_weights(q, k):\n    return nn.Softmax(q @ k.T)\n"
    assert "random" not in said("one_head.scale", source).message


def test_a_product_that_fits_the_other_way_round_needs_no_axes_exchanged():
    source = """
def change_gauge(w_q, b_q, w_k, b_k, r):
    back = torch.inverse(r).T
    return w_q @ r, r @ b_q[None, :], w_k @ back, b_k @ back
"""
    found = said("weights.gauge", source)
    assert "have to be equal" in found.message and "exchanged" not in found.message
