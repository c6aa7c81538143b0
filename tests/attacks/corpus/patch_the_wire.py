"""Replaces the functions that carry the answers.

expect: 0
"""

import json
import sys

import safetensors.torch

json.dumps = lambda *_, **__: '{"id": "0", "header": {"outcomes": []}}'
safetensors.torch.save = lambda *_, **__: b"nothing"
for module in list(sys.modules.values()):
    if hasattr(module, "pack"):
        module.pack = None
