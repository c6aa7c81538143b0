"""Where the statements and the comments of one function stand to each other."""

from __future__ import annotations

import itertools
from dataclasses import replace

from autograder.shapes.text.comments import Comment
from autograder.shapes.text.lexer import tokens
from autograder.shapes.text.lines import becoming
from autograder.shapes.text.reader import Claim
from autograder.shapes.tracer import Function, Stmt, flat

MAKES = ("assign", "augmented", "expression", "return")
NEAR = 12  # lines of a comment, or statements of a paragraph, that are looked at


def named_twice(claims: tuple[Claim, ...]) -> bool:
    """Whether the lines of a comment begin and end with the same name: what it is, and becomes."""
    labels = [{t.label for t in c.terms()} - {""} for c in claims]
    return len({c.line for c in claims}) > 1 and bool(labels[0] & labels[-1])


def of_argument(claim: Claim, label: str) -> Claim:
    """The claim with the name of an argument as its label."""
    terms = tuple(replace(t, label=label) for t in claim.stages[0].terms)
    return replace(claim, stages=(replace(claim.stages[0], terms=terms),))


def _of_words(text: str, parameters: list[str]) -> str:
    """The argument that the words before a colon spell: `input ids: [b, t]`."""
    words = [t.text for t in itertools.takewhile(lambda t: t.text != ":", tokens(text)[:6])]
    return next((p for p in parameters if len(words) > 1 and p == "_".join(words)), "")


class Layout:
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

    def below(self, line: int) -> int:
        """The line behind a comment and the frame around it, `#------`."""
        line += 1
        while (text := self.text(line)).startswith("#") and not any(map(str.isalnum, text)):
            line += 1
        return line

    def over(self, line: int, step: int) -> int:
        """The next line that is not blank."""
        while 0 < line <= len(self.lines) and not self.text(line):
            line += step
        return line

    def named(self, group: list[Comment], claims) -> list[tuple[Claim, tuple[int, ...]]]:
        """`# q: [..]`, `# k: [..]` beside the lines that make q and k: each with its own line.

        Where one has no such line, those that a later line of the paragraph below makes.
        """
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
        both = zip(claims, about, labels, strict=True)
        if all(about):
            return [(claim, ids) for claim, ids, _ in both]
        later = self._row(down, 1).keys() - self._row(down, 1, most=1).keys()
        return [(c, ids) for c, ids, label in both if label in later and len(label) > 1]

    def arguments(self, group: list[Comment], claims, function: Function):
        """The claims about an argument, each with its statements, and the claims that are left.

        `# x: [..]` right above a function or before its first statement, `# input: [..]` where it
        has one argument, or in the line of one of a longer `def`; what the next line makes of the
        same name may be meant too. One above an `if` that asks about the argument is of that branch
        alone.
        """
        headers = [s for s in self.stmts.values() if s.kind == "def"]
        first = min((s.line for s in self.makers), default=function.end_line)
        begins = bool(headers) and group[0].own and group[0].line < headers[0].line
        if not begins and (not headers or not headers[0].line <= group[0].line < first):
            return [], claims
        every = [a for a in function.parameters if a not in ("self", "cls")]
        found, rest = [], []
        for claim in claims:
            alone = [a for a, line in function.parameters.items() if line == claim.line]
            alone = [a for a in alone if a in every]
            label = alone[0] if len(alone) == 1 and not group[0].own else ""
            if claim.role == "input" and group[0].own and len(every) == 1:
                label = every[0]
            if not label and claim.stages and len(claim.stages[0].terms) == 1:
                label = claim.stages[0].terms[0].label
            arrow = next((becoming(c.text) for c in group if c.line == claim.line), "")
            label = label or arrow
            if label not in function.parameters:
                text = next((c.text for c in group if c.line == claim.line), "")
                label = _of_words(text, every) or label
            if label not in function.parameters or len(claim.stages) != 1:
                rest.append(claim)
                continue
            branch = self.text(group[-1].line + 1) if group[0].own else ""
            if branch.startswith("if ") and label in branch.replace(".", " ").split():
                continue
            below = self.beside(group[-1].line + 1, 1) if group[0].own else []
            becomes = bool(arrow) and len(claims) == 1
            again = [i for i in below if becomes or label in flat(self.stmts[i].targets)]
            if not again and group[0].own and len(claims) > 1:  # a row of what the lines below make
                again = [i for n, i in self._row(group[-1].line + 1, 1).items() if n == label]
            found.append((of_argument(claim, label), (headers[0].id, *again)))
        return found, tuple(rest)

    def _row(self, line: int, step: int, most: int = 4 * NEAR) -> dict[str, int]:
        """The statements of a paragraph by the names that they assign, the nearest of each."""
        found: dict[str, int] = {}
        for _ in range(most):
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
