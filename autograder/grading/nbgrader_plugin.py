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
from pathlib import Path

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

from autograder.course.course import Course
from autograder.course.released import write_sources
from autograder.grading import converters, exchange, gradebook, records, work
from autograder.grading.grade import FAULT, Grader
from autograder.grading.notebooks import GRADED, bonus, filled, is_graded
from autograder.intake.repair import match, raw_cells, rebuild
from autograder.intake.submission import Submission
from autograder.one_thread import one_thread
from autograder.versions import version


def configure(config, root: Path | None = None) -> None:
    """Sets nbgrader's options on a traitlets config; writes the source notebooks where needed.

    root: where all that nbgrader writes lies (submitted/, autograded/, feedback/, gradebook.db,
    and the source and released notebooks in build/); the course's folder where none is given.
    """
    one_thread()
    course = Course.find().stay()
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
        write_sources(course.folder, course.settings.sources, target)
    except OSError as error:
        logging.getLogger(__name__).warning(
            "%s cannot be written (%s): nbgrader works where its folder can be written to. Copy "
            "nbgrader_config.py there, with configure(get_config(), Path(__file__).parent).",
            target,
            error.strerror,
        )


def isolation() -> str:
    """The isolation that was asked for."""
    return os.environ.get("AUTOGRADER_ISOLATION", "auto")


@cache
def grader() -> Grader:
    """One grader, and one warm sandbox, for all submissions of a run.

    The isolation is the strongest that the machine offers, or what AUTOGRADER_ISOLATION names.
    """
    opened = Grader(isolation()).__enter__()
    atexit.register(opened.__exit__, None, None, None)
    return opened


class SubmissionReader(NotebookExporter):
    """Reads a submission safely; on the second pass, the notebook that the first one wrote."""

    def from_filename(self, filename, resources=None, **kwargs):
        if not (isinstance(self.parent, Autograde) and self.parent._sanitizing):
            return super().from_filename(filename, resources=resources, **kwargs)
        name, folder = resources["nbgrader"]["notebook"], Path(filename).parent
        lessons = Course.find().lessons
        found = converters.handed_in(folder, name)
        graded = {
            "file": os.fsencode(found.relative_to(folder)).decode("utf-8", "replace"),
            "fingerprint": converters.fingerprint(folder, found),
        }
        if found.name != f"{name}.ipynb" and os.path.lexists(found):
            self.log.warning("Read as %s: %s", name, found)
        done = self.parent.look_up(folder, name) or work.read_all(self.parent.job, lessons)
        self.parent.done = done
        notebook = rebuild(lessons[name], done.submission)
        notebook.metadata["course"] = {"graded": graded, "given": self.parent.given}
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
        job, done = self._done(nb, lesson)
        report = done.report
        self.log.info(
            "%s: %s of %s points, isolation: %s",
            resources["nbgrader"]["student"],
            report.score,
            report.max_score,
            report.isolation,
        )
        resources["autograder"], resources["given"] = report, said.get("given", {})
        nb = filled(nb, lesson, Course.find(), report, done.shown if self.figures else {})
        nb.metadata.pop("course", None)
        extra = {r.task: bonus(r) for r in report.results}
        nb.metadata[GRADED] = {**said.get("graded", {}), "bonus": extra}
        if job is not None:
            made = work.made_of(Course.find(), job, name)
            nb.metadata[GRADED]["made"] = made
            marks = records.marks_of(report, job.seed, version(), made)
            resources["record"] = records.Record(
                work.digest_of(job), made, done.submission, report, marks, (name,)
            )
        return nb, resources

    def _done(self, nb, lesson) -> tuple[work.Job | None, work.Found]:
        """What comes of the notebook that was read; of this one, where none was."""
        converter = getattr(self.parent, "parent", None)
        if getattr(converter, "done", None) is not None:
            done = converter.done
            judged = done if done.report else work.judged(grader(), converter.job, done)
            return converter.job, judged
        submission = Submission(lesson.name, lesson.name, match(lesson, raw_cells(nb))[0], (), None)
        return None, work.Found(0, 0, submission, grader().grade_submission(submission))


class SaveMore(NbGraderPreprocessor):
    """Writes to the gradebook what the number in a cell cannot say.

    Points above the maximum of a task become extra credit, beside what a person gave of it. Where
    the grader itself failed, nobody has marked the task yet.
    """

    def preprocess(self, nb, resources):
        where, report = resources["nbgrader"], resources["autograder"]
        with Gradebook(where["db_url"]) as gradebook:
            records.METADATA.create_all(gradebook.engine)
            for cell in nb.cells:
                if not is_graded(cell) or cell.cell_type != "code":
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
                grade.extra_credit = by_hand + bonus(result)
                if report.error == FAULT:
                    grade.auto_score, grade.needs_manual_grade = None, True
            if "record" in resources:
                student, assignment = where["student"], where["assignment"]
                records.write(gradebook.db, assignment, student, resources["record"])
            gradebook.db.commit()
        return nb, resources
