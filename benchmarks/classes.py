"""A class through stock nbgrader, through our `nbgrader autograde` and through `autograder grade`.

    python -m benchmarks.classes                # 30 submissions, all four ways, side by side
    python -m benchmarks.classes --count 6      # a smaller class
    python -m benchmarks.classes --grow         # what 10, 100 and 1,000 submissions cost
    python -m benchmarks.classes --start        # how long the start takes, in all its parts

A third of the submissions is right, a third has a slip, a third is blank or hostile. Each answer
begins with a comment of its own, so that no two are equal word for word: `autograder grade` judges
equal ones once, which is a line of its own. Stock nbgrader gets the same notebooks with tests of
its own that compare values with the model answer. Every way starts from nothing, with an empty
gradebook, and its start is in its time. What it prints: seconds, submissions a minute, the ratio to
stock nbgrader, and where the time of one submission goes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from autograder.sandbox.family import family
from tests.conftest import ROOT
from tests.journeys.classroom import HOMEWORK, NAME, Classroom, environ, filled, right

SCRIPTS = Path(sys.executable).parent
HOSTILE = (
    "import os\nos._exit(0)",
    "raise SystemExit",
    "import torch\ntorch.allclose = lambda *a, **k: True",
    "print('x' * 5_000_000)",
)
SLIPS = (("dim=-1", "dim=1"), ("-inf", "0.0"), ("self.scale = ", "self.scale = 2 * "))


def answers(number: int) -> dict[str, str]:
    """What the student with this number handed in, with a comment that nobody else has."""
    mark = f"# My answer, number {number}.\n"
    found = same_answers(number).items()
    return {cell: mark + text if "class " in text else text for cell, text in found}


def same_answers(number: int) -> dict[str, str]:
    """The same without the comment: there are eight of these."""
    kind, turn = number % 3, number // 3
    if kind == 0:
        return right()
    if kind == 1:
        old, new = SLIPS[turn % len(SLIPS)]
        return {cell: text.replace(old, new) for cell, text in right().items()}
    if turn % 2 == 0:
        return {}
    line = HOSTILE[turn // 2 % len(HOSTILE)]
    return {**right(), "self_attention": f"{line}\n{right()['self_attention']}"}


def our_class(folder: Path, count: int, handed_in=answers) -> Classroom:
    """A course's folder in which so many students handed in."""
    room = Classroom(folder)
    shutil.copy(ROOT / "nbgrader_config.py", folder)  # as shipped: tests leave out the figures
    for number in range(count):
        room.hand_in(f"student-{number:04}", handed_in(number))
    return room


# --- stock nbgrader ------------------------------------------------------------------------------
CHECK = """
import torch
torch.manual_seed(0)
_mine, _given = {name}, {{}}
exec(compile({model!r}, "model", "exec"), globals(), _given)
_theirs = _given["{name}"]
for _size in ((2, 5, 6, 8), (3, 4, 8, 4)):
    _batch, _length, _inputs, _hidden = _size
    _args = (_inputs, _hidden) if "{name}" == "SelfAttention" else (_inputs, _hidden, 2)
    _one, _two = _mine(*_args), _theirs(*_args)
    _one.load_state_dict(_two.state_dict())
    _x = torch.randn(_batch, _length, _inputs)
    assert torch.allclose(_one(_x), _two(_x), atol=1e-5)
"""


def stock_class(folder: Path, count: int) -> Path:
    """The same class for stock nbgrader: the same cells, with asserts in the grade cells."""
    import json

    import nbformat

    for number in range(count):
        place = folder / "submitted" / f"student-{number:04}" / HOMEWORK
        place.mkdir(parents=True)
        (place / NAME).write_text(_with_asserts(filled(answers(number))), encoding="utf-8")
    source = folder / "source" / HOMEWORK
    source.mkdir(parents=True)
    notebook = nbformat.reads(_with_asserts(filled(right())), as_version=4)
    (source / NAME).write_text(nbformat.writes(notebook))
    (folder / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.course_id = 'stock'\n"
        "c.ClearSolutions.enforce_metadata = False\n"
    )
    json.loads((source / NAME).read_text())
    (folder / "transformer_lm").symlink_to(Path(__file__).parents[1] / "transformer_lm")
    return folder


def _with_asserts(text: str) -> str:
    """A homework's file with stock tests in the place of our checks."""
    import json

    notebook, models = json.loads(text), right()
    for cell in notebook["cells"]:
        course = cell["metadata"].pop("course", {})
        if course.get("role") == "check":
            answer = models[course["of"]]
            name = re.search(r"class (\w+)\(nn", answer).group(1)
            cell["source"] = CHECK.format(name=name, model=answer)
            cell["metadata"]["nbgrader"].pop("checksum", None)
    return json.dumps(notebook)


# --- the ways ------------------------------------------------------------------------------------
def nbgrader(folder: Path, *args: str) -> float:
    """Runs one of nbgrader's commands; seconds."""
    return _run([str(SCRIPTS / "nbgrader"), *args], folder)


def _run(command: list[str], folder: Path) -> float:
    """Seconds until the prompt is back: no process that the command leaves to end is waited for."""
    with tempfile.TemporaryFile("w+") as said:
        start = time.perf_counter()
        done = subprocess.run(
            command, cwd=folder, env=environ(folder), stdout=said, stderr=subprocess.STDOUT
        )
        seconds = time.perf_counter() - start
        if done.returncode:
            said.seek(0)
            tail = "\n".join(said.read().splitlines()[-5:])
            print(f"  ({' '.join(command[-3:])} ended with {done.returncode}: {tail})")
    return seconds


def stock(folder: Path, count: int) -> float:
    stock_class(folder, count)
    nbgrader(folder, "generate_assignment", HOMEWORK)
    return nbgrader(folder, "autograde", HOMEWORK)


def autograde(folder: Path, count: int, *options: str) -> float:
    room = our_class(folder, count)
    room.nbgrader("generate_assignment", HOMEWORK)
    return nbgrader(folder, "autograde", HOMEWORK, *options)


def grade(folder: Path, count: int, handed_in=answers) -> float:
    room = our_class(folder, count, handed_in)
    room.nbgrader("generate_assignment", HOMEWORK)
    return _run([sys.executable, "-m", "autograder.cli", "grade", "submitted"], folder)


WAYS = {
    "stock nbgrader autograde": stock,
    "our nbgrader autograde": autograde,
    "the same without figures": lambda f, n: autograde(f, n, "--Grade.figures=False"),
    "autograder grade": grade,
    "the same, answers alike": lambda f, n: grade(f, n, same_answers),
}


def side_by_side(count: int, ways: list[str]) -> None:
    """All ways on the same class, one after the other."""
    print(
        f"{count} submissions, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}"
    )
    print(f"{'':28}{'seconds':>9}{'a minute':>10}{'ratio':>8}")
    first = None
    for name in ways:
        with tempfile.TemporaryDirectory(prefix="class-") as folder:
            seconds = WAYS[name](Path(folder) / "course", count)
        first = first or seconds
        rate = 60 * count / seconds
        print(f"{name:28}{seconds:9.1f}{rate:10.1f}{first / seconds:8.1f}", flush=True)


def one_submission() -> None:
    """Where the time of one right and one wrong submission goes, in one process."""
    from autograder.grading import figures, marking, observe
    from autograder.grading.grade import Grader
    from autograder.intake.read import read
    from autograder.sandbox import warm

    spent: dict[str, float] = {}

    def timed(name: str, place, attribute: str) -> None:
        inner = getattr(place, attribute)

        def outer(*args, **kwargs):
            start = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                spent[name] = spent.get(name, 0.0) + time.perf_counter() - start

        setattr(place, attribute, outer)

    timed("fork, isolate", warm.Warm, "spawn")
    timed("reap", warm.Warm, "end")
    timed("questions in all", marking, "observe")
    timed("findings: known mistakes", marking, "findings")
    timed("shape comments", marking, "comment_findings")
    timed("loading the code", observe, "_load")
    timed("figures", figures, "show")
    with Grader() as grader, tempfile.TemporaryDirectory() as folder:
        for kind, number in (("right", 0), ("wrong", 1)):
            path = Path(folder) / NAME
            path.write_text(filled(answers(number)))
            grader.grade(path)  # the first waits for the warm process
            submission = read(path, grader.lessons)
            grader.grade_submission(submission, seed=number)  # as in the middle of a class
            path.write_text(path.read_text().replace("My answer", "My own answer"))
            submission = read(path, grader.lessons)
            spent.clear()
            start = time.perf_counter()
            grader.grade_submission(submission, seed=number)
            whole = time.perf_counter() - start
            told = ", ".join(f"{name} {1000 * s:.0f}" for name, s in spent.items())
            print(f"one {kind} submission: {1000 * whole:.0f} ms; of it {told}")


def start() -> None:
    """Seconds, and processor seconds of the command's own process, until a command has ended."""
    with tempfile.TemporaryDirectory(prefix="class-") as folder:
        room = our_class(Path(folder) / "course", 3)
        room.nbgrader("generate_assignment", HOMEWORK)
        grading = ["grade", "submitted"]
        _run([sys.executable, "-m", "autograder.cli", *grading], room.folder)
        for name, args in (
            ("autograder --version", ["--version"]),
            ("grade, three unchanged", grading),
            ("grade, one blank to do", [*grading, "--student=student-0002", "--force"]),
            ("grade, one right to do", [*grading, "--student=student-0000", "--force"]),
        ):
            before = os.times()
            seconds = _run([sys.executable, "-m", "autograder.cli", *args], room.folder)
            after = os.times()
            own = after.children_user + after.children_system
            own -= before.children_user + before.children_system
            print(f"{name:28}{seconds:8.1f} s, {own:.1f} s of processor time", flush=True)


def grow(counts: tuple[int, ...]) -> None:
    """What larger classes cost a submission, and the memory of the processes that take part."""
    for count in counts:
        with tempfile.TemporaryDirectory(prefix="class-") as folder:
            room = our_class(Path(folder) / "course", count)
            room.nbgrader("generate_assignment", HOMEWORK)
            seconds, processor, own, worker = _watched(room.folder)
        each = f"{1000 * seconds / count:6.0f} ms each, {1000 * processor / count:6.0f} ms of it"
        print(f"{count:6} submissions: {seconds:8.1f} s, {each} by this process and the workers,")
        print(f"{'':20} at most {own} MiB in this process, {worker} MiB in a worker", flush=True)


def _watched(folder: Path) -> tuple[float, float, int, int]:
    """Seconds and processor time of a run, and the largest memory (MiB) of it and of a worker."""
    start, most, spent = time.perf_counter(), {}, {}
    command = [sys.executable, "-m", "autograder.cli", "grade", "submitted"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = subprocess.Popen(command, cwd=folder, env=environ(folder), **quiet)
    while running.poll() is None:
        for pid in (running.pid, *_workers(running.pid)):
            with contextlib.suppress(OSError, IndexError):
                most[pid] = max(most.get(pid, 0), _peak(pid))
                spent[pid] = _spent(pid)
        time.sleep(0.2)
    seconds, own = time.perf_counter() - start, most.pop(running.pid)
    return seconds, sum(spent.values()), own, max(most.values(), default=0)


def _workers(pid: int) -> list[int]:
    """The fork server of a run and the processes that it has made."""
    named = [p for p in family(pid) if b"forkserver" in _command(p)]
    return [p for p in named if p != pid]


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def _spent(pid: int) -> float:
    """The processor time that a process itself has used."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak(pid: int) -> int:
    """The most memory that a process has had, in MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) // 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--way", action="append", choices=list(WAYS), help="only this one")
    parser.add_argument("--grow", action="store_true")
    parser.add_argument("--start", action="store_true")
    parser.add_argument("--size", type=int, action="append", default=[], help="with --grow")
    options = parser.parse_args()
    if options.grow:
        grow(tuple(options.size) or (10, 100, 1000))
        return
    if options.start:
        start()
        return
    side_by_side(options.count, options.way or list(WAYS))
    one_submission()


if __name__ == "__main__":
    main()
