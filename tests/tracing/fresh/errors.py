"""Programs that stop with an error, and the cause that has to be said of each."""

from tests.tracing.fresh.program import Group

ADD = Group()
add, change = ADD.add, ADD.change

CLASS = """
class Attention(nn.Module):
    def __init__(self, input_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)

    def forward(self, x):
        q = self.q(x)
        k = self.k(x)
        v = self.v(x)
        scores = q @ k.transpose(1, 2)
        scores = scores / k.shape[-1] ** 0.5
        weights = torch.softmax(scores, dim=-1)
        return weights @ v
"""
TASK = "one_head.forward"
change(
    "super forgotten",
    TASK,
    CLASS,
    ("        super().__init__()\n", ""),
    (
        "        self.q = nn.Linear(input_size, hidden)\n",
        "        self.q = nn.Linear(input_size, hidden)  # <-\n",
    ),
    causes=(r"super\(\)\.__init__\(\)",),
)
change(
    "self forgotten",
    TASK,
    CLASS,
    ("        k = self.k(x)\n", "        k = self.k(x)\n        n = hidden  # <-\n"),
    causes=("hidden",),
)
change(
    "self. forgotten before a layer",
    TASK,
    CLASS,
    ("        v = self.v(x)\n", "        value = v(x)  # <-\n"),
    causes=(r"`self\.v`",),
)
change(
    "self is no argument",
    TASK,
    CLASS,
    ("    def forward(self, x):\n", "    def forward(x):  # <-\n"),
    causes=("`self`",),
)
change(
    "a list for a tensor",
    TASK,
    CLASS,
    (
        "        weights = torch.softmax(scores, dim=-1)\n",
        "        weights = [torch.softmax(s, dim=-1) for s in scores]  # <-\n",
    ),
    ("        return weights @ v\n", "        return weights @ v  # <-\n"),
    causes=("list.*torch.stack|torch.stack.*list",),
)
change(
    "the keys are not transposed",
    TASK,
    CLASS,
    ("        scores = q @ k.transpose(1, 2)\n", "        scores = q @ k  # <-\n"),
    causes=("last two axes exchanged",),
)
change(
    "the batch is transposed too",
    TASK,
    CLASS,
    ("        scores = q @ k.transpose(1, 2)\n", "        scores = q @ k.T  # <-\n"),
    causes=(r"all axes|`\.mT`|transpose\(-2, -1\)",),
)
change(
    "values overwritten by their layer",
    TASK,
    CLASS,
    ("        v = self.v(x)\n", "        v = self.v  # <-\n"),
    causes=("layer|module|call",),
)
change(
    "a size that was called",
    TASK,
    CLASS,
    (
        "        scores = scores / k.shape[-1] ** 0.5\n",
        "        scores = scores / k.shape(-1) ** 0.5  # <-\n",
    ),
    causes=(r"brackets|\[\.\.\.\]|shape\[",),
)
change(
    "the root of a number with torch",
    TASK,
    CLASS,
    (
        "        scores = scores / k.shape[-1] ** 0.5\n",
        "        scores = scores / torch.sqrt(k.shape[-1])  # <-\n",
    ),
    causes=("number",),
)
change(
    "a helper that returns nothing",
    TASK,
    CLASS,
    ("        q = self.q(x)\n", "        q = self.project(x)\n"),
    ("        scores = q @ k.transpose(1, 2)\n", "        scores = q @ k.transpose(1, 2)  # <-\n"),
    (
        "    def forward(self, x):\n",
        "    def project(self, x):\n        q = self.q(x)\n\n    def forward(self, x):\n",
    ),
    causes=("`project` returns nothing|None",),
)
change(
    "the softmax without an axis",
    TASK,
    CLASS,
    (
        "        weights = torch.softmax(scores, dim=-1)\n",
        "        weights = torch.softmax(scores)  # <-\n",
    ),
    causes=("dim",),
)
change(
    "queries overwritten",
    TASK,
    CLASS,
    ("        q = self.q(x)\n", "        x = self.q(x)\n        q = x\n"),
    ("        k = self.k(x)\n", "        k = self.k(x)  # <-\n"),
    causes=("overwritten in line 9",),
)
change(
    "the layers' sizes exchanged",
    TASK,
    CLASS,
    (
        "        self.q = nn.Linear(input_size, hidden)\n",
        "        self.q = nn.Linear(hidden, input_size)  # <-\n",
    ),
    ("        q = self.q(x)\n", "        q = self.q(x)  # <-\n"),
    causes=("has shape .* expected",),
)
add(
    "float and bool",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    n = scores.shape[-1]
    future = torch.ones(n, n).triu(1)
    scores = scores.masked_fill(future, float("-inf"))  # <-
    return scores.softmax(-1)
""",
    r"bool",
)
add(
    "a mask in numpy",
    "masks.minus_infinity",
    """
import numpy as np
def mask_scores(scores):
    n = scores.shape[-1]
    future = np.triu(np.ones((n, n)), 1) == 1
    scores = scores.masked_fill(future, -np.inf)  # <-
    return scores.softmax(-1)
""",
    "numpy",
)
add(
    "the view of a transposed tensor",
    "heads.merge",
    """
def merge_heads(t):
    b, h, n, d = t.shape
    return t.transpose(1, 2).view(b, n, h * d)  # <-
""",
    "contiguous|reshape",
)
add(
    "a wrong product of sizes",
    "heads.split",
    """
def split_heads(t, num_heads):
    b, n, h = t.shape
    return t.view(b, n, num_heads, h).transpose(1, 2)  # <-
""",
    r"num_heads|times|numbers",
)
add(
    "the maximum's pair",
    "simple.softmax_stable",
    """
def softmax_stable(scores):
    largest = scores.max(-1, keepdim=True)  # <-
    e = (scores - largest).exp()  # <-
    return e / e.sum(-1, keepdim=True)
""",
    "pair",
)
add(
    "cat without a list",
    "heads.merge",
    """
def merge_heads(t):
    out = t[:, 0]
    for h in range(1, t.shape[1]):
        out = torch.cat(out, t[:, h])  # <-
    return out
""",
    r"list|\(a, b\)|tuple|together",
)
add(
    "cat along sizes that differ",
    "heads.merge",
    """
def merge_heads(t):
    rest = torch.zeros(t.shape[0], t.shape[2] + 1, 1)
    return torch.cat([t[:, 0], rest], dim=-1)  # <-
""",
    r"axis 1|size",
)
add(
    "a notebook's global",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(hidden_size)  # <-
    return torch.bmm(scores.softmax(-1), v)
""",
    "notebook",
)
add(
    "arguments in the wrong order",
    "one_head.batched",
    """
def weights_of(mask, queries, keys):
    return torch.softmax(queries @ keys.mT / queries.shape[-1] ** 0.5, -1)

def batched_attention(q, k, v):
    return weights_of(q, k) @ v  # <-
""",
    r"`keys`|keys",
)
add(
    "bmm without a batch",
    "one_head.scale",
    """
def attention_weights(q, k):
    scores = torch.bmm(q, k.T) / q.shape[-1] ** 0.5  # <-
    return scores.softmax(-1)
""",
    "3|batch",
)
add(
    "an axis lost in a sum",
    "masks.renormalise",
    """
def mask_weights(scores):
    shares = scores.softmax(-1).tril()
    whole = torch.sum(shares, -1)  # <-
    return torch.div(shares, whole)  # <-
""",
    r"`sum` in line 3 took an axis away: with `keepdim=True`",
)
add(
    "a helper that returns nothing, handed on",
    "one_head.batched",
    """
def compare(left, right):
    table = left @ right.mT / right.shape[-1] ** 0.5

def soften(table):
    return table.softmax(-1)  # <-

def batched_attention(q, k, v):
    return soften(compare(q, k)) @ v
""",
    r"`compare` returns nothing",
)
change(
    "another pair of axes is exchanged",
    TASK,
    CLASS,
    (
        "        scores = q @ k.transpose(1, 2)\n",
        "        turned = k.permute(2, 1, 0)\n        scores = q @ turned  # <-\n",
    ),
    causes=(r"had the shape \[2, 3, 13\] before line 12 .* last two have to be exchanged",),
)
change(
    "a matrix that fits as it was",
    TASK,
    CLASS,
    (
        "        v = self.v(x)\n",
        "        v = x @ self.v.weight.T.T + self.v.bias  # <-\n",
    ),
    causes=("fits as it was",),
)
change(
    "an argument of another method",
    TASK,
    CLASS,
    (
        "        scores = scores / k.shape[-1] ** 0.5\n",
        "        scores = scores / hidden ** 0.5  # <-\n",
    ),
    causes=(r"`hidden` is an argument of `__init__` alone: keep it there as `self\.hidden`",),
)
change(
    "a variable of another method",
    TASK,
    CLASS,
    (
        "        super().__init__()\n",
        "        super().__init__()\n        root = hidden ** 0.5\n",
    ),
    (
        "        scores = scores / k.shape[-1] ** 0.5\n",
        "        scores = scores / root  # <-\n",
    ),
    causes=(r"`root` is a variable of `__init__` alone: keep it there as `self\.root`",),
)
change(
    "a layer where its output is needed",
    TASK,
    CLASS,
    (
        "        return weights @ v\n",
        "        return torch.bmm(weights, self.v)  # <-\n",
    ),
    causes=(r"`self\.v` is the layer itself: call it with its input, `self\.v\(\.\.\.\)`",),
)
change(
    "a name that is set only here",
    TASK,
    CLASS,
    (
        "        scores = q @ k.transpose(1, 2)\n",
        "        table = table + q @ k.transpose(1, 2)  # <-\n        scores = table\n",
    ),
    causes=("`table` is set in this function, but not before this line",),
)
add(
    "the loop takes the name of what came in",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    found = []
    for q, b, c in zip(q, k, v):
        found.append((q @ b.T / b.shape[-1] ** 0.5).softmax(-1) @ c)
    return torch.cat(found).reshape(q.shape[0], q.shape[1], c.shape[-1])  # <-
""",
    r"`q` was overwritten in line 3: its sizes are no longer",
)
change(
    "a size of another tensor",
    TASK,
    CLASS,
    (
        "        q = self.q(x)\n",
        "        b, n, wide = x.shape\n        q = self.q(x).reshape(b, n, wide)  # <-\n",
    ),
    causes=(r"`wide` is 7 here, a size of `x` \(line 9\); 13 would fit",),
)
add(
    "a size that is a float",
    "heads.split",
    """
def split_heads(t, num_heads):
    size = t.shape[-1] / num_heads  # <-
    return t.reshape(t.shape[0], t.shape[1], num_heads, size).transpose(1, 2)  # <-
""",
    r"`size` is a float, since `/` in line 2 always gives one",
)
add(
    "an axis is missing in a mask",
    "masks.padding",
    """
def padded_weights(scores, lengths):
    late = torch.arange(scores.shape[-1]) >= lengths.view(-1, 1)  # <-
    scores = torch.where(late, -torch.inf, scores)  # <-
    return scores.softmax(-1)
""",
    r"\[11, 13\] becomes \[11, 1, 13\] or \[11, 13, 1\]|\[11, 13, 1\] or \[11, 1, 13\]",
)
add(
    "two rows of different lengths are compared",
    "masks.padding",
    """
def padded_weights(scores, lengths):
    late = torch.arange(scores.shape[-1]) >= lengths  # <-
    return scores.masked_fill(late, -torch.inf).softmax(-1)
""",
    r"`>=` is given .* one of them needs an axis more",
)
add(
    "letters for axes that are not there",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    a, c = [t.unflatten(-1, (num_heads, -1)) for t in (q, k)]
    table = torch.einsum("bihd,bjhd->bhij", a, k) / c.shape[-1] ** 0.5  # <-
    return table
""",
    r"Its operand 2 is the keys .*it has 3 axes, and the equation 4 letters",
)
add(
    "what append gives",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    found = []
    for a, b, c in zip(q, k, v):
        found = found.append((a @ b.T / b.shape[-1] ** 0.5).softmax(-1) @ c)  # <-
    return torch.stack(found)
""",
    r"`append` changes its list and returns nothing, so that `found` becomes None",
)
add(
    "the largest of Python's own",
    "simple.softmax_stable",
    """
def softmax_stable(scores):
    powers = torch.exp(scores - max(scores))  # <-
    return powers / powers.sum(-1, keepdim=True)
""",
    r"Python's own `max` compares the rows",
)
add(
    "one product for three axes",
    "heads.attend",
    """
def attend(q, k, v, num_heads):
    a, c, w = [t.unflatten(-1, (num_heads, -1)).transpose(1, 2) for t in (q, k, v)]
    table = torch.bmm(a, c.mT) / c.shape[-1] ** 0.5  # <-
    return table
""",
    r"`bmm` takes two tensors of 3 axes each",
)
add(
    "a mask as an index",
    "masks.minus_infinity",
    """
def mask_scores(scores):
    hidden = scores.clone()
    hidden[torch.ones(scores.shape[1:]).triu(1) > 0] = -torch.inf  # <-
    return hidden.softmax(-1)
""",
    r"A mask in an index is laid on the first axes",
)
add(
    "two names for three sizes",
    "one_head.batched",
    """
def batched_attention(q, k, v):
    n, size = k.shape  # <-
    return (q @ k.mT / size ** 0.5).softmax(-1) @ v
""",
    r"`k` has more axes than the 2 names on the left",
)
