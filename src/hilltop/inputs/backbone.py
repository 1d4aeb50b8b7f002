"""Features of images from a frozen backbone."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn

from hilltop.data.data_errors import data_error
from hilltop.data.files import replacing
from hilltop.errors import AmbiguousInputError, DataError, HilltopWarning
from hilltop.inputs.onnx_backbone import LEAST_IMAGES, onnx_backbone
from hilltop.inputs.streams import ImageStream
from hilltop.progress import ProgressLog, say

BATCH = 64
"""Images that the backbone sees at once."""


@dataclass(frozen=True)
class Backbone:
    """Which network looks at the images.

    Attributes:
        name: Name that timm knows.
        weights: ``timm`` for its pretrained weights, a file, or an installed package with one.
        image_size: Images are squashed to this many pixels a side.
        digest: Checksum of the file of weights, where it is known: another file under the same name
            gives features that mean something else.
    """

    name: str
    weights: str
    image_size: int
    digest: str | None = None

    def with_digest(self) -> Backbone:
        """Return the backbone with the checksum of its weights; as it is where they are no file."""
        from hilltop.models.weights import find_weights

        if self.weights == "timm":  # also the name of a package, which holds none
            return self
        file = find_weights(self.weights)
        if not file.is_file():
            return self
        with file.open("rb") as content:
            return replace(self, digest=hashlib.file_digest(content, "sha256").hexdigest()[:32])

    def as_dict(self) -> dict[str, Any]:
        """Return what is known of it, for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @staticmethod
    def from_json(path: Path, text: str) -> Backbone:
        """Read what :func:`write_features` wrote of a backbone; the path is for messages."""
        try:
            found = Backbone(**json.loads(text))
        except (ValueError, TypeError, RecursionError):
            raise data_error(path, "what it says of its backbone cannot be read.") from None
        kinds = (str, str, int, str | None)
        if not all(map(isinstance, asdict(found).values(), kinds)) or found.image_size < 1:
            raise data_error(path, "what it says of its backbone cannot be read.")
        return found


def check_weights(weights: str) -> str:
    """Return the weights, unless there are none."""
    if weights == "none":
        raise AmbiguousInputError(
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
        say: Takes a sentence for the user.
    """
    values, names = FeatureExtractor(backbone, images=len(images))(
        folder, images, workers=workers, skip_broken=skip_broken, say=say
    )
    if not len(names):
        raise data_error(folder, "no image here could be read. Is this the right folder?")
    return values, names


class FeatureExtractor:
    """A backbone, ready to look at images: on the GPU of this process, if there is one.

    On a CPU, the features of many images are computed by ONNX Runtime where it is installed and
    gives the same ones.
    """

    def __init__(self, backbone: Backbone, *, images: int) -> None:
        """Load the weights, for a number of images."""
        self.image_size = backbone.image_size
        self.device = torch.device("cpu")
        if torch.cuda.is_available():
            own = int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count()
            self.device = torch.device("cuda", own)
        known = backbone.with_digest()
        if backbone.digest not in (None, known.digest):
            raise DataError(
                f"{backbone.weights}: these are not the weights that the features were made with."
                " Put those back, or compute the features anew and train on them."
            )
        if self.device.type == "cpu" and images >= LEAST_IMAGES:
            key = f"{backbone.name} {known.digest}" if known.digest is not None else ""
            with torch.inference_mode():
                self.model: Callable[[Tensor], Tensor] = onnx_backbone(
                    lambda: _frozen(backbone), key, self.image_size, say
                )
        else:
            self.model = _frozen(backbone).to(self.device)

    def __call__(
        self,
        folder: Path,
        images: pa.StringArray,
        *,
        workers: int,
        skip_broken: bool,
        say: Callable[[str], None],
    ) -> tuple[Tensor, pa.StringArray]:
        """Return features and names as :func:`extract_features` does; there may be none."""
        from hilltop.inputs.images import ImageInputs  # needs torchvision, which features do not

        inputs = ImageInputs(
            folder,
            images,
            size=self.image_size,
            augment="none",
            seed=0,
            workers=workers,
            skip_broken=skip_broken,
        )
        total = len(images)
        plan = [range(first, min(first + BATCH, total)) for first in range(0, total, BATCH)]
        rows, values = [np.empty(0, dtype=np.int64)], [torch.empty(0)]
        with torch.inference_mode(), ProgressLog("features", total, "images") as progress:
            for number, (read, pixels) in enumerate(inputs.loader(plan, None), start=1):
                if len(read):
                    rows.append(read)
                    values.append(self.model(pixels.to(self.device)).float().cpu())
                progress.update(min(number * BATCH, total))
        for name, reason in inputs.broken:
            say(f"left out: {reason}" if name in reason else f"left out: {name}: {reason}")
        return torch.cat(values).clone(), images.take(pa.array(np.concatenate(rows)))

    @torch.inference_mode()
    def over(
        self,
        stream: ImageStream,
        *,
        workers: int,
        skip_broken: bool,
        say: Callable[[str], None],
    ) -> tuple[Tensor, pa.StringArray]:
        """Return features and names of the images of a stream, decoded by so many threads."""
        from hilltop.inputs.transforms import model_input

        values, names = [torch.empty(0)], list[str]()
        images = stream.decoded(self.image_size, workers)
        while batch := list(itertools.islice(images, BATCH)):
            read = [(name, pixels) for name, pixels in batch if isinstance(pixels, Tensor)]
            for _, reason in batch:
                if isinstance(reason, str) and not skip_broken:
                    raise DataError(
                        f"{reason.rstrip('.')}; replace the file, or leave out such images with"
                        " skip_broken (--skip-broken)."
                    )
                if isinstance(reason, str):
                    say(f"left out: {reason}")
            if read:
                pixels = model_input(torch.stack([one for _, one in read]))
                values.append(self.model(pixels.to(self.device)).float().cpu())
                names += [name for name, _ in read]
        return torch.cat(values).clone(), pa.array(names, pa.string())


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


def write_features(
    path: Path,
    values: Tensor,
    images: pa.StringArray,
    *,
    backbone: Backbone | None = None,
    folder: Path | None = None,
    left_out: str | None = None,
) -> None:
    """Write features as :func:`hilltop.inputs.features.read_features` reads them.

    With the network that made them a run on these features scores images, too; with the folder of
    the images its report shows some; ``left_out`` names images that could not be read, as JSON.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {"ids": np.array(images.to_pylist(), dtype=str), "X": values.numpy()}
    if backbone is not None:
        arrays["backbone"] = np.array(json.dumps(backbone.as_dict()))
    if folder is not None:
        arrays["images"] = np.array(str(folder.resolve()))
    if left_out is not None:
        arrays["left_out"] = np.array(left_out)
    with replacing(path) as temporary:
        np.savez(temporary, **arrays)
