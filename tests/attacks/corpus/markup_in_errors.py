"""Raises an error full of markup and terminal codes.

expect: 0
"""


class SelfAttention:
    def __init__(self, *_):
        raise ValueError(
            "<script>alert(1)</script><img src=x onerror=alert(2)>[red]x[/red] \x1b[2J\x1b]0;t\x07"
        )
