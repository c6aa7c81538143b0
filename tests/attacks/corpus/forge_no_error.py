"""Every call reports that it raised what was expected.

expect: 0
"""

import sys

runner = sys.modules.get("course_runner")
if runner:
    error = {"kind": "raised", "type": "ValueError", "message": "", "line": 1, "statement": ""}
    runner.Runner.call = lambda self, call, tensors, out: {"error": error}
