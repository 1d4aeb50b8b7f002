"""What the library says while it works, as records of Python's ``logging`` under ``hilltop``.

The library itself prints nothing. The command line shows these records in a terminal or as plain
lines; a program of your own sees them with ``logging.basicConfig(level=logging.INFO)``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import TracebackType

logger = logging.getLogger("hilltop")
"""Where everything is logged: sentences and progress at INFO, each step of it at DEBUG."""
logger.addHandler(logging.NullHandler())

FIRST_LINE, NEXT_LINE = 2.0, 10.0
"""Seconds before progress is first told in a line, and from line to line."""


def say(text: str) -> None:
    """Log a sentence for the user."""
    logger.info("%s", text)


def say_of_inputs(text: str) -> None:
    """Log a sentence about the given files, which need not be said twice."""
    logger.info("%s", text, extra={"of_inputs": True})


class ProgressLog:
    """Counts work that may take a while, and logs how far it is and how long the rest will take.

    Records have an attribute ``progress``: this object. Those at DEBUG are for a bar, one for every
    step; those at INFO for a log, none of them where the work is done within two seconds.

    Args:
        what: What is being done, such as "features".
        total: How much there is to do.
        unit: What is counted, such as "images".
        start: What was done before.
        clock: Gives seconds.

    Example:
        >>> with ProgressLog("features", 400, "images") as progress:
        ...     progress.update(64)
        >>> progress.describe(seconds=4.0)
        'features: 64 of 400 images, 0:21 left'
    """

    def __init__(
        self,
        what: str,
        total: int,
        unit: str = "",
        *,
        start: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to count."""
        self.what, self.total, self.unit, self.start = what, total, unit, start
        self.done, self.note, self.over = start, "", False
        self._clock = clock
        self._began = clock()
        self._due = self._began + FIRST_LINE

    def __enter__(self) -> ProgressLog:
        """Show that it has begun."""
        self._log(logging.DEBUG)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Show that it is over."""
        self.finish()

    def finish(self) -> None:
        """Show that it is over, where it does not end with a block."""
        self.over = True
        self._log(logging.DEBUG)

    def update(self, done: int, note: str = "") -> None:
        """Say how much is done by now, and perhaps something about it."""
        self.done, self.note = done, note
        self._log(logging.DEBUG)
        now = self._clock()
        if now >= self._due:
            self._due = now + NEXT_LINE
            self._log(logging.INFO)

    def postpone(self) -> None:
        """Put the next line off: something else was just said about the same work."""
        self._due = self._clock() + NEXT_LINE

    def seconds_left(self, seconds: float | None = None) -> float | None:
        """Return how long the rest will take, at the pace so far; None before the first step."""
        seconds = self._clock() - self._began if seconds is None else seconds
        made = self.done - self.start
        return None if made <= 0 else seconds * (self.total - self.done) / made

    def describe(self, seconds: float | None = None) -> str:
        """Return it as a line of a log."""
        text = f"{self.what}: {self.done:,} of {self.total:,} {self.unit}".rstrip()
        left = self.seconds_left(seconds)
        if left is not None and self.done < self.total:
            text += f", {clock_time(left)} left"
        return f"{text}, {self.note}" if self.note else text

    def _log(self, level: int) -> None:
        if logger.isEnabledFor(level):
            text = self.describe() if level == logging.INFO else self.what
            logger.log(level, "%s", text, extra={"progress": self})


def clock_time(seconds: float) -> str:
    """Return seconds as a clock shows them.

    Example:
        >>> clock_time(75.2), clock_time(3675)
        ('1:15', '1:01:15')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
