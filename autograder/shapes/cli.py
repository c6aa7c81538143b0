"""`autograder shapes FILE.py --call '...'`: shape comments of anyone's PyTorch code.

Your own code is run in this process, as importing it would; grading runs it in the sandbox.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from autograder.shapes.judge import check_source, write_missing
from autograder.shapes.plan import PlanError, plan

CLEAN, FOUND, UNREADABLE = 0, 1, 2


def main(argv: list[str] | None = None) -> int:
    """Runs the command; 0 where nothing is false or missing, 1 where something is, 2 on errors."""
    args = _parser().parse_args(argv)
    try:
        source = args.file.read_text(encoding="utf-8")
        asked = plan("; ".join(args.call), where=dict(map(_rule, args.where)))
        setup = f"import sys; sys.path.insert(0, {str(args.file.resolve().parent)!r})"
        verdicts = check_source(source, asked, setup=setup, strict=args.strict)
    except (OSError, PlanError, SyntaxError, UnicodeDecodeError, ValueError) as error:
        print(f"autograder shapes: {args.file}: {error}", file=sys.stderr)
        return UNREADABLE
    if args.write:
        args.file.write_text(write_missing(source, verdicts), encoding="utf-8")
    if args.json:
        keys = ("line", "statement", "comment", "verdict", "message")
        print(json.dumps([{k: getattr(v, k) for k in keys} for v in verdicts], ensure_ascii=False))
    else:
        for verdict in verdicts:
            if verdict.verdict != "true":
                print(f"{args.file}:{verdict.message.removeprefix('Line ')}")
        true = sum(v.verdict == "true" for v in verdicts)
        print(f"{true} of {len(verdicts)} statements with a tensor have true shape comments")
    return FOUND if any(v.verdict in ("false", "missing") for v in verdicts) else CLEAN


def _rule(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(), value.strip()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="autograder shapes",
        description="Compares shape comments with the shapes that the code makes.",
    )
    parser.add_argument("file", type=Path, metavar="FILE.py")
    parser.add_argument(
        "--call",
        action="append",
        required=True,
        help="how to build and call it: 'Model(hidden)(x[batch_size, seq_len, hidden])'; may be "
        "given several times",
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="NAME=EXPRESSION",
        help="a size that follows from others: hidden=num_heads*head_size",
    )
    parser.add_argument("--json", action="store_true", help="one JSON array of verdicts")
    parser.add_argument("--write", action="store_true", help="write the comments that are missing")
    parser.add_argument("--strict", action="store_true", help="name skipped steps too")
    return parser


if __name__ == "__main__":
    sys.exit(main())
