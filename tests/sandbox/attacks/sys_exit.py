"""Asks the interpreter to end.

expected: bad reply
"""

raise SystemExit(0)
