"""Lesson 12: causal experiments. Lesions, direct effects, induction, and one's own attention."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from autograder import Call, Draw, exercise
from autograder.judging.forms import results_in_one_tensor
from transformer_lm.activations import record
from transformer_lm.modeling_attention import MultiHeadSelfAttention

from ._gpt2 import gpt2_and_ids
from .judges.own_modules import by_own_modules

ALL = slice(None)


def itself(value, *_):
    return value


# --- the clean run -------------------------------------------------------------------------------
def clean_runs(draw: Draw) -> list[Call]:
    asked = (gpt2_and_ids(draw, batch_size=batch) for batch in (1, 3, 2))
    return [Call("", (model, ids), says=text) for model, ids, text in asked]


def logits_of(model, input_ids):
    with torch.no_grad():
        return model(input_ids).logits


def next_log_probs(model, input_ids, normalise=F.log_softmax, dim=-1):
    """Of all tokens but the first, given those before: [batch_size, seq_len - 1]."""
    log_probs = normalise(logits_of(model, input_ids)[:, :-1], dim)
    return log_probs.gather(-1, input_ids[:, 1:, None]).squeeze(-1)


def next_of(model, input_ids):
    return logits_of(model, input_ids)[:, -2].log_softmax(-1)  # [batch_size, vocab_size]


@exercise("causal.clean", clean_runs,
          hints=(
              "Position t predicts the token at t + 1. Which position predicts the last token?",
              "logits is [batch_size, seq_len, vocab_size]. Take one position, turn it into "
              "log-probabilities over the vocabulary, then pick one token in each sequence.",
              "F.log_softmax(logits[:, -2], dim=-1), and from it for each sequence the entry "
              "input_ids[:, -1]: gather, or two index tensors."))
def final_log_prob(model, input_ids, read=-2, token=-1, normalise=F.log_softmax, dim=-1,
                   finish=torch.clone):
    log_probs = normalise(logits_of(model, input_ids), dim)[:, read]  # [batch_size, vocab_size]
    return finish(log_probs.gather(-1, input_ids[:, token, None]).squeeze(-1))

AXIS = ("The log-softmax runs over the wrong axis: the probabilities of the whole vocabulary sum "
        "to 1, not those of all positions or sequences.")
final_log_prob.wrong("clean.position -1",
                     "This is read at position -1, which predicts the token after the text. The "
                     "last token is predicted one position earlier.", read=-1)
final_log_prob.wrong("clean.position -3", "This is read one position too early.", read=-3)
for dim in (1, 0):
    final_log_prob.wrong("clean.log-softmax axis", AXIS, dim=dim)
final_log_prob.wrong(
    "clean.log-softmax axis", AXIS,
    lambda m, ids: logits_of(m, ids)[:, -2].log_softmax(0).gather(-1, ids[:, -1:]).squeeze(-1))
final_log_prob.wrong(
    "clean.probability", "This is a probability; its logarithm is asked for.", finish=torch.exp)
for base in (10.0, 2.0):
    final_log_prob.wrong(
        "clean.base", "This is a logarithm to base 10 or 2; natural logarithms are asked for.",
        finish=lambda x, base=base: x / torch.tensor(base).log())
final_log_prob.wrong(
    "clean.sign", "This is the loss, the negative of what is asked for.", finish=torch.neg)
final_log_prob.wrong(
    "clean.logit", "This is a logit, not yet normalised over the vocabulary.", normalise=itself)
final_log_prob.wrong(
    "clean.best token",
    "This is the log-probability of the likeliest token, not of the one that stands there.",
    lambda m, ids: logits_of(m, ids)[:, -2].log_softmax(-1).amax(-1))
final_log_prob.wrong("clean.another token",
                     "This is the log-probability of the token at -2, which is already there; the "
                     "one that follows is asked for.", token=-2)
final_log_prob.wrong("clean.batch averaged",
                     "The sequences are averaged; one number each is asked for.", finish=torch.mean)
final_log_prob.wrong("clean.all tokens", "All next tokens are averaged; the last one is asked for.",
                     lambda m, ids: next_log_probs(m, ids).mean(1))
final_log_prob.wrong("clean.all tokens", "All next tokens are added up; the last one is asked for.",
                     lambda m, ids: next_log_probs(m, ids).sum(1))
final_log_prob.wrong(
    "clean.softmax twice", "The softmax runs twice: log_softmax takes logits, not probabilities.",
    normalise=lambda logits, dim: logits.softmax(dim).log_softmax(dim))
final_log_prob.wrong(
    "clean.first item's prediction",
    "The prediction is read from the first sequence for all of them: `logits[0, -2]`. Each has "
    "its own.", lambda m, ids: next_of(m, ids)[0, ids[:, -1]])
final_log_prob.wrong(
    "clean.every pair",
    "This is a table of all sequences with all last tokens: `[:, ids]` pairs everything. Pair row "
    "with row, `[torch.arange(len(ids)), ids]`, or use gather.",
    lambda m, ids: next_of(m, ids)[:, ids[:, -1]])
final_log_prob.wrong("clean.first item alone", "Every sequence has the first one's value.",
                     finish=lambda x: x[:1].expand_as(x))


# --- cutting -------------------------------------------------------------------------------------
def pick_head(draw: Draw, place: int, heads: int) -> int:
    """A head for the case at this place: the first, then the last, then any.

    Without the first, features up to the end may be cut for a head's own; without the last, those
    from the beginning; and head 0 is what a program cuts that forgot to use its argument.
    """
    return (0, heads - 1)[place] if place < 2 else draw.integer(0, heads - 1)


def read_by_c_proj(draw: Draw, place: int) -> tuple[torch.Tensor, torch.Tensor, int, int, str]:
    """What c_proj reads, for other sequences as well; the number of heads, a head, and words."""
    heads = draw.choice((2, 3, 5) if place else (3, 5))  # of two, all but one is the next one
    batch_size, size = draw.sizes(2, 2, 5, other_than=[heads])
    z, reference = (draw.normal(n, 7, heads * size) + 0.5 for n in (batch_size, batch_size + 1))
    head = pick_head(draw, place, heads)
    text = f"{batch_size} sequences of 7 tokens, {heads} heads of size {size}, head {head}"
    return z, reference, heads, head, text


def cuts(draw: Draw) -> list[Call]:
    calls = []
    for place, position in enumerate((-2, 3, -1)):
        z, _, heads, head, text = read_by_c_proj(draw, place)
        says = f"{text} at position {position}"
        calls.append(Call("", (z, heads, head, position), says=says))
    return calls


def in_blocks(hidden, num_heads):
    """The head that each feature belongs to, [hidden]."""
    return torch.arange(hidden) // (hidden // num_heads)


def interleaved(hidden, num_heads):
    return torch.arange(hidden) % num_heads


def next_head(owners, head):
    return owners == (head + 1) % (owners.max() + 1)


def head_before(owners, head):
    return owners == (head - 1) % (owners.max() + 1)


@exercise("causal.cut", cuts,
          hints=(
              "A view shares its numbers with the tensor it was made from. Whose numbers do you "
              "set to zero?",
              "Make a copy first. The head's features stand together, at head * head_size and the "
              "ones after it; the position is an index of axis 1.",
              "z.clone(), seen as [batch_size, seq_len, num_heads, head_size]; set [:, position, "
              "head] to 0; back to three axes."))
def without_head(z, num_heads, head, position, copy=torch.clone, items=ALL, where=itself,
                 owners=in_blocks, which=torch.eq):
    out = copy(z)
    own = which(owners(z.shape[-1], num_heads), head)  # [hidden], True for the head's features
    out[items, where(position), own] = 0
    return out

def torn_apart(z, num_heads, head, position):
    heads = z.clone().view(len(z), num_heads, z.shape[1], -1)
    heads[:, head, position] = 0
    return heads.view(z.shape)

without_head.wrong("cut.in place",
                   "Your code edits the tensor it was given: `view` and slices share their numbers "
                   "with it. Whoever passed it finds zeros there. Clone first.", copy=itself)
without_head.wrong("cut.all positions", "The head is cut at every position; one was asked for.",
                   where=lambda position: ALL)
without_head.wrong("cut.another position", "The cut is one position too late.",
                   where=lambda position: position + 1)
without_head.wrong("cut.another position", "The cut is one position too early.",
                   where=lambda position: position - 1)
without_head.wrong("cut.another head",
                   "This is the head after the one asked for: heads count from 0, so 'the fifth "
                   "head' has index 4.", which=next_head)
without_head.wrong("cut.another head",
                   "This is the head before the one asked for: heads count from 0, and head 0 is "
                   "the first.", which=head_before)
without_head.wrong("cut.all heads", "All heads are cut at this position.",
                   which=lambda owners, head: owners >= 0)
without_head.wrong(
    "cut.interleaved", "You cut every num_heads-th feature. A head's features stand together.",
    owners=interleaved)
without_head.wrong(
    "cut.heads before tokens",
    "Seen as [batch_size, num_heads, seq_len, head_size], the numbers of one token are torn "
    "apart: c_proj's input has the tokens before the heads.", torn_apart)
without_head.wrong("cut.nothing changed", "Nothing was cut: what you return is the input.",
                   lambda z, n, head, position: z.clone())
without_head.wrong("cut.everything else", "All but the head was cut.",
                   lambda z, *where: z - without_head(z, *where))
without_head.wrong(
    "cut.four axes",
    "The heads still have an axis of their own; bring it back to [batch_size, seq_len, hidden].",
    lambda z, n, *where: without_head(z, n, *where).unflatten(-1, (n, -1)))
without_head.wrong(
    "cut.batch axis", "The position was used as an index of the batch. Tokens are axis 1.",
    lambda z, *where: without_head(z.transpose(0, 1), *where).transpose(0, 1))
without_head.wrong(
    "cut.to the end",
    "All features from the head's first on are cut. A head has head_size of them.", which=torch.ge)
without_head.wrong(
    "cut.from the beginning",
    "All features up to the head's last are cut. A head has head_size of them.", which=torch.le)
without_head.wrong("cut.one feature",
                   "One feature is cut. A head has head_size of them, from head * head_size on.",
                   owners=lambda hidden, num_heads: torch.arange(hidden))
without_head.wrong(
    "cut.one feature too many",
    "The next head's first feature is cut too: a slice ends before its second number.",
    which=lambda owners, head: (owners == head) | (owners.roll(1) == head) & (owners >= head))
without_head.wrong("cut.count for size",
                   "A head was taken to be num_heads features wide; it has hidden / num_heads.",
                   owners=lambda hidden, num_heads: torch.arange(hidden) // num_heads)
without_head.wrong("cut.first item alone", "Only the first sequence of the batch was cut.", items=0)
without_head.wrong("cut.from there on", "Every position from there on is cut; one was asked for.",
                   where=lambda position: slice(position, None))
without_head.wrong("cut.always -2", "The cut is always at -2; the position is an argument.",
                   where=lambda position: -2)


# --- lesions -------------------------------------------------------------------------------------
def lesions(draw: Draw) -> list[Call]:
    calls = []
    asked = ((1, -2, 0), (2, -3, 1), (3, 1, 0), (2, -2, 1))
    for place, (batch_size, position, layer) in enumerate(asked):
        model, ids, text = gpt2_and_ids(draw, 3, batch_size)
        head = pick_head(draw, place, model.values["config"]["n_head"])
        says = f"{text}; layer {layer}, head {head}, position {position}"
        calls.append(Call("", (model, ids, layer, head, position), says=says))
    return calls


def changed(module: nn.Module, change: Callable, output: bool = False):
    """While its `with` block runs, what a module reads (or gives) goes through `change` first."""
    def alike(value):
        return (change(value[0]), *value[1:]) if isinstance(value, tuple) else change(value)

    if output:
        return module.register_forward_hook(lambda module, inputs, given: alike(given))
    return module.register_forward_pre_hook(lambda module, inputs: alike(inputs))


@exercise("causal.lesion", lesions,
          hints=(
              "The heads' outputs stand side by side for the last time where c_proj reads them. "
              "Which kind of hook can change an input?",
              "A pre-hook gets (module, inputs), inputs a tuple, and returns what c_proj shall see "
              "instead. Think of a batch of two when you build that tuple.",
              "The hook returns (without_head(inputs[0], num_heads, head, position), *inputs[1:])."
              " Register it, call final_log_prob in a `try`, remove it in `finally`."))
def lesioned_log_prob(model, input_ids, layer, head, position, in_layer=itself, where=itself,
                      owners=in_blocks, which=torch.eq, read=lambda position: -2,
                      finish=torch.clone):
    def cut(z):
        return without_head(z, model.config.n_head, head, where(position), owners=owners,
                            which=which)

    layer = in_layer(layer, model.config.n_layer)
    with changed(model.transformer.h[layer].attn.c_proj, cut):
        return finish(final_log_prob(model, input_ids, read(position)))

def tuple_bug(model, input_ids, layer, head, position):
    def hook(module, inputs):
        return tuple(without_head(inputs[0], model.config.n_head, head, position), *inputs[1:])

    with model.transformer.h[layer].attn.c_proj.register_forward_pre_hook(hook):
        return final_log_prob(model, input_ids)

def elsewhere(place, output=False, parts=1, part=0):
    """The lesion at another place of the block, where `parts` times as many heads stand."""
    def wrong(model, input_ids, layer, head, position):
        heads = model.config.n_head

        def cut(z):
            return without_head(z, parts * heads, part * heads + head, position)

        with changed(place(model.transformer.h[layer]), cut, output):
            return final_log_prob(model, input_ids)

    return wrong

def of_the_mlp(model, input_ids, layer, head, position):
    size = model.config.n_embd // model.config.n_head

    def cut(neurons):
        out = neurons.clone()
        out[:, position, head * size : (head + 1) * size] = 0
        return out

    with changed(model.transformer.h[layer].mlp.c_proj, cut):
        return final_log_prob(model, input_ids)

lesioned_log_prob.wrong(
    "lesion.tuple(t, *rest)",
    "With one sequence this runs, with two it raises a TypeError: `tuple(t, ...)` does not put t "
    "into a tuple, it takes t apart along the batch. Write `(t, *inputs[1:])`.", tuple_bug)
lesioned_log_prob.wrong(
    "lesion.nothing changed",
    "This is the clean value: the lesion never reached the model. Does the hook return what it "
    "made?", lambda model, ids, *where: final_log_prob(model, ids))
lesioned_log_prob.wrong(
    "lesion.position -1 for -2",
    "The cut is one position too late: -1 where -2 was asked for. What happens after position -2 "
    "cannot change its prediction.", where=lambda position: position + 1)
lesioned_log_prob.wrong("lesion.another position", "The cut is one position too early.",
                        where=lambda position: position - 1)
lesioned_log_prob.wrong(
    "lesion.layer and head swapped",
    "Layer and head have changed places: the layer chooses the block, the head the slice.",
    lambda model, ids, layer, head, position: (
        lesioned_log_prob(model, ids, head, layer, position)))
lesioned_log_prob.wrong(
    "lesion.MLP cut",
    "You cut what the MLP's c_proj reads. There are no heads; attention's is `attn.c_proj`.",
    of_the_mlp)
lesioned_log_prob.wrong("lesion.read at -1",
                        "The cut is right, but the prediction is read at position -1; the last "
                        "token is predicted at -2.", read=lambda position: -1)
lesioned_log_prob.wrong("lesion.read at the cut",
                        "The cut is right, but the prediction is read at the position of the cut; "
                        "the last token is predicted at -2.", read=itself)
lesioned_log_prob.wrong(
    "lesion.all positions", "The head is cut at every position; one was asked for.",
    where=lambda position: ALL)
lesioned_log_prob.wrong(
    "lesion.another head",
    "This cuts the head after the one asked for. Heads count from 0.", which=next_head)
lesioned_log_prob.wrong(
    "lesion.another head",
    "This cuts the head before the one asked for: head 0 is the first.", which=head_before)
lesioned_log_prob.wrong("lesion.another layer", "This cuts in the next layer. Layers count from 0.",
                        in_layer=lambda layer, layers: (layer + 1) % layers)
lesioned_log_prob.wrong(
    "lesion.another layer", "This cuts in the layer before. Layers count from 0.",
    in_layer=lambda layer, layers: (layer - 1) % layers)
lesioned_log_prob.wrong("lesion.all heads", "All heads of the layer are cut at this position.",
                        which=lambda owners, head: owners >= 0)
lesioned_log_prob.wrong(
    "lesion.interleaved",
    "You cut every num_heads-th feature. A head's features stand together.", owners=interleaved)
lesioned_log_prob.wrong(
    "lesion.after mixing",
    "You cut features of c_proj's output. There the heads are already mixed; the last place where "
    "they stand apart is its input.", elsewhere(lambda block: block.attn.c_proj, output=True))
lesioned_log_prob.wrong(
    "lesion.query cut", "You cut the head's query, which makes it look evenly, not its output.",
    elsewhere(lambda block: block.attn.c_attn, output=True, parts=3, part=0))
lesioned_log_prob.wrong("lesion.value cut",
                        "You cut the head's value at this position; others still look there, and "
                        "this position still receives. Cut the head's output.",
                        elsewhere(lambda block: block.attn.c_attn, output=True, parts=3, part=2))
lesioned_log_prob.wrong(
    "lesion.difference", "This is the change; the log-probability with the lesion is asked for.",
    lambda model, ids, *where: (
        lesioned_log_prob(model, ids, *where) - final_log_prob(model, ids)))
lesioned_log_prob.wrong(
    "lesion.probability", "This is a probability; its logarithm is asked for.", finish=torch.exp)
lesioned_log_prob.wrong(
    "lesion.key cut",
    "You cut the head's key at this position: others look elsewhere then. Cut the head's output.",
    elsewhere(lambda block: block.attn.c_attn, output=True, parts=3, part=1))
lesioned_log_prob.wrong("lesion.always -2", "The cut is always at -2; the position is an argument.",
                        where=lambda position: -2)
lesioned_log_prob.wrong(
    "lesion.last layer", "The cut is always in the last layer; the layer is an argument.",
    in_layer=lambda layer, layers: -1)
lesioned_log_prob.wrong("lesion.before c_attn",
                        "You cut features of what c_attn reads. There they belong to no head yet.",
                        elsewhere(lambda block: block.attn.c_attn))
lesioned_log_prob.wrong("lesion.block cut",
                        "You cut features of the residual stream behind the block. They belong to "
                        "no head.", elsewhere(lambda block: block, output=True))
lesioned_log_prob.wrong(
    "lesion.batch averaged", "The sequences are averaged; one number each is asked for.",
    finish=torch.mean)
lesioned_log_prob.wrong(
    "lesion.difference",
    "This is the change, with the sign turned; the log-probability with the lesion is asked for.",
    lambda model, ids, *where: (
        final_log_prob(model, ids) - lesioned_log_prob(model, ids, *where)))


def references(draw: Draw) -> list[Call]:
    calls = []
    for place in range(3):
        z, reference, heads, head, text = read_by_c_proj(draw, place)
        reference = reference * 1.5 + torch.linspace(-1, 1, reference.shape[-1])
        says = f"{text}; {len(reference)} sequences to take the mean of"
        calls.append(Call("", (z, reference, heads, head), says=says))
    return calls


@exercise("causal.mean", references,
          hints=(
              "What does this head say on average, when you do not know which sentence and which "
              "position it is asked about? That is one vector.",
              "Average the reference over sequences and tokens, but not over features. Put the "
              "vector in at every position of z, for this head alone.",
              "reference.mean(dim=(0, 1)) is [hidden]; copy its features head * head_size and the "
              "ones after it into a copy of z."))
def with_mean(z, reference, num_heads, head, mean=lambda reference: reference.mean((0, 1)),
              copy=torch.clone, where=ALL, owners=in_blocks, which=torch.eq):
    out = copy(z)
    own = which(owners(z.shape[-1], num_heads), head)  # [hidden], True for the head's features
    out[:, where, own] = mean(reference).expand_as(z)[:, where, own]
    return out

with_mean.wrong(
    "mean.in place", "Your code edits the tensor it was given. Clone first.", copy=itself)
with_mean.wrong("mean.of the input itself",
                "The mean is taken of z, the run under test; it should come from the reference.",
                lambda z, reference, *which: with_mean(z, z, *which))
with_mean.wrong("mean.by position",
                "Each position has its own mean: you averaged over the sequences alone. Average "
                "over tokens too.", mean=lambda reference: reference.mean(0))
with_mean.wrong(
    "mean.by sequence", "Each sequence has its own mean: average over the sequences too.",
    lambda z, reference, *which: with_mean(
        z, reference, *which, lambda reference: reference[: len(z)].mean(1, keepdim=True)))
with_mean.wrong(
    "mean.one number",
    "The features were averaged too. The stand-in is a vector of head_size numbers.",
    lambda z, reference, n, head: with_mean(
        z, reference, n, head, lambda reference: reference.chunk(n, -1)[head].mean()))
with_mean.wrong(
    "mean.all features as one",
    "The mean of the whole reference is one number. Keep the features apart.", mean=torch.mean)
with_mean.wrong("mean.zero", "The head is set to zero; its mean over the reference is asked for.",
                mean=lambda reference: torch.zeros(()))
with_mean.wrong("mean.all heads", "All heads are replaced; one was asked for.",
                which=lambda owners, head: owners >= 0)
with_mean.wrong("mean.another head",
                "This is the head after the one asked for. Heads count from 0.", which=next_head)
with_mean.wrong("mean.another head",
                "This is the head before the one asked for. Heads count from 0.", which=head_before)
with_mean.wrong("mean.interleaved",
                "You replaced every num_heads-th feature. A head's features stand together.",
                owners=interleaved)
with_mean.wrong(
    "mean.added", "The mean is subtracted or added; it should take the place of the head's output.",
    lambda z, *others: z + with_mean(torch.zeros_like(z), *others))
with_mean.wrong("mean.nothing changed", "Nothing was replaced.", lambda z, *others: z.clone())
with_mean.wrong("mean.sum", "The reference is summed; its mean is asked for.",
                mean=lambda reference: reference.sum((0, 1)))
with_mean.wrong("mean.one position",
                "The mean stands in at position -2 alone; put it in at every position.", where=-2)
with_mean.wrong("mean.of one sequence", "Only the first sequence of the reference is averaged.",
                mean=lambda reference: reference[0].mean(0))
with_mean.wrong("mean.of the last token", "Only the last tokens of the reference are averaged.",
                mean=lambda reference: reference[:, -1].mean(0))
with_mean.wrong("mean.median", "This is the median; the mean is asked for.",
                mean=lambda reference: reference.flatten(0, 1).median(0).values)
with_mean.wrong("mean.everything else", "All but the head is replaced.", which=torch.ne)


# --- effects -------------------------------------------------------------------------------------
def effects(draw: Draw) -> list[Call]:
    calls = []
    for place, layer in enumerate((0, 1, 0)):
        model, ids, text = gpt2_and_ids(draw, 3)
        head = pick_head(draw, place, model.values["config"]["n_head"])
        says = f"{text}; layer {layer}, head {head}"
        calls.append(Call("", (model, ids, layer, head), says=says))
    return calls


@exercise("causal.one_and_all", effects, judge=results_in_one_tensor,
          hints=(
              "Three runs: clean, with the head cut at one position, with the head cut at all. "
              "What is an effect?",
              "Effect = lesioned minus clean. The position whose prediction you read is -2. "
              "Between the runs no hook may stay.",
              "A small helper that takes a list of positions, puts in a hook that zeroes the head "
              "there, runs final_log_prob, removes the hook. Call it with [-2] and with all."))
def one_and_all(model, input_ids, layer, head, here=-2, everywhere=ALL, read=-2, which=torch.eq,
                effect=torch.sub, give=lambda one, every: (one, every)):
    clean = final_log_prob(model, input_ids, read)
    one, every = (
        lesioned_log_prob(model, input_ids, layer, head, cut, which=which, read=lambda cut: read)
        for cut in (here, everywhere))
    return give(effect(one, clean), effect(every, clean))

def added_up(model, input_ids, layer, head):
    places = range(input_ids.shape[1])
    each = [one_and_all(model, input_ids, layer, head, here=p) for p in places]
    return each[-2][0], sum(one for one, _ in each)

one_and_all.wrong("effects.not subtracted",
                  "These are log-probabilities with the lesion; an effect is their difference from "
                  "the clean run.", effect=itself)
one_and_all.wrong("effects.sign",
                  "The sign is the other way round: effect = lesioned minus clean, negative where "
                  "the head helped.", effect=torch.rsub)
one_and_all.wrong("effects.swapped", "The two effects have changed places: one position first.",
                  give=lambda one, every: (every, one))
one_and_all.wrong("effects.position -1 for -2",
                  "The first effect is zero: cutting at position -1 cannot change what position -2 "
                  "predicts.", here=-1)
one_and_all.wrong("effects.read at -1",
                  "The prediction is read at -1; the last token is predicted at -2.", read=-1)
one_and_all.wrong("effects.one position twice", "Both are the effect at one position.",
                  give=lambda one, every: (one, one))
one_and_all.wrong("effects.all positions twice",
                  "Both are the effect at all positions. Was the list of positions used?",
                  give=lambda one, every: (every, every))
one_and_all.wrong("effects.position left out of all", "'All positions' contains -2 too.",
                  everywhere=slice(None, -2))
one_and_all.wrong("effects.measured against the first lesion",
                  "The second effect is the difference from the first lesion, not from the clean "
                  "run.", give=lambda one, every: (one, every - one))
one_and_all.wrong("effects.another head",
                  "This is the head after the one asked for. Heads count from 0.", which=next_head)
one_and_all.wrong(
    "effects.another head", "This is the head before the one asked for. Heads count from 0.",
    which=head_before)
one_and_all.wrong(
    "effects.batch averaged", "The sequences are averaged; one number each is asked for.",
    give=lambda one, every: (one.mean(), every.mean()))
one_and_all.wrong("effects.nothing changed",
                  "Nothing changed: the lesion never reached the model. Does the hook return what "
                  "it made?", effect=lambda lesioned, clean: 0 * clean)
one_and_all.wrong("effects.ratio", "These are quotients; an effect is a difference.",
                  effect=torch.div)
one_and_all.wrong("effects.probabilities",
                  "These are differences of probabilities; log-probabilities are asked for.",
                  effect=lambda lesioned, clean: lesioned.exp() - clean.exp())
one_and_all.wrong("effects.absolute values",
                  "The effects lost their sign: it says whether the head helped or harmed.",
                  effect=lambda lesioned, clean: (lesioned - clean).abs())
one_and_all.wrong(
    "effects.added up",
    "The effects of single positions are added up. Cut all positions in one run.", added_up)


def grids(draw: Draw, layers=(2, 3)) -> list[Call]:
    asked = (gpt2_and_ids(draw, number) for number in layers)
    return [Call("", (model, ids), says=text) for model, ids, text in asked]


def mean_log_prob(model, input_ids):
    return next_log_probs(model, input_ids).mean()


@exercise("causal.grid", grids,
          hints=(
              "One clean run, then one run for each head. What must be true of the model at the "
              "beginning of each of them?",
              "Measure one number: the mean log-probability of all next tokens. Put the hook in, "
              "measure, take the hook out, subtract the clean number.",
              "Two loops; make the hook in a function that is given the head, register it on "
              "model.transformer.h[layer].attn.c_proj, remove it before the next round."))
def lesion_grid(model, input_ids, measure=mean_log_prob, where=ALL, effect=torch.sub,
                finish=torch.clone):
    heads, clean, rows = model.config.n_head, measure(model, input_ids), []
    for block in model.transformer.h:
        rows.append([])
        for head in range(heads):
            cut = partial(without_head, num_heads=heads, head=head, position=where)
            with changed(block.attn.c_proj, cut):
                rows[-1].append(effect(measure(model, input_ids), clean))
    return finish(torch.stack([torch.stack(row) for row in rows]))

def hooks_stay(model, input_ids, until_next_layer=False, late_binding=False):
    """Hooks are not removed: each lesion comes on top of those before."""
    heads, clean, now = model.config.n_head, mean_log_prob(model, input_ids), {}
    effects, handles = torch.zeros(model.config.n_layer, heads), []
    for layer, block in enumerate(model.transformer.h):
        for head in range(heads):
            now["head"] = head

            def cut(z, head=head):
                return without_head(z, heads, now["head"] if late_binding else head, ALL)

            handles.append(changed(block.attn.c_proj, cut))
            effects[layer, head] = mean_log_prob(model, input_ids) - clean
        while until_next_layer and handles:
            handles.pop().remove()
    for handle in handles:
        handle.remove()
    return effects

STAYS = "Each lesion comes on top of the ones before: the hooks were not removed between the runs."
lesion_grid.wrong(
    "grid.hook left in", STAYS, hooks_stay, partial(hooks_stay, until_next_layer=True))
lesion_grid.wrong("grid.hook left in",
                  f"{STAYS} And they all read the loop variable as it is now (late binding).",
                  partial(hooks_stay, late_binding=True))
lesion_grid.wrong("grid.sign",
                  "The sign is the other way round: lesioned minus clean, negative where the head "
                  "helps.", effect=torch.rsub)
lesion_grid.wrong("grid.not subtracted",
                  "These are the measures with a lesion; subtract the clean one.", effect=itself)
lesion_grid.wrong("grid.heads and layers swapped", "Layers should be rows and heads columns.",
                  finish=lambda grid: grid.transpose(0, 1))
lesion_grid.wrong("grid.last token alone",
                  "Only the last token's prediction is measured; all next tokens are asked for.",
                  measure=lambda m, ids: final_log_prob(m, ids).mean())
lesion_grid.wrong("grid.summed", "The log-probabilities are summed; their mean is asked for.",
                  measure=lambda m, ids: next_log_probs(m, ids).sum())
lesion_grid.wrong("grid.first item alone", "Only the first sequence is measured.",
                  measure=lambda m, ids: next_log_probs(m, ids)[0].mean())
lesion_grid.wrong(
    "grid.batch kept", "Each sequence has its own effect here; average over the batch.",
    measure=lambda m, ids: next_log_probs(m, ids).mean(1))
lesion_grid.wrong(
    "grid.one position", "The head is cut at position -2 alone; cut it at all.", where=-2)
lesion_grid.wrong(
    "grid.not shifted",
    "The log-probabilities are those of the tokens that already stand there. Position t predicts "
    "token t + 1.",
    measure=lambda m, ids: logits_of(m, ids).log_softmax(-1).gather(-1, ids[..., None]).mean())
lesion_grid.wrong("grid.nothing changed",
                  "Nothing changed: the lesions never reached the model. Does the hook return what "
                  "it made?", effect=lambda lesioned, clean: 0 * clean)
lesion_grid.wrong(
    "grid.probabilities", "Probabilities are averaged; the logarithm comes before the mean.",
    measure=lambda m, ids: next_log_probs(m, ids).exp().mean())
lesion_grid.wrong("grid.logits", "Logits are averaged, not yet normalised over the vocabulary.",
                  measure=lambda m, ids: next_log_probs(m, ids, normalise=itself).mean())
lesion_grid.wrong("grid.log-softmax axis", AXIS,
                  measure=lambda m, ids: next_log_probs(m, ids, dim=1).mean())
lesion_grid.wrong(
    "grid.not shifted",
    "Position t + 1 is read for token t. It is the other way round: position t predicts token "
    "t + 1.",
    measure=lambda m, ids: (
        logits_of(m, ids)[:, 1:].log_softmax(-1).gather(-1, ids[:, :-1, None]).mean()))
lesion_grid.wrong(
    "grid.absolute values", "The effects lost their sign: it says whether a head helps or harms.",
    effect=lambda lesioned, clean: (lesioned - clean).abs())
lesion_grid.wrong("grid.relative",
                  "This is the change as a share of the clean value; the change itself is asked "
                  "for.", effect=lambda lesioned, clean: (lesioned - clean) / clean)
lesion_grid.wrong("grid.base", "These are logarithms to base 2; natural ones are asked for.",
                  effect=lambda lesioned, clean: (lesioned - clean) / torch.tensor(2.0).log())
lesion_grid.wrong("grid.late binding",
                  "Every hook cuts the last head: it reads the loop variable when it runs, and by "
                  "then the loop is over.", finish=lambda grid: grid[:, -1:].expand_as(grid))


# --- direct effects ------------------------------------------------------------------------------
def deviation(x, parts, eps):
    return (x.var(-1, correction=0) + eps).sqrt()[:, None, None, None]


def own_deviation(x, parts, eps):
    return (parts.var(-1, correction=0, keepdim=True) + eps).sqrt()


def blocks_of(t, num_heads):
    return t.unflatten(-1, (num_heads, -1))


@exercise("causal.direct", partial(grids, layers=(2, 3, 2)),
          hints=(
              "The residual stream is a sum, and the unembedding is linear. Only one thing between "
              "them is not, and you may freeze it at what it did in the clean run.",
              "A head's part of the residual stream is its slice of c_proj's input times its rows "
              "of c_proj's weight. ln_f subtracts the mean, divides by a number that you take from "
              "the clean run, and multiplies by its weight. No bias belongs to a head.",
              "For each head: part - part.mean(-1), times ln_f.weight, dotted with the last "
              "token's row of lm_head.weight, over sqrt(var + eps) of ln_f's input at -2. rest = "
              "logit - all heads."))
def logit_parts(model, input_ids, read=-2, token=-1, rows=itself, heads_of=blocks_of, bias=0,
                centre=1, gain=1, shift=0, divisor=deviation, dotted=torch.mul, total=itself,
                give=lambda parts, logit: (parts, logit - parts.sum((1, 2)))):
    norm, ids = model.transformer.ln_f, input_ids[:, token]
    with torch.no_grad(), record(model, ["h.*.attn.c_proj:input", "ln_f:input"]) as read_by:
        logits = model(input_ids).logits[:, read]  # [batch_size, vocab_size]
        *z, x = (each[:, read] for each in read_by.values())  # [batch_size, hidden], each
        parts = []
        for block, entering in zip(model.transformer.h, z, strict=True):
            c_proj, cut = block.attn.c_proj, partial(heads_of, num_heads=model.config.n_head)
            written = torch.einsum("bhs,ohs->bho", cut(entering), cut(rows(c_proj.weight).T))
            parts.append(written + bias * c_proj.bias)
        parts = torch.stack(parts, dim=1)  # [batch_size, num_layers, num_heads, hidden]
        parts = parts - centre * parts.mean(-1, keepdim=True)
        parts = parts / divisor(x, parts, norm.eps) * norm.weight**gain + shift * norm.bias
        found = dotted(parts, model.lm_head.weight[ids][:, None, None]).sum(-1)
        logit = total(logits).gather(-1, ids[:, None]).squeeze(-1)
    return give(found, logit)

logit_parts.wrong("direct.final norm missing",
                  "The final norm is left out altogether: neither its mean, nor its scale, nor its "
                  "weight is there.", centre=0, gain=0, divisor=lambda x, parts, eps: 1)
logit_parts.wrong(
    "direct.not divided", "The final norm also divides; take the divisor from the clean run.",
    divisor=lambda x, parts, eps: 1)
logit_parts.wrong("direct.gain missing", "The final norm's weight is missing.", gain=0)
logit_parts.wrong(
    "direct.not centred",
    "The final norm subtracts the mean over the features, from each part too.", centre=0)
logit_parts.wrong(
    "direct.norm for each head",
    "Each head's part went through ln_f by itself, which blows all of them up to the same size. "
    "Freeze the divisor at what the clean run had.", divisor=own_deviation, shift=1)
logit_parts.wrong(
    "direct.variance for deviation", "Divided by the variance; the norm divides by its root.",
    divisor=lambda x, parts, eps: deviation(x, parts, eps) ** 2)
logit_parts.wrong(
    "direct.ddof", "A LayerNorm's variance divides by the number of features, not by one less.",
    divisor=lambda x, parts, eps: (x.var(-1) + eps).sqrt()[:, None, None, None])
logit_parts.wrong("direct.bias counted",
                  "c_proj's bias was added to every head's part. It belongs to no head.", bias=1)
logit_parts.wrong("direct.weight transposed",
                  "c_proj's weight is transposed. Conv1D stores [in, out], so a head has rows, not "
                  "columns.", rows=torch.t)
logit_parts.wrong("direct.interleaved heads",
                  "The heads are interleaved. A head's features, and its rows, stand together.",
                  heads_of=lambda t, num_heads: t.unflatten(-1, (-1, num_heads)).mT)
logit_parts.wrong(
    "direct.position -1", "This is read at -1; the last token is predicted at -2.", read=-1)
logit_parts.wrong("direct.another token",
                  "This is the logit of the token at -2; the last one is explained.", token=-2)
logit_parts.wrong(
    "direct.rest", "The heads are right. `rest` is what is missing to the logit, not the logit.",
    give=lambda parts, logit: (parts, logit))
logit_parts.wrong("direct.axes", "The parts are right, in another order of axes than asked for.",
                  give=lambda parts, logit: (parts.permute(1, 2, 0), logit - parts.sum((1, 2))))
logit_parts.wrong(
    "direct.log-probability", "This takes a log-probability apart; the logit is asked for.",
    total=lambda logits: logits.log_softmax(-1))
logit_parts.wrong("direct.own deviation",
                  "Each head's part is divided by its own deviation. Freeze the divisor at what "
                  "the whole stream had in the clean run.", divisor=own_deviation)
logit_parts.wrong("direct.shift counted",
                  "ln_f's bias was added to every head's part. It belongs to no head.", shift=1)
logit_parts.wrong("direct.not dotted",
                  "The parts are summed as they are; the logit is their dot product with the "
                  "token's row.", dotted=itself)


# --- one wire ------------------------------------------------------------------------------------
def wires(draw: Draw) -> list[Call]:
    """Through a norm of each kind; sender and reader in the same layer, and far apart."""
    calls = []
    asked = ((0, "h.0.ln_2", 2), (1, "h.2.ln_1", 3), (0, "h.2.ln_2", 2), (2, "ln_f", 2))
    for place, (layer, reader, batch_size) in enumerate(asked):
        model, ids, text = gpt2_and_ids(draw, 3, batch_size)
        head = pick_head(draw, place, model.values["config"]["n_head"])
        says = f"{text}; layer {layer}, head {head}, heard through {reader}"
        calls.append(Call("", (model, ids, layer, head, reader), says=says))
    return calls


def heard(stream, said):
    return stream - said


@exercise("causal.path", wires,
          hints=(
              "What this head adds to the stream is known: its slice of what c_proj reads, times "
              "its rows of c_proj's weight. Who else must not notice that it is missing?",
              "Run once and record c_proj's input. Then run again with a pre-hook on the reader's "
              "norm, which hands on the stream without the head's part: a new tensor, for the "
              "stream itself goes on to everybody else.",
              "said = z[..., own] @ c_proj.weight[own] with own = slice(head * size, (head + 1) * "
              "size). The pre-hook on model.transformer.get_submodule(reader) returns "
              "(inputs[0] - said, *inputs[1:])."))
def without_path(model, input_ids, layer, head, reader, rows=itself, owners=in_blocks,
                 which=torch.eq, bias=0, project=True, where=ALL, hear=heard, output=False,
                 at=lambda stack, layer, reader: stack.get_submodule(reader), read=-2,
                 finish=torch.clone):
    stack, heads = model.transformer, model.config.n_head
    c_proj, name = stack.h[layer].attn.c_proj, f"h.{layer}.attn.c_proj:input"
    with torch.no_grad(), record(model, name) as acts:
        model(input_ids)
        own = which(owners(model.config.n_embd, heads), head)  # [hidden], the head's features
        z = acts[name] * own  # [batch_size, seq_len, hidden]
        all_said = z @ rows(c_proj.weight) + bias * c_proj.bias if project else z
        said = torch.zeros_like(all_said)
        said[:, where] = all_said[:, where]
    with changed(at(stack, layer, reader), lambda stream: hear(stream, said), output):
        return finish(final_log_prob(model, input_ids, read))

def for_everybody(model, ids, layer, head, reader):
    return without_path(model, ids, layer, head, reader, hear=torch.Tensor.sub_)

def from_there_on(model, ids, layer, head, reader):
    """The stream itself is changed where the block of the reader begins."""
    at = model.transformer.ln_f if reader == "ln_f" else model.transformer.h[int(reader[2])]
    return without_path(model, ids, layer, head, reader, at=lambda *_: at)

def whole_lesion(model, ids, layer, head, reader):
    return lesioned_log_prob(model, ids, layer, head, ALL)

without_path.wrong(
    "path.in place",
    "The stream itself was changed, for all who come after: `-=` (and any method that ends in _) "
    "edits the tensor that everybody reads. Hand on a new one, `inputs[0] - said`.",
    hear=torch.Tensor.sub_)
without_path.wrong(
    "path.whole lesion",
    "This is the lesion: nobody hears the head any more. One reader alone should not.",
    whole_lesion)
without_path.wrong(
    "path.from there on",
    "The stream was changed where the reader's block begins, so that all of the block and all "
    "after it go without the head. Change what the reader's norm reads, and nothing else.",
    from_there_on)
without_path.wrong(
    "path.nothing changed",
    "This is the clean value: the reader heard everything. Does the hook return what it made?",
    lambda model, ids, *wire: final_log_prob(model, ids))
without_path.wrong("path.added", "The head's part was added once more; it should be taken away.",
                   hear=torch.add)
without_path.wrong(
    "path.the head alone", "The reader hears the head and nothing else; it should be without it.",
    hear=lambda stream, said: said)
without_path.wrong(
    "path.after the norm",
    "The head's part was taken away behind the norm. It was added to the stream before it: change "
    "what the norm reads.", output=True)
without_path.wrong(
    "path.not projected",
    "What you took away is z, what c_proj reads. The stream gets z times the head's rows of "
    "c_proj's weight.", project=False)
without_path.wrong("path.bias counted",
                   "c_proj's bias was taken away too. It belongs to no head.", bias=1)
without_path.wrong("path.all heads",
                   "The whole attention of the layer was taken away, not one head.",
                   which=lambda owners, head: owners >= 0)
without_path.wrong("path.all heads",
                   "The whole output of c_proj was taken away, bias and all, not one head.", bias=1,
                   which=lambda owners, head: owners >= 0)
without_path.wrong("path.weight transposed",
                   "c_proj's weight is transposed. Conv1D stores [in, out]: a head has rows.",
                   rows=torch.t)
without_path.wrong("path.another head", "This is the head after the one asked for.",
                   which=next_head)
without_path.wrong("path.another head", "This is the head before the one asked for.",
                   which=head_before)
without_path.wrong("path.interleaved",
                   "You took every num_heads-th feature. A head's features stand together.",
                   owners=interleaved)
without_path.wrong("path.one position",
                   "The head goes unheard at position -2 alone; it should at every position.",
                   where=-2)
without_path.wrong(
    "path.read at -1", "This is read at -1; the last token is predicted at -2.", read=-1)
without_path.wrong("path.probability", "This is a probability; its logarithm is asked for.",
                   finish=torch.exp)
without_path.wrong(
    "path.difference", "This is the change; the log-probability is asked for.",
    lambda model, ids, *wire: without_path(model, ids, *wire) - final_log_prob(model, ids))
without_path.wrong("path.batch averaged", "The sequences are averaged; one number each is asked "
                   "for.", finish=torch.mean)


# --- induction -----------------------------------------------------------------------------------
def repetitions(draw: Draw) -> list[Call]:
    calls = []
    for kinds in (5, 3, 6):
        batch_size, heads = draw.sizes(2, 2, 5)
        seq_len = draw.choice((11, 13))
        ids = draw.integers(10, 10 + kinds, batch_size, seq_len)
        ids[0] = torch.arange(20, 20 + seq_len)  # one sequence in which few tokens come back
        ids[0, -3:] = ids[0, :3]
        scores = draw.normal(batch_size, heads, seq_len, seq_len, scale=1.5)
        future = torch.ones(seq_len, seq_len).triu(1).bool()
        probs = scores.masked_fill(future, float("-inf")).softmax(-1)
        says = f"{batch_size} sequences of {seq_len} tokens, {heads} heads"
        calls.append(Call("", (probs, ids), says=says))
    return calls


def matching(ids, shift=1):
    """Where the token `shift` before a key equals the query's and is an earlier one:
    [batch_size, queries, keys]."""
    match = (ids[:, :, None] == ids.roll(shift, 1)[:, None]).tril(shift - 1)
    match[..., : max(shift, 0)] = False
    return match


def summed(probs, match):
    return (probs * match[:, None]).sum(-1)


@exercise("causal.induction", repetitions,
          hints=(
              "Query i holds a token. It stood somewhere before: at j. Which key would you look "
              "at, to guess what comes next?",
              "Key k matches query i if the token at k - 1 equals the token at i, for "
              "1 <= k <= i. Sum the weights of the matching keys; which queries have none?",
              "match[:, :, 1:] = ids[:, :, None] == ids[:, None, :-1], lower triangle; sum "
              "probs * match over the keys; mean over the queries with match.any(-1)."))
def prefix_matching(probs, input_ids, matches=matching, weigh=summed,
                    average=lambda weight, counted: weight.sum((0, 2)) / counted.sum()):
    match = matches(input_ids)  # [batch_size, seq_len, seq_len]
    return average(weigh(probs, match), match.any(-1))

def with_key_0(ids):
    """`roll` brings the last token round: key 0 matches queries that hold it."""
    match = matching(ids)
    match[..., 0] = ids == ids[:, -1:]
    return match

def by_sequence(weight, counted):
    return weight.sum(2) / counted.sum(1)[:, None]

prefix_matching.wrong(
    "induction.same token",
    "This is the attention to the earlier copy of the same token: a duplicate-token head. "
    "Induction looks at the token AFTER it.", matches=partial(matching, shift=0))
prefix_matching.wrong("induction.token before",
                      "This is the attention to the token before the earlier copy; the one after "
                      "it is asked for.", matches=partial(matching, shift=-1))
prefix_matching.wrong("induction.previous token",
                      "This is the attention to the token just before: a previous-token head.",
                      lambda probs, ids: probs.diagonal(-1, -2, -1).mean((0, 2)))
prefix_matching.wrong("induction.all queries counted",
                      "The mean runs over all queries; only those whose token has stood before can "
                      "match anything.", average=lambda weight, counted: weight.mean((0, 2)))
prefix_matching.wrong(
    "induction.mean over keys",
    "This is the mean over the matching pairs. A query's matching keys are summed; the mean is "
    "over queries.",
    lambda probs, ids: summed(probs, matching(ids)).sum((0, 2)) / matching(ids).sum())
prefix_matching.wrong(
    "induction.mean of means",
    "Each sequence was averaged first, and then the sequences. All counted queries weigh the same.",
    average=lambda weight, counted: by_sequence(weight, counted).mean(0))
prefix_matching.wrong(
    "induction.last occurrence alone",
    "Only the last earlier occurrence is counted; sum over all of them.",
    matches=lambda ids: matching(ids) & (matching(ids).flip(-1).cumsum(-1).flip(-1) == 1))
prefix_matching.wrong("induction.first occurrence alone",
                      "Only the first earlier occurrence is counted; sum over all of them.",
                      matches=lambda ids: matching(ids) & (matching(ids).cumsum(-1) == 1))
prefix_matching.wrong("induction.own key left out",
                      "Where a token follows itself, the matching key is the query's own position. "
                      "It counts.", weigh=lambda probs, match: summed(probs, match.tril(-1)))
prefix_matching.wrong(
    "induction.heads averaged", "The heads are averaged; one number each is asked for.",
    lambda probs, ids: prefix_matching(probs, ids).mean())
prefix_matching.wrong("induction.queries and keys swapped",
                      "Rows are queries and columns keys; you read the map the other way round.",
                      weigh=lambda probs, match: summed(probs.mT, match))
prefix_matching.wrong(
    "induction.sum", "The weights are summed over the queries; their mean is asked for.",
    average=lambda weight, counted: weight.sum((0, 2)))
prefix_matching.wrong("induction.own key left out",
                      "Where a token follows itself, the matching key is the query's own position. "
                      "It counts.", matches=lambda ids: matching(ids).tril(-1))
prefix_matching.wrong("induction.key 0",
                      "Nothing stands before the first token, so key 0 matches no query. (`roll` "
                      "brings the last token round to its place.)", matches=with_key_0)
prefix_matching.wrong("induction.largest key",
                      "Only the largest matching weight is taken; sum over all matching keys.",
                      weigh=lambda probs, match: (probs * match[:, None]).amax(-1))
prefix_matching.wrong("induction.batch kept",
                      "Each sequence has a number of its own; all counted queries go into one "
                      "mean.", average=by_sequence)


# --- copying -------------------------------------------------------------------------------------
def shares_of(values):
    return values.sum(-1).real / values.abs().sum(-1)


def turned_round(w_e, w_v, w_o, w_u):
    return w_o @ (w_u @ w_e) @ w_v  # [num_heads, head_size, head_size]


def whole(w_e, w_v, w_o, w_u):
    return w_e @ w_v @ w_o @ w_u  # [num_heads, vocab_size, vocab_size]


@exercise("causal.copying",
          "copying_scores(w_e[vocab_size, hidden], w_v[num_heads, hidden, head_size], "
          "w_o[num_heads, head_size, hidden], w_u[hidden, vocab_size])", times=3,
          sizes={"vocab_size": (13, 17), "hidden": (7, 11), "head_size": (3, 4),
                 "num_heads": (5, 6)},
          hints=(
              "The circuit is W_E W_V W_O W_U. It has vocab_size rows, and its rank is head_size: "
              "where are the eigenvalues that are not zero?",
              "A B and B A have the same nonzero eigenvalues. Turn the product round so that the "
              "short axis is outside; `@` takes all heads at once.",
              "values = torch.linalg.eigvals(w_o @ (w_u @ w_e) @ w_v) are complex, [num_heads, "
              "head_size]. Divide their sum over the last axis (its imaginary part is 0) by the "
              "sum of values.abs()."))
def copying_scores(w_e, w_v, w_o, w_u, product=turned_round, spectrum=torch.linalg.eigvals,
                   score=shares_of):
    return score(spectrum(product(w_e, w_v, w_o, w_u)))

ONE = ("The score is 1 for any head. Singular values are never negative, and absolute values "
       "belong below the line only: eigenvalues above it keep their sign.")
TRIANGLE = ("eigvalsh takes the matrix for symmetric. The circuit is not: torch.linalg.eigvals "
            "takes it as it is.")
OWN = "These are diagonal entries, not eigenvalues."
copying_scores.wrong("copying.always 1", ONE, spectrum=torch.linalg.svdvals)
copying_scores.wrong("copying.always 1", ONE, score=lambda v: v.abs().sum(-1) / v.abs().sum(-1))
copying_scores.wrong("copying.symmetric part", TRIANGLE, spectrum=torch.linalg.eigvalsh)
copying_scores.wrong(
    "copying.symmetric part", TRIANGLE, product=whole, spectrum=torch.linalg.eigvalsh)
for product in (whole, turned_round):
    copying_scores.wrong("copying.symmetric part", TRIANGLE, product=product,
                         spectrum=lambda m: torch.linalg.eigvalsh((m + m.mT) / 2))
copying_scores.wrong(
    "copying.imaginary parts dropped",
    "The imaginary parts were dropped before the absolute values were taken. |lambda| is the size "
    "of the complex number.", score=lambda v: v.real.sum(-1) / v.real.abs().sum(-1))
copying_scores.wrong(
    "copying.sign lost",
    "The sign is lost: a head that makes tokens less likely has a negative score.",
    score=lambda v: shares_of(v).abs())
copying_scores.wrong(
    "copying.count",
    "This is the share of eigenvalues with a positive real part; their sum over the sum of their "
    "absolute values is asked for.", score=lambda v: (v.real > 0).double().mean(-1))
copying_scores.wrong(
    "copying.positive share",
    "The positive eigenvalues alone are summed above; the negative ones count against them.",
    score=lambda v: v.real.clamp(min=0).sum(-1) / v.abs().sum(-1))
copying_scores.wrong("copying.not divided", "This is the sum of the eigenvalues; divide it by the "
                     "sum of their absolute values.", score=lambda v: v.sum(-1).real)
copying_scores.wrong("copying.mean", "Divided by the number of eigenvalues, not by the sum of "
                     "their absolute values.", score=lambda v: v.mean(-1).real)
copying_scores.wrong(
    "copying.norm", "Divided by the size of the whole circuit (a norm), not by the sum of the "
    "eigenvalues' absolute values.",
    lambda *w: whole(*w).diagonal(0, -2, -1).sum(-1) / whole(*w).norm(dim=(-2, -1)))
for product in (whole, turned_round):
    copying_scores.wrong("copying.diagonal", OWN, product=product,
                         spectrum=lambda m: m.diagonal(0, -2, -1))
copying_scores.wrong("copying.no vocabulary",
                     "This is W_V W_O alone: how the head turns one place of the stream into "
                     "another. Tokens come in by W_E and go out by W_U.",
                     product=lambda w_e, w_v, w_o, w_u: w_o @ w_v)
copying_scores.wrong("copying.embeddings swapped",
                     "W_E and W_U have changed places: tokens are looked at through W_E and said "
                     "through W_U.",
                     product=lambda w_e, w_v, w_o, w_u: w_o @ (w_u @ w_e).T @ w_v)
copying_scores.wrong("copying.unembedding for both",
                     "The embedding is missing: W_U stands in its place too.",
                     product=lambda w_e, w_v, w_o, w_u: w_o @ (w_u @ w_u.T) @ w_v)
copying_scores.wrong("copying.embedding for both",
                     "The unembedding is missing: W_E stands in its place too.",
                     product=lambda w_e, w_v, w_o, w_u: w_o @ (w_e.T @ w_e) @ w_v)
copying_scores.wrong("copying.one head alone",
                     "All heads have the first one's score; each has its own matrices.",
                     score=lambda v: shares_of(v)[:1].expand(len(v)))
copying_scores.wrong("copying.heads as one",
                     "The eigenvalues of all heads were put together; one score a head is asked "
                     "for.", score=lambda v: shares_of(v.flatten()))


# --- one's own attention -------------------------------------------------------------------------
def transplants(draw: Draw) -> list[Call]:
    asked = (gpt2_and_ids(draw, layers) for layers in (2, 3))
    return [Call("", (ids,), init=(gpt2,), gradients=True, says=text) for gpt2, ids, text in asked]


@exercise("causal.own", transplants, judge=by_own_modules, layers=(),
          hints=(
              "Two layouts meet: Conv1D stores [in, out], nn.Linear stores [out, in]. And c_attn "
              "is three matrices in one.",
              "For each block: a MultiHeadSelfAttention with causal=True; cut c_attn's weight and "
              "bias in three along the last axis; transpose each matrix. Then write down what a "
              "block does: two norms, two additions.",
              "x = wte(ids) + wpe(0 ... seq_len - 1); in each block x = x + own(ln_1(x)) and "
              "x = x + mlp(ln_2(x)); logits = lm_head(ln_f(x)). Keep the own modules in an "
              "nn.ModuleList."))
class OwnGPT2(nn.Module):
    """GPT-2 whose attention is a MultiHeadSelfAttention in every block."""

    causal, one_head, order, turn, turn_mix = True, False, "qkv", torch.t, torch.t
    bias, mix_bias, first_only = 1, 1, False

    def __init__(self, gpt2):
        super().__init__()
        self.stack, self.lm_head = gpt2.transformer, gpt2.lm_head
        size, heads = gpt2.config.n_embd, 1 if self.one_head else gpt2.config.n_head
        self.attentions = nn.ModuleList()
        for block in gpt2.transformer.h:
            own = MultiHeadSelfAttention(size, size, heads, causal=self.causal)
            weights, biases = (t.chunk(3, -1) for t in block.attn.c_attn.parameters())
            for name, w, b in zip(self.order, weights, biases, strict=True):
                state = {"weight": self.turn(w), "bias": b * self.bias}
                getattr(own, name).load_state_dict(state)
            w, b = block.attn.c_proj.parameters()
            own.mix.load_state_dict({"weight": self.turn_mix(w), "bias": b * self.mix_bias})
            self.attentions.append(own)

    def embed(self, ids):
        return self.stack.wte(ids) + self.stack.wpe(torch.arange(ids.shape[1]))

    def attend(self, x, block, own):
        return x + own(block.ln_1(x))

    def think(self, x, block, before):
        return x + block.mlp(block.ln_2(x))

    def unembed(self, x):
        return self.lm_head(self.stack.ln_f(x))

    def forward(self, input_ids):
        x = self.embed(input_ids)
        for block, own in zip(self.stack.h, self.attentions, strict=True):
            after = self.attend(x, block, self.attentions[0] if self.first_only else own)
            x = self.think(after, block, before=x)
        return self.unembed(x)

OwnGPT2.wrong(
    "own.weights not transposed",
    "The weights were copied as they stand. Conv1D stores [in, out], nn.Linear [out, in]; a "
    "square matrix fits both ways and is wrong one way.", turn=torch.clone, turn_mix=torch.clone)
OwnGPT2.wrong("own.weights not transposed",
              "q, k and v were copied as they stand; Conv1D's [in, out] must become nn.Linear's "
              "[out, in].", turn=torch.clone)
OwnGPT2.wrong("own.weights not transposed",
              "mix was copied as it stands; Conv1D's [in, out] must become nn.Linear's [out, in].",
              turn_mix=torch.clone)
OwnGPT2.wrong("own.order", "Keys and queries have changed places. c_attn holds query, key, value.",
              order="kqv")
OwnGPT2.wrong("own.order", "Keys and values have changed places. c_attn holds query, key, value.",
              order="qvk")
OwnGPT2.wrong(
    "own.order",
    "Queries and values have changed places. c_attn holds query, key, value.", order="vkq")
OwnGPT2.wrong(
    "own.not causal", "The attention sees later tokens: build it with causal=True.", causal=False)
OwnGPT2.wrong(
    "own.biases lost", "The biases of q, k, v and mix are missing or zero.", bias=0, mix_bias=0)
OwnGPT2.wrong("own.one head", "All features are one head. num_heads is in the config.",
              one_head=True)
OwnGPT2.wrong("own.no positions", "The position embeddings (wpe) are missing.",
              embed=lambda self, ids: self.stack.wte(ids))
OwnGPT2.wrong("own.final norm missing", "The final norm, ln_f, is missing.",
              unembed=lambda self, x: self.lm_head(x))
OwnGPT2.wrong("own.final norm twice", "The final norm, ln_f, is applied twice.",
              unembed=lambda self, x: self.lm_head(self.stack.ln_f(self.stack.ln_f(x))))
OwnGPT2.wrong("own.residual missing",
              "The attention's output replaces the residual stream; it should be added to it.",
              attend=lambda self, x, block, own: own(block.ln_1(x)))
OwnGPT2.wrong("own.norm before attention missing",
              "The attention reads ln_1 of the residual stream, not the stream itself.",
              attend=lambda self, x, block, own: x + own(x))
OwnGPT2.wrong("own.biases lost", "The biases of q, k and v are missing or zero.", bias=0)
OwnGPT2.wrong("own.biases lost", "The bias of mix is missing or zero.", mix_bias=0)
OwnGPT2.wrong("own.positions", "Every token has the position 0.",
              embed=lambda self, ids: self.stack.wte(ids) + self.stack.wpe(0 * ids))
OwnGPT2.wrong(
    "own.positions", "Positions count from 0; here they count from 1.",
    embed=lambda self, ids: (
        self.stack.wte(ids) + self.stack.wpe(1 + torch.arange(ids.shape[1]))))
OwnGPT2.wrong(
    "own.MLP missing", "The MLP is missing: a block writes twice, attention and then MLP.",
    think=lambda self, x, block, before: x)
OwnGPT2.wrong("own.residual missing",
              "The MLP's output replaces the residual stream; it should be added to it.",
              think=lambda self, x, block, before: block.mlp(block.ln_2(x)))
OwnGPT2.wrong("own.norm before MLP missing",
              "The MLP reads ln_2 of the residual stream, not the stream itself.",
              think=lambda self, x, block, before: x + block.mlp(x))
OwnGPT2.wrong(
    "own.parallel",
    "Attention and MLP read the same stream; the MLP should read what the attention has written "
    "as well.", think=lambda self, x, block, before: x + block.mlp(block.ln_2(before)))
OwnGPT2.wrong(
    "own.first layer everywhere",
    "Every block has the first layer's attention. Each has weights of its own.", first_only=True)
OwnGPT2.wrong("own.log-softmax", "These are log-probabilities; logits are asked for.",
              unembed=lambda self, x: OwnGPT2.unembed(self, x).log_softmax(-1))
