"""Fills memory, 50 MB at a time.

expected: memory
"""

blocks = []
while True:
    blocks.append(b"x" * 50_000_000)
