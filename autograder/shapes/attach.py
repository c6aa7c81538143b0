"""Which comment is about which statement: comments of a function in, sightings out.

A comment behind code is about that code. One on a line of its own is about the statement above or
the one below; where the layout tells (a block that begins with a comment, or ends with one), only
that one is asked, and where it does not, the other one remains possible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from autograder.shapes.text.comments import Comment
from autograder.shapes.text.dims import shape_names
from autograder.shapes.text.lexer import tokens
from autograder.shapes.text.lines import Rows, becoming, described, sentence
from autograder.shapes.text.reader import Claim, read
from autograder.shapes.text.shapes_in_text import Vocabulary
from autograder.shapes.tracer import Function, Stmt, Traced, flat

MAKES = ("assign", "augmented", "expression", "return")
MAX_SIGHTINGS, NEAR, MAX_DOC = 300, 12, 4_000


@dataclass(frozen=True)
class Sighting:
    """The claims of a comment and the statements that they may be about, likeliest first.

    place: "end" of a line, "inner" line of a longer statement, a "link" of a chain of calls;
    "above", "below" or "between" statements; above a "block" of them; "named" by the label of a
    tensor, "loose" between blank lines, in the "docstring". rows: its lines, by their numbers.
    block: the statements of the paragraph below it. code: what stands before it in its line.
    """

    claims: tuple[Claim, ...]
    stmts: tuple[int, ...]
    place: str
    rows: Rows
    block: tuple[int, ...] = field(default=())
    code: str = ""

    @property
    def line(self) -> int:
        return self.claims[0].line if self.place == "named" else self.rows[0][0]

    @property
    def text(self) -> str:
        return " ".join(text for _, text in self.rows)

    def names(self) -> set[str]:
        """The names of dimensions in it."""
        return {n for c in self.claims for t in c.terms() for n in shape_names(t.dims)}

    @property
    def trailing(self) -> bool:
        return self.place in ("end", "inner", "link")

    def comes_in(self, claim: Claim) -> bool:
        """`# x: [b, t, d]`, `# x: [b, d, t]`: what `x` is, and becomes; `# out:` beside `# x:`."""
        told = any(c.role == "output" and c.line != claim.line for c in self.claims)
        return claim is not self.claims[-1] and (told or named_twice(self.claims))

    def by_itself(self, claim: Claim, tensors: Collection[str]) -> bool:
        """Whether a claim has a line of the block, and the name of a tensor, for itself."""
        rows = [[t.label for t in c.terms()] for c in self.claims]
        labels = [t.label for t in claim.terms()]
        alone = self.alone(claim) and len(labels) == 1 and labels[0] in tensors
        return alone and rows.count(labels) == 1

    def alone(self, claim: Claim) -> bool:
        """Whether a claim has a line of the block for itself."""
        return [c.line for c in self.claims].count(claim.line) == 1 < len(self.claims)

    def only(self, claim: Claim, tensors: Collection[str]) -> Sighting:
        """With what is said in one sentence with the claim alone."""
        told, shape = {c.line for c in self.claims}, "".join(t.text for t in claim.terms()[-1:])
        if self.by_itself(claim, tensors):  # no line before it goes on into `q: [..]`
            told |= {number for number, _ in self.rows}
        text = sentence(self.rows, claim.line, told, shape)
        return replace(self, rows=((self.line, text),))


def sightings(
    function: Function,
    traced: Traced,
    comments: list[Comment],
    lines: list[str],
    vocabulary: Vocabulary,
    makes: Callable[[Stmt], bool],
) -> list[Sighting]:
    """The shape comments of a function. `makes` tells whether a statement made a tensor."""
    stmts = {s.id: s for s in traced.stmts if s.function == function.id}
    header = next((s.id for s in stmts.values() if s.kind == "def"), None)
    inside = [c for c in comments if _innermost(traced, c.line) == function.id]
    groups = [
        (group, claims)
        for group in _groups(inside)[:MAX_SIGHTINGS]
        if not group[0].barrier
        and (claims := tuple(read([(c.line, c.text) for c in group], vocabulary)))
    ]
    layout = _Layout(lines, stmts, groups, makes)
    found = docstring(function, header, vocabulary) if header is not None else []
    for group, claims in groups:
        rows, told = tuple((c.line, c.text) for c in group), {c.line for c in claims}
        arguments, claims = layout.arguments(group, claims, function)
        named = layout.named(group, claims) if claims else []
        found += [Sighting((c,), ids, "named", rows) for c, ids in named]
        for claim, ids in arguments:
            own = tuple(r for r in rows if r[0] not in told - {claim.line})
            found.append(Sighting((claim,), ids, "named", own))
        if named or not claims:
            continue
        ids, place = layout.about(group)
        below = layout.over(group[-1].line + 1, 1) if place == "loose" else group[-1].line + 1
        block = layout.block(below) if place in ("above", "between", "loose") else ()
        code = layout.text(group[0].line).split("#")[0].strip()
        found.append(Sighting(claims, ids, place, rows, block, code))
    return found


def styles(room) -> dict[str, int]:
    """How many comments of their own line are true of the line below, and of the one above.

    "block" counts those that are true of a later line of the paragraph below only.
    """
    found = {"above": 0, "below": 0, "block": 0}
    for sighting in room.sightings:
        if sighting.trailing or sighting.place in ("loose", "named", "docstring"):
            continue
        first = {i for i in sighting.stmts if room.stmts[i].line > sighting.line}

        def holds(stmts, of=sighting):
            return any(room.holds(c, of, i) for c in of.claims for i in stmts)

        below, above = holds(first), holds(set(sighting.stmts) - first)
        if below != above:
            found["above" if below else "below"] += 1
        elif not below and holds(set(sighting.block) - first):
            found["block"] += 1
    return found


def docstring(function: Function, header: int, vocabulary: Vocabulary) -> list[Sighting]:
    """What the docstring says of arguments: `x: (b, t, c)`, `x (Tensor): of shape (b, t, c)`.

    One shape in the line that begins with the argument's name is about that argument.
    """
    found, results = [], False  # what is told under `Returns:` is of no argument
    for line, text in enumerate(function.docstring[:MAX_DOC].splitlines(), function.doc_line):
        name, rest = described(text)
        words = tokens(text)
        if words and (len(words) == 1 or words[1].text == ":"):
            results = words[0].kind == "output" and len(words) < 3 or (results and len(words) > 2)
        if results or name not in function.parameters:
            continue
        claims = read([(line, f"{name}: {rest}")], vocabulary)
        if len(claims) == 1 and len(claims[0].stages) == len(claims[0].terms()) == 1:
            rows = ((line, text.strip()),)
            found.append(Sighting((_of(claims[0], name),), (header,), "docstring", rows))
    return found


def _innermost(traced: Traced, line: int) -> int:
    """The function that a line stands in, or has just left."""
    holding = [f for f in traced.functions if f.line <= line <= f.end_line]
    if holding:
        return max(holding, key=lambda f: f.line).id
    before = [f for f in traced.functions if f.end_line < line <= f.end_line + 3]
    return max(before, key=lambda f: f.end_line).id if before else -1


def _groups(comments: list[Comment]) -> list[list[Comment]]:
    """Lines of comment that belong together."""
    groups: list[list[Comment]] = []
    for comment in comments:
        if groups and len(groups[-1]) < NEAR and _goes_on(groups[-1][-1], comment):
            groups[-1].append(comment)
        else:
            groups.append([comment])
    return groups


def _of(claim: Claim, label: str) -> Claim:
    """The claim with the name of an argument as its label."""
    terms = tuple(replace(t, label=label) for t in claim.stages[0].terms)
    return replace(claim, stages=(replace(claim.stages[0], terms=terms),))


def _goes_on(one: Comment, other: Comment) -> bool:
    if other.line != one.line + 1 or not other.own or other.barrier or one.barrier:
        return False
    first = tokens(other.text[:20])
    return one.own or bool(first and (first[0].kind == "arrow" or first[0].text in ("@", "×")))


def named_twice(claims: tuple[Claim, ...]) -> bool:
    """Whether the lines of a comment begin and end with the same name: what it is, and becomes."""
    labels = [{t.label for t in c.terms()} - {""} for c in claims]
    return len({c.line for c in claims}) > 1 and bool(labels[0] & labels[-1])


class _Layout:
    """Where the statements and the comments of one function stand."""

    def __init__(self, lines, stmts: dict[int, Stmt], groups, makes):
        self.lines, self.stmts, self.makes = lines, stmts, makes
        self.own = {g[0].line: g for g, _ in groups if g[0].own}
        self.trailing = {g[0].line for g, _ in groups if not g[0].own}
        self.turning = {g[0].line for g, claims in groups if named_twice(claims)}
        self.makers = sorted(
            (s for s in stmts.values() if s.kind in MAKES), key=lambda s: (s.line, s.id)
        )
        self.starts: dict[int, list[Stmt]] = {}
        self.holds: dict[int, list[Stmt]] = {}
        self.ends: dict[int, list[Stmt]] = {}  # the headers by the last line that they govern
        for stmt in stmts.values():
            if stmt.kind == "header":
                self.ends.setdefault(stmt.body[1], []).append(stmt)
            self.starts.setdefault(stmt.line, []).append(stmt)
            for line in range(stmt.line, min(stmt.end_line, stmt.line + 80) + 1):
                self.holds.setdefault(line, []).append(stmt)

    def text(self, line: int) -> str:
        return self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""

    def about(self, group: list[Comment]) -> tuple[tuple[int, ...], str]:
        """The statements that a comment may be about, and where it stands to them."""
        first, last = group[0].line, group[-1].line
        holding = self.holds.get(first, [])
        if not group[0].own:
            if not holding:
                return (), "loose"
            best = max(holding, key=lambda s: (s.line, s.kind in MAKES))
            beside = [
                s.id for s in holding if s.line == s.end_line == best.line and s.kind in MAKES
            ]
            if len(beside) > 1:  # `q = f(x); q = q.mT`: the last first
                return tuple(reversed(beside)), "end"
            inner = first < best.end_line
            place = "end" if not inner else "link" if self._link(first, best) else "inner"
            return (best.id,), place
        inside = [s for s in holding if s.kind in MAKES and s.line < first < s.end_line]
        if inside:
            return (inside[-1].id,), "inner"
        above, below = self.beside(first - 1, -1), self.beside(last + 1, 1)
        direction = self.direction(first, last) if above and below else 0
        if below and first in self.turning:
            direction = 1
        if direction:
            return tuple(above if direction < 0 else below), "below" if direction < 0 else "above"
        if above and below:
            return tuple(dict.fromkeys([*above, *below])), "between"
        if above or below:  # several are the lines of a block: `if`, `for`
            place = "block" if len(above or below) > 1 else "below" if above else "above"
            return tuple(above or below), place
        up, down = self.over(first - 1, -1), self.over(last + 1, 1)
        return tuple(dict.fromkeys([*self.beside(up, -1), *self.beside(down, 1)])), "loose"

    def block(self, line: int) -> tuple[int, ...]:
        """The statements from a line on, up to a blank line or the next comment of its own.

        Where none of them makes a tensor, those behind the blank line too.
        """
        found: list[int] = []
        last = line + 2 * NEAR
        while line < last and not self.text(line).startswith("#") and len(found) < NEAR:
            if not self.text(line) and any(self.makes(self.stmts[i]) for i in found):
                break
            found += [s.id for s in self.starts.get(line, []) if s.kind in MAKES]
            line += 1
        return tuple(found)

    def over(self, line: int, step: int) -> int:
        """The next line that is not blank."""
        while 0 < line <= len(self.lines) and not self.text(line):
            line += step
        return line

    def named(self, group: list[Comment], claims) -> list[tuple[Claim, tuple[int, ...]]]:
        """`# q: [..]`, `# k: [..]` beside the lines that make q and k: each with its own line."""
        labels = [c.stages[0].terms[0].label if c.stages else "" for c in claims]
        first, last = group[0].line - 1, group[-1].line + 1
        up, down = self.over(first, -1), self.over(last, 1)
        apart = up != first and down != last
        if not group[0].own or not (apart or len(set(labels)) > 1) or not all(labels):
            return []
        rows = []
        if apart or up == first:
            rows.append(self._row(up, -1))
        if apart or down == last:
            rows.append(self._row(down, 1))
        about = [tuple(row[label] for row in rows if label in row) for label in labels]
        return list(zip(claims, about, strict=True)) if all(about) else []

    def arguments(self, group: list[Comment], claims, function: Function):
        """The claims about an argument, each with its statements, and the claims that are left.

        `# x: [..]` before the first statement of a function, or in the line of one argument of a
        longer `def`; what the next line makes of the same name may be meant too. One above an `if`
        that asks about the argument is of that branch alone.
        """
        headers = [s for s in self.stmts.values() if s.kind == "def"]
        first = min((s.line for s in self.makers), default=function.end_line)
        if not headers or not headers[0].line <= group[0].line < first:
            return [], claims
        found, rest = [], []
        for claim in claims:
            alone = [a for a, line in function.parameters.items() if line == claim.line]
            alone = [a for a in alone if a not in ("self", "cls")]
            label = alone[0] if len(alone) == 1 and not group[0].own else ""
            if not label and claim.stages and len(claim.stages[0].terms) == 1:
                label = claim.stages[0].terms[0].label
            arrow = next((becoming(c.text) for c in group if c.line == claim.line), "")
            label = label or arrow
            if label not in function.parameters or len(claim.stages) != 1:
                rest.append(claim)
                continue
            branch = self.text(group[-1].line + 1) if group[0].own else ""
            if branch.startswith("if ") and label in branch.replace(".", " ").split():
                continue
            below = self.beside(group[-1].line + 1, 1) if group[0].own else []
            again = [i for i in below if arrow or label in flat(self.stmts[i].targets)]
            found.append((_of(claim, label), (headers[0].id, *again)))
        return found, tuple(rest)

    def _row(self, line: int, step: int) -> dict[str, int]:
        """The statements of a paragraph by the names that they assign, the nearest of each."""
        found: dict[str, int] = {}
        for _ in range(4 * NEAR):
            if not self.text(line) or self.text(line).startswith("#"):
                break
            for stmt in self.starts.get(line, []):
                if stmt.kind in MAKES:
                    found |= {t: stmt.id for t in flat(stmt.targets) if t not in found}
            line += step
        return found

    def _link(self, line: int, stmt: Stmt) -> bool:
        """Behind `.view(..)` in a chain of lines whose last has a comment too."""
        text = self.text(line).split("#")[0].strip()
        whole = text.startswith(".") and text.count("(") == text.count(")")
        return whole and stmt.end_line in self.trailing

    def _needs(self, stmt: Stmt) -> bool:
        behind = any(line in self.trailing for line in range(stmt.line, stmt.end_line + 1))
        return not behind and self.makes(stmt)

    def direction(self, first: int, last: int) -> int:
        """-1 where the comments of this block are below their statements, 1 above, 0 unknown."""
        low, high = first, last
        column = self._column(first)
        while low > 1 and self._in_block(low - 1, column) and first - low < 40:
            low -= 1
        while self._in_block(high + 1, column) and high - last < 40:
            high += 1
        items: list[tuple[str, int]] = []
        for line in range(low, high + 1):
            if line in self.own:
                items.append(("comment", line))
            items += [
                ("statement", s.id)
                for s in self.starts.get(line, [])
                if s.kind in MAKES and self._needs(s)
            ]
        kinds = [kind for kind, _ in items]
        for way, order in ((1, ("comment", "statement")), (-1, ("statement", "comment"))):
            pairs = list(zip(items[::2], items[1::2], strict=False))
            if (
                kinds
                and kinds == [*order] * len(pairs)
                and all(self._touch(pair[::way], way) for pair in pairs)
            ):
                return way
        return 0

    def _touch(self, pair, way: int) -> bool:
        """Whether a comment stands next to the statement that it would be about."""
        (_, line), (_, stmt) = pair
        return stmt in self.beside(self.own[line][-1].line + 1 if way > 0 else line - 1, way)

    def _in_block(self, line: int, column: int) -> bool:
        text = self.text(line)
        if not text or text.startswith("#"):
            return bool(text)
        covers = self.holds.get(line, [])
        if any(self._column(s.line) != column for s in covers):
            return False
        return bool(covers) and not any(s.kind in ("def", "header") for s in covers)

    def beside(self, line: int, step: int) -> list[int]:
        """The statements next to a comment; comments between are passed over, blank lines not."""
        for _ in range(NEAR):
            if not self.text(line).startswith("#"):
                break
            line += step
        if not self.text(line):
            return []
        touching = self.starts.get(line, []) if step > 0 else self.holds.get(line, [])
        touching = [s for s in touching if (s.end_line if step < 0 else s.line) == line]
        if not touching:
            return []
        stmt = max(touching, key=lambda s: (s.kind in MAKES, s.line))
        if stmt.kind == "header":
            low, high = stmt.body
            return [s.id for s in self.makers if low <= s.line <= high][:NEAR]
        return (self._branches(stmt, line + 1) if step < 0 else []) or [stmt.id]

    def _branches(self, last: Stmt, below: int) -> list[int]:
        """Above a comment below an `if` and its `else`: what makes the same in each of them."""
        own = set(flat(last.targets))
        for header in self.ends.get(last.end_line, ()):
            if self._column(below) <= self._column(header.line):
                found = [s for s in self.makers if header.line < s.line <= last.line]
                found = [s for s in found if own & set(flat(s.targets))]
                return [s.id for s in sorted(found, key=lambda s: not self.makes(s))][:NEAR]
        return []

    def _column(self, line: int) -> int:
        return len(self.lines[line - 1]) - len(self.lines[line - 1].lstrip())
