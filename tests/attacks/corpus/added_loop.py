"""A scratch cell that never ends stands before the answers.

cell: added
answers: right
expect: same
slow: yes
"""

while True:
    pass
