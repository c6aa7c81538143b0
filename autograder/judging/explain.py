"""Errors of a student's code, in plain words: what happened, the likely cause, what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

from autograder.course.asking import Finding, Verdict
from autograder.sandbox.inside.sandbox_wire import Failure

MOST_KEYS = 8  # that are listed
RAISED = "The code raised an error when it was called."
# (exception type or '', pattern in its text, name of the finding, what it usually means)
CAUSES = [
    ("NotImplementedError", r"^$", "unanswered", "This exercise is not filled in yet."),
    (
        "RuntimeError",
        r"mat1 and mat2 shapes|size mismatch|Expected size for first two dim|"
        r"must match the size of tensor|batch2 tensor",
        "shapes do not fit",
        "Two tensors of shapes that do not fit were combined. Print both shapes on the line "
        "before; often one needs `.transpose(-2, -1)`.",
    ),
    (
        "RuntimeError",
        r"view size is not compatible|not compatible with input tensor's size",
        "view of a non-contiguous tensor",
        "`view` needs a tensor whose memory is in order, which a transposed one is not. Call "
        "`.contiguous()` first, or use `reshape`.",
    ),
    (
        "RuntimeError",
        r"shape '.*' is invalid for input of size",
        "wrong number of elements",
        "The new shape asks for more or fewer elements than the tensor has. A size written as a "
        "number where it should be a variable is the usual cause.",
    ),
    (
        "RuntimeError",
        r"modified by an inplace operation",
        "in-place edit",
        "A tensor that the backward pass needs was changed in place (`_` at the end of a method, "
        "or `+=`). Make a new tensor instead.",
    ),
    (
        "RuntimeError",
        r"expected 2D|must be a matrix|batch1 must be a 3D|expects a tensor with <= 2",
        "wrong number of dimensions",
        "An operation got a tensor with more or fewer dimensions than it takes. Remember the "
        "batch: `x` is [batch_size, seq_len, input_size]. `bmm` takes 3-D tensors, `@` any number.",
    ),
    (
        "RuntimeError",
        r"does not require grad",
        "no gradient",
        "The result does not depend on anything that learns: something was detached, or computed "
        "under `no_grad`.",
    ),
    (
        "RuntimeError",
        r"expected .* to have the same dtype|dtype|expected scalar type",
        "dtype",
        "Two tensors of different dtypes were combined, such as float and bool or int.",
    ),
    (
        "IndexError",
        r"Dimension out of range",
        "no such dimension",
        "The tensor has fewer dimensions than the one asked for. Negative numbers count from the "
        "end and go on working when a batch is added.",
    ),
    (
        "ModuleNotFoundError",
        r"",
        "import",
        "That module cannot be imported where your code is judged. Use torch and the standard "
        "library.",
    ),
    (
        "NameError",
        r"",
        "unknown name",
        "The name is not defined when this cell runs on its own. Is it spelled right, and defined "
        "in this cell or an earlier one?",
    ),
    (
        "TypeError",
        r"positional argument|keyword argument|unexpected keyword",
        "signature",
        "It was called with other arguments than it takes. Keep the signature that the exercise "
        "gives.",
    ),
    (
        "AttributeError",
        r"'NoneType'",
        "got None",
        "Something is None that should be a tensor: a function without `return`, or an in-place "
        "method whose result was used.",
    ),
    (
        "SyntaxError",
        r"",
        "does not parse",
        "Python cannot read this cell. Look at the line and the one before it: a bracket, a colon "
        "or a quote is missing.",
    ),
    ("IndentationError", r"", "does not parse", "The lines of a block are not indented alike."),
    ("TabError", r"", "does not parse", "Tabs and blanks are mixed in the indentation."),
    ("RecursionError", r"", "recursion", "A function calls itself without an end."),
    ("SystemExit", r"", "exit", "The code asks Python to exit, which ends the question."),
    ("KeyboardInterrupt", r"", "interrupt", "The code raises KeyboardInterrupt."),
    ("MemoryError", r"", "memory", "The code asked for more memory than it may have."),
]

OWN_CALL = "What is called there takes other arguments than it is given."

_PLACE = re.compile(r" \(<cell [^<>]{1,200}>, line \d{1,9}\)$")


def explain_error(
    error: Mapping, name: str = "", source: str = "", given: Sequence = ()
) -> Finding:
    """What an error means to a student. `name` is the function or class that was asked for; given
    is what it was called with."""
    if error["kind"] == Failure.MISSING:
        return Finding("missing name", Verdict.ERROR, _missing(error, name))
    kind, text = error["type"], error["message"]
    if error["kind"] != Failure.RAISED:  # the child itself failed: its reason is a sentence already
        return Finding(error["kind"], Verdict.ERROR, text)
    check, cause = "raised", RAISED
    for wanted, pattern, found, words in CAUSES:
        if wanted == kind and re.search(pattern, text):
            check, cause = found, words
            break
    if check == "raised" and kind == "KeyError" and (keys := _keys_there(text, given)):
        check, cause = "no such key", f"The keys that there are: {keys}."
    if check == "signature" and error["line"]:  # it was called, and calls something itself
        cause = OWN_CALL
    if check == "unanswered":
        return Finding(check, Verdict.ERROR, cause, error["line"], error["statement"])
    place = f"Line {error['line']}: " if error["line"] else ""
    text = _PLACE.sub("", text) if error["line"] else text  # Python's own name for the place
    said = f"{kind}: {text}" if text else kind
    return Finding(
        check,
        Verdict.ERROR,
        f"{place}{said}. {cause}".replace("..", "."),
        error["line"],
        error["statement"],
    )


def _keys_there(text: str, given: Sequence) -> str:
    """The keys of the one dict that was given and lacks a key, the nearest first; '' where there is
    no such dict. text: the key as Python writes it."""
    dicts = [each for each in given if isinstance(each, Mapping) and each]
    lacking = [d for d in dicts if all(isinstance(k, str) and repr(k) != text for k in d)]
    if len(lacking) != 1:
        return ""
    keys = list(lacking[0])
    near = difflib.get_close_matches(text.strip("'"), keys, n=MOST_KEYS, cutoff=0.0)
    rest = ", ..." if len(keys) > len(near) else ""
    return ", ".join(f"`{key[:40]}`" for key in near) + rest


def _missing(error: Mapping, name: str) -> str:
    wanted = name or error["message"]
    near = difflib.get_close_matches(wanted, error.get("names", []), n=1, cutoff=0.6)
    likely = f" There is `{near[0]}`: is that the one? Rename it to `{wanted}`." if near else ""
    return f"There is no `{wanted}` after your cell has run.{likely or ' Define it in this cell.'}"
