"""What is said about one graded notebook: as data, as a line of JSON, as a table.

The JSON is stable. One object a notebook:

    notebook    its path, as given
    lesson      the lesson it answers, or null
    score       points a machine has given (bonus included)
    max_score   the most that a machine can give; questions for a person are not in it
    isolation   the sandbox's tier: "namespaces", "landlock" or "limits"
    error       why nothing could be graded, or null
    repairs     what was put right before grading, one sentence each
    results     one object a task, in the lesson's order:
        task          such as "self_attention.forward"
        points        given for it; more than max_points where there is a bonus
        max_points    what it is worth
        passed        whether the answer is right
        needs_person  whether a person has to mark or look at it
        findings      check, verdict, message, line, statement (see `exercise.Finding`)
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from autograder.exercise import Finding


@dataclass(frozen=True)
class Result:
    """One task of one notebook."""

    task: str
    points: float
    max_points: float
    passed: bool
    needs_person: bool = False
    findings: tuple[Finding, ...] = ()
    earned: float | None = None  # before deductions and bonus, where there can be any

    def to_json(self) -> dict:
        return {
            "task": self.task,
            "points": self.points,
            "max_points": self.max_points,
            "passed": self.passed,
            "needs_person": self.needs_person,
            "findings": [
                {
                    "check": f.check,
                    "verdict": f.verdict,
                    "message": f.message,
                    "line": f.line,
                    "statement": f.statement,
                }
                for f in self.findings
            ],
        }


@dataclass(frozen=True)
class Report:
    """One notebook."""

    notebook: str
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

    def result(self, task: str) -> Result:
        return next(r for r in self.results if r.task == task)

    def to_json(self) -> str:
        return json.dumps(
            {
                "notebook": self.notebook,
                "lesson": self.lesson,
                "score": self.score,
                "max_score": self.max_score,
                "isolation": self.isolation,
                "error": self.error,
                "repairs": list(self.repairs),
                "results": [r.to_json() for r in self.results],
            },
            ensure_ascii=False,
        )


def number(points: float) -> str:
    """Points without a needless '.0'."""
    return f"{points:g}"


def print_report(report: Report, console: Console) -> None:
    """A table of one notebook's results."""
    title = visible(f"{report.notebook}  ({report.lesson or 'unknown lesson'})")
    if report.error:
        console.print(f"[bold]{title}[/bold]\n  [red]{visible(report.error)}[/red]")
        return
    score = f"{number(report.score)} of {number(report.max_score)}"
    table = Table(title=f"{title}: {score}", title_justify="left")
    table.add_column("task", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("what was found")
    for result in report.results:
        worth = f"{number(result.points)}/{number(result.max_points)}"
        table.add_row(visible(result.task), worth, visible(_said(result)))
    console.print(table)
    for repair in report.repairs:
        console.print(f"  repaired: {visible(repair)}")
    console.print(f"  isolation: {report.isolation}")


def visible(text: str) -> str:
    """Text that a terminal shows as it is: no markup of ours, no codes of the terminal's."""
    return escape("".join(c if c.isprintable() or c == "\n" else "?" for c in text))


def _said(result: Result) -> str:
    lines = [f.message for f in result.findings if f.verdict not in ("right", "true")]
    if result.needs_person:
        lines.insert(0, "to be marked by a person")
    elif not lines:
        lines = ["right"] if result.passed else ["not right"]
    return "\n".join(dict.fromkeys(lines))


def print_class(rows: Iterable[tuple[str, Report]], console: Console) -> None:
    """A table of many submissions, one line each: (student, report)."""
    table = Table()
    for name, justify in (("student", "left"), ("lesson", "left"), ("score", "right")):
        table.add_column(name, justify=justify, no_wrap=True)
    table.add_column("what happened")
    for student, report in rows:
        worth = f"{number(report.score)}/{number(report.max_score)}"
        table.add_row(
            visible(student), visible(report.lesson or "?"), worth, visible(_summary(report))
        )
    console.print(table)


def _summary(report: Report) -> str:
    if report.error:
        return report.error
    wrong = [
        f"{r.task}: {r.findings[0].check}" if r.findings else r.task
        for r in report.results
        if not r.passed and not r.needs_person
    ]
    taken = [
        f.message for r in report.results for f in r.findings if f.verdict in ("deduction", "bonus")
    ]
    return "; ".join(wrong + taken) or "all right"
