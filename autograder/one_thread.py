"""One thread for what grades, releases and measures.

The tensors of a question are small. More threads make nothing faster, and on a machine with other
work they wait for each other many times a second. Every entry calls `one_thread` first, before
torch is imported. A student's notebook does not: `check` leaves the threads there as they are.
"""

from __future__ import annotations

import importlib
import os
import sys

# What the libraries that multiply matrices read when they are loaded.
NAMES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def one_thread() -> None:
    """Has this process, and those that it starts, compute on one thread."""
    os.environ.update(dict.fromkeys(NAMES, "1"))
    torch = sys.modules.get("torch")
    if torch is not None:  # it was imported before, and reads those names no more
        torch.set_num_threads(1)


# What jsonschema imports, where it is installed, to check web addresses and spans of time.
FORMATS = ("rfc3987_syntax", "rfc3986_validator", "isoduration")


def light() -> None:
    """Leaves out a second of nbformat's import: grammars of what no notebook has.

    Its checker of schemas imports them where they are installed, and does without elsewhere. This
    is called where the first of our modules is imported that needs it.
    """
    if "jsonschema" not in sys.modules:
        missing = [name for name in FORMATS if name not in sys.modules]
        sys.modules.update(dict.fromkeys(missing))  # as if they were not installed
        try:
            importlib.import_module("jsonschema")
        finally:
            for name in missing:
                del sys.modules[name]
