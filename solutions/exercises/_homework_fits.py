"""Mistakes of the homework with a free number in them: any scale, any probabilities.

Each is fitted to what came back, call by call; whether it explains the answer is for the judge.
The programs are made of the homework's own answers, which are handed in as `answer`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from autograder import Call

from .judges.homework import by_chance

WIDEST = 1000.0  # how far from the right factor another may lie
Programs = list[dict | None]  # one for each call; None where none fits


def program(answer: type, **switches) -> dict:
    return {answer.__name__: type(answer.__name__, (answer,), switches)}


def built(answer: type, call: Call):
    """The answer with the call's weights; made on no device, so that no random number is drawn."""
    with torch.device("meta"):
        model = answer(*call.init, **call.init_kwargs)
    model.load_state_dict(call.weights, assign=True)
    return model.eval()


def right(answer: type, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    """The right scores, with the future hidden where that is asked for, and the values."""
    with torch.no_grad():
        model = built(answer, call)
        q, k, v = model.project(call.args[0])
        return model.scores(q, k, call.args[0]), v


# --- any other scale -----------------------------------------------------------------------------
@dataclass(frozen=True)
class Scale:
    """What right scores are multiplied by before the softmax, and probabilities after it."""

    before: float = 1.0
    after: float = 1.0


def scaled(answer: type, calls: Sequence[Call], found: list[Scale | None]) -> Programs:
    """The program of each call. None for all where no call shows that the scores count: there they
    are next to nothing in all calls, or so large that only the largest of them is left."""
    if not any(s and counts(answer, c, s.before) for c, s in zip(calls, found, strict=True)):
        return [None] * len(calls)
    return [
        program(
            answer,
            factor=lambda self, x, s=s: s.before * answer.factor(self, x),
            normalise=lambda self, scores, s=s: s.after * answer.normalise(self, scores))
        if s and s.before > 0 and 1 / WIDEST < s.after < WIDEST else None
        for s in found
    ]


def counts(answer: type, call: Call, factor: float) -> bool:
    """Whether the probabilities are neither all alike nor each 0 or 1."""
    if call.train or call.args[0].shape[1] == 1:
        return False
    scores, _ = right(answer, call)
    probs = (factor * scores).softmax(-1)
    even = scores.masked_fill(scores.isfinite(), 0.0).softmax(-1)
    return bool((probs - even).abs().max() > 1e-3 and (1 - probs.max(-1).values).max() > 1e-3)


def from_outputs(answer: type, calls: Sequence[Call], outcomes: Sequence) -> Programs:
    """Of one head: the scale that explains an output best."""
    found = [best_scale(answer, c, o.value) for c, o in zip(calls, outcomes, strict=True)]
    return scaled(answer, calls, found)


def best_scale(answer: type, call: Call, got) -> Scale | None:
    scores, values = right(answer, call)
    if not is_of(got, values.shape):
        return None
    got = got.double()

    def tried(factors: torch.Tensor):
        """For each factor: how far the output is, and the best factor after the softmax."""
        made = ((factors[:, None, None, None] * scores).softmax(-1) @ values).flatten(1)
        after = (made * got.flatten()).sum(1) / made.square().sum(1)
        return (after[:, None] * made - got.flatten()).square().sum(1), after

    low, high = -math.log(WIDEST), math.log(WIDEST)
    for _ in range(8):
        grid = torch.linspace(low, high, 41, dtype=torch.float64)
        distance, after = tried(grid.exp())
        best = int(distance.argmin())
        low, high = grid[max(best - 1, 0)].item(), grid[min(best + 1, 40)].item()
    return Scale(grid[best].exp().item(), after[best].item())


def from_probabilities(answer: type, calls: Sequence[Call], outcomes: Sequence) -> Programs:
    """Of many heads: the scale, as the probabilities that were returned show it."""
    found = [
        chance_scale(c, o.value) if by_chance(c)
        else shown_scale(answer, c, returned(calls, outcomes, c))
        for c, o in zip(calls, outcomes, strict=True)
    ]
    return scaled(answer, calls, found)


def shown_scale(answer: type, call: Call, probs: torch.Tensor | None) -> Scale:
    """The slope of log probabilities over scores, and the sum of a row."""
    if probs is None:
        return Scale()
    scores, _ = right(answer, call)
    seen = scores.isfinite() & (probs > 1e-6)
    count = seen.sum(-1, keepdim=True).clamp_min(1)

    def centred(table: torch.Tensor) -> torch.Tensor:
        table = table.masked_fill(~seen, 0.0)
        return (table - table.sum(-1, keepdim=True) / count).masked_fill(~seen, 0.0)

    x, y = centred(scores), centred(probs.clamp_min(1e-30).log())
    spread = x.square().sum()
    slope = ((x * y).sum() / spread).item() if spread > 0 else 1.0
    return Scale(slope, probs.sum(-1).median().item())


def chance_scale(call: Call, value) -> Scale:
    """Where all tokens have the same values, only a factor after the softmax shows."""
    if not is_of(value, (*call.args[0].shape[:2], call.init[1])):
        return Scale()
    return Scale(after=(value.double() / call.weights["v.bias"]).mean().item())


# --- whatever the probabilities ------------------------------------------------------------------
def any_given(answer: type, calls: Sequence[Call], outcomes: Sequence) -> Programs:
    """Right steps after probabilities that are taken as they came back, where they are wrong."""
    return taken(answer, calls, outcomes, lambda scores, probs:
                 (probs >= 0).all() and (probs.sum(-1) - 1).abs().max() <= 1e-4)


def any_rising(answer: type, calls: Sequence[Call], outcomes: Sequence) -> Programs:
    """The same where the probabilities rise with the right scores, but are no softmax of anything:
    the scores are right, and what makes probabilities of them is not."""
    return taken(answer, calls, outcomes, rises)


def rises(scores: torch.Tensor, probs: torch.Tensor) -> bool:
    ordered = probs.gather(-1, scores.argsort(-1))  # as the scores rise along a row
    falls = (ordered.diff(dim=-1) < -1e-6).any()
    several = scores.shape[-1] > 1
    even = several and (probs.max(-1).values - probs.min(-1).values).max() < 1e-6
    leaks = (probs[scores.isinf()].abs() > 1e-7).any()
    softmax = (probs[scores.isfinite()] > 0).all() and (probs.sum(-1) - 1).abs().max() < 1e-4
    return not (falls or even or leaks or softmax)


def taken(answer: type, calls: Sequence[Call], outcomes: Sequence, fits) -> Programs:
    """The answer with the probabilities that came back, where they are wrong and `fits` says so."""
    programs = []
    for call in calls:
        scores, _ = right(answer, call)
        probs = returned(calls, outcomes, call)
        close = probs is not None and torch.allclose(probs, scores.softmax(-1), rtol=0, atol=1e-4)
        if call.train or by_chance(call) or close:
            programs.append(program(answer))
        elif probs is None or not fits(scores, probs):
            programs.append(None)
        else:
            # No gradient passes the projections: theirs are not compared.
            programs.append(program(
                answer, normalise=lambda self, scores, probs=probs: probs,
                linear=lambda self, layer, x: answer.linear(self, layer, x).detach()))
    return programs


def returned(calls: Sequence[Call], outcomes: Sequence, call: Call) -> torch.Tensor | None:
    """The probabilities of a call, returned by it or by another with the same input."""
    (batch_size, seq_len, _), num_heads = call.args[0].shape, call.init[2]
    shaped = (batch_size, num_heads, seq_len, seq_len)
    for other, outcome in zip(calls, outcomes, strict=True):
        same = other is call or (
            bool(other.init_kwargs.get("causal")) == bool(call.init_kwargs.get("causal"))
            and torch.equal(other.args[0], call.args[0]))
        value = outcome.value
        if not same or call.train or not isinstance(value, tuple | list) or len(value) != 2:
            continue
        for shape in ((batch_size * num_heads, seq_len, seq_len), shaped):
            if is_of(value[1], shape):
                return value[1].double().reshape(shaped)
    return None


def is_of(value, shape: Sequence[int]) -> bool:
    """Whether a value that came back is a tensor of that shape with numbers in it."""
    if not isinstance(value, torch.Tensor) or value.is_complex() or value.shape != tuple(shape):
        return False
    return bool(value.isfinite().all())
