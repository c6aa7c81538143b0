"""Takes over every later import.

expect: 0
"""

import builtins
import sys

import torch

builtins.__import__ = lambda *_, **__: torch
sys.meta_path.clear()
sys.path.clear()
