"""Lesson 02: queries, keys, values, and the scale that keeps the softmax alive.

The computation is equation 1 of Vaswani et al. (2017).
"""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from autograder import Call, exercise
from autograder.judging.layers import judge_layers

from .judges.one_head import FRESH, fair_start, short


# --- step by step, one sequence ------------------------------------------------------------------
@exercise(
    "one_head.project",
    "project(x[seq_len, input_size], w_query[input_size, hidden], w_key[input_size, hidden], "
    "w_value[input_size, hidden])",
    "project(x[seq_len, size], w_query[size, size], w_key[size, size], w_value[size, size])",
    times=2,
    hints=(
        "Three questions are put to the same tokens. Each is one matrix product.",
        "Rows are tokens: x is [seq_len, input_size], a matrix is [input_size, hidden]. In "
        "which order must they stand so that the inner sizes meet?",
        "The tokens stand on the left and nothing is transposed. Return the three products "
        "in the order queries, keys, values."))
def project(x, w_query, w_key, w_value, *, order=(0, 1, 2), product=lambda x, w: x @ w):
    matrices = w_query, w_key, w_value
    return tuple(product(x, matrices[i]) for i in order)


project.wrong("projections.order", "Keys come first; queries are asked for first.", order=(1, 0, 2))
project.wrong("projections.v from k", "The values are made with the keys' matrix.", order=(0, 1, 1))
project.wrong("projections.k from q", "The keys are made with the queries' matrix.",
    order=(0, 0, 2))
project.wrong("projections.v from q", "The values are made with the queries' matrix.",
    order=(0, 1, 0))
project.wrong("projections.k and v swapped", "Keys and values are swapped.", order=(0, 2, 1))
project.wrong("projections.transposed", "The matrices are transposed. They are [input_size, "
    "hidden] already, ready to stand on the right of x.", product=lambda x, w: x @ w.T)
project.wrong("projections.x on the right", "The tokens stand on the wrong side of the product. "
    "Each row of x is a token.", product=lambda x, w: w @ x)


def _pairs_of_vectors(draw):
    """Many pairs, whose spreads are neither 1 nor alike."""
    calls = []
    for hidden in draw.sizes(3, 3, 23):
        sigma_q, sigma_k = draw.choice((0.3, 0.5, 0.7)), draw.choice((1.3, 1.7, 2.1))
        pairs = draw.integer(900, 1100)
        q, k = draw.normal(pairs, hidden, scale=sigma_q), draw.normal(pairs, hidden, scale=sigma_k)
        says = f"{pairs} pairs of vectors, hidden {hidden}, sigma {sigma_q} and {sigma_k}"
        calls.append(Call("", (q, k, sigma_q, sigma_k), says=says))
    return calls


@exercise(
    "one_head.variance",
    _pairs_of_vectors,
    rtol=3e-3,  # so that the variance may divide by the number of pairs, or by one less
    hints=(
        "Pair i is row i of q with row i of k. How do you get one dot product per row?",
        "Multiply elementwise and sum over the last dimension, then take the variance of "
        "these numbers. For the prediction: what is the variance of a product of two "
        "independent numbers with mean 0? And of a sum of `hidden` such products?",
        "A product has variance sigma_q squared times sigma_k squared; independent terms add "
        "their variances. Variance, not standard deviation, on both sides."))
def score_variance(q, k, sigma_q, sigma_k, *,
                   measured=lambda products: products.sum(-1).var(),
                   predicted=lambda hidden, sigma: hidden * sigma**2):
    return measured(q * k), predicted(q.shape[-1], sigma_q * sigma_k)


score_variance.wrong("variance.standard deviation", "Both numbers are standard deviations; "
    "variances are asked for.", measured=lambda p: p.sum(-1).std(),
    predicted=lambda n, sigma: n**0.5 * sigma)
score_variance.wrong("variance.standard deviation", "The measured number is a standard deviation; "
    "the variance is asked for.", measured=lambda p: p.sum(-1).std())
score_variance.wrong("variance.root of hidden", "The prediction grows with the root of hidden: "
    "that is the law of the standard deviation.", predicted=lambda n, sigma: n**0.5 * sigma**2)
score_variance.wrong("variance.hidden squared", "The prediction grows with hidden squared, as if "
    "the terms of the sum were one and the same number.",
    predicted=lambda n, sigma: (n * sigma) ** 2)
score_variance.wrong("variance.sigma not squared", "The prediction uses the sigmas as they are. A "
    "variance is a standard deviation squared.", predicted=lambda n, sigma: n * sigma)
score_variance.wrong("variance.no sum", "The measured variance is that of single products; a score "
    "is their sum over the features.", measured=lambda p: p.var())
score_variance.wrong("variance.mean for sum", "The measured variance is that of the mean of the "
    "products; a score is their sum.", measured=lambda p: p.mean(-1).var())
score_variance.wrong("variance.over tokens", "The products are summed over the pairs; a dot "
    "product sums over the features.", measured=lambda p: p.sum(0).var())
score_variance.wrong("variance.order", "The two numbers are in the wrong order.",
    lambda *args: score_variance(*args)[::-1])


def _scores_of_every_size(draw):
    calls = []
    for seq_len, scale in zip(draw.sizes(3, 3, 11), (0.5, 1.0, 3.0), strict=True):
        calls.append(Call("", (draw.normal(seq_len, scale=scale),), says=f"{seq_len} scores"))
    large = draw.normal(draw.choice((5, 7))) + 300.0
    return [*calls, Call("", (large,), says="scores around 300")]


def softmax_naive(scores):
    # In float64 exp(300) is finite; the answers of students are float32, where it is not.
    powers = scores.float().exp()
    return (powers / powers.sum()).double()


@exercise(
    "one_head.jacobian",
    _scores_of_every_size,
    hints=(
        "Differentiate p_i = exp(s_i) / sum exp(s) by s_j, once for i = j and once for i != j.",
        "Both cases have the term -p_i p_j; one of the two has one more term. "
        "`torch.outer` makes all products, `torch.diag` a diagonal matrix.",
        "On the diagonal it is p_i (1 - p_i), elsewhere -p_i p_j. Take p from torch.softmax, "
        "which survives large scores."))
def softmax_jacobian(scores, *, softmax=lambda s: s.softmax(0),
                     derivative=lambda p: torch.diag(p) - torch.outer(p, p)):
    return derivative(softmax(scores))


softmax_jacobian.wrong("jacobian.diagonal only", "Only the diagonal is there. Raising one score "
    "also takes weight away from all others.", derivative=lambda p: torch.diag(p * (1 - p)))
softmax_jacobian.wrong("jacobian.diagonal only", "This is a list of the diagonal. Raising one "
    "score also takes weight away from all others.", derivative=lambda p: p * (1 - p))
softmax_jacobian.wrong("jacobian.missing diagonal term", "The outer product is there; the term for "
    "i = j is not.", derivative=lambda p: -torch.outer(p, p))
softmax_jacobian.wrong("jacobian.missing outer term", "The term -p_i p_j is missing.",
    derivative=torch.diag)
softmax_jacobian.wrong("jacobian.sign", "The sign is wrong: a higher score must give its own token "
    "more weight, not less.", derivative=lambda p: torch.outer(p, p) - torch.diag(p))
softmax_jacobian.wrong("jacobian.sign", "The outer product has the wrong sign: what one token "
    "gains, the others lose.", derivative=lambda p: torch.diag(p) + torch.outer(p, p))
softmax_jacobian.wrong("jacobian.broadcast", "p was subtracted from every row; products of all "
    "pairs are needed.", derivative=lambda p: torch.diag(p) - p)
softmax_jacobian.wrong("jacobian.of the log-softmax", "This is the Jacobian of the logarithm of "
    "the softmax.", derivative=lambda p: torch.eye(len(p)) - p.expand(len(p), -1))
softmax_jacobian.wrong("jacobian.of the scores", "The formula is in terms of the probabilities p, "
    "but the scores themselves were put in.", softmax=lambda s: s)
softmax_jacobian.wrong("softmax.overflow", "It is right for small scores, but exp of large ones "
    "overflows. Use torch.softmax, which subtracts the largest first.", softmax=softmax_naive)


# --- weights of a sequence, attention in a batch -------------------------------------------------
SOFTMAX = {  # of scores[..., queries, keys]
    "over keys": lambda s: s.softmax(-1),
    "over queries": lambda s: s.softmax(-2),
    "over the batch": lambda s: s.softmax(0),
    "over all": lambda s: s.flatten(-2).softmax(-1).reshape(s.shape),
    "twice": lambda s: s.softmax(-1).softmax(-1),
    "missing": lambda s: s,
    "sigmoid": lambda s: s.sigmoid(),
}


@exercise(
    "one_head.scale",
    "attention_weights(q[seq_len, hidden], k[seq_len, hidden])",
    hints=(
        "The scores have a standard deviation of sqrt(hidden). What do you divide by so that "
        "it becomes 1?",
        "Scores first, then the division, then the softmax: the order matters, since the "
        "softmax is not linear.",
        "hidden is the last size of k. The softmax runs over the keys, so that each query's "
        "row sums to 1."))
def attention_weights(q, k, *, root=0.5, of=-1, late=0, softmax="over keys", turn=lambda k: k.mT):
    scores = q @ turn(k)
    scaled_scores = scores / k.shape[of] ** root
    weights = SOFTMAX[softmax](scaled_scores)
    return weights / k.shape[-1] ** late


@exercise(
    "one_head.batched",
    "batched_attention(q[batch_size, seq_len, hidden], k[batch_size, seq_len, hidden], "
    "v[batch_size, seq_len, value_size])",
    "batched_attention(q[batch_size, size, size], k[batch_size, size, size], "
    "v[batch_size, size, value_size])",
    # A `squeeze` somewhere shows only where a dimension is 1.
    "batched_attention(q[1, 1, hidden], k[1, 1, hidden], v[1, 1, value_size])",
    times=2,
    hints=(
        "Which lines of the one-sequence version count their dimensions from the left?",
        "`.T` turns all dimensions round. You want only the last two swapped.",
        "`k.transpose(-2, -1)`, the size of the last dimension for the scale, and a softmax "
        "over the last dimension."))
def batched_attention(q, k, v, *, root=0.5, of=-1, late=0, softmax="over keys",
                      turn=lambda k: k.mT):
    weights = attention_weights(q, k, root=root, of=of, late=late, softmax=softmax, turn=turn)
    return weights @ v


attention_weights.wrong("projections.q and k swapped", "The rows should belong to the queries: "
    "queries and keys are swapped.", lambda q, k: attention_weights(k, q))
batched_attention.wrong("batch.reshaped", "The keys are reshaped, which keeps the order of the "
    "numbers and mixes tokens with features. Transpose the last two dimensions.",
    turn=lambda k: k.reshape(len(k), k.shape[2], k.shape[1]))
batched_attention.wrong("batch.counted from the left", "The code counts dimensions as if there "
    "were no batch: `.T` and `transpose(0, 1)` move the batch. Swap the last two.",
    turn=lambda k: k.permute(2, 1, 0))
batched_attention.wrong("projections.q and k swapped", "Queries and keys are swapped: each row "
    "should belong to a query.", lambda q, k, v: batched_attention(k, q, v))


# --- the classes ---------------------------------------------------------------------------------
CLASS_HINTS = (
    "All of it is written already: three projections in __init__, and "
    "`batched_attention` in forward.",
    "`nn.Linear(input_size, hidden)` three times, under the names q, k and v. Do not "
    "forget `super().__init__()`.",
    "In forward call each layer on x, divide the scores by the square root of hidden, "
    "softmax over the last dimension, then times the values.")
SHORT_HINTS = (
    "Which intermediate results are used once only? They need no name.",
    "One line for the scores, one for the weights, one for the return.",
    "`self.q(x)` may stand right inside the product, and so may the transposed keys.")
judge_projections = partial(
    judge_layers,
    prefix="projections",
    names={"not registered": "missing layer"},
    says={
        "missing layer": "There is no layer `{layer}` that learns. Make it an `nn.Linear` in "
        "__init__.",
        "not registered": "The module does not register `{name}`: nothing would train it.",
        "wrong width": "`{name}` has shape {got}, not {expected}: every projection goes from "
        "input_size to hidden.",
    })


@exercise(
    "one_head.forward",
    "Attention(input_size, hidden)(x[batch_size, seq_len, input_size])",
    # A `squeeze` somewhere shows only where a dimension is 1.
    "Attention(input_size, hidden)(x[1, 1, input_size])",
    gradients=True, judge=judge_projections, hints=CLASS_HINTS)
@exercise(
    "one_head.three_lines",
    "ShortAttention(input_size, hidden)(x[batch_size, seq_len, input_size])",
    "ShortAttention(input_size, hidden)(x[1, 1, input_size])",
    name="ShortAttention", gradients=True, judge=partial(short, judge=judge_projections),
    hints=SHORT_HINTS)
class Attention(nn.Module):
    root, of, late, softmax, by_input_size = 0.5, -1, 0, "over keys", False
    order, detached, bias = "qkv", None, True

    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def project(self, name, x):
        layer = getattr(self, name)
        return layer(x) if self.bias else x @ layer.weight.T

    def forward(self, x):
        queries, keys, values = (self.project(name, x) for name in self.order)
        keys = keys.detach() if self.detached == "keys" else keys
        size = (x if self.by_input_size else keys).shape[self.of]
        scores = queries @ keys.mT
        scaled_scores = scores / size**self.root
        weights = SOFTMAX[self.softmax](scaled_scores) / size**self.late
        return weights @ values


def _fresh(draw):
    """Starting values, of a size at which chance hardly moves their mean and spread."""
    calls = []  # a list of their own: a dict of tensors has no gradient that could be asked for
    for inputs in draw.random.sample((150, 190, 230), 2):
        sizes = inputs, draw.choice((31, 43))
        says = f"the starting values for input_size {sizes[0]}, hidden {sizes[1]}"
        calls.append(Call("", init=sizes, method=FRESH, seed=draw.seed(), says=says))
    return calls


judge_parameters = partial(
    judge_layers,
    prefix="parameters",
    names={"missing layer": "shape", "wrong width": "shape"},
    says={"wrong width": "`{name}` has shape {got}, expected {expected}: it is [input_size, "
          "hidden]."})


@exercise(
    "one_head.parameters",
    "ParameterAttention(input_size, hidden)(x[seq_len, input_size])",
    _fresh,
    gradients=True,
    judge=partial(fair_start, judge=judge_parameters),
    hints=(
        "How does a module find out which of its tensors are to be learned?",
        "`nn.Parameter(tensor)`, set as an attribute after `super().__init__()`, is "
        "registered. Leave requires_grad alone: it is True.",
        "Three parameters of shape [input_size, hidden]; forward uses `x @ self.w_query` and "
        "so on, then what you wrote for the weights, then the values."))
class ParameterAttention(Attention):
    def __init__(self, input_size, hidden):
        nn.Module.__init__(self)
        spread = input_size**-0.5
        self.w_query = nn.Parameter(torch.randn(input_size, hidden) * spread)
        self.w_key = nn.Parameter(torch.randn(input_size, hidden) * spread)
        self.w_value = nn.Parameter(torch.randn(input_size, hidden) * spread)

    def project(self, name, x):
        w = {"q": self.w_query, "k": self.w_key, "v": self.w_value}[name]
        return x @ (w.detach() if self.detached == "w_key" and name == "k" else w)


for answer in (ParameterAttention, Attention):
    answer.wrong("scale.input_size", "The scores are scaled by the square root of input_size. The "
        "dot product is between queries and keys, whose size is hidden.", by_input_size=True)
    answer.wrong("autograd.detached", "No gradient reaches the keys: something was detached on the "
        "way.", detached="keys")
    answer.wrong("projections.q and k swapped", "Queries and keys are swapped: the scores come out "
        "transposed.", order="kqv")
    answer.wrong("projections.v from k", "The values are made with the keys' projection.",
        order="qkk")
    answer.wrong("projections.v from q", "The values are made with the queries' projection.",
        order="qkq")
    answer.wrong("projections.k from q", "The keys are made with the queries' projection.",
        order="qqv")
    answer.wrong("projections.q from k", "The queries are made with the keys' projection.",
        order="kkv")
    answer.wrong("projections.k and v swapped", "Keys and values are swapped.", order="qvk")
    answer.wrong("projections.q and v swapped", "Queries and values are swapped.", order="vkq")
ParameterAttention.wrong("autograd.detached", "No gradient reaches the keys' matrix: something was "
    "detached on the way.", detached="w_key")
Attention.wrong("projections.lost bias", "The biases of the layers are left out. Call the layers "
    "instead of multiplying by their weights.", bias=False)

for answer in (attention_weights, batched_attention, ParameterAttention, Attention):
    answer.wrong("scale.missing", "The scores are not scaled.", root=0)
    answer.wrong("scale.not a root", "The scores are divided by the size itself. Their standard "
        "deviation is its square root.", root=1)
    answer.wrong("scale.multiplied", "The scores are multiplied by the square root instead of "
        "divided by it.", root=-0.5)
    answer.wrong("scale.after softmax", "The scores go into the softmax as they are, and something "
        "else is scaled: the scale belongs on the scores.", root=0, late=0.5)
    answer.wrong("scale.fourth root", "The square root was taken twice.", root=0.25)
    answer.wrong("scale.seq_len", "The scores are scaled by the square root of seq_len. A dot "
        "product has as many terms as the vectors have features.", of=-2)
    answer.wrong("softmax.dim", "The softmax runs over the queries: its columns sum to 1, not its "
        "rows.", softmax="over queries")
    answer.wrong("softmax.twice", "The softmax is applied twice.", softmax="twice")
    answer.wrong("softmax.missing", "There is no softmax: the values are averaged with raw scores.",
        softmax="missing")
    answer.wrong("softmax.sigmoid", "A sigmoid stands where the softmax belongs: look at the sums "
        "of the rows.", softmax="sigmoid")
for answer in (batched_attention, Attention):
    answer.wrong("softmax.dim", "The softmax runs over the batch: sequences that have nothing to "
        "do with each other compete.", softmax="over the batch")
    answer.wrong("softmax.dim", "One softmax runs over all queries and keys together.",
        softmax="over all")


# --- from layers to parameters -------------------------------------------------------------------
def _states(draw):
    """Layers without a bias, once as wide as their input; and layers that have one."""
    calls = []
    for square, bias in ((False, False), (True, False), (False, False), (False, True)):
        input_size, hidden = draw.sizes(2)
        hidden = input_size if square else hidden
        state = {}
        for name in "qkv":
            state |= draw.linear(name, input_size, hidden, bias)
        says = f"nn.Linear layers with bias={bias}, input_size {input_size}, hidden {hidden}"
        calls.append(Call("", (state,), says=says))
    return calls


@exercise(
    "one_head.transfer",
    _states,
    hints=(
        "Print the shape of the weight of `nn.Linear(3, 2)`. Is it what you expected?",
        "`nn.Linear` computes x @ weight.T + bias. Which matrix W makes x @ W the same?",
        "Transpose each weight, under its new name. Where there is a bias, raise a "
        "ValueError: it would be lost without a word."))
def transfer(state, *, layers="qkv", names=("w_query", "w_key", "w_value"),
             turn=lambda weight: weight.T, check_bias=True):
    if check_bias and any(name.endswith("bias") for name in state):
        raise ValueError("there is no place for a bias")
    weights = (turn(state[f"{layer}.weight"]) for layer in layers)
    return dict(zip(names, weights, strict=True))


transfer.wrong("transfer.not transposed", "The weights are copied as they are, but nn.Linear "
    "stores [hidden, input_size] and multiplies by the transposed weight.", turn=lambda w: w)
transfer.wrong("transfer.not transposed", "The weights are copied as they are, and a bias is lost "
    "without a word.", turn=lambda w: w, check_bias=False)
transfer.wrong("transfer.reshaped", "The weights are reshaped: the shape is right but the numbers "
    "stand in other places. Transpose.", turn=lambda w: w.reshape(w.shape[::-1]))
transfer.wrong("transfer.lost bias", "Where the layers have a bias, it is lost without a word. "
    "Raise a ValueError.", check_bias=False)
transfer.wrong("projections.q and k swapped", "Queries and keys are swapped.", layers="kqv")
transfer.wrong("projections.v from k", "The values' matrix is taken from the keys.", layers="qkk")
transfer.wrong("transfer.old names", "The names are still those of the layers; `w_query`, `w_key` "
    "and `w_value` are asked for.", names=("q.weight", "k.weight", "v.weight"))
