"""No page runs a student's script: not the feedback, not what formgrader shows of a notebook."""

import html.parser
import os
import shutil
import subprocess
import time
from collections import Counter

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbgrader.server_extensions.formgrader import handlers
from traitlets.config import Config

from autograder.course.course import Course
from autograder.reports.feedback import page
from autograder.reports.plain import inert
from tests.attacks import hostile
from tests.attacks.entries import HOMEWORK, NAME, ROOT

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--virtual-time-budget=3000",
    "--dump-dom",
)
FORBIDDEN = {"script", "iframe", "object", "embed", "link", "base", "form", "svg", "frame"}
FORBIDDEN |= {"maction", "mglyph", "malignmark", "semantics", "annotation", "annotation-xml"}
ADDRESSES = ("href", "src", "action", "formaction", "data", "srcdoc", "xlink:href", "background")


class Page(html.parser.HTMLParser):
    """Collects what could act in a page: elements, handlers, addresses."""

    def __init__(self, text: str):
        super().__init__()
        self.active: list[str] = []
        self.elements: list[tuple[str, dict]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        facts = {name: value or "" for name, value in attrs}
        self.elements.append((tag, facts))
        if tag in FORBIDDEN:
            self.active.append(tag)
        for name, value in facts.items():
            value = "".join(c for c in value.lower() if c.isprintable() and c != " ")
            if name.startswith("on") or (tag == "meta" and value == "refresh"):
                self.active.append(f"{tag} {name}")
            if name in ADDRESSES and not value.startswith(("#", "data:image/png;base64,")):
                self.active.append(f"{tag} {name}={value[:40]}")

    def harmed(self) -> bool:
        return any("data-harm" in facts for tag, facts in self.elements if tag == "html")


def after_loading(path, tmp_path) -> Page:
    """The page as it stands after a browser has run all that it would run."""
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    done = subprocess.run(
        [BROWSER, *FLAGS, profile, path.resolve().as_uri()],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    assert "</html>" in done.stdout
    return Page(done.stdout)


@pytest.fixture(scope="module")
def feedback(classroom):
    return classroom.folder / "feedback" / hostile.STUDENT / HOMEWORK / f"{HOMEWORK}.html"


@pytest.fixture(scope="module")
def autograded(classroom):
    path = classroom.folder / "autograded" / hostile.STUDENT / HOMEWORK / NAME
    return nbformat.read(path, as_version=4)


def in_formgrader(notebook) -> str:
    """The page that formgrader serves for a notebook."""
    config = Config()
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    names = ("assignment_id", "notebook_id", "submission_id", "base_url", "student")
    names += ("last_name", "first_name", "notebook_path")
    resources = {**dict.fromkeys(names, ""), "index": 0, "total": 1}
    return HTMLExporter(config=config).from_notebook_node(notebook, resources=resources)[0]


@pytest.fixture(scope="module")
def formgrader(classroom, autograded):
    path = classroom.folder / "formgrader.html"
    path.write_text(in_formgrader(autograded))
    return path


def test_the_students_text_is_on_the_page(feedback):
    text = feedback.read_text()
    assert text.count("data-harm") > 50
    assert "&lt;script&gt;" in text


def test_the_feedback_page_holds_nothing_that_acts(feedback):
    assert Page(feedback.read_text()).active == []


def test_every_feedback_page_forbids_scripts_and_requests(classroom):
    pages = list((classroom.folder / "feedback").rglob("*.html"))
    assert len(pages) > len(classroom.hostile)
    for path in pages:
        found = Page(path.read_text())
        assert found.active == []
        policies = [
            facts["content"]
            for tag, facts in found.elements
            if tag == "meta" and facts.get("http-equiv") == "Content-Security-Policy"
        ]
        assert len(policies) == 1 and "default-src 'none'" in policies[0]
        assert "script-src" not in policies[0]


def test_the_autograded_notebook_holds_no_html_of_the_students(autograded):
    for cell in autograded.cells:
        if cell.cell_type == "markdown":
            assert "<script" not in cell.source.lower() and "<img" not in cell.source.lower()
        for output in cell.get("outputs", []):
            html_ = output.get("data", {}).get("text/html", "")
            assert Page(html_).active == []
            assert set(output.get("data", {})) <= {"text/plain", "text/html", "image/png"}


def test_formgrader_shows_nothing_of_the_students_that_acts(formgrader):
    lesson = Course.at(ROOT).lessons[HOMEWORK].notebook
    own, found = Counter(Page(in_formgrader(lesson)).active), Page(formgrader.read_text()).active
    assert "data-harm" in formgrader.read_text()
    assert Counter(found)["script"] == own["script"]
    # A bare address becomes a link, which acts elsewhere, when somebody clicks.
    assert [a for a in found if a not in own and not a.startswith("a href=http")] == []


def test_raw_html_stays_readable_where_it_is_made_inert():
    text = "if a<b and c < d: `x<y>` $a<b$ ![p](q) [x](y) <b>bold</b>\n[1]: z"
    assert inert(text).replace("\u200b", "") == text
    assert not any(tag in inert(text) for tag in ("<b", "](", "]:", "!["))


@pytest.mark.parametrize(
    "piece", ["[", "*a **a ", "`", "<", "|a", "![", "$", "\\", "&", "> ", "1. "]
)
def test_no_text_makes_a_page_take_long(piece):
    cells = [nbformat.v4.new_markdown_cell(piece * (200_000 // len(piece)))]
    cells.append(nbformat.v4.new_code_cell(piece * (200_000 // len(piece))))
    started = time.process_time()
    page(nbformat.v4.new_notebook(cells=cells), "x", 0, 0)
    assert time.process_time() - started < 30


if BROWSER:

    @pytest.mark.parametrize("name", ["feedback", "formgrader"])
    def test_no_script_of_a_student_runs_in_a_browser(request, name, tmp_path):
        assert not after_loading(request.getfixturevalue(name), tmp_path).harmed()

    def test_a_page_that_harms_is_seen_in_a_browser(tmp_path):
        path = tmp_path / "harm.html"
        path.write_text(f"<html><body>{hostile.VECTORS[0]}</body></html>")
        assert after_loading(path, tmp_path).harmed()
