"""What is said of layers comes with the line that makes them."""

import re

import pytest

from tests.tracing.helper import told
from tests.tracing.styles import causal

CLASS = """class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
{layers}

    def forward(self, x):
        q, k, v = {q}(x), {k}(x), {v}(x)
        return (q @ k.mT / k.shape[-1] ** {root}).softmax(-1) @ v
"""


def written(q="q", k="k", v="v", width="hidden", root="0.5", twice=False) -> str:
    rows = [
        f"self.{q} = nn.Linear(input_size, hidden)",
        f"self.{k} = nn.Linear(input_size, hidden)",
    ]
    rows.append(f"self.{v} = nn.Linear(input_size, {width})")
    rows += [rows[-1]] if twice else []
    layers = "\n".join(f"        {row}" for row in rows)
    return CLASS.format(layers=layers, q=f"self.{q}", k=f"self.{k}", v=f"self.{v}", root=root)


def said(source: str) -> list[tuple[str, int | None, str]]:
    """(check, line, how) of each finding."""
    found = told("one_head.forward", source)
    return [(f.check, f.line, f.where.how if f.where else "") for f in found]


@pytest.mark.parametrize(
    "source, check, line, how",
    [
        (written(k="key"), "layer.name", 5, "another name than asked for"),
        (written("wq", "wk", "wv"), "layer.name", 4, "so in lines 5 and 6"),
        (written(width="hidden + 1"), "layer.width", 6, "other sizes than asked for"),
    ],
    ids=["one name", "three names", "a width"],
)
def test_the_line_is_the_one_that_makes_the_layer(source, check, line, how):
    found = next(each for each in said(source) if each[0] == check)
    assert found[1] == line and how in found[2]


def test_what_is_wrong_beside_a_name_keeps_its_own_finding():
    first, second = said(written(v="value", root="1"))
    assert first[0] == "scale.not a root" and second[:2] == ("layer.name", 6)


def test_of_a_layer_that_is_made_twice_no_line_is_told():
    (found,) = said(written(v="value", twice=True))
    assert found[:2] == ("layer.name", None)


DROPS = causal("""
table = self.q(x) @ self.k(x).mT / self.q.out_features ** 0.5
later = torch.ones(x.shape[1], x.shape[1]).triu(1) > 0
table = {masked}
shares = {shares}
return {result}""")
FILLED = "table.masked_fill(later, -torch.inf)"


@pytest.mark.parametrize(
    "masked, shares, result, line, kind",
    [
        (f"self.noise({FILLED})", "table.softmax(-1)", "shares @ self.v(x)", 12, "on the scores"),
        (FILLED, "table.softmax(-1)", "self.noise(shares @ self.v(x))", 14, "not on the weights"),
        (f"self.noise({FILLED})", "self.noise(table.softmax(-1))", "shares @ self.v(x)", None, ""),
    ],
    ids=["hidden scores", "the result", "two places"],
)
def test_where_dropout_has_one_line_that_is_where_the_wrong_thing_is_dropped(
    masked, shares, result, line, kind
):
    """Infinity times 0 is NaN, in training alone, where a score that hides is dropped."""
    source = DROPS.format(masked=masked, shares=shares, result=result)
    (found,) = told("masks.attention", source)
    assert found.line == line and found.check.startswith(f"dropout.{kind}")


def test_weights_divided_by_what_was_not_dropped_are_no_dropped_scores():
    """A row whose weights are all dropped is NaN then as well."""
    again = "shares / shares.sum(-1, keepdim=True)"
    source = DROPS.format(
        masked=FILLED, shares="self.noise(table.softmax(-1))", result=f"({again}) @ self.v(x)"
    )
    (found,) = told("masks.attention", source)
    assert found.check.startswith("dropout.") and found.check != "dropout.on the scores"


def test_where_what_dropout_gave_is_changed_again_that_line_is_told():
    again = "shares / (shares.sum(-1, keepdim=True) + 1e-9)"
    shares = f"self.noise(table.softmax(-1))\n        shares = {again}"
    source = DROPS.format(masked=FILLED, shares=shares, result="shares @ self.v(x)")
    (found,) = told("masks.attention", source)
    assert found.line == 14 and "in line 13 is changed again behind it" in found.message


@pytest.mark.parametrize("made", ["nn.Dropout(0.1)", "nn.Dropout(p=0.1)", "nn.Dropout()"])
def test_a_dropout_of_a_number_of_its_own_has_the_line_that_makes_it(made):
    source = DROPS.format(
        masked=FILLED, shares="self.noise(table.softmax(-1))", result="shares @ self.v(x)"
    ).replace("nn.Dropout(dropout)", made)
    (found,) = told("masks.attention", source)
    assert found.line == 7
    assert re.search("not the argument|where `dropout` belongs", found.where.how)
