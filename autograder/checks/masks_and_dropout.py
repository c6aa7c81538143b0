"""Lesson 03: who may look at whom, and what dropout does to the weights."""

from __future__ import annotations

import math

import torch

from autograder.course.asking import Exercise, Finding, Sight
from autograder.course.calls import Call, Draw, Outcome
from autograder.judging.compare import compare, difference

PROJECTIONS = ("q", "k", "v")


def _wrong(check: str, message: str, call: Call | None = None) -> list[Finding]:
    return [Finding(check, "wrong", message, tried=call.says if call else "")]


# --- the causal mask, two ways -------------------------------------------------------------------
def _causal_cases(name: str):
    """Batches of scores; some scores are exactly 0, for masks that are made from the scores."""

    def cases(draw: Draw) -> list[Call]:
        calls = []
        for zeros in (False, True):
            batch_size, seq_len = draw.sizes(2, 3, 11)
            scores = draw.normal(batch_size, seq_len, seq_len, scale=1.5)
            if zeros:
                scores = scores * draw.integers(0, 2, batch_size, seq_len, seq_len)
            says = f"{batch_size} sequences of {seq_len} tokens"
            says += ", many scores exactly 0" if zeros else ""
            calls.append(Call(name, (scores,), says=says))
        return calls

    return cases


# --- fill values ---------------------------------------------------------------------------------
def _half_cases(draw: Draw) -> list[Call]:
    calls = []
    kinds = ((torch.float16, 0.0), (torch.bfloat16, 0.0), (torch.float32, -2e5))
    for dtype, shift in kinds:
        seq_len = draw.choice((5, 7, 11))
        scores = draw.normal(seq_len, seq_len) + shift * torch.ones(seq_len, seq_len).tril()
        hidden = torch.ones(seq_len, seq_len).triu(1).bool()
        says = f"{seq_len} tokens, {str(dtype).removeprefix('torch.')} scores"
        says += f", those in sight around {shift:.0f}" if shift else ""
        calls.append(Call("masked_softmax", (scores.to(dtype), hidden), says=says))
    return calls


def _judge_half(sight: Sight) -> list[Finding]:
    """As usual, but a fill value that the dtype cannot hold has a name."""
    for call, got in zip(sight.calls, sight.outcomes, strict=True):
        text = got.error["message"] if got.error else ""
        if "cannot be converted" in text or "overflow" in text:
            return _wrong(
                "fill.overflow",
                "The fill value does not fit into the dtype of the "
                "scores. float16 ends at 65504; ask `torch.finfo`.",
                call,
            )
    return compare(sight)


# --- leaks ---------------------------------------------------------------------------------------
def _leak_cases(draw: Draw) -> list[Call]:
    calls = []
    kinds = (
        "no token looks ahead",
        "some tokens look ahead",
        "one token looks ahead",
        "each token sees itself alone",
    )
    for kind in kinds:
        seq_len, size = draw.sizes(2, 5, 13)
        moved = draw.integers(0, 2, seq_len, seq_len).bool()
        if kind != "some tokens look ahead":
            moved = moved.tril()
        if kind == "each token sees itself alone":
            moved = torch.eye(seq_len).bool()
        if kind == "one token looks ahead":
            moved[draw.integer(0, 1), draw.integer(2, seq_len - 1)] = True
        outputs = draw.normal(seq_len, size)
        changed = outputs.expand(seq_len, seq_len, size).clone()  # changed token, output, feature
        changed += draw.normal(seq_len, seq_len, size, scale=1e-6)
        i, j = moved.nonzero().T
        feature = draw.integers(0, size, len(i))
        sign = draw.integers(0, 2, len(i)) * 2 - 1
        changed[j, i, feature] += sign * draw.uniform(len(i), low=0.1, high=1.0)
        says = f"{seq_len} tokens, {size} features, {kind}"
        calls.append(Call("leak_matrix", (outputs, changed, 1e-4), says=says))
    # One feature up, another down by as much: their sum does not move.
    changed = outputs.expand(seq_len, seq_len, size).clone()
    changed[j, i, 0] += 0.5
    changed[j, i, 1] -= 0.5
    says = f"{seq_len} tokens, {size} features, two of them move in opposite directions"
    return [*calls, Call("leak_matrix", (outputs, changed, 1e-4), says=says)]


# --- padding, rows with nothing left --------------------------------------------------------------
def _padding_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        batch_size, seq_len = draw.sizes(2, 3, 13)
        scores = draw.normal(batch_size, seq_len, seq_len, scale=1.5)
        lengths = draw.integers(1, seq_len + 1, batch_size)
        lengths[0], lengths[1], lengths[2] = seq_len - 1, seq_len, 1
        says = f"{batch_size} sequences of lengths 1 to {seq_len}"
        calls.append(Call("padded_weights", (scores, lengths), says=says))
    return calls


def _empty_cases(draw: Draw) -> list[Call]:
    calls = []
    for gradients in (False, True, True):
        batch_size, seq_len = draw.sizes(2, 3, 11)
        scores = draw.normal(batch_size, seq_len, seq_len, scale=1.5)
        hidden = draw.integers(0, 2, batch_size, seq_len, seq_len).bool()
        hidden[:, 0] = True  # nothing left to look at
        hidden[:, 1] = False
        hidden[0, 2] = True
        says = f"{batch_size} sequences of {seq_len} tokens, some rows wholly hidden"
        says += ", with gradients" if gradients else ""
        calls.append(Call("safe_weights", (scores, hidden), gradients=gradients, says=says))
    return calls


# --- the mask as a buffer ------------------------------------------------------------------------
def _buffer_cases(draw: Draw) -> list[Call]:
    calls = []
    for whole in (False, False, True):
        seq_len, context_length = sorted(draw.sizes(2, 3, 23))
        seq_len = context_length if whole else seq_len
        says = f"{seq_len} tokens, context_length {context_length}"
        calls.append(Call("CausalMask", (seq_len,), init=(context_length,), says=says))
    return calls


def _judge_buffer(sight: Sight) -> list[Finding]:
    """The mask is a buffer, is not learned and not stored, and is right."""
    for call, got, expected in zip(sight.calls, sight.outcomes, sight.expected, strict=True):
        if got.error is not None:
            continue
        if got.parameters:
            return _wrong(
                "buffer.is a parameter",
                "The mask is a parameter: an optimiser would train it. Register it as a buffer.",
                call,
            )
        if not got.buffers:
            return _wrong(
                "buffer.not registered",
                "The module has no buffer, so `.to(device)` "
                "leaves the mask behind. Use `self.register_buffer`.",
                call,
            )
        if got.state:
            return _wrong(
                "buffer.stored",
                "The mask is stored in the state_dict. It can be made "
                "again from context_length: register it with persistent=False.",
                call,
            )
        if "hidden" not in got.buffers:
            return _wrong("buffer.name", "The buffer should be called `hidden`.", call)
        if got.buffers["hidden"] != expected.buffers["hidden"]:
            return _wrong(
                "buffer.shape", "The buffer should be [context_length, context_length].", call
            )
    return compare(sight)


# --- dropout -------------------------------------------------------------------------------------
def _dropout_cases(draw: Draw) -> list[Call]:
    p = draw.choice((0.1, 0.2, 0.3))
    weights = draw.uniform(5, 41, 37, low=0.1, high=1.0)
    small = draw.uniform(*draw.sizes(3), low=0.1, high=1.0)
    trained = f"training, p={p}"
    return [
        Call("dropout", (small, p, False), seed=draw.seed(), says=f"evaluation, p={p}"),
        Call("dropout", (small, 0.0, True), seed=draw.seed(), says="training, p=0"),
        Call("dropout", (weights, p, True), seed=draw.seed(), says=trained),
        Call("dropout", (weights, p, True), seed=draw.seed(), says=trained + " again"),
    ]


def _judge_dropout(sight: Sight) -> list[Finding]:
    """Still in evaluation; in training each weight is 0 or rescaled, alone and at random."""
    errors = [i for i, o in enumerate(sight.outcomes) if o.error is not None]
    if errors:
        return compare(sight.only(errors[:1]))
    still, nothing, first, second = sight.outcomes
    weights, p, _ = sight.calls[2].args
    for call, got in zip(sight.calls[2:], (first, second), strict=True):
        found = _judge_kept(call, got, weights, p)
        if found:
            return found
    if torch.equal(first.value == 0, second.value == 0):
        return _wrong(
            "dropout.frozen",
            "Two calls drop the same places. The mask must be drawn anew at each call.",
            sight.calls[3],
        )
    if difference(still.value, sight.expected[0].value, 1e-5) is not None:
        return _wrong(
            "dropout.in eval",
            "With training=False the weights must come back as they "
            "are: neither dropped nor rescaled.",
            sight.calls[0],
        )
    if difference(nothing.value, sight.expected[1].value, 1e-5) is not None:
        return _wrong("dropout.p is 0", "With p=0 nothing may change.", sight.calls[1])
    if any(o.changed for o in sight.outcomes):
        return _wrong(
            "dropout.input changed",
            "Your code changes its input in place. Work on a copy.",
            sight.calls[2],
        )
    return []


def _judge_kept(call: Call, got: Outcome, weights: torch.Tensor, p: float) -> list[Finding]:
    """One training call: which are dropped, how many, and what became of the others."""
    value = got.value
    if not isinstance(value, torch.Tensor) or value.shape != weights.shape:
        return _wrong("dropout.shape", "The result should be a tensor of the weights' shape.", call)
    value = value.double()
    if not value.isfinite().all():
        return _wrong("dropout.not finite", "There are values that are not finite.", call)
    dropped = value == 0
    ratio = (value / weights.double())[~dropped]
    share, count = dropped.double().mean().item(), dropped.numel()
    slack = 6 * math.sqrt(p * (1 - p) / count)
    if share == 0 or share == 1:
        return _wrong("dropout.missing", "In training nothing is dropped, or everything.", call)
    if abs(share - (1 - p)) < slack:
        return _wrong(
            "dropout.p is the share kept",
            "p is the probability of being dropped; here it is the probability of being kept.",
            call,
        )
    if _same(ratio, 1.0):
        return _wrong(
            "dropout.not rescaled",
            "The weights that stay are left as they are, so "
            "their expected value shrinks. Divide them by 1 - p.",
            call,
        )
    if _same(ratio, 1 - p):
        return _wrong(
            "dropout.rescaled the wrong way",
            "The weights that stay are multiplied by 1 - p instead of divided by it.",
            call,
        )
    if _same(ratio, 1 / p):
        return _wrong(
            "dropout.rescaled by p",
            "The weights that stay are divided by p. Which share of them stays?",
            call,
        )
    sums = value.sum(-1)
    if _same(sums, 1.0) or _same(sums, weights.double().sum(-1)):
        return _wrong(
            "dropout.renormalised",
            "The rows were normalised again. Dropout keeps the sum of a row right on average only.",
            call,
        )
    if not _same(ratio, 1 / (1 - p)):
        return _wrong(
            "dropout.values",
            "A weight that stays is neither kept nor rescaled by the "
            "one factor that keeps its expected value.",
            call,
        )
    if _together(dropped, p):
        return _wrong(
            "dropout.not one by one",
            "Whole rows, columns or sequences are dropped "
            "together. Each weight must be dropped on its own.",
            call,
        )
    if abs(share - p) > slack:
        return _wrong("dropout.share", "The share that is dropped is not p.", call)
    return []


def _same(values: torch.Tensor, wanted) -> bool:
    return bool(((values - wanted).abs() < 1e-4 * (1 + torch.as_tensor(wanted).abs())).all())


def _together(dropped: torch.Tensor, p: float) -> bool:
    """Whether neighbours share their fate more often than independent ones would."""
    alike = p**2 + (1 - p) ** 2
    for dim in range(dropped.dim()):
        same = dropped == dropped.roll(1, dim)
        if same.double().mean() > alike + 6 * math.sqrt(alike * (1 - alike) / same.numel()):
            return True
    return False


# --- in place ------------------------------------------------------------------------------------
def _prune_cases(draw: Draw) -> list[Call]:
    calls = []
    for gradients in (True, False, True):
        batch_size, seq_len = draw.sizes(2, 3, 11)
        scores = draw.normal(batch_size, seq_len, seq_len)
        floor = round(0.6 / seq_len, 3)
        says = f"{batch_size} sequences of {seq_len} tokens, floor {floor}"
        says += ", with gradients" if gradients else ""
        calls.append(Call("prune", (scores, floor), gradients=gradients, says=says))
    return calls


def _judge_in_place(sight: Sight) -> list[Finding]:
    """As usual; errors that an in-place edit raises are told apart."""
    for call, got in zip(sight.calls, sight.outcomes, strict=True):
        text = got.error["message"] if got.error else ""
        if "modified by an inplace operation" in text:
            return _wrong(
                "in-place.softmax output",
                "The output of the softmax was edited in "
                "place, and the backward pass needs it as it was: the softmax's "
                "derivative is made of its output. Make a new tensor.",
                call,
            )
        if "leaf Variable" in text:
            return _wrong(
                "in-place.input",
                "The scores that came in were edited in place. Make a new tensor.",
                call,
            )
    return compare(sight)


# --- the causal head -----------------------------------------------------------------------------
def _attention_cases(draw: Draw) -> list[Call]:
    calls = []
    for whole, gradients, dropout in ((True, False, 0.0), (False, False, 0.4), (False, True, 0.0)):
        batch_size, input_size, hidden = draw.sizes(3, 2, 5)
        seq_len, context_length = draw.choice((7, 11)), draw.choice((13, 17))
        context_length = seq_len if whole else context_length
        weights = _weights(draw, input_size, hidden)
        says = (
            f"{batch_size} sequences of {seq_len} tokens, context_length {context_length}, "
            f"dropout {dropout}"
        )
        calls.append(
            Call(
                "CausalAttention",
                (draw.normal(batch_size, seq_len, input_size),),
                init=(input_size, hidden, context_length, dropout),
                weights=weights,
                gradients=gradients,
                seed=draw.seed(),
                says=says,
            )
        )
    # A `squeeze` shows only where a dimension is 1, a mask made from the scores where one is 0.
    x = draw.normal(1, seq_len, input_size)
    x[:, 1] = 0
    weights = {name: w * (not name.endswith("bias")) for name, w in weights.items()}
    init = (input_size, hidden, context_length, 0.0)
    says = f"1 sequence of {seq_len} tokens, one of them all zeros"
    calls.append(Call("CausalAttention", (x,), init=init, weights=weights, says=says))
    # One sequence, many times over, with and without training: what does dropout do to it?
    copies, seq_len, input_size, hidden = 300, 4, 3, 5
    x = draw.normal(1, seq_len, input_size).expand(copies, -1, -1).clone()
    weights = _weights(draw, input_size, hidden)
    for train in (False, True):
        calls.append(
            Call(
                "CausalAttention",
                (x,),
                init=(input_size, hidden, 6, 0.25),
                weights=weights,
                train=train,
                seed=draw.seed(),
                says=f"one sequence {copies} times, dropout 0.25, "
                f"{'training' if train else 'evaluation'}",
            )
        )
    return calls


def _weights(draw: Draw, input_size: int, hidden: int) -> dict[str, torch.Tensor]:
    weights: dict[str, torch.Tensor] = {}
    for name in PROJECTIONS:
        weights.update(draw.linear(name, input_size, hidden))
    return weights


def _judge_attention(sight: Sight) -> list[Finding]:
    """Values in evaluation; what dropout does in training, by its statistics."""
    for got in sight.outcomes:
        for path, problem in got.unset.items():
            return _wrong(
                "projections.layers",
                f"`{path}` could not be set: {problem}. The "
                "layers q, k and v go from input_size to hidden.",
            )
    quiet, training = sight.outcomes[-2], sight.outcomes[-1]
    if quiet.error is None and isinstance(quiet.value, torch.Tensor):
        copies = quiet.value
        if difference(copies, copies[:1].expand_as(copies), 1e-4) is not None:
            return _wrong(
                "dropout.in eval",
                "In evaluation the same sequence gives different "
                "outputs: dropout is still at work. `nn.Dropout` switches itself off; "
                "`F.dropout` must be told `training=self.training`.",
                sight.calls[-2],
            )
    gradients = [i for i, c in enumerate(sight.calls) if c.gradients]
    values = [i for i, c in enumerate(sight.calls) if not (c.gradients or c.train)]
    for part in (values, gradients):
        found = compare(sight.only(part))
        if found:
            return found
    if training.error is not None:
        return compare(sight.only([len(sight.calls) - 1]))
    return _judge_training(sight.calls[-1], training.value, sight.expected[-2].value)


def _judge_training(call: Call, value, quiet: torch.Tensor) -> list[Finding]:
    """Token 0 sees one key, so its output is its value, rescaled, or nothing at all."""
    found = difference(value, quiet, 1e9)
    if found is not None:
        return _wrong(
            f"dropout.{found.kind}",
            "In training the result has another form than in evaluation.",
            call,
        )
    p, copies = 0.25, len(quiet)
    value, quiet = value.double(), quiet.double()
    if difference(value, quiet, 1e-4) is None:
        return _wrong("dropout.missing", "In training nothing is dropped.", call)
    first, alone = value[:, 0], quiet[:, 0]  # [copies, hidden]
    gone = (first.abs() < 1e-6).all(-1)
    if difference(first, alone, 1e-4) is None:
        return _wrong(
            "dropout.on the scores",
            "Dropout acts before the softmax: a score of 0 is "
            "not a weight of 0. Drop weights, after the softmax.",
            call,
        )
    kept = alone / (1 - p)
    if gone.all() or difference(first[~gone], kept[~gone], 1e-4) is not None:
        return _wrong(
            "dropout.not on the weights",
            "Dropout acts on something else than the "
            "attention weights: a token that sees one key only must get its whole "
            "value, rescaled, or nothing.",
            call,
        )
    if abs(gone.double().mean().item() - p) > 6 * math.sqrt(p * (1 - p) / copies):
        return _wrong("dropout.share", "The share that is dropped is not what was asked for.", call)
    spread = value.std(0) / math.sqrt(copies)
    if ((value.mean(0) - quiet[0]).abs() > 6 * spread + 1e-6).any():
        return _wrong(
            "dropout.mean",
            "On average over many calls the outputs are not those of evaluation.",
            call,
        )
    return []


# --- the picture ---------------------------------------------------------------------------------
def _map_cases(draw: Draw) -> list[Call]:
    calls = []
    for _ in range(3):
        batch_size, num_heads, seq_len = draw.sizes(3, 2, 7)
        probs = draw.normal(batch_size * num_heads, seq_len, seq_len, scale=1.5).softmax(-1)
        item, head = draw.integer(1, batch_size - 1), draw.integer(1, num_heads - 1)
        says = f"{batch_size} sequences, {num_heads} heads, {seq_len} tokens"
        args = (probs, item, head, num_heads)
        calls.append(Call("attention_map", args, says=f"{says}: item {item}, head {head}"))
    return calls


EXERCISES = [
    Exercise(
        "masks.renormalise",
        "mask_weights",
        _causal_cases("mask_weights"),
        hints=(
            "Softmax first, as if nothing were forbidden. Then take the future away.",
            "`torch.tril` keeps the lower triangle with the diagonal. What do the rows sum to now?",
            "Divide by the sum over the last dimension, with keepdim=True so that each row is "
            "divided by its own sum.",
        ),
    ),
    Exercise(
        "masks.minus_infinity",
        "mask_scores",
        _causal_cases("mask_scores"),
        hints=(
            "Which score has weight 0? Solve exp(s) = 0.",
            "`torch.ones(n, n).triu(1).bool()` is True strictly above the diagonal. Make the mask "
            "from positions, never from the scores.",
            "`scores.masked_fill(future, -inf)`, without the underscore, and then the softmax "
            "over the last dimension.",
        ),
    ),
    Exercise(
        "masks.half",
        "masked_softmax",
        _half_cases,
        rtol=2e-2,
        judge=_judge_half,
        hints=(
            "float16 ends at 65504. Does -1e9 fit?",
            "`torch.finfo(scores.dtype)` knows the limits of every floating dtype.",
            "Fill with `torch.finfo(scores.dtype).min`, or with minus infinity, which every "
            "floating dtype has. Then the softmax over the last dimension.",
        ),
    ),
    Exercise(
        "masks.leak",
        "leak_matrix",
        _leak_cases,
        hints=(
            "Output i moved if any of its features differs by more than the tolerance.",
            "`(changed - outputs).abs()` is [changed token, output, feature]. Which axis goes "
            "away, and which two must swap?",
            "moved = any over the last axis, transposed to [output, token]. It leaks if there is "
            "anything strictly above the diagonal.",
        ),
    ),
    Exercise(
        "masks.padding",
        "padded_weights",
        _padding_cases,
        hints=(
            "Padding must not be looked at. Is that a matter of rows or of columns?",
            "Compare `torch.arange(seq_len)` with the lengths: keys 0 to length - 1 are real.",
            "`torch.arange(seq_len) >= lengths[:, None]` is [batch_size, seq_len]. Put an axis for "
            "the queries between, and fill with minus infinity.",
        ),
    ),
    Exercise(
        "masks.empty_rows",
        "safe_weights",
        _empty_cases,
        hints=(
            "0 / 0 is not a number. Which rows have nothing to add up?",
            "`hidden.all(dim=-1, keepdim=True)` finds them. Their result should be 0, forwards "
            "and backwards.",
            "Fill with minus infinity by masked_fill, take the softmax, and then masked_fill the "
            "hidden places with 0. Adding -inf instead lets NaN into the gradient.",
        ),
    ),
    Exercise(
        "masks.buffer",
        "CausalMask",
        _buffer_cases,
        judge=_judge_buffer,
        hints=(
            "A tensor that moves with the module but is not learned: which method registers it?",
            "`self.register_buffer(name, tensor, persistent=False)`. Make the tensor bool at once.",
            "Store `torch.ones(c, c).triu(1).bool()` as `hidden`; forward returns its first "
            "seq_len rows and columns.",
        ),
    ),
    Exercise(
        "masks.dropout",
        "dropout",
        _dropout_cases,
        judge=_judge_dropout,
        hints=(
            "Throw a coin for each weight. What must happen to those that stay, so that the "
            "average does not change?",
            "`torch.rand_like(weights) < p` is True with probability p. The share 1 - p stays.",
            "In training: put 0 where the coin says so, and divide the rest by 1 - p. In "
            "evaluation return the weights.",
        ),
    ),
    Exercise(
        "masks.in_place",
        "prune",
        _prune_cases,
        judge=_judge_in_place,
        hints=(
            "Which line has a method that ends in `_`, or an assignment to part of a tensor?",
            "The softmax keeps its output for the backward pass. What you change must be a new "
            "tensor.",
            "`masked_fill` without the underscore makes one, and `/` makes one where `/=` does "
            "not. Do not detach: the gradient must pass.",
        ),
    ),
    Exercise(
        "masks.attention",
        "CausalAttention",
        _attention_cases,
        judge=_judge_attention,
        hints=(
            "It is the head of lesson 02 with two lines more: a mask before the softmax, dropout "
            "after it.",
            "The mask is made for context_length tokens; take its first seq_len rows and columns. "
            "`nn.Dropout` knows whether the module is in training.",
            "scores / sqrt(hidden) -> masked_fill(self.hidden[:n, :n], -inf) -> softmax over the "
            "last dimension -> self.dropout -> times the values.",
        ),
    ),
    Exercise(
        "masks.map",
        "attention_map",
        _map_cases,
        hints=(
            "These are probabilities already. What would one more softmax do to them?",
            "The batch comes first: all heads of item 0, then all heads of item 1, and so on.",
            "The map stands at place item * num_heads + head. Return it as it is.",
        ),
    ),
]
