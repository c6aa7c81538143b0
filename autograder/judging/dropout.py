"""What dropout does, judged by its statistics: where the dice fall is the student's own affair.

    judge=of_function                           # of dropout(weights, p, training)
    judge=partial(of_module, p=3, alone=0)      # of Attention(a, b, c, dropout)(x)

Bounds are six standard deviations wide, so that no right answer is refused by bad luck.
"""

from __future__ import annotations

import math

import torch

from autograder.course.asking import Finding, Sight, Verdict
from autograder.course.calls import Call
from autograder.judging.compare import compare
from autograder.judging.difference import difference
from autograder.judging.layers import layer_findings
from autograder.judging.stages import only

SIGMAS = 6
FEWEST_KINDS = 3  # of outputs for copies that dice give; where two are, an item's place may tell
FEWEST_TOKENS = 3  # of fewer, dropped weights and dropped scores leave NaN alike
NAN_OF_SCORES = (
    "In training there is NaN: a score of minus infinity that is dropped is multiplied by 0."
)
SAYS = {
    # of a function
    "shape": "The result should be a tensor of the weights' shape.",
    "not finite": "There are values that are not finite.",
    "missing": "In training nothing is dropped, or everything.",
    "p is the share kept": "p is the probability of being dropped; here it is the probability of "
    "being kept.",
    "not rescaled": "The weights that stay are left as they are, so their expected value shrinks. "
    "Divide them by 1 - p.",
    "rescaled the wrong way": "The weights that stay are multiplied by 1 - p instead of divided "
    "by it.",
    "rescaled by p": "The weights that stay are divided by p. Which share of them stays?",
    "renormalised": "The rows were normalised again. Dropout keeps the sum of a row right on "
    "average only.",
    "values": "A weight that stays is neither kept nor rescaled by the one factor that keeps its "
    "expected value.",
    "not one by one": "Whole rows, columns or sequences are dropped together. Each weight must be "
    "dropped on its own.",
    "share": "The share that is dropped is not p.",
    "frozen": "Two calls drop the same places. The mask must be drawn anew at each call.",
    "in eval": "With training=False the weights must come back as they are: neither dropped nor "
    "rescaled.",
    "p is 0": "With p=0 nothing may change.",
    "input changed": "Your code changes its input in place. Work on a copy.",
}
SAYS_OF_MODULE = {
    "in eval": "In evaluation the same sequence gives different outputs: dropout is still at work. "
    "`nn.Dropout` switches itself off; `F.dropout` must be told `training=self.training`.",
    "missing": "In training nothing is dropped.",
    "on the scores": "Dropout acts before the softmax: a score of 0 is not a weight of 0. Drop "
    "weights, after the softmax.",
    "not on the weights": "Dropout acts on something else than the {of}: a token that sees one key "
    "only must get its whole value, rescaled, or nothing.",
    "share": "The share that is dropped is not what was asked for.",
    "mean": "On average over many calls the outputs are not those of evaluation.",
    "on features": "In training, single features of the values or of the heads' outputs are "
    "dropped. Apply dropout to the {of}.",
    "not rescaled": "In training, what is kept is not divided by 1 - p, so that sums come out too "
    "small or too large. `nn.Dropout` does that.",
}


# --- a function ----------------------------------------------------------------------------------
def of_function(sight: Sight, *, p: int = 1, training: int = 2) -> list[Finding]:
    """The judge of `dropout(weights, p, training)`: the tensor comes first.

    In training each weight becomes 0 or is rescaled, alone and at random; with p = 0 and in
    evaluation nothing changes. p, training: the places of these two among a call's arguments. The
    weights of a call in training should be many and none of them 0; two such calls of the same
    weights show whether the dice are thrown anew. Mistakes are told apart best where p is not 1/2.
    """
    seen = list(zip(sight.calls, sight.outcomes, sight.expected, strict=True))
    for call, got, _ in seen:
        if got.error:
            return compare(only(sight, lambda c, failed=call: c is failed))
    at_random = [(c, got.value) for c, got, _ in seen if c.args[training] and 0 < c.args[p] < 1]
    for call, value in at_random:
        kind = _kind_of_kept(value, call.args[0], call.args[p])
        if kind:
            return _finding(kind, SAYS[kind], call)
    for (_, first), (call, second) in zip(at_random, at_random[1:], strict=False):
        if torch.equal(first == 0, second == 0):
            return _finding("frozen", SAYS["frozen"], call)
    for call, got, expected in seen:
        certain = not (call.args[training] and call.args[p])
        if certain and difference(got.value, expected.value, 1e-5) is not None:
            kind = "p is 0" if call.args[training] else "in eval"
            return _finding(kind, SAYS[kind], call)
    for call, got, _ in seen:
        if got.after:
            return _finding("input changed", SAYS["input changed"], call)
    return []


def _finding(kind: str, message: str, call: Call) -> list[Finding]:
    return [Finding(f"dropout.{kind}", Verdict.WRONG, message, tried=call.says)]


def _kind_of_kept(value, weights: torch.Tensor, p: float) -> str:
    """What is wrong with a result in training: what is dropped, how much, and what stays."""
    if not isinstance(value, torch.Tensor) or value.shape != weights.shape:
        return "shape"
    value, weights = value.double(), weights.double()
    if not value.isfinite().all():
        return "not finite"
    dropped = value == 0
    share, slack = dropped.double().mean().item(), SIGMAS * _deviation(p, dropped.numel())
    if share in (0, 1):
        return "missing"
    if abs(share - (1 - p)) < slack < abs(share - p):
        return "p is the share kept"
    factor, sums = (value / weights)[~dropped], value.sum(-1)
    if not _same(factor, 1 / (1 - p)):
        if _same(sums, 1.0) or _same(sums, weights.sum(-1)):
            return "renormalised"
        kinds = {"not rescaled": 1.0, "rescaled the wrong way": 1 - p, "rescaled by p": 1 / p}
        return next((kind for kind, f in kinds.items() if _same(factor, f)), "values")
    if _together(dropped, share):
        return "not one by one"
    return "share" if abs(share - p) > slack else ""


def _deviation(p: float, count: int) -> float:
    """The standard deviation of the share that `count` dice of probability p give."""
    return math.sqrt(p * (1 - p) / count)


def _same(values: torch.Tensor, wanted) -> bool:
    return bool(((values - wanted).abs() < 1e-4 * (1 + torch.as_tensor(wanted).abs())).all())


def _together(dropped: torch.Tensor, share: float) -> bool:
    """Whether neighbours share their fate more often than independent ones would."""
    alike = share**2 + (1 - share) ** 2
    return any(
        same.mean() > alike + SIGMAS * _deviation(alike, same.numel())
        for same in ((dropped == dropped.roll(1, d)).double() for d in range(dropped.dim()))
    )


# --- a module ------------------------------------------------------------------------------------
def of_module(
    sight: Sight,
    *,
    p: int | str,
    alone: int | None = None,
    heads: int | None = None,
    of: str = "attention weights",
    prefix: str = "projections",
) -> list[Finding]:
    """The judge of an attention that drops its weights: all but the dice by their values.

    Its layers come first (`prefix`: see `layer_findings`), then values in evaluation, gradients,
    what is certain in training (where p is 0 or 1), and at last what is left to chance: see
    `in_training`. A call in evaluation whose sequences are all the same shows whether dropout is
    at work there.
    """
    parts = (
        lambda c: not c.train and not c.gradients,
        lambda c: not c.train and c.gradients,
        lambda c: c.train and not by_chance(c, p),
    )
    found = layer_findings(sight, prefix=prefix) or _judge_evaluation(sight, p)
    for part in parts:
        found = found or compare(only(sight, part))
    return found or in_training(sight, p=p, alone=alone, heads=heads, of=of)


def by_chance(call: Call, p: int | str) -> bool:
    """Whether what a call gives depends on dice."""
    return call.train and 0 < _given(call, p) < 1


def _given(call: Call, p: int | str) -> float:
    """The probability that a module is built with: the place or the name of that argument."""
    if isinstance(p, str):
        return call.init_kwargs.get(p, 0.0)
    return call.init[p] if p < len(call.init) else 0.0


def _judge_evaluation(sight: Sight, p: int | str) -> list[Finding]:
    for call, got in zip(sight.calls, sight.outcomes, strict=True):
        value, x = got.value, next(iter(call.args), None)
        if call.train or not _given(call, p) or not isinstance(value, torch.Tensor):
            continue
        copies = isinstance(x, torch.Tensor) and len(x) > 1 and torch.equal(x, x[:1].expand_as(x))
        if copies and value.dim() and _kinds(value) >= FEWEST_KINDS:
            return _finding("in eval", SAYS_OF_MODULE["in eval"], call)
    return []


def _kinds(value: torch.Tensor) -> int:
    """How many different outputs the items of a batch have, up to a few."""
    seen: list[torch.Tensor] = []
    for item in value:
        if all(difference(item, other, 1e-4) is not None for other in seen):
            seen.append(item)
        if len(seen) >= FEWEST_KINDS:
            break
    return len(seen)


def in_training(
    sight: Sight,
    *,
    p: int | str,
    alone: int | None = None,
    heads: int | None = None,
    of: str = "attention weights",
    even: bool = False,
) -> list[Finding]:
    """What the dice do: whether the weights are dropped, nothing else, each on its own, rescaled.

    Right before each call in training stands the same call in evaluation. Two kinds of calls show
    what was dropped:
    * `alone` is the number of a token that sees one key only, as token 0 does under a causal mask:
      its output is that key's values, rescaled, or nothing. Best with one sequence many times.
    * Without `alone`, all tokens have the same values, none of them 0 and with no layer behind
      them: each output is these values times one number, whose mean is 1. With a p of 1/2, a few
      hundred outputs tell whether it is. (Dropped scores change nothing here; a call in training
      with p = 1 tells them from dropout that is missing.)
    p: the probability's place among the arguments that build the module, or its name. heads: the
    place of the number of heads, where there are several side by side. of: what should be dropped.
    even: whether all tokens are seen alike, too: then how far the outputs spread shows which share
    is dropped.
    """
    for i, (call, got) in enumerate(zip(sight.calls, sight.outcomes, strict=True)):
        if not by_chance(call, p):
            continue
        if got.error is not None:
            return compare(only(sight, lambda c, failed=call: c is failed))
        quiet, chance = sight.expected[i - 1].value.double(), _given(call, p)
        form = difference(got.value, quiet, 1e9)
        if form is not None and alone is not None and _drops_infinity(got.value, chance, alone):
            text = f"{SAYS_OF_MODULE['on the scores'].format(of=of)} {NAN_OF_SCORES}"
            return _finding("on the scores", text, call)
        if form is not None:
            text = "In training the result has another form than in evaluation."
            return _finding(form.kind, text, call)
        split = (call.init[heads] if heads is not None else 1, -1)  # heads, features of a head
        value, quiet = got.value.double().unflatten(-1, split), quiet.unflatten(-1, split)
        if difference(value, quiet, 1e-4) is None:
            kind = "missing"
        elif alone is None:
            kind = _kind_of_factor(value / quiet, chance, even)
        else:
            kind = _kind_of_one_key(value, quiet, chance, alone)
        if kind:
            return _finding(kind, SAYS_OF_MODULE[kind].format(of=of), call)
    return []


def _drops_infinity(value, p: float, alone: int) -> bool:
    """Whether NaN in training comes of hidden scores: a token that sees one key, beside many that
    are hidden, gets it oftener than one weight is dropped, and the last one, which sees all, never.

    Weights that are divided by their sum after some were dropped give NaN as well, but to the first
    only where its one weight is gone."""
    if not isinstance(value, torch.Tensor) or value.dim() != 3 or value.shape[1] < FEWEST_TOKENS:
        return False
    lost = value.isnan().any(-1)  # [batch_size, seq_len]
    slack = SIGMAS * _deviation(p, len(lost))
    share = lost[:, alone].double().mean().item()
    return share > p + slack and not lost[:, -1].any()


def _kind_of_factor(factor: torch.Tensor, p: float, even: bool) -> str:
    """factor: what became of the values, [batch_size, seq_len, heads, features]."""
    if (factor - factor[..., :1]).abs().max() > 1e-3:
        return "on features"
    each = factor[..., 0]
    largest = math.sqrt(p / (1 - p))  # the deviation where a query looks at one key only
    # Few dice may show too small a spread: half of the largest possible is always allowed.
    slack = SIGMAS * max(each.std().item(), largest / 2) / math.sqrt(each.numel())
    if abs(each.mean() - 1) > slack:
        return "not rescaled"
    # The mean of seq_len dice; the variance of n such means is off by sqrt(2 / n), as a share.
    spread = each.var().item() / (largest**2 / factor.shape[1])
    return "share" if even and abs(spread - 1) > SIGMAS * math.sqrt(2 / each.numel()) else ""


def _kind_of_one_key(value: torch.Tensor, quiet: torch.Tensor, p: float, alone: int) -> str:
    """value, quiet: in training and in evaluation, [batch_size, seq_len, heads, features]."""
    first, full = value[:, alone], quiet[:, alone]
    if difference(first, full, 1e-4) is None:
        return "on the scores"
    gone = (first.abs() < 1e-6).all(-1)  # [batch_size, heads]
    if gone.all() or difference(first[~gone], full[~gone] / (1 - p), 1e-4) is not None:
        return "share" if _another_share(first, full, gone) else "not on the weights"
    if abs(gone.double().mean().item() - p) > SIGMAS * _deviation(p, gone.numel()):
        return "share"
    change = value - quiet
    spread = change.std(0) / math.sqrt(len(change))
    return "mean" if (change.mean(0).abs() > SIGMAS * spread + 1e-6).any() else ""


def _another_share(first: torch.Tensor, full: torch.Tensor, gone: torch.Tensor) -> bool:
    """Whether whole values are dropped, and those that stay rescaled by the share that does."""
    kept, whole = first[~gone].double(), full[~gone].double()
    factor = ((kept * whole).sum() / (whole * whole).sum()).item() if len(kept) else 0.0
    if factor <= 1 + 1e-3 or difference(kept, factor * whole, 1e-4) is not None:
        return False
    p = 1 - 1 / factor
    return abs(gone.double().mean().item() - p) <= SIGMAS * _deviation(p, gone.numel())
