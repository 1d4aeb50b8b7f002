"""What may be said when reading a label file, because the file leaves it open."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hilltop.data.formats.source import read_class_file
from hilltop.data.state import State
from hilltop.errors import OptionNeeded


@dataclass(frozen=True)
class ReadOptions:
    """What a file may leave open and only the user can say."""

    unlisted: Literal["unknown", "absent"] | None = None
    """What unlisted pairs, blanks and bare zeros mean."""
    minus_one: Literal["unknown", "absent"] | None = None
    """What -1 means."""
    classes: Path | None = None
    """File with one class name a line: the closed list of classes, in order."""
    split: str | None = None
    """Which part of a data set with several, such as train or val."""
    difficult: Literal["unknown", "present", "absent"] = "unknown"
    """VOC: what a class with only 'difficult' instances is."""
    confidence_cut: float | None = None
    """Open Images: from this confidence on, a fraction means present; below it, unknown."""
    image_column: str | None = None
    """Name of the column with image ids."""
    label_column: str | None = None
    """Name of the column with the labels, where one column holds them all."""
    delimiter: str | None = None
    """What separates labels within one cell."""

    def need_unlisted(self, path: Path, what: str = "pairs that are not listed") -> State:
        """Return the state of unlisted pairs, which the format leaves open."""
        if self.unlisted is None:
            raise OptionNeeded(
                f"{path}: this format does not say what {what} mean. Pass --unlisted unknown"
                " (nobody looked: assumed negative, may be corrected) or --unlisted absent"
                " (a person looked: confirmed)."
            )
        return State.parse(self.unlisted)

    def need_minus_one(self, path: Path) -> State:
        """Return the state that -1 stands for."""
        if self.minus_one is None:
            raise OptionNeeded(
                f"{path}: -1 means 'absent' in some files and 'unknown' in others."
                " Pass --minus-one absent or --minus-one unknown."
            )
        return State.parse(self.minus_one)

    def class_list(self) -> list[str] | None:
        """Return the names in the class file, if one was given."""
        return None if self.classes is None else read_class_file(self.classes)
