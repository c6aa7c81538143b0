"""The site is made of the sources, needs no network, and every link in it leads somewhere."""

import importlib
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from autograder.course.course import Course
from autograder.course.lesson import Role
from autograder.grading.grade import model_answers
from tests.conftest import ROOT
from tests.journeys.browser import browser
from tests.test_feedback import BROWSER, violations

pytestmark = pytest.mark.slow
LESSON = "01_attention_without_weights"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A small form of the site, with one lesson."""
    pytest.importorskip("myst_nb", reason="the site's packages are not installed: make site")
    target = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run(
        [sys.executable, "tools/site/build.py", "--to", str(target), "--only", "01"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return target


class Page(HTMLParser):
    """What a page links to and loads, and the places in it."""

    def __init__(self, html: str):
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[k] for k in ("id", "name") if found.get(k)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in ("script", "img", "link", "iframe") and (found.get("src") or found.get("href")):
            self.loads.append(found.get("src") or found["href"])


@pytest.fixture(scope="module")
def pages(site) -> dict:
    return {p: Page(p.read_text(encoding="utf-8")) for p in site.rglob("*.html")}


def test_no_page_loads_anything_from_the_network(pages):
    for path, page in pages.items():
        assert not [x for x in page.loads if urlsplit(x).scheme in ("http", "https")], path
        assert not [x for x in page.loads if x.startswith("//")], path


def test_every_link_inside_leads_to_a_page_and_a_place_in_it(site, pages):
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = target in pages or target.is_file()
            if there and parts.fragment and target in pages:
                there = unquote(parts.fragment) in pages[target].ids
            if not there:
                dead.append(f"{path.relative_to(site)}: {link}")
    assert dead == []


def test_it_is_searched_without_a_server(site):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(") and '"overflow"' in index
    page = (site / "search.html").read_text(encoding="utf-8")
    assert "searchindex.js" in page


def test_a_lesson_has_its_figures_and_its_formulas_without_a_script(site):
    html = (site / "solutions" / f"{LESSON}.html").read_text(encoding="utf-8")
    assert "<math" in html and "MathJax" not in html and html.count("<img") >= 2


def test_no_word_of_a_program_looks_like_a_link(site):
    colours = (site / "_static" / "pygments.css").read_text(encoding="utf-8")
    lined = [line for line in colours.splitlines() if "underline" in line]
    assert ".nn" in colours and not [line for line in lined if "Generic." not in line]


def test_every_check_has_its_mistakes_with_what_is_said_and_the_program(site):
    course = Course.at(ROOT)
    html = (site / "reference" / f"{LESSON}.html").read_text(encoding="utf-8")
    text = " ".join(unescape(re.sub(r"<[^>]*>", "", html)).split())
    tasks = [cell.task for cell in course.lessons[LESSON].with_role(Role.CHECK)]
    for task in tasks:
        mistakes = course.written[task].mistakes
        assert task in text and all(m.check in text for m in mistakes)
        for mistake in mistakes:  # quotes and dashes are the printer's on a page
            words = [w for w in re.findall(r"[a-z]+", mistake.message) if len(w) > 3]
            assert all(word in text for word in words), mistake.check
    assert html.count("highlight-python") > len(tasks)
    assert " at 0x" not in text and "_VariableFunctions" not in text
    assert "squash = torch.sigmoid" in text


def test_the_site_for_students_holds_no_answer_and_no_program_that_is_nearly_one(
    tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "site"))
    gather = importlib.import_module("build").gather
    written = {}
    for answers in (True, False):
        gather(tmp_path / "source", answers, only="01")
        texts = [p.read_text(encoding="utf-8") for p in (tmp_path / "source").rglob("*.*[bd]")]
        written[answers] = "\n".join(texts).replace('\\"', '"').replace("\\n", "\n")
    given = Course.at(ROOT).lessons[LESSON].notebook.cells
    asked = "\n".join(cell.source for cell in given)
    lines = [
        line.strip()
        for answer in model_answers(Course.at(ROOT), LESSON).values()
        for line in answer.splitlines()
        if len(line.strip()) > 25 and line.strip() not in asked
    ]
    assert lines and all(line in written[True] for line in lines)
    assert not [line for line in lines if line in written[False]]
    page = (tmp_path / "source" / "reference" / f"{LESSON}.md").read_text(encoding="utf-8")
    assert "```python" not in page and "\n### `" in page and "\n> " in page
    assert "folded" not in (tmp_path / "source" / "index.md").read_text(encoding="utf-8")


def test_the_commands_are_those_of_the_program(site):
    html = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for name in ("check", "grade", "report", "export", "answers", "regrade", "doctor"):
        assert f"autograder {name}" in html


@pytest.mark.skipif(not BROWSER, reason="no browser is installed")
@pytest.mark.parametrize("name", ["index", "docs/first_class", f"reference/{LESSON}", "search"])
@pytest.mark.parametrize("dark, width", [(False, 390), (True, 1200)], ids=["phone", "dark"])
def test_axe_finds_nothing(site, name, dark, width):
    path = site / f"{name}.html"
    page = path.read_text(encoding="utf-8")
    assert violations(page, path.parent, dark, width) == []


def test_the_start_shows_a_card_in_the_colours_of_the_page(site):
    html = (site / "index.html").read_text(encoding="utf-8")
    for colours in ("light", "dark"):
        (picture,) = re.findall(rf'<img [^>]*only-{colours}[^>]*src="([^"]+)"', html) or [""]
        assert (site / picture).is_file() and colours in picture, colours


@pytest.mark.skipif(not BROWSER, reason="no browser is installed")
def test_on_a_phone_what_has_the_focus_is_on_the_screen(site, tmp_path):
    """The theme's two drawers stand beside a narrow screen, and their links take the focus."""
    seen = (
        "(e => { const b = e.getBoundingClientRect();"
        " return [Math.round(b.left), Math.round(b.right), innerWidth] })(document.activeElement)"
    )
    with browser(tmp_path) as person:
        person.width(390)
        person.go((site / "docs" / "taking_marks_elsewhere.html").as_uri())
        person.see("document.querySelectorAll('.sidebar-drawer a').length")
        inside = set()
        for _ in range(90):
            person.press("Tab")
            drawer = person.see("document.activeElement.closest('aside')?.className || 'page'")
            person.see(f"(([l, r, w]) => l >= 0 && r > 0 && r <= w + 1)({seen})")  # slid in
            inside.add(drawer)
            if inside >= {"sidebar-drawer", "toc-drawer", "page"}:
                break
    assert inside == {"sidebar-drawer", "toc-drawer", "page"}
