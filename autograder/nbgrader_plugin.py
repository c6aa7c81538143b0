"""The seam with nbgrader: where `Execute` stood, marks are written by the grader instead.

`configure` sets up everything, so that `nbgrader generate_assignment`, `autograde`,
`generate_feedback`, `export`, `validate` and formgrader work from the course's folder:

* `SubmissionReader` reads what students handed in, whatever it is, and gives nbgrader the released
  notebook with the text of the student's own cells;
* `Grade` grades it in the sandbox and writes one number into each grade cell's outputs, which
  nbgrader's own `SaveAutoGrades` reads;
* `SaveBonus` records points above a task's maximum as nbgrader's extra credit.
"""

from __future__ import annotations

import atexit
import glob
import logging
import os
import shutil
import sys
import warnings
from functools import cache
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
from nbgrader.utils import parse_utc
from sqlalchemy.exc import SAWarning
from traitlets import Bool

from autograder import course, figures
from autograder.build import write_sources
from autograder.cards import Card
from autograder.feedback import SCHEME, inert
from autograder.grade import Grader, model_answers
from autograder.intake import Unreadable, read, read_bytes
from autograder.repair import match, raw_cells, rebuild
from autograder.report import Report, Result
from autograder.submission import Submission

PROMPT = "autograder"


def configure(config, root: Path | None = None) -> None:
    """Sets nbgrader's options on a traitlets config; writes the source notebooks where needed.

    root: where all that nbgrader writes lies (submitted/, autograded/, feedback/, gradebook.db,
    and the source and released notebooks in build/); the course's folder where none is given.
    """
    folder = course.root()
    root = root or folder
    # nbgrader calls `alembic` by name: it must be found where this Python's own scripts lie.
    scripts = str(Path(sys.executable).parent)
    if scripts not in os.environ.get("PATH", "").split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)])
    # nbgrader's own queries, nothing that an instructor could act on.
    warnings.filterwarnings("ignore", category=SAWarning, module=r"nbgrader\.")
    _write_sources(folder, root / "build" / "source")
    config.CourseDirectory.course_id = "attention"
    config.CourseDirectory.root = str(root)
    # Below the root, and relative: nbgrader takes a whole path for a regular expression.
    config.CourseDirectory.source_directory = "build/source"
    config.CourseDirectory.release_directory = "build/release"
    # No file beside a notebook is copied: not an answer into the release, not a link out of it.
    config.CourseDirectory.ignore = ["*"]
    config.Autograde.exporter_class = SubmissionReader
    config.Autograde.sanitize_preprocessors = [OverwriteCells, CheckCellMetadata]
    config.Autograde.autograde_preprocessors = [
        Grade,
        LimitOutput,
        SaveAutoGrades,
        SaveBonus,
        AssignLatePenalties,
        CheckCellMetadata,
    ]
    Autograde.init_notebooks = find_submissions
    config.GenerateFeedback.exporter_class = "autograder.feedback.FeedbackExporter"


@cache  # nbgrader reads its configuration two or three times
def _write_sources(folder: Path, target: Path) -> None:
    """Writes what nbgrader's source folder lacks; `notebooks/` is the students' and is left alone.

    Where it may not be written, a Jupyter server is to start all the same.
    """
    try:
        write_sources(folder, target)
    except OSError as error:
        logging.getLogger(__name__).warning(
            "%s cannot be written (%s). nbgrader needs a folder that it can write to: the README "
            "says how it works in another one.",
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
        name = resources["nbgrader"]["notebook"]
        lessons = course.lessons(course.root())
        handed_in = Path(self.parent.coursedir.root) / self.parent.coursedir.submitted_directory
        submission = read(Path(filename), lessons, expected=name, below=handed_in)
        notebook = rebuild(lessons[name], submission)
        notebook.metadata["course"] = {
            "repairs": list(submission.repairs),
            "error": submission.error,
        }
        return self.from_notebook_node(notebook, resources=resources, **kwargs)


class Grade(NbGraderPreprocessor):
    """Grades the notebook and writes each task's points as the result of its grade cell.

    Then it runs the notebook once more, for what it prints and draws; no mark depends on that.
    """

    figures = Bool(True, help="Show what the student's notebook prints and draws.").tag(config=True)

    def preprocess(self, nb, resources):
        name = resources["nbgrader"]["notebook"]
        lesson = course.lessons(course.root())[name]
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
        resources["autograder"] = report
        shown = self._shown(nb, lesson) if self.figures and not error else {}
        released = {c.source for c in lesson.cells}
        for cell in nb.cells:
            task = cell.metadata.get("course", {}).get("task")
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
                if _graded(cell):
                    cell.outputs = outputs(results[task], report, cell.metadata.nbgrader.points)
                elif cell.id in shown:
                    cell.outputs = figures.outputs(shown[cell.id])
            elif cell.source not in released:
                cell.source = inert(cell.source)
        note = _note(report)
        nb.cells = [*([note] if note else []), *_with_schemes(nb.cells, name)]
        nb.metadata.pop("course", None)
        return nb, resources

    def _shown(self, nb, lesson):
        cells = [(c.id, c.source) for c in nb.cells if c.cell_type == "code" and not _graded(c)]
        return figures.show(grader().box(lesson), cells)


def _with_schemes(cells: list, lesson: str) -> list:
    """Puts the model answer with its marking scheme behind each question, for who marks it.

    The feedback page leaves these cells out.
    """
    models, more = model_answers(course.root(), lesson), []
    for cell in cells:
        more.append(cell)
        if cell.metadata.get("course", {}).get("role") == "question" and cell.id in models:
            text = f"**For the grader only**\n\n{models[cell.id]}"
            more.append(nbformat.v4.new_markdown_cell(text, id=f"{SCHEME}{cell.id}"))
    return more


def _graded(cell) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("grade", False))


def outputs(result: Result, report: Report, most: float) -> list:
    """A grade cell's outputs: the card, the isolation that held, and the points as a number."""
    card = Card(result.task, result.passed, result.findings)
    data = {"text/plain": repr(card), "text/html": card._repr_html_()}
    points = max(0.0, min(float(result.points), float(most)))
    return [
        nbformat.v4.new_output("display_data", data=data),
        nbformat.v4.new_output("stream", name="stdout", text=f"isolation: {report.isolation}\n"),
        nbformat.v4.new_output(
            "execute_result", data={"text/plain": repr(points)}, execution_count=None
        ),
    ]


def _note(report: Report):
    """A cell that says what was repaired, or why nothing could be read; None if all was well."""
    lines = [report.error] if report.error else [f"Repaired: {r}" for r in report.repairs]
    if not lines:
        return None
    text = "\n".join(f"    {line}" for line in lines)  # indented: Markdown shows it as it is
    return nbformat.v4.new_markdown_cell(f"**Before grading**\n\n{text}", id="before-grading")


class SaveBonus(NbGraderPreprocessor):
    """Writes points above the maximum of a task to the gradebook as extra credit."""

    def preprocess(self, nb, resources):
        where = resources["nbgrader"]
        results = {r.task: r for r in resources["autograder"].results}
        with Gradebook(where["db_url"]) as gradebook:
            for cell in nb.cells:
                data = cell.metadata.get("nbgrader", {})
                if not data.get("grade"):
                    continue
                result = results[cell.metadata["course"]["task"]]
                grade = gradebook.find_grade(
                    data["grade_id"], where["notebook"], where["assignment"], where["student"]
                )
                bonus = max(0.0, result.points - result.max_points)
                if bonus or grade.extra_credit:
                    grade.extra_credit = bonus
                    gradebook.db.commit()
        return nb, resources


def find_submissions(converter: Autograde) -> None:
    """Before nbgrader looks for files: gives a renamed notebook the name that it looks for.

    nbgrader passes over a folder without a notebook, and over a notebook of another name; both
    would leave a student without a mark. It has no hook as early as this, so that this function
    stands in for the converter's method.
    """
    where = converter.coursedir
    pattern = where.format_path(where.submitted_directory, where.student_id, where.assignment_id)
    for name in sorted(glob.glob(pattern)):
        folder = Path(name)
        if folder.is_dir() and not folder.is_symlink():
            give_expected_name(folder, where.assignment_id)
            drop_unreadable_timestamp(folder)
    super(Autograde, converter).init_notebooks()


def give_expected_name(folder: Path, lesson: str) -> None:
    """Copies the notebook of `folder` that answers `lesson` to NAME.ipynb, if missing."""
    wanted = folder / f"{lesson}.ipynb"
    if wanted.exists() or wanted.is_symlink():
        return
    lessons = course.lessons(course.root())
    for path in sorted(folder.glob("*.ipynb")):
        if read(path, lessons).lesson == lesson:
            wanted.write_bytes(read_bytes(path))
            return
    wanted.write_text("", encoding="utf-8")


def drop_unreadable_timestamp(folder: Path) -> None:
    """Removes a timestamp.txt that is no file or no date: nbgrader would end the whole run."""
    path = folder / "timestamp.txt"
    if not path.exists() and not path.is_symlink():
        return
    try:
        parse_utc(read_bytes(path, 200).decode("utf-8").strip())
    except (Unreadable, OSError, OverflowError, ValueError):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
