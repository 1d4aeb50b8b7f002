"""How many images a second become features, from a folder and from a tar file?

Beside a plain loop of timm (PIL, its own transform, batches of 64) and ONNX Runtime alone on pixels
that are in memory already, which is the most that any reading could reach. The photographs are
generated, 500 x 375 JPEG; the network is tf_efficientnet_lite0 with random weights, at 224 pixels.
Run it with: python benchmarks/features.py [--images N]
"""

from __future__ import annotations

import argparse
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import timm
import torch
from PIL import Image
from safetensors.torch import save_file
from timm.data import create_transform, resolve_data_config

from hilltop.inputs.backbone import BATCH, Backbone, FeatureExtractor
from hilltop.inputs.images import ImageInputs
from hilltop.inputs.streams import image_streams
from input_path import write_images

NAME, SIZE = "tf_efficientnet_lite0", 224


def timm_loop(files: list[Path]) -> None:
    """What people write."""
    model = timm.create_model(NAME, num_classes=0).eval()
    transform = create_transform(**resolve_data_config({}, model=model))
    with torch.inference_mode():
        for first in range(0, len(files), BATCH):
            images = (Image.open(file).convert("RGB") for file in files[first : first + BATCH])
            model(torch.stack([transform(image) for image in images]))


def main() -> None:
    """Measure each way once; the network is exported for ONNX Runtime before."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=256)
    number = parser.parse_args().images
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "photos")
        folder.mkdir()
        files = write_images(folder, number, width=500, height=375)
        with tarfile.open(Path(name, "photos.tar"), "w") as archive:
            for file in files:
                archive.add(file, file.name)
        weights = Path(name, "weights.safetensors")
        save_file(timm.create_model(NAME).state_dict(), weights)
        extractor = FeatureExtractor(Backbone(NAME, str(weights), SIZE), images=1000)
        options = {"workers": 2, "skip_broken": False, "say": print}
        ids = pa.array([file.name for file in files])
        reading = {"size": SIZE, "augment": "none", "seed": 0, "workers": 0, "skip_broken": False}
        inputs = ImageInputs(folder, ids[:BATCH], **reading)
        ((_, pixels),) = inputs.loader([range(min(BATCH, number))], None)
        (stream,) = image_streams(f"{name}/photos.tar", BATCH)
        works: dict[str, Callable[[], object]] = {
            "timm loop": lambda: timm_loop(files),
            "hilltop, folder": lambda: extractor(folder, ids, **options),
            "hilltop, tar file": lambda: extractor.over(stream, **options),
            "ONNX Runtime alone": lambda: [extractor.model(pixels) for _ in range(number // BATCH)],
        }
        for way, work in works.items():
            began = time.perf_counter()
            work()
            print(f"{way:20} {number / (time.perf_counter() - began):6.1f} images/s", flush=True)


if __name__ == "__main__":
    main()
