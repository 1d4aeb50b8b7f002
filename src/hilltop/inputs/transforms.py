"""From a decoded image to pixels of the model's size, with and without augmentation.

Images are squashed, and never normalised, as in the recipe of the paper. They stay 8-bit and
interleaved until a whole batch is turned into numbers in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms.v2 import functional

from hilltop.inputs.augment import cutout, paper_rand_augment, rand_augment

_MARGIN = 8 / 7  # of the side, before a crop: three quarters of the picture remain


def uncropped_size(size: int) -> int:
    """Side of an image from which a square of some size is cut at random."""
    return round(size * _MARGIN)


def evaluation_pixels(image: Tensor, size: int) -> Tensor:
    """Squash an image to a square.

    Args:
        image: 8-bit RGB.
        size: Side of the square, in pixels.

    Shape:
        ``(3, H, W)`` to ``(size, size, 3)``.
    """
    squashed: Tensor = functional.resize(image, [size, size], antialias=True)
    return squashed.permute(1, 2, 0).contiguous()


def _strong(image: Tensor, size: int, generator: np.random.Generator) -> Tensor:
    return rand_augment(cutout(evaluation_pixels(image, size), generator), generator)


def _paper(image: Tensor, size: int, generator: np.random.Generator) -> Tensor:
    return paper_rand_augment(cutout(evaluation_pixels(image, size), generator), generator)


def _light(image: Tensor, size: int, generator: np.random.Generator) -> Tensor:
    pixels = evaluation_pixels(image, uncropped_size(size))
    top, left = generator.integers(len(pixels) - size + 1, size=2)
    pixels = pixels[top : top + size, left : left + size]
    return pixels.flip(1) if generator.integers(2) else pixels.contiguous()


AUGMENTATIONS: dict[str, Callable[[Tensor, int, np.random.Generator], Tensor]] = {
    "light": _light,
    "strong": _strong,
    "paper": _paper,
    "none": lambda image, size, _: evaluation_pixels(image, size),
}
"""light: random crop and mirror; strong: cutout and torchvision's RandAugment; paper: cutout and
the RandAugment of the code released with the paper."""


def training_pixels(
    image: Tensor, size: int, *, augment: str, seed: int, epoch: int, row: int
) -> Tensor:
    """Squash an image to a square and augment it.

    Everything random depends on ``seed``, ``epoch`` and ``row`` alone; no global state is used.

    Args:
        image: 8-bit RGB.
        size: Side of the square, in pixels.
        augment: Which of :data:`AUGMENTATIONS`.
        seed: Seed of the run.
        epoch: Number of the epoch, from 0.
        row: Number of the image.

    Shape:
        ``(3, H, W)`` to ``(size, size, 3)``.
    """
    return AUGMENTATIONS[augment](image, size, np.random.default_rng([seed, epoch, row]))


def model_input(pixels: Tensor) -> Tensor:
    """Return pixels as numbers in [0, 1], in memory format ``channels_last``.

    Shape:
        ``(N, size, size, 3)`` to ``(N, 3, size, size)``.
    """
    # numpy asks the system for huge pages and torch does not: four times as fast for large batches.
    values = torch.from_numpy(np.empty(pixels.shape, dtype=np.float32))
    return values.copy_(pixels).div_(255).permute(0, 3, 1, 2)
