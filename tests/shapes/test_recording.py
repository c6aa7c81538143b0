"""A recording comes from a process that ran a stranger's code: garbage in, no trouble out."""

import copy

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


def test_code_that_cannot_run_is_told_and_not_accused():
    broken = "def f(x):\n    raise SystemExit('bye')\n    return x * 2  # [9, 9]\n"
    found = judge(broken, PLAN, record.run(prepare(broken, PLAN)))
    assert {v.verdict for v in found} <= {"cannot tell"}
