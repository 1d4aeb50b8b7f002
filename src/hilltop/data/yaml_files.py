"""Reading YAML files that people write settings in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

MOST_VALUES = 100_000
"""More than any settings have; names of parts (``*``) can make billions of a few lines."""


def read_yaml(path: Path) -> Any:
    """Return what a file says.

    Raises:
        ValueError: It is no YAML, or repeats its own parts without end.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"this is not YAML: {' '.join(str(error).split())}.") from None
    waiting, seen = [content], 0
    while waiting:
        value = waiting.pop()
        seen += 1
        if seen > MOST_VALUES:
            raise ValueError(
                f"this YAML holds more than {MOST_VALUES:,} values, or repeats its own parts (*)"
                " without end."
            )
        if isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set):
            waiting += value
    return content
