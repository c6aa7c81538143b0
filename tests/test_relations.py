"""What is said of a wrong result that no author has foreseen: of its rows, parts and gradients."""

import pytest
import torch

from autograder import Call, exercise
from autograder.judging.relation import relation
from tests.test_relation import HINTS, product, seen, told


# --- one tensor ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("got", "name", "says"),
    [
        (lambda a, b: a * b * a.mean(2, True), "result.rows scaled row 2", "a factor of its own"),
        (
            lambda a, b: a * b * torch.linspace(1, 2, a.shape[2]),
            "result.rows scaled place 2",
            "another one at each place",
        ),
        (
            lambda a, b: a * b + torch.arange(a.shape[2]),
            "result.rows offset place 2",
            "such as a bias",
        ),
        (lambda a, b: a * b + a.sum(2, True), "result.rows offset row 2", "in each row"),
        (lambda a, b: (a * b).relu() - 3 * (-a * b).relu(), None, ""),
        (lambda a, b: a * b * (a > b), "result.left at 0", "0 came back"),
        (lambda a, b: a * b.abs(), "result.signs", "the other sign"),
        (
            lambda a, b: (a * b).sum((0, 2), True).expand_as(a),
            "result.added up axes 0 and 2",
            "axes 0 and 2",
        ),
        (lambda a, b: (a * b)[:, 0], "result.only first 1", "only the first entry"),
        (lambda a, b: (a * b)[:, 1:], "result.missing first 1", "the first 1 are missing"),
        (lambda a, b: torch.cat([a * b, a], 2), "result.too many behind 2", "too many behind"),
    ],
)
def test_rows_places_and_pieces_of_the_right_result_are_told(got, name, says):
    found = relation(seen(got, product))
    assert (found[0] if found and found[0] else None) == name and (not name or says in found[1])


def test_where_it_is_wrong_is_told_with_what_is_vague():
    def first_lost(a, b):
        return torch.cat([torch.zeros_like(a[:, :1]), (a * b)[:, 1:]], 1)

    name, said = relation(seen(first_lost, product))
    assert name == "result.left at 0" and said.endswith("Along axis 1 all are right but the first.")


def test_numbers_for_true_and_false_are_told():
    name, said = relation(seen(lambda a, b: (a > b).float(), lambda a, b: a > b))
    assert "1 and 0" in said and said.endswith("else it is right.")
    name, said = relation(seen(lambda a, b: (a <= b).float(), lambda a, b: a > b))
    assert said.endswith("the wrong way round.")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.triu(), "right on and above the diagonal"),
        (lambda t: t.tril(), "right on and below the diagonal"),
        (lambda t: t - t.tril().triu(), "wrong on the diagonal of the last two axes only"),
    ],
)
def test_the_side_of_a_diagonal_that_is_wrong_is_told(change, says):
    def square(a, b):
        return a @ a.mT

    def wrong(a, b):
        right = square(a, b)
        return torch.where(change(torch.ones_like(right)) > 0, right, right.cos() - 3)

    assert says in relation(seen(wrong, square))[1]


# --- several results -----------------------------------------------------------------------------
@exercise("task.three", "three(a[n, m], b[n, m])", hints=HINTS)
def three(a, b, lost=1.0):
    return a + lost * b, a - b, lost * a * b.sin()


three.wrong("three.b lost", "The other input does not count.", lost=0.3)


def test_a_known_mistake_is_named_where_it_is_made_in_one_result_of_several():
    (found,) = told(three, lambda a, b: (a + b, a - b, 0.3 * a * b.sin()))
    assert found.mistake == "result.factor"  # a simple relation comes first
    (found,) = told(three, lambda a, b: (a + 0.3 * b, a - b, a * b.sin()))
    assert found.mistake == "three.b lost"
    assert "Only part 1 of the result is wrong, and in this way: The other input" in found.message


def test_what_is_right_is_told_where_the_mistake_has_no_name():
    (found,) = told(three, lambda a, b: (a + b, a - b, (a * b).cos()))
    assert not found.mistake
    assert "Right in every call: part 1 of the result, part 2 of the result." in found.message


def test_the_calls_that_come_out_right_are_counted():
    def cases(draw):
        return [Call("", (draw.normal(3, 4), k), says=f"k is {k}") for k in (1, 2, 3)]

    def power(x, k):
        return x**k

    exercise("task.power", cases, hints=HINTS)(power)
    (found,) = told(power, lambda x, k: x if k == 1 else (x * k).cos())
    assert "1 of 3 calls gives what it should (k is 1)." in found.message


def test_a_large_whole_number_that_is_off_by_one_is_not_called_right():
    def both(n, m):
        return n * m, n + m

    exercise("task.both", numbers, hints=HINTS)(both)
    (found,) = told(both, lambda n, m: (n * m + 1, (n + m) % 7))
    assert "Right" not in found.message


# --- plain numbers -------------------------------------------------------------------------------
def numbers(draw):
    return [Call("", (n, 3 * n + 1)) for n in (401, 503, 607, 709)]


def test_plain_numbers_that_are_off_alike_in_every_call_are_told():
    def area(n, m):
        return n * m

    exercise("task.area", numbers, hints=HINTS)(area)
    (found,) = told(area, lambda n, m: n * m - 51234)
    assert found.mistake == "numbers.offset" and "51" not in found.message
    (found,) = told(area, lambda n, m: n * (m + 1))
    assert found.mistake == "altered.m one more"


def test_a_mean_over_one_number_too_many_is_told():
    def spread(x):
        return float(x.var())

    exercise(
        "task.spread", lambda draw: Call("", (draw.normal(draw.integer(5, 20)),)), hints=HINTS
    )(spread)
    (found,) = told(spread, lambda x: float(x.var(unbiased=False)))
    assert found.mistake == "result.one more the size of axis 0 of input 1"


# --- gradients -----------------------------------------------------------------------------------
@exercise("task.slope", "slope(x[b, n], y[b, n])", gradients=True, hints=HINTS)
def slope(x, y):
    return x.sin() * y


def test_a_factor_of_a_gradient_is_told_and_which_gradients_are_right():
    def half(x, y):
        x = x / 2 + x.detach() / 2
        return x.sin() * y

    (found,) = told(slope, half)
    assert found.mistake == "gradient.result.factor" and "here 0.5" in found.message
    assert "Right are the gradients of: input 1." in found.message


# --- what was done to an input -------------------------------------------------------------------
@exercise("task.look_at", "look_at(q[b, n, h], k[b, m, h])", hints=HINTS)
def look_at(q, k):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ k


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (
            lambda q, k: (q @ k.mT / k.shape[1] ** 0.5).softmax(-1) @ k,
            "as if divided by the root of the size of axis 1 of `k` where the root of the size of "
            "`q`'s last axis belongs",
        ),
        (
            lambda q, k: (q @ k.mT / (q.shape[-1] / 2) ** 0.5).softmax(-1) @ k,
            "`q` is multiplied by the root of 2",
        ),
        (lambda q, k: look_at(q / len(q), k), "`q` is divided by the size of axis 0 of `q`"),
        (lambda q, k: look_at(q, k[:, 1:]), "the first entry of `k` is not looked at"),
    ],
)
def test_a_scale_by_another_size_and_an_entry_that_is_passed_over_are_named(program, says):
    (found,) = told(look_at, program)
    assert found.mistake.startswith("altered.") and says in found.message


def in_dicts(draw):
    names = ("one", "two", "three")
    return Call("", (draw.normal(5, 4), {name: draw.normal(4, 4) for name in names}))


def test_tensors_in_a_dict_that_are_taken_for_one_another_are_named():
    def chain(x, layers):
        return (x @ layers["one"]).tanh() @ layers["two"] * (x @ layers["three"])

    exercise("task.chain", in_dicts, hints=HINTS)(chain)

    def with_names(*names):
        return lambda x, layers: chain(
            x, {n: layers[m] for n, m in zip(("one", "two", "three"), names, strict=True)}
        )

    (found,) = told(chain, with_names("two", "one", "three"))
    assert found.mistake == "exchanged.one and two"
    (found,) = told(chain, with_names("one", "one", "one"))
    assert found.mistake == "exchanged.one for all"
    assert "`one` is used where `two` and `three` belong." in found.message
    assert told(chain, with_names("one", "two", "three")) == []


def test_a_mistake_that_divides_0_by_0_is_named_where_0_came_back():
    def before(x, own=1):
        return x.cumsum(0) / torch.arange(own, len(x) + own)[:, None]

    def shifted(x):
        sums = x.cumsum(0) - x
        return sums / torch.arange(len(x))[:, None]

    exercise("task.before", lambda draw: Call("", (draw.normal(5, 4),)), hints=HINTS)(before)
    before.wrong("before.itself", "The entry itself does not count.", shifted)
    (found,) = told(before, lambda x: shifted(x).nan_to_num())
    assert found.mistake == "before.itself"
