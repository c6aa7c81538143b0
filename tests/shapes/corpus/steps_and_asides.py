# %% halves of odd sizes | merge(x[B, H, W, C])
def merge(x):
    B, H, W, C = x.shape
    x = F.pad(x, (0, 0, 0, W % 2, 0, H % 2))  #! missing
    a = x[:, 0::2, 0::2, :]  # [B, H/2, W/2, C]
    b = x[:, 1::2, 0::2, :]  # [B, H / 2, W / 2, C]
    y = torch.cat([a, b], -1)  # [B, H/2, W/2, 2*C]
    y = y.view(B, -1, 2 * C)  # [B, H/2*W/2, 2*C]  #! cannot tell
    y = y.view(B, -1, 2 * C)  # [B, (H/2)*(W/2), 2*C]  #! cannot tell
    y = y.view(B, -1, 2 * C)  # [B, H/2, 2*C]  #! cannot tell
    return y



# %% a line for each step of one line | steps(x[B, C, H, W], n) where C=n*d
def steps(x, n):
    B, C, H, W = x.shape
    d = C // n
    # flatten: [B, C, H, W] -> [B, C, HW]
    # transpose: [B, C, HW] -> [B, HW, C]
    x = x.flatten(2).transpose(1, 2)  #! cannot tell
    # reshape: -> [B, HW, n, d]
    # permute: -> [B, n, HW, d]
    q = x.reshape(B, H * W, n, d).permute(0, 2, 1, 3)  #! cannot tell
    # transpose: -> [B, n, d, HW]
    # @: multiply -> [B, n, HW, HW]
    q = q * 2  #! cannot tell
    a = q @ q.transpose(-2, -1)

    # @: multiply -> [B, n, HW, d]
    # transpose: -> [B, HW, n, d]
    # reshape: -> [B, HW, C]
    return (a @ q).transpose(1, 2).reshape(B, H * W, C)  #! cannot tell



# %% what a docstring says of results | expect(depth[B, D, H, W])
def expect(depth):
    """Expected depth.

    Args:
        depth: samples of depth, (B, D, H, W)

    Returns:
        depth: the expected depth, (B, H, W)
    """
    return depth.mean(1)  # (B, H, W)



# %% a bare product in a docstring | mixer(x[B, L, C])
def mixer(x):
    """
    x: B, H*W, C
    """
    return x * 2  # [B, L, C]



# %% one word for two lengths | masks(question[batch, L].ints(9), reply[batch, M].ints(9))
def masks(question, reply):
    q = question != 0
    q = q.unsqueeze(1).unsqueeze(1)  # (batch_size, 1, 1, max_words)  #! cannot tell
    r = reply != 0
    r = r.unsqueeze(1)  # (batch_size, 1, max_words)
    r = r.unsqueeze(1)  # (batch_size, 1, 1, max_words)
    t = reply != 0  # (batch_size, max_words)
    return q, r, t



# %% a number that is explained | views(x[B, V, H, W])
def views(x):
    y = x * 2  # [B,4,H,W], 4 is the number of source views  #! cannot tell
    z = y.relu()  # [B, 4, H, W] (4: source views)  #! cannot tell
    return z



# %% glued crosses and names of sizes | glued(x[N, C, H, W], w[two, Wh_q, Ww_q]) where two=2
def glued(x, w):
    N, C, H, W = x.shape
    y = x.permute(0, 2, 3, 1)  # NxHxWx3  #! cannot tell
    y = x.flatten(2)  # NxCxHW'  #! cannot tell
    y = y[:, :, 1:]  # NxCx2H-1  #! cannot tell
    z = w.flatten(1)  # 2, Wh_q*Ww_q
    z = w * 1  # 2, Wh_q, Ww_q
    z = x.reshape(-1)  # (batch_size * max_words)  #! cannot tell
    z = x.view(N, -1, W)  # [N,...,3]  #! cannot tell
    z = z.view(-1, W)  # torch.Size([32, 512])  #! cannot tell
    return z


# %% asides, other libraries, what is still to be done | Net()(x[B, T, C], n_head, mem[B, M, C]) where C=n_head*hs
class Net(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, n_head, mem):
        B, T, C = x.size()
        hs = C // n_head
        # calculate query, key, values for all heads in batch and move head forward to be the batch dim
        q = x.view(B, T, n_head, hs).transpose(1, 2)  # (B, nh, T, hs)
        k = mem.view(B, -1, n_head, hs).transpose(1, 2)  # (B, nh, M, hs)
        # causal self-attention; Self-attend: (B, nh, T, hs) x (B, nh, hs, M) -> (B, nh, T, M)
        att = (q @ k.transpose(-2, -1)) * 0.1
        att = att * 1  # B, n_head, T, M
        att = att * 1  # (B, H, T, M), H heads
        att = att * 1  # B x H x T x M, H = n_head
        att = att * 1  # (B, nh, T, T) if mem is x  #! cannot tell
        att = att * 1  # (B, nh, T, T) in self-attention  #! cannot tell
        att = att * 1  # (B, nh, T, T') where T' = M
        att = att * 1  # (B, nh, tgt, src)
        att = att * 1  # [B * nh, T, M] viewed as [B, nh, T, M]  #! cannot tell
        att = att * 1  # [B, nh, T, M] viewed as [B * nh, T, M] in torch.bmm  #! cannot tell
        att = att * 1  # (B, nh, T, M), equal to (B * nh, T, M)  #! cannot tell
        att = att * 1  # batch, heads, rows, columns  #! cannot tell
        att = att * 1  # (batch, head, time1, time2)
        att = att * 1  # (batch, head, time1, d_k) * (batch, head, d_k, time2)  #! cannot tell
        att = att * 1  # head (batch, time1, time2)  #! cannot tell
        att = att * 1  # for head h: (B, T, M)  #! cannot tell
        att = att * 1  # all heads at once; one head has (B, T, M)  #! cannot tell
        att = att * 1  # [B, nh] matrices of T x M  #! cannot tell
        att = att * 1  # T x M matrices  #! cannot tell
        att = att * 1  # T queries x M keys  #! cannot tell
        att = att * 1  # queries x keys  #! missing
        att = att * 1  # att[b, h, i, j]: how much i looks at j
        att = att * 1  # att[:, :, i, :] sums to 1  #! missing
        att = att * 1  # (i, j) = q_i . k_j  #! missing
        att = att * 1  # dims (B, nh, T, M) = (0, 1, 2, 3)
        att = att * 1  # size B*nh*T*M
        att = att * 1  # size = B*nh*T*M floats  #! cannot tell
        att = att * 1  # memory: O(B nh T M)  #! missing
        att = att * 1  # T*M per head  #! cannot tell
        att = att * 1  # [B,nh,T,M] (float32)
        att = att * 1  # [B,nh,T,M] float32 cuda
        att = att * 1  # Tensor(B, nh, T, M)
        att = att * 1  # Tensor[B, nh, T, M]
        att = att * 1  # torch.Tensor: [B, nh, T, M]
        att = att * 1  # Tensor of [B, nh, T, M]
        att = att * 1  # <B, nh, T, M>
        att = att * 1  # B|nh|T|M
        att = att * 1  # B.nh.T.M  #! cannot tell
        att = att * 1  # B_nh_T_M  #! cannot tell
        att = att * 1  # [B][nh][T][M]  #! cannot tell
        att = att * 1  # B nh T M
        att = att * 1  # b nh t m
        att = att * 1  # b, nh, t, m
        att = att * 1  # [b, h, t, m]
        att = att * 1  # (B, n, T, M)
        att = att * 1  # (N, h, L, S)
        att = att * 1  # [Batch x Heads x T x M]
        att = att * 1  # (B, nh, T, M) ~ attention map
        att = att * 1  # ~ (B, nh, T, M)
        att = att * 1  # <- (B, nh, T, M)
        att = att * 1  # => (B, nh, T, M) after scaling
        att = att * 1  # (T, hs) @ (hs, M)  #! cannot tell
        att = att * 1  # (T, hs) @ (hs, M) = (T, M)  #! cannot tell
        att = att * 1  # (.., T, hs) @ (.., hs, M) = (.., T, M)  #! cannot tell
        att = att * 1  # [T, M] for (B, nh)  #! cannot tell
        v = torch.einsum("bhtm,bhmd->bhtd", att, k)  # bhtm,bhmd->bhtd  #! cannot tell
        v = torch.einsum("bhtm,bhmd->bhtd", att, k)  # (b, h, t, d)
        v = torch.einsum("bhtm,bhmd->bhtd", att, k)  # contract over m: (b, h, t, d)
        v = torch.einsum("bhtm,bhmd->bhtd", att, k)  # sum_m att[b,h,t,m] * v[b,h,m,d]
        y = v.transpose(1, 2).contiguous().view(B, T, C)  # re-assemble all head outputs side by side  #! missing
        y = y * 1  # (B, T, C) + (B, T, C)
        y = y * 1  # (B, T, C) += (B, T, C)
        y = y * 1  # (B, T, C) = (B, T, nh * hs)
        y = y * 1  # B x T x C = B x T x (nh * hs)  #! cannot tell
        y = y * 1  # C -> 4C -> C  #! cannot tell
        y = y * 1  # [B, T, C], C == embed_dim
        y = y * 1  # [B, T, E] where E is C
        y = y * 1  # (B, T, emb)
        y = y * 1  # (B, T, E=C)
        y = y * 1  # (B, L, D)
        y = y * 1  # [B, T, C][:, :T]  #! cannot tell
        y = y * 1  # up to [B, T, C]
        y = y * 1  # at most (B, 1024, C)  #! cannot tell
        y = y * 1  # max (B, block_size, C)
        y = y * 1  # [B, T <= block_size, C]  #! cannot tell
        y = y * 1  # [B, T<=1024, C]  #! cannot tell
        y = y * 1  # [B, T (variable), C]
        y = y * 1  # [B, T(+1), C]  #! cannot tell
        y = y * 1  # [B, (1+)T, C]  #! cannot tell
        y = y * 1  # [B, T+0, C]
        y = y * 1  # [B, T-1+1, C]
        y = y * 1  # [B, T, C / 1]
        y = y * 1  # [B, *, C]
        y = y * 1  # [B, -1, C]
        y = y * 1  # [-1, T, C]
        y = y * 1  # [B, None, C]
        y = y * 1  # [None, T, C]  #! cannot tell
        y = y * 1  # (B, T, C) # checked
        y = y * 1  # (B, T, C) !!!
        y = y * 1  # (B, T, C) (!)
        y = y * 1  # (B, T, C)?
        y = y * 1  # (B?, T, C)  #! cannot tell
        y = y * 1  # (B, T, C); TODO: (T, B, C)  #! cannot tell
        y = y * 1  # TODO (T, B, C)  #! cannot tell
        y = y * 1  # FIXME: should be (T, B, C)  #! cannot tell
        y = y * 1  # originally (T, B, C)  #! cannot tell
        y = y * 1  # (B, T, C) not (T, B, C)  #! cannot tell
        y = y * 1  # NOT (T, B, C)  #! cannot tell
        y = y * 1  # != (T, B, C)  #! cannot tell
        y = y * 1  # (T, B, C)^T  #! cannot tell
        y = y * 1  # (T, B, C).transpose(0, 1)  #! cannot tell
        y = y * 1  # (T, B, C) transposed  #! cannot tell
        y = y * 1  # permuted from (T, B, C)  #! cannot tell
        y = y * 1  # like (T, B, C) but batch first  #! cannot tell
        y = y * 1  # could be (T, B, C)  #! cannot tell
        y = y * 1  # maybe (T, B, C)  #! cannot tell
        y = y * 1  # torch.nn.Transformer wants (T, B, C)  #! cannot tell
        y = y * 1  # pytorch default is (T, B, C)  #! cannot tell
        y = y * 1  # e.g. (2, 5, 8)  #! cannot tell
        y = y * 1  # (e.g. 2 x 5 x 8)  #! missing
        y = y * 1  # [2, 5, 8]  #! cannot tell
        y = y * 1  # torch.Size([2, 5, 8])  #! cannot tell
        y = y * 1  # (4, 1024, 768) for GPT-2  #! cannot tell
        y = y * 1  # B=4, T=1024, C=768  #! cannot tell
        y = y * 1  # (B=4, T=1024, C=768)
        y = y * 1  # [B, T, 768]  #! cannot tell
        y = y * 1  # [B, 1024, C]  #! cannot tell
        return y
