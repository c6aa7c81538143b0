"""The page of the docs says what the code does: its table, its facts, its limits."""

from pathlib import Path

from autograder.shapes.doubts.facts import FACTS
from autograder.shapes.text.lexer import MAX_TEXT, table
from autograder.shapes.text.limits import SECONDS

PAGE = Path(__file__).parents[2] / "docs" / "shape_comments.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_table_of_spellings_is_the_one_of_the_lexer():
    assert table() in TEXT, "print(autograder.shapes.text.lexer.table()) into the page"


def test_every_fact_is_told():
    for condition, fact in FACTS:
        assert condition in TEXT and fact.__doc__.split("\n")[0].rstrip(".") in TEXT, fact.__name__


def test_the_limits_are_told():
    assert f"{MAX_TEXT} characters" in TEXT and f"{SECONDS:.0f} seconds" in TEXT
