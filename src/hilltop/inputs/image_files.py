"""Finds images in a folder, or the file of every image id, before anything is read."""

from __future__ import annotations

import io
import os
import re
import stat
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa

from hilltop.checks import pluralize
from hilltop.data.data_errors import MOST_ERRORS, ErrorCollector, data_error
from hilltop.data.folders import IMAGE_ENDINGS as ENDINGS
from hilltop.errors import DataError

__all__ = ["ENDINGS", "find_images", "fold_id", "list_images", "missing_images", "open_regular"]

_OUTSIDE = re.compile(r"\s*([a-z][a-z0-9+.-]*://|[a-z]:[\\/]|[\\/])", re.IGNORECASE)
"""How an address begins, or an absolute path, with a drive or without."""
MADE_BY_START = "start.json"
"""Stands in the folder of results of ``hilltop start``, see ``cli/start.py``."""


def find_images(folder: Path, images: pa.StringArray) -> pa.StringArray:
    r"""Return the file of each image, relative to ``folder``; null where there is none.

    An id names its file with or without the ending, and may contain sub-folders. What is not where
    the id says is looked for in all folders below: there the end of its whole path must be the id,
    so that ``photos/a.jpg`` is found in ``photos`` itself. What is not there either is looked for
    without regard to case, blanks around it and backslashes; of an address or a path of another
    machine, such as ``C:\Photos\a.jpg``, the name of the file counts alone. So it does, at last,
    where the folder of an id is nowhere here, and one id and one file have that name.

    Args:
        folder: Where the images are.
        images: Image ids.

    Raises:
        DataError: There is no such folder, an id leads out of it, two files fit one id, or ids of
            another machine fit one file.
    """
    if not folder.is_dir():
        raise data_error(folder, "there is no such folder of images.")
    faults, files, found = ErrorCollector(folder), _Files(folder), []
    foreign: dict[str, str] = {}
    for name in images.to_pylist():
        fitting = files.of(name)
        file = fitting[0] if len(fitting) == 1 else None
        if ".." in Path(name).parts or "\0" in name or (Path(name).is_absolute() and not fitting):
            faults.add(f"the image id {name!r} leads out of the folder; use paths inside it.")
        elif len(fitting) > 1:
            faults.add(
                f"the image id {name!r} fits {' and '.join(map(repr, sorted(fitting)))};"
                " give ids with their folders and endings, or remove one file."
            )
        elif file and inner_id(name) != name and foreign.setdefault(file, name) != name:
            faults.add(
                f"the image ids {foreign[file]!r} and {name!r} both fit {file!r};"
                " use paths inside the folder."
            )
        found.append(file)
    faults.check()
    _find_elsewhere(found, images.to_pylist(), files)
    _check_names(folder, [file for file in found if file is not None])
    return pa.array(found, pa.string())


def _find_elsewhere(found: list[str | None], images: list[str], files: _Files) -> None:
    """Fill in files of ids with folders that are nowhere here, where names leave no doubt."""
    taken, wanted = set(found), dict[str, list[int]]()
    for row, name in enumerate(images):
        fitting = files.elsewhere(name) if found[row] is None else []
        if len(fitting) == 1 and fitting[0] not in taken:
            wanted.setdefault(fitting[0], []).append(row)
    for file, rows in wanted.items():
        if len(rows) == 1:
            found[rows[0]] = file


class _Files:
    """The images of a folder, by all names that ids may have for them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before = folder.resolve().parts
        self._listings: dict[Path, dict[str, list[str]]] = {}

    def of(self, name: str) -> list[str]:
        """The files that an id fits: where it says, else below, else by its folded name."""
        path = Path(name)
        if inner_id(name) == name and ".." not in path.parts and "\0" not in name:
            exact = self._listing(path.parent).get(path.name, [])
            if exact:
                return [str(path.parent / file) for file in exact]
            below = [
                file for file in self._below.get(path.name, []) if self._ends(file, path.parent)
            ]
            if below:
                return below
        plain = Path(fold_id(name))
        files = self._folded.get(plain.name, [])
        return [file for file in files if self._ends(file, plain.parent, folded=True)]

    def elsewhere(self, name: str) -> list[str]:
        """The files of that name, if the folder that the id says is nowhere here."""
        plain = Path(fold_id(name))
        known = not plain.parent.name or plain.parent.name in self._folders
        return [] if known else self._folded.get(plain.name, [])

    @cached_property
    def _folders(self) -> set[str]:
        files = (file for some in self._below.values() for file in some)
        inner = {part for file in files for part in Path(file).parent.parts}
        return {part.casefold() for part in (*self._before, *inner)}

    def _listing(self, parent: Path) -> dict[str, list[str]]:
        if parent not in self._listings:
            self._listings[parent] = _listing(self._folder / parent)
        return self._listings[parent]

    @cached_property
    def _below(self) -> dict[str, list[str]]:
        return _below(self._folder)

    @cached_property
    def _folded(self) -> dict[str, list[str]]:
        return _folded(self._below)

    def _ends(self, file: str, parent: Path, *, folded: bool = False) -> bool:
        """Whether the folders of a file, the whole path of this one included, end in these."""
        folders = (*self._before, *Path(file).parent.parts)
        if folded:
            folders = tuple(map(str.casefold, folders))
        return folders[len(folders) - len(parent.parts) :] == parent.parts


def fold_id(name: str) -> str:
    r"""Return an image id without what people write differently: case, blanks, backslashes.

    Example:
        >>> fold_id("2023\\IMG_7.JPG ")
        '2023/img_7.jpg'
        >>> fold_id("https://host/photos/IMG_7.JPG?size=large")
        'img_7.jpg'
    """
    return inner_id(name).strip().replace("\\", "/").casefold()


def inner_id(name: str) -> str:
    r"""Return the name of the file, where an id is an address or an absolute path of any system.

    Example:
        >>> inner_id("C:\\Photos\\a.jpg"), inner_id("2023/a.jpg")
        ('a.jpg', '2023/a.jpg')
    """
    if not _OUTSIDE.match(name):
        return name
    path = unquote(re.split("[?#]", name)[0]) if "://" in name else name
    return re.split(r"[\\/]", path)[-1]


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
