"""The labels that ``start`` is given: what is in them, and the one question that it asks."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hilltop.checks import pluralize
from hilltop.cli.labels import read_with_layout
from hilltop.data import LabelTable, ReadOptions, State
from hilltop.data.class_names import merged_spellings
from hilltop.data.data_errors import data_error
from hilltop.data.layout import Ambiguous, Layout, option_words
from hilltop.data.summary import likely_mistakes
from hilltop.errors import AmbiguousInputError, DataError
from hilltop.progress import say

_QUESTION = """
What does it mean that a tag is not listed for a photo?
  u  unknown: nobody may have looked, it can be true all the same (Enter takes this)
  a  absent: somebody looked for every tag, and it is not there
(--unlisted unknown or --unlisted absent answers this without asking)
"""
_MOST_NOTES = 6


@dataclass(frozen=True)
class StartLabels:
    """Labels of photos.

    Attributes:
        photos: Folder with the photos.
        labels: The label file.
        format: Its format, if the user has said it.
        said: What else the user has said, as words of a command.
    """

    photos: Path
    labels: Path
    format: str | None
    said: list[str]

    def read(self, reading: ReadOptions) -> tuple[ReadOptions, LabelTable]:
        """The labels, and how they are read; what unlisted means is asked where it can be."""
        options = reading
        try:
            table, layout = self._table(options)
        except AmbiguousInputError as error:
            open_ = error.ambiguous
            if not isinstance(open_, Ambiguous) or {*open_.answers} != {"unlisted"}:
                raise
            options = replace(reading, unlisted="unknown")
            table, layout = self._table(options)
        written = merged_spellings(table)
        notes = table.notes
        if written and not options.merge_names:
            options = replace(options, merge_names=True)
            table, layout = self._table(options)
        say(f"{self.labels}: {layout.describe()}")
        self._describe(table, notes, written)
        self._match(table)
        if options.unlisted != reading.unlisted:  # the file leaves it open, and nobody has said
            options = replace(options, unlisted=self._ask(reading))
            table, layout = self._table(options)
        return options, table

    def _table(self, options: ReadOptions) -> tuple[LabelTable, Layout]:
        return read_with_layout(self.labels, self.format, options)

    def _command(self, *words: str) -> str:
        given = ["hilltop", "start", str(self.photos), str(self.labels), *words, *self.said]
        return shlex.join(given)

    def _describe(self, table: LabelTable, notes: Sequence[str], written: dict[str, str]) -> None:
        if not table.count(State.PRESENT):
            raise data_error(
                self.labels,
                f"there is not one label of the {len(table):,} photos in it. If another column"
                " has the labels, say so with --label-columns.",
            )
        labels = pluralize(table.count(State.PRESENT), "label", "labels")
        classes = pluralize(len(table.classes), "class", "classes")
        say(f"{self.labels}: {labels} of {classes} for {len(table):,} names of photos")
        told = [*likely_mistakes(table), *notes]
        for note in told[:_MOST_NOTES]:
            say(f"{self.labels}: {note}")
        if len(told) > _MOST_NOTES:
            inspect = shlex.join(["hilltop", "inspect", str(self.labels)])
            say(f"{self.labels}: {len(told) - _MOST_NOTES:,} more of these: {inspect}")
        if written:
            one, other = next(iter(written.items()))
            ways = pluralize(len(set(written.values())), "class is", "classes are")
            say(
                f"{self.labels}: {ways} written in several ways, as {one!r} and {other!r}: made one"
            )
        never = [
            name
            for name, count in zip(
                table.classes, table.counts_by_class(State.PRESENT).tolist(), strict=True
            )
            if not count
        ]
        if never:
            have = pluralize(len(never), "class has", "classes have")
            say(f"{self.labels}: {have} no label at all, such as {never[0]!r}: never tagged")

    def _ask(self, reading: ReadOptions) -> Any:
        """The one question, until it is answered."""
        if not sys.stdin.isatty():
            raise self._unanswered(reading)
        sys.stderr.write(_QUESTION)
        while True:
            sys.stderr.write("u or a? [u] ")
            sys.stderr.flush()
            line = sys.stdin.readline()
            if not line:
                raise self._unanswered(reading)
            answer = line.strip().lower()[:1] or "u"
            if answer in ("u", "a"):
                return {"u": "unknown", "a": "absent"}[answer]

    def _unanswered(self, reading: ReadOptions) -> AmbiguousInputError:
        command = self._command("--unlisted", "unknown", *option_words(reading))
        return AmbiguousInputError(
            f"{self.labels}: the file does not say what it means that a tag is not listed. Pass"
            " --unlisted unknown (nobody may have looked: if in doubt) or --unlisted absent"
            f" (a person looked): {command}"
        )

    def _match(self, table: LabelTable) -> None:
        from hilltop.inputs.matching import matching_rows

        try:
            rows = matching_rows(table.images, self.photos, allow_missing=True, say=say)
        except DataError as error:
            raise DataError(
                f"{error} If another column has the names of the photos, say so with"
                " --image-column."
            ) from None
        if len(rows) < len(table):
            say(f"{self.labels}: {len(rows):,} photos with labels are learned from")
