"""Runs code nobody trusts, one throw-away process a question."""

from .box import Sandbox
from .child import Child
from .limits import ChildFailed, Limits
from .probe import Tier, probe

__all__ = ["Child", "ChildFailed", "Limits", "Sandbox", "Tier", "probe"]
