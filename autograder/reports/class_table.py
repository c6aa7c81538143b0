"""What is said about a class: one line for each student, as a table or as JSON.

A line of JSON is a notebook's (see `report`) with who it is before it:

    student    a name that no two students share
    id         what tells students apart: the platform's number or login, else the name
    name       as the platform gives it, else the id
    late       true or false, or null where what was handed in does not say
    section    the section, or null
    handed_in  when it was handed in, as the platform writes it, or null
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from autograder.course.asking import Finding
from autograder.intake.who import Student
from autograder.reports.report import Report, number, questions, visible

LONGEST_SENTENCE = 160  # characters
MOST_SENTENCES = 4
MOST_TASKS = 4  # named in one sentence
_NEXT_SENTENCE = re.compile(r"[.!?] (?=[A-Z`])")
_COUNTS = re.compile(r"((Two|Three) things (at once|are wrong)\. )?")
MOST_MORE = 3  # sentences of one finding behind the first
# How a sentence begins that names another mistake than the one before it.
_ANOTHER = re.compile(
    r"(Line \d{1,6}( is wrong, too| goes wrong before)?|And( [a-z ]{1,40})?"
    r"|Part \d{1,3} of the result): |(Two|Three) things are wrong\."
)


@dataclass(frozen=True)
class Row:
    """One student's report for one lesson."""

    student: Student
    report: Report
    late: bool | None = None
    handed_in: str = ""

    def to_json(self) -> str:
        who = {
            "student": self.student.label,
            "id": self.student.id,
            "name": self.student.name,
            "late": self.late,
            "section": self.student.section or None,
            "handed_in": self.handed_in or None,
        }
        return json.dumps({**who, **self.report.data()}, ensure_ascii=False)


def print_class(rows: Sequence[Row], console: Console) -> None:
    """A table of many submissions, one line each, and what the whole class came to.

    What no line has to say (ids that are the names, sections, late ones) gets no column.
    """
    lessons = {row.report.lesson for row in rows}
    columns = [("student", [row.student.name for row in rows])]
    if any(row.student.id != row.student.name for row in rows):
        columns.append(("id", [row.student.id for row in rows]))
    if any(row.late for row in rows):
        columns.append(("late", ["late" if row.late else "" for row in rows]))
    if any(row.student.section for row in rows):
        columns.append(("section", [row.student.section for row in rows]))
    if len(lessons) > 1:
        columns.append(("lesson", [row.report.lesson or "?" for row in rows]))
    columns.append(("score", [_score(row.report) for row in rows]))
    if any(row.report.not_marked for row in rows):
        columns.append(("not marked yet", [_waiting(row.report) for row in rows]))
    columns.append(("what happened", [happened(row.report) for row in rows]))
    title = lessons.pop() if len(lessons) == 1 else None
    if title:
        console.print(f"[bold]{visible(title)}[/bold]")
    table = Table(show_lines=True)
    for name, _ in columns:
        right, narrow = name in ("score", "not marked yet"), name == "not marked yet"
        table.add_column(
            name,
            justify="right" if right else "left",
            overflow="fold",
            max_width=10 if narrow else None,
        )
    for cells in zip(*(texts for _, texts in columns), strict=True):
        table.add_row(*map(visible, cells))
    console.print(table)
    console.print(visible(_sum(rows)), soft_wrap=True)


def _score(report: Report) -> str:
    return f"{number(report.score)}/{number(report.max_score)}"


def _waiting(report: Report) -> str:
    return number(report.not_marked) if report.not_marked else ""


def _sum(rows: Sequence[Row]) -> str:
    """The class in one line: how many, what waits for a person, and how the code was held."""
    students = len({row.student.label for row in rows})
    said = [f"{students} student{'s' if students != 1 else ''}"]
    late = sum(bool(row.late) for row in rows)
    waiting = sum(row.report.not_marked for row in rows)
    unread = sum(row.report.error is not None for row in rows)
    if late:
        said.append(f"{late} late")
    if unread:
        said.append(f"{unread} without a notebook that could be graded")
    if waiting:
        said.append(f"{questions(waiting)} not marked yet")
    tiers = sorted({row.report.isolation for row in rows} - {"none"})
    return f"{', '.join(said)}; isolation: {', '.join(tiers) or 'none, for no code was run'}"


def happened(report: Report) -> str:
    """What became of a notebook, in a few short sentences."""
    if report.error:
        return report.error
    if report.results and all(r.status == "not filled in" for r in report.results):
        return "Nothing is filled in."
    found: dict[tuple | None, tuple[str, list[str]]] = {}  # each cause once, with its tasks
    for result in report.results:
        if result.status == "wrong":
            cause = next((f for f in result.findings if f.fails), None)
            sentence = _first_sentence(cause)
            key = (cause.check, cause.line or sentence) if cause else None
            found.setdefault(key, (sentence, []))[1].append(result.task)
    said = [f"{sentence} ({_listed(tasks)})" for sentence, tasks in found.values()]
    blank = [r.task for r in report.results if r.status == "not filled in"]
    if blank:
        said.append(f"Not filled in: {_listed(blank)}.")
    told = {key[0] for key in found if key}
    said += [_first_sentence(f) for r in report.results for f in r.taken if f.check not in told]
    if len(said) > MOST_SENTENCES:
        said[MOST_SENTENCES - 1 :] = [f"And {len(said) - MOST_SENTENCES + 1} more."]
    return "\n".join(said) or "All right."


def _first_sentence(cause: Finding | None) -> str:
    if cause is None:
        return "Not right."
    return first_sentence(cause.message)


def first_sentence(text: str) -> str:
    """The first sentence of a message, shortened where it is long; of a message that names several
    mistakes the first one of each."""
    behind = _NEXT_SENTENCE.finditer(text, len(_COUNTS.match(text)[0]))
    starts = [0, *(found.start() + 2 for found in behind)]
    ends = [*(start - 1 for start in starts[1:]), len(text)]
    sentences = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    others = [each for each in sentences[1:] if _ANOTHER.match(each)][:MOST_MORE]
    return " ".join(map(_shortened, [sentences[0], *others]))


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_SENTENCE else text[: LONGEST_SENTENCE - 3] + "..."


def _listed(tasks: list[str]) -> str:
    more = f" and {len(tasks) - MOST_TASKS} more" if len(tasks) > MOST_TASKS else ""
    return ", ".join(tasks[:MOST_TASKS]) + more
