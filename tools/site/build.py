"""`make site`: the pages of the course as a site that needs no server and no network.

Puts the sources together in build/site-source, as they lie in the repository: docs/, the executed
lessons, and a reference that is written from the exercises and the engine's own texts. Then Sphinx
makes build/site of it, and every warning is an error: so is a link that leads nowhere.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from functools import cache
from pathlib import Path

from reference import pages as reference_pages

from autograder.course.course import Course
from autograder.reports.formulas import in_html, mathml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
HIDDEN = "hide-input"  # MyST's tag of a cell whose code is folded


def gather(target: Path, answers: bool = True, only: str = "") -> None:
    """Writes the sources of the site. answers: the lessons solved; else as students get them."""
    course = Course.find()
    shutil.rmtree(target, ignore_errors=True)
    (target / "docs").mkdir(parents=True)
    for path in sorted((ROOT / "docs").glob("*.md")):
        shutil.copy(path, target / "docs")
    if (ROOT / "docs" / "pictures").is_dir():
        shutil.copytree(ROOT / "docs" / "pictures", target / "docs" / "pictures")
    names = [name for name in course.lessons if name.startswith(only)]
    (target / course.settings.sources).mkdir()
    for name in names:
        place = target / course.settings.sources / f"{name}.ipynb"
        text = _solved(course, name) if answers else _released(course, name)
        place.write_text(text, encoding="utf-8")
    (target / "reference").mkdir()
    made = reference_pages(course, names, programs=answers)
    for name, text in made.items():
        (target / "reference" / f"{name}.md").write_text(text, encoding="utf-8")
    index = (HERE / "index.md").read_text(encoding="utf-8")
    lessons = "\n".join(f"{course.settings.sources}/{name}" for name in names)
    checks = "\n".join(f"reference/{name}" for name in names if name in made)
    solved = "executed, with every figure. The answers in code are folded: try first."
    shown = solved if answers else "as students get them."
    for mark, what in (("@SHOWN@", shown), ("@LESSONS@", lessons), ("@CHECKS@", checks)):
        index = index.replace(mark, what)
    (target / "index.md").write_text(index, encoding="utf-8")
    for path in sorted(target.rglob("*")):
        if path.suffix in (".md", ".ipynb"):
            _mend_links(path, target)


def _solved(course: Course, name: str) -> str:
    """A lesson with answers and figures; the answers folded, for who wants to try first."""
    notebook = json.loads((course.folder / course.settings.sources / f"{name}.ipynb").read_text())
    for cell in notebook["cells"]:
        if cell["metadata"].get("course", {}).get("role") == "exercise":
            cell["metadata"].setdefault("tags", []).append(HIDDEN)
    return json.dumps(notebook)


def _released(course: Course, name: str) -> str:
    import nbformat

    notebook = json.loads(nbformat.writes(course.lessons[name].notebook))
    text = json.dumps(notebook)
    return text.replace("../../docs/", "../docs/")


def _mend_links(path: Path, target: Path) -> None:
    """Takes the link off what the site does not hold: folders, programs, other files."""
    text = path.read_text(encoding="utf-8")

    def mended(found: re.Match) -> str:
        words, link = found[1], found[2]
        place, _, anchor = link.partition("#")
        if not place or "://" in link:
            return found[0]
        if (path.parent / place).resolve().is_file():
            heading = _anchors((path.parent / place).resolve()).get(anchor)
            return f"[{words}]({place}#{heading})" if heading else found[0]
        notebook = (path.parent / place).resolve()
        twin = target / "solutions" / notebook.name
        if twin.suffix == ".ipynb" and twin.is_file() and twin != path:
            up = "../" * len(path.relative_to(target).parents[0].parts)
            return f"[{words}]({up}solutions/{notebook.name})"
        return words

    if path.suffix == ".md":
        path.write_text(LINK.sub(mended, text), encoding="utf-8")
        return
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            source = cell["source"]
            source = "".join(source) if isinstance(source, list) else source
            cell["source"] = LINK.sub(mended, source)
    path.write_text(json.dumps(notebook), encoding="utf-8")


# What the theme leaves out for who reads by ear or by keyboard. On a narrow page its two drawers
# stand outside the screen: a link in them that has the focus brings its drawer in.
MENDED = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    "<pre>": '<pre tabindex="0">',
    '<div class="math-wrapper docutils container">': '<div class="math-wrapper" tabindex="0">',
    '<div id="search-results"></div>': '<h1>Search</h1>\n<div id="search-results"></div>',
    "</head>": "<style>\n@media (max-width: 82em) { .toc-drawer:focus-within { right: 0; } }\n"
    "@media (max-width: 63em) { .sidebar-drawer:focus-within { left: 0; } }\n"
    ".sidebar-search:focus { outline: 2px solid var(--color-brand-primary); }\n</style>\n</head>",
}
FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)  # as lessons fold their answers


def _mend_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for before, after in MENDED.items():
        text = text.replace(before, after)
    text = FOLDED.sub(lambda m: in_html(m[0], mathml), text)
    path.write_text(text, encoding="utf-8")


@cache
def _anchors(path: Path) -> dict[str, str]:
    """Anchors that a page has beside its headings (`<a id="x"></a>`): each with its heading's."""
    found: dict[str, str] = {}
    heading = ""
    for line in path.read_text(encoding="utf-8").splitlines() if path.suffix == ".md" else ():
        if line.startswith("#"):
            heading = re.sub(r"[^\w -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for anchor in re.findall(r'<a id="([^"]+)">', line):
            found[anchor] = heading
    return found


def main() -> int:
    """Builds the site; the exit status is Sphinx's."""
    from sphinx.cmd.build import main as sphinx

    parser = argparse.ArgumentParser(description="Builds the site into build/site.")
    parser.add_argument("--to", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--without-answers", action="store_true", help="lessons as students get")
    parser.add_argument("--only", default="", help="lessons whose name starts with this")
    parser.add_argument("--check-links", action="store_true", help="Sphinx's linkcheck")
    args = parser.parse_args()
    source = args.to.with_name(f"{args.to.name}-source")
    gather(source, not args.without_answers, args.only)
    common = ["-W", "--keep-going", "-q", "-j", "auto", "-c", str(HERE)]
    if args.check_links:
        return sphinx(["-b", "linkcheck", *common, str(source), str(args.to) + "-links"])
    status = sphinx(["-b", "html", *common, str(source), str(args.to)])
    for page in args.to.rglob("*.html"):
        _mend_page(page)
    print(f"site: {args.to / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
