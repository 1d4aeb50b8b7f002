"""Features of images from a frozen backbone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn

from hilltop.data.data_errors import data_error
from hilltop.errors import HilltopWarning, OptionNeeded

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
            " nothing apart. Pass --weights timm (fetched once from the hub) or --weights FILE."
        )
    return weights


def extract_features(
    folder: Path,
    images: pa.StringArray,
    backbone: Backbone,
    *,
    workers: int,
    skip_broken: bool,
    say: Callable[[str], None],
) -> tuple[Tensor, pa.StringArray]:
    """Return one row of features for each image that could be read, and the names of these.

    Args:
        folder: Where the images are.
        images: Image ids.
        backbone: The network.
        workers: Processes that decode images.
        skip_broken: Leave out images that cannot be read instead of raising.
        say: Takes a sentence on the progress.
    """
    from hilltop.inputs.images import ImageInputs  # needs torchvision, which features do not

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
    plan = [
        range(first, min(first + _BATCH, len(images))) for first in range(0, len(images), _BATCH)
    ]
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
    if not rows:
        raise data_error(folder, "no image here could be read. Is this the right folder?")
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


def write_features(path: Path, values: Tensor, images: pa.StringArray) -> None:
    """Write features as :func:`hilltop.inputs.features.read_features` reads them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.writing.npz")
    np.savez(temporary, ids=np.array(images.to_pylist(), dtype=str), X=values.numpy())
    temporary.replace(path)
