"""Comments on the arguments of a function, and comments that more than one line may be meant by."""

# %% labels under the head of a function | pool(x[batch_size, seq_len, hidden], keep[batch_size, seq_len].bool())
def pool(x, keep):
    # x: [batch_size, seq_len, hidden]
    # keep: [seq_len, batch_size]  #! false
    weights = keep.float()[..., None]  # [batch_size, seq_len, 1]
    total = (x * weights).sum(1)  # [batch_size, hidden]
    return total / weights.sum(1)  # [batch_size, hidden]


# %% labels of several kinds | mix(query[batch_size, q_len, hidden], memory[batch_size, k_len, hidden])
def mix(query, memory):
    # query = (batch_size, q_len, hidden)
    # |memory| : (batch_size, hidden)  #! false

    scores = query @ memory.mT  # (batch_size, q_len, k_len)
    return scores.softmax(-1) @ memory  # (batch_size, q_len, hidden)


# %% a number for what comes in | look(ids[a, b].long(), table[n, d])
def look(ids, table):
    # ids: (1)  #! cannot tell
    rows = table[ids.clamp(0, 1)]  # (a, b, d)
    return rows.sum(1)  # (a, d)


# %% one argument in each line of the head | turn(x[batch_size, seq_len, hidden], w[hidden, width])
def turn(
    x,  # [batch_size, seq_len, hidden]
    w,  # [width, hidden]  #! false
):
    y = x @ w  # [batch_size, seq_len, width]
    return y.mT  # [batch_size, width, seq_len]


# %% a label of what the first line changes | flat(x[batch_size, seq_len, hidden])
def flat(x):
    # x: [batch_size * seq_len, hidden]
    x = x.flatten(0, 1)
    x = x.relu()  # [batch_size * seq_len, hidden]
    return x


# %% above a paragraph, and nowhere true | steps(x[batch_size, seq_len, hidden], w[hidden, width])
def steps(x, w):
    # [batch_size, width, seq_len]
    y = x @ w  #! false
    z = y.relu()
    z = z + 1
    # [batch_size, width]
    z = z.mean(1)
    return z


# %% true of another call | area(a[m, 4]); area(a[batch_size, m, 4])
def area(a):
    wide = a[..., 2] - a[..., 0]  # [batch_size, m]  #! cannot tell
    tall = a[..., 3] - a[..., 1]  # [batch_size, m]  #! cannot tell
    return wide * tall  # [batch_size, m]  #! cannot tell


# %% one length for two that are alike | heads(q[batch_size, q_len, hidden], k[batch_size, k_len, hidden], w[hidden, hidden])
def heads(q, k, w):
    q = torch.matmul(q, w)  # (batch_size, T, hidden)  #! cannot tell
    k = torch.matmul(k, w)  # (batch_size, T, hidden)
    k = torch.relu(k)  # (batch_size, T, hidden)
    k = torch.tanh(k)  # (batch_size, T, hidden)
    return q @ k.mT  #! missing


# %% two shapes above the two lines that make them | turned(a[n, h, 1], b[n, h, 1])
def turned(a, b):
    # the first is (n, h, 1)
    a = a * 2
    # the second is (n, h, 1)
    b = b * 2
    # both are summed in the end: (n, h, 1)
    c = a + b

    # first shape = (h, n, 1) and second shape = (h, 1, n)
    a = a.transpose(0, 1)  #! cannot tell
    b = b.permute(1, 2, 0)
    return a + b  # (h, n, n)
