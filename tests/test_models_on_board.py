"""The models on board are what the course says they are."""

import itertools
import json
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch.nn.functional import cross_entropy
from transformers import AutoTokenizer, GPT2LMHeadModel, GPT2TokenizerFast

from tests.forms import examples, first_of
from transformer_lm.checkpoints import GROWING, load_checkpoints
from transformer_lm.head_scores import repeated_tokens
from transformer_lm.pretrained import ModelNotAvailable, guided_heads, load_gpt2

MODELS = Path(__file__).parents[1] / "models"
GUIDED = ["tiny", "small-on-board", "base-on-board"]  # by size
NAMES = [*GUIDED, "large-on-board"]
PROMPT, PROMPT_IDS = "Today we can go to", [8888, 356, 460, 467, 284]
END_OF_TEXT = 10_239
SEGMENT = 50
each_size = pytest.mark.parametrize("name", NAMES)


@cache
def model(name):
    return GPT2LMHeadModel.from_pretrained(
        MODELS / name, attn_implementation="eager", dtype=torch.float32
    ).eval()


@cache
def tokenizer(name):
    return GPT2TokenizerFast.from_pretrained(MODELS / name)


@cache
def held_out():
    return torch.from_numpy(load_file(MODELS / "held_out.safetensors")["ids"].astype(np.int64))


@cache
@torch.no_grad()
def run_on_repeats(name):
    """Attentions on ``<|endoftext|> x x`` and ``<|endoftext|> x y``, and the loss on the last x.

    x and y are fresh random ids; attentions are stacked to [layer, batch, head, query, key].
    """
    generator = torch.Generator().manual_seed(20_26)
    x, y = torch.randint(0, END_OF_TEXT, (2, 32, SEGMENT), generator=generator)
    start = torch.full((32, 1), END_OF_TEXT)
    repeated = model(name)(torch.cat([start, x, x], 1), output_attentions=True)
    fresh = model(name)(torch.cat([start, x, y], 1), output_attentions=True)
    log_probs = repeated.logits[:, SEGMENT:-1].log_softmax(-1)
    loss = -log_probs.gather(-1, x[..., None]).mean().item()
    return torch.stack(repeated.attentions), torch.stack(fresh.attentions), loss


def attention_after_the_earlier_copy(attentions):
    """Mean attention, by layer and head, of the second copy to where the first one went on."""
    second = torch.arange(SEGMENT + 1, 2 * SEGMENT + 1)
    return attentions[..., second, second - SEGMENT + 1].mean((1, 3))


def text_loss(name, ids):
    """Mean next-token loss; a few rows at a time, since all logits together take gigabytes."""
    with torch.no_grad():
        losses = [len(rows) * model(name)(rows, labels=rows).loss.item() for rows in ids.split(9)]
    return sum(losses) / len(ids)


@cache
def held_out_loss(name):
    return text_loss(name, held_out())


def test_the_family_stays_under_25_megabytes():
    size = sum(file.stat().st_size for file in MODELS.rglob("*") if file.is_file())
    assert size < 25e6


@each_size
def test_each_folder_holds_all_that_is_needed(name):
    needed = "config.json generation_config.json model.safetensors vocab.json merges.txt "
    needed += "tokenizer_config.json MODEL_CARD.md training_log.json LICENSE.openai-gpt2"
    assert set(needed.split()) <= {file.name for file in (MODELS / name).iterdir()}


@each_size
def test_weights_are_stored_in_half_precision_and_are_finite(name):
    weights = load_file(MODELS / name / "model.safetensors")
    assert {array.dtype for array in weights.values()} == {np.dtype("float16")}
    assert all(np.isfinite(array).all() for array in weights.values())


@each_size
def test_the_tokenizer_is_fast_and_keeps_the_ids_of_gpt2(name):
    for loaded in (tokenizer(name), AutoTokenizer.from_pretrained(MODELS / name)):
        assert loaded.is_fast
        assert loaded(PROMPT)["input_ids"] == PROMPT_IDS
        assert len(loaded) == model(name).config.vocab_size == END_OF_TEXT + 1
        assert loaded.eos_token_id == model(name).config.eos_token_id == END_OF_TEXT


def test_a_token_both_vocabularies_hold_has_one_id():
    full = json.loads((MODELS / "gpt2-tokenizer" / "vocab.json").read_text(encoding="utf-8"))
    assert len(full) == 50_257 and full["<|endoftext|>"] == 50_256
    kept = {token: i for token, i in full.items() if i < END_OF_TEXT}
    for name in NAMES:
        assert tokenizer(name).get_vocab() == kept | {"<|endoftext|>": END_OF_TEXT}


def test_the_full_tokenizer_reads_the_prompt_as_gpt2_does():
    full = AutoTokenizer.from_pretrained(MODELS / "gpt2-tokenizer")
    assert full.is_fast and full(PROMPT)["input_ids"] == PROMPT_IDS
    assert full.eos_token_id == 50_256


@each_size
def test_text_comes_back_from_its_ids(name):
    text = "Well, 3 cats & a naïve dog - “hello”, she said.\nThe end."
    assert tokenizer(name).decode(tokenizer(name)(text)["input_ids"]) == text


@each_size
def test_the_prompt_goes_on_in_words_of_the_held_out_books(name):
    text = tokenizer(name).batch_decode(held_out())
    words = set(re.findall(r"[a-z]+", " ".join(text).lower()))
    ids = torch.tensor([PROMPT_IDS])
    out = model(name).generate(
        ids,
        attention_mask=torch.ones_like(ids),
        min_new_tokens=20,
        max_new_tokens=20,
        do_sample=False,
        pad_token_id=END_OF_TEXT,
    )
    said = re.findall(r"[a-z]+", tokenizer(name).decode(out[0, 5:]).lower())
    assert len(said) >= 8
    assert sum(word in words for word in said) >= 0.8 * len(said)


@each_size
def test_the_likeliest_words_after_the_prompt_can_follow_to(name):
    with torch.no_grad():
        probs = model(name)(torch.tensor([PROMPT_IDS])).logits[0, -1].softmax(-1)
    the, a, see = (tokenizer(name).encode(word)[0] for word in (" the", " a", " see"))
    assert the in probs.topk(3).indices
    assert probs.max() < 0.9
    assert min(probs[a], probs[see]) > 100 / len(probs)


def test_held_out_loss_falls_with_size():
    ids = held_out()[:: examples(5, 1)]
    losses = [text_loss(name, ids) for name in NAMES]
    sizes = [model(name).num_parameters() for name in NAMES]
    assert sizes == sorted(sizes)
    assert all(small - large > 0.02 for small, large in itertools.pairwise(losses))
    assert losses[0] < 5.5 < math.log(END_OF_TEXT + 1)


def test_the_best_model_needs_less_than_4_35_nats_a_token():
    assert text_loss(NAMES[-1], held_out()[:: examples(5, 1)]) <= 4.35


@each_size
def test_held_out_text_is_easier_than_the_same_words_shuffled(name):
    ids = held_out()[:: examples(12, 4)]
    order = torch.randperm(ids.shape[1], generator=torch.Generator().manual_seed(1))
    assert text_loss(name, ids[:, order]) - text_loss(name, ids) > 1.5


@each_size
def test_there_is_a_previous_token_head(name):
    attentions, _, _ = run_on_repeats(name)
    query = torch.arange(1, 2 * SEGMENT + 1)
    assert attentions[..., query, query - 1].mean((1, 3)).max() > 0.3


@each_size
def test_there_is_an_induction_head(name):
    repeated, fresh, _ = run_on_repeats(name)
    assert attention_after_the_earlier_copy(repeated).max() > 0.4
    assert attention_after_the_earlier_copy(fresh).max() < 0.05


@each_size
def test_the_induction_head_reads_a_layer_above_the_previous_token_head(name):
    attentions, _, _ = run_on_repeats(name)
    query = torch.arange(1, 2 * SEGMENT + 1)
    previous = attentions[..., query, query - 1].mean((1, 3)).amax(1).argmax()
    assert attention_after_the_earlier_copy(attentions).amax(1).argmax() > previous


@each_size
def test_a_second_copy_is_two_nats_easier_than_a_guess(name):
    _, _, loss = run_on_repeats(name)
    assert loss < math.log(END_OF_TEXT + 1) - 2


@each_size
def test_the_card_says_what_the_model_is_and_what_it_was_trained_on(name):
    card = (MODELS / name / "MODEL_CARD.md").read_text(encoding="utf-8")
    card = " ".join(card.split()).lower()
    for words in (
        "not OpenAI's",
        "Copy rows",
        "Modified MIT",
        "Gutenberg",
        "Seeds",
        "Wizard",
        "Guided heads" if name in GUIDED else "No guide",
    ):
        assert words.lower() in card, words


@pytest.mark.parametrize("name", [*NAMES, GROWING])
def test_the_guided_heads_are_told_and_only_where_a_guide_was_used(name):
    heads = guided_heads(load_gpt2(name)[0])
    assert heads == ([(0, 0), (1, 0)] if name in GUIDED else [])
    log = json.loads((MODELS / name / "training_log.json").read_text())
    assert any(line["phase"] == "guide" for line in log["log"]) == (name in GUIDED)


@cache
def scores_by_stage():
    """For each stage of the growing model: tokens read, the best heads' scores, a control, loss.

    The rows are its end-of-text token and 32 random ids twice; the control has no repetition.
    """
    length, found = 32, []
    for tokens, stage in load_checkpoints().items():
        size, end = stage.config.vocab_size, stage.config.eos_token_id
        twice = repeated_tokens(size - 1, 16, length, prefix=end)
        once = repeated_tokens(size - 1, 16, 2 * length, prefix=end)[:, : 2 * length + 1]
        with torch.no_grad():
            maps = torch.stack(stage(twice, output_attentions=True).attentions)
            fresh = torch.stack(stage(once, output_attentions=True).attentions)
            logits = stage(twice).logits[:, length + 1 : -1]
        second = torch.arange(length + 1, 2 * length + 1)
        every = torch.arange(1, 2 * length + 1)
        loss = cross_entropy(logits.flatten(0, 1), twice[:, length + 2 :].flatten())
        found.append(
            {
                "tokens": tokens,
                "previous": maps[..., every, every - 1].mean((1, 3)).max().item(),
                "prefix": maps[..., second, second - length + 1].mean((1, 3)).max().item(),
                "control": fresh[..., second, second - length + 1].mean((1, 3)).max().item(),
                "second copy": loss.item() - math.log(size),
            }
        )
    return found


def test_the_growing_model_was_kept_at_five_stages():
    tokens = list(load_checkpoints())
    assert len(tokens) == 5 and tokens == sorted(tokens)
    log = json.loads((MODELS / GROWING / "training_log.json").read_text())["log"]
    assert set(tokens) <= {line["tokens"] for line in log}
    assert tokens[-1] == log[-1]["tokens"]
    for stage in load_checkpoints().values():
        assert stage.lm_head.weight is stage.transformer.wte.weight


def test_one_sees_the_heads_appear_without_a_guide():
    first, *_, last = scores_by_stage()
    assert first["previous"] < 0.15 and first["prefix"] < 0.05
    assert last["previous"] > 0.3 and last["prefix"] > 0.4
    assert all(stage["control"] < 0.05 for stage in scores_by_stage())
    assert first["second copy"] > -0.1 and last["second copy"] < -1
    for name in ("previous", "prefix"):
        values = [stage[name] for stage in scores_by_stage()]
        assert all(later > earlier - 0.05 for earlier, later in itertools.pairwise(values))


def test_the_growing_model_reads_text_with_the_first_ids_of_gpt2():
    _, words = load_gpt2(GROWING)
    full = json.loads((MODELS / "gpt2-tokenizer" / "vocab.json").read_text(encoding="utf-8"))
    kept = {token: i for token, i in full.items() if i < 2_047}
    assert words.get_vocab() == kept | {"<|endoftext|>": 2_047}
    assert words.decode(words(PROMPT)["input_ids"]) == PROMPT


def test_a_model_kept_at_its_last_stage_alone_has_no_checkpoints():
    with pytest.raises(ModelNotAvailable, match="last stage only"):
        load_checkpoints("tiny")


@pytest.mark.parametrize("name", first_of(*NAMES))
def test_the_figures_of_the_log_are_those_of_the_model(name):
    log = json.loads((MODELS / name / "training_log.json").read_text())
    assert log["figures"]["parameters"] == model(name).num_parameters()
    assert held_out_loss(name) == pytest.approx(log["figures"]["held_out_loss"], abs=0.01)
