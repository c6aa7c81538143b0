"""The work that a call does is counted: what is made, multiplied and called."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from autograder.course.calls import Call, from_reply, pack_call, run_here, to_request, unpack_call
from autograder.sandbox.inside.work import Work

A, B = torch.randn(3, 5), torch.randn(5, 7)


def work_of(function, *args, **more):
    return run_here({"f": function}, [Call("f", args, work=True, **more)])[0].work


@pytest.mark.parametrize(
    "product",
    [
        lambda a, b: a @ b,
        lambda a, b: torch.einsum("ij,jk->ik", a, b),
        lambda a, b: nn.functional.linear(a, b.T),
        lambda a, b: torch.bmm(a[None], b[None])[0],
        lambda a, b: torch.stack([row @ b for row in a]),
        lambda a, b: torch.stack([torch.stack([r.dot(c) for c in b.T]) for r in a]),
    ],
)
def test_a_product_costs_the_same_in_every_style(product):
    assert work_of(product, A, B)["flops"] == 2 * 3 * 5 * 7


def test_a_large_tensor_on_the_way_is_seen():
    made = work_of(lambda a: (a[:, :, None] * torch.ones(11)).sum(), A)["made"]
    assert made[0] == ("float32", (3, 5, 11), 1)


@pytest.mark.parametrize(
    "nothing",
    [
        lambda a: a.T,
        lambda a: a[None].expand(100, -1, -1),
        lambda a: a.view(-1)[2:5],
        lambda a: a.add_(1),
        lambda a: a.unsqueeze(0).transpose(0, 1),
    ],
)
def test_a_view_or_an_edit_in_place_makes_nothing(nothing):
    assert work_of(nothing, A)["made"] == []


def test_exponentials_are_counted_however_they_are_written():
    for function in (torch.exp, lambda a: a.softmax(-1), lambda a: a.logsumexp(-1)):
        assert work_of(function, A)["exponentials"] == 15


def test_kernels_are_counted_by_name():
    assert work_of(lambda a, b: (a @ b) + (a @ b), A, B)["kernels"]["mm"] == 2


def test_only_where_it_is_asked_for_is_work_counted():
    assert run_here({"f": torch.exp}, [Call("f", (A,))])[0].work == {}


def test_a_call_that_counts_work_is_written_down_as_such():
    tensors: dict = {}
    packed = pack_call(Call("f", (A,), work=True), tensors)
    assert unpack_call(packed, tensors).work is True


def test_work_is_counted_inside_the_sandbox(grader):
    source = "def f(a, b):\n    return a @ b"
    box = grader.box(next(iter(grader.lessons.values())))
    with box.child() as child:
        child.request({"op": "load", "cells": [{"id": "c", "source": source}]}, {})
        reply, out = child.request(*to_request([Call("f", (A, B), work=True)]))
        assert from_reply(reply, out, 1)[0].work["flops"] == 2 * 3 * 5 * 7


def test_the_recorder_leaves_results_alone():
    with Work() as work:
        result = A @ B
    assert torch.equal(result, A @ B) and work.told()["made"] == [["float32", [3, 7], 1]]


COSTLY = """
import sys, torch
from autograder.sandbox.inside.work import Work
from autograder.tracing.proof.operations import call
with Work():
    torch.einsum("ij,kj->ik", torch.ones(2, 3), torch.ones(2, 3))
for name, given in ("mul", [torch.ones(2, 1), torch.ones(3)]), ("tile", [torch.ones(2), 3]):
    call(name, given, {})
print([m for m in ("torch._dynamo", "sympy") if m in sys.modules])
"""


@pytest.mark.slow
def test_neither_counting_nor_a_step_made_again_imports_a_compiler():
    """Either takes a second of every process."""
    run = [sys.executable, "-c", COSTLY]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
