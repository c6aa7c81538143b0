"""Each sentence that stands beside a mistake is true: rounds of loops, order, what is right."""

import re

import pytest
import torch

from autograder.reports.findings import where_in_words
from autograder.tracing import say
from autograder.tracing.alike import Known
from autograder.tracing.differs import differs
from tests.tracing.helper import look, told
from tests.tracing.styles import causal, single


def said(task: str, source: str):
    return next(f for f in told(task, source.lstrip()) if f.fails)


SHORTER = """
def padded_weights(scores, lengths):
    rows = []
    for table, size in zip(scores, lengths.tolist()):
        table = table.clone()
        table[..., size + 1:] = -torch.inf
        rows.append(torch.softmax(table, -1))
    return torch.stack(rows)
"""


def test_a_line_that_is_right_in_one_round_alone_is_not_called_right():
    """Of the item without padding the slice is empty, and the line that hides is right."""
    found = said("masks.padding", SHORTER)
    assert found.where.first_wrong == 5 and "Line 5 is right" not in where_in_words(found)


ADDED_LATE = """
def context_vectors(inputs):
    result = torch.zeros_like(inputs)
    for row, token in enumerate(inputs):
        table = inputs @ token
        shares = table / table.sum()
        for place in range({first}, len(inputs)):
            result[row] += shares[place] * inputs[place]
    return result
"""


@pytest.mark.parametrize("first", [0, 1])
def test_a_tensor_that_is_filled_later_is_not_what_is_wrong(first):
    found = said("simple.context", ADDED_LATE.format(first=first))
    assert found.where is None or found.where.first_wrong > 2


BEGUN_LATE = """
q, k, v = self.q(x), self.k(x), self.v(x)
result = torch.zeros_like(q)
for place in range(2, q.size(1)):
    table = torch.einsum("bf,bsf->bs", q[:, place], k) / self.hidden ** 0.5
    result[:, place] = torch.einsum("bs,bsf->bf", table.softmax(-1), v)
return result"""


def test_a_loop_over_tokens_that_begins_late_is_told_of():
    found = said("self_attention.forward", single(BEGUN_LATE))
    assert found.where.first_wrong == 12 and "leaves places out" in found.where.how


SCALED = """
def simple_attention(x):
    table = torch.einsum("bqf,bkf->bqk", x, x)
    table = table * x.size(-1) ** -0.5
    shares = table.softmax(dim=1)
    return torch.einsum("bqk,bkf->bqf", shares, x)
"""


def test_scores_are_not_said_to_have_rows_that_should_sum_to_one():
    found = said("simple.matmul", SCALED)
    assert found.where.first_wrong == 3 and "sum" not in found.where.how
    assert "Line 4: The softmax runs over dim=1" in found.message


CUT = """
def split_heads(t, num_heads):
    items, places, width = t.shape
    return t.contiguous().reshape(items, num_heads, places, width // num_heads)
"""


def test_what_a_line_spoils_is_not_right_on_its_way():
    found = said("heads.split", CUT)
    assert found.where.first_wrong == 3 and "Within" not in where_in_words(found)


HEADS = """
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        if hidden % num_heads:
            raise ValueError(
                f"hidden must be divisible by num_heads, got hidden={{hidden}} "
                f"and num_heads={{num_heads}}"
            )
        super().__init__()
        self.k, self.q, self.v = (nn.Linear(input_size, hidden) for _ in range(3))
        self.mix = nn.Linear(hidden, hidden)
        self.drop = nn.Dropout(dropout)
        self.n, self.size, self.causal = num_heads, hidden // num_heads, causal

    def cut(self, t):
        return t.view(*t.shape[:2], self.n, self.size).transpose(1, 2)

    def forward(self, x, return_attention=False):
        q, k = self.cut(self.{asked}(x)), self.cut(self.k(x))
        v = {given}
        table = q @ k.mT / {scale}
        if self.causal:
            table = table.masked_fill(torch.ones_like(table).triu({late}).bool(), -1e9)
        shares = self.drop(table.softmax(-1))
        mixed = self.mix((shares @ v).transpose(1, 2).flatten(2))
        return (mixed, shares.flatten(0, 1)) if return_attention else mixed
"""
RIGHT = {"asked": "q", "given": "self.cut(self.v(x))", "scale": "self.size**0.5", "late": "1"}


def heads(**slips: str) -> str:
    return HEADS.format(**{**RIGHT, **slips})


HANDED_ON = """
q, k = self.q(x), self.k(x)
v = k
table = q @ k.mT / k.size(-1) ** 0.5
late = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(2)
table = torch.where(late, -torch.inf, table)
return self.noise(table.softmax(-1)) @ v"""


def test_what_runs_first_is_to_be_mended_first_where_it_makes_nothing_itself():
    found = said("masks.attention", causal(HANDED_ON))
    assert "Mend line 11 first." in found.message and found.where.first_wrong == 11


IN_TURN = (
    HEADS[: HEADS.index("        q, k = ")].format()
    + """
        asked, keys, values = self.q(x), self.k(x), self.v(x)
        tables, parts = [], []
        for n in range(self.n):
            own = slice(n * self.size, (n + 1) * self.size)
            v = values[:, :, : self.size]
            table = asked[..., own] @ keys[..., own].mT / math.sqrt(x.shape[1])
            if self.causal:
                table = table.masked_fill(torch.ones(table.shape[1:]).triu(1) > 0, -torch.inf)
            tables.append(self.drop(F.softmax(table, -1)))
            parts.append(tables[-1] @ v)
        mixed = self.mix(torch.cat(parts, 2))
        return (mixed, torch.stack(tables, 1).flatten(0, 1)) if return_attention else mixed
"""
)


@pytest.mark.slow  # the next test asks about the same code
def test_beside_an_earlier_steps_mistake_nothing_is_called_right():
    """The output is compared with what the same scale gives; the probabilities are wrong by it."""
    found = said("multi_head.output", IN_TURN)
    assert "Right in every call" not in found.message


def test_a_task_that_is_about_the_later_of_two_mistakes_names_both():
    found = said("multi_head.scores", IN_TURN)
    assert "Two things are wrong. Line 23: " in found.message
    assert "Line 24: The scores are scaled by the square root of seq_len" in found.message


BOTH = """
def grouped_attention(q, k, v):
    times = q.size(1) // k.size(1)
    k = torch.cat([k] * times, dim=1)
    v = torch.cat([v] * times, dim=1)
    table = q @ k.mT / q.shape[-1] ** 0.5
    later = torch.ones(table.shape[-2:]).triu(1).bool()
    return table.masked_fill(later, -torch.inf).softmax(-1) @ v
"""


def test_one_mistake_made_in_two_lines_is_one():
    assert "Two things" not in said("variants.grouped", BOTH).message


def test_both_of_two_mistakes_are_told_where_a_judge_saw_little():
    found = said("multi_head.scores", heads(asked="k", scale="1"))
    assert "Two things are wrong. Line 18: `self.k` is taken where another" in found.message
    assert "Line 20: The scores are not scaled" in found.message


SAME = """
def context_vectors(inputs):
    count = len(inputs)
    table = torch.zeros(count, count)
    for one in range(count):
        for other in range(count):
            table[one, other] = inputs[other] @ inputs[other]
    return torch.softmax(table, 1) @ inputs
"""


def test_numbers_of_which_some_belong_elsewhere_are_not_another_order():
    found = said("simple.context", SAME)
    assert found.where is None or "another order" not in found.where.how


NEIGHBOUR = """
def batched_attention(q, k, v):
    answers = []
    for n, (one, other) in enumerate(zip(q, k)):
        shares = F.softmax(one @ other.mT * k.shape[-1] ** -0.5, dim=-2)
        answers.append(shares @ v[n - 1])
    return torch.stack(answers)
"""


def test_a_softmax_over_the_queries_is_no_exchange_of_queries_and_keys():
    found = said("one_head.batched", NEIGHBOUR)
    assert "swapped" not in found.message and found.where.first_wrong == 4
    assert "Line 4: The softmax runs over the queries" in found.message
    assert "Line 5: " in found.message


HIDDEN_FIRST = """
def padded_weights(scores, lengths):
    real = torch.arange(scores.size(2))[None] < lengths[:, None]
    table = scores.masked_fill(real.unsqueeze(1), -1e9)
    return table.softmax(dim=1)
"""


def test_behind_a_large_number_that_hides_no_nan_is_spoken_of():
    found = said("masks.padding", HIDDEN_FIRST)
    assert "Line 4: " in found.message and "NaN" not in found.message
    assert any(words in found.message for words in ("sums along axis 1", "dim=1", "dim=-2"))


UNSCALED = """
q, k, v = self.q(x), self.k(x), self.v(x)
table = torch.bmm(q, k.mT)
past = torch.ones(x.size(1), x.size(1)).tril() > 0
table = torch.where(past, torch.tensor(-1e9, dtype=x.dtype), table)
return self.noise(table.softmax(2)) @ v"""


def test_a_mask_that_is_turned_round_is_told_beside_scores_that_are_not_scaled():
    found = said("masks.attention", causal(UNSCALED))
    assert found.where.first_wrong == 13
    assert "Line 13: " in found.message and "Line 14: " in found.message
    assert "is not scaled" in found.message or "are not scaled" in found.message


# --- what the text shows of loops, arguments and layers ------------------------------------------
REPLACED = """
def context_vectors(inputs):
    answers = torch.zeros(inputs.shape)
    for number, token in enumerate(inputs):
        shares = (inputs @ token).softmax(0)
        for other, share in zip(inputs, shares):
            answers[number] = share * other
    return answers
"""


def test_rounds_that_all_write_to_one_place_are_told_of():
    found = said("simple.context", REPLACED)
    assert found.where.first_wrong == 6
    assert "Each round of line 5 writes to the same place, `answers[number]`" in found.message


EARLY = """
def merge_heads(t):
    row = []
    for one in t.unbind(1):
        row += [one]
        return torch.cat(row, 2)
"""


def test_a_return_in_the_first_round_is_told_of():
    found = said("heads.merge", EARLY)
    assert found.where.first_wrong == 5
    assert "Line 5 returns in the first round of the loop of line 3" in found.message


GROWING = """
def batched_attention(q, k, v, *, kept=list()):
    for one, other, value in zip(q, k, v):
        kept.append((one @ other.T / other.shape[-1] ** 0.5).softmax(-1) @ value)
    return torch.stack(kept)
"""


def test_an_argument_that_keeps_what_calls_put_into_it_is_told_of():
    found = said("one_head.batched", GROWING)
    assert found.where.first_wrong == 1
    assert "What `kept` is by default is made once, in line 1" in found.message
    alright = GROWING.replace("    for", "    kept = []\n    for", 1)
    assert not [f for f in told("one_head.batched", alright.lstrip()) if f.fails]
    wrong = said("one_head.batched", alright.replace("softmax(-1)", "softmax(0)"))
    assert "by default" not in wrong.message


NOT_DROPPED = """
q, k, v = self.q(x), self.k(x), self.v(x)
table = q @ k.mT
later = torch.ones(x.size(1), x.size(1)).triu(1).bool()
return table.masked_fill(later, -torch.inf).softmax(2) @ v"""


def test_a_dropout_that_is_never_used_is_told_of_beside_another_mistake():
    found = said("masks.attention", causal(NOT_DROPPED))
    assert "The scores are not scaled." in found.message
    assert "`self.noise`, made in line 7, is used nowhere" in found.message
    used = causal(NOT_DROPPED.replace("softmax(2)", "softmax(2).mul(self.noise(torch.ones(1)))"))
    assert "is used nowhere" not in said("masks.attention", used).message


RIGHT_ONES = [
    (
        "heads.merge",
        """
def merge_heads(t):
    while True:
        return t.transpose(1, 2).flatten(2)
""",
    ),
    (
        "one_head.batched",
        """
def batched_attention(q, k, v, kept=None):
    kept = [] if kept is None else kept
    for n in range(len(q)):
        kept.append((q[n] @ k[n].T / k.shape[-1] ** 0.5).softmax(-1) @ v[n])
    return torch.stack(kept)
""",
    ),
    (
        "simple.context",
        """
def context_vectors(inputs):
    answers = torch.zeros_like(inputs)
    for one in range(len(inputs)):
        for other in range(1):
            answers[one] = (inputs @ inputs[one]).softmax(0) @ inputs
    return answers
""",
    ),
]


@pytest.mark.parametrize("task, source", RIGHT_ONES, ids=[task for task, _ in RIGHT_ONES])
def test_of_right_programs_with_such_loops_nothing_is_said(task, source):
    assert not told(task, source.lstrip()) and not look(task, source.lstrip()).told()


# --- what a tensor is called ---------------------------------------------------------------------
PRUNED = """
def prune(scores, floor):
    p = scores.softmax(-1)
    return p.masked_fill(p < floor, 0.0)
"""


def test_a_tensor_is_called_by_a_noun_or_not_at_all():
    """The answer's own name for it, `kept`, would be "the kept"."""
    found = said("masks.in_place", PRUNED)
    assert found.where.last_right == 3 and found.where.landmark == ""
    assert not re.search("the (kept|probs|out)", found.where.how)


@pytest.mark.parametrize("name, words", [("out", "the output"), ("probs", "the probabilities")])
def test_short_names_are_told_in_full(name, words):
    assert say.called(Known(0, [], name)) == words


# --- infinity, weights and what an error hides ---------------------------------------------------
def test_what_overflows_is_infinite_and_nothing_is_said_to_be_hidden():
    right = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    over = right.clone()
    over[0, 1:] = torch.inf
    assert differs(over, right) == "2 numbers are infinite"
    assert differs(-over, -right) == "2 places too many are hidden"
    silent = torch.where(over.isinf(), 0.0, right)  # as weights are, behind a softmax
    assert differs(-over, -silent) == "minus infinity stands in 2 places where a number belongs"


def test_a_weight_is_not_said_to_need_its_axes_exchanged_where_another_tensor_meets_it():
    """`x @ self.w_value` is right; it is the queries that have no business there."""
    source = """
class ParameterAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.w_query = nn.Parameter(torch.rand(input_size, hidden) - 0.5)
        self.w_key = nn.Parameter(torch.rand(input_size, hidden) - 0.5)
        self.w_value = nn.Parameter(torch.rand(input_size, hidden) - 0.5)

    def forward(self, x):
        ask = x @ self.w_query
        offer = x @ self.w_key
        content = offer @ self.w_value
        return (ask @ offer.mT / ask.shape[-1] ** 0.5).softmax(-1) @ content
"""
    found = said("one_head.parameters", source)
    assert (
        found.message.endswith("It takes vectors of size 7.") and "exchanged" not in found.message
    )


NARROW = """
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0.0):
        super().__init__()
        if hidden % num_heads:
            raise ValueError("num_heads does not divide hidden")
        self.num_heads, self.head_size, self.causal = num_heads, hidden // num_heads, causal
        self.q, self.k = nn.Linear(input_size, hidden), nn.Linear(input_size, hidden)
        self.v, self.mix = nn.Linear(input_size, hidden), nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, return_attention=False):
        asks, offers, content = self.q(x), self.k(x), self.v(x)
        parts = []
        for h in range(self.num_heads):
            low = h * {step}
            own = slice(low, low + {step})
            table = asks[..., own] @ offers[..., own].mT / {step} ** 0.5
            parts.append(self.dropout(table.softmax(-1)) @ content[..., own])
        return self.mix(torch.cat(parts, -1))
"""


def test_behind_tensors_that_nobody_knows_an_error_is_not_the_first_wrong_line():
    found = said("multi_head.scores", NARROW.format(step="self.num_heads"))
    assert found.message.startswith("Line 19: RuntimeError") and found.where is None


def test_dropout_by_another_share_acts_on_the_weights_all_the_same():
    source = causal("""
later = torch.ones(x.shape[1], x.shape[1]).triu(1) > 0
table = self.q(x) @ self.k(x).mT / self.q.out_features ** 0.5
shares = F.dropout(table.masked_fill(later, -torch.inf).softmax(-1), 0.2, self.training)
return shares @ self.v(x)""")
    found = said("masks.attention", source)
    assert found.check == "dropout.share"
