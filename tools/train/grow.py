"""A deeper model that starts as an exact copy of a shallower one.

The new blocks come last and write nothing into the residual stream at first (their output maps are
zero), so nothing is lost, and training goes on from there (as in Gong et al. 2019, "Efficient
Training of BERT by Progressively Stacking", but with silent blocks instead of copied ones).
"""

import torch
from transformers import GPT2LMHeadModel


def load_grown(deeper: GPT2LMHeadModel, shallow_weights: dict[str, torch.Tensor]) -> None:
    """Load the weights of the shallower model into ``deeper`` and silence the blocks beyond it.

    Raises:
        ValueError: the weights are not those of a model that differs in depth alone.
    """
    loaded = deeper.load_state_dict(shallow_weights, strict=False)
    if loaded.unexpected_keys or not all(".h." in key for key in loaded.missing_keys):
        raise ValueError(
            "the checkpoint to grow from has other parts than the model. "
            "Both need one hidden size and the same vocabulary; only the depth may grow."
        )
    new_blocks = {int(key.split(".h.")[1].split(".")[0]) for key in loaded.missing_keys}
    for layer in new_blocks:
        block = deeper.transformer.h[layer]
        for output_map in (block.attn.c_proj, block.mlp.c_proj):
            torch.nn.init.zeros_(output_map.weight)
            torch.nn.init.zeros_(output_map.bias)
