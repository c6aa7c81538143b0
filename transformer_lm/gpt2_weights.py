"""From a GPT-2 to the weights of its heads.

Conv1D keeps its weight as [in, out]: columns are output features, so queries, keys and values, and
the heads within each, are split along dim 1. Head h works with three [hidden, head_size] matrices
and one [head_size, hidden] matrix. Its QK matrix W_Q W_K^T and its OV matrix W_V W_O are
[hidden, hidden] with a rank of head_size at most.

Sources: Vaswani et al. 2017, section 3.2.2 (heads); Elhage et al. 2021, "A Mathematical Framework
for Transformer Circuits" (QK and OV circuits, folding of the norms).
"""

from typing import NamedTuple

import torch

from transformer_lm.activations import gpt2_stack


class HeadWeights(NamedTuple):
    """One layer's attention weights, split by head; right multiplication: q = x @ w_q[h] + b_q[h].

    w_q, w_k, w_v: [num_heads, hidden, head_size].  b_q, b_k, b_v: [num_heads, head_size].
    w_o: [num_heads, head_size, hidden].            b_o: [hidden], shared by all heads.
    """

    w_q: torch.Tensor
    w_k: torch.Tensor
    w_v: torch.Tensor
    w_o: torch.Tensor
    b_q: torch.Tensor
    b_k: torch.Tensor
    b_v: torch.Tensor
    b_o: torch.Tensor


def attention_sizes(config):
    """Return a GPT-2 config's num_layers, hidden, num_heads and head_size, as a dict."""
    return {
        "num_layers": config.n_layer,
        "hidden": config.n_embd,
        "num_heads": config.n_head,
        "head_size": config.n_embd // config.n_head,
    }


def count_attention_parameters(config):
    """Return how many numbers, weights and biases, all layers' attention has.

    c_attn has hidden x 3 hidden weights and 3 hidden biases, c_proj hidden x hidden and hidden.
    """
    hidden = config.n_embd
    return config.n_layer * (4 * hidden * hidden + 4 * hidden)


def split_qkv(wide, dim=-1):
    """Cut c_attn's weight [hidden, 3 * hidden] (or bias) into q, k and v, in this order.

    Raises ValueError where the size along ``dim`` is no multiple of three.
    """
    if wide.shape[dim] % 3:
        raise ValueError(f"size {wide.shape[dim]} along dim {dim} is no multiple of three")
    return wide.chunk(3, dim=dim)


def split_columns(weight, num_heads):
    """Split the columns by head: [hidden, num_heads * head_size] -> [num_heads, hidden, head_size].

    Raises ValueError where the number of columns is no multiple of num_heads.
    """
    rows, columns = weight.shape
    if columns % num_heads:
        raise ValueError(f"{columns} columns cannot be shared by {num_heads} heads")
    return weight.view(rows, num_heads, -1).transpose(0, 1)  # [num_heads, hidden, head_size]


def head_weights(model, layer, fold_layer_norm=False, centre=False):
    """Return one layer's HeadWeights (views of the model's weights where nothing is folded).

    Args:
        fold_layer_norm: move ln_1's gain and shift into w_q, w_k, w_v and their biases, so that the
            heads read the normalised residual stream before gain and shift (Elhage et al. 2021).
        centre: subtract from each column of w_q, w_k and w_v its mean over hidden, and from each
            row of w_o, and from b_o, theirs. The normalised stream sums to zero, so the first
            changes no query, key or value; every reader of the stream normalises it, so the second
            changes no output. What is computed from the products is then a property of the model:
            without it, adding (1 / gain) a^T to w_q changes them and no logit. It needs
            fold_layer_norm, for it is before the gain that the stream sums to zero.

    Raises:
        ValueError: ``centre`` without ``fold_layer_norm``.
    """
    if centre and not fold_layer_norm:
        raise ValueError(
            "centre=True needs fold_layer_norm=True: only before the gain does the stream sum to 0"
        )
    stack = gpt2_stack(model)
    attention, norm = stack.h[layer].attn, stack.h[layer].ln_1
    num_heads = stack.config.n_head
    wide, bias = attention.c_attn.weight.detach(), attention.c_attn.bias.detach()
    out, out_bias = attention.c_proj.weight.detach(), attention.c_proj.bias.detach()
    if fold_layer_norm:
        bias = bias + norm.bias.detach() @ wide  # [3 * hidden]
        wide = norm.weight.detach()[:, None] * wide  # [hidden, 3 * hidden]
    if centre:
        wide = wide - wide.mean(dim=0)  # [hidden, 3 * hidden]
        out = out - out.mean(dim=1, keepdim=True)  # [hidden, hidden]
        out_bias = out_bias - out_bias.mean()  # [hidden]
    w_q, w_k, w_v = (split_columns(w, num_heads) for w in split_qkv(wide))
    b_q, b_k, b_v = (b.view(num_heads, -1) for b in split_qkv(bias))  # [num_heads, head_size]
    w_o = out.view(num_heads, -1, out.shape[1])  # [num_heads, head_size, hidden]
    return HeadWeights(w_q, w_k, w_v, w_o, b_q, b_k, b_v, out_bias)


def qk_matrix(heads, head):
    """Form W_Q W_K^T of one head, [hidden, hidden]: for pictures, no spectrum needs it."""
    return heads.w_q[head] @ heads.w_k[head].T  # [hidden, hidden]


def ov_matrix(heads, head):
    """Form W_V W_O of one head, [hidden, hidden]: for pictures, no spectrum needs it."""
    return heads.w_v[head] @ heads.w_o[head]  # [hidden, hidden]


def qk_factors(heads):
    """Return (a, b) with QK matrix = a @ b^T; both [num_heads, hidden, head_size]."""
    return heads.w_q, heads.w_k


def ov_factors(heads):
    """Return (a, b) with OV matrix = a @ b^T; both [num_heads, hidden, head_size]."""
    return heads.w_v, heads.w_o.transpose(-2, -1)
