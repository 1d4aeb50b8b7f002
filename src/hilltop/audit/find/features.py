"""Features of the audited images, kept in the folder of the audit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from hilltop.checks import pluralize
from hilltop.data.array_files import read_npz_texts
from hilltop.inputs.backbone import Backbone, write_features
from hilltop.inputs.features import read_features
from hilltop.inputs.ranks import Ranks
from hilltop.inputs.shards import FeatureShards, shared_features


def cached_features(
    folder: Path,
    images: pa.StringArray,
    backbone: Backbone,
    out: Path,
    *,
    workers: int,
    skip_broken: bool,
    say: Callable[[str], None],
    ranks: Ranks = Ranks(),  # noqa: B008 (it cannot be changed)
) -> tuple[Tensor, pa.StringArray]:
    """Return one row of features for each image that could be read, and the names of these.

    They are taken from ``features.npz`` in the folder of the audit, if it was written by the same
    backbone for these images, and written there otherwise. Images that were left out before are
    left out again. Several processes share the images, and each gets all features.
    """
    file, left_out = out / "features.npz", pa.array([], pa.string())
    if file.is_file():
        kept = read_features(file)
        if (kept.backbone, kept.images_folder) == (backbone.as_dict(), str(folder.resolve())):
            if skip_broken:
                told = json.loads(read_npz_texts(file, ("left_out",)).get("left_out", "[]"))
                left_out = pa.array(told, pa.string())
            wanted = images.filter(pc.invert(pc.is_in(images, left_out)))
            rows = pc.index_in(wanted, value_set=kept.images)
            if len(wanted) and not rows.null_count:
                say(f"features: {pluralize(len(wanted), 'image', 'images')}, taken from {file}")
                return torch.from_numpy(kept.values[rows.to_numpy().astype(np.int64)]), wanted
    shards = FeatureShards(folder, images, backbone, out / "parts")
    with shards.held(ranks):
        values, names = shared_features(
            shards, ranks, workers=workers, skip_broken=skip_broken, say=say
        )
        if ranks.first:
            left_out = images.filter(pc.invert(pc.is_in(images, names)))
            told = json.dumps(left_out.to_pylist())
            write_features(file, values, names, backbone=backbone, folder=folder, left_out=told)
            shards.discard()
    return values, names
