"""Small changes of more kinds: what is shared, unused, left out, or has its brackets elsewhere."""

import ast

import pytest

from autograder.course.calls import Call
from autograder.judging.difference import matches
from autograder.tracing.edits.ask import here, outcomes_of
from autograder.tracing.edits.kinds.all import edits
from tests.tracing import fresh
from tests.tracing.helper import SETUP, told

# A statement with a slip, and what it should be. Around them is BODY.
BODY = """
class Model(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.q = nn.Linear(hidden, hidden)
        self.norm = nn.LayerNorm(hidden)
        {made}

    def forward(self, x, mask, lengths, scale):
        queries, keys, values = self.q(x), self.k(x), self.v(x)
        scores = queries @ keys.mT
        weights = scores.softmax(-1)
        found = []
        for i in range(x.shape[1]):
            found.append(x[:, i])
            {inside}
        {statement}
        return y
"""
PLACES = {"made": "self.k = self.q", "inside": "y = x", "statement": "y = x"}
SLIPS = {
    "one object with two names": ("made", "self.k = self.v = nn.Linear(2, 2)", None),
    "another object's name": ("made", "self.k = self.q", "self.k = nn.Linear(hidden, hidden)"),
    "thrown away": ("statement", "scores * 2", "scores = scores * 2"),
    "the first in every round": ("inside", "y = keys[0] + x[i]", "y = keys[i] + x[i]"),
    "the neighbour": ("inside", "y = x[:, i]", "y = x[:, (i + 1)]"),
    "overwritten in a round": ("inside", "x = self.q(x)", "x_now = self.q(x)"),
    "twice one name": ("statement", "y = keys + keys.mT", "y = values + values.mT"),
    "a bracket that closes too early": (
        "statement",
        "y = self.q(x) + keys",
        "y = self.q(x + keys)",
    ),
    "a bracket that closes too late": (
        "statement",
        "y = torch.softmax(scores / 8, -1)",
        "y = torch.softmax(scores, -1) / 8",
    ),
    "two calls exchanged": ("statement", "y = self.q(self.norm(x))", "y = self.norm(self.q(x))"),
    "the norm behind the sum": (
        "statement",
        "y = self.norm(x + self.q(x))",
        "y = x + self.q(self.norm(x))",
    ),
    "epsilon outside of the root": (
        "statement",
        "y = x / torch.sqrt(values) + 1e-5",
        "y = x / torch.sqrt(values + 1e-5)",
    ),
    "a root that is none": ("statement", "y = scores / 8 ** 1 / 2", "y = scores / 8 ** (1 / 2)"),
    "a second softmax": (
        "statement",
        "y = weights.softmax(-1)",
        "y = weights / weights.sum(-1, keepdim=True)",
    ),
    "not scaled": (
        "statement",
        "y = queries @ keys.mT",
        "y = queries @ keys.mT / queries.shape[-1] ** 0.5",
    ),
    "the scale is not used": ("statement", "y = scores", "y = scores * scale"),
    "a score that hides nothing": (
        "statement",
        "y = scores.masked_fill(mask, 0)",
        'y = scores.masked_fill(mask, float("-inf"))',
    ),
    "a setting": (
        "statement",
        "y = F.scaled_dot_product_attention(queries, keys, values)",
        "y = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)",
    ),
    "an index with an axis too few": (
        "statement",
        "y = scores.gather(1, lengths)",
        "y = scores.gather(1, lengths.unsqueeze(-1))",
    ),
    "a row for a column": (
        "statement",
        "y = lengths[None] > lengths[None]",
        "y = lengths[:, None] > lengths[None]",
    ),
    "the other end": ("statement", "y = lengths >= 8 - scale", "y = lengths < scale"),
    "a new axis": ("statement", "y = mask[:, None]", "y = mask[:, None, None]"),
    "the first one left out": ("statement", "y = scores[:, :, 0]", "y = scores[:, 1:, 0]"),
    "queries and keys exchanged": (
        "statement",
        "y = keys @ queries.mT",
        "y = queries @ keys.transpose(-2, -1)",
    ),
    "the sign of a power": ("statement", "y = 10 ** (scale / 2)", "y = 10 ** -(scale / 2)"),
    "the minus at the other half": (
        "statement",
        "y = torch.cat([-keys, values], -1)",
        "y = torch.cat([keys, -values], -1)",
    ),
    "what is left of 1": ("statement", "y = F.dropout(x, 1 - scale)", "y = F.dropout(x, scale)"),
    "repeated as a whole": (
        "statement",
        "y = x.repeat(1, 2, 1)",
        "y = x.repeat_interleave(2, dim=1)",
    ),
    "a pair": ("statement", "y = scores.max(-1)", "y = scores.max(-1)[0]"),
    "added up": ("statement", "y = sum(found)", "y = torch.cat(found, dim=-1)"),
    "the last part alone": ("statement", "y = found[-1]", "y = torch.cat(found, dim=-1)"),
    "no zeros to begin with": ("statement", "y = x.clone()", "y = torch.zeros_like(x)"),
    "axes 1 and 2": ("statement", "y = x.view(2, 3, 4)", "y = x.view(2, 3, 4).transpose(1, 2)"),
    "far apart": ("statement", "y = x.permute(2, 1, 0, 3)", "y = x.permute(0, 1, 2, 3)"),
}


def filled(place: str, statement: str) -> str:
    return BODY.lstrip("\n").format(**{**PLACES, place: statement})


@pytest.mark.parametrize("what", SLIPS)
def test_some_small_change_undoes_the_slip(what):
    place, slip, right = SLIPS[what]
    right = right or "self.k, self.v = nn.Linear(2, 2), nn.Linear(2, 2)"
    wanted = ast.dump(ast.parse(filled(place, right)))
    source = filled(place, slip)
    line = source.split("\n").index(next(r for r in source.split("\n") if slip in r)) + 1
    found = [edit for edit in edits(source) if edit.line == line]
    if what == "overwritten in a round":  # in the rest of the round the new name is read
        assert any("x_now = self.q(x)" in edit.source for edit in found)
    else:
        assert wanted in [ast.dump(ast.parse(edit.source)) for edit in found]


# --- pairs, told to their end ------------------------------------------------------------------
PAIRS = {
    "one after the other": (
        "simple.rnn",
        """
def encoder_states(x, w_input, w_hidden, bias):
    states = torch.zeros(len(x), len(bias))
    state = torch.zeros(len(bias))
    for i in range(len(x) - 1):  # <-
        state = torch.tanh(x[i] @ w_input) + state @ w_hidden + bias  # <-
        states[i] = state
    return states
""",
    ),
    "shared, and for nothing": (
        "one_head.parameters",
        """
class ParameterAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        shape, size = (input_size, hidden), input_size ** 0.5
        self.w_query = self.w_key = self.w_value = nn.Parameter(torch.randn(shape) / size)  # <-

    def forward(self, x):
        table = (x @ self.w_query) @ (x @ self.w_key).T
        shares = torch.softmax(table / self.w_key.shape[1] ** 0.5, dim=-1)
        content = x  # <-
        return shares @ content
""",
    ),
    "in a loop": (
        "one_head.batched",
        """
def batched_attention(q, k, v):
    rows = []
    for n in range(len(q)):
        table = q[n] @ k[0].T  # <-
        table = table / k.shape[2] ** 1 / 2  # <-
        rows.append(table.softmax(1) @ v[n])
    return torch.stack(rows)
""",
    ),
}


@pytest.mark.parametrize("what", PAIRS)
def test_both_lines_of_a_pair_are_told(what):
    task, source = PAIRS[what]
    source = source.lstrip("\n")
    lines = [n for n, row in enumerate(source.split("\n"), 1) if row.endswith("# <-")]
    found = next(f for f in told(task, source) if f.fails)
    assert found.message.startswith("Two things are wrong. ") and found.line == lines[0]
    assert all(f"Line {line}: " in found.message for line in lines)


# --- a first look at a version -----------------------------------------------------------------
@pytest.mark.parametrize("program", fresh.PROGRAMS[::17], ids=lambda p: p.what)
def test_a_first_look_gives_what_the_whole_version_gives(program):
    from autograder.course.calls import Draw
    from autograder.course.course import Course
    from autograder.sandbox.inside.runner import Runner
    from tests.tracing.helper import ROOT

    namespace: dict = {}
    runner = Runner(namespace)
    runner.run_cell({"id": "setup", "source": SETUP})
    runner.run_cell({"id": "answer", "source": program.text})
    exercise = Course.at(ROOT).exercises[program.task]
    calls = [c for c in exercise.cases(Draw(0)) if c.seed is None and not c.train][:1]
    if not calls or (calls[0].init is not None and not calls[0].weights):
        pytest.skip("what it gives is drawn at random")
    texts = [edit.source for edit in edits(program.text)][::5]
    quick = outcomes_of(here(namespace), texts, calls, False, program.text)
    whole = outcomes_of(here(namespace), texts, calls, False)
    assert len(quick) == len(whole) > 5
    for one, other in zip(quick, whole, strict=True):
        assert (one is None) == (other is None)
        drawn = one is not None and one[0].unset  # what could not be set is drawn anew
        assert one is None or drawn or matches(one[0], other[0], 1e-6)


KEPT = """
def twice(n):
    return 2 * n

class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []
        self.start = twice(1)

    def forward(self, n):
        self.seen.append(n)
        return len(self.seen) + self.start
"""


def forwards(*texts: str) -> list:
    call = Call("Counts", init=(), args=(3,))
    found = outcomes_of(here({"nn": __import__("torch").nn}), texts, [call], False, KEPT)
    return [each and each[0].value for each in found]


def test_what_one_version_leaves_in_an_object_no_other_finds():
    more = [KEPT.replace("+ self.start", f"+ self.start + {n}") for n in range(3)]
    assert forwards(*more) == [3, 4, 5]


def test_an_object_is_built_anew_where_a_version_builds_another():
    assert forwards(KEPT.replace("2 * n", "5 * n"), KEPT.replace("[]", "[0]"), KEPT) == [6, 4, 3]


def test_a_version_of_a_first_look_without_an_end_is_given_up():
    endless = KEPT.replace("    return 2 * n", "    while n:\n        n += 1")
    turned = KEPT.replace(
        "        self.seen.append(n)", "        while self.start: self.start += 1"
    )
    listed = KEPT.replace("    return 2 * n", "    return sum(1 for _ in iter(int, 1))")
    assert forwards(endless, turned, listed, KEPT) == [None, None, None, 3]


@pytest.mark.parametrize(
    "name", ["var", "std", "log", "exp", "sort", "cumsum", "max", "cat", "softmax"]
)
def test_a_function_that_is_called_by_its_name_alone_stops_no_kind(name):
    assert edits(f"from torch import {name}\n\ndef f(x):\n    y = {name}(x, 0)\n    return y\n")
