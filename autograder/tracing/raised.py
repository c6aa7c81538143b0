"""Errors by their cause: what the operands are, which variable was overwritten, what is a pair.

Sizes are printed as numbers. What an operand is called is a landmark's name, where its numbers
prove that it is one, or the variable's own.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

import torch

from autograder.course.asking import STOPS, Exercise, Finding, Where
from autograder.course.steps.traces import Step, Stopped, Trace
from autograder.judging.compare import WHERE_IT_RUNS
from autograder.judging.explain import CAUSES, RAISED
from autograder.tracing.alike import likeness
from autograder.tracing.binding import of_another_axis
from autograder.tracing.edits.kinds.calls import PAIRS
from autograder.tracing.edits.kinds.source import made_for
from autograder.tracing.look import Look, Told
from autograder.tracing.misuses import misuse, place_of_misuse
from autograder.tracing.reference import Reference
from autograder.tracing.say import called
from autograder.tracing.text import (
    Text,
    callee,
    function_around,
    last_assigned,
    overwritten,
    own_nodes,
    stored_in,
    without_return,
)

PRODUCTS = ("matmul", "__matmul__", "__rmatmul__", "bmm", "mm")
# How many axes the two operands of a product have, in words, where it does not take any.
TAKES = {
    "mm": ((2, 2), "two tensors of 2 axes each"),
    "bmm": ((3, 3), "two tensors of 3 axes each"),
}
TAKES |= {
    "dot": ((1, 1), "two vectors of one axis each"),
    "vdot": ((1, 1), "two vectors of one axis each"),
}
TAKES |= {"mv": ((2, 1), "a table of 2 axes and a vector of one, in this order")}
WITHOUT_WEIGHTS = ("ReLU", "GELU", "SiLU", "ELU", "LeakyReLU", "Softplus", "Tanh", "Sigmoid")
WITHOUT_WEIGHTS += ("Softmax", "LogSoftmax", "Dropout")  # layers that no tensor makes
BROADCASTS = ("add", "__add__", "sub", "__sub__", "mul", "__mul__", "div", "__truediv__")
BROADCASTS += ("__radd__", "__rsub__", "__rmul__", "rsub", "masked_fill", "masked_fill_", "where")
BROADCASTS += ("lt", "le", "gt", "ge", "eq", "ne", "__lt__", "__le__", "__gt__", "__ge__")
BROADCASTS += ("__eq__", "__ne__", "__and__", "__or__", "logical_and", "logical_or")
MOVES = ("__get__", "t", "transpose", "permute", "swapaxes", "movedim")
OVER_AN_AXIS = ("sum", "mean", "amax", "amin", "max", "min", "norm", "logsumexp", "std", "var")
# A guess at what was meant, where one change elsewhere may be what is wrong.
MORE_AXES = re.compile(r" To meet each number of one with each of the other, [^.]{0,200}\.")
OF_A_TYPE = ("TypeError", "AttributeError", "IndexError")
UNSET = ("NameError", "UnboundLocalError")
# Causes of an error that lie in the line that stops, or that tell of the other one.
OF_THIS_LINE = ("was overwritten in line", "its last two axes exchanged", "turns all axes round")
OPERANDS = 3  # that are told of
MOVED = ("T", "mT", "H", "mH")  # attributes that are no tensors of their own


def by_cause(error: dict, trace: Trace, own: Reference | None, text: Text) -> str:
    """What stopped the code, and why; '' where the likely cause is not known."""
    kind, said, line = error["type"], error["message"], error["line"]
    if kind == "NameError":
        return _unknown_name(said, text)
    if "return_types" in said or (
        kind in ("TypeError", "AttributeError") and "return_type" in said
    ):
        return _pair(said)
    before = made_of_a_tensor(error, trace, text) or uncalled(error, text)
    before = before or now_a_number(error, text)
    if before is not None:
        return before[1]
    shapes = []
    if trace.stopped is not None:
        given = trace.stopped.inputs[:OPERANDS]
        shapes = [tuple(trace.steps[i].value.shape) for i in given]
    known = misuse(kind, said, text, line, shapes)
    if known or kind != "RuntimeError" or trace.stopped is None:
        return known
    return _operands(said, trace, trace.stopped, own, text)


def made_of_a_tensor(error: dict, trace: Trace, text: Text) -> tuple[int, str] | None:
    """Where a layer was made of a tensor, `nn.ReLU(x)`, and not called, if that is what stopped the
    code: its line, and a sentence."""
    floats = [step for step in trace.steps if step.kind == "float"]
    tensors = {text.target(step) for step in floats} - {""}
    callers = (text.around(line) for step in floats for line in step.outer[:1])
    given = (target for statement in callers for target in getattr(statement, "targets", ()))
    tensors |= {target.id for target in given if isinstance(target, ast.Name)}
    called_at_once = {id(n.func) for n in text.nodes if isinstance(n, ast.Call)}
    for call in (n for n in text.nodes if isinstance(n, ast.Call) and id(n) not in called_at_once):
        kind, last = callee(call), error["line"] or 0
        if kind not in WITHOUT_WEIGHTS or not call.args or call.lineno > last:
            continue
        if call.lineno != text.first_line(last) and not re.search(rf"\b{kind}\b", error["message"]):
            continue
        names = {n.id for n in ast.walk(call.args[0]) if isinstance(n, ast.Name)}
        products = (n.op for n in ast.walk(call.args[0]) if isinstance(n, ast.BinOp))
        if names & tensors or any(isinstance(op, ast.MatMult) for op in products):
            given = text.of(call.args[0])
            how = "it belongs in a second pair of brackets, behind those that make the layer."
            return text.first_line(call.lineno), (
                f"`{text.of(call)}` makes a layer and applies it to nothing. `{given}` is no "
                f"setting of the layer: {how}"
            )
    return None


def uncalled(error: dict, text: Text) -> tuple[int, str] | None:
    """Where a function was kept that should have been called, `top = x.values`, if what stopped the
    code takes it: its line, and a sentence."""
    last = text.around(error["line"] or 0)
    if last is None or not re.search(r"\b(builtin_function_or_method|method)\b", error["message"]):
        return None
    read = {n.id for n in ast.walk(last) if isinstance(n, ast.Name)}
    kept = [
        n
        for n in text.nodes
        if isinstance(n, ast.Assign) and n.lineno < last.lineno and _is_a_method(n.value)
        if read & {t.id for t in n.targets if isinstance(t, ast.Name)}
    ]
    if len(kept) != 1:
        return None
    return kept[0].lineno, f"`{text.of(kept[0].value)}` is a function: it is not called there."


def now_a_number(error: dict, text: Text) -> tuple[int, str] | None:
    """Where something that was given got a number for its value, `b, t, c = t.size()`, if what
    stopped the code takes it for what it was: its line, and a sentence."""
    said = re.search(r"'int' object has no attribute '(\w{1,40})'", error["message"])
    last = text.around(error["line"] or 0) if said is not None else None
    function = function_around(text, error["line"] or 0)
    if last is None or function is None:
        return None
    taken = [n for n in ast.walk(last) if isinstance(n, ast.Attribute) and n.attr == said[1]]
    names = {n.value.id for n in taken if isinstance(n.value, ast.Name)}
    names &= {a.arg for a in function.args.args}
    made = [n for n in own_nodes(function) if isinstance(n, ast.Assign) and n.lineno < last.lineno]
    stored = [(n.lineno, m) for n in made for t in n.targets for m in ast.walk(t)]
    lines = {line: m.id for line, m in stored if isinstance(m, ast.Name) and m.id in names}
    if len(lines) != 1:
        return None
    ((line, name),) = lines.items()
    return line, f"`{name}`, which was given, is a number since line {line}."


def _is_a_method(node: ast.expr) -> bool:
    """Whether an expression is an attribute that is a function of every tensor: not `x.shape`."""
    return isinstance(node, ast.Attribute) and callable(getattr(torch.Tensor, node.attr, None))


def _unknown_name(said: str, text: Text) -> str:
    found = re.search(r"name '(\w{1,60})'", said)
    if found is None:
        return ""
    name = found.group(1)
    given = [f for f in text.functions if name in [a.arg for a in f.args.args]]
    owner = given or [f for f in text.functions if f.name == "__init__" and name in stored_in(f)]
    elsewhere = text.stored - {n for f in owner for n in stored_in(f)} | text.attributes
    if len(owner) == 1 and name not in elsewhere:
        what = "an argument" if given else "a variable"
        keep = "hand it over here, too"
        if text.is_method(owner[0]):
            keep = f"keep it there as `self.{name}`, and write it so here"
        return f"`{name}` is {what} of `{owner[0].name}` alone: {keep}."
    if name in text.attributes:
        return f"`{name}` is kept as `self.{name}`: write it so here, too."
    if name in text.stored:
        return (
            f"`{name}` gets its value in another function, or on a path that was not taken. A "
            "function sees its arguments and what it sets itself."
        )
    return (
        f"`{name}` is neither an argument nor set in this cell. If it is a variable of the "
        "notebook, hand it over as an argument or compute it here: your code is judged on its own."
    )


def _pair(said: str) -> str:
    found = re.search(r"return_types\.(\w{1,30})", said)
    name = found.group(1) if found else "max"
    if name not in PAIRS:
        return f"`{name}` gives several results under one name: take one of them, such as `[0]`."
    better = f"use `.a{name}(...)` or " if name in ("max", "min") else ""
    return f"`{name}` with `dim` gives a pair, values and where they stand: {better}take `.values`."


def _is_a_weight(text: Text, line: int) -> bool:
    """Whether the right side of the line's product is an attribute, `x @ self.w_query`."""
    nodes = ast.walk(text.around(line) or ast.Module([], []))
    sides = [n.right for n in nodes if isinstance(n, ast.BinOp) and isinstance(n.op, ast.MatMult)]
    return len(sides) == 1 and isinstance(sides[0], ast.Attribute) and sides[0].attr not in MOVED


def _operands(said: str, trace: Trace, stopped: Stopped, own: Reference | None, text: Text) -> str:
    """What was combined that does not fit."""
    if stopped.place is None or len(stopped.inputs) < 1:
        return ""
    steps = [trace.steps[i] for i in stopped.inputs[:OPERANDS]]
    shapes, line = [list(s.value.shape) for s in steps], stopped.place[0]
    named = [_operand(i, trace, own, text) for i in stopped.inputs[:OPERANDS]]
    if stopped.op == "linear" and len(steps) >= 2:
        return _linear(shapes, named[0], trace, stopped, text, line)
    axes, words = TAKES.get(stopped.op, ((), ""))
    if axes and len(steps) >= 2 and axes != (len(shapes[0]), len(shapes[1])):
        said = f"The left operand is {named[0]}, the right one {named[1]}."
        return f"{said} `{stopped.op}` takes {words}; `@` takes any."
    if stopped.op in PRODUCTS and len(steps) >= 2:
        one, two = shapes[:2]
        if len(one) > 1 and len(two) > 1 and one[-1] != two[-2]:
            said = (
                f"The left operand is {named[0]}, the right one {named[1]}: the last size on the "
                f"left, {one[-1]}, and the last but one on the right, {two[-2]}, have to be equal."
            )
            turned = _turned_here(trace, stopped.inputs[:2], text)
            if turned:
                return f"{said} {turned}"
            if len(two) == 2 and _is_a_weight(text, line):
                said += f" It takes vectors of size {two[0]}."
            elif _fits_turned(one, two) and not _fits_exchanged(one, two):
                said += " The right one needs its last two axes exchanged."
            elif len(two) > 2 and one[-1] == two[0] and ".T" in text.statement(line):
                said += " `.T` turns all axes round, the batch too: `.mT` exchanges the last two."
            return said
        said = f"The left operand is {named[0]}, the right one {named[1]}."
        front = [shape[:-2] for shape in (one, two)]
        if min(len(one), len(two)) > 2 and one[-1] == two[-2] and front[0] != front[1]:
            said += f" In front of these both need the same sizes: here {front[0]} and {front[1]}."
            if len(one) != len(two):
                side = "left" if len(one) < len(two) else "right"
                said += f" The {side} one has an axis too few: was it split like the other?"
        return said
    if stopped.op in BROADCASTS and len(steps) >= 2:
        given = f"`{_plain(stopped.op)}` is given {named[0]} and {named[1]}."
        return given + (_without_keepdim(trace, steps, text) or _with_more_axes(*shapes[:2]))
    if stopped.op == "einsum":
        return _letters(said, named, shapes)
    return ""


def _fits_turned(one: list[int], two: list[int]) -> bool:
    """Whether a product's right operand would fit with its last two axes exchanged."""
    return one[-1] == two[-1] and _meet(one[:-2], two[:-2])


def _fits_exchanged(one: list[int], two: list[int]) -> bool:
    """Whether a product's operands would fit in each other's places, as they are."""
    return two[-1] == one[-2] and _meet(one[:-2], two[:-2])


def _letters(said: str, named: list[str], shapes: list[list[int]]) -> str:
    """An operand of an einsum that has another number of axes than letters."""
    found = re.search(r"equation \((\d)\) does not match .* \((\d)\) for operand (\d)", said)
    if found is None or int(found[3]) >= len(named):
        return ""
    letters, axes, number = map(int, found.groups())
    few = " Was it split like the others?" if axes < letters and letters > 3 else ""
    return (
        f"Its operand {number + 1} is {named[number]}: it has {axes} axes, and the equation "
        f"{letters} letters for it.{few}"
    )


def _turned_here(trace: Trace, inputs: Sequence[int], text: Text) -> str:
    """That an operand fits as it was before its axes were moved, as it is or in another order."""
    for side, number in zip(("left", "right"), inputs, strict=True):
        step = trace.steps[number]
        line = text.line(step)
        if step.op not in MOVES or len(step.inputs) != 1 or line is None:
            continue
        before = trace.steps[step.inputs[0]].value
        other = trace.steps[inputs[0] if side == "right" else inputs[1]].value
        kept, turned = before.shape, before.shape[:-2] + before.shape[-2:][::-1]
        for shape in (kept, turned) if before.dim() > 1 else ():
            one, two = (other.shape, shape) if side == "right" else (shape, other.shape)
            if len(one) > 1 and len(two) > 1 and one[-1] == two[-2] and _meet(one[:-2], two[:-2]):
                own = f"The {side} one had the shape {list(before.shape)} before line {line} moved"
                if shape is kept:
                    return f"{own} its axes, and fits as it was."
                if step.value.shape == kept and bool((step.value == before).all()):
                    return f"Line {line} leaves its axes as they are: its last two have to change."
                alone = "its last two have to be exchanged (`.mT`), and no others"
                return f"{own} its axes: {alone}."
    return ""


def _meet(one: Sequence[int], two: Sequence[int]) -> bool:
    """Whether tensors of these shapes can be combined."""
    pairs = itertools.zip_longest(reversed(one), reversed(two), fillvalue=1)
    return all(a == b or 1 in (a, b) for a, b in pairs)


def _with_more_axes(one: Sequence[int], two: Sequence[int]) -> str:
    """The shapes with more axes of size 1 in which one operand would fit the other."""
    if _meet(one, two):
        return ""
    short, other = sorted((list(one), list(two)), key=len)
    if len(short) == len(other) == 1:
        return (
            f" To meet each number of one with each of the other, one of them needs an axis more: "
            f"[{one[0]}, 1] and {other}, or {short} and [{two[0]}, 1]."
        )
    if len(short) == len(other) > 1:
        return ""
    for size in range(len(short) + 1, len(other) + 1):
        fitting = []
        for places in itertools.combinations(range(size), len(short)):
            shape = [1] * size
            for place, n in zip(places, short, strict=True):
                shape[place] = n
            if _meet(shape, other) and shape[0] != 1:
                fitting.append(str(shape))
        if fitting:
            shapes = " or ".join(dict.fromkeys(fitting))
            return (
                f" With axes of size 1 (`None` in an index, or `unsqueeze`) {short} becomes "
                f"{shapes}, which fits {other}."
            )
    return ""


def _without_keepdim(trace: Trace, steps: list[Step], text: Text) -> str:
    """That an axis was lost where one operand was made, if it is what the other still has."""
    for one, other in (steps[:2], steps[1::-1]):
        before = [trace.steps[i].value.shape for i in one.inputs[:1]]
        lost = before == [other.value.shape] and one.value.dim() == other.value.dim() - 1
        if one.op in OVER_AN_AXIS and lost and (line := text.line(one)) is not None:
            keep = "with `keepdim=True` it stays, with size 1, and the two fit."
            return f" `{one.op}` in line {line} took an axis away: {keep}"
    return ""


def _plain(op: str) -> str:
    signs = {"add": "+", "sub": "-", "mul": "*", "div": "/", "truediv": "/", "rsub": "-"}
    signs |= {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
    signs |= {"and": "&", "or": "|"}
    bare = op.strip("_")
    return signs.get(bare, signs.get(bare.removeprefix("r"), bare))


def _operand(number: int, trace: Trace, own: Reference | None, text: Text) -> str:
    """`the keys (shape [5, 13, 3])`, or a tensor by its sizes alone."""
    step = trace.steps[number]
    found = likeness(step.value, own.known) if own is not None and step.kind == "float" else None
    words = called(found.known) if found is not None and found.in_order and found.whole else ""
    sizes = str(list(step.value.shape))
    return f"{words} (shape {sizes})" if words else f"a tensor of shape {sizes}"


def _linear(shapes, named: str, trace: Trace, stopped: Stopped, text: Text, line: int) -> str:
    """A layer that is given another size than it takes."""
    given, weight = shapes[0], shapes[1]
    call = _call_at(text, stopped.place)
    layer = f"`{text.of(call.func)}`" if call is not None else "the layer"
    if not given or len(weight) != 2 or given[-1] == weight[1]:
        return ""
    name = call.args[0].id if call and call.args and isinstance(call.args[0], ast.Name) else ""
    before = overwritten(text, name, line) if name else None
    if before is not None:
        return (
            f"`{name}` was overwritten in line {before} with {named}; {layer} in line "
            f"{line} takes vectors of size {weight[1]}. Give the new tensor a name of its own."
        )
    return f"{layer} takes vectors of size {weight[1]} and is given {named}."


def _call_at(text: Text, place) -> ast.Call | None:
    """The call that stands exactly there."""
    line, end, column, last = place
    for node in text.nodes:
        if isinstance(node, ast.Call) and (node.lineno, node.end_lineno) == (line, end):
            there = (node.col_offset, node.end_col_offset)  # in bytes, as code objects count too
            if there == (column, last):
                return node
    return None


# --- what is said of it --------------------------------------------------------------------------
def nothing(finding: Finding, look: Look, exercise: Exercise) -> Finding:
    """None came back: a function without a `return`, where that is so."""
    function = without_return(look.text, exercise.name)
    if function is None:
        return finding
    line = function.body[-1].lineno
    meant = last_assigned(function)
    end = f" End it with `return {meant}`." if meant else " End it with a `return`."
    return replace(
        finding,
        message=f"`{function.name}` returns nothing, so that its call gives None.{end}",
        line=line,
        statement=look.text.statement(line),
        where=Where(how="nothing is returned", first_wrong=line, **look.right_before(line + 1)),
    )


def with_the_error(finding: Finding, look: Look, error: dict | None) -> Finding:
    """A finding whose known mistake shows only where the code does not stop, with the cause of the
    error."""
    if WHERE_IT_RUNS not in finding.message or error is None or error["line"] != finding.line:
        return finding
    cause = by_cause(dict(error), look.trace, look.own, look.text)
    said, middle, rest = finding.message.partition(WHERE_IT_RUNS)
    said = f"{without_advice(said.rstrip())} {cause} " if cause else said
    return replace(finding, message=f"{said}{middle}{rest}")


def stopped(finding: Finding, told: list[Told], look: Look, error: dict | None) -> Finding:
    """An error by its cause, with what is wrong before it."""
    if error is None or error["line"] != finding.line or error["type"] not in finding.message:
        return finding  # another call stops, or with another error
    cause = by_cause(dict(error), look.trace, look.own, look.text)
    message = finding.message
    if not cause and error["type"] == "IndexError" and error["line"] is not None:
        _, cause = of_another_axis(error["message"], look.text, error["line"]) or (0, "")
    if cause:
        message = f"{without_advice(message)} {cause}"
    if finding.line is None:
        return replace(finding, message=message)
    unset = error["type"] in UNSET  # it stops whatever is wrong before it
    before = told and told[0].where.first_wrong < finding.line and not unset
    if before and _came_of_it(told[0], look):
        first = told[0]
        what = first.cause[1] if first.cause else ""
        if not what and first.where.how:
            what = f"{first.where.how[:1].upper()}{first.where.how[1:]}."
        start = f"Line {first.where.first_wrong} goes wrong before: {what} " if what else ""
        return replace(finding, message=f"{start}{message}", where=first.where)
    end = look.trace.stopped
    if end is not None and look.judged is not None and look.judged.bad & {*end.inputs}:
        return replace(finding, message=message)  # an earlier line may be the one that is wrong
    went_well = _went_well(look.trace)
    if went_well:  # what it was given this time may be wrong, and not the line itself
        return replace(finding, message=f"{plainly(finding).message} {went_well}")
    of_a_type = error["type"] in OF_A_TYPE and not cause
    before = made_for(finding.line, look.text.source) if of_a_type else {}
    taken = _taken(error["type"], finding.line, look.text) if before else set()
    before = {name: line for name, line in before.items() if name in taken}
    if before:  # it may be what is made there that is of another type
        made = " ".join(f"`{name}` is made in line {line}." for name, line in before.items())
        return replace(finding, message=f"{without_advice(message)} {made}")
    place = _where_it_is(dict(error), finding.line, look)
    if place is None and any(words in cause for words in OF_THIS_LINE):
        place = finding.line, STOPS
    if place is None:
        return replace(finding, message=message)
    line, how = place
    where = Where(first_wrong=line, how=how, **look.right_before(line))
    return replace(finding, message=message, where=where)


def _where_it_is(error: dict, line: int, look: Look) -> tuple[int, str] | None:
    """The line that is wrong where one stops, and how; None where what is missing could stand
    anywhere before."""
    if (layer := made_of_a_tensor(error, look.trace, look.text)) is not None:
        return layer[0], "it makes a layer and applies nothing"
    if (function := uncalled(error, look.text)) is not None:
        return function[0], "it keeps a function, and does not call it"
    if (number := now_a_number(error, look.text)) is not None:
        return number[0], "it gives what was given another value"
    return place_of_misuse(error["type"], error["message"], look.text, line)


def _went_well(trace: Trace) -> str:
    """That a line of a function went well when other lines called it; '' where it did not."""
    end = trace.stopped
    if end is None or not end.outer:
        return ""
    spot = (end.place, end.op)
    before = {step.outer for step in trace.steps if step.spot == spot} - {end.outer}
    others = sorted({outer[0] for outer in before if outer} - {end.outer[0]})
    if not before:
        return ""
    line, last = end.place[0], end.outer[0]
    well = f" when line {others[0]} calls it" if others else ""
    return f"Line {line} goes well{well}; it stops with what line {last} gives it."


def _taken(kind: str, line: int, text: Text) -> set[str]:
    """The variables that may be of the type that a statement stops with: what is indexed or is an
    index, what an attribute is read of, operands and arguments; not what is called."""
    found: set[str] = set()
    inside = list(ast.walk(text.around(line) or ast.Module([], [])))
    for node in inside:
        parts: list[ast.AST] = []
        if kind == "IndexError" and isinstance(node, ast.Subscript):
            parts = [node.value, *ast.walk(node.slice)]
        elif kind == "AttributeError" and isinstance(node, ast.Attribute):
            parts = [node.value]
        elif kind == "TypeError" and not isinstance(node, ast.Attribute):
            called = [node.func] if isinstance(node, ast.Call) else []
            parts = [n for n in ast.iter_child_nodes(node) if n not in called]
        found |= {n.id for n in parts if isinstance(n, ast.Name)}
    functions = (n.func for n in inside if isinstance(n, ast.Call))
    return found - {f.id for f in functions if isinstance(f, ast.Name)}


def _came_of_it(told: Told, look: Look) -> bool:
    """Whether what stopped was made of what is told to be wrong: else what would make it right may
    stand behind the line that stopped."""
    end = look.trace.stopped
    if look.judged is None or end is None or told.at >= len(look.judged.steps):
        return True
    return bool(look.judged.made_of(told.at) & {*end.inputs})


def plainly(finding: Finding) -> Finding:
    """A finding without what such errors usually mean."""
    return replace(finding, message=without_advice(finding.message))


def without_advice(message: str) -> str:
    """An error's message without what such errors usually mean."""
    usual = [RAISED, *(words for *_, words in CAUSES)]
    advice = next((words for words in usual if words in message), "")
    return MORE_AXES.sub("", message.replace(f" {advice}", "") if advice else message)
