"""Lesson 06: right backward passes in many styles pass, wrong ones are told what is wrong."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from autograder.course.calls import Draw
from autograder.course.course import Course
from tests.conftest import ROOT
from tests.forms import first_of
from tests.lessons.helper import names

WRITTEN = Course.at(ROOT).written
SOFTMAX = """
def softmax_backward(probs, grad_probs):
    return probs * (grad_probs - (probs * grad_probs).sum(-1, keepdim=True))
"""
SIGNATURES = {
    "backward.values": "grad_values(probs, grad_out)",
    "backward.softmax": "softmax_backward(probs, grad_probs)",
    "backward.queries_keys": "grad_queries_keys(grad_scores, q, k)",
    "backward.mask_dropout": "mask_dropout_backward(grad_dropped, probs, hidden, dropped, p)",
    "backward.linear": "linear_backward(grad_y, x, weight)",
    "backward.paths": "grad_input(grad_q, grad_k, grad_v, w_q, w_k, w_v)",
    "backward.numeric": "numeric_gradient(f, x, epsilon)",
    "equal.sdpa": "library_attention(q, k, v, hidden)",
    "equal.mha": "run_mha(x, weights, num_heads, hidden)",
    "equal.gpt2": "gpt2_attention(x, state, num_heads)",
}
MHA = (
    "m = nn.MultiheadAttention(x.shape[-1], num_heads, batch_first={first})\n"
    "with torch.no_grad():\n"
    "    m.in_proj_weight.copy_(torch.cat([weights[n + '.weight'] for n in {order!r}]))\n"
    "    m.in_proj_bias.copy_(torch.cat([weights[n + '.bias'] for n in {order!r}]))\n"
    "    m.out_proj.weight.copy_(weights['mix.weight'])\n"
    "    m.out_proj.bias.copy_(weights['mix.bias'])\n"
    "    return m(x, x, x, {call})"
)
CALL = "attn_mask=hidden, average_attn_weights=False"
HEADS = (
    "def heads(t):\n    b, n, _ = t.shape\n    return t.view(b, n, num_heads, -1).transpose(1, 2)\n"
)
GPT2 = (
    HEADS + "b, n, h = x.shape\n{fused}\nq, k, v = map(heads, f.split(h, dim=2))\n{attend}\n{end}"
)
FUSED = "f = x @ state['c_attn.weight'] + state['c_attn.bias']"
SDPA = "o = F.scaled_dot_product_attention(q, k, v, is_causal=True)"
MERGE = "o = o.transpose(1, 2).reshape(b, n, h)\n"
END = MERGE + "return o @ state['c_proj.weight'] + state['c_proj.bias']"


def mha(call=CALL, order="qkv", first=True):
    return MHA.format(call=call, order=order, first=first)


def gpt2(fused=FUSED, attend=SDPA, end=END):
    return GPT2.format(fused=fused, attend=attend, end=end)


def function(task: str, body: str) -> str:
    return f"def {SIGNATURES[task]}:\n    " + body.replace("\n", "\n    ")


DROP = "g = grad_dropped * (~dropped) / (1 - p)\n"
LOOP = (
    "x = x.detach().clone().to(torch.float64)\ng = torch.zeros_like(x)\n"
    "for i in range(x.numel()):\n"
    "    old = x.flatten()[i].item()\n"
    "    x.view(-1)[i] = old + epsilon\n    up = f(x)\n"
    "    x.view(-1)[i] = old - epsilon\n    down = f(x)\n"
    "    x.view(-1)[i] = old\n    {end}\nreturn g"
)
RIGHT = {
    "backward.values": [
        "return torch.bmm(probs.permute(0, 2, 1), grad_out)",
        "return torch.einsum('bij,bih->bjh', probs, grad_out)",
        "out = torch.zeros_like(grad_out)\nfor i in range(probs.shape[1]):\n"
        "    out = out + probs[:, i, :, None] * grad_out[:, i, None]\nreturn out",
        "return (grad_out.mT @ probs).mT",
        "v = torch.zeros_like(grad_out, requires_grad=True)\nwith torch.enable_grad():\n"
        "    return torch.autograd.grad((probs @ v * grad_out).sum(), v)[0]",
    ],
    "backward.softmax": [
        "s = torch.einsum('bij,bij->bi', probs, grad_probs)\n"
        "return probs * (grad_probs - s.unsqueeze(-1))",
        "t = probs * grad_probs\nreturn t - probs * t.sum(dim=2, keepdim=True)",
        "rows = []\nfor p, g in zip(probs.flatten(0, 1), grad_probs.flatten(0, 1)):\n"
        "    rows.append(p * (g - p.dot(g)))\nreturn torch.stack(rows).view_as(probs)",
        "s = probs.log().requires_grad_()\nwith torch.enable_grad():\n"
        "    return torch.autograd.grad(s.softmax(-1), s, grad_probs)[0]",
        "D = (probs[:, :, None] @ grad_probs[..., None])[..., 0]\nreturn probs * (grad_probs - D)",
    ],
    "backward.queries_keys": [
        "s = k.size(-1) ** 0.5\nreturn grad_scores @ k / s, grad_scores.mT @ q / s",
        "s = 1 / math.sqrt(q.shape[2])\nreturn [torch.einsum('bij,bjh->bih', grad_scores, k) * s, "
        "torch.einsum('bij,bih->bjh', grad_scores, q) * s]",
        "return torch.stack([grad_scores.bmm(k), grad_scores.permute(0, 2, 1).bmm(q)]) "
        "* q.shape[-1] ** -0.5",
        "q, k = (t.detach().requires_grad_() for t in (q, k))\nwith torch.enable_grad():\n"
        "    return torch.autograd.grad(q @ k.mT / math.sqrt(q.shape[-1]), (q, k), grad_scores)",
    ],
    "backward.mask_dropout": [
        DROP + "return softmax_backward(probs, g) * ~hidden",
        DROP + "g[hidden] = 0\nreturn softmax_backward(probs, g).masked_fill(hidden, 0)",
        "keep = 1 - dropped.float()\ng = grad_dropped * keep / (1 - p)\n"
        "ds = probs * (g - (g * probs).sum(-1, keepdim=True))\n"
        "return torch.where(hidden, torch.zeros_like(ds), ds)",
        "m = (~dropped).to(probs) / (1 - p)\nd = (grad_dropped * probs * m).sum(-1, keepdim=True)\n"
        "ds = probs * (grad_dropped * m - d)\nds[hidden] = 0\nreturn ds",
    ],
    "backward.linear": [
        "return (torch.einsum('bso,oi->bsi', grad_y, weight), "
        "torch.einsum('bso,bsi->oi', grad_y, x), torch.einsum('bso->o', grad_y))",
        "g, t = grad_y.reshape(-1, grad_y.shape[-1]), x.reshape(-1, x.shape[-1])\n"
        "return [grad_y.matmul(weight), g.t() @ t, g.sum(0)]",
        "gw = sum(g.T @ t for g, t in zip(grad_y, x))\nreturn grad_y @ weight, gw, "
        "grad_y.sum(0).sum(0)",
        "return F.linear(grad_y, weight.T), (grad_y.mT @ x).sum(0), grad_y.sum((0, 1))",
    ],
    "backward.paths": [
        "def m(g):\n    b, h, s, d = g.shape\n    return g.transpose(1, 2).reshape(b, s, h * d)\n"
        "return m(grad_q) @ w_q + m(grad_k) @ w_k + m(grad_v) @ w_v",
        "h = grad_q.shape[1]\nout = 0\n"
        "for g, w in ((grad_v, w_v), (grad_q, w_q), (grad_k, w_k)):\n"
        "    out = out + torch.einsum('bhsd,hdi->bsi', g, w.view(h, -1, w.shape[1]))\nreturn out",
        "g = torch.cat([t.permute(0, 2, 1, 3).flatten(2) for t in (grad_q, grad_k, grad_v)], -1)\n"
        "return g @ torch.cat([w_q, w_k, w_v])",
        "out = 0\nfor g, w in ((grad_q, w_q), (grad_k, w_k), (grad_v, w_v)):\n"
        "    for head, part in zip(g.unbind(1), w.chunk(g.shape[1])):\n"
        "        out = out + head @ part\nreturn out",
    ],
    "backward.numeric": [
        LOOP.format(end="g.view(-1)[i] = (up - down) / (2 * epsilon)"),
        "import numpy as np\na = x.double().numpy().copy()\ng = np.zeros_like(a)\n"
        "for i in np.ndindex(*a.shape):\n    t = a.copy()\n    t[i] += epsilon\n    u = a.copy()\n"
        "    u[i] -= epsilon\n"
        "    g[i] = (f(torch.tensor(t)) - f(torch.tensor(u))).item() / epsilon / 2\n"
        "return torch.tensor(g)",
        "x = x.double()\ne = torch.eye(x.numel()).double().view(-1, *x.shape) * epsilon\n"
        "return torch.stack([(f(x + d) - f(x - d)) / 2 / epsilon for d in e]).view(x.shape)",
    ],
    "equal.sdpa": [
        "return F.scaled_dot_product_attention(q, k, v, ~hidden)",
        "m = torch.zeros(hidden.shape).masked_fill(hidden, float('-inf'))\n"
        "return F.scaled_dot_product_attention(q, k, v, attn_mask=m)",
        "return F.scaled_dot_product_attention(q, k, v, attn_mask=hidden.logical_not()[None])",
        "out = [F.scaled_dot_product_attention(*t, attn_mask=hidden == False) "
        "for t in zip(q, k, v)]\nreturn torch.stack(out)",
    ],
    "equal.mha": [
        mha(),
        mha(CALL + ", need_weights=True"),
        "m = nn.MultiheadAttention(x.shape[-1], num_heads)\nwith torch.no_grad():\n"
        "    for i, n in enumerate('qkv'):\n"
        "        m.in_proj_weight.data.chunk(3)[i].copy_(weights[n + '.weight'])\n"
        "        m.in_proj_bias.data.chunk(3)[i].copy_(weights[n + '.bias'])\n"
        "    m.out_proj.weight.copy_(weights['mix.weight'])\n"
        "    m.out_proj.bias.copy_(weights['mix.bias'])\n"
        "t = x.transpose(0, 1)\no, p = m(t, t, t, attn_mask=hidden, average_attn_weights=False)\n"
        "return o.transpose(0, 1), p",
        "m = torch.zeros(hidden.shape).masked_fill(hidden, -torch.inf)\n"
        "w = torch.cat([weights['q.weight'], weights['k.weight'], weights['v.weight']])\n"
        "c = torch.cat([weights['q.bias'], weights['k.bias'], weights['v.bias']])\n"
        "net = nn.MultiheadAttention(x.size(2), num_heads, batch_first=True).eval()\n"
        "net.in_proj_weight = nn.Parameter(w)\nnet.in_proj_bias = nn.Parameter(c)\n"
        "net.out_proj.weight.data = weights['mix.weight']\n"
        "net.out_proj.bias.data = weights['mix.bias']\n"
        "out, p = net(x, x, x, attn_mask=m, need_weights=True, average_attn_weights=False)\n"
        "return out.detach(), p.detach()",
    ],
    "equal.gpt2": [
        gpt2(),
        gpt2(
            fused="f = F.linear(x, state['c_attn.weight'].T, state['c_attn.bias'])",
            attend="s = q @ k.transpose(2, 3) / math.sqrt(h // num_heads)\n"
            "s = s + torch.full((n, n), -1e9).triu(1)\no = s.softmax(-1) @ v",
        ),
        gpt2(
            fused="f = torch.addmm(state['c_attn.bias'], x.reshape(-1, h), "
            "state['c_attn.weight']).view(b, n, 3 * h)"
        ),
        "h = x.shape[-1]\nd = h // num_heads\nw, c = state['c_attn.weight'], state['c_attn.bias']\n"
        "n = x.shape[1]\nouts = []\nfor i in range(num_heads):\n"
        "    q, k, v = (x @ w[:, j * h + i * d : j * h + i * d + d] "
        "+ c[j * h + i * d : j * h + i * d + d] for j in range(3))\n"
        "    s = (q @ k.mT / d ** 0.5).masked_fill(~torch.ones(n, n).tril().bool(), -torch.inf)\n"
        "    outs.append(s.softmax(-1) @ v)\n"
        "return torch.cat(outs, -1) @ state['c_proj.weight'] + state['c_proj.bias']",
    ],
}
WRONG = [
    ("backward.values", "return probs @ grad_out", "values.P not transposed"),
    ("backward.values", "return torch.bmm(probs, grad_out)", "values.P not transposed"),
    ("backward.values", "return grad_out.mT @ probs", "values.result transposed"),
    (
        "backward.values",
        "return torch.einsum('bij,bih->bjh', probs, grad_out).mean(0, keepdim=True)"
        ".expand_as(grad_out) * len(probs)",
        "values.batch summed",
    ),
    (
        "backward.values",
        "return torch.linalg.inv(probs) @ grad_out",
        "values.inverse",
    ),
    ("backward.softmax", "return grad_probs * probs", "softmax.row term missing"),
    (
        "backward.softmax",
        "return probs * (grad_probs - torch.sum(grad_probs * probs, dim=1, keepdim=True))",
        "softmax.over the queries",
    ),
    (
        "backward.softmax",
        "j = torch.diag_embed(probs) - probs.unsqueeze(-1) * probs.unsqueeze(-2)\n"
        "return (j @ grad_probs.unsqueeze(-1)).squeeze(-1)",
        "softmax.full Jacobian",
    ),
    (
        "backward.softmax",
        "out = torch.empty_like(probs)\nfor b in range(probs.shape[0]):\n"
        "    for i in range(probs.shape[1]):\n        p = probs[b, i]\n"
        "        out[b, i] = (torch.diag(p) - torch.outer(p, p)) @ grad_probs[b, i]\nreturn out",
        "softmax.full Jacobian",
    ),
    (
        "backward.softmax",
        "f = lambda s: s.softmax(-1)\n"
        "J = torch.func.vmap(torch.func.jacrev(f))(probs.log().flatten(0, 1))\n"
        "return torch.einsum('nij,ni->nj', J, grad_probs.flatten(0, 1)).view_as(probs)",
        "softmax.full Jacobian",
    ),
    (
        "backward.softmax",
        "return probs * grad_probs - torch.sum(probs * grad_probs, -1, keepdim=True)",
        "softmax.row term outside",
    ),
    (
        "backward.softmax",
        "return probs * (grad_probs - grad_probs.sum(-1, keepdim=True))",
        "softmax.p missing in the sum",
    ),
    (
        "backward.softmax",
        "return probs * (grad_probs - (probs * grad_probs).mean(-1, keepdim=True))",
        "softmax.mean for sum",
    ),
    ("backward.softmax", "return grad_probs * probs * (1 - probs)", "softmax.like a sigmoid"),
    (
        "backward.softmax",
        "return probs * (grad_probs + (probs * grad_probs).sum(-1, keepdim=True))",
        "softmax.sign",
    ),
    ("backward.queries_keys", "return grad_scores @ k, grad_scores.mT @ q", "scale.lost"),
    (
        "backward.queries_keys",
        "s = q.shape[-1]\nreturn grad_scores @ k / s, grad_scores.mT @ q / s",
        "scale.twice",
    ),
    (
        "backward.queries_keys",
        "s = math.sqrt(q.shape[-1])\nreturn grad_scores.mT @ q / s, grad_scores @ k / s",
        "queries_keys.swapped",
    ),
    (
        "backward.queries_keys",
        "s = math.sqrt(q.shape[-1])\nreturn torch.bmm(grad_scores, k) / s, "
        "torch.bmm(grad_scores, q) / s",
        "queries_keys.not transposed",
    ),
    (
        "backward.queries_keys",
        "s = math.sqrt(q.shape[-1])\nreturn grad_scores @ k * s, grad_scores.mT @ q * s",
        "scale.multiplied",
    ),
    (
        "backward.queries_keys",
        "return grad_scores @ k, grad_scores @ q",
        "scale.lost + queries_keys.not transposed",
    ),
    (
        "backward.mask_dropout",
        "return softmax_backward(probs, grad_dropped * ~dropped).masked_fill(hidden, 0)",
        "dropout.1/(1-p) lost",
    ),
    (
        "backward.mask_dropout",
        "g = F.dropout(grad_dropped, p)\nreturn softmax_backward(probs, g) * ~hidden",
        "dropout.redrawn",
    ),
    (
        "backward.mask_dropout",
        "keep = torch.bernoulli(torch.full_like(probs, 1 - p))\n"
        "return softmax_backward(probs, grad_dropped * keep / (1 - p)) * ~hidden",
        "dropout.redrawn",
    ),
    (
        "backward.mask_dropout",
        DROP + "return softmax_backward(probs, g)",
        "mask.gradient on hidden scores",
    ),
    (
        "backward.mask_dropout",
        "return softmax_backward(probs, grad_dropped) * ~hidden * ~dropped / (1 - p)",
        "dropout.after the softmax",
    ),
    (
        "backward.mask_dropout",
        "g = grad_dropped * dropped / (1 - p)\nreturn softmax_backward(probs, g) * ~hidden",
        "dropout.inverted",
    ),
    (
        "backward.mask_dropout",
        "return softmax_backward(probs, grad_dropped) * ~hidden",
        "dropout.ignored",
    ),
    (
        "backward.mask_dropout",
        DROP + "return probs * g * ~hidden",
        "softmax.row term missing",
    ),
    (
        "backward.linear",
        "n = grad_y.shape[0] * grad_y.shape[1]\n"
        "return grad_y @ weight, torch.einsum('bso,bsi->oi', grad_y, x) / n, grad_y.mean((0, 1))",
        "linear.averaged",
    ),
    (
        "backward.linear",
        "return grad_y @ weight, torch.einsum('bso,bsi->oi', grad_y, x), grad_y.sum(0)",
        "linear.bias summed once",
    ),
    (
        "backward.linear",
        "return grad_y @ weight, torch.einsum('bso,bsi->io', grad_y, x), grad_y.sum((0, 1))",
        "linear.weight transposed",
    ),
    (
        "backward.linear",
        "return grad_y @ weight, grad_y.transpose(1, 2) @ x, grad_y.sum((0, 1))",
        "linear.weight for each sequence",
    ),
    (
        "backward.paths",
        "def m(g):\n    return g.transpose(1, 2).flatten(2)\n"
        "x = m(grad_q) @ w_q\nx = m(grad_k) @ w_k\nx = m(grad_v) @ w_v\nreturn x",
        "paths.overwritten",
    ),
    (
        "backward.paths",
        "def m(g):\n    return g.reshape(g.shape[0], g.shape[2], -1)\n"
        "return m(grad_q) @ w_q + m(grad_k) @ w_k + m(grad_v) @ w_v",
        "heads.scrambled merge",
    ),
    (
        "backward.paths",
        "def m(g):\n    return g.transpose(1, 2).flatten(2)\n"
        "return (m(grad_q) @ w_q + m(grad_k) @ w_k + m(grad_v) @ w_v) / 3",
        "paths.averaged",
    ),
    (
        "backward.paths",
        "def m(g):\n    return g.transpose(1, 2).flatten(2)\n"
        "return m(grad_q) @ w_q + m(grad_v) @ w_v",
        "paths.one lost",
    ),
    (
        "backward.numeric",
        LOOP.replace("x.detach().clone().to(torch.float64)", "x.clone()").format(
            end="g.view(-1)[i] = (up - down) / (2 * epsilon)"
        ),
        "numeric.float32",
    ),
    (
        "backward.numeric",
        "x = x.float()\nreturn torch.stack([(f(x + d.view_as(x)) - f(x - d.view_as(x))) "
        "/ (2 * epsilon) for d in torch.eye(x.numel()) * epsilon]).view_as(x)",
        "numeric.float32",
    ),
    ("backward.numeric", LOOP.format(end="g.view(-1)[i] = (up - down) / epsilon"), "numeric.half"),
    (
        "backward.numeric",
        LOOP.format(end="g.view(-1)[i] = (up - f(x)) / epsilon"),
        "numeric.one-sided",
    ),
    (
        "backward.numeric",
        LOOP.format(end="g.view(-1)[i] = (f(x) - down) / epsilon"),
        "numeric.one-sided",
    ),
    (
        "backward.numeric",
        "x = x.double()\nreturn (f(x + epsilon) - f(x - epsilon)) / (2 * epsilon) "
        "* torch.ones_like(x)",
        "numeric.all at once",
    ),
    (
        "backward.numeric",
        LOOP.format(end="g.view(-1)[i] = (down - up) / (2 * epsilon)"),
        "numeric.sign",
    ),
    (
        "equal.sdpa",
        "return F.scaled_dot_product_attention(q, k, v, attn_mask=hidden)",
        "mask.sense",
    ),
    ("equal.sdpa", "return F.scaled_dot_product_attention(q, k, v)", "mask.ignored"),
    (
        "equal.sdpa",
        "return F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        "mask.causal for given",
    ),
    (
        "equal.sdpa",
        "return F.scaled_dot_product_attention(q / q.shape[-1] ** 0.5, k, v, ~hidden)",
        "scale.twice",
    ),
    (
        "equal.sdpa",
        "return F.scaled_dot_product_attention(q, k, v, hidden.float())",
        "mask.float",
    ),
    ("equal.mha", mha("attn_mask=hidden"), "mha.averaged"),
    ("equal.mha", mha("attn_mask=~hidden, average_attn_weights=False"), "mask.sense"),
    ("equal.mha", mha("average_attn_weights=False"), "mask.ignored"),
    ("equal.mha", mha(order="kqv"), "mha.order"),
    ("equal.mha", mha(first=False), "mha.batch first"),
    ("equal.mha", mha("attn_mask=hidden, need_weights=False"), "mha.no weights"),
    (
        "equal.gpt2",
        gpt2(end=MERGE + "return F.linear(o, state['c_proj.weight'], state['c_proj.bias'])"),
        "conv1d.transposed",
    ),
    (
        "equal.gpt2",
        gpt2(fused="f = F.linear(x, state['c_attn.weight'], state['c_attn.bias'])"),
        "conv1d.transposed",
    ),
    (
        "equal.gpt2",
        gpt2(fused="f = x @ state['c_attn.weight'].T + state['c_attn.bias']"),
        "conv1d.transposed",
    ),
    (
        "equal.gpt2",
        gpt2(attend="o = F.scaled_dot_product_attention(q, k, v)"),
        "mask.none",
    ),
    (
        "equal.gpt2",
        gpt2(end="o = o.reshape(b, n, h)\n" + END.removeprefix(MERGE)),
        "heads.scrambled merge",
    ),
    (
        "equal.gpt2",
        gpt2().replace("q, k, v = map", "k, q, v = map"),
        "gpt2.order",
    ),
    (
        "equal.gpt2",
        "b, n, h = x.shape\n" + FUSED + "\n"
        "q, k, v = f.view(b, n, num_heads, -1).transpose(1, 2).chunk(3, -1)\n" + SDPA + "\n" + END,
        "gpt2.heads before parts",
    ),
    ("equal.gpt2", gpt2(fused="f = x @ state['c_attn.weight']"), "gpt2.bias lost"),
]


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "body"), [(t, b) for t in RIGHT for b in RIGHT[t]])
def test_right_programs_pass_in_every_style(task, body, seed):
    assert names(task, function(task, body), seed, SOFTMAX) == []


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "body", "check"), WRONG)
def test_wrong_programs_are_told_what_is_wrong(task, body, check, seed):
    assert names(task, function(task, body), seed, SOFTMAX)[:1] == [check]


# --- the answers themselves, held against autograd and the libraries -----------------------------
def tried(task: str):
    written = WRITTEN[task]
    for call in written.exercise.cases(Draw(5)):
        call = call.double()
        yield call.args, written.answer(*call.args)


def leaves(*tensors):
    return [t.detach().clone().requires_grad_() for t in tensors]


def close(got, expected, most=1e-10):
    torch.testing.assert_close(got, expected, rtol=most, atol=most)


def test_the_gradient_by_the_values_is_autograds():
    for (probs, grad), found in tried("backward.values"):
        (v,) = leaves(torch.zeros_like(grad))
        close(found, torch.autograd.grad(probs @ v, v, grad)[0])


def test_the_softmax_backward_is_autograds():
    for (probs, grad), found in tried("backward.softmax"):
        (scores,) = leaves(probs.log())  # the probabilities came in float32
        close(found, torch.autograd.grad(scores.softmax(-1), scores, grad)[0], 1e-5)


def test_the_gradients_by_queries_and_keys_are_autograds():
    for (grad, q, k), found in tried("backward.queries_keys"):
        q, k = leaves(q, k)
        scores = q @ k.mT / math.sqrt(k.shape[-1])
        for one, other in zip(found, torch.autograd.grad(scores, (q, k), grad), strict=True):
            close(one, other)


def test_mask_and_dropout_backwards_are_autograds():
    for (grad, probs, hidden, dropped, p), found in tried("backward.mask_dropout"):
        (scores,) = leaves(probs.clamp(min=1e-30).log())
        filled = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
        result = filled.softmax(-1) * ~dropped / (1 - p)
        close(found, torch.autograd.grad(result, scores, grad)[0], 1e-5)


def test_the_linear_backward_is_autograds():
    for (grad, x, weight), found in tried("backward.linear"):
        x, weight, bias = leaves(x, weight, torch.zeros(len(weight), dtype=x.dtype))
        wanted = torch.autograd.grad(F.linear(x, weight, bias), (x, weight, bias), grad)
        for one, other in zip(found, wanted, strict=True):
            close(one, other)


def test_the_gradient_by_x_is_autograds():
    for (*grads, w_q, w_k, w_v), found in tried("backward.paths"):
        heads, seq_len = grads[0].shape[1:3]
        (x,) = leaves(torch.zeros(len(grads[0]), seq_len, w_q.shape[1], dtype=w_q.dtype))
        made = [(x @ w.T).unflatten(-1, (heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v)]
        close(found, torch.autograd.grad(made, x, grads)[0])


def test_our_multi_head_attention_is_pytorchs():
    for (x, weights, heads, hidden), (out, probs) in tried("equal.mha"):
        module = nn.MultiheadAttention(x.shape[-1], heads, batch_first=True, dtype=x.dtype)
        state = {
            "in_proj_weight": torch.cat([weights[f"{n}.weight"] for n in "qkv"]),
            "in_proj_bias": torch.cat([weights[f"{n}.bias"] for n in "qkv"]),
            "out_proj.weight": weights["mix.weight"],
            "out_proj.bias": weights["mix.bias"],
        }
        module.load_state_dict(state)
        wanted = module(x, x, x, attn_mask=hidden, average_attn_weights=False)
        close(out, wanted[0])
        close(probs, wanted[1])


def test_our_gpt2_attention_is_that_of_transformers():
    from transformers import GPT2Config, GPT2Model

    for (x, state, heads), found in tried("equal.gpt2"):
        config = GPT2Config(n_embd=x.shape[-1], n_head=heads, n_layer=1, vocab_size=3)
        config._attn_implementation = "eager"
        attention = GPT2Model(config).double().eval().h[0].attn
        attention.load_state_dict(state)
        future = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        mask = torch.zeros_like(future, dtype=x.dtype).masked_fill(future, -math.inf)[None, None]
        close(found, attention(x, attention_mask=mask)[0])
