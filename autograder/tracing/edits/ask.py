"""How other versions of an answer are asked for, and what comes back, on this side of the wall."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

import torch

from autograder.course.calls import Call, Outcome, from_reply, to_request
from autograder.sandbox import ChildFailed
from autograder.sandbox.inside import edited
from autograder.sandbox.inside.runner import Runner

# Given texts and calls: what each gives, None where it cannot be told; `wanted`: also errors.
Ask = Callable[[Sequence[str], Sequence[Call], bool], list[tuple[Outcome, ...] | None]]
SECONDS = 5.0  # that a child may take for all versions


def to_edited_request(
    texts: Sequence[str], calls: Sequence[Call], wanted: bool
) -> tuple[dict, dict]:
    """The header and tensors that ask a `Runner` for these calls of these versions."""
    header, tensors = to_request(list(calls))
    return {**header, "op": "edited", "texts": list(texts), "wanted": wanted}, tensors


def read(
    header: Mapping, tensors: Mapping[str, torch.Tensor], texts: int, calls: int
) -> list[tuple[Outcome, ...] | None]:
    """The outcomes of a reply; raises ValueError where it is not what was asked for."""
    raw = header.get("versions")
    if not isinstance(raw, list) or len(raw) != texts:
        raise ValueError("asked for versions of an answer, got something else")
    return [None if r is None else from_reply({"outcomes": r}, tensors, calls) for r in raw]


def here(namespace: Mapping) -> Ask:
    """Asks versions in this process: in a student's own notebook."""

    def ask(texts, calls, wanted):
        sys.modules.setdefault("course_edited", edited)
        state = torch.get_rng_state()
        try:
            reply = Runner(dict(namespace)).handle(*to_edited_request(texts, calls, wanted))
        finally:
            torch.set_rng_state(state)
        return read(*reply, len(texts), len(calls))

    return ask


def in_child(child) -> Ask:
    """Asks versions in a child that has loaded the answer; where it fails, none of them tells."""

    def ask(texts, calls, wanted):
        try:
            request = to_edited_request(texts, calls, wanted)
            reply = child.request(*request, seconds=SECONDS)
            return read(*reply, len(texts), len(calls))
        except (ChildFailed, LookupError, TypeError, ValueError):
            return [None] * len(texts)

    return ask
