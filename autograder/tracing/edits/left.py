"""What is still wrong where one change makes a call right: that version, looked at as an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autograder.course.asking import Finding, Verdict
from autograder.course.calls import Outcome
from autograder.tracing.edits.kinds.source import Edit, line_before
from autograder.tracing.edits.pairs import OPERATION, Mended
from autograder.tracing.edits.search import DEAR, Search
from autograder.tracing.text import Text

# What is found in a version of an answer, its lines told as those of that version.
Again = Callable[[str, Sequence[Outcome]], list[Finding]]


MOST = 3  # versions that are looked at so
ONE_THING = "Everything else is right."  # how what a change proves is told
EASY = 1  # the rank of another name that is easily taken for one


def left_behind(search: Search, again: Again, words: str) -> tuple[Mended, ...]:
    """An easy change that makes the call right which is looked at, and what is found behind it on
    another line; () where nothing shows there, or changes of several lines make that call right.

    words: the known mistake that the change undoes, where it is known.
    """
    easy = [e for e in search.nearly if e.is_natural or (e.by_name and e.rank <= EASY)]
    easy = [e for e in easy if not (e.takes or e.unsure)]
    easy = sorted(easy, key=search.doubt)
    alike = {edit.line for edit in easy if search.doubt(edit) == search.doubt(easy[0])}
    if search.by_chance or len(alike) != 1:
        return ()
    one = easy[0]
    (came,) = search.versions.on_all([one.source])
    found = again(one.source, came) if came is not None else []
    left = next((f for f in found if f.fails), None)
    if left is None or left.where is None or left.verdict != Verdict.WRONG:
        return ()
    known = _words_of(left, search)
    line = line_before(left.where.first_wrong, one.source, search.wrong.source)
    if not line or line == one.line or not (known or left.where.how):
        return ()
    if Text(search.wrong.source).around(line) is None:
        return ()
    return Mended.by(one, words), Mended(line, left.where.how, known)


def proven_behind(search: Search, again: Again, nearest: Sequence[Edit]) -> tuple[Mended, ...]:
    """One of the changes that bring the result nearest, and the one thing that is wrong behind it
    on another line, where that is proven: nothing else is wrong then, or a known mistake explains
    it."""
    if search.by_chance or search.cost > DEAR:
        return ()
    likely = [e for e in nearest if e.is_natural and not (e.takes and e.rank)]
    if search.stops:  # another operation in the place of one that stops may bring a mistake in
        likely = [e for e in likely if not OPERATION.match(e.how)]
    for one in likely[:MOST]:
        (came,) = search.versions.on_all([one.source])
        found = again(one.source, came) if came is not None else []
        failing = [f for f in found if f.fails]
        if len(failing) != 1 or failing[0].where is None or failing[0].verdict != Verdict.WRONG:
            continue
        (left,), known = failing, _words_of(failing[0], search)
        line = line_before(left.where.first_wrong, one.source, search.wrong.source)
        alone = ONE_THING in left.message or (known and left.where.how)
        if alone and line and line != one.line:
            return Mended.by(one), Mended(line, left.where.how, known)
    return ()


def _words_of(finding: Finding, search: Search) -> str:
    """The words of a known mistake in what is found behind a change."""
    known = search.wrong.known
    every = (*known.mistakes, *known.exchanged)
    said = [m for check, m, _ in every if check == finding.check and m in finding.message]
    return max(said, key=len, default="")
