"""Layers that are not as they were asked for: the lines that make them.

What is said of a layer names it as the student does; the line is the one statement of the cell that
sets an attribute of this name. Where several do, or none, no line is told.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from autograder.course.asking import Finding, Verdict, Where
from autograder.judging.look_again import MISSING, PREFIX
from autograder.tracing.say import RANDOM
from autograder.tracing.text import REGISTERS, Text, callee, function_around, own_nodes

PLAIN = "not registered"
KINDS = (
    MISSING,
    "wrong width",
    "shape",
    "lost bias",
    "plain list",
    PLAIN,
    "stored",
    "not stored",
    "is a parameter",
)  # how checks about layers may end
# Checks on what dropout is applied to: it is applied, but in the wrong place.
DROPPED_ELSEWHERE = ("dropout.on the scores", "dropout.not on the weights", "dropout.on features")
BEGINS = "start."  # checks on the numbers that parameters begin with
DRAWN = ("start.all positive", "start.not normal")  # those that say how they are drawn
# What draws numbers.
DRAWS = re.compile(r"rand|^(?:kaiming_|xavier_|trunc_)?(?:normal|uniform)_?$")
SPREADS = {"std", "a", "b", "gain"}  # what they call how far apart these are
ADDS = ("add_module", "register_module")  # what makes a layer one of an object's, by its name
BY_NAME = ("setattr", "register_parameter")  # what keeps something under a name that is a text
TOGETHER = "dropout.not one by one"  # one draw for several weights
OF_ITS_OWN = "dropout.share"  # another share is dropped than was asked for
DROPPED_BEHIND = ("dropout.not on the weights", "dropout.on features", "dropout.on the output")
LAYER = r"`(\w[\w.]*)`"
# (what is said of layers, how their line goes wrong); the groups hold names of the student's own
SAID = (
    (r"Your (?:layer|parameter)s? (?:is|are) called (.+?); the exercise asks for",
     "what is made here has another name than asked for"),
    (rf"there is no `[\w.]+`, but {LAYER} of the same sizes",
     "what is made here has another name than asked for"),
    (r"Your layers? (.+?) does? the work of",
     "what is made here does the work of what is asked for"),
    (r"`(\w[\w.]*?)(?:\.weight)?` has shape", "the layer made here has other sizes than asked for"),
    (rf"{LAYER} has no bias\.", "the layer made here has no bias"),
    (r"does not register `(\w[\w.]*?)(?:\.\w+)?`", "nothing that could be trained is made here"),
    (rf"{LAYER} and {LAYER} are one layer", "one layer is set under two names"),
    (r"finds no parameters in `(\w+)`", "a plain list of layers is set here"),
    (r"does not know `(\w+)` as a parameter", "a plain tensor is set here"),
    (r"`(\w+)` is (?:not )?stored in the state_dict", "the buffer is registered here"),
    (r"`(\w+)` is a parameter: an optimiser would", "a parameter is made here"),
)  # fmt: skip


def with_lines(found: list[Finding], text: Text) -> list[Finding]:
    """The findings, those that speak of layers with the line that makes the first of them."""
    drawn = [_where_it_is_drawn(f, text) if f.check == TOGETHER else f for f in found]
    return [
        f if not f.fails else _placed(f, text) if f.where is None else _with_a_line(f, text)
        for f in drawn
    ]


def _where_it_is_drawn(finding: Finding, text: Text) -> Finding:
    """A finding that several weights are dropped together, with the one line that draws."""
    calls = [n for n in text.nodes if isinstance(n, ast.Call)]
    lines = {n.lineno for n in calls if callee(n).strip("_") in RANDOM}
    if len(lines) != 1:
        return finding
    line = lines.pop()
    where = Where(None, line, how="what is drawn here is drawn once for several")
    return replace(finding, where=where, line=line, statement=text.statement(line))


def _with_a_line(finding: Finding, text: Text) -> Finding:
    """A finding of another line that speaks of a layer, too, with the layer's line there."""
    said, _, lines = _spoken_of(finding.message, text)
    if said is None or set(lines) <= {finding.line} or "Line " in finding.message:
        return finding
    before, stop, _ = finding.message[: said.start()].rpartition(". ")
    after = finding.message.removeprefix(before + stop)
    message = f"{before}{stop}Line {min(lines)}: {after}" if stop else finding.message
    return replace(finding, message=message)


def _spoken_of(message: str, text: Text) -> tuple[re.Match | None, str, list[int]]:
    """Where a message speaks of layers, how they are wrong, and the lines that make them."""
    for pattern, how in SAID:
        said = re.search(pattern, message)
        if said is not None:
            quoted = " ".join(f"`{group}`" for group in said.groups())
            names = re.findall(r"(\w+)(?:\.\w+)*`", quoted.replace("``", "`"))
            lines = [_made_in(text, name) for name in dict.fromkeys(names)]
            found = [line for line in lines if line is not None]
            return (said if found else None), how, found
    return None, "", []


def _placed(finding: Finding, text: Text) -> Finding:
    if finding.check in (*DROPPED_ELSEWHERE, *DROPPED_BEHIND) and finding.line is None:
        twice = _with_both(finding, text) if finding.check in DROPPED_BEHIND else None
        return twice or _where_it_drops(finding, text)
    if finding.check.startswith(BEGINS) and finding.line is None:
        return _where_it_begins(finding, text)
    if finding.check == OF_ITS_OWN and finding.line is None:
        return _with_its_share(finding, text)
    kind = finding.check.rpartition(" + ")[2].split(".")[-1]
    if not (finding.check.startswith(PREFIX) or kind in KINDS):
        return finding
    said, how, lines = _spoken_of(finding.message, text)
    if said is None or finding.line is not None:  # an error has a place of its own
        return finding
    lines = _in_their_helper(text, lines, kind == PLAIN)
    others = [str(n) for n in sorted({*lines}) if n != min(lines)]
    last = " and ".join(filter(None, [", ".join(others[:-1]), *others[-1:]]))
    more = f", and so in line{'s' * (len(others) > 1)} {last}" if others else ""
    where = Where(last_right=None, first_wrong=min(lines), how=f"{how}{more}")
    statement = text.statement(min(lines))
    return replace(finding, where=where, line=min(lines), statement=statement)


def _in_their_helper(text: Text, lines: Sequence[int], plain: bool) -> Sequence[int]:
    """The line of the one `return` of a function of the student's that makes all of some layers and
    nothing that is as it should be, else the lines that ask it for them. plain: whether nothing
    that it makes is as it should be, whatever else asks for it."""
    made = [getattr(text.around(line), "value", None) for line in lines]
    made = [each for value in made for each in getattr(value, "elts", [value])]
    made = [getattr(each, "elt", each) for each in made]  # `(self.make(size) for _ in "qkv")`
    names = {callee(value) for value in made if isinstance(value, ast.Call)}
    helpers = [f for f in text.functions if {f.name} == names]
    calls = [n for n in text.nodes if isinstance(n, ast.Call) and {callee(n)} == names]
    if len(helpers) != 1 or not (plain or len(calls) == len(made)):
        return lines
    ends = [n for n in own_nodes(helpers[0]) if isinstance(n, ast.Return)]
    return [ends[0].lineno] if len(ends) == 1 else lines


def _where_it_begins(finding: Finding, text: Text) -> Finding:
    """A finding of the numbers that a parameter begins with, with the line that makes it."""
    names = re.findall(r"`(\w+)`", finding.message.partition(" begin")[0])[-1:]
    made = [line for line in (_made_in(text, name) for name in names) if line is not None]
    line = _where_all_are_drawn(text)
    if made and line is None:
        shared = finding.check.endswith("all equal")  # then one call is for several
        line = made[0] if shared else _in_their_helper(text, made, plain=True)[0]
        line = _where_it_draws(text, line, finding.check not in DRAWN)
    if line is None:
        return finding
    where = Where(None, line, how="what is made here begins with other numbers than asked for")
    return replace(finding, where=where, line=line, statement=text.statement(line))


def _where_it_draws(text: Text, line: int, spread: bool) -> int:
    """The one line of a function that draws numbers, where it is a function of its own. spread:
    whether it has to say how far apart they are, too."""
    function = function_around(text, line)
    inside = own_nodes(function) if function is not None and function.name != "__init__" else ()
    drawn = [n for n in inside if isinstance(n, ast.Call) and DRAWS.search(callee(n))]
    if spread and not all({k.arg for k in n.keywords} & SPREADS for n in drawn):
        return line
    drawn = {n.lineno for n in drawn}
    return drawn.pop() if len(drawn) == 1 else line


def _where_all_are_drawn(text: Text) -> int | None:
    """The one line of an `__init__` that draws numbers, where they are kept by a name as text."""
    begins = [f for f in text.functions if f.name == "__init__"]
    calls = [n for f in begins for n in own_nodes(f) if isinstance(n, ast.Call)]
    drawn = {n.lineno for n in calls if DRAWS.search(callee(n))}
    by_name = any(callee(n) in BY_NAME for n in calls)
    return drawn.pop() if by_name and len(drawn) == 1 else None


def _where_it_drops(finding: Finding, text: Text) -> Finding:
    """A finding that something else is dropped than asked for, with the one line that drops; where
    that drops what a softmax gave, it is right, and something is wrong behind it."""
    drops = _drops(text)
    lines = {statement.lineno for _, statement in drops}
    if len(lines) != 1:
        return finding
    line, how = lines.pop(), "what is dropped here is something else"
    if len(drops) == 1 and drops[0][0].args and _of_a_softmax(drops[0][0].args[0], text):
        said = f"What dropout gives in line {line} is changed again behind it"
        _, of, rest = finding.message.partition(": ")
        finding = replace(finding, message=f"{said}{of}{rest}" if of else f"{said}.")
        changed = _changed_again(drops[0][1], text)
        if changed is None:
            return finding
        line, how = changed, "what dropout gave is changed here"
    where = Where(last_right=None, first_wrong=line, how=how)
    return replace(finding, where=where, line=line, statement=text.statement(line))


def _changed_again(drop: ast.stmt, text: Text) -> int | None:
    """The one line behind a dropout that gives the name of what it gave to something else made of
    that by itself."""
    names = {t.id for t in getattr(drop, "targets", ()) if isinstance(t, ast.Name)}
    function = function_around(text, drop.lineno)
    lines = set()
    for node in text.statements:
        if node.lineno <= drop.lineno or function_around(text, node.lineno) is not function:
            continue
        target = getattr(node, "target", None) or next(iter(getattr(node, "targets", ())), None)
        value = getattr(node, "value", None)
        if not isinstance(target, ast.Name) or target.id not in names or value is None:
            continue
        used = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} - {"self", "torch", "F"}
        if used <= names:
            lines.add(node.lineno)
    return lines.pop() if len(lines) == 1 else None


def and_twice(found: list[Finding], mistakes: Sequence, text: Text) -> list[Finding]:
    """The findings, the first that fails with a word on a second dropout, on one behind the weights
    or on one that is never used, where the exercise counts one behind the weights as a mistake.
    Dice do not show beside what is wrong without them."""
    number = next((i for i, f in enumerate(found) if f.fails), None)
    if number is None or not any(check in DROPPED_BEHIND for check, *_ in mistakes):
        return found
    finding, said = found[number], of_dropout(text)
    if finding.verdict != Verdict.WRONG or "dropout." in finding.check or not said:
        return found
    message = f"{finding.message} And beside that: {said}"
    return [*found[:number], replace(finding, message=message), *found[number + 1 :]]


def of_training(found: list[Finding], text: Text) -> list[Finding]:
    """The findings of an answer of which no call without dice went wrong, the first that fails with
    the line that drops a share of its own."""
    number = next((i for i, f in enumerate(found) if f.fails and f.verdict == Verdict.WRONG), None)
    if number is None or found[number].line is not None:
        return found
    return [*found[:number], _with_its_share(found[number], text), *found[number + 1 :]]


def _with_its_share(finding: Finding, text: Text) -> Finding:
    """A finding that another share is dropped, or of what only training shows, with the one line
    that makes a dropout of a number of its own and leaves the argument unused."""
    layers = [n for n in text.nodes if isinstance(n, ast.Call) and callee(n) == "Dropout"]
    if len(layers) != 1 or len(_drops(text)) != 1:
        return finding
    line = layers[0].lineno
    share = [*layers[0].args, *(k.value for k in layers[0].keywords if k.arg == "p")]
    if (share and not isinstance(share[0], ast.Constant)) or not _leaves_a_share(line, text):
        return finding
    number = f"{share[0].value}" if share else "0.5, which it has by itself"
    where = Where(None, line, how=f"the share is a number here, {number}, and not the argument")
    return replace(finding, where=where, line=line, statement=text.statement(line))


def _leaves_a_share(line: int, text: Text) -> bool:
    """Whether the function around this line has an argument for dropout and does not use it."""
    function = function_around(text, line)
    given = {a.arg for a in (*function.args.args, *function.args.kwonlyargs)} if function else set()
    read = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)} if function else set()
    return any("drop" in name for name in given - read)


def _drops(text: Text) -> list[tuple[ast.Call, ast.stmt]]:
    """The calls of dropout, each with its statement."""
    layers = {name for name in text.attributes if text.sets(name, "Dropout")}
    found = []
    for call in (n for n in text.nodes if isinstance(n, ast.Call)):
        called = callee(call)
        statement = text.around(call.lineno)
        if statement is not None and (called in layers or called in ("dropout", "dropout_")):
            found.append((call, statement))
    return found


def of_dropout(text: Text) -> str:
    """What the text shows to be wrong with dropout, in words; '' where it shows nothing."""
    lines, unused, behind = dropped_twice(text), never_used(text), dropped_behind(text)
    if lines is not None:
        return says_twice(lines)
    if unused is not None:
        return says_unused(*unused)
    return says_behind(behind) if behind is not None else ""


def dropped_twice(text: Text) -> tuple[int, int] | None:
    """The lines where a function drops what a softmax gave, and something behind it once more; None
    where the text does not show just that."""
    drops = sorted(_drops(text), key=lambda each: each[0].lineno)
    if len(drops) != 2 or any(not call.args for call, _ in drops):
        return None
    (first, at), (second, behind) = drops
    functions = [function_around(text, line.lineno) for line in (at, behind)]
    if behind.lineno <= at.lineno or functions[0] is not functions[1]:
        return None
    if not _of_a_softmax(first.args[0], text) or _of_a_softmax(second.args[0], text):
        return None
    return at.lineno, behind.lineno


def says_twice(lines: tuple[int, int]) -> str:
    """That dropout acts twice, in words."""
    return (
        f"Dropout acts twice: on what the softmax gives, in line {lines[0]}, and once more in line "
        f"{lines[1]}. Only the first is asked for."
    )


def never_used(text: Text) -> tuple[int, str] | None:
    """The one dropout layer that a cell makes and nowhere uses, where nothing else drops: its line
    and its name."""
    names = [name for name in sorted(text.attributes) if text.sets(name, "Dropout")]
    read = {n.attr for n in text.nodes if isinstance(n, ast.Attribute) and not _is_stored(n)}
    alone = len(names) == 1 and names[0] not in read and not _drops(text)
    line = _made_in(text, names[0]) if alone else None
    calls = [n for n in text.nodes if isinstance(n, ast.Call)]
    by_name = any(callee(n) in ("getattr", "children", "modules") for n in calls)
    return (line, names[0]) if line is not None and not by_name else None


def says_unused(line: int, name: str) -> str:
    """That a dropout layer does nothing, in words."""
    return f"`self.{name}`, made in line {line}, is used nowhere, so that nothing is dropped."


def dropped_behind(text: Text) -> int | None:
    """The line of the one dropout, where it drops what weights and values make together; None where
    the text does not show just that."""
    drops = _drops(text)
    if len(drops) != 1 or not drops[0][0].args or not _mixes(drops[0][0].args[0], text):
        return None
    return drops[0][1].lineno


def says_behind(line: int) -> str:
    """That dropout acts behind the weights, in words."""
    return (
        f"Dropout acts, in line {line}, on what the weights make of the values, and not on the "
        "weights."
    )


def _mixes(node: ast.expr, text: Text) -> bool:
    """Whether an expression is a product of what a softmax gave, with no dropout in it."""
    if isinstance(node, ast.Name):
        value = text.assigned(node.id, node.lineno)
        return value is not None and _mixes(value, text)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult) and _of_a_softmax(node.left, text)
    if not isinstance(node, ast.Call) or callee(node) not in ("matmul", "bmm", "einsum"):
        return False
    inner = [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return any(_of_a_softmax(each, text) for each in (*inner, *node.args))


def _is_stored(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def _with_both(finding: Finding, text: Text) -> Finding | None:
    """A finding of dropout behind the weights, where the text drops what a softmax gave as well."""
    lines = dropped_twice(text)
    if lines is None:
        return None
    _, result, rest = finding.message.partition(" The result has")
    message, line = f"{says_twice(lines)}{result}{rest}", lines[1]
    where = Where(last_right=lines[0], first_wrong=line, how="it is dropped a second time here")
    statement = text.statement(line)
    return replace(finding, message=message, where=where, line=line, statement=statement)


def _of_a_softmax(node: ast.expr, text: Text) -> bool:
    """Whether an expression is what a softmax gave, perhaps with a mask multiplied in."""
    if isinstance(node, ast.Name):
        value = text.assigned(node.id, node.lineno)
        return value is not None and _of_a_softmax(value, text)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        return _of_a_softmax(node.left, text)
    if not isinstance(node, ast.Call):
        return False
    called = callee(node)
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    made = called in ("masked_fill", "nan_to_num") and inner is not None
    return called == "softmax" or (made and _of_a_softmax(inner, text))


def _made_in(text: Text, name: str) -> int | None:
    """The line of the one statement that sets `self.name`, or registers something as `name`."""
    found = set()
    for node in text.statements:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        parts = [p for t in targets if t is not None for p in ast.walk(t)]
        if any(_is_own(part, name) for part in parts):
            found.add(node.lineno)
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            first = call.args[0] if call.args else None
            named = isinstance(first, ast.Constant) and first.value == name
            if named and call.func.attr in REGISTERS:
                found.add(node.lineno)
    found = found or _by_its_key(text, name) or _by_a_name_that_varies(text)
    return found.pop() if len(found) == 1 else None


def _by_its_key(text: Text, name: str) -> set[int]:
    """The lines of an `__init__` with `setattr` on which something is kept by this name: the key of
    a dict, `dict(k=size)`, or what is listed."""
    begins = [[*own_nodes(f)] for f in text.functions if f.name == "__init__"]
    begins = [nodes for nodes in begins if any(callee(n) == "setattr" for n in _calls(nodes))]
    named = {n.lineno for nodes in begins for n in nodes if getattr(n, "value", None) == name}
    return named | {
        k.value.lineno
        for nodes in begins
        for n in _calls(nodes)
        for k in n.keywords
        if k.arg == name
    }


def _by_a_name_that_varies(text: Text) -> set[int]:
    """The lines of an `__init__` on which layers are kept under names that a loop goes through."""
    begins = [[*own_nodes(f)] for f in text.functions if f.name == "__init__"]
    calls = [n for nodes in begins for n in _calls(nodes) if callee(n) in ADDS and n.args]
    return {n.lineno for n in calls if isinstance(n.args[0], ast.Name)}


def _calls(nodes: Sequence[ast.AST]) -> list[ast.Call]:
    return [n for n in nodes if isinstance(n, ast.Call)]


def _is_own(node: ast.AST, name: str) -> bool:
    own = isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Store)
    return own and isinstance(node.value, ast.Name)
