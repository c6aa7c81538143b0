"""Replaces what the runner is made of.

expect: 0
"""

import builtins

for name in ("isinstance", "len", "getattr", "list", "dict", "str", "zip", "all", "any"):
    setattr(builtins, name, lambda *_, **__: True)
