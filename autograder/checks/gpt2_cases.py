"""Small random GPT-2s to try an answer on: fresh sizes, fresh weights, attention that is uneven."""

from __future__ import annotations

import torch

from autograder.course.calls import Draw, Made

BY = "transformer_lm.stand_ins:gpt2"


def draw_config(draw: Draw, layers: int | None = None, tied: bool = True) -> dict:
    """A GPT-2 configuration whose sizes cannot be mistaken for one another.

    layers: the number of blocks; drawn from 2 and 3 where None.
    """
    heads, head_size = draw.choice([(2, 5), (3, 4), (3, 5), (2, 7)])
    return {
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


def shapes(config: dict) -> dict[str, tuple[int, ...]]:
    """The shape of every stored tensor of such a model, by its name in the state dict."""
    hidden, inner = config["n_embd"], config["n_inner"]
    named = {
        "transformer.wte.weight": (config["vocab_size"], hidden),
        "transformer.wpe.weight": (config["n_positions"], hidden),
    }
    for layer in range(config["n_layer"]):
        block = {
            "ln_1.weight": (hidden,),
            "ln_1.bias": (hidden,),
            "attn.c_attn.weight": (hidden, 3 * hidden),
            "attn.c_attn.bias": (3 * hidden,),
            "attn.c_proj.weight": (hidden, hidden),
            "attn.c_proj.bias": (hidden,),
            "ln_2.weight": (hidden,),
            "ln_2.bias": (hidden,),
            "mlp.c_fc.weight": (hidden, inner),
            "mlp.c_fc.bias": (inner,),
            "mlp.c_proj.weight": (inner, hidden),
            "mlp.c_proj.bias": (hidden,),
        }
        named |= {f"transformer.h.{layer}.{name}": shape for name, shape in block.items()}
    named |= {"transformer.ln_f.weight": (hidden,), "transformer.ln_f.bias": (hidden,)}
    if not config["tie_word_embeddings"]:
        named["lm_head.weight"] = (config["vocab_size"], hidden)
    return named


def draw_weights(draw: Draw, config: dict) -> dict[str, torch.Tensor]:
    """Weights for that configuration: no bias is zero, no norm is plain, no pattern is even."""
    weights = {}
    for name, shape in shapes(config).items():
        scale = 0.6 if "c_attn" in name else 0.4
        weights[name] = draw.normal(*shape, scale=scale)
        if name.split(".")[-2].startswith("ln_") and name.endswith("weight"):
            weights[name] += 1.0
    return weights


def draw_gpt2(draw: Draw, layers: int | None = None, tied: bool = True) -> Made:
    """A random small GPT-2, as an argument of a call."""
    config = draw_config(draw, layers, tied)
    return Made(BY, {"config": config, "weights": draw_weights(draw, config)})


def draw_ids(draw: Draw, model: Made, batch_size: int, seq_len: int) -> torch.Tensor:
    """Token ids of that model's vocabulary, [batch_size, seq_len], no id twice in a row of ids."""
    vocab_size = model.values["config"]["vocab_size"]
    rows = [torch.randperm(vocab_size, generator=draw.generator) for _ in range(batch_size)]
    return torch.stack(rows)[:, :seq_len]


def says(model: Made, more: str = "") -> str:
    """The model in words."""
    config = model.values["config"]
    words = (
        f"a GPT-2 with {config['n_layer']} layers, {config['n_head']} heads and hidden size "
        f"{config['n_embd']}"
    )
    return f"{words}, {more}" if more else words
