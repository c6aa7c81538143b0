"""Slips of one line: some small change gives what the right line gives, with real numbers."""

import ast

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from autograder.tracing.edits.kinds.all import edits

SIZE, TOKENS, ROWS = 4, 5, 2
ATTEND = "weights = (q @ k.mT).softmax(-1)"
# What is wrong, the wrong line, the right one.
SLIPS = {
    "the keys' other axes": ("y = q @ k.transpose(0, 1)", "y = q @ k.transpose(1, 2)"),
    "a turn of all axes": ("y = q @ k.T", "y = q @ k.mT"),
    "ones that are added for a mask": (
        "y = scores + mask",
        "y = scores.masked_fill(mask, -torch.inf)",
    ),
    "0 in the places of a mask": (
        "y = scores.clone(); y[:, mask] = 0.0",
        "y = scores.clone(); y[:, mask] = -torch.inf",
    ),
    "a mask with an axis too few": ("y = mask.unsqueeze(1)", "y = mask.unsqueeze(1).unsqueeze(1)"),
    "the parts of a layer in another order": (
        "a, c, b = wide.chunk(3, -1); y = a - b * c * c",
        "a, b, c = wide.chunk(3, -1); y = a - b * c * c",
    ),
    "parts of three for three parts": ("y = wide.split(3, -1)[2]", "y = wide.chunk(3, -1)[2]"),
    "the largest for its place": ("y = x[:, -1].max(-1)[0]", "y = x[:, -1].argmax(-1)"),
    "all tokens for the last": ("y = x.argmax(-1)", "y = x[:, -1].argmax(-1)"),
    "targets that begin at once": (
        "y = F.mse_loss(x[:, :-1], x)",
        "y = F.mse_loss(x[:, :-1], x[:, 1:])",
    ),
    "places that are filled from numbers": (
        "y = x; y[0] = 1.0",
        "y = torch.zeros_like(x); y[0] = 1.0",
    ),
    "a list of rows": (
        "y = [x[0] * i for i in range(3)]",
        "y = torch.stack([x[0] * i for i in range(3)])",
    ),
    "one size for all up to it": ("y = x.shape[1]; y = y", "y = torch.arange(x.shape[1]); y = y"),
    "the last half of a product": ("y = x / n * 0.5", "y = x / n ** 0.5"),
    "infinity with the other sign": (
        "y = torch.full_like(x, torch.inf)",
        "y = torch.full_like(x, -torch.inf)",
    ),
    "rows that are not added up": ("y = x * x", "y = (x * x).sum(-1, keepdim=True)"),
    "a sum of what stands side by side": ("y = sum([x, q])", "y = torch.cat([x, q], -1)"),
    "a tenth of a base": ("y = 1000.0 ** (-x)", "y = 10000.0 ** (-x)"),
    "a norm of all": ("y = x / x.norm()", "y = x / x.norm(dim=-1, keepdim=True)"),
    "both and one of them": ("y = x if flag and not flag else q", "y = x if flag else q"),
    "either for both": ("y = x if flag or other else q", "y = x if flag and other else q"),
    "a share for what is left of it": ("y = x / p", "y = x / (1 - p)"),
    "the probability of dice": (
        "y = torch.bernoulli(torch.full_like(zero, p))",
        "y = torch.bernoulli(torch.full_like(zero, 1 - p))",
    ),
    "exponentials of large numbers": (
        "e = large.exp(); y = e / e.sum(-1, keepdim=True)",
        "e = (large - large.amax(-1, keepdim=True)).exp(); y = e / e.sum(-1, keepdim=True)",
    ),
    "a running sum that goes too far": ("y = x.cumsum(-1)", "y = x.cumsum(-1) - x"),
    "one list several times": (
        "t = [[0.0] * n] * n; t[1][0] = 1.0; y = torch.tensor(t)",
        "t = [[0.0] * n for _ in range(n)]; t[1][0] = 1.0; y = torch.tensor(t)",
    ),
    "rounds with the wrong partner": (
        "y = sum(i * s for i, s in zip((1, 2, 3), (2, 3, 5)[::-1]))",
        "y = sum(i * s for i, s in zip((3, 2, 1), (2, 3, 5)[::-1]))",
    ),
    "another tensor's size": ("y = torch.zeros(n)", "y = torch.zeros(x.shape[-1])"),
    "every axis of size 1 dropped": ("y = one.squeeze()", "y = one.squeeze(-1)"),
    "folded heads that are cut as they lie": (
        "y = x.reshape(ROWS * 2, TOKENS, 2)",
        "y = x.view(ROWS, TOKENS, 2, 2).transpose(1, 2).reshape(ROWS * 2, TOKENS, 2)",
    ),
    "places from the start for the last ones": (
        "more = x.shape[1]; less = x.shape[0]; y = torch.arange(less)",
        "more = x.shape[1]; less = x.shape[0]; y = torch.arange(more - less, more)",
    ),
    "a triangle of more columns than rows": (
        "more = n + 3; y = torch.ones(n, more).triu(1)",
        "more = n + 3; y = torch.ones(n, more).triu(1 + more - n)",
    ),
    "a triangle of more columns that names no diagonal": (
        "more = n + 3; y = torch.ones((n, more)).tril()",
        "more = n + 3; y = torch.ones((n, more)).tril(more - n)",
    ),
    "names with longer ones beside them": (
        "all_q = q * 2; all_k = k * 3; y = torch.cat((q, k))",
        "all_q = q * 2; all_k = k * 3; y = torch.cat((all_q, all_k))",
    ),
    "one of three twice": (
        "w = {'q': q, 'k': k, 'v': x}; y = torch.cat([w['q'], w['q'], w['v']])",
        "w = {'q': q, 'k': k, 'v': x}; y = torch.cat([w['q'], w['k'], w['v']])",
    ),
    "a fill that hides nothing": (
        "low = 0.0; y = torch.where(mask, low, scores)",
        "low = -torch.inf; y = torch.where(mask, low, scores)",
    ),
    "the size of all heads under the root": (
        "size = n // 2; y = x * n ** -0.5; y = y * size",
        "size = n // 2; y = x * size ** -0.5; y = y * size",
    ),
    "one of two is made another type": (
        "a, b = q.double(), k; y = a.dtype == b.dtype",
        "a, b = q.double(), k.double(); y = a.dtype == b.dtype",
    ),
    "a term that a condition asks for": (
        "longer = n > 7; y = q - k; y = [y, longer]; y = y[0]",
        "longer = n > 7; y = q - k * longer; y = [y, longer]; y = y[0]",
    ),
    "the average of several spreads": (
        "y = x.std(0, correction=0).mean(0)",
        "y = x.std((0, 1), correction=0)",
    ),
    "objects for what they hold": (
        "t = [x, x[:]]; y = len({id(a) for a in t})",
        "t = [x, x[:]]; y = len({a.data_ptr() for a in t})",
    ),
    "each round begins anew": (
        "y = x[0]\n    for i in range(3):\n        y = torch.tanh(x[0]) + i",
        "y = x[0]\n    for i in range(3):\n        y = torch.tanh(y) + i",
    ),
    "half of a symmetric table": (
        "y = torch.zeros(n, n)\n    for i in range(n):\n        for j in range(i):\n"
        "            y[i, j] = i + j",
        "y = torch.zeros(n, n)\n    for i in range(n):\n        for j in range(i):\n"
        "            y[j, i] = y[i, j] = i + j",
    ),
    "a part's own length for that of the ones before it": (
        "y = torch.tensor([i * part.shape[0] for i, part in enumerate(zero[:7].split(n))])",
        "y = torch.tensor([i * n for i, part in enumerate(zero[:7].split(n))])",
    ),
    "the last ones, the smallest first": (
        "y = x.argsort(-1)[..., -2:]",
        "y = x.argsort(-1)[..., -2:].flip(-1)",
    ),
    "each pair the wrong way round": (
        "a, b = (torch.cat(pair) for pair in ((q, k), (k, x))); y = a - b",
        "a, b = (torch.cat(pair) for pair in ((k, q), (x, k))); y = a - b",
    ),
    "sine and cosine": (
        "y = x.clone(); y[0] = x[0].cos(); y[1] = x[1].sin()",
        "y = x.clone(); y[0] = x[0].sin(); y[1] = x[1].cos()",
    ),
}


def given():
    """What the lines are given, the same each time."""
    torch.manual_seed(7)
    x, q, k = (torch.randn(ROWS, TOKENS, SIZE) for _ in range(3))
    scores = q @ k.mT
    return {
        "x": x, "q": q, "k": k, "scores": scores, "n": TOKENS, "p": 0.3, "flag": True,
        "other": False, "mask": torch.ones(TOKENS, TOKENS).triu(1).bool(),
        "wide": torch.randn(ROWS, 3, 3 * SIZE), "zero": torch.zeros(400),
        "large": 100 * torch.randn(ROWS, TOKENS), "one": torch.randn(1, 3, 1),
    }  # fmt: skip


def program(line):
    line = line.replace("ROWS", str(ROWS)).replace("TOKENS", str(TOKENS)).replace("SIZE", str(SIZE))
    body = "\n    ".join(line.split("; "))
    return f"def f({', '.join(given())}):\n    {body}\n    return y\n"


def outcome(text):
    """What a program returns; None where it stops."""
    space = {"torch": torch, "F": F, "nn": nn}
    try:
        exec(compile(text, "<line>", "exec"), space)  # noqa: S102
        return space["f"](**given())
    except Exception:  # noqa: BLE001
        return None


def same(one, other):
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        near = one.shape == other.shape and torch.allclose(
            one.double(), other.double(), rtol=1e-4, atol=1e-5, equal_nan=True
        )
        return near
    return type(one) is type(other) and not isinstance(one, torch.Tensor) and one == other


@pytest.mark.parametrize("what", SLIPS)
def test_some_small_change_gives_what_is_right(what):
    wrong, right = map(program, SLIPS[what])
    wanted = outcome(right)
    assert wanted is not None and not same(outcome(wrong), wanted)
    assert any(same(outcome(edit.source), wanted) for edit in edits(wrong))


LAYERS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(3)
        self.up = nn.Linear(3, 3)
        self.down = nn.Linear(3, 3)

    def forward(self, x, short, cache=None):
        {}
"""
# Of whole classes the text is compared: the lines of `forward`.
WHOLE = {
    "a norm that comes too early": (
        "return x + self.up(self.norm(x))",
        "return self.norm(x + self.up(x))",
    ),
    "no bend between two layers": (
        "return self.down(self.up(x))",
        "return self.down(torch.nn.functional.gelu(self.up(x)))",
    ),
    "a layer that one way back lacks": (
        "if short:\n            return x, x\n        return self.down(x)",
        "if short:\n            return self.down(x), x\n        return self.down(x)",
    ),
    "kept before it is whole": (
        "kept = x\n        if cache is not None:\n            x = torch.cat([cache, x])\n"
        "        return x, kept",
        "if cache is not None:\n            x = torch.cat([cache, x])\n        kept = x\n"
        "        return x, kept",
    ),
    "one of two axes cut": (
        "return x + self.table[:3]",
        "return x + self.table[:3, :3]",
    ),
    "what a layer gives": ("self.up(x)\n        return x", "x = self.up(x)\n        return x"),
    "a bias that its siblings have": (
        "a = x @ self.up.weight + self.up.bias\n        b = x @ self.down.weight\n"
        "        return a + b",
        "a = x @ self.up.weight + self.up.bias\n        b = x @ self.down.weight + self.down.bias\n"
        "        return a + b",
    ),
    "tokens on the first axis": (
        "return nn.MultiheadAttention(3, 1)(x, x, x)[0]",
        "return nn.MultiheadAttention(3, 1, batch_first=True)(x, x, x)[0]",
    ),
    "another size under the root": (
        "return self.up(x) / math.sqrt(x.shape[-1])",
        "return self.up(x) / math.sqrt(self.up.out_features)",
    ),
    "a loop that is left": (
        "for _ in range(3):\n            x = self.up(x)\n            break\n        return x",
        "for _ in range(3):\n            x = self.up(x)\n            pass\n        return x",
    ),
    "no gradient": (
        "with torch.no_grad():\n            return self.up(x)",
        "with torch.enable_grad():\n            return self.up(x)",
    ),
}


@pytest.mark.parametrize("what", WHOLE)
def test_some_small_change_of_a_class_undoes_it(what):
    wrong, right = (LAYERS.format(lines) for lines in WHOLE[what])
    wanted = ast.unparse(ast.parse(right))
    assert any(ast.unparse(ast.parse(edit.source)) == wanted for edit in edits(wrong))
