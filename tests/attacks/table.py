"""`make attack`: what became of every homework of the corpus, here and with plain nbgrader.

Ends with status 1 if any of them gained a point, lost an honest one or did harm.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from autograder.course.course import Course
from autograder.grading.grade import Grader
from tests.attacks import stock
from tests.attacks.entries import HOMEWORK, ROOT, Entry, entries
from tests.attacks.run import SHORT, Outcome, attack, honest_scores_full


def main(argv: list[str] | None = None) -> int:
    """Runs the corpus, or the entries named; prints the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks.table", description=__doc__)
    parser.add_argument("names", nargs="*", help="entries to run (default: all)")
    parser.add_argument("--tier", default="auto", help="how student code is held")
    parser.add_argument("--no-stock", action="store_true", help="leave plain nbgrader out")
    args = parser.parse_args(argv)
    chosen = [e for e in entries() if not args.names or e.name in args.names]
    console = Console()
    outcomes = run_all(chosen, args.tier, console)
    compared = [] if args.no_stock else [e for e in chosen if e.stock]
    waiting = console.status(f"plain nbgrader grades {len(compared)} of them")
    with tempfile.TemporaryDirectory(prefix="plain-nbgrader-") as folder, waiting:
        plain = stock.ask(compared, Path(folder)) if compared else {}
    print_table(outcomes, plain, console)
    return 1 if any(o.wrong for _, o in outcomes) else 0


def run_all(chosen: list[Entry], tier: str, console: Console) -> list[tuple[Entry, Outcome]]:
    """Each homework, and an honest one after it that must score full."""
    out = []
    with (
        tempfile.TemporaryDirectory(prefix="marker-") as marker,
        tempfile.TemporaryDirectory() as own,
    ):
        os.chmod(marker, 0o711)
        before, os.environ["TMPDIR"], tempfile.tempdir = os.environ.get("TMPDIR"), marker, None
        with Grader(tier=tier, course=Course.at(ROOT), limits=SHORT) as grader:
            grader.box(grader.lessons[HOMEWORK])
            os.environ.pop("TMPDIR") if before is None else os.environ.update(TMPDIR=before)
            tempfile.tempdir = None
            for entry in track(chosen, "attacking", console=console, transient=True):
                outcome = attack(entry, grader, marker)
                if not honest_scores_full(grader, Path(own)):
                    wrong = (*outcome.wrong, "the next honest homework lost points")
                    outcome = Outcome(outcome.points, outcome.verdict, wrong, outcome.seconds)
                out.append((entry, outcome))
    return out


def print_table(
    outcomes: list[tuple[Entry, Outcome]], plain: dict[str, str], console: Console
) -> None:
    """One line each; of plain nbgrader, points out of 10 where it could be run safely."""
    table = Table(title="Homeworks that cheat, stop or harm a grader, and unlucky honest ones")
    for name in ("homework", "what it does", "answers", "expected", "here", "plain nbgrader"):
        table.add_column(name, overflow="fold")
    for entry, outcome in outcomes:
        here = "; ".join(outcome.wrong) or f"{outcome.points:g} ({outcome.verdict})"
        style = "bold red" if outcome.wrong else ""
        says = entry.says.strip().replace("\n", " ")
        other = plain.get(entry.name, "-" if not entry.stock else "no answer")
        expected = " or ".join(entry.expect)
        table.add_row(entry.name, says, entry.answers, expected, here, other, style=style)
    console.print(table)
    tiers = {o.isolation for _, o in outcomes if o.isolation not in ("", "none")}
    wrong = sum(bool(o.wrong) for _, o in outcomes)
    console.print(f"{len(outcomes)} homeworks, {wrong} not as expected; held by {', '.join(tiers)}")
    console.print(
        "'-': not run with plain nbgrader. It would exhaust or harm this machine, wait without an "
        "end, or the attack is aimed at this grader alone."
    )


if __name__ == "__main__":
    sys.exit(main())
