"""From a decoded image to pixels of the model's size, with and without augmentation.

Images are squashed, not cropped, and never normalised, as in the recipe of the paper. They stay
8-bit and interleaved until a whole batch is turned into numbers in [0, 1].
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms.v2 import functional

from hilltop.data.augment import cutout, rand_augment


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


def training_pixels(image: Tensor, size: int, *, seed: int, epoch: int, row: int) -> Tensor:
    """Squash an image to a square, then apply cutout and RandAugment.

    Everything random depends on ``seed``, ``epoch`` and ``row`` alone; no global state is used.

    Args:
        image: 8-bit RGB.
        size: Side of the square, in pixels.
        seed: Seed of the run.
        epoch: Number of the epoch, from 0.
        row: Number of the image.

    Shape:
        ``(3, H, W)`` to ``(size, size, 3)``.
    """
    generator = np.random.default_rng([seed, epoch, row])
    return rand_augment(cutout(evaluation_pixels(image, size), generator), generator)


def model_input(pixels: Tensor) -> Tensor:
    """Return pixels as numbers in [0, 1], in memory format ``channels_last``.

    Shape:
        ``(N, size, size, 3)`` to ``(N, 3, size, size)``.
    """
    # numpy asks the system for huge pages and torch does not: four times as fast for large batches.
    values = torch.from_numpy(np.empty(pixels.shape, dtype=np.float32))
    return values.copy_(pixels).div_(255).permute(0, 3, 1, 2)
