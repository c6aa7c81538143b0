"""Lesson 05: right programs in many styles pass; wrong ones lose the right points, by name."""

import textwrap

import pytest

from tests.forms import first_of, share
from tests.lessons.helper import findings, names

LAYERS = """
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.scale = hidden ** 0.5
"""


def single(body: str, init: str = LAYERS) -> str:
    """SelfAttention with this body of `forward`."""
    forward = "    def forward(self, x):\n" + textwrap.indent(
        textwrap.dedent(body).strip(), " " * 8
    )
    return init + "\n" + forward + "\n"


QKV = "q, k, v = self.q(x), self.k(x), self.v(x)\n"

SINGLE_RIGHT = {
    "bmm": """
        scores = torch.bmm(self.q(x), self.k(x).transpose(1, 2)) / self.scale
        return torch.bmm(F.softmax(scores, dim=-1), self.v(x))""",
    "matmul": """
        scores = torch.matmul(self.q(x), self.k(x).transpose(-2, -1)) / self.scale
        return torch.matmul(torch.softmax(scores, -1), self.v(x))""",
    "einsum": QKV
    + """
scores = torch.einsum("bqh,bkh->bqk", q, k) / self.scale
return torch.einsum("bqk,bkh->bqh", scores.softmax(2), v)""",
    "loop over the batch": """
        out = []
        for item in x:
            q, k, v = self.q(item), self.k(item), self.v(item)
            out.append(torch.softmax(q @ k.T / self.scale, dim=1) @ v)
        return torch.stack(out)""",
    "loop over queries": QKV
    + """
rows = []
for i in range(x.shape[1]):
    weights = F.softmax((q[:, i:i + 1] * k).sum(-1) / self.scale, dim=-1)
    rows.append((weights[..., None] * v).sum(1))
return torch.stack(rows, dim=1)""",
    "scaled queries": """
        q = self.q(x) * x.new_tensor(self.scale) ** -1
        return (q @ self.k(x).mT).softmax(-1) @ self.v(x)""",
    "scale shared by queries and keys": """
        q, k = self.q(x) / self.scale ** 0.5, self.k(x) / self.scale ** 0.5
        return (q @ k.transpose(1, 2)).softmax(-1) @ self.v(x)""",
    "softmax by hand": QKV
    + """
scores = q @ k.permute(0, 2, 1) / math.sqrt(k.size(-1))
weights = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
return weights / weights.sum(dim=-1, keepdim=True) @ v""",
    "softmax over the middle of a transposed table": QKV
    + """
scores = k @ q.transpose(1, 2) / self.scale
return F.softmax(scores, dim=1).transpose(1, 2) @ v""",
    "in steps": """
        keys = self.k(x)
        queries = self.q(x)
        scores = queries.matmul(keys.transpose(2, 1))
        scores /= self.scale
        probs = nn.Softmax(dim=-1)(scores)
        values = self.v(x)
        return probs.bmm(values)""",
    "functional layers": """
        q = F.linear(x, self.q.weight, self.q.bias)
        k = x @ self.k.weight.T + self.k.bias
        return torch.softmax(q @ k.transpose(1, 2) / self.scale, -1) @ self.v(x)""",
    "in float64": """
        q, k, v = (layer(x).double() for layer in (self.q, self.k, self.v))
        return ((q @ k.transpose(1, 2) / self.scale).softmax(-1) @ v).to(x.dtype)""",
}
SINGLE_STYLES = {name: single(body) for name, body in SINGLE_RIGHT.items()} | {
    "layers kept in a ModuleDict too": """
class SelfAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.layers = nn.ModuleDict({name: nn.Linear(input_size, hidden) for name in "qkv"})
        self.q, self.k, self.v = self.layers.values()

    def forward(self, x):
        q, k, v = (layer(x) for layer in self.layers.values())
        return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1) @ v
""",
    "helper method": LAYERS
    + """
    def weights(self, x):
        return F.softmax(self.q(x) @ self.k(x).transpose(1, 2) / self.scale, dim=-1)

    def forward(self, x):
        return self.weights(x) @ self.v(x)
""",
    "scale as a buffer": single(
        "return (self.q(x) @ self.k(x).mT / self.d.sqrt()).softmax(-1) @ self.v(x)",
        LAYERS + '        self.register_buffer("d", torch.tensor(float(hidden)))\n',
    ),
    "another module beside": """
class Scores(nn.Module):
    def forward(self, q, k):
        return q @ k.transpose(1, 2) / q.shape[-1] ** 0.5

"""
    + single(
        "return self.scores(self.q(x), self.k(x)).softmax(-1) @ self.v(x)",
        LAYERS + "        self.scores = Scores()\n",
    ),
}


@pytest.mark.parametrize("style", SINGLE_STYLES)
def test_self_attention_in_any_right_style_passes(style):
    assert findings("self_attention.init", SINGLE_STYLES[style]) == []
    assert findings("self_attention.forward", SINGLE_STYLES[style]) == []


SCORES = QKV + "scores = q @ k.transpose(1, 2) / self.scale\n"
SINGLE_WRONG = {
    "scale.missing": "return (self.q(x) @ self.k(x).mT).softmax(-1) @ self.v(x)",
    "scale.not a root": QKV + "return (q @ k.mT / q.shape[-1]).softmax(-1) @ v",
    "scale.multiplied": QKV + "return (q @ k.mT * self.scale).softmax(-1) @ v",
    "scale.after softmax": QKV + "return (q @ k.mT).softmax(-1) / self.scale @ v",
    "scale.fourth root": QKV + "return (q @ k.mT / self.scale ** 0.5).softmax(-1) @ v",
    "scale.input_size": QKV + "return (q @ k.mT / x.shape[-1] ** 0.5).softmax(-1) @ v",
    "scale.seq_len": QKV + "return (q @ k.mT / x.shape[1] ** 0.5).softmax(-1) @ v",
    "softmax.dim": SCORES + "return F.softmax(scores, dim=1) @ v",
    "softmax.twice": SCORES + "return F.softmax(F.softmax(scores, dim=-1), dim=-1) @ v",
    "softmax.missing": SCORES + "return scores @ v",
    "softmax.sigmoid": SCORES + "return torch.sigmoid(scores) @ v",
    "softmax.divided by the sum": SCORES + "return scores / scores.sum(-1, keepdim=True) @ v",
    "softmax.log": SCORES + "return F.log_softmax(scores, dim=-1) @ v",
    "projections.q and k swapped": QKV + "return (k @ q.mT / self.scale).softmax(-1) @ v",
    "projections.v from k": SCORES + "return scores.softmax(-1) @ self.k(x)",
    "projections.v from q": SCORES + "return scores.softmax(-1) @ self.q(x)",
    "projections.k from q": QKV + "return (q @ q.mT / self.scale).softmax(-1) @ v",
    "projections.q from k": QKV + "return (k @ k.mT / self.scale).softmax(-1) @ v",
    "projections.lost bias": """
        q, k, v = (x @ layer.weight.T for layer in (self.q, self.k, self.v))
        return (q @ k.mT / self.scale).softmax(-1) @ v""",
    "self_attention.forward.gradient": SCORES + "return scores.softmax(-1).detach() @ v",
    "self_attention.forward.shape": SCORES + "return (scores.softmax(-1) @ v).mean(1)",
    "self_attention.forward.type": SCORES + "return scores.softmax(-1) @ v, scores",
    "self_attention.forward.input changed": "x.mul_(2)\nx.div_(2)\nx.add_(1e-6)\n"
    + SCORES
    + "return scores.softmax(-1) @ v",
    "shapes do not fit": "return (self.q(x) @ self.k(x)).softmax(-1) @ self.v(x)",
    "wrong number of dimensions": "return (self.q(x) @ self.k(x).t()).softmax(-1) @ self.v(x)",
    "unanswered": "raise NotImplementedError()",
    "mask.not asked for": SCORES
    + "scores = scores.masked_fill(torch.ones_like(scores).triu(1) == 1, -torch.inf)\n"
    + "return scores.softmax(-1) @ v",
}


@pytest.mark.parametrize("mistake", SINGLE_WRONG)
def test_a_wrong_self_attention_is_told_which_mistake_it_made(mistake):
    assert names("self_attention.forward", single(SINGLE_WRONG[mistake])) == [mistake]


def test_a_squeeze_shows_with_a_single_sequence():
    found = names(
        "self_attention.forward", single(SCORES + "return (scores.softmax(-1) @ v).squeeze()")
    )
    assert found == ["self_attention.forward.shape"]


SHORT = "    def forward(self, x):\n        return x\n"


@pytest.mark.parametrize(
    ("mistake", "init"),
    [
        ("missing layer", LAYERS.replace("self.v ", "self.value ")),
        ("missing layer", LAYERS.replace("self.q = ", "q = ")),
        ("lost bias", LAYERS.replace("hidden)\n        self.scale", "hidden, bias=False)\n#")),
        (
            "wrong width",
            LAYERS.replace(
                "self.k = nn.Linear(input_size, hidden)",
                "self.k = nn.Linear(input_size, 2 * hidden)",
            ),
        ),
        (
            "wrong width",
            LAYERS.replace(
                "self.k = nn.Linear(input_size, hidden)", "self.k = nn.Linear(hidden, input_size)"
            ),
        ),
        ("wrong width", LAYERS.replace("nn.Linear(input_size, hidden)", "nn.Linear(7, 11)")),
        (
            "wrong layer",
            LAYERS.replace("self.v = nn.Linear(input_size, hidden)", "self.v = self.k"),
        ),
        ("raised", LAYERS.replace("super().__init__()", "pass")),
        ("unanswered", LAYERS.replace("self.scale = hidden ** 0.5", "raise NotImplementedError")),
        ("signature", LAYERS.replace("input_size, hidden):", "input_size):\n        hidden = 3")),
    ],
)
def test_a_wrong_init_is_told_which_mistake_it_made(mistake, init):
    assert names("self_attention.init", init + SHORT) == [mistake]


def test_the_layers_earn_their_point_without_forward():
    assert findings("self_attention.init", LAYERS) == []


# --- MultiHeadSelfAttention ----------------------------------------------------------------------
GIVEN = """
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        if hidden % num_heads:
            raise ValueError("hidden must be divisible by num_heads")
        super().__init__()
        self.k = nn.Linear(input_size, hidden)
        self.q = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.num_heads = num_heads
        self.head_size = hidden // num_heads
        self.scale = self.head_size ** 0.5
        self.causal = causal

"""
PARTS = {
    "start": "bs, seq, _ = x.shape\nh, d = self.num_heads, self.head_size",
    "split": "q, k, v = (f(x).view(bs, seq, h, d).transpose(1, 2) "
    "for f in (self.q, self.k, self.v))",
    "scores": "scores = q @ k.transpose(-2, -1) / self.scale",
    "mask": 'scores = scores.masked_fill(torch.ones(seq, seq).triu(1).bool(), float("-inf"))',
    "probs": "probs = self.dropout(F.softmax(scores, dim=-1))",
    "att": "att = probs @ v",
    "merge": "att = att.transpose(1, 2).reshape(bs, seq, h * d)",
    "mix": "att = self.mix(att)",
    "shape": "probs = probs.reshape(bs * h, seq, seq)",
    "return": "return (att, probs) if return_attention else att",
}


def multi(more: str = "", **parts: str) -> str:
    """MultiHeadSelfAttention with some of its parts written in another way."""
    body = ""
    for name, part in (PARTS | parts).items():
        text = textwrap.dedent(part).strip()
        body += "if self.causal:\n" + textwrap.indent(text, "    ") if name == "mask" else text
        body += "\n"
    forward = "    def forward(self, x, return_attention=False):\n" + textwrap.indent(body, " " * 8)
    return GIVEN + textwrap.indent(textwrap.dedent(more).strip(), "    ") + "\n\n" + forward


THREE_D = {  # heads in the batch dimension
    "split": """
        def split(t):
            return t.view(bs, seq, h, d).transpose(1, 2).reshape(bs * h, seq, d)
        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))""",
    "merge": "att = att.view(bs, h, seq, d).transpose(1, 2).contiguous().view(bs, seq, -1)",
    "shape": "",
}
CHUNKS = {  # one head after the other
    "split": """
        qs = self.q(x).chunk(h, dim=-1)
        ks = self.k(x).split(d, dim=-1)
        vs = torch.tensor_split(self.v(x), h, dim=-1)""",
    "scores": "scores = torch.stack([a @ b.mT for a, b in zip(qs, ks)], dim=1) / self.scale",
    "att": "att = [probs[:, i] @ vs[i] for i in range(h)]",
    "merge": "att = torch.cat(att, dim=-1)",
}
LOOP = {
    "split": "q, k, v = self.q(x), self.k(x), self.v(x)",
    "scores": "outs, tables = [], []",
    "mask": "hide = torch.triu(torch.ones(seq, seq), diagonal=1) == 1",
    "probs": """
        for i in range(h):
            part = slice(i * d, (i + 1) * d)
            table = torch.bmm(q[..., part], k[..., part].transpose(1, 2)) / self.scale
            if self.causal:
                table = table.masked_fill(hide, -torch.inf)
            tables.append(self.dropout(table.softmax(-1)))
            outs.append(tables[-1] @ v[..., part])""",
    "att": "probs = torch.stack(tables, 1)",
    "merge": "att = torch.cat(outs, -1)",
}
MULTI_RIGHT = {
    "as in the solution": multi(),
    "3-D heads and bmm": multi(
        **THREE_D,
        scores="scores = q.bmm(k.transpose(1, 2)) / self.scale",
        att="att = torch.bmm(probs, v)",
    ),
    "chunk and cat": multi(**CHUNKS),
    "loop over heads": multi(**LOOP),
    "einsum throughout": multi(
        split="q, k, v = (f(x).reshape(bs, seq, h, d) for f in (self.q, self.k, self.v))",
        scores='scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.scale',
        att='att = torch.einsum("bhqk,bkhd->bqhd", probs, v)',
        merge="att = att.flatten(2)",
    ),
    "unflatten and movedim": multi(
        split="q, k, v = (f(x).unflatten(-1, (h, d)).movedim(2, 1) for f in "
        "(self.q, self.k, self.v))",
        merge="att = att.movedim(1, 2).flatten(-2)",
        shape="probs = probs.flatten(0, 1)",
    ),
    "permute, fused with view": multi(
        merge="att = att.permute(0, 2, 1, 3).contiguous().view(bs, seq, -1)"
    ),
    "keys transposed at once": multi(
        split="q = self.q(x).view(bs, seq, h, d).permute(0, 2, 1, 3)\n"
        "k = self.k(x).view(bs, seq, h, d).permute(0, 2, 3, 1)\n"
        "v = self.v(x).view(bs, seq, h, d).permute(0, 2, 1, 3)",
        scores="scores = q @ k / self.scale",
    ),
    "scaled queries": multi(scores="q = q / self.scale\nscores = q @ k.mT"),
    "helper methods": multi(
        """
        def heads(self, t):
            return t.view(*t.shape[:2], self.num_heads, -1).transpose(1, 2)

        def future(self, seq):
            return torch.ones(seq, seq).triu(1).bool()
        """,
        split="q, k, v = map(self.heads, (self.q(x), self.k(x), self.v(x)))",
        mask='scores = scores.masked_fill(self.future(seq), float("-inf"))',
    ),
    "tril == 0": multi(
        mask="""
        past = torch.tril(torch.ones(seq, seq, device=scores.device))
        scores = scores.masked_fill(past == 0, float("-inf"))"""
    ),
    "in-place masked_fill_": multi(
        mask="""
        mask = torch.triu(torch.ones(seq, seq), 1).bool()
        scores.masked_fill_(mask[None, None], float("-inf"))"""
    ),
    "an additive mask": multi(
        mask='scores = scores + torch.full((seq, seq), float("-inf")).triu(1)'
    ),
    "a finite mask of -1e9": multi(
        mask="scores = scores.masked_fill(torch.ones(seq, seq).triu(1) == 1, -1e9)"
    ),
    "a finite mask, added": multi(mask="scores = scores + torch.ones(seq, seq).triu(1) * -1e9"),
    "a mask of finfo.min": multi(
        mask="low = torch.finfo(scores.dtype).min\n"
        "scores = scores.masked_fill(torch.ones(seq, seq).triu(1).bool(), low)"
    ),
    "torch.where and positions": multi(
        mask="""
        place = torch.arange(seq)
        scores = torch.where(place[None, :] > place[:, None], -torch.inf, scores)"""
    ),
    "a mask after the softmax, renormalised": multi(
        mask="pass",
        probs="""
            probs = scores.softmax(-1)
            if self.causal:
                probs = probs.tril()
                probs = probs / probs.sum(-1, keepdim=True)
            probs = self.dropout(probs)""",
    ),
    "F.dropout that knows the mode": multi(
        probs="probs = F.dropout(F.softmax(scores, -1), self.dropout.p, self.training)"
    ),
    "dropout left out of the returned probabilities": multi(
        probs="probs = F.softmax(scores, -1)", att="att = self.dropout(probs) @ v"
    ),
    "PyTorch's own attention, on its own eye": multi(
        scores="eye = torch.eye(seq).expand(bs, h, seq, seq)\nkeep = None",
        mask="keep = torch.ones(seq, seq).tril().bool()",
        probs="probs = F.scaled_dot_product_attention(q, k, eye, attn_mask=keep)\n"
        "probs = self.dropout(probs)",
    ),
    "the mask's logarithm, added": multi(
        mask="scores = scores + torch.ones(seq, seq).tril().log()"
    ),
    "mixed head by head": multi(
        merge="blocks = self.mix.weight.chunk(h, dim=1)",
        mix="att = sum(att[:, i] @ blocks[i].T for i in range(h)) + self.mix.bias",
    ),
    "a list returned": multi(**{"return": "return [att, probs] if return_attention else att"}),
}


@pytest.mark.parametrize("style", MULTI_RIGHT)
@pytest.mark.parametrize("task", ["scores", "mask", "output"])
def test_multi_head_attention_in_any_right_style_passes(style, task):
    assert findings(f"multi_head.{task}", MULTI_RIGHT[style]) == []


def reshaped(how: str) -> str:
    return f"q, k, v = ({how} for f in (self.q, self.k, self.v))"


ONES = "torch.ones(seq, seq)"
# name: (program, tasks that are lost)
ALL, FIRST, MASK, LAST = "scores mask output", "scores", "mask", "output"
MULTI_WRONG = {
    "scale.missing": (multi(scores="scores = q @ k.mT"), FIRST),
    "scale.hidden": (multi(scores="scores = q @ k.mT / (h * d) ** 0.5"), FIRST),
    "scale.num_heads": (multi(scores="scores = q @ k.mT / h ** 0.5"), FIRST),
    "scale.not a root": (multi(scores="scores = q @ k.mT / d"), FIRST),
    "split.scrambled": (multi(split=reshaped("f(x).reshape(bs, h, seq, d)")), FIRST),
    "split.interleaved": (
        multi(split=reshaped("f(x).view(bs, seq, d, h).permute(0, 3, 1, 2)")),
        FIRST,
    ),
    "split and merge.scrambled": (
        multi(
            split=reshaped("f(x).reshape(bs, h, seq, d)"), merge="att = att.reshape(bs, seq, h * d)"
        ),
        "scores output",
    ),
    "merge.scrambled": (multi(merge="att = att.reshape(bs, seq, h * d)"), LAST),
    "merge.mean": (multi(merge="att = att.mean(1).repeat(1, 1, h)"), LAST),
    "merge.sum": (multi(merge="att = att.sum(1).repeat(1, 1, h)"), LAST),
    "mix.missing": (multi(mix=""), LAST),
    "mix.twice": (multi(mix="att = self.mix(self.mix(att))"), LAST),
    "mask.none": (multi(mask="pass"), MASK),
    "mask.diagonal hidden": (
        multi(mask=f"scores = scores.masked_fill({ONES}.triu(0).bool(), -torch.inf)"),
        MASK,
    ),
    "mask.one step late": (
        multi(mask=f"scores = scores.masked_fill({ONES}.triu(2).bool(), -torch.inf)"),
        MASK,
    ),
    "mask.inverted": (
        multi(mask=f"scores = scores.masked_fill({ONES}.tril() == 1, -torch.inf)"),
        MASK,
    ),
    "mask.after softmax": (
        multi(
            mask="pass",
            probs="probs = self.dropout(scores.softmax(-1))\n"
            "probs = probs.tril() if self.causal else probs",
        ),
        MASK,
    ),
    "mask.filled with 0": (
        multi(mask=f"scores = scores.masked_fill({ONES}.triu(1).bool(), 0)"),
        MASK,
    ),
    "mask.NaN": (multi(mask=f"scores = scores + {ONES}.triu(1) * -torch.inf"), MASK),
    "mask.always": (multi(scores=PARTS["scores"] + "\n" + PARTS["mask"], mask="pass"), MASK),
    "softmax.twice": (multi(probs="probs = self.dropout(scores.softmax(-1).softmax(-1))"), LAST),
    "probabilities.head-major": (
        multi(shape="probs = probs.transpose(0, 1).reshape(h * bs, seq, seq)"),
        LAST,
    ),
    "probabilities.4-D": (multi(shape=""), LAST),
    "probabilities.missing": (multi(**{"return": "return att"}), LAST),
    "probabilities.are scores": (multi(shape="probs = scores.reshape(bs * h, seq, seq)"), LAST),
    "output.order": (multi(**{"return": "return (probs, att) if return_attention else att"}), LAST),
    "projections.v from k": (multi(split=PARTS["split"] + "\nv = k"), "output"),
    "projections.lost bias": (
        multi(split=reshaped("(x @ f.weight.T).view(bs, seq, h, d).transpose(1, 2)")),
        FIRST,
    ),
    "dropout.missing": (multi(probs="probs = scores.softmax(-1)"), LAST),
    "dropout.on scores": (multi(probs="probs = self.dropout(scores).softmax(-1)"), LAST),
    "dropout.on the output": (
        multi(probs="probs = scores.softmax(-1)", mix="att = self.dropout(self.mix(att))"),
        LAST,
    ),
    "dropout.in evaluation": (
        multi(probs="probs = F.dropout(F.softmax(scores, -1), self.dropout.p)"),
        LAST,
    ),
    "dropout.on features": (
        multi(probs="probs = scores.softmax(-1)", att="att = probs @ self.dropout(v)"),
        LAST,
    ),
    "dropout.not rescaled": (
        multi(
            probs="""
            probs = scores.softmax(-1)
            if self.training:
                probs = probs * (torch.rand_like(probs) >= self.dropout.p)"""
        ),
        LAST,
    ),
    "mask.by default": (multi().replace("causal=False", "causal=True"), MASK),
    "mask.from the scores": (
        multi(mask="scores = scores.masked_fill(scores.tril() == 0, -torch.inf)"),
        MASK,
    ),
    "mix.transposed": (multi(mix="att = att @ self.mix.weight + self.mix.bias"), LAST),
    "mix.lost bias": (multi(mix="att = att @ self.mix.weight.T"), LAST),
    "probabilities.transposed": (multi(shape="probs = probs.mT.reshape(bs * h, seq, seq)"), LAST),
    "probabilities.averaged": (multi(shape="probs = probs.mean(1)"), LAST),
    "heads.all equal": (
        multi(split=reshaped("f(x)[:, None, :, :d].expand(bs, h, seq, d)")),
        FIRST,
    ),
    "multi_head.output.gradient": (multi(att="att = probs.detach() @ v"), LAST),
    "unanswered": (multi(scores="raise NotImplementedError()"), ALL),
    "shapes do not fit": (multi(scores="scores = q @ k / self.scale"), ALL),
}


@pytest.mark.parametrize("mistake", share(MULTI_WRONG, 2))
def test_a_wrong_multi_head_attention_is_told_which_mistake_it_made(mistake):
    program, lost = MULTI_WRONG[mistake]
    found = {t: names(f"multi_head.{t}", program) for t in ("scores", "mask", "output")}
    assert found == {t: [mistake] if t in lost.split() else [] for t in found}


@pytest.mark.parametrize(
    "program",
    [
        multi(split=PARTS["split"] + "\nq, k, v = q.squeeze(), k.squeeze(), v.squeeze()"),
        multi(
            probs="probs = self.dropout(scores.softmax(-1))", att="att = self.dropout(probs @ v)"
        ),
        multi(att="att = self.dropout(probs) @ v"),
    ],
    ids=["a squeeze", "dropout twice", "dropout of what is dropped"],
)
def test_what_shows_in_few_cases_only_costs_the_last_task(program):
    lost = [t for t in ("scores", "mask", "output") if findings(f"multi_head.{t}", program)]
    assert lost == ["output"]


@pytest.mark.parametrize("seed", first_of(*range(4)))
def test_a_mask_of_one_size_is_never_right_by_luck(seed):
    program = multi(mask="scores = scores.masked_fill(torch.ones(7, 7).triu(1).bool(), -torch.inf)")
    assert names("multi_head.mask", program, seed)
