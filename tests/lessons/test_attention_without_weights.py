"""Lesson 01: every way to write it right passes, and wrong ones are told apart by name."""

import pytest
import torch

from tests.forms import first_of
from tests.lessons.helper import findings, names

RNN = "def encoder_states(x, w_input, w_hidden, bias):\n"
EARLIER = """
def attention_scores(query, inputs):
    return inputs @ query
def softmax_stable(scores):
    return torch.softmax(scores, dim=-1)
"""


def rnn(step, before="h = torch.zeros(w_hidden.shape[0])", after="torch.stack(out)"):
    """An encoder with this step."""
    return f"""{RNN}
    {before}
    out = []
    for t in x:
        h = {step}
        out.append(h)
    return {after}
"""


def one(name, body, arguments="x"):
    return f"def {name}({arguments}): return {body}"


def rows(name, *bodies):
    return [one(name, body, "s") for body in bodies]


RIGHT = {
    "simple.rnn": [
        rnn("torch.tanh(t @ w_input + h @ w_hidden + bias)"),
        rnn("(w_input.T @ t + w_hidden.T @ h + bias).tanh()"),
        rnn("torch.tanh(torch.cat([t, h]) @ torch.cat([w_input, w_hidden]) + bias)"),
        rnn("torch.tanh(t[None] @ w_input + h @ w_hidden + bias)", after="torch.cat(out)"),
        RNN
        + """
    rnn = nn.RNN(*w_input.shape, batch_first=True)
    rnn.weight_ih_l0.data, rnn.weight_hh_l0.data = w_input.T.clone(), w_hidden.T.clone()
    rnn.bias_ih_l0.data, rnn.bias_hh_l0.data = bias.clone(), torch.zeros_like(bias)
    return rnn(x[None])[0][0]
""",
        RNN
        + """
    inputs = x @ w_input + bias
    states = torch.zeros(len(x) + 1, len(bias))
    for i in range(len(x)):
        states[i + 1] = torch.tanh(inputs[i] + states[i] @ w_hidden)
    return states[1:]
""",
        RNN
        + """
    x, w_input, w_hidden, bias = (a.double() for a in (x, w_input, w_hidden, bias))
    h, out = torch.zeros(len(bias), dtype=torch.float64), []
    for token in x:
        up = torch.exp(2 * (token @ w_input + h @ w_hidden + bias))
        h = (up - 1) / (up + 1)
        out.append(h)
    return torch.stack(out)
""",
    ],
    "simple.scores": [
        one("attention_scores", "inputs @ query", "query, inputs"),
        one("attention_scores", "query @ inputs.T", "query, inputs"),
        one("attention_scores", "(inputs * query).sum(dim=-1)", "query, inputs"),
        one("attention_scores", "torch.einsum('sh,h->s', inputs, query)", "query, inputs"),
        one("attention_scores", "torch.mv(inputs, query)", "query, inputs"),
        one("attention_scores", "torch.stack([i.dot(query) for i in inputs])", "query, inputs"),
        one("attention_scores", "[torch.dot(i, query).item() for i in inputs]", "query, inputs"),
        """
def attention_scores(query, inputs):
    scores = torch.zeros(len(inputs))
    for i in range(len(inputs)):
        for d in range(len(query)):
            scores[i] += inputs[i, d] * query[d]
    return scores
""",
    ],
    "simple.sum_normalized": rows(
        "sum_normalized",
        "s / s.sum(-1, keepdim=True)",
        "s / s.sum(dim=-1).unsqueeze(-1)",
        "s / s.sum(-1)[..., None]",
        "(s.double() / s.double().sum(-1, keepdim=True)).float()",
        "torch.einsum('...j,...->...j', s, 1 / s.sum(-1))",
        "s * s.sum(-1, keepdim=True).reciprocal()",
    ),
    "simple.softmax_naive": rows(
        "softmax_naive",
        "torch.exp(s) / torch.exp(s).sum(-1, keepdim=True)",
        "s.exp() / s.exp().sum(dim=-1)[..., None]",
        "torch.softmax(s, dim=-1)",
        "F.softmax(s.double(), dim=-1)",
        "math.e ** s / (math.e ** s).sum(-1, keepdim=True)",
        "F.normalize(s.exp(), p=1, dim=-1)",
        "(s - torch.logsumexp(s, -1, keepdim=True)).exp()",
        "1 / (s.unsqueeze(-2) - s.unsqueeze(-1)).exp().sum(-1)",
    ),
    "simple.softmax_stable": rows(
        "softmax_stable",
        "torch.softmax(s, dim=-1)",
        "F.softmax(s.double(), -1)",
        "(s - torch.logsumexp(s, -1, keepdim=True)).exp()",
        "torch.log_softmax(s, -1).exp()",
        "F.normalize((s - s.max(-1, keepdim=True).values).exp(), p=1, dim=-1)",
    )
    + [
        """
def softmax_stable(s):
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)
""",
        """
def softmax_stable(s):
    flat = s.reshape(-1, s.shape[-1])
    out = []
    for row in flat:
        e = torch.exp(row - max(row))
        out.append(e / sum(e))
    return torch.stack(out).reshape(s.shape)
""",
    ],
    "simple.context": [
        one("context_vectors", "torch.softmax(x @ x.T, dim=-1) @ x"),
        one("context_vectors", "torch.einsum('ij,jd->id', torch.softmax(x @ x.T, 1), x)"),
        one("context_vectors", "F.scaled_dot_product_attention(x, x, x, scale=1.0)"),
        one("context_vectors", "(x.T @ torch.softmax(x @ x.T, -1).T).T"),
        one("context_vectors", "(x.T @ torch.softmax(x @ x.T, 0)).T"),
        """
def context_vectors(inputs):
    return torch.stack([softmax_stable(attention_scores(q, inputs)) @ inputs for q in inputs])
""",
        """
def context_vectors(inputs):
    n = inputs.shape[0]
    scores = torch.empty(n, n)
    for i in range(n):
        for j in range(n):
            scores[i, j] = torch.dot(inputs[i], inputs[j])
    weights = torch.softmax(scores, dim=-1)
    z = torch.zeros_like(inputs)
    for i in range(n):
        for j in range(n):
            z[i] += weights[i, j] * inputs[j]
    return z
""",
    ],
    "simple.matmul": [
        one("simple_attention", "torch.softmax(x @ x.transpose(-2, -1), dim=-1) @ x"),
        one("simple_attention", "torch.bmm(F.softmax(torch.bmm(x, x.mT), dim=2), x)"),
        one("simple_attention", "F.scaled_dot_product_attention(x, x, x, scale=1.0)"),
        one("simple_attention", "torch.stack([torch.softmax(s @ s.T, -1) @ s for s in x])"),
        one("simple_attention", "torch.softmax(x @ x.permute(0, 2, 1), 1).mT @ x"),
        """
def simple_attention(x):
    scores = torch.einsum("bid,bjd->bij", x, x)
    weights = scores.softmax(dim=-1)
    return torch.einsum("bij,bjd->bid", weights, x)
""",
        """
def simple_attention(x):
    x = x.double()
    weights = torch.softmax((x[:, :, None] * x[:, None]).sum(-1), dim=-1)
    return (weights[..., None] * x[:, None]).sum(2)
""",
    ],
}

WRONG = {
    "simple.rnn": [
        (
            "rnn.no recurrence",
            one("encoder_states", "torch.tanh(x @ w_input + bias)", "x, w_input, w_hidden, bias"),
        ),
        ("rnn.no tanh", rnn("t @ w_input + h @ w_hidden + bias")),
        ("rnn.other function", rnn("torch.sigmoid(t @ w_input + h @ w_hidden + bias)")),
        ("rnn.last state only", rnn("torch.tanh(t @ w_input + h @ w_hidden + bias)", after="h")),
        ("rnn.matrix transposed", rnn("torch.tanh(t @ w_input + w_hidden @ h + bias)")),
        ("rnn.lost bias", rnn("torch.tanh(t @ w_input + h @ w_hidden)")),
        (
            "rnn.first state",
            rnn(
                "torch.tanh(t @ w_input + h @ w_hidden + bias)", before="h = torch.ones_like(bias)"
            ),
        ),
        ("rnn.tanh of a part", rnn("torch.tanh(t @ w_input + bias) + h @ w_hidden")),
        (
            "rnn.backwards",
            rnn(
                "torch.tanh(t @ w_input + h @ w_hidden + bias)",
                before="h = torch.zeros_like(bias); x = x.flip(0)",
                after="torch.stack(out[::-1])",
            ),
        ),
        ("shapes do not fit", rnn("torch.tanh(w_input @ t + h @ w_hidden + bias)")),
    ],
    "simple.scores": [
        ("scores.not summed", one("attention_scores", "query * inputs", "query, inputs")),
        (
            "scores.cosine",
            one(
                "attention_scores",
                "F.normalize(inputs, dim=-1) @ F.normalize(query, dim=0)",
                "query, inputs",
            ),
        ),
        (
            "scores.scaled",
            one("attention_scores", "inputs @ query / math.sqrt(len(query))", "query, inputs"),
        ),
        ("scores.averaged", one("attention_scores", "(inputs * query).mean(1)", "query, inputs")),
        (
            "scores.distance",
            one("attention_scores", "torch.cdist(inputs, query[None])[:, 0]", "query, inputs"),
        ),
        ("scores.wrong axis", one("attention_scores", "(inputs * query).sum(0)", "query, inputs")),
        (
            "scores.already weights",
            one("attention_scores", "torch.softmax(inputs @ query, 0)", "query, inputs"),
        ),
        ("shapes do not fit", one("attention_scores", "query @ inputs", "query, inputs")),
    ],
    "simple.sum_normalized": [
        ("normalize.dim", one("sum_normalized", "s / s.sum(0)", "s")),
        ("normalize.over all", one("sum_normalized", "s / torch.sum(s)", "s")),
        ("normalize.axis lost", one("sum_normalized", "s / s.sum(-1)", "s")),
        ("normalize.softmax", one("sum_normalized", "torch.softmax(s, dim=-1)", "s")),
        ("normalize.absolute", one("sum_normalized", "F.normalize(s, p=1, dim=-1)", "s")),
        ("normalize.by the length", one("sum_normalized", "F.normalize(s, dim=-1)", "s")),
        (
            "normalize.by the largest",
            one("sum_normalized", "s / s.max(-1, keepdim=True).values", "s"),
        ),
        (
            "simple.sum_normalized.input changed",
            one("sum_normalized", "s.div_(s.sum(-1, keepdim=True))", "s"),
        ),
    ],
    "simple.softmax_naive": [
        ("softmax.dim", one("softmax_naive", "torch.exp(s) / torch.exp(s).sum(dim=0)", "s")),
        ("softmax.over all", one("softmax_naive", "torch.exp(s) / torch.exp(s).sum()", "s")),
        ("softmax.axis lost", one("softmax_naive", "torch.exp(s) / torch.exp(s).sum(-1)", "s")),
        ("softmax.not normalized", one("softmax_naive", "torch.exp(s)", "s")),
        ("softmax.no exponential", one("softmax_naive", "s / s.sum(-1, keepdim=True)", "s")),
        ("softmax.denominator", one("softmax_naive", "s.exp() / s.sum(-1, keepdim=True)", "s")),
        ("softmax.base", one("softmax_naive", "2 ** s / (2 ** s).sum(-1, keepdim=True)", "s")),
        ("softmax.log", one("softmax_naive", "F.log_softmax(s, dim=-1)", "s")),
        ("softmax.twice", one("softmax_naive", "s.softmax(-1).softmax(-1)", "s")),
        ("softmax.negated", one("softmax_naive", "F.softmin(s, dim=-1)", "s")),
    ],
    "simple.softmax_stable": [
        (
            "softmax.overflow",
            one("softmax_stable", "torch.exp(s) / torch.exp(s).sum(-1, keepdim=True)", "s"),
        ),
        (
            "softmax.one maximum for all",
            """
def softmax_stable(s):
    e = torch.exp(s - s.max())
    return e / e.sum(-1, keepdim=True)
""",
        ),
        (
            "softmax.shifted too little",
            """
def softmax_stable(s):
    e = torch.exp(s - s.amin(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)
""",
        ),
        (
            "softmax.axis lost",
            """
def softmax_stable(s):
    e = torch.exp(s - s.max(-1).values)
    return e / e.sum(-1, keepdim=True)
""",
        ),
        (
            "softmax.divided by the maximum",
            """
def softmax_stable(s):
    e = torch.exp(s / s.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)
""",
        ),
        ("softmax.clamped", one("softmax_stable", "torch.softmax(s.clamp(-80, 80), -1)", "s")),
        (
            "softmax.NaN papered over",
            """
def softmax_stable(s):
    e = torch.exp(s)
    return torch.nan_to_num(e / e.sum(-1, keepdim=True))
""",
        ),
        ("softmax.dim", one("softmax_stable", "torch.softmax(s, dim=0)", "s")),
        (
            "softmax.not normalized",
            one("softmax_stable", "torch.exp(s - s.amax(-1, keepdim=True))", "s"),
        ),
    ],
    "simple.context": [
        ("context.unnormalised", one("context_vectors", "(x @ x.T) @ x")),
        ("context.softmax dim", one("context_vectors", "torch.softmax(x @ x.T, dim=0) @ x")),
        ("context.softmax dim", one("context_vectors", "torch.softmax(x @ x.T, -1).T @ x")),
        ("context.x.T @ w", one("context_vectors", "x.T @ torch.softmax(x @ x.T, dim=-1)")),
        (
            "context.softmax twice",
            one("context_vectors", "torch.softmax(torch.softmax(x @ x.T, -1), -1) @ x"),
        ),
        (
            "context.scaled",
            one("context_vectors", "torch.softmax(x @ x.T / x.shape[1] ** 0.5, -1) @ x"),
        ),
        ("context.weights returned", one("context_vectors", "torch.softmax(x @ x.T, dim=-1)")),
        ("context.one token", one("context_vectors", "torch.softmax(x @ x[1], 0) @ x")),
        ("context.plain average", one("context_vectors", "x.mean(0).repeat(len(x), 1)")),
        (
            "context.sum-normalized",
            """
def context_vectors(x):
    s = x @ x.T
    return s / s.sum(-1, keepdim=True) @ x
""",
        ),
    ],
    "simple.matmul": [
        ("context.unnormalised", one("simple_attention", "x @ x.mT @ x")),
        ("context.softmax dim", one("simple_attention", "torch.softmax(x @ x.mT, dim=1) @ x")),
        (
            "context.softmax over the batch",
            one("simple_attention", "torch.softmax(x @ x.mT, dim=0) @ x"),
        ),
        (
            "context.softmax twice",
            one("simple_attention", "(x @ x.mT).softmax(-1).softmax(-1) @ x"),
        ),
        ("context.scaled", one("simple_attention", "F.scaled_dot_product_attention(x, x, x)")),
        (
            "context.batch mixed",
            """
def simple_attention(x):
    flat = x.flatten(0, 1)
    return (torch.softmax(flat @ flat.T, -1) @ flat).view(x.shape)
""",
        ),
        (
            "context.reshaped",
            """
def simple_attention(x):
    b, s, h = x.shape
    return torch.softmax(x @ x.view(b, h, s), dim=-1) @ x
""",
        ),
        ("context.features attend", one("simple_attention", "x @ torch.softmax(x.mT @ x, -1)")),
        ("context.x.T @ w", one("simple_attention", "x.mT @ torch.softmax(x @ x.mT, -1)")),
        ("shapes do not fit", one("simple_attention", "torch.softmax(x @ x.T, -1) @ x")),
    ],
}


@pytest.mark.parametrize(("task", "place"), [(t, i) for t in RIGHT for i in range(len(RIGHT[t]))])
def test_every_way_to_write_it_right_passes(task, place):
    assert findings(task, RIGHT[task][place], seed=place, needs=EARLIER) == []


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "place"), [(t, i) for t in WRONG for i in range(len(WRONG[t]))])
def test_a_wrong_answer_is_named(task, place, seed):
    check, source = WRONG[task][place]
    assert names(task, source, seed, needs=EARLIER) == [check]


def test_transposed_weights_of_symmetric_scores_are_the_softmax_over_columns():
    x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    over_columns = torch.softmax(x @ x.T, dim=0)
    transposed = torch.softmax(x @ x.T, dim=-1).T
    torch.testing.assert_close(over_columns, transposed, rtol=0, atol=1e-12)
