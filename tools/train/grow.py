"""A larger model that starts from a smaller one: with more words, or deeper.

The new blocks come last and write nothing into the residual stream at first (their output maps are
zero), so nothing is lost, and training goes on from there (as in Gong et al. 2019, "Efficient
Training of BERT by Progressively Stacking", but with silent blocks instead of copied ones).

A new word is the merge of two older ones, and begins as the mean of their embeddings.
"""

import torch
from transformers import GPT2LMHeadModel

WORDS = "transformer.wte.weight"
TIED = "lm_head.weight"  # the same matrix, under its second name


def load_grown(
    larger: GPT2LMHeadModel, weights: dict[str, torch.Tensor], pieces: list[tuple[int, int]]
) -> None:
    """Load the weights of the smaller model into ``larger`` and silence the blocks beyond it.

    Args:
        larger: the model to start; it may have more words and more layers, nothing else.
        weights: the smaller model's.
        pieces: the two ids of which each id beyond the 256 bytes is made, in the order of the ids.

    Raises:
        ValueError: the weights are not those of a model that differs in words and depth alone.
    """
    weights = dict(weights)
    num_words = larger.config.vocab_size
    if len(weights[WORDS]) < num_words:
        weights[WORDS] = weights[TIED] = with_more_words(weights[WORDS], pieces, num_words)
    try:
        loaded = larger.load_state_dict(weights, strict=False)
    except RuntimeError:  # a matrix of another size
        loaded = None
    if not loaded or loaded.unexpected_keys or not all(".h." in k for k in loaded.missing_keys):
        raise ValueError(
            "the checkpoint to grow from has other parts than the model. "
            "Both need one hidden size; only the depth and the vocabulary may grow."
        )
    new_blocks = {int(key.split(".h.")[1].split(".")[0]) for key in loaded.missing_keys}
    for layer in new_blocks:
        block = larger.transformer.h[layer]
        for output_map in (block.attn.c_proj, block.mlp.c_proj):
            torch.nn.init.zeros_(output_map.weight)
            torch.nn.init.zeros_(output_map.bias)


def with_more_words(
    embedding: torch.Tensor, pieces: list[tuple[int, int]], num_words: int
) -> torch.Tensor:
    """The embedding [old_words, hidden] with rows for the new words: [num_words, hidden].

    The last row of both is <|endoftext|>'s.
    """
    *rows, end_of_text = embedding
    num_bytes = 256
    for left, right in pieces[len(rows) - num_bytes : num_words - 1 - num_bytes]:
        rows.append((rows[left] + rows[right]) / 2)
    return torch.stack([*rows, end_of_text])  # [num_words, hidden]
