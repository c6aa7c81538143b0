"""Checks that say which mistake was made, and a grader that submissions cannot cheat.

In a notebook: `from autograder import check, hint`. In a course's `solutions/exercises/`:
`from autograder import exercise`. In a shell: `autograder --help`.
"""

import importlib

_HOMES = {
    "check": "autograder.student",
    "hint": "autograder.student",
    "exercise": "autograder.exercises",
    "Call": "autograder.calls",
    "Draw": "autograder.calls",
    "Made": "autograder.calls",
    "Namespace": "autograder.calls",
    "Finding": "autograder.asking",
    "Sight": "autograder.asking",
}
__all__ = list(_HOMES)


def __getattr__(name: str):
    # Lazy, so that `import autograder` stays light and the runner can be loaded without the rest.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'autograder' has no attribute {name!r}")
