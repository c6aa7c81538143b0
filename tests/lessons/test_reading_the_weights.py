"""Lesson 10: right programs in many styles pass, wrong ones are told what is wrong."""

import pytest

from tests.forms import first_of
from tests.lessons.helper import names

NEEDS = """
def split_wide(wide):
    return wide.chunk(3, dim=1)
def head_cosines(w):
    u = w / w.norm(dim=0)
    c = u.T @ u
    return c, c[torch.ones_like(c).triu(1) == 1]
"""
SIGNATURES = {
    "params": "params(config)",
    "count": "attention_parameters(model)",
    "split": "split_wide(wide)",
    "histogram": "density(values, edges)",
    "statistics": "qkv_stats(model)",
    "heads": "head_columns(weight, num_heads)",
    "cosines": "head_cosines(w)",
    "within_across": "within_across(weight, num_heads)",
    "all_columns": "column_stats(model)",
    "gauge": "change_gauge(w_q, b_q, w_k, b_k, r)",
    "identity": "identity_distance(w_q, w_k)",
    "symmetric": "symmetric_parts(w_q, w_k)",
    "definite": "definiteness(w_q, w_k)",
    "biases": "score_terms(x, w_q, b_q, w_k, b_k)",
}

PARAMS = """
return {"n_layers": config.n_layer, "n_emb": config.n_embd, "n_heads": config.n_head,
        "head_dim": config.n_embd // config.n_head}
"""
COUNT = """
w = b = 0
for block in model.transformer.h:
    a = block.attn
    w += a.c_attn.weight.numel() + a.c_proj.weight.numel()
    b += a.c_attn.bias.numel() + a.c_proj.bias.numel()
return w, b
"""
DENSITY = """
widths = edges.diff()
counts = torch.stack([((values >= a) & (values < b)).sum()
                      for a, b in zip(edges[:-1], edges[1:])])
share = counts / values.numel()
return edges[:-1] + widths / 2, share / widths, 1 - share.sum()
"""
STATS = """
rows = []
for block in model.transformer.h:
    w = block.attn.c_attn.weight.detach()
    q, k, v = w.chunk(3, dim=1)
    rows.append([[float(p.mean()), float(p.std())] for p in (q, k, v)])
return torch.tensor(rows)
"""
HEADS = """
size = weight.shape[1] // num_heads
return weight.view(len(weight), num_heads, size).transpose(0, 1)
"""
COSINES = """
unit = w / w.norm(dim=0, keepdim=True)
c = unit.T @ unit
i, j = torch.triu_indices(len(c), len(c), 1)
return c, c[i, j]
"""
WITHIN = """
size = weight.shape[1] // num_heads
heads = weight.split(size, dim=1)
within, across = [], []
for i in range(num_heads):
    for j in range(i, num_heads):
        a = heads[i] / heads[i].norm(dim=0, keepdim=True)
        b = heads[j] / heads[j].norm(dim=0, keepdim=True)
        cs = a.T @ b
        if i == j:
            r, c = torch.triu_indices(size, size, offset=1)
            within.append(cs[r, c])
        else:
            across.append(cs.flatten())
within, across = torch.cat(within), torch.cat(across)
return torch.stack([torch.stack([g.mean(), g.std()]) for g in (within, across)])
"""
COLUMNS = """
table = torch.zeros(model.config.n_layer, 3, 2)
for i, block in enumerate(model.transformer.h):
    for j, w in enumerate(block.attn.c_attn.weight.detach().chunk(3, dim=1)):
        u = w / w.norm(dim=0, keepdim=True)
        cs = u.T @ u
        mask = torch.ones(len(cs), len(cs), dtype=torch.bool).triu(1)
        pairs = cs[mask]
        table[i, j, 0], table[i, j, 1] = pairs.mean(), pairs.std()
return table
"""
GAUGE = """
s = torch.linalg.inv(r).T
return w_q @ r, b_q @ r, w_k @ s, b_k @ s
"""
IDENTITY = """
M = w_q @ w_k.T
d = len(M)
c = torch.trace(M) / d
return c, (M - c * torch.eye(d)).norm() / M.norm(), math.sqrt(1 - w_q.shape[1] / d)
"""
SYMMETRIC = """
M = w_q @ w_k.T
return ((M + M.T) / 2).norm() / M.norm(), ((M - M.T) / 2).norm() / M.norm()
"""
DEFINITE = """
M = w_q @ w_k.T
e = torch.linalg.eigvalsh((M + M.T) / 2)
return e.min(), e.max(), e[e > 0].sum() / e.abs().sum()
"""
TERMS = """
s = w_q.shape[-1] ** 0.5
return {"content": x @ w_q @ w_k.T @ x.T / s, "query": (x @ w_q @ b_k)[:, None] / s,
        "key": (x @ w_k @ b_q)[None] / s, "constant": b_q @ b_k / s}
"""

RIGHT = {
    "params": [
        PARAMS,
        PARAMS.replace("//", "/"),
        PARAMS.replace("config.n_embd // config.n_head", "int(config.n_embd / config.n_head)"),
        "names = dict(n_layers='n_layer', n_emb='n_embd', n_heads='n_head')\n"
        "p = {k: getattr(config, v) for k, v in names.items()}\n"
        "return {**p, 'head_dim': p['n_emb'] // p['n_heads']}",
        "p = {}\np['n_layers'] = config.n_layer\np['n_emb'] = config.n_embd\n"
        "p['n_heads'] = config.n_head\np['head_dim'] = config.n_embd // config.n_head\nreturn p",
    ],
    "count": [
        COUNT,
        "d, n = model.config.n_embd, model.config.n_layer\nreturn 4 * d * d * n, 4 * d * n",
        "a = model.transformer.h[0].attn\nn = len(model.transformer.h)\n"
        "return (n * (a.c_attn.weight.numel() + a.c_proj.weight.numel()), "
        "n * (a.c_attn.bias.numel() + a.c_proj.bias.numel()))",
        "named = [(k, p.numel()) for k, p in model.named_parameters() if '.attn.' in k]\n"
        "return (sum(n for k, n in named if k.endswith('weight')), "
        "sum(n for k, n in named if k.endswith('bias')))",
        "w = b = 0\nfor k, t in model.state_dict().items():\n    if '.attn.c_' in k:\n"
        "        if t.dim() == 2: w += math.prod(t.shape)\n        else: b += len(t)\nreturn w, b",
    ],
    "split": [
        "return torch.split(wide, wide.shape[0], dim=1)",
        "return wide.chunk(3, dim=-1)",
        "n = wide.shape[0]\nreturn wide[:, :n], wide[:, n:2 * n], wide[:, 2 * n:]",
        "return list(wide.view(len(wide), 3, -1).unbind(1))",
        "return tuple(wide.T.reshape(3, len(wide), -1).transpose(1, 2))",
        "q, k, v = torch.tensor_split(wide.double(), 3, dim=1)\nreturn q, k, v",
        "return torch.stack(wide.chunk(3, 1)).unbind(0)",
    ],
    "histogram": [
        DENSITY,
        "h = torch.histogram(values.flatten(), edges).hist\nw = edges[1:] - edges[:-1]\n"
        "return (edges[1:] + edges[:-1]) / 2, h / values.numel() / w, "
        "(values.numel() - h.sum()) / values.numel()",
        "import numpy as np\nh, e = np.histogram(values.numpy(), bins=edges.numpy())\n"
        "n = values.numel()\nreturn (e[1:] + e[:-1]) / 2, h / n / np.diff(e), 1 - h.sum() / n",
        "inside = values[(values >= edges[0]) & (values <= edges[-1])]\n"
        "h = torch.histc(inside, len(edges) - 1, edges[0].item(), edges[-1].item())\n"
        "w = (edges[-1] - edges[0]) / (len(edges) - 1)\nreturn (edges[:-1] + w / 2, "
        "h / (values.numel() * w), 1 - len(inside) / values.numel())",
        "flat = values.flatten()\nout = ((flat < edges[0]) | (flat > edges[-1])).float().mean()\n"
        "d = torch.histogram(flat, edges, density=True).hist * (1 - out)\n"
        "return edges.unfold(0, 2, 1).mean(-1), d, out",
    ],
    "statistics": [
        STATS,
        "W = torch.stack([b.attn.c_attn.weight.detach() for b in model.transformer.h])\n"
        "W = W.unflatten(2, (3, -1))\nreturn torch.stack([W.mean((1, 3)), W.std((1, 3))], -1)",
        STATS.replace("p.std()", "p.var().sqrt()").replace(
            "w.chunk(3, dim=1)", "w.split(len(w), dim=1)"
        ),
        STATS.replace("float(p.std())", "float(p.double().std())"),
        "import numpy as np\nout = []\nfor b in model.transformer.h:\n"
        "    w = b.attn.c_attn.weight.detach().numpy()\n"
        "    out.append([[p.mean(), p.std(ddof=1)] for p in np.split(w, 3, axis=1)])\n"
        "return np.array(out)",
    ],
    "heads": [
        HEADS,
        HEADS.replace(
            "weight.view(len(weight), num_heads, size).transpose(0, 1)",
            "torch.stack(torch.split(weight, size, dim=1))",
        ),
        "return weight.T.reshape(num_heads, -1, len(weight)).transpose(1, 2)",
        "return torch.stack(weight.chunk(num_heads, dim=1)).double()",
        "s = weight.shape[1] // num_heads\n"
        "return torch.stack([weight[:, i * s:(i + 1) * s] for i in range(num_heads)])",
        "return weight.unflatten(-1, (num_heads, -1)).permute(1, 0, 2).contiguous()",
    ],
    "cosines": [
        COSINES,
        COSINES.replace("unit.T @ unit", "torch.einsum('di,dj->ij', unit, unit)"),
        COSINES.replace(
            "torch.triu_indices(len(c), len(c), 1)", "torch.tril_indices(len(c), len(c), -1)"
        ),
        "c = F.cosine_similarity(w[:, :, None], w[:, None, :], dim=0)\n"
        "return c, c[torch.ones_like(c).triu(1).bool()]",
        "n = w.norm(dim=0)\nc = w.T @ w / n[:, None] / n[None, :]\n"
        "pairs = [c[i, j] for i in range(len(c)) for j in range(i + 1, len(c))]\n"
        "return c, torch.stack(pairs)",
        "u = F.normalize(w, dim=0)\nc = u.T @ u\n"
        "return c, torch.cat([c[i, i + 1:] for i in range(len(c))])",
    ],
    "within_across": [
        WITHIN,
        WITHIN.replace(
            "torch.triu_indices(size, size, offset=1)", "torch.tril_indices(size, size, offset=-1)"
        ),
        "c, _ = head_cosines(weight)\nown = torch.arange(len(c)) // (len(c) // num_heads)\n"
        "up = torch.ones_like(c).triu(1).bool()\nsame = own[:, None] == own\n"
        "g = [c[up & same], c[up & ~same]]\n"
        "return torch.tensor([[x.mean(), x.std()] for x in g])",
        WITHIN.replace(
            "torch.cat(within), torch.cat(across)",
            "torch.cat(within).double(), torch.cat(across).double()",
        ),
        WITHIN.replace(
            "return torch.stack([torch.stack([g.mean(), g.std()]) for g in (within, across)])",
            "return [[within.mean(), within.std()], [across.mean(), across.std()]]",
        ),
    ],
    "all_columns": [
        COLUMNS,
        COLUMNS.replace("w.norm(dim=0, keepdim=True)", "w.square().sum(0).sqrt()"),
        COLUMNS.replace("pairs = cs[mask]", "pairs = cs[torch.tril(mask.T, -1)]"),
        "t = []\nfor b in model.transformer.h:\n"
        "    ps = [head_cosines(w)[1] for w in split_wide(b.attn.c_attn.weight.detach())]\n"
        "    t.append(torch.stack([torch.stack([p.mean(), p.std()]) for p in ps]))\n"
        "return torch.stack(t)",
        "import numpy as np\nt = np.zeros((model.config.n_layer, 3, 2))\n"
        "for i, b in enumerate(model.transformer.h):\n"
        "    W = b.attn.c_attn.weight.detach().numpy()\n    d = len(W)\n    for j in range(3):\n"
        "        w = W[:, j * d:(j + 1) * d]\n        w = w / np.linalg.norm(w, axis=0)\n"
        "        p = (w.T @ w)[np.triu_indices(d, k=1)]\n"
        "        t[i, j] = p.mean(), p.std(ddof=1)\nreturn t",
    ],
    "gauge": [
        GAUGE,
        GAUGE.replace("torch.linalg.inv(r).T", "torch.linalg.inv(r.T)"),
        GAUGE.replace("torch.linalg.inv(r).T", "torch.inverse(r).mT"),
        "k = torch.linalg.solve(r, w_k.T).T\nb = torch.linalg.solve(r, b_k)\n"
        "return w_q @ r, b_q @ r, k, b",
        "s = torch.linalg.pinv(r)\nreturn torch.einsum('ih,hj->ij', w_q, r), r.T @ b_q, "
        "torch.einsum('ih,jh->ij', w_k, s), s @ b_k",
    ],
    "identity": [
        IDENTITY,
        IDENTITY.replace("torch.trace(M) / d", "M.diagonal().mean()"),
        IDENTITY.replace("torch.trace(M) / d", "(w_q * w_k).sum() / d"),
        "d, h = w_q.shape\nt = (w_q * w_k).sum()\nn2 = ((w_q.T @ w_q) * (w_k.T @ w_k)).sum()\n"
        "return t / d, (1 - t ** 2 / (d * n2)).sqrt(), (1 - h / d) ** 0.5",
        "M = (w_q @ w_k.T).double()\nc = float(M.trace()) / len(M)\n"
        "D = M - c * torch.eye(len(M), dtype=M.dtype)\n"
        "return c, float(D.pow(2).sum().sqrt() / M.pow(2).sum().sqrt()), "
        "math.sqrt((len(M) - w_q.shape[1]) / len(M))",
    ],
    "symmetric": [
        SYMMETRIC,
        SYMMETRIC.replace("(M + M.T) / 2", "0.5 * M + 0.5 * M.T"),
        "M = w_q @ w_k.T\nS = (M + M.T) / 2\nA = M - S\n"
        "return (S.norm() / M.norm()).item(), (A.norm() / M.norm()).item()",
        "M = w_q @ w_k.T\ns = (M + M.T).norm() / M.norm() / 2\nreturn s, (1 - s ** 2).sqrt()",
        "a, b = w_q.double(), w_k.double()\nn = ((a.T @ a) * (b.T @ b)).sum()\ng = b.T @ a\n"
        "t = (g * g.T).sum()\nreturn ((1 + t / n) / 2).sqrt(), ((1 - t / n) / 2).sqrt()",
    ],
    "definite": [
        DEFINITE,
        DEFINITE.replace("eigvalsh", "eigh").replace("/ 2)", "/ 2).eigenvalues"),
        DEFINITE.replace(
            "torch.linalg.eigvalsh((M + M.T) / 2)", "torch.linalg.eigvals((M + M.T) / 2).real"
        ),
        DEFINITE.replace("e[e > 0].sum()", "e.clamp(min=0).sum()"),
        DEFINITE.replace(
            "e[e > 0].sum() / e.abs().sum()", "e[e > 0].sum() / (e[e > 0].sum() - e[e < 0].sum())"
        ),
        DEFINITE.replace("w_q @ w_k.T", "(w_q @ w_k.T).double()"),
    ],
    "biases": [
        TERMS,
        TERMS.replace("x @ w_q @ w_k.T @ x.T", "(x @ w_q) @ (x @ w_k).T"),
        TERMS.replace("(x @ w_q @ b_k)[:, None]", "x @ w_q @ b_k.unsqueeze(-1)").replace(
            "b_q @ b_k", "torch.dot(b_q, b_k)"
        ),
        TERMS.replace("w_q.shape[-1] ** 0.5", "math.sqrt(len(b_q))").replace(
            "(x @ w_k @ b_q)[None]", "b_q[None] @ (x @ w_k).T"
        ),
        TERMS.replace("w_q.shape[-1] ** 0.5", "1 / w_q.shape[1] ** -0.5"),
        "s = len(b_k) ** 0.25\nq, k, a, b = x @ w_q / s, x @ w_k / s, b_q / s, b_k / s\n"
        "return dict(content=torch.einsum('ih,jh->ij', q, k), query=(q * b).sum(-1, True),\n"
        "            key=(k * a).sum(-1)[None], constant=(a * b).sum())",
    ],
}
WRONG = [
    (
        "params",
        PARAMS.replace("config.n_embd // config.n_head", "config.n_embd"),
        "params.head_dim is hidden",
    ),
    (
        "params",
        PARAMS.replace("config.n_embd // config.n_head", "config.n_head"),
        "params.head_dim is the number of heads",
    ),
    (
        "params",
        PARAMS.replace("// config.n_head", "// config.n_layer"),
        "params.head_dim by layers",
    ),
    (
        "params",
        PARAMS.replace('"n_emb": config.n_embd', '"n_emb": config.n_positions'),
        "params.positions for embedding",
    ),
    (
        "params",
        PARAMS.replace('"n_layers": config.n_layer', '"n_layers": config.n_head').replace(
            '"n_heads": config.n_head', '"n_heads": config.n_layer'
        ),
        "params.layers and heads swapped",
    ),
    ("params", PARAMS.replace('"head_dim"', '"head_size"'), "weights.params.length"),
    ("count", COUNT.replace("return w, b", "return w + b, b"), "count.biases among the weights"),
    ("count", COUNT.replace("return w, b", "return w + b"), "count.biases among the weights"),
    ("count", COUNT.replace(".h:", ".h[:1]:"), "count.one layer"),
    (
        "count",
        COUNT.replace("weight.numel()", "weight.__len__()").replace(
            "bias.numel()", "bias.__len__()"
        ),
        "numel.rows counted",
    ),
    (
        "count",
        COUNT.replace(" + a.c_proj.weight.numel()", "").replace(" + a.c_proj.bias.numel()", ""),
        "count.c_proj missing",
    ),
    ("count", COUNT.replace("a.c_proj", "block.mlp.c_proj"), "count.c_proj of the MLP"),
    ("count", COUNT.replace("return w, b", "return b, w"), "count.order"),
    ("split", "return wide.chunk(3, dim=0)", "split.axis"),
    ("split", "return torch.split(wide, wide.shape[0], dim=0)", "split.axis"),
    ("split", "q, v, k = wide.chunk(3, dim=1)\nreturn q, k, v", "split.order"),
    ("split", "k, q, v = wide.chunk(3, dim=1)\nreturn q, k, v", "split.order"),
    ("split", "return tuple(wide.view(3, len(wide), len(wide)))", "split.reshaped"),
    ("split", "return tuple(wide.view(len(wide), -1, 3).unbind(-1))", "split.interleaved"),
    ("split", "return torch.cat(wide.chunk(3, dim=1))", "split.stacked"),
    ("histogram", DENSITY.replace("edges[:-1] + widths / 2", "edges[:-1]"), "histogram.left edges"),
    ("histogram", DENSITY.replace("edges[:-1] + widths / 2", "edges"), "histogram.all edges"),
    (
        "histogram",
        DENSITY.replace("share / widths", "share / widths / share.sum()"),
        "histogram.inside only",
    ),
    ("histogram", DENSITY.replace("share / widths", "share"), "histogram.not per width"),
    ("histogram", DENSITY.replace("share / widths", "counts"), "histogram.counts"),
    ("histogram", DENSITY.replace("1 - share.sum()", "share.sum()"), "histogram.share inside"),
    (
        "histogram",
        DENSITY.replace("1 - share.sum()", "values.numel() - counts.sum()"),
        "histogram.outside counted",
    ),
    ("statistics", STATS.replace("p.std()", "p.std(correction=0)"), "statistics.ddof"),
    ("statistics", STATS.replace("w.chunk(3, dim=1)", "w.chunk(3, dim=0)"), ""),
    (
        "statistics",
        STATS.replace("w.chunk(3, dim=1)", "w.reshape(3, len(w), len(w))"),
        "split.axis",
    ),
    ("statistics", STATS.replace("(q, k, v)]", "(q, v, k)]"), "split.order"),
    ("statistics", STATS.replace("p.std()", "p.var()"), "statistics.variance"),
    ("statistics", STATS.replace("p.std()", "p.std(0).mean()"), "statistics.mean of columns"),
    (
        "statistics",
        STATS.replace("float(p.mean()), float(p.std())", "float(p.std()), float(p.mean())"),
        "statistics.order",
    ),
    (
        "statistics",
        STATS.replace("block.attn", "model.transformer.h[-1].attn"),
        "statistics.last layer everywhere",
    ),
    (
        "statistics",
        STATS.replace("torch.tensor(rows)", "torch.tensor(rows).transpose(0, 1)"),
        "statistics.axes",
    ),
    (
        "heads",
        HEADS.replace(
            "weight.view(len(weight), num_heads, size).transpose(0, 1)",
            "weight.reshape(num_heads, len(weight), size)",
        ),
        "heads.reshaped",
    ),
    (
        "heads",
        "return weight.view(len(weight), -1, num_heads).permute(2, 0, 1)",
        "heads.interleaved",
    ),
    ("heads", "return weight.view(num_heads, -1, weight.shape[1])", "heads.rows"),
    ("heads", HEADS.replace("transpose(0, 1)", "permute(1, 2, 0)"), "heads.transposed"),
    ("heads", HEADS.replace(".transpose(0, 1)", ""), "heads.head in the middle"),
    ("heads", "return torch.stack(weight.split(num_heads, dim=1))", ""),
    ("cosines", COSINES.replace("dim=0", "dim=1"), "cosine.norm axis"),
    ("cosines", COSINES.replace("len(c), 1)", "len(c), 0)"), "cosine.diagonal"),
    ("cosines", COSINES.replace("w / w.norm(dim=0, keepdim=True)", "w"), "cosine.not normalised"),
    (
        "cosines",
        COSINES.replace("w.norm(dim=0, keepdim=True)", "w.norm()"),
        "cosine.one norm for all",
    ),
    ("cosines", COSINES.replace("c[i, j]", "c.flatten()"), "cosine.every pair twice"),
    ("cosines", COSINES.replace("c[i, j]", "c.triu(1).flatten()"), "cosine.zeros kept"),
    ("cosines", COSINES.replace("w / w", "w.T / w.T"), "cosine.rows compared"),
    ("within_across", WITHIN.replace("dim=0", "dim=1"), ""),
    ("within_across", WITHIN.replace("offset=1", "offset=0"), "cosine.diagonal"),
    ("within_across", WITHIN.replace("g.std()", "g.std(correction=0)"), "statistics.ddof"),
    (
        "within_across",
        WITHIN.replace("(within, across)])", "(across, within)])"),
        "cosine.rows swapped",
    ),
    (
        "within_across",
        WITHIN.replace("(within, across)])", "(within, across)]).T"),
        "cosine.axes flipped",
    ),
    ("within_across", WITHIN.replace("cs[r, c]", "cs.flatten()"), "cosine.diagonal"),
    ("within_across", WITHIN.replace("range(i, num", "range(0, num"), "cosine.across twice"),
    (
        "within_across",
        WITHIN.replace(
            "across.append(cs.flatten())", "across.append(cs[torch.ones_like(cs).triu(1).bool()])"
        ),
        "cosine.across only the upper half",
    ),
    ("all_columns", COLUMNS.replace("dim=0", "dim=1"), ""),
    ("all_columns", COLUMNS.replace("norm(dim=0,", "norm(dim=1,"), "cosine.norm axis"),
    ("all_columns", COLUMNS.replace("triu(1)", "triu(0)"), "cosine.diagonal"),
    ("all_columns", COLUMNS.replace("cs[mask]", "cs * mask"), "cosine.zeros kept"),
    ("all_columns", COLUMNS.replace("cs[mask]", "cs"), "cosine.diagonal"),
    ("all_columns", COLUMNS.replace("pairs.std()", "pairs.std(correction=0)"), "statistics.ddof"),
    (
        "all_columns",
        COLUMNS.replace("u = w / w.norm(dim=0, keepdim=True)", "u = w"),
        "cosine.not normalised",
    ),
    ("gauge", GAUGE.replace("torch.linalg.inv(r).T", "r"), "gauge.same for both"),
    ("gauge", GAUGE.replace(".T", ""), "gauge.inverse not transposed"),
    ("gauge", GAUGE.replace("torch.linalg.inv(r).T", "r.T"), "gauge.transposed for inverse"),
    ("gauge", GAUGE.replace("b_q @ r", "b_q").replace("b_k @ s", "b_k"), "gauge.biases forgotten"),
    ("gauge", GAUGE.replace("w_k @ s, b_k @ s", "w_k, b_k"), "gauge.keys unchanged"),
    (
        "gauge",
        GAUGE.replace("w_q @ r, b_q @ r, w_k @ s, b_k @ s", "w_q @ s, b_q @ s, w_k @ r, b_k @ r"),
        "gauge.roles swapped",
    ),
    ("identity", IDENTITY.replace("torch.trace(M) / d", "1.0"), "identity.itself"),
    (
        "identity",
        IDENTITY.replace("torch.trace(M) / d", "M.mean()"),
        "identity.mean of all entries",
    ),
    ("identity", IDENTITY.replace("torch.trace(M) / d", "torch.trace(M)"), "identity.trace"),
    (
        "identity",
        IDENTITY.replace("torch.trace(M) / d", "torch.trace(M) / w_q.shape[1]"),
        "identity.divided by the rank",
    ),
    ("identity", IDENTITY.replace(".norm() / M.norm()", ".norm()"), "identity.not relative"),
    (
        "identity",
        IDENTITY.replace("w_q @ w_k.T", "w_q.T @ w_k").replace(
            "math.sqrt(1 - w_q.shape[1] / d)", "math.sqrt(1 - w_q.shape[1] / len(w_q))"
        ),
        "identity.small matrix",
    ),
    (
        "identity",
        IDENTITY.replace("math.sqrt(1 - w_q.shape[1] / d)", "1 - w_q.shape[1] / d"),
        "identity.bound not a root",
    ),
    ("symmetric", SYMMETRIC.replace(" / 2)", ")"), "symmetric.not halved"),
    (
        "symmetric",
        "M = w_q @ w_k.T\nS = (M + M.T) / 2\nA = M - S\n"
        "return (S.norm() / M.norm()) ** 2, (A.norm() / M.norm()) ** 2",
        "symmetric.squared",
    ),
    ("symmetric", SYMMETRIC.replace(" / M.norm()", ""), "symmetric.not relative"),
    ("symmetric", SYMMETRIC.replace("w_q @ w_k.T", "w_q.T @ w_k"), "symmetric.small matrix"),
    (
        "symmetric",
        "M = w_q @ w_k.T\ns = (M + M.T).norm() / 2 / M.norm()\nreturn s, 1 - s",
        "symmetric.sum to one",
    ),
    (
        "symmetric",
        "M = w_q @ w_k.T\nreturn M.triu().norm() / M.norm(), M.tril(-1).norm() / M.norm()",
        "symmetric.triangles",
    ),
    (
        "definite",
        DEFINITE.replace("torch.linalg.eigvalsh((M + M.T) / 2)", "torch.linalg.svdvals(M)"),
        "definite.singular values",
    ),
    ("definite", DEFINITE.replace("(M + M.T) / 2", "M"), "definite.not symmetric"),
    (
        "definite",
        DEFINITE.replace("torch.linalg.eigvalsh((M + M.T) / 2)", "torch.linalg.eigvals(M).real"),
        "definite.not symmetric",
    ),
    ("definite", DEFINITE.replace("(M + M.T) / 2", "M + M.T"), "definite.not halved"),
    ("definite", DEFINITE.replace("e.min(), e.max()", "e.max(), e.min()"), "definite.order"),
    ("definite", DEFINITE.replace("e[e > 0].sum()", "-e[e < 0].sum()"), "definite.negative share"),
    ("biases", TERMS.replace("w_q.shape[-1] ** 0.5", "1"), "scale.missing"),
    ("biases", TERMS.replace("w_q.shape[-1] ** 0.5", "x.shape[-1] ** 0.5"), "scale.hidden"),
    (
        "biases",
        TERMS.replace("w_q @ b_k", "w_q @ b_q").replace("w_k @ b_q", "w_k @ b_k"),
        "terms.own bias",
    ),
    ("biases", TERMS.replace("[:, None]", "").replace("[None]", ""), "terms.no axis"),
    (
        "biases",
        TERMS.replace("[:, None]", "[None]", 1).replace("b_q)[None]", "b_q)[:, None]"),
        "terms.row and column",
    ),
    (
        "biases",
        TERMS.replace("x @ w_q @ w_k.T @ x.T", "(x @ w_q + b_q) @ (x @ w_k + b_k).T"),
        "terms.biases in the content",
    ),
    (
        "biases",
        TERMS.replace("x @ w_q @ w_k.T @ x.T", "x @ w_k @ w_q.T @ x.T"),
        "terms.content transposed",
    ),
    ("histogram", DENSITY.replace("share / widths", "counts / widths"), "histogram.not per value"),
    (
        "histogram",
        DENSITY.replace("1 - share.sum()", "1 - (share / widths).sum()"),
        "histogram.outside from heights",
    ),
    ("statistics", STATS.replace("p.mean()", "p.abs().mean()"), "statistics.absolute values"),
    ("heads", "return weight.T.reshape(num_heads, len(weight), -1)", "heads.reshaped"),
    (
        "cosines",
        "c = w.T @ w / w.norm(dim=0)\nreturn c, c[torch.ones_like(c).triu(1) == 1]",
        "cosine.one length",
    ),
    (
        "cosines",
        "u = w / w.norm(dim=0)\nc = (u.T @ u).abs()\nreturn c, c[torch.ones_like(c).triu(1) == 1]",
        "cosine.absolute values",
    ),
    (
        "gauge",
        "s = torch.linalg.inv(r).T\nreturn w_q @ r, b_q @ r, w_k @ s, b_k",
        "gauge.biases forgotten",
    ),
    (
        "gauge",
        "s = torch.linalg.inv(r)\nreturn w_q @ r, b_q @ r, w_k @ s.T, b_k @ s",
        "gauge.bias on the wrong side",
    ),
    (
        "symmetric",
        "m = w_q @ w_k.T\ns, a = (m + m.T).norm(), (m - m.T).norm()\nreturn s / a, a / s",
        "symmetric.ratio",
    ),
    (
        "identity",
        "m = w_q @ w_k.T\nc = m.diagonal().mean()\n"
        "return c, (m - c).norm() / m.norm(), (1 - w_q.shape[1] / len(m)) ** 0.5",
        "identity.c everywhere",
    ),
    (
        "definite",
        "m = w_q @ w_k.T\ne = torch.linalg.eigvalsh((m + m.T) / 2)\n"
        "return e[0], e[-1], (e > 1e-4).sum() / (e.abs() > 1e-4).sum()",
        "definite.counted",
    ),
    (
        "definite",
        "m = w_q.T @ w_k\ne = torch.linalg.eigvalsh((m + m.T) / 2)\n"
        "return e[0], e[-1], e.relu().sum() / e.abs().sum()",
        "definite.small matrix",
    ),
]


def found(task, body, seed):
    signature = SIGNATURES[task]
    source = f"def {signature}:\n    " + body.strip().replace("\n", "\n    ")
    return names(f"weights.{task}", source, seed, NEEDS)


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "body"), [(t, b) for t, bodies in RIGHT.items() for b in bodies])
def test_right_programs_pass_in_every_style(task, body, seed):
    assert found(task, body, seed) == []


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "body", "check"), WRONG)
def test_wrong_programs_are_told_what_is_wrong(task, body, check, seed):
    names_found = found(task, body, seed)
    assert names_found and names_found[0].startswith(check)


def test_one_tensor_may_hold_the_three_matrices():
    assert found("split", "return wide.view(len(wide), 3, -1).transpose(0, 1)", 3) == []


def test_pairs_may_be_plain_numbers_in_any_order():
    body = "u = w / w.norm(dim=0)\nc = u.T @ u\nn = range(len(c))\n"
    body += "return c, [c[i, j].item() for i in reversed(n) for j in range(i)]"
    assert found("cosines", body, 3) == []
    assert found("cosines", body.replace("range(i)", "range(i + 1)"), 3)
