"""The paper's data sets as people unpack them: other folders around the same files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hilltop.data import LabelTable, read_labels
from hilltop.errors import DataError
from hilltop.inputs import find_images
from hilltop.studies.reproduce import find_data, official_sources
from hilltop.training import TrainConfig
from tests.studies.reproduce import official_fakes as fakes

Change = Callable[[Path], None]


def prepared(data: str, root: Path, *, open_images: str = "boxes") -> tuple[LabelTable, LabelTable]:
    """Both parts, after every image of them was found."""
    out = root.parent / "out"
    found = official_sources([[data]], root, out, TrainConfig(), open_images=open_images)
    base = found[data].base
    assert base.val_labels is not None
    assert base.images is not None
    tables = read_labels(base.labels), read_labels(base.val_labels)
    for table in tables:
        assert find_images(base.images, table.images).null_count == 0
    return tables


def moved(**places: str) -> Change:
    """Folders or files of the root go elsewhere in it."""

    def change(root: Path) -> None:
        for old, new in places.items():
            (root / new).parent.mkdir(parents=True, exist_ok=True)
            shutil.move(root / old, root / new)

    return change


def deeper(name: str) -> Change:
    """Everything goes into a folder."""

    def change(root: Path) -> None:
        inside = root.with_name("all of it")
        root.rename(inside)
        (root / name).parent.mkdir(parents=True)
        inside.rename(root / name)

    return change


def upper_case_endings(root: Path) -> None:
    for path in list(root.rglob("*.jpg")):
        path.rename(path.with_suffix(".JPG"))


def both(first: Change, second: Change) -> Change:
    def change(root: Path) -> None:
        first(root)
        second(root)

    return change


def bare_annotations(root: Path) -> None:
    for path in list((root / "annotations").iterdir()):
        path.rename(root / path.name)
    (root / "annotations").rmdir()


def beside_other_files(root: Path) -> None:
    for name in ("captions_val2014.json", "person_keypoints_val2014.json"):
        (root / "annotations" / name).write_text('{"annotations": []}')
    (root / "annotations.zip").write_bytes(b"PK")
    (root / "test2014").mkdir()


IN_A_FOLDER = moved(train2014="images/train2014", val2014="images/val2014")
COCO = {
    "images in a folder": IN_A_FOLDER,
    "images apart": moved(train2014="training/train2014", val2014="validation/val2014"),
    "each archive in its own folder": moved(
        train2014="a/train2014", val2014="b/val2014", annotations="c/annotations"
    ),
    "an archive inside its name": moved(annotations="annotations_trainval2014/annotations"),
    "folders inside their names": moved(train2014="x", x="train2014/train2014"),
    "other case": moved(annotations="Annotations", train2014="Train2014", val2014="Val2014"),
    "annotations beside the images": bare_annotations,
    "two folders down": deeper("data/coco"),
    "three folders down, images in a folder": both(IN_A_FOLDER, deeper("data/coco/2014")),
    "other files beside": beside_other_files,
    "endings in capitals": upper_case_endings,
}


@pytest.mark.parametrize("change", COCO.values(), ids=list(COCO))
def test_coco_is_found_however_it_was_unpacked(change: Change, tmp_path: Path) -> None:
    fakes.coco(tmp_path / "data")
    change(tmp_path / "data")
    train, val = prepared("coco", tmp_path / "data")
    assert (len(train), len(val)) == (6, 4)
    assert train.classes == ("person", "car", "dog")


@pytest.mark.parametrize("inside", ["", "images/"])
def test_released_lists_of_coco_are_found_beside_images_in_a_folder(
    inside: str, tmp_path: Path
) -> None:
    fakes.coco(tmp_path / "data", train_json=False, lists=True)
    moved(train2014=f"{inside}train2014/", val2014=f"{inside}val2014/")(tmp_path / "data")
    train, _ = prepared("coco", tmp_path / "data")
    assert len(train) == 6


def test_images_that_were_moved_since_are_found_again(tmp_path: Path) -> None:
    fakes.coco(tmp_path / "data")
    prepared("coco", tmp_path / "data")
    moved(train2014="images/train2014", val2014="images/val2014")(tmp_path / "data")
    prepared("coco", tmp_path / "data")


VOC = {
    "the data set itself": moved(**{"VOCdevkit/VOC2012": "x", "x": "y"}),
    "the devkit itself": moved(**{"VOCdevkit/VOC2012": "VOC2012"}),
    "the archive's name": deeper("VOCtrainval_11-May-2012"),
    "twice its name": moved(
        **{"VOCdevkit/VOC2012": "VOC2012_train_val/VOC2012_train_val"}
    ),
    "endings in capitals": upper_case_endings,
}  # fmt: skip


@pytest.mark.parametrize("change", VOC.values(), ids=list(VOC))
def test_voc_is_found_however_it_was_unpacked(change: Change, tmp_path: Path) -> None:
    fakes.voc(tmp_path / "data")
    change(tmp_path / "data")
    train, val = prepared("voc", tmp_path / "data")
    assert (len(train), len(val)) == (5, 3)


@pytest.mark.parametrize("place", ["VOCdevkit/VOC2007", "VOC2007", "a/VOCdevkit/VOC2007"])
def test_voc_2007_is_not_taken_for_2012(place: str, tmp_path: Path) -> None:
    root = tmp_path / "data"
    for name in ("JPEGImages", "ImageSets/Main", "Annotations"):
        (root / place / name).mkdir(parents=True)
    (root / place / "ImageSets" / "Main" / "train.txt").write_text("000012\n")
    (root / place / "ImageSets" / "Main" / "val.txt").write_text("000005\n")
    assert find_data("voc", root).layout is None
    fakes.voc(root / "z")
    assert len(prepared("voc", root)[0]) == 5


def test_the_test_archive_of_voc_is_not_taken_for_the_data_set(tmp_path: Path) -> None:
    """It has folders of the same names, and an image set of its own alone."""
    root = tmp_path / "data"
    fakes.voc(root)
    deeper("VOC2012_train_val")(root)
    sets = root / "VOC2012_test" / "ImageSets" / "Main"
    sets.mkdir(parents=True)
    (sets / "test.txt").write_text("2008_000001\n")
    (root / "VOC2012_test" / "JPEGImages").mkdir()
    assert len(prepared("voc", root)[0]) == 5


def flat(root: Path) -> None:
    """All images in one folder, as hashing papers keep them."""
    home = root / "NUS-WIDE"
    (home / "images").mkdir()
    for path in (home / "Flickr").rglob("*.jpg"):
        path.rename(home / "images" / path.name)
    shutil.rmtree(home / "Flickr")


def with_blanks(root: Path) -> None:
    """Blanks and empty lines at the end, as in copies that went through an editor."""
    for path in [*root.rglob("*list.txt"), *root.rglob("Labels_*.txt"), *root.rglob("Conc*.txt")]:
        lines = path.read_text().splitlines()
        path.write_bytes("".join(f"{line} \r\n" for line in lines).encode() + b"\r\n\r\n")


NUS = {
    "images": moved(**{"NUS-WIDE/Flickr": "NUS-WIDE/images"}),
    "Images": moved(**{"NUS-WIDE/Flickr": "NUS-WIDE/Images"}),
    "flat": flat,
    "images elsewhere": moved(**{"NUS-WIDE/Flickr": "Flickr"}),
    "labels without their folder": moved(
        **{"NUS-WIDE/Groundtruth/TrainTestLabels": "NUS-WIDE/TrainTestLabels"}
    ),
    "lists without their folders": moved(
        **{
            "NUS-WIDE/ConceptsList/Concepts81.txt": "NUS-WIDE/Concepts81.txt",
            "NUS-WIDE/ImageList/TrainImagelist.txt": "NUS-WIDE/TrainImagelist.txt",
            "NUS-WIDE/ImageList/TestImagelist.txt": "NUS-WIDE/TestImagelist.txt",
        }
    ),
    "Groundtruth in its archive's name": moved(
        **{"NUS-WIDE/Groundtruth": "x", "x": "NUS-WIDE/Groundtruth/Groundtruth"}
    ),
    "lists in their archives' names": moved(
        **{
            "NUS-WIDE/ImageList": "x", "x": "NUS-WIDE/ImageList/ImageList",
            "NUS-WIDE/ConceptsList": "y", "y": "NUS-WIDE/ConceptsList/ConceptsList",
        }
    ),
    "two folders down": deeper("data"),
    "other case": moved(
        **{
            "NUS-WIDE/ImageList": "NUS-WIDE/imagelist",
            "NUS-WIDE/Groundtruth": "NUS-WIDE/GroundTruth",
        }
    ),
    "blanks at the end": with_blanks,
    "endings in capitals": upper_case_endings,
}  # fmt: skip


@pytest.mark.parametrize("change", NUS.values(), ids=list(NUS))
def test_nus_is_found_however_it_was_unpacked(change: Change, tmp_path: Path) -> None:
    fakes.nus(tmp_path / "data")
    change(tmp_path / "data")
    train, val = prepared("nus", tmp_path / "data")
    assert (len(train), len(val)) == (5, 3)


def sharded(root: Path) -> None:
    """Sixteen archives, each with a folder of its own."""
    for number, path in enumerate(sorted((root / "train").glob("*.jpg"))):
        (root / f"train_{number:x}").mkdir()
        path.rename(root / f"train_{number:x}" / path.name)
    (root / "train").rmdir()


def sharded_in_a_folder(root: Path) -> None:
    sharded(root)
    for path in list(root.glob("train_*")):
        (root / "train").mkdir(exist_ok=True)
        path.rename(root / "train" / path.name)


def renamed(pattern: str, new: str) -> Change:
    def change(root: Path) -> None:
        for path in list(root.glob("*.csv")):
            target = root / re.sub(pattern, new, path.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)

    return change


def data_folders(root: Path) -> None:
    for part in ("train", "test" if (root / "test").is_dir() else "validation"):
        (root / part / "data").mkdir()
        for path in list((root / part).glob("*.jpg")):
            path.rename(root / part / "data" / path.name)


def in_images(root: Path) -> None:
    (root / "images").mkdir()
    for part in ("train", "test", "validation"):
        if (root / part).is_dir():
            (root / part).rename(root / "images" / part)


LABELS = "^(?:oidv6-)?(train|test)-annotations-human-imagelabels"
BOXES = "^(?:oidv6-)?(train|validation)-annotations-bbox"
OPEN_IMAGES = {
    "sixth edition": renamed("^(oidv.-)?", "oidv6-"),
    "seventh edition": renamed("^(oidv.-)?", "oidv7-"),
    "fourth edition": renamed("^(oidv.-)?", ""),
    "third edition": both(renamed(LABELS, r"\1/annotations-human"), renamed("^oidv.-", "")),
    "by a download tool": both(
        both(
            both(
                renamed(LABELS, r"\1/labels/classifications"),
                renamed(BOXES, r"\1/labels/detections"),
            ),
            renamed("^oidv.-class-descriptions(-boxable)?", "train/metadata/classes"),
        ),
        data_folders,
    ),
    "files in a folder": renamed("^", "annotations/"),
    "files in another folder": renamed("^", "labels/"),
    "shards": sharded,
    "shards in a folder": sharded_in_a_folder,
    "images in a folder": in_images,
    "two folders down": deeper("data/openimages"),
    "endings in capitals": upper_case_endings,
}


@pytest.mark.parametrize("form", ["boxes", "labels"])
@pytest.mark.parametrize("change", OPEN_IMAGES.values(), ids=list(OPEN_IMAGES))
def test_open_images_is_found_however_it_was_unpacked(
    change: Change, form: str, tmp_path: Path
) -> None:
    make = {"boxes": fakes.openimages, "labels": fakes.openimages_labels}[form]
    change(make(tmp_path / "data"))
    train, val = prepared("openimages", tmp_path / "data", open_images=form)
    assert (len(train), len(val)) == (5, 3)
    assert train.classes == ("Person", "Car", "Dog")


def test_of_two_folders_of_one_name_the_least_deep_one_is_taken(tmp_path: Path) -> None:
    fakes.coco(tmp_path / "data")
    shutil.copytree(tmp_path / "data" / "train2014", tmp_path / "data" / "a" / "train2014")
    (tmp_path / "data" / "a" / "train2014" / "COCO_train2014_000000000009.jpg").unlink()
    prepared("coco", tmp_path / "data")


def test_the_error_names_the_folder_that_was_looked_in(tmp_path: Path) -> None:
    (tmp_path / "data" / "coco" / "images" / "train2014").mkdir(parents=True)
    with pytest.raises(DataError, match=r"COCO: there is no folder .*val2014"):
        prepared("coco", tmp_path / "data")


def test_a_folder_of_other_photographs_does_not_stand_for_nus(tmp_path: Path) -> None:
    """The lists of the released code count beside it, and VOC alone is enough."""
    root = tmp_path / "data"
    fakes.voc(root)
    fakes.draw(root / "flickr" / "1.jpg", 0)
    (root / "other" / "groundtruth").mkdir(parents=True)
    found = official_sources([["voc", "nus"]], root, tmp_path / "out", TrainConfig())
    assert list(found) == ["voc"]
    fakes.released_nus(root / "released")
    assert len(prepared("nus", root)[0]) == 3
