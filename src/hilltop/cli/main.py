"""The ``hilltop`` command: parsing, exit codes and the printing of errors."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any, Union

from hilltop.errors import ArgumentError, ArgumentTypeError, HilltopError, OptionNeeded

OK, FAILED, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130

# Where the subcommands live: module, then the names of its command classes.
COMMANDS = {
    "hilltop.cli.labels": ("Inspect", "Convert", "Simulate", "Statistics"),
}
START = """Hilltop: multi-label learning when annotators left labels out.

  hilltop inspect LABELS            what is in a label file, and what looks wrong
  hilltop convert IN OUT            the same labels in another format
  hilltop simulate LABELS --r 0.8   drop labels by the paper's rule, to try methods out
  hilltop statistics LABELS ...     the paper's table of data set statistics

Every command has --help. Formats: hilltop inspect --help.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    words = [word for word in given if word != "--debug"]
    if not words:
        print(START, end="")
        return OK
    try:
        _parse(words).run()
    except HilltopError as error:
        if debug:
            raise
        print(f"hilltop: {error}", file=sys.stderr)
        usage = isinstance(error, OptionNeeded | ArgumentError | ArgumentTypeError)
        return WRONG_USAGE if usage else FAILED
    except KeyboardInterrupt:
        print("hilltop: interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as head, has seen enough
        sys.stderr.close()
        return OK
    except OSError as error:
        if debug:
            raise
        print(f"hilltop: {error.filename or 'file'}: {error.strerror or error}.", file=sys.stderr)
        return FAILED
    return OK


def _parse(words: Sequence[str]) -> Any:
    """Turn words into one of the command objects; wrong words exit with 2."""
    try:
        import tyro

        classes = [
            getattr(importlib.import_module(module), name)
            for module, names in COMMANDS.items()
            for name in names
        ]
    except ModuleNotFoundError as error:
        raise HilltopError(
            f"The command line needs the package {error.name!r}."
            " Install it with: pip install 'hilltop[all]'"
        ) from None
    commands: Any = Union[tuple(classes)]  # noqa: UP007 (made at run time)
    settings = (
        tyro.conf.OmitArgPrefixes,
        tyro.conf.OmitSubcommandPrefixes,
        tyro.conf.FlagCreatePairsOff,
    )
    return tyro.cli(commands, prog="hilltop", args=words, config=settings)
