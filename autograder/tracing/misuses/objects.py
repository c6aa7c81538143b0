"""Errors of objects: what is no tensor, is None, or was never begun."""

from __future__ import annotations

import ast
import math

from autograder.tracing.misuses.error import Error
from autograder.tracing.text import (
    REGISTERS,
    callee,
    ends_in_a_comma,
    function_around,
    gives_back,
)

# What the output of a model of transformers holds only where it was asked for, and by what.
ASKED_FOR = {"attentions": "output_attentions", "hidden_states": "output_hidden_states"}
IN_PLACE = ("append", "extend", "insert", "sort", "reverse")  # of a list, which return nothing


def late_super(error: Error) -> str:
    late = begins_behind(error)
    if late is None:
        return ""
    return (
        f"`{error.text.of(late)}` comes too late: it belongs first in `__init__`, before a layer "
        "is kept in `self`."
    )


def begins_behind(error: Error) -> ast.Call | None:
    """The call that begins an object, where it stands behind the line of its `__init__` that
    stops."""
    function = function_around(error.text, error.line or 0)
    calls = [n for n in ast.walk(function) if isinstance(n, ast.Call)] if function else []
    begins = (n for n in calls if callee(n) == "__init__" and n.lineno > (error.line or 0))
    return next(begins, None)


def no_super(error: Error) -> str:
    return (
        "`super().__init__()` is missing: it comes first in `__init__`, before a layer is kept in "
        "`self`."
    )


def no_self(error: Error) -> str:
    function = error.text.function(error.found.group(1))
    if function is None or not error.text.is_method(function):
        return ""
    names = [a.arg for a in function.args.args]
    if names[:1] != ["self"]:
        return f"`{function.name}` is a method: its first argument is `self`, the object itself."
    return ""


def as_a_hook(error: Error) -> str:
    """A function that is handed over, as to a hook, and called with other arguments than it has."""
    function = error.text.function(error.found.group(1))
    called = {callee(n) for n in error.nodes() if isinstance(n, ast.Call)}
    if function is None or function.name in called:
        return ""
    own = error.text.is_method(function)
    has, given = (int(error.found.group(i)) - own for i in (2, 3))
    return _handed_over(function.name, has, given)


def where_it_hangs(error: Error) -> int:
    """The line that hangs a function on a layer for what comes out, where it reads what goes in, or
    for what goes in, where it reads what comes out; else that of the function."""
    function = error.text.function(error.found.group(1))
    given = [a.arg for a in function.args.args if a.arg != "self"]
    inside = list(ast.walk(function))
    read = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    parts = [n for n in inside if isinstance(n, ast.Subscript)]
    before = len(given) == 2 and any(error.text.of(n) == f"{given[1]}[0]" for n in parts)
    behind = len(given) == 3 and given[2] in read
    wanted = "register_forward_pre_hook" if before else "register_forward_hook"
    hung = [
        n.lineno
        for n in error.text.nodes
        if isinstance(n, ast.Call) and callee(n).endswith("_hook") and callee(n) != wanted
        if n.args and error.text.of(n.args[0]).rpartition(".")[2] == function.name
    ]
    return hung[0] if len(hung) == 1 and (before or behind) else function.lineno


def with_less(error: Error) -> str:
    """A function that is handed over, as to a hook, and called with fewer arguments than it has."""
    name = error.found.group(1)
    function = error.text.function(name)
    calls = [n for n in error.text.nodes if isinstance(n, ast.Call)]
    handed = {getattr(each, "id", "") for n in calls for each in n.args}
    if function is None or name not in handed - {callee(n) for n in calls}:
        return ""
    has = len(function.args.args)
    return _handed_over(name, has, has - int(error.found.group(2)))


def _handed_over(name: str, has: int, given: int) -> str:
    return f"`{name}`, which is handed over, has {has} arguments and is called with {given}."


def a_list(error: Error) -> str:
    makes = (ast.List, ast.ListComp)
    name = next((name for name, value in error.names() if isinstance(value, makes)), "")
    what = f"`{name}` is a Python list" if name else "One side is a Python list"
    return f"{what}: `torch.stack(...)` makes one tensor of a list of tensors of one shape."


def with_the_inputs(error: Error) -> str:
    """A forward hook whose second argument is meant to be the output: `def hook(layer, out, n=n)`,
    which gets the inputs by that name, and the output by the next."""
    function = inputs_as_output(error)
    if function is None:
        return ""
    name, later = (a.arg for a in function.args.args[1:3])
    return (
        f"`{function.name}` is called with the layer, its inputs, a tuple, and its output: the "
        f"inputs arrive as `{name}`, and the output as `{later}`."
    )


def inputs_as_output(error: Error) -> ast.FunctionDef | None:
    """The forward hook that takes its inputs for the output."""
    function = function_around(error.text, error.line or 0)
    if function is None or not 2 < len(function.args.args) <= 2 + len(function.args.defaults):
        return None
    calls = [n for n in error.text.nodes if isinstance(n, ast.Call) and n.args]
    hooked = {getattr(n.args[0], "id", "") for n in calls if callee(n) == "register_forward_hook"}
    used = {
        n.value.id
        for n in error.nodes()
        if isinstance(n, ast.Attribute | ast.Subscript)
        if isinstance(n.value, ast.Name)
    }
    return function if function.name in hooked and function.args.args[1].arg in used else None


def given_whole(error: Error) -> str:
    """A tuple that a function of the student's is given, as a hook is of what gives one."""
    function = function_around(error.text, error.line or 0)
    given = {a.arg for a in function.args.args} if function is not None else set()
    used = [n.value for n in error.nodes() if isinstance(n, ast.Attribute)]
    name = next((n.id for n in used if isinstance(n, ast.Name) and n.id in given), "")
    where = f"`{function.name}` is given a tuple as `{name}`: several things side by side."
    return f"{where} Take the one that is meant, or hang on what gives a tensor." if name else ""


def a_comma(error: Error) -> str:
    """A tuple that a comma at the end of a line has made."""
    used = {error.text.of(n) for n in error.nodes() if isinstance(n, ast.Name | ast.Attribute)}
    called = {callee(n) for n in error.nodes() if isinstance(n, ast.Call)}
    made = [n for n in error.text.statements if isinstance(n, ast.Assign | ast.Return)]
    for node in made:
        function = function_around(error.text, node.lineno)
        if not ends_in_a_comma(node.value, error.text.source):
            continue
        end = f"the comma at the end of line {node.value.end_lineno}"
        if isinstance(node, ast.Assign) and {*map(error.text.of, node.targets)} & used:
            name = next(t for t in map(error.text.of, node.targets) if t in used)
            return f"`{name}` is a tuple: {end} makes one of it."
        if isinstance(node, ast.Return) and function is not None and function.name in called:
            return f"`{function.name}` returns a tuple: {end} makes one of it."
    return ""


def key_made_before(error: Error) -> str:
    """A key that is no key, where a line above makes it."""
    found = key_of(error)
    if found is None:
        return ""
    name, made = found
    return (
        f"`{name}`, of line {made.lineno}, is no key that is there: print the keys that there are."
    )


def key_of(error: Error) -> tuple[str, ast.expr] | None:
    """The key that a statement looks up in what the text does not fill itself, and the text that it
    was given last: `key = f"h.{layer}.attn"`."""
    filled = _filled(error)
    for node in (n for n in error.nodes() if isinstance(n, ast.Subscript)):
        name = node.slice.id if isinstance(node.slice, ast.Name) else ""
        made = error.text.assigned(name, error.line or 0)
        text = isinstance(made, ast.JoinedStr) or isinstance(getattr(made, "value", None), str)
        if text and error.text.of(node.value) not in filled:
            return name, made
    return None


def filled_elsewhere(error: Error) -> str:
    """A key of what other lines of the text fill, so that one of these may be wrong."""
    places = (n for n in error.nodes() if isinstance(n, ast.Subscript))
    filled = _filled(error)
    name = next((text for n in places if (text := error.text.of(n.value)) in filled), "")
    return f"`{name}` is filled by other lines: print the keys that it has here." if name else ""


def _filled(error: Error) -> set[str]:
    """What the text fills place by place: `found` of `found[n] = x`."""
    places = [n for n in error.text.nodes if isinstance(n, ast.Subscript)]
    return {error.text.of(n.value) for n in places if isinstance(n.ctx, ast.Store)}


def kept_nothing(error: Error) -> str:
    """What a call that registers something gives back, put in the place of what it registered."""
    node = registers(error)
    if node is None:
        return ""
    name, called = error.text.of(node.targets[0]), callee(node.value)
    return (
        f"`{called}` keeps what it is given by itself and returns nothing, so that line "
        f"{node.lineno} makes `{name}` None: call it without assigning what it gives."
    )


def not_asked_for(error: Error) -> str:
    """What a model gives only where it is asked: `out.attentions`."""
    call, name = asks_nothing(error)
    if call is None:
        return ""
    return (
        f"`{name}` is None: line {call.lineno} does not ask the model for it. "
        f"Call it with `{ASKED_FOR[name]}=True`."
    )


def asks_nothing(error: Error) -> tuple[ast.Call | None, str]:
    """The call of a model that does not ask for what the line reads of it, and what that is."""
    here = (n for n in error.text.nodes if getattr(n, "lineno", 0) == error.line)
    for attribute in (n for n in here if isinstance(n, ast.Attribute) and n.attr in ASKED_FOR):
        for call in error.text.made(getattr(attribute.value, "id", "")):
            asked = {k.arg for k in call.keywords} if isinstance(call, ast.Call) else {None}
            if not asked & {ASKED_FOR[attribute.attr], None}:
                return call, attribute.attr
    return None, ""


def registers(error: Error) -> ast.Assign | None:
    """The statement that assigns what such a call gives to what the line reads."""
    used = {error.text.of(n) for n in error.nodes() if isinstance(n, ast.Attribute)}
    for node in error.text.statements:
        registers = isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if registers and callee(node.value) in REGISTERS and error.text.of(node.targets[0]) in used:
            return node
    return None


def a_none(error: Error) -> str:
    used = {n.id for n in error.nodes() if isinstance(n, ast.Name)}
    for node in error.text.statements:  # in a loop it may stand behind, or in this very line
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            names = {t.id for t in node.targets if isinstance(t, ast.Name)} & used
            if names and callee(node.value) in IN_PLACE:
                return (
                    f"`{callee(node.value)}` changes its list and returns nothing, so that "
                    f"`{names.pop()}` becomes None: call it without assigning what it gives."
                )
    for name, value in error.names():
        if not isinstance(value, ast.Call):
            continue
        called = callee(value)
        function = error.text.function(called)
        if function is not None and not gives_back(function):
            return f"`{called}` returns nothing, so that `{name}` is None. End it with a `return`."
    silent = [f for f in error.text.functions if not gives_back(f) and error.text.is_used(f)]
    if len(silent) == 1:
        called = f"`{silent[0].name}` returns nothing, so that its call gives None"
        return f"{called}. End it with a `return`."
    return "One side is None: a function without a `return` gives that."


def a_layer(error: Error) -> str:
    for name, value in error.names():
        if isinstance(value, ast.Attribute):
            layer = error.text.of(value)
            return f"`{name}` is the layer itself: call it with its input, `{layer}(...)`."
    called = {id(n.func) for n in error.nodes() if isinstance(n, ast.Call)}
    owners = {id(n.value) for n in error.nodes() if isinstance(n, ast.Attribute)}
    for node in error.nodes():
        alone = isinstance(node, ast.Attribute) and id(node) not in called | owners
        if alone and error.text.sets(node.attr, error.found.group(1)):
            layer = error.text.of(node)
            return f"`{layer}` is the layer itself: call it with its input, `{layer}(...)`."
    return "One side is a layer itself: a layer is called with its input."


def size_called(error: Error) -> str:
    return "`shape` is no function: write `.shape[...]`, or `.size(...)`."


def size_indexed(error: Error) -> str:
    if error.calls("size"):
        return "`size` is a function: write `.size(...)`, or `.shape[...]`."
    return "A function is indexed: it has to be called, with round brackets."


def one_number(error: Error) -> str:
    for name, value in error.names():
        if isinstance(value, ast.Name | ast.Subscript | ast.Call) and _is_one(error, name):
            what = error.text.of(value)
            return f"`{name}` is one number here: line {value.lineno} sets it to `{what}`."
    return ""


def _is_one(error: Error, name: str) -> bool:
    """Whether the statement takes a part of a variable."""
    parts = (n for n in error.nodes() if isinstance(n, ast.Subscript))
    return any(isinstance(n.value, ast.Name) and n.value.id == name for n in parts)


def a_number(error: Error) -> str:
    name, kind = error.found.group(1), error.found.group(2)
    instead = f" `math.{name}` takes numbers." if hasattr(math, name) else ""
    return f"`torch.{name}` takes a tensor and is given a number ({kind}).{instead}"


def no_list(error: Error) -> str:
    name = error.found.group(1)
    return (
        f"`torch.{name}` takes its tensors together, in one list: `torch.{name}([a, b], dim=...)`."
    )
