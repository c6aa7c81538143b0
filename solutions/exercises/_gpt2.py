"""Small random GPT-2s to try an answer on: fresh sizes, fresh weights, attention that is uneven."""

from __future__ import annotations

import torch

from autograder import Draw, Made

BY = "transformer_lm.stand_ins:gpt2"


def draw_gpt2(draw: Draw, layers: int | None = None, tied: bool = True) -> Made:
    """A random small GPT-2, as an argument of a call; no size can be mistaken for another.

    layers: the number of blocks; drawn from 2 and 3 where None. Its configuration and weights are
    in `values`: no bias is zero, no norm is plain, no attention pattern is even.
    """
    heads, head_size = draw.choice([(2, 5), (3, 4), (3, 5), (2, 7)])
    config = {
        "n_layer": layers or draw.choice((2, 3)),
        "n_head": heads,
        "n_embd": heads * head_size,
        "n_inner": draw.choice((23, 29, 31)),
        "n_positions": draw.choice((17, 19)),
        "vocab_size": draw.choice((37, 41, 43, 47)),
        "tie_word_embeddings": tied,
        "bos_token_id": 0,  # the library warns where these lie outside the vocabulary
        "eos_token_id": 0,
    }
    weights = {
        name: draw.normal(*shape, scale=0.6 if "c_attn" in name else 0.4)
        + (".ln_" in name and name.endswith("weight"))  # a norm's gain, around 1
        for name, shape in _shapes(config).items()
    }
    return Made(BY, {"config": config, "weights": weights})


def _shapes(config: dict) -> dict[str, torch.Size]:
    """The shape of every weight of such a model, by its name in the state dict."""
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("meta"):  # shapes only: nothing is drawn, nothing stored
        model = GPT2LMHeadModel(GPT2Config(**config))
    return {name: weight.shape for name, weight in model.named_parameters()}


def draw_ids(draw: Draw, model: Made, batch_size: int, seq_len: int) -> torch.Tensor:
    """Token ids of that model's vocabulary, [batch_size, seq_len]; none twice in a sequence."""
    vocab_size = model.values["config"]["vocab_size"]
    rows = [torch.randperm(vocab_size, generator=draw.generator) for _ in range(batch_size)]
    return torch.stack(rows)[:, :seq_len]


def says(model: Made, more: str = "") -> str:
    """The model in words."""
    layers, heads, hidden = (model.values["config"][k] for k in ("n_layer", "n_head", "n_embd"))
    words = f"a GPT-2 with {layers} layers, {heads} heads and hidden size {hidden}"
    return f"{words}, {more}" if more else words


def gpt2_and_ids(
    draw: Draw, layers: int | None = None, batch_size: int | None = None, seq_len: int | None = None
) -> tuple[Made, torch.Tensor, str]:
    """A small model, ids for it, and both in words; sizes that are None are drawn."""
    model = draw_gpt2(draw, layers)
    batch_size, seq_len = batch_size or draw.choice((2, 3)), seq_len or draw.choice((5, 7))
    text = says(model, f"{batch_size} sequences of {seq_len} tokens")
    return model, draw_ids(draw, model, batch_size, seq_len), text
