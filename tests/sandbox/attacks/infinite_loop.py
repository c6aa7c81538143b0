"""Never returns.

expected: timed out
seconds: 0.5
"""

while True:
    pass
