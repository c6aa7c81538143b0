"""Lesson 05, the graded homework: `SelfAttention` and `MultiHeadSelfAttention`.

The tasks of one class are judged each on its own: a slip costs the step that it is made in, and an
answer that scales wrongly can still get the points for its mask and its output.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch

from autograder.calls import Call, Draw, Outcome
from autograder.exercise import Exercise, Finding, Sight
from autograder.judge import compare, difference, name_mistake

PROJECTIONS = ("q", "k", "v")
LAYERS = (*PROJECTIONS, "mix")
STEPS = ("scores", "mask", "output")  # of MultiHeadSelfAttention; each has a task of its own


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
    """Whether it is the probabilities that are dropped: not single features, and rescaled.

    What is expected is random too: only its mean is compared. It may be what a mistake in an
    earlier step gives; where that says nothing about dropout, nothing is said of it.
    """
    (call,), (got,), (expected,) = sight.calls, sight.outcomes, sight.expected
    value = got.value
    if got.error or not isinstance(value, torch.Tensor) or value.shape != expected.value.shape:
        return compare(replace(sight, mistakes=()))
    found, usual = _shares(call, value), _shares(call, expected.value)
    if _uneven(usual) or not usual.mean().abs() > 1e-3:
        return []
    if _uneven(found):
        text = (
            "In training, single features of the values or of the heads' outputs are dropped. "
            "Apply `self.dropout` to the probabilities."
        )
        return [Finding("dropout.on features", "wrong", text, tried=call.says)]
    if not 0.7 < found.mean() / usual.mean() < 1.3:
        text = (
            "In training, what is kept is not divided by 1 - p, so that sums come out too small "
            "or too large. `nn.Dropout` does that."
        )
        return [Finding("dropout.not rescaled", "wrong", text, tried=call.says)]
    return []


def _shares(call: Call, value: torch.Tensor) -> torch.Tensor:
    """How much of its value each feature of each head shows: [batch_size, seq_len, heads, size]."""
    return (value / call.weights["v.bias"]).unflatten(-1, (call.init[2], -1))


def _uneven(shares: torch.Tensor) -> bool:
    """Whether the features of one head differ in what they show."""
    return bool((shares - shares[..., :1]).abs().max() > 1e-3)


# --- one task, one step --------------------------------------------------------------------------
def _judge_step(step: str):
    """The judge of a task before the last: right where its step is, whatever other steps do.

    What is wrong is this step's unless a known mistake explains it that belongs to another.
    """

    def judge(sight: Sight) -> list[Finding]:
        if step == "mask" and (_mask_right(sight) or _probabilities_right(sight)):
            named = None if _same_by_default(sight) else name_mistake(sight)
            return compare(sight, named) if named and "mask" in _steps(sight, named[0]) else []
        if _probabilities_right(sight) or _output_right(sight):
            return []
        for check, message, steps in _explanations(sight):
            return compare(sight, _seen(step, sight, check, message)) if step in steps else []
        return compare(sight, _seen(step, sight))

    return judge


def _judge_output(sight: Sight) -> list[Finding]:
    """The judge of the last step: right where it makes the right thing of what it was given.

    Where an earlier step is wrong by a known mistake, what follows is compared with what right
    steps make of that.
    """
    found = _judge_all(sight)
    still = _only(sight, _still)
    if not found or not compare(still):
        return found
    if found[0].check in sight.stages and "output" in _steps(sight, found[0].check):
        return found
    right = _probabilities_right(still)
    for each in sight.mistakes:
        check, text, outcomes = each
        alone = _only(replace(sight, mistakes=(each,)), _still)
        explains = name_mistake(alone) if right else next(_explanations(alone), None)
        if explains and "output" not in _steps(sight, check):
            found = _judge_all(replace(sight, expected=outcomes, mistakes=()))
            if not found:
                return []
    return found


def _judge_all(sight: Sight) -> list[Finding]:
    """What is found in any call. What happens in training only is looked at last, so that other
    mistakes keep their names."""
    found = compare(_only(sight, _still))
    found = found or compare(_only(sight, lambda c: c.train and not _is_spread(c)))
    if not found and any(map(_is_spread, sight.calls)):
        found = _judge_spread(_only(sight, _is_spread))
    return found


def _still(call: Call) -> bool:
    """Whether a call is made in evaluation."""
    return not call.train


def _steps(sight: Sight, check: str) -> list[str]:
    """The steps that a mistake belongs to: all, where nobody says."""
    return sight.stages.get(check, " ".join(STEPS)).split()


def _explanations(sight: Sight) -> Iterator[tuple[str, str, list[str]]]:
    """The known mistakes that could be this one, as (check, message, steps), the likeliest first.

    One that gives the same in all is likelier than one that gives the same probabilities (or the
    same output, where no probabilities came back).
    """
    wholly = name_mistake(sight)
    if wholly is not None:
        yield *wholly, _steps(sight, wholly[0])
    for check, text, outcomes in sight.mistakes:
        if (check, text) != wholly and _alike(sight, outcomes):
            yield check, text, _steps(sight, check)


def _only(sight: Sight, wanted: Callable[[Call], bool]) -> Sight:
    """What was seen of some of the calls."""
    return sight.only(i for i, call in enumerate(sight.calls) if wanted(call))


def _pairs(sight: Sight):
    """The calls that return probabilities, each with what came back and what should have."""
    for call, got, expected in zip(sight.calls, sight.outcomes, sight.expected, strict=True):
        if call.kwargs.get("return_attention"):
            yield call, got, expected


def _probabilities(outcome: Outcome, like: torch.Tensor) -> torch.Tensor | None:
    """The student's probabilities as [batch_size * num_heads, seq_len, seq_len], if they are.

    Where an error came up later, what the variables held: probabilities, or scores for them.
    """
    value = outcome.value
    if isinstance(value, tuple | list) and len(value) == 2:
        return _in_form(value[1], like)
    held = [t for t in (_in_form(each, like) for each in outcome.held) if t is not None]
    held = [p for t in held if t.is_floating_point() for p in (t, t.softmax(-1))]
    found = next((p for p in held if difference(p, like, 1e-4) is None), None)
    return found if found is not None else next(filter(_sums_to_1, held), None)


def _in_form(value, like: torch.Tensor) -> torch.Tensor | None:
    if not isinstance(value, torch.Tensor) or value.numel() != like.numel():
        return None
    return value.reshape(like.shape)


def _sums_to_1(probs: torch.Tensor) -> bool:
    sums = probs.sum(-1)
    return torch.allclose(sums, torch.ones_like(sums), rtol=0, atol=1e-4)


def _alike(sight: Sight, others: Sequence[Outcome]) -> bool:
    """Whether a mistake gives the probabilities that came back, whatever else it gives; where none
    came back, the output."""
    places = [i for i, call in enumerate(sight.calls) if call.kwargs.get("return_attention")]
    like = {i: sight.expected[i].value[1] for i in places}
    probs = {i: _probabilities(sight.outcomes[i], like[i]) for i in places}
    if any(p is None for p in probs.values()):
        return _output_right(replace(sight, expected=others))
    for i in places:
        other = _probabilities(others[i], like[i])
        if other is None or not _same_in_any_order(sight, i, probs[i], other):
            return False
    return bool(places)


def _same_in_any_order(sight: Sight, place: int, probs: torch.Tensor, want: torch.Tensor) -> bool:
    """Whether probabilities are the same, in batch-major or in head-major order."""
    batch_size, seq_len = sight.calls[place].args[0].shape[:2]
    by_head = want.reshape(batch_size, -1, seq_len, seq_len).transpose(0, 1).reshape(want.shape)
    return any(difference(probs, w, sight.exercise.rtol) is None for w in (want, by_head))


def _probabilities_right(sight: Sight) -> bool:
    """Whether the probabilities are right, in batch-major or in head-major order."""
    for place, call in enumerate(sight.calls):
        if call.kwargs.get("return_attention"):
            want = sight.expected[place].value[1]  # [batch_size * num_heads, seq_len, seq_len]
            probs = _probabilities(sight.outcomes[place], want)
            if probs is None or not _same_in_any_order(sight, place, probs, want):
                return False
    return True


def _outputs(value) -> Sequence:
    """What of a returned value may be the output."""
    return value if isinstance(value, tuple | list) else [value]


def _output_right(sight: Sight) -> bool:
    """Whether the outputs are right, in whatever form the probabilities come beside them."""
    for got, expected in zip(sight.outcomes, sight.expected, strict=True):
        if got.error or expected.error:
            return False
        want, parts = _outputs(expected.value)[0], _outputs(got.value)
        if all(difference(part, want, sight.exercise.rtol) is not None for part in parts):
            return False
    return True


def _same_by_default(sight: Sight) -> bool:
    """Whether a call that says nothing of the mask gives what it gives with causal=False."""
    pairs = itertools.pairwise(zip(sight.calls, sight.outcomes, strict=True))
    for (one, first), (other, second) in pairs:
        asked = "causal" in one.init_kwargs and "causal" not in other.init_kwargs
        if asked and not (first.error or second.error):
            same = (difference(part, second.value, 1e-4) for part in _outputs(first.value))
            if isinstance(second.value, torch.Tensor) and None not in same:
                return False
    return True


def _mask_right(sight: Sight) -> bool:
    """Whether exactly the future is hidden when causal, and nothing otherwise.

    Judged from the probabilities' pattern, so that it holds whatever the scores are.
    """
    return _pattern(sight) == ""


def _seen(step: str, sight: Sight, *named: str) -> tuple[str, str] | None:
    """A name for what is wrong, as (check, message): a known mistake's, or for a mask what the
    probabilities show of it. An error in the mask's own lines says more than what it left."""
    if step != "mask":
        return named or None
    if any(o.error for o in sight.outcomes):
        return None
    if named:
        return named
    said = {
        "open": "With causal=True later tokens keep a share of the attention.",
        "closed": "With causal=True more is hidden than the later tokens.",
        "always": "Tokens are hidden although causal is False.",
        "sums": "The rows of the probabilities do not sum to 1 where tokens are hidden.",
    }
    found = _pattern(sight)
    return (f"mask.{found}", said[found]) if found in said else None


def _pattern(sight: Sight) -> str:
    """What is wrong with the pattern of what is hidden, in a word; '' where nothing is."""
    for call, got, expected in _pairs(sight):
        probs = _probabilities(got, expected.value[1])
        if probs is None or not torch.isfinite(probs).all():
            return "unseen"
        future = torch.ones(probs.shape[-2:]).triu(1).bool()
        hidden = (probs.abs() < 1e-7).all(0)
        if not call.init_kwargs.get("causal"):
            if hidden.any():
                return "always"
        elif (future & ~hidden).any():
            return "open"
        elif (hidden & ~future).any():
            return "closed"
        # The last token sees all others: where its row does not sum to 1, no mask is to blame.
        if _sums_to_1(probs[:, -1:]) and not _sums_to_1(probs):
            return "sums"
    return ""


EXERCISES = [
    Exercise(
        "self_attention.init",
        "SelfAttention",
        _init_cases,
        judge=_judge_init,
        layers=PROJECTIONS,
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
        layers=PROJECTIONS,
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
        judge=_judge_step("scores"),
        stages=STEPS,
        layers=LAYERS,
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
        judge=_judge_step("mask"),
        stages=STEPS,
        layers=LAYERS,
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
        judge=_judge_output,
        stages=STEPS,
        layers=LAYERS,
        hints=(
            "Undo the split step by step, in reverse order: the heads go back beside head_size.",
            "After `transpose`, memory is not in order: `.contiguous().view(...)` or "
            "`.reshape(...)` merges the heads. Then comes `self.mix`.",
            "Return probabilities as [batch_size * num_heads, seq_len, seq_len], batch by batch: "
            "the probabilities of head h of item b stand at b * num_heads + h.",
        ),
    ),
]
