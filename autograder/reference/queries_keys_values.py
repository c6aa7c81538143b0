"""Answers of lesson 02 and its wrong programs: equation 1 of Vaswani et al. (2017), by switches."""

from __future__ import annotations

import torch
from torch import nn

from autograder.course.asking import Mistake, mistake
from autograder.reference.homework_programs import normalise, scale_after, scale_factor


# --- the right answers ---------------------------------------------------------------------------
def project(x, w_query, w_key, w_value):
    return x @ w_query, x @ w_key, x @ w_value


def score_variance(q, k, sigma_q, sigma_k):
    return (q * k).sum(-1).var(), q.shape[-1] * sigma_q**2 * sigma_k**2


def softmax_jacobian(scores):
    p = scores.softmax(0)
    return torch.diag(p) - torch.outer(p, p)


def attention(q, k, v, how):
    """softmax(q k^T / sqrt(hidden)) v over any leading dimensions; `how` holds a mistake."""
    return weights(q, k, how) @ v


def weights(q, k, how):
    """The attention weights; `how` holds a mistake."""
    size = k.shape[-1]
    sizes = {"seq_len": k.shape[-2], "input_size": how.get("_input_size", size)}
    scores = q @ k.transpose(-2, -1) * scale_factor(how, sizes, size)
    return normalise(scores, how) * scale_after(how, size)


def transfer(state):
    if any(name.endswith("bias") for name in state):
        raise ValueError("bias")
    return {w: state[f"{n}.weight"].T for w, n in NEW_NAMES.items()}


NEW_NAMES = {"w_query": "q", "w_key": "k", "w_value": "v"}


class _Parameters(nn.Module):
    """One sequence, bare matrices; `how` holds the switches of a mistake."""

    how: dict = {}

    def __init__(self, input_size, hidden):
        super().__init__()
        for name in NEW_NAMES:
            setattr(self, name, nn.Parameter(torch.randn(input_size, hidden)))

    def forward(self, x):
        used = {n: getattr(self, self.how.get(n, n)) for n in NEW_NAMES}
        if self.how.get("detached"):
            used["w_key"] = used["w_key"].detach()
        q, k, v = (x @ w for w in used.values())
        return attention(q, k, v, {**self.how, "_input_size": x.shape[-1]})


class _Attention(nn.Module):
    """A batch, `nn.Linear` layers; `how` holds the switches of a mistake."""

    how: dict = {}

    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def forward(self, x):
        q, k, v = (self.project(name, x) for name in ("q", "k", "v"))
        if self.how.get("detached"):
            k = k.detach()
        return attention(q, k, v, {**self.how, "_input_size": x.shape[-1]})

    def project(self, name, x):
        layer = getattr(self, self.how.get(name, name))
        return x @ layer.weight.T if self.how.get("bias") is False else layer(x)


# --- the wrong ones ------------------------------------------------------------------------------
_SCALE = [
    ("scale.missing", "The scores are not scaled.", {"scale": "none"}),
    (
        "scale.not a root",
        "The scores are divided by the size itself. Their standard deviation is its square root.",
        {"scale": "size"},
    ),
    (
        "scale.multiplied",
        "The scores are multiplied by the square root instead of divided by it.",
        {"scale": "multiplied"},
    ),
    (
        "scale.after softmax",
        "The scale comes after the softmax; it belongs on the scores. Look "
        "at the sums of the rows.",
        {"scale": "after softmax"},
    ),
    ("scale.fourth root", "The square root was taken twice.", {"scale": "fourth root"}),
    (
        "scale.seq_len",
        "The scores are scaled by the square root of seq_len. A dot product has "
        "as many terms as the vectors have features.",
        {"scale": "seq_len"},
    ),
]
_SOFTMAX = [
    (
        "softmax.dim",
        "The softmax runs over the queries: its columns sum to 1, not its rows.",
        {"softmax": "dim -2"},
    ),
    ("softmax.twice", "The softmax is applied twice.", {"softmax": "twice"}),
    (
        "softmax.missing",
        "There is no softmax: the values are averaged with raw scores.",
        {"softmax": "none"},
    ),
    (
        "softmax.sigmoid",
        "A sigmoid stands where the softmax belongs: look at the sums of the rows.",
        {"softmax": "sigmoid"},
    ),
]
_BATCH = [
    (
        "softmax.dim",
        "The softmax runs over the batch: sequences that have nothing to do with "
        "each other compete.",
        {"softmax": "dim 0"},
    ),
    ("softmax.dim", "One softmax runs over all queries and keys together.", {"softmax": "all"}),
]
_ONE_HEAD = [
    (
        "scale.input_size",
        "The scores are scaled by the square root of input_size. The dot "
        "product is between queries and keys, whose size is hidden.",
        {"scale": "input_size"},
    ),
    (
        "autograd.detached",
        "No gradient reaches the keys: something was detached on the way.",
        {"detached": True},
    ),
]
_LAYERS = [
    (
        "projections.q and k swapped",
        "Queries and keys are swapped: the scores come out transposed.",
        {"q": "k", "k": "q"},
    ),
    ("projections.v from k", "The values are made with the keys' projection.", {"v": "k"}),
    ("projections.v from q", "The values are made with the queries' projection.", {"v": "q"}),
    ("projections.k from q", "The keys are made with the queries' projection.", {"k": "q"}),
    ("projections.q from k", "The queries are made with the keys' projection.", {"q": "k"}),
    ("projections.k and v swapped", "Keys and values are swapped.", {"k": "v", "v": "k"}),
    ("projections.q and v swapped", "Queries and values are swapped.", {"q": "v", "v": "q"}),
]
_BIAS = [
    (
        "projections.lost bias",
        "The biases of the layers are left out. Call the layers instead of "
        "multiplying by their weights.",
        {"bias": False},
    ),
]
_OLD_NAMES = {short: name for name, short in NEW_NAMES.items()}


def _built(name, base, rows):
    return [Mistake(c, m, {name: type(name, (base,), {"how": how})}) for c, m, how in rows]


def _parameter_rows():
    for check, message, how in _LAYERS:
        yield check, message, {_OLD_NAMES[a]: _OLD_NAMES[b] for a, b in how.items()}


def _named(name, rows, function):
    """One wrong function for each row, which gets the row's switches as its last argument."""

    def with_how(how):
        return lambda *args: function(*args, how)

    return [mistake(name, check, message, with_how(how)) for check, message, how in rows]


def _project(order, x, *matrices):
    return tuple(x @ matrices[i] for i in order)


def _naive_jacobian(scores):
    # In float64 exp(300) is finite; the answers of students are float32, where it is not.
    e = scores.float().exp()
    p = e / e.sum()
    return (torch.diag(p) - torch.outer(p, p)).double()


def _transfer(state, change):
    if any(name.endswith("bias") for name in state):
        raise ValueError("bias")
    return change(state)


_PROJECT = [
    mistake(
        "project",
        "projections.order",
        "Keys come first; queries are asked for first.",
        lambda *a: _project((1, 0, 2), *a),
    ),
    mistake(
        "project",
        "projections.v from k",
        "The values are made with the keys' matrix.",
        lambda *a: _project((0, 1, 1), *a),
    ),
    mistake(
        "project",
        "projections.k from q",
        "The keys are made with the queries' matrix.",
        lambda *a: _project((0, 0, 2), *a),
    ),
    mistake(
        "project",
        "projections.v from q",
        "The values are made with the queries' matrix.",
        lambda *a: _project((0, 1, 0), *a),
    ),
    mistake(
        "project",
        "projections.k and v swapped",
        "Keys and values are swapped.",
        lambda *a: _project((0, 2, 1), *a),
    ),
    mistake(
        "project",
        "projections.transposed",
        "The matrices are transposed. They are "
        "[input_size, hidden] already, ready to stand on the right of x.",
        lambda x, *ms: tuple(x @ m.T for m in ms),
    ),
    mistake(
        "project",
        "projections.x on the right",
        "The tokens stand on the wrong side of the product. Each row of x is a token.",
        lambda x, *ms: tuple(m @ x for m in ms),
    ),
]

_VARIANCE = [
    mistake(
        "score_variance",
        "variance.standard deviation",
        "Both numbers are standard deviations; variances are asked for.",
        lambda q, k, a, b: ((q * k).sum(-1).std(), q.shape[-1] ** 0.5 * a * b),
    ),
    mistake(
        "score_variance",
        "variance.standard deviation",
        "The measured number is a standard deviation; the variance is asked for.",
        lambda q, k, a, b: ((q * k).sum(-1).std(), q.shape[-1] * a**2 * b**2),
    ),
    mistake(
        "score_variance",
        "variance.root of hidden",
        "The prediction grows with the root of hidden: that is the law of the standard deviation.",
        lambda q, k, a, b: ((q * k).sum(-1).var(), q.shape[-1] ** 0.5 * a**2 * b**2),
    ),
    mistake(
        "score_variance",
        "variance.hidden squared",
        "The prediction grows with hidden "
        "squared, as if the terms of the sum were one and the same number.",
        lambda q, k, a, b: ((q * k).sum(-1).var(), (q.shape[-1] * a * b) ** 2),
    ),
    mistake(
        "score_variance",
        "variance.sigma not squared",
        "The prediction uses the sigmas as they are. A variance is a standard deviation squared.",
        lambda q, k, a, b: ((q * k).sum(-1).var(), q.shape[-1] * a * b),
    ),
    mistake(
        "score_variance",
        "variance.no sum",
        "The measured variance is that of single products; a score is their sum over the features.",
        lambda q, k, a, b: ((q * k).var(), q.shape[-1] * a**2 * b**2),
    ),
    mistake(
        "score_variance",
        "variance.mean for sum",
        "The measured variance is that of the mean of the products; a score is their sum.",
        lambda q, k, a, b: ((q * k).mean(-1).var(), q.shape[-1] * a**2 * b**2),
    ),
    mistake(
        "score_variance",
        "variance.over tokens",
        "The products are summed over the pairs; a dot product sums over the features.",
        lambda q, k, a, b: ((q * k).sum(0).var(), q.shape[-1] * a**2 * b**2),
    ),
    mistake(
        "score_variance",
        "variance.order",
        "The two numbers are in the wrong order.",
        lambda q, k, a, b: score_variance(q, k, a, b)[::-1],
    ),
]

_JACOBIAN = [
    mistake(
        "softmax_jacobian",
        "jacobian.diagonal only",
        "Only the diagonal is there. Raising one score also takes weight away from all others.",
        lambda s: torch.diag(s.softmax(0) * (1 - s.softmax(0))),
    ),
    mistake(
        "softmax_jacobian",
        "jacobian.diagonal only",
        "This is a list of the diagonal. Raising one score also takes weight away from all others.",
        lambda s: s.softmax(0) * (1 - s.softmax(0)),
    ),
    mistake(
        "softmax_jacobian",
        "jacobian.missing diagonal term",
        "The outer product is there; the term for i = j is not.",
        lambda s: -torch.outer(s.softmax(0), s.softmax(0)),
    ),
    mistake(
        "softmax_jacobian",
        "jacobian.missing outer term",
        "The term -p_i p_j is missing.",
        lambda s: torch.diag(s.softmax(0)),
    ),
    mistake(
        "softmax_jacobian",
        "jacobian.sign",
        "The sign is wrong: a higher score must give its own token more weight, not less.",
        lambda s: -softmax_jacobian(s),
    ),
    mistake(
        "softmax_jacobian",
        "jacobian.sign",
        "The outer product has the wrong sign: what one token gains, the others lose.",
        lambda s: torch.diag(s.softmax(0)) + torch.outer(s.softmax(0), s.softmax(0)),
    ),
    mistake(
        "softmax_jacobian",
        "jacobian.broadcast",
        "p was subtracted from every row; products of all pairs are needed.",
        lambda s: torch.diag(s.softmax(0)) - s.softmax(0),
    ),
    mistake(
        "softmax_jacobian",
        "jacobian.of the log-softmax",
        "This is the Jacobian of the logarithm of the softmax.",
        lambda s: torch.eye(len(s)) - s.softmax(0).expand(len(s), -1),
    ),
    mistake(
        "softmax_jacobian",
        "jacobian.of the scores",
        "The formula is in terms of the probabilities p, but the scores themselves were put in.",
        lambda s: torch.diag(s) - torch.outer(s, s),
    ),
    mistake(
        "softmax_jacobian",
        "softmax.overflow",
        "It is right for small scores, but exp of "
        "large ones overflows. Use torch.softmax, which subtracts the largest first.",
        _naive_jacobian,
    ),
]

_TRANSFER = [
    mistake(
        "transfer",
        "transfer.not transposed",
        "The weights are copied as they are, but "
        "nn.Linear stores [hidden, input_size] and multiplies by the transposed weight.",
        lambda s: _transfer(s, lambda s: {w: s[f"{n}.weight"] for w, n in NEW_NAMES.items()}),
    ),
    mistake(
        "transfer",
        "transfer.not transposed",
        "The weights are copied as they are, and a bias is lost without a word.",
        lambda s: {w: s[f"{n}.weight"] for w, n in NEW_NAMES.items()},
    ),
    mistake(
        "transfer",
        "transfer.reshaped",
        "The weights are reshaped: the shape is right but "
        "the numbers stand in other places. Transpose.",
        lambda s: _transfer(
            s,
            lambda s: {
                w: s[f"{n}.weight"].reshape(s[f"{n}.weight"].shape[::-1])
                for w, n in NEW_NAMES.items()
            },
        ),
    ),
    mistake(
        "transfer",
        "transfer.lost bias",
        "Where the layers have a bias, it is lost without a word. Raise a ValueError.",
        lambda s: {w: s[f"{n}.weight"].T for w, n in NEW_NAMES.items()},
    ),
    mistake(
        "transfer",
        "projections.q and k swapped",
        "Queries and keys are swapped.",
        lambda s: _transfer(
            s,
            lambda s: {
                w: s[f"{n}.weight"].T for w, n in zip(NEW_NAMES, ("k", "q", "v"), strict=True)
            },
        ),
    ),
    mistake(
        "transfer",
        "projections.v from k",
        "The values' matrix is taken from the keys.",
        lambda s: _transfer(
            s,
            lambda s: {
                w: s[f"{n}.weight"].T for w, n in zip(NEW_NAMES, ("q", "k", "k"), strict=True)
            },
        ),
    ),
    mistake(
        "transfer",
        "transfer.old names",
        "The names are still those of the layers; `w_query`, `w_key` and `w_value` are asked for.",
        lambda s: _transfer(s, lambda s: {n: w.T for n, w in s.items()}),
    ),
]

_UNBATCHED = [
    mistake(
        "batched_attention",
        "batch.reshaped",
        "The keys are reshaped, which keeps the order "
        "of the numbers and mixes tokens with features. Transpose the last two dimensions.",
        lambda q, k, v: (
            (q @ k.reshape(len(k), k.shape[2], k.shape[1]) / k.shape[2] ** 0.5).softmax(-1) @ v
        ),
    ),
    mistake(
        "batched_attention",
        "batch.counted from the left",
        "The code counts dimensions as if "
        "there were no batch: `.T` and `transpose(0, 1)` move the batch. Swap the last two.",
        lambda q, k, v: (q @ k.permute(2, 1, 0) / k.shape[-1] ** 0.5).softmax(-1) @ v,
    ),
    mistake(
        "batched_attention",
        "projections.q and k swapped",
        "Queries and keys are swapped: each row should belong to a query.",
        lambda q, k, v: attention(k, q, v, {}),
    ),
]

SOLVE = {
    "one_head.project": {"project": project},
    "one_head.variance": {"score_variance": score_variance},
    "one_head.jacobian": {"softmax_jacobian": softmax_jacobian},
    "one_head.scale": {"attention_weights": lambda q, k: weights(q, k, {})},
    "one_head.parameters": {"ParameterAttention": _Parameters},
    "one_head.transfer": {"transfer": transfer},
    "one_head.batched": {"batched_attention": lambda q, k, v: attention(q, k, v, {})},
    "one_head.forward": {"Attention": _Attention},
    "one_head.three_lines": {"ShortAttention": _Attention},
}
_SWAPPED = (
    "projections.q and k swapped",
    "The rows should belong to the queries: queries and keys are swapped.",
)
MISTAKES = {
    "one_head.project": _PROJECT,
    "one_head.variance": _VARIANCE,
    "one_head.jacobian": _JACOBIAN,
    "one_head.scale": [
        *_named("attention_weights", _SCALE + _SOFTMAX, weights),
        mistake("attention_weights", *_SWAPPED, lambda q, k: weights(k, q, {})),
    ],
    "one_head.parameters": _built(
        "ParameterAttention",
        _Parameters,
        [*_SCALE, *_ONE_HEAD, *_SOFTMAX, *_parameter_rows()],
    ),
    "one_head.transfer": _TRANSFER,
    "one_head.batched": [
        *_named("batched_attention", _SCALE + _SOFTMAX + _BATCH, attention),
        *_UNBATCHED,
    ],
    "one_head.forward": _built(
        "Attention",
        _Attention,
        [*_SCALE, *_ONE_HEAD, *_SOFTMAX, *_BATCH, *_LAYERS, *_BIAS],
    ),
    "one_head.three_lines": _built(
        "ShortAttention",
        _Attention,
        [*_SCALE, *_ONE_HEAD, *_SOFTMAX, *_BATCH, *_LAYERS, *_BIAS],
    ),
}
