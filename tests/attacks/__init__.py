"""Homeworks that cheat, stop or harm a careless grader, and unlucky honest ones.

`corpus/` holds one small file for each; `entries.py` reads them, `run.py` hands one in and looks
at what it did, `table.py` prints what became of all of them, here and with plain nbgrader.
"""
