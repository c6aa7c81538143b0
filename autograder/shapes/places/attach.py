"""Which comment is about which statement: comments of a function in, sightings out.

A comment behind code is about that code. One on a line of its own is about the statement above or
the one below; where the layout tells (a block that begins with a comment, or ends with one), only
that one is asked, and where it does not, the other one remains possible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from autograder.shapes.places.docstrings import (
    comment_above,
    comment_below,
    of_arguments,
    of_result,
)
from autograder.shapes.places.layout import NEAR, Layout, named_twice
from autograder.shapes.text.comments import Comment
from autograder.shapes.text.dims import shape_names
from autograder.shapes.text.lexer import tokens
from autograder.shapes.text.lines import Rows, ends_in_arrow, numbered, sentence
from autograder.shapes.text.reader import Claim, read
from autograder.shapes.text.shapes_in_text import Vocabulary
from autograder.shapes.tracer import Function, Node, Stmt, Traced

MAX_SIGHTINGS = 300


@dataclass(frozen=True)
class Sighting:
    """The claims of a comment and the statements that they may be about, likeliest first.

    place: "end" of a line, "inner" line of a longer statement, a "link" of a chain of calls;
    "above", "below" or "between" statements; above a "block" of them; "named" by the label of a
    tensor, "loose" between blank lines, in the "docstring". rows: its lines, by their numbers.
    block: the statements of the paragraph below it. code: what stands before it in its line.
    listed: whether its lines are numbered, as the steps of a longer way are. behind_code: whether
    it stands right below a statement that is switched off. as_docstring: whether it is a comment
    in the place of a docstring.
    """

    claims: tuple[Claim, ...]
    stmts: tuple[int, ...]
    place: str
    rows: Rows
    block: tuple[int, ...] = field(default=())
    code: str = ""
    listed: bool = False
    behind_code: bool = False
    as_docstring: bool = False

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

    @property
    def on_a_line(self) -> bool:
        """Whether it is a comment that has a line for itself."""
        return not self.trailing and self.place != "docstring"

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

    def led_to(self, claim: Claim) -> bool:
        """Whether an arrow in front of it says that a line tells what comes of the others."""
        row = next((text for line, text in self.rows if line == claim.line), "")
        arrow = [t.kind for t in tokens(row[:20])[:1]] == ["arrow"]
        last = "".join(t.text for t in claim.terms()[-1:])
        arrow = arrow or (len(claim.terms()) == 1 and ends_in_arrow(row, last))
        return arrow and self.alone(claim)

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
    inside = [c for c in comments if _function_of(c, traced, lines) == function.id]
    groups = [
        (group, claims)
        for group in _groups(inside)[:MAX_SIGHTINGS]
        if not group[0].barrier
        and (claims := tuple(read([(c.line, c.text) for c in group], vocabulary)))
    ]
    layout = Layout(lines, stmts, groups, makes)
    own = [*stmts.values()]
    found = docstring(function, own, traced, vocabulary)
    for part in (comment_above(function, lines), comment_below(function, lines)):
        told = docstring(part, own, traced, vocabulary) if part.docstring else []
        told = [s for s in told if stmts[s.stmts[0]].kind == "return"]
        found += [replace(s, as_docstring=True) for s in told]
    results = {s.line for s in found if s.as_docstring}
    for group, claims in groups:
        rows, told = tuple((c.line, c.text) for c in group), {c.line for c in claims}
        arguments, claims = layout.arguments(group, claims, function)
        claims = tuple(c for c in claims if c.line not in results)
        claims = () if group[0].line < function.line else claims
        named = layout.named(group, claims) if claims else []
        off = group[0].behind_code
        found += [Sighting((c,), ids, "named", rows, behind_code=off) for c, ids in named]
        for claim, ids in arguments:
            own = tuple(r for r in rows if r[0] not in told - {claim.line})
            found.append(Sighting((claim,), ids, "named", own))
        claims = tuple(c for c in claims if c not in [own for own, _ in named])
        if not claims:
            continue
        ids, place = layout.about(group)
        below = layout.below(group[-1].line)
        below = layout.over(below, 1) if place == "loose" else below
        block = layout.block(below) if place in ("above", "between", "loose") else ()
        code = layout.text(group[0].line).split("#")[0].strip()
        found.append(Sighting(claims, ids, place, rows, block, code, numbered(rows), off))
    return found


def docstring(
    function: Function, stmts: list[Stmt], traced: Traced, vocabulary: Vocabulary
) -> list[Sighting]:
    """What the docstring says of the arguments, and of what is returned."""
    head = next((s.id for s in stmts if s.kind == "def"), None)
    returns = [s for s in stmts if s.kind == "return" and s.value is not None]
    if head is None:
        return []
    rows = {s.id: _row(traced.nodes[s.value]) for s in returns if s.value is not None}
    names = list(dict.fromkeys(n for row in rows.values() for n in row or ()))
    several = any(row is not None for row in rows.values())
    told = [(c, (head,), row) for c, row in of_arguments(function, vocabulary)]
    for claim, line in of_result(function, names if several else None, vocabulary) if rows else ():
        label = claim.terms()[0].label
        told.append(
            (claim, tuple(i for i, r in rows.items() if not several or label in (r or ())), line)
        )
    return [Sighting((c,), of, "docstring", (row,)) for c, of, row in told]


def _row(node: Node) -> list[str] | None:
    """The names in a row that is returned: `return out, probs`."""
    parts = [part.strip() for part in node.text.strip("()").split(",")]
    return [p for p in parts if p.isidentifier()] if node.kind == "Tuple" else None


def _function_of(comment: Comment, traced: Traced, lines: list[str]) -> int:
    """The function that a comment is of: below it where it stands right above a `def`."""
    line, last = comment.line, min(comment.line + NEAR, len(lines))
    while comment.own and line < last and lines[line].strip()[:1] in ("#", "@"):
        line += 1
    heads = [f.id for f in traced.functions if f.line == line + 1]
    return heads[0] if comment.own and heads else _innermost(traced, comment.line)


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


def _goes_on(one: Comment, other: Comment) -> bool:
    if other.line != one.line + 1 or not other.own or other.barrier or one.barrier:
        return False
    first = tokens(other.text[:20])
    sign = bool(first) and not first[0].word and first[0].kind == "arrow"
    times = bool(first) and first[0].text in ("@", "×") and [t.text for t in first[1:2]] != [":"]
    return one.own or sign or times
