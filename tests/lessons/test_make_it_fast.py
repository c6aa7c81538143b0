"""Lesson 07: fast programs in many styles pass; wrong and slow ones are told what is wrong."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from autograder.course.calls import Draw
from autograder.course.course import Course
from tests.conftest import ROOT
from tests.forms import first_of
from tests.lessons.helper import names

WRITTEN = Course.at(ROOT).written
MASK = """
def chunk_mask(q_len, k_len):
    return torch.ones(q_len, k_len).triu(k_len - q_len + 1).bool()
"""
SIGNATURES = {
    "fast.count": "attention_cost(batch_size, num_heads, q_len, k_len, head_size, "
    "bytes_per_number)",
    "fast.online": "online_softmax(scores, block)",
    "fast.tiles": "tiled_attention(q, k, v, block)",
    "fast.causal_tiles": "causal_tiles(q, k, v, block)",
    "fast.chunk_mask": "chunk_mask(q_len, k_len)",
    "fast.generate": "generate_cached(model, ids, count)",
    "fast.fused": "fused_qkv(x, layers)",
    "fast.tiled_backward": "tiled_backward(grad_out, q, k, v, out, logsumexp, block)",
}
COUNT = (
    "n = batch_size * num_heads\nf = {two} * 2 * n * q_len * k_len * head_size\n"
    "b = n * ({qv} * q_len * head_size + {kv} * k_len * head_size + {t} * q_len * k_len)"
    " * {size}\nreturn f, b, {ratio}"
)
ONLINE = (
    "n = scores.shape[0]\nm = torch.full((n,), {first})\nl = torch.zeros(n)\n"
    "for i in range(0, {end}, block):\n"
    "    s = scores[:, i : i + block]\n"
    "    new = torch.maximum(m, s.max(dim=1).values)\n"
    "    {guard}\n"
    "    l = {old} + torch.exp(s - safe.unsqueeze(1)).sum(1)\n"
    "    m = new\nreturn m, l"
)
GUARD = "safe = torch.where(torch.isinf(new), torch.zeros_like(new), new)"
TILES = (
    "n, d = q.shape\nout = torch.zeros(n, v.shape[1])\n"
    "for i in range(0, {q_end}, block):\n"
    "    qi = q[i : i + block]\n"
    "    m = torch.full((qi.shape[0], 1), float('-inf'))\n"
    "    l = torch.zeros(qi.shape[0], 1)\n"
    "    o = torch.zeros(qi.shape[0], v.shape[1])\n"
    "    for j in range(0, {k_end}, block):\n"
    "        s = (qi @ k[j : j + block].T) {scale}\n"
    "        new = torch.max(m, s.max(1, keepdim=True).values)\n"
    "        p = torch.exp(s - new)\n"
    "        a = torch.exp(m - new)\n"
    "        l = {l} + p.sum(1, keepdim=True)\n"
    "        o = {o} + p @ v[j : j + block]\n"
    "        {each}\n"
    "        m = new\n"
    "    out[i : i + block] = {end}\n"
    "return out"
)
CAUSAL = (
    "n, d = q.shape\nout = torch.zeros_like(v)\ntiles = 0\n"
    "for i in range(0, n, block):\n"
    "    e = min(i + block, n)\n"
    "    m = torch.full((e - i, 1), float('-inf'))\n"
    "    l = torch.zeros(e - i, 1)\n    o = torch.zeros(e - i, d)\n"
    "    for j in range(0, n, block):\n"
    "        {skip}\n"
    "        s = q[i:e] @ k[j : j + block].T / math.sqrt(d)\n"
    "        rows = torch.arange(i, e)[:, None]\n"
    "        cols = torch.arange(j, j + s.shape[1])[None]\n"
    "        {mask}\n"
    "        tiles += 1\n"
    "        new = torch.maximum(m, s.amax(1, keepdim=True))\n"
    "        safe = new.masked_fill(new.isinf(), 0)\n"
    "        p, a = (s - safe).exp(), (m - safe).exp()\n"
    "        l, o = l * a + p.sum(1, keepdim=True), o * a + p @ v[j : j + block]\n"
    "        m = new\n"
    "    out[i:e] = o / l\n"
    "return out, {count}"
)
SKIP = "if j > i:\n            break"
HIDE = "s = s.masked_fill(cols > rows, float('-inf'))"
CACHED = """
class CachedAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(input_size, hidden) for _ in range(3))
        self.mix = nn.Linear(hidden, hidden)
        self.n = num_heads
        self.past = None

    def heads(self, t):
        b, s, h = t.shape
        return t.view(b, s, self.n, h // self.n).transpose(1, 2)

    def forward(self, x, cache=None):
        b, s, _ = x.shape
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        {grow}
        {attend}
        return self.mix(o.transpose(1, 2).reshape(b, s, -1)), {cache}
"""
GROW = (
    "if cache is not None:\n"
    "            k, v = torch.cat((cache[0], k), -2), torch.cat((cache[1], v), -2)"
)
SDPA = "o = F.scaled_dot_product_attention(q, k, v, attn_mask=~chunk_mask(s, k.shape[2]))"
GENERATE = (
    "past = None\ncur = ids\nwith torch.no_grad():\n    for _ in range({count}):\n"
    "        out = model({feed}, {past}use_cache=True)\n"
    "        past = out.past_key_values\n"
    "        nxt = out.logits[:, {at}].argmax(-1)[:, None]\n"
    "        ids = torch.cat((ids, nxt), 1)\n        cur = nxt\nreturn {what}"
)
PAST = "past_key_values=past, "
BACKWARD = (
    "s = q.shape[1] ** -0.5\nD = {D}\n"
    "dq, dk, dv = (torch.zeros_like(t) for t in (q, k, v))\n"
    "for j in range(0, len(k), block):\n    for i in range(0, len(q), block):\n"
    "        a, b = slice(i, i + block), slice(j, j + block)\n"
    "        P = torch.exp(q[a] @ k[b].T * s{lse})\n"
    "        dS = P * (grad_out[a] @ v[b].T - D[a, None]){scale}\n"
    "        dv[b] {add} P.T @ grad_out[a]\n        dq[a] {add} dS @ k[b]\n"
    "        dk[b] {add} dS.T @ q[a]\nreturn {what}"
)


def count(two=2, qv=2, kv=2, t=4, size="bytes_per_number", ratio="f / b"):
    return COUNT.format(two=two, qv=qv, kv=kv, t=t, size=size, ratio=ratio)


def online(
    first="float('-inf')", end="scores.shape[1]", guard=GUARD, old="l * torch.exp(m - safe)"
):
    return ONLINE.format(first=first, end=end, guard=guard, old=old)


def tiles(q_end="n", k_end="len(k)", scale="/ math.sqrt(d)", l="l * a", o="o * a", each="pass",  # noqa: E741
          end="o / l"):  # fmt: skip
    return TILES.format(q_end=q_end, k_end=k_end, scale=scale, l=l, o=o, each=each, end=end)


def causal(skip=SKIP, mask=HIDE, count="tiles"):
    return CAUSAL.format(skip=skip, mask=mask, count=count)


def cached(grow=GROW, attend=SDPA, cache="(k, v)"):
    return CACHED.format(grow=grow, attend=attend, cache=cache)


def generate(count="count", feed="cur", past=PAST, at="-1", what="ids"):
    return GENERATE.format(count=count, feed=feed, past=past, at=at, what=what)


def backward(D="(grad_out * out).sum(1)", lse=" - logsumexp[a, None]", scale=" * s", add="+=",
             what="dq, dk, dv"):  # fmt: skip
    return BACKWARD.format(D=D, lse=lse, scale=scale, add=add, what=what)


def program(task: str, body: str) -> str:
    if task == "fast.cache":
        return body
    return f"def {SIGNATURES[task]}:\n    " + body.replace("\n", "\n    ")


RIGHT = {
    "fast.count": [
        count(),
        "heads = batch_size * num_heads\nscores = 2 * q_len * k_len * head_size\n"
        "io1 = (q_len + k_len) * head_size + q_len * k_len\nio2 = 2 * q_len * k_len\n"
        "io3 = q_len * k_len + k_len * head_size + q_len * head_size\n"
        "total = heads * (io1 + io2 + io3) * bytes_per_number\n"
        "return [heads * 2 * scores, total, 2 * heads * scores / total]",
    ],
    "fast.online": [
        online(),
        online(first="torch.finfo(torch.float32).min", guard="safe = new"),
        "m = torch.full_like(scores[:, :1], -torch.inf)\nl = torch.zeros_like(m)\n"
        "for c in torch.split(scores, block, -1):\n"
        "    n = torch.maximum(m, c.amax(-1, keepdim=True))\n"
        "    f = torch.exp(m - n).nan_to_num(0.0)\n"
        "    l = l * f + torch.exp(c - n).nan_to_num(0.0).sum(-1, keepdim=True)\n    m = n\n"
        "return m[:, 0], l[:, 0]",
        "ms, ls = [], []\nfor row in scores:\n    m, l = -math.inf, 0.0\n"
        "    for i in range(0, len(row), block):\n        c = row[i : i + block]\n"
        "        n = max(m, c.max().item())\n        if n == -math.inf:\n            continue\n"
        "        l = l * math.exp(m - n) + torch.exp(c - n).sum().item()\n        m = n\n"
        "    ms.append(m)\n    ls.append(l)\nreturn torch.tensor(ms), torch.tensor(ls)",
        "M, L = [], []\nfor c in scores.split(block, 1):\n    a = c.amax(1)\n"
        "    s = torch.where(a == -math.inf, 0.0, a)\n    M.append(a)\n"
        "    L.append((c - s[:, None]).exp().sum(1))\n"
        "M, L = torch.stack(M), torch.stack(L)\nm = M.amax(0)\n"
        "return m, (L * (M - m).exp()).sum(0)",
    ],
    "fast.tiles": [
        tiles(),
        tiles(scale="* d ** -0.5"),
        "q = q / q.shape[1] ** 0.5\nn = q.shape[0]\nm = torch.full((n,), -math.inf)\n"
        "l = torch.zeros(n)\no = torch.zeros_like(q)\nfor j in range(0, len(k), block):\n"
        "    for i in range(0, n, block):\n        r = slice(i, i + block)\n"
        "        s = torch.einsum('id,jd->ij', q[r], k[j : j + block])\n"
        "        new = torch.maximum(m[r], s.amax(1))\n        p = (s - new[:, None]).exp()\n"
        "        f = (m[r] - new).exp()\n        l[r] = l[r] * f + p.sum(1)\n"
        "        o[r] = o[r] * f[:, None] + p @ v[j : j + block]\n        m[r] = new\n"
        "return o / l[:, None]",
        "outs = []\nfor qb in q.split(block):\n    parts, lses = [], []\n"
        "    for kb, vb in zip(k.split(block), v.split(block)):\n"
        "        s = qb @ kb.T / q.shape[1] ** 0.5\n        parts.append(s.softmax(-1) @ vb)\n"
        "        lses.append(s.logsumexp(-1))\n"
        "    w = torch.stack(lses).softmax(0)\n"
        "    outs.append(sum(a[:, None] * b for a, b in zip(w, parts)))\nreturn torch.cat(outs)",
        "pad = -len(k) % block\nK, V = F.pad(k, (0, 0, 0, pad)), F.pad(v, (0, 0, 0, pad))\n"
        "out = []\nfor qb in q.split(block):\n    m = torch.full((len(qb),), -1e30)\n"
        "    l = torch.zeros(len(qb))\n    o = torch.zeros(len(qb), v.shape[1])\n"
        "    for j in range(0, len(K), block):\n"
        "        s = qb @ K[j : j + block].T / q.shape[1] ** 0.5\n"
        "        s[:, torch.arange(j, j + block) >= len(k)] = -math.inf\n"
        "        n = torch.maximum(m, s.max(1)[0])\n        p = torch.exp(s - n[:, None])\n"
        "        c = torch.exp(m - n)\n        l = c * l + p.sum(1)\n"
        "        o = c[:, None] * o + p @ V[j : j + block]\n        m = n\n"
        "    out.append(o / l[:, None])\nreturn torch.cat(out)",
        # Always normalised, with another factor at each step.
        tiles(o="o * (a * l_old / l)", each="pass", end="o")
        .replace("        l = l * a", "        l_old = l\n        l = l * a")
        .replace("+ p @ v[j : j + block]", "+ p @ v[j : j + block] / l"),
    ],
    "fast.causal_tiles": [
        causal(),
        causal(skip="if j >= e:\n            continue"),
        causal(mask="if i == j:\n            " + HIDE),
        causal(mask="s = s + torch.full((e - i, s.shape[1]), -1e30).triu(i - j + 1)"),
        causal()
        .replace("for j in range(0, n, block)", "for j in range(0, e, block)")
        .replace(SKIP, "pass"),
        causal()
        .replace("for j in range(0, n, block)", "for j in range(i, -1, -block)")
        .replace(SKIP, "pass"),
    ],
    "fast.chunk_mask": [
        "return torch.arange(k_len)[None] > torch.arange(k_len - q_len, k_len)[:, None]",
        "return ~torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len)",
        "return torch.ones(k_len, k_len).triu(1).bool()[-q_len:]",
        "return torch.cat([torch.zeros(q_len, k_len - q_len).bool(), "
        "torch.ones(q_len, q_len).triu(1).bool()], 1)",
    ],
    "fast.cache": [
        cached(),
        cached(cache="[k, v]"),
        cached(
            attend="a = q @ k.mT / q.shape[-1] ** 0.5\n        t = k.shape[2]\n"
            "        a = a + torch.full((s, t), -1e9).triu(t - s + 1)\n"
            "        o = a.softmax(-1) @ v"
        ),
        cached(
            grow="if cache:\n            k = torch.cat([cache[0], k], dim=2)\n"
            "            v = torch.cat([cache[1], v], dim=2)",
            attend="o = F.scaled_dot_product_attention(q, k, v, "
            "is_causal=True) if cache is None else "
            "F.scaled_dot_product_attention(q, k, v, ~chunk_mask(s, k.size(2)))",
            cache="torch.stack([k, v]).unbind(0)",
        ),
    ],
    "fast.generate": [
        generate(),
        "out = model(ids)\nfor i in range(count):\n"
        "    ids = torch.cat([ids, out.logits[:, -1:].argmax(-1)], -1)\n"
        "    if i < count - 1:\n"
        "        out = model(ids[:, -1:], past_key_values=out.past_key_values)\nreturn ids",
        "past = None\nout = None\nfor t in range(ids.shape[1]):\n"
        "    out = model(ids[:, t : t + 1], past_key_values=past)\n    past = out.past_key_values\n"
        "for _ in range(count):\n"
        "    new = out.logits[:, -1].argmax(1, keepdim=True)\n    ids = torch.cat([ids, new], 1)\n"
        "    out = model(new, past_key_values=past)\n    past = out.past_key_values\nreturn ids",
        "past, new = None, ids\nfor i in range(count):\n"
        "    p = torch.arange(ids.shape[1] - new.shape[1], ids.shape[1])[None]\n"
        "    out = model(new, past_key_values=past, position_ids=p.expand(len(ids), -1))\n"
        "    past, new = out.past_key_values, out.logits[:, -1:].argmax(-1)\n"
        "    ids = torch.cat([ids, new], 1)\nreturn ids",
        "return model.generate(ids, max_new_tokens=count, do_sample=False, "
        "attention_mask=torch.ones_like(ids), eos_token_id=None, pad_token_id=0)",
    ],
    "fast.fused": [
        "w = torch.cat([layers[n + '.weight'] for n in 'qkv'])\n"
        "b = torch.cat([layers[n + '.bias'] for n in 'qkv'])\n"
        "return (x @ w.T + b).split(len(w) // 3, dim=-1)",
        "w = torch.stack([layers[n + '.weight'] for n in 'qkv'])\n"
        "b = torch.stack([layers[n + '.bias'] for n in 'qkv'])\n"
        "y = torch.einsum('bsi,noi->nbso', x, w) + b[:, None, None]\nreturn tuple(y)",
        "w = torch.cat([layers[n + '.weight'].T for n in 'qkv'], dim=1)\n"
        "b = torch.cat([layers[n + '.bias'] for n in 'qkv'])\ny = torch.matmul(x, w) + b\n"
        "h = y.shape[-1] // 3\nreturn y[..., :h], y[..., h : 2 * h], y[..., 2 * h :]",
    ],
    "fast.tiled_backward": [backward(), backward(D="torch.einsum('id,id->i', grad_out, out)")],
}
IN_DOUBLE = "q, k, v, grad_out, out = (t.double() for t in (q, k, v, grad_out, out))\n"
WRONG = [
    ("fast.count", count(two=1), "count.factor 2"),
    ("fast.count", count(t=0), "count.table forgotten"),
    ("fast.count", count(t=2), "count.table forgotten"),
    ("fast.count", count(size="1"), "count.numbers for bytes"),
    ("fast.count", count(ratio="b / f"), "count.intensity inverted"),
    ("fast.count", count().replace("k_len", "q_len"), "count.as many keys as queries"),
    ("fast.count", count().replace("batch_size * num_heads", "batch_size"), "count.heads"),
    ("fast.count", count(two=1, t=0), "count.factor 2 + count.table forgotten"),
    ("fast.online", online(old="l"), "online.l not rescaled"),
    ("fast.online", online(old="l * torch.exp(safe - m)"), "online.rescaled the wrong way"),
    ("fast.online", online(guard="safe = new"), "online.-inf minus -inf"),
    ("fast.online", online(first="0.0"), "online.maximum from 0"),
    (
        "fast.online",
        online(end="scores.shape[1] - scores.shape[1] % block"),
        "online.last block lost",
    ),  # fmt: skip
    (
        "fast.online",
        "m = scores.max(1).values\nreturn m, torch.exp(scores - m[:, None]).sum(1)",
        "online.whole row",
    ),
    (
        "fast.online",
        "l = 0\nm = torch.full((len(scores),), -math.inf)\nfor c in scores.split(block, 1):\n"
        "    l = l + c.exp().sum(1)\n    m = torch.maximum(m, c.amax(1))\nreturn m, l",
        "online.no maximum",
    ),
    ("fast.tiles", tiles(o="o"), "tiles.accumulator not rescaled"),
    ("fast.tiles", tiles(l="l"), "tiles.l not rescaled"),
    ("fast.tiles", tiles(l="l", o="o"), "tiles.nothing rescaled"),
    ("fast.tiles", tiles(each="o = o / l"), "tiles.divided twice"),
    ("fast.tiles", tiles(each="o = o / l", end="o"), "tiles.divided each time"),
    ("fast.tiles", tiles(end="o"), "tiles.not divided"),
    ("fast.tiles", tiles(k_end="len(k) // block * block"), "tiles.last tile"),
    ("fast.tiles", tiles(q_end="n // block * block"), "tiles.last tile"),
    ("fast.tiles", tiles(scale=""), "scale.missing"),
    ("fast.tiles", tiles(scale="/ d"), "scale.twice"),
    (
        "fast.tiles",
        "return torch.softmax(q @ k.T / q.shape[1] ** 0.5, dim=-1) @ v",
        "tiles.whole table",
    ),
    (
        "fast.tiles",
        "out = []\nfor i in range(0, len(q), block):\n"
        "    s = q[i : i + block] @ k.T / q.shape[1] ** 0.5\n    out.append(s.softmax(-1) @ v)\n"
        "return torch.cat(out)",
        "tiles.strip",
    ),
    (
        "fast.tiles",
        "n = len(q)\nm = torch.full((n, 1), -math.inf)\nl = torch.zeros(n, 1)\n"
        "o = torch.zeros_like(q)\nfor j in range(0, len(k), block):\n"
        "    s = q @ k[j : j + block].T / q.shape[1] ** 0.5\n"
        "    new = torch.maximum(m, s.amax(1, True))\n    p, a = (s - new).exp(), (m - new).exp()\n"
        "    l, o, m = l * a + p.sum(1, True), o * a + p @ v[j : j + block], new\nreturn o / l",
        "tiles.strip",
    ),
    (
        "fast.tiles",
        "s = [[a @ b.T / q.shape[1] ** 0.5 for b in k.split(block)] for a in q.split(block)]\n"
        "return torch.cat([torch.cat(r, 1).softmax(1) @ v for r in s])",
        "tiles.strip",
    ),
    (
        "fast.tiles",
        "return F.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None])[0, 0]",
        "tiles.library",
    ),
    (
        "fast.tiles",
        "o = torch.zeros_like(q)\nfor j in range(0, len(k), block):\n"
        "    for i in range(0, len(q), block):\n"
        "        s = q[i : i + block] @ k[j : j + block].T / q.shape[1] ** 0.5\n"
        "        o[i : i + block] += s.softmax(-1) @ v[j : j + block]\nreturn o",
        "tiles.softmax of each",
    ),
    ("fast.causal_tiles", causal(skip="pass"), "tiles.hidden computed"),
    (
        "fast.causal_tiles",
        causal(skip="pass", count="(-(-n // block)) * (-(-n // block) + 1) // 2"),
        "tiles.hidden computed",
    ),
    ("fast.causal_tiles", causal(skip="if j >= i:\n            break"), "tiles.diagonal skipped"),
    ("fast.causal_tiles", causal(mask="pass"), "tiles.diagonal not masked"),
    ("fast.causal_tiles", causal(mask="pass", skip="pass"), "mask.none"),
    ("fast.causal_tiles", causal(mask=HIDE.replace(">", ">=")), "mask.diagonal hidden"),
    ("fast.causal_tiles", causal(count="(-(-n // block)) ** 2"), "tiles.count"),
    (
        "fast.causal_tiles",
        causal(
            mask="s = s.masked_fill(torch.ones(n, n).triu(1).bool()[i:e, j : j + block], -math.inf)"
        ),  # fmt: skip
        "tiles.whole table",
    ),
    ("fast.chunk_mask", "return torch.ones(q_len, k_len).triu(1).bool()", "mask.top left"),
    (
        "fast.chunk_mask",
        "return torch.ones(q_len, k_len).triu(k_len - q_len).bool()",
        "mask.diagonal hidden",
    ),  # fmt: skip
    (
        "fast.chunk_mask",
        "return torch.ones(q_len, k_len).tril(k_len - q_len).bool()",
        "mask.inverted",
    ),  # fmt: skip
    ("fast.chunk_mask", "return torch.ones(q_len, k_len).triu(k_len - q_len + 1)", "mask.float"),
    ("fast.chunk_mask", "return torch.zeros(q_len, k_len, dtype=torch.bool)", "mask.none"),
    (
        "fast.cache",
        cached(attend="o = F.scaled_dot_product_attention(q, k, v, is_causal=True)"),
        "mask.top left",
    ),
    ("fast.cache", cached(attend="o = F.scaled_dot_product_attention(q, k, v)"), "mask.none"),
    (
        "fast.cache",
        cached(attend="o = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)"),
        "mask.none",
    ),
    (
        "fast.cache",
        cached(
            attend="m = torch.ones(s, s).triu(1).bool()\n"
            "        o = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(m, -1e9).softmax(-1) @ v"
        ),
        "mask.not for the past",
    ),
    (
        "fast.cache",
        cached(
            grow="if cache is not None:\n            k = torch.cat((cache[0], k), 2)",
            attend="a = q @ k.mT / q.shape[-1] ** 0.5\n"
            "        o = a.masked_fill(chunk_mask(s, k.size(2)), -1e9).softmax(-1) @ v",
        ),
        "cache.values not cached",
    ),
    ("fast.cache", cached(cache="(k, k)"), "cache.values not cached"),
    ("fast.cache", cached(cache="(v, k)"), "cache.order"),
    ("fast.cache", cached(cache="(k[:, :, -s:], v[:, :, -s:])"), "cache.not grown"),
    ("fast.cache", cached(cache="cache or (k, v)"), "cache.not grown"),
    ("fast.cache", cached(grow="pass"), "cache.unused"),
    (
        "fast.cache",
        cached(
            grow=GROW.replace("(cache[0], k)", "(k, cache[0])").replace(
                "(cache[1], v)", "(v, cache[1])"
            )
        ),
        "cache.wrong end",
    ),
    (
        "fast.cache",
        cached(grow="cache = cache or self.past\n        " + GROW, cache="self.keep(k, v)")
        + "\n    def keep(self, k, v):\n        self.past = (k, v)\n        return self.past\n",
        "cache.shared",
    ),
    ("fast.generate", generate(feed="ids", past=""), "generate.no cache"),
    ("fast.generate", generate(feed="ids"), "generate.prompt again"),
    ("fast.generate", generate(past=""), "generate.cache thrown away"),
    (
        "fast.generate",
        generate(past=PAST + "position_ids=torch.arange(cur.shape[1])[None], "),
        "generate.position restarts",
    ),
    ("fast.generate", generate(at="0"), "generate.first position"),
    ("fast.generate", generate(what="ids[:, -count:]"), "generate.prompt lost"),
    ("fast.generate", generate(count="count + 1"), "generate.count"),
    (
        "fast.fused",
        "return tuple(x @ layers[n + '.weight'].T + layers[n + '.bias'] for n in 'qkv')",
        "fused.three products",
    ),
    (
        "fast.fused",
        "w = torch.cat([layers[n + '.weight'] for n in 'qkv'])\nreturn (x @ w.T).chunk(3, -1)",
        "fused.bias lost",
    ),
    ("fast.tiled_backward", backward(D="torch.zeros(len(q))"), "backward.row term missing"),
    ("fast.tiled_backward", backward(scale=""), "scale.lost"),
    ("fast.tiled_backward", backward(add="="), "backward.overwritten"),
    # Exponentials that are not normalised grow so large that their differences need float64.
    ("fast.tiled_backward", IN_DOUBLE + backward(lse=""), "backward.not normalised"),
    ("fast.tiled_backward", backward(what="dk, dq, dv"), "backward.order"),
    (
        "fast.tiled_backward",
        "s = q.shape[1] ** -0.5\nP = (q @ k.T * s).softmax(-1)\n"
        "dS = P * (grad_out @ v.T - (grad_out * out).sum(1, True)) * s\n"
        "return dS @ k, dS.T @ q, P.T @ grad_out",
        "tiles.whole table",
    ),
]


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "body"), [(t, b) for t in RIGHT for b in RIGHT[t]])
def test_right_programs_pass_in_every_style(task, body, seed):
    assert names(task, program(task, body), seed, MASK) == []


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "body", "check"), WRONG)
def test_wrong_programs_are_told_what_is_wrong(task, body, check, seed):
    assert names(task, program(task, body), seed, MASK)[:1] == [check]


# --- the answers themselves ----------------------------------------------------------------------
def tried(task: str):
    written = WRITTEN[task]
    for call in written.exercise.cases(Draw(5)):
        call = call.double()
        yield call.args, written.answer(*call.args)


def test_the_flops_are_those_that_pytorch_counts():
    for (batch, heads, q_len, k_len, size, _), (flops, _, _) in tried("fast.count"):
        q, k = torch.randn(batch, heads, q_len, size), torch.randn(batch, heads, k_len, size)
        with FlopCounterMode(display=False) as counter:
            (q @ k.mT).softmax(-1) @ k
        assert flops == counter.get_total_flops()


def test_the_bytes_are_those_of_the_tensors_that_go_in_and_out():
    for (batch, heads, q_len, k_len, size, width), (_, moved, _) in tried("fast.count"):
        q, k = torch.randn(batch, heads, q_len, size), torch.randn(batch, heads, k_len, size)
        scores = q @ k.mT
        steps = ([q, k, scores], [scores, scores], [scores, k, scores @ k])
        assert moved == width * sum(t.numel() for step in steps for t in step)


def test_the_online_softmax_is_the_softmax():
    for (scores, _), (m, total) in tried("fast.online"):
        probs = (scores - m[:, None]).exp() / total[:, None]
        torch.testing.assert_close(probs, scores.softmax(-1))


def test_tiles_give_what_pytorchs_attention_gives():
    for (q, k, v, _), out in tried("fast.tiles"):
        torch.testing.assert_close(out, F.scaled_dot_product_attention(q, k, v))
    for (q, k, v, block), (out, count) in tried("fast.causal_tiles"):
        wanted = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        torch.testing.assert_close(out, wanted)
        starts = range(0, len(q), block)
        assert count == sum(j <= i for i in starts for j in starts)


def test_a_cache_changes_no_output():
    torch.manual_seed(0)
    layer = WRITTEN["fast.cache"].answer(5, 12, 3)
    x = torch.randn(2, 9, 5)
    whole, _ = layer(x)
    cache, outs = None, []
    for chunk in x.split((4, 3, 1, 1), dim=1):
        out, cache = layer(chunk, cache)
        outs.append(out)
    torch.testing.assert_close(torch.cat(outs, 1), whole)


def test_the_tiled_backward_is_autograds():
    for (grad, q, k, v, *_), found in tried("fast.tiled_backward"):
        leaves = [t.detach().clone().requires_grad_() for t in (q, k, v)]
        scores = leaves[0] @ leaves[1].T / math.sqrt(q.shape[1])
        wanted = torch.autograd.grad(scores.softmax(-1) @ leaves[2], leaves, grad)
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
