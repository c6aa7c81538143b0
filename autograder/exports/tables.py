"""CSV that a spreadsheet opens without running anything."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

FORMULA = ("=", "+", "-", "@")  # how a spreadsheet's formula may begin, blanks aside


def harmless(value) -> str:
    """A cell's text. One that a spreadsheet would take for a formula gets a quote before it.

    Numbers are written as numbers: '-1' is one, and no formula.
    """
    if value is None:
        return ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{round(value, 4):.12g}"
    text = str(value).replace("\0", "")
    risky = text.startswith(("\t", "\r", "\n")) or text.lstrip(" \ufeff").startswith(FORMULA)
    return f"'{text}" if risky else text


def as_csv(rows: Iterable[Sequence]) -> str:
    """Rows as CSV (RFC 4180), every cell quoted."""
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    for row in rows:
        writer.writerow([harmless(cell) for cell in row])
    return file.getvalue()
