"""Scores of images for classes that have nothing but a name, by an image and text model.

Every class name is put into sentences, such as "a photo of a dog.", whose mean text embedding
stands for the class. The score of an image is the cosine of its embedding with that of the class,
times the model's own scale, plus its own bias where it has one (SigLIP). ``hilltop train`` and
``hilltop audit`` take the file as --extra-scores: it is no matter that the scale is not that of
your labels, because the weight of every class is found from the labels.

Run it with: python reproduction/zero_shot_scores.py --images photos --classes names.txt
    --model ViT-B-32 --weights openai --out extra.npz
then: hilltop train labels.csv --unlisted unknown --images photos --extra-scores extra.npz

``--weights`` is a tag that open_clip knows, which asks the hub once, or a file. With a timm model,
``--image-model vit_base_patch16_clip_224.openai``, timm gives the image tower, with weights from
``--image-weights`` or the hub, and open_clip the text tower alone: both have to be of one training.
Needed beside Hilltop: pip install open_clip_torch
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import open_clip
import timm
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import normalize

TEMPLATES = ("a photo of a {}.", "a photo of the {}.", "a picture with a {} in it.")
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp")


@dataclass(frozen=True)
class Towers:
    """The two halves of a model.

    Attributes:
        images: Embeds a batch of pixels.
        pixels: Turns a photograph into pixels.
        texts: Embeds sentences.
        scale: Factor on cosines.
        bias: Added to scores.
    """

    images: Callable[[Tensor], Tensor]
    pixels: Callable[[Any], Tensor]
    texts: Callable[[Sequence[str]], Tensor]
    scale: float
    bias: float


def load_towers(words: argparse.Namespace) -> Towers:
    """Load both halves, or the image tower from timm."""
    model, pixels = open_clip.create_model_from_pretrained(
        words.model, words.weights, weights_only=True
    )
    model.eval()
    tokenizer = open_clip.get_tokenizer(words.model)

    def texts(sentences: Sequence[str]) -> Tensor:
        return normalize(model.encode_text(tokenizer(list(sentences))), dim=-1)

    def images(batch: Tensor) -> Tensor:
        return normalize(model.encode_image(batch), dim=-1)

    bias = getattr(model, "logit_bias", None)
    scale, bias = float(model.logit_scale.exp()), 0.0 if bias is None else float(bias)
    if words.image_model is None:
        return Towers(images, pixels, texts, scale, bias)
    tower = timm.create_model(words.image_model, pretrained=words.image_weights is None).eval()
    if words.image_weights is not None:
        timm.models.load_checkpoint(tower, str(words.image_weights))
    settings = timm.data.resolve_data_config({}, model=tower)
    shown, read = tower(torch.zeros(1, *settings["input_size"])).shape[1], texts(["a"]).shape[1]
    if shown != read:
        raise SystemExit(
            f"{words.image_model} embeds images in {shown} numbers, and {words.model} texts in"
            f" {read}: they are not of one model."
        )
    transform = timm.data.create_transform(**settings)
    return Towers(lambda batch: normalize(tower(batch), dim=-1), transform, texts, scale, bias)


def embed_classes(towers: Towers, classes: Sequence[str], templates: Sequence[str]) -> Tensor:
    """The mean embedding of the sentences with each class name ``(classes, numbers)``."""
    means = [
        towers.texts([template.format(name) for template in templates]).mean(0) for name in classes
    ]
    return normalize(torch.stack(means), dim=-1)


def score_images(
    towers: Towers, folder: Path, ids: Sequence[str], classes: Tensor, batch: int
) -> npt.NDArray[np.float32]:
    """Scores of all images ``(images, classes)``."""

    def parts() -> Iterator[Tensor]:
        for start in range(0, len(ids), batch):
            pixels = []
            for name in ids[start : start + batch]:
                with Image.open(folder / name) as image:
                    pixels.append(towers.pixels(image.convert("RGB")))
            yield towers.scale * towers.images(torch.stack(pixels)) @ classes.T + towers.bias

    return torch.cat(list(parts())).numpy().astype(np.float32)


def main() -> None:
    """Score every image of a folder and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--images", type=Path, required=True, help="folder, also with folders")
    parser.add_argument("--classes", type=Path, required=True, help="text file, a name a line")
    parser.add_argument("--out", type=Path, required=True, help="the .npz file to write")
    parser.add_argument("--model", default="ViT-B-32", help="model of open_clip")
    parser.add_argument("--weights", required=True, help="its weights: a tag, or a file")
    parser.add_argument("--image-model", help="timm name of the image tower, if timm has it")
    parser.add_argument("--image-weights", type=Path, help="its file; the hub without it")
    parser.add_argument("--templates", default=";".join(TEMPLATES), help="sentences, ; between")
    parser.add_argument("--batch-size", type=int, default=64)
    words = parser.parse_args()
    names = [line.strip() for line in words.classes.read_text(encoding="utf-8").splitlines()]
    classes = [name for name in names if name]
    ids = sorted(
        path.relative_to(words.images).as_posix()
        for path in words.images.rglob("*")
        if path.suffix.lower() in ENDINGS
    )
    if not classes or not ids:
        raise SystemExit("There is no class name, or no image.")
    with torch.inference_mode():
        towers = load_towers(words)
        embedded = embed_classes(towers, classes, words.templates.split(";"))
        scores = score_images(towers, words.images, ids, embedded, words.batch_size)
    np.savez(words.out, ids=np.array(ids), classes=np.array(classes), scores=scores)
    print(f"{words.out}: {len(ids):,} images, {len(classes)} classes")


if __name__ == "__main__":
    main()
