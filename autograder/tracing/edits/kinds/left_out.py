"""Slips by leaving something out: an axis, a root, a number to begin with, what should be added."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.names import names_of, sizes
from autograder.tracing.edits.kinds.numbers import apart
from autograder.tracing.edits.kinds.operators import turned_back
from autograder.tracing.edits.kinds.source import (
    Edit,
    Source,
    arguments_of,
    first_of,
    number,
    of_library,
)
from autograder.tracing.edits.kinds.sums import UP_TO
from autograder.tracing.text import callee

BENDS = ("sigmoid", "tanh", "relu", "log_softmax", "logsigmoid")
REDUCES = (
    "argmax",
    "argmin",
    "sum",
    "mean",
    "amax",
    "amin",
    "std",
    "var",
    "prod",
    "norm",
    "logsumexp",
)
WITH_AXIS = ("-1, keepdim=True", "-1", "-2, keepdim=True", "0")
SPREADS = ("std", "var")
NUMPY = ("np", "numpy")
CUTS = ("split", "chunk", "tensor_split", "cat", "stack", "unbind", "softmax", "log_softmax")
TRIANGLES = ("tril", "triu")
PRODUCTS = ("matmul", "mm", "bmm", "linear", "dot", "mv", "einsum")


# What is said of a function without a setting.
SETTINGS = {
    "scaled_dot_product_attention": [("is_causal", "True", "lets each token see what comes later")],
    "gelu": [("approximate", '"tanh"', "is the exact GELU, and not the one that is asked for")],
    "GELU": [("approximate", '"tanh"', "is the exact GELU, and not the one that is asked for")],
    "Linear": [("bias", "False", "has a bias, and should have none")],
    "register_buffer": [
        ("persistent", "False", "stores it in the state_dict, too, without persistent=False")
    ],
    "MultiheadAttention": [("batch_first", "True", "takes the first axis for the tokens")],
    "dropout": [
        ("training", "self.training", "drops in evaluation, too"),
        ("training", "False", "drops in evaluation, too"),
    ],
    "sorted": [("reverse", "True", "puts the smallest first")],
    "argsort": [("descending", "True", "puts the smallest first")],
    "sort": [("descending", "True", "puts the smallest first")],
    "topk": [("largest", "False", "takes the largest")],
    "normalize": [("p", "1", "divides by the length of each row, and not by its sum")],
}
SORTS = ("sorted", "argsort", "sort")
MAPS = ("average_attn_weights", "False", "gives one map for all heads")
GELUS = dict.fromkeys(("ReLU", "Tanh", "Sigmoid", "SiLU"), "torch.nn.GELU")
GELUS |= dict.fromkeys(("relu", "sigmoid", "silu"), "torch.nn.functional.gelu")
HALVES = ("real", "imag")
MADE = ("zeros", "ones", "empty", "randn", "rand")
ALIGNED = ("gather", "scatter", "scatter_", "masked_fill", "masked_fill_", "where")


def of_what_is_left_out(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes that put in what a call or an operation may lack."""
    if isinstance(node, ast.Call):
        yield from _of_axes(source, node)
        yield from _of_what_is_drawn(source, node)
        yield from _of_truth_values(source, node)
        yield from _of_products(source, node)
        yield from _of_itself(source, node)
        yield from _of_softmax(source, node)
        yield from _of_shares(source, node)
        yield from _of_settings(source, node)
        yield from _that_sees_all(source, node)
        if callee(node) in ("Softmax", "LogSoftmax") and not (node.args or node.keywords):
            how = f"`{source.shown(node)}` says of no axis that it runs along it"
            yield _with(source, node, "dim=-1", how, 0)
        yield from _of_an_axis(source, node)
        yield from _of_a_size(source, node)
        yield from _of_another_size(source, node)
    elif isinstance(node, ast.Assign | ast.Return) and node.value is not None:
        yield from _of_layers(source, node)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mult):
        yield from _of_roots(source, node)
        yield from _of_powers(source, node)
    elif isinstance(node, ast.GeneratorExp):
        yield from _of_lists(source, node)
    if isinstance(node, ast.Call | ast.Subscript):
        yield from _of_parts(source, node)
    if isinstance(node, ast.Attribute) and node.attr in HALVES and isinstance(node.ctx, ast.Load):
        how = f"`{source.shown(node)}` leaves out half of each complex number"
        yield source.with_expression(node, source.of(node.value), how, 1)
    if isinstance(node, ast.Assign | ast.Return):
        yield from _of_rows(source, node)


def _that_sees_all(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`self.attention = attention(hidden, hidden, num_heads)`, which is to be causal."""
    targets = getattr(source.parent[node], "targets", ())
    own = any("att" in getattr(target, "attr", "").lower() for target in targets)
    if own and "causal" not in {k.arg for k in node.keywords}:
        how = f"`{source.shown(node)}` makes an attention that sees later tokens, too"
        yield _with(source, node, "causal=True", how, 1)


def _of_what_is_drawn(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`bernoulli(p)` draws with p what is lost, where what stays is to be drawn; or the other way
    round."""
    if callee(node) not in ("bernoulli", "bernoulli_"):
        return
    own = isinstance(node.func, ast.Attribute) and not of_library(node.func)
    of = node.args[0] if node.args else node.func.value if own else None
    if of is not None:
        how = f"`{source.shown(node)}` draws the others, with this share"
        yield source.with_expression(of, f"1 - {source.in_brackets(of)}", how, -1)


def _with(source: Source, node: ast.Call, more: str, how: str, rank: int) -> Edit:
    """A call with more arguments at its end."""
    end = source.span(node)[1]
    inside = bool(node.args or node.keywords)
    return source.with_span(node, (end - 1, end), f"{', ' if inside else ''}{more})", how, rank)


def _is_torchs(node: ast.Call) -> bool:
    """Whether a call is of a function of torch's, and of no method: `torch.sum(x)`."""
    return getattr(getattr(node.func, "value", None), "id", "") == "torch"


def _of_axes(source: Source, node: ast.Call) -> Iterator[Edit]:
    name, shown = callee(node), source.shown(node)
    is_method = isinstance(node.func, ast.Attribute)
    named = {keyword.arg for keyword in node.keywords}
    library = is_method and _is_torchs(node)
    axes = len(node.args) - library
    if name in REDUCES and is_method and axes <= 0 and not {"dim", "axis"} & named:
        how = f"`{name}` runs over all axes in `{shown}`"
        for more in WITH_AXIS:  # the first of a norm is which one
            if {"keepdim", "keepdims"} & named:
                more = f"dim={more.partition(',')[0]}"
            yield _with(source, node, f"dim={more}" if name == "norm" else more, how, 1)
        yield _with(source, node, "dim=(0, 1)", how, 2)
        if name == "sum" and not library and isinstance(node.func, ast.Attribute):
            of = source.of(node.func.value)
            yield source.with_text(node, f"{of}.flatten(1).sum(1)", how, 1)
    elif name in REDUCES and axes < 2 and not {"keepdim", "keepdims"} & named and is_method:
        how = f"`{shown}` drops the axis that it runs along, so that the next step meets another"
        meets = _is_divided_by(source, node)
        yield _with(source, node, "keepdim=True", how, -1 if meets else 1)
    if name in UP_TO and is_method and axes <= 0 and not {"dim", "axis"} & named:
        how = f"`{shown}` says of no axis that it runs along it"
        for more in ("dim=1", "dim=-1", "dim=-2", "dim=0"):
            yield _with(source, node, more, how, 0)
    yield from _of_several_axes(source, node)
    if name in CUTS and not {"dim", "axis"} & named and is_method and axes < 2:
        how = f"`{shown}` runs along the first axis"
        for more in ("dim=-1", "dim=1"):
            yield _with(source, node, more, how, 1)
    if name in SPREADS and not {"unbiased", "correction", "ddof"} & named:
        how = f"`{name}` divides by one less than the number of values in `{shown}`"
        yield _with(source, node, "correction=0", how, 1)
        if (
            "numpy" in source.called
            or getattr(getattr(node.func, "value", None), "id", "") in NUMPY
        ):
            how = f"`{name}` divides by the number of values in `{shown}`, and not by one less"
            yield _with(source, node, "ddof=1", how, 1)
    if name in ("max", "min") and axes <= 0 and not named and is_method:
        how = f"`{name}` is of all numbers at once in `{shown}`"
        end = source.span(node.func)[1]
        for more in WITH_AXIS[:2]:
            span = end - len(name), source.span(node)[1]
            given = f"{source.of(node.args[0])}, " if library and node.args else ""
            yield source.with_span(node, span, f"a{name}({given}{more})", how, 1)
    if name in ("triu_indices", "tril_indices") and axes < 3 and not {"offset"} & named:
        how = f"`{name}` begins at another diagonal than it should"
        for more in ("offset=1", "offset=-1"):
            yield _with(source, node, more, how, 1)
    if name in TRIANGLES and axes <= 0 and not named:
        how = f"`{name}` begins at another diagonal than it should"
        for more in ("1", "-1", *apart(source, node)):
            yield _with(source, node, more, how, 1)


def _of_truth_values(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A mask of numbers, where True and False belong."""
    if callee(node) in (*TRIANGLES, "ones", "zeros") and not isinstance(
        source.parent[node], ast.Compare | ast.Attribute
    ):
        how = f"`{source.shown(node)}` holds numbers, where True and False belong"
        edit = source.with_text(node, f"{source.of(node)}.bool()", how, 2)
        yield replace(edit, by_name=True)  # or what takes it should take numbers


def _of_several_axes(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A sum along one axis where it runs along two; a named axis that is another, and is kept."""
    if callee(node) not in REDUCES or not isinstance(node.func, ast.Attribute):
        return
    shown = source.shown(node)
    yield from _of_one_place(source, node)
    dims = [*node.args[_is_torchs(node) :], *(k for k in node.keywords if k.arg == "dim")]
    if len(dims) == 1 and len(node.keywords) <= 1:
        how = f"`{shown}` runs along one axis where it should along all"
        given = source.of(node.args[0]) if _is_torchs(node) and node.args else ""
        yield source.with_text(node, f"{source.of(node.func)}({given})", how, 2)
    for each in node.args:
        if number(each) == 0:
            how = f"`{shown}` runs along one axis where it should along two"
            yield source.with_text(each, "(0, 1)", how, 2)
    named = {keyword.arg: keyword for keyword in node.keywords}
    if "dim" in named and "keepdim" not in named:
        how = f"`{shown}` runs along another axis than it should, and drops it"
        yield source.with_text(named["dim"].value, "-1, keepdim=True", how, 2)


def _of_one_place(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`x[:, -1].mean(0)`, where the mean is over all places of both axes."""
    of, axes = node.func.value, [*node.args, *(k.value for k in node.keywords)]
    index = of.slice if isinstance(of, ast.Subscript) and len(axes) == 1 else None
    parts = index.elts if isinstance(index, ast.Tuple) else []
    if len(parts) < 2 or source.of(parts[0]) != ":" or number(parts[1]) is None:
        return
    if number(axes[0]) == 0:
        how = f"`{source.shown(of)}` is of one place alone, where all of them belong"
        rest = ", ".join([":", ":", *map(source.of, parts[2:])])
        new = f"{source.of(of.value)}[{rest}].{callee(node)}((0, 1))"
        yield source.with_text(node, new, how, 2)


def _of_products(source: Source, node: ast.Call) -> Iterator[Edit]:
    """An operand of a product whose last two axes should be exchanged."""
    name = callee(node)
    if name not in PRODUCTS:
        return
    operands = [a for a in node.args if not isinstance(a, ast.Starred | ast.Constant)]
    if isinstance(node.func, ast.Attribute) and name not in ("linear", "einsum"):
        value = node.func.value
        if not (isinstance(value, ast.Name) and value.id in ("torch", "F")):
            operands.append(value)
    if len(operands) == 2:
        for turned, other in (operands, operands[::-1]):
            bare = turned_back(turned)
            if bare is not None:
                how = f"`{source.shown(other)}` has to be turned, and not `{source.shown(bare)}`"
                new = {
                    turned: source.in_brackets(bare),
                    other: f"({source.of(other)}).transpose(-2, -1)",
                }
                yield source.with_parts(node, new, how, 2)
    for each in operands:
        how = f"`{source.shown(each)}` needs its last two axes exchanged in this product"
        yield source.with_expression(each, f"({source.of(each)}).transpose(-2, -1)", how, 2)


def _of_itself(source: Source, node: ast.Call) -> Iterator[Edit]:
    """What a layer gives, where it should be added to what the layer was given."""
    inner: ast.AST = node
    while isinstance(inner, ast.Call) and inner.args and source.of(inner.func).startswith("self."):
        inner = inner.args[0]
    if isinstance(inner, ast.Name) and inner is not node:
        name = inner.id
        how = f"`{name}` itself is not added to `{source.shown(node)}`"
        yield source.with_expression(node, f"{name} + {source.of(node)}", how, 3)


def _of_roots(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    for each in (node.left, node.right):
        below = each is node.right and isinstance(node.op, ast.Div)
        kinds = (ast.Call, ast.Subscript, ast.Attribute, *([ast.BinOp] if below else []))
        if isinstance(each, kinds) and number(each) is None:
            how = f"`{source.shown(each)}` is not the number that belongs in `{source.shown(node)}`"
            yield source.with_expression(each, f"({source.of(each)}) ** 0.5", how, 3)
            yield source.with_expression(each, f"1 - ({source.of(each)})", how, 3)


def _of_powers(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """Numbers that are divided by their sums, where their exponentials should be."""
    below = node.right
    if not isinstance(node.op, ast.Div) or not isinstance(below, ast.Call):
        return
    if callee(below) != "sum" or not isinstance(below.func, ast.Attribute):
        return
    library = isinstance(below.func.value, ast.Name) and below.func.value.id == "torch"
    summed = (below.args[0] if below.args else None) if library else below.func.value
    above = source.of(node.left)
    if summed is not None and source.of(summed) == above:
        new = source.of(below)
        start = source.span(summed)[0] - source.span(below)[0]
        new = f"{new[:start]}torch.exp({above}){new[start + len(above) :]}"
        how = f"`{above}` is divided by its sum without an exponential: that is no softmax"
        yield source.with_expression(node, f"torch.exp({above}) / {new}", how, 1)


def _of_parts(source: Source, node: ast.Call | ast.Subscript) -> Iterator[Edit]:
    """One of the parts that a loop has made, or their sum, where they belong side by side."""
    if isinstance(node, ast.Call):
        name = callee(node)
        inner = node.args[0] if name == "sum" and node.args else getattr(node.func, "value", None)
        if name in ("sum", "mean") and isinstance(inner, ast.Call) and callee(inner) == "stack":
            inner = inner.args[0] if inner.args else None
        elif name != "sum" or not isinstance(node.func, ast.Name):
            return
    else:
        inner = node.value if number(node.slice) is not None else None
    function = source.function(node)
    if not isinstance(inner, ast.Name) or function is None:
        return
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)]
    lists = {
        source.of(target)
        for n in made
        if isinstance(n.value, ast.List | ast.ListComp)
        for target in n.targets
    }
    if inner.id in lists:
        how = f"`{source.shown(node)}` takes what belongs side by side for one"
        yield source.with_expression(node, f"torch.cat({inner.id}, dim=-1)", how, 1)


def _of_lists(source: Source, node: ast.GeneratorExp) -> Iterator[Edit]:
    """A list where one is needed, and not what makes its parts one by one."""
    call = source.parent[node]
    start, end = source.span(node)
    whole = source.text[start:end]
    if isinstance(call, ast.Assign):
        how = f"`{source.of(call.targets[0])}` gives its parts once, and is empty afterwards"
        yield source.with_span(node, (start, end), f"[{whole[1:-1]}]", how)
    if not isinstance(call, ast.Call):
        return
    inner = whole[1:-1] if whole.startswith("(") and whole.endswith(")") else whole
    how = f"`{callee(call)}` needs a list, and is given what makes its parts one by one"
    new = f"([{inner}])" if whole != inner else f"[{inner}]"
    yield source.with_span(node, (start, end), new, how)


def _of_rows(source: Source, node: ast.Assign | ast.Return) -> Iterator[Edit]:
    """A list of tensors where one tensor belongs."""
    value = node.value
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    function = source.function(node)
    inside = source.inside(function) if function is not None else []
    lists = {
        source.of(n.targets[0])
        for n in inside
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.List | ast.ListComp)
    }
    for each in parts:
        named = isinstance(each, ast.Name) and each.id in lists
        if isinstance(each, ast.ListComp) or named:
            how = f"`{source.shown(each)}` is a list of tensors, where one tensor belongs"
            text = source.of(each)
            for new in (f"torch.stack({text})", f"torch.cat({text})", f"torch.cat({text}, -1)"):
                yield source.with_text(each, new, how, 1)


def _of_softmax(source: Source, node: ast.Call) -> Iterator[Edit]:
    """What bends each number by itself, where a row is to be shared out."""
    name = callee(node)
    if name not in BENDS or not isinstance(node.func, ast.Attribute):
        return
    library = isinstance(node.func.value, ast.Name) and node.func.value.id in ("torch", "F")
    if library and not node.args:
        return
    of = source.of(node.args[0]) if library else source.of(node.func.value)
    how = f"`{name}` is not what belongs in `{source.shown(node)}`"
    yield source.with_expression(node, f"torch.softmax({of}, -1)", how, 1)


def _of_shares(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A second softmax of what only has to sum to 1 again."""
    name, function = callee(node), node.func
    if name != "softmax" or not isinstance(function, ast.Attribute):
        return
    library = isinstance(function.value, ast.Name) and function.value.id in ("torch", "F")
    if library and not node.args:
        return
    of = source.in_brackets(node.args[0] if library else function.value)
    axis = node.args[library:] + [k.value for k in node.keywords if k.arg in ("dim", "axis")]
    if axis:
        how = f"`{source.shown(node)}` takes exponentials where rows only have to sum to 1"
        new = f"{of} / {of}.sum({source.of(axis[0])}, keepdim=True)"
        yield source.with_expression(node, new, how, 2)


def _of_settings(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A setting of a function, which is another one if nothing is said."""
    given = {keyword.arg for keyword in node.keywords}
    if callee(node) in GELUS:  # GPT-2's bend is another function with a setting
        how = f"`{source.shown(node)}` is not the bend that belongs there"
        new = ", ".join([*map(source.of, node.args), 'approximate="tanh"'])
        yield source.with_text(node, f"{GELUS[callee(node)]}({new})", how, 1)
    settings = [*SETTINGS.get(callee(node), ())]
    settings += [MAPS] if given & {"need_weights"} else []
    function = source.function(node)
    known = {a.arg for a in function.args.args} if function is not None else set()
    as_it_says = callee(node) in SORTS and "asc" in source.given_to(node).lower()
    for name, value, how in () if as_it_says else settings:
        if name not in given:
            rank, value = (0, name) if name in known else (2, value)
            yield _with(source, node, f"{name}={value}", f"`{source.shown(node)}` {how}", rank)


def _of_a_size(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A tensor that is made with one axis too few."""
    function = source.function(node)
    if callee(node) in MADE and function is not None and len(node.args) in (1, 2):
        how = f"`{source.shown(node)}` has an axis too few"
        own = {source.of(each) for each in node.args}
        end = source.span(node.args[-1])[1]
        for name in [n for n in names_of(source, function, node.lineno) if n not in own]:
            if name in sizes(source, function):
                yield source.with_span(node, (end, end), f", {name}", how, 1)


def _of_another_size(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A tensor that is made with the size of another axis."""
    function = source.function(node)
    if callee(node) not in MADE or function is None or not node.args:
        return
    given = arguments_of(function)
    for each in (a for a in node.args if isinstance(a, ast.Name | ast.Call | ast.Subscript)):
        how = f"`{source.shown(each)}` is not the size that belongs in `{source.shown(node)}`"
        for name in given:
            for axis in (-1, 0, 1):
                yield source.with_text(each, f"{name}.shape[{axis}]", how, 3)


def _of_an_axis(source: Source, node: ast.Call) -> Iterator[Edit]:
    """An argument with one axis too few."""
    if callee(node) in ALIGNED:
        for each in node.args:
            if isinstance(each, ast.Name | ast.Attribute | ast.Subscript):
                how = f"`{source.shown(each)}` lacks an axis in `{source.shown(node)}`"
                for axis in ("-1", "1"):
                    new = f"{source.of(each)}.unsqueeze({axis})"
                    yield source.with_text(each, new, how, 2)


def _around_another_return(source: Source, node: ast.Assign | ast.Return) -> set[str]:
    """The layers that stand around what another line of the function returns."""
    function = source.function(node)
    if function is None or not isinstance(node, ast.Return):
        return set()
    others = [n for n in source.inside(function) if isinstance(n, ast.Return) and n is not node]
    found = set()
    for each in others:
        value = first_of(each.value)
        if isinstance(value, ast.Call) and source.of(value.func).startswith("self."):
            found.add(source.of(value.func).removeprefix("self."))
    return found


def _of_layers(source: Source, node: ast.Assign | ast.Return) -> Iterator[Edit]:
    """A layer of the object that is nowhere applied."""
    own = [
        n
        for n in source.inside(source.tree)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self"
    ]
    made = [n.attr for n in own if isinstance(n.ctx, ast.Store)]
    read = {n.attr for n in own if isinstance(n.ctx, ast.Load)}
    value = first_of(node.value)
    elsewhere = _around_another_return(source, node)
    for name in dict.fromkeys(made):
        if (name not in read or name in elsewhere) and value is not None:
            how = f"`self.{name}` is not applied"
            alias = isinstance(value, ast.Name) and isinstance(node, ast.Assign)
            new = f"self.{name}({source.of(value)})"
            edit = source.with_expression(value, new, how, int(not alias))
            yield replace(edit, missing=True)
            for each in source.inside(value):
                named = isinstance(each, ast.Name) and isinstance(source.parent[each], ast.Call)
                if named and each in source.parent[each].args:
                    edit = source.with_text(each, f"self.{name}({each.id})", how, 1)
                    yield replace(edit, missing=True)


def _is_divided_by(source: Source, node: ast.Call) -> bool:
    """Whether something with all its axes is divided by these sums, or less these means: what an
    axis less would meet is another axis of it."""
    made, function = source.parent[node], source.function(node)
    places: list[ast.AST] = [node]
    if isinstance(made, ast.Assign) and function is not None:
        name = source.of(made.targets[0])
        places = [n for n in source.names(function) if n.id == name and n.lineno > made.lineno]
        places = [n for n in places if isinstance(n.ctx, ast.Load)]
    around = [(n, source.parent[n]) for n in places]
    return bool(around) and all(
        isinstance(parent, ast.BinOp)
        and isinstance(parent.op, ast.Div | ast.Sub)
        and parent.right is each
        for each, parent in around
    )
