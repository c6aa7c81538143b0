"""Where two known mistakes stand that together explain all that came back.

A change with which the program gives what one of them alone gives has undone the other. Where only
one of the two can be undone so, the steps of the program without it say where the other stands, or
nothing does.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autograder.course.calls import Outcome
from autograder.tracing.edits.kinds.source import Edit, is_about
from autograder.tracing.edits.pairs import Mended, Pairs
from autograder.tracing.proof.taken_there import line_of_copy, line_of_scores
from autograder.tracing.text import Text

MOST = 6  # changes that are asked for in all calls, for one mistake


@dataclass(frozen=True)
class Undone:
    """A known mistake, by its check and words, what it gives alone, and the likeliest change that
    undoes it."""

    check: str
    words: str
    gives: Sequence[Outcome]
    edit: Edit | None


def of_a_known_pair(pairs: Pairs, message: str) -> tuple[Mended, ...]:
    """Both mistakes, those with a line first; () where no line is known. message: what is said of
    them without lines."""
    if len(pairs.search.pair) != 2:
        return ()
    first, second = pairs.search.pair
    one = _candidates(pairs, first, second, message)
    other = _candidates(pairs, second, first, message)
    if one is None or other is None:
        return ()
    both = _together(pairs, one[2], other[2])
    own = [
        Undone(check, words, alone, edit if edit is not None else _alone(pairs, left, gives))
        for edit, (check, words, left, gives), (*_, alone) in zip(
            both, (one, other), (other, one), strict=True
        )
    ]
    lines = [_line(pairs, *own), _line(pairs, *reversed(own))]
    if sum(line is None for line in lines) == 1:
        late = lines.index(None)
        own[late] = _after(pairs, own[late], own[1 - late])
        lines[late] = _line(pairs, own[late], own[1 - late])
    before = [each.edit for each in own]
    made = [each and pairs.where_it_is_made(each) for each in before]
    if all(made):
        made = [pairs.of_the_bound(e, o) for e, o in zip(made, reversed(before), strict=True)]
    own = [replace(each, edit=edit) for each, edit in zip(own, made, strict=True)]
    lines = [
        each.edit.line if each.edit and each.edit not in before else line
        for line, each in zip(lines, own, strict=True)
    ]
    said = [_mended(line, each, pairs) for line, each in zip(lines, own, strict=True)]
    return tuple(sorted(said, key=lambda each: each.line is None)) if any(lines) else ()


def _candidates(pairs: Pairs, check: str, other: str, message: str) -> tuple | None:
    """A mistake by its check and words; the changes that may undo it, with which the program gives
    in one call what the other one gives; and what that gives in all."""
    known = (*pairs.wrong.known.mistakes, *pairs.wrong.known.exchanged)
    of = {own: [k for k in known if k[0] == own] for own in (check, other)}
    of = {own: [k for k in row if k[1] in message] or row for own, row in of.items()}
    if not all(of.values()):
        return None
    (_, words, _), (_, _, gives) = of[check][0], of[other][0]
    left = [edit for edit, own, *_ in pairs.left if own == other and not edit.unsure]
    left.sort(key=lambda edit: _doubt(pairs, edit))
    return check, words, left[:MOST], gives


def _doubt(pairs: Pairs, edit: Edit) -> tuple[float, ...]:
    """How unlikely a change is the one that undoes a slip: an odd one, on a line that is known to
    be right; of equal ones those of lines that the steps tell come first."""
    search = pairs.search
    natural = 2 * edit.rank + search.likely.get(edit.line, 1)
    return natural, edit.missing, edit.line not in search.told, search.doubt(edit)


def _together(pairs: Pairs, ones: list[Edit], others: list[Edit]) -> tuple[Edit | None, ...]:
    """The likeliest two changes, one of each, with which everything is right."""
    both = itertools.product(ones, others)
    both = sorted(both, key=lambda pair: [*map(sum, zip(*_doubts(pairs, pair), strict=True))])
    texts = [(pair, text) for pair in both if (text := pair[0].after(pair[1]))]
    fine = pairs.versions.all_right([text for _, text in texts])
    return next((p for (p, _), is_right in zip(texts, fine, strict=True) if is_right), (None, None))


def _doubts(pairs: Pairs, both: tuple[Edit, Edit]) -> list[tuple[float, ...]]:
    return [_doubt(pairs, edit) for edit in both]


def _alone(pairs: Pairs, left: list[Edit], gives: Sequence[Outcome]) -> Edit | None:
    """The likeliest change with which the program gives in all calls what the other one gives."""
    return next((edit for edit in left if pairs.leaves(edit, gives)), None)


def _after(pairs: Pairs, one: Undone, other: Undone) -> Undone:
    """A mistake that no change alone undoes, with one that does so where the other is undone."""
    if one.edit is not None or other.edit is None:
        return one
    found = pairs.after(other.edit)
    alone = len({edit.line for edit in found}) == 1 and not any(e.by_name for e in found)
    return replace(one, edit=found[0]) if alone else one


def _mended(line: int | None, one: Undone, pairs: Pairs) -> Mended:
    edit, words = one.edit, _words(one, pairs)
    if edit is None:
        return Mended(line, "", words)
    at = edit.at if line == edit.line else None
    return replace(Mended.by(edit, words), line=line, missing=edit.missing, at=at)


def _words(one: Undone, pairs: Pairs) -> str:
    """A mistake's own words; '' where the change says more: that a result is thrown away, or which
    name is taken for another in a statement that is not about what the words speak of."""
    if one.edit is None:
        return one.words
    about = is_about(one.edit.line, one.words, pairs.wrong.source)
    return "" if one.edit.rank < 0 or (one.edit.by_name and not about) else one.words


def _line(pairs: Pairs, one: Undone, other: Undone) -> int | None:
    """The line of a mistake: of the change that undoes it, or where its steps show once the other
    one is undone."""
    if one.edit is not None:
        text, line = Text(pairs.wrong.source), one.edit.line
        made = line_of_scores(one.check, line, text) if one.edit.missing else None
        return made or line_of_copy(one.words, line, text) or line
    told = pairs.left_by(other.edit, one.check) if other.edit is not None else None
    if told is not None and told.cause is not None:
        return told.where.first_wrong
    copy = line_of_copy(one.words, 0, Text(pairs.wrong.source))
    line = copy if copy is not None else pairs.of_its_part(one.gives)
    if line is None and told is not None and told.where.first_wrong != other.edit.line:
        return told.where.first_wrong  # the first that is wrong then, though nothing says how
    return line
