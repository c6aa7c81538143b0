"""transformer_lm.patching against GPT-2 in plain algebra, with the values put in by hand."""

from itertools import product

import pytest
import torch

from tests.plain_gpt2 import gelu, head_parts, layer_norm, mini_gpt2, run
from transformer_lm import losses, patching
from transformer_lm.hooks import count_hooks

LAYERS, HEADS, SEQ = 3, 4, 5
IDS = torch.tensor([[3, 7, 11, 2, 5], [1, 2, 3, 4, 6]])
SOURCE = torch.tensor([[3, 9, 11, 8, 5], [1, 2, 40, 4, 6]])
MEASURE = losses.logit_difference(torch.tensor([5, 6]), against=9)


@pytest.fixture(scope="module")
def model():
    return mini_gpt2(LAYERS, HEADS)


def plain_measure(logits):
    return torch.stack(
        [row[-1, t] - row[-1, 9] for row, t in zip(logits, (5, 6), strict=True)]
    ).mean()


# --- Activation patching --------------------------------------------------------------------------


def plain_patching(model, name, layers, head=None, position=None):
    """The effect of putting the source's values in, by a second run in plain algebra."""
    clean, source = run(model, IDS), run(model, SOURCE)
    keys = [f"h.{layer}.{name}" for layer in layers]

    def edit(key, value):
        if key not in keys:
            return value
        value = value.clone()
        where = [slice(None)] * value.dim()
        if head is not None:
            where[1] = head
        if position is not None:
            where[-2] = position
        value[tuple(where)] = source[key][tuple(where)]
        return value

    return plain_measure(run(model, IDS, edit)["logits"]) - plain_measure(clean["logits"])


@pytest.mark.parametrize("name", ["stream_in", "attn_out", "mlp_out"])
def test_patching_by_layer_and_position(model, name):
    grid = patching.activation_patching(model, IDS, SOURCE, MEASURE, name)
    expected = [
        plain_patching(model, name, [layer], position=position)
        for layer, position in product(range(LAYERS), range(SEQ))
    ]
    torch.testing.assert_close(grid, torch.stack(expected).view(LAYERS, SEQ))
    assert grid.abs().max() > 1e-2


@pytest.mark.parametrize("name", ["z", "q", "k", "v", "pattern", "scores", "head_out"])
def test_patching_by_layer_and_head(model, name):
    grid = patching.activation_patching(model, IDS, SOURCE, MEASURE, name, by=("layer", "head"))
    expected = [
        plain_patching(model, name, [layer], head)
        for layer, head in product(range(LAYERS), range(HEADS))
    ]
    torch.testing.assert_close(grid, torch.stack(expected).view(LAYERS, HEADS))
    assert grid.abs().max() > 1e-3


def test_patching_by_all_three_and_by_any_of_them(model):
    by = ("head", "layer", "position")
    grid = patching.activation_patching(model, IDS, SOURCE, MEASURE, "z", by=by)
    assert grid.shape == (HEADS, LAYERS, SEQ)
    torch.testing.assert_close(grid[2, 1, 3], plain_patching(model, "z", [1], 2, 3))
    torch.testing.assert_close(grid[0, 2, 4], plain_patching(model, "z", [2], 0, 4))
    every = range(LAYERS)
    row = patching.activation_patching(model, IDS, SOURCE, MEASURE, "z", by=("position",))
    torch.testing.assert_close(row[3], plain_patching(model, "z", every, position=3))
    row = patching.activation_patching(model, IDS, SOURCE, MEASURE, "k", by="head")
    torch.testing.assert_close(row[1], plain_patching(model, "k", every, 1))
    one = patching.activation_patching(model, IDS, SOURCE, MEASURE, "z", by=())
    torch.testing.assert_close(one, plain_patching(model, "z", every))


def test_the_whole_stream_at_the_start_is_the_whole_way(model):
    grid = patching.activation_patching(model, IDS, SOURCE, MEASURE, by=("layer",), relative=True)
    torch.testing.assert_close(grid, torch.ones(LAYERS, dtype=torch.float64))


def test_nothing_happens_before_the_texts_differ(model):
    grid = patching.activation_patching(model, IDS[:1], SOURCE[:1], losses.log_prob(5))
    assert grid[:, 0].abs().max() < 1e-12 and grid[0, 2].abs().max() < 1e-12
    assert grid[0, 1].abs() > 1e-3


# --- Path patching --------------------------------------------------------------------------------


def deltas(model, senders):
    """What the senders' source output adds to the stream, more than their clean one: by layer."""
    clean, source = run(model, IDS), run(model, SOURCE)
    found = [torch.zeros_like(clean["h.0.stream_in"]) for _ in range(LAYERS)]
    for layer, head in senders:
        w_o = head_parts(model.transformer.h[layer], HEADS, head)[3]
        key = f"h.{layer}.z"
        found[layer] = found[layer] + (source[key][:, head] - clean[key][:, head]) @ w_o
    return clean, [delta.detach() for delta in found]


@torch.no_grad()
def plain_path(model, senders, receivers, through_mlps):
    """The stream at each receiver is the clean one plus the senders' differences before it.

    With ``through_mlps`` the MLPs between them read that stream too, and add what they make of it.
    """
    clean, added = deltas(model, senders)
    difference = torch.zeros_like(added[0])
    at_block, at_mlp = [], []
    for layer, block in enumerate(model.transformer.h):
        at_block.append(clean[f"h.{layer}.stream_in"] + difference)
        difference = difference + added[layer]
        at_mlp.append(clean[f"h.{layer}.stream_mid"] + difference)
        if through_mlps:
            mlp, read = block.mlp, layer_norm(at_mlp[-1], block.ln_2)
            out = gelu(read @ mlp.c_fc.weight + mlp.c_fc.bias) @ mlp.c_proj.weight
            difference = difference + out + mlp.c_proj.bias - clean[f"h.{layer}.mlp_out"]
    if receivers == [("logits",)]:
        final = layer_norm(clean["ln_f:input"] + difference, model.transformer.ln_f)
        after = plain_measure(final @ model.lm_head.weight.T)
        return after - plain_measure(clean["logits"])

    def edit(key, value):
        for kind, layer, *head in receivers:
            if kind == "mlp" and key == f"h.{layer}.ln_2:input":
                value = at_mlp[layer]
            if kind != "mlp" and key == f"h.{layer}.{kind}":
                block = model.transformer.h[layer]
                weight, bias = head_parts(block, HEADS, head[0])["qkv".index(kind)]
                value = value.clone()
                value[:, head[0]] = layer_norm(at_block[layer], block.ln_1) @ weight + bias
        return value

    return plain_measure(run(model, IDS, edit)["logits"]) - plain_measure(clean["logits"])


@pytest.mark.parametrize("through_mlps", [False, True])
@pytest.mark.parametrize(
    "receivers",
    [
        [("q", 2, 1)],
        [("k", 1, 3)],
        [("v", 2, 0)],
        [("mlp", 1)],
        [("logits",)],
        [("q", 1, 0), ("k", 1, 2), ("v", 2, 3), ("mlp", 2)],
        [("k", 2, 0), ("k", 2, 1)],
    ],
)
def test_path_patching_grids_are_those_of_plain_algebra(model, receivers, through_mlps):
    grid = patching.path_patching(model, IDS, SOURCE, MEASURE, receivers, through_mlps)
    expected = [
        plain_path(model, [sender], receivers, through_mlps)
        for sender in product(range(LAYERS), range(HEADS))
    ]
    torch.testing.assert_close(grid, torch.stack(expected).view(LAYERS, HEADS))
    assert grid.abs().max() > 1e-4


@pytest.mark.parametrize("by", [("layer", "head", "position"), ("position",), "layer", ("head",)])
def test_path_patching_goes_by_any_of_the_three_axes(model, by):
    receivers = [("k", 2, 1), ("q", 2, 1)]
    grid = patching.path_patching(model, IDS, SOURCE, MEASURE, receivers, by=by)
    axes = (by,) if isinstance(by, str) else by
    sizes = {"layer": LAYERS, "head": HEADS, "position": SEQ}
    assert list(grid.shape) == [sizes[axis] for axis in axes]
    for cell in [(0, 1, 3), (1, 2, 0), (0, 3, SEQ - 1)]:
        at = dict(zip(("layer", "head", "position"), cell, strict=True))
        layers = [at["layer"]] if "layer" in axes else range(LAYERS)
        heads = [at["head"]] if "head" in axes else range(HEADS)
        places = [at["position"]] if "position" in axes else None
        expected = patching.path_effect(
            model, IDS, SOURCE, MEASURE, list(product(layers, heads)), receivers, positions=places
        )
        torch.testing.assert_close(grid[tuple(at[axis] for axis in axes)], expected)


@pytest.mark.parametrize("through_mlps", [False, True])
def test_whom_a_head_talks_to_is_one_path_for_each_receiver(model, through_mlps):
    senders = [(0, 1), (1, 2)]
    found = patching.receiver_patching(model, IDS, SOURCE, MEASURE, senders, through_mlps)
    assert {name: list(grid.shape) for name, grid in found.items()} == {
        "q": [3, 4], "k": [3, 4], "v": [3, 4], "mlp": [3], "logits": [],
    }  # fmt: skip
    for kind, layer, head in [("q", 1, 0), ("k", 2, 3), ("v", 1, 1), ("k", 0, 0)]:
        expected = plain_path(model, senders, [(kind, layer, head)], through_mlps)
        torch.testing.assert_close(found[kind][layer, head], expected)
    for layer in range(LAYERS):
        expected = plain_path(model, senders, [("mlp", layer)], through_mlps)
        torch.testing.assert_close(found["mlp"][layer], expected)
    expected = plain_path(model, senders, [("logits",)], through_mlps)
    torch.testing.assert_close(found["logits"], expected)


def test_a_head_tells_nothing_to_what_came_before_it(model):
    found = patching.receiver_patching(model, IDS, SOURCE, MEASURE, [(1, 2)])
    assert max(found[kind][:2].abs().max() for kind in "qkv") == 0
    assert found["mlp"][0] == 0 and found["mlp"][1].abs() > 1e-4


def test_the_direct_path_and_the_whole_effect_are_the_same_in_the_last_layer_without_mlp(model):
    """After the last layer's heads come its MLP and the logits: nothing else can pass it on."""
    senders = [(2, 1)]
    direct = patching.path_effect(model, IDS, SOURCE, MEASURE, senders, "logits", through_mlps=True)
    whole = patching.activation_patching(model, IDS, SOURCE, MEASURE, "z", by=("layer", "head"))
    torch.testing.assert_close(direct, whole[2, 1])


def test_senders_positions_are_those_asked_for(model):
    """At the last position alone, nothing reaches the keys of earlier ones: by two pieces."""
    receivers = [("k", 1, 2)]
    how = {"senders": [(0, 0)], "receivers": receivers}
    pieces = [
        patching.path_effect(model, IDS[:1], SOURCE[:1], losses.log_prob(5), **how, positions=[p])
        for p in range(SEQ)
    ]
    assert pieces[0].abs() < 1e-12  # the texts begin alike
    assert all(piece.abs() > 1e-6 for piece in pieces[1:])
    every = patching.path_effect(model, IDS[:1], SOURCE[:1], losses.log_prob(5), **how)
    same = patching.path_effect(
        model, IDS[:1], SOURCE[:1], losses.log_prob(5), **how, positions=[-1, 0, 1, 2, 3]
    )
    torch.testing.assert_close(every, same)


def test_relative_effects_are_shares_of_the_whole_way(model):
    whole = plain_measure(run(model, SOURCE)["logits"]) - plain_measure(run(model, IDS)["logits"])
    receivers = [("mlp", 1)]
    plain = patching.path_patching(model, IDS, SOURCE, MEASURE, receivers)
    share = patching.path_patching(model, IDS, SOURCE, MEASURE, receivers, relative=True)
    torch.testing.assert_close(share, plain / whole)
    with pytest.raises(ValueError, match="the same on both texts"):
        patching.path_patching(model, IDS, IDS, MEASURE, receivers, relative=True)


def test_nothing_is_left_in_the_model(model):
    before = model(IDS).logits
    patching.path_patching(model, IDS, SOURCE, MEASURE, [("q", 2, 1)])
    with pytest.raises(ZeroDivisionError):
        patching.activation_patching(model, IDS, SOURCE, lambda logits: 1 / 0)
    assert count_hooks(model) == 0 and torch.equal(model(IDS).logits, before)


def test_measures_read_the_right_logits(model):
    logits = model(IDS).logits.detach()
    log_probs = logits - torch.logsumexp(logits, -1, keepdim=True)
    found = losses.log_prob(torch.tensor([5, 6]), position=2)(logits)
    torch.testing.assert_close(found, (log_probs[0, 2, 5] + log_probs[1, 2, 6]) / 2)
    position = torch.tensor([1, 3])
    found = losses.logit_difference(5, 7, position)(logits)
    expected = (logits[0, 1, 5] - logits[0, 1, 7] + logits[1, 3, 5] - logits[1, 3, 7]) / 2
    torch.testing.assert_close(found, expected)


def test_a_measure_may_return_a_plain_number(model):
    grid = patching.activation_patching(
        model, IDS, SOURCE, lambda logits: plain_measure(logits).item()
    )
    expected = patching.activation_patching(model, IDS, SOURCE, MEASURE)
    torch.testing.assert_close(grid.double(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"name": "w"}, "no quantity is called 'w'; expected one of stream_in, q"),
        ({"name": "mlp_out", "by": ("layer", "head")}, "'mlp_out' has no heads; take one of q, k"),
        ({"by": ("layer", "token")}, "expected some of layer, head, position"),
        ({"by": ("layer", "layer")}, "each once"),
        ({"source_ids": SOURCE[:, :3]}, r"shape \[2, 5\] and source_ids \[2, 3\].*aligned"),
    ],
)
def test_a_question_without_an_answer_is_refused(model, more, words):
    with pytest.raises(ValueError, match=words):
        patching.activation_patching(
            **{"model": model, "input_ids": IDS, "source_ids": SOURCE, "measure": MEASURE, **more}
        )


@pytest.mark.parametrize(
    ("receivers", "problem", "words"),
    [
        ([("w", 1, 0)], ValueError, r"\('w', 1, 0\) is no receiver; expected \('q', layer, head\)"),
        ([("q", 1)], ValueError, "is no receiver"),
        ([("mlp", 1, 0)], ValueError, "is no receiver"),
        ([], ValueError, "no receivers were given"),
        ([("q", 1, 4)], IndexError, r"no head \(1, 4\)"),
        ([("mlp", 3)], IndexError, r"no head \(3, 0\): the model has 3 layers"),
        ([("logits",), ("q", 1, 0)], ValueError, r"ask for \('logits',\) alone"),
    ],
)
def test_a_receiver_that_is_none_is_refused(model, receivers, problem, words):
    with pytest.raises(problem, match=words):
        patching.path_effect(model, IDS, SOURCE, MEASURE, [(0, 0)], receivers)
    assert count_hooks(model) == 0


def test_a_sender_that_is_none_is_refused(model):
    with pytest.raises(IndexError, match=r"no head \(0, 9\)"):
        patching.path_effect(model, IDS, SOURCE, MEASURE, [(0, 9)], [("q", 1, 0)])
