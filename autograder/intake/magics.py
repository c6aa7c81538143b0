"""From the text of a notebook cell to plain Python on the same lines.

Notebooks allow what Python does not: `%matplotlib inline`, `!pip install`, `softmax?`, `%%time`.
None of that is run when a cell is judged; each such line becomes `pass`, or nothing.

IPython's own translation is not used whole: it reads the cell again for every such line (minutes
for a cell made of them) and turns them into calls that need a running IPython.
"""

from __future__ import annotations

import ast
import re
import warnings
from functools import lru_cache

RUN_THE_BODY = {"time", "timeit", "capture", "prun"}
LONGEST_MAGIC = 1_000  # characters in a line; longer ones are data, and slow to look at
REMEMBERED = 4_096  # texts; every cell of a notebook is asked for many times, by every lesson
ROUNDS = 5  # how many brackets may be closed by a line that looks like a magic
_CELL_MAGIC = re.compile(r"%%(\w+)")
# Of a line without the blanks around it. No two neighbours here can match the same characters: a
# line of blanks or of half a magic is looked at once from left to right.
_LINE = re.compile(
    r"""%time\s+(?P<timed>\S.*)                             # runs a statement, and says how long
      | (?P<name>[\w.,\s\[\]]+)=\s*(?:%time\s+(?P<value>\S.*)|!.*|%[A-Za-z].*)
      | (?:%[A-Za-z]|!|\?).*                               # %magic, !shell, ?name
      | [^\#]*\?                                          # name?
      | (?:pip|conda|ls|cd|cat|matplotlib|load_ext)\s+[-\w.~/].*  # what %automagic allows
    """,
    re.VERBOSE,
)
# What can hold the start of a statement apart from its line: strings, brackets, comments.
_TOKEN = re.compile(
    r"""(?P<long>\"""|\'\'\')|(?P<short>["'])|(?P<open>[(\[{])|(?P<close>[)\]}])
      | (?P<joined>\\\n)|(?P<end>\n)|(?P<nothing>[^\S\n]+|\#[^\n]*)
      | (?P<text>[^\s"'()\[\]{}\\\#]+|\\)
    """,
    re.VERBOSE,
)
# What can matter in the rest of a string: its end by its quotes, and what is escaped. No more is
# left to the pattern, since Pythons before 3.11.5 err in a repeated group that gives nothing back.
_IN_STRING = {
    quotes: re.compile(rf"\\.|(?P<end>{end})", re.DOTALL)
    for quotes, end in {"'''": "'''", '"""': '"""', "'": "['\n]", '"': '["\n]'}.items()
}


def forget() -> None:
    """Lets go of the texts that were read; called between notebooks, which may be large."""
    parses.cache_clear()
    plain_python.cache_clear()


def parse(source: str) -> ast.Module | None:
    """The syntax tree, or None where Python cannot read the text (or it is nested too deep)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=REMEMBERED)
def parses(source: str) -> bool:
    """Whether a notebook cell is Python, with the magics that a notebook allows."""
    return parse(plain_python(source)) is not None


@lru_cache(maxsize=REMEMBERED)
def plain_python(source: str) -> str:
    """A notebook cell as plain Python with the same number of lines.

    `%magic`, `!shell` and `name?` lines become `pass`; `%%time`, `%%timeit`, `%%capture` and
    `%%prun` run their body, every other `%%cell` becomes empty. Text that is not Python for
    another reason comes back with that reason left in it, on its line. Top-level `await` stays.
    """
    if parse(source) is not None:
        return source
    lines = _without_prompts(source.split("\n"))
    for place, line in enumerate(lines):
        magic = _CELL_MAGIC.match(line)
        if magic and magic[1] not in RUN_THE_BODY:
            return "\n" * (len(lines) - 1)
        if magic:
            lines[place] = ""
        elif line.strip():
            break
    return _without_line_magics(lines)


def _without_prompts(lines: list[str]) -> list[str]:
    """Takes away `>>> ` and `In [1]: ` prompts and an indent of the whole cell, as IPython does."""
    start = next((i for i, line in enumerate(lines) if line.strip()), 0)
    # Only here: who finds a class unchanged reads no cell, and IPython is long to import.
    from IPython.core.inputtransformer2 import classic_prompt, ipython_prompt, leading_indent

    body = [line + "\n" for line in lines[start:]]
    for clean in (leading_indent, classic_prompt, ipython_prompt):
        cleaned = clean(body)
        # Some of these break lines at form feeds and the like, where Python does not.
        body = cleaned if len(cleaned) == len(body) else body
    return lines[:start] + [line.removesuffix("\n") for line in body]


def _without_line_magics(lines: list[str]) -> str:
    swaps: dict[int, list[str]] = {}
    free = 0  # the first line that no magic before it runs on to
    for place, line in enumerate(lines):
        if place < free or len(line) > LONGEST_MAGIC or '"""' in line or "'''" in line:
            continue
        match = _LINE.fullmatch(line.strip())
        if match:
            swaps[place] = _swap(match, lines, place)
            free = place + len(swaps[place])
    for _ in range(ROUNDS):
        real, opened = _statements(_swapped(lines, swaps, blank=True))
        wrong = [place for place in swaps if place + 1 not in real]
        if opened is None or not wrong:
            break
        # A line in a bracket may have closed it, so that those after it are real all the same.
        closing = next((place for place in wrong if place + 1 > opened), wrong[-1])
        for place in wrong:
            if place <= closing:
                del swaps[place]
    swaps = {place: swap for place, swap in swaps.items() if place + 1 in real}
    return _swapped(lines, swaps)


def _swapped(lines: list[str], swaps: dict[int, list[str]], blank: bool = False) -> str:
    """The text with lines swapped; `blank`: for `pass`, whatever they would be swapped for."""
    lines = list(lines)
    for place, swap in swaps.items():
        if blank:
            indent = re.match(r"\s*", lines[place])[0]
            swap = [indent + "pass"] + [""] * (len(swap) - 1)
        lines[place : place + len(swap)] = swap
    return "\n".join(lines)


def _swap(match: re.Match, lines: list[str], place: int) -> list[str]:
    """The lines of Python for one line of a magic; with those that a trailing `\\` adds to it."""
    last = place
    while lines[last].endswith("\\") and last + 1 < len(lines):
        last += 1
    indent, name = re.match(r"\s*", lines[place])[0], match["name"]
    text = match["timed"] or "pass"
    if name is not None:
        text = f"{name.strip()} = {match['value'] or '[]'}"
    if parse(text) is None:
        text = "pass"
    return [indent + text] + [""] * (last - place)


def _statements(text: str) -> tuple[set[int], int | None]:
    """The lines, from 1, that begin a statement (not inside a string, bracket or continuation),
    and the line of a bracket that is never closed, if there is one.

    Python's own tokenizer looks at some lines again for each of their characters. Here every
    character is looked at once; a string that is not closed goes on to the end of its line, and a
    long one to the end of the text.
    """
    begin, fresh, brackets = set(), True, []
    place, line = 0, 1
    while place < len(text):
        token = _TOKEN.match(text, place)
        kind, first = token.lastgroup, line
        place = token.end()
        if kind in ("long", "short"):
            end = _end_of_string(text, place, token[0])
            line += text.count("\n", place, end)
            place = end
        elif kind == "end":
            fresh = fresh or not brackets
            line += 1
            continue
        elif kind == "joined":
            line += 1
            continue
        elif kind == "nothing":
            continue
        if fresh and not brackets:
            begin.add(first)
        fresh = False
        if kind == "open":
            brackets.append(first)
        elif kind == "close" and brackets:
            brackets.pop()
    return begin, brackets[0] if brackets else None


def _end_of_string(text: str, place: int, quotes: str) -> int:
    """The place behind a string whose text begins at `place`, by the quotes that opened it."""
    for found in _IN_STRING[quotes].finditer(text, place):
        if found["end"]:
            return found.start() if found["end"] == "\n" else found.end()
    return len(text)
