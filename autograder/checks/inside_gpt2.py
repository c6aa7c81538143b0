"""Lesson 09: inside a GPT-2. What it is made of, and what comes out of it."""

from __future__ import annotations

from autograder.checks.gpt2_cases import draw_gpt2, draw_ids, says
from autograder.course.asking import Exercise
from autograder.course.calls import Call, Draw, Namespace
from autograder.judging.forms import large_negative_as_inf


# --- the parts -----------------------------------------------------------------------------------
def _config_cases(draw: Draw) -> list[Call]:
    calls = []
    for own_width in (False, True, False):
        heads, head_size = draw.sizes(2, 3, 23)
        hidden = heads * head_size
        config = {
            "n_layer": draw.integer(4, 40),
            "n_head": heads,
            "n_embd": hidden,
            "n_inner": 3 * hidden + draw.integer(1, 9) if own_width else None,
            "n_positions": draw.integer(500, 2000),
            "vocab_size": draw.integer(5000, 60000),
        }
        text = f"n_layer {config['n_layer']}, n_head {heads}, n_embd {hidden}"
        text += ", n_inner of its own" if own_width else ", n_inner None"
        calls.append(Call("sizes", (Namespace(config),), says=text))
    return calls


def _table_cases(draw: Draw) -> list[Call]:
    calls = []
    for usual in (True, False, False):
        hidden = draw.integer(5, 90)
        width = 4 * hidden if usual else 2 * hidden + draw.integer(1, 5)
        text = f"hidden {hidden}, mlp_width {width}"
        calls.append(Call("block_table", (hidden, width), says=text))
    return calls


def _conv1d_cases(draw: Draw) -> list[Call]:
    calls = []
    for square in (False, True, False):
        batch, seq_len, inputs, outputs = draw.sizes(4, 2, 13)
        outputs = inputs if square else outputs
        x = draw.normal(batch, seq_len, inputs)
        weight, bias = draw.normal(inputs, outputs), draw.normal(outputs)
        text = f"{batch} sequences of {seq_len} tokens, {inputs} features in and {outputs} out"
        calls.append(Call("conv1d", (x, weight, bias), says=text))
    return calls


def _tying_cases(draw: Draw) -> list[Call]:
    tied = draw_gpt2(draw, tied=True)
    apart = draw_gpt2(draw, tied=False)
    twins = draw_gpt2(draw, tied=False)
    weights = twins.values["weights"]
    weights["lm_head.weight"] = weights["transformer.wte.weight"].clone()
    asked = [
        (tied, "one matrix for input and output"),
        (apart, "two different matrices"),
        (twins, "two matrices with the same numbers"),
    ]
    return [Call("tying", (model,), says=says(model, text)) for model, text in asked]


# --- logits, scores, log-probabilities -----------------------------------------------------------
def _scores_cases(draw: Draw) -> list[Call]:
    calls = []
    for temperature in (1.0, 0.6, 1.7):
        batch, vocab = draw.sizes(2, 3, 7)[0], draw.integer(15, 40)
        logits = draw.normal(batch, vocab, scale=3.0) - 20.0
        top_k = draw.integer(2, 9)
        text = f"{batch} rows of {vocab} logits, temperature {temperature}, top_k {top_k}"
        calls.append(Call("sampling_scores", (logits, temperature, top_k), says=text))
    return calls


def _log_probs_cases(draw: Draw) -> list[Call]:
    calls = []
    for shift, spread in ((-80.0, 1.0), (0.0, 2.0), (20.0, 150.0)):
        batch, vocab = draw.choice((2, 3, 5)), draw.integer(15, 40)
        logits = draw.normal(vocab, scale=spread) + shift + draw.normal(batch, vocab, scale=2.0)
        k = draw.integer(6, 11)
        text = f"{batch} rows of {vocab} logits around {shift:.0f}, k {k}"
        calls.append(Call("top_tokens", (logits, k), says=text))
    return calls


# --- hidden states and attentions ----------------------------------------------------------------
def _hidden_cases(draw: Draw) -> list[Call]:
    calls = []
    for layers, block in ((3, 1), (2, 1), (3, 0), (3, 2)):
        model = draw_gpt2(draw, layers)
        batch, seq_len = draw.sizes(2, 2, 7)
        ids = draw_ids(draw, model, batch, seq_len)
        text = says(model, f"block {block}, {batch} sequences of {seq_len} tokens")
        calls.append(Call("block_update", (model, ids, block), says=text))
    return calls


def _logits_cases(draw: Draw) -> list[Call]:
    calls = []
    for layers in (2, 3, 2):
        model = draw_gpt2(draw, layers)
        batch, seq_len = draw.sizes(2, 3, 7)
        hidden = model.values["config"]["n_embd"]
        states = tuple(draw.normal(batch, seq_len, hidden, scale=2.0) for _ in range(layers + 1))
        text = says(model, f"{batch} sequences of {seq_len} tokens")
        calls.append(Call("lens_logits", (model, states), says=text))
    return calls


def _attention_cases(draw: Draw) -> list[Call]:
    calls = []
    for step in (0, 2, 1):
        batch, heads, prompt = draw.sizes(3, 2, 7)
        layers = draw.choice((4, 6))
        steps = tuple(
            tuple(
                draw.normal(batch, heads, 1 if new else prompt, prompt + new, scale=2).softmax(-1)
                for _ in range(layers)
            )
            for new in range(4)
        )
        layer, head = draw.integer(1, layers - 2), draw.integer(0, heads - 2)
        text = f"prompt of {prompt} tokens, {layers} layers, {heads} heads; "
        text += f"step {step}, layer {layer}, head {head}"
        calls.append(Call("last_row", (steps, step, layer, head), says=text))
    return [*calls, Call("last_row", (((), ()), 1, 2, 0), says="a model that returned no maps")]


EXERCISES = [
    Exercise(
        "inside.config",
        "sizes",
        _config_cases,
        hints=(
            "Every number asked for is in the config or follows from it in one step. Which of "
            "them belong to one head, and which to the whole model?",
            "`n_embd` is shared out among the heads. `n_inner` says how wide the MLP is, and None "
            "means: the usual multiple of `n_embd`. The scale of lesson 02 used the size of one "
            "key.",
            "head_size is n_embd // n_head and scale is one over its root; mlp_width is n_inner, "
            "or 4 * n_embd where that is None; there is a hidden state before the first block and "
            "one after each.",
        ),
    ),
    Exercise(
        "inside.table",
        "block_table",
        _table_cases,
        hints=(
            "Go through the module tree from top to bottom. What comes in, what goes out, and in "
            "which order does Conv1D store the two?",
            "A LayerNorm has one number a feature, in weight and in bias. c_attn makes queries, "
            "keys and values at once. A bias belongs to the outputs.",
            "Weights of Conv1D are (inputs, outputs). c_attn: hidden in, 3 * hidden out. "
            "attn.c_proj: hidden to hidden. c_fc goes up to mlp_width, mlp.c_proj comes down. "
            "Each bias is (outputs,).",
        ),
    ),
    Exercise(
        "inside.conv1d",
        "conv1d",
        _conv1d_cases,
        hints=(
            "Write down the shapes: x is [batch_size, seq_len, inputs]. On which side must a "
            "weight of [inputs, outputs] stand?",
            "`@` works on the last two axes and leaves the batch alone. `F.linear` transposes its "
            "weight, and for a square one nothing tells you.",
            "One matrix product, x on the left and the weight as it is, and then the bias.",
        ),
    ),
    Exercise(
        "inside.tying",
        "tying",
        _tying_cases,
        hints=(
            "Two tensors may hold the same numbers and still be two tensors. Training would pull "
            "them apart. What is the same only for one tensor under two names?",
            "`data_ptr()` is the address of a tensor's first number. `state_dict()` lists every "
            "name; two names with one address are one tensor.",
            "tied: compare the data_ptr() of lm_head.weight and transformer.wte.weight. stored: "
            "sum numel() over state_dict().values(). learned: the same sum, each address once.",
        ),
    ),
    Exercise(
        "inside.scores",
        "sampling_scores",
        _scores_cases,
        hints=(
            "Scores are logits after the processing that a way of decoding asks for. There are "
            "two steps here. Neither of them is a softmax.",
            "A temperature above 1 makes the choice more even, so differences must shrink. For "
            "the second step you need each row's own k-th largest value.",
            "Divide by the temperature. `torch.topk(..., k, dim=-1)` gives the k largest of each "
            "row, sorted; everything below the last of them becomes minus infinity.",
        ),
        judge=large_negative_as_inf,
    ),
    Exercise(
        "inside.log_probs",
        "top_tokens",
        _log_probs_cases,
        hints=(
            "A logit alone says nothing about probability: add 80 to all of them and the model "
            "has not changed its mind. What must be taken off?",
            "Subtract the logarithm of the sum of all exponentials, over the vocabulary. Do it "
            "for all tokens before you pick k of them, and without passing through tiny "
            "probabilities.",
            "`torch.log_softmax(logits, dim=-1)`, then `torch.topk` of that along the last axis; "
            "topk returns values first, but the ids are asked for first.",
        ),
    ),
    Exercise(
        "inside.hidden",
        "block_update",
        _hidden_cases,
        hints=(
            "A block reads the residual stream and adds to it. What goes in, what comes out, and "
            "where does `hidden_states` hold each? For the last block, look twice.",
            "hidden_states[b] is the input of block b. The last entry has been through ln_f, so "
            "it is not the output of the last block. `record` can catch that output, or the "
            "input of ln_f.",
            'Record two modules: f"h.{block}:input" and f"h.{block}", run the model once, and '
            "subtract what went in from what came out.",
        ),
    ),
    Exercise(
        "inside.logits",
        "lens_logits",
        _logits_cases,
        hints=(
            "The last entry gives the model's own logits. What happens to it on the way, and what "
            "has already happened?",
            "The unembedding is a product with wte, transposed. Before it stands ln_f; the last "
            "hidden state has it behind it, the others have not.",
            "Take position -1 of every state. model.transformer.ln_f for all states but the last, "
            "then model.lm_head for all of them; stack along a new first axis.",
        ),
    ),
    Exercise(
        "inside.attentions",
        "last_row",
        _attention_cases,
        hints=(
            "Peel it from the outside: what does the first index count, what the second, and what "
            "are the four axes of the tensor inside?",
            "Steps first, then layers; the tensor is [batch_size, num_heads, queries, keys]. The "
            "newest token is the last query. What does an attention that keeps no maps leave you?",
            "Where attentions[step] is empty, raise a ValueError. Otherwise "
            "attentions[step][layer], that head, the last query, all keys, all batch items.",
        ),
    ),
]
