"""``features``: what a pretrained network sees in images, for every command that trains on it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import tyro

from hilltop.checks import pluralize
from hilltop.errors import ArgumentError

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import Tensor


@dataclass(frozen=True)
class Features:
    """Compute features of all images in a folder once, for train, advise, audit and compare.

    Given a label file that holds features too, such as ARFF or LIBSVM, take them from it.

    Example: hilltop features photos --weights timm --out features.npz
    """

    images: tyro.conf.Positional[Path]
    """Folder with the images; those in folders inside it count, too. Or a file with features."""
    out: Path
    """The .npz file to write: ids, the paths of the images in the folder, and X, a row for each."""
    backbone: str = "resnet50"
    """timm name of the network."""
    weights: str = "none"
    """Its weights, which it needs: timm (asks the hub once) or a local file."""
    image_size: int = 224
    """Images are squashed to this many pixels a side."""
    workers: int = 2
    """Processes that decode images."""
    labels: Path | None = None
    """Compute features of the images in this label file alone."""
    allow_missing: bool = False
    """With --labels: go on without rows that have no image."""
    skip_broken: bool = False
    """Leave out images that cannot be read, and list them, instead of stopping."""
    needs: ClassVar = ("weights",)

    def run(self) -> None:
        """Compute and write."""
        import torch

        from hilltop.inputs.backbone import write_features
        from hilltop.inputs.features import read_features

        if self.out.suffix != ".npz":
            raise ArgumentError(f"--out must end in .npz, but got {self.out.name!r}.")
        if self.images.is_file():
            found = read_features(self.images)
            values, names = torch.from_numpy(found.values), found.images
        else:
            values, names = self._extract()
        write_features(self.out, values, names)
        numbers = pluralize(values.shape[1], "number", "numbers")
        print(f"{self.out}: {pluralize(len(names), 'image', 'images')}, {numbers} each")

    def _extract(self) -> tuple[Tensor, pa.StringArray]:
        """Features of the images in the folder, and their ids."""
        from hilltop.inputs.backbone import Backbone, check_weights, extract_features
        from hilltop.inputs.image_files import list_images
        from hilltop.inputs.matching import labelled_inputs

        chosen = list_images(self.images)
        if self.labels is not None:
            allowed = self.allow_missing
            chosen = labelled_inputs(self.labels, self.images, allow_missing=allowed, say=print)
        return extract_features(
            self.images,
            chosen,
            Backbone(self.backbone, check_weights(self.weights), self.image_size),
            workers=self.workers,
            skip_broken=self.skip_broken,
            say=print,
        )
