"""Where the files of a PASCAL VOC data set lie: image sets by class and split, and annotations."""

from __future__ import annotations

from pathlib import Path

from hilltop.errors import OptionNeeded

SETS = Path("ImageSets") / "Main"
ANNOTATIONS = "Annotations"


def find_devkit(path: Path) -> Path:
    """Return the folder of one data set: this one, or the only one in it.

    Raises:
        OptionNeeded: There are several, such as VOC2007 and VOC2012.
    """
    if (path / SETS).is_dir() or (path / ANNOTATIONS).is_dir():
        return path
    inside = [child for child in sorted(path.iterdir()) if (child / SETS).is_dir()]
    if len(inside) > 1:
        names = ", ".join(child.name for child in inside)
        raise OptionNeeded(f"{path}: there are several data sets here: {names}. Name one of them.")
    return inside[0] if inside else path


def find_sets(path: Path) -> Path:
    """Return the folder of image sets: in a devkit, in ``ImageSets``, or this one itself."""
    for inner in (path / SETS.name, path):
        if path.name in SETS.parts and inner.is_dir() and any(inner.glob("*_*.txt")):
            return inner
    return find_devkit(path) / SETS


def class_files(files: dict[str, Path]) -> dict[str, dict[str, Path]]:
    """Files by split and class, from names such as ``cat_train.txt``."""
    stems = {name.removesuffix(".txt"): path for name, path in files.items() if _is_list(name)}
    plain = {stem for stem in stems if "_" not in stem}
    found: dict[str, dict[str, Path]] = {}
    for stem, path in stems.items():
        name, _, split = stem.rpartition("_")
        if name and split and (split in plain or not plain):
            found.setdefault(split, {})[name] = path
    return found


def split_lists(files: dict[str, Path]) -> dict[str, Path]:
    """Files that name the images of a split, such as ``train.txt``."""
    stems = {name.removesuffix(".txt"): path for name, path in files.items() if _is_list(name)}
    return {
        stem: path
        for stem, path in stems.items()
        if "_" not in stem or stem.rpartition("_")[2] not in stems
    }


def _is_list(name: str) -> bool:
    return name.endswith(".txt")
