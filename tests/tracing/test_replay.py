"""Recorded steps are made again as they were, and hostile ones are not made at all."""

import pytest
import torch

from autograder.course.steps.traces import Done, Step, Trace, read
from autograder.tracing.proof.operations import NotAgain, call
from autograder.tracing.proof.replay import Replay
from tests.tracing.helper import told
from tests.tracing.test_steps import reply_to

X = torch.arange(12.0).reshape(3, 4) ** 2
LOOPS = """
def f(x):
    out = torch.zeros(3, 4)
    rows = [torch.softmax(row, dim=-1) for row in x]
    for i in range(3):
        out[i] = rows[i] * 2
    out[0] += 1
    s = torch.einsum("ij,kj->ik", out, x) / x.shape[-1] ** 0.5
    s = s.masked_fill(torch.ones(3, 3).triu(1).bool(), float("-inf"))
    w = nn.functional.softmax(s, dim=-1)
    y = torch.cat([w @ x, x.mT.reshape(3, 4)], dim=1)
    y /= 3
    return y[:, 1:].flatten()
"""


def traced(source: str, *args) -> Trace:
    return read(*reply_to("from torch import nn\n" + source, *args), 1)[0]


def test_all_steps_of_a_program_come_out_as_they_were_recorded():
    trace = traced(LOOPS, X)
    replay = Replay(trace)
    made = [i for i, step in enumerate(trace.steps) if step.inputs and step.op != "changed"]
    assert len(made) > 12
    assert [trace.steps[i].op for i in made if not replay.is_sound(i)] == []


def test_with_another_value_all_that_follows_is_what_the_program_gives():
    """The other run is the program's own, with the other number in its input."""
    other = X.clone()
    other[1, 2] = 50.0
    one, two = traced(LOOPS, X), traced(LOOPS, other)
    given = next(i for i, step in enumerate(one.steps) if step.op == "given")
    changed = Replay(one).after({given: two.steps[given].value})
    assert torch.allclose(changed[one.returned[0]], two.steps[two.returned[0]].value, rtol=1e-5)


def test_a_step_of_random_numbers_is_never_made_again():
    trace = traced("def f(x):\n    return nn.functional.dropout(x, 0.5, True) + 1", X)
    with pytest.raises(NotAgain):
        Replay(trace).after({0: X.double() + 1})


@pytest.mark.parametrize(
    "name", ["load", "save", "compile", "__class__", "__reduce__", "numpy", "apply_", "map_", ""]
)
def test_only_operations_of_the_list_are_made(name):
    with pytest.raises(NotAgain):
        call(name, [torch.ones(2)], {})


WIDE, TALL = torch.ones(1, 20_000), torch.ones(20_000, 1)


@pytest.mark.parametrize(
    "name, given",
    [
        ("mul", [WIDE, TALL]),
        ("matmul", [TALL, WIDE]),
        ("einsum", ["ij,kl->ijkl", WIDE, TALL]),
        ("einsum", ["...i,j->...ij", TALL, WIDE.flatten()]),
        ("outer", [WIDE.flatten(), WIDE.flatten()]),
        ("repeat", [WIDE, 20_000, 1]),
        ("repeat_interleave", [WIDE, 20_000, 0]),
        ("repeat_interleave", [WIDE, torch.tensor([20_000]), 0]),
        ("tile", [WIDE, [20_000, 1]]),
        ("expand", [WIDE, 20_000, -1]),
        ("diag", [WIDE.flatten()]),
        ("scaled_dot_product_attention", [TALL, TALL, TALL]),
        ("index_select", [WIDE, 0, torch.zeros(20_000, dtype=torch.int64)]),
        ("__getitem__", [WIDE, torch.zeros(20_000, dtype=torch.int64)]),
        ("where", [WIDE > 0, TALL, WIDE]),
        ("cat", [[WIDE] * 40, 0]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_operation_that_would_make_far_more_numbers_is_not_made(name, given):
    with pytest.raises(NotAgain):
        call(name, given, {})


def test_a_step_that_lies_about_its_operation_changes_nothing():
    one = Step("given", None, (), X.double())
    lie = Done("mul", (("t", 0), ("v", 3)))
    other = Step("add", (2, 2, 0, 5), (0,), X.double(), calls=(lie,))
    with pytest.raises(NotAgain):
        Replay(Trace((one, other), (1,))).after({0: X.double() + 1})


def test_arguments_that_cannot_be_are_no_arguments():
    source = "def f(x):\n    return x.sum(dim=0)"
    for lie in (["t", 99], ["v", 10**9], ["x"], [], "abc", ["u", *[["v", 1]] * 90], None):
        header, tensors = reply_to(source, X)
        row = header["traces"][0]["steps"][-1]
        row["calls"][0][1] = [lie]
        assert read(header, tensors, 1)[0].steps[-1].calls is None


# --- a step too many ------------------------------------------------------------------------------
def test_a_step_too_many_on_whole_numbers_is_told():
    source = """def alibi_attention(q, k, v, slopes):
    n, size = q.shape[-2:]
    places = torch.arange(n)
    far = (places[:, None] - places).clamp(min=0) / n
    table = q @ k.mT / size ** 0.5 - slopes[:, None, None] * far
    table = table.masked_fill(places > places[:, None], -torch.inf)
    return table.softmax(-1) @ v
"""
    (found,) = (f for f in told("variants.alibi", source) if f.fails)
    assert found.where.first_wrong == 4 and "one too many" in found.where.how


def test_what_a_product_adds_without_need_is_told():
    source = """def attention_weights(q, k):
    table = torch.addmm(torch.eye(len(q)), q, k.T, alpha=q.shape[1] ** -0.5)
    return table.softmax(-1)
"""
    (found,) = (f for f in told("one_head.scale", source) if f.fails)
    assert found.where.first_wrong == 2
    assert "only the diagonal is wrong; something is added" in found.where.how
