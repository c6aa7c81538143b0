"""A class in which every second student is hostile or unlucky, graded through nbgrader."""

from pathlib import Path

import pytest

from tests import forms
from tests.attacks import hostile
from tests.attacks.entries import HOMEWORK, NAME, entries, hand_in, honest
from tests.attacks.run import Field
from tests.journeys.classroom import WITH_FIGURES, Classroom

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


class HostileClass(Classroom):
    """The folder of a course in which a class has been graded."""

    def __init__(self, folder: Path):
        # What is drawn takes longer than all marks: the small form draws for one student alone.
        super().__init__(folder, "" if forms.small else WITH_FIGURES)
        self.honest: list[str] = []
        self.hostile: dict[str, str] = {}  # by student, the entry's name
        self.ran: list[tuple[int, str]] = []  # the status of each command, and what it printed
        (folder / "outside").mkdir()
        self.field = Field(folder / "outside")


@pytest.fixture(scope="session")
def classroom(tmp_path_factory):
    """Graded and given feedback: honest students before, between and behind the hostile ones."""
    room = HostileClass(tmp_path_factory.mktemp("class") / "course")
    known = {e.name: e for e in entries()}
    for number, name in enumerate(HOSTILE[::2] if forms.small else HOSTILE):
        student = f"s{number:02}_{name}"
        hand_in(known[name], room.place(student), room.field.places)
        room.hostile[student] = name
        if number % 5 == 0:
            room.honest.append(f"s{number:02}_a_honest")
    room.honest.append("zz_honest")
    for student in room.honest:
        (room.place(student) / NAME).write_text(honest())
    room.ran += [room.run(step, HOMEWORK) for step in ("generate_assignment", "autograde")]
    (room.place(hostile.STUDENT) / hostile.FILE).write_text(hostile.notebook())
    room.configure(WITH_FIGURES)
    room.ran += [room.run(step, HOMEWORK) for step in ("autograde", "generate_feedback")]
    yield room
    room.field.close()
