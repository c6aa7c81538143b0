"""Lesson 09: inside a GPT-2. What it is made of, and what comes out of it."""

from __future__ import annotations

import math
from functools import partial
from operator import attrgetter

import torch
import torch.nn.functional as F

from autograder import Call, Draw, Namespace, exercise
from autograder.judging.forms import large_negative_as_inf
from transformer_lm.activations import record

from ._gpt2 import draw_gpt2, gpt2_and_ids, says

ALL = slice(None)


def itself(value, *_):
    return value


# --- the parts -----------------------------------------------------------------------------------
def configs(draw: Draw) -> list[Call]:
    calls = []
    for own_width in (False, True, False):
        heads, head_size = draw.sizes(2, 3, 23)
        hidden = heads * head_size
        config = {
            "n_layer": draw.integer(4, 40), "n_head": heads, "n_embd": hidden,
            "n_inner": 3 * hidden + draw.integer(1, 9) if own_width else None,
            "n_positions": draw.integer(500, 2000), "vocab_size": draw.integer(5000, 60000)}
        text = f"n_layer {config['n_layer']}, n_head {heads}, n_embd {hidden}"
        text += ", n_inner of its own" if own_width else ", n_inner None"
        calls.append(Call("", (Namespace(config),), says=text))
    return calls


def of_one_head(config):
    return config.n_embd // config.n_head


def of_mlp(config):
    return config.n_inner or 4 * config.n_embd


@exercise("inside.config", configs,
          hints=(
              "Every number asked for is in the config or follows from it in one step. Which of "
              "them belong to one head, and which to the whole model?",
              "`n_embd` is shared out among the heads. `n_inner` says how wide the MLP is, and "
              "None means: the usual multiple of `n_embd`. The scale of lesson 02 used the size "
              "of one key.",
              "head_size is n_embd // n_head and scale is one over its root; mlp_width is n_inner, "
              "or 4 * n_embd where that is None; there is a hidden state before the first block "
              "and one after each."))
def sizes(config, head_size=of_one_head, scaled_by=of_one_head, power=-0.5, width=of_mlp,
          more_states=1, context=attrgetter("n_positions")):
    return {"head_size": head_size(config), "scale": scaled_by(config) ** power,
            "mlp_width": width(config), "hidden_states": config.n_layer + more_states,
            "context_length": context(config)}

HIDDEN, HEADS = attrgetter("n_embd"), attrgetter("n_head")
sizes.wrong("config.head_size is hidden",
            "The head size is the whole hidden size. The heads share it.",
            head_size=HIDDEN, scaled_by=HIDDEN)
sizes.wrong("scale.hidden",
            "The scale uses the hidden size. A score is a dot product of two vectors of one head.",
            scaled_by=HIDDEN)
sizes.wrong("scale.not a root", "The scale divides by the head size; its root is needed.", power=-1)
sizes.wrong("scale.inverted",
            "The scale is what the scores are divided by; asked for is the factor on them.",
            power=0.5)
sizes.wrong("scale.num_heads", "The scale uses the number of heads in place of their size.",
            scaled_by=HEADS)
sizes.wrong("config.n_inner ignored", "Where the config has an n_inner of its own, the MLP is that "
            "wide.", width=lambda config: 4 * config.n_embd)
sizes.wrong("config.n_inner is None",
            "n_inner may be None: then the usual multiple of n_embd is meant.",
            width=attrgetter("n_inner"))
sizes.wrong("config.hidden_states off by one",
            "There is one hidden state more than there are blocks: the one that enters the first "
            "block.", more_states=0)
sizes.wrong("config.hidden_states off by one",
            "The final norm adds no hidden state of its own.", more_states=2)
sizes.wrong("config.context is the vocabulary",
            "The context length is how many positions there are, not how many different tokens.",
            context=attrgetter("vocab_size"))
for scaled_by in (of_one_head, HEADS):
    sizes.wrong("config.number of heads for size",
                "The head size is the number of heads. It is the hidden size, shared out among "
                "them.", head_size=HEADS, scaled_by=scaled_by)
sizes.wrong("config.head size of GPT-2",
            "A head has 64 features in OpenAI's four models. Others need not: take it from the "
            "config.", head_size=lambda config: 64, scaled_by=lambda config: 64)
sizes.wrong("config.n_inner times four",
            "n_inner is the width itself; only where it is None does a factor of n_embd stand in.",
            width=lambda config: 4 * (config.n_inner or config.n_embd))


@exercise("inside.table",
          "block_table(hidden, mlp_width) where mlp_width = 4 * hidden",
          "block_table(hidden, mlp_width)",
          hints=(
              "Go through the module tree from top to bottom. What comes in, what goes out, and in "
              "which order does Conv1D store the two?",
              "A LayerNorm has one number a feature, in weight and in bias. c_attn makes queries, "
              "keys and values at once. A bias belongs to the outputs.",
              "Weights of Conv1D are (inputs, outputs). c_attn: hidden in, 3 * hidden out. "
              "attn.c_proj: hidden to hidden. c_fc goes up to mlp_width, mlp.c_proj comes down. "
              "Each bias is (outputs,)."))
def block_table(hidden, mlp_width, parts=3, joined=1, outputs_first=(), bias_of_inputs=()):
    layers = {"attn.c_attn": (hidden, parts * hidden), "attn.c_proj": (joined * hidden, hidden),
              "mlp.c_fc": (hidden, mlp_width), "mlp.c_proj": (mlp_width, hidden)}
    norms = ("ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias")
    table = dict.fromkeys(norms, (hidden,))
    for name, (inputs, outputs) in layers.items():
        swapped = name in outputs_first
        table[f"{name}.weight"] = (outputs, inputs) if swapped else (inputs, outputs)
        table[f"{name}.bias"] = (inputs,) if name in bias_of_inputs else (outputs,)
    return table

IN_OUT = "Weights stand as [outputs, inputs], the order of nn.Linear. Conv1D stores the inputs"
block_table.wrong("conv1d.in and out", f"{IN_OUT} first.",
                  outputs_first=("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj"))
block_table.wrong("conv1d.in and out", f"{IN_OUT} first: look at c_attn.",
                  outputs_first=("attn.c_attn",))
block_table.wrong("conv1d.in and out", f"{IN_OUT} first: look at the MLP, up and down.",
                  outputs_first=("mlp.c_fc", "mlp.c_proj"))
block_table.wrong("table.c_proj of the MLP",
                  "mlp.c_proj has the shape of c_fc. It goes the other way: from the wide layer "
                  "back to the residual stream.", outputs_first=("mlp.c_proj",))
block_table.wrong("table.bias of c_attn",
                  "c_attn's bias is as long as one of its three parts. It belongs to queries, keys "
                  "and values together.", bias_of_inputs=("attn.c_attn",))
block_table.wrong("table.width of c_attn",
                  "c_attn makes three things at once: queries, keys and values.", parts=1)
block_table.wrong("table.bias of inputs",
                  "A bias is added to the outputs, so it is as long as they are: look at the MLP.",
                  bias_of_inputs=("mlp.c_fc", "mlp.c_proj"))
block_table.wrong("table.bias of c_fc", "c_fc's bias belongs to its outputs.",
                  bias_of_inputs=("mlp.c_fc",))
block_table.wrong("table.c_proj makes three",
                  "attn.c_proj takes the heads' outputs, side by side, back to the residual "
                  "stream. Queries and keys have done their work by then.", joined=3)
block_table.wrong("table.mlp always four times",
                  "The MLP is as wide as you are told, which need not be four times the hidden "
                  "size.", lambda hidden, mlp_width: block_table(hidden, 4 * hidden))
block_table.wrong("table.bias of mlp.c_proj",
                  "mlp.c_proj's bias belongs to its outputs, which go back to the residual stream.",
                  bias_of_inputs=("mlp.c_proj",))


@exercise("inside.conv1d",
          "conv1d(x[batch_size, seq_len, inputs], weight[inputs, outputs], bias[outputs])",
          "conv1d(x[batch_size, seq_len, size], weight[size, size], bias[size])",
          hints=(
              "Write down the shapes: x is [batch_size, seq_len, inputs]. On which side must a "
              "weight of [inputs, outputs] stand?",
              "`@` works on the last two axes and leaves the batch alone. `F.linear` transposes "
              "its weight, and for a square one nothing tells you.",
              "One matrix product, x on the left and the weight as it is, and then the bias."))
def conv1d(x, weight, bias, read=itself, turn=itself, plus=torch.add):
    return plus(read(x) @ turn(weight), bias)

conv1d.wrong("conv1d.in and out",
             "The weight is used as nn.Linear uses it, transposed. Conv1D stores it the other way "
             "round; with a square weight only the values tell.", turn=torch.t)
conv1d.wrong("conv1d.in and out",
             "The weight is transposed. It stands as [inputs, outputs] already.", F.linear)
conv1d.wrong("conv1d.reshaped",
             "The weight is reshaped before use: the shape fits, the numbers stand in other "
             "places.", turn=lambda weight: weight.reshape(weight.shape[::-1]).T)
conv1d.wrong("conv1d.lost bias", "The bias is not added.", plus=itself)
conv1d.wrong("conv1d.bias subtracted", "The bias is subtracted.", plus=torch.sub)
conv1d.wrong("conv1d.batch lost",
             "The batch and the tokens are one axis now. The result keeps all axes of x but the "
             "last.", read=lambda x: x.flatten(0, -2))
conv1d.wrong("conv1d.bias first",
             "The bias is added to what comes in. It belongs to the outputs.",
             lambda x, weight, bias: (x + bias) @ weight)
conv1d.wrong("conv1d.first sequence only", "Only the first sequence comes out.",
             read=lambda x: x[0])


# --- weight tying --------------------------------------------------------------------------------
def tied_or_not(draw: Draw) -> list[Call]:
    tied, apart, twins = (draw_gpt2(draw, tied=tied) for tied in (True, False, False))
    weights = twins.values["weights"]
    weights["lm_head.weight"] = weights["transformer.wte.weight"].clone()
    asked = {"one matrix for input and output": tied, "two different matrices": apart,
             "two matrices with the same numbers": twins}
    return [Call("", (model,), says=says(model, text)) for text, model in asked.items()]


def one_address(model):
    return model.lm_head.weight.data_ptr() == model.transformer.wte.weight.data_ptr()


def all_numbers(model):
    return sum(t.numel() for t in model.state_dict().values())


def each_once(model):
    return sum({t.data_ptr(): t.numel() for t in model.state_dict().values()}.values())


@exercise("inside.tying", tied_or_not,
          hints=(
              "Two tensors may hold the same numbers and still be two tensors. Training would pull "
              "them apart. What is the same only for one tensor under two names?",
              "`data_ptr()` is the address of a tensor's first number. `state_dict()` lists every "
              "name; two names with one address are one tensor.",
              "tied: compare the data_ptr() of lm_head.weight and transformer.wte.weight. stored: "
              "sum numel() over state_dict().values(). learned: the same sum, each address once."))
def tying(model, tied=one_address, stored=all_numbers, learned=each_once):
    return {"tied": tied(model), "stored": stored(model), "learned": learned(model)}

def equal(model):
    return torch.equal(model.transformer.wte.weight, model.lm_head.weight)

def without_head(model):
    return all_numbers(model) - model.lm_head.weight.numel()

EQUAL = ("Two matrices with the same numbers are called tied. Equal is not the same: training "
         "would move them apart. Ask where the numbers are stored.")
tying.wrong("tying.equal is not tied", EQUAL, tied=equal)
tying.wrong("tying.equal is not tied", EQUAL, tied=equal,
            learned=lambda model: without_head(model) if equal(model) else all_numbers(model))
tying.wrong("tying.counted twice",
            "`learned` counts a shared matrix twice. It is one matrix under two names.",
            learned=all_numbers)
tying.wrong("tying.head never counted",
            "`learned` leaves lm_head out also where it is a matrix of its own.",
            learned=without_head)
tying.wrong("tying.stored counts once",
            "`stored` counts a shared matrix once; the state dict lists it under both names.",
            stored=each_once)
tying.wrong("tying.tensors counted", "Tensors are counted, not the numbers in them.",
            stored=lambda model: len(model.state_dict()),
            learned=lambda model: len(list(model.parameters())))
tying.wrong("tying.always tied", "Every model is called tied.", tied=lambda model: True)
tying.wrong("tying.is asks for the object",
            "`is` and `==` on what the state dict returns compare wrappers. Compare the address of "
            "the first number.", tied=lambda model: False)
tying.wrong("tying.stored and learned swapped",
            "`stored` and `learned` have changed places: the state dict lists a shared matrix "
            "twice.", stored=each_once, learned=all_numbers)


# --- logits, scores, log-probabilities -----------------------------------------------------------
def low_logits(draw: Draw) -> list[Call]:
    calls = []
    for temperature in (1.0, 0.6, 1.7):
        batch_size, vocab_size = draw.choice((2, 3, 5, 7)), draw.integer(15, 40)
        logits = draw.normal(batch_size, vocab_size, scale=3.0) - 20.0  # 0 is a high one here
        top_k = draw.integer(2, 9)
        text = f"{batch_size} rows of {vocab_size} logits, temperature {temperature}, top_k {top_k}"
        calls.append(Call("", (logits, temperature, top_k), says=text))
    return calls


def below_the_best(scores, k):
    """True for all but the k best of each row."""
    return scores < scores.topk(k, dim=-1).values[:, -1:]


def hide(scores, removed):
    return scores.masked_fill(removed, -math.inf)


@exercise("inside.scores", low_logits, judge=large_negative_as_inf,
          hints=(
              "Scores are logits after the processing that a way of decoding asks for. There are "
              "two steps here. Neither of them is a softmax.",
              "A temperature above 1 makes the choice more even, so differences must shrink. For "
              "the second step you need each row's own k-th largest value.",
              "Divide by the temperature. `torch.topk(..., k, dim=-1)` gives the k largest of each "
              "row, sorted; everything below the last of them becomes minus infinity."))
def sampling_scores(logits, temperature, top_k, warm=torch.div, remove=below_the_best, hide=hide,
                    finish=itself):
    scores = warm(logits, temperature)
    return finish(hide(scores, remove(scores, top_k)))

sampling_scores.wrong("temperature.multiplied",
                      "The logits are multiplied by the temperature. A high temperature should "
                      "bring them closer together.", warm=torch.mul)
sampling_scores.wrong("temperature.missing", "The temperature is not used.", warm=itself)
sampling_scores.wrong("top_k.missing",
                      "All tokens keep their score. Only the k best of a row should.", hide=itself)
sampling_scores.wrong("top_k.filled with 0",
                      "Removed tokens get the score 0. For the softmax that is a score like any "
                      "other, and here a very high one.",
                      hide=lambda scores, removed: scores.masked_fill(removed, 0.0))
sampling_scores.wrong("top_k.smallest kept", "The k smallest are kept.",
                      remove=lambda scores, k: below_the_best(-scores, k))
sampling_scores.wrong("top_k.one too few", "The k-th best token is removed as well.",
                      remove=lambda scores, k: below_the_best(scores, k - 1))
sampling_scores.wrong("top_k.one too many", "One token too many is kept.",
                      remove=lambda scores, k: below_the_best(scores, k + 1))
sampling_scores.wrong(
    "top_k.one bound for all",
    "Every row has k best tokens of its own; here one bound is used for the whole batch.",
    remove=lambda scores, k: scores < scores[0].topk(k).values[-1])
sampling_scores.wrong("scores.log_softmax",
                      "The scores are log-probabilities. These two steps keep them unnormalised.",
                      finish=partial(torch.log_softmax, dim=-1))
sampling_scores.wrong("scores.log_softmax",
                      "The scores are log-probabilities before tokens are removed. These two steps "
                      "keep them unnormalised.",
                      warm=lambda logits, temperature: (logits / temperature).log_softmax(-1))
sampling_scores.wrong("scores.probabilities",
                      "These are probabilities; scores are what goes into the softmax.",
                      finish=partial(torch.softmax, dim=-1))
sampling_scores.wrong("scores.only k of them",
                      "Only the k kept scores come back. The result keeps a column for every "
                      "token.",
                      lambda logits, temperature, k: (logits / temperature).topk(k).values)
sampling_scores.wrong(
    "top_k.one bound for all",
    "Every row has k best tokens of its own; here the k best of the whole batch are kept.",
    remove=lambda scores, k: scores < scores.flatten().topk(k).values[-1])
sampling_scores.wrong("top_k.0 * inf",
                      "Zero times infinity is not zero but NaN. Pick with masked_fill or where; do "
                      "not multiply.",
                      hide=lambda scores, removed: scores * ~removed + removed * -math.inf)


def logits_and_k(draw: Draw) -> list[Call]:
    calls = []
    for shift, spread in ((-80.0, 1.0), (0.0, 2.0), (20.0, 150.0)):
        batch_size, vocab_size = draw.choice((2, 3, 5)), draw.integer(15, 40)
        logits = draw.normal(vocab_size, scale=spread) + shift
        logits = logits + draw.normal(batch_size, vocab_size, scale=2.0)
        k = draw.integer(6, 11)
        text = f"{batch_size} rows of {vocab_size} logits around {shift:.0f}, k {k}"
        calls.append(Call("", (logits, k), says=text))
    return calls


def log_softmax(logits, dim=-1):
    return torch.log_softmax(logits, dim)


@exercise("inside.log_probs", logits_and_k,
          hints=(
              "A logit alone says nothing about probability: add 80 to all of them and the model "
              "has not changed its mind. What must be taken off?",
              "Subtract the logarithm of the sum of all exponentials, over the vocabulary. Do it "
              "for all tokens before you pick k of them, and without passing through tiny "
              "probabilities.",
              "`torch.log_softmax(logits, dim=-1)`, then `torch.topk` of that along the last axis; "
              "topk returns values first, but the ids are asked for first."))
def top_tokens(logits, k, normalise=log_softmax, pick_by=log_softmax, largest=True,
               finish=lambda ids, values: (ids, values)):
    ids = pick_by(logits).topk(k, dim=-1, largest=largest).indices
    return finish(ids, normalise(logits).gather(-1, ids))

def softmax_in_float(logits):
    return logits.float().softmax(-1)

def log_of_softmax(logits):
    return softmax_in_float(logits).log()

def log_of_share(logits):
    powers = logits.float().exp()
    return (powers / powers.sum(-1, keepdim=True)).log()

PROBABILITIES = "These are probabilities; their logarithms are asked for."
top_tokens.wrong("log_probs.logits",
                 "These are the logits as they came. They are not normalised: nothing says how "
                 "large a logit is among all of them.", normalise=itself)
top_tokens.wrong("log_probs.probabilities", PROBABILITIES,
                 normalise=lambda logits: logits.softmax(-1))
top_tokens.wrong("log_probs.probabilities", PROBABILITIES,
                 normalise=softmax_in_float, pick_by=softmax_in_float)
top_tokens.wrong("log_probs.axis",
                 "The softmax runs along the batch: each token is compared with itself in the "
                 "other rows. It belongs along the vocabulary.",
                 normalise=partial(log_softmax, dim=0))
top_tokens.wrong("log_probs.axis",
                 "The softmax runs along the batch, and the tokens are picked by what comes out. "
                 "It belongs along the vocabulary.",
                 normalise=partial(log_softmax, dim=0), pick_by=partial(log_softmax, dim=0))
top_tokens.wrong("log_probs.only among the k",
                 "Only the k picked tokens were normalised, as if nothing else could be said. "
                 "Normalise over the vocabulary first.", normalise=itself,
                 finish=lambda ids, values: (ids, log_softmax(values)))
top_tokens.wrong("log_probs.underflow",
                 "Right for ordinary logits, but the softmax of widely spread ones is 0, and its "
                 "logarithm minus infinity. log_softmax does not pass through the probability.",
                 normalise=log_of_softmax)
top_tokens.wrong("log_probs.underflow",
                 "Right for ordinary logits, but the softmax of widely spread ones is 0: all "
                 "hopeless tokens look alike then. log_softmax does not pass through the "
                 "probability.", normalise=log_of_softmax, pick_by=log_of_softmax)
top_tokens.wrong("log_probs.smallest", "These are the least probable tokens.", largest=False)
top_tokens.wrong("log_probs.order",
                 "Ids and log-probabilities are in the wrong order; torch.topk returns the values "
                 "first.", finish=lambda ids, values: (values, ids))
for base in (2, 10):
    top_tokens.wrong("log_probs.base",
                     f"The logarithms are to base {base}; natural ones (nats) are asked for.",
                     normalise=lambda logits, base=base: log_softmax(logits) / math.log(base))
top_tokens.wrong("log_probs.overflow",
                 "Right for ordinary logits, but the exponential of a large one is infinite, and "
                 "infinity over infinity is NaN. logsumexp takes the largest logit off first.",
                 normalise=log_of_share, pick_by=log_of_share)
top_tokens.wrong("log_probs.minus the largest",
                 "The largest logit is taken off. That keeps the exponentials small; the logarithm "
                 "of their sum must be taken off too.",
                 normalise=lambda logits: logits - logits.amax(-1, keepdim=True))
top_tokens.wrong("log_probs.softmax twice",
                 "The softmax runs twice: log_softmax takes logits, not probabilities.",
                 normalise=lambda logits: log_softmax(logits.softmax(-1)))
top_tokens.wrong("log_probs.sign",
                 "The sign is the other way round: a log-probability is never above 0.",
                 normalise=lambda logits: -log_softmax(logits))
top_tokens.wrong("log_probs.whole batch",
                 "All rows are normalised together; the probabilities of each row must sum to 1.",
                 normalise=lambda logits: logits - logits.logsumexp((0, 1)))
top_tokens.wrong("log_probs.least first",
                 "The tokens are the right ones, in ascending order; the most probable comes "
                 "first.", finish=lambda ids, values: (ids.flip(-1), values.flip(-1)))


# --- hidden states -------------------------------------------------------------------------------
def blocks_of_models(draw: Draw) -> list[Call]:
    calls = []
    for layers, block in ((3, 1), (2, 1), (3, 0), (3, 2)):
        model, ids, text = gpt2_and_ids(draw, layers, *draw.sizes(2, 2, 7))
        calls.append(Call("", (model, ids, block), says=f"{text}; block {block}"))
    return calls


def stream(model, input_ids):
    """What enters each block, and what leaves the last one, before the final norm."""
    names = [*(f"h.{block}:input" for block in range(model.config.n_layer)), "ln_f:input"]
    with torch.no_grad(), record(model.transformer, names) as acts:
        model(input_ids)
    return [acts[name] for name in names]


def hidden_states(model, input_ids):
    with torch.no_grad():
        return model(input_ids, output_hidden_states=True).hidden_states


@exercise("inside.hidden", blocks_of_models,
          hints=(
              "A block reads the residual stream and adds to it. What goes in, what comes out, and "
              "where does `hidden_states` hold each? For the last block, look twice.",
              "hidden_states[b] is the input of block b. The last entry has been through ln_f, so "
              "it is not the output of the last block. `record` can catch that output, or the "
              "input of ln_f.",
              'Record two modules: f"h.{block}:input" and f"h.{block}", run the model once, and '
              "subtract what went in from what came out."))
def block_update(model, input_ids, block, states=stream, before=0, after=1, update=torch.sub,
                 finish=itself):
    states = states(model, input_ids)
    return finish(update(states[block + after], states[block + before]))

def without_mask(model, input_ids, block):
    x = stream(model, input_ids)[block]
    with torch.no_grad():
        return model.transformer.h[block](x) - x

def written_by(name):
    """What one module of the block gives, which is what it adds to the stream."""
    def wrong(model, input_ids, block):
        with torch.no_grad(), record(model.transformer, [f"h.{block}.{name}"]) as acts:
            model(input_ids)
        return acts[f"h.{block}.{name}"]

    return wrong

def first_of_the_batch(model, input_ids, block):
    x = stream(model, input_ids)[block]
    with torch.no_grad():
        return model.transformer.h[block](x)[0] - x

block_update.wrong(
    "hidden.block(x)[0]",
    "A block gives a tensor, not a tuple: `[0]` takes the first sequence of the batch. (And called "
    "by itself it has no causal mask.) Take what it read and gave while the model ran.",
    first_of_the_batch)
BEFORE = "This is what the block before it wrote. hidden_states[b] is the input of block b."
block_update.wrong("hidden.final norm",
                   "Right for all blocks but the last. The last hidden state has been through "
                   "ln_f; it is not what the last block wrote.", states=hidden_states)
block_update.wrong("hidden.off by one", BEFORE, states=hidden_states, before=-1, after=0)
block_update.wrong("hidden.off by one", BEFORE, lambda model, input_ids, block: (
    block_update(model, input_ids, block - 1) if block
    else torch.zeros_like(stream(model, input_ids)[0])))
block_update.wrong("hidden.off by one",
                   "This is what the block after it wrote. hidden_states[b] is the input of block "
                   "b.", states=hidden_states, before=1, after=2)
block_update.wrong("hidden.not subtracted",
                   "This is all that leaves the block. What it wrote is the difference to what "
                   "went in.", update=itself)
block_update.wrong("hidden.not subtracted",
                   "This is a hidden state as it stands. What a block wrote is the difference of "
                   "what came out and what went in.", states=hidden_states, update=itself)
block_update.wrong("hidden.input", "This is what enters the block.",
                   update=lambda came_out, went_in: went_in)
block_update.wrong("hidden.sign", "What came out was subtracted from what went in.",
                   update=torch.rsub)
block_update.wrong("hidden.no mask",
                   "The block was called by itself, and so without the causal mask, which the "
                   "model makes and hands to its blocks: every token saw the future.",
                   without_mask)
block_update.wrong("hidden.from the start",
                   "This is all that was written since the embedding. One block is asked for.",
                   lambda model, input_ids, block: (
                       stream(model, input_ids)[block + 1] - stream(model, input_ids)[0]))
block_update.wrong("hidden.attention only",
                   "This is what the attention wrote. A block writes twice: attention, then MLP.",
                   written_by("attn.c_proj"))
block_update.wrong("hidden.last position only",
                   "Only the last token is there; all positions are asked for.",
                   finish=lambda written: written[:, -1])
block_update.wrong("hidden.MLP only",
                   "This is what the MLP wrote. A block writes twice: attention, then MLP.",
                   written_by("mlp"))
block_update.wrong("hidden.to the end",
                   "This is all that was written from this block to the end, and it has been "
                   "through ln_f.", lambda model, input_ids, block: (
                       hidden_states(model, input_ids)[-1] - stream(model, input_ids)[block]))
block_update.wrong("hidden.first item alone", "Only the first sequence of the batch is there.",
                   finish=lambda written: written[0])


# --- logits --------------------------------------------------------------------------------------
def states_of_models(draw: Draw) -> list[Call]:
    calls = []
    for layers in (2, 3, 2):
        model = draw_gpt2(draw, layers)
        batch_size, seq_len = draw.sizes(2, 3, 7)
        shape = (batch_size, seq_len, model.values["config"]["n_embd"])
        states = tuple(draw.normal(*shape, scale=2.0) for _ in range(layers + 1))
        text = says(model, f"{batch_size} sequences of {seq_len} tokens")
        calls.append(Call("", (model, states), says=text))
    return calls


def final_norm(model, place, row):
    return model.transformer.ln_f(row)


@exercise("inside.logits", states_of_models,
          hints=(
              "The last entry gives the model's own logits. What happens to it on the way, and "
              "what has already happened?",
              "The unembedding is model.lm_head. Before it stands ln_f; the last "
              "hidden state has it behind it, the others have not.",
              "Take position -1 of every state. model.transformer.ln_f for all states but the "
              "last, then model.lm_head for all of them; stack along a new first axis."))
def lens_logits(model, hidden_states, position=-1, normed=slice(0, -1), norm=final_norm,
                finish=itself):
    places = range(len(hidden_states))
    with torch.no_grad():
        rows = [state[:, position] for state in hidden_states]
        for place in places[normed]:
            rows[place] = norm(model, place, rows[place])
        return finish(torch.stack([model.lm_head(row) for row in rows]))

lens_logits.wrong("logits.final norm twice",
                  "ln_f is applied to the last state too. transformers has done that already, so "
                  "there it comes twice.", normed=ALL)
lens_logits.wrong("logits.final norm missing",
                  "No state goes through ln_f. The unembedding was trained on normalised vectors.",
                  normed=slice(0, 0))
lens_logits.wrong("logits.norm on the wrong states",
                  "ln_f is applied to the last state alone: the one that has had it.",
                  normed=slice(-1, None))
lens_logits.wrong("logits.embedding not normed",
                  "The first state, the embedding, goes without ln_f. Only the last one has had "
                  "it.", normed=slice(1, -1))
lens_logits.wrong("logits.first position",
                  "This is the first position. The next token is predicted at the last one.",
                  position=0)
lens_logits.wrong("logits.position before the last", "This is the position before the last.",
                  position=-2)
lens_logits.wrong("logits.gain and shift lost",
                  "The states are normalised, but ln_f's own weight and bias are left out.",
                  norm=lambda model, place, row: F.layer_norm(row, row.shape[-1:]))
lens_logits.wrong("logits.batch first", "The batch stands first; the states should.",
                  finish=lambda logits: logits.transpose(0, 1))
lens_logits.wrong("logits.embedding left out", "The first state, the embedding, is left out.",
                  finish=lambda logits: logits[1:])
lens_logits.wrong("logits.log-softmax", "These are log-probabilities; logits are asked for.",
                  finish=log_softmax)
lens_logits.wrong("logits.all positions", "All positions are there; the last one is asked for.",
                  position=ALL)
lens_logits.wrong("logits.probabilities", "These are probabilities; logits are asked for.",
                  finish=partial(torch.softmax, dim=-1))
lens_logits.wrong("logits.ln_1 for ln_f",
                  "Each state went through the ln_1 of the next block. The unembedding was trained "
                  "on what comes out of ln_f.",
                  norm=lambda model, place, row: model.transformer.h[place].ln_1(row))
lens_logits.wrong("logits.last left out", "The last state is left out.",
                  finish=lambda logits: logits[:-1])


# --- attentions ----------------------------------------------------------------------------------
def generated_maps(draw: Draw) -> list[Call]:
    calls = []
    for step in (0, 2, 1):
        batch_size, heads, prompt = draw.sizes(3, 2, 7)
        layers = draw.choice((4, 6))
        shapes = [(batch_size, heads, 1 if new else prompt, prompt + new) for new in range(4)]
        steps = tuple(tuple(draw.normal(*shape, scale=2).softmax(-1) for _ in range(layers))
                      for shape in shapes)
        layer, head = draw.integer(1, layers - 2), draw.integer(0, heads - 2)
        text = (f"prompt of {prompt} tokens, {layers} layers, {heads} heads; "
                f"step {step}, layer {layer}, head {head}")
        calls.append(Call("", (steps, step, layer, head), says=text))
    return [*calls, Call("", (((), ()), 1, 2, 0), says="a model that returned no maps")]


@exercise("inside.attentions", generated_maps,
          hints=(
              "Peel it from the outside: what does the first index count, what the second, and "
              "what are the four axes of the tensor inside?",
              "Steps first, then layers; the tensor is [batch_size, num_heads, queries, keys]. The "
              "newest token is the last query. What does an attention that keeps no maps leave "
              "you?",
              "Where attentions[step] is empty, raise a ValueError. Otherwise "
              "attentions[step][layer], that head, the last query, all keys, all batch items."))
def last_row(attentions, step, layer, head, look_first=True,
             pick=lambda maps, step, layer, head: maps[step][layer][:, head, -1]):
    if look_first and not len(attentions[step]):
        raise ValueError("This model returned no attention maps.")
    return pick(attentions, step, layer, head)

last_row.wrong("attentions.empty",
               "Where the model returned no maps, this fails with an error that does not say why, "
               "or not at all. Look first, and raise a ValueError.", look_first=False)
last_row.wrong("attentions.empty",
               "Where the model returned no maps, None comes back and somebody else has to find "
               "out. Raise a ValueError.",
               lambda maps, step, *which: last_row(maps, step, *which) if maps[step] else None)
for kind, message, pick in (
    ("layer before step",
     "The first index counts the generated tokens, the second the layers; here it is the other way "
     "round.", lambda maps, step, layer, head: maps[layer][step][:, head, -1]),
    ("step 0", "The step is not used: this is always the first one.",
     lambda maps, step, layer, head: maps[0][layer][:, head, -1]),
    ("layer off by one",
     "This is the layer after the one asked for. Layers are counted from 0, and unlike hidden "
     "states there is none for the embedding.",
     lambda maps, step, layer, head: maps[step][layer + 1][:, head, -1]),
    ("layer off by one", "This is the layer before the one asked for. Layers are counted from 0.",
     lambda maps, step, layer, head: maps[step][layer - 1][:, head, -1]),
    ("head off by one", "This is the next head. Heads are counted from 0.",
     lambda maps, step, layer, head: maps[step][layer][:, head + 1, -1]),
    ("first query", "This is the first query of the step. The newest token is the last.",
     lambda maps, step, layer, head: maps[step][layer][:, head, 0]),
    ("key for query",
     "This is how much all queries look at the last key. Asked is what the last query looks at.",
     lambda maps, step, layer, head: maps[step][layer][:, head, :, -1]),
    ("batch lost", "Only the first item of the batch is there.",
     lambda maps, step, layer, head: maps[step][layer][0, head, -1]),
    ("mean over heads", "This is the average over the heads; one is asked for.",
     lambda maps, step, layer, head: maps[step][layer][:, :, -1].mean(1)),
    ("head for batch", "The first axis of a map is the batch, the second the head.",
     lambda maps, step, layer, head: maps[step][layer][head, :, -1]),
    ("head off by one", "This is the head before the one asked for. Heads are counted from 0.",
     lambda maps, step, layer, head: maps[step][layer][:, head - 1, -1]),
):
    last_row.wrong(f"attentions.{kind}", message, pick=pick)
    last_row.wrong(f"attentions.{kind}", message, pick)  # no look first either
