"""From a source and a recording to verdicts: which comment is true, false or missing."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from autograder.shapes import names, record
from autograder.shapes.attach import MAKES, Sighting, sightings
from autograder.shapes.comments import find_comments
from autograder.shapes.dims import (
    NotADim,
    fits,
    only_numbers,
    parse_dims,
    shape_fits,
    shape_names,
)
from autograder.shapes.limits import Clock, TooLong
from autograder.shapes.match import Matcher, flat, pairs, positional, results, unpacks
from autograder.shapes.parser import Claim, Term, Vocabulary, legends
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
from autograder.shapes.scope import Scope
from autograder.shapes.solver import Solver
from autograder.shapes.tracer import TURNS, Function, Stmt, Traced, trace
from autograder.shapes.wording import UNKNOWN, spelled

WEIGHT = re.compile(r"(?i)w|w_?[qkvo]|w_\w+|w[qkvo]_\w+|weights?|bias")  # of a layer


@dataclass(frozen=True)
class Verdict:
    """What is said of one comment, or of a statement that lacks one.

    verdict: "true" | "false" | "missing" | "cannot tell". confidence: "high" | "medium" | "low".
    deducts: whether a rubric may take a point off for it.
    """

    line: int
    statement: str
    comment: str
    verdict: str
    message: str
    confidence: str = "high"
    deducts: bool = False
    proposal: str = ""  # for a missing comment: the shape to write


def check_source(
    source: str,
    plan: Plan,
    run: Callable[[dict], dict] = record.run,
    *,
    setup: str = "",
    starter: str | None = None,
    strict: bool = False,
) -> list[Verdict]:
    """Traces, runs and judges. `run` executes the code: in this process, unless told otherwise."""
    recording = run(prepare(source, plan, setup=setup))
    return judge(source, plan, recording, starter=starter, strict=strict)


def judge(
    source: str, plan: Plan, recording: object, *, starter: str | None = None, strict: bool = False
) -> list[Verdict]:
    """Verdicts in the order of lines. Raises SyntaxError or ValueError for a bad source."""
    traced = trace(source)
    try:
        evidence = read_recording(recording, traced, len(plan.sizes) + bool(plan.public))
    except BadRecording as error:
        return [_cannot(1, "", "", f"the run gave no readable recording ({error})")]
    if evidence.problem:
        text = f"{evidence.problem['type']}: {evidence.problem['message']}"
        return [_cannot(1, "", "", f"the code did not run ({text})")]
    judged = _Judge(source, plan, traced, evidence, starter, strict)
    try:
        return sorted(judged.verdicts(), key=lambda v: v.line)
    except TooLong as error:
        return [_cannot(1, "", "", str(error))]


def _cannot(line, statement, comment, why) -> Verdict:
    return Verdict(
        line, statement, comment, "cannot tell", f"Line {line}: cannot tell: {why}.", "low"
    )


def _with_commas(claim: Claim) -> Claim:
    """`[batch seq, hidden]` as `[batch, seq, hidden]`: between two words that are no one name."""

    def parted(match: re.Match) -> str:
        one, other = match[1], match[2]
        apart = all(len(n) <= 2 or names.known(n) for n in (one, other))
        return f"{one}, " if apart and not names.known(f"{one}_{other}") else match[0]

    def mended(term: Term) -> Term:
        text = re.sub(r"([^\W\d]\w*)\s+(?=([^\W\d]\w*))", parted, term.text.strip("[](){}"))
        try:
            return replace(term, dims=parse_dims(text)) if "," in term.text else term
        except NotADim:
            return term

    stages = (replace(s, terms=tuple(map(mended, s.terms))) for s in claim.stages)
    return replace(claim, stages=tuple(stages))


class _Judge:
    def __init__(self, source, plan, traced: Traced, evidence: Evidence, starter, strict):
        self.lines = source.splitlines()
        self.plan, self.traced, self.evidence, self.strict = plan, traced, evidence, strict
        self.given = {line.strip() for line in (starter or "").splitlines() if line.strip()}
        self.comments = find_comments(source, starter)
        self.all_comments = "\n".join(c.text for c in self.comments)
        self.ran = tuple(range(len(plan.sizes)))
        self.clock = Clock()
        self.tensors: frozenset[str] = frozenset()  # names of the function that is judged

    def verdicts(self) -> list[Verdict]:
        found: list[Verdict] = []
        for function in self.traced.functions:
            if function.top in self.plan.entries or self._ran(function):
                found += self._function(function)
        return found

    def _ran(self, function: Function) -> bool:
        return any(
            s.function == function.id and s.id in self.evidence.executions
            for s in self.traced.stmts
        )

    # --- one function --------------------------------------------------------------------------
    def _function(self, function: Function) -> list[Verdict]:
        stmts = {s.id: s for s in self.traced.stmts if s.function == function.id}
        plain = {i: s for i, s in stmts.items() if s.kind in MAKES}
        loops = {t for s in stmts.values() if s.kind == "header" for t in flat(s.targets)}
        scope = Scope(
            self.plan, self.ran, constants=self.evidence.constants, loops=frozenset(loops)
        )
        vocabulary = self._vocabulary(stmts)
        self.tensors = frozenset(vocabulary.tensors)
        scope.legend = {
            names.normal(k): v
            for k, v in legends(self.all_comments + "\n" + function.docstring, vocabulary).items()
        }
        matcher = Matcher(self.traced, scope, self.strict)
        seen = sightings(
            function, self.traced, self.comments, self.lines, vocabulary, self._needs_one
        )
        about = [s for s in seen if s.stmts]
        self.solver = Solver(scope, about, stmts, self.evidence, matcher, self.clock)
        self.solver.solve()
        tied = self.solver.ties()
        found, described = [], set()
        for sighting in about:
            verdicts, one = self._sighting(sighting, stmts, scope, matcher)
            found += [self._tied(v, tied.get(sighting.line)) for v in verdicts]
            described |= one
        if function.name != "__init__":
            found += self._missing(plain, described, about, matcher)
        return found

    def _vocabulary(self, stmts) -> Vocabulary:
        seen_tensors, sizes = set(), set(self.plan.roles)
        for stmt in stmts:
            for execution in self.evidence.executions.get(stmt, []):
                for scope in (execution.before, execution.after):
                    for name, value in scope.items():
                        if isinstance(value, int):
                            sizes.add(name)
                            sizes.add(names.normal(name))
                        elif tensors(value):
                            seen_tensors.add(name)
        return Vocabulary(seen_tensors, sizes)

    # --- one comment -----------------------------------------------------------------------------
    def _sighting(self, sighting: Sighting, stmts, scope, matcher):
        self.clock.check()
        found, described = [], set()
        if not sighting.stmts:
            return [], set()
        for stmt_id in sighting.stmts:
            verdicts = self._judge(sighting, stmts[stmt_id], scope, matcher)
            if all(v.verdict == "true" for v in verdicts):
                return verdicts, {stmt_id}
            found.append((stmt_id, verdicts))
        if sighting.loose:  # a heading perhaps
            return [], set()
        stmt_id, verdicts = min(found, key=lambda f: self._preference(f[0], f[1], stmts, sighting))
        described.add(stmt_id)
        if not sighting.trailing and len(found) > 1:
            makers = [i for i, _ in found if stmts[i].kind in MAKES]
            if len(makers) > 1 and any(v.verdict == "cannot tell" for _, vs in found for v in vs):
                verdicts = [
                    v if v.verdict != "false" else self._unsure(v, "it may be about another line")
                    for v in verdicts
                ]
        return verdicts, described

    def _preference(self, stmt_id, verdicts, stmts, sighting):
        bare = self._has_trailing(stmts[stmt_id])
        return (bare, sum(v.verdict == "false" for v in verdicts), stmts[stmt_id].line)

    def _has_trailing(self, stmt: Stmt) -> bool:
        return any(not c.own and stmt.line <= c.line <= stmt.end_line for c in self.comments)

    def _unsure(self, verdict: Verdict, why: str) -> Verdict:
        return _cannot(verdict.line, verdict.statement, verdict.comment, why)

    def _judge(self, sighting: Sighting, stmt: Stmt, scope, matcher) -> list[Verdict]:
        line, statement = stmt.line, self._text(stmt)
        every = self.evidence.executions.get(stmt.id, [])
        runs = [e for e in every if e.config in self.ran]
        if not runs:
            return [_cannot(line, statement, sighting.text, "this line never ran")]
        if sighting.trailing and not any(self._shaped(e) for e in runs):
            return []  # a remark behind a number
        claims = sighting.claims
        several = pairs(claims, stmt, runs)
        if several and all(positional(claims, stmt, e, matcher) for e in runs):
            return [self._true(line, statement, sighting.text)]
        found = [self._claim(c, sighting, stmt, runs, every, scope, matcher) for c in claims]
        if all(v.verdict == "true" for v in found):
            return found
        if several and not self._of_others(claims, stmt):
            return [self._wrong_tuple(sighting, stmt, runs, scope)]
        if any(  # `the [..] of x becomes [..]`, in any language
            v.verdict == "true" and not self._of_others((c,), stmt)
            for c, v in zip(claims, found, strict=True)
        ):
            own = set(flat(stmt.targets))
            formula = any(c.stages[-1].terms[-1].label in own for c in claims if c.stages)
            found = [
                self._true(line, statement, sighting.text)
                if (claim.told or claim is not claims[0] or (formula and self._named(claim, own)))
                and all(matcher.passes(claim, stmt, e) for e in runs)
                else verdict
                for claim, verdict in zip(claims, found, strict=True)
            ]
            found = [
                self._unsure(verdict, "it is not clear which tensor is meant")
                if claim.aside and verdict.verdict == "false"
                else verdict
                for claim, verdict in zip(claims, found, strict=True)
            ]
        return found

    def _named(self, claim: Claim, own: set[str]) -> bool:
        """`Q: [..]`, `A: [..]` above `A = query @ key.mT`: Q is what enters, by another name."""
        return all(t.label and t.label not in own for t in claim.terms())

    def _of_weight(self, term: Term) -> bool:
        """`W_q: [input_size, hidden]`, where no tensor has that name."""
        weight = WEIGHT.fullmatch(term.label) and term.label not in self.tensors
        return bool(weight) and len(term.dims) <= 2

    def _of_others(self, claims, stmt: Stmt) -> bool:
        """Whether one of the claims is labelled as that of a tensor which the line only reads."""
        value = self.traced.nodes[stmt.value].text if stmt.value is not None else ""
        own = {*flat(stmt.targets), *(re.findall(r"\w+", value) if stmt.kind == "return" else ())}
        labels = {t.label for c in claims for t in c.terms() if t.label} - own
        return bool(labels & self.tensors)

    def _wrong_tuple(self, sighting, stmt, runs, scope) -> Verdict:
        """As many shapes as tensors, and one of them does not fit."""
        is_ = ", ".join(spelled(stmt, runs, scope, sighting.claims))
        said = ", ".join(c.text for c in sighting.claims)
        message = f"Line {stmt.line}: {self._what(stmt)} is {is_}; your comment says {said}."
        return Verdict(stmt.line, self._text(stmt), sighting.text, "false", message, "high", True)

    def _claim(self, claim, sighting, stmt, runs, every, scope, matcher) -> Verdict:
        line, statement, text = stmt.line, self._text(stmt), sighting.text
        if claim.unsure or not claim.stages:
            return _cannot(line, statement, text, "the comment is not readable as a shape")
        stopped = [e for e in runs if not e.finished and e.last(stmt.value) is None]
        if stmt.kind in ("assign", "augmented", "expression") and len(stopped) == len(runs):
            return _cannot(line, statement, text, "the code stopped here")
        held = [matcher.holds(claim, sighting, stmt, e) for e in runs]
        if all(held):
            note = any(matcher.skips(claim, e) for e in runs)
            return self._true(line, statement, text, "; a step before it is left out" * note)
        if stmt.kind == "expression" and stmt.receiver is None or stmt.kind == "other":
            return _cannot(line, statement, text, "this line makes no tensor")
        if self._module(stmt, runs):
            return self._of_module(claim, sighting, stmt, runs, scope, matcher)
        if any(self._of_weight(t) for t in claim.terms()):
            return _cannot(line, statement, text, "the weight of a layer is not looked at")
        if all(only_numbers(t.dims) for t in claim.terms()):
            return self._numbers(claim, sighting, stmt, every, matcher)
        made = [results(stmt, e) for e in runs]
        listed = not sighting.trailing and len(sighting.claims) > 1  # what comes in, what goes out
        reads = self._reads_shape(stmt) and not listed
        if not any(made) and reads and not self._unsettled(claim, scope, runs):
            message = f"Line {line}: the shape that is read here is not {claim.text}."
            return Verdict(line, statement, text, "false", message, "high", True)
        if not any(made):
            return _cannot(line, statement, text, "what this line makes has no shape of its own")
        if self._elsewhere(claim, sighting):
            return _cannot(line, statement, text, "the tensor that is named is not on this line")
        if any(any(h) and not all(h) for h in self._by_config(held, runs)):
            return _cannot(line, statement, text, "the shape is not the same every time")
        if self._unsettled(claim, scope, runs) and any(
            len(set(map(tuple, m))) > 1 for m in self._by_config(made, runs)
        ):
            return _cannot(line, statement, text, "the shape is not the same every time")
        if any(len(set(m)) > 1 for m in made) and self._one_fits(claim, made, runs, scope):
            return _cannot(line, statement, text, "this line makes tensors of several shapes")
        if stmt.kind in ("header", "def"):
            return _cannot(line, statement, text, "it is not clear which tensor is meant")
        with_comma = _with_commas(claim)
        if with_comma != claim and all(matcher.holds(with_comma, sighting, stmt, e) for e in runs):
            return _cannot(line, statement, text, "a comma may be missing")
        return self._false(claim, stmt, runs, scope, sighting)

    def _unsettled(self, claim: Claim, scope: Scope, runs: list[Execution]) -> bool:
        return any(scope.free(n, runs[0]) for t in claim.terms() for n in shape_names(t.dims))

    def _elsewhere(self, claim: Claim, sighting: Sighting) -> bool:
        """Whether a comment of its own line is about a tensor that no line beside it has."""
        labels = {t.label for t in claim.terms() if t.label}
        if sighting.trailing or not labels or not labels <= self.tensors:
            return False
        beside = [s for s in self.traced.stmts if s.id in sighting.stmts]
        code = "\n".join("\n".join(self.lines[s.line - 1 : s.end_line]) for s in beside)
        return not labels & set(re.findall(r"\w+", re.sub(r"#.*", "", code)))

    def _reads_shape(self, stmt: Stmt) -> bool:
        """`b, s, _ = x.shape`, whose comment is about x."""
        text = self.traced.nodes[stmt.value].text if stmt.value is not None else ""
        return unpacks(stmt) and text.endswith((".shape", ".size()"))

    def _one_fits(self, claim: Claim, made: list, runs: list[Execution], scope: Scope) -> bool:
        """Whether a shape that came about is the one that the claim ends with."""
        last = claim.stages[-1].terms[-1].dims
        seen = [
            m + [s for _, v in e.events for s in tensors(v)]
            for m, e in zip(made, runs, strict=True)
        ]
        return any(
            shape_fits(last, shape, scope.lookup(e))
            for shapes, e in zip(seen, runs, strict=True)
            for shape in shapes
        )

    def _shaped(self, execution: Execution) -> bool:
        """Whether a tensor or a layer (one without a weight is None) came about, or came in."""
        values = [v for _, v in execution.events] or list(execution.before.values())
        return any(v is None or isinstance(v, Weight) or tensors(v) for v in values)

    def _by_config(self, values: list, runs: list[Execution]) -> list[list]:
        """Values of executions, those of one configuration together."""
        found: dict[int, list] = {}
        for value, run in zip(values, runs, strict=True):
            found.setdefault(run.config, []).append(value)
        return list(found.values())

    def _module(self, stmt: Stmt, runs: list[Execution]) -> bool:
        return any(isinstance(e.last(stmt.value), Weight) for e in runs)

    def _of_module(self, claim, sighting, stmt, runs, scope, matcher) -> Verdict:
        """A comment behind `nn.Linear(..)`: two sizes are its weight, more what it gives."""
        weight = runs[0].last(stmt.value).shape
        last = claim.stages[-1].terms[-1].dims
        lookup = scope.lookup(runs[0])
        known = not any(scope.free(n, runs[0]) for n in shape_names(last))
        if weight is not None and len(claim.stages) == 1 and len(last) == len(weight) == 2:
            if known:
                return self._false(claim, stmt, runs, scope, sighting)
        elif weight is not None and len(last) != 2 and fits(last[-1], weight[0], lookup):
            return self._true(stmt.line, self._text(stmt), sighting.text)
        why = "a layer is no tensor"
        return _cannot(stmt.line, self._text(stmt), sighting.text, why)

    def _numbers(self, claim, sighting, stmt, every, matcher) -> Verdict:
        statement, text = self._text(stmt), sighting.text
        public = [e for e in every if e.config >= len(self.plan.sizes)]
        if public and all(matcher.holds(claim, sighting, stmt, e) for e in public):
            return self._true(stmt.line, statement, text)
        rank = {len(s) for e in every for s in results(stmt, e)}
        last = claim.stages[-1].terms[-1].dims
        if not public and len(last) in rank:
            return _cannot(stmt.line, statement, text, "numbers are true for some sizes only")
        return self._false(claim, stmt, every, matcher.scope, sighting)

    def _true(self, line, statement, text, note: str = "") -> Verdict:
        return Verdict(line, statement, text, "true", f"Line {line}: true{note}.")

    def _false(self, claim: Claim, stmt: Stmt, runs: list[Execution], scope: Scope, sighting):
        execution, made = runs[0], results(stmt, runs[0])
        said = claim.text
        seen = next(iter(spelled(stmt, runs, scope, (claim,))), "unknown")
        what = self._what(stmt)
        message = f"Line {stmt.line}: {what} is {seen}; your comment says {said}."
        last = claim.stages[-1].terms[-1].dims
        if len(claim.stages) > 1 or len(claim.stages[-1].terms) > 1:
            lookup = scope.lookup(execution)
            if made and shape_fits(last, made[0], lookup):
                message = (
                    f"Line {stmt.line}: {what} is {seen}, but a step of {said} is not what the "
                    "code does."
                )
        used = {n for t in claim.terms() for n in shape_names(t.dims)}
        free = [n for n in used if scope.free(n, execution)]
        confidence = "medium" if free else "high"
        text = sighting.text
        return Verdict(stmt.line, self._text(stmt), text, "false", message, confidence, True)

    def _tied(self, verdict: Verdict, other: Sighting | None) -> Verdict:
        """One comment against one: each may be the false one, and one of them is."""
        if other is None or verdict.verdict not in ("true", "false"):
            return verdict
        message = (
            f"Line {verdict.line}: {verdict.comment} and {other.text} in line {other.line} cannot "
            "both be true: a name would have two meanings."
        )
        return replace(verdict, verdict="false", message=message, confidence="medium", deducts=True)

    def _what(self, stmt: Stmt) -> str:
        if stmt.kind == "return":
            return "what is returned"
        target = stmt.targets[0] if stmt.targets else ""
        return f"`{target}`" if isinstance(target, str) and target else "the result"

    def _text(self, stmt: Stmt) -> str:
        return (
            self.lines[stmt.line - 1].split("  #")[0].strip()
            if stmt.line <= len(self.lines)
            else ""
        )

    # --- statements without a comment ------------------------------------------------------------
    def _missing(self, plain, described, sightings, matcher) -> list[Verdict]:
        found = []
        for stmt in sorted(plain.values(), key=lambda s: s.line):
            if stmt.id in described or not self._needs_one(stmt):
                continue
            if self._covered(stmt, plain, sightings, matcher):
                continue
            if any(s.stmts != () and stmt.id in s.stmts and s.trailing for s in sightings):
                continue
            text = self._text(stmt)
            message = f"Line {stmt.line}: `{text}` makes a tensor; its shape is not in a comment."
            proposal = self._proposal(stmt, matcher.scope)
            found.append(Verdict(stmt.line, text, "", "missing", message, "high", True, proposal))
        return found

    def _needs_one(self, stmt: Stmt) -> bool:
        if self.lines[stmt.line - 1].strip() in self.given:
            return False
        if stmt.alias or self._only_names(stmt):
            return False
        if stmt.kind == "expression" and stmt.receiver is None:
            return False
        runs = [e for e in self.evidence.executions.get(stmt.id, []) if e.config in self.ran]
        return any(results(stmt, e) for e in runs)

    def _only_names(self, stmt: Stmt) -> bool:
        """`return (att, probs) if flag else att`: nothing new is made."""
        text = "\n".join(self.lines[stmt.line - 1 : stmt.end_line])
        try:
            node = ast.parse(text.strip()).body[0]
        except (SyntaxError, IndexError):
            return False
        value = getattr(node, "value", None)
        if stmt.kind not in ("return", "assign") or value is None:
            return False
        return not any(
            isinstance(n, ast.Call | ast.BinOp | ast.Subscript | ast.ListComp | ast.UnaryOp)
            or (isinstance(n, ast.Attribute) and n.attr in TURNS)
            for n in ast.walk(value)
        )

    def _covered(self, stmt, plain, sightings, matcher) -> bool:
        """A comment of its own line that holds for several statements in a row."""
        runs = [e for e in self.evidence.executions.get(stmt.id, []) if e.config in self.ran]
        for sighting in sightings:
            low, high = sorted((sighting.line, stmt.line))
            between = any(low < other.line < high for other in sightings)
            if sighting.trailing or between or not self._in_a_row(sighting, stmt):
                continue
            named = set(re.findall(r"\w+", sighting.text))
            if any(
                all(matcher.holds(c, sighting, stmt, e) for e in runs)
                for c in sighting.claims
                if named & set(flat(stmt.targets)) or not self._of_others((c,), stmt)
            ):
                return True
        return False

    def _in_a_row(self, sighting: Sighting, stmt: Stmt) -> bool:
        low, high = sorted((sighting.line, stmt.line))
        if high - low > 6:
            return False
        text = "\n".join(line.strip() for line in self.lines[low - 1 : high])
        return len(re.findall(r"\n\n+", text)) <= sighting.loose

    def _proposal(self, stmt: Stmt, scope: Scope) -> str:
        """The shape to write behind a statement, in the names of this function."""
        runs = [e for e in self.evidence.executions[stmt.id] if e.config in self.ran]
        return ", ".join(spelled(stmt, runs, scope))


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
