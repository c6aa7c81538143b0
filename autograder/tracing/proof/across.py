"""A product in which the items of a batch meet one another, where each should meet itself alone."""

from __future__ import annotations

import torch

from autograder.tracing.alike import near, plain
from autograder.tracing.first_wrong import Judged, Wrong
from autograder.tracing.reference import PRODUCTS


def across_items(judged: Judged) -> list[tuple[Wrong, str]]:
    """The product of right tensors that holds what belongs there in blocks along its diagonal, and
    in the others the products of each item with another, where a softmax takes in all of them; and
    how it goes wrong. Empty where there is none."""
    first = min(judged.frontier(), default=None)
    if first is None or not judged.whole or any(i < first for i in judged.unsure):
        return []
    step, should = judged.steps[first], judged.own.makes(judged.places(first))
    if step.op not in PRODUCTS or should is None:
        return []
    for right in should.shapes:
        blocks = _diagonal(step.value, right.shape)
        if blocks is None or not near(plain(blocks), plain(right)):
            continue
        later = (s for s in judged.steps[first:] if s.op == "softmax")
        taken = [s for s in later if s.value.shape == step.value.shape]
        if taken and all(_is_everywhere(s.value) for s in taken):
            own = (i for i in step.inputs if i in judged.right and i in judged.like)
            how = f"items of the batch meet one another: {len(right)} blocks along its diagonal"
            wrong = Wrong(first, max(own, default=None), should)
            return [(wrong, f"{how} belong there, and no others")]
    return []


def _diagonal(value: torch.Tensor, shape: torch.Size) -> torch.Tensor | None:
    """The blocks along the diagonal of a table, as [items, rows, columns]; None where it is none of
    so many items."""
    if len(shape) != 3 or shape[0] < 2 or value.dim() != 2:
        return None
    items, rows, columns = shape
    if value.shape != (items * rows, items * columns):
        return None
    parts = value.reshape(items, rows, items, columns)
    return torch.stack([parts[i, :, i] for i in range(items)])


def _is_everywhere(weights: torch.Tensor) -> bool:
    """Whether weights leave nothing out."""
    return bool((weights > 0).all())
