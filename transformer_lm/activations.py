"""Read each head's queries, keys, values and pattern, the residual stream, and the logit lens.

`record` and `patch`, on which all of it rests, and the names of what flows through a model are in
``hooks``. Sources: Vaswani et al. 2017, section 3.2 (attention); Elhage et al. 2021, "A
Mathematical Framework for Transformer Circuits" (heads, residual stream); nostalgebraist 2020
(logit lens).
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F

from transformer_lm.batches import are_tokens, index_of, model_inputs
from transformer_lm.heads import attention_pattern, attention_scores, merge_heads, split_heads
from transformer_lm.hooks import count_hooks, patch, record

__all__ = [
    "HeadActivations",
    "attention_pattern",
    "attention_patterns",
    "attention_scores",
    "count_hooks",
    "gpt2_stack",
    "head_activations",
    "logit_lens",
    "merge_heads",
    "patch",
    "record",
    "residual_stream",
    "split_heads",
    "with_progress",
]


class HeadActivations(NamedTuple):
    """What one layer's heads computed; every tensor is detached.

    q, k, v: [batch_size, num_heads, seq_len, head_size], biases included.
    scores:  [batch_size, num_heads, seq_len, seq_len], scaled; -inf where a key is hidden.
    pattern: [batch_size, num_heads, seq_len, seq_len], softmax of the scores over the keys.
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    scores: torch.Tensor
    pattern: torch.Tensor


def head_activations(model, input_ids, layers=None, attention_mask=None):
    """Run a GPT-2 once; return ``{layer: HeadActivations}`` for the layers asked for.

    Args:
        model: a ``GPT2LMHeadModel`` or ``GPT2Model``.
        input_ids: token ids, [batch_size, seq_len].
        layers: layer indices (negative ones count from the end); all where None. Scores and
            pattern take 8 * batch_size * num_heads * seq_len**2 bytes a layer.
        attention_mask: [batch_size, seq_len], 1 for a token and 0 for padding, or None.
    """
    stack = gpt2_stack(model)
    layers = _layers(stack, layers)
    names = [f"h.{layer}.{field}" for layer in layers for field in HeadActivations._fields]
    with torch.no_grad(), record(stack, names) as acts:
        stack(**model_inputs(input_ids, attention_mask))
    return {
        layer: HeadActivations(*(acts[f"h.{layer}.{field}"] for field in HeadActivations._fields))
        for layer in layers
    }


def attention_patterns(model, input_ids, attention_mask=None):
    """Return the model's own attention weights: [num_layers, batch_size, num_heads, seq, seq].

    attention_mask: [batch_size, seq_len], 1 for a token and 0 for padding, or None. Raises
    RuntimeError where the model returns none (any ``attn_implementation`` but "eager").
    """
    with torch.no_grad():
        inputs = model_inputs(input_ids, attention_mask)
        attentions = model(**inputs, output_attentions=True).attentions
    if not attentions or attentions[0] is None:
        raise RuntimeError(
            "the model returned no attention weights; load it with attn_implementation='eager'"
        )
    return torch.stack(attentions)  # [num_layers, batch_size, num_heads, seq_len, seq_len]


def residual_stream(model, input_ids, attention_mask=None):
    """Return what enters each block, then what leaves the last one, BEFORE the final norm.

    [num_layers + 1, batch_size, seq_len, hidden]. It differs from ``output_hidden_states`` in its
    last entry alone: transformers gives that one after ``ln_f``.
    """
    stack = gpt2_stack(model)
    last = f"h.{len(stack.h) - 1}.stream_out"
    with torch.no_grad(), record(stack, ["h.*.stream_in", last]) as acts:
        stack(**model_inputs(input_ids, attention_mask))
    names = [f"h.{layer}.stream_in" for layer in range(len(stack.h))] + [last]
    return torch.stack([acts[name] for name in names])  # [num_layers + 1, batch, seq, hidden]


def logit_lens(model, input_ids, position=-1, attention_mask=None):
    """Read each layer's residual stream through the final norm and the unembedding.

    Returns log-probabilities in nats, [num_layers + 1, batch_size, vocab_size], at one position
    (counted within each row's own tokens, where there is padding); the last entry is the model's
    own output. Source: nostalgebraist 2020.
    """
    index = index_of(are_tokens(input_ids, attention_mask), position)  # [batch_size]
    stream = residual_stream(model, input_ids, attention_mask)  # [num_layers + 1, batch, seq, hid]
    stream = stream[:, torch.arange(len(index)), index]  # [num_layers + 1, batch_size, hidden]
    with torch.no_grad():
        logits = model.lm_head(gpt2_stack(model).ln_f(stream))  # [num_layers + 1, batch, vocab]
        return F.log_softmax(logits, dim=-1)  # [num_layers + 1, batch_size, vocab_size]


def gpt2_stack(model):
    """Return the part that holds the blocks ``h``: the ``GPT2Model`` itself."""
    stack = getattr(model, "transformer", model)
    if not hasattr(stack, "h"):
        words = f"expected a GPT-2 model, got {type(model).__name__}"
        if hasattr(model, "blocks"):
            words += "; modeling_lm.to_gpt2 makes a GPT-2 of a LanguageModel"
        raise TypeError(words)
    return stack


def with_progress(items, show, label):
    """Return the items, with a progress bar around them where ``show`` is true."""
    if not show:
        return items
    from tqdm import tqdm

    return tqdm(items, desc=label)


def _layers(stack, layers):
    num_layers = len(stack.h)
    chosen = range(num_layers) if layers is None else layers
    for layer in chosen:
        if not -num_layers <= layer < num_layers:
            raise IndexError(f"layer {layer} asked for, but the model has {num_layers} layers")
    return [layer % num_layers for layer in chosen]
