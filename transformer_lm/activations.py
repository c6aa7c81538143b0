"""Record what flows through a model, and read each head's queries, keys, values and pattern.

Hooks are taken out when the ``with`` block ends, whatever is raised inside it.
Sources: Vaswani et al. 2017, section 3.2 (attention); Elhage et al. 2021, "A Mathematical
Framework for Transformer Circuits" (heads, residual stream); nostalgebraist 2020 (logit lens).
"""

import math
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import NamedTuple

import torch
import torch.nn.functional as F

INPUT = ":input"


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


@contextmanager
def record(model, names):
    """Record the outputs (or inputs) of chosen modules while the ``with`` block runs.

    Args:
        model: any ``torch.nn.Module``.
        names: patterns of module names, one or a list. ``*`` stands for one part of a dotted name:
            ``"h.*.attn.c_attn"``, ``"h.3"``, ``"ln_f"``. A leading ``transformer.`` may be left
            out. ``":input"`` at the end asks for the module's first input instead of its output.

    Yields:
        A dict from name (without ``transformer.``, with ``:input`` where asked) to a detached copy
        of the tensor, or tuple of tensors, of the module's last call. It stays usable afterwards.

    Raises:
        ValueError: a pattern matches no module.
    """
    wanted = _match(model, [names] if isinstance(names, str) else list(names))
    acts = {}
    handles = []
    try:
        for key, module in wanted.items():
            if key.endswith(INPUT):
                handles.append(module.register_forward_pre_hook(_input_hook(acts, key)))
            else:
                handles.append(module.register_forward_hook(_output_hook(acts, key)))
        yield acts
    finally:
        for handle in handles:
            handle.remove()


def count_hooks(model):
    """Return how many forward hooks and pre-hooks the model and all its parts carry.

    Those that transformers itself leaves in, to collect attentions and hidden states, do not count.
    """
    hooks = [
        hook
        for module in model.modules()
        for hook in (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
    ]
    return sum(not (getattr(h, "__module__", "") or "").startswith("transformers.") for h in hooks)


def split_heads(x, num_heads):
    """Split the last axis into heads.

    [batch_size, seq_len, hidden] -> [batch_size, num_heads, seq_len, head_size]. Raises ValueError
    where hidden is no multiple of num_heads.
    """
    batch_size, seq_len, hidden = x.shape
    if hidden % num_heads:
        raise ValueError(f"hidden size {hidden} is no multiple of num_heads {num_heads}")
    x = x.view(batch_size, seq_len, num_heads, -1)  # [batch_size, seq_len, num_heads, head_size]
    return x.transpose(1, 2)  # [batch_size, num_heads, seq_len, head_size]


def attention_scores(q, k, scale=None, attention_mask=None, causal=True):
    """Return the scaled, masked scores, per head.

    Args:
        q, k: [batch_size, num_heads, seq_len, head_size].
        scale: the factor on the dot products; 1 / sqrt(head_size) where None.
        attention_mask: [batch_size, seq_len], 1 for a token and 0 for padding, or None.
        causal: hide from each query the keys after it.

    Returns:
        [batch_size, num_heads, seq_len, seq_len]; -inf where a key is hidden.
    """
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ k.transpose(-2, -1) * scale  # [batch_size, num_heads, seq_len, seq_len]
    is_hidden = torch.zeros_like(scores, dtype=torch.bool)  # same shape as scores
    if causal:
        is_hidden = is_hidden | torch.ones_like(is_hidden).triu(1)
    if attention_mask is not None:
        is_hidden = is_hidden | (attention_mask == 0)[:, None, None, :]
    return scores.masked_fill(is_hidden, -math.inf)


def attention_pattern(scores):
    """Return the attention weights: softmax over the last axis; a row with no key is all zeros."""
    return torch.softmax(scores, dim=-1).nan_to_num(0.0)


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
    num_heads = stack.config.n_head
    with torch.no_grad(), record(stack, [f"h.{layer}.attn.c_attn" for layer in layers]) as acts:
        stack(input_ids, attention_mask=attention_mask)
    heads = {}
    for layer in layers:
        q, k, v = acts[f"h.{layer}.attn.c_attn"].chunk(3, dim=-1)  # [batch_size, seq_len, hidden]
        q, k, v = (split_heads(x, num_heads) for x in (q, k, v))
        scores = attention_scores(q, k, stack.h[layer].attn.scaling, attention_mask)
        heads[layer] = HeadActivations(q, k, v, scores, attention_pattern(scores))
    return heads


def attention_patterns(model, input_ids):
    """Return the model's own attention weights: [num_layers, batch_size, num_heads, seq, seq].

    Raises RuntimeError where the model returns none (any ``attn_implementation`` but "eager").
    """
    with torch.no_grad():
        attentions = model(input_ids, output_attentions=True).attentions
    if not attentions or attentions[0] is None:
        raise RuntimeError(
            "the model returned no attention weights; load it with attn_implementation='eager'"
        )
    return torch.stack(attentions)  # [num_layers, batch_size, num_heads, seq_len, seq_len]


def residual_stream(model, input_ids):
    """Return what enters each block, then what leaves the last one, BEFORE the final norm.

    [num_layers + 1, batch_size, seq_len, hidden]. It differs from ``output_hidden_states`` in its
    last entry alone: transformers gives that one after ``ln_f``.
    """
    stack = gpt2_stack(model)
    with torch.no_grad(), record(stack, ["h.*:input", f"h.{len(stack.h) - 1}"]) as acts:
        stack(input_ids)
    states = [acts[f"h.{layer}:input"] for layer in range(len(stack.h))]
    last = acts[f"h.{len(stack.h) - 1}"]
    states.append(last[0] if isinstance(last, tuple) else last)
    return torch.stack(states)  # [num_layers + 1, batch_size, seq_len, hidden]


def logit_lens(model, input_ids, position=-1):
    """Read each layer's residual stream through the final norm and the unembedding.

    Returns log-probabilities in nats, [num_layers + 1, batch_size, vocab_size], at one position;
    the last entry is the model's own output. Source: nostalgebraist 2020.
    """
    stream = residual_stream(model, input_ids)[:, :, position]  # [num_layers + 1, batch, hidden]
    with torch.no_grad():
        logits = model.lm_head(gpt2_stack(model).ln_f(stream))  # [num_layers + 1, batch, vocab]
        return F.log_softmax(logits, dim=-1)  # [num_layers + 1, batch_size, vocab_size]


def gpt2_stack(model):
    """Return the part that holds the blocks ``h``: the ``GPT2Model`` itself."""
    stack = getattr(model, "transformer", model)
    if not hasattr(stack, "h"):
        raise TypeError(f"expected a GPT-2 model, got {type(model).__name__}")
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


def _match(model, patterns):
    """Return {key: module} for every module that a pattern names."""
    modules = {name.removeprefix("transformer."): m for name, m in model.named_modules() if name}
    wanted = {}
    for pattern in patterns:
        suffix = INPUT if pattern.endswith(INPUT) else ""
        parts = pattern.removesuffix(INPUT).removeprefix("transformer.").split(".")
        found = [name for name in modules if _fits(name.split("."), parts)]
        if not found:
            raise ValueError(
                f"no module is called {pattern!r}; names look like {', '.join(list(modules)[:8])}"
            )
        wanted.update({name + suffix: modules[name] for name in found})
    return wanted


def _fits(parts, pattern):
    return len(parts) == len(pattern) and all(map(fnmatchcase, parts, pattern))


def _copied(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, (tuple, list)):
        return tuple(_copied(each) for each in value)
    return value


def _output_hook(acts, key):
    def hook(module, inputs, output):
        acts[key] = _copied(output)

    return hook


def _input_hook(acts, key):
    def hook(module, inputs):
        acts[key] = _copied(inputs[0])

    return hook
