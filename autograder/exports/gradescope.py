"""Gradescope: what its autograder wants to read, and a zip with which it grades by this engine.

By its published rules (gradescope-autograders.readthedocs.io, "Autograder Specifications" and
"Output format"): a zip whose root holds `setup.sh`, run once when the image is built, and
`run_autograder`, run for each submission; the submission lies in /autograder/submission, and what
came of it goes to /autograder/results/results.json.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
import zipfile
from importlib import metadata
from pathlib import Path

from autograder.course.course import Course
from autograder.course.settings import CourseError
from autograder.exports.marked import Class
from autograder.exports.marked import questions as questions_of
from autograder.reports.plain import plain
from autograder.reports.report import Report, Result, number, questions

ENGINE = Path(__file__).resolve().parents[1]
WHERE = "/autograder"
KEPT = {".py", ".html", ".css", ".json", ".safetensors", ".txt"}

SETUP = """#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the image.
set -euo pipefail
here="${AUTOGRADER_ROOT:-%(where)s}"
for python in python3.13 python3.12 python3.11 python3; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \\
        2>/dev/null; then
        break
    fi
    python=
done
if [ -z "$python" ]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update
    apt-get install -y software-properties-common
    add-apt-repository -y ppa:deadsnakes/ppa
    apt-get update
    apt-get install -y python3.12 python3.12-venv
    python=python3.12
fi
"$python" -m venv "$here/env"
"$here/env/bin/python" -m pip install --no-cache-dir \\
    --extra-index-url https://download.pytorch.org/whl/cpu -r "$here/source/requirements.txt"
"""

RUN = """#!/usr/bin/env bash
# Gradescope runs this for each submission.
set -euo pipefail
here="${AUTOGRADER_ROOT:-%(where)s}"
export PYTHONPATH="$here/source" AUTOGRADER_COURSE="$here/source" OMP_NUM_THREADS=1
cd "$here"
exec "$here/env/bin/python" -m autograder.exports.gradescope \\
    --lesson %(lesson)s --isolation %(isolation)s \\
    "$here/submission" "$here/results/results.json"
"""


def results(report: Report) -> dict:
    """What `results.json` says of one notebook. Questions for a person are not in it.

    No seed and no expected value is in it, for students read it.
    """
    tests = [_test(r) for r in report.results if not r.needs_person]
    said = [report.error] if report.error else []
    said += [f"Repaired: {each}" for each in report.repairs]
    if report.not_marked:
        said.append(f"{questions(report.not_marked)} are marked by a person.")
    said.append(f"isolation: {report.isolation}")
    found = {
        "score": round(max(0.0, report.score), 4),
        "output": plain("\n".join(said)),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {"lesson": report.lesson, "isolation": report.isolation},
    }
    return {**found, "tests": tests} if tests else found


def _test(result: Result) -> dict:
    from autograder.reports.findings import rows

    lines = [
        result.status,
        *(f"{label}: {text}" for f in result.findings for label, text in rows(f)),
    ]
    return {
        "name": result.task,
        "score": round(result.points, 4),
        "max_score": result.max_points,
        "status": "passed" if result.passed else "failed",
        "output": plain("\n".join(dict.fromkeys(lines))),
        "output_format": "text",
        "visibility": "visible",
    }


def most(marked: Class) -> float:
    """The points that Gradescope's autograder can give; what a person marks is not in them."""
    by_hand = questions_of(marked.lesson)
    return sum(cell.points for cell in marked.tasks if cell not in by_hand)


def of_class(marked: Class) -> dict[str, str]:
    """A results.json for each student whose marks have a record, by the student's id."""
    return {
        s.id: json.dumps(results(s.record.report), ensure_ascii=False, indent=1)
        for s in marked.students
        if s.record is not None
    }


def autograder_zip(course: Course, lesson: str, isolation: str = "auto") -> bytes:
    """The zip to upload as the assignment's autograder. It holds the course's answers."""
    values = {"where": WHERE, "lesson": lesson, "isolation": isolation}
    files = {
        "setup.sh": (SETUP % values).encode(),
        "run_autograder": (RUN % values).encode(),
        "requirements.txt": requirements().encode(),
    }
    settings = course.settings
    folders = [settings.sources, settings.exercises, *([settings.library] * bool(settings.library))]
    for name in (*folders, *settings.given_to(lesson).files):
        files |= _files(course.folder / name, name)
    files |= _files(ENGINE, ENGINE.name)
    files["pyproject.toml"] = (course.folder / "pyproject.toml").read_bytes()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            info = zipfile.ZipInfo(name)
            info.create_system = 3  # Unix: it says who may run a file
            runs = name in ("setup.sh", "run_autograder")
            info.external_attr = (0o100755 if runs else 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return out.getvalue()


def _files(place: Path, name: str) -> dict[str, bytes]:
    """The files below a folder, or one file, by their names in the zip."""
    if place.is_file():
        return {name: place.read_bytes()}
    found = {}
    for path in sorted(place.rglob("*")):
        inside = path.relative_to(place)
        hidden = any(part.startswith(".") or part == "__pycache__" for part in inside.parts)
        if path.is_file() and not hidden and path.suffix in KEPT:
            found[f"{name}/{inside.as_posix()}"] = path.read_bytes()
    return found


def requirements() -> str:
    """The packages that the engine needs, in the versions that are installed here."""
    (name, *_) = metadata.packages_distributions().get(ENGINE.name, [""])
    needs = metadata.requires(name) if name else None
    lines = []
    for need in needs or ():
        if "extra ==" in need:
            continue
        package = re.match(r"[A-Za-z0-9._-]+", need)[0]
        condition = f" ;{need.partition(';')[2]}" if ";" in need else ""
        try:
            version = metadata.version(package).partition("+")[0]
        except metadata.PackageNotFoundError:
            continue
        lines.append(f"{package}=={version}{condition}")
    return "\n".join(lines) + "\n"


def grade(submission: Path, lesson: str, tier: str) -> Report:
    """Grades what Gradescope has put into a folder."""
    from autograder.grading.converters import handed_in
    from autograder.grading.grade import Grader

    course = Course.find()
    if lesson not in course.lessons:
        raise CourseError(f"The course has no lesson {lesson!r}.")
    with Grader(tier, course=course) as grader:
        return grader.grade(handed_in(submission, lesson), lesson)


def main(argv: list[str] | None = None) -> int:
    """What `run_autograder` calls; where the grader itself fails, nothing is written."""
    from autograder.one_thread import one_thread
    from autograder.sandbox import ChildFailed

    one_thread()
    parser = argparse.ArgumentParser(prog="run_autograder")
    parser.add_argument("--lesson", required=True)
    parser.add_argument("--isolation", default="auto")
    parser.add_argument("submission", type=Path)
    parser.add_argument("results", type=Path)
    args = parser.parse_args(argv)
    try:
        report = grade(args.submission, args.lesson, args.isolation)
    except (CourseError, ChildFailed) as error:
        print(f"autograder: {error}")
        return 2
    args.results.parent.mkdir(parents=True, exist_ok=True)
    args.results.write_text(json.dumps(results(report), ensure_ascii=False), encoding="utf-8")
    print(f"{report.lesson}: {number(report.score)} of {number(report.max_score)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
