"""Formulas are drawn by the browser alone, and hold nothing that acts."""

import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.course.course import Course
from autograder.reports.feedback import markdown
from autograder.reports.formulas import LONGEST, mathml
from tests.conftest import ROOT


class Elements(HTMLParser):
    """The names of the elements and attributes of a piece of HTML."""

    def __init__(self, html: str):
        super().__init__()
        self.tags, self.attributes = set(), set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def texts(written: str) -> str:
    return "".join(ElementTree.fromstring(written).itertext())


def test_a_formula_is_mathml():
    written = mathml(r"\frac{Q K^\top}{\sqrt{d_k}}")
    root = ElementTree.fromstring(written)
    assert [e.tag for e in root.iter()].count("mfrac") == 1
    assert {"msqrt", "msup", "msub"} <= {e.tag for e in root.iter()}
    assert texts(written) == "QK⊤dk"


def test_every_formula_of_the_course_can_be_drawn():
    wanted = 0
    for lesson in Course.at(ROOT).lessons.values():
        for cell in lesson.cells:
            if cell.kind == "markdown" and "$" in re.sub(r"`[^`]*`", "", cell.source):
                html = str(markdown(cell.source))
                assert "<code>$" not in html, (lesson.name, cell.id)
                wanted += html.count("<math")
    assert wanted > 100


@pytest.mark.parametrize(
    "text",
    [
        r"$\href{javascript:alert(1)}{x}$",
        r"$\text{<script>alert(1)</script>}$",
        r"$\class{x}{y} \style{position:fixed}{z}$",
        '$\\text{"><img src=x onerror=alert(1)>}$',
        "\ue0000\ue001 $x$",
        "$$\n<img src=x onerror=alert(1)>\n$$",
    ],
)
def test_a_formula_holds_nothing_that_acts(text):
    found = Elements(str(markdown(text)))
    assert not found.tags & {"script", "img", "a", "iframe", "style"}
    assert found.attributes <= {"display", "form", "fence", "stretchy", "width"}


@pytest.mark.parametrize(
    "text", ["$\\frac$", "$x_y_z$", f"${'x' * (LONGEST + 1)}$", "$" + "{" * 300 + "$"]
)
def test_what_is_no_formula_is_shown_as_it_was_written(text):
    assert text[1:-1] in str(markdown(text)) and "<math" not in str(markdown(text))


def test_money_is_no_formula():
    assert "<math" not in str(markdown("It costs 5$ and 6$ or $7 in all."))


@given(st.text(alphabet="\\{}^_&$<>\"'ab1 \n", max_size=80))
def test_whatever_is_written_is_well_formed_and_inert(text):
    written = mathml(text)
    if written is not None:
        root = ElementTree.fromstring(written)
        assert all(e.tag.startswith("m") for e in root.iter())
        assert not any(k in ("href", "style", "class") for e in root.iter() for k in e.attrib)
