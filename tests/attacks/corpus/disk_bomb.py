"""Fills every disk that it may write to.

answers: right
expect: same | err
"""

for place in ("/tmp/full", "/dev/shm/full", "full", "@FOLDER@/full"):
    try:
        with open(place, "wb") as file:
            for _ in range(2000):
                file.write(b"x" * 1_000_000)
    except OSError:
        continue
