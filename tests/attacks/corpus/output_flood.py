"""Prints 300 MB, in one line and in many.

answers: right
expect: same | err
slow: yes
"""

line = "x" * 1_000_000
for _ in range(200):
    print(line, end="")
for _ in range(1_000_000):
    print("y" * 99)
