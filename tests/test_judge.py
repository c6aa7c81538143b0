"""What is called different, whatever comes back; and how mistakes and errors are put in words."""

import math
from dataclasses import replace

import pytest
import torch

from autograder.course.asking import Exercise, Finding, Sight, Verdict
from autograder.course.calls import Call, Draw, Outcome, run_here
from autograder.course.course import Course
from autograder.course.sketch import sketch
from autograder.judging.compare import compare, judge, name_mistake
from autograder.judging.difference import difference, is_nameless, matches
from autograder.judging.explain import explain_error
from autograder.sandbox.inside.sandbox_values import Other
from tests.asked import known
from tests.conftest import ROOT
from tests.forms import share

RTOL = 1e-4
X = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.25, -8.0]])


def changed(place: int, value: float) -> torch.Tensor:
    x = X.clone()
    x.view(-1)[place] = value
    return x


@pytest.mark.parametrize(
    "got",
    [
        X.double(),
        X.tolist(),
        X.t().contiguous().t(),
        X + 0.5 * RTOL * 8.0,
        X.clone().requires_grad_(),
    ],
    ids=["float64", "list", "strided", "within the tolerance", "with a gradient"],
)
def test_the_same_values_in_another_form_are_right(got):
    assert difference(got, X, RTOL) is None


@pytest.mark.parametrize(
    ("got", "kind"),
    [
        (changed(5, math.nan), "nan"),
        (changed(0, math.inf), "values"),
        (changed(0, 1 + 3 * RTOL * 8.0), "values"),
        ((X * 1.1).half() / 1.1, "values"),
        (X.to(torch.complex64), "dtype"),
        (X.bool(), "values"),
        (X.long(), "values"),
        (X[None], "shape"),
        (X[:, :1], "shape"),
        (torch.empty(0), "shape"),
        (torch.tensor(1.0), "shape"),
        (X.t(), "shape"),
        (torch.zeros(0, 2**40), "shape"),
        ([[1.0], [1.0, 2.0]], "type"),
        ([10**400], "type"),
        (10**400, "values"),
        (1.0, "shape"),
        (True, "type"),
        (None, "type"),
        ("1", "type"),
        ({"a": X}, "type"),
        ((X,), "type"),
        (Other("numpy.ndarray"), "type"),
    ],
)
def test_anything_else_is_different_and_said_so_without_its_value(got, kind):
    found = difference(got, X, RTOL)
    assert found is not None and found.kind == kind
    for text in (found.text, found.expected, found.got):
        assert "8." not in text and "tensor(" not in text and "0000000" not in text


@pytest.mark.parametrize("got", [math.nan, math.inf, 3.01, "3", None, True, [3], 10**400])
def test_a_number_is_compared_as_one(got):
    assert difference(got, 3, RTOL) is not None
    assert difference(3.0, 3, RTOL) is None
    assert difference(torch.tensor(3), 3, RTOL) is None


@pytest.mark.parametrize("got", [1, 1.0, "True", None, torch.tensor([True, True])])
def test_true_is_only_true(got):
    assert difference(got, True, RTOL) is not None
    assert difference(torch.tensor(True), True, RTOL) is None


def test_nan_and_infinity_are_right_where_they_are_expected():
    expected = torch.tensor([math.nan, math.inf, -math.inf, 1.0])
    assert difference(expected.clone(), expected, RTOL) is None
    assert difference(-expected, expected, RTOL) is not None
    assert difference(torch.zeros(4), expected, RTOL) is not None


def test_zeros_are_no_answer_to_small_numbers():
    assert difference(torch.zeros(3), torch.tensor([1e-4, 2e-4, -1e-4]), RTOL) is not None


def test_a_tuple_is_compared_part_by_part():
    assert difference((X, [X]), (X, (X,)), RTOL) is None
    assert "part 2" in difference((X, X + 1), (X, X), RTOL).text
    assert difference((X,), (X, X), RTOL).kind == "length"
    assert difference({"a": X, "b": X}, {"a": X}, RTOL).kind == "length"


GRADIENTS = {"input 0": X, "q.weight": X}


@pytest.mark.parametrize("got", [None, {}, [1], {"input 0": X}, {**GRADIENTS, "q.weight": None}])
def test_a_gradient_that_is_not_there_is_a_mistake(got):
    expected = Outcome(X, gradients=GRADIENTS)
    assert matches(expected, expected, RTOL)
    assert not matches(Outcome(X, gradients=got), expected, RTOL)


def test_rounding_where_the_gradient_is_zero_by_algebra_is_right():
    """Rounding grows with what cancels: the keys' bias has a gradient of exactly zero."""
    expected = Outcome(X, gradients={**GRADIENTS, "k.bias": torch.zeros(2)})
    rounded = Outcome(X, gradients={**GRADIENTS, "k.bias": torch.tensor([2.4e-6, -3e-5])})
    wrong = Outcome(X, gradients={**GRADIENTS, "k.bias": torch.tensor([0.0, 0.01])})
    assert matches(rounded, expected, RTOL)
    assert not matches(wrong, expected, RTOL)


# --- one question --------------------------------------------------------------------------------
EXERCISE = Exercise("double.it", "double", lambda draw: [], ("1", "2", "3"))


def sight(*outcomes, expected=None, mistakes=()) -> Sight:
    wanted = expected or [Outcome(2 * X)] * len(outcomes)
    calls = [Call("double", (X,), says=f"call {i}") for i, _ in enumerate(outcomes)]
    return Sight(EXERCISE, tuple(calls), outcomes, tuple(wanted), mistakes)


def error(kind: str = "RuntimeError", message: str = "no") -> dict:
    return {"kind": "raised", "type": kind, "message": message, "line": 3, "statement": "x"}


def test_no_gradient_is_right_where_it_is_zero_and_another_call_has_one():
    """The weight of one token alone is 1, whatever its query is: a running softmax that begins with
    the first key never reads it."""
    wanted = (Outcome(X, gradients={"q": X}), Outcome(X, gradients={"q": 0 * X}))
    whole, none = Outcome(X, gradients={"q": X}), Outcome(X, gradients={"q": None})
    assert judge(sight(whole, none, expected=wanted)) == []
    assert judge(sight(none, whole, expected=wanted)) != []
    assert judge(sight(none, none, expected=wanted)) != []
    assert judge(sight(none, none, expected=(wanted[1], wanted[1]))) != []


def test_one_wrong_call_among_right_ones_is_found():
    right, wrong = Outcome(2 * X), Outcome(X)
    assert judge(sight(right, right)) == []
    found = judge(sight(right, wrong))
    assert found[0].fails and found[0].tried == "call 1"


def test_an_error_that_is_expected_must_come_and_be_of_its_kind():
    expected = [Outcome(error=error("ValueError"))]
    assert judge(sight(Outcome(error=error("ValueError")), expected=expected)) == []
    assert judge(sight(Outcome(error=error("TypeError")), expected=expected))[0].fails
    assert judge(sight(Outcome(X), expected=expected))[0].fails


def test_an_input_that_was_changed_is_told():
    found = judge(sight(Outcome(2 * X, after={"0": X})))
    assert found[0].check == "double.it.input changed"


def test_a_mistake_is_named_only_where_every_call_matches_it():
    known = (("added", "You added.", (Outcome(X + 2), Outcome(X + 2))),)
    both = sight(Outcome(X + 2), Outcome(X + 2), mistakes=known)
    assert name_mistake(both) == ("added", "You added.")
    assert compare(both)[0].check == "added" and "You added." in compare(both)[0].message
    one = sight(Outcome(X + 2), Outcome(X + 3), mistakes=known)
    assert name_mistake(one) is None


def test_a_judge_of_its_own_that_stumbles_gives_no_points():
    def stumbles(_):
        raise ZeroDivisionError

    odd = sight(Outcome(2 * X))
    found = judge(replace(odd, exercise=replace(EXERCISE, judge=stumbles)))
    assert found[0].fails


@pytest.mark.parametrize(
    ("kind", "message", "name"),
    [
        ("NotImplementedError", "", "unanswered"),
        ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)", "shapes"),
        ("TypeError", "forward() missing 1 required positional argument: 'x'", "signature"),
        ("NameError", "name 'q' is not defined", "unknown name"),
        ("SystemExit", "0", "exit"),
        ("Nobody'sError", "(.*" * 100, "raised"),
    ],
)
def test_an_error_is_put_in_words(kind, message, name):
    found = explain_error(error(kind, message), "double")
    assert found.fails and found.check.startswith(name) and found.message
    assert "Traceback" not in found.message


# --- every exercise ------------------------------------------------------------------------------
ODD = [None, True, 0, [], (), {}, "", math.nan, 10**400, {"a": [{}]}, Other("x.Y"), [[1], [1, 2]]]
ODD += [torch.empty(0), torch.zeros(1, dtype=torch.complex64), torch.tensor(True)]


@pytest.mark.parametrize("task", share(Course.at(ROOT).exercises, 4))
def test_odd_values_and_errors_earn_nothing_anywhere(task):
    exercise = Course.at(ROOT).exercises[task]
    calls = tuple(exercise.cases(Draw(1)))
    answers = known(task, 1)
    fakes = [Outcome(value=v) for v in ODD]
    kinds = {"RuntimeError", "ValueError", "NotImplementedError", "TypeError", "IndexError"}
    kinds |= {o.error["type"] for _, _, os in answers.mistakes for o in os if o.error}
    fakes += [Outcome(error=error(kind)) for kind in kinds]
    for fake in fakes:
        seen = Sight(exercise, calls, (fake,) * len(calls), answers.expected, answers.mistakes)
        assert judge(replace(seen, stages=answers.stages)), fake


# --- what is changed in place --------------------------------------------------------------------
def in_place(change) -> Outcome:
    """What comes of a function that changes a list of tensors and gives nothing back."""
    (outcome,) = run_here({"f": change}, [Call("f", ([X.clone(), X.clone()],), {"rate": 0.5})])
    return outcome


def halve(them, rate):
    for one in them:
        one.mul_(rate)


def only_the_first(them, rate):
    them[0].mul_(rate)


def copies(them, rate):
    them = [rate * one for one in them]


def test_what_is_changed_in_place_is_compared():
    def told(change):
        return judge(replace(sight(in_place(change)), expected=(in_place(halve),), mistakes=()))

    assert told(halve) == []
    (found,) = told(only_the_first)
    assert "first argument, after the call," in found.message
    (found,) = told(copies)
    assert "should be changed in place" in found.message


def test_a_mistake_in_what_is_changed_in_place_is_named():
    known = [
        ("copy", "Only a copy is changed.", (in_place(copies),)),
        ("first", "Only the first is changed.", (in_place(only_the_first),)),
    ]
    for change, name in ((copies, "copy"), (only_the_first, "first")):
        seen = sight(in_place(change))
        (found,) = judge(replace(seen, expected=(in_place(halve),), mistakes=known))
        assert found.check == name
    seen = sight(in_place(lambda them, rate: [one.add_(1) for one in them] and None))
    (found,) = judge(replace(seen, expected=(in_place(halve),), mistakes=known))
    assert found.check.endswith(".values")


# --- values of other kinds -----------------------------------------------------------------------
@pytest.mark.parametrize(
    "expected, other",
    [
        ({1: X, (2, "a"): 3}, {1: X, (2, "b"): 3}),
        ({"b", "a", "c"}, {"b", "a", "d"}),
        (torch.fft.fft(X), torch.fft.fft(X) + 1j),
        (3 + 4j, 3 + 5j),
        (10**30, 10**30 + 1),
        (2**53 + 1, 2**53),
        (True, 1),
        ("yes", "no"),
    ],
)
def test_a_value_of_any_plain_kind_crosses_and_is_compared(expected, other):
    one, two, three = (
        run_here({"f": lambda give=give: give}, [Call("f")]) for give in (expected, expected, other)
    )
    known = replace(sight(*one), expected=two, mistakes=())
    assert judge(known) == []
    assert judge(replace(known, outcomes=three))


def test_arguments_arrive_as_they_are_written():
    given = {1: "a", (2, 3): ["b"], None: {4, 5}, "x": 2j}
    seen = []
    run_here({"f": lambda value: seen.append(value)}, [Call("f", (given,))])
    assert {k: v for k, v in seen[0].items() if k != "x"} == {
        k: v for k, v in given.items() if k != "x"
    }
    assert type(seen[0][None]) is set and seen[0]["x"] == 2j


def test_a_missing_key_is_named_where_the_exercise_asks_for_it_and_not_where_it_is_a_value():
    def told(given, expected):
        known = Outcome({**expected, "more": 1})
        seen = Sight(EXERCISE, (Call("f", (given,)),), (Outcome({"more": 1}),), (known,), ())
        (found,) = judge(seen)
        return found.message

    assert "mean is missing" in told("a cat sat", {"mean": 1})
    for given, expected in (("a cat sat", {"cat": 1}), ([4, 5], {4: 1, "mean": 2}), ("", {"3": 1})):
        message = told(given, expected)
        assert "other keys" in message and "missing" not in message


# --- a judge of its own and numbers that are none ------------------------------------------------
def near(sight):
    """As an author writes it: comparisons with NaN are False, so that it finds nothing."""
    for got, right in zip(sight.outcomes, sight.expected, strict=True):
        if abs(float(torch.as_tensor(got.value).float().mean()) - float(right.value.mean())) > 99:
            return [Finding("far", Verdict.WRONG, "Far off.")]
    return []


def judged_by(judge_of_its_own, value, right=2 * X, **keywords):
    own = replace(EXERCISE, judge=judge_of_its_own, **keywords)
    return judge(replace(sight(Outcome(value), expected=[Outcome(right)]), exercise=own))


@pytest.mark.parametrize(
    "value", [X * math.nan, math.nan, X / 0, [1.0, math.nan], (X, {"a": X.log() * math.nan})]
)
def test_nan_earns_nothing_where_a_judge_of_its_own_looks_past_it(value):
    (found,) = judged_by(lambda sight: [], value)
    assert found.fails and found.tried == "call 0" and "only finite numbers" in found.message


def test_a_judge_that_compares_with_a_limit_gives_nan_no_points():
    assert judged_by(near, 2 * X) == []
    (found,) = judged_by(near, X * math.nan)
    assert found.fails and "holds NaN" in found.message


def test_what_is_not_finite_passes_where_it_is_right_or_belongs_to_another_step():
    infinite = torch.tensor([0.0, -math.inf])
    assert judged_by(lambda sight: [], infinite, right=infinite) == []
    assert judged_by(lambda sight: [], infinite, right=torch.tensor([0.0, -1e9])) == []
    assert judged_by(lambda sight: [], X * math.nan, stages=("first", "last")) == []
    assert judged_by(lambda sight: [], torch.tensor([3]), right=torch.tensor([4])) == []


@pytest.mark.parametrize("kind", [NameError, AssertionError, StopIteration, ImportError])
def test_a_wrong_answer_earns_nothing_whatever_a_judge_of_its_own_raises(kind):
    def stumbles(_):
        raise kind("a slip of the author's")

    assert judged_by(stumbles, X)[0].fails


# --- what is told of values that are no tensors --------------------------------------------------
@pytest.mark.parametrize(
    "got, expected, said, shown",
    [
        ([4, 9, 6], [4, 5, 6], "has another value at place 2", ("", "another value at place 2")),
        ([4.5, 9.5], [4.5, 5.5], "has another value at place 2", ("", "another value at place 2")),
        (["a", "b"], ["a", "c"], "has another value at place 2", ("", "another value at place 2")),
        (
            {"hits": 9},
            {"hits": 5},
            "value under key 'hits'",
            ("", "another value under key 'hits'"),
        ),
        ({"n": [1, 2]}, {"n": [1, 5]}, "result['n'] has another value at", ("", None)),
        ([[1], [2]], [[1], [5]], "part 2 of the result has another value at place 1", ("", None)),
        (["5"], [5], "part 1 of the result should be a number", ("a whole number", "text")),
        ([None], [5], "part 1 of the result is None", ("a whole number", "None")),
        ([4], [4, 5], "holds 1 things, not 2", ("a list of 2", "a list of 1")),
        (math.nan, 5, "the result is NaN", ("a whole number", "NaN")),
        (True, 5, "should be a number", ("a whole number", "True or False")),
        (torch.tensor(9), 5, "the result is too large", ("", "another value")),
        (9, 5, "the result is too large", ("", "another value")),
        ("fine", "five", "is another text than expected", ("", "another text")),
        (True, False, "is another value than expected", ("", "another value")),
        (["a"], "a", "should be text", ("text", "a list of 1")),
        (5, None, "should be None", ("None", "a whole number")),
        ("5", 5, "should be a number", ("a whole number", "text")),
        (torch.tensor([1, 2]), 5, "has shape [2], expected []", ("shape []", "shape [2]")),
    ],
)
def test_of_lists_and_dicts_the_place_is_told_and_never_the_value(got, expected, said, shown):
    found = difference(got, expected, RTOL)
    assert said in found.text
    assert found.expected == shown[0] and (shown[1] is None or found.got == shown[1])
    assert "5" not in found.text + found.expected + found.got


def test_what_should_only_change_its_input_is_told_to_return_nothing():
    def halve_and_return(them, rate):
        halve(them, rate)
        return them

    (found,) = judge(replace(sight(in_place(halve_and_return)), expected=(in_place(halve),)))
    assert found.fails and "Return nothing" in found.message


# --- two more of mistakes ------------------------------------------------------------------------
def test_a_mistake_whose_name_begins_with_the_tasks_is_one():
    assert is_nameless("text.conv.values", "text.conv") and is_nameless("text.dtype", "text")
    assert not is_nameless("text.conv.no relu", "text.conv")
    assert not is_nameless("other.values", "text")


def test_a_dict_is_known_again_whatever_the_order_of_its_keys():
    ids, keep = torch.arange(6.0), torch.tensor([True, False, True])
    one, other = ({"ids": ids, "keep": keep}, {"keep": keep, "ids": ids})
    assert sketch(Outcome(value=one)) == sketch(Outcome(value=other))
    assert sketch(Outcome(value=one)) != sketch(Outcome(value={"ids": ids, "keep": ~keep}))
