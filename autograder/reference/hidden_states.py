"""Answers of lesson 09 on hidden states, logits and attentions, and its wrong programs."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from autograder.course.asking import mistake


# --- hidden states -------------------------------------------------------------------------------
def _stream(model, ids):
    """What enters each block, and what leaves the last one before the final norm."""
    kept = []
    handle = model.transformer.ln_f.register_forward_pre_hook(lambda m, args: kept.append(args[0]))
    try:
        with torch.no_grad():
            states = model(ids, output_hidden_states=True).hidden_states
    finally:
        handle.remove()
    return [*states[:-1], kept[0]]


def _states(model, ids):
    with torch.no_grad():
        return model(ids, output_hidden_states=True).hidden_states


def block_update(model, input_ids, block):
    stream = _stream(model, input_ids)
    return stream[block + 1] - stream[block]


def _without_mask(model, ids, block):
    x = _stream(model, ids)[block]
    with torch.no_grad():
        return model.transformer.h[block](x) - x


def _between(first, second):
    def update(model, ids, block):
        states = _states(model, ids)
        return states[block + second] - states[block + first]

    return update


def _attention_only(model, ids, block):
    kept = []
    handle = model.transformer.h[block].attn.register_forward_hook(
        lambda m, args, out: kept.append(out[0])
    )
    _states(model, ids)
    handle.remove()
    return kept[0]


_HIDDEN = [
    mistake(
        "block_update",
        "hidden.final norm",
        "Right for all blocks but the last. The last "
        "hidden state has been through ln_f; it is not what the last block wrote.",
        _between(0, 1),
    ),
    mistake(
        "block_update",
        "hidden.off by one",
        "This is what the block before it wrote. hidden_states[b] is the input of block b.",
        _between(-1, 0),
    ),
    mistake(
        "block_update",
        "hidden.off by one",
        "This is what the block before it wrote. hidden_states[b] is the input of block b.",
        lambda m, i, b: block_update(m, i, b - 1) if b else torch.zeros_like(_states(m, i)[0]),
    ),
    mistake(
        "block_update",
        "hidden.off by one",
        "This is what the block after it wrote. hidden_states[b] is the input of block b.",
        _between(1, 2),
    ),
    mistake(
        "block_update",
        "hidden.not subtracted",
        "This is all that leaves the block. What it wrote is the difference to what went in.",
        lambda m, i, b: _stream(m, i)[b + 1],
    ),
    mistake(
        "block_update",
        "hidden.not subtracted",
        "This is a hidden state as it stands. What a "
        "block wrote is the difference of what came out and what went in.",
        lambda m, i, b: _states(m, i)[b + 1],
    ),
    mistake(
        "block_update",
        "hidden.input",
        "This is what enters the block.",
        lambda m, i, b: _stream(m, i)[b],
    ),
    mistake(
        "block_update",
        "hidden.sign",
        "What came out was subtracted from what went in.",
        lambda m, i, b: -block_update(m, i, b),
    ),
    mistake(
        "block_update",
        "hidden.no mask",
        "The block was called by itself, and so without the "
        "causal mask, which the model makes and hands to its blocks: every token saw the "
        "future.",
        _without_mask,
    ),
    mistake(
        "block_update",
        "hidden.from the start",
        "This is all that was written since the embedding. One block is asked for.",
        lambda m, i, b: _stream(m, i)[b + 1] - _stream(m, i)[0],
    ),
    mistake(
        "block_update",
        "hidden.attention only",
        "This is what the attention wrote. A block writes twice: attention, then MLP.",
        _attention_only,
    ),
    mistake(
        "block_update",
        "hidden.last position only",
        "Only the last token is there; all positions are asked for.",
        lambda m, i, b: block_update(m, i, b)[:, -1],
    ),
    mistake(
        "block_update",
        "hidden.MLP only",
        "This is what the MLP wrote. A block writes twice: attention, then MLP.",
        lambda m, i, b: block_update(m, i, b) - _attention_only(m, i, b),
    ),
    mistake(
        "block_update",
        "hidden.to the end",
        "This is all that was written from this block to the end, and it has been through ln_f.",
        lambda m, i, b: _states(m, i)[-1] - _states(m, i)[b],
    ),
    mistake(
        "block_update",
        "hidden.first item alone",
        "Only the first sequence of the batch is there.",
        lambda m, i, b: block_update(m, i, b)[0],
    ),
]


# --- logits --------------------------------------------------------------------------------------
def lens_logits(model, hidden_states, normed=None, position=-1):
    """Logits at one position for every state. normed: which states go through ln_f here."""
    last = len(hidden_states) - 1
    normed = range(last) if normed is None else normed
    with torch.no_grad():
        rows = [h[:, position] for h in hidden_states]
        rows = [model.transformer.ln_f(r) if i in normed else r for i, r in enumerate(rows)]
        return torch.stack([model.lm_head(r) for r in rows])


def _lens_but(check, message, **how):
    return mistake("lens_logits", check, message, lambda m, s: lens_logits(m, s, **how))


def _bare_norm(model, states):
    with torch.no_grad():
        rows = [F.layer_norm(h[:, -1], h.shape[-1:]) for h in states[:-1]]
        return torch.stack([model.lm_head(r) for r in [*rows, states[-1][:, -1]]])


def _next_block_norm(model, states):
    with torch.no_grad():
        blocks = zip(model.transformer.h, states[:-1], strict=True)
        rows = [block.ln_1(h[:, -1]) for block, h in blocks]
        return torch.stack([model.lm_head(r) for r in [*rows, states[-1][:, -1]]])


_LOGITS = [
    _lens_but(
        "logits.final norm twice",
        "ln_f is applied to the last state too. transformers has "
        "done that already, so there it comes twice.",
        normed=range(99),
    ),
    _lens_but(
        "logits.final norm missing",
        "No state goes through ln_f. The unembedding was trained on normalised vectors.",
        normed=(),
    ),
    mistake(
        "lens_logits",
        "logits.norm on the wrong states",
        "ln_f is applied to the last state alone: the one that has had it.",
        lambda m, s: lens_logits(m, s, normed=(len(s) - 1,)),
    ),
    mistake(
        "lens_logits",
        "logits.embedding not normed",
        "The first state, the embedding, goes without ln_f. Only the last one has had it.",
        lambda m, s: lens_logits(m, s, normed=range(1, len(s) - 1)),
    ),
    _lens_but(
        "logits.first position",
        "This is the first position. The next token is predicted at the last one.",
        position=0,
    ),
    mistake(
        "lens_logits",
        "logits.position before the last",
        "This is the position before the last.",
        lambda m, s: lens_logits(m, s, position=-2),
    ),
    mistake(
        "lens_logits",
        "logits.gain and shift lost",
        "The states are normalised, but ln_f's own weight and bias are left out.",
        _bare_norm,
    ),
    mistake(
        "lens_logits",
        "logits.batch first",
        "The batch stands first; the states should.",
        lambda m, s: lens_logits(m, s).transpose(0, 1),
    ),
    mistake(
        "lens_logits",
        "logits.embedding left out",
        "The first state, the embedding, is left out.",
        lambda m, s: lens_logits(m, s)[1:],
    ),
    mistake(
        "lens_logits",
        "logits.log-softmax",
        "These are log-probabilities; logits are asked for.",
        lambda m, s: lens_logits(m, s).log_softmax(-1),
    ),
    mistake(
        "lens_logits",
        "logits.all positions",
        "All positions are there; the last one is asked for.",
        lambda m, s: torch.stack(
            [lens_logits(m, s, position=p) for p in range(s[0].shape[1])], dim=2
        ),
    ),
    mistake(
        "lens_logits",
        "logits.probabilities",
        "These are probabilities; logits are asked for.",
        lambda m, s: lens_logits(m, s).softmax(-1),
    ),
    mistake(
        "lens_logits",
        "logits.ln_1 for ln_f",
        "Each state went through the ln_1 of the next block. The unembedding was trained on what "
        "comes out of ln_f.",
        _next_block_norm,
    ),
    mistake(
        "lens_logits",
        "logits.last left out",
        "The last state is left out.",
        lambda m, s: lens_logits(m, s)[:-1],
    ),
]


# --- attentions ----------------------------------------------------------------------------------
def last_row(attentions, step, layer, head):
    if len(attentions[step]) == 0:
        raise ValueError("no attention maps")
    return attentions[step][layer][:, head, -1]


def _row(pick):
    """A wrong pick, with the empty case handled as it should be."""

    def row(attentions, step, layer, head):
        if len(attentions[step]) == 0:
            raise ValueError("no attention maps")
        return pick(attentions, step, layer, head)

    return row


def _row_but(check, message, pick):
    return [
        mistake("last_row", check, message, _row(pick)),
        mistake("last_row", check, message, pick),
    ]


_ATTENTIONS = [
    mistake(
        "last_row",
        "attentions.empty",
        "Where the model returned no maps, this fails with an "
        "error that does not say why, or not at all. Look first, and raise a ValueError.",
        lambda a, s, i, h: a[s][i][:, h, -1],
    ),
    mistake(
        "last_row",
        "attentions.empty",
        "Where the model returned no maps, None comes back and "
        "somebody else has to find out. Raise a ValueError.",
        lambda a, s, i, h: a[s][i][:, h, -1] if a[s] else None,
    ),
    *_row_but(
        "attentions.layer before step",
        "The first index counts the generated tokens, the "
        "second the layers; here it is the other way round.",
        lambda a, s, i, h: a[i][s][:, h, -1],
    ),
    *_row_but(
        "attentions.step 0",
        "The step is not used: this is always the first one.",
        lambda a, s, i, h: a[0][i][:, h, -1],
    ),
    *_row_but(
        "attentions.layer off by one",
        "This is the layer after the one asked for. Layers "
        "are counted from 0, and unlike hidden states there is none for the embedding.",
        lambda a, s, i, h: a[s][i + 1][:, h, -1],
    ),
    *_row_but(
        "attentions.layer off by one",
        "This is the layer before the one asked for. Layers are counted from 0.",
        lambda a, s, i, h: a[s][i - 1][:, h, -1],
    ),
    *_row_but(
        "attentions.head off by one",
        "This is the next head. Heads are counted from 0.",
        lambda a, s, i, h: a[s][i][:, h + 1, -1],
    ),
    *_row_but(
        "attentions.first query",
        "This is the first query of the step. The newest token is the last.",
        lambda a, s, i, h: a[s][i][:, h, 0],
    ),
    *_row_but(
        "attentions.key for query",
        "This is how much all queries look at the last key. Asked is what the last query looks at.",
        lambda a, s, i, h: a[s][i][:, h, :, -1],
    ),
    *_row_but(
        "attentions.batch lost",
        "Only the first item of the batch is there.",
        lambda a, s, i, h: a[s][i][0, h, -1],
    ),
    *_row_but(
        "attentions.mean over heads",
        "This is the average over the heads; one is asked for.",
        lambda a, s, i, h: a[s][i][:, :, -1].mean(1),
    ),
    *_row_but(
        "attentions.head for batch",
        "The first axis of a map is the batch, the second the head.",
        lambda a, s, i, h: a[s][i][h, :, -1],
    ),
    *_row_but(
        "attentions.head off by one",
        "This is the head before the one asked for. Heads are counted from 0.",
        lambda a, s, i, h: a[s][i][:, h - 1, -1],
    ),
]

SOLVE = {
    "inside.hidden": {"block_update": block_update},
    "inside.logits": {"lens_logits": lens_logits},
    "inside.attentions": {"last_row": last_row},
}
MISTAKES = {
    "inside.hidden": _HIDDEN,
    "inside.logits": _LOGITS,
    "inside.attentions": _ATTENTIONS,
}
