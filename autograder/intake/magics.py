"""From the text of a notebook cell to plain Python on the same lines.

Notebooks allow what Python does not: `%matplotlib inline`, `!pip install`, `softmax?`, `%%time`.
None of that is run when a cell is judged; each such line becomes `pass`, or nothing.

IPython's own translation is not used whole: it reads the cell again for every such line (minutes
for a cell made of them) and turns them into calls that need a running IPython.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from functools import lru_cache

from IPython.core.inputtransformer2 import classic_prompt, ipython_prompt, leading_indent

RUN_THE_BODY = {"time", "timeit", "capture", "prun"}
LONGEST_MAGIC = 1_000  # characters in a line; longer ones are data, and slow to look at
ROUNDS = 5  # how many brackets may be closed by a line that looks like a magic
_CELL_MAGIC = re.compile(r"%%(\w+)")
_LINE = re.compile(
    r"""(?P<indent>\s*)(?:
        %time\s+(?P<timed>\S.*)                            # runs a statement, and says how long
      | (?P<name>[\w.,\s\[\]]+?)\s*=\s*(?:%time\s+(?P<value>\S.*)|!.*|%[A-Za-z].*)
      | (?:%[A-Za-z]|!|\?).*                               # %magic, !shell, ?name
      | [^\s\#][^\#]*\?                                    # name?
      | (?:pip|conda|ls|cd|cat|matplotlib|load_ext)\s+[-\w.~/].*  # what %automagic allows
    )\s*""",
    re.VERBOSE,
)


def parse(source: str) -> ast.Module | None:
    """The syntax tree, or None where Python cannot read the text (or it is nested too deep)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=256)
def parses(source: str) -> bool:
    """Whether a notebook cell is Python, with the magics that a notebook allows."""
    return parse(plain_python(source)) is not None


@lru_cache(maxsize=256)
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
        match = _LINE.fullmatch(line)
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
    indent, name = match["indent"], match["name"]
    text = match["timed"] or "pass"
    if name is not None:
        text = f"{name} = {match['value'] or '[]'}"
    if parse(text) is None:
        text = "pass"
    return [indent + text] + [""] * (last - place)


def _statements(text: str) -> tuple[set[int], int | None]:
    """The lines, from 1, that begin a statement (not inside a string, bracket or continuation),
    and the line of a bracket that is never closed, if there is one."""
    begin, fresh, brackets = set(), True, []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.COMMENT):
                fresh = fresh or token.type == tokenize.NEWLINE
            elif token.type not in (tokenize.INDENT, tokenize.DEDENT):
                if fresh and not brackets:
                    begin.add(token.start[0])
                fresh = False
                if token.string in ("(", "[", "{"):
                    brackets.append(token.start[0])
                elif token.string in (")", "]", "}") and brackets:
                    brackets.pop()
    except (tokenize.TokenError, SyntaxError):
        pass  # the lines before the one that cannot be read are known
    return begin, brackets[0] if brackets else None
