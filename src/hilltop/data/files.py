"""Files that are there completely or not at all, and never replace what they were made from."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from hilltop.data.data_errors import data_error
from hilltop.errors import ArgumentError

_MARK = ".writing"
STALE_S = 60.0
"""Age from which what a writer left may be removed, if nobody holds it."""


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a file so that an interruption leaves the old one, or none, but never a part."""
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a name of the same ending to write to, which takes the place of ``path`` at the end.

    A fault or an interruption in between leaves what was there before. A link is followed: the
    file that it leads to is replaced.
    """
    target = Path(os.path.realpath(path))
    check_no_folder(path)
    if target.exists() and not target.is_file():  # a pipe or device has no name to take over
        yield path
        return
    with _scratch(path, target) as scratch:
        temporary = scratch / f"new{target.suffix}"
        yield temporary
        sync_file(temporary)
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    _sync_folder(target.parent)


@contextlib.contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder that becomes ``path``, which may be an empty folder, at the end."""
    target = Path(os.path.realpath(path))
    if target.is_dir() and (target.samefile(Path.cwd()) or target.is_mount()):
        raise data_error(  # whoever is in it would be left in a folder without a name
            path,
            f"this folder is in use and cannot be replaced. Name a new one: {path / 'labels'}.",
        )
    with _scratch(path, target) as scratch:
        temporary = scratch / "new"
        temporary.mkdir()
        yield temporary
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    _sync_folder(target.parent)


_ASK = "Choose another name, or pass --force to replace it."


def check_outputs(
    outputs: Iterable[Path], inputs: Iterable[Path], *, force: bool, remedy: str = _ASK
) -> None:
    """Raise if one of the files to write is among those that are read, or is there already.

    Files are compared by what they are, so that a link or another spelling of a name is noticed.
    A place that cannot be written to is said as well, before anything is computed for it.

    Args:
        outputs: Files that are about to be written.
        inputs: Files that they are made from; these are never replaced.
        force: Whether other files may be replaced.
        remedy: What to do where they may not.
    """
    outputs = [*outputs]
    for path in outputs:
        _check_name(path)
    read = {identity: path for path in inputs if (identity := _identity(path)) is not None}
    for path in outputs:
        identity = _identity(path)
        if identity in read:
            raise ArgumentError(
                f"{path}: this file is what the command reads ({read[identity]}), and writing would"
                " destroy it. Choose another name."
            )
        if identity is not None and not force and path.is_file():
            raise ArgumentError(f"{path}: there is such a file already. {remedy}")
        _check_place(path)


def _check_name(path: Path) -> None:
    """Raise if a name holds bytes that are no text: most libraries could not open such a file."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ArgumentError(
            f"{os.fsencode(path)!r}: the name of this file is not UTF-8. Choose another name."
        ) from None


def check_no_folder(path: Path) -> None:
    """Raise if a folder stands where a file will be written."""
    if path.is_dir():
        raise data_error(path, "this is a folder. Name a file.")


def check_folder(path: Path) -> None:
    """Raise if the folder of a file that will be written does not exist."""
    if not Path(os.path.realpath(path)).parent.is_dir():
        raise data_error(path, "its folder does not exist. Create it first.")


def _check_place(path: Path) -> None:
    """Raise if the folder of a file, or the one that it will be made in, cannot be written to."""
    if path.exists() and not path.is_file():  # a pipe or device is not replaced but written to
        return
    folder = next(one for one in Path(os.path.realpath(path)).parents if one.exists())
    if not os.access(folder, os.W_OK):
        raise data_error(path, f"the folder {folder} cannot be written to.")


def sync_file(path: Path) -> None:
    """Make what was written to a file outlast a power cut."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make names that were changed in a folder outlast a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _scratch(path: Path, target: Path) -> Iterator[Path]:
    """A folder beside the target in which it is put together; an error names the file itself."""
    check_folder(path)
    _check_place(path)
    prefix = f".{target.name[:100]}."
    _remove_stale(target.parent, prefix)
    with (
        naming(path),
        tempfile.TemporaryDirectory(prefix=prefix, suffix=_MARK, dir=target.parent) as scratch,
        holding(Path(scratch)),
    ):
        yield Path(scratch)


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say of a full or broken disk which file could not be written: not all libraries do."""
    try:
        yield
    except OSError as error:
        if error.filename is not None and _MARK not in str(error.filename):
            raise  # it is about another file
        reason = os.strerror(error.errno) if error.errno else str(error).rstrip(".")
        room = " Make room on the disk." if "No space left" in str(error) else ""
        raise data_error(path, f"it could not be written: {reason}.{room}") from error


def _remove_stale(folder: Path, prefix: str) -> None:
    """Remove what killed writers of a file left some time ago; that of a living one is held."""
    for left in folder.glob(f"{glob.escape(prefix)}*{_MARK}"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime >= STALE_S:
                with holding(left):
                    shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Hold a folder as long as this process lives, where the file system knows of locks.

    Raises:
        BlockingIOError: Another process holds it.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if isinstance(error, BlockingIOError):
                raise
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def holding_alone(folder: Path, busy: str) -> Iterator[None]:
    """Hold a folder, see :func:`holding`.

    Args:
        folder: The folder.
        busy: What to say if another process holds it.

    Raises:
        DataError: Another process holds it.
    """
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(holding(folder))
        except BlockingIOError:
            raise data_error(folder, busy) from None
        yield


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and number of a file; None if there is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):  # a name with a null byte, as JSON may have, is no file
        return None
    return found.st_dev, found.st_ino
