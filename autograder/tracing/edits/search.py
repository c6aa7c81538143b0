"""Looks for the one small change of a program with which all that is asked of it comes out right.

Whether a change does so is no guess: it is tried, on every call. What it undoes is what is wrong.
Where none does, two are tried (`pairs.py`). How many are tried is bound by counts, so that the same
text always gets the same words.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from autograder.course.calls import Made, Outcome
from autograder.tracing.edits.kinds.all import edits, source_of
from autograder.tracing.edits.kinds.another_type import of_another_type
from autograder.tracing.edits.kinds.missing import ANYWHERE, shares_what_is_raw
from autograder.tracing.edits.kinds.put_in import put_in
from autograder.tracing.edits.kinds.source import (
    NATURAL,
    Edit,
    conditions_of,
    is_alias,
    is_comparison,
    is_counted_from_one,
    is_read_at,
    is_read_once,
    is_slice,
    is_strict,
    is_worked_out,
    lines_that_feed,
    lines_that_make,
    names_in,
)
from autograder.tracing.edits.parts import parts_of
from autograder.tracing.edits.place import DRAWS
from autograder.tracing.edits.versions import Versions, WrongAnswer

MOST = 30_000  # what all single changes may cost; a hundred take half a millisecond
FEWEST = 30  # changes that are tried, whatever they cost, and at once
MOST_OF_NAMED = 10_000  # the same where the mistake has a name already
MOST_PUT_IN = 40_000  # the same for what is put into expressions
LONGER = 3  # how often as much where nothing else is found, or two changes are
MOST_OF_ONE_LINE = 6_000  # the same for a line that the steps tell
OF_ONE = 60  # what it costs to try one, beside half of its steps
OF_A_CLASS = 60  # and to make its object
OF_A_MODEL = 8  # how much longer steps of a model take
SURVIVE = 8  # versions that are tried on all calls
MOST_JUDGED = 24  # versions that are judged where chance has a part in all that comes back
MOST_FEEDING = 4  # lines that make what the one that the steps tell takes
FEW_LINES = 3  # that run only where something is wrong, so that one of them is likely to be
SURELY_RIGHT = 2  # how likely a line is right that is known to be
TOLD = 4  # how much likelier a change is on a line that the steps tell
FEEDS = 2  # the same on one that makes what such a line takes, or runs in no call that is right
# An argument by its name that is a variable, or what a method makes of one; a root that is handed
# on as a `scale` is a right one.
HANDED = re.compile(r"[\s,]*(?!scale=)\w+=(\w+)(?:\.[^,=]*(?:, [^,=]*)?)?[\s,]*")
ONE_MORE = re.compile(r"\(*\w+\)* [+-] 1\)*")  # a number that is one off where it is made
PART_OF_IT = re.compile(r"\(*\w+\)* // [\w.]+\)*")  # a size of which one part is meant
BESIDE_ONE = re.compile(r"\b(\w+) [+-] 1\b")  # what is made one more or less in a comparison
TURNED = ".transpose("  # how a change exchanges axes
LETTERS = re.compile(r"the letters `[^`]*` do not say ")  # how it is told that they stand wrong
BY_ONE = re.compile(r" [+-] 1\)*")  # how a change makes a number one less, or one more
OF_LINE = re.compile(r"\bline (\d{1,6})\b")
ORDER = re.compile(r"it (?:runs|overwrites|counts|reads|leaves) ")  # of when a statement runs
DEAR = 300  # what a try may cost, beyond which a line is spared that what is right is made with
TOLD_TO_LACK = 2  # the same for what is missing, which shows on a later line, too


class Search:
    """The versions of one answer that were tried, and what came of them in one call.

    likely: by line how well what it gives is known to be right, from 0. named: whether a known
    mistake explains all, so that its line alone is looked for. told: the lines that the steps tell.
    pair: the known mistakes that together explain all, if it is known which. one_off: whether what
    came back is as if some number was one off.
    """

    def __init__(
        self,
        wrong: WrongAnswer,
        likely: Mapping[int, float],
        named: bool = False,
        told: Sequence[int] = (),
        pair: Sequence[str] = (),
        one_off: bool = False,
    ):
        self.one_off = one_off
        self.wrong, self.likely, self.pair = wrong, likely, tuple(pair)
        self.parts = parts_of(wrong)
        turned = self.parts is not None and self.parts.turned
        told = {*told, self.parts.last} if turned else {*told}
        self.told = frozenset(told | conditions_of(told, wrong.source))
        feeding = lines_that_feed(self.told, wrong.source)
        self.feeding = {line for line in feeding if likely.get(line, 1) < SURELY_RIGHT}
        self.feeding |= conditions_of(self.feeding, wrong.source)
        bad = {line for line, how in likely.items() if not how}
        self.bad = bad if len(bad) <= FEW_LINES else set()
        self.only_there: set[int] = set()
        self.few = FEEDS
        self.versions = Versions(wrong, self.pair)
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
        given = wrong.calls[self.place].args if self.place is not None else ()
        self.asks_a_model = any(isinstance(each, Made) for each in given)
        error = wrong.outcomes[self.place].error if self.place is not None else None
        self.stops = error is not None
        self.ends: dict[str, tuple[int, str]] = {}  # where versions stop, and with which error
        if error is not None and isinstance(error.get("line"), int):
            self.feeding |= {error["line"], *lines_that_feed({error["line"]}, wrong.source)}
        if self.place is not None:
            self.only_there = self.versions.lines_only_where_wrong
            self.few = TOLD if len(self.only_there) <= FEW_LINES else FEEDS
            self.only_there |= conditions_of(self.only_there, wrong.source)
            trace = self.versions.steps(self.place)
            steps = len(trace.steps) if trace is not None else 0
            self.cost += steps // 2 + OF_A_CLASS * (wrong.calls[self.place].init is not None)
            self.all = self.in_order(edits(wrong.source))
            self.order = [edit for edit in self.all if self.may_be(edit)]
            if self.versions.changes_alone:
                self.order = [edit for edit in self.order if edit.copies]
            self.most = MOST_OF_NAMED if named and not self.draws else MOST

    def one(self) -> list[Edit]:
        """The single changes that make all right, the likeliest first. Of those that are as likely
        as one another all are tried, and none that is less likely where one of them does it."""
        tried = {edit.source for edit in self.tried}
        new = [edit for edit in self.order if edit.source not in tried]
        for _, group in itertools.groupby(new, key=self.doubt):
            found, left = [], list(group)
            while left and (self.spent < self.most or len(self.tried) < FEWEST):
                found += self._that_mend(left[:FEWEST])
                left = left[FEWEST:]
            if found or left:
                return found
        return []

    def longer(self) -> list[Edit]:
        """The same for longer; after `one`, which found none. Not where a model is asked each time,
        which takes long as it is."""
        self.most = MOST if self.asks_a_model else LONGER * MOST
        return self.one()

    def missing(self) -> list[Edit]:
        """The changes that put a step into an expression and make all right, after all others: the
        likeliest first, of lines that are not known to be right. They have no part in pairs."""
        if self.place is None or self.by_chance:
            return []
        source = source_of(self.wrong.source) if self.stops else None
        found = self._of_new(of_another_type(source)) if source is not None else []
        return found or self._of_new(put_in(self.wrong.source))

    def _of_new(self, edits: list[Edit]) -> list[Edit]:
        tried = {edit.source for edit in self.tried}
        new = [e for e in self.in_order(edits) if e.source not in tried]
        new = [e for e in new if self.may_be(e) and self.likely.get(e.line, 1) < SURELY_RIGHT]
        dear = self.asks_a_model and not self.stops  # what stops, stops before that, as a rule
        most = MOST_PUT_IN // (OF_A_MODEL if dear else 1)
        before, spent = (self.tried, self.gave, self.nearly), self.spent
        self.tried, self.gave, self.nearly = [], [], []
        found: list[Edit] = []
        while new and self.spent < spent + most:
            found += self._that_mend(new[:FEWEST])
            new = new[FEWEST:]
        (self.tried, self.gave, self.nearly), self.spent = before, spent
        return found

    def at(self, line: int) -> list[Edit]:
        """The single changes of one line that make all right; after `one`, which need not have
        come to them."""
        return self.of_the_rest(e for e in self.all if e.line == line)

    def that_feed(self, line: int) -> list[Edit]:
        """The changes that make all right of a line which makes what another one takes, the nearest
        first, where none of that line does; after `one`, which need not have come to them."""
        if self.place is None or self.at(line):
            return []
        feeding = lines_that_feed({line}, self.wrong.source)
        nearest = sorted(feeding, key=lambda each: (each > line, abs(line - each)))
        found = (self.at(each) for each in nearest[:MOST_FEEDING])
        return next((some for some in found if some), [])

    def of_order(self) -> list[Edit]:
        """The changes of the order in which statements run that make all right, wherever they
        stand; after `one`, which need not have come to them."""
        return self.of_the_rest(e for e in self.order if ORDER.match(e.how))

    def of_the_rest(self, found: Iterable[Edit]) -> list[Edit]:
        """Those of some changes that make all right and were not tried yet."""
        tried = {edit.source for edit in self.tried}
        own = [e for e in found if e.source not in tried]
        return self._that_mend(own[: MOST_OF_ONE_LINE // self.cost])

    def where_it_is_made(self, edit: Edit) -> Edit | None:
        """A change of the lines that make what another one turns, inverts or adds to where it is
        read, which mends as much and is as natural; or of the line that makes a bound for this one
        slice, or a threshold for this one comparison. Not of lines that are known to be right;
        where axes are exchanged, whose order is not known, or an expression is changed and no
        variable, it is more natural."""
        start, end = edit.place
        source, old = self.wrong.source, self.wrong.source[start:end]
        if edit.by_name or old == edit.new:
            return None
        alone = self.made_for_it(edit) or self._another_name_of_a_block(edit)
        if alone is not None:
            return alone
        stays = old in edit.new
        for name in names_in(old):
            threshold = is_comparison(old)
            if threshold and name in BESIDE_ONE.findall(old):
                continue  # `i < count - 1`, where one too many is taken off right here
            alone = (is_slice(old) or threshold) and is_read_at(name, edit.line, source)
            more = int(TURNED in edit.new or not (old.isidentifier() or alone))
            drawn = int(DRAWS.search(edit.how) is not None)  # the share may be made on a line above
            for line in reversed(lines_that_make(name, source, edit.line)):
                if not (stays or alone):
                    continue
                if TURNED in edit.new:  # numbers tell nothing of the order of the letters
                    letters = [e for e in self.at(line) if LETTERS.match(e.how) and not e.rank]
                    if letters:
                        return letters[0]
                if self.likely.get(line, 1) < SURELY_RIGHT:
                    own = [e for e in self.mending if e.line == line] + self.at(line)
                    own = [e for e in own if not (e.missing or e.by_name)]
                    if threshold and not is_strict(old):  # what is as large stays, as a rule
                        own = [e for e in own if is_counted_from_one(e, source)]
                    most = NATURAL + 1 if threshold else max(edit.rank, drawn) - more
                    own = [e for e in own if e.rank <= most]
                    if own:
                        return own[0]
        return None

    def made_for_it(self, edit: Edit) -> Edit | None:
        """A change that puts something else in the place of a variable, told of the line that makes
        it for this one place; or of the line that gives something this other name."""
        start, end = edit.place
        source, old = self.wrong.source, self.wrong.source[start:end]
        handed = HANDED.fullmatch(old) if not edit.new else None
        old = handed[1] if handed is not None else old
        kept = old in names_in(edit.new) and not is_alias(old, source)
        kept = kept and not (ONE_MORE.fullmatch(edit.new) and is_worked_out(old, source))
        kept = kept and not PART_OF_IT.fullmatch(edit.new)
        if edit.by_name or not old.isidentifier() or kept:
            return None
        if handed is not None and edit.line in self.told:
            return None
        made = lines_that_make(old, source, edit.line) if is_read_at(old, edit.line, source) else ()
        likely = {} if handed is not None else self.likely  # right numbers, and no use for them
        known = [line for line in made if likely.get(line, 1) < SURELY_RIGHT]
        return edit.told_of(made[0]) if len(made) == len(known) == 1 else None

    def _another_name_of_a_block(self, edit: Edit) -> Edit | None:
        """A slice `start:start + width` that takes its block by a place which is only another name
        of a round's number, told of the line that gives it this name: `start = i`."""
        start, end = edit.place
        source, old = self.wrong.source, self.wrong.source[start:end]
        name = old.partition(":")[0].strip()
        if not is_slice(old) or not edit.new.startswith(f"{name} * "):
            return None
        made = (
            lines_that_make(name, source, edit.line) if is_read_at(name, edit.line, source) else ()
        )
        return edit.told_of(made[0]) if len(made) == 1 and is_alias(name, source) else None

    def made_where(self, edit: Edit) -> Edit:
        """A step that is put around a variable which is read there alone, told of the one line that
        makes it."""
        start, end = edit.place
        source, old = self.wrong.source, self.wrong.source[start:end]
        alone = old in names_in(edit.new) and is_read_once(old, source)
        alone = alone and not shares_what_is_raw(edit.how, old)
        made = lines_that_make(old, source, edit.line) if alone else ()
        known = [line for line in made if self.likely.get(line, 1) < SURELY_RIGHT]
        return edit.told_of(made[0]) if len(made) == len(known) == 1 else edit

    def _that_mend(self, group: list[Edit]) -> list[Edit]:
        """Those of some changes that make all right; what each gives is kept."""
        gave = self.versions.in_the_call([edit.source for edit in group])
        stopped = sum(came is None or came.error is not None for came in gave)
        if self.stops:
            gave = [self._unless_it_stops(e, came) for e, came in zip(group, gave, strict=True)]
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

    def _unless_it_stops(self, edit: Edit, came: Outcome | None) -> Outcome | None:
        """What a version gives; None where it stops with an error, which is kept with its line."""
        if came is None or came.error is None:
            return came
        line = came.error.get("line")
        if isinstance(line, int):
            self.ends[edit.source] = line, str(came.error.get("type"))
        return came if self.wrong.known.expected[self.place].error is not None else None

    def may_be(self, edit: Edit) -> bool:
        """Whether a change is tried wherever it stands: not on a line that has no part in what is
        wrong; nothing of a kind that could be anywhere is missing on a line that gives what is
        right, and of a name that is read once nobody knows which line is wrong."""
        if self.parts is not None and self.parts.is_idle(edit.line):
            return False
        anywhere = edit.missing and edit.rank >= ANYWHERE
        runs = self.wrong.outcomes[self.place].error is None  # else what is right may not fit
        return not (edit.unsure or (anywhere and runs and self.likely.get(edit.line, 1) == 2))

    def in_order(self, found: list[Edit]) -> list[Edit]:
        """The likeliest first: natural slips, on lines that are not known to be right."""
        return sorted(found, key=lambda edit: (self.doubt(edit), edit.rank, edit.missing))

    def doubt(self, edit: Edit) -> float:
        """How unlikely it is that a change undoes the slip: an odd one, on a right line, or on
        another than the steps tell."""
        much = TOLD_TO_LACK if edit.missing else TOLD
        told = much * (edit.line in self.told or edit.line in self.draws)
        if not (told or edit.missing):
            told = self.few * (edit.line in self.only_there) or FEEDS * (edit.line in self.feeding)
            told = told or int(edit.line in self.bad)
        shared = self.parts.shared(edit.line) if self.parts is not None else 0
        shared = shared if self.cost > DEAR else min(shared, 1)
        by_one = TOLD * (self.one_off and BY_ONE.search(edit.new) is not None)
        return 2 * edit.rank + self.likely.get(edit.line, 1) - max(told, by_one) + shared


def is_surer(edit: Edit, how: str) -> bool:
    """Whether a change is surer than what the steps tell: a natural one, or one of the order in
    which the line runs that they speak of."""
    lines = set(OF_LINE.findall(how)) & set(OF_LINE.findall(edit.how))
    return (edit.rank < NATURAL and edit.is_natural) or bool(ORDER.match(edit.how) and lines)
