"""Of a statement over several lines the line is told, marked and shown on which the part stands."""

import re

import pytest

from autograder.reports.findings import rows
from tests.tracing.helper import told
from tests.tracing.programs import PROGRAMS
from tests.tracing.test_first_line import failing

SCALED_IN_A_DICT = """\
def batched_attention(q, k, v):
    d = q.shape[-1]
    parts = {
        "scores": q @ k.transpose(-2, -1) / d,
        "values": v,
    }
    w = torch.softmax(parts["scores"], dim=-1)
    return w @ parts["values"]
"""
SCALED_IN_A_RETURN = """\
def batched_attention(q, k, v):
    return (
        torch.softmax(
            q
            @ k.transpose(-2, -1)
            / q.shape[1] ** 0.5,
            dim=-1,
        )
        @ v
    )
"""
MERGED_IN_A_RETURN = """\
def attend(q, k, v, num_heads):
    b, n, h = q.shape
    d = h // num_heads
    q = q.view(b, n, num_heads, d).transpose(1, 2)
    k = k.view(b, n, num_heads, d).transpose(1, 2)
    v = v.view(b, n, num_heads, d).transpose(1, 2)
    scores = q @ k.transpose(-2, -1) / d ** 0.5
    mask = torch.ones(n, n).triu(1).bool()
    probs = torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
    return (
        (probs @ v).reshape(b, n, h),
        probs.reshape(b * num_heads, n, n),
    )
"""
DOUBLED_IN_A_CALL = """\
def simple_attention(x):
    return torch.einsum(
        "bqk,bkd->bqd",
        torch.softmax(
            x @ x.mT * 2,
            -1),
        x)
"""
TWO_IN_A_DICT = """\
def batched_attention(q, k, v):
    d = q.shape[-1]
    parts = {
        "weights": torch.softmax(
            q @ k.transpose(-2, -1) / d,
            dim=1),
        "values": v,
    }
    return parts["weights"] @ parts["values"]
"""

TWO_KEYS = """\
def attend(q, k, v, num_heads):
    b, n, h = q.shape
    d = h // num_heads
    parts = {
        "size": d ** 0.25,
        "mask": torch.ones(n, n).triu(2).bool(),
        "q": q.view(b, n, num_heads, d).transpose(1, 2),
        "k": k.view(b, n, num_heads, d).transpose(1, 2),
        "v": v.view(b, n, num_heads, d).transpose(1, 2),
    }
    scores = parts["q"] @ parts["k"].transpose(-2, -1) / parts["size"]
    probs = torch.softmax(scores.masked_fill(parts["mask"], float("-inf")), dim=-1)
    out = (probs @ parts["v"]).transpose(1, 2).reshape(b, n, h)
    return out, probs.reshape(b * num_heads, n, n)
"""


def wrong(task: str, text: str):
    return next(f for f in told(task, text) if f.fails)


@pytest.mark.parametrize(
    ("task", "text", "line"),
    [
        ("one_head.batched", SCALED_IN_A_DICT, 4),
        ("one_head.batched", SCALED_IN_A_RETURN, 6),
        ("heads.attend", MERGED_IN_A_RETURN, 11),
        ("simple.matmul", DOUBLED_IN_A_CALL, 5),
    ],
)
def test_the_line_is_that_of_the_part(task, text, line):
    found = wrong(task, text)
    assert found.where.first_wrong == found.line == line
    assert found.statement == text.split("\n")[line - 1].strip()
    said = dict(rows(found))
    assert said["line"].startswith(f"{line}: ")
    assert f"Line {line} is the first that goes wrong" in said["where"]


def test_what_is_right_before_it_is_told_with_a_line_of_its_own():
    found = wrong("one_head.batched", SCALED_IN_A_RETURN)
    assert "Line 5 is right so far: these are the scores." in dict(rows(found))["where"]
    found = wrong("one_head.batched", SCALED_IN_A_DICT)
    assert "Within line 4, the scores come out right." in dict(rows(found))["where"]


def test_two_parts_of_a_statement_are_told_in_the_order_in_which_they_are_written():
    found = wrong("one_head.batched", TWO_IN_A_DICT)
    assert re.findall(r"Line (\d+): ", found.message) == ["4", "5"]
    assert "Mend line 4 first." in found.message
    assert found.where.first_wrong == found.line == 4


def test_so_are_two_that_changes_prove():
    found = wrong("heads.attend", TWO_KEYS)
    assert re.findall(r"Line (\d+): ", found.message) == ["5", "6"]
    assert "Mend line 5 first." in found.message
    assert found.where.first_wrong == found.line == 5


def test_a_card_has_one_line_for_what_goes_wrong_first():
    """Where the two rows that name a line are of one statement, they name the same."""
    for program in PROGRAMS:
        found = failing(program)
        if found.where is not None and found.where.first_wrong != found.line:
            assert found.where.first_wrong < found.line and "goes wrong before" in found.message
