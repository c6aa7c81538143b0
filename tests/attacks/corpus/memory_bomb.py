"""Takes memory without an end.

answers: right
expect: err
slow: yes
"""

blocks = []
while True:
    blocks.append(bytearray(b"x" * 200_000_000))
