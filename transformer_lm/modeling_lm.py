"""A language model around attention: embeddings, blocks, and logits for the next token.

Read from top to bottom. The attention may be any class with the interface of the course's
`MultiHeadSelfAttention`; the rest is GPT-2 (Radford et al. 2019, "Language Models are Unsupervised
Multitask Learners"): a norm before attention and MLP instead of behind them, learned positions, and
one matrix for reading tokens and for predicting them.

`to_gpt2` and `save_gpt2` hand a trained model over to GPT-2's own format, where the rest of this
library can look into it; `from_gpt2` takes one back.
"""

import torch
import torch.nn.functional as F
from torch import nn

from transformer_lm.modeling_attention import MultiHeadSelfAttention
from transformer_lm.pretrained import quiet, read_model

INITIAL_SPREAD = 0.02  # of all weights, as in GPT-2: small logits, so a loss of ln(vocab_size)
ACTIVATION = "gelu_new"  # what GPT-2's format calls the gelu with a tanh


class MLP(nn.Module):
    """Each token by itself: four times as wide, a bend, and back."""

    def __init__(self, hidden):
        super().__init__()
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        """
        Args:
            x: FloatTensor[batch_size, seq_len, hidden]
        Returns:
            FloatTensor[batch_size, seq_len, hidden]
        """
        neurons = F.gelu(self.up(x), approximate="tanh")  # [batch_size, seq_len, 4 * hidden]
        return self.down(neurons)  # [batch_size, seq_len, hidden]


class Block(nn.Module):
    """Attention, then an MLP; each reads the normalised stream and adds to it."""

    def __init__(self, hidden, num_heads, attention=MultiHeadSelfAttention, dropout=0.0):
        """The arguments are those of `LanguageModel`."""
        super().__init__()
        more = {"dropout": dropout} if dropout else {}
        self.norm_1 = nn.LayerNorm(hidden)
        self.attention = attention(hidden, hidden, num_heads, causal=True, **more)
        self.norm_2 = nn.LayerNorm(hidden)
        self.mlp = MLP(hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        """
        Args:
            x: FloatTensor[batch_size, seq_len, hidden], the residual stream
        Returns:
            FloatTensor[batch_size, seq_len, hidden]
        """
        x = x + self.dropout(self.attention(self.norm_1(x)))  # [batch_size, seq_len, hidden]
        return x + self.dropout(self.mlp(self.norm_2(x)))  # [batch_size, seq_len, hidden]


class LanguageModel(nn.Module):
    """Predicts each token from those before it."""

    def __init__(
        self,
        vocab_size,
        context_length,
        hidden,
        num_layers,
        num_heads,
        attention=MultiHeadSelfAttention,
        dropout=0.0,
        positions=True,
    ):
        """
        Args:
            vocab_size: int, number of tokens there are
            context_length: int, the longest sequence it can take
            hidden: int, size of the residual stream
            num_layers: int, number of blocks
            num_heads: int, number of heads in each block, a divisor of hidden
            attention: the class of the attention, called as
                attention(hidden, hidden, num_heads, causal=True), with dropout=... where it is on
            dropout: float, the probability of dropping a number in training
            positions: bool, tell the model where a token stands
        """
        super().__init__()
        self.vocab_size, self.context_length = vocab_size, context_length
        self.hidden, self.num_heads = hidden, num_heads
        self.token_embedding = nn.Embedding(vocab_size, hidden)
        self.position_embedding = nn.Embedding(context_length, hidden) if positions else None
        self.dropout = nn.Dropout(dropout)
        blocks = (Block(hidden, num_heads, attention, dropout) for _ in range(num_layers))
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(hidden)
        self.apply(_initialise)

    def forward(self, input_ids):
        """
        Args:
            input_ids: LongTensor[batch_size, seq_len], seq_len <= context_length
        Returns:
            FloatTensor[batch_size, seq_len, vocab_size], the logits of each next token
        """
        seq_len = input_ids.shape[1]
        if seq_len > self.context_length:
            raise ValueError(
                f"a sequence of {seq_len} tokens, but this model takes {self.context_length}; "
                "cut it to the last of them"
            )
        x = self.token_embedding(input_ids)  # [batch_size, seq_len, hidden]
        if self.position_embedding is not None:
            places = torch.arange(seq_len, device=input_ids.device)  # [seq_len]
            x = x + self.position_embedding(places)  # [batch_size, seq_len, hidden]
        x = self.dropout(x)  # [batch_size, seq_len, hidden]
        for block in self.blocks:
            x = block(x)  # [batch_size, seq_len, hidden]
        return self.norm(x) @ self.token_embedding.weight.T  # [batch_size, seq_len, vocab_size]


def _initialise(module):
    """Small normal numbers for every matrix, zeros for every bias."""
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=INITIAL_SPREAD)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def logits_of(model, input_ids):
    """Return the logits [batch_size, seq_len, vocab_size] of a model of ours or of Hugging Face."""
    output = model(input_ids)
    return getattr(output, "logits", output)


# --- To GPT-2's format and back -------------------------------------------------------------------


def to_gpt2(model):
    """Return a ``transformers.GPT2LMHeadModel`` that computes what the LanguageModel computes.

    Raises:
        ValueError: the attention has no q, k, v and mix of [hidden, hidden], or computes something
            else than GPT-2's attention does with them (no causal mask, no scale, rotated queries).
    """
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=model.vocab_size,
        n_positions=model.context_length,
        n_embd=model.hidden,
        n_layer=len(model.blocks),
        n_head=model.num_heads,
        activation_function=ACTIVATION,
        layer_norm_epsilon=model.norm.eps,
        resid_pdrop=model.dropout.p,
        embd_pdrop=model.dropout.p,
        attn_pdrop=model.dropout.p,
        bos_token_id=None,
        eos_token_id=None,
    )
    gpt2 = GPT2LMHeadModel._from_config(config, attn_implementation="eager")
    gpt2 = gpt2.to(next(model.parameters())).eval()  # its device and its precision
    with torch.no_grad():
        stack = gpt2.transformer
        stack.wte.weight.copy_(model.token_embedding.weight)
        if model.position_embedding is None:
            stack.wpe.weight.zero_()
        else:
            stack.wpe.weight.copy_(model.position_embedding.weight)
        _copy_norm(model.norm, stack.ln_f)
        for ours, theirs in zip(model.blocks, stack.h, strict=True):
            _copy_norm(ours.norm_1, theirs.ln_1)
            _copy_norm(ours.norm_2, theirs.ln_2)
            weight, bias = _wide(ours.attention, model.hidden)  # [hidden, 3 * hidden], [3 * hidden]
            theirs.attn.c_attn.weight.copy_(weight)
            theirs.attn.c_attn.bias.copy_(bias)
            for linear, conv in (
                (ours.attention.mix, theirs.attn.c_proj),
                (ours.mlp.up, theirs.mlp.c_fc),
                (ours.mlp.down, theirs.mlp.c_proj),
            ):
                conv.weight.copy_(linear.weight.T)  # GPT-2 stores [in, out]
                conv.bias.copy_(_bias(linear))
        _check_same(model, gpt2)
    return gpt2


def from_gpt2(gpt2, attention=MultiHeadSelfAttention):
    """Return a LanguageModel with the weights of a ``GPT2LMHeadModel``, in evaluation mode.

    attention: as for LanguageModel, a class with q, k, v and mix. Raises ValueError where the model
    is not built as GPT-2 is, or computes something else with this attention.
    """
    config = gpt2.config
    _check_make(gpt2)
    model = LanguageModel(
        config.vocab_size, config.n_positions, config.n_embd, config.n_layer, config.n_head,
        attention,
    )  # fmt: skip
    model = model.to(next(gpt2.parameters())).eval()
    stack = gpt2.transformer
    with torch.no_grad():
        model.token_embedding.weight.copy_(stack.wte.weight)
        model.position_embedding.weight.copy_(stack.wpe.weight)
        _copy_norm(stack.ln_f, model.norm)
        for theirs, ours in zip(stack.h, model.blocks, strict=True):
            _copy_norm(theirs.ln_1, ours.norm_1)
            _copy_norm(theirs.ln_2, ours.norm_2)
            parts = theirs.attn.c_attn.weight.chunk(3, dim=1)  # three times [hidden, hidden]
            biases = theirs.attn.c_attn.bias.chunk(3)  # three times [hidden]
            _check_interface(ours.attention, config.n_embd)
            for linear, weight, bias in (
                (ours.attention.q, parts[0], biases[0]),
                (ours.attention.k, parts[1], biases[1]),
                (ours.attention.v, parts[2], biases[2]),
                (ours.attention.mix, theirs.attn.c_proj.weight, theirs.attn.c_proj.bias),
                (ours.mlp.up, theirs.mlp.c_fc.weight, theirs.mlp.c_fc.bias),
                (ours.mlp.down, theirs.mlp.c_proj.weight, theirs.mlp.c_proj.bias),
            ):
                linear.weight.copy_(weight.T)
                linear.bias.copy_(bias)
        _check_same(model, gpt2)
    return model


def save_gpt2(model, folder, characters=None):
    """Write a LanguageModel as a GPT-2 in Hugging Face format, for ``pretrained.load_gpt2``.

    characters: the ``Characters`` it was trained on, written beside it as its tokenizer.
    """
    gpt2 = to_gpt2(model)
    with quiet():
        gpt2.save_pretrained(folder)
    if characters is not None:
        characters.save(folder)


def load_language_model(folder, attention=MultiHeadSelfAttention):
    """Read a folder in GPT-2's format into a LanguageModel with an attention of one's own."""
    return from_gpt2(read_model(folder), attention)


def _copy_norm(source, target):
    target.weight.copy_(source.weight)
    target.bias.copy_(source.bias)
    target.eps = source.eps


def _wide(attention, hidden):
    """Return the weights [hidden, 3 * hidden] and biases [3 * hidden] of q, k, v, as in c_attn."""
    _check_interface(attention, hidden)
    layers = attention.q, attention.k, attention.v
    weight = torch.cat([layer.weight.T for layer in layers], dim=1)  # [hidden, 3 * hidden]
    return weight, torch.cat([_bias(layer) for layer in layers])  # and [3 * hidden]


def _bias(linear):
    """Return a layer's bias as [out]; zeros where it has none."""
    return (
        linear.weight.new_zeros(len(linear.weight)) if linear.bias is None else linear.bias.view(-1)
    )


def _check_make(gpt2):
    """Raise ValueError where a GPT-2 has other parts than a LanguageModel."""
    config, width = gpt2.config, gpt2.config.n_inner
    if width not in (None, 4 * config.n_embd):
        raise ValueError(f"the GPT-2 has an MLP of {width} neurons, not of {4 * config.n_embd}")
    if config.activation_function not in (ACTIVATION, "gelu_pytorch_tanh"):
        raise ValueError(
            f"the GPT-2 has the activation {config.activation_function!r}, not {ACTIVATION!r}"
        )
    if not torch.equal(gpt2.lm_head.weight, gpt2.transformer.wte.weight):
        raise ValueError("the GPT-2 reads and predicts tokens with two matrices, not with one")


def _check_interface(attention, hidden):
    for name in ("q", "k", "v", "mix"):
        weight = getattr(getattr(attention, name, None), "weight", None)
        shape = None if weight is None else list(weight.shape)
        if shape != [hidden, hidden]:
            has = "no such layer" if shape is None else f"one with a weight of {shape}"
            raise ValueError(
                f"GPT-2's format needs a linear layer {name!r} of [{hidden}, {hidden}] in the "
                f"attention, but {type(attention).__name__} has {has}"
            )


def _check_same(model, gpt2):
    """Raise ValueError unless both give the same logits on a short row of tokens."""
    length = min(model.context_length, 16)
    device = next(model.parameters()).device
    ids = (torch.arange(length, device=device) * 7 % model.vocab_size)[None]  # [1, seq_len]
    was_training = model.training
    ours, theirs = model.eval()(ids), gpt2(ids).logits  # [1, seq_len, vocab_size] each
    model.train(was_training)
    if not torch.allclose(ours, theirs, rtol=1e-3, atol=1e-3 * theirs.abs().max().item()):
        raise ValueError(
            "with the same weights, a GPT-2 gives other logits than this model (they differ by up "
            f"to {(ours - theirs).abs().max():.2g}); its attention computes something else: look "
            "at the causal mask, at the scale sqrt(head_size) and at what is done to q and k"
        )
