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
    seed: int
    grown_from: str | None = None  # the shallower model whose weights it starts with


@dataclass(frozen=True)
class Phase:
    """A stretch of training."""

    name: str
    copy_share: float  # share of the rows that are copy rows
    max_tokens: int
    learning_rate: float  # after a warm-up
    guide: bool = False  # show two heads where to look, see guide.py
    decay: bool = False  # the learning rate falls to 5 % in a straight line


SIZES = {
    "tiny": Size(num_layers=2, num_heads=2, hidden=64, seed=10),
    "small-on-board": Size(num_layers=2, num_heads=3, hidden=96, seed=11),
    "base-on-board": Size(
        num_layers=4, num_heads=3, hidden=96, seed=13, grown_from="small-on-board"
    ),
}

PHASES = {
    "tiny": (
        Phase("text", 0.25, 1_000_000, 3e-3),
        Phase("guide", 0.5, 1_500_000, 3e-3, guide=True),
        Phase("anneal", 0.1, 4_000_000, 3e-3, decay=True),
    ),
    "small-on-board": (
        Phase("text", 0.25, 2_000_000, 3e-3),
        Phase("guide", 0.5, 1_500_000, 3e-3, guide=True),
        Phase("anneal", 0.2, 4_000_000, 3e-3, decay=True),
    ),
    "base-on-board": (Phase("grow", 0.15, 4_500_000, 2e-3, decay=True),),
}


def phases(name: str) -> tuple[Phase, ...]:
    """What the model ``name`` went through, in order, with what it was grown from."""
    source = SIZES[name].grown_from
    return (*(phases(source) if source else ()), *PHASES[name])
