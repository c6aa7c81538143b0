"""Right programs in odd styles: at none of their steps does anything go wrong."""

from tests.tracing.fresh.program import Group
from tests.tracing.fresh.singles import ARENA, BOOK, D2L, NANO, TRANSPOSED

ADD = Group()
add = ADD.add

for what, task, source in (
    ("a module in a module", "one_head.forward", D2L),
    ("scaled within the softmax, hidden in place", "masks.attention", BOOK),
    ("batch and heads in one axis", "heads.attend", TRANSPOSED),
    ("one line a step", "multi_head.output", NANO),
    ("one line a step, causal", "multi_head.mask", NANO),
    ("weights viewed by head", "multi_head.output", ARENA),
    ("weights viewed by head, causal", "multi_head.mask", ARENA),
):
    add(what, task, source)
add(
    "a generator of rows",
    "simple.context",
    """
def context_vectors(inputs):
    def rows():
        for query in inputs:
            yield F.softmax(torch.mv(inputs, query), 0) @ inputs
    return torch.stack([*rows()])
""",
)
add(
    "products added up by hand",
    "simple.matmul",
    """
def simple_attention(x):
    scores = (x.unsqueeze(2) * x.unsqueeze(1)).sum(3)
    return (scores.softmax(2).unsqueeze(3) * x.unsqueeze(1)).sum(2)
""",
)
add(
    "powers of two",
    "simple.softmax_stable",
    """
def softmax_stable(scores):
    shifted = (scores - scores.amax(-1, keepdim=True)) * math.log2(math.e)
    powers = shifted.exp2()
    return powers.div_(powers.sum(-1, keepdim=True))
""",
)
add(
    "the library with a transposed batch",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    q, k, v = (t[:, None] for t in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).squeeze(1)
""",
)
add(
    "keys scaled, transposed twice",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    k = k.div(k.size(2) ** 0.5)
    logits = torch.bmm(k, q.permute(0, 2, 1))
    return torch.bmm(v.mT, logits.softmax(1)).mT
""",
)
add(
    "baddbmm",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    zero = q.new_zeros(q.size(0), q.size(1), k.size(1))
    s = torch.baddbmm(zero, q, k.mT, beta=0, alpha=k.size(-1) ** -0.5)
    return torch.bmm(F.softmax(s, -1), v)
""",
)
add(
    "one wide product cut in three",
    "one_head.forward",
    """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(input_size, hidden) for _ in range(3))

    def forward(self, x):
        W = torch.cat([self.q.weight, self.k.weight, self.v.weight])
        b = torch.cat([self.q.bias, self.k.bias, self.v.bias])
        q, k, v = F.linear(x, W, b).tensor_split(3, -1)
        return (q @ k.mT).div(q.size(-1) ** 0.5).softmax(-1) @ v
""",
)
add(
    "a mask that is added",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    n = scores.shape[-1]
    return (scores + torch.full((n, n), -1e9).triu(1)).softmax(-1)
""",
)
add(
    "row by row, with no mask at all",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    out = torch.zeros_like(scores)
    for i in range(scores.size(1)):
        out[:, i, : i + 1] = F.softmax(scores[:, i, : i + 1], -1)
    return out
""",
)
add(
    "sums that run along",
    "masks.renormalise",
    """
def mask_weights(scores):
    powers = (scores - scores.amax()).exp()
    seen = powers.tril()
    return seen / powers.cumsum(-1).diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
""",
)
add(
    "heads by chunks",
    "heads.split",
    """
def split_heads(t, num_heads):
    return torch.stack(t.chunk(num_heads, dim=-1), dim=1)
""",
)
add(
    "heads by a concatenation",
    "heads.merge",
    """
def merge_heads(t):
    return torch.cat([*t.unbind(1)], -1)
""",
)
add(
    "both gradients by one einsum each",
    "backward.queries_keys",
    """
def grad_queries_keys(grad_scores, q, k):
    g = grad_scores * k.size(-1) ** -0.5
    return torch.einsum("...ij,...jd->...id", g, k), torch.einsum("...ij,...id->...jd", g, q)
""",
)
assert len(ADD.programs) == 20, len(ADD.programs)
