"""What is said of a line is true of it, and a second thing is told only where it is one."""

import pytest

from autograder.course.asking import STOPS
from autograder.reports.findings import where_in_words
from autograder.tracing import say
from tests.tracing.helper import told
from tests.tracing.styles import causal, single


def said(task: str, source: str):
    return next(f for f in told(task, source.lstrip()) if f.fails)


FILLED = """
q, k, v = self.q(x), self.k(x), self.v(x)
out = torch.zeros(v.shape)
for n in {items}:
    table = q[n] @ k[n].T / self.hidden ** 0.5
    out[n] = table.softmax(-1) @ v[n]
return out"""


@pytest.mark.parametrize("items", ["range(len(x) - 1)", "range(1, len(x))"])
def test_a_loop_that_leaves_places_out_is_told_of_and_not_the_zeros_it_fills(items):
    found = said("self_attention.forward", single(FILLED.format(items=items)))
    assert found.where.first_wrong == 12 and "leaves places out" in found.where.how
    assert "Two things" not in found.message


TWO_FILLED = """
def attend(q, k, v, num_heads):
    b, n, width = q.shape
    cut = lambda t: t.unflatten(-1, (num_heads, -1)).transpose(1, 2)
    q, k, v = cut(q), cut(k), cut(v)
    shares, mixed = torch.zeros(b, num_heads, n, n), torch.zeros_like(q)
    for h in range(1, num_heads):
        table = q[:, h] @ k[:, h].mT / q.shape[-1] ** 0.5
        table = table.masked_fill(torch.ones(n, n).triu(1) > 0, -torch.inf)
        shares[:, h] = table.softmax(-1)
        mixed[:, h] = shares[:, h] @ v[:, h]
    return mixed.transpose(1, 2).flatten(2), shares.flatten(0, 1)
"""


def test_what_one_loop_leaves_in_two_tensors_is_one_thing():
    found = said("heads.attend", TWO_FILLED)
    assert found.where is None or found.where.first_wrong == 6
    assert "Two things" not in found.message


OWN = """
class ParameterAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        scale = input_size ** -0.5
        self.w_query = nn.Parameter(torch.randn(input_size, hidden) * scale)
        self.w_key = nn.Parameter(torch.randn(input_size, hidden) * scale)
        self.w_value = nn.Parameter(torch.randn(input_size, hidden) * scale)

    def forward(self, x):
        both = self.w_query @ self.w_query.t()
        table = x @ both @ x.T / self.w_query.shape[-1] ** 0.5
        return table.softmax(1) @ (x @ self.w_value)
"""


def test_another_tensor_is_not_said_to_be_a_turned_one():
    found = said("one_head.parameters", OWN)
    assert found.where is None or "exchanged" not in found.where.how


KEPT = """
q, k, v = self.q(x), self.k(x), self.v(x)
w = torch.softmax(q @ k.mT / self.hidden ** 0.5, dim=-1)
{last}"""


@pytest.mark.parametrize(
    "last, advice",
    [
        ("self.context = w @ v", "End it with `return self.context`."),
        ("context = w @ v", "End it with `return context`."),
        ("print(w @ v)", "End it with a `return`."),
    ],
)
def test_what_is_to_be_returned_is_what_was_assigned_last(last, advice):
    assert advice in said("self_attention.forward", single(KEPT.format(last=last))).message


BY_HAND = """
q, k, v = self.q(x), self.k(x) * math.sqrt(self.hidden), self.v(x)
table = torch.matmul(q, k.mT)
powers = torch.exp(table - table.amax(dim=2, keepdim=True))
shares = powers / powers.sum(dim=1, keepdim=True)
return shares @ v"""


def test_what_follows_from_keys_that_are_too_large_is_no_third_thing():
    found = said("self_attention.forward", single(BY_HAND))
    assert found.where.first_wrong == 10 and "Line 13: " in found.message
    assert "Three things" not in found.message and "zeros" not in found.message


SLOPED = """
def alibi_attention(q, k, v, slopes):
    place = torch.arange(q.shape[-2])
    behind = place[:, None] - place
    table = q @ k.mT / math.sqrt(q.shape[-1])
    table = torch.add(table, slopes[:, None, None] * behind)
    table = torch.where(behind < 0, -torch.inf, table)
    return F.softmax(table, 2) @ v
"""


def test_of_two_known_mistakes_a_third_ones_numbers_take_no_line():
    found = said("variants.alibi", SLOPED)
    assert found.where.first_wrong == 5 and "Line 7: The softmax" in found.message
    assert "come in at line" not in found.message


SQUARE = causal("""
later = torch.ones(len(x), len(x)).triu(1) > 0
table = self.q(x) @ self.k(x).mT / self.q.out_features ** 0.5
shares = self.noise(table.masked_fill(later, -torch.inf).softmax(-1))
return shares @ self.v(x)""")


def test_an_error_comes_before_what_shows_where_none_comes_up():
    """A mask of the batch's size hides nothing where there is one item, and stops elsewhere."""
    found = said("masks.attention", SQUARE)
    assert found.message.startswith("Line 12: RuntimeError")
    assert "`masked_fill` is given the scaled scores" in found.message
    assert "And where it does not stop: Nothing is hidden." in found.message


LOW = """
def attend(q, k, v, num_heads):
    b, n, width = q.shape
    cut = lambda t: t.reshape(b, n, num_heads, -1).transpose(1, 2)
    table = cut(q) @ cut(k).mT / (width // num_heads) ** 0.5
    table = table.masked_fill(torch.ones(n, n).triu() > 0, -1e9)
    shares = table.softmax(-1)
    mixed = (shares @ cut(v)).transpose(1, 2)
    return mixed.reshape(b, n, width), shares.flatten(0, 1)
"""


def test_a_hidden_diagonal_is_known_by_a_large_number_too():
    found = said("heads.attend", LOW)
    assert found.check == "mask.diagonal hidden" and found.where.first_wrong == 5


TWICE = """
asks, offers = self.q(x), self.k(x)
content = self.q(x)
shares = F.softmax(asks @ offers.mT / self.hidden ** 0.5, -1)
shares = shares * self.hidden ** 0.5
return shares @ content"""


def test_a_tensor_made_twice_stands_in_the_place_of_one_that_is_never_made():
    found = said("self_attention.forward", single(TWICE))
    assert "Line 11: The values are made with the queries' layer." in found.message
    assert "Line 13: " in found.message and found.where.first_wrong == 11


@pytest.mark.parametrize(
    "task, source, line, words",
    [
        (
            "simple.softmax_stable",
            """
            def softmax_stable(scores):
                powers = (scores - scores.amax(-1, keepdim=True)).exp()
                return powers / powers.sum(dim=-1)""",
            3,
            "what `sum` gave meets the wrong axis: `keepdim=True`",
        ),
        (
            "masks.minus_infinity",
            """
            def mask_scores(scores):
                later = torch.ones_like(scores).triu(1)
                scores = scores - later
                return scores.softmax(-1)""",
            3,
            "zeros and ones are added, and minus infinity hides",
        ),
        (
            "one_head.batched",
            """
            def batched_attention(q, k, v):
                rows = []
                for asks, offers, content in zip(q, k, v):
                    table = asks @ offers.T * content.shape[1] ** -0.5
                    rows.append(table.softmax(0) @ content)
                return torch.stack(rows)""",
            4,
            "divides by the root of 3",
        ),
    ],
    ids=["keepdim", "ones added", "another root"],
)
def test_how_a_line_is_wrong_says_what_to_mend(task, source, line, words):
    lines = source.strip("\n").split("\n")
    found = said(task, "\n".join(row[12:] for row in lines) + "\n")
    assert found.where.first_wrong == line and words in f"{found.message} {found.where.how}"


AXES = """
def attend(q, k, v, num_heads):
    b, n, width = q.shape
    q, k, v = {cut}
    table = q @ k.mT / q.shape[-1] ** 0.5
    shares = table.masked_fill(torch.ones(n, n).triu(1) > 0, -torch.inf).softmax(-1)
    mixed = shares @ v
    return mixed.transpose(1, 2).reshape(b, n, width), shares.flatten(0, 1)
"""


def test_a_product_over_the_wrong_axes_is_told_before_the_error_it_leads_to():
    cut = "[t.view(b, n, num_heads, -1) for t in (q, k, v)]"
    found = said("heads.attend", AXES.format(cut=cut))
    assert found.where is None or found.where.first_wrong in (3, 4)
    assert "first axes in another order" in found.message


def test_an_operand_with_an_axis_too_few_is_told_as_such():
    cut = "*[t.view(b, n, num_heads, -1).transpose(1, 2) for t in (q, k)], v"
    found = said("heads.attend", AXES.format(cut=cut))
    assert "The right one has an axis too few" in found.message


INNER = """
def cut(t, parts):
    return t.view(t.shape[0], t.shape[1], -1, parts).permute(0, 3, 1, 2)

def attend(q, k, v, num_heads):
    b, n, width = q.shape
    a = cut(torch.clone(q), num_heads)
    c, w = [t.view(b, n, num_heads, -1).transpose(1, 2) for t in (k, v)]
    table = a @ c.mT / a.shape[-1] ** 0.5
    shares = table.masked_fill(torch.ones(n, n).triu(1) > 0, -torch.inf).softmax(-1)
    mixed = shares @ w
    return mixed.transpose(1, 2).reshape(b, n, width), shares.flatten(0, 1)
"""


def test_a_line_that_calls_what_goes_wrong_is_right_only_on_its_way():
    words = where_in_words(said("heads.attend", INNER))
    assert "Line 2 is the first that goes wrong" in words and "is right so far" not in words


HEADS = """
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0.0):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.noise = nn.Dropout(dropout)
        self.heads, self.causal = num_heads, causal

    def forward(self, x, return_attention=False):
        b, n, _ = x.shape
        cut = lambda t: t.view(b, n, self.heads, -1).transpose(1, 2)
        q, k, v = cut(self.q(x)), cut(self.k(x)), cut(self.v(x))
        table = q @ k.mT {scale} q.shape[-1] ** 0.5
        if self.causal{more}:
            table = table.masked_fill(torch.ones(n, n).triu(1) > 0, -torch.inf)
        shares = self.noise(table.softmax(-1))
        out = (shares @ v).transpose(1, 2).{merge}
        out = self.mix(out)
        return (out, shares.flatten(0, 1)) if return_attention else out
"""


def test_a_mask_under_a_condition_that_does_not_hold_is_told_there():
    source = HEADS.format(scale="/", more=" is None", merge="flatten(2)")
    found = said("multi_head.mask", source)
    assert found.where.first_wrong == 16 and "a condition that did not hold" in found.where.how


def test_what_goes_wrong_before_an_error_is_not_called_right():
    found = said("multi_head.scores", HEADS.format(scale="*", more="", merge="view(b, n, -1)"))
    assert found.where.first_wrong == 15 and found.where.last_right == 15
    assert "are multiplied" in found.message and "Line 19: `view` needs numbers" in found.message


EARLY = causal("""
asks, offers = self.q(x), self.q(x)
table = torch.bmm(asks, offers.mT)
table = table.masked_fill(torch.ones_like(table).triu(2) > 0, -torch.inf)
shares = F.softmax(table * self.q.out_features ** -0.5, -1)
return self.noise(shares) @ self.v(x)""")


def test_scores_hidden_before_they_are_scaled_are_mended_as_such():
    """Mended into scores that hide nothing, they would make a third thing wrong behind them."""
    found = said("masks.attention", EARLY)
    assert "Line 12: The mask starts one place too late" in found.message
    assert "Three things" not in found.message and "Nothing is hidden" not in found.message


SOFTLY = """
def soften(table):
    powers = (table - table.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)

def batched_attention(q, k, v):
    rows = []
    for asks, offers, content in zip(q, k, v):
        table = {table}
        rows.append(soften(table{scaled}) @ content)
    return torch.stack(rows)
"""


def test_a_function_that_gets_what_is_not_scaled_yet_is_not_to_blame():
    found = said("one_head.batched", SOFTLY.format(table="asks @ offers.T", scaled=""))
    assert found.where.first_wrong == 9 and "before what is handed over" in found.where.how


def test_a_turned_table_and_what_scales_it_do_not_come_in_at_one_line():
    source = SOFTLY.format(table="offers @ asks.T", scaled=" / q.shape[-1]")
    assert "Both come in" not in said("one_head.batched", source).message


@pytest.mark.parametrize(
    "factor, said",
    [
        (1 / 13**0.5, "it divides by the root of 13"),
        (13**0.5, "it multiplies by 3.61"),
        (0.25, "it multiplies by 0.25"),
        (-3.0, "it multiplies by -3"),
        (0.282, ""),  # such as a weight of the right answer
        (1.37, ""),
    ],
)
def test_only_factors_that_sizes_give_are_told_in_numbers(factor, said):
    assert say._times(factor) == said


TERMS = """
def score_terms(x, w_q, b_q, w_k, b_k):
    width = w_q.shape[1]

    def met(one, two):
        return (one[:, None] * two[None]).sum(-1) / width**0.5

    queries, keys = x @ w_q, x @ w_k
    row, column = b_q[None], b_k[None]
    return {
        "constant": met(row, column)[0, 0],
        "query": met(queries, column)[:, 0],
        "key": met(row, keys)[0],
        "content": met(b_q, keys),
    }
"""


def test_a_line_that_went_well_for_other_calls_is_not_called_wrong():
    found = said("weights.biases", TERMS)
    assert found.where is None or found.where.first_wrong == 13
    assert "Line 5 goes well when line 10 calls it; it stops with what line 13" in found.message


NOT_FILLED = """
def split_heads(t, num_heads):
    parts, size = [], t.shape[-1] // num_heads
    for h in range(num_heads):
        t[..., h * size : (h + 1) * size]
    return torch.stack(parts, dim=1)
"""


def test_a_list_that_stays_empty_has_no_wrong_line():
    found = said("heads.split", NOT_FILLED)
    assert found.where is None
    assert "`parts` is the empty list of line 2 still" in found.message


def test_no_line_is_called_wrong_where_sizes_may_have_been_made_wrong_before():
    source = single("""
q, k, v = self.q(x), self.k(x), self.v(x)
q, k = q.flatten(0, 1), k.flatten(1).reshape(len(x), -1)
k = k[:, : len(k)]
return (q @ k.mT).softmax(-1) @ v""")
    found = said("self_attention.forward", source)
    assert found.line == 13 and "RuntimeError" in found.message
    assert found.where is None


def test_what_a_double_meets_is_told_of_by_its_kind():
    source = """
def symmetric_parts(w_q, w_k):
    table = w_q.double() @ w_k.mT
    whole = table.norm()
    return (table + table.mT).norm() / whole / 2, (table - table.mT).norm() / whole / 2
"""
    found = said("weights.symmetric", source)
    assert "float64" in found.message and "whole numbers" not in found.message


EMPTY = """
def encoder_states(x, w_input, w_hidden, bias):
    states, last = x.new_zeros(0, len(bias)), torch.zeros_like(bias)
    for token in x[len(x) :]:
        last = torch.tanh(token @ w_input + last @ w_hidden + bias)
        states = torch.cat((states, last[None]))
    return states
"""


def test_an_answer_without_any_number_is_judged():
    found = said("simple.rnn", EMPTY)
    assert "has shape [0, 3]" in found.message
    assert found.where is None or found.where.first_wrong == 3


BARE = """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        '''One head.'''
        if hidden < 1:
            raise ValueError(hidden)
        for name in "qkv":
            self.add_module(name, nn.Linear(input_size, hidden))

    def forward(self, x):
        return (self.q(x) @ self.k(x).mT / self.q.out_features**0.5).softmax(-1) @ self.v(x)
"""


def test_a_forgotten_super_is_told_where_it_belongs():
    found = said("one_head.forward", BARE)
    assert "`super().__init__()` is missing" in found.message
    assert found.where.first_wrong == 6


OVERWRITTEN = """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def forward(self, x):
        x = self.q(x)
        table = x @ self.k(x).mT / x.shape[-1] ** 0.5
        return table.softmax(-1) @ self.v(x)
"""


def test_a_line_that_stops_for_its_own_cause_is_said_to_stop():
    """It lacks nothing: what it takes was overwritten before."""
    found = said("one_head.forward", OVERWRITTEN)
    assert "was overwritten in line 9" in found.message
    assert (found.where.first_wrong, found.where.how) == (10, STOPS)


KEYS_TOO_FEW = """
def block_update(model, input_ids, block):
    seen, hooks = {}, []
    for number, layer in enumerate(model.transformer.h):

        def keep(module, args):
            seen[number] = args[0].detach()

        hooks.append(layer.register_forward_pre_hook(keep))
    with torch.no_grad():
        model(input_ids)
    for hook in hooks:
        hook.remove()
    return seen[block + 1] - seen[block]
"""


def test_a_key_that_other_lines_should_have_filled_blames_none_that_looks_it_up():
    found = said("inside.hidden", KEYS_TOO_FEW)
    assert "KeyError" in found.message and "`seen` is filled by other lines" in found.message
    assert found.where is None or found.where.first_wrong < 13
