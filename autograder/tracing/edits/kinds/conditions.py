"""Slips in what is asked: a condition the other way round, one that never changes, or one of more
than is meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.tracing.edits.kinds.missing import taken_of
from autograder.tracing.edits.kinds.source import Edit, Source
from autograder.tracing.text import callee


def of_conditions(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The other answer to one question; a setting that is asked in the place of a constant."""
    if isinstance(node, ast.Compare):
        yield from _of_running_sums(source, node)
        yield from _of_nothing(source, node)
        yield from _from_the_end(source, node)
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
        yield from _of_running_sums(source, node)
    elif isinstance(node, ast.Call):
        yield from _of_one_answer(source, node)
    if not isinstance(node, ast.If | ast.IfExp | ast.While):
        return
    test = node.test
    if isinstance(node, ast.IfExp):
        yield from _of_a_swallowed_sum(source, node)
    elif isinstance(node, ast.While):
        yield from _of_one_round_less(source, node)
    is_not = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    bare = test.operand if is_not else test
    if isinstance(bare, ast.Name | ast.Attribute | ast.Call):
        how = f"`{source.shown(test)}` asks for the truth of what it holds, and not if it is there"
        none = "is None" if is_not else "is not None"
        yield source.with_expression(test, f"{source.of(bare)} {none}", how, 1)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        how = f"`{source.shown(test)}` has an answer for each of several numbers"
        for asked in ("any", "all"):
            yield source.with_expression(test, f"({source.of(test)}).{asked}()", how, 1)
    if not isinstance(test, ast.Constant):
        how = f"`{source.shown(test)}` is asked the other way round"
        yield source.with_expression(test, f"not ({source.of(test)})", how, 2)
    elif not isinstance(node, ast.While):
        how = f"the condition `{source.shown(test)}` is the same in every call"
        for setting in _settings(source, node):
            yield source.with_text(test, setting, how, 1)
            yield source.with_text(test, f"not {setting}", how, 2)
        runs = "always runs" if test.value else "never runs"
        how = f"what stands under `{source.shown(test)}` {runs}"
        yield source.with_text(test, str(not test.value), how, 3)


def _from_the_end(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """`torch.arange(n) == place`, where a place may be told from the end, as -1."""
    if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
        return
    for counted, place in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        if isinstance(counted, ast.Call) and callee(counted) == "arange" and len(counted.args) == 1:
            how = f"`{source.shown(place)}` may be told from the end, where it is equal to no place"
            count = source.in_brackets(counted.args[0])
            yield source.with_expression(place, f"{source.in_brackets(place)} % {count}", how, 1)


def _of_one_answer(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`where(c, a, a)`, which is `a` whatever is asked."""
    if callee(node) != "where" or len(node.args) != 3:
        return
    if source.of(node.args[1]) == source.of(node.args[2]):
        how = f"`{source.shown(node)}` is the same whatever is asked"
        for part in node.args[1:]:
            for other in ("torch.zeros_like({})", "torch.ones_like({})"):
                yield source.with_text(part, other.format(source.of(part)), how, -1)


def _of_a_swallowed_sum(source: Source, node: ast.IfExp) -> Iterator[Edit]:
    """`a + b if c else 0`, which is 0 where `c` is not so, for `a + (b if c else 0)`."""
    own = node.body
    if isinstance(own, ast.BinOp) and isinstance(own.op, ast.Add | ast.Sub):
        how = f"the `if` in `{source.shown(node)}` is about the whole sum, and not its last part"
        front = source.text[source.span(own)[0] : source.span(own.right)[0]]
        rest = source.text[source.span(own.right)[0] : source.span(node)[1]]
        yield source.with_expression(node, f"{front}({rest})", how, 1)


def _of_one_round_less(source: Source, node: ast.While) -> Iterator[Edit]:
    """`while x < n: x = f(x)` stops behind `n`; for `while f(x) <= n` it stops in front of it."""
    test, first = node.test, node.body[0]
    is_plain = isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Lt | ast.LtE)
    target = getattr(first, "target", None) or next(iter(getattr(first, "targets", ())), None)
    if not is_plain or target is None or source.of(target) != source.of(test.left):
        return
    if isinstance(first, ast.AugAssign) and isinstance(first.op, ast.Mult):
        next_one = f"{source.of(target)} * {source.in_brackets(first.value)}"
    elif isinstance(first, ast.Assign):
        next_one = source.of(first.value)
    else:
        return
    how = f"`{source.shown(test)}` goes on for one round too many"
    yield source.with_text(test, f"({next_one}) <= {source.of(test.comparators[0])}", how, 1)


def _of_running_sums(source: Source, node: ast.Compare | ast.Assign) -> Iterator[Edit]:
    """A running sum that is compared with its own place in it, where what comes before counts; or
    another name for it, `before = total`."""
    alias = isinstance(node, ast.Assign)
    function = source.function(node)
    for made in source.inside(function) if function is not None else ():
        value = getattr(made, "value", None)
        is_sum = isinstance(value, ast.Call) and callee(value) == "cumsum"
        if not (is_sum and isinstance(made, ast.Assign)):
            continue
        of = taken_of(source, value)
        for each in [node.value] if alias else [node.left, *node.comparators]:
            if of is not None and source.of(each) in map(source.of, made.targets):
                how = f"`{source.shown(each)}` counts each place itself, too"
                new = f"{source.of(each)} - {source.in_brackets(of)}"
                yield source.with_expression(each, new, how, 0 if alias else 2)


def _of_nothing(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """What is empty is not None."""
    none = node.comparators[0]
    is_none = isinstance(none, ast.Constant) and none.value is None and len(node.ops) == 1
    if is_none and isinstance(node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        empty = isinstance(node.ops[0], ast.Is | ast.Eq)
        how = f"`{source.shown(node)}` does not see what is there and empty"
        size = f"len({source.of(node.left)})"
        yield source.with_expression(node, f"{size} == 0" if empty else f"{size} > 0", how, 1)


def _settings(source: Source, node: ast.AST) -> list[str]:
    """The names of what is on or off for a function: what it is given, and what its object keeps
    of what it was given, where that is a truth value or may be one."""
    function = source.function(node)
    if function is None:
        return []
    found = [name for name in _given(function) if name != "self"]
    around = next((n for n in source.around(function) if isinstance(n, ast.ClassDef)), None)
    for each in source.inside(around) if around is not None else ():
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Name | ast.Constant):
            found += [source.of(t) for t in each.targets if isinstance(t, ast.Attribute)]
    return [*dict.fromkeys(found), *(["self.training"] if around is not None else [])]


def _given(function: ast.FunctionDef) -> list[str]:
    """What a function is given that is on or off by its default."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + arguments.defaults
    pairs = [
        *zip(plain, defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return [a.arg for a, d in pairs if d is None or isinstance(getattr(d, "value", None), bool)]
