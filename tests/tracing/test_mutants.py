"""One statement of a right program is changed by a machine: the line that is told is that one."""

import ast

import pytest

from tests import forms
from tests.tracing.helper import told
from tests.tracing.mutants import mutants
from tests.tracing.styles import RIGHT, single

CASES = [
    (f"{style}, {number}", line, source)
    for style, right in RIGHT.items()
    for number, (line, source) in enumerate(mutants(ast.unparse(ast.parse(right)) + "\n"))
]


@pytest.mark.parametrize("what, line, source", forms.share(CASES, 20))
def test_a_line_that_is_told_is_the_one_that_was_changed(what, line, source):
    found = next((f for f in told("self_attention.forward", source) if f.fails), None)
    if found is None or found.where is None or "stops with an error" in found.where.how:
        return
    assert found.where.first_wrong == line
    assert found.where.last_right is None or found.where.last_right <= line
    assert "Two things" not in found.message


POWERS = """
def mask_scores(scores):
    ahead = torch.ones_like(scores[0]).tril()
    e = torch.exp(scores - scores.amax(-1, keepdim=True)) * ahead
    return e / {total}
"""
CUT = """
q, k, v = self.q(x), self.k(x), self.v(x)
table = (q @ k.mT / self.hidden ** 0.5)
shares = torch.exp(table - table.max(dim=-1, keepdim=True)[0]).int()
shares = shares / shares.sum(-1, keepdim=True)
return shares @ v"""
RELU = """
def attention_weights(q, k):
    scores = torch.relu(q @ k.T)
    scaled = scores / k.shape[-1] ** 0.5
    e = torch.exp(scaled - scaled.max(dim=-1, keepdim=True)[0])
    return e / e.sum(dim=-1, keepdim=True)
"""
ROOT_OF_ROOT = """
def grad_queries_keys(grad_scores, q, k):
    scale = 1 / math.sqrt(math.sqrt(q.shape[-1]))
    g = grad_scores * scale
    return g @ k, g.transpose(-2, -1) @ q
"""
ALL_HIDDEN = """
def mask_scores(scores):
    n = scores.shape[-1]
    ahead = torch.ones(n, n).bool()
    hidden = scores.masked_fill(ahead, -torch.inf)
    return torch.softmax(hidden, dim=-1)
"""


def said(task: str, source: str):
    return next(f for f in told(task, source.lstrip()) if f.fails)


@pytest.mark.parametrize("total", ["e.sum(0, keepdim=True)", "e.mean(-1, keepdim=True)"])
def test_rows_that_are_shifted_before_a_softmax_are_right(total):
    found = said("masks.minus_infinity", POWERS.format(total=total))
    assert found.where.first_wrong == 4 and "Two things" not in found.message


def test_of_what_an_extreme_is_right_need_not_be_right():
    found = said("one_head.scale", RELU)
    assert found.where.first_wrong == 2 and "`relu`" in found.where.how


def test_numbers_cut_to_whole_ones_are_told_where_they_are_cut():
    found = said("self_attention.forward", single(CUT))
    assert found.where.first_wrong == 12 and "`int`" in found.where.how


def test_one_step_that_makes_all_right_comes_before_several():
    found = said("backward.queries_keys", ROOT_OF_ROOT)
    assert found.where.first_wrong == 2 and "things are wrong" not in found.message


def test_a_mistake_that_gets_its_nan_elsewhere_is_not_named():
    found = said("masks.minus_infinity", ALL_HIDDEN)
    assert found.where.first_wrong == 3 and "0 times infinity" not in found.message
