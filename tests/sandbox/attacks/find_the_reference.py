"""Looks for the grader's own code on the path and in memory.

expected: ok
"""

import gc
import importlib
import os
import sys

from given import found

for name in list(sys.modules):
    if name.split(".")[0] in ("autograder", "solutions"):
        found.append(name)
for name in (
    "autograder.reference",
    "autograder.judging.compare",
    "autograder.sandbox",
    "solutions",
):
    try:
        importlib.import_module(name)
        found.append(name)
    except ImportError:
        continue
for folder in sys.path:
    try:
        with open(os.path.join(folder, "autograder", "judge.py")) as file:
            found.append(file.name)
    except OSError:
        continue
for thing in gc.get_objects():
    if isinstance(thing, dict) and str(thing.get("__name__")).startswith("autograder."):
        found.append(str(thing["__name__"]))
