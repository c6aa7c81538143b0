"""Steps that are missing inside of an expression: a factor, a term, a function of its value.

There are many of them, and most are nothing that anybody leaves out. So they are tried last, where
nothing else makes all right: first with what is made and read nowhere.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.all import MOST_MADE, source_of
from autograder.tracing.edits.kinds.missing import AROUND, OF_A_NUMBER, said_to_be_raw
from autograder.tracing.edits.kinds.names import names_of, read_in, sizes
from autograder.tracing.edits.kinds.source import NATURAL, Edit, Source, number
from autograder.tracing.text import callee

RANK = NATURAL + 1
BESIDE = (
    ("/", "`{}` is not divided by `{}`"),
    ("*", "`{}` is not multiplied with `{}`"),
    ("-", "`{1}` is not taken from `{0}`"),
    ("+", "`{1}` is not added to `{0}`"),
)
PRODUCT = ("@", "`{}` is not multiplied with `{}`")
MORE = (
    ("({}).exp()", "the exponential of `{}` is not taken"),
    ("({}).log()", "the logarithm of `{}` is not taken"),
    ("({}).real", "the real part of `{}` is not taken"),
    ("torch.ones_like({})", "`{}` stands where ones of its shape belong"),
    ("torch.zeros_like({})", "`{}` stands where zeros of its shape belong"),
    ("({}).sum(-1)", "the rows of `{}` are not added up"),
    ("({}).logsumexp(-1, keepdim=True)", "the exponentials of `{}` are not added up"),
    ("({0}) / ({0}).sum()", "`{0}` does not sum to 1"),
    ("({0}) - ({0}).logsumexp(-1, keepdim=True)", "the rows of `{0}` are not normalised"),
    ("({0}) - ({0}).mean(-1, keepdim=True)", "its mean is not taken from each row of `{0}`"),
    ("({}).flip(-1)", "`{}` runs backwards along its last axis"),
)
NEW_AXES = tuple(
    (f"({{}}).unsqueeze({axis})", "`{}` has no axis of size 1 where one belongs")
    for axis in (-1, 0, 1)
)
VALUES = (ast.Name, ast.Call, ast.BinOp, ast.Subscript, ast.Attribute, ast.UnaryOp)
LIBRARIES = ("torch", "F", "nn", "math", "np", "numpy", "einops", "self")
LAYOUT = ("view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "flatten", "to")
COUNTS = ("size", "len", "item", "int", "numel", "dim")  # what gives whole numbers


def put_in(text: str) -> list[Edit]:
    """The changes of a text that put a step into an expression, each once; of a long text those
    that are made first, and none of one that cannot be read or is too long to be an answer."""
    source = source_of(text)
    if source is None:
        return []
    values = [n for n in source.nodes() if isinstance(n, VALUES) and _is_a_value(source, n)]
    made = (edit for kind in KINDS for node in values for edit in kind(source, node))
    found: dict[str, Edit] = {}
    for edit in itertools.islice(made, MOST_MADE // max(len(text), 1)):
        found.setdefault(edit.source, edit)
    return list(found.values())


def _with_what_is_unread(source: Source, node: ast.expr) -> Iterator[Edit]:
    """A name that is given or made, and read nowhere."""
    function = source.function(node)
    read = read_in(source, function)
    for name in _before(source, node):
        if name not in read:
            for sign, how in (*BESIDE, PRODUCT):
                edit = _put(source, node, sign, name, how, NATURAL)
                yield replace(edit, missing=False)  # what is made belongs somewhere


def _with_what_is_only_returned(source: Source, node: ast.expr) -> Iterator[Edit]:
    """A term that a sum may go on with: what is made right before, and read by a `return` alone."""
    parent, function = source.parent[node], source.function(node)
    is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)
    if not is_sum or not isinstance(parent, ast.Assign):
        return
    read = [n for n in source.names(function) if isinstance(n.ctx, ast.Load)]
    inside = {n for n in read if not isinstance(source.statement(n), ast.Return)}
    elsewhere, returned = {n.id for n in inside}, {n.id for n in read if n not in inside}
    for name in _before(source, node):
        if name in returned - elsewhere:
            for sign, how in BESIDE[2:]:
                edit = _put(source, node, sign, name, how, NATURAL)
                yield replace(edit, missing=False)


def _of_numbers(source: Source, node: ast.expr) -> Iterator[Edit]:
    """A whole number beside another: where a part of an axis begins or ends, how often a loop runs,
    how large something is made."""
    if not _is_a_number(source, node):
        return
    text, shown = source.of(node), source.shown(node)
    for around, how in OF_A_NUMBER:
        yield _put_around(source, node, around.format(text), how.format(shown))
    counted = sizes(source, source.function(node))
    for name in _before(source, node):
        if name in counted and name != text:
            for sign, how in BESIDE[1:]:
                yield _put(source, node, sign, name, how)
    for count in source.once("rounds", lambda: _rounds(source)):
        how = f"`{shown}` is {count} times what belongs there"
        yield _put_around(source, node, f"({text}) // {count}", how)


def _rounds(source: Source) -> list[int]:
    """How often loops run whose rounds are counted by a number: `for part in range(3)`."""
    calls = source.calls(source.tree)
    given = [n.args[0] for n in calls if callee(n) in ("range", "chunk") and n.args]
    counts = [number(each) for each in given]
    return list(dict.fromkeys(n for n in counts if isinstance(n, int) and n > 1))


def _around(source: Source, node: ast.expr) -> Iterator[Edit]:
    """A function of one value; no new axis of what a loop makes anew from itself, which would grow
    with each round."""
    if not _is_a_number(source, node):
        for around, how in (*AROUND, *MORE, *(() if _goes_round(source, node) else NEW_AXES)):
            if not said_to_be_raw(source, node, how):
                new = around.format(source.of(node))
                yield _put_around(source, node, new, how.format(source.shown(node)))


def _goes_round(source: Source, node: ast.expr) -> bool:
    """Whether it stands in a loop, in a statement that reads what it gives a new value."""
    statement = source.statement(node)
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    made = {n.id for t in targets if t is not None for n in source.names(t)}
    value = getattr(statement, "value", None)
    read = {n.id for n in source.names(value)} if value is not None else set()
    loops = any(isinstance(n, ast.For | ast.While) for n in source.around(statement))
    return loops and (isinstance(statement, ast.AugAssign) or bool(made & read))


def _beside(source: Source, node: ast.expr) -> Iterator[Edit]:
    """One value beside another."""
    if _is_a_number(source, node):
        return
    counted = sizes(source, source.function(node))
    for name in (*_before(source, node), *_attributes(source)):
        if name == source.of(node):
            continue
        count = name in counted or name.startswith("self.")
        for sign, how in BESIDE[:2] if count else BESIDE:
            if _comes_to_the_same(source, node, sign, count):
                continue
            yield _put(source, node, sign, name, how)
            if count:
                yield _put(source, node, sign, f"{name} ** 0.5", how)
    for name in source.once("constants", lambda: _constants(source)):
        for sign, how in BESIDE[:2] if name != source.of(node) else ():
            if not _comes_to_the_same(source, node, sign, True):
                yield _put(source, node, sign, name, how)


def _constants(source: Source) -> list[str]:
    """The numbers that stand in front of all functions: `LOG2E = 1.4427`."""
    made = [n for n in source.tree.body if isinstance(n, ast.Assign) and len(n.targets) == 1]
    named = [n for n in made if isinstance(n.targets[0], ast.Name)]
    return [n.targets[0].id for n in named if number(n.value) is not None]


def _comes_to_the_same(source: Source, node: ast.expr, sign: str, is_number: bool) -> bool:
    """Whether a factor or a term beside an expression can stand beside what that is part of."""
    parent = source.parent[node]
    if isinstance(parent, ast.BinOp):
        if isinstance(parent.op, ast.Add | ast.Sub):
            return sign in "+-"
        factors = ast.Mult | ast.Div | ast.MatMult if is_number else ast.Mult | ast.Div
        return sign in "*/" and isinstance(parent.op, factors)
    call = source.parent.get(parent)
    is_method = isinstance(parent, ast.Attribute) and isinstance(call, ast.Call)
    return is_method and callee(call) in LAYOUT


def _put(source: Source, node: ast.expr, sign: str, other: str, how: str, rank: int = RANK) -> Edit:
    new = f"{source.in_brackets(node)} {sign} {other}"
    return _put_around(source, node, new, how.format(source.shown(node), other), rank)


def _put_around(source: Source, node: ast.expr, new: str, how: str, rank: int = RANK) -> Edit:
    function = source.function(node)  # with what may be wrong
    handed = function.name in source.called and bool(function.args.args)
    return replace(source.with_expression(node, new, how, rank), missing=True, unsure=handed)


def _before(source: Source, node: ast.expr) -> list[str]:
    """The variables that there are before the statement of an expression."""
    line = source.statement(node).lineno - 1
    found = names_of(source, source.function(node), line)
    called = source.once("called by name", lambda: _called_by_name(source))
    return [n for n in found if n not in called and n not in LIBRARIES]


def _called_by_name(source: Source) -> set[str]:
    """The variables that are called as functions."""
    calls = (n.func for n in source.inside(source.tree) if isinstance(n, ast.Call))
    return {each.id for each in calls if isinstance(each, ast.Name)}


def _attributes(source: Source) -> list[str]:
    """The attributes of the object that are read and not called."""
    return source.once("attributes", lambda: _read_of_self(source))


def _read_of_self(source: Source) -> list[str]:
    inside = source.inside(source.tree)
    called = {source.of(n.func) for n in inside if isinstance(n, ast.Call)}
    read = (n for n in inside if isinstance(n, ast.Attribute))
    own = [source.of(n) for n in read if isinstance(n.value, ast.Name) and n.value.id == "self"]
    return [n for n in dict.fromkeys(own) if n not in called]


def _is_a_number(source: Source, node: ast.expr) -> bool:
    """Whether an expression gives a whole number, as far as the text tells."""
    if isinstance(node, ast.Name):
        return node.id in sizes(source, source.function(node))
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return all(number(s) is not None or _is_a_number(source, s) for s in sides)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    return isinstance(node, ast.Call) and callee(node) in COUNTS


def _is_a_value(source: Source, node: ast.expr) -> bool:
    """Whether an expression may stand for a tensor or a number that a step could be put around."""
    if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del) or number(node) is not None:
        return False
    if source.function(node) is None or getattr(node, "id", "") in LIBRARIES:
        return False
    if isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Name):
        return False
    parent = source.parent[node]
    if isinstance(parent, ast.Call) and node is parent.func:
        return False
    if isinstance(parent, ast.Attribute):
        of = source.parent.get(parent)
        return isinstance(of, ast.Call) and of.func is parent and not _is_a_number(source, of)
    if isinstance(parent, ast.Subscript) and node is parent.slice:
        return _is_a_number(source, node)
    if isinstance(parent, ast.Starred | ast.Expr | ast.keyword):
        return False
    return not (isinstance(parent, ast.Tuple) and isinstance(source.parent[parent], ast.Subscript))


# The likeliest first.
KINDS = (_with_what_is_unread, _with_what_is_only_returned, _of_numbers, _around, _beside)
