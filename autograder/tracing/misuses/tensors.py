"""Errors of tensors: their sizes, axes and types, and what takes them apart."""

from __future__ import annotations

import ast
import difflib
import math
import re

import torch

from autograder.tracing.misuses.error import Error
from autograder.tracing.misuses.objects import a_list
from autograder.tracing.text import (
    callee,
    function_around,
    overwritten,
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
    compared = [n for n in error.nodes() if isinstance(n, ast.Compare)]
    sides = [side for n in compared for side in (n.left, *n.comparators)]
    if any(isinstance(getattr(side, "op", None), ast.BitOr | ast.BitAnd) for side in sides):
        return (
            "`|` and `&` bind before comparisons: each comparison beside them needs brackets of "
            "its own."
        )
    return (
        "A tensor of several numbers is neither true nor false: compare them one by one "
        "(`torch.where`), or ask for `.any()` or `.all()`."
    )


def no_whole_number(error: Error) -> str:
    methods = (getattr(n, "func", None) for n in error.nodes())
    called = (f.value for f in methods if isinstance(f, ast.Attribute))
    tensors = {n.id for n in called if isinstance(n, ast.Name)}  # what has methods is no number
    divided = [(n, value) for n, value in error.names() if _is_divided(value) and n not in tensors]
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
