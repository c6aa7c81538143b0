"""The result is equal to everything.

expect: 0
stock: yes
"""


class Always(float):
    shape = size = property(lambda self: self)

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = float.__hash__

    def __getattr__(self, name):
        return lambda *_, **__: self


class SelfAttention:
    def __init__(self, *_):
        self.q = self.k = self.v = Always(1)

    def __call__(self, x):
        return Always(1)

    def __getattr__(self, name):
        return Always(1)
