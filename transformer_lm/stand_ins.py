"""Small models with given weights, to try an answer on where a trained one would say too little."""

from __future__ import annotations

from collections.abc import Mapping

import torch


def gpt2(config: Mapping, weights: Mapping[str, torch.Tensor]):
    """A `GPT2LMHeadModel` of this configuration holding these weights, in evaluation mode.

    weights: tensors by their name in the state dict, all of one dtype, which the model takes on;
    what is left out (the tied output matrix) is the model's own. Nobody's dice are thrown: what
    the library would begin with is replaced.
    """
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.random.fork_rng(devices=()):
        model = GPT2LMHeadModel(GPT2Config(**config, attn_implementation="eager"))
    model.to(next(iter(weights.values())).dtype).load_state_dict(dict(weights), strict=False)
    return model.eval()
