"""Files that are there completely or not at all."""

import os
from pathlib import Path


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a file so that an interruption leaves the old one, or none, but never a part."""
    temporary = path.with_name(f".{path.name}.writing")
    with temporary.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
