"""Notations that are not read, and comments about other tensors: nothing is asked, none accused."""

# %% rows in any script | Net(width, heads)(x[batch, length, width]) where width=heads*part
class Net(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.heads = heads

    def forward(self, x):
        y = self.fc(x)  # 样本数 × 词数 × 特征数  #! cannot tell
        y = self.fc(y)  # (문장 수, 단어 수, 특성 수)  #! cannot tell
        y = self.fc(y)  # テンソルは(文数, 単語数, 8)になる  #! cannot tell
        y = self.fc(y)  # [пример x слово x признак]  #! cannot tell
        y = self.fc(y)  # (#docs, #terms, #traits)  #! cannot tell
        y = self.fc(y)  # (doc-count) x (term-count) x (trait-count)  #! cannot tell
        y = self.fc(y)  # 48 × 12 × 256  #! cannot tell
        y = self.fc(y)  # one more layer. 48x12x256  #! cannot tell
        y = self.fc(y)  # one more layer. NLE  #! cannot tell
        y = self.fc(y)  # N/L/E  #! cannot tell
        y = self.fc(y)  # its shape does not change  #! cannot tell
        y = self.fc(y)  # like x  #! cannot tell
        y = self.fc(y)  # doc_shape, (traits,)  #! cannot tell
        y = self.fc(y)  # minibatch of size 48, feature dimension 256  #! cannot tell
        y = self.fc(y)  # 再做一次线性变换  #! missing
        y = self.fc(y)  # ещё один слой, затем активация  #! missing
        y = self.fc(y)  # one more layer (Smith, 2019)  #! missing
        y = self.fc(y)  # runs in O(n log n)  #! missing
        y = self.fc(y)  # first the words, then the layers  #! missing
        return y



# %% a name beside another one | pool(x[n_points, dim], y[kernels, dim])
def pool(x, y):
    # all pairs [n_points, n_kpoints, dim]
    d = x[:, None] - y[None]

    # their squares [n_points, n_kpoints]
    s = d.pow(2).sum(-1)

    # those that are near [n_points, n_kpoints]
    w = s.softmax(-1)

    # one row each [n_points, dim]
    return w @ y



# %% other tensors than the one that is made | Layer(width, heads)(x[batch_size, seq_len, width]) where width=heads*part
class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.q = nn.Linear(width, width)
        self.heads = heads
        self.part = width // heads

    def forward(self, x):
        batch_size, seq_len, width = x.shape
        heads, part = self.heads, self.part
        y = self.q(x).view(batch_size, seq_len, heads, part)  # cut it up, then (batch_size, heads, seq_len, part)  #! cannot tell
        y = y.transpose(1, 2)  # without heads: [batch_size, seq_len, width]  #! cannot tell
        s = y @ y.transpose(2, 3)  # [batch_size, heads, seq_len, seq_len]
        p = s.softmax(-1)  # p[0] is [heads, seq_len, seq_len]  #! cannot tell
        o = p @ y  # o.transpose(1, 2) is [batch_size, seq_len, heads, part]  #! cannot tell
        o = o.transpose(1, 2)  # prev. shape [batch_size, heads, seq_len, part]  #! cannot tell
        o = o.reshape(batch_size, seq_len, width)  # [batch_size, seq_len, heads, part] with the heads apart  #! cannot tell
        return o  # (batch_size, seq_len, width)


# %% an operand that is made on its line, and the size of a name | Scale(chan, width)(x[batch, chan, width], mem[batch, keys, width])
class Scale(nn.Module):
    def __init__(self, chan, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(chan))
        self.proj = self.last_ = nn.Linear(width, width)

    def forward(self, x, mem):
        """
        x (torch.Tensor): the series, of shape (*, chan, *, width).
        """
        x = x * self.gain.unsqueeze(0).unsqueeze(-1)  # Reshape: (1, chan, 1)  #! cannot tell
        x = x + self.gain.view(1, -1, 1)  # (1, chan, 1)  #! cannot tell
        y = self.proj(x)  # y.size() = (batch, chan, width)
        z = self.proj(y)  # z.size() = (batch, width, chan)  #! false
        flat = z.reshape(-1)  # (batch * chan * width)
        half = self.last_(z)  #! missing
        again = flat.reshape(*x.shape)  # reshape to shape of x  #! cannot tell
        return again.clamp_(0, 1)


# %% a line for each tensor | scores(q[batch, rows, width], k[batch, cols, width])
def scores(q, k):
    batch, rows, width = q.shape
    cols = k.shape[1]
    # q shape: (batch, rows, width)
    # k shape: (batch, cols, width)
    # a shape: (batch, rows, cols)
    a = q @ k.mT
    b = a.softmax(-1)  # (batch, rows, cols)
    return b @ k  # (batch, rows, width)


# %% a line for each tensor, and one is wrong | slipped(q[batch, rows, width], k[batch, cols, width])
def slipped(q, k):
    batch, rows, width = q.shape
    cols = k.shape[1]
    # q shape: (batch, rows, width)
    # k shape: (batch, cols)
    # a shape: (batch, rows, cols)
    a = q @ k.mT  #! false
    b = a.softmax(-1)  # (batch, rows, cols)
    return b @ k  # (batch, rows, width)


# %% a label that is no name of the code | looked(q[batch_size, heads, q_len, width], k[batch_size, heads, k_len, width])
def looked(q, k):
    # atten_scores: [batch_size, heads, q_len, k_len]
    scores = q @ k.mT
    # atten_probs: [batch_size, q_len, k_len, heads]
    probs = scores.softmax(-1)  #! false
    # probs_of_all: [batch_size, heads, q_len]
    total = probs.sum(-1)
    # q_after: [batch_size, heads, k_len, q_len]
    back = probs.mT
    return back.sum() + total.sum()  # scalar


# %% a label that is no name of the code, above the first line | one(sources[batch_size, seq_len, hidden])
def one(sources):
    # x: (batch_size, hidden)

    sources = sources.relu()  #! false
    sources = sources + 1
    sources = sources * 2  # (batch_size, seq_len, hidden)
    return sources.tanh()  # (batch_size, seq_len, hidden)


# %% a label of what another branch makes | turned(x[batch_size, seq_len, hidden], None)
def turned(x, w=None):
    if w is not None:
        rows = (x @ w).transpose(0, 1)  # [seq_len, batch_size, hidden]  #! cannot tell
        return rows

    # rows -> [seq_len, batch_size, hidden]

    y, most = x.relu(), x.amax(1)  # [batch_size, seq_len, hidden], [batch_size, hidden]
    return y.sum() + most.sum()


# %% a label of one of those that are returned | both(x[batch_size, seq_len, hidden], w[hidden, width])
def both(x, w):
    probs = (x @ x.mT).softmax(-1)  # [batch_size, seq_len, seq_len]
    y = probs @ x @ w  # [batch_size, seq_len, width]

    # y shape: [batch_size, width, seq_len]
    return y, probs  #! false


# %% arguments that are told with what made them | read(query[batch_size, 1, hidden], K[batch_size, seq_len, width], V[batch_size, seq_len, hidden], w[hidden, width])
def read(query, K, V, w):
    # query: (batch_size, 1, hidden)
    # K = WK(key): (batch_size, seq_len, width)
    # V = WV(value): (seq_len, hidden)  #! false

    probs = (query @ w @ K.mT).softmax(-1)  # (batch_size, 1, seq_len)
    return probs @ V  # (batch_size, 1, hidden)


# %% an argument that is called input | layer(input[batch_size, seq_len, hidden], w[hidden, width])
def layer(input, w):
    # input shape (batch_size, hidden, seq_len)  #! false
    # output shape (batch_size, seq_len, width)

    y = input @ w  # (batch_size, seq_len, width)
    return y.relu()  # (batch_size, seq_len, width)


# %% words before an arrow tell of the way | spread(x[batch_size, seq_len, hidden], w[heads, hidden])
def spread(x, w):
    # the same for every head -> a tensor of shape (batch_size, heads, hidden)
    y = x[:, None] * w[:, None]  #! false
    y = y.relu()  # (batch_size, heads, seq_len, hidden)
    return y.sum(1)  # (batch_size, seq_len, hidden)


# %% a shape that none of several results has | heads(x[batch_size, seq_len, hidden], w[hidden, width])
def attend(x, w):
    probs = (x @ x.mT).softmax(-1)  # (batch_size, seq_len, seq_len)
    return probs @ x @ w, probs  # (batch_size, seq_len, width), (batch_size, seq_len, seq_len)


def heads(x, w):
    first = attend(x, w)  # (batch_size, seq_len, hidden)  #! cannot tell
    second = attend(x, w)  # (batch_size, width, width)  #! false
    third = attend(x, w)  # (batch_size, seq_len, width)  #! cannot tell
    return first[0] + second[0] + third[0]  # (batch_size, seq_len, width)
