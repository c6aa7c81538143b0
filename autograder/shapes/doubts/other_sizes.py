"""A name of a comment that may stand for another size than the one that is known of it.

Each public function is a fact for `facts.FACTS`, as in `readings`.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from functools import lru_cache

from autograder.shapes.binding import CODE
from autograder.shapes.doubts.case import OFTEN, Case, made
from autograder.shapes.doubts.chains import at_odds
from autograder.shapes.plan import numbers_of
from autograder.shapes.recording import Execution, tensors
from autograder.shapes.solver import MAX_CHOICES, Solver
from autograder.shapes.text import names
from autograder.shapes.text.dims import (
    Dims,
    Expr,
    aligned,
    evaluate,
    fits,
    names_of,
    shape_fits,
    shape_names,
    without,
)
from autograder.shapes.text.flat import instead, may_be
from autograder.shapes.text.lexer import tokens
from autograder.shapes.tracer import parsed

KEPT = 1_024  # expressions whose slices are kept


def not_a_name_of_its_own(case: Case) -> str:
    """`[layers, b, width]`: what a name is in other functions, it need not be in this one."""
    if _is_explained(case):
        return "a name is explained in words"
    foreign = {n for n in case.foreign if names.normal(n) not in case.scope.strangers}
    if case.exchanged():  # words that have each a size of this tensor have no other one
        foreign = {n for n in foreign if len(n) <= 2}
    if case.ends_right():  # a step of it is wrong: what the end names is known
        foreign = foreign - shape_names(case.last.dims)
        terms = [t for s in case.claim.stages for t in s.terms]
        may = any(names_of(d) & foreign for t in terms for d in t.dims)
    else:
        first = case.claim.stages[0]
        begun = len(case.claim.stages) > 1 == len(first.terms) and case.enters()
        if begun or at_odds(case):
            foreign = foreign - shape_names(first.terms[0].dims)  # what comes in has these names
        may = bool(foreign) and all(
            any(may_be(case.last.dims, s, foreign, case.scope.lookup(e)) for s in made(case, e))
            for e in case.runs
        )
    return "a name may have a meaning of its own here" if may else ""


def no_size_is_nameless(case: Case) -> str:
    """`b h n d`, `[b, t, t]`: a name may be used again for a size that has none."""
    dims = case.last.dims
    for e, lookup, shape in case.seen():
        sizes = [evaluate(d, lookup) for d in dims]
        pairs = aligned(dims, len(shape))
        if pairs is None or sorted(map(str, sizes)) == sorted(map(str, shape)):
            return ""
        for i, j in pairs:
            beside = (*dims[max(0, i - 1) : i], *dims[i + 1 : i + 2])
            twice = dims[i] in beside
            no_square = twice and not may_be_two(dims[i], shape[j])
            again = twice or (_of_many_uses(dims[i], e, case) and not _was(dims, e, case))
            wrong = not fits(dims[i], shape[j], lookup)
            apart = any(d == dims[i] for k, d in enumerate(dims) if abs(k - i) > 1)
            if wrong and (apart or no_square):
                return ""  # `[b, t, b]`, `[b, b, t]`
            if wrong and not (again and _nameless(shape[j], names_of(dims[i]), e, case)):
                return ""
    return "a name may stand for two sizes"


def may_be_two(dim: Expr, size: int) -> bool:
    """Whether a dimension that stands twice may be meant for this size too, which is not told.

    A number is meant as it is, a 1 is told as a 1, and `[batch, batch]` is no square.
    """
    return size != 1 and not all(map(names.counts, names_of(dim)))


def _of_many_uses(dim: Expr, execution: Execution, case: Case) -> bool:
    """Whether its names are letters, or words for a length that the code does not have."""
    rare = all(
        names.may_be_length(n) or case.lines_with(n, execution) < OFTEN for n in names_of(dim)
    )
    return rare and all(
        (len(names.normal(n).rstrip("'")) <= 2 and not names.concept(n))  # `bs` means one thing
        or (names.may_be_length(n) and case.scope.free(n, execution))
        for n in names_of(dim) or {"one"}
    )


def _was(dims: Dims, execution: Execution, case: Case) -> bool:
    """Whether dimensions are what comes in, by variables of the code: `x[1:]  # [n]`, of n rows."""
    lookup = case.scope.lookup(execution)
    settled = all(case.scope.fixed(n, execution)[1] == CODE for n in shape_names(dims))
    return settled and any(shape_fits(dims, s, lookup) for s in case.entered(execution))


def _nameless(size: int, used: set[str], execution: Execution, case: Case) -> bool:
    """Whether no variable has the size, and no other name in a comment that is true.

    `N2` is no other name than `N`: who writes `[B, N, N]` may think of both as the same. So are two
    lengths, where nobody says what the other one is.
    """
    stems = {names.normal(n).rstrip("0123456789_'") for n in used}
    short = all(len(stem) <= 2 for stem in stems)
    length = any(map(names.may_be_length, used))
    around = {**execution.before, **execution.after}
    known = [(n, v) for n, v in around.items() if "." not in n or not short]
    if not short:
        known += case.scope.sizes(execution.config, execution.unit[0]).items()
        known += case.scope.arguments.get(execution.config, {}).items()
    sizes = {
        v
        for n, v in known
        if isinstance(v, int)
        and names.normal(n).rstrip("0123456789_'") not in stems
        and not (length and names.may_be_length(n.rsplit(".", 1)[-1]))
    }
    own = {names.normal(n) for n in used}
    sizes |= {
        s
        for (config, name), said in case.scope.confirmed.found.items()
        for s, lines in said.items()
        if config == execution.config and name not in own and lines - {case.sighting.line} and s
    }
    if size == 1 and not any(names.counts(n) or names.may_be_length(n) for n in used):
        return False  # a 1 is told as a 1
    if all(case.scope.free(n, execution) and not execution.size(f"self.{n}") for n in used):
        return size not in sizes  # `[tokens, d]`, where the tokens are those of all sequences
    every = sizes | {case.scope.lookup(execution)(n) for n in used}
    return size not in sizes and not any(
        size % n == 0 and size // n in every and size // n > 2 for n in sizes if n > 2
    )


def no_other_choice_is_as_good(case: Case) -> str:
    """`[n, d]` and `[d, n]`, each true of two lines: what the names mean, each pair says alike."""
    line = case.sighting.line
    for unit in {e.unit for e in case.runs}:
        solver = case.scope.solvers[unit]
        mine = next((c for c in solver.cases if c.claim is case.claim), None)
        told = {
            names.normal(n): case.lines_with(n, e) - case.scope.lines_with(n, e, line, here=True)
            for e in case.runs[:1]
            for n in case.names()
        }
        if mine is not None and not solver.true(mine) and _outweighed(mine, solver, told):
            return "a name may stand for two sizes"
    return ""


def _outweighed(mine, solver: Solver, told: dict[str, int]) -> bool:
    """Whether its names have sizes that make it true, and as many comments; or one more with it.

    told: how many comments of other functions say what a name stands for. Sizes that make one of
    two names are no such choice.
    """
    bound, kept, best, found = solver.bound, dict(solver.bound), solver.score(), False
    beside = [c for c in solver.cases if c is not mine]
    held = [solver.true(c) for c in beside]
    sizes = [[solver.meant[n]] if solver.meant[n] else solver.domains[n] for n in mine.symbols]
    for choice in itertools.islice(itertools.product(*sizes), MAX_CHOICES):
        bound.update(zip(mine.symbols, choice, strict=True))
        if solver.true(mine) and len({*bound.values()}) >= len({*kept.values()}):
            more = sum(told.get(n, 0) for n in mine.symbols if bound[n] != kept[n])
            found |= solver.score() >= best + more
            found |= any(not was and solver.true(c) for was, c in zip(held, beside, strict=True))
    bound.update(kept)
    return found


def no_word_is_the_calls(case: Case) -> str:
    """`def __init__(self, width=9)`: a word of the call may stand for the size of the call."""
    dims = without(case.last.dims, set(case.unproven))
    for e, lookup, shape in case.seen():
        given = case.scope.sizes(e.config, e.unit[0])

        def find(name: str, lookup=lookup, given=given) -> int | None:
            return (names.of_role(name, given) if len(name) > 2 else None) or lookup(name)

        if not shape_fits(dims, shape, find) or shape_fits(dims, shape, lookup):
            return ""
    return "" if case.ends_right() else "a name may stand for two sizes"


def _is_explained(case: Case) -> bool:
    """`[t, b] where t is the number of patches`: words, and no size, say what a name stands for."""
    behind = tokens(case.sighting.text.rpartition(case.last.text)[2])
    for where, name, sign in zip(behind, behind[1:], behind[2:], strict=False):
        if where.text == "where" and name.text in case.names() and sign.kind == "is":
            return names.normal(name.text) not in case.scope.legend
    return False


def no_length_is_the_calls(case: Case) -> str:
    """`q: [b, t, d]`, `k: [b, t, d]`: that their lengths differ, only this call says."""

    def may(dim: Expr, size: int, e: Execution) -> bool:
        if dim[0] != "name" or dim[1] not in case.lengths:
            return False
        entered, other = set(_entered(case, e)), case.scope.lookup(e)(dim[1])
        # In the same place of two arguments: the width of one is no length of another.
        places = (p for a in entered for b in entered for p in zip(a, b, strict=False))
        return (size, other) in places

    return "two arguments may be of one length" if _each_wrong(case, may) else ""


def no_slice_is_left_out(case: Case) -> str:
    """`target[:-1]` is still `[tgt_len, b]` to some, and `x[:, -most:]` has `most` rows at most."""

    def may(dim: Expr, size: int, e: Execution) -> bool:
        value = evaluate(dim, case.scope.lookup(e))
        if value is None or value <= size:
            return False
        settled = any(case.scope.fixed(n, e)[1] == CODE for n in names_of(dim))
        less = (
            names_of(dim)
            and value == size + 1
            and not settled
            and (value, size) in set(_cuts(case, e))
        )
        return bool(less) or (dim[0] == "name" and size in _most(case, dim[1], e))

    return "a slice may have made it shorter" if _each_wrong(case, may) else ""


def no_batch_is_folded(case: Case) -> str:
    """`[batch, t, t]`, where the heads are part of the batch that a function is given."""

    def may(dim: Expr, size: int, e: Execution) -> bool:
        value = evaluate(dim, case.scope.lookup(e)) or 0
        own, entered = names_of(dim), {n for s in _entered(case, e) for n in s}
        foreign = bool(own) and all(case.scope.fixed(n, e)[1] != CODE for n in own)
        return foreign and value > 1 and size % value == 0 and value not in entered

    return "a name may stand for more in this function" if _each_wrong(case, may) else ""


def no_product_of_another(case: Case) -> str:
    """`[b * windows, n, d]`, where `b` is what the function is given: of all windows already."""

    def may(dim: Expr, size: int, e: Execution) -> bool:
        own = names_of(dim)
        is_all = {n for n in own if case.scope.lookup(e)(n) == size}
        others = own - is_all
        unsettled = any(case.scope.fixed(n, e)[1] != CODE for n in others)
        return dim[0] == "*" and len(is_all) == 1 and bool(others) and unsettled

    dims = case.last.dims
    wrong = [
        may(dims[i], shape[j], e)
        for e, lookup, shape in case.seen()
        for i, j in aligned(dims, len(shape)) or ()
        if not fits(dims[i], shape[j], lookup)
    ]
    return "a name may stand for more in this function" if wrong and all(wrong) else ""


def no_other_line_calls_it_so(case: Case) -> str:
    """`nn.GRU(hidden_size=half)`: the layer's `hidden_size` is another than that of the class.

    So is what a later line, or another function, has by that name, where this line has none; and
    no other comments of this function say what it is here.
    """
    for name in sorted(case.names()) if not case.ends_right() else ():
        if all(_is_told_here(name, case, e) for e in case.runs):
            continue
        handed = case.matcher.traced.handed.get(names.normal(name), ())
        if all(_fits_with(name, sorted(handed), case, e) for e in case.runs):
            return "a name may stand for two sizes"
    return ""


def _is_told_here(name: str, case: Case, execution: Execution) -> bool:
    """Whether several other comments of the function are true with a name for its size."""
    return case.scope.lines_with(name, execution, case.sighting.line, here=True) >= names.ENOUGH


def _fits_with(name: str, handed: list[str], case: Case, execution: Execution) -> bool:
    """Whether the last shape is right where a name stands for what is handed over under it, or for
    what is called so elsewhere."""
    lookup, sizes = case.scope.lookup(execution), set(map(execution.size, handed)) - {None}
    if case.scope.fixed(name, execution)[1] != CODE:
        sizes |= case.scope.called.get((execution.config, names.normal(name)), set())
    finds = [instead(lookup, {name: size}) for size in sizes]
    shapes = made(case, execution)
    return any(shape_fits(case.last.dims, s, find) for find in finds for s in shapes)


def _each_wrong(case: Case, may) -> bool:
    """Whether each size that does not fit may be meant, and has no name in this function.

    What nothing proves may be any size.
    """
    found, dims = False, without(case.last.dims, set(case.unproven) - case.lengths)
    for e, lookup, shape in case.seen():
        pairs = aligned(case.last.dims, len(shape))
        if pairs is None:
            return False
        wrong = [(dims[i], shape[j]) for i, j in pairs]
        wrong = [(d, n) for d, n in wrong if not fits(d, n, lookup)]
        if any(_named(n, e, case) or not may(d, n, e) for d, n in wrong):
            return False
        found = found or bool(wrong)
    return found


def _named(size: int, execution: Execution, case: Case) -> bool:
    """Whether a variable of this function has the size, or another true comment in it a name."""
    first, last = case.scope.lines
    said = case.scope.confirmed.lines_of(execution.config, size) - {case.sighting.line}
    return any(first <= line <= last for line in said) or is_a_variable(size, execution)


def is_a_variable(size: int, execution: Execution) -> bool:
    """Whether a variable of the function has a size."""
    around = {**execution.before, **execution.after}
    return any(isinstance(v, int) and v == size for n, v in around.items() if "." not in n)


def _entered(case: Case, execution: Execution) -> Iterator[tuple[int, ...]]:
    """The shapes of the function's arguments in the same call of it."""
    for stmt, runs in case.room:
        for run in runs if stmt.kind == "def" else ():
            if (run.config, run.unit) == (execution.config, execution.unit):
                yield from (s for v in run.before.values() for s in tensors(v))


def _cuts(case: Case, execution: Execution) -> Iterator[tuple[int, int]]:
    """The sizes that slices of the function change, before and after."""
    for _, runs in case.room:
        case.clock.check()
        for run in runs:
            values = dict(run.events)
            for node, value in run.events if run.config == execution.config else ():
                part = case.matcher.traced.nodes[node]
                if part.kind == "Subscript" and part.operands:
                    whole = tensors(values.get(part.operands[0]))
                    for old, new in zip(whole, tensors(value), strict=False):
                        yield from zip(old, new, strict=False)


def _most(case: Case, name: str, execution: Execution) -> set[int]:
    """The sizes that a slice by a name finds where it cuts: those of `x` in `x[:, -name:]`."""
    ids = {stmt.id for stmt, _ in case.room}
    parts = [n for n in case.matcher.traced.nodes if n.stmt in ids and n.kind == "Subscript"]
    found = {(n.text.partition("[")[0], axis) for n in parts for axis in _sliced_by(n.text, name)}
    return {
        s[axis]
        for whole, axis in found
        for _, runs in case.room
        for run in runs
        if run.config == execution.config
        for s in tensors(run.before.get(whole))
        if axis < len(s)
    }


@lru_cache(KEPT)
def _sliced_by(text: str, name: str) -> tuple[int, ...]:
    """The dimensions in which an expression is sliced by a name."""
    part = parsed(text)
    if part is None:
        return ()
    inside = getattr(part, "slice", part)
    slices = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    return tuple(
        i
        for i, one in enumerate(slices)
        if isinstance(one, ast.Slice)
        and name in {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(one)}
    )


def numbers_that_hold(case: Case) -> str:
    """Numbers are true for some sizes only: where sizes differ from run to run, or call to call."""
    why = "numbers are true for some sizes only"
    dims = case.last.dims
    given = case.stmt.kind == "def" and dims  # what comes in is as large as the caller wants
    if (given and (not case.names() or _only_numbers_are_wrong(case))) or _of_another_call(case):
        return why
    if any(d[0] == "/" and d[1][0] == "num" for d in dims):  # `224 / patch`: of somebody's images
        return why
    if any(d[0] == "num" and d[1] > 1 for t in case.claim.terms() for d in t.dims):
        if any(e.config >= len(case.scope.plan.sizes) for e in case.every):
            return "" if not case.names() else why
        every = {s for e in case.runs for s in made(case, e)}
        shapes = {s for s in every if len(s) == len(dims)}
        for i, dim in enumerate(dims):
            fixed = dim[0] != "num" or dim[1] == 1 or all(dim[1] in s for s in every)
            if not fixed and (case.stmt.kind == "def" or len({s[i] for s in shapes}) > 1):
                return why
        told = all(case.told_again(d) for d in dims if d[0] == "num" and d[1] > 1)
        if not case.names() and not told and len(dims) in {len(s) for s in shapes}:
            return why
    return ""


def _only_numbers_are_wrong(case: Case) -> bool:
    """Whether a number stands wherever the sizes differ, and there are as many dimensions."""
    dims = case.last.dims
    for _, lookup, shape in case.seen():
        pairs = aligned(dims, len(shape))
        wrong = [dims[i] for i, j in pairs or () if not fits(dims[i], shape[j], lookup)]
        if pairs is None or any(d[0] != "num" for d in wrong):
            return False
    return True


def _defaults(case: Case) -> set[Expr]:
    """The numbers that arguments of the class are by themselves, where our call gives others."""
    functions = case.matcher.traced.functions
    own = next(f for f in functions if f.id == case.stmt.function)
    begins = [f for f in functions if f.name == "__init__" and f.owner and f.owner == own.owner]
    return {("num", n) for f in (*begins, own) for n in f.defaults}


def _numbers_in(dim: Expr) -> set[Expr]:
    """The numbers of a dimension: 2 and 100 of `2 * 100`."""
    parts = (_numbers_in(part) for part in dim[1:] if isinstance(part, tuple))
    return {dim} if dim[0] == "num" else set().union(*parts)


def _of_another_call(case: Case) -> bool:
    """Whether a number that nothing here has as its size stands for one that the call gives, or
    that an argument is by itself."""
    given = numbers_of(case.scope.plan.calls) - {0, 1}
    usual = _defaults(case)
    for _, lookup, shape in case.seen():
        wrong = [
            (shape[j] in given and evaluate(case.last.dims[i], lookup) not in shape)
            or bool(_numbers_in(case.last.dims[i]) & usual)
            for i, j in aligned(case.last.dims, len(shape)) or ()
            if case.last.dims[i] != ("num", 1) and not names_of(case.last.dims[i])
            if not fits(case.last.dims[i], shape[j], lookup)
            and not case.told_again(case.last.dims[i])
        ]
        if not wrong or not all(wrong):
            return False
    return bool(case.runs)


OTHER_SIZES = (
    no_size_is_nameless,
    no_word_is_the_calls,
    no_length_is_the_calls,
    no_other_choice_is_as_good,
    no_slice_is_left_out,
    no_batch_is_folded,
    no_product_of_another,
    no_other_line_calls_it_so,
)
