"""From logits to text: which distribution to draw the next token from, and drawing.

A rule turns logits [..., vocab_size] into probabilities of the same shape. Each rule takes the
model's distribution and takes something away: ``greedy`` all but the best token, ``top_k`` all but
the k best, ``top_p`` the unlikely tail, and a ``temperature`` below 1 some of the doubt.

Sources: Fan et al. 2018, "Hierarchical Neural Story Generation" (top-k); Holtzman et al. 2020, "The
Curious Case of Neural Text Degeneration" (top-p, "nucleus sampling").
"""

from contextlib import contextmanager

import torch

from transformer_lm.modeling_lm import logits_of


def temperature(logits, t=1.0):
    """Return softmax(logits / t): sharper for t below 1, flatter above, the model's own at 1.

    Raises ValueError where t is not above 0; its limit at 0 is ``greedy``.
    """
    if not t > 0:
        raise ValueError(f"a temperature must be above 0, got {t}; greedy() is the limit at 0")
    return torch.softmax(logits / t, dim=-1)  # [..., vocab_size]


def greedy(logits):
    """Return all probability on the largest logit; of several, on the one with the lowest id."""
    best = (logits == logits.amax(dim=-1, keepdim=True)).int().argmax(dim=-1)  # [...]
    return torch.nn.functional.one_hot(best, logits.shape[-1]).to(logits.dtype)  # [..., vocab_size]


def top_k(logits, k, t=1.0):
    """Return the distribution over the k largest logits, 0 elsewhere; all where there are fewer.

    Raises ValueError where k is below 1.
    """
    if k < 1:
        raise ValueError(f"k must be 1 or more, got {k}")
    best = logits.topk(min(k, logits.shape[-1]), dim=-1).indices  # [..., k]
    dropped = torch.ones_like(logits, dtype=torch.bool).scatter(-1, best, False)  # [..., vocab]
    return temperature(logits.masked_fill(dropped, -torch.inf), t)  # [..., vocab_size]


def top_p(logits, p, t=1.0):
    """Return the distribution over the fewest tokens that together have probability p or more.

    A token stays where those more probable than it have less than p together; so the most probable
    always stays. Raises ValueError unless 0 < p <= 1.
    """
    if not 0 < p <= 1:
        raise ValueError(f"p must be above 0 and at most 1, got {p}")
    probs = temperature(logits, t)  # [..., vocab_size]
    if p == 1:
        return probs  # rounding in the sum below might drop the last few
    falling, order = probs.sort(dim=-1, descending=True, stable=True)  # [..., vocab_size] each
    before = falling.cumsum(dim=-1) - falling  # [..., vocab_size]
    kept = falling.masked_fill(before >= p, 0.0)  # [..., vocab_size]
    kept = kept / kept.sum(dim=-1, keepdim=True)  # [..., vocab_size]
    return torch.zeros_like(probs).scatter(-1, order, kept)  # [..., vocab_size]


@torch.no_grad()
def generate(model, input_ids, num_tokens, rule=temperature, seed=0, context_length=None):
    """Write on: draw a token, append it, and ask again.

    Args:
        model: from token ids [batch_size, seq_len] to logits [batch_size, seq_len, vocab_size]
            (or to something that has such ``logits``); it runs in evaluation mode.
        input_ids: LongTensor[batch_size, seq_len], one token at least.
        num_tokens: how many tokens to append.
        rule: from logits [batch_size, vocab_size] to probabilities of the same shape, such as
            ``greedy`` or ``functools.partial(top_k, k=10)``.
        seed: of the draws.
        context_length: how many of the last tokens the model is shown; all where None.

    Returns:
        LongTensor[batch_size, seq_len + num_tokens].
    """
    generator = torch.Generator(device=input_ids.device).manual_seed(seed)
    with evaluating(model):
        for _ in range(num_tokens):
            seen = input_ids if context_length is None else input_ids[:, -context_length:]
            logits = logits_of(model, seen)[:, -1]  # [batch_size, vocab_size]
            drawn = torch.multinomial(rule(logits), 1, generator=generator)  # [batch_size, 1]
            input_ids = torch.cat([input_ids, drawn], dim=1)  # [batch_size, seq_len + 1]
    return input_ids


@contextmanager
def evaluating(model):
    """Switch dropout off while the ``with`` block runs, and back on where it was on."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
