"""A scratch cell that raises an error, and one name that it leaves.

cell: added
answers: right
expect: same
stock: yes
"""

x = 3
y = x / 0
