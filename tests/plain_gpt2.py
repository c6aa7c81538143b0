"""GPT-2 written out in plain algebra, in float64: what the library is held to.

Nothing here comes from the library. Heads are computed one by one, from the rows and columns of the
weights that belong to them.
"""

import math

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def mini_gpt2(num_layers=3, num_heads=4, hidden=40, vocab_size=60, seed=0, **more):
    """A small Hugging Face GPT-2 in float64, with random biases and gains away from 0 and 1."""
    torch.manual_seed(seed)
    config = GPT2Config(
        n_layer=num_layers, n_head=num_heads, n_embd=hidden, vocab_size=vocab_size,
        n_positions=32, bos_token_id=0, eos_token_id=0, **more,
    )  # fmt: skip
    model = GPT2LMHeadModel._from_config(config, attn_implementation="eager").eval().double()
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return model


def layer_norm(x, norm):
    """Centre, divide by the standard deviation, gain and shift."""
    x = x - x.mean(-1, keepdim=True)
    return x / ((x**2).mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight + norm.bias


def gelu(x):
    """GPT-2's activation, by its formula."""
    return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def head_parts(block, num_heads, head):
    """(W_Q, b_Q), (W_K, b_K), (W_V, b_V) and W_O of one head."""
    attention = block.attn
    hidden = attention.c_attn.weight.shape[0]
    size = hidden // num_heads
    mine = slice(head * size, (head + 1) * size)
    parts = []
    for part in range(3):
        columns = slice(part * hidden + mine.start, part * hidden + mine.stop)
        parts.append((attention.c_attn.weight[:, columns], attention.c_attn.bias[columns]))
    return *parts, attention.c_proj.weight[mine]


@torch.no_grad()
def run(model, ids, edit=None, is_token=None):
    """Compute everything; return a dict from the library's names to values, and "logits".

    edit: a function (name, value) -> value, called for each quantity before it is used.
    is_token: [batch, seq], False at padding, whose keys nobody sees.
    """
    stack, num_heads = model.transformer, model.config.n_head
    found = {}

    def keep(name, value):
        found[name] = value if edit is None else edit(name, value)
        return found[name]

    batch, seq = ids.shape
    hidden_keys = torch.ones(seq, seq).triu(1).bool().expand(batch, seq, seq)
    if is_token is not None:
        hidden_keys = hidden_keys | ~is_token[:, None, :]
    x = stack.wte.weight[ids] + stack.wpe.weight[:seq]
    for layer, block in enumerate(stack.h):
        x = keep(f"h.{layer}.stream_in", x)
        read = layer_norm(x, block.ln_1)
        parts = [head_parts(block, num_heads, head) for head in range(num_heads)]
        q, k, v = (
            keep(f"h.{layer}.{name}", torch.stack([read @ p[i][0] + p[i][1] for p in parts], 1))
            for i, name in enumerate("qkv")
        )
        scores = torch.einsum("bhis,bhjs->bhij", q, k) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(hidden_keys[:, None], -math.inf)
        scores = keep(f"h.{layer}.scores", scores)
        weights = torch.exp(scores - scores.amax(-1, keepdim=True))
        pattern = keep(f"h.{layer}.pattern", weights / weights.sum(-1, keepdim=True))
        z = keep(f"h.{layer}.z", torch.einsum("bhij,bhjs->bhis", pattern, v))
        outs = torch.stack([z[:, head] @ p[3] for head, p in enumerate(parts)], 1)
        outs = keep(f"h.{layer}.head_out", outs)
        attn_out = keep(f"h.{layer}.attn_out", outs.sum(1) + block.attn.c_proj.bias)
        x = keep(f"h.{layer}.stream_mid", x + attn_out)
        read = keep(f"h.{layer}.ln_2:input", x)
        mlp = block.mlp
        neurons = gelu(layer_norm(read, block.ln_2) @ mlp.c_fc.weight + mlp.c_fc.bias)
        mlp_out = keep(f"h.{layer}.mlp_out", neurons @ mlp.c_proj.weight + mlp.c_proj.bias)
        x = keep(f"h.{layer}.stream_out", x + mlp_out)
    x = keep("ln_f:input", x)
    found["logits"] = layer_norm(x, stack.ln_f) @ model.lm_head.weight.T
    return found
