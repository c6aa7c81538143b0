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
        "        weights = [torch.softmax(s, dim=-1) for s in scores]\n",
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
    ("        v = self.v(x)\n", "        v = self.v\n"),
    ("        return weights @ v\n", "        return weights @ v  # <-\n"),
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
    causes=("size",),
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
    largest = scores.max(-1, keepdim=True)
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
    whole = torch.sum(shares, -1)
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
