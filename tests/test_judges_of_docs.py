"""The judges that docs/build_your_own.md names are there, and the one that it writes is safe."""

import importlib
import math
import re

import pytest
import torch

from autograder.course.asking import Exercise, Sight
from autograder.course.calls import Call, Outcome
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "build_your_own.md").read_text(encoding="utf-8")


def named() -> list[tuple[str, str]]:
    """Module and function of each; a name without a module is in that of the one before."""
    text = re.search(
        r"Judges that are there \(`autograder\.judging`\):(.*?); each says", PAGE, re.S
    )
    found, module = [], ""
    for name in re.findall(r"`([\w.]+)`", text[1]):
        head, _, tail = name.rpartition(".")
        module = head or module
        found.append((module, tail))
    return found


@pytest.mark.parametrize("module, name", named())
def test_a_judge_that_the_page_names_can_be_imported(module, name):
    judge = getattr(importlib.import_module(f"autograder.judging.{module}"), name)
    assert callable(judge) and judge.__doc__


@pytest.mark.parametrize(
    "value, right",
    [(0.5, True), (torch.tensor(0.55), True), (0.7, False), (math.nan, False), (math.inf, False)],
)
def test_the_judge_that_the_page_writes_lets_no_nan_pass(value, right):
    (block,) = (b for b in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "a_fair_coin" in b)
    there: dict = {}
    exec(block, there)
    exercise = Exercise("coin", "coin", lambda draw: [], ("1", "2", "3"))
    sight = Sight(exercise, (Call("coin"),), (Outcome(value),), (Outcome(0.5),))
    assert (there["a_fair_coin"](sight, slack=0.1) == []) is right
