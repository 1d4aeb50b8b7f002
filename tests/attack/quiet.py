"""Commands run without their output, in this process."""

from __future__ import annotations

import contextlib
import io

from hilltop.cli.main import main


def quietly(words: list[str]) -> int | str:
    """Run a command without its output; a traceback is returned as text."""
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            return main(words)
    except SystemExit as end:
        return int(end.code or 0)
    except Exception as error:
        return repr(error)
