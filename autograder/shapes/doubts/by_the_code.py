"""A size that the code itself gives another reading for: by a longer name, or by its numbers.

Each public function is a fact for `facts.FACTS`, as in `readings`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from autograder.shapes.binding import CALL, CODE
from autograder.shapes.doubts.case import Case
from autograder.shapes.recording import Execution
from autograder.shapes.text import names
from autograder.shapes.text.dims import Expr, aligned, evaluate, fits, names_of
from autograder.shapes.tracer import flat, parsed

MOST = 16  # longer names that one name may stand for
COUNTS = {"n", "num", "number", "size", "dim", "count"}  # words of any size
ASKS = ("eq", "ne", "gt", "ge", "lt", "le", "isin", "isfinite", "isnan", "bool", "nonzero")
PICKS = ("masked_select", "nonzero", "unique", "unique_consecutive", "argwhere")


def no_longer_name_has_it(case: Case) -> str:
    """`[batch, beam]`, and the code has that size as `current_beam_size`: it may be meant.

    So may `v_head_dim` in `[b, t, heads * v_head]`, where nothing else is called `v_head`, and the
    `l` of the code in `[L, b, d]`.
    """

    def sizes_of_others(name: str, e: Execution) -> list[int]:
        own = _words(name) - COUNTS
        around = {**case.scope.sizes(e.config, e.unit[0]), **e.before, **e.after}
        sizes = [(n, v) for n, v in around.items() if isinstance(v, int)]
        longer = [v for n, v in sizes if own and own < _words(n)]
        other = e.before.get(name.swapcase())
        return [*longer, *([other] if isinstance(other, int) else [])][:MOST]

    def may(dim: Expr, size: int, axis: int, e: Execution) -> bool:
        if dim[0] == "name":
            return size in sizes_of_others(dim[1], e)
        open_ = (n for n in names_of(dim) if case.scope.fixed(n, e)[1] not in (CALL, CODE))
        sizes, lookup = [(n, v) for n in open_ for v in sizes_of_others(n, e)], case.scope.lookup(e)
        return any(
            evaluate(dim, lambda n, own=own: own[1] if n == own[0] else lookup(n)) == size
            for own in sizes
        )

    longer = not case.exchanged() and all_wrong(case, may)
    return "a longer name of the code may be meant" if longer else ""


def no_numbers_decide_it(case: Case) -> str:
    """`x[ids == 0]  # [batch, d]`: how many are picked, only the numbers say; so they do of all
    that is made of it."""
    first = _picked(case) and all_wrong(case, lambda dim, size, axis, e: axis == 0)
    return "how many there are depends on the numbers" if first else ""


def all_wrong(case: Case, may: Callable[[Expr, int, int, Execution], bool]) -> bool:
    """Whether each size that does not fit may be meant."""
    found, dims = False, case.last.dims
    for e, lookup, shape in case.seen():
        pairs = aligned(dims, len(shape))
        if pairs is None:
            return False
        wrong = [(i, j) for i, j in pairs if not fits(dims[i], shape[j], lookup)]
        if not all(may(dims[i], shape[j], j, e) for i, j in wrong):
            return False
        found = found or bool(wrong)
    return found


def _words(name: str) -> set[str]:
    return set(names.normal(name.rsplit(".", 1)[-1]).split("_")) - {""}


def _picked(case: Case) -> bool:
    """Whether the statement takes what a condition picks, or reads what such a statement made."""
    made: set[str] = set()
    masks: set[str] = set()
    for stmt in sorted((s for s, _ in case.room), key=lambda s: s.line):
        value = parsed(case.matcher.node(stmt).text)
        if value is None or stmt.line > case.stmt.line:
            continue
        inside, own = list(ast.walk(value)), set(flat(stmt.targets))
        by_mask = any(_asks(n.slice, masks) for n in inside if isinstance(n, ast.Subscript))
        calls = {_called(n) for n in inside if isinstance(n, ast.Call)}
        reads = {n.id for n in inside if isinstance(n, ast.Name)} & made
        picks = by_mask or bool(calls & set(PICKS)) or bool(reads)
        if stmt is case.stmt:
            return picks
        made = made | own if picks else made - own
        masks = masks | own if _asks(value, masks) else masks - own
    return False


def _asks(node: ast.expr, masks: set[str]) -> bool:
    """Whether an expression is a condition on numbers, or a name of one."""
    if isinstance(node, ast.Name):
        return node.id in masks
    if isinstance(node, ast.UnaryOp):
        return _asks(node.operand, masks)
    if isinstance(node, ast.BinOp):
        both = isinstance(node.op, ast.BitAnd | ast.BitOr)
        return both and (_asks(node.left, masks) or _asks(node.right, masks))
    if isinstance(node, ast.Tuple):
        return any(_asks(each, masks) for each in node.elts)
    return isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and _called(node) in ASKS)


def _called(node: ast.Call) -> str:
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


DECIDED = (no_longer_name_has_it, no_numbers_decide_it)
