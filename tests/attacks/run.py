"""Hands in one homework of the corpus, grades it, and looks at what it did to the rest."""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from autograder.grading.batch import Run
from autograder.grading.grade import Grader
from autograder.intake.collect import opened
from autograder.intake.who import sort_out
from autograder.reports.report import Report
from autograder.sandbox import Limits
from autograder.wish import Wish
from tests.attacks.entries import HOMEWORK, NAME, ROOT, Entry, hand_in, honest

# Short waits; all else as when marks are given.
SHORT = Limits(child_seconds=6.0, memory=900 << 20, disk=32 << 20, drained=400 << 20)
MOST_SECONDS = 30.0  # of the grader's own processor time for one homework, whatever it does
FULL = 10.0


@dataclass
class Field:
    """Files and sockets outside that anybody may write to, were it not for the wall."""

    folder: Path
    secret: str = field(default_factory=lambda: f"canary-{secrets.token_hex(16)}")

    def __post_init__(self):
        self.folder.chmod(0o777)
        self.file.write_text(self.secret)
        (self.folder / "gradebook.db").write_bytes(b"SQLite format 3\0" + self.secret.encode())
        for path in self.folder.iterdir():
            path.chmod(0o666)
        self.name = f"canary-{secrets.token_hex(4)}"
        self.sockets = []
        for address in (str(self.folder / "socket"), "\0" + self.name):
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(address)
            listening.listen()
            listening.settimeout(0)
            self.sockets.append(listening)
        (self.folder / "socket").chmod(0o777)
        self.before = self._look()

    @property
    def file(self) -> Path:
        return self.folder / "canary.txt"

    @property
    def places(self) -> dict[str, str]:
        """What an attack is told, by the name of its placeholder."""
        return {
            "CANARY": str(self.file),
            "FOLDER": str(self.folder),
            "NAME": self.name,
            "REPOSITORY": str(ROOT),
        }

    def harm(self) -> list[str]:
        """What is not as it was."""
        found = [] if self._look() == self.before else ["a file outside was touched"]
        for listening in self.sockets:
            try:
                listening.accept()[0].close()
                found.append("a socket outside was called")
            except OSError:
                continue
        return found

    def close(self) -> None:
        for listening in self.sockets:
            listening.close()

    def _look(self):
        facts = {p.name: (p.stat().st_mode, p.stat().st_mtime_ns) for p in self.folder.iterdir()}
        return self.file.read_bytes(), self.folder.stat().st_mode, facts


@dataclass(frozen=True)
class Outcome:
    """What became of one homework: its points and words, and all that went wrong (nothing)."""

    points: float
    verdict: str
    wrong: tuple[str, ...]
    seconds: float
    isolation: str = ""


def attack(entry: Entry, grader: Grader, marker: str) -> Outcome:
    """Hands in and grades one homework. marker: the folder for temporary files of the grader."""
    with tempfile.TemporaryDirectory(prefix="handed-in-") as name:
        top = Path(name)
        outside = top / "outside"
        outside.mkdir()
        field_ = Field(outside)
        folder = top / "submitted" / "mallory" / HOMEWORK
        folder.mkdir(parents=True)
        try:
            hand_in(entry, folder, field_.places)
            started, used = time.monotonic(), time.process_time()
            reports, refused = _graded(top, folder, grader)
            seconds, busy = time.monotonic() - started, time.process_time() - used
            points = sum(_earned(entry, report) for report in reports)
            verdict = _verdict(entry, points, reports, refused)
            wrong = [] if verdict in entry.expect else [f"expected {' or '.join(entry.expect)}"]
            wrong += field_.harm()
            if any(field_.secret in report.to_json() for report in reports):
                wrong.append("a secret was read")
            if busy > MOST_SECONDS:
                wrong.append(f"it kept the grader busy for {busy:.0f} s")
            wrong += [f"a process is left: {line}" for line in left_over(marker, grader)]
        finally:
            field_.close()
    isolation = next((r.isolation for r in reports), "")
    return Outcome(points, verdict, tuple(wrong), seconds, isolation)


def _graded(top: Path, folder: Path, grader: Grader) -> tuple[list[Report], list[str]]:
    """What is said of the homework, as `autograder grade` would find it."""
    source = folder / "all.zip" if (folder / "all.zip").exists() else top / "submitted"
    with opened(source) as (files, refused):
        everybody, said = sort_out(files)
        run = Run(grader, Wish(HOMEWORK))
        reports = [row.report for row in run.grade(everybody)]
    return reports, [*refused, *said, *run.said]


def _earned(entry: Entry, report: Report) -> float:
    """The points, with those given back that style takes from an attack in front of an answer."""
    findings = [f for r in report.results for f in r.findings]
    off = sum(f.verdict == "deduction" and f.check == "pep8" for f in findings)
    return report.score + (0 if entry.replaces else off)


def _verdict(entry: Entry, points: float, reports: list[Report], refused: list[str]) -> str:
    if not reports or all(r.error for r in reports):
        said = refused or [r.error for r in reports]
        return "refused" if said and points == 0 else "silent"
    if entry.answers == "right" and points == FULL:
        return "same"
    lost = [r for report in reports for r in report.results if not r.passed and not r.needs_person]
    said = all(r.findings and r.findings[0].message for r in lost)
    others = [r for r in lost if not r.task.startswith(entry.cell)]
    if entry.answers == "right" and lost and said and not others:
        return "err"
    return f"{points:g}"


def left_over(marker: str, grader: Grader) -> list[str]:
    """Processes of the grader's sandboxes, besides their warm processes."""
    warm = {str(box.warm_pid) for box in grader.boxes}
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        if f"TMPDIR={marker}".encode() in environment.split(b"\0") and pid not in warm:
            found.append(stat[:60])
    return found


def honest_scores_full(grader: Grader, folder: Path) -> bool:
    """Whether a right homework, handed in next, gets every point."""
    path = folder / NAME
    path.write_text(honest(), encoding="utf-8")
    return grader.grade(path).score == FULL
