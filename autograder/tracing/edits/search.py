"""Looks for the one small change of a program with which all that is asked of it comes out right.

Whether a change does so is no guess: it is tried, on every call. What it undoes is what is wrong.
Where none does, two are tried: a change that brings the result nearer to what is asked for, and a
second one, or a mistake that is known. How many are tried is bound by counts, so that the same text
always gets the same words.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from autograder.course.calls import Outcome
from autograder.course.sketch import Sketch
from autograder.judging.difference import matches
from autograder.tracing.edits.distance import all_one, are_apart, distance, mark, may_match
from autograder.tracing.edits.kinds.all import edits
from autograder.tracing.edits.kinds.missing import ANYWHERE
from autograder.tracing.edits.kinds.source import Edit, lines_that_feed, lines_that_make
from autograder.tracing.edits.parts import parts_of, wrong_parts
from autograder.tracing.edits.place import DRAWS
from autograder.tracing.edits.versions import Versions, WrongAnswer
from autograder.tracing.look import Told

MOST = 20_000  # steps that are made for all single changes; a hundred take a millisecond
FEWEST = 30  # changes that are tried, whatever they cost, and at once
MOST_OF_NAMED = 10_000  # the same where the mistake has a name already
MOST_OF_ONE_LINE = 6_000  # the same for a line that the steps tell
MOST_OF_KNOWN = 16  # pairs of changes that each leave a known mistake
MOST_OF_TWO = 12_000  # the same for two at once
OF_ONE = 60  # what it costs beside its steps to try one
OF_A_CLASS = 60  # and to make its object
MOST_OF_CALLS = 2  # changes that make one call right, of which the other calls are looked at
SURVIVE = 8  # versions that are tried on all calls
MOST_JUDGED = 24  # versions that are judged where chance has a part in all that comes back
FEW_LINES = 3  # that run only where something is wrong, so that one of them is likely to be
NEAREST = 4  # changes behind which a second one is looked for
MOST_ALIKE = 4  # of those that come equally near
NEARER = 3  # how much likelier a second one is that alone brings the result nearer, too
SURELY_RIGHT = 2  # how likely a line is right that is known to be
TOLD = 4  # how much likelier a change is on a line that the steps tell
FEEDS = 2  # the same on one that makes what such a line takes, or runs in no call that is right
TURNED = ".transpose("  # how a change exchanges axes
TOLD_TO_LACK = 2  # the same for what is missing, which shows on a later line, too


@dataclass(frozen=True)
class Mended:
    """One of two things that are wrong: its line, how it is so, and a known mistake's own words."""

    line: int
    how: str
    known: str = ""


class Search:
    """The versions of one answer that were tried, and what came of them in one call.

    likely: by line how well what it gives is known to be right, from 0. named: whether a known
    mistake explains all, so that its line alone is looked for. told: the lines that the steps tell.
    pair: the known mistakes that together explain all, if it is known which.
    """

    def __init__(
        self,
        wrong: WrongAnswer,
        likely: Mapping[int, float],
        named: bool = False,
        told: Sequence[int] = (),
        pair: Sequence[str] = (),
    ):
        self.wrong, self.likely = wrong, likely
        self.parts = parts_of(wrong)
        turned = self.parts is not None and self.parts.turned
        self.told = frozenset([*told, self.parts.last] if turned else told)
        feeding = lines_that_feed(self.told, wrong.source)
        self.feeding = {line for line in feeding if likely.get(line, 1) < SURELY_RIGHT}
        self.only_there: set[int] = set()
        self.versions, self.pair = Versions(wrong, tuple(pair)), set(pair)
        self.place, self.rtol = self.versions.place, self.versions.rtol
        self.by_chance = self.versions.by_chance
        in_training = self.place is not None and wrong.calls[self.place].train
        only_there = self.by_chance or in_training
        lines = enumerate(wrong.source.splitlines() if only_there else (), 1)
        self.draws = {number for number, line in lines if DRAWS.search(line)}
        self.cost, self.spent, self.most = OF_ONE, 0, MOST
        self.all: list[Edit] = []
        self.order: list[Edit] = []
        self.tried: list[Edit] = []
        self.gave: list[Outcome | None] = []
        self.judged = 0
        self.mending: list[Edit] = []  # what mends all
        self.nearly: list[Edit] = []  # what mends the call that is looked at, and not all
        error = wrong.outcomes[self.place].error if self.place is not None else None
        if error is not None and isinstance(error.get("line"), int):
            self.feeding |= {error["line"], *lines_that_feed({error["line"]}, wrong.source)}
        if self.place is not None:
            self.only_there = self.versions.lines_only_where_wrong
            trace = self.versions.steps(self.place)
            steps = len(trace.steps) if trace is not None else 0
            self.cost += steps + OF_A_CLASS * (wrong.calls[self.place].init is not None)
            self.all = self._in_order(edits(wrong.source))
            self.order = [edit for edit in self.all if self._may_be(edit)]
            self.most = MOST_OF_NAMED if named and not self.draws else MOST

    def one(self) -> list[Edit]:
        """The single changes that make all right, the likeliest first. Of those that are as likely
        as one another all are tried, and none that is less likely where one of them does it."""
        for _, group in itertools.groupby(self.order, key=self.doubt):
            found, left = [], list(group)
            while left and (self.spent < self.most or len(self.tried) < FEWEST):
                found += self._that_mend(left[:FEWEST])
                left = left[FEWEST:]
            if found or left:
                return found
        return []

    def at(self, line: int) -> list[Edit]:
        """The single changes of one line that make all right; after `one`, which need not have
        come to them."""
        tried = {edit.source for edit in self.tried}
        own = [e for e in self.all if e.line == line and e.source not in tried]
        return self._that_mend(own[: MOST_OF_ONE_LINE // self.cost])

    def where_it_is_made(self, edit: Edit) -> Edit | None:
        """A change of the lines that make a variable, which mends as much as one that turns it
        where it is read, and is as natural. Not of lines that are known to be right; where axes are
        exchanged, whose order is not known, it is more natural."""
        start, end = edit.place
        name = self.wrong.source[start:end]
        if not name.isidentifier() or edit.by_name or name == edit.new or name not in edit.new:
            return None
        turns = TURNED in edit.new
        for line in reversed(lines_that_make(name, self.wrong.source, edit.line)):
            if turns or self.likely.get(line, 1) < SURELY_RIGHT:
                own = [e for e in self.mending if e.line == line] + self.at(line)
                own = [e for e in own if not (e.missing or e.by_name)]
                own = [e for e in own if e.rank <= edit.rank - turns]
                if own:
                    return own[0]
        return None

    def _that_mend(self, group: list[Edit]) -> list[Edit]:
        """Those of some changes that make all right; what each gives is kept."""
        gave = self.versions.in_the_call([edit.source for edit in group])
        stopped = sum(came is None or came.error is not None for came in gave)
        self.spent += OF_ONE * stopped + self.cost * (len(gave) - stopped)
        self.tried += group
        self.gave += gave
        pairs = zip(group, gave, strict=True)
        survive = [edit for edit, came in pairs if self.versions.fits(came)]
        survive = survive[: MOST_JUDGED - self.judged if self.by_chance else SURVIVE]
        self.judged += len(survive)
        fine = self.versions.all_right([edit.source for edit in survive])
        self.nearly += [edit for edit, is_right in zip(survive, fine, strict=True) if not is_right]
        found = [edit for edit, is_right in zip(survive, fine, strict=True) if is_right]
        self.mending += found
        return found

    def two(self, named: bool = False) -> tuple[Mended, ...]:
        """Two changes that together make all right, or one beside a known mistake; after `one`.

        named: whether a known mistake explains what came back.
        """
        if self.place is None or not self.tried:
            return ()
        stopped = self.wrong.outcomes[self.place].error is not None
        if named and not stopped:  # its name explains what came back: the rest shows elsewhere
            return (
                self._two_changes(self.nearly[:NEAREST])
                or self._one_after(self.nearly)
                or self.two_natural()
            )
        likely = [e for e in self.nearest if not (e.missing and e.rank >= ANYWHERE)]
        second = [alike[1] for alike in self.by_distance if len(alike) > 1]
        return (
            self._of_two_known_ones()
            or self._two_changes([*likely, *second][:NEAREST])
            or self._one_after(likely if stopped else self.nearly)
            or self._beside_a_known_one(self._nearest_by_place())
            or self._beside_what_the_steps_tell(likely[:NEAREST])
        )

    def two_natural(self) -> tuple[Mended, ...]:
        """Two natural slips in two lines that together are all that is wrong, each with places of
        the result of its own; after `one`."""
        if self.place is None:
            return ()
        gave = {e.source: g for e, g in zip(self.tried, self.gave, strict=True)}
        as_it_is = self.wrong.outcomes[self.place]

        def fits(one: Edit, two: Edit) -> bool:
            apart = one.line != two.line and two.is_natural
            return apart and are_apart(as_it_is, gave[one.source], gave[two.source])

        return self._two_changes([e for e in self.nearest if e.is_natural][:NEAREST], fits)

    @cached_property
    def left(self) -> list[tuple[Edit, str, str, Sequence[Outcome]]]:
        """The changes behind which a known mistake is left, in the call that is looked at: each
        with the mistake's check and message, and what it gives in all calls."""
        known = (*self.wrong.known.mistakes, *self.wrong.known.exchanged)
        marks = [mark(gives[self.place]) for *_, gives in known]
        changed, found = {edit.source for edit in self.change}, []
        for edit, gave in zip(self.tried, self.gave, strict=True):
            if edit.source not in changed or gave.error is not None:
                continue
            own = mark(gave)
            for (check, message, gives), theirs in zip(known, marks, strict=True):
                if may_match(own, theirs) and matches(gave, gives[self.place], self.rtol):
                    found.append((edit, check, message, gives))
        return found

    def _of_two_known_ones(self) -> tuple[Mended, ...]:
        """Two changes of which each alone gives what a known mistake gives, and both together what
        is asked for: each undoes the mistake that the other leaves."""
        known: dict[str, list[Edit]] = {}
        for edit, check, *_ in self.left:
            known.setdefault(check, []).append(edit)
        pairs = [
            ({left, right_one} != self.pair, one, other)
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
        return self._told(*found[0]) if found and self._is_one_place(found) else ()

    def _told(self, one: Edit, two: Edit) -> tuple[Mended, ...]:
        """Two changes that together make all right, as they are told."""
        pairs = (one, two), (two, one)
        return tuple(Mended(own.line, own.how, self._named(own, other)) for own, other in pairs)

    def _doubts(self, one: Edit, other: Edit) -> tuple[int, float, int]:
        """How unlikely two changes are that do as well as others: those of lines that the steps
        tell come first, and of what such lines take; of equal ones the last lines, up to which all
        may be right, and the first ones on which something could be missing."""
        told = len({one.line, other.line} & (self.told | self.feeding))
        late = sum(each.line if each.missing else -each.line for each in (one, other))
        return -told, self.doubt(one) + self.doubt(other), late

    def _is_one_place(self, found: list[tuple[Edit, Edit]]) -> bool:
        """Whether what is missing in the first of some pairs is so on no other line in another."""
        best = found[0]
        for place, edit in enumerate(best):
            others = [pair[place] for pair in found]
            if edit.missing and any(each.line != edit.line for each in others):
                return False
        return True

    def _two_changes(
        self, nearest: list[Edit], fits: Callable[[Edit, Edit], bool] = lambda *pair: True
    ) -> tuple[Mended, ...]:
        """Two changes that together make all right: one of those that bring the result nearer, and
        one of those that alone change something."""
        nearer = {edit.source for edit in self.nearest}
        found = [
            (place + self.doubt(two) - NEARER * (two.source in nearer), one, two, text)
            for place, one in enumerate(nearest)
            for two, text in self._behind(one)
            if fits(one, two)
            if not (two.missing and (one.takes or two.rank >= ANYWHERE))
            if not (two.takes and one.missing)  # else a step is only moved
        ]
        found = [rest for _, *rest in sorted(found, key=lambda each: each[0])]
        found = found[: MOST_OF_TWO // self.cost]
        gave: dict[str, Outcome | None] = {}
        for one in nearest:
            own = [text for first, _, text in found if first is one]
            gave |= zip(own, self.versions.in_the_call(own, one.source), strict=True)
        survive = [each for each in found if self.versions.fits(gave[each[-1]])][:SURVIVE]
        fine = self.versions.all_right([text for *_, text in survive])
        right_ones = [each for each, is_right in zip(survive, fine, strict=True) if is_right]
        if not right_ones:
            return ()
        one, two, _ = min(right_ones, key=lambda each: self._doubts(*each[:2]))
        return self._told(one, two)

    def _one_after(self, firsts: list[Edit]) -> tuple[Mended, ...]:
        """One of some changes that make a call right, or run at all, and one for what is not right
        then."""
        at_its_end = [edit for edit in firsts if edit.missing]  # it could stand elsewhere, too
        for one in [*(e for e in firsts if not e.missing), *at_its_end][:MOST_OF_CALLS]:
            (outcomes,) = self.versions.on_all([one.source])
            if outcomes is not None:
                wrong = replace(self.wrong, source=one.source, outcomes=outcomes)
                found = Search(wrong, {}).one()
                moved = bool(found) and one.takes and found[0].missing  # a step elsewhere
                if found and found[0].line != one.line and not moved:
                    return tuple(Mended(each.line, each.how) for each in (one, found[0]))
        return ()

    def _named(self, own: Edit, other: Edit) -> str:
        """The known mistake that a change undoes, in its own words: what comes back with the other
        change alone. '' where it is none, or the change itself says best which of several is meant.
        """
        if own.by_name:
            return ""
        left = ((m, gives) for edit, _, m, gives in self.left if edit.source == other.source)
        return next((message for message, gives in left if self._leaves(other, gives)), "")

    def _leaves(self, edit: Edit, gives: Sequence[Outcome]) -> bool:
        """Whether a change leaves what a known mistake gives, in all calls."""
        (came,) = self.versions.on_all([edit.source])
        pairs = zip(came or (), gives, strict=False)
        return bool(came) and all(matches(got, wanted, self.rtol) for got, wanted in pairs)

    def _may_be(self, edit: Edit) -> bool:
        """Whether a change is tried wherever it stands: not on a line that has no part in what is
        wrong; nothing of a kind that could be anywhere is missing on a line that gives what is
        right, and of a name that is read once nobody knows which line is wrong."""
        if self.parts is not None and self.parts.is_idle(edit.line):
            return False
        anywhere = edit.missing and edit.rank >= ANYWHERE
        runs = self.wrong.outcomes[self.place].error is None  # else what is right may not fit
        return not (edit.unsure or (anywhere and runs and self.likely.get(edit.line, 1) == 2))

    def _in_order(self, found: list[Edit]) -> list[Edit]:
        """The likeliest first: natural slips, on lines that are not known to be right."""
        return sorted(found, key=lambda edit: (self.doubt(edit), edit.rank, edit.missing))

    def doubt(self, edit: Edit) -> float:
        """How unlikely it is that a change undoes the slip: an odd one, on a right line, or on
        another than the steps tell."""
        much = TOLD_TO_LACK if edit.missing else TOLD
        told = much * (edit.line in self.told or edit.line in self.draws)
        if not (told or edit.missing):
            few = TOLD if len(self.only_there) <= FEW_LINES else FEEDS
            told = few * (edit.line in self.only_there) or FEEDS * (edit.line in self.feeding)
        shared = self.parts is not None and self.parts.is_shared(edit.line)
        return 2 * edit.rank + self.likely.get(edit.line, 1) - told + shared

    # --- two at once -----------------------------------------------------------------------------
    @cached_property
    def by_distance(self) -> list[list[Edit]]:
        """The changes that bring the result nearer to what is asked for, the nearest first; of
        those that come equally near the first few."""
        wanted = self.wrong.known.expected[self.place]
        if isinstance(wanted.value, Sketch) or wanted.error is not None or self.by_chance:
            return []
        as_it_is = distance(self.wrong.outcomes[self.place], wanted)
        found: dict[float, list[Edit]] = {}
        for edit, gave in zip(self.tried, self.gave, strict=True):
            far = distance(gave, wanted)
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
        if self.wrong.outcomes[self.place].error is None:
            return nearest
        best: dict[str, Edit] = {}  # of what is put in one place to run at all, the likeliest
        for edit in nearest:
            first = best.setdefault(edit.how, edit)
            best[edit.how] = min(first, edit, key=self.doubt)
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

    def _behind(self, one: Edit) -> Iterator[tuple[Edit, str]]:
        """Second changes behind a first: those that alone change something."""
        stopped = self.wrong.outcomes[self.place].error is not None
        if stopped:  # then none runs but behind what mends the error
            found = self._in_order(edits(one.source))
            yield from ((two, two.source) for two in found if self._may_be(two))
            return
        yield from ((two, text) for two in self.change if (text := one.after(two)))

    @cached_property
    def change(self) -> list[Edit]:
        """Those that were tried with which something else comes back; all of them where it is one
        number in all places, which most changes leave as they are."""
        as_it_is = self.wrong.outcomes[self.place]
        came = [(e, g) for e, g in zip(self.tried, self.gave, strict=True) if g is not None]
        one = all_one(as_it_is)
        return [
            e
            for e, g in came
            if one or not matches(g, as_it_is, self.rtol) or g.after.keys() != as_it_is.after.keys()
        ]

    def _beside_a_known_one(self, nearest: list[Edit]) -> tuple[Mended, ...]:
        """A change with which what comes back is what a known mistake gives, where the steps show
        that mistake on another line: what takes a step away might have brought it in."""
        for edit in nearest:
            for one, check, message, gives in self.left:
                if one.source != edit.source:
                    continue
                if self._leaves(edit, gives):
                    left = self._left_by(edit, check)
                    line = self._at_its_part(left.where.first_wrong, gives) if left else None
                    if line not in (None, edit.line):
                        other = Mended(line, "", left.taken or message)
                        return Mended(edit.line, edit.how), other
        return ()

    def _at_its_part(self, line: int, gives: Sequence[Outcome]) -> int:
        """The line of a known mistake; of one that shows where several results are returned that
        which alone makes what it spoils."""
        if self.parts is None or line != self.parts.last:
            return line
        return self.parts.only(wrong_parts(self.wrong, gives, self.parts) or set()) or line

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
                    return Mended(edit.line, edit.how), Mended(left[0].where.first_wrong, said)
        return ()

    def _left_by(self, edit: Edit, check: str) -> Told | None:
        """What the steps say of a known mistake that is left when a change is made."""
        told = self.versions.told_in(edit.source, check)
        own = [each for each in told if (each.cause[0] == check if each.cause else each.last)]
        own = own or (told if len(told) == 1 and told[0].cause is None else [])
        return own[0] if len(own) == 1 else None
