"""What is wrong with each of several results, where it is something else for each.

One small change makes one of them right and leaves the others as they are; or one line alone has a
part in what a known mistake spoils.
"""

from __future__ import annotations

from autograder.course.calls import Outcome
from autograder.judging.difference import difference
from autograder.tracing.edits.kinds.source import NATURAL, Edit
from autograder.tracing.edits.pairs import Mended
from autograder.tracing.edits.parts import ALONE, Parts, of_parts, wrong_parts
from autograder.tracing.edits.search import Search

MOST = 3  # results that are wrong
TRIED = 3  # changes that are asked for in all calls


def by_parts(search: Search, pair: tuple[str, ...]) -> tuple[Mended, ...]:
    """Two or more things that are wrong, each in results of its own; () where that is not seen.

    pair: the known mistakes that together explain all, if it is known which.
    """
    parts = search.parts
    if parts is None or search.by_chance or not 1 < len(parts.wrong) <= MOST:
        return ()
    found = {}
    for key in parts.wrong:
        edit = _that_mends(search, parts, key)
        words, line = _known(search, parts, key, pair)
        if edit is None and line is None:
            return ()
        how = edit.how if edit is not None else ALONE
        found[edit.line if edit is not None else line] = how, words
    if len(found) < 2:
        return ()
    return tuple(Mended(line, *said) for line, said in sorted(found.items()))


def _that_mends(search: Search, parts: Parts, key: object) -> Edit | None:
    """The likeliest change that makes one result right, and leaves what is right."""
    place = search.place
    wanted = of_parts(search.wrong.known.expected[place].value)
    rtol = search.rtol

    def mends(gave: Outcome | None) -> bool:
        own = of_parts(gave.value) if gave is not None and gave.error is None else {}
        right = {k for k in wanted if k in own and difference(own[k], wanted[k], rtol) is None}
        return key in right and not (parts.may.keys() - parts.wrong - right)

    pairs = zip(search.tried, search.gave, strict=True)
    found = [edit for edit, gave in pairs if edit.rank <= NATURAL and mends(gave)]
    found = sorted(found, key=search.doubt)[:TRIED]
    for edit, came in zip(found, search.versions.on_all([e.source for e in found]), strict=True):
        spoiled = wrong_parts(search.wrong, came, parts) if came is not None else None
        if spoiled is not None and key not in spoiled and spoiled <= parts.wrong:
            return edit
    return None


def _known(
    search: Search, parts: Parts, key: object, pair: tuple[str, ...]
) -> tuple[str, int | None]:
    """The words of the known mistake of a pair that spoils one result, and the line that only this
    result is made with."""
    line = parts.only({key})
    for check, message, gives in search.wrong.known.mistakes:
        if check in pair and wrong_parts(search.wrong, gives, parts) == {key}:
            return message, line
    return "", line
