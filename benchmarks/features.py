"""How much time of the processor does it take to turn a folder of images into features?

Each way is a process of its own, and everything that it does counts: importing, decoding, writing.

- a plain loop of timm: PIL, timm's own transform, batches of 64;
- the same loop with ONNX Runtime, on a file that was exported before;
- ``hilltop features`` on the folder and on a tar file, with ONNX Runtime where it is installed. The
  first command of a network exports it and is shown by itself.

Photographs are generated, 500 x 375 JPEG, and the network has random weights, unless ``--folder``
and ``--weights`` name others. It looks at 224 pixels. ``--results FILE`` keeps what is measured
there, and goes on where it was stopped.
Run it with: OMP_NUM_THREADS=1 python benchmarks/features.py [--images N] [--network NAME]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

SIZE, BATCH = 224, 64


def plain_loop(files: list[Path], network: str, weights: Path, onnx: Path | None) -> None:
    """What people write."""
    import numpy as np
    import torch
    from PIL import Image
    from timm.data import create_transform

    torch.set_num_threads(1)
    transform = create_transform((3, SIZE, SIZE), interpolation="bicubic")
    if onnx is None:
        model = built(network, weights)
    else:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    found = []
    with torch.inference_mode():
        for first in range(0, len(files), BATCH):
            images = (Image.open(file).convert("RGB") for file in files[first : first + BATCH])
            pixels = torch.stack([transform(image) for image in images])
            if onnx is None:
                found.append(model(pixels).numpy())
            else:
                found.append(session.run(None, {"pixels": pixels.numpy()})[0])
    print(np.concatenate(found).shape)


def built(network: str, weights: Path) -> Any:
    """The network without its classifier."""
    from hilltop.models import build_image_model  # finds the names that a file of weights has

    model = build_image_model(network, 1, weights=str(weights), image_size=SIZE).eval()
    model.reset_classifier(0)
    return model


def export(network: str, weights: Path, path: Path) -> None:
    """Write the network for ONNX Runtime."""
    import torch

    from hilltop.inputs.onnx_backbone import _export

    with torch.inference_mode():
        _export(built(network, weights), SIZE, path)


def seconds(command: list[str], **environment: str) -> float:
    """Time of the processor of a command and of all that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(given: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Seconds of each way, one after the other."""
    images = given.folder or folder / "photos"
    if given.folder is None:
        from input_path import write_images

        images.mkdir()
        write_images(images, given.images, width=500, height=375)
    few = folder / "few"
    few.mkdir()
    for file in sorted(images.iterdir())[: given.images]:
        shutil.copy(file, few / file.name)
    with tarfile.open(folder / "photos.tar", "w") as archive:
        for file in sorted(few.iterdir()):
            archive.add(file, file.name)
    weights = given.weights or folder / "weights.safetensors"
    if given.weights is None:
        import timm
        from safetensors.torch import save_file

        save_file(timm.create_model(given.network).state_dict(), weights)
    cache, network = str(folder / "cache"), ["--backbone", given.network, "--weights", str(weights)]
    command = [sys.executable, "-m", "hilltop", "features", *network, "--image-size", str(SIZE)]
    loop = [sys.executable, __file__, "--network", given.network, "--weights", str(weights)]
    loop += ["--way", str(few)]
    ways = {
        "hilltop, first command": [*command, str(few), "--out", str(folder / "first.npz")],
        "hilltop, folder": [*command, str(few), "--out", str(folder / "folder.npz")],
        "hilltop, tar file": [
            *command, str(folder / "photos.tar"), "--out", str(folder / "tar.npz")
        ],
        "export": [*loop, "--export", str(folder / "network.onnx")],
        "timm loop, ONNX Runtime": [*loop, "--onnx", str(folder / "network.onnx")],
        "timm loop": loop,
    }  # fmt: skip
    known: dict[str, float] = {}
    if given.results is not None and given.results.is_file():
        known = json.loads(given.results.read_text())
    for way, words in ways.items():
        if way not in known or way in ("hilltop, first command", "export"):
            known[way] = seconds(words, XDG_CACHE_HOME=cache)
            print(f"{way:24} {known[way]:7.1f} s", flush=True)
            if given.results is not None:
                given.results.write_text(json.dumps(known))
    return known


def main() -> None:
    """Measure each way."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--network", default="resnet50", help="timm name")
    parser.add_argument("--folder", type=Path, help="photographs")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--results", type=Path, help="where times are kept")
    for hidden in ("--way", "--onnx", "--export"):
        parser.add_argument(hidden, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.export is not None:
        export(given.network, given.weights, given.export)
        return
    if given.way is not None:
        plain_loop(sorted(given.way.iterdir()), given.network, given.weights, given.onnx)
        return
    with tempfile.TemporaryDirectory() as name:
        spent = measure(given, Path(name))
    for way, one in spent.items():
        ratio = one / spent["timm loop, ONNX Runtime"]
        print(f"{way:24} {1e3 * one / given.images:7.1f} ms an image  {ratio:5.2f}")


if __name__ == "__main__":
    main()
