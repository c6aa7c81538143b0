"""Looks for two changes of a program with which all that is asked of it comes out right.

The first is one that brings the result nearer to what is asked for, or makes one call right; the
second another change, a mistake that is known, or what the steps tell once the first is made.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from autograder.course.asking import Where
from autograder.course.calls import Outcome
from autograder.course.sketch import Sketch
from autograder.judging.difference import matches
from autograder.tracing.edits.both_stop import both_stop
from autograder.tracing.edits.distance import (
    all_one,
    are_apart,
    distance,
    is_a_factor_off,
    mark,
    may_match,
)
from autograder.tracing.edits.kinds.all import edits
from autograder.tracing.edits.kinds.missing import ANYWHERE
from autograder.tracing.edits.kinds.source import (
    NATURAL,
    Edit,
    is_about,
    is_comparison,
    is_counted_from_one,
    is_read_at,
    is_slice,
    line_before,
    lines_that_feed,
    lines_that_make,
    made_for,
    names_in,
    names_read_on,
)
from autograder.tracing.edits.parts import wrong_parts
from autograder.tracing.edits.search import OF_ONE, SURVIVE, Search
from autograder.tracing.look import Told

MOST_OF_KNOWN = 16  # pairs of changes that each leave a known mistake
MOST_OF_TWO = 30_000  # the same for two at once
MOST_OF_ALL = 16_000_000  # the same of all with all, which cost as much to make as to run
MOST_OF_CALLS = 2  # changes that make one call right, of which the other calls are looked at
MOST_OF_PLACES = 3  # of those with which an answer gives the same
MOST_THAT_RUN = 8  # changes with which an answer stops on a later line at least
OF_TOLD = 2  # changes of the lines that the steps tell, behind which a second one is looked for
NEAREST = 4  # changes behind which a second one is looked for
SURVIVE_OF_ALL = 32  # pairs of all with all that make one call right and are tried on the others
MOST_ALIKE = 4  # of those that come equally near
# How changes begin that put another operation in the place of one.
OPERATION = re.compile(r"`[^`]+` is not the (?:change|operation) ")
NOTHING = ("0", "0.0")
LESS = re.compile(r"^`[+-] ")  # how changes begin that take a term away
NEARER = 3  # how much likelier a second one is that alone brings it nearer, or where it stops


@dataclass(frozen=True)
class Mended:
    """One of two things that are wrong: its line, how it is so, and a known mistake's own words,
    which may be all that is known. missing: a step is, which could stand on another line. at: the
    line within a statement of several."""

    line: int | None
    how: str
    known: str = ""
    missing: bool = False
    at: int | None = None

    @classmethod
    def by(cls, edit: Edit, known: str = "") -> Mended:
        """What a change undoes."""
        return cls(edit.line, edit.how, known, at=edit.at)

    @property
    def shown(self) -> int | None:
        """The line that is told."""
        return self.at or self.line


class Pairs:
    """The pairs of changes behind a search for a single one, which found none."""

    def __init__(self, search: Search):
        self.search, self.wrong, self.versions = search, search.wrong, search.versions
        self.place, self.rtol, self.parts = search.place, search.rtol, search.parts

    def two(self, named: bool = False) -> tuple[Mended, ...]:
        """Two changes that together make all right, or one beside a known mistake; after `one`.

        named: whether a known mistake explains what came back.
        """
        if self.place is None or not self.search.tried:
            return ()
        stopped = self.wrong.outcomes[self.place].error is not None
        if named and not stopped:  # its name explains what came back: the rest shows elsewhere
            return (
                self._two_changes(self.search.nearly[:NEAREST])
                or self._one_after(self.search.nearly)
                or self.two_natural()
                or self._behind_what_is_named()
            )
        likely = [e for e in self.nearest if not (e.missing and e.rank >= ANYWHERE)]
        second = [alike[1] for alike in self.by_distance if len(alike) > 1]
        first_ones = [*self._easy_on(self.search.told)[:OF_TOLD], *[*likely, *second][:NEAREST]]
        if stopped:  # how near the result comes says little where two things are wrong in it
            first_ones = list(dict.fromkeys([*first_ones, *self.that_run[:MOST_THAT_RUN]]))
        found = (
            self._of_two_known_ones()
            or self._two_changes(first_ones)
            or self._one_after(likely if stopped else self.search.nearly)
            or (self._best(both_stop(self.search)) if stopped else ())
        )
        if found or self.search.pair:  # which two it is, is known then
            return found
        beside = self._beside_a_known_one(self._nearest_by_place())
        if beside:  # which two together make all right is shown, and this is not
            return self.of_all() or beside
        return self._beside_what_the_steps_tell(likely[:NEAREST])

    def _behind_what_is_named(self) -> tuple[Mended, ...]:
        """The easiest change that brings the result nearer, and one for what it uncovers: a slip
        that a known mistake hides."""
        easy = [e for e in self.nearest if e.is_natural and not (e.rank or e.takes)]
        found = self._one_after(easy[:1])
        easily = found and not found[-1].missing
        return found if easily else ()

    def two_natural(self) -> tuple[Mended, ...]:
        """Two natural slips in two lines that together are all that is wrong, each with places of
        the result of its own; after `one`."""
        if self.place is None:
            return ()
        gave = {e.source: g for e, g in zip(self.search.tried, self.search.gave, strict=True)}
        as_it_is = self.wrong.outcomes[self.place]

        def fits(one: Edit, two: Edit) -> bool:
            apart = one.line != two.line and two.is_natural
            return apart and are_apart(as_it_is, gave[one.source], gave.get(two.source))

        return self._two_changes([e for e in self.nearest if e.is_natural][:NEAREST], fits)

    def of_all(self) -> tuple[Mended, ...]:
        """Any two natural slips in two lines that together are all that is wrong, though neither
        alone brings the result nearer; after `one`, where nothing else is found."""
        if self.place is None:
            return ()
        found: dict[tuple, Edit] = {}  # of those that give the same the likeliest
        changed = {edit.source for edit in self.change}
        for edit, gave in zip(self.search.tried, self.search.gave, strict=True):
            natural = edit.rank <= NATURAL and not (edit.missing or edit.unsure)
            if not natural or gave is None or gave.error is not None:
                continue
            if edit.source in changed:
                key = edit.line, str(mark(gave))
                found[key] = min(found.get(key, edit), edit, key=self.search.doubt)
        own, hidden = list(found.values()), [e for e in self.hidden if e.rank < NATURAL]
        pairs = [*itertools.combinations(own, 2), *itertools.product(own, hidden)]
        pairs = [
            (one, other)
            for one, other in pairs
            if one.line != other.line and not (one.takes and other.takes)
        ]
        pairs.sort(key=lambda pair: sum(map(self.search.doubt, pair)))
        texts = [(pair, text) for pair in pairs if (text := pair[0].after(pair[1]))]
        texts = texts[: MOST_OF_ALL // self.search.cost**2]
        gave = self.versions.in_the_call([text for _, text in texts])
        texts = [each for each, came in zip(texts, gave, strict=True) if self.versions.fits(came)]
        fine = self.versions.all_right([text for _, text in texts[:SURVIVE_OF_ALL]])
        right_ones = [p for (p, _), is_right in zip(texts, fine, strict=False) if is_right]
        return self._best(right_ones)

    def _best(self, pairs: list[tuple[Edit, Edit]]) -> tuple[Mended, ...]:
        """The likeliest of some pairs of changes, as it is told."""
        return self._told(*min(pairs, key=lambda p: self._doubts(*p))) if pairs else ()

    def _of_two_known_ones(self) -> tuple[Mended, ...]:
        """Two changes of which each alone gives what a known mistake gives, and both together what
        is asked for: each undoes the mistake that the other leaves."""
        known: dict[str, list[Edit]] = {}
        for edit, check, *_ in self.left:
            known.setdefault(check, []).append(edit)
        pairs = [
            ({left, right_one} != set(self.search.pair), one, other)
            for left, right_one in itertools.combinations(known, 2)
            for one, other in itertools.product(known[left], known[right_one])
            if one.line != other.line or one.place != other.place
        ]
        pairs.sort(key=lambda each: (each[0], self._doubts(*each[1:])))
        texts = [((one, other), one.after(other)) for _, one, other in pairs]
        texts = [each for each in texts if each[1]][:MOST_OF_KNOWN]
        gave = self.versions.in_the_call([text for _, text in texts])
        texts = [each for each, came in zip(texts, gave, strict=True) if self.versions.fits(came)]
        fine = self.versions.all_right([text for _, text in texts])
        found = [pair for (pair, _), is_right in zip(texts, fine, strict=True) if is_right]
        best = self._spoken_of(found)
        if not found or not self._is_one_place([best, *found]):
            return ()
        return self._told(*self._of_what_takes_it(best, found))

    def _of_what_takes_it(
        self, best: tuple[Edit, Edit], found: list[tuple[Edit, Edit]]
    ) -> tuple[Edit, Edit]:
        """A pair of changes, or another that does as much by leaving out the step which alone reads
        what one of them changes: that step does not belong there, whatever it reads."""
        for place, own in enumerate(best):
            for pair in found:
                other = pair[place]
                same = pair[1 - place].source == best[1 - place].source
                if same and other.takes and own.line in self._alone_feeds(other.line):
                    return pair
        return best

    def _alone_feeds(self, line: int) -> set[int]:
        """The lines that make what the statement of a line reads and no other one."""
        return set(made_for(line, self.wrong.source).values())

    def _spoken_of(self, found: list[tuple[Edit, Edit]]) -> tuple[Edit, Edit]:
        """The first of some pairs, or one as good, whose statements speak of what the known
        mistakes are said of: `q = turn(q)` for "the queries are turned"."""

        def speaks(pair: tuple[Edit, Edit]) -> int:
            own = (self._named(one, other) for one, other in (pair, pair[::-1]))
            return sum(
                is_about(e.line, m, self.wrong.source) for e, m in zip(pair, own, strict=True)
            )

        alike = [p for p in found if self._doubts(*p)[:2] == self._doubts(*found[0])[:2]]
        return max(alike, key=speaks, default=())

    def _two_changes(
        self, nearest: list[Edit], fits: Callable[[Edit, Edit], bool] = lambda *pair: True
    ) -> tuple[Mended, ...]:
        """Two changes that together make all right: one of those that bring the result nearer, and
        one of those that alone change something."""
        nearer = {edit.source for edit in self.nearest}
        stops = [self._stops_at(one) for one in nearest]

        def doubt(place: int, two: Edit) -> float:
            likely = two.source in nearer or two.line in stops[place]
            return place + self.search.doubt(two) - NEARER * likely

        found = [
            (doubt(place, two), one, two, text)
            for place, one in enumerate(nearest)
            for two, text in self._behind(one)
            if fits(one, two)
            if not (two.missing and (one.takes or two.rank >= ANYWHERE))
            if not (two.takes and one.missing)  # else a step is only moved
            if not (LESS.match(one.how) and LESS.match(two.how))  # else a term is missing
        ]
        found = [rest for _, *rest in sorted(found, key=lambda each: each[0])]
        cost = OF_ONE // 2 if self.search.stops else self.search.cost  # most stop once more
        found = found[: MOST_OF_TWO // cost]
        gave: dict[str, Outcome | None] = {}
        for one in nearest:
            own = [text for first, _, text in found if first is one]
            gave |= zip(own, self.versions.in_the_call(own, one.source), strict=True)
        survive = [each for each in found if self.versions.fits(gave[each[-1]])][:SURVIVE]
        fine = self.versions.all_right([text for *_, text in survive])
        right_ones = [each for each, is_right in zip(survive, fine, strict=True) if is_right]
        if not right_ones:
            return ()
        pairs = [(one, two) for one, two, _ in right_ones]
        best = min(pairs, key=lambda pair: self._doubts(*pair))
        return self._told(*self._of_what_takes_it(best, pairs))

    def _stops_at(self, one: Edit) -> set[int]:
        """The line on which an answer stops where a change is made, if it does, and those that make
        what that line takes."""
        line, _ = self.search.ends.get(one.source, (0, ""))
        lines = {line, *lines_that_feed({line}, one.source)} if line else set()
        return {line_before(each, one.source, self.wrong.source) for each in lines}

    def _behind(self, one: Edit) -> Iterator[tuple[Edit, str]]:
        """Second changes behind a first: those that alone change something."""
        stopped = self.wrong.outcomes[self.place].error is not None
        if stopped:  # then none runs but behind what mends the error
            text = self.wrong.source
            found = self.search.in_order([e.behind(one, text) for e in edits(one.source)])
            yield from ((two, two.source) for two in found if self.search.may_be(two))
            return
        behind = [*self.change, *self.hidden]
        yield from ((two, text) for two in behind if (text := one.after(two)))

    def after(self, one: Edit) -> list[Edit]:
        """The changes that make all right behind a first one, what is put in after all others."""
        (outcomes,) = self.versions.on_all([one.source])
        if outcomes is None:
            return []
        told = [each.where.first_wrong for each in self.versions.told_in(one.source, "")]
        search = Search(replace(self.wrong, source=one.source, outcomes=outcomes), {}, told=told)
        found = search.one() or search.missing()
        found = [edit.behind(one, self.wrong.source) for edit in found]
        return [edit for edit in found if edit.line != one.line]

    def _one_after(self, firsts: list[Edit]) -> tuple[Mended, ...]:
        """One of some changes that make a call right, or run at all, and one for what is not right
        then."""
        # What is missing could stand elsewhere, too.
        likely = sorted(firsts, key=lambda e: (e.missing, not e.is_natural))
        for one in likely[:MOST_OF_CALLS]:
            (outcomes,) = self.versions.on_all([one.source])
            if outcomes is not None:
                wrong = replace(self.wrong, source=one.source, outcomes=outcomes)
                behind = Search(wrong, {})
                found = behind.one() or behind.missing()
                moved = bool(found) and one.takes and found[0].missing  # a step elsewhere
                found = [e for e in found if e.line != one.line and not e.missing] or found
                other = (behind.made_for_it(found[0]) or found[0]) if found else None
                other = other.behind(one, self.wrong.source) if other is not None else None
                if other is not None and other.line != one.line and not moved:
                    return Mended.by(self.where_it_is_made(one)), Mended.by(other)
        return ()

    def _beside_a_known_one(self, nearest: list[Edit]) -> tuple[Mended, ...]:
        """A change with which what comes back is what a known mistake gives, where the steps show
        that mistake on another line: what takes a step away might have brought it in, and so might
        another operation in the place of one that stops."""
        if self.search.stops:
            nearest = [edit for edit in nearest if not OPERATION.match(edit.how)]
        for edit in nearest:
            for one, check, message, gives in self.left:
                if one.source != edit.source or edit.new.strip("()") in NOTHING:
                    continue  # with 0 in the place of a number much is as if it was left out
                if self.leaves(edit, gives):
                    left = self.left_by(edit, check)
                    line = self._at_its_part(left.where.first_wrong, gives) if left else None
                    if line not in (None, edit.line):
                        other = Mended(line, "", left.taken or message)
                        return Mended.by(edit), other
        return ()

    def _beside_what_the_steps_tell(self, nearest: list[Edit]) -> tuple[Mended, ...]:
        """A change behind which one step is wrong, and with that step mended nothing else, which is
        not so without the change."""
        if any(told.last for told in self.versions.told_in(self.wrong.source, "")):
            return ()
        for edit in (edit for edit in nearest if not (edit.takes or edit.by_name)):
            left = self.versions.told_in(edit.source, "", whole=True)
            if len(left) == 1 and left[0].last and left[0].where.first_wrong != edit.line:
                said = left[0].cause[1] if left[0].cause else left[0].where.how
                if said:
                    return Mended.by(edit), Mended(left[0].where.first_wrong, said)
        return ()

    def _told(self, one: Edit, two: Edit) -> tuple[Mended, ...]:
        """Two changes that together make all right, as they are told."""
        pairs = (one, two), (two, one)
        return tuple(
            Mended.by(self.of_the_bound(self.where_it_is_made(own), other), self._named(own, other))
            for own, other in pairs
        )

    def of_the_bound(self, own: Edit, other: Edit) -> Edit:
        """The change of the line that makes a bound for one comparison or one slice alone, where
        that does as much as a change there."""
        (start, end), source = own.place, self.wrong.source
        old = source[start:end]
        if not (is_comparison(old) or is_slice(old)):
            return own
        names = [name for name in names_in(old) if is_read_at(name, own.line, source)]
        lines = {n for name in names for n in lines_that_make(name, source, own.line, asked=False)}
        made = [e for e in self.search.tried if e.line in lines and e.is_natural]
        if is_comparison(old):
            made = [e for e in made if is_counted_from_one(e, source)]
        made = sorted(made, key=self.search.doubt)[:MOST_OF_KNOWN]
        texts = [(edit, text) for edit in made if (text := edit.after(other))]
        gave = self.versions.in_the_call([text for _, text in texts])
        texts = [each for each, came in zip(texts, gave, strict=True) if self.versions.fits(came)]
        fine = self.versions.all_right([text for _, text in texts])
        return next((e for (e, _), is_right in zip(texts, fine, strict=True) if is_right), own)

    def where_it_is_made(self, edit: Edit) -> Edit:
        """The change of the line that makes a variable for this one place, where that gives the
        same as another name there, or something else is put there."""
        made = self.search.made_for_it(edit)
        if made is not None:
            return made
        start, end = edit.place
        source, old = self.wrong.source, self.wrong.source[start:end]
        made = lines_that_make(old, source, edit.line)[-1:]
        of_it = bool(made) and edit.new in names_read_on(made[0], source)
        if not edit.by_name or not (is_read_at(old, edit.line, source) or of_it):
            return edit
        gave = dict(zip((e.source for e in self.search.tried), self.search.gave, strict=True))
        came = gave.get(edit.source)
        for other in self.search.tried if made and came is not None else ():
            natural = other.line in made and other.rank <= NATURAL and not other.missing
            if natural and gave[other.source] and matches(gave[other.source], came, self.rtol):
                return other
        return edit

    def _doubts(self, one: Edit, other: Edit) -> tuple[int, float, int]:
        """How unlikely two changes are that do as well as others: those of lines that the steps
        tell come first, and of what such lines take; of equal ones the last lines, up to which all
        may be right, and the first ones on which something could be missing."""
        told = len({one.line, other.line} & (self.search.told | self.search.feeding))
        late = sum(each.line if each.missing else -each.line for each in (one, other))
        return -told, self.search.doubt(one) + self.search.doubt(other), late

    def _is_one_place(self, found: list[tuple[Edit, Edit]]) -> bool:
        """Whether what is missing in the first of some pairs is so on no other line in another."""
        best = found[0]
        for place, edit in enumerate(best):
            others = [pair[place] for pair in found]
            if edit.missing and any(each.line != edit.line for each in others):
                return False
        return True

    def _named(self, own: Edit, other: Edit) -> str:
        """The known mistake that a change undoes, in its own words: what comes back with the other
        change alone. '' where it is none, or the change itself says best which of several is meant.
        """
        if own.by_name:
            return ""
        left = ((m, gives) for edit, _, m, gives in self.left if edit.source == other.source)
        return next((message for message, gives in left if self.leaves(other, gives)), "")

    def leaves(self, edit: Edit, gives: Sequence[Outcome]) -> bool:
        """Whether a change leaves what a known mistake gives, in all calls that chance has no part
        in."""
        (came,) = self.versions.on_all([edit.source])
        return bool(came) and all(
            self.versions.same(got, wanted)
            for place, (got, wanted) in enumerate(zip(came, gives, strict=False))
            if not self.versions.is_by_chance(place)
        )

    def _at_its_part(self, line: int, gives: Sequence[Outcome]) -> int:
        """The line of a known mistake; of one that shows where several results are returned that
        which alone makes what it spoils."""
        at_the_end = self.parts is not None and line == self.parts.last
        return (self.of_its_part(gives) or line) if at_the_end else line

    def of_its_part(self, gives: Sequence[Outcome]) -> int | None:
        """The line that alone makes those of several results that a known mistake spoils."""
        if self.parts is None:
            return None
        return self.parts.only(wrong_parts(self.wrong, gives, self.parts) or set())

    def left_by(self, edit: Edit, check: str) -> Told | None:
        """What the steps say of a known mistake that is left when a change is made."""
        told = self.versions.told_in(edit.source, check)
        own = [each for each in told if (each.cause[0] == check if each.cause else each.last)]
        own = own or (told if len(told) == 1 and told[0].cause is None else [])
        return own[0] if len(own) == 1 else None

    @cached_property
    def left(self) -> list[tuple[Edit, str, str, Sequence[Outcome]]]:
        """The changes behind which a known mistake is left, in the call that is looked at: each
        with the mistake's check and message, and what it gives in all calls. None that does not
        show in this call."""
        wanted = self.wrong.known.expected[self.place]
        known = (*self.wrong.known.mistakes, *self.wrong.known.exchanged)
        known = [each for each in known if not self.versions.same(each[2][self.place], wanted)]
        marks = [mark(gives[self.place]) for *_, gives in known]
        changed, found = {edit.source for edit in self.change}, []
        for edit, gave in zip(self.search.tried, self.search.gave, strict=True):
            if edit.source not in changed or gave.error is not None:
                continue
            own = mark(gave)
            for (check, message, gives), theirs in zip(known, marks, strict=True):
                left = gives[self.place]
                # Both ways, for only what is asked for says of which type it is to be.
                alike = may_match(own, theirs) and self.versions.same(gave, left)
                if alike and self.versions.same(left, gave):
                    found.append((edit, check, message, gives))
        return found

    @cached_property
    def change(self) -> list[Edit]:
        """Those that were tried with which something else comes back; all of them where it is one
        number in all places, which most changes leave as they are."""
        as_it_is = self.wrong.outcomes[self.place]
        came = [
            (e, g)
            for e, g in zip(self.search.tried, self.search.gave, strict=True)
            if g is not None
        ]
        one = all_one(as_it_is)
        return [
            e
            for e, g in came
            if one or not matches(g, as_it_is, self.rtol) or g.after.keys() != as_it_is.after.keys()
        ]

    @cached_property
    def hidden(self) -> list[Edit]:
        """The natural changes with which the same comes back: what shows only where another slip
        is undone."""
        changed = {edit.source for edit in self.change}
        return [
            edit
            for edit, gave in zip(self.search.tried, self.search.gave, strict=True)
            if edit.is_natural and edit.source not in changed
            if gave is not None and gave.error is None
        ]

    @cached_property
    def by_distance(self) -> list[list[Edit]]:
        """The changes that bring the result nearer to what is asked for, the nearest first; of
        those that come equally near the first few."""
        if self.place is None:
            return []
        wanted = self.wrong.known.expected[self.place]
        if isinstance(wanted.value, Sketch) or wanted.error is not None or self.search.by_chance:
            return []
        base = self.wrong.outcomes[self.place]
        as_it_is, scaled = distance(base, wanted), is_a_factor_off(base, wanted)
        found: dict[float, list[Edit]] = {}
        for edit, gave in zip(self.search.tried, self.search.gave, strict=True):
            far = distance(gave, wanted)
            if not scaled and is_a_factor_off(gave, wanted):
                far = min(far, as_it_is) / 2  # one number more is wrong, and no more than that
            if far < as_it_is - 1e-6:
                alike = found.setdefault(round(far, 6), [])
                if edit.takes and alike:  # then the first does no more than that
                    alike[0] = replace(alike[0], takes=True)
                elif len(alike) < MOST_ALIKE:
                    alike.append(edit)
        return [alike for _, alike in sorted(found.items(), key=lambda each: each[0])]

    @cached_property
    def nearest(self) -> list[Edit]:
        """One change for each distance."""
        nearest = [alike[0] for alike in self.by_distance]
        if self.place is None or self.wrong.outcomes[self.place].error is None:
            return nearest
        best: dict[str, Edit] = {}  # of what is put in one place to run at all, the likeliest
        for edit in nearest:
            first = best.setdefault(edit.how, edit)
            best[edit.how] = min(first, edit, key=self.search.doubt)
        return list(best.values())

    def to_begin_with(self, where: Where | None) -> list[Edit]:
        """The changes behind which one other thing may be wrong: easy ones of the line that the
        steps tell, and the nearest."""
        told = {where.first_wrong} if where is not None else set()
        return [*self._easy_on(told)[:OF_TOLD], *self.nearest]

    def _easy_on(self, lines: Collection[int]) -> list[Edit]:
        """The natural changes of some lines that take nothing away and change what comes back."""
        changes = self.change if self.place is not None else ()
        easy = [e for e in changes if e.line in lines and e.is_natural and not e.takes]
        return self.search.in_order(easy)

    @property
    def that_run(self) -> list[Edit]:
        """Of an answer that stops with an error: the changes with which it does not, or only on a
        later line, or easy ones with another error, the likeliest first; of those that give the
        same one, and behind all of these another."""
        error = self.wrong.outcomes[self.place].error or {}
        stops, kind = error.get("line") or math.inf, error.get("type")
        found: dict[str, list[Edit]] = {}
        for edit, gave in zip(self.search.tried, self.search.gave, strict=True):
            end, other = self.search.ends.get(edit.source, (0, kind))
            runs = gave is not None and gave.error is None
            easy = edit.rank < NATURAL and edit.is_natural and not edit.takes
            later = end > stops or (end == stops and other != kind and easy)
            there = edit.line == stops or (easy and edit.line in self.search.feeding)
            anywhere = edit.missing and not (later and edit.rank < ANYWHERE)
            if (runs or (later and there)) and not anywhere:
                found.setdefault(str(mark(gave)) if runs else edit.source, []).append(edit)
        likely = [self._in_several_places(alike) for alike in found.values()]
        turns = ([own[i] for own in likely if len(own) > i] for i in range(MOST_OF_PLACES))
        return [edit for turn in turns for edit in self.search.in_order(turn)]

    def _in_several_places(self, alike: list[Edit]) -> list[Edit]:
        """The likeliest of some changes in each place of the text, the likeliest first."""
        best: dict[tuple[int, int], Edit] = {}
        for edit in sorted(alike, key=self.search.doubt):
            best.setdefault(edit.place, edit)
        return list(best.values())

    def _nearest_by_place(self) -> list[Edit]:
        """The nearest changes that take nothing away, each with those of its line that come equally
        near: not all of them do so in all calls."""
        groups = {alike[0].source: alike for alike in self.by_distance}
        firsts = [edit for edit in self.nearest if not (edit.takes or edit.by_name)]
        return [
            each
            for edit in firsts
            for each in groups.get(edit.source, [edit])
            if each.line == edit.line and not (each.takes or each.by_name)
        ]
