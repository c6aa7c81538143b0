"""From a source and a recording to verdicts: which comment is true, false or missing.

True is what one reading makes true. False is what no fact doubts (see `facts.FACTS`). Everything
between is "cannot tell", and costs nobody a point.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from autograder.shapes.attach import MAKES, Sighting, sightings
from autograder.shapes.binding import Confirmed, Scope, Solver
from autograder.shapes.comments import Given, find_comments, given, ignored
from autograder.shapes.facts import NEAR, Case, evidence, made
from autograder.shapes.match import Matcher, flat, pairs, positional, results
from autograder.shapes.plan import Plan
from autograder.shapes.recording import (
    BadRecording,
    Evidence,
    Execution,
    Weight,
    prepare,
    read_recording,
    tensors,
)
from autograder.shapes.text import names
from autograder.shapes.text.dims import only_numbers
from autograder.shapes.text.lexer import tokens
from autograder.shapes.text.limits import Clock, TooLong
from autograder.shapes.text.reader import Claim, legends
from autograder.shapes.text.shapes_in_text import Vocabulary
from autograder.shapes.tracer import TURNS, Function, Stmt, Traced, trace
from autograder.shapes.wording import UNKNOWN, spelled

ACCUSES = ("false", "missing")
MAX_UNITS = 8  # calls of one function that are looked at
MAX_LEGENDS = 4_000  # characters of comments in which legends are looked for


@dataclass(frozen=True)
class Verdict:
    """What is said of one comment, or of a statement that lacks one.

    verdict: "true" | "false" | "missing" | "cannot tell". deducts: whether a rubric may take a
    point off for it: what is false, and what is missing where most lines have no comment.
    evidence: the facts that were asked, each with its condition and its doubt.
    """

    line: int
    statement: str
    comment: str
    verdict: str
    message: str
    confidence: str = "high"
    deducts: bool = False
    proposal: str = ""  # for a missing comment: the shape to write
    evidence: tuple[tuple[str, str, str], ...] = ()


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
        return [_cannot(1, "", "", f"the run gave no readable recording ({error})")]
    if found.problem:
        text = f"{found.problem['type']}: {found.problem['message']}"
        return [_cannot(1, "", "", f"the code did not run ({text})")]
    judged = _Source(source, plan, traced, found, given(starter), strict)
    try:
        return judged.verdicts()
    except TooLong as error:
        return [_cannot(1, "", "", str(error))]


def _cannot(line, statement, comment, why, facts=()) -> Verdict:
    message = f"Line {line}: cannot tell: {why}."
    return Verdict(line, statement, comment, "cannot tell", message, "low", evidence=tuple(facts))


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
        self.text = "\n".join(c.text for c in self.comments)[:MAX_LEGENDS]
        self.configs = tuple(range(len(self.plan.sizes)))
        self.ignored = ignored(self.source)
        self.clock = Clock()
        self.needed = 0
        self.styles: Counter[str] = Counter()
        self.confirmed: Confirmed = {}

    def verdicts(self) -> list[Verdict]:
        rooms = []
        for function in self.traced.functions:
            ran = any(s.id in self.seen.executions for s in self.of(function))
            if ran or function.top in self.plan.entries:
                rooms.append(_Room(self, function))
                self.styles.update(rooms[-1].styles())
        found = [v for room in rooms for v in room.verdicts()]
        found = [v for v in found if v.line not in self.ignored]
        missing = sum(v.verdict == "missing" for v in found)
        most = 2 * missing > self.needed
        found = [replace(v, deducts=most) if v.verdict == "missing" else v for v in found]
        return sorted(found, key=lambda v: v.line)

    def of(self, function: Function) -> list[Stmt]:
        return [s for s in self.traced.stmts if s.function == function.id]

    def runs(self, stmt: Stmt) -> list[Execution]:
        return [e for e in self.seen.executions.get(stmt.id, []) if e.config in self.configs]

    def arguments(self, owner: str) -> dict[int, dict[str, int]]:
        """The integers that a class was built with, where it was always built alike."""
        built = [f.id for f in self.traced.functions if f.owner == owner and f.name == "__init__"]
        found: dict[int, dict[str, int | None]] = {}
        for stmt in self.traced.stmts:
            if stmt.function not in built or stmt.kind != "def":
                continue
            for execution in self.runs(stmt):
                known = found.setdefault(execution.config, {})
                for name, value in execution.after.items():
                    if isinstance(value, int) and "." not in name:
                        plain = names.normal(name)
                        known[plain] = value if known.get(plain, value) == value else None
        return {c: {n: v for n, v in k.items() if v is not None} for c, k in found.items()}


class _Room:
    """The comments of one function."""

    def __init__(self, source: _Source, function: Function):
        self.source, self.function = source, function
        self.stmts = {s.id: s for s in source.of(function)}
        self.runs = {i: source.runs(s) for i, s in self.stmts.items()}
        self.units = self._different_units()
        self.makers = {
            i for i, s in self.stmts.items() if s.kind in MAKES and self._makes(s, self.runs[i])
        }
        vocabulary = self._vocabulary()
        self.tensors = frozenset(vocabulary.tensors)
        loops = {t for s in self.stmts.values() if s.kind == "header" for t in flat(s.targets)}
        self.scope = scope = Scope(
            source.plan,
            source.configs,
            {
                call: own
                for call, (entry, own) in enumerate(source.plan.own)
                if entry == function.top
            },
            source.arguments(function.owner) if function.owner else {},
            constants=source.seen.constants,
            confirmed=source.confirmed,
            loops=frozenset(loops),
        )
        told = legends(source.text, vocabulary) | legends(function.docstring[:2_000], vocabulary)
        scope.legend = {names.normal(k): v for k, v in told.items()}
        self.matcher = Matcher(source.traced, scope, source.strict)
        found = sightings(
            function, source.traced, source.comments, source.lines, vocabulary, self.needs_one
        )
        self.sightings = [s for s in found if s.stmts]
        self.homeless = [s for s in found if not s.stmts]
        for unit in self.units:
            solver = Solver(
                scope, self.sightings, self.stmts, self.runs, self.matcher, source.clock, unit
            )
            solver.solve()
            solver.confirm()
        # A call that is of this function tells what its names mean; what others hand in may not.
        self.runs = {
            i: [e for e in runs if e.unit[0] in scope.homes] or runs
            for i, runs in self.runs.items()
        }
        self.order = sorted(
            (s for s in self.stmts.values() if s.kind in MAKES), key=lambda s: (s.line, s.id)
        )
        behind = {i for s in self.sightings if s.trailing for i in s.stmts}
        self.bare = frozenset(self.makers - behind)

    def _different_units(self) -> list[tuple[int, int]]:
        """The calls of this function that differ; the runs of the others are left out."""
        seen: dict[tuple[int, int], list] = {}
        for i, runs in self.runs.items():
            for e in runs:
                seen.setdefault(e.unit, []).append((i, e.config, e.events, e.before, e.after))
        first: dict[str, tuple[int, int]] = {}
        for unit in sorted(seen):
            first.setdefault(repr(seen[unit]), unit)
        units = list(first.values())[:MAX_UNITS]
        self.runs = {i: [e for e in runs if e.unit in units] for i, runs in self.runs.items()}
        return units

    def _makes(self, stmt: Stmt, runs: list[Execution]) -> bool:
        return any(results(stmt, e) for e in runs)

    def _vocabulary(self) -> Vocabulary:
        made, sizes = set(), set(self.source.plan.roles)
        for i in self.stmts:
            for execution in self.source.seen.executions.get(i, []):
                for scope in (execution.before, execution.after):
                    for name, value in scope.items():
                        if isinstance(value, int):
                            sizes |= {name, names.normal(name)}
                        elif tensors(value):
                            made.add(name)
        return Vocabulary(made, sizes)

    def styles(self) -> dict[str, int]:
        """How many comments of their own line are true of the line below, and of the one above.

        "block" counts those that are true of a later line of the paragraph below only.
        """
        found = {"above": 0, "below": 0, "block": 0}
        for sighting in self.sightings:
            if sighting.trailing or sighting.place in ("loose", "named"):
                continue
            first = {i for i in sighting.stmts if self.stmts[i].line > sighting.line}

            def holds(stmts, of=sighting):
                return any(self._holds(c, of, i) for c in of.claims for i in stmts)

            below, above = holds(first), holds(set(sighting.stmts) - first)
            if below != above:
                found["above" if below else "below"] += 1
            elif not below and holds(set(sighting.block) - first):
                found["block"] += 1
        return found

    # --- verdicts --------------------------------------------------------------------------------
    def verdicts(self) -> list[Verdict]:
        found: list[Verdict] = []
        described: set[int] = set()
        behind: set[int] = set()
        self.placed: list[Sighting] = []
        for sighting in sorted(self.sightings, key=lambda s: not s.trailing):
            self.source.clock.check()
            verdicts, stmts = self.sighting(sighting)
            if not (sighting.trailing or stmts - behind):  # a remark above a line that has its own
                verdicts = [v for v in verdicts if v.verdict == "true"]
            if any(v.verdict == "true" for v in verdicts):
                self.placed.append(sighting)
            found += verdicts
            described |= stmts
            behind |= stmts if sighting.trailing else set()
        if self.function.name != "__init__":
            found += self.missing(described)
        return found

    def _holds(self, claim: Claim, sighting: Sighting, stmt_id: int) -> bool:
        runs, stmt = self._runs_for(claim, stmt_id), self.stmts[stmt_id]
        return bool(runs) and all(self.matcher.holds(claim, sighting, stmt, e) for e in runs)

    def _runs_for(self, claim: Claim, stmt_id: int) -> list[Execution]:
        """The executions to compare with; for numbers those with the sizes that students know."""
        every = self.source.seen.executions.get(stmt_id, [])
        known = [e for e in every if e.config not in self.source.configs]
        numbers = claim.stages and all(only_numbers(t.dims) for t in claim.terms())
        return known if numbers and known else self.runs[stmt_id]

    def _all_hold(self, sighting: Sighting, stmt_id: int) -> bool:
        claims, stmt, runs = sighting.claims, self.stmts[stmt_id], self.runs[stmt_id]
        if pairs(claims, stmt, runs) and all(
            positional(claims, stmt, e, self.matcher) for e in runs
        ):
            return True
        return all(self._holds(c, sighting, stmt_id) for c in claims)

    def sighting(self, sighting: Sighting) -> tuple[list[Verdict], set[int]]:
        """What is said of one comment, and the statements that it describes."""
        for stmt_id in dict.fromkeys((*sighting.stmts, *sighting.block)):
            if self._all_hold(sighting, stmt_id):
                note = any(
                    self.matcher.skips(c, e)
                    for c in sighting.claims
                    for e in self.runs[stmt_id]
                    if c.stages
                )
                text = "; a step before it is left out" * note
                return [self._true(sighting, stmt_id, text)], {stmt_id}
        if sighting.place == "loose":  # a heading perhaps
            return [], set()
        stmt_id = self._likeliest(sighting)
        stmt = self.stmts[stmt_id]
        shaped = any(self._shaped(e) for e in self.runs[stmt_id]) or not self.runs[stmt_id]
        if sighting.trailing and not shaped:
            return [], set()  # a remark behind a number
        if pairs(sighting.claims, stmt, self.runs[stmt_id]) and sighting.place in ("end", "named"):
            return [self._tuple(sighting, stmt)], {stmt_id}
        held = [self._holds(c, sighting, stmt_id) for c in sighting.claims]
        found = []
        for claim, holds in zip(sighting.claims, held, strict=True):
            if holds or (any(held) and self._beside(claim, sighting, stmt_id)):
                found.append(self._true(sighting, stmt_id))
            else:
                found.append(self._decide(claim, sighting, stmt))
        return found, {stmt_id}

    def _likeliest(self, sighting: Sighting) -> int:
        """The statement that a comment is about, where it is true of none."""
        labels = {t.label for c in sighting.claims for t in c.terms() if t.label}
        own = [i for i in sighting.stmts if labels & set(flat(self.stmts[i].targets))]
        if own:
            one = [
                i
                for i in own
                if any(len(tensors(e.after.get(n))) == 1 for e in self.runs[i] for n in labels)
            ]
            return (one or own)[0]
        if len(sighting.stmts) == 1 or sighting.place != "between":
            return sighting.stmts[0]
        up = self.source.styles["below"] > self.source.styles["above"]
        side = [i for i in sighting.stmts if (self.stmts[i].line < sighting.line) == up]
        bare = [i for i in side or sighting.stmts if i in self.makers]
        return (bare or side or sighting.stmts)[0]

    def _beside(self, claim: Claim, sighting: Sighting, stmt_id: int) -> bool:
        """Whether a claim, beside one that is true of the result, is of what entered.

        `the [..] of x becomes [..]`, in any language; `Q: [..]`, `A: [..]` above `A = q @ k.mT`.
        """
        stmt = self.stmts[stmt_id]
        own = set(flat(stmt.targets))
        named = all(t.label and t.label not in own for t in claim.terms()) and bool(claim.stages)
        first = claim is sighting.claims[0]
        if not (claim.told or named or not first) or not claim.stages:
            return False
        return all(self.matcher.passes(claim, stmt, e) for e in self.runs[stmt_id])

    def _decide(self, claim: Claim, sighting: Sighting, stmt: Stmt) -> Verdict:
        text, line = self._text(stmt), _line(sighting, stmt)
        if claim.unreadable or not claim.stages:
            why = claim.unreadable or "the comment is not readable as a shape"
            return _cannot(line, text, sighting.text, why)
        case = self._case(claim, sighting, stmt)
        facts = evidence(case)
        doubt = facts[-1][2]
        if doubt:
            return _cannot(line, text, sighting.text, doubt, facts)
        return Verdict(
            line,
            text,
            sighting.text,
            "false",
            self._accusation(case),
            deducts=True,
            evidence=tuple(facts),
        )

    def _case(self, claim: Claim, sighting: Sighting, stmt: Stmt) -> Case:
        place = self.order.index(stmt) if stmt in self.order else 0
        around = [*self.order[max(0, place - NEAR) : place], *self.order[place + 1 :][:NEAR]]
        return Case(
            claim,
            sighting,
            stmt,
            self._runs_for(claim, stmt.id),
            self.source.seen.executions.get(stmt.id, []),
            self.matcher,
            self.scope,
            self.tensors,
            [(s, self.runs[s.id]) for s in around],
            [(s, self.runs[s.id]) for s in self.stmts.values()],
            [
                (s.text, self.stmts[s.stmts[0]])
                for s in self.sightings
                if self._all_hold(s, s.stmts[0])
            ],
            self.bare,
            self.source.styles,
        )

    def _tuple(self, sighting: Sighting, stmt: Stmt) -> Verdict:
        """As many shapes as tensors, and one of them does not fit."""
        text = self._text(stmt)
        value = self.source.traced.nodes[stmt.value].text if stmt.value is not None else ""
        mine = {t.text.split(".")[0] for t in tokens(value)} if stmt.kind == "return" else set()
        named = self.tensors - set(flat(stmt.targets)) - mine
        for claim in sighting.claims:
            if claim.unreadable or {t.label for t in claim.terms()} & named:
                why = "it is not clear which tensor is meant"
                return _cannot(stmt.line, text, sighting.text, why)
            case = self._case(claim, sighting, stmt)
            unproven = case.unproven
            if unproven:
                why = f"nothing proves what `{unproven[0]}` stands for"
                return _cannot(stmt.line, text, sighting.text, why)
        runs = self.runs[stmt.id]
        is_ = ", ".join(
            spelled(runs, [results(stmt, e) for e in runs], self.scope, sighting.claims)
        )
        said = ", ".join(c.text for c in sighting.claims)
        message = f"Line {stmt.line}: {_what(stmt)} is {is_}; your comment says {said}."
        return Verdict(stmt.line, text, sighting.text, "false", message, deducts=True)

    def _accusation(self, case: Case) -> str:
        stmt, claim = case.stmt, case.claim
        line, place = case.sighting.line, _line(case.sighting, case.stmt)
        said, what = claim.text, f"`{case.subject()}`" if case.subject() else _what(stmt)
        shapes = [made(case, e) for e in case.runs]
        seen = next(iter(spelled(case.runs, shapes, self.scope, (claim,), line)), "unknown")
        steps = len(claim.stages) > 1 or len(claim.stages[-1].terms) > 1
        result = replace(claim, stages=claim.stages[-1:])
        if steps and self._holds(result, case.sighting, stmt.id):
            return (
                f"Line {place}: {what} is {seen}, but a step of {said} is not what the code does."
            )
        return f"Line {place}: {what} is {seen}; your comment says {said}."

    def _true(self, sighting: Sighting, stmt_id: int, note: str = "") -> Verdict:
        stmt = self.stmts[stmt_id]
        line = _line(sighting, stmt)
        message = f"Line {line}: true{note}."
        return Verdict(line, self._text(stmt), sighting.text, "true", message)

    def _shaped(self, execution: Execution) -> bool:
        """Whether a tensor or a layer (one without a weight is None) came about, or came in."""
        values = [v for _, v in execution.events] or list(execution.before.values())
        return any(v is None or isinstance(v, Weight) or tensors(v) for v in values)

    def _text(self, stmt: Stmt) -> str:
        lines = self.source.lines
        return lines[stmt.line - 1].split("  #")[0].strip() if stmt.line <= len(lines) else ""

    # --- statements without a comment ------------------------------------------------------------
    def missing(self, described: set[int]) -> list[Verdict]:
        """The statements that make a tensor and that no comment can be about."""
        found = []
        for stmt in self.order:
            if not self.needs_one(stmt):
                continue
            self.source.needed += 1
            if stmt.id in described or self._covered(stmt):
                continue
            text = self._text(stmt)
            message = f"Line {stmt.line}: `{text}` makes a tensor; its shape is not in a comment."
            runs = self.runs[stmt.id]
            shapes = [results(stmt, e) for e in runs]
            proposal = ", ".join(spelled(runs, shapes, self.scope, unknown=UNKNOWN))
            found.append(Verdict(stmt.line, text, "", "missing", message, proposal=proposal))
        return found

    def needs_one(self, stmt: Stmt) -> bool:
        """Whether a statement makes a tensor: not in place, no number, no other name for one."""
        code = self._text(stmt).split("#")[0].strip()
        if stmt.kind not in ("assign", "return") or code in self.source.given.code:
            return False
        if stmt.alias or stmt.receiver is not None or self._only_names(stmt):
            return False
        shapes = [s for e in self.runs[stmt.id] for s in results(stmt, e)]
        return any(shapes)  # a tensor without dimensions asks for nothing

    def _only_names(self, stmt: Stmt) -> bool:
        """`return (att, probs) if flag else att`: nothing new is made."""
        text = "\n".join(self.source.lines[stmt.line - 1 : stmt.end_line])
        try:
            node = ast.parse(text.strip()).body[0]
        except (SyntaxError, IndexError, RecursionError, MemoryError):
            return False
        value = getattr(node, "value", None)
        made = ast.Call | ast.BinOp | ast.Subscript | ast.ListComp | ast.UnaryOp
        return value is not None and not any(
            isinstance(n, made) or (isinstance(n, ast.Attribute) and n.attr in TURNS)
            for n in ast.walk(value)
        )

    def _covered(self, stmt: Stmt) -> bool:
        """Whether a comment of its own line may be about this statement too."""
        for sighting in (*self.sightings, *self.homeless):
            if sighting.trailing or not self._in_a_row(sighting, stmt):
                if sighting.trailing and stmt.line <= sighting.line <= stmt.end_line:
                    return True
                continue
            about = (*sighting.stmts, *sighting.block)
            if sighting not in self.placed and (stmt.id in about or not about):
                return True
            own = set(flat(stmt.targets))
            named = own & {t.text for t in tokens(sighting.text) if t.word}
            for claim in sighting.claims:
                labels = {t.label.split(".")[0] for t in claim.terms()} & self.tensors
                if (named or not labels - own) and self._holds(claim, sighting, stmt.id):
                    return True
        return False

    def _in_a_row(self, sighting: Sighting, stmt: Stmt) -> bool:
        """Whether no other comment, and no blank line, stands between."""
        low, high = sorted((sighting.line, stmt.line))
        if high - low > 2 * NEAR:
            return False
        between = any(low < other.line < high for other in self.sightings)
        blank = sum(not self.source.lines[i - 1].strip() for i in range(low, high + 1))
        return not between and blank <= (sighting.place == "loose")


def _line(sighting: Sighting, stmt: Stmt) -> int:
    """Where a verdict stands: at the statement, or at the comment on an argument."""
    return sighting.line if stmt.kind == "def" else stmt.line


def _what(stmt: Stmt) -> str:
    if stmt.kind == "return":
        return "what is returned"
    target = stmt.targets[0] if stmt.targets else ""
    return f"`{target}`" if isinstance(target, str) and target else "the result"


def write_missing(source: str, verdicts: list[Verdict]) -> str:
    """The source with a comment behind each statement that lacks one."""
    lines = source.splitlines()
    ends = {s.line: s.end_line for s in trace(source).stmts if s.kind in MAKES}
    for verdict in verdicts:
        if verdict.verdict == "missing" and UNKNOWN not in verdict.proposal:
            place = ends.get(verdict.line, verdict.line) - 1
            glue = "; " if "#" in lines[place] else "  # "
            lines[place] = f"{lines[place].rstrip()}{glue}{verdict.proposal}"
    return "\n".join(lines) + ("\n" if source.endswith("\n") else "")
