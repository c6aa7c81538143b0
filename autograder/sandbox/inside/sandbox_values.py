"""Values that cross the wall: plain JSON in which `{"$tensor": key}` stands for a tensor.

Plain data are numbers, texts, None, tensors, and lists, tuples, sets and dicts of these.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import types
from collections.abc import Mapping, Sequence

import torch

MAX_TEXT = 500
MAX_ITEMS = 10_000
MAX_DEPTH = 12


def encode(value, tensors: dict[str, torch.Tensor], depth: int = 0):
    """`value` as JSON; tensors and arrays go into `tensors` and leave `{"$tensor": key}` behind.

    What is not plain data is named, not sent: `{"$other": "module.Type"}`.
    """
    if depth > MAX_DEPTH:
        return {"$other": "data nested too deeply"}
    if value is None or type(value) in (bool, int, str):
        return value if not isinstance(value, str) else value[: 20 * MAX_TEXT]
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": str(value)}
    if type(value).__module__ == "numpy":
        with contextlib.suppress(TypeError, ValueError, RuntimeError):
            value = torch.as_tensor(value)
    if isinstance(value, torch.Tensor):
        plain = value.detach()
        if value.layout is not torch.strided or value.device.type != "cpu":
            plain = plain.to("cpu").to_dense()
        plain = plain.clone(memory_format=torch.contiguous_format)
        if type(plain) is not torch.Tensor:
            plain = plain.as_subclass(torch.Tensor)
        kind = "$complex" if plain.is_complex() else "$tensor"
        key = f"t{len(tensors)}"
        tensors[key] = torch.view_as_real(plain.resolve_conj()) if plain.is_complex() else plain
        return {kind: key}
    if type(value) is complex:
        return encode(torch.tensor(value, dtype=torch.complex128), tensors)
    if isinstance(value, Mapping):
        items = list(value.items())[:MAX_ITEMS]
        return {"$dict": [[_key(k), encode(v, tensors, depth + 1)] for k, v in items]}
    if isinstance(value, (set, frozenset)):  # in an order that is the same in every process
        items = sorted(list(value)[:MAX_ITEMS], key=lambda v: (type(v).__name__, repr(v)))
        return {"$set": [encode(v, tensors, depth + 1) for v in items]}
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        kind = "$tuple" if isinstance(value, tuple) else "$list"
        return {kind: [encode(v, tensors, depth + 1) for v in list(value)[:MAX_ITEMS]]}
    return {"$other": f"{type(value).__module__}.{type(value).__qualname__}"[:MAX_TEXT]}


def has_numbers(tensor: torch.Tensor) -> bool:
    """Whether a tensor's numbers can be read: those inside `torch.vmap` and `torch.func.grad` stand
    for others, and on the device "meta" there are none."""
    return not (tensor.is_meta or torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def _key(key):
    """A dict's key as JSON: what is neither text nor number nor a tuple of these is a text."""
    if type(key) in (bool, int) or key is None:
        return key
    if type(key) is tuple:
        return {"$tuple": [_key(part) for part in key[:MAX_DEPTH]]}
    if isinstance(key, torch.Tensor):  # whose text is long in the making
        return f"a tensor of shape {list(key.shape)}"[:MAX_TEXT]
    return str(key)[:MAX_TEXT]


def decode(value, tensors: Mapping[str, torch.Tensor], make: Mapping | None = None):
    """The inverse of `encode`. `make` says how to make what is more than data (see `MAKERS`)."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "$tensor":
            return tensors[content]
        case "$float":
            return float(content)
        case "$tuple":
            return tuple(decode(v, tensors, make) for v in content)
        case "$list":
            return [decode(v, tensors, make) for v in content]
        case "$dict":
            return {decode(k, tensors): decode(v, tensors, make) for k, v in content}
        case "$set":
            items = [decode(v, tensors, make) for v in content]
            return set(items) if make else items
        case "$complex":
            return torch.view_as_complex(tensors[content])
        case "$other":
            return Other(content)
    if make and kind in make:
        return make[kind](content, tensors)
    raise ValueError(f"unknown kind of value: {kind}")


class Other:
    """Something a student returned that is not plain data; only its type's name crosses."""

    def __init__(self, name: str):
        self.name = name


def _namespace(content: list, tensors: Mapping[str, torch.Tensor]):
    """An object with these attributes."""
    return types.SimpleNamespace(**{k: decode(v, tensors, MAKERS) for k, v in content})


def _made(content: dict, tensors: Mapping[str, torch.Tensor]):
    """What a function of the course's library makes of these values."""
    module, _, name = content["by"].partition(":")
    make = getattr(importlib.import_module(module), name)
    return make(**{k: decode(v, tensors, MAKERS) for k, v in content["values"]})


# Arguments that the trusted side may send; a reply may hold data only.
MAKERS = {"$namespace": _namespace, "$made": _made}


# --- what a call may change ----------------------------------------------------------------------
def copied(value):
    """Another value like this one, which stays as it is when this one is changed in place.

    What is no plain data is not copied.
    """
    if isinstance(value, torch.Tensor):
        return value.clone()
    if type(value) in (list, tuple):
        return type(value)(map(copied, value))
    if type(value) is dict:
        return {name: copied(part) for name, part in value.items()}
    return value


def same(one, two) -> bool:
    """Whether a value is like its copy still."""
    if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor):
        if one.shape != two.shape:
            return False
        one, two = one.detach(), two.detach()
        return torch.equal(one, two) or torch.equal(one.nan_to_num(), two.nan_to_num())
    if type(one) is not type(two):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(part, two[n]) for n, part in one.items())
    return one is two or not _is_plain(one) or one == two or one != one


def _is_plain(value) -> bool:
    return type(value) in (bool, int, float, str)
