"""The training loop: AdamW on float32 weights, one phase after another."""

import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from . import recipe
from .guide import guide_loss
from .heads import head_scores
from .recipe import Phase, Size
from .rows import Batch, draw_batch
from .softmax_loss import SoftmaxLoss
from .text import Corpus

WARM_UP_STEPS = 100
EVAL_TOKENS = 250_000


def new_model(size: Size) -> GPT2LMHeadModel:
    """A GPT-2 with random weights.

    Its positions start as sines and cosines (Vaswani et al. 2017) where the size asks for them.
    """
    torch.manual_seed(size.seed)
    config = GPT2Config(
        vocab_size=size.vocab_size,
        n_positions=recipe.NUM_POSITIONS,
        n_embd=size.hidden,
        n_layer=size.num_layers,
        n_head=size.num_heads,
        activation_function="gelu_pytorch_tanh",  # gelu_new, fused
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        initializer_range=0.06,
        bos_token_id=size.vocab_size - 1,
        eos_token_id=size.vocab_size - 1,
    )
    model = GPT2LMHeadModel._from_config(config, attn_implementation="sdpa")
    if size.sines:
        model.transformer.wpe.weight.data.copy_(sinusoids(size.hidden))
    return model


def sinusoids(hidden: int, amplitude: float = 0.08) -> torch.Tensor:
    """Fixed position encodings [num_positions, hidden], a start that stays learnable."""
    position = torch.arange(recipe.NUM_POSITIONS)[:, None]  # [num_positions, 1]
    half = hidden // 2
    rate = torch.exp(-math.log(1_000) * torch.arange(half) / half)  # [hidden / 2]
    angle = position * rate  # [num_positions, hidden / 2]
    return amplitude * torch.cat([angle.sin(), angle.cos()], dim=1)  # [num_positions, hidden]


def optimizer_for(model: GPT2LMHeadModel) -> torch.optim.AdamW:
    """AdamW; weight decay on matrices, but not on embeddings or on the query-key-value map."""
    free = ("wte", "wpe", "c_attn")
    decayed, others = [], []
    for name, parameter in model.named_parameters():
        exempt = parameter.dim() < 2 or any(word in name for word in free)
        (others if exempt else decayed).append(parameter)
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.99), fused=True)


def loss_at(
    model: GPT2LMHeadModel, ids: torch.Tensor, in_loss: torch.Tensor, half: bool = False
) -> torch.Tensor:
    """Mean loss, nats, of predicting ``ids`` [batch_size, seq_len] where ``in_loss`` is True.

    half: products inside the blocks in bfloat16; the softmax over the vocabulary stays in float32.
    """
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        hidden = model.transformer(ids, use_cache=False).last_hidden_state
    return loss_of_hidden(model, hidden.float(), ids, in_loss)


def loss_of_hidden(model, hidden, ids, in_loss) -> torch.Tensor:
    """``loss_at``, given the final hidden states [batch_size, seq_len, hidden]."""
    kept = hidden[:, :-1][in_loss[:, 1:]]  # [num_kept, hidden]
    return SoftmaxLoss.apply(kept, model.transformer.wte.weight, ids[:, 1:][in_loss[:, 1:]])


def guided_loss(model: GPT2LMHeadModel, batch: Batch) -> torch.Tensor:
    """The loss of the predictions plus the loss of the two guided heads, nats."""
    model.set_attn_implementation("eager")
    out = model.transformer(batch.ids, use_cache=False, output_attentions=True)
    model.set_attn_implementation("sdpa")
    predicted = loss_of_hidden(model, out.last_hidden_state, batch.ids, batch.in_loss)
    return predicted + guide_loss(out.attentions, batch.source)


@torch.no_grad()
def text_loss(model: GPT2LMHeadModel, windows: np.ndarray) -> float:
    """Mean next-token loss, nats, over windows [num_windows, seq_len]."""
    ids = torch.from_numpy(windows.astype(np.int64))  # [num_windows, seq_len]
    everywhere = torch.ones_like(ids, dtype=torch.bool)  # [num_windows, seq_len]
    losses = [loss_at(model, ids[i : i + 1], everywhere[i : i + 1]) for i in range(len(ids))]
    return round(torch.stack(losses).mean().item(), 4)


def measure(model: GPT2LMHeadModel, corpus: Corpus) -> dict:
    """The figures of the log: loss on watched pages, and the head scores."""
    model.eval()
    figures = {"watched_loss": text_loss(model, corpus.watched[::3])}
    figures |= head_scores(model, seed=recipe.DATA_SEED)
    model.train()
    return figures


def rate_at(phase: Phase, seen: int, step: int) -> float:
    """The learning rate after ``seen`` tokens of the phase, in its step ``step``."""
    share = seen / phase.max_tokens
    falls = {"": 1.0, "line": 1 - 0.95 * share, "cosine": 0.55 + 0.45 * math.cos(math.pi * share)}
    return phase.learning_rate * min(1, (step + 1) / WARM_UP_STEPS) * falls[phase.decay]


def train_phase(
    model: GPT2LMHeadModel,
    optimizer: torch.optim.Optimizer,
    corpus: Corpus,
    size: Size,
    phase: Phase,
    log: list[dict],
    checkpoint: Path,
) -> None:
    """Train for one phase; every ``EVAL_TOKENS`` append figures to ``log`` and save.

    The weights at the numbers of tokens that the phase names are kept beside the checkpoint.
    """
    seed = [size.seed, sum(map(ord, phase.name))]
    rng = np.random.default_rng(seed)
    rows = recipe.BATCH_TOKENS // phase.seq_len
    before = log[-1]["tokens"] if log else 0
    seen, step, next_eval, started = 0, 0, EVAL_TOKENS, time.monotonic()
    while seen < phase.max_tokens:
        for group in optimizer.param_groups:
            group["lr"] = rate_at(phase, seen, step)
        batch = draw_batch(corpus, rows, phase, rng)
        if phase.guide:
            loss = guided_loss(model, batch)
        else:
            loss = loss_at(model, batch.ids, batch.in_loss, phase.half)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen, step = seen + batch.ids.numel(), step + 1
        if seen >= min(next_eval, phase.max_tokens):
            next_eval += EVAL_TOKENS
            line = {"phase": phase.name, "tokens": before + seen, **measure(model, corpus)}
            log.append(line)
            speed = seen / (time.monotonic() - started)
            print(json.dumps(line), f"{speed:.0f} tokens/s", flush=True)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "log": log}
            torch.save(state, checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").replace(checkpoint)
            if line["tokens"] // EVAL_TOKENS * EVAL_TOKENS in phase.kept_at:
                torch.save(state, checkpoint.with_suffix(f".{line['tokens']:08}"))
