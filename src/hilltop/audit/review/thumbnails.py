"""Small pictures of the images in the table: made when asked for, and kept within bounds."""

from __future__ import annotations

import contextlib
import io
import threading
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pyarrow as pa
from PIL import Image, ImageOps

from hilltop.audit.find.candidate_index import Ints
from hilltop.data import LabelTable
from hilltop.data.data_errors import data_error
from hilltop.inputs.image_files import find_images, open_regular
from hilltop.machine import usable_cores

Size = Literal["small", "large"]
SIDES_PX: dict[Size, int] = {"small": 360, "large": 1600}
_CACHE_BYTES = 96 << 20
MOST_PIXELS = 100_000_000
"""Of one image, and of all that are decoded at the same time: about 4 bytes each."""
DECODERS = max(1, min(3, usable_cores() - 1))
"""Images that are decoded at the same time; one core is left for the answers."""
Image.init()
FORMATS = tuple(name for name in ("JPEG", "PNG", "WEBP", "BMP") if name in Image.OPEN)
"""What the endings of image files stand for; other decoders are not let near a file."""


class PixelBudget:
    """Lets threads decode side by side as long as their images together stay below a bound."""

    def __init__(self, most: int) -> None:
        """Nothing is being decoded yet."""
        self._most, self._used, self._changed = most, 0, threading.Condition()

    @contextlib.contextmanager
    def spend(self, pixels: int) -> Iterator[None]:
        """Wait until there is room for so many pixels, and keep it meanwhile."""
        own = min(pixels, self._most)
        with self._changed:
            self._changed.wait_for(lambda: self._used + own <= self._most)
            self._used += own
        try:
            yield
        finally:
            with self._changed:
                self._used -= own
                self._changed.notify_all()


_BUDGET = PixelBudget(MOST_PIXELS)


class ImageStore:
    """Gives JPEG pictures by image number, for the numbers it was told of and no others."""

    def __init__(self, folder: Path, labels: LabelTable, rows: Ints) -> None:
        """Find the files of the images in ``rows``.

        Raises:
            DataError: There is no such folder, or an image id is ambiguous or leads out of it.
        """
        names = labels.images.take(pa.array(rows))
        files = find_images(folder, names)
        self._root = folder.resolve()
        self._files: dict[int, str] = {
            int(row): file
            for row, file in zip(rows, files.to_pylist(), strict=True)
            if file is not None
        }
        self.missing = len(rows) - len(self._files)
        self._kept: OrderedDict[tuple[int, Size], bytes] = OrderedDict()
        self._kept_bytes = 0
        self._lock = threading.Lock()

    def __contains__(self, row: int) -> bool:
        """Whether there is a file for an image."""
        return row in self._files

    def jpeg(self, row: int, size: Size) -> bytes:
        """Return a picture that fits into a square of its size.

        Raises:
            DataError: There is no file, it lies outside the folder, or it is not a sound image.
        """
        key = (row, size)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        content = shrink(self._open(row), SIDES_PX[size])
        self._keep(key, content)
        return content

    def _open(self, row: int) -> Path:
        if row not in self._files:
            raise data_error(self._root, f"there is no file for image number {row}.")
        # Resolved when it is opened, not when it was found: links may have changed since.
        path: Path = (self._root / self._files[row]).resolve()
        if not path.is_relative_to(self._root):
            raise data_error(
                path, "a link leads out of the folder of images. Copy the file into it."
            )
        return path

    def _keep(self, key: tuple[int, Size], content: bytes) -> None:
        with self._lock:
            self._kept_bytes += len(content) - len(self._kept.pop(key, b""))
            self._kept[key] = content
            while self._kept_bytes > _CACHE_BYTES:
                self._kept_bytes -= len(self._kept.popitem(last=False)[1])


def shrink(path: Path, side: int) -> bytes:
    """Return an image as JPEG, turned upright, at most ``side`` pixels wide and high.

    Raises:
        DataError: The file is not a sound image, or is too large to be opened safely.
    """
    try:
        with open_regular(path, follow=False) as file:
            return _shrink(path, file, side)
    except OSError as error:
        reason = error.strerror or str(error).rstrip(".")
        raise data_error(path, f"the image cannot be read: {reason}.") from None
    except (ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        reason = str(error).rstrip(".") or type(error).__name__
        raise data_error(path, f"the image cannot be read: {reason}.") from None


def _shrink(path: Path, file: io.BufferedReader, side: int) -> bytes:
    with Image.open(file, formats=FORMATS) as opened:
        if opened.width * opened.height > MOST_PIXELS:
            raise data_error(path, f"{opened.width} x {opened.height} pixels are too many to show.")
        opened.draft("RGB", (side, side))  # a JPEG is decoded at the nearest smaller scale
        with _BUDGET.spend(opened.width * opened.height):
            return _jpeg(opened, side)


def _jpeg(opened: Image.Image, side: int) -> bytes:
    image = opened
    if image.mode.startswith("I;16") or image.mode == "I":
        image = image.point(lambda value: value / 256).convert("L")
    image.thumbnail((side, side), Image.Resampling.BICUBIC, reducing_gap=2.0)
    image = ImageOps.exif_transpose(image)  # last, because it makes a copy
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = _on_white(image.convert("RGBA"))
    written = io.BytesIO()
    image.convert("RGB").save(written, "JPEG", quality=85)
    return written.getvalue()


def _on_white(image: Image.Image) -> Image.Image:
    ground = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(ground, image)
