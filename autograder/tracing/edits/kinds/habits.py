"""Slips of those who think in another language, or in another library: what is written does there
what is meant, and something else in Python."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from autograder.tracing.edits.kinds.begun import is_of_a_class
from autograder.tracing.edits.kinds.names import is_a_size, sizes
from autograder.tracing.edits.kinds.operators import COMPARED, SIGNS
from autograder.tracing.edits.kinds.source import Edit, Source, first_statement
from autograder.tracing.text import callee

BARS = (ast.BitOr, ast.BitAnd)
CALLED = ("call", "__call__", "apply", "predict", "run")  # what other libraries call `forward`
# How methods that change a tensor do so for a part of it that an index picks.
IN_PLACE = {
    "fill_": "{0} = {1}",
    "copy_": "{0} = {1}",
    "zero_": "{0} = 0",
    "add_": "{0} += {1}",
    "sub_": "{0} -= {1}",
    "mul_": "{0} *= {1}",
    "div_": "{0} /= {1}",
}
GIVE_ONCE = ("zip", "map", "filter", "enumerate", "reversed", "iter")
HOLDS = (ast.List, ast.Dict, ast.Set)


def of_habits(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes that write in Python what another language would mean."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
        # `a^2 + b` is read as `a ^ (2 + b)`: the sign alone is changed.
        how = f"`^` is no power in Python, in `{source.shown(node)}`"
        sign = source.text.index("^", source.span(node.left)[1])
        yield source.with_span(node, (sign, sign + 1), "**", how)
    elif isinstance(node, ast.UnaryOp):
        yield from _of_truth(source, node)
    elif isinstance(node, ast.BoolOp):
        sign, word = ("|", "or") if isinstance(node.op, ast.Or) else ("&", "and")
        how = f"`{word}` asks of a whole, and not of each of its numbers, in `{source.shown(node)}`"
        new = f" {sign} ".join(map(source.in_brackets, node.values))
        yield source.with_expression(node, new, how, 1)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.UnaryOp):
        yield from _of_one_more(source, node)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield from _of_a_copy(source, node)
    elif isinstance(node, ast.Assign):
        yield from _of_a_sign_behind(source, node)
        yield from _of_what_is_used_up(source, node)
    elif isinstance(node, ast.Call):
        yield from _of_numbers(source, node)
        yield from _of_places_of_cuts(source, node)
    elif isinstance(node, ast.Compare):
        yield from _of_bars(source, node)
    elif isinstance(node, ast.keyword) and node.arg == "order":
        how = f"`{source.of(node)}` lays the numbers out by columns"
        yield source.with_text(node.value, '"C"', how)
    elif isinstance(node, HOLDS):
        yield from _of_all_objects(source, node)
    if isinstance(node, ast.stmt):
        yield from _of_another_name(source, node)


def _of_truth(source: Source, node: ast.UnaryOp) -> Iterator[Edit]:
    """`if ~training`, which is true whatever it is; and `not mask`, of a tensor."""
    own = source.in_brackets(node.operand)
    if isinstance(node.op, ast.Invert) and isinstance(node.operand, ast.Name | ast.Attribute):
        asked = getattr(source.parent[node], "test", None) is node
        how = f"`{source.shown(node)}` is no `not` of one that is True or False"
        yield source.with_expression(node, f"not {own}", how, 0 if asked else 2)
    elif isinstance(node.op, ast.Not):
        how = f"`{source.shown(node)}` asks of a whole, and not of each of its numbers"
        yield source.with_expression(node, f"~{own}", how, 1)


def _of_numbers(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`torch.sqrt(size)` of a whole number, and `math.exp(x)` of a tensor."""
    library, name = source.of(getattr(node.func, "value", node.func)), callee(node)
    function = source.function(node)
    if library not in ("torch", "math") or len(node.args) != 1 or function is None:
        return
    other = "math" if library == "torch" else "torch"
    given, known = node.args[0], sizes(source, function)
    whole = source.of(given) in known or bool(is_a_size(given, known))
    if hasattr(math, name) and whole == (library == "torch"):
        how = f"`{source.shown(node.func)}` does not take what it is given there"
        yield source.with_text(node.func.value, other, how)


def _of_places_of_cuts(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`x.tensor_split((n, m))`, which takes where to cut, and not how long the parts are."""
    cuts = next((n for n in node.args if isinstance(n, ast.Tuple | ast.List)), None)
    if cuts is None or callee(node) not in ("tensor_split", "array_split"):
        return
    texts = [source.of(each) for each in cuts.elts]
    sums = [" + ".join(texts[: i + 1]) for i in range(len(texts))]
    how = f"`{source.shown(cuts)}` are lengths, where `{callee(node)}` takes the places of the cuts"
    yield source.with_text(cuts, f"({', '.join(sums)},)", how)


def _of_one_more(source: Source, node: ast.Expr) -> Iterator[Edit]:
    """`++tiles`, which does nothing."""
    inner = node.value.operand
    twice = isinstance(inner, ast.UnaryOp) and type(inner.op) is type(node.value.op)
    signs = {ast.UAdd: "+=", ast.USub: "-="}
    sign = signs.get(type(node.value.op))
    if twice and sign and isinstance(inner.operand, ast.Name):
        how = f"`{source.shown(node)}` does nothing: it is the sign of a number, twice"
        yield source.with_text(node, f"{source.of(inner.operand)} {sign} 1", how)


def _of_a_sign_behind(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`total =+ x`, which gives `total` the value of `x`."""
    signs = {ast.UAdd: "+", ast.USub: "-"}
    sign = signs.get(type(node.value.op)) if isinstance(node.value, ast.UnaryOp) else None
    if sign is not None and len(node.targets) == 1:
        how = f"`{source.shown(node)}` sets what it should change"
        rank = 0 if f"={sign} " in source.of(node) else 2
        new = f"{source.of(node.targets[0])} {sign}= {source.of(node.value.operand)}"
        yield source.with_text(node, new, how, rank)


def _of_a_copy(source: Source, node: ast.Expr) -> Iterator[Edit]:
    """`x[mask].fill_(0)`, which fills a copy of what the mask picks."""
    call, own = node.value, getattr(node.value.func, "value", None)
    new = IN_PLACE.get(callee(call))
    if new is None or not isinstance(own, ast.Subscript) or len(call.args) > 1:
        return
    how = f"`{source.shown(node)}` changes a copy: what a mask picks is a new tensor"
    given = [source.in_brackets(each) for each in call.args]
    if "{1}" not in new or given:
        yield source.with_text(node, new.format(source.of(own), *given), how)


def _of_what_is_used_up(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`pairs = zip(a, b)`, which a loop in a loop goes through once, and finds empty then."""
    if isinstance(node.value, ast.Call) and callee(node.value) in GIVE_ONCE:
        how = f"`{source.given_to(node)}` gives its parts once, and is empty afterwards"
        yield source.with_text(node.value, f"list({source.of(node.value)})", how)


def _of_bars(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """`a < 0 | b > c`, which is `a < (0 | b) > c`."""
    parts = [node.left, *node.comparators]
    signs = [COMPARED.get(type(op)) for op in node.ops]
    for place, each in enumerate(parts):
        if None in signs or not (isinstance(each, ast.BinOp) and isinstance(each.op, BARS)):
            continue
        bar = SIGNS[type(each.op)]
        texts = [*map(source.of, parts[:place]), source.of(each.left)]
        first = _chain(texts, signs[:place])
        texts = [source.of(each.right), *map(source.of, parts[place + 1 :])]
        how = f"`{bar}` binds before the comparisons in `{source.shown(node)}`"
        yield source.with_expression(node, f"{first} {bar} {_chain(texts, signs[place:])}", how)


def _chain(texts: list[str], signs: list[str]) -> str:
    """Several texts with a comparison between each and the next, in brackets."""
    rest = (f" {sign} {each}" for sign, each in zip(signs, texts[1:], strict=True))
    text = "".join([texts[0], *rest])
    return f"({text})" if signs else text


def _of_all_objects(source: Source, node: ast.List | ast.Dict | ast.Set) -> Iterator[Edit]:
    """A list that stands in a class, and not in its `__init__`: all its objects fill the same."""
    made = source.parent[node]
    around = source.parent.get(made)
    if not isinstance(around, ast.ClassDef) or not isinstance(made, ast.Assign):
        return
    names = [t.id for t in made.targets if isinstance(t, ast.Name)]
    methods = [n for n in around.body if isinstance(n, ast.FunctionDef)]
    begins = next((n for n in methods if n.name == "__init__"), None)
    how = f"`{source.shown(made)}` is one for all objects of the class, which keep what others left"
    if len(names) != 1:
        return
    own = f"self.{names[0]} = {source.of(node)}"
    if begins is None:
        indent = " " * made.col_offset
        yield source.with_text(made, f"def __init__(self):\n{indent * 2}{own}", how, -1)
    else:
        first = first_statement(begins) or begins.body[0]
        new = source.in_front(first, own)
        yield source.with_text(first, new, how, -1).told_of(made.lineno)


def _of_another_name(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """`def call(self, x)`, in a class whose objects are called through `forward`."""
    function = source.parent[node]
    if not isinstance(function, ast.FunctionDef) or node is not function.body[0]:
        return
    around = source.parent.get(function)
    if not is_of_a_class(source, function) or function.name not in CALLED:
        return
    methods = [n.name for n in around.body if isinstance(n, ast.FunctionDef)]
    if "forward" not in methods:
        start = source.text.index(function.name, source.span(function)[0])
        how = f"`{function.name}` is not called: a module is called through `forward`"
        yield source.with_span(function, (start, start + len(function.name)), "forward", how)
