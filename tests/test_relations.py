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


# --- a mistake that explains a part --------------------------------------------------------------
def two_ways(x, y, times=1.0, sign=1.0):
    return (x @ y) * times, (x @ y).cumsum(1) * sign + x.sum()


@pytest.fixture(scope="module")
def known_ways():
    exercise("task.two_ways", "two_ways(x[n, m], y[m, k])", hints=HINTS)(two_ways)
    two_ways.wrong("ways.half", "The product counts half.", times=0.5)
    two_ways.wrong(
        "ways.rows", "It runs down the rows.",
        lambda x, y: (x @ y, (x @ y).cumsum(0) + x.sum()),
    )  # fmt: skip
    two_ways.wrong(
        "ways.both", "All is squared.",
        lambda x, y: ((x @ y) ** 2, ((x @ y) ** 2).cumsum(1) + x.sum()),
    )  # fmt: skip
    return two_ways


def test_results_that_are_wrong_in_different_ways_are_each_told(known_ways):
    (found,) = told(known_ways, lambda x, y: ((x @ y) ** 2, (x @ y).cumsum(0) + x.sum()))
    assert found.mistake == "ways.both + ways.rows"
    assert "Part 1 of the result: All is squared." in found.message
    assert "Part 2 of the result: It runs down the rows." in found.message


def test_an_author_s_mistake_in_one_result_is_told_before_a_changed_operation():
    def waves(x, y, times=1.0):
        return (x @ y * times).sin(), (x @ y * times).cumsum(0)

    exercise("task.waves", "waves(x[n, m], y[m, k])", hints=HINTS)(waves)
    (found,) = told(waves, lambda x, y: ((2 * x @ y).sin(), (x @ y).cumsum(0)))
    assert found.mistake.startswith("altered.operation")
    waves.wrong("waves.double", "The product counts twice.", times=2.0)
    (found,) = told(waves, lambda x, y: ((2 * x @ y).sin(), (x @ y).cumsum(0)))
    assert found.mistake == "waves.double" and "Only part 1 of the result is" in found.message


def test_a_result_that_no_mistake_explains_is_told_to_be_wrong_in_another_way(known_ways):
    (found,) = told(known_ways, lambda x, y: ((x @ y) ** 2, (x @ y).sin()))
    assert "Part 1 of the result: All is squared." in found.message
    assert "Wrong in another way: part 2 of the result." in found.message


def squares(x, power=2.0):
    return x**power + x.sum(0)


@pytest.fixture(scope="module")
def known_squares():
    exercise("task.squares", "squares(x[n, m])", hints=HINTS)(squares)
    squares.wrong("squares.tanh", "A tanh is taken.", lambda x: x.tanh() + x.sum(0))
    squares.wrong("squares.huge", "The last row is huge.", lambda x: last(squares(x), 1e9))
    return squares


def last(t, number):
    t = t.clone()
    t[-1] = number
    return t


def test_a_mistake_in_some_rows_only_is_named(known_squares):
    def some(x):
        return torch.cat((squares(x)[:2], (x.tanh() + x.sum(0))[2:]))

    (found,) = told(known_squares, some)
    assert found.mistake == "squares.tanh"
    assert "Wherever it is wrong, it is wrong in this way: A tanh is taken." in found.message


def test_a_mistake_with_huge_numbers_elsewhere_explains_nothing(known_squares):
    def other(x):
        return torch.cat((x.sin()[:1] * 7 + x.cos()[:1], squares(x)[1:]))

    (found,) = told(known_squares, other)
    assert found.mistake != "squares.huge" and "huge" not in found.message


def test_a_mistake_whose_numbers_come_back_negative_is_named_with_that(known_squares):
    (found,) = told(known_squares, lambda x: -(x.tanh() + x.sum(0)))
    assert found.mistake == "squares.tanh + result.sign"
    assert "Two things at once. A tanh is taken. And beside that: each number has" in found.message


# --- the form of several results -----------------------------------------------------------------
def parted(x):
    return x.cos(), x.sin(), x.exp()


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (lambda x: torch.stack(parted(x), 1), "results.in one"),
        (lambda x: torch.cat(parted(x), -1), "results.in one"),
        (lambda x: torch.stack((x.sin(), x.exp(), x.cos())), ""),
    ],
)
def test_several_results_in_one_tensor_are_told(program, name):
    exercise("task.parted", "parted(x[n, m])", hints=HINTS)(parted)
    (found,) = told(parted, program)
    assert found.mistake == name


@pytest.mark.parametrize(
    ("program", "name", "says"),
    [
        (lambda x: (x.sin().cumsum(0), x), "results.too many", "Number 1 of the 2 things"),
        (lambda x: list(x.sin().cumsum(0)), "results.in pieces", "stack them, axis 0"),
        (lambda x: list(x.sin().cumsum(0).split(1, 1)), "results.in pieces", "cat them, axis 1"),
    ],
)
def test_one_result_among_others_or_in_pieces_is_told(program, name, says):
    def whole(x):
        return x.sin().cumsum(0)

    exercise("task.whole", "whole(x[n, m])", hints=HINTS)(whole)
    (found,) = told(whole, program)
    assert found.mistake == name and says in found.message


def test_infinity_where_0_belongs_and_a_mask_of_numbers_are_told():
    def closed(x, hidden):
        return x.masked_fill(hidden, 0.0)

    exercise("task.closed", "closed(x[n, m], hidden[n, m].bool())", hints=HINTS)(closed)
    (found,) = told(closed, lambda x, h: x.masked_fill(h, -torch.inf))
    assert found.mistake == "result.-inf for 0"

    def later(n):
        return torch.ones(n, n).triu(1).bool()

    exercise("task.later", "later(n)", hints=HINTS)(later)
    (found,) = told(later, lambda n: torch.full((n, n), -torch.inf).triu(1))
    assert "-inf and 0 stand where True and False are asked for, else it is right" in found.message


def test_a_size_that_is_used_for_another_is_named():
    def count(layers, heads, size, tokens):
        return 2 * layers * heads * size * tokens + size

    exercise("task.count", "count(layers, heads, size, tokens)", times=4, hints=HINTS)(count)
    (found,) = told(count, lambda a, b, c, d: 2 * a * b * d * d + d)
    assert found.mistake == "exchanged.tokens for size"
    assert found.message.startswith("`tokens` is used where `size` belongs.")
