"""Files and folders below a root by the end of their path, however deep they were unpacked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from hilltop.data.label_folders import IMAGE_ENDINGS

_DEPTH = 4
_MOST_FOLDERS = 100  # a folder with more of them holds images by class or query


class FolderTree:
    """What lies below a folder, without its images.

    Names are compared without regard to case. Of several that fit, the least deep one is taken, and
    of these the first by name.

    Args:
        root: Where to look; an empty tree if it is not there.
    """

    def __init__(self, root: Path) -> None:
        """Look once."""
        self.root = root
        self._folders: dict[str, list[Path]] = {}
        self._files: dict[str, list[Path]] = {}
        level = [root] if root.is_dir() else []
        for _ in range(_DEPTH + 1):
            level = [child for folder in level for child in self._enter(folder)]

    def folder(self, ending: str) -> Path | None:
        """A folder whose path ends so, such as ``Groundtruth/TrainTestLabels``."""
        return next(self.folders(ending), None)

    def folders(self, ending: str) -> Iterator[Path]:
        """All folders whose path ends so."""
        return _fitting(self._folders, ending)

    def file(self, *endings: str) -> Path | None:
        """A file whose path ends so: in the first of several ways of which there is one."""
        return next((path for ending in endings for path in _fitting(self._files, ending)), None)

    def _enter(self, folder: Path) -> list[Path]:
        """Note what lies in a folder, and return the folders to look into."""
        try:
            with os.scandir(folder) as entries:
                inside = [
                    (entry.name, entry.is_dir())
                    for entry in entries
                    if not entry.name.lower().endswith(IMAGE_ENDINGS)
                ]
        except OSError:  # not ours to read
            return []
        children = []
        for name, is_folder in sorted(inside):
            known = self._folders if is_folder else self._files
            known.setdefault(name.casefold(), []).append(folder / name)
            if is_folder:
                children.append(folder / name)
        return [] if len(children) > _MOST_FOLDERS and folder != self.root else children


def has_image(folder: Path) -> bool:
    """Whether an image lies in a folder itself."""
    with os.scandir(folder) as entries:
        return any(entry.name.lower().endswith(IMAGE_ENDINGS) for entry in entries)


def _fitting(known: dict[str, list[Path]], ending: str) -> Iterator[Path]:
    parts = tuple(ending.casefold().split("/"))
    for path in known.get(parts[-1], []):
        if tuple(part.casefold() for part in path.parts[-len(parts) :]) == parts:
            yield path
