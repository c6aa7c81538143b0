"""Modules of PyTorch: weights put into them by name, and what a call left behind in them.

A model that is given takes longer to make than to ask: `Kept` gives it once more where it may.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Mapping, Sequence

import torch

if __package__:
    from .sandbox_values import MAKERS, decode, same
else:  # in the sandbox, where the engine is not
    from sandbox_values import MAKERS, decode, same

MOST_KEPT = 8  # models that are kept
NOTHING_INSIDE = (bool, int, float, str, type(None))
LISTENS = "_output_capturing"  # whether transformers put its own hooks there


# --- building, and weights -----------------------------------------------------------------------
def mended(kind, args: list, kwargs: dict):
    """An object of a module class, as far as its __init__ gets."""
    if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)):
        return kind(*args, **kwargs)
    made = kind.__new__(kind)
    torch.nn.Module.__init__(made)
    with contextlib.suppress(Exception):
        made.__init__(*args, **kwargs)
    return made


def put_layers(target, layers: Sequence[str], weights: dict, tensors: Mapping) -> None:
    """Gives each of these layers, by its path, a weight and a bias of the weights' shape.

    An `nn.Linear` is changed in place, for it may have a second name; what is none, or was given
    weights under another name already, makes way for one.
    """
    used = set()
    for path in layers:
        *parents, name = path.split(".")
        holder = target
        for parent in parents:
            holder = getattr(holder, parent, None)
        if f"{path}.weight" not in weights or not isinstance(holder, torch.nn.Module):
            continue
        layer = getattr(holder, name, None)
        if not isinstance(layer, torch.nn.Linear) or id(layer) in used:
            layer = torch.nn.Linear(1, 1)
            setattr(holder, name, layer)
        used.add(id(layer))
        weight = decode(weights[f"{path}.weight"], tensors)
        layer.out_features, layer.in_features = weight.shape
        layer.weight = torch.nn.Parameter(torch.zeros_like(weight))
        layer.bias = torch.nn.Parameter(weight.new_zeros(len(weight)))


def set_weights(target, weights: dict, tensors: Mapping) -> dict:
    """Sets tensors by attribute path (`q.weight`); returns those that could not be set, and why."""
    unset, seen = {}, {}
    for path, reference in weights.items():
        tensor = decode(reference, tensors).clone()
        *parents, last = path.split(".")
        holder = target
        for i, name in enumerate(parents):
            holder = getattr(holder, name, None)
            if holder is None:
                unset[path] = f"no attribute {'.'.join(parents[: i + 1])!r}"
                break
        else:
            old = getattr(holder, last, None)
            if not isinstance(old, torch.Tensor):
                unset[path] = f"no {last!r}" if old is None else f"{last!r} is not a tensor"
            elif old.shape != tensor.shape:
                unset[path] = f"shape {list(old.shape)}, not {list(tensor.shape)}"
            else:
                old.data = tensor
                if id(old) in seen:
                    unset[path] = f"the same tensor as {seen[id(old)]!r}"
                seen.setdefault(id(old), path)
    return unset


def parameters(module: torch.nn.Module) -> dict:
    """All parameters under all their names: a layer may be kept in a list too."""
    return dict(module.named_parameters(remove_duplicate=False))


# --- before a call, and after --------------------------------------------------------------------
def state(module: torch.nn.Module) -> tuple:
    """What a call must leave as it found it in a module that it was given."""
    weights = {name: w.detach().clone() for name, w in module.state_dict().items()}
    return weights, module.training, _hooks(module)


def _hooks(module: torch.nn.Module) -> int:
    """How many forward hooks the parts carry; those of transformers itself do not count."""
    found = [
        hook
        for part in module.modules()
        for hook in (*part._forward_hooks.values(), *part._forward_pre_hooks.values())
    ]
    return sum(not _is_of_transformers(hook) for hook in found)


def left_behind(module: torch.nn.Module, before: tuple) -> list[str]:
    """What a call left behind in a module: hooks, other weights, training mode."""
    weights, training, hooks = before
    now = module.state_dict()
    left = ["a hook"] if _hooks(module) > hooks else []
    if now.keys() != weights.keys() or not all(same(now[n], w) for n, w in weights.items()):
        left.append("changed weights")
    if module.training != training:
        left.append("another mode")
    return left


# --- given once more -----------------------------------------------------------------------------
class Kept:
    """Models that were made of what was sent; one is given once more where it is as it was made.

    For programs of ours, and for versions of which a first look is taken.
    """

    def __init__(self):
        self.made: dict[tuple, tuple[torch.nn.Module, list, list[torch.Tensor]]] = {}

    def given(self, value, tensors: Mapping):
        """What a call is given, made of what was sent."""
        if not (isinstance(value, dict) and "$made" in value):
            return decode(value, tensors, MAKERS)
        key = _key(value, tensors)
        model, before, numbers = self.made.pop(key, (None, [], []))
        as_it_was = model is not None and is_same(before, held(model))
        if not as_it_was or not all(map(_are_the_same, _numbers(model), numbers)):
            model = decode(value, tensors, MAKERS)
            before = held(model)
            own = _numbers(model) if isinstance(model, torch.nn.Module) else []
            numbers = [t.detach().clone() for t in own]
        if isinstance(model, torch.nn.Module):
            self.made[key] = model, before, numbers
            while len(self.made) > MOST_KEPT:
                del self.made[next(iter(self.made))]
        return model


def _key(value, tensors: Mapping) -> tuple:
    """What was sent, by its content."""
    if isinstance(value, dict) and len(value) == 1 and "$tensor" in value:
        tensor = tensors[value["$tensor"]]
        return tensor.dtype, tuple(tensor.shape), _bytes(tensor)
    if isinstance(value, dict):
        return tuple((k, _key(v, tensors)) for k, v in value.items())
    if isinstance(value, list | tuple):
        return tuple(_key(v, tensors) for v in value)
    return (type(value), value)


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def _numbers(model: torch.nn.Module) -> list[torch.Tensor]:
    """The numbers of a model, of which `.data` may change some and leave no trace."""
    return [*model.parameters(), *model.buffers()]


def _are_the_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.dtype == other.dtype and torch.equal(one, other)


def held(built: object) -> list:
    """What an object holds, and what changes where that is changed in place; but for the hooks with
    which transformers listens to its own parts, which it puts there once."""
    parts = built.modules() if isinstance(built, torch.nn.Module) else [built]
    found: list = []
    for part in parts:
        own = getattr(part, "__dict__", None)
        if own is None:
            return [object()]
        for name, value in own.items():
            if name.startswith(LISTENS):
                continue
            found.append(value)
            if type(value) in NOTHING_INSIDE:
                continue
            if isinstance(value, list | set):
                found += value
            elif isinstance(value, dict):
                hooks = name.endswith("hooks")
                found += [v for v in value.values() if not (hooks and _is_of_transformers(v))]
            elif not isinstance(value, torch.nn.Module | torch.Tensor):  # as a configuration
                found += getattr(value, "__dict__", {}).values()
    tensors = [value for value in found if isinstance(value, torch.Tensor)]
    leaves = [value for value in tensors if value.is_leaf]
    of_leaves = [part for v in leaves for part in (v.grad, v.requires_grad)]
    return found + [v._version for v in tensors] + of_leaves


def _is_of_transformers(hook: object) -> bool:
    return str(getattr(hook, "__module__", "")).startswith("transformers.")


def is_same(one: list, other: list) -> bool:
    """Whether two such states hold the very same."""
    return len(one) == len(other) and all(map(operator.is_, one, other))
