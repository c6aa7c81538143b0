"""Lesson 12 beyond lesions: right programs pass; wrong ones are told which mistake they made."""

import textwrap

import pytest

from tests.forms import first_of, share
from tests.lessons.helper import names

SIGNATURES = {
    "causal.direct": "logit_parts(model, input_ids)",
    "causal.induction": "prefix_matching(probs, input_ids)",
}
NEEDS = {
    "causal.own": "from transformer_lm.modeling_attention import MultiHeadSelfAttention\n",
}


def program(task: str, body: str) -> str:
    """The function of a task with this body; for the class, the body is the class."""
    body = textwrap.dedent(body).strip()
    if task not in SIGNATURES:
        return body
    return f"def {SIGNATURES[task]}:\n" + textwrap.indent(body, "    ")


DIRECT = """
from transformer_lm.activations import record
heads, ln = model.config.n_head, model.transformer.ln_f
with torch.no_grad(), record(model, ["h.*.attn.c_proj:input", "ln_f:input"]) as acts:
    logits = model(input_ids).logits
    b = len(input_ids)
    logit = logits[torch.arange(b), {position}, input_ids[:, -1]]
    x = acts["ln_f:input"][:, {position}]
    sd = {sd}
    u = model.transformer.wte.weight[input_ids[:, -1]]
    parts = []
    for i, block in enumerate(model.transformer.h):
        z = acts[f"h.{{i}}.attn.c_proj:input"][:, {position}].reshape(b, heads, -1)
        w = block.attn.c_proj.weight{weight}.reshape(heads, -1, x.shape[-1])
        c = torch.einsum("bhs,hsd->bhd", z, w){bias}
        parts.append(({share} * u[:, None]).sum(-1))
    parts = torch.stack(parts, 1)
return parts, {rest}
"""


def direct(**parts):
    usual = {
        "position": "-2",
        "sd": "(x.var(-1, correction=0) + ln.eps).sqrt()[:, None, None]",
        "weight": "",
        "bias": "",
        "share": "(c - c.mean(-1, keepdim=True)) * ln.weight / sd",
        "rest": "logit - parts.sum((1, 2))",
    }
    return DIRECT.format(**{**usual, **parts})


INDUCTION = """
b, h, s, _ = probs.shape
match = torch.zeros(b, s, s, dtype=torch.bool)
for n in range(b):
    for i in range(s):
        for k in range({keys}):
            match[n, i, k] = {matches}
weight = (probs * match[:, None]).sum(-1)
has = match.any(-1)
return {answer}
"""


def induction(
    keys="1, i + 1",
    matches="bool(input_ids[n, k - 1] == input_ids[n, i])",
    answer="(weight * has[:, None]).sum((0, 2)) / has.sum()",
):
    return INDUCTION.format(keys=keys, matches=matches, answer=answer)


TRANSPLANT = """
class OwnGPT2(nn.Module):
    def __init__(self, gpt2):
        super().__init__()
        c = gpt2.config
        self.gpt2 = gpt2
        self.blocks = nn.ModuleList()
        for block in gpt2.transformer.h:
            own = MultiHeadSelfAttention(c.n_embd, c.n_embd, {heads}, causal={causal})
            w, b = block.attn.c_attn.weight.data, block.attn.c_attn.bias.data
            for i, layer in enumerate(({order})):
                layer.weight.data = w[:, i * c.n_embd:(i + 1) * c.n_embd]{t}.clone()
                layer.bias.data = b[i * c.n_embd:(i + 1) * c.n_embd].clone(){bias}
            own.mix.weight.data = block.attn.c_proj.weight.data{mix}.clone()
            own.mix.bias.data = block.attn.c_proj.bias.data.clone(){bias}
            self.blocks.append(own)

    def forward(self, input_ids):
        t = self.gpt2.transformer
        x = t.wte(input_ids){positions}
        for block, own in zip(t.h, self.blocks):
            {attend}
            x = x + block.mlp(block.ln_2(x))
        return self.gpt2.lm_head({last})
"""


def transplant(**parts):
    usual = {
        "heads": "c.n_head",
        "causal": "True",
        "order": "own.q, own.k, own.v",
        "t": ".T",
        "mix": ".T",
        "bias": "",
        "positions": " + t.wpe(torch.arange(input_ids.shape[1]))",
        "attend": "x = x + own(block.ln_1(x))",
        "last": "t.ln_f(x)",
    }
    return TRANSPLANT.format(**{**usual, **parts})


SWAPPED = """
import copy

class Adapter(nn.Module):
    def __init__(self, attn, c):
        super().__init__()
        self.own = MultiHeadSelfAttention(c.n_embd, c.n_embd, c.n_head, causal=True)
        with torch.no_grad():
            parts = attn.c_attn.weight.split(c.n_embd, dim=1)
            biases = attn.c_attn.bias.split(c.n_embd)
            for layer, w, b in zip((self.own.q, self.own.k, self.own.v), parts, biases):
                layer.weight.copy_(w.T)
                layer.bias.copy_(b)
            self.own.mix.weight.copy_(attn.c_proj.weight.T)
            self.own.mix.bias.copy_(attn.c_proj.bias)

    def forward(self, hidden_states, *args, **kwargs):
        return self.own(hidden_states), None


class OwnGPT2(nn.Module):
    def __init__(self, gpt2):
        super().__init__()
        self.model = copy.deepcopy(gpt2)
        for block in self.model.transformer.h:
            block.attn = Adapter(block.attn, gpt2.config)

    def forward(self, input_ids):
        return self.model(input_ids).logits
"""
HAND_MADE = """
class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.q, self.k = nn.Linear(size, size), nn.Linear(size, size)
        self.v, self.mix = nn.Linear(size, size), nn.Linear(size, size)
        self.heads = heads

    def forward(self, x):
        def cut(t):
            return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        out = F.scaled_dot_product_attention(
            cut(self.q(x)), cut(self.k(x)), cut(self.v(x)), is_causal=True)
        return self.mix(out.transpose(1, 2).flatten(2))

def MultiHeadSelfAttention(size, hidden, heads, causal):
    return Attention(size, heads)
"""

RIGHT = {
    "causal.direct": {
        "einsum": direct(),
        "library": """
            from transformer_lm.ablation import direct_logit_attribution
            parts = direct_logit_attribution(model, input_ids, input_ids[:, -1], position=-2)
            with torch.no_grad():
                logits = model(input_ids).logits[:, -2]
            logit = logits.gather(1, input_ids[:, -1:])[:, 0]
            return parts.permute(2, 0, 1), logit - parts.sum((0, 1))
        """,
        "a layer norm without bias": direct(
            share="(c @ (torch.eye(c.shape[-1]) - 1 / c.shape[-1])) / sd * ln.weight"
        ),
        "numpy's deviation": direct(
            sd="(x.std(-1, unbiased=False) ** 2 + 1e-5).sqrt()[:, None, None]"
        ),
        "lm_head": direct().replace("model.transformer.wte", "model.lm_head"),
    },
    "causal.induction": {
        "loops": induction(),
        "vectorised": """
            match = torch.zeros_like(probs[:, 0], dtype=torch.bool)
            match[:, :, 1:] = input_ids[:, :, None] == input_ids[:, None, :-1]
            match = match & torch.ones_like(match).tril()
            some = match.any(-1)
            on = (probs * match[:, None]).sum(-1).transpose(1, 2)
            return on[some].mean(0)
        """,
        "lists": """
            scores = []
            for p, ids in zip(probs, input_ids.tolist()):
                for i, token in enumerate(ids):
                    keys = [j + 1 for j in range(i) if ids[j] == token]
                    if keys:
                        scores.append(p[:, i, keys].sum(-1))
            return torch.stack(scores).mean(0)
        """,
        "padded": """
            before = F.pad(input_ids[:, :-1], (1, 0), value=-1)
            match = (before[:, None] == input_ids[..., None]).tril()
            w = torch.einsum("bhqk,bqk->h", probs, match.float())
            return w / match.any(-1).sum()
        """,
        "each head": """
            b, h, s, _ = probs.shape
            out = torch.zeros(h)
            for head in range(h):
                total, count = 0.0, 0
                for n in range(b):
                    for i in range(1, s):
                        keys = (input_ids[n, :i] == input_ids[n, i]).nonzero()[:, 0] + 1
                        if len(keys):
                            total += probs[n, head, i, keys].sum()
                            count += 1
                out[head] = total / count
            return out
        """,
    },
    "causal.own": {
        "slices": transplant(),
        "an adapter in a copy": SWAPPED,
        "an attention of one's own": HAND_MADE + transplant(),
        "on the fly": transplant(last="F.layer_norm(x, x.shape[-1:], t.ln_f.weight, t.ln_f.bias)"),
        "positions as a slice": transplant(positions=" + t.wpe.weight[:input_ids.shape[1]]"),
    },
}

CHEAT = """
class OwnGPT2(nn.Module):
    def __init__(self, gpt2):
        super().__init__()
        self.gpt2 = gpt2

    def forward(self, input_ids):
        return self.gpt2(input_ids).logits
"""
OURS, THEIRS = "self.gpt2.lm_head(t.ln_f(x))", "self.gpt2(input_ids).logits"
WRONG = {
    "causal.direct": [
        ("direct.final norm missing", direct(share="c")),
        ("direct.not divided", direct(share="(c - c.mean(-1, keepdim=True)) * ln.weight")),
        ("direct.gain missing", direct(share="(c - c.mean(-1, keepdim=True)) / sd")),
        ("direct.not centred", direct(share="c * ln.weight / sd")),
        ("direct.norm for each head", direct(share="ln(c)")),
        ("direct.ddof", direct(sd="(x.var(-1) + ln.eps).sqrt()[:, None, None]")),
        ("direct.bias counted", direct(bias=" + block.attn.c_proj.bias")),
        ("direct.weight transposed", direct(weight=".T")),
        ("direct.position -1", direct(position="-1")),
        ("direct.rest", direct(rest="logit")),
        (
            "direct.log-probability",
            direct().replace(
                "logits = model(input_ids).logits",
                "logits = model(input_ids).logits.log_softmax(-1)",
            ),
        ),
        (
            "direct.shift counted",
            direct(share="((c - c.mean(-1, keepdim=True)) * ln.weight / sd + ln.bias)"),
        ),
    ],
    "causal.induction": [
        (
            "induction.same token",
            induction(keys="i", matches="bool(input_ids[n, k] == input_ids[n, i])"),
        ),
        (
            "induction.token before",
            induction(keys="i - 1", matches="bool(input_ids[n, k + 1] == input_ids[n, i])"),
        ),
        ("induction.previous token", "return probs.diagonal(-1, -2, -1).mean((0, 2))"),
        ("induction.all queries counted", induction(answer="weight.mean((0, 2))")),
        (
            "induction.own key left out",
            induction(
                answer="((probs * match[:, None]).tril(-1).sum(-1)"
                " * has[:, None]).sum((0, 2)) / has.sum()"
            ),
        ),
        ("induction.mean over keys", induction(answer="weight.sum((0, 2)) / match.sum()")),
        (
            "induction.mean of means",
            induction(answer="((weight * has[:, None]).sum(2) / has.sum(1)[:, None]).mean(0)"),
        ),
        ("induction.sum", induction(answer="weight.sum((0, 2))")),
        (
            "induction.heads averaged",
            induction(answer="((weight * has[:, None]).sum((0, 2)) / has.sum()).mean()"),
        ),
    ],
    "causal.own": [
        ("own.weights not transposed", transplant(t="", mix="")),
        ("own.weights not transposed", transplant(t="")),
        ("own.weights not transposed", transplant(mix="")),
        ("own.order", transplant(order="own.k, own.q, own.v")),
        ("own.order", transplant(order="own.q, own.v, own.k")),
        ("own.not causal", transplant(causal="False")),
        ("own.biases lost", transplant(bias=" * 0")),
        ("own.one head", transplant(heads="1")),
        ("own.no positions", transplant(positions="")),
        ("own.final norm missing", transplant(last="x")),
        ("own.final norm twice", transplant(last="t.ln_f(t.ln_f(x))")),
        ("own.residual missing", transplant(attend="x = own(block.ln_1(x))")),
        ("own.norm before attention missing", transplant(attend="x = x + own(x)")),
        ("own.not used", CHEAT),
        ("own.not used", transplant().replace(OURS, THEIRS)),
        ("own.not used", transplant().replace(OURS, f"{THEIRS} + 0 * {OURS}")),
        ("own.MLP missing", transplant().replace("block.mlp(block.ln_2(x))", "0")),
        ("own.norm before MLP missing", transplant().replace("block.ln_2(x)", "x")),
        ("own.log-softmax", transplant(last="t.ln_f(x)").replace(OURS, f"{OURS}.log_softmax(-1)")),
    ],
}


@pytest.mark.parametrize("seed", first_of(3, 4))
@pytest.mark.parametrize(
    ("task", "style"), share([(t, s) for t in RIGHT for s in RIGHT[t]], 3, touching=lambda r: r[0])
)
def test_a_right_program_passes_in_any_style(task, style, seed):
    source = program(task, RIGHT[task][style])
    assert names(task, source, seed, NEEDS.get(task, "")) == []


WRONG_ONES = [(t, i) for t in WRONG for i in range(len(WRONG[t]))]


@pytest.mark.parametrize(("task", "place"), share(WRONG_ONES, 4, touching=lambda w: w[0]))
def test_a_wrong_program_is_told_which_mistake_it_made(task, place):
    expected, body = WRONG[task][place]
    found = names(task, program(task, body), 5, NEEDS.get(task, ""))
    assert found == [expected]


BLOCKS_CHANGED = """
class Own(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, x, *rest, **more):
        return self.attention(x), None


class OwnGPT2(nn.Module):
    def __init__(self, gpt2):
        super().__init__()
        self.gpt2, self.mine, c = gpt2, nn.ModuleList(), gpt2.config
        for block in gpt2.transformer.h:
            own = MultiHeadSelfAttention(c.n_embd, c.n_embd, c.n_head, causal=True)
            attn = block.attn
            weights, biases = attn.c_attn.weight.chunk(3, 1), attn.c_attn.bias.chunk(3)
            with torch.no_grad():
                for linear, weight, bias in zip((own.q, own.k, own.v), weights, biases):
                    linear.weight.copy_(weight.T)
                    linear.bias.copy_(bias)
                own.mix.weight.copy_(attn.c_proj.weight.T)
                own.mix.bias.copy_(attn.c_proj.bias)
            self.mine.append(own)
            block.attn = Own(own)

    def forward(self, input_ids):
        return self.gpt2(input_ids).logits
"""


def test_own_attention_may_stand_in_gpt2s_blocks_and_have_two_names():
    assert names("causal.own", BLOCKS_CHANGED, 3, NEEDS["causal.own"]) == []
    kept = BLOCKS_CHANGED.replace("            block.attn = Own(own)\n", "")
    assert names("causal.own", kept, 3, NEEDS["causal.own"]) == ["own.not used"]
