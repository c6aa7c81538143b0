"""Sequences of unequal length in one batch: which positions hold tokens, and which padding.

An ``attention_mask`` is what a tokenizer returns, [batch_size, seq_len], 1 for a token and 0 for
padding, on whichever side. Positions are counted within each row's own tokens: -1 is a row's last
token, wherever its padding stands. None stands for a batch without padding.
"""

import torch


def model_inputs(input_ids, attention_mask=None):
    """Return what a GPT-2 is to be called with, as a dict.

    Each row's first token stands at position 0, so that a row gives what it would give alone. (The
    model by itself counts padding on the left as positions.)
    """
    if attention_mask is None:
        return {"input_ids": input_ids}
    first = _check(input_ids, attention_mask).long().argmax(dim=1, keepdim=True)  # [batch_size, 1]
    places = torch.arange(input_ids.shape[1], device=input_ids.device)  # [seq_len]
    position_ids = (places - first).clamp(min=0)  # [batch_size, seq_len]
    return {
        "input_ids": input_ids,
        "attention_mask": attention_mask,
        "position_ids": position_ids,
    }


def are_tokens(input_ids, attention_mask=None):
    """Return True where there is a token and False where there is padding: [batch, seq_len]."""
    if attention_mask is None:
        return torch.ones_like(input_ids, dtype=torch.bool)
    return _check(input_ids, attention_mask)


def are_predictions(input_ids, attention_mask=None):
    """Return True where a token predicts a next one: [batch_size, seq_len - 1]."""
    tokens = are_tokens(input_ids, attention_mask)  # [batch_size, seq_len]
    return tokens[:, :-1] & tokens[:, 1:]


def at_positions(is_token, positions=None):
    """Return True at the positions asked for, counted within each row's tokens: [batch, seq_len].

    Args:
        is_token: BoolTensor[batch_size, seq_len], as ``are_tokens`` returns.
        positions: a list of integers, negative ones counting from the row's end; all where None.

    Raises:
        IndexError: a row has no such position.
    """
    if positions is None:
        return is_token.clone()
    chosen = torch.zeros_like(is_token)  # [batch_size, seq_len]
    for row, marks in enumerate(is_token):
        places = marks.nonzero()[:, 0]  # [tokens of this row]
        for position in positions:
            if not -len(places) <= position < len(places):
                raise IndexError(f"position {position} in a sequence of {len(places)} tokens")
            chosen[row, places[position]] = True
    return chosen


def index_of(is_token, position):
    """Return where each row's ``position`` stands in the padded batch: LongTensor[batch_size]."""
    return at_positions(is_token, [position]).long().argmax(dim=1)  # [batch_size]


def _check(input_ids, attention_mask):
    """Return the mask as booleans; raise ValueError where it cannot belong to these tokens."""
    if attention_mask.shape != input_ids.shape:
        raise ValueError(
            f"attention_mask has shape {list(attention_mask.shape)}, but the token ids have "
            f"{list(input_ids.shape)}"
        )
    is_token = attention_mask != 0  # [batch_size, seq_len]
    if not is_token.any(dim=1).all():
        row = int((~is_token.any(dim=1)).nonzero()[0])
        raise ValueError(f"row {row} of attention_mask has no token, only padding")
    return is_token
