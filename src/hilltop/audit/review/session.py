"""What the review page asks for: classes, pages of pairs, and the recording of answers.

It knows nothing of HTTP. Everything it returns is plain data, ready for JSON.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.audit.decisions.answers import Answers, Votes, resolve
from hilltop.audit.decisions.gold import GoldMixer, read_gold
from hilltop.audit.decisions.incoming import MOST_EVENTS, Incoming, check_reviewer
from hilltop.audit.decisions.store import Answer, DecisionStore, now
from hilltop.audit.find.candidate_index import CandidateIndex, Ints
from hilltop.audit.find.pca import read_pca
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.examples import labelled_examples
from hilltop.audit.review.expectations import Expectations
from hilltop.audit.review.image_pages import ImagePages
from hilltop.audit.review.planned import planned_places
from hilltop.audit.review.ranking import LiveRanking
from hilltop.audit.review.summaries import Summaries
from hilltop.audit.review.thumbnails import ImageStore
from hilltop.audit.review.undo import others, this_session, undoable
from hilltop.audit.review.views import View, Views
from hilltop.data.review_record import Mode
from hilltop.errors import ArgumentError

IMAGE_VIEW = "image"
"""What the page calls the view that shows one image with all its classes."""
MOST_PAIRS = 200
_UNDOABLE = 50


class Review:
    """One audit under review; safe to be used by several threads."""

    def __init__(self, folder: AuditFolder, *, images: Path | None = None) -> None:
        """Read labels and candidates, find the images, and open the answers.

        Args:
            folder: The audit.
            images: Where the images are now, if not where the audit found them.
        """
        self.folder = folder
        self.labels = folder.table()
        self.index = CandidateIndex.read(folder, self.labels)
        self.suspects: CandidateIndex | None = None
        if folder.suspects.is_file():
            self.suspects = CandidateIndex.read_file(folder.suspects, self.labels)
        where = images or folder.images
        # Labelled images too: they are shown as examples.
        shown = np.union1d(self.index.images(), np.flatnonzero(np.diff(self.labels.indptr)))
        self.pictures = None if where is None else ImageStore(where, self.labels, shown)
        self.store = DecisionStore(folder.decisions)
        self._answers = Answers()
        self._rows: dict[str, int] = {}
        self._lock = threading.Lock()
        self._incoming = Incoming(self.labels, self.index, self._answers, self.suspects)
        directions = read_pca(folder.directions, len(self.labels))
        self.ranking = LiveRanking(self.index, directions, self._known)
        self._images: ImagePages | None = None
        planned = planned_places(folder, self.labels, self.index) if folder.plans else None
        self._views = Views(
            self.labels,
            self.index,
            self.suspects,
            self.ranking,
            self._answers,
            self._rows,
            planned=planned,
        )
        self._examples = lru_cache(maxsize=64)(
            partial(labelled_examples, self.labels, self.suspects, self.pictures)
        )
        said = Expectations.read(folder, self.labels, self.index)
        self._summaries = Summaries(self.labels, self.index, self.suspects, self.ranking, said)
        self._summary = self._summaries.of
        self._gold = GoldMixer(read_gold(folder))

    def close(self) -> None:
        """Close the file of answers."""
        self.ranking.close()
        self.store.close()

    def start(self, reviewer: str) -> dict[str, Any]:
        """Return all classes with their counts, and what the reviewer can undo."""
        with self._lock:
            self._catch_up()
            for column in range(len(self.labels.classes)):
                self.ranking.answered(column, self._summaries.decided(column))
            last = this_session(self._answers.last_actions(reviewer, _UNDOABLE))
            return {
                "audit": self.folder.created,
                "labels": self.folder.labels.name,
                "summary": self.folder.summary,
                "views": [*self._views.offered(), IMAGE_VIEW],
                "names": self.labels.classes,
                "classes": [
                    self._summary(column, reviewer)
                    for column in range(len(self.labels.classes))
                    if self.index.count(column)
                ],
                "undoable": [undoable(answers) for answers in last],
                "agreement": self._gold.agreement(self._answers, reviewer),
            }

    def page(
        self, *, column: int, view: View, start: int | None, count: int, reviewer: str
    ) -> dict[str, Any]:
        """Return some pairs of a class.

        Args:
            column: Number of the class.
            view: By rank, a random sample, the pairs that reviewers disagree on, labels that may
                be wrong, or pairs that a plan asks about.
            start: Number of the first pair, from 0; None for the page with the first open one.
            count: How many.
            reviewer: Whose answers to show.

        Raises:
            ArgumentError: There is no such class or page.
        """
        if not 0 <= column < len(self.labels.classes):
            raise ArgumentError(f"There is no class number {column}.")
        if not 1 <= count <= MOST_PAIRS:
            raise ArgumentError(f"count must lie between 1 and {MOST_PAIRS}, but got {count}.")
        with self._lock:
            self._catch_up()
            places = self._views.places(column, view)
            if start is None:
                first = self._views.first_open(column, view, places, reviewer)
                start = min(first, max(0, len(places) - 1)) // count * count
            chosen = places[max(0, start) : max(0, start) + count]
            pairs = self._pairs(column, view, chosen, reviewer)
            if view == "ranked":
                self.ranking.show(column, max(0, start) + count)
                self._mix_gold(pairs, column, max(0, start), reviewer)
            return {
                "class": self._summary(column, reviewer),
                "view": view,
                "start": start,
                "end": max(0, start) + len(chosen),
                "total": len(places),
                "pairs": pairs,
                "examples": self._examples(column),
            }

    def image(self, *, place: int | None, reviewer: str) -> dict[str, Any]:
        """Return an image with its labels and the classes that it may lack.

        Args:
            place: Its number in the order in which images are asked about, from 0; None for the
                first one in which the reviewer has left something open.
            reviewer: Whose answers to show.

        Raises:
            ArgumentError: There is no such image.
        """
        with self._lock:
            self._catch_up()
            if self._images is None:
                self._images = ImagePages(self.labels, self.index, self.suspects, self._answers)
            page = self._images.page(place, reviewer)
            page["picture"] = self.pictures is not None and page["row"] in self.pictures
            return page

    def record(self, reviewer: str, raw: Any) -> dict[str, Any]:
        """Store events; when this returns they are on disk.

        Raises:
            ArgumentError: An event cannot be taken; then none is stored.
        """
        name = check_reviewer(reviewer)
        if isinstance(raw, list) and len(raw) > MOST_EVENTS:
            raise ArgumentError(f"At most {MOST_EVENTS} events at once, but got {len(raw)}.")
        time = now()
        with self._lock:
            self._catch_up()
            events = self._incoming.events(
                raw, reviewer=name, time=lambda _: time, row_of=self._row_of
            )
            about = {event.class_name for event in events if isinstance(event, Answer)}
            for event in events:
                about |= {answer.class_name for answer in self._answers.action(event.action)}
        self.store.add(events)
        with self._lock:
            about |= self._catch_up()
            # An undo may be about a class that a later audit does not have.
            numbers = [at for at, word in enumerate(self.labels.classes) if word in about]
            for column in numbers:
                self.ranking.answered(column, self._summaries.decided(column))
            return {
                "stored": [event.id for event in events],
                "classes": [self._summary(column, name) for column in numbers],
                "agreement": self._gold.agreement(self._answers, name),
                "others": [
                    {
                        "class": event.class_name,
                        "image": event.image,
                        "others": others(self._votes(event), name),
                    }
                    for event in events
                    if isinstance(event, Answer)
                ],
            }

    def _votes(self, event: Answer) -> Votes:
        mode = event.mode if event.mode == "random" else None
        return self._answers.votes(event.class_name, event.image, mode=mode)

    def _row_of(self, one: Mapping[str, Any]) -> int | None:
        """Image number that an event names; its image id must agree with it."""
        row = one.get("row")
        if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < len(self.labels):
            return None
        name = self.labels.images[row].as_py()
        if name != one.get("image"):
            return None
        self._rows[name] = row
        return row

    def _catch_up(self) -> set[str]:
        """Take in new events, and return the classes they are about."""
        touched = self._answers.catch_up(self.store)
        unknown = sorted({image for _, image in touched if image not in self._rows})
        if unknown:
            self._rows |= zip(unknown, self._find(unknown), strict=True)
        for name, image in touched - self._gold.pairs.keys():
            self._summaries.update(self._answers, name, image, self._rows[image])
        return {name for name, _ in touched}

    def _known(self, column: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Places of candidates that are present or absent by now, and which of them."""
        name = self.labels.classes[column]
        with self._lock:
            pairs = [
                (self._rows[image], outcome == "present")
                for image, votes in self._answers.pairs(name)
                if (outcome := resolve(votes.values())) in ("present", "absent")
            ]
        present = dict(pairs)
        rows = self.index.class_rows(column)
        places = np.flatnonzero(np.isin(rows, np.array(list(present), dtype=np.int32)))
        return places, np.array([present[row] for row in rows[places].tolist()], dtype=bool)

    def _find(self, images: list[str]) -> list[int]:
        """Rows of images; -1 for answers of an earlier audit whose images are gone."""
        found = pc.index_in(pa.array(images, pa.string()), value_set=self.labels.images)
        rows: list[int] = found.fill_null(-1).to_pylist()
        return rows

    def _pairs(self, column: int, view: View, places: Ints, reviewer: str) -> list[dict[str, Any]]:
        index = self._views.index_of(view)
        rows = index.class_rows(column)[places]
        known = self.ranking.probabilities(column) if index is self.index else None
        probabilities = (index.class_probabilities(column) if known is None else known)[places]
        pairs = [
            self._pair(column, view, reviewer, int(row), float(probability))
            for row, probability in zip(rows, probabilities, strict=True)
        ]
        if view == "ranked":
            for pair, leader in zip(
                pairs, self.ranking.leaders(column)[places].tolist(), strict=True
            ):
                pair["alike"] = leader
        return pairs

    def _mix_gold(
        self, pairs: list[dict[str, Any]], column: int, start: int, reviewer: str
    ) -> None:
        """Put known pairs between others."""
        name = self.labels.classes[column]
        images = self._gold.images(name, start, len(pairs))
        known = [self._pair(column, "ranked", reviewer, row, 0.0) for row in self._find(images)]
        self._gold.mix(name, pairs, known)

    def _pair(
        self, column: int, view: View, reviewer: str, row: int, probability: float
    ) -> dict[str, Any]:
        image = self.labels.images[row].as_py()
        mode: Mode | None = "random" if view == "random" else None
        votes = self._answers.votes(self.labels.classes[column], image, mode=mode)
        mine = votes.get(reviewer)
        return {
            "row": row,
            "image": image,
            # In samples neither rank nor probability is shown: both would sway the reviewer.
            "probability": None if view in ("random", "planned") else round(probability, 4),
            "labels": self.labels.labels_of(row),
            "picture": self.pictures is not None and row in self.pictures,
            "answer": None if mine is None else mine.answer,
            "others": others(votes, reviewer) if mine or view == "disputed" else None,
            "other_count": len(votes) - (mine is not None),
        }
