"""Images in tar files and behind addresses, such as ``s3://bucket/photos``, without a copy of them.

They are read one after the other, in the order in which they lie there, and decoded in threads
meanwhile. Addresses are opened by fsspec.
"""

from __future__ import annotations

import re
import tarfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

import fsspec  # type: ignore[import-untyped]
from torch import Tensor

from hilltop.data.folders import IMAGE_ENDINGS
from hilltop.errors import ArgumentError, DataError

S = TypeVar("S")
T = TypeVar("T")
Content = Callable[[], bytes]
_TARS = (".tar", ".tar.gz", ".tgz")
_BRACES = re.compile(r"\{(\d+)\.\.(\d+)\}")
_AHEAD = 4
"""Images for each thread that are read before they are needed."""
_LARGEST = 1 << 30
"""Bytes of a file in a tar file, beyond which it is not taken for an image."""


def is_stream(source: str) -> bool:
    """Whether images lie in tar files or behind an address.

    Example:
        >>> [is_stream(source) for source in ("photos", "a-{000..009}.tar", "s3://bucket/photos")]
        [False, True, True]
    """
    return "://" in source or source.lower().endswith(_TARS)


@dataclass(frozen=True)
class ImageStream:
    """Images that are read one after the other: of a tar file, or some of a folder.

    Attributes:
        address: The tar file, or the folder.
        names: Paths of the images in the folder; empty for a tar file.
    """

    address: str
    names: tuple[str, ...] = ()

    def contents(self) -> Iterator[tuple[str, Content]]:
        """Yield the name of each image, and what returns its bytes.

        Raises:
            DataError: The address cannot be opened, or the tar file is damaged.
        """
        try:
            if self.names:
                system, folder = _system(self.address)
                for name in self.names:
                    yield name, partial(system.cat_file, f"{folder}/{name}")
                return
            with fsspec.open(self.address, "rb") as file:
                yield from _members(file)
        except (tarfile.TarError, OSError, EOFError) as error:
            raise DataError(
                f"{self.address}: the images cannot be read: {_words(error)}."
            ) from None

    def decoded(self, size: int, threads: int) -> Iterator[tuple[str, Tensor | str]]:
        """Yield the name of each image and its pixels, or the reason why it cannot be read."""
        from hilltop.inputs.decode import decode_image_bytes
        from hilltop.inputs.transforms import evaluation_pixels

        def work(item: tuple[str, Content]) -> tuple[str, Tensor | str]:
            name, content = item
            path = Path(f"{self.address}/{name}")
            try:
                return name, evaluation_pixels(decode_image_bytes(path, content()), size)
            except DataError as error:
                return name, str(error)
            except OSError as error:
                return name, f"{path}: the image cannot be opened: {_words(error)}."

        return _in_threads(work, self.contents(), max(1, threads))


def image_streams(source: str, size: int) -> list[ImageStream]:
    """Return a stream for each tar file, or for so many images of a folder.

    Args:
        source: An address of a folder or of a tar file, or of several: ``a-{000..009}.tar``, or
            with ``*`` and ``?``.
        size: Images in a stream of a folder.

    Raises:
        ArgumentError: Nothing here knows how to open such addresses.
        DataError: There is nothing of that name.
    """
    if source.lower().endswith(_TARS):
        return [ImageStream(address) for one in _expanded(source) for address in _matching(one)]
    system, folder = _system(source)
    try:
        found = sorted(system.find(folder))
    except OSError as error:
        raise DataError(f"{source}: the folder cannot be listed: {_words(error)}.") from None
    names = [path[len(folder.rstrip("/")) + 1 :] for path in found if _is_image(path)]
    if not names:
        raise DataError(f"{source}: there are no images ({', '.join(IMAGE_ENDINGS)}) here.")
    return [
        ImageStream(source.rstrip("/"), tuple(names[first : first + size]))
        for first in range(0, len(names), size)
    ]


def _expanded(source: str) -> Iterator[str]:
    """``a-{008..010}.tar`` as the names it stands for."""
    found = _BRACES.search(source)
    if found is None:
        yield source
        return
    first, last = found.groups()
    for number in range(int(first), int(last) + 1):
        text = str(number).zfill(len(first))
        yield from _expanded(source[: found.start()] + text + source[found.end() :])


def _matching(source: str) -> list[str]:
    """The files of an address that may hold ``*`` and ``?``."""
    system, path = _system(source)
    try:
        wild = any(letter in path for letter in "*?[")
        found = sorted(system.glob(path)) if wild else [path] * system.exists(path)
    except OSError as error:
        raise DataError(f"{source}: this address cannot be looked up: {_words(error)}.") from None
    if not found:
        raise DataError(f"{source}: there is no such file.")
    return [system.unstrip_protocol(one) if "://" in source else one for one in found]


def _system(source: str) -> tuple[Any, str]:
    try:
        system, path = fsspec.core.url_to_fs(source)
    except ImportError as error:
        raise ArgumentError(
            f"{source}: this address needs a package that is not installed. {_words(error)}."
        ) from None
    except ValueError as error:
        raise ArgumentError(f"{source}: this address cannot be opened: {_words(error)}.") from None
    return system, path


def _is_image(name: str) -> bool:
    return name.lower().endswith(tuple(IMAGE_ENDINGS))


def _members(file: IO[bytes]) -> Iterator[tuple[str, Content]]:
    """Images of a tar file, from its beginning to its end; links and others are passed over."""
    with tarfile.open(fileobj=file, mode="r|*") as archive:
        for member in archive:
            opened = archive.extractfile(member) if member.isfile() else None
            if opened is None or not _is_image(member.name) or member.size > _LARGEST:
                continue
            yield member.name.removeprefix("./"), partial(bytes, opened.read())


def _in_threads(work: Callable[[S], T], items: Iterable[S], threads: int) -> Iterator[T]:
    """Work on items in threads, a few ahead, one of which reads them; results come in order."""
    waiting: deque[Future[T]] = deque()
    source = iter(items)
    with ThreadPoolExecutor(threads) as pool, ThreadPoolExecutor(1) as reader:
        following = reader.submit(next, source, None)
        while (item := following.result()) is not None:
            waiting.append(pool.submit(work, item))
            following = reader.submit(next, source, None)
            if len(waiting) > threads * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _words(error: BaseException) -> str:
    return (str(error).partition("\n")[0] or type(error).__name__).rstrip(".")
