"""Rows of token ids to train on: pages of text, and copy rows.

A copy row repeats one segment inside random tokens, at uneven distances. A continuation can only
be told by finding the earlier copy by its content, which is what an induction head does
(Olsson et al. 2022, "In-context Learning and Induction Heads").
"""

from dataclasses import dataclass

import numpy as np
import torch

from .recipe import STORY_SHARE, Phase
from .text import Corpus

MIN_SEGMENT = 6


@dataclass(frozen=True)
class Batch:
    """Rows to train on, all [num_rows, seq_len].

    ids: int64. in_loss: whether the token is predicted in the loss, False in column 0.
    source: where the token stands in the copy before this one, -1 where it is no copy.
    """

    ids: torch.Tensor
    in_loss: torch.Tensor
    source: torch.Tensor


def text_row(corpus: Corpus, seq_len: int, rng: np.random.Generator) -> np.ndarray:
    """A page of a book from anywhere, or, now and then, stories from the start of one."""
    if rng.random() < STORY_SHARE:
        starts = corpus.story_starts[corpus.story_starts < len(corpus.stories) - seq_len]
        start = rng.choice(starts)
        return corpus.stories[start : start + seq_len]
    start = rng.integers(0, len(corpus.books) - seq_len)
    return corpus.books[start : start + seq_len]


def copy_row(
    corpus: Corpus, phase: Phase, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """A copy row: ids [seq_len] and source [seq_len], as in ``Batch``.

    The segment is random ids or a piece of a book, by even chances. The first token of a copy
    comes unannounced, so it has no source.
    """
    seq_len = phase.seq_len
    length = int(rng.integers(MIN_SEGMENT, phase.max_segment))
    segment = rng.integers(0, corpus.end_of_text, length)
    if rng.random() < 0.5:
        start = rng.integers(0, len(corpus.books) - length)
        segment = corpus.books[start : start + length]
    ids = rng.integers(0, corpus.end_of_text, seq_len)
    source = np.full(seq_len, -1)
    place, earlier = int(rng.integers(0, phase.max_gap)), None
    while place + length <= seq_len:
        ids[place : place + length] = segment
        if earlier is not None:
            source[place + 1 : place + length] = np.arange(earlier + 1, earlier + length)
        earlier = place
        place += length + int(rng.integers(0, phase.max_gap))
    return ids, source


def draw_batch(corpus: Corpus, num_rows: int, phase: Phase, rng: np.random.Generator) -> Batch:
    """Rows, mixed as the phase says.

    A random part of the positions is enough for the gradient and costs less.
    """
    seq_len = phase.seq_len
    ids = np.empty((num_rows, seq_len), dtype=np.int64)
    source = np.full((num_rows, seq_len), -1)
    chance = rng.random((num_rows, seq_len))
    in_loss = chance < phase.text_in_loss
    for row in range(num_rows):
        if rng.random() < phase.copy_share:
            ids[row], source[row] = copy_row(corpus, phase, rng)
            in_loss[row] = (source[row] >= 0) & (chance[row] < phase.copies_in_loss)
        else:
            ids[row] = text_row(corpus, seq_len, rng)
    in_loss[:, 0] = False
    return Batch(torch.from_numpy(ids), torch.from_numpy(in_loss), torch.from_numpy(source))
