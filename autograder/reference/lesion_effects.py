"""Answers of lesson 12 on what a lesion does, by place, layer and head, and its wrong programs."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from autograder.course.asking import Mistake
from autograder.reference.causal_experiments import (
    AXIS,
    changed_input,
    cut,
    final_log_prob,
    lesion,
    logits_of,
    next_log_probs,
)


# --- effects -------------------------------------------------------------------------------------
def one_and_all(model, input_ids, layer, head):
    clean = final_log_prob(model, input_ids)
    one = lesion(model, input_ids, layer, head, [-2])
    every = lesion(model, input_ids, layer, head, None)
    return one - clean, every - clean


def _pair(change):
    return lambda *args: change(*one_and_all(*args), args)


def _last_position(model, input_ids, layer, head):
    clean = final_log_prob(model, input_ids)
    every = lesion(model, input_ids, layer, head, None)
    return lesion(model, input_ids, layer, head, [-1]) - clean, every - clean


def _read_last(model, input_ids, layer, head):
    clean = final_log_prob(model, input_ids, -1)
    one = lesion(model, input_ids, layer, head, [-2], -1)
    return one - clean, lesion(model, input_ids, layer, head, None, -1) - clean


def _others(model, input_ids, layer, head):
    clean = final_log_prob(model, input_ids)
    earlier = lesion(model, input_ids, layer, head, range(input_ids.shape[1] - 2))
    return one_and_all(model, input_ids, layer, head)[0], earlier - clean


def _head_step(step):
    return lambda m, i, layer, head: one_and_all(m, i, layer, (head + step) % m.config.n_head)


def _clean_added(one, every, args):
    clean = final_log_prob(*args[:2])
    return one + clean, every + clean


def _of_probabilities(*args):
    clean = final_log_prob(*args[:2])
    return tuple((clean + effect).exp() - clean.exp() for effect in one_and_all(*args))


def _added_up(model, input_ids, layer, head):
    clean = final_log_prob(model, input_ids)
    places = range(input_ids.shape[1])
    each = [lesion(model, input_ids, layer, head, [p]) - clean for p in places]
    return one_and_all(model, input_ids, layer, head)[0], sum(each)


_BOTH = [
    (
        "effects.not subtracted",
        "These are log-probabilities with the lesion; an effect is their "
        "difference from the clean run.",
        _pair(_clean_added),
    ),
    (
        "effects.sign",
        "The sign is the other way round: effect = lesioned minus clean, negative "
        "where the head helped.",
        _pair(lambda o, e, a: (-o, -e)),
    ),
    (
        "effects.swapped",
        "The two effects have changed places: one position first.",
        _pair(lambda o, e, a: (e, o)),
    ),
    (
        "effects.position -1 for -2",
        "The first effect is zero: cutting at position -1 cannot change what position -2 predicts.",
        _last_position,
    ),
    (
        "effects.read at -1",
        "The prediction is read at -1; the last token is predicted at -2.",
        _read_last,
    ),
    (
        "effects.one position twice",
        "Both are the effect at one position.",
        _pair(lambda o, e, a: (o, o)),
    ),
    (
        "effects.all positions twice",
        "Both are the effect at all positions. Was the list of positions used?",
        _pair(lambda o, e, a: (e, e)),
    ),
    ("effects.position left out of all", "'All positions' contains -2 too.", _others),
    (
        "effects.measured against the first lesion",
        "The second effect is the difference from the first lesion, not from the clean run.",
        _pair(lambda o, e, a: (o, e - o)),
    ),
    (
        "effects.another head",
        "This is the head after the one asked for. Heads count from 0.",
        _head_step(1),
    ),
    (
        "effects.another head",
        "This is the head before the one asked for. Heads count from 0.",
        _head_step(-1),
    ),
    (
        "effects.batch averaged",
        "The sequences are averaged; one number each is asked for.",
        _pair(lambda o, e, a: (o.mean(), e.mean())),
    ),
    (
        "effects.nothing changed",
        "Nothing changed: the lesion never reached the model. Does the hook return what it made?",
        _pair(lambda o, e, a: (0 * o, 0 * e)),
    ),
    (
        "effects.ratio",
        "These are quotients; an effect is a difference.",
        lambda *a: tuple(1 + e / final_log_prob(*a[:2]) for e in one_and_all(*a)),
    ),
    (
        "effects.probabilities",
        "These are differences of probabilities; log-probabilities are asked for.",
        _of_probabilities,
    ),
    (
        "effects.absolute values",
        "The effects lost their sign: it says whether the head helped or harmed.",
        _pair(lambda o, e, a: (o.abs(), e.abs())),
    ),
    (
        "effects.added up",
        "The effects of single positions are added up. Cut all positions in one run.",
        _added_up,
    ),
]


def _grid(model, input_ids, measure=lambda m, i: next_log_probs(m, i).mean(), positions=None):
    """[num_layers, num_heads]: what the measure is with each head cut."""
    heads = model.config.n_head
    rows = []
    for layer in range(model.config.n_layer):
        row = []
        for head in range(heads):
            with changed_input(model, layer, lambda z, h=head: cut(z, heads, h, positions)):
                row.append(measure(model, input_ids))
        rows.append(torch.stack(row))
    return torch.stack(rows)


def lesion_grid(model, input_ids):
    return _grid(model, input_ids) - next_log_probs(model, input_ids).mean()


def _hooks_stay(late_binding=False, each_layer=False):
    """Hooks are not removed: each lesion comes on top of those before."""

    def wrong(model, input_ids):
        heads = model.config.n_head
        clean = next_log_probs(model, input_ids).mean()
        effects = torch.zeros(model.config.n_layer, heads)
        handles = []
        now = {}
        for layer, block in enumerate(model.transformer.h):
            for head in range(heads):
                now["head"] = head

                def hook(module, inputs, head=head):
                    chosen = now["head"] if late_binding else head
                    return (cut(inputs[0], heads, chosen), *inputs[1:])

                handles.append(block.attn.c_proj.register_forward_pre_hook(hook))
                effects[layer, head] = next_log_probs(model, input_ids).mean() - clean
            if each_layer:
                while handles:
                    handles.pop().remove()
        for handle in handles:
            handle.remove()
        return effects

    return wrong


def _mean_of(measure):
    def wrong(model, input_ids):
        return _grid(model, input_ids, measure) - measure(model, input_ids)

    return wrong


def _over_positions(model, input_ids):
    log_probs = F.log_softmax(logits_of(model, input_ids)[:, :-1], 1)
    return log_probs.gather(-1, input_ids[:, 1:, None]).mean()


_STAYS = "Each lesion comes on top of the ones before: the hooks were not removed between the runs."
_GRID = [
    ("grid.hook left in", _STAYS, _hooks_stay()),
    ("grid.hook left in", _STAYS, _hooks_stay(each_layer=True)),
    (
        "grid.hook left in",
        _STAYS + " And they all read the loop variable as it is now (late binding).",
        _hooks_stay(late_binding=True),
    ),
    (
        "grid.sign",
        "The sign is the other way round: lesioned minus clean, negative where the head helps.",
        lambda m, i: -lesion_grid(m, i),
    ),
    ("grid.not subtracted", "These are the measures with a lesion; subtract the clean one.", _grid),
    (
        "grid.heads and layers swapped",
        "Layers should be rows and heads columns.",
        lambda m, i: lesion_grid(m, i).T,
    ),
    (
        "grid.last token alone",
        "Only the last token's prediction is measured; all next tokens are asked for.",
        _mean_of(lambda m, i: final_log_prob(m, i).mean()),
    ),
    (
        "grid.summed",
        "The log-probabilities are summed; their mean is asked for.",
        _mean_of(lambda m, i: next_log_probs(m, i).sum()),
    ),
    (
        "grid.first item alone",
        "Only the first sequence is measured.",
        _mean_of(lambda m, i: next_log_probs(m, i)[0].mean()),
    ),
    (
        "grid.batch kept",
        "Each sequence has its own effect here; average over the batch.",
        _mean_of(lambda m, i: next_log_probs(m, i).mean(1)),
    ),
    (
        "grid.one position",
        "The head is cut at position -2 alone; cut it at all.",
        lambda m, i: _grid(m, i, positions=[-2]) - next_log_probs(m, i).mean(),
    ),
    (
        "grid.not shifted",
        "The log-probabilities are those of the tokens that already stand there. "
        "Position t predicts token t + 1.",
        _mean_of(lambda m, i: F.log_softmax(logits_of(m, i), -1).gather(-1, i[..., None]).mean()),
    ),
    (
        "grid.nothing changed",
        "Nothing changed: the lesions never reached the model. Does the hook return what it made?",
        lambda m, i: 0 * lesion_grid(m, i),
    ),
    (
        "grid.probabilities",
        "Probabilities are averaged; the logarithm comes before the mean.",
        _mean_of(lambda m, i: next_log_probs(m, i).exp().mean()),
    ),
    (
        "grid.logits",
        "Logits are averaged, not yet normalised over the vocabulary.",
        _mean_of(lambda m, i: logits_of(m, i)[:, :-1].gather(-1, i[:, 1:, None]).mean()),
    ),
    (
        "grid.log-softmax axis",
        AXIS,
        _mean_of(_over_positions),
    ),
    (
        "grid.not shifted",
        "Position t + 1 is read for token t. It is the other way round: position t predicts "
        "token t + 1.",
        _mean_of(
            lambda m, i: (
                F.log_softmax(logits_of(m, i), -1)[:, 1:].gather(-1, i[:, :-1, None]).mean()
            )
        ),
    ),
    (
        "grid.absolute values",
        "The effects lost their sign: it says whether a head helps or harms.",
        lambda m, i: lesion_grid(m, i).abs(),
    ),
    (
        "grid.relative",
        "This is the change as a share of the clean value; the change itself is asked for.",
        lambda m, i: lesion_grid(m, i) / next_log_probs(m, i).mean(),
    ),
    (
        "grid.base",
        "These are logarithms to base 2; natural ones are asked for.",
        lambda m, i: lesion_grid(m, i) / torch.tensor(2.0).log(),
    ),
    (
        "grid.late binding",
        "Every hook cuts the last head: it reads the loop variable when it runs, and by then the "
        "loop is over.",
        lambda m, i: lesion_grid(m, i)[:, -1:].expand(-1, m.config.n_head),
    ),
]


_ANSWERS = {
    "causal.one_and_all": ("one_and_all", one_and_all, _BOTH),
    "causal.grid": ("lesion_grid", lesion_grid, _GRID),
}
SOLVE = {task: {name: right} for task, (name, right, _) in _ANSWERS.items()}
MISTAKES = {
    task: [Mistake(check, message, {name: wrong}) for check, message, wrong in known]
    for task, (name, _, known) in _ANSWERS.items()
}
