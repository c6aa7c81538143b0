"""What a notebook prints and draws, for the eyes of a person who grades; marks never look at it.

The cells are run one after the other in one throw-away child of the sandbox, each for itself asked
for its text and its figures. What a cell has shown stays, also where a later one ends the child.
Only text and PNG come back; every picture is decoded and written anew on this side.
"""

from __future__ import annotations

import base64
import io
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

import nbformat
from nbformat import NotebookNode

from autograder.intake.magics import plain_python
from autograder.sandbox import ChildFailed, Sandbox

if TYPE_CHECKING:  # who only writes down what was shown needs no torch
    import torch

CELL_SECONDS = 10.0
ALL_SECONDS = 40.0
MOST_PIXELS = 4_000_000  # of one picture
MOST_BYTES = 2_000_000  # of one picture, as it comes and as it is stored


@dataclass(frozen=True)
class Shown:
    """What one cell showed: its printed text, and its pictures as the bytes of PNG files."""

    text: str
    pictures: tuple[bytes, ...] = ()


def show(box: Sandbox, cells: Iterable[tuple[str, str]]) -> dict[str, Shown]:
    """What each cell, given as (id, source), shows when all are run in order, by id.

    Cells behind one that ends the child, or that are reached too late, are not in it.
    """
    shown: dict[str, Shown] = {}
    deadline = time.monotonic() + ALL_SECONDS
    try:
        with box.child() as child:
            for name, source in cells:
                seconds = min(CELL_SECONDS, deadline - time.monotonic())
                if seconds <= 0:
                    break
                request = {"op": "show", "cell": {"id": name, "source": plain_python(source)}}
                try:
                    shown[name] = _shown(*child.request(request, {}, seconds=seconds))
                except ChildFailed as failed:
                    shown[name] = Shown(f"The notebook ends here. {failed.reason}")
                    break
    except ChildFailed:
        return shown
    return shown


def _shown(header: dict, tensors: dict) -> Shown:
    from autograder.course.calls import clean_error

    text = header.get("text")
    text = text if isinstance(text, str) else ""
    try:
        error = clean_error(header["error"]) if header.get("error") else None
    except (AttributeError, TypeError):
        error = None
    if error:
        line = f"line {error['line']}: " if error["line"] else ""
        text += f"{line}{error['type']}: {error['message']}\n"
    pictures = [picture(_bytes(tensor)) for tensor in list(tensors.values())[:6]]
    return Shown(text, tuple(p for p in pictures if p))


def _bytes(tensor: torch.Tensor) -> bytes:
    import torch

    if tensor.dtype != torch.uint8 or tensor.dim() != 1 or tensor.numel() > MOST_BYTES:
        return b""
    return tensor.contiguous().numpy().tobytes()


def picture(data: bytes) -> bytes | None:
    """A PNG file written anew from its pixels; None where it is none, or too large."""
    from PIL import Image

    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            warnings.simplefilter("ignore")
            if image.width * image.height > MOST_PIXELS:
                return None
            out = io.BytesIO()
            Image.frombytes("RGBA", image.size, image.convert("RGBA").tobytes()).save(out, "PNG")
    except (OSError, SyntaxError, ValueError, MemoryError, Image.DecompressionBombError):
        return None
    return out.getvalue() if out.tell() <= MOST_BYTES else None


def outputs(shown: Shown, texts: Sequence[str] = ()) -> list[NotebookNode]:
    """What a cell showed as a notebook's outputs: a stream of text, and pictures.

    texts: the pictures' alternative texts, which nbconvert and formgrader look for beside them.
    """
    found = []
    if shown.text:
        found.append(nbformat.v4.new_output("stream", name="stdout", text=shown.text))
    for data, text in zip_longest(shown.pictures, texts[: len(shown.pictures)]):
        encoded = {"image/png": base64.b64encode(data).decode("ascii")}
        about = {"image/png": {"alt": text}} if text else {}
        found.append(nbformat.v4.new_output("display_data", data=encoded, metadata=about))
    return found
