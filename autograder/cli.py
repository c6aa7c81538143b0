"""The command line: `autograder check | shapes | release | build | grade | demo`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console

from autograder.one_thread import one_thread

PASSED, FAILED, UNREADABLE = 0, 1, 2


def main(argv: list[str] | None = None) -> int:
    """Runs one command; returns its exit status."""
    one_thread()
    parser = _parser()
    args, rest = parser.parse_known_args(argv)
    if rest and args.run is not _shapes:
        parser.error(f"unknown arguments: {' '.join(rest)}")
    args.rest = rest
    from autograder.course import CourseError
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
    except KeyboardInterrupt:
        print("autograder: stopped.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="autograder", description="Checks and grades the notebooks of the attention course."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    check = commands.add_parser("check", help="grade notebooks and say which mistakes were made")
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
    release.add_argument("target", nargs="?", type=Path, default=Path("build/hand-out/attention"))
    release.set_defaults(run=_release)

    demo = commands.add_parser("demo", help="grade a small made-up class through nbgrader")
    demo.add_argument("folder", nargs="?", type=Path, default=Path("demo"))
    demo.set_defaults(run=_demo)

    grade = commands.add_parser("grade", help="grade submissions: a folder, submitted/, or a zip")
    grade.add_argument("source", type=Path)
    grade.add_argument("--lesson", help="the lesson that was asked for, such as 05_homework")
    grade.add_argument("--json", action="store_true", help="one JSON object a line")
    _isolation(grade)
    grade.set_defaults(run=_grade)
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
    from autograder.grade import Grader
    from autograder.report import print_report

    console, reports = Console(), []
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
    from autograder import course
    from autograder.build import build

    console = Console(stderr=True)
    written = build(course.root(), run=not args.no_run, only=args.only, say=console.print)
    console.print(f"{len(written)} lessons built")
    return PASSED


def _release(args) -> int:
    from autograder import course
    from autograder.release import build_release

    archive = build_release(course.root(), args.target.resolve())
    print(f"hand-out: {args.target}\nzip:      {archive}")
    return PASSED


def _demo(args) -> int:
    from autograder.demo import run

    return run(args.folder.resolve())


def _grade(args) -> int:
    from autograder.batch import grade_source

    return grade_source(args.source, args.lesson, args.json, args.isolation, args.seed)


if __name__ == "__main__":
    sys.exit(main())
