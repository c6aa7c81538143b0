"""Lesson 04: right programs in many styles pass; wrong ones are told which mistake they made."""

import textwrap

import pytest

from autograder.course.course import Course
from tests.conftest import ROOT
from tests.lessons.helper import findings, names

HEAD = """
class CausalHead(nn.Module):
    def __init__(self, input_size, head_size):
        super().__init__()
        self.q = nn.Linear(input_size, head_size, bias=False)
        self.k = nn.Linear(input_size, head_size, bias=False)
        self.v = nn.Linear(input_size, head_size, bias=False)

    def forward(self, x):
        q, k = self.q(x), self.k(x)
        scores = q @ k.transpose(1, 2) / k.shape[-1] ** 0.5
        future = torch.ones_like(scores[0]).triu(1).bool()
        return torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ self.v(x)
"""
PARTS = """
def split_heads(t, num_heads):
    return t.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def head_scores(q, k):
    return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5


def merge_heads(t):
    return t.transpose(1, 2).flatten(2)
"""
NEEDS = {"heads.stack": HEAD, "heads.attend": PARTS}
SIGNATURES = {
    "heads.size": "head_size_of(hidden, num_heads)",
    "heads.split": "split_heads(t, num_heads)",
    "heads.scores": "head_scores(q, k)",
    "heads.merge": "merge_heads(t)",
    "heads.attend": "attend(q, k, v, num_heads)",
    "heads.transfer": "fuse_heads(weights, biases)",
    "heads.output": "head_contributions(heads, weight)",
    "heads.count": "attention_parameters(input_size, hidden, num_heads, qkv_bias=False)",
}
START = {
    "heads.split": "b, s, hidden = t.shape\nh, d = num_heads, hidden // num_heads\n",
    "heads.merge": "b, h, s, d = t.shape\n",
    "heads.attend": "b, s, hidden = q.shape\n"
    "future = torch.ones(s, s).triu(1).bool()\n"
    "qs, ks, vs = (split_heads(t, num_heads) for t in (q, k, v))\n"
    "scores = head_scores(qs, ks).masked_fill(future, -torch.inf)\n",
    "heads.output": "b, h, s, d = heads.shape\n",
}


def program(task: str, body: str) -> str:
    """The function of a task with this body; for the class, the body is the class."""
    if task not in SIGNATURES:
        return body
    body = START.get(task, "") + textwrap.dedent(body).strip()
    return f"def {SIGNATURES[task]}:\n" + textwrap.indent(body, "    ") + "\n"


def stack(heads: str, forward: str) -> str:
    """HeadStack with these heads and this body of `forward`."""
    return f"""
class HeadStack(nn.Module):
    def __init__(self, input_size, head_size, num_heads):
        super().__init__()
        {heads}

    def forward(self, x):
        {forward}
"""


LIST = "self.heads = nn.ModuleList(CausalHead(input_size, head_size) for _ in range(num_heads))"
CAT = "return torch.cat([head(x) for head in self.heads], dim=-1)"
RIGHT = {
    "heads.stack": {
        "a generator": stack(LIST, CAT),
        "a list": stack(LIST.replace("(Causal", "([Causal").replace("))", ")])"), CAT),
        "appended": stack(
            "self.heads = nn.ModuleList()\n        for _ in range(num_heads):\n"
            "            self.heads.append(CausalHead(input_size, head_size))",
            CAT,
        ),
        "a loop": stack(
            LIST,
            "out = []\n        for i in range(len(self.heads)):\n"
            "            out += [self.heads[i](x)]\n        return torch.cat(out, 2)",
        ),
        "concat": stack(LIST, "return torch.concat(tuple(h(x) for h in self.heads), axis=-1)"),
        "a stack, flattened": stack(
            LIST, "return torch.stack([h(x) for h in self.heads], dim=2).flatten(2)"
        ),
        "written into place": stack(
            LIST + "\n        self.size = head_size",
            "out = x.new_empty(*x.shape[:2], len(self.heads) * self.size)\n"
            "        for i, head in enumerate(self.heads):\n"
            "            out[..., i * self.size:(i + 1) * self.size] = head(x)\n        return out",
        ),
    },
    "heads.size": {
        "modulo": 'if hidden % num_heads != 0:\n    raise ValueError(f"{hidden} by {num_heads}")\n'
        "return hidden // num_heads",
        "divmod": "size, rest = divmod(hidden, num_heads)\nif rest:\n"
        "    raise ValueError(hidden, num_heads)\nreturn size",
        "multiplied back": "size = hidden // num_heads\nif size * num_heads != hidden:\n"
        "    raise ValueError((num_heads, hidden))\nreturn size",
        "int of a quotient": "if hidden % num_heads > 0:\n"
        "    raise ValueError(f'{hidden=} {num_heads=}')\nreturn int(hidden / num_heads)",
        "the good case first": "if not hidden % num_heads:\n    return hidden // num_heads\n"
        'raise ValueError("%d heads do not divide %d" % (num_heads, hidden))',
    },
    "heads.split": {
        "view": "return t.view(b, s, h, d).transpose(1, 2)",
        "reshape": "return t.reshape(b, s, h, -1).transpose(1, 2)",
        "permute": "return t.view(b, s, h, d).permute(0, 2, 1, 3)",
        "chunk": "return torch.stack(t.chunk(h, dim=-1), dim=1)",
        "split": "return torch.stack(torch.split(t, d, dim=2), 1)",
        "slices": "return torch.stack([t[..., i * d:(i + 1) * d] for i in range(h)], dim=1)",
        "unflatten": "return t.unflatten(2, (h, d)).swapaxes(1, 2)",
        "einsum": 'return torch.einsum("bshd->bhsd", t.reshape(b, s, h, d))',
        "contiguous": "return t.view(b, s, h, d).movedim(2, 1).contiguous()",
    },
    "heads.scores": {
        "matmul": "return torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(q.size(-1))",
        "mT": "return q @ k.mT * q.shape[-1] ** -0.5",
        "einsum": 'return torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[3] ** 0.5',
        "bmm": "d = q.shape[-1]\nout = torch.bmm(q.flatten(0, 1), k.flatten(0, 1).mT) / d ** 0.5\n"
        "return out.view(*q.shape[:2], *out.shape[1:])",
        "scaled queries": "return (q / q.shape[-1] ** 0.5) @ k.permute(0, 1, 3, 2)",
        "a loop over heads": "rows = [q[:, i] @ k[:, i].mT for i in range(q.shape[1])]\n"
        "return torch.stack(rows, 1) / q.shape[-1] ** 0.5",
        "sums": "return (q[..., None, :] * k[:, :, None]).sum(-1) / q.shape[-1] ** 0.5",
    },
    "heads.merge": {
        "reshape": "return t.transpose(1, 2).reshape(b, s, h * d)",
        "contiguous and view": "return t.transpose(1, 2).contiguous().view(b, s, -1)",
        "flatten": "return t.transpose(1, 2).flatten(2)",
        "permute": "return t.permute(0, 2, 1, 3).reshape(b, s, h * d)",
        "cat": "return torch.cat([t[:, i] for i in range(h)], dim=-1)",
        "cat of unbind": "return torch.cat(t.unbind(1), -1)",
        "einsum": 'return torch.einsum("bhsd->bshd", t).reshape(b, s, -1)',
    },
    "heads.attend": {
        "the parts": "probs = scores.softmax(-1)\n"
        "return merge_heads(probs @ vs), probs.flatten(0, 1)",
        "reshaped": "probs = torch.softmax(scores, dim=-1)\n"
        "return merge_heads(probs @ vs), probs.reshape(b * num_heads, s, s)",
        "additive mask": """
            mask = torch.full((s, s), -torch.inf).triu(1)
            probs = F.softmax(head_scores(qs, ks) + mask, dim=-1)
            return merge_heads(probs @ vs), probs.view(-1, s, s)""",
        "finite mask": """
            probs = F.softmax(head_scores(qs, ks).masked_fill(future, -1e9), dim=-1)
            return merge_heads(probs @ vs), probs.flatten(0, 1)""",
        "3-D heads": """
            q, k, v = (t.flatten(0, 1) for t in (qs, ks, vs))
            scores = q.bmm(k.transpose(1, 2)) / q.shape[-1] ** 0.5
            probs = scores.masked_fill(future, float("-inf")).softmax(-1)
            return merge_heads(probs.bmm(v).view(b, num_heads, s, -1)), probs""",
        "a loop over heads": """
            outs, tables = [], []
            for a, c, e in zip(*(t.chunk(num_heads, -1) for t in (q, k, v))):
                table = a @ c.transpose(1, 2) / a.shape[-1] ** 0.5
                tables.append(table.masked_fill(future, -torch.inf).softmax(-1))
                outs.append(tables[-1] @ e)
            return torch.cat(outs, -1), torch.stack(tables, 1).flatten(0, 1)""",
        "einsum throughout": """
            q, k, v = (t.reshape(b, s, num_heads, -1) for t in (q, k, v))
            scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
            probs = scores.masked_fill(torch.ones(s, s).tril() == 0, -torch.inf).softmax(-1)
            out = torch.einsum("bhqk,bkhd->bqhd", probs, v)
            return out.reshape(b, s, hidden), probs.reshape(-1, s, s)""",
        "PyTorch's own for the output": """
            out = F.scaled_dot_product_attention(qs, ks, vs, is_causal=True)
            return out.transpose(1, 2).reshape(b, s, hidden), scores.softmax(-1).flatten(0, 1)""",
    },
    "heads.transfer": {
        "cat": "return torch.cat(weights), torch.cat(biases)",
        "vstack": "return torch.vstack(weights), torch.hstack(biases)",
        "stack and flatten": "return torch.stack(weights).flatten(0, 1), "
        "torch.stack(biases).flatten()",
        "written into place": """
            d, i = weights[0].shape
            weight, bias = torch.empty(len(weights) * d, i), torch.empty(len(weights) * d)
            for h, (w, b) in enumerate(zip(weights, biases)):
                weight[h * d:(h + 1) * d], bias[h * d:(h + 1) * d] = w, b
            return weight, bias""",
        "from transposed matrices": "return torch.cat([w.T for w in weights], 1).T, "
        "torch.cat(biases)",
        "a list": "return [torch.cat(weights, dim=0), torch.cat(biases, dim=0)]",
    },
    "heads.output": {
        "a loop": "return torch.stack([heads[:, i] @ weight[:, i * d:(i + 1) * d].T "
        "for i in range(h)], 1)",
        "chunk": "return torch.stack([z @ w.T for z, w in "
        "zip(heads.unbind(1), weight.chunk(h, 1))], 1)",
        "einsum": 'return torch.einsum("bhsd,ohd->bhso", heads, weight.view(-1, h, d))',
        "broadcast": "blocks = weight.T.reshape(h, d, -1)\nreturn heads @ blocks",
        "zeros elsewhere": """
            shares = []
            for i in range(h):
                alone = torch.zeros_like(heads)
                alone[:, i] = heads[:, i]
                shares.append(alone.transpose(1, 2).reshape(b, s, h * d) @ weight.T)
            return torch.stack(shares, dim=1)""",
        "functional linear": "return torch.stack([F.linear(heads[:, i], "
        "weight[:, i * d:(i + 1) * d]) for i in range(h)], dim=1)",
    },
    "heads.count": {
        "in one": "return 3 * hidden * (input_size + qkv_bias) + hidden * (hidden + 1)",
        "in steps": """
            one = input_size * hidden
            if qkv_bias:
                one += hidden
            return 3 * one + hidden ** 2 + hidden""",
        "by building it": """
            layers = [nn.Linear(input_size, hidden, bias=qkv_bias) for _ in range(3)]
            layers.append(nn.Linear(hidden, hidden))
            return sum(p.numel() for layer in layers for p in layer.parameters())""",
        "head by head": """
            size = hidden // num_heads
            one_head = 3 * (input_size * size + (size if qkv_bias else 0))
            return num_heads * one_head + hidden * hidden + hidden""",
        "as a tensor": "return torch.tensor(3 * hidden * (input_size + int(qkv_bias)) "
        "+ hidden * hidden + hidden)",
    },
}
STYLES = [(task, style) for task, styles in RIGHT.items() for style in styles]


@pytest.mark.parametrize(("task", "style"), STYLES)
def test_any_right_style_passes(task, style):
    source = program(task, RIGHT[task][style])
    assert findings(task, source, needs=NEEDS.get(task, "")) == []


DONE = "return merge_heads(probs @ vs), probs.flatten(0, 1)"
WRONG = {
    "heads.stack": [
        ("stack.plain list", stack(LIST.replace("nn.ModuleList", "list"), CAT)),
        (
            "stack.missing heads",
            stack(
                LIST.replace("self.heads", "self.layers"), CAT.replace("self.heads", "self.layers")
            ),
        ),
        ("stack.missing heads", stack(LIST.replace("head_size)", "head_size * num_heads)"), CAT)),
        ("stack.missing heads", stack(LIST.replace("range(num_heads)", "range(2)"), CAT)),
        (
            "stack.one head repeated",
            stack(
                "self.heads = nn.ModuleList([CausalHead(input_size, head_size)] * num_heads)", CAT
            ),
        ),
        ("stack.summed", stack(LIST, "return sum(head(x) for head in self.heads)")),
        ("stack.along the tokens", stack(LIST, CAT.replace("-1", "1"))),
        ("stack.along the batch", stack(LIST, CAT.replace(", dim=-1", ""))),
        ("stack.new dimension", stack(LIST, CAT.replace("cat", "stack"))),
        (
            "stack.interleaved",
            stack(LIST, "return torch.stack([h(x) for h in self.heads], -1).flatten(2)"),
        ),
        ("stack.only one head", stack(LIST, "for head in self.heads:\n            return head(x)")),
    ],
    "heads.size": [
        ("size.not checked", "return hidden // num_heads"),
        ("size.not checked", "return hidden / num_heads"),
        ("size.assert", "assert hidden % num_heads == 0\nreturn hidden // num_heads"),
        ("size.returned", "if hidden % num_heads == 0:\n    return hidden // num_heads"),
        ("size.float", "if hidden % num_heads:\n    raise ValueError\nreturn hidden / num_heads"),
        ("size.remainder", "return hidden % num_heads"),
        (
            "size.condition inverted",
            "if not hidden % num_heads:\n    raise ValueError\nreturn hidden // num_heads",
        ),
    ],
    "heads.split": [
        ("split.scrambled", "return t.view(b, h, s, d)"),
        ("split.interleaved", "return t.view(b, s, d, h).permute(0, 3, 1, 2)"),
        ("split.scrambled", "return t.transpose(1, 2).reshape(b, h, s, d)"),
        ("split.not transposed", "return t.view(b, s, h, d)"),
        ("split.features before tokens", "return t.view(b, s, h, d).permute(0, 2, 3, 1)"),
        ("split.head-major", "return torch.stack(t.chunk(h, -1))"),
        ("split.3-D", "return t.view(b, s, h, d).transpose(1, 2).reshape(b * h, s, d)"),
        ("split.hard-coded heads", "return t.view(b, s, 2, -1).transpose(1, 2)"),
        ("split.sizes swapped", "return t.view(b, s, d, h).transpose(1, 2)"),
        ("heads.split.type", "t = t.view(b, s, h, d).transpose(1, 2)"),
    ],
    "heads.scores": [
        ("scale.missing", "return q @ k.transpose(-2, -1)"),
        ("scale.hidden", "return q @ k.mT / (q.shape[1] * q.shape[3]) ** 0.5"),
        ("scale.not a root", "return q @ k.mT / q.shape[-1]"),
        ("scale.multiplied", "return q @ k.mT * q.shape[-1] ** 0.5"),
        ("scale.num_heads", "return q @ k.mT / q.shape[1] ** 0.5"),
        ("scores.transposed", "return k @ q.mT / q.shape[-1] ** 0.5"),
        ("scores.no keys", "return q @ q.mT / q.shape[-1] ** 0.5"),
        ("scores.softmax", "return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)"),
        ("scores.over the tokens", "return q.mT @ k / q.shape[-1] ** 0.5"),
        ("shapes do not fit", "return q @ k / q.shape[-1] ** 0.5"),
        ("shapes do not fit", "return q @ k.transpose(1, 2) / q.shape[-1] ** 0.5"),
    ],
    "heads.merge": [
        ("merge.scrambled", "return t.reshape(b, s, h * d)"),
        ("merge.interleaved", "return t.permute(0, 2, 3, 1).reshape(b, s, h * d)"),
        ("merge.averaged", "return t.mean(1)"),
        ("merge.summed", "return t.sum(dim=1)"),
        ("merge.not joined", "return t.transpose(1, 2)"),
        ("merge.along the tokens", "return t.flatten(1, 2)"),
        ("merge.scrambled", "return t.transpose(2, 3).reshape(b, s, h * d)"),
        ("view of a non-contiguous tensor", "return t.transpose(1, 2).view(b, s, h * d)"),
    ],
    "heads.attend": [
        (
            "mask.from the scores",
            "past = head_scores(qs, ks).tril()\n"
            "probs = past.masked_fill(past == 0, -torch.inf).softmax(-1)\n" + DONE,
        ),
        ("mask.none", "probs = head_scores(qs, ks).softmax(-1)\n" + DONE),
        (
            "mask.diagonal hidden",
            "probs = scores.masked_fill(torch.eye(s) == 1, -torch.inf).softmax(-1)\n" + DONE,
        ),
        (
            "mask.inverted",
            "probs = head_scores(qs, ks).masked_fill(~future, -torch.inf).softmax(-1)\n" + DONE,
        ),
        ("mask.after softmax", "probs = head_scores(qs, ks).softmax(-1).tril()\n" + DONE),
        ("mask.filled with 0", "probs = head_scores(qs, ks).tril().softmax(-1)\n" + DONE),
        (
            "mask.NaN",
            "probs = (head_scores(qs, ks) + torch.ones(s, s).triu(1) * -torch.inf)"
            ".softmax(-1)\n" + DONE,
        ),
        ("scale.twice", "probs = (scores / qs.shape[-1] ** 0.5).softmax(-1)\n" + DONE),
        ("scale.hidden", "probs = (scores / num_heads ** 0.5).softmax(-1)\n" + DONE),
        ("softmax.dim", "probs = scores.softmax(1)\n" + DONE),
        ("softmax.twice", "probs = scores.softmax(-1).softmax(-1)\n" + DONE),
        (
            "merge.scrambled",
            "probs = scores.softmax(-1)\n"
            "return (probs @ vs).reshape(b, s, hidden), probs.flatten(0, 1)",
        ),
        (
            "merge.summed",
            "probs = scores.softmax(-1)\nreturn (probs @ vs).sum(1), probs.flatten(0, 1)",
        ),
        ("probabilities.4-D", "probs = scores.softmax(-1)\nreturn merge_heads(probs @ vs), probs"),
        (
            "probabilities.head-major",
            "probs = scores.softmax(-1)\n"
            "return merge_heads(probs @ vs), probs.transpose(0, 1).flatten(0, 1)",
        ),
        ("probabilities.missing", "return merge_heads(scores.softmax(-1) @ vs)"),
        (
            "output.order",
            "probs = scores.softmax(-1)\nreturn probs.flatten(0, 1), merge_heads(probs @ vs)",
        ),
    ],
    "heads.transfer": [
        ("fuse.side by side", "return torch.cat(weights, 1), torch.cat(biases)"),
        (
            "fuse.interleaved",
            "return torch.stack(weights, 1).flatten(0, 1), torch.stack(biases, 1).flatten()",
        ),
        ("fuse.reversed", "return torch.cat(weights[::-1]), torch.cat(biases[::-1])"),
        ("fuse.transposed", "return torch.cat(weights).T, torch.cat(biases)"),
        ("fuse.lost bias", "w = torch.cat(weights)\nreturn w, torch.zeros(len(w))"),
        ("fuse.new dimension", "return torch.stack(weights), torch.stack(biases)"),
        ("fuse.summed", "return sum(weights), sum(biases)"),
        ("fuse.order", "return torch.cat(biases), torch.cat(weights)"),
    ],
    "heads.output": [
        (
            "output.rows for columns",
            "return torch.stack([heads[:, i] @ weight[i * d:(i + 1) * d] for i in range(h)], 1)",
        ),
        (
            "output.interleaved",
            "return torch.stack([heads[:, i] @ weight[:, i::h].T for i in range(h)], 1)",
        ),
        ("output.summed", "return heads.transpose(1, 2).reshape(b, s, h * d) @ weight.T"),
        ("output.same block", "return heads @ weight[:, :d].T"),
        (
            "output.heads behind tokens",
            "return torch.stack([heads[:, i] @ "
            "weight[:, i * d:(i + 1) * d].T for i in range(h)], 2)",
        ),
        (
            "output.head-major",
            "return torch.stack([heads[:, i] @ weight[:, i * d:(i + 1) * d].T for i in range(h)])",
        ),
        ("shapes do not fit", "return heads @ weight.T"),
    ],
    "heads.count": [
        (
            "count.times heads",
            "return num_heads * 3 * hidden * (input_size + qkv_bias) + hidden * (hidden + 1)",
        ),
        ("count.output missing", "return 3 * hidden * (input_size + qkv_bias)"),
        ("count.output bias", "return 3 * hidden * (input_size + qkv_bias) + hidden ** 2"),
        ("count.qkv bias", "return 3 * hidden * input_size + hidden * (hidden + 1)"),
        (
            "count.output input",
            "return 3 * hidden * (input_size + qkv_bias) + hidden * (input_size + 1)",
        ),
        ("count.queries only", "return hidden * (input_size + qkv_bias) + hidden * (hidden + 1)"),
        (
            "count.biases of one",
            "return 3 * hidden * input_size + qkv_bias * hidden + hidden * (hidden + 1)",
        ),
    ],
}
MADE = [(task, i) for task, programs in WRONG.items() for i, _ in enumerate(programs)]


@pytest.mark.parametrize(("task", "place"), MADE)
def test_a_wrong_program_is_told_which_mistake_it_made(task, place):
    mistake, body = WRONG[task][place]
    assert names(task, program(task, body), needs=NEEDS.get(task, "")) == [mistake]


def test_the_head_that_is_given_is_the_one_that_answers_are_judged_with():
    lesson = Course.at(ROOT).lessons["04_many_heads"]
    given = next(c.source for c in lesson.with_role("setup") if "class CausalHead" in c.source)
    assert findings("heads.stack", stack(LIST, CAT), needs=given) == []


def test_gpt2_small_has_the_parameters_of_exercise_3_3():
    answer = Course.at(ROOT).written["heads.count"].answer
    assert answer(768, 768, 12) == 2_360_064
