"""Wrong answers to the homework with one slip each, and a few with two: the solution, changed.

They are grouped by the step that the slip is made in, and so by what each should cost. What each
does cost, and what is said of it, is in docs/what_a_slip_costs.md.
"""

from __future__ import annotations

from autograder.course.course import Course
from autograder.grading.grade import model_answers
from tests.conftest import ROOT

SINGLE, MULTI = "self_attention", "multi_head"
Change = tuple[tuple[str, str], ...]  # texts of the solution, and what stands in their place


def program(cell: str, *changes: Change) -> str:
    """The solution of one class with these changes."""
    source = model_answers(Course.at(ROOT), "05_homework")[cell]
    for change in changes:
        for old, new in change:
            assert old in source, f"the solution of {cell} holds no {old!r}"
            source = source.replace(old, new)
    return source


def line(old: str, new: str) -> Change:
    return ((old, new),)


# --- SelfAttention -------------------------------------------------------------------------------
LAYERS = "".join(f"        self.{n} = nn.Linear(input_size, hidden)\n" for n in "qkv")
SCORES = "scores = q @ self.k(x).transpose(1, 2) / self.scale  #"
PROBS = "probs = F.softmax(scores, dim=-1)"
SCALE = "self.scale = hidden**0.5"


def scores(text: str) -> Change:
    return line(SCORES, f"scores = {text}  #")


def layers(old: str, new: str) -> Change:
    """All three layers with a part of their lines changed."""
    return line(LAYERS, LAYERS.replace(old, new))


PLAIN = scores("q @ self.k(x).transpose(1, 2)")
SINGLE_SCALE = {
    "the scores are not scaled": PLAIN,
    "divided by hidden": line(SCALE, "self.scale = hidden"),
    "divided by hidden squared": line(SCALE, "self.scale = hidden**2"),
    "divided by half of hidden (`hidden**1/2`)": line(SCALE, "self.scale = hidden / 2"),
    "divided by the square root of input_size": line(SCALE, "self.scale = input_size**0.5"),
    "divided by the square root of seq_len": scores("q @ self.k(x).mT / x.shape[1] ** 0.5"),
    "divided by the square root of batch_size": scores("q @ self.k(x).mT / x.shape[0] ** 0.5"),
    "divided by the fourth root of hidden": line(SCALE, "self.scale = hidden**0.25"),
    "divided by 8, whatever hidden is": line(SCALE, "self.scale = 8"),
    "multiplied by the square root of hidden": line("/ self.scale", "* self.scale"),
    "multiplied by hidden": line(SCALE, "self.scale = 1 / hidden"),
    "scaled after the softmax": PLAIN + line(PROBS, f"{PROBS} / self.scale"),
    "scaled before and after the softmax": line(PROBS, f"{PROBS} / self.scale"),
    "the output is scaled": PLAIN + line("@ self.v(x)", "@ self.v(x) / self.scale"),
}
SINGLE_FORWARD = {
    "softmax over the queries": line("dim=-1", "dim=1"),
    "softmax over the batch": line("dim=-1", "dim=0"),
    "softmax twice": line(PROBS, "probs = scores.softmax(-1).softmax(-1)"),
    "no softmax": line(PROBS, "probs = scores"),
    "values made with the keys' layer": line("self.v(x)", "self.k(x)"),
    "queries and keys swapped": line("q = self.q(x)", "q = self.k(x)")
    + line("q @ self.k(x)", "q @ self.q(x)"),
    "the minus sign of another formula": scores("-q @ self.k(x).transpose(1, 2) / self.scale"),
    "the scores do not count (times 0)": scores("0 * q @ self.k(x).transpose(1, 2)"),
    "keys not transposed (an error)": scores("q @ self.k(x) / self.scale"),
    "later tokens hidden, though nobody asked": line(
        PROBS,
        "scores += torch.ones_like(scores).tril().log()  # [batch_size, seq_len, seq_len]\n"
        f"        {PROBS}",
    ),
    "the probabilities are detached": line("return probs @", "return probs.detach() @"),
    "the result is squeezed": line("self.v(x)  #", "self.v(x).squeeze()  #"),
}
SINGLE_LAYERS = {
    "`query`, `key`, `value` for `q`, `k`, `v`": tuple(
        (f"self.{n[0]}", f"self.{n}") for n in ("query", "key", "value")
    ),
    "`value` for `v`": line("self.v", "self.value"),
    "`a`, `b`, `c` for `q`, `k`, `v`": tuple(
        (f"self.{n}", f"self.{m}") for n, m in zip("qkv", "abc", strict=True)
    ),
    "one layer `qkv`, cut in three": line(
        LAYERS, "        self.qkv = nn.Linear(input_size, 3 * hidden)\n"
    )
    + line("q = self.q(x)", "q, k, v = self.qkv(x).chunk(3, dim=-1)")
    + line("self.k(x)", "k")
    + line("self.v(x)", "v"),
    "`k` is twice as wide": line(
        "self.k = nn.Linear(input_size, hidden)", "self.k = nn.Linear(input_size, 2 * hidden)"
    ),
    "all layers are twice as wide": layers("hidden)", "2 * hidden)"),
    "input_size and hidden swapped in all layers": layers(
        "input_size, hidden", "hidden, input_size"
    ),
    "layers without a bias": layers("hidden)", "hidden, bias=False)"),
    "`v` is the same layer as `k`": line(
        "self.v = nn.Linear(input_size, hidden)", "self.v = self.k"
    ),
    "`self.` is missing before `v`": line("        self.v = nn", "        v = nn"),
    "no `super().__init__()`": line("        super().__init__()\n", ""),
}
STYLE = {
    "a line that is not PEP 8": line(SCORES, SCORES.replace(" = q @ ", "=q@")),
    "a false shape comment": line(
        "# [batch_size, seq_len, seq_len]", "# [batch_size, seq_len, hidden]"
    ),
}
THREE_LINES = line("q = self.q(x)  # [batch_size, seq_len, hidden]\n        ", "") + line(
    "q @ self.k(x).transpose(1, 2)", "self.q(x) @ self.k(x).mT"
)
SINGLE_PAIRS = {
    "`value` for `v`, and not scaled": line("self.v", "self.value") + PLAIN,
    "`value` for `v`, and softmax over the queries": line("self.v", "self.value")
    + line("dim=-1", "dim=1"),
    "not scaled, and not PEP 8": PLAIN + line("scores = q @", "scores=q @"),
    "not scaled, and softmax over the queries": PLAIN + line("dim=-1", "dim=1"),
    "all layers twice as wide, and not scaled": layers("hidden)", "2 * hidden)") + PLAIN,
}


# --- MultiHeadSelfAttention ----------------------------------------------------------------------
HEADS = {
    n: f"        {n} = self.{n}(x).view(bs, seq, self.num_heads, self.head_size).transpose(1, 2)\n"
    "        # [bs, seq, hidden] -> view [bs, seq, num_heads, head_size]\n"
    "        # -> transpose [bs, num_heads, seq, head_size]\n"
    for n in "kqv"
}
MULTI_LAYERS = (
    "        self.k, self.q, self.v = (nn.Linear(input_size, hidden) for _ in range(3))\n"
)
MULTI_SCALE = "self.scale = self.head_size**0.5"
MULTI_SCORES = "scores = q @ k.transpose(-2, -1) / self.scale"
MULTI_PROBS = "probs = self.dropout(F.softmax(scores, dim=-1))"
MASK, HIDE = ".triu(1).bool()", 'scores.masked_fill(mask, float("-inf"))'
MERGE = "        att = att.transpose(1, 2).reshape(bs, seq, self.num_heads * self.head_size)\n"
MERGE_SAYS = (
    "        # [bs, num_heads, seq, head_size] -> transpose [bs, seq, num_heads, head_size]\n"
    "        # -> reshape [bs, seq, hidden]\n"
)
MIX = "        att = self.mix(att)  # [bs, seq, hidden]\n"
RETURNED = (
    "        probs = probs.reshape(bs * self.num_heads, seq, seq)  # [bs * num_heads, seq, seq]\n"
)


def split(names: str, how: str) -> Change:
    """The heads of these projections, split in another way."""
    return tuple(
        (HEADS[n], f"        {n} = self.{n}(x){how}\n        # [bs, num_heads, seq, head_size]\n")
        for n in names
    )


def merge(how: str) -> Change:
    return line(MERGE + MERGE_SAYS, f"        att = att{how}  # [bs, seq, hidden]\n")


RESHAPED = ".reshape(bs, self.num_heads, seq, self.head_size)"
EVERY = ".reshape(bs, seq, self.head_size, self.num_heads).permute(0, 3, 1, 2)"
MERGED_ALONE = merge(".reshape(bs, seq, self.num_heads * self.head_size)")
MULTI_PLAIN = line(MULTI_SCORES, "scores = q @ k.transpose(-2, -1)")
AFTER = MULTI_PLAIN + line(
    MULTI_PROBS, "probs = self.dropout(F.softmax(scores, dim=-1) / self.scale)"
)
BY_HIDDEN = line(MULTI_SCALE, "self.scale = hidden**0.5")
UNDROPPED = line(MULTI_PROBS, "probs = F.softmax(scores, dim=-1)")
MULTI_SCALE_SLIPS = {
    "the scores are not scaled": MULTI_PLAIN,
    "divided by the square root of hidden": BY_HIDDEN,
    "divided by head_size": line(MULTI_SCALE, "self.scale = self.head_size"),
    "divided by half of head_size (`head_size**1/2`)": line(
        MULTI_SCALE, "self.scale = self.head_size / 2"
    ),
    "divided by the square root of num_heads": line(MULTI_SCALE, "self.scale = num_heads**0.5"),
    "divided by the square root of input_size": line(MULTI_SCALE, "self.scale = input_size**0.5"),
    "divided by the square root of seq_len": line("/ self.scale", "/ seq**0.5"),
    "divided by the fourth root of head_size": line(
        MULTI_SCALE, "self.scale = self.head_size**0.25"
    ),
    "divided by 8, whatever head_size is": line(MULTI_SCALE, "self.scale = 8"),
    "multiplied by the square root of head_size": line("/ self.scale", "* self.scale"),
    "multiplied by head_size": line(MULTI_SCALE, "self.scale = 1 / self.head_size"),
    "scaled after the softmax": AFTER,
    "scaled before and after the softmax": line(
        MULTI_PROBS, "probs = self.dropout(F.softmax(scores, dim=-1) / self.scale)"
    ),
}
MULTI_FIRST = {
    "queries and keys swapped": line("q @ k.transpose", "k @ q.transpose"),
    "keys made with the queries' layer": line("k = self.k(x)", "k = self.q(x)"),
    "heads split by a reshape alone": split("kqv", RESHAPED),
    "heads of the keys alone split by a reshape": split("k", RESHAPED),
    "heads take every num_heads-th feature": split("kqv", EVERY),
}
MULTI_MASK = {
    "no mask": line("if self.causal:", "if False:"),
    "the mask hides the current token too": line(MASK, ".triu(0).bool()"),
    "the mask starts one token late": line(MASK, ".triu(2).bool()"),
    "the mask is the wrong way round": line(MASK, ".tril().bool()"),
    "hidden scores are set to 0": line(HIDE, "scores.masked_fill(mask, 0.0)"),
    "hidden scores are set to -10": line(HIDE, "scores.masked_fill(mask, -10.0)"),
    "the masked scores are thrown away": line(f"scores = {HIDE}", HIDE),
    "the mask has NaN in it": line(HIDE, "scores + mask * -torch.inf"),
    "the mask is no mask (an error)": line(MASK, ".triu(1)"),
    "the mask is applied always": line("if self.causal:", "if True:"),
    "causal is True by default": line("causal=False", "causal=True"),
}
MULTI_OUTPUT = {
    "values made with the keys' layer": line("v = self.v(x)", "v = self.k(x)"),
    "heads of the values alone split by a reshape": split("v", RESHAPED),
    "heads merged by a reshape alone": MERGED_ALONE,
    "heads merged by a view alone (an error)": merge(".transpose(1, 2).view(bs, seq, -1)"),
    "heads averaged": merge(".mean(1).repeat(1, 1, self.num_heads)"),
    "softmax over the queries": line("dim=-1", "dim=-2"),
    "softmax over the heads": line("dim=-1", "dim=1"),
    "softmax twice": line(MULTI_PROBS, "probs = self.dropout(scores.softmax(-1).softmax(-1))"),
    "no softmax": line(MULTI_PROBS, "probs = self.dropout(scores)"),
    "softplus for softmax": line(MULTI_PROBS, "probs = self.dropout(F.softplus(scores))"),
    "no dropout": UNDROPPED,
    "dropout on the scores": line(MULTI_PROBS, "probs = F.softmax(self.dropout(scores), dim=-1)"),
    "dropout on the values": UNDROPPED + line("att = probs @ v", "att = probs @ self.dropout(v)"),
    "dropout on the output": UNDROPPED + line("self.mix(att)", "self.dropout(self.mix(att))"),
    "dropout in evaluation too": line(
        MULTI_PROBS, "probs = F.dropout(F.softmax(scores, dim=-1), self.dropout.p)"
    ),
    "mix left out": line(MIX, ""),
    "mix applied twice": line(MIX, MIX + MIX),
    "mix without its bias": line("self.mix(att)", "att @ self.mix.weight.T"),
    "probabilities returned as 4-D": line(RETURNED, ""),
    "probabilities returned head by head": line(
        RETURNED,
        "        probs = probs.transpose(0, 1).flatten(0, 1)  # [num_heads * bs, seq, seq]\n",
    ),
    "probabilities returned as their mean over heads": line(
        RETURNED, "        probs = probs.mean(1)  # [bs, seq, seq]\n"
    ),
    "scores returned for probabilities": line(RETURNED, RETURNED.replace("= probs", "= scores")),
    "probabilities not returned": line("return att, probs", "return att"),
    "returned in the other order": line("return att, probs", "return probs, att"),
}
MULTI_LAYER_SLIPS = {
    "`out_proj` for `mix`": line("self.mix", "self.out_proj"),
    "`query`, `key`, `value` for `q`, `k`, `v`": line("self.k,", "self.key,")
    + line("self.q,", "self.query,")
    + line("self.v =", "self.value =")
    + tuple((f"self.{n[0]}(x)", f"self.{n}(x)") for n in ("key", "query", "value")),
    "`mix` is as wide as the input": line("(hidden, hidden)", "(hidden, input_size)"),
    "`q`, `k`, `v` without a bias": line("hidden) for", "hidden, bias=False) for"),
    "one layer for `q`, `k` and `v`": line(
        MULTI_LAYERS, "        self.k = self.q = self.v = nn.Linear(input_size, hidden)\n"
    ),
    "no layer `mix`, though it is used": line("        self.mix = nn.Linear(hidden, hidden)\n", ""),
    "no `super().__init__()`": line("        super().__init__()\n", ""),
}
MULTI_STYLE = {
    "a line that is not PEP 8": line("scores = q @", "scores=q @"),
    "a false shape comment": line("bool()  # [seq, seq]", "bool()  # [seq, head_size]"),
}
# Where an error comes up before anything can be seen of the steps.
STOPPED = {
    "`nn.Linear(input_size)` (an error)": line(
        "self.v = nn.Linear(input_size, hidden)", "self.v = nn.Linear(input_size)"
    ),
}
MULTI_STOPPED = {
    "no `self.scale`, though it is used (an error)": line(f"        {MULTI_SCALE}\n", ""),
    "the number of heads is always 3 (an error)": line(
        "self.num_heads = num_heads", "self.num_heads = 3"
    ),
}
MULTI_PAIRS = {
    "divided by the square root of hidden, no mask": BY_HIDDEN
    + line("if self.causal:", "if False:"),
    "divided by the square root of hidden, mix left out": BY_HIDDEN + line(MIX, ""),
    "scaled after the softmax, merged by a reshape alone": AFTER + MERGED_ALONE,
    "not scaled, probabilities not returned": MULTI_PLAIN + line("return att, probs", "return att"),
    "heads split and merged by a reshape alone": split("kqv", RESHAPED) + MERGED_ALONE,
    "the mask starts one token late, merged by a reshape alone": line(MASK, ".triu(2).bool()")
    + MERGED_ALONE,
    "`out_proj` for `mix`, the mask starts one token late": line("self.mix", "self.out_proj")
    + line(MASK, ".triu(2).bool()"),
    "`out_proj` for `mix`, divided by the square root of hidden": line("self.mix", "self.out_proj")
    + BY_HIDDEN,
    "`out_proj` for `mix`, and not PEP 8": line("self.mix", "self.out_proj")
    + line("scores = q @", "scores=q @"),
}


# --- what each group costs ------------------------------------------------------------------------
# By class: (what is lost of each task, what is taken off) -> the slips.
Costs = list[tuple[tuple[int, ...], int, dict[str, Change]]]
SLIPS: dict[str, Costs] = {
    SINGLE: [
        ((0, 0), 1, SINGLE_SCALE),
        ((0, 3), 0, SINGLE_FORWARD),
        ((1, 0), 0, SINGLE_LAYERS),
        ((0, 0), 1, STYLE),
        ((1, 3), 0, STOPPED),
    ],
    MULTI: [
        ((0, 0, 0), 1, MULTI_SCALE_SLIPS),
        ((3, 0, 0), 0, MULTI_FIRST),
        ((0, 1, 0), 0, MULTI_MASK),
        ((0, 0, 2), 0, MULTI_OUTPUT),
        ((0, 0, 0), 1, MULTI_LAYER_SLIPS),
        ((0, 0, 0), 1, MULTI_STYLE),
        ((3, 1, 2), 0, MULTI_STOPPED),
    ],
}
PAIRS = {SINGLE: SINGLE_PAIRS, MULTI: MULTI_PAIRS}
