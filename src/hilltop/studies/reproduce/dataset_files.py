"""The data sets of the paper, unpacked as they come: what lies where, and what is missing.

Only names of files and folders are looked at here; ``official.py`` reads the labels.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Callable, Mapping
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
        names: What class numbers stand for: the classes of another label file in their order, or
            so many classes that have no names.
        flat: Whether images lie in one folder, and not in those that ids name.
    """

    path: Path
    format: str
    options: ReadOptions = COMPLETE_LABELS
    prefix: str = ""
    names: Path | int | None = None
    flat: bool = False


@dataclass(frozen=True)
class DatasetFiles:
    """Where the parts of a data set lie.

    Attributes:
        images: The folder with its images.
        train: Complete training labels.
        val: Labels of the test images.
        reduced: Released training labels by the level that they were reduced to.
        partial: Whether images that are not there are left out, as in the paper, where many could
            no longer be had.
        note: What was chosen where the paper is not clear.
    """

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
        open_images: Which labels of Open Images are looked for: one of :data:`OPEN_IMAGES`.
        home: Where a part that is missing should lie.
        layout: Its parts, or None if some are missing.
        missing: A sentence for each part that is missing, with where to get it.
        begun: Whether any part is there that tells this data set from others.
    """

    def __init__(self, data: str, tree: FolderTree, open_images: str = "boxes") -> None:
        """Start with nothing found."""
        self.title, self.tree, self.open_images = data_title(data), tree, open_images
        self.home = tree.root
        self.layout: DatasetFiles | None = None
        self.missing: list[str] = []
        self.begun = False

    def near(self, *found: Path | None) -> None:
        """Expect parts that are missing beside the first one that is there."""
        self.home = next((path.parent for path in found if path), self.home)

    def need(self, found: Path | None, name: str, what: str, *, telling: bool = True) -> Path:
        """Note that a file or folder is there, or that it is missing, and return where it belongs.

        Args:
            found: Where it is.
            name: What it is called; a file has an ending.
            what: What it is in words, and where it comes from.
            telling: Whether it comes with no other data set.
        """
        self.begun = self.begun or (telling and found is not None)
        if found is None:
            kind, path = "file" if Path(name).suffix else "folder", str(self.home / name)
            packed = self.tree.file(f"{name}.zip")
            unpack = f"; unpack {str(packed)!r}" if packed else ""
            self.missing.append(f"{self.title}: there is no {kind} {path!r}: {what}{unpack}.")
        return found or self.home / name

    def need_file(self, name: str, what: str, *, telling: bool = True) -> Path:
        """The same for a file, which may lie in any folder."""
        return self.need(self.tree.file(Path(name).name), name, what, telling=telling)

    def need_folder(self, name: str, what: str, *, telling: bool = True) -> Path:
        """The same for a folder, which may lie in any other one."""
        return self.need(self.tree.folder(Path(name).name), name, what, telling=telling)


def find_data(data: str, root: Path | FolderTree, *, open_images: str = "boxes") -> Search:
    """Look for a data set of the paper in a folder and those in it.

    Args:
        data: Short name: one of :data:`DATA_SETS`.
        root: Where to look.
        open_images: Which labels of Open Images: one of :data:`OPEN_IMAGES`.
    """
    tree = root if isinstance(root, FolderTree) else FolderTree(root)
    search = Search(data, tree, open_images)
    found = DATA_SETS[data].find(search)
    search.layout = None if search.missing else found
    return search


def data_title(data: str) -> str:
    """What a data set is called."""
    return DATA_SETS[data].title if data in DATA_SETS else data


def _leads(folder: Path, part: Path) -> str:
    """What leads from a folder to one in it, to stand before a name."""
    return "" if part == folder else f"{part.relative_to(folder).as_posix()}/"


_RELEASED = "one of the label lists in the folder dataset of the code released with the paper"


def _find_coco(search: Search) -> DatasetFiles:
    tree, archive = search.tree, "from the download page of the COCO data set"
    annotations = "annotations/instances_{}2014.json"
    told = f"it is part of the archive of 2014 train and validation annotations, {archive}"
    search.near(*map(tree.folder, ("train2014", "val2014")))
    images = [
        search.need_folder(f"{part}2014", f"the archive of 2014 {word} images, {archive}")
        for part, word in (("train", "training"), ("val", "validation"))
    ]
    val = search.need_file(annotations.format("val"), told)
    train = tree.file("coco_train_full.txt") or search.need_file(
        annotations.format("train"), f"{told}; coco_train_full.txt, {_RELEASED}, does as well"
    )
    if search.missing and tree.folder("train2017"):
        search.missing.append(
            f"{search.title}: the paper uses the edition of 2014; that of 2017, which is there,"
            " divides the same images differently."
        )
    above = Path(os.path.commonpath([image.parent for image in images]))

    def split(path: Path, folder: Path) -> Split:
        if path.suffix == ".json":
            return Split(path, "coco", prefix=_leads(above, folder))
        return Split(path, "paper_list", prefix=_leads(above, folder), names=val)

    lists = {"0.75": "0.75left", "0.4": "0.4left", "single": "singlelabel"}
    reduced = {
        level: split(path, images[0])
        for level, name in lists.items()
        if (path := tree.file(f"coco_train_{name}.txt"))
    }
    return DatasetFiles(above, split(train, images[0]), split(val, images[1]), reduced)


def _find_voc(search: Search) -> DatasetFiles:
    homes = {path.parent for mark in ("JPEGImages", "ImageSets")
             for path in search.tree.folders(mark)}  # fmt: skip
    lists = ("ImageSets/Main/train.txt", "ImageSets/Main/val.txt")

    def rank(home: Path) -> tuple[bool, bool, int, Path]:
        """Best the year of the paper with its lists, which the test archive lacks; not too deep."""
        whole = all((home / name).is_file() for name in lists)
        return "2012" not in home.name, not whole, len(home.parts), home

    # Those of other years are other data sets.
    known = [home for home in homes
             if "2012" in home.name or not home.name.casefold().startswith("voc20")]  # fmt: skip
    search.home = home = min(known, key=rank, default=search.tree.root / "VOCdevkit" / "VOC2012")
    devkit = "part of the training and validation archive of PASCAL VOC 2012 (VOCdevkit)"
    for name in ("JPEGImages", *lists):
        search.need(home / name if (home / name).exists() else None, name, devkit)
    train, val = (Split(home, "voc", ReadOptions(unlisted="absent", split=part))
                  for part in ("train", "val"))  # fmt: skip
    return DatasetFiles(home / "JPEGImages", train, val)


_NUS_CLASSES = 81
_NUS_LISTS = ("nus_train_full.txt", "nus_val.txt")


def _find_nus(search: Search) -> DatasetFiles | None:
    tree, site = search.tree, "from the page of the NUS-WIDE data set"
    files = {
        "ConceptsList/Concepts81.txt": "the list of 81 concepts",
        "ImageList/TrainImagelist.txt": "a list of images",
        "ImageList/TestImagelist.txt": "a list of images",
    }
    known = tree.file(*(Path(name).name for name in files)) or tree.folder("TrainTestLabels")
    if known is None and tree.file(*_NUS_LISTS):
        return _find_released_nus(search)
    official = ("ImageList", "Groundtruth", "ConceptsList", "Flickr")
    search.near(*map(tree.folder, official), known)
    parts = [search.need_file(name, f"{what}, {site}") for name, what in files.items()]
    labels = "Groundtruth/TrainTestLabels"
    parts.append(search.need_folder(labels, f"the labels of both parts, {site}"))
    home = Path(os.path.commonpath([part.parent for part in parts]))
    above = [path for path in tree.folders("images") if path.parent in (home, *home.parents)]
    nearest = max(above, key=lambda path: len(path.parts), default=None)
    found, what = tree.folder("Flickr") or nearest, "the images, in a folder for each query"
    images = search.need(found, "Flickr", f"{what}, {site}", telling=False)
    if search.missing:
        return None
    flat = not any(child.is_dir() for child in images.iterdir())
    train, test = (
        Split(home, "nus", ReadOptions(unlisted="absent", split=name), flat=flat)
        for name in ("train", "test")
    )
    return DatasetFiles(images, train, test)


def _find_released_nus(search: Search) -> DatasetFiles:
    """The lists of the released code; their images lie in one folder.

    The lists alone say little: they come with those of COCO.
    """
    tree = search.tree
    found = next((path for path in tree.folders("images") if has_image(path)), None)
    what = "the images that the released lists name, all in this one folder"
    images = search.need(found, "images", what)
    lists = [search.need_file(name, _RELEASED, telling=False) for name in _NUS_LISTS]
    train, val = (Split(path, "paper_list", names=_NUS_CLASSES) for path in lists)
    single = tree.file("nus_train_singlelabel.txt")
    reduced = {"single": dataclasses.replace(train, path=single)} if single else {}
    return DatasetFiles(images, train, val, reduced)


@dataclass(frozen=True)
class _OpenImagesForm:
    """One of the two kinds of Open Images labels that can stand behind the paper's numbers.

    Attributes:
        parts: The parts to train on and to judge by.
        files: Names of a label file, with ``{part}``; the edition stands before them.
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
        return [name.format(part=part) for name in self.files]


OPEN_IMAGES = {
    "boxes": _OpenImagesForm(
        ("train", "validation"),
        ("*{part}-annotations-bbox.csv", "{part}/labels/detections.csv"),
        ("*class-descriptions-boxable.csv", "metadata/classes.csv"),
        "the boxes of this part",
        "Classes with a box are labels and the validation part is the test set, which is inferred"
        " from the paper's number of test images; --open-images labels takes human-verified"
        " image labels and the test part.",
    ),
    "labels": _OpenImagesForm(
        ("train", "test"),
        (
            "*{part}-annotations-human-imagelabels.csv",
            "{part}/annotations-human.csv",
            "{part}/labels/classifications.csv",
        ),
        ("*class-descriptions.csv", "metadata/classes.csv"),
        "the human-verified image labels of this part",
        "Human-verified image labels and the test part; --open-images boxes takes what the paper"
        " most probably used.",
    ),
}
"""The labels of Open Images that :func:`find_data` can look for."""


def _find_openimages(search: Search) -> DatasetFiles | None:
    form, tree = OPEN_IMAGES[search.open_images], search.tree
    site = "from the download page of the Open Images data set"
    wanted = [*((form.labels(part), form.what) for part in form.parts)]
    wanted.append(([*form.classes], "the names of the classes"))
    known = tree.file(*itertools.chain(*(names for names, _ in wanted)))
    search.home = _outside_parts(known) if known else tree.root
    *files, classes = (
        search.need(tree.file(*names), names[0].removeprefix("*"), f"{what}, {site}")
        for names, what in wanted
    )
    what = f"the images of this part, as many as can be had, {site}"
    folders = [
        search.need(_images_of(part, search.home, tree), part, what, telling=False)
        for part in form.parts
    ]
    for name, other in OPEN_IMAGES.items():
        if search.missing and other != form and tree.file(*other.labels("train")):
            search.missing.append(
                f"{search.title}: --open-images {name} reads the {name} that are there instead."
            )
    if search.missing:
        return None
    direct = all(map(has_image, folders))
    above = Path(os.path.commonpath([folder.parent if direct else folder for folder in folders]))
    options = ReadOptions(unlisted="absent", classes=classes)
    # In folders of these, images are looked for by their names, which differ in all parts.
    train, test = (
        Split(file, "openimages", options, prefix=_leads(above, folder) if direct else "")
        for file, folder in zip(files, folders, strict=True)
    )
    return DatasetFiles(above, train, test, partial=True, note=form.note)


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


@dataclass(frozen=True)
class DataSet:
    """A data set of the paper.

    Attributes:
        title: What it is called.
        sizes: Training images, test images and classes, as the paper's section on data has them.
        find: Looks for its parts; what it returns counts only if none is missing.
    """

    title: str
    sizes: tuple[int, int, int]
    find: Callable[[Search], DatasetFiles | None]


DATA_SETS = {
    "coco": DataSet("COCO", (82_081, 40_137, 80), _find_coco),
    "voc": DataSet("VOC", (5_717, 5_823, 20), _find_voc),
    "nus": DataSet("NUS-WIDE", (119_103, 50_720, 81), _find_nus),
    "openimages": DataSet("Open Images", (1_742_125, 37_306, 567), _find_openimages),
}
"""The paper's data sets by the short names that recipes have."""
