"""Every number the training depends on, in one place."""

from dataclasses import dataclass

VOCAB_SIZE = 10_240  # the first 10,239 ids of GPT-2's BPE, then <|endoftext|>
END_OF_TEXT = VOCAB_SIZE - 1
NUM_POSITIONS = 256
BATCH_TOKENS = 2_048
STORY_SHARE = 0.03  # of the text rows; the rest are book pages
TEXT_POSITIONS_IN_LOSS = 1 / 3  # the softmax over the vocabulary dominates the cost
COPY_POSITIONS_IN_LOSS = 1 / 2
DATA_SEED = 2024


@dataclass(frozen=True)
class Size:
    """One model of the family."""

    num_layers: int
    num_heads: int
    hidden: int
    learning_rate: float
    seed: int


@dataclass(frozen=True)
class Phase:
    """A stretch of training; it ends at ``max_tokens``, or once its heads are strong enough.

    ``until_previous`` and ``until_prefix`` are the scores of ``heads.head_scores`` that end the
    phase early, never before ``min_tokens``.
    """

    name: str
    copy_share: float  # share of the rows that are copy rows
    min_tokens: int
    max_tokens: int
    until_previous: float | None = None
    until_prefix: float | None = None
    decay: bool = False  # the learning rate falls to 5 % in a straight line


SIZES = {
    "tiny": Size(num_layers=2, num_heads=2, hidden=64, learning_rate=4e-3, seed=10),
    "small-on-board": Size(num_layers=2, num_heads=3, hidden=96, learning_rate=3e-3, seed=11),
    "base-on-board": Size(num_layers=3, num_heads=4, hidden=128, learning_rate=3e-3, seed=13),
}

PHASES = (
    Phase("text", 0.25, min_tokens=2_000_000, max_tokens=9_000_000, until_previous=0.15),
    Phase(
        "copy",
        0.5,
        min_tokens=1_000_000,
        max_tokens=5_000_000,
        until_previous=0.4,
        until_prefix=0.5,
    ),
    Phase("anneal", 0.1, min_tokens=0, max_tokens=3_000_000, decay=True),
)
