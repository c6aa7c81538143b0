"""Frames: u32 header length, u32 body length, a JSON header, a safetensors body. Nothing else.

Both sides of the wall use this file, and neither trusts the other: lengths are checked before
anything is allocated, JSON's NaN and infinities are refused, and no bytes are ever unpickled.
"""

from __future__ import annotations

import json
import math
import struct
from enum import StrEnum

LENGTHS = struct.Struct("<II")
MAX_TENSORS = 4096


class Failure(StrEnum):
    """Why there is no value: what became of the child, or of a call in it."""

    CANNOT_START = "cannot start"
    DIED = "died"
    TIMED_OUT = "timed out"
    MEMORY = "memory"
    TOO_MUCH_OUTPUT = "too much output"
    BAD_REPLY = "bad reply"
    RAISED = "raised"  # the call did, with an exception; this and the next as `runner` writes them
    MISSING = "missing"  # there is nothing of the name that was asked for
    NOT_FITTED = "not fitted"  # of a known mistake: nothing of its kind explains what came back


class BadFrame(ValueError):
    """Bytes that are not a frame; the message says in what way."""


class TooLarge(BadFrame):
    """A frame that announces more than the receiver accepts."""


def pack(header: dict, tensors: dict) -> list[bytes]:
    """A frame, in pieces. Raises ValueError or TypeError for what does not fit in one."""
    text = json.dumps(header, allow_nan=False).encode()
    body = b""
    if tensors:
        import safetensors.torch

        own = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
        body = safetensors.torch.save(own)
    if max(len(text), len(body)) >= 1 << 32:
        raise ValueError("a frame holds less than 4 GiB")
    pieces = [LENGTHS.pack(len(text), len(body)), text, body]
    return [piece for piece in pieces if piece]


def lengths(prefix: bytes, max_header: int, max_body: int) -> tuple[int, int]:
    """The two lengths that a frame announces. Raises TooLarge before anything is allocated."""
    header, body = LENGTHS.unpack(prefix)
    if header > max_header:
        raise TooLarge(f"a header of {header} bytes, where {max_header} are allowed")
    if body > max_body:
        raise TooLarge(f"a body of {body} bytes, where {max_body} are allowed")
    return header, body


def _whole(header: object) -> object:
    """The same without half characters: a text that holds one can neither be shown nor stored."""
    text = json.dumps(header, ensure_ascii=False).encode("utf-16", "surrogatepass")
    return json.loads(text.decode("utf-16", "replace"))


def unpack(text: bytes, body: bytes) -> tuple[dict, dict]:
    """The header and the tensors of a frame. Raises BadFrame for anything but those."""
    try:
        header = json.loads(text.decode(), parse_constant=_refuse, parse_float=_finite)
        if b"\\ud" in text.lower():
            header = _whole(header)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"the header is not JSON ({type(error).__name__})") from None
    if type(header) is not dict:
        raise BadFrame("the header is not a JSON object")
    if not body:
        return header, {}
    import safetensors.torch  # here, because a frame without tensors needs no torch

    try:
        tensors = safetensors.torch.load(body)
    except Exception as error:  # safetensors' own errors, and torch's for odd dtypes
        raise BadFrame(f"the body is not safetensors ({type(error).__name__})") from None
    if len(tensors) > MAX_TENSORS:
        raise BadFrame(f"{len(tensors)} tensors, where {MAX_TENSORS} are allowed")
    return header, tensors


def _refuse(name: str):
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number too large for JSON")
    return number
