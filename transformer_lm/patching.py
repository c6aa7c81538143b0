"""Who tells whom: activation patching and path patching, as grids.

Two texts of the same length are run: one that the model is measured on, and a *source* that differs
in what is to be traced. **Activation patching** puts one activation of the source into the run on
the other text; what follows from it follows. **Path patching** lets one head's source output reach
chosen receivers only, and all else sees what it saw before.

A ``measure`` is a function from logits [batch_size, seq_len, vocab_size] to one number, such as
``losses.logit_difference`` and ``losses.log_prob`` make. An effect is the measure with the patch
minus the measure without; with ``relative=True`` it is divided by the whole way from the text to
the source, so that 0 is no effect and 1 is all of it.

Sources: Vig et al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation
Analysis" and Meng et al. 2022, "Locating and Editing Factual Associations in GPT" (activation
patching); Wang et al. 2022, "Interpretability in the Wild" and Goldowsky-Dill et al. 2023,
"Localizing Model Behavior with Path Patching" (path patching).
"""

from functools import partial
from itertools import product

import torch

from transformer_lm.ablation import check_heads
from transformer_lm.activations import gpt2_stack, with_progress
from transformer_lm.batches import are_tokens, at_positions, model_inputs
from transformer_lm.hooks import patch, record
from transformer_lm.names import OF_HEADS, QUANTITIES

AXES = ("layer", "head", "position")


def activation_patching(
    model,
    input_ids,
    source_ids,
    measure,
    name="stream_in",
    by=("layer", "position"),
    attention_mask=None,
    relative=False,
    progress=False,
):
    """Put each activation of the source, in turn, into the run on the other text.

    Args:
        model: a GPT-2.
        input_ids, source_ids: [batch_size, seq_len] each, aligned position by position.
        measure: from logits to a number, see the top of this file.
        name: which quantity of the blocks, "stream_in", "attn_out", "mlp_out", "z", "q", ...: see
            ``hooks``.
        by: the grid's axes, from "layer", "head" and "position"; along the others all is patched
            together. "head" needs a quantity that heads have. The position of scores and of the
            pattern is that of the query.
        attention_mask: of both texts, [batch_size, seq_len], 1 for a token, or None. Positions are
            those of the padded batch.
        relative: give shares of the whole effect.
        progress: show a progress bar.

    Returns:
        The effects, one axis for each entry of ``by``: [num_layers, seq_len] for the first choice.
    """
    by = (by,) if isinstance(by, str) else tuple(by)
    _check_question(input_ids, source_ids, name, by)
    stack = gpt2_stack(model)
    source, source_logits = _observe(model, source_ids, attention_mask, [f"h.*.{name}"])
    before = _logits(model, input_ids, attention_mask)  # [batch_size, seq_len, vocab_size]
    sizes = {"layer": len(stack.h), "head": stack.config.n_head, "position": input_ids.shape[1]}

    def replace(key, cell, value):
        """value: [batch, seq_len, size], or [batch, num_heads, seq_len, size] with heads."""
        places = torch.arange(input_ids.shape[1], device=value.device)  # [seq_len]
        where = places == cell.get("position", places)  # [seq_len]
        if value.dim() == 4:
            heads = torch.arange(value.shape[1], device=value.device)  # [num_heads]
            chosen = heads == cell.get("head", heads)  # [num_heads]
            where = where & chosen[:, None]  # [num_heads, seq_len]
        return torch.where(where[..., None], source[key], value)

    cells = list(product(*(range(sizes[axis]) for axis in by)))
    effects = []
    for indices in with_progress(cells, progress, f"patching {name}"):
        cell = dict(zip(by, indices, strict=True))
        layers = [cell["layer"]] if "layer" in cell else range(sizes["layer"])
        keys = [f"h.{layer}.{name}" for layer in layers]
        with patch(stack, {key: partial(replace, key, cell) for key in keys}):
            after = _logits(model, input_ids, attention_mask)  # [batch, seq_len, vocab_size]
        effects.append(_difference(measure, before, after))
    grid = torch.stack(effects).view([sizes[axis] for axis in by])
    return grid / _whole_way(measure, before, source_logits) if relative else grid


def path_patching(
    model,
    input_ids,
    source_ids,
    measure,
    receivers,
    through_mlps=False,
    positions=None,
    attention_mask=None,
    relative=False,
    progress=False,
    by=("layer", "head"),
):
    """Return what the heads tell the receivers, one axis of the grid for each entry of ``by``.

    The senders are, in turn, each head: [num_layers, num_heads]. With ``by=("layer", "head",
    "position")`` each head at each position, counted in each row's own tokens; with ``by="layer"``
    all heads of a layer together. The other arguments are those of ``path_effect``.
    """
    by = (by,) if isinstance(by, str) else tuple(by)
    _check_question(input_ids, source_ids, "z", by)
    stack = gpt2_stack(model)
    paths = _Paths(model, input_ids, source_ids, attention_mask)
    sizes = {"layer": len(stack.h), "head": stack.config.n_head}
    sizes["position"] = int(paths.is_token.sum(dim=1).min())  # that every row has
    effects = []
    cells = list(product(*(range(sizes[axis]) for axis in by)))
    for indices in with_progress(cells, progress, "senders"):
        cell = dict(zip(by, indices, strict=True))
        layers, heads = (
            [cell[axis]] if axis in cell else range(sizes[axis]) for axis in ("layer", "head")
        )
        where = [cell["position"]] if "position" in cell else positions
        senders = list(product(layers, heads))
        effects.append(paths.effect(measure, senders, receivers, through_mlps, where, relative))
    return torch.stack(effects).view([sizes[axis] for axis in by])


def receiver_patching(
    model,
    input_ids,
    source_ids,
    measure,
    senders,
    through_mlps=False,
    positions=None,
    attention_mask=None,
    relative=False,
    progress=False,
):
    """Return whom the senders talk to: their effect through each receiver, one after the other.

    The arguments are those of ``path_effect``.

    Returns:
        A dict: "q", "k" and "v", the inputs of each head, [num_layers, num_heads] each; "mlp",
        [num_layers]; and "logits", []. What a receiver passes on to others is in its own effect, so
        these do not add up to the senders' whole effect.
    """
    stack = gpt2_stack(model)
    num_layers, num_heads = len(stack.h), stack.config.n_head
    paths = _Paths(model, input_ids, source_ids, attention_mask)
    heads = list(product("qkv", range(num_layers), range(num_heads)))
    receivers = [*heads, *(("mlp", layer) for layer in range(num_layers)), ("logits",)]
    effects = torch.stack(
        [
            paths.effect(measure, senders, [receiver], through_mlps, positions, relative)
            for receiver in with_progress(receivers, progress, "receivers")
        ]
    )
    of_heads = effects[: len(heads)].view(3, num_layers, num_heads)
    found = dict(zip("qkv", of_heads, strict=True))
    return {**found, "mlp": effects[len(heads) : -1], "logits": effects[-1]}


def path_effect(
    model,
    input_ids,
    source_ids,
    measure,
    senders,
    receivers,
    through_mlps=False,
    positions=None,
    attention_mask=None,
    relative=False,
):
    """Return what some heads tell some receivers, in terms of the measure: a tensor [].

    The receivers read the residual stream as it would be if the senders alone had read the source.
    They pass on what they make of it, and everything after them reacts.

    Args:
        model: a GPT-2 in evaluation mode.
        input_ids, source_ids: [batch_size, seq_len] each, aligned position by position.
        measure: from logits to a number, see the top of this file.
        senders: pairs (layer, head).
        receivers: a list of ("q", layer, head), ("k", layer, head), ("v", layer, head) for one
            input of a head, and ("mlp", layer) for an MLP; or [("logits",)] alone for the direct
            path to the output. Of ("q", 1, 0) and ("q", 2, 0) each gets what comes from the senders
            themselves, and not what the other makes of it.
        through_mlps: let MLPs between sender and receiver react, as Wang et al. do. False for the
            direct paths alone: everything between them is frozen.
        positions: where the senders' output is taken from the source, counted in each row's own
            tokens; everywhere where None.
        attention_mask: of both texts, [batch_size, seq_len], 1 for a token, or None.
        relative: as a share of the whole way from the text to the source.
    """
    paths = _Paths(model, input_ids, source_ids, attention_mask)
    return paths.effect(measure, senders, receivers, through_mlps, positions, relative)


class _Paths:
    """Two runs, remembered, and any number of questions about the paths between their heads."""

    def __init__(self, model, input_ids, source_ids, attention_mask):
        _check_question(input_ids, source_ids)
        self.model, self.stack = model, gpt2_stack(model)
        self.input_ids, self.attention_mask = input_ids, attention_mask
        self.is_token = are_tokens(input_ids, attention_mask)  # [batch_size, seq_len]
        self.source, self.source_logits = _observe(model, source_ids, attention_mask, ["h.*.z"])
        names = ["h.*.z", "h.*.mlp_out"]
        self.clean, self.clean_logits = _observe(model, input_ids, attention_mask, names)

    def effect(self, measure, senders, receivers, through_mlps, positions, relative):
        """Return what ``path_effect`` returns."""
        senders = check_heads(self.stack, senders)
        receivers = self._checked(receivers)
        logits = self._logits(senders, receivers, through_mlps, positions)
        effect = _difference(measure, self.clean_logits, logits)
        if relative:
            effect = effect / _whole_way(measure, self.clean_logits, self.source_logits)
        return effect

    def _logits(self, senders, receivers, through_mlps, positions):
        """Return the logits with the paths from senders to receivers changed, and no others."""
        frozen = {name: _put(value) for name, value in self._frozen(through_mlps).items()}
        for layer, _ in senders:
            frozen[f"h.{layer}.z"] = self._mixed(layer, senders, positions)
        reads = sorted({_read_by(receiver) for receiver in receivers} - {"logits"})
        with torch.no_grad(), patch(self.stack, frozen), record(self.stack, reads) as heard:
            logits = self._run()  # [batch_size, seq_len, vocab_size]
        if receivers == [("logits",)]:
            return logits
        with torch.no_grad(), patch(self.stack, _inputs(receivers, heard)):
            return self._run()

    def _frozen(self, through_mlps):
        keep = (".z",) if through_mlps else (".z", ".mlp_out")
        return {name: value for name, value in self.clean.items() if name.endswith(keep)}

    def _mixed(self, layer, senders, positions):
        """Return a patch for z: the senders' from the source, the others' from the clean run."""
        name = f"h.{layer}.z"
        heads = [head for sender_layer, head in senders if sender_layer == layer]
        where = at_positions(self.is_token, positions)[:, None, :, None]  # [batch, 1, seq_len, 1]
        mixed = self.clean[name].clone()  # [batch_size, num_heads, seq_len, head_size]
        mixed[:, heads] = torch.where(where, self.source[name][:, heads], mixed[:, heads])
        return _put(mixed)

    def _run(self):
        return self.model(**model_inputs(self.input_ids, self.attention_mask)).logits

    def _checked(self, receivers):
        """Return the receivers as tuples, with layers from 0; say what is wrong with them."""
        if isinstance(receivers, str) or (receivers and isinstance(receivers[0], str)):
            receivers = [receivers]  # one alone
        checked = []
        for receiver in receivers:
            kind, *where = (receiver,) if isinstance(receiver, str) else receiver
            if kind in ("q", "k", "v") and len(where) == 2:
                checked.append((kind, *check_heads(self.stack, [where])[0]))
            elif kind == "mlp" and len(where) == 1:
                checked.append((kind, check_heads(self.stack, [(where[0], 0)])[0][0]))
            elif kind == "logits" and not where:
                checked.append((kind,))
            else:
                raise ValueError(
                    f"{receiver!r} is no receiver; expected ('q', layer, head) or the same with "
                    "'k' or 'v', ('mlp', layer), or ('logits',)"
                )
        if not checked:
            raise ValueError("no receivers were given")
        if ("logits",) in checked and len(checked) > 1:
            raise ValueError(
                "the direct path to the logits is read with everything else frozen; ask for "
                "('logits',) alone"
            )
        return checked


def _read_by(receiver):
    """Return the name of what a receiver reads."""
    kind, *where = receiver
    if kind == "logits":
        return kind
    return f"h.{where[0]}.ln_2:input" if kind == "mlp" else f"h.{where[0]}.{kind}"


def _inputs(receivers, heard):
    """Return the patches that let the receivers, and no one else, read what was heard."""
    heads = {}
    for receiver in receivers:
        heads.setdefault(_read_by(receiver), []).append(receiver[-1])

    def of_heads(name, value):
        value[:, heads[name]] = heard[name][:, heads[name]]  # [batch, num_heads, seq, head_size]
        return value

    return {
        name: _put(heard[name]) if name.endswith(":input") else partial(of_heads, name)
        for name in heads
    }


def _put(value):
    """Return a patch that puts a fixed value in the place of whatever comes."""
    return lambda _: value


def _observe(model, input_ids, attention_mask, names):
    """Return what was recorded under the names, and the logits."""
    with record(gpt2_stack(model), names) as acts:
        logits = _logits(model, input_ids, attention_mask)
    return acts, logits


@torch.no_grad()
def _logits(model, input_ids, attention_mask):
    return model(**model_inputs(input_ids, attention_mask)).logits  # [batch, seq_len, vocab_size]


def _difference(measure, before, after):
    """Return how far the measure moved from one set of logits to the other: a tensor []."""
    return torch.as_tensor(measure(after) - measure(before))


def _whole_way(measure, clean_logits, source_logits):
    """Return how far the measure is from the text to the source; raise where it is nowhere."""
    whole = _difference(measure, clean_logits, source_logits)  # []
    if whole == 0:
        raise ValueError(
            "the measure is the same on both texts, so there is nothing to take shares of; "
            "choose texts that differ in it, or relative=False"
        )
    return whole


def _check_question(input_ids, source_ids, name="stream_in", by=()):
    if input_ids.shape != source_ids.shape:
        raise ValueError(
            f"input_ids have shape {list(input_ids.shape)} and source_ids "
            f"{list(source_ids.shape)}; the two must be aligned, token by token"
        )
    if name not in QUANTITIES:
        raise ValueError(f"no quantity is called {name!r}; expected one of {', '.join(QUANTITIES)}")
    if not set(by) <= set(AXES) or len(set(by)) < len(by):
        raise ValueError(f"by is {by!r}; expected some of {', '.join(AXES)}, each once")
    if "head" in by and name not in OF_HEADS:
        raise ValueError(f"{name!r} has no heads; take one of {', '.join(OF_HEADS)}")
