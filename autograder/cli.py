"""The command line: `autograder check | progress | shapes | build | release | grade | ...`."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console

from autograder import class_commands
from autograder.one_thread import one_thread
from autograder.wish import Wish

PASSED, FAILED, UNREADABLE = 0, 1, 2
TIERS = ("auto", "namespaces", "landlock", "limits")
STOPPED, HUNG_UP = 130, 141  # as shells name an end by SIGINT and by SIGPIPE


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns its exit status."""
    one_thread()
    parser = _parser()
    args, rest = parser.parse_known_args(argv)
    if rest and args.run is not _shapes:
        parser.error(f"unknown arguments: {' '.join(rest)}")
    args.rest = rest
    try:
        status = _run(args)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # whoever reads has seen enough, as in `autograder ... | head`
        _let_go(sys.stdout)
        return HUNG_UP
    except KeyboardInterrupt:
        print("autograder: stopped.", file=sys.stderr)
        return STOPPED


def _run(args: argparse.Namespace) -> int:
    """Runs a command; what goes wrong with the course or the machine becomes a sentence."""
    from autograder.course.settings import CourseError
    from autograder.sandbox import ChildFailed

    try:
        return args.run(args)
    except (CourseError, ChildFailed) as error:
        print(f"autograder: {error}", file=sys.stderr)
        return UNREADABLE
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("autograder."):
            raise
        print(
            "autograder: this command is the instructor's; the hand-out has no answers in it.",
            file=sys.stderr,
        )
        return UNREADABLE


def _let_go(stream) -> None:
    """Sends what is still to be written nowhere, so that Python's exit does not fail on it."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class _Terminal(Console):
    """Where tables are printed; a reader who has gone is no failure of the command."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class _Version(argparse.Action):
    """Prints the version of the installed package; read only when it is asked for."""

    def __call__(self, parser, *_):
        from autograder.doctor import version

        print(f"autograder {version()}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="autograder", description="Checks and grades the notebooks of a course."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    check = commands.add_parser(
        "check",
        help="grade notebooks and say which mistakes were made",
        epilog="Exit status: 0 where every task that a machine marks is right, 1 where one is not, "
        "2 where no notebook could be read.",
    )
    check.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK.ipynb")
    check.add_argument("--json", action="store_true", help="one JSON object a line, in order")
    _isolation(check)
    check.set_defaults(run=_check)

    progress = commands.add_parser(
        "progress",
        help="what is done and what comes next, in all lessons",
        description="Reads what the checks said last in the notebooks of a folder; runs nothing.",
    )
    progress.add_argument(
        "folder", nargs="?", type=Path, help="by default the notebooks of the course"
    )
    progress.set_defaults(run=_progress)

    shapes = commands.add_parser(
        "shapes", help="check the shape comments of any PyTorch file", add_help=False
    )
    shapes.set_defaults(run=_shapes)

    build = commands.add_parser("build", help="build the notebooks from solutions/*.py")
    build.add_argument("--only", default="", help="lessons whose name starts with this")
    build.add_argument("--no-run", action="store_true", help="do not execute the solutions")
    build.set_defaults(run=_build)

    release = commands.add_parser(
        "release", help="write the students' hand-out: a folder and a zip"
    )
    release.add_argument("target", nargs="?", type=Path)
    release.set_defaults(run=_release)

    demo = commands.add_parser("demo", help="grade a small made-up class through nbgrader")
    demo.add_argument("folder", nargs="?", type=Path, default=Path("demo"))
    demo.set_defaults(run=_demo)

    grade = commands.add_parser(
        "grade",
        help="grade submissions: a folder, submitted/, or a zip",
        description="Grades what a class handed in: the zip that Canvas, Moodle, Blackboard or "
        "Gradescope exports (or the folder it unpacks to), nbgrader's submitted/, a folder with a "
        "notebook or a folder for each student. Marks go into nbgrader's gradebook and "
        "autograded/; what is unchanged since it was graded is not graded again.",
        epilog="Exit status: 0 where the run did its work, whatever the marks; 1 where the grader "
        "itself failed on a notebook; 2 where nothing could be read; 130 where it was stopped.",
    )
    grade.add_argument("source", type=Path, metavar="FOLDER_OR_ZIP")
    grade.add_argument("--lesson", help="the name of the lesson that was asked for")
    grade.add_argument(
        "--only", action="append", default=[], metavar="TASK", help="judge this task; several times"
    )
    grade.add_argument(
        "--student", action="append", default=[], metavar="NAME", help="grade this student only"
    )
    grade.add_argument(
        "--jobs", type=_positive, default=0, metavar="N", help="processes; by default one a core"
    )
    grade.add_argument(
        "--scheduler", default="", metavar="tcp://...", help="let the workers of Dask do the work"
    )
    grade.add_argument("--db", default="", metavar="URL", help="another gradebook than nbgrader's")
    grade.add_argument("--no-gradebook", action="store_true", help="print marks, and keep none")
    grade.add_argument("--force", action="store_true", help="grade also what is unchanged")
    grade.add_argument("--json", action="store_true", help="one JSON object a line")
    _isolation(grade)
    grade.set_defaults(run=_grade)
    _book_commands(commands)
    class_commands.add(commands)

    doctor = commands.add_parser(
        "doctor", help="what this machine offers, a self-test, and what to install"
    )
    doctor.set_defaults(run=_doctor)
    return parser


def _book_commands(commands) -> None:
    regrade = commands.add_parser(
        "regrade",
        help="show which marks in the gradebook would change, and change them",
        description="Judges what is in the gradebook once more, each mark with the seed that it "
        "was made with, and shows which marks would change. A person's marks, comments and bonus "
        "stay as they are.",
    )
    regrade.add_argument("--lesson", help="marks of this lesson only")
    regrade.add_argument("--only", action="append", default=[], metavar="TASK")
    regrade.add_argument("--student", action="append", default=[], metavar="ID")
    regrade.add_argument("--write", action="store_true", default=None, help="write without asking")
    regrade.add_argument("--jobs", type=_positive, default=0, metavar="N")
    regrade.add_argument("--scheduler", default="", metavar="tcp://...")
    regrade.add_argument("--db", default="", metavar="URL", help="another gradebook")
    regrade.add_argument("--isolation", default="auto", choices=TIERS)
    regrade.set_defaults(run=_regrade)

    explain = commands.add_parser(
        "explain",
        help="make one mark's judgement again, as it was made",
        epilog="Exit status: 0 where it is the same, 1 where it is another, 2 where there is none.",
    )
    explain.add_argument("student", metavar="STUDENT")
    explain.add_argument("task", metavar="TASK")
    explain.add_argument("--db", default="", metavar="URL", help="another gradebook")
    explain.set_defaults(run=_explain)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least one process is needed")
    return number


def _isolation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--isolation",
        default="auto",
        choices=TIERS,
        help="how student code is held; 'limits' is for your own code only",
    )
    parser.add_argument("--seed", type=int, help="a private seed that makes marks repeatable")


def _check(args) -> int:
    from autograder.grading.grade import Grader
    from autograder.reports.report import print_report

    console, reports = _Terminal(), []
    with Grader(args.isolation, args.seed) as grader:
        for path in args.notebooks:
            report = grader.grade(path)
            reports.append(report)
            if args.json:
                print(report.to_json(), flush=True)
            else:
                print_report(report, console)
            if report.error:
                print(f"autograder: {path}: {report.error}", file=sys.stderr)
    if all(r.error for r in reports):
        return UNREADABLE
    return PASSED if all(r.passed for r in reports) else FAILED


def _progress(args) -> int:
    from autograder.course.course import Course
    from autograder.reports.progress import read_progress

    course = Course.find()
    folder = args.folder or course.folder / course.settings.notebooks
    if not folder.exists():
        print(f"autograder: there is no {folder}.", file=sys.stderr)
        return UNREADABLE
    print(read_progress(course, folder))
    return PASSED


def _shapes(args) -> int:
    from autograder.shapes.cli import main as shapes_main

    return shapes_main(args.rest)


def _build(args) -> int:
    from autograder.course.build import build
    from autograder.course.course import Course

    console, course = Console(stderr=True), Course.find()
    course.check()
    _rehearse(course, args.only)
    with _writing():
        written = build(course, run=not args.no_run, only=args.only, say=console.print)
    console.print(f"{len(written)} lesson{'s' if len(written) != 1 else ''} built")
    return PASSED


def _rehearse(course, only: str = "") -> None:
    from autograder.rehearsal import rehearse

    rehearse(course, only, _watched("trying the exercises"))


def _watched(what: str):
    """Wraps a list to show how far its work is."""
    from rich.progress import track

    return lambda files: track(files, what, console=Console(stderr=True), transient=True)


def _release(args) -> int:
    from autograder.course.course import Course
    from autograder.course.handout import build_release

    course = Course.find()
    target = args.target or Path("build") / "hand-out" / course.settings.id

    with _writing():
        archive, edited = build_release(course, target.resolve(), _watched("computing the answers"))
    if edited:
        print(
            f"autograder: notebooks/ holds something else than solutions/ builds in the lessons "
            f"{', '.join(edited)} (answers, perhaps); the hand-out has them as they are built.",
            file=sys.stderr,
        )
    print(f"hand-out: {target}\nzip:      {archive}")
    return PASSED


@contextmanager
def _writing():
    """Says in a sentence which file cannot be written."""
    from autograder.course.settings import CourseError

    try:
        yield
    except OSError as error:
        raise CourseError(f"{error.filename} cannot be written ({error.strerror}).") from None


def _doctor(args) -> int:
    from autograder.doctor import doctor

    return doctor(_Terminal())


def _demo(args) -> int:
    from autograder.grading.demo import run

    return run(args.folder.resolve())


def _wish(args, seed: int | None = None) -> Wish:
    return Wish(args.lesson, tuple(args.only), tuple(args.student), args.isolation, seed)


def _grade(args) -> int:
    from autograder.classroom.run import grade_class

    return grade_class(
        args.source,
        _wish(args, args.seed),
        args.json,
        _Terminal(),
        jobs=args.jobs,
        scheduler=args.scheduler,
        keep=not args.no_gradebook,
        url=args.db,
        again=args.force,
    )


def _regrade(args) -> int:
    from autograder.classroom.run import cores, workers

    with workers(args.jobs or cores(), args.scheduler) as work:
        from autograder.classroom.again import opened, regrade

        book = opened(args.db)
        try:
            return regrade(book, work, _wish(args), args.write, _Terminal())
        finally:
            book.close()


def _explain(args) -> int:
    from autograder.classroom.again import explain, opened

    book = opened(args.db)
    try:
        return explain(book, args.student, args.task, _Terminal())
    finally:
        book.close()


if __name__ == "__main__":
    sys.exit(main())
