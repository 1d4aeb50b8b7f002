"""Features of very many images: in shards that any process computes, and that outlive a kill."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from hilltop.data.array_files import read_npz
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write, holding_alone, replacing
from hilltop.errors import DataError
from hilltop.inputs.backbone import BATCH, Backbone, FeatureExtractor, write_features
from hilltop.inputs.onnx_backbone import LEAST_IMAGES
from hilltop.inputs.ranks import Parts, Ranks
from hilltop.inputs.streams import ImageStream

_ABOUT = "about.json"
SHARD_IMAGES = 64 * BATCH
"""Images in a shard: whole batches, so that every image meets the same ones as in one process."""


@dataclass(frozen=True)
class FeatureShards:
    """The features of a list of images, shard by shard, in a folder that all machines see.

    Each shard is one file, there completely or not at all, and depends on no other: map
    :meth:`compute` over ``range(shards.count)`` with whatever spreads work over machines, then
    :meth:`merge`.

    Attributes:
        folder: Where the images are.
        images: Image ids.
        backbone: The network that looks at them.
        parts: The folder of the shards.
        size: Images in a shard.
        streams: Images in tar files or behind an address, a shard for each; instead of ``images``.

    Example:
        >>> shards = FeatureShards(
        ...     Path("photos"),
        ...     pa.array([f"{n}.jpg" for n in range(10)]),
        ...     Backbone("resnet50", "timm", 224),
        ...     Path("parts"),
        ...     size=4,
        ... )
        >>> shards.count, shards.images_of(2).to_pylist()
        (3, ['8.jpg', '9.jpg'])
    """

    folder: Path
    images: pa.StringArray
    backbone: Backbone
    parts: Path
    size: int = SHARD_IMAGES
    streams: tuple[ImageStream, ...] = ()

    @property
    def count(self) -> int:
        """Number of shards."""
        return len(self.streams) or -(-len(self.images) // self.size)

    def images_of(self, number: int) -> pa.StringArray:
        """Return the ids of a shard."""
        return self.images.slice(number * self.size, self.size)

    def file(self, number: int) -> Path:
        """Return where a shard is kept."""
        return self.parts / f"shard-{number:06}.npz"

    @contextlib.contextmanager
    def held(self, ranks: Ranks) -> Iterator[None]:
        """Keep the folder, which is made if need be, for the processes of one command.

        Raises:
            DataError: Another command works in it.
        """
        if not ranks.first:
            yield
            return
        self.parts.mkdir(parents=True, exist_ok=True)
        busy = "another command computes these features. Wait for it, or choose another --out."
        with holding_alone(self.parts, busy):
            yield

    def begin(self) -> None:
        """Make the folder; shards in it that belong to something else are removed."""
        about, described = self.parts / _ABOUT, json.dumps(self._described(), indent=2)
        if not about.is_file() or about.read_bytes() != described.encode():
            check_shard_folder(self.parts)
            self.parts.mkdir(parents=True, exist_ok=True)
            # The folder itself stays: it is what this command holds.
            for entry in self.parts.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            atomic_write(about, described)

    def compute(
        self,
        number: int,
        extractor: FeatureExtractor,
        *,
        workers: int,
        skip_broken: bool,
        say: Callable[[str], None],
    ) -> Path:
        """Compute a shard, unless it is there already, and return its file."""
        path = self.file(number)
        options: dict[str, Any] = {"workers": workers, "skip_broken": skip_broken, "say": say}
        if not path.is_file():
            if self.streams:
                values, names = extractor.over(self.streams[number], **options)
            else:
                values, names = extractor(self.folder, self.images_of(number), **options)
            write_features(path, values, names)
        return path

    def merge(self) -> tuple[Tensor, pa.StringArray]:
        """Return the features of all shards, and the ids of their rows."""
        names, values = zip(*self._parts(), strict=True)
        return torch.from_numpy(np.concatenate(values)), self._joined(names)

    def write_npy(self, path: Path) -> tuple[int, int]:
        """Write a ``.npy`` file, ids beside it, with one shard in memory; return its shape."""
        names, shapes = zip(*((ids, values.shape) for ids, values in self._parts()), strict=True)
        ids, shape = self._joined(names), (sum(one[0] for one in shapes), shapes[0][1])
        with replacing(path.with_suffix(".ids.npy")) as beside, replacing(path) as temporary:
            whole = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.float32, shape=shape)
            first = 0
            for _, values in self._parts():
                whole[first : first + len(values)] = values
                first += len(values)
            whole.flush()
            np.save(beside, np.array(ids.to_pylist(), dtype=str))
        return shape

    def _joined(self, names: Iterable[pa.StringArray]) -> pa.StringArray:
        """All ids, which must differ."""
        ids = pa.concat_arrays(list(names))
        if len(ids.unique()) < len(ids):
            counts = ids.value_counts()
            twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")[0].as_py()
            raise DataError(
                f"Several images are called {twice!r}. Name them differently, or compute features"
                " of each tar file on its own."
            )
        return ids

    def _parts(self) -> Iterator[tuple[pa.StringArray, npt.NDArray[Any]]]:
        """Ids and features of every shard that has any."""
        some = False
        for number in range(self.count):
            if not self.file(number).is_file():
                raise data_error(self.file(number), "this shard was not computed yet.")
            ids, values = read_npz(self.file(number), ("ids", "X"))
            if len(ids):
                some = True
                yield pa.array(ids.astype(str), pa.string()), values
        if not some:
            where = self.streams[0].address if self.streams else self.folder
            raise DataError(f"{where}: no image here could be read. Is this the right folder?")

    def discard(self) -> None:
        """Remove the shards."""
        shutil.rmtree(self.parts)

    def _described(self) -> dict[str, object]:
        ids = hashlib.blake2b("\n".join(self.images.to_pylist()).encode(), digest_size=16)
        settings = {**self.backbone.as_dict(), "images": str(self.folder.resolve())}
        if self.streams:
            settings["images"] = [f"{one.address} {len(one.names)}" for one in self.streams]
        return {**settings, "ids": ids.hexdigest(), "size": self.size}


def check_shard_folder(parts: Path) -> None:
    """Raise if a folder for parts of the work holds anything else, which must not be removed."""
    kept = ("shard-*.npz", "heads-*.np[yz]", "rank-*.npz", _ABOUT, ".*.writing")
    others = [
        entry.name
        for entry in (parts.iterdir() if parts.is_dir() else ())
        if not any(entry.match(pattern) for pattern in kept)
    ]
    if others:
        raise data_error(
            parts,
            f"this folder is needed for parts of the work, but holds {min(others)!r}."
            " Move it away, or choose another --out.",
        )


def shared_features(
    shards: FeatureShards,
    ranks: Ranks,
    *,
    workers: int,
    skip_broken: bool,
    say: Callable[[str], None],
) -> tuple[Tensor, pa.StringArray]:
    """Compute what is missing of the shards, in all processes, and return the whole in each."""
    compute_shards(shards, ranks, workers=workers, skip_broken=skip_broken, say=say)
    whole = shards.merge()
    ranks.wait()  # or one process would discard what another still reads
    return whole


def compute_shards(
    shards: FeatureShards,
    ranks: Ranks,
    *,
    workers: int,
    skip_broken: bool,
    say: Callable[[str], None],
) -> None:
    """Compute what is missing of the shards, in all processes.

    The shards stay, until the caller has put the result to use and discards them; it holds them
    meanwhile, see :meth:`FeatureShards.held`.
    """
    if ranks.first:
        shards.begin()
    ranks.wait()
    made: list[FeatureExtractor] = []  # by each process that computes something

    def compute(number: int, _: Path) -> None:
        total = len(shards.images) + sum(len(one.names) or LEAST_IMAGES for one in shards.streams)
        extractor = made[0] if made else FeatureExtractor(shards.backbone, images=total)
        made[:] = [extractor]
        shards.compute(number, extractor, workers=workers, skip_broken=skip_broken, say=say)

    names = [shards.file(number).name for number in range(shards.count)]
    Parts(shards.parts, ranks).write(names, compute, "features")
