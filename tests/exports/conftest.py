"""One class, marked once for all tests of what is told of it and taken elsewhere."""

import pytest

from tests.journeys.classroom import HOMEWORK, NAME, Classroom, environ, right
from tests.typed import typed

UNSCALED = {"self_attention": right()["self_attention"].replace(" / self.scale", "")}
NASTY = '=HYPERLINK("http://x.example")<script>alert(1)</script>'


def autograder(room: Classroom, *args: str, status: int = 0) -> str:
    """`autograder ...`, as it is typed in the course's folder; what it printed."""
    done = typed("autograder", *args, place=room.folder, environment=environ(room.folder))
    assert done.returncode == status, done.stderr[-3000:]
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="session")
def room(tmp_path_factory) -> Classroom:
    """Ada is right but late, Ben and Cy do not scale, Dev writes markup, Zoe's file is broken."""
    room = Classroom(tmp_path_factory.mktemp("exports") / "course")
    (room.folder / "pyproject.toml").write_text(
        (room.folder / "pyproject.toml").read_text()
        + "\n[tool.autograder.late]\npoints_a_day = 1.0\ngrace_hours = 1.0\n"
        'due = { 05_homework = "2026-03-01 12:00:00 UTC" }\n'
    )
    room.hand_in("ada", right(), when="2026-03-02 18:30:00 UTC")
    room.hand_in("ben", {**right(), **UNSCALED}, when="2026-03-01 11:00:00 UTC")
    room.hand_in("cy", UNSCALED, when="2026-03-01 12:30:00 UTC")
    room.hand_in("dev", {"self_attention": f"{NASTY!r}\nraise ValueError({NASTY!r})", "q1": NASTY})
    (room.place("zoe") / NAME).write_text('{"cells": [')
    autograder(room, "grade", "submitted", "--lesson", HOMEWORK, "--jobs=1")
    return room
