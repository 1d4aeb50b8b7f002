"""Training from a block on: what the frozen blocks below make of every image, computed once.

The outputs lie in ``outputs`` beside the run folders, one folder for each set of weights, block,
size and list of images, so that runs share them. What was stopped goes on.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from hilltop.data.array_files import read_npy
from hilltop.data.data_errors import data_error
from hilltop.data.files import atomic_write, replacing
from hilltop.data.small_files import read_json
from hilltop.inputs import ImageInputs, OutputInputs, Window
from hilltop.inputs.transforms import uncropped_size
from hilltop.models import classifier_parameters, cut_below, outputs_below
from hilltop.models.images import backbone_of
from hilltop.progress import ProgressLog, say
from hilltop.training.distributed import all_gather_object, place_in_world

Broken = list[tuple[int, str, str]]

MOST_IMAGES = 200_000
"""Images whose features are asked about missing labels before a network is trained on them."""

_ANEW = "Delete its folder, and the outputs are computed anew."
_BATCH = 64
_BATCHES_KEPT = 20  # after which what is there is written down


@dataclass(frozen=True)
class FrozenBlocks:
    """The blocks below one of a model, and where their outputs are kept.

    Attributes:
        model: The whole model.
        block: Name of the first block that learns.
        folder: Where outputs are kept.
    """

    model: nn.Module
    block: str
    folder: Path

    def inputs_from(self, images: ImageInputs, *, crop: bool) -> OutputInputs:
        """Compute the outputs for all images, or read those that are there.

        Args:
            images: The images.
            crop: Whether to serve them cropped and mirrored while training, where outputs have a
                height and a width.
        """
        window = self._window(images.size) if crop else None
        if window is not None:
            images = images.resized(uncropped_size(images.size))
        path = self.folder / self._key(images)
        shape = (len(images.images), *self._outputs(_blank(images.size)).shape[1:])
        return OutputInputs(*self._computed(path, images, shape), window=window, seed=images.seed)

    def _window(self, size: int) -> Window | None:
        """What a model sees of the outputs of a larger image; None if it takes no other size."""
        seen = self._outputs(_blank(size)).shape
        try:
            larger = self._outputs(_blank(uncropped_size(size))).shape
        except (AssertionError, RuntimeError, ValueError):  # a backbone that is built for one size
            return None
        axes = [axis for axis in range(1, len(seen)) if larger[axis] != seen[axis]]
        if len(seen) != len(larger) or len(axes) != 2:
            return None
        height, width = axes
        return Window((height, width), (seen[height], seen[width]))

    def _computed(
        self, path: Path, images: ImageInputs, shape: tuple[int, ...]
    ) -> tuple[npt.NDArray[Any], Broken]:
        """The outputs on disk, and the images that could not be read."""
        rank, world = place_in_world()
        file, done = path / "outputs.npy", path / "done.json"
        if not done.is_file():
            if rank == 0 and not file.is_file():
                path.mkdir(parents=True, exist_ok=True)
                _reserve(file, shape)
            all_gather_object([])  # nobody writes before the file is there
            rows = range(shape[0] * rank // world, shape[0] * (rank + 1) // world)
            listed = all_gather_object(self._compute(path, images, rows))
            if rank == 0:
                atomic_write(done, json.dumps(sorted(set(listed))))
                every = f"{shape[0]:,} of {shape[0]:,} images"
                say(f"outputs below {self.block}: {every}, kept in {path}")
            all_gather_object([])
        broken = [(row, name, reason) for row, name, reason in read_json(done, _ANEW)]
        return read_npy(file, mapped=True), broken

    def _compute(self, path: Path, images: ImageInputs, rows: range) -> Broken:
        """Write the outputs of some rows, from where it was stopped, and list what is broken."""
        read_npy(path / "outputs.npy", mapped=True)  # says so if it is cut or damaged
        values = np.lib.format.open_memmap(path / "outputs.npy", "r+")
        progress = path / f"rows-{rows.start}-{rows.stop}.json"
        start, broken = rows.start, dict[int, tuple[int, str, str]]()
        if progress.is_file():
            known = read_json(progress, _ANEW)
            start, broken = known["next"], {row: (row, *why) for row, *why in known["broken"]}
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model.to(device)
        plan = [range(at, min(at + _BATCH, rows.stop)) for at in range(start, rows.stop, _BATCH)]
        names = dict(zip(images.images.to_pylist(), range(len(images.images)), strict=True))
        what = f"outputs below {self.block} ({math.ceil(values.nbytes / 2**20):,} MB on disk)"
        with ProgressLog(what, len(rows), "images", start=start - rows.start) as said:
            for number, (read, pixels) in enumerate(images.loader(plan, None), start=1):
                if len(read):
                    values[read] = self._small(self._outputs(pixels.to(device)), path)
                said.update(plan[number - 1].stop - rows.start)
                if number % _BATCHES_KEPT == 0 or number == len(plan):
                    values.flush()
                    broken |= {names[name]: (names[name], name, why) for name, why in images.broken}
                    state = {"next": plan[number - 1].stop, "broken": list(broken.values())}
                    atomic_write(progress, json.dumps(state))
        self.model.to("cpu")
        return list(broken.values())

    def _small(self, outputs: Tensor, path: Path) -> npt.NDArray[np.float16]:
        """Half precision: the weights above see fewer than four digits of them anyway."""
        small = outputs.cpu().numpy().astype(np.float16)
        if not np.isfinite(small).all():
            raise data_error(
                path,
                f"outputs below {self.block!r} exceed the range of half precision; train from"
                " another block.",
            )
        return small

    @torch.no_grad()
    def _outputs(self, pixels: Tensor) -> Tensor:
        self.model.eval()
        return outputs_below(self.model, self.block, pixels)

    def _key(self, images: ImageInputs) -> str:
        """A name for weights, block, size and images; another one if any of these changes."""
        made = hashlib.sha256()
        own = {id(parameter) for parameter in classifier_parameters(self.model)}
        for name, tensor in self.model.state_dict(keep_vars=True).items():
            if id(tensor) not in own:
                made.update(name.encode())
                made.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        made.update(json.dumps([self.block, images.size, images.fingerprint()]).encode())
        return made.hexdigest()[:16]


def train_from(
    model: nn.Module,
    block: str,
    folder: Path,
    train: ImageInputs,
    val: ImageInputs,
    *,
    crop: bool,
) -> tuple[OutputInputs, OutputInputs]:
    """Freeze what lies below a block, and return what the model sees instead of images from now on.

    Args:
        model: An image model; from here on it takes outputs of the frozen blocks.
        block: Name of the first block that learns.
        folder: Where outputs are kept.
        train: Images to learn from.
        val: Images to judge by.
        crop: Whether to crop and mirror while training.
    """
    size = train.size
    cut_below(copy.deepcopy(model), block, size)  # raises before anything takes long
    frozen = FrozenBlocks(model, block, folder)
    made = frozen.inputs_from(train, crop=crop), frozen.inputs_from(val, crop=False)
    cut_below(model, block, size)
    if place_in_world()[0] == 0:
        learning = sum(parameter.requires_grad for parameter in model.parameters())
        say(_said(block, learning, crop=crop, cropped=made[0].window is not None))
    return made


@torch.no_grad()
def classifier_inputs(model: nn.Module, inputs: OutputInputs) -> Tensor:
    """What the classifier of a cut model is given for every image, zeros where it is broken.

    Before anything is learned these are features that never saw the labels.
    """
    name = _classifier_name(model)
    assert name is not None
    rows, made = len(inputs.values), None
    plan = [range(at, min(at + _BATCH, rows)) for at in range(0, rows, _BATCH)]
    model.eval()
    for read, outputs in inputs.loader(plan, None):
        if len(read):
            given = _pooled(outputs_below(model, name, outputs))
            made = given.new_zeros(rows, given.shape[1]) if made is None else made
            made[torch.from_numpy(read)] = given
    assert made is not None
    return made


def pretrained_features(
    model: nn.Module, images: ImageInputs, folder: Path
) -> Callable[[], Tensor] | None:
    """What the classifier of a whole model is given for every image, zeros where it is broken.

    It is computed when asked for, and kept as outputs below a block are: a run that goes on, and
    others on the same images, read it.

    Args:
        model: A pretrained model before its first step.
        images: Images to learn from.
        folder: Where outputs are kept.

    Returns:
        None if it is not known which part of the model is its classifier, or there are more images
        than heads are trained on in memory.
    """
    name = _classifier_name(model)
    if name is None or len(images.images) > MOST_IMAGES:
        return None

    def features() -> Tensor:
        made = FrozenBlocks(model, name, folder).inputs_from(images, crop=False)
        return _pooled(torch.from_numpy(np.array(made.values, dtype=np.float32)))

    return features


def _classifier_name(model: nn.Module) -> str | None:
    """What the backbone calls its classifier."""
    classifier = getattr(model, "get_classifier", lambda: None)()
    modules = backbone_of(model).named_modules()
    return next((name for name, module in modules if name and module is classifier), None)


def _pooled(given: Tensor) -> Tensor:
    """One vector an image: a classifier that boosts its activations pools after them."""
    return given.flatten(2).mean(dim=2) if given.ndim > 2 else given


def _said(block: str, learning: int, *, crop: bool, cropped: bool) -> str:
    """What a user should know of such a run."""
    augment = ""
    if crop:
        augment = "; crops and mirroring are left out, since these outputs have no place for them"
    if cropped:
        augment = "; crops and mirroring are applied to the outputs, not to the pixels"
    return (
        f"training from {block}: {learning} tensors of weights learn, all below is frozen{augment}"
    )


def _reserve(file: Path, shape: tuple[int, ...]) -> None:
    """Make the file with all its room: a disk that fills up later would end the process."""
    with replacing(file) as temporary:
        np.lib.format.open_memmap(temporary, "w+", np.float16, shape).flush()
        with temporary.open("rb+") as opened:
            os.posix_fallocate(opened.fileno(), 0, temporary.stat().st_size)


def _blank(size: int) -> Tensor:
    return torch.zeros(2, 3, size, size)
