"""What lesson 07 judges beyond values: the work that was done, counted. Never seconds."""

from __future__ import annotations

import re
from dataclasses import replace
from math import ceil, prod

from autograder.course.asking import Finding, Sight
from autograder.course.calls import Call, Outcome
from autograder.judging.compare import compare

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot")
# Known mistakes whose values are right: only the work tells them, so they name no other's values.
OF_WORK = ("tiles.whole", "tiles.strip", "tiles.library", "tiles.hidden computed",
           "online.whole row", "fused.three products", "generate.no cache")  # fmt: skip
TWO_SIZES = re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)")


def compared(sight: Sight) -> list[Finding]:
    """The usual judge, on values."""
    return compare(replace(sight, mistakes=[m for m in sight.mistakes if m[0] not in OF_WORK]))


def row_in_blocks(sight: Sight) -> list[Finding]:
    """As usual on scores and a block size; then no tensor may be half as large as the scores."""
    found = compared(sight)
    for call, got in zip(sight.calls, sight.outcomes, strict=True):
        large = largest(got)
        if not found and call.work and prod(large) * 2 > call.args[0].numel():
            text = (
                f"The values are right, but a tensor of shape {list(large)} is made: whole rows "
                "at once. Look at one block of keys at a time."
            )
            return [Finding("online.whole row", "wrong", text, tried=call.says)]
    return found


def in_tiles(sight: Sight, *, q: int = 0, causal: bool = False) -> list[Finding]:
    """As usual on (..., q, k, v, ..., block), q the place of the queries; then by what was made.

    Nothing may be as large as half a strip of block x k_len scores, a library may not do the
    work, and with `causal` the products may be no more than those of the tiles in sight.
    """
    found = compared(sight)
    if causal and found and found[0].check == "tiles.count":  # too many, for they were computed
        pairs = zip(sight.calls, sight.outcomes, strict=True)
        return next(filter(None, (_hidden_tiles(*pair) for pair in pairs)), found)
    for call, got in zip(sight.calls, sight.outcomes, strict=True):
        if found or not call.work:
            continue
        found = found or _by_library(call, got) or _too_large(call, got, q)
        if causal:
            found = found or _hidden_tiles(call, got)
    return found


def one_product(sight: Sight) -> list[Finding]:
    """As usual; then there must be one matrix product and no more."""
    found = compared(sight)
    for call, got in zip(sight.calls, sight.outcomes, strict=True):
        count = sum(got.work.get("kernels", {}).get(name, 0) for name in PRODUCTS)
        if not found and call.work and count > 1:
            text = (
                f"The values are right, and there are {count} matrix products. Put the three "
                "weights one below the other, multiply once, and split the result."
            )
            return [Finding("fused.three products", "wrong", text, tried=call.says)]
    return found


def little_work(sight: Sight) -> list[Finding]:
    """As usual; then not much more may be multiplied than where each token is read once."""
    found = compared(sight)
    for call, got, wanted in zip(sight.calls, sight.outcomes, sight.expected, strict=True):
        most = 1.5 * wanted.work.get("flops", 0)
        if not found and call.work and got.work.get("flops", 0) > most:
            text = (
                "The tokens are right, but the prompt goes through the model again for each new "
                "one: your code multiplies "
                f"{got.work['flops'] / wanted.work['flops']:.1f} times as much as one that reads "
                "each token once. Keep `past_key_values`, and pass on the new token only."
            )
            return [Finding("generate.no cache", "wrong", text, tried=call.says)]
    return found


def with_past(sight: Sight) -> list[Finding]:
    """As usual on (x, cache); errors that come of more keys than queries are told as such."""
    for call, got in zip(sight.calls, sight.outcomes, strict=True):
        past = call.args[1][0].shape[2] if len(call.args) > 1 and call.args[1] else 0
        new = call.args[0].shape[1]
        message = got.error["message"] if got.error else ""
        sizes = TWO_SIZES.search(message)
        check = text = ""
        if past and sizes and {int(sizes[1]), int(sizes[2])} == {new, new + past}:
            check = "mask.not for the past"
            text = (
                f"With a cache of {past} tokens and {new} new ones, scores are {new} x "
                f"{new + past}. A mask of {new} x {new} does not fit them."
            )
        elif past and "batch2 tensor" in message and re.search(rf"got: \[\d+, {new}\]", message):
            check = "cache.values not cached"
            text = (
                f"There are weights for {new + past} keys, but only {new} values: those of the "
                "past tokens are missing. Keep k *and* v."
            )
        if check:
            line, statement = got.error["line"], got.error["statement"]
            return [Finding(check, "wrong", text, line, statement, tried=call.says)]
    return compare(sight)


# --- what was made -------------------------------------------------------------------------------
def largest(got: Outcome) -> tuple[int, ...]:
    """The shape of the largest tensor that was made."""
    made = got.work.get("made") or [("", (0,), 0)]
    return made[0][1]


def _too_large(call: Call, got: Outcome, q: int) -> list[Finding]:
    (q_len, _), (k_len, _), block = call.args[q].shape, call.args[q + 1].shape, call.args[-1]
    shape = largest(got)
    if prod(shape) * 2 <= block * min(q_len, k_len):
        return []
    whole = prod(shape) * 10 >= q_len * k_len * 9
    check = "tiles.whole table" if whole else "tiles.strip"
    what = "a whole table" if whole else "more than a tile"
    text = (
        f"The values are right, but a {got.work['made'][0][0]} tensor of shape {list(shape)} is "
        f"made on the way: {what}, for {q_len} queries, {k_len} keys and blocks of {block}. One "
        "tile of scores at a time is all that may exist."
    )
    return [Finding(check, "wrong", text, tried=call.says)]


def _by_library(call: Call, got: Outcome) -> list[Finding]:
    if not any("scaled_dot_product" in name for name in got.work.get("kernels", ())):
        return []
    text = "The values are right, but PyTorch's own fused attention computed them. Write the tiles."
    return [Finding("tiles.library", "wrong", text, tried=call.says)]


def _hidden_tiles(call: Call, got: Outcome) -> list[Finding]:
    seq_len, head_size = call.args[0].shape
    block = call.args[-1]
    rows = ceil(seq_len / block)
    most = rows * (rows + 1) // 2 * block * block
    products, exponentials = 4 * head_size * most, most + block * rows * (rows + 1)
    flops = got.work.get("flops", 0)
    # A tile's `logsumexp` and its weights take the exponentials twice: where all that must be
    # multiplied is multiplied, and no more, nothing hidden is computed. Sums of products that are
    # no matrix products have no flops, and are known by their exponentials alone.
    sizes = [min(block, seq_len - start) for start in range(0, seq_len, block)]
    in_sight = sum(size * sum(sizes[: i + 1]) for i, size in enumerate(sizes))
    if 0.9 * 4 * head_size * in_sight <= flops <= 1.1 * products:
        return []
    if flops <= 1.1 * products and got.work.get("exponentials", 0) <= 1.1 * exponentials:
        return []
    text = (
        "The output is right, but tiles that lie wholly in the future are computed and then "
        "masked. Half of the work can be left out: stop at the diagonal."
    )
    return [Finding("tiles.hidden computed", "wrong", text, tried=call.says)]
