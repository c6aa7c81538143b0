"""transformer_lm.modeling_lm: a GPT-2 around any attention, to GPT-2's format and back."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import GPT2LMHeadModel

from tests.plain_gpt2 import mini_gpt2, run
from transformer_lm import modeling_lm
from transformer_lm.ablation import ablation_grid
from transformer_lm.activations import gpt2_stack, head_activations
from transformer_lm.characters import Characters
from transformer_lm.modeling_attention import MultiHeadSelfAttention
from transformer_lm.modeling_lm import LanguageModel, from_gpt2, load_language_model, to_gpt2
from transformer_lm.pretrained import load_gpt2
from transformer_lm.weights import summarize_model

VOCAB, CONTEXT, HIDDEN, LAYERS, HEADS = 19, 11, 12, 2, 3
TEXT = "Attention, please: is 'all' you need?\nYes; a b c d e f g."


def made(seed=0, **more):
    """A model away from its first values, so that every bias and gain counts."""
    torch.manual_seed(seed)
    model = LanguageModel(VOCAB, CONTEXT, HIDDEN, LAYERS, HEADS, **more).double().eval()
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


class SlowAttention(nn.Module):
    """Another way to write it: a loop over heads, biases as rows, no dropout to be had."""

    def __init__(self, input_size, hidden, num_heads, causal=False):
        super().__init__()
        self.q, self.k, self.v, self.mix = (nn.Linear(input_size, hidden) for _ in range(4))
        for layer in (self.q, self.k, self.v, self.mix):
            layer.bias = nn.Parameter(layer.bias.data[None])
        self.num_heads, self.causal = num_heads, causal

    def forward(self, x):
        outputs, size = [], x.shape[-1] // self.num_heads
        for head in range(self.num_heads):
            q, k, v = (
                layer(x)[..., head * size : (head + 1) * size] for layer in (self.q, self.k, self.v)
            )
            scores = q @ k.mT / size**0.5
            if self.causal:
                scores = scores + torch.full_like(scores, -1e9).triu(1)
            outputs.append(scores.softmax(-1) @ v)
        return self.mix(torch.cat(outputs, -1))


def ids(seed=1, rows=2, length=CONTEXT):
    return torch.randint(VOCAB, (rows, length), generator=torch.Generator().manual_seed(seed))


def test_the_model_is_a_gpt2_in_plain_algebra():
    model = made()
    expected = run(to_gpt2(model), ids())["logits"]
    torch.testing.assert_close(model(ids()), expected)


def test_the_first_loss_is_that_of_a_uniform_guess():
    torch.manual_seed(0)
    model = LanguageModel(60, 32, 64, 2, 4)
    tokens = torch.randint(60, (8, 33))
    loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    assert loss.item() == pytest.approx(math.log(60), abs=0.05)


@pytest.mark.parametrize("attention", [MultiHeadSelfAttention, SlowAttention])
def test_no_prediction_depends_on_a_later_token(attention):
    model = made(attention=attention)
    changed = ids().clone()
    changed[:, 6:] = (changed[:, 6:] + 1) % VOCAB
    same = (model(ids()) - model(changed)).abs().amax(dim=(0, 2)) == 0
    assert same.tolist() == [True] * 6 + [False] * (CONTEXT - 6)


def test_every_parameter_gets_a_gradient():
    model = made()
    model(ids()).square().sum().backward()
    missing = [name for name, p in model.named_parameters() if p.grad is None]
    assert missing == []
    assert all(p.grad.abs().max() > 0 for n, p in model.named_parameters() if ".k.bias" not in n)


def test_without_positions_the_order_of_earlier_tokens_is_lost_in_one_layer():
    torch.manual_seed(0)
    model = LanguageModel(VOCAB, CONTEXT, HIDDEN, 1, HEADS, positions=False).double()
    tokens = ids(rows=1)
    swapped = tokens[:, [1, 0, *range(2, CONTEXT)]]
    torch.testing.assert_close(model(tokens)[:, -1], model(swapped)[:, -1])
    model = LanguageModel(VOCAB, CONTEXT, HIDDEN, 1, HEADS).double()
    assert (model(tokens)[:, -1] - model(swapped)[:, -1]).abs().max() > 1e-6


def test_dropout_is_on_in_training_alone():
    model = LanguageModel(VOCAB, CONTEXT, HIDDEN, LAYERS, HEADS, dropout=0.5)
    assert not torch.equal(model.train()(ids()), model(ids()))
    assert torch.equal(model.eval()(ids()), model(ids()))
    assert {m.p for m in model.modules() if isinstance(m, nn.Dropout)} == {0.5}


def test_a_sequence_that_is_too_long_is_refused():
    with pytest.raises(ValueError, match="a sequence of 12 tokens, but this model takes 11"):
        made()(ids(length=12))


@pytest.mark.parametrize(
    "call",
    ["MLP(hidden)(x[batch, seq, hidden])", "Block(hidden, num_heads)(x[batch, seq, hidden])"],
)
def test_the_shape_comments_are_true(call):
    from autograder.shapes import check_source, plan

    found = check_source(Path(modeling_lm.__file__).read_text(encoding="utf-8"), plan(call))
    assert {v.verdict for v in found} == {"true"}


# --- GPT-2's format -------------------------------------------------------------------------------


@pytest.mark.parametrize("attention", [MultiHeadSelfAttention, SlowAttention])
@pytest.mark.parametrize("positions", [True, False])
def test_a_gpt2_made_of_it_gives_the_same_logits(attention, positions):
    model = made(attention=attention, positions=positions)
    gpt2 = to_gpt2(model)
    assert type(gpt2) is GPT2LMHeadModel and not gpt2.training
    torch.testing.assert_close(gpt2(ids()).logits, model(ids()))


@pytest.mark.parametrize("attention", [MultiHeadSelfAttention, SlowAttention])
def test_a_gpt2_taken_back_gives_the_same_logits(attention):
    gpt2 = mini_gpt2(2, 4, 24)
    model = from_gpt2(gpt2, attention)
    tokens = torch.randint(60, (2, 9))
    torch.testing.assert_close(model(tokens), gpt2(tokens).logits)
    again = to_gpt2(model)
    for name, value in gpt2.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], value, rtol=0, atol=0)


def test_a_model_on_board_runs_on_the_courses_attention():
    gpt2, tokenizer = load_gpt2("tiny")
    tokens = tokenizer(["Today we can go to the"], return_tensors="pt").input_ids
    found = from_gpt2(gpt2)(tokens)
    torch.testing.assert_close(found, gpt2(tokens).logits, rtol=1e-4, atol=1e-4)


def test_a_saved_model_opens_with_the_tools_for_gpt2(tmp_path):
    characters = Characters(TEXT)
    torch.manual_seed(0)
    mine = LanguageModel(len(characters), 32, HIDDEN, LAYERS, HEADS).eval()
    modeling_lm.save_gpt2(mine, tmp_path, characters)
    gpt2, tokenizer = load_gpt2(tmp_path)
    tokens = tokenizer([TEXT[:20]], return_tensors="pt").input_ids
    assert torch.equal(tokens[0], characters.encode(TEXT[:20]))
    torch.testing.assert_close(gpt2(tokens).logits, mine(tokens), rtol=1e-5, atol=1e-6)
    _, probs = mine.blocks[0].attention(
        mine.blocks[0].norm_1(mine.token_embedding(tokens) + mine.position_embedding.weight[:20]),
        return_attention=True,
    )
    torch.testing.assert_close(head_activations(gpt2, tokens)[0].pattern[0], probs)
    assert ablation_grid(gpt2, tokens).shape == (LAYERS, HEADS)
    assert summarize_model(gpt2)["norm"].shape == (LAYERS, HEADS)
    again = load_language_model(tmp_path, SlowAttention)
    torch.testing.assert_close(again(tokens), mine(tokens), rtol=1e-5, atol=1e-6)


def test_saving_says_nothing_and_writes_what_hugging_face_reads(tmp_path, capfd):
    modeling_lm.save_gpt2(made().float(), tmp_path)
    assert capfd.readouterr() == ("", "")
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["model_type"] == "gpt2" and config["n_layer"] == LAYERS
    model = GPT2LMHeadModel.from_pretrained(tmp_path)
    assert model.lm_head.weight is model.transformer.wte.weight


class Unscaled(MultiHeadSelfAttention):
    def __init__(self, *args, **more):
        super().__init__(*args, **more)
        self.scale = 1


class Seeing(MultiHeadSelfAttention):
    def __init__(self, *args, causal=True, **more):
        super().__init__(*args, causal=False, **more)


@pytest.mark.parametrize("attention", [Unscaled, Seeing])
def test_an_attention_that_is_not_gpt2s_is_not_passed_off_as_one(attention):
    model = made(attention=attention)
    with pytest.raises(ValueError, match="gives other logits .* causal mask, at the scale"):
        to_gpt2(model)
    with pytest.raises(ValueError, match="gives other logits"):
        from_gpt2(mini_gpt2(2, 4, 24), attention)


def test_an_attention_without_the_interface_is_told_what_is_missing():
    class Nameless(nn.Module):
        def __init__(self, *args, **more):
            super().__init__()
            self.q = nn.Linear(HIDDEN, HIDDEN)
            self.k = nn.Linear(HIDDEN, HIDDEN // 2)

        def forward(self, x):
            return x

    words = r"layer 'k' of \[12, 12\] in the attention, but Nameless has one with .* \[6, 12\]"
    with pytest.raises(ValueError, match=words):
        to_gpt2(LanguageModel(VOCAB, CONTEXT, HIDDEN, LAYERS, HEADS, Nameless))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"n_inner": 8}, "has an MLP of 8 neurons, not of 96"),
        ({"activation_function": "relu"}, "has the activation 'relu'"),
        ({"tie_word_embeddings": False}, "two matrices"),
        ({"scale_attn_weights": False}, "gives other logits"),
    ],
)
def test_a_gpt2_of_another_make_is_refused(more, words):
    with pytest.raises(ValueError, match=words):
        from_gpt2(mini_gpt2(2, 4, 24, **more))


def test_the_norms_own_epsilon_is_kept(tmp_path):
    gpt2 = mini_gpt2(2, 4, 24, layer_norm_epsilon=0.5)
    modeling_lm.save_gpt2(from_gpt2(gpt2).float(), tmp_path)
    tokens = torch.randint(60, (1, 9))
    found = load_language_model(tmp_path)(tokens)
    torch.testing.assert_close(found.double(), gpt2(tokens).logits, rtol=1e-4, atol=1e-4)


def test_the_older_tools_say_how_to_make_a_gpt2_of_it():
    with pytest.raises(TypeError, match="got LanguageModel; modeling_lm.to_gpt2 makes"):
        gpt2_stack(made())


# --- Characters -----------------------------------------------------------------------------------


def test_text_comes_back_from_its_ids():
    characters = Characters(TEXT)
    assert len(characters) == len(set(TEXT))
    found = characters.encode(TEXT)
    assert found.dtype == torch.long and found.shape == (len(TEXT),)
    assert characters.decode(found) == TEXT and characters.decode(found.tolist()) == TEXT
    assert Characters(reversed(TEXT)).ids == characters.ids


def test_an_unknown_character_is_named():
    with pytest.raises(ValueError, match="'é' is not among the 3 characters"):
        Characters("abc").encode("abé")


@pytest.mark.parametrize("text", [TEXT, "a  b\n\n\tc", "Öl für 5 € 🙂", 'quote " and \\ slash'])
def test_the_saved_tokenizer_does_the_same(tmp_path, text):
    from transformers import AutoTokenizer

    characters = Characters(text)
    characters.save(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer(text).input_ids == characters.encode(text).tolist()
    assert tokenizer.decode(tokenizer(text).input_ids) == text
    assert [tokenizer.decode([i]) for i in range(len(characters))] == characters.characters
    assert Characters.load(tmp_path).ids == characters.ids
