"""Train a small language model: draw a batch, predict, go downhill, look at held-out text.

Read from top to bottom. A text is one row of token ids, [num_tokens]; a batch is cut out of it at
random places. Everything that is random depends on the seed and the step alone, so that two runs
are equal, and a run taken up again goes on as if it had not been stopped.

Sources: Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization" (AdamW); 2017, "SGDR"
(cosine); Goyal et al. 2017 (warm-up); Pascanu et al. 2013 (gradient clipping).
"""

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from tqdm import tqdm

from transformer_lm.modeling_lm import logits_of
from transformer_lm.sampling import evaluating


@dataclass(frozen=True)
class Settings:
    """Every number that training depends on."""

    steps: int = 1000
    batch_size: int = 32
    seq_len: int = 64  # how many tokens a row has
    learning_rate: float = 2e-3  # after the warm-up
    final_share: float = 0.1  # of it, at the last step
    warm_up_steps: int = 50
    weight_decay: float = 0.1  # of matrices; norms and biases are left alone
    max_norm: float = 1.0  # a longer gradient is cut to this length
    evaluate_every: int = 100
    evaluation_rows: int = 256  # of held-out text
    seed: int = 0


@dataclass
class History:
    """What happened: one entry a step, and one an evaluation."""

    losses: list = field(default_factory=list)  # of each step's batch, nats a token
    learning_rates: list = field(default_factory=list)
    gradient_norms: list = field(default_factory=list)  # before clipping
    evaluated_at: list = field(default_factory=list)  # number of steps taken
    held_out_losses: list = field(default_factory=list)


def draw_batch(ids, batch_size, seq_len, generator):
    """Cut rows out of a text at random places.

    Args:
        ids: LongTensor[num_tokens], num_tokens > seq_len.
        generator: torch.Generator.

    Returns:
        inputs, targets: LongTensor[batch_size, seq_len] each; a target is the token after its
        input.
    """
    if len(ids) <= seq_len:
        raise ValueError(
            f"the text has {len(ids)} tokens, but a row needs {seq_len + 1}; give more text, or "
            "take a smaller seq_len"
        )
    starts = torch.randint(len(ids) - seq_len, (batch_size, 1), generator=generator)  # [batch, 1]
    rows = ids[starts + torch.arange(seq_len + 1)]  # [batch_size, seq_len + 1]
    return rows[:, :-1], rows[:, 1:]


def mean_loss(model, inputs, targets):
    """Return the mean cross-entropy of the next tokens, nats a token: a tensor [].

    inputs, targets: LongTensor[batch_size, seq_len].
    """
    logits = logits_of(model, inputs)  # [batch_size, seq_len, vocab_size]
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def learning_rate_at(step, settings):
    """Return the learning rate of a step: a straight line up, then half a cosine down."""
    if step < settings.warm_up_steps:
        return settings.learning_rate * (step + 1) / settings.warm_up_steps
    rest = max(settings.steps - settings.warm_up_steps - 1, 1)
    done = min((step - settings.warm_up_steps) / rest, 1)  # from 0 to 1
    share = (1 + math.cos(math.pi * done)) / 2  # from 1 to 0
    return settings.learning_rate * (settings.final_share + (1 - settings.final_share) * share)


def make_optimizer(model, settings):
    """Return an AdamW that decays matrices, and leaves norms and biases alone."""
    matrices = [p for p in model.parameters() if p.dim() >= 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.99))


@torch.no_grad()
def evaluate(model, ids, seq_len=64, batch_size=32, rows=None):
    """Return the mean loss on a text in evaluation mode, nats a token, as a float.

    ids: LongTensor[num_tokens]; it is cut into rows of seq_len, one after the other, each token
    predicted once. rows: how many of them, the first ones; all where None.
    """
    num_rows = (len(ids) - 1) // seq_len
    if num_rows < 1:
        raise ValueError(f"the text has {len(ids)} tokens, but one row needs {seq_len + 1}")
    num_rows = num_rows if rows is None else min(rows, num_rows)
    inputs = ids[: num_rows * seq_len].view(num_rows, seq_len)  # [num_rows, seq_len]
    targets = ids[1 : num_rows * seq_len + 1].view(num_rows, seq_len)  # [num_rows, seq_len]
    total = 0.0
    with evaluating(model):
        for first in range(0, num_rows, batch_size):
            batch = slice(first, first + batch_size)
            loss = mean_loss(model, inputs[batch], targets[batch])  # []
            total += loss.item() * len(inputs[batch])
    return total / num_rows


def train(
    model,
    ids,
    held_out,
    settings=None,
    folder=None,
    checkpoint_steps=(),
    resume=None,
    progress=True,
    watch=None,
):
    """Train a model in place; return the History.

    Args:
        model: from token ids [batch_size, seq_len] to logits [batch_size, seq_len, vocab_size].
        ids, held_out: LongTensor[num_tokens] each, on the model's device: text to learn from, and
            text to look at.
        settings: the Settings; those of the class where None.
        folder: where checkpoints go; none are written where None.
        checkpoint_steps: numbers of steps after which to write one, 0 for the model as it came;
            one is written after the last step too.
        resume: a checkpoint to go on from, made with the same settings.
        progress: show a progress bar with both losses.
        watch: called with the History after each evaluation, to draw it for example.

    Raises:
        ValueError: a text is too short, or the checkpoint belongs to other settings.
        RuntimeError: the loss is no longer a number.
    """
    settings = settings or Settings()
    optimizer = make_optimizer(model, settings)
    history, first = History(), 0
    if resume is not None:
        history, first = load_checkpoint(resume, model, optimizer, settings)
    model.train()
    bar = tqdm(
        total=settings.steps, initial=first, desc="training", disable=not progress, mininterval=1
    )
    with bar, torch.random.fork_rng(devices=[]):  # dropout draws from a generator that all share
        for step in range(first, settings.steps + 1):  # so many steps have been taken
            is_last = step == settings.steps
            if is_last or step % settings.evaluate_every == 0:
                _look(model, held_out, settings, history, step, watch)
            if folder is not None and (is_last or step in checkpoint_steps):
                save_checkpoint(folder, step, model, optimizer, settings, history)
            if is_last:
                break
            seed = settings.seed * 1_000_003 + step
            torch.manual_seed(seed)
            generator = torch.Generator().manual_seed(seed)
            batch = draw_batch(ids, settings.batch_size, settings.seq_len, generator)
            rate = learning_rate_at(step, settings)
            loss, norm = take_step(model, optimizer, *batch, rate, settings.max_norm)
            if not math.isfinite(loss):
                raise RuntimeError(
                    f"the loss of step {step} is {loss}; try a smaller learning rate, and look for "
                    "a row of the attention in which every key is hidden"
                )
            history.losses.append(loss)
            history.learning_rates.append(rate)
            history.gradient_norms.append(norm)
            seen = {"loss": f"{loss:.3f}", "held out": f"{history.held_out_losses[-1]:.3f}"}
            bar.set_postfix(seen, refresh=False)
            bar.update()
    return history


def take_step(model, optimizer, inputs, targets, learning_rate, max_norm):
    """Go one step downhill; return the batch's loss before it, and the gradient's length."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    loss = mean_loss(model, inputs, targets)  # []
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)  # []
    optimizer.step()
    return loss.item(), norm.item()


def _look(model, held_out, settings, history, step, watch):
    """Evaluate, unless the checkpoint that the run began with has done it."""
    if step in history.evaluated_at:
        return
    history.evaluated_at.append(step)
    history.held_out_losses.append(
        evaluate(model, held_out, settings.seq_len, settings.batch_size, settings.evaluation_rows)
    )
    if watch is not None:
        watch(history)


# --- Checkpoints ----------------------------------------------------------------------------------


def checkpoint_path(folder, step):
    """Return where the checkpoint after so many steps lies."""
    return Path(folder) / f"step_{step:06d}.pt"


def save_checkpoint(folder, step, model, optimizer, settings, history):
    """Write all that is needed to go on after so many steps."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    state = {
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "settings": asdict(settings),
        "history": asdict(history),
    }
    torch.save(state, checkpoint_path(folder, step))


def load_checkpoint(path, model, optimizer=None, settings=None):
    """Read a checkpoint into a model (and an optimizer); return its History and its step.

    Raises ValueError where the checkpoint was made with other settings than those given.
    """
    state = torch.load(path, weights_only=True)
    for name, value in asdict(settings).items() if settings is not None else ():
        if state["settings"][name] != value:
            raise ValueError(
                f"{path} was made with {name}={state['settings'][name]!r}, but the settings now "
                f"have {value!r}; go on with the same ones, or begin anew"
            )
    model.load_state_dict(state["model"])
    if optimizer is not None:
        optimizer.load_state_dict(state["optimizer"])
    return History(**state["history"]), state["step"]
