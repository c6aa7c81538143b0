"""Ablation: cut heads out, or put something else in their place, and see what it does.

A head's output is cut out where it can still be told from the others: in ``z``, before the output
projection. Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?".

Neighbours: ``attribution`` (what a head says to a logit directly), ``head_scores`` (what it looks
at), ``patching`` (what it says to whom). Their older functions can be imported from here too.
"""

from contextlib import contextmanager
from functools import partial

import torch

from transformer_lm.activations import gpt2_stack, with_progress
from transformer_lm.attribution import direct_logit_attribution, head_contributions
from transformer_lm.batches import are_tokens, at_positions, model_inputs
from transformer_lm.head_scores import (
    copy_loss,
    induction_scores,
    previous_token_scores,
    repeated_tokens,
)
from transformer_lm.hooks import patch, record
from transformer_lm.losses import mean_log_prob, target_log_probs

__all__ = [
    "HOW",
    "ablate",
    "ablation_grid",
    "check_heads",
    "copy_loss",
    "direct_logit_attribution",
    "head_contributions",
    "induction_scores",
    "previous_token_scores",
    "repeated_tokens",
    "target_log_probs",
]

HOW = ("zero", "mean", "resample")


@contextmanager
def ablate(
    model,
    heads,
    how="zero",
    positions=None,
    reference=None,
    seed=0,
    attention_mask=None,
    reference_mask=None,
):
    """Replace the output of chosen heads while the ``with`` block runs, on copies of the tensors.

    Args:
        model: a GPT-2.
        heads: pairs (layer, head), counted from 0; ``(9, 4)`` is the fifth head of layer 9.
        how: what stands in for the head's output, [head_size] numbers at each position:
            "zero": zeros;
            "mean": its mean over the batch and positions of ``reference``, or of the running input;
            "resample": its output at the same position in another, randomly drawn item of
            ``reference``, or of the running batch (which then needs two items or more).
        positions: positions to replace, negative ones counting from the end; all where None.
        reference: token ids [items, at least seq_len for "resample"] the stand-in is taken from.
        seed: of the draw, for "resample".
        attention_mask: of the batch that will run, [batch_size, seq_len], 1 for a token and 0 for
            padding, or None. Positions are counted in each row's own tokens, padding stays as it is
            and enters no mean.
        reference_mask: the same of ``reference``.

    Raises:
        ValueError: unknown ``how``, or nothing to resample from.
        IndexError: no such layer, head or position.
    """
    if how not in HOW:
        raise ValueError(f"how is {how!r}; expected one of {', '.join(HOW)}")
    stack = gpt2_stack(model)
    by_layer = {}
    for layer, head in check_heads(stack, heads):
        by_layer.setdefault(layer, []).append(head)
    names = [f"h.{layer}.z" for layer in by_layer]
    stored, stored_tokens = {}, None
    if reference is not None:
        with torch.no_grad(), record(stack, names) as stored:
            stack(**model_inputs(reference, reference_mask))
        stored_tokens = are_tokens(reference, reference_mask)  # [items, ref_len]

    def replace(name, chosen, z):
        """z: [batch_size, num_heads, seq_len, head_size]; the chosen heads of it are replaced."""
        is_token = are_tokens(z[:, 0, :, 0], attention_mask)  # [batch_size, seq_len]
        where = at_positions(is_token, positions)[:, None, :, None]  # [batch_size, 1, seq_len, 1]
        if how == "zero":
            stand_in = torch.zeros_like(z)  # [batch_size, num_heads, seq_len, head_size]
        elif how == "mean":
            source = stored.get(name, z).transpose(1, 2)  # [items, ref_len, num_heads, head_size]
            counts = is_token if stored_tokens is None else stored_tokens  # [items, ref_len]
            stand_in = source[counts].mean(dim=0)[:, None]  # [num_heads, 1, head_size]
        else:
            source = stored.get(name, z)  # [items, num_heads, ref_len, head_size]
            items = _draw(is_token, stored_tokens, seed)  # [batch_size]
            stand_in = source[items, :, : z.shape[2]]  # [batch, num_heads, seq_len, head_size]
        is_chosen = torch.zeros(z.shape[1], 1, 1, dtype=torch.bool, device=z.device)
        is_chosen[chosen] = True  # [num_heads, 1, 1]
        return torch.where(where & is_chosen, stand_in, z)  # [batch, num_heads, seq, head_size]

    functions = {
        name: partial(replace, name, chosen)
        for name, chosen in zip(names, by_layer.values(), strict=True)
    }
    with patch(stack, functions):
        yield model


def ablation_grid(
    model,
    input_ids,
    how="zero",
    positions=None,
    target=None,
    progress=False,
    attention_mask=None,
    **more,
):
    """Ablate each head in turn; return what it does to the log-probability of the next tokens.

    Args:
        input_ids: [batch_size, seq_len].
        how, positions, and reference, reference_mask, seed in ``more``: see ``ablate``.
        target: index into each row's next-token predictions; -1 for the last token, as predicted
            from the one before. Mean over all of them where None.
        progress: show a progress bar.
        attention_mask: [batch_size, seq_len], 1 for a token and 0 for padding, or None.

    Returns:
        [num_layers, num_heads] in nats: ablated minus clean; negative where the head helps.
    """
    stack = gpt2_stack(model)
    num_layers, num_heads = len(stack.h), stack.config.n_head
    measure = partial(mean_log_prob, model, input_ids, target, attention_mask)
    clean = measure()  # []
    effects = torch.zeros(num_layers, num_heads)  # [num_layers, num_heads]
    pairs = [(layer, head) for layer in range(num_layers) for head in range(num_heads)]
    for layer, head in with_progress(pairs, progress, "ablating heads"):
        with ablate(model, [(layer, head)], how, positions, attention_mask=attention_mask, **more):
            effects[layer, head] = measure() - clean
    return effects


def check_heads(stack, heads):
    """Return the pairs (layer, head) with layers from 0; raise IndexError where there is none."""
    num_layers, num_heads = len(stack.h), stack.config.n_head
    for layer, head in heads:
        if not (-num_layers <= layer < num_layers and 0 <= head < num_heads):
            raise IndexError(
                f"there is no head ({layer}, {head}): the model has {num_layers} layers of "
                f"{num_heads} heads, both counted from 0"
            )
    return [(layer % num_layers, head) for layer, head in heads]


def _draw(is_token, stored_tokens, seed):
    """Draw, for each row of the batch, the item whose output stands in: LongTensor[batch_size].

    is_token: [batch_size, seq_len]. stored_tokens: [items, ref_len], or None for the batch itself,
    in which no row draws itself.
    """
    batch_size, seq_len = is_token.shape
    generator = torch.Generator().manual_seed(seed)
    if stored_tokens is None:
        if batch_size < 2:
            raise ValueError(
                "nothing to resample from: give a batch of two or more, or a reference"
            )
        shift = torch.randint(1, batch_size, (batch_size,), generator=generator)  # [batch_size]
        items = (torch.arange(batch_size) + shift) % batch_size  # [batch_size]
    else:
        if stored_tokens.shape[1] < seq_len:
            raise ValueError(f"reference has {stored_tokens.shape[1]} tokens, {seq_len} are needed")
        items = torch.randint(len(stored_tokens), (batch_size,), generator=generator)
    items = items.to(is_token.device)  # [batch_size]
    drawn = (is_token if stored_tokens is None else stored_tokens)[items, :seq_len]
    if (is_token & ~drawn).any():
        row = int((is_token & ~drawn).any(dim=1).nonzero()[0])
        raise ValueError(
            f"row {row} would be given the head's output at padding, for the item drawn is "
            "shorter; give a reference whose rows are all as long, or take how='mean'"
        )
    return items
