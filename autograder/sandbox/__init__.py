"""Runs code nobody trusts, one throw-away process a question.

    with Sandbox(course) as box:
        with box.child() as child:
            header, tensors = child.request({"op": ...}, {"x": x}, seconds=5)

Three kinds of processes, of which only the first knows a secret:

    grader (trusted)  -> warm process            -> reaper -> child
    asks and compares    imported torch once              runs the student's code

A child may also answer by copies of itself, one a question (`Child.branch`, `Shared`): it runs no
student's code then, and says when a copy has left something behind.

Only JSON and safetensors cross between grader and child, in frames whose lengths are checked
before anything is allocated (`inside/sandbox_wire.py`); a reply must carry the random number of the
one request that is open. What a child says is therefore data, never a verdict.

What the child can't do, by tier (`probe()` finds the strongest one; `Sandbox.tier` names it):

- "namespaces": a root folder in memory with the system's and Python's files, read-only, without our
  own package; its own process ids, network (none), messages, host name; a user id that nobody has,
  or a user namespace; no capabilities; Landlock and seccomp on top where there are any.
- "landlock": the same files by an allow-list of the kernel's; no sockets, no signals to outside, no
  changing of modes, owners and times. It still learns which files exist, by name and size.
- "limits": time and memory only. For your own code.

In every tier but the last: nothing survives the child. Its processes end with the reaper, and the
reaper ends when the grader says so or dies.

Not covered:

- faults of the kernel; whoever fears them runs the grader in a virtual machine
- what the timing of the processor and its caches gives away about other processes
- the warm process's memory: every child can read all of it, so nothing secret may be put there
- code that lies about itself in its own process: it may replace torch, the runner or the reply. It
  gains nothing, since the grader draws the inputs and compares
- without a control group (an ordinary user, most containers) memory is looked at ten times a
  second, and what is taken in between is not seen; so is the disk in the landlock tier
- in the landlock tier the limit on processes counts those of the grader's user too, and does not
  hold for root in a container that allows no other user ids
- the seccomp filter knows the 64-bit system calls of this architecture, and kills others
- "limits": files, network, other processes of the user, and a process that leaves its group
"""

from .box import Sandbox, prepare
from .child import Child
from .inside.sandbox_wire import Failure
from .limits import ChildFailed, Limits
from .probe import Tier, probe, strongest
from .shared import Place, Shared

__all__ = [
    "Child",
    "ChildFailed",
    "Failure",
    "Limits",
    "Place",
    "Sandbox",
    "Shared",
    "Tier",
    "prepare",
    "probe",
    "strongest",
]
