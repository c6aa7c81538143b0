"""A known mistake that explains all is told where its own program makes it, though no replay proves
the line; and rows that come in another order, where they get it."""

import pytest

from autograder.tracing.proof.across import across_items
from tests.tracing.helper import look, told
from tests.tracing.styles import single


def said(task: str, source: str):
    return next(f for f in told(task, source.lstrip()) if f.fails)


def line(task: str, source: str):
    """The number of the line that is told, and its text."""
    where, source = said(task, source).where, source.lstrip()
    return (where.first_wrong, source.split("\n")[where.first_wrong - 1].strip()) if where else None


# --- numbers of the known mistake's own program --------------------------------------------------
SCRAMBLED = """
def attend(q, k, v, num_heads):
    batch, tokens, hidden = q.shape
    size = hidden // num_heads
    {cut}
    table = torch.einsum("...id,...jd->...ij", a, b) / size ** 0.5
    table = table + torch.full((tokens, tokens), -torch.inf).triu(1)
    shares = table.softmax(-1)
    out = (shares @ c).reshape(batch, tokens, hidden)
    return out, shares.reshape(-1, tokens, tokens)
"""


@pytest.mark.parametrize(
    "cut",
    [
        "a, b, c = (t.reshape(-1, tokens, size) for t in (q, k, v))",
        "a, b, c = map(lambda t: t.view(batch, num_heads, tokens, size), (q, k, v))",
    ],
)
def test_heads_that_are_cut_and_merged_by_a_reshape_are_told_where_they_are_cut(cut):
    assert line("heads.attend", SCRAMBLED.format(cut=cut)) == (4, cut)


ROPE = """
def rotate(x, positions, base=10000.0):
    size = x.shape[-1]
    speeds = base ** (-torch.arange(0, size, 2).to(x.dtype) / size)
    angles = positions.to(x.dtype)[:, None] * speeds
    c = torch.cos(angles).repeat_interleave(2, -1)
    s = torch.sin(angles).repeat_interleave(2, -1)
    left, right = x.chunk(2, -1)
    return x * c + torch.cat((-right, left), -1) * s
"""


def test_angles_that_are_repeated_otherwise_than_halves_are_paired_have_a_line():
    assert line("variants.rope", ROPE)[0] == 5


LATE = """
def alibi_attention(q, k, v, slopes):
    rows = torch.arange(q.shape[2])[:, None]
    far = rows - rows.T
    cost = torch.einsum("h,ij->hij", slopes, far.to(slopes.dtype))
    table = torch.sub(torch.einsum("bhid,bhjd->bhij", q, k), cost)
    table = table.div(q.shape[3] ** 0.5).masked_fill(far < 0, -1e20)
    return F.softmax(table, dim=3) @ v
"""


def test_a_penalty_before_the_scale_is_told_whatever_it_holds_where_scores_are_hidden():
    found = said("variants.alibi", LATE)
    assert found.check == "alibi.scaled afterwards" and found.where.first_wrong == 5


READ_FIRST = """
def linear_steps(q, k, v, state, total):
    asks, keys = F.elu(q) + 1, F.elu(k) + 1
    rows = []
    for ask, key, value in zip(asks.unbind(1), keys.unbind(1), v.unbind(1)):
        upper = torch.bmm(ask[:, None], state)[:, 0]
        lower = (ask * total).sum(1, keepdim=True)
        state = state + torch.bmm(key[:, :, None], value[:, None])
        total = total + key
        rows.append(upper / lower)
    return torch.stack(rows, dim=1), state, total
"""


def test_a_state_that_is_read_before_it_is_written_is_told_where_it_is_read():
    found = said("variants.recurrent", READ_FIRST)
    assert found.check == "recurrent.read before written" and found.where.first_wrong == 5


HEADS_FIRST = """
def heads_of(wide, num_heads):
    parts = wide.unflatten(-1, (num_heads, 3, -1)).movedim(2, 1)
    return parts[..., 0, :], parts[..., 1, :], parts[..., 2, :]
"""


def test_parts_of_an_axis_that_was_cut_in_another_order_are_told_where_it_was_cut():
    found = said("activations.split", HEADS_FIRST)
    assert found.where.first_wrong == 2
    assert found.where.how == "the parts that line 3 takes of it are not the ones asked for"


# --- rows in another order -----------------------------------------------------------------------
PROJECT = """
def project(x, w_query, w_key, w_value):
    {first} = x @ w_query
    {second} = x @ w_{other}
    {third} = x @ w_{another}
    return {first}, {returned}
"""


@pytest.mark.parametrize(
    "names, layers, returned, number",
    [
        (("a", "b", "c"), ("key", "value"), "c, b", 5),
        (("qs", "ks", "vs"), ("key", "value"), "vs, ks", 5),
        (("q", "v", "k"), ("value", "key"), "v, k", 5),
        (("q", "v", "k"), ("key", "value"), "k, v", None),  # they are called by another's name
        (("a", "b", "c"), ("value", "key"), "b, c", None),  # nobody can tell which
    ],
)
def test_what_is_returned_in_another_order_is_told_where_names_or_places_show_it(
    names, layers, returned, number
):
    first, second, third = names
    own = {"first": first, "second": second, "third": third, "returned": returned}
    source = PROJECT.format(**own, other=layers[0], another=layers[1])
    found = said("one_head.project", source)
    assert found.check == "projections.k and v swapped"
    assert (found.where.first_wrong if found.where else None) == number


AT_ONCE = """
def project(x, w_query, w_key, w_value):
    return x.mm(w_query), x.mm(w_value), x.mm(w_key)
"""


def test_what_is_made_in_the_return_in_another_order_is_told_there():
    assert said("one_head.project", AT_ONCE).where.first_wrong == 2


HELPER = """
    def three(self, x):
        ask = self.q(x)
        {second} = self.k(x)
        {third} = self.v(x)
        return ask, offer, content
"""


def unpacked(given: str, keys: str, values: str, made: tuple[str, str]) -> str:
    body = f"""
{given} = self.three(x)
table = {given.split(",")[0]} @ {keys}.mT / self.hidden ** 0.5
return table.softmax(-1) @ {values}"""
    return single(body) + HELPER.format(second=made[0], third=made[1])


def test_what_is_unpacked_in_another_order_than_it_was_named_is_told_where_it_is_unpacked():
    source = unpacked("ask, content, offer", "offer", "content", ("offer", "content"))
    found = said("self_attention.forward", source)
    assert found.check == "projections.k and v swapped" and found.where.first_wrong == 10


@pytest.mark.parametrize(
    "given, keys, values, made",
    [
        ("a, b, c", "c", "b", ("offer", "content")),  # the names do not show it
        ("ask, offer, content", "content", "offer", ("offer", "content")),
    ],
)
def test_the_unpacking_has_no_line_where_its_names_are_those_returned(given, keys, values, made):
    where = said("self_attention.forward", unpacked(given, keys, values, made)).where
    assert where is None or where.first_wrong != 10


def test_of_a_helper_in_the_right_order_nothing_is_said():
    source = unpacked("ask, offer, content", "offer", "content", ("offer", "content"))
    assert told("self_attention.forward", source) == ()
    assert look("self_attention.forward", source).told() == []


# --- items that meet one another -----------------------------------------------------------------
ALL_AT_ONCE = """
def batched_attention(q, k, v):
    items, tokens, size = q.shape
    asked, offered, content = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)
    table = asked.mm(offered.t()) * size ** -0.5
    {kept}
    return torch.softmax(table, 1).mm({content}).unflatten(0, (items, tokens))
"""
BLOCKS = """same = torch.arange(items).repeat_interleave(tokens)
    table = table.masked_fill(same[:, None] != same, -torch.inf)"""


def test_a_product_across_the_items_of_a_batch_is_told_of():
    found = said("one_head.batched", ALL_AT_ONCE.format(kept="", content="content"))
    assert found.where.first_wrong == 4
    assert "items of the batch meet one another: 7 blocks" in found.where.how


def test_a_product_across_items_is_no_mistake_where_the_others_are_hidden():
    right = ALL_AT_ONCE.format(kept=BLOCKS, content="content").lstrip()
    assert told("one_head.batched", right) == ()
    wrong = ALL_AT_ONCE.format(kept=BLOCKS, content="content.tanh()").lstrip()
    assert across_items(look("one_head.batched", wrong).judged) == []
    assert across_items(look("one_head.batched", wrong.replace(BLOCKS, "")).judged) != []
