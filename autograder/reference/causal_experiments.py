"""Answers of lesson 12, and its wrong programs."""

from __future__ import annotations

from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import nn

from autograder.exercise import Mistake
from transformer_lm.modeling_attention import MultiHeadSelfAttention


# --- reading -------------------------------------------------------------------------------------
def logits_of(model, input_ids):
    with torch.no_grad():
        return model(input_ids).logits


def _pick(log_probs, input_ids):
    return log_probs.gather(-1, input_ids[:, -1:]).squeeze(-1)


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


_AXIS = ("The log-softmax runs over the wrong axis: the probabilities of the whole vocabulary sum "
         "to 1, not those of all positions or sequences.")
_CLEAN = [
    ("clean.position -1", "This is read at position -1, which predicts the token after the text. "
     "The last token is predicted one position earlier.", lambda m, i: final_log_prob(m, i, -1)),
    ("clean.position -3", "This is read one position too early.",
     lambda m, i: final_log_prob(m, i, -3)),
    ("clean.log-softmax axis", _AXIS, _over(1)),
    ("clean.log-softmax axis", _AXIS, _over(0)),
    ("clean.log-softmax axis", _AXIS,
     lambda m, i: _pick(F.log_softmax(logits_of(m, i)[:, -2], dim=0), i)),
    ("clean.probability", "This is a probability; its logarithm is asked for.",
     lambda m, i: final_log_prob(m, i).exp()),
    ("clean.base", "This is a logarithm to base 10 or 2; natural logarithms are asked for.",
     lambda m, i: final_log_prob(m, i) / torch.tensor(10.0).log()),
    ("clean.base", "This is a logarithm to base 10 or 2; natural logarithms are asked for.",
     lambda m, i: final_log_prob(m, i) / torch.tensor(2.0).log()),
    ("clean.sign", "This is the loss, the negative of what is asked for.",
     lambda m, i: -final_log_prob(m, i)),
    ("clean.logit", "This is a logit, not yet normalised over the vocabulary.",
     lambda m, i: _pick(logits_of(m, i)[:, -2], i)),
    ("clean.best token", "This is the log-probability of the likeliest token, not of the one that "
     "stands there.", _argmax),
    ("clean.another token", "This is the log-probability of the token at -2, which is already "
     "there; the one that follows is asked for.", _token(-2)),
    ("clean.batch averaged", "The sequences are averaged; one number each is asked for.",
     lambda m, i: final_log_prob(m, i).mean()),
]


# --- cutting -------------------------------------------------------------------------------------
def _cut(z, num_heads, head, positions=None, value=0.0, layout="blocks"):
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
    return _cut(z, num_heads, head, [position])


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
    return lambda z, n, head, position: _cut(z, n, head, [position + step])


def _other_head(step):
    return lambda z, n, head, position: _cut(z, n, (head + step) % n, [position])


def _four_axes(z, num_heads, head, position):
    return without_head(z, num_heads, head, position).unflatten(-1, (num_heads, -1))


_CUT = [
    ("cut.in place", "Your code edits the tensor it was given: `view` and slices share their "
     "numbers with it. Whoever passed it finds zeros there. Clone first.", _in_place),
    ("cut.all positions", "The head is cut at every position; one was asked for.",
     lambda z, n, head, position: _cut(z, n, head)),
    ("cut.another position", "The cut is one position too late.", _moved(1)),
    ("cut.another position", "The cut is one position too early.", _moved(-1)),
    ("cut.another head", "This is the head after the one asked for: heads count from 0, so 'the "
     "fifth head' has index 4.", _other_head(1)),
    ("cut.another head", "This is the head before the one asked for: heads count from 0, and head "
     "0 is the first.", _other_head(-1)),
    ("cut.all heads", "All heads are cut at this position.",
     lambda z, n, head, position: _cut(z, 1, 0, [position])),
    ("cut.interleaved", "You cut every num_heads-th feature. A head's features stand together.",
     lambda z, n, head, position: _cut(z, n, head, [position], layout="interleaved")),
    ("cut.heads before tokens", "Seen as [batch_size, num_heads, seq_len, head_size], the numbers "
     "of one token are torn apart: c_proj's input has the tokens before the heads.", _head_major),
    ("cut.nothing changed", "Nothing was cut: what you return is the input.",
     lambda z, n, head, position: z.clone()),
    ("cut.everything else", "All but the head was cut.",
     lambda z, n, head, position: z - without_head(z, n, head, position)),
    ("cut.four axes", "The heads still have an axis of their own; bring it back to [batch_size, "
     "seq_len, hidden].", _four_axes),
    ("cut.batch axis", "The position was used as an index of the batch. Tokens are axis 1.",
     _batch_axis),
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


def _lesion(model, input_ids, layer, head, positions, read=-2, **how):
    heads = model.config.n_head
    with changed_input(model, layer, lambda z: _cut(z, heads, head, positions, **how)):
        return final_log_prob(model, input_ids, read)


def lesioned_log_prob(model, input_ids, layer, head, position):
    return _lesion(model, input_ids, layer, head, [position])


def _tuple_bug(model, input_ids, layer, head, position):
    heads = model.config.n_head

    def hook(module, inputs):
        return tuple(_cut(inputs[0], heads, head, [position]), *inputs[1:])

    handle = model.transformer.h[layer].attn.c_proj.register_forward_pre_hook(hook)
    try:
        return final_log_prob(model, input_ids)
    finally:
        handle.remove()


def _next_layer(step):
    def wrong(model, input_ids, layer, head, position):
        return _lesion(model, input_ids, (layer + step) % model.config.n_layer, head, [position])

    return wrong


def _next_head(step):
    def wrong(model, input_ids, layer, head, position):
        other = (head + step) % model.config.n_head
        return _lesion(model, input_ids, layer, other, [position])

    return wrong


def _all_heads(model, input_ids, layer, head, position):
    with changed_input(model, layer, lambda z: _cut(z, 1, 0, [position])):
        return final_log_prob(model, input_ids)


def _after_mixing(model, input_ids, layer, head, position):
    """Cuts features of c_proj's output, where they belong to no head any more."""
    heads = model.config.n_head
    module = model.transformer.h[layer].attn.c_proj
    handle = module.register_forward_hook(lambda m, i, o: _cut(o, heads, head, [position]))
    try:
        return final_log_prob(model, input_ids)
    finally:
        handle.remove()


def _queries(part):
    def wrong(model, input_ids, layer, head, position):
        heads = model.config.n_head
        module = model.transformer.h[layer].attn.c_attn
        handle = module.register_forward_hook(
            lambda m, i, o: _cut(o, 3 * heads, part * heads + head, [position]))
        try:
            return final_log_prob(model, input_ids)
        finally:
            handle.remove()

    return wrong


_LESION = [
    ("lesion.tuple(t, *rest)", "With one sequence this runs, with two it raises a TypeError: "
     "`tuple(t, ...)` does not put t into a tuple, it takes t apart along the batch. Write "
     "`(t, *inputs[1:])`.", _tuple_bug),
    ("lesion.nothing changed", "This is the clean value: the lesion never reached the model. Does "
     "the hook return what it made?",
     lambda m, i, layer, head, position: final_log_prob(m, i)),
    ("lesion.position -1 for -2", "The cut is one position too late: -1 where -2 was asked for. "
     "What happens after position -2 cannot change its prediction.",
     lambda m, i, layer, head, position: _lesion(m, i, layer, head, [position + 1])),
    ("lesion.another position", "The cut is one position too early.",
     lambda m, i, layer, head, position: _lesion(m, i, layer, head, [position - 1])),
    ("lesion.read at -1", "The cut is right, but the prediction is read at position -1; the last "
     "token is predicted at -2.",
     lambda m, i, layer, head, position: _lesion(m, i, layer, head, [position], -1)),
    ("lesion.read at the cut", "The cut is right, but the prediction is read at the position of "
     "the cut; the last token is predicted at -2.",
     lambda m, i, layer, head, position: _lesion(m, i, layer, head, [position], position)),
    ("lesion.all positions", "The head is cut at every position; one was asked for.",
     lambda m, i, layer, head, position: _lesion(m, i, layer, head, None)),
    ("lesion.another head", "This cuts the head after the one asked for. Heads count from 0.",
     _next_head(1)),
    ("lesion.another head", "This cuts the head before the one asked for: head 0 is the first.",
     _next_head(-1)),
    ("lesion.another layer", "This cuts in the next layer. Layers count from 0.", _next_layer(1)),
    ("lesion.another layer", "This cuts in the layer before. Layers count from 0.",
     _next_layer(-1)),
    ("lesion.all heads", "All heads of the layer are cut at this position.", _all_heads),
    ("lesion.interleaved", "You cut every num_heads-th feature. A head's features stand together.",
     lambda m, i, layer, head, position: _lesion(m, i, layer, head, [position],
                                                 layout="interleaved")),
    ("lesion.after mixing", "You cut features of c_proj's output. There the heads are already "
     "mixed; the last place where they stand apart is its input.", _after_mixing),
    ("lesion.query cut", "You cut the head's query, which makes it look evenly, not its output.",
     _queries(0)),
    ("lesion.value cut", "You cut the head's value at this position; others still look there, and "
     "this position still receives. Cut the head's output.", _queries(2)),
    ("lesion.difference", "This is the change; the log-probability with the lesion is asked for.",
     lambda m, i, layer, head, position: lesioned_log_prob(m, i, layer, head, position)
     - final_log_prob(m, i)),
    ("lesion.probability", "This is a probability; its logarithm is asked for.",
     lambda *args: lesioned_log_prob(*args).exp()),
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


_MEAN = [
    ("mean.in place", "Your code edits the tensor it was given. Clone first.", _mean_in_place),
    ("mean.of the input itself", "The mean is taken of z, the run under test; it should come from "
     "the reference.", lambda z, r, n, head: with_mean(z, z, n, head)),
    ("mean.by position", "Each position has its own mean: you averaged over the sequences alone. "
     "Average over tokens too.", lambda z, r, n, head: _mean_cut(z, n, head, r.mean(0))),
    ("mean.by sequence", "Each sequence has its own mean: average over the sequences too.",
     _per_sequence),
    ("mean.one number", "The features were averaged too. The stand-in is a vector of head_size "
     "numbers.", _one_number),
    ("mean.all features as one", "The mean of the whole reference is one number. Keep the "
     "features apart.", lambda z, r, n, head: _mean_cut(z, n, head, r.mean())),
    ("mean.zero", "The head is set to zero; its mean over the reference is asked for.",
     lambda z, r, n, head: _mean_cut(z, n, head, torch.zeros(()))),
    ("mean.all heads", "All heads are replaced; one was asked for.", _mean_all),
    ("mean.another head", "This is the head after the one asked for. Heads count from 0.",
     lambda z, r, n, head: with_mean(z, r, n, (head + 1) % n)),
    ("mean.another head", "This is the head before the one asked for. Heads count from 0.",
     lambda z, r, n, head: with_mean(z, r, n, (head - 1) % n)),
    ("mean.interleaved", "You replaced every num_heads-th feature. A head's features stand "
     "together.", _interleaved_mean),
    ("mean.added", "The mean is subtracted or added; it should take the place of the head's "
     "output.", lambda z, r, n, head: 2 * z - _mean_cut(z, n, head, z - r.mean((0, 1)))),
    ("mean.nothing changed", "Nothing was replaced.", lambda z, r, n, head: z.clone()),
]


# --- effects -------------------------------------------------------------------------------------
def one_and_all(model, input_ids, layer, head):
    clean = final_log_prob(model, input_ids)
    one = _lesion(model, input_ids, layer, head, [-2])
    every = _lesion(model, input_ids, layer, head, None)
    return one - clean, every - clean


def _pair(change):
    return lambda *args: change(*one_and_all(*args), args)


def _last_position(model, input_ids, layer, head):
    clean = final_log_prob(model, input_ids)
    every = _lesion(model, input_ids, layer, head, None)
    return _lesion(model, input_ids, layer, head, [-1]) - clean, every - clean


def _read_last(model, input_ids, layer, head):
    clean = final_log_prob(model, input_ids, -1)
    one = _lesion(model, input_ids, layer, head, [-2], -1)
    return one - clean, _lesion(model, input_ids, layer, head, None, -1) - clean


def _others(model, input_ids, layer, head):
    clean = final_log_prob(model, input_ids)
    earlier = _lesion(model, input_ids, layer, head, range(input_ids.shape[1] - 2))
    return one_and_all(model, input_ids, layer, head)[0], earlier - clean


def _head_step(step):
    return lambda m, i, layer, head: one_and_all(m, i, layer, (head + step) % m.config.n_head)


def _clean_added(one, every, args):
    clean = final_log_prob(*args[:2])
    return one + clean, every + clean


_BOTH = [
    ("effects.not subtracted", "These are log-probabilities with the lesion; an effect is their "
     "difference from the clean run.", _pair(_clean_added)),
    ("effects.sign", "The sign is the other way round: effect = lesioned minus clean, negative "
     "where the head helped.", _pair(lambda o, e, a: (-o, -e))),
    ("effects.swapped", "The two effects have changed places: one position first.",
     _pair(lambda o, e, a: (e, o))),
    ("effects.position -1 for -2", "The first effect is zero: cutting at position -1 cannot change "
     "what position -2 predicts.", _last_position),
    ("effects.read at -1", "The prediction is read at -1; the last token is predicted at -2.",
     _read_last),
    ("effects.one position twice", "Both are the effect at one position.",
     _pair(lambda o, e, a: (o, o))),
    ("effects.all positions twice", "Both are the effect at all positions. Was the list of "
     "positions used?", _pair(lambda o, e, a: (e, e))),
    ("effects.position left out of all", "'All positions' contains -2 too.", _others),
    ("effects.measured against the first lesion", "The second effect is the difference from the "
     "first lesion, not from the clean run.", _pair(lambda o, e, a: (o, e - o))),
    ("effects.another head", "This is the head after the one asked for. Heads count from 0.",
     _head_step(1)),
    ("effects.another head", "This is the head before the one asked for. Heads count from 0.",
     _head_step(-1)),
    ("effects.batch averaged", "The sequences are averaged; one number each is asked for.",
     _pair(lambda o, e, a: (o.mean(), e.mean()))),
    ("effects.nothing changed", "Nothing changed: the lesion never reached the model. Does the "
     "hook return what it made?", _pair(lambda o, e, a: (0 * o, 0 * e))),
]


def next_log_probs(model, input_ids):
    log_probs = F.log_softmax(logits_of(model, input_ids)[:, :-1], -1)
    return log_probs.gather(-1, input_ids[:, 1:, None]).squeeze(-1)


def _grid(model, input_ids, measure=lambda m, i: next_log_probs(m, i).mean(), positions=None):
    """[num_layers, num_heads]: what the measure is with each head cut."""
    heads = model.config.n_head
    rows = []
    for layer in range(model.config.n_layer):
        row = []
        for head in range(heads):
            with changed_input(model, layer, lambda z, h=head: _cut(z, heads, h, positions)):
                row.append(measure(model, input_ids))
        rows.append(torch.stack(row))
    return torch.stack(rows)


def lesion_grid(model, input_ids):
    return _grid(model, input_ids) - next_log_probs(model, input_ids).mean()


def _hooks_stay(late_binding=False, each_layer=False):
    """Hooks are not removed: each lesion comes on top of those before."""
    def wrong(model, input_ids):
        heads = model.config.n_head
        clean = next_log_probs(model, input_ids).mean()
        effects = torch.zeros(model.config.n_layer, heads)
        handles = []
        now = {}
        for layer, block in enumerate(model.transformer.h):
            for head in range(heads):
                now["head"] = head

                def hook(module, inputs, head=head):
                    chosen = now["head"] if late_binding else head
                    return (_cut(inputs[0], heads, chosen), *inputs[1:])

                handles.append(block.attn.c_proj.register_forward_pre_hook(hook))
                effects[layer, head] = next_log_probs(model, input_ids).mean() - clean
            if each_layer:
                while handles:
                    handles.pop().remove()
        for handle in handles:
            handle.remove()
        return effects

    return wrong


def _mean_of(measure):
    def wrong(model, input_ids):
        return _grid(model, input_ids, measure) - measure(model, input_ids)

    return wrong


_STAYS = ("Each lesion comes on top of the ones before: the hooks were not removed between the "
          "runs.")
_GRID = [
    ("grid.hook left in", _STAYS, _hooks_stay()),
    ("grid.hook left in", _STAYS, _hooks_stay(each_layer=True)),
    ("grid.hook left in", _STAYS + " And they all read the loop variable as it is now (late "
     "binding).", _hooks_stay(late_binding=True)),
    ("grid.sign", "The sign is the other way round: lesioned minus clean, negative where the head "
     "helps.", lambda m, i: -lesion_grid(m, i)),
    ("grid.not subtracted", "These are the measures with a lesion; subtract the clean one.", _grid),
    ("grid.heads and layers swapped", "Layers should be rows and heads columns.",
     lambda m, i: lesion_grid(m, i).T),
    ("grid.last token alone", "Only the last token's prediction is measured; all next tokens are "
     "asked for.", _mean_of(lambda m, i: final_log_prob(m, i).mean())),
    ("grid.summed", "The log-probabilities are summed; their mean is asked for.",
     _mean_of(lambda m, i: next_log_probs(m, i).sum())),
    ("grid.first item alone", "Only the first sequence is measured.",
     _mean_of(lambda m, i: next_log_probs(m, i)[0].mean())),
    ("grid.batch kept", "Each sequence has its own effect here; average over the batch.",
     _mean_of(lambda m, i: next_log_probs(m, i).mean(1))),
    ("grid.one position", "The head is cut at position -2 alone; cut it at all.",
     lambda m, i: _grid(m, i, positions=[-2]) - next_log_probs(m, i).mean()),
    ("grid.not shifted", "The log-probabilities are those of the tokens that already stand there. "
     "Position t predicts token t + 1.", _mean_of(lambda m, i: F.log_softmax(
         logits_of(m, i), -1).gather(-1, i[..., None]).mean())),
    ("grid.nothing changed", "Nothing changed: the lesions never reached the model. Does the hook "
     "return what it made?", lambda m, i: 0 * lesion_grid(m, i)),
]


# --- direct effects ------------------------------------------------------------------------------
def _entering(model, input_ids, position):
    """Inputs of each c_proj at one position [layers, batch, hidden], and ln_f's [batch, hidden]."""
    seen = []
    blocks = model.transformer.h
    modules = [b.attn.c_proj for b in blocks] + [model.transformer.ln_f]
    handles = [m.register_forward_pre_hook(lambda m, args: seen.append(args[0].detach().clone()))
               for m in modules]
    try:
        with torch.no_grad():
            model(input_ids)
    finally:
        for handle in handles:
            handle.remove()
    *z, x = (each[:, position] for each in seen)
    return torch.stack(z), x


def logit_parts(model, input_ids, *, position=-2, centre=True, gain=True, divide="sd", weight=None,
                bias=False, interleaved=False, norm_each=False, token=-1):
    heads = model.config.n_head
    z, x = _entering(model, input_ids, position)
    ln = model.transformer.ln_f
    direction = model.transformer.wte.weight.detach()[input_ids[:, token]]
    rows = []
    for block, entering in zip(model.transformer.h, z, strict=True):
        w = block.attn.c_proj.weight.detach()
        w = w.T if weight == "transposed" else w
        order = (-1, heads) if interleaved else (heads, -1)
        parts = entering.unflatten(-1, order)
        w = w.unflatten(0, order)
        if interleaved:
            parts, w = parts.transpose(1, 2), w.transpose(0, 1)
        out = torch.einsum("bhs,hso->bho", parts, w)
        rows.append(out + block.attn.c_proj.bias.detach() if bias else out)
    parts = torch.stack(rows, 1)  # [batch_size, num_layers, num_heads, hidden]
    logit = logits_of(model, input_ids)[:, position].gather(-1, input_ids[:, token, None])[:, 0]
    if norm_each:
        parts = ln(parts).detach()
    else:
        parts = parts - parts.mean(-1, keepdim=True) if centre else parts
        parts = parts * ln.weight.detach() if gain else parts
        variance = x.var(-1, correction=1 if divide == "n-1" else 0)
        scale = {"sd": (variance + ln.eps).sqrt(), "n-1": (variance + ln.eps).sqrt(),
                 "variance": variance + ln.eps, "no": torch.ones_like(variance)}[divide]
        parts = parts / scale[:, None, None, None]
    found = (parts * direction[:, None, None]).sum(-1)
    return found, logit - found.sum((1, 2))


def _variant(**how):
    return lambda model, input_ids: logit_parts(model, input_ids, **how)


def _rest_is_logit(model, input_ids):
    parts, rest = logit_parts(model, input_ids)
    return parts, rest + parts.sum((1, 2))


def _axes(model, input_ids):
    parts, rest = logit_parts(model, input_ids)
    return parts.permute(1, 2, 0), rest


_DIRECT = [
    ("direct.final norm missing", "The final norm is left out altogether: neither its mean, nor "
     "its scale, nor its weight is there.", _variant(centre=False, gain=False, divide="no")),
    ("direct.not divided", "The final norm also divides; take the divisor from the clean run.",
     _variant(divide="no")),
    ("direct.gain missing", "The final norm's weight is missing.", _variant(gain=False)),
    ("direct.not centred", "The final norm subtracts the mean over the features, from each part "
     "too.", _variant(centre=False)),
    ("direct.norm for each head", "Each head's part went through ln_f by itself, which blows all "
     "of them up to the same size. Freeze the divisor at what the clean run had.",
     _variant(norm_each=True)),
    ("direct.variance for deviation", "Divided by the variance; the norm divides by its root.",
     _variant(divide="variance")),
    ("direct.ddof", "A LayerNorm's variance divides by the number of features, not by one less.",
     _variant(divide="n-1")),
    ("direct.bias counted", "c_proj's bias was added to every head's part. It belongs to no head.",
     _variant(bias=True)),
    ("direct.weight transposed", "c_proj's weight is transposed. Conv1D stores [in, out], so a "
     "head has rows, not columns.", _variant(weight="transposed")),
    ("direct.interleaved heads", "The heads are interleaved. A head's features, and its rows, "
     "stand together.", _variant(interleaved=True)),
    ("direct.position -1", "This is read at -1; the last token is predicted at -2.",
     _variant(position=-1)),
    ("direct.another token", "This is the logit of the token at -2; the last one is explained.",
     _variant(token=-2)),
    ("direct.rest", "The heads are right. `rest` is what is missing to the logit, not the logit.",
     _rest_is_logit),
    ("direct.axes", "The parts are right, in another order of axes than asked for.", _axes),
]


# --- induction -----------------------------------------------------------------------------------
def _matches(ids, shift=1):
    """[batch, seq, seq]: key k matches query i where ids[k - shift] == ids[i] and k - shift < i."""
    b, s = ids.shape
    match = torch.zeros(b, s, s, dtype=torch.bool)
    for i in range(s):
        for k in range(i + 1):
            if 0 <= k - shift < i:
                match[:, i, k] = ids[:, k - shift] == ids[:, i]
    return match


def prefix_matching(probs, input_ids, match=None):
    match = _matches(input_ids) if match is None else match
    weight = (probs * match[:, None]).sum(-1)
    counted = match.any(-1)
    return (weight * counted[:, None]).sum((0, 2)) / counted.sum()


def _previous(probs, input_ids):
    return probs.diagonal(-1, -2, -1).mean((0, 2))


def _all_queries(probs, input_ids):
    return (probs * _matches(input_ids)[:, None]).sum(-1).mean((0, 2))


def _mean_of_keys(probs, input_ids):
    match = _matches(input_ids)[:, None].expand_as(probs)
    return (probs * match).sum((0, 2, 3)) / match.sum((0, 2, 3))


def _mean_of_sequences(probs, input_ids):
    rows = [prefix_matching(p[None], i[None]) for p, i in zip(probs, input_ids, strict=True)]
    return torch.stack(rows).mean(0)


def _last_only(probs, input_ids):
    match = _matches(input_ids)
    last = match & (match.flip(-1).cumsum(-1).flip(-1) == 1)
    return prefix_matching(probs, input_ids, last)


def _first_only(probs, input_ids):
    match = _matches(input_ids)
    return prefix_matching(probs, input_ids, match & (match.cumsum(-1) == 1))


def _not_itself(probs, input_ids):
    match = _matches(input_ids)
    strict = match & torch.ones_like(match).tril(-1)
    weight = (probs * strict[:, None]).sum(-1)
    counted = match.any(-1)
    return (weight * counted[:, None]).sum((0, 2)) / counted.sum()


_INDUCTION = [
    ("induction.same token", "This is the attention to the earlier copy of the same token: a "
     "duplicate-token head. Induction looks at the token AFTER it.",
     lambda p, i: prefix_matching(p, i, _matches(i, 0))),
    ("induction.token before", "This is the attention to the token before the earlier copy; the "
     "one after it is asked for.", lambda p, i: prefix_matching(p, i, _before(i))),
    ("induction.previous token", "This is the attention to the token just before: a "
     "previous-token head.", _previous),
    ("induction.all queries counted", "The mean runs over all queries; only those whose token has "
     "stood before can match anything.", _all_queries),
    ("induction.mean over keys", "This is the mean over the matching pairs. A query's matching "
     "keys are summed; the mean is over queries.", _mean_of_keys),
    ("induction.mean of means", "Each sequence was averaged first, and then the sequences. All "
     "counted queries weigh the same.", _mean_of_sequences),
    ("induction.last occurrence alone", "Only the last earlier occurrence is counted; sum over all "
     "of them.", _last_only),
    ("induction.first occurrence alone", "Only the first earlier occurrence is counted; sum over "
     "all of them.", _first_only),
    ("induction.own key left out", "Where a token follows itself, the matching key is the query's "
     "own position. It counts.", _not_itself),
    ("induction.heads averaged", "The heads are averaged; one number each is asked for.",
     lambda p, i: prefix_matching(p, i).mean()),
    ("induction.queries and keys swapped", "Rows are queries and columns keys; you read the map "
     "the other way round.", lambda p, i: prefix_matching(p.transpose(-2, -1), i)),
    ("induction.sum", "The weights are summed over the queries; their mean is asked for.",
     lambda p, i: (p * _matches(i)[:, None]).sum((0, 2, 3))),
]


def _before(ids):
    """Keys one before an earlier copy of the query's token."""
    match = torch.zeros(*ids.shape, ids.shape[1], dtype=torch.bool)
    same = _matches(ids, 0)
    match[..., :-1] = same[..., 1:]
    return match


# --- one's own attention -------------------------------------------------------------------------
class OwnGPT2(nn.Module):
    """GPT-2 whose attention is a MultiHeadSelfAttention in every block."""

    order = (0, 1, 2)
    transposed = True
    mix_transposed = True
    causal = True
    biases = True
    positions = True
    norms = 1
    heads = None
    residual = True
    normed = True

    def __init__(self, gpt2):
        super().__init__()
        self.stack, self.lm_head = gpt2.transformer, gpt2.lm_head
        config = gpt2.config
        self.attentions = nn.ModuleList()
        for block in gpt2.transformer.h:
            own = MultiHeadSelfAttention(
                config.n_embd, config.n_embd, self.heads or config.n_head, causal=self.causal)
            self._load(own, block.attn)
            self.attentions.append(own)

    def _load(self, own, attn):
        weights = attn.c_attn.weight.detach().chunk(3, 1)
        biases = attn.c_attn.bias.detach().chunk(3)
        for name, part in zip("qkv", self.order, strict=True):
            layer = getattr(own, name)
            layer.weight.data = (weights[part].T if self.transposed else weights[part]).clone()
            layer.bias.data = biases[part].clone() * self.biases
        mix = attn.c_proj.weight.detach()
        own.mix.weight.data = (mix.T if self.mix_transposed else mix).clone()
        own.mix.bias.data = attn.c_proj.bias.detach().clone() * self.biases

    def forward(self, input_ids):
        x = self.stack.wte(input_ids)
        if self.positions:
            x = x + self.stack.wpe(torch.arange(input_ids.shape[1]))
        for block, own in zip(self.stack.h, self.attentions, strict=True):
            out = own(block.ln_1(x) if self.normed else x)
            x = x + out if self.residual else out
            x = x + block.mlp(block.ln_2(x))
        for _ in range(self.norms):
            x = self.stack.ln_f(x)
        return self.lm_head(x)


def _own(check, message, **members):
    return (check, message, type("OwnGPT2", (OwnGPT2,), members))


_OWN = [
    _own("own.weights not transposed", "The weights were copied as they stand. Conv1D stores [in, "
         "out], nn.Linear [out, in]; a square matrix fits both ways and is wrong one way.",
         transposed=False, mix_transposed=False),
    _own("own.weights not transposed", "q, k and v were copied as they stand; Conv1D's [in, out] "
         "must become nn.Linear's [out, in].", transposed=False),
    _own("own.weights not transposed", "mix was copied as it stands; Conv1D's [in, out] must "
         "become nn.Linear's [out, in].", mix_transposed=False),
    _own("own.order", "Keys and queries have changed places. c_attn holds query, key, value.",
         order=(1, 0, 2)),
    _own("own.order", "Keys and values have changed places. c_attn holds query, key, value.",
         order=(0, 2, 1)),
    _own("own.order", "Queries and values have changed places. c_attn holds query, key, value.",
         order=(2, 1, 0)),
    _own("own.not causal", "The attention sees later tokens: build it with causal=True.",
         causal=False),
    _own("own.biases lost", "The biases of q, k, v and mix are missing or zero.", biases=False),
    _own("own.one head", "All features are one head. num_heads is in the config.", heads=1),
    _own("own.no positions", "The position embeddings (wpe) are missing.", positions=False),
    _own("own.final norm missing", "The final norm, ln_f, is missing.", norms=0),
    _own("own.final norm twice", "The final norm, ln_f, is applied twice.", norms=2),
    _own("own.residual missing", "The attention's output replaces the residual stream; it should "
         "be added to it.", residual=False),
    _own("own.norm before attention missing", "The attention reads ln_1 of the residual stream, "
         "not the stream itself.", normed=False),
]


_ANSWERS = {
    "causal.clean": ("final_log_prob", lambda m, i: final_log_prob(m, i), _CLEAN),
    "causal.cut": ("without_head", without_head, _CUT),
    "causal.lesion": ("lesioned_log_prob", lesioned_log_prob, _LESION),
    "causal.mean": ("with_mean", with_mean, _MEAN),
    "causal.one_and_all": ("one_and_all", one_and_all, _BOTH),
    "causal.grid": ("lesion_grid", lesion_grid, _GRID),
    "causal.direct": ("logit_parts", lambda m, i: logit_parts(m, i), _DIRECT),
    "causal.induction": ("prefix_matching", lambda p, i: prefix_matching(p, i), _INDUCTION),
    "causal.own": ("OwnGPT2", OwnGPT2, _OWN),
}
SOLVE = {task: {name: right} for task, (name, right, _) in _ANSWERS.items()}
MISTAKES = {
    task: [Mistake(check, message, {name: wrong}) for check, message, wrong in known]
    for task, (name, _, known) in _ANSWERS.items()
}
