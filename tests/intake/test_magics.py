"""What notebooks allow and Python does not becomes plain Python on the same lines."""

import pytest

from autograder.intake.magics import parse, plain_python

ASKED = '"""\nWhy?\n!ls\n"""\n' * 10


@pytest.mark.parametrize(
    ("cell", "plain"),
    [
        ("x = 1\ny = 2", "x = 1\ny = 2"),
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("x = 1\n!pip install torch\ny = 2", "x = 1\npass\ny = 2"),
        ("!pip install \\\n  torch\ny = 2", "pass\n\ny = 2"),
        ("softmax?\n?softmax\nsoftmax.forward??", "pass\npass\npass"),
        ("%time y = f(x)", "y = f(x)"),
        ("y = %time f(x)", "y = f(x)"),
        ("%timeit f(x)", "pass"),
        ("files = !ls\nx = 1", "files = []\nx = 1"),
        ("if x:\n    !ls\nelse:\n    %cd ..", "if x:\n    pass\nelse:\n    pass"),
        ("%%time\nx = 1", "\nx = 1"),
        ("%%capture out\n%%time\nx = 1\n!ls", "\n\nx = 1\npass"),
        ("%%timeit -n 3\nx = 1", "\nx = 1"),
        ("%%bash\nrm -rf x\nls", "\n\n"),
        ("%%html\n<b>x</b>", "\n"),
        ("%%writefile torch.py\nx = 1", "\n"),
        ("pip install torch\nimport torch", "pass\nimport torch"),
        (">>> x = 1\n>>> y = 2", "x = 1\ny = 2"),
        ("In [1]: x = 1\n   ...: y = 2", "x = 1\ny = 2"),
        ("\n  x = 1\n  y = 2", "\nx = 1\ny = 2"),
        ("text = '''\n!ls\n%cd\nwhy?\n'''\n%cd", "text = '''\n!ls\n%cd\nwhy?\n'''\npass"),
        ("x = (1\n%b)\n%cd", "x = (1\n%b)\npass"),
        ("x = 5 \\\n%b\n%cd", "x = 5 \\\n%b\npass"),
        (ASKED + "x = (1\n%b)\n%cd", ASKED + "x = (1\n%b)\npass"),
        ("# why?\n%cd", "# why?\npass"),
        ("x = 1  # why?\n%cd", "x = 1  # why?\npass"),
        ("x = await f()\n%cd", "x = await f()\npass"),
        ("x = 1  # a\u2028b\x0c\n%cd", "x = 1  # a\u2028b\x0c\npass"),
        ("x = 'it\\'s'\n!ls", "x = 'it\\'s'\npass"),
        ('x = r"a\\"\ny = """a"b\n!ls\n"""\n!ls', 'x = r"a\\"\ny = """a"b\n!ls\n"""\npass'),
        ("x = 'open\n!ls", "x = 'open\npass"),
        ("x = 'a\\\n!ls'\n!ls", "x = 'a\\\n!ls'\npass"),
        ("x = ''\n!ls\ny = '''open\n!ls", "x = ''\npass\ny = '''open\n!ls"),
        ("x = \"it's\"\n!ls\ny = 'a\"b'\n%cd", "x = \"it's\"\npass\ny = 'a\"b'\npass"),
        ("if x:\n  %cd  ", "if x:\n  pass"),
        ("", ""),
        ("%", "%"),
    ],
)
def test_a_cell_becomes_plain_python(cell, plain):
    assert plain_python(cell) == plain


def test_a_syntax_error_stays_on_its_line():
    cell = "%matplotlib inline\nx = 1\ndef f(:\n    pass"
    assert plain_python(cell) == cell.replace("%matplotlib inline", "pass")
    with pytest.raises(SyntaxError) as caught:
        compile(plain_python(cell), "cell", "exec")
    assert caught.value.lineno == 3


HARD = {
    "brackets": "(" * 100_000,
    "minus": "-" * 100_000 + "1",
    "sums": "1" + "+1" * 90_000,
    "calls": "f" + "()" * 90_000,
    "not": "not " * 40_000 + "1",
    "lambda": "lambda:" * 25_000 + "1",
    "elif": "if a:\n b\n" + "elif a:\n b\n" * 10_000,
    "nul": "a\0b",
    "half a character": "a = '\ud800'",
    "an open string": "'''" + "\n!ls" * 1_000,
    "shell lines": "!a\n" * 40_000,
    "timed lines": "%time (\n" * 20_000,
    "continued lines": "!\\\n" * 60_000,
    "blanks": " " * 199_999 + "!",
    "commas": "a," * 90_000 + "!",
    "question marks": "?" * 200_000,
    # Each of these once took minutes: every character was looked at again for every other one.
    "lines of blanks": (" " * 900 + "x ;;\n") * 220,
    "lines of tabs": ("\t " * 450 + "= ;;\n") * 220,
    "lines of names": ("a " * 450 + ";;\n") * 220,
    "quotes": "'\\" * 100_000,
    "double quotes": '\\"' * 100_000,
    "open strings": ("'" + "\\'" * 100 + "\n") * 900,
    "long strings": "'''" + "\\'" * 100_000,
    "quotes in strings": '"""' + '""\\' * 66_000,
}


@pytest.mark.parametrize("name", HARD)
def test_text_that_is_hard_to_read_comes_back_with_its_lines(name):
    cell = HARD[name]
    assert plain_python(cell).count("\n") == cell.count("\n")
    assert parse("x = 1") is not None
