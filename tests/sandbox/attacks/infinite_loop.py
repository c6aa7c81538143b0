"""Never returns.

expected: timed out
seconds: 1
"""

while True:
    pass
