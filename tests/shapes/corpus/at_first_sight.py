"""Names near to others, steps, slices and lengths that honest comments may leave open."""

# %% a mark, a digit or a letter behind a name makes another name | search(start[batch_size, 1], num_beams, Head(hidden, vocab_size))
class Head(nn.Module):
    def __init__(self, hidden, vocab_size):
        super().__init__()
        self.table = nn.Embedding(50, hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.out = nn.Linear(3 * hidden, vocab_size)

    def forward(self, words):
        h = self.table(words)  # batch_size' x 1 x hidden
        h = self.qkv(h)  # batch_size' x 1 x hidden3
        h = h.tanh()  # batch_size' x 1 x hidden3
        return self.out(h)[:, -1]  # batch_size' x vocab_size


def search(start, num_beams, head):
    batch_size = start.size(0)
    words = start.long().repeat_interleave(num_beams, 0)  # (batch_size', 1)
    scores = head(words)  # (batch_size′, vocab_size)
    best = scores.topk(num_beams, dim=1).values  # batch_size' x num_beams
    turned = best.mT  # batch_size' x num_beams  #! false
    rows = best.view(batch_size, -1)  # batch_size x num_beams'
    again = rows.view(batch_size, num_beams, num_beams)  # batch_size x num_beams  #! false
    return turned, again


# %% a word that people write is no slip for another one | Patches(patch_size, width, num_classes)(img[b, 3, 2 * patch_size, 2 * patch_size])
class Patches(nn.Module):
    def __init__(self, patch_size, width, num_classes):
        super().__init__()
        self.cut = nn.Conv2d(3, width, patch_size, patch_size)
        self.head = nn.Linear(width, num_classes)

    def forward(self, img):
        x = self.cut(img).flatten(2)  # (batch_size, width, num_patches)
        x = x.mT  # (batch_size, num_patches, width)
        y = x.flip(1)  # (batch_size, width, num_patches)  #! false
        x = torch.cat((x, y), dim=1)  # (batch_size, 2 * num_patches, width)
        return self.head(x.mean(1))  # (batch_size, num_classes)


# %% two shapes side by side behind a product | Masked(width, hidden)(x[batch, seq, width], words[batch, seq].long())
class Masked(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = nn.Linear(width, hidden)

    def forward(self, x, words):
        h = self.up(x)  # (batch, seq, hidden)
        h = h * (words != 0).float().unsqueeze(-1)  # (batch, seq, 2e) (batch, seq, 1)  #! cannot tell
        g = h * words.unsqueeze(-1)  # (batch, seq, hidden) (batch, seq, 1)
        g = g.relu()  # (batch, hidden, seq)  #! false
        return h + g  # (batch, seq, hidden)


# %% a chain above a line that goes on from there | Join(hidden, heads)(x[batch, seq, hidden])
class Join(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(hidden, heads * 8)
        self.out = nn.Linear(heads * 8, hidden)

    def forward(self, x):
        batch, seq, hidden = x.shape
        # (batch, seq, hidden) --> (batch, seq, heads * 8)
        q = self.q(x)
        # (batch, seq, heads * 8) --> (batch, seq, heads, 8) --> (batch, heads, seq, 8)
        q = q.view(batch, seq, self.heads, 8).transpose(1, 2)
        # (batch, heads, seq, 8) --> (batch, seq, heads, 8)
        y = q.transpose(1, 2).contiguous().view(batch, seq, -1)  #! cannot tell
        # (batch, seq, heads * 8) --> (batch, hidden, seq)
        y = self.out(y)  #! false
        return y  # (batch, seq, hidden)


# %% a slice of one, and a slice of at most so many | Decoder(hidden, vocab_size, tgt_len - 1)(target[tgt_len, b].ints(vocab_size), start[b, hidden])
class Decoder(nn.Module):
    def __init__(self, hidden, vocab_size, most):
        super().__init__()
        self.most = most
        self.table = nn.Embedding(vocab_size, hidden)
        self.cell = nn.GRUCell(hidden, hidden)

    def forward(self, target, start):
        target = target[:-1]  # the last word is not read  #! missing
        rows = 2 * self.table(target)  # (tgt_len, b, hidden)  #! cannot tell
        wrong = rows.relu()  # (b, tgt_len, hidden)  #! false
        found = []
        for row in rows:
            start = self.cell(row, start)  # (b, hidden)
            found.append(start)
        both = 2 * torch.stack(found)  # (tgt_len, b, hidden)  #! cannot tell
        turned = both.transpose(0, 1)  # (tgt_len, b, hidden)  #! false
        return turned, wrong


# %% one less that has a name | Shifted(hidden, vocab_size)(words[b, seq_len].ints(vocab_size))
class Shifted(nn.Module):
    def __init__(self, hidden, vocab_size):
        super().__init__()
        self.table = nn.Embedding(vocab_size, hidden)
        self.out = nn.Linear(hidden, vocab_size)

    def forward(self, words):
        b, seq_len = words.shape
        x = self.table(words[:, :-1])  # (b, seq_len - 1, hidden)
        n = x.size(1)
        y = 2 * x  # (b, seq_len, hidden)  #! false
        y = y.relu()  # (b, n, hidden)
        return self.out(x + y)  # (b, seq_len - 1, vocab_size)


# %% at most so many | go_on(Table(width, vocab_size), text[b, t].ints(vocab_size), context + t)
class Table(nn.Module):
    def __init__(self, width, vocab_size):
        super().__init__()
        self.table = nn.Embedding(vocab_size, width)
        self.out = nn.Linear(width, vocab_size)

    def forward(self, x):
        return self.out(self.table(x))  # (b, t, vocab_size)


def go_on(model, text, most):
    last = text[:, -most:]  # (b, most)  #! cannot tell
    scores = model(last)  # (b, most, vocab_size)  #! cannot tell
    scores = scores[:, -1]  # (b, vocab_size)
    p = scores.softmax(-1)  # (b, vocab_size)
    best = p.topk(2).indices  # (b, vocab_size)  #! false
    return torch.cat((text, best), dim=1)  # (b, t + 2)


# %% one word for the lengths of two arguments | Attend(hidden, heads)(q[b, t, hidden], k[b, more, hidden], v[b, more, hidden])
class Attend(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.w_q = nn.Linear(hidden, hidden * heads)
        self.w_k = nn.Linear(hidden, hidden * heads)
        self.w_v = nn.Linear(hidden, hidden * heads)
        self.out = nn.Linear(hidden * heads, hidden)

    def forward(self, q, k, v):
        query = self.w_q(q)  # (b, seq_len, hidden * heads)
        query = query.relu()  # (b, seq_len, hidden * heads)
        key = self.w_k(k)  # (b, seq_len, hidden * heads)  #! cannot tell
        value = self.w_v(v)  # (b, seq_len, hidden * heads)  #! cannot tell
        turned = query.flip(1).mT  # (b, seq_len, hidden * heads)  #! false
        query = query + turned.mT  # (b, seq_len, hidden * heads)
        p = (query @ key.mT).softmax(-1)  # (b, seq_len, seq_len)  #! cannot tell
        return self.out(p @ value)  # (b, seq_len, hidden)


# %% two words for the lengths of two arguments | Cross(hidden)(q[b, t, hidden], kv[b, more, hidden])
class Cross(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.w_q = nn.Linear(hidden, hidden)
        self.w_k = nn.Linear(hidden, hidden)

    def forward(self, q, kv):
        query = self.w_q(q)  # (b, seq_len, hidden)
        key = self.w_k(kv)  # (b, mem_len, hidden)
        key = key.relu()  # (b, mem_len, hidden)
        value = kv.sigmoid()  # (b, seq_len, hidden)  #! false
        query = query.tanh()  # (b, seq_len, hidden)
        return query @ key.mT, value  # (b, seq_len, mem_len), (b, mem_len, hidden)


# %% the heads are part of the batch that a function is given | Fold(hidden, heads)(x[batch_size, seq_len, 2 * hidden])
class Fold(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.up = nn.Linear(2 * hidden, heads * hidden)

    @staticmethod
    def weights(q, k):
        width = q.size(-1)
        scores = q @ k.mT / width**0.5  # (batch_size, seq_len, seq_len)  #! cannot tell
        return scores.softmax(-1)  # (batch_size, seq_len, seq_len)  #! cannot tell

    def forward(self, x):
        batch_size, seq_len, _ = x.shape
        h = self.up(x)  # (batch_size, seq_len, heads * hidden)
        h = h.view(batch_size, seq_len, self.heads, -1)  # (batch_size, seq_len, heads, hidden)
        h = h.transpose(1, 2)  # (batch_size, heads, seq_len, hidden)
        h = h.flatten(0, 1)  # (batch_size * heads, seq_len, hidden)
        p = self.weights(h, h)  # (batch_size, seq_len, seq_len)  #! false
        return p @ h  # (batch_size * heads, seq_len, hidden)


# %% told under a condition; an underscore for a comma | Scores(width)(q[batch_size, seq_len, width], k[batch_size, more, width])
class Scores(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w_q = nn.Linear(width, width)

    def forward(self, q, k):
        batch_size, _, width = q.shape

        # first (batch, seq_len, width) -> (batch_ seq_len, width)
        q = self.w_q(q)  #! cannot tell
        q = q.relu()  # (batch, seq_len, width)
        q = q.tanh()  # (batch, seq_len, width)
        k = k.relu()  # (batch, key_len, width)
        k = k.tanh()  # (batch, key_len, width)

        # if query shape = (batch, seq_len, width) the result shape = (batch, seq_len, seq_len)
        scores = q @ k.mT  #! cannot tell

        # the result shape = (batch, seq_len, seq_len)
        total = scores.softmax(-1)  #! false
        return total.mT @ q  # (batch, key_len, width)


# %% what the branch that did not run makes | Fast(num_heads, size)(x[b, t, num_heads * size])
class Fast(nn.Module):
    def __init__(self, num_heads, size, at_once=True):
        super().__init__()
        self.heads, self.size, self.at_once = num_heads, size, at_once

    def forward(self, x):
        b, t, _ = x.shape
        q = x.view(b, t, self.heads, self.size).mT  # (b, t, size, num_heads)
        q = q.permute(0, 3, 1, 2)  # (b, num_heads, t, size)

        # all with all: (b, num_heads, t, size) x (b, num_heads, size, t) -> (b, num_heads, t, t)
        if self.at_once:
            # in one call, which is quicker
            out = F.scaled_dot_product_attention(q, q, q)
        else:
            scores = q @ q.mT / self.size**0.5
            out = scores.softmax(-1) @ q
        return out.transpose(1, 2)  # (b, num_heads, t, size)  #! false
