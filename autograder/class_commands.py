"""The commands about a class that is marked: `autograder report`, `export` and `answers`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

DONE = 0


def add(commands) -> None:
    """Adds them to the command line."""
    report = commands.add_parser(
        "report",
        help="what became of a class: a page with plots and the commonest mistakes, or CSV",
        description="Writes one HTML file that needs no network, from the gradebook: marks by "
        "task, the commonest mistakes with a worked answer, who is stuck where, shape comments, "
        "repairs, how each mark was made, and answers that are alike (as hints only). It holds "
        "names: it is for teachers.",
    )
    _lesson(report)
    report.add_argument("--csv", action="store_true", help="the same as CSV")
    report.add_argument("--to", type=Path, metavar="FILE", help="default: reports/LESSON.html")
    report.set_defaults(run=_report)

    export = commands.add_parser(
        "export",
        help="marks for elsewhere: CSV, Canvas, Moodle, Gradescope",
        description="Writes the marks of the gradebook in a platform's own format. csv: by task "
        "and in all. canvas, moodle: for their import. gradescope: a folder with a results.json "
        "for each student and autograder.zip, with which Gradescope grades by this engine.",
    )
    _lesson(export)
    export.add_argument(
        "--format", default="csv", choices=("csv", "canvas", "moodle", "gradescope")
    )
    export.add_argument(
        "--column", default="", metavar="NAME", help="of the mark, as the platform calls it"
    )
    export.add_argument(
        "--zeros", action="store_true", help="who handed in nothing gets 0, not an empty cell"
    )
    export.add_argument("--isolation", default="auto", help="for Gradescope's autograder.zip")
    export.add_argument(
        "--to", type=Path, metavar="FILE", help="default: reports/LESSON-FORMAT.csv"
    )
    export.set_defaults(run=_export)

    answers = commands.add_parser(
        "answers",
        help="a class' answers to one question on one page; marks by hand",
        description="Without more: a page with all answers to a question that a person marks, the "
        "marking scheme and a model answer beside them, and a sheet (CSV) to write points and "
        "comments into. --write SHEET writes them to nbgrader's gradebook, all or none.",
    )
    answers.add_argument("task", metavar="TASK", help="such as q1")
    _lesson(answers)
    answers.add_argument("--write", type=Path, metavar="SHEET", help="write the sheet's marks")
    answers.add_argument(
        "--mark", nargs="+", default=(), metavar="ARG", help="STUDENT POINTS [COMMENT]: one mark"
    )
    answers.set_defaults(run=_answers)


def _lesson(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lesson", help="the lesson; needed where several are marked")
    parser.add_argument(
        "--roster", type=Path, metavar="CSV", help="names, sections, numbers, extensions"
    )
    parser.add_argument("--db", default="", metavar="URL", help="another gradebook than nbgrader's")


def _write(path: Path, text: str | bytes) -> None:
    from autograder.course.settings import CourseError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    except OSError as error:
        raise CourseError(f"{path} cannot be written ({error.strerror}).") from None
    print(path)


def _report(args) -> int:
    from autograder.course.course import Course
    from autograder.exports import report

    course = Course.find()
    marked = _class(course, args)
    ending = "csv" if args.csv else "html"
    target = args.to or Path("reports") / f"{marked.lesson.name}.{ending}"
    _write(target, report.table(marked, course) if args.csv else report.page(marked, course))
    if not marked.handed_in:
        _say("nobody has handed in anything yet.")
    return DONE


def _export(args) -> int:
    from autograder.course.course import Course
    from autograder.exports.formats import FORMATS, plain, remarks

    course = Course.find()
    marked = _class(course, args)
    waiting = sum(bool(s.waiting) for s in marked.students)
    if waiting:
        _say(
            f"{waiting} student{' has' if waiting == 1 else 's have'} answers that nobody has "
            "marked yet; totals are without them."
        )
    for each in remarks(marked, args.format, args.zeros):
        _say(each)
    name = marked.lesson.name
    if args.format == "gradescope":
        return _gradescope(course, marked, args)
    make, more = FORMATS[args.format], {"column": args.column}
    text = make(marked, args.zeros, **({} if make is plain else more))
    _write(args.to or Path("reports") / f"{name}-{args.format}.csv", text)
    return DONE


def _class(course, args):
    """The class with what the roster and the course's late policy say of it."""
    from autograder.exports import late
    from autograder.exports.marked import read_class
    from autograder.exports.roster import joined, read_roster

    policy = course.settings.late
    marked = late.with_due(read_class(course, args.lesson, args.db), policy)
    if args.roster:
        marked, told = joined(marked, read_roster(args.roster))
        for each in told:
            _say(each)
    return late.with_penalties(marked, policy)


def _say(text: str) -> None:
    print(f"autograder: {text}", file=sys.stderr)


def _gradescope(course, marked, args) -> int:
    from autograder.exports import gradescope
    from autograder.reports.report import number

    name = marked.lesson.name
    folder = args.to or Path("reports") / f"{name}-gradescope"
    for student, text in gradescope.of_class(marked).items():
        _write(folder / "results" / student / "results.json", text)
    _write(folder / "autograder.zip", gradescope.autograder_zip(course, name, args.isolation))
    _say(
        "autograder.zip holds the course's answers: upload it to Gradescope, and give it to no "
        f"student. The assignment's autograder points there are {number(gradescope.most(marked))}."
    )
    return DONE


def _answers(args) -> int:
    from autograder.course.course import Course
    from autograder.course.settings import CourseError
    from autograder.exports import answers

    course = Course.find()
    marked = _class(course, args)
    name, task = marked.lesson.name, args.task
    if not args.write and not args.mark:
        page, sheet = answers.page(marked, course, task), answers.sheet(marked, task)
        _write(Path("reports") / f"{name}-{task}.html", page)
        target = Path("reports") / f"{name}-{task}.csv"
        if target.exists():
            _say(f"{target} is there already and is left as it is.")
        else:
            _write(target, sheet)
        return DONE
    if args.mark and not 2 <= len(args.mark) <= 3:
        raise CourseError("--mark STUDENT POINTS [COMMENT]: put a comment into quotes.")
    marks = answers.read_sheet(args.write) if args.write else []
    marks += [answers.one(*args.mark)] if args.mark else []
    count = answers.write(course, marked, task, marks, args.db)
    are = "mark of {} is" if count == 1 else "marks of {} are"
    print(f"{count} {are.format(task)} in the gradebook. The students' pages: ", end="")
    print(f"nbgrader generate_feedback {name}")
    return DONE
