# What stands at the head of a function: names it has for sizes, arguments, and what it returns.

# %% names that the next line takes from the argument | Encoder(units)(x[batch, steps, units])
class Encoder(nn.Module):
    def __init__(self, units):
        super().__init__()
        self.net, self.out = nn.Linear(units, units), nn.Linear(units, units)

    def forward(self, x):
        # x : B x T x D
        B, T, D = x.shape
        return self.after(self.net(x))  # [B, T, D]

    def after(self, y):
        # y : B x D x T  #! false
        B, T, D = y.shape
        return self.out(y)  # [B, T, D]

# %% not where the argument is another by then | Turned(units)(x[batch, steps, units])
class Turned(nn.Module):
    def __init__(self, units):
        super().__init__()
        self.net = nn.Linear(units, units)

    def forward(self, x):
        # x : B x D x T  #! cannot tell
        h = self.net(x)  # [B, T, D]
        x = h.transpose(1, 2)  # [B, D, T]
        B, D, T = x.shape
        return x

# %% above the def | Block(width)(x[batch, seq, width], mask[batch, seq])
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Linear(width, width)

    # x: (batch, seq, width), mask: (batch, seq)
    def forward(self, x, mask):
        return self.left(self.net(x), mask)

    # x: (batch, width, seq), mask: (batch, seq)  #! false
    def left(self, x, mask):
        return x * mask.unsqueeze(-1)  # (batch, seq, width)

# %% rows for what comes in and what goes out | Heads(d_model, num_heads)(q[N, L, d_model]) where d_model=num_heads*head_dim
class Heads(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.d_model, self.num_heads = d_model, num_heads
        self.head_dim = d_model // num_heads

    def forward(self, q):
        return self.concat(self.split(q))

    def split(self, tensor):
        ## input shape: [N, L, d_model]
        ## output shape: [N, L, num_heads, head_dim]  #! false
        N, L, _ = tensor.size()
        out = tensor.view(N, L, self.num_heads, self.head_dim).transpose(1, 2)

        return out

    def concat(self, tensor):
        # input: [N, num_heads, L, head_dim]
        # output: [N, L, d_model]
        N, L = tensor.shape[0], tensor.shape[2]
        return tensor.transpose(1, 2).contiguous().view(N, L, self.d_model)

# %% one of two rows is of a later line | Score(hidden_size)(query[1, batch_size, hidden_size])
class Score(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.net = nn.Linear(hidden_size, hidden_size)

    def forward(self, query):
        # hidden shape == (batch_size, hidden_size)
        # with_an_axis shape == (batch_size, hidden_size, 1)
        query = torch.squeeze(query, 0)
        with_an_axis = torch.unsqueeze(query, 1)  #! false
        return self.net(with_an_axis)  # (batch_size, 1, hidden_size)

# %% each of what is returned by its name | read(x[batch, seq, width], w[batch, 1, seq])
def read(x, w):
    probs = w.softmax(-1)  # [batch, 1, seq]
    context = probs @ x

    # context shape: [batch, 1, width], probs shape: [batch, seq, 1]
    return context, probs  #! false

# %% the steps of a line in another order | Merge(heads, size)(x[batch, heads, seq, size])
class Merge(nn.Module):
    def __init__(self, heads, size):
        super().__init__()
        self.heads, self.size = heads, size

    def forward(self, x):
        batch, heads, seq, size = x.shape  # [batch, heads, seq, size]
        # Unify the heads
        # (batch, seq, heads, size) -> (batch, heads, seq, size) -> (batch, seq, heads * size)
        # for the projection
        x = x.transpose(1, 2).contiguous().view(batch, seq, heads * size)  #! false
        return x

# %% an argument in two words | Reader(width)(user_items[batch, seq, width], other)
class Reader(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Linear(width, width)

    def forward(self, user_items, other):
        # user items: (batch, width, seq)  #! false
        return self.net(user_items)  # (batch, seq, width)

# %% what the lines below make of each | Asked(letters, width)(facts[batch, items, letters], question[batch, letters])
class Asked(nn.Module):
    def __init__(self, letters, width):
        super().__init__()
        self.read, self.ask = nn.Linear(letters, width), nn.Linear(letters, width)

    def forward(self, facts, question):
        # facts.size() = (batch, items, width)
        # question.size() = (batch, 1, width)
        facts = self.read(facts)
        question = self.ask(question).unsqueeze(1)
        return facts * question  # (batch, items, width)
