"""What else is wrong beside what an exercise's own judge sees, such as a buffer that is stored.

No value shows what such a judge sees. A change that makes all values right, and leaves what it sees
as it is, undoes another thing.
"""

from __future__ import annotations

from autograder.course.asking import Finding
from autograder.judging.difference import matches
from autograder.judging.verdict import findings
from autograder.tracing.edits.pairs import Mended
from autograder.tracing.edits.search import Search
from autograder.tracing.layers import with_lines
from autograder.tracing.text import Text

MOST = 2  # changes that are asked for in all calls


def beside_a_judge(first: Finding, search: Search) -> tuple[Mended, ...]:
    """The two things that are wrong: one that a change undoes, and what a judge sees that the text
    shows on another line. () where that is not seen."""
    wrong = search.wrong
    (seen,) = with_lines([first], Text(wrong.source))
    if seen.where is None or search.by_chance:
        return ()
    for edit in sorted(search.nearly, key=search.doubt)[:MOST]:
        (came,) = search.versions.on_all([edit.source])
        wanted = wrong.known.expected
        if came is None or edit.line == seen.where.first_wrong:
            continue
        if all(map(matches, came, wanted, [search.rtol] * len(wanted))):
            left = findings(wrong.exercise, wrong.calls, came, wrong.known, edit.source)
            if [f.check for f in left if f.fails] == [first.check]:
                other = Mended(seen.where.first_wrong, seen.where.how, first.message)
                return Mended.by(edit), other
    return ()
