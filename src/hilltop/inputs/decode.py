"""One image file to 8-bit RGB: torchvision where it can, PIL for the rest, or a clear error."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor
from torchvision.io import ImageReadMode, decode_image

from hilltop.data.data_errors import data_error
from hilltop.inputs.image_files import open_regular

_JPEG, _PNG = b"\xff\xd8\xff", b"\x89PNG"
MOST_PIXELS = 2 * (Image.MAX_IMAGE_PIXELS or 1 << 62)
"""Of an image; PIL opens no larger ones, and says so."""
_JPEG_PIXELS_A_BYTE = 512
"""At most: a block of 64 takes a bit. Most images are too small to be looked at twice."""


def read_image(path: Path) -> Tensor:
    """Read an image as RGB, turned the way its EXIF orientation says.

    Args:
        path: A file of any format that PIL reads; JPEG and PNG are the fastest.

    Shape:
        ``(3, H, W)``, 8-bit.

    Raises:
        DataError: The file cannot be opened, is no image, or is broken or cut off.
    """
    try:
        with open_regular(path) as file:
            content = file.read()
    except OSError as error:
        raise data_error(path, f"the image cannot be opened: {error.strerror}.") from None
    return decode_image_bytes(path, content)


def decode_image_bytes(path: Path, content: bytes) -> Tensor:
    """Decode what :func:`read_image` reads; the path is for messages."""
    if not content:
        raise data_error(path, "the image is an empty file.")
    if content.startswith((_JPEG, _PNG)) and not _is_bomb(content):
        try:
            return _with_torchvision(content)
        except RuntimeError:
            pass  # PIL reads more kinds, and says in better words what is wrong with the others
    try:
        return _with_pil(content)
    except UnidentifiedImageError:
        raise data_error(
            path, "this is not an image of a known kind, or its start is broken."
        ) from None
    except Exception as error:  # what PIL raises for a broken file depends on where it is broken
        reason = str(error).rstrip(".") or type(error).__name__
        raise data_error(path, f"the image cannot be read: {reason}.") from None


def _is_bomb(content: bytes) -> bool:
    """Whether a JPEG or PNG has more pixels than PIL opens: half a megabyte can become three GB."""
    if content.startswith(_PNG):
        width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
        return width * height > MOST_PIXELS
    if len(content) * _JPEG_PIXELS_A_BYTE <= MOST_PIXELS:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content)) as opened:  # reads no more than its start
                return opened.width * opened.height > MOST_PIXELS
    except Exception:  # told by whoever reads all of it
        return True


def _with_torchvision(content: bytes) -> Tensor:
    encoded = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    with warnings.catch_warnings():
        # Since 0.29 torchvision points to torchcodec, a package that few have; PIL is slower.
        warnings.simplefilter("ignore", DeprecationWarning)
        image: Tensor = decode_image(encoded, mode=ImageReadMode.RGB, apply_exif_orientation=True)
    if image.dtype == torch.uint16:
        return (image.to(torch.int32) >> 8).to(torch.uint8)
    return image


def _with_pil(content: bytes) -> Tensor:
    with Image.open(io.BytesIO(content)) as opened:
        image = ImageOps.exif_transpose(opened)
        if image.mode.startswith(("I", "F")):
            image = _to_8_bit(image)
        elif image.mode == "P" and "transparency" in image.info:
            image = image.convert("RGBA")
        return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)


def _to_8_bit(image: Image.Image) -> Image.Image:
    """Scale 16-bit grey, which PIL would cut off at 255; other deep images have no known range."""
    values = np.asarray(image)
    if not image.mode.startswith("I") or values.min() < 0 or values.max() > 65535:
        raise ValueError(f"its pixels ({image.mode}) have no known range; save it with 8 bits")
    return Image.fromarray((values.astype(np.int32) >> 8).astype(np.uint8))
