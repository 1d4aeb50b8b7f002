"""Folders of label files: looking into one, choosing a split, starting a new one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from hilltop.checks import did_you_mean
from hilltop.data.content import Source
from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing_folder
from hilltop.data.layout import ask

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
"""Endings, in lower case, by which a file is taken for an image."""
_LABEL_ENDINGS = (
    *(".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".xls", ".ods"),
    *(".xml", ".arff", ".yaml", ".yml", ".gz", ".bz2", ".xz"),
)
_DEPTH, _MOST_FILES, _MOST_FOLDERS = 3, 40, 20


def need_folder(source: Source) -> None:
    """Raise if a file was given in place of a folder."""
    if not source.is_folder:
        raise data_error(
            source.path, "this is a file, but this format is a folder. Name its folder."
        )


def files_in(folder: Path) -> dict[str, Path]:
    """Files of a folder by name, in order; none if there is no such folder.

    A name that stands in a label file is looked up here and is never joined to a path.
    """
    if not folder.is_dir():
        return {}
    with os.scandir(folder) as entries:
        found = [Path(entry.path) for entry in entries if entry.is_file()]
    return dict(sorted((_readable(path), path) for path in found))


def image_files_in(folder: Path) -> dict[str, Path]:
    """Images of a folder by name, in order."""
    return {
        name: path
        for name, path in files_in(folder).items()
        if path.suffix.lower() in IMAGE_ENDINGS
    }


def folders_in(folder: Path) -> dict[str, Path]:
    """Folders in a folder by name, in order, without hidden ones."""
    if not folder.is_dir():
        return {}
    with os.scandir(folder) as entries:
        found = [Path(entry.path) for entry in entries if entry.is_dir()]
    named = sorted((_readable(path), path) for path in found)
    return {name: path for name, path in named if not name.startswith(".")}


def candidate_files(folder: Path) -> list[Path]:
    """Files that may hold labels: some in a folder, then some in the folders within it."""
    found: list[Path] = []
    level = [folder]
    for _ in range(_DEPTH):
        for one in level:
            named = [path for path in files_in(one).values() if _may_hold_labels(path)]
            found += named[:_MOST_FILES]
        level = [child for one in level for child in folders_in(one).values()][:_MOST_FOLDERS]
    return found[:_MOST_FILES]


def _may_hold_labels(path: Path) -> bool:
    stem, suffix = path.stem.lower(), path.suffix.lower()
    return suffix in _LABEL_ENDINGS and not stem.startswith(("readme", "license", "requirements"))


def choose_split(path: Path, splits: Iterable[str], wanted: str | None) -> str:
    """Return the wanted split, or the only one there is."""
    known = sorted(splits)
    if wanted in known:
        return wanted
    if wanted is not None:
        raise ask(
            path,
            f"There is no split {wanted!r}.{did_you_mean(wanted, known)}"
            f" Pass --split with one of {', '.join(known)}.",
        )
    if len(known) != 1:
        likely = next((one for one in known if one.lower().startswith("train")), known[0])
        raise ask(
            path,
            f"There are several splits. Pass --split with one of {', '.join(known)}.",
            split=likely,
        )
    return known[0]


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to write to, which takes the name at the end.

    An old one must be empty, so that nothing old mixes in.
    """
    if path.exists() and not path.is_dir():
        raise data_error(path, "this format is a folder, but there is a file of that name.")
    if path.is_dir() and any(path.iterdir()):
        raise data_error(path, "the folder is not empty. Name a new one, or empty it first.")
    with replacing_folder(path) as folder:
        yield folder


def file_to_write(path: Path, name: str) -> Path:
    """The path, or the file of that name in it where it is a folder, unless it is there already."""
    if not path.is_dir():
        return path
    if (path / name).exists():
        raise data_error(path / name, "there is such a file already. Name another file or folder.")
    return path / name


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file, each of these on a line."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _readable(path: Path) -> str:
    """Name of a file as valid text, even where the file system holds other bytes."""
    return os.fsencode(path.name).decode("utf-8", errors="replace")


_TREE_DEPTH = 4
_MOST_TREE_FOLDERS = 100  # a folder with more of them holds images by class or query


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
        for _ in range(_TREE_DEPTH + 1):
            level = [child for folder in level for child in self._enter(folder)]

    def folder(self, ending: str) -> Path | None:
        """A folder whose path ends so, such as ``Groundtruth/TrainTestLabels``."""
        return next(self.folders(ending), None)

    def folders(self, ending: str) -> Iterator[Path]:
        """All folders whose path ends so."""
        return _fitting(self._folders, ending)

    def file(self, *endings: str) -> Path | None:
        """A file whose path ends so: in the first of several ways of which there is one.

        A name that begins with ``*`` stands for all that end like it.
        """
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
        return [] if len(children) > _MOST_TREE_FOLDERS and folder != self.root else children


def has_image(folder: Path) -> bool:
    """Whether an image lies in a folder itself."""
    with os.scandir(folder) as entries:
        return any(entry.name.lower().endswith(IMAGE_ENDINGS) for entry in entries)


def _fitting(known: dict[str, list[Path]], ending: str) -> Iterator[Path]:
    parts = tuple(ending.casefold().split("/"))
    if ending.startswith("*"):
        yield from (path for name in known if fnmatch(name, parts[-1]) for path in known[name])
    for path in known.get(parts[-1], []):
        if tuple(part.casefold() for part in path.parts[-len(parts) :]) == parts:
            yield path
