"""How much time of the processor does it take to turn an image into features?

From a folder and from a tar file, beside a plain loop of timm (PIL, its own transform, batches of
64), the same loop with ONNX Runtime, and ONNX Runtime alone on pixels that are in memory already,
which is the least that any reading could take. The photographs are generated, 500 x 375 JPEG; the
network has random weights, and looks at 224 pixels. Ways take turns; the best of three rounds
counts, with the time of processes that decode.
Run it with: python benchmarks/features.py [--images N] [--network NAME]
"""

from __future__ import annotations

import argparse
import resource
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import timm
import torch
from PIL import Image
from safetensors.torch import save_file
from timm.data import create_transform, resolve_data_config
from torch import Tensor

from hilltop.inputs.backbone import BATCH, Backbone, FeatureExtractor
from hilltop.inputs.images import ImageInputs
from hilltop.inputs.streams import image_streams
from input_path import write_images

SIZE, ROUNDS = 224, 3


def plain_loop(files: list[Path], name: str, model: Callable[[Tensor], Tensor]) -> None:
    """What people write."""
    config = resolve_data_config({"input_size": (3, SIZE, SIZE)}, model=timm.create_model(name))
    transform = create_transform(**config)
    with torch.inference_mode():
        for first in range(0, len(files), BATCH):
            images = (Image.open(file).convert("RGB") for file in files[first : first + BATCH])
            model(torch.stack([transform(image) for image in images]))


def seconds() -> float:
    """Time of the processor so far, of this process and of those that it waited for."""
    found = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in found)


def main() -> None:
    """Measure each way; the network is exported for ONNX Runtime before."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--network", default="resnet50", help="timm name")
    given = parser.parse_args()
    number, network = given.images, given.network
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "photos")
        folder.mkdir()
        files = write_images(folder, number, width=500, height=375)
        with tarfile.open(Path(name, "photos.tar"), "w") as archive:
            for file in files:
                archive.add(file, file.name)
        weights = Path(name, "weights.safetensors")
        save_file(timm.create_model(network).state_dict(), weights)
        extractor = FeatureExtractor(Backbone(network, str(weights), SIZE), images=1000)
        options = {"workers": 2, "skip_broken": False, "say": print}
        ids = pa.array([file.name for file in files])
        reading = {"size": SIZE, "augment": "none", "seed": 0, "workers": 0, "skip_broken": False}
        inputs = ImageInputs(folder, ids[:BATCH], **reading)
        ((_, pixels),) = inputs.loader([range(min(BATCH, number))], None)
        (stream,) = image_streams(f"{name}/photos.tar", BATCH)
        eager = timm.create_model(network, num_classes=0).eval()
        works: dict[str, Callable[[], object]] = {
            "timm loop": lambda: plain_loop(files, network, eager),
            "the same, ONNX Runtime": lambda: plain_loop(files, network, extractor.model),
            "hilltop, folder": lambda: extractor(folder, ids, **options),
            "hilltop, tar file": lambda: extractor.over(stream, **options),
            "ONNX Runtime alone": lambda: [extractor.model(pixels) for _ in range(number // BATCH)],
        }
        best = dict.fromkeys(works, float("inf"))
        for _ in range(ROUNDS):
            for way, work in works.items():
                began = seconds()
                work()
                best[way] = min(best[way], seconds() - began)
        for way, spent in best.items():
            ratio = spent / best["ONNX Runtime alone"]
            print(f"{way:24} {1e3 * spent / number:7.1f} ms an image  {ratio:5.2f}", flush=True)


if __name__ == "__main__":
    main()
