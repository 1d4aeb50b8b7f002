"""TFRecord files of examples with a name and labels: object detection API, YouTube-8M."""

from __future__ import annotations

from typing import Any

from hilltop.data.data_errors import data_error
from hilltop.data.formats.base import Format, Priority, ReadOnly
from hilltop.data.formats.options import ReadOptions, ready_command
from hilltop.data.formats.source import LabelSource
from hilltop.data.formats.text.known_names import is_class_name, is_image_name, is_label_name
from hilltop.data.formats.text.record_rows import IMAGE, LABELS, table_from_records
from hilltop.data.formats.text.tf_example import Example, is_record_file, read_examples
from hilltop.data.label_table import LabelTable
from hilltop.errors import OptionNeeded

_SUFFIXES = (".tfrecord", ".tfrecords", ".record", ".records", ".tfrec")
_LABELS = ("image/object/class/text", "image/class/text", "image/object/class/label")
_IMAGES = ("image/filename", "image/source_id", "filename", "id", "video_id")


def fits(source: LabelSource) -> bool:
    """Whether the ending says so, or the name, and the first record is an example."""
    if source.is_folder:
        return False
    called = source.suffix in _SUFFIXES or "tfrecord" in source.path.name.lower()
    return called and is_record_file(source.path)


def read(source: LabelSource, options: ReadOptions) -> LabelTable:
    """Read names and labels; ``--image-column`` and ``--label-column`` say which features."""
    examples: list[Example] = []
    try:
        examples.extend(read_examples(source.path))
    except (ValueError, OSError, EOFError) as error:
        raise data_error(
            source.path, f"record {len(examples) + 1}: {error}. Fetch the file again."
        ) from None
    names = dict.fromkeys(name for example in examples for name in example)
    image = options.image_column or _first(names, _IMAGES, is_image_name)
    label = options.label_column or _first(
        names, _LABELS, lambda name: is_label_name(name) or is_class_name(name)
    )
    if label is None or label not in names:
        shown = ", ".join(list(names)[:20])
        others = [name for name in names if name != image] or ["NAME"]
        command = ready_command(source.path, options, label_column=others[0])
        raise OptionNeeded(
            f"{source.path}: which feature holds the labels? Pass --label-column with one of"
            f" {shown}, for example: {command}"
        )
    records = [
        {IMAGE: _image(example, image, number), LABELS: _labels(example.get(label, []))}
        for number, example in enumerate(examples)
    ]
    notes = [f"images are named by {image or 'their number'}, and labels are those of {label}."]
    return table_from_records(source.path, records, options, format="tfrecord", notes=notes)


def _first(names: dict[str, None], known: tuple[str, ...], test: Any) -> str | None:
    listed = [name for name in known if name in names]
    return next(iter([*listed, *(name for name in names if test(name.rpartition("/")[2]))]), None)


def _image(example: Example, name: str | None, number: int) -> str:
    words = [str(one).strip() for one in example.get(name or "", [])]
    return words[0] if words and words[0] else str(number)


def _labels(values: list[Any]) -> list[Any]:
    """Names once each; numbers as they are, since they may be a value for each class."""
    if values and all(isinstance(one, int) for one in values):
        return values if set(values) <= {0, 1} else list(dict.fromkeys(values))
    return [word for word in dict.fromkeys(str(one).strip() for one in values) if word]


FORMAT = Format(
    name="tfrecord",
    summary="TFRecord of TensorFlow: examples with a name, and labels as texts or numbers.",
    priority=Priority.EXACT,
    fits=fits,
    read=read,
    write=ReadOnly("Such files hold the images themselves"),
)
