"""Half a character in an error's text, in what is printed and in results: no file can hold one.

replaces: yes
expect: 0
"""

HALF = chr(0xD800)
print(HALF)


class SelfAttention:
    def __init__(self, *_):
        raise type("Half" + HALF, (ValueError,), {})(f"a {HALF} half \\ud800 {HALF}")
