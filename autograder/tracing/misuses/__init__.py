"""Slips that an error's own text says: what it means, in terms of the student's cell.

A name is printed only where the cell's text proves it. To add one, write its words in `objects` or
`tensors`, and its pattern into the table.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from autograder.course.asking import STOPS
from autograder.tracing.misuses.error import Error
from autograder.tracing.misuses.objects import (
    a_comma,
    a_layer,
    a_list,
    a_none,
    a_number,
    as_a_hook,
    asks_nothing,
    begins_behind,
    filled_elsewhere,
    given_whole,
    inputs_as_output,
    kept_nothing,
    key_made_before,
    key_of,
    late_super,
    no_list,
    no_self,
    no_super,
    not_asked_for,
    one_number,
    registers,
    size_called,
    size_indexed,
    where_it_hangs,
    with_less,
    with_the_inputs,
)
from autograder.tracing.misuses.tensors import (
    another_device,
    another_dtype,
    mask_in_an_index,
    no_attribute,
    no_bools,
    no_index,
    no_matrix,
    no_number,
    no_slice,
    no_such_shape,
    no_truth,
    no_whole_number,
    not_expanded,
    not_joined,
    not_unpacked,
    numpy_array,
    set_later,
    stays_empty,
    tensor_called,
    without_an_argument,
    without_dim,
)
from autograder.tracing.text import Text, alone, function_around, is_docstring

ANY_BEFORE = re.compile(
    r"must match the size|shapes cannot be multiplied|same number of dimensions|[Ee]xpected size"
    r"|out of bounds for dimension|too many indices|must match the existing size|shape mismatch"
    r"|not implemented for '|expected Tensor as element|non-empty|expected BoolTensor"
    r"|used as indices|string indices|'str' object has no attribute|has no attribute 'remove'"
    r"|(?:list|tuple|pop)(?: from empty list| index out of range)|pop from an empty"
)
_NOT_BEGUN = r"before Module\.__init__\(\) call|no attribute '_(?:modules|parameters|buffers)'"
_TAKES = r"(\w+)\(\) takes (\d+) positional arguments? but (\d+) (?:was|were) given"
_OPERANDS = r"unsupported operand type\(s\) for [^:]{1,9}: .*"
# (the error's type or '', a pattern in its text, what is said)
MISUSES: list[tuple[str, str, Callable[[Error], str]]] = [
    ("TypeError", r"\btuple\b(?! of)", a_comma),
    ("AttributeError", r"'tuple' object has no attribute", a_comma),
    ("AttributeError", r"'tuple' object has no attribute", with_the_inputs),
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
    ("TypeError", r"(\w{1,60})\(\) missing (\d+) required positional argument", with_less),
    ("TypeError", r"([\w.]{1,80})\(\) missing \d+ required positional arguments?: (.{1,200})",
     without_an_argument),
    ("RuntimeError", r"same dtype|expected scalar type|expected m1 and m2", another_dtype),
    ("RuntimeError", r"same device|expected device", another_device),
    ("RuntimeError", r"expanded size of the tensor", not_expanded),
    ("AttributeError", r"'(\w{1,60})' object has no attribute '(\w{1,60})'", no_attribute),
    ("KeyError", r"^'", key_made_before),
    ("KeyError", r"", filled_elsewhere),
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


OTHER_ARGUMENTS = "it takes other arguments than it is called with"
# Causes for which the line that stops is not the wrong one, with the line that is and how; and
# those that may lie on any line before.
ELSEWHERE = {
    no_super: _where_it_begins,
    no_self: lambda error: (error.text.function(error.found[1]).lineno, "it has no `self`"),
    late_super: lambda error: (begins_behind(error).lineno, "it runs too late"),
    not_asked_for: lambda error: (asks_nothing(error)[0].lineno, "it does not ask for all of it"),
    key_made_before: lambda error: (key_of(error)[1].lineno, "it makes a key that is not there"),
    kept_nothing: lambda error: (registers(error).lineno, "it puts None in the place of a tensor"),
    with_the_inputs: lambda error: (inputs_as_output(error).lineno, OTHER_ARGUMENTS),
    with_less: lambda error: (where_it_hangs(error), OTHER_ARGUMENTS),
    as_a_hook: lambda error: (where_it_hangs(error), OTHER_ARGUMENTS),
}
ANY_LINE = (stays_empty, not_expanded, given_whole, filled_elsewhere)


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
