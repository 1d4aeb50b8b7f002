"""Small fakes of the paper's data sets: the real folders, file names and formats, drawn images."""

from __future__ import annotations

import json
from pathlib import Path

from tests.data.annotations.voc_devkit import annotation
from tests.data.conftest import picture

COCO_CLASSES = {1: "person", 3: "car", 18: "dog"}  # ids have gaps, as the real ones do


def draw(path: Path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture(seed, 36, 28).save(path)


def coco(root: Path, *, train_json: bool = True, lists: bool = False) -> Path:
    """2014 images and annotations; the last image of each part has no annotation."""
    labels = {
        "train2014": [[1, 3], [3], [1, 18, 3], [18], [1], [3, 18], []],
        "val2014": [[1, 18], [3, 1], [18, 3], [1, 3, 18], []],
    }
    for part, rows in labels.items():
        names = [f"COCO_{part}_{number:012d}.jpg" for number in range(9, 9 + len(rows))]
        for number, name in enumerate(names):
            draw(root / part / name, number)
        if part == "val2014" or train_json:
            _instances(root / "annotations" / f"instances_{part}.json", names, rows)
    if lists:
        _coco_lists(root / "dataset", labels["train2014"])
    return root


def _instances(path: Path, names: list[str], rows: list[list[int]]) -> None:
    pairs = [(number, category) for number, row in enumerate(rows) for category in row]
    content = {
        "info": {"year": 2014},
        "images": [{"id": 9 + at, "file_name": name} for at, name in enumerate(names)],
        "annotations": [
            {"id": at, "image_id": 9 + number, "category_id": category, "iscrowd": 0, "area": 40.5,
             "bbox": [0, 0, 9, 9]}
            for at, (number, category) in enumerate([*pairs, pairs[0]])
        ],
        "categories": [{"id": at, "name": name} for at, name in COCO_CLASSES.items()],
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def _coco_lists(folder: Path, rows: list[list[int]]) -> None:
    """The lists of the released code, with the gaps closed and its odd blanks."""
    folder.mkdir()
    number = {category: at for at, category in enumerate(COCO_CLASSES)}
    names = [f"COCO_train2014_{at:012d}.jpg" for at in range(9, 9 + len(rows))]
    kept = {"full": 3, "0.75left": 2, "0.4left": 1, "singlelabel": 1}
    for name, most in kept.items():
        lines = [
            f"{image}, {' '.join(str(number[category]) for category in row[:most])}"
            for image, row in zip(names, rows, strict=True)
            if row
        ]
        (folder / f"coco_train_{name}.txt").write_text("\n".join(lines))


def voc(root: Path) -> Path:
    """A devkit with difficult objects: 0 in an image set."""
    home = root / "VOCdevkit" / "VOC2012"
    sets = home / "ImageSets" / "Main"
    sets.mkdir(parents=True)
    (home / "Annotations").mkdir()
    values = {
        "train": {"2008_000002": (1, 1), "2008_000003": (-1, 1), "2008_000007": (1, 0),
                  "2008_000008": (1, 1), "2008_000009": (1, -1)},
        "val": {"2008_000004": (1, 1), "2008_000005": (-1, 1), "2008_000006": (1, -1)},
    }  # fmt: skip
    for split, images in values.items():
        (sets / f"{split}.txt").write_text("".join(f"{name}\n" for name in images))
        for at, label in enumerate(("cat", "person")):
            lines = [f"{name} {states[at]:2d}\n" for name, states in images.items()]
            (sets / f"{label}_{split}.txt").write_text("".join(lines))
        for name, states in images.items():
            draw(home / "JPEGImages" / f"{name}.jpg", len(name))
            objects = [(label, "0") for label, state in zip(("cat", "person"), states, strict=True)
                       if state == 1]  # fmt: skip
            (home / "Annotations" / f"{name}.xml").write_text(annotation(name, objects))
    return root


def nus(root: Path) -> Path:
    """The original layout: ids with backslashes, a folder for each query, lines ended as then."""
    home = root / "NUS-WIDE"
    concepts = ["airport", "animal", "sky"]
    labels = {
        "Train": {"actor\\0001_2124494179.jpg": "110", "actor\\0002_174174086.jpg": "001",
                  "zebra\\0003_2038.jpg": "011", "zebra\\0004_99.jpg": "100",
                  "zebra\\0005_98.jpg": "000", "actor\\0006_97.jpg": "111"},
        "Test": {"adobehouses\\0001_11.jpg": "011", "adobehouses\\0002_12.jpg": "110",
                 "actor\\0007_13.jpg": "101", "actor\\0008_14.jpg": "000"},
    }  # fmt: skip
    for folder in ("ConceptsList", "ImageList", "Groundtruth/TrainTestLabels"):
        (home / folder).mkdir(parents=True)
    (home / "ConceptsList" / "Concepts81.txt").write_text("\r\n".join(concepts) + "\r\n")
    for part, images in labels.items():
        (home / "ImageList" / f"{part}Imagelist.txt").write_text("\r\n".join(images) + "\r\n")
        for at, name in enumerate(concepts):
            values = "".join(f"{word[at]}\n" for word in images.values())
            path = home / "Groundtruth" / "TrainTestLabels" / f"Labels_{name}_{part}.txt"
            path.write_text(values)
        for number, name in enumerate(images):
            draw(home / "Flickr" / name.replace("\\", "/"), number)
    return root


def released_nus(root: Path) -> Path:
    """The lists of the released code, with all images in one folder; no newline at the end."""
    lists = {
        "train_full": ["5685_371_m.jpg,1 11", "44750_24_m.jpg, 8 55 72", "1_2_m.jpg,79 80"],
        "train_singlelabel": ["5685_371_m.jpg,11", "44750_24_m.jpg,55", "1_2_m.jpg,80"],
        "val": ["123940_115_m.jpg,42 60 79", "7_8_m.jpg, 1 8"],
    }
    (root / "dataset").mkdir(parents=True)
    for name, lines in lists.items():
        (root / "dataset" / f"nus_{name}.txt").write_text("\n".join(lines))
        for number, line in enumerate(lines):
            draw(root / "images" / line.partition(",")[0], number)
    return root


_CODES = {"/m/01g317": "Person", "/m/0k4j": "Car", "/m/0bt9lr": "Dog", "/m/0rare": "Yo-yo"}
_ROWS = {
    "train": {"000a1b2c3d4e5f60": "110", "000b": "011", "000c": "100", "000d": "101",
              "gone": "111", "000e": "010"},
    "other": {"111a": "110", "111b": "011", "111c": "101", "gone2": "100"},
}  # fmt: skip


def openimages(root: Path) -> Path:
    """Boxes of training and validation as they are distributed: no row for what is not there."""
    lines = [f"{code},{name}" for code, name in _CODES.items()]
    described = "\n".join(["LabelName,DisplayName", *lines])
    root.mkdir(parents=True, exist_ok=True)
    (root / "oidv7-class-descriptions-boxable.csv").write_text(f"{described}\n")
    head = (
        "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsTruncated,IsGroupOf,"
        "IsDepiction,IsInside"
    )
    for part, edition in (("train", "oidv6-"), ("validation", "")):
        rows = _rows(root, part)
        boxes = [
            f"{image},xclick,{code},1,0.{number},0.9,0.1,0.8,0,0,0,0,0"
            for image, code, state in rows
            if state == "1"
            for number in range(1, 3)  # two of each
        ]
        rare = ["000c,activemil,/m/0rare,1,0,0.5,0,0.5,0,1,0,0,0"] if part == "train" else []
        path = root / f"{edition}{part}-annotations-bbox.csv"
        path.write_text("\n".join([head, *boxes, *rare]) + "\n")
    return root


def openimages_labels(root: Path) -> Path:
    """Human-verified labels with checked absents, an image that could not be had, a rare class."""
    root.mkdir(parents=True, exist_ok=True)
    described = "".join(f"{code},{name}\n" for code, name in _CODES.items())
    (root / "oidv6-class-descriptions.csv").write_text(f"LabelName,DisplayName\n{described}")
    for part, edition in (("train", "oidv6-"), ("test", "")):
        rows = _rows(root, part)
        lines = ["ImageID,Source,LabelName,Confidence"]
        lines += [f"{image},verification,{code},{state}" for image, code, state in rows]
        if part == "train":
            lines.append("000c,crowdsource-verification,/m/0rare,1")
        path = root / f"{edition}{part}-annotations-human-imagelabels.csv"
        path.write_text("\n".join(lines) + "\n")
    return root


def _rows(root: Path, part: str) -> list[tuple[str, str, str]]:
    """What is said of each image and class of a part; its images are drawn unless they are gone."""
    images = _ROWS["train" if part == "train" else "other"]
    for number, image in enumerate(images):
        if not image.startswith("gone"):
            draw(root / part / f"{image}.jpg", number)
    return [
        (image, code, state)
        for image, word in images.items()
        for code, state in zip(_CODES, word, strict=False)
    ]
