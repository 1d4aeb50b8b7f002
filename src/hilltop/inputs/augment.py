"""Two RandAugments on 8-bit images, and cutout: what is drawn, how often and how strong.

``rand_augment`` has torchvision's operations, magnitudes and fills. At 448 px it takes 0.6 of the
time of torchvision on PIL images and 0.2 of that on tensors. ``paper_rand_augment`` has those of
the package ``randaugment`` 1.0.2, which the code released with the paper uses: another list of
operations, each of the two skipped half of the time, and magnitudes that are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torchvision.transforms.v2 import functional

from hilltop.inputs import operations as ops

Operation = Callable[[Tensor, float], Tensor]
DrawnOperation = Callable[[Tensor, float, np.random.Generator], Tensor]

_STRENGTH = 9 / 30  # magnitude 9 of 0 to 30, as in torchvision
_GREY = 128  # what the package fills with
_PATCH = torch.tensor([125, 122, 113], dtype=torch.uint8)  # colour of its small squares
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
    return ops.hide_square(pixels, row, column, (height + 1) // 4, colour, closed=True)


def rand_augment(pixels: Tensor, generator: np.random.Generator) -> Tensor:
    """Apply two random operations of magnitude 9, half of them in the opposite direction."""
    names = list(OPERATIONS)
    for number in generator.integers(len(names), size=2):
        operation, magnitude = OPERATIONS[names[number]]
        sign = 1 - 2 * int(generator.integers(2))
        pixels = operation(pixels, sign * magnitude)
    return pixels


def paper_rand_augment(pixels: Tensor, generator: np.random.Generator) -> Tensor:
    """Draw two operations with a magnitude each, and apply each of them half of the time.

    Of a quarter of all images nothing is changed at all; weak magnitudes that change nothing, such
    as all eight bits of a posterised image, make it about 30%.
    """
    names = list(PAPER_OPERATIONS)
    for _ in range(2):
        operation, magnitudes = PAPER_OPERATIONS[names[generator.integers(len(names))]]
        magnitude = magnitudes[generator.integers(_LEVELS)]
        if generator.random() < _APPLIED:
            pixels = operation(pixels, magnitude, generator)
    return pixels


def _shear(pixels: Tensor, along_x: float, along_y: float) -> Tensor:
    angles = [math.degrees(math.atan(along_x)), math.degrees(math.atan(along_y))]
    moved = functional.affine(
        ops.as_pil(pixels), angle=0.0, translate=[0, 0], scale=1.0, shear=angles, center=[0, 0]
    )
    return ops.from_pil(moved)


def _rotate(pixels: Tensor, degrees: float) -> Tensor:
    return ops.from_pil(functional.rotate(ops.as_pil(pixels), degrees))


def _without_magnitude(operation: Callable[[Tensor], Tensor]) -> Operation:
    return lambda pixels, _: operation(pixels)


# Magnitudes of torchvision's RandAugment; a share of the side for translations.
OPERATIONS: dict[str, tuple[Operation, float]] = {
    "Identity": (lambda pixels, _: pixels, 0.0),
    "ShearX": (lambda pixels, by: _shear(pixels, by, 0.0), 0.3 * _STRENGTH),
    "ShearY": (lambda pixels, by: _shear(pixels, 0.0, by), 0.3 * _STRENGTH),
    "TranslateX": (
        lambda pixels, share: ops.translate_x(pixels, int(share * pixels.shape[1]), 0),
        150 / 331 * _STRENGTH,
    ),
    "TranslateY": (
        lambda pixels, share: ops.translate_y(pixels, int(share * pixels.shape[0]), 0),
        150 / 331 * _STRENGTH,
    ),
    "Rotate": (_rotate, 30 * _STRENGTH),
    "Brightness": (ops.brightness, 0.9 * _STRENGTH),
    "Color": (ops.colour, 0.9 * _STRENGTH),
    "Contrast": (ops.contrast, 0.9 * _STRENGTH),
    "Sharpness": (ops.sharpness, 0.9 * _STRENGTH),
    "Posterize": (lambda pixels, _: ops.posterize(pixels, 8 - round(4 * _STRENGTH)), 0.0),
    "Solarize": (lambda pixels, _: ops.solarize(pixels, 255 * (1 - _STRENGTH)), 0.0),
    "AutoContrast": (_without_magnitude(ops.auto_contrast), 0.0),
    "Equalize": (_without_magnitude(ops.equalize), 0.0),
}


def _either_way(operation: Operation) -> DrawnOperation:
    """An operation whose direction is drawn."""

    def apply(pixels: Tensor, magnitude: float, generator: np.random.Generator) -> Tensor:
        return operation(pixels, magnitude if generator.integers(2) else -magnitude)

    return apply


def _one_way(operation: Operation) -> DrawnOperation:
    return lambda pixels, magnitude, _: operation(pixels, magnitude)


def _plain(operation: Callable[[Tensor], Tensor]) -> DrawnOperation:
    return lambda pixels, *_: operation(pixels)


def _paper_shear(pixels: Tensor, by: float, *, along_x: bool) -> Tensor:
    matrix = (1, by, 0, 0, 1, 0) if along_x else (1, 0, 0, by, 1, 0)
    image = ops.as_pil(pixels)
    method, filter_ = Image.Transform.AFFINE, Image.Resampling.BICUBIC
    return ops.from_pil(
        image.transform(image.size, method, matrix, filter_, fillcolor=(_GREY, _GREY, _GREY))
    )


def _paper_translate(pixels: Tensor, share: float, *, along_x: bool) -> Tensor:
    """PIL reads each pixel from where it came, so that a positive share moves to the left."""
    by = -math.floor(share * pixels.shape[1 if along_x else 0] + 0.5)
    move = ops.translate_x if along_x else ops.translate_y
    return move(pixels, by, _GREY)


def _paper_rotate(pixels: Tensor, degrees: float) -> Tensor:
    rotated = ops.as_pil(pixels).rotate(degrees, fillcolor=(_GREY, _GREY, _GREY))
    return ops.from_pil(rotated)


def _paper_cutout(pixels: Tensor, side: float, generator: np.random.Generator) -> Tensor:
    """A small square, of 2 to 20 pixels whatever the size of the image."""
    row, column = (int(generator.integers(length)) for length in pixels.shape[:2])
    return ops.hide_square(pixels.clone(), row, column, int(side) // 2, _PATCH, closed=False)


def _levels(first: float, last: float) -> tuple[float, ...]:
    """Levels 1 to 9 of ten that lead from the first to the last."""
    return tuple(np.linspace(first, last, _LEVELS + 1)[1:].tolist())


def _whole_levels(first: float, last: float) -> tuple[float, ...]:
    return tuple(np.round(np.linspace(first, last, _LEVELS + 1)[1:]).tolist())


_NO_LEVELS = (0.0,) * _LEVELS

# Operations of the package with the magnitudes of its levels 1 to 9. It rotates one way only.
PAPER_OPERATIONS: dict[str, tuple[DrawnOperation, tuple[float, ...]]] = {
    "Invert": (_plain(ops.invert), _NO_LEVELS),
    "Cutout": (_paper_cutout, _whole_levels(0, 20)),
    "Sharpness": (_either_way(ops.sharpness), _levels(0, 0.9)),
    "AutoContrast": (_plain(ops.auto_contrast), _NO_LEVELS),
    "Posterize": (
        _one_way(lambda pixels, bits: ops.posterize(pixels, int(bits))),
        _whole_levels(8, 4),
    ),
    "ShearX": (_either_way(partial(_paper_shear, along_x=True)), _levels(0, 0.3)),
    "TranslateX": (_either_way(partial(_paper_translate, along_x=True)), _levels(0, 150 / 331)),
    "TranslateY": (_either_way(partial(_paper_translate, along_x=False)), _levels(0, 150 / 331)),
    "ShearY": (_either_way(partial(_paper_shear, along_x=False)), _levels(0, 0.3)),
    "Rotate": (_one_way(_paper_rotate), _levels(0, 30)),
    "Equalize": (_plain(ops.equalize), _NO_LEVELS),
    "Contrast": (_either_way(ops.contrast), _levels(0, 0.9)),
    "Color": (_either_way(ops.colour), _levels(0, 0.9)),
    "Solarize": (_one_way(ops.solarize), _levels(256, 0)),
    "Brightness": (_either_way(ops.brightness), _levels(0, 0.9)),
}
