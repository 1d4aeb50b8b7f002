"""Operations on 8-bit images for augmentation, written for speed on one core.

What a PIL image does well (moving pixels, histograms) is done by PIL; the rest is arithmetic on
whole rows of an interleaved tensor ``(height, width, 3)``. Which operations are drawn, how often
and how strong is said in ``augment.py``.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms.v2 import functional

_LUMA = (0.299, 0.587, 0.114)


def hide_square(
    pixels: Tensor, row: int, column: int, reach: int, colour: Tensor, *, closed: bool
) -> Tensor:
    """Fill a square around a pixel with one colour, in place, and return it.

    Args:
        pixels: The image.
        row: Row of the middle; the square may reach over the border.
        column: Column of the middle.
        reach: Pixels to each side of the middle.
        colour: Three bytes.
        closed: Whether the last row and column belong to it, as where PIL draws a rectangle.
    """
    end = reach + int(closed)
    pixels[max(row - reach, 0) : row + end, max(column - reach, 0) : column + end] = colour
    return pixels


def from_pil(image: Image.Image) -> Tensor:
    """Pixels of a PIL image, in memory of their own."""
    return torch.from_numpy(np.array(image))


def as_pil(pixels: Tensor) -> Image.Image:
    """A PIL image with these pixels."""
    return Image.fromarray(pixels.numpy())


def translate_x(pixels: Tensor, by: int, fill: int) -> Tensor:
    """Move to the right by whole pixels; a negative number moves to the left."""
    moved = torch.full_like(pixels, fill)
    if by >= 0:
        moved[:, by:] = pixels[:, : pixels.shape[1] - by]
    else:
        moved[:, :by] = pixels[:, -by:]
    return moved


def translate_y(pixels: Tensor, by: int, fill: int) -> Tensor:
    """Move down by whole pixels."""
    return translate_x(pixels.transpose(0, 1), by, fill).transpose(0, 1).contiguous()


def brightness(pixels: Tensor, magnitude: float) -> Tensor:
    """Move every pixel away from black, or towards it."""
    return _bytes(pixels * (1.0 + magnitude))


def colour(pixels: Tensor, magnitude: float) -> Tensor:
    """Move every pixel away from or towards its grey value."""
    values = pixels.float()
    grey = torch.zeros(pixels.shape[:2])
    for channel, share in enumerate(_LUMA):
        grey.add_(values[..., channel], alpha=share)
    values.mul_(1.0 + magnitude)
    for channel in range(3):
        values[..., channel].sub_(grey, alpha=magnitude)
    return _bytes(values)


def contrast(pixels: Tensor, magnitude: float) -> Tensor:
    """Move every pixel away from or towards the mean grey value of the image."""
    luma = torch.tensor(_LUMA, dtype=torch.float64)
    grey = int(pixels.sum(0).sum(0).double().dot(luma) / pixels[..., 0].numel() + 0.5)
    return _bytes((pixels * (1.0 + magnitude)).sub_(magnitude * grey))


def sharpness(pixels: Tensor, magnitude: float) -> Tensor:
    """Move every pixel away from or towards the mean of its neighbourhood; the border stays."""
    wide = pixels.view(pixels.shape[0], -1).to(torch.int16)  # a neighbour is 3 entries away
    rows = wide[:-2] + wide[1:-1]
    rows += wide[2:]
    box = rows[:, :-6] + rows[:, 3:-3]
    box += rows[:, 6:]
    inner = wide[1:-1, 3:-3]
    # The smoothed pixel is (box + 4 pixel) / 13, so this is 13 times what sets the two apart.
    apart = box.sub_(inner, alpha=9).mul(-magnitude / 13)
    wide[1:-1, 3:-3] = apart.add_(inner).round_()
    return _bytes(wide).view_as(pixels)


def posterize(pixels: Tensor, bits: int) -> Tensor:
    """Keep the highest bits."""
    return pixels & (256 - (1 << (8 - bits)))


def solarize(pixels: Tensor, threshold: float) -> Tensor:
    """Turn over all values from a threshold on."""
    # numpy compares bytes 40 times as fast as torch; 255 - x is x with all bits turned over.
    bright = pixels.numpy() >= math.ceil(threshold)
    return torch.from_numpy(pixels.numpy() ^ (bright.view(np.uint8) * np.uint8(255)))


def invert(pixels: Tensor) -> Tensor:
    """Turn over all values."""
    return 255 - pixels


def auto_contrast(pixels: Tensor) -> Tensor:
    """Stretch each channel from 0 to 255; a flat one stays."""
    low = pixels.amin(0).amin(0).float()
    high = pixels.amax(0).amax(0).float()
    flat = low == high
    scale = torch.where(flat, 1.0, 255 / (high - low))
    offset = torch.where(flat, 0.0, low)
    # Tiled to a whole row: torch is slow where the innermost dimension has only three entries.
    width = pixels.shape[1]
    rows = pixels.view(pixels.shape[0], -1)
    return _bytes((rows * scale.repeat(width)).sub_((offset * scale).repeat(width))).view_as(pixels)


def equalize(pixels: Tensor) -> Tensor:
    """Make the values of each channel equally frequent."""
    return from_pil(functional.equalize(as_pil(pixels)))


def _bytes(values: Tensor) -> Tensor:
    """Cut off to 0 to 255; the way over int16 is three times as fast as straight to uint8."""
    return values.to(torch.int16).clamp_(0, 255).to(torch.uint8)
