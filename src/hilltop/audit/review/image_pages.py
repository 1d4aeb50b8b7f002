"""Image by image: the pages that show an image with its labels and what it may lack."""

from __future__ import annotations

from typing import Any

from hilltop.audit.decisions.answers import Answers
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.review.undo import others
from hilltop.audit.review.whole_images import ImageItem, WholeImages
from hilltop.data import LabelTable
from hilltop.errors import ArgumentError


class ImagePages:
    """Plain data for the page, one image at a time."""

    def __init__(
        self,
        labels: LabelTable,
        index: CandidateIndex,
        suspects: CandidateIndex | None,
        answers: Answers,
    ) -> None:
        """Sort the pairs by image; ``answers`` grows while people answer."""
        self._labels, self._answers = labels, answers
        self._whole = WholeImages(labels, index, suspects)

    def page(self, place: int | None, reviewer: str) -> dict[str, Any]:
        """Return the image at a place, or the first one in which the reviewer left something open.

        Raises:
            ArgumentError: There is no such image.
        """
        order = self._whole.order
        if place is None:
            still_open = (at for at, row in enumerate(order) if self._is_open(int(row), reviewer))
            place = next(still_open, max(0, len(order) - 1))
        if not 0 <= place < len(order):
            raise ArgumentError(f"There is no image number {place} to ask about.")
        row = int(order[place])
        return {
            "place": place,
            "total": len(order),
            "row": row,
            "image": self._labels.images[row].as_py(),
            "items": self._items(row, reviewer),
        }

    def _is_open(self, row: int, reviewer: str) -> bool:
        """Whether a reviewer has left a candidate of an image without an answer."""
        image = self._labels.images[row].as_py()
        names = (self._labels.classes[one.column] for one in self._whole.candidates(row))
        return any(reviewer not in self._answers.votes(name, image) for name in names)

    def _items(self, row: int, reviewer: str) -> list[dict[str, Any]]:
        """Labels of an image, what it may lack, and what people added by name."""
        image, known = self._labels.images[row].as_py(), self._whole.labels(row)
        asked = [*known, *self._whole.candidates(row)]
        listed = {self._labels.classes[one.column] for one in asked}
        for column, name in enumerate(self._labels.classes):
            if name not in listed and self._answers.votes(name, image):
                asked.append(ImageItem(column, None))
        return [
            {"label": at < len(known), **self._item(image, one, reviewer)}
            for at, one in enumerate(asked)
        ]

    def _item(self, image: str, one: ImageItem, reviewer: str) -> dict[str, Any]:
        name = self._labels.classes[one.column]
        votes = self._answers.votes(name, image)
        mine = votes.get(reviewer)
        return {
            "class": name,
            "probability": None if one.probability is None else round(one.probability, 4),
            "answer": None if mine is None else mine.answer,
            "others": others(votes, reviewer) if mine else None,
        }
