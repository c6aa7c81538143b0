"""Every term that a lesson links to is in the glossary."""

import re
from collections import Counter
from pathlib import Path

import pytest

COURSE = Path(__file__).parents[1]
GLOSSARY = (COURSE / "docs" / "glossary.md").read_text(encoding="utf-8")
LESSONS = sorted((COURSE / "solutions").glob("[0-9][0-9]_*.py"))


def anchors() -> list[str]:
    """The headings as a page makes them into anchors, and those set by hand."""
    headings = re.findall(r"^#{1,6} (.+)$", GLOSSARY, re.MULTILINE)
    slugs = [re.sub(r"[^\w -]", "", h.strip().lower()).replace(" ", "-") for h in headings]
    return slugs + re.findall(r'<a id="([^"]+)"></a>', GLOSSARY)


def test_no_two_entries_share_an_anchor():
    assert [a for a, count in Counter(anchors()).items() if count > 1] == []


def test_links_inside_the_glossary_lead_somewhere():
    assert set(re.findall(r"\]\(#([^)]+)\)", GLOSSARY)) <= set(anchors())


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_every_term_a_lesson_links_to_is_explained(lesson):
    linked = re.findall(r"glossary\.md#([^)\s\"]+)", lesson.read_text(encoding="utf-8"))
    assert linked, "a lesson links its terms to the glossary"
    assert sorted(set(linked) - set(anchors())) == []


def test_every_entry_says_in_which_lesson_it_is_taught():
    entries = re.split(r"^### ", GLOSSARY, flags=re.MULTILINE)[1:]
    silent = [
        e.splitlines()[0]
        for e in entries
        if not re.search(r"\(\d\d(, \d\d)*\)\s*(\n## \w)?\s*$", e) and "See [" not in e
    ]
    assert silent == []
