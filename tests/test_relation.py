"""How a wrong result stands to the right one, and inputs that were taken for one another."""

import pytest
import torch

from autograder import exercise
from autograder.course import data
from autograder.course.answers import compute
from autograder.course.asking import Exercise, Sight
from autograder.course.calls import Call, Draw, Outcome, run_here
from autograder.judging.relation import relation
from autograder.judging.verdict import findings

SHAPES = ((2, 3, 4), (3, 5, 2))
SOURCE = "def answer(first, second):\n    ..."


def seen(got, expected, source=SOURCE) -> Sight:
    """What a judge sees of two calls: got and expected are functions of the inputs."""
    draw = torch.Generator().manual_seed(3)
    inputs = [tuple(torch.randn(s, generator=draw) for _ in "ab") for s in SHAPES]
    calls = tuple(Call("answer", args) for args in inputs)
    of = tuple(Outcome(value=got(*args)) for args in inputs)
    right = tuple(Outcome(value=expected(*args)) for args in inputs)
    task = Exercise("task", "answer", lambda draw: [], ("", "", ""))
    return Sight(task, calls, of, right, (), source)


def product(a, b):
    return a * b


@pytest.mark.parametrize(
    ("got", "says"),
    [
        (lambda a, b: torch.zeros_like(a), "is 0"),
        (lambda a, b: b, "`second` as it went in"),
        (lambda a, b: 2.5 * a * b, "here 2.5"),
        (lambda a, b: a * b / 7.5, "same factor"),
        (lambda a, b: -a * b, "other sign"),
        (lambda a, b: a * b + 3, "same amount"),
        (lambda a, b: a * b + a, "for `first`, which is added"),
        (lambda a, b: a * b - b, "for `second`, taken from it"),
        (lambda a, b: (a * b).flip(1), "reverse order along axis 1"),
        (lambda a, b: (a * b).roll(1, 2), "behind its place"),
        (lambda a, b: (a * b).softmax(1), "a softmax over axis 1 too"),
        (lambda a, b: (a * b).exp(), "an exponential too"),
        (lambda a, b: (a * b).cumsum(2), "added up along axis 2"),
        (lambda a, b: (a * b).mean(0, keepdim=True).expand_as(a), "averaged along axis 0"),
        (lambda a, b: (a * b)[:, :1].expand_as(a), "Along axis 1 all that comes back is the same"),
        (lambda a, b: (a * b).sum(1), "added up along axis 1"),
        (lambda a, b: (a * b).flatten(1), "only the form is not"),
        (lambda a, b: (a * b).transpose(1, 2), "the axes 1 and 2 are swapped"),
        (lambda a, b: (a * b).permute(1, 2, 0), "axes stand in another order"),
    ],
)
def test_a_result_that_stands_to_the_right_one_in_some_way_is_told_so(got, says):
    name, said = relation(seen(got, product))
    assert says in said and name


@pytest.mark.parametrize(
    ("got", "name"),
    [
        (lambda a, b: a * b / len(a), "result.divided the size of axis 0 of `first`"),
        (lambda a, b: a * b * b.shape[1], "result.times the size of axis 1 of `first`"),
        (
            lambda a, b: a * b / b.shape[2] ** 0.5,
            "result.divided the root of the size of axis 2 of `first`",
        ),
        (lambda a, b: (a * b).half().double(), "result.torch.float16"),
        (lambda a, b: (a * b).bfloat16().double(), "result.torch.bfloat16"),
    ],
)
def test_a_factor_that_is_a_size_and_lost_digits_are_told_by_name(got, name):
    assert relation(seen(got, product))[0] == name


def test_a_size_is_told_of_few_numbers_too_since_it_gives_none_away():
    def totals(a, b):
        return (a * b).sum((0, 2))

    name, said = relation(seen(lambda a, b: totals(a, b) / len(a), totals))
    assert name == "result.divided the size of axis 0 of `first`" and "axis 0" in said


def test_a_missing_last_step_is_told():
    name, said = relation(seen(product, lambda a, b: (a * b).softmax(-1)))
    assert name == "result.softmax 2 missing" and "last step" in said


def test_where_only_some_places_are_wrong_the_place_is_told_and_no_cause():
    def last_lost(a, b):
        return torch.cat([(a * b)[:, :-1], a[:, -1:]], 1)

    assert relation(seen(last_lost, product)) == ("", "Along axis 1 all are right but the last.")


def test_a_mask_the_wrong_way_round_is_told():
    assert relation(seen(lambda a, b: a > b, lambda a, b: ~(a > b)))[0] == "result.inverted"


@pytest.mark.parametrize(
    ("got", "name"),
    [
        (lambda a, b: (a + b, a - b), "results.order"),
        (lambda a, b: (a - b,), "results.missing"),
        (lambda a, b: a + b, "results.missing"),
        (lambda a, b: (a - b, a - b), "results.twice"),
        (lambda a, b: (a - b, None), "results.missing"),
    ],
)
def test_results_that_are_exchanged_or_missing_are_told(got, name):
    assert relation(seen(got, lambda a, b: (a - b, a + b)))[0] == name


def test_a_missing_number_among_several_results_is_told():
    def with_a_count(a, b):
        return a - b, len(a)

    assert relation(seen(lambda a, b: a - b, with_a_count))[0] == "results.missing"
    assert relation(seen(lambda a, b: len(a), with_a_count)) is None


def test_nothing_is_said_where_two_calls_tell_different_things():
    assert relation(seen(lambda a, b: a * b * (2 if len(a) == 2 else a), product)) is None


def test_of_a_few_numbers_nothing_is_said_since_it_would_give_them_away():
    def total(a, b):
        return (a * b).sum((1, 2))

    assert relation(seen(lambda a, b: 2 * total(a, b), total)) is None
    assert relation(seen(lambda a, b: 3.0, lambda a, b: 1.5)) is None


def test_an_unrelated_result_gets_no_words():
    assert relation(seen(lambda a, b: a.sin() + b, product)) is None


ODD = (
    None,
    "text",
    [],
    [1.0, [2.0]],
    {"a": torch.ones(3)},
    torch.empty(0),
    torch.full((2, 3, 4), float("nan")),
    torch.full((2, 3, 4), float("-inf")),
    torch.ones(2, 3, 4, dtype=torch.bool),
    torch.ones(2, 3, 4, dtype=torch.complex64),
    torch.ones(2, 3, 4, dtype=torch.float16) * 6e4,
    torch.tensor(1.0),
    (torch.ones(2, 3, 4), None),
    torch.full((2, 3, 4), 1e300, dtype=torch.float64),
)


@pytest.mark.parametrize("value", ODD, ids=str)
@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_whatever_comes_back_a_relation_never_raises(value, wanted):
    expected = (product, lambda a, b: (a, b), lambda a, b: a > b)[wanted]
    relation(seen(lambda a, b: value, expected))
    relation(seen(expected, lambda a, b: value))


def test_names_are_taken_from_any_text_without_a_failure():
    for text in ("", "def answer(", "class answer: pass", "answer = 3", "(" * 5000):
        assert relation(seen(lambda a, b: a, product, text))[1].startswith("What comes back is in")


# --- one taken for another -----------------------------------------------------------------------
HINTS = ("one", "two", "three")


@exercise("task.mix", "mix(a[n, m], b[n, m], c[n, m])", hints=HINTS)
def mix(a, b, c):
    return a * b - c


@exercise("task.layers", "Layers(h)(x[n, h])", hints=HINTS)
class Layers(torch.nn.Module):
    def __init__(self, h):
        super().__init__()
        self.one, self.two = torch.nn.Linear(h, h), torch.nn.Linear(h, h)

    def forward(self, x):
        return self.one(x).tanh() * self.two(x)


def told(answer, program):
    written = answer.exercises[0]
    calls = written.exercise.cases(Draw(5))
    outcomes = run_here({written.exercise.name: program}, calls)
    return findings(written.exercise, calls, outcomes, compute(written, calls))


def test_an_input_taken_for_another_is_named():
    (found,) = told(mix, lambda a, b, c: a * c - c)
    assert found.mistake == "exchanged.c for b"
    assert found.message.startswith("`c` is used where `b` belongs.")


def test_two_inputs_that_changed_places_are_named():
    (found,) = told(mix, lambda a, b, c: a * c - b)
    assert found.message.startswith("`b` and `c` have changed places.")


def test_exchanges_that_come_to_the_same_are_all_told():
    (found,) = told(mix, lambda a, b, c: b * b - c)
    assert found.mistake == "exchanged.b for a"
    (found,) = told(mix, lambda a, b, c: c * b - a)
    assert "`a` and `c` have changed places." in found.message


def test_a_layer_taken_for_another_is_named():
    class Wrong(Layers):
        def forward(self, x):
            return self.one(x).tanh() * self.one(x)

    (found,) = told(Layers, Wrong)
    assert found.mistake == "exchanged.one for two"
    assert "The layer `one` is used where the layer `two` belongs." in found.message


def test_a_right_answer_hears_nothing_of_exchanges():
    assert told(mix, lambda a, b, c: b * a - c) == []
    assert told(Layers, Layers) == []


def test_parameters_taken_for_one_another_are_named():
    class Scale(torch.nn.Module):
        def __init__(self, h):
            super().__init__()
            self.gain = torch.nn.Parameter(torch.ones(h))
            self.shift = torch.nn.Parameter(torch.zeros(h))

        def forward(self, x):
            return x * self.gain + self.shift

    class Wrong(Scale):
        def forward(self, x):
            return x * self.shift + self.gain

    def cases(draw):
        weights = {"gain": draw.normal(4), "shift": draw.normal(4)}
        return Call("", (draw.normal(3, 4),), init=(4,), weights=weights)

    exercise("task.scale", cases, hints=HINTS, name="Scale")(Scale)
    (found,) = told(Scale, Wrong)
    assert found.mistake == "exchanged.gain and shift"
    assert "`gain` and `shift` have changed places." in found.message


def test_a_mistake_is_named_too_where_another_call_stops_with_an_error():
    def cases(draw):
        return [Call("", (draw.normal(3, 4), k)) for k in (1, 2, 9)]

    def largest(x, k, sign=1):
        return sign * (sign * x).topk(min(k, 4)).values

    exercise("task.largest", cases, hints=HINTS)(largest)
    largest.wrong("smallest", "The smallest are kept.", sign=-1)
    (found,) = told(largest, lambda x, k: -(-x).topk(k).values)
    assert found.mistake == "smallest"


def test_an_error_alone_proves_no_mistake():
    def cases(draw):
        return [Call("", (draw.normal(3, 4), k)) for k in (1, 2, 9)]

    def best(x, k, sign=1):
        return sign * (sign * x).topk(min(k, 4)).values

    exercise("task.best", cases, hints=HINTS)(best)
    best.wrong("smallest", "The smallest are kept.", sign=-1)
    (found,) = told(best, lambda x, k: x.topk(k).values)
    assert not found.mistake and "range" in found.message


# --- an input that was changed on its way in ------------------------------------------------------
@exercise("task.weigh", "weigh(p[b, n, n], x[b, n, h], closed[b, n].bool(), 0.25)", hints=HINTS)
def weigh(p, x, closed, keep):
    return (p @ x * keep).tanh().masked_fill(closed[..., None], 0.0)


def loops(p, x, closed, keep, last):
    total = torch.zeros_like(x)
    for j in range(last):
        total = total + p[:, :, j : j + 1] * x[:, j : j + 1]
    return (total * keep).tanh().masked_fill(closed[..., None], 0.0)


def in_half(p, x, closed, keep):
    return weigh(p.half().to(p), x.half().to(x), closed, keep)


@pytest.mark.parametrize(
    ("program", "name", "says"),
    [
        (
            lambda p, x, c, f: loops(p, x, c, f, p.shape[2] - 1),
            "altered.p without the last 2",
            "along axis 2 the last entry of `p` does not count. Or, what comes to the same: along "
            "axis 1 the last entry of `x` does not count.",
        ),
        (
            lambda p, x, c, f: (
                torch.einsum("bij,bih->bjh", p, x).mul(f).tanh().masked_fill(c[..., None], 0.0)
            ),
            "altered.p transposed 1 2",
            "`p` is used with its axes 1 and 2 swapped",
        ),
        (
            lambda p, x, c, f: weigh(torch.tril(p), x, c, f),
            "altered.p below",
            "of `p` only what is on and below the diagonal counts",
        ),
        (
            lambda p, x, c, f: (p @ x * f).tanh() * c[..., None],
            "altered.closed inverted",
            "True and False of `closed` are taken for one another",
        ),
        (lambda p, x, c, f: weigh(p, x, c * False, f), "altered.closed left out", "left out"),
        (lambda p, x, c, f: weigh(p, x, c, 1 - f), "altered.keep the rest", "1 minus `keep`"),
        (lambda p, x, c, f: weigh(p, x[:1], c, f), "altered.x first for all 0", "stands for all"),
        (in_half, "altered.all float16", "the inputs went through float16"),
    ],
)
def test_what_was_done_to_an_input_is_told_whatever_the_code_looks_like(program, name, says):
    (found,) = told(weigh, program)
    assert found.mistake == name and says in found.message


def test_keys_and_values_of_which_one_is_not_looked_at_are_told_together():
    def look(q, k, v):
        return (q @ k.mT).softmax(-1) @ v

    exercise("task.look", "look(q[b, n, h], k[b, m, h], v[b, m, h])", hints=HINTS)(look)
    (found,) = told(look, lambda q, k, v: look(q, k[:, 1:], v[:, 1:]))
    assert found.mistake == "altered.k, v cut first 1"
    assert "the first entry of each of `k` and `v` is not looked at" in found.message


def test_nothing_is_said_of_inputs_where_gradients_alone_are_wrong():
    def half(x, y):
        return x * 0.5 + 0 * y

    exercise("task.half", "half(x[b, n], y[b, n])", gradients=True, hints=HINTS)(half)
    (found,) = told(half, lambda x, y: half(x, y.detach()))
    assert found.mistake == "gradient.none" and "left out" not in found.message


def test_a_simple_relation_of_the_results_comes_before_what_was_done_to_an_input():
    def doubled(a, b, c):
        return 2 * (a * b - c)

    (found,) = told(mix, doubled)
    assert found.mistake == "result.factor"


def test_of_a_few_numbers_no_altered_input_is_told():
    def total(x, n):
        return (x[:n]).sum()

    exercise("task.total", lambda draw: Call("", (draw.normal(9), 4)), hints=HINTS)(total)
    (found,) = told(total, lambda x, n: total(x, n - 1))
    assert not found.mistake


def test_a_right_answer_hears_nothing_of_altered_inputs():
    assert told(weigh, lambda p, x, c, f: loops(p, x, c, f, p.shape[2])) == []


def test_a_hand_out_knows_no_slip_by_a_call_in_which_it_does_not_show():
    """Of slips it holds what the first call tells; the right answer there names nothing."""

    def cases(draw):
        return [Call("", (draw.normal(5, 4), by)) for by in (0.0, 0.5)]

    def shrink(x, by):
        return x - by

    exercise("task.shrink", cases, hints=HINTS)(shrink)
    names = {name for name, *_ in data._entry(shrink.exercises[0], {})["altered"]}
    assert "altered.x negative" in names and "altered.by left out" not in names


# --- dice ----------------------------------------------------------------------------------------
def asked(answer, program):
    written = answer.exercises[0]
    calls = written.exercise.cases(Draw(5))
    space = {written.exercise.name: program}
    known = compute(written, calls)

    def ask(calls):
        return run_here(space, calls)

    return findings(written.exercise, calls, ask(calls), known, "", ask)


def test_dropout_that_is_not_switched_off_is_told_from_a_wrong_formula():
    (found,) = asked(mix, lambda a, b, c: torch.nn.functional.dropout(a, 0.5) * b - c)
    assert found.mistake == "result.random" and "drawn at random" in found.message
    (found,) = asked(mix, lambda a, b, c: a.sin() * b - c * b)
    assert not found.mistake and "random" not in found.message


# --- nothing at all ------------------------------------------------------------------------------
def test_a_missing_return_is_told_where_several_results_are_asked_for():
    def both(a, b):
        return a + b, a - b

    exercise("task.both", "both(a[n, m], b[n, m])", hints=HINTS)(both)
    (found,) = told(both, lambda a, b: None)
    assert "is None; perhaps a `return` is missing" in found.message
