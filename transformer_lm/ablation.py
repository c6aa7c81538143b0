"""Causal experiments on heads: ablation, per-head effects, direct logit attribution, head scores.

A head's output is cut out where it can still be told from the others: at the input of ``c_proj``,
[batch_size, seq_len, num_heads * head_size]. Sources: Michel et al. 2019, "Are Sixteen Heads Really
Better than One?" (ablation); Elhage et al. 2021 (direct logit attribution); Olsson et al. 2022,
"In-context Learning and Induction Heads" (prefix matching, previous-token heads).
"""

from contextlib import contextmanager

import torch
import torch.nn.functional as F

from transformer_lm.activations import attention_patterns, gpt2_stack, record, with_progress

HOW = ("zero", "mean", "resample")


@contextmanager
def ablate(model, heads, how="zero", positions=None, reference=None, seed=0):
    """Replace the output of chosen heads while the ``with`` block runs, on copies of the tensors.

    Args:
        model: a GPT-2.
        heads: pairs (layer, head), counted from 0; ``(9, 4)`` is the fifth head of layer 9.
        how: what stands in for the head's output, [head_size] numbers at each position:
            "zero": zeros;
            "mean": its mean over the batch and positions of ``reference``, or of the running input;
            "resample": its output at the same position in another, randomly drawn item of
            ``reference``, or of the running batch (which then needs two items or more).
        positions: positions to replace, negative ones counting from the end; all where None.
        reference: token ids [items, at least seq_len for "resample"] the stand-in is taken from.
        seed: of the draw, for "resample".

    Raises:
        ValueError: unknown ``how``, or nothing to resample from.
        IndexError: no such layer, head or position.
    """
    if how not in HOW:
        raise ValueError(f"how is {how!r}; expected one of {', '.join(HOW)}")
    stack = gpt2_stack(model)
    by_layer = _by_layer(stack, heads)
    stored = _reference_outputs(stack, by_layer, reference)
    handles = []
    try:
        for layer, chosen in by_layer.items():
            hook = _hook(chosen, stack.config.n_head, how, positions, stored.get(layer), seed)
            handles.append(stack.h[layer].attn.c_proj.register_forward_pre_hook(hook))
        yield model
    finally:
        for handle in handles:
            handle.remove()


def target_log_probs(model, input_ids, attention_mask=None):
    """Return log p of each next token, in nats: [batch_size, seq_len - 1].

    Entry t is the log-probability that position t gives to the token at t + 1.
    """
    with torch.no_grad():
        logits = model(input_ids, attention_mask=attention_mask).logits[:, :-1]
    log_probs = F.log_softmax(logits, dim=-1)  # [batch_size, seq_len - 1, vocab_size]
    return log_probs.gather(-1, input_ids[:, 1:, None]).squeeze(-1)  # [batch_size, seq_len - 1]


def ablation_grid(
    model, input_ids, how="zero", positions=None, target=None, progress=False, **more
):
    """Ablate each head in turn; return what it does to the log-probability of the next tokens.

    Args:
        input_ids: [batch_size, seq_len].
        how, positions, and reference, seed in ``more``: see ``ablate``.
        target: index into the seq_len - 1 next-token predictions; -1 for the last token, as
            predicted from the one before. Mean over all of them where None.
        progress: show a progress bar.

    Returns:
        [num_layers, num_heads] in nats: ablated minus clean; negative where the head helps.
    """
    stack = gpt2_stack(model)
    num_layers, num_heads = len(stack.h), stack.config.n_head

    def measure():
        log_probs = target_log_probs(model, input_ids)  # [batch_size, seq_len - 1]
        return (log_probs if target is None else log_probs[:, target]).mean()

    clean = measure()
    effects = torch.zeros(num_layers, num_heads)  # [num_layers, num_heads]
    pairs = [(layer, head) for layer in range(num_layers) for head in range(num_heads)]
    for layer, head in with_progress(pairs, progress, "ablating heads"):
        with ablate(model, [(layer, head)], how, positions, **more):
            effects[layer, head] = measure() - clean
    return effects


def head_contributions(model, input_ids, position=-1):
    """Return what each head adds to the residual stream at one position.

    [num_layers, num_heads, batch_size, hidden]. Their sum over heads, plus c_proj's bias (which
    belongs to no head), is the layer's attention output.
    """
    stack = gpt2_stack(model)
    with torch.no_grad(), record(stack, "h.*.attn.c_proj:input") as acts:
        stack(input_ids)
    rows = []
    for layer, block in enumerate(stack.h):
        z = acts[f"h.{layer}.attn.c_proj:input"][:, position]  # [batch_size, hidden]
        z = z.view(len(z), stack.config.n_head, -1)  # [batch_size, num_heads, head_size]
        w_o = block.attn.c_proj.weight.detach()  # [hidden, hidden]
        w_o = w_o.view(stack.config.n_head, -1, w_o.shape[1])  # [num_heads, head_size, hidden]
        rows.append(torch.einsum("bhs,hso->hbo", z, w_o))  # [num_heads, batch_size, hidden]
    return torch.stack(rows)  # [num_layers, num_heads, batch_size, hidden]


def direct_logit_attribution(model, input_ids, token, position=-1, against=None):
    """Return how much each head's output moves a token's logit directly, past all later layers.

    The final norm is frozen: it divides by the standard deviation of the clean residual stream, so
    that the parts add up to the logit (with the embeddings', the MLPs' and the biases' parts).

    Args:
        input_ids: [batch_size, seq_len].
        token: token id, or ids [batch_size].
        position: the position whose prediction is explained.
        against: token id(s) whose logit is subtracted; none where None.

    Returns:
        [num_layers, num_heads, batch_size], in logits.
    """
    stack = gpt2_stack(model)
    parts = head_contributions(model, input_ids, position)  # [num_layers, num_heads, batch, hidden]
    direction = _logit_direction(model, token, against, len(input_ids))  # [batch, hidden]
    scale = _final_norm_scale(stack, input_ids, position)  # [batch_size]
    centred = parts - parts.mean(dim=-1, keepdim=True)  # [num_layers, num_heads, batch, hidden]
    return (centred * direction).sum(dim=-1) / scale  # [num_layers, num_heads, batch_size]


def repeated_tokens(vocab_size, batch_size=8, length=30, seed=0, prefix=None):
    """Return random tokens, then the same again: [batch_size, 2 * length (+ 1 with a prefix)].

    prefix: a token id to begin with, such as the end-of-text token (an attention sink), or None.
    """
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(vocab_size, (batch_size, length), generator=generator)
    parts = [first, first]
    if prefix is not None:
        parts.insert(0, torch.full((batch_size, 1), prefix))
    return torch.cat(parts, dim=1)


def previous_token_scores(model, input_ids):
    """Return each head's mean attention from a token to the one before: [num_layers, num_heads]."""
    patterns = attention_patterns(model, input_ids)  # [num_layers, batch, num_heads, seq, seq]
    return patterns.diagonal(-1, dim1=-2, dim2=-1).mean(dim=(1, 3))  # [num_layers, num_heads]


def induction_scores(model, input_ids, length):
    """Return each head's prefix matching score: [num_layers, num_heads], from 0 to 1.

    input_ids end in two equal copies of ``length`` tokens (see ``repeated_tokens``). The score is
    the mean attention from a token of the second copy to the token AFTER its first occurrence,
    length - 1 positions back (Olsson et al. 2022). Feed tokens without a repetition for a control.
    """
    patterns = attention_patterns(model, input_ids)  # [num_layers, batch, num_heads, seq, seq]
    stripe = patterns.diagonal(1 - length, dim1=-2, dim2=-1)  # [..., seq_len - length + 1]
    return stripe[..., -length:].mean(dim=(1, 3))  # [num_layers, num_heads]


def copy_loss(model, input_ids, length):
    """Return the mean loss on the first and on the second copy, in nats, as two floats.

    Compare the second with ln(vocab_size), what a model that cannot copy pays at best. The second
    copy's first token is left out: nothing tells that the repetition begins.
    """
    losses = -target_log_probs(model, input_ids)  # [batch_size, seq_len - 1]
    first = losses[:, :-length][:, -length + 1 :]  # [batch_size, length - 1]
    return first.mean().item(), losses[:, -length + 1 :].mean().item()


def _by_layer(stack, heads):
    """Return {layer: [heads]}, with everything in range."""
    by_layer = {}
    num_layers, num_heads = len(stack.h), stack.config.n_head
    for layer, head in heads:
        if not (-num_layers <= layer < num_layers and 0 <= head < num_heads):
            raise IndexError(
                f"there is no head ({layer}, {head}): the model has {num_layers} layers of "
                f"{num_heads} heads, both counted from 0"
            )
        by_layer.setdefault(layer % num_layers, []).append(head)
    return by_layer


def _reference_outputs(stack, by_layer, reference):
    """Return {layer: input of c_proj on the reference tokens}, or nothing without a reference."""
    if reference is None:
        return {}
    names = [f"h.{layer}.attn.c_proj:input" for layer in by_layer]
    with torch.no_grad(), record(stack, names) as acts:
        stack(reference)
    return {layer: acts[f"h.{layer}.attn.c_proj:input"] for layer in by_layer}


def _hook(chosen, num_heads, how, positions, stored, seed):
    """Return a pre-hook for c_proj: copy its input, replace the chosen heads, hand on the rest."""

    def hook(module, inputs):
        x = inputs[0]  # [batch_size, seq_len, hidden]
        source = x if stored is None else stored
        heads_of = (*x.shape[:2], num_heads, -1)
        x = x.clone().view(heads_of)  # [batch_size, seq_len, num_heads, head_size]
        source = source.view(*source.shape[:2], num_heads, -1)  # [items, seq, num_heads, head_size]
        stand_in = _stand_in(how, x, source, stored is None, seed)  # [batch, seq, num_heads, hs]
        where = range(x.shape[1]) if positions is None else positions
        for position in where:
            if not -x.shape[1] <= position < x.shape[1]:
                raise IndexError(f"position {position} in a sequence of {x.shape[1]} tokens")
            x[:, position, chosen] = stand_in[:, position, chosen]
        return (x.flatten(2), *inputs[1:])

    return hook


def _stand_in(how, x, source, same_batch, seed):
    """Return what replaces the heads' outputs: [batch_size, seq_len, num_heads, head_size]."""
    if how == "zero":
        return torch.zeros_like(x)
    if how == "mean":
        return source.mean(dim=(0, 1), keepdim=True).expand_as(x)
    batch_size, seq_len = x.shape[:2]
    if same_batch and batch_size < 2:
        raise ValueError("nothing to resample from: give a batch of two or more, or a reference")
    if source.shape[1] < seq_len:
        raise ValueError(f"reference has {source.shape[1]} tokens, {seq_len} are needed")
    generator = torch.Generator().manual_seed(seed)
    if same_batch:  # a shift by 1 to batch_size - 1 never draws the item itself
        shift = torch.randint(1, batch_size, (batch_size,), generator=generator)
        items = (torch.arange(batch_size) + shift) % batch_size
    else:
        items = torch.randint(len(source), (batch_size,), generator=generator)
    return source[items.to(source.device), :seq_len].clone()


def _logit_direction(model, token, against, batch_size):
    """Return what the logit reads from the normalised residual stream: [batch_size, hidden]."""
    unembedding = model.lm_head.weight.detach()  # [vocab_size, hidden]

    def rows(ids):
        ids = torch.as_tensor(ids, device=unembedding.device).expand(batch_size)  # [batch_size]
        return unembedding[ids]  # [batch_size, hidden]

    direction = rows(token) if against is None else rows(token) - rows(against)
    return direction * gpt2_stack(model).ln_f.weight.detach()


def _final_norm_scale(stack, input_ids, position):
    """Return the standard deviation that ln_f divides by, at one position: [batch_size]."""
    with torch.no_grad(), record(stack, "ln_f:input") as acts:
        stack(input_ids)
    x = acts["ln_f:input"][:, position]  # [batch_size, hidden]
    return (x.var(dim=-1, correction=0) + stack.ln_f.eps).sqrt()
