"""The data sets of the paper, unpacked as they come: what lies where, and what is missing.

Only names of files and folders are looked at here; ``official.py`` reads the labels.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hilltop.data import ReadOptions
from hilltop.data.folders import FolderTree, has_image

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
        flat: Whether images lie in one folder, and not in those that ids name.
    """

    path: Path
    format: str
    options: ReadOptions = COMPLETE_LABELS
    prefix: str = ""
    classes_of: Path | None = None
    numbered: int | None = None
    flat: bool = False


@dataclass(frozen=True)
class DatasetFiles:
    """Where the parts of a data set lie.

    Attributes:
        data: Its short name, as recipes know it.
        images: The folder with its images.
        train: Complete training labels.
        val: Labels of the test images.
        reduced: Released training labels by the level that they were reduced to.
        partial: Whether images that are not there are left out, as in the paper, where many could
            no longer be had.
        note: What was chosen where the paper is not clear.
    """

    data: str
    images: Path
    train: Split
    val: Split
    reduced: Mapping[str, Split] = field(default_factory=dict)
    partial: bool = False
    note: str = ""


class Search:
    """Looks for the parts of a data set below a folder.

    Attributes:
        title: What the data set is called.
        tree: What lies below the folder.
        home: Where a part that is missing should lie.
        layout: Its parts, or None if some are missing.
        missing: A sentence for each part that is missing, with where to get it.
        begun: Whether any part is there that tells this data set from others.
    """

    def __init__(self, data: str, tree: FolderTree) -> None:
        """Start with nothing found."""
        self.title, self.tree, self.home = data_title(data), tree, tree.root
        self.layout: DatasetFiles | None = None
        self.missing: list[str] = []
        self.begun = False

    def near(self, found: Path | None) -> None:
        """Expect parts that are missing beside one that is there."""
        self.home = found.parent if found else self.home

    def folder(self, name: str, what: str) -> Path:
        """A folder; ``what`` says in words what it is and where it comes from."""
        return self.need("folder", self.tree.folder(name), name, what)

    def file(self, names: Sequence[str], what: str, *, telling: bool = True) -> Path:
        """The first of some files that is there."""
        return self.need("file", self.tree.file(*names), names[0], what, telling=telling)

    def need(
        self, kind: str, found: Path | None, name: str, what: str, *, telling: bool = True
    ) -> Path:
        """Note that a part is there, or that it is missing.

        A part that is not ``telling`` comes with other data sets too.
        """
        self.begun = self.begun or (telling and found is not None)
        if found is None:
            path = str(self.home / name)
            self.missing.append(f"{self.title}: there is no {kind} {path!r}: {what}.")
        return found or self.home / name


def find_data(data: str, root: Path | FolderTree, *, open_images: str = "boxes") -> Search:
    """Look for a data set of the paper in a folder and those in it.

    Args:
        data: Short name: one of :data:`DATA_SETS`.
        root: Where to look.
        open_images: Which labels of Open Images: one of :data:`OPEN_IMAGES`.
    """
    search = Search(data, root if isinstance(root, FolderTree) else FolderTree(root))
    if data == "openimages":
        layout = _find_openimages(search, open_images)
    else:
        layout = DATA_SETS[data](search)
    if not search.missing:
        search.layout = layout()
    return search


def data_title(data: str) -> str:
    """What a data set is called."""
    return _TITLES.get(data, data)


def _leads(folder: Path, part: Path) -> str:
    """What leads from a folder to one in it, to stand before a name."""
    return "" if part == folder else f"{part.relative_to(folder).as_posix()}/"


FoundLayout = Callable[[], DatasetFiles]
"""Puts parts together, once all of them are there."""
_RELEASED = "one of the label lists in the folder dataset of the code released with the paper"


def _find_coco(search: Search) -> FoundLayout:
    tree = search.tree
    search.near(next(filter(None, map(tree.folder, ("train2014", "val2014", "annotations"))), None))
    archive = "from the download page of the COCO data set"
    images = [
        search.folder(f"{part}2014", f"the archive of 2014 {name} images, {archive}")
        for part, name in (("train", "training"), ("val", "validation"))
    ]
    annotations = f"of the archive of 2014 train and validation annotations, {archive}"
    val = search.file(_instances("val"), f"it is part {annotations}")
    train = tree.file("coco_train_full.txt") or search.file(
        _instances("train"),
        f"it is part {annotations}; coco_train_full.txt, {_RELEASED}, does as well",
    )
    above = Path(os.path.commonpath([image.parent for image in images]))

    def split(path: Path, folder: Path) -> Split:
        if path.suffix == ".json":
            return Split(path, "coco", prefix=_leads(above, folder))
        return Split(path, "paper_list", prefix=_leads(above, folder), classes_of=val)

    lists = {"0.75": "0.75left", "0.4": "0.4left", "single": "singlelabel"}
    reduced = {
        level: split(path, images[0])
        for level, name in lists.items()
        if (path := tree.file(f"coco_train_{name}.txt"))
    }
    return lambda: DatasetFiles(
        "coco", above, split(train, images[0]), split(val, images[1]), reduced
    )


def _instances(part: str) -> list[str]:
    name = f"instances_{part}2014.json"
    return [f"annotations/{name}", name]


def _find_voc(search: Search) -> FoundLayout:
    # Sorting is stable: of several of that year, the least deep one.
    homes = sorted(_voc_homes(search.tree), key=lambda home: "2012" not in home.name)
    search.home = home = homes[0] if homes else search.tree.root / "VOCdevkit" / "VOC2012"
    devkit = "part of the training and validation archive of PASCAL VOC 2012 (VOCdevkit)"
    images = home / "JPEGImages"
    search.need("folder", images if images.is_dir() else None, images.name, devkit)
    for part in ("train", "val"):
        name = f"ImageSets/Main/{part}.txt"
        search.need("file", home / name if (home / name).is_file() else None, name, devkit)
    train, val = (Split(home, "voc", ReadOptions(unlisted="absent", split=part))
                  for part in ("train", "val"))  # fmt: skip
    return lambda: DatasetFiles("voc", images, train, val)


def _voc_homes(tree: FolderTree) -> Iterator[Path]:
    """Folders with a part of the devkit; those of other years are other data sets."""
    for mark in ("JPEGImages", "ImageSets"):
        for path in tree.folders(mark):
            name = path.parent.name.casefold()
            if "2012" in name or not name.startswith("voc20"):
                yield path.parent


def _find_nus(search: Search) -> FoundLayout:
    tree = search.tree
    part = tree.file("TrainImagelist.txt", "TestImagelist.txt", "Concepts81.txt")
    part = part or tree.folder("TrainTestLabels")
    if part is None and any(tree.file(f"nus_{name}.txt") for name in _NUS_LISTS):
        return _find_released_nus(search)
    official = ("ImageList", "Groundtruth", "ConceptsList", "Flickr")
    search.near(next(filter(None, map(tree.folder, official)), part))
    site = "from the page of the NUS-WIDE data set"
    parts = [
        search.file(["ConceptsList/Concepts81.txt", "Concepts81.txt"],
                    f"the list of 81 concepts, {site}"),
        *(search.file([f"ImageList/{name}", name], f"a list of images, {site}")
          for name in ("TrainImagelist.txt", "TestImagelist.txt")),
        search.need("folder", tree.folder("TrainTestLabels"), "Groundtruth/TrainTestLabels",
                    f"the labels of both parts, {site}"),
    ]  # fmt: skip
    home = Path(os.path.commonpath([part.parent for part in parts]))
    above = [path for path in tree.folders("images") if path.parent in (home, *home.parents)]
    nearest = max(above, key=lambda path: len(path.parts), default=None)
    found, what = tree.folder("Flickr") or nearest, "the images, in a folder for each query"
    images = search.need("folder", found, "Flickr", f"{what}, {site}", telling=False)

    def layout() -> DatasetFiles:
        flat = not any(child.is_dir() for child in images.iterdir())
        train, test = (
            Split(home, "nus", ReadOptions(unlisted="absent", split=name), flat=flat)
            for name in ("train", "test")
        )
        return DatasetFiles("nus", images, train, test)

    return layout


_NUS_CLASSES = 81
_NUS_LISTS = ("train_full", "val")


def _find_released_nus(search: Search) -> FoundLayout:
    """The lists of the released code; their images lie in one folder.

    The lists alone say little: they come with those of COCO.
    """
    found = next((path for path in search.tree.folders("images") if has_image(path)), None)
    what = "the images that the released lists name, all in this one folder"
    images = search.need("folder", found, "images", what)
    train, val = (search.file([f"nus_{name}.txt"], _RELEASED, telling=False) for name in _NUS_LISTS)
    single = search.tree.file("nus_train_singlelabel.txt")
    paths = {"train": train, "val": val} | ({"single": single} if single else {})
    splits = {name: Split(path, "paper_list", numbered=_NUS_CLASSES)
              for name, path in paths.items()}  # fmt: skip
    return lambda: DatasetFiles("nus", images, splits.pop("train"), splits.pop("val"), splits)


_EDITIONS = ("", "oidv6-", "oidv7-")


@dataclass(frozen=True)
class _OpenImagesForm:
    """One of the two kinds of Open Images labels that can stand behind the paper's numbers.

    Attributes:
        parts: The parts to train on and to judge by.
        files: Names of a label file, with ``{part}`` and ``{edition}``.
        classes: Names of the file with the names of the classes.
        what: The labels, in words.
        note: What the plan says of this choice.
    """

    parts: tuple[str, str]
    files: tuple[str, ...]
    classes: tuple[str, ...]
    what: str
    note: str

    def labels(self, part: str) -> list[str]:
        """Names that the label file of a part may have."""
        return _editions(self.files, part)


def _editions(names: Sequence[str], part: str = "") -> list[str]:
    filled = [name.format(part=part, edition=edition) for name in names for edition in _EDITIONS]
    return list(dict.fromkeys(filled))


OPEN_IMAGES = {
    "boxes": _OpenImagesForm(
        ("train", "validation"),
        ("{edition}{part}-annotations-bbox.csv", "{part}/labels/detections.csv"),
        ("{edition}class-descriptions-boxable.csv", "metadata/classes.csv"),
        "the boxes of this part",
        "Classes with a box are labels and the validation part is the test set, which is inferred"
        " from the paper's number of test images; --open-images labels takes human-verified"
        " image labels and the test part.",
    ),
    "labels": _OpenImagesForm(
        ("train", "test"),
        (
            "{edition}{part}-annotations-human-imagelabels.csv",
            "{part}/annotations-human.csv",
            "{part}/labels/classifications.csv",
        ),
        ("{edition}class-descriptions.csv", "metadata/classes.csv"),
        "the human-verified image labels of this part",
        "Human-verified image labels and the test part; --open-images boxes takes what the paper"
        " most probably used.",
    ),
}
"""The labels of Open Images that :func:`find_data` can look for."""


def _find_openimages(search: Search, open_images: str = "boxes") -> FoundLayout:
    form, tree = OPEN_IMAGES[open_images], search.tree
    site = "from the download page of the Open Images data set"
    labels, described = [form.labels(part) for part in form.parts], _editions(form.classes)
    known = tree.file(*itertools.chain(*labels, described))
    search.home = _outside_parts(known) if known else tree.root
    files = [search.file(names, f"{form.what}, {site}") for names in labels]
    classes = search.file(described, f"the names of the classes, {site}")
    found = [_images_of(part, search.home, tree) for part in form.parts]
    for part, folder in zip(form.parts, found, strict=True):
        what = f"the images of this part, as many as can be had, {site}"
        search.need("folder", folder, part, what, telling=False)
    for name, other in OPEN_IMAGES.items():
        if search.missing and name != open_images and tree.file(*other.labels("train")):
            search.missing.append(
                f"{search.title}: --open-images {name} reads the {name} that are there instead."
            )

    def layout() -> DatasetFiles:
        folders = [folder for folder in found if folder is not None]
        direct = all(map(has_image, folders))
        above = Path(
            os.path.commonpath([folder.parent if direct else folder for folder in folders])
        )
        options = ReadOptions(unlisted="absent", classes=classes)
        # In folders of these, images are looked for by their names, which differ in all parts.
        train, test = (
            Split(file, "openimages", options, prefix=_leads(above, folder) if direct else "")
            for file, folder in zip(files, folders, strict=True)
        )
        return DatasetFiles("openimages", above, train, test, partial=True, note=form.note)

    return layout


def _outside_parts(file: Path) -> Path:
    """The folder of a file; outside of a folder that holds one part alone."""
    parts = ("train", "validation", "test")
    inside = [path for path in file.parents if path.name.casefold() in parts]
    return inside[-1].parent if inside else file.parent


def _images_of(part: str, home: Path, tree: FolderTree) -> Path | None:
    """The folder with the images of a part, or with the folders of its sixteen archives."""
    above = [folder for folder in (home, *home.parents) if folder.is_relative_to(tree.root)]
    for place in (folder / name for folder in above for name in ("", "images", "data")):
        found = next((path for path in tree.folders(part) if path.parent == place), None)
        if found is not None or next(place.glob(f"{part}_[0-9a-f]"), None) is not None:
            return found or place
    return None


_TITLES = {"coco": "COCO", "voc": "VOC", "nus": "NUS-WIDE", "openimages": "Open Images"}

PAPER_SIZES = {
    "coco": (82_081, 40_137, 80),
    "voc": (5_717, 5_823, 20),
    "nus": (119_103, 50_720, 81),
    "openimages": (1_742_125, 37_306, 567),
}
"""Training images, test images and classes, as the paper's section on data has them."""

DATA_SETS: dict[str, Callable[[Search], FoundLayout]] = {
    "coco": _find_coco,
    "voc": _find_voc,
    "nus": _find_nus,
    "openimages": _find_openimages,
}
