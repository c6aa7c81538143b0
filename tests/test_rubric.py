"""What a class gains and loses beside its values: three lines that are really three, and style."""

import pytest

from autograder.judging.rubric import forward_in_three
from autograder.judging.style import pep8

CLASS = """class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = {scale}

    def forward(self, x):
{body}
"""
THREE = """        scores = self.q(x) @ self.k(x).transpose(1, 2)
        probs = F.softmax(scores / self.scale, dim=-1)
        return probs @ self.v(x)"""


def three(body: str, scale: str = "hidden**0.5", before: str = "") -> bool:
    return forward_in_three(before + CLASS.format(scale=scale, body=body), "SelfAttention")


@pytest.mark.parametrize("scale", ["hidden**0.5", "math.sqrt(hidden)", "float(hidden) ** 0.5"])
def test_three_lines_are_three(scale):
    assert three(THREE, scale)


def test_imports_of_torch_and_math_take_nothing_away():
    assert three(THREE, "sqrt(hidden)", "from math import sqrt\nimport torch.nn as nn\n\n\n")


@pytest.mark.parametrize(
    ("body", "scale", "before"),
    [
        ("        return attend(self, x)", "1", ""),
        ("        return self.scale(x)", "lambda x: x.softmax(-1)", ""),
        ("        exec(self.scale)\n        return y", "'y = 1'", ""),
        ("        return eval(self.scale)", "'x.softmax(-1)'", ""),
        ("        return helper.attend(self, x)", "1", "import helper\n\n\n"),
        ("        return attend(self, x)", "1", "from helper import attend\n\n\n"),
        ("        return F.__dict__[self.scale](x)", "'softmax'", ""),
        ("        return F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x))", "1", ""),
        (THREE.replace("\n", "\n        x = x + 0\n", 1), "1", ""),
    ],
)
def test_lines_that_stand_elsewhere_are_counted(body, scale, before):
    assert not three(body, scale, before)


def test_no_comment_switches_the_style_checks_off():
    line = "if x == None:  # noqa\n    pass  # nopep8\n"
    found = pep8(line)
    assert found and found[0].statement == "if x == None:  # noqa"
    assert pep8("x = 1" + " " * 2 + "# noqa " + "x" * 100 + "\n")
