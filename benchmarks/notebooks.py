"""What each notebook costs: executed from start to end with the network off, one after the other.

    python -m benchmarks.notebooks             # all lessons in solutions/
    python -m benchmarks.notebooks 09 10       # lessons whose names begin so

Prints seconds, the peak memory of the kernel's process, the slowest cell, and whether all is
within the course's limits: 60 seconds on two cores (five minutes where a model is trained) and
2 GiB. The exit status is 1 where it is not, or where a cell fails. Cells that are meant to fail
carry the tag "raises-exception".
"""

import argparse
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[1]
LIMIT_SECONDS = 60
TRAINING_SECONDS = {"08_writing": 300}  # the learner trains a model in it
LIMIT_GIB = 2.0
PEAK = "import resource as _r; print('PEAK', _r.getrusage(_r.RUSAGE_SELF).ru_maxrss)"


def execute(path, root=ROOT):
    """Run a notebook in a fresh kernel in the root folder.

    Returns {"seconds", "gib", "slowest" (seconds of one cell), "cell" (its number), "error"}: the
    start of the kernel counts, and "error" is the first failing cell's, or None.
    """
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(PEAK))
    started, longest = {}, (0.0, None)

    def before(cell, cell_index):
        started[cell_index] = time.perf_counter()

    def after(cell, cell_index, **_):
        nonlocal longest
        longest = max(longest, (time.perf_counter() - started[cell_index], cell_index))

    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=600,
        resources={"metadata": {"path": str(root)}},
        on_cell_execute=before,
        on_cell_executed=after,
    )
    start, error = time.perf_counter(), None
    try:
        client.execute()
    except CellExecutionError as problem:
        error = f"{problem.ename}: {problem.evalue}"
    return {
        "seconds": time.perf_counter() - start,
        "gib": _peak(notebook.cells[-1]),
        "slowest": longest[0],
        "cell": longest[1],
        "error": error,
    }


def _peak(cell):
    """Read what the added cell printed: KiB on Linux. NaN where it never ran."""
    printed = "".join(output.get("text", "") for output in cell.outputs)
    return int(printed.split()[-1]) / 2**20 if "PEAK" in printed else float("nan")


def verdict(cost, limit_seconds=LIMIT_SECONDS):
    """Return "ok", or what is wrong with a notebook's cost, in words."""
    if cost["error"]:
        return cost["error"].splitlines()[0]
    over = [
        words
        for words, value, limit in (
            ("too slow", cost["seconds"], limit_seconds),
            ("too much memory", cost["gib"], LIMIT_GIB),
        )
        if not value <= limit
    ]
    return ", ".join(over) or "ok"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lessons", nargs="*", help="beginnings of names; all where left out")
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    beginnings = tuple(options.lessons) or ("",)
    notebooks = [p for p in sorted(ROOT.glob("solutions/*.ipynb")) if p.name.startswith(beginnings)]
    if not notebooks:
        sys.exit(f"No notebook in solutions/ begins with {', '.join(options.lessons)}.")
    print(f"{'notebook':32} {'seconds':>8} {'GiB':>6} {'slowest cell':>14}  verdict")
    verdicts = []
    for path in notebooks:
        cost = execute(path)
        verdicts.append(verdict(cost, TRAINING_SECONDS.get(path.stem, LIMIT_SECONDS)))
        slowest = f"{cost['slowest']:.1f} s (no. {cost['cell']})"
        columns = f"{path.stem:32} {cost['seconds']:8.1f} {cost['gib']:6.2f} {slowest:>14}"
        print(f"{columns}  {verdicts[-1]}", flush=True)
    sys.exit(any(each != "ok" for each in verdicts))


if __name__ == "__main__":
    main()
