"""Read and write what flows through a model, by name: `record` reads, `patch` writes.

Nothing is left in the model when the ``with`` block ends, whatever is raised inside it, and blocks
may stand inside each other: a patch of an inner block sees what the outer one made, and a record
always sees what the model went on with.

**Names of modules**, in any model: ``"h.3.mlp.act"`` is a module's output, ``"ln_f:input"`` its
first input. ``*`` stands for one part of a dotted name, ``"h.*.ln_1"``; a leading ``transformer.``
may be left out. In a GPT-2 ``wte`` and ``wpe`` are the embeddings of tokens and positions,
``h.3.mlp.act`` the neurons of an MLP after their activation, and ``lm_head`` the logits.

**Names of quantities** in the blocks of a GPT-2, ``"h.3.q"`` or ``"h.*.q"``, in the words of the
papers; they stand here in the order in which they are computed:

    name        shape                                         what it is
    stream_in   [batch_size, seq_len, hidden]                 the residual stream before the block
    q, k, v     [batch_size, num_heads, seq_len, head_size]   queries, keys, values, with biases
    scores      [batch_size, num_heads, seq_len, seq_len]     q k^T / sqrt(head_size), -inf: hidden
    pattern     [batch_size, num_heads, seq_len, seq_len]     attention weights, softmax(scores)
    z           [batch_size, num_heads, seq_len, head_size]   pattern v: each head's result before
                                                              the output projection W_O
    head_out    [batch_size, num_heads, seq_len, hidden]      z W_O: what each head adds to the
                                                              stream; the bias belongs to no head
    attn_out    [batch_size, seq_len, hidden]                 all heads and the bias together
    stream_mid  [batch_size, seq_len, hidden]                 stream_in + attn_out
    mlp_out     [batch_size, seq_len, hidden]                 what the MLP adds
    stream_out  [batch_size, seq_len, hidden]                 stream_mid + mlp_out

Sources: Vaswani et al. 2017, section 3.2 (queries, keys, values, scores); Elhage et al. 2021, "A
Mathematical Framework for Transformer Circuits" (residual stream, pattern, results of heads).
"""

from contextlib import contextmanager
from functools import partial

import torch

from transformer_lm.names import find
from transformer_lm.taps import is_tapped, tapped


@contextmanager
def record(model, names, keep_gradients=False):
    """Record what the names stand for while the ``with`` block runs.

    Args:
        model: any ``torch.nn.Module``.
        names: one or a list, see the top of this file.
        keep_gradients: record the very tensors that the model goes on with, so that after
            ``backward`` each has its ``grad``, even where all parameters are frozen.

    Yields:
        A dict from name (``*`` filled in, ``transformer.`` left out, ``:input`` where asked) to the
        value of the last call: a tensor, or a tuple where the module returns one. It stays usable
        afterwards. Without ``keep_gradients`` each is a detached copy.

    Raises:
        ValueError: a name stands for nothing in this model.
        RuntimeError: ``keep_gradients`` where gradients are switched off.
    """
    acts = {}
    taps = []
    for target in find(model, [names] if isinstance(names, str) else list(names)):
        keep = _keep_live if keep_gradients else _keep_copy
        taps.append((target, partial(keep, acts, target.key)))
    with tapped(taps, is_record=True):
        yield acts


@contextmanager
def patch(model, functions):
    """Replace what the names stand for while the ``with`` block runs.

    Args:
        model: any ``torch.nn.Module``.
        functions: a dict from name (see the top of this file) to a function from the value to what
            stands in for it, of the same shape. The function gets a copy, which it may edit, and
            gradients pass through it. Several functions for one value work one after the other.

    Yields:
        The model.

    Raises:
        ValueError: a name stands for nothing in this model, or a function returned another shape.
        TypeError: what is given is no function, or a function returned no tensor.

    For example, with the third head of layer 1 silent:

        def silent(z):
            z[:, 2] = 0
            return z

        with patch(model, {"h.1.z": silent}):
            logits = model(input_ids).logits
    """
    taps = []
    for name, function in functions.items():
        if not callable(function):
            raise TypeError(
                f"the patch for {name!r} is a {type(function).__name__}, but a function is "
                "expected, from the value to its replacement; for a fixed tensor: lambda _: tensor"
            )
        for target in find(model, [name]):
            taps.append((target, partial(_replace, target.key, function)))
    with tapped(taps, is_record=False):
        yield model


def count_hooks(model):
    """Return how many forward hooks and pre-hooks the model and all its parts carry.

    Those that transformers itself leaves in, to collect attentions and hidden states, do not count.
    An attention whose heads are recorded or patched counts as one more.
    """
    hooks = [
        hook
        for module in model.modules()
        for hook in (*module._forward_hooks.values(), *module._forward_pre_hooks.values())
    ]
    ours = sum(is_tapped(module) for module in model.modules())
    theirs = [h for h in hooks if (getattr(h, "__module__", "") or "").startswith("transformers.")]
    return len(hooks) - len(theirs) + ours


# --- What a record keeps and a patch hands on -----------------------------------------------------


def _keep_copy(acts, key, value):
    acts[key] = _each(value, lambda tensor: tensor.detach().clone())
    return value


def _keep_live(acts, key, value):
    """Record a tensor of its own, and let the model go on with it."""
    if not torch.is_grad_enabled():
        raise RuntimeError(
            "record(..., keep_gradients=True) under torch.no_grad(): there are no gradients to "
            "keep; leave one of the two out"
        )
    acts[key] = _each(value, _live)
    return acts[key]


def _live(tensor):
    if not tensor.is_floating_point():
        return tensor
    tensor = tensor.clone() if tensor.requires_grad else tensor.clone().requires_grad_()
    tensor.retain_grad()
    return tensor


def _replace(key, function, value):
    new = function(_each(value, torch.clone))
    _check(key, value, new)
    return new


def _check(key, value, new):
    """Raise unless the new value can stand in for the old one."""
    if isinstance(value, torch.Tensor):
        if not isinstance(new, torch.Tensor):
            why = "; is a return missing?" if new is None else ""
            raise TypeError(
                f"the patch for {key!r} returned a {type(new).__name__}, but a tensor of shape "
                f"{list(value.shape)} is expected{why}"
            )
        if (new.shape, new.dtype) != (value.shape, value.dtype):
            raise ValueError(
                f"the patch for {key!r} returned shape {list(new.shape)} of {new.dtype}, but "
                f"{list(value.shape)} of {value.dtype} is expected, as it was given"
            )
    elif isinstance(value, (tuple, list)):
        if not isinstance(new, (tuple, list)) or len(new) != len(value):
            raise TypeError(
                f"the patch for {key!r} was given a tuple of {len(value)} and must return one"
            )
        for old_part, new_part in zip(value, new, strict=True):
            _check(key, old_part, new_part)


def _each(value, function):
    """Apply a function to a tensor, or to each tensor of a tuple."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (tuple, list)):
        return tuple(_each(each, function) for each in value)
    return value
