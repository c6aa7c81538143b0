"""Every link leads to something that is there: in the repository, and in the hand-out."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from nbconvert.filters import markdown2html

from tests.conftest import ROOT

SKIPPED = {".git", ".venv", "build", "demo", "node_modules", ".ipynb_checkpoints"}
SKIPPED |= {"site"}  # its links are those of the site that is built: tests/exports/test_site.py
ELSEWHERE = ("solutions/", "tools/")  # in the whole course, as the lessons and cards say
PLACEHOLDERS = re.compile(r"[A-Z]{3,}|NN_|\*|<|\{|…|\.\.\.")  # STUDENT, NN_name, *.ipynb


class _Page(HTMLParser):
    """Collects where a page links to, and what in it can be linked to."""

    def __init__(self, html: str):
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links += [found[k] for k in ("href", "src") if found.get(k)]
        self.anchors |= {found[k] for k in ("id", "name") if found.get(k)}


def markdown(path: Path) -> str:
    """The text of a page, or of all text cells of a notebook."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(c.source for c in cells if c.cell_type == "markdown")


@cache
def page(path: Path) -> _Page:
    """As a reader's browser has it; headings get the anchors that GitHub and Jupyter give them."""
    text = re.sub(r"^(#+ .*?)`(.+?)`", r"\1\2", markdown(path), flags=re.MULTILINE)
    made = _Page(markdown2html(text))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"<[^>]*>", "", heading).strip()
        made.anchors |= {plain.replace(" ", "-"), _slug(plain)}
    return made


def _slug(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def pages(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix in (".md", ".ipynb")
        and not SKIPPED & set(path.relative_to(folder).parts)
        and path.is_file()
    ]


def dead_links(folder: Path) -> list[str]:
    """Links of all pages in a folder that lead to no file of it, or to no place in that file."""
    dead = []
    for path in pages(folder):
        for link in page(path).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            inside = target.is_relative_to(folder.resolve()) and target.exists()
            anchored = (
                not parts.fragment
                or target.suffix not in (".md", ".ipynb")
                or (inside and unquote(parts.fragment) in page(target).anchors)
            )
            if not inside or not anchored:
                dead.append(f"{path.relative_to(folder)}: {link}")
    return dead


def dead_paths(folder: Path, path: Path) -> list[str]:
    """Names of files and folders that a page gives in `code` and that the folder does not hold."""
    named = re.findall(r"`([\w.-]+/[^`\s]*)`", markdown(path))
    named = [n for n in named if not PLACEHOLDERS.search(n) and not n.startswith(ELSEWHERE)]
    return [name for name in named if not (folder / name).exists()]


def test_every_link_of_the_repository_leads_somewhere():
    assert dead_links(ROOT) == []


def test_every_link_of_the_hand_out_leads_to_what_it_holds(hand_out):
    assert len(pages(hand_out)) > 12
    assert dead_links(hand_out) == []


@pytest.mark.parametrize("name", ["README.md", "docs", "notebooks", "models"])
def test_every_file_that_the_hand_out_names_is_in_it(hand_out, name):
    found = [hand_out / name] if name.endswith(".md") else pages(hand_out / name)
    dead = {str(p.relative_to(hand_out)): dead_paths(hand_out, p) for p in found}
    assert {k: v for k, v in dead.items() if v} == {}


def test_a_dead_link_is_seen(tmp_path):
    (tmp_path / "here.md").write_text("# A heading\n\n<a id='x'></a>")
    text = (
        "[a](here.md#a-heading) [b](here.md#x) [c](here.md#y) [d](there.md) [e](../up.md) "
        "$f[i](z)$ [g](https://example.org/none) ![h](h.png)\n\n[i]\n\n[i]: gone.md"
    )
    (tmp_path / "page.md").write_text(text)
    found = [line.split(": ")[1] for line in dead_links(tmp_path)]
    assert found == ["here.md#y", "there.md", "../up.md", "h.png", "gone.md"]
