"""Claims about the judge of layers: what a class must have is asked for, and said by its name."""

import pytest
import torch
from torch import nn

from autograder.course.asking import Exercise, Sight
from autograder.course.calls import Call, Draw, run_here
from autograder.course.cases import draw_weights
from autograder.judging.layers import judge_layers


class Pair(nn.Module):
    """What the exercise of these tests asks for."""

    def __init__(self, a, b):
        super().__init__()
        self.first, self.last = nn.Linear(a, b), nn.Linear(b, b)

    def forward(self, x):
        return self.last(self.first(x))


class Bare(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.w, self.gain = nn.Parameter(torch.randn(a, b)), nn.Parameter(torch.ones(b))

    def forward(self, x):
        return x @ self.w * self.gain


class Listed(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(a, b) for _ in range(3))
        self.out = nn.Linear(b, b)

    def forward(self, x):
        return self.out(sum(part(x) for part in self.parts))


class Counter(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.register_buffer("steps", torch.ones(a, b), persistent=False)
        self.register_buffer("start", torch.zeros(b))

    def forward(self, x):
        return x @ self.steps + self.start


def made(answer, **members):
    """A class that differs from the answer in what its __init__ makes, or in its forward."""

    def init(self, a, b):
        nn.Module.__init__(self)
        members["init"](self, a, b)

    own = {"forward": members.get("forward", answer.forward)}
    return type(answer.__name__, (nn.Module,), {**own, "__init__": init})


def found(answer, student, calls=None, **words):
    """What the judge finds in a student's class that should be like the answer."""
    draw, name = Draw(3), answer.__name__
    if calls is None:
        weights = draw_weights(draw, answer(2, 3))
        calls = [Call(name, (draw.normal(5, 2),), init=(2, 3), weights=weights, says="a 2, b 3")]
    exercise = Exercise("t", name, lambda draw: calls, ("", "", ""))
    sight = Sight(
        exercise,
        tuple(calls),
        run_here({name: student}, calls),
        run_here({name: answer}, calls),
    )
    return judge_layers(sight, **words)


def one(*args, **words):
    (finding,) = found(*args, **words)
    return finding


def pair(first="first", last="last", **more):
    """Pair with other names for its layers, or other layers under its names."""

    def init(self, a, b):
        setattr(self, first, more.get("layer", nn.Linear)(a, b))
        setattr(self, last, nn.Linear(b, b))

    def forward(self, x):
        return getattr(self, last)(getattr(self, first)(x))

    return made(Pair, init=init, forward=forward)


@pytest.mark.parametrize("answer", [Pair, Bare, Listed, Counter])
def test_the_answer_itself_passes(answer):
    assert found(answer, answer) == found(answer, answer, buffers=True) == []


def test_what_stands_beside_the_layers_is_a_students_own_affair():
    def init(self, a, b):
        Pair.__init__(self, a, b)
        self.spare = nn.Linear(a, 7)
        self.register_buffer("scale", torch.ones(3))

    student = type("Pair", (Pair,), {"__init__": init})
    assert found(Pair, student) == []


@pytest.mark.parametrize(
    ("student", "said"),
    [
        (pair(last="out_proj"), ["no `last`, but `out_proj`"]),
        (pair("fst", "lst"), ["no `first`, but `fst`", "no `last`, but `lst`"]),
        (pair("second", "last"), ["no `first`, but `second`"]),
    ],
)
def test_a_layer_under_another_name_is_said_as_such(student, said):
    finding = one(Pair, student, prefix="pair")
    assert finding.check == "pair.missing layer" and finding.tried == "a 2, b 3"
    assert all(part in finding.message for part in said)


def test_layers_of_one_size_are_told_apart_by_their_names():
    class Three(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.q, self.k, self.v = (nn.Linear(a, b) for _ in range(3))

        def forward(self, x):
            return self.q(x) + self.k(x) + self.v(x)

    def init(self, a, b):
        self.value, self.key, self.query = (nn.Linear(a, b) for _ in range(3))

    student = made(Three, init=init, forward=lambda self, x: self.query(x))
    message = one(Three, student).message
    for short, long in (("q", "query"), ("k", "key"), ("v", "value")):
        assert f"no `{short}`, but `{long}`" in message


def test_a_list_under_another_name_is_said_once():
    def init(self, a, b):
        self.heads = nn.ModuleList(nn.Linear(a, b) for _ in range(3))
        self.out = nn.Linear(b, b)

    message = one(Listed, made(Listed, init=init, forward=lambda self, x: x)).message
    assert message.count("there is no") == 1 and "no `parts`, but `heads`" in message


def test_a_layer_of_another_size_is_not_taken_for_the_lost_one():
    def init(self, a, b):
        self.both = nn.Linear(a, 2 * b)
        self.last = nn.Linear(b, b)

    finding = one(Pair, made(Pair, init=init, forward=lambda self, x: x))
    assert finding.check == "missing layer"
    assert "no `first`" in finding.message and "`both`" in finding.message
    assert "of the same sizes" not in finding.message


@pytest.mark.parametrize(
    ("init", "check", "said"),
    [
        (lambda self, a, b: setattr(self, "parts", [nn.Linear(a, b)] * 3), "plain list", "`parts`"),
        (
            lambda self, a, b: (
                setattr(self, "parts", [nn.Linear(a, b) for _ in range(3)]),
                setattr(self, "out", nn.Linear(b, b)),
            ),
            "plain list",
            "nn.ModuleList",
        ),
        (
            lambda self, a, b: setattr(
                self, "parts", nn.ModuleList(nn.Linear(a, b) for _ in range(2))
            ),
            "missing layer",
            "`parts.2`",
        ),
    ],
)
def test_a_plain_list_is_told_from_a_list_that_is_too_short(init, check, said):
    finding = one(Listed, made(Listed, init=init, forward=lambda self, x: x))
    assert finding.check == check and said in finding.message


def test_a_lost_bias_and_a_wrong_width_are_said():
    bare = one(Pair, pair(layer=lambda a, b: nn.Linear(a, b, bias=False)))
    assert bare.check == "lost bias" and "`first`" in bare.message
    wide = one(Pair, pair(layer=lambda a, b: nn.Linear(a, b + 4)))
    assert wide.check == "wrong width"
    assert (wide.expected, wide.got) == ("shape [3, 2]", "shape [7, 2]")


def test_a_wrong_width_is_said_though_the_call_ends_in_an_error():
    assert one(Pair, pair(layer=lambda a, b: nn.Linear(b + 1, a))).check == "wrong width"


def test_widths_are_looked_at_where_nothing_is_called():
    calls = [Call("Pair", init=(2, 3), inspect=True)]
    assert found(Pair, Pair, calls) == []
    assert one(Pair, pair(layer=lambda a, b: nn.Linear(a, 7)), calls).check == "wrong width"
    assert "`out`" in one(Pair, pair(last="out"), calls).message


def test_a_plain_tensor_is_no_parameter():
    def init(self, a, b):
        self.w, self.gain = torch.randn(a, b), nn.Parameter(torch.ones(b))

    finding = one(Bare, made(Bare, init=init))
    assert finding.check == "not registered" and "nn.Parameter" in finding.message


def test_a_parameter_under_another_name_is_said_as_such():
    def init(self, a, b):
        self.weight, self.gain = nn.Parameter(torch.randn(a, b)), nn.Parameter(torch.ones(b))

    finding = one(Bare, made(Bare, init=init, forward=lambda self, x: x))
    assert "no `w`, but `weight`" in finding.message


def test_a_layer_that_is_another_one_is_found_when_it_is_asked_by_itself():
    class Two(nn.Module):
        def __init__(self, a, b):
            super().__init__()
            self.first, self.last = nn.Linear(a, b), nn.Linear(a, b)

    def init(self, a, b):
        self.first = self.last = nn.Linear(a, b)

    draw = Draw(3)
    weights, x = draw_weights(draw, Two(2, 3)), draw.normal(5, 2)
    calls = [
        Call("Two", (x,), init=(2, 3), weights=weights, method=name) for name in ("first", "last")
    ]
    assert found(Two, Two, calls) == []
    finding = one(Two, made(Two, init=init), calls)
    assert finding.check == "wrong layer" and "`first`" in finding.message


@pytest.mark.parametrize(
    ("init", "check"),
    [
        (lambda self: setattr(self, "steps", torch.ones(2, 3)), "buffer.not registered"),
        (lambda self: setattr(self, "steps", nn.Parameter(torch.ones(2, 3))), "is a parameter"),
        (lambda self: setattr(self, "other", nn.Parameter(torch.ones(2, 3))), "is a parameter"),
        (lambda self: self.register_buffer("steps", torch.ones(2, 3)), "buffer.stored"),
        (lambda self: self.register_buffer("count", torch.ones(2, 3)), "buffer.name"),
        (lambda self: self.register_buffer("steps", torch.ones(2, 1), False), "buffer.shape"),
    ],
)
def test_what_is_wrong_with_a_buffer_is_said(init, check):
    def whole(self, a, b):
        init(self)
        if check != "buffer.not registered":
            self.register_buffer("start", torch.zeros(b))

    student = made(Counter, init=whole, forward=lambda self, x: x @ torch.ones(2, 3))
    assert one(Counter, student, buffers=True).check.endswith(check)
    assert found(Counter, student) == [], "a buffer is asked for only where the exercise says so"


def test_a_buffer_that_should_be_stored_must_be():
    def init(self, a, b):
        self.register_buffer("steps", torch.ones(a, b), persistent=False)
        self.register_buffer("start", torch.zeros(b), persistent=False)

    assert one(Counter, made(Counter, init=init), buffers=True).check == "buffer.not stored"


def test_where_nothing_is_to_be_learned_nothing_is():
    def init(self, a, b):
        Counter.__init__(self, a, b)
        self.rate = nn.Parameter(torch.ones(1))

    finding = one(Counter, type("Counter", (Counter,), {"__init__": init}), buffers=True)
    assert finding.check == "buffer.is a parameter" and "`rate`" in finding.message


def test_what_else_could_not_be_given_numbers_is_said():
    draw = Draw(3)
    weights = {"start": draw.normal(3)}
    calls = [Call("Counter", (draw.normal(5, 2),), init=(2, 3), weights=weights)]

    def init(self, a, b):
        self.register_buffer("steps", torch.ones(a, b), persistent=False)

    assert found(Counter, Counter, calls) == []
    finding = one(Counter, made(Counter, init=init, forward=lambda self, x: x), calls)
    assert finding.check == "not set" and "`start`" in finding.message


def test_an_error_while_building_is_explained_as_one():
    def init(self, a, b):
        raise NotImplementedError

    assert one(Pair, made(Pair, init=init)).check == "unanswered"


def test_words_and_names_can_be_an_exercises_own():
    finding = one(
        Pair,
        pair(layer=lambda a, b: nn.Linear(a, 7)),
        prefix="heads",
        names={"wrong width": "size"},
        says={"wrong width": "{layer}: {got}, not {expected}."},
    )
    assert (finding.check, finding.message) == ("heads.size", "first: [7, 2], not [3, 2].")


def test_wrong_values_are_left_to_the_usual_judge():
    student = type("Pair", (Pair,), {"forward": lambda self, x: self.first(x)})
    assert one(Pair, student).check == "t.values"
