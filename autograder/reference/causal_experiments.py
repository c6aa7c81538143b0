"""Answers of lesson 12, its lesions, and wrong programs; see also `lesion_effects`."""

from __future__ import annotations

from contextlib import contextmanager

import torch
import torch.nn.functional as F

from autograder.course.asking import Mistake


# --- reading -------------------------------------------------------------------------------------
def logits_of(model, input_ids):
    with torch.no_grad():
        return model(input_ids).logits


def _pick(log_probs, input_ids):
    return log_probs.gather(-1, input_ids[:, -1:]).squeeze(-1)


def next_log_probs(model, input_ids):
    log_probs = F.log_softmax(logits_of(model, input_ids)[:, :-1], -1)
    return log_probs.gather(-1, input_ids[:, 1:, None]).squeeze(-1)


def final_log_prob(model, input_ids, position=-2):
    return _pick(F.log_softmax(logits_of(model, input_ids)[:, position], dim=-1), input_ids)


def _over(dim):
    def wrong(model, input_ids):
        return _pick(F.log_softmax(logits_of(model, input_ids), dim=dim)[:, -2], input_ids)

    return wrong


def _argmax(model, input_ids):
    return F.log_softmax(logits_of(model, input_ids)[:, -2], -1).max(-1).values


def _token(place):
    def wrong(model, input_ids):
        log_probs = F.log_softmax(logits_of(model, input_ids)[:, -2], -1)
        return log_probs.gather(-1, input_ids[:, place, None]).squeeze(-1)

    return wrong


AXIS = (
    "The log-softmax runs over the wrong axis: the probabilities of the whole vocabulary sum "
    "to 1, not those of all positions or sequences."
)
_CLEAN = [
    (
        "clean.position -1",
        "This is read at position -1, which predicts the token after the text. "
        "The last token is predicted one position earlier.",
        lambda m, i: final_log_prob(m, i, -1),
    ),
    (
        "clean.position -3",
        "This is read one position too early.",
        lambda m, i: final_log_prob(m, i, -3),
    ),
    ("clean.log-softmax axis", AXIS, _over(1)),
    ("clean.log-softmax axis", AXIS, _over(0)),
    (
        "clean.log-softmax axis",
        AXIS,
        lambda m, i: _pick(F.log_softmax(logits_of(m, i)[:, -2], dim=0), i),
    ),
    (
        "clean.probability",
        "This is a probability; its logarithm is asked for.",
        lambda m, i: final_log_prob(m, i).exp(),
    ),
    (
        "clean.base",
        "This is a logarithm to base 10 or 2; natural logarithms are asked for.",
        lambda m, i: final_log_prob(m, i) / torch.tensor(10.0).log(),
    ),
    (
        "clean.base",
        "This is a logarithm to base 10 or 2; natural logarithms are asked for.",
        lambda m, i: final_log_prob(m, i) / torch.tensor(2.0).log(),
    ),
    (
        "clean.sign",
        "This is the loss, the negative of what is asked for.",
        lambda m, i: -final_log_prob(m, i),
    ),
    (
        "clean.logit",
        "This is a logit, not yet normalised over the vocabulary.",
        lambda m, i: _pick(logits_of(m, i)[:, -2], i),
    ),
    (
        "clean.best token",
        "This is the log-probability of the likeliest token, not of the one that stands there.",
        _argmax,
    ),
    (
        "clean.another token",
        "This is the log-probability of the token at -2, which is already "
        "there; the one that follows is asked for.",
        _token(-2),
    ),
    (
        "clean.batch averaged",
        "The sequences are averaged; one number each is asked for.",
        lambda m, i: final_log_prob(m, i).mean(),
    ),
    (
        "clean.all tokens",
        "All next tokens are averaged; the last one is asked for.",
        lambda m, i: next_log_probs(m, i).mean(1),
    ),
    (
        "clean.all tokens",
        "All next tokens are added up; the last one is asked for.",
        lambda m, i: next_log_probs(m, i).sum(1),
    ),
    (
        "clean.softmax twice",
        "The softmax runs twice: log_softmax takes logits, not probabilities.",
        lambda m, i: _pick(F.log_softmax(logits_of(m, i)[:, -2].softmax(-1), -1), i),
    ),
    (
        "clean.first item alone",
        "Every sequence has the first one's value.",
        lambda m, i: final_log_prob(m, i)[:1].expand(len(i)),
    ),
]


# --- cutting -------------------------------------------------------------------------------------
def cut(z, num_heads, head, positions=None, value=0.0, layout="blocks"):
    """A copy of z with one head replaced at some positions, at all where None."""
    b, s, hidden = z.shape
    size = hidden // num_heads
    where = list(range(s)) if positions is None else list(positions)
    features = torch.arange(head * size, (head + 1) * size)
    if layout == "interleaved":
        features = torch.arange(head, hidden, num_heads)
    z = z.clone()
    for position in where:
        z[:, position, features] = value
    return z


def without_head(z, num_heads, head, position):
    return cut(z, num_heads, head, [position])


def _head_major(z, num_heads, head, position):
    b, s, hidden = z.shape
    z = z.clone().view(b, num_heads, s, -1)
    z[:, head, position] = 0
    return z.view(b, s, hidden)


def _batch_axis(z, num_heads, head, position):
    z = z.clone().view(*z.shape[:2], num_heads, -1)
    z[position, :, head] = 0
    return z.flatten(2)


def _in_place(z, num_heads, head, position):
    z.view(*z.shape[:2], num_heads, -1)[:, position, head] = 0
    return z


def _moved(step):
    return lambda z, n, head, position: cut(z, n, head, [position + step])


def _other_head(step):
    return lambda z, n, head, position: cut(z, n, (head + step) % n, [position])


def _four_axes(z, num_heads, head, position):
    return without_head(z, num_heads, head, position).unflatten(-1, (num_heads, -1))


def _cut_features(z, num_heads, position, first, last):
    size = z.shape[-1] // num_heads
    z = z.clone()
    z[:, position, first * size : last * size] = 0
    return z


def _one_feature(z, num_heads, head, position):
    z = z.clone()
    z[:, position, head] = 0
    return z


def _one_too_many(z, num_heads, head, position):
    size = z.shape[-1] // num_heads
    z = z.clone()
    z[:, position, head * size : (head + 1) * size + 1] = 0
    return z


def _count_for_size(z, num_heads, head, position):
    z = z.clone()
    z[:, position, head * num_heads : (head + 1) * num_heads] = 0
    return z


_CUT = [
    (
        "cut.in place",
        "Your code edits the tensor it was given: `view` and slices share their "
        "numbers with it. Whoever passed it finds zeros there. Clone first.",
        _in_place,
    ),
    (
        "cut.all positions",
        "The head is cut at every position; one was asked for.",
        lambda z, n, head, position: cut(z, n, head),
    ),
    ("cut.another position", "The cut is one position too late.", _moved(1)),
    ("cut.another position", "The cut is one position too early.", _moved(-1)),
    (
        "cut.another head",
        "This is the head after the one asked for: heads count from 0, so 'the "
        "fifth head' has index 4.",
        _other_head(1),
    ),
    (
        "cut.another head",
        "This is the head before the one asked for: heads count from 0, and head 0 is the first.",
        _other_head(-1),
    ),
    (
        "cut.all heads",
        "All heads are cut at this position.",
        lambda z, n, head, position: cut(z, 1, 0, [position]),
    ),
    (
        "cut.interleaved",
        "You cut every num_heads-th feature. A head's features stand together.",
        lambda z, n, head, position: cut(z, n, head, [position], layout="interleaved"),
    ),
    (
        "cut.heads before tokens",
        "Seen as [batch_size, num_heads, seq_len, head_size], the numbers "
        "of one token are torn apart: c_proj's input has the tokens before the heads.",
        _head_major,
    ),
    (
        "cut.nothing changed",
        "Nothing was cut: what you return is the input.",
        lambda z, n, head, position: z.clone(),
    ),
    (
        "cut.everything else",
        "All but the head was cut.",
        lambda z, n, head, position: z - without_head(z, n, head, position),
    ),
    (
        "cut.four axes",
        "The heads still have an axis of their own; bring it back to [batch_size, "
        "seq_len, hidden].",
        _four_axes,
    ),
    (
        "cut.batch axis",
        "The position was used as an index of the batch. Tokens are axis 1.",
        _batch_axis,
    ),
    (
        "cut.to the end",
        "All features from the head's first on are cut. A head has head_size of them.",
        lambda z, n, head, position: _cut_features(z, n, position, head, n),
    ),
    (
        "cut.from the beginning",
        "All features up to the head's last are cut. A head has head_size of them.",
        lambda z, n, head, position: _cut_features(z, n, position, 0, head + 1),
    ),
    (
        "cut.one feature",
        "One feature is cut. A head has head_size of them, from head * head_size on.",
        _one_feature,
    ),
    (
        "cut.one feature too many",
        "The next head's first feature is cut too: a slice ends before its second number.",
        _one_too_many,
    ),
    (
        "cut.count for size",
        "A head was taken to be num_heads features wide; it has hidden / num_heads.",
        _count_for_size,
    ),
    (
        "cut.first item alone",
        "Only the first sequence of the batch was cut.",
        lambda z, n, head, position: torch.cat([without_head(z, n, head, position)[:1], z[1:]]),
    ),
    (
        "cut.from there on",
        "Every position from there on is cut; one was asked for.",
        lambda z, n, head, position: cut(z, n, head, range(position % z.shape[1], z.shape[1])),
    ),
    (
        "cut.always -2",
        "The cut is always at -2; the position is an argument.",
        lambda z, n, head, position: cut(z, n, head, [-2]),
    ),
]


@contextmanager
def changed_input(model, layer, change, kind="c_proj"):
    """c_proj of one layer sees change(its input) while the block runs."""
    module = getattr(model.transformer.h[layer].attn, kind)
    handle = module.register_forward_pre_hook(lambda m, inputs: (change(inputs[0]), *inputs[1:]))
    try:
        yield
    finally:
        handle.remove()


def lesion(model, input_ids, layer, head, positions, read=-2, **how):
    heads = model.config.n_head
    with changed_input(model, layer, lambda z: cut(z, heads, head, positions, **how)):
        return final_log_prob(model, input_ids, read)


def lesioned_log_prob(model, input_ids, layer, head, position):
    return lesion(model, input_ids, layer, head, [position])


def _tuple_bug(model, input_ids, layer, head, position):
    heads = model.config.n_head

    def hook(module, inputs):
        return tuple(cut(inputs[0], heads, head, [position]), *inputs[1:])

    handle = model.transformer.h[layer].attn.c_proj.register_forward_pre_hook(hook)
    try:
        return final_log_prob(model, input_ids)
    finally:
        handle.remove()


def _next_layer(step):
    def wrong(model, input_ids, layer, head, position):
        return lesion(model, input_ids, (layer + step) % model.config.n_layer, head, [position])

    return wrong


def _next_head(step):
    def wrong(model, input_ids, layer, head, position):
        other = (head + step) % model.config.n_head
        return lesion(model, input_ids, layer, other, [position])

    return wrong


def _all_heads(model, input_ids, layer, head, position):
    with changed_input(model, layer, lambda z: cut(z, 1, 0, [position])):
        return final_log_prob(model, input_ids)


def _after_mixing(model, input_ids, layer, head, position):
    """Cuts features of c_proj's output, where they belong to no head any more."""
    heads = model.config.n_head
    module = model.transformer.h[layer].attn.c_proj
    handle = module.register_forward_hook(lambda m, i, o: cut(o, heads, head, [position]))
    try:
        return final_log_prob(model, input_ids)
    finally:
        handle.remove()


def _queries(part):
    def wrong(model, input_ids, layer, head, position):
        heads = model.config.n_head
        module = model.transformer.h[layer].attn.c_attn
        handle = module.register_forward_hook(
            lambda m, i, o: cut(o, 3 * heads, part * heads + head, [position])
        )
        try:
            return final_log_prob(model, input_ids)
        finally:
            handle.remove()

    return wrong


def _before_attention(model, input_ids, layer, head, position):
    heads = model.config.n_head
    with changed_input(model, layer, lambda z: cut(z, heads, head, [position]), "c_attn"):
        return final_log_prob(model, input_ids)


def _behind_block(model, input_ids, layer, head, position):
    heads = model.config.n_head

    def hook(module, inputs, output):
        if isinstance(output, tuple):
            return (cut(output[0], heads, head, [position]), *output[1:])
        return cut(output, heads, head, [position])

    handle = model.transformer.h[layer].register_forward_hook(hook)
    try:
        return final_log_prob(model, input_ids)
    finally:
        handle.remove()


_LESION = [
    (
        "lesion.tuple(t, *rest)",
        "With one sequence this runs, with two it raises a TypeError: "
        "`tuple(t, ...)` does not put t into a tuple, it takes t apart along the batch. Write "
        "`(t, *inputs[1:])`.",
        _tuple_bug,
    ),
    (
        "lesion.nothing changed",
        "This is the clean value: the lesion never reached the model. Does "
        "the hook return what it made?",
        lambda m, i, layer, head, position: final_log_prob(m, i),
    ),
    (
        "lesion.position -1 for -2",
        "The cut is one position too late: -1 where -2 was asked for. "
        "What happens after position -2 cannot change its prediction.",
        lambda m, i, layer, head, position: lesion(m, i, layer, head, [position + 1]),
    ),
    (
        "lesion.another position",
        "The cut is one position too early.",
        lambda m, i, layer, head, position: lesion(m, i, layer, head, [position - 1]),
    ),
    (
        "lesion.read at -1",
        "The cut is right, but the prediction is read at position -1; the last "
        "token is predicted at -2.",
        lambda m, i, layer, head, position: lesion(m, i, layer, head, [position], -1),
    ),
    (
        "lesion.read at the cut",
        "The cut is right, but the prediction is read at the position of "
        "the cut; the last token is predicted at -2.",
        lambda m, i, layer, head, position: lesion(m, i, layer, head, [position], position),
    ),
    (
        "lesion.all positions",
        "The head is cut at every position; one was asked for.",
        lambda m, i, layer, head, position: lesion(m, i, layer, head, None),
    ),
    (
        "lesion.another head",
        "This cuts the head after the one asked for. Heads count from 0.",
        _next_head(1),
    ),
    (
        "lesion.another head",
        "This cuts the head before the one asked for: head 0 is the first.",
        _next_head(-1),
    ),
    ("lesion.another layer", "This cuts in the next layer. Layers count from 0.", _next_layer(1)),
    (
        "lesion.another layer",
        "This cuts in the layer before. Layers count from 0.",
        _next_layer(-1),
    ),
    ("lesion.all heads", "All heads of the layer are cut at this position.", _all_heads),
    (
        "lesion.interleaved",
        "You cut every num_heads-th feature. A head's features stand together.",
        lambda m, i, layer, head, position: lesion(
            m, i, layer, head, [position], layout="interleaved"
        ),
    ),
    (
        "lesion.after mixing",
        "You cut features of c_proj's output. There the heads are already "
        "mixed; the last place where they stand apart is its input.",
        _after_mixing,
    ),
    (
        "lesion.query cut",
        "You cut the head's query, which makes it look evenly, not its output.",
        _queries(0),
    ),
    (
        "lesion.value cut",
        "You cut the head's value at this position; others still look there, and "
        "this position still receives. Cut the head's output.",
        _queries(2),
    ),
    (
        "lesion.difference",
        "This is the change; the log-probability with the lesion is asked for.",
        lambda m, i, layer, head, position: (
            lesioned_log_prob(m, i, layer, head, position) - final_log_prob(m, i)
        ),
    ),
    (
        "lesion.probability",
        "This is a probability; its logarithm is asked for.",
        lambda *args: lesioned_log_prob(*args).exp(),
    ),
    (
        "lesion.key cut",
        "You cut the head's key at this position: others look elsewhere then. Cut the head's "
        "output.",
        _queries(1),
    ),
    (
        "lesion.always -2",
        "The cut is always at -2; the position is an argument.",
        lambda m, i, layer, head, position: lesion(m, i, layer, head, [-2]),
    ),
    (
        "lesion.last layer",
        "The cut is always in the last layer; the layer is an argument.",
        lambda m, i, layer, head, position: lesion(m, i, -1, head, [position]),
    ),
    (
        "lesion.before c_attn",
        "You cut features of what c_attn reads. There they belong to no head yet.",
        _before_attention,
    ),
    (
        "lesion.block cut",
        "You cut features of the residual stream behind the block. They belong to no head.",
        _behind_block,
    ),
    (
        "lesion.batch averaged",
        "The sequences are averaged; one number each is asked for.",
        lambda *args: lesioned_log_prob(*args).mean(),
    ),
    (
        "lesion.difference",
        "This is the change, with the sign turned; the log-probability with the lesion is asked "
        "for.",
        lambda m, i, *where: final_log_prob(m, i) - lesioned_log_prob(m, i, *where),
    ),
]


def with_mean(z, reference, num_heads, head):
    return _mean_cut(z, num_heads, head, reference.mean((0, 1)))


def _mean_cut(z, num_heads, head, mean):
    """mean: what stands in, of any shape that broadcasts to z."""
    size = z.shape[-1] // num_heads
    part = slice(head * size, (head + 1) * size)
    out = z.clone()
    out[..., part] = mean.expand_as(z)[..., part]
    return out


def _mean_in_place(z, reference, num_heads, head):
    z.copy_(with_mean(z, reference, num_heads, head))
    return z


def _mean_all(z, reference, num_heads, head):
    return reference.mean((0, 1)).expand_as(z)


def _one_number(z, reference, num_heads, head):
    size = z.shape[-1] // num_heads
    mean = reference[..., head * size : (head + 1) * size].mean()
    return _mean_cut(z, num_heads, head, mean)


def _per_sequence(z, reference, num_heads, head):
    return _mean_cut(z, num_heads, head, reference.mean(1, keepdim=True)[: len(z)])


def _interleaved_mean(z, reference, num_heads, head):
    out = z.clone()
    out[..., head::num_heads] = reference.mean((0, 1))[head::num_heads]
    return out


def _mean_at_one(z, reference, num_heads, head):
    out = z.clone()
    out[:, -2] = with_mean(z, reference, num_heads, head)[:, -2]
    return out


_MEAN = [
    ("mean.in place", "Your code edits the tensor it was given. Clone first.", _mean_in_place),
    (
        "mean.of the input itself",
        "The mean is taken of z, the run under test; it should come from the reference.",
        lambda z, r, n, head: with_mean(z, z, n, head),
    ),
    (
        "mean.by position",
        "Each position has its own mean: you averaged over the sequences alone. "
        "Average over tokens too.",
        lambda z, r, n, head: _mean_cut(z, n, head, r.mean(0)),
    ),
    (
        "mean.by sequence",
        "Each sequence has its own mean: average over the sequences too.",
        _per_sequence,
    ),
    (
        "mean.one number",
        "The features were averaged too. The stand-in is a vector of head_size numbers.",
        _one_number,
    ),
    (
        "mean.all features as one",
        "The mean of the whole reference is one number. Keep the features apart.",
        lambda z, r, n, head: _mean_cut(z, n, head, r.mean()),
    ),
    (
        "mean.zero",
        "The head is set to zero; its mean over the reference is asked for.",
        lambda z, r, n, head: _mean_cut(z, n, head, torch.zeros(())),
    ),
    ("mean.all heads", "All heads are replaced; one was asked for.", _mean_all),
    (
        "mean.another head",
        "This is the head after the one asked for. Heads count from 0.",
        lambda z, r, n, head: with_mean(z, r, n, (head + 1) % n),
    ),
    (
        "mean.another head",
        "This is the head before the one asked for. Heads count from 0.",
        lambda z, r, n, head: with_mean(z, r, n, (head - 1) % n),
    ),
    (
        "mean.interleaved",
        "You replaced every num_heads-th feature. A head's features stand together.",
        _interleaved_mean,
    ),
    (
        "mean.added",
        "The mean is subtracted or added; it should take the place of the head's output.",
        lambda z, r, n, head: 2 * z - _mean_cut(z, n, head, z - r.mean((0, 1))),
    ),
    ("mean.nothing changed", "Nothing was replaced.", lambda z, r, n, head: z.clone()),
    (
        "mean.sum",
        "The reference is summed; its mean is asked for.",
        lambda z, r, n, head: _mean_cut(z, n, head, r.sum((0, 1))),
    ),
    (
        "mean.one position",
        "The mean stands in at position -2 alone; put it in at every position.",
        _mean_at_one,
    ),
    (
        "mean.of one sequence",
        "Only the first sequence of the reference is averaged.",
        lambda z, r, n, head: _mean_cut(z, n, head, r[0].mean(0)),
    ),
    (
        "mean.of the last token",
        "Only the last tokens of the reference are averaged.",
        lambda z, r, n, head: _mean_cut(z, n, head, r[:, -1].mean(0)),
    ),
    (
        "mean.median",
        "This is the median; the mean is asked for.",
        lambda z, r, n, head: _mean_cut(z, n, head, r.flatten(0, 1).median(0).values),
    ),
    (
        "mean.everything else",
        "All but the head is replaced.",
        lambda z, r, n, head: _mean_all(z, r, n, head) + z - with_mean(z, r, n, head),
    ),
]


_ANSWERS = {
    "causal.clean": ("final_log_prob", lambda m, i: final_log_prob(m, i), _CLEAN),
    "causal.cut": ("without_head", without_head, _CUT),
    "causal.lesion": ("lesioned_log_prob", lesioned_log_prob, _LESION),
    "causal.mean": ("with_mean", with_mean, _MEAN),
}
SOLVE = {task: {name: right} for task, (name, right, _) in _ANSWERS.items()}
MISTAKES = {
    task: [Mistake(check, message, {name: wrong}) for check, message, wrong in known]
    for task, (name, _, known) in _ANSWERS.items()
}
