"""Lesson 06: is it right? The backward pass of attention by hand, and equality with libraries.

Masks are True where a key is hidden. `grad_x` is the gradient of the loss by x, of the shape of x.
"""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F

from autograder import Call, Draw, Made, exercise
from autograder.judging.compare import named_errors
from autograder.judging.forms import results_in_one_tensor

from .judges.backward import coarse_then_fine, conv1d, no_jacobian, same_dice, told_by_line

transposed = partial(torch.transpose, dim0=-2, dim1=-1)
kept = torch.clone  # where a step is left out


# --- the values ----------------------------------------------------------------------------------
def by_probs(draw: Draw) -> Call:
    batch_size, seq_len, head_size = draw.sizes(3, 2, 11)
    probs = draw.normal(batch_size, seq_len, seq_len, scale=1.5).softmax(-1)
    says = f"{batch_size} sequences of {seq_len} tokens, head_size {head_size}"
    return Call("", (probs, draw.normal(batch_size, seq_len, head_size)), says=says)


VALUES_LINES = [
    (r"grad_out\s*@|matmul\(grad_out|bmm\(grad_out", "Expected size", "values.order",
     "The product is the wrong way round: the queries' axis of P must meet that of grad_out."),
    (r"\.T\b|\.t\(\)", ".", "values.all axes turned",
     "`.T` turns all three axes round, the batch too. Only the last two change places: "
     "`transpose(-2, -1)`."),
]


@exercise("backward.values", by_probs, judge=partial(told_by_line, lines=VALUES_LINES),
          hints=(
              "out[i] = sum over j of P[i, j] v[j]. In which outputs does one v[j] appear?",
              "v[j] goes into output i with weight P[i, j], so grad_v[j] is the sum over i of "
              "P[i, j] grad_out[i]. The sum runs over the *rows* of P.",
              "A sum over the rows is a product with P transposed: `probs.transpose(-2, -1)`."))
def grad_values(probs, grad_out, turn=transposed, total=kept):
    return total(turn(probs) @ grad_out)

grad_values.wrong(
    "values.P not transposed",
    "P is not transposed: that sends the outputs' gradients the way that values go forwards. "
    "A value collects from all the queries that looked at it.", turn=kept)
grad_values.wrong(
    "values.result transposed",
    "The result has its two last axes swapped: a gradient has the shape of what it belongs to.",
    lambda p, g: (p.mT @ g).mT, lambda p, g: g.mT @ p)
grad_values.wrong(
    "values.batch summed", "The sequences of the batch are added up; each has its own values.",
    lambda p, g: torch.einsum("bij,bih->jh", p, g),
    lambda p, g: (p.mT @ g).sum(0, keepdim=True),
    lambda p, g: (p.mT @ g).sum(0, keepdim=True).expand_as(g))
grad_values.wrong(
    "values.averaged", "The queries' shares are averaged; a gradient is a sum over all paths.",
    total=lambda g: g / g.shape[-2])
grad_values.wrong(
    "values.rows of P",
    "grad_out is weighted by how much attention a value gets in all, not by who gave it: the sum "
    "over the queries is taken before the product.",
    lambda p, g: p.sum(-2)[..., None] * g, lambda p, g: p.sum(-2)[..., None] * g.sum(-2, True))
grad_values.wrong(
    "values.inverse", "That undoes P. Going backwards is a transpose and not an inverse.",
    lambda p, g: torch.linalg.solve(p, g))
grad_values.wrong(
    "values.softmax again", "`probs` went through a softmax once more. They are probabilities.",
    lambda p, g: p.softmax(-1).mT @ g)
grad_values.wrong(
    "values.overwritten",
    "Each query overwrites what the one before it gave. All that looked at a value add to its "
    "gradient.", lambda p, g: p[:, -1:].mT @ g[:, -1:])
grad_values.wrong(
    "values.normalised",
    "The shares of the queries are made to sum to 1. The rows of P do that already, its columns "
    "need not.",
    lambda p, g: (p.mT / p.sum(-2)[..., None]) @ g, lambda p, g: p.mT.softmax(-1) @ g)
grad_values.wrong(
    "values.diagonal", "Each value collects from its own query only.",
    lambda p, g: p.diagonal(dim1=-2, dim2=-1)[..., None] * g)


# --- the softmax ---------------------------------------------------------------------------------
def many_keys(draw: Draw) -> list[Call]:
    """Few queries and many keys, so that a Jacobian is far larger than all that is needed."""
    calls = []
    for batch_size, q_len, k_len, spread in ((2, 2, 41, 1.0), (2, 3, 83, 1.5), (3, 2, 97, 4.0)):
        probs = draw.normal(batch_size, q_len, k_len, scale=spread).softmax(-1)
        grad = draw.normal(batch_size, q_len, k_len) + draw.choice((-1, 1))
        says = f"{batch_size} sequences, {q_len} queries and {k_len} keys"
        calls.append(Call("", (probs, grad), work=True, says=says))
    probs = draw.normal(2, 7, 7).softmax(-1)  # square: a sum over the wrong axis fits as well
    calls.append(Call("", (probs, draw.normal(2, 7, 7)), says="2 sequences, 7 queries and 7 keys"))
    return calls


def row_total(products):
    return products.sum(-1, keepdim=True)


@exercise("backward.softmax", many_keys, judge=no_jacobian,
          also=(lambda p, g: torch._softmax_backward_data(g, p, -1, p.dtype),),
          hints=(
              "Raise one score: its own probability rises, and all others in its row fall. What "
              "do the two terms of the Jacobian say?",
              "grad_s[i] = sum over j of p[i] (delta[i, j] - p[j]) g[j]. Carry out the sum over "
              "j by hand: the first term leaves p[i] g[i].",
              "What remains is p[i] times (g[i] minus one number a row). The number is the sum of "
              "p * g over the row; keepdim=True keeps it in place."))
def softmax_backward(probs, grad_probs, total=row_total, of=torch.mul, sign=-1):
    return probs * (grad_probs + sign * total(of(probs, grad_probs)))

softmax_backward.wrong(
    "softmax.row term missing",
    "This is p times the gradient alone. A score that rises takes from all others in its row; "
    "that second term is missing.", total=torch.zeros_like)
softmax_backward.wrong(
    "softmax.over the queries",
    "The sum runs over the queries. A softmax ties together the keys of *one* query.",
    total=lambda x: x.sum(-2, keepdim=True))
softmax_backward.wrong(
    "softmax.over all", "One sum is taken over everything; each row has its own.",
    total=torch.sum, )
softmax_backward.wrong(
    "softmax.over all", "One sum is taken over each sequence; each row has its own.",
    total=lambda x: x.sum((-2, -1), keepdim=True))
softmax_backward.wrong(
    "softmax.sign", "The row's term is added. It must be taken away: what one key gains the "
    "others lose.", sign=1)
softmax_backward.wrong(
    "softmax.row term outside",
    "The row's sum is subtracted after the product with p. Both terms of the Jacobian carry p: "
    "subtract first.", lambda p, g: p * g - (p * g).sum(-1, keepdim=True))
softmax_backward.wrong(
    "softmax.p missing in the sum",
    "The row's sum is of the gradients alone; each counts by its probability.",
    of=lambda p, g: g)
softmax_backward.wrong(
    "softmax.mean for sum", "The row's products are averaged; they must be added up.",
    total=lambda x: x.mean(-1, keepdim=True))
softmax_backward.wrong(
    "softmax.p missing in front", "The bracket is right; the factor p in front of it is missing.",
    lambda p, g: g - (p * g).sum(-1, keepdim=True))
softmax_backward.wrong(
    "softmax.p missing in front", "p stands before the row's sum alone; it belongs before both.",
    lambda p, g: g - p * row_total(p * g))
softmax_backward.wrong(
    "softmax.p missing in front", "p stands before the gradient alone, and the row's sum is of the "
    "gradients.", lambda p, g: p * g - row_total(g))
softmax_backward.wrong(
    "softmax.like a sigmoid",
    "p (1 - p) is the Jacobian's diagonal alone, the derivative of a sigmoid. What each score "
    "does to the *other* probabilities is missing.", lambda p, g: p * (1 - p) * g)
softmax_backward.wrong(
    "softmax.softmax again", "That is the softmax of the gradient. The derivative is wanted.",
    lambda p, g: g.softmax(-1), lambda p, g: p * g.softmax(-1))
softmax_backward.wrong(
    "softmax.of the cross-entropy", "That is the gradient of a cross-entropy, p minus the target. "
    "Here a gradient comes in, and there is no target.", lambda p, g: p - g, lambda p, g: g - p)
softmax_backward.wrong(
    "softmax.gradient unused", "The gradient that came in is not used.",
    lambda p, g: p * (1 - p))
softmax_backward.wrong(
    "softmax.sum of p", "The bracket holds the sum of the probabilities, which is 1. The sum is "
    "of the products p * g.", lambda p, g: p * g * (1 - p.sum(-1, keepdim=True)),
    lambda p, g: p * (g - p.sum(-1, keepdim=True)))
softmax_backward.wrong(
    "softmax.of a log-softmax", "That is the derivative of log_softmax: grad - p * sum(grad).",
    lambda p, g: g - p * g.sum(-1, keepdim=True))
softmax_backward.wrong(
    "softmax.largest for sum", "The largest of the row's products is taken; they are added up.",
    total=lambda x: x.amax(-1, keepdim=True))
softmax_backward.wrong(
    "softmax.p twice", "The row's sum is multiplied by p twice.",
    lambda p, g: p * g - p.square() * row_total(p * g))
softmax_backward.wrong(
    "softmax.one row's sum", "All queries get the sum of one row; each row has its own.",
    lambda p, g: p * (g - row_total(p * g)[:, -1:]), lambda p, g: p * (g - row_total(p * g)[:, :1]))
softmax_backward.wrong("softmax.sign", "The sign is turned round.",
                       lambda p, g: -softmax_backward(p, g))
softmax_backward.wrong(
    "softmax.p missing in front", "1 - p stands in front of the bracket; it is p.",
    lambda p, g: (1 - p) * (g - row_total(p * g)))
softmax_backward.wrong(
    "softmax.sum of p", "The bracket holds the sum of the squared probabilities. The sum is of the "
    "products p * g.", lambda p, g: p * (g - row_total(p * p)))
softmax_backward.wrong("softmax.divided by p", "p stands below the line; it is a factor.",
                       lambda p, g: (g - row_total(p * g)) / p)
softmax_backward.wrong(
    "softmax.applied to probabilities",
    "`probs` went through the softmax once more. They are probabilities already.",
    lambda p, g: softmax_backward(p.softmax(-1), g))
softmax_backward.wrong(
    "softmax.one sequence's sum", "All sequences get the row sums of one; each row has its own.",
    total=lambda x: row_total(x)[:1])
softmax_backward.wrong(
    "softmax.one sequence's sum", "All sequences get the row sums of one; each row has its own.",
    total=lambda x: row_total(x)[-1:])
softmax_backward.wrong(
    "softmax.not all keys", "The row's sum leaves out the last key.",
    total=lambda x: row_total(x[..., :-1]))
softmax_backward.wrong(
    "softmax.not all keys", "The row's sum leaves out the first key.",
    total=lambda x: row_total(x[..., 1:]))
softmax_backward.wrong(
    "softmax.running sum", "The row's products are added up as they come, each key with those "
    "before it. All keys of a row share one sum.", total=lambda x: x.cumsum(-1))
softmax_backward.wrong(
    "softmax.p twice", "The gradient is multiplied by p twice.",
    lambda p, g: p * (p * g - row_total(p * g)))
softmax_backward.wrong(
    "softmax.row term twice", "The row's term is taken away twice.",
    lambda p, g: p * (g - 2 * row_total(p * g)))
softmax_backward.wrong(
    "softmax.first term missing", "Only the row's term is there; each key's own gradient, p * g, "
    "is missing.", lambda p, g: -p * row_total(p * g))
softmax_backward.wrong(
    "softmax.full Jacobian", "A whole Jacobian is built on the way.",
    lambda p, g: torch.einsum(
        "...ij,...j->...i", torch.diag_embed(p) - p[..., :, None] * p[..., None, :], g))


# --- queries and keys ----------------------------------------------------------------------------
def scores_and_sides(draw: Draw) -> Call:
    batch_size, seq_len = draw.sizes(2, 2, 11)
    head_size = draw.choice((4, 9, 16))
    q, k = (draw.normal(batch_size, seq_len, head_size) for _ in "qk")
    says = f"{batch_size} sequences of {seq_len} tokens, head_size {head_size}"
    return Call("", (draw.normal(batch_size, seq_len, seq_len), q, k), says=says)


def root(k):
    return k.shape[-1] ** -0.5


@exercise("backward.queries_keys", scores_and_sides, judge=results_in_one_tensor,
          hints=(
              "scores[i, j] = q[i] . k[j] / sqrt(head_size). In which scores does q[i] appear, "
              "and in which k[j]?",
              "q[i] is in row i, and there its partner is k[j]: grad_q = grad_scores @ k, scaled. "
              "k[j] is in *column* j.",
              "grad_k is the transposed grad_scores times q, with the same scale, once."))
def grad_queries_keys(grad_scores, q, k, scale_q=root, scale_k=root, turn=transposed,
                      turn_q=kept, for_q=1, for_k=0):
    sides = (q, k)
    grad_q = turn_q(grad_scores) @ sides[for_q] * scale_q(k)
    return grad_q, turn(grad_scores) @ sides[for_k] * scale_k(k)

wrong = grad_queries_keys.wrong
none, twice, squared = (lambda k: 1.0), (lambda k: k.shape[-1] ** -1.0), (lambda k: k.shape[-1])
wrong("scale.lost", "The scale is lost: scores were divided by sqrt(head_size) on the way forward, "
      "and each gradient must pass that division too.", scale_q=none, scale_k=none)
wrong("scale.twice", "The scale is applied twice.", scale_q=twice, scale_k=twice)
wrong("scale.twice", "The scale is applied twice to grad_k.", scale_k=twice)
wrong("scale.twice", "The scale is applied twice to grad_q.", scale_q=twice)
wrong("scale.lost", "grad_q is scaled and grad_k is not.", scale_k=none)
wrong("scale.lost", "grad_k is scaled and grad_q is not.", scale_q=none)
wrong("scale.multiplied",
      "The gradients are multiplied by sqrt(head_size). Backwards is not the inverse: a factor "
      "on the way forward is the same factor on the way back.",
      scale_q=lambda k: k.shape[-1] ** 0.5, scale_k=lambda k: k.shape[-1] ** 0.5)
wrong("scale.seq_len", "The scale is taken from seq_len, not from head_size.",
      scale_q=lambda k: k.shape[-2] ** -0.5, scale_k=lambda k: k.shape[-2] ** -0.5)
wrong("queries_keys.swapped", "grad_q and grad_k are swapped.",
      lambda g, q, k: grad_queries_keys(g, q, k)[::-1])
wrong("queries_keys.not transposed",
      "grad_scores is not transposed for the keys: k[j] collects from *column* j.", turn=kept)
wrong("queries_keys.transposed for q",
      "grad_scores is transposed for the queries: q[i] collects from row i.", turn_q=transposed)
wrong("queries_keys.transposed the wrong way",
      "grad_scores is transposed for the queries and not for the keys; it is the other way round.",
      turn_q=transposed, turn=kept)
wrong("queries_keys.partner",
      "Each is multiplied by itself. By the product rule q's gradient is made of k, and k's of q.",
      for_q=0, for_k=1)
wrong("queries_keys.partner", "grad_q is made of q. By the product rule it is made of k.", for_q=0)
wrong("queries_keys.partner", "grad_k is made of k. By the product rule it is made of q.", for_k=1)
wrong("queries_keys.result transposed",
      "grad_k has its two last axes swapped; it has the shape of k.",
      lambda g, q, k: (grad_queries_keys(g, q, k)[0], grad_queries_keys(g, q, k)[1].mT))
wrong("queries_keys.sign", "grad_k has the other sign.", turn=lambda g: -g.mT)
wrong("queries_keys.sign", "grad_q has the other sign.", turn_q=torch.neg)
wrong("queries_keys.batch", "grad_k is added up over the batch; each sequence has its own keys.",
      lambda g, q, k: (grad_queries_keys(g, q, k)[0],
                       grad_queries_keys(g, q, k)[1].sum(0, True).expand_as(k)))
wrong("queries_keys.softmax", "grad_scores went through a softmax. It is a gradient: it is used as "
      "it comes.", lambda g, q, k: grad_queries_keys(g.softmax(-1), q, k))
wrong("queries_keys.forwards", "The gradient is multiplied by the scores of q and k. On the way "
      "back each side gets the gradient times the other side.",
      lambda g, q, k: ((g * (q @ k.mT) * root(k)) @ k, (g * (q @ k.mT) * root(k)).mT @ q))


# --- mask and dropout ----------------------------------------------------------------------------
def half_hidden(draw: Draw) -> list[Call]:
    """Some rows are wholly hidden: there the probabilities are even, and nobody learns of it."""
    calls = []
    for p in (0.25, 0.4, 0.0):
        batch_size, seq_len = draw.sizes(2, 3, 11)
        hidden = torch.ones(seq_len, seq_len).triu(1).bool().expand(batch_size, -1, -1).clone()
        hidden[0] |= draw.integers(0, 2, seq_len, seq_len).bool()
        hidden[0, 1] = True
        lowest = torch.finfo(torch.float32).min
        probs = draw.normal(batch_size, seq_len, seq_len, scale=1.5).masked_fill(hidden, lowest)
        dropped = draw.uniform(batch_size, seq_len, seq_len) < p
        grad = draw.normal(batch_size, seq_len, seq_len) + 1.0
        args = (grad, probs.softmax(-1), hidden, dropped, p)
        says = f"{batch_size} sequences of {seq_len} tokens, p={p}, one row wholly hidden"
        calls.append(Call("", args, says=says, seed=draw.seed()))
    *first, none = calls
    again = Call("", first[0].args, says=first[0].says + ", asked again", seed=draw.seed())
    return [none, *first[1:], first[0], again]


def divided(grad, p):
    return grad / (1 - p)


def closed_first(g, probs, hidden, dropped, p):
    """Right as well: where p is 0 nothing passes, and of a row of zeros the softmax makes zeros."""
    return softmax_backward(probs, g.masked_fill(dropped | hidden, 0.0) / (1 - p))


@exercise("backward.mask_dropout", half_hidden, judge=same_dice, also=(closed_first,),
          hints=(
              "Go back through the three steps in reverse order: dropout, softmax, mask. What does "
              "each do to a gradient?",
              "Dropout multiplied by 0 or by 1 / (1 - p): the gradient is multiplied by the very "
              "same numbers. Then your softmax_backward.",
              "Hidden scores were overwritten by the mask, so nothing depends on them: end with "
              "masked_fill(hidden, 0)."))
def mask_dropout_backward(grad_dropped, probs, hidden, dropped, p, rescale=divided,
                          drop=lambda g, dropped, p: g.masked_fill(dropped, 0.0),
                          soften=softmax_backward,
                          close=lambda g, hidden: g.masked_fill(hidden, 0.0)):
    grad_probs = rescale(drop(grad_dropped, dropped, p), p)
    return close(soften(probs, grad_probs), hidden)

wrong = mask_dropout_backward.wrong
wrong("dropout.1/(1-p) lost",
      "The factor 1 / (1 - p) is lost: what stayed was enlarged on the way forward, and so is its "
      "gradient.", rescale=lambda g, p: g)
wrong("dropout.1/(1-p) the wrong way", "The gradient is multiplied by 1 - p.",
      rescale=lambda g, p: g * (1 - p))
wrong("dropout.1/(1-p) the wrong way",
      "What was dropped is multiplied by 1 - p. It gets no gradient, and what stayed is divided "
      "by 1 - p.", drop=lambda g, dropped, p: torch.where(dropped, g * (1 - p), g),
      rescale=lambda g, p: g)
wrong("dropout.divided by p", "What stayed was enlarged by 1 / (1 - p), not by 1 / p.",
      rescale=lambda g, p: g / p)
wrong("mask.-inf in the gradient",
      "Hidden scores get a gradient of -inf. -inf is what a hidden *score* is; its gradient is 0.",
      close=lambda g, hidden: g.masked_fill(hidden, -math.inf))
wrong("softmax.applied to probabilities",
      "`probs` went through the softmax once more. They are probabilities already.",
      soften=lambda probs, g: softmax_backward(probs.softmax(-1), g))
wrong("dropout.redrawn", "The dropout mask is drawn again.",
      drop=lambda g, dropped, p: g * (torch.rand(g.shape) >= p))
wrong("dropout.ignored", "What was dropped still gets a gradient: the mask is not used.",
      drop=lambda g, dropped, p: g)
wrong("dropout.ignored", "Dropout is passed over: neither its mask nor its factor is used.",
      drop=lambda g, dropped, p: g, rescale=lambda g, p: g)
wrong("dropout.inverted", "The mask is the wrong way round: what was dropped gets the gradient.",
      drop=lambda g, dropped, p: g.masked_fill(~dropped, 0.0))
wrong("dropout.after the softmax",
      "The dropout mask is applied to the gradient of the *scores*. It acted on the probabilities, "
      "so its turn is before the softmax's.",
      lambda g, probs, hidden, dropped, p: (
          softmax_backward(probs, g).masked_fill(dropped | hidden, 0.0) / (1 - p)))
wrong("dropout.softmax of dropped",
      "The softmax's derivative is made of the probabilities before dropout; here those after it "
      "are used.",
      lambda g, probs, hidden, dropped, p: mask_dropout_backward(
          g, probs.masked_fill(dropped, 0.0) / (1 - p), hidden, dropped, p))
wrong("dropout.softmax of dropped",
      "The probabilities are enlarged by 1 / (1 - p) before the softmax's derivative is made of "
      "them. They are those before dropout.",
      lambda g, probs, hidden, dropped, p: mask_dropout_backward(
          g, probs / (1 - p), hidden, dropped, p))
wrong("dropout.softmax of dropped", "In the softmax's row sum the probabilities are those after "
      "dropout; they are those before it.",
      lambda g, probs, hidden, dropped, p: mask_dropout_backward(
          g, probs, hidden, dropped, p, soften=lambda probs, grad: probs * (
              grad - row_total(probs.masked_fill(dropped, 0.0) / (1 - p) * grad))))
wrong("dropout.ignored", "The softmax's row sum is made of the gradient as it came in, from before "
      "dropout's mask and factor.",
      lambda g, probs, hidden, dropped, p: mask_dropout_backward(
          g, probs, hidden, dropped, p, soften=lambda probs, grad: probs * (
              grad - row_total(probs * g))))
wrong("mask.gradient on hidden scores",
      "Hidden scores get a gradient. The mask overwrote them, so nothing depends on them; in a row "
      "that is wholly hidden it shows.", close=lambda g, hidden: g)
wrong("mask.inverted", "True means hidden; here only hidden scores get a gradient.",
      close=lambda g, hidden: g.masked_fill(~hidden, 0.0))
wrong("softmax.row term missing", "The softmax's row term is missing.", soften=torch.mul)
wrong("softmax.missing", "The softmax is passed over.", soften=lambda probs, g: g)
OF_ITS_SOFTMAX = (
    "over the queries", "over all", "sign", "row term outside", "p missing in the sum", "sum of p",
    "mean for sum", "p missing in front", "like a sigmoid", "p twice", "row term twice",
    "running sum", "largest for sum", "of a log-softmax", "divided by p")
for known in softmax_backward.exercises[0].mistakes:
    if known.check.removeprefix("softmax.") in OF_ITS_SOFTMAX:
        wrong(known.check, f"In the softmax's part: {known.message}",
              soften=known.namespace["softmax_backward"])


FORWARD_AGAIN = "goes through the layer as an input would, `@ {}.T`. Backwards it is `@ {}`."
LINEAR_LINES = [(
    r"weight\s*\.\s*(T|mT|t\(|transpose)", "cannot be multiplied", "linear.forward again",
    "The gradient " + FORWARD_AGAIN.format("weight", "weight"))]
PATH_LINES = [(
    r"w(_[qkv])?\s*\.\s*(T|mT|t\(|transpose)", "cannot be multiplied", "linear.forward again",
    "A gradient " + FORWARD_AGAIN.format("w", "w"))]


# --- one layer -----------------------------------------------------------------------------------
@exercise("backward.linear",
          "linear_backward(grad_y[batch_size, seq_len, outputs], x[batch_size, seq_len, inputs],"
          " weight[outputs, inputs])", judge=partial(told_by_line, lines=LINEAR_LINES),
          hints=(
              "y = x @ weight.T + bias. Each gradient has the shape of what it belongs to: which "
              "products fit?",
              "grad_x = grad_y @ weight. The weight is used by every token of every sequence, so "
              "its gradient is a sum over both.",
              "grad_weight is grad_y.T @ x with batch and tokens flattened into one axis; "
              "grad_bias is grad_y summed over both."))
def linear_backward(grad_y, x, weight, over=(0, 1), share=lambda total, count: total):
    count = grad_y.shape[0] * grad_y.shape[1]
    grad_weight = torch.einsum("bto,bti->oi", grad_y, x)
    return grad_y @ weight, share(grad_weight, count), share(grad_y.sum(over), count)

wrong = linear_backward.wrong
wrong("linear.averaged", "Weight and bias get a mean; a gradient is the sum over all uses.",
      share=lambda total, count: total / count)
wrong("linear.bias summed once",
      "The bias's gradient is summed over the sequences only. Every token uses the bias.", over=0)
wrong("linear.bias summed once",
      "The bias's gradient is summed over the tokens only. Every sequence uses the bias.", over=1)
wrong("linear.bias summed once",
      "The bias's gradient is that of one token of each sequence. Every token uses the bias.",
      lambda g, x, w: (*linear_backward(g, x, w)[:2], g[:, 0].sum(0)),
      lambda g, x, w: (*linear_backward(g, x, w)[:2], g[:, -1].sum(0)))
wrong("linear.bias of the inputs", "The bias's gradient is a sum of inputs; it is one of grad_y.",
      lambda g, x, w: (g @ w, torch.einsum("bto,bti->oi", g, x), x.sum((0, 1))))
wrong("linear.sums first", "Inputs and gradients are added up before they are multiplied. Each "
      "token's gradient belongs to its own input.",
      lambda g, x, w: (g @ w, torch.outer(g.sum((0, 1)), x.sum((0, 1))), g.sum((0, 1))))
wrong("linear.one sequence", "Only one sequence of the batch counts. A loop that overwrites keeps "
      "the last one.",
      lambda g, x, w: (g @ w, g[-1].T @ x[-1], g[-1].sum(0)),
      lambda g, x, w: (g @ w, g[-1].T @ x[-1], g.sum((0, 1))),
      lambda g, x, w: (g @ w, g[0].T @ x[0], g[0].sum(0)))
wrong("linear.x for grad_y", "grad_x is made of x: that is the way forward. It is made of grad_y "
      "and the weight.", lambda g, x, w: (x @ w.T, *linear_backward(g, x, w)[1:]))
wrong("linear.bias summed over features",
      "The bias's gradient is summed over the features, the one axis that must stay.",
      lambda g, x, w: (g @ w, torch.einsum("bto,bti->oi", g, x), g.sum(-1)),
      lambda g, x, w: (g @ w, torch.einsum("bto,bti->oi", g, x), g.sum()),
      lambda g, x, w: (g @ w, torch.einsum("bto,bti->oi", g, x), g.sum((0, 2))),
      lambda g, x, w: (g @ w, torch.einsum("bto,bti->oi", g, x), g.sum((1, 2))))
wrong("linear.weight transposed",
      "grad_weight is [inputs, outputs]; the weight of an nn.Linear is [outputs, inputs].",
      lambda g, x, w: (g @ w, torch.einsum("bto,bti->io", g, x), g.sum((0, 1))))
wrong("linear.weight for each sequence",
      "There is a grad_weight for each sequence. All share one weight: add them up.",
      lambda g, x, w: (g @ w, g.mT @ x, g.sum((0, 1))))
wrong("linear.averaged", "The bias gets a mean; a gradient is the sum over all uses.",
      lambda g, x, w: (g @ w, torch.einsum("bto,bti->oi", g, x), g.mean((0, 1))))
wrong("linear.averaged", "The weight gets a mean; a gradient is the sum over all uses.",
      lambda g, x, w: (
          g @ w, torch.einsum("bto,bti->oi", g, x) / (len(x) * x.shape[1]), g.sum((0, 1))))
wrong("linear.averaged", "There is a mean over the sequences; all uses are added up.",
      lambda g, x, w: (g @ w, torch.einsum("bto,bti->oi", g, x) / len(x), g.sum((0, 1)) / len(x)))
wrong("linear.order", "The three gradients come in another order than was asked for.",
      lambda g, x, w: tuple(linear_backward(g, x, w)[i] for i in (1, 0, 2)),
      lambda g, x, w: tuple(linear_backward(g, x, w)[i] for i in (1, 2, 0)),
      lambda g, x, w: tuple(linear_backward(g, x, w)[i] for i in (0, 2, 1)))


# --- all paths back to x -------------------------------------------------------------------------
def merged(heads):
    return heads.transpose(1, 2).flatten(2)


@exercise("backward.paths",
          "grad_input(grad_q[batch_size, num_heads, seq_len, head_size],"
          " grad_k[batch_size, num_heads, seq_len, head_size],"
          " grad_v[batch_size, num_heads, seq_len, head_size], w_q[hidden, input_size],"
          " w_k[hidden, input_size], w_v[hidden, input_size])",
          sizes={"num_heads": (2, 3), "head_size": (5, 7), "hidden": "num_heads * head_size"},
          judge=partial(told_by_line, lines=PATH_LINES),
          hints=(
              "x went into three layers. What happens to gradients where a tensor is used more "
              "than once?",
              "Merge the heads first, as in lesson 04: transpose, then reshape. Then each path is "
              "a grad_y @ weight.",
              "grad_x = merged grad_q @ w_q + merged grad_k @ w_k + merged grad_v @ w_v."))
def grad_input(grad_q, grad_k, grad_v, w_q, w_k, w_v, merge=merged, paths=(0, 1, 2), share=1.0,
               order=(0, 1, 2)):
    grads, weights = (grad_q, grad_k, grad_v), (w_q, w_k, w_v)
    return sum(merge(grads[i]) @ weights[order[i]] for i in paths) * share

wrong = grad_input.wrong
for only, name in enumerate("qkv"):
    wrong("paths.overwritten",
          f"Only the path through {name} is left: the others were overwritten. Gradients of "
          "several uses are added.", paths=(only,))
for lost, name in enumerate("qkv"):
    wrong("paths.one lost", f"The path through {name} is missing.",
          paths=tuple(i for i in range(3) if i != lost))
wrong("paths.averaged", "The three paths are averaged; gradients of several uses are added.",
      share=1 / 3)
wrong("paths.subtracted", "One path is taken away; gradients of several uses are added.",
      lambda *a: grad_input(a[0], -a[1], *a[2:]), lambda *a: grad_input(-a[0], *a[1:]),
      lambda *a: grad_input(*a[:2], -a[2], *a[3:]))
wrong("heads.scrambled merge",
      "The heads are merged by a reshape alone, which pours numbers of one token into another. "
      "Transpose to [batch_size, seq_len, num_heads, head_size] first.",
      merge=lambda h: h.reshape(len(h), h.shape[2], -1))
wrong("heads.interleaved merge", "The heads are merged with their features interleaved.",
      merge=lambda h: h.permute(0, 2, 3, 1).flatten(2))
wrong("paths.weights swapped", "w_q and w_k are swapped.", order=(1, 0, 2))
wrong("paths.weights swapped", "One weight is used for all paths.", order=(0, 0, 0))
wrong("paths.overwritten", "One path counts twice and another is missing.", paths=(0, 2, 2))
wrong("paths.overwritten", "One path counts twice and another is missing.", paths=(0, 1, 1))
wrong("paths.overwritten", "One path counts twice and another is missing.", paths=(0, 0, 2))
wrong("paths.heads added up", "The heads are added up; they lie side by side in `hidden`.",
      lambda *a: sum(g.sum(1) @ w[: g.shape[-1]] for g, w in zip(a[:3], a[3:], strict=True)),
      lambda *a: sum(g.mean(1) @ w[: g.shape[-1]] for g, w in zip(a[:3], a[3:], strict=True)))
wrong("paths.scaled", "There is a factor 1 / sqrt(head_size). It belongs to the scores, and "
      "`grad_queries_keys` took care of it.",
      lambda *a: grad_input(*(g * g.shape[-1] ** -0.5 for g in a[:2]), *a[2:]),
      lambda *a: grad_input(*(g * g.shape[-1] ** -0.5 for g in a[:3]), *a[3:]))
wrong("paths.mixed",
      "Gradients and weights are added up before the product: each gradient then goes through all "
      "three weights.",
      lambda *a: merged(sum(a[:3])) @ sum(a[3:]))
wrong("paths.multiplied", "The paths are multiplied; gradients of several uses are added.",
      lambda *a: math.prod(merged(g) @ w for g, w in zip(a[:3], a[3:], strict=True)))
wrong("paths.not added", "The paths are put side by side; gradients of several uses are added.",
      lambda *a: torch.cat([merged(g) @ w for g, w in zip(a[:3], a[3:], strict=True)], -1),
      lambda *a: tuple(merged(g) @ w for g, w in zip(a[:3], a[3:], strict=True)),
      lambda *a: torch.stack([merged(g) @ w for g, w in zip(a[:3], a[3:], strict=True)]))


# --- the numeric gradient ------------------------------------------------------------------------
def steps(draw: Draw) -> list[Call]:
    """Large steps, where one-sided differences show, and tiny ones, where float32 drowns."""
    def attention(seq_len, head_size, epsilon):
        values = {name: draw.normal(seq_len, head_size) for name in ("q", "k", "v", "weight")}
        f = Made("transformer_lm.functions:weighted_attention", values)
        says = f"attention, {seq_len} tokens of {head_size} features, epsilon {epsilon:g}"
        return Call("", (f, draw.normal(seq_len, head_size), epsilon), says=says)

    def cubic(epsilon):
        f = Made("transformer_lm.functions:cubic", {"weight": draw.normal(7)})
        return Call("", (f, draw.normal(7), epsilon), says=f"7 numbers, epsilon {epsilon:g}")

    return [attention(*draw.sizes(2, 2, 5), 0.3), cubic(0.5), attention(*draw.sizes(2, 2, 5), 1e-6),
            cubic(1e-6)]


@exercise("backward.numeric", steps, judge=coarse_then_fine,
          hints=(
              "How much does f(x) change if one entry of x moves by epsilon, up and down?",
              "Take a copy in float64. For each entry: f with it raised, f with it lowered, the "
              "difference over *two* epsilon; then put the entry back.",
              "`x = x.double()`, `flat = x.clone().flatten()`; for each i move flat[i], and call "
              "f(flat.view(x.shape))."))
def numeric_gradient(f, x, epsilon, dtype=torch.float64, up=1.0, down=-1.0, width=2.0,
                     alone=True):
    x = x.to(dtype)
    grad = torch.zeros_like(x)
    for i in range(x.numel()):
        step = torch.zeros_like(x)
        step.view(-1)[i if alone else slice(None)] = epsilon
        grad.view(-1)[i] = (f(x + up * step) - f(x + down * step)) / (width * epsilon)
    return grad

wrong = numeric_gradient.wrong
wrong("numeric.one-sided",
      "The difference is one-sided, from x upwards: its error shrinks with epsilon only, and not "
      "with its square. Step to both sides.", down=0.0, width=1.0)
wrong("numeric.one-sided",
      "The difference is one-sided, from x downwards: its error shrinks with epsilon only, and not "
      "with its square. Step to both sides.", up=0.0, width=1.0)
wrong("numeric.half", "The two points lie 2 epsilon apart; it is divided by epsilon.", width=1.0)
wrong("numeric.half", "One-sided, and divided by 2 epsilon.", down=0.0)
wrong("numeric.half step", "Each step is half an epsilon, and it is divided by two.",
      up=0.5, down=-0.5)
wrong("numeric.sign", "The difference is taken the wrong way round: f below minus f above.",
      up=-1.0, down=1.0)
wrong("numeric.all at once",
      "All entries are moved at once. Each entry has its own derivative: move one at a time.",
      alone=False)
wrong("numeric.not put back",
      "An entry that was moved is not put back before the next one moves.", lambda f, x, epsilon:
      not_put_back(f, x.double(), epsilon))
wrong("numeric.relative step",
      "Each entry is moved by epsilon times itself. Every entry is moved by epsilon, also a small "
      "one.", lambda f, x, epsilon: numeric_gradient(f, x, epsilon) * x
      if epsilon < 1e-3 else by_shares(f, x.double(), epsilon))
wrong("numeric.precedence", "`/ 2 * epsilon` divides by 2 and then multiplies by epsilon: write "
      "`/ (2 * epsilon)`.",
      lambda f, x, epsilon: numeric_gradient(f, x, epsilon) * epsilon**2)
wrong("numeric.not divided", "The difference is not divided by the step.",
      lambda f, x, epsilon: numeric_gradient(f, x, epsilon) * 2 * epsilon)
wrong("numeric.divided twice", "The difference is divided by epsilon squared.",
      lambda f, x, epsilon: numeric_gradient(f, x, epsilon) / epsilon)
wrong("numeric.absolute", "The difference loses its sign.",
      lambda f, x, epsilon: numeric_gradient(f, x, epsilon).abs())
wrong("numeric.second derivative", "f(x + e) - 2 f(x) + f(x - e) makes a second derivative.",
      lambda f, x, epsilon: 2 * (
          numeric_gradient(f, x.double(), epsilon, down=0.0, width=1.0)
          - numeric_gradient(f, x.double(), epsilon)) / 2)
wrong("numeric.all at once",
      "A whole row is moved at once. Each entry has its own derivative: move one at a time.",
      lambda f, x, epsilon: by_rows(f, x.double(), epsilon))
wrong("numeric.autograd",
      "That is the exact gradient, or nearly: from autograd, or with a step of your own. What "
      "differences give for the *given* epsilon is asked for.",
      lambda f, x, epsilon: by_autograd(f, x.double()))
wrong("numeric.float32",
      "It is computed in float32: the difference of two nearly equal numbers loses most of its "
      "seven digits. Work in float64, whatever dtype comes in.", dtype=torch.float32)


def by_rows(f, x, epsilon):
    grad = torch.zeros_like(x)
    for i in range(len(x)):
        step = torch.zeros_like(x)
        step[i] = epsilon
        grad[i] = (f(x + step) - f(x - step)) / (2 * epsilon)
    return grad


def by_shares(f, x, epsilon):
    grad = torch.zeros_like(x)
    for i in range(x.numel()):
        step = torch.zeros_like(x)
        step.view(-1)[i] = epsilon * x.view(-1)[i]
        grad.view(-1)[i] = (f(x + step) - f(x - step)) / (2 * epsilon)
    return grad


def by_autograd(f, x):
    with torch.enable_grad():
        x = x.clone().requires_grad_()
        return torch.autograd.grad(f(x), x)[0]


def not_put_back(f, x, epsilon):
    x, grad = x.clone(), torch.zeros_like(x)
    for i in range(x.numel()):
        x.view(-1)[i] += epsilon
        above = f(x)
        x.view(-1)[i] -= 2 * epsilon
        grad.view(-1)[i] = (above - f(x)) / (2 * epsilon)
    return grad


# --- equal to libraries --------------------------------------------------------------------------
def attended(q, k, v, hidden, scale=1.0):
    """Attention by hand, of any number of leading axes."""
    scores = q @ k.mT * (scale / math.sqrt(q.shape[-1]))
    weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
    return weights @ v, weights


def heads_and_mask(draw: Draw) -> Call:
    batch_size, num_heads, seq_len = draw.sizes(3, 3, 7)
    shape = (batch_size, num_heads, seq_len, draw.choice((9, 16)))
    hidden = draw.integers(0, 2, seq_len, seq_len).bool().fill_diagonal_(False)
    hidden[0, 1:], hidden[1, 0] = True, True
    says = f"{batch_size} sequences, {num_heads} heads, {seq_len} tokens, any mask"
    return Call("", (*(draw.normal(*shape) for _ in "qkv"), hidden), says=says)


@exercise("equal.sdpa", heads_and_mask,
          also=(lambda q, k, v, hidden: F.scaled_dot_product_attention(q, k, v, ~hidden),
                lambda q, k, v, hidden: attended(q, k, v, hidden)[0]),
          hints=(
              "What does True mean in our masks, and what in PyTorch's function? Look at the "
              "table above.",
              "`F.scaled_dot_product_attention(q, k, v, attn_mask=...)` wants True where a key "
              "may be looked at. It scales by itself.",
              "`attn_mask=~hidden`. (With a float mask: 0 where it may look, -inf where not.)"))
def library_attention(q, k, v, hidden, sense=torch.logical_not, scale=None):
    out = F.scaled_dot_product_attention(q * (scale(q) if scale else 1.0), k, v, sense(hidden))
    return out

wrong = library_attention.wrong
wrong("mask.sense", "The mask has the wrong sense: here True means *may look*, in our masks "
      "*hidden*.", sense=kept)
wrong("mask.ignored", "The mask is not handed on.", sense=lambda hidden: None)
wrong("mask.float", "The mask came in as numbers, which are *added* to the scores: a 1 raises a "
      "score by 1 and hides nothing.", sense=lambda hidden: hidden.to(torch.get_default_dtype()))
wrong("mask.float", "The mask came in as numbers, which are *added* to the scores: a 1 raises a "
      "score by 1 and hides nothing.", sense=lambda hidden: (~hidden).to(torch.get_default_dtype()))
wrong("mask.causal for given", "Later tokens are hidden, beside those of the given mask.",
      sense=lambda hidden: (~hidden).tril())
for number in (-2.0, -5.0, -10.0):
    wrong("mask.filled with a number", f"{number:g} is added to hidden scores, and exp of that is "
          "no 0: it takes -inf.",
          sense=lambda hidden, n=number: hidden.to(torch.get_default_dtype()) * n)
wrong("mask.causal for given", "The given mask is replaced by the causal one.",
      sense=lambda hidden: torch.ones_like(hidden).tril())
wrong("scale.twice", "The scale is applied twice: the function divides by sqrt(head_size) itself.",
      scale=lambda q: q.shape[-1] ** -0.5)
wrong("mask.transposed", "The mask is transposed: its rows are queries.",
      sense=lambda hidden: ~hidden.mT)
wrong("mask.after softmax", "The mask comes after the softmax, and the rows no longer sum to 1.",
      lambda q, k, v, hidden: (attended(q, k, v, torch.zeros_like(hidden))[1] * ~hidden) @ v)
wrong("scale.missing", "The scores are not scaled, or the function's own scale is undone.",
      scale=lambda q: q.shape[-1] ** 0.5)
wrong("scale.given", "The function was given a scale of its own.",
      scale=lambda q: q.shape[-1] ** -1.0)
wrong("sdpa.axes", "Heads and tokens have changed places: the function attends over the last axis "
      "but one.", lambda q, k, v, hidden: F.scaled_dot_product_attention(
          q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2))


def mha_weights(draw: Draw) -> Call:
    batch_size, num_heads, seq_len = draw.sizes(3, 3, 7)
    hidden = num_heads * draw.choice((4, 9))
    weights = {}
    for name in ("q", "k", "v", "mix"):
        weights |= draw.linear(name, hidden, hidden)
    mask = torch.ones(seq_len, seq_len).triu(1).bool()
    mask[2, 0] = True
    x = draw.normal(batch_size, seq_len, hidden)
    says = f"{batch_size} sequences of {seq_len} tokens, {num_heads} heads, hidden {hidden}"
    return Call("", (x, weights, num_heads, mask), says=says)


def split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


NAMES = ("q", "k", "v")


BATCH_FIRST = (
    "shape of the 2D attn_mask is", "mha.batch first",
    "The mask does not fit, because the module takes the first axis for the tokens unless it is "
    "made with batch_first=True.")


@exercise("equal.mha", mha_weights, judge=partial(named_errors, errors=[BATCH_FIRST]), hints=(
              "`nn.MultiheadAttention(hidden, num_heads, batch_first=True)`. Which four tensors "
              "does its state_dict hold, and how large are they?",
              "`in_proj_weight` is q, k and v one below the other: torch.cat along axis 0. Its "
              "bool mask means *hidden*, as ours does.",
              "load_state_dict with in_proj_weight, in_proj_bias, out_proj.weight, out_proj.bias; "
              "call mha(x, x, x, attn_mask=hidden, average_attn_weights=False)."))
def run_mha(x, weights, num_heads, hidden, order=NAMES, sense=kept, average=kept, bias=True,
            mix=True, turn=kept, split=split, soften=None):
    def linear(name, x):
        return F.linear(x, turn(weights[f"{name}.weight"]), weights[f"{name}.bias"] * bias)

    q, k, v = (split(linear(name, x), num_heads) for name in order)
    out, probs = attended(q, k, v, sense(hidden))
    if soften:
        probs = soften(q @ k.mT / math.sqrt(q.shape[-1]), hidden)
        out = probs @ v
    out = merged(out)
    return (linear("mix", out) if mix else out), average(probs)

wrong = run_mha.wrong
wrong("mha.averaged", "The weights are averaged over the heads: that is this module's default. "
      "One map for each head was asked for.", average=lambda p: p.mean(1))
wrong("mha.averaged", "Each head's map is the mean of all heads: that is this module's default. "
      "The heads' own maps were asked for.", average=lambda p: p.mean(1, True).expand_as(p))
for named in ("qkv", ["mix"], "q", "k", "v"):
    wrong("mha.transposed", f"The weight of {' and '.join(named)} is transposed: this module "
          "stores weights as nn.Linear does.", lambda x, weights, *more, named=named: run_mha(
              x, {k: w.T if k in [f"{n}.weight" for n in named] else w
                  for k, w in weights.items()}, *more))
for named in ("q", "v"):  # that of k changes nothing
    wrong("mha.bias lost", f"The bias of {named} is not loaded.",
          lambda x, weights, *more, named=named: run_mha(x, unbiased(weights, [named]), *more))
wrong("mha.no weights", "There are no weights: need_weights was switched off.",
      average=lambda p: None)
wrong("mask.sense", "The mask has the wrong sense: for this module True means *hidden*, unlike "
      "in scaled_dot_product_attention.", sense=torch.logical_not)
wrong("mask.ignored", "The mask is not handed on.", sense=torch.zeros_like)
wrong("mask.float", "The mask came in as numbers, which are *added* to the scores: a 1 raises a "
      "score by 1 and hides nothing.", soften=lambda s, hidden: (s + hidden).softmax(-1))
wrong("mask.float", "The mask came in as numbers, 1 where a key may be seen, which are *added* to "
      "the scores and hide nothing.", soften=lambda s, hidden: (s + ~hidden).softmax(-1))
wrong("mha.order", "`in_proj_weight` holds q, k and v in this order; here another one was used.",
      order=("k", "q", "v"))
wrong("mha.order", "`in_proj_weight` holds q, k and v in this order; here another one was used.",
      order=("v", "k", "q"))
wrong("mha.order", "`in_proj_weight` holds q, k and v in this order; here another one was used.",
      order=("q", "v", "k"))
wrong("mha.bias lost", "The biases were not loaded.", bias=False)
wrong("mha.bias lost", "`in_proj_bias` was not loaded: queries, keys and values have no biases.",
      lambda x, weights, *more: run_mha(x, unbiased(weights, "qkv"), *more))
wrong("mha.bias lost", "`out_proj.bias` was not loaded.",
      lambda x, weights, *more: run_mha(x, unbiased(weights, ["mix"]), *more))
wrong("mask.causal for given", "The given mask is replaced by the causal one.",
      sense=lambda hidden: torch.ones_like(hidden).triu(1))
wrong("mha.mix lost", "The output projection is missing.", mix=False)
wrong("mha.transposed", "The weights are transposed: this module stores them as nn.Linear does.",
      turn=torch.t)


def unbiased(weights, names):
    """The weights with the biases of these layers at 0."""
    biases = {f"{name}.bias" for name in names}
    return {k: torch.zeros_like(w) if k in biases else w for k, w in weights.items()}


def gpt2_weights(draw: Draw) -> Call:
    batch_size, seq_len = draw.sizes(2, 2, 7)
    num_heads = draw.choice((2, 3))
    hidden = num_heads * draw.choice((4, 5))
    state = {
        "c_attn.weight": draw.normal(hidden, 3 * hidden, scale=0.5),
        "c_attn.bias": draw.normal(3 * hidden, scale=0.5),
        "c_proj.weight": draw.normal(hidden, hidden, scale=0.5),
        "c_proj.bias": draw.normal(hidden, scale=0.5),
    }
    says = f"{batch_size} sequences of {seq_len} tokens, {num_heads} heads, hidden {hidden}"
    return Call("", (draw.normal(batch_size, seq_len, hidden), state, num_heads), says=says)


def in_blocks(x, num_heads):
    return tuple(split(part, num_heads) for part in x.chunk(3, -1))


@exercise("equal.gpt2", gpt2_weights, judge=conv1d,
          hints=(
              "GPT-2's Conv1D computes x @ weight + bias. How does that differ from nn.Linear?",
              "c_attn makes [.., 3 * hidden]: q, k and v side by side. Split that in three first, "
              "and each into heads afterwards.",
              "The mask is causal, the scale sqrt(head_size). Merge the heads, and then "
              "`@ state['c_proj.weight'] + state['c_proj.bias']`, not transposed."))
def gpt2_attention(x, state, num_heads, order=(0, 1, 2), cut=in_blocks, turn=kept, merge=merged,
                   diagonal=1, scale=lambda head_size: 1.0, bias=(True, True), mix=True):
    fused = x @ state["c_attn.weight"] + state["c_attn.bias"] * bias[0]
    parts = cut(fused, num_heads)
    q, k, v = (parts[i] for i in order)
    hidden = torch.ones(x.shape[1], x.shape[1]).triu(diagonal).bool()
    out = merge(attended(q, k, v, hidden, scale(q.shape[-1]))[0])
    return out @ turn(state["c_proj.weight"]) + state["c_proj.bias"] * bias[1] if mix else out

def later(square):
    return square.triu(1)


def other_softmax(x, state, num_heads, dim, keep=later, fill=-math.inf, weigh=None):
    """GPT-2's attention with a softmax over another axis, or with other keys hidden."""
    fused = x @ state["c_attn.weight"] + state["c_attn.bias"]
    q, k, v = in_blocks(fused, num_heads)
    hidden = keep(torch.ones(x.shape[1], x.shape[1])).bool()
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    probs = weigh(scores, hidden) if weigh else scores.masked_fill(hidden, fill).softmax(dim)
    return merged(probs @ v) @ state["c_proj.weight"] + state["c_proj.bias"]


wrong = gpt2_attention.wrong
wrong("conv1d.transposed",
      "c_proj's weight is transposed. It is square, so nothing complains; but Conv1D stores [in, "
      "out], and F.linear expects [out, in].", turn=torch.t)
wrong("mask.none", "Nothing is hidden; GPT-2's attention is causal.", diagonal=10_000)
wrong("mask.one step late", "Each token sees the one after it.", diagonal=2)
wrong("gpt2.order", "The three parts of c_attn are q, k and v, in this order.", order=(1, 0, 2))
wrong("gpt2.order", "The three parts of c_attn are q, k and v, in this order.", order=(2, 1, 0))
wrong("gpt2.order", "The three parts of c_attn are q, k and v, in this order.", order=(0, 2, 1))
wrong("gpt2.heads before parts",
      "c_attn's output is split into heads first and each head into q, k and v. GPT-2 does it the "
      "other way: three blocks of hidden columns, heads inside each.",
      cut=lambda x, n: tuple(split(x, n).chunk(3, -1)))
wrong("gpt2.interleaved parts", "q, k and v were taken from every third column; they are blocks.",
      cut=lambda x, n: tuple(split(x[..., i::3], n) for i in range(3)))
wrong("heads.scrambled split",
      "The heads are split by a reshape alone; split the last axis, then transpose.",
      cut=lambda x, n: tuple(
          p.reshape(len(x), n, x.shape[1], -1) for p in x.chunk(3, -1)))
wrong("heads.scrambled merge", "The heads are merged by a reshape alone; transpose first.",
      merge=lambda h: h.reshape(len(h), h.shape[2], -1))
wrong("scale.missing", "The scores are not scaled.", scale=lambda head_size: head_size**0.5)
wrong("scale.twice", "The scale is applied twice.", scale=lambda head_size: head_size**-0.5)
wrong("scale.hidden", "The scores are divided by the root of hidden, not of head_size.",
      lambda x, state, n: gpt2_attention(x, state, n, scale=lambda head_size: n**-0.5))
wrong("scale.heads", "The scores are divided by the root of the number of heads.",
      lambda x, state, n: gpt2_attention(x, state, n, scale=lambda size: (size / n) ** 0.5))
wrong("softmax.dim", "The softmax runs over the queries. Use the last dimension.",
      lambda x, state, n: other_softmax(x, state, n, -2))
wrong("softmax.dim", "The softmax runs over the heads. Use the last dimension.",
      lambda x, state, n: other_softmax(x, state, n, 1))
wrong("mask.inverted", "The mask is the wrong way round: earlier tokens are hidden.",
      lambda x, state, n: other_softmax(x, state, n, -1, torch.tril))
wrong("mask.inverted", "The mask is the wrong way round: earlier tokens are hidden.",
      lambda x, state, n: other_softmax(x, state, n, -1, partial(torch.tril, diagonal=-1)))
wrong("mask.diagonal hidden", "The current token is hidden too.", diagonal=0)
wrong("mask.filled with 0", "Hidden scores are set to 0 or next to it, and exp of that is 1.",
      lambda x, state, n: other_softmax(x, state, n, -1, fill=0.0))
for check, message, weigh in (
    ("mask.after softmax", "The mask comes after the softmax, and the rows no longer sum to 1.",
     lambda s, hidden: s.softmax(-1).masked_fill(hidden, 0.0)),
    ("softmax.missing", "There is no softmax.", lambda s, hidden: s.masked_fill(hidden, 0.0)),
    ("softmax.twice", "The softmax is applied twice.",
     lambda s, hidden: s.masked_fill(hidden, -math.inf).softmax(-1).softmax(-1)),
    ("softmax.other", "It is a sigmoid: the rows do not sum to 1.",
     lambda s, hidden: s.masked_fill(hidden, -math.inf).sigmoid()),
    *(("mask.filled with a number", f"Hidden scores are set to {n}, but exp({n}) is no 0.",
       lambda s, hidden, n=n: s.masked_fill(hidden, float(n)).softmax(-1)) for n in (-1, -5)),
):
    wrong(check, message,
          lambda x, state, n, weigh=weigh: other_softmax(x, state, n, -1, weigh=weigh))
wrong("attention.keys for values", "The keys are added up where the values belong.",
      order=(0, 1, 1))
wrong("gpt2.order", "The three parts of c_attn are q, k and v, in this order.", order=(2, 0, 1))
wrong("gpt2.order", "The three parts of c_attn are q, k and v, in this order.", order=(1, 2, 0))
wrong("gpt2.bias lost", "The bias of c_attn is not added.", bias=(False, True))
wrong("gpt2.bias lost", "The bias of c_proj is not added.", bias=(True, False))
wrong("gpt2.bias lost", "No bias is added.", bias=(False, False))
wrong("gpt2.mix lost", "The output projection c_proj is missing.", mix=False)
