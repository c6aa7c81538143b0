"""Lesson 12: causal experiments. Lesions, direct effects, induction, and one's own attention."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checks.gpt2_cases import draw_gpt2, draw_ids, says
from autograder.course.asking import Exercise, Finding, Sight, lazily
from autograder.course.calls import Call, Draw, Made, Outcome
from autograder.judging.compare import compare, difference
from autograder.judging.forms import results_in_one_tensor


def _model(
    draw: Draw, layers: int | None = None, batch: int | None = None
) -> tuple[Made, torch.Tensor, str]:
    """A small model, ids for it, and both in words."""
    model = draw_gpt2(draw, layers)
    batch = batch or draw.choice((2, 3))
    seq_len = draw.choice((5, 7))
    ids = draw_ids(draw, model, batch, seq_len)
    return model, ids, says(model, f"{batch} sequences of {seq_len} tokens")


# --- lesions -------------------------------------------------------------------------------------
def _head(draw: Draw, place: int, heads: int) -> int:
    """A head for the case at this place: the first, then the last, then any.

    Without the first, features up to the end may be cut for a head's own; without the last, those
    from the beginning; and head 0 is what a program cuts that forgot to use its argument.
    """
    return (0, heads - 1)[place] if place < 2 else draw.integer(0, heads - 1)


def _clean_cases(draw: Draw) -> list[Call]:
    calls = []
    for batch in (1, 3, 2):
        model, ids, text = _model(draw, batch=batch)
        calls.append(Call("final_log_prob", (model, ids), says=text))
    return calls


def _outputs(draw: Draw, items: int) -> tuple[list[torch.Tensor], int, int, str]:
    """What may enter c_proj, twice with other numbers of sequences; heads, head size, words."""
    batch, heads, size = draw.sizes(3, 2, 5)
    seq_len = 7
    z = [draw.normal(n, seq_len, heads * size) + 0.5 for n in (batch, batch + 1)]
    text = f"{batch} sequences of {seq_len} tokens, {heads} heads of size {size}"
    return z[:items], heads, size, text


def _cut_cases(draw: Draw) -> list[Call]:
    calls = []
    for place, position in enumerate((-2, 3, -1)):
        (z,), heads, _, text = _outputs(draw, 1)
        head = _head(draw, place, heads)
        text += f", head {head} at position {position}"
        calls.append(Call("without_head", (z, heads, head, position), says=text))
    return calls


def _lesion_cases(draw: Draw) -> list[Call]:
    calls = []
    asked = ((1, -2, 0), (2, -3, 1), (3, 1, 0), (2, -2, 1))
    for place, (batch, position, layer) in enumerate(asked):
        model, ids, text = _model(draw, 3, batch)
        head = _head(draw, place, model.values["config"]["n_head"])
        text += f"; layer {layer}, head {head}, position {position}"
        args = (model, ids, layer, head, position)
        calls.append(Call("lesioned_log_prob", args, says=text))
    return calls


def _mean_cases(draw: Draw) -> list[Call]:
    calls = []
    for place in range(3):
        (z, reference), heads, _, text = _outputs(draw, 2)
        reference = reference * 1.5 + torch.linspace(-1, 1, reference.shape[-1])
        head = _head(draw, place, heads)
        text += f", head {head}; {len(reference)} sequences to take the mean of"
        calls.append(Call("with_mean", (z, reference, heads, head), says=text))
    return calls


def _effects_cases(draw: Draw) -> list[Call]:
    calls = []
    for place, layer in enumerate((0, 1, 0)):
        model, ids, text = _model(draw, 3)
        head = _head(draw, place, model.values["config"]["n_head"])
        args = (model, ids, layer, head)
        calls.append(Call("one_and_all", args, says=f"{text}; layer {layer}, head {head}"))
    return calls


def _grid_cases(draw: Draw) -> list[Call]:
    calls = []
    for layers in (2, 3):
        model, ids, text = _model(draw, layers)
        calls.append(Call("lesion_grid", (model, ids), says=text))
    return calls


# --- beyond lesions ------------------------------------------------------------------------------
def _direct_cases(draw: Draw) -> list[Call]:
    calls = []
    for layers in (2, 3, 2):
        model, ids, text = _model(draw, layers)
        calls.append(Call("logit_parts", (model, ids), says=text))
    return calls


def _induction_cases(draw: Draw) -> list[Call]:
    calls = []
    for kinds in (5, 3, 6):
        batch, heads = draw.sizes(2, 2, 5)
        seq_len = draw.choice((11, 13))
        ids = draw.integers(10, 10 + kinds, batch, seq_len)
        ids[0] = torch.arange(20, 20 + seq_len)  # one sequence in which few tokens come back
        ids[0, -3:] = ids[0, :3]
        scores = draw.normal(batch, heads, seq_len, seq_len, scale=1.5)
        future = torch.ones(seq_len, seq_len).triu(1).bool()
        probs = scores.masked_fill(future, float("-inf")).softmax(-1)
        text = f"{batch} sequences of {seq_len} tokens, {heads} heads"
        calls.append(Call("prefix_matching", (probs, ids), says=text))
    return calls


def _own_cases(draw: Draw) -> list[Call]:
    calls = []
    for layers in (2, 3):
        model, ids, text = _model(draw, layers)
        calls.append(Call("OwnGPT2", (ids,), init=(model,), gradients=True, says=text))
    return calls


def _judge_own(sight: Sight) -> list[Finding]:
    """The logits are right, and they were computed by attention modules with q, k, v and mix."""
    plain = replace(
        sight,
        expected=tuple(map(_without_gradients, sight.expected)),
        mistakes=tuple(
            (check, text, lazily(_without_gradients, outcomes))
            for check, text, outcomes in sight.mistakes
        ),
    )
    findings = compare(plain)
    if findings:
        return findings
    for got, expected in zip(sight.outcomes, sight.expected, strict=True):
        for part in ("q.weight", "k.weight", "v.weight", "mix.weight"):
            wanted = [g for name, g in expected.gradients.items() if name.endswith(f".{part}")]
            found = got.gradients if isinstance(got.gradients, dict) else {}
            own = _different([g for name, g in found.items() if name.endswith(f".{part}")])
            pairs = list(zip(own, wanted, strict=False))
            if len(own) != len(wanted) or any(g is None for g in own):
                text = (
                    f"The logits are right, but not every layer's comes out of a `{part}` of your "
                    "MultiHeadSelfAttention: no gradient reaches one in each layer. Is GPT-2's "
                    "own attention still at work, or is something computed under `no_grad`?"
                )
                return [Finding("own.not used", "wrong", text)]
            if any(difference(g, w, 1e-2) is not None for g, w in pairs):
                text = (
                    f"The logits are right, but the gradients of `{part}` are not what they would "
                    "be if your MultiHeadSelfAttention alone had computed the attention."
                )
                return [Finding("own.not used", "wrong", text)]
    return []


def _without_gradients(outcome: Outcome) -> Outcome:
    return replace(outcome, gradients=None)


def _different(gradients: list) -> list:
    """Without repetitions: a module that has two names is listed under both."""
    kept = []
    for each in gradients:
        known = each is not None and any(k is not None and torch.equal(k, each) for k in kept)
        kept += [] if known else [each]
    return kept


EXERCISES = [
    Exercise(
        "causal.clean",
        "final_log_prob",
        _clean_cases,
        hints=(
            "Position t predicts the token at t + 1. Which position predicts the last token?",
            "logits is [batch_size, seq_len, vocab_size]. Take one position, turn it into "
            "log-probabilities over the vocabulary, then pick one token in each sequence.",
            "F.log_softmax(logits[:, -2], dim=-1), and from it for each sequence the entry "
            "input_ids[:, -1]: gather, or two index tensors.",
        ),
    ),
    Exercise(
        "causal.cut",
        "without_head",
        _cut_cases,
        hints=(
            "A view shares its numbers with the tensor it was made from. Whose numbers do you set "
            "to zero?",
            "Make a copy first. The head's features stand together, at head * head_size and the "
            "ones after it; the position is an index of axis 1.",
            "z.clone(), seen as [batch_size, seq_len, num_heads, head_size]; set [:, position, "
            "head] to 0; back to three axes.",
        ),
    ),
    Exercise(
        "causal.lesion",
        "lesioned_log_prob",
        _lesion_cases,
        hints=(
            "The heads' outputs stand side by side for the last time where c_proj reads them. "
            "Which kind of hook can change an input?",
            "A pre-hook gets (module, inputs), inputs a tuple, and returns what c_proj shall see "
            "instead. Think of a batch of two when you build that tuple.",
            "The hook returns (without_head(inputs[0], num_heads, head, position), *inputs[1:]). "
            "Register it, call final_log_prob in a `try`, remove it in `finally`.",
        ),
    ),
    Exercise(
        "causal.mean",
        "with_mean",
        _mean_cases,
        hints=(
            "What does this head say on average, when you do not know which sentence and which "
            "position it is asked about? That is one vector.",
            "Average the reference over sequences and tokens, but not over features. Put the "
            "vector in at every position of z, for this head alone.",
            "reference.mean(dim=(0, 1)) is [hidden]; copy its features head * head_size and the "
            "ones after it into a copy of z.",
        ),
    ),
    Exercise(
        "causal.one_and_all",
        "one_and_all",
        _effects_cases,
        hints=(
            "Three runs: clean, with the head cut at one position, with the head cut at all. What "
            "is an effect?",
            "Effect = lesioned minus clean. The position whose prediction you read is -2. Between "
            "the runs no hook may stay.",
            "A small helper that takes a list of positions, puts in a hook that zeroes the head "
            "there, runs final_log_prob, removes the hook. Call it with [-2] and with all.",
        ),
        judge=results_in_one_tensor,
    ),
    Exercise(
        "causal.grid",
        "lesion_grid",
        _grid_cases,
        hints=(
            "One clean run, then one run for each head. What must be true of the model at the "
            "beginning of each of them?",
            "Measure one number: the mean log-probability of all next tokens. Put the hook in, "
            "measure, take the hook out, subtract the clean number.",
            "Two loops; make the hook in a function that is given the head, register it on "
            "model.transformer.h[layer].attn.c_proj, remove it before the next round.",
        ),
    ),
    Exercise(
        "causal.direct",
        "logit_parts",
        _direct_cases,
        hints=(
            "The residual stream is a sum, and the unembedding is linear. Only one thing between "
            "them is not, and you may freeze it at what it did in the clean run.",
            "A head's part of the residual stream is its slice of c_proj's input times its rows "
            "of c_proj's weight. ln_f subtracts the mean, divides by a number that you take from "
            "the clean run, and multiplies by its weight. No bias belongs to a head.",
            "For each head: part - part.mean(-1), times ln_f.weight, dotted with the last token's "
            "row of wte, over sqrt(var + eps) of ln_f's input at -2. rest = logit - all heads.",
        ),
    ),
    Exercise(
        "causal.induction",
        "prefix_matching",
        _induction_cases,
        hints=(
            "Query i holds a token. It stood somewhere before: at j. Which key would you look at, "
            "to guess what comes next?",
            "Key k matches query i if the token at k - 1 equals the token at i, for 1 <= k <= i. "
            "Sum the weights of the matching keys; which queries have none?",
            "match[:, :, 1:] = ids[:, :, None] == ids[:, None, :-1], lower triangle; sum "
            "probs * match over the keys; mean over the queries with match.any(-1).",
        ),
    ),
    Exercise(
        "causal.own",
        "OwnGPT2",
        _own_cases,
        hints=(
            "Two layouts meet: Conv1D stores [in, out], nn.Linear stores [out, in]. And c_attn is "
            "three matrices in one.",
            "For each block: a MultiHeadSelfAttention with causal=True; cut c_attn's weight and "
            "bias in three along the last axis; transpose each matrix. Then write down what a "
            "block does: two norms, two additions.",
            "x = wte(ids) + wpe(0 ... seq_len - 1); in each block x = x + own(ln_1(x)) and "
            "x = x + mlp(ln_2(x)); logits = lm_head(ln_f(x)). Keep the own modules in an "
            "nn.ModuleList.",
        ),
        judge=_judge_own,
    ),
]
