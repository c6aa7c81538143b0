"""What the homework judges beyond values: attention probabilities, what is hidden, dropout."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

import torch

from autograder.course.asking import Finding, Sight
from autograder.course.calls import Call, Outcome
from autograder.judging import stages
from autograder.judging.compare import compare, name_mistake
from autograder.judging.difference import difference
from autograder.judging.dropout import in_training
from autograder.judging.stages import Named, Shown, early_stage, last_stage, only

HIDDEN = {  # what the probabilities show of a mask that is wrong
    "open": "With causal=True later tokens keep a share of the attention.",
    "closed": "With causal=True more is hidden than the later tokens.",
    "always": "Tokens are hidden although causal is False.",
    "sums": "The rows of the probabilities do not sum to 1 where tokens are hidden.",
}


class Probabilities(Shown):
    """The probabilities of all heads, [batch_size * num_heads, seq_len, seq_len]."""

    def read(self, outcome: Outcome, like: torch.Tensor) -> torch.Tensor | None:
        """Where an error came up later, variables may hold them, or the scores for them."""
        if outcome.error is None:
            return super().read(outcome, like)
        held = [t for t in (stages.formed(t, like) for t in outcome.held) if t is not None]
        held = [p for t in held if t.is_floating_point() for p in (t, t.softmax(-1))]
        found = next((p for p in held if difference(p, like, 1e-4) is None), None)
        return found if found is not None else next(filter(sums_to_1, held), None)

    def same(self, call: Call, one: torch.Tensor, other: torch.Tensor, rtol: float) -> bool:
        """In batch-major or in head-major order."""
        batch_size, seq_len = call.args[0].shape[:2]
        apart = other.reshape(batch_size, -1, seq_len, seq_len)
        by_head = apart.transpose(0, 1).reshape(other.shape)
        return any(difference(one, each, rtol) is None for each in (other, by_head))


SHOWN = Probabilities("return_attention")


def sums_to_1(probs: torch.Tensor) -> bool:
    sums = probs.sum(-1)
    return torch.allclose(sums, torch.ones_like(sums), rtol=0, atol=1e-4)


# --- scores and mask -----------------------------------------------------------------------------
def judge_scores(sight: Sight) -> list[Finding]:
    return early_stage(sight, "scores", SHOWN)


def judge_mask(sight: Sight) -> list[Finding]:
    """Right where exactly the future is hidden when causal, and nothing otherwise.

    Read from the probabilities' pattern, so that it holds whatever the scores are.
    """
    if pattern(sight) and not SHOWN.right(sight):
        return early_stage(sight, "mask", SHOWN, name_of_mask)
    named = None if same_by_default(sight) else name_mistake(sight)
    return compare(sight, named) if named and "mask" in stages.steps(sight, named[0]) else []


def name_of_mask(sight: Sight, known: Named | None) -> Named | None:
    """A known mistake, or what the probabilities show of the mask. An error in the mask's own
    lines says more than what it left."""
    if any(o.error for o in sight.outcomes):
        return None
    found = pattern(sight)
    return known or ((f"mask.{found}", HIDDEN[found]) if found in HIDDEN else None)


def pattern(sight: Sight) -> str:
    """What is wrong with the pattern of what is hidden, in a word; '' where nothing is."""
    for i in SHOWN.places(sight):
        probs = SHOWN.read(sight.outcomes[i], sight.expected[i].value[1])
        if probs is None or not torch.isfinite(probs).all():
            return "unseen"
        future = torch.ones(probs.shape[-2:]).triu(1).bool()
        hidden = (probs.abs() < 1e-7).all(0)
        if not sight.calls[i].init_kwargs.get("causal"):
            if hidden.any():
                return "always"
        elif (future & ~hidden).any():
            return "open"
        elif (hidden & ~future).any():
            return "closed"
        # The last token sees all others: where its row does not sum to 1, no mask is to blame.
        if sums_to_1(probs[:, -1:]) and not sums_to_1(probs):
            return "sums"
    return ""


def same_by_default(sight: Sight) -> bool:
    """Whether a call that says nothing of the mask gives what it gives with causal=False."""
    pairs = itertools.pairwise(zip(sight.calls, sight.outcomes, strict=True))
    for (one, first), (other, second) in pairs:
        asked = "causal" in one.init_kwargs and "causal" not in other.init_kwargs
        if asked and not (first.error or second.error):
            same = (difference(part, second.value, 1e-4) for part in stages.results(first.value))
            if isinstance(second.value, torch.Tensor) and None not in same:
                return False
    return True


# --- output --------------------------------------------------------------------------------------
def judge_output(sight: Sight) -> list[Finding]:
    return last_stage(sight, "output", SHOWN, judge_all, certain=in_evaluation)


def judge_all(sight: Sight) -> list[Finding]:
    """What is found in any call. What happens in training only is looked at last, so that other
    mistakes keep their names."""
    found = compare(only(sight, in_evaluation))
    found = found or compare(only(sight, lambda c: c.train and not by_chance(c)))
    chance = only(sight, by_chance)
    if found or not chance.calls or any(o.error for o in chance.expected):
        return found
    # Where a mistake in an earlier step is what is expected, it may not pass itself: the values of
    # the tokens then differ, and nothing is seen of dropout.
    judge = partial(in_training, p="dropout", heads=2, of="probabilities", even=True)
    return [] if judge(replace(chance, outcomes=tuple(chance.expected))) else judge(chance)


def by_chance(call: Call) -> bool:
    """Whether some probabilities are dropped; in evaluation, the same call to hold it against."""
    return 0 < call.init_kwargs.get("dropout", 0) < 1


def in_evaluation(call: Call) -> bool:
    return not call.train and not by_chance(call)
