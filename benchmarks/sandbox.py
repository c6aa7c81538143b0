"""What isolation costs: a question in a throw-away child, against starting Python with torch.

    python benchmarks/sandbox.py [TIER ...]

Prints medians in milliseconds, and each as a share of `python -c 'import torch'` on the same
machine in the same run. Isolation is meant to cost 100 ms a question at most, on two cores.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from autograder.one_thread import one_thread
from autograder.sandbox import Sandbox, probe

QUESTIONS = 25
CELL = {"id": "answer", "source": "def double(x):\n    return 2 * x\n"}
CALL = {"name": "double", "args": [{"$tensor": "x"}], "kwargs": {}}


def milliseconds(action, times: int) -> float:
    """The median wall-clock time of an action."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return 1000 * statistics.median(taken)


def import_torch() -> None:
    subprocess.run([sys.executable, "-c", "import torch"], check=True)


def main(tiers: list[str]) -> None:
    one_thread()
    base = milliseconds(import_torch, 3)
    print(f"{'python -c import torch':34}{base:8.1f} ms   100.0 %")
    x = torch.ones(32, 64)  # [batch_size, hidden]
    with tempfile.TemporaryDirectory() as course:
        for tier in tiers:
            with Sandbox(Path(course), tier=tier) as box:

                def question(box=box, calls: int = 1) -> None:
                    with box.child() as child:
                        child.request({"op": "load", "cells": [CELL]}, {})
                        for _ in range(calls):
                            child.request({"op": "call", "calls": [CALL]}, {"x": x})

                question()  # the first also waits for the warm process
                for calls in (1, 10):
                    taken = milliseconds(lambda n=calls: question(calls=n), QUESTIONS)
                    what = f"{tier}: a question of {calls} call{'s' * (calls > 1)}"
                    print(f"{what:34}{taken:8.1f} ms   {100 * taken / base:5.1f} %")


if __name__ == "__main__":
    main(sys.argv[1:] or [t.name for t in probe() if t.available and t.name != "limits"])
