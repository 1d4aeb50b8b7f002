"""Features of the audited images, kept in the folder of the audit."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from hilltop.backbone import Backbone, extract_features, write_features
from hilltop.training.features import read_features
from hilltop.whole_files import write_whole


def cached_features(
    folder: Path,
    images: pa.StringArray,
    backbone: Backbone,
    out: Path,
    *,
    workers: int,
    skip_broken: bool,
    say: Callable[[str], None],
) -> tuple[Tensor, pa.StringArray]:
    """Return one row of features for each image that could be read, and the names of these.

    They are taken from ``features.npz`` in the folder of the audit, if it was written by the same
    backbone for these images, and written there otherwise.
    """
    file, about = out / "features.npz", out / "features.json"
    described = json.dumps({**asdict(backbone), "images": str(folder.resolve())}, indent=2)
    if file.is_file() and about.is_file() and about.read_text(encoding="utf-8") == described:
        kept = read_features(file)
        found = pc.index_in(images, value_set=kept.images)
        if not found.null_count:
            say(f"features: {len(kept.images):,} images, taken from {file}")
            rows = found.to_numpy(zero_copy_only=False).astype(np.int64)
            return torch.from_numpy(kept.values[rows]), images
    values, names = extract_features(
        folder, images, backbone, workers=workers, skip_broken=skip_broken, say=say
    )
    about.unlink(missing_ok=True)  # a crash between the two files must not pair old with new
    write_features(file, values, names)
    write_whole(about, described)
    return values, names
