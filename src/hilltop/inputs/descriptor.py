"""A fixed description of pictures: how well whitened patches match, over the whole picture.

Nothing is trained and no label is looked at. Small patches of some pictures, drawn by chance, are
taken as filters after contrast normalisation and whitening. Of the response of each filter to all
patches of a picture, in both signs, the highest, the mean and the mean square are kept: what is
in a picture, not where.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (the name torch's own documentation uses)
from PIL import Image
from torch import Tensor

from hilltop.checks import check_whole
from hilltop.errors import ArgumentError

_FLOOR = 0.05  # of a patch's deviation: without it, noise in a flat patch would be blown up
_RIDGE = 0.1  # of the whitening, for the same reason: directions that hardly occur are noise


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
    response = _patches(pictures, side, stride=1) @ filters.T / side
    parts = []
    for signed in (response, -response):
        fired = F.relu(signed)
        parts += [fired.amax(1), fired.mean(1), fired.square().mean(1)]
    return torch.cat(parts, dim=1)


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
    drawn = patch_filters(_load(folder, names[:400]), count=filters, side=side, seed=seed)
    # Small results kept one by one would lie between the large responses and hold their memory.
    found = torch.empty(len(names), 6 * filters)
    # Two at a time: the responses of more do not fit into the cache, and it takes twice as long.
    for at in range(0, len(names), 2):
        found[at : at + 2] = describe(_load(folder, names[at : at + 2]), drawn)
    return found


def _load(folder: Path, names: Sequence[str]) -> Tensor:
    pixels = np.stack([np.asarray(Image.open(folder / name)) for name in names])
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255


def _patches(pictures: Tensor, side: int, stride: int) -> Tensor:
    """Grey patches without their mean and contrast: ``(images, places, side * side)``."""
    grey = pictures.mean(dim=1, keepdim=True)
    patches = F.unfold(grey, side, stride=stride).transpose(1, 2)
    deviation, mean = torch.std_mean(patches, dim=2, keepdim=True)
    return (patches - mean) / (deviation + _FLOOR)
