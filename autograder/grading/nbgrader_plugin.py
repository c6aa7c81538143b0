"""The seam with nbgrader: where `Execute` stood, marks are written by the grader instead.

`configure` sets up everything, so that `nbgrader generate_assignment`, `autograde`,
`generate_feedback`, `export`, `validate` and formgrader work from the course's folder:

* `converters` finds what students handed in, and `SubmissionReader` reads it, whatever it is, and
  gives nbgrader the released notebook with the text of the student's own cells;
* `gradebook.Grade` grades it in the sandbox and writes one number into each grade cell's outputs,
  which nbgrader's own `SaveAutoGrades` reads;
* `gradebook.SaveMore` records what one number cannot say: points above a task's maximum, as
  nbgrader's extra credit, and notebooks that the grader failed on, as not marked yet;
* `exchange` brings notebooks to students and back, `gradebook` and `feedback` say what came of it.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from functools import cache
from pathlib import Path

from nbconvert.exporters import NotebookExporter
from nbgrader.converters import Autograde
from nbgrader.preprocessors import (
    AssignLatePenalties,
    CheckCellMetadata,
    LimitOutput,
    OverwriteCells,
    SaveAutoGrades,
)
from sqlalchemy.exc import SAWarning

from autograder.course.course import Course
from autograder.course.released import write_sources
from autograder.grading import converters, exchange, gradebook, work
from autograder.intake.repair import rebuild
from autograder.one_thread import one_thread


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
        gradebook.Grade,
        LimitOutput,
        SaveAutoGrades,
        gradebook.SaveMore,
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
