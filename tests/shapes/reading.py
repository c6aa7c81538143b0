"""Reads the corpus: cells of code whose comments carry the verdict that is expected of them.

A file is cut at `# %% title` or `# %% title | call`; without a call a cell is one of the two
homework classes. `#! false`, `#! missing` or `#! cannot tell` at the end of a statement's first
line says what must be said of it, and is taken out before the code is checked; every other
verdict must be 'true'.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autograder.shapes import Verdict, check_source, plan

FOLDER = Path(__file__).parent / "corpus"
MARK = re.compile(r"\s*#! (false|missing|cannot tell)\s*$")
X = "(x[batch_size, seq_len, input_size]"
CALLS = {
    "SelfAttention": f"SelfAttention(input_size, hidden){X})",
    "MultiHeadSelfAttention": f"MultiHeadSelfAttention(input_size, hidden, num_heads){X});"
    f"MultiHeadSelfAttention(input_size, hidden, num_heads, causal=True){X}, "
    "return_attention=True)",
}


@dataclass(frozen=True)
class Snippet:
    """A cell without its marks, how to call it, and the expected verdicts by line."""

    file: str
    title: str
    call: str
    source: str
    expected: tuple[tuple[int, str], ...]

    @property
    def words(self) -> bool:
        """Whether its dimensions are words and not single letters."""
        names = re.findall(r"[^\W\d_]\w*", " ".join(re.findall(r"#(.*)", self.source)))
        short = sum(len(n) <= 2 for n in names)
        return short < len(names) / 2


@cache
def snippets() -> tuple[Snippet, ...]:
    return tuple(s for path in sorted(FOLDER.glob("*.py")) for s in _cells(path))


def _cells(path: Path) -> list[Snippet]:
    found = []
    for part in re.split(r"^# %% ", path.read_text(encoding="utf-8"), flags=re.M)[1:]:
        head, _, body = part.partition("\n")
        title, _, call = head.partition(" | ")
        lines, expected = [], []
        for number, line in enumerate(body.splitlines(), start=1):
            mark = MARK.search(line)
            if mark:
                expected.append((number, mark[1]))
            lines.append(MARK.sub("", line))
        call = call.strip() or CALLS[re.search(r"class (\w+)", body)[1]]
        found.append(Snippet(path.stem, title, call, "\n".join(lines) + "\n", tuple(expected)))
    return found


def verdicts(snippet: Snippet, source: str | None = None) -> list[Verdict]:
    return check_source(source or snippet.source, plan(snippet.call))
