"""What comes back as of an answer with one operation changed, and what the steps say of that."""

from autograder.tracing.findings import wrong_call
from tests.tracing.helper import asked, told
from tests.tracing.test_seen_in_the_steps import line_of

ALL_OF_IT = """
def mask_weights(scores):
    kept = F.softmax(scores, dim=-1).tril()
    whole = kept.sum((-2, -1), keepdim=True)
    return kept / whole
"""
ROOT_TWICE = """
class LayerNorm(nn.Module):
    def __init__(self, hidden, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.eps = eps

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        spread = x.std(-1, unbiased=False, keepdim=True)
        below = torch.sqrt(spread + self.eps)
        return torch.addcmul(self.bias, centred / below, self.weight)
"""
ALL_CUT_ALIKE = """
def padded_weights(scores, lengths):
    left = scores.clone()
    for n in lengths.tolist():
        left[..., n:] = float("-inf")
    return torch.softmax(left, -1)
"""
OVERWRITTEN = """
def grad_queries_keys(grad_scores, q, k):
    g = grad_scores / q.shape[-1] ** 0.5
    q = g @ k
    k = g.mT @ q
    return q, k
"""
KEPT_SHARE = """
def mask_dropout_backward(grad_dropped, probs, hidden, dropped, p):
    kept = (~dropped).double().to(probs.dtype)
    grad = grad_dropped * kept / kept.mean()
    inner = grad.sum(-1, keepdim=True) / grad.shape[-1]
    return (probs * (grad - inner)).masked_fill(hidden, 0.0)
"""


def test_the_line_has_the_numbers_of_the_changed_operation():
    (found,) = told("masks.renormalise", ALL_OF_IT)
    assert "the sum runs along axes 1 and 2" in found.message
    assert found.where.first_wrong == line_of(ALL_OF_IT, "whole =")


def test_a_line_whose_numbers_are_right_by_chance_is_not_called_right():
    """The root of the variance is that of the variance and eps, as far as numbers tell."""
    (found,) = told("writing.norm", ROOT_TWICE)
    assert found.where.first_wrong == line_of(ROOT_TWICE, ".std(")
    assert found.where.last_right == line_of(ROOT_TWICE, "centred =")


def test_a_changed_operation_that_no_step_shows_is_not_told_beside_the_line():
    """Of a batch whose shortest sequence has one token, all averaged would come back alike."""
    (found,) = told("masks.padding", ALL_CUT_ALIKE)
    assert "averaged" not in found.message
    assert found.where.first_wrong == line_of(ALL_CUT_ALIKE, "left[")


def test_a_changed_operation_that_a_step_shows_is_told():
    (found,) = told("backward.queries_keys", OVERWRITTEN)
    assert "overwrites `q`" in found.message
    assert found.where.first_wrong == line_of(OVERWRITTEN, "q = ")


def test_a_call_in_which_a_mistake_cannot_show_is_not_looked_at():
    """Without dropout all are kept."""
    exercise, _, calls, known, outcomes = asked("backward.mask_dropout", KEPT_SHARE, 0)
    place = wrong_call(exercise, calls, outcomes, known)
    assert calls[0].args[-1] == 0.0 and calls[place].args[-1] > 0
