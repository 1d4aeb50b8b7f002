"""``features``: what a pretrained network sees in images, for every command that trains on it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from hilltop.checks import pluralize
from hilltop.cli.outputs import check_written
from hilltop.cli.parser import Device, Force, Out
from hilltop.errors import ArgumentError
from hilltop.progress import say

if TYPE_CHECKING:
    from hilltop.inputs.ranks import Ranks
    from hilltop.inputs.shards import FeatureShards

_SPREAD = 64
"""Every so manieth image comes first in a dry run."""


@dataclass(frozen=True)
class Features:
    """Compute features of all images in a folder once, for train, advise, audit and compare.

    It is done in shards, which torchrun shares out over processes and machines; a command that was
    stopped goes on where it was.
    Given a label file that holds features too, such as ARFF or LIBSVM, take them from it.

    Example: hilltop features photos --weights timm --out features.npz
    """

    images: str
    """Folder with the images; those in folders inside it count, too. Or tar files, as
    photos-{000..009}.tar or 'photos-*.tar'; an address that fsspec opens, as s3://bucket/photos;
    a file with features."""
    _: KW_ONLY
    out: Out
    """The .npz file to write: ids, the paths of the images in the folder, and X, a row for each. Or
    a .npy file, ids beside it, which need not fit into memory."""
    backbone: str = "resnet50"
    """timm name of the network."""
    weights: str = "none"
    """Its weights, which it needs: timm (asks the hub once), a file, or an installed package."""
    image_size: int = 224
    """Images are squashed to this many pixels a side."""
    workers: int = 2
    """Processes that decode images; threads, where they are in tar files or behind an address."""
    labels: Path | None = None
    """Compute features of the images in this label file alone; not of tar files and addresses."""
    allow_missing: bool = False
    """With --labels: go on without rows that have no image."""
    skip_broken: bool = False
    """Leave out images that cannot be read, and list them, instead of stopping."""
    device: Device = "auto"
    dry_run: bool = False
    """Say how much time, memory and disk it will take, measured on a part; write nothing."""
    engine: Literal["torchrun", "ray"] = "torchrun"
    """What shares the work out: torchrun, or Ray (the cluster of RAY_ADDRESS, or this machine)."""
    force: Force = False
    shard: int = 4096
    """Images in a shard, a multiple of 64; what a command that was stopped may have to do again.
    A tar file is one shard."""
    needs: ClassVar = {"labels": ("allow_missing",)}

    def run(self) -> dict[str, Any]:
        """Compute and write."""
        import torch

        from hilltop.inputs.backbone import write_features
        from hilltop.inputs.features import read_features
        from hilltop.inputs.ranks import engine_ranks
        from hilltop.inputs.streams import is_stream

        if self.out.suffix not in (".npz", ".npy"):
            raise ArgumentError(f"--out must end in .npz or .npy, but got {self.out.name!r}.")
        beside = [self.out.with_suffix(".ids.npy")] if self.out.suffix == ".npy" else []
        check_written(self, self.out, *beside)
        if self.shard < 64 or self.shard % 64:
            raise ArgumentError(f"--shard must be a multiple of 64, but got {self.shard}.")
        if self.dry_run:
            return self._dry_run()
        with engine_ranks(self.engine) as ranks:
            if Path(self.images).is_file() and not is_stream(self.images):
                if beside:
                    raise ArgumentError("Features of a label file are written as .npz.")
                found = read_features(Path(self.images))
                shape = found.values.shape
                if ranks.first:
                    write_features(self.out, torch.from_numpy(found.values), found.images)
            else:
                shape = self._computed(self._shards(), ranks)
        images, numbers = shape
        if ranks.first:
            counts = pluralize(images, "image"), pluralize(numbers, "number")
            print(f"{self.out}: {counts[0]}, {counts[1]} each")
        return {"out": self.out, "images": images, "numbers": numbers}

    def _dry_run(self) -> dict[str, Any]:
        """Say what it will take."""
        from hilltop.cli import dry_run

        shards = self._shards()
        total = len(shards.images)
        if shards.streams:  # tar files do not say how many images they hold
            first = shards.streams[0]
            total = sum(1 for _ in first.contents()) * len(shards.streams)

        def make(images: int, folder: Path) -> Features:
            photos = folder / "photos"
            contents = _contents(shards)
            for name, content in itertools.islice(contents, images):
                (photos / name).parent.mkdir(parents=True, exist_ok=True)
                (photos / name).write_bytes(content())
            same = replace(self, labels=None, dry_run=False, engine="torchrun")
            return replace(same, images=str(photos), out=folder / self.out.name)

        cost, images = dry_run.cost_of_images(make, total, few=True)
        return dry_run.tell(cost, self.out, total=total, measured=images)

    def _computed(self, shards: FeatureShards, ranks: Ranks) -> tuple[int, ...]:
        """Compute, and write in the first process; return how many rows and numbers there are."""
        from hilltop.inputs.backbone import write_features
        from hilltop.inputs.shards import compute_shards

        shape: tuple[int, ...] = (0, 0)
        options: dict[str, Any] = {"workers": self.workers, "skip_broken": self.skip_broken}
        with shards.held(ranks):
            compute_shards(shards, ranks, say=say, **options)
            if ranks.first and self.out.suffix == ".npy":
                shape = shards.write_npy(self.out)
            elif ranks.first:
                values, names = shards.merge()
                folder = None if shards.streams else shards.folder
                write_features(self.out, values, names, backbone=shards.backbone, folder=folder)
                shape = tuple(values.shape)
            if ranks.first:
                shards.discard()
        return shape

    def _shards(self) -> FeatureShards:
        """The images, in shards that are kept beside the file to write."""
        import pyarrow as pa

        from hilltop.inputs.backbone import Backbone, check_weights
        from hilltop.inputs.image_files import list_images
        from hilltop.inputs.matching import labelled_inputs
        from hilltop.inputs.shards import FeatureShards
        from hilltop.inputs.streams import ImageStream, image_streams, is_stream

        folder, streams = Path(self.images), tuple[ImageStream, ...]()
        if is_stream(self.images):
            if self.labels is not None:
                raise ArgumentError("--labels needs a folder of images; take the features of all.")
            folder, chosen = Path(), pa.array([], pa.string())
            streams = tuple(image_streams(self.images, self.shard))
        elif self.labels is not None:
            allowed = self.allow_missing
            chosen = labelled_inputs(self.labels, folder, allow_missing=allowed, say=say)
        else:
            chosen = list_images(folder)
        weights = check_weights(self.weights)
        if Path(weights).is_file():
            weights = str(Path(weights).resolve())  # the file is asked for from other folders
        backbone = Backbone(self.backbone, weights, self.image_size).with_digest()
        parts = self.out.resolve().parent / f"{self.out.stem}.shards"
        return FeatureShards(folder.resolve(), chosen, backbone, parts, self.shard, streams)


def _contents(shards: FeatureShards) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Names of images from all over a folder, or from the first tar file on, and their bytes."""
    if shards.streams:
        yield from itertools.chain.from_iterable(one.contents() for one in shards.streams)
        return
    from hilltop.inputs.image_files import find_images

    names = find_images(shards.folder, shards.images).drop_null().to_pylist()
    for first in range(_SPREAD):
        for name in names[first::_SPREAD]:
            yield name, (shards.folder / name).read_bytes
