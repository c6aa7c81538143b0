"""The homework in the styles of many people: what is right in any of them keeps all its points, and
a slip costs its own step whatever the style is."""

import textwrap
from dataclasses import replace
from functools import partial

import pytest

from autograder.course.asking import Lazy
from autograder.course.calls import Draw, run_here
from autograder.course.course import Course
from autograder.judging.verdict import findings, right
from tests.asked import known
from tests.conftest import ROOT
from tests.forms import first_of, share
from tests.here import grade
from tests.lessons import test_homework
from tests.tracing.helper import SETUP

SINGLE, MULTI = "self_attention", "multi_head"


def cell(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


# --- SelfAttention -------------------------------------------------------------------------------
BMM = cell("""
    class SelfAttention(nn.Module):
        def __init__(self, input_size, hidden):
            super().__init__()
            self.q = nn.Linear(input_size, hidden)
            self.k = nn.Linear(input_size, hidden)
            self.v = nn.Linear(input_size, hidden)
            self.d = hidden

        def forward(self, x):
            Q = self.q(x)  # [B, T, H]
            K = self.k(x)  # [B, T, H]
            V = self.v(x)  # [B, T, H]
            weights = torch.bmm(Q, K.permute(0, 2, 1))  # [B, T, T]
            weights = weights.div(math.sqrt(self.d))  # [B, T, T]
            weights = nn.Softmax(dim=2)(weights)  # [B, T, T]
            return weights.bmm(V)  # [B, T, H]
    """).replace("class", "import math\n\n\nclass", 1)
EINSUM = cell("""
    class SelfAttention(nn.Module):
        def __init__(self, input_size, hidden):
            super(SelfAttention, self).__init__()
            self.q, self.k, self.v = (nn.Linear(input_size, hidden) for _ in range(3))

        def forward(self, x):
            # q, k, v: [batch, seq, hidden]
            q, k, v = self.q(x), self.k(x), self.v(x)
            scores = torch.einsum("bqh,bkh->bqk", q, k)  # [batch, seq, seq]
            probs = (scores * q.shape[-1] ** -0.5).softmax(-1)  # [batch, seq, seq]
            return torch.einsum("bqk,bkh->bqh", probs, v)  # [batch, seq, hidden]
    """)
LOOP = cell("""
    class SelfAttention(nn.Module):
        def __init__(self, input_size, hidden):
            super().__init__()
            for name in ("q", "k", "v"):
                setattr(self, name, nn.Linear(input_size, hidden))
            self.scale = hidden ** (1 / 2)

        def attend(self, item):
            scores = self.q(item) @ self.k(item).T / self.scale  # [seq_len, seq_len]
            return torch.softmax(scores, dim=1) @ self.v(item)  # [seq_len, hidden]

        def forward(self, x):
            # -> [batch_size, seq_len, hidden]
            return torch.stack([self.attend(item) for item in x])
    """)
SCALED_QUERIES = cell("""
    class SelfAttention(nn.Module):
        def __init__(self, input_size, hidden):
            super().__init__()
            self.q = nn.Linear(input_size, hidden)
            self.k = nn.Linear(input_size, hidden)
            self.v = nn.Linear(input_size, hidden)
            self.register_buffer("root", torch.tensor(float(hidden)).sqrt())

        def _project(self, x):
            return self.q(x) / self.root, self.k(x), self.v(x)  # [b, s, h] each

        def forward(self, x):
            q, k, v = self._project(x)  # [b, s, h], [b, s, h], [b, s, h]
            attention = (k @ q.mT).softmax(dim=-2)  # [b, s, s]
            return attention.mT @ v  # [b, s, h]
    """)
BY_HAND = cell("""
    class SelfAttention(nn.Module):
        def __init__(self, input_size, hidden):
            super().__init__()
            self.q = nn.Linear(input_size, hidden)
            self.k = nn.Linear(input_size, hidden)
            self.v = nn.Linear(input_size, hidden)

        @staticmethod
        def softmax(t):
            e = torch.exp(t - t.amax(-1, keepdim=True))  # [bs, seq, seq]
            return e / e.sum(-1, keepdim=True)  # [bs, seq, seq]

        def forward(self, x):
            q, k, v = (f(x) for f in (self.q, self.k, self.v))  # [bs, seq, hidden] each
            p = self.softmax(q.matmul(k.transpose(-1, -2)) / q.size(2) ** 0.5)  # [bs, seq, seq]
            return torch.matmul(p, v)  # [bs, seq, hidden]
    """)
MODULE_DICT = cell("""
    class SelfAttention(nn.Module):
        def __init__(self, input_size, hidden):
            super().__init__()
            self.layers = nn.ModuleDict({n: nn.Linear(input_size, hidden) for n in "qkv"})
            self.q, self.k, self.v = self.layers["q"], self.layers["k"], self.layers["v"]
            self.norm = 1 / hidden**0.5

        def forward(self, x):
            q = self.layers["q"](x)  # [batch_size, seq_len, hidden]
            k = self.layers["k"](x)  # [batch_size, seq_len, hidden]
            v = self.layers["v"](x)  # [batch_size, seq_len, hidden]
            zero = q.new_zeros(1)  # [1]
            # scores: [batch_size, seq_len, seq_len]
            scores = torch.baddbmm(zero, q, k.mT, alpha=self.norm)
            return F.softmax(scores, -1) @ v  # [batch_size, seq_len, hidden]
    """)
READY_MADE = cell("""
    class SelfAttention(nn.Module):
        def __init__(self, input_size, hidden):
            super().__init__()
            self.q = nn.Linear(input_size, hidden)
            self.k = nn.Linear(input_size, hidden)
            self.v = nn.Linear(input_size, hidden)

        def forward(self, x):
            q = self.q(x)  # [batch_size, seq_len, hidden]
            k = self.k(x)  # [batch_size, seq_len, hidden]
            v = self.v(x)  # [batch_size, seq_len, hidden]
            return F.scaled_dot_product_attention(q, k, v)  # [batch_size, seq_len, hidden]
    """)
SINGLE_STYLES = {
    "bmm": BMM,
    "einsum": EINSUM,
    "a loop over the batch": LOOP,
    "scaled queries, a table the other way round": SCALED_QUERIES,
    "the softmax by hand": BY_HAND,
    "layers in a ModuleDict": MODULE_DICT,
    "PyTorch's own attention": READY_MADE,
}


@pytest.mark.parametrize("style", SINGLE_STYLES)
def test_self_attention_in_any_style_keeps_its_four_points(style):
    got = grade(SINGLE, SINGLE_STYLES[style])
    assert (got.total, got.said) == (4, [])


# --- MultiHeadSelfAttention ----------------------------------------------------------------------
INIT = test_homework.GIVEN.replace(" ** ", "**").rstrip()


def multi(methods: str, init: str = INIT) -> str:
    body = textwrap.indent(textwrap.dedent(methods).strip("\n"), "    ")
    return f"{init.strip()}\n\n{body}\n"


FOUR_D = multi("""
    def split(self, t):
        b, s, _ = t.shape
        # -> [b, num_heads, s, head_size]
        return t.view(b, s, self.num_heads, self.head_size).transpose(1, 2)

    def forward(self, x, return_attention=False):
        b, s, _ = x.shape
        q = self.split(self.q(x))  # [b, num_heads, s, head_size]
        k = self.split(self.k(x))  # [b, num_heads, s, head_size]
        v = self.split(self.v(x))  # [b, num_heads, s, head_size]
        scores = torch.matmul(q, k.transpose(2, 3)) / self.scale  # [b, num_heads, s, s]
        if self.causal:
            past = torch.tril(torch.ones(s, s, device=x.device))  # [s, s]
            scores = scores.masked_fill(past == 0, float("-inf"))  # [b, num_heads, s, s]
        probs = self.dropout(scores.softmax(dim=-1))  # [b, num_heads, s, s]
        att = (probs @ v).transpose(1, 2).contiguous()  # [b, s, num_heads, head_size]
        att = self.mix(att.view(b, s, -1))  # [b, s, hidden]
        if return_attention:
            probs = probs.view(b * self.num_heads, s, s)  # [b * num_heads, s, s]
            return att, probs
        return att
    """)
THREE_D = multi("""
    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        n, d = self.num_heads, self.head_size

        def heads(layer):
            t = layer(x).reshape(bs, seq, n, d)  # [bs, seq, n, d]
            t = t.permute(0, 2, 1, 3)  # [bs, n, seq, d]
            return t.reshape(bs * n, seq, d)  # [bs * n, seq, d]

        q, k, v = heads(self.q), heads(self.k), heads(self.v)  # [bs * n, seq, d] each
        scores = torch.bmm(q, k.mT) / self.scale  # [bs * n, seq, seq]
        if self.causal:
            mask = torch.full((seq, seq), -torch.inf, device=x.device).triu(1)  # [seq, seq]
            scores = scores + mask  # [bs * n, seq, seq]
        probs = self.dropout(F.softmax(scores, dim=2))  # [bs * n, seq, seq]
        att = torch.bmm(probs, v)  # [bs * n, seq, d]
        att = att.view(bs, n, seq, d).transpose(1, 2)  # [bs, seq, n, d]
        att = self.mix(att.flatten(2))  # [bs, seq, hidden]
        return (att, probs) if return_attention else att
    """)
EINSUMS = multi("""
    def forward(self, x, return_attention=False):
        b, t, _ = x.shape
        h = self.num_heads
        q = self.q(x).unflatten(-1, (h, -1))  # [b, t, h, head_size]
        k = self.k(x).unflatten(-1, (h, -1))  # [b, t, h, head_size]
        v = self.v(x).unflatten(-1, (h, -1))  # [b, t, h, head_size]
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / self.scale  # [b, h, t, t]
        if self.causal:
            place = torch.arange(t, device=x.device)  # [t]
            later = place[None, :] > place[:, None]  # [t, t]
            scores = torch.where(later, -torch.inf, scores)  # [b, h, t, t]
        probs = self.dropout(torch.softmax(scores, dim=-1))  # [b, h, t, t]
        att = torch.einsum("bhqk,bkhd->bqhd", probs, v).flatten(2)  # [b, t, hidden]
        att = self.mix(att)  # [b, t, hidden]
        if return_attention:
            return att, probs.flatten(0, 1)  # [b, t, hidden], [b * h, t, t]
        return att
    """)
HEAD_LOOP = multi("""
    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        d = self.head_size
        q, k, v = self.q(x), self.k(x), self.v(x)  # [bs, seq, hidden] each
        outputs, tables = [], []
        for i in range(self.num_heads):
            own = slice(i * d, (i + 1) * d)
            table = q[..., own] @ k[..., own].mT / self.scale  # [bs, seq, seq]
            if self.causal:
                future = torch.ones(seq, seq).triu(1) == 1  # [seq, seq]
                table = table.masked_fill(future, -1e9)  # [bs, seq, seq]
            table = self.dropout(F.softmax(table, dim=-1))  # [bs, seq, seq]
            tables.append(table)
            outputs.append(table @ v[..., own])  # [bs, seq, head_size]
        att = self.mix(torch.cat(outputs, dim=-1))  # [bs, seq, hidden]
        probs = torch.stack(tables, dim=1).flatten(0, 1)  # [bs * num_heads, seq, seq]
        return (att, probs) if return_attention else att
    """)
CHUNKS = multi("""
    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        h = self.num_heads
        q = torch.stack(self.q(x).chunk(h, dim=-1), dim=1)  # [bs, h, seq, head_size]
        k = torch.stack(self.k(x).split(self.head_size, dim=-1), dim=1)  # [bs, h, seq, head_size]
        v = torch.stack(self.v(x).tensor_split(h, dim=-1), dim=1)  # [bs, h, seq, head_size]
        scores = (q / self.scale) @ k.mT  # [bs, h, seq, seq]
        if self.causal:
            keep = torch.ones(seq, seq).tril().bool()  # [seq, seq]
            scores.masked_fill_(~keep, float("-inf"))  # [bs, h, seq, seq]
        probs = self.dropout(F.softmax(scores, dim=-1))  # [bs, h, seq, seq]
        heads = probs @ v  # [bs, h, seq, head_size]
        att = self.mix(torch.cat(heads.unbind(1), dim=-1))  # [bs, seq, hidden]
        probs = probs.reshape(-1, seq, seq)  # [bs * h, seq, seq]
        return (att, probs) if return_attention else att
    """)
MASK_LAST = multi("""
    def scores(self, q, k):
        return q @ k.transpose(-2, -1) * self.head_size**-0.5  # [bs, num_heads, seq, seq]

    def hide(self, table):
        seq = table.shape[-1]
        table = table.tril()  # [bs, num_heads, seq, seq]
        assert table.shape[-2:] == (seq, seq)
        return table / table.sum(-1, keepdim=True)  # [bs, num_heads, seq, seq]

    def forward(self, x, return_attention=False):
        bs, seq, _ = x.shape
        shape = (bs, seq, self.num_heads, self.head_size)
        # q, k, v: [bs, num_heads, seq, head_size]
        q, k, v = (f(x).view(shape).transpose(1, 2) for f in (self.q, self.k, self.v))
        probs = F.softmax(self.scores(q, k), dim=-1)  # [bs, num_heads, seq, seq]
        if self.causal:
            probs = self.hide(probs)  # [bs, num_heads, seq, seq]
        probs = self.dropout(probs)  # [bs, num_heads, seq, seq]
        att = (probs @ v).movedim(1, 2).reshape(bs, seq, -1)  # [bs, seq, hidden]
        att = self.mix(att)  # [bs, seq, hidden]
        if not return_attention:
            return att
        # -> [bs, seq, hidden], [bs * num_heads, seq, seq]
        return att, probs.reshape(bs * self.num_heads, seq, seq)
    """)
MULTI_STYLES = {
    "4-D heads, a helper method": FOUR_D,
    "3-D heads, a helper inside": THREE_D,
    "einsum": EINSUMS,
    "a loop over the heads": HEAD_LOOP,
    "chunks": CHUNKS,
    "the mask after the softmax, rows made to sum to 1": MASK_LAST,
}


@pytest.mark.parametrize("style", MULTI_STYLES)
def test_multi_head_attention_in_any_style_keeps_its_six_points(style):
    got = grade(MULTI, MULTI_STYLES[style])
    assert (got.total, got.said) == (6, [])


# --- other names ---------------------------------------------------------------------------------
SINGLE_NAMES = {
    "query, key, value": BMM.replace("self.q", "self.query")
    .replace("self.k", "self.key")
    .replace("self.v", "self.value"),
    "Wq, Wk, Wv, in another order": EINSUM.replace(
        "self.q, self.k, self.v = (", "self.Wv, self.Wk, self.Wq = ("
    ).replace("self.q(x), self.k(x), self.v(x)", "self.Wq(x), self.Wk(x), self.Wv(x)"),
    "numbers": BY_HAND.replace("self.q", "self.fc1")
    .replace("self.k", "self.fc2")
    .replace("self.v", "self.fc3"),
    "a ModuleDict alone": MODULE_DICT.replace(
        '        self.q, self.k, self.v = self.layers["q"], self.layers["k"], self.layers["v"]\n',
        "",
    ),
    "a ModuleList": LOOP.replace(
        """        for name in ("q", "k", "v"):
            setattr(self, name, nn.Linear(input_size, hidden))
""",
        "        self.maps = nn.ModuleList([nn.Linear(input_size, hidden) for _ in range(3)])\n",
    )
    .replace("self.q(", "self.maps[0](")
    .replace("self.k(", "self.maps[1](")
    .replace("self.v(", "self.maps[2]("),
    "one layer for all, keys first": cell("""
        class SelfAttention(nn.Module):
            def __init__(self, input_size, hidden):
                super().__init__()
                self.kqv = nn.Linear(input_size, 3 * hidden)
                self.hidden = hidden

            def forward(self, x):
                k, q, v = self.kqv(x).split(self.hidden, dim=-1)  # [b, s, hidden] each
                probs = F.softmax(q @ k.mT / self.hidden**0.5, dim=-1)  # [b, s, s]
                return probs @ v  # [b, s, hidden]
        """),
    "one layer for keys and values": cell("""
        class SelfAttention(nn.Module):
            def __init__(self, input_size, hidden):
                super().__init__()
                self.q = nn.Linear(input_size, hidden)
                self.kv = nn.Linear(input_size, 2 * hidden)

            def forward(self, x):
                k, v = self.kv(x).chunk(2, dim=-1)  # [b, s, hidden] each
                q = self.q(x) / k.shape[-1] ** 0.5  # [b, s, hidden]
                return torch.softmax(q @ k.mT, dim=-1) @ v  # [b, s, hidden]
        """),
}


@pytest.mark.parametrize("style", SINGLE_NAMES)
def test_other_names_cost_the_point_for_the_layers_and_no_other(style):
    got = grade(SINGLE, SINGLE_NAMES[style])
    assert got.points == {"init": 0, "forward": 3}
    assert not any(points < 0 for points in got.taken.values())
    (said,) = [text for text in got.said if "forward in three lines" not in text]
    assert said.startswith("Your layer")
    assert said.endswith(("which the exercise asks for.", "everything else is right."))


HEAD_INIT = """
class MultiHeadSelfAttention(nn.Module):
    def __init__(self, input_size, hidden, num_heads, causal=False, dropout=0):
        if hidden % num_heads:
            raise ValueError("hidden must be divisible by num_heads")
        super().__init__()
        self.head_size = hidden // num_heads
        self.heads = nn.ModuleList(
            nn.ModuleDict({n: nn.Linear(input_size, self.head_size) for n in "qkv"})
            for _ in range(num_heads)
        )
        self.out = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.causal = causal
"""
MULTI_NAMES = {
    "out_proj": FOUR_D.replace("self.mix", "self.out_proj"),
    "c_attn and c_proj": multi(
        """
    def forward(self, x, return_attention=False):
        b, t, c = x.shape
        q, k, v = self.c_attn(x).chunk(3, dim=-1)  # [b, t, hidden] each
        q = q.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # [b, h, t, d]
        k = k.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # [b, h, t, d]
        v = v.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # [b, h, t, d]
        att = q @ k.transpose(-2, -1) / self.scale  # [b, h, t, t]
        if self.causal:
            mask = torch.tril(torch.ones(t, t))  # [t, t]
            att = att.masked_fill(mask == 0, float("-inf"))  # [b, h, t, t]
        att = self.dropout(F.softmax(att, dim=-1))  # [b, h, t, t]
        y = (att @ v).transpose(1, 2).reshape(b, t, -1)  # [b, t, hidden]
        y = self.c_proj(y)  # [b, t, hidden]
        probs = att.flatten(0, 1)  # [b * h, t, t]
        return (y, probs) if return_attention else y
    """,
        INIT.replace("        self.k = nn.Linear(input_size, hidden)\n", "")
        .replace("        self.q = nn.Linear(input_size, hidden)\n", "")
        .replace(
            "self.v = nn.Linear(input_size, hidden)",
            "self.c_attn = nn.Linear(input_size, 3 * hidden)",
        )
        .replace("self.mix", "self.c_proj"),
    ),
    "a ModuleList of heads": multi(
        """
    def forward(self, x, return_attention=False):
        seq = x.shape[1]
        outputs, tables = [], []
        for head in self.heads:
            q, k, v = (head[n](x) for n in "qkv")  # [bs, seq, head_size] each
            table = q @ k.mT / self.head_size**0.5  # [bs, seq, seq]
            if self.causal:
                future = torch.ones(seq, seq).triu(1) == 1  # [seq, seq]
                table = table.masked_fill(future, float("-inf"))  # [bs, seq, seq]
            table = self.dropout(F.softmax(table, dim=-1))  # [bs, seq, seq]
            tables.append(table)
            outputs.append(table @ v)  # [bs, seq, head_size]
        att = self.out(torch.cat(outputs, dim=-1))  # [bs, seq, hidden]
        probs = torch.stack(tables, dim=1).flatten(0, 1)  # [bs * num_heads, seq, seq]
        return (att, probs) if return_attention else att
    """,
        HEAD_INIT,
    ),
}


@pytest.mark.parametrize("style", first_of(*MULTI_NAMES))
def test_other_names_in_many_heads_cost_one_point(style):
    got = grade(MULTI, MULTI_NAMES[style])
    assert got.points == {"scores": 3, "mask": 1, "output": 2}
    assert got.taken == {"layer.name": -1}
    (said,) = got.said
    assert "the exercise asks for" in said and "verything else is right." in said


def test_known_mistakes_are_not_run_where_only_names_of_layers_differ():
    def never(place):
        raise AssertionError("a known mistake was run")

    task, namespace = "multi_head.output", {}
    exec(SETUP + MULTI_NAMES["out_proj"], namespace)
    exercise, answers = Course.at(ROOT).exercises[task], known(task, 1)
    calls = exercise.cases(Draw(1))
    outcomes = run_here(namespace, calls)
    dear = replace(
        answers,
        mistakes=tuple(
            (check, text, Lazy(len(calls), never)) for check, text, _ in answers.mistakes
        ),
        pairs=(),
    )
    assert not right(exercise, calls, outcomes, dear, "")
    (said,) = findings(exercise, calls, outcomes, dear, "", partial(run_here, namespace))
    assert said.check == "layer.name" and "everything else is right" in said.message


# --- a slip in each style ------------------------------------------------------------------------
SCALE, FORWARD = ({"init": 1, "forward": 3}, 3), ({"init": 1, "forward": 0}, 1)
SINGLE_SLIPS = {
    "bmm, no scale": (BMM, "weights.div(math.sqrt(self.d))", "weights.div(1)", SCALE),
    "bmm, the root of a root": (BMM, "math.sqrt(self.d)", "math.sqrt(math.sqrt(self.d))", SCALE),
    "bmm, another dimension": (BMM, "Softmax(dim=2)", "Softmax(dim=1)", FORWARD),
    "einsum, the size": (EINSUM, "** -0.5", "** -1", SCALE),
    "einsum, the wrong keys": (EINSUM, "bqh,bkh->bqk", "bqh,bkh->bkq", FORWARD),
    "a loop, tokens counted": (LOOP, "/ self.scale", "/ len(item) ** 0.5", SCALE),
    "a loop, softmax of columns": (LOOP, "dim=1", "dim=0", FORWARD),
    "scaled queries, both scaled": (
        SCALED_QUERIES,
        "self.k(x), self.v(x)  #",
        "self.k(x) / self.root, self.v(x)  #",
        SCALE,
    ),
    "scaled queries, the table as it was": (
        SCALED_QUERIES,
        "attention.mT @",
        "attention @",
        FORWARD,
    ),
    "by hand, not divided": (BY_HAND, "return e / e.sum(-1, keepdim=True)", "return e", FORWARD),
    "a ModuleDict, the wrong layer": (MODULE_DICT, '["v"](x)', '["k"](x)', FORWARD),
    "ready-made, another scale": (READY_MADE, "(q, k, v)", "(q, k, v, scale=1.0)", SCALE),
    "ready-made, causal": (
        READY_MADE,
        "(q, k, v)  #",
        "(\n            q, k, v, is_causal=True\n        )  #",
        FORWARD,
    ),
}


@pytest.mark.parametrize("slip", share(SINGLE_SLIPS, 3, touching=lambda s: SINGLE_SLIPS[s][0]))
def test_a_slip_in_any_style_of_self_attention_costs_its_step(slip):
    program, old, new, (points, total) = SINGLE_SLIPS[slip]
    assert old in program
    got = grade(SINGLE, program.replace(old, new))
    assert (got.points, got.total) == (points, total)


ALL = {"scores": 3, "mask": 1, "output": 2}
MULTI_SLIPS = {
    "4-D, split by a view alone": (
        FOUR_D,
        "view(b, s, self.num_heads, self.head_size).transpose(1, 2)",
        "view(b, self.num_heads, s, self.head_size)",
        "scores",
    ),
    "4-D, not transposed back": (FOUR_D, "(probs @ v).transpose(1, 2)", "(probs @ v)", "output"),
    "4-D, the mask turned": (FOUR_D, "past == 0", "past == 1", "mask"),
    "4-D, a view without contiguous": (FOUR_D, ".contiguous()", "", "output"),
    "3-D, split without permute": (
        THREE_D,
        "            t = t.permute(0, 2, 1, 3)  # [bs, n, seq, d]\n",
        "",
        "scores",
    ),
    "3-D, heads before the batch": (
        THREE_D,
        "att.view(bs, n, seq, d)",
        "att.view(n, bs, seq, d).transpose(0, 1)",
        "output",
    ),
    "3-D, scaled by hidden": (THREE_D, "/ self.scale", "/ (n * d) ** 0.5", "scale"),
    "3-D, the mask one late": (THREE_D, ".triu(1)", ".triu(2)", "mask"),
    "einsum, softmax over queries": (
        EINSUMS,
        "torch.softmax(scores, dim=-1)",
        "torch.softmax(scores, dim=-2)",
        "output",
    ),
    "einsum, itself hidden": (EINSUMS, "[None, :] > ", "[None, :] >= ", "mask"),
    "einsum, head by head returned": (
        EINSUMS,
        "probs.flatten(0, 1)",
        "probs.transpose(0, 1).flatten(0, 1)",
        "output",
    ),
    "a loop, the first head always": (
        HEAD_LOOP,
        "slice(i * d, (i + 1) * d)",
        "slice(0, d)",
        "scores",
    ),
    "a loop, a small number for minus infinity": (HEAD_LOOP, "-1e9", "-1.0", "mask"),
    "a loop, summed": (
        HEAD_LOOP,
        "torch.cat(outputs, dim=-1)",
        "sum(outputs).repeat(1, 1, self.num_heads)",
        "output",
    ),
    "a loop, stacked in another order": (
        HEAD_LOOP,
        "torch.stack(tables, dim=1)",
        "torch.stack(tables)",
        "output",
    ),
    "chunks, scaled twice": (CHUNKS, "@ k.mT ", "@ k.mT / self.scale ", "scale"),
    "chunks, heads backwards": (CHUNKS, "heads.unbind(1)", "heads.flip(1).unbind(1)", "output"),
    "chunks, the past hidden": (CHUNKS, "~keep", "keep", "mask"),
    "the mask last, not made to sum to 1": (
        MASK_LAST,
        "return table / table.sum(-1, keepdim=True)",
        "return table",
        "mask",
    ),
    "the mask last, multiplied": (
        MASK_LAST,
        "self.head_size**-0.5",
        "self.head_size**0.5",
        "scale",
    ),
    "the mask last, no mix": (
        MASK_LAST,
        "        att = self.mix(att)  # [bs, seq, hidden]\n",
        "",
        "output",
    ),
}


@pytest.mark.parametrize("slip", share(MULTI_SLIPS, 3, touching=lambda s: MULTI_SLIPS[s][0]))
def test_a_slip_in_any_style_of_many_heads_costs_its_step(slip):
    program, old, new, step = MULTI_SLIPS[slip]
    assert old in program
    got = grade(MULTI, program.replace(old, new))
    lost = ALL | ({step: 0} if step in ALL else {})
    assert got.points == lost
    assert any(name.startswith("scale") for name in got.taken) == (step == "scale")
