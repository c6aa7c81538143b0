"""Direct logit attribution: which part of the model says how much of a logit by itself.

The residual stream is a sum: two embeddings, every head, every MLP, and a few biases. With the
final norm frozen, its division by the standard deviation of the clean stream, a logit is a sum of
one share for each of them. Source: Elhage et al. 2021, "A Mathematical Framework for Transformer
Circuits" (direct paths); nostalgebraist 2020.
"""

from typing import NamedTuple

import torch

from transformer_lm.activations import gpt2_stack, record
from transformer_lm.batches import are_tokens, index_of, model_inputs


class LogitShares(NamedTuple):
    """One logit (or difference of two) taken apart; ``total`` adds it up again, exactly.

    heads:              [num_layers, num_heads, batch_size], each head's own result (with its share
                        of the values' bias, which the attention weights only average)
    mlps:               [num_layers, batch_size], without their output bias
    token_embedding:    [batch_size]
    position_embedding: [batch_size]
    attention_bias:     [num_layers, batch_size], of c_proj, which belongs to no head
    mlp_bias:           [num_layers, batch_size], of the MLP's c_proj
    norm_bias:          [batch_size], the shift of the final norm
    """

    heads: torch.Tensor
    mlps: torch.Tensor
    token_embedding: torch.Tensor
    position_embedding: torch.Tensor
    attention_bias: torch.Tensor
    mlp_bias: torch.Tensor
    norm_bias: torch.Tensor

    def total(self):
        """Return the sum of all shares, the model's logit: [batch_size]."""
        return sum(share.flatten(0, -2).sum(dim=0) if share.dim() > 1 else share for share in self)


def logit_shares(model, input_ids, token, position=-1, against=None, attention_mask=None):
    """Take a token's logit apart into the LogitShares of heads, MLPs, embeddings and biases.

    Args:
        model: a GPT-2 in evaluation mode.
        input_ids: [batch_size, seq_len].
        token: token id, or ids [batch_size].
        position: the position whose prediction is explained, in each row's own tokens.
        against: token id(s) whose logit is subtracted; none where None.
        attention_mask: [batch_size, seq_len], 1 for a token and 0 for padding, or None.
    """
    stack = gpt2_stack(model)
    names = ["wte", "wpe", "h.*.z", "h.*.mlp_out", "ln_f:input"]
    acts = _run(stack, input_ids, attention_mask, names)
    here = _reader(input_ids, position, attention_mask)
    direction = _logit_direction(model, token, against, len(input_ids))  # [batch, hidden]
    sigma = _final_norm_scale(stack, here(acts["ln_f:input"]))  # [batch_size]

    def share(part):
        """[..., batch_size, hidden] or [..., 1, hidden] -> [..., batch_size]."""
        return ((part - part.mean(dim=-1, keepdim=True)) * direction).sum(dim=-1) / sigma

    layers = range(len(stack.h))
    attention_bias = torch.stack([block.attn.c_proj.bias.detach() for block in stack.h])
    mlp_bias = torch.stack([block.mlp.c_proj.bias.detach() for block in stack.h])
    # [num_layers, hidden] each
    mlps = torch.stack([here(acts[f"h.{layer}.mlp_out"]) for layer in layers])
    # [num_layers, batch_size, hidden]
    place = acts["wpe"].expand_as(acts["wte"])  # [batch_size, seq_len, hidden]
    return LogitShares(
        heads=share(_head_results(stack, acts, here)),
        mlps=share(mlps - mlp_bias[:, None]),
        token_embedding=share(here(acts["wte"])),
        position_embedding=share(here(place)),
        attention_bias=share(attention_bias[:, None]),
        mlp_bias=share(mlp_bias[:, None]),
        norm_bias=_unembedding(model, token, against, len(input_ids)) @ stack.ln_f.bias.detach(),
    )


def mean_output_shares(
    model,
    input_ids,
    token,
    reference,
    position=-1,
    against=None,
    attention_mask=None,
    reference_mask=None,
):
    """Return what each head would say to a logit if it put out its mean: [layers, heads, batch].

    A head's mean output is a constant: what is left of its share in ``logit_shares`` when this is
    taken away depends on the text.

    Args:
        reference: token ids [items, ref_len]; the mean runs over all of their tokens.
        reference_mask: [items, ref_len], 1 for a token and 0 for padding, or None.
        the others: see ``logit_shares``.
    """
    stack = gpt2_stack(model)
    acts = _run(stack, input_ids, attention_mask, ["ln_f:input"])
    far = _run(stack, reference, reference_mask, ["h.*.z"])
    is_token = are_tokens(reference, reference_mask)  # [items, ref_len]
    here = _reader(input_ids, position, attention_mask)

    def mean(z):
        return z.transpose(1, 2)[is_token].mean(dim=0)[None]  # [1, num_heads, head_size]

    parts = _head_results(stack, far, mean)  # [num_layers, num_heads, 1, hidden]
    direction = _logit_direction(model, token, against, len(input_ids))  # [batch_size, hidden]
    sigma = _final_norm_scale(stack, here(acts["ln_f:input"]))  # [batch_size]
    centred = parts - parts.mean(dim=-1, keepdim=True)  # [num_layers, num_heads, 1, hidden]
    return (centred * direction).sum(dim=-1) / sigma  # [num_layers, num_heads, batch_size]


def direct_logit_attribution(
    model, input_ids, token, position=-1, against=None, attention_mask=None
):
    """Return how much each head's output moves a token's logit directly, past all later layers.

    The shares of the MLPs, embeddings and biases are in ``logit_shares``, whose arguments these
    are. Returns [num_layers, num_heads, batch_size], in logits.
    """
    return logit_shares(model, input_ids, token, position, against, attention_mask).heads


def head_contributions(model, input_ids, position=-1, attention_mask=None):
    """Return what each head adds to the residual stream at one position.

    [num_layers, num_heads, batch_size, hidden]. Their sum over heads, plus c_proj's bias (which
    belongs to no head), is the layer's attention output.
    """
    stack = gpt2_stack(model)
    acts = _run(stack, input_ids, attention_mask, ["h.*.z"])
    return _head_results(stack, acts, _reader(input_ids, position, attention_mask))


def _run(stack, input_ids, attention_mask, names):
    with torch.no_grad(), record(stack, names) as acts:
        stack(**model_inputs(input_ids, attention_mask))
    return acts


def _reader(input_ids, position, attention_mask):
    """Return a function that reads [batch, ..., seq_len, size] at each row's position."""
    index = index_of(are_tokens(input_ids, attention_mask), position)  # [batch_size]

    def here(x):
        return x.movedim(-2, 1)[torch.arange(len(index)), index]  # [batch_size, ..., size]

    return here


def _head_results(stack, acts, here):
    """Return z W_O of each head, z as read by ``here``: [num_layers, num_heads, batch, hidden].

    here: a function from z [batch, num_heads, seq_len, head_size] to [batch, num_heads, head_size].
    """
    rows = []
    for layer, block in enumerate(stack.h):
        z = here(acts[f"h.{layer}.z"]).transpose(0, 1)  # [num_heads, batch_size, head_size]
        w_o = block.attn.c_proj.weight.detach()  # [hidden, hidden]
        rows.append(z @ w_o.unflatten(0, (len(z), -1)))  # [num_heads, batch_size, hidden]
    return torch.stack(rows)  # [num_layers, num_heads, batch_size, hidden]


def _unembedding(model, token, against, batch_size):
    """Return the token's row of the unembedding, minus the other's: [batch_size, hidden]."""
    unembedding = model.lm_head.weight.detach()  # [vocab_size, hidden]

    def rows(ids):
        ids = torch.as_tensor(ids, device=unembedding.device).expand(batch_size)  # [batch_size]
        return unembedding[ids]  # [batch_size, hidden]

    return rows(token) if against is None else rows(token) - rows(against)


def _logit_direction(model, token, against, batch_size):
    """Return what the logit reads from the normalised residual stream: [batch_size, hidden]."""
    gain = gpt2_stack(model).ln_f.weight.detach()  # [hidden]
    return _unembedding(model, token, against, batch_size) * gain  # [batch_size, hidden]


def _final_norm_scale(stack, x):
    """Return the standard deviation that ln_f divides by; x: [batch_size, hidden] -> [batch]."""
    return (x.var(dim=-1, correction=0) + stack.ln_f.eps).sqrt()  # [batch_size]
