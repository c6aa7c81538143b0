"""Lesson 03: right programs in many styles pass, wrong ones are told what is wrong."""

import pytest

from tests.forms import first_of
from tests.lessons.helper import names

BUFFER = """
class CausalMask(nn.Module):
    def __init__(self, context_length):
        super().__init__()
        {init}
    def forward(self, seq_len):
        {body}
"""
KEEP = "hidden = torch.ones(context_length, context_length).triu(1).bool()\n"
REGISTER = KEEP + 'self.register_buffer("hidden", hidden, persistent=False)'
HEAD = """
class CausalAttention(nn.Module):
    def __init__(self, input_size, hidden, context_length, dropout=0.0):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.drop = nn.Dropout(dropout)
        self.p = dropout
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())
    def forward(self, x):
        n = x.shape[1]
        q, k, v = self.q(x), self.k(x), self.v(x)
        {body}
"""
SCORES = "scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5\n"
HIDE = "scores = scores.masked_fill(self.mask[:n, :n], float('-inf'))\n"
END = "return self.drop(scores.softmax(-1)) @ v"


def function(signature: str, body: str) -> str:
    return f"def {signature}:\n    " + body.replace("\n", "\n    ")


def weights(body):
    return function("mask_weights(scores)", body)


def scores(body):
    return function("mask_scores(scores)", body)


def half(body):
    return function("masked_softmax(scores, hidden)", body)


def leak(body):
    return function("leak_matrix(outputs, changed, tolerance)", body)


def padded(body):
    return function("padded_weights(scores, lengths)", body)


def safe(body):
    return function("safe_weights(scores, hidden)", body)


def mask(init=REGISTER, body="return self.hidden[:seq_len, :seq_len]"):
    return BUFFER.format(init=init.replace("\n", "\n        "), body=body)


def dropout(body):
    return function("dropout(weights, p, training)", body)


def prune(body):
    return function("prune(scores, floor)", body)


def head(body):
    return HEAD.format(body=body.replace("\n", "\n        "))


def picture(body):
    return function("attention_map(probs, item, head, num_heads)", body)


LEAKS = "\nreturn moved, bool(moved.triu(1).any())"
NOT_TRAINING = "if not training:\n    return weights\n"
RIGHT = {
    "masks.renormalise": [
        weights("p = scores.softmax(-1).tril()\nreturn p / p.sum(-1, keepdim=True)"),
        weights(
            "n = scores.shape[1]\np = F.softmax(scores, dim=2) * torch.tril(torch.ones(n, n))\n"
            "return F.normalize(p, p=1, dim=-1)"
        ),
        weights(
            "p = torch.softmax(scores.double(), -1)\n"
            "p = p.masked_fill(torch.ones_like(p).triu(1).bool(), 0)\n"
            "return torch.einsum('bij,bi->bij', p, 1 / p.sum(-1))"
        ),
        weights(
            "out = torch.zeros_like(scores)\nfor b in range(len(scores)):\n"
            "    for i in range(scores.shape[1]):\n"
            "        p = torch.softmax(scores[b, i], 0)[: i + 1]\n"
            "        out[b, i, : i + 1] = p / p.sum()\nreturn out"
        ),
        weights("e = scores.exp().tril()\nreturn e / e.sum(dim=-1)[..., None]"),
    ],
    "masks.minus_infinity": [
        scores(
            "n = scores.shape[-1]\nm = torch.triu(torch.ones(n, n), diagonal=1).bool()\n"
            "return scores.masked_fill(m, float('-inf')).softmax(-1)"
        ),
        scores(
            "n = scores.shape[-1]\nm = torch.full((n, n), float('-inf')).triu(1)\n"
            "return F.softmax(scores + m, dim=-1)"
        ),
        scores(
            "n = scores.shape[-1]\nm = torch.tril(torch.ones(n, n))\n"
            "return scores.masked_fill(m == 0, -1e9).softmax(dim=2)"
        ),
        scores(
            "i = torch.arange(scores.shape[-1])\n"
            "return torch.where(i[None] <= i[:, None], scores, -torch.inf).softmax(-1)"
        ),
        scores(
            "n = scores.shape[1]\ns = scores.clone()\n"
            "s[:, torch.ones(n, n).triu(1) == 1] = torch.finfo(s.dtype).min\n"
            "return torch.softmax(s, dim=-1)"
        ),
        scores(
            "m = torch.ones_like(scores).triu(1).bool()\n"
            "s = scores.clone().masked_fill_(m, -torch.inf)\nreturn s.softmax(-1)"
        ),
        scores(
            "n = scores.shape[1]\nrows = [F.pad(scores[:, i, : i + 1].softmax(-1), "
            "(0, n - i - 1)) for i in range(n)]\nreturn torch.stack(rows, 1)"
        ),
    ],
    "masks.half": [
        half("return scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1)"),
        half("return scores.masked_fill(hidden, float('-inf')).softmax(-1)"),
        half("return scores.float().masked_fill(hidden, -1e30).softmax(-1).to(scores.dtype)"),
        half("return torch.where(hidden, -torch.inf, scores).softmax(-1)"),
        half(
            "m = torch.zeros_like(scores).masked_fill(hidden, float('-inf'))\n"
            "return F.softmax(scores + m, dim=-1)"
        ),
        half(
            "m = hidden.to(scores.dtype) * torch.finfo(scores.dtype).min\n"
            "return F.softmax(scores + m, dim=-1)"
        ),
    ],
    "masks.leak": [
        leak("moved = ((changed - outputs).abs() > tolerance).any(-1).T" + LEAKS),
        leak(
            "moved = ((changed - outputs[None]).abs().amax(2) > tolerance).transpose(0, 1)" + LEAKS
        ),
        leak(
            "n = len(outputs)\nmoved = torch.zeros(n, n, dtype=torch.bool)\n"
            "for i in range(n):\n    for j in range(n):\n"
            "        moved[i, j] = (changed[j, i] - outputs[i]).abs().max() > tolerance" + LEAKS
        ),
        leak(
            "d = torch.einsum('jif->ijf', changed) - outputs[:, None]\n"
            "moved = (d.abs() > tolerance).sum(-1) > 0" + LEAKS
        ),
        leak(
            "d = changed.permute(1, 0, 2) - outputs.unsqueeze(1)\n"
            "moved = d.norm(p=float('inf'), dim=-1) > tolerance\ni, j = moved.nonzero().T\n"
            "return moved, (j > i).any().item()"
        ),
    ],
    "masks.padding": [
        padded(
            "m = torch.arange(scores.shape[-1]) >= lengths[:, None]\n"
            "return scores.masked_fill(m[:, None], float('-inf')).softmax(-1)"
        ),
        padded(
            "s = scores.clone()\nfor b, n in enumerate(lengths.tolist()):\n"
            "    s[b, :, n:] = -1e9\nreturn s.softmax(-1)"
        ),
        padded(
            "out = torch.zeros_like(scores)\nfor b, n in enumerate(lengths):\n"
            "    out[b, :, :n] = scores[b, :, :n].softmax(-1)\nreturn out"
        ),
        padded(
            "b, t, _ = scores.shape\nkeep = torch.arange(t).expand(b, t) < lengths.view(-1, 1)\n"
            "m = torch.where(keep, 0.0, torch.finfo(scores.dtype).min)\n"
            "return F.softmax(scores + m.unsqueeze(1), dim=2)"
        ),
        padded(
            "m = torch.arange(scores.shape[-1]) >= lengths[:, None, None]\n"
            "p = scores.softmax(-1).masked_fill(m, 0)\nreturn p / p.sum(-1, keepdim=True)"
        ),
    ],
    "masks.empty_rows": [
        safe(
            "s = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)\n"
            "return s.softmax(-1).masked_fill(hidden, 0)"
        ),
        safe(
            "return scores.masked_fill(hidden, float('-inf')).softmax(-1)"
            ".masked_fill(hidden.all(-1, keepdim=True), 0)"
        ),
        safe("return torch.nan_to_num(scores.masked_fill(hidden, float('-inf')).softmax(-1))"),
        safe(
            "empty = hidden.all(-1, keepdim=True)\n"
            "p = scores.masked_fill(hidden & ~empty, float('-inf')).softmax(-1)\n"
            "return torch.where(empty, 0.0, p)"
        ),
        safe("e = scores.exp() * ~hidden\nreturn e / e.sum(-1, keepdim=True).clamp(min=1e-12)"),
        safe("return scores.masked_fill(hidden, -1e9).softmax(-1) * (~hidden)"),
    ],
    "masks.buffer": [
        mask(),
        mask(
            init='self.register_buffer("hidden", torch.triu(torch.ones((context_length,) * 2, '
            "dtype=torch.bool), diagonal=1), persistent=False)"
        ),
        mask(
            init="i = torch.arange(context_length)\n"
            'self.register_buffer("hidden", i[None] > i[:, None], False)'
        ),
        mask(body="return self.hidden[..., :seq_len, :seq_len].clone()"),
        mask(body="return self.hidden.narrow(0, 0, seq_len).narrow(1, 0, seq_len)"),
    ],
    "masks.dropout": [
        dropout(NOT_TRAINING + "return weights * (torch.rand_like(weights) >= p) / (1 - p)"),
        dropout("return F.dropout(weights, p, training)"),
        dropout("layer = nn.Dropout(p)\nlayer.train(training)\nreturn layer(weights)"),
        dropout(
            NOT_TRAINING + "keep = torch.bernoulli(torch.full(weights.shape, 1.0 - p))\n"
            "return weights / (1 - p) * keep"
        ),
        dropout(
            "if training:\n    drop = torch.rand(weights.shape) < p\n"
            "    weights = weights.masked_fill(drop, 0)\n"
            "    weights = weights / (1 - p)\nreturn weights"
        ),
        dropout(
            NOT_TRAINING + "d = torch.distributions.Bernoulli(1 - p)\n"
            "return torch.where(d.sample(weights.shape) == 1, weights / (1 - p), 0.0)"
        ),
    ],
    "masks.in_place": [
        prune(
            "p = scores.softmax(-1)\np = p.masked_fill(p < floor, 0)\n"
            "return p / p.sum(-1, keepdim=True)"
        ),
        prune(
            "p = F.softmax(scores, dim=-1)\np = p * (p >= floor)\n"
            "return p / p.sum(dim=-1)[..., None]"
        ),
        prune(
            "p = scores.softmax(-1)\n"
            "return scores.masked_fill(p < floor, float('-inf')).softmax(-1)"
        ),
        prune(
            "p = scores.softmax(-1)\nkept = torch.where(p < floor, 0.0, p)\n"
            "return F.normalize(kept, p=1, dim=-1)"
        ),
        prune(
            "p = scores.softmax(-1).clone()\np[p < floor] = 0.0\nreturn p / p.sum(-1, keepdim=True)"
        ),
        prune(
            "p = scores.softmax(-1)\nq = F.threshold(p, floor, 0.0)\n"
            "return q / q.sum(2, keepdim=True)"
        ),
    ],
    "masks.attention": [
        head(SCORES + HIDE + END),
        head(SCORES + "scores.masked_fill_(self.mask[:n, :n], -torch.inf)\n" + END),
        head(
            "s = torch.bmm(q, k.mT)\ns = s.masked_fill(torch.ones(n, n).tril() == 0, -1e9)\n"
            "p = F.softmax(s / math.sqrt(k.shape[-1]), dim=2)\nreturn torch.bmm(self.drop(p), v)"
        ),
        head(
            "return F.scaled_dot_product_attention(q, k, v, is_causal=True, "
            "dropout_p=self.p if self.training else 0.0)"
        ),
        head(
            SCORES + "p = scores.softmax(-1).tril()\np = p / p.sum(-1, keepdim=True)\n"
            "return self.drop(p) @ v"
        ),
        head(SCORES + HIDE + "return F.dropout(scores.softmax(-1), self.p, self.training) @ v"),
        head(
            "q = q * k.shape[-1] ** -0.5\ns = torch.einsum('bih,bjh->bij', q, k)\n"
            "s = s + torch.full((n, n), float('-inf')).triu(1)\n"
            "return torch.einsum('bij,bjh->bih', self.drop(s.softmax(-1)), v)"
        ),
    ],
    "masks.map": [
        picture("return probs[item * num_heads + head]"),
        picture("t = probs.shape[-1]\nreturn probs.view(-1, num_heads, t, t)[item, head]"),
        picture("return probs.unflatten(0, (-1, num_heads))[item][head]"),
        picture("return probs.detach().chunk(len(probs) // num_heads)[item][head].clone()"),
        picture("return probs[item * num_heads : (item + 1) * num_heads][head].numpy()"),
    ],
}

CAUSAL = "n = scores.shape[-1]\n"
WRONG = [
    ("masks.renormalise", weights("return scores.softmax(-1).tril()"), "mask.not renormalised"),
    ("masks.renormalise", weights("return scores.softmax(-1)"), "mask.none"),
    (
        "masks.renormalise",
        weights("p = scores.softmax(-1).tril()\nreturn p / p.sum(-2, keepdim=True)"),
        "mask.normalised over the queries",
    ),
    (
        "masks.renormalise",
        weights("p = scores.softmax(-1).tril()\nreturn p / p.sum()"),
        "mask.normalised over all",
    ),
    (
        "masks.renormalise",
        weights("p = scores.softmax(-1).triu()\nreturn p / p.sum(-1, keepdim=True)"),
        "mask.inverted",
    ),
    (
        "masks.renormalise",
        weights("p = scores.softmax(-1).tril(-1)\nreturn p / p.sum(-1, keepdim=True)"),
        "mask.diagonal hidden",
    ),
    (
        "masks.renormalise",
        weights("p = scores.tril()\nreturn p / p.sum(-1, keepdim=True)"),
        "softmax.missing",
    ),
    ("masks.renormalise", weights("raise NotImplementedError()"), "unanswered"),
    ("masks.minus_infinity", scores("return scores.softmax(-1)"), "mask.none"),
    ("masks.minus_infinity", scores("return scores.softmax(-1).tril()"), "mask.after softmax"),
    ("masks.minus_infinity", scores("return scores.tril().softmax(-1)"), "mask.filled with 0"),
    (
        "masks.minus_infinity",
        scores(CAUSAL + "return (scores + torch.ones(n, n).triu(1) * float('-inf')).softmax(-1)"),
        "mask.NaN from 0 * inf",
    ),
    (
        "masks.minus_infinity",
        scores("return scores.masked_fill(scores.tril() == 0, float('-inf')).softmax(-1)"),
        "mask.made from the scores",
    ),
    (
        "masks.minus_infinity",
        scores(
            CAUSAL + "return scores.masked_fill(torch.ones(n, n).triu().bool(), -torch.inf)"
            ".softmax(-1)"
        ),
        "mask.diagonal hidden",
    ),
    (
        "masks.minus_infinity",
        scores(
            CAUSAL + "return scores.masked_fill(torch.ones(n, n).triu(2).bool(), -torch.inf)"
            ".softmax(-1)"
        ),
        "mask.one step late",
    ),
    (
        "masks.minus_infinity",
        scores(
            CAUSAL + "return scores.masked_fill(torch.ones(n, n).tril().bool(), -torch.inf)"
            ".softmax(-1)"
        ),
        "mask.inverted",
    ),
    (
        "masks.minus_infinity",
        scores(
            CAUSAL + "m = torch.ones(n, n).triu(1).bool()\n"
            "return scores.masked_fill_(m, -torch.inf).softmax(-1)"
        ),
        "masks.minus_infinity.input changed",
    ),
    ("masks.half", half("return scores.masked_fill(hidden, -1e9).softmax(-1)"), "fill.overflow"),
    (
        "masks.half",
        half("return scores.masked_fill(hidden, -1e4).softmax(-1)"),
        "fill.not low enough",
    ),
    ("masks.half", half("return scores.masked_fill(hidden, 0).softmax(-1)"), "mask.filled with 0"),
    (
        "masks.half",
        half("return scores.masked_fill(~hidden, -torch.inf).softmax(-1)"),
        "mask.inverted",
    ),
    (
        "masks.half",
        half("return (scores + hidden * float('-inf')).softmax(-1)"),
        "mask.NaN from 0 * inf",
    ),
    ("masks.half", half("return scores.masked_fill(hidden, -torch.inf).softmax(0)"), "softmax.dim"),
    (
        "masks.leak",
        leak("moved = ((changed - outputs).abs() > tolerance).any(-1)" + LEAKS),
        "leak.transposed",
    ),
    ("masks.leak", leak("moved = (changed != outputs).any(-1).T" + LEAKS), "leak.no tolerance"),
    (
        "masks.leak",
        leak("moved = ((changed - outputs).abs() > tolerance).all(-1).T" + LEAKS),
        "leak.all features",
    ),
    (
        "masks.leak",
        leak("moved = ((changed - outputs).sum(-1).abs() > tolerance).T" + LEAKS),
        "leak.changes cancel",
    ),
    ("masks.leak", leak("moved = (changed - outputs > tolerance).any(-1).T" + LEAKS), "leak.sign"),
    (
        "masks.leak",
        leak(
            "moved = ((changed - outputs).abs() > tolerance).any(-1).T\n"
            "return moved, bool(moved.tril(-1).any())"
        ),
        "leak.wrong triangle",
    ),
    (
        "masks.leak",
        leak(
            "moved = ((changed - outputs).abs() > tolerance).any(-1).T\n"
            "return moved, bool(moved.triu().any())"
        ),
        "leak.diagonal counted",
    ),
    (
        "masks.padding",
        padded(
            "m = torch.arange(scores.shape[-1]) >= lengths[:, None]\n"
            "return scores.masked_fill(m[:, :, None], -torch.inf).softmax(-1)"
        ),
        "padding.rows hidden",
    ),
    (
        "masks.padding",
        padded(
            "m = torch.arange(scores.shape[-1]) > lengths[:, None]\n"
            "return scores.masked_fill(m[:, None], -torch.inf).softmax(-1)"
        ),
        "padding.one too many seen",
    ),
    (
        "masks.padding",
        padded(
            "m = torch.arange(scores.shape[-1]) < lengths[:, None]\n"
            "return scores.masked_fill(m[:, None], -torch.inf).softmax(-1)"
        ),
        "padding.inverted",
    ),
    (
        "masks.padding",
        padded(
            "m = torch.arange(scores.shape[-1]) >= lengths[0]\n"
            "return scores.masked_fill(m, -torch.inf).softmax(-1)"
        ),
        "padding.same for all",
    ),
    (
        "masks.padding",
        padded(
            "m = torch.arange(scores.shape[-1]) >= lengths[:, None]\n"
            "return scores.masked_fill(m[:, None], 0.0).softmax(-1)"
        ),
        "mask.filled with 0",
    ),
    (
        "masks.padding",
        padded(
            "m = torch.arange(scores.shape[-1]) >= lengths[:, None]\n"
            "return scores.softmax(-1).masked_fill(m[:, None], 0.0)"
        ),
        "mask.after softmax",
    ),
    (
        "masks.empty_rows",
        safe("return scores.masked_fill(hidden, -torch.inf).softmax(-1)"),
        "empty.NaN",
    ),
    (
        "masks.empty_rows",
        safe("return scores.masked_fill(hidden, -1e9).softmax(-1)"),
        "empty.uniform",
    ),
    (
        "masks.empty_rows",
        safe(
            "m = torch.zeros_like(scores).masked_fill(hidden, -torch.inf)\n"
            "return (scores + m).softmax(-1).nan_to_num(0)"
        ),
        "empty.NaN in the gradient",
    ),
    ("masks.empty_rows", safe("return scores.softmax(-1) * ~hidden"), "mask.after softmax"),
    (
        "masks.empty_rows",
        safe("s = scores.masked_fill(~hidden, -1e9)\nreturn s.softmax(-1).masked_fill(~hidden, 0)"),
        "mask.inverted",
    ),
    ("masks.empty_rows", safe("return scores.softmax(-1)"), "mask.none"),
    ("masks.buffer", mask(init=KEEP + "self.hidden = hidden"), "buffer.not registered"),
    ("masks.buffer", mask(init=KEEP + 'self.register_buffer("hidden", hidden)'), "buffer.stored"),
    (
        "masks.buffer",
        mask(init=KEEP + "self.hidden = nn.Parameter(hidden, requires_grad=False)"),
        "buffer.is a parameter",
    ),
    ("masks.buffer", mask(body="return self.hidden"), "mask.not sliced"),
    ("masks.buffer", mask(body="return self.hidden[:seq_len]"), "mask.not sliced"),
    ("masks.buffer", mask(init=REGISTER.replace(".bool()", "")), "mask.float"),
    ("masks.buffer", mask(init=REGISTER.replace("triu(1)", "tril()")), "mask.inverted"),
    ("masks.buffer", mask(init=REGISTER.replace("triu(1)", "triu()")), "mask.diagonal hidden"),
    ("masks.dropout", dropout("return F.dropout(weights, p)"), "dropout.in eval"),
    ("masks.dropout", dropout("return weights"), "dropout.missing"),
    (
        "masks.dropout",
        dropout(NOT_TRAINING + "return weights * (torch.rand_like(weights) >= p)"),
        "dropout.not rescaled",
    ),
    (
        "masks.dropout",
        dropout(
            NOT_TRAINING + "kept = weights * (torch.rand_like(weights) < p)\n"
            "return kept / p if p else weights"
        ),
        "dropout.p is the share kept",
    ),
    (
        "masks.dropout",
        dropout(NOT_TRAINING + "return weights * (torch.rand_like(weights) >= p) * (1 - p)"),
        "dropout.rescaled the wrong way",
    ),
    (
        "masks.dropout",
        dropout(NOT_TRAINING + "return weights * (torch.rand(weights.shape[-1]) >= p) / (1 - p)"),
        "dropout.not one by one",
    ),
    (
        "masks.dropout",
        dropout(
            NOT_TRAINING + "torch.manual_seed(0)\n"
            "return weights * (torch.rand_like(weights) >= p) / (1 - p)"
        ),
        "dropout.frozen",
    ),
    (
        "masks.dropout",
        dropout(
            NOT_TRAINING + "kept = weights * (torch.rand_like(weights) >= p)\n"
            "return kept / kept.sum(-1, keepdim=True)"
        ),
        "dropout.renormalised",
    ),
    (
        "masks.dropout",
        dropout("return weights * (torch.rand_like(weights) < 0.5) * 2"),
        "dropout.values",
    ),
    ("masks.dropout", dropout("return weights * p"), "dropout.missing"),
    (
        "masks.in_place",
        prune("p = scores.softmax(-1)\np[p < floor] = 0.0\np /= p.sum(-1, keepdim=True)\nreturn p"),
        "in-place.softmax output",
    ),
    (
        "masks.in_place",
        prune("scores[scores.softmax(-1) < floor] = -torch.inf\nreturn scores.softmax(-1)"),
        "in-place.input",
    ),
    (
        "masks.in_place",
        prune(
            "p = scores.softmax(-1).detach()\np[p < floor] = 0.0\n"
            "return p / p.sum(-1, keepdim=True)"
        ),
        "autograd.detached",
    ),
    (
        "masks.in_place",
        prune("p = scores.softmax(-1)\nreturn p.masked_fill(p < floor, 0)"),
        "mask.not renormalised",
    ),
    (
        "masks.in_place",
        prune(
            "p = scores.softmax(-1)\np = p.masked_fill(p > floor, 0)\n"
            "return p / p.sum(-1, keepdim=True)"
        ),
        "prune.inverted",
    ),
    (
        "masks.in_place",
        prune(
            "p = scores.softmax(-1).masked_fill(scores < floor, 0)\n"
            "return p / p.sum(-1, keepdim=True)"
        ),
        "prune.scores for weights",
    ),
    ("masks.attention", head(SCORES + END), "mask.none"),
    (
        "masks.attention",
        head(
            SCORES
            + "past = scores.tril()\nscores = past.masked_fill(past == 0, -torch.inf)\n"
            + END
        ),
        "mask.made from the scores",
    ),
    (
        "masks.attention",
        head(SCORES + HIDE + "return (self.drop(scores.softmax(-1)) @ v).squeeze()"),
        "masks.attention.shape",
    ),
    ("masks.attention", head(SCORES + HIDE.replace("[:n, :n]", "") + END), "mask.not sliced"),
    (
        "masks.attention",
        head(SCORES + HIDE.replace("float('-inf')", "0.0") + END),
        "mask.filled with 0",
    ),
    (
        "masks.attention",
        head(SCORES + HIDE.replace("self.mask", "~self.mask") + END),
        "mask.inverted",
    ),
    (
        "masks.attention",
        head(SCORES + "return self.drop(scores.softmax(-1).tril()) @ v"),
        "mask.after softmax",
    ),
    (
        "masks.attention",
        head(SCORES.replace(" / k.shape[-1] ** 0.5", "") + HIDE + END),
        "scale.missing",
    ),
    (
        "masks.attention",
        head(SCORES + HIDE + "return F.dropout(scores.softmax(-1), self.p) @ v"),
        "dropout.in eval",
    ),
    ("masks.attention", head(SCORES + HIDE + "return scores.softmax(-1) @ v"), "dropout.missing"),
    (
        "masks.attention",
        head(SCORES + "scores = self.drop(scores)\n" + HIDE + "return scores.softmax(-1) @ v"),
        "dropout.on the scores",
    ),
    (
        "masks.attention",
        head(SCORES + HIDE + "return self.drop(scores.softmax(-1) @ v)"),
        "dropout.not on the weights",
    ),
    ("masks.attention", head(SCORES + HIDE + END.replace("@ v", "@ k")), "projections.v from k"),
    (
        "masks.map",
        picture("return torch.softmax(probs[item * num_heads + head], dim=-1)"),
        "softmax.twice",
    ),
    (
        "masks.map",
        picture("return probs[head * (len(probs) // num_heads) + item]"),
        "map.head-major",
    ),
    ("masks.map", picture("return probs[item]"), "map.item for place"),
    ("masks.map", picture("return probs[item + head]"), "map.sum for place"),
    ("masks.map", picture("return probs[item * num_heads + head].T"), "map.transposed"),
    ("masks.map", picture("return probs[item * num_heads]"), "map.head ignored"),
]


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "source"), [(t, s) for t in RIGHT for s in RIGHT[t]])
def test_right_programs_pass_in_every_style(task, source, seed):
    assert names(task, source, seed) == []


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "source", "check"), WRONG)
def test_wrong_programs_are_told_what_is_wrong(task, source, check, seed):
    assert names(task, source, seed)[:1] == [check]
