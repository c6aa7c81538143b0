"""Counts the work that code does on tensors: what it makes, what it multiplies, what it calls.

Seconds depend on the machine and on what else it does; these counts depend on the code alone. They
are taken below autograd, where `einsum`, `@` and a layer have all become the same few kernels.
"""

from __future__ import annotations

import math
from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

MAX_KINDS = 300  # different tensors, or kernels, that are told of one call
EXPONENTIALS = {"exp", "exp_", "exp2", "exp2_", "_softmax", "_log_softmax", "logsumexp"}
VECTOR_PRODUCTS = {"mv", "dot", "vdot", "addmv"}  # which PyTorch's own table leaves out


class Work(TorchDispatchMode):
    """Inside `with Work() as work:` everything is counted; `work.told()` says it as plain data."""

    def __init__(self):
        super().__init__()
        self.flops = 0
        self.exponentials = 0
        self.made: Counter = Counter()  # (dtype, *shape): how many
        self.kernels: Counter = Counter()

    def seen(self, func, types, args=(), kwargs=None):
        """Makes one kernel's result, and counts what it did."""
        out = func(*args, **(kwargs or {}))
        given = [a for a in tree_leaves((args, kwargs)) if isinstance(a, torch.Tensor)]
        results = [r for r in tree_leaves(out) if isinstance(r, torch.Tensor)]
        name = func._schema.name.partition("::")[2]
        self.kernels[name] += 1
        if func._overloadpacket in flop_registry:
            self.flops += flop_registry[func._overloadpacket](*args, **(kwargs or {}), out_val=out)
        elif name in VECTOR_PRODUCTS:
            self.flops += 2 * max(t.numel() for t in given)
        if name in EXPONENTIALS:
            self.exponentials += given[0].numel()
        for result in results:
            if not any(_share(result, each) for each in given):  # neither a view nor in place
                kind = str(result.dtype).removeprefix("torch.")
                self.made[(kind, *result.shape)] += 1
        return out

    def told(self) -> dict:
        """flops, exponentials (numbers that went through one), made: [dtype, shape, count] of the
        largest tensors, kernels: how often each was called, by name."""
        largest = sorted(self.made, key=lambda each: math.prod(each[1:]), reverse=True)
        return {
            "flops": int(self.flops),
            "exponentials": int(self.exponentials),
            "made": [[k[0], list(k[1:]), self.made[k]] for k in largest[:MAX_KINDS]],
            "kernels": dict(self.kernels.most_common(MAX_KINDS)),
        }


# Set here, and not in the class: what PyTorch finds there it wraps in `torch._dynamo.disable`. The
# import of that takes a second of each process that counts.
Work.__torch_dispatch__ = Work.seen


def _share(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors lie in the same memory."""
    try:
        return one.untyped_storage()._cdata == other.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):  # a kind without memory of its own
        return False
