"""Checks that say which mistake was made, and a grader that submissions cannot cheat.

In a notebook: `from autograder import check, hint`. In a shell: `autograder --help`.
"""

__all__ = ["check", "hint"]


def __getattr__(name: str):
    # Lazy, so that `import autograder` stays light and the runner can be loaded without the rest.
    if name in __all__:
        from autograder import student

        return getattr(student, name)
    raise AttributeError(f"module 'autograder' has no attribute {name!r}")
