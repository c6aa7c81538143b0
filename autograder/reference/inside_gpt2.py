"""Answers of lesson 09 and its wrong programs; those on hidden states are in `hidden_states`."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from autograder.course.asking import mistake


# --- sizes ---------------------------------------------------------------------------------------
def sizes(config, **changed):
    head_size = config.n_embd // config.n_head
    right = {
        "head_size": head_size,
        "scale": 1 / math.sqrt(head_size),
        "mlp_width": config.n_inner or 4 * config.n_embd,
        "hidden_states": config.n_layer + 1,
        "context_length": config.n_positions,
    }
    return {**right, **{name: make(config) for name, make in changed.items()}}


def _sizes_but(check, message, **changed):
    return mistake("sizes", check, message, lambda config: sizes(config, **changed))


_SIZES = [
    _sizes_but(
        "config.head_size is hidden",
        "The head size is the whole hidden size. The heads share it.",
        head_size=lambda c: c.n_embd,
        scale=lambda c: c.n_embd**-0.5,
    ),
    _sizes_but(
        "scale.hidden",
        "The scale uses the hidden size. A score is a dot product of two vectors of one head.",
        scale=lambda c: c.n_embd**-0.5,
    ),
    _sizes_but(
        "scale.not a root",
        "The scale divides by the head size; its root is needed.",
        scale=lambda c: c.n_head / c.n_embd,
    ),
    _sizes_but(
        "scale.inverted",
        "The scale is what the scores are divided by; asked for is the factor on them.",
        scale=lambda c: (c.n_embd / c.n_head) ** 0.5,
    ),
    _sizes_but(
        "scale.num_heads",
        "The scale uses the number of heads in place of their size.",
        scale=lambda c: c.n_head**-0.5,
    ),
    _sizes_but(
        "config.n_inner ignored",
        "Where the config has an n_inner of its own, the MLP is that wide.",
        mlp_width=lambda c: 4 * c.n_embd,
    ),
    _sizes_but(
        "config.n_inner is None",
        "n_inner may be None: then the usual multiple of n_embd is meant.",
        mlp_width=lambda c: c.n_inner,
    ),
    _sizes_but(
        "config.hidden_states off by one",
        "There is one hidden state more than there are "
        "blocks: the one that enters the first block.",
        hidden_states=lambda c: c.n_layer,
    ),
    _sizes_but(
        "config.hidden_states off by one",
        "The final norm adds no hidden state of its own.",
        hidden_states=lambda c: c.n_layer + 2,
    ),
    _sizes_but(
        "config.context is the vocabulary",
        "The context length is how many positions there are, not how many different tokens.",
        context_length=lambda c: c.vocab_size,
    ),
    _sizes_but(
        "config.number of heads for size",
        "The head size is the number of heads. It is the hidden size, shared out among them.",
        head_size=lambda c: c.n_head,
    ),
    _sizes_but(
        "config.head size of GPT-2",
        "A head has 64 features in OpenAI's four models. Others need not: take it from the config.",
        head_size=lambda c: 64,
        scale=lambda c: 1 / 8,
    ),
    _sizes_but(
        "config.n_inner times four",
        "n_inner is the width itself; only where it is None does a factor of n_embd stand in.",
        mlp_width=lambda c: 4 * (c.n_inner or c.n_embd),
    ),
]


# --- the parameter table -------------------------------------------------------------------------
def block_table(hidden, mlp_width, **changed):
    table = {
        "ln_1.weight": (hidden,),
        "ln_1.bias": (hidden,),
        "attn.c_attn.weight": (hidden, 3 * hidden),
        "attn.c_attn.bias": (3 * hidden,),
        "attn.c_proj.weight": (hidden, hidden),
        "attn.c_proj.bias": (hidden,),
        "ln_2.weight": (hidden,),
        "ln_2.bias": (hidden,),
        "mlp.c_fc.weight": (hidden, mlp_width),
        "mlp.c_fc.bias": (mlp_width,),
        "mlp.c_proj.weight": (mlp_width, hidden),
        "mlp.c_proj.bias": (hidden,),
    }
    return {**table, **{k.replace("__", "."): v for k, v in changed.items()}}


def _table_but(check, message, change):
    def table(hidden, mlp_width):
        return block_table(hidden, mlp_width, **change(hidden, mlp_width))

    return mistake("block_table", check, message, table)


def _linear_order(hidden, mlp_width):
    return {name: shape[::-1] for name, shape in block_table(hidden, mlp_width).items()}


_IN_OUT = "Weights stand as [outputs, inputs], the order of nn.Linear. Conv1D stores the inputs"
_TABLE = [
    mistake("block_table", "conv1d.in and out", f"{_IN_OUT} first.", _linear_order),
    _table_but(
        "conv1d.in and out",
        f"{_IN_OUT} first: look at c_attn.",
        lambda h, m: {"attn.c_attn.weight": (3 * h, h)},
    ),
    _table_but(
        "conv1d.in and out",
        f"{_IN_OUT} first: look at the MLP, up and down.",
        lambda h, m: {"mlp.c_fc.weight": (m, h), "mlp.c_proj.weight": (h, m)},
    ),
    _table_but(
        "table.c_proj of the MLP",
        "mlp.c_proj has the shape of c_fc. It goes the other "
        "way: from the wide layer back to the residual stream.",
        lambda h, m: {"mlp.c_proj.weight": (h, m)},
    ),
    _table_but(
        "table.bias of c_attn",
        "c_attn's bias is as long as one of its three parts. It "
        "belongs to queries, keys and values together.",
        lambda h, m: {"attn.c_attn.bias": (h,)},
    ),
    _table_but(
        "table.width of c_attn",
        "c_attn makes three things at once: queries, keys and values.",
        lambda h, m: {"attn.c_attn.weight": (h, h), "attn.c_attn.bias": (h,)},
    ),
    _table_but(
        "table.bias of inputs",
        "A bias is added to the outputs, so it is as long as they are: look at the MLP.",
        lambda h, m: {"mlp.c_fc.bias": (h,), "mlp.c_proj.bias": (m,)},
    ),
    _table_but(
        "table.bias of c_fc",
        "c_fc's bias belongs to its outputs.",
        lambda h, m: {"mlp.c_fc.bias": (h,)},
    ),
    _table_but(
        "table.c_proj makes three",
        "attn.c_proj takes the heads' outputs, side by side, "
        "back to the residual stream. Queries and keys have done their work by then.",
        lambda h, m: {"attn.c_proj.weight": (3 * h, h)},
    ),
    mistake(
        "block_table",
        "table.mlp always four times",
        "The MLP is as wide as you are told, which need not be four times the hidden size.",
        lambda h, m: block_table(h, 4 * h),
    ),
    _table_but(
        "table.bias of mlp.c_proj",
        "mlp.c_proj's bias belongs to its outputs, which go back to the residual stream.",
        lambda h, m: {"mlp.c_proj.bias": (m,)},
    ),
]


# --- Conv1D --------------------------------------------------------------------------------------
def conv1d(x, weight, bias):
    return x @ weight + bias


_CONV1D = [
    mistake(
        "conv1d",
        "conv1d.in and out",
        "The weight is used as nn.Linear uses it, transposed. "
        "Conv1D stores it the other way round; with a square weight only the values tell.",
        lambda x, w, b: F.linear(x, w, b),
    ),
    mistake(
        "conv1d",
        "conv1d.in and out",
        "The weight is transposed. It stands as [inputs, outputs] already.",
        lambda x, w, b: x @ w.T + b,
    ),
    mistake(
        "conv1d",
        "conv1d.reshaped",
        "The weight is reshaped before use: the shape fits, the numbers stand in other places.",
        lambda x, w, b: F.linear(x, w.reshape(w.shape[1], w.shape[0]), b),
    ),
    mistake("conv1d", "conv1d.lost bias", "The bias is not added.", lambda x, w, b: x @ w),
    mistake(
        "conv1d", "conv1d.bias subtracted", "The bias is subtracted.", lambda x, w, b: x @ w - b
    ),
    mistake(
        "conv1d",
        "conv1d.batch lost",
        "The batch and the tokens are one axis now. The result keeps all axes of x but the last.",
        lambda x, w, b: torch.addmm(b, x.flatten(0, -2), w),
    ),
    mistake(
        "conv1d",
        "conv1d.bias first",
        "The bias is added to what comes in. It belongs to the outputs.",
        lambda x, w, b: (x + b) @ w,
    ),
    mistake(
        "conv1d",
        "conv1d.first sequence only",
        "Only the first sequence comes out.",
        lambda x, w, b: x[0] @ w + b,
    ),
]


# --- weight tying --------------------------------------------------------------------------------
def tying(model, **changed):
    state = model.state_dict()
    wte, head = state["transformer.wte.weight"], state["lm_head.weight"]
    right = {
        "tied": wte.data_ptr() == head.data_ptr(),
        "stored": sum(t.numel() for t in state.values()),
        "learned": sum({t.data_ptr(): t.numel() for t in state.values()}.values()),
    }
    return {**right, **{name: make(model) for name, make in changed.items()}}


def _tying_but(check, message, **changed):
    return mistake("tying", check, message, lambda model: tying(model, **changed))


def _all(model):
    return sum(t.numel() for t in model.state_dict().values())


def _equal(model):
    return torch.equal(model.transformer.wte.weight, model.lm_head.weight)


def _minus_head(model):
    return _all(model) - model.lm_head.weight.numel()


def _unless_equal(model):
    return _minus_head(model) if _equal(model) else _all(model)


_EQUAL_MESSAGE = (
    "Two matrices with the same numbers are called tied. Equal is not the same: training would "
    "move them apart. Ask where the numbers are stored."
)
_TYING = [
    _tying_but("tying.equal is not tied", _EQUAL_MESSAGE, tied=_equal),
    _tying_but("tying.equal is not tied", _EQUAL_MESSAGE, tied=_equal, learned=_unless_equal),
    _tying_but(
        "tying.counted twice",
        "`learned` counts a shared matrix twice. It is one matrix under two names.",
        learned=_all,
    ),
    _tying_but(
        "tying.head never counted",
        "`learned` leaves lm_head out also where it is a matrix of its own.",
        learned=_minus_head,
    ),
    _tying_but(
        "tying.stored counts once",
        "`stored` counts a shared matrix once; the state dict lists it under both names.",
        stored=lambda m: sum(p.numel() for p in m.parameters()),
    ),
    _tying_but(
        "tying.tensors counted",
        "Tensors are counted, not the numbers in them.",
        stored=lambda m: len(m.state_dict()),
        learned=lambda m: len(list(m.parameters())),
    ),
    _tying_but("tying.always tied", "Every model is called tied.", tied=lambda m: True),
    _tying_but(
        "tying.is asks for the object",
        "`is` and `==` on what the state dict returns "
        "compare wrappers. Compare the address of the first number.",
        tied=lambda m: False,
    ),
    _tying_but(
        "tying.stored and learned swapped",
        "`stored` and `learned` have changed places: the state dict lists a shared matrix twice.",
        stored=lambda m: tying(m)["learned"],
        learned=lambda m: tying(m)["stored"],
    ),
]


# --- scores --------------------------------------------------------------------------------------
def sampling_scores(logits, temperature, top_k):
    scores = logits / temperature
    return _keep(scores, top_k)


def _keep(scores, top_k, fill=-math.inf, largest=True):
    bound = torch.topk(scores, top_k, dim=-1, largest=largest).values[:, -1:]
    return scores.masked_fill(scores < bound if largest else scores > bound, fill)


_SCORES = [
    mistake(
        "sampling_scores",
        "temperature.multiplied",
        "The logits are multiplied by the "
        "temperature. A high temperature should bring them closer together.",
        lambda x, t, k: _keep(x * t, k),
    ),
    mistake(
        "sampling_scores",
        "temperature.missing",
        "The temperature is not used.",
        lambda x, t, k: _keep(x, k),
    ),
    mistake(
        "sampling_scores",
        "top_k.missing",
        "All tokens keep their score. Only the k best of a row should.",
        lambda x, t, k: x / t,
    ),
    mistake(
        "sampling_scores",
        "top_k.filled with 0",
        "Removed tokens get the score 0. For the "
        "softmax that is a score like any other, and here a very high one.",
        lambda x, t, k: _keep(x / t, k, 0.0),
    ),
    mistake(
        "sampling_scores",
        "top_k.smallest kept",
        "The k smallest are kept.",
        lambda x, t, k: _keep(x / t, k, largest=False),
    ),
    mistake(
        "sampling_scores",
        "top_k.one too few",
        "The k-th best token is removed as well.",
        lambda x, t, k: _keep(x / t, k - 1),
    ),
    mistake(
        "sampling_scores",
        "top_k.one too many",
        "One token too many is kept.",
        lambda x, t, k: _keep(x / t, k + 1),
    ),
    mistake(
        "sampling_scores",
        "top_k.one bound for all",
        "Every row has k best tokens of its own; here one bound is used for the whole batch.",
        lambda x, t, k: (x / t).masked_fill(x / t < (x / t)[:1].topk(k).values[:, -1:], -math.inf),
    ),
    mistake(
        "sampling_scores",
        "scores.log_softmax",
        "The scores are log-probabilities. These two steps keep them unnormalised.",
        lambda x, t, k: torch.log_softmax(sampling_scores(x, t, k), dim=-1),
    ),
    mistake(
        "sampling_scores",
        "scores.log_softmax",
        "The scores are log-probabilities before "
        "tokens are removed. These two steps keep them unnormalised.",
        lambda x, t, k: _keep(torch.log_softmax(x / t, dim=-1), k),
    ),
    mistake(
        "sampling_scores",
        "scores.probabilities",
        "These are probabilities; scores are what goes into the softmax.",
        lambda x, t, k: torch.softmax(sampling_scores(x, t, k), dim=-1),
    ),
    mistake(
        "sampling_scores",
        "scores.only k of them",
        "Only the k kept scores come back. The result keeps a column for every token.",
        lambda x, t, k: (x / t).topk(k).values,
    ),
    mistake(
        "sampling_scores",
        "top_k.one bound for all",
        "Every row has k best tokens of its own; here the k best of the whole batch are kept.",
        lambda x, t, k: (x / t).masked_fill(
            x / t < (x / t).flatten().topk(k).values[-1], -math.inf
        ),
    ),
    mistake(
        "sampling_scores",
        "top_k.0 * inf",
        "Zero times infinity is not zero but NaN. Pick with masked_fill or where; do not multiply.",
        lambda x, t, k: (
            x / t * (_keep(x / t, k) > -math.inf) + (_keep(x / t, k) == -math.inf) * -math.inf
        ),
    ),
]


# --- log-probabilities ---------------------------------------------------------------------------
def top_tokens(logits, k):
    values, ids = torch.topk(torch.log_softmax(logits, dim=-1), k, dim=-1)
    return ids, values


def _top(logits, k, turn, largest=True):
    ids = torch.topk(logits, k, dim=-1, largest=largest).indices
    return ids, turn(logits).gather(-1, ids)


_LOG_PROBS = [
    mistake(
        "top_tokens",
        "log_probs.logits",
        "These are the logits as they came. They are not "
        "normalised: nothing says how large a logit is among all of them.",
        lambda x, k: _top(x, k, lambda y: y),
    ),
    mistake(
        "top_tokens",
        "log_probs.probabilities",
        "These are probabilities; their logarithms are asked for.",
        lambda x, k: _top(x, k, lambda y: y.softmax(-1)),
    ),
    mistake(
        "top_tokens",
        "log_probs.probabilities",
        "These are probabilities; their logarithms are asked for.",
        lambda x, k: tuple(torch.topk(x.float().softmax(-1), k))[::-1],
    ),
    mistake(
        "top_tokens",
        "log_probs.axis",
        "The softmax runs along the batch: each token is "
        "compared with itself in the other rows. It belongs along the vocabulary.",
        lambda x, k: _top(x, k, lambda y: y.log_softmax(0)),
    ),
    mistake(
        "top_tokens",
        "log_probs.axis",
        "The softmax runs along the batch, and the tokens are "
        "picked by what comes out. It belongs along the vocabulary.",
        lambda x, k: tuple(torch.topk(x.log_softmax(0), k))[::-1],
    ),
    mistake(
        "top_tokens",
        "log_probs.only among the k",
        "Only the k picked tokens were normalised, "
        "as if nothing else could be said. Normalise over the vocabulary first.",
        lambda x, k: (x.topk(k).indices, x.topk(k).values.log_softmax(-1)),
    ),
    mistake(
        "top_tokens",
        "log_probs.underflow",
        "Right for ordinary logits, but the softmax of "
        "widely spread ones is 0, and its logarithm minus infinity. log_softmax does not pass "
        "through the probability.",
        lambda x, k: _top(x, k, lambda y: y.float().softmax(-1).log()),
    ),
    mistake(
        "top_tokens",
        "log_probs.underflow",
        "Right for ordinary logits, but the softmax of "
        "widely spread ones is 0: all hopeless tokens look alike then. log_softmax does not "
        "pass through the probability.",
        lambda x, k: tuple(torch.topk(x.float().softmax(-1).log(), k))[::-1],
    ),
    mistake(
        "top_tokens",
        "log_probs.smallest",
        "These are the least probable tokens.",
        lambda x, k: _top(x, k, lambda y: y.log_softmax(-1), largest=False),
    ),
    mistake(
        "top_tokens",
        "log_probs.order",
        "Ids and log-probabilities are in the wrong order; torch.topk returns the values first.",
        lambda x, k: top_tokens(x, k)[::-1],
    ),
    mistake(
        "top_tokens",
        "log_probs.base",
        "The logarithms are to another base; natural ones (nats) are asked for.",
        lambda x, k: _top(x, k, lambda y: y.log_softmax(-1) / math.log(2)),
    ),
    mistake(
        "top_tokens",
        "log_probs.base",
        "The logarithms are to base 10; natural ones (nats) are asked for.",
        lambda x, k: _top(x, k, lambda y: y.log_softmax(-1) / math.log(10)),
    ),
    mistake(
        "top_tokens",
        "log_probs.overflow",
        "Right for ordinary logits, but the exponential of a large one is infinite, and infinity "
        "over infinity is NaN. logsumexp takes the largest logit off first.",
        lambda x, k: tuple(torch.topk((x.float().exp() / x.float().exp().sum(-1, True)).log(), k))[
            ::-1
        ],
    ),
    mistake(
        "top_tokens",
        "log_probs.minus the largest",
        "The largest logit is taken off. That keeps the exponentials small; the logarithm of "
        "their sum must be taken off too.",
        lambda x, k: _top(x, k, lambda y: y - y.amax(-1, keepdim=True)),
    ),
    mistake(
        "top_tokens",
        "log_probs.softmax twice",
        "The softmax runs twice: log_softmax takes logits, not probabilities.",
        lambda x, k: _top(x, k, lambda y: y.softmax(-1).log_softmax(-1)),
    ),
    mistake(
        "top_tokens",
        "log_probs.sign",
        "The sign is the other way round: a log-probability is never above 0.",
        lambda x, k: _top(x, k, lambda y: -y.log_softmax(-1)),
    ),
    mistake(
        "top_tokens",
        "log_probs.whole batch",
        "All rows are normalised together; the probabilities of each row must sum to 1.",
        lambda x, k: _top(x, k, lambda y: y - y.logsumexp((0, 1))),
    ),
    mistake(
        "top_tokens",
        "log_probs.least first",
        "The tokens are the right ones, in ascending order; the most probable comes first.",
        lambda x, k: tuple(each.flip(-1) for each in top_tokens(x, k)),
    ),
]


SOLVE = {
    "inside.config": {"sizes": sizes},
    "inside.table": {"block_table": block_table},
    "inside.conv1d": {"conv1d": conv1d},
    "inside.tying": {"tying": tying},
    "inside.scores": {"sampling_scores": sampling_scores},
    "inside.log_probs": {"top_tokens": top_tokens},
}
MISTAKES = {
    "inside.config": _SIZES,
    "inside.table": _TABLE,
    "inside.conv1d": _CONV1D,
    "inside.tying": _TYING,
    "inside.scores": _SCORES,
    "inside.log_probs": _LOG_PROBS,
}
