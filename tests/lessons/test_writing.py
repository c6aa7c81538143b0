"""The model that writes: right programs in many styles pass, wrong ones are told what is wrong."""

import pytest

from tests.forms import first_of
from tests.lessons.helper import names

NORM = """
class LayerNorm(nn.Module):
    def __init__(self, hidden, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.eps = eps
    def forward(self, x):
        {body}
"""
MLP = """
class MLP(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        {init}
    def forward(self, x):
        {body}
"""
UP_DOWN = "self.up = nn.Linear(hidden, 4 * hidden)\nself.down = nn.Linear(4 * hidden, hidden)"
BLOCK = """
from transformer_lm.modeling_attention import MultiHeadSelfAttention
class Block(nn.Module):
    def __init__(self, hidden, num_heads, attention=MultiHeadSelfAttention):
        super().__init__()
        self.norm_1, self.norm_2 = LayerNorm(hidden), LayerNorm(hidden)
        self.attention = attention(hidden, hidden, num_heads, causal=True)
        self.mlp = MLP(hidden)
    def forward(self, x):
        {body}
"""


def function(signature: str, body: str) -> str:
    return f"def {signature}:\n    " + body.replace("\n", "\n    ")


def deep(template: str, **parts: str) -> str:
    return template.format(**{k: v.replace("\n", "\n        ") for k, v in parts.items()})


def norm(body):
    return deep(NORM, body=body)


def mlp(body, init=UP_DOWN):
    return deep(MLP, init=init, body=body)


def block(body):
    return deep(BLOCK, body=body)


def embed(body):
    return function("embed(ids, tokens, places)", body)


def batch(body):
    return function("cut_batch(ids, starts, seq_len)", body)


def bigram(body):
    return function("bigram_loss(ids, held_out, vocab_size)", body)


def top_k(body):
    return function("top_k(logits, temperature, k)", body)


def top_p(body):
    return function("top_p(logits, p)", body)


MEAN = "m = x.mean(-1, keepdim=True)\n"
GELU = "return self.down(F.gelu(self.up(x), approximate='tanh'))"
NEEDED = norm("return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)") + mlp(GELU)
COUNTED = (
    "table = torch.zeros(vocab_size, vocab_size)\nfor a, b in zip(ids[:-1], ids[1:]):\n"
    "    table[a, b] += 1\n"
)
SORTED = "probs = logits.softmax(-1)\nfalling, order = probs.sort(-1, descending=True)\n"

RIGHT = {
    "writing.norm": [
        norm(
            MEAN + "s = x.var(-1, correction=0, keepdim=True)\n"
            "return (x - m) / (s + self.eps).sqrt() * self.weight + self.bias"
        ),
        norm("return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)"),
        norm(
            "x = x - x.mean(-1, True)\n"
            "return x * torch.rsqrt((x**2).mean(-1, True) + self.eps) * self.weight + self.bias"
        ),
        norm(
            MEAN + "v = torch.einsum('bsh,bsh->bs', x - m, x - m)[..., None] / x.shape[2]\n"
            "return torch.addcmul(self.bias, self.weight, (x - m) / torch.sqrt(v + self.eps))"
        ),
        norm(
            "out = torch.zeros_like(x)\nfor b in range(len(x)):\n"
            "    for t, vector in enumerate(x[b]):\n        centred = vector - vector.mean()\n"
            "        out[b, t] = centred / (centred.pow(2).mean() + self.eps) ** 0.5\n"
            "return out * self.weight + self.bias"
        ),
    ],
    "writing.mlp": [
        mlp(GELU),
        mlp(
            "x = self.up(x)\n"
            "x = 0.5 * x * (1 + torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3)))\n"
            "return self.down(x)"
        ),
        mlp(
            "return self.down(self.bend(self.up(x)))",
            UP_DOWN + "\nself.bend = nn.GELU(approximate='tanh')",
        ),
    ],
    "writing.block": [
        block("x = x + self.attention(self.norm_1(x))\nreturn x + self.mlp(self.norm_2(x))"),
        block(
            "brought = self.attention(self.norm_1(x))\nstream = x + brought\n"
            "return stream + self.mlp(self.norm_2(stream))"
        ),
        block(
            "for norm, part in ((self.norm_1, self.attention), (self.norm_2, self.mlp)):\n"
            "    x = part(norm(x)) + x\nreturn x"
        ),
    ],
    "writing.embed": [
        embed("return tokens[ids] + places[: ids.shape[1]]"),
        embed("return F.embedding(ids, tokens) + places[torch.arange(ids.size(1))].unsqueeze(0)"),
        embed(
            "hot = F.one_hot(ids, len(tokens)).to(tokens.dtype)\n"
            "return hot @ tokens + places[None, : ids.shape[-1]]"
        ),
        embed("i = torch.arange(ids.shape[1]).expand_as(ids)\nreturn tokens[ids] + places[i]"),
    ],
    "writing.batch": [
        batch("i = starts[:, None] + torch.arange(seq_len)\nreturn ids[i], ids[i + 1]"),
        batch(
            "rows = torch.stack([ids[s : s + seq_len + 1] for s in starts])\n"
            "return rows[:, :-1], rows[:, 1:]"
        ),
        batch(
            "x = [ids[s : s + seq_len] for s in starts.tolist()]\n"
            "y = [ids[s + 1 : s + 1 + seq_len] for s in starts.tolist()]\n"
            "return torch.stack(x), torch.stack(y)"
        ),
        batch("w = ids.unfold(0, seq_len + 1, 1)[starts]\nreturn w[:, :seq_len], w[:, 1:]"),
    ],
    "writing.bigram": [
        bigram(
            COUNTED + "table += 1\nprobs = table / table.sum(1, keepdim=True)\n"
            "return -probs[held_out[:-1], held_out[1:]].log().mean()"
        ),
        bigram(
            "table = torch.ones(vocab_size, vocab_size)\n"
            "table.index_put_((ids[:-1], ids[1:]), torch.tensor(1.0), accumulate=True)\n"
            "return F.cross_entropy(table.log()[held_out[:-1]], held_out[1:]).item()"
        ),
        bigram(
            "a = F.one_hot(ids[:-1], vocab_size).float()\n"
            "b = F.one_hot(ids[1:], vocab_size).float()\n"
            "t = a.T @ b + 1\nlog = torch.log(t) - torch.log(t.sum(-1))[:, None]\n"
            "return F.nll_loss(log[held_out[:-1]], held_out[1:])"
        ),
        bigram(
            "from collections import Counter\n"
            "c = Counter(zip(ids[:-1].tolist(), ids[1:].tolist()))\n"
            "n = Counter(ids[:-1].tolist())\nh = held_out.tolist()\n"
            "return -sum(math.log((c[a, b] + 1) / (n[a] + vocab_size)) for a, b in "
            "zip(h, h[1:])) / (len(h) - 1)"
        ),
    ],
    "writing.top_k": [
        top_k(
            "k = min(k, logits.shape[-1])\nv = logits.topk(k).values[:, [-1]]\n"
            "return torch.where(logits < v, -torch.inf, logits / temperature).softmax(-1)"
        ),
        top_k(
            "p = (logits / temperature).softmax(-1)\nv, i = p.topk(min(k, p.shape[-1]))\n"
            "return torch.zeros_like(p).scatter(-1, i, v / v.sum(-1, keepdim=True))"
        ),
        top_k(
            "v, i = torch.sort(logits / temperature, descending=True)\nv[:, k:] = float('-inf')\n"
            "out = torch.empty_like(v)\nfor b in range(len(v)):\n"
            "    out[b, i[b]] = v[b].softmax(0)\n"
            "return out"
        ),
        top_k(
            "rank = logits.argsort(-1, descending=True).argsort(-1)\n"
            "e = torch.exp(logits / temperature) * (rank < k)\nreturn e / e.sum(1)[:, None]"
        ),
    ],
    "writing.top_p": [
        top_p(
            SORTED + "kept = falling * (falling.cumsum(-1) - falling < p)\n"
            "kept = kept / kept.sum(-1, keepdim=True)\n"
            "return torch.zeros_like(probs).scatter(-1, order, kept)"
        ),
        top_p(
            "order = logits.argsort(-1, descending=True)\nout = torch.zeros_like(logits)\n"
            "for b, row in enumerate(logits.softmax(-1)):\n    total = 0.0\n"
            "    for i in order[b]:\n        out[b, i] = row[i]\n        total += row[i]\n"
            "        if total >= p:\n            break\nreturn out / out.sum(-1, keepdim=True)"
        ),
        top_p(
            SORTED + "drop = falling.cumsum(-1) > p\ndrop[:, 1:] = drop[:, :-1].clone()\n"
            "drop[:, 0] = False\ndrop = torch.zeros_like(drop).scatter(-1, order, drop)\n"
            "return logits.masked_fill(drop, -torch.inf).softmax(-1)"
        ),
        top_p(
            "probs = logits.softmax(-1)\n"
            "above = (probs[:, None, :] > probs[:, :, None]).to(probs)\n"
            "before = (above * probs[:, None]).sum(-1)\nkept = probs * (before < p)\n"
            "return kept / kept.sum(-1, keepdim=True)"
        ),
    ],
}

WRONG = [
    (
        "writing.norm",
        norm(
            "m, s = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)\n"
            "return (x - m) / torch.sqrt(s**2 + self.eps) * self.weight + self.bias"
        ),
        "norm.unbiased",
    ),
    (
        "writing.norm",
        norm(
            "m, s = x.mean(-1, keepdim=True), x.std(-1, keepdim=True, unbiased=False)\n"
            "return (x - m) / (s + self.eps) * self.weight + self.bias"
        ),
        "norm.eps outside",
    ),
    (
        "writing.norm",
        norm(
            "m, s = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)\n"
            "return (x - m) / (s + self.eps) * self.weight + self.bias"
        ),
        "norm.unbiased + norm.eps outside",
    ),
    (
        "writing.norm",
        norm(
            "m = x.mean((0, 1), keepdim=True)\nv = x.var((0, 1), keepdim=True, unbiased=False)\n"
            "return (x - m) / (v + self.eps) ** 0.5 * self.weight + self.bias"
        ),
        "norm.over the tokens",
    ),
    (
        "writing.norm",
        norm("return F.layer_norm(x, x.shape[-1:], eps=self.eps) * self.weight"),
        "norm.no bias",
    ),
    (
        "writing.norm",
        norm("return F.rms_norm(x, x.shape[-1:], self.weight, self.eps) + self.bias"),
        "norm.not centred",
    ),
    ("writing.mlp", mlp("return self.down(F.gelu(self.up(x)))"), "mlp.other bend"),
    ("writing.mlp", mlp("return self.down(self.up(x).clamp(min=0))"), "mlp.other bend"),
    ("writing.mlp", mlp("return self.down(self.up(x))"), "mlp.no bend"),
    (
        "writing.mlp",
        mlp("return x + self.down(F.gelu(self.up(x), approximate='tanh'))"),
        "mlp.adds x",
    ),
    ("writing.mlp", mlp(GELU, UP_DOWN.replace("4 *", "2 *")), "wrong width"),
    (
        "writing.block",
        block("x = self.norm_1(x + self.attention(x))\nreturn self.norm_2(x + self.mlp(x))"),
        "block.norm behind",
    ),
    (
        "writing.block",
        block(
            "x = self.norm_1(x)\nx = x + self.attention(x)\nx = self.norm_2(x)\n"
            "return x + self.mlp(x)"
        ),
        "block.stream replaced",
    ),
    (
        "writing.block",
        block("x = self.attention(self.norm_1(x))\nreturn self.mlp(self.norm_2(x))"),
        "block.no sum",
    ),
    (
        "writing.block",
        block("return x + self.attention(self.norm_1(x)) + self.mlp(self.norm_2(x))"),
        "block.parallel",
    ),
    (
        "writing.block",
        block("x = x + self.attention(self.norm_1(x))\nreturn x + self.mlp(self.norm_1(x))"),
        "block.one norm twice",
    ),
    ("writing.embed", embed("return F.embedding(ids, tokens)"), "embed.no positions"),
    (
        "writing.embed",
        embed("return tokens[ids] + places[1 : 1 + ids.shape[1]]"),
        "embed.positions from 1",
    ),
    (
        "writing.batch",
        batch("i = starts[:, None] + torch.arange(seq_len)\nreturn ids[i], ids[i]"),
        "targets.not shifted",
    ),
    (
        "writing.batch",
        batch("x = ids[starts[:, None] + torch.arange(seq_len)]\nreturn x, x.roll(-1, dims=1)"),
        "targets.wrapped",
    ),
    (
        "writing.batch",
        batch(
            "x = torch.stack([ids[s : s + seq_len] for s in starts])\n"
            "y = torch.stack([ids[s + 2 : s + seq_len + 2] for s in starts])\nreturn x, y"
        ),
        "targets.past the end",
    ),
    (
        "writing.bigram",
        bigram(
            COUNTED + "probs = table / table.sum(1, keepdim=True)\n"
            "return -probs[held_out[:-1], held_out[1:]].log().mean()"
        ),
        "bigram.not smoothed",
    ),
    (
        "writing.bigram",
        bigram(
            "table = torch.ones(vocab_size, vocab_size)\ntable[ids[:-1], ids[1:]] += 1\n"
            "return F.cross_entropy(table.log()[held_out[:-1]], held_out[1:])"
        ),
        "bigram.counted once",
    ),
    (
        "writing.bigram",
        bigram(
            COUNTED + "p = (table + 1) / (table + 1).sum(0)\n"
            "return -p[held_out[:-1], held_out[1:]].log().mean()"
        ),
        "bigram.columns",
    ),
    (
        "writing.bigram",
        bigram(
            COUNTED + "p = (table + 1) / (table + 1).sum(1, keepdim=True)\n"
            "return -p[held_out[:-1], held_out[1:]].log2().mean()"
        ),
        "bigram.bits",
    ),
    (
        "writing.top_k",
        top_k(
            "v, i = (logits * temperature).topk(min(k, logits.shape[-1]))\n"
            "return torch.zeros_like(logits).scatter(-1, i, v.softmax(-1))"
        ),
        "temperature.multiplied",
    ),
    (
        "writing.top_k",
        top_k(
            "p = (logits / temperature).softmax(-1)\n"
            "v = p.topk(min(k, p.shape[-1])).values[:, -1:]\n"
            "return torch.where(p < v, 0.0, p)"
        ),
        "top-k.not normalised",
    ),
    (
        "writing.top_k",
        top_k(
            "v = logits.topk(min(k, logits.shape[-1])).values[:, -1:]\n"
            "return (logits * (logits >= v) / temperature).softmax(-1)"
        ),
        "top-k.filled with 0",
    ),
    (
        "writing.top_p",
        top_p(
            SORTED + "kept = falling * (falling.cumsum(-1) <= p)\n"
            "kept[:, 0] = falling[:, 0]\nkept = kept / kept.sum(-1, keepdim=True)\n"
            "return torch.zeros_like(probs).scatter(-1, order, kept)"
        ),
        "top-p.one too few",
    ),
    (
        "writing.top_p",
        top_p(
            SORTED + "kept = falling * (falling.cumsum(-1) - falling < p)\n"
            "return kept / kept.sum(-1, keepdim=True)"
        ),
        "top-p.order lost",
    ),
    (
        "writing.top_p",
        top_p(
            SORTED + "kept = falling * (falling.cumsum(-1) - falling < p)\n"
            "return torch.zeros_like(probs).scatter(-1, order, kept)"
        ),
        "top-p.not normalised",
    ),
    (
        "writing.top_p",
        top_p(
            "p_ = logits.softmax(-1)\nk = p_ * (p_ >= p * p_.amax(-1, keepdim=True))\n"
            "return k / k.sum(-1, keepdim=True)"
        ),
        "top-p.threshold",
    ),
]


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "source"), [(t, s) for t in RIGHT for s in RIGHT[t]])
def test_right_programs_pass_in_every_style(task, source, seed):
    assert names(task, source, seed, needs=NEEDED) == []


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "source", "check"), WRONG)
def test_wrong_programs_are_told_what_is_wrong(task, source, check, seed):
    assert names(task, source, seed, needs=NEEDED)[:1] == [check]
