"""Slips by sharing: one object with two names, a name used twice, what is not used at all, and what
one of several lines that are alike lacks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.indices import QKV
from autograder.tracing.edits.kinds.left_out import TRIANGLES
from autograder.tracing.edits.kinds.names import (
    is_about_its_size,
    keeps,
    names_of,
    of_one_type,
    sizes,
    unread,
    used_in,
)
from autograder.tracing.edits.kinds.source import (
    OF_LISTS,
    Edit,
    Source,
    changed_in_place,
    first_of,
    number,
    of_library,
)
from autograder.tracing.text import callee, is_docstring

MOST_NAMES = 8  # that are put in the place of one
SHARE = re.compile(r"p$|p_|rate|drop|prob")  # how arguments are named that are a probability
SIZE = re.compile(r"_size$|^(?:num|n)_|_len$")  # how arguments are named that are sizes
MOST_UNUSED = 3
# Lines that are alike: their words and signs, how many of them, and how many one may have more.
WORDS = re.compile(r"\d[\d.e]*|\w+|\"[^\"]*\"|'[^']*'|\*\*|//|\S")
SPACED = ("+", "-", "*", "/", "@", "**", "//")
LEAST_ALIKE, MOST_WORDS, MOST_LINES, MOST_MORE = 4, 80, 12, 12
SURELY = -2  # more natural than any other
SIGNS = ("@", "+", "*", "/", "//")
FACTORS = ("*", "/")
# Each changes a tensor in place: what it gives by another name.
IN_PLACE = {"copy_": "", "add_": "+", "sub_": "-", "mul_": "*", "div_": "/"}
LENGTHENS = ("expand", "expand_as", "broadcast_to", "broadcast_tensors")
LEAST = 'float("-inf")'
MEETS = (("@", ""), ("@", ".mT"), ("+", ""), ("*", ""))


def of_sharing(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of what is shared and should not be, and of what is made or given for nothing."""
    if isinstance(node, ast.Assign):
        yield from _of_several_names(source, node)
        yield from _of_a_second_name(source, node)
        yield from _of_what_is_unused(source, node.value)
        yield from _of_what_others_have(source, node)
    elif isinstance(node, ast.Return) and node.value is not None:
        yield from _of_what_is_unused(source, node.value)
    elif isinstance(node, ast.ListComp):
        yield from _of_what_is_unused(source, node.elt)
    elif isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "shape":
        yield from _of_a_whole_size(source, node)
    elif isinstance(node, ast.Constant):
        yield from _of_a_number_for_it(source, node)
    elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        yield from _of_longer_names(source, node)
    elif isinstance(node, ast.Call):
        yield from _of_what_is_kept(source, node)
    if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load):
        yield from _of_the_same_twice(source, node)
        yield from _of_each_pair(source, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        yield from _of_what_is_left(source, node)
    if isinstance(node, ast.Assign | ast.Return | ast.AugAssign | ast.Expr):
        yield from _of_all_in_one(source, node)
    if isinstance(node, ast.For):
        yield from _of_what_rounds_overwrite(source, node)
    if isinstance(source.parent.get(node), ast.arguments):
        yield from _of_all_calls(source, node)
    if isinstance(node, ast.Assign | ast.AugAssign):
        yield from _of_what_is_written_into(source, node)


def _of_several_names(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`a = b = make()`, which makes one object for both."""
    if len(node.targets) > 1 and isinstance(node.value, ast.Call):
        names = [source.of(target) for target in node.targets]
        made = ", ".join([source.of(node.value)] * len(names))
        how = f"`{source.shown(node.value)}` is made once, and has {len(names)} names"
        yield source.with_text(node, f"{', '.join(names)} = {made}", how)


def _of_a_second_name(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """`self.b = self.a`, where each should have an object of its own."""
    text = source.of(node.value)
    if not isinstance(node.value, ast.Name | ast.Attribute) or isinstance(
        node.targets[0], ast.Tuple
    ):
        return
    for other in source.inside(source.tree):
        made = isinstance(other, ast.Assign) and isinstance(other.value, ast.Call)
        if made and other is not node and text in map(source.of, other.targets):
            how = f"`{source.shown(node.targets[0])}` is `{text}` itself, and nothing of its own"
            yield source.with_text(node.value, source.of(other.value), how)


def _of_all_in_one(source: Source, node: ast.stmt) -> Iterator[Edit]:
    """A name that stands in one statement more than once: another, wherever it does."""
    function = source.function(node)
    if function is None:
        return
    read = [
        n for n in source.inside(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    ]
    known = names_of(source, function, node.lineno)
    for name in dict.fromkeys(n.id for n in read):
        same = sorted((n for n in read if n.id == name), key=source.span)
        if len(same) < 2 or name not in known:
            continue
        start, end = source.span(same[0])[0], source.span(same[-1])[1]
        for other in [n for n in known if n != name and of_one_type(source, same[0], n)][
            :MOST_NAMES
        ]:
            new = source.text[start:end]
            for each in reversed(same):
                first, last = (place - start for place in source.span(each))
                new = f"{new[:first]}{other}{new[last:]}"
            how = f"`{name}` is taken where another belongs, in `{source.shown(node)}`"
            edit = source.with_span(node, (start, end), new, how, 3)
            yield replace(edit, by_name=True)


def _of_the_same_twice(source: Source, node: ast.Tuple | ast.List) -> Iterator[Edit]:
    """Queries, keys and values side by side, one of them twice and one of them not at all."""
    texts = [source.of(each) for each in node.elts]
    for words in QKV:
        held = [[w for w in re.findall(r"[a-z]+", text) if w in words] for text in texts]
        if len(texts) != len(words) or [len(own) for own in held] != [1] * len(words):
            continue
        in_order = [texts[held.index([w])] for w in words if [w] in held]
        if len(in_order) == len(texts) and in_order != texts:
            how = f"`{source.shown(node)}` stand in another order than queries, keys and values"
            (start, _), (_, end) = source.span(node.elts[0]), source.span(node.elts[-1])
            yield source.with_span(node, (start, end), ", ".join(in_order), how, 1)
        for missing in [word for word in words if [word] not in held]:
            for each, text, (own,) in zip(node.elts, texts, held, strict=True):
                if held.count([own]) > 1:
                    how = f"`{source.shown(each)}` stands there twice"
                    yield source.with_text(each, re.sub(rf"\b{own}\b", missing, text), how)


def _of_each_pair(source: Source, node: ast.Tuple | ast.List) -> Iterator[Edit]:
    """`((k, past_k), (v, past_v))`: what stands first in each pair belongs behind the other."""
    pairs = [n.elts for n in node.elts if isinstance(n, ast.Tuple | ast.List) and len(n.elts) == 2]
    if len(pairs) == len(node.elts) > 1:
        start, end = source.span(node)
        new = source.text[start:end]
        for one, other in reversed(pairs):
            (a, b), (c, d) = ([p - start for p in source.span(n)] for n in (one, other))
            new = f"{new[:a]}{new[c:d]}{new[b:c]}{new[a:b]}{new[d:]}"
        how = f"the two of each pair in `{source.shown(node)}` stand in each other's place"
        yield source.with_text(node, new, how, 1)


def _of_what_is_left(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """A number by which kept ones are divided, where what is left of the share `p` belongs."""
    function = source.function(node)
    given = [a.arg for a in function.args.args] if function is not None else []
    for name in (n for n in given if SHARE.match(n)):
        if f"1 - {name}" not in source.of(node.right):
            how = f"`{source.shown(node.right)}` is not the share that is kept"
            yield source.with_expression(node.right, f"1 - {name}", how, 1)


def _of_longer_names(source: Source, node: ast.Tuple) -> Iterator[Edit]:
    """Several names side by side, each of which is a part of another, or has one for a part:
    `k, v` for `all_k, all_v`."""
    function, own = source.function(node), [getattr(n, "id", "") for n in node.elts]
    if function is None or len(own) < 2 or not all(own):
        return
    known = names_of(source, function, node.lineno)
    longer = [name.partition(own[0])[::2] for name in known if name != own[0] and own[0] in name]
    rows = [[f"{before}{name}{behind}" for name in own] for before, behind in longer]
    for before, _, behind in (own[0].partition(n) for n in known if n != own[0] and n in own[0]):
        rows.append([n.removeprefix(before).removesuffix(behind) for n in own])
    for others in rows:
        if set(others) <= set(known) and others != own:
            how = f"`{source.shown(node)}` are others than belong there"
            (start, _), (_, end) = source.span(node.elts[0]), source.span(node.elts[-1])
            yield source.with_span(node, (start, end), ", ".join(others), how, 1)


def _of_what_rounds_overwrite(source: Source, node: ast.For) -> Iterator[Edit]:
    """A name from before a loop that a round overwrites, so that the next round finds another."""
    for statement in node.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        inside = source.names(statement.value) if target is not None else []
        read = {n.id for n in inside}
        own = [t.id for t in targets if isinstance(t, ast.Name) and t.id in read]
        if not own or len(own) < len(targets):
            continue
        behind = node.body[node.body.index(statement) :]
        same = [
            n
            for each in behind
            for n in source.inside(each)
            if isinstance(n, ast.Name) and n.id in own and n not in inside
        ]
        start, end = source.span(statement)[0], source.span(behind[-1])[1]
        new = source.text[start:end]
        for each in sorted(same, key=source.span, reverse=True):
            first, last = (place - start for place in source.span(each))
            new = f"{new[:first]}{each.id}_now{new[last:]}"
        names = "`, `".join(own)
        how = f"it overwrites `{names}`, which the next round needs as it was"
        yield source.with_span(statement, (start, end), new, how, 1)


def _of_what_is_written_into(source: Source, node: ast.Assign | ast.AugAssign) -> Iterator[Edit]:
    """Places of a tensor that get other numbers, where it is still needed as it was."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    into = getattr(target, "value", None)
    if isinstance(target, ast.Subscript) and isinstance(into, ast.Name | ast.Subscript):
        name = source.of(into)
        how = f"it writes into `{name}` itself, which is still needed as it was"
        yield source.with_a_copy(node, f"{name} = {name}.clone(); {source.of(node)}", how, 3)


def _of_what_is_unused(source: Source, value: ast.expr) -> Iterator[Edit]:
    """What was given to a function, or made for the object or in it, and is nowhere read."""
    function, value = source.function(value), first_of(value)
    if function is None or function.name == "__init__" or value is None:
        return
    read = {n.id for n in source.inside(function) if isinstance(n, ast.Name)}
    unused = [
        a.arg
        for around in (function, *source.functions_around(function))
        for a in around.args.args
        if a.arg not in ("self", *_read_for_its_numbers(source, around))
    ]
    unused += [f"self.{name}" for name in unread(source)] if "self" in read else []
    alias = isinstance(value, ast.Name) and isinstance(source.parent[value], ast.Assign)
    rank = int(not alias)  # what is another name alone lacks a step most likely
    for name in unused[:MOST_UNUSED]:
        for sign in SIGNS:
            how = f"`{name}` has no part in it"
            new = f"{source.in_brackets(value)} {sign} {name}"
            yield replace(source.with_expression(value, new, how, rank), missing=True)
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
            beside = name.startswith("self.") and source.of(value.right).startswith("self.")
            for sign in FACTORS:  # `normed + self.bias` lacks its `self.weight`
                new = f"{source.in_brackets(value.left)} {sign} {name}"
                edit = source.with_expression(value.left, new, how, rank - beside)
                yield replace(edit, missing=True)
        if SHARE.match(name):  # what is left of it counts
            new = f"{source.in_brackets(value)} / (1 - {name})"
            yield replace(source.with_expression(value, new, how, rank), missing=True)
    for name in _made_for_nothing(source, function, value)[:MOST_UNUSED]:
        how, text = f"`{name}`, which is made for it, has no part in it", source.in_brackets(value)
        ways = [f"{text} {sign} {name}{turn}" for sign, turn in MEETS]
        if is_mask(source, function, name):
            ways += [f"{text}.masked_fill({each}, {LEAST})" for each in (name, f"{name} == 0")]
        line = _where_the_others_are_read(source, function, name)
        alias = isinstance(value, ast.Name) and isinstance(source.parent[value], ast.Assign)
        for new in ways:
            edit = replace(source.with_expression(value, new, how, int(not alias)), missing=True)
            yield edit.told_of(line)


def _read_for_its_numbers(source: Source, function: ast.FunctionDef) -> set[str]:
    """The names that a function reads, but for those of which it asks the size alone."""
    return source.once(
        ("for its numbers", function),
        lambda: {n.id for n in source.names(function) if not is_about_its_size(source, n)},
    )


def _of_what_others_have(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """What another line has and this one lacks, which is the same but for that and for names:
    `q = f(a)` beside `k = f(b) + 1`."""
    function, own = source.function(node), _words(source.of(node.value))
    if function is None or not LEAST_ALIKE <= len(own) <= MOST_WORDS:
        return
    others = [n for n in source.inside(function) if isinstance(n, ast.Assign) and n is not node]
    found: dict[tuple[int, str, int], list[int]] = {}
    for other in others[:MOST_LINES]:
        more = _more_than(_words(source.of(other.value)), own)
        if more is not None:
            found.setdefault(more, []).append(other.lineno)
    for (place, text, differ), lines in found.items():
        start = source.span(node.value)[0] + place
        how = f"`{text.strip()}` is missing, which line {lines[0]} has"
        rank = 0 if len(lines) > 1 or "self." in text else 3  # else that line may have it too much
        rank += differ > 1  # another layer that is given something else is no sibling
        yield source.with_span(node.value, (start, start), text, how, rank)


def _more_than(
    other: list[tuple[str, int]], own: list[tuple[str, int]]
) -> tuple[int, str, int] | None:
    """What a text has more than another, all in one place, where that is in the other, and in how
    many names they differ."""
    count = len(other) - len(own)
    if not 0 < count <= MOST_MORE:
        return None
    found = []
    for first in range(1, len(own) + 1):
        pairs = zip(own, other[:first] + other[first + count :], strict=True)
        differ = {(b, a) for (a, _), (b, _) in pairs if a != b}
        names, run = dict(differ), [word for word, _ in other[first : first + count]]
        consistent = len(names) == len(differ) and all(a.isidentifier() for p in differ for a in p)
        if consistent and names and run.count("(") == run.count(")") and run[0] != ",":
            text = "".join(f" {names.get(w, w)} " if w in SPACED else names.get(w, w) for w in run)
            found.append((-len(names), own[first - 1][1], text, len(names)))
    return max(found)[1:] if found else None


def _words(text: str) -> list[tuple[str, int]]:
    """The words and signs of an expression, each with where it ends."""
    return [(found[0], found.end()) for found in WORDS.finditer(text)]


def _where_the_others_are_read(source: Source, function: ast.FunctionDef, name: str) -> int | None:
    """The first line that reads what is made together with a variable that nothing reads."""
    inside = source.inside(function)
    targets = [n.targets[0] for n in inside if isinstance(n, ast.Assign)]
    together = [n for n in targets if isinstance(n, ast.Tuple) and name in map(source.of, n.elts)]
    others = {source.of(each) for n in together for each in n.elts} - {name}
    read = [n for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
    read.sort(key=source.span, reverse=True)
    first = {n.id: source.statement(n).lineno for n in read if n.id in others}
    return first.popitem()[1] if len(set(first.values())) == 1 else None


def _of_all_calls(source: Source, node: ast.expr) -> Iterator[Edit]:
    """`def f(x, kept=[])`: one list for all calls, made when the function is."""
    given, function = source.parent[node], source.function(node)
    empty = source.of(node) in ("[]", "{}", "set()", "dict()", "list()")
    if not empty or function is None or node not in given.defaults:
        return
    names = [a.arg for a in (*given.posonlyargs, *given.args)]
    name = names[given.defaults.index(node) - len(given.defaults)]
    first = next((n for n in function.body if not is_docstring(n)), None)
    if first is not None and first.lineno > node.lineno:
        start, end = source.span(node)[0], source.span(first)[0]
        between = source.text[source.span(node)[1] : end]
        begin = f"{name} = {source.of(node)} if {name} is None else {name}"
        new = f"None{between}{begin}\n{' ' * first.col_offset}"
        how = f"`{name}={source.of(node)}` is made once, and all calls go on with it"
        yield source.with_span(node, (start, end), new, how, SURELY)


def _made_for_nothing(source: Source, function: ast.FunctionDef, value: ast.expr) -> list[str]:
    """The variables that are made in front of an expression and nowhere read; but for sizes, of
    which more are taken of a shape than are needed."""
    names = [n for n in source.inside(function) if isinstance(n, ast.Name)]
    read = used_in(source, function) | {"_"}
    made = [n for n in names if isinstance(n.ctx, ast.Store) and n.lineno < value.lineno]
    around = source.parent[value]
    loops = around.generators if isinstance(around, ast.ListComp) else []
    made += [n for n in names for loop in loops if n in source.inside(loop.target)]
    return list(dict.fromkeys(n.id for n in made if n.id not in read))


def _of_a_whole_size(source: Source, node: ast.Subscript) -> Iterator[Edit]:
    """A size that belongs to several heads or parts, whose number is given and nowhere read."""
    function = source.function(node)
    if function is None:
        return
    for name in _given_for_nothing(source, function) & sizes(source, function):
        how = f"`{name}` has no part in it, and `{source.of(node)}` is that of all of them"
        new = f"{source.of(node)} // {name}"
        yield replace(source.with_expression(node, new, how), missing=True)


def _of_a_number_for_it(source: Source, node: ast.Constant) -> Iterator[Edit]:
    """`(total + 1)`, where an argument that nothing reads belongs, or a size that is given."""
    function = source.function(node)
    if function is None or number(node) is None:
        return
    targets = [source.of(t) for t in getattr(source.statement(node), "targets", ())]
    shares = [n for n in source.inside(function) if isinstance(n, ast.BinOp)]
    shares = [n for n in shares if isinstance(n.op, ast.Div)]
    within = [n for n in shares if n in source.around(node) or source.of(n.right) in targets]
    parent = source.parent[node]
    divides = isinstance(parent, ast.BinOp) and bool(within)
    one_more = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add) and node.value == 1
    given = [a.arg for each in source.functions_around(node) for a in each.args.args]
    counted = {name for name in given if (divides or one_more) and SIZE.search(name)}
    unused = _given_for_nothing(source, function)
    statement = source.shown(source.statement(node))
    for name in sorted(unused | counted)[:MOST_UNUSED]:
        how = f"`{source.of(node)}` stands in `{statement}` where `{name}` belongs"
        rank = int(name not in unused) + int(not (divides or name in unused))
        yield source.with_text(node, name, how, rank)
        if name in unused and node.value == 1 and isinstance(parent, ast.Compare):
            how = f"`{source.shown(parent)}` has no part of `{name}` in it"
            yield source.with_text(node, f"1 - {name}", how)


def _given_for_nothing(source: Source, function: ast.FunctionDef) -> set[str]:
    """The arguments of a function that it does not read."""
    read = {n.id for n in source.inside(function) if isinstance(n, ast.Name)}
    return {a.arg for a in function.args.args if a.arg not in read} - {"self"}


def is_mask(source: Source, function: ast.FunctionDef, name: str) -> bool:
    """Whether a variable is a mask, by its name or by what makes it."""
    if "mask" in name or keeps(ast.Name(name)) is not None:
        return True
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)]
    values = [n.value for n in made if name in map(source.of, n.targets)]
    return any(
        isinstance(n, ast.Compare) or (isinstance(n, ast.Call) and callee(n) in TRIANGLES)
        for value in values
        for n in source.inside(value)
    )


def _of_what_is_kept(source: Source, node: ast.Call) -> Iterator[Edit]:
    """What is kept for later and changed in place, and what is made and thrown away."""
    name, statement = callee(node), source.parent.get(node)
    if name == "append" and len(node.args) == 1:
        text = source.of(node.args[0])
        how = f"`{source.shown(node.args[0])}` is one tensor that each round changes again"
        loop = next((n for n in source.around(node) if isinstance(n, ast.For | ast.While)), node)
        changed = text in changed_in_place(source.inside(loop))
        yield source.with_expression(node.args[0], f"({text}).clone()", how, 2 if changed else 3)
    if name == "insert" and len(node.args) == 2 and number(node.args[0]) == 0:
        how = f"`{source.shown(node)}` puts each round's result before those of the rounds before"
        receiver, given = source.of(node.func.value), source.of(node.args[1])
        yield source.with_text(node, f"{receiver}.append({given})", how)
    if name.endswith("_") and not name.startswith("_") and isinstance(node.func, ast.Attribute):
        value = source.of(node.func.value)
        how = f"`{name}` changes in place what is still needed as it was"
        if name in IN_PLACE and node.args and isinstance(statement, ast.Expr):
            sign, given = IN_PLACE[name], source.of(node.args[0])
            new = f"{value} = {value} {sign} ({given})" if sign else f"{value} = ({given})"
            rank = 0 if _has_no_numbers_of_its_own(source, node, value) else 2
            yield source.with_a_copy(statement, new, how, rank)
        arguments = source.text[source.span(node.func)[1] : source.span(node)[1]]
        if not isinstance(statement, ast.Expr):
            yield source.with_a_copy(node.func.value, f"({value}).clone()", how, 3)
        elif isinstance(node.func.value, ast.Name):
            new = f"{value} = {value}.{name[:-1]}{arguments}"
            yield source.with_a_copy(statement, new, how, 3)
    elif isinstance(statement, ast.Expr) and isinstance(node.func, ast.Attribute):
        value = _begun_with(node)
        if value is not None and callee(node) not in OF_LISTS:
            how = f"what `{source.shown(node.func)}` makes is thrown away"
            new = f"{value} = {source.of(node)}"
            yield source.with_text(statement, new, how, SURELY)  # as it stands it does nothing


def _has_no_numbers_of_its_own(source: Source, node: ast.AST, name: str) -> bool:
    """Whether a variable is another tensor that was lengthened, of which several places are one."""
    function = source.function(node)
    made = source.made(function, name) if function is not None else []
    calls = [n for each in made for n in source.inside(each) if isinstance(n, ast.Call)]
    return any(callee(n) in LENGTHENS for n in calls)


def _begun_with(node: ast.Call) -> str | None:
    """The variable that a chain of methods begins with, `x.permute(0, 2, 1).contiguous()`, or that
    a layer or a library is given."""
    value = node.func.value
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        value = value.func.value
    if of_library(node.func) or getattr(value, "id", "") == "self":
        value = node.args[0] if node.args else None
    return value.id if isinstance(value, ast.Name) else None
