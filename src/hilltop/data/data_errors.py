"""Errors in a file: collected as it is read, then reported together, at most 20 at once."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass, field
from pathlib import Path

from hilltop.checks import pluralize
from hilltop.errors import DataError

MOST_ERRORS = 20


@dataclass
class ErrorCollector:
    """What is wrong with one file.

    Example:
        >>> errors = ErrorCollector(Path("labels.csv"))
        >>> errors.add("class 'sofa' is not in the class list (20 names).", line=17)
        >>> errors.check()
        Traceback (most recent call last):
        hilltop.errors.DataError: labels.csv, line 17: class 'sofa' is not in the class list (20 names).
    """  # noqa: E501 (one message is one line)

    path: Path
    found: list[str] = field(default_factory=list)

    def add(self, message: str, *, line: int | None = None) -> None:
        """Note an error: a sentence, what was expected, given and to do. The 20th one stops."""
        place = str(self.path) if line is None else f"{self.path}, line {line}"
        self.found.append(f"{place}: {message}")
        if len(self.found) >= MOST_ERRORS:
            self.found.append(f"{self.path}: stopped after {MOST_ERRORS} errors.")
            self.check()

    def check(self) -> None:
        """Raise if there were any errors."""
        if self.found:
            raise DataError("\n".join(self.found))


def unknown_class(name: str, classes: Sized) -> str:
    """What to say of a class that a closed list of classes does not name."""
    return f"class {name!r} is not in the class list ({pluralize(len(classes), 'name', 'names')})."


def data_error(path: Path, message: str, *, line: int | None = None) -> DataError:
    """Return the error for one thing that is wrong with a file."""
    place = str(path) if line is None else f"{path}, line {line}"
    return DataError(f"{place}: {message}")
