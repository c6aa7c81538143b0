"""The seam with nbgrader: where `Execute` stood, marks are written by the grader instead.

`configure` sets up everything, so that `nbgrader generate_assignment`, `autograde`,
`generate_feedback`, `export`, `validate` and formgrader work from the course's folder:

* `converters` finds what students handed in, and `SubmissionReader` reads it, whatever it is, and
  gives nbgrader the released notebook with the text of the student's own cells;
* `Grade` grades it in the sandbox and writes one number into each grade cell's outputs, which
  nbgrader's own `SaveAutoGrades` reads;
* `SaveMore` records what one number cannot say: points above a task's maximum, as nbgrader's extra
  credit, and notebooks that the grader failed on, as not marked yet;
* `exchange` brings notebooks to students and back, `gradebook` and `feedback` say what came of it.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import warnings
from functools import cache
from html import escape
from pathlib import Path

import nbformat
from nbconvert.exporters import NotebookExporter
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    LimitOutput,
    NbGraderPreprocessor,
    OverwriteCells,
    SaveAutoGrades,
)
from sqlalchemy.exc import SAWarning
from traitlets import Bool

from autograder.course.asking import Finding
from autograder.course.build import write_sources
from autograder.course.course import Course
from autograder.course.lesson import Lesson
from autograder.grading import converters, exchange, figures, gradebook
from autograder.grading.grade import FAULT, Grader, model_answers
from autograder.intake.read import read
from autograder.intake.repair import match, raw_cells, rebuild
from autograder.intake.submission import Submission
from autograder.one_thread import one_thread
from autograder.reports.cards import Card
from autograder.reports.feedback import SCHEME, inert
from autograder.reports.report import Report, Result

NOTHING = "No notebook was handed in."


def configure(config, root: Path | None = None) -> None:
    """Sets nbgrader's options on a traitlets config; writes the source notebooks where needed.

    root: where all that nbgrader writes lies (submitted/, autograded/, feedback/, gradebook.db,
    and the source and released notebooks in build/); the course's folder where none is given.
    """
    one_thread()
    course = Course.find()
    root = (root or course.folder).resolve()
    # nbgrader calls `alembic` by name: it must be found where this Python's own scripts lie.
    scripts = str(Path(sys.executable).parent)
    if scripts not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])
    # nbgrader's own queries, nothing that an instructor could act on.
    warnings.filterwarnings("ignore", category=SAWarning, module=r"nbgrader\.")
    _write_sources(course, root / "build" / "source")
    config.CourseDirectory.course_id = course.settings.id
    config.CourseDirectory.root = str(root)
    # Below the root, and relative: nbgrader takes a whole path for a regular expression.
    config.CourseDirectory.source_directory = "build/source"
    config.CourseDirectory.release_directory = "build/release"
    config.Autograde.exporter_class = SubmissionReader
    config.Autograde.sanitize_preprocessors = [OverwriteCells, CheckCellMetadata]
    config.Autograde.autograde_preprocessors = [
        Grade,
        LimitOutput,
        SaveAutoGrades,
        SaveMore,
        AssignLatePenalties,
        CheckCellMetadata,
    ]
    config.GenerateFeedback.preprocessors = [gradebook.GetMarks]
    config.GenerateFeedback.exporter_class = "autograder.reports.feedback.FeedbackExporter"
    config.ExportApp.plugin_class = gradebook.Export
    converters.install()
    exchange.configure(config)
    gradebook.share()


@cache  # nbgrader reads its configuration two or three times
def _write_sources(course: Course, target: Path) -> None:
    """Writes what nbgrader's source folder lacks; `notebooks/` is the students' and is left alone.

    Where it may not be written, a Jupyter server is to start all the same.
    """
    try:
        write_sources(course, target)
    except OSError as error:
        logging.getLogger(__name__).warning(
            "%s cannot be written (%s): nbgrader works where its folder can be written to. Copy "
            "nbgrader_config.py there, with configure(get_config(), Path(__file__).parent).",
            target,
            error.strerror,
        )


@cache
def grader() -> Grader:
    """One grader, and one warm sandbox, for all submissions of a run.

    The isolation is the strongest that the machine offers, or what AUTOGRADER_ISOLATION names.
    """
    opened = Grader(os.environ.get("AUTOGRADER_ISOLATION", "auto")).__enter__()
    atexit.register(opened.__exit__, None, None, None)
    return opened


class SubmissionReader(NotebookExporter):
    """Reads a submission safely; on the second pass, the notebook that the first one wrote."""

    def from_filename(self, filename, resources=None, **kwargs):
        if not (isinstance(self.parent, Autograde) and self.parent._sanitizing):
            return super().from_filename(filename, resources=resources, **kwargs)
        name, folder = resources["nbgrader"]["notebook"], Path(filename).parent
        lessons = Course.find().lessons
        submitted = Path(self.parent.coursedir.root) / self.parent.coursedir.submitted_directory
        found = converters.handed_in(folder, name)
        graded = {
            "file": os.fsencode(found.relative_to(folder)).decode("utf-8", "replace"),
            "fingerprint": converters.fingerprint(folder, found),
        }
        if found.name != f"{name}.ipynb" and os.path.lexists(found):
            self.log.warning("Read as %s: %s", name, found)
        submission = read(found, lessons, expected=name, below=submitted)
        notebook = rebuild(lessons[name], submission)
        notebook.metadata["course"] = {
            "repairs": list(submission.repairs),
            "error": submission.error if os.path.lexists(found) else NOTHING,
            "graded": graded,
            "given": self.parent.given,
        }
        return self.from_notebook_node(notebook, resources=resources, **kwargs)


class Grade(NbGraderPreprocessor):
    """Grades the notebook and writes each task's points as the result of its grade cell.

    Then it runs the notebook once more, for what it prints and draws; no mark depends on that.
    """

    figures = Bool(True, help="Show what the student's notebook prints and draws.").tag(config=True)

    def preprocess(self, nb, resources):
        name = resources["nbgrader"]["notebook"]
        lesson = Course.find().lessons[name]
        said = nb.metadata.get("course", {})
        error = said.get("error")
        cells = () if error else match(lesson, raw_cells(nb))[0]
        submission = Submission(name, name, cells, tuple(said.get("repairs", ())), error)
        report = grader().grade_submission(submission)
        self.log.info(
            "%s: %s of %s points, isolation: %s",
            resources["nbgrader"]["student"],
            report.score,
            report.max_score,
            report.isolation,
        )
        results = {r.task: r for r in report.results}
        resources["autograder"], resources["given"] = report, said.get("given", {})
        shown = self._shown(nb, lesson) if self.figures and not error else {}
        released = {c.source for c in lesson.cells}
        for cell in nb.cells:
            task = cell.metadata.get("course", {}).get("task")
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
                if _graded(cell):
                    cell.outputs = outputs(results[task], report, cell.metadata.nbgrader.points)
                    cell.metadata.course["taken"] = [
                        {"verdict": f.verdict, "message": f.message, "points": f.points}
                        for f in taken(results[task])
                    ]
                elif cell.id in shown:
                    cell.outputs = figures.outputs(shown[cell.id])
                if wrong := wrong_lines(lesson, cell, results):
                    cell.metadata.setdefault("course", {})["wrong"] = wrong
            elif cell.source not in released:
                cell.source = inert(cell.source)
        note = _note(report)
        nb.cells = [*([note] if note else []), *_with_schemes(nb.cells, name)]
        nb.metadata.pop("course", None)
        bonus = {r.task: _bonus(r) for r in report.results}
        nb.metadata[converters.GRADED] = {**said.get("graded", {}), "bonus": bonus}
        return nb, resources

    def _shown(self, nb, lesson):
        cells = [(c.id, c.source) for c in nb.cells if c.cell_type == "code" and not _graded(c)]
        return figures.show(grader().box(lesson), cells)


def _with_schemes(cells: list, lesson: str) -> list:
    """Puts the model answer with its marking scheme behind each question, for who marks it.

    The feedback page leaves these cells out.
    """
    models, more = model_answers(Course.find(), lesson), []
    for cell in cells:
        more.append(cell)
        if cell.metadata.get("course", {}).get("role") == "question" and cell.id in models:
            text = f"**For the grader only**\n\n{models[cell.id]}"
            more.append(nbformat.v4.new_markdown_cell(text, id=f"{SCHEME}{cell.id}"))
    return more


def _graded(cell) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("grade", False))


def wrong_lines(lesson: Lesson, cell, results: dict[str, Result]) -> list[int]:
    """The lines of an exercise cell that are the first to go wrong in one of its tasks."""
    tasks = [check.task for check in lesson.with_role("check") if check.of == cell.id]
    found = [f for task in tasks if task in results for f in results[task].findings]
    return sorted({f.where.first_wrong for f in found if f.where is not None})


def taken(result: Result) -> list[Finding]:
    """What was taken off or added: lines of their own, beside what is right or wrong."""
    return [f for f in result.findings if f.verdict in ("deduction", "bonus")]


def outputs(result: Result, report: Report, most: float) -> list:
    """A grade cell's outputs: card, deductions, the isolation that held, the points as a number."""
    found = tuple(f for f in result.findings if f not in taken(result))
    card = Card(result.task, result.passed, found)
    shown = [(repr(card), card._repr_html_()), *map(_line, taken(result))]
    points = max(0.0, min(float(result.points), float(most)))
    return [
        *(
            nbformat.v4.new_output("display_data", data={"text/plain": text, "text/html": html})
            for text, html in shown
        ),
        nbformat.v4.new_output("stream", name="stdout", text=f"isolation: {report.isolation}\n"),
        nbformat.v4.new_output(
            "execute_result", data={"text/plain": repr(points)}, execution_count=None
        ),
    ]


def _line(finding: Finding) -> tuple[str, str]:
    """A deduction or a bonus as text and as HTML."""
    amount = f"{finding.verdict} {finding.points:+g}" if finding.points else finding.verdict
    html = (
        '<div style="border-left:4px solid #9a6700;padding:4px 12px;margin:4px 0;max-width:60em">'
        f'<b style="color:#9a6700">{escape(amount)}</b> {escape(finding.message)}</div>'
    )
    return f"[{amount}] {finding.message}", html


def _note(report: Report):
    """A cell that says what was repaired, or why nothing could be read; None if all was well."""
    lines = [report.error] if report.error else [f"Repaired: {r}" for r in report.repairs]
    if not lines:
        return None
    text = "\n".join(f"    {line}" for line in lines)  # indented: Markdown shows it as it is
    return nbformat.v4.new_markdown_cell(f"**Before grading**\n\n{text}", id="before-grading")


class SaveMore(NbGraderPreprocessor):
    """Writes to the gradebook what the number in a cell cannot say.

    Points above the maximum of a task become extra credit, beside what a person gave of it. Where
    the grader itself failed, nobody has marked the task yet.
    """

    def preprocess(self, nb, resources):
        where, report = resources["nbgrader"], resources["autograder"]
        with Gradebook(where["db_url"]) as gradebook:
            for cell in nb.cells:
                if not _graded(cell) or cell.cell_type != "code":
                    continue  # questions are a person's alone
                result = report.result(cell.metadata["course"]["task"])
                grade = gradebook.find_grade(
                    cell.metadata.nbgrader["grade_id"],
                    where["notebook"],
                    where["assignment"],
                    where["student"],
                )
                extra = grade.extra_credit or 0.0
                by_hand = extra - resources["given"].get(result.task, extra)
                grade.extra_credit = by_hand + _bonus(result)
                if report.error == FAULT:
                    grade.auto_score, grade.needs_manual_grade = None, True
            gradebook.db.commit()
        return nb, resources


def _bonus(result: Result) -> float:
    return max(0.0, result.points - result.max_points)
