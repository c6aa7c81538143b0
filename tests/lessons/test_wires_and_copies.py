"""Lesson 12, one wire cut and the score for copying; lesson 02, starting values and three lines."""

import pytest

from tests.lessons.helper import findings, names

EARLIER = """
from transformer_lm.activations import patch, record


def final_log_prob(model, input_ids):
    with torch.no_grad():
        log_probs = F.log_softmax(model(input_ids).logits[:, -2], dim=-1)
    return log_probs.gather(-1, input_ids[:, -1:])[:, 0]


def said_by(model, input_ids, layer, head):
    found = {}
    attn = model.transformer.h[layer].attn
    handle = attn.c_proj.register_forward_pre_hook(lambda m, i: found.update(z=i[0].detach()))
    with torch.no_grad():
        model(input_ids)
    handle.remove()
    size = model.config.n_embd // model.config.n_head
    own = slice(head * size, (head + 1) * size)
    return found["z"][..., own] @ attn.c_proj.weight[own].detach()
"""
SIGNATURE = "def without_path(model, input_ids, layer, head, reader):\n"


def wire(hook, place="model.transformer.get_submodule(reader)", register="forward_pre"):
    return SIGNATURE + (
        "    said = said_by(model, input_ids, layer, head)\n"
        f"    def hook(m, i, *o):\n        {hook}\n"
        f"    handle = {place}.register_{register}_hook(hook)\n"
        "    try:\n        return final_log_prob(model, input_ids)\n"
        "    finally:\n        handle.remove()\n"
    )


RIGHT_WIRES = {
    "a pre-hook": wire("return (i[0] - said,)"),
    "no tuple": wire("return i[0] - said"),
    "the library's patch": SIGNATURE
    + "    with torch.no_grad(), record(model, f'h.{layer}.head_out') as acts:\n"
    "        model(input_ids)\n"
    "    said = acts[f'h.{layer}.head_out'][:, head]\n"
    "    with patch(model, {reader + ':input': lambda x: x - said}):\n"
    "        return final_log_prob(model, input_ids)\n",
    "the norm computed again": wire(
        "return F.layer_norm(i[0] - said, said.shape[-1:], m.weight, m.bias, m.eps)",
        register="forward",
    ),
}


@pytest.mark.parametrize("style", RIGHT_WIRES)
def test_a_right_wire_passes_in_every_style(style):
    assert names("causal.path", RIGHT_WIRES[style], needs=EARLIER) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("path.in place", wire("i[0].sub_(said)")),
        ("path.in place", wire("x = i[0]\n        x -= said\n        return (x,)")),
        ("path.after the norm", wire("return o[0] - said", register="forward")),
        ("path.nothing changed", wire("i[0] - said")),
        ("path.added", wire("return (i[0] + said,)")),
        ("path.one position", wire("x = i[0].clone(); x[:, -2] -= said[:, -2]; return (x,)")),
        ("path.the head alone", wire("return (said,)")),
    ],
)
def test_a_wrong_wire_is_named(name, source):
    assert names("causal.path", source, needs=EARLIER) == [name]


def test_a_wire_that_leaves_its_hook_is_told():
    source = RIGHT_WIRES["no tuple"]
    kept = wire("return i[0] - said").replace("handle.remove()", "pass")
    assert kept != source
    assert names("causal.path", kept, needs=EARLIER) == ["causal.path.hook left in"]


COPYING = "def copying_scores(w_e, w_v, w_o, w_u):\n"


@pytest.mark.parametrize(
    "body",
    [
        "v = torch.linalg.eigvals(w_e @ w_v @ w_o @ w_u)\n"
        "    return v.sum(-1).real / v.abs().sum(-1)",
        "m = torch.einsum('nsh,hv,vi,nit->nst', w_o, w_u, w_e, w_v)\n"
        "    v = torch.linalg.eig(m).eigenvalues\n    return (v.sum(-1) / v.abs().sum(-1)).real",
        "out = []\n    for v, o in zip(w_v, w_o):\n"
        "        e = torch.linalg.eigvals(o @ w_u @ w_e @ v)\n"
        "        out.append(e.real.sum() / torch.sqrt(e.real**2 + e.imag**2).sum())\n"
        "    return torch.stack(out)",
        "m = w_o @ w_u @ w_e @ w_v\n"
        "    return m.diagonal(0, -2, -1).sum(-1) / torch.linalg.eigvals(m).abs().sum(-1)",
    ],
)
def test_right_scores_pass_in_every_style(body):
    assert names("causal.copying", f"{COPYING}    {body}\n") == []


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("copying.always 1", "s = torch.linalg.svdvals(w_e @ w_v @ w_o @ w_u)\n"
         "    return s.sum(-1) / s.abs().sum(-1)"),
        ("copying.imaginary parts dropped", "v = torch.linalg.eigvals(w_o @ w_u @ w_e @ w_v).real\n"
         "    return v.sum(-1) / v.abs().sum(-1)"),
        ("copying.no vocabulary", "v = torch.linalg.eigvals(w_v @ w_o)\n"
         "    return v.sum(-1).real / v.abs().sum(-1)"),
        ("copying.symmetric part", "v = torch.linalg.eigvalsh(w_o @ w_u @ w_e @ w_v)\n"
         "    return v.sum(-1) / v.abs().sum(-1)"),
        ("copying.heads as one", "v = torch.linalg.eigvals(w_o @ w_u @ w_e @ w_v)\n"
         "    return v.sum().real / v.abs().sum()"),
    ],
)  # fmt: skip
def test_a_wrong_score_is_named(name, body):
    assert names("causal.copying", f"{COPYING}    {body}\n") == [name]


# --- lesson 02 ------------------------------------------------------------------------------------
def matrices(draw: str) -> str:
    lines = "\n".join(
        f"        self.{name} = nn.Parameter({draw})" for name in ("w_query", "w_key", "w_value")
    )
    return f"""
class ParameterAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        one = torch.randn(input_size, hidden) / input_size**0.5
{lines}

    def forward(self, x):
        q, k, v = x @ self.w_query, x @ self.w_key, x @ self.w_value
        return torch.softmax(q @ k.T / k.shape[-1] ** 0.5, dim=-1) @ v
"""


@pytest.mark.parametrize(
    "draw",
    [
        "torch.randn(input_size, hidden) / input_size**0.5",
        "torch.empty(input_size, hidden).normal_(0, input_size**-0.5)",
        "torch.normal(0.0, input_size**-0.5, (input_size, hidden))",
        "nn.init.normal_(torch.empty(input_size, hidden), std=1 / math.sqrt(input_size))",
    ],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_fair_start_passes(draw, seed):
    assert names("one_head.parameters", matrices(draw), seed) == []


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("start.constant", "torch.zeros(input_size, hidden)"),
        ("start.all positive", "torch.rand(input_size, hidden)"),
        ("start.all positive", "torch.rand(input_size, hidden) / input_size**0.5"),
        ("start.not divided", "torch.randn(input_size, hidden)"),
        ("start.another spread", "torch.randn(input_size, hidden) / hidden**0.5"),
        ("start.another spread", "torch.randn(input_size, hidden) / input_size"),
        ("start.not normal",
         "(2 * torch.rand(input_size, hidden) - 1) * 3**0.5 / input_size**0.5"),
        ("start.all equal", "one.clone()"),
    ],
)  # fmt: skip
def test_an_unfair_start_is_named(name, draw):
    assert names("one_head.parameters", matrices(draw)) == [name]


LONG = """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        return torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, dim=-1) @ v
"""
SHORT = "class ShortAttention(Attention):\n"
FORWARD = SHORT + "    def forward(self, x):\n"


@pytest.mark.parametrize(
    "source",
    [
        FORWARD + "        q, k, v = self.q(x), self.k(x), self.v(x)\n"
        "        return torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1) @ v\n",
        FORWARD + '        """One."""\n        k = self.k(x)  # [b, s, h]\n'
        "        p = F.softmax(\n            self.q(x) @ k.mT / k.shape[-1] ** 0.5, -1\n        )\n"
        "        return p @ self.v(x)\n",
    ],
)
def test_three_lines_pass(source):
    assert findings("one_head.three_lines", source, needs=LONG) == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("lines.no forward", SHORT + "    pass\n"),
        ("lines.too many", FORWARD + "        q = self.q(x)\n        k = self.k(x)\n"
         "        v = self.v(x)\n"
         "        return torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1) @ v\n"),
        ("lines.semicolons", FORWARD + "        q = self.q(x); k = self.k(x)\n"
         "        return torch.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1) @ self.v(x)\n"),
        ("lines.ready-made", FORWARD
         + "        return F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x))\n"),
    ],
)  # fmt: skip
def test_what_is_not_three_lines_is_named(name, source):
    assert names("one_head.three_lines", source, needs=LONG) == [name]
