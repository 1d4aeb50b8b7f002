"""Where the files of a YOLO data set lie: class names, text files by split, images beside them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hilltop.data.data_errors import data_error
from hilltop.data.formats.source import LabelSource, read_class_file, read_lines
from hilltop.data.formats.text.folder_files import files_in, folders_in, image_files_in

LABELS, IMAGES = "labels", "images"
_ALL = "all"
_NAME_LISTS = ("classes.txt", "obj.names", "classes.names")
_NO_LABELS = re.compile(
    r"(classes|train|valid|val|test|trainval|readme.*|license.*|requirements)\d*\.txt",
    re.IGNORECASE,
)
_DEPTH = 3
_MOST_YAML_BYTES = 1 << 24
_NAMES_KEY = re.compile(r"^names[ \t]*:", re.MULTILINE)


@dataclass(frozen=True)
class YoloFolder:
    """One YOLO data set.

    Attributes:
        root: Its folder.
        splits: Folders with a text file an image, by the name of the split.
        names: The file that names the classes, if there is one.
    """

    root: Path
    splits: dict[str, Path]
    names: Path | None

    def class_names(self) -> dict[int, str] | None:
        """The name of each class number; None where no file says it."""
        if self.names is None:
            return None
        if self.names.suffix.lower() not in (".yaml", ".yml"):
            return dict(enumerate(read_class_file(self.names)))
        return _names_in(self.names, read_yaml(self.names))

    def label_files(self, split: str) -> dict[str, Path]:
        """Text files of a split by the name of the image without its ending."""
        files = files_in(self.splits[split])
        return {
            name[:-4]: path
            for name, path in files.items()
            if name.endswith(".txt") and not _NO_LABELS.fullmatch(name)
        }

    def image_names(self, split: str) -> dict[str, str]:
        """Names of images by their name without the ending: listed ones, else the files there."""
        listed = self.root / f"{split}.txt"
        if listed.is_file():
            names = [line.strip().rpartition("/")[2] for _, line in read_lines(listed)]
        else:
            folder = self.splits[split]
            inside = folder.relative_to(self.root).parts
            parts = [IMAGES if part == LABELS else part for part in inside]
            names = list(image_files_in(self.root.joinpath(*parts)))
        return {name.rpartition(".")[0] or name: name for name in names if name}


def find_yolo(source: LabelSource) -> YoloFolder:
    """Look into a folder, the folder of a YAML file, or the data set that a folder is part of."""
    if source.is_folder:
        root, names = source.path, _names_file(source.path)
        if names is None:
            names = _names_above(root)
    else:
        root, names = _root_of(source.path), source.path
    found = dict(_text_folders(root, _DEPTH))
    below = {folder: path for folder, path in found.items() if LABELS in folder.parts}
    chosen = below or found
    splits = {_split_name(folder): path for folder, path in chosen.items()}
    return YoloFolder(root, splits, names)


def names_classes(path: Path) -> bool:
    """Whether a YAML file has the names of classes at its top."""
    return path.suffix.lower() in (".yaml", ".yml") and bool(
        _NAMES_KEY.search(LabelSource(path).head)
    )


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file as plain values."""
    if path.stat().st_size > _MOST_YAML_BYTES:
        raise data_error(path, "this YAML has more than 16 MiB, too much for names of classes.")
    text = "\n".join(line for _, line in read_lines(path))
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        reason = error.problem or "it is damaged"
        raise data_error(path, f"this is not valid YAML: {reason}.", line=line) from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, OverflowError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise data_error(path, f"this YAML cannot be read: {reason}.") from None


def _names_in(path: Path, content: Any) -> dict[int, str]:
    """The names in a YAML file: a list, or numbers with names."""
    given = content.get("names") if isinstance(content, dict) else None
    pairs = list(enumerate(given)) if isinstance(given, list) else None
    if isinstance(given, dict):
        pairs = [(_number(key), name) for key, name in given.items()]
    usable = pairs and all(number >= 0 and _is_name(name) for number, name in pairs)
    if not pairs or not usable:
        raise data_error(
            path, "expected the names of classes under 'names', as a list or as 'number: name'."
        )
    names = {number: str(name).strip() for number, name in pairs}
    if len(names) < len(pairs) or len(set(names.values())) < len(names):
        raise data_error(path, "a number or name stands twice under 'names'. All must differ.")
    return names


def _number(key: Any) -> int:
    if isinstance(key, str) and key.isascii() and key.isdigit() and len(key) < 10:
        return int(key)
    return key if isinstance(key, int) and not isinstance(key, bool) else -1


def _is_name(name: Any) -> bool:
    return isinstance(name, str | int | float) and bool(str(name).strip())


def _names_file(folder: Path) -> Path | None:
    """The file of names in a folder: YAML before plain lists."""
    files = files_in(folder)
    described = [path for path in files.values() if names_classes(path)]
    listed = [files[name] for name in _NAME_LISTS if name in files]
    return next(iter([*described, *listed]), None)


def _names_above(folder: Path) -> Path | None:
    """For the folder of labels itself or one in it: the names beside the labels."""
    parents = [folder, *folder.resolve().parents][:_DEPTH]
    tops = [parent.parent for parent in parents if parent.name == LABELS]
    found = (_names_file(top) for top in tops)
    return next((path for path in found if path), None)


def _root_of(path: Path) -> Path:
    """The folder that a YAML file describes: that of its ``path`` if it lies inside, else its own.

    What stands in the file never leads out of the folder it lies in.
    """
    content = read_yaml(path)
    named = content.get("path") if isinstance(content, dict) else None
    here = path.parent.resolve()
    if isinstance(named, str) and "\0" not in named:
        inside = (here / named).resolve()
        if inside.is_relative_to(here) and inside.is_dir():
            return inside
    return path.parent


def _text_folders(folder: Path, depth: int, inside: Path = Path()) -> list[tuple[Path, Path]]:
    """Folders that hold text files of labels, with their path in the data set."""
    names = files_in(folder)
    own = any(name.endswith(".txt") and not _NO_LABELS.fullmatch(name) for name in names)
    found = [(inside, folder)] if own else []
    if depth:
        for name, child in folders_in(folder).items():
            found += _text_folders(child, depth - 1, inside / name)
    return found


def _split_name(folder: Path) -> str:
    return "/".join(part for part in folder.parts if part != LABELS) or _ALL
