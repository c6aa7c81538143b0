"""Leaves a job of a shell behind.

expected: ok
"""

import subprocess

subprocess.run(["/bin/sh", "-c", "(trap '' HUP TERM; sleep 600) & echo started"], check=True)
