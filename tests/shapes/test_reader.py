"""The lexer and the reader alone: the text of a comment in, claims out."""

import pytest

from autograder.shapes.text.dims import read_dims, shape_fits
from autograder.shapes.text.lexer import TABLE, tokens
from autograder.shapes.text.reader import legends
from autograder.shapes.text.reader import read as read_claims
from autograder.shapes.text.shapes_in_text import Vocabulary

KNOWN = Vocabulary(tensors=("q", "k", "v", "x", "probs"), sizes=("bs", "seq", "hidden", "heads"))


def read(text):
    """Each claim as its chain of stages, each stage as the texts of its shapes."""
    return [[[t.text for t in s.terms] for s in c.stages] for c in read_claims([(1, text)], KNOWN)]


@pytest.mark.parametrize(
    "text",
    [
        "[bs, seq, hidden]",
        "(bs, seq, hidden)",
        "{bs, seq, hidden}",
        "torch.Size([bs, seq, hidden])",
        "shape: [bs, seq, hidden]",
        "the result is of shape (bs, seq, hidden)",
        "bs x seq x hidden",
        "bs, seq, hidden",
        "q: [bs, seq, hidden]",
    ],
)
def test_one_shape_of_three_sizes_in_every_notation(text):
    (claim,) = read_claims([(1, text)], KNOWN)
    assert [d for t in claim.stages[-1].terms for d in t.dims] == [
        ("name", "bs"),
        ("name", "seq"),
        ("name", "hidden"),
    ]


def spellings(kind):
    (row,) = (row for row in TABLE if row.kind == kind)
    return [*row.signs, *row.words]


ARROWS = [*spellings("arrow"), "-->", "==>", "---->", "\\rightarrow"]
SHAPES = ("[bs, seq]", "[seq, bs]")


@pytest.mark.parametrize("arrow", ARROWS)
def test_every_arrow_makes_a_chain(arrow):
    assert read(f"[bs, seq] {arrow} [seq, bs]") == [[["[bs, seq]"], ["[seq, bs]"]]]


@pytest.mark.parametrize("arrow", ARROWS)
def test_every_arrow_may_begin_a_comment(arrow):
    assert read(f"{arrow} [seq, bs]") == [[["[seq, bs]"]]]
    assert read(f"view {arrow} [seq, bs]")[0][-1] == ["[seq, bs]"]


@pytest.mark.parametrize("arrow", [a for a in ARROWS if not a[0].isalpha()])
def test_a_line_that_begins_with_an_arrow_goes_on_whatever_the_arrow(arrow):
    (claim,) = read_claims([(1, "[bs, seq]"), (2, f"{arrow} [seq, bs]")], KNOWN)
    assert len(claim.stages) == 2


@pytest.mark.parametrize("sign", [s for s in spellings("is") if not s.isalpha()])
def test_every_sign_behind_a_label(sign):
    (claim,) = read_claims([(1, f"q {sign} [bs, seq]")], KNOWN)
    assert claim.stages[0].terms[0].label == "q"


@pytest.mark.parametrize("word", spellings("shape"))
def test_every_word_for_a_shape(word):
    assert read(f"{word} [bs, seq]") == read(f"the {word}: [bs, seq]") == [[["[bs, seq]"]]]


@pytest.mark.parametrize("text", ["bs * heads * seq", "bs, seq, heads and hidden", "bsxheadsxseq"])
def test_lists_without_commas_are_shapes(text):
    ((stages,),) = [read(text)]
    assert stages == [[text]]


def test_each_spelling_stands_in_one_row_of_the_table():
    every = [s for row in TABLE for s in (*row.signs, *row.words)]
    assert len(every) == len(set(every))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.kind)
def test_the_examples_of_the_table_hold_their_kind(row):
    assert row.kind in {t.kind for t in tokens(row.example)}


@pytest.mark.parametrize("sign", ["@", "x", "*", "×"])
def test_shapes_with_an_operator_between_are_operands(sign):
    assert read(f"[bs, seq] {sign} [seq, bs] -> [bs, bs]") == [
        [["[bs, seq]", "[seq, bs]"], ["[bs, bs]"]]
    ]


def test_an_operation_in_a_chain_is_kept_by_its_name():
    (claim,) = read_claims([(1, "[bs, seq] -> view [bs, seq, 1] -> transpose [bs, 1, seq]")], KNOWN)
    assert [s.op for s in claim.stages] == ["", "view", "transpose"]


def test_a_line_that_begins_with_an_arrow_goes_on_with_the_one_before():
    (claim,) = read_claims([(1, "[bs, seq]"), (2, "-> [seq, bs]")], KNOWN)
    assert len(claim.stages) == 2


@pytest.mark.parametrize(
    "text",
    [
        "compute query, key and value (see eq. 1, 2)",
        "project to hidden (no shape)",
        "as in Vaswani et al. [1]",
        "step (3)",
        "(probs, v)",
        "(i, j) is how much token i looks at token j",
        "softmax over the last dim (keys)",
        "B = batch size, T = number of tokens",
        "`[0, 1, ..., max_seq_len - 1]`",
        "[start, start + seq]",
        "(x * w)",
        "(있는 경우) 마스크",
        "can be shorter if one uses self.(q, k, v)",
        "blocks with kernels (1x1, 3x3)",
        "see section (dim 3)",
        "",
    ],
)
def test_prose_is_no_shape(text):
    assert read(text) == []


def test_products_quotients_and_groups_are_read_as_such():
    (claim,) = read_claims([(1, "[bs*heads, hidden // heads, (bs heads)]")], KNOWN)
    b, h = ("name", "bs"), ("name", "heads")
    assert claim.stages[0].terms[0].dims == (
        ("*", b, h),
        ("/", ("name", "hidden"), h),
        ("*", b, h),
    )


def test_a_legend_tells_what_letters_mean():
    found = legends("B = batch size, d: hidden / heads", KNOWN)
    assert found == {
        "B": ("name", "batch_size"),
        "d": ("/", ("name", "hidden"), ("name", "heads")),
    }


@pytest.mark.parametrize(
    "text, stages",
    [
        ("b s h d, b h d s -> b h s s", [["b s h d", "b h d s"], ["b h s s"]]),
        ("b,s,h @ b,h,s -> b,s,s", [["b,s,h", "b,h,s"], ["b,s,s"]]),
        ("bs by seq by hidden", [["bs by seq by hidden"]]),
        ("(bs*heads) x seq x seq", [["(bs*heads) x seq x seq"]]),
        ("(bs, seq, hidden) -> bs x seq", [["(bs, seq, hidden)"], ["bs x seq"]]),
        ("q [bs, seq] @ k [seq, bs] = probs [bs, bs]", [["[bs, seq]", "[seq, bs]"], ["[bs, bs]"]]),
    ],
)
def test_products_and_crosses_need_no_brackets(text, stages):
    assert read(text) == [stages]


def test_a_label_stands_before_a_torch_size_too():
    (claim,) = read_claims([(1, "q.shape: torch.Size([bs, seq, hidden])")], KNOWN)
    assert [t.label for t in claim.terms()] == ["q"]


def test_a_name_and_a_dash_before_a_shape_are_a_label():
    (claim,) = read_claims([(1, "q - bs x seq x hidden")], KNOWN)
    assert [(t.label, len(t.dims)) for t in claim.terms()] == [("q", 3)]


def test_a_tuple_of_one_is_a_shape():
    assert read("the bias that is added here: ones, (1,)") == [[["(1,)"]]]


@pytest.mark.parametrize("text", ["[bs, seq. hidden]", "[bs, seq,, hidden] -> [bs, seq]"])
def test_a_slip_between_two_names_leaves_the_whole_comment_open(text):
    (claim,) = read_claims([(1, text)], KNOWN)
    assert claim.unreadable


def test_a_call_among_the_sizes_may_be_any_size():
    dims = read_dims(tokens("bs, len(bins)"))
    assert shape_fits(dims, (3, 11), {"bs": 3}.get)
    assert not shape_fits(dims, (4, 11), {"bs": 3}.get)
