"""Every number the training depends on, in one place."""

from dataclasses import dataclass

VOCAB_SIZE = 10_240  # the first 10,239 ids of GPT-2's BPE, then <|endoftext|>
SMALL_VOCAB_SIZE = 2_048  # the first 2,047 of them: each is frequent, so heads form sooner
NUM_POSITIONS = 256
BATCH_TOKENS = 2_048
STORY_SHARE = 0.03  # of the text rows; the rest are book pages
DATA_SEED = 2024


@dataclass(frozen=True)
class Size:
    """One model of the family."""

    num_layers: int
    num_heads: int
    hidden: int
    seed: int
    grown_from: str | None = None  # the smaller model whose weights it starts with
    vocab_size: int = VOCAB_SIZE
    sines: bool = True  # positions start as sines and cosines, else as random numbers


@dataclass(frozen=True)
class Phase:
    """A stretch of training."""

    name: str
    copy_share: float  # share of the rows that are copy rows
    max_tokens: int
    learning_rate: float  # after a warm-up
    guide: bool = False  # show two heads where to look, see guide.py
    decay: str = ""  # how the learning rate falls: in a "line" to 5 %, as a "cosine" to 10 %
    seq_len: int = NUM_POSITIONS
    max_segment: int = NUM_POSITIONS // 3  # of a copy row
    max_gap: int = 12  # of a copy row
    text_in_loss: float = 1 / 3  # of the positions; the softmax dominates the cost
    copies_in_loss: float = 1 / 2
    half: bool = False  # products in bfloat16, which is twice as fast
    kept_at: tuple[int, ...] = ()  # numbers of tokens whose weights are kept as well


SIZES = {
    "tiny": Size(num_layers=2, num_heads=2, hidden=64, seed=10),
    "small-on-board": Size(num_layers=2, num_heads=3, hidden=96, seed=11),
    "base-on-board": Size(
        num_layers=4, num_heads=3, hidden=96, seed=13, grown_from="small-on-board"
    ),
    "growing": Size(
        num_layers=2, num_heads=4, hidden=128, seed=14, vocab_size=SMALL_VOCAB_SIZE, sines=False
    ),
    "large-on-board": Size(num_layers=4, num_heads=4, hidden=128, seed=15, grown_from="growing"),
}

# What the two models without a guide have in common: short rows, every position in the loss.
FORM = {
    "learning_rate": 3e-3,
    "decay": "cosine",
    "seq_len": 128,
    "max_segment": 26,
    "max_gap": 8,
    "text_in_loss": 1.0,
    "copies_in_loss": 1.0,
    "half": True,
}

PHASES = {
    "tiny": (
        Phase("text", 0.25, 1_000_000, 3e-3),
        Phase("guide", 0.5, 1_500_000, 3e-3, guide=True),
        Phase("anneal", 0.1, 4_000_000, 3e-3, decay="line"),
    ),
    "small-on-board": (
        Phase("text", 0.25, 2_000_000, 3e-3),
        Phase("guide", 0.5, 1_500_000, 3e-3, guide=True),
        Phase("anneal", 0.2, 4_000_000, 3e-3, decay="line"),
    ),
    "base-on-board": (Phase("grow", 0.15, 4_500_000, 2e-3, decay="line"),),
    "growing": (
        Phase("text", 0.25, 9_000_000, **FORM, kept_at=(1_000_000, 6_000_000, 9_000_000)),
        Phase("copies", 0.5, 6_000_000, **FORM, kept_at=(9_500_000,)),
    ),
    "large-on-board": (
        Phase("grow", 0.15, 10_000_000, 2e-3, decay="line", text_in_loss=1.0, half=True),
    ),
}


def phases(name: str) -> tuple[Phase, ...]:
    """What the model ``name`` went through, in order, with what it was grown from."""
    source = SIZES[name].grown_from
    return (*(phases(source) if source else ()), *PHASES[name])
