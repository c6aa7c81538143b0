"""No line is told of a mistake that stands elsewhere, and no mistake that nobody made."""

import pytest

from tests.tracing.helper import look, told
from tests.tracing.styles import single

LAYERS = """
wanted, offered = self.q(x), self.k(x)
content = self.{layer}(x)
table = wanted @ offered.mT / offered.shape[-1] ** 0.5
shares = torch.softmax(table, dim=-1)
shares = {second}
return shares @ content"""


def said(task: str, source: str):
    return next(f for f in told(task, source.lstrip()) if f.fails)


@pytest.mark.parametrize("layer, whose", [("k", "keys'"), ("q", "queries'")])
def test_another_layer_before_a_second_softmax_has_the_line_that_calls_it(layer, whose):
    body = LAYERS.format(layer=layer, second="F.softmax(shares, dim=2)")
    found = said("one_head.forward", single(body, "Attention"))
    assert found.where.first_wrong == 11
    assert f"Line 11: The values are made with the {whose} projection." in found.message
    assert "Line 14: The softmax is applied twice." in found.message
    assert "Mend line 11 first." in found.message


GPT2 = """
def gpt2_attention(x, state, num_heads):
    batch, seq, width = x.shape
    mixed = x @ state["c_attn.weight"] + state["c_attn.bias"]
    {names} = mixed.split(width, dim=2)
    def heads(t):
        return t.reshape(batch, seq, num_heads, width // num_heads).transpose(1, 2)
    table = heads(a) @ heads(b).mT
    table = table / {size} ** 0.5
    later = torch.ones(seq, seq).triu(1) > 0
    shares = table.masked_fill(later, -torch.inf).softmax(-1)
    out = (shares @ heads(c)).transpose(1, 2).flatten(2)
    return out @ state["c_proj.weight"] + state["c_proj.bias"]
"""


def test_what_turned_the_scores_comes_before_what_scaled_them():
    found = said("equal.gpt2", GPT2.format(names="b, a, c", size="width"))
    assert found.where is None or found.where.first_wrong == 4
    assert "Line 4: The three parts of c_attn are q, k and v" in found.message
    assert "Line 8: The scores are divided by the root of hidden" in found.message


def test_two_tensors_that_changed_places_are_one_mistake():
    found = said("equal.gpt2", GPT2.format(names="a, c, b", size="width"))
    assert found.message.startswith("Two things are wrong. Line 4: The three parts")
    assert "added up" not in found.message


TURNED = """
table = self.q(x) @ self.k(x).mT / self.q.out_features ** 0.5
shares = table.softmax(-1)
return torch.einsum("nij,nid->njd", shares, self.v(x))"""


def test_where_one_changed_step_explains_all_no_two_mistakes_are_told():
    found = said("one_head.forward", single(TURNED, "Attention"))
    assert found.where.first_wrong == 12 and "operand stand the wrong way round" in found.message
    assert "Two things" not in found.message and "swapped" not in found.message


OVER_HEADS = """
def attend(q, k, v, num_heads):
    b, n, h = q.shape
    cut = lambda t: t.unflatten(-1, (num_heads, h // num_heads)).movedim(2, 1)
    table = cut(q) @ cut(k).mT * (h // num_heads) ** -0.5
    table = table.masked_fill(torch.ones(n, n).triu(1).bool(), -1e20)
    shares = F.softmax(table, dim=1)
    return (shares @ cut(v)).movedim(1, 2).flatten(2), shares.flatten(0, 1)
"""


def test_a_softmax_over_the_heads_does_not_fill_with_zeros():
    found = said("heads.attend", OVER_HEADS)
    assert found.where.first_wrong == 6 and "set to 0" not in found.message
    assert "Two things" not in found.message


ALIBI = """
def alibi_attention(q, k, v, slopes):
    places = torch.arange(q.shape[2])
    ahead = (places - places[:, None]) * 1.0
    cost = {sign}slopes[:, None, None] * ahead
    table = q @ k.mT / q.shape[-1] ** 0.5
    table = {how}
    table = table.masked_fill(ahead > 0, -torch.inf)
    return torch.softmax(table, -1) @ v
"""


def test_what_is_right_where_it_counts_is_not_the_wrong_line():
    found = said("variants.alibi", ALIBI.format(sign="", how="torch.sub(table, cost)"))
    assert found.check == "alibi.sign" and found.where.first_wrong == 6


def test_a_sign_that_may_belong_in_two_places_is_told_with_both():
    found = said("variants.alibi", ALIBI.format(sign="-", how="table + cost"))
    assert found.check == "alibi.sign" and found.where.first_wrong == 6
    how = "it can be mended here, or in line 4, where what comes in is made"
    assert found.where.how == how


PRUNE = """
def prune(scores, floor):
    shares = torch.softmax(scores, -1)
    whole = shares.sum(-1, keepdim=True)
    return shares.masked_fill(shares < floor, 0.0) / whole
"""


def test_a_sum_of_ones_went_through_no_softmax():
    found = said("masks.in_place", PRUNE)
    assert found.where is None or "softmax" not in found.where.how


DROPPED = """
def dropout(weights, p, training):
    if not training:
        return weights
    stays = torch.rand_like(weights) >= p
    return stays * weights * (1 - p)
"""


def test_zeros_that_fell_by_chance_are_nothing_wrong():
    found = said("masks.dropout", DROPPED)
    assert found.check == "dropout.rescaled the wrong way"
    assert found.where is None or "zeros" not in found.where.how


ROW = """
one, two, three = {row}
table = torch.einsum("nid,njd->nij", one, two) / one.shape[-1] ** 0.5
return table.softmax(-1) @ three"""


def test_a_row_of_layers_that_a_statement_holds_itself_has_its_line():
    row = "(make(x) for make in [self.q, self.v, self.k])"
    found = said("one_head.forward", single(ROW.format(row=row), "Attention"))
    assert found.where.first_wrong == 10 and "Keys and values are swapped" in found.message


def test_a_row_from_elsewhere_is_blamed_where_it_is_made():
    source = single(ROW.format(row="(make(x) for make in self.row)"), "Attention")
    made = "        self.row = [self.q, self.v, self.k]\n\n    def forward"
    found = said("one_head.forward", source.replace("\n    def forward", made))
    assert found.where.first_wrong == 8 and "another order" in found.where.how


SLICED = """
def attend(q, k, v, num_heads):
    batch, seq, width = q.shape
    d = width // num_heads
    outs, maps = [], []
    for i in range(num_heads):
        own = slice(i * d, i * d + d)
        table = q[..., own] @ k[..., own].mT / d ** 0.5
        table = table + torch.full((seq, seq), -torch.inf).triu(1)
        maps.append(table.softmax(-1))
        part = v[:, :, i:d + i]
        outs.append(maps[-1] @ part)
    return torch.cat(outs, -1), torch.stack(maps, 1).flatten(0, 1)
"""


def test_a_slice_of_other_places_is_told_as_such():
    found = said("heads.attend", SLICED)
    assert found.where.first_wrong == 10 and "other places are taken out" in found.where.how


def test_a_number_of_another_size_is_told_with_its_line():
    source = SLICED.replace("v[:, :, i:d + i]", "v[:, :, own]").replace(
        "d ** 0.5", "k[..., own].mT.size(-1) ** 0.5"
    )
    found = said("heads.attend", source)
    assert found.where.first_wrong == 7 and "of its first side" not in found.message
    assert "it divides by the root of" in found.where.how


ITEMS = """
rows = []
for item in x:
    asks, offers = self.q(item), self.k(item)
    table = offers @ asks.T / self.hidden ** 0.5
    rows.append(table.softmax(dim=-1) @ self.v(item))
return torch.stack(rows)"""


def test_scores_that_a_loop_turned_are_not_blamed_on_their_softmax():
    """Of one item, too, a table has its axes in an order."""
    found = said("self_attention.forward", single(ITEMS))
    assert found.where.first_wrong == 13 and "two axes are exchanged" in found.where.how


PADDED = """
def padded_weights(scores, lengths):
    beyond = torch.arange(scores.shape[-1]) >= lengths[:, None]
    scores = torch.where(beyond{axis}, torch.tensor({low}), scores)
    return scores.softmax(dim={dim})
"""


@pytest.mark.parametrize("low", ["-1e9", "-1e30", "-math.inf"])
def test_rows_hidden_by_a_large_number_are_not_filled_with_zeros(low):
    """A softmax over nothing but hidden scores gives equal shares, as one over zeros does."""
    found = said("masks.padding", PADDED.format(axis="[:, :, None]", low=low, dim=-1))
    assert found.check == "padding.rows hidden" and "Two things" not in found.message


def test_what_explains_a_part_is_not_said_to_explain_all():
    """The columns that should be hidden are wrong in a way of their own."""
    found = said("masks.padding", PADDED.format(axis="[:, None] & False", low="-1e9", dim=1))
    assert "the softmax runs along axis 1" in found.message
    assert "right but for this" not in found.message and "it is not all" in found.message


CALLED = """
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def meet(self, query, key, value):
        table = torch.einsum("nid,njd->nij", query, key) / key.shape[-1] ** 0.5
        return torch.softmax(table, dim=2) @ value

    def forward(self, x):
        queries = self.q(x)
        keys = self.k(x)
        values = self.v(x)
        return self.meet({given})
"""


@pytest.mark.parametrize(
    "given", ["queries, values, keys", "key=values, query=queries, value=keys"]
)
def test_a_call_that_hands_over_two_tensors_crosswise_has_the_line(given):
    found = said("self_attention.forward", CALLED.format(given=given))
    assert found.where.first_wrong == 16 and "Keys and values are swapped" in found.message


def test_where_names_do_not_say_what_is_handed_over_no_call_is_blamed():
    source = CALLED.format(given="queries, values, keys")
    for name, other in (("query", "one"), ("key", "two"), ("value", "three")):
        source = source.replace(f"{name},", f"{other},").replace(f"{name})", f"{other})")
        source = source.replace(f"{name}.shape", f"{other}.shape").replace(
            f"@ {name}\n", f"@ {other}\n"
        )
    found = said("self_attention.forward", source)
    assert found.where is None


# --- what is there, in another line ---------------------------------------------------------------
def test_a_bias_that_comes_too_late_is_not_told_to_be_left_out():
    source = """
def encoder_states(x, w_input, w_hidden, bias):
    h, rows = torch.zeros_like(bias), []
    for row in x @ w_input:
        h = torch.tanh(row + h @ w_hidden) + bias
        rows.append(h)
    return torch.stack(rows)
"""
    assert "not added" not in said("simple.rnn", source).message


def test_a_step_that_a_mended_one_leaves_as_it_is_is_no_mistake():
    """The sum over the sequences is one on the way: the mean behind it is what is wrong."""
    source = """
def linear_backward(grad_y, x, weight):
    down = torch.einsum("bto,oi->bti", grad_y, weight)
    table = torch.einsum("bto,bti->oi", grad_y, x)
    return down, table, grad_y.sum(0).mean(0)
"""
    found = said("backward.linear", source)
    assert found.where.first_wrong == 4 and "sequences only" not in found.message


def test_of_a_factor_that_each_call_has_of_its_own_no_number_is_told():
    source = """
def mask_dropout_backward(grad_dropped, probs, hidden, dropped, p):
    grad = grad_dropped.masked_fill(dropped, 0.0)
    grad = grad / p if p else grad
    return probs * (grad - (probs * grad).sum(-1, keepdim=True))
"""
    (found,) = told("backward.mask_dropout", source, steps_too=False)
    assert "one factor" in found.message and "here 1" not in found.message


@pytest.mark.parametrize("fill", ["0.0", "1e-9", "-1e-9"])
def test_what_is_said_of_a_fill_next_to_0_is_true_of_it(fill):
    source = f"""
def mask_scores(scores):
    n = scores.shape[-1]
    later = torch.ones(n, n).triu(1).bool()
    return scores.masked_fill(later, {fill}).softmax(-1)
"""
    found = said("masks.minus_infinity", source)
    assert found.where.first_wrong == 4 and "0 or next to it" in found.message


SUMS = """
def grad_input(grad_q, grad_k, grad_v, w_q, w_k, w_v):
    batch, heads, seq, size = grad_q.shape
    back = torch.zeros(batch, seq, heads * size)
    for grad, weight in ((grad_q, w_q), (grad_k, w_k), (grad_v, w_v)):
        side_by_side = grad.transpose(1, 2).flatten(2)
        back += side_by_side @ weight
    return back
"""


def test_another_operation_in_the_place_of_one_that_stops_makes_no_second_mistake():
    """With `=` for `+=` it runs, and the last path alone is left."""
    assert "Two things" not in said("backward.paths", SUMS).message


IN_EACH_ROUND = """
def tiled_attention(q, k, v, block):
    root, rows = q.shape[1] ** -0.5, []
    for a in range(0, q.shape[0], block):
        query = q[a : a + block]
        top = query.new_full((len(query), 1), -1e30)
        size, mixed = torch.zeros_like(top), query.new_zeros(len(query), v.shape[1])
        for b in range(0, k.shape[0], block):
            scores = root * query @ k[b : b + block].T
            peak = scores.max(dim=1, keepdim=True).values
            powers = torch.exp(scores - peak)
            high = torch.maximum(top, peak)
            kept = size * torch.exp(top - high)
            size = kept + powers.sum(dim=1, keepdim=True) * torch.exp(peak - high)
            mixed = (kept * mixed + powers @ v[b : b + block]) / size
            top = high
        rows.append(mixed)
    return torch.cat(rows)
"""


def test_a_step_of_another_right_answer_is_no_known_mistake():
    """The tile's own sums, which algorithm 1 of "FlashAttention" has, are those of one mistake."""
    assert look("fast.tiles", IN_EACH_ROUND.lstrip()).told() == []
