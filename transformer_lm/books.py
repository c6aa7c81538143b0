"""The books on board, as text to learn from and text to be tested on."""

from pathlib import Path

TEXT = Path(__file__).parents[1] / "models" / "text"
HELD_OUT_SHARE = 0.05  # of each book, at its end


def read_books(folder=TEXT):
    """Return two strings: what to learn from, and the last twentieth of each book, held out.

    Raises FileNotFoundError where the folder holds no .txt file.
    """
    books = [path.read_text(encoding="utf-8") for path in sorted(Path(folder).glob("*.txt"))]
    if not books:
        raise FileNotFoundError(
            f"there is no .txt file in {folder}; the course's folder models/text holds five books"
        )
    cuts = [book.index("\n", int(len(book) * (1 - HELD_OUT_SHARE))) + 1 for book in books]
    pairs = list(zip(books, cuts, strict=True))
    return "".join(book[:cut] for book, cut in pairs), "".join(book[cut:] for book, cut in pairs)
