"""ImageInputs: batches of images from a folder, the same on any number of processes."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from hilltop.checks import check_choice, check_number
from hilltop.data.label_table import Ints
from hilltop.errors import DataError
from hilltop.inputs.decode import read_image
from hilltop.inputs.image_files import find_images, missing_images
from hilltop.inputs.transforms import (
    AUGMENTATIONS,
    evaluation_pixels,
    model_input,
    training_pixels,
)
from hilltop.machine import usable_cores

Item = tuple[int, Tensor | str]  # row, and its pixels or why there are none
Batch = tuple[Ints, Tensor, dict[int, str]]

_MISSING = "there is no such file."


@dataclass(frozen=True)
class _Images(Dataset[Item]):
    """What a worker needs to turn a row into pixels. Failures are values: they keep their words."""

    folder: Path
    files: pa.StringArray
    size: int
    augment: str
    seed: int
    epoch: int | None

    def __getitem__(self, row: int) -> Item:
        """Return the pixels of an image, or the reason why it cannot be read."""
        name = self.files[row].as_py()
        if name is None:
            return row, _MISSING
        try:
            image = read_image(self.folder / name)
        except DataError as error:
            return row, str(error)
        if self.epoch is None:
            return row, evaluation_pixels(image, self.size)
        return row, training_pixels(
            image, self.size, augment=self.augment, seed=self.seed, epoch=self.epoch, row=row
        )

    def collate(self, items: Sequence[Item]) -> Batch:
        """Put what could be read into one 8-bit tensor, a quarter of what floats would take."""
        read = [(row, pixels) for row, pixels in items if isinstance(pixels, Tensor)]
        rows = np.array([row for row, _ in read], dtype=np.int64)
        failed = {row: reason for row, reason in items if isinstance(reason, str)}
        if not read:
            return rows, torch.empty((0, self.size, self.size, 3), dtype=torch.uint8), failed
        return rows, torch.stack([pixels for _, pixels in read]), failed


class ImageInputs:
    """Images of a folder as model input: squashed to a square, RGB, numbers in [0, 1].

    While training, augmentation depends on (seed, epoch, row) alone, so that a resumed or
    distributed run sees the same pixels.

    Args:
        folder: Where the images are.
        images: Image ids: file names in the folder, with or without their ending.
        size: Side of the square, in pixels.
        augment: What to do to training images: light, strong, paper or none.
        seed: Seed of the augmentation.
        workers: Number of processes that decode; 0 decodes in this one.
        skip_broken: Leave out images that are missing or cannot be read, and list them in
            :attr:`broken`, instead of raising.

    Raises:
        DataError: Images are missing (at most 20 are named), or an id leads out of the folder.
    """

    def __init__(
        self,
        folder: Path,
        images: pa.StringArray,
        *,
        size: int,
        augment: str,
        seed: int,
        workers: int,
        skip_broken: bool,
    ) -> None:
        """Find the file of every image."""
        for name, value, low in (("size", size, 1), ("seed", seed, 0), ("workers", workers, 0)):
            check_number(name, value, low=low)
        self.folder = Path(folder)
        self.images = images
        self.size = size
        self.augment = check_choice("augment", augment, list(AUGMENTATIONS))
        self.seed = seed
        self.workers = workers
        self.skip_broken = skip_broken
        self._files = find_images(self.folder, images)
        missing = images.filter(self._files.is_null()).to_pylist()
        if missing and (not skip_broken or len(missing) == len(images)):
            raise missing_images(self.folder, missing, len(images))
        self._broken = {name: f"{self.folder / name}: {_MISSING}" for name in missing}

    @property
    def broken(self) -> list[tuple[str, str]]:
        """Id and reason of every image that was left out so far, ordered by id."""
        return sorted(self._broken.items())

    def resized(self, size: int) -> ImageInputs:
        """Return the same images at another size."""
        other = copy.copy(self)
        other.size, other._broken = size, dict(self._broken)
        return other

    def fingerprint(self) -> str:
        """A number that changes with the list of images, and with any of their files."""
        made = hashlib.sha256()
        for image, file in zip(self.images.to_pylist(), self._files.to_pylist(), strict=True):
            status = (self.folder / file).stat() if file is not None else None
            stamp = None if status is None else (status.st_size, status.st_mtime_ns)
            made.update(repr((image, stamp)).encode())
        return made.hexdigest()

    def loader(
        self, plan: Sequence[Sequence[int]], epoch: int | None
    ) -> Iterator[tuple[Ints, Tensor]]:
        """Read images in batches.

        Args:
            plan: Row numbers of each batch.
            epoch: Number of the epoch while training; None when evaluating.

        Yields:
            For each batch of the plan, in order: the rows that could be read, and their float32
            input ``(rows, 3, size, size)``. Both are empty if none could be read.

        Raises:
            DataError: An image cannot be read, unless broken ones are skipped.
        """
        dataset = _Images(self.folder, self._files, self.size, self.augment, self.seed, epoch)
        batches = DataLoader(
            dataset,
            batch_sampler=[list(map(int, rows)) for rows in plan],
            collate_fn=dataset.collate,
            num_workers=min(self.workers, len(plan), usable_cores()),
            generator=torch.Generator(),  # without its own it would draw from the global state
        )
        for rows, pixels, failed in batches:
            self._note(failed)
            yield rows, model_input(pixels)

    def _note(self, failed: dict[int, str]) -> None:
        """Remember images that could not be read, or stop at the first one."""
        for row, reason in failed.items():
            if not self.skip_broken:
                raise DataError(
                    f"{reason.rstrip('.')}; replace the file, or leave out such images with"
                    " skip_broken (--skip-broken)."
                )
            self._broken.setdefault(self.images[row].as_py(), reason)
