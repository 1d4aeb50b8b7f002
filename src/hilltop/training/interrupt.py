"""Ctrl-C while training: noted, so that the step in hand is finished and saved first."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupt:
    """While it is open, the first Ctrl-C sets ``asked``; a second one stops at once."""

    def __init__(self) -> None:
        """Nothing was asked yet."""
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Interrupt:
        """Start listening; only the main thread may."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening."""
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
