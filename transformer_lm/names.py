"""From a name such as "h.3.q" to the place in a model where its value can be read and written.

The names are told in ``hooks``.
"""

import re
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import NamedTuple

from torch import nn

INPUT = ":input"
OF_HEADS = ("q", "k", "v", "scores", "pattern", "z", "head_out")
OF_BLOCKS = ("stream_in", "attn_out", "stream_mid", "mlp_out", "stream_out")
QUANTITIES = ("stream_in", *OF_HEADS, *OF_BLOCKS[1:])


class Target(NamedTuple):
    """key: the name without stars. module, kind, place: where its value can be tapped."""

    key: str
    module: nn.Module
    kind: str
    place: str


def find(model, names):
    """Return the Targets that the names stand for, each once."""
    modules = {name.removeprefix("transformer."): m for name, m in model.named_modules() if name}
    blocks = {name: module for name, module in modules.items() if _is_block(module)}
    targets = {}
    for name in names:
        place = "input" if name.endswith(INPUT) else "output"
        parts = name.removesuffix(INPUT).removeprefix("transformer.").split(".")
        found = [
            Target(each + INPUT * (place == "input"), module, place, place)
            for each, module in modules.items()
            if _fits(each.split("."), parts)
        ]
        if place == "output" and parts[-1] in QUANTITIES:
            found += [
                _quantity(each, block, parts[-1])
                for each, block in blocks.items()
                if _fits(each.split("."), parts[:-1])
            ]
        if not found:
            raise ValueError(_not_found(name, parts, list(modules), list(blocks)))
        targets.update({target.key: target for target in found})
    return list(targets.values())


def _quantity(name, block, quantity):
    module, kind = (block.attn, "attention") if quantity in OF_HEADS else (block, "block")
    return Target(f"{name}.{quantity}", module, kind, quantity)


def _is_block(module):
    """Tell GPT-2's blocks by their parts, so that a model of one's own may hold them too."""
    attention = getattr(module, "attn", None)
    return hasattr(module, "mlp") and all(
        hasattr(attention, part) for part in ("c_attn", "c_proj", "resid_dropout")
    )


def _fits(parts, pattern):
    return len(parts) == len(pattern) and all(map(fnmatchcase, parts, pattern))


def _not_found(name, parts, modules, blocks):
    """Say what there is, and what may have been meant."""
    words = f"no module is called {name!r}; names look like {', '.join(modules[:8])}"
    if blocks:
        words += f"; in a block, such as {blocks[0]!r}, there are also {', '.join(QUANTITIES)}"
        words += f", and the last block is {blocks[-1]!r}"
    if name.endswith(INPUT) and parts[-1] in QUANTITIES:
        return f"{words}. A quantity such as {parts[-1]!r} has no input: leave {INPUT!r} out"
    known = modules + [f"{block}.{each}" for block in blocks for each in QUANTITIES]
    known += [re.sub(r"\.\d+", ".*", each) for each in known]
    close = get_close_matches(".".join(parts), known, n=1)
    return f"{words}. Did you mean {close[0]!r}?" if close else words
