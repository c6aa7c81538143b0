"""Right or wrong, and why: pure functions of what was asked and what came back.

May touch no file and start no process. Knows what was asked (`course`), the values that cross the
wall (`sandbox.inside`) and what a result is (`reports`).
"""
