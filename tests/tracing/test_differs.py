"""How a tensor differs from the right one, said of tensors that differ in one known way."""

import pytest
import torch

from autograder.tracing.differs import differs, moved

torch.manual_seed(0)
RIGHT = torch.randn(5, 7, 4, dtype=torch.float64)
WEIGHTS = torch.randn(5, 7, 7, dtype=torch.float64).softmax(-1)
HIDDEN = torch.ones(7, 7).triu(1).bool()
SCORES = torch.randn(5, 7, 7, dtype=torch.float64).masked_fill(HIDDEN, -torch.inf)

KNOWN = [
    (RIGHT / 3, RIGHT, "too small by a factor of 3"),
    (-RIGHT, RIGHT, "the sign is wrong"),
    (RIGHT + torch.arange(4.0), RIGHT, "one vector"),
    (RIGHT + 1, RIGHT, "one and the same number"),
    (RIGHT / RIGHT.norm(dim=-1, keepdim=True), RIGHT, "each row has length 1"),
    (RIGHT * torch.rand(5, 7, 1).add(1), RIGHT, "each row is multiplied by a number of its own"),
    (RIGHT + torch.rand(5, 7, 1), RIGHT, "each row is shifted by a number of its own"),
    (RIGHT - RIGHT.mean(-1, keepdim=True), RIGHT, "the mean of each row was taken away"),
    (RIGHT.flip(1), RIGHT, "reversed along axis 1"),
    (RIGHT.roll(1, 1), RIGHT, "one place too late along axis 1"),
    (RIGHT[[1, 0, 2, 3, 4]], RIGHT, "other items along axis 0"),
    (RIGHT.square(), RIGHT, "squared"),
    (RIGHT.clamp(min=0), RIGHT, "zeros where values were expected"),
    (torch.where(torch.arange(7)[:, None] == 3, 9.0 * RIGHT.cos(), RIGHT), RIGHT, "index 3"),
    (WEIGHTS.mT, WEIGHTS, "the sums along axis 1 do"),
    (SCORES.masked_fill(~HIDDEN, 0.0).exp(), SCORES, "places are not hidden"),
]


@pytest.mark.parametrize("value, right, said", KNOWN, ids=[said for *_, said in KNOWN])
def test_what_was_done_to_a_tensor_is_said(value, right, said):
    assert said in differs(value, right)


def test_nothing_is_said_of_equal_tensors_or_of_other_numbers():
    other = torch.randn(5, 7, 4, dtype=torch.float64)
    assert differs(RIGHT, RIGHT) == "" and differs(other, RIGHT) == ""
    assert moved(RIGHT, RIGHT) == "" and moved(other, RIGHT) == ""


def test_where_several_items_are_one_and_the_same_none_changed_places():
    """All of the one is like the last item of the other, and of no other item."""
    falling = torch.linspace(0.1, 1, 7, dtype=torch.float64).expand(5, 7)
    noise = torch.rand(5, 7, dtype=torch.float64)
    noise[:, -1] = 0
    assert "other items" not in differs(torch.ones(5, 7, dtype=torch.float64), falling + noise)
