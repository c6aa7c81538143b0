"""Two slips that each stop a program: no one change of it brings it any further."""

from __future__ import annotations

import itertools

from autograder.tracing.edits.kinds.source import Edit, lines_that_feed
from autograder.tracing.edits.search import OF_ONE, SURVIVE, Search

MOST = 15_000  # what all pairs may cost
MOST_HERE = 12  # changes of the statement that stops
EASY = 1  # their rank at most


def both_stop(search: Search) -> list[tuple[Edit, Edit]]:
    """The pairs of easy changes, one of the statement that stops and one of a line that makes what
    it takes, with which all comes out right; of a program that stops in the call that is looked
    at."""
    error = search.wrong.outcomes[search.place].error or {}
    stops = error.get("line")
    if not isinstance(stops, int):
        return []
    easy = [e for e in search.tried if e.is_natural and e.rank <= EASY and not e.takes]
    easy = search.in_order(easy)
    here = [e for e in easy if stops in (e.line, e.at)][:MOST_HERE]
    feeding = lines_that_feed({stops}, search.wrong.source)
    there = [e for e in easy if e.line in feeding and e not in here]
    pairs = ((one, two, one.after(two)) for two, one in itertools.product(there, here))
    pairs = [each for each in pairs if each[-1]][: MOST // (OF_ONE // 2)]  # most stop once more
    gave = search.versions.in_the_call([text for *_, text in pairs])
    fits = [p for p, came in zip(pairs, gave, strict=True) if search.versions.fits(came)][:SURVIVE]
    fine = search.versions.all_right([text for *_, text in fits])
    return [(one, two) for (one, two, _), is_right in zip(fits, fine, strict=True) if is_right]
