"""nbgrader's exchange: the folder through which notebooks reach students and come back.

Nothing but the notebook leaves. What students hand in is copied as it is, but no link is followed,
and what cannot be copied costs nobody else's. Where something is missing, a sentence says what to
do.
"""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import tempfile
from datetime import datetime
from pathlib import Path

from nbgrader.exchange import default as own
from nbgrader.utils import ignore_patterns, notebook_hash
from traitlets import default

from autograder.grading.converters import SECRET, TIMESTAMP, timestamp, what_was_graded
from autograder.intake.read import Unreadable, read_bytes

USUAL = own.Exchange.root.default_value  # where nbgrader looks, also on a student's side


def configure(config) -> None:
    """Names these classes as nbgrader's exchange."""
    for name, kind in (
        ("release_assignment", ReleaseAssignment),
        ("fetch_assignment", FetchAssignment),
        ("submit", Submit),
        ("collect", Collect),
        ("release_feedback", ReleaseFeedback),
        ("fetch_feedback", FetchFeedback),
        ("list", List),
    ):
        config.ExchangeFactory[name] = kind


class Exchange(own.Exchange):
    """Where the exchange is, and what to do where it is not."""

    @default("root")
    def _where(self) -> str:
        """nbgrader's usual folder; the course's own `exchange/` where that one cannot be made.

        A default only: `c.Exchange.root` in any nbgrader_config.py, and the flag, come first.
        """
        if self.coursedir is None or os.path.exists(USUAL):
            return USUAL
        private = os.path.join(self.coursedir.root, "exchange")
        above = next(path for path in Path(USUAL).parents if path.exists())
        if os.path.isdir(private) or not os.access(above, os.W_OK | os.X_OK):
            return private
        return USUAL

    def ensure_root(self) -> None:
        if not os.path.isdir(self.root):
            lesson = self.coursedir.assignment_id or "LESSON"
            self.fail(
                f"There is no exchange at {self.root} yet. The first released assignment makes "
                f"it: in the course's folder, `nbgrader generate_assignment {lesson}`, then "
                f"`nbgrader release_assignment {lesson}`. To use another folder, set "
                "c.Exchange.root in nbgrader_config.py."
            )
        if not os.access(self.root, os.W_OK | os.X_OK):
            self.fail(
                f"The exchange {self.root} cannot be written to. Everybody has to be able to: "
                f"its owner runs `chmod 777 {self.root}`."
            )
        super().ensure_root()

    def expect_course(self, part: str) -> None:
        """Fails where nothing of the course was ever released."""
        course_id = self.coursedir.course_id
        if course_id and not os.path.isdir(os.path.join(self.root, course_id, part)):
            self.fail(
                f"The exchange {self.root} holds nothing of a course called {course_id}. Is that "
                "its name? Its instructor releases a first assignment: `nbgrader "
                f"release_assignment {self.coursedir.assignment_id or 'LESSON'}`."
            )


class ReleaseAssignment(Exchange, own.ExchangeReleaseAssignment):
    """Puts the notebook, and nothing else, where students find it."""

    def ensure_root(self) -> None:
        try:
            if not os.path.isdir(self.root):
                os.makedirs(self.root)
                os.chmod(self.root, 0o777)
            own.ExchangeReleaseAssignment.ensure_root(self)
        except OSError as error:
            self.fail(
                f"The exchange {self.root} cannot be made ({error.strerror}). Have it made once: "
                f"`sudo mkdir -p {self.root} && sudo chmod 777 {self.root}`; or set "
                "c.Exchange.root in nbgrader_config.py to a folder that students can reach."
            )

    def init_src(self) -> None:
        super().init_src()
        self._name = f"{self.coursedir.assignment_id}.ipynb"
        try:
            self._notebook = read_bytes(Path(self.src_path, self._name))
        except Unreadable as reason:
            self.fail(
                f"{os.path.join(self.src_path, self._name)}: {reason} Make it again: `nbgrader "
                f"generate_assignment {self.coursedir.assignment_id} --force`."
            )

    def do_copy(self, src, dest, log=None) -> None:
        os.mkdir(dest)
        Path(dest, self._name).write_bytes(self._notebook)

    def copy_files(self) -> None:
        super().copy_files()
        lesson, course_id = self.coursedir.assignment_id, self.coursedir.course_id
        command = f"nbgrader fetch_assignment {lesson} --course {course_id}"
        if self.root != USUAL:
            command += f" --Exchange.root={self.root}"
        self.log.info(
            "Students of this machine type: %s (later `submit`, then `fetch_feedback`, in the "
            "place of `fetch_assignment`)",
            command,
        )
        if Path(self.root) == Path(self.coursedir.root, "exchange"):
            self.log.warning(
                "The exchange is the course's own folder %s, since %s cannot be made here. Others "
                "must be able to reach it; or set c.Exchange.root in nbgrader_config.py.",
                self.root,
                USUAL,
            )


class FetchAssignment(Exchange, own.ExchangeFetchAssignment):
    """Brings a released notebook to a student."""

    def init_src(self) -> None:
        self.expect_course("outbound")
        super().init_src()


class Submit(Exchange, own.ExchangeSubmit):
    """Hands in a student's folder."""

    def init_dest(self) -> None:
        self.expect_course("inbound")
        super().init_dest()


class FetchFeedback(Exchange, own.ExchangeFetchFeedback):
    """Brings a student the pages of what was handed in from here."""

    def init_src(self) -> None:
        self.expect_course("outbound")
        course_id = self.coursedir.course_id
        if course_id and not os.path.isdir(os.path.join(self.root, course_id, "feedback")):
            self.fail(f"No feedback of the course {course_id} was released yet.")
        super().init_src()


class List(Exchange, own.ExchangeList):
    """Shows what was released or handed in."""

    def list_files(self) -> list:
        found = super().list_files()
        if not found:
            self.log.info("None so far in the exchange %s.", self.root)
        return found


class Collect(Exchange, own.ExchangeCollect):
    """Brings what students handed in to `submitted/`; nobody's trouble is another's."""

    def init_src(self) -> None:
        self.expect_course("inbound")
        super().init_src()
        self.src_records = [record for record in self.src_records if record["username"]]

    def _path_to_record(self, path) -> dict:
        """As nbgrader's, but for any name: everybody may write into this folder."""
        try:
            record = super()._path_to_record(path)
        except (OverflowError, ValueError):
            record = {"username": ""}
        if record["username"] in ("", ".", "..") or not os.path.isdir(path):
            self.log.warning("Not collected, as it is not what nbgrader writes: %s", path)
        elif self.check_owner and _is_anothers(path, record["username"]):
            self.log.warning(
                "Not collected: %s belongs to somebody else than %s. With "
                "c.ExchangeCollect.check_owner = False it will be.",
                path,
                record["username"],
            )
        else:
            return record
        return {"username": "", "filename": "", "timestamp": datetime.min}

    def do_copy(self, src, dest, log=None) -> None:
        """Copies all that can be copied, and puts it in place as a whole."""
        left_out = ignore_patterns(self.coursedir.ignore, log=self.log)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(dest), prefix=".new-") as work:
            new = Path(work, "submission")
            try:
                shutil.copytree(src, new, symlinks=True, ignore=left_out, copy_function=self._copy)
            except shutil.Error as error:
                for path, _, reason in error.args[0]:
                    self.log.warning("Not copied: %s (%s)", path, reason)
            if timestamp(new) is None:  # the folder's name says it too
                handed_in = super()._path_to_record(src)["timestamp"]
                _replace(new / TIMESTAMP, f"{handed_in} UTC")
            _own_permissions(new, self.coursedir.groupshared)
            os.rename(new, dest)

    def _copy(self, source: str, target: str) -> None:
        try:
            data = read_bytes(Path(source), self.coursedir.max_file_size * 1000)
        except Unreadable as reason:
            raise OSError(str(reason)) from None
        Path(target).write_bytes(data)


def _is_anothers(path: str, student: str) -> bool:
    """Whether a user of this machine wrote it in another user's name."""
    try:
        return os.lstat(path).st_uid not in (pwd.getpwnam(student).pw_uid, os.getuid(), 0)
    except KeyError:
        return False  # students are no users here, as on most JupyterHubs


def _replace(path: Path, text: str) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")


def _own_permissions(folder: Path, shared: bool) -> None:
    """Folders that the owner can change again, whatever the student's permissions were."""
    for place, _, files in os.walk(folder):
        os.chmod(place, 0o2775 if shared else 0o755)
        for path in (Path(place, name) for name in files):
            if shared and not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o660)


class ReleaseFeedback(Exchange, own.ExchangeReleaseFeedback):
    """Puts the pages where each student, and nobody else, finds their own."""

    def copy_files(self) -> None:
        lesson, folders = self.coursedir.assignment_id, glob.glob(self.src_path)
        if not folders:
            self.log.warning(
                "No feedback pages of %s. First: `nbgrader generate_feedback %s`.", lesson, lesson
            )
        for folder in map(Path, sorted(folders)):
            secret = _secret(folder)
            if not secret or timestamp(folder) is None:
                self.log.warning(
                    "Not released, as it was not handed in through the exchange: %s", folder
                )
                continue
            self.src_path = str(folder)
            super().copy_files()
            self._by_their_name(folder, secret)

    def _by_their_name(self, folder: Path, secret: str) -> None:
        """Students find a page by their notebook's name, so that a renamed one needs another."""
        lesson, student = self.coursedir.assignment_id, folder.parent.name
        graded = self.coursedir.format_path(self.coursedir.autograded_directory, student, lesson)
        name = Path(what_was_graded(Path(graded, f"{lesson}.ipynb")).get("file", "")).stem
        page = folder / f"{lesson}.html"
        if name not in ("", lesson) and page.is_file():
            code = notebook_hash(secret=secret, notebook_id=name)
            shutil.copy(page, Path(self.dest_path, f"{code}.html"))


def _secret(folder: Path) -> str:
    """What only this student and the course know of a submission; empty where it is missing."""
    try:
        return read_bytes(folder / SECRET, 1000).decode("utf-8")
    except (Unreadable, UnicodeDecodeError):
        return ""
