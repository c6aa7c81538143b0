"""A class in which every second student is hostile or unlucky, graded through nbgrader."""

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks import hostile
from tests.attacks.entries import HOMEWORK, NAME, ROOT, entries, hand_in, honest
from tests.attacks.run import Field

HOSTILE = (
    "tag_skip",
    "copied_cell",
    "schema_version",
    "os_exit",
    "patch_compare",
    "read_solutions",
    "gradebook_write",
    "linked_notebook",
    "linked_data",
    "linked_folder",
    "odd_timestamp",
    "not_json",
    "fifo",
    "folder_as_notebook",
    "deleted_checks",
)


class Classroom:
    """The folder of a course in which a class has been graded."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.honest: list[str] = []
        self.hostile: dict[str, str] = {}  # by student, the entry's name
        self.ran: list[subprocess.CompletedProcess] = []
        (folder / "outside").mkdir()
        self.field = Field(folder / "outside")

    def nbgrader(self, *args: str) -> subprocess.CompletedProcess:
        scripts = Path(sys.executable).parent
        done = subprocess.run(
            [str(scripts / "nbgrader"), *args],
            cwd=self.folder,
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"},
            timeout=1800,
            check=False,
        )
        self.ran.append(done)
        return done

    def scores(self) -> dict[str, float]:
        """Points by student, out of the database."""
        with sqlite3.connect(self.folder / "gradebook.db") as db:
            rows = db.execute(
                "select s.id, sum(coalesce(g.manual_score, g.auto_score, 0) + "
                "coalesce(g.extra_credit, 0)) "
                "from student s join submitted_assignment a on a.student_id = s.id "
                "join submitted_notebook n on n.assignment_id = a.id "
                "join grade g on g.notebook_id = n.id group by s.id"
            )
            return dict(rows.fetchall())

    def place(self, student: str) -> Path:
        place = self.folder / "submitted" / student / HOMEWORK
        place.mkdir(parents=True)
        return place


@pytest.fixture(scope="session")
def classroom(tmp_path_factory):
    """Graded and given feedback: honest students before, between and behind the hostile ones."""
    folder = tmp_path_factory.mktemp("class")
    for name in ("autograder", "transformer_lm", "notebooks"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "solutions").mkdir()
    shutil.copy(ROOT / "solutions" / f"{HOMEWORK}.py", folder / "solutions")
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    room = Classroom(folder)
    known = {e.name: e for e in entries()}
    for number, name in enumerate(HOSTILE):
        student = f"s{number:02}_{name}"
        hand_in(known[name], room.place(student), room.field.places)
        room.hostile[student] = name
        if number % 5 == 0:
            room.honest.append(f"s{number:02}_a_honest")
    room.honest.append("zz_honest")
    for student in room.honest:
        (room.place(student) / NAME).write_text(honest())
    (room.place(hostile.STUDENT) / hostile.FILE).write_text(hostile.notebook())
    for step in ("generate_assignment", "autograde", "generate_feedback"):
        room.nbgrader(step, HOMEWORK)
    yield room
    room.field.close()
