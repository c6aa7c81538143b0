"""The tools that trained the models on board: rows, losses, vocabulary, growth."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from tools.train import recipe, rows, text
from tools.train.grow import load_grown
from tools.train.guide import guide_loss
from tools.train.loop import new_model, rate_at
from tools.train.recipe import Phase, Size
from tools.train.softmax_loss import SoftmaxLoss
from tools.train.stories import stories
from tools.train.tokenizer import pieces, write_prefix_tokenizer

FULL_TOKENIZER = Path(__file__).parents[1] / "models" / "gpt2-tokenizer"
END_OF_TEXT = recipe.VOCAB_SIZE - 1
COPIES = Phase("all copies", 1.0, 1, 1e-3)


@pytest.fixture
def corpus():
    words = np.arange(20_000, dtype=np.uint16) % END_OF_TEXT
    starts = np.arange(0, 20_000, 100)
    return text.Corpus(words, words, starts, words[:256][None], words[:256][None], END_OF_TEXT)


def test_softmax_loss_and_its_gradients_are_those_of_cross_entropy():
    torch.manual_seed(0)
    hidden = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    embedding = (3 * torch.randn(11, 5, dtype=torch.float64)).requires_grad_()
    ids = torch.randint(0, 11, (7,))
    ours = SoftmaxLoss.apply(hidden, embedding, ids)
    theirs = cross_entropy(hidden @ embedding.T, ids)
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    for mine, right in zip(
        torch.autograd.grad(2 * ours, [hidden, embedding]),
        torch.autograd.grad(2 * theirs, [hidden, embedding]),
        strict=True,
    ):
        torch.testing.assert_close(mine, right, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_each_copied_token_is_the_one_at_its_source_and_so_is_the_one_before(corpus, seed):
    ids, source = rows.copy_row(corpus, COPIES, np.random.default_rng(seed))
    place = np.flatnonzero(source >= 0)
    assert len(place) > 50
    assert (source[place] < place).all()
    assert (ids[place] == ids[source[place]]).all()
    assert (ids[place - 1] == ids[source[place] - 1]).all()


def test_the_loss_of_a_copy_row_counts_copied_tokens_alone(corpus):
    batch = rows.draw_batch(corpus, 8, COPIES, np.random.default_rng(3))
    assert batch.in_loss.any()
    assert (batch.source[batch.in_loss] >= 0).all()


def test_the_first_column_is_never_in_the_loss(corpus):
    phase = Phase("all text", 0.0, 1, 1e-3)
    batch = rows.draw_batch(corpus, 64, phase, np.random.default_rng(3))
    assert not batch.in_loss[:, 0].any()
    assert 0.25 < batch.in_loss.float().mean() < 0.4


def test_the_end_of_a_book_is_kept_apart_between_paragraphs():
    book = "\n".join(f"paragraph {i} of the book" for i in range(2_000))
    head, tail = text.split_tail(book)
    assert f"{head}\n{tail}" == book
    assert text.TAIL_CHARS - 100 < len(tail) <= text.TAIL_CHARS


def test_guided_heads_that_look_right_have_no_loss():
    source = torch.tensor([[-1, -1, -1, -1, 2, 3]])
    right = torch.full((1, 2, 6, 6), 0.5)
    right[:, 0] = torch.diag(torch.ones(5), -1)
    above = torch.full((1, 2, 6, 6), 0.5)
    above[:, 0] = 0
    above[0, 0, 3, 2] = above[0, 0, 4, 3] = 1
    assert guide_loss((right, above), source).item() == pytest.approx(0, abs=1e-5)
    assert guide_loss((above, right), source).item() > 5


def test_a_grown_model_starts_with_the_logits_of_the_shallow_one():
    shallow = new_model(Size(num_layers=2, num_heads=2, hidden=16, seed=1)).eval()
    deeper = new_model(Size(num_layers=4, num_heads=2, hidden=16, seed=2)).eval()
    load_grown(deeper, shallow.state_dict(), [])
    ids = torch.arange(40)[None]
    with torch.no_grad():
        torch.testing.assert_close(deeper(ids).logits, shallow(ids).logits)


def test_a_model_does_not_grow_from_another_width_or_a_deeper_one():
    narrow = new_model(Size(num_layers=2, num_heads=2, hidden=16, seed=1))
    wide = new_model(Size(num_layers=3, num_heads=2, hidden=32, seed=2))
    with pytest.raises(ValueError, match="one hidden size"):
        load_grown(wide, narrow.state_dict(), [])
    deep = new_model(Size(num_layers=3, num_heads=2, hidden=16, seed=2))
    with pytest.raises(ValueError, match="only the depth and the vocabulary may grow"):
        load_grown(narrow, deep.state_dict(), [])


def test_a_new_word_begins_as_the_mean_of_its_two_pieces(tmp_path):
    for folder, vocab_size in (("few", 400), ("many", 1_000)):
        write_prefix_tokenizer(FULL_TOKENIZER, tmp_path / folder, vocab_size)
    few = new_model(Size(num_layers=1, num_heads=2, hidden=16, seed=1, vocab_size=400))
    many = new_model(Size(num_layers=2, num_heads=2, hidden=16, seed=2, vocab_size=1_000))
    load_grown(many, few.state_dict(), pieces(tmp_path / "many"))
    old, new = few.transformer.wte.weight, many.transformer.wte.weight
    assert torch.equal(new[:399], old[:399]) and torch.equal(new[999], old[399])
    assert many.lm_head.weight is new
    names = json.loads((tmp_path / "many" / "vocab.json").read_text(encoding="utf-8"))
    assert torch.equal(new[names["Ġhad"]], (new[names["Ġh"]] + new[names["ad"]]) / 2)


@pytest.mark.parametrize("name", recipe.SIZES)
def test_the_rate_of_learning_rises_and_falls_as_the_phase_says(name):
    for phase in recipe.PHASES[name]:
        seen = np.linspace(0, phase.max_tokens, 50)
        rates = [rate_at(phase, tokens, step=1_000) for tokens in seen]
        assert rates[0] == pytest.approx(phase.learning_rate)
        assert rate_at(phase, 0, step=0) < rates[0] / 50
        last = {"": 1, "line": 0.05, "cosine": 0.1}[phase.decay] * phase.learning_rate
        assert rates[-1] == pytest.approx(last)
        assert rates == sorted(rates, reverse=True)


def test_a_vocabulary_out_of_order_is_refused(tmp_path):
    shutil.copy(FULL_TOKENIZER / "merges.txt", tmp_path)
    vocab = json.loads((FULL_TOKENIZER / "vocab.json").read_text(encoding="utf-8"))
    vocab["Ġthe"], vocab["Ġa"] = vocab["Ġa"], vocab["Ġthe"]
    (tmp_path / "vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    with pytest.raises(ValueError, match="Only GPT-2's own two files can be shortened"):
        write_prefix_tokenizer(tmp_path, tmp_path / "out", 500)


def test_a_seed_always_makes_the_same_stories():
    assert stories(5, seed=1) == stories(5, seed=1) != stories(5, seed=2)
