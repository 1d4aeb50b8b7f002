"""Reading the JSON files that Hilltop keeps notes in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hilltop.data.data_errors import data_error


def read_json(path: Path, remedy: str) -> Any:
    """Return what a file of ours says.

    Args:
        path: The file.
        remedy: A sentence that says what to do if it is damaged.

    Raises:
        DataError: It is cut or damaged.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise data_error(path, f"this is not valid JSON. {remedy}") from None
