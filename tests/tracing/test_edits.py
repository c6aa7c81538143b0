"""Small changes of a program: they undo slips of many kinds, and prove where those stand."""

import ast
import inspect
import math
import time

import pytest
import torch

from autograder.course.calls import Call, Outcome
from autograder.sandbox.inside import edited
from autograder.tracing.edits.ask import here, in_time, outcomes_of
from autograder.tracing.edits.distance import distance
from autograder.tracing.edits.kinds.all import edits, source_of
from autograder.tracing.edits.kinds.another_type import of_another_type
from autograder.tracing.edits.kinds.put_in import put_in
from autograder.tracing.edits.kinds.source import line_before, made_for
from autograder.tracing.edits.told import likely_lines
from autograder.tracing.raised import uncalled
from autograder.tracing.text import Text
from tests.tracing import fresh
from tests.tracing.helper import asked, look, told

SLIPS = {
    "one tensor in every place": (
        "simple.rnn",
        """
def encoder_states(x, w_input, w_hidden, bias):
    state = bias.new_zeros(bias.shape)
    states = []
    for token in x:
        state.copy_((token @ w_input + state @ w_hidden + bias).tanh())  # <-
        states += [state]
    return torch.stack(states)
""",
    ),
    "an axis of size 1": (
        "simple.context",
        """
def context_vectors(inputs):
    rows = []
    for query in inputs:
        column = inputs @ query.unsqueeze(1)
        rows.append((F.softmax(column, 1) * inputs).sum(0))  # <-
    return torch.stack(rows)
""",
    ),
    "cut in another order": (
        "one_head.project",
        """
def project(x, w_query, w_key, w_value):
    joint = x @ torch.hstack([w_query, w_key, w_value])
    parts = joint.reshape(len(x), -1, 3)  # <-
    return parts[..., 0], parts[..., 1], parts[..., 2]
""",
    ),
    "brackets": (
        "one_head.scale",
        """
def attention_weights(q, k):
    size = k.shape[1]
    return torch.softmax(q @ (k.T / size) ** 0.5, dim=1)  # <-
""",
    ),
    "letters": (
        "one_head.batched",
        """
def batched_attention(q, k, v):
    table = torch.einsum("nqc,nkc->nqk", q, k) / q.shape[2] ** 0.5
    return torch.einsum("nqk,nqc->nqc", table.softmax(2), v)  # <-
""",
    ),
    "all axes at once": (
        "masks.renormalise",
        """
def mask_weights(scores):
    kept = scores.softmax(-1).tril()
    return kept / kept.sum(dim=(1, 2), keepdim=True)  # <-
""",
    ),
    "plus infinity": (
        "masks.minus_infinity",
        """
def mask_scores(scores):
    n = scores.shape[-1]
    later = torch.arange(n).unsqueeze(0) > torch.arange(n).unsqueeze(1)
    return scores.masked_fill(later, -float("-inf")).softmax(-1)  # <-
""",
    ),
    "overwritten too early": (
        "backward.queries_keys",
        """
def grad_queries_keys(grad_scores, q, k):
    g = grad_scores / q.shape[-1] ** 0.5
    q = g @ k  # <-
    k = g.mT @ q
    return q, k
""",
    ),
    "turned on the wrong side": (
        "one_head.parameters",
        """
class ParameterAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        shape = input_size, hidden
        self.w_query = nn.Parameter(torch.randn(shape) / math.sqrt(input_size))
        self.w_key = nn.Parameter(torch.randn(shape) / math.sqrt(input_size))
        self.w_value = nn.Parameter(torch.randn(shape) / math.sqrt(input_size))

    def forward(self, x):
        asks, offers = x @ self.w_query, x @ self.w_key
        table = asks.T.mm(offers) / offers.shape[-1] ** 0.5  # <-
        return table.softmax(-1) @ (x @ self.w_value)
""",
    ),
    "one layer many times": (
        "heads.stack",
        """
class CausalHead(nn.Module):
    def __init__(self, input_size, head_size):
        super().__init__()
        self.q = nn.Linear(input_size, head_size, bias=False)
        self.k = nn.Linear(input_size, head_size, bias=False)
        self.v = nn.Linear(input_size, head_size, bias=False)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        later = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        table = (q @ k.mT / k.shape[-1] ** 0.5).masked_fill(later, -torch.inf)
        return table.softmax(-1) @ v

class HeadStack(nn.Module):
    def __init__(self, input_size, head_size, num_heads):
        super().__init__()
        self.heads = nn.ModuleList([CausalHead(input_size, head_size)] * num_heads)  # <-

    def forward(self, x):
        return torch.cat([head(x) for head in self.heads], dim=-1)
""",
    ),
    "in a loop for all of the batch": (
        "masks.padding",
        """
def padded_weights(scores, lengths):
    table = scores.clone()
    for item in range(len(lengths)):
        table[:, :, int(lengths[item]):] = -1e9  # <-
    return table.softmax(2)
""",
    ),
}
TWO = """
def project(x, w_query, w_key, w_value):
    joint = x @ torch.hstack([w_query, w_key, w_value])
    q, k, v = joint.reshape(len(x), -1, 3).unbind(2)
    return q, k, -v
"""


def failing(task: str, source: str, **more):
    return next(f for f in told(task, source.lstrip("\n"), **more) if f.fails)


def marked(source: str) -> int:
    lines = source.lstrip("\n").split("\n")
    return next(i for i, line in enumerate(lines, 1) if line.endswith("# <-"))


@pytest.mark.parametrize("what", SLIPS)
def test_the_line_that_a_small_change_mends_is_told(what):
    task, source = SLIPS[what]
    found = failing(task, source)
    assert found.where.first_wrong == marked(source)


def test_a_change_is_no_cure_in_the_words():
    """What is wrong is said, and not what would be right there."""
    found = failing(*SLIPS["all axes at once"])
    assert "One thing is wrong, in line 3: `dim=(1, 2)` are more axes" in found.message
    assert "Everything else is right." in found.message and "dim=2" not in found.message


@pytest.mark.parametrize("program", fresh.PROGRAMS[::9], ids=lambda p: p.what)
def test_a_changed_program_can_be_read_and_keeps_its_lines(program):
    for edit in edits(program.text):
        ast.parse(edit.source)
        assert edit.source.count("\n") == program.text.count("\n"), edit


def test_each_change_is_made_once():
    source = SLIPS["letters"][1]
    made = [edit.source for edit in edits(source)]
    assert len(made) == len(set(made)) > 50 and source not in made


def test_a_text_that_cannot_be_read_has_no_changes():
    assert edits("def f(x:\n    return x") == []


def test_two_changes_are_told_by_their_lines():
    found = failing("one_head.project", TWO)
    assert (
        found.message.startswith("Two things are wrong. Line 3: ") and "Line 4: " in found.message
    )
    assert "Mend line 3 first." in found.message and found.line == 3


def test_of_two_functions_the_one_whose_steps_are_wrong_is_told():
    """The scores are symmetric: a softmax along the other axis would do as well as other letters,
    but what the softmax gives is right."""
    (program,) = [p for p in fresh.MISNAMED if p.what.startswith("C4 ")]
    assert failing(program.task, program.text).where.first_wrong in program.lines()


FORWARDS = """
def batched_attention(q, k, v):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = scores.softmax(1)
    mixed = weights @ v
    return mixed
"""


def test_what_is_made_of_a_wrong_step_is_less_likely_to_be_wrong_than_that():
    seen = look("one_head.batched", FORWARDS)
    by_line = likely_lines(seen)
    assert by_line[4] == 0 < by_line[5] < by_line[3]
    there = seen.told()[0].where
    assert likely_lines(seen, there)[5] == 0  # a line is told: its changes come first as it is


def versions(texts, name="f", args=(3,)):
    namespace = {"kept": []}
    return outcomes_of(here(namespace), texts, [Call(name, args=args)], False), namespace


def test_a_version_without_an_end_is_given_up():
    endless = "def f(n):\n    while True:\n        n = n + 1\n"
    (one, two), _ = versions([endless, "def f(n):\n    return n + 1\n"])
    assert one is None and two[0].value == 4


def test_a_version_that_catches_all_is_given_up_too():
    deaf = """
def f(n):
    while True:
        try:
            for i in range(n):
                n = n + i
        except BaseException:
            pass
"""
    assert versions([deaf])[0] == [None]


def test_a_version_that_takes_its_time_within_few_rounds_is_given_up(monkeypatch):
    """Python squares whole numbers without a bound: of this one nobody sees the end."""
    grows = "def f(n):\n    for i in range(60):\n        n = n * n\n    return 1\n"
    monkeypatch.setattr(edited, "MAX_SECONDS_IN_FULL", 0.5)
    one, two = versions([grows, "def f(n):\n    return n + 1\n"])[0]
    assert one is None and two is None  # with what else was asked in one go
    assert versions(["def f(n):\n    return n + 1\n"])[0][0][0].value == 4


def test_what_is_counted_on_is_not_squared_in_each_round():
    text = "def f(n, x):\n    for i in x:\n        n[i] = n.get(i, 0) + 1\n        y = i + 1\n"
    squared = [edit for edit in edits(text) if "** 2" in edit.source]
    assert {edit.line for edit in squared} == {4}


@pytest.mark.parametrize(
    ("first", "second", "back"), [("+=", "-= 2 *", "+="), ("-=", "+= 2 *", "-="), ("+=", "", "-=")]
)
def test_what_a_round_moves_is_put_back_to_where_it_was(first, second, back):
    more = f"        x[i] {second} h\n" if second else ""
    text = f"def f(x, h):\n    for i in range(3):\n        x[i] {first} h\n{more}        g(x)\n"
    (edit,) = [e for e in edits(text) if "stays where it is moved to" in e.how]
    assert f"g(x); x[i] {back} h" in edit.source


def test_a_version_runs_nothing_but_what_it_defines(capfd):
    text = "print('seen')\nkept.append(1)\ndef f(n):\n    print('asked')\n    return n\n"
    (found,), namespace = versions([text])
    assert found[0].value == 3 and namespace["kept"] == [] and "f" not in namespace
    assert capfd.readouterr() == ("", "")


def test_all_versions_together_may_run_so_many_rounds():
    slow = "def f(n):\n    for i in range(2_900):\n        n += i\n    return n\n"
    found, _ = versions([slow] * (edited.MAX_ALL // 2_900 + 3))
    assert found[0] is not None and found[-1] is None


def test_a_right_answer_is_asked_no_versions(monkeypatch):
    program = fresh.RIGHT[0]
    monkeypatch.setattr("autograder.tracing.edits.told.Search", None)
    assert told.__wrapped__(program.task, program.text) == ()
    assert asked(program.task, program.text, 0)[0].task == program.task


ODD = (
    "def f(x):\n    return ()\n",
    "def f(x):\n    y = ()\n    return x\n",
    "def f(x, p):\n    s = cumsum(x, -1)\n    return s < p\n",
    "def f(x, p):\n    s = torch.cumsum()\n    return s < p\n",
    "def f(x):\n    y = x[:, None, ...].expand(*s)\n    return x.unsqueeze(-1).expand(2)\n",
    "def f(x):\n    (lambda: x)()\n    g()(x).h()\n    return x\n",
    "def f(x):\n    t = {'a': x}\n    for k in '{0}{b}':\n        x = t[k]\n    return x\n",
    "def f(x):\n    for x.y in ():\n        x.y = x\n    return torch.triu(torch.ones(*x))\n",
)


@pytest.mark.parametrize("text", ODD)
def test_odd_programs_are_changed_like_others(text):
    assert all(edit.source != text for edit in edits(text))


@pytest.mark.parametrize(
    "line", ["a = x.view(b, c).transpose(1, 2) + self.k.bias * 2", "a=b", "x[0, :] = x < x", "g(x)"]
)
@pytest.mark.parametrize("count", [150, 10_000])
def test_what_is_made_of_a_text_is_bound(line, count):
    text = "def f(x):\n" + f"    {line}\n" * count + "    return x\n"
    assert sum(len(edit.source) for edit in edits(text)) <= 21_000_000


def test_versions_that_take_long_together_are_asked_no_more():
    send = in_time(lambda header, tensors: (time.sleep(0.02), ({"versions": []}, {}))[1], 0.01)
    assert send({}, {}) == ({"versions": []}, {})
    with pytest.raises(ValueError, match="took more than"):
        send({}, {})
    call = Call("f", args=(torch.ones(2),))
    assert outcomes_of(send, ["x = 1"], [call], wanted=False) == [None]


def test_the_second_of_two_changes_is_told_of_the_line_before_the_first_moved_it():
    text = "def f(x):\n    a = x\n    if x:\n        b = 1\n    c = 2\n    return a\n"
    moved = "def f(x):\n    if x:\n        b = 1\n    a = x\n    c = 2\n    return a\n"
    assert [line_before(n, moved, text) for n in range(1, 7)] == [1, 3, 4, 2, 5, 6]
    alike = "def f(x):\n    x = x + 1\n    x = x + 1\n    return x\n"
    assert line_before(3, alike, alike) == 3  # of two alike that with the same number


def test_what_is_made_for_one_place_is_known_with_its_line():
    text = (
        "def f(q, k):\n    n = q\n    rows = []\n    m = q.shape\n    rows.append(n)\n"
        "    s = torch.zeros(m)\n    s = s + q[:n]\n    return torch.stack(rows), s\n"
    )
    assert made_for(6, text) == {"m": 4}
    assert made_for(7, text) == {"s": 6}  # as it is until then; n is read above, too
    assert made_for(8, text) == {}  # a list is filled part by part; s is made twice


def test_of_a_number_that_may_be_large_no_tensor_is_made():
    source = source_of("def f(flops, x):\n    n = flops\n    m = x.shape\n    return n, m\n")
    made = [edit.new for edit in of_another_type(source)]
    assert "(torch.zeros(x.shape))" in made and "(torch.zeros(flops))" not in made
    assert "(torch.arange(min(flops, 4096)))" in made


def test_a_version_that_grows_with_each_round_takes_no_more_than_its_memory():
    grows = "def f(x):\n    for _ in range(64):\n        x = (x + x[..., None]).unsqueeze(-1)\n"
    send = here({"torch": torch})
    found = outcomes_of(send, [f"{grows}    return x\n"], [Call("f", (torch.ones(9),))], False)
    assert found == [None]


def test_no_axis_is_put_into_what_a_loop_makes_of_itself():
    loop = "def f(x, rows):\n    for row in rows:\n        x = x + row\n    return x * 2\n"
    grows = [edit for edit in put_in(loop) if "unsqueeze" in edit.new]
    assert grows and 3 not in {edit.line for edit in grows}


@pytest.mark.parametrize(
    "kept, told",
    [("x.amax", 2), ("x.shape", None), ("self.weight", None), ("x.amax(1)", None)],
)
def test_what_is_kept_is_called_a_function_only_where_it_is_one(kept, told):
    text = Text(f"def f(self, x):\n    top = {kept}\n    return x - top\n")
    said = "unsupported operand type(s) for -: 'Tensor' and 'builtin_function_or_method'"
    found = uncalled({"message": said, "line": 3}, text)
    assert (found and found[0]) == told


ODD = {
    "a maximum of what is made of a list": """
def f(sizes, rows):
    longest = torch.tensor(sizes).max()
    for row in rows:
        row = row[:longest]
    return row
""",
    "an index of nothing": "def f(x):\n    return x.argsort()[()]\n",
    "a loop over what a maximum gives": """
def f(sizes, rows):
    longest = max(sizes)
    for row in rows:
        found = [each for each in longest]
    return found
""",
    "a function called t": "def f(x):\n    return t(x)\n",
    "a text with a bracket, beside a question about another": """
def f(x, where):
    if where == "{":
        return x.split("}", 1)
    return x
""",
    "an empty default of an argument without a name": """
def f(x=[], /, y=1):
    x.append(y)
    return x
""",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_no_kind_of_change_stops_at_odd_code(text):
    assert edits(text)


def test_a_whole_number_too_large_for_a_float_is_far_from_any_other():
    one, other = (Outcome(value=number) for number in (10**400, 1.5))
    assert 0 < distance(one, other) < math.inf
    assert distance(one, one) == 0


@pytest.mark.slow
def test_no_kind_of_change_stops_at_code_that_nobody_here_wrote():
    nodes = ast.walk(ast.parse(inspect.getsource(torch.nn.functional)))
    texts = [ast.unparse(node) for node in nodes if isinstance(node, ast.FunctionDef)]
    short = [text for text in texts if len(text) < 4_000]
    assert len(short) > 50
    for text in short:
        edits(text)
        put_in(text)
