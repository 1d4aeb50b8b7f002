"""What all exports of Label Studio share: finding the image, comparing several annotations."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hilltop.data.assemble import Collector
from hilltop.data.formats.options import ReadOptions
from hilltop.data.label_table import LabelTable
from hilltop.data.state import State
from hilltop.errors import OptionNeeded

IMAGE_ID = "hilltop_image"
"""Where tasks that we hand over keep the id of their image, by which they find back."""
_REFERENCE = re.compile(
    r"(/data/|[a-z][a-z0-9+.-]*://).*"
    r"|.*\.(jpe?g|png|gif|bmp|webp|tiff?|svg|avif|heic)([?#].*)?",
    re.IGNORECASE | re.DOTALL,
)


class TaskChoices:
    """Collects the choices of annotations; those of one task must agree."""

    def __init__(self, collector: Collector) -> None:
        """Start with no answers."""
        self._collector = collector
        self._seen: dict[str, tuple[str, frozenset[str]]] = {}

    def add(
        self, task: str, image: Any, names: Sequence[str], *, place: str, line: int | None = None
    ) -> None:
        """Add one annotation of a task; ``place`` says where it stands, if no line does."""
        errors, where = self._collector.errors, "" if line is not None else f"{place}: "
        known = _image_id(image)
        if not known:
            errors.add(f"{where}the image reference is missing or no text.", line=line)
            return
        if not all(_is_text(name) for name in (known, *names)):
            errors.add(f"{where}a name holds half a character (a lone surrogate).", line=line)
            return
        if task in self._seen:
            self._compare(task, known, names, line)
            return
        self._seen[task] = known, frozenset(names)
        row = self._collector.image(known, line=line, once=True)
        for name in names:
            self._collector.label(row, name, State.PRESENT, line=line)

    def table(self, options: ReadOptions, notes: Sequence[str]) -> LabelTable:
        """Return the table, or raise with all errors."""
        self._collector.errors.check()
        path = self._collector.errors.path
        return self._collector.table(
            unlisted=options.need_unlisted(path, "choices that were not made"),
            sort_classes=True,
            notes=notes,
            format="label_studio",
        )

    def _compare(self, task: str, image: str, names: Sequence[str], line: int | None) -> None:
        """Note an error unless a further annotation says what the first one said."""
        image_before, names_before = self._seen[task]
        if image_before != image:
            message = f"{task} has two images: {image_before!r} and {image!r}. Keep one of them."
            self._collector.errors.add(message, line=line)
        elif names_before != frozenset(names):
            self._collector.errors.add(
                f"{task} has annotations that disagree: {sorted(names_before)} and"
                f" {sorted(names)}. Keep one of them.",
                line=line,
            )


def is_label_studio_header(names: list[str]) -> bool:
    """Whether flat records with these columns were exported by Label Studio."""
    return {"annotation_id", "annotator"} <= set(names)


def image_key(path: Path, data: Sequence[dict[str, Any]], named: str | None) -> str:
    """Return the key of the image: the one named, our own, the only one, or the only reference."""
    keys = list(dict.fromkeys(key for values in data for key in values))
    if named is None and data and all(IMAGE_ID in values for values in data):
        return IMAGE_ID
    if named is not None or len(keys) < 2:
        return named or "".join(keys)
    references = [key for key in keys if is_reference([values.get(key) for values in data])]
    return one_of(path, references or keys, "--image-column", "key holds the image")


def is_reference(values: Sequence[Any]) -> bool:
    """Whether all values that are there look like links to images or uploads."""
    given = [value for value in values if value is not None]
    return bool(given) and all(
        isinstance(value, str) and _REFERENCE.fullmatch(value) for value in given
    )


def one_of(path: Path, names: Sequence[str], flag: str, what: str) -> str:
    """Return the only name, or ask."""
    if len(names) == 1:
        return names[0]
    if not names:
        raise OptionNeeded(f"{path}: which {what}? Pass {flag}.")
    command = shlex.join(["hilltop", "inspect", str(path), flag, names[0]])
    raise OptionNeeded(
        f"{path}: which {what}? Pass {flag} with one of {', '.join(names)}, for example: {command}"
    )


def _image_id(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else ""


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
