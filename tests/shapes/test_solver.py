"""What letters mean: the solver asked through the smallest functions."""

import pytest

from autograder.shapes import check_source, plan
from autograder.shapes.plan import collisions


def verdicts(*lines, call="f(x[batch_size, seq_len, hidden])"):
    source = "def f(x):\n" + "".join(f"    {line}\n" for line in lines) + "    return x\n"
    return [(v.line - 1, v.verdict) for v in check_source(source, plan(call))]


def test_letters_mean_what_makes_all_comments_true():
    assert verdicts("x = x * 2  # [u, v, w]", "x = x.transpose(1, 2)  # [u, w, v]") == [
        (1, "true"),
        (2, "true"),
    ]


def test_two_comments_that_agree_outweigh_one():
    assert verdicts(
        "x = x * 2  # [u, v, w]",
        "x = x + 1  # [u, v, w]",
        "y = x.transpose(1, 2)  # [u, v, w]",
    ) == [(1, "true"), (2, "true"), (3, "false")]


def test_one_against_one_accuses_nobody():
    found = verdicts("y = x * 2  # [u, v, w]", "z = x.transpose(1, 2)  # [u, v, w]")
    assert sorted(v for _, v in found) == ["cannot tell", "true"]


def test_a_letter_that_the_code_declares_means_nothing_else():
    assert verdicts("b, t, c = x.shape", "y = x.transpose(1, 2)  # [b, t, c]") == [(2, "false")]


def test_a_letter_used_once_is_never_called_false():
    assert verdicts("y = x * 2  # [A, Z, K]") == [(1, "true")]


def test_two_sizes_for_one_letter_are_left_open_where_nothing_proves_the_letter():
    assert verdicts("y = x * 2  # [u, u, w]") == [(1, "cannot tell")]


def test_a_letter_of_the_call_needs_a_second_comment():
    once = verdicts("y = x.mT  # [n, c, t]", call="f(x[n, t, c])")
    assert once == [(1, "true")]
    other = verdicts("y = x.mT  # [n, t]", call="f(x[n, t, c])")
    assert other == [(1, "cannot tell")]
    more = verdicts("y = x.mT  # [n, t]", "z = x + 1  # [n, t, c]", call="f(x[n, t, c])")
    assert more == [(1, "false"), (2, "true")]


DOCUMENTED = """def f(x):
    '''Turns.

    x: ({})
    '''
    return x.mT  # [n, t]
"""


def test_a_docstring_proves_a_letter_as_a_comment_does():
    asked = plan("f(x[n, t, c])")
    told = check_source(DOCUMENTED.format("n, t, c"), asked)
    assert [(v.line, v.verdict) for v in told] == [(6, "false")]
    silent = check_source(DOCUMENTED.format("a value"), asked)
    assert [(v.line, v.verdict) for v in silent] == [(6, "cannot tell")]


def test_a_false_docstring_is_named_and_costs_no_point():
    source = DOCUMENTED.format("hidden, batch_size, seq_len").replace("[n, t]", "nothing to see")
    asked = plan("f(x[batch_size, seq_len, hidden])")
    told = [v for v in check_source(source, asked) if v.verdict == "false"]
    assert [(v.line, v.deducts) for v in told] == [(4, False)]
    assert "the docstring says (hidden, batch_size, seq_len)" in told[0].message
    given = check_source(source, asked, starter=source)
    assert "false" not in {v.verdict for v in given}


def test_a_name_inside_a_sum_alone_accuses_nobody():
    found = verdicts("y = x * 2  # [batch_size, past + seq_len, hidden]")
    assert found == [(1, "cannot tell")]


def test_a_function_called_with_other_sizes_is_looked_at_call_by_call():
    source = (
        "def half(t):\n"
        "    u = t[:, ::2]  # [n, m]\n"
        "    v = u * 2  # [n, m]\n"
        "    w = v + 1  # [n, m]\n"
        "    return w.mT  # [n, m]\n"
        "def f(x):\n"
        "    return half(x), half(x.mT)\n"
    )
    found = check_source(source, plan("f(x[seq_len, hidden])"))
    assert [v.verdict for v in found if v.line < 6] == ["true", "true", "true", "false"]


def test_a_counter_of_a_loop_is_no_size():
    assert verdicts("for h in range(2):", "    y = x * h  # [b, s, h]") == [(2, "true")]


def test_free_letters_may_stand_in_products_alone():
    assert verdicts("y = x.flatten(0, 1)  # [u*v, w]") == [(1, "true")]


def test_an_attribute_of_one_letter_does_not_bind_the_letter():
    source = (
        "class Net(nn.Module):\n"
        "    def __init__(self, hidden):\n"
        "        super().__init__()\n"
        "        self.s = hidden\n"
        "    def forward(self, x):\n"
        "        y = x * self.s  # [b, s, h]\n"
        "        return y\n"
    )
    found = check_source(source, plan("Net(hidden)(x[batch_size, seq_len, hidden])"))
    assert [v.verdict for v in found] == ["true"]


@pytest.mark.parametrize(
    "call",
    [
        "F(input_size, hidden)(x[batch_size, seq_len, input_size])",
        "F(input_size, hidden, num_heads)(x[batch_size, seq_len, input_size])",
        "f(x[b, n, 3, 224, 224], y[b, m, 3, 224, 224])",
    ],
)
def test_the_sizes_of_the_runs_cannot_be_confused(call):
    asked = plan(call)
    free = tuple(r for r in asked.roles if r not in asked.where)
    assert list(collisions(free, list(asked.sizes))) == []
    for sizes in asked.sizes:
        assert len(set(sizes.values())) == len(sizes)


def test_images_of_a_large_size_run_twice_and_are_few():
    asked = plan("f(x[b, n, 3, 224, 224], y[b, m, 3, 224, 224])")
    assert sum(s["b"] * (s["n"] + s["m"]) for s in asked.sizes) < 50 and len(asked.sizes) == 2


@pytest.mark.parametrize(
    "comment, verdict", [("[9, 5, 5]", "true"), ("[3, 5, 5]", "false"), ("[9, 5]", "false")]
)
def test_numbers_are_judged_on_the_sizes_that_students_know(comment, verdict):
    known = plan(
        "f(x[batch_size, num_heads, seq_len, seq_len])",
        public={"batch_size": 3, "num_heads": 3, "seq_len": 5},
    )
    source = f"def f(x):  # [b, n, s, s]\n    y = x.flatten(0, 1)  # {comment}\n    return y\n"
    assert [v.verdict for v in check_source(source, known) if v.line == 2] == [verdict]


@pytest.mark.parametrize("comment", ["[9, 5, 5]", "[2, 5, 8]"])
def test_numbers_alone_are_left_to_a_person_where_no_sizes_are_known(comment):
    assert verdicts(f"y = x * 2  # {comment}") == [(1, "cannot tell")]


LAYERS = """class Net(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.first = nn.Linear(hidden, hidden)  # [batch, seq, hidden]

    def forward(self, x):
        y = torch.tanh(x)  # [batch, seq, hidden]
        return self.first(y)
"""


def test_a_layer_of_the_hand_out_tells_nothing_of_what_a_student_makes():
    asked = plan("Net(hidden)(x[batch, seq, hidden])")

    def missing(starter: str | None) -> list[int]:
        found = check_source(LAYERS, asked, starter=starter)
        return [v.line for v in found if v.verdict == "missing"]

    assert missing(None) == []
    assert missing(LAYERS.split("\n")[3] + "\n") == [8]
