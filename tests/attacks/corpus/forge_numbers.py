"""Sends figures that no program expects: infinite, huge, nested.

expect: 0
"""

import sys

runner = sys.modules.get("course_runner")
endless = 1e400


def lie(self, call, tensors, out):
    odd = {"q.weight": [endless, -1], "k.weight": [10**30], "v.weight": [[1]]}
    return {
        "value": {"$float": "1e999"},
        "parameters": odd,
        "buffers": odd,
        "changed": [endless, 10**400],
        "left": [{"a": 1}],
        "state": [None],
        "unset": {"a": {}},
        "gradients": {"$list": [1] * 10},
    }


if runner:
    runner.Runner.call = lie
