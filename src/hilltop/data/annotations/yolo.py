"""YOLO data sets: class names in YAML or a list, and for each image a text file of its objects.

A line is ``class x y width height``, perhaps with a confidence, or ``class x y x y ...`` around a
segment; the class counts once an image. An empty text file is an image on which nothing was found;
an image without a text file is not part of the table.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from hilltop.checks import pluralize
from hilltop.data.content import Source, read_class_file, read_lines
from hilltop.data.data_errors import ErrorCollector, data_error
from hilltop.data.folders import (
    choose_split,
    files_in,
    folders_in,
    image_files_in,
    new_folder,
    write_lines,
)
from hilltop.data.format import (
    BOX_NOTE,
    Changes,
    FilePatch,
    Format,
    Patched,
    check_file_words,
    check_names,
    check_present_only,
)
from hilltop.data.label_table import Collector, LabelTable, State
from hilltop.data.layout import Layout
from hilltop.data.small_files import read_yaml

LABELS, IMAGES = "labels", "images"
_SPLIT = "train"
_WHOLE_IMAGE = "0.5 0.5 1 1"
_LINE = re.compile(r"[0-9]{1,9}(\s+-?[0-9]*\.?[0-9]+(?:e-?[0-9]+)?){4,}\s*", re.IGNORECASE)
_PEEKED = 20
_MOST_CLASSES = 100_000
_NUMBERS_OF_A_BOX = 4
_ALL = "all"
_NAME_LISTS = ("classes.txt", "obj.names", "classes.names")
_NO_LABELS = re.compile(
    r"(classes|train|valid|val|test|trainval|readme.*|license.*|requirements)\d*\.txt",
    re.IGNORECASE,
)
_DEPTH = 3
_MOST_YAML_BYTES = 1 << 24
_NAMES_KEY = re.compile(r"^names[ \t]*:", re.MULTILINE)


def matches(source: Source) -> bool:
    """Whether this is a YAML file of class names, or a folder with text files of objects."""
    if not source.is_folder:
        return source.path.is_file() and names_classes(source.path)
    found = find_yolo(source)
    files = [path for split in found.splits for path in found.label_files(split).values()]
    heads = (Source(path).head.strip() for path in itertools.islice(files, _PEEKED))
    first = next((head for head in heads if head), None)
    if first is None:
        return bool(files) and found.names is not None and names_classes(found.names)
    return _LINE.fullmatch(first.partition("\n")[0]) is not None


def read(source: Source, layout: Layout) -> LabelTable:
    """Read one split of a data set, given its folder or its YAML file.

    Image ids are the names of the images where they are listed or lie beside the labels, else the
    names of the text files. Classes are named by the class list, by the data set, or numbered.
    """
    found = find_yolo(source)
    if not found.splits:
        raise data_error(source.path, "there are no text files of labels here or in 'labels'.")
    split = choose_split(source.path, found.splits, layout.split)
    files, images = found.label_files(split), found.image_names(split)
    errors = ErrorCollector(source.path)
    objects = {name: _read_objects(path, errors.found) for name, path in files.items()}
    errors.check()
    names = _class_names(found, layout, objects)
    collector = Collector(source.path, list(names.values()))
    in_order = [name for name in images if name in files]
    for name in [*in_order, *(name for name in files if name not in images)]:
        row = collector.image(images.get(name, name))
        for number, line in objects[name].items():
            if number in names:
                collector.label(row, names[number], State.PRESENT)
            else:
                ErrorCollector(files[name], collector.errors.found).add(
                    f"class number {number} has no name (there are {len(names)})."
                    " Correct it, or name all classes with --classes.",
                    line=line,
                )
    collector.errors.check()
    return collector.table(
        unlisted=layout.unlisted,
        notes=_notes(len(set(images) - set(files))),
        format="yolo",
        split=split,
    )


def write(table: LabelTable, path: Path, lossy: bool) -> Layout:
    """Write ``data.yaml``, ``train.txt`` with the images, and a text file for each of them.

    Boxes are not known to a table: every object has that of the whole image.
    """
    check_present_only(table, path, lossy)
    images = table.images.to_pylist()
    check_file_words(path, tuple(images), kind="image")
    check_names(path, "class", table.classes, without="")
    stems = [name.rpartition(".")[0] or name for name in images]
    if len(set(stems)) < len(stems):
        raise data_error(path, "this format cannot express images that differ only in the ending.")
    if not images or not table.classes:
        raise data_error(path, "this format cannot express a table without images or classes.")
    with new_folder(path) as root:
        _write_folder(table, root, images, stems)
    return Layout("yolo", unlisted=table.unlisted)


def patch(asked: FilePatch) -> Patched:
    """Write the split that was read with labels added or taken out; all other lines stay."""
    said, source, layout = asked.without_absents(), asked.source, asked.layout
    found = find_yolo(source)
    split = choose_split(source.path, found.splits, layout.split)
    files, listed = found.label_files(split), found.image_names(split)
    objects = {name: _read_objects(path, []) for name, path in files.items()}
    named = _class_names(found, layout, objects)
    number = {name: at for at, name in named.items()}
    stem_of = {listed.get(stem, stem): stem for stem in files}
    images = asked.table.images.to_pylist()
    new = _described_files(named, images)
    for image in images:
        stem = stem_of[image]
        raw = files[stem].read_bytes()
        new[f"{LABELS}/{_SPLIT}/{stem}.txt"] = _with_lines(raw, said.of(image), number)
    read_as = replace(layout, split=None, classes=None, codes=())
    done = said.patched(new, notes=[BOX_NOTE] if said.changes.added else [])
    return replace(done, layout=read_as)


def _described_files(named: dict[int, str], images: Sequence[str]) -> dict[str, bytes]:
    """``data.yaml`` with the names of the classes, and ``train.txt`` with the images."""
    content = {"path": ".", "train": f"{_SPLIT}.txt", "names": named}
    about = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    listed = "".join(f"./{IMAGES}/{_SPLIT}/{name}\n" for name in images)
    return {"data.yaml": about.encode(), f"{_SPLIT}.txt": listed.encode()}


def _with_lines(raw: bytes, changes: Changes, number: dict[str, int]) -> bytes:
    """A file of objects without those of wrong labels, and with new ones at its end."""
    if not changes:
        return raw
    gone = {str(number[one.class_name]) for one in changes if one.state != State.PRESENT}
    lines = raw.decode("utf-8").split("\n")
    kept = [
        line
        for line in lines
        if not line.split()
        or line.split()[0].lstrip("0") not in {name.lstrip("0") for name in gone}
    ]
    text = "\n".join(kept)
    new = [f"{number[name]} {_WHOLE_IMAGE}\n" for name in changes.added]
    if new and text and not text.endswith("\n"):
        text += "\n"
    return (text + "".join(new)).encode()


def _write_folder(table: LabelTable, root: Path, images: list[str], stems: list[str]) -> None:
    folder = root / LABELS / _SPLIT
    folder.mkdir(parents=True)
    for name, content in _described_files(dict(enumerate(table.classes)), images).items():
        (root / name).write_bytes(content)
    number = {name: at for at, name in enumerate(table.classes)}
    for row, stem in enumerate(stems):
        lines = (f"{number[name]} {_WHOLE_IMAGE}" for name in table.labels_of(row))
        write_lines(folder / f"{stem}.txt", lines)


def _class_names(
    found: YoloFolder, layout: Layout, objects: dict[str, dict[int, int]]
) -> dict[int, str]:
    if layout.classes is not None:
        return dict(enumerate(layout.classes))
    named = found.class_names()
    if named is not None:
        return named
    highest = max((max(numbers, default=-1) for numbers in objects.values()), default=-1)
    return dict(enumerate(map(str, range(min(highest, _MOST_CLASSES - 1) + 1))))


def _read_objects(path: Path, found: list[str]) -> dict[int, int]:
    """Class numbers in one file, each with the line it first stands in."""
    errors = ErrorCollector(path, found)
    numbers: dict[int, int] = {}
    for line, text in read_lines(path):
        words = text.split()
        if not words:
            continue
        if len(words) > _NUMBERS_OF_A_BOX and _is_class(words[0]) and _are_numbers(words[1:]):
            numbers.setdefault(int(words[0]), line)
        else:
            errors.add(
                "expected a class number and a box or segment such as '0 0.5 0.5 0.2 0.3',"
                f" but got {text!r:.60}.",
                line=line,
            )
    return numbers


def _is_class(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 10


def _are_numbers(words: list[str]) -> bool:
    try:
        return all(math.isfinite(float(word)) for word in words)
    except ValueError:
        return False


def _notes(without: int) -> list[str]:
    if not without:
        return []
    have = pluralize(without, "image has", "images have")
    return [f"{have} no text file of labels and {'is' if without == 1 else 'are'} left out."]


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
            return dict(enumerate(read_class_file(self.names)[0]))
        return _names_in(self.names, _read_yaml(self.names))

    def label_files(self, split: str) -> dict[str, Path]:
        """Text files of a split by the name of the image without its ending."""
        files = files_in(self.splits[split])
        return {name[:-4]: path for name, path in files.items() if _may_hold_objects(path)}

    def image_names(self, split: str) -> dict[str, str]:
        """Names of images by their name without the ending: listed ones, else the files there."""
        listed = self.root / f"{split}.txt"
        if listed.is_file():
            names = [line.strip() for _, line in read_lines(listed)]
        else:
            folder = self.splits[split]
            inside = folder.relative_to(self.root).parts
            parts = [IMAGES if part == LABELS else part for part in inside]
            names = list(image_files_in(self.root.joinpath(*parts)))
        found: dict[str, str] = {}
        for path in dict.fromkeys(filter(None, names)):
            name = path.rpartition("/")[2]
            stem = name.rpartition(".")[0] or name
            if stem in found:
                raise data_error(
                    self.root,
                    f"two images, {found[stem]!r} and {path!r}, would share the labels in"
                    f" {stem}.txt. Rename one of them.",
                )
            found[stem] = name
        return found


def find_yolo(source: Source) -> YoloFolder:
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
    return path.suffix.lower() in (".yaml", ".yml") and bool(_NAMES_KEY.search(Source(path).head))


def _read_yaml(path: Path) -> Any:
    """The content of a YAML file of others; its words stay text, for a class may be called no."""
    if path.stat().st_size > _MOST_YAML_BYTES:
        raise data_error(path, "this YAML has more than 16 MiB, too much for names of classes.")
    try:
        return read_yaml(path, as_text=True)
    except ValueError as error:
        raise data_error(path, str(error)) from None


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
    names = {number: name.strip() for number, name in pairs}
    if len(names) < len(pairs) or len(set(names.values())) < len(names):
        raise data_error(path, "a number or name stands twice under 'names'. All must differ.")
    return names


def _number(key: Any) -> int:
    return int(key) if isinstance(key, str) and _is_class(key) else -1


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and bool(name.strip())


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
    content = _read_yaml(path)
    named = content.get("path") if isinstance(content, dict) else None
    here = path.parent.resolve()
    if isinstance(named, str) and "\0" not in named:
        inside = (here / named).resolve()
        if inside.is_relative_to(here) and inside.is_dir():
            return inside
    return path.parent


def _may_hold_objects(path: Path) -> bool:
    """Whether a text file is that of an image: a list called ``train.txt`` has no boxes."""
    if path.suffix.lower() != ".txt":
        return False
    return not _NO_LABELS.fullmatch(path.name) or bool(_LINE.match(Source(path).head))


def _text_folders(folder: Path, depth: int, inside: Path = Path()) -> list[tuple[Path, Path]]:
    """Folders that hold text files of labels, with their path in the data set."""
    names = files_in(folder)
    own = any(map(_may_hold_objects, names.values()))
    found = [(inside, folder)] if own else []
    if depth:
        for name, child in folders_in(folder).items():
            found += _text_folders(child, depth - 1, inside / name)
    return found


def _split_name(folder: Path) -> str:
    return "/".join(part for part in folder.parts if part != LABELS) or _ALL


FORMAT = Format(
    name="yolo",
    summary="YOLO: names in a YAML file, and for each image a text file of boxes or segments.",
    matches=matches,
    read=read,
    write=write,
    patch=patch,
    splits=lambda source: find_yolo(source).splits,
    folders=True,
    file_names=True,
    boxes=True,
)
