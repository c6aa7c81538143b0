"""Slips that an error's own text says: what it means, in terms of the student's cell.

A name is printed only where the cell's text proves it.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from autograder.course.asking import STOPS
from autograder.tracing.text import (
    REGISTERS,
    Text,
    alone,
    callee,
    ends_in_a_comma,
    function_around,
    gives_back,
    is_docstring,
    overwritten,
)


@dataclass(frozen=True)
class Error:
    """An error in a student's cell: its match, the cell's text, the line, the operands' sizes."""

    found: re.Match
    text: Text
    line: int | None
    shapes: tuple[tuple[int, ...], ...] = ()

    @property
    def said(self) -> str:
        """The text of the error."""
        return self.found.string

    def nodes(self) -> list[ast.AST]:
        """The syntax of the statement that stopped."""
        statement = self.text.around(self.line or 0)
        return list(ast.walk(statement)) if statement is not None else []

    def names(self) -> Iterator[tuple[str, ast.expr]]:
        """The variables of the statement, each with what it was assigned last before it."""
        for node in self.nodes():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                value = self.text.assigned(node.id, self.line or 0)
                if value is not None:
                    yield node.id, value

    def calls(self, attribute: str) -> bool:
        """Whether the statement calls, or takes, something of this name."""
        return any(isinstance(n, ast.Attribute) and n.attr == attribute for n in self.nodes())


def late_super(error: Error) -> str:
    late = _begins_behind(error)
    if late is None:
        return ""
    return (
        f"`{error.text.of(late)}` comes too late: it belongs first in `__init__`, before a layer "
        "is kept in `self`."
    )


def _begins_behind(error: Error) -> ast.Call | None:
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
    return (
        f"`{function.name}`, which is handed over, has {has} arguments and is called with {given}."
    )


def a_list(error: Error) -> str:
    makes = (ast.List, ast.ListComp)
    name = next((name for name, value in error.names() if isinstance(value, makes)), "")
    what = f"`{name}` is a Python list" if name else "One side is a Python list"
    return f"{what}: `torch.stack(...)` makes one tensor of a list of tensors of one shape."


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


def kept_nothing(error: Error) -> str:
    """What a call that registers something gives back, put in the place of what it registered."""
    node = _registers(error)
    if node is None:
        return ""
    name, called = error.text.of(node.targets[0]), callee(node.value)
    return (
        f"`{called}` keeps what it is given by itself and returns nothing, so that line "
        f"{node.lineno} makes `{name}` None: call it without assigning what it gives."
    )


def not_asked_for(error: Error) -> str:
    """What a model gives only where it is asked: `out.attentions`."""
    call, name = _asks_nothing(error)
    if call is None:
        return ""
    return (
        f"`{name}` is None: line {call.lineno} does not ask the model for it. "
        f"Call it with `{ASKED_FOR[name]}=True`."
    )


def _asks_nothing(error: Error) -> tuple[ast.Call | None, str]:
    """The call of a model that does not ask for what the line reads of it, and what that is."""
    here = (n for n in error.text.nodes if getattr(n, "lineno", 0) == error.line)
    for attribute in (n for n in here if isinstance(n, ast.Attribute) and n.attr in ASKED_FOR):
        for call in error.text.made(getattr(attribute.value, "id", "")):
            asked = {k.arg for k in call.keywords} if isinstance(call, ast.Call) else {None}
            if not asked & {ASKED_FOR[attribute.attr], None}:
                return call, attribute.attr
    return None, ""


def _registers(error: Error) -> ast.Assign | None:
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


def not_joined(error: Error) -> str:
    shapes = " and ".join(str(list(s)) for s in error.shapes[:3])
    given = f" They have the shapes {shapes}." if shapes else ""
    return f"Only along the axis on which tensors are joined may their sizes differ.{given}"


def no_such_shape(error: Error) -> str:
    asked = [int(n) for n in re.findall(r"-?\d+", error.found.group(1))]
    there = int(error.found.group(2))
    why = _other_sizes(error) or _one_other_size(error, asked, there)
    own = f" (its shape is {list(error.shapes[0])})" if error.shapes else ""
    if -1 in asked or not asked:
        known = math.prod(n for n in asked if n != -1)
        return f"{there} numbers cannot be cut into parts of {known}{own}.{why}"
    product = " * ".join(map(str, asked))
    numbers = f"The new shape has {product} = {math.prod(asked)} numbers"
    return f"{numbers}, the tensor {there}{own}.{why}"


def _other_sizes(error: Error) -> str:
    """That an argument whose sizes are used was overwritten."""
    for node in error.nodes():
        sizes = isinstance(node, ast.Attribute) and node.attr in ("shape", "size")
        name = node.value.id if sizes and isinstance(node.value, ast.Name) else ""
        function = function_around(error.text, error.line or 0) if name else None
        if function is not None and name in [a.arg for a in function.args.args]:
            before = overwritten(error.text, name, error.line or 0)
            if before is not None:
                return (
                    f" `{name}` was overwritten in line {before}: its sizes are no longer those of "
                    "what came in."
                )
    return ""


def _one_other_size(error: Error, asked: list[int], there: int) -> str:
    """Which one size of a new shape would have to be another, where it is a variable."""
    calls = [n for n in error.nodes() if isinstance(n, ast.Call)]
    calls = [n for n in calls if callee(n) in ("view", "reshape") and len(n.args) == len(asked)]
    fitting = []
    for place, size in enumerate(asked):
        rest = math.prod(n for i, n in enumerate(asked) if i != place)
        if rest > 0 and there % rest == 0 and there // rest != size:
            fitting.append((place, there // rest))
    if len(fitting) != 1 or not calls or -1 in asked:
        return ""
    place, fits = fitting[0]
    names = {n.args[place].id for n in calls if isinstance(n.args[place], ast.Name)}
    if len(names) != 1:
        return ""
    name = names.pop()
    of, line = error.text.size_of(name, error.line or 0)
    whose = f", a size of `{of}` (line {line})" if of else ""
    return f" `{name}` is {asked[place]} here{whose}; {fits} would fit."


def numpy_array(error: Error) -> str:
    return "It is given a numpy array. `torch.from_numpy(...)` makes a tensor of one."


def no_bools(error: Error) -> str:
    return "The mask holds numbers: `mask.bool()` or `mask == 1` makes one of True and False."


def without_an_argument(error: Error) -> str:
    called, lost = error.found.group(1).rpartition(".")[2], re.findall(r"'(\w+)'", error.found[2])
    function = error.text.function(called)
    if function is None:
        return ""
    names = [f"`{a.arg}`" for a in function.args.args if a.arg != "self"]
    quoted = " and ".join(f"`{name}`" for name in lost)
    return f"`{called}` takes {', '.join(names)}, in this order; {quoted} is left out here."


def without_dim(error: Error) -> str:
    return f"`{error.found.group(1)}` has to be told its axis: `dim=-1` is the last one."


def another_dtype(error: Error) -> str:
    if re.search(r"double != float|float != double|Double and Float|Float and Double", error.said):
        return (
            "One tensor has float64 numbers and the other float32: `.double()` of one belongs to "
            "the other, too."
        )
    return (
        "One tensor holds whole numbers (or bools) and the other floating ones: `.float()` makes "
        "floating numbers of them."
    )


def another_device(error: Error) -> str:
    return (
        "A tensor was made on another device than the one it meets: make it there, with "
        "`device=x.device`."
    )


def not_expanded(error: Error) -> str:
    if not error.calls("expand"):
        return "What is written has another size than the place that it is written into."
    own = f" Its shape is {list(error.shapes[0])}." if error.shapes else ""
    return f"`expand` lengthens axes of size 1 only; an axis of another size keeps it.{own}"


def no_attribute(error: Error) -> str:
    kind, name = error.found.group(1), error.found.group(2)
    if kind == "Tensor":
        known, start = [n for n in dir(torch.Tensor) if not n.startswith("_")], "A tensor has no"
    else:
        known, start = sorted(error.text.attributes), f"`{kind}` has no"
    likely = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    hint = f" `{likely[0]}` is there: is that the one?" if likely else ""
    if kind != "Tensor" and not likely:
        own = [n.value for n in error.nodes() if isinstance(n, ast.Attribute) and n.attr == name]
        own = [n for n in own if isinstance(n, ast.Name) and n.id == "self"]
        hint = f" `self.{name}` is set nowhere in this class." if own else ""
    return f"{start} `{name}`.{hint}" if hint else ""


def no_truth(error: Error) -> str:
    own = [
        n.func.id for n in error.nodes() if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
    ]
    for name in own:
        if name in ("max", "min") and name not in error.text.stored:
            return (
                f"Python's own `{name}` compares the rows of a tensor as wholes: "
                f"`.a{name}(dim=-1, keepdim=True)` gives that of each row, `.{name}()` that of all."
            )
    return (
        "A tensor of several numbers is neither true nor false: compare them one by one "
        "(`torch.where`), or ask for `.any()` or `.all()`."
    )


def no_whole_number(error: Error) -> str:
    divided = [(name, value) for name, value in error.names() if _is_divided(value)]
    if divided:
        name, value = divided[0]
        return (
            f"`{name}` is a float, since `/` in line {value.lineno} always gives one: sizes are "
            "whole numbers, which `//` gives."
        )
    kept = {n.attr for n in error.nodes() if isinstance(n, ast.Attribute)} & error.text.attributes
    for node in error.text.statements:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Attribute) and target.attr in kept and _is_divided(node.value):
            return (
                f"`self.{target.attr}` is a float, since `/` in line {node.lineno} always gives "
                "one: sizes are whole numbers, which `//` gives."
            )
    if any(_is_divided(node) for node in error.nodes()):
        return "`/` always gives a float: sizes are whole numbers, which `//` gives."
    return ""


def _is_divided(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)


def no_index(error: Error) -> str:
    calls = (n for n in error.nodes() if isinstance(n, ast.Call) and callee(n) == "gather")
    index = next((call.args[-1] for call in calls if call.args), None)
    if index is None:
        return ""
    return (
        f"`{error.text.of(index)}` says which numbers to pick, and has another number of axes than "
        "what they are picked from: `unsqueeze(-1)` adds one, and `squeeze(-1)` takes it away from "
        "what comes back."
    )


def no_matrix(error: Error) -> str:
    return "`.t()` turns tables of two axes alone: `.transpose(-2, -1)` exchanges the last two."


def mask_in_an_index(error: Error) -> str:
    return (
        "A mask in an index is laid on the first axes, `[:, mask]` on those behind the first; "
        "`masked_fill` lays it on the last ones."
    )


def no_number(error: Error) -> str:
    if any(isinstance(n, ast.Call) and callee(n) == "tensor" for n in error.nodes()):
        return a_list(error)
    used = [n.attr for n in error.nodes() if isinstance(n, ast.Attribute) and n.attr != "inf"]
    used = [name for name in used if f"math.{name}" in error.text.statement(error.line or 0)]
    if used:
        return f"`math.{used[0]}` takes one number and is given a tensor: `torch` has the like."
    return "One number is asked for here, and a tensor of several is given."


def set_later(error: Error) -> str:
    name = error.found.group(1)
    return (
        f"`{name}` is set in this function, but not before this line, or on a path that was not "
        "taken. A name that a function sets anywhere is its own everywhere in it."
    )


def tensor_called(error: Error) -> str:
    return (
        "A tensor is called as if it were a function: a `*` or `@` is missing, or a name is used "
        "twice."
    )


def not_unpacked(error: Error) -> str:
    for node in error.nodes():
        value = node.value if isinstance(node, ast.Assign) else None
        value = value.func if isinstance(value, ast.Call) else value
        if isinstance(value, ast.Attribute) and value.attr in ("shape", "size"):
            what, names = error.text.of(value.value), len(getattr(node.targets[0], "elts", ()))
            more = "more" if error.found.group(1) == "too many" else "fewer"
            return f"`{what}` has {more} axes than the {names} names on the left."
    sizes = f" ({list(error.shapes[0])})" if error.shapes else ""
    return (
        "There are other parts than names on the left. A tensor is unpacked along its first "
        f"axis{sizes}."
    )


def no_slice(error: Error) -> str:
    """A tensor of several numbers as the begin or end of a slice."""
    ends = [e for n in error.nodes() if isinstance(n, ast.Slice) for e in (n.lower, n.upper) if e]
    if not ends:
        return ""
    shown = " and ".join(f"`{error.text.of(each)}`" for each in ends[:2])
    return f"A slice begins and ends at one number each, and {shown} may hold several."


def stays_empty(error: Error) -> str:
    for name, value in error.names():
        if isinstance(value, ast.List) and not value.elts:
            return f"`{name}` is the empty list of line {value.lineno} still: nothing is put in."
    return ""


# What does not fit, or is of another type, may have been made so on any line before.
ANY_BEFORE = re.compile(
    r"must match the size|shapes cannot be multiplied|same number of dimensions|[Ee]xpected size"
    r"|out of bounds for dimension|too many indices|must match the existing size|shape mismatch"
    r"|not implemented for '|expected Tensor as element|non-empty|expected BoolTensor"
    r"|used as indices|string indices|'str' object has no attribute|has no attribute 'remove'"
    r"|(?:list|tuple|pop)(?: from empty list| index out of range)|pop from an empty"
)
# What the output of a model of transformers holds only where it was asked for, and by what.
ASKED_FOR = {"attentions": "output_attentions", "hidden_states": "output_hidden_states"}
IN_PLACE = ("append", "extend", "insert", "sort", "reverse")  # of a list, which return nothing
_NOT_BEGUN = r"before Module\.__init__\(\) call|no attribute '_(?:modules|parameters|buffers)'"
_TAKES = r"(\w+)\(\) takes (\d+) positional arguments? but (\d+) (?:was|were) given"
_OPERANDS = r"unsupported operand type\(s\) for [^:]{1,9}: .*"
# (the error's type or '', a pattern in its text, what is said)
MISUSES: list[tuple[str, str, Callable[[Error], str]]] = [
    ("TypeError", r"\btuple\b(?! of)", a_comma),
    ("AttributeError", r"'tuple' object has no attribute", a_comma),
    ("AttributeError", r"'tuple' object has no attribute", given_whole),
    ("AttributeError", _NOT_BEGUN, late_super),
    ("AttributeError", _NOT_BEGUN, no_super),
    ("TypeError", _TAKES, no_self),
    ("TypeError", _TAKES, as_a_hook),
    ("TypeError", _OPERANDS + r"'list'", a_list),
    ("TypeError", r"NoneType", not_asked_for),
    ("TypeError", r"NoneType", kept_nothing),
    ("AttributeError", r"'NoneType' object has no attribute", kept_nothing),
    ("TypeError", _OPERANDS + r"'NoneType'", a_none),
    ("AttributeError", r"'NoneType' object has no attribute", a_none),
    ("TypeError", _OPERANDS + r"'(Linear|Dropout|ModuleList|Softmax|Sequential)'", a_layer),
    ("AttributeError", r"'(list|tuple)' object has no attribute", a_list),
    ("TypeError", r"'torch\.Size' object is not callable", size_called),
    ("TypeError", r"'(builtin_function_or_method|method)' object is not subscriptable",
     size_indexed),
    ("TypeError", r"'(?:int|float)' object is not subscriptable", one_number),
    ("TypeError", r"(cat|stack)\(\): argument 'tensors' .*must be tuple of Tensors", no_list),
    ("TypeError", r"(\w{1,30})\(\): argument '\w+' \(position 1\) must be Tensor, not (int|float)",
     a_number),
    ("TypeError", r"numpy\.ndarray", numpy_array),
    ("RuntimeError", r"Sizes of tensors must match except in dimension", not_joined),
    ("RuntimeError", r"shape '(\[[-\d, ]{1,200}\])' is invalid for input of size (\d{1,12})",
     no_such_shape),
    ("RuntimeError", r"only supports boolean masks|mask.{1,20}dtype float", no_bools),
    ("TypeError", r"invert\) is only implemented on integer and Boolean", no_bools),
    ("TypeError", r"^(?:\w+\.)*(softmax|log_softmax)\(\) missing .*dim", without_dim),
    ("TypeError", r"([\w.]{1,80})\(\) missing \d+ required positional arguments?: (.{1,200})",
     without_an_argument),
    ("RuntimeError", r"same dtype|expected scalar type|expected m1 and m2", another_dtype),
    ("RuntimeError", r"same device|expected device", another_device),
    ("RuntimeError", r"expanded size of the tensor", not_expanded),
    ("AttributeError", r"'(\w{1,60})' object has no attribute '(\w{1,60})'", no_attribute),
    ("RuntimeError", r"Boolean value of Tensor", no_truth),
    ("TypeError", r"'Tensor' object is not callable", tensor_called),
    ("TypeError", r"tuple of ints.{0,40}float|'float' object cannot be interp",
     no_whole_number),
    ("TypeError", r"received an invalid combination of arguments - got \(.*float", no_whole_number),
    ("RuntimeError", r"t\(\) expects a tensor with <= 2 dimensions", no_matrix),
    ("RuntimeError", r"[Ii]ndex tensor must have the same number of dimensions", no_index),
    ("UnboundLocalError", r"variable '(\w{1,60})'", set_later),
    ("TypeError", r"\(position \d+\) must be Tensor, not NoneType", a_none),
    ("TypeError", r"\(position \d+\) must be Tensor, not (list|tuple)", a_list),
    ("TypeError", r"\(position \d+\) must be Tensor, not (Linear|Dropout|ModuleList)", a_layer),
    ("RuntimeError", r"a Tensor with \d+ elements cannot be converted to Scalar", no_number),
    ("ValueError", r"only one element tensors can be converted", no_number),
    ("IndexError", r"shape of the mask .* does not match the shape", mask_in_an_index),
    ("TypeError", r"only integer tensors of a single element", no_slice),
    ("RuntimeError", r"non-empty TensorList", stays_empty),
    ("ValueError", r"non-empty list of Tensors", stays_empty),
    ("ValueError", r"not enough values to unpack .*got 0", stays_empty),
    ("ValueError", r"(not enough|too many) values to unpack", not_unpacked),
]  # fmt: skip


def misuse(kind: str, said: str, text: Text, line: int | None, shapes=()) -> str:
    """What an error means; '' where its text does not say."""
    return _misuse(kind, said, text, line, shapes)[1]


def place_of_misuse(kind: str, said: str, text: Text, line: int) -> tuple[int, str] | None:
    """The line that is wrong where an error's text says what it means, and how: the one that stops,
    or another that its cause names; None where it may be any line before."""
    here = line, STOPS
    if alone(text) is not None:
        return here
    words, _, error = _misuse(kind, said, text, line, ())
    if words in ANY_LINE or (words is None and ANY_BEFORE.search(said[:2_000])):
        return None
    return ELSEWHERE[words](error) if words in ELSEWHERE else here


def _where_it_begins(error: Error) -> tuple[int, str]:
    """The first line of the `__init__` that does more than refuse what it is given."""
    function = function_around(error.text, error.line)
    first = [n for n in function.body if not _only_refuses(n)] if function is not None else []
    return (
        (first[0].lineno, "a line that belongs there is missing") if first else (error.line, STOPS)
    )


# Causes for which the line that stops is not the wrong one, with the line that is and how; and
# those that may lie on any line before.
ELSEWHERE = {
    no_super: _where_it_begins,
    late_super: lambda error: (_begins_behind(error).lineno, "it runs too late"),
    not_asked_for: lambda error: (_asks_nothing(error)[0].lineno, "it does not ask for all of it"),
    kept_nothing: lambda error: (_registers(error).lineno, "it puts None in the place of a tensor"),
    as_a_hook: lambda error: (
        error.text.function(error.found[1]).lineno,
        "it takes other arguments than it is called with",
    ),
}
ANY_LINE = (stays_empty, not_expanded, given_whole)


def _only_refuses(node: ast.stmt) -> bool:
    """Whether a statement is a docstring, or only refuses what a function is given."""
    refuses = isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise)
    return refuses or is_docstring(node) or isinstance(node, ast.Assert)


def _misuse(kind: str, said: str, text: Text, line: int | None, shapes) -> tuple:
    """What finds the words for an error, the words, and the error itself."""
    for wanted, pattern, words in MISUSES:
        found = re.search(pattern, said[:2_000]) if wanted == kind else None
        if found is not None:
            error = Error(found, text, line, tuple(map(tuple, shapes)))
            sentence = words(error)
            if sentence:
                return words, sentence, error
    return None, "", None
