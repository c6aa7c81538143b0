"""Lesson 02: right programs in many styles pass, wrong ones are told what is wrong."""

import pytest

from tests.forms import first_of
from tests.lessons.helper import names

HEAD = """
class {name}(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.hidden = hidden
    def forward(self, x):
        {body}
"""
PARAMETERS = """
class ParameterAttention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        {init}
    def forward(self, x):
        {body}
"""
INIT = """self.w_query = nn.Parameter(torch.randn(input_size, hidden) / input_size**0.5)
        self.w_key = nn.Parameter(input_size**-0.5 * torch.randn((input_size, hidden)))
        self.w_value = nn.Parameter(torch.empty(input_size, hidden))
        nn.init.normal_(self.w_value, std=1 / math.sqrt(input_size))"""
BODY = """q, k, v = x @ self.w_query, x @ self.w_key, x @ self.w_value
        return torch.softmax(q @ k.T / k.shape[-1] ** 0.5, dim=-1) @ v"""


def function(signature: str, body: str) -> str:
    return f"def {signature}:\n    " + body.replace("\n", "\n    ")


def project(body):
    return function("project(x, w_query, w_key, w_value)", body)


def variance(body):
    return function("score_variance(q, k, sigma_q, sigma_k)", body)


def jacobian(body):
    return function("softmax_jacobian(scores)", body)


def weights(body):
    return function("attention_weights(q, k)", body)


def transfer(body):
    return function("transfer(state)", body)


def batched(body):
    return function("batched_attention(q, k, v)", body)


def head(body, name="Attention"):
    return HEAD.format(name=name, body=body.replace("\n", "\n        "))


def short(body):
    return head(body, "ShortAttention")


def parameters(init=INIT, body=BODY):
    return PARAMETERS.format(init=init, body=body)


NO_BIAS = 'if "q.bias" in state:\n    raise ValueError("no place for a bias")\n'
RIGHT = {
    "one_head.project": [
        project("return x @ w_query, x @ w_key, x @ w_value"),
        project("return [torch.mm(x, w) for w in (w_query, w_key, w_value)]"),
        project("return tuple(torch.einsum('ti,ih->th', x, w) for w in (w_query, w_key, w_value))"),
        project(
            "both = x @ torch.cat([w_query, w_key, w_value], dim=1)\nreturn both.chunk(3, dim=-1)"
        ),
        project("return F.linear(x, w_query.T), F.linear(x, w_key.T), F.linear(x, w_value.T)"),
        project(
            "def rows(w):\n    return torch.stack([token @ w for token in x])\n"
            "return rows(w_query), rows(w_key), rows(w_value)"
        ),
    ],
    "one_head.variance": [
        variance("return (q * k).sum(-1).var(), q.shape[1] * sigma_q ** 2 * sigma_k ** 2"),
        variance(
            "return (q * k).sum(-1).var(correction=0).item(), "
            "q.shape[1] * sigma_q ** 2 * sigma_k ** 2"
        ),
        variance(
            "s = torch.einsum('ph,ph->p', q, k)\n"
            "return ((s - s.mean()) ** 2).mean(), k.size(-1) * (sigma_q * sigma_k) ** 2"
        ),
        variance(
            "s = torch.stack([a.dot(b) for a, b in zip(q, k)])\n"
            "return s.std() ** 2, len(q[0]) * math.pow(sigma_q, 2) * math.pow(sigma_k, 2)"
        ),
        variance(
            "s = torch.bmm(q[:, None], k[:, :, None]).flatten().double()\n"
            "return torch.var(s), torch.tensor(q.shape[1] * sigma_q**2 * sigma_k**2)"
        ),
        variance(
            "s = torch.linalg.vecdot(q, k)\n"
            "return s.var().item(), (q.shape[-1] ** 0.5 * sigma_q * sigma_k) ** 2"
        ),
    ],
    "one_head.jacobian": [
        jacobian("p = torch.softmax(scores, 0)\nreturn torch.diag(p) - torch.outer(p, p)"),
        jacobian("p = scores.softmax(-1)\nreturn p[:, None] * (torch.eye(len(p)) - p)"),
        jacobian("return torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores)"),
        jacobian(
            "e = (scores - scores.max()).exp()\np = e / e.sum()\n"
            "J = torch.zeros(len(p), len(p))\n"
            "for i in range(len(p)):\n    for j in range(len(p)):\n"
            "        J[i, j] = p[i] * (float(i == j) - p[j])\nreturn J"
        ),
        jacobian(
            "p = F.softmax(scores.double(), dim=0)\nreturn p.diag() - torch.einsum('i,j->ij', p, p)"
        ),
        jacobian(
            "p = scores.softmax(0)\nJ = -p[:, None] @ p[None]\nJ.diagonal().add_(p)\nreturn J"
        ),
    ],
    "one_head.scale": [
        weights("return torch.softmax(q @ k.T / k.shape[-1] ** 0.5, dim=-1)"),
        weights("return ((q / math.sqrt(q.shape[-1])) @ k.T).softmax(-1)"),
        weights("d = q.size(1)\nreturn F.softmax((q * d ** -0.25) @ (k * d ** -0.25).T, dim=1)"),
        weights(
            "s = torch.einsum('ih,jh->ij', q, k) * k.shape[1] ** -0.5\n"
            "e = (s - s.amax(-1, keepdim=True)).exp()\nreturn e / e.sum(-1, keepdim=True)"
        ),
        weights(
            "rows = []\nfor query in q:\n    s = torch.stack([query @ key for key in k])\n"
            "    rows.append(torch.softmax(s / math.sqrt(len(query)), 0))\n"
            "return torch.stack(rows)"
        ),
        weights("return torch.softmax(k @ q.T / q.shape[1] ** .5, dim=0).T"),
    ],
    "one_head.parameters": [
        parameters(),
        parameters(
            body="return F.scaled_dot_product_attention(x @ self.w_query, x @ self.w_key, "
            "x @ self.w_value)"
        ),
        parameters(
            init="""for name in ("w_query", "w_key", "w_value"):
            self.register_parameter(name, nn.Parameter(torch.empty(input_size, hidden)))
            nn.init.normal_(getattr(self, name), 0.0, input_size**-0.5)"""
        ),
        parameters(
            body="""q = torch.mm(x, self.w_query) / self.w_query.shape[1] ** 0.5
        weights = (q @ (x @ self.w_key).transpose(0, 1)).softmax(dim=1)
        return weights.matmul(x).matmul(self.w_value)"""
        ),
        parameters(
            init=INIT + "\n        self.scale = 1 / math.sqrt(hidden)",
            body="""k = x @ self.w_key
        scores = torch.einsum("ih,jh->ij", x @ self.w_query, k) * self.scale
        return F.softmax(scores, -1) @ (x @ self.w_value)""",
        ),
    ],
    "one_head.transfer": [
        transfer(
            NO_BIAS + 'return {"w_query": state["q.weight"].T, "w_key": '
            'state["k.weight"].T, "w_value": state["v.weight"].T}'
        ),
        transfer(
            NO_BIAS + 'return {n: state[f"{n[2]}.weight"].transpose(0, 1).contiguous() '
            'for n in ("w_query", "w_key", "w_value")}'
        ),
        transfer(
            'if any("bias" in name for name in state):\n    raise ValueError\nout = {}\n'
            'for new, old in zip(("w_query", "w_key", "w_value"), "qkv"):\n'
            '    out[new] = state[old + ".weight"].t().clone()\nreturn out'
        ),
        transfer(
            'assert_none = [n for n in state if n.endswith("bias")]\n'
            "if assert_none:\n    raise ValueError(str(assert_none))\n"
            'return dict(w_query=torch.einsum("hi->ih", state["q.weight"]), '
            'w_key=state["k.weight"].permute(1, 0), w_value=state["v.weight"].mT)'
        ),
        transfer(
            NO_BIAS + 'return {"w_query": nn.Parameter(state["q.weight"].T), "w_key": '
            'nn.Parameter(state["k.weight"].T), "w_value": '
            'nn.Parameter(state["v.weight"].T)}'
        ),
    ],
    "one_head.batched": [
        batched("return (q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5).softmax(-1) @ v"),
        batched(
            "s = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(2))\n"
            "return torch.bmm(F.softmax(s, dim=2), v)"
        ),
        batched("return F.scaled_dot_product_attention(q, k, v)"),
        batched(
            "s = torch.einsum('bih,bjh->bij', q, k) * q.shape[-1] ** -0.5\n"
            "return torch.einsum('bij,bjh->bih', s.softmax(-1), v)"
        ),
        batched(
            "out = []\nfor a, b, c in zip(q, k, v):\n"
            "    out.append(torch.softmax(a @ b.T / a.shape[1] ** 0.5, dim=1) @ c)\n"
            "return torch.stack(out)"
        ),
        batched(
            "s = (q[:, :, None] * k[:, None]).sum(-1) / k.shape[-1] ** 0.5\n"
            "return (s.softmax(2)[..., None] * v[:, None]).sum(2)"
        ),
        batched(
            "q, k, v = q.double(), k.double(), v.double()\n"
            "return ((q / q.shape[-1] ** 0.5) @ k.mT).softmax(dim=-1) @ v"
        ),
    ],
}
FORWARD = [
    "q, k, v = self.q(x), self.k(x), self.v(x)\n"
    "return (q @ k.transpose(1, 2) / self.hidden ** 0.5).softmax(-1) @ v",
    "s = torch.bmm(self.q(x), self.k(x).transpose(-2, -1)) / math.sqrt(self.hidden)\n"
    "return torch.bmm(F.softmax(s, dim=2), self.v(x))",
    "return F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x))",
    "q = self.q(x) / self.hidden ** 0.5\n"
    "p = torch.einsum('bih,bjh->bij', q, self.k(x)).softmax(-1)\n"
    "return torch.einsum('bij,bjh->bih', p, self.v(x))",
    "out = [torch.softmax(self.q(s) @ self.k(s).T / self.hidden ** .5, -1) @ self.v(s) "
    "for s in x]\nreturn torch.stack(out)",
]
RIGHT["one_head.forward"] = [head(body) for body in FORWARD]
# There the formula itself is asked for.
RIGHT["one_head.three_lines"] = [short(body) for body in FORWARD if "scaled_dot" not in body]

WRONG = [
    (
        "one_head.project",
        project("return x @ w_key, x @ w_query, x @ w_value"),
        "projections.order",
    ),
    (
        "one_head.project",
        project("k = x @ w_key\nreturn x @ w_query, k, k"),
        "projections.v from k",
    ),
    (
        "one_head.project",
        project("q = x @ w_query\nreturn q, q, x @ w_value"),
        "projections.k from q",
    ),
    (
        "one_head.project",
        project("return x @ w_query, x @ w_value, x @ w_key"),
        "projections.k and v swapped",
    ),
    (
        "one_head.project",
        project("return x @ w_query.T, x @ w_key.T, x @ w_value.T"),
        "projections.transposed",
    ),
    ("one_head.project", project("return x @ w_query"), "one_head.project.type"),
    ("one_head.project", project("raise NotImplementedError()"), "unanswered"),
    (
        "one_head.variance",
        variance("s = (q * k).sum(-1)\nreturn s.std(), q.shape[1] ** .5 * sigma_q * sigma_k"),
        "variance.standard deviation",
    ),
    (
        "one_head.variance",
        variance("return (q * k).sum(-1).var(), q.shape[1] ** .5 * sigma_q ** 2 * sigma_k ** 2"),
        "variance.root of hidden",
    ),
    (
        "one_head.variance",
        variance("return (q * k).sum(-1).var(), q.shape[1] * sigma_q * sigma_k"),
        "variance.sigma not squared",
    ),
    (
        "one_head.variance",
        variance("return (q * k).var(), q.shape[1] * sigma_q ** 2 * sigma_k ** 2"),
        "variance.no sum",
    ),
    (
        "one_head.variance",
        variance("return (q * k).sum(0).var(), q.shape[1] * sigma_q ** 2 * sigma_k ** 2"),
        "variance.over tokens",
    ),
    (
        "one_head.variance",
        variance("return q.shape[1] * sigma_q ** 2 * sigma_k ** 2, (q * k).sum(-1).var()"),
        "variance.order",
    ),
    (
        "one_head.jacobian",
        jacobian("p = scores.softmax(0)\nreturn torch.diag(p * (1 - p))"),
        "jacobian.diagonal only",
    ),
    (
        "one_head.jacobian",
        jacobian("p = scores.softmax(0)\nreturn p * (1 - p)"),
        "jacobian.diagonal only",
    ),
    (
        "one_head.jacobian",
        jacobian("p = scores.softmax(0)\nreturn -torch.outer(p, p)"),
        "jacobian.missing diagonal term",
    ),
    (
        "one_head.jacobian",
        jacobian("p = scores.softmax(0)\nreturn torch.diag(p) - p"),
        "jacobian.broadcast",
    ),
    (
        "one_head.jacobian",
        jacobian("p = scores.softmax(0)\nreturn torch.diag(p) + torch.outer(p, p)"),
        "jacobian.sign",
    ),
    (
        "one_head.jacobian",
        jacobian("p = scores.exp() / scores.exp().sum()\nreturn torch.diag(p) - torch.outer(p, p)"),
        "softmax.overflow",
    ),
    ("one_head.scale", weights("return torch.softmax(q @ k.T, dim=-1)"), "scale.missing"),
    (
        "one_head.scale",
        weights("return torch.softmax(q @ k.T / q.shape[1], dim=-1)"),
        "scale.not a root",
    ),
    (
        "one_head.scale",
        weights("return torch.softmax(q @ k.T, dim=-1) / q.shape[1] ** .5"),
        "scale.after softmax",
    ),
    (
        "one_head.scale",
        weights("return torch.softmax(q @ k.T / q.shape[0] ** .5, dim=-1)"),
        "scale.seq_len",
    ),
    (
        "one_head.scale",
        weights("return torch.softmax(q @ k.T / q.shape[1] ** .5, dim=0)"),
        "softmax.dim",
    ),
    (
        "one_head.scale",
        weights("return torch.softmax(q @ k.T * q.shape[1] ** .5, dim=-1)"),
        "scale.multiplied",
    ),
    (
        "one_head.scale",
        weights("return torch.softmax(k @ q.T / q.shape[1] ** .5, dim=-1)"),
        "projections.q and k swapped",
    ),
    (
        "one_head.parameters",
        parameters(INIT.replace("nn.Parameter(", "(")),
        "parameters.not registered",
    ),
    (
        "one_head.parameters",
        parameters(INIT.replace("input_size, hidden", "hidden, input_size")),
        "parameters.shape",
    ),
    (
        "one_head.parameters",
        parameters(INIT.replace("hidden))", "hidden), requires_grad=False)")),
        "no gradient",
    ),
    (
        "one_head.parameters",
        parameters(
            body=BODY.replace("x @ self.w_value", "k").replace(
                "q, k, v = ", "k = x @ self.w_key; q, k, v = "
            )
        ),
        "projections.v from k",
    ),
    (
        "one_head.parameters",
        parameters(body=BODY.replace("k.shape[-1] ** 0.5", "x.shape[1]**.5")),
        "scale.input_size",
    ),
    (
        "one_head.parameters",
        parameters(body=BODY.replace("x @ self.w_key", "x @ self.w_key.data")),
        "autograd.detached",
    ),
    (
        "one_head.parameters",
        parameters(body=BODY.replace(" / k.shape[-1] ** 0.5", "")),
        "scale.missing",
    ),
    (
        "one_head.transfer",
        transfer(
            NO_BIAS + 'return {"w_query": state["q.weight"], "w_key": '
            'state["k.weight"], "w_value": state["v.weight"]}'
        ),
        "transfer.not transposed",
    ),
    (
        "one_head.transfer",
        transfer(
            'return {"w_query": state["q.weight"].T, "w_key": '
            'state["k.weight"].T, "w_value": state["v.weight"].T}'
        ),
        "transfer.lost bias",
    ),
    (
        "one_head.transfer",
        transfer(
            NO_BIAS + 'return {"w_query": state["k.weight"].T, "w_key": '
            'state["q.weight"].T, "w_value": state["v.weight"].T}'
        ),
        "projections.q and k swapped",
    ),
    (
        "one_head.transfer",
        transfer(
            NO_BIAS + 'return {"w_query": state["q.weight"].T, "w_key": '
            'state["k.weight"].T, "w_value": state["k.weight"].T}'
        ),
        "projections.v from k",
    ),
    (
        "one_head.transfer",
        transfer(
            NO_BIAS + "def t(w):\n    return w.reshape(w.shape[1], -1)\n"
            'return {"w_query": t(state["q.weight"]), "w_key": '
            't(state["k.weight"]), "w_value": t(state["v.weight"])}'
        ),
        "transfer.reshaped",
    ),
    (
        "one_head.transfer",
        transfer(NO_BIAS + "return {n: w.T for n, w in state.items()}"),
        "transfer.old names",
    ),
    (
        "one_head.batched",
        batched("return (q @ k.mT / k.shape[-1] ** 0.5).softmax(1) @ v"),
        "softmax.dim",
    ),
    (
        "one_head.batched",
        batched("return (q @ k.mT / k.shape[1] ** 0.5).softmax(-1) @ v"),
        "scale.seq_len",
    ),
    ("one_head.batched", batched("return (q @ k.mT).softmax(-1) @ v"), "scale.missing"),
    (
        "one_head.batched",
        batched("b, t, h = k.shape\nreturn (q @ k.view(b, h, t) / h ** 0.5).softmax(-1) @ v"),
        "batch.reshaped",
    ),
    (
        "one_head.batched",
        batched("return (q @ k.mT / k.shape[-1] ** 0.5).softmax(0) @ v"),
        "softmax.dim",
    ),
    (
        "one_head.batched",
        batched("return (q @ k.mT / k.shape[-1]).softmax(-1) @ v"),
        "scale.not a root",
    ),
    (
        "one_head.batched",
        batched("return (q @ k.permute(2, 1, 0) / k.shape[-1] ** .5).softmax(-1) @ v"),
        "batch.counted from the left",
    ),
]
CLASS = [
    (FORWARD[0].replace(" / self.hidden ** 0.5", ""), "scale.missing"),
    (FORWARD[0].replace("self.hidden **", "x.shape[-1] **"), "scale.input_size"),
    (FORWARD[0].replace("self.v(x)", "self.k(x)"), "projections.v from k"),
    (
        FORWARD[0].replace("self.q(x), self.k(x)", "self.k(x), self.q(x)"),
        "projections.q and k swapped",
    ),
    (FORWARD[0].replace("softmax(-1)", "softmax(1)"), "softmax.dim"),
    (FORWARD[0].replace("self.k(x)", "self.k(x).detach()"), "autograd.detached"),
    (
        "q, k, v = (x @ m.weight.T for m in (self.q, self.k, self.v))\n"
        "return (q @ k.mT / self.hidden ** 0.5).softmax(-1) @ v",
        "projections.lost bias",
    ),
    (FORWARD[0].replace("softmax(-1)", "softmax(-1).softmax(-1)"), "softmax.twice"),
]
WRONG += [("one_head.forward", head(body), check) for body, check in CLASS]
WRONG += [("one_head.three_lines", short(body), check) for body, check in CLASS]
WRONG += [
    (
        "one_head.batched",
        "def batched_attention(q, k, v):\n"
        "    scores = q @ k.mT / k.shape[-1] ** 0.5\n"
        "    return (scores.softmax(-1) @ v).squeeze()",
        "one_head.batched.shape",
    ),
    (
        "one_head.forward",
        head(FORWARD[0] + ".squeeze()").replace("return (q", "return ((q").replace("@ v", "@ v)"),
        "one_head.forward.shape",
    ),
    (
        "one_head.forward",
        head(FORWARD[0]).replace(
            "self.v = nn.Linear(input_size, hidden)", "self.v = nn.Linear(input_size, 2 * hidden)"
        ),
        "projections.wrong width",
    ),
    (
        "one_head.forward",
        head(FORWARD[0]).replace(
            "self.v = nn.Linear(input_size, hidden)",
            "self.v = nn.Linear(input_size, hidden, bias=False)",
        ),
        "projections.lost bias",
    ),
    (
        "one_head.forward",
        head(FORWARD[0]).replace("self.v", "self.value"),
        "projections.missing layer",
    ),
]


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "source"), [(t, s) for t in RIGHT for s in RIGHT[t]])
def test_right_programs_pass_in_every_style(task, source, seed):
    assert names(task, source, seed) == []


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "source", "check"), WRONG)
def test_wrong_programs_are_told_what_is_wrong(task, source, check, seed):
    assert names(task, source, seed)[:1] == [check]
