"""What is the same for a whole class is worked out once, and changes nothing that is said."""

from dataclasses import replace

import pytest
import torch

from autograder.course.answers import compute
from autograder.course.calls import Draw
from autograder.course.course import Course
from autograder.course.steps import bank
from autograder.course.steps.traces import alike, signature, values_here
from autograder.tracing.alike import Known, Shelf, likeness, near, plain
from tests.conftest import ROOT

TASK = "one_head.batched"


def programs():
    written = Course.at(ROOT).written[TASK]
    return compute(written, written.exercise.cases(Draw(3))).bank


def test_the_second_to_ask_runs_no_known_mistake_again(monkeypatch):
    known, ran = programs(), []
    run = values_here
    monkeypatch.setattr(bank, "values_here", lambda *a: ran.append(a) or run(*a))
    sizes = {step.value.numel() for step in known.right(0).steps}
    first = list(known.wrong(0, (), sizes))
    count = len(ran)
    assert count == len(first) > 5 and list(known.wrong(0, (), sizes)) == first
    assert len(ran) == count and known.right(0) is known.right(0)


def test_what_was_kept_for_some_sizes_is_all_there_for_others():
    one, other = programs(), programs()
    sizes = {step.value.numel() for step in one.right(0).steps}
    assert all(not mistake.signatures for mistake in one.wrong(0, (), ()))
    assert list(one.wrong(0, (), sizes)) == list(other.wrong(0, (), sizes))


def test_programs_of_several_mistakes_are_kept_up_to_a_number(monkeypatch):
    known = programs()
    monkeypatch.setattr(bank, "MOST_KEPT", 0)
    numbers = next(
        (a, b)
        for a in range(len(known.written.mistakes))
        for b in range(a)
        if known.trace(0, (a, b)) is not None
    )
    marks = known._marks(0, numbers)
    assert marks and ("marks", 0, numbers) not in known._kept and known._marks(0, numbers) == marks


@pytest.mark.parametrize(
    "value",
    [
        torch.randn(4, 5, dtype=torch.float64),
        torch.randn(4, 5, dtype=torch.float64).masked_fill(torch.ones(4, 5).triu() > 0, -torch.inf),
        torch.tensor([1.0, torch.nan, 3.0], dtype=torch.float64),
        torch.tensor([1e6, -2e6, 3.0], dtype=torch.float64),
        torch.zeros(0, dtype=torch.float64),
    ],
)
def test_a_signature_holds_the_sizes_the_means_and_the_ends(value):
    own = signature(value)
    seen = value[value.isfinite()]
    means = [float((seen**k).mean()) if len(seen) else 0.0 for k in (1, 2, 3)]
    ends = [float(seen.min()), float(seen.max())] if len(seen) else [0.0, 0.0]
    hidden = int(value.isinf().sum())
    assert own[:3] == (value.numel(), int(value.isnan().sum()), hidden)
    assert own[3:8] == pytest.approx([*means, *ends]) and alike(own, signature(value.flip(0)))


def test_numbers_with_the_same_ends_are_told_apart():
    ends = [0.0, 1.0]
    one = torch.tensor([*ends, 0.2, 0.4, 0.7, 0.9], dtype=torch.float64)
    other = torch.tensor([*ends, 0.3, 0.4, 0.7, 0.9], dtype=torch.float64)
    assert likeness(one, [Known(0, [other])]) is None
    assert likeness(one, Shelf([Known(0, [other]), Known(1, [one.flip(0)])])).known.place == 1


def test_what_hides_is_compared_as_what_it_is():
    scores = torch.arange(9.0, dtype=torch.float64).reshape(3, 3) ** 1.5
    hidden = scores.masked_fill(torch.ones(3, 3).triu(1) > 0, -torch.inf)
    assert plain(scores) is scores and not near(plain(hidden), plain(scores))
    assert near(plain(hidden), plain(hidden.nan_to_num(neginf=-1e9)))


def test_a_copy_of_the_bank_keeps_for_itself():
    known = programs()
    known.once("mine", lambda: 1)
    assert replace(known).once("mine", lambda: 2) == 2 and known.once("mine", lambda: 3) == 1
