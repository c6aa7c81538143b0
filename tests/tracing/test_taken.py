"""A line that takes one tensor for another is told as that, and no layer is spoken of."""

import pytest

from tests.tracing.helper import told
from tests.tracing.styles import single

LAYERS = """
q, k, v = self.q(x), self.k(x), {third}
table = {first} @ k.mT / self.hidden ** 0.5
shares = torch.softmax({table}, -1)
return shares @ {second}"""


def said(**changes):
    usual = {"first": "q", "second": "v", "third": "self.v(x)", "table": "table"}
    source = single(LAYERS.format(**{**usual, **changes}), "Attention")
    return next(f for f in told("one_head.forward", source.lstrip()) if f.fails)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"second": "k"}, "The keys are taken where the values belong."),
        ({"second": "q"}, "The queries are taken where the values belong."),
        ({"first": "k"}, "The keys are taken where the queries belong."),
    ],
)
@pytest.mark.parametrize("table", ["table", "table.softmax(-1)"])
def test_what_a_product_takes_for_another_was_made_with_no_wrong_layer(changes, words, table):
    found = said(table=table, **changes)
    said_by_name = f"`{'k' if 'keys are' in words else 'q'}` is taken where another belongs"
    assert words in found.message or said_by_name in found.message
    assert "are made with" not in found.message


@pytest.mark.parametrize("table", ["table", "table.softmax(-1)"])
def test_a_layer_called_for_another_is_told_as_that(table):
    found = said(third="self.k(x)", table=table)
    assert "The values are made with the keys' projection." in found.message
