"""A scratch cell takes the names that the course imports.

cell: added
answers: wrong
expect: 0
"""

import sys
import types

for name in ("autograder.judging.compare", "autograder.checks", "autograder.reference"):
    sys.modules[name] = types.ModuleType(name)
check = hint = lambda *_, **__: True
