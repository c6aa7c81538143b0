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
    anneal_rate: float  # where the learning rate starts its fall
    text_tokens: int  # in the phase "text"
    guide_tokens: int  # in the phase "guide"
    anneal_tokens: int  # in the phase "anneal"
    seed: int


@dataclass(frozen=True)
class Phase:
    """A stretch of training."""

    name: str
    copy_share: float  # share of the rows that are copy rows
    max_tokens: int
    guide: bool = False  # show two heads where to look, see guide.py
    decay: bool = False  # the learning rate falls to 5 % in a straight line


SIZES = {
    "tiny": Size(
        num_layers=2,
        num_heads=2,
        hidden=64,
        learning_rate=3e-3,
        anneal_rate=3e-3,
        text_tokens=1_000_000,
        guide_tokens=1_500_000,
        anneal_tokens=2_500_000,
        seed=10,
    ),
    "small-on-board": Size(
        num_layers=2,
        num_heads=3,
        hidden=96,
        learning_rate=3e-3,
        anneal_rate=3e-3,
        text_tokens=2_000_000,
        guide_tokens=1_500_000,
        anneal_tokens=4_000_000,
        seed=11,
    ),
    "base-on-board": Size(
        num_layers=3,
        num_heads=4,
        hidden=128,
        learning_rate=3e-3,
        anneal_rate=2e-3,
        text_tokens=1_000_000,
        guide_tokens=1_750_000,
        anneal_tokens=4_500_000,
        seed=13,
    ),
}


def phases(size: Size) -> tuple[Phase, ...]:
    """What ``size`` goes through, in order."""
    return (
        Phase("text", 0.25, size.text_tokens),
        Phase("guide", 0.5, size.guide_tokens, guide=True),
        Phase("anneal", 0.2, size.anneal_tokens, decay=True),
    )
