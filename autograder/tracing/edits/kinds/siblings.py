"""Slips that show beside their like: a variable of which a function is taken elsewhere, a layer
that is not called as the others are, places that each round counts from 0."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.names import is_about_its_size, names_of, sizes
from autograder.tracing.edits.kinds.source import Edit, Source, number, of_library
from autograder.tracing.edits.kinds.statements import block_of
from autograder.tracing.text import callee, root_of

PLAIN = ("len", "int", "float", "range", "list", "tuple", "print", "str", "min", "max", "enumerate")
PLAIN += ("sum", "zip", "sorted", "tensor", "numel", "as_tensor", "stack", "cat", "arange", "abs")
LAYOUT = ("view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "size", "item")
MOST_LOOPS = 2  # loops around a count, the innermost first
MOST_GIVEN = 2  # what layers are called with


def of_siblings(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes that make a part of a program like what stands elsewhere in it."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from _as_elsewhere(source, node)
        yield from _summed_as_elsewhere(source, node)
    elif isinstance(node, ast.Call) and callee(node) == "arange" and node.args:
        yield from _counted_on(source, node)
    elif isinstance(node, ast.Call) and callee(node) == "cumsum":
        yield from _without_its_beginning(source, node)
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield from _not_called(source, node)
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        yield from _without_the_factor(source, node)
    elif isinstance(node, ast.Tuple) and isinstance(source.parent[node], ast.Return):
        yield from _without_what_one_has(source, node)
        yield from _without_the_operation_of_one(source, node)
        yield from _without_the_index_of_one(source, node.elts)
    elif isinstance(node, ast.Dict):
        yield from _without_the_index_of_one(source, node.values)
        yield from _spelt_as_others(source, node)
    elif isinstance(node, ast.BinOp | ast.Compare):
        yield from _without_the_method_of_the_other(source, node)
    elif isinstance(node, ast.Assign):
        yield from _without_the_last_step(source, node)
        yield from _without_the_call_of_one(source, node)
        yield from _given_another(source, node)
        yield from _without_the_factor_of_its_like(source, node)
    if isinstance(node, ast.Call) and callee(node) == "zip":
        yield from _without_the_method_of_the_others(source, node)


def _as_elsewhere(source: Source, node: ast.Name) -> Iterator[Edit]:
    """`k` where everything else is made of `phi(k)`."""
    function, parent = source.function(node), source.parent[node]
    if function is None or (isinstance(parent, ast.Call) and node in (parent.func, *parent.args)):
        return
    if is_about_its_size(source, node):
        return
    called = [
        n
        for n in source.inside(function)
        if isinstance(n, ast.Call) and not n.keywords and len(n.args) == 1
        if source.of(n.args[0]) == node.id and _gives_something_of_it(source, n)
    ]
    for call in {source.of(n): n for n in called}.values():
        kept = source.parent[call]
        renamed = isinstance(kept, ast.Assign) and [source.of(t) for t in kept.targets] == [node.id]
        if not renamed and source.statement(call) is not source.statement(node):
            how = f"`{node.id}` stands where `{source.shown(call)}` is taken elsewhere"
            yield source.with_text(node, source.of(call), how, 1)


def _without_the_call_of_one(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`q = q.mT` beside `k = phi(k).mT`, which is made alike but for the call."""
    own = source.of(node.targets[0])
    for other in _beside(source, node) if own.isidentifier() else ():
        name, text = source.of(other.targets[0]), source.of(other.value)
        for call in source.calls(other.value) if name.isidentifier() else ():
            if call.keywords or list(map(source.of, call.args)) != [name]:
                continue
            without = source.instead(other.value, {call: name})
            alike, mine = (re.sub(rf"\b{name}\b", own, each) for each in (without, text))
            if alike == source.of(node.value):
                given = f"`{source.shown(call)}` in line {other.lineno}"
                how = f"`{own}` is taken as it is, and {given}"
                yield source.with_text(node.value, mine, how, 1)


def _without_the_factor_of_its_like(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`new = p @ v`, beside `old = alpha * out`, where `beta` was made as `alpha` was, and is read
    less often."""
    function = source.function(node)
    if function is None:
        return
    pairs = source.once(("read less", function), lambda: _read_less(source, function))
    block, own = block_of(source, node), {n.id for n in source.names(node)}
    place, known = block.index(node), names_of(source, function, node.lineno - 1)
    beside = [*block[max(0, place - 1) : place], *block[place + 1 : place + 2]]
    read = {n.id for each in beside for n in source.names(each) if isinstance(n.ctx, ast.Load)}
    for factor, like in pairs:
        if like in read and factor in known and not {factor, like} & own:
            how = f"`{source.shown(node.value)}` is not multiplied with `{factor}`"
            new = f"{factor} * {source.in_brackets(node.value)}"
            yield source.with_text(node.value, new, how, 1)


def _read_less(source: Source, function: ast.FunctionDef) -> list[tuple[str, str]]:
    """The variables that are read, but less often than one that the same function gave."""
    loads = [n.id for n in source.names(function) if isinstance(n.ctx, ast.Load)]
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)]
    made = [n for n in made if isinstance(n.value, ast.Call) and isinstance(n.targets[0], ast.Name)]
    pairs = [(n.targets[0].id, callee(n.value)) for n in made]
    return [
        (one, other)
        for (one, gave), (other, gave_too) in itertools.permutations(pairs, 2)
        if gave == gave_too and 0 < loads.count(one) < loads.count(other)
    ]


def _without_the_method_of_the_others(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`zip(q.unbind(1), k.unbind(1), v)`, of which one is taken as it is."""
    called = [a for a in node.args if isinstance(a, ast.Call) and isinstance(a.func, ast.Attribute)]
    tails = set(map(source.last_step, called))
    for own in (a for a in node.args if isinstance(a, ast.Name) and len(tails) == 1):
        (tail,) = tails
        how = f"`{own.id}` lacks the `{tail}` of what stands beside"
        yield source.with_text(own, f"{own.id}{tail}", how)


def _summed_as_elsewhere(source: Source, node: ast.Name) -> Iterator[Edit]:
    """`total = e.sum(-1)` beside `e * mask / total`: of all, where that takes a part."""
    function, call = source.function(node), source.parent[node]
    call = source.parent[call] if isinstance(call, ast.Attribute) else call
    if function is None or not isinstance(call, ast.Call) or callee(call) != "sum":
        return
    products = [n for n in source.inside(function) if isinstance(n, ast.BinOp)]
    products = [n for n in products if isinstance(n.op, ast.Mult)]
    own = [n for n in products if node.id in (source.of(n.left), source.of(n.right))]
    taken = {source.of(n): n for n in own}
    for text, product in taken.items():
        if source.statement(product) is not source.statement(node):
            how = f"`{node.id}` is added up as a whole, and line {product.lineno} takes `{text}`"
            yield source.with_expression(node, text, how, 1)


def _gives_something_of_it(source: Source, call: ast.Call) -> bool:
    """Whether a function is called for what it makes of its argument: no list grows, and no size or
    type alone is taken."""
    of = source.of(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    own = of in ("", "self", "torch", "F") and not isinstance(source.parent[call], ast.Expr)
    return own and callee(call) not in PLAIN and not callee(call).endswith("_like")


def _not_called(source: Source, node: ast.Attribute) -> Iterator[Edit]:
    """`self.v` where its siblings are called, `self.q(x)`."""
    function, parent = source.function(node), source.parent[node]
    if function is None or source.of(node.value) != "self" or isinstance(parent, ast.Attribute):
        return
    if isinstance(parent, ast.Call) and parent.func is node:
        return
    calls = (n for n in source.inside(function) if isinstance(n, ast.Call) and len(n.args) == 1)
    given = (n.args[0] for n in calls if source.of(n.func).startswith("self.") and not n.keywords)
    for text in list(dict.fromkeys(map(source.of, given)))[:MOST_GIVEN]:
        how = f"`{source.of(node)}` is not called there"
        yield source.with_text(node, f"{source.of(node)}({text})", how, 1)


def _without_its_beginning(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`k.cumsum(1)`, beside `state[:, None] + kv.cumsum(1)`, which goes on from what is given."""
    function = source.function(node)
    given = [a.arg for a in function.args.args] if function is not None else []
    adds = [n for n in source.inside(function) if isinstance(n, ast.BinOp)] if given else []
    adds = [n for n in adds if isinstance(n.op, ast.Add)]
    sides = [pair for n in adds for pair in ((n.left, n.right), (n.right, n.left))]
    begun = [(one, two) for one, two in sides if isinstance(two, ast.Call)]
    begun = [(one, two) for one, two in begun if callee(two) == "cumsum" and two is not node]
    for first, other in begun[:1]:
        names = [n for n in source.names(first) if n.id in given]
        for name, start in itertools.product(names[:1], given):
            how = f"`{source.shown(node)}` begins with nothing, and line {other.lineno} does not"
            new = source.instead(first, {name: start})
            if start != name.id:
                yield source.with_expression(node, f"{new} + {source.of(node)}", how, 1)


def _without_the_factor(source: Source, node: ast.AugAssign) -> Iterator[Edit]:
    """`grad_k += ds.T @ q`, beside `grad_q += scale * (ds @ k)`."""
    function = source.function(node)
    if function is None or _factor(node.value) is not None:
        return
    others = [n for n in source.inside(function) if isinstance(n, ast.AugAssign)]
    others = [n for n in others if isinstance(n.op, ast.Add)]
    factors = {_factor(n.value): n for n in others}
    for name, other in factors.items():
        if name is not None:
            shown = source.shown(node.value)
            how = f"`{shown}` is not multiplied with `{name}`, as is done in line {other.lineno}"
            new = f"{name} * ({source.of(node.value)})"
            yield source.with_text(node.value, new, how, 1)


def _without_what_one_has(source: Source, node: ast.Tuple) -> Iterator[Edit]:
    """`return grad_q * scale, grad_k`, where both need the factor."""
    factors = {_factor(each) for each in node.elts} - {None}
    for name, each in itertools.product(sorted(factors), node.elts):
        if isinstance(each, ast.Name) and each.id != name:
            how = f"`{each.id}` is not multiplied with `{name}`, as what stands beside it is"
            yield source.with_text(each, f"{each.id} * {name}", how)


def _without_the_operation_of_one(source: Source, node: ast.Tuple) -> Iterator[Edit]:
    """`return torch.sqrt(a), torch.sqrt(b / total)`, where both are shares of the total."""
    for own, other in itertools.permutations(node.elts, 2):
        for inner in (n for n in source.inside(other) if isinstance(n, ast.BinOp)):
            whole, part = ast.unparse(other), ast.unparse(inner)
            for name in source.names(own):
                alike = (whole.replace(each, name.id) for each in (f"({part})", part))
                if ast.unparse(own) in alike:
                    rest = source.text[source.span(inner.left)[1] : source.span(inner)[1]]
                    how = f"`{source.shown(own)}` lacks the `{rest.strip()}` of what stands beside"
                    yield source.with_expression(name, f"{name.id}{rest}", how, 1)


def _without_the_index_of_one(source: Source, values: list[ast.expr]) -> Iterator[Edit]:
    """`{"within": pairs[same], "across": pairs}`, where the others were meant."""
    names = [n for n in values if isinstance(n, ast.Name)]
    parts = [n for n in values if isinstance(n, ast.Subscript)]
    for name, part in itertools.product(names, parts):
        if source.of(part.value) == name.id and isinstance(part.slice, ast.Name):
            how = f"`{name.id}` is all of it, beside `{source.shown(part)}`"
            for index in (f"~{part.slice.id}", part.slice.id):
                yield source.with_text(name, f"{name.id}[{index}]", how, 1)


def _spelt_as_others(source: Source, node: ast.Dict) -> Iterator[Edit]:
    """`"out_proj_weight"`, beside `"out_proj.bias"`: the name of a parameter."""
    keys = [k for k in node.keys if isinstance(k, ast.Constant) and isinstance(k.value, str)]
    dotted = any("." in key.value for key in keys)
    for key in (k for k in keys if dotted and "." not in k.value):
        for place in [n for n, letter in enumerate(key.value) if letter == "_"]:
            new = f"{key.value[:place]}.{key.value[place + 1 :]}"
            how = f"`{key.value}` is not the name of what is loaded"
            yield source.with_text(key, repr(new), how, 1)


def _without_the_method_of_the_other(
    source: Source, node: ast.BinOp | ast.Compare
) -> Iterator[Edit]:
    """`(m * eye).sum() / eye`, and `pointer == head.data_ptr()`."""
    sides = node.left, node.comparators[0] if isinstance(node, ast.Compare) else node.right
    for own, other in (sides, sides[::-1]):
        called = isinstance(other, ast.Call) and isinstance(other.func, ast.Attribute)
        if called and isinstance(own, ast.Name | ast.Attribute | ast.Subscript):
            if of_library(other.func) or root_of(other) == "self" or callee(other) in LAYOUT:
                continue
            method = source.last_step(other)
            how = f"`{source.shown(own)}` lacks the `{method}` of the other side"
            yield source.with_parts(node, {own: f"{source.of(own)}{method}"}, how, 1)


def _without_the_last_step(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`d = delta[i:j]`, beside `s = sums[i:j].unsqueeze(1)`."""
    plain = isinstance(node.value, ast.Subscript | ast.Call | ast.BinOp)
    for other in _beside(source, node) if plain else ():
        call = other.value
        method = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        form = _form(node.value)
        if not (method and form) or _form(call.func.value) != form:
            continue
        last = source.last_step(call)
        how = f"`{source.shown(node.value)}` lacks the `{last}` of line {other.lineno}"
        yield source.with_text(node.value, f"{source.in_brackets(node.value)}{last}", how, 1)


def _given_another(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`k = self.k(size)`, beside `q = self.q(x)` and `v = self.v(x)`."""
    own = _layer_and_argument(source, node.value)
    others = dict.fromkeys(_layer_and_argument(source, n.value) for n in _beside(source, node))
    given = [argument for layer, argument in others if own[0] and layer not in ("", own[0])]
    for argument in dict.fromkeys(each for each in given if each != own[1]):
        how = f"`{source.shown(node.value)}` is given another than the layers beside it"
        edit = source.with_text(node.value.args[0], argument, how, 2 - (given.count(argument) > 1))
        yield replace(edit, by_name=True)


def _layer_and_argument(source: Source, value: ast.expr) -> tuple[str, str]:
    """The layer that is called, and the variable that it is called with."""
    if isinstance(value, ast.Call) and [type(a) for a in value.args] == [ast.Name]:
        layer = source.of(value.func)
        return (layer, source.of(value.args[0])) if layer.startswith("self.") else ("", "")
    return "", ""


def _beside(source: Source, node: ast.Assign) -> list[ast.Assign]:
    """The other statements beside one that give a variable its value."""
    block = block_of(source, node)
    return [n for n in block if isinstance(n, ast.Assign) and n is not node]


def _form(value: ast.expr) -> str:
    """How an expression is built, whatever it is made of first: `x[i:j]` as `y[i:j]`."""
    name = root_of(value)
    return re.sub(rf"\b{re.escape(name)}\b", "_", ast.unparse(value)) if name else ""


def _factor(value: ast.expr) -> str | None:
    """The variable that a value is multiplied with."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        for side in (value.left, value.right):
            if isinstance(side, ast.Name):
                return side.id
    return None


def _counted_on(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`arange(n)` in a loop over blocks, where each round begins somewhere else; or `arange(0, n)`
    of places that lie further on, unless they are compared with others."""
    function, (first, *rest) = source.function(node), node.args
    if function is None or len(rest) > 1 or (rest and number(first) != 0):
        return
    count = source.in_brackets((rest or [first])[0])
    span = source.span(first)[0], source.span((rest or [first])[0])[1]
    around = [*source.around(node)]
    loops = [n for n in around if isinstance(n, ast.For)]
    starts = [n.target.id for n in loops if isinstance(n.target, ast.Name)][:MOST_LOOPS]
    how = f"`{source.shown(node)}` counts from 0"
    said = dict.fromkeys(starts, f"{how} in each round")
    if not any(isinstance(n, ast.Compare) for n in around):
        counted = sizes(source, function) - {count}
        known = [n for n in names_of(source, function, node.lineno) if n in counted]
        said = dict.fromkeys(known, f"{how}, and not from where it should") | said
    for start, words in said.items():
        yield source.with_span(node, span, f"{start}, {start} + {count}", words, 1)
