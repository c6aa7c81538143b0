"""In the manner of well-known public code: the letters and the habits, in code of our own."""

# %% after nanoGPT | CausalSelfAttention(Config(n_embd=n_embd, n_head=n_head, block_size=block_size))(x[batch, time, n_embd]) where n_embd = n_head * head
class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.to_qkv = nn.Linear(config.n_embd, 3 * config.n_embd, bias=False)
        self.to_out = nn.Linear(config.n_embd, config.n_embd)
        self.n_head, self.n_embd = config.n_head, config.n_embd
        tri = torch.ones(config.block_size, config.block_size).tril()
        self.register_buffer("tri", tri.view(1, 1, config.block_size, config.block_size))

    def forward(self, x):
        B, T, C = x.size()  # batch, sequence length, channels (n_embd)
        q, k, v = self.to_qkv(x).split(self.n_embd, dim=2)  # (B, T, C) each
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)  # (B, nh, T, hs)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)  # (B, nh, T, hs)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)  # (B, nh, hs, T)  #! false
        # every token against every token; (B, nh, T, hs) x (B, nh, hs, T) -> (B, nh, T, T)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.tri[:, :, :T, :T] == 0, float("-inf"))  # (B, nh, T, T)
        att = F.softmax(att, dim=-1)  # (B, nh, T, hs)  #! false
        y = att @ v  # (B, nh, T, T) x (B, nh, T, hs) -> (B, nh, T, hs)
        y = y.transpose(1, 2).contiguous().view(B, T, C)  # (B, T, nh * hs)
        return self.to_out(y)  # (B, T, C)


# %% after a book that builds a model from scratch | MultiHead(d_in, d_out, context_length, num_heads)(x[b, num_tokens, d_in]) where d_out = num_heads * head_dim
class MultiHead(nn.Module):
    def __init__(self, d_in, d_out, context_length, num_heads):
        super().__init__()
        self.d_out = d_out
        self.num_heads = num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out)
        self.W_key = nn.Linear(d_in, d_out)
        self.W_value = nn.Linear(d_in, d_out)
        self.out_proj = nn.Linear(d_out, d_out)
        self.register_buffer("mask", torch.triu(torch.ones(context_length, context_length), diagonal=1))

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        keys = self.W_key(x)  # Shape: (b, num_tokens, d_out)
        queries = self.W_query(x)  # Shape: (b, num_tokens, d_in)  #! false
        values = self.W_value(x)  # Shape: (b, num_tokens, d_out)

        # The last dimension is unrolled: (b, num_tokens, d_out) -> (b, num_tokens, num_heads, head_dim)
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim)
        values = values.view(b, num_tokens, self.num_heads, self.head_dim)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim)

        # Then heads come first: (b, num_tokens, num_heads, head_dim) -> (b, num_heads, num_tokens, head_dim)
        keys = keys.transpose(1, 2)
        queries = queries.transpose(1, 2)
        values = values.transpose(1, 2)

        # Dot products of every head, (b, num_heads, num_tokens, num_tokens)
        scores = queries @ keys.transpose(2, 3)
        hide = self.mask.bool()[:num_tokens, :num_tokens]  # (num_tokens, num_tokens)
        scores.masked_fill_(hide, -torch.inf)  # (b, num_heads, num_tokens, num_tokens)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)  # (b, num_heads, num_tokens, num_tokens)

        # Shape: (b, num_tokens, num_heads, head_dim)
        context = (weights @ values).transpose(1, 2)
        # Heads side by side, where self.d_out = self.num_heads * self.head_dim
        context = context.contiguous().view(b, num_tokens, self.d_out)  #! missing
        context = self.out_proj(context)  # (b, num_heads, d_out)  #! false
        return context


# %% products written below, as in a notebook | MultiHead(d_in, d_out, num_heads)(x[b, num_tokens, d_in]) where d_out = num_heads * head_dim
class MultiHead(nn.Module):
    def __init__(self, d_in, d_out, num_heads):
        super().__init__()
        self.d_out, self.num_heads, self.head_dim = d_out, num_heads, d_out // num_heads
        self.qkv = nn.Linear(d_in, 3 * d_out)
        self.proj = nn.Linear(d_out, d_out)

    def forward(self, x):
        b, num_tokens, d_in = x.shape

        # (b, num_tokens, d_in) --> (b, num_tokens, 3 * d_out)
        qkv = self.qkv(x)

        # (b, num_tokens, 3 * d_out) --> (b, num_tokens, 3, num_heads, head_dim)
        qkv = qkv.view(b, num_tokens, 3, self.num_heads, self.head_dim)

        # (b, num_tokens, 3, num_heads, head_dim) --> (3, b, num_heads, num_tokens, head_dim)
        qkv = qkv.permute(2, 0, 3, 1, 4)

        # (3, b, num_heads, num_tokens, head_dim) -> 3 times (b, num_tokens, num_heads, head_dim)
        queries, keys, values = qkv.unbind(0)  #! false

        # (b, num_heads, num_tokens, head_dim) @ (b, num_heads, head_dim, num_tokens) => (b, num_heads, num_tokens, num_tokens)
        scores = queries @ keys.transpose(-2, -1) / self.head_dim**0.5
        weights = torch.softmax(scores, dim=-1)  # (b, num_heads, num_tokens, num_tokens)

        context = weights @ values
        # (b, num_heads, num_tokens, num_tokens) @ (b, num_heads, num_tokens, head_dim) => (b, num_heads, num_tokens, head_dim)

        context = context.transpose(1, 2)
        # (b, num_heads, num_tokens, head_dim) => (b, num_tokens, num_heads, head_dim)

        context = context.reshape(b, num_tokens, self.d_out)
        # (b, num_tokens, num_heads, head_dim) => (b, num_tokens, d_out)
        return self.proj(context)  # (b, num_tokens, d_out)


# %% after the annotated transformer | MultiHeaded(h, d_model)(x[nbatches, seq, d_model]) where d_model = h * d_k
class MultiHeaded(nn.Module):
    def __init__(self, h, d_model):
        super().__init__()
        self.d_k = d_model // h
        self.h = h
        self.linears = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, x):
        """x: [nbatches, seq, d_model]"""
        nbatches = x.size(0)
        # 1) all projections in a batch, d_model => h x d_k
        query, key, value = [
            layer(x).view(nbatches, -1, self.h, self.d_k).transpose(1, 2)
            for layer in self.linears[:3]
        ]  # [nbatches, h, seq, d_k]
        # 2) attention on all of them
        scores = query @ key.transpose(-2, -1) / math.sqrt(self.d_k)  # [nbatches, h, seq, seq]
        weights = scores.softmax(dim=-1)  # [nbatches, h, seq, seq]
        x = weights @ value  # [nbatches, seq, h, d_k]  #! false
        # 3) heads side by side, and a last layer
        x = x.transpose(1, 2).contiguous().view(nbatches, -1, self.h * self.d_k)  # [nbatches, seq, h * d_k]
        return self.linears[-1](x)  # [nbatches, seq, d_model]


# %% letters under each other, einops | Attention(dim, heads, dim_head)(x[b, n, dim])
class Attention(nn.Module):
    def __init__(self, dim, heads, dim_head):
        super().__init__()
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_qkv = nn.Linear(dim, dim_head * heads * 3, bias=False)
        self.to_out = nn.Linear(dim_head * heads, dim)

    def forward(self, x):
        b, n, _ = x.shape
        h = self.heads
        qkv = self.to_qkv(x).chunk(3, dim=-1)  # b n (h d)
        q, k, v = (t.view(b, n, h, -1).transpose(1, 2) for t in qkv)  # b n (h d) -> b h n d
        dots = q @ k.transpose(-1, -2) * self.scale  # b h n n
        attn = dots.softmax(dim=-1)  # b h n d  #! false
        out = attn @ v  # b h n d
        out = out.transpose(1, 2).flatten(2)  # b h n d -> b n (h d)
        return self.to_out(out)  # b n dim


# %% shapes in the docstring, names of a course on interpretability | Attn(d_model, n_heads, d_head)(resid[batch, posn, d_model])
class Attn(nn.Module):
    def __init__(self, d_model, n_heads, d_head):
        super().__init__()
        self.W_Q = nn.Parameter(torch.empty(n_heads, d_model, d_head))  # [n_heads, d_model, d_head]
        self.W_K = nn.Parameter(torch.empty(n_heads, d_model, d_head))
        self.W_V = nn.Parameter(torch.empty(n_heads, d_model, d_head))
        self.W_O = nn.Parameter(torch.empty(n_heads, d_head, d_model))
        self.d_head = d_head

    def forward(self, resid):
        """resid: [batch, posn, d_model]"""
        q = torch.einsum("bpm,nmh->bpnh", resid, self.W_Q)  # [batch, posn, n_heads, d_head]
        k = torch.einsum("bpm,nmh->bpnh", resid, self.W_K)  # [batch, posn, n_heads, d_head]
        v = torch.einsum("bpm,nmh->bpnh", resid, self.W_V)  # [batch, n_heads, posn, d_head]  #! false
        scores = torch.einsum("bqnh,bknh->bnqk", q, k) / self.d_head**0.5  # [batch, n_heads, query_pos, key_pos]
        pattern = scores.softmax(-1)  # [batch, n_heads, query_pos, key_pos]
        z = torch.einsum("bnqk,bknh->bqnh", pattern, v)  # [batch, query_pos, n_heads, d_head]
        return torch.einsum("bqnh,nhm->bqm", z, self.W_O)  # [batch, query_pos, d_head]  #! false
