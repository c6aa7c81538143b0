"""Runs code nobody trusts: `with Sandbox(course) as box, box.child() as child: child.request(...)`."""

from .box import Sandbox
from .child import Child
from .limits import ChildFailed, Limits
from .probe import Tier, probe

__all__ = ["Child", "ChildFailed", "Limits", "Sandbox", "Tier", "probe"]
