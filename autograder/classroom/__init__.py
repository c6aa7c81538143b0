"""A class: its marks in nbgrader's gradebook, and what becomes of them.

May use the grader, the pool of processes and nbgrader; students do not get this room. One process
writes to the gradebook; whatever stops it, a mark is either there as a whole or not at all.
"""
