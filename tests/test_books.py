"""The books, the model that was trained on them, and the black boxes of lesson 08."""

import gzip

import pytest
import torch
import torch.nn.functional as F

from transformer_lm.black_boxes import KINDS, black_box
from transformer_lm.books import TEXT, read_books
from transformer_lm.characters import Characters
from transformer_lm.modeling_attention import MultiHeadSelfAttention
from transformer_lm.modeling_lm import load_language_model
from transformer_lm.pretrained import load_gpt2
from transformer_lm.training import evaluate


def test_every_book_is_cut_once_between_two_paragraphs():
    text, held_out = read_books()
    whole = sum(len(gzip.decompress(path.read_bytes())) for path in TEXT.glob("*.txt.gz"))
    assert len(text) + len(held_out) == whole
    assert 0.04 < len(held_out) / whole < 0.05
    assert text.endswith("\n") and held_out.endswith("\n")


def test_the_end_of_a_book_is_held_out(tmp_path):
    lines = [f"paragraph {i:03}\n" for i in range(100)]
    (tmp_path / "one.txt").write_text("".join(lines))
    text, held_out = read_books(tmp_path)
    assert text + held_out == "".join(lines) and held_out.splitlines()[-1] == "paragraph 099"
    assert held_out.startswith("paragraph 096")


def test_a_folder_without_books_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no .txt file"):
        read_books(tmp_path)


def test_the_text_says_where_it_comes_from():
    page = (TEXT / "README.md").read_text()
    assert len(list(TEXT.glob("*.txt.gz"))) == 5
    for path in TEXT.glob("*.txt.gz"):
        assert f"`{path.name}`" in page
    assert "public domain" in page


# --- The writer on board --------------------------------------------------------------------------


def test_the_writer_reads_the_characters_of_the_books():
    text, held_out = read_books()
    characters, (model, tokenizer) = Characters(text + held_out), load_gpt2(TEXT.parent / "writer")
    assert model.config.vocab_size == len(characters)
    assert tokenizer(held_out[:300])["input_ids"] == characters.encode(held_out[:300]).tolist()


def test_the_writer_is_far_better_than_a_table_of_pairs():
    text, held_out = read_books()
    characters = Characters(text + held_out)
    ids, held_out_ids = characters.encode(text), characters.encode(held_out)
    pairs = torch.ones(len(characters), len(characters))
    pairs.index_put_((ids[:-1], ids[1:]), torch.tensor(1.0), accumulate=True)
    table = F.cross_entropy(pairs.log()[held_out_ids[:-1]], held_out_ids[1:]).item()
    writer = load_language_model(TEXT.parent / "writer", MultiHeadSelfAttention)
    loss = evaluate(writer, held_out_ids, seq_len=64)
    assert 2.3 < table < 2.5 and loss < table - 0.6


# --- The boxes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "causal"), [("full", False), ("causal", True)])
def test_plain_boxes_are_pytorchs_attention(kind, causal):
    q, k, v = torch.randn(3, 9, 6, generator=torch.Generator().manual_seed(0))
    expected = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
    torch.testing.assert_close(black_box(kind)(q, k, v), expected)


def test_no_two_boxes_give_the_same_and_only_one_sees_the_future():
    q, k = torch.randn(2, 30, 6, generator=torch.Generator().manual_seed(1))
    weights = {kind: black_box(kind)(q, k, torch.eye(30)) for kind in KINDS}
    for kind, own in weights.items():
        torch.testing.assert_close(own.sum(-1), torch.ones(30))
        assert bool(own.triu(1).any()) == (kind == "full")
        assert not any(
            torch.allclose(own, other, atol=1e-4) for k2, other in weights.items() if k2 != kind
        )


def test_a_box_that_turns_knows_distances_only():
    box, row = black_box("rope"), torch.randn(6, generator=torch.Generator().manual_seed(2))
    weights = box(row.expand(12, 6), row.expand(12, 6), torch.eye(12)).log()
    for n in (5, 11):  # scores of equal distances differ by a constant of the row
        steps = (weights[n, : n + 1] - weights[n, n]).flip(0)
        torch.testing.assert_close(steps, (weights[11] - weights[11, 11]).flip(0)[: n + 1])


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="no kind 'sparse'"):
        black_box("sparse")
