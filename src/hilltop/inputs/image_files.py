"""Finds images in a folder, or the file of every image id, before anything is read."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import pyarrow as pa

from hilltop.checks import pluralize
from hilltop.data.data_errors import MOST_ERRORS, ErrorCollector, data_error
from hilltop.data.formats.text.folder_files import IMAGE_ENDINGS as ENDINGS
from hilltop.errors import DataError

__all__ = ["ENDINGS", "find_images", "fold_id", "list_images", "missing_images", "open_regular"]

MADE_BY_START = "start.json"
"""Stands in the folder of results of ``hilltop start``, see ``cli/start_notes.py``."""


def find_images(folder: Path, images: pa.StringArray) -> pa.StringArray:
    """Return the file of each image, relative to ``folder``; null where there is none.

    An id names its file with or without the ending, and may contain sub-folders. What is not where
    the id says is looked for in all folders below: there the end of its path must be the id. What
    is not there either is looked for without regard to case, blanks around it and backslashes.

    Args:
        folder: Where the images are.
        images: Image ids.

    Raises:
        DataError: There is no such folder, an id leads out of it, or two files fit one id.
    """
    if not folder.is_dir():
        raise data_error(folder, "there is no such folder of images.")
    faults = ErrorCollector(folder)
    listings: dict[Path, dict[str, list[str]]] = {}
    below: dict[str, list[str]] | None = None
    folded: dict[str, list[str]] | None = None
    found: list[str | None] = []
    for name in images.to_pylist():
        path = Path(name)
        if path.is_absolute() or path.drive or ".." in path.parts or "\0" in name:
            faults.add(f"the image id {name!r} leads out of the folder; use paths inside it.")
            continue
        if path.parent not in listings:
            listings[path.parent] = _listing(folder / path.parent)
        files = [str(path.parent / file) for file in listings[path.parent].get(path.name, [])]
        if not files:
            below = _below(folder) if below is None else below
            files = [file for file in below.get(path.name, []) if _ends(file, path.parent)]
        if not files:
            folded = _folded(below or {}) if folded is None else folded
            plain = Path(fold_id(name))
            files = [
                file for file in folded.get(plain.name, []) if _ends(file.casefold(), plain.parent)
            ]
        if len(files) > 1:
            faults.add(
                f"the image id {name!r} fits {' and '.join(map(repr, sorted(files)))};"
                " give ids with their folders and endings, or remove one file."
            )
        found.append(files[0] if len(files) == 1 else None)
    faults.check()
    _check_names(folder, [file for file in found if file is not None])
    return pa.array(found, pa.string())


def fold_id(name: str) -> str:
    r"""Return an image id without what people write differently: case, blanks, backslashes.

    Example:
        >>> fold_id("2023\\IMG_7.JPG ")
        '2023/img_7.jpg'
    """
    return name.strip().replace("\\", "/").casefold()


def list_images(folder: Path) -> pa.StringArray:
    """Return the ids of all images below a folder: their paths in it, in alphabetical order.

    What ``hilltop start`` has made inside it, such as curves of its training, is passed over.
    """
    if not folder.is_dir():
        raise data_error(folder, "there is no such folder of images.")
    found = []
    for parent, folders, names in os.walk(folder):
        if MADE_BY_START in names and parent != str(folder):
            folders.clear()
            continue
        files = [Path(parent, name) for name in names]
        found += [
            file.relative_to(folder).as_posix()
            for file in files
            if file.suffix.lower() in ENDINGS and file.is_file()
        ]
    found.sort()
    _check_names(folder, found)
    if not found:
        raise data_error(folder, f"there are no images ({', '.join(ENDINGS)}) here.")
    return pa.array(found, pa.string())


def _check_names(folder: Path, files: list[str]) -> None:
    """Raise if the name of a file cannot be an image id, which is text."""
    errors = ErrorCollector(folder)
    for file in files:
        try:
            file.encode()
        except UnicodeEncodeError:
            errors.add(f"the name of the file {os.fsencode(file)!r} is not UTF-8. Rename it.")
    errors.check()


def open_regular(path: Path, *, follow: bool = True) -> io.BufferedReader:
    """Open a file to read; a pipe would wait for a writer that never comes, a device never end.

    Args:
        path: The file.
        follow: Whether it may be a link.

    Raises:
        DataError: It is something else than a file.
        OSError: It cannot be opened.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    file = os.fdopen(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise data_error(path, "the image cannot be read: it is not a regular file.")
    return file


def missing_images(folder: Path, missing: list[str], total: int) -> DataError:
    """Return the error that names missing images, at most 20 of them."""
    named = ", ".join(repr(name) for name in missing[:MOST_ERRORS])
    more = len(missing) - MOST_ERRORS
    images = pluralize(total, "image", "images")
    return data_error(
        folder,
        f"{pluralize(len(missing), f'of {images} is', f'of {images} are')} not there: {named}"
        f"{f' and {more} more' if more > 0 else ''};"
        f" a file must be named like the id, with or without {', '.join(ENDINGS[:-1])}"
        f" or {ENDINGS[-1]}.",
    )


def _below(folder: Path) -> dict[str, list[str]]:
    """Return the images in all folders inside one under the names that they fit."""
    found: dict[str, list[str]] = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            stem, ending = os.path.splitext(name)
            if ending.lower() in ENDINGS:
                path = (Path(parent) / name).relative_to(folder).as_posix()
                for word in {name, stem}:
                    found.setdefault(word, []).append(path)
    return found


def _folded(below: dict[str, list[str]]) -> dict[str, list[str]]:
    """The same files under folded names."""
    found: dict[str, list[str]] = {}
    for name, files in below.items():
        known = found.setdefault(fold_id(name), [])
        known.extend(file for file in files if file not in known)
    return found


def _ends(file: str, parent: Path) -> bool:
    """Whether the folder of a file ends in these folders."""
    folders = Path(file).parent.parts
    return folders[len(folders) - len(parent.parts) :] == parent.parts


def _listing(folder: Path) -> dict[str, list[str]]:
    """Return the files of a folder under the ids that they fit; a full name beats a bare one."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_file()]
    except OSError:
        return {}
    bare: dict[str, list[str]] = {}
    for name in names:
        stem, ending = os.path.splitext(name)
        if ending.lower() in ENDINGS:
            bare.setdefault(stem, []).append(name)
    return {**bare, **{name: [name] for name in names}}
