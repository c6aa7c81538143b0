"""PEP 8 on a student's own lines."""

import pytest

from autograder.judging.style import pep8

CLEAN = """class A:
    def f(self, x):
        y = x @ x.T  # [seq_len, seq_len]

        return y / 2**0.5
"""


def test_clean_code_has_no_findings():
    assert pep8(CLEAN) == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("y=x @ x.T", "E225"),
        ("y = f(x , 1)", "E203"),
        ("y = f(x,1)", "E231"),
        ("y = ( x)", "E201"),
        ("y = x; z = y", "E702"),
        ("if x: y = 1", "E701"),
        ("y = x == None", "E711"),
        ("y = 1  " + "# " + "long " * 30, "E501"),
        ("def f(x = 1): return x", "E251"),
    ],
)
def test_each_slip_is_named_with_its_line(line, code):
    found = pep8("z = 1\n" + line + "\n")
    assert any(code in f.message for f in found)
    assert {f.line for f in found} == {2}
    assert all(f.statement == line.strip() for f in found)


@pytest.mark.parametrize(
    "source",
    [
        "import math\nx = 1\nimport torch\n",
        "x = 1\ndef f():\n    return 1\ny = 2\n",
        "f = lambda x: x\n",
        "x = 1   \n\n\n\n\n",
        "l = [1]\n",
        "y = x[:, a * d : b * d]\n",
        "x = 1 # [batch]\n",
    ],
)
def test_what_a_cell_may_do_or_a_notebook_hides_is_not_held_against_it(source):
    assert pep8(source) == []


def test_lines_of_the_handout_are_not_the_students():
    assert pep8("x=1\ny = 2\n", released="x=1") == []


def test_code_that_does_not_parse_is_not_a_question_of_style():
    assert [f for f in pep8("def f(:\n    pass\n") if "E9" in f.message] == []


@pytest.mark.parametrize(
    "text", ["a=\\\nf'\\\n", "!\\\n'\\\n::", "x = (\x0c\n'''", "'''\n" * 3, "\0", ""]
)
def test_text_that_the_checker_itself_fails_on_is_no_error(text):
    assert isinstance(pep8(text), list)


def test_lines_are_counted_as_python_counts_them():
    assert [f.line for f in pep8("x = 1  # a\x0cb\u2028c\ny=2\n")] == [2]


@pytest.mark.parametrize("text", [":" * 200_000, "x = [" + "::1," * 4_000 + "]", ":\n" * 100_000])
def test_what_is_too_long_to_check_is_said_instead(text):
    (found,) = pep8(text)
    assert found.verdict == "deduction" and len(found.statement) <= 400
    assert "too long" in found.message or "at most" in found.message
