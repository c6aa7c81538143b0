"""How other versions of an answer are asked for, and what comes back, on this side of the wall."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence

import torch

from autograder.course.calls import Call, Outcome, from_reply, to_request
from autograder.course.steps.traces import Trace, to_steps_request
from autograder.course.steps.traces import read as read_steps
from autograder.sandbox.inside import edited, steps
from autograder.sandbox.inside.record import in_bounds
from autograder.sandbox.inside.runner import Runner

# A request to what holds the answer, and its reply; raises ValueError where there is none.
Send = Callable[[dict, dict], tuple[dict, dict]]


MORE_MEMORY = 2**31  # bytes that versions in a notebook may take
ALL_SECONDS = 30.0  # for all versions of one answer; counts end nearly every search before


def in_time(send: Send, seconds: float = ALL_SECONDS) -> Send:
    """Asks for versions until all of them together took so long, and then raises ValueError: a net
    for programs that count little and take long, as one that keeps tensors for numbers does."""
    spent = 0.0

    def timed(header: dict, tensors: dict) -> tuple[dict, dict]:
        nonlocal spent
        if spent > seconds:
            raise ValueError(f"the versions of this answer took more than {seconds:.0f} seconds")
        begun = time.monotonic()
        try:
            return send(header, tensors)
        finally:
            spent += time.monotonic() - begun

    return timed


def outcomes_of(
    send: Send,
    texts: Sequence[str],
    calls: Sequence[Call],
    wanted: bool,
    base: str = "",
    ends: bool = False,
) -> list[tuple[Outcome, ...] | None]:
    """What the calls give with each of these versions; None where that cannot be told.

    wanted: whether a version that stops with an error is of interest, too. base: what most versions
    differ from in one function; for a first look, which is quick. ends: whether it is of interest
    where a version stops, if nothing else is.
    """
    header, tensors = to_request(list(calls))
    header |= {"op": "edited", "texts": list(texts), "wanted": wanted, "base": base}
    header["ends"] = ends
    try:
        return _read(*send(header, tensors), len(texts), len(calls))
    except (LookupError, TypeError, ValueError):
        return [None] * len(texts)


def _read(
    header: Mapping, tensors: Mapping[str, torch.Tensor], texts: int, calls: int
) -> list[tuple[Outcome, ...] | None]:
    raw = header.get("versions")
    if not isinstance(raw, list) or len(raw) != texts:
        raise ValueError("asked for versions of an answer, got something else")
    return [None if r is None else from_reply({"outcomes": r}, tensors, calls) for r in raw]


def steps_of(send: Send, text: str, call: Call) -> Trace | None:
    """The steps of one call with one version."""
    header, tensors = to_steps_request([call])
    header |= {"op": "edited", "texts": [text], "steps": True}
    try:
        return read_steps(*send(header, tensors), 1)[0]
    except (LookupError, TypeError, ValueError):
        return None


def here(namespace: Mapping) -> Send:
    """Asks versions in this process: in a student's own notebook."""

    def send(header, tensors):
        sys.modules.setdefault("course_edited", edited)
        sys.modules.setdefault("course_steps", steps)
        state = torch.get_rng_state()
        try:
            with in_bounds(MORE_MEMORY):
                return Runner(dict(namespace)).handle(header, tensors)
        finally:
            torch.set_rng_state(state)

    return send
