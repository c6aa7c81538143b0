"""Slips in operators: the wrong one, sides exchanged, one too many, brackets in other places."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.names import is_sure, keeps
from autograder.tracing.edits.kinds.source import Edit, Source, changed_in_place, number
from autograder.tracing.text import callee, made_in, root_of

SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
}
ONE_OVER = re.compile(r"inv|rstd|rsqrt|recip|one_over")  # of what something is multiplied with
OTHERS = {
    "+": ("-", "*"),
    "-": ("+",),
    "*": ("/", "@", "+"),
    "/": ("*", "//"),
    "//": ("/", "%"),
    "%": ("//",),
    "@": ("*",),
    "&": ("|",),
    "|": ("&",),
    "**": ("*",),
}
ALIAS = 5  # how unlikely it is that a statement was to give another name alone
ORDERED = ("-", "/", "//", "%", "**", "@")
COMPARED = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
OF_ALL = ("mean", "amax", "amin", "logsumexp", "median")  # what is taken off each of what it is of
COMPARES = ("eq", "ne", "lt", "le", "gt", "ge", "equal", "isclose")  # the same as functions
ALIKE = {
    "<": ("<=", ">", ">="),
    "<=": ("<", ">=", ">"),
    ">": (">=", "<", "<="),
    ">=": (">", "<=", "<"),
    "==": ("!=",),
    "!=": ("==",),
}
COUNTS = ("len", "size")  # what counts places
# The sizes of a tensor, as a text, which is given.
SHAPE = re.compile(r"(?:tuple\()?([\w.]+)\.(?:size\(\)|shape)\)?")
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def of_operators(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of one operation."""
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        yield from _of_two_sides(source, node)
        yield from _one_behind_the_other(source, node)
        yield from _of_infinity(source, node)
        yield from _of_the_sign(source, node)
        yield from _of_brackets(source, node)
        yield from _of_shares(source, node)
        yield from _of_half(source, node)
        yield from _of_the_diagonal(source, node)
        yield from _of_its_size(source, node)
        yield from _under_the_root(source, node)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
        yield from _of_comparison(source, node)
        yield from _of_both_sides(source, node)
    elif isinstance(node, ast.Call) and callee(node) in COMPARES and len(node.args) == 2:
        for each in node.args:
            yield from _of_a_column(source, each, node)
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        sign = source.text[source.span(node)[0]]
        how = f"`{source.shown(node)}` turns around what should stay as it is"
        twice = sign == "-" and "-" in source.of(node.operand)  # minus minus infinity
        rank = {"+": 9, "~": _rank_of_turned(source, node)}.get(sign, int(not twice))
        yield source.with_expression(node, source.of(node.operand), how, rank)
    elif isinstance(node, ast.BoolOp):
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        how = f"`{word}` is not what belongs in `{source.shown(node)}`"
        new = f" {other} ".join(f"({source.of(each)})" for each in node.values)
        yield source.with_expression(node, new, how, 1)
    elif isinstance(node, ast.AugAssign) and type(node.op) in SIGNS:
        yield from _of_change_in_place(source, node)


def _one_behind_the_other(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`one + other` of tensors, as if they were lists."""
    alone = isinstance(source.parent[node], ast.Return | ast.Assign)
    sides = [isinstance(n, ast.Name | ast.Call | ast.Subscript) for n in (node.left, node.right)]
    if isinstance(node.op, ast.Add) and alone and all(sides):
        how = f"`{source.shown(node)}` adds numbers that belong one behind the other"
        new = f"torch.cat(({source.of(node.left)}, {source.of(node.right)}))"
        yield source.with_text(node, new, how, 2)


def _under_the_root(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`std + eps` for `(std**2 + eps) ** 0.5`: it keeps a variance from being 0."""
    small = [n for n in (node.left, node.right) if "eps" in source.of(n)]
    if isinstance(node.op, ast.Add) and len(small) == 1 and not _is_squared(node, small[0]):
        large = node.left if small[0] is node.right else node.right
        how = f"`{source.shown(small[0])}` is added to a root, and belongs under it"
        new = f"({source.in_brackets(large)} ** 2 + {source.of(small[0])}) ** 0.5"
        yield source.with_expression(node, new, how, 2)


def _is_squared(node: ast.BinOp, small: ast.expr) -> bool:
    """Whether what stands beside a small number is a variance, by its name."""
    large = node.left if small is node.right else node.right
    return any("var" in getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(large))


def _of_both_sides(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """`i % n == j % n`: the same wrong operation on both sides of a comparison."""
    sides = (node.left, node.comparators[0])
    if not all(isinstance(n, ast.BinOp) and type(n.op) in SIGNS for n in sides):
        return
    signs = {SIGNS[type(n.op)] for n in sides}
    if len(signs) != 1 or source.of(sides[0].right) != source.of(sides[1].right):
        return
    sign, between = signs.pop(), source.text[source.span(sides[0])[1] : source.span(sides[1])[0]]
    for other in OTHERS.get(sign, ()):
        how = (
            f"`{sign}` is not the operation that belongs on the two sides of `{source.shown(node)}`"
        )
        new = [f"{source.in_brackets(n.left)} {other} {source.in_brackets(n.right)}" for n in sides]
        yield source.with_expression(node, between.join(new), how, 1)


def _is_of_the_other(source: Source, node: ast.BinOp) -> bool:
    """`mean - x`: whether the left side is one number of what the right side holds."""
    function = source.function(node)
    if function is None or not isinstance(node.left, ast.Name):
        return False
    made = source.made(function, node.left.id)
    calls = [n for n in made if isinstance(n, ast.Call) and callee(n) in OF_ALL]
    return any(root_of(n) == source.of(node.right) for n in calls)


def _of_two_sides(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    sign = SIGNS[type(node.op)]
    left, right = source.in_brackets(node.left), source.in_brackets(node.right)
    shown = source.shown(node)
    if sign == "**":
        how = f"the power of `{shown}` has the wrong sign"
        yield source.with_expression(node, f"{left} ** -({source.of(node.right)})", how, 1)
    if sign == "-" and getattr(node.left, "value", None) == 1:
        how = f"`{shown}` stands where `{source.shown(node.right)}` itself belongs"
        yield source.with_expression(node, source.of(node.right), how, 1)
    if sign in ORDERED:
        how = f"the two sides of `{sign}` have changed places in `{shown}`"
        rank = int(not (sign == "-" and _is_of_the_other(source, node)))
        yield source.with_expression(node, f"{right} {sign} {left}", how, rank)
    one_over = sign == "/" and ONE_OVER.match(right.removeprefix("self."))
    for other in OTHERS.get(sign, ()):
        how = f"`{sign}` is not the operation that belongs in `{shown}`"
        rank = -1 if one_over and other == "*" else 1
        yield source.with_expression(node, f"{left} {other} {right}", how, rank)
    if sign in ("+", "-") and isinstance(node.right, ast.Name):
        name = node.right.id
        how = f"`{name}` is not as much as belongs in `{shown}`"
        for much in (f"{name} / 2", f"2 * {name}"):
            yield source.with_text(node.right, much, how, 2)
    function = source.function(node)
    given = {a.arg for a in function.args.args} if function is not None else set()
    if sign == "/" and getattr(node.right, "id", "") in given:
        how = f"`{right}` is half of what `{source.shown(node.left)}` is divided by"
        yield source.with_text(node.right, f"(2 * {right})", how, 2)
    for each in (node.left, node.right) if sign in ("+", "-") else ():
        if isinstance(each, ast.Name | ast.Attribute):
            how = f"`{source.shown(each)}` is not squared in `{shown}`"
            yield source.with_text(each, f"{source.of(each)} ** 2", how, 3)
    if sign == "*":
        yield from _of_two_squares(source, node)
    if sign == "+" and isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Add):
        first, last = source.in_brackets(node.left.left), source.in_brackets(node.left.right)
        how = f"`+` is not the operation that belongs in front of `{source.shown(node.right)}`"
        yield source.with_expression(node, f"{first} + {last} * {right}", how, 1)
    if sign == "+":
        how = f"`{source.shown(node.left)}` is added in `{shown}`, and should be taken away"
        yield source.with_expression(node, f"{right} - {left}", how, 1)
    yield from _of_what_is_left_over(source, node)
    if sign == "@":
        turned = [turned_back(each) for each in (node.right, node.left)]
        if None not in turned:
            how = f"`{shown}` is the transpose of what belongs there"
            new = " @ ".join(source.in_brackets(each) for each in turned)
            yield source.with_expression(node, new, how)
        yield from _on_the_other_side(source, node)
        yield from _of_a_bias(source, node)
        yield from _of_two_vectors(source, node)
        for each, side in ((node.left, "left"), (node.right, "right")):
            text = source.in_brackets(each)
            other = f"{text}.transpose(-2, -1)"
            pair = f"{other} @ {right}" if side == "left" else f"{left} @ {other}"
            how = f"`{source.shown(each)}` needs its last two axes exchanged in this product"
            yield source.with_expression(node, pair, how, 1)
        return
    if sign != "**":
        how = f"`{sign} {_in_brackets(source, node.right)}` does not belong there"
    else:
        how = f"the power `{sign} {_in_brackets(source, node.right)}` does not belong there"
    mean = sign == "/" and isinstance(node.right, ast.Call) and callee(node.right) in COUNTS
    rank = ALIAS if _would_be_an_alias(source, node, node.left) else 2 - mean
    alone = f"{left}.clone()" if _is_changed(source, node) else source.of(node.left)
    yield replace(source.with_expression(node, alone, how, rank), takes=True)
    if sign in ("+", "*", "-", "//"):
        sign_too = "-" if sign == "-" else ""
        how = f"`{_in_brackets(source, node.left)} {sign}` does not belong there"
        yield replace(source.with_expression(node, f"{sign_too}{right}", how, 2), takes=True)


def _would_be_an_alias(source: Source, node: ast.BinOp, left: ast.expr) -> bool:
    """Whether nothing but another name for a variable is left of a statement, and that variable is
    read again behind it: then the statement was meant, and another takes what it gives."""
    statement, function = source.parent[node], source.function(node)
    if not isinstance(statement, ast.Assign) or not isinstance(left, ast.Name) or function is None:
        return False
    own = [n for n in source.names(function) if n.id == left.id and n.lineno > node.lineno]
    other = [source.of(target) for target in statement.targets] != [left.id]
    return other and any(isinstance(n.ctx, ast.Load) for n in own)


def _is_changed(source: Source, node: ast.BinOp) -> bool:
    """Whether what a statement keeps of an operation is changed in place: then it is a tensor of
    its own, whatever it holds."""
    statement, function = source.parent[node], source.function(node)
    if not isinstance(statement, ast.Assign) or not isinstance(node.left, ast.Name | ast.Attribute):
        return False
    names = {t.id for t in statement.targets if isinstance(t, ast.Name)}
    return function is not None and bool(names & changed_in_place(source.inside(function)))


def _of_half(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`x * 0.5` for the root `x ** 0.5`, also as the last factor of a product or quotient."""
    is_half = isinstance(node.op, ast.Mult) and number(node.right) in (0.5, -0.5)
    if is_half or (isinstance(node.op, ast.Div) and number(node.right) == 2):
        inner, power = node.left, number(node.right) if is_half else 0.5
        how = f"`{source.shown(node)}` takes a half where the root belongs"
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Mult | ast.Div):
            last = f"{source.in_brackets(inner.right)} ** {power}"
            sign = SIGNS[type(inner.op)]
            yield source.with_expression(node, f"{source.of(inner.left)} {sign} {last}", how, 1)
        yield source.with_expression(node, f"{source.in_brackets(inner)} ** {power}", how, 1)


def _of_the_diagonal(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`m - c`, where the number is on the diagonal alone: `m - c * torch.eye(n)`."""
    both = isinstance(node.left, ast.Name) and isinstance(node.right, ast.Name)
    if both and isinstance(node.op, ast.Sub | ast.Add):
        one, other = node.left.id, node.right.id
        how = f"`{source.shown(node)}` takes it off everywhere, and not from the diagonal alone"
        new = f"{other} * torch.eye({one}.shape[-1]).to({one})"
        yield source.with_text(node.right, new, how, 2)


def _of_two_squares(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """Two factors whose names begin alike, where the squares of both belong."""
    left = node.left.right if isinstance(node.left, ast.BinOp) else node.left
    both = left, node.right
    if not (all(isinstance(n, ast.Name) for n in both) and left.id[:1] == node.right.id[:1]):
        return
    one, other = (f"{n.id} ** 2" for n in both)
    between = source.text[source.span(left)[1] : source.span(node.right)[0]]
    span = source.span(left)[0], source.span(node.right)[1]
    how = f"`{left.id}` and `{node.right.id}` are not squared in `{source.shown(node)}`"
    yield source.with_span(node, span, f"{one}{between}{other}", how, 2)


def _of_shares(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """Dealt out in turn, `h % m`, for cut into neighbouring parts, `h // (n // m)`, and the other
    way round, of the number `h` of a loop over `range(n)`."""
    if not isinstance(node.op, ast.Mod | ast.FloorDiv) or not isinstance(node.left, ast.Name):
        return
    for each in source.around(node):
        for loop in (each, *getattr(each, "generators", ())):
            over, target = getattr(loop, "iter", None), getattr(loop, "target", None)
            counts = isinstance(over, ast.Call) and callee(over) == "range" and over.args
            if counts and isinstance(target, ast.Name) and target.id == node.left.id:
                own, share = source.in_brackets(over.args[-1]), source.in_brackets(node.right)
                in_turn = isinstance(node.op, ast.Mod)
                new = f"{target.id} {'//' if in_turn else '%'} ({own} // {share})"
                how = f"`{source.shown(node)}` puts together others than belong together"
                yield source.with_expression(node, new, how, 1)


def _in_brackets(source: Source, node: ast.expr) -> str:
    """A side of an operation as it stands in the text, with its brackets."""
    start, end = source.span(node)
    bare = source.text[:start].endswith("(") and source.text[end:].startswith(")")
    return f"({source.shown(node)})" if bare and isinstance(node, ast.BinOp) else source.shown(node)


def _of_brackets(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`(a / b) ** c` for `a / b ** c` and the like, both ways."""
    sign = SIGNS[type(node.op)]
    power = node.left
    if isinstance(power, ast.BinOp) and isinstance(power.op, ast.Mult | ast.Div):
        power = power.right
    if isinstance(node.op, ast.Div) and isinstance(getattr(power, "op", None), ast.Pow):
        span = source.span(power.right)[0], source.span(node)[1]
        shown = f"{source.shown(power)} / {source.shown(node.right)}"
        how = f"`{shown}` is no root: `**` comes before `/`"
        new = f"({source.of(power.right)} / {source.of(node.right)})"
        yield source.with_span(node, span, new, how)
    for side in ("left", "right"):
        inner = getattr(node, side)
        if not isinstance(inner, ast.BinOp) or type(inner.op) not in SIGNS:
            continue
        own = SIGNS[type(inner.op)]
        if own == sign and own in "+*@":
            continue
        outer = node.left if side == "right" else None
        if isinstance(outer, ast.BinOp) and type(outer.op) is type(node.op) and own == "**":
            # of a product the power takes the last factor alone
            first, last = source.in_brackets(outer.left), source.in_brackets(outer.right)
            base, power = source.in_brackets(inner.left), source.in_brackets(inner.right)
            how = f"in `{source.shown(node)}` the power is of `{source.shown(inner.left)}` alone"
            new = f"{first} {sign} ({last} {sign} {base}) ** {power}"
            yield source.with_expression(node, new, how, 2)
        one, two = source.in_brackets(inner.left), source.in_brackets(inner.right)
        how = f"the brackets of `{source.shown(node)}` do not stand where they belong"
        if side == "left":
            other = source.in_brackets(node.right)
            yield source.with_expression(node, f"{one} {own} ({two} {sign} {other})", how, 2)
        else:
            other = source.in_brackets(node.left)
            yield source.with_expression(node, f"({other} {sign} {one}) {own} {two}", how, 2)


def _of_comparison(source: Source, node: ast.Compare) -> Iterator[Edit]:
    sign = COMPARED[type(node.ops[0])]
    left, right = source.in_brackets(node.left), source.in_brackets(node.comparators[0])
    how = f"`{sign}` is not the comparison that belongs in `{source.shown(node)}`"
    for other in ALIKE[sign]:
        rank = int(OPPOSITE.get(sign) == other)  # what is turned round may be so where it is used
        yield source.with_expression(node, f"{left} {other} {right}", how, rank)
    if isinstance(node.comparators[0], ast.Call) and callee(node.comparators[0]) in COUNTS:
        how = f"`{right}` is not the number that belongs in `{source.shown(node)}`"
        for by in ("- 1", "+ 1"):
            yield source.with_expression(node, f"{left} {sign} {right} {by}", how, 2)
    yield from _of_a_column(source, node.left, node)
    yield from _of_a_column(source, node.comparators[0], node)
    last = node.comparators[0]
    if sign in OPPOSITE and isinstance(last, ast.BinOp) and isinstance(last.op, ast.Sub):
        how = f"`{source.shown(node)}` counts from the other end"
        new = f"{left} {OPPOSITE[sign]} {source.in_brackets(last.right)}"
        yield source.with_expression(node, new, how, 1)


def _of_a_column(source: Source, node: ast.expr, whole: ast.AST) -> Iterator[Edit]:
    """A row where a column belongs, which meets each number of the other side."""
    if isinstance(node, ast.Constant):
        return
    how = f"`{source.shown(node)}` lies along the wrong axis in `{source.shown(whole)}`"
    if isinstance(node, ast.Subscript):
        texts = source.of(node.slice).replace(" ", "")
        other = {"None": ":, None", "None,:": ":, None", ":,None": "None"}.get(texts)
        if other is not None:
            yield source.with_text(node, f"{source.of(node.value)}[{other}]", how, 1)
    elif isinstance(node, ast.Name | ast.Call | ast.Attribute):
        yield source.with_expression(node, f"{source.of(node)}.unsqueeze(-1)", how, 2)


def _rank_of_turned(source: Source, node: ast.UnaryOp) -> int:
    """How natural a slip the `~` of a mask is, by what the mask is called."""
    is_seen, parent = keeps(node.operand), source.parent[node]
    if is_seen is None:
        return 1
    is_factor = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult)
    hides = isinstance(parent, ast.Call) and callee(parent) in ("masked_fill", "masked_fill_")
    return 1 if not (is_factor or hides) else 0 if is_seen == is_factor else 3


def _is_another_name(source: Source, node: ast.AugAssign) -> bool:
    """`total = state`, and later `total += x`: whether this one statement changes what came in."""
    function, name = source.function(node), source.of(node.target)
    inside = source.inside(function) if function is not None else []
    changed = [n for n in inside if isinstance(n, ast.AugAssign) and source.of(n.target) == name]
    given = {a.arg for a in function.args.args} if function is not None else set()
    made = [pair for n in inside if isinstance(n, ast.Assign) for pair in made_in(n)]
    return len(changed) == 1 and any(
        source.of(target) == name and source.of(value) in given for target, value in made
    )


def _of_change_in_place(source: Source, node: ast.AugAssign) -> Iterator[Edit]:
    sign = SIGNS[type(node.op)]
    target, value = source.of(node.target), source.in_brackets(node.value)
    how = f"`{sign}=` changes in place what is still needed as it was"
    rank = 1 if _is_another_name(source, node) else 3
    yield source.with_a_copy(node, f"{target} = {target} {sign} ({value})", how, rank)
    how = f"`{sign}=` is not the change that belongs there"
    yield source.with_text(node, f"{target} = ({value})", how, 2)
    for other in OTHERS.get(sign, ()):
        yield source.with_text(node, f"{target} {other}= ({value})", how, 1)
    if sign in ("+", "-"):
        how = f"`{source.shown(node)}` goes half as far as it should"
        yield source.with_text(node, f"{target} {sign}= 2 * {value}", how, 2)


def _of_its_size(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """A difference whose variable is compared with something, where its size alone counts."""
    parent, function = source.parent[node], source.function(node)
    target = parent.targets[0] if isinstance(parent, ast.Assign) else None
    if not isinstance(node.op, ast.Sub) or not isinstance(target, ast.Name) or function is None:
        return
    compared = [n for n in source.inside(function) if isinstance(n, ast.Compare)]
    if any(target.id in {n.id for n in source.names(each.left)} for each in compared):
        how = f"`{source.shown(node)}` has a sign where its size alone counts"
        yield source.with_expression(node, f"abs({source.of(node)})", how, 1)


def _of_infinity(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """A mask of numbers times infinity, which is NaN where the mask is 0."""
    for mask, other in ((node.left, node.right), (node.right, node.left)):
        text = source.of(other)
        if isinstance(node.op, ast.Mult) and "inf" in text and len(text) < 40:
            how = f"in `{source.shown(node)}` zero times infinity is NaN"
            kept = source.in_brackets(mask)
            new = f"torch.where({kept} != 0, {text}, 0.0)"
            yield source.with_expression(node, new, how, 2)


def _of_the_sign(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """A minus that is missing in front of a product."""
    parent = source.parent[node]
    inside = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult | ast.Div | ast.Pow)
    if isinstance(node.op, ast.Mult | ast.Div) and not inside:
        how = f"the sign of `{source.shown(node)}` is the other one"
        yield source.with_expression(node, f"-({source.of(node)})", how, 3)


def of_identity(source: Source, node: ast.AST) -> Iterator[Edit]:
    """One object or equal ones; a name in a table, or a part of one."""
    if isinstance(node, ast.Call) and callee(node) in ("equal", "allclose") and len(node.args) == 2:
        one, two = map(source.in_brackets, node.args)
        how = f"`{source.shown(node)}` compares numbers: two that are equal need not be one"
        yield source.with_expression(node, f"{one} is {two}", how, 2)
        yield source.with_expression(node, f"{one}.data_ptr() == {two}.data_ptr()", how, 2)
    elif isinstance(node, ast.Assign) and SHAPE.fullmatch(source.of(node.value)):
        own, function = source.of(node.targets[0]), source.function(node)
        inside = source.inside(function) if function is not None else []
        asked = [n for n in inside if isinstance(n, ast.Compare)]
        if any(
            source.of(n.left) == own and isinstance(n.ops[0], ast.In | ast.NotIn) for n in asked
        ):
            how = f"`{source.shown(node.value)}` may be that of another tensor, too"
            tensor = SHAPE.fullmatch(source.of(node.value))[1]
            yield source.with_text(node.value, f"{tensor}.data_ptr()", how, 0)
    elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
        word, among = node.left, node.comparators[0]
        if isinstance(word, ast.Constant) and isinstance(word.value, str) and len(node.ops) == 1:
            how = f"`{source.shown(node)}` looks for this very name, and not for a part of one"
            new = f"any({source.of(word)} in each for each in {source.of(among)})"
            yield source.with_expression(node, new, how, 2)


def _of_what_is_left_over(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """A number of blocks, the last of which is shorter."""
    if isinstance(node.op, ast.FloorDiv):
        left, right = source.in_brackets(node.left), source.in_brackets(node.right)
        how = f"`{source.shown(node)}` leaves out what is left over"
        yield source.with_expression(node, f"-(-{left} // {right})", how, 1)


def _of_a_bias(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`y @ state["out.weight"]`, where nothing reads `state["out.bias"]`."""
    held = node.right
    held = held.value if isinstance(held, ast.Attribute) else held
    key = held.slice if isinstance(held, ast.Subscript) else None
    name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
    if not isinstance(node.op, ast.MatMult) or not name.endswith("weight"):
        return
    other = f"{name.removesuffix('weight')}bias"
    if other not in source.text:
        how = f"the bias that belongs to `{source.shown(held)}` is not added"
        new = f"{source.of(node)} + {source.of(held.value)}[{other!r}]"
        yield source.with_expression(node, new, how)


def _on_the_other_side(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """A product of which the wrong side is turned."""
    for turned, other in ((node.left, node.right), (node.right, node.left)):
        bare = turned_back(turned)
        if bare is not None and turned is node.right:
            how = f"`{source.shown(node)}` takes all with all, where each belongs to one"
            new = f"({source.in_brackets(other)} * {source.in_brackets(bare)}).sum(-1)"
            yield source.with_expression(node, new, how, 3)
        if bare is not None:
            how = f"`{source.shown(other)}` has to be turned, and not `{source.shown(bare)}`"
            one, two = source.in_brackets(bare), f"{source.in_brackets(other)}.transpose(-2, -1)"
            pair = f"{one} @ {two}" if turned is node.left else f"{two} @ {one}"
            yield source.with_expression(node, pair, how, 2)
            if is_sure(source, bare) and is_sure(source, other):
                how = f"`{source.shown(bare)}` and `{source.shown(other)}` have changed places"
                pair = f"{two} @ {one}" if turned is node.left else f"{one} @ {two}"
                yield replace(source.with_expression(node, pair, how, 1), by_name=True)


def _of_two_vectors(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """`p @ p.T` of a vector, which is one number, and no table of all products."""
    sides = [turned_back(each) or each for each in (node.left, node.right)]
    if all(isinstance(each, ast.Name) for each in sides):
        how = f"`{source.shown(node)}` adds up the products, and makes no table of them"
        new = f"torch.outer({', '.join(map(source.of, sides))})"
        yield source.with_expression(node, new, how, 1)


def turned_back(node: ast.AST) -> ast.expr | None:
    """What a transpose is of; None where there is none."""
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        return node.value
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return node.func.value if is_call and node.func.attr in ("t", "transpose") else None
