"""The exceptions and warnings that Hilltop raises; every one of them descends from two roots."""


class HilltopError(Exception):
    """Root of all errors that Hilltop raises on purpose."""


class ArgumentError(HilltopError, ValueError):
    """An argument has a value that cannot be used. It is also a ``ValueError``."""


class ArgumentTypeError(HilltopError, TypeError):
    """An argument has the wrong type, or a call has an unknown one. It is also a ``TypeError``."""


class HilltopWarning(UserWarning):
    """Root of all warnings that Hilltop issues."""
