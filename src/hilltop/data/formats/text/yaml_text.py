"""YAML as the values that JSON has: text for names, never a date or a number that was a name."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import yaml

from hilltop.data.data_errors import data_error

_MOST_BYTES = 1 << 26
_DEEPEST = 50


def parse_yaml(path: Path, text: str) -> Any:
    """Return the document; anchors that repeat a part are refused, for they can grow without end.

    Raises:
        DataError: It is no YAML, or too large.
    """
    if len(text) > _MOST_BYTES:
        raise data_error(path, "this YAML has more than 64 MiB. Write JSON instead.")
    try:
        _check_parts(path, text)
        content = yaml.load(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        raise data_error(path, f"this is not valid YAML: {error.problem}.", line=line) from None
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise data_error(path, f"this YAML cannot be read: {reason}.") from None
    return _plain(content)


def _check_parts(path: Path, text: str) -> None:
    """Raise before anything is built that is named again or lies too deep, and takes forever."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise data_error(path, "this YAML repeats parts by name (*), which is not read here.")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise data_error(path, "this YAML is nested too deeply to be labels.")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_name(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(inner) for inner in value]
    return _name(value) if isinstance(value, datetime.date | bytes) else value


def _name(value: Any) -> str:
    """A key as text; yes and no are words there."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
