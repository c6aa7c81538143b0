"""Which comment is about which statement: comments of a function in, sightings out.

A comment behind code is about that code. One on a line of its own is about the statement above or
the one below; where the layout tells (a block that begins with a comment, or ends with one), only
that one is asked, and where it does not, the other one remains possible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from autograder.shapes.comments import Comment
from autograder.shapes.parser import Claim, Vocabulary, parse
from autograder.shapes.tracer import Function, Stmt, Traced

MAKES = ("assign", "augmented", "expression", "return")
CONTINUES = ("->", "=>", "→", "@", "×", "-->", "==>")


@dataclass(frozen=True)
class Sighting:
    """The claims of a comment and the statements that they may be about, likeliest first."""

    claims: tuple[Claim, ...]
    stmts: tuple[int, ...]
    trailing: bool
    line: int
    text: str
    inner: bool = False  # behind a line of a statement that goes on
    loose: bool = False  # between blank lines, and no name tells what it is about
    link: bool = False  # behind `.view(..)` in a chain of lines whose last has a comment too


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
    inside = [c for c in comments if _innermost(traced, c.line) == function.id]
    groups = [
        (group, claims)
        for group in _groups(inside)
        if not group[0].barrier
        and (claims := tuple(parse([(c.line, c.text) for c in group], vocabulary)))
    ]
    layout = _Layout(lines, stmts, groups, makes)
    found = []
    for group, claims in groups:
        text = " ".join(c.text for c in group)
        named = layout.named(group, claims)
        if named:
            found += [Sighting((c,), ids, False, c.line, text) for c, ids in named]
            continue
        about, inner = layout.about(group)
        trailing, line = not group[0].own, group[0].line
        loose = not about and not trailing
        if loose:
            about = layout.beyond(group)
        link = inner and trailing and layout.is_link(line, stmts[about[0]])
        found.append(Sighting(claims, about, trailing, line, text, inner, loose, link))
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
        if groups and _goes_on(groups[-1][-1], comment):
            groups[-1].append(comment)
        else:
            groups.append([comment])
    return groups


def _goes_on(one: Comment, other: Comment) -> bool:
    if other.line != one.line + 1 or not other.own or other.barrier or one.barrier:
        return False
    return one.own or other.text.lstrip().startswith(CONTINUES)


def _targets(targets) -> list[str]:
    return [t for p in targets for t in (_targets(p) if isinstance(p, list) else [p])]


class _Layout:
    """Where the statements and the comments of one function stand."""

    def __init__(self, lines, stmts: dict[int, Stmt], groups, makes):
        self.lines, self.stmts, self.makes = lines, stmts, makes
        self.own = {g[0].line: g for g, _ in groups if g[0].own}
        self.trailing: Collection[int] = {g[0].line for g, _ in groups if not g[0].own}

    def about(self, group: list[Comment]) -> tuple[tuple[int, ...], bool]:
        first, last = group[0].line, group[-1].line
        if not group[0].own:
            holding = [s for s in self.stmts.values() if s.line <= first <= s.end_line]
            if not holding:
                return (), False
            best = max(holding, key=lambda s: (s.line, s.kind in MAKES))
            beside = [
                s.id for s in holding if s.line == s.end_line == best.line and s.kind in MAKES
            ]
            if len(beside) > 1:  # `q = f(x); q = q.mT`: the last first
                return tuple(reversed(beside)), False
            return (best.id,), first < best.end_line
        inside = [s for s in self.stmts.values() if s.kind in MAKES and s.line < first < s.end_line]
        if inside:
            return (inside[-1].id,), True
        above, below = self.beside(first - 1, -1), self.beside(last + 1, 1)
        if below and above and self.stmts[above[0]].kind == "def" and self._bare(below):
            above = []
        direction = self.direction(first, last) if above and below else 0
        if direction:
            return tuple(above if direction < 0 else below), False
        return tuple(dict.fromkeys([*above, *below])), False

    def beyond(self, group: list[Comment]) -> tuple[int, ...]:
        """The statements nearest to a comment that stands between blank lines."""
        up, down = self._over(group[0].line - 1, -1), self._over(group[-1].line + 1, 1)
        return tuple(dict.fromkeys([*self.beside(up, -1), *self.beside(down, 1)]))

    def _over(self, line: int, step: int) -> int:
        while 0 < line <= len(self.lines) and not self.lines[line - 1].strip():
            line += step
        return line

    def named(self, group: list[Comment], claims) -> list[tuple[Claim, tuple[int, ...]]]:
        """`# q: [..]`, `# k: [..]` beside the lines that make q and k: each with its own line."""
        labels = [c.stages[0].terms[0].label if c.stages else "" for c in claims]
        first, last = group[0].line - 1, group[-1].line + 1
        up, down = self._over(first, -1), self._over(last, 1)
        apart = up != first and down != last
        if not group[0].own or not (apart or len(set(labels)) > 1):
            return []
        rows = []
        if apart or up == first:
            rows.append(self._row(up, -1))
        if apart or down == last:
            rows.append(self._row(down, 1))
        about = [tuple(row[label] for row in rows if label in row) for label in labels]
        return list(zip(claims, about, strict=True)) if all(about) else []

    def _row(self, line: int, step: int) -> dict[str, int]:
        """The statements of a paragraph by the names that they assign, the nearest of each."""
        found: dict[str, int] = {}
        while 0 < line <= len(self.lines):
            text = self.lines[line - 1].strip()
            if not text or text.startswith("#"):
                break
            for stmt in self.stmts.values():
                if stmt.line == line and stmt.kind in MAKES:
                    found |= {t: stmt.id for t in _targets(stmt.targets) if t not in found}
            line += step
        return found

    def is_link(self, line: int, stmt: Stmt) -> bool:
        text = self.lines[line - 1].split("#")[0].strip()
        whole = text.startswith(".") and text.count("(") == text.count(")")
        return whole and stmt.end_line in self.trailing

    def _bare(self, found: list[int]) -> bool:
        """Whether one of the statements has no comment behind it."""
        return any(self._needs(self.stmts[i]) for i in found)

    def _needs(self, stmt: Stmt) -> bool:
        behind = any(stmt.line <= line <= stmt.end_line for line in self.trailing)
        return not behind and self.makes(stmt)

    def direction(self, first: int, last: int) -> int:
        """-1 where the comments of this block are below their statements, 1 above, 0 unknown."""
        low, high = first, last
        while low > 1 and self._in_block(low - 1):
            low -= 1
        while high < len(self.lines) and self._in_block(high + 1):
            high += 1
        items: list[tuple[str, int]] = []
        for line in range(low, high + 1):
            if line in self.own:
                items.append(("comment", line))
            items += [
                ("statement", s.id)
                for s in self.stmts.values()
                if s.line == line and s.kind in MAKES and self._needs(s)
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
        group = self.own[line]
        return stmt in self.beside(group[-1].line + 1 if way > 0 else line - 1, way)

    def _in_block(self, line: int) -> bool:
        text = self.lines[line - 1].strip()
        if not text or text.startswith("#"):
            return bool(text)
        covers = [s for s in self.stmts.values() if s.line <= line <= s.end_line]
        return bool(covers) and not any(s.kind in ("def", "header") for s in covers)

    def beside(self, line: int, step: int) -> list[int]:
        """The statements next to a comment; comments between are passed over, blank lines not."""
        while 0 < line <= len(self.lines):
            text = self.lines[line - 1].strip()
            if not text:
                return []
            if not text.startswith("#"):
                break
            line += step
        touching = [s for s in self.stmts.values() if (s.end_line if step < 0 else s.line) == line]
        if not touching:
            return []
        stmt = max(touching, key=lambda s: (s.kind in MAKES, s.line))
        if stmt.kind == "header":
            low, high = stmt.body
            return [s.id for s in self.stmts.values() if s.kind in MAKES and low <= s.line <= high]
        return [stmt.id]
