"""The command line: `autograder check | shapes | release | build | grade | demo | doctor`."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console

from autograder.one_thread import one_thread

PASSED, FAILED, UNREADABLE = 0, 1, 2
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
        "notebook or a folder for each student.",
        epilog="Exit status: 0 where the run did its work, whatever the marks; 1 where the grader "
        "itself failed on a notebook; 2 where nothing could be read; 130 where it was stopped.",
    )
    grade.add_argument("source", type=Path, metavar="FOLDER_OR_ZIP")
    grade.add_argument("--lesson", help="the name of the lesson that was asked for")
    grade.add_argument("--json", action="store_true", help="one JSON object a line")
    _isolation(grade)
    grade.set_defaults(run=_grade)

    doctor = commands.add_parser(
        "doctor", help="what this machine offers, a self-test, and what to install"
    )
    doctor.set_defaults(run=_doctor)
    return parser


def _isolation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--isolation",
        default="auto",
        choices=("auto", "namespaces", "landlock", "limits"),
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


def _shapes(args) -> int:
    from autograder.shapes.cli import main as shapes_main

    return shapes_main(args.rest)


def _build(args) -> int:
    from autograder.course.build import build
    from autograder.course.course import Course

    console = Console(stderr=True)
    with _writing():
        written = build(Course.find(), run=not args.no_run, only=args.only, say=console.print)
    console.print(f"{len(written)} lessons built")
    return PASSED


def _release(args) -> int:
    from rich.progress import track

    from autograder.course.course import Course
    from autograder.course.handout import build_release

    def watch(files: list):
        return track(files, "computing the answers", console=Console(stderr=True))

    course = Course.find()
    target = args.target or Path("build") / "hand-out" / course.settings.id

    with _writing():
        archive, edited = build_release(course, target.resolve(), watch)
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


def _grade(args) -> int:
    from autograder.grading.batch import grade_source

    return grade_source(args.source, args.lesson, args.json, args.isolation, args.seed, _Terminal())


if __name__ == "__main__":
    sys.exit(main())
