"""Lesson 08: other sources, fewer keys and values, other positions, shorter sight, no softmax.

Masks are True where a key is hidden. Queries, keys and values come as [batch_size, num_heads,
seq_len, head_size] where there are heads, else as [batch_size, seq_len, size].
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from autograder import Call, Draw, Made, exercise

from .judges.variants import confused, in_low_precision

INF = float("inf")


# --- what several answers are made of ------------------------------------------------------------
def root(size):
    return size**-0.5


def later(q_len, k_len):
    """True where a key comes after a query, the last query being the last key's own."""
    return torch.ones(q_len, k_len).triu(k_len - q_len + 1).bool()


def nothing(q_len, k_len):
    return torch.zeros(q_len, k_len).bool()


def over_keys(scores, hidden):
    return scores.masked_fill(hidden, -INF).softmax(-1)


WEIGHED_WRONGLY = [  # (name, message, what stands in the place of `over_keys`)
    ("softmax.dim", "The softmax runs over the queries. Use the last dimension.",
     lambda s, hidden: s.masked_fill(hidden, -INF).softmax(-2)),
    ("softmax.dim", "The softmax runs over the queries. Use the last dimension.",
     lambda s, hidden: s.masked_fill(hidden, -1e9).softmax(-2)),
    ("softmax.missing", "There is no softmax.", lambda s, hidden: s.masked_fill(hidden, 0.0)),
    ("softmax.twice", "The softmax is applied twice.",
     lambda s, hidden: over_keys(s, hidden).softmax(-1)),
    ("mask.filled with 0", "Hidden scores are set to 0 or next to it, and exp of that is 1.",
     lambda s, hidden: s.masked_fill(hidden, 0.0).softmax(-1)),
    ("mask.filled with a number", "Hidden scores are set to -1, but exp(-1) is no 0.",
     lambda s, hidden: s.masked_fill(hidden, -1.0).softmax(-1)),
    ("softmax.other", "It is a sigmoid: the rows do not sum to 1.",
     lambda s, hidden: s.masked_fill(hidden, -INF).sigmoid()),
    ("mask.after softmax", "The mask comes after the softmax, and the rows no longer sum to 1.",
     lambda s, hidden: s.softmax(-1).masked_fill(hidden, 0.0)),
]


# --- cross-attention -----------------------------------------------------------------------------
def two_texts(draw: Draw) -> list[Call]:
    """Sizes that differ, and once sizes that are equal, where a slip raises no error."""
    calls = []
    for same in (False, False, True):
        batch_size, x_len, source_len, input_size, source_size, hidden = draw.sizes(6, 3, 19)
        if same:
            source_len, source_size = x_len, input_size
        lengths = [draw.integers(1, n + 1, batch_size) for n in (x_len, source_len)]
        lengths[0][0], lengths[1][0] = 2, 1
        lengths[0][1], lengths[1][1] = 1, source_len
        lengths[0][2], lengths[1][2] = x_len, 2
        weights = {
            **draw.linear("q", input_size, hidden),
            **draw.linear("k", source_size, hidden),
            **draw.linear("v", source_size, hidden),
        }
        args = (draw.normal(batch_size, x_len, input_size),
                draw.normal(batch_size, source_len, source_size), *lengths)
        says = f"{batch_size} times {x_len} tokens that look at {source_len} others, some padding"
        calls.append(Call("", args, init=(input_size, source_size, hidden), weights=weights,
                          says=says))
    return calls


@exercise("variants.cross", two_texts,
          hints=(
              "Who asks, and who is asked? Queries are made of `x`, keys and values of `source`.",
              "The padding of the source hides keys, before the softmax. The padding of `x` hides "
              "nothing: its rows are set to 0 at the end.",
              "`torch.arange(source_len) >= source_lengths[:, None]` is [batch_size, source_len]; "
              "put an axis for the queries between. There is no causal mask."))
class CrossAttention(nn.Module):
    asks, asked, tells = "x", "source", "source"
    power, causal, silent, key_lengths, row_lengths = -0.5, False, True, "source", "x"
    weigh, inverted, divisor, late, plus = staticmethod(over_keys), False, "hidden", 0.0, 0.0
    gives, kept, emptied = "output", "real rows", False

    def __init__(self, input_size, source_size, hidden):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(source_size, hidden)
        self.v = nn.Linear(source_size, hidden)

    def forward(self, x, source, x_lengths, source_lengths):
        if self.emptied:
            source = source * (torch.arange(source.shape[1]) < source_lengths[:, None])[..., None]
        texts = {"x": x, "source": source}
        lengths = {"x": x_lengths, "source": source_lengths,
                   "nobody": torch.full_like(x_lengths, 10**6),
                   "first": source_lengths[:1].expand_as(source_lengths),
                   "one more": source_lengths + 1, "one less": (source_lengths - 1).clamp(min=1)}
        q, k = self.q(texts[self.asks]), self.k(texts[self.asked])
        v = self.v(texts[self.tells])
        sizes = {"hidden": k.shape[-1], "keys": k.shape[1], "source size": source.shape[-1],
                 "input size": x.shape[-1]}
        scores = q @ k.mT * sizes[self.divisor] ** self.power
        padding = torch.arange(k.shape[1]) >= lengths[self.key_lengths][:, None]
        padding = ~padding if self.inverted else padding
        hidden = padding[:, None] | (torch.ones_like(scores).triu(1).bool() & self.causal)
        probs = self.weigh(scores, hidden) * k.shape[-1] ** self.late
        empty = torch.arange(q.shape[1]) >= lengths[self.row_lengths][:, None]
        empty = ~empty if self.kept == "padding" else empty
        if self.kept == "queries":
            probs = self.weigh((q * ~empty[..., None]) @ k.mT * k.shape[-1] ** -0.5, hidden)
        out = probs @ v + self.plus * q if self.gives == "output" else probs
        return out.masked_fill(empty[..., None] & self.silent, 0.0)

wrong = CrossAttention.wrong
wrong("cross.mask from the targets", "The keys are hidden by the lengths of `x`. They belong to "
      "the source, so its lengths say which are real.", key_lengths="x")
wrong("cross.causal", "A causal mask is at work. The source is known from the beginning: nothing "
      "in it is the future.", causal=True)
wrong("cross.source padding seen", "The padding of the source is looked at.", key_lengths="nobody")
wrong("cross.targets not silent", "The rows of `x` that are padding are not 0.", silent=False)
wrong("cross.targets not silent", "The padding of `x` is set to 0 before attention. A query of 0 "
      "looks at all keys alike, and gets a mean: set the rows of the output to 0.",
      kept="queries", silent=False)
wrong("cross.targets not silent", "The rows that are set to 0 are counted by the source's lengths; "
      "rows belong to `x`.", row_lengths="source")
wrong("cross.source set to 0", "The padding of the source is set to 0, and is looked at all the "
      "same: a key of zeros, or of a bias alone, gets its share of the softmax.",
      key_lengths="nobody", emptied=True)
wrong("cross.same for all", "All sources get the length of the first.", key_lengths="first")
wrong("cross.one too many seen", "One padding token of the source is still seen.",
      key_lengths="one more")
wrong("cross.one too many hidden", "The last real token of the source is hidden.",
      key_lengths="one less")
wrong("cross.values from x", "The values are made of `x`. Then nothing of the source gets through, "
      "only where it stands.", tells="x")
wrong("cross.keys from x", "The keys are made of `x`, as in self-attention.", asked="x")
wrong("cross.self-attention", "Keys and values are made of `x`: this is self-attention.",
      asked="x", tells="x")
wrong("cross.queries from the source", "The queries are made of the source; it is `x` that asks.",
      asks="source")
wrong("cross.roles swapped", "The source asks and `x` answers; it should be the other way round.",
      asks="source", asked="x", tells="x")
wrong("scale.missing", "The scores are not scaled.", power=0)
wrong("scale.not a root", "The scores are divided by the size itself.", power=-1)
wrong("scale.other", "The scores are divided by the root of the source's size, not of `hidden`.",
      divisor="source size")
wrong("scale.other", "The scores are divided by the root of the input's size, not of `hidden`.",
      divisor="input size")
wrong("scale.other", "The scores are divided by the root of the number of keys, not of `hidden`.",
      divisor="keys")
wrong("scale.multiplied", "The scores are multiplied by the root.", power=0.5)
wrong("scale.after the softmax", "The scale comes after the softmax. It belongs to the scores.",
      power=0, late=-0.5)
wrong("cross.queries added", "The queries are added to the output. No residual was asked for.",
      plus=1.0)
wrong("cross.weights for output", "The weights came back, not what they make of the values.",
      gives="weights", silent=False)
wrong("cross.rows inverted", "The real rows of `x` are set to 0, and its padding is kept.",
      kept="padding")
wrong("cross.inverted", "The real tokens of the source are hidden and its padding is seen.",
      inverted=True)
wrong("cross.inverted", "The real tokens of the source are hidden and its padding is seen.",
      inverted=True,
      weigh=staticmethod(lambda s, hidden: s.masked_fill(hidden, -1e9).softmax(-1)))
for check, message, weigh in WEIGHED_WRONGLY:
    wrong(check, message, weigh=staticmethod(weigh))


# --- fewer keys and values -----------------------------------------------------------------------
def groups(draw: Draw) -> list[Call]:
    """Several groups, one group for all heads (multi-query), and one for each (as in lesson 04)."""
    calls = []
    several = draw.choice([(6, 2), (6, 3), (8, 4)]), draw.choice([(8, 2), (9, 3)])
    for num_heads, kv_heads in (*several, (4, 1), (4, 4)):
        batch_size, seq_len, head_size = draw.sizes(3, 3, 13, other_than=(num_heads, kv_heads))
        q, k, v = (draw.normal(batch_size, h, seq_len, head_size, scale=1.5)
                   for h in (num_heads, kv_heads, kv_heads))
        says = f"{num_heads} heads of queries, {kv_heads} of keys and values, {seq_len} tokens"
        calls.append(Call("", (q, k, v), says=says))
    return calls


def each_in_turn(t, times):
    return t.repeat_interleave(times, 1)


def one_each(t, times):
    return t[:, torch.arange(t.shape[1] * times).clamp(max=t.shape[1] - 1)]


def all_in_turn(t, times):
    return t.repeat(1, times, 1, 1)


@exercise("variants.grouped", groups,
          hints=(
              "Which head of keys does query head 0 read, which one query head 1? Neighbours "
              "share.",
              "Each head of keys serves num_heads // kv_heads query heads that stand side by side. "
              "Which PyTorch function repeats every element, before going on to the next?",
              "`k.repeat_interleave(num_heads // kv_heads, dim=1)`, the same for v, and then "
              "causal attention as ever."))
def grouped_attention(q, k, v, spread_k=each_in_turn, spread_v=each_in_turn, power=-0.5,
                      hide=later, size_of=lambda q, k: q.shape[-1],
                      merge=lambda out, kv: out, weigh=over_keys):
    times = q.shape[1] // k.shape[1]
    scores = q @ spread_k(k, times).mT * size_of(q, k) ** power
    probs = weigh(scores, hide(q.shape[2], k.shape[2]))
    return merge(probs @ spread_v(v, times), k.shape[1])

wrong = grouped_attention.wrong
REPEAT = ("The heads of keys and values are repeated as a whole: 0 1 0 1 and not 0 0 1 1, so that "
          "query heads read those of another group.")
wrong("group.repeat", REPEAT, spread_k=all_in_turn, spread_v=all_in_turn)
wrong("group.repeat", "Keys and values are repeated in different orders: the keys 0 1 0 1.",
      spread_k=all_in_turn)
wrong("group.repeat", "Keys and values are repeated in different orders: the values 0 1 0 1.",
      spread_v=all_in_turn)
wrong("group.first only", "All query heads read the first head of keys and values.",
      spread_k=lambda t, n: t[:, :1], spread_v=lambda t, n: t[:, :1])
wrong("group.first only", "All query heads read the last head of keys and values.",
      spread_k=lambda t, n: t[:, -1:], spread_v=lambda t, n: t[:, -1:])
wrong("group.first only", "All query heads read the first head of values.",
      spread_v=lambda t, n: t[:, :1])
wrong("group.first only", "All query heads read the first head of keys.",
      spread_k=lambda t, n: t[:, :1])
wrong("group.queries shared", "All heads of a group ask with the queries of its first head. Only "
      "keys and values are shared.", lambda q, k, v: grouped_attention(
          each_in_turn(q[:, :: q.shape[1] // k.shape[1]], q.shape[1] // k.shape[1]), k, v))
wrong("group.last for the rest", "Query head h reads head h of keys and values, and where "
      "there is none the last one. Neighbours share: h // (num_heads // kv_heads).",
      spread_k=one_each, spread_v=one_each)
wrong("group.averaged", "The heads of keys and values are averaged; each group has its own.",
      spread_k=lambda t, n: t.mean(1, keepdim=True), spread_v=lambda t, n: t.mean(1, keepdim=True))
wrong("group.reversed", "The groups stand in reverse order.",
      spread_k=lambda t, n: each_in_turn(t.flip(1), n),
      spread_v=lambda t, n: each_in_turn(t.flip(1), n))
wrong("group.queries averaged", "The queries of a group are averaged, so that its heads all say "
      "the same. Only keys and values are shared.",
      lambda q, k, v: grouped_attention(
          each_in_turn(q.unflatten(1, (k.shape[1], -1)).mean(2), q.shape[1] // k.shape[1]), k, v))
wrong("group.heads out of order", "The heads come out in another order than the queries went in.",
      merge=lambda out, kv: out.unflatten(1, (kv, -1)).transpose(1, 2).flatten(1, 2))
wrong("group.heads out of order", "The heads come out in another order than the queries went in.",
      merge=lambda out, kv: out.unflatten(1, (-1, kv)).transpose(1, 2).flatten(1, 2))
wrong("group.too few heads", "What comes out has as many heads as there are keys. Every query head "
      "gives an output.", merge=lambda out, kv: out.unflatten(1, (kv, -1)).mean(2))
wrong("group.too few heads", "What comes out has as many heads as there are keys. Every query head "
      "gives an output.", merge=lambda out, kv: out.unflatten(1, (kv, -1)).sum(2))
wrong("scale.missing", "The scores are not scaled.", power=0)
wrong("scale.not a root", "The scores are divided by the size itself.", power=-1)
wrong("scale.all heads", "The scores are divided by the root of the size of all heads together.",
      size_of=lambda q, k: q.shape[1] * q.shape[-1])
wrong("mask.none", "Nothing is hidden: later tokens are seen.", hide=nothing)
wrong("mask.diagonal hidden", "The current token is hidden too.",
      hide=lambda q, k: torch.ones(q, k).triu(0).bool())
wrong("mask.one step late", "Each token sees the one after it.",
      hide=lambda q, k: torch.ones(q, k).triu(2).bool())
wrong("mask.inverted", "The mask is the wrong way round.", hide=lambda q, k: later(q, k).mT)


wrong("group.axes swapped", "Heads and tokens have changed places in what comes out.",
      merge=lambda out, kv: out.transpose(1, 2))
wrong("group.merged", "The heads are merged; here each stays by itself.",
      merge=lambda out, kv: out.transpose(1, 2).flatten(2))
wrong("group.averaged", "The heads of the values are averaged; each group has its own.",
      spread_v=lambda t, n: t.mean(1, keepdim=True))
wrong("group.averaged", "The heads of the keys are averaged; each group has its own.",
      spread_k=lambda t, n: t.mean(1, keepdim=True))
wrong("group.reversed", "The keys' groups stand in reverse order.",
      spread_k=lambda t, n: each_in_turn(t.flip(1), n))
wrong("group.reversed", "The values' groups stand in reverse order.",
      spread_v=lambda t, n: each_in_turn(t.flip(1), n))
wrong("group.added up", "The heads of keys are added up; each group has its own.",
      spread_k=lambda t, n: t.sum(1, keepdim=True))
wrong("scale.other", "The scores are divided by the root of the group's size.",
      size_of=lambda q, k: q.shape[1] // k.shape[1])
wrong("scale.other", "The scores are divided by the root of the size of all heads of a group.",
      size_of=lambda q, k: q.shape[-1] * (q.shape[1] // k.shape[1]))
wrong("scale.other", "The scores are divided by the root of the size of all heads of keys.",
      size_of=lambda q, k: q.shape[-1] * k.shape[1])
wrong("scale.other", "The scores are divided by the root of the number of heads.",
      size_of=lambda q, k: q.shape[1])
wrong("scale.other", "The scores are divided by the root of the number of heads of keys.",
      size_of=lambda q, k: k.shape[1])
wrong("scale.other", "The scores are divided by the root of the number of tokens.",
      size_of=lambda q, k: q.shape[-2])
wrong("scale.multiplied", "The scores are multiplied by the root.", power=0.5)
wrong("softmax.dim", "The softmax runs over the heads. Use the last dimension.",
      weigh=lambda s, hidden: s.masked_fill(hidden, -INF).softmax(1))
for check, message, weigh in WEIGHED_WRONGLY:
    wrong(check, message, weigh=weigh)


NAMES = ("num_layers", "num_heads", "kv_heads", "head_size", "seq_len", "batch_size", "bytes_each")


def models(draw: Draw) -> Call:
    """Numbers of which no two products of six are equal by accident."""
    kv_heads = draw.choice((1, 3, 5))
    values = (draw.choice((11, 13)), kv_heads * draw.choice((2, 4, 7)), kv_heads,
              draw.choice((17, 19)), draw.choice((101, 103)), draw.choice((23, 29)),
              draw.choice((2, 4)))
    says = ", ".join(f"{n} {v}" for n, v in zip(NAMES, values, strict=True))
    return Call("", values, says=says)


@exercise("variants.cache_bytes", models, times=4,
          hints=(
              "What has to be kept of a token, so that later ones can look at it?",
              "In each layer, a key and a value for each head that has its own. Queries are used "
              "once and thrown away.",
              "2 * layers * heads of keys * head_size numbers for each token of each sequence."))
def cache_bytes(num_layers, num_heads, kv_heads, head_size, seq_len, batch_size, bytes_each,
                tensors=2, heads="kv_heads", layers=True, batch=True, each=lambda b: b, powers=1,
                sizes=1, tokens=True):
    count = tensors * (num_layers if layers else 1) * (batch_size if batch else 1)
    count *= {"kv_heads": kv_heads, "num_heads": num_heads, "both": num_heads + kv_heads,
              "product": num_heads * kv_heads, "one": 1}[heads]
    return count * head_size**sizes * (seq_len**powers if tokens else 1) * each(bytes_each)

wrong = cache_bytes.wrong
wrong("cache.keys only", "Only one tensor is counted; keys *and* values are kept.", tensors=1)
wrong("cache.queries kept", "Queries are counted too. A query is used once, when its token is new.",
      tensors=3)
wrong("cache.query heads", "The heads of the queries are counted. What is kept are keys and "
      "values, and those have heads of their own.", heads="num_heads")
wrong("cache.groups", "num_heads // kv_heads is the number of queries that share a head; kept are "
      "kv_heads heads.",
      lambda layers, heads, kv, *rest: cache_bytes(layers, heads, heads // kv, *rest))
for name, unit in (("kilo", 1e3), ("mega", 1e6), ("giga", 1e9), ("kibi", 2**10),
                   ("mebi", 2**20), ("gibi", 2**30)):
    wrong("cache.unit", f"These are {name}bytes; asked for are bytes.",
          lambda *args, unit=unit: cache_bytes(*args) / unit)
wrong("cache.one token less", "The newest token is kept, too: it is the past of the next one.",
      lambda layers, heads, kv, size, n, *rest: cache_bytes(layers, heads, kv, size, n - 1, *rest))
wrong("cache.table of scores", "The table of scores is counted. It is made anew for each token.",
      lambda layers, heads, kv, size, n, batch, each: layers * heads * n * n * batch * each)
wrong("cache.query heads", "Heads of queries and of keys are multiplied.", heads="product")
wrong("cache.query heads", "Heads of queries and of keys are added up. Keys and values are kept, "
      "each with kv_heads heads.", heads="both", tensors=1)
wrong("cache.query heads", "Heads of queries and of keys are added up. Keys and values are kept, "
      "each with kv_heads heads.", heads="both")
wrong("cache.one head", "The heads are forgotten.", heads="one")
wrong("cache.one layer", "The layers are forgotten: each keeps keys and values of its own.",
      layers=False)
wrong("cache.one sequence", "The batch is forgotten: sequences cannot share a cache.", batch=False)
wrong("cache.numbers", "These are numbers, not bytes.", each=lambda b: 1)
wrong("cache.bits", "These are bits, not bytes.", each=lambda b: 8 * b)
wrong("cache.squared", "The length is squared. Scores have T x T entries, but they are not kept.",
      powers=2)
wrong("cache.size forgotten", "The size of a head is forgotten.", sizes=0)
wrong("cache.one token", "The length is forgotten.", tokens=False)


# --- rotated positions ---------------------------------------------------------------------------
def turned(draw: Draw) -> list[Call]:
    calls = []
    for dtype, base in ((torch.float32, 10000.0), (torch.float32, 500.0), (torch.float16, 10000.0)):
        batch_size, num_heads, seq_len = draw.sizes(3, 3, 13)
        head_size = draw.choice((6, 8, 10))
        first = draw.integer(3, 60) if dtype == torch.float32 else draw.integer(2000, 3000)
        positions = first + torch.arange(seq_len)
        x = draw.normal(batch_size, num_heads, seq_len, head_size).to(dtype)
        says = f"{num_heads} heads of size {head_size}, positions {first} to {positions[-1]}"
        says += f", base {base:.0f}, {str(dtype).removeprefix('torch.')}"
        calls.append(Call("", (x, positions, base), says=says))
    jumps = torch.tensor([9, 2, 31, 4, 18])
    x = draw.normal(2, 3, 5, 4)
    says = "positions that do not follow one another"
    jumping = Call("", (x, jumps, 10000.0), says=says)
    # A table of angles that is kept by its size alone is the wrong one here.
    x, positions, base = calls[0].args
    other = draw.normal(*x.shape), positions + draw.integer(1, 9), base
    says = "the sizes and the base of the first call, and other positions"
    return [*calls[:2], jumping, Call("", other, says=says), calls[2]]


def halves(x):
    return x.chunk(2, -1)


def side_by_side(a, b):
    return torch.cat((a, b), -1)


def pairs(x):
    return x[..., ::2], x[..., 1::2]


def zipped(a, b):
    return torch.stack((a, b), -1).flatten(-2)


@exercise("variants.rope", turned, rtol=5e-3, judge=in_low_precision,
          hints=(
              "Number i of the first half and number i of the second half are the two coordinates "
              "of one point. Turn it by an angle.",
              "The angle is position * base ** (-2 * i / head_size), for i from 0 to head_size / 2 "
              "- 1. A rotation by an angle: (a cos - b sin, b cos + a sin).",
              "angles = positions[:, None].float() * frequencies, which is [seq_len, head_size / "
              "2] and fits onto the halves. Put them side by side again with torch.cat."))
def rotate(x, positions, base, split=halves, join=side_by_side, sign=1.0, second=1.0, step=2.0,
           first=0, grows=-1.0, places=lambda p: p.double(), one_speed=False, whole=True):
    a, b = split(x)
    i = torch.arange(first, first + a.shape[-1]).double() * (not one_speed)
    angles = places(positions)[:, None] * base ** (grows * step * i / x.shape[-1])
    cos, sin = angles.cos().to(x), angles.sin().to(x) * sign
    return join(a * cos - b * sin * whole, b * cos + second * a * sin * whole)

wrong = rotate.wrong
wrong("rope.interleaved", "Neighbours are paired, 0 with 1 and 2 with 3. Here number i of the "
      "first half belongs to number i of the second.", split=pairs, join=zipped)
wrong("rope.interleaved", "Neighbours are paired, and the results stand half by half.", split=pairs)
wrong("rope.interleaved", "Halves are paired, and the results stand like a zip.", join=zipped)
wrong("rope.backwards", "The rotation goes the other way: the signs of the sines are swapped.",
      sign=-1.0)
wrong("rope.not a rotation", "Both sines have the same sign: lengths change. One of them is added, "
      "the other taken away.", second=-1.0)
wrong("rope.not a rotation", "The sines are missing: the halves do not mix.", whole=False)
wrong("rope.frequencies", "The exponent lacks its 2: it is -2 i / head_size.", step=1.0)
wrong("rope.frequencies", "The exponent has a 2 too many: it is -2 i / head_size.", step=4.0)
wrong("rope.frequencies", "i begins at 1; the first pair turns by one radian a token.", first=1)
wrong("rope.frequencies", "The exponent has the wrong sign: the pairs turn faster and faster.",
      grows=1.0)
wrong("rope.frequencies", "All pairs turn at the same speed.", one_speed=True)
wrong("rope.frequencies", "The exponent reaches -1 with the last pair, as with a linspace: i is "
      "divided by one less than the number of pairs. It is -2 i / head_size.",
      lambda x, positions, base: rotate(
          x, positions, base ** (x.shape[-1] / (x.shape[-1] - 2.0))))
wrong("rope.positions ignored", "The positions that were given are not used: this counts from 0. "
      "With a cache, the newest token would always stand at the beginning.",
      places=lambda p: torch.arange(len(p)).double())
wrong("rope.positions ignored", "The positions that were given are not used: this counts from 1.",
      places=lambda p: torch.arange(1, len(p) + 1).double())
wrong("rope.positions ignored", "Only the first position is used: all tokens turn alike.",
      places=lambda p: p[:1].expand_as(p).double())
wrong("rope.off by one", "Each position counts one too many.", places=lambda p: p.double() + 1)
wrong("rope.nothing", "Nothing is turned.", lambda x, positions, base: x.clone())
wrong("rope.degrees", "The angles are taken for degrees. They are radians.",
      places=lambda p: p.double() * torch.pi / 180)
wrong("rope.degrees", "The angles are multiplied by 2 pi. They are radians already.",
      places=lambda p: p.double() * 2 * torch.pi)
wrong("rope.added", "Positions are added to x. Turn its pairs by them.",
      lambda x, positions, base: x + positions[:, None])


def turned_by(combine):
    """A program that puts the halves together in its own way: (a, b, cos, sin) -> two halves."""
    def program(x, positions, base):
        a, b = halves(x)
        angles = positions[:, None] * base ** (-2.0 * torch.arange(a.shape[-1]) / x.shape[-1])
        return torch.cat(combine(a, b, angles.cos(), angles.sin()), -1)
    return program


def angles_of_another_pairing(x, positions, base, split, join, spread):
    """Each number's own angle, laid out for pairs of another kind than those that are turned."""
    a, b = split(x)
    angles = positions[:, None] * base ** (-2.0 * torch.arange(a.shape[-1]) / x.shape[-1])
    (cos_a, cos_b), (sin_a, sin_b) = split(spread(angles).cos()), split(spread(angles).sin())
    return join(a * cos_a - b * sin_a, b * cos_b + a * sin_b)


wrong("rope.angles interleaved", "Halves are paired, but the angles stand as for neighbours, each "
      "twice in a row: the two numbers of a pair are turned by different angles.",
      lambda x, positions, base: angles_of_another_pairing(
          x, positions, base, halves, side_by_side, lambda t: t.repeat_interleave(2, -1)))
wrong("rope.interleaved", "Neighbours are paired, and the angles stand half by half.",
      lambda x, positions, base: angles_of_another_pairing(
          x, positions, base, pairs, zipped, lambda t: torch.cat((t, t), -1)))
wrong("rope.overwritten", "The second half is made of the *new* first half. Keep the old one until "
      "both are done.", turned_by(lambda a, b, c, s: (a * c - b * s, b * c + (a * c - b * s) * s)))
wrong("rope.sine and cosine", "Sine and cosine have changed places.",
      turned_by(lambda a, b, c, s: (a * s - b * c, b * s + a * c)))
wrong("rope.halves swapped", "The halves come back in the wrong order.",
      turned_by(lambda a, b, c, s: (b * c + a * s, a * c - b * s)))
wrong("rope.not a rotation", "In the second half the cosine's term is taken away. A turn gives "
      "(a cos - b sin, b cos + a sin).",
      turned_by(lambda a, b, c, s: (a * c - b * s, a * s - b * c)))
wrong("rope.not a rotation", "Both sines are added; one of them is taken away.",
      turned_by(lambda a, b, c, s: (a * c + b * s, b * c + a * s)))
wrong("rope.not a rotation", "In the first half the signs are the wrong way round.",
      turned_by(lambda a, b, c, s: (b * s - a * c, b * c + a * s)))
wrong("rope.not a rotation", "The cosines are missing: a turn gives (a cos - b sin, b cos + "
      "a sin).",
      turned_by(lambda a, b, c, s: (a - b * s, b + a * s)))
wrong("rope.not a rotation", "The sines are missing on one side.",
      turned_by(lambda a, b, c, s: (a * c, b * c + a * s)),
      turned_by(lambda a, b, c, s: (a * c - b * s, b * c)))
wrong("rope.half only", "Only one half is changed. A turn changes both coordinates.",
      turned_by(lambda a, b, c, s: (a * c - b * s, b)),
      turned_by(lambda a, b, c, s: (a, b * c + a * s)))
wrong("rope.not a rotation", "Each half is multiplied by a cosine or a sine. A turn mixes both.",
      turned_by(lambda a, b, c, s: (a * c, b * s)))
wrong("rope.base ignored", "The base that was given is not used: this is 10,000 always.",
      lambda x, positions, base: rotate(x, positions, 10000.0))


def chunks(draw: Draw) -> list[Call]:
    """A whole text, one new token after others, and several new tokens."""
    calls = []
    for fresh in ("all", "one", "several"):
        batch_size, k_len, num_heads = draw.sizes(3, 3, 13)
        k_len += 2
        q_len = {"all": k_len, "one": 1, "several": draw.integer(2, k_len - 2)}[fresh]
        hidden = num_heads * draw.choice((4, 6, 8))
        q, k, v = (draw.normal(batch_size, n, hidden, scale=1.5) for n in (q_len, k_len, k_len))
        says = f"{num_heads} heads, hidden {hidden}; the last {q_len} of {k_len} tokens ask"
        calls.append(Call("", (q, k, v, num_heads), says=says))
    return calls


def split_heads(t, num_heads):
    return t.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(t):
    return t.transpose(1, 2).flatten(2)


def turn_at(t, start, base=10000.0, backwards=0):
    """Turned at the places from `start` on; `backwards` times as far the other way."""
    places = start + torch.arange(t.shape[-2])
    return rotate(t, -backwards * places if backwards else places, base)


@exercise("variants.rope_attention", chunks,
          hints=(
              "Positions belong to queries and keys, for it is their product that should know a "
              "distance. What should the values know?",
              "Split into heads first, then turn. The keys stand at 0 to k_len - 1, and the "
              "queries are the *last* q_len of them.",
              "The first query stands at k_len - q_len. Query i may look at the keys 0 to k_len - "
              "q_len + i: `triu(k_len - q_len + 1)`."))
def rope_attention(q, k, v, num_heads, turns="qk", before=False, power=-0.5, hide=later, base=1e4,
                   start=lambda q_len, k_len: k_len - q_len, size_of=lambda h, size: size,
                   weigh=over_keys,
                   merge=lambda out: out.transpose(1, 2).flatten(2)):
    q_len, k_len = q.shape[1], k.shape[1]
    starts = {"q": start(q_len, k_len), "k": 0, "v": 0}
    heads = {}
    for name, t in (("q", q), ("k", k), ("v", v)):
        if before and name in turns:
            t = turn_at(t, starts[name], base)
        t = split_heads(t, num_heads)
        heads[name] = turn_at(t, starts[name], base) if name in turns and not before else t
    scores = heads["q"] @ heads["k"].mT * size_of(num_heads, heads["k"].shape[-1]) ** power
    return merge(weigh(scores, hide(q_len, k_len)) @ heads["v"])

def rope_weights(q, k, num_heads):
    starts = k.shape[1] - q.shape[1], 0
    q, k = (turn_at(split_heads(t, num_heads), s) for t, s in zip((q, k), starts, strict=True))
    return over_keys(q @ k.mT * root(q.shape[-1]), later(q.shape[2], k.shape[2]))


wrong = rope_attention.wrong
wrong("rope.on the values", "The values are turned too. What a token says should not depend on "
      "where it stands; only who looks at whom should.", turns="qkv")
wrong("rope.before the split", "Queries and keys are turned before they are split into heads: the "
      "pairs then reach across heads, and each head gets speeds of its own.", before=True)
wrong("rope.position restarts", "The queries are turned as if they began where the keys do. They "
      "are the last q_len of k_len tokens.", start=lambda q_len, k_len: 0)
wrong("rope.off by one", "The queries stand one place too far.",
      start=lambda q_len, k_len: k_len - q_len + 1)
wrong("rope.off by one", "The queries stand behind all keys.", start=lambda q_len, k_len: k_len)
wrong("rope.off by one", "Queries and keys stand one place too near to each other: the queries "
      "begin one too early, or the keys one too late.",
      start=lambda q_len, k_len: k_len - q_len - 1)
wrong("rope.only the queries", "The keys are not turned, so a score depends on where the query "
      "stands, and not on how far away the key is.", turns="q")
wrong("rope.only the keys", "The queries are not turned, so a score depends on where the key "
      "stands, and not on how far away it is.", turns="k")
wrong("rope.nothing", "Nothing is turned.", turns="")
wrong("rope.on the output", "The output is turned, too. Queries and keys are turned, for their "
      "product knows the distance; what comes out is made of values.",
      lambda q, k, v, n: merge_heads(turn_at(split_heads(
          rope_attention(q, k, v, n), n), k.shape[1] - q.shape[1])))
wrong("attention.keys for values", "The keys are added up where the values belong.",
      lambda q, k, v, n: merge_heads(rope_weights(q, k, n) @ split_heads(k, n)),
      lambda q, k, v, n: merge_heads(
          rope_weights(q, k, n) @ turn_at(split_heads(k, n), 0)))
for other in (100.0, 1000.0, 1e5, 5e5, 1e6):
    wrong("rope.frequencies", f"The base is {other:g}; it is 10,000.", base=other)
wrong("rope.turned twice", "Queries and keys are turned twice, so that each step counts double.",
      lambda q, k, v, n: rope_attention(
          *(merge_heads(turn_at(split_heads(t, n), start))
            for t, start in ((q, k.shape[1] - q.shape[1]), (k, 0))), v, n))
wrong("rope.backwards", "The queries are turned one way and the keys the other: a score then knows "
      "the sum of two positions, not their distance.",
      lambda q, k, v, n: rope_attention(q, merge_heads(turn_at(
          split_heads(k, n), 0, backwards=2)), v, n))
wrong("mask.top left", "The mask is aligned with the first key. With fewer queries than keys, the "
      "last query belongs to the last key: row 0 may see more than key 0.",
      hide=lambda q, k: torch.ones(q, k).triu(1).bool())
wrong("mask.none", "Nothing is hidden: later tokens are seen.", hide=nothing)
wrong("mask.diagonal hidden", "The current token is hidden too.",
      hide=lambda q, k: torch.ones(q, k).triu(k - q).bool())
wrong("mask.one step late", "Each token sees the one after it.",
      hide=lambda q, k: torch.ones(q, k).triu(k - q + 2).bool())
wrong("scale.missing", "The scores are not scaled.", power=0)
wrong("scale.not a root", "The scores are divided by the size itself.", power=-1)
wrong("scale.all heads", "The scores are divided by the root of hidden, not of head_size.",
      size_of=lambda h, size: h * size)


wrong("heads.scrambled merge", "The heads are merged by `reshape` alone, which pours the numbers "
      "of one head into the slots of several tokens. Swap the axes first.",
      merge=lambda out: out.reshape(out.shape[0], out.shape[2], -1))
for check, message, weigh in WEIGHED_WRONGLY:
    wrong(check, message, weigh=weigh)


# --- distance as a penalty -----------------------------------------------------------------------
def head_counts(draw: Draw) -> list[Call]:
    counts = [draw.choice((4, 16)), 8, draw.choice((3, 6)), draw.choice((12, 20)), 1]
    return [Call("", (n,), says=f"{n} heads") for n in counts]


def geometric(n, top=8.0, first=1):
    return 2.0 ** (-top * torch.arange(first, n + first).double() / n)


def below(n):
    return 1 << (n.bit_length() - 1)


@exercise("variants.slopes", head_counts,
          hints=(
              "With n a power of two, the slopes are a geometric row whose first number is 2 ** "
              "(-8 / n), and whose ratio is the same.",
              "Else take the row of the power of two below, p. The n - p that are missing come out "
              "of the row of 2 p heads: every other one, from the first.",
              "torch.cat((row(p), row(2 * p)[::2][: n - p])) with row(n) = 2 ** (-8 * arange(1, n "
              "+ 1) / n)."))
def alibi_slopes(num_heads, row=geometric, more=slice(0, None, 2), power=below):
    p = power(num_heads)
    return torch.cat((row(p), row(2 * p)[more][: num_heads - p]))

wrong = alibi_slopes.wrong
wrong("slopes.no power of two", "Where the heads are no power of two, the same formula is used. "
      "The rule is another there: the row of the power of two below, and every other slope of "
      "twice as many heads.", power=lambda n: n)
wrong("slopes.no power of two", "The missing slopes are taken one after the other; take every "
      "other one.", more=slice(None))
wrong("slopes.no power of two", "The missing slopes are every other one, but from the second on, "
      "and those are there already.", more=slice(1, None, 2))
wrong("slopes.no power of two", "The power of two above is taken, and cut.",
      lambda n: geometric(n if n == below(n) else 2 * below(n))[:n])
wrong("slopes.no power of two", "The slopes beyond the power of two are missing: there is one for "
      "each head.", more=slice(0, 0))
wrong("slopes.no power of two", "The slopes beyond the power of two are 0: they come out of the "
      "row of twice as many heads.",
      lambda n: F.pad(geometric(below(n)), (0, n - below(n))))
wrong("slopes.no power of two", "The row of the power of two is begun anew for the missing "
      "slopes.", lambda n: geometric(below(n)).repeat(2)[:n])
wrong("slopes.no power of two", "Where the heads are a power of two, the row of half as many is "
      "taken and filled up.", power=lambda n: max(1, below(n) // 2 if n == below(n) else below(n)))
wrong("slopes.normalised", "The slopes are made to sum to 1.",
      lambda n: alibi_slopes(n) / alibi_slopes(n).sum())
wrong("slopes.added in front", "The slopes that are added come first; they come last.",
      lambda n: alibi_slopes(n).roll(n - below(n)))
for top in (1, 2, 4, 6, 7, 9, 10, 16):
    wrong("slopes.ratio", f"The last exponent of a row is {top}; it is 8.",
          row=partial(geometric, top=float(top)))
wrong("slopes.sorted", "The slopes are right, but sorted; the added ones come last.",
      lambda n: alibi_slopes(n).sort(descending=True).values)
wrong("slopes.reversed", "The slopes stand in reverse order: the first head has the steepest.",
      lambda n: alibi_slopes(n).flip(0))
wrong("slopes.from 0", "The row begins with 1, that is with exponent 0.",
      row=partial(geometric, first=0))
wrong("slopes.ratio", "The row is 1/2, 1/4, 1/8 and so on whatever the number of heads; that is "
      "right for eight.", row=lambda n: 2.0 ** -torch.arange(1.0, n + 1))
wrong("slopes.sign", "The slopes are negative. They say how much is taken away.",
      lambda n: -alibi_slopes(n))
wrong("slopes.exponents", "These are the exponents of 2; the slopes are 2 to their power.",
      lambda n: alibi_slopes(n).log2())
wrong("slopes.linear", "The slopes fall along a straight line; they should halve, or the like.",
      row=lambda n: torch.arange(n, 0, -1) / n)
wrong("slopes.linear", "The slopes rise along a straight line; they should halve, or the like.",
      row=lambda n: torch.arange(1, n + 1) / n)
wrong("slopes.linear", "The slopes rise along a straight line; they should halve, or the like.",
      lambda n: torch.arange(1, n + 1) / n)
wrong("slopes.linear", "The slopes are 1, 1/2, 1/3 and so on; each should be the same part of the "
      "one before.", lambda n: 1 / torch.arange(1.0, n + 1))
wrong("slopes.base", "The slopes are powers of e; they are powers of 2.",
      row=lambda n: (-8.0 * torch.arange(1, n + 1).double() / n).exp())
wrong("slopes.base", "The slopes are powers of e; they are powers of 2.",
      lambda n: (-8.0 * torch.arange(1, n + 1).double() / n).exp())


def sloped(draw: Draw) -> Call:
    batch_size, num_heads, seq_len, head_size = draw.sizes(4, 3, 13)
    q, k, v = (draw.normal(batch_size, num_heads, seq_len, head_size, scale=1.5) for _ in "qkv")
    slopes = draw.uniform(num_heads, low=0.05, high=0.8)
    says = f"{num_heads} heads of size {head_size}, {seq_len} tokens"
    return Call("", (q, k, v, slopes), says=says)


def distances(n):
    """How far key j is behind query i: i - j."""
    return (torch.arange(n)[:, None] - torch.arange(n)).clamp(min=0)


@exercise("variants.alibi", sloped, gradients=True,
          hints=(
              "How far is key j behind query i? Each step costs the head's slope.",
              "distance = arange(n)[:, None] - arange(n), [seq_len, seq_len]. `slopes[:, None, "
              "None]` fits onto the heads.",
              "scores = q @ k^T / sqrt(head_size) - slopes[:, None, None] * distance; then the "
              "causal mask, the softmax, the values."))
def alibi_attention(q, k, v, slopes, sign=-1.0, power=-0.5, hide=later, late=False, far=distances,
                    own=lambda slopes: slopes, weigh=over_keys):
    n = q.shape[2]
    bias = sign * own(slopes)[:, None, None] * far(n)
    scores, scale = q @ k.mT, q.shape[-1] ** power
    scores = (scores + bias) * scale if late else scores * scale + bias
    return weigh(scores, hide(n, n)) @ v

wrong = alibi_attention.wrong
wrong("alibi.sign", "Distance is rewarded: far keys get more weight. The sign is wrong.", sign=1.0)
wrong("alibi.scaled afterwards", "The penalty is added before the scores are scaled, so that it is "
      "divided by sqrt(head_size) too.", late=True)
wrong("alibi.missing", "There is no penalty.", sign=0.0)
wrong("alibi.missing", "There is no penalty: the slopes are not used.",
      lambda q, k, v, slopes: over_keys(
          q @ k.mT * root(q.shape[-1]), later(q.shape[2], q.shape[2])) @ v)
wrong("alibi.slopes unused", "Each step costs 1 in all heads: the slopes are not used.",
      own=torch.ones_like)
wrong("alibi.same for all", "All heads have the first head's slope.", own=lambda s: s[:1])
wrong("alibi.same for all", "All heads have the average slope.", own=lambda s: s.mean()[None])
wrong("alibi.reversed", "The slopes go to the heads in reverse order.", own=lambda s: s.flip(0))
wrong("alibi.squared", "The penalty grows with the square of the distance.",
      far=lambda n: distances(n) ** 2)
wrong("alibi.same at any distance", "All keys of the past pay for one step, however far they are "
      "away.", far=lambda n: distances(n).clamp(max=1))
wrong("alibi.doubled", "The penalty is twice as large as asked for.",
      far=lambda n: 2 * distances(n))
wrong("alibi.power", "The penalty is a power of the slope; it is the slope times the distance.",
      lambda q, k, v, slopes: over_keys(
          q @ k.mT * root(q.shape[-1]) - slopes[:, None, None] ** distances(q.shape[2]),
          later(q.shape[2], q.shape[2])) @ v)
wrong("alibi.power", "The penalty is exponential; it is the slope times the distance.",
      lambda q, k, v, slopes: over_keys(
          q @ k.mT * root(q.shape[-1]) - (slopes[:, None, None] * distances(q.shape[2])).exp(),
          later(q.shape[2], q.shape[2])) @ v)
wrong("scale.all heads", "The scores are divided by the root of the size of all heads together.",
      lambda q, k, v, slopes: alibi_attention(q * q.shape[1] ** -0.5, k, v, slopes))
wrong("alibi.root", "The penalty grows with the root of the distance.",
      far=lambda n: distances(n) ** 0.5)
wrong("alibi.logarithm", "The penalty grows with the logarithm of the distance.",
      far=lambda n: (distances(n) + 1).log())
wrong("alibi.slopes counted again", "The slopes are made anew out of the number of heads; those "
      "that were given count.", own=lambda s: alibi_slopes(len(s)).to(s))
wrong("alibi.after the softmax", "The penalty comes after the softmax.",
      lambda q, k, v, slopes: (over_keys(q @ k.mT * root(q.shape[-1]),
                                         later(q.shape[2], k.shape[2]))
                               - slopes[:, None, None] * distances(q.shape[2])) @ v)
wrong("alibi.after the softmax", "The price comes after the softmax, as a factor, so that the rows "
      "do not sum to 1.",
      lambda q, k, v, slopes: (over_keys(q @ k.mT * root(q.shape[-1]),
                                         later(q.shape[2], k.shape[2]))
                               * (-slopes[:, None, None] * distances(q.shape[2])).exp()) @ v)
wrong("alibi.after the softmax", "The price comes after the softmax of all keys, as a factor.",
      lambda q, k, v, slopes: ((q @ k.mT * root(q.shape[-1])).softmax(-1)
                               * (-slopes[:, None, None] * distances(q.shape[2])).exp()
                               ).tril() @ v)
for check, message, weigh in WEIGHED_WRONGLY:
    wrong(check, message, weigh=weigh)
wrong("alibi.multiplied", "The scores are multiplied by the penalty; it is added.",
      lambda q, k, v, slopes: over_keys(
          q @ k.mT * root(q.shape[-1]) * (-slopes[:, None, None] * distances(q.shape[2])),
          later(q.shape[2], k.shape[2])) @ v)
wrong("mask.none", "Nothing is hidden: later tokens are seen, at no cost.", hide=nothing)
wrong("mask.none", "Nothing is hidden: later tokens are seen, as far as they are away.",
      hide=nothing, far=lambda n: (torch.arange(n)[:, None] - torch.arange(n)).abs())
wrong("mask.none", "Nothing is hidden: later tokens are seen, and rewarded.",
      hide=nothing, far=lambda n: torch.arange(n)[:, None] - torch.arange(n))
wrong("mask.diagonal hidden", "The current token is hidden too.",
      hide=lambda q, k: torch.ones(q, k).triu(0).bool())
wrong("scale.missing", "The scores are not scaled.", power=0)
wrong("scale.not a root", "The scores are divided by the size itself.", power=-1)


# --- shorter sight -------------------------------------------------------------------------------
def windows(draw: Draw) -> list[Call]:
    seq_len = draw.choice((7, 11, 13))
    asked = [(seq_len, draw.choice((2, 3))), (seq_len, draw.choice((4, 5))), (5, 1), (6, 9)]
    return [Call("", args, says=f"{args[0]} tokens, window {args[1]}") for args in asked]


@exercise("variants.window", windows,
          hints=(
              "How far is key j behind query i, and for which distances is it in sight?",
              "In sight are the distances 0 to window - 1. All else is hidden: the future, and "
              "what is further back.",
              "distance = arange(n)[:, None] - arange(n); hidden where it is < 0 or >= window."))
def window_mask(seq_len, window, more=0, future=True, past=True, mirror=False, inverted=False,
                turned=False, own=True):
    distance = torch.arange(seq_len)[:, None] - torch.arange(seq_len)
    distance = distance.abs() if mirror else distance
    hidden = (distance < 0) & future | (distance >= window + more) & past
    if not own:
        hidden = hidden | (distance == 0)
    hidden = ~hidden if inverted else hidden
    return hidden.T if turned else hidden

wrong = window_mask.wrong
wrong("window.one too many seen", "A token sees window tokens *and* itself. It is one of them.",
      more=1)
wrong("window.one too few seen", "A token sees one token too few: itself and window - 1 others.",
      more=-1)
wrong("window.future open", "Later tokens are seen: the window is closed at the back only.",
      future=False)
wrong("window.future open", "The window reaches to both sides. Later tokens are the future.",
      mirror=True)
wrong("window.past open", "Nothing is out of sight at the back: this is the causal mask.",
      past=False)
wrong("window.both sides", "Half of the window lies to each side. Later tokens are the future.",
      lambda n, w: (torch.arange(n)[:, None] - torch.arange(n)).abs() > w // 2,
      lambda n, w: (torch.arange(n)[:, None] - torch.arange(n)).abs() >= w // 2)
wrong("window.first tokens", "The first `window` tokens are seen by all; the window moves along.",
      lambda n, w: later(n, n) | (torch.arange(n) >= w))
wrong("window.inverted", "True should mean hidden; here it means that a key is seen.",
      inverted=True)
wrong("window.transposed", "Rows and columns are swapped: what is seen is the future.", turned=True)
wrong("window.itself hidden", "No token sees itself.", own=False)
wrong("window.itself hidden", "No token sees itself; the window lies one step back.",
      own=False, more=1)
wrong("window.blocks", "The text is cut into blocks. Each token should have a window of its own.",
      lambda n, w: (torch.arange(n)[:, None] // w != torch.arange(n) // w) | later(n, n))
wrong("window.wrapped", "Near the start the window begins before the first token, and a negative "
      "place counts from the end: nothing is left in sight. Begin at max(0, ...).",
      lambda n, w: from_the_end(n, w))
wrong("window.nothing hidden", "Nothing is hidden.", lambda n, w: nothing(n, n))


def from_the_end(n, window):
    """What a slice does whose start is negative: row by row, hidden but for the slice."""
    hidden = torch.ones(n, n).bool()
    for i in range(n):
        hidden[i, i - window + 1 : i + 1] = False
    return hidden


def towers(draw: Draw) -> list[Call]:
    layers, window = draw.choice((3, 4, 6)), draw.choice((5, 7, 9))
    asked = [(layers, window, 997), (1, window, 499), (layers, 1, 97), (layers, window, window + 3),
             (2, 4, 8), (2, 4, 7), (2, 4, 6)]
    return [Call("", args, says=f"{args[0]} layers, window {args[1]}, a text of {args[2]} tokens")
            for args in asked]


@exercise("variants.reach", towers,
          hints=(
              "One layer reaches back window - 1 tokens. From the last of these, the layer below "
              "reaches back again.",
              "Each layer adds window - 1. The token itself counts once.",
              "min(seq_len, 1 + num_layers * (window - 1))"))
def reach(num_layers, window, seq_len, back=1, itself=1, capped=True,
          grown=lambda n, step: n * step):
    far = grown(num_layers, window - back) + itself
    return min(seq_len, far) if capped else far

wrong = reach.wrong
wrong("reach.itself in each layer", "A layer adds window - 1 new tokens: the one it starts from is "
      "counted already.", back=0, itself=0)
wrong("reach.itself in each layer", "A layer adds window - 1 new tokens, not window.", back=0)
wrong("reach.itself forgotten", "The token itself is among those that it can know of.", itself=0)
wrong("reach.one layer", "Layers stand on one another: each reaches further than the one below.",
      grown=lambda n, step: step)
wrong("reach.layers", "There is one layer too few.",
      lambda layers, window, n: reach(max(layers - 1, 0), window, n),
      lambda layers, window, n: reach(max(layers - 1, 1), window, n))
wrong("reach.layers", "There is one layer too many.",
      lambda layers, window, n: reach(layers + 1, window, n))
wrong("reach.power", "The reach grows by addition, not by multiplication.",
      lambda n, w, s: min(s, w**n))
wrong("reach.power", "The reach grows by addition; it does not double.",
      lambda n, w, s: min(s, 1 + (w - 1) * (2**n - 1)))
wrong("reach.power", "The reach grows by addition; it does not double.",
      lambda n, w, s: min(s, w * 2 ** (n - 1)))
wrong("reach.longer than the text", "A text has no more tokens than it has.", capped=False)
wrong("reach.longer than the text", "The larger of the two is taken: a text has no more tokens "
      "than it has.", lambda layers, window, n: max(n, 1 + layers * (window - 1)))
wrong("reach.layers added", "Layers and window are added. Each layer adds window - 1.",
      lambda layers, window, n: min(n, window + layers - 1),
      lambda layers, window, n: min(n, window + layers))
wrong("reach.one token less", "The whole text can be in reach, with its last token.",
      lambda layers, window, n: min(n - 1, 1 + layers * (window - 1)))
wrong("reach.both sides", "It reaches back only, not to both sides.",
      grown=lambda n, step: 2 * n * step)
wrong("reach.whole text", "Not all of the text is in reach.", lambda n, w, s: s)


# --- no softmax ----------------------------------------------------------------------------------
def positive(x):
    return F.elu(x) + 1


def steady(draw: Draw, batch_size, seq_len, size, total=0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys whose products add up to clearly more than 0, with and without features.

    Without features a sum of weights may come near 0, and 1 / 0 tells no programs apart. total:
    what the features of earlier keys add up to.
    """
    features = torch.clone, F.elu, positive
    while True:
        q, k = (draw.normal(batch_size, seq_len, size) + 0.4 for _ in "qk")
        sums = [(a(q) * (b(k).cumsum(1) + total)).sum(-1).abs().min()
                for a in features for b in features]
        if min(sums) > 0.1:
            return q, k


def asked(draw: Draw) -> Call:
    seq_len, size, value_size = draw.sizes(3, 5, 13)
    q, k = steady(draw, 3, seq_len, size)
    says = f"3 sequences of {seq_len} tokens, size {size}, values of size {value_size}"
    return Call("", (q, k, draw.normal(3, seq_len, value_size)), says=says)


@exercise("variants.linear", asked, gradients=True,
          hints=(
              "It is attention as ever, but a weight is the product of two positive vectors, f(q) "
              "and f(k), not the exponential of a score.",
              "weights = f(q) @ f(k)^T; the future becomes 0; each row is divided by its sum.",
              "f = lambda x: F.elu(x) + 1; w = (f(q) @ f(k).mT).tril(); w / w.sum(-1, keepdim="
              "True) @ v"))
def linear_attention(q, k, v, of_q=positive, of_k=positive, keep=torch.tril,
                     total=lambda w: w.sum(-1, keepdim=True), power=0.0):
    weights = keep(of_q(q) @ of_k(k).mT) * q.shape[-1] ** power
    return weights / total(weights) @ v


def by_features(q, k, v):
    keys, past = positive(k), torch.ones(k.shape[1], k.shape[1]).to(k).tril()
    shares = keys[:, None] * past[:, :, None] / keys.cumsum(1)[:, :, None]  # [.., query, key, size]
    return torch.einsum("bts,btus,buv->btv", positive(q), shares, v)


wrong = linear_attention.wrong
wrong("linear.no normaliser", "The weights are not divided by their sum, so outputs grow with the "
      "length of the text.", total=torch.ones_like)
wrong("linear.no normaliser", "The weights are divided by the number of tokens, not by their sum.",
      total=lambda w: torch.arange(1.0, w.shape[-1] + 1)[:, None])
wrong("linear.no normaliser", "The weights are divided by the root of the size, not by their sum.",
      total=torch.ones_like, power=-0.5)
wrong("linear.normaliser sees the future", "The future is cut off after the rows are normalised: "
      "their sums contain it.", lambda q, k, v: linear_attention(q, k, torch.eye(k.shape[1]).to(k),
                                                                keep=torch.clone).tril() @ v)
wrong("mask.none", "What is added up contains later tokens; what it is divided by does not.",
      lambda q, k, v: positive(q) @ positive(k).mT @ v / (
          positive(q) @ positive(k).mT).tril().sum(-1, keepdim=True))
wrong("linear.normaliser", "The outputs are divided by the sum of f(k) over all features. The "
      "query has a say in it: f(q) times that sum.",
      lambda q, k, v: (positive(q) @ positive(k).mT).tril() @ v
      / positive(k).cumsum(1).sum(-1, keepdim=True))
wrong("linear.normaliser", "The outputs are divided by the sum of f(q) alone.",
      lambda q, k, v: (positive(q) @ positive(k).mT).tril() @ v
      / positive(q).sum(-1, keepdim=True))
wrong("linear.normaliser", "Each feature of the state is divided by its own sum of f(k). What the "
      "query has read is divided, by f(q) times that sum.",
      by_features)
wrong("linear.normalised twice", "The rows are divided by their sums twice.",
      total=lambda w: w.sum(-1, keepdim=True) ** 2)
wrong("linear.normalised over the queries", "The columns are divided by their sums.",
      total=lambda w: w.sum(-2, keepdim=True))
wrong("linear.largest for sum", "The weights are divided by the largest of a row, not by its sum.",
      total=lambda w: w.amax(-1, keepdim=True))
wrong("linear.values changed", "The values went through f as well. It is for queries and keys.",
      lambda q, k, v: linear_attention(q, k, positive(v)))
wrong("linear.of the scores", "f is applied to the scores. It is for queries and keys, each by "
      "itself: only then can the sums be kept.",
      lambda q, k, v: (lambda w: w / w.sum(-1, keepdim=True) @ v)(positive(q @ k.mT).tril()))
wrong("mask.diagonal hidden", "The current token is left out.",
      lambda q, k, v: linear_attention(q, k, v, keep=lambda w: w.tril(-1), total=lambda w: w.sum(
          -1, keepdim=True).clamp(min=1e-6)))
wrong("mask.diagonal hidden", "The current token is left out of what is added up, and counted in "
      "what it is divided by.", lambda q, k, v: (lambda w: w.tril(-1) / w.tril().sum(-1, True) @ v)(
          positive(q) @ positive(k).mT))
wrong("mask.diagonal hidden", "The current token is left out of what it is divided by.",
      lambda q, k, v: (lambda w: w.tril() / w.tril(-1).sum(-1, True) @ v)(
          positive(q) @ positive(k).mT))
wrong("mask.none", "Nothing is hidden: later tokens count.", keep=torch.clone)
wrong("mask.diagonal hidden", "The current token is left out; row 0 becomes 0 / 0.",
      keep=lambda w: w.tril(-1))
wrong("mask.one step late", "Each token sees the one after it.", keep=lambda w: w.tril(1))
wrong("mask.inverted", "The past is cut off.", keep=torch.triu)
wrong("linear.no features", "Queries and keys go in as they are, so weights may be negative.",
      of_q=torch.clone, of_k=torch.clone)
wrong("linear.no features", "Only the keys go through f.", of_q=torch.clone)
wrong("linear.other features", "f of the keys is elu without the 1.", of_k=F.elu)
wrong("linear.other features", "f of the queries is elu without the 1.", of_q=F.elu)
wrong("linear.no features", "Only the queries go through f.", of_k=torch.clone)
for name, feature in (("elu without the 1", F.elu), ("relu", torch.relu), ("exp", torch.exp),
                      ("the sigmoid", torch.sigmoid), ("relu + 1", lambda x: torch.relu(x) + 1),
                      ("a softmax", lambda x: x.softmax(-1)), ("softplus", F.softplus),
                      ("elu(x + 1)", lambda x: F.elu(x + 1)),
                      ("elu(x) + 2", lambda x: F.elu(x) + 2), ("x + 1", lambda x: x + 1),
                      ("abs", torch.abs), ("the square", torch.square),
                      ("selu + 1", lambda x: F.selu(x) + 1), ("gelu + 1", lambda x: F.gelu(x) + 1)):
    wrong("linear.other features", f"f is {name}; asked for is elu(x) + 1.",
          of_q=feature, of_k=feature)
wrong("linear.softmax", "This is softmax attention: there is an exponential of each score.",
      lambda q, k, v: over_keys(q @ k.mT * root(q.shape[-1]), later(q.shape[1], q.shape[1])) @ v)
wrong("linear.softmax", "The products of f(q) and f(k) went through a softmax.",
      lambda q, k, v: over_keys(positive(q) @ positive(k).mT, later(q.shape[1], q.shape[1])) @ v)
wrong("linear.softmax", "The products of f(q) and f(k) were scaled and went through a softmax.",
      lambda q, k, v: over_keys(positive(q) @ positive(k).mT * root(q.shape[-1]),
                                later(q.shape[1], q.shape[1])) @ v)
for power, how in ((0, ""), (-0.5, "scaled and ")):
    wrong("linear.softmax", f"The products of f(q) and f(k) were cut off at the diagonal, {how}put "
          "through a softmax, for which a 0 is a score like any other.",
          lambda q, k, v, n=power: (
              (positive(q) @ positive(k).mT).tril() * q.shape[-1] ** n).softmax(-1) @ v)
wrong("linear.mean of the values", "The outputs are plain means of the values: queries and keys "
      "have no say.", lambda q, k, v: v.cumsum(1) / torch.arange(1, v.shape[1] + 1)[:, None])
wrong("linear.mean of the values", "The outputs are the mean of all values.",
      lambda q, k, v: v.mean(1, keepdim=True).expand_as(v))


def with_past(draw: Draw) -> list[Call]:
    """From nothing, and taken up again where much has been read."""
    calls = []
    for past in (False, True, True):
        batch_size, (seq_len, size, value_size) = 2, draw.sizes(3, 5, 13)
        v = draw.normal(batch_size, seq_len, value_size)
        state, total = torch.zeros(batch_size, size, value_size), torch.zeros(batch_size, size)
        if past:
            state = draw.normal(batch_size, size, value_size, scale=2.0)
            total = draw.uniform(batch_size, size, low=0.5, high=4.0)
        q, k = steady(draw, batch_size, seq_len, size, total[:, None])
        says = f"{seq_len} tokens, size {size}, values of size {value_size}, "
        says += "with a state from before" if past else "from nothing"
        calls.append(Call("", (q, k, v, state, total), says=says))
    return calls


@exercise("variants.recurrent", with_past, gradients=True,
          hints=(
              "Sums can be kept and added to. Which two sums over the past does an output need?",
              "For each token: state += outer product of f(k) and v; total += f(k). Then read.",
              "state = state + f(k)[:, :, None] * v[:, None, :]; total = total + f(k); output = "
              "(f(q)[:, None] @ state).squeeze(1) / (f(q) * total).sum(-1, keepdim=True)"))
def linear_steps(q, k, v, state, total, early_state=False, early_total=False, normalised=True,
                 of_q=positive, of_k=positive, carried=True, carried_total=True, summed=True,
                 summed_total=True, written="key", read="ask", returns="new", grows=True,
                 counted=False, least=0.0, plain_total=False):
    first = state, total
    state = state if carried else torch.zeros_like(state)
    total = total if carried_total else torch.zeros_like(total)
    outputs = []
    for t in range(q.shape[1]):
        query, key = of_q(q[:, t]), of_k(k[:, t])
        read_state, read_total = state, total
        write = {"key": key, "query": query, "plain key": k[:, t]}[written]
        state = (state if summed else 0) + write[:, :, None] * v[:, t, None]
        counts = k[:, t] if plain_total else key
        total = (total if summed_total else 0) + counts if grows else total
        out = torch.einsum("bs,bsv->bv", query, read_state if early_state else state)
        by = {"ask": query, "key": key, "nothing": torch.ones_like(query)}[read]
        weight = (by * (read_total if early_total else total)).sum(-1, keepdim=True)
        if counted:
            weight = torch.tensor(t + 1.0)
        weight = weight.clamp(min=least) if least else weight
        outputs.append(out / weight if normalised else out)
    state, total = (state, total) if returns == "new" else first
    return torch.stack(outputs, 1), state, total

def total_stays(q, k, v, state, total):
    outputs = []
    for t in range(q.shape[1]):
        ask, key = positive(q[:, t]), positive(k[:, t])
        state, now = state + key[:, :, None] * v[:, t, None], total + key
        weight = (ask * now).sum(-1, keepdim=True)
        outputs.append(torch.einsum("bs,bsv->bv", ask, state) / weight)
    return torch.stack(outputs, 1), state, now


def each_feature(q, k, v, state, total):
    outputs = []
    for t in range(q.shape[1]):
        ask, key = positive(q[:, t]), positive(k[:, t])
        state, total = state + key[:, :, None] * v[:, t, None], total + key
        outputs.append(torch.einsum("bs,bsv->bv", ask, state / total[:, :, None]))
    return torch.stack(outputs, 1), state, total


def counting(q, k, v, state, total):
    outputs = []
    for t in range(q.shape[1]):
        ask, key = positive(q[:, t]), positive(k[:, t])
        state, total = state + key[:, :, None] * v[:, t, None], total + 1
        weight = (ask * total).sum(-1, keepdim=True)
        outputs.append(torch.einsum("bs,bsv->bv", ask, state) / weight)
    return torch.stack(outputs, 1), state, total


wrong = linear_steps.wrong
wrong("recurrent.no normaliser", "The outputs are not divided by f(q) times the total.",
      normalised=False)
wrong("recurrent.no normaliser", "The outputs are divided by the number of tokens, not by f(q) "
      "times the total.", counted=True)
wrong("recurrent.read before written", "The state and the total are read before the token itself "
      "is in them; with nothing before it, the first output is 0 / 0.",
      early_state=True, early_total=True)
wrong("recurrent.read before written", "The state and the total are read before the token itself "
      "is in them; a small number keeps the first output from 0 / 0.",
      early_state=True, early_total=True, least=1e-6)
wrong("recurrent.read before written", "The state is read before the token itself is in it.",
      early_state=True)
wrong("recurrent.read before written", "The total is read before the token itself is in it.",
      early_total=True)
wrong("recurrent.begins anew", "The state and total that were given are not used.",
      carried=False, carried_total=False)
wrong("recurrent.begins anew", "The total that was given is not used.", carried_total=False)
wrong("recurrent.begins anew", "The state that was given is not used.", carried=False)
wrong("recurrent.overwritten", "State and total are overwritten at each token; add to them.",
      summed=False, summed_total=False)
wrong("recurrent.overwritten", "The state is overwritten at each token; add to it.", summed=False)
wrong("recurrent.overwritten", "The total is overwritten at each token; add to it.",
      summed_total=False)
wrong("recurrent.total stays", "The total is not added to: it stays as it was given.", grows=False)
wrong("recurrent.overwritten", "The total does not grow: each token's f(k) is added to the one "
      "that was given.",
      lambda q, k, v, state, total: total_stays(q, k, v, state, total))
wrong("recurrent.normaliser", "The total is read by the key; the query reads it.", read="key")
wrong("recurrent.normaliser", "The outputs are divided by the sum of the total. The query reads "
      "it: f(q) times the total.", read="nothing")
wrong("recurrent.normaliser", "Each feature of the state is divided by its own total. What the "
      "query has read is divided, by f(q) times the total.",
      lambda q, k, v, state, total: each_feature(q, k, v, state, total))
wrong("recurrent.normaliser", "The total counts tokens. It is the sum of f(k).",
      lambda q, k, v, state, total: counting(q, k, v, state, total))
wrong("recurrent.written by the query", "The state is written by the query. Keys write and queries "
      "read.", written="query")
wrong("linear.no features", "What is written to the state did not go through f.",
      written="plain key")
wrong("linear.no features", "What is added to the total did not go through f.", plain_total=True)
wrong("linear.other features", "The queries go through f twice.",
      of_q=lambda x: positive(positive(x)))
wrong("linear.other features", "The keys go through f twice.",
      of_k=lambda x: positive(positive(x)))
wrong("recurrent.values changed", "The values went through f as well. It is for queries and keys.",
      lambda q, k, v, state, total: linear_steps(q, k, positive(v), state, total))
wrong("recurrent.old state returned", "State and total come back as they were before the last "
      "token.", lambda q, k, v, state, total: (
          linear_steps(q, k, v, state, total)[0],
          *linear_steps(q[:, :-1], k[:, :-1], v[:, :-1], state, total)[1:]))
wrong("recurrent.old state returned", "State and total come back as they went in.", returns="old")
wrong("linear.no features", "Queries and keys go in as they are.", of_q=torch.clone,
      of_k=torch.clone)
wrong("linear.no features", "Only the keys go through f.", of_q=torch.clone)
wrong("linear.no features", "Only the queries go through f.", of_k=torch.clone)
for name, feature in (("elu without the 1", F.elu), ("relu", torch.relu), ("exp", torch.exp),
                      ("the sigmoid", torch.sigmoid), ("elu(x + 1)", lambda x: F.elu(x + 1)),
                      ("softplus", F.softplus), ("a softmax", lambda x: x.softmax(-1)),
                      ("relu + 1", lambda x: torch.relu(x) + 1)):
    wrong("linear.other features", f"f is {name}; asked for is elu(x) + 1.",
          of_q=feature, of_k=feature)


# --- black boxes ---------------------------------------------------------------------------------
BY = "transformer_lm.black_boxes:black_box"
KINDS = ("full", "causal", "window", "alibi", "rope", "linear")
SEEN_BY = {  # what sets each kind apart, told where it was taken for another
    "full": "A box that lets tokens see later ones was taken for another. Look above the diagonal "
    "of its weights.",
    "causal": "Plain causal attention was taken for another box. Equal scores give equal weights "
    "there, at any distance; and doubled scores double the logarithms of the weights' ratios.",
    "window": "A box in which the far past is out of sight was taken for another. Is your probe "
    "longer than any window, and do you look for weights that are exactly 0 in the past?",
    "alibi": "A box that makes far keys pay was taken for another. Where all queries are 0, all "
    "products are: what is left of the weights is the penalty.",
    "rope": "A box that turns queries and keys was taken for another. Where all queries and keys "
    "are one vector that is not 0, only the distance can make weights differ.",
    "linear": "A box without a softmax was taken for another. What happens to the weights if all "
    "queries are doubled?",
}


def boxes(draw: Draw) -> list[Call]:
    kinds = [*KINDS, draw.choice(KINDS), draw.choice(KINDS)]
    draw.random.shuffle(kinds)
    calls = []
    for place, kind in enumerate(kinds, 1):
        size = draw.choice((4, 6, 8))
        values = {"kind": kind, "window": draw.integer(11, 16), "slope": 0.5 ** draw.integer(1, 5)}
        calls.append(Call("", (Made(BY, values), size), says=f"box {place}, size {size}"))
    return calls


@exercise("variants.find", boxes, judge=partial(confused, says=SEEN_BY),
          hints=(
              "You choose what goes in. Values that are rows of the identity make the weights "
              "themselves come out.",
              "Ask one question after the other: is there weight above the diagonal? Exact zeros "
              "far below it? With queries of 0, do the weights fall with the distance?",
              "What is left is causal, rope and linear. All queries and keys equal: only rope's "
              "weights differ. Queries doubled: a softmax squares the ratios of weights."))
def find_variant(attend, size, tokens=40, blind=""):
    values = torch.eye(tokens)  # 40 are more than any window holds
    silent = torch.zeros(tokens, size)
    flat = attend(silent, silent, values)
    if flat[0, -1] > 0 and blind != "full":
        return "full"
    if flat[-1, 0] == 0 and blind != "window":
        return "window"
    if not torch.allclose(flat[-1], flat[-1, :1], rtol=1e-3) and blind != "alibi":
        return "alibi"
    same = attend(silent + 1, silent + 1, values)
    if not torch.allclose(same[-1], same[-1, :1], rtol=1e-3) and blind != "rope":
        return "rope"
    k = torch.linspace(-1, 1, tokens)[:, None].expand(tokens, size)
    once, twice = (attend(silent + q, k, values)[-1] for q in (1.0, 2.0))
    ratio, squared = (once[-1] / once[0]).log(), (twice[-1] / twice[0]).log()
    is_softmax = torch.isclose(squared, 2 * ratio, rtol=1e-2)
    return "causal" if is_softmax or blind == "linear" else "linear"

find_variant.wrong("find.window not known", SEEN_BY["window"], tokens=8)
for kind in ("full", "window", "alibi", "rope", "linear"):
    find_variant.wrong(f"find.{kind} not known", SEEN_BY[kind], blind=kind)
for kind in KINDS:
    find_variant.wrong("find.one name for all", "All boxes got the same name. Each of the kinds is "
                       "among them.", lambda attend, size, kind=kind: kind)
