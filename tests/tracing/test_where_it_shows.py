"""Mistakes that show in some calls alone, or in one part of the result; and the line to blame."""

import pytest

from autograder.course.calls import Call, Outcome
from autograder.judging.verdict import right
from autograder.tracing.edits.kinds.all import edits
from autograder.tracing.edits.place import by_chance, looked_at
from tests.tracing.helper import asked, told


def first(task, source):
    """The first finding of an answer that fails."""
    return next(f for f in told(task, source.lstrip("\n")) if f.fails)


def marked(source):
    return [n for n, row in enumerate(source.lstrip("\n").split("\n"), 1) if row.endswith("# <-")]


# --- by chance ------------------------------------------------------------------------------------
OF_ANOTHER_KIND = """
def dropout(weights, p, training):
    if not training or p == 0:
        return weights
    stays = torch.randn_like(weights) >= p  # <-
    return weights * stays / (1 - p)
"""


def test_other_dice_than_asked_for_have_their_line():
    found = first("masks.dropout", OF_ANOTHER_KIND)
    assert [found.line] == marked(OF_ANOTHER_KIND) and "randn_like" in found.where.how


NEARLY_FAIR = """
def dropout(weights, p, training):
    if not training or p == 0:
        return weights
    stays = (1 - torch.randn(weights.shape)) >= p
    return weights * stays / (1 - p)
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_share_that_is_right_for_one_p_by_accident_is_refused(seed):
    exercise, _, calls, known, outcomes = asked("masks.dropout", NEARLY_FAIR, seed)
    assert not right(exercise, calls, outcomes, known, NEARLY_FAIR)


class Expected:
    """What is expected of some calls, and no known mistake."""

    bank, mistakes, exchanged = None, (), ()

    def __init__(self, *values):
        self.expected = [Outcome(value) for value in values]


def test_a_seed_without_an_effect_leaves_nothing_to_chance():
    calls = [Call("", (1.0,), seed=1), Call("", (1.0,), seed=2)]
    assert by_chance(calls, Expected(2.0, 3.0), 0)
    assert not by_chance(calls, Expected(2.0, 2.0), 0)


def test_of_what_goes_wrong_a_call_without_dice_is_looked_at_first():
    calls = [Call("", (1.0,), seed=1), Call("", (1.0,), train=True), Call("", (2.0,))]
    wrong = [Outcome(0.0)] * 3
    assert looked_at(calls, wrong, Expected(1.0, 1.0, 1.0), 1e-4) == 2
    assert looked_at(calls[:2], wrong[:2], Expected(1.0, 1.0), 1e-4) == 1


# --- the line to blame ---------------------------------------------------------------------------
TURNED_TOO = """
def turn(t, at):
    fast = 10000.0 ** (-torch.arange(t.shape[-1] // 2) / (t.shape[-1] // 2))
    table = at[:, None].float() * fast
    one, two = t.chunk(2, dim=-1)
    cos, sin = table.cos(), table.sin()
    return torch.cat((one * cos - two * sin, one * sin + two * cos), -1)


def rope_attention(q, k, v, num_heads):
    def cut(t):
        return t.unflatten(-1, (num_heads, -1)).transpose(1, 2)

    q, k, v = cut(q), cut(k), cut(v)
    at = torch.arange(k.shape[2])
    q = turn(q, at[-q.shape[2]:])
    k = turn(k, at)
    v = turn(v, at)  # <-
    table = q @ k.mT / q.shape[-1] ** 0.5
    late = at > at[-q.shape[2]:, None]
    mixed = table.masked_fill(late, -torch.inf).softmax(-1) @ v
    return mixed.transpose(1, 2).flatten(2)
"""


def test_a_call_is_blamed_for_what_a_function_does_right_elsewhere():
    assert [first("variants.rope_attention", TURNED_TOO).line] == marked(TURNED_TOO)


TOO_FEW_ROUNDS = """
def tiled_attention(q, k, v, block):
    rows = []
    for part in q.split(block):
        most = torch.full((len(part), 1), -torch.inf)
        total = torch.zeros(len(part), 1)
        mixed = torch.zeros(len(part), v.shape[1])
        for i in range(len(k) // block):  # <-
            keys, values = k[i * block:(i + 1) * block], v[i * block:(i + 1) * block]
            table = part @ keys.T / q.shape[1] ** 0.5
            new = torch.maximum(most, table.amax(1, keepdim=True))
            powers, old = (table - new).exp(), (most - new).exp()
            total = total * old + powers.sum(1, keepdim=True)
            mixed = mixed * old + powers @ values
            most = new
        rows.append(mixed / total)
    return torch.cat(rows)
"""


def test_a_loop_that_ends_too_early_is_blamed_and_not_the_line_behind_it():
    found = first("fast.tiles", TOO_FEW_ROUNDS)
    assert [found.line] == marked(TOO_FEW_ROUNDS)


TAKEN_OUT_AGAIN = """
def linear_steps(q, k, v, state, total):
    q, k = F.relu(q) + 1, F.relu(k) + 1  # <-
    rows = []
    for n in range(q.shape[1]):
        state = state + k[:, n, :, None] * v[:, n, None, :]
        total = total + k[:, n]
        rows.append((q[:, n, None] @ state)[:, 0] / (q[:, n] * total).sum(-1, keepdim=True))
    return torch.stack(rows, 1), state, total
"""


def test_what_a_first_round_divides_out_is_not_called_right():
    found = first("variants.recurrent", TAKEN_OUT_AGAIN)
    assert [found.line] == marked(TAKEN_OUT_AGAIN)


OVERFLOWS = """
def softmax_stable(scores):
    size = scores.exp().sum(-1, keepdim=True).log()  # <-
    return (scores - size).exp()
"""


def test_what_follows_from_a_mistake_is_no_second_one_of_the_same_kind():
    found = first("simple.softmax_stable", OVERFLOWS)
    assert [found.line] == marked(OVERFLOWS) and "Two things" not in found.message


OWN_BIAS = """
def score_terms(x, w_q, b_q, w_k, b_k):
    asks, offers = x @ w_q, x @ w_k
    size = w_q.shape[1] ** 0.5
    content = asks @ offers.T / size
    query = (asks @ b_q).unsqueeze(1) / size  # <-
    key = (offers @ b_q).unsqueeze(0) / size
    constant = torch.dot(b_q, b_k)
    return {"content": content, "query": query, "key": key, "constant": constant}
"""


def test_proofs_that_contradict_one_another_tell_nothing():
    found = first("weights.biases", OWN_BIAS)
    assert found.line != 2 and "ine 2" not in found.message


# --- pairs ---------------------------------------------------------------------------------------
PAIRS = {
    "in parts of the result": (
        "weights.histogram",
        """
def density(values, edges):
    numbers = values.flatten()
    width = edges[1:] - edges[:-1]
    middle = edges[:-1] + width  # <-
    counts = torch.histogram(numbers, edges).hist
    share = counts / counts.sum()  # <-
    return middle, share / width, 1 - share.sum()
""",
    ),
    "a layer and a step": (
        "one_head.parameters",
        """
class ParameterAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.w_query = nn.Parameter(torch.randn(input_size, hidden) / input_size ** 0.5)
        self.w_key = torch.randn(input_size, hidden) / input_size ** 0.5  # <-
        self.w_value = nn.Parameter(torch.randn(input_size, hidden) / input_size ** 0.5)

    def forward(self, x):
        table = (x @ self.w_query) @ (x @ self.w_key).T
        shares = torch.softmax(table / x.shape[-1] ** 0.5, dim=-1)  # <-
        return shares @ (x @ self.w_value)
""",
    ),
    "where one number comes back": (
        "activations.sinks",
        """
def sink_attention(model, input_ids):
    with torch.no_grad():
        maps = model(input_ids, output_attentions=True).attentions
    rows = [each[:, :, 0, 1:].mean((0, 2)) for each in maps]  # <-
    return torch.stack(rows, dim=1)  # <-
""",
    ),
    "one that stops in some calls": (
        "masks.half",
        """
def masked_softmax(scores, hidden):
    table = scores.masked_fill(hidden, -1e9)  # <-
    return table.softmax(0)  # <-
""",
    ),
}


@pytest.mark.parametrize("what", PAIRS)
def test_both_lines_are_told(what):
    task, source = PAIRS[what]
    found = first(task, source)
    lines = {found.line} | {n for n in range(1, 30) if f"ine {n}" in found.message}
    assert lines >= set(marked(source)), found.message


ASKED_FOR_NOTHING = """
def dropout(weights, p, training):
    if True:  # <-
        kept = torch.rand_like(weights) >= p
        weights = weights * kept / (1 - p)
    return weights
"""


def test_a_condition_that_never_changes_is_one_mistake():
    found = first("masks.dropout", ASKED_FOR_NOTHING)
    assert [found.line] == marked(ASKED_FOR_NOTHING), found.message
    assert "Two things" not in found.message and "other way round" not in found.message


# --- counts and other slips ----------------------------------------------------------------------
SLIPS = {
    "the rows for the tokens": ("y = len(x)", "y = x.shape[1]"),
    "the sum of the counted for the number of all": ("y = a / a.sum()", "y = a / x.numel()"),
    "made and not raised": ("ValueError('no')", "raise ValueError('no')"),
    "returned and not raised": ("return ValueError('no')", "raise ValueError('no')"),
    "the diagonal of indices": (
        "y = torch.triu_indices(3, 3)",
        "y = torch.triu_indices(3, 3, offset=1)",
    ),
    "all with all": ("y = torch.einsum('nd,md->nm', x, a)", "y = torch.einsum('nd,nd->n', x, a)"),
    "all with all in a product": ("y = x @ a.T", "y = (x * a).sum(-1)"),
    "every third for a third": (
        "y, z = x[:, ::2], x[:, 1::2]",
        "y, z = x.chunk(2, 1)[0], x.chunk(2, 1)[1]",
    ),
    "the end of a range": ("y = range(0, n - m + 1, m)", "y = range(0, n, m)"),
    "a number that float16 lacks": (
        "y = x.masked_fill(a, -1e9)",
        "y = x.masked_fill(a, float('-inf'))",
    ),
    "dice of another kind": ("y = torch.randn(3) < m", "y = torch.rand(3) < m"),
    "what is given and not used": ("y = m * n", "y = m * kept"),
    "a constant that is asked": ("y = x if False else a", "y = x if kept else a"),
}


@pytest.mark.parametrize("what", SLIPS)
def test_some_small_change_undoes_it(what):
    slip, mended = SLIPS[what]
    body = "def f(x, a, m, kept):\n    n = len(x)\n    {}\n    return y\n"
    tried = [" ".join(edit.source.split()) for edit in edits(body.format(slip))]
    plain = " ".join(body.format(mended).split())
    bare = {each.replace("(", "").replace(")", "").replace('"', "'") for each in tried}
    assert plain.replace("(", "").replace(")", "") in bare


def test_no_axis_is_exchanged_with_itself():
    tried = edits("def f(x):\n    y = x.transpose(0, 1)\n    return y\n")
    assert not any("transpose(1, 1)" in e.source or "transpose(0, 0)" in e.source for e in tried)
