"""Cutout, and two RandAugments on 8-bit images.

``rand_augment`` is torchvision's. ``paper_rand_augment`` is that of the package ``randaugment``
1.0.2, which the code released with the paper uses: another list of operations, each of the two
skipped half of the time, and magnitudes that are drawn.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor
from torchvision.transforms import v2

DrawnOperation = Callable[[Image.Image, float, np.random.Generator], Image.Image]

_GREY = (128, 128, 128)  # what the package fills with
_PATCH = (125, 122, 113)  # colour of its small squares
_APPLIED = 0.5  # how often it applies an operation that was drawn
_LEVELS = 9  # magnitudes of an operation that it draws from; the tenth, level 0, never is


def cutout(pixels: Tensor, generator: np.random.Generator) -> Tensor:
    """Fill one square of half the side with one random colour, in place, and return it.

    Its centre may lie anywhere, so that the square can reach over the border, as in the code
    released with the paper; there it is drawn as a rectangle with both ends, 225 pixels of 448.
    """
    height, width = pixels.shape[:2]
    row, column = int(generator.integers(height)), int(generator.integers(width))
    colour = torch.from_numpy(generator.integers(256, size=3, dtype=np.uint8))
    reach = (height + 1) // 4
    rows = slice(max(row - reach, 0), row + reach + 1)
    pixels[rows, max(column - reach, 0) : column + reach + 1] = colour
    return pixels


def rand_augment(pixels: Tensor, generator: np.random.Generator) -> Tensor:
    """Apply two random operations of magnitude 9, as torchvision does."""
    with torch.random.fork_rng(devices=[]):  # torchvision draws from the global state
        torch.manual_seed(int(generator.integers(1 << 62)))
        return _from_pil(v2.RandAugment()(Image.fromarray(pixels.numpy())))


def paper_rand_augment(pixels: Tensor, generator: np.random.Generator) -> Tensor:
    """Draw two operations with a magnitude each, and apply each of them half of the time.

    Of a quarter of all images nothing is changed at all; weak magnitudes that change nothing, such
    as all eight bits of a posterised image, make it about 30%.
    """
    names, image = list(PAPER_OPERATIONS), Image.fromarray(pixels.numpy())
    for _ in range(2):
        operation, magnitudes = PAPER_OPERATIONS[names[generator.integers(len(names))]]
        magnitude = magnitudes[generator.integers(_LEVELS)]
        if generator.random() < _APPLIED:
            image = operation(image, magnitude, generator)
    return _from_pil(image)


def _from_pil(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(image))


def _plain(operation: Callable[[Image.Image], Image.Image]) -> DrawnOperation:
    return lambda image, *_: operation(image)


def _enhanced(kind: Callable[[Image.Image], ImageEnhance._Enhance]) -> DrawnOperation:
    return lambda image, by, generator: kind(image).enhance(1 + _signed(by, generator))


def _moved(
    matrix: Callable[[float, Image.Image], tuple[float, ...]], method: Image.Resampling
) -> DrawnOperation:
    """An affine map of which the magnitude is drawn with a sign."""

    def apply(image: Image.Image, by: float, generator: np.random.Generator) -> Image.Image:
        numbers = matrix(_signed(by, generator), image)
        affine = Image.Transform.AFFINE
        return image.transform(image.size, affine, numbers, method, fillcolor=_GREY)

    return apply


def _signed(magnitude: float, generator: np.random.Generator) -> float:
    return magnitude if generator.integers(2) else -magnitude


def _small_cutout(image: Image.Image, side: float, generator: np.random.Generator) -> Image.Image:
    """A small square, of 2 to 20 pixels whatever the size of the image."""
    row, column = (int(generator.integers(length)) for length in (image.height, image.width))
    reach, hidden = int(side) // 2, image.copy()
    hidden.paste(
        _PATCH,
        (
            max(column - reach, 0),
            max(row - reach, 0),
            min(column + reach, image.width),
            min(row + reach, image.height),
        ),
    )
    return hidden


def _levels(first: float, last: float) -> tuple[float, ...]:
    """Levels 1 to 9 of ten that lead from the first to the last."""
    return tuple(np.linspace(first, last, _LEVELS + 1)[1:].tolist())


def _whole_levels(first: float, last: float) -> tuple[float, ...]:
    return tuple(map(float, map(round, _levels(first, last))))


_BICUBIC, _NEAREST = Image.Resampling.BICUBIC, Image.Resampling.NEAREST
_NO_LEVELS = _levels(0, 0)

# Operations of the package with the magnitudes of its levels 1 to 9. It rotates one way only.
PAPER_OPERATIONS: dict[str, tuple[DrawnOperation, tuple[float, ...]]] = {
    "Invert": (_plain(ImageOps.invert), _NO_LEVELS),
    "Cutout": (_small_cutout, _whole_levels(0, 20)),
    "Sharpness": (_enhanced(ImageEnhance.Sharpness), _levels(0, 0.9)),
    "AutoContrast": (_plain(ImageOps.autocontrast), _NO_LEVELS),
    "Posterize": (
        lambda image, bits, _: ImageOps.posterize(image, int(bits)),
        _whole_levels(8, 4),
    ),
    "ShearX": (_moved(lambda by, _: (1, by, 0, 0, 1, 0), _BICUBIC), _levels(0, 0.3)),
    "TranslateX": (
        _moved(lambda by, image: (1, 0, by * image.width, 0, 1, 0), _NEAREST),
        _levels(0, 150 / 331),
    ),
    "TranslateY": (
        _moved(lambda by, image: (1, 0, 0, 0, 1, by * image.height), _NEAREST),
        _levels(0, 150 / 331),
    ),
    "ShearY": (_moved(lambda by, _: (1, 0, 0, by, 1, 0), _BICUBIC), _levels(0, 0.3)),
    "Rotate": (lambda image, by, _: image.rotate(by, fillcolor=_GREY), _levels(0, 30)),
    "Equalize": (_plain(ImageOps.equalize), _NO_LEVELS),
    "Contrast": (_enhanced(ImageEnhance.Contrast), _levels(0, 0.9)),
    "Color": (_enhanced(ImageEnhance.Color), _levels(0, 0.9)),
    "Solarize": (lambda image, by, _: ImageOps.solarize(image, int(np.ceil(by))), _levels(256, 0)),
    "Brightness": (_enhanced(ImageEnhance.Brightness), _levels(0, 0.9)),
}
