"""Rows of token ids to train on: pages of text, and copy rows.

A copy row repeats one segment inside random tokens, at uneven distances. A continuation can only
be told by finding the earlier copy by its content, which is what an induction head does
(Olsson et al. 2022, "In-context Learning and Induction Heads").
"""

import numpy as np

from .recipe import COPY_POSITIONS_IN_LOSS, END_OF_TEXT, STORY_SHARE, TEXT_POSITIONS_IN_LOSS
from .text import Corpus

MIN_SEGMENT = 6
MAX_GAP = 12


def text_row(corpus: Corpus, seq_len: int, rng: np.random.Generator) -> np.ndarray:
    """A page of a book from anywhere, or, now and then, stories from the start of one."""
    if rng.random() < STORY_SHARE:
        starts = corpus.story_starts[corpus.story_starts < len(corpus.stories) - seq_len]
        start = rng.choice(starts)
        return corpus.stories[start : start + seq_len]
    start = rng.integers(0, len(corpus.books) - seq_len)
    return corpus.books[start : start + seq_len]


def copy_row(
    corpus: Corpus, seq_len: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """A copy row and, position by position, whether its token can be told from an earlier copy.

    Returns:
        ids [seq_len] and told [seq_len], bool. The segment is random ids or a piece of a book,
        by even chances.
    """
    length = int(rng.integers(MIN_SEGMENT, seq_len // 3))
    segment = rng.integers(0, END_OF_TEXT, length)
    if rng.random() < 0.5:
        start = rng.integers(0, len(corpus.books) - length)
        segment = corpus.books[start : start + length]
    ids = rng.integers(0, END_OF_TEXT, seq_len)
    told = np.zeros(seq_len, dtype=bool)
    place = int(rng.integers(0, MAX_GAP))
    copies = 0
    while place + length <= seq_len:
        ids[place : place + length] = segment
        told[place + 1 : place + length] = copies > 0
        copies += 1
        place += length + int(rng.integers(0, MAX_GAP))
    return ids, told


def batch(
    corpus: Corpus, num_rows: int, seq_len: int, copy_share: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and the positions whose token is predicted in the loss.

    Returns:
        ids [num_rows, seq_len], int64, and in_loss [num_rows, seq_len], bool, False in column 0.
        A random part of the positions is enough for the gradient and costs less.
    """
    ids = np.empty((num_rows, seq_len), dtype=np.int64)
    in_loss = rng.random((num_rows, seq_len))
    for row in range(num_rows):
        if rng.random() < copy_share:
            ids[row], told = copy_row(corpus, seq_len, rng)
            in_loss[row] = told & (in_loss[row] < COPY_POSITIONS_IN_LOSS)
        else:
            ids[row] = text_row(corpus, seq_len, rng)
            in_loss[row] = in_loss[row] < TEXT_POSITIONS_IN_LOSS
    in_loss[:, 0] = 0
    return ids, in_loss.astype(bool)
