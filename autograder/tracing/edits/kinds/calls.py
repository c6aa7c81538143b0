"""Slips in calls: another function, one too many, a result that lies in another order."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.layouts import (
    of_axes_beside,
    of_axes_that_lie_so,
    of_heads_as_items,
    of_heads_first,
    of_layout,
    of_repeats,
    of_spread,
)
from autograder.tracing.edits.kinds.names import is_sure, keeps
from autograder.tracing.edits.kinds.numbers import TURNS
from autograder.tracing.edits.kinds.source import (
    NATURAL,
    Edit,
    Source,
    names_in,
    number,
    of_library,
)
from autograder.tracing.text import callee

FIXED = ("zeros", "ones", "full", "arange")  # how functions begin that make the same numbers
# Functions that are taken for one another.
KINDS = (
    "sum mean max",
    "mean amax",
    "amax amin max min",
    "argmax argmin",
    "max argmax",
    "min argmin",
    "split chunk",
    "std var",
    "exp exp2 log log2 log10 log1p expm1",
    "sqrt rsqrt square",
    "abs square",
    "sin cos",
    "tril triu",
    "zeros ones",
    "new_zeros new_ones",
    "rand randn",
    "rand_like randn_like",
    "uniform_ normal_",
    "zeros_like ones_like",
    "stack cat",
    "relu gelu tanh sigmoid elu",
    "ReLU GELU Tanh Sigmoid",
    "softmax log_softmax",
    "floor ceil",
    "eigvals eigvalsh",
    "eig eigh",
    "repeat repeat_interleave",
    "cumsum cumprod",
    "logical_and logical_or",
    "any all",
    "values indices",
    "gather index_select",
    "minimum maximum",
    "softshrink hardshrink",
    "mm bmm matmul",
    "add sub",
    "mul div",
)
OTHERS = {
    name: [o for other in KINDS if name in other.split() for o in other.split() if o != name]
    for kind in KINDS
    for name in kind.split()
}
# What a function does not do that another does; nobody takes them for one another the other way.
OTHERS |= {
    "isqrt": ["sqrt"],
    "empty": ["zeros"],
    "empty_like": ["zeros_like"],
    "no_grad": ["enable_grad"],
}
ZEROS = ("zeros_like", "zeros", "new_zeros")
MASKED = ("masked_fill", "masked_fill_", "where")
BUILT_IN = ("max", "min", "sum", "any", "all")  # functions that are no library's
ODD = ("log1p", "expm1")  # what nobody means who writes the plain one
LIMITS = ("min", "max", "tiny", "eps", "smallest_normal", "resolution")  # of `torch.finfo(..)`
PAIRS = ("max", "min", "topk", "sort", "median", "mode", "kthvalue")
WHOLE = ("round", "int", "math.floor", "math.ceil", "floor", "ceil")  # what makes whole numbers
CEIL = "-int(-({}) // 1)"
TURNED = ("t", "transpose", "swapaxes")  # what turns a matrix
INVERSES = ("inv", "pinv", "inverse", "solve")
EIGENVALUES = ("eigvals", "eig", "eigvalsh", "eigh")


def of_calls(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of one call, or of an attribute that is read like one."""
    if isinstance(node, ast.Call):
        yield from _another_function(source, node)
        yield from _none(source, node)
        yield from _arguments(source, node)
        yield from _of_mask(source, node)
        yield from _of_triangles(source, node)
        yield from of_layout(source, node)
        yield from of_axes_that_lie_so(source, node)
        yield from of_axes_beside(source, node)
        yield from _of_a_start(source, node)
        yield from of_repeats(source, node)
        yield from of_spread(source, node)
        yield from _of_pairs(source, node)
        yield from _of_joined(source, node)
        yield from _of_whole_numbers(source, node)
        yield from of_heads_as_items(source, node)
        yield from _of_inverses(source, node)
        yield from _of_signs(source, node)
        yield from _of_copied_weights(source, node)
        yield from _of_the_symmetric_part(source, node)
        yield from _of_all_that_is_left(source, node)
        yield from of_heads_first(source, node)
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        if node.attr in ("T", "mT", "data"):
            how = f"`{source.shown(node)}` turns what should stay as it is"
            yield source.with_expression(node, source.of(node.value), how, 1)
            if node.attr != "data":
                yield from _of_turns(source, node, node.value)
                yield from _of_no_inverse(source, node, node.value)
        elif node.attr in ("values", "indices") and not _is_called(source, node):
            other = OTHERS[node.attr][0]
            how = f"`.{node.attr}` is not what belongs there"
            yield source.with_text(node, f"{source.of(node.value)}.{other}", how, 1)
        elif node.attr in LIMITS and isinstance(node.value, ast.Call | ast.Name):
            how = f"`.{node.attr}` is not the limit that belongs there"
            for other in (each for each in LIMITS if each != node.attr):
                yield source.with_text(node, f"{source.of(node.value)}.{other}", how, 1)


def _is_called(source: Source, node: ast.Attribute) -> bool:
    parent = source.parent[node]
    return isinstance(parent, ast.Call) and parent.func is node


def _another_function(source: Source, node: ast.Call) -> Iterator[Edit]:
    name = callee(node)
    if not isinstance(node.func, ast.Attribute) and name not in BUILT_IN:
        return
    for other in OTHERS.get(name, ()):
        start, end = source.span(node.func)
        how = f"`{name}` is not what belongs in `{source.shown(node)}`"
        # The softmax of a log_softmax is a softmax: before a second one both would be right.
        rank = 4 if other == "log_softmax" else 2 * int(_is_on_purpose(source, node))
        rank = max(rank, 2 * (other in ODD))
        yield source.with_span(node, (end - len(name), end), other, how, rank)


def _is_on_purpose(source: Source, node: ast.Call) -> bool:
    """Whether something is divided by its own sum, or its own maximum taken off, as a softmax does:
    another function there is no slip."""
    around, of = source.parent[node], getattr(node.func, "value", None)
    while isinstance(around, ast.Attribute | ast.Subscript):  # `x.max(-1, keepdim=True).values`
        around = source.parent[around]
    if not isinstance(around, ast.BinOp) or of is None or source.of(around.left) != source.of(of):
        return False
    signs = {"sum": ast.Div, "max": ast.Sub, "amax": ast.Sub}
    return isinstance(around.op, signs.get(callee(node), ()))


def _of_all_that_is_left(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`weights.reshape(batch, seq, seq)` of the weights of all heads: the first axis holds all that
    is left."""
    sizes = node.args if isinstance(node.func, ast.Attribute) else []
    if callee(node) in ("view", "reshape") and len(sizes) > 1:
        named = all(isinstance(each, ast.Name | ast.Attribute) for each in sizes)
        if named:
            how = f"`{source.of(sizes[0])}` is not how many there are in `{source.shown(node)}`"
            new = ", ".join(["-1", *map(source.of, sizes[1:])])
            span = source.span(sizes[0])[0], source.span(sizes[-1])[1]
            yield source.with_span(node, span, new, how, 1)


def _of_the_symmetric_part(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`torch.linalg.eigvals(m).real`, where the values of the symmetric part are meant."""
    if callee(node) in EIGENVALUES and node.args:
        of, parent = source.in_brackets(node.args[0]), source.parent[node]
        whole = parent if getattr(parent, "attr", "") in ("real", "eigenvalues") else node
        how = f"`{source.shown(whole)}` is of the matrix itself, and not of its symmetric part"
        new = f"torch.linalg.eigvalsh(({of} + {of}.mT) / 2)"
        yield source.with_expression(whole, new, how, 1)


def _of_copied_weights(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A matrix that is copied as it stands, from a layer that keeps it turned."""
    given = node.args[0] if callee(node) in ("copy_", "Parameter") and node.args else None
    if given is not None and not re.search(r"\.(?:T|mT|t\(\)|transpose\(.*\))$", source.of(given)):
        how = f"`{source.shown(given)}` is copied as it stands, and has to be turned"
        yield source.with_expression(given, f"{source.in_brackets(given)}.mT", how, 1)


def _of_signs(source: Source, node: ast.Call) -> Iterator[Edit]:
    """The size of complex numbers whose real part is meant, which has a sign."""
    if callee(node) == "abs" and isinstance(node.func, ast.Attribute) and not node.keywords:
        of = node.args[0] if of_library(node.func) and node.args else node.func.value
        how = f"`{source.shown(node)}` takes away the sign"
        yield source.with_expression(node, f"{source.in_brackets(of)}.real", how, 2)


def _of_triangles(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A triangle of ones that is the mask turned round, or the other one."""
    by_name = [k.value for k in node.keywords if k.arg == "diagonal"]
    far = (by_name or node.args)[-1:]
    if callee(node) in ("tril", "triu") and far and number(far[0]) is not None:
        other = "triu" if callee(node) == "tril" else "tril"
        start, end = source.span(node.func)[1] - 4, source.span(node)[1]
        first, last = source.span(far[0])
        before, behind = source.text[start + 4 : first], source.text[last:end]
        how = f"`{source.shown(node)}` is the triangle on the other side of the diagonal"
        new = f"{other}{before}{-number(far[0])}{behind}"
        yield source.with_span(node, (start, end), new, how, 1)
    if callee(node) in ("tril", "triu") and not isinstance(source.parent[node], ast.Compare):
        how = f"`{source.shown(node)}` picks the places that should be left, and leaves the others"
        yield source.with_expression(node, f"({source.of(node)}) == 0", how, 2)


def _none(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A call that does not belong there: what it was given stays as it is."""
    name, function = callee(node), node.func
    how = f"`{name}` does not belong there: `{source.shown(node)}`"
    rank = 0 if name in TURNS else 2
    is_method = isinstance(function, ast.Attribute) and not of_library(function)
    if is_method and not (isinstance(function.value, ast.Name) and function.value.id == "self"):
        yield replace(
            source.with_expression(node, source.of(function.value), how, rank), takes=True
        )
    elif node.args and not isinstance(node.args[0], ast.Starred):
        kept = node.args[2] if name == "where" and len(node.args) == 3 else node.args[0]
        yield replace(source.with_expression(node, source.of(kept), how, 2), takes=True)


def _of_inverses(source: Source, node: ast.Call) -> Iterator[Edit]:
    """An inverse, where its transpose belongs; a transpose, where an inverse does."""
    if callee(node) in INVERSES:
        how = f"the axes of `{source.shown(node)}` stand the wrong way round"
        yield source.with_expression(node, f"{source.of(node)}.mT", how, 0)
    elif callee(node) in TURNED and isinstance(node.func, ast.Attribute):
        yield from _of_no_inverse(source, node, node.func.value)


def _of_no_inverse(source: Source, node: ast.expr, turned: ast.expr) -> Iterator[Edit]:
    """A matrix that is turned as if it were a rotation, whose inverse that is."""
    if isinstance(turned, ast.Name):
        how = f"`{source.shown(node)}` is the inverse of a rotation alone"
        yield source.with_expression(node, f"torch.linalg.inv({turned.id})", how, 1)
        yield source.with_expression(node, f"torch.linalg.inv({turned.id}).mT", how, 2)


def _arguments(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Two neighbours among the arguments exchanged; one named argument left out. Not of what the
    student wrote, where the function may be wrong, and not of what gets names that say nothing."""
    own = source.defined()
    if callee(node) in own or callee(node) == "zip":
        yield from _of_crossed_names(source, node)
        return
    texts = [source.of(each) for each in node.args]
    far = len(texts) if callee(node) == "permute" else 2  # how far apart are two that change places
    for i, j in itertools.combinations(range(len(texts)), 2):
        if texts[i] == texts[j] or j - i >= far:
            continue
        other = [*texts]
        other[i], other[j] = texts[j], texts[i]
        span = source.span(node.args[0])[0], source.span(node.args[-1])[1]
        how = f"the arguments of `{source.shown(node)}` stand in another order than they should"
        pair = [node.args[place] for place in (i, j)]
        named = all(isinstance(each, ast.Name) for each in pair)
        named = named and not any(_is_given(source, each) for each in pair)
        edit = source.with_span(node, span, ", ".join(other), how, 1)
        yield replace(edit, by_name=named)
    for keyword in node.keywords:
        if keyword.arg:
            start, end = source.span(keyword)
            before = source.text.rfind(",", 0, start)
            if before > source.span(node.func)[1]:
                how = f"`{source.shown(keyword)}` does not belong in `{source.shown(node)}`"
                edit = source.with_span(node, (before, end), "", how, 3)
                yield replace(edit, takes=True).told_of(_made_for_it(source, keyword.value))
    if callee(node) == "norm" and len(node.args) == 2 and not node.keywords:
        span = source.span(node.args[0])[1], source.span(node.args[1])[1]
        how = f"`{source.shown(node.args[1])}` is another norm in `{source.shown(node)}`"
        yield source.with_span(node, span, "", how, 1)


def _of_crossed_names(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Arguments of a function of the student's own, or of `zip` in a loop, of which each is called
    as the other one's place is: `for v, o in zip(w_o, w_v)`."""
    wanted = _names_of_places(source, node)
    given = [source.of(each) for each in node.args]
    span = (source.span(node.args[0])[0], source.span(node.args[-1])[1]) if given else (0, 0)
    how = f"the arguments of `{source.shown(node)}` stand in another order than they should"
    for i, j in itertools.combinations(range(len(given)), 2):
        other = [*given]
        other[i], other[j] = given[j], given[i]
        if j < len(wanted) and _are_crossed(given[i], given[j], wanted[i], wanted[j]):
            yield source.with_span(node, span, ", ".join(other), how)
        elif callee(node) == "zip" and j == i + 1 and given[i] != given[j]:
            of_one = {*names_in(given[i])} & {*names_in(given[j])}  # `zip(text[1:], text)`
            yield source.with_span(node, span, ", ".join(other), how, NATURAL if of_one else 3)


def _are_crossed(one: str, other: str, first: str, second: str) -> bool:
    """Whether two arguments are called as each other's places are."""
    straight = _is_called_so(one, first) or _is_called_so(other, second)
    crossed = _is_called_so(one, second) and _is_called_so(other, first)
    own = one == first or other == second
    very = one == second or other == first  # one of them, at least
    return (crossed and not straight) or (very and not own)


def _names_of_places(source: Source, node: ast.Call) -> list[str]:
    """What the places of a call's arguments are called: by the function that is the student's own,
    or by the names of the loop that `zip` gives its parts to."""
    if callee(node) != "zip":
        own = [f for f in source.functions() if f.name == callee(node)]
        names = [a.arg for a in own[0].args.args] if len(own) == 1 else []
        return names[1:] if names[:1] == ["self"] else names
    target = getattr(source.parent[node], "target", None)
    return [source.of(each) for each in target.elts] if isinstance(target, ast.Tuple) else []


def _is_called_so(given: str, place: str) -> bool:
    """Whether an argument is called as its place is: `l_new` and `l2`, `w_v` and `v`."""
    one, other = (
        {word.rstrip("0123456789") for word in name.lower().split("_")} - {"", "new", "old"}
        for name in (given, place)
    )
    return bool(one & other)


def _made_for_it(source: Source, node: ast.expr) -> int | None:
    """The line that makes a variable for this one place, of the same numbers whatever comes in."""
    function = source.function(node)
    if function is None or not isinstance(node, ast.Name):
        return None
    own = [n for n in source.names(function) if n.id == node.id]
    made = [source.statement(n) for n in own if isinstance(n.ctx, ast.Store)]
    value = getattr(made[0], "value", None) if len(made) == 1 and len(own) == 2 else None
    fixed = isinstance(value, ast.Call) and callee(value).startswith(FIXED)
    return made[0].lineno if fixed else None


def _is_given(source: Source, node: ast.Name) -> bool:
    """Whether a name is an argument of what is asked for, which is right where it comes in."""
    function = source.function(node)
    given = [a.arg for a in function.args.args] if function is not None else []
    return node.id in given and function.name not in source.called and is_sure(source, node)


def _of_mask(source: Source, node: ast.Call) -> Iterator[Edit]:
    name = callee(node)
    if name not in MASKED or not node.args:
        return
    second = name != "where" and of_library(node.func)
    mask = node.args[second] if len(node.args) > second else None
    if mask is not None:
        how = f"`{source.shown(mask)}` picks the places that should be left, and leaves the others"
        rank = {True: 0, False: 2}.get(keeps(mask), 1) if name != "where" else 1
        yield source.with_expression(mask, f"({source.of(mask)}) == 0", how, rank)
        scores = node.args[0] if second else getattr(node.func, "value", None)
        if scores is not None and name != "where":
            yield from _of_its_cut(source, mask, scores)
        value = node.args[-1] if len(node.args) > second + 1 else None
        if value is not None and name != "where" and not _is_minus_infinity(source, value):
            how = f"`{source.shown(value)}` is not what hides a score"
            rank = int(isinstance(value, ast.Name))  # else where it is made
            yield source.with_text(value, 'float("-inf")', how, rank)
        if name == "where" and len(node.args) == 3:
            for value in node.args[1:]:
                if isinstance(value, ast.Call) and callee(value) in ZEROS:
                    how = f"`{source.shown(value)}` is not what hides a score"
                    yield source.with_text(value, 'float("-inf")', how, 0)
        how = f"the two axes of `{source.shown(mask)}` are exchanged"
        rank = 2 if source.names(mask) else 1  # then it may have been made so
        yield source.with_expression(mask, f"({source.of(mask)}).transpose(-2, -1)", how, rank)


def _of_its_cut(source: Source, mask: ast.expr, scores: ast.expr) -> Iterator[Edit]:
    """A mask that is as large as it was made, where what it hides is smaller."""
    table = mask.left if isinstance(mask, ast.Compare) else getattr(mask, "operand", mask)
    if isinstance(table, ast.Call) and not table.args:  # `.bool()`
        table = getattr(table.func, "value", table)
    if isinstance(table, ast.Name | ast.Attribute):
        how = f"`{source.shown(table)}` is not cut to the size of what it hides"
        size = f"({source.of(scores)}).shape"
        new = f"{source.of(table)}[..., :{size}[-2], :{size}[-1]]"
        yield source.with_expression(table, new, how, 1)


def of_filled(source: Source, node: ast.AST) -> Iterator[Edit]:
    """What is put into the places of a mask: `scores[mask] = 0`, `fill = 0`."""
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    value = getattr(node, "value", None)
    is_filled = isinstance(target, ast.Subscript) or _is_a_fill(source, target)
    if isinstance(node, ast.Call) and callee(node) in ("full", "new_full") and len(node.args) > 1:
        value, is_filled = node.args[1], _is_cut_to_a_triangle(source, node)
    like = node.args[1:] if isinstance(node, ast.Call) and callee(node) == "full_like" else []
    if like and isinstance(like[0], ast.Name):  # what is given for something else
        how = f"`{source.shown(node)}` is filled with another number than it should"
        yield source.with_text(like[0], "0.0", how, 1)
    if is_filled and number(value) is not None and not _is_minus_infinity(source, value):
        how = f"`{source.shown(value)}` is not what hides a score"
        yield source.with_text(value, 'float("-inf")', how, 1)


def _is_cut_to_a_triangle(source: Source, node: ast.Call) -> bool:
    """Whether a half of what a call makes is kept: `torch.full((n, n), -1.0).triu(1)`."""
    around = source.parent[node]
    whole = source.parent[around] if isinstance(around, ast.Attribute) else around
    return isinstance(whole, ast.Call) and callee(whole) in ("triu", "tril", "triu_", "tril_")


def _is_a_fill(source: Source, target: ast.expr | None) -> bool:
    """Whether a variable is what some call puts into the places of a mask."""
    if not isinstance(target, ast.Name):
        return False
    inside = source.inside(source.function(target)) if source.function(target) is not None else []
    calls = [n for n in inside if isinstance(n, ast.Call) and callee(n) in MASKED]
    return any(target.id in map(source.of, n.args[1:]) for n in calls)


def _is_minus_infinity(source: Source, node: ast.expr) -> bool:
    text = source.of(node).replace(" ", "")
    return "-" in text and ("inf" in text or (number(node) or 0) < -1e3)


def _of_turns(source: Source, node: ast.expr, value: ast.expr) -> Iterator[Edit]:
    """Two other axes that are exchanged."""
    how = f"`{source.shown(node)}` exchanges other axes than it should"
    for a, b in ((-2, -1), (1, 2), (2, 3), (0, 1)):
        yield source.with_text(node, f"{source.in_brackets(value)}.transpose({a}, {b})", how, 1)


def _of_joined(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Tensors side by side for their sum, and the other way round; the axes that a call is of."""
    name, shown = callee(node), source.shown(node)
    if name in ("sum", "cat", "stack") and len(node.args) >= 1:
        plain = isinstance(node.func, ast.Name)
        given = source.of(node.args[0])
        how = f"`{name}` is not what belongs in `{shown}`"
        if name == "sum" and plain:
            for new in (f"torch.cat(list({given}), -1)", f"torch.stack(list({given}))"):
                yield source.with_text(node, new, how, 1)
            if len(node.args) == 1:
                yield from _of_pythons_own(source, node)
        elif name != "sum":
            yield source.with_text(node, f"sum({given})", how, 2)
        if name == "cat":
            how = f"`{shown}` puts one behind the other, where their places take turns"
            yield source.with_text(node, f"torch.stack({given}, -1).flatten(-2)", how, 2)
    elif name == "squeeze" and not node.args and not node.keywords:
        how = f"`{shown}` drops every axis of size 1"
        for axis in ("-1", "0", "1"):
            yield source.with_text(node, f"{source.of(node)[:-1]}{axis})", how, 1)
    elif name in TURNED and isinstance(node.func, ast.Attribute) and not of_library(node.func):
        yield from _of_turns(source, node, node.func.value)


def _of_pythons_own(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Python's `sum`, where a tensor's own of each row is meant."""
    how = f"Python's own `sum` adds up along the first axis in `{source.shown(node)}`"
    own = source.in_brackets(node.args[0])
    for axes in ("-1, keepdim=True", "-1"):
        yield source.with_text(node, f"{own}.sum({axes})", how, 1)


def _of_whole_numbers(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A number that is rounded, where it should be cut off, and other ways to a whole one."""
    name = source.of(node.func)
    if name in WHOLE and len(node.args) == 1 and not node.keywords:
        how = f"`{name}` goes to another whole number than it should in `{source.shown(node)}`"
        given = source.of(node.args[0])
        for other, new in (("round", "round({})"), ("floor", "int(({}) // 1)"), ("ceil", CEIL)):
            if not name.endswith(other):
                yield source.with_expression(node, new.format(given), how, 1)


def _of_pairs(source: Source, node: ast.Call) -> Iterator[Edit]:
    """The largest with its place, where it alone is meant."""
    is_read = isinstance(source.parent[node], ast.Attribute | ast.Subscript)
    parent = source.parent[node]
    is_taken_apart = isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple)
    if callee(node) in PAIRS and node.args and not (is_read or is_taken_apart):
        how = f"`{source.shown(node)}` gives a pair: the values and their places"
        yield source.with_text(node, f"{source.of(node)}[0]", how)


def _of_a_start(source: Source, node: ast.Call) -> Iterator[Edit]:
    """What a result begins with, before its places are filled: something, or nothing."""
    name, statement = callee(node), source.parent.get(node)
    if not isinstance(statement, ast.Assign) or not isinstance(node.func, ast.Attribute):
        return
    how = f"`{source.shown(node)}` is not what it begins with"
    if name == "clone" and not of_library(node.func):
        yield source.with_text(node, f"torch.zeros_like({source.of(node.func.value)})", how, 1)
    elif name in ("zeros_like", "empty_like", "ones_like") and node.args:
        given = source.of(node.args[0])
        yield source.with_text(node, f"({given}).clone()", how, 2)
        rank = 0 if _is_a_running_maximum(source, statement) else 2
        yield source.with_text(node, f'torch.full_like({given}, float("-inf"))', how, rank)
    elif name in ("zeros", "ones", "new_zeros", "new_ones") and node.args:
        rank = 0 if _is_a_running_maximum(source, statement) else 2
        yield source.with_text(node, f'{source.of(node)}.fill_(float("-inf"))', how, rank)
    elif name in ("tensor", "full", "new_full") and node.args and number(node.args[-1]) == 0:
        yield source.with_text(node.args[-1], 'float("-inf")', how, 1)


def _is_a_running_maximum(source: Source, statement: ast.Assign) -> bool:
    """Whether a variable that begins there is compared in a loop with what it becomes then."""
    function, names = source.function(statement), set(map(source.of, statement.targets))
    loops = source.inside(function) if function is not None else []
    for loop in (n for n in loops if isinstance(n, ast.For | ast.While)):
        for each in (n for n in source.inside(loop) if isinstance(n, ast.Assign)):
            value = each.value if isinstance(each.value, ast.Call) else None
            if value is None or not names & set(map(source.of, each.targets)):
                continue
            asks = any(isinstance(n, ast.Compare) for n in source.inside(value))
            if callee(value) in ("maximum", "max") or (callee(value) == "where" and asks):
                return True
    return False
