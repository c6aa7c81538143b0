"""Reads the corpus: what each homework does, and what is expected of it.

The first lines of a file say it. A file of code stands in front of an answer (`cell`), or is the
answer (`replaces`), or is a cell of its own (`cell: added`). Where it `builds: the notebook`, its
`change` edits the parsed JSON; where it `builds: files`, its `hand_in` writes what is handed in.

    expect    0, or another number of points; `same`: what the answers earn without the attack;
              `err`: the cell's points are lost, with a reason, and no others; `refused`
    answers   `wrong` ones, which earn nothing (for cheats), or `right` ones
    stock     `yes` or `alone` where plain nbgrader can grade it without harm to this machine
    slow      `yes` where it takes as long as it is given
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from autograder.course.course import Course
from autograder.course.lesson import Lesson
from autograder.grading.demo import fill_in
from autograder.grading.grade import model_answers

HOMEWORK = "05_homework"
NAME = f"{HOMEWORK}.ipynb"
CORPUS = Path(__file__).parent / "corpus"
ROOT = Path(__file__).parents[2]

# The other class of a wrong homework is left as it was handed out.
WRONG = """class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()

    def forward(self, x):
        return x
"""


@dataclass(frozen=True)
class Entry:
    """One homework of the corpus."""

    name: str
    says: str
    source: str
    expect: tuple[str, ...]
    answers: str = "wrong"
    cell: str = "self_attention"
    replaces: bool = False
    builds: str = ""
    stock: str = ""
    slow: bool = False


def entries() -> list[Entry]:
    """All of the corpus, by name."""
    paths = sorted(p for p in CORPUS.iterdir() if p.suffix in (".py", ".ipy"))
    return [_read(path) for path in paths]


def _read(path: Path) -> Entry:
    text = path.read_text(encoding="utf-8")
    says = text.split('"""')[1].partition("\n\n")[0]
    facts = dict(re.findall(r"^(\w+): (.+)$", text.split('"""')[1], re.MULTILINE))
    expect = tuple(facts.pop("expect").split(" | "))
    for flag in ("replaces", "slow"):
        facts[flag] = facts.get(flag) == "yes"
    return Entry(path.stem, says, text, expect, **facts)


def released() -> Lesson:
    """The homework as it is handed out."""
    return Course.at(ROOT).lessons[HOMEWORK]


def answers_of(kind: str) -> dict[str, str]:
    """The answers of a homework by cell id: `right` or `wrong` ones, questions answered."""
    right = model_answers(Course.at(ROOT), HOMEWORK)
    if kind == "wrong":
        return {
            **right,
            "self_attention": WRONG,
            "multi_head": released().cell("multi_head").source,
        }
    return dict(right)


def honest() -> str:
    """A homework with every answer right, as a file's text."""
    return fill_in(released(), answers_of("right"))


def hand_in(entry: Entry, folder: Path, places: dict[str, str]) -> None:
    """Writes the homework into an empty folder; `places` says where there is something to harm."""
    answers = answers_of(entry.answers)
    source = re.sub(r"@([A-Z]+)@", lambda m: places.get(m[1], m[0]), entry.source)
    if entry.builds:
        made: dict = {}
        exec(compile(source, entry.name, "exec"), made)
        text = fill_in(released(), answers)
        if "hand_in" in made:
            made["hand_in"](folder, NAME, text)
            return
        notebook = json.loads(text)
        made["change"](notebook)
        (folder / NAME).write_text(json.dumps(notebook), encoding="utf-8")
        return
    if entry.cell != "added":
        rest = "" if entry.replaces else "\n\n" + answers[entry.cell]
        answers[entry.cell] = source.rstrip() + "\n" + rest
    notebook = json.loads(fill_in(released(), answers))
    if entry.cell == "added":
        cell = {"cell_type": "code", "id": "scratch", "metadata": {}, "source": source}
        notebook["cells"].insert(2, {**cell, "outputs": [], "execution_count": None})
    (folder / NAME).write_text(json.dumps(notebook), encoding="utf-8")
