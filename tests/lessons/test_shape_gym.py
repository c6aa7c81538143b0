"""Lesson 00: every way to write it right passes, and wrong ones are told apart by name."""

import pytest

from tests.forms import first_of
from tests.lessons.helper import findings, names

RIGHT = {
    "shape_gym.axes": [
        "def average_over_tokens(x): return x.mean(dim=1)",
        "def average_over_tokens(x): return x.mean(-2)",
        "def average_over_tokens(x): return x.sum(1) / x.size(1)",
        "def average_over_tokens(x): return torch.stack([s.mean(0) for s in x])",
        "def average_over_tokens(x): return torch.einsum('bsh->bh', x) / x.shape[1]",
        "def average_over_tokens(x): return x.mean(1, keepdim=True).squeeze(1)",
        "def average_over_tokens(x): return x.double().mean(1)",
        """
def average_over_tokens(x):
    total = torch.zeros(x.shape[0], x.shape[2])
    for t in range(x.shape[1]):
        total += x[:, t]
    return total / x.shape[1]
""",
    ],
    "shape_gym.memory": [
        """
def offset(index, shape):
    place = 0
    for i, size in zip(index, shape):
        place = place * size + i
    return place
""",
        """
def offset(index, shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return sum(i * s for i, s in zip(index, strides))
""",
        """
def offset(index, shape):
    return torch.arange(math.prod(shape)).view(shape)[tuple(index)].item()
""",
        """
def offset(index, shape):
    return sum(i * s for i, s in zip(index, torch.empty(shape).stride()))
""",
        """
def offset(index, shape):
    return sum(i * math.prod(shape[n + 1:]) for n, i in enumerate(index))
""",
    ],
    "shape_gym.view": [
        "def split_features(x, num_heads): return x.view(*x.shape[:2], num_heads, -1)",
        "def split_features(x, num_heads): return x.unflatten(-1, (num_heads, -1))",
        """
def split_features(x, num_heads):
    b, s, h = x.shape
    return x.reshape(b, s, num_heads, h // num_heads)
""",
        "def split_features(x, num_heads): return torch.stack(x.chunk(num_heads, -1), 2)",
        """
def split_features(x, num_heads):
    size = x.shape[-1] // num_heads
    return torch.stack([x[..., n * size:(n + 1) * size] for n in range(num_heads)], dim=2)
""",
        """
def split_features(x, num_heads):
    b, s, h = x.shape
    return x.reshape(b * s, num_heads, h // num_heads).view(b, s, num_heads, h // num_heads)
""",
    ],
    "shape_gym.transpose": [
        "def features_first(x): return x.transpose(1, 2)",
        "def features_first(x): return x.transpose(-2, -1)",
        "def features_first(x): return x.mT",
        "def features_first(x): return x.permute(0, 2, 1)",
        "def features_first(x): return torch.stack([s.T for s in x])",
        "def features_first(x): return torch.einsum('bsh->bhs', x)",
        "def features_first(x): return x.swapaxes(1, 2).contiguous()",
    ],
    "shape_gym.contiguous": [
        "def merge_heads(x): return x.transpose(1, 2).flatten(2)",
        "def merge_heads(x): return torch.cat(list(x.unbind(1)), -1)",
        "def merge_heads(x): return torch.cat([x[:, n] for n in range(x.shape[1])], dim=-1)",
        """
def merge_heads(x):
    b, n, s, d = x.shape
    return x.transpose(1, 2).contiguous().view(b, s, n * d)
""",
        """
def merge_heads(x):
    b, n, s, d = x.shape
    return x.permute(0, 2, 1, 3).reshape(b, s, -1)
""",
        """
def merge_heads(x):
    b, n, s, d = x.shape
    out = torch.empty(b, s, n * d)
    for h in range(n):
        out[:, :, h * d:(h + 1) * d] = x[:, h]
    return out
""",
    ],
    "shape_gym.broadcasting": [
        "def scale_rows(x, factors): return x * factors[..., None]",
        "def scale_rows(x, factors): return x * factors.unsqueeze(2)",
        "def scale_rows(x, factors): return torch.diag_embed(factors) @ x",
        "def scale_rows(x, factors): return torch.einsum('bij,bi->bij', x, factors)",
        "def scale_rows(x, factors): return (x.mT * factors[:, None]).mT",
        "def scale_rows(x, factors): return x * factors[..., None].expand_as(x)",
        """
def scale_rows(x, factors):
    out = x.clone()
    for b in range(x.shape[0]):
        for i in range(x.shape[1]):
            out[b, i] *= factors[b, i]
    return out
""",
    ],
    "shape_gym.einsum": [
        "def pair_scores(q, k): return torch.einsum('bhqd,bhkd->bhqk', q, k)",
        "def pair_scores(q, k): return torch.einsum('...qd,...kd->...qk', q, k)",
        "def pair_scores(q, k): return q @ k.transpose(-2, -1)",
        "def pair_scores(q, k): return torch.matmul(q, k.mT)",
        "def pair_scores(q, k): return (q[:, :, :, None] * k[:, :, None]).sum(-1)",
        """
def pair_scores(q, k):
    b, h, n, d = q.shape
    out = torch.bmm(q.reshape(b * h, n, d), k.reshape(b * h, -1, d).transpose(1, 2))
    return out.view(b, h, n, -1)
""",
        """
def pair_scores(q, k):
    return torch.stack([torch.stack([a @ c.T for a, c in zip(q[b], k[b])])
                        for b in range(len(q))])
""",
    ],
    "shape_gym.comments": [
        """
def shapes_line_by_line(b, s, i, n, d):
    return [(b, s, n * d), (b, s, n, d), (b, n, s, d), (b, n, s, s), (b, n, s),
            (b, n, s, d), (b, s, n * d), (b, n * d)]
""",
        """
def shapes_line_by_line(b, s, i, n, d):
    return [[b, s, n * d], [b, s, n, d], [b, n, s, d], [b, n, s, s], [b, n, s],
            [b, n, s, d], [b, s, n * d], [b, n * d]]
""",
        """
def shapes_line_by_line(batch_size, seq_len, input_size, num_heads, head_size):
    hidden = num_heads * head_size
    x, w = torch.randn(batch_size, seq_len, input_size), torch.randn(input_size, hidden)
    shapes = []
    q = x @ w
    shapes.append(q.shape)
    q = q.view(batch_size, seq_len, num_heads, head_size)
    shapes.append(q.shape)
    q = q.transpose(1, 2)
    shapes.append(q.shape)
    scores = q @ q.transpose(-2, -1)
    shapes.append(scores.shape)
    shapes.append(scores.max(dim=-1).values.shape)
    mixed = torch.softmax(scores, dim=-1) @ q
    shapes.append(mixed.shape)
    mixed = mixed.transpose(1, 2).reshape(batch_size, seq_len, hidden)
    shapes.append(mixed.shape)
    shapes.append(mixed.mean(dim=1).shape)
    return shapes
""",
    ],
}

LINES = "(b, s, n*d), (b, s, n, d), (b, n, s, d), (b, n, s, s), (b, n, s), (b, n, s, d)"


def program(lines):
    return f"def shapes_line_by_line(b, s, i, n, d):\n    return [{lines}]"


WRONG = {
    "shape_gym.axes": [
        ("axes.batch", "def average_over_tokens(x): return x.mean(0)"),
        ("axes.features", "def average_over_tokens(x): return x.mean(dim=-1)"),
        ("axes.everything", "def average_over_tokens(x): return x.mean()"),
        ("shape_gym.axes.shape", "def average_over_tokens(x): return x.mean(1).squeeze()"),
        ("axes.kept", "def average_over_tokens(x): return x.mean(1, keepdim=True)"),
        ("axes.sum", "def average_over_tokens(x): return x.sum(1)"),
        ("axes.wrong divisor", "def average_over_tokens(x): return x.sum(1) / x.shape[-1]"),
        ("axes.one token", "def average_over_tokens(x): return x[:, 0, :]"),
        ("unanswered", "def average_over_tokens(x): raise NotImplementedError()"),
    ],
    "shape_gym.memory": [
        (
            "memory.column order",
            """
def offset(index, shape):
    place, step = 0, 1
    for i, size in zip(index, shape):
        place, step = place + i * step, step * size
    return place
""",
        ),
        ("memory.no strides", "def offset(index, shape): return sum(index)"),
        ("memory.product", "def offset(index, shape): return math.prod(index)"),
        (
            "memory.dot with shape",
            "def offset(index, shape): return sum(i * s for i, s in zip(index, shape))",
        ),
        (
            "memory.counts from 1",
            """
def offset(index, shape):
    return 1 + torch.arange(math.prod(shape)).view(shape)[tuple(index)].item()
""",
        ),
        (
            "memory.one size only",
            """
def offset(index, shape):
    return sum(i * s for i, s in zip(index, shape[1:])) + index[-1]
""",
        ),
        (
            "memory.own size",
            """
def offset(index, shape):
    return sum(i * math.prod(shape[n:]) for n, i in enumerate(index))
""",
        ),
    ],
    "shape_gym.view": [
        (
            "view.sizes swapped",
            "def split_features(x, num_heads): return x.view(*x.shape[:2], -1, num_heads)",
        ),
        (
            "view.interleaved",
            """
def split_features(x, num_heads):
    return torch.stack([x[..., n::num_heads] for n in range(num_heads)], dim=2)
""",
        ),
        (
            "view.heads before tokens",
            """
def split_features(x, num_heads):
    return x.view(x.shape[0], num_heads, x.shape[1], -1)
""",
        ),
        (
            "view.moved",
            """
def split_features(x, num_heads):
    return x.view(x.shape[0], x.shape[1], num_heads, -1).transpose(1, 2)
""",
        ),
        (
            "view.blocks as columns",
            "def split_features(x, num_heads): return torch.stack(x.chunk(num_heads, -1), -1)",
        ),
        (
            "view.batch lost",
            """
def split_features(x, num_heads):
    return x.view(x.shape[0] * x.shape[1], num_heads, -1)
""",
        ),
        (
            "wrong number of elements",
            "def split_features(x, num_heads): return x.view(2, 4, num_heads, 8)",
        ),
    ],
    "shape_gym.transpose": [
        (
            "transpose.reshaped",
            """
def features_first(x):
    b, s, h = x.shape
    return x.view(b, h, s)
""",
        ),
        ("transpose.all axes", "def features_first(x): return x.T"),
        ("transpose.batch and tokens", "def features_first(x): return x.transpose(0, 1)"),
        ("transpose.batch and features", "def features_first(x): return x.permute(2, 0, 1)"),
        ("transpose.all axes", "def features_first(x): return x.transpose(0, 2)"),
        ("signature", "def features_first(x): return x.transpose()"),
    ],
    "shape_gym.contiguous": [
        (
            "merge.reshaped",
            """
def merge_heads(x):
    b, n, s, d = x.shape
    return x.reshape(b, s, n * d)
""",
        ),
        (
            "merge.interleaved",
            """
def merge_heads(x):
    return torch.stack(list(x.unbind(1)), dim=-1).flatten(2)
""",
        ),
        (
            "view of a non-contiguous tensor",
            """
def merge_heads(x):
    b, n, s, d = x.shape
    return x.transpose(1, 2).view(b, s, n * d)
""",
        ),
        ("merge.not glued", "def merge_heads(x): return x.transpose(1, 2)"),
        ("merge.tokens with features", "def merge_heads(x): return x.flatten(2)"),
        (
            "merge.wrong swap",
            """
def merge_heads(x):
    b, n, s, d = x.shape
    return x.transpose(-2, -1).reshape(b, s, n * d)
""",
        ),
        ("merge.summed", "def merge_heads(x): return x.sum(dim=1)"),
    ],
    "shape_gym.broadcasting": [
        ("broadcasting.shapes line up wrong", "def scale_rows(x, factors): return x * factors"),
        ("broadcasting.columns", "def scale_rows(x, factors): return x * factors.unsqueeze(1)"),
        ("broadcasting.divided", "def scale_rows(x, factors): return x / factors[..., None]"),
        ("broadcasting.added", "def scale_rows(x, factors): return x + factors[..., None]"),
        (
            "broadcasting.summed",
            "def scale_rows(x, factors): return (factors[:, None] @ x).squeeze(1)",
        ),
        (
            "broadcasting.first sequence",
            "def scale_rows(x, factors): return x * factors[0].view(-1, 1)",
        ),
        (
            "shape_gym.broadcasting.input changed",
            "def scale_rows(x, factors): return x.mul_(factors[..., None])",
        ),
    ],
    "shape_gym.einsum": [
        ("einsum.transposed", "def pair_scores(q, k): return k @ q.transpose(-2, -1)"),
        (
            "einsum.heads summed",
            "def pair_scores(q, k): return torch.einsum('bhqd,bhkd->bqk', q, k)",
        ),
        (
            "einsum.batch summed",
            "def pair_scores(q, k): return torch.einsum('bhqd,bhkd->hqk', q, k)",
        ),
        (
            "einsum.heads crossed",
            "def pair_scores(q, k): return torch.einsum('bnqd,bmkd->bnqk', q, k)",
        ),
        (
            "einsum.features crossed",
            "def pair_scores(q, k): return q.sum(-1)[..., None] * k.sum(-1)[:, :, None]",
        ),
        ("einsum.features kept", "def pair_scores(q, k): return q[:, :, :, None] * k[:, :, None]"),
        ("einsum.scaled", "def pair_scores(q, k): return q @ k.mT / math.sqrt(q.shape[-1])"),
        ("shapes do not fit", "def pair_scores(q, k): return q @ k"),
    ],
    "shape_gym.comments": [
        ("comments.not merged", program(LINES + ", (b, s, n, d), (b, n*d)")),
        ("comments.wrong axis averaged", program(LINES + ", (b, s, n*d), (b, s)")),
        ("comments.axis kept", program(LINES + ", (b, s, n*d), (b, 1, n*d)")),
        ("comments.projection", program(LINES.replace("n*d", "i") + ", (b, s, n*d), (b, n*d)")),
        (
            "comments.heads lost",
            program(LINES.replace("(b, n, s, s)", "(b, s, s)") + ", (b, s, n*d), (b, n*d)"),
        ),
        (
            "comments.split order",
            program(LINES.replace("(b, s, n, d)", "(b, s, d, n)") + ", (b, s, n*d), (b, n*d)"),
        ),
        ("shape_gym.comments.length", program(LINES)),
    ],
}


@pytest.mark.parametrize(("task", "place"), [(t, i) for t in RIGHT for i in range(len(RIGHT[t]))])
def test_every_way_to_write_it_right_passes(task, place):
    assert findings(task, RIGHT[task][place], seed=place) == []


@pytest.mark.parametrize("seed", first_of(0, 1))
@pytest.mark.parametrize(("task", "place"), [(t, i) for t in WRONG for i in range(len(WRONG[t]))])
def test_a_wrong_answer_is_named(task, place, seed):
    check, source = WRONG[task][place]
    assert names(task, source, seed) == [check]


def test_an_unnamed_wrong_comment_is_found_by_its_line():
    source = program(
        "(b, s, n*d), (b, s, n, d), (b, n, s, d), (b, b, b, b), (b, n, s), "
        "(b, n, s, d), (b, s, n*d), (b, n*d)"
    )
    (found,) = findings("shape_gym.comments", source)
    assert found.fails and "line 4" in found.message


def test_a_message_about_a_comment_does_not_tell_the_shape():
    source = program("(b,), (b,), (b,), (b,), (b,), (b,), (b,), (b,)")
    (found,) = findings("shape_gym.comments", source)
    assert not any(c.isdigit() for c in found.message.replace("line 1", ""))
