"""What a head looks at: the previous token, or what followed an earlier copy of this one.

Sources: Olsson et al. 2022, "In-context Learning and Induction Heads" (prefix matching,
previous-token heads).
"""

import torch

from transformer_lm.activations import attention_patterns
from transformer_lm.batches import are_predictions, are_tokens
from transformer_lm.losses import target_log_probs


def repeated_tokens(vocab_size, batch_size=8, length=30, seed=0, prefix=None):
    """Return random tokens, then the same again: [batch_size, 2 * length (+ 1 with a prefix)].

    prefix: a token id to begin with, such as the end-of-text token (an attention sink), or None.
    """
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(vocab_size, (batch_size, length), generator=generator)
    parts = [first, first]
    if prefix is not None:
        parts.insert(0, torch.full((batch_size, 1), prefix))
    return torch.cat(parts, dim=1)


def previous_token_scores(model, input_ids, attention_mask=None):
    """Return each head's mean attention from a token to the one before: [num_layers, num_heads].

    attention_mask: [batch_size, seq_len], 1 for a token and 0 for padding, or None.
    """
    patterns = attention_patterns(model, input_ids, attention_mask)
    # [num_layers, batch_size, num_heads, seq_len, seq_len]
    before = patterns.diagonal(-1, dim1=-2, dim2=-1)  # [layers, batch, heads, seq_len - 1]
    return _mean(before, are_predictions(input_ids, attention_mask))  # [num_layers, num_heads]


def induction_scores(model, input_ids, length, attention_mask=None):
    """Return each head's prefix matching score: [num_layers, num_heads], from 0 to 1.

    Each row of input_ids ends in two equal copies of ``length`` tokens (see ``repeated_tokens``).
    The score is the mean attention from a token of the second copy to the token AFTER its first
    occurrence, length - 1 positions back (Olsson et al. 2022). Feed tokens without a repetition for
    a control.

    attention_mask: [batch_size, seq_len], 1 for a token and 0 for padding, or None.
    """
    patterns = attention_patterns(model, input_ids, attention_mask)
    # [num_layers, batch_size, num_heads, seq_len, seq_len]
    stripe = patterns.diagonal(1 - length, dim1=-2, dim2=-1)  # [..., seq_len - length + 1]
    is_token = are_tokens(input_ids, attention_mask)  # [batch_size, seq_len]
    left = is_token.flip(1).cumsum(1).flip(1)  # [batch_size, seq_len]: tokens from here to the end
    second = is_token & (left <= length)  # [batch_size, seq_len]
    return _mean(stripe, second[:, length - 1 :])  # [num_layers, num_heads]


def copy_loss(model, input_ids, length):
    """Return the mean loss on the first and on the second copy, in nats, as two floats.

    Compare the second with ln(vocab_size), what a model that cannot copy pays at best. The second
    copy's first token is left out: nothing tells that the repetition begins.
    """
    losses = -target_log_probs(model, input_ids)  # [batch_size, seq_len - 1]
    first = losses[:, :-length][:, -length + 1 :]  # [batch_size, length - 1]
    return first.mean().item(), losses[:, -length + 1 :].mean().item()


def _mean(weights, counts):
    """Return the mean over the queries that count: [num_layers, num_heads].

    weights: [num_layers, batch_size, num_heads, queries]. counts: BoolTensor[batch_size, queries].
    """
    weights = weights.movedim(2, 1)  # [num_layers, num_heads, batch_size, queries]
    return weights[..., counts].mean(dim=-1)  # [num_layers, num_heads]
