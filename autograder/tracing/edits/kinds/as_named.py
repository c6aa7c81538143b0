"""What does something else than its name says: joins along a fixed axis, the largest that stand
last, copies that only an axis of size 1 gets, lists of layers that no module knows of."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.kinds.names import names_of
from autograder.tracing.edits.kinds.source import Edit, Source
from autograder.tracing.text import callee

JOINS = {"hstack": 1, "column_stack": 1, "vstack": 0, "row_stack": 0, "dstack": 2}
AXES = (-1, 0, 1, 2)
MOST_NAMES = 6  # that may hold the length of what is cut
# What lists a module's tensors: each once, or once for each of its names.
ONCE = {"parameters": "state_dict().values()", "named_parameters": "state_dict().items()"}
AS_OFTEN = {"values": "parameters()", "items": "named_parameters()"}  # what stands behind it


def of_what_it_is_named(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of a call that does not do what it is taken for."""
    if isinstance(node, ast.Call) and callee(node) in JOINS and len(node.args) == 1:
        yield from _joined(source, node)
    elif isinstance(node, ast.Call) and callee(node) == "take" and len(node.args) == 2:
        how = f"`{source.shown(node)}` takes single numbers, and no rows"
        table, places = map(source.in_brackets, node.args)
        yield source.with_text(node, f"{table}[{places}]", how, 0)
    elif isinstance(node, ast.Call) and callee(node) in ("view", "reshape"):
        yield from _in_turn(source, node)
    elif isinstance(node, ast.Call) and callee(node) == "expand" and len(node.args) > 1:
        yield from _copied(source, node)
    elif isinstance(node, ast.Call) and callee(node) == "argsort":
        how = f"`{source.shown(node)}` tells which stands where, and not which place each one has"
        yield source.with_text(node, f"{source.of(node)}.argsort(-1)", how, _of_ranks(source, node))
    elif isinstance(node, ast.Call) and callee(node) == "sorted" and len(node.args) == 1:
        text = source.of(node.args[0])
        how = f"`{source.shown(node)}` puts in order what comes in an order of its own"
        yield source.with_text(node, f"list({text})", how, 0)
    elif isinstance(node, ast.Assert):
        how = "`assert` raises an AssertionError, and vanishes where Python is told to be fast"
        said = source.of(node.msg) if node.msg is not None else ""
        new = f"if not ({source.of(node.test)}): raise ValueError({said})"
        yield source.with_text(node, new, how, 0)
    elif isinstance(node, ast.Slice):
        yield from _from_minus_nothing(source, node)
    elif isinstance(node, ast.For):
        yield from _of_tensors_as_keys(source, node)
    elif isinstance(node, ast.Assign):
        yield from _of_a_list(source, node)
        yield from _of_keys(source, node)
        yield from _of_half(source, node)
    elif isinstance(node, ast.Call) and callee(node) in (*ONCE, "state_dict"):
        yield from _of_the_other_table(source, node)
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield from _largest_first(source, node)


def _of_half(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`half = x.shape[-1]`, which is all of it."""
    named = any("half" in source.of(target).lower() for target in node.targets)
    function = source.function(node)
    if (
        named
        and function is not None
        and isinstance(node.value, ast.Name | ast.Subscript | ast.Call)
    ):
        how = f"`{source.shown(node.value)}` is all of it, and no half"
        yield source.with_text(node.value, f"{source.of(node.value)} // 2", how)


def _of_ranks(source: Source, node: ast.Call) -> int:
    """How unlikely it is that places are asked for: it is not, where they are compared."""
    function, statement = source.function(node), source.statement(node)
    own = {source.of(t) for t in getattr(statement, "targets", ())}
    inside = source.inside(function) if function is not None else []
    compared = [side for n in inside if isinstance(n, ast.Compare) for side in (n, n.left)]
    return 0 if any(source.of(each) in own or node is each for each in compared) else 2


def _joined(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`hstack`, which joins along the second axis, whatever that is."""
    name, given = callee(node), source.of(node.args[0])
    how = f"`{name}` joins along axis {JOINS[name]}, counted from 0"
    for axis in AXES:
        if axis != JOINS[name]:
            yield source.with_expression(node, f"torch.cat(tuple({given}), dim={axis})", how, 0)


def _largest_first(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """`argsort(x)[-k:]`, of which the largest stands last."""
    call = node.value
    if isinstance(call, ast.Attribute) and isinstance(call.value, ast.Call):
        call = call.value  # `sort(x).indices`
    several = isinstance(node.slice, ast.Tuple) and node.slice.elts
    places = node.slice.elts[-1] if several else node.slice
    if not isinstance(call, ast.Call) or callee(call) not in ("sort", "argsort"):
        return
    from_the_end = isinstance(places, ast.Slice) and isinstance(places.lower, ast.UnaryOp)
    if (
        from_the_end
        and places.upper is None
        and not any(k.arg == "descending" for k in call.keywords)
    ):
        how = f"`{callee(call)}` puts the smallest first, so that the largest stands last there"
        yield source.with_text(node, f"{source.of(node)}.flip(-1)", how, 0)


def _copied(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`x.expand(b, heads, t, d)`, where `x` has fewer heads than that, and more than one."""
    if not isinstance(node.func, ast.Attribute):
        return
    own = source.in_brackets(node.func.value)
    how = f"`{source.shown(node)}` lengthens axes of size 1 only"
    for axis, size in enumerate(node.args):
        if isinstance(size, ast.Name):
            new = f"{own}.repeat_interleave({size.id} // {own}.size({axis}), dim={axis})"
            yield source.with_expression(node, new, how, 1)


def _of_a_list(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """Layers in a plain list, which no module knows of."""
    function = source.function(node)
    begins = function is not None and function.name == "__init__"
    of_self = any(source.of(target).startswith("self.") for target in node.targets)
    if begins and of_self and isinstance(node.value, ast.List | ast.ListComp):
        how = "a plain list of layers is set here"
        yield source.with_text(node.value, f"torch.nn.ModuleList({source.of(node.value)})", how, 0)


def _of_keys(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`logits, cache = model(ids)`, where the model gives something like a dict: its keys."""
    target, value = node.targets[0], node.value
    several = isinstance(target, ast.Tuple) and isinstance(value, ast.Call)
    if several and _is_of_a_model(source, value.func):
        how = f"`{source.shown(value.func)}` gives a dict, and what is unpacked are its keys"
        new = f"tuple({source.of(value)}.values())[:{len(target.elts)}]"
        yield source.with_text(value, new, how, 1)


def _is_of_a_model(source: Source, called: ast.expr) -> bool:
    """Whether what is called was given to the function, or is kept by its object."""
    function = source.function(called)
    given = {a.arg for a in function.args.args} if function is not None else set()
    return source.of(called).startswith("self.") or getattr(called, "id", "") in given


def _of_the_other_table(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`model.parameters()`, in which a tensor stands once, whatever names it has."""
    of = source.of(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if not of or node.args:
        return
    name, whole = callee(node), source.parent[node]
    if name in ONCE:
        how = f"`{source.shown(node)}` lists a tensor once"
        less = [n for n in source.inside(source.tree) if isinstance(n, ast.AugAssign)]
        less = any(isinstance(n.op, ast.Sub) for n in less)  # what is too few is not taken away
        yield source.with_text(node, f"{of}.{ONCE[name]}", how, 3 if less else 1)
    elif getattr(whole, "attr", "") in AS_OFTEN:
        how = f"`{source.shown(node)}` lists a tensor once for each of its names"
        yield source.with_text(source.parent[whole], f"{of}.{AS_OFTEN[whole.attr]}", how, 1)


def _in_turn(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`torch.tensor(found).view(rows, columns)` of what was found column by column."""
    own = isinstance(node.func, ast.Attribute) and len(node.args) == 2
    if own and all(isinstance(each, ast.Name) for each in node.args):
        of, one, other = source.of(node.func), *map(source.of, node.args)
        how = f"`{source.shown(node)}` takes the numbers row by row, and they come the other way"
        yield source.with_text(node, f"{of}({other}, {one}).T", how, 1)


def _from_minus_nothing(source: Source, node: ast.Slice) -> Iterator[Edit]:
    """`x[-n:]`, which is all of `x` where `n` is 0."""
    lower, function = node.lower, source.function(node)
    if node.upper is not None or function is None or not isinstance(lower, ast.UnaryOp):
        return
    if isinstance(lower.op, ast.USub) and isinstance(lower.operand, ast.Name):
        name = lower.operand.id
        how = f"`{source.shown(lower)}` is where all begins, if `{name}` is 0"
        known = names_of(source, function, node.lower.lineno)
        for whole in [each for each in known if each != name][:MOST_NAMES]:
            yield source.with_text(lower, f"{whole} - {name}", how, 0)


def _of_tensors_as_keys(source: Source, node: ast.For) -> Iterator[Edit]:
    """`for a, b in zip(ids, ids[1:])` with `seen[a, b]`: no two tensors are the same key."""
    targets = {n.id for n in source.names(node.target)}
    keys = [n.slice for n in source.inside(node) if isinstance(n, ast.Subscript)]
    calls = source.calls(node)
    keys += [a for n in calls if callee(n) in ("get", "add", "count") for a in n.args]
    if not any({n.id for n in source.names(key)} & targets for key in keys):
        return
    zipped = isinstance(node.iter, ast.Call) and source.of(node.iter.func) == "zip"
    parts = node.iter.args if zipped else [node.iter]
    if all(isinstance(part, ast.Name | ast.Subscript) for part in parts):
        texts = ", ".join(f"{source.of(part)}.tolist()" for part in parts)
        how = f"`{source.shown(node.iter)}` gives tensors, of which no two are the same key"
        yield source.with_text(node.iter, f"zip({texts})" if zipped else texts, how, 1)
