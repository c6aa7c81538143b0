"""The tracer alone: the instrumented program does what the program did, and says what it saw."""

import pytest
import torch

from autograder.shapes import plan, prepare, record
from autograder.shapes.match import results
from autograder.shapes.recording import Tensor, read_recording
from autograder.shapes.tracer import helper_names, trace


def seen(body, call="f(x[m, n])"):
    """The shapes that each statement of a function made, in the first run (m=3, n=5)."""
    source = "def f(x):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    asked = plan(call)
    traced = trace(source)
    evidence = read_recording(record.run(prepare(source, asked)), traced, len(asked.sizes))
    return {
        s.line - 1: results(s, evidence.executions[s.id][0])
        for s in traced.stmts
        if s.kind not in ("def", "header") and s.id in evidence.executions
    }


@pytest.mark.parametrize(
    "line, shape",
    [
        ("y = x.transpose(0, 1)", (5, 3)),
        ("return x @ x.T", (3, 3)),
        ("y = [x[:, 0] for _ in range(2)]", (3,)),
        ("y = torch.einsum('mn,kn->mk', x, x)", (3, 3)),
        ("x.unsqueeze_(0)", (1, 3, 5)),
        ("x += 1", (3, 5)),
        ("y: Tensor = x.flatten()", (15,)),
        ("y = (lambda t: t.sum(0))(x)", (5,)),
        ("y = x if x.size(0) > 1 else x[0]", (3, 5)),
    ],
)
def test_every_kind_of_statement_is_seen(line, shape):
    assert shape in seen(line)[1]


def test_a_shape_is_noted_before_it_is_changed_in_place():
    assert seen("y = x[None]\ny.squeeze_(0)\nreturn y + 1") == {
        1: [(1, 3, 5)],
        2: [(3, 5)],
        3: [(3, 5)],
    }


def test_every_expression_is_evaluated_once():
    source = "def f(x, log):\n    log.append(1)\n    return g(x, log) + g(x, log)\n"
    source += "def g(x, log):\n    log.append(2)\n    return x * 2\n"
    rec, at = helper_names(source)
    space = {rec: lambda node, value: value, at: lambda *a: None}
    exec("\n".join(text for _, text in trace(source).parts), space)
    log: list = []
    assert torch.equal(space["f"](torch.ones(2), log), torch.full((2,), 4.0))
    assert log == [1, 2, 2]


def test_nothing_is_run_by_looking():
    traced = trace("import nowhere\nraise SystemExit\ndef f(x):\n    return x\n")
    assert [f.name for f in traced.functions] == ["f"]


def test_names_of_the_recorder_never_meet_those_of_the_code():
    first, _ = helper_names("shape_rec = 1")
    assert first not in "shape_rec = 1"


def test_a_source_without_end_is_refused():
    with pytest.raises(ValueError):
        trace("x = 1\n" * 100_000)


def test_an_argument_is_known_where_a_function_begins():
    source = "def f(x):\n    return x\n"
    asked = plan("f(x[m, n])")
    traced = trace(source)
    evidence = read_recording(record.run(prepare(source, asked)), traced, len(asked.sizes))
    start = next(s for s in traced.stmts if s.kind == "def")
    assert evidence.executions[start.id][0].before["x"] == Tensor((3, 5))
