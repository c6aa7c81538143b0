"""Never ends.

answers: right
expect: err
slow: yes
"""

while True:
    pass
