"""Checks that say which mistake was made, and a grader that submissions cannot cheat.

In a notebook: `from autograder import check, hint, progress`. In a course's `solutions/exercises/`:
`from autograder import exercise`. In a shell: `autograder --help`.
"""

import importlib

_HOMES = {
    "check": "autograder.notebook",
    "hint": "autograder.notebook",
    "passes": "autograder.notebook",
    "progress": "autograder.notebook",
    "exercise": "autograder.course.exercises",
    "Call": "autograder.course.calls",
    "Draw": "autograder.course.calls",
    "Made": "autograder.course.calls",
    "Namespace": "autograder.course.calls",
    "Finding": "autograder.course.asking",
    "Sight": "autograder.course.asking",
}
__all__ = list(_HOMES)


def __getattr__(name: str):
    # Lazy, so that `import autograder` stays light and the runner can be loaded without the rest.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'autograder' has no attribute {name!r}")
