"""Of several results each may have lines of its own."""

import pytest

from autograder.tracing.edits.ask import here
from autograder.tracing.edits.parts import parts_of
from autograder.tracing.edits.versions import WrongAnswer
from autograder.tracing.findings import wrong_call
from tests.tracing.helper import asked, told

TASK = "backward.queries_keys"
# The gradients of the queries and of the keys.
FUNCTION = """\
def grad_queries_keys(grad_scores, q, k):
    root = q.shape[-1] ** 0.5
    g = grad_scores / root
    {}
    {}
    return {}
"""
RIGHT = "by_q = g @ k", "by_k = g.mT @ q"


def source(by_q=RIGHT[0], by_k=RIGHT[1], returned="by_q, by_k"):
    return FUNCTION.format(by_q, by_k, returned)


def parts(text):
    exercise, namespace, calls, known, outcomes = asked(TASK, text, 0)
    place = wrong_call(exercise, calls, outcomes, known)
    return parts_of(WrongAnswer(exercise, calls, outcomes, known, text, here(namespace), place))


def test_a_line_that_only_the_wrong_result_is_made_with_is_known():
    found = parts(source(by_k="by_k = g.mT @ (q + 1)"))
    assert found.wrong == {1} and found.only({1}) == 5
    assert found.is_idle(4) and not found.is_idle(3)
    assert found.shared(3) and not found.shared(5)


def test_where_two_lines_could_have_spoiled_a_result_none_is_known():
    found = parts(source(by_k="wide = q + 1; by_k = 0\n    by_k = by_k + g.mT @ wide"))
    assert found.wrong == {1} and found.only({1}) is None


def test_what_changes_a_tensor_in_place_has_a_part_in_all_that_share_its_numbers():
    found = parts(source(by_k="by_k = g.mT @ q", returned="by_q.mul_(2), by_k"))
    assert found.wrong == {0} and not found.is_idle(4)
    found = parts(source(by_q="by_q = g @ k; other = by_q", by_k="other *= 2; by_k = g.mT @ q"))
    assert found.wrong == {0} and not found.is_idle(5)


def test_results_in_each_others_place_are_seen():
    assert parts(source(returned="by_k, by_q")).turned
    assert not parts(source(by_q="by_q = g @ (k + 1)")).turned


@pytest.mark.parametrize(
    "text",
    [
        source(by_k="by_k = g.mT @ q * 2", returned="(lambda *both: both)(by_q, by_k)"),
        source(by_k="if g is None:\n        return k, q\n    by_k = g.mT @ q * 2"),
        source(by_k="try:\n        by_k = g.mT @ q * 2\n    finally:\n        pass"),
    ],
)
def test_of_what_cannot_be_told_apart_nothing_is_known(text):
    assert parts(text) is None


# No small change mends both, and no known mistake is either.
EACH = source(
    by_q="by_q = g @ (k - k.mean(1, keepdim=True)) * 3",
    by_k="by_k = torch.stack([row.mT @ each for row, each in zip(g, q.flip(0))])",
)


def test_two_results_that_are_wrong_for_reasons_of_their_own_have_two_lines():
    found = next(f for f in told(TASK, EACH) if f.fails)
    assert found.where.first_wrong == 4
    assert "Two things are wrong" in found.message and "Line 5" in found.message


COUNTED = """\
def attention_cost(batch_size, num_heads, q_len, k_len, head_size, bytes_per_number):
    heads = batch_size * num_heads
    table = q_len * k_len
    first = 2 * table * head_size
    second = table * head_size
    flops = heads * (first + second)
    ends = 2 * (q_len + k_len) * head_size
    moved = heads * bytes_per_number * (ends + table + table + table)
    return flops, moved, flops / moved
"""


def test_a_result_that_is_made_of_other_wrong_ones_is_no_third_thing():
    found = next(f for f in told("fast.count", COUNTED) if f.fails)
    assert "Two things are wrong." in found.message and "Line 8: " in found.message
    assert "Line 9: " not in found.message
