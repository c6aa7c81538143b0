"""Of two things that are wrong each gets its line; what runs first is to be mended first."""

from autograder.tracing.proof import replay
from autograder.tracing.proof.replay import Replay
from tests.tracing.fresh import AGAIN
from tests.tracing.helper import look, told


def said(task: str, source: str):
    return next(f for f in told(task, source.lstrip()) if f.fails)


def program(what: str):
    return next(p for p in AGAIN if p.what == what)


def test_two_known_mistakes_are_named_with_a_line_each():
    own = program("a tile of ones one place off, and one sum for all")
    found = said(own.task, own.text)
    assert "Line 3: Each token sees the one after it." in found.message
    assert "Line 4: Everything is divided by one sum" in found.message
    assert "Mend line 3 first." in found.message and found.where.first_wrong == 3
    assert "at once" not in found.message


def test_two_slips_that_know_nothing_of_each_other_are_both_found():
    """The values and the weights are wrong, and nothing right is made of either."""
    own = program("heads of the values by a reshape, twice soft")
    found = said(own.task, own.text)
    assert "Line 13: " in found.message and "Line 17: The softmax is applied twice." in (
        found.message
    )


HELPER = """
def weigh(scores):
    return scores.softmax(1)

def batched_attention(q, k, v):
    scores = q @ k.mT / k.shape[-1]
    return weigh(scores) @ v
"""


def test_what_runs_first_is_to_be_mended_first_wherever_it_stands():
    found = said("one_head.batched", HELPER)
    assert "Line 5: The scores are divided by the size itself" in found.message
    assert "Line 2: The softmax runs over the queries" in found.message
    assert "Mend line 5 first." in found.message and found.where.first_wrong == 5


ONE_LINE = """
def attention_weights(q, k):
    return torch.softmax(q @ k.T * k.shape[-1] ** 0.5, dim=0)
"""


def test_two_mistakes_in_one_statement_are_told_of_that_line():
    found = said("one_head.scale", ONE_LINE)
    assert "multiplied by the square root" in found.message and "over the queries" in found.message
    assert found.where.first_wrong == 2 and "Mend them in this order." in found.message


MISSING = """
def attend(q, k, v, num_heads):
    b, n, h = q.shape
    def split(t):
        return t.view(b, n, num_heads, -1).transpose(1, 2)
    scores = split(q) @ split(k).mT / h ** 0.5
    future = torch.ones(n, n).triu(1).bool()
    weights = scores.masked_fill(future, -torch.inf).softmax(-1)
    context = weights @ split(v)
    return context.transpose(1, 2).flatten(2), weights
"""


def test_a_form_that_is_not_asked_for_is_told_beside_a_wrong_step():
    found = said("heads.attend", MISSING)
    assert found.where.first_wrong == 5 and "Line 5: The scores are scaled by" in found.message
    assert "Line 9: The probabilities are 4-D" in found.message


LIBRARY = """
def batched_attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v{argument})
"""


def test_an_argument_of_the_librarys_attention_is_told():
    found = said("one_head.batched", LIBRARY.format(argument=", is_causal=True"))
    assert found.where.first_wrong == 2 and "`is_causal=True` hides" in found.where.how


def test_when_no_work_is_allowed_no_wrong_line_is_told(monkeypatch):
    monkeypatch.setattr(replay, "MOST_TRIES", 0)
    for own in AGAIN[:12:3]:
        found = said(own.task, own.text + "# unseen\n")
        assert found.where is None or found.where.first_wrong in own.lines()


RENAMED = """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.W_Q = nn.Linear(input_size, hidden)
        self.W_K = nn.Linear(input_size, hidden)
        self.W_V = nn.Linear(input_size, hidden)

    def forward(self, x):
        q, k, v = self.W_Q(x), self.W_K(x), self.W_V(x)
        return torch.softmax(q @ k.mT / {size}, dim=-1) @ v
"""


def test_layers_under_other_names_are_what_differs():
    found = said("one_head.forward", RENAMED.format(size="k.shape[-1] ** 0.5"))
    assert "`W_Q`, `W_K` and `W_V`" in found.message
    assert found.message.endswith("With those names everything else is right.")


def test_a_slip_beside_other_names_keeps_its_cause():
    everything = told("one_head.forward", RENAMED.format(size="k.shape[-1]").lstrip())
    messages = " ".join(f.message for f in everything)
    assert "divided by the size itself" in messages and "`W_Q`, `W_K` and `W_V`" in messages


HANDED_OVER = """
def weigh(queries, keys):
    return (queries @ keys.mT / keys.shape[-1] ** 0.5).softmax(-1)

def batched_attention(q, k, v):
    return weigh({order}) @ v
"""


def test_what_is_handed_over_in_the_wrong_order_is_told_of_the_call():
    found = said("one_head.batched", HANDED_OVER.format(order="k, q"))
    assert found.where is None or found.where.first_wrong == 5


def test_a_function_that_exchanges_what_it_is_given_is_told_itself():
    source = HANDED_OVER.format(order="q, k").replace("(queries @ keys.mT", "(keys @ queries.mT")
    found = said("one_head.batched", source)
    assert found.where is None or found.where.first_wrong == 2


CUT = """
def attend(q, k, v, num_heads):
    b, n, width = q.shape
    a = {cut}
    c = {other}
    w = v.view(b, n, num_heads, -1).transpose(1, 2)
    table = a @ c.mT
    table = table / {root} ** 0.5
    table = table.masked_fill(torch.ones(n, n).triu(1) == 1, -torch.inf)
    shares = table.softmax(-1)
    mixed = torch.einsum("bhij,bhjd->{out}", shares, w)
    return mixed.reshape(b, n, width), shares.flatten(0, 1)
"""


def test_numbers_that_two_statements_mixed_alike_are_one_mistake_beside_another():
    """Which of two known mistakes it is shows in the places where the numbers come to stand."""
    mixed = {"cut": "q.view(b, num_heads, n, -1)", "other": "k.view(b, num_heads, n, -1)"}
    source = CUT.format(**mixed, root="width", out="bihd").replace(
        "v.view(b, n, num_heads, -1).transpose(1, 2)", "v.view(b, num_heads, n, -1)"
    )
    found = said("heads.attend", source)
    assert "Line 3: The heads are split" in found.message
    assert "Line 7: The scores are scaled by the square root of hidden" in found.message
    assert found.where.first_wrong == 3 and "Mend line 3 first." in found.message


def test_heads_that_are_merged_in_another_order_are_told_behind_another_mistake():
    straight = ".view(b, n, num_heads, -1).transpose(1, 2)"
    source = CUT.format(cut=f"q{straight}", other=f"k{straight}", root="1", out="bidh")
    found = said("heads.attend", source)
    assert "The scores are not scaled." in found.message and "Line 10: The letters" in found.message


TWICE = """
def batched_attention(q, k, v):
    root = k.shape[-1] ** 0.5
    table = torch.bmm(q, k.mT) / root
    shares = torch.softmax(table, dim=2)
    shares = torch.softmax(shares, dim=2)
    return torch.bmm(shares.mT, v)
"""


def test_no_turned_tensor_stands_for_what_a_softmax_gave():
    """Turned and not softened twice, one tensor would mend two lines."""
    found = said("one_head.batched", TWICE)
    assert "Line 5: The softmax is applied twice." in found.message
    assert "Line 6: " in found.message and "Mend line 5 first." in found.message


HALF = """
def batched_attention(q, k, v):
    table = q @ k.mT
    table = table / v.shape[0] ** 1/2
    return torch.einsum("nij,nid->njd", table.softmax(-1), v)
"""


def test_a_second_slip_in_a_line_hides_no_third_in_another():
    found = said("one_head.batched", HALF)
    assert "Line 3: " in found.message and "is no root" in found.message
    assert "Line 4: The axes of its left operand stand the wrong way round." in found.message


def test_no_way_to_mend_is_tried_once_so_many_steps_were_made_again(monkeypatch):
    own, after, tried = program("heads of the values by a reshape, twice soft"), Replay.after, []
    monkeypatch.setattr(Replay, "after", lambda *a: tried.append(a) or after(*a))
    look(own.task, own.text).told()
    most = len(tried)
    monkeypatch.setattr(replay, "MOST_STEPS", 20)
    look(own.task, own.text).told()
    assert len(tried) - most < most
