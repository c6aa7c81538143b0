"""How long the comments of one source may keep the trusted side busy."""

from __future__ import annotations

import time

SECONDS = 10.0  # of processor time; a class of students takes a tenth of a second


class TooLong(ValueError):
    """The comments take longer than anyone's should."""


class Clock:
    """Stops a judgement that takes too long: whoever works in a loop asks it on the way."""

    def __init__(self, seconds: float = SECONDS):
        self.end = time.process_time() + seconds

    def check(self) -> None:
        """Raises TooLong when the time is over."""
        if time.process_time() > self.end:
            raise TooLong("its comments take too long to be read")
