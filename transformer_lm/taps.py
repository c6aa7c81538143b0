"""Taps: functions that wait where a value flows through a model, and may change it.

A tap is built in when the first function waits there and taken out when the last one has gone.
Outputs and inputs of modules, and the residual stream, are reached with hooks: patches come before
all hooks that others have set (such as those with which transformers collects hidden states), and
records after them, so that both are told what the model goes on with. The quantities of the heads
are no module's output: while one of them is asked for, the attention's ``forward`` is replaced by
one that computes the same, step by step.
"""

import math
from contextlib import ExitStack, contextmanager
from functools import partial

import torch

from transformer_lm.heads import attention_pattern, merge_heads, split_heads


class _Taps:
    """The functions that wait at one module, by place; called with a place and its value."""

    def __init__(self, first):
        """first: build them in before the hooks that are there already, or behind them."""
        self.first = first
        self.functions = {}
        self.undo = ExitStack()

    def __call__(self, place, value):
        for _, function in self.functions.get(place, ()):
            value = function(value)
        return value

    def add(self, place, entry):
        waiting = self.functions.setdefault(place, [])
        waiting.append(entry)
        waiting.sort(key=lambda each: each[0])  # patches first: a record sees what they made

    def drop(self, place, entry):
        self.functions[place] = [each for each in self.functions[place] if each is not entry]
        if not self.functions[place]:
            del self.functions[place]


_IN_USE = {}  # (module, kind of tap, first or not): _Taps, while somebody reads or writes there


@contextmanager
def tapped(taps, is_record):
    """Let the functions hear (and change) their targets' values while the ``with`` block runs."""
    added = []
    try:
        for target, function in taps:
            first = not is_record or target.kind == "attention"  # one forward serves both
            here, entry = (target.module, target.kind, first), (is_record, function)
            if here not in _IN_USE:
                _IN_USE[here] = _installed(*here)
            _IN_USE[here].add(target.place, entry)
            added.append((here, target.place, entry))
        yield
    finally:
        for here, place, entry in added:
            _IN_USE[here].drop(place, entry)
            if not _IN_USE[here].functions:
                _IN_USE.pop(here).undo.close()


def _installed(module, kind, first):
    """Return new taps, built into the module."""
    taps = _Taps(first)
    with taps.undo:  # takes back a half-done installation
        INSTALL[kind](module, taps)
        taps.undo = taps.undo.pop_all()
    return taps


def _install_input(module, taps):
    def hook(module, inputs):
        if not inputs:
            raise RuntimeError(f"{type(module).__name__} was called with named inputs alone")
        return (taps("input", inputs[0]), *inputs[1:])

    taps.undo.callback(module.register_forward_pre_hook(hook, prepend=taps.first).remove)


def _install_output(module, taps):
    def hook(module, inputs, output):
        return taps("output", output)

    taps.undo.callback(module.register_forward_hook(hook, prepend=taps.first).remove)


def _install_block(block, taps):
    """The residual stream and what is added to it, at the borders of attention, MLP and block."""
    stream = {}

    def before_block(block, inputs):
        stream["in"] = taps("stream_in", inputs[0])  # [batch_size, seq_len, hidden]
        return (stream["in"], *inputs[1:])

    def after_attention(attention, inputs, output):
        attn_out = taps("attn_out", output[0])  # [batch_size, seq_len, hidden]
        if "stream_mid" in taps.functions:
            stream_mid = stream["in"] + attn_out  # [batch_size, seq_len, hidden]
            new = taps("stream_mid", stream_mid)  # [batch_size, seq_len, hidden]
            if new is not stream_mid:  # the block itself adds what came in
                attn_out = attn_out + (new - stream_mid)  # [batch_size, seq_len, hidden]
        return (attn_out, *output[1:])

    def after_mlp(mlp, inputs, output):
        return taps("mlp_out", output)

    def after_block(block, inputs, output):
        stream.clear()
        if isinstance(output, tuple):
            return (taps("stream_out", output[0]), *output[1:])
        return taps("stream_out", output)

    for register, hook in (
        (block.register_forward_pre_hook, before_block),
        (block.attn.register_forward_hook, after_attention),
        (block.mlp.register_forward_hook, after_mlp),
        (block.register_forward_hook, after_block),
    ):
        taps.undo.callback(register(hook, prepend=taps.first).remove)


def _install_attention(attention, taps):
    """The heads' quantities are nobody's output, so the forward itself is replaced for a while."""
    before = vars(attention).get("forward")  # somebody else's replacement, or nothing
    attention.forward = partial(_attention_forward, attention, taps)
    if before is None:
        taps.undo.callback(delattr, attention, "forward")
    else:
        taps.undo.callback(setattr, attention, "forward", before)


INSTALL = {
    "input": _install_input,
    "output": _install_output,
    "block": _install_block,
    "attention": _install_attention,
}


def is_tapped(attention):
    forward = vars(attention).get("forward")
    return isinstance(forward, partial) and forward.func is _attention_forward


# --- GPT-2's attention, one step a line -----------------------------------------------------------


def _attention_forward(
    attention, taps, x, past_key_values=None, attention_mask=None, encoder_hidden_states=None, **_
):
    """Compute what GPT2Attention computes, and pass each quantity through its taps.

    x: [batch_size, seq_len, hidden]. Returns the output, of the same shape, and the attention
    weights, [batch_size, num_heads, seq_len, seq_len], as GPT2Attention does. With a cache, keys
    and values are those of all tokens so far: [.., num_keys, head_size].
    """
    if encoder_hidden_states is not None:
        raise ValueError("quantities of cross-attention have no names; leave the encoder out")
    wide = attention.c_attn(x)  # [batch_size, seq_len, 3 * hidden]
    q, k, v = (split_heads(part, attention.num_heads) for part in wide.chunk(3, dim=-1))
    q, k, v = taps("q", q), taps("k", k), taps("v", v)  # [batch, num_heads, seq_len, head_size]
    if past_key_values is not None:
        k, v = past_key_values.update(k, v, attention.layer_idx)
    scores = q @ k.transpose(-2, -1) * score_scale(attention)  # [batch, num_heads, seq, seq]
    scores = taps("scores", _hide(attention, scores, attention_mask))  # [batch, heads, seq, seq]
    pattern = taps("pattern", attention_pattern(scores))  # [batch_size, num_heads, seq, seq]
    pattern = attention.attn_dropout(pattern)  # [batch_size, num_heads, seq_len, seq_len]
    z = taps("z", pattern @ v)  # [batch_size, num_heads, seq_len, head_size]
    attn_out = attention.c_proj(merge_heads(z))  # [batch_size, seq_len, hidden]
    if "head_out" in taps.functions:
        w_o = attention.c_proj.weight.unflatten(0, (attention.num_heads, -1))  # [heads, hs, hidden]
        head_out = z @ w_o  # [batch_size, num_heads, seq_len, hidden]
        new = taps("head_out", head_out)  # [batch_size, num_heads, seq_len, hidden]
        if new is not head_out:
            attn_out = attn_out + (new - head_out).sum(dim=1)  # [batch_size, seq_len, hidden]
    return attention.resid_dropout(attn_out), pattern


def score_scale(attention):
    """Return the factor on the dot products of a GPT2Attention, as its config asks for."""
    scale = attention.head_dim**-0.5 if attention.scale_attn_weights else 1.0
    return scale / (attention.layer_idx + 1) if attention.scale_attn_by_inverse_layer_idx else scale


def _hide(attention, scores, mask):
    """Return the scores with -inf where a key is hidden; all [batch, num_heads, seq, num_keys].

    mask: what transformers hands to an attention. "eager" gets numbers to add, the lowest there is
    for a hidden key; "sdpa" gets True for a key that takes part, or None for the causal mask.
    """
    num_queries, num_keys = scores.shape[-2:]
    if mask is None:
        if attention.config._attn_implementation == "eager":
            return scores
        after = torch.ones_like(scores, dtype=torch.bool).triu(1 + num_keys - num_queries)
        return scores.masked_fill(after, -math.inf)
    if not isinstance(mask, torch.Tensor) or mask.dim() != 4:
        raise ValueError(
            "the heads' quantities cannot be read with this kind of attention; "
            "load the model with attn_implementation='eager'"
        )
    mask = mask[..., :num_keys]  # [batch_size, 1, seq_len, num_keys]
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, -math.inf)
    return (scores + mask).masked_fill(mask == torch.finfo(mask.dtype).min, -math.inf)
