"""What crosses the wall is bounded, and a child that lies about its steps gains nothing."""

import copy
import math
import sys
import warnings

import pytest
import torch

from autograder.course.calls import Call, run_here
from autograder.course.steps.traces import read, to_steps_request, trace_here
from autograder.sandbox.inside import steps
from autograder.sandbox.inside.runner import Runner


def reply_to(source: str, *args):
    sys.modules["course_steps"] = steps
    runner = Runner({})
    assert runner.run_cell({"id": "answer", "source": "import torch\n" + source}) is None
    return runner.handle(*to_steps_request([Call("f", args)]))


def trace_of(source: str, *args):
    return read(*reply_to(source, *args), 1)[0]


X = torch.arange(6.0).reshape(2, 3) ** 2


def test_each_operation_is_a_step_with_its_line_and_what_it_was_made_of():
    trace = trace_of("def f(x):\n    y = x * 2\n    return y.exp() @ x.T", X)
    own = [s for s in trace.steps if s.place]
    assert [(s.op, s.place[0]) for s in own][:2] == [("mul", 3), ("exp", 4)]
    assert own[-1].value.shape == (2, 2) and trace.steps[trace.returned[0]] is own[-1]
    exp = trace.steps.index(own[1])
    assert exp in own[-1].inputs


def test_an_operation_in_place_changes_what_comes_after_it_and_nothing_before():
    trace = trace_of("def f(x):\n    y = x + 1\n    z = y * 1\n    y.zero_()\n    return y + z", X)
    plus = next(s for s in trace.steps if s.op == "add")
    assert torch.equal(plus.value, (X + 1).double())
    assert torch.equal(trace.steps[trace.returned[0]].value, (X + 1).double())


def test_a_part_that_is_written_to_changes_the_whole():
    trace = trace_of("def f(x):\n    y = torch.zeros(2, 3)\n    y[0][1] = 7\n    return y * 1", X)
    last = trace.steps[trace.returned[0]]
    before = trace.steps[last.inputs[0]]
    assert before.value[0, 1] == 7


def test_a_loop_that_fills_a_tensor_is_one_step():
    source = "def f(x):\n    y = torch.zeros(50)\n    for i in range(50):\n        y[i] = i\n"
    trace = trace_of(source + "    return y * 1", X)
    assert sum(s.op == "__setitem__" for s in trace.steps) == 1


def test_the_operands_of_an_error_are_known():
    trace = trace_of("def f(x):\n    return x @ x", X)
    assert trace.stopped.op in ("matmul", "__matmul__") and trace.stopped.place[0] == 3
    assert [tuple(trace.steps[i].value.shape) for i in trace.stopped.inputs] == [(2, 3), (2, 3)]


@pytest.mark.parametrize(
    "body",
    [
        "for i in range(5000):\n        x = x + 1\n    return x",
        "for i in range(40):\n        x = torch.ones(10_000) * i\n    return x",
        "return torch.ones(30_000)",
    ],
)
def test_more_than_is_written_down_is_full(body):
    trace = trace_of("def f(x):\n    " + body, X)
    assert trace.full and len(trace.steps) <= steps.MAX_STEPS
    assert sum(s.value.numel() for s in trace.steps) <= steps.MAX_ALL


def lies():
    yield "no traces", lambda h, t: h.pop("traces")
    yield "no steps", lambda h, t: h["traces"][0].pop("steps")
    yield "steps without end", lambda h, t: h["traces"][0].update(steps=[{}] * 9_999)
    yield "a text for a shape", lambda h, t: h["traces"][0]["steps"][0].update(shape="abc")
    yield "a negative size", lambda h, t: h["traces"][0]["steps"][0].update(shape=[-1, 4])
    yield "a size without numbers", lambda h, t: h["traces"][0]["steps"][-1].update(shape=[9**9])
    yield "a shape of zeros", lambda h, t: h["traces"][0]["steps"][-1].update(shape=[0, 9**99])
    yield "numbers of another kind", lambda h, t: t.update(values0=torch.zeros(3, dtype=torch.int))
    yield "no numbers", lambda h, t: t.clear()
    yield "no number of a step", lambda h, t: h["traces"][0]["steps"][0].update(number=None)
    yield "far more numbers", lambda h, t: t.update(values0=torch.zeros(10**6).double())


@pytest.mark.parametrize("lie", [pytest.param(change, id=name) for name, change in lies()])
def test_a_reply_that_cannot_be_is_refused(lie):
    header, tensors = copy.deepcopy(reply_to("def f(x):\n    return x * 2", X))
    lie(header, tensors)
    with pytest.raises(ValueError):
        read(header, tensors, 1)


def test_places_that_cannot_be_are_none():
    header, tensors = reply_to("def f(x):\n    return x * 2", X)
    for place in ("x", [1, 2], [math.nan, 1, 2, 3], [0, 0, 0, 0], [-5, 1, 1, 1], [True] * 3):
        header["traces"][0]["steps"][-1]["place"] = place
        assert read(header, tensors, 1)[0].steps[-1].place is None


def test_looking_at_steps_leaves_the_random_numbers_alone_and_ends_with_the_call():
    namespace = {"f": lambda x: x + torch.rand(3)}
    trace_here(namespace, [Call("f", (X,), seed=3)])
    assert not torch.overrides._get_current_function_mode_stack()


def test_what_stands_inside_a_vmap_or_on_no_device_is_left_out_and_the_rest_is_written_down():
    row = "def f(x):\n    half = x / 2\n    rows = torch.vmap(lambda r: r.flip(0) * 3)(half)\n"
    ways = (
        f"{row}    return rows + 1",
        "def f(x):\n    half = x / 2\n    g = torch.func.grad(lambda t: (t * t * 3).sum())(half)\n"
        "    return g + 1",
        "def f(x):\n    half = x / 2\n    torch.zeros(3, device='meta') + 1\n    return half + 1",
    )
    for source in ways:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trace = trace_of(source, X)
        last = trace.steps[trace.returned[0]]
        assert [s.op for s in trace.steps if s.place] == ["div", "add"], source
        assert torch.equal(trace.steps[last.inputs[0]].value + 1, last.value)


def test_a_call_that_stops_inside_a_vmap_is_answered_with_its_error():
    stopped = "def f(x):\n    return torch.vmap(lambda r: r @ torch.ones(5))(x)"
    for source in (
        stopped,
        "def f(x):\n    wave = x * 1j\n    empty = x.to('meta')\n    return 1 / 0",
    ):
        runner = Runner({})
        assert runner.run_cell({"id": "answer", "source": f"import torch\n{source}"}) is None
        got = run_here(runner.namespace, [Call("f", (X,))])[0]
        assert got.error["type"] in ("RuntimeError", "ZeroDivisionError")
        assert got.error["line"] == len(source.splitlines()) + 1
