"""Leaves modules of well-known names where it stands.

expected: ok
"""

import contextlib
import os

for name in ("torch", "json", "sitecustomize", "usercustomize", "conftest", "sandbox_wire"):
    with open(f"{name}.py", "w") as file:
        file.write("raise SystemExit('shadowed')")
    with contextlib.suppress(OSError):
        os.makedirs(f"/tmp/{name}", exist_ok=True)
