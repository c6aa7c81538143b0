"""Modules of PyTorch: weights put into them by name, and what a call left behind in them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

import torch

if __package__:
    from .sandbox_values import decode, same
else:  # in the sandbox, where the engine is not
    from sandbox_values import decode, same


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
    return sum(not str(getattr(h, "__module__", "")).startswith("transformers.") for h in found)


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
