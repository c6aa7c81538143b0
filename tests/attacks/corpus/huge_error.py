"""Raises an error with a text of 50 MB, and a type with a name of one.

expect: 0
"""

Long = type("L" * 1_000_000, (Exception,), {})


class SelfAttention:
    def __init__(self, *_):
        raise Long("x" * 50_000_000)
