"""What a person at a terminal sees of a command, and what a log, a script or ``--quiet`` gets."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hilltop.errors import HilltopWarning
from hilltop.progress import ProgressLog, clock_time, logger

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class TerminalHandler(logging.Handler):
    """Prints what the library logs: sentences as lines, progress as a bar in a terminal.

    Lines go to standard output, as the commands' own do, or to standard error; the bar to standard
    error, and it leaves no trace.
    """

    def __init__(self, *, aside: bool = False) -> None:
        """Show a bar if somebody looks at standard error, where ``aside`` lines go, too."""
        super().__init__(logging.DEBUG)
        self._aside = aside
        self._bars = sys.stderr.isatty()
        self._first = os.environ.get("RANK", "0") == "0"  # of the processes of torchrun
        self._bar: Bar | None = None
        self._shown: ProgressLog | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        progress = getattr(record, "progress", None)
        if progress is not None and not self._first:
            return
        if progress is None or not self._bars:
            if record.levelno >= logging.INFO:
                self._line(record.getMessage())
        elif record.levelno == logging.DEBUG:
            self._draw(progress)

    def close(self) -> None:
        """Take the bar away."""
        self._clear()
        super().close()

    def _line(self, text: str) -> None:
        shown = self._shown
        self._clear()
        print(text, file=sys.stderr if self._aside else sys.stdout, flush=True)
        if shown is not None:
            self._draw(shown)

    def _draw(self, progress: ProgressLog) -> None:
        if progress.over:
            self._clear()
            return
        if self._bar is None or self._shown is not progress:
            self._clear()
            self._bar = _new_bar()
            self._bar.add_task(progress.what, total=progress.total, said="")
            self._bar.start()
            self._shown = progress
        left = progress.seconds_left()
        counted = f"{progress.done:,}/{progress.total:,} {progress.unit}".rstrip()
        rest = "" if left is None else f"{clock_time(left)} left"
        said = "  ".join(part for part in (counted, rest, progress.note) if part)
        self._bar.update(self._bar.task_ids[0], completed=progress.done, said=said, refresh=True)

    def _clear(self) -> None:
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._shown = None


def _new_bar() -> Bar:
    """A bar without a thread of its own, which processes that are forked would inherit."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[said]}", markup=False),
    )
    return Bar(
        *columns,
        console=Console(stderr=True, highlight=False),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )


@contextlib.contextmanager
def shown(*, quiet: bool, json: bool, aside: bool, debug: bool) -> Iterator[None]:
    """Show what is logged while a command runs, and warnings as sentences.

    Args:
        quiet: Show no progress and nothing that is said along the way.
        json: Whether standard output belongs to a result alone: all else goes to standard error.
        aside: Whether what is said along the way goes to standard error, beside an answer.
        debug: Show warnings of other packages, too, with their place.
    """
    with contextlib.ExitStack() as stack:
        if not debug:
            stack.enter_context(warnings.catch_warnings())
            warnings.showwarning = _show_warning
            stack.enter_context(_errors_alone("matplotlib"))
        if json:
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        before = logger.level, logger.propagate
        logger.propagate = False  # the handler shows it, and nobody else is meant to repeat it
        stack.callback(_restore, *before)
        if not quiet:
            handler = TerminalHandler(aside=aside)
            logger.setLevel(logging.DEBUG)
            logger.addHandler(handler)
            stack.callback(handler.close)
            stack.callback(logger.removeHandler, handler)
        yield


@contextlib.contextmanager
def _errors_alone(package: str) -> Iterator[None]:
    """Do not show what a package says of its own set-up, such as a home that is read-only."""
    of_package = logging.getLogger(package)
    before = of_package.level
    of_package.setLevel(logging.ERROR)
    try:
        yield
    finally:
        of_package.setLevel(before)


def _restore(level: int, propagate: bool) -> None:
    logger.setLevel(level)
    logger.propagate = propagate


def _show_warning(
    message: Warning | str, category: type[Warning], *place: Any, **further: Any
) -> None:
    """Print a warning of ours as a sentence; those of other packages are for ``--debug``."""
    if issubclass(category, HilltopWarning):
        print(f"hilltop: warning: {message}", file=sys.stderr)
