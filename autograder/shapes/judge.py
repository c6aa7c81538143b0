"""From a source and a recording to verdicts: which comment is true, false or missing.

True is what one reading makes true. False is what no fact doubts (see `doubts.facts.FACTS`).
Everything between is "cannot tell", and costs nobody a point.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from autograder.shapes.binding import Scope, taken_ahead, whole_numbers
from autograder.shapes.doubts.case import SEVERAL, Case
from autograder.shapes.doubts.facts import NEAR, evidence, unlike
from autograder.shapes.match import Matcher, as_many, flat, results
from autograder.shapes.missing import lacking, needs_one
from autograder.shapes.places.attach import Sighting, sightings
from autograder.shapes.places.docstrings import of_class
from autograder.shapes.places.layout import MAKES
from autograder.shapes.places.meant import (
    left_open,
    likeliest,
    on_its_side,
    operations,
    paragraph,
    side_of,
    vote,
)
from autograder.shapes.places.rows import heading, row
from autograder.shapes.places.told_before import Told, told_of
from autograder.shapes.places.told_elsewhere import (
    tells_its_result,
    texts_of_classes,
    told_by_class,
)
from autograder.shapes.plan import Plan
from autograder.shapes.recording import (
    BadRecording,
    Evidence,
    Execution,
    Weight,
    arguments,
    different_units,
    names_seen,
    prepare,
    read_recording,
    tensors,
)
from autograder.shapes.several import pairs, positional
from autograder.shapes.solver import Solver
from autograder.shapes.stars import commas_for_stars
from autograder.shapes.text import names
from autograder.shapes.text.comments import Given, find_comments, given, ignored
from autograder.shapes.text.dims import Dims, only_numbers
from autograder.shapes.text.limits import Clock, TooLong
from autograder.shapes.text.reader import Claim, legends
from autograder.shapes.text.shapes_in_text import Vocabulary
from autograder.shapes.tracer import Function, Stmt, Traced, trace
from autograder.shapes.wording import (
    Verdict,
    accusation,
    cannot_tell,
    place_of,
)

ACCUSES = ("false", "missing")
MAX_UNITS = 8  # calls of one function that are looked at
MAX_LEGENDS = 4_000  # characters of comments in which legends are looked for


def check_source(
    source: str,
    plan: Plan,
    run: Callable[[dict], dict] | None = None,
    *,
    setup: str = "",
    starter: str | None = None,
    strict: bool = False,
) -> list[Verdict]:
    """Traces, runs and judges. `run` executes the code: in this process, unless told otherwise."""
    if run is None:
        from autograder.sandbox.inside.record import run
    recording = run(prepare(source, plan, setup=setup))
    return judge(source, plan, recording, starter=starter, strict=strict)


def judge(
    source: str, plan: Plan, recording: object, *, starter: str | None = None, strict: bool = False
) -> list[Verdict]:
    """Verdicts in the order of lines. Raises SyntaxError or ValueError for a bad source."""
    traced = trace(source)
    try:
        found = read_recording(recording, traced, len(plan.sizes) + bool(plan.public))
    except BadRecording as error:
        return [cannot_tell(1, "", "", f"the run gave no readable recording ({error})")]
    if bad := found.problem:
        return [cannot_tell(1, "", "", f"the code did not run ({bad['type']}: {bad['message']})")]
    judged = _Source(source, plan, traced, found, given(starter), strict)
    try:
        return judged.verdicts()
    except TooLong as error:
        return [cannot_tell(1, "", "", str(error))]


@dataclass
class _Source:
    """One source and what was seen of it."""

    source: str
    plan: Plan
    traced: Traced
    seen: Evidence
    given: Given
    strict: bool

    def __post_init__(self):
        self.lines = self.source.splitlines()
        self.comments = find_comments(self.source, self.given)
        self.configs = tuple(range(len(self.plan.sizes)))
        self.ignored = ignored(self.source)
        self.clock = Clock()
        self.needed = 0
        self.votes: Counter[str] = Counter()
        self.confirmed = names.Confirmed()

    def verdicts(self) -> list[Verdict]:
        rooms = []
        for function in self.traced.functions:
            ran = any(s.id in self.seen.executions for s in self.of(function))
            if ran or function.top in self.plan.entries:
                rooms.append(_Room(self, function))
        for _ in range(2):  # then with what the names of the other functions turned out to be
            told, self.confirmed = self.confirmed, names.Confirmed()
            for room in rooms:
                room.solve(told)
        for room in rooms:
            room.settle()
            self.votes.update(v for v in room.votes.values() if v)
        found = [v for r in rooms for v in r.verdicts() if v.line not in self.ignored]
        most = 2 * sum(v.verdict == "missing" for v in found) > self.needed
        found = [replace(v, deducts=most) if v.verdict == "missing" else v for v in found]
        return sorted(found, key=lambda v: v.line)

    def of(self, function: Function) -> list[Stmt]:
        return [s for s in self.traced.stmts if s.function == function.id]

    def runs(self, stmt: Stmt) -> list[Execution]:
        return [e for e in self.seen.executions.get(stmt.id, []) if e.config in self.configs]

    @cached_property
    def called(self) -> dict[tuple[int, str], set[int]]:
        """The whole numbers that variables of the source are, by run and name."""
        return whole_numbers(e for s in self.traced.stmts for e in self.runs(s))

    @cached_property
    def _tops(self) -> dict[int, str]:
        """By line of a function, the outermost class or function that it is part of."""
        every = self.traced.functions
        return {n: f.top for f in every for n in range(f.line, f.end_line + 1)}

    def explained(self, function: Function) -> str:
        """The comments that may explain names of this function: `L is the segment_size`.

        What stands in a function of another class is of the names there.
        """
        told = (c.text for c in self.comments if self._tops.get(c.line, "") in ("", function.top))
        return "\n".join(told)[:MAX_LEGENDS]

    def built_with(self, owner: str) -> dict[int, dict[str, int]]:
        """The integers that a class was built with, and what it worked out, if always alike."""
        built = [f.id for f in self.traced.functions if f.owner == owner and f.name == "__init__"]
        runs = [self.runs(s) for s in self.traced.stmts if s.function in built]
        return arguments([e for of in runs for e in of])


class _Room:
    """The comments of one function."""

    def __init__(self, source: _Source, function: Function):
        self.source, self.function = source, function = source, of_class(function, source.source)
        self.stmts = {s.id: s for s in source.of(function)}
        self.runs = {i: source.runs(s) for i, s in self.stmts.items()}
        self.units = different_units(self.runs)[:MAX_UNITS]
        self.runs = {i: [e for e in r if e.unit in self.units] for i, r in self.runs.items()}
        making = [(s, self.runs[s.id]) for s in self.stmts.values() if s.kind in MAKES]
        self.makers = {s.id for s, runs in making if any(results(s, e) for e in runs)}
        self.heads = {i for i, s in self.stmts.items() if s.kind == "def"}
        every = [e for i in self.stmts for e in source.seen.executions.get(i, [])]
        made, sizes = names_seen(every)
        self.vocabulary = vocabulary = Vocabulary(made, sizes | set(source.plan.roles))
        self.tensors = frozenset(made)
        loops = {t for s in self.stmts.values() if s.kind == "header" for t in flat(s.targets)}
        self.scope = Scope(
            source.plan,
            source.configs,
            {i: own for i, (entry, own) in enumerate(source.plan.own) if entry == function.top},
            source.built_with(function.owner) if function.owner else {},
            constants=source.seen.constants,
            loops=frozenset(loops),
            lines=(function.line, function.end_line),
            building=function.name == "__init__",
            called=source.called,
            ahead=taken_ahead(
                function,
                [
                    (s, source.traced.nodes[s.value].text, self.runs[i])
                    for i, s in self.stmts.items()
                    if s.value is not None and s.kind == "assign"
                ],
            ),
        )
        of_function = legends(function.docstring[:2_000], vocabulary)
        told = legends(source.explained(function), vocabulary) | of_function
        self.scope.legend = {names.normal(k): v for k, v in told.items()}
        self.matcher = Matcher(source.traced, self.scope, source.strict)
        found = sightings(
            function, source.traced, source.comments, source.lines, vocabulary, self.needs_one
        )
        self.scope.comments = [set(map(names.normal, s.names())) for s in found]
        self.sightings = [commas_for_stars(s, self.stmts, self.runs) for s in found if s.stmts]
        self.homeless = [s for s in found if not s.stmts]
        self.telling: dict[int, bool] = {}
        self.told_by: dict[str, Told] = {}  # by the docstrings of classes
        self.told_before = told_of(function, source.lines, source.given.lines, vocabulary)

    def solve(self, told: names.Confirmed) -> None:
        """Finds what the free names stand for, in each call of the function."""
        self.scope.told, self.scope.confirmed = told, self.source.confirmed
        for unit in self.units:
            Solver(self, unit, self.source.clock).solve()

    def settle(self) -> None:
        """Keeps what the verdicts are about, when the names are known."""
        # A call that is of this function tells what its names mean; what others hand in may not.
        self.runs = {
            i: [e for e in runs if e.unit[0] in self.scope.homes] or runs
            for i, runs in self.runs.items()
        }
        making = [s for s in self.stmts.values() if s.kind in MAKES]
        self.order = sorted(making, key=lambda s: (s.line, s.id))
        behind = {i for s in self.sightings if s.trailing for i in s.stmts}
        self.bare = frozenset(self.makers - behind)
        self.votes = {s.rows: vote(s, self) for s in self.sightings}

    # --- verdicts --------------------------------------------------------------------------------
    def verdicts(self) -> list[Verdict]:
        found: list[Verdict] = []
        described: set[int] = set()
        behind: set[int] = set()
        self.told: set[int] = set()  # what a comment behind the line tells
        self.placed: list[Sighting] = []
        for sighting in sorted(self.sightings, key=lambda s: not s.trailing):
            self.source.clock.check()
            side = side_of(self._others(sighting))
            verdicts, stmts = self.sighting(on_its_side(sighting, side, self))
            if sighting.place == "docstring":  # it is no comment: only what is false is said
                if self._line(sighting.line) not in self.source.given.lines:
                    false = (replace(v, deducts=False) for v in verdicts if v.verdict == "false")
                    found += verdicts if sighting.as_docstring else false
                continue
            if not (sighting.trailing or stmts - behind):  # a remark above a line that has its own
                kept = ("true", "false") if stmts <= self.told else ("true",)
                verdicts = [v for v in verdicts if v.verdict in kept]
            self.placed += [sighting] if any(v.verdict == "true" for v in verdicts) else []
            found += verdicts
            described |= stmts
            told = any(v.verdict != "cannot tell" for v in verdicts)
            if sighting.trailing:  # it may be of the result, and one above of what comes in
                behind |= {i for i in stmts if told or as_many(sighting, self.stmts[i], self)}
                self.told |= stmts if all(v.verdict == "true" for v in verdicts) else set()
        if self.function.name != "__init__":
            found += lacking(described, self)
        return found

    def holds(self, claim: Claim, sighting: Sighting, stmt_id: int) -> bool:
        return self._holds(claim, sighting, stmt_id, self._runs_for(claim, stmt_id))

    def _holds(self, claim: Claim, sighting: Sighting, stmt_id: int, runs) -> bool:
        stmt = self.stmts[stmt_id]
        return bool(runs) and all(self.matcher.holds(claim, sighting, stmt, e) for e in runs)

    def is_told(self, claim: Claim, sighting: Sighting, stmt_id: int) -> bool:
        """Whether a claim holds: of the statement, or of the operation that its line names."""
        parts = operations(claim, sighting, stmt_id, self)
        if not parts:
            return self.holds(claim, sighting, stmt_id)
        return any(all(self.matcher.holds(claim, sighting, s, e) for e in r) for s, r in parts)

    def _runs_for(self, claim: Claim, stmt_id: int) -> list[Execution]:
        """The executions to compare with; for numbers those with the sizes that students know."""
        every = self.source.seen.executions.get(stmt_id, [])
        known = [e for e in every if e.config not in self.source.configs]
        numbers = claim.stages and all(only_numbers(t.dims) for t in claim.terms())
        return known if numbers and known else self.runs[stmt_id]

    def all_hold(self, sighting: Sighting, stmt_id: int) -> bool:
        claims, stmt, runs = sighting.claims, self.stmts[stmt_id], self.runs[stmt_id]
        each = pairs(claims, stmt, runs)
        if each and all(positional(claims, stmt, e, self.matcher) for e in runs):
            return True
        return all(self.is_told(c, sighting, stmt_id) for c in claims)

    def sighting(self, sighting: Sighting) -> tuple[list[Verdict], set[int]]:
        """What is said of one comment, and the statements that it describes."""
        for stmt_id in self._asked(sighting):
            if self.all_hold(sighting, stmt_id):
                runs, claims = self.runs[stmt_id], [c for c in sighting.claims if c.stages]
                note = any(self.matcher.skips(c, e) for c in claims for e in runs)
                text = "; a step before it is left out" * note
                return [self._true(sighting, stmt_id, text)], {stmt_id}
        joined = paragraph(sighting, self)
        for stmt_id, runs in joined:
            if self._holds(sighting.claims[0], sighting, stmt_id, runs):
                return [self._true(sighting, stmt_id)], {*sighting.block} & {*range(stmt_id + 1)}
        stmt_id = likeliest(sighting, self._others(sighting), self)
        if sighting.place == "loose":  # a heading perhaps
            return heading(sighting, stmt_id, self)
        stmt = self.stmts[stmt_id]
        shaped = any(self._shaped(e) for e in self.runs[stmt_id]) or not self.runs[stmt_id]
        if sighting.trailing and not shaped:
            return [], set()  # a remark behind a number
        if pairs(sighting.claims, stmt, self.runs[stmt_id]) and sighting.place in ("end", "named"):
            return [row(sighting, stmt, self)], {stmt_id}
        true = [c for c in sighting.claims if self.is_told(c, sighting, stmt_id)]
        found = []
        for claim in sighting.claims:
            part = operations(claim, sighting, stmt_id, self)[-1:]
            if claim in true or (true and not part and self._beside(claim, sighting, stmt_id)):
                found.append(self._true(sighting, stmt_id))
            elif part:
                found.append(self.decide(claim, sighting, part[0][0], [], part[0][1]))
            else:
                found.append(self._decide_steps(claim, sighting, stmt, true, joined))
        return found, set(sighting.stmts) if stmt.kind == "def" else {stmt_id}

    def _asked(self, sighting: Sighting) -> list[int]:
        """The statements of which a comment may be true: where it names what some of them make,
        these alone."""
        every = [*dict.fromkeys((*sighting.stmts, *sighting.block))]
        labels = {t.label for c in sighting.claims for t in c.terms() if t.label}
        named = [i for i in every if labels & set(flat(self.stmts[i].targets))]
        return named if named and len(labels) == len(sighting.claims) == 1 else every

    def _beside(self, claim: Claim, sighting: Sighting, stmt_id: int) -> bool:
        """Whether a claim, beside one that is true of the result, is of what entered.

        `the [..] of x becomes [..]`, in any language; `Q: [..]`, `A: [..]` above `A = q @ k.mT`.
        """
        stmt, alone = self.stmts[stmt_id], sighting.by_itself(claim, self.tensors)
        if claim.role == "output" or sighting.led_to(claim):
            return False
        own = set() if sighting.comes_in(claim) else set(flat(stmt.targets))
        named = claim.told or all(t.label and t.label not in own for t in claim.terms())
        if alone or not claim.stages or not (named or claim is not sighting.claims[0]):
            return False
        return all(self.matcher.passes(claim, stmt, e) for e in self.runs[stmt_id])

    def _decide_steps(self, claim: Claim, sighting: Sighting, stmt: Stmt, true, joined) -> Verdict:
        """Of a chain that may go through several statements, what is false of each of them."""
        many = len(claim.stages[-1].terms[-1].dims) if joined else 0
        tries = [(self.stmts[i], runs) for i, runs in joined]
        tries = [(s, r) for s, r in tries if {len(x) for e in r for x in results(s, e)} == {many}]
        tries = [(s, r) for s, r in tries if s.id not in self.told]  # it has a comment of its own
        tries = [(stmt, None), *tries]
        asked = tries if joined else []
        ends = [(s, r) for s, r in asked if self.case(claim, sighting, s, r).ends_right()]
        tries = ends[:1] or tries
        found = [self.decide(claim, sighting, s, true, runs) for s, runs in tries]
        slips = [v.verdict == "false" or unlike(v.evidence) for v in found]
        false = [v for v in found if v.verdict == "false"]
        return false[0] if false and all(slips) else next(v for v in found if v not in false)

    def decide(
        self, claim: Claim, sighting: Sighting, stmt: Stmt, true: list[Claim], runs=None
    ) -> Verdict:
        text, line = self.text(stmt), place_of(sighting, stmt)
        if claim.unreadable or not claim.stages:
            why = claim.unreadable or "the comment is not readable as a shape"
            return cannot_tell(line, text, sighting.text, why)
        case = self.case(claim, sighting, stmt, runs)
        if why := left_open(sighting, case, true, self):
            return cannot_tell(line, text, sighting.text, why)
        facts = evidence(case)
        doubt = facts[-1][2]
        if doubt:
            return cannot_tell(line, text, sighting.text, doubt, facts)
        said, told = accusation(case), tuple(facts)
        return Verdict(line, text, sighting.text, "false", said, deducts=True, evidence=told)

    @cached_property
    def twins(self) -> list[tuple[Sighting, Stmt]]:
        held = ((s, [i for i in s.stmts if self.all_hold(s, i)]) for s in self.sightings)
        return [(s, self.stmts[i]) for s, found in held for i in found[:1]]

    @cached_property
    def tellers(self) -> dict[int, list[Sighting]]:
        """The comments that are true of each statement beside them."""
        found: dict[int, list[Sighting]] = {}
        for s in (s for s in self.sightings if s.place != "docstring"):
            for i in (i for i in s.stmts if self.all_hold(s, i)):
                found.setdefault(i, []).append(s)
        return found

    @cached_property
    def arguments(self) -> list[tuple[str, Dims, list[Execution]]]:
        """What is told of each argument, with the runs of the function's head."""
        of = [(s, s.stmts[0]) for s in self.sightings if self.stmts[s.stmts[0]].kind == "def"]
        terms = [(c.terms(), self.runs[i]) for s, i in of for c in s.claims]
        return [(t[0].label, t[0].dims, runs) for t, runs in terms if len(t) == 1 and t[0].label]

    @cached_property
    def texts_of_classes(self) -> list[tuple[str, str]]:
        return texts_of_classes(self)

    def told_by_class(self, text: str) -> Told:
        """What the docstring of a class tells; looked for once."""
        if text not in self.told_by:
            self.source.clock.check()
            self.told_by[text] = told_by_class(text, self)
        return self.told_by[text]

    def tells_its_result(self, function: Function) -> bool:
        """Whether a function of the file tells the shape of what it returns; looked for once."""
        if function.id not in self.telling:
            self.source.clock.check()
            self.telling[function.id] = tells_its_result(function, self)
        return self.telling[function.id]

    @cached_property
    def alone(self) -> list[Sighting]:
        """The comments behind lines that make one claim."""
        return [s for s in self.sightings if s.trailing and len(s.claims) == 1]

    @cached_property
    def early(self) -> frozenset[tuple[int, ...]]:
        """The comments behind lines that are true of the next line and not of their own, where
        these are several: they stood above lines once. By their rows."""
        after = dict(itertools.pairwise(s.id for s in self.order))
        wrong = [s for s in self.alone if not self.all_hold(s, s.stmts[0])]
        pairs = [(s, after.get(s.stmts[0])) for s in wrong]
        found = [s.rows for s, i in pairs if i is not None and self.holds(s.claims[0], s, i)]
        return frozenset(found if len(found) >= SEVERAL else ())

    @cached_property
    def apart(self) -> dict[tuple[int, str], list[int]]:
        """By run and letter that is all that is wrong behind a line, the sizes that it stands for
        there."""
        apart: dict[tuple[int, str], list[int]] = {}
        for s in self.alone:
            terms, stmt = s.claims[0].terms(), self.stmts[s.stmts[0]]
            first = {e.config: e for e in reversed(self.runs[stmt.id]) if len(terms) == 1}
            for config, e in first.items():
                for shape in results(stmt, e)[:1]:
                    letter = self.matcher.apart(terms[0].dims, shape, e)
                    if letter is not None:
                        apart.setdefault((config, letter[0]), []).append(letter[1])
        return apart

    def case(self, claim: Claim, sighting: Sighting, stmt: Stmt, runs=None) -> Case:
        place = next((i for i, s in enumerate(self.order) if s.id == stmt.id), 0)
        around = [*self.order[max(0, place - NEAR) : place], *self.order[place + 1 :][:NEAR]]
        return Case(
            claim,
            sighting.only(claim, self.tensors),
            stmt,
            self._runs_for(claim, stmt.id) if runs is None else runs,
            self.source.seen.executions.get(stmt.id, []),
            self.matcher,
            self.scope,
            self.tensors,
            self.source.clock,
            *([(s, self.runs[s.id]) for s in of] for of in (around, self.stmts.values())),
            self.twins,
            self.arguments,
            self.bare,
            self._others(sighting),
            self.apart,
            sighting.rows in self.early,
        )

    def _others(self, sighting: Sighting) -> Counter[str]:
        """On which side of their statements the other comments of the file stand."""
        return self.source.votes - Counter([self.votes.get(sighting.rows, "")])

    def _true(self, sighting: Sighting, stmt_id: int, note: str = "") -> Verdict:
        stmt = self.stmts[stmt_id]
        line = place_of(sighting, stmt)
        return Verdict(line, self.text(stmt), sighting.text, "true", f"Line {line}: true{note}.")

    def _shaped(self, execution: Execution) -> bool:
        """Whether a tensor or a layer (one without a weight is None) came about, or came in."""
        values = [v for _, v in execution.events] or list(execution.before.values())
        return any(v is None or isinstance(v, Weight) or tensors(v) for v in values)

    def _line(self, line: int) -> str:
        return self.source.lines[line - 1].strip() if line <= len(self.source.lines) else ""

    def text(self, stmt: Stmt) -> str:
        return self._line(stmt.line).split("  #")[0].strip()

    def needs_one(self, stmt: Stmt) -> bool:
        return needs_one(stmt, self.runs[stmt.id], self.source.lines, self.source.given)
