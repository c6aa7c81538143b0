"""Slips in how a library's functions are called: named and not called, what they give, and take."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from autograder.tracing.edits.kinds.source import LIBRARIES, Edit, Source, number
from autograder.tracing.text import callee

# Methods of a tensor that need no argument, and give nothing where they are only named.
ALONE = re.compile(
    r"(abs|all|any|clone|contiguous|cos|data_ptr|detach|dim|double|element_size|exp|flatten|float|"
    r"int|item|log|long|mean|nelement|numel|numpy|relu|rsqrt|sigmoid|sin|size|sqrt|squeeze|std|sum|"
    r"t|tanh|tolist|unique|var)$"
)
SEVERAL = ("histogram", "histogramdd")  # functions whose first result alone is meant, as a rule
ABOVE = ("relu", "clamp", "clip", "clamp_min")
GROW = {"append": "extend", "extend": "append"}
COPIES = ("clone", "detach", "contiguous")
TENSORS = ("tensor", "as_tensor", "Tensor", "FloatTensor")


def of_methods(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of how one function of a library is called."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield from _only_named(source, node)
    elif isinstance(node, ast.Expr):
        yield from _item_by_item(source, node)
        yield from _kept_once(source, node)
    elif isinstance(node, ast.Call):
        yield from _of_the_first_result(source, node)
        yield from _of_a_list_of_tensors(source, node)
        yield from _what_is_above(source, node)
        yield from _of_one_entry_for_all(source, node)
        yield from _of_the_same_type(source, node)
        yield from _zeros_that_count(source, node)
        yield from _all_with_all(source, node)
        yield from _the_last_first(source, node)
        yield from _as_it_comes_in(source, node)
        yield from _of_lists_of_numbers(source, node)
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        yield from _of_a_report(source, node, node.value)


def _kept_once(source: Source, node: ast.Expr) -> Iterator[Edit]:
    """`seen.setdefault(key, value)`, which keeps what an earlier call put there."""
    call = node.value
    known = isinstance(call, ast.Call) and callee(call) == "setdefault" and len(call.args) == 2
    if known and isinstance(call.func, ast.Attribute):
        key, value = map(source.of, call.args)
        how = f"`{source.shown(call)}` keeps what was there before"
        yield source.with_text(node, f"{source.of(call.func.value)}[{key}] = {value}", how)


def _item_by_item(source: Source, node: ast.Expr) -> Iterator[Edit]:
    """`extend`, which takes each item of what it is given, for `append`, which takes all of it as
    one; or the other way round."""
    call = node.value
    if isinstance(call, ast.Call) and callee(call) in GROW and isinstance(call.func, ast.Attribute):
        how = f"`{callee(call)}` is not what belongs in `{source.shown(call)}`"
        other = f"{source.of(call.func.value)}.{GROW[callee(call)]}"
        yield source.with_text(call.func, other, how, 1)


def _only_named(source: Source, node: ast.Attribute) -> Iterator[Edit]:
    """`x.data_ptr`, which is the method itself: `x.data_ptr()`."""
    parent = source.parent[node]
    # It may be called, or handed to a function that calls it.
    called = isinstance(parent, ast.Call | ast.keyword | ast.Attribute)
    of_library = getattr(node.value, "id", "") in ("self", *LIBRARIES)
    if ALONE.match(node.attr) and not (called or of_library):
        how = f"`{source.shown(node)}` names the method and does not call it"
        yield source.with_text(node, f"{source.of(node)}()", how)


def _of_the_first_result(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`torch.histogram(x, edges)`, which gives the edges, too."""
    if callee(node) in SEVERAL and not isinstance(
        source.parent[node], ast.Subscript | ast.Attribute
    ):
        how = f"`{callee(node)}` gives several results, of which one alone is meant"
        yield source.with_text(node, f"{source.of(node)}[0]", how)


def _of_a_list_of_tensors(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`torch.tensor(rows)`, where the rows are tensors: they are stacked."""
    if callee(node) in TENSORS and node.args:
        text = source.of(node.args[0])
        how = f"`{callee(node)}` takes numbers, and `{source.shown(node.args[0])}` holds tensors"
        yield source.with_expression(node, f"torch.stack([*{text}])", how, 1)


def _what_is_above(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`F.relu(p - floor)`, which takes the floor off what stays, too."""
    by_method = isinstance(node.func, ast.Attribute) and not node.args
    of = node.args[0] if node.args else node.func.value if by_method else None
    of_zero = callee(node) == "relu" or [number(k.value) for k in node.keywords] == [0]
    less = isinstance(of, ast.BinOp) and isinstance(of.op, ast.Sub)
    if callee(node) in ABOVE and of_zero and less:
        what, floor = source.in_brackets(of.left), source.in_brackets(of.right)
        how = f"`{source.shown(node)}` takes `{source.shown(of.right)}` off what stays, too"
        yield source.with_expression(node, f"{what} * ({what} > {floor})", how, 1)


def _of_one_entry_for_all(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`dict.fromkeys(keys, [])`, where all keys have the one list."""
    if callee(node) == "fromkeys" and len(node.args) == 2:
        keys, value = map(source.of, node.args)
        how = f"`{source.shown(node)}` gives all keys one and the same `{value}`"
        yield source.with_text(node, f"{{key: {value} for key in {keys}}}", how)


def _of_the_same_type(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`torch.zeros_like(mask)`, which holds True and False where the mask does."""
    name = callee(node)
    if name in ("zeros_like", "ones_like") and len(node.args) == 1 and not node.keywords:
        text = source.in_brackets(node.args[0])
        how = f"`{source.shown(node)}` has the type of `{source.shown(node.args[0])}`"
        yield source.with_text(node, f"torch.{name.removesuffix('_like')}({text}.shape)", how, 1)


def _of_a_report(source: Source, node: ast.Assign, value: ast.Call) -> Iterator[Edit]:
    """`model = make().load_state_dict(weights)`, which gives a report and no model."""
    if callee(value) == "load_state_dict" and isinstance(value.func, ast.Attribute):
        name, model = source.of(node.targets[0]), source.of(value.func.value)
        given = source.text[source.span(value.func)[1] : source.span(value)[1]]
        how = "`load_state_dict` gives a report of names, and not the model"
        yield source.with_text(node, f"{name} = {model}; {name}.load_state_dict{given}", how)


def _zeros_that_count(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`torch.tril(x)`, whose zeros are counted, where the lower triangle alone is meant."""
    name, of_library = callee(node), getattr(getattr(node.func, "value", None), "id", "") == "torch"
    if name in ("tril", "triu") and isinstance(node.func, ast.Attribute):
        of = node.args[0] if of_library and node.args else node.func.value
        far = node.args[1:] if of_library else node.args
        text = source.in_brackets(of)
        given = ", ".join([*map(source.of, far), *map(source.of, node.keywords)])
        how = f"the zeros of `{source.shown(node)}` count as well"
        ones = f"torch.ones({text}.shape[-2:]).{name}({given}) > 0"
        yield source.with_text(node, f"{text}[..., {ones}]", how, 2)


def _of_lists_of_numbers(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`torch.stack(rows)`, where the rows are lists of numbers: all such calls of a statement."""
    function, statement = source.function(node), source.statement(node)
    inside = source.inside(function) if function is not None else []
    calls = [n for n in inside if isinstance(n, ast.Call) and n.args]
    kept = [n for n in calls if callee(n) == "append" and _is_of_numbers(n.args[0])]
    lists = {source.of(n.func.value) for n in kept if isinstance(n.func, ast.Attribute)}
    own = [n for n in source.calls(statement) if n.args and callee(n) in ("stack", "cat")]
    own = [n for n in own if source.of(n.args[0]) in lists]
    if own and own[0] is node:
        how = f"`{source.shown(node)}` joins tensors, and `{source.of(node.args[0])}` holds numbers"
        new = {n: f"torch.tensor({source.of(n.args[0])})" for n in own}
        yield source.with_parts(statement, new, how, 1)


def _is_of_numbers(node: ast.expr) -> bool:
    """Whether a value is a number of Python's, or a list of such."""
    inner = node.elt if isinstance(node, ast.ListComp) else node
    inner = inner.elts[0] if isinstance(inner, ast.List) and inner.elts else inner
    return isinstance(inner, ast.Call) and callee(inner) in ("float", "int", "item", "tolist")


def _as_it_comes_in(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`x.detach().clone()` of what is given, which may have too few digits for what is done."""
    function, parent = source.function(node), source.parent[node]
    given = {a.arg for a in function.args.args} if function is not None else set()
    of = source.of(node)
    name = of.partition(".")[0]
    kept = isinstance(parent, ast.Assign | ast.Attribute) and of.startswith(f"{name}.")
    if callee(node) in COPIES and name in given and kept:
        how = f"`{source.shown(node)}` has the type that comes in, which may have too few digits"
        yield source.with_text(node, f"{of}.double()", how, 2)


def _the_last_first(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`heads.pop()`, which takes the last one: all of them in a statement take the first."""
    statement = source.statement(node)
    pops = [n for n in source.calls(statement) if callee(n) == "pop"]
    pops = [n for n in pops if not (n.args or n.keywords)]
    if pops and pops[0] is node:
        how = f"`{source.shown(node)}` takes the last one first"
        new = {n: f"{source.of(n.func)}(0)" for n in pops}
        yield source.with_parts(statement, new, how, 1)


def _all_with_all(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`torch.mm(q, k.T)`, where the products of rows in the same place are meant."""
    if callee(node) in ("mm", "matmul", "bmm", "einsum"):
        how = f"`{source.shown(node)}` has the products of all with all, and not of pairs alone"
        new = f"{source.of(node)}.diagonal(dim1=-2, dim2=-1)"
        yield source.with_text(node, new, how, 2)
