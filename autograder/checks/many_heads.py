"""Lesson 04, many heads: stacked, cut out of one product, merged, mixed and counted."""

from __future__ import annotations

from autograder.course.asking import Exercise, Finding, Sight
from autograder.course.calls import Call, Draw
from autograder.judging.compare import compare


def _sizes(draw: Draw) -> tuple[int, int, int, int]:
    """batch_size, seq_len, num_heads, head_size: all different, with an even number of features."""
    num_heads = draw.choice([3, 5, 7])
    batch_size, seq_len = draw.random.sample([p for p in (2, 3, 5, 7, 11) if p != num_heads], 2)
    return batch_size, seq_len, num_heads, draw.choice([4, 6, 8])


def _says(batch_size: int, seq_len: int, num_heads: int, head_size: int) -> str:
    return f"{batch_size} sequences of {seq_len} tokens, {num_heads} heads of size {head_size}"


# --- heads in a row ------------------------------------------------------------------------------
def _stack_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(2):
        batch_size, seq_len, num_heads, head_size = _sizes(draw)
        input_size = draw.choice([9, 10])
        weights = {}
        for head in range(num_heads):
            for name in ("q", "k", "v"):
                part = draw.linear(f"heads.{head}.{name}", input_size, head_size, bias=False)
                weights.update(part)
        x = draw.normal(batch_size, seq_len, input_size)
        calls.append(
            Call(
                "HeadStack",
                (x,),
                init=(input_size, head_size, num_heads),
                weights=weights,
                says=_says(batch_size, seq_len, num_heads, head_size),
            )
        )
    return calls


def _judge_stack(sight: Sight) -> list[Finding]:
    """As usual, once the heads can be found: weights that reach no head judge nothing."""
    for got in sight.outcomes:
        lost = [p for p, why in got.unset.items() if not why.startswith("the same tensor")]
        if got.error is None and lost:
            if not got.parameters:
                text = (
                    "PyTorch finds no parameters in this module. Heads in a plain Python list "
                    "are invisible to it: use `nn.ModuleList`."
                )
                return [Finding("stack.plain list", "wrong", text)]
            text = (
                "The heads are not where they should be: `self.heads` holds one `CausalHead` "
                "of the given sizes for each of num_heads."
            )
            return [Finding("stack.missing heads", "wrong", text)]
    return compare(sight)


# --- sizes ---------------------------------------------------------------------------------------
def _size_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        num_heads, size = draw.integer(2, 12), draw.integer(13, 40)
        hidden = num_heads * size
        calls.append(
            Call(
                "head_size_of", (hidden, num_heads), says=f"hidden={hidden}, num_heads={num_heads}"
            )
        )
    for _ in range(2):
        num_heads = draw.integer(3, 12)
        hidden = num_heads * draw.integer(13, 40) + draw.integer(1, num_heads - 1)
        calls.append(
            Call(
                "head_size_of", (hidden, num_heads), says=f"hidden={hidden}, num_heads={num_heads}"
            )
        )
    return calls


def _judge_size(sight: Sight) -> list[Finding]:
    """As usual, and a float is no size: `view` does not take it."""
    found = compare(sight)
    if not found and any(isinstance(o.value, float) for o in sight.outcomes):
        text = "The size is a float, which `view` and `nn.Linear` refuse. `//` divides to an int."
        return [Finding("size.float", "wrong", text)]
    return found


def _count_cases(draw: Draw) -> list[Call]:
    calls = []
    for qkv_bias in (False, True, False):
        input_size = draw.integer(5, 60)
        num_heads, size = draw.integer(2, 9), draw.integer(3, 20)
        hidden = num_heads * size
        calls.append(
            Call(
                "attention_parameters",
                (input_size, hidden, num_heads),
                {"qkv_bias": qkv_bias},
                says=f"input_size={input_size}, hidden={hidden}, num_heads={num_heads}, "
                f"qkv_bias={qkv_bias}",
            )
        )
    return calls


# --- split, score, merge -------------------------------------------------------------------------
def _split_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        b, s, h, d = _sizes(draw)
        calls.append(Call("split_heads", (draw.normal(b, s, h * d), h), says=_says(b, s, h, d)))
    # A `squeeze` somewhere shows only where a dimension is 1.
    return [*calls, Call("split_heads", (draw.normal(1, s, d), 1), says=_says(1, s, 1, d))]


def _scores_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        b, s, h, d = _sizes(draw)
        q, k = draw.normal(b, h, s, d), draw.normal(b, h, s, d)
        calls.append(Call("head_scores", (q, k), says=_says(b, s, h, d)))
    return calls


def _merge_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        b, s, h, d = _sizes(draw)
        calls.append(Call("merge_heads", (draw.normal(b, h, s, d),), says=_says(b, s, h, d)))
    return calls


def _attend_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        b, s, h, d = _sizes(draw)
        q, k, v = (draw.normal(b, s, h * d) for _ in range(3))
        calls.append(Call("attend", (q, k, v, h), says=_says(b, s, h, d) + ", causal"))
    # Scores that happen to be 0 and are in sight: a mask made from the scores hides them.
    q[:, 1] = 0
    says = _says(b, s, h, d) + ", causal, one query all zeros"
    return [*calls, Call("attend", (q.clone(), k, v, h), says=says)]


# --- weights -------------------------------------------------------------------------------------
def _transfer_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        num_heads, head_size, input_size = draw.sizes(3, 2, 11)
        weights = [draw.normal(head_size, input_size) for _ in range(num_heads)]
        biases = [draw.normal(head_size) for _ in range(num_heads)]
        calls.append(
            Call(
                "fuse_heads",
                (weights, biases),
                says=f"{num_heads} heads of size {head_size}, input_size {input_size}",
            )
        )
    return calls


def _output_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        b, s, h, d = _sizes(draw)
        heads, weight = draw.normal(b, h, s, d), draw.normal(h * d, h * d)
        calls.append(Call("head_contributions", (heads, weight), says=_says(b, s, h, d)))
    return calls


EXERCISES = [
    Exercise(
        "heads.stack",
        "HeadStack",
        _stack_cases,
        judge=_judge_stack,
        hints=(
            "A list of modules that PyTorch can see has a class of its own: `nn.ModuleList`.",
            "Build num_heads separate heads: `CausalHead(input_size, head_size)`, once for each of "
            "`range(num_heads)`. One head repeated would be one set of weights.",
            "In forward, call every head on the same x and put the outputs side by side: "
            "`torch.cat` along the last dimension.",
        ),
    ),
    Exercise(
        "heads.size",
        "head_size_of",
        _size_cases,
        judge=_judge_size,
        hints=(
            "`hidden % num_heads` is what is left over after dividing.",
            "Raise a ValueError if something is left over, and say both numbers in its text.",
            "`if hidden % num_heads: raise ValueError(...)`, then return `hidden // num_heads`.",
        ),
    ),
    Exercise(
        "heads.split",
        "split_heads",
        _split_cases,
        hints=(
            "Two steps: cut the last dimension in two, then move the heads beside the batch.",
            "`view(batch_size, seq_len, num_heads, head_size)` cuts: a feature stays with its "
            "token. Which two dimensions have to change places now?",
            "After the view, `transpose(1, 2)`. Viewing as [batch_size, num_heads, ...] at once "
            "has the right shape and the wrong numbers.",
        ),
    ),
    Exercise(
        "heads.scores",
        "head_scores",
        _scores_cases,
        hints=(
            "`@` multiplies the last two dimensions and takes all earlier ones along.",
            "Keys have to be [..., head_size, seq_len]. `.T` is for matrices only; "
            "`transpose(-2, -1)` swaps the last two dimensions of anything.",
            "Divide by the square root of the size that is summed over: the last one of q.",
        ),
    ),
    Exercise(
        "heads.merge",
        "merge_heads",
        _merge_cases,
        hints=(
            "Undo the split in reverse order: first move the heads back, then join them.",
            "`transpose(1, 2)` gives [batch_size, seq_len, num_heads, head_size]; the last two "
            "dimensions become one.",
            "`view` refuses a transposed tensor: call `.contiguous()` before it, or use `reshape`.",
        ),
    ),
    Exercise(
        "heads.attend",
        "attend",
        _attend_cases,
        hints=(
            "You have all the parts: split three times, score, mask, softmax, average, merge.",
            "The mask is the same for all heads: [seq_len, seq_len] broadcasts over "
            "[batch_size, num_heads, seq_len, seq_len].",
            "Return the merged average, and the probabilities with batch and heads joined: "
            "`flatten(0, 1)` makes [batch_size * num_heads, seq_len, seq_len].",
        ),
    ),
    Exercise(
        "heads.transfer",
        "fuse_heads",
        _transfer_cases,
        hints=(
            "An nn.Linear stores its weight as [outputs, inputs]: each output is a row.",
            "Head 0 owns the first head_size outputs, head 1 the next. So whose rows come first?",
            "`torch.cat(weights, dim=0)` for the weights, and the same for the biases.",
        ),
    ),
    Exercise(
        "heads.output",
        "head_contributions",
        _output_cases,
        hints=(
            "The merged vector is [head 0 | head 1 | ...]. Multiplying it by W_O^T is a sum over "
            "its features; cut that sum at the borders of the heads.",
            "The weight is [outputs, inputs]. Head h is an *input* of it: it owns the columns "
            "h * head_size to (h + 1) * head_size.",
            "For each head: `heads[:, h] @ weight[:, h * d:(h + 1) * d].T`; stack the results "
            "along dimension 1. (One einsum does it too.)",
        ),
    ),
    Exercise(
        "heads.count",
        "attention_parameters",
        _count_cases,
        hints=(
            "Four linear layers: queries, keys, values and the output.",
            "A layer from a to b has a * b weights, and b biases if it has any. The output layer "
            "goes from hidden to hidden and always has biases here.",
            "The number of heads does not matter: the heads share out the same matrices.",
        ),
    ),
]
