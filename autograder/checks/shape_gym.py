"""Lesson 00: eight puzzles about where each element of a tensor goes."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from autograder.course.asking import Exercise, Finding, Sight
from autograder.course.calls import Call, Draw
from autograder.judging.compare import compare, difference


def _tensor(draw: Draw, numbered: bool, *shape: int) -> torch.Tensor:
    """The elements 0, 1, 2, ... in order, as in the lesson, or random ones."""
    if numbered:
        return torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape)
    return draw.normal(*shape)


def _tokens(name: str):
    """Calls with one tensor [batch_size, seq_len, hidden]."""

    def cases(draw: Draw) -> list[Call]:
        calls = []
        for numbered in (True, False, False):
            shape = draw.sizes(3)
            says = f"{'numbered' if numbered else 'random'} elements, shape {shape}"
            calls.append(Call(name, (_tensor(draw, numbered, *shape),), says=says))
        # A `squeeze` somewhere shows only where a dimension is 1.
        size = draw.sizes(1)[0]
        calls.append(Call(name, (draw.normal(1, size, 1),), says=f"shape {[1, size, 1]}"))
        return calls

    return cases


def _offset_cases(draw: Draw) -> list[Call]:
    calls = []
    for dims in (2, 3, 4, 3):
        shape = draw.sizes(dims, 3)
        index = tuple(draw.integer(1, size - 1) for size in shape)
        says = f"element {list(index)} of a tensor of shape {shape}"
        calls.append(Call("offset", (index, tuple(shape)), says=says))
    return calls


def _split_cases(draw: Draw) -> list[Call]:
    calls = []
    for numbered in (True, False, False):
        batch_size, seq_len, num_heads, head_size = draw.sizes(4)
        x = _tensor(draw, numbered, batch_size, seq_len, num_heads * head_size)
        says = f"shape {list(x.shape)}, {num_heads} heads"
        calls.append(Call("split_features", (x, num_heads), says=says))
    return calls


def _merge_cases(draw: Draw) -> list[Call]:
    calls = []
    for numbered in (True, False, False):
        shape = draw.sizes(4)
        x = _tensor(draw, numbered, *shape)
        calls.append(Call("merge_heads", (x,), says=f"shape {shape}"))
    return calls


def _scale_rows_cases(draw: Draw) -> list[Call]:
    batch_size, seq_len = draw.sizes(2)
    calls = []
    # Where both sizes agree, factors of the wrong shape broadcast without an error.
    for sizes in ((seq_len, seq_len), (batch_size, seq_len), (seq_len, seq_len)):
        x = draw.normal(*sizes, seq_len)
        factors = draw.uniform(*sizes, low=0.5, high=3.0)
        says = f"x of shape {list(x.shape)}, factors of shape {list(factors.shape)}"
        calls.append(Call("scale_rows", (x, factors), says=says))
    return calls


def _pair_scores_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        batch_size, num_heads, q_len, k_len, head_size = draw.sizes(5)
        q = draw.normal(batch_size, num_heads, q_len, head_size)
        k = draw.normal(batch_size, num_heads, k_len, head_size)
        says = f"q of shape {list(q.shape)}, k of shape {list(k.shape)}"
        calls.append(Call("pair_scores", (q, k), says=says))
    return calls


def _comments_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        batch_size, seq_len, input_size, num_heads, head_size = draw.sizes(5)
        args = (batch_size, seq_len, input_size, num_heads, head_size)
        says = (
            f"batch_size={batch_size}, seq_len={seq_len}, input_size={input_size}, "
            f"num_heads={num_heads}, head_size={head_size}"
        )
        calls.append(Call("shapes_line_by_line", args, says=says))
    return calls


def _judge_comments(sight: Sight) -> list[Finding]:
    """As the usual judge, and says which line of the program has the wrong shape."""
    findings = compare(sight)
    if not findings or not findings[0].check.startswith("shape_gym.comments."):
        return findings
    for got, expected in zip(sight.outcomes, sight.expected, strict=True):
        if not isinstance(got.value, (list, tuple)) or len(got.value) != len(expected.value):
            return findings
        pairs = zip(got.value, expected.value, strict=True)
        for line, (mine, true) in enumerate(pairs, 1):
            if difference(mine, true, 0.0) is not None:
                text = (
                    f"The shape of line {line} is not what that line makes. The lines before "
                    "it are right: start from the shape just above."
                )
                return [
                    replace(
                        findings[0],
                        message=text,
                        expected=f"the shape of line {line}",
                        got="another shape",
                    )
                ]
    return findings


EXERCISES = [
    Exercise(
        "shape_gym.axes",
        "average_over_tokens",
        _tokens("average_over_tokens"),
        hints=(
            "The axis you name in `dim=` is the axis that disappears.",
            "The shape goes from [batch_size, seq_len, hidden] to [batch_size, hidden]. Which of "
            "the three sizes is gone, and at which place did it stand?",
            "Tokens stand at place 1 (counting from 0), which is also place -2. `x.mean(dim=...)`.",
        ),
    ),
    Exercise(
        "shape_gym.memory",
        "offset",
        _offset_cases,
        hints=(
            "One step along the last axis is one step in memory. How many steps is one row?",
            "A step along an axis jumps over everything to the right of it: the product of all "
            "later sizes. That jump is the axis's stride.",
            "Go from left to right and keep one number: multiply it by the size of this axis, "
            "then add the index of this axis. Start from 0.",
        ),
    ),
    Exercise(
        "shape_gym.view",
        "split_features",
        _split_cases,
        hints=(
            "No element moves. Only the last axis is read as two axes.",
            "hidden = num_heads * head_size; the heads stand one after the other, so the heads' "
            "axis is the slow one and comes first.",
            "`x.view(batch_size, seq_len, num_heads, head_size)`, with the first two sizes and "
            "hidden taken from `x.shape`.",
        ),
    ),
    Exercise(
        "shape_gym.transpose",
        "features_first",
        _tokens("features_first"),
        hints=(
            "Elements must move here: a new shape alone is not enough.",
            "`transpose(a, b)` swaps two axes. The batch stays where it is.",
            "Swap the last two: `-2` and `-1` say so whatever stands in front of them.",
        ),
    ),
    Exercise(
        "shape_gym.contiguous",
        "merge_heads",
        _merge_cases,
        hints=(
            "Two steps: first bring the axes into the right order, then glue two of them.",
            "Only axes that stand side by side can be glued. head_size must come right after "
            "num_heads, and seq_len before both.",
            "Swap axes 1 and 2, then `.reshape(batch_size, seq_len, -1)`; `.view` in its place "
            "needs `.contiguous()` first.",
        ),
    ),
    Exercise(
        "shape_gym.broadcasting",
        "scale_rows",
        _scale_rows_cases,
        hints=(
            "Broadcasting lines shapes up from the right. Write both shapes under each other.",
            "factors must end in a 1, so that each factor meets a whole row.",
            "`factors[..., None]` or `factors.unsqueeze(-1)` has shape [batch_size, seq_len, 1].",
        ),
    ),
    Exercise(
        "shape_gym.einsum",
        "pair_scores",
        _pair_scores_cases,
        hints=(
            "Name every axis with a letter, the same letter for the same axis.",
            "A letter that is missing after the arrow is summed over. Here that is the letter of "
            "head_size alone; the batch and the heads stay.",
            "With b, h, q, k, d: the inputs are bhqd and bhkd. The matrix product is "
            "`q @ k.transpose(-2, -1)`.",
        ),
    ),
    Exercise(
        "shape_gym.comments",
        "shapes_line_by_line",
        _comments_cases,
        judge=_judge_comments,
        hints=(
            "Go line by line; each line needs the shape before it and one rule from this lesson.",
            "A matrix product eats the inner pair of sizes: [..., n, m] @ [..., m, p] is "
            "[..., n, p]. `max(dim=-1)` and `mean(dim=1)` each take one axis away.",
            "After line 3 the order is batch_size, num_heads, seq_len, head_size; line 4 ends in "
            "seq_len twice; line 7 ends in hidden = num_heads * head_size.",
        ),
    ),
]
