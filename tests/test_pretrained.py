"""transformer_lm.pretrained: models by name and path; one clear sentence where there is none."""

import json
import subprocess
import sys

import pytest
import torch
from transformers import BertConfig, GPT2Config, GPT2LMHeadModel

from transformer_lm import pretrained, weights

CONFIG = {"n_layer": 2, "n_head": 3, "n_embd": 12, "n_positions": 16, "vocab_size": 257}


def byte_tokenizer_files(folder):
    """The smallest GPT-2 tokenizer: one token a byte, then the end of text; no merges."""
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    letters = [*bytes_to_unicode().values(), "<|endoftext|>"]
    vocab = {letter: index for index, letter in enumerate(letters)}
    (folder / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", encoding="utf-8")


def save_model(folder, dtype=torch.float32, **changes):
    torch.manual_seed(0)
    config = GPT2Config(**{**CONFIG, "bos_token_id": 256, "eos_token_id": 256, **changes})
    model = GPT2LMHeadModel(config).to(dtype)
    model.save_pretrained(folder)
    return model


@pytest.fixture
def folder(tmp_path):
    save_model(tmp_path / "model")
    byte_tokenizer_files(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    """An empty cache and a hub where nobody answers."""
    import huggingface_hub

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    asked = []

    def refuse(self, repo, timeout=None):
        asked.append((repo, timeout))
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", refuse)
    return asked


def test_a_folder_gives_a_model_ready_to_be_looked_into(folder):
    model, tokenizer = pretrained.load_gpt2(folder)
    assert isinstance(model, GPT2LMHeadModel) and not model.training
    assert model.config._attn_implementation == "eager"
    ids = tokenizer("to go", return_tensors="pt").input_ids
    attentions = model(ids, output_attentions=True).attentions
    assert [tuple(probs.shape) for probs in attentions] == [(1, 3, 5, 5)] * 2
    assert tokenizer.is_fast and tokenizer.pad_token == "<|endoftext|>"
    assert tokenizer.decode(ids[0]) == "to go"


def test_weights_in_half_precision_come_back_in_single(tmp_path):
    saved = save_model(tmp_path, torch.float16)
    byte_tokenizer_files(tmp_path)
    model, _ = pretrained.load_gpt2(tmp_path)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert torch.equal(model.transformer.wpe.weight, saved.transformer.wpe.weight.float())


def test_a_model_on_board_is_found_by_name_beside_the_package(folder, tmp_path, monkeypatch):
    (tmp_path / "models").mkdir()
    folder.rename(tmp_path / "models" / "tiny")
    monkeypatch.setattr(pretrained, "PACKAGE_PARENT", tmp_path)
    model, _ = pretrained.load_gpt2("tiny")
    assert model.config.n_embd == 12


def test_a_folder_without_a_tokenizer_borrows_one_of_its_vocabulary(tmp_path, monkeypatch):
    save_model(tmp_path / "bare")
    shared = tmp_path / "models" / "gpt2-tokenizer"
    shared.mkdir(parents=True)
    byte_tokenizer_files(shared)
    (shared / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    monkeypatch.setattr(pretrained, "models_folders", lambda: [tmp_path / "models"])
    _, tokenizer = pretrained.load_gpt2(tmp_path / "bare")
    assert len(tokenizer) == 257
    save_model(tmp_path / "wide", vocab_size=300)
    with pytest.raises(pretrained.ModelNotAvailable, match="none on board has its 300 tokens"):
        pretrained.load_gpt2(tmp_path / "wide")


def test_the_model_in_use_is_printed_only_when_asked(folder, capsys):
    pretrained.load_gpt2(folder)
    assert capsys.readouterr() == ("", "")
    pretrained.load_gpt2(folder, verbose=True)
    words = capsys.readouterr().out
    assert "local folder" in words and "2 layers, 3 heads of size 4, hidden size 12" in words


def test_tied_parameters_are_counted_once(folder):
    model, _ = pretrained.load_gpt2(folder)
    assert model.lm_head.weight.data_ptr() == model.transformer.wte.weight.data_ptr()
    per_layer = 12 * 12**2 + 13 * 12  # 4 and 8 hidden^2; biases 4 + 5; two norms of 2: Radford 2019
    millions = (2 * per_layer + (257 + 16) * 12 + 2 * 12) / 1e6
    assert f"{millions:.1f} M parameters" in pretrained.describe(model)


def test_an_unreachable_hub_is_said_in_one_sentence_after_a_short_wait(no_network):
    with pytest.raises(pretrained.ModelNotAvailable) as caught:
        pretrained.load_gpt2("gpt2-medium")
    words = str(caught.value)
    assert (
        "'gpt2-medium' is not in the hub's cache and the Hugging Face hub cannot be reach" in words
    )
    assert "\n" not in words and words.count(". ") == 0
    assert caught.value.__suppress_context__
    assert no_network == [("openai-community/gpt2-medium", pretrained.HUB_TIMEOUT_SECONDS)]


def test_offline_mode_is_respected(no_network, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(pretrained.ModelNotAvailable, match="HF_HUB_OFFLINE is set"):
        pretrained.load_gpt2("gpt2")
    assert no_network == []


def test_the_hubs_cache_is_read_without_the_hub(no_network, folder, tmp_path):
    revision = "0" * 40
    repo = tmp_path / "cache" / "models--openai-community--gpt2"
    (repo / "refs").mkdir(parents=True)
    (repo / "refs" / "main").write_text(revision, encoding="utf-8")
    (repo / "snapshots").mkdir()
    folder.rename(repo / "snapshots" / revision)
    model, _ = pretrained.load_gpt2("gpt2")
    assert model.config.n_embd == 12 and no_network == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder / "nowhere", "no model called .*nowhere.* and no such folder"),
        (lambda folder: "gpt3", "no model called 'gpt3'.*tiny.*gpt2-xl"),
        (lambda folder: folder.parent, "holds no config.json"),
    ],
)
def test_what_is_not_there_is_named(folder, make, words):
    with pytest.raises(pretrained.ModelNotAvailable, match=words):
        pretrained.load_gpt2(make(folder))


def test_another_kind_of_model_is_refused(tmp_path):
    BertConfig().save_pretrained(tmp_path)
    with pytest.raises(pretrained.ModelNotAvailable, match="type 'bert'.*type 'gpt2'"):
        pretrained.load_gpt2(tmp_path)


def test_a_broken_weights_file_is_named(folder):
    (folder / "model.safetensors").write_bytes(b"not weights")
    for load in (pretrained.load_gpt2, pretrained.open_attention_weights):
        with pytest.raises(pretrained.ModelNotAvailable, match="model.safetensors"):
            load(folder)


def test_a_model_that_returns_no_attentions_is_refused(folder):
    silent = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="sdpa")
    with pytest.raises(pretrained.ModelNotAvailable, match="attn_implementation='eager'"):
        pretrained.check_attentions(silent)


def test_attention_weights_read_layer_by_layer_are_the_models(folder):
    model, _ = pretrained.load_gpt2(folder)
    lazy = pretrained.open_attention_weights(folder)
    assert len(lazy.h) == 2
    for layer in (0, 1, -1):
        for found, expected in zip(
            weights.head_weights(lazy, layer), weights.head_weights(model, layer), strict=True
        ):
            assert torch.equal(found, expected)
    found, expected = (weights.qkv_statistics(each) for each in (lazy, model))
    assert torch.equal(found, expected)
    with pytest.raises(IndexError, match="layer 2 asked for, but the model has 2"):
        lazy.h[2]


def test_attention_weights_may_be_named_without_the_transformer_prefix(folder):
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    plain = {name.removeprefix("transformer."): t for name, t in load_file(path).items()}
    whole = pretrained.open_attention_weights(folder).h[1].attn.c_attn.weight
    save_file(plain, path, metadata={"format": "pt"})
    assert torch.equal(pretrained.open_attention_weights(folder).h[1].attn.c_attn.weight, whole)


def test_gpt2s_own_configuration_has_the_structure_the_library_reads():
    with torch.device("meta"):
        model = GPT2LMHeadModel._from_config(GPT2Config(), attn_implementation="eager")
    block = model.transformer.h[11]
    assert block.attn.c_attn.weight.shape == (768, 2304) and len(model.transformer.h) == 12
    heads = weights.head_weights(model, 11)
    assert heads.w_q.shape == (12, 768, 64) and heads.w_o.shape == (12, 64, 768)
    assert pretrained.describe(model).endswith("hidden size 768, 124.4 M parameters")


@pytest.mark.slow
def test_importing_the_library_does_not_import_transformers():
    modules = "ablation, circuits, modeling_lm, patching, plots, pretrained, training, weights"
    program = (
        f"import sys\nfrom transformer_lm import {modules}\nprint('transformers' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
