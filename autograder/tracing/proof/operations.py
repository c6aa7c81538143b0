"""The operations that may be made again on recorded numbers: those of a list, within bounds.

Nothing of a student's runs here. An operation comes by its name, and is made where it is on the
list and touches no more numbers than it may.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F

MOST_NUMBERS = 200_000  # that one operation may touch
ARITHMETIC = (
    "add sub mul div true_divide pow neg reciprocal square sqrt rsqrt exp exp2 log log2 abs"
)
ARITHMETIC += " sigmoid tanh relu elu gelu clamp clip clamp_min clamp_max maximum minimum sin cos"
ARITHMETIC += " outer dot mv mm bmm matmul einsum linear baddbmm addmm addmv addbmm inner vdot rsub"
ARITHMETIC += " tensordot relu silu leaky_relu softplus erf log1p expm1 logaddexp normalize"
REDUCED = "sum mean amax amin max min softmax log_softmax logsumexp norm var std cumsum prod median"
LAYOUT = "transpose permute view reshape unflatten flatten squeeze unsqueeze contiguous movedim t"
LAYOUT += " swapaxes swapdims expand expand_as view_as reshape_as moveaxis adjoint flip roll narrow"
LAYOUT += (
    " select split chunk unbind tensor_split index_select gather cat concat stack hstack clone"
)
LAYOUT += " vstack repeat repeat_interleave tile diagonal diag ravel detach to float double type_as"
CHOSEN = "masked_fill where tril triu eq ne lt le gt ge logical_not logical_and logical_or bool"
CHOSEN += " bitwise_not nan_to_num isnan dist any all zeros_like ones_like full_like"
CHOSEN += " scaled_dot_product_attention"
CHOSEN += " dropout layer_norm rms_norm index_fill masked_scatter scatter unsafe_chunk unsafe_split"
CHOSEN += " multiply divide subtract negative"
NAMES = frozenset(f"{ARITHMETIC} {REDUCED} {LAYOUT} {CHOSEN}".split())
SIGNS = (
    "add sub mul truediv pow matmul neg getitem radd rsub rmul rdiv rtruediv rpow rmatmul invert eq"
)
SIGNS += " ne lt le gt ge and or abs iter xor"
SIGNED = frozenset(SIGNS.split())
PROPERTIES = (".T", ".mT", ".data", ".real")


class NotAgain(Exception):
    """A step that cannot be made again."""


def call(name: str, given: list, named: dict):
    """An operation by its name, on tensors; raises NotAgain for one that is not on the list."""
    if named:
        named = {k: v for k, v in named.items() if k not in ("out", "_stacklevel", "inplace")}
    if name in PROPERTIES:
        return given[0] if name in (".data", ".real") else getattr(given[0], name[1:])
    if name == "__setitem__":
        new = given[0].clone()
        new[given[1]] = given[2]
        return new
    if name == "where" and given[0].dtype == torch.bool:  # also a method, with other places
        function = torch.where
    else:
        function = _function(name, bool(given) and isinstance(given[0], torch.Tensor))
    shapes = [t.shape for t in _flat((*given, *named.values())) if isinstance(t, torch.Tensor)]
    if _touched(name, given, named, shapes) > MOST_NUMBERS:
        raise NotAgain
    return function(*given, **named)


@lru_cache(maxsize=500)
def _function(name: str, is_method: bool):
    """The operation of that name; is_method: whether its first argument is a tensor."""
    if name == "dropout":  # in evaluation; what was dropped does not come out as recorded
        return lambda x, *_, **__: x
    if name.startswith("__") and name.endswith("__"):
        bare = name[2:-2]
        if bare in SIGNED:
            return getattr(torch.Tensor, name)
        if bare.startswith("i") and bare[1:] in SIGNED:
            return getattr(torch.Tensor, f"__{bare[1:]}__")
        raise NotAgain
    bare = name.rstrip("_")
    if bare not in NAMES:
        raise NotAgain
    homes = (torch.Tensor, F, torch) if is_method else (torch, F)
    for home in homes:
        if hasattr(home, bare):
            return getattr(home, bare)
    raise NotAgain


def _touched(name: str, given: list, named: dict, shapes: list) -> int:
    """A bound on the numbers that an operation touches, computed without making one."""
    sizes = [math.prod(shape) for shape in shapes]
    if name == "einsum":
        return _in_einsum(given[0], shapes)
    if name == "expand":  # a view, which touches nothing
        return given[0].expand(*given[1:], **named).numel()
    if name in ("repeat", "tile", "repeat_interleave"):
        return sizes[0] * _times(given[1:2] if "_" in name else given[1:], named)
    if name in ("matmul", "bmm", "mm", "__matmul__", "linear", "outer"):
        last = shapes[1][-2 if name == "linear" else -1] if len(shapes) > 1 and shapes[1] else 1
        return sizes[0] * last
    if name in ("inner", "tensordot"):
        return sizes[0] * sizes[1]
    if name in ("baddbmm", "addmm", "addmv", "addbmm", "scaled_dot_product_attention"):
        one, two = (1, 2) if "add" in name else (0, 1)
        return sizes[one] * max(shapes[two])
    if name in ("index_select", "gather", "__getitem__"):
        places = [
            t for t in _flat(given[1:]) if isinstance(t, torch.Tensor) and not t.is_floating_point()
        ]
        counts = [t.numel() for t in places if t.dtype != torch.bool]
        return max(sizes[0], math.prod(counts) * sizes[0] // max(shapes[0][0], 1) if counts else 0)
    if name in ("cat", "concat", "stack", "hstack", "vstack"):
        return sum(sizes)
    if name == "diag":
        return sizes[0] ** 2
    if len(set(shapes) - {()}) < 2:  # one shape, and numbers
        return max(sizes, default=0)
    try:
        wide = np.broadcast_shapes(*shapes)  # torch's own imports sympy, which takes half a second
    except ValueError:
        wide = ()
    return max([math.prod(wide), *sizes], default=0)


def _times(counts: list, named: dict) -> int:
    """How often an operation that repeats a tensor has each number, at most."""
    counts = _flat([*counts, *(named[name] for name in ("repeats", "dims") if name in named)])
    most = (int(n.max()) if isinstance(n, torch.Tensor) else n for n in counts)
    return math.prod(max(n, 1) for n in most)


def _in_einsum(words: str, shapes: list) -> int:
    """All letters' sizes multiplied: no order of the products touches more."""
    operands = words.replace(" ", "").partition("->")[0].split(",")
    sizes: dict[str, int] = {}
    most = 1
    for letters, shape in zip(operands, shapes, strict=True):
        front, _, back = letters.partition("...")
        own = [*zip(front, shape, strict=False)]
        own += zip(reversed(back), reversed(shape), strict=False)
        for letter, size in own:
            sizes[letter] = max(sizes.get(letter, 1), size)
        most = max(most, math.prod(shape) // max(math.prod(n for _, n in own), 1))
    return math.prod(sizes.values()) * most


def _flat(values: list) -> list:
    return [t for each in values for t in (each if isinstance(each, list | tuple) else [each])]
