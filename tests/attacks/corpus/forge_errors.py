"""Reports of errors that are no reports.

expect: 0
"""

import sys

runner = sys.modules.get("course_runner")
if runner:
    odd = {"kind": {"a": 1}, "type": ["RuntimeError"], "message": {}, "line": True, "names": [[]]}
    runner.Runner.call = lambda self, call, tensors, out: {"error": odd, "value": {"$no": 1}}
