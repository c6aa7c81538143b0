"""What the steps prove against what values suggest, each beside a program that looks alike."""

from __future__ import annotations

import pytest
import torch

from autograder.tracing.differs import differs
from tests.tracing.helper import told
from tests.tracing.styles import causal, single

HEADS = """
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0.0):
        super().__init__()
        if hidden % num_heads:
            raise ValueError("hidden must be divisible by num_heads")
        self.heads, self.size, self.causal = num_heads, hidden // num_heads, causal
        self.q, self.k = nn.Linear(input_size, hidden), nn.Linear(input_size, hidden)
        self.v, self.mix = nn.Linear(input_size, hidden), nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        items, tokens, _ = x.shape
        q = self.q(x).view(items, tokens, self.heads, self.size).transpose(1, 2)
        k = self.k(x).view(items, tokens, self.heads, self.size).transpose(1, 2)
        v = {values}
        s = q @ k.mT / self.size ** 0.5
        if self.causal:
            later = {mask}
            s = s.masked_fill(later, {fill})
        p = s.softmax({dim})
        out = (self.dropout(p) @ v){merged}
        out = {out}
        return (out, {shown}) if return_attention else out
"""
PARTS = {
    "values": "self.v(x).view(items, tokens, self.heads, self.size).transpose(1, 2)",
    "mask": "torch.ones(tokens, tokens).triu(1).bool()",
    "fill": "-1e30",
    "dim": "-1",
    "merged": ".transpose(1, 2).flatten(2)",
    "out": "self.mix(out)",
    "shown": "p.flatten(0, 1)",
}


def one_head(*lines: str) -> str:
    projected = "q, k, v = self.q(x), self.k(x), self.v(x)"
    return single("\n".join((projected, *lines)), "Attention")


def heads(**other: str) -> str:
    return HEADS.format(**(PARTS | other)).lstrip()


def line_of(source: str, text: str) -> int:
    (line,) = (n for n, each in enumerate(source.split("\n"), 1) if text in each)
    return line


# --- masks ---------------------------------------------------------------------------------------
LATER = torch.ones(5, 5).triu(1).bool()


@pytest.mark.parametrize(
    "hidden, how",
    [
        (~LATER, "what should be seen is hidden, and what should be hidden is seen"),
        (torch.ones(5, 5).triu(0).bool(), "the diagonal is hidden too, so that no token sees"),
        (torch.ones(5, 5).tril(-1).bool(), "what should be seen is hidden, but for the diagonal"),
        (torch.ones(5, 5).tril(-2).bool(), "other places are hidden than should be"),
        (torch.ones(5, 5).triu(-1).bool(), "9 places too many are hidden"),
    ],
    ids=["inverted", "diagonal", "inverted, with the diagonal", "another", "two diagonals"],
)
def test_a_mask_is_told_by_its_pattern(hidden, how):
    scores = torch.arange(25.0, dtype=torch.float64).reshape(5, 5).sin()
    right, wrong = (scores.masked_fill(mask, -1e9) for mask in (LATER, hidden))
    assert how in differs(wrong, right)


@pytest.mark.parametrize(
    "mask, line, said",
    [
        ("torch.ones(tokens, tokens).triu(0).bool()", "triu(0)", "hides the current token too"),
        ("torch.ones(tokens, tokens).tril(0).bool()", "tril(0)", "the wrong way round"),
    ],
    ids=["diagonal", "inverted"],
)
def test_a_row_that_is_hidden_as_a_whole_shows_no_later_tokens(mask, line, said):
    """A large number in all places of a row leaves equal shares, which nobody asked for."""
    source = heads(mask=mask, fill="-1e9", out="out")
    (found,) = (f for f in told("multi_head.mask", source) if f.fails)
    assert found.line == line_of(source, line) and said in found.message
    assert "keep a share" not in found.message


def test_later_tokens_that_keep_a_share_are_said_to():
    source = heads(mask="torch.ones(tokens, tokens).triu(3).bool()")
    (found,) = (f for f in told("multi_head.mask", source) if f.fails)
    assert "keep a share" in found.message


SCRAMBLED = "self.v(x).view(items, self.heads, tokens, self.size)"


@pytest.mark.parametrize("fill, is_said", [("-1e30", False), ("0.0", True)])
def test_hidden_scores_are_said_to_be_0_where_they_are(fill, is_said):
    """A softmax over the heads gives equal shares where all heads hide, as zeros would."""
    source = heads(values=SCRAMBLED, dim="1", fill=fill)
    (found,) = (f for f in told("multi_head.mask", source) if f.fails)
    assert ("set to 0" in found.message) == is_said


# --- scales and axes -----------------------------------------------------------------------------
def test_values_that_are_scaled_are_told_with_their_line():
    source = one_head("v = v / v.shape[-1] ** 0.5", "return (q @ k.mT).softmax(-1) @ v")
    (found,) = told("one_head.forward", source)
    assert found.line == line_of(source, "v = v /") and "sums" not in found.message
    assert "too small by a factor" in found.where.how


def test_an_inverted_mask_over_scores_that_nobody_scaled_is_told_of_both():
    source = DROPS.format(
        table="self.q(x) @ self.k(x).mT",
        hides="~later",
        dropped="p",
        out="self.noise(w) @ self.v(x)",
    )
    (found,) = told("masks.attention", source)
    assert found.line == line_of(source, "masked_fill")
    assert "what should be seen is hidden" in found.where.how
    assert "what comes in is too large by a factor" in found.where.how


def test_heads_joined_along_the_tokens_are_told_by_the_axis():
    source = heads(
        merged="", out="self.mix(torch.cat(out.unbind(1), dim=1).reshape(items, tokens, -1))"
    )
    (found,) = (f for f in told("multi_head.output", source) if f.fails)
    assert found.line == line_of(source, "torch.cat") and "joins along dim=1" in found.where.how


def test_what_comes_back_in_another_shape_is_told_at_the_return():
    source = heads(shown="p")
    (found,) = (f for f in told("multi_head.output", source) if f.fails)
    assert found.line == line_of(source, "return (out") and "shape" in found.where.how


def test_a_shape_that_a_line_of_its_own_gave_is_not_told_at_the_return():
    source = heads(shown="p.transpose(0, 1)")
    assert not [f for f in told("multi_head.output", source) if f.fails and f.line is not None]


def test_what_calls_that_are_right_have_in_common_is_said_and_no_more():
    source = one_head("w = (q @ k.reshape(len(x), -1, x.shape[1]) / 7).softmax(-1)", "return w @ v")
    (found,) = told("one_head.forward", source)
    assert "(input_size" not in found.message
    assert "size 1 along axis 1" in found.message


# --- loops ---------------------------------------------------------------------------------------
LOOP = "torch.softmax(q[i] @ k[i].mT / q.shape[-1] ** 0.5, dim=-1) @ v[i]"


@pytest.mark.parametrize(
    "lines, is_said",
    [
        (["out = 0", "for i in range(len(x)):", f"    out = {LOOP}", "return out"], True),
        (["out = 0", "for i in range(len(x)):", f"    out = out + {LOOP}", "return out"], False),
        (["for i in range(len(x)):", f"    return {LOOP}"], False),
    ],
    ids=["overwritten", "added up", "returned at once"],
)
def test_rounds_that_overwrite_one_another_are_told(lines, is_said):
    source = one_head(*lines)
    (found,) = told("one_head.forward", source)
    said = found.where is not None and "each round replaces" in found.where.how
    assert said == is_said and (not is_said or found.line == line_of(source, LOOP))


@pytest.mark.parametrize(
    "sizes, bound, is_said",
    [
        ("tokens, items, _ = x.shape", "items", True),
        ("items, tokens, _ = x.shape", "items + 1", False),
        ("items, tokens, _ = x.shape", "tokens", True),
    ],
    ids=["exchanged", "one too far", "the other size"],
)
def test_an_index_past_the_end_is_told_by_the_axis_that_its_bound_came_from(sizes, bound, is_said):
    source = one_head(
        sizes, "rows = []", f"for i in range({bound}):", f"    rows.append({LOOP})",
        "return torch.stack(rows)",
    )  # fmt: skip
    (found,) = told("one_head.forward", source)
    assert found.line == line_of(source, LOOP if is_said else f"range({bound})")
    assert ("from axis 1 of `x`" in found.message) == is_said


@pytest.mark.parametrize(
    "part, out, line",
    [
        ("0:size", "out", "[..., 0:size]"),
        ("0:size", "self.mix(out)", "[..., 0:size]"),
        ("h * size : (h + 1) * size", "out", "out = out"),
    ],
    ids=["and a layer missing", "alone", "the layer alone"],
)
def test_heads_that_take_the_same_values_are_told_though_a_layer_is_missing_behind(part, out, line):
    source = heads(
        values="self.v(x)",
        out=out,
        merged="",
    ).replace(
        "        out = (self.dropout(p) @ v)\n",
        "        size, rows = self.size, []\n"
        "        for h in range(self.heads):\n"
        f"            own = v[..., {part}]\n"
        "            rows.append(self.dropout(p[:, h]) @ own)\n"
        "        out = torch.cat(rows, -1)\n",
    )
    (found,) = (f for f in told("multi_head.output", source) if f.fails)
    assert found.line == line_of(source, line)
    assert ("same in every round" in found.where.how) == (part == "0:size")


# --- dropout -------------------------------------------------------------------------------------
DROPS = causal("""
later = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
s = ({table}).masked_fill({hides}, -1e30)
p = s.softmax(-1)
w = {dropped}
out = {out}
return out""")
SCALED = "self.q(x) @ self.k(x).mT / self.q.out_features ** 0.5"


@pytest.mark.parametrize(
    "dropped, out, twice",
    [
        ("self.noise(p)", "self.noise(w @ self.v(x))", True),
        ("p", "self.noise(w @ self.noise(self.v(x)))", False),
        ("p", "self.noise(w @ self.v(x))", False),
    ],
    ids=["weights and result", "values and result", "result"],
)
def test_dropout_is_said_to_act_twice_where_the_weights_are_dropped_too(dropped, out, twice):
    source = DROPS.format(table=SCALED, hides="later", dropped=dropped, out=out)
    (found,) = told("masks.attention", source)
    assert ("acts twice" in found.message) == twice
    assert not twice or found.line == line_of(source, "out = self")


def test_a_second_dropout_is_told_beside_another_mistake():
    source = DROPS.format(
        table="self.q(x) @ self.k(x).mT", hides="later", dropped="self.noise(p)",
        out="self.noise(w @ self.v(x))",
    )  # fmt: skip
    (found,) = told("masks.attention", source)
    assert found.check == "scale.missing" and "Dropout acts twice" in found.message


def test_dropout_in_two_branches_is_no_second_one():
    source = DROPS.format(
        table="self.q(x) @ self.k(x).mT", hides="later",
        dropped="self.noise(p) if len(x) > 1 else self.noise(p)", out="w @ self.v(x)",
    )  # fmt: skip
    (found,) = told("masks.attention", source)
    assert "twice" not in found.message
