"""Lesson 05, the graded homework: `SelfAttention` and `MultiHeadSelfAttention`.

The tasks of one class are judged each on its own: an answer that scales wrongly can still get the
point for its mask. What a task is worth when a later step is wrong is decided by `STAGES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from autograder.asking import Exercise, Finding, Sight
from autograder.calls import Call, Draw, Outcome
from autograder.judge import compare, difference

PROJECTIONS = ("q", "k", "v")

# A named mistake belongs to one step of the computation; the steps before it were right.
STAGES = ("init", "scores", "mask", "output")


def _weights(draw: Draw, input_size: int, hidden: int, mix: bool) -> dict:
    weights = {}
    for name in PROJECTIONS:
        weights.update(draw.linear(name, input_size, hidden))
    if mix:
        weights.update(draw.linear("mix", hidden, hidden))
    return weights


# --- SelfAttention -------------------------------------------------------------------------------
def _init_cases(draw: Draw) -> list[Call]:
    sizes = input_size, hidden = tuple(draw.sizes(2, 3, 13))
    says = "SelfAttention(input_size, hidden) with two different sizes"
    built = Call("SelfAttention", init=sizes, inspect=True, says=says)
    x = draw.normal(4, input_size)
    weights = _weights(draw, input_size, hidden, mix=False)
    # A layer's shapes are what the student's process says they are; its values have to be right.
    alone = [
        Call("SelfAttention", (x,), init=sizes, weights=weights, method=name)
        for name in PROJECTIONS
    ]
    return [built, *alone]


def _judge_init(sight: Sight) -> list[Finding]:
    """The layers q, k, v exist, learn, have the right widths, and are linear with a bias."""
    got, expected = sight.outcomes[0], sight.expected[0]
    if got.error is not None:
        return compare(sight)
    findings = []
    for name in expected.parameters:
        layer, _, kind = name.partition(".")
        if layer not in {n.partition(".")[0] for n in got.parameters}:
            text = f"There is no layer `{layer}` that learns. Make it an `nn.Linear` in __init__."
            return [Finding("missing layer", "wrong", text)]
        if name not in got.parameters:
            text = f"`{layer}` has no {kind}. An `nn.Linear` has one unless it is switched off."
            findings.append(Finding("lost bias", "wrong", text))
        elif got.parameters[name] != expected.parameters[name]:
            text = (
                f"`{name}` has shape {list(got.parameters[name])}, expected "
                f"{list(expected.parameters[name])}: the layer goes from input_size to hidden."
            )
            findings.append(Finding("wrong width", "wrong", text))
    alone = zip(PROJECTIONS, sight.outcomes[1:], sight.expected[1:], strict=True)
    for name, got, expected in alone:
        if got.error or difference(got.value, expected.value, sight.exercise.rtol):
            text = f"`{name}` has the right size, but it is not `x @ weight.T + bias` of its own."
            findings.append(Finding("wrong layer", "wrong", text))
    return findings[:1]


def _forward_cases(draw: Draw) -> list[Call]:
    calls = []
    for gradients in (False, False, True):
        batch_size, seq_len, input_size, hidden = draw.sizes(4)
        x = draw.normal(batch_size, seq_len, input_size)
        calls.append(
            Call(
                "SelfAttention",
                (x,),
                init=(input_size, hidden),
                gradients=gradients,
                weights=_weights(draw, input_size, hidden, mix=False),
                says=f"{batch_size} sequences of {seq_len} tokens, input_size {input_size}, "
                f"hidden {hidden}",
            )
        )
    # A `squeeze` somewhere shows only where a dimension is 1.
    x = draw.normal(1, 1, input_size)
    return [*calls, replace(calls[-1], args=(x,), gradients=False, says="1 sequence of 1 token")]


# --- MultiHeadSelfAttention ----------------------------------------------------------------------
def _multi_head_cases(*kinds: bool, zeros: bool = False, training: bool = False):
    """Calls with and without the mask, with and without probabilities, on the same weights.

    zeros: one more causal call, of the other length. training: looks at gradients, at single
    tokens and heads, and at what dropout does, in training and in evaluation.
    """

    def cases(draw: Draw) -> list[Call]:
        calls = []
        for causal in kinds:
            seq_len = draw.choice((5, 7))  # fewer tokens could not tell all masks apart
            others = draw.random.sample([p for p in (2, 3, 5, 7, 11) if p != seq_len], 4)
            call = _multi_head_call(draw, seq_len, *others, causal)
            calls.append(replace(call, kwargs={"return_attention": True}))
            given = {"causal": True} if causal else {}  # nothing is hidden unless it is asked for
            calls.append(replace(call, init_kwargs=given, gradients=training))
            if causal and zeros:
                calls.append(_zeros_call(draw, 12 - seq_len, *others))
        if training:
            calls += [*_dropout_calls(calls[-1]), _single_call(draw), _spread_call(draw)]
        return calls

    return cases


def _multi_head_call(draw: Draw, seq_len, batch_size, input_size, num_heads, head_size, causal):
    hidden = num_heads * head_size
    weights = _weights(draw, input_size, hidden, mix=True)
    return Call(
        "MultiHeadSelfAttention",
        (draw.normal(batch_size, seq_len, input_size),),
        {},
        (input_size, hidden, num_heads),
        {"causal": causal},
        weights,
        says=f"{batch_size} sequences of {seq_len} tokens, {num_heads} heads of size "
        f"{head_size}, causal={causal}",
    )


def _zeros_call(draw: Draw, seq_len, batch_size, input_size, num_heads, head_size) -> Call:
    """Scores that happen to be 0 and are in sight: a mask made from the scores hides them."""
    call = _multi_head_call(draw, seq_len, batch_size, input_size, num_heads, head_size, True)
    call.args[0][:, 1] = 0
    weights = {n: w * (n not in ("q.bias", "k.bias")) for n, w in call.weights.items()}
    return replace(
        call,
        kwargs={"return_attention": True},
        weights=weights,
        says=f"{call.says}, one token all zeros",
    )


def _dropout_calls(call: Call) -> list[Call]:
    """Every probability dropped: in evaluation nothing is; in training what is left is the last
    layer's bias, however the random numbers fall."""
    call = replace(call, init_kwargs={"dropout": 1.0}, gradients=False)
    return [
        replace(call, says="dropout=1.0 in evaluation"),
        replace(call, train=True, says="dropout=1.0 while training"),
    ]


def _single_call(draw: Draw) -> Call:
    """A `squeeze` somewhere shows only where a dimension is 1."""
    call = _multi_head_call(draw, 1, 1, *draw.sizes(1), 1, *draw.sizes(1), False)
    return replace(call, kwargs={"return_attention": True}, says="1 sequence of 1 token, 1 head")


def _spread_call(draw: Draw) -> Call:
    """Half of the probabilities dropped where every token has the same values, which come out as
    they are: a head's output is those values times one number."""
    call = _multi_head_call(draw, 7, 13, 5, 3, 4, False)
    hidden = call.init[1]
    weights = dict(call.weights)
    weights["v.weight"] = torch.zeros_like(weights["v.weight"])
    weights["v.bias"] = draw.uniform(hidden, low=1.0, high=2.0)
    weights["mix.weight"], weights["mix.bias"] = torch.eye(hidden), torch.zeros(hidden)
    kwargs = {"dropout": 0.5}
    says = "dropout=0.5 while training"
    return replace(
        call, init_kwargs=kwargs, weights=weights, train=True, seed=draw.seed(), says=says
    )


def _is_spread(call: Call) -> bool:
    return call.train and call.init_kwargs["dropout"] < 1


def _judge_spread(sight: Sight) -> list[Finding]:
    """Whether it is the probabilities that are dropped: not single features, and rescaled."""
    (call,), (got,), (expected,) = sight.calls, sight.outcomes, sight.expected
    value = got.value
    if got.error or not isinstance(value, torch.Tensor) or value.shape != expected.value.shape:
        return compare(replace(sight, mistakes=()))
    num_heads = call.init[2]
    share = (value / call.weights["v.bias"]).unflatten(-1, (num_heads, -1))
    if (share - share[..., :1]).abs().max() > 1e-3:
        text = (
            "In training, single features of the values or of the heads' outputs are dropped. "
            "Apply `self.dropout` to the probabilities."
        )
        return [Finding("dropout.on features", "wrong", text, tried=call.says)]
    if not 0.7 < share.mean() < 1.3:
        text = (
            "In training, what is kept is not divided by 1 - p, so that sums come out too small "
            "or too large. `nn.Dropout` does that."
        )
        return [Finding("dropout.not rescaled", "wrong", text, tried=call.says)]
    return []


def _judge_stage(stage: str):
    """The judge of one task: right up to and with this step, whatever later steps do."""

    def judge(sight: Sight) -> list[Finding]:
        part = _only(sight, lambda c: not c.train)
        if stage != "output":
            if _probabilities_right(part) or not compare(part):
                return []
            if stage == "mask" and _mask_right(part):
                return []
        # What happens in training only is looked at last, so that other mistakes keep their names.
        findings = compare(part) or compare(_only(sight, lambda c: c.train and not _is_spread(c)))
        if not findings and any(map(_is_spread, sight.calls)):
            findings = _judge_spread(_only(sight, _is_spread))
        if not findings:
            return []
        named = findings[0].check
        if STAGES.index(STAGE_OF.get(named, "scores")) > STAGES.index(stage):
            return []
        return findings

    return judge


def _only(sight: Sight, wanted: Callable[[Call], bool]) -> Sight:
    """What was seen of some of the calls."""
    chosen = [i for i, call in enumerate(sight.calls) if wanted(call)]

    def pick(items):
        return tuple(items[i] for i in chosen)

    named = tuple((c, m, pick(o)) for c, m, o in sight.mistakes)
    return replace(
        sight,
        calls=pick(sight.calls),
        outcomes=pick(sight.outcomes),
        expected=pick(sight.expected),
        mistakes=named,
    )


def _pairs(sight: Sight):
    for call, got, expected in zip(sight.calls, sight.outcomes, sight.expected, strict=True):
        if call.kwargs.get("return_attention"):
            yield call, got, expected


def _probabilities(outcome: Outcome, like: torch.Tensor) -> torch.Tensor | None:
    """The student's probabilities as [batch_size * num_heads, seq_len, seq_len], if they are."""
    value = outcome.value
    if not isinstance(value, tuple | list) or len(value) != 2:
        return None
    probs = value[1]
    if not isinstance(probs, torch.Tensor) or probs.numel() != like.numel():
        return None
    return probs.reshape(like.shape)


def _probabilities_right(sight: Sight) -> bool:
    """Whether the probabilities are right, in batch-major or in head-major order."""
    for call, got, expected in _pairs(sight):
        want = expected.value[1]  # [batch_size * num_heads, seq_len, seq_len]
        probs = _probabilities(got, want)
        if probs is None:
            return False
        batch_size = call.args[0].shape[0]
        seq_len = want.shape[-1]
        by_head = want.reshape(batch_size, -1, seq_len, seq_len).transpose(0, 1)
        if difference(probs, want, sight.exercise.rtol) is None:
            continue
        if difference(probs, by_head.reshape(want.shape), sight.exercise.rtol) is not None:
            return False
    return True


def _mask_right(sight: Sight) -> bool:
    """Whether exactly the future is hidden when causal, and nothing otherwise.

    Judged from the probabilities' pattern, so that it holds whatever the scores are.
    """
    for call, got, expected in _pairs(sight):
        probs = _probabilities(got, expected.value[1])
        if probs is None or not torch.isfinite(probs).all():
            return False
        future = torch.ones(probs.shape[-2:]).triu(1).bool()
        hidden = (probs.abs() < 1e-7).all(0)
        sums = probs.sum(-1)
        if not torch.allclose(sums, torch.ones_like(sums), rtol=0, atol=1e-4):
            return False
        if call.init_kwargs.get("causal"):
            if not torch.equal(hidden, future):
                return False
        elif hidden.any():
            return False
    return True


# Which step a named mistake belongs to; any other belongs to the first, 'scores'.
STAGE_OF = {
    **dict.fromkeys(
        (
            "mask.none",
            "mask.diagonal hidden",
            "mask.one step late",
            "mask.inverted",
            "mask.after softmax",
            "mask.filled with 0",
            "mask.NaN",
            "mask.always",
            "mask.from the scores",
        ),
        "mask",
    ),
    **dict.fromkeys(
        (
            "softmax.dim",
            "softmax.twice",
            "merge.scrambled",
            "merge.mean",
            "merge.sum",
            "mix.missing",
            "mix.twice",
            "mix.transposed",
            "mix.lost bias",
            "dropout.missing",
            "dropout.on scores",
            "dropout.on the output",
            "dropout.in evaluation",
            "dropout.on features",
            "dropout.not rescaled",
            "probabilities.head-major",
            "probabilities.4-D",
            "probabilities.missing",
            "probabilities.are scores",
            "probabilities.transposed",
            "probabilities.averaged",
            "output.order",
        ),
        "output",
    ),
}

EXERCISES = [
    Exercise(
        "self_attention.init",
        "SelfAttention",
        _init_cases,
        judge=_judge_init,
        hints=(
            "Three projections learn: one each for queries, keys and values. Which PyTorch layer "
            "is a matrix product plus a bias?",
            "`nn.Linear(a, b)` maps vectors of size a to vectors of size b. Here a is input_size. "
            "Do not forget `super().__init__()` before you set a layer.",
            "Name the layers `self.q`, `self.k` and `self.v`; all three go from input_size to "
            "hidden. The scale, the square root of hidden, can be kept here too.",
        ),
    ),
    Exercise(
        "self_attention.forward",
        "SelfAttention",
        _forward_cases,
        hints=(
            "Four steps: project, score, turn scores into probabilities, average the values.",
            "x has a batch in front. `transpose(1, 2)` (or `transpose(-2, -1)`) swaps tokens and "
            "features and leaves the batch alone; `@` and `torch.bmm` work batch by batch.",
            "scores = queries times transposed keys, divided by the square root of hidden; "
            "softmax over the last dimension, which runs over the keys; then times the values.",
        ),
    ),
    Exercise(
        "multi_head.scores",
        "MultiHeadSelfAttention",
        _multi_head_cases(False, False),
        judge=_judge_stage("scores"),
        hints=(
            "Project once for all heads, then cut the last dimension into num_heads pieces.",
            "[batch_size, seq_len, hidden] -> view [batch_size, seq_len, num_heads, head_size] -> "
            "transpose so that the heads stand beside the batch. A reshape alone scrambles.",
            "Scale by the square root of head_size, not of hidden: each score is a sum of "
            "head_size products.",
        ),
    ),
    Exercise(
        "multi_head.mask",
        "MultiHeadSelfAttention",
        _multi_head_cases(True, False, zeros=True),
        judge=_judge_stage("mask"),
        hints=(
            "Token i may look at tokens 0 to i, itself included. Which entries of a "
            "[seq_len, seq_len] table does that hide?",
            "`torch.triu(ones, diagonal=1)` has ones strictly above the diagonal. Make it on the "
            "device of the scores.",
            "Fill the hidden scores with minus infinity before the softmax, only if self.causal.",
        ),
    ),
    Exercise(
        "multi_head.output",
        "MultiHeadSelfAttention",
        _multi_head_cases(False, False, training=True),
        judge=_judge_stage("output"),
        hints=(
            "Undo the split step by step, in reverse order: the heads go back beside head_size.",
            "After `transpose`, memory is not in order: `.contiguous().view(...)` or "
            "`.reshape(...)` merges the heads. Then comes `self.mix`.",
            "Return probabilities as [batch_size * num_heads, seq_len, seq_len], batch by batch: "
            "the probabilities of head h of item b stand at b * num_heads + h.",
        ),
    ),
]
