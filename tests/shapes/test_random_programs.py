"""Random true shapes in every notation: nobody is accused, whatever the style."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.shapes import check_source, plan
from tests.forms import examples

# Roles are spelled in the comments as one of these ways has it.
SPELLED = (
    {"b": "batch_size", "s": "seq_len", "n": "num_heads", "d": "head_size"},
    {"b": "batch", "s": "seq", "n": "heads", "d": "head_dim"},
    {"b": "bs", "s": "T", "n": "nh", "d": "hs"},
    {"b": "B", "s": "S", "n": "N", "d": "D"},
    {"b": "β", "s": "σ", "n": "ν", "d": "δ"},
    {"b": "b", "s": "t", "n": "h", "d": "d"},
)
PRODUCTS = ("{} * {}", "{}*{}", "({} * {})", "{} · {}")
BRACKETS = ("[{}]", "({})", "torch.Size([{}])", "shape: [{}]", "-> [{}]", "size ({})")
CALL = "f(x[batch_size, seq_len, num_heads, head_size])"


@st.composite
def programs(draw):
    """A function of a few steps with a true comment at each, all in one style."""
    words = draw(st.sampled_from(SPELLED))
    product, bracket = draw(st.sampled_from(PRODUCTS)), draw(st.sampled_from(BRACKETS))
    bare = draw(st.sampled_from(("", "", " x ", ", ")))
    place = draw(st.sampled_from(("behind", "above", "below")))
    arrows = draw(st.sampled_from(("", "", " -> ", " => ", " → ", " --> ")))

    def dim(factors):
        text = words[factors[0]] if factors[0] in words else factors[0]
        for factor in factors[1:]:
            text = product.format(text, words[factor])
        return text

    def shape(dims):
        texts = [dim(d) for d in dims]
        if bare and len(texts) > 1 and not any("·" in t or "*" in t for t in texts):
            return bare.join(texts)
        return bracket.format(", ".join(texts))

    dims = [["b"], ["s"], ["n"], ["d"]]
    lines = ["def f(x):"]
    for _ in range(draw(st.integers(2, 6))):
        before = dims
        code, dims = draw(st.sampled_from(steps(dims)))
        text = shape(dims)
        if arrows and "->" not in bracket:
            text = f"{shape(before)}{arrows}{text}"
        lines += {
            "behind": [f"    x = {code}  # {text}"],
            "above": [f"    # {text}", f"    x = {code}", ""],
            "below": [f"    x = {code}", f"    # {text}", ""],
        }[place]
    return "\n".join([*lines, "    return x", ""])


def steps(dims):
    """What can be done with a tensor of these dimensions, and what comes of it."""
    rank = len(dims)
    found = [("x.softmax(-1)", dims), ("x * 2", dims)]
    for i in range(rank - 1):
        turned = [*dims[:i], dims[i + 1], dims[i], *dims[i + 2 :]]
        found.append((f"x.transpose({i}, {i + 1})", turned))
        if ["1"] not in dims[i : i + 2] and len(dims[i]) + len(dims[i + 1]) <= 2 and rank > 2:
            joined = [*dims[:i], dims[i] + dims[i + 1], *dims[i + 2 :]]
            found.append((f"x.flatten({i}, {i + 1})", joined))
    if rank > 2:
        found.append(("x @ x.transpose(-1, -2)", [*dims[:-1], dims[-2]]))
        found.append((f"x.sum({rank - 1})", dims[:-1]))
    if rank < 5 and ["1"] not in dims:
        found.append(("x.unsqueeze(1)", [dims[0], ["1"], *dims[1:]]))
    return found


def claim(source):
    accused = [v for v in check_source(source, plan(CALL)) if v.verdict in ("false", "missing")]
    assert accused == [], source + "\n" + "\n".join(v.message for v in accused)


SETTINGS = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=examples(50, 200), **SETTINGS)
@given(programs())
def test_true_shapes_are_never_called_false(source):
    claim(source)


@pytest.mark.slow
@settings(max_examples=2000, **SETTINGS)
@given(programs())
def test_many_true_shapes_are_never_called_false(source):
    claim(source)
