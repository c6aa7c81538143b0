"""The books on board, as text to learn from and text to be tested on."""

import gzip
from pathlib import Path

TEXT = Path(__file__).parents[1] / "models" / "text"
HELD_OUT_SHARE = 0.05  # of each book, at its end


def read_books(folder=TEXT):
    """Return two strings: what to learn from, and the last twentieth of each book, held out.

    A book is a .txt file, or one packed as .txt.gz. Raises FileNotFoundError where there is none.
    """
    books = [_text(path) for path in sorted(Path(folder).glob("*.txt*"))]
    if not books:
        raise FileNotFoundError(
            f"there is no .txt file in {folder}; the course's folder models/text holds five books"
        )
    cuts = [book.index("\n", int(len(book) * (1 - HELD_OUT_SHARE))) + 1 for book in books]
    pairs = list(zip(books, cuts, strict=True))
    return "".join(book[:cut] for book, cut in pairs), "".join(book[cut:] for book, cut in pairs)


def _text(path):
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
