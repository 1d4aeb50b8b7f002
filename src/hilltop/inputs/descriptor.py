"""A fixed description of pictures: how well whitened patches match, over the whole picture.

Nothing is trained and no label is looked at. Small patches of some pictures, drawn by chance, are
taken as filters after contrast normalisation and whitening. Of the response of each filter to all
patches of a picture, in both signs, the highest, the mean and the mean square are kept: what is
in a picture, not where.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from torch import Tensor

from hilltop.checks import check_whole
from hilltop.errors import ArgumentError

if TYPE_CHECKING:
    from hilltop.inputs.images import ImageInputs

_FLOOR = 0.05  # of a patch's deviation: without it, noise in a flat patch would be blown up
_RIDGE = 0.1  # of the whitening, for the same reason: directions that hardly occur are noise
_SAMPLE = 400  # pictures that filters are drawn from
_SIDE = 64  # pixels of a picture's side where files of any size are described
_AT_ONCE = 4  # pictures: the responses of more do not fit into the cache


def patch_filters(pictures: Tensor, *, count: int, side: int, seed: int) -> Tensor:
    """Draw whitened patches as filters.

    Args:
        pictures: ``(images, channels, height, width)``, values in [0, 1].
        count: How many filters.
        side: Pixels of a side.
        seed: Which patches are drawn.

    Returns:
        ``(count, side * side)``, to be multiplied with normalised grey patches.
    """
    check_whole("count", count, low=1)
    patches = _patches(pictures, side, stride=3).flatten(0, 1)
    if len(patches) < count:
        raise ArgumentError(f"There are {len(patches)} patches, but count is {count}.")
    generator = torch.Generator().manual_seed(seed)
    patches = patches[torch.randperm(len(patches), generator=generator)[: max(count, 20_000)]]
    covariance = torch.cov(patches.T) + _RIDGE * torch.eye(side * side)
    values, vectors = torch.linalg.eigh(covariance)
    whitening = vectors @ torch.diag(values.rsqrt()) @ vectors.T
    chosen = F.normalize(patches[:count] @ whitening, dim=1)
    filters: Tensor = chosen @ whitening
    return filters


@torch.no_grad()
def describe(pictures: Tensor, filters: Tensor) -> Tensor:
    """Describe pictures by the response of every filter.

    Args:
        pictures: ``(images, channels, height, width)``, values in [0, 1].
        filters: As :func:`patch_filters` draws them.

    Returns:
        ``(images, 6 * filters)``: highest, mean and mean square of the positive responses, then
        of the negative ones.
    """
    side = round(filters.shape[1] ** 0.5)
    grey, size = pictures.mean(dim=1, keepdim=True), side * side
    # The response to a normalised patch, without cutting patches out: a convolution of the grey
    # picture, less the mean of each patch and over its deviation.
    mean = F.avg_pool2d(grey, side, 1)
    variance = (F.avg_pool2d(grey.square(), side, 1) - mean.square()) * (size / (size - 1))
    response = F.conv2d(grey, filters.view(-1, 1, side, side))
    response -= mean * filters.sum(dim=1).view(1, -1, 1, 1)
    response /= side * (variance.clamp(min=0).sqrt() + _FLOOR)
    response = response.flatten(2)
    # Both signs from one pass: max(r, 0) is (|r| + r) / 2, and its square (r^2 + r|r|) / 2.
    size_of = response.abs()
    means, sizes = response.mean(2), size_of.mean(2)
    squares, signed = response.square().mean(2), (response * size_of).mean(2)
    positive = [F.relu(response.amax(2)), (sizes + means) / 2, (squares + signed) / 2]
    negative = [F.relu(-response.amin(2)), (sizes - means) / 2, (squares - signed) / 2]
    return torch.cat([*positive, *negative], dim=1)


def describe_inputs(
    images: ImageInputs, *, filters: int = 256, side: int = 9, seed: int = 0
) -> Tensor:
    """Describe images in 64 x 64 pixels, zeros where one is broken.

    Args:
        images: The images; the filters are drawn from the first of them.
        filters: How many filters.
        side: Pixels of a filter's side.
        seed: Which patches are drawn.
    """
    small, rows = images.resized(_SIDE), len(images.images)
    found = torch.zeros(rows, 6 * filters)
    plan = [range(at, min(at + _SAMPLE, rows)) for at in range(0, rows, _SAMPLE)]
    drawn: Tensor | None = None
    for read, pixels in small.loader(plan, None):
        if len(read) and drawn is None:
            drawn = patch_filters(pixels, count=filters, side=side, seed=seed)
        for at in range(0, len(read), _AT_ONCE):
            assert drawn is not None
            some = torch.from_numpy(read[at : at + _AT_ONCE])
            found[some] = describe(pixels[at : at + _AT_ONCE].contiguous(), drawn)
    return found


def describe_files(
    folder: Path, names: Sequence[str], *, filters: int, side: int, seed: int
) -> Tensor:
    """Describe image files of one size, with filters from the first of them.

    Args:
        folder: Where the files are.
        names: Their names.
        filters: How many filters.
        side: Pixels of a filter's side.
        seed: Which patches are drawn.
    """
    drawn = patch_filters(_load(folder, names[:_SAMPLE]), count=filters, side=side, seed=seed)
    # Small results kept one by one would lie between the large responses and hold their memory.
    found = torch.empty(len(names), 6 * filters)
    for at in range(0, len(names), _AT_ONCE):
        found[at : at + _AT_ONCE] = describe(_load(folder, names[at : at + _AT_ONCE]), drawn)
    return found


def _load(folder: Path, names: Sequence[str]) -> Tensor:
    from PIL import Image  # training on features does without it

    pixels = np.stack([np.asarray(Image.open(folder / name)) for name in names])
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255


def _patches(pictures: Tensor, side: int, stride: int) -> Tensor:
    """Grey patches without their mean and contrast: ``(images, places, side * side)``."""
    grey = pictures.mean(dim=1, keepdim=True)
    patches = F.unfold(grey, side, stride=stride).transpose(1, 2)
    deviation, mean = torch.std_mean(patches, dim=2, keepdim=True)
    return (patches - mean) / (deviation + _FLOOR)
