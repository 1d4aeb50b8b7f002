"""The data sets of the paper, unpacked as they come: what lies where, and what is missing.

Only names of files and folders are looked at here; ``official.py`` reads the labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hilltop.data import ReadOptions

COMPLETE_LABELS = ReadOptions(unlisted="absent")
"""All four data sets are taken to be complete, as in the paper: what is not listed is absent."""


@dataclass(frozen=True)
class Split:
    """Labels of one part of a data set.

    Attributes:
        path: The file or folder to read.
        format: Its format.
        options: What the format leaves open.
        prefix: What leads from the folder of images to those of this part.
        classes_of: A label file whose classes the numbers in this one stand for, in order.
        numbered: How many classes the numbers stand for, if they have no names.
    """

    path: Path
    format: str
    options: ReadOptions = COMPLETE_LABELS
    prefix: str = ""
    classes_of: Path | None = None
    numbered: int | None = None


@dataclass(frozen=True)
class Layout:
    """Where the parts of a data set lie.

    Attributes:
        data: Its short name, as recipes know it.
        images: The folder with its images.
        train: Complete training labels.
        val: Labels of the test images.
        reduced: Released training labels by the level that they were reduced to.
        partial: Whether images that are not there are left out, as in the paper, where many could
            no longer be had.
    """

    data: str
    images: Path
    train: Split
    val: Split
    reduced: Mapping[str, Split] = field(default_factory=dict)
    partial: bool = False


@dataclass(frozen=True)
class Search:
    """What was found of a data set below a folder.

    Attributes:
        layout: Its parts, or None if some are missing.
        missing: A sentence for each part that is missing, with where to get it.
        begun: Whether any part is there.
    """

    layout: Layout | None
    missing: tuple[str, ...]
    begun: bool


class _Places:
    """Looks for parts below a folder, and notes those that are missing."""

    def __init__(self, data: str, home: Path | None, root: Path) -> None:
        self.title, self.begun, self.home = data_title(data), home is not None, home or root
        self.around = [self.home, *_folders(root)]
        self.missing: list[str] = []

    def folder(self, name: str, what: str) -> Path:
        """A folder; ``what`` says in words what it is and where it comes from."""
        path = self.home / name
        if not path.is_dir():
            self.missing.append(f"{self.title}: there is no folder {str(path)!r}: {what}.")
        return path

    def file(self, names: Sequence[str], what: str) -> Path:
        """The first of some files that is there."""
        found = self.some(names)
        if found is None:
            path = str(self.home / names[0])
            self.missing.append(f"{self.title}: there is no file {path!r}: {what}.")
        return found or self.home / names[0]

    def some(self, names: Sequence[str]) -> Path | None:
        """The first of some files, or None."""
        return next((self.home / name for name in names if (self.home / name).is_file()), None)

    def listed(self, name: str) -> Path | None:
        """A list of the released code, in any folder: alone, or in a clone of its repository."""
        paths = (folder / inside / name for folder in self.around for inside in ("", "dataset"))
        return next((path for path in paths if path.is_file()), None)

    def end(self, layout: Callable[[], Layout]) -> Search:
        """What came of it."""
        whole = None if self.missing else layout()
        return Search(whole, tuple(self.missing), self.begun)


def find_data(data: str, root: Path) -> Search:
    """Look for a data set of the paper in a folder or one of the folders in it.

    Args:
        data: Short name: one of :data:`DATA_SETS`.
        root: Where to look.
    """
    return DATA_SETS[data](root)


def data_title(data: str) -> str:
    """What a data set is called."""
    return _TITLES.get(data, data)


def _home(root: Path, marks: Sequence[str], inside: Sequence[str] = ("",)) -> Path | None:
    """The first folder that holds one of the marks: the root, or a folder in it."""
    for folder in (folder / name for folder in _folders(root) for name in inside):
        if any((folder / mark).exists() for mark in marks):
            return folder
    return None


def _folders(root: Path) -> list[Path]:
    """The root and the folders in it."""
    if not root.is_dir():
        return []
    return [root, *sorted(child for child in root.iterdir() if child.is_dir())]


_RELEASED = "one of the label lists in the folder dataset of the code released with the paper"


def _find_coco(root: Path) -> Search:
    places = _Places("coco", _home(root, ("train2014", "val2014", "annotations")), root)
    archive = "from the download page of the COCO data set"
    places.folder("train2014", f"the archive of 2014 training images, {archive}")
    places.folder("val2014", f"the archive of 2014 validation images, {archive}")
    annotations = f"of the archive of 2014 train and validation annotations, {archive}"
    val = places.file(["annotations/instances_val2014.json"], f"it is part {annotations}")
    listed = places.listed("coco_train_full.txt")
    train = listed or places.file(
        ["annotations/instances_train2014.json"],
        f"it is part {annotations}; coco_train_full.txt, {_RELEASED}, does as well",
    )

    def split(path: Path, prefix: str) -> Split:
        if path.suffix == ".json":
            return Split(path, "coco", prefix=prefix)
        return Split(path, "paper_list", prefix=prefix, classes_of=val)

    reduced = {
        level: places.listed(f"coco_train_{name}.txt")
        for level, name in (("0.75", "0.75left"), ("0.4", "0.4left"), ("single", "singlelabel"))
    }
    return places.end(
        lambda: Layout(
            "coco",
            places.home,
            split(train, "train2014/"),
            split(val, "val2014/"),
            {name: split(path, "train2014/") for name, path in reduced.items() if path},
        )
    )


def _find_voc(root: Path) -> Search:
    inside = ("", "VOC2012", "VOCdevkit/VOC2012")
    home = _home(root, ("JPEGImages", "ImageSets"), inside)
    places = _Places("voc", home, root if home else root / inside[-1])
    devkit = "part of the training and validation archive of PASCAL VOC 2012 (VOCdevkit)"
    images = places.folder("JPEGImages", devkit)
    places.file(["ImageSets/Main/train.txt"], devkit)
    places.file(["ImageSets/Main/val.txt"], devkit)

    def split(name: str) -> Split:
        options = ReadOptions(unlisted="absent", split=name)
        return Split(places.home, "voc", options)

    return places.end(lambda: Layout("voc", images, split("train"), split("val")))


def _find_nus(root: Path) -> Search:
    official = ("ImageList", "Groundtruth", "ConceptsList", "Flickr")
    places = _Places("nus", _home(root, official), root)
    if not places.begun and any(places.listed(f"nus_{name}.txt") for name in _NUS_LISTS):
        # The lists alone say little: they come with those of COCO.
        return _released_nus(_Places("nus", _home(root, ("images",)), root))
    site = "from the page of the NUS-WIDE data set"
    images = places.folder("Flickr", f"the images, in a folder for each query, {site}")
    concepts = ["ConceptsList/Concepts81.txt", "Concepts81.txt"]
    places.file(concepts, f"the list of 81 concepts, {site}")
    for name in ("TrainImagelist.txt", "TestImagelist.txt"):
        places.file([f"ImageList/{name}", name], f"a list of images, {site}")
    places.folder("Groundtruth/TrainTestLabels", f"the labels of both parts, {site}")

    def split(name: str) -> Split:
        return Split(places.home, "nus", ReadOptions(unlisted="absent", split=name))

    return places.end(lambda: Layout("nus", images, split("train"), split("test")))


_NUS_CLASSES = 81
_NUS_LISTS = ("train_full", "val")


def _released_nus(places: _Places) -> Search:
    """The lists of the released code; their images lie in one folder."""
    images = places.folder(
        "images", "the images that the released lists name, all in this one folder"
    )
    train, val = (
        places.listed(f"nus_{name}.txt") or places.file([f"nus_{name}.txt"], _RELEASED)
        for name in _NUS_LISTS
    )
    single = places.listed("nus_train_singlelabel.txt")

    def split(path: Path) -> Split:
        return Split(path, "paper_list", numbered=_NUS_CLASSES)

    return places.end(
        lambda: Layout(
            "nus",
            images,
            split(train),
            split(val),
            {} if single is None else {"single": split(single)},
        )
    )


def _find_openimages(root: Path) -> Search:
    def named(name: str) -> list[str]:
        return [f"{folder}{edition}{name}" for folder in ("", "csv/") for edition in ("", "oidv6-")]

    labels = {part: named(f"{part}-annotations-human-imagelabels.csv") for part in _PARTS}
    described = named("class-descriptions.csv")
    home = _home(root, [*described, *labels["train"], *labels["test"]])
    places = _Places("openimages", home, root)
    site = "from the download page of the Open Images data set"
    for part in _PARTS:
        places.folder(part, f"the images of this part, as many as can be had, {site}")
    files = {
        part: places.file(names, f"the human-verified image labels of this part, {site}")
        for part, names in labels.items()
    }
    classes = places.file(described, f"the names of the classes, {site}")

    def split(part: str) -> Split:
        options = ReadOptions(unlisted="absent", classes=classes)
        return Split(files[part], "openimages", options, prefix=f"{part}/")

    return places.end(
        lambda: Layout("openimages", places.home, split("train"), split("test"), partial=True)
    )


_PARTS = ("train", "test")
_TITLES = {"coco": "COCO", "voc": "VOC", "nus": "NUS-WIDE", "openimages": "Open Images"}

DATA_SETS: dict[str, Callable[[Path], Search]] = {
    "coco": _find_coco,
    "voc": _find_voc,
    "nus": _find_nus,
    "openimages": _find_openimages,
}
