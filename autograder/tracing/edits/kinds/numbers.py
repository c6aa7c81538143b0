"""Slips in numbers, slices and letters: the wrong axis, one too many, another letter."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.names import place_by_name
from autograder.tracing.edits.kinds.source import Edit, Source, means, number
from autograder.tracing.edits.kinds.statements import right_before
from autograder.tracing.text import callee

AXES = ("dim", "axis", "dims", "dim0", "dim1", "start_dim", "end_dim")
WITH_AXES = ("sum", "mean", "softmax", "log_softmax", "logsumexp", "max", "min", "amax", "amin")
WITH_AXES += ("argmax", "argmin", "cumsum", "cumprod", "prod", "cat", "concat", "stack", "diff")
WITH_AXES += ("unsqueeze", "squeeze", "transpose", "swapaxes", "permute", "movedim", "flatten")
WITH_AXES += ("unflatten", "split", "chunk", "unbind", "select", "index_select", "gather", "std")
WITH_AXES += ("var", "norm", "flip", "sort", "topk", "argsort", "narrow", "size", "any")
WITH_AXES += ("std_mean", "var_mean", "softmin", "all", "count_nonzero", "tensor_split")
TURNS = ("transpose", "swapaxes", "movedim")  # with one axis twice they leave all as it is
TURNED, TURNED_AT_THE_END = (0, 1, 2, 3), (-1, -2, -3)
FROM_THE_FRONT = (0, 1, 2, -1)  # other axes, each once in up to four
MOST_OF_HALF = 65504  # the largest number of a float16
GIVE_SEVERAL = ("divmod", "size", "max", "min", "topk", "sort", "chunk", "split", "unbind")
PAIRS = ("max", "min", "topk", "sort")  # what gives numbers, and then their places
OF_FEATURES = re.compile(r"[dhcefw]|n_?emb|in_|out_|size|width", re.I)  # what it may be called
PLACES = ("id", "ind", "arg", "pos", "place", "where", "tok", "which")
FROM_THE_END = (-1, -2, 1, 0)
MOST_OF_FEW = 3  # so many may be meant as they are; of more there may be too few
TABLES = ("ones", "zeros", "full")


def of_numbers(source: Source, node: ast.AST) -> Iterator[Edit]:
    """The changes of one number, one slice or one text of letters."""
    if isinstance(node, ast.Constant | ast.UnaryOp) and number(node) is not None:
        if isinstance(node, ast.UnaryOp) or number(source.parent.get(node)) is None:
            yield from _of_number(source, node)
            yield from _of_a_first_maximum(source, node)
            yield from _worked_out_before(source, node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        how = f"`{source.shown(_named(source, node))}` is not what belongs there"
        yield source.with_text(node, str(not node.value), how, 2)
    elif isinstance(node, ast.Tuple) and len(node.elts) > 1 and isinstance(node.ctx, ast.Load):
        yield from _of_tuple(source, node)
        yield from _counted_from_one(source, node)
        yield from _of_signs(source, node)
    elif isinstance(node, ast.List) and len(node.elts) == 2:
        yield from _of_signs(source, node)
    elif isinstance(node, ast.Tuple) and isinstance(source.parent[node], ast.Assign):
        yield from _of_unpacked(source, node)
        yield from _of_both_ends(source, node)
    elif isinstance(node, ast.Call) and callee(node) == "einsum":
        yield from _of_letters(source, node)
    elif isinstance(node, ast.Attribute) and node.attr == "inf":
        if not isinstance(source.parent[node], ast.UnaryOp):
            how = f"`{source.of(node)}` has the wrong sign"
            yield source.with_expression(node, f"-{source.of(node)}", how, 1)
    elif isinstance(node, ast.Call) and callee(node) == "range":
        yield from _of_its_end(source, node)
        yield from _of_the_other_pairs(source, node)
        yield from _of_its_start(source, node)
        if len(node.args) == 2 and number(node.args[0]) is None:
            how = f"`{source.shown(node)}` leaves out the rounds in front"
            yield source.with_text(node.args[0], "0", how, 1)
    elif isinstance(node, ast.Call) and callee(node) == "arange" and len(node.args) > 1:
        yield from _of_its_start(source, node)
        yield from _of_the_edge(source, node)
    elif isinstance(node, ast.Call) and callee(node) == "arange" and len(node.args) == 1:
        yield from _of_a_count(source, node.args[0])


def _of_a_first_maximum(source: Source, node: ast.expr) -> Iterator[Edit]:
    """`best = 0`, where the largest so far is kept: what is below 0 is never the largest."""
    made, function = source.parent[node], source.function(node)
    if number(node) != 0 or not isinstance(made, ast.Assign) or function is None:
        return
    names = {t.id for t in made.targets if isinstance(t, ast.Name)}
    compares = [n for n in source.inside(function) if isinstance(n, ast.Compare | ast.Call)]
    compares = [n for n in compares if isinstance(n, ast.Compare) or "max" in callee(n)]
    if names & {n.id for each in compares for n in source.names(each)}:
        how = f"`{source.shown(made)}` is not what it begins with"
        yield source.with_text(node, 'float("-inf")', how, 1)


def _worked_out_before(source: Source, node: ast.expr) -> Iterator[Edit]:
    """`ratio = 0.5`, right behind what is worked out for it."""
    made, alone = source.parent[node], isinstance(number(node), float)
    alone = alone and isinstance(made, ast.Assign)
    before = right_before(source, made) if alone else None
    target = before.targets[0] if isinstance(before, ast.Assign) else None
    if isinstance(target, ast.Name) and isinstance(before.value, ast.BinOp):
        how = f"`{source.shown(made)}` is one number, whatever `{target.id}` is"
        yield source.with_text(node, target.id, how, 2)


def _named(source: Source, node: ast.AST) -> ast.AST:
    """A value with the name of its argument, where it has one."""
    parent = source.parent[node]
    return parent if isinstance(parent, ast.keyword) else node


def is_axis(source: Source, node: ast.AST) -> bool:
    """Whether a number says which axis is meant."""
    parent = source.parent[node]
    if isinstance(parent, ast.Tuple | ast.List):
        parent, node = source.parent[parent], parent
    if isinstance(parent, ast.keyword):
        return parent.arg in AXES
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.value, ast.Attribute) and parent.value.attr == "shape"
    if not isinstance(parent, ast.Call) or isinstance(parent.func, ast.Name):
        return False  # `max(0, n)`, `sum(parts, 0)`
    return node in parent.args and callee(parent) in WITH_AXES


def _of_number(source: Source, node: ast.expr) -> Iterator[Edit]:
    value = number(node)
    parent = source.parent[node]
    if is_axis(source, node):
        call = next(
            (n for n in source.around(node) if isinstance(n, ast.Call | ast.Subscript)), node
        )
        how = f"another axis than this belongs in `{source.shown(call)}`"
        axes = FROM_THE_FRONT if value >= 0 else FROM_THE_END
        if isinstance(call, ast.Call) and callee(call) in TURNS:
            beside = [number(each) for each in call.args]
            axes = [a for a in (TURNED if value >= 0 else TURNED_AT_THE_END) if a not in beside]
        if getattr(call, "func", None) is not None and callee(call) == "unsqueeze":
            axes = sorted(axes)  # the last one, which is right for any number of axes, comes first
        usual = value == -1 and isinstance(call, ast.Call) and callee(call) == "softmax"
        for other in axes:
            if other != value:
                yield source.with_text(node, str(other), how, int(usual))
        return
    how = f"`{source.shown(node)}` is not the number that belongs there"
    if isinstance(parent, ast.BinOp | ast.keyword):
        where = source.shown(parent)
        how = f"`{source.shown(node)}` is not the number that belongs in `{where}`"
    if abs(value) > MOST_OF_HALF:
        infinite = 'float("-inf")' if value < 0 else 'float("inf")'
        yield source.with_text(node, infinite, how)
    text = source.of(node).lower()
    if "e-" in text:
        huge = text.replace("e-", "e")
        how = f"`{source.shown(node)}` is next to nothing"
        yield source.with_text(node, huge, how, 1)
        if not huge.startswith("-"):
            yield source.with_expression(node, f"-{huge}", how, 2)
    tens = [value * 10, value / 10] if abs(value) >= 100 or 0 < abs(value) < 0.05 else []
    if isinstance(value, float):
        others = [v for v in (0.5, -0.5, 1.0, 2.0, 0.0, -value) if v != value]
    else:
        others = [v for v in (value + 1, value - 1) if v != value]
        call = parent if isinstance(parent, ast.Call) else source.parent.get(parent)
        triangle = isinstance(call, ast.Call) and callee(call).startswith(("triu", "tril"))
        more = (0, 1, -1, -value) if triangle else (-value,)
        if isinstance(parent, ast.BinOp):
            more = (0, 1, 2, -1, 0.5, -value, 2 * value, value / 2)
        others += [v for v in more if v != value and v not in others]
        if isinstance(parent, ast.Assign) and value > MOST_OF_FEW:
            others.append(2 * value)
        if triangle:
            others += [f"{value} + {more}" for more in apart(source, call)]
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Pow) and node is parent.right:
        others = [v for v in others if v]  # a power of 0 takes the whole step away
    for other in others + tens:
        yield source.with_expression(node, str(other), how, 1)


def apart(source: Source, triangle: ast.Call) -> list[str]:
    """By how much more columns than rows the table has that a triangle is taken of."""
    made = [n for n in source.inside(triangle) if isinstance(n, ast.Call) and callee(n) in TABLES]
    sizes = made[0].args if len(made) == 1 else []
    sizes = getattr(sizes[0], "elts", sizes) if sizes else []
    if len(sizes) < 2 or source.of(sizes[0]) == source.of(sizes[1]):
        return []
    rows, columns = map(source.in_brackets, sizes[:2])
    return [f"{columns} - {rows}"]


def _of_a_count(source: Source, node: ast.expr) -> Iterator[Edit]:
    """As many numbers as between two places, counted from 0 and not from the first of them."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        how = f"`{source.shown(source.parent[node])}` counts from 0, and not from where it should"
        new = f"{source.of(node.right)}, {source.of(node.left)}"
        yield source.with_text(node, new, how, 1)


def _of_its_end(source: Source, node: ast.Call) -> Iterator[Edit]:
    """A range that ends where one of the numbers says from which its end is computed."""
    end = node.args[min(len(node.args), 2) - 1] if node.args else None
    if isinstance(end, ast.BinOp):
        how = f"`{source.shown(node)}` ends at another number than it should"
        for name in dict.fromkeys(n.id for n in source.inside(end) if isinstance(n, ast.Name)):
            yield source.with_text(end, name, how, 1)


def _of_the_edge(source: Source, node: ast.Call) -> Iterator[Edit]:
    """The places of a block, which is shorter than others where it is the last."""
    end, function = node.args[1], source.function(node)
    if function is not None and isinstance(end, ast.BinOp) and isinstance(end.op, ast.Add):
        how = f"`{source.shown(node)}` goes on behind the last place, where a block is shorter"
        for name in sorted(_whole_sizes(source, function) - {n.id for n in source.names(end)}):
            yield source.with_text(end, f"min({source.of(end)}, {name})", how, 1)


def _whole_sizes(source: Source, function: ast.FunctionDef) -> set[str]:
    """The names of sizes that a function takes from what it is given: `n, d = q.shape`."""
    made = [n for n in source.inside(function) if isinstance(n, ast.Assign)]
    taken = (n for n in made if "shape" in source.of(n.value) or ".size(" in source.of(n.value))
    return {each.id for n in taken for target in n.targets for each in source.names(target)}


def _of_the_other_pairs(source: Source, node: ast.Call) -> Iterator[Edit]:
    """`for j in range(i)` in the rounds of `for i in range(n)`, where the numbers behind `i` are
    meant; and the other way round."""
    loops = (n for n in source.around(node) if isinstance(n, ast.For) and n.iter is not node)
    around = {source.of(n.target): n.iter for n in loops if isinstance(n.iter, ast.Call)}
    texts = [source.of(each) for each in node.args]
    how = f"`{source.shown(node)}` runs over the other pairs"
    for name, outer in around.items():
        if callee(outer) != "range" or not outer.args:
            continue
        end = source.of(outer.args[-1])
        ways = {(name,): f"{name} + 1, {end}", (f"{name} + 1",): f"{name}, {end}"}
        ways |= {(f"{name} + 1", end): name, (name, end): f"{name} + 1"}
        if tuple(texts) in ways:
            span = source.span(node.args[0])[0], source.span(node.args[-1])[1]
            yield source.with_span(node, span, ways[tuple(texts)], how)


def _of_its_start(source: Source, node: ast.Call) -> Iterator[Edit]:
    """As many numbers one after the other, counted from one more or less."""
    if len(node.args) == 2 and not any(isinstance(each, ast.Starred) for each in node.args):
        span = source.span(node.args[0])[0], source.span(node.args[1])[1]
        how = f"`{source.shown(node)}` counts from another number than it should"
        for sign in "-+":
            new = ", ".join(f"({source.of(each)}) {sign} 1" for each in node.args)
            yield source.with_span(node, span, new, how, 1)


def _of_tuple(source: Source, node: ast.Tuple) -> Iterator[Edit]:
    """Two neighbours exchanged: of an index, a shape, axes, or what is returned."""
    texts = [source.of(each) for each in node.elts]
    parent = source.parent[node]
    if isinstance(parent, ast.Return):
        how = "what is returned comes in another order than asked for"
    elif isinstance(parent, ast.Subscript):
        how = f"the places in `{source.shown(parent)}` stand in another order than they should"
    else:
        how = f"`{source.shown(node)}` stands in another order than it should"
    for i in range(len(texts) - 1):
        pair = node.elts[i : i + 2]
        named = all(isinstance(each, ast.Name) for each in pair)
        if isinstance(parent, ast.Assign):
            continue  # the names may be wrong, and not their order
        if isinstance(parent, ast.Return) and named and not _is_turned(source, *pair):
            continue
        if texts[i] != texts[i + 1]:
            (begins, first), (second, ends) = map(source.span, pair)
            new = texts[i + 1] + source.text[first:second] + texts[i]
            cut = all(isinstance(each, ast.Subscript) for each in pair)
            counted = named and _counts_backwards(source, *pair)
            rank = 0 if isinstance(parent, ast.Subscript) and (counted or not named) else 1
            rank = 3 if isinstance(parent, ast.List) else rank  # a row of what is told of many
            edit = source.with_span(node, (begins, ends), new, how, rank)
            returned = isinstance(parent, ast.Return) and named
            sure = cut or returned or counted or _is_layout(source, node)
            yield replace(edit, by_name=not sure)
    if isinstance(parent, ast.keyword) and parent.arg in AXES:
        how = f"`{source.shown(parent)}` are more axes than belong there"
        for each in texts:
            yield source.with_text(node, each, how, 1)


def _counted_from_one(source: Source, node: ast.Tuple) -> Iterator[Edit]:
    """`(1, 2, 3)`, where `(0, 1, 2)` are meant."""
    counts = [*map(number, node.elts)]
    if counts == [*range(1, len(counts) + 1)]:
        (start, _), (_, end) = source.span(node.elts[0]), source.span(node.elts[-1])
        how = f"`{source.shown(node)}` counts from 1"
        new = ", ".join(str(count - 1) for count in counts)
        yield source.with_span(node, (start, end), new, how, 1)


def _is_turned(source: Source, one: ast.Name, other: ast.Name) -> bool:
    """Whether two variables are returned in another order than they should by all that shows it:
    their names, or else statements of their own that make the second one first, or a library that
    gives both."""
    function = source.function(one)
    inside = source.inside(function) if function is not None else []
    made = [n for n in inside if isinstance(n, ast.Assign)]
    own = [[n for n in made if each.id in map(source.of, n.targets)] for each in (one, other)]
    given = any(
        _says_its_parts(source, n) and {one.id, other.id} <= set(_parts(source, n)) for n in made
    )
    places = [place_by_name(each.id) for each in (one, other)]
    if -1 not in places and places[0] != places[1]:
        return places[0] > places[1] and (given or all(own))
    return given or (all(own) and own[0][0].lineno > own[1][0].lineno)


def _counts_backwards(source: Source, one: ast.Name, other: ast.Name) -> bool:
    """Whether the first name counts the rounds of a loop that lies in the other one's."""
    loops = [n for n in source.around(one) if isinstance(n, ast.For)]
    names = [source.of(loop.target) for loop in loops]  # the innermost first
    both = one.id in names and other.id in names
    return both and names.index(one.id) < names.index(other.id)


def _parts(source: Source, node: ast.Assign) -> list[str]:
    """The names that an assignment gives to several parts."""
    target = node.targets[0]
    return [source.of(each) for each in target.elts] if isinstance(target, ast.Tuple) else []


def _says_its_parts(source: Source, node: ast.Assign) -> bool:
    """Whether names say of themselves which is the largest and which is its place, as `torch.topk`
    and `torch.max` give them; or queries, keys and values, in the order in which they lie."""
    names = _parts(source, node)
    called = callee(node.value) if isinstance(node.value, ast.Call) else ""
    if called in ("chunk", "split", "unbind") and len(names) == 3:
        words = [name.lower().rpartition("_") for name in names]
        return any("".join(word[end][:1] for word in words) == "qkv" for end in (0, 2))
    is_pair = called in PAIRS and len(names) == 2
    return is_pair and names[1].lower().rpartition("_")[2].startswith(PLACES)


def _of_signs(source: Source, node: ast.Tuple | ast.List) -> Iterator[Edit]:
    """The minus of one of two neighbours, which belongs to the other."""
    if len(node.elts) != 2:
        return
    turned = [isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub) for e in node.elts]
    if turned.count(True) == 1:
        one, two = node.elts
        texts = (
            [source.of(one.operand), f"-({source.of(two)})"]
            if turned[0]
            else [f"-({source.of(one)})", source.of(two.operand)]
        )
        span = source.span(one)[0], source.span(two)[1]
        how = f"the minus in `{source.shown(node)}` belongs to the other part"
        yield source.with_span(node, span, ", ".join(texts), how)


def _of_both_ends(source: Source, node: ast.Tuple) -> Iterator[Edit]:
    """`largest, *_, smallest = values`, of what is in ascending order."""
    if len(node.elts) == 3 and isinstance(node.elts[1], ast.Starred):
        first, _, last = node.elts
        how = f"`{source.shown(node)}` takes the first for the last, and the last for the first"
        yield source.with_parts(node, {first: source.of(last), last: source.of(first)}, how, 1)


def _of_unpacked(source: Source, node: ast.Tuple) -> Iterator[Edit]:
    """Names for what a shape or a function of a library gives, in another order than it does."""
    value = source.parent[node].value
    own = source.defined()
    is_shape = isinstance(value, ast.Attribute) and value.attr == "shape"
    is_call = isinstance(value, ast.Call) and callee(value) in GIVE_SEVERAL
    side_by_side = isinstance(value, ast.Tuple) and _are_numbered(source, value)
    if not (is_shape or is_call or side_by_side) or (is_call and callee(value) in own):
        return
    if _says_its_parts(source, source.parent[node]):
        return
    texts = [source.of(each) for each in node.elts]
    span = source.span(node.elts[0])[0], source.span(node.elts[-1])[1]
    how = f"`{source.shown(value)}` gives its parts in another order than these names say"
    for i, j in itertools.combinations(range(len(texts)), 2):
        if is_shape and j - i > 1:
            continue
        kept = {texts[i], texts[j]} - {"_"}
        of_places = is_call and callee(value) in PAIRS and texts[:1] == ["_"]
        words = texts[1].lower().split("_") if of_places else ()
        of_places = of_places and not any(word.startswith(PLACES) for word in words)
        if len(kept) == 1 and not (of_places or OF_FEATURES.match(*kept)):
            continue  # it was meant: what nobody reads has no name
        other = [*texts]
        other[i], other[j] = texts[j], texts[i]
        rank = -1 if _are_in_order(other) else 1
        edit = source.with_span(node, span, ", ".join(other), how, rank)
        yield replace(edit, by_name=is_shape)  # or each size is taken for the other behind it


def _are_numbered(source: Source, node: ast.Tuple | ast.List) -> bool:
    """Whether the values side by side are parts of one thing, `x[0], x[1], x[2]`."""
    texts = {re.sub(r"\d+", "0", source.of(each)) for each in node.elts}
    return len(texts) == 1 and all(isinstance(each, ast.Subscript) for each in node.elts)


def _are_in_order(names: list[str]) -> bool:
    """Whether names are those of queries, keys and values, in this order."""
    words = ("queries", "keys", "values")
    return len(names) == 3 and all(map(means, names, words))


def _is_layout(source: Source, node: ast.Tuple) -> bool:
    """Whether a tuple is an index or gives sizes or axes, and no tensors."""
    numbers = all(number(each) is not None or isinstance(each, ast.Slice) for each in node.elts)
    return numbers or isinstance(source.parent[node], ast.Subscript)


def _of_letters(source: Source, node: ast.Call) -> Iterator[Edit]:
    """Another letter in a place of an einsum's equation, or two of its result exchanged."""
    first = node.args[0] if node.args else None
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return
    equation = first.value.replace(" ", "")
    into, arrow, out = equation.partition("->")
    letters = sorted(set(filter(str.isalpha, equation)))
    how = f"the letters `{equation}` do not say what belongs there"
    if not arrow or len(equation) > 24:
        return
    order = [letter for letter in dict.fromkeys(into) if letter in out]
    table = int(set(out) == set(filter(str.isalpha, into)))  # where nothing is summed
    rank = int(list(out) == order) + table  # as they come in: less likely by mistake
    for i in range(len(out) - 1):
        for j in range(i + 1, len(out)):
            other = list(out)
            other[i], other[j] = out[j], out[i]
            yield source.with_text(first, repr(f"{into}->{''.join(other)}"), how, rank)
    for one, other in itertools.permutations(sorted(set(out)), 2):
        if any(one in side and other in side for side in into.split(",")):
            continue  # a diagonal
        sides_, new = into.replace(other, one), out.replace(other, "")
        how_ = f"the letters `{equation}` take all with all, where each belongs to one"
        yield source.with_text(first, repr(f"{sides_}->{new}"), how_, 2)
    for place in range(len(out) + 1):
        for letter in letters:
            if letter not in out:
                changed = out[:place] + letter + out[place:]
                yield source.with_text(first, repr(f"{into}->{changed}"), how, 1)
    sides = into.split(",")
    lost = [n for n in dict.fromkeys(into) if n not in out]
    of_all = [n for n in lost if all(n in side for side in sides)]
    if of_all and len(sides) == 2:  # one number for each of them, beside what has axes behind
        (start, middle), end = source.span(first), source.span(node)[1]
        told = repr(f"{into}->{of_all[0]}{out}")
        text = f"{told}{source.text[middle:end]}[..., None]"
        yield source.with_span(node, (start, end), text, how, 2)
    for place in range(len(out)):
        kept = out[:place], out[place + 1 :]
        yield source.with_text(first, repr(f"{into}->{''.join(kept)}"), how, 2)
        for other in (each for each in letters if each not in out):
            yield source.with_text(first, repr(f"{into}->{other.join(kept)}"), how, 1)
    for number_, side in enumerate(sides):
        for i in range(len(side) - 1):
            other = side[:i] + side[i + 1] + side[i] + side[i + 2 :]
            changed = ",".join([*sides[:number_], other, *sides[number_ + 1 :]])
            # Of a table, what makes its side is as likely to be turned.
            yield source.with_text(first, repr(f"{changed}->{out}"), how, 2 * table)
        for other in (side[1:] + side[:1], side[-1:] + side[:-1]) if len(side) > 2 else ():
            changed = ",".join([*sides[:number_], other, *sides[number_ + 1 :]])
            yield source.with_text(first, repr(f"{changed}->{out}"), how, 2)
    for number_, side in enumerate(sides):
        for place, letter in enumerate(side):
            for other in letters:
                if letter.isalpha() and other not in side:  # else it is a diagonal
                    new = side[:place] + other + side[place + 1 :]
                    changed = ",".join([*sides[:number_], new, *sides[number_ + 1 :]])
                    yield source.with_text(first, repr(f"{changed}->{out}"), how, 1)
