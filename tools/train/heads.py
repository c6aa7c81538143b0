"""What the heads do on fresh random tokens, repeated once."""

import torch
from transformers import GPT2LMHeadModel

NUM_ROWS = 24
SEGMENT = 50


@torch.no_grad()
def head_scores(model: GPT2LMHeadModel, seed: int) -> dict:
    """Scores of the heads on rows ``<|endoftext|> x x``, x being 50 random ids.

    previous_token: the best head's mean attention to the token before.
    prefix_matching: the best head's mean attention, in the second copy, to the token after the
        earlier occurrence of the present one (Olsson et al. 2022, section "prefix matching").
    control: the same distance where nothing is repeated.
    second_copy_loss: nats a token; ln(vocabulary) is what a uniform guess gets.
    """
    end_of_text = model.config.eos_token_id
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randint(0, end_of_text, (2, NUM_ROWS, SEGMENT), generator=generator)
    start = torch.full((NUM_ROWS, 1), end_of_text)
    repeated = torch.cat([start, x, x], dim=1)  # [batch_size, seq_len]
    fresh = torch.cat([start, x, y], dim=1)  # [batch_size, seq_len]
    model.set_attn_implementation("eager")
    out = model(repeated, output_attentions=True)
    control = model(fresh, output_attentions=True).attentions
    model.set_attn_implementation("sdpa")

    log_probs = out.logits[:, SEGMENT:-1].float().log_softmax(-1)  # [batch_size, 50, vocab]
    told = log_probs.gather(-1, x[:, :, None])  # [batch_size, 50, 1]
    every = torch.arange(1, 2 * SEGMENT + 1)
    second = torch.arange(SEGMENT + 1, 2 * SEGMENT + 1)
    return {
        "previous_token": best_head(out.attentions, every, every - 1),
        "prefix_matching": best_head(out.attentions, second, second - SEGMENT + 1),
        "control": best_head(control, second, second - SEGMENT + 1),
        "second_copy_loss": round(-told.mean().item(), 4),
    }


def best_head(attentions: tuple[torch.Tensor, ...], queries, keys) -> float:
    """Over all layers and heads, the largest mean of attention[query, key] along the pairs."""
    means = [a[:, :, queries, keys].mean((0, 2)).max() for a in attentions]
    return round(torch.stack(means).max().item(), 4)
