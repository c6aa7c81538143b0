"""Lesson 07: the same numbers with less work. What counts is counted: tensors, products, bytes.

Masks are True where a key is hidden.
"""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from autograder import Call, Draw, exercise
from autograder.judging.forms import results_in_one_tensor

from ._gpt2 import gpt2_and_ids
from .judges.speed import in_tiles, little_work, one_product, row_in_blocks, with_past

INF = float("inf")


def starts(length, block):
    return range(0, length, block)


# --- counting ------------------------------------------------------------------------------------
def workloads(draw: Draw) -> list[Call]:
    calls = []
    for q_len, k_len in ((47, 89), (1, 97), (61, 61)):
        batch_size, num_heads, head_size = draw.sizes(3, 2, 13)
        size = draw.choice((2, 4))
        args = (batch_size, num_heads, q_len, k_len, head_size, size)
        says = f"{batch_size} sequences, {num_heads} heads of size {head_size}, {q_len} queries, "
        calls.append(Call("", args, says=says + f"{k_len} keys, {size} bytes a number"))
    return calls


@exercise("fast.count", workloads, judge=results_in_one_tensor,
          hints=(
              "Count one head of one sequence first: how many dot products are the scores, and "
              "how long is each?",
              "A dot product of length n is n multiplications and n additions. There are two "
              "matrix products. For the bytes go through the three steps in the table: each reads "
              "its inputs and writes its output.",
              "flops = 4 * q_len * k_len * head_size; numbers = 2 * (q_len + k_len) * head_size + "
              "4 * q_len * k_len. Both for each head of each sequence."))
def attention_cost(batch_size, num_heads, q_len, k_len, head_size, bytes_per_number,
                   operations=2, products=2, tables=4, vectors=2, all_heads=True, sized=True,
                   turn=lambda flops, moved: flops / moved):
    heads = batch_size * (num_heads if all_heads else 1)
    flops = heads * operations * products * q_len * k_len * head_size
    numbers = heads * (vectors * (q_len + k_len) * head_size + tables * q_len * k_len)
    moved = numbers * (bytes_per_number if sized else 1)
    return flops, moved, turn(flops, moved)

wrong = attention_cost.wrong
wrong("count.factor 2",
      "That is half of the FLOPs. A multiplication and its addition are two, and there are two "
      "matrix products; one of these two's is missing.", operations=1)
wrong("count.factor 2",
      "That is a quarter of the FLOPs. A multiplication and its addition are two, and there are "
      "two matrix products.", operations=1, products=1)
wrong("count.table forgotten",
      "The q_len x k_len tables are not among the bytes. Scores are written and read, and so are "
      "probabilities: that is most of what is moved.", tables=0)
wrong("count.table forgotten",
      "Some of the trips of the q_len x k_len tables are missing: scores are written, read by the "
      "softmax, and probabilities written and read once more.", tables=2)
wrong("count.table forgotten", "One trip of the q_len x k_len tables is missing.", tables=3)
wrong("count.table forgotten", "Only one trip of the q_len x k_len tables is counted.", tables=1)
wrong("count.vectors forgotten", "The reads of q, k and v and the write of the output are missing.",
      vectors=0)
wrong("count.heads", "The heads are not counted.", all_heads=False)
wrong("count.numbers for bytes", "These are numbers, not bytes: each takes bytes_per_number.",
      sized=False)
wrong("count.intensity inverted", "The intensity is upside down: FLOPs for each byte.",
      turn=lambda flops, moved: moved / flops)
wrong("count.as many keys as queries", "q_len stands where k_len belongs.",
      lambda b, h, q, k, d, size: attention_cost(b, h, q, q, d, size))
wrong("count.as many keys as queries", "k_len stands where q_len belongs.",
      lambda b, h, q, k, d, size: attention_cost(b, h, k, k, d, size))
wrong("count.k or v", "k and v are both read: that is twice k_len.",
      lambda b, h, q, k, d, size: (
          4 * b * h * q * k * d, b * h * ((2 * q + k) * d + 4 * q * k) * size,
          4 * b * h * q * k * d / (b * h * ((2 * q + k) * d + 4 * q * k) * size)))
wrong("count.intensity rounded", "The intensity is cut to a whole number: `/`, not `//`.",
      turn=lambda flops, moved: flops // moved)
wrong("count.output", "The output's write is not among the bytes.",
      lambda b, h, q, k, d, size: (
          4 * b * h * q * k * d, b * h * ((q + 2 * k) * d + 4 * q * k) * size,
          4 * b * h * q * k * d / (b * h * ((q + 2 * k) * d + 4 * q * k) * size)))


def other_count(message, flops, numbers, check="count.vectors forgotten"):
    """A slip in one of the two formulas, of which each is for one head of one sequence."""
    def cost(b, h, q, k, d, size):
        done, moved = b * h * flops(q, k, d), b * h * numbers(q, k, d) * size
        return done, moved, done / moved
    wrong(check, message, cost)


def right_flops(q, k, d):
    return 4 * q * k * d


def right_numbers(q, k, d):
    return 2 * (q + k) * d + 4 * q * k


other_count("q, k, v and the output are all read or written; the keys' side is missing here.",
            right_flops, lambda q, k, d: 4 * q * d + 4 * q * k)
other_count("q, k, v and the output are all read or written; the keys' side is missing here.",
            right_flops, lambda q, k, d: 2 * q * d + 4 * q * k)
other_count("Of q, k, v and the output only two are counted: q and k are read, and so is v, and "
            "the output is written.", right_flops, lambda q, k, d: (q + k) * d + 4 * q * k)
for number in range(1, 11):
    other_count("The softmax's own operations are among the FLOPs. Only the two matrix products "
                "are asked for.", lambda q, k, d, n=number: (4 * d + n) * q * k, right_numbers,
                check="count.softmax too")
other_count("There are q_len times k_len scores, not q_len times q_len.",
            lambda q, k, d: 4 * q * q * d, right_numbers, check="count.as many keys as queries")
other_count("There are q_len times k_len scores, not k_len times k_len.",
            lambda q, k, d: 4 * k * k * d, right_numbers, check="count.as many keys as queries")
other_count("The tables are q_len times k_len, not q_len times q_len.",
            right_flops, lambda q, k, d: 2 * (q + k) * d + 4 * q * q,
            check="count.as many keys as queries")
other_count("Only what is read is counted; scores, probabilities and the output are written, too.",
            right_flops, lambda q, k, d: (q + 2 * k) * d + 2 * q * k, check="count.reads only")
other_count("Only what is written is counted; each step reads its inputs, too.",
            right_flops, lambda q, k, d: q * d + 2 * q * k, check="count.writes only")
other_count("Each of q, k, v, the output and the two tables is counted once. Scores and "
            "probabilities are written by one step and read by the next.",
            right_flops, lambda q, k, d: 2 * (q + k) * d + 2 * q * k, check="count.table forgotten")
wrong("count.bits", "The bytes are multiplied by 8: these are bits.",
      lambda b, h, q, k, d, size: attention_cost(b, h, q, k, d, 8 * size))
wrong("count.intensity of numbers", "The intensity is FLOPs for each number; it is FLOPs for each "
      "byte.", lambda b, h, q, k, d, size: (
          *attention_cost(b, h, q, k, d, size)[:2], attention_cost(b, h, q, k, d, 1)[2]))
wrong("count.numbers for bytes", "The tables are counted in numbers, not in bytes.",
      lambda b, h, q, k, d, size: partly_sized(b, h, q, k, d, tables=1, vectors=size))
wrong("count.numbers for bytes", "q, k, v and the output are counted in numbers, not in bytes.",
      lambda b, h, q, k, d, size: partly_sized(b, h, q, k, d, tables=size, vectors=1))
wrong("count.heads", "The sequences of the batch are not counted.",
      lambda b, h, q, k, d, size: attention_cost(1, h, q, k, d, size))
wrong("count.heads", "The sequences of the batch are not counted among the FLOPs.",
      lambda b, h, q, k, d, size: mixed(attention_cost(1, h, q, k, d, size),
                                        attention_cost(b, h, q, k, d, size)))
wrong("count.heads", "The heads are not counted among the bytes.",
      lambda b, h, q, k, d, size: mixed(attention_cost(b, h, q, k, d, size),
                                        attention_cost(b, 1, q, k, d, size)))
wrong("count.heads", "The sequences of the batch are not counted among the bytes.",
      lambda b, h, q, k, d, size: mixed(attention_cost(b, h, q, k, d, size),
                                        attention_cost(1, h, q, k, d, size)))
wrong("count.heads", "The heads are counted twice.",
      lambda b, h, q, k, d, size: attention_cost(b, h * h, q, k, d, size))
wrong("count.factor 2", "The FLOPs are twice what they are.", operations=4)
wrong("count.size forgotten", "head_size is not among the FLOPs: each score is a dot product.",
      lambda b, h, q, k, d, size: mixed(
          [n / d for n in attention_cost(b, h, q, k, d, size)],
          attention_cost(b, h, q, k, d, size)))
wrong("count.table forgotten", "Of the q_len x k_len tables two trips too many are counted.",
      tables=6)
wrong("count.table forgotten", "Of the q_len x k_len tables one trip too many is counted.",
      tables=5)
wrong("count.heads", "The heads are not counted among the FLOPs.",
      lambda b, h, q, k, d, size: mixed(attention_cost(b, 1, q, k, d, size),
                                        attention_cost(b, h, q, k, d, size)))


def partly_sized(b, h, q, k, d, tables, vectors):
    """The bytes of a number may differ for the tables and for the vectors."""
    flops, moved = b * h * 4 * q * k * d, b * h * (2 * (q + k) * d * vectors + 4 * q * k * tables)
    return flops, moved, flops / moved


def mixed(one, other):
    """The FLOPs of one count and the bytes of another."""
    return one[0], other[1], one[0] / other[1]


# --- the softmax in one pass ---------------------------------------------------------------------
def rows_in_blocks(draw: Draw) -> list[Call]:
    """Large scores, rows that are negative throughout, rows whose first blocks are hidden."""
    calls = []
    for block, shift in ((7, 0.0), (5, 300.0), (11, -300.0)):
        q_len, k_len = 5, draw.choice((67, 71, 83))
        scores = draw.normal(q_len, k_len, scale=3.0) + shift
        scores[1, : block + 2] = -INF
        scores[2, -1] = scores[2, scores[2].isfinite()].max() + 4
        scores[3] = scores[3].sort(descending=True).values
        says = f"{q_len} rows of {k_len} scores around {shift:.0f}, blocks of {block}"
        calls.append(Call("", (scores, block), work=True, says=says))
    return calls


def grown(old, new):
    """The factor for what was summed up relative to the old maximum."""
    return (old - new).exp()


def or_zero(m):
    return m.masked_fill(m == -INF, 0.0)


@exercise("fast.online", rows_in_blocks, judge=row_in_blocks,
          hints=(
              "After each block you know the largest score so far and a sum of exponentials that "
              "was taken relative to it. A new block brings a larger score: what becomes of the "
              "old sum?",
              "exp(s - m_old) = exp(s - m_new) * exp(m_new - m_old). So the old sum is multiplied "
              "by exp(m_old - m_new).",
              "m starts at -inf, l at 0. Where m_new is still -inf, subtract 0 instead of it: -inf "
              "minus -inf is not a number."))
def online_softmax(scores, block, first=-INF, rescale=grown, larger=torch.maximum, guard=or_zero,
                   cut=lambda length, block: length):
    m = torch.full(scores.shape[:1], first).to(scores)
    total = torch.zeros_like(m)
    for start in starts(cut(scores.shape[1], block), block):
        part = scores[:, start : start + block]
        new = larger(m, part.amax(-1))
        total = total * rescale(m, guard(new)) + (part - guard(new)[:, None]).exp().sum(-1)
        m = new
    return m, total

wrong = online_softmax.wrong
wrong("online.l not rescaled",
      "The running sum is not rescaled: its terms are relative to maxima that have been "
      "overtaken since.", rescale=lambda old, new: 1.0)
wrong("online.rescaled the wrong way",
      "The running sum is rescaled the wrong way round. When the maximum rises, the old terms "
      "shrink.", rescale=lambda old, new: (new - old).exp())
wrong("online.-inf minus -inf",
      "There are NaN: where all scores so far are -inf, the maximum is -inf as well, and -inf "
      "minus -inf is not a number.", guard=torch.clone)
wrong("online.maximum of the block",
      "The maximum is that of the last block alone, not of all blocks so far.",
      larger=lambda old, new: new)
wrong("online.maximum from 0",
      "The running maximum starts at 0, so rows whose scores are all below that never have their "
      "own.", first=0.0)
wrong("online.no maximum", "No maximum is subtracted: large scores overflow.",
      lambda scores, block: (scores.amax(-1), scores.float().exp().sum(-1)))
wrong("online.maximum of the first block",
      "The maximum is that of the first block, whatever comes later.",
      lambda scores, block: (scores[:, :block].amax(-1), (
          scores - scores[:, :block].amax(-1, True)).exp().sum(-1)))
wrong("online.maximum of all rows", "The maximum is taken over all rows; each row has its own.",
      larger=lambda old, new: torch.maximum(old, new.max()))
wrong("online.one term for a block",
      "Each block adds one exponential, that of its largest score. It adds those of all its "
      "scores.", lambda scores, block: (scores.amax(-1), sum(
          (p.amax(-1) - scores.amax(-1)).exp() for p in scores.split(block, -1))))
wrong("online.mean for sum", "The exponentials are averaged; they must be added up.",
      lambda scores, block: block_means(scores, block))
wrong("online.logsumexp", "The second result is m + log(l); l itself is asked for.",
      lambda scores, block: (scores.amax(-1), scores.logsumexp(-1)))
wrong("online.logsumexp", "The second result is log(l); l itself is asked for.",
      lambda scores, block: (scores.amax(-1), scores.logsumexp(-1) - scores.amax(-1)))
wrong("online.rescaled the wrong way",
      "The running sum is rescaled the wrong way round. When the maximum rises, the old terms "
      "shrink.", rescale=lambda old, new: (new - old).exp().nan_to_num(0.0, 0.0))
wrong("online.rescaled without exp",
      "The running sum is multiplied by the difference of the maxima; it is exp of the difference.",
      rescale=lambda old, new: (old - new).nan_to_num(0.0, 0.0, 0.0))
wrong("online.rescaled without exp",
      "The running sum is multiplied by the quotient of the maxima; it is exp of their difference.",
      rescale=lambda old, new: (old / new).nan_to_num(0.0, 0.0, 0.0))
wrong("online.rescaled twice", "The running sum is multiplied by the factor twice.",
      rescale=lambda old, new: grown(old, new) ** 2)
wrong("online.smallest for largest", "The smallest score is kept; it is the largest that matters.",
      lambda scores, block: (scores.amin(-1), (scores - scores.amin(-1, True)).exp().sum(-1)))
wrong("online.old maximum", "The new block's terms are relative to the old maximum; the sum is "
      "relative to the new one.", lambda scores, block: to_the_old_maximum(scores, block))
wrong("online.probabilities", "These are sums of probabilities, which are 1. l is a sum of "
      "exponentials, relative to m.",
      lambda scores, block: (scores.amax(-1), scores.softmax(-1).sum(-1)))
wrong("online.new block rescaled",
      "The new block's sum is multiplied by the factor as well. It is relative to the new maximum "
      "already: only the old sum is rescaled.",
      lambda scores, block: both_rescaled(scores, block))
wrong("online.maximum not kept", "m is not updated from block to block.",
      lambda scores, block: (scores.split(block, -1)[-1].amax(-1), (
          scores.split(block, -1)[-1] - scores.split(block, -1)[-1].amax(-1, True)).exp().sum(-1)))
wrong("online.maximum of the block",
      "What comes back as m is the last block's own maximum, not that of all blocks.",
      lambda scores, block: (
          scores.split(block, -1)[-1].amax(-1), online_softmax(scores, block)[1]))
wrong("online.last block lost",
      "The last block is lost where it is shorter than the others.",
      cut=lambda length, block: length // block * block)
wrong("online.blocks added",
      "Each block's sum is taken relative to its own maximum, and the sums are added as they are.",
      lambda scores, block: (scores.amax(-1), sum(
          (p - or_zero(p.amax(-1))[:, None]).exp().sum(-1) for p in scores.split(block, -1))))
wrong("online.blocks added",
      "The old sum is rescaled to the new maximum, but the new block's terms are relative to the "
      "block's own maximum.", lambda scores, block: to_the_maximum_of_the_block(scores, block))
wrong("online.mean for sum", "The sum is divided by the number of keys; it is a sum.",
      lambda scores, block: (scores.amax(-1), online_softmax(scores, block)[1] / scores.shape[1]))
wrong("online.first block lost", "The first block is not counted in l.",
      lambda scores, block: (scores.amax(-1), (
          scores[:, block:] - scores.amax(-1, True)).exp().sum(-1)))
wrong("online.logsumexp", "The first result is m + log(l); m itself is asked for.",
      lambda scores, block: (scores.logsumexp(-1), online_softmax(scores, block)[1]))
wrong("online.inverse", "1 / l comes back; l is asked for.",
      lambda scores, block: (scores.amax(-1), 1 / online_softmax(scores, block)[1]))
wrong("online.whole row", "Whole rows are made at once.",
      lambda scores, block: (scores.amax(-1), (scores - scores.amax(-1, True)).exp().sum(-1)))


def block_means(scores, block):
    m = scores.amax(-1)
    total = torch.zeros_like(m)
    so_far = torch.full_like(m, -INF)
    for part in scores.split(block, -1):
        new = torch.maximum(so_far, part.amax(-1))
        total = total * grown(so_far, or_zero(new)) + (part - or_zero(new)[:, None]).exp().mean(-1)
        so_far = new
    return m, total


def to_the_old_maximum(scores, block):
    m = scores.new_full(scores.shape[:1], -INF)
    total = torch.zeros_like(m)
    for part in scores.split(block, -1):
        new = torch.maximum(m, part.amax(-1))
        added = (part - m[:, None]).exp().nan_to_num(0.0, 0.0)
        total, m = total * grown(m, or_zero(new)) + added.sum(-1), new
    return m, total


def to_the_maximum_of_the_block(scores, block):
    m = scores.new_full(scores.shape[:1], -INF)
    total = torch.zeros_like(m)
    for part in scores.split(block, -1):
        new = torch.maximum(m, part.amax(-1))
        own = (part - or_zero(part.amax(-1))[:, None]).exp().sum(-1)
        total, m = total * grown(m, or_zero(new)) + own, new
    return m, total


def both_rescaled(scores, block):
    m = scores.new_full(scores.shape[:1], -INF)
    total = torch.zeros_like(m)
    for part in scores.split(block, -1):
        new = torch.maximum(m, part.amax(-1))
        total = (total + (part - or_zero(new)[:, None]).exp().sum(-1)) * grown(m, or_zero(new))
        m = new
    return m, total


# --- attention in tiles --------------------------------------------------------------------------
FEW, KEYS = 8, {True: (19, 21), False: (83, 101)}  # blocks of few tiles; how many keys there are


def long_sequences(draw: Draw) -> list[Call]:
    """First few tiles, whose steps are easily looked at; then so many that a strip is large."""
    calls = []
    for block, spread in ((8, 1.0), (16, 1.5), (24, 3.0), (20, 1.0)):
        few = block == FEW
        q_len, k_len = draw.choice((11, 13) if few else (61, 77)), draw.choice(KEYS[few])
        head_size = draw.choice((2, 3))
        q, k, v = (draw.normal(n, head_size, scale=spread) for n in (q_len, k_len, k_len))
        says = f"{q_len} queries, {k_len} keys, head_size {head_size}, blocks of {block}"
        calls.append(Call("", (q, k, v, block), work=not few, says=says))
    return calls


def root(q):
    return q.shape[-1] ** -0.5


def divided(out, total):
    return out / total[:, None]


def divided_after_each_tile(q, k, v, block):
    """Algorithm 1 of Dao et al. 2022, "FlashAttention": a maximum and a sum of each tile's own."""
    outs = []
    for start in starts(len(q), block):
        rows = q[start : start + block]
        m = rows.new_full((len(rows),), -INF)
        total, out = torch.zeros_like(m), rows.new_zeros(len(rows), v.shape[1])
        for first in starts(len(k), block):
            scores = rows @ k[first : first + block].T * root(q)
            own = scores.amax(-1)
            weights = (scores - own[:, None]).exp()
            new = torch.maximum(m, own)
            before, here = grown(m, new) * total, grown(own, new)
            total = before + here * weights.sum(-1)
            added = here[:, None] * (weights @ v[first : first + block])
            out = divided(before[:, None] * out + added, total)
            m = new
        outs.append(out)
    return torch.cat(outs)


@exercise("fast.tiles", long_sequences, judge=in_tiles, also=(divided_after_each_tile,),
          hints=(
              "Two loops: over blocks of queries, and within it over blocks of keys. Keep three "
              "things for each query: m, l and the output so far.",
              "A tile's scores are q_block @ k_block.T, scaled. When the maximum rises, both l "
              "*and* the output so far are multiplied by exp(m_old - m_new).",
              "Add exp(scores - m_new) @ v_block to the output and its row sums to l. Divide by l "
              "once, after the last block of keys."))
def tiled_attention(q, k, v, block, scale=root, rescale=grown, rescale_out=grown,
                    cut=lambda length, block: length, each=lambda part, total: part,
                    end=divided):
    outs = []
    for start in starts(cut(len(q), block), block):
        rows = q[start : start + block]
        m = rows.new_full((len(rows),), -INF)
        total, out = torch.zeros_like(m), rows.new_zeros(len(rows), v.shape[1])
        for first in starts(cut(len(k), block), block):
            scores = rows @ k[first : first + block].T * scale(q)
            new = torch.maximum(m, scores.amax(-1))
            weights = (scores - new[:, None]).exp()
            total = total * rescale(m, new) + weights.sum(-1)
            out = out * rescale_like(rescale_out(m, new))
            out = each(out + weights @ v[first : first + block], total)
            m = new
        outs.append(end(out, total))
    return torch.cat(outs)


def rescale_like(factor):
    return factor[:, None] if isinstance(factor, torch.Tensor) else factor


def never(old, new):
    return 1.0


wrong = tiled_attention.wrong
wrong("tiles.accumulator not rescaled",
      "The output so far is not rescaled when the maximum rises; l is. Both are sums of the same "
      "exponentials.", rescale_out=never)
wrong("tiles.l not rescaled",
      "l is not rescaled when the maximum rises; the output is. Both are sums of the same "
      "exponentials.", rescale=never)
wrong("tiles.nothing rescaled",
      "Nothing is rescaled when the maximum rises: later tiles then count too much.",
      rescale=never, rescale_out=never)
wrong("tiles.rescaled the wrong way", "When the maximum rises, what was summed up shrinks; here it "
      "grows.", rescale=lambda old, new: (new - old).exp().nan_to_num(0.0, 0.0),
      rescale_out=lambda old, new: (new - old).exp().nan_to_num(0.0, 0.0))
wrong("tiles.divided twice",
      "The output is divided by l after each tile and once more at the end.", each=divided)
wrong("tiles.divided each time",
      "The output is divided by l after each tile. Then its next rescaling is off: divide once, "
      "at the end.", each=divided, end=lambda out, total: out)
wrong("tiles.divided twice", "The output is divided by l twice at the end.",
      end=lambda out, total: divided(divided(out, total), total))
wrong("tiles.rescaled twice", "The output so far is multiplied by the factor twice.",
      rescale_out=lambda old, new: grown(old, new) ** 2)
wrong("tiles.first lost", "The first block of keys is left out.",
      lambda q, k, v, block: tiled_attention(q, k[block:], v[block:], block))
wrong("tiles.values stay", "The values of the first block are used with every block of keys.",
      lambda q, k, v, block: tiled_attention(
          q, k, v[:block].repeat(math.ceil(len(k) / block), 1)[: len(k)], block))
wrong("tiles.keys stay", "The keys of the first block are used with every block of values.",
      lambda q, k, v, block: tiled_attention(
          q, k[:block].repeat(math.ceil(len(k) / block), 1)[: len(k)], v, block))
wrong("tiles.last only", "Only the last block of keys is left: each tile overwrites what the "
      "others gave, or m is not updated, so that exp(m_old - m_new) is always 0.",
      lambda q, k, v, block: tiled_attention(
          q, k.split(block)[-1], v.split(block)[-1], block))
wrong("tiles.not divided", "The output is not divided by l.", end=lambda out, total: out)
wrong("tiles.last tile",
      "The last tile is lost where the length is no multiple of the block: queries and keys.",
      cut=lambda length, block: length // block * block)
wrong("tiles.last tile", "The last, shorter block of keys is lost.",
      lambda q, k, v, block: tiled_attention(
          q, k[: len(k) // block * block], v[: len(k) // block * block], block))
wrong("tiles.last tile", "The last, shorter block of queries is lost.",
      lambda q, k, v, block: tiled_attention(q[: len(q) // block * block], k, v, block))
wrong("tiles.last tile", "The last, shorter block of queries was left at 0.",
      lambda q, k, v, block: F.pad(
          tiled_attention(q[: len(q) // block * block], k, v, block), (0, 0, 0, len(q) % block)))
wrong("tiles.padding counted",
      "Keys were padded with zeros to a multiple of the block, and the padding gets attention: a "
      "score of 0 is a score like any other.",
      lambda q, k, v, block: tiled_attention(
          q, F.pad(k, (0, 0, 0, -len(k) % block)), F.pad(v, (0, 0, 0, -len(v) % block)), block))
wrong("tiles.softmax of each",
      "Each tile has a softmax of its own, and the results are added: weights then sum to the "
      "number of tiles.", lambda q, k, v, block: sum(
          tiled_attention(q, *parts, block)
          for parts in zip(k.split(block), v.split(block), strict=True)))
wrong("tiles.softmax of each",
      "Each tile has a softmax of its own, and the results are averaged: a tile of low scores "
      "then counts as much as one of high ones.", lambda q, k, v, block: torch.stack([
          tiled_attention(q, *parts, block)
          for parts in zip(k.split(block), v.split(block), strict=True)]).mean(0))
wrong("tiles.diagonal only", "Each block of queries sees its own block of keys only.",
      lambda q, k, v, block: torch.cat([
          tiled_attention(a, b, c, block) for a, b, c in zip(
              q.split(block), k.split(block), v.split(block), strict=False)]))
wrong("scale.missing", "The scores are not scaled.", scale=lambda q: 1.0)
wrong("scale.k_len", "The scale is taken from the number of keys, not from head_size.",
      lambda q, k, v, block: tiled_attention(q, k, v, block, scale=lambda q: len(k) ** -0.5))
wrong("tiles.values from k", "Keys are added up where values belong.",
      lambda q, k, v, block: tiled_attention(q, k, k, block))
wrong("tiles.as many keys as queries",
      "The loop over the keys ends where the queries end: there are more keys than queries.",
      lambda q, k, v, block: tiled_attention(
          q, *(t[: math.ceil(len(q) / block) * block] for t in (k, v)), block))
wrong("scale.twice", "The scale is applied twice.", scale=lambda q: 1 / q.shape[-1])
wrong("scale.multiplied", "The scores are multiplied by the root.", scale=lambda q: 1 / root(q))
wrong("scale.block", "The scale is taken from the block, not from head_size.",
      lambda q, k, v, block: tiled_attention(q, k, v, block, scale=lambda q: block**-0.5))
wrong("tiles.one l for all", "The rows are divided by one number; each row has its own l.",
      end=lambda out, total: out / total.sum())
wrong("tiles.one l for all", "The rows are divided by one number; each row has its own l.",
      end=lambda out, total: out / total.max())
wrong("tiles.softmax of each", "Each tile's weights are normalised by themselves. Only at the end "
      "is the whole sum known.", lambda q, k, v, block: tile_by_tile(q, k, v, block, normalised))
wrong("tiles.softmax of each", "Each tile's weights are normalised by themselves, and a later tile "
      "is added to a rescaled sum.",
      lambda q, k, v, block: tile_by_tile(q, k, v, block, partial(normalised, rescale=grown)))
wrong("tiles.old maximum", "A tile's weights are relative to the old maximum; l and the output are "
      "relative to the new one.", lambda q, k, v, block: tile_by_tile(q, k, v, block, old_maximum))
wrong("tiles.old maximum", "A tile's weights are relative to the old maximum; l and the output are "
      "relative to the new one.",
      lambda q, k, v, block: tile_by_tile(q, k, v, block, partial(old_maximum, at_first=0.0)))


wrong("tiles.divided twice", "Each tile's part of the output is divided by the l so far, and all "
      "is divided once more at the end.",
      lambda q, k, v, block: tile_by_tile(q, k, v, block, divided_so_far))
wrong("tiles.divided each time", "Each tile's part of the output is divided by the l so far, "
      "which is not yet the whole one. Divide once, at the end.",
      lambda q, k, v, block: tile_by_tile(
          q, k, v, block, divided_so_far, end=lambda out, total: out))
for name, message in (("total", "l is not set back to 0 for the next block of queries."),
                      ("out", "The output is not set back to 0 for the next block of queries."),
                      ("total out", "l and the output are not set back to 0 for the next block of "
                       "queries.")):
    wrong("tiles.not reset", message,
          lambda q, k, v, block, name=name: tiles_carried(q, k, v, block, name.split()))
wrong("tiles.maximum of the tile", "Each tile's exponentials are relative to the tile's own "
      "maximum, and their sums are added as they are. They do not fit together.",
      lambda q, k, v, block: own_maximum_tiles(q, k, v, block))
wrong("tiles.whole table", "The whole table is made.",
      lambda q, k, v, block: (q @ k.T * root(q)).softmax(-1) @ v)
wrong("tiles.strip", "Whole strips of the table are made.",
      lambda q, k, v, block: torch.cat([
          (rows @ k.T * root(q)).softmax(-1) @ v for rows in q.split(block)]))
wrong("tiles.library", "The library did it.",
      lambda q, k, v, block: F.scaled_dot_product_attention(
          q[None, None], k[None, None], v[None, None])[0, 0])


def tile_by_tile(q, k, v, block, step, end=divided):
    """The usual loop with another step, which gives the running l and output after a tile."""
    outs = []
    for rows in q.split(block):
        m = rows.new_full((len(rows),), -INF)
        total, out = torch.zeros_like(m), rows.new_zeros(len(rows), v.shape[1])
        for keys, values in zip(k.split(block), v.split(block), strict=True):
            scores = rows @ keys.T * root(q)
            new = torch.maximum(m, scores.amax(-1))
            total, out = step(m, new, total, out, scores, values)
            m = new
        outs.append(end(out, total))
    return torch.cat(outs)


def normalised(m, new, total, out, scores, values, rescale=never):
    """Each tile with a softmax of its own; l counts the tiles, rescaled or not."""
    factor = rescale_like(rescale(m, new))
    total = total * (factor[:, 0] if isinstance(factor, torch.Tensor) else factor) + 1.0
    return total, out * factor + scores.softmax(-1) @ values


def divided_so_far(m, new, total, out, scores, values):
    """Each tile's part divided by the running l."""
    weights = (scores - new[:, None]).exp()
    total = total * grown(m, new) + weights.sum(-1)
    return total, out * grown(m, new)[:, None] + divided(weights @ values, total)


def tiles_carried(q, k, v, block, what):
    """What one block of queries has summed up is not set back for the next one."""
    outs, kept = [], {}
    for rows in q.split(block):
        m = rows.new_full((len(rows),), -INF)
        sums = {"total": torch.zeros_like(m), "out": rows.new_zeros(len(rows), v.shape[1])}
        sums |= {name: kept[name][: len(rows)] for name in what if name in kept}
        for keys, values in zip(k.split(block), v.split(block), strict=True):
            scores = rows @ keys.T * root(q)
            new = torch.maximum(m, scores.amax(-1))
            weights, factor = (scores - new[:, None]).exp(), grown(m, new)
            if torch.isinf(m).all():  # the first block of keys: exp(-inf) would set all back
                factor = torch.ones_like(m)
            sums["total"] = sums["total"] * factor + weights.sum(-1)
            sums["out"] = sums["out"] * factor[:, None] + weights @ values
            m = new
        outs.append(divided(sums["out"], sums["total"]))
        kept = sums
    return torch.cat(outs)


def own_maximum_tiles(q, k, v, block):
    """Each tile relative to its own maximum, and nothing rescaled."""
    total = out = 0.0
    for keys, values in zip(k.split(block), v.split(block), strict=True):
        scores = q @ keys.T * root(q)
        weights = (scores - scores.amax(-1, True)).exp()
        total, out = total + weights.sum(-1), out + weights @ values
    return divided(out, total)


def old_maximum(m, new, total, out, scores, values, at_first=1.0):
    """Weights relative to the maximum before the tile; of the first tile all are `at_first`."""
    weights = (scores - m[:, None]).exp().nan_to_num(0.0, at_first)
    total = total * grown(m, new) + weights.sum(-1)
    return total, out * grown(m, new)[:, None] + weights @ values


# --- causal tiles --------------------------------------------------------------------------------
def long_causal(draw: Draw) -> list[Call]:
    calls = []
    for block, spread in ((8, 1.0), (16, 1.5), (24, 3.0), (20, 1.0)):
        seq_len, head_size = draw.choice(KEYS[block == FEW]), draw.choice((2, 3))
        q, k, v = (draw.normal(seq_len, head_size, scale=spread) for _ in range(3))
        says = f"{seq_len} tokens, head_size {head_size}, blocks of {block}"
        calls.append(Call("", (q, k, v, block), work=block != FEW, says=says))
    return calls


def up_to_the_diagonal(i, rows):
    return range(i + 1)


@exercise("fast.causal_tiles", long_causal, judge=partial(in_tiles, causal=True),
          hints=(
              "Number the blocks of queries and keys. Which tiles lie wholly in the future, which "
              "wholly in the past, and which does the diagonal cut?",
              "Tile (i, j) with j > i is skipped and with j < i needs no mask; the tile (i, i) is "
              "masked inside, by positions.",
              "for j in range(i + 1): ... and count each tile that you compute. Within (i, i) hide "
              "`triu(diagonal=1)`; every row keeps at least its own key."))
def causal_tiles(q, k, v, block, order=up_to_the_diagonal, diagonal=1, masked=True,
                 counted=lambda done, rows: done, scale=root, fill=-INF, turn=False,
                 rescale=grown, rescale_out=grown, end=divided, local=False):
    rows = math.ceil(len(q) / block)
    outs, done = [], 0
    place = torch.arange(len(q))
    for i in range(rows):
        mine = slice(i * block, (i + 1) * block)
        m = q[mine].new_full((len(q[mine]),), -INF)
        total, out = torch.zeros_like(m), torch.zeros_like(v[mine])
        for j in order(i, rows):
            theirs = slice(j * block, (j + 1) * block)
            scores = q[mine] @ k[theirs].T * scale(q)
            if masked:
                future = place[theirs] >= place[mine, None] + diagonal
                if local:
                    future = place[: len(k[theirs])] > place[: len(q[mine]), None]
                if turn and i == j:
                    future = place[theirs] < place[mine, None]
                scores = scores.masked_fill(future, fill)
            new = torch.maximum(m, scores.amax(-1))
            weights = (scores - or_zero(new)[:, None]).exp()
            total = total * rescale(m, or_zero(new)) + weights.sum(-1)
            out = out * rescale_like(rescale_out(m, or_zero(new))) + weights @ v[theirs]
            m, done = new, done + 1
        outs.append(end(out, total))
    return torch.cat(outs), counted(done, rows)

wrong = causal_tiles.wrong
wrong("tiles.hidden computed",
      "Tiles that lie wholly in the future are computed and then masked. Half of the work can be "
      "left out.", order=lambda i, rows: range(rows))
wrong("tiles.hidden computed",
      "Tiles that lie wholly in the future are computed and then masked, and not counted.",
      order=lambda i, rows: range(rows), counted=lambda done, rows: rows * (rows + 1) // 2)
wrong("tiles.diagonal skipped",
      "The tiles on the diagonal are skipped. Half of each is in sight, every token's own key "
      "among it.", order=lambda i, rows: range(i))
wrong("mask.filled with 0",
      "On the diagonal hidden scores are set to 0 or next to it, and exp of that is 1: a weight "
      "like any other.",
      fill=0.0)
wrong("mask.inverted", "On the diagonal the mask is the wrong way round: the past is hidden.",
      turn=True)
wrong("mask.inverted", "The mask is the wrong way round: the past is hidden, and where a whole "
      "tile is, -inf minus -inf gives NaN.", lambda q, k, v, block: past_hidden(q, k, v, block))
wrong("mask.none", "Nothing is hidden.", masked=False, order=lambda i, rows: range(rows))
wrong("tiles.diagonal not masked",
      "The tiles on the diagonal are not masked: within its block a token sees the future.",
      masked=False)
wrong("mask.diagonal hidden", "The token's own key is hidden too.", diagonal=0)
wrong("mask.diagonal hidden", "The token's own key is hidden too, with a large negative number.",
      diagonal=0, fill=-1e9)
wrong("mask.one step late", "Each token sees the one after it.", diagonal=2)
wrong("tiles.accumulator not rescaled",
      "The output so far is not rescaled when the maximum rises; l is. Both are sums of the same "
      "exponentials.", rescale_out=never)
wrong("tiles.l not rescaled",
      "l is not rescaled when the maximum rises; the output is. Both are sums of the same "
      "exponentials.", rescale=never)
wrong("tiles.nothing rescaled",
      "Nothing is rescaled when the maximum rises: later tiles then count too much.",
      rescale=never, rescale_out=never)
wrong("tiles.not divided", "The output is not divided by l.", end=lambda out, total: out)
wrong("scale.twice", "The scale is applied twice.", scale=lambda q: 1 / q.shape[-1])
wrong("scale.multiplied", "The scores are multiplied by the root.", scale=lambda q: 1 / root(q))
wrong("tiles.count", "The count is that of all tiles; those that were skipped do not count.",
      counted=lambda done, rows: rows * rows)
wrong("tiles.count", "The tiles on the diagonal are not counted.",
      counted=lambda done, rows: done - rows)
wrong("tiles.count", "These are the tiles that were skipped; those that were computed are asked "
      "for.", counted=lambda done, rows: rows * (rows - 1) // 2)
wrong("tiles.count", "That is half of all tiles. The diagonal's are computed as well.",
      counted=lambda done, rows: rows * rows // 2)
wrong("tiles.count", "That is half of the tiles that were computed.",
      counted=lambda done, rows: done // 2)
wrong("tiles.count", "The rows of tiles are counted, not the tiles.",
      counted=lambda done, rows: rows)
wrong("tiles.count", "The count is one too many.", counted=lambda done, rows: done + 1)
wrong("tiles.count", "The count is one too few.", counted=lambda done, rows: done - 1)
wrong("tiles.count", "Keys are counted, not tiles.", lambda q, k, v, block: (
    causal_tiles(q, k, v, block)[0],
    sum(min((i + 1) * block, len(q)) for i in range(math.ceil(len(q) / block)))))
wrong("tiles.count", "Scores are counted, not tiles.", lambda q, k, v, block: (
    causal_tiles(q, k, v, block)[0],
    sum(len(rows) * min((i + 1) * block, len(q)) for i, rows in enumerate(q.split(block)))))
wrong("tiles.count", "Block times block is counted for each tile; it is the tiles that are asked "
      "for.", lambda q, k, v, block: (
          lambda out, tiles: (out, tiles * block**2))(*causal_tiles(q, k, v, block)))
wrong("mask.in every tile", "Every tile is masked as the one on the diagonal is. Tiles of the "
      "past are in sight as a whole.", local=True)
wrong("mask.in every tile", "The queries' positions are counted from the beginning of their block, "
      "the keys' from that of the text: all beyond the first block is hidden.",
      lambda q, k, v, block: counted_from_the_block(q, k, v, block))
wrong("tiles.first only", "Only the first block of keys is looked at.",
      order=lambda i, rows: range(1))
wrong("tiles.first lost", "The first block of keys is left out.",
      order=lambda i, rows: range(min(i, 1), i + 1))
wrong("tiles.the future", "Each block of queries looks at its own block and those behind it, "
      "which are the future.", order=lambda i, rows: range(i, rows))
wrong("tiles.diagonal not masked", "The first tile of each row is masked. The one that the "
      "diagonal cuts is the last.", lambda q, k, v, block: masked_first(q, k, v, block))
wrong("tiles.own only", "Each block of queries sees its own block of keys only.",
      order=lambda i, rows: range(i, i + 1))
wrong("scale.missing", "The scores are not scaled.", scale=lambda q: 1.0)
wrong("tiles.whole table", "The whole table is made.",
      lambda q, k, v, block: (
          (q @ k.T * root(q)).masked_fill(
              torch.ones(len(q), len(q)).triu(1).bool(), -INF).softmax(-1) @ v,
          math.ceil(len(q) / block) * (math.ceil(len(q) / block) + 1) // 2))


def counted_from_the_block(q, k, v, block):
    """Query i of a block sees the keys 0 to i of the text."""
    place = torch.arange(len(q))
    hidden = place > (place % block)[:, None]
    rows = math.ceil(len(q) / block)
    scores = (q @ k.T * root(q)).masked_fill(hidden, -INF)
    return scores.softmax(-1) @ v, rows * (rows + 1) // 2


def past_hidden(q, k, v, block):
    """Right in nothing: the first block sees what follows, later ones divide nothing by nothing."""
    out, _ = causal_tiles(q[:block], k[:block], v[:block], block, turn=True)
    rows = math.ceil(len(q) / block)
    return F.pad(out, (0, 0, 0, len(q) - len(out)), value=math.nan), rows * (rows + 1) // 2


def masked_first(q, k, v, block):
    """Masks where only the first block of keys needs one: right for the first block of queries."""
    whole = (q @ k.T * root(q)).masked_fill(torch.ones(len(q), len(q)).triu(1).bool(), -INF)
    scores = q @ k.T * root(q)
    place = torch.arange(len(q)) // block
    seen = place <= place[:, None]
    mixed = torch.where(place == 0, whole, scores).masked_fill(~seen, -INF)
    rows = math.ceil(len(q) / block)
    return mixed.softmax(-1) @ v, rows * (rows + 1) // 2


# --- the cache -----------------------------------------------------------------------------------
def chunks(draw: Draw) -> list[Call]:
    pairs = ((5, 5), (1, 7), (3, 11), (draw.integer(2, 6), draw.integer(8, 13)))
    return [Call("", pair, says=f"{pair[0]} queries, {pair[1]} keys") for pair in pairs]


@exercise("fast.chunk_mask", chunks,
          hints=(
              "The queries are the *last* tokens of the sequence. At which position does query 0 "
              "stand?",
              "Query i stands at position k_len - q_len + i. It may look at keys 0 to there.",
              "`torch.ones(q_len, k_len).triu(k_len - q_len + 1).bool()`."))
def chunk_mask(q_len, k_len, late=1, start=lambda q_len, k_len: k_len - q_len,
               side=lambda mask: mask):
    return side(torch.ones(q_len, k_len).triu(start(q_len, k_len) + late).bool())

chunk_mask.wrong(
    "mask.top left",
    "The mask is aligned at the top left: query 0 is taken for token 0 and sees key 0 alone. With "
    "past tokens in the cache the queries are the *last* tokens.", start=lambda q_len, k_len: 0)
chunk_mask.wrong("mask.diagonal hidden", "The token's own key is hidden too.", late=0)
chunk_mask.wrong("mask.one step late", "Each token sees the one after it.", late=2)
chunk_mask.wrong("mask.inverted", "True should mean hidden; here it is what may be seen.",
                 side=torch.logical_not)
chunk_mask.wrong("mask.float", "The mask is made of numbers; True and False are asked for.",
                 side=lambda mask: mask.to(torch.get_default_dtype()))
chunk_mask.wrong("mask.none", "Nothing is hidden: that is right for one new token only.",
                 side=torch.zeros_like)
chunk_mask.wrong("mask.sign", "The mask is shifted to the left; more past moves it to the right.",
                 start=lambda q_len, k_len: q_len - k_len)
chunk_mask.wrong("mask.sign", "The mask is shifted by q_len. How long is the past?",
                 start=lambda q_len, k_len: q_len)
chunk_mask.wrong("mask.square", "There is a column for each query; there is one for each key.",
                 lambda q_len, k_len: torch.ones(q_len, q_len).triu(1).bool())
chunk_mask.wrong("mask.square", "The mask has a row for each key; there is one for each query.",
                 lambda q_len, k_len: torch.ones(k_len, k_len).triu(1).bool())
chunk_mask.wrong("mask.square", "The mask has a row for each key and a column for each query; it "
                 "is the other way round.",
                 lambda q_len, k_len: torch.ones(k_len, q_len).triu(1).bool(),
                 lambda q_len, k_len: chunk_mask(q_len, k_len).T)
chunk_mask.wrong(
    "mask.upside down", "The mask stands upside down: a mask of a row for each key was turned "
    "round.", lambda q_len, k_len: torch.ones(k_len, q_len).triu(1).bool().T)
chunk_mask.wrong("mask.new hidden", "Of the new tokens each sees itself only. It may see the new "
                 "ones before it as well.",
                 lambda q_len, k_len: (torch.arange(k_len) >= k_len - q_len)
                 & ~torch.eye(q_len, k_len).roll(k_len - q_len, 1).bool())
chunk_mask.wrong("mask.new hidden", "No new token is seen, not even by itself: the past alone is.",
                 lambda q_len, k_len: (torch.arange(k_len) >= k_len - q_len).expand(q_len, -1))
chunk_mask.wrong("mask.past hidden", "The past is hidden. It is what the cache is kept for.",
                 lambda q_len, k_len: chunk_mask(q_len, k_len)
                 | (torch.arange(k_len) < k_len - q_len))


def in_steps(draw: Draw) -> list[Call]:
    """A prompt, a chunk, one token; and two sequences on one and the same layer."""
    batch_size, past, num_heads, input_size = draw.sizes(4, 2, 11)
    hidden = num_heads * draw.choice((4, 6))
    weights = {}
    for name in "qkv":
        weights |= draw.linear(name, input_size, hidden)
    weights |= draw.linear("mix", hidden, hidden)
    init = (input_size, hidden, num_heads)

    def call(new, past, on=None, says="", **more):
        x = draw.normal(batch_size, new, input_size)
        cache = tuple(
            draw.normal(batch_size, num_heads, past, hidden // num_heads) for _ in "kv")
        args = (x, cache) if past else (x,)
        says = says or f"{new} new tokens, {past} in the cache"
        return Call("", args, init=init, weights=weights, on=on, says=says, **more)

    return [
        call(past, 0, says=f"prefill: {past} tokens, no cache"), call(4, past), call(1, past + 4),
        call(3, 0, "layer", says="one sequence"),
        call(5, 0, "layer", says="another sequence on the same layer, no cache"),
    ]


def heads_of(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def behind(old, new):
    return torch.cat([old, new], 2)


@exercise("fast.cache", in_steps, judge=with_past,
          hints=(
              "Keys and values of past tokens never change. What is needed of the past queries?",
              "Split q, k and v of the new tokens into heads; put the cached k and v in front of "
              "the new ones with torch.cat along the tokens' axis; return both, grown.",
              "There are now q_len queries and k_len keys: hide with chunk_mask(q_len, k_len). "
              "Then softmax, values, merge, mix. Keep nothing in self."))
class CachedAttention(nn.Module):
    grow = (behind, behind)
    kept = staticmethod(lambda old, new, grown: grown)
    hide = staticmethod(chunk_mask)
    merge = staticmethod(lambda out: out.transpose(1, 2).flatten(2))
    scaled, shares, mixed, order, values_from = True, False, True, (0, 1), 1
    by, returned, over = "head_size", ("k", "v"), -1

    def __init__(self, input_size, hidden, num_heads):
        super().__init__()
        self.q = nn.Linear(input_size, hidden)
        self.k = nn.Linear(input_size, hidden)
        self.v = nn.Linear(input_size, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.num_heads, self.own = num_heads, None

    def forward(self, x, cache=None):
        how = type(self)
        cache = self.own if self.shares and cache is None else cache
        q, k, v = (heads_of(layer(x), self.num_heads) for layer in (self.q, self.k, self.v))
        new = (k, v)
        if cache is not None:
            k, v = (g(old, fresh) for g, old, fresh in zip(
                how.grow, (cache[0], cache[self.values_from]), new, strict=True))
        size = q.shape[-1] * (self.num_heads if self.by == "hidden" else 1)
        scores = q @ k.mT * (size**-0.5 if self.scaled else 1.0)
        scores = scores.masked_fill(how.hide(q.shape[2], k.shape[2]), -INF)
        if self.over == "each":
            past = scores.shape[3] - x.shape[1]
            probs = torch.cat([part.softmax(-1) for part in scores.tensor_split([past], -1)], -1)
        else:
            probs = scores.softmax(self.over)
        out = how.merge(probs @ v)
        out = self.mix(out) if self.mixed else out
        grown = tuple({"q": q, "k": k, "v": v}[name] for name in self.returned)
        self.own = grown
        kept = tuple(how.kept(cache, new, grown)[i] for i in self.order)
        return out, kept

wrong = CachedAttention.wrong
wrong("mask.top left",
      "The mask is aligned at the top left (as is_causal=True is): the new tokens are taken for "
      "the first ones and see the beginning of the cache only.",
      hide=lambda q_len, k_len: torch.ones(q_len, k_len).triu(1).bool())
wrong("mask.none", "Nothing is hidden: within a chunk tokens see the future.",
      hide=lambda q_len, k_len: torch.zeros(q_len, k_len).bool())
wrong("mask.none", "Where there is a cache nothing is hidden. That is right for one new token; in "
      "a chunk tokens see the future.",
      hide=lambda q_len, k_len: chunk_mask(q_len, k_len) & (q_len == k_len))
wrong("mask.one step late", "Each token sees the one after it.",
      hide=lambda q_len, k_len: chunk_mask(q_len, k_len, late=2))
wrong("mask.top left", "The mask is aligned at the top left, and one step late.",
      hide=lambda q_len, k_len: torch.ones(q_len, k_len).triu(2).bool())
wrong("heads.scrambled merge", "The heads are merged by a reshape alone; transpose first.",
      merge=staticmethod(lambda out: out.reshape(len(out), out.shape[2], -1)))
wrong("softmax.dim", "The softmax runs over the queries. Use the last dimension.", over=-2)
wrong("softmax.dim", "The softmax runs over the heads. Use the last dimension.", over=1)
wrong("cache.no mix", "The output projection `mix` is missing.", mixed=False)
wrong("cache.values from k", "The cached keys are used as values, too.",
      grow=(behind, behind), values_from=0)
wrong("cache.not grown", "What is returned holds the new tokens only: the past is forgotten.",
      kept=lambda old, new, grown: new)
wrong("cache.not grown", "The old cache is handed back: the new tokens are forgotten.",
      kept=lambda old, new, grown: new if old is None else old)
wrong("cache.values not cached",
      "The keys are kept and the values are not: of the values only the new ones come back.",
      kept=lambda old, new, grown: (grown[0], new[1]))
wrong("cache.values not cached", "The keys come back twice, in the values' place as well.",
      kept=lambda old, new, grown: (grown[0], grown[0]))
wrong("cache.unused", "The cache is not looked at: the new tokens see each other only.",
      grow=(lambda old, new: new, lambda old, new: new))
wrong("cache.unused", "The cache is returned grown, but not looked at: only new tokens are seen.",
      grow=(lambda old, new: new, lambda old, new: new),
      kept=lambda old, new, grown: new if old is None else tuple(map(behind, old, new)))
wrong("cache.values not cached", "The values of past tokens count as 0: only new ones are used.",
      grow=(behind, lambda old, new: behind(torch.zeros_like(old), new)))
wrong("cache.values not cached", "The values of past tokens count as 0, but come back as they are.",
      grow=(behind, lambda old, new: behind(torch.zeros_like(old), new)),
      kept=lambda old, new, grown: new if old is None else tuple(map(behind, old, new)))
wrong("cache.keys not cached", "The keys of past tokens count as 0: past tokens are seen, all "
      "alike.", grow=(lambda old, new: behind(torch.zeros_like(old), new), behind))
wrong("cache.two softmaxes", "Past and new keys have a softmax each, and the results are added. "
      "There is one softmax over all keys.", over="each")
wrong("cache.wrong end", "The new tokens are put in front of the old ones.",
      grow=(lambda old, new: torch.cat([new, old], 2),) * 2)
wrong("cache.wrong end", "The new values are put in front of the old ones; keys are not.",
      grow=(behind, lambda old, new: torch.cat([new, old], 2)))
wrong("cache.wrong end", "The new keys are put in front of the old ones; values are not.",
      grow=(lambda old, new: torch.cat([new, old], 2), behind))
wrong("cache.shared",
      "A second sequence sees the first one: the cache is kept in the layer. Each sequence has its "
      "own, and the caller holds it.", shares=True)
wrong("cache.order", "Values and keys come back swapped; k is the first.", order=(1, 0))
wrong("scale.missing", "The scores are not scaled.", scaled=False)
wrong("scale.hidden", "The scores are divided by the root of hidden, not of head_size.",
      by="hidden")
wrong("mask.diagonal hidden", "The token's own key is hidden too.",
      hide=lambda q_len, k_len: chunk_mask(q_len, k_len, late=0))
wrong("cache.queries", "The queries come back where the keys belong.", returned=("q", "v"))
wrong("cache.queries", "The queries come back where the values belong.", returned=("k", "q"))


# --- generation ----------------------------------------------------------------------------------
def prompts(draw: Draw) -> list[Call]:
    calls = []
    for batch_size, seq_len, count in ((1, 3, 3), (2, 4, 3), (3, 5, 1)):
        model, ids, text = gpt2_and_ids(draw, 2, batch_size, seq_len)
        says = f"{text}, {count} new"
        calls.append(Call("", (model, ids, count), work=True, says=says))
    return calls


def newest(ids):
    return ids[:, -1:]


@exercise("fast.generate", prompts, judge=little_work,
          hints=(
              "The prompt goes through the model once. What has to go through it for each token "
              "after that?",
              "`out = model(ids, use_cache=True)` gives `out.logits` and `out.past_key_values`. "
              "The next call is `model(new, past_key_values=...)` with the newest token alone.",
              "Take `out.logits[:, -1].argmax(-1, keepdim=True)`, cat it to ids, and pass it on "
              "with the cache; the model counts positions by itself."))
@torch.no_grad()
def generate_cached(model, ids, count, step=newest, pick=lambda logits: logits[:, -1],
                    more=0, cut=lambda ids, new: ids, caches=True, positions=None):
    start, cache, feed = ids.shape[1], None, ids
    for _ in range(count + more):
        extra = {"position_ids": positions(feed)} if positions and cache is not None else {}
        out = model(feed, past_key_values=cache, use_cache=True, **extra)
        cache = out.past_key_values if caches else None
        ids = torch.cat([ids, pick(out.logits).argmax(-1, keepdim=True)], 1)
        feed = step(ids)
    return cut(ids, start)

wrong = generate_cached.wrong
wrong("generate.position restarts",
      "The positions restart: each new token is given position 0, whatever is in the cache.",
      positions=lambda feed: torch.zeros_like(feed))
wrong("generate.prompt again",
      "All tokens are passed on with the cache each time, so that those that are in it come twice.",
      step=lambda ids: ids)
wrong("generate.cache thrown away",
      "The newest token goes through the model alone, without the cache: it knows nothing of the "
      "prompt.", caches=False)
wrong("generate.first position", "The logits of the first position are taken; the last one "
      "predicts what comes next.", pick=lambda logits: logits[:, 0])
wrong("generate.prompt lost", "Only the new tokens come back; the prompt belongs in front.",
      cut=lambda ids, start: ids[:, start:])
wrong("generate.prompt lost", "Only the last token comes back.", cut=lambda ids, start: ids[:, -1:])
wrong("generate.first lost", "The first new token, which the prompt's own logits give, is "
      "passed on but not kept.", lambda model, ids, count: torch.cat(
          [ids, generate_cached(model, ids, count + 1)[:, ids.shape[1] + 1 :]], 1))
wrong("generate.one for all", "All sequences get the token of the first; each has its own.",
      pick=lambda logits: logits[:1, -1].expand(len(logits), -1))
wrong("generate.one for all", "All sequences get the token of the last; each has its own.",
      pick=lambda logits: logits[-1:, -1].expand(len(logits), -1))
wrong("generate.order", "New tokens are put in front; they come last.",
      cut=lambda ids, start: torch.cat([ids[:, start:].flip(1), ids[:, :start]], 1))
wrong("generate.averaged", "The logits of all positions are averaged; the last one predicts what "
      "comes next.", pick=lambda logits: logits.mean(1))
wrong("generate.first position", "The logits of the last position but one are taken; the last one "
      "predicts what comes next.", pick=lambda logits: logits[:, max(-2, -logits.shape[1])])
wrong("generate.least probable", "The least probable token is taken.",
      pick=lambda logits: -logits[:, -1])
wrong("generate.prompt again",
      "Two tokens are passed on each time, one of which is in the cache already.",
      step=lambda ids: ids[:, -2:])
wrong("generate.count", "There is one token too many.", more=1)
wrong("generate.count", "There is one token too few.", more=-1)
wrong("generate.no cache", "The prompt goes through the model again for each token.",
      caches=False, step=lambda ids: ids)


# --- one product for three -----------------------------------------------------------------------
def three_layers(draw: Draw) -> Call:
    batch_size, seq_len, input_size, hidden = draw.sizes(4, 2, 13)
    layers = {k: w for n in "qkv" for k, w in draw.linear(n, input_size, hidden).items()}
    says = f"{batch_size} sequences of {seq_len} tokens, input_size {input_size}, hidden {hidden}"
    return Call("", (draw.normal(batch_size, seq_len, input_size), layers), work=True, says=says)


@exercise("fast.fused", three_layers, judge=one_product,
          hints=(
              "Three layers read the same x. What is [W_q; W_k; W_v], one below the other, by x?",
              "torch.cat the weights along axis 0, and the biases too; one F.linear gives [.., 3 * "
              "hidden].",
              "`F.linear(x, weight, bias).chunk(3, dim=-1)` splits it into q, k and v."))
def fused_qkv(x, layers, order="qkv", bias=True, cut=lambda y: y.chunk(3, -1)):
    weight = torch.cat([layers[f"{n}.weight"] for n in order])
    biases = torch.cat([layers[f"{n}.bias"] for n in order])
    return tuple(cut(F.linear(x, weight, biases if bias else None)))

wrong = fused_qkv.wrong
wrong("fused.order", "The three parts come in another order than q, k, v.", order="kqv")
wrong("fused.order", "The three parts come in another order than q, k, v.", order="vkq")
wrong("fused.order", "The three parts come in another order than q, k, v.", order="qvk")
wrong("fused.bias lost", "The biases are lost.", bias=False)
wrong("fused.bias", "All three get the bias of q.", lambda x, layers: fused_qkv(x, {
    **layers, "k.bias": layers["q.bias"], "v.bias": layers["q.bias"]}))
wrong("fused.bias", "The biases are added twice.", lambda x, layers: fused_qkv(x, {
    name: 2 * w if name.endswith("bias") else w for name, w in layers.items()}))
wrong("fused.interleaved", "q, k and v are taken from every third feature; they are blocks.",
      cut=lambda y: [y[..., i::3] for i in range(3)])
wrong("fused.cut along the tokens", "The result is split along the tokens, not the features.",
      cut=lambda y: y.reshape(y.shape[0], 3, y.shape[1], -1).unbind(1))
wrong("fused.cut along the tokens", "The result is split along the tokens, not the features.",
      cut=lambda y: y.chunk(3, 1))
wrong("fused.interleaved", "The weights are put together row by row, one of q, one of k, one of v. "
      "They are blocks.", lambda x, layers: F.linear(
          x, torch.stack([layers[f"{n}.weight"] for n in "qkv"], 1).flatten(0, 1),
          torch.stack([layers[f"{n}.bias"] for n in "qkv"], 1).flatten()).chunk(3, -1))
wrong("fused.cut along the tokens", "The result is split along the batch, not the features.",
      cut=lambda y: y.chunk(3, 0))
wrong("fused.not cut", "The result is one tensor; it was to be split into q, k and v.",
      lambda x, layers: torch.cat(fused_qkv(x, layers), -1))
wrong("fused.three products", "There are three products.", lambda x, layers: tuple(
    F.linear(x, layers[f"{n}.weight"], layers[f"{n}.bias"]) for n in "qkv"))


# --- backwards in tiles --------------------------------------------------------------------------
def finished(draw: Draw) -> list[Call]:
    calls = []
    for block, spread in ((8, 1.0), (16, 1.5), (24, 1.75), (20, 1.0)):
        few = block == FEW
        q_len, k_len = draw.choice((11, 13) if few else (61, 77)), draw.choice(KEYS[few])
        head_size = draw.choice((2, 3))
        q, k, v = (draw.normal(n, head_size, scale=spread) for n in (q_len, k_len, k_len))
        scores = q @ k.T * root(q)
        args = (draw.normal(q_len, head_size), q, k, v, scores.softmax(-1) @ v,
                scores.logsumexp(-1), block)
        says = f"{q_len} queries, {k_len} keys, head_size {head_size}, blocks of {block}"
        calls.append(Call("", args, work=not few, says=says))
    return calls


def put_in(old, new):
    return old + new


@exercise("fast.tiled_backward", finished, judge=partial(in_tiles, q=1),
          hints=(
              "P is not kept; a tile of it is exp(scores - logsumexp). And the softmax's row term "
              "is a sum over grad_out * out, which you have.",
              "For each tile: P, then grad_P = grad_out_block @ v_block.T, then grad_S = P * "
              "(grad_P - D), as in lesson 06.",
              "Each tile adds P.T @ grad_out to grad_v, grad_S @ k to grad_q and grad_S.T @ q to "
              "grad_k, the last two scaled."))
def tiled_backward(grad_out, q, k, v, out, logsumexp, block, row_term=lambda g, out: (g * out),
                   scale=root, add=put_in, exponent=lambda s, lse: s - lse,
                   cut=lambda length, block: length, through=torch.mul):
    grads = [torch.zeros_like(t) for t in (q, k, v)]
    term = row_term(grad_out, out).sum(-1, keepdim=True)
    for start in starts(cut(len(q), block), block):
        mine = slice(start, start + block)
        for first in starts(cut(len(k), block), block):
            theirs = slice(first, first + block)
            scores = q[mine] @ k[theirs].T * root(q)
            probs = exponent(scores, logsumexp[mine, None]).exp()
            grad_scores = through(probs, grad_out[mine] @ v[theirs].T - term[mine]) * scale(q)
            grads[0][mine] = add(grads[0][mine], grad_scores @ k[theirs])
            grads[1][theirs] = add(grads[1][theirs], grad_scores.T @ q[mine])
            grads[2][theirs] = add(grads[2][theirs], probs.T @ grad_out[mine])
    return tuple(grads)

wrong = tiled_backward.wrong
wrong("backward.row term missing", "The softmax's row term is missing.",
      row_term=lambda g, out: torch.zeros_like(g))
wrong("backward.row term", "The row term is the sum of grad_out * out; here it is of grad_out "
      "alone.", row_term=lambda g, out: g)
wrong("backward.row term", "The row term is the sum of grad_out * out; here it is of out alone.",
      row_term=lambda g, out: out)
wrong("backward.row term", "The row term is the sum of grad_out * out; here it is of out squared.",
      row_term=lambda g, out: out * out)
wrong("backward.row term", "The row term is the sum of grad_out * out; here grad_out is squared.",
      row_term=lambda g, out: g * g)
wrong("backward.row term", "The row term is taken away twice.",
      row_term=lambda g, out: 2 * g * out)
wrong("backward.row term", "The row term is a mean; it is a sum.",
      row_term=lambda g, out: g * out / out.shape[-1])
wrong("backward.row term", "The row term is added; it is taken away.",
      row_term=lambda g, out: -g * out)
wrong("backward.row term", "The row term is summed over the queries; each query has its own.",
      lambda g, q, k, v, out, lse, block: tiled_backward(
          g, q, k, v, out, lse, block, row_term=lambda a, b: (a * b).sum(0)[:1].expand(len(a), 1)))
wrong("backward.P missing", "The bracket is right; the probabilities in front of it are missing.",
      through=lambda probs, bracket: bracket)
wrong("backward.P twice", "The scores' gradient is multiplied by the probabilities twice.",
      through=lambda probs, bracket: probs * probs * bracket)
wrong("backward.row term of the tile", "The row term is taken of each tile alone. It is of the "
      "whole row, and grad_out * out has it.",
      lambda g, q, k, v, out, lse, block: tile_terms(g, q, k, v, lse, block))
wrong("backward.values from scores", "grad_v is made of the scores' gradient; it is made of the "
      "probabilities.", lambda g, q, k, v, out, lse, block: other_values(
          g, q, k, v, out, lse, block))
wrong("scale.lost", "The scale is lost on the way back.", scale=lambda q: 1.0)
wrong("scale.twice", "The scores were made anew with the scale applied twice; logsumexp knows it "
      "once.", lambda g, q, k, v, out, lse, block: twice_scaled(g, q, k, v, out, lse, block))
wrong("scale.missing", "The scores were made anew without the scale; logsumexp knows it.",
      lambda g, q, k, v, out, lse, block: twice_scaled(g, q, k, v, out, lse, block, times=0))
wrong("scale.twice", "The scale is applied twice on the way back.",
      scale=lambda q: 1 / q.shape[-1])
wrong("backward.overwritten",
      "Tiles overwrite what others wrote. All tiles of a row, and of a column, are added.",
      add=lambda old, new: new)
wrong("backward.not normalised",
      "The exponentials are not normalised: exp(scores - logsumexp) gives probabilities.",
      exponent=lambda s, lse: s)
wrong("backward.softmax of the tile",
      "Each tile is normalised by itself; the row's logsumexp is of all its tiles.",
      exponent=lambda s, lse: s.log_softmax(-1))
wrong("tiles.last tile", "The last, shorter tiles are lost.",
      cut=lambda length, block: length // block * block)
wrong("tiles.last tile", "The last, shorter tiles of keys are lost.",
      lambda g, q, k, v, out, lse, block: without_tiles(g, q, k, v, out, lse, block, False))
wrong("tiles.last tile", "The last, shorter tiles of queries are lost.",
      lambda g, q, k, v, out, lse, block: without_tiles(g, q, k, v, out, lse, block, True))
wrong("backward.values from out", "grad_v is made of out; it is made of grad_out.",
      lambda g, q, k, v, out, lse, block: (
          *tiled_backward(g, q, k, v, out, lse, block)[:2],
          tiled_backward(out, q, k, v, out, lse, block)[2]))
wrong("backward.order", "The gradients come in another order than q, k, v.",
      lambda *args: tuple(tiled_backward(*args)[i] for i in (1, 0, 2)),
      lambda *args: tuple(tiled_backward(*args)[i] for i in (2, 1, 0)))


def without_tiles(grad_out, q, k, v, out, logsumexp, block, of_queries):
    """The gradients where the last tile of queries, or of keys, gives none."""
    n = len(q) // block * block if of_queries else len(q)
    m = len(k) if of_queries else len(k) // block * block
    found = tiled_backward(grad_out[:n], q[:n], k[:m], v[:m], out[:n], logsumexp[:n], block)
    pairs = zip(found, (q, k, v), strict=True)
    return tuple(F.pad(g, (0, 0, 0, len(t) - len(g))) for g, t in pairs)


def tile_terms(grad_out, q, k, v, logsumexp, block):
    grads = [torch.zeros_like(t) for t in (q, k, v)]
    for a in starts(len(q), block):
        for b in starts(len(k), block):
            mine, theirs = slice(a, a + block), slice(b, b + block)
            probs = (q[mine] @ k[theirs].T * root(q) - logsumexp[mine, None]).exp()
            grad = grad_out[mine] @ v[theirs].T
            grad = probs * (grad - (probs * grad).sum(-1, True)) * root(q)
            grads[0][mine] += grad @ k[theirs]
            grads[1][theirs] += grad.T @ q[mine]
            grads[2][theirs] += probs.T @ grad_out[mine]
    return tuple(grads)


def twice_scaled(grad_out, q, k, v, out, logsumexp, block, times=2):
    probs = (q @ k.T * root(q) ** times - logsumexp[:, None]).exp()
    grad = probs * (grad_out @ v.T - (grad_out * out).sum(-1, True)) * root(q)
    return grad @ k, grad.T @ q, probs.T @ grad_out


def other_values(grad_out, q, k, v, out, logsumexp, block):
    probs = (q @ k.T * root(q) - logsumexp[:, None]).exp()
    grad = probs * (grad_out @ v.T - (grad_out * out).sum(-1, True)) * root(q)
    return grad @ k, grad.T @ q, grad.T @ grad_out


def whole_backward(grad_out, q, k, v, out, logsumexp, block):
    """Right, with the whole table in memory."""
    probs = (q @ k.T * root(q)).softmax(-1)
    grad_scores = probs * (grad_out @ v.T - (grad_out * out).sum(-1, True)) * root(q)
    return grad_scores @ k, grad_scores.T @ q, probs.T @ grad_out


wrong("tiles.whole table", "The whole table is made.", whole_backward)
