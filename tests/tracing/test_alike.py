"""A tensor is recognised whatever its layout, and never on weak evidence."""

import pytest
import torch

from autograder.tracing.alike import Known, likeness, merges, tells

B, H, S, D = 2, 3, 5, 4


@pytest.fixture
def scores():
    generator = torch.Generator().manual_seed(3)
    return torch.randn(B, H, S, D, generator=generator, dtype=torch.float64)


LAYOUTS = {
    "as it is": lambda t: t,
    "axes moved": lambda t: t.permute(2, 0, 3, 1),
    "batch and heads joined": lambda t: t.flatten(0, 1),
    "heads first, then joined": lambda t: t.transpose(0, 1).flatten(0, 1),
    "merged": lambda t: t.transpose(1, 2).flatten(-2),
    "an axis of size 1": lambda t: t.unsqueeze(2),
    "all in one row": lambda t: t.flatten(),
    "rounded to float32": lambda t: t.float().double(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_tensor_is_recognised_in_every_layout(scores, layout):
    found = likeness(LAYOUTS[layout](scores), [Known(0, [scores])])
    assert found is not None and found.whole and found.in_order


def test_a_reshape_that_mixes_axes_is_out_of_order(scores):
    merged = scores.transpose(1, 2).flatten(-2)  # [B, S, H * D]
    found = likeness(merged.reshape(B, H, S, D), [Known(0, [merged, scores])])
    assert found is not None and not found.in_order


@pytest.mark.parametrize("part", [lambda t: t[1], lambda t: t[:, 2], lambda t: t[0, 1, :, 3]])
def test_one_item_one_head_or_one_row_is_a_part(scores, part):
    found = likeness(part(scores), [Known(0, [scores])])
    assert found is not None and not found.whole


def test_another_number_is_another_tensor(scores):
    other = scores.clone()
    other[1, 2, 3, 1] += 0.01 * other.abs().max()
    assert likeness(other, [Known(0, [scores])]) is None


@pytest.mark.parametrize(
    "weak",
    [
        torch.zeros(30),
        torch.ones(4, 5),
        torch.arange(12.0),
        torch.tensor([0.3, 0.7]),
        torch.ones(5, 5).tril(),
        torch.full((4,), torch.nan),
    ],
)
def test_constants_positions_and_few_numbers_tell_nothing(weak):
    value = weak.double()
    assert not tells(value) and likeness(value, [Known(0, [value])]) is None


@pytest.mark.parametrize("hidden", [-torch.inf, -1e9, -1e4, torch.finfo(torch.float32).min])
def test_what_hides_a_score_is_the_same_however_low(scores, hidden):
    mask = torch.ones(S, D).triu(1).bool()
    found = likeness(
        scores.masked_fill(mask, hidden), [Known(0, [scores.masked_fill(mask, -torch.inf)])]
    )
    assert found is not None and found.in_order


def test_axes_merge_only_as_neighbours():
    assert merges([2, 3, 5], [6, 5]) and merges([2, 3, 5], [30]) and merges([2], [2])
    assert not merges([2, 3, 5], [2, 5, 3]) and not merges([4, 6], [3, 8])


def test_an_exchanged_last_axis_is_turned(scores):
    own = scores[0, 0]
    assert likeness(own.T, [Known(0, [own])]).turned
    assert not likeness(own, [Known(0, [own])]).turned
