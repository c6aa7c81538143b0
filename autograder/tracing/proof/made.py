"""Where what a wrong line takes was made: the number, the mask or the part that is wrong there.

A line that divides by the root of a number, or hides by a mask, is right if what it takes is right.
Where that is a variable that nothing else reads, and it is wrong, its own line is told. Where it
comes from outside of what was recorded, nobody can tell whose line it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

import torch

from autograder.course.steps.traces import LEAF, Step
from autograder.tracing.alike import HIDDEN, plain
from autograder.tracing.first_wrong import EXTREMES, Judged, is_shifted, taken_for_another
from autograder.tracing.names import Slip
from autograder.tracing.proof.standing import FILLS, changes_nothing, factor_of
from autograder.tracing.say import is_root
from autograder.tracing.text import Text, callee, function_around, own_nodes

EMPTY = ("zeros", "ones", "empty", "full", "__setitem__")  # what numbers are put into
ADDS = ("add", "radd", "iadd", "sub", "rsub")
SUBTRACTS, ATTENTION = ("sub", "rsub"), "scaled_dot_product_attention"
# Operations that change what they are given: `mul_`, `__iadd__`, and not `__rpow__`.
IN_PLACE = re.compile(r"[a-z\d]_$|^__(?:setitem|i(?!nvert|ndex|ter)[a-z]+)__$")
MANY = 6  # steps of one expression: a model's
PICKS = ("__getitem__", "gather", "index_select", "take_along_dim", "embedding")
ALIKE = ("detach", "clone", "float", "double", "contiguous", "to")  # the same numbers
SETS_WEIGHTS = ("copy_", "load_state_dict", "set_")
PRODUCTS = ("matmul", "bmm", "mm", "einsum", "baddbmm")
ROOTS = ("sqrt", "0.5", "rsqrt", ".5")  # what takes a root in a statement


def made_elsewhere(slip: Slip, line: int, text: Text) -> int | None:
    """The line that made what is wrong with a step, where that is not the step's own."""
    changed = _changed_by_another(slip, line, text)
    if changed is not None:
        return changed
    made = (
        _picked(slip, line, text) or _places(slip, line, text) or _number_or_mask(slip, line, text)
    )
    made = made or _without_a_number(slip, line, text) or _handed_over(slip, line, text)
    made = made or _adds_nothing(slip, line, text)
    made = made or _changes_nothing_before(slip, line, text) or _by_one_call(slip, line, text)
    return made or _kept_as_it_is(slip, line, text)


def comes_from_outside(slip: Slip, text: Text) -> bool:
    """Whether what is wrong may stand where nothing is recorded: sizes with which a helper of the
    student's was called, the weights that its object was given, or what a hook was told to keep."""
    judged, step = slip.judged, slip.judged.steps[slip.number]
    before = judged.sources(slip.number)
    given = any(judged.steps[i].op == LEAF and judged.steps[i].kind == "float" for i in before)
    if step.outer and not given:
        return True
    if _is_of_numbers_made_before(step, judged, text) or _by_masks_of_other_lines(slip, text):
        return True
    line = text.line(step)
    if line is not None and step.op == "__setitem__" and is_at_numbers_made_before(line, text):
        return True
    if {text.line(judged.steps[i]) for i in step.inputs} & lines_of_hooks(text):
        return True
    weights = any(
        isinstance(n, ast.Call) and callee(n) in SETS_WEIGHTS
        for f in text.functions
        if f.name == "__init__"
        for n in own_nodes(f)
    )
    return weights and slip.wrong.instead is not None


def _by_masks_of_other_lines(slip: Slip, text: Text) -> bool:
    """Whether a step puts numbers where a mask says so that a line before made of masks which other
    lines made: what is wrong may be any of these."""
    judged, line = slip.judged, text.line(slip.judged.steps[slip.number])
    filled = judged.steps[slip.number].op.strip("_") in FILLS and line is not None
    mask = _mask(judged, slip.number, line, text) if filled else None
    if mask is None or mask in judged.like:
        return False
    made = text.line(judged.steps[mask])
    parts = [i for i in judged.sources(mask) if judged.steps[i].kind == "bool"]
    return bool({text.line(judged.steps[i]) for i in parts} - {made})


def is_at_numbers_made_before(line: int, text: Text) -> bool:
    """Whether a line fills places whose numbers, which are no tensors, come from something given
    that a line before gave another value: what is wrong may be that."""
    node, function = text.around(line), function_around(text, line)
    if function is None or not isinstance(node, ast.Assign):
        return False
    own = list(own_nodes(function))
    made = [(n.targets, n.value) for n in own if isinstance(n, ast.Assign) and n.lineno < line]
    made += [([n.target], n.iter) for n in own if isinstance(n, ast.For) and n.lineno < line]
    of = [(_names(*targets), _names(value)) for targets, value in made]
    given = {a.arg for a in function.args.args}
    changed = given & {name for targets, _ in of for name in targets}
    read = _names(*(t.slice for t in node.targets if isinstance(t, ast.Subscript)))
    return any(read & targets and names & changed for targets, names in of)


def _names(*nodes: ast.AST) -> set[str]:
    return {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}


def _is_of_numbers_made_before(step: Step, judged: Judged, text: Text) -> bool:
    """Whether numbers that are no tensor become one or are put into one, and come from a variable
    or from a function of the student's own."""
    line = text.line(step)
    node = text.around(line) if line is not None else None
    before = (judged.steps[i].op.removeprefix("new_").removesuffix("_like") for i in step.inputs)
    if node is None or any(op not in EMPTY for op in before):
        return False
    if step.op == "__setitem__":
        given = [getattr(node, "value", node)]
    else:
        calls = [n for n in ast.walk(node) if isinstance(n, ast.Call)]
        given = [n.args[0] for n in calls if callee(n) == step.op == "tensor" and n.args]
    own = {f.name for f in text.functions}
    inside = [n for each in given for n in (each, *_sides(each))]
    return any(
        isinstance(n, ast.Name) or (isinstance(n, ast.Call) and callee(n) in own) for n in inside
    )


def _sides(node: ast.AST) -> list[ast.expr]:
    """What an expression of numbers is made of."""
    if not isinstance(node, ast.BinOp):
        return [node]
    return [*_sides(node.left), *_sides(node.right)]


def lines_of_hooks(text: Text) -> set[int]:
    """The lines of the functions that a model is given as hooks."""
    calls = [n for n in text.nodes if isinstance(n, ast.Call) and callee(n).endswith("_hook")]
    given = [each for n in calls for each in n.args]
    hooks = {each.id for each in given if isinstance(each, ast.Name)}
    hooks |= {callee(each) for each in given if isinstance(each, ast.Call)}  # that make one
    own = [n for n in text.nodes if isinstance(n, ast.FunctionDef) and n.name in hooks]
    own += [each for each in given if isinstance(each, ast.Lambda)]
    return {line for f in own for line in range(f.lineno, (f.end_lineno or f.lineno) + 1)}


def _changed_by_another(slip: Slip, line: int, text: Text) -> int | None:
    """The line of the student's that changed in place what a model works on, where that is wrong
    from some step inside of it on."""
    steps = slip.judged.steps
    if slip.cause is not None:  # which is what that call does, whatever its weights are
        return None
    if sum(each.place == steps[slip.number].place for each in steps) < MANY:
        return None
    before = [steps[i] for i in slip.judged.sources(slip.number)]
    changed = {text.line(each) for each in before if IN_PLACE.search(each.op) and each.outer}
    changed -= {None, line}
    return changed.pop() if len(changed) == 1 else None


def _picked(slip: Slip, line: int, text: Text) -> int | None:
    """The line before that picked the one operand that the answer does not take there."""
    judged, should = slip.judged, slip.wrong.should
    own, step = judged.own, judged.steps[slip.number]
    names, function = text.operands(step), function_around(text, line)
    if should is None or len(names) != 2 or own.of_step.get(should.place) is not should:
        return None
    wanted = {
        own.of_step[i].place for i in own.trace.steps[should.place].inputs if i in own.of_step
    }
    taken = [judged.like[i].known.place if i in judged.like else None for i in step.inputs]
    wrong = [n for n, place in zip(names, taken, strict=False) if place not in wanted]
    if len(wrong) != 1 or function is None:
        return None
    made = [n for n in own_nodes(function) if isinstance(n, ast.Assign) and n.lineno < line]
    made = [n for n in made if [text.of(t) for t in n.targets] == wrong]
    silent = made and made[-1].lineno not in {text.line(each) for each in judged.steps}
    return made[-1].lineno if silent and isinstance(made[-1].value, ast.Subscript) else None


def _places(slip: Slip, line: int, text: Text) -> int | None:
    """The line before that made the places at which a step picks, where what it picks of is what
    the answer takes there, too."""
    judged, should, step = slip.judged, slip.wrong.should, _picks(slip.judged, slip.number)
    places = [i for i in step.inputs if judged.steps[i].kind == "int"]
    others = [judged.like.get(i) for i in step.inputs if i not in places]
    if step.op not in PICKS or len(places) != 1 or None in others or should is None:
        return None
    own = judged.own
    wanted = [own.of_step.get(i) for i in own.trace.steps[should.place].inputs]
    made, function = text.line(judged.steps[places[0]]), function_around(text, line)
    if made is None or made >= line or function_around(text, made) is not function:
        return None
    return made if all(any(each.known is own for own in wanted) for each in others) else None


def _picks(judged: Judged, number: int) -> Step:
    """A step, or the one of which it is a copy."""
    while judged.steps[number].op in ALIKE and judged.steps[number].inputs:
        number = judged.steps[number].inputs[0]
    return judged.steps[number]


def _without_a_number(slip: Slip, line: int, text: Text) -> int | None:
    """The line that made what a step takes, to which a number should have been added; not where the
    step's own line adds it to what it takes beside."""
    judged = slip.judged
    maker, taken = taken_for_another(judged, slip.number)
    if maker is None or taken is None or not is_shifted(*taken):
        return None
    beside = [judged.steps[i] for i in judged.steps[slip.number].inputs]
    adds = any(text.line(each) == line and each.op.strip("_") in ADDS for each in beside)
    return text.line(judged.steps[maker]) if not adds else None


def _kept_as_it_is(slip: Slip, line: int, text: Text) -> int | None:
    """The line that does nothing but give another name to a right tensor of which something should
    be made: `x = y`."""
    made, function = text.around(line), function_around(text, line)
    if function is None or slip.number not in slip.judged.like or not isinstance(made, ast.Assign):
        return None
    names = [n.id for n in made.targets if isinstance(n, ast.Name)]
    inside = [n for n in own_nodes(function) if isinstance(n, ast.Name)]
    read = [n for n in inside if isinstance(n.ctx, ast.Load) and [n.id] == names]
    kept = [n for n in own_nodes(function) if isinstance(n, ast.Assign) and n.value in read]
    return kept[0].lineno if len(read) == len(kept) == 1 else None


def _changes_nothing_before(slip: Slip, line: int, text: Text) -> int | None:
    """The line before that makes what a step takes, where that leaves it as it was in all rounds,
    and a known mistake leaves out what should change it: a factor that is 1."""
    judged, steps = slip.judged, slip.judged.steps
    for source in steps[slip.number].inputs if slip.cause is not None else ():
        made = text.line(steps[source])
        rounds = [i for i, s in enumerate(steps) if s.spot == steps[source].spot]
        several = any(steps[i].value.unique().numel() > 1 for i in rounds)
        idle = several and all(changes_nothing(judged, i) for i in rounds)
        if idle and made is not None and made < line:
            return made
    return None


def _by_one_call(slip: Slip, line: int, text: Text) -> int | None:
    """The line that calls a helper of the student's with what is wrong, where another call of it
    comes out right: of a statement that takes what the helper was given."""
    judged, step, helper = slip.judged, slip.judged.steps[slip.number], function_around(text, line)
    others = (i for i, s in enumerate(judged.steps) if s.spot == step.spot)
    others = {i for i in others if judged.steps[i].outer != step.outer} - judged.bad
    right = any(judged.made_of(i) & judged.right for i in others)
    if not (right and step.outer and helper is not None):
        return None
    inside = [n for n in own_nodes(helper) if isinstance(n, ast.Name)]
    made = {n.id for n in inside if isinstance(n.ctx, ast.Store)}
    given = {a.arg for a in helper.args.args} - {"self"} - made
    taken = any(n.id in given for n in ast.walk(text.around(line)) if isinstance(n, ast.Name))
    caller = text.around(step.outer[0])
    return caller.lineno if taken and caller is not None else None


def _handed_over(slip: Slip, line: int, text: Text) -> int | None:
    """The line that made the one number that is taken off, where the answer takes off several; or
    a mask that a library's attention takes, beside what is right."""
    judged, step = slip.judged, slip.judged.steps[slip.number]
    others = [i for i in step.inputs if i not in judged.like]
    if slip.cause is None or len(others) != 1:
        return None
    taken = judged.steps[others[0]]
    one = step.op.strip("_") in SUBTRACTS and taken.value.numel() == 1 and taken.op in EXTREMES
    mask = step.op == ATTENTION and slip.cause.check.startswith("mask")
    made, function = text.line(taken), function_around(text, line)
    if not (one or mask) or made is None or made >= line:
        return None
    return made if _is_read_there(text.target(taken), line, function) else None


def _number_or_mask(slip: Slip, line: int, text: Text) -> int | None:
    """The line that made the number that a step multiplies by, or the mask by which it hides."""
    judged, step = slip.judged, slip.judged.steps[slip.number]
    factor = factor_of(judged, slip.number)
    if factor is not None:
        own = _parts(text, line, _are_factors)
        if not is_root(factor):
            return None
        made = _maker(judged, line, text, own) or _of_the_call(line, text, own)
        lines = {line, made} - {None}
        if not any(root in text.statement(n) for n in lines for root in ROOTS):
            return None
        return _under_the_root(made or line, text) or made
    if step.op.strip("_") not in FILLS:
        return None
    mask = _mask(judged, slip.number, line, text)
    right = _hidden(judged, step.value.shape)
    if mask is None or not right:
        return None
    place = judged.steps[mask].value != 0
    fits = place.dim() <= step.value.dim() and all(
        a in (1, b) for a, b in zip(place.shape[::-1], step.value.shape[::-1], strict=False)
    )
    if not fits:
        return None
    place = place.expand(step.value.shape)
    if any(torch.equal(way, hides) for way in (place, ~place) for hides in right):
        return _maker(judged, line, text, _parts(text, line, _is_filled))
    made, function = text.line(judged.steps[mask]), function_around(text, line)
    own = made is not None and function_around(text, made) is function
    if judged.steps[mask].op == "__setitem__":
        return made if own and made < line else None
    name = text.target(judged.steps[mask])
    return made if own and made < line and _is_read_there(name, line, function) else None


def _adds_nothing(slip: Slip, line: int, text: Text) -> int | None:
    """The line before that made what is added to scores and hides nothing: it is one number in all
    of its places, where the answer hides some."""
    judged, function = slip.judged, function_around(text, line)
    left, seen = [slip.number], set()
    while left:
        number = left.pop()
        step = judged.steps[number]
        if number in seen or text.line(step) != line:
            continue
        seen.add(number)
        left += step.inputs
        adds = step.op.strip("_") in ADDS and _hides_some(judged, step.value.shape[-2:])
        for source in step.inputs if adds else ():
            taken, made = judged.steps[source], text.line(judged.steps[source])
            flat = taken.value.numel() > 1 and taken.value.unique().numel() == 1
            if flat and made is not None and made < line:
                return made if _is_read_there(text.target(taken), line, function) else None
    return None


def _hides_some(judged: Judged, size: torch.Size) -> bool:
    """Whether the answer hides places of tables of a size."""
    own = (v for k in judged.own.known for v in k.shapes if v.shape[-2:] == size)
    return any(bool((plain(v) == HIDDEN).any()) for v in own)


def _mask(judged: Judged, number: int, line: int, text: Text) -> int | None:
    """The one step that says where another hides, as it was made in a statement before."""
    masks = [i for i in judged.steps[number].inputs if judged.steps[i].kind == "bool"]
    if len(masks) != 1:
        return None
    mask = masks[0]
    while text.line(judged.steps[mask]) == line:  # `mask == 0`, `mask[None]`
        if len(judged.steps[mask].inputs) != 1:
            return None
        (mask,) = judged.steps[mask].inputs
    return mask


def _hidden(judged: Judged, shape: torch.Size) -> list[torch.Tensor]:
    """Which places the answer hides in tensors of a shape."""
    own = (plain(v) == HIDDEN for k in judged.own.known for v in k.shapes if v.shape == shape)
    return [hides for hides in own if hides.any()]


def _parts(text: Text, line: int, of: Callable[[ast.AST], list[ast.expr]]) -> set[str]:
    """The variables in some parts of a statement."""
    statement = text.around(line)
    inside = [part for n in ast.walk(statement) for part in of(n)] if statement else []
    return {n.id for part in inside for n in ast.walk(part) if isinstance(n, ast.Name)}


def _are_factors(node: ast.AST) -> list[ast.expr]:
    """What a quotient divides by; of a product the sides that take no part of a tensor."""
    if isinstance(node, ast.Call) and callee(node).strip("_") in ("div", "mul", "multiply"):
        return node.args
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Div):
        return []
    sides = [node.right] if isinstance(node.op, ast.Div) else [node.left, node.right]
    return [each for each in sides if not any(map(_takes_a_part, ast.walk(each)))]


def _takes_a_part(node: ast.AST) -> bool:
    """Whether a part of a tensor is taken, or two are multiplied row with row."""
    product = isinstance(node, ast.Call) and callee(node) in PRODUCTS
    return product or isinstance(node, ast.Subscript | ast.MatMult)


def _is_filled(node: ast.AST) -> list[ast.expr]:
    """What a call puts into the places that it hides."""
    named = isinstance(node, ast.Call) and callee(node).strip("_") in ("masked_fill", "where")
    return node.args[1:] if named else []


def _maker(judged: Judged, line: int, text: Text, among: set[str]) -> int | None:
    """The line before that makes the one number of these that nothing but this line reads."""
    function = function_around(text, line)
    if function is None:
        return None
    own = among - {text.target(step) for step in judged.steps}
    found = [
        n.lineno
        for n in own_nodes(function)
        if isinstance(n, ast.Assign) and n.lineno < line and len(n.targets) == 1
        if getattr(n.targets[0], "id", None) in own
        if _is_read_there(n.targets[0].id, line, function)
    ]
    return found[0] if len(found) == 1 else None


def _under_the_root(line: int, text: Text) -> int | None:
    """The line before that works out the size of which a line takes the root, for it alone:
    `head_size = width // num_heads`."""
    function, statement = function_around(text, line), text.around(line)
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)] if statement else []
    rooted = [n.args[0] for n in calls if callee(n) == "sqrt" and len(n.args) == 1]
    powers = [n for n in ast.walk(statement) if isinstance(n, ast.BinOp)] if statement else []
    rooted += [n.left for n in powers if isinstance(n.op, ast.Pow)]
    names = {n.id for n in rooted if isinstance(n, ast.Name)}
    if function is None or len(names) != 1 or len(rooted) != 1:
        return None
    (name,) = names
    made = [n for n in own_nodes(function) if isinstance(n, ast.Assign) and n.lineno < line]
    made = [n for n in made if [text.of(t) for t in n.targets] == [name]]
    alone = len(made) == 1 and isinstance(made[0].value, ast.BinOp)
    return made[0].lineno if alone and _is_read_there(name, line, function) else None


def _of_the_call(line: int, text: Text, among: set[str]) -> int | None:
    """The line that gave a helper of the student's one of these numbers: that of its one call, or
    of the variable that is made for this call alone."""
    helper = function_around(text, line)
    given = [a.arg for a in helper.args.args] if helper is not None else []
    own = [name for name in given if name in among - _of_which_sizes_are_taken(line, text)]
    calls = [n for n in text.nodes if isinstance(n, ast.Call)] if own else []
    calls = [n for n in calls if callee(n) == helper.name]
    if len(own) != 1 or len(calls) != 1:
        return None
    (call,), place = calls, given.index(own[0]) - (given[0] == "self")
    named = [k.value for k in call.keywords if k.arg == own[0]]
    value = (named or call.args[place : place + 1] or [None])[0]
    caller = function_around(text, call.lineno)
    if not isinstance(value, ast.Name) or caller is None:
        return call.lineno if value is not None else None
    made = [n for n in own_nodes(caller) if isinstance(n, ast.Assign) and n.lineno < call.lineno]
    made = [n for n in made if [text.of(target) for target in n.targets] == [value.id]]
    alone = len(made) == 1 and _is_read_there(value.id, text.around(call.lineno).lineno, caller)
    return made[0].lineno if alone else call.lineno


def _of_which_sizes_are_taken(line: int, text: Text) -> set[str]:
    """The variables of which a statement takes a size: which one is chosen there."""
    taken = [n for n in ast.walk(text.around(line)) if isinstance(n, ast.Attribute)]
    of = [n.value for n in taken if n.attr in ("size", "shape")]
    return {n.id for n in of if isinstance(n, ast.Name)}


def _is_read_there(name: str, line: int, function: ast.FunctionDef | None) -> bool:
    """Whether a variable is read in this statement of its function, and nowhere else."""
    nodes = [n for n in own_nodes(function) if isinstance(n, ast.stmt)] if function else []
    lines = {
        s.lineno
        for s in nodes
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        if not isinstance(s, ast.For | ast.If | ast.With | ast.While)
    }
    return lines == {line}
