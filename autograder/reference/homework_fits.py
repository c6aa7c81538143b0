"""Mistakes of lesson 05 with a free number in them: any scale, any probabilities.

Each is fitted to what came back, call by call; whether it explains the answer is for the judge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from autograder.calls import Call
from autograder.exercise import Fitted
from autograder.reference.homework_programs import ManyHeads, SingleHead, mask, program

WIDEST = 1000.0  # how far from the right factor another may lie


def _heads(call: Call, name: str) -> torch.Tensor:
    """What a right layer makes of the call's input: [batch_size, num_heads, seq_len, head_size]."""
    weight, bias = call.weights[f"{name}.weight"], call.weights[f"{name}.bias"]
    num_heads = call.init[2] if len(call.init) > 2 else 1
    made = nn.functional.linear(call.args[0], weight, bias)
    return made.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def _scores(call: Call) -> torch.Tensor:
    """Right scores before they are scaled, with the future hidden where that is asked for."""
    scores = _heads(call, "q") @ _heads(call, "k").transpose(-2, -1)
    return mask(scores, "right") if call.init_kwargs.get("causal") else scores


# --- any other scale ------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Scale:
    """What scores are multiplied by before the softmax, and probabilities after it."""

    before: float
    after: float = 1.0


def _programs(calls, found: list[_Scale | None], name: str, base: type) -> list[dict | None]:
    """The program of each call. None for all where no call shows that the scores count: there they
    are next to nothing in all calls, or so large that only the largest of them is left."""
    shown = any(
        scale and _counts(call, scale.before) for call, scale in zip(calls, found, strict=True)
    )
    return [
        program(name, base, {"scale": scale.before, "after": scale.after})
        if shown and scale and scale.before > 0 and 1 / WIDEST < scale.after < WIDEST
        else None
        for scale in found
    ]


def _counts(call: Call, factor: float) -> bool:
    """Whether the probabilities are neither all alike nor each 0 or 1."""
    if call.train or call.args[0].shape[1] == 1:
        return False
    scores = _scores(call)
    probs = (factor * scores).softmax(-1)
    even = scores.masked_fill(scores.isfinite(), 0.0).softmax(-1)
    alike, single = (probs - even).abs().max(), (1 - probs.max(-1).values).max()
    return bool(alike > 1e-3 and single > 1e-3)


def _single_scale(calls, outcomes) -> list[dict | None]:
    """With one head: the scale that explains an output best."""
    found = [_best_scale(call, o.value) for call, o in zip(calls, outcomes, strict=True)]
    return _programs(calls, found, "SelfAttention", SingleHead)


def _best_scale(call: Call, got) -> _Scale | None:
    hidden = call.init[1]
    scores, values = _scores(call)[:, 0], _heads(call, "v")[:, 0]
    if not _is(got, values.shape):
        return None
    got = got.double()

    def tried(factors: torch.Tensor):
        """For each factor: how far the output is, and the best factor after the softmax."""
        probs = (factors[:, None, None, None] * scores).softmax(-1)
        made = (probs @ values).flatten(1)
        after = (made * got.flatten()).sum(1) / made.square().sum(1)
        return (after[:, None] * made - got.flatten()).square().sum(1), after

    low, high = math.log(hidden**-0.5 / WIDEST), math.log(hidden**-0.5 * WIDEST)
    for _ in range(8):
        grid = torch.linspace(low, high, 41, dtype=torch.float64)
        distance, after = tried(grid.exp())
        best = int(distance.argmin())
        low, high = grid[max(best - 1, 0)].item(), grid[min(best + 1, 40)].item()
    return _Scale(grid[best].exp().item(), after[best].item())


def _multi_scale(calls, outcomes) -> list[dict | None]:
    """With many heads: the scale, as the probabilities that were returned show it."""
    found = [
        _spread_scale(call, o.value)
        if _is_spread(call)
        else _shown_scale(call, _returned(calls, outcomes, call))
        for call, o in zip(calls, outcomes, strict=True)
    ]
    return _programs(calls, found, "MultiHeadSelfAttention", ManyHeads)


def _shown_scale(call: Call, probs: torch.Tensor | None) -> _Scale:
    """The slope of log probabilities over scores, and the sum of a row."""
    right = (call.init[1] // call.init[2]) ** -0.5
    if probs is None:
        return _Scale(right)
    scores = _scores(call)
    seen = scores.isfinite() & (probs > 1e-6)
    count = seen.sum(-1, keepdim=True).clamp_min(1)

    def centred(table: torch.Tensor) -> torch.Tensor:
        table = table.masked_fill(~seen, 0.0)
        return (table - table.sum(-1, keepdim=True) / count).masked_fill(~seen, 0.0)

    x, y = centred(scores), centred(probs.clamp_min(1e-30).log())
    spread = x.square().sum()
    slope = ((x * y).sum() / spread).item() if spread > 0 else right
    return _Scale(slope, probs.sum(-1).median().item())


def _is_spread(call: Call) -> bool:
    """Whether a call drops some of the probabilities of tokens that are all alike."""
    return call.train and call.init_kwargs["dropout"] < 1


def _spread_scale(call: Call, value) -> _Scale:
    """There only a factor after the softmax shows."""
    right = (call.init[1] // call.init[2]) ** -0.5
    if not _is(value, (*call.args[0].shape[:2], call.init[1])):
        return _Scale(right)
    return _Scale(right, (value.double() / call.weights["v.bias"]).mean().item())


# --- whatever the probabilities -------------------------------------------------------------------
def _multi_given(calls, outcomes) -> list[dict | None]:
    """Right steps after probabilities that are taken as they came back, where they are wrong."""
    return [_given(call, _returned(calls, outcomes, call)) for call in calls]


def _given(call: Call, probs: torch.Tensor | None) -> dict | None:
    if call.train or _right(call, probs):
        return program("MultiHeadSelfAttention", ManyHeads, {})
    if probs is None or (probs < 0).any() or (probs.sum(-1) - 1).abs().max() > 1e-4:
        return None
    return _taken(probs)


def _multi_softmax(calls, outcomes) -> list[dict | None]:
    """The same where the probabilities rise with the right scores, but are no softmax of anything:
    the scores are right, and what makes probabilities of them is not."""
    return [_rising(call, _returned(calls, outcomes, call)) for call in calls]


def _rising(call: Call, probs: torch.Tensor | None) -> dict | None:
    if call.train or _right(call, probs):
        return program("MultiHeadSelfAttention", ManyHeads, {})
    if probs is None:
        return None
    scores = _scores(call)
    ordered = probs.gather(-1, scores.argsort(-1))  # as the scores rise along a row
    falls = (ordered.diff(dim=-1) < -1e-6).any()
    several = scores.shape[-1] > 1
    even = several and (probs.max(-1).values - probs.min(-1).values).max() < 1e-6
    leaks = (probs[scores.isinf()].abs() > 1e-7).any()
    softmax = (probs[scores.isfinite()] > 0).all() and (probs.sum(-1) - 1).abs().max() < 1e-4
    return None if falls or even or leaks or softmax else _taken(probs)


def _right(call: Call, probs: torch.Tensor | None) -> bool:
    """Whether probabilities came back that are right."""
    right = ((call.init[1] // call.init[2]) ** -0.5 * _scores(call)).softmax(-1)
    return probs is not None and torch.allclose(probs, right, rtol=0, atol=1e-4)


def _taken(probs: torch.Tensor) -> dict:
    """A program with these probabilities."""
    return program("MultiHeadSelfAttention", _Given, {"softmax": probs})


class _Given(ManyHeads):
    """As right, but no gradient passes the projections: theirs are not compared."""

    def project(self, name, x):
        return super().project(name, x).detach()


def _returned(calls, outcomes, call: Call) -> torch.Tensor | None:
    """The probabilities of a call, returned by it or by another with the same input."""
    (batch_size, seq_len, _), num_heads = call.args[0].shape, call.init[2]
    shaped = (batch_size, num_heads, seq_len, seq_len)
    for other, outcome in zip(calls, outcomes, strict=True):
        same = other is call or (
            bool(other.init_kwargs.get("causal")) == bool(call.init_kwargs.get("causal"))
            and torch.equal(other.args[0], call.args[0])
        )
        value = outcome.value
        if not same or call.train or not isinstance(value, tuple | list) or len(value) != 2:
            continue
        for shape in ((batch_size * num_heads, seq_len, seq_len), shaped):
            if _is(value[1], shape):
                return value[1].double().reshape(shaped)
    return None


def _is(value, shape: Sequence[int]) -> bool:
    """Whether a value that came back is a tensor of that shape with numbers in it."""
    if not isinstance(value, torch.Tensor) or value.is_complex() or value.shape != tuple(shape):
        return False
    return bool(value.isfinite().all())


_ANOTHER = "The scores are multiplied by another number than 1 over the square root of "
SINGLE_SCALE = Fitted(
    "scale.another factor", f"{_ANOTHER}hidden, or scaled in another place.", _single_scale
)
MULTI_SCALE = Fitted(
    "scale.another factor",
    f"{_ANOTHER}head_size, or scaled in another place.",
    _multi_scale,
    "scores",
)
GIVEN = Fitted(
    "scores.another reason",
    "The probabilities are not what the right scores would give; all that follows them is right. "
    "Look at the projections, the split into heads and the scores.",
    _multi_given,
    "scores",
)
SOFTMAX = Fitted(
    "softmax.another function",
    "The scores are right; what makes probabilities of them is not a softmax over the keys.",
    _multi_softmax,
    "output",
)
