"""The graded notebook: what a person who marks sees, and what feedback pages are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import nbformat
from nbformat import NotebookNode

from autograder.course.asking import Finding, Verdict
from autograder.course.course import Course
from autograder.course.lesson import Lesson, Role
from autograder.grading import figures
from autograder.grading.grade import model_answers
from autograder.reports.cards import Card
from autograder.reports.class_table import first_sentence
from autograder.reports.findings import SHAPES, TAKEN, first_wrong
from autograder.reports.plain import ISOLATION, SCHEME, descriptions, inert
from autograder.reports.report import Report, Result

GRADED = "graded"  # where an autograded notebook's metadata say what was graded


def filled(
    nb: NotebookNode,
    lesson: Lesson,
    course: Course,
    report: Report,
    shown: Mapping[str, figures.Shown],
) -> NotebookNode:
    """Puts what came of a rebuilt notebook into its outputs; the notebook is changed in place.

    Each grade cell gets a card and, as its last result, its points as a number, which is what
    nbgrader reads. shown: by cell, what the notebook prints and draws.
    """
    results = {r.task: r for r in report.results}
    released = {c.source for c in lesson.cells}
    for cell in nb.cells:
        task = cell.metadata.get("course", {}).get("task")
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            if is_graded(cell):
                if task not in results:
                    continue
                cell.outputs = outputs(results[task], report, cell.metadata.nbgrader.points)
                cell.metadata.course["taken"] = [
                    {
                        "verdict": f.verdict,
                        "message": first_sentence(f.message),
                        "points": f.points,
                    }
                    for f in taken(results[task])
                ]
                cell.metadata.course["isolation"] = report.isolation
                cell.metadata.course["cause"] = cause(results[task].findings)
            elif cell.id in shown:
                cell.outputs = figures.outputs(shown[cell.id], descriptions(cell.source))
            if wrong := wrong_lines(lesson, cell, results):
                cell.metadata.setdefault("course", {})["wrong"] = wrong
            if comments := shape_comments(lesson, cell, results):
                cell.metadata.setdefault("course", {})["shapes"] = comments
        elif cell.source not in released:
            cell.source = inert(cell.source)
    note = _note(report)
    nb.cells = [*([note] if note else []), *_with_schemes(nb.cells, course, lesson.name)]
    return nb


def _with_schemes(cells: list, course: Course, lesson: str) -> list:
    """Puts the model answer with its marking scheme behind each question, for who marks it.

    The feedback page leaves these cells out.
    """
    models, more = model_answers(course, lesson), []
    for cell in cells:
        more.append(cell)
        if cell.metadata.get("course", {}).get("role") == Role.QUESTION and cell.id in models:
            text = f"**For the grader only**\n\n{models[cell.id]}"
            more.append(nbformat.v4.new_markdown_cell(text, id=f"{SCHEME}{cell.id}"))
    return more


def as_text(nb: NotebookNode) -> str:
    """A notebook as it is stored in a file."""
    return nbformat.writes(nb) + "\n"


def is_graded(cell) -> bool:
    """Whether nbgrader keeps a mark for this cell."""
    return bool(cell.metadata.get("nbgrader", {}).get("grade", False))


def wrong_lines(lesson: Lesson, cell, results: Mapping[str, Result]) -> list[int]:
    """The lines of an exercise cell that are the first to go wrong in one of its tasks."""
    tasks = [check.task for check in lesson.with_role(Role.CHECK) if check.of == cell.id]
    found = [f for task in tasks if task in results for f in results[task].findings]
    return sorted({f.where.first_wrong for f in found if f.where is not None})


def shape_comments(lesson: Lesson, cell, results: Mapping[str, Result]) -> list[dict]:
    """What was found of the shape comments of an exercise cell: line, verdict, sentence."""
    tasks = [check.task for check in lesson.with_role(Role.CHECK) if check.of == cell.id]
    found = [f for task in tasks if task in results for f in results[task].findings]
    return [
        {
            "line": f.line,
            "verdict": str(f.verdict),
            "said": "" if f.verdict == Verdict.TRUE else f.message.removeprefix(f"Line {f.line}: "),
        }
        for f in found
        if f.check == SHAPES and f.line and f.verdict not in TAKEN
    ]


def cause(findings: Sequence[Finding]) -> str:
    """In a sentence or two why a task is not right, and which line is the first that goes wrong."""
    finding = next((f for f in findings if f.fails and f.check != SHAPES), None)
    if finding is None:
        return ""
    where = f" {first_wrong(finding.where.first_wrong)}." if finding.where is not None else ""
    return f"{first_sentence(finding.message)}{where}"


def taken(result: Result) -> list[Finding]:
    """What was taken off or added: lines of their own, beside what is right or wrong."""
    return [f for f in result.findings if f.verdict in TAKEN]


def outputs(result: Result, report: Report, most: float) -> list:
    """A grade cell's outputs: card, deductions, the isolation that held, the points as a number."""
    found = tuple(f for f in result.findings if f not in taken(result))
    nearly = result.status == "right, with a deduction"
    card = Card(result.task, None if nearly else result.passed, found)
    shown = [(repr(card), card._repr_html_()), *map(_line, taken(result))]
    points = max(0.0, min(float(result.points), float(most)))
    return [
        *(
            nbformat.v4.new_output("display_data", data={"text/plain": text, "text/html": html})
            for text, html in shown
        ),
        nbformat.v4.new_output("stream", name="stdout", text=ISOLATION.format(report.isolation)),
        nbformat.v4.new_output(
            "execute_result", data={"text/plain": repr(points)}, execution_count=None
        ),
    ]


def _line(finding: Finding) -> tuple[str, str]:
    """A deduction or a bonus as text and as HTML."""
    amount = f"{finding.verdict} {finding.points:+g}" if finding.points else finding.verdict
    html = (
        '<div class="card" style="border-left:4px solid #9a6700;padding:4px 12px;max-width:60em">'
        f"<b>{escape(amount)}</b> {escape(finding.message)}</div>"
    )
    return f"[{amount}] {finding.message}", html


def _note(report: Report):
    """A cell that says what was repaired, or why nothing could be read; None if all was well."""
    lines = [report.error] if report.error else [f"Repaired: {r}" for r in report.repairs]
    if not lines:
        return None
    text = "\n".join(f"    {line}" for line in lines)  # indented: Markdown shows it as it is
    return nbformat.v4.new_markdown_cell(f"**Before grading**\n\n{text}", id="before-grading")


def bonus(result: Result) -> float:
    """Points above the maximum of a task."""
    return max(0.0, result.points - result.max_points)
