# What a line hands on, what lines below make of it, letters of no one size; shapes told elsewhere.

# %% the shape in which a layer takes it | Pooling(width)(x[batch, seq, width])
class Pooling(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.over = nn.Conv1d(width, 6, 3, padding=1)
        self.out = nn.Linear(6, width)

    def forward(self, x):
        found = self.over(x.permute(0, 2, 1))  # [batch, width, seq]  #! cannot tell
        found = self.out(found.permute(0, 2, 1))  # [batch, seq, width]
        found = found.transpose(0, 1).reshape(x.shape)  # [seq, batch, width]  #! false
        return found

# %% a heading above the lines that make it so | Split(width, heads)(x[batch, seq, width]) where width=heads*4
class Split(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.key, self.value = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        batch, seq, width = x.shape  # x: [batch, seq, width]
        # project K, V -> [batch, heads, seq, size]
        K = self.key(x)  #! cannot tell
        V = self.value(x)  # [batch, seq, width]

        K = K.view(batch, seq, self.heads, self.size).transpose(1, 2)  # [batch, heads, seq, size]
        V = V.view(batch, seq, self.heads, self.size).transpose(1, 2)  # [batch, heads, seq, size]
        return K @ V.mT  # [batch, heads, seq, seq]

# %% the list that the next line stacks | several(x[batch, seq, width], y[batch, seq, width])
def several(x, y):
    # chosen, result shape: [batch, chosen, seq, width]
    both = [x + y, x - y, x * y]  #! cannot tell
    stacked = torch.stack(both, dim=1)
    return stacked.mean(1)  # [batch, seq, width]

# %% what a layer gives on the way | Words(width)(x[batch, width, letters])
class Words(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, x):
        # [batch, width, letters]
        best = self.net(x).max(dim=2)[0]  #! cannot tell
        return best  # [batch, width]

# %% an operation on each number, written with a cross | states(state[batch, width, depth], c[width, depth])
def states(state, c):
    # a step: (batch, width, depth) x (width, depth) -> (batch, width)
    y = torch.sum(state * c.unsqueeze(0), dim=-1)  #! cannot tell
    return y  # (batch, width)

# %% C for the channels of each layer | Layers(channels)(x[B, channels, T]) where C=channels
class Layers(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.one, self.two = nn.Conv1d(channels, 6, 1), nn.Conv1d(6, 4, 1)
        self.back = nn.Conv1d(4, channels, 1)

    def forward(self, x):
        y = self.one(x)  # [B, C, T]  #! cannot tell
        y = torch.relu(y)  # [B, C, T]  #! cannot tell
        y = self.two(y)  # [B, C, T]  #! cannot tell
        y = self.back(y)  # [B, C, T]
        y = y.transpose(1, 2)  # [B, C, T]  #! false
        return y  # [B, T, C]

# %% lists in a list | grid(x[batch, width], rows, cols) where rows=3, cols=5
def grid(x, rows, cols):
    # states: [rows, cols, batch, width]
    states = [[x * (i + j) for j in range(cols)] for i in range(rows)]
    return states[0][1]  # [batch, width]

# %% a letter that other letters of the call explain | Rows(width)(image[B, 3, H * 8, W * 8])
class Rows(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cut = nn.Conv2d(3, width, 8, stride=8)

    def forward(self, image):
        """image: [B, 3, H * 8, W * 8], cut into [B, L=H*W, C] in the end"""
        x = F.max_pool2d(self.cut(image), 2, ceil_mode=True)  # [B, width, rows, cols]
        x = x.flatten(2).transpose(1, 2)  # [B, rows * cols, width]
        weights = torch.softmax(x.sum(-1), dim=-1)  # [B, L]  #! cannot tell
        return weights

# %% a function of the file tells what it gives | Caller(width)(x[batch, seq, width])
class Caller(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = Inner(width)

    def half(self, x):
        """Cuts.

        Returns: [batch, seq, 2]
        """
        return x[..., :2]

    def turned(self, x):  # gives [batch, width, seq]  #! cannot tell
        return x.mT

    def forward(self, x):
        part = self.half(x)
        inner = self.inner(x)
        other = self.turned(x)
        total = part.sum() + inner.sum() + other  #! missing
        return total * 2  #! missing


class Inner(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, 4)

    def forward(self, x):
        return self.lin(x)  # [batch, seq, 4]

# %% the same variable with the same shape, and a remark behind another | again(x[batch, seq, width])
def again(x):
    y = x * 2  # [batch, seq, width]
    y = y + 1
    y = y * 3  # a scale  #! missing
    z = y.mT  #! missing
    return z

# %% a tuple is no tensor, and a copy no other one | kept(x[batch, seq])
def kept(x):
    both = (x[:, :1], x[:, 1:])
    mine = x.detach()
    return both[0] + mine  # [batch, seq]

# %% below a line that is switched off | Points(width)(x[batch, points, width])
class Points(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Conv1d(width, 6, 1)

    def forward(self, x):
        batch, points, width = x.shape
        # x: [batch, points, width]
        x = x.permute(0, 2, 1)
        # x: [batch, width, points]
        x = self.net(x)  #! cannot tell
        # x: [batch, 6, points]
        # x = x.permute(0, 2, 1)
        # x: [batch, points, 6]
        x = x.max(2).values
        # x: [batch, 6]
        return x

# %% what an argument is by itself | Coder(colours)(x[B, colours, T])
class Coder(nn.Module):
    def __init__(self, colours=3, width=16):
        super().__init__()
        self.first = nn.Conv1d(colours, width, 3, padding=1)

    def forward(self, x):
        # Input: (B, 3, T)  #! cannot tell
        y = self.first(x)  #! missing
        z = y.flip(2)  # (B, 16, T)
        z = z.relu()  # (B, 16, T)
        return z.transpose(1, 2)  # (B, 16, T)  #! false

# %% a letter of two sizes in a row | pooled(x[B, N, D], w[D, E])
def pooled(x, w):
    """
    x: (B, N, D)
    """
    y = x @ w  # (B, N, D)  #! cannot tell
    z = y.relu()  # (B, N, D)  #! cannot tell
    z = z.mT  # (B, D, N)  #! cannot tell
    return x.mean(1), z.mean(2)  # (B, D), (B, D)  #! cannot tell

# %% all the others, told as a star | Apart(heads)(q[a, b, n, width]) where width=heads*4
class Apart(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def forward(self, q):
        n, width = q.shape[-2:]
        size = width // self.heads
        q = q.unflatten(-1, (self.heads, size))  # (*, n, heads, size)
        # (*, n, heads, size) -> (*, heads, size, n)
        q = q.transpose(-2, -3)  #! false
        return q.flatten(-2)  # (*, heads, n * size)

# %% another number of the same | beside(x[batch, seq, width])
def beside(x):
    batch, seq, width = x.shape
    y = torch.cat((x, x, x, x), 2)  # [batch, seq, 3 * width]  #! false
    y = torch.cat((y, y), 2)  # [batch, seq, 8 * width]
    return y.sum(1)  # [batch, 8 * width]

# %% a name that words explain | Back(width)(x[T, B, width], back[P, B])
class Back(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Linear(width, width)

    def forward(self, x, back):
        # x: (T, B, width)
        # back: (S, B) where S is the number of all patches  #! cannot tell
        T = x.shape[0]
        back = torch.cat((back[:1], back))  # (S, B)
        y = back.unsqueeze(-1) + x[:1]  # (S, B, width)
        y = self.net(y)  # (S, B, width)
        return y[1:]  # (S - 1, B, width)

# %% a product, told of each item | Mixed(width)(x[batch, tokens, width])
class Mixed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        h = x.flip(1)  # (batch, tokens, width)
        h = h.relu()  # (batch, tokens, width)
        return self.out(h)  # (tokens, width) * (width, width)  #! cannot tell

# %% one letter more | Cut(width, num_heads)(x[B, T, width]) where width=num_heads*head_dim
class Cut(nn.Module):
    def __init__(self, width, num_heads):
        super().__init__()
        self.num_heads, self.head_size = num_heads, width // num_heads
        self.k, self.q = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        B, T, _ = x.shape
        k = self.k(x).view(B, T, self.num_heads, self.head_size)  # (B, T, heads, head_dim)
        q = self.q(x).view(B, T, self.num_heads, self.head_size)  # (B, T, heads, heads_dim)
        return (q * k).sum(-1)  # (B, T, heads)

# %% what is only added keeps sizes apart | near(x[B, 3, N], k); Less(nkept)(y[B, N]) where N=nkept+rest
def near(x, k):
    far = (x.unsqueeze(3) - x.unsqueeze(2)).norm(dim=1)  # [B, N, N]
    places = far.topk(k, largest=False).indices  # [B, N, k]
    table = x.unsqueeze(3).expand(*x.shape, k)  # [B, xyz, n_kept, k]
    return table * places.unsqueeze(1)  # [B, 3, N, k]

class Less(nn.Module):
    def __init__(self, nkept):
        super().__init__()
        self.nkept = nkept

    def forward(self, y):
        return y[:, : self.nkept]  # [B, nkept]

# %% a length that has a longer name | Writer(width)(x[batch, length, width], max_length)
class Writer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Linear(width, width)

    def forward(self, x, max_length):
        h = self.net(x)  # (batch, length, width)
        h = h.relu()  # (batch, length, width)
        steps, last = [], h[:, 0]  # [(batch, width)]  #! cannot tell
        while len(steps) < max_length:
            last = self.net(last)  # (batch, width)
            steps.append(last)
        return torch.stack(steps, 1)  # (batch, length, width)  #! cannot tell

# %% numbers in a sentence, and what a docstring returns | Halves()(x[30, 200, 128])
class Halves(nn.Module):
    def forward(self, x):
        """returns a tensor (30, 200, 64)"""
        a, b = x.chunk(2, 2)  # both halves, each are 30 x 200 x 64  #! cannot tell
        return a + b
