"""A course's folder with a class in it, worked on by nbgrader's own commands."""

from __future__ import annotations

import csv
import html
import os
import pwd
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

from nbgrader.api import Gradebook

from autograder.course import released
from autograder.course.course import Course
from autograder.grading.demo import fill_in
from autograder.grading.grade import model_answers
from tests.conftest import ROOT
from tests.typed import typed

HOMEWORK = "05_homework"
NAME = f"{HOMEWORK}.ipynb"
SCRIPTS = Path(sys.executable).parent
WITH_FIGURES = "c.Grade.figures = True"


def nbgrader(command: list[str], place: Path, environment: dict, user: str = "") -> tuple[int, str]:
    """Runs one of nbgrader's commands: its status and all that it printed."""
    done = typed("nbgrader", *command, place=place, environment=environment, user=user)
    return done.returncode, done.stdout + done.stderr


def right() -> dict[str, str]:
    """All answers of the homework, by cell."""
    return dict(model_answers(Course.at(ROOT), HOMEWORK))


def half() -> dict[str, str]:
    """The first class is right, the second is not filled in: 4 points and 5 questions."""
    return {cell: text for cell, text in right().items() if cell != "multi_head"}


def filled(answers: dict[str, str]) -> str:
    """The homework with these answers, as a file's text."""
    return fill_in(Course.at(ROOT).lessons[HOMEWORK], answers)


class Classroom:
    """A course's folder, and what a person sees of it."""

    def __init__(self, folder: Path, config: str = ""):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("autograder", "transformer_lm", "notebooks"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "solutions").mkdir()
        for path in ROOT.glob("solutions/0[0-5]_*.py"):
            shutil.copy(path, folder / "solutions")
        shutil.copytree(
            ROOT / "solutions" / "exercises",
            folder / "solutions" / "exercises",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        shutil.copy(ROOT / "pyproject.toml", folder)
        assert HOMEWORK in Course.at(ROOT).lessons  # built by now, and kept
        (folder / released.KEPT).parent.mkdir()
        shutil.copy(ROOT / released.KEPT, folder / released.KEPT)
        self.configure(config)

    def configure(self, more: str) -> None:
        """Writes the course's nbgrader_config.py, with lines of the instructor's own.

        One process grades ahead of nbgrader's own, since the tests' processes fill the machine; and
        what notebooks print and draw is left out, which takes longer than all their marks.
        """
        text = (ROOT / "nbgrader_config.py").read_text() + "\nc = get_config()\n"
        text += "c.GradeSubmissions.jobs = 1\nc.Grade.figures = False\n"
        (self.folder / "nbgrader_config.py").write_text(f"{text}{more}\n")

    def start(self, *args: str) -> subprocess.Popen:
        """Starts one of nbgrader's commands in the course's folder, as a shell does."""
        return subprocess.Popen(
            [str(SCRIPTS / "nbgrader"), *args],
            cwd=self.folder,
            env=environ(self.folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *args: str) -> tuple[int, str]:
        """Runs a command to its end: its status and all that it printed."""
        return nbgrader(list(args), self.folder, environ(self.folder))

    def nbgrader(self, *args: str) -> str:
        """Runs a command that has to succeed; what it printed."""
        status, said = self.run(*args)
        assert status == 0, said[-4000:]
        return said

    def place(self, student: str) -> Path:
        """Where a student's work lies, made if missing."""
        folder = self.folder / "submitted" / student / HOMEWORK
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def hand_in(self, student: str, answers: dict[str, str], name: str = NAME, when: str = ""):
        """Puts a notebook into a student's folder."""
        folder = self.place(student)
        (folder / name).write_text(filled(answers), encoding="utf-8")
        if when:
            (folder / "timestamp.txt").write_text(when)

    def scores(self) -> dict[str, float]:
        """Points by student, straight from the gradebook."""
        with sqlite3.connect(self.folder / "gradebook.db") as db:
            rows = db.execute(
                "select s.id, sum(coalesce(g.manual_score, g.auto_score, 0) + "
                "coalesce(g.extra_credit, 0)) "
                "from student s join submitted_assignment a on a.student_id = s.id "
                "join submitted_notebook n on n.assignment_id = a.id "
                "join grade g on g.notebook_id = n.id group by s.id"
            )
            return dict(rows.fetchall())

    def mark_by_hand(self, student: str, cell: str, points: float, comment: str = "") -> None:
        """What formgrader does when a person writes a mark, and a comment, into its boxes."""
        with self._gradebook() as gradebook:
            grade = gradebook.find_grade(cell, HOMEWORK, HOMEWORK, student)
            grade.manual_score, grade.needs_manual_grade = points, False
            if comment:
                found = gradebook.find_comment(cell, HOMEWORK, HOMEWORK, student)
                found.manual_comment = comment
            gradebook.db.commit()

    def extra_credit(self, student: str, cell: str, points: float) -> None:
        """The same for formgrader's box for extra credit."""
        with self._gradebook() as gradebook:
            gradebook.find_grade(cell, HOMEWORK, HOMEWORK, student).extra_credit = points
            gradebook.db.commit()

    def _gradebook(self) -> Gradebook:
        return Gradebook(f"sqlite:///{self.folder / 'gradebook.db'}", "attention")

    def page(self, student: str) -> str:
        """A student's feedback page."""
        return (self.folder / "feedback" / student / HOMEWORK / f"{HOMEWORK}.html").read_text()

    def table(self) -> dict[str, dict[str, str]]:
        """grades.csv, by student."""
        with open(self.folder / "grades.csv", newline="") as file:
            return {row["student_id"]: row for row in csv.DictReader(file)}


def environ(folder: Path, **more: str) -> dict[str, str]:
    """An environment in which nbgrader finds this Python, the course, and no user's own settings.

    nbgrader's own way finds the course by its folder; a name from outside must not lead elsewhere.
    """
    kept = {k: v for k, v in os.environ.items() if k not in ("AUTOGRADER_COURSE",)}
    paths = [str(SCRIPTS), kept.get("PATH", os.defpath)]
    home = folder.parent / "home-of-the-instructor"
    return {**kept, "PATH": os.pathsep.join(paths), "JUPYTER_CONFIG_DIR": str(home), **more}


def students(count: int) -> list[str]:
    """Names of users of this machine, where we may act for them; else names that nobody has."""
    if os.getuid() == 0:
        users = [u.pw_name for u in pwd.getpwall() if u.pw_uid not in (0, os.getuid())]
        if len(users) >= count:
            return sorted(users)[:count]
    return ["ada", "ben", "chloe", "dev"][:count]


class Student:
    """A student with a home and an nbgrader without the course's settings."""

    def __init__(self, name: str, home: Path, settings: Path):
        self.name, self.home, self.settings = name, home, settings
        home.mkdir(parents=True)
        self.real = os.getuid() == 0 and name in {u.pw_name for u in pwd.getpwall()}
        self.own()

    def own(self) -> None:
        """Makes all in their home the student's."""
        if self.real:
            facts = pwd.getpwnam(self.name)
            for path in (self.home, *self.home.rglob("*")):
                os.chown(path, facts.pw_uid, facts.pw_gid, follow_symlinks=False)

    def nbgrader(self, command: str) -> str:
        """Runs a command as it would be typed behind `nbgrader`; what it printed."""
        words = command.split()
        if not self.real:  # one user plays all of them: nbgrader has a flag for that
            words.append(f"--student={self.name}")
        environment = environ(
            self.home,
            HOME=str(self.home),
            JUPYTER_CONFIG_PATH=str(self.settings),
            JUPYTER_CONFIG_DIR=str(self.home / ".jupyter"),
            JUPYTER_DATA_DIR=str(self.home / ".data"),
            JUPYTER_RUNTIME_DIR=str(self.home / ".run"),
        )
        status, said = nbgrader(words, self.home, environment, self.name if self.real else "")
        assert status == 0, said[-4000:]
        return said

    def write(self, answers: dict[str, str], name: str = NAME) -> Path:
        """Saves the homework with these answers."""
        path = self.home / HOMEWORK / name
        path.write_text(filled(answers), encoding="utf-8")
        self.own()
        return path

    def pages(self) -> list[str]:
        """The feedback pages that they have, the oldest first."""
        found = sorted(self.home.glob(f"{HOMEWORK}/feedback/*/*.html"))
        return [path.read_text() for path in found]


def headline(page: str) -> str:
    """What stands at the top of a feedback page."""
    return re.search(r"<h1>(.*?)</h1>", page)[1]


def marks(page: str) -> list[tuple[str, str]]:
    """The table of marks of a feedback page, as a person reads it."""
    table = page[page.index('<table class="marks">') : page.index("</table>")]
    rows = re.findall(r"<tr.*?>(.*?)</tr>", table, re.DOTALL)
    cells = [re.findall(r"<t[dh].*?>(.*?)</t[dh]>", row, re.DOTALL) for row in rows]
    plain = [[html.unescape(re.sub(r"<.*?>", "", c)).strip() for c in row] for row in cells]
    return [(row[0], row[1]) for row in plain[1:]]


def tree(folder: Path) -> dict[str, tuple]:
    """All that can be told of a folder's files: kinds, sizes, times, contents."""
    found = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        facts = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(folder))] = (facts.st_mode, facts.st_mtime_ns, content)
    return found
