"""A marked class, told and taken elsewhere: the report, tables for platforms, answers by hand.

Reads the gradebook and what is stored beside it, and writes files; only `answers` writes marks, and
those are a person's. May use the grader and the classroom; students do not get this room.
"""
