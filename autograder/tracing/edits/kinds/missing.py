"""Slips by a step that is missing: a root, a factor, a copy, a mask that only multiplies.

What is missing could stand at several places of a program. So these changes are the last that are
tried, and of lines that give what is right none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.left_out import TRIANGLES
from autograder.tracing.edits.kinds.names import keeps
from autograder.tracing.edits.kinds.source import (
    Edit,
    Source,
    changed_in_place,
    names_in,
    number,
    places_in,
)
from autograder.tracing.text import callee, root_of

OF_A_NUMBER = (
    ("({}) + 1", "`{}` is one less than what belongs there"),
    ("({}) - 1", "`{}` is one more than what belongs there"),
)
SQUARED = "({}) ** 2"
PLACE_BY_PLACE = tuple(
    (f"({{}}).cumsum({axis})", "`{}` is not added up from place to place") for axis in (1, -2, -1)
)
OF_SHARES = ("are not normalised", "do not sum to 1")  # how what is said of shares ends
RAW = re.compile(r"logit|score", re.IGNORECASE)
# What stands around an expression `{}` then, and what is said of the expression without it.
AROUND = (
    ("({}).transpose(-2, -1)", "the last two axes of `{}` stand in each other's place"),
    ("({}).transpose(0, 1)", "the first two axes of `{}` stand in each other's place"),
    ("({}).transpose(1, 2)", "axes 1 and 2 of `{}` stand in each other's place"),
    ("2 * ({})", "`{}` is half of what belongs there"),
    ("({}) / 2", "`{}` is twice what belongs there"),
    ("1 / ({})", "`{}` stands where one over it belongs"),
    ("1 - ({})", "`{}` stands where what is left of 1 belongs"),
    ("-({})", "`{}` has the wrong sign"),
    ("({}) ** 0.5", "the root of `{}` is not taken"),
    (SQUARED, "`{}` is not squared"),
    *OF_A_NUMBER,
    ("abs({})", "`{}` has a sign where its size alone counts"),
    ("~({})", "`{}` is True where it should be False, and False where it should be True"),
    ("torch.softmax({}, -1)", "the rows of `{}` are not normalised"),
    ("({0}) / ({0}).sum(-1, keepdim=True)", "the rows of `{}` do not sum to 1"),
    ("({}).sum(-1, keepdim=True)", "the rows of `{}` are not added up"),
    ("({}).sum(0)", "the numbers of `{}` are not added up along the first axis"),
)
SOFTMAX_OF = ("torch", "F", "nn.functional", "torch.nn.functional", "torch.special")
BENDS = ("torch.relu({})", "torch.nn.functional.gelu({})", "torch.tanh({})")
PRODUCTS = ("matmul", "bmm", "mm", "einsum")
LOGS = ("log", "log_softmax", "logsigmoid")
VIEWS = (
    "view",
    "reshape",
    "flatten",
    "ravel",
    "unflatten",
    "narrow",
    "diagonal",
    "transpose",
    "permute",
    "squeeze",
    "unsqueeze",
    "detach",
    "view_as",
)
NO_COPIES = ("contiguous", "detach", "to", "float", "double", "as_tensor", "asarray")
ANYWHERE = 4  # their rank: each could stand around any value
LEAST = ('float("-inf")', "-1e30")
WEIGHS = {"softmax", "log_softmax", "exp", "softmax_"}  # what gives a score of 0 its weight


def of_what_is_missing(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes that put in a step."""
    if isinstance(node, ast.expr) and _is_whole(source, node):
        function = source.function(node)
        called = getattr(function, "name", "") in source.called  # with what may be wrong
        # What is another name alone lacks a step most likely.
        made = source.parent[node]
        alias = isinstance(node, ast.Name) and isinstance(made, ast.Assign)
        alias = alias and all(isinstance(t, ast.Name) for t in made.targets)
        alias = alias and not set(map(source.of, made.targets)) & _changed(source, made)
        grows = isinstance(made, ast.Assign) and _reads_what_it_makes(source, made)
        for around, how in (*AROUND, *(PLACE_BY_PLACE if alias else ())):
            if around == SQUARED and grows:
                continue  # a number that is squared in each round has millions of digits soon
            if said_to_be_raw(source, node, how):
                continue
            new, said = around.format(source.of(node)), how.format(source.shown(node))
            rank = 0 if alias else ANYWHERE
            edit = source.with_expression(node, new, said, rank)
            yield replace(edit, missing=True, unsure=called)
    if isinstance(node, ast.Call | ast.BinOp):
        yield from _of_one_exponential(source, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Add):
        yield from _of_masks(source, node)
    elif isinstance(node, ast.Assign):
        yield from _of_copies(source, node)
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Attribute):
        yield from _of_what_it_keeps(source, node.value)
    elif isinstance(node, ast.Call) and callee(node) in ("numpy", "asarray"):
        how = f"`{source.shown(node)}` shares its numbers with what it is made of"
        yield source.with_a_copy(node, f"{source.of(node)}.copy()", how, 1)
    elif isinstance(node, ast.Compare):
        yield from _of_nothing(source, node)
        yield from _of_distances(source, node)
    elif isinstance(node, ast.Call):
        yield from _of_tensors_in_a_set(source, node)
        yield from _of_triangles_of_scores(source, node)
        yield from _of_factors(source, node)
        yield from _of_bends(source, node)
        yield from _of_exponentials(source, node)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from _of_means(source, node)
    yield from _of_scales(source, node)
    if isinstance(node, ast.Call):
        yield from _of_losses(source, node)


def said_to_be_raw(source: Source, node: ast.expr, how: str) -> bool:
    """Whether a step makes shares of what its statement calls scores or logits: `scores = q @ k`,
    which have the softmax still to come."""
    return shares_what_is_raw(how, source.given_to(node))


def shares_what_is_raw(how: str, name: str) -> bool:
    """Whether a change makes shares, by what is said of it, and a name says scores or logits."""
    return how.endswith(OF_SHARES) and RAW.search(name) is not None


def _is_whole(source: Source, node: ast.expr) -> bool:
    """Whether an expression is all that a statement computes, or one of several such values."""
    kinds = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp)
    if not isinstance(node, kinds) or isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
        return False
    if number(node) is not None:
        return False
    parent = source.parent[node]
    whole = node
    if isinstance(parent, ast.Tuple | ast.Dict):
        node, parent = parent, source.parent[parent]
    if isinstance(parent, ast.Return) and isinstance(whole, ast.Name) and _is_made(source, whole):
        return False  # it is missing where that is made
    if isinstance(parent, ast.Call):
        return callee(parent) == "append" and node in parent.args
    return isinstance(parent, ast.Assign | ast.Return | ast.AugAssign | ast.ListComp | ast.Lambda)


def _reads_what_it_makes(source: Source, made: ast.Assign) -> bool:
    """Whether a statement counts on from what its target was: `n[a] = n.get(a, 0) + 1`."""
    return bool({root_of(t) for t in made.targets} & set(names_in(source.of(made.value))))


def _is_made(source: Source, node: ast.Name) -> bool:
    """Whether one statement alone gives a variable its value."""
    function = source.function(node)
    inside = source.inside(function) if function is not None else []
    stored = [n for n in source.names(function) if n.id == node.id and isinstance(n.ctx, ast.Store)]
    made = [n for n in inside if isinstance(n, ast.Assign) and source.of(n.targets[0]) == node.id]
    return len(stored) == len(made) == 1


def _of_masks(source: Source, node: ast.BinOp) -> Iterator[Edit]:
    """Scores that are multiplied with a mask: what is hidden is 0 then, and still has a weight. Or
    a mask of ones that is added."""
    for scores, mask in ((node.left, node.right), (node.right, node.left)):
        if isinstance(node.op, ast.Add):
            if isinstance(mask, ast.Name) and (keeps(mask) is not None or "mask" in mask.id):
                how = f"`{source.shown(node)}` adds 1 to what is picked, which hides nothing"
                kept = mask.id
                for places in (f"{kept} != 0", f"{kept} == 0"):
                    new = f"{source.in_brackets(scores)}.masked_fill({places}, {LEAST[0]})"
                    yield source.with_expression(node, new, how, 2)
        elif not source.called & WEIGHS:
            continue
        elif isinstance(scores, ast.Name | ast.BinOp | ast.Call) and number(mask) is None:
            how = f"`{source.shown(node)}` makes 0 of what is hidden, and a score of 0 has a weight"
            kept = source.in_brackets(mask)
            for least in LEAST:
                new = f"{source.in_brackets(scores)}.masked_fill({kept} == 0, {least})"
                yield source.with_expression(node, new, how, 2)


def _of_scales(source: Source, node: ast.AST) -> Iterator[Edit]:
    """A product that is not divided by the root of the size that it sums over: where it is made, or
    where a softmax takes it."""
    scores, first = node, _first_operand(node)
    if isinstance(node, ast.Call) and callee(node) == "softmax":
        of = getattr(node.func, "value", None)
        library = isinstance(of, ast.Name | ast.Attribute) and source.of(of) in SOFTMAX_OF
        scores = (node.args[0] if node.args else None) if library else of
        function = source.function(node)
        if not isinstance(scores, ast.Name) or function is None:
            return
        made = [n for n in source.inside(function) if isinstance(n, ast.Assign)]
        made = [n.value for n in made if scores.id in map(source.of, n.targets)]
        operands = (_first_operand(n) for value in made for n in source.inside(value))
        first = next((each for each in operands if each is not None), None)
    if isinstance(first, ast.Name | ast.Attribute | ast.Subscript | ast.Call):
        how = f"`{source.shown(scores)}` is not scaled"
        new = f"({source.of(scores)}) / {source.of(first)}.shape[-1] ** 0.5"
        yield replace(source.with_expression(scores, new, how, 2), missing=True)


def _of_losses(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A mean or sum of logarithms without the minus in front of it."""
    logs = any(isinstance(n, ast.Call) and callee(n) in LOGS for n in source.inside(node))
    parent = source.parent[node]
    inside = isinstance(parent, ast.UnaryOp | ast.BinOp | ast.Attribute | ast.Call)
    if logs and callee(node) in ("mean", "sum", "item") and not inside:
        how = f"`{source.shown(node)}` has the wrong sign"
        yield source.with_expression(node, f"-({source.of(node)})", how, 1)


def _first_operand(node: ast.AST) -> ast.expr | None:
    """What a product is of, first; None of what is none."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return node.left
    if isinstance(node, ast.Call) and callee(node) in PRODUCTS:
        kinds = ast.Name | ast.Subscript | ast.Call
        return next((a for a in node.args if isinstance(a, kinds)), None)
    return None


def _of_tensors_in_a_set(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Tensors in a set, each of which is an object of its own whatever its number."""
    given = node.args[0] if len(node.args) == 1 and not node.keywords else None
    if isinstance(given, ast.GeneratorExp | ast.ListComp) and isinstance(given.elt, ast.Name):
        given = given.generators[0].iter
    if given is None or isinstance(given, ast.Starred | ast.GeneratorExp):
        return
    ways = {"set": ".tolist()", "frozenset": ".tolist()", "Counter": ".tolist()", "add": ".item()"}
    if callee(node) in ways:
        how = f"`{source.shown(node)}` compares tensors as objects, and not by their numbers"
        yield source.with_text(given, f"{source.in_brackets(given)}{ways[callee(node)]}", how)


def _of_triangles_of_scores(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A triangle that is cut out of scores, which leaves 0 where nothing should be seen."""
    of = taken_of(source, node)
    if callee(node) in TRIANGLES and isinstance(of, ast.Name) and "mask" not in of.id:
        how = f"`{source.shown(node)}` makes 0 of what is hidden, and a score of 0 has a weight"
        start, end = source.span(of)
        first, last = source.span(node)
        ones = f"{source.text[first:start]}torch.ones_like({of.id}){source.text[end:last]}"
        new = f"{of.id}.masked_fill({ones} == 0, {LEAST[0]})"
        yield source.with_expression(node, new, how, 2)


def _of_what_it_keeps(source: Source, value: ast.Attribute) -> Iterator[Edit]:
    """`return self.state`, which the next call changes in place."""
    if source.of(value) in map(source.of, places_in(source.inside(source.tree))):
        how = f"`{source.of(value)}` is given out itself, and changed in place later"
        yield source.with_text(value, f"{source.of(value)}.clone()", how, 1)


def _of_copies(source: Source, node: ast.Assign) -> Iterator[Edit]:
    """Another name for a tensor, where a copy is needed."""
    value = node.value
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    changed, targets = _changed(source, node), {source.of(target) for target in node.targets}
    if isinstance(value, ast.Call) and callee(value) in VIEWS and targets & changed:
        how = f"`{source.shown(value)}` has no numbers of its own: what changes one changes both"
        yield source.with_a_copy(value, f"{source.of(value)}.clone()", how, 1)
    if isinstance(value, ast.Call) and callee(value) in NO_COPIES:
        how = f"`{source.shown(value)}` is no copy where it is as asked for already"
        yield source.with_a_copy(value, f"{source.of(value)}.clone()", how, 0)
    for each in parts:
        of = each.value if isinstance(each, ast.Subscript) else each
        shares = isinstance(of, ast.Name) and changed & {of.id, *targets}
        if isinstance(each, ast.Name) or shares:
            shown = source.shown(each)
            how = f"`{shown}` gets another name and no copy: what changes one changes both"
            rank = 0 if _keeps_nothing(source, node, each, changed) else 2 - (of is not each)
            yield source.with_a_copy(each, f"{source.of(each)}.clone()", how, rank)
            if of is each and targets & changed:  # its places are filled from what it holds
                for start in ("zeros_like", "ones_like"):
                    new = f"torch.{start}({source.of(each)})"
                    yield source.with_text(each, new, how, 1)


def _keeps_nothing(source: Source, node: ast.Assign, value: ast.expr, changed: set[str]) -> bool:
    """`old = m`, and then `m[:] = ...`: whether one of both names is changed in place and the other
    read behind."""
    both = {source.of(value), *map(source.of, node.targets)}
    names = source.names(source.function(node)) if changed & both else []
    read = {n.id for n in names if isinstance(n.ctx, ast.Load) and n.lineno > node.end_lineno}
    return bool(read & (both - changed))


def _changed(source: Source, node: ast.Assign) -> set[str]:
    """The names of tensors of which places are filled behind a statement, or that are changed in
    place; with those whose numbers such a one shares."""
    function = source.function(node)
    inside = source.inside(function) if function is not None else []
    behind = [n for n in inside if getattr(n, "lineno", 0) > node.lineno]
    found = changed_in_place(behind)
    for made in [n for n in reversed(behind) if isinstance(n, ast.Assign)]:
        if found & {source.of(t) for t in made.targets} and _is_a_view(made.value):
            found.add(root_of(made.value))
    return found


def _is_a_view(value: ast.expr) -> bool:
    """Whether an expression shares its numbers with the variable that it begins with."""
    viewed = isinstance(value, ast.Call) and callee(value) in VIEWS
    return isinstance(value, ast.Name | ast.Subscript) or viewed


def _of_nothing(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """`x is None`, which lets through what is empty."""
    last = node.comparators[-1]
    if len(node.ops) == 1 and isinstance(last, ast.Constant) and last.value is None:
        how = f"`{source.shown(node)}` looks for None alone, and not for what is empty"
        bare = source.in_brackets(node.left)
        new = f"not {bare}" if isinstance(node.ops[0], ast.Is) else f"bool({bare})"
        yield source.with_expression(node, new, how, 1)


def _of_distances(source: Source, node: ast.Compare) -> Iterator[Edit]:
    """A difference that is compared with its sign."""
    for side in (node.left, *node.comparators):
        if isinstance(side, ast.BinOp) and isinstance(side.op, ast.Sub):
            how = f"`{source.shown(side)}` has a sign where its size alone counts"
            yield source.with_expression(side, f"abs({source.of(side)})", how, 2)


def _of_bends(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A layer of another layer with no bend between them."""
    inner = node.args[0] if node.args else None
    layers = [source.of(n.func) for n in (node, inner) if isinstance(n, ast.Call)]
    if len(layers) == 2 and all(each.startswith("self.") for each in layers):
        how = f"nothing bends what `{layers[1]}` gives before `{layers[0]}` takes it"
        text = source.of(inner)
        for bend in BENDS:
            edit = source.with_text(inner, bend.format(text), how, 2)
            yield replace(edit, missing=True)


def _of_means(source: Source, node: ast.Name) -> Iterator[Edit]:
    """Numbers that their mean should be taken from, where a variable holds it."""
    function = source.function(node)
    means = _means(source, function) if function is not None else []
    for each in means:
        target = each.targets[0]
        if not isinstance(target, ast.Name) or each.lineno >= node.lineno:
            continue
        if node.id in (n.id for n in source.names(each.value)):
            how = f"`{target.id}` is not taken from `{node.id}`"
            edit = source.with_expression(node, f"{node.id} - {target.id}", how, 2)
            yield replace(edit, missing=True)


def _means(source: Source, function: ast.FunctionDef) -> list[ast.Assign]:
    """The statements of a function that hold a mean."""
    made = (n for n in source.inside(function) if isinstance(n, ast.Assign))
    return source.once(
        ("means", function),
        lambda: [n for n in made if isinstance(n.value, ast.Call) and callee(n.value) == "mean"],
    )


def _of_exponentials(source: Source, node: ast.Call) -> Iterator[Edit]:
    """An exponential of numbers that may be large; a running sum that goes one place too far."""
    name, of = callee(node), taken_of(source, node)
    if of is None:
        return
    text = source.in_brackets(of)
    if name == "exp":
        how = f"the exponent in `{source.shown(node)}` has the wrong sign"
        yield source.with_expression(of, f"-({source.of(of)})", how, 1)
        how = f"`{source.shown(node)}` is infinite where a number is large"
        new = f"({text} - {text}.max(-1, keepdim=True).values).exp()"
        rank = 3 if isinstance(of, ast.BinOp) and isinstance(of.op, ast.Sub) else 2  # it is shifted
        yield replace(source.with_expression(node, new, how, rank), missing=True)
    elif name == "cumsum":
        how = f"`{source.shown(node)}` counts each place itself, too"
        yield source.with_expression(node, f"{source.of(node)} - {text}", how, 3)


def _of_one_exponential(source: Source, node: ast.Call | ast.BinOp) -> Iterator[Edit]:
    """`math.exp(s)` of each of some scores, which is infinite where a score is large."""
    if isinstance(node, ast.BinOp):
        of = node.right if isinstance(node.op, ast.Pow) else None
        of = of if source.of(node.left) in ("math.e", "e", "torch.e") else None
    else:
        of = node.args[0] if callee(node) == "exp" and len(node.args) == 1 else None
    if not isinstance(of, ast.Name):
        return
    rounds = (n for n in source.inside(source.tree) if isinstance(n, ast.comprehension | ast.For))
    over = {source.of(n.iter) for n in rounds if source.of(n.target) == of.id}
    for scores in sorted(over):
        how = f"`{source.shown(node)}` is infinite where a number is large"
        edit = source.with_expression(of, f"{of.id} - max({scores})", how, 2)
        yield replace(edit, missing=True)


def taken_of(source: Source, node: ast.Call) -> ast.expr | None:
    """The tensor that a function of `torch` is given first, or that a method is of."""
    if isinstance(node.func, ast.Attribute) and source.of(node.func.value) == "torch":
        return node.args[0] if node.args else None
    return getattr(node.func, "value", None)


def _of_factors(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A factor of one argument that belongs to another."""
    for one in node.args:
        if not isinstance(one, ast.BinOp) or not isinstance(one.op, ast.Mult | ast.Div):
            continue
        sign = "*" if isinstance(one.op, ast.Mult) else "/"
        factor = source.in_brackets(one.right)
        for other in node.args:
            if other is one:
                continue
            texts = {
                one: source.of(one.left),
                other: f"{source.in_brackets(other)} {sign} {factor}",
            }
            new = ", ".join(texts.get(each, source.of(each)) for each in node.args)
            span = source.span(node.args[0])[0], source.span(node.args[-1])[1]
            how = f"`{sign} {source.shown(one.right)}` belongs to another argument"
            yield source.with_span(node, span, new, how, 3)
