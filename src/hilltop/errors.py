"""The exceptions and warnings that Hilltop raises; every one of them descends from two roots."""

from hilltop.deprecation import renamed_attributes


class HilltopError(Exception):
    """Root of all errors that Hilltop raises on purpose."""


class ArgumentError(HilltopError, ValueError):
    """An argument has a value that cannot be used. It is also a ``ValueError``."""


class ArgumentTypeError(HilltopError, TypeError):
    """An argument has the wrong type, or a call has an unknown one. It is also a ``TypeError``."""


class HilltopWarning(UserWarning):
    """Root of all warnings that Hilltop issues."""


class DataError(HilltopError):
    """A file or table cannot be used as it is. The message names file, line and remedy."""


class AmbiguousInputError(DataError):
    """A file leaves something open that only the user can say; the message names the options.

    Attributes:
        ambiguous: The questions with likely answers, as ``hilltop.data.Ambiguous``; None where the
            message says everything.
    """

    def __init__(self, message: str, ambiguous: object | None = None) -> None:
        """Keep the questions beside the message."""
        super().__init__(message)
        self.ambiguous = ambiguous


class ConfigError(HilltopError):
    """A configuration has faults; the message lists all of them."""


class DivergenceError(HilltopError):
    """Training went beyond all bounds: a loss or a score is not a finite number."""


class MissingExtra(HilltopError, ImportError):  # noqa: N818 (it says what to do)
    """A package that one of our extras brings is not installed. It is also an ``ImportError``."""

    def __init__(self, name: str, module: str | None, extra: str) -> None:
        """Say what needs which package, and how to get it."""
        package = (module or "").partition(".")[0]
        super().__init__(
            f"{name} needs the package {package!r}. Install it with: {install_command(extra)}"
        )


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation, from where it was installed.

    An installation remembers the folder that it was made from; without one, the command is meant
    for the folder of the repository.

    Example:
        >>> install_command("xlsx").endswith("[xlsx]'")
        True
    """
    import json
    from importlib import metadata
    from urllib.parse import unquote, urlsplit

    try:
        text = metadata.distribution("hilltop").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        text = None
    source = json.loads(text) if text else {}
    folder = unquote(urlsplit(source.get("url", "")).path) if "dir_info" in source else ""
    editable = "-e " if source.get("dir_info", {}).get("editable") else ""
    if not folder:
        return f"pip install '.[{extra}]'"
    return f"pip install {editable}'{folder}[{extra}]'"


__getattr__ = renamed_attributes(__name__, {"OptionNeeded": "AmbiguousInputError"})
