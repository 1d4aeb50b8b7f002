"""Features of images from a frozen backbone: taken once, kept in the folder of the audit."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn

from hilltop.audit.folder import write_whole
from hilltop.errors import HilltopWarning, OptionNeeded
from hilltop.training.features import read_features

_BATCH = 64


@dataclass(frozen=True)
class Backbone:
    """Which network looks at the images.

    Attributes:
        name: Name that timm knows.
        weights: ``timm`` for its pretrained weights, or a local file.
        image_size: Images are squashed to this many pixels a side.
    """

    name: str
    weights: str
    image_size: int


def check_weights(weights: str) -> str:
    """Return the weights, unless there are none."""
    if weights == "none":
        raise OptionNeeded(
            "Features of images need a trained backbone, since one with random weights tells"
            " nothing apart. Pass --weights timm (fetched once from the hub) or --weights FILE,"
            " or give --features or --scores instead of --images."
        )
    return weights


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
        found = pa.compute.index_in(images, value_set=kept.images)
        if not found.null_count:
            say(f"features: {len(kept.images):,} images, taken from {file}")
            rows = found.to_numpy(zero_copy_only=False).astype(np.int64)
            return torch.from_numpy(kept.values[rows]), images
    values, names = _extract(folder, images, backbone, workers, skip_broken, say)
    out.mkdir(parents=True, exist_ok=True)
    about.unlink(missing_ok=True)  # a crash between the two files must not pair old with new
    np.savez(file, ids=np.array(names.to_pylist(), dtype=str), X=values.numpy())
    write_whole(about, described.encode())
    return values, names


def _extract(
    folder: Path,
    images: pa.StringArray,
    backbone: Backbone,
    workers: int,
    skip_broken: bool,
    say: Callable[[str], None],
) -> tuple[Tensor, pa.StringArray]:
    from hilltop.data.images import ImageInputs  # needs torchvision, which features do not

    inputs = ImageInputs(
        folder,
        images,
        size=backbone.image_size,
        augment="none",
        seed=0,
        workers=workers,
        skip_broken=skip_broken,
    )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = _frozen(backbone).to(device)
    plan = [range(first, min(first + _BATCH, len(images))) for first in range(0, len(images), 64)]
    rows, values = [], []
    with torch.inference_mode():
        for number, (read, pixels) in enumerate(inputs.loader(plan, None), start=1):
            if len(read):
                rows.append(read)
                values.append(model(pixels.to(device)).float().cpu())
            if number % 20 == 0 or number == len(plan):
                say(f"features: {min(number * _BATCH, len(images)):,} of {len(images):,} images")
    for name, reason in inputs.broken:
        say(f"left out: {name}: {reason}")
    order = np.concatenate(rows)
    return torch.cat(values).clone(), images.take(pa.array(order))


def _frozen(backbone: Backbone) -> nn.Module:
    """The backbone without its classifier."""
    from hilltop.models import build_image_model

    with warnings.catch_warnings():
        # That the classifier starts anew does not matter where none is used.
        warnings.simplefilter("ignore", HilltopWarning)
        model = build_image_model(
            backbone.name,
            1,
            weights=backbone.weights,
            image_size=backbone.image_size,
            normalise=True,
        )
    model.backbone.reset_classifier(0)  # type: ignore[operator, union-attr]
    return model.eval()
