"""What a causal experiment measures: log-probabilities and logits of the tokens that follow."""

import torch
import torch.nn.functional as F

from transformer_lm.batches import are_predictions, model_inputs


def target_log_probs(model, input_ids, attention_mask=None):
    """Return log p of each next token, in nats: [batch_size, seq_len - 1].

    Entry t is the log-probability that position t gives to the token at t + 1. Where one of the two
    is padding it means nothing; ``batches.are_predictions`` says where both are tokens.
    """
    with torch.no_grad():
        logits = model(**model_inputs(input_ids, attention_mask)).logits[:, :-1]
    log_probs = F.log_softmax(logits, dim=-1)  # [batch_size, seq_len - 1, vocab_size]
    return log_probs.gather(-1, input_ids[:, 1:, None]).squeeze(-1)  # [batch_size, seq_len - 1]


def mean_log_prob(model, input_ids, target=None, attention_mask=None):
    """Return the mean log-probability, in nats, of next tokens: a tensor [].

    Args:
        input_ids: [batch_size, seq_len].
        target: which of each row's next-token predictions, -1 for its last token as predicted from
            the one before; all of them, each counting once, where None.
        attention_mask: [batch_size, seq_len], 1 for a token and 0 for padding, or None.
    """
    log_probs = target_log_probs(model, input_ids, attention_mask)  # [batch_size, seq_len - 1]
    real = are_predictions(input_ids, attention_mask)  # [batch_size, seq_len - 1]
    if target is None:
        return log_probs[real].mean()
    rows = zip(log_probs, real, strict=True)
    return torch.stack([row[is_real][target] for row, is_real in rows]).mean()


def logit_difference(token, against=None, position=-1):
    """Return a function from logits to the mean logit of a token, minus that of another one.

    Args:
        token, against: token ids, or ids [batch_size]; nothing is subtracted where None.
        position: where the prediction is read, one for all rows or [batch_size] (for rows of
            unequal length: ``batches.index_of``).

    Returns:
        A function from logits [batch_size, seq_len, vocab_size] to a tensor [].
    """

    def measure(logits):
        rows = torch.arange(len(logits), device=logits.device)  # [batch_size]
        found = logits[rows, position]  # [batch_size, vocab_size]
        difference = found[rows, token]  # [batch_size]
        if against is not None:
            difference = difference - found[rows, against]  # [batch_size]
        return difference.mean()

    return measure


def log_prob(token, position=-1):
    """Return a function from logits to the mean log-probability of a token, in nats.

    The arguments are those of ``logit_difference``.
    """

    def measure(logits):
        return logit_difference(token, position=position)(F.log_softmax(logits, dim=-1))

    return measure
