"""Returns objects that would do harm if somebody unpickled them, and sends pickles as answers.

expect: 0
"""

import os
import pickle

import safetensors.torch


class Harm:
    def __reduce__(self):
        return os.system, ("echo harm > '@CANARY@'",)


safetensors.torch.save = lambda *_, **__: pickle.dumps(Harm())


class SelfAttention:
    def __init__(self, *_):
        pass

    def __call__(self, x):
        return Harm()
