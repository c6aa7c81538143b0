"""Whether a model's values were computed by a student's own modules, and by nothing else."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.course.asking import Finding, Sight, Verdict
from autograder.course.calls import Outcome
from autograder.judging.compare import compare
from autograder.judging.difference import difference

PARTS = ("q.weight", "k.weight", "v.weight", "mix.weight")


def by_own_modules(sight: Sight) -> list[Finding]:
    """The logits are right, and the right gradients reach q, k, v and mix in each layer.

    The modules may have any name: a gradient is known by the end of its parameter's name and by
    its place among those of that end.
    """
    findings = compare(sight.each(lambda outcome: replace(outcome, gradients=None)))
    if findings:
        return findings
    for got, expected in zip(sight.outcomes, sight.expected, strict=True):
        for part in PARTS:
            own, wanted = (_gradients(o, part) for o in (got, expected))
            if len(own) != len(wanted) or any(g is None for g in own):
                text = (
                    f"The logits are right, but not every layer's comes out of a `{part}` of your "
                    "MultiHeadSelfAttention: no gradient reaches one in each layer. Is GPT-2's "
                    "own attention still at work, or is something computed under `no_grad`?"
                )
                return [Finding("own.not used", Verdict.WRONG, text)]
            if any(difference(g, w, 1e-2) for g, w in zip(own, wanted, strict=True)):
                text = (
                    f"The logits are right, but the gradients of `{part}` are not what they would "
                    "be if your MultiHeadSelfAttention alone had computed the attention."
                )
                return [Finding("own.not used", Verdict.WRONG, text)]
    return []


def _gradients(outcome: Outcome, part: str) -> list:
    """Those of the parameters of that name; a module that has two names counts once."""
    found = outcome.gradients if isinstance(outcome.gradients, dict) else {}
    kept: list = []
    for each in (g for name, g in found.items() if name.endswith(f".{part}")):
        if each is None or not any(k is not None and torch.equal(k, each) for k in kept):
            kept.append(each)
    return kept
