"""The README's pictures, made of what the grader really says: needs chromium.

    python tools/site/pictures.py

Grades the homework with a slip in it, and takes pictures of the card and of the marked answer, on a
light and on a dark page.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from autograder.course.course import Course
from autograder.grading.demo import fill_in
from autograder.grading.grade import Grader, model_answers
from autograder.grading.notebooks import shape_comments, wrong_lines
from autograder.reports.cards import Card
from autograder.reports.feedback import code, render

ROOT = Path(__file__).resolve().parents[2]
LESSON, EXERCISE, TASK = "05_homework", "multi_head", "multi_head.output"
RIGHT = "att.transpose(1, 2).reshape("
WRONG = "att.reshape("
WIDTH = 760
SHOWN = 8  # lines of the answer


def main() -> int:
    """Writes docs/pictures."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        print("chromium is needed for pictures.", file=sys.stderr)
        return 1
    course = Course.find()
    lesson = course.lessons[LESSON]
    right = model_answers(course, LESSON)[EXERCISE]
    source = right.replace(RIGHT, WRONG)
    if source == right:
        print(f"The answer to {EXERCISE} no longer holds what the slip replaces.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{LESSON}.ipynb")
        path.write_text(fill_in(lesson, {EXERCISE: source}), encoding="utf-8")
        with Grader(course=course, private=1) as grader:
            report = grader.grade(path)
        results = {r.task: r for r in report.results}
        cell = next(c for c in lesson.notebook.cells if c.id == EXERCISE)
        wrong = wrong_lines(lesson, cell, results)
        if not wrong:
            print("No line is the first that goes wrong: choose another slip.", file=sys.stderr)
            return 1
        findings = tuple(f for f in results[TASK].findings if f.fails)
        card = Card(TASK, False, findings)._repr_html_()
        lines = source.split("\n")
        first = max(0, min(wrong) - 5)
        some = textwrap.dedent("\n".join(lines[first : first + SHOWN]))
        notes = [{**n, "line": n["line"] - first} for n in shape_comments(lesson, cell, results)]
        marked = code(
            some, [n - first for n in wrong], [n for n in notes if 0 < n["line"] <= SHOWN]
        )
        target = ROOT / "docs" / "pictures"
        target.mkdir(parents=True, exist_ok=True)
        for name, body in (
            ("card", card),
            ("first_wrong_line", f'<pre class="code">{marked}</pre>'),
        ):
            page = Path(folder, f"{name}.html")
            page.write_text(render("picture.html", body=body), encoding="utf-8")
            for dark in (False, True):
                _shot(
                    browser,
                    page,
                    target / f"{name}-{'dark' if dark else 'light'}.png",
                    dark,
                    folder,
                )
    return 0


def _shot(browser: str, page: Path, target: Path, dark: bool, folder: str) -> None:
    """A picture of a page, cut to what stands on it."""
    from PIL import Image, ImageChops

    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    flags += [f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},600"]
    flags += ["--blink-settings=preferredColorScheme=0"] * dark
    command = [browser, *flags, f"--screenshot={target}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    image = Image.open(target).convert("RGB")
    plain = Image.new("RGB", image.size, image.getpixel((0, 0)))
    _, _, _, bottom = ImageChops.difference(image, plain).getbbox()
    image.crop((0, 0, WIDTH, min(600, bottom + 12))).quantize(64).save(target, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
