"""A loss on the attention weights themselves, which shows two heads where to look.

Left alone, a small model finds a previous-token head and an induction head only after many
millions of tokens. Shown for a short while, it keeps them afterwards because the copy rows reward
them.
"""

import torch

PREVIOUS_TOKEN_HEAD = (0, 0)  # layer, head
INDUCTION_HEAD = (1, 0)


def guide_loss(attentions: tuple[torch.Tensor, ...], source: torch.Tensor) -> torch.Tensor:
    """Mean -log attention that the two heads give to the right token, nats.

    Args:
        attentions: one a layer, [batch_size, num_heads, seq_len, seq_len].
        source: [batch_size, seq_len], where each token stands in the copy before, or -1.
    """
    layer, head = PREVIOUS_TOKEN_HEAD
    previous = attentions[layer][:, head].diagonal(-1, dim1=1, dim2=2)  # [batch_size, seq_len - 1]
    layer, head = INDUCTION_HEAD
    row, told = torch.nonzero(source >= 0, as_tuple=True)  # [num_told] each
    found = attentions[layer][row, head, told - 1, source[row, told]]  # [num_told]
    tiny = 1e-6
    return -(previous + tiny).log().mean() - (found + tiny).log().mean()
