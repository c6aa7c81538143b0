"""A recording comes from a process that ran a stranger's code: garbage in, no trouble out."""

import copy
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.shapes import judge, plan, prepare, record
from autograder.shapes.recording import BadRecording, read_recording
from autograder.shapes.tracer import trace
from tests.forms import examples

SOURCE = """
def f(x):
    y = x.transpose(0, 1)  # [n, m]
    return y @ x  # [n, n]
"""
PLAN = plan("f(x[m, n])")
GOOD = record.run(prepare(SOURCE, PLAN))

json_like = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["table", "runs", "problem", "constants", "config", "error", "stmts", "0", "1"]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


def test_a_true_recording_gives_true_verdicts():
    assert [v.verdict for v in judge(SOURCE, PLAN, GOOD)] == ["true", "true"]


@settings(max_examples=examples(60, 200), deadline=None, derandomize=True)
@given(json_like)
def test_garbage_is_never_more_than_cannot_tell(garbage):
    for verdict in judge(SOURCE, PLAN, garbage):
        assert verdict.verdict == "cannot tell"


@settings(max_examples=examples(60, 200), deadline=None, derandomize=True)
@given(st.data())
def test_a_recording_with_one_part_replaced_raises_nothing(data):
    recording = copy.deepcopy(GOOD)
    place, key = recording, data.draw(st.sampled_from(sorted(recording)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
        place = place[key]
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = data.draw(st.sampled_from(list(keys)))
    place[key] = data.draw(json_like)
    assert isinstance(judge(SOURCE, PLAN, recording), list)


@pytest.mark.parametrize(
    "change",
    [
        {"table": "x"},
        {"runs": [{"config": 99, "error": None, "stmts": {}}]},
        {"runs": [{"config": 0, "error": None, "stmts": {"9999": []}}]},
        {"runs": [{"config": 0, "error": None, "stmts": {"0": [[[[0, -5]], None, None]]}}]},
        {"table": [["t", [1] * 99]]},
        {"table": [["t", [-3]]]},
        {"table": [["z", 1]]},
    ],
)
def test_what_the_recorder_never_writes_is_refused(change):
    with pytest.raises(BadRecording):
        read_recording({**GOOD, **change}, trace(SOURCE), len(PLAN.sizes))


LAYERS = """
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()  # [batch, width]
        {}
        return x.T  # [width, batch]
"""
ASKS = ("x = x / x.max().item()", "x = x[x[:, 0] > -1]", "x = x * float(x.sum() > 0)")
ASKS_NOT = ("x = x.flip(0)", "x = x * int(x.numel() > 0)", "x = torch.where(x > 0, x, 0)")
ASKS_NOT += ("x = x.flip(0) if (x > 9).any() else x * 2",)


@pytest.mark.parametrize("line", [*ASKS, *ASKS_NOT])
def test_a_run_that_takes_long_gives_the_same_without_numbers_or_with_them(line, monkeypatch):
    """With numbers each statement takes a second here; some lines ask for numbers all the same."""
    job = prepare(LAYERS.format(line), plan("Net(width)(x[batch, width])"))
    in_time, made, ticks = record.run(job), [], itertools.count()

    class Fake(record.FakeTensorMode):
        depth = 0

        def __enter__(self):
            Fake.depth += 1
            return super().__enter__()

        def __exit__(self, *error):
            Fake.depth -= 1
            return super().__exit__(*error)

    def without_numbers(**options):
        made.append(Fake(**options))
        return made[-1]

    def clock():
        return 0.0 if Fake.depth else float(next(ticks))

    monkeypatch.setattr(record, "FakeTensorMode", without_numbers)
    monkeypatch.setattr(record.time, "process_time", clock)
    late = record.run(job)
    assert late["runs"] == in_time["runs"] and late["table"] == in_time["table"]
    assert len(late["runs"]) == 3 and not any(run["error"] for run in late["runs"])
    assert len(made) == (1 if line in ASKS else 3)


def test_what_is_asked_of_numbers_that_nobody_has_is_answered_both_ways(monkeypatch):
    """First nothing holds; where the code stops then, all does."""
    monkeypatch.setattr(record, "SLOW", -1.0)
    checked = LAYERS.format("assert (x > -9).all()")
    job = prepare(checked, plan("Net(width)(x[batch, width])"))
    runs = record.run(job)["runs"]
    assert len(runs) == 3 and not any(run["error"] for run in runs)


def test_what_is_large_is_not_tried_with_numbers(monkeypatch):
    asked = []
    run = record._run
    monkeypatch.setattr(record, "_run", lambda *a: asked.append(record.LARGE) or run(*a))
    source = "def f(x):\n    y = x.flatten(2)  # [b, c, h * w]\n    return y.mT @ y\n"
    job = prepare(source, plan("f(x[b, c, h, w])"))
    monkeypatch.setattr(record, "LARGE", 1)
    late = record.run(job)
    monkeypatch.setattr(record, "LARGE", 10**9)
    assert late == record.run(job) and len(asked) == 6


MANY_ROUNDS = """
def f(x):
    kept = []
    for i in range(200):
        kept.append(x + i)
    return kept
"""


def test_of_a_loop_with_many_rounds_no_more_is_described_than_is_kept(monkeypatch):
    described, inner = [], record.describe
    monkeypatch.setattr(record, "describe", lambda *a: described.append(1) or inner(*a))
    record.run(prepare(MANY_ROUNDS, plan("f(x[n])")))
    assert len(described) < 10_000


def test_code_that_cannot_run_is_told_and_not_accused():
    broken = "def f(x):\n    raise SystemExit('bye')\n    return x * 2  # [9, 9]\n"
    found = judge(broken, PLAN, record.run(prepare(broken, PLAN)))
    assert {v.verdict for v in found} <= {"cannot tell"}
