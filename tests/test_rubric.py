"""What a class gains and loses beside its values: three lines that are really three, and style."""

import pytest

from autograder.judging.rubric import short_forward
from autograder.judging.style import pep8
from tests import slips, what_a_slip_costs
from tests.forms import share
from tests.here import grade
from tests.what_a_slip_costs import marks

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
    return short_forward(before + CLASS.format(scale=scale, body=body), "SelfAttention")


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


# --- what a slip costs ---------------------------------------------------------------------------
FULL = {slips.SINGLE: (1, 3), slips.MULTI: (3, 1, 2)}
SLIPS = [
    (cell, name, lost, taken)
    for cell, groups in slips.SLIPS.items()
    for lost, taken, group in groups
    for name in group
]
CHANGES = {
    (cell, name): change
    for cell, groups in slips.SLIPS.items()
    for *_, group in groups
    for name, change in group.items()
}


LINES = what_a_slip_costs.PAGE.read_text(encoding="utf-8").splitlines()
PAIRS = [(cell, name) for cell, group in slips.PAIRS.items() for name in group]
# Slips whose scale is wrong, for other draws.
SCALES = [
    (cell, name)
    for cell, groups in slips.SLIPS.items()
    for lost, taken, group in groups
    if taken and not any(lost)
    for name in group
]


@pytest.mark.parametrize(
    ("cell", "name", "lost", "taken"), share(SLIPS, 6, touching=lambda s: (s[0], s[2]))
)
def test_a_slip_costs_its_own_step_and_no_other_and_what_the_page_says(cell, name, lost, taken):
    got = marks(cell, slips.program(cell, CHANGES[cell, name]))
    left = tuple(full - less for full, less in zip(FULL[cell], lost, strict=True))
    assert tuple(got.points.values()) == left
    assert -sum(got.taken.values()) == taken
    assert got.total == sum(left) - taken
    assert got.said
    assert what_a_slip_costs.row(cell, name, CHANGES[cell, name]) in LINES


@pytest.mark.parametrize("cell", FULL)
def test_the_solution_keeps_all_its_points(cell):
    got = marks(cell, slips.program(cell))
    assert tuple(got.points.values()) == FULL[cell]
    assert got.total == sum(FULL[cell]) and not got.taken and not got.said


@pytest.mark.slow
def test_the_page_of_slips_says_what_marks_are():
    """Where it does not: python -m tests.what_a_slip_costs."""
    assert what_a_slip_costs.page().splitlines() == LINES


@pytest.mark.parametrize(("cell", "name"), share(PAIRS, 5, touching=lambda p: p[0]))
def test_the_page_says_what_two_slips_at_once_cost(cell, name):
    assert what_a_slip_costs.row(cell, name, slips.PAIRS[cell][name]) in LINES


def test_every_slip_has_a_line_on_the_page():
    for _, name in [*CHANGES, *PAIRS]:
        assert any(line.startswith(f"| {name} | ") for line in LINES), name


def findings(got, verdict: str) -> list:
    return [f for r in got.results for f in r.findings if f.verdict == verdict]


def test_a_deduction_is_a_finding_of_its_own_with_its_points():
    got = marks(slips.SINGLE, slips.program(slips.SINGLE, slips.STYLE["a line that is not PEP 8"]))
    (taken,) = findings(got, "deduction")
    assert (taken.check, taken.points) == ("pep8", -1)
    assert all(r.passed and r.earned == r.max_points for r in got.results)


def test_three_lines_are_a_finding_of_their_own_with_its_point():
    got = marks(slips.SINGLE, slips.program(slips.SINGLE, slips.THREE_LINES))
    (bonus,) = findings(got, "bonus")
    assert (bonus.points, got.total, got.points["forward"]) == (1, 5, 3)


def test_what_is_taken_off_never_leaves_less_than_nothing():
    everything = (
        slips.line("softmax(scores, dim=-1)", "softmax(scores,dim=1)")
        + slips.SINGLE_LAYERS["`value` for `v`"]
        + slips.STYLE["a false shape comment"]
    )
    got = marks(slips.SINGLE, slips.program(slips.SINGLE, everything))
    assert got.total == 0
    assert all(r.points >= 0 for r in got.results)


def test_a_wrong_scale_is_not_called_right():
    got = marks(slips.MULTI, slips.program(slips.MULTI, slips.BY_HIDDEN))
    assert [r.passed for r in got.results] == [False, True, True]


def test_two_slips_cost_no_less_than_the_dearer_one_alone():
    over_queries = slips.line("dim=-1", "dim=1")
    alone = marks(slips.SINGLE, slips.program(slips.SINGLE, over_queries))
    both = marks(slips.SINGLE, slips.program(slips.SINGLE, slips.PLAIN + over_queries))
    assert both.total <= alone.total == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("cell", "name"), SCALES)
def test_whatever_is_drawn_any_scale_costs_one_point(cell, name, seed):
    got = grade(cell, slips.program(cell, CHANGES[cell, name]), seed)
    assert got.total == sum(FULL[cell]) - 1
