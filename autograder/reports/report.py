"""What is said about one graded notebook: as data, as a line of JSON, as a table.

The JSON is stable: fields may be added, none is renamed or dropped. One object a notebook:

    notebook    its path, as given, or the member's path in a zip; null where none was handed in
    lesson      the lesson it answers, or null
    score       points a machine has given (bonus included)
    max_score   the most that a machine can give; questions for a person are not in it
    isolation   the sandbox's tier: "namespaces", "landlock" or "limits"; "none" if nothing was run
    error       why nothing could be graded, or null
    repairs     what was put right before grading, one sentence each
    results     one object a task, in the lesson's order:
        task          such as "self_attention.forward"
        points        given for it, after deductions; more than max_points where there is a bonus
        max_points    what it is worth
        passed        whether the answer is right
        needs_person  whether a person has to mark or look at it
        findings      check, verdict, message, line, statement, tried, expected, got, points
                      (see `asking.Finding`)
        status        "right", "right, with a deduction" (what was wrong cost that and no more),
                      "wrong", "not filled in", "not marked yet" or "not graded"
        earned        points given for it before deductions and bonus
    not_marked  how many questions a person has yet to mark
    deductions  what was taken off or added: task, check, verdict, points, message, line,
                statement. The score is the sum of every `earned` and of these points.

`autograder grade` adds who it is (see `class_table`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from autograder.course.asking import Finding, Verdict
from autograder.reports.findings import TAKEN, UNANSWERED, rows, to_json


@dataclass(frozen=True)
class Result:
    """One task of one notebook."""

    task: str
    points: float
    max_points: float
    passed: bool
    needs_person: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def taken(self) -> tuple[Finding, ...]:
        """The deductions and the bonus that are in its points."""
        return tuple(f for f in self.findings if f.verdict in TAKEN)

    @property
    def earned(self) -> float:
        """The points before deductions and bonus."""
        return self.points - sum(f.points for f in self.taken)

    @property
    def status(self) -> str:
        """What became of it, in words."""
        if self.needs_person and not self.passed:
            return "not marked yet"
        if any(f.check == UNANSWERED for f in self.findings):
            return "not filled in"
        if self.passed:
            return "right"
        slip = self.taken and not any(f.fails for f in self.findings)
        return "right, with a deduction" if slip else "wrong"

    def to_json(self, graded: bool = True) -> dict:
        return {
            "task": self.task,
            "points": self.points,
            "max_points": self.max_points,
            "passed": self.passed,
            "needs_person": self.needs_person,
            "findings": [to_json(f) for f in self.findings],
            "status": self.status if graded else "not graded",
            "earned": self.earned,
        }


@dataclass(frozen=True)
class Report:
    """One notebook."""

    notebook: str | None
    lesson: str | None
    isolation: str
    results: tuple[Result, ...] = ()
    repairs: tuple[str, ...] = ()
    error: str | None = None
    max_score: float = field(default=0.0)

    @property
    def score(self) -> float:
        return sum(r.points for r in self.results)

    @property
    def passed(self) -> bool:
        """Whether every task that a machine marks is right."""
        return self.error is None and all(r.passed for r in self.results if not r.needs_person)

    @property
    def not_marked(self) -> int:
        """How many questions a person has yet to mark."""
        return sum(r.status == "not marked yet" for r in self.results)

    @property
    def total(self) -> str:
        """The points in words: '8 of 10, 5 questions not marked yet'."""
        score = f"{number(self.score)} of {number(self.max_score)}"
        return f"{score}, {questions(self.not_marked)} not marked yet" if self.not_marked else score

    def result(self, task: str) -> Result:
        return next(r for r in self.results if r.task == task)

    def to_json(self) -> str:
        return json.dumps(self.data(), ensure_ascii=False)

    def data(self) -> dict:
        """The object that is described above."""
        return {
            "notebook": self.notebook,
            "lesson": self.lesson,
            "score": self.score,
            "max_score": self.max_score,
            "isolation": self.isolation,
            "error": self.error,
            "repairs": list(self.repairs),
            "results": [r.to_json(graded=self.error is None) for r in self.results],
            "not_marked": self.not_marked,
            "deductions": [
                {
                    "task": r.task,
                    "check": f.check,
                    "verdict": f.verdict,
                    "points": f.points,
                    "message": f.message,
                    "line": f.line,
                    "statement": f.statement,
                }
                for r in self.results
                for f in r.taken
            ],
        }


def number(points: float) -> str:
    """Points without a needless '.0'."""
    return f"{points:g}"


def questions(count: int) -> str:
    """A number of questions, in words."""
    return f"{count} question{'s' if count != 1 else ''}"


def visible(text: str) -> str:
    """Text that a terminal shows as it is: no markup of ours, no codes of the terminal's."""
    return escape("".join(c if c.isprintable() or c == "\n" else "?" for c in text))


def print_report(report: Report, console: Console) -> None:
    """A table of one notebook's results."""
    title = visible(f"{report.notebook}  ({report.lesson or 'unknown lesson'})")
    if report.error:
        console.print(f"[bold]{title}[/bold]\n  [red]{visible(report.error)}[/red]")
        return
    console.print(f"[bold]{title}: {report.total}[/bold]", soft_wrap=True)
    table = Table()
    table.add_column("task", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("what was found")
    for result in report.results:
        table.add_row(visible(result.task), _worth(result), _said(result))
        for taken in result.taken:
            table.add_row(f"  {taken.verdict}", _change(taken), visible(taken.message))
    console.print(table)
    for repair in report.repairs:
        console.print(f"  repaired: {visible(repair)}", soft_wrap=True)
    console.print(f"  isolation: {report.isolation}")


def _worth(result: Result) -> str:
    most = number(result.max_points)
    return f"-/{most}" if result.status == "not marked yet" else f"{number(result.earned)}/{most}"


def _change(taken: Finding) -> str:
    return f"{taken.points:+g}" if taken.points else ""


def _said(result: Result) -> RenderableType:
    """The findings of a task, one under the other, with labels as on a card."""
    quiet = (Verdict.RIGHT, Verdict.TRUE, *TAKEN)
    lines = [row for f in result.findings if f.verdict not in quiet for row in rows(f)]
    if not lines or result.status in ("not filled in", "not marked yet"):
        lines = [("", result.status), *lines]
    if all(not label for label, _ in lines):
        return "\n".join(visible(text) for _, text in lines)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column()
    for label, text in dict.fromkeys(lines):
        grid.add_row(visible(label), visible(text))
    return grid
