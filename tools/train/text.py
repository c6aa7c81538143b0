"""From books to token ids: training pages, pages to watch while training, pages held out."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from transformers import GPT2TokenizerFast

from .recipe import DATA_SEED, NUM_POSITIONS
from .stories import stories

TAIL_CHARS = 9_000  # the end of each book is never trained on
TAIL_WINDOWS = 6  # of NUM_POSITIONS tokens each: watched and held out by turns
STORY_COUNT = 3_000


@dataclass(frozen=True)
class Corpus:
    """Token ids, uint16.

    ``books`` [num_tokens], the stream of all books; ``stories`` [num_tokens]; ``story_starts``
    [num_stories], where each story begins; ``watched`` and ``held_out`` [num_windows, 256].
    ``end_of_text`` is the id that ends a document, and the largest.
    """

    books: np.ndarray
    stories: np.ndarray
    story_starts: np.ndarray
    watched: np.ndarray
    held_out: np.ndarray
    end_of_text: int


def read_books(path: Path) -> list[dict]:
    """Books from a gzipped file of one JSON object a line: title, gutenberg_id, text."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def split_tail(text: str) -> tuple[str, str]:
    """A book without its last ``TAIL_CHARS`` characters, and that end, cut between paragraphs."""
    cut = text.find("\n", max(0, len(text) - TAIL_CHARS))
    return text[:cut], text[cut + 1 :]


def encode(tokenizer: GPT2TokenizerFast, documents: list[str]) -> list[np.ndarray]:
    """Ids of each document, each ended by <|endoftext|>."""
    ids = tokenizer(documents, verbose=False)["input_ids"]
    return [np.array([*row, tokenizer.eos_token_id], dtype=np.uint16) for row in ids]


def build_corpus(books_path: Path, tokenizer: GPT2TokenizerFast) -> Corpus:
    """Encode the books of ``books_path`` and the generated stories."""
    heads, tails = zip(*(split_tail(book["text"]) for book in read_books(books_path)), strict=True)
    wanted = TAIL_WINDOWS * NUM_POSITIONS
    ends = [ids[:wanted] for ids in encode(tokenizer, list(tails)) if len(ids) >= wanted]
    windows = np.concatenate(ends).reshape(-1, NUM_POSITIONS)
    tales = encode(tokenizer, stories(STORY_COUNT, DATA_SEED))
    lengths = np.array([len(tale) for tale in tales])
    return Corpus(
        books=np.concatenate(encode(tokenizer, list(heads))),
        stories=np.concatenate(tales),
        story_starts=np.cumsum(lengths) - lengths,
        watched=windows[0::2],
        held_out=windows[1::2],
        end_of_text=tokenizer.eos_token_id,
    )
