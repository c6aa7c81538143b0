"""Answers of lesson 12 beyond lesions: direct effects, induction, one's own attention."""

from __future__ import annotations

import torch
from torch import nn

from autograder.course.asking import Mistake
from autograder.reference.causal_experiments import logits_of
from transformer_lm.modeling_attention import MultiHeadSelfAttention


# --- direct effects ------------------------------------------------------------------------------
def _entering(model, input_ids, position):
    """Inputs of each c_proj at one position [layers, batch, hidden], and ln_f's [batch, hidden]."""
    seen = []
    blocks = model.transformer.h
    modules = [b.attn.c_proj for b in blocks] + [model.transformer.ln_f]
    handles = [
        m.register_forward_pre_hook(lambda m, args: seen.append(args[0].detach().clone()))
        for m in modules
    ]
    try:
        with torch.no_grad():
            model(input_ids)
    finally:
        for handle in handles:
            handle.remove()
    *z, x = (each[:, position] for each in seen)
    return torch.stack(z), x


def logit_parts(
    model,
    input_ids,
    *,
    position=-2,
    centre=True,
    gain=True,
    divide="sd",
    weight=None,
    bias=False,
    interleaved=False,
    norm_each=False,
    token=-1,
    shift=False,
    dotted=True,
):
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
        scale = {
            "sd": (variance + ln.eps).sqrt(),
            "n-1": (variance + ln.eps).sqrt(),
            "variance": variance + ln.eps,
            "no": torch.ones_like(variance),
            "own": torch.ones_like(variance),
        }[divide]
        parts = parts / scale[:, None, None, None]
        if divide == "own":
            plain = parts / ln.weight.detach()
            parts = parts / (plain.var(-1, correction=0, keepdim=True) + ln.eps).sqrt()
    parts = parts + ln.bias.detach() if shift else parts
    found = (parts * direction[:, None, None] if dotted else parts).sum(-1)
    return found, logit - found.sum((1, 2))


def _variant(**how):
    return lambda model, input_ids: logit_parts(model, input_ids, **how)


def _rest_is_logit(model, input_ids):
    parts, rest = logit_parts(model, input_ids)
    return parts, rest + parts.sum((1, 2))


def _axes(model, input_ids):
    parts, rest = logit_parts(model, input_ids)
    return parts.permute(1, 2, 0), rest


def _log_prob(model, input_ids):
    parts, rest = logit_parts(model, input_ids)
    return parts, rest - logits_of(model, input_ids)[:, -2].logsumexp(-1)


_DIRECT = [
    (
        "direct.final norm missing",
        "The final norm is left out altogether: neither its mean, nor "
        "its scale, nor its weight is there.",
        _variant(centre=False, gain=False, divide="no"),
    ),
    (
        "direct.not divided",
        "The final norm also divides; take the divisor from the clean run.",
        _variant(divide="no"),
    ),
    ("direct.gain missing", "The final norm's weight is missing.", _variant(gain=False)),
    (
        "direct.not centred",
        "The final norm subtracts the mean over the features, from each part too.",
        _variant(centre=False),
    ),
    (
        "direct.norm for each head",
        "Each head's part went through ln_f by itself, which blows all "
        "of them up to the same size. Freeze the divisor at what the clean run had.",
        _variant(norm_each=True),
    ),
    (
        "direct.variance for deviation",
        "Divided by the variance; the norm divides by its root.",
        _variant(divide="variance"),
    ),
    (
        "direct.ddof",
        "A LayerNorm's variance divides by the number of features, not by one less.",
        _variant(divide="n-1"),
    ),
    (
        "direct.bias counted",
        "c_proj's bias was added to every head's part. It belongs to no head.",
        _variant(bias=True),
    ),
    (
        "direct.weight transposed",
        "c_proj's weight is transposed. Conv1D stores [in, out], so a head has rows, not columns.",
        _variant(weight="transposed"),
    ),
    (
        "direct.interleaved heads",
        "The heads are interleaved. A head's features, and its rows, stand together.",
        _variant(interleaved=True),
    ),
    (
        "direct.position -1",
        "This is read at -1; the last token is predicted at -2.",
        _variant(position=-1),
    ),
    (
        "direct.another token",
        "This is the logit of the token at -2; the last one is explained.",
        _variant(token=-2),
    ),
    (
        "direct.rest",
        "The heads are right. `rest` is what is missing to the logit, not the logit.",
        _rest_is_logit,
    ),
    ("direct.axes", "The parts are right, in another order of axes than asked for.", _axes),
    (
        "direct.log-probability",
        "This takes a log-probability apart; the logit is asked for.",
        _log_prob,
    ),
    (
        "direct.own deviation",
        "Each head's part is divided by its own deviation. Freeze the divisor at what the whole "
        "stream had in the clean run.",
        _variant(divide="own"),
    ),
    (
        "direct.shift counted",
        "ln_f's bias was added to every head's part. It belongs to no head.",
        _variant(shift=True),
    ),
    (
        "direct.not dotted",
        "The parts are summed as they are; the logit is their dot product with the token's row.",
        _variant(dotted=False),
    ),
]


# --- induction -----------------------------------------------------------------------------------
def _largest_key(probs, input_ids):
    match = _matches(input_ids)
    weight = (probs * match[:, None]).amax(-1)
    counted = match.any(-1)
    return (weight * counted[:, None]).sum((0, 2)) / counted.sum()


def _by_sequence(probs, input_ids):
    pairs = zip(probs, input_ids, strict=True)
    return torch.stack([prefix_matching(p[None], i[None]) for p, i in pairs])


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


def _strictly_later(ids):
    """Matches whose key is earlier than the query's own position."""
    match = _matches(ids)
    return match & torch.ones_like(match).tril(-1)


def _with_key_0(ids):
    """`roll` brings the last token round: key 0 matches queries that hold it."""
    match = _matches(ids)
    match[:, :, 0] = ids == ids[:, -1:]
    return match


_INDUCTION = [
    (
        "induction.same token",
        "This is the attention to the earlier copy of the same token: a "
        "duplicate-token head. Induction looks at the token AFTER it.",
        lambda p, i: prefix_matching(p, i, _matches(i, 0)),
    ),
    (
        "induction.token before",
        "This is the attention to the token before the earlier copy; the "
        "one after it is asked for.",
        lambda p, i: prefix_matching(p, i, _before(i)),
    ),
    (
        "induction.previous token",
        "This is the attention to the token just before: a previous-token head.",
        _previous,
    ),
    (
        "induction.all queries counted",
        "The mean runs over all queries; only those whose token has "
        "stood before can match anything.",
        _all_queries,
    ),
    (
        "induction.mean over keys",
        "This is the mean over the matching pairs. A query's matching "
        "keys are summed; the mean is over queries.",
        _mean_of_keys,
    ),
    (
        "induction.mean of means",
        "Each sequence was averaged first, and then the sequences. All "
        "counted queries weigh the same.",
        _mean_of_sequences,
    ),
    (
        "induction.last occurrence alone",
        "Only the last earlier occurrence is counted; sum over all of them.",
        _last_only,
    ),
    (
        "induction.first occurrence alone",
        "Only the first earlier occurrence is counted; sum over all of them.",
        _first_only,
    ),
    (
        "induction.own key left out",
        "Where a token follows itself, the matching key is the query's own position. It counts.",
        _not_itself,
    ),
    (
        "induction.heads averaged",
        "The heads are averaged; one number each is asked for.",
        lambda p, i: prefix_matching(p, i).mean(),
    ),
    (
        "induction.queries and keys swapped",
        "Rows are queries and columns keys; you read the map the other way round.",
        lambda p, i: prefix_matching(p.transpose(-2, -1), i),
    ),
    (
        "induction.sum",
        "The weights are summed over the queries; their mean is asked for.",
        lambda p, i: (p * _matches(i)[:, None]).sum((0, 2, 3)),
    ),
    (
        "induction.own key left out",
        "Where a token follows itself, the matching key is the query's own position. It counts.",
        lambda p, i: prefix_matching(p, i, _strictly_later(i)),
    ),
    (
        "induction.key 0",
        "Nothing stands before the first token, so key 0 matches no query. (`roll` brings the "
        "last token round to its place.)",
        lambda p, i: prefix_matching(p, i, _with_key_0(i)),
    ),
    (
        "induction.largest key",
        "Only the largest matching weight is taken; sum over all matching keys.",
        _largest_key,
    ),
    (
        "induction.batch kept",
        "Each sequence has a number of its own; all counted queries go into one mean.",
        _by_sequence,
    ),
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
    mix_bias = True
    mlp = "usual"
    shift, spread = 0, 1
    first_only = False
    log = False

    def __init__(self, gpt2):
        super().__init__()
        self.stack, self.lm_head = gpt2.transformer, gpt2.lm_head
        config = gpt2.config
        self.attentions = nn.ModuleList()
        for block in gpt2.transformer.h:
            own = MultiHeadSelfAttention(
                config.n_embd, config.n_embd, self.heads or config.n_head, causal=self.causal
            )
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
        own.mix.bias.data = attn.c_proj.bias.detach().clone() * self.mix_bias

    def forward(self, input_ids):
        x = self.stack.wte(input_ids)
        if self.positions:
            places = torch.arange(input_ids.shape[1])
            x = x + self.stack.wpe(self.shift + self.spread * places)
        for number, block in enumerate(self.stack.h):
            own = self.attentions[0 if self.first_only else number]
            out = own(block.ln_1(x) if self.normed else x)
            before, x = x, x + out if self.residual else out
            x = self._after_mlp(block, before, x)
        for _ in range(self.norms):
            x = self.stack.ln_f(x)
        logits = self.lm_head(x)
        return logits.log_softmax(-1) if self.log else logits

    def _after_mlp(self, block, before, x):
        if self.mlp == "missing":
            return x
        read = before if self.mlp == "parallel" else x
        written = block.mlp(read if self.mlp == "plain" else block.ln_2(read))
        return written if self.mlp == "replaces" else x + written


def _own(check, message, **members):
    return (check, message, type("OwnGPT2", (OwnGPT2,), members))


_OWN = [
    _own(
        "own.weights not transposed",
        "The weights were copied as they stand. Conv1D stores [in, "
        "out], nn.Linear [out, in]; a square matrix fits both ways and is wrong one way.",
        transposed=False,
        mix_transposed=False,
    ),
    _own(
        "own.weights not transposed",
        "q, k and v were copied as they stand; Conv1D's [in, out] "
        "must become nn.Linear's [out, in].",
        transposed=False,
    ),
    _own(
        "own.weights not transposed",
        "mix was copied as it stands; Conv1D's [in, out] must become nn.Linear's [out, in].",
        mix_transposed=False,
    ),
    _own(
        "own.order",
        "Keys and queries have changed places. c_attn holds query, key, value.",
        order=(1, 0, 2),
    ),
    _own(
        "own.order",
        "Keys and values have changed places. c_attn holds query, key, value.",
        order=(0, 2, 1),
    ),
    _own(
        "own.order",
        "Queries and values have changed places. c_attn holds query, key, value.",
        order=(2, 1, 0),
    ),
    _own(
        "own.not causal",
        "The attention sees later tokens: build it with causal=True.",
        causal=False,
    ),
    _own(
        "own.biases lost",
        "The biases of q, k, v and mix are missing or zero.",
        biases=False,
        mix_bias=False,
    ),
    _own("own.one head", "All features are one head. num_heads is in the config.", heads=1),
    _own("own.no positions", "The position embeddings (wpe) are missing.", positions=False),
    _own("own.final norm missing", "The final norm, ln_f, is missing.", norms=0),
    _own("own.final norm twice", "The final norm, ln_f, is applied twice.", norms=2),
    _own(
        "own.residual missing",
        "The attention's output replaces the residual stream; it should be added to it.",
        residual=False,
    ),
    _own(
        "own.norm before attention missing",
        "The attention reads ln_1 of the residual stream, not the stream itself.",
        normed=False,
    ),
    _own("own.biases lost", "The biases of q, k and v are missing or zero.", biases=False),
    _own("own.biases lost", "The bias of mix is missing or zero.", mix_bias=False),
    _own("own.positions", "Every token has the position 0.", spread=0),
    _own("own.positions", "Positions count from 0; here they count from 1.", shift=1),
    _own(
        "own.MLP missing",
        "The MLP is missing: a block writes twice, attention and then MLP.",
        mlp="missing",
    ),
    _own(
        "own.residual missing",
        "The MLP's output replaces the residual stream; it should be added to it.",
        mlp="replaces",
    ),
    _own(
        "own.norm before MLP missing",
        "The MLP reads ln_2 of the residual stream, not the stream itself.",
        mlp="plain",
    ),
    _own(
        "own.parallel",
        "Attention and MLP read the same stream; the MLP should read what the attention has "
        "written as well.",
        mlp="parallel",
    ),
    _own(
        "own.first layer everywhere",
        "Every block has the first layer's attention. Each has weights of its own.",
        first_only=True,
    ),
    _own("own.log-softmax", "These are log-probabilities; logits are asked for.", log=True),
]


_ANSWERS = {
    "causal.direct": ("logit_parts", lambda m, i: logit_parts(m, i), _DIRECT),
    "causal.induction": ("prefix_matching", lambda p, i: prefix_matching(p, i), _INDUCTION),
    "causal.own": ("OwnGPT2", OwnGPT2, _OWN),
}
SOLVE = {task: {name: right} for task, (name, right, _) in _ANSWERS.items()}
MISTAKES = {
    task: [Mistake(check, message, {name: wrong}) for check, message, wrong in known]
    for task, (name, _, known) in _ANSWERS.items()
}
