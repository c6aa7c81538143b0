"""Writes docs/what_a_slip_costs.md by grading the programs of `tests.slips`:

python -m tests.what_a_slip_costs
"""

from __future__ import annotations

import re
from functools import cache

from autograder.judging.explain import CAUSES, RAISED
from autograder.reports.report import number
from tests import slips
from tests.conftest import ROOT
from tests.here import Marks, grade

PAGE = ROOT / "docs" / "what_a_slip_costs.md"
HEAD = """\
# What a slip costs

Each program below is the solution of the [graded homework](../solutions/05_homework.py) with one
slip in it (in the last table of each class: with two). All were graded as submissions are, and
this page was written from what came out: `python -m tests.what_a_slip_costs`.

- A slip costs the step that it is made in. The steps after it are judged by what they make of
  what they were given.
- A wrong scale, of any kind, costs one point where the rest is right. Beside another slip it is
  forgiven no more than that one.
- Layers that are not as they were asked for cost one point in a class: in SelfAttention the point
  of task 1.1, in MultiHeadSelfAttention one that is taken off. All else is judged as if they were
  right; a layer under another name is looked for.
- PEP 8 and shape comments take one point off each. A wrong width makes comments false that would
  be true of the right one: it is charged once.
- A program that stops with an error has done the steps before it, as far as its variables show
  them; nothing can be seen of those that would have come after.
- A class never falls below zero."""
CLASSES = (
    (
        slips.SINGLE,
        "SelfAttention (4 points)",
        {"init": "1.1 layers", "forward": "1.2 forward"},
    ),
    (
        slips.MULTI,
        "MultiHeadSelfAttention (6 points)",
        {"scores": "2.1 scores", "mask": "2.2 mask", "output": "2.3 output"},
    ),
)
# What follows the sentence that names a mistake: how the values of one call differ.
_OURS = re.compile(
    r"\. ((?:The left operand|The new shape|The mask|`\w+`) .*)"
)  # behind PyTorch's own words
_SIZES = re.compile(r"\[\d+(, \d+)*\]")  # as drawn
_DIFFERENCE = re.compile(r" ?\(?(The result|Part \d of the result|The gradient of) .*")


@cache
def marks(cell: str, source: str) -> Marks:
    return grade(cell, source)


def page() -> str:
    """The whole page, as it should be."""
    parts = [HEAD]
    for cell, title, tasks in CLASSES:
        single = {name: change for *_, group in slips.SLIPS[cell] for name, change in group.items()}
        parts += [f"## {title}", _table(cell, tasks, single)]
        parts += [f"### Two slips in {title.partition(' ')[0]}"]
        parts += [_table(cell, tasks, slips.PAIRS[cell])]
    return "\n".join(f"{part}\n" for part in parts).rstrip() + "\n"


def _table(cell: str, tasks: dict[str, str], programs: dict[str, slips.Change]) -> str:
    rows = [["slip", *tasks.values(), "taken off", "in all", "what is said"]]
    rows.append(["---"] + ["---:"] * (len(tasks) + 2) + ["---"])
    lines = [_line(row) for row in rows]
    return "\n".join([*lines, *(row(cell, name, change) for name, change in programs.items())])


def row(cell: str, name: str, change: slips.Change) -> str:
    """The line of the page that is about one slip, or two."""
    got = marks(cell, slips.program(cell, change))
    points = [number(got.points[task]) for task in next(t for c, _, t in CLASSES if c == cell)]
    taken = number(sum(got.taken.values()))
    return _line([name, *points, taken, number(got.total), _said(got)])


def _line(row: list[str]) -> str:
    return f"| {' | '.join(row)} |"


def _said(got: Marks) -> str:
    """What is said, without what differs from machine to machine: numbers, PyTorch's own words."""
    said = []
    for text in got.said:
        text = text.removeprefix("1 point off for ")
        cause = next((c for *_, c in CAUSES if c in text), None)
        error = re.search(r"Line \d+: (\w+Error)", text)
        if error:
            before, after = text[: error.start()], text.partition(cause or RAISED)[2]
            ours = _OURS.search(text)
            if cause is None and ours:
                after = re.sub(r"(left|right), \d+", r"\1, n", _SIZES.sub("[...]", ours[1]))
                after = re.sub(
                    r"\d[\d *]* = \d+ numbers, the tensor \d+", "too many or too few", after
                )
                said.append(f"{before}{error[1]}. {after}")
            else:
                said.append(f"{before}{error[1]}. {cause or RAISED}{after}")
        else:
            said.append(_SIZES.sub("[...]", _DIFFERENCE.sub("", text)) or "Some values differ.")
    return "<br>".join(dict.fromkeys(said)).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: {PAGE}")
