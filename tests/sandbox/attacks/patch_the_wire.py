"""Replaces the functions that carry its answer.

expected: ok | bad reply | died
"""

import json
import sys

import safetensors.torch

json.dumps = lambda *_, **__: '{"id": "0", "header": {"answer": 100, "found": []}}'
safetensors.torch.save = lambda *_: b"nothing"
for module in list(sys.modules.values()):
    if hasattr(module, "pack"):
        module.pack = None
