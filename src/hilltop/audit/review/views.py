"""Which pairs of a class a view of the review page shows, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np

from hilltop.audit.decisions.answers import Answers, Votes
from hilltop.audit.decisions.store import Answer
from hilltop.audit.find.candidate_index import CandidateIndex, Ints
from hilltop.audit.review.queues import ImageItem, WholeImages
from hilltop.audit.review.ranking import LiveRanking
from hilltop.audit.review.thumbnails import ImageStore
from hilltop.data import LabelTable, State
from hilltop.data.review_record import Mode
from hilltop.errors import ArgumentError

_PAUSE = timedelta(minutes=30)
"""After a longer pause a reviewer does not remember what an undo would take back."""


def others(votes: Votes, reviewer: str) -> list[dict[str, str]]:
    """The answers of other reviewers to a pair."""
    return [
        {"reviewer": name, "answer": vote.answer}
        for name, vote in sorted(votes.items())
        if name != reviewer
    ]


def shown_comments(
    answers: Answers, name: str, image: str, reviewer: str, answered: bool
) -> list[dict[str, str]]:
    """Comments on a pair; like their answers, those of others wait until one has answered."""
    found = answers.comments(name, image)
    return [
        {"reviewer": who, "text": text}
        for who, text in sorted(found.items())
        if answered or who == reviewer
    ]


def this_session(actions: list[list[Answer]]) -> list[list[Answer]]:
    """The last actions without a long pause between them, or since."""
    after = datetime.now(UTC)
    for place in range(len(actions) - 1, -1, -1):
        time = datetime.fromisoformat(actions[place][0].time)
        if after - time > _PAUSE:
            return actions[place + 1 :]
        after = time
    return actions


def undoable(answers: list[Answer]) -> dict[str, Any]:
    """An action as the page keeps it, to undo it by."""
    return {
        "action": answers[0].action,
        "class": answers[0].class_name,
        "images": [answer.image for answer in answers],
    }


MOST_EXAMPLES = 6


def labelled_examples(
    labels: LabelTable, suspects: CandidateIndex | None, pictures: ImageStore | None, column: int
) -> list[dict[str, Any]]:
    """Images with a label and a picture, evenly from the surer half of a class.

    The surest alone would all look the same.
    """
    if suspects is not None and suspects.count(column):
        rows = suspects.class_rows(column)[::-1].astype(np.int64)
    else:
        entries = np.flatnonzero((labels.columns == column) & (labels.states == State.PRESENT))
        rows = np.searchsorted(labels.indptr, entries, side="right") - 1
    surer = rows[: max(MOST_EXAMPLES, len(rows) // 2)]
    places = np.linspace(0, len(surer) - 1, min(MOST_EXAMPLES, len(surer))).astype(int)
    return [
        {"row": int(row), "image": labels.images[int(row)].as_py()}
        for row in surer[places]
        if pictures is not None and int(row) in pictures
    ]


View = Literal["ranked", "random", "planned", "wrong"]
VIEWS: tuple[View, ...] = get_args(View)


@dataclass(frozen=True)
class Search:
    """What a page is narrowed to.

    Attributes:
        text: Part of the file name, or of a cell of another column.
        column: Which one; ``image`` for the file name.
        like: Number of an image; those that look like it come first.
        mine: Only what the reviewer is assigned to.
    """

    text: str = ""
    column: str = "image"
    like: int | None = None
    mine: bool = False


class Views:
    """The views of one audit; whoever asks holds the lock of its answers."""

    def __init__(
        self,
        labels: LabelTable,
        index: CandidateIndex,
        suspects: CandidateIndex | None,
        ranking: LiveRanking,
        answers: Answers,
        rows: Mapping[str, int],
        *,
        planned: Sequence[Ints] | None,
    ) -> None:
        """Look at what the review itself looks at.

        Args:
            labels: The labels that were audited.
            index: Labels that may be missing.
            suspects: Labels that may be wrong.
            ranking: The order of candidates, which answers change.
            answers: All answers so far.
            rows: Image number of each image that was answered about.
            planned: Places that a plan asks about, by class.
        """
        self._labels, self._index, self._suspects = labels, index, suspects
        self._ranking, self._answers, self._rows = ranking, answers, rows
        self._planned = planned
        self._sample_order = lru_cache(maxsize=8)(index.sample_order)

    def offered(self) -> list[View]:
        """Return the views that have something to show."""
        needed = {"wrong": self._suspects, "planned": self._planned}
        return [view for view in VIEWS if view not in needed or needed[view] is not None]

    def index_of(self, view: View) -> CandidateIndex:
        """Return the candidates that a view is about."""
        return self._suspects if view == "wrong" and self._suspects is not None else self._index

    def places(self, column: int, view: View) -> Ints:
        """Places among the candidates of a class, in the order of the view."""
        if view == "ranked":
            return self._ranking.order(column)
        if view == "wrong":
            return np.arange(0 if self._suspects is None else self._suspects.count(column))
        if view == "random":
            return self._sample_order(column)
        return np.zeros(0, np.int64) if self._planned is None else self._planned[column]

    def first_open(self, column: int, view: View, places: Ints, reviewer: str) -> int:
        """Number of the first pair that the reviewer has not answered; behind all if none."""
        mode: Mode | None = "random" if view == "random" else None
        pairs = self._answers.pairs(self._labels.classes[column], mode=mode)
        rows = [self._rows[image] for image, votes in pairs if reviewer in votes]
        still_open = ~self._among(column, rows, view)[places]
        return int(np.argmax(still_open)) if still_open.any() else len(places)

    def _among(self, column: int, rows: Iterable[int], view: View = "ranked") -> Any:
        """Which candidates of a class are about one of these images."""
        return np.isin(self.index_of(view).class_rows(column), np.fromiter(rows, dtype=np.int32))


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

    def page(
        self, place: int | None, reviewer: str, *, among: Ints | None = None
    ) -> dict[str, Any]:
        """Return the image at a place, or the first one in which the reviewer left something open.

        Args:
            place: Its number in the order in which images are asked about.
            reviewer: Whose answers to show.
            among: Numbers of the images to show alone; all without it.

        Raises:
            ArgumentError: There is no such image.
        """
        order = self._whole.order
        if among is not None:
            order = order[np.isin(order, among)]
        if place is None:
            still_open = (at for at, row in enumerate(order) if self._is_open(int(row), reviewer))
            place = next(still_open, max(0, len(order) - 1))
        if not len(order):
            raise ArgumentError("No picture with candidates fits this search.")
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
            "comments": shown_comments(self._answers, name, image, reviewer, bool(mine)),
        }
