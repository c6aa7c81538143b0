"""Slips in names: one variable or layer is taken for another."""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import replace

from autograder.tracing.edits.kinds.source import Edit, Source
from autograder.tracing.text import callee, made_in, root_of

# What the name of a mask says of its True: that the place is seen, or that it is hidden.
SEEN = {"keep", "kept", "keeps", "real", "seen", "sees", "visible", "allowed", "allow", "valid"}
SEEN |= {"past", "attend", "attended", "open", "lower", "tril", "earlier", "known", "present"}
HIDDEN = {"hide", "hides", "hidden", "future", "later", "pad", "padding", "padded", "blocked"}
HIDDEN |= {"block", "banned", "forbidden", "upper", "triu", "dropped", "drop", "invalid", "removed"}
MAKERS = ("arange", "linspace", "zeros", "ones", "full", "eye", "rand", "randn", "randint", "range")
FILLED = ("bernoulli", "bernoulli_", "full", "full_like", "fill_", "Dropout", "dropout")
OF_SIZES = ("Linear", "Embedding", "LayerNorm")  # layers that are made of sizes
ABOUT = ("shape", "size", "dtype", "device", "dim", "ndim", "numel")  # what is no number of it
WORD = re.compile(r"[a-z]+")
# What transformers' GPT-2 has of a kind: layers of a block, tables, sizes.
OF_A_MODEL = (
    ("ln_1", "ln_2", "ln_f"),
    ("c_attn", "c_proj", "c_fc"),
    ("attn", "mlp"),
    ("wte", "wpe"),
    ("n_head", "n_layer", "n_embd"),
    ("hidden_states", "attentions"),
)
WITHIN = {"attn": ("c_attn", "c_proj"), "mlp": ("c_fc", "c_proj", "act")}
SIZES_OF_A_MODEL = ("n_head", "n_layer", "n_embd")


def of_names(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Other names of the same function, or other attributes of `self`, in the place of one.

    Of what is read in one place alone nobody can tell whether it is a slip there, or where it was
    made.
    """
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from _of_variable(source, node)
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and _is_self(node):
        yield from _of_attribute(source, node)
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield from _of_a_changed_one(source, node, node.target)
    if isinstance(node, ast.Attribute) and node.attr in ("values", "indices"):
        yield from _of_what_was_picked(source, node)
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and not _is_self(node):
        yield from _of_a_model(source, node)


def _of_a_model(source: Source, node: ast.Attribute) -> Iterator[Edit]:
    """Another part of a model, or another of its sizes."""
    how = f"`{node.attr}` is taken where another belongs, in `{source.shown(node)}`"
    for other in (o for kind in OF_A_MODEL if node.attr in kind for o in kind if o != node.attr):
        yield source.with_text(node, f"{source.of(node.value)}.{other}", how, 2)
    function, around = source.function(node), source.parent[node]
    if not isinstance(around, ast.Attribute):
        for inner in WITHIN.get(node.attr, ()):
            edit = source.with_text(node, f"{source.of(node)}.{inner}", how, 2)
            yield replace(edit, by_name=True)
        if node.attr in WITHIN.get(getattr(node.value, "attr", ""), ()):
            yield replace(source.with_text(node, source.of(node.value), how, 2), by_name=True)
    if function is not None and isinstance(around, ast.BinOp) and node.attr in SIZES_OF_A_MODEL:
        counted = sizes(source, function)
        for other in [n for n in names_of(source, function, node.lineno) if n in counted]:
            yield replace(source.with_text(node, other, how, 2), by_name=True)


def _is_self(node: ast.Attribute) -> bool:
    """Whether it is an attribute of the object itself."""
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _of_variable(source: Source, node: ast.Name) -> Iterator[Edit]:
    statement = source.statement(node)
    if _is_changed(source, node):
        return
    function = source.function(node)
    if function is None:
        return
    known = names_of(source, function, statement.lineno)
    if node.id not in known and node.id != "_":
        return
    how = f"`{node.id}` is taken where another belongs, in `{shown_around(source, node)}`"
    parent = source.parent[node]
    targets = getattr(parent, "targets", None) or [getattr(parent, "target", None)]
    if [getattr(t, "attr", "") for t in targets] == [node.id]:
        return  # `self.size = size` is as it says
    read = read_in(source, function)
    named = isinstance(parent, ast.Assign | ast.NamedExpr)
    renamed = named and not all(is_sure(source, t) for t in targets)
    if renamed:  # another name for it alone, unless what is made and read nowhere was meant
        if any(_is_alias_of(n, targets) for n in source.inside(function)):
            return  # it may have been meant there
        counted = sizes(source, function)
        numbers = counted if node.id in counted else ()
        known = [other for other in known if other not in read or other in numbers]
    unsure = not is_sure(source, node)
    # `x + layer(y)`: of what stands in one expression the one is easily taken for the other.
    around = [n for n in source.around(node) if isinstance(n, ast.BinOp)]
    beside = _names(around[-1]) if around else set()
    anew = any(_is_made_anew(each) for each in source.made(function, node.id))
    for other in known:
        if anew and other not in read:
            continue  # the line that makes numbers of its own is told then
        if other != node.id and of_one_type(source, node, other):
            alike = _are_of_a_kind(source, function, node.id, other) or other in beside
            rank = 2 if alike else 4
            rank += other in _terms_beside(source, node)  # nobody adds one number twice
            rank += getattr(parent, "attr", "") in ("dtype", "device")  # which are alike mostly
            counted = _count_rounds(source, function, node)
            if other not in read or {node.id, other} <= counted:  # made, it belongs somewhere
                rank = 1
            edit = source.with_text(node, other, how, rank)
            made = unsure and (
                _is_read_beside(source, function, other, node.id)
                or _are_of_one_shape(source, function, node.id, other)
            )
            yield replace(edit, by_name=True, unsure=unsure and not made)
    if renamed:
        return
    handed = isinstance(parent, ast.Call | ast.Tuple | ast.keyword)
    if handed and node.id in sizes(source, function):
        how = f"`{node.id}` is not the number that belongs in `{shown_around(source, node)}`"
        for other in sorted(sizes(source, function) & set(known) - {node.id})[:3]:
            yield source.with_text(node, f"{node.id} - {other}", how, 3)
    if _is_a_share(source, node):
        how = (
            f"`{node.id}` stands where what is left of 1 belongs, in `{shown_around(source, node)}`"
        )
        yield source.with_expression(node, f"1 - {node.id}", how, int(not _is_kept(node)))
    # A number that should be one more or less, or its root.
    if _is_a_number(source, node):
        how = f"`{node.id}` is not the number that belongs in `{shown_around(source, node)}`"
        for new in (f"{node.id} + 1", f"{node.id} - 1", f"{node.id} ** 0.5"):
            yield source.with_expression(node, new, how, 3)


def _terms_beside(source: Source, node: ast.Name) -> set[str]:
    """The variables that stand in the same sum as a term of their own."""
    parent = source.parent[node]
    if not (isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add | ast.Sub)):
        return set()
    around = [parent, *source.around(parent)]
    sums = itertools.takewhile(lambda n: isinstance(n, ast.BinOp), around)
    sides = [
        side for n in sums if isinstance(n.op, ast.Add | ast.Sub) for side in (n.left, n.right)
    ]
    return {n.id for n in sides if isinstance(n, ast.Name)} - {node.id}


def _is_made_anew(value: ast.expr) -> bool:
    """Whether an expression makes numbers out of none: `torch.arange(n)`."""
    return isinstance(value, ast.Call) and callee(value) in MAKERS


def _count_rounds(source: Source, function: ast.FunctionDef, node: ast.Name) -> set[str]:
    """The numbers of loops around a place that stands in an index: `inputs[i, d]`."""
    parent = source.parent[node]
    parent = source.parent[parent] if isinstance(parent, ast.Tuple) else parent
    if not isinstance(parent, ast.Subscript) or node is parent.value:
        return set()
    loops = [n for n in source.around(node) if isinstance(n, ast.For)]
    return {name for loop in loops for name in _names(loop.target)} & sizes(source, function)


def _is_alias_of(node: ast.AST, targets: list) -> bool:
    """Whether a statement gives one of these variables another name."""
    alias = isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
    return alias and node.value.id in [t.id for t in targets if isinstance(t, ast.Name)]


def _of_a_changed_one(source: Source, node: ast.AugAssign, target: ast.Name) -> Iterator[Edit]:
    """Another variable that is changed, in the place of one."""
    function = source.function(node)
    how = f"`{target.id}` is changed where another should be, in `{source.shown(node)}`"
    for other in names_of(source, function, node.lineno) if function is not None else ():
        if other != target.id and _are_of_a_kind(source, function, target.id, other):
            yield replace(source.with_text(target, other, how, 2), by_name=True)


def _of_what_was_picked(source: Source, node: ast.Attribute) -> Iterator[Edit]:
    """All of a tensor, in the place of what was picked of it."""
    function = source.function(node)
    how = f"`{source.shown(node)}` is taken where another belongs"
    for other in names_of(source, function, node.lineno) if function is not None else ():
        if other != source.of(node.value) and other not in sizes(source, function):
            yield replace(source.with_text(node, other, how, 2), takes=True)


def _are_of_a_kind(source: Source, function: ast.FunctionDef, one: str, other: str) -> bool:
    """Whether two names are easily taken for one another: both are given, both count rounds, both
    got their values in one statement, or are written alike."""
    key = "of a kind", function, one, other
    return source.once(key, lambda: _alike(source, function, one, other))


def _alike(source: Source, function: ast.FunctionDef, one: str, other: str) -> bool:
    given = {a.arg for a in function.args.args}
    if {one, other} <= given or (len(one) == 1 and len(other) == 1):
        return True
    if one in made_from(source, function, other):
        return True  # what it was before something was made of it
    if other in given and _is_read_beside(source, function, other, one):
        return True
    if len(one) > 2 and len(other) > 2 and (one[:3] == other[:3] or one[-3:] == other[-3:]):
        return True
    groups = (ast.Tuple, ast.For, ast.comprehension)
    for node in source.inside(function):
        target = getattr(node, "target", node) if isinstance(node, groups) else None
        if target is not None and {one, other} <= {n.id for n in source.names(target)}:
            return True
    return False


def made_from(source: Source, function: ast.FunctionDef, name: str) -> set[str]:
    """The names in the statement that makes a variable first."""
    return source.once(("made from", function), lambda: _made_from(source, function)).get(
        name, set()
    )


def _made_from(source: Source, function: ast.FunctionDef) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for node in source.inside(function):
        for target, value in made_in(node) if isinstance(node, ast.Assign) else ():
            found.setdefault(source.of(target), {n.id for n in source.names(value)})
    return found


def _is_read_beside(source: Source, function: ast.FunctionDef, name: str, made: str) -> bool:
    """Whether a variable is made of another one that is read elsewhere, too: that it is made shows
    that both are wanted."""
    if name not in made_from(source, function, made):
        return False
    read = [n for n in source.names(function) if n.id == name and isinstance(n.ctx, ast.Load)]
    return len({source.statement(n) for n in read}) > 1


def _are_of_one_shape(source: Source, function: ast.FunctionDef, one: str, other: str) -> bool:
    """Whether a shape gives both numbers their names, in the order in which it stands."""
    for node in source.inside(function):
        value = node.value if isinstance(node, ast.Assign) else None
        is_size = isinstance(value, ast.Call) and callee(value) == "size"
        is_size = is_size or (isinstance(value, ast.Attribute) and value.attr == "shape")
        if is_size and {one, other} <= _names(node.targets[0]):
            return True
    return False


def _is_a_share(source: Source, node: ast.Name) -> bool:
    """Whether a name may be a probability: it is given, and divides, is compared, or fills a tensor
    of which dice are thrown."""
    function, parent = source.function(node), source.parent[node]
    given = {a.arg for a in function.args.args} if function is not None else set()
    if _is_kept(node) and isinstance(parent, ast.Call) and callee(parent) in FILLED:
        return True
    if node.id not in given or node.id in sizes(source, function):
        return False
    divides = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div | ast.Mult)
    fills = isinstance(parent, ast.Call) and callee(parent) in FILLED and node in parent.args
    return fills or (divides and node is parent.right) or isinstance(parent, ast.Compare)


def _is_kept(node: ast.Name) -> bool:
    """Whether a name says that it is the share that stays: `keep_prob`."""
    return bool(set(WORD.findall(node.id.lower())) & {"keep", "kept"})


def of_one_type(source: Source, node: ast.Name, other: str) -> bool:
    """Whether two names of a function hold a size or a place both, or both do not, as far as the
    text tells: of what is given and nowhere read it tells nothing."""
    function = source.function(node)
    if function is None:
        return True
    found = sizes(source, function)
    alike = (node.id in found) == (other in found) or other not in read_in(source, function)
    return alike or frozenset((node.id, other)) in _multiplied(source, function)


def _multiplied(source: Source, function: ast.FunctionDef) -> set[frozenset[str]]:
    """The pairs of what a function is given that it multiplies with one another."""

    def find() -> set[frozenset[str]]:
        inside = [n for n in source.inside(function) if isinstance(n, ast.BinOp)]
        pairs = [(n.left, n.right) for n in inside if isinstance(n.op, ast.Mult)]
        given = {a.arg for a in function.args.args}
        names = (frozenset(getattr(side, "id", "") for side in pair) for pair in pairs)
        return {pair for pair in names if pair <= given}

    return source.once(("multiplied", function), find)


def read_in(source: Source, function: ast.FunctionDef) -> set[str]:
    """The names that a function reads, or one around it, but for what a statement makes of itself
    alone: `total = total + 1`."""
    outer = source.function(function)
    if outer is not None:
        return read_in(source, outer)
    return source.once(("read", function), lambda: _read_in(source, function))


def _read_in(source: Source, function: ast.FunctionDef) -> set[str]:
    loads = [n for n in source.names(function) if isinstance(n.ctx, ast.Load)]
    return {n.id for n in loads if not _is_of_itself(source, n)}


def _is_of_itself(source: Source, node: ast.Name) -> bool:
    """Whether a variable is read where it gets its own next value, and no loop goes round there."""
    statement = source.statement(node)
    targets = getattr(statement, "targets", [])
    own = [source.of(target) for target in targets] == [node.id]
    loops = ast.For | ast.While | ast.ListComp | ast.GeneratorExp
    return own and not any(isinstance(n, loops) for n in source.around(node))


def is_changed_there(source: Source, node: ast.Name) -> bool:
    """Whether a name stands where what it is of gets another value: `up[i]` in `up[i] += 1`."""
    statement = source.statement(node)
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    own = [t for t in targets if t is not None and root_of(t) == node.id]
    return any(node in source.names(t) for t in own)


def used_in(source: Source, function: ast.FunctionDef) -> set[str]:
    """The variables of a function that are read where something else is made than they themselves,
    and its sizes, of which more are taken of a shape than are needed."""

    def find() -> set[str]:
        loads = [n for n in source.names(function) if isinstance(n.ctx, ast.Load)]
        used = {n.id for n in loads if not is_changed_there(source, n)}
        return used | sizes(source, function)

    return source.once(("used", function), find)


def is_about_its_size(source: Source, node: ast.Name) -> bool:
    """Whether the size or the type of a tensor is asked for, and none of its numbers."""
    parent = source.parent[node]
    return isinstance(parent, ast.Attribute) and parent.attr in ABOUT


def sizes(source: Source, function: ast.FunctionDef) -> set[str]:
    """The names that hold a whole number, as far as the text tells; in the function around this
    one, too."""
    return source.once(("sizes", function), lambda: _sizes(source, function))


def _sizes(source: Source, function: ast.FunctionDef) -> set[str]:
    outer, given = source.function(function), (a.arg for a in function.args.args)
    found = set(sizes(source, outer)) if outer is not None else set()
    found |= {a for a in given if a.startswith(("num_", "n_")) or a.endswith(("_len", "_size"))}
    for node in source.inside(function):
        if isinstance(node, ast.For | ast.comprehension) and isinstance(node.iter, ast.Call):
            called, target = callee(node.iter), node.target
            if called == "enumerate" and isinstance(target, ast.Tuple):
                of = node.iter.args[0] if node.iter.args else node.iter
                found |= _names(target) if _is_listed(of) else _names(target.elts[0])
                continue
            found |= _names(target) if called == "range" or _is_listed(node.iter) else set()
        elif isinstance(node, ast.Assign) and is_a_size(node.value, found):
            whole = [t for t in node.targets if not isinstance(t, ast.Subscript | ast.Attribute)]
            found |= {name for target in whole for name in _names(target)}
        elif isinstance(node, ast.Call) and callee(node) in OF_SIZES:
            found |= {each.id for each in node.args if isinstance(each, ast.Name)}
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod):
            found |= {each.id for each in (node.left, node.right) if isinstance(each, ast.Name)}
    return found


def _is_listed(node: ast.expr) -> bool:
    """Whether an expression gives the numbers of a tensor in a list."""
    return isinstance(node, ast.Call) and callee(node) == "tolist"


def _names(target: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}


def is_a_size(value: ast.expr, known: set[str]) -> bool:
    """Whether an expression gives whole numbers: a shape, a size, a length, a quotient or a product
    of such. known: names that hold them."""
    if isinstance(value, ast.Tuple):
        return all(is_a_size(each, known) for each in value.elts)
    if isinstance(value, ast.Subscript):
        return isinstance(value.value, ast.Attribute) and value.value.attr == "shape"
    if isinstance(value, ast.Call):
        return callee(value) in ("len", "size", "int", "dim", "numel")
    if isinstance(value, ast.BinOp):
        names = [n.id for n in ast.walk(value) if isinstance(n, ast.Name)]
        made_of_such = bool(names) and known.issuperset(names)
        return isinstance(value.op, ast.FloorDiv | ast.Mod) or (
            isinstance(value.op, ast.Mult | ast.Add | ast.Sub) and made_of_such
        )
    is_shape = isinstance(value, ast.Attribute) and value.attr == "shape"
    return is_shape or (isinstance(value, ast.Constant) and isinstance(value.value, int))


def is_sure(source: Source, node: ast.AST) -> bool:
    """Whether a name is what it should be where it is made: it is read more than once, or given.

    Else the slip may stand there, and not where it is read.
    """
    function = _that_makes(source, node) if isinstance(node, ast.Name) else None
    if function is None:
        return True
    same = [n for n in source.names(function) if n.id == node.id]
    made = sorted(n.lineno for n in same if isinstance(n.ctx, ast.Store))
    before = max((line for line in made if line < node.lineno), default=0)
    until = min((line for line in made if line >= node.lineno), default=math.inf)
    given = node.id in [a.arg for a in function.args.args] and not before
    if given and function.name not in source.called:  # else what it is given may be wrong
        return True
    read = [n.lineno for n in same if isinstance(n.ctx, ast.Load)]
    if sum(before < line <= until for line in read) > 1:
        return True
    if any(_is_one_of_a_round(source, n) for n in same):
        return True
    return any(_is_called_after(source, n) for n in same if n.lineno == before)


def _that_makes(source: Source, node: ast.Name) -> ast.FunctionDef | None:
    """The function that makes a variable or is given it: a helper reads those of the one around."""
    nearest = function = source.function(node)
    while function is not None:
        given = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
        stored = (n.id for n in source.names(function) if isinstance(n.ctx, ast.Store))
        if node.id in given or node.id in stored:
            return function
        function = source.function(function)
    return nearest


def _is_one_of_a_round(source: Source, node: ast.Name) -> bool:
    """Whether a loop gives a variable its value, with others beside it: `for i, x in ...`."""
    around = source.parent[node]
    loop = source.parent[around] if isinstance(around, ast.Tuple) else None
    return isinstance(loop, ast.For) and loop.target is around


def _is_called_after(source: Source, node: ast.Name) -> bool:
    """Whether a name that is made says what it is made of, as `q = self.w_query(x)` does."""
    statement = source.statement(node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    value = getattr(statement, "value", None)
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and node in target.elts:
        place = target.elts.index(node)
        value = value.elts[place] if place < len(value.elts) else None
    elif target is not node:
        return False
    inside = list(ast.walk(value)) if value is not None else []
    names = [n.id for n in inside if isinstance(n, ast.Name)]
    names += [n.attr for n in inside if isinstance(n, ast.Attribute)]
    words = [word for name in names for word in WORD.findall(name.lower())]
    own = WORD.findall(node.id.lower())[:1]
    return any(word.startswith(o) or o.startswith(word) for o in own for word in words)


def shown_around(source: Source, node: ast.AST) -> str:
    """The smallest call or operation that a name stands in."""
    kinds = (ast.Call, ast.BinOp, ast.Subscript, ast.stmt)
    around = next(n for n in source.around(node) if isinstance(n, kinds))
    return source.shown(around.iter if isinstance(around, ast.For) else around)


def _is_changed(source: Source, node: ast.Name) -> bool:
    """Whether a name stands for what is added to, or called: no slip of a name."""
    parent = source.parent[node]
    if isinstance(parent, ast.Call) and parent.func is node:
        return True
    return isinstance(parent, ast.Attribute) and parent.attr in ("append", "extend", "insert")


def _is_a_number(source: Source, node: ast.Name) -> bool:
    """Whether a name stands where a whole number stands: in `range`, a slice, a diagonal or a
    factor; with a minus sign, too."""
    parent = source.parent[node]
    if isinstance(parent, ast.UnaryOp):
        parent = source.parent[parent]
    if isinstance(parent, ast.Slice) or getattr(parent, "arg", "") == "diagonal":
        return True
    if isinstance(parent, ast.BinOp):
        power = isinstance(parent.op, ast.Pow) and node is parent.right
        return power or isinstance(parent.op, ast.Div | ast.Mult)
    return isinstance(parent, ast.Call) and callee(parent) in ("range", "tril", "triu")


def names_of(source: Source, function: ast.FunctionDef, line: int) -> list[str]:
    """The names that a function has before a line, the last first; those of the one around it come
    behind its own."""
    return source.once(("names", function, line), lambda: _names_of(source, function, line))


def _names_of(source: Source, function: ast.FunctionDef, line: int) -> list[str]:
    given = function.args
    found = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    stored = [n for n in source.names(function) if isinstance(n.ctx, ast.Store)]
    before = (n for n in stored if n.lineno <= line)
    found += [n.id for n in sorted(before, key=lambda n: (n.lineno, n.col_offset))]
    outer = source.function(function)
    around = names_of(source, outer, function.lineno) if outer is not None else []
    return [n for n in dict.fromkeys([*reversed(found), *around]) if n not in ("self", "_")]


def _of_attribute(source: Source, node: ast.Attribute) -> Iterator[Edit]:
    """Another layer or number of the object."""
    made = {
        t.attr: n.value
        for n in source.inside(source.tree)
        if isinstance(n, ast.Assign)
        for target in n.targets
        for t in ast.walk(target)  # not `x[self.size]`, which gives that nothing
        if isinstance(t, ast.Attribute) and isinstance(t.ctx, ast.Store) and _is_self(t)
    }
    own, parent = made.get(node.attr), source.parent[node]
    function = source.function(node)
    if isinstance(own, ast.Call) and isinstance(parent, ast.Assign) and function is not None:
        shown = f"`self.{node.attr}` is the layer itself, and is not called"
        for name in names_of(source, function, node.lineno)[:3]:
            yield source.with_text(node, f"self.{node.attr}({name})", shown, 1)
    how = f"`self.{node.attr}` is taken where another belongs"
    nowhere, called = set(unread(source)), _of_its_target(source, node)
    for name, value in made.items():
        if name != node.attr and isinstance(value, ast.Call) == isinstance(own, ast.Call):
            rank = 0 if name in nowhere else 2  # what is made belongs somewhere
            if called >= 0 and place_by_name(node.attr) == called != place_by_name(name):
                rank = 4  # `queries = self.q(x)` is as it says
            yield replace(source.with_text(node, f"self.{name}", how, rank), by_name=True)


def _of_its_target(source: Source, node: ast.Attribute) -> int:
    """Which of queries, keys and values a statement gives by its name; -1 where it gives none."""
    statement = source.statement(node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return place_by_name(target.id) if isinstance(target, ast.Name) else -1


def unread(source: Source) -> list[str]:
    """The attributes of the object that are made and nowhere read."""
    own = [n for n in source.inside(source.tree) if isinstance(n, ast.Attribute) and _is_self(n)]
    read = {n.attr for n in own if isinstance(n.ctx, ast.Load)}
    return [n for n in dict.fromkeys(n.attr for n in own) if n not in read]


def keeps(node: ast.AST) -> bool | None:
    """Whether the names in an expression say that True means what is seen; None where they say
    nothing, or both."""
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
    names += [n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)]
    words = {word for name in names for word in WORD.findall(name.lower())}
    seen, hidden = bool(words & SEEN), bool(words & HIDDEN)
    return seen if seen != hidden else None


def place_by_name(name: str) -> int:
    """0 for queries, 1 for keys, 2 for values; -1 for what is called otherwise."""
    words = name.lower().split("_")
    found = {word[:1] for word in (words[0], words[-1])} & set("qkv")
    return "qkv".index(found.pop()) if len(found) == 1 else -1
