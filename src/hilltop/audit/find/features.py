"""Features of the audited images, kept in the folder of the audit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from hilltop.checks import pluralize
from hilltop.data.files import atomic_write
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
    file, about = out / "features.npz", out / "features.json"
    described = {**backbone.as_dict(), "images": str(folder.resolve())}
    earlier = _described_before(about)
    before = pa.array(earlier.pop("left_out", []), pa.string())
    if earlier == described and file.is_file():
        wanted = images.filter(pc.invert(pc.is_in(images, before))) if skip_broken else images
        kept = read_features(file)
        found = pc.index_in(wanted, value_set=kept.images)
        if len(wanted) and not found.null_count:
            say(f"features: {pluralize(len(wanted), 'image', 'images')}, taken from {file}")
            rows = found.to_numpy(zero_copy_only=False).astype(np.int64)
            return torch.from_numpy(kept.values[rows]), wanted
    shards = FeatureShards(folder, images, backbone, out / "parts")
    with shards.held(ranks):
        values, names = shared_features(
            shards, ranks, workers=workers, skip_broken=skip_broken, say=say
        )
        if ranks.first:
            about.unlink(missing_ok=True)  # a crash between two files must not pair old with new
            write_features(file, values, names)
            left_out = images.filter(pc.invert(pc.is_in(images, names)))
            told = {**described, "left_out": left_out.to_pylist()}
            atomic_write(about, json.dumps(told, indent=2))
            shards.discard()
    return values, names


def _described_before(about: Path) -> dict[str, Any]:
    """What the features in the folder were computed from; nothing if nobody can tell."""
    try:
        content = json.loads(about.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    sound = isinstance(content, dict) and all(
        isinstance(name, str) for name in content.get("left_out", [])
    )
    return content if sound else {}
