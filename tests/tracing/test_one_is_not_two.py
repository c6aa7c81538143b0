"""One mistake is told as one, a cause only of the line that its numbers come from, and a line is
called right only where it did something right."""

import warnings

import pytest
import torch

from autograder.course.steps.traces import alike, signature
from autograder.tracing.proof.standing import is_refuted
from tests.tracing.helper import look, told
from tests.tracing.styles import causal


def said(task: str, source: str, seed: int = 0):
    return next(f for f in told(task, source.lstrip(), seed) if f.fails)


def test_the_weights_of_two_softmaxes_are_not_alike():
    """Their means are the same, and so are, nearly, the least and the largest."""
    torch.manual_seed(0)
    one = torch.randn(400, 7, 7, dtype=torch.float64)
    past = one.masked_fill(torch.ones(7, 7).triu(1) > 0, -torch.inf).softmax(-1)
    future = one.masked_fill(torch.ones(7, 7).tril(-1) > 0, -torch.inf).softmax(-1)
    assert not alike(signature(past), signature(future))
    assert alike(signature(past.float()), signature(past.mT))


LATE = {
    "masks.minus_infinity": """
def mask_scores(scores):
    size = scores.shape[-1]
    place = torch.arange(size)
    shares = F.softmax(scores, -1)
    return torch.where(place > place[:, None], -torch.inf, shares)
""",
    "masks.padding": """
def padded_weights(scores, lengths):
    place = torch.arange(scores.shape[2])
    padding = place[None, None] >= lengths[:, None, None]
    shares = scores.softmax(2)
    return shares.masked_fill(padding, -torch.inf)
""",
}


@pytest.mark.parametrize("task", LATE)
def test_minus_infinity_behind_a_softmax_is_one_mistake(task):
    found = said(task, LATE[task])
    assert "things are wrong" not in found.message and "too many" not in found.message
    assert "Nothing is hidden" not in found.message
    assert found.line in (4, 5) and found.where.last_right is None


EARLY = """
def mask_weights(scores):
    seen = scores.tril()
    shares = torch.softmax(seen, 2)
    return shares / torch.sum(shares, 2, keepdim=True)
"""


def test_zeros_in_front_of_a_softmax_are_one_mistake_and_the_softmax_is_there():
    found = said("masks.renormalise", EARLY)
    assert "There is no softmax" not in found.message and "Two things" not in found.message
    assert found.line == 2 and "exp(0) is 1" in found.message


def test_what_is_summed_up_over_the_wrong_axis_was_multiplied_rightly():
    source = """
def attention_scores(query, inputs):
    terms = torch.mul(query.unsqueeze(0), inputs)
    total = torch.sum(terms, 0)
    return total
"""
    found = said("simple.scores", source)
    assert found.line == 3 and "You summed over the tokens" in found.message


def test_a_mask_that_hides_nothing_is_told_and_not_called_right():
    source = """
def padded_weights(scores, lengths):
    place = torch.arange(scores.size(-1))
    far = place >= max(lengths.tolist())
    table = torch.where(far, -torch.inf, scores)
    return torch.softmax(table, -1)
"""
    found = said("masks.padding", source)
    assert found.line == 3 and found.where.last_right is None
    assert found.where.how == "it hides nothing"


def test_axes_moved_as_no_answer_has_them_are_not_called_right_before_an_error():
    source = """
def head_scores(q, k):
    turned = k.permute(0, 2, 3, 1)
    table = q @ turned
    return table * q.shape[-1] ** -0.5
"""
    found = said("heads.scores", source)
    assert found.line == 2 and found.where.last_right is None


def test_keys_in_the_place_of_queries_are_not_blamed_on_the_mask_behind_them():
    source = """
def masked_scores(wide, num_heads):
    n, size = wide.shape[1], wide.shape[2] // 3 // num_heads
    keys, queries = (part.unflatten(2, (num_heads, size)) for part in wide.chunk(3, 2)[:2])
    table = torch.einsum("bqhs,bkhs->bhqk", queries, keys) / math.sqrt(size)
    place = torch.arange(n)
    return table + torch.where(place > place[:, None] + 1, -torch.inf, 0.0)
"""
    found = said("activations.scores", source)
    assert "Line 6: Rows are keys" not in found.message
    assert found.where is None or found.where.last_right != 4


BEHIND = causal("""
table = torch.einsum("bqs,bks->bqk", self.q(x), self.k(x)) * self.q.out_features ** 0.5
later = torch.ones(x.shape[1], x.shape[1]).triu(1) > 0
shares = F.softmax(table.masked_fill(later, -1e9), -1)
return self.noise({mixed})""")


def test_dropout_behind_the_weights_is_told_beside_what_is_wrong():
    found = said(
        "masks.attention", BEHIND.format(mixed="torch.einsum('bqk,bks->bqs', shares, self.v(x))")
    )
    assert "multiplied by the root" in found.message
    assert "And beside that: Dropout acts, in line 13, on what the weights" in found.message
    right = said("masks.attention", BEHIND.format(mixed="shares) @ self.v(x"))
    assert "beside that" not in right.message


def test_a_right_answer_with_a_vmap_is_silent():
    source = """
def batched_attention(q, k, v):
    table = torch.vmap(lambda one, two: one @ two.T)(q, k) / math.sqrt(q.size(2))
    return torch.vmap(torch.mm)(table.softmax(2), v)
"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not told("one_head.batched", source)
        assert not look("one_head.batched", source).told()


def test_what_two_lines_say_is_not_said_once_more_of_the_result():
    source = """
def head_scores(q, k):
    width = q.shape[1] * q.shape[3]
    table = torch.einsum("bhqs,bhks->bhkq", q, k)
    return table * width ** -0.5
"""
    found = said("heads.scores", source)
    assert found.message.startswith("Two things are wrong. Line 2: ")
    assert "Line 3: " in found.message
    assert "Two things at once" not in found.message


def test_no_advice_names_an_axis_that_is_another_in_this_layout():
    """Where the heads come last, the keys are not the last axis."""
    source = """
def attend(q, k, v, num_heads):
    b, n, width = q.shape
    q, k, v = (t.unflatten(2, (num_heads, -1)) for t in (q, k, v))
    table = torch.einsum("bqhs,bkhs->bqkh", q, k) / (width // num_heads) ** 0.5
    later = torch.ones(n, n).triu(1)[:, :, None] > 0
    shares = table.masked_fill(later, -1e9).softmax(1)
    mixed = torch.einsum("bqkh,bkhs->bqhs", shares, v)
    return mixed.reshape(b, n, width), shares.permute(0, 3, 1, 2).flatten(0, 1)
"""
    found = said("heads.attend", source)
    assert found.line == 6 and "dim=-1" not in found.message


def test_numbers_that_are_infinite_are_counted_where_none_is_expected():
    found = said("masks.minus_infinity", LATE["masks.minus_infinity"])
    assert "infinite numbers" in found.message and "other places" not in found.message


INVERTED = """
def attend(q, k, v, num_heads):
    b, n, width = q.shape
    heads = [t.reshape(b, n, num_heads, -1).transpose(1, 2) for t in (q, k, v)]
    table = heads[0] @ heads[1].mT
    place = torch.arange(n)
    table = torch.where(place < place[:, None], -1e20, table)
    shares = F.softmax(table * width ** -0.5, -1)
    mixed = (shares @ heads[2]).transpose(1, 2)
    return mixed.reshape(b, n, width), shares.flatten(0, 1)
"""


@pytest.mark.parametrize("seed", [0, 8, 22])
def test_a_mask_and_a_scale_keep_their_own_lines(seed):
    message = said("heads.attend", INVERTED, seed).message
    assert "Line 6: The mask is the wrong way round" in message
    assert "Line 7: The scores are scaled" in message


def test_a_step_that_hides_other_places_is_no_mistake_that_hides_the_right_ones():
    seen = look("heads.attend", INVERTED.lstrip())
    number = next(i for i, s in enumerate(seen.trace.steps) if s.op == "where")
    trace = {
        check: seen.bank.trace(
            seen.place, (next(seen.bank.wrong(seen.place, (), (), check)).number,)
        )
        for check in ("scale.hidden", "mask.inverted")
    }
    assert is_refuted(seen.judged, number, trace["scale.hidden"])
    assert not is_refuted(seen.judged, number, trace["mask.inverted"])
