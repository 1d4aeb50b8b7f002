"""How many images a second does one core turn from JPEG files into model input at 448 px?

Compared with PIL and the v1 transforms of torchvision, with the same augmentations: squash to a
square, cutout of term the side, RandAugment. The files are generated: smoothed noise, 640 x 480.
Evaluation is also timed over files of 1,000 to 10 million pixels.
Run it with: python benchmarks/input_path.py [--quick] [--save]
"""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor
from torchvision import transforms as v1

from hilltop.inputs.decode import read_image
from hilltop.inputs.transforms import evaluation_pixels, model_input, training_pixels
from results import finish, parser
from timing import Row, Work, compare

SIZE = 448
FILES = 32


def write_images(folder: Path, files: int, *, width: int = 640, height: int = 480) -> list[Path]:
    """Write JPEG files of the weight of photographs."""
    generator = np.random.default_rng(0)
    paths = []
    for number in range(files):
        coarse = Image.fromarray(generator.integers(256, size=(24, 32, 3), dtype=np.uint8))
        half = (height // 2, width // 2, 3)
        fine = Image.fromarray(generator.integers(256, size=half, dtype=np.uint8))
        sizes = [
            image.resize((width, height), Image.Resampling.BICUBIC) for image in (coarse, fine)
        ]
        paths.append(folder / f"{width}x{height}-{number}.jpg")
        Image.blend(*sizes, 0.25).save(paths[-1], quality=90)
    return paths


def cutout_pil(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    """Draw a square of term the side in one colour."""
    x, y = (int(place) - SIZE // 4 for place in generator.integers(SIZE, size=2))
    colour = tuple(int(value) for value in generator.integers(256, size=3))
    corner = (x + SIZE // 2 - 1, y + SIZE // 2 - 1)
    ImageDraw.Draw(image).rectangle((x, y, *corner), fill=colour)
    return image


def with_pil(paths: list[Path], *, train: bool) -> Work:
    """PIL and v1 transforms, as in the released code."""
    resize, augment, to_tensor = v1.Resize((SIZE, SIZE)), v1.RandAugment(), v1.ToTensor()
    generator = np.random.default_rng(0)

    def read(path: Path) -> Tensor:
        image = resize(Image.open(path).convert("RGB"))
        return to_tensor(augment(cutout_pil(image, generator)) if train else image)

    return lambda: torch.stack([read(path) for path in paths])


def with_hilltop(paths: list[Path], *, train: bool) -> Work:
    """Our own path; every call is the next epoch."""
    epochs = itertools.count()

    def batch() -> Tensor:
        epoch = next(epochs)
        images = (read_image(path) for path in paths)
        if not train:
            return model_input(torch.stack([evaluation_pixels(image, SIZE) for image in images]))
        return model_input(
            torch.stack(
                [
                    training_pixels(image, SIZE, augment="strong", seed=0, epoch=epoch, row=row)
                    for row, image in enumerate(images)
                ]
            )
        )

    return batch


def measure(paths: list[Path], *, train: bool) -> list[Row]:
    """Compare the two on the same files; notes say images a second."""
    works = {
        "PIL + v1 transforms": with_pil(paths, train=train),
        "hilltop": with_hilltop(paths, train=train),
    }
    question = "images, training" if train else "images, evaluation"
    rows = compare(question, f"{len(paths)}x{SIZE}px", works, "PIL + v1 transforms")
    return [
        replace(row, note=f"{1e3 * len(paths) / row.contender_ms:.0f} images a second")
        for row in rows
    ]


def by_pixels(folder: Path, side: int) -> list[Row]:
    """Evaluation of four square files of one size."""
    paths = write_images(folder, 4, width=side, height=side)
    works = {
        "PIL + v1 transforms": with_pil(paths, train=False),
        "hilltop": with_hilltop(paths, train=False),
    }
    question = "images by pixels"
    return compare(question, str(side * side), works, "PIL + v1 transforms", seconds=2.0)


def main() -> None:
    """Measure training and evaluation, on one thread."""
    options = parser(__doc__).parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_images(Path(folder), 4 if options.quick else FILES)
        rows = measure(paths, train=True) + measure(paths, train=False)
        for side in (32, 100) if options.quick else (32, 100, 316, 1000, 3162):
            rows += by_pixels(Path(folder), side)
    finish(rows, options, ["torch", "torchvision", "pillow"])


if __name__ == "__main__":
    main()
