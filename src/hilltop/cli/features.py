"""``features``: what a pretrained network sees in images, for every command that trains on it."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hilltop.checks import pluralize
from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Device, Force, Out
from hilltop.errors import ArgumentError
from hilltop.progress import say

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import Tensor

    from hilltop.inputs.backbone import Backbone
    from hilltop.inputs.ranks import Ranks
    from hilltop.inputs.shards import FeatureShards


@dataclass(frozen=True)
class Features:
    """Compute features of all images in a folder once, for train, advise, audit and compare.

    It is done in shards, which torchrun shares out over processes and machines; a command that was
    stopped goes on where it was.
    Given a label file that holds features too, such as ARFF or LIBSVM, take them from it.

    Example: hilltop features photos --weights timm --out features.npz
    """

    images: Path
    """Folder with the images; those in folders inside it count, too. Or a file with features."""
    _: KW_ONLY
    out: Out
    """The .npz file to write: ids, the paths of the images in the folder, and X, a row for each."""
    backbone: str = "resnet50"
    """timm name of the network."""
    weights: str = "none"
    """Its weights, which it needs: timm (asks the hub once), a file, or an installed package."""
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
    device: Device = "auto"
    engine: Literal["torchrun", "ray"] = "torchrun"
    """What shares the work out: torchrun, or Ray (the cluster of RAY_ADDRESS, or this machine)."""
    force: Force = False
    shard: int = 4096
    """Images in a shard, a multiple of 64; what a command that was stopped may have to do again."""

    def run(self) -> dict[str, Any]:
        """Compute and write."""
        import torch

        from hilltop.inputs.features import read_features
        from hilltop.inputs.ranks import engine_ranks
        from hilltop.inputs.shards import shared_features

        if self.out.suffix != ".npz":
            raise ArgumentError(f"--out must end in .npz, but got {self.out.name!r}.")
        check_written(self, self.out)
        if self.shard < 64 or self.shard % 64:
            raise ArgumentError(f"--shard must be a multiple of 64, but got {self.shard}.")
        with engine_ranks(self.engine) as ranks:
            if self.images.is_file():
                found = read_features(self.images)
                values, names = torch.from_numpy(found.values), found.images
                self._write(values, names, ranks, None)
            else:
                shards = self._shards()
                with shards.held(ranks):
                    values, names = shared_features(
                        shards, ranks, workers=self.workers, skip_broken=self.skip_broken, say=say
                    )
                    self._write(values, names, ranks, shards.backbone)
                    if ranks.first:
                        shards.discard()
        return {"out": self.out, "images": len(names), "numbers": values.shape[1]}

    def _write(
        self, values: Tensor, names: pa.StringArray, ranks: Ranks, backbone: Backbone | None
    ) -> None:
        from hilltop.inputs.backbone import write_features

        if not ranks.first:
            return
        folder = None if backbone is None else self.images
        write_features(self.out, values, names, backbone=backbone, folder=folder)
        numbers = pluralize(values.shape[1], "number", "numbers")
        print(f"{self.out}: {pluralize(len(names), 'image', 'images')}, {numbers} each")

    def _shards(self) -> FeatureShards:
        """The images of the folder, in shards that are kept beside the file to write."""
        from hilltop.inputs.backbone import Backbone, check_weights
        from hilltop.inputs.image_files import list_images
        from hilltop.inputs.matching import labelled_inputs
        from hilltop.inputs.shards import FeatureShards

        chosen = list_images(self.images)
        if self.labels is not None:
            allowed = self.allow_missing
            chosen = labelled_inputs(self.labels, self.images, allow_missing=allowed, say=say)
        weights = check_weights(self.weights)
        if Path(weights).is_file():
            weights = str(Path(weights).resolve())  # the file is asked for from other folders
        backbone = Backbone(self.backbone, weights, self.image_size).with_digest()
        parts = self.out.parent / f"{self.out.stem}.shards"
        return FeatureShards(self.images, chosen, backbone, parts, self.shard)
