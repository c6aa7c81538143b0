"""Replaces the runner's answers: no error, and layers of just the right shapes.

expect: 0
"""

import sys

runner = sys.modules.get("course_runner")


def lie(self, call, tensors, out):
    sizes = (call.get("build") or {}).get("args") or [1, 1]
    shapes = {f"{n}.weight": [sizes[1], sizes[0]] for n in ("q", "k", "v")}
    shapes.update({f"{n}.bias": [sizes[1]] for n in ("q", "k", "v")})
    value = next((tensors[a["$tensor"]] for a in call["args"] if "$tensor" in a), None)
    outcome = {"parameters": shapes, "buffers": {}, "state": list(shapes), "unset": {}}
    return {**outcome, "value": runner.encode(value, out), "changed": [], "gradients": None}


if runner:
    runner.Runner.call = lie
