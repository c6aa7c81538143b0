"""Lesson 08: right programs in many styles pass, wrong ones are told what is wrong."""

import pytest

from tests.forms import first_of
from tests.lessons.helper import names

CROSS = """
class CrossAttention(nn.Module):
    def __init__(self, input_size, source_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(source_size, hidden)
        self.v = nn.Linear(source_size, hidden)
    def forward(self, x, source, x_lengths, source_lengths):
        {body}
"""
ROTATE = """
def rotate(x, positions, base=10000.0):
    a, b = x.chunk(2, -1)
    angles = positions[:, None].double() * base ** (-torch.arange(a.shape[-1]) * 2 / x.shape[-1])
    c, s = angles.cos().to(x), angles.sin().to(x)
    return torch.cat((a * c - b * s, b * c + a * s), -1)

def split_heads(t, num_heads):
    return t.unflatten(-1, (num_heads, -1)).transpose(1, 2)

def merge_heads(t):
    return t.transpose(1, 2).flatten(2)
"""


def function(signature: str, body: str) -> str:
    return f"def {signature}:\n    " + body.replace("\n", "\n    ")


def cross(body):
    return CROSS.format(body=body.replace("\n", "\n        "))


def grouped(body):
    return function("grouped_attention(q, k, v)", body)


def cache(body):
    return function(
        "cache_bytes(num_layers, num_heads, kv_heads, head_size, seq_len, batch_size, bytes_each)",
        body,
    )


def rope(body):
    return function("rotate(x, positions, base=10000.0)", body)


def attend(body):
    return function("rope_attention(q, k, v, num_heads)", body)


def slopes(body):
    return function("alibi_slopes(num_heads)", body)


def alibi(body):
    return function("alibi_attention(q, k, v, slopes)", body)


def window(body):
    return function("window_mask(seq_len, window)", body)


def reach(body):
    return function("reach(num_layers, window, seq_len)", body)


def linear(body):
    return function("linear_attention(q, k, v)", body)


def steps(body):
    return function("linear_steps(q, k, v, state, total)", body)


def find(body):
    return function("find_variant(attend, size)", body)


QKV = "q, k, v = self.q(x), self.k(source), self.v(source)\n"
CROSS_SCORES = QKV + "s = q @ k.mT / k.shape[-1] ** 0.5\n"
PADDED = "m = torch.arange(source.shape[1]) >= source_lengths[:, None]\n"
SILENT = "e = torch.arange(x.shape[1]) >= x_lengths[:, None]\n"
REPEAT = (
    "g = q.shape[1] // k.shape[1]\n"
    "k, v = (t.repeat_interleave(g, dim=1) for t in (k, v))\n"
    "s = q @ k.mT / q.shape[-1] ** 0.5\n"
)
HIDE = "n = q.shape[-2]\ns = s.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)\n"
ANGLES = (
    "d = x.shape[-1]\nt = positions.float()[:, None] / base ** (torch.arange(0, d, 2) / d)\n"
    "c, s = t.cos(), t.sin()\na, b = x[..., : d // 2], x[..., d // 2 :]\n"
)
TURNED = (
    "Q, K, V = (split_heads(t, num_heads) for t in (q, k, v))\nm, n = Q.shape[2], K.shape[2]\n"
    "Q = rotate(Q, torch.arange(n - m, n))\nK = rotate(K, torch.arange(n))\n"
)
LAST = (
    "s = Q @ K.mT / K.shape[-1] ** 0.5\n"
    "s = s.masked_fill(torch.ones(m, n).triu(n - m + 1).bool(), -torch.inf)\n"
    "return merge_heads(s.softmax(-1) @ V)"
)
ROW = "row = lambda n: torch.tensor([2 ** (-8 * i / n) for i in range(1, n + 1)])\n"
PRICED = (
    "n = q.shape[2]\ni = torch.arange(n)\nd = i[:, None] - i\ns = q @ k.mT / q.shape[-1] ** 0.5\n"
)
FUTURE = "s = s.masked_fill(d < 0, -torch.inf)\nreturn s.softmax(-1) @ v"
FEATURES = "f = lambda t: F.elu(t) + 1\n"
WALK = (
    FEATURES + "outs = []\nfor t in range(q.shape[1]):\n    a, b = f(q[:, t]), f(k[:, t])\n"
    "    {body}\nreturn torch.stack(outs, 1), state, total"
)
WRITE = "state = state + b[:, :, None] * v[:, t, None]\n    total = total + b\n"
READ = "    outs.append(torch.einsum('bs,bsv->bv', a, state) / (a * total).sum(-1, keepdim=True))"
PROBES = """n = 64
zero, eye = torch.zeros(n, size), torch.eye(n)
w = attend(zero, zero, eye)
if w.triu(1).any():
    return "full"
if (w[-1] == 0).any():
    return "window"
if w[-1].std() > 1e-5:
    return "alibi"
one = zero + 1
if attend(one, one, eye)[-1].std() > 1e-5:
    return "rope"
"""

RIGHT = {
    "variants.cross": [
        cross(
            CROSS_SCORES
            + PADDED
            + "s = s.masked_fill(m[:, None], float('-inf'))\n"
            + SILENT
            + "return (s.softmax(-1) @ v) * ~e[..., None]"
        ),
        cross(
            QKV
            + PADDED
            + SILENT
            + "out = F.scaled_dot_product_attention(q, k, v, attn_mask=~m[:, None])\n"
            "return torch.where(e[:, :, None], 0.0, out)"
        ),
        cross(
            "rows = []\nfor b in range(len(x)):\n"
            "    n, m = x_lengths[b], source_lengths[b]\n"
            "    q, k, v = self.q(x[b]), self.k(source[b, :m]), self.v(source[b, :m])\n"
            "    out = torch.softmax(q @ k.T / math.sqrt(q.shape[-1]), -1) @ v\n"
            "    out = torch.cat([out[:n], torch.zeros(len(out) - n, out.shape[1])])\n"
            "    rows.append(out)\nreturn torch.stack(rows)"
        ),
        cross(
            QKV
            + "s = torch.einsum('bih,bjh->bij', q, k) * k.shape[-1] ** -0.5\n"
            + PADDED
            + "s = s + torch.where(m, -1e9, 0.0)[:, None, :]\nout = torch.bmm(s.softmax(2), v)\n"
            "for b, n in enumerate(x_lengths.tolist()):\n    out[b, n:] = 0\nreturn out"
        ),
    ],
    "variants.grouped": [
        grouped(REPEAT + HIDE + "return s.softmax(-1) @ v"),
        grouped("return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)"),
        grouped(
            "b, h, n, d = q.shape\nq = q.view(b, k.shape[1], -1, n, d)\n"
            "s = q @ k[:, :, None].mT / d**0.5\n"
            "s = s.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)\n"
            "return (s.softmax(-1) @ v[:, :, None]).view(b, h, n, d)"
        ),
        grouped(
            "g = q.shape[1] // k.shape[1]\nouts = []\nfor h in range(q.shape[1]):\n"
            "    s = q[:, h] @ k[:, h // g].mT / math.sqrt(q.shape[-1])\n"
            "    s = s + torch.full_like(s, float('-inf')).triu(1)\n"
            "    outs.append(s.softmax(-1) @ v[:, h // g])\nreturn torch.stack(outs, 1)"
        ),
        grouped(
            "b, kv, n, d = k.shape\ng = q.shape[1] // kv\n"
            "k = k[:, :, None].expand(b, kv, g, n, d).reshape(b, kv * g, n, d)\n"
            "v = torch.stack([v] * g, dim=2).flatten(1, 2)\ns = (q * d**-0.5) @ k.mT\n"
            + HIDE
            + "return F.softmax(s, dim=-1) @ v"
        ),
    ],
    "variants.cache_bytes": [
        cache("return 2 * num_layers * kv_heads * head_size * seq_len * batch_size * bytes_each"),
        cache(
            "keys = batch_size * kv_heads * seq_len * head_size\n"
            "return sum((keys + keys) * bytes_each for _ in range(num_layers))"
        ),
        cache(
            "sizes = [num_layers, kv_heads, head_size, seq_len, batch_size, bytes_each, 2]\n"
            "return math.prod(sizes)"
        ),
        cache(
            "t = torch.empty(batch_size, kv_heads, seq_len, head_size, device='meta')\n"
            "return t.numel() * bytes_each * num_layers * 2"
        ),
    ],
    "variants.rope": [
        rope(ANGLES + "return torch.cat((a * c - b * s, a * s + b * c), dim=-1)"),
        rope(
            ANGLES + "c, s = torch.cat((c, c), -1), torch.cat((s, s), -1)\n"
            "return (x * c + torch.cat((-b, a), -1) * s).type_as(x)"
        ),
        rope(
            ANGLES + "z = torch.complex(a.float(), b.float())\n"
            "z = z * torch.polar(torch.ones_like(t), t)\n"
            "return torch.cat((z.real, z.imag), -1).to(x.dtype)"
        ),
        rope(
            ANGLES + "out = torch.empty_like(x)\nout[..., : d // 2] = a * c - b * s\n"
            "out[..., d // 2 :] = b * c + a * s\nreturn out"
        ),
        rope(
            "d = x.shape[-1]\nout = torch.zeros(x.shape)\nfor p, place in enumerate(positions):\n"
            "    for i in range(d // 2):\n        t = place.item() * base ** (-2 * i / d)\n"
            "        a, b = x[:, :, p, i].float(), x[:, :, p, i + d // 2].float()\n"
            "        out[:, :, p, i] = a * math.cos(t) - b * math.sin(t)\n"
            "        out[:, :, p, i + d // 2] = b * math.cos(t) + a * math.sin(t)\nreturn out"
        ),
        rope(
            ANGLES + "s, t = s.to(x.dtype), c.to(x.dtype)\n"
            "x = x.unflatten(-1, (2, d // 2))\na, b = x[..., 0, :], x[..., 1, :]\n"
            "return torch.stack((a * t - b * s, b * t + a * s), -2).flatten(-2)"
        ),
    ],
    "variants.rope_attention": [
        attend(TURNED + LAST),
        attend(
            TURNED + "m = torch.ones(m, n, dtype=torch.bool).tril(n - m)\n"
            "return merge_heads(F.scaled_dot_product_attention(Q, K, V, attn_mask=m))"
        ),
        attend(
            TURNED.replace("n - m, n", "n - m + 7, n + 7").replace(
                "arange(n))", "arange(7, n + 7))"
            )
            + LAST
        ),
        attend(
            "outs = []\nd = q.shape[-1] // num_heads\nm, n = q.shape[1], k.shape[1]\n"
            "for h in range(num_heads):\n    w = slice(h * d, h * d + d)\n"
            "    a = rotate(q[:, None, :, w], torch.arange(n)[-m:])[:, 0]\n"
            "    b = rotate(k[:, None, :, w], torch.arange(n))[:, 0]\n"
            "    s = a @ b.transpose(1, 2) / math.sqrt(d)\n    i = torch.arange(n)\n"
            "    s = s.masked_fill(i > i[-m:, None], -1e9)\n"
            "    outs.append(s.softmax(-1) @ v[:, :, w])\nreturn torch.cat(outs, -1)"
        ),
        attend(
            TURNED + "s = torch.einsum('bhid,bhjd->bhij', Q, K) * K.shape[-1] ** -0.5\n"
            "i = torch.arange(m)[:, None] + n - m\n"
            "s = torch.where(torch.arange(n) <= i, s, -torch.inf)\n"
            "out = torch.einsum('bhij,bhjd->bihd', s.softmax(-1), V)\nreturn out.flatten(2)"
        ),
    ],
    "variants.slopes": [
        slopes(
            ROW + "p = 2 ** math.floor(math.log2(num_heads))\n"
            "return torch.cat([row(p), row(2 * p)[0::2][: num_heads - p]])"
        ),
        slopes(
            "def get(n):\n    if math.log2(n).is_integer():\n"
            "        s = 2 ** (-(2 ** -(math.log2(n) - 3)))\n"
            "        return [s * s**i for i in range(n)]\n"
            "    c = 2 ** math.floor(math.log2(n))\n    return get(c) + get(2 * c)[0::2][: n - c]\n"
            "return torch.tensor(get(num_heads))"
        ),
        slopes(
            "n = 2 ** math.ceil(math.log2(num_heads))\nm = torch.arange(1, n + 1) * 8 / n\n"
            "s = 1 / 2**m\n"
            "return s if n == num_heads else torch.cat([s[1::2], s[::2]])[:num_heads]"
        ),
        slopes(
            "p = 1\nwhile 2 * p <= num_heads:\n    p *= 2\n"
            "s = [2.0 ** (-8 * i / p) for i in range(1, p + 1)]\n"
            "s += [2.0 ** (-4 * (2 * i + 1) / p) for i in range(num_heads - p)]\nreturn s"
        ),
    ],
    "variants.alibi": [
        alibi(PRICED + "s = s - slopes.view(-1, 1, 1) * d\n" + FUTURE),
        alibi(PRICED + "s = s + slopes[:, None, None] * i\n" + FUTURE),
        alibi(PRICED + "s = s - slopes[None, :, None, None] * d.abs()\n" + FUTURE),
        alibi(
            "n = q.shape[2]\ni = torch.arange(n)\n"
            "b = -slopes[:, None, None] * (i[:, None] - i)\n"
            "b = b.masked_fill(torch.ones(n, n).triu(1).bool(), float('-inf'))\n"
            "return F.scaled_dot_product_attention(q, k, v, attn_mask=b)"
        ),
        alibi(
            "outs = []\nfor h, m in enumerate(slopes):\n    n = q.shape[2]\n"
            "    s = q[:, h] @ k[:, h].mT * q.shape[-1] ** -0.5\n"
            "    for a in range(n):\n        for b in range(a):\n"
            "            s[:, a, b] = s[:, a, b] - m * (a - b)\n"
            "    s = s.masked_fill(torch.ones(n, n).tril() == 0, -1e9)\n"
            "    outs.append(s.softmax(-1) @ v[:, h])\nreturn torch.stack(outs, 1)"
        ),
    ],
    "variants.window": [
        window("i = torch.arange(seq_len)\nd = i[:, None] - i\nreturn (d < 0) | (d >= window)"),
        window("m = torch.ones(seq_len, seq_len).bool()\nreturn m.triu(1) | m.tril(-window)"),
        window("m = torch.ones(seq_len, seq_len)\nreturn (m.tril() * m.triu(1 - window)) == 0"),
        window(
            "m = torch.ones(seq_len, seq_len, dtype=torch.bool)\nfor i in range(seq_len):\n"
            "    m[i, max(0, i - window + 1) : i + 1] = False\nreturn m"
        ),
        window(
            "return torch.tensor([[not (i - window < j <= i) for j in range(seq_len)]\n"
            "                     for i in range(seq_len)])"
        ),
    ],
    "variants.reach": [
        reach("return min(seq_len, 1 + num_layers * (window - 1))"),
        reach("n = 1\nfor _ in range(num_layers):\n    n += window - 1\nreturn min(n, seq_len)"),
        reach(
            "first = seq_len - 1\nfor _ in range(num_layers):\n"
            "    first = max(0, first - window + 1)\nreturn seq_len - first"
        ),
        reach("return int(np.minimum(seq_len, num_layers * window - num_layers + 1))").replace(
            "def", "import numpy as np\ndef", 1
        ),
        reach(
            "m = torch.ones(seq_len, seq_len).tril().triu(1 - window)\n"
            "r = torch.eye(seq_len)[-1]\nfor _ in range(num_layers):\n"
            "    r = (r @ m > 0).float()\nreturn int(r.sum())"
        ),
    ],
    "variants.linear": [
        linear(FEATURES + "w = (f(q) @ f(k).mT).tril()\nreturn w @ v / w.sum(-1, keepdim=True)"),
        linear(
            FEATURES + "q, k = f(q), f(k)\nkv = torch.einsum('bts,btv->btsv', k, v).cumsum(1)\n"
            "return torch.einsum('bts,btsv->btv', q, kv) / (q * k.cumsum(1)).sum(-1)[..., None]"
        ),
        linear(
            "f = lambda t: torch.where(t > 0, t + 1, t.exp())\nn = q.shape[1]\n"
            "w = torch.bmm(f(q), f(k).transpose(1, 2)) * torch.ones(n, n).tril()\n"
            "return F.normalize(w, p=1, dim=-1) @ v"
        ),
        linear(
            FEATURES + "out = []\ns, z = 0, 0\nfor t in range(q.shape[1]):\n"
            "    s = s + f(k[:, t])[:, :, None] * v[:, t, None]\n    z = z + f(k[:, t])\n"
            "    a = f(q[:, t])\n    out.append((a[:, None] @ s)[:, 0] / (a * z).sum(1)[:, None])\n"
            "return torch.stack(out, dim=1)"
        ),
    ],
    "variants.recurrent": [
        steps(WALK.format(body=WRITE + READ)),
        steps(
            FEATURES + "q, k = f(q), f(k)\n"
            "s = state[:, None] + torch.einsum('bts,btv->btsv', k, v).cumsum(1)\n"
            "z = total[:, None] + k.cumsum(1)\n"
            "o = torch.einsum('bts,btsv->btv', q, s) / (q * z).sum(-1, keepdim=True)\n"
            "return o, s[:, -1], z[:, -1]"
        ),
        steps(
            FEATURES + "state, total = state.clone(), total.clone()\nouts = []\n"
            "for t in range(q.shape[1]):\n"
            "    state += f(k[:, t]).unsqueeze(2) @ v[:, t].unsqueeze(1)\n    total += f(k[:, t])\n"
            "    a = f(q[:, t]).unsqueeze(1)\n"
            "    outs.append(((a @ state).squeeze(1) / (a @ total[:, :, None]).squeeze(1)))\n"
            "return torch.stack(outs, 1), state, total"
        )
        .replace("state += ", "state = state + ")
        .replace("total += ", "total = total + "),
        steps(
            FEATURES + "q, k = f(q), f(k)\nw = (q @ k.mT).tril()\n"
            "up = w @ v + q @ state\ndown = w.sum(-1) + torch.einsum('bts,bs->bt', q, total)\n"
            "return up / down[..., None], state + k.mT @ v, total + k.sum(1)"
        ),
    ],
    "variants.find": [
        find(
            PROBES + "torch.manual_seed(0)\nq, k = torch.randn(2, n, size)\n"
            "w = attend(q, k, eye)[-1]\nref = (q[-1] @ k.T / size**0.5).softmax(-1)\n"
            "return 'causal' if torch.allclose(w, ref, atol=1e-4) else 'linear'"
        ),
        find(
            "torch.manual_seed(1)\nn = 50\nq, k = torch.randn(n, size), torch.randn(n, size)\n"
            "w = attend(q, k, torch.eye(n))\ns = q @ k.T / size**0.5\n"
            "past = torch.ones(n, n).tril().bool()\n"
            "if torch.allclose(w, s.softmax(-1), atol=1e-5):\n    return 'full'\n"
            "if torch.allclose(w, s.masked_fill(~past, -torch.inf).softmax(-1), atol=1e-5):\n"
            "    return 'causal'\nif w[-1, 0] == 0 and w[-1, 1] == 0:\n    return 'window'\n"
            "p = (F.elu(q) + 1) @ (F.elu(k) + 1).T\np = p.tril()\n"
            "if torch.allclose(w, p / p.sum(-1, keepdim=True), atol=1e-5):\n    return 'linear'\n"
            "z = torch.zeros(n, size)\nu = attend(z, k, torch.eye(n))[-1]\n"
            "return 'rope' if u.max() - u.min() < 1e-5 else 'alibi'"
        ),
    ],
}

KEPT = """TABLES = {}


def rotate(x, positions, base=10000.0):
    size = x.shape[-1]
    key = len(positions), size, base
    if key not in TABLES:
        steps = base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
        TABLES[key] = positions.double()[:, None] * steps
    c, s = TABLES[key].cos().to(x.dtype), TABLES[key].sin().to(x.dtype)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * c - b * s, a * s + b * c), dim=-1)
"""
RIGHT["variants.rope"].append(KEPT.replace("len(positions)", "tuple(positions.tolist())"))
WRONG = [
    ("variants.rope", KEPT, None),
    (
        "variants.cross",
        cross(
            CROSS_SCORES
            + "m = torch.arange(source.shape[1])[None] >= x_lengths.view(-1, 1)\n"
            + SILENT
            + "s = s.masked_fill(m.unsqueeze(1), -1e9)\n"
            "return (s.softmax(-1) @ v).masked_fill(e[..., None], 0)"
        ),
        "cross.mask from the targets",
    ),
    (
        "variants.cross",
        cross(
            CROSS_SCORES
            + PADDED
            + "f = torch.ones(x.shape[1], source.shape[1]).tril() == 0\n"
            + SILENT
            + "s = s.masked_fill(m[:, None] | f, -torch.inf)\n"
            "return (s.softmax(-1) @ v).masked_fill(e[..., None], 0)"
        ),
        "cross.causal",
    ),
    (
        "variants.cross",
        cross(CROSS_SCORES + SILENT + "return (s.softmax(-1) @ v) * (~e).unsqueeze(-1)"),
        "cross.source padding seen",
    ),
    (
        "variants.cross",
        cross(
            QKV + PADDED + "return F.scaled_dot_product_attention(q, k, v, attn_mask=~m[:, None])"
        ),
        "cross.targets not silent",
    ),
    (
        "variants.cross",
        cross(
            QKV.replace("k(source)", "k(x)").replace("v(source)", "v(x)")
            + "s = q @ k.mT / k.shape[-1] ** 0.5\n"
            + PADDED
            + SILENT
            + "s = s.masked_fill(m[:, None], -torch.inf)\n"
            "return (s.softmax(-1) @ v).masked_fill(e[..., None], 0)"
        ),
        "cross.self-attention",
    ),
    (
        "variants.cross",
        cross(
            QKV + "s = q @ k.mT\n" + PADDED + SILENT + "s = s.masked_fill(m[:, None], -torch.inf)\n"
            "return (s.softmax(-1) @ v).masked_fill(e[..., None], 0)"
        ),
        "scale.missing",
    ),
    (
        "variants.grouped",
        grouped(
            "g = q.shape[1] // k.shape[1]\nk, v = k.repeat(1, g, 1, 1), torch.cat([v] * g, 1)\n"
            "s = q @ k.mT / q.shape[-1] ** 0.5\n" + HIDE + "return s.softmax(-1) @ v"
        ),
        "group.repeat",
    ),
    (
        "variants.grouped",
        grouped(
            "b, h, n, d = q.shape\nkv = k.shape[1]\nq = q.view(b, h // kv, kv, n, d)\n"
            "s = q @ k[:, None].mT / d**0.5\n"
            "s = s.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)\n"
            "return (s.softmax(-1) @ v[:, None]).reshape(b, h, n, d)"
        ),
        "group.repeat",
    ),
    ("variants.grouped", grouped(REPEAT + "return s.softmax(-1) @ v"), "mask.none"),
    (
        "variants.grouped",
        grouped(
            "return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True, "
            "scale=1.0)"
        ),
        "scale.missing",
    ),
    (
        "variants.grouped",
        grouped(
            "k, v = k[:, 0:1].expand_as(q), v[:, 0:1].expand_as(q)\n"
            "return F.scaled_dot_product_attention(q, k, v, is_causal=True)"
        ),
        "group.first only",
    ),
    (
        "variants.cache_bytes",
        cache("return num_layers * kv_heads * head_size * seq_len * batch_size * bytes_each"),
        "cache.keys only",
    ),
    (
        "variants.cache_bytes",
        cache("return bytes_each * batch_size * seq_len * head_size * num_heads * num_layers * 2"),
        "cache.query heads",
    ),
    (
        "variants.cache_bytes",
        cache("h = num_heads * head_size\nreturn 2 * batch_size * seq_len * h * bytes_each"),
        "cache.query heads + cache.one layer",
    ),
    (
        "variants.cache_bytes",
        cache(
            "return 2 * num_layers * kv_heads * head_size * seq_len**2 * batch_size * bytes_each"
        ),
        "cache.squared",
    ),
    (
        "variants.rope",
        rope(
            ANGLES + "z = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))\n"
            "return torch.view_as_real(z * torch.polar(torch.ones_like(t), t)).flatten(-2)"
        ),
        "rope.interleaved",
    ),
    (
        "variants.rope",
        rope(
            ANGLES.replace("positions.float()", "positions.to(x.dtype)").replace(
                "(torch.arange(0, d, 2) / d)", "(torch.arange(0, d, 2) / d).to(x.dtype)"
            )
            + "return torch.cat((a * c - b * s, a * s + b * c), dim=-1)"
        ),
        "rope.angles in half precision",
    ),
    (
        "variants.rope",
        rope(
            ANGLES.replace(
                "t = positions.float()[:, None]", "t = torch.arange(x.shape[2])[:, None]"
            )
            + "return torch.cat((a * c - b * s, a * s + b * c), dim=-1)"
        ),
        "rope.positions ignored",
    ),
    (
        "variants.rope",
        rope(
            ANGLES + "c, s = torch.cat((c, c), -1), torch.cat((s, s), -1)\n"
            "return x * c + torch.cat((b, -a), -1) * s"
        ),
        "rope.backwards",
    ),
    (
        "variants.rope",
        rope(
            ANGLES + "c, s = torch.cat((c, c), -1), torch.cat((s, s), -1)\n"
            "return x * c - torch.cat((b, a), -1) * s"
        ),
        "rope.not a rotation",
    ),
    (
        "variants.rope",
        rope(
            ANGLES.replace("torch.arange(0, d, 2) / d", "torch.arange(d // 2) / d")
            + "return torch.cat((a * c - b * s, a * s + b * c), dim=-1)"
        ),
        "rope.frequencies",
    ),
    (
        "variants.rope_attention",
        attend(TURNED + "V = rotate(V, torch.arange(n))\n" + LAST),
        "rope.on the values",
    ),
    (
        "variants.rope_attention",
        attend(
            "m, n = q.shape[1], k.shape[1]\nq = rotate(q, torch.arange(n - m, n))\n"
            "k = rotate(k, torch.arange(n))\nQ, K, V = (split_heads(t, num_heads) for t in "
            "(q, k, v))\n" + LAST
        ),
        "rope.before the split",
    ),
    (
        "variants.rope_attention",
        attend(TURNED.replace("n - m, n", "m") + LAST),
        "rope.position restarts",
    ),
    (
        "variants.rope_attention",
        attend(
            TURNED + "return merge_heads(F.scaled_dot_product_attention(Q, K, V, is_causal=True))"
        ),
        "mask.top left",
    ),
    (
        "variants.rope_attention",
        attend(TURNED.replace("n - m, n", "m") + LAST.replace("n - m + 1", "1")),
        "rope.position restarts + mask.top left",
    ),
    (
        "variants.slopes",
        slopes("return 2.0 ** (-8 / num_heads * torch.arange(1, num_heads + 1))"),
        "slopes.no power of two",
    ),
    (
        "variants.slopes",
        slopes("return torch.tensor([0.5**i for i in range(1, num_heads + 1)])"),
        "slopes.no power of two + slopes.ratio",
    ),
    (
        "variants.alibi",
        alibi(
            "i = torch.arange(q.shape[2])\nd = i[:, None] - i\n"
            "s = (q @ k.mT - slopes[:, None, None] * d) / math.sqrt(q.shape[-1])\n" + FUTURE
        ),
        "alibi.scaled afterwards",
    ),
    (
        "variants.alibi",
        alibi(PRICED + "s = s + slopes[:, None, None] * d\n" + FUTURE),
        "alibi.sign",
    ),
    (
        "variants.alibi",
        alibi(PRICED + "s = s - slopes[:, None, None] * i\n" + FUTURE),
        "alibi.sign",
    ),
    (
        "variants.alibi",
        alibi(PRICED + "s = s - slopes[:, None, None] * d\nreturn s.softmax(-1) @ v"),
        "mask.none",
    ),
    (
        "variants.window",
        window("m = torch.ones(seq_len, seq_len).bool()\nreturn m.triu(1) | m.tril(-window - 1)"),
        "window.one too many seen",
    ),
    (
        "variants.window",
        window("i = torch.arange(seq_len)\nreturn (i[:, None] - i) >= window"),
        "window.future open",
    ),
    (
        "variants.window",
        window("i = torch.arange(seq_len)\nreturn (i[:, None] - i).abs() >= window"),
        "window.future open",
    ),
    (
        "variants.window",
        window(
            "i = torch.arange(seq_len)\nd = i[:, None] - i\nreturn (d >= 0) & (d <= window - 1)"
        ),
        "window.inverted",
    ),
    (
        "variants.reach",
        reach("return min(num_layers * window, seq_len)"),
        "reach.itself in each layer",
    ),
    ("variants.reach", reach("return num_layers * (window - 1) + 1"), "reach.longer than the text"),
    (
        "variants.linear",
        linear(FEATURES + "return torch.tril(f(q) @ f(k).mT) @ v"),
        "linear.no normaliser",
    ),
    (
        "variants.linear",
        linear("w = (q @ k.mT).tril()\nreturn w / w.sum(-1, keepdim=True) @ v"),
        "linear.no features",
    ),
    (
        "variants.linear",
        linear("return F.scaled_dot_product_attention(q, k, v, is_causal=True)"),
        "linear.softmax",
    ),
    (
        "variants.linear",
        linear("n = v.shape[1]\nw = torch.ones(n, n).tril()\nreturn w / w.sum(1)[:, None] @ v"),
        "linear.mean of the values",
    ),
    (
        "variants.linear",
        linear(
            FEATURES + "w = f(q) @ f(k).mT\nw = w / w.sum(-1, keepdim=True)\nreturn w.tril() @ v"
        ),
        "linear.normaliser sees the future",
    ),
    (
        "variants.recurrent",
        steps(WALK.format(body=READ.strip() + "\n    " + WRITE.rstrip())),
        "recurrent.read before written",
    ),
    (
        "variants.recurrent",
        steps(WALK.format(body=WRITE + READ.replace(" / (a * total).sum(-1, keepdim=True)", ""))),
        "recurrent.no normaliser",
    ),
    (
        "variants.recurrent",
        steps(
            FEATURES + "s, z = torch.zeros_like(state), torch.zeros_like(total)\nouts = []\n"
            "for t in range(q.shape[1]):\n    a, b = f(q[:, t]), f(k[:, t])\n"
            "    s = s + b[:, :, None] * v[:, t, None]\n    z = z + b\n"
            "    outs.append((a[:, None] @ s)[:, 0] / (a * z).sum(-1, keepdim=True))\n"
            "return torch.stack(outs, 1), s, z"
        ),
        "recurrent.begins anew",
    ),
    (
        "variants.recurrent",
        steps(WALK.format(body=(WRITE + READ).replace("state = state + ", "state += "))),
        "variants.recurrent.input changed",
    ),
    ("variants.find", find("return 'causal'"), "find.one name for all"),
    ("variants.find", find(PROBES + "return 'causal'"), "find.linear not known"),
    ("variants.find", find(PROBES.replace("64", "9") + "return 'causal'"), None),
    (
        "variants.find",
        find(
            "w = attend(torch.zeros(40, size), torch.zeros(40, size), torch.eye(40))\n"
            "if w[0, 1] > 0: return 'full'\nif w[-1, 0] == 0: return 'window'\n"
            "return 'alibi' if w[-1, -1] > w[-1, 0] else 'linear'"
        ),
        None,
    ),
]


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "source"), [(t, s) for t in RIGHT for s in RIGHT[t]])
def test_right_programs_pass_in_every_style(task, source, seed):
    assert names(task, source, seed, needs=ROTATE) == []


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "source", "check"), WRONG)
def test_wrong_programs_are_told_what_is_wrong(task, source, check, seed):
    found = names(task, source, seed, needs=ROTATE)
    assert found and (check is None or found[:1] == [check])
