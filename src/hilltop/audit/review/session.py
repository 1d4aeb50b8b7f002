"""What the review page asks for: classes, pages of pairs, and the recording of answers.

It knows nothing of HTTP. Everything it returns is plain data, ready for JSON.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hilltop.audit.decisions.answers import Answers, Pair, Votes, differ, resolve
from hilltop.audit.decisions.apply import corrected_archive, export_answers, read_answers
from hilltop.audit.decisions.gold import GoldMixer, read_gold
from hilltop.audit.decisions.incoming import (
    MOST_EVENTS,
    Incoming,
    OtherAuditError,
    check_reviewer,
    import_file,
)
from hilltop.audit.decisions.store import Answer, Comment, DecisionStore, Event, now
from hilltop.audit.find.candidate_index import CandidateIndex, Ints
from hilltop.audit.find.pca import read_pca
from hilltop.audit.folder import AuditFolder
from hilltop.audit.review.people import Assignment, agreement, deal, neighbours, read_metadata, work
from hilltop.audit.review.queues import planned_places
from hilltop.audit.review.ranking import LiveRanking
from hilltop.audit.review.summaries import Expectations, Summaries
from hilltop.audit.review.thumbnails import ImageStore
from hilltop.audit.review.views import (
    ImagePages,
    Search,
    View,
    Views,
    labelled_examples,
    others,
    shown_comments,
    this_session,
    undoable,
)
from hilltop.checks import check_choice
from hilltop.data.review_record import Mode
from hilltop.errors import ArgumentError, DataError

IMAGE_VIEW = "image"
"""What the page calls the view that shows one image with all its classes."""
MOST_PAIRS = 200
_UNDOABLE = 50


class Review:
    """One audit under review; safe to be used by several threads."""

    def __init__(
        self,
        folder: AuditFolder,
        *,
        images: Path | None = None,
        metadata: Path | None = None,
        adjudicators: Sequence[str] = (),
    ) -> None:
        """Read labels and candidates, find the images, and open the answers.

        Args:
            folder: The audit.
            images: Where the images are now, if not where the audit found them.
            metadata: A CSV file with a column ``image`` and others to search by.
            adjudicators: Who may decide where answers differ; everybody without any.
        """
        self._adjudicators = frozenset(map(check_reviewer, adjudicators))
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
        self._about = read_metadata(metadata, self.labels)
        self._assignment = Assignment()
        self._contested: dict[Pair, None] = {}

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
                "views": [*self._views.offered(), "disputed", IMAGE_VIEW],
                "names": self.labels.classes,
                "classes": [
                    self._of_class(column, reviewer)
                    for column in range(len(self.labels.classes))
                    if self.index.count(column)
                ],
                "undoable": [undoable(answers) for answers in last],
                "columns": self._about.names,
                "alike": self.ranking.directions is not None,
                "disputes": self._open_disputes(),
                "part": reviewer in self._assignment.parts,
                "adjudicator": self.may_rule(reviewer),
            }

    def page(
        self,
        *,
        column: int,
        view: View,
        start: int | None,
        count: int,
        reviewer: str,
        search: Search = Search(),  # noqa: B008 (frozen)
    ) -> dict[str, Any]:
        """Return some pairs of a class.

        Args:
            column: Number of the class.
            view: By rank, a random sample, labels that may be wrong, or pairs that a plan asks
                about.
            start: Number of the first pair, from 0; None for the page with the first open one.
            count: How many.
            reviewer: Whose answers to show.
            search: What to narrow them to.

        Raises:
            ArgumentError: There is no such class or page.
        """
        if not 0 <= column < len(self.labels.classes):
            raise ArgumentError(f"There is no class number {column}.")
        if not 1 <= count <= MOST_PAIRS:
            raise ArgumentError(f"count must lie between 1 and {MOST_PAIRS}, but got {count}.")
        with self._lock:
            self._catch_up()
            places = self._places(column, view, reviewer, search)
            if start is None:
                first = self._views.first_open(column, view, places, reviewer)
                start = min(first, max(0, len(places) - 1)) // count * count
            chosen = places[max(0, start) : max(0, start) + count]
            pairs = self._pairs(column, view, chosen, reviewer)
            if view == "ranked" and not search.text and search.like is None:
                shown = np.flatnonzero(np.isin(self.ranking.order(column), chosen))
                self.ranking.show(column, int(shown.max(initial=-1)) + 1)
                self._mix_gold(pairs, column, max(0, start), reviewer)
            return {
                "class": self._of_class(column, reviewer),
                "view": view,
                "start": start,
                "end": max(0, start) + len(chosen),
                "total": len(places),
                "pairs": pairs,
                "examples": self._examples(column),
            }

    def _places(self, column: int, view: View, reviewer: str, search: Search) -> Ints:
        """Places of a class in the order of a view, narrowed to what is looked for."""
        index = self._views.index_of(view)
        if search.like is not None:
            if not 0 <= search.like < len(self.labels):
                raise ArgumentError(f"There is no image number {search.like}.")
            places = neighbours(self.ranking.directions, index, column, search.like)
        else:
            places = self._views.places(column, view)
        rows = index.class_rows(column)[places]
        if search.text:
            found = np.isin(rows, self._about.rows(search.text, search.column))
            places, rows = places[found], rows[found]
        if search.mine and reviewer in self._assignment.parts:
            name = self.labels.classes[column]
            places = places[self._assignment.mine(reviewer, name, self._dealt[rows])]
        return places

    @cached_property
    def _dealt(self) -> npt.NDArray[np.float64]:
        return deal(self.labels.images.to_pylist())

    def image(
        self,
        *,
        place: int | None,
        reviewer: str,
        search: Search = Search(),  # noqa: B008 (frozen)
    ) -> dict[str, Any]:
        """Return an image with its labels and the classes that it may lack.

        Args:
            place: Its number in the order in which images are asked about, from 0; None for the
                first one in which the reviewer has left something open.
            reviewer: Whose answers to show.
            search: What to narrow the images to.

        Raises:
            ArgumentError: There is no such image.
        """
        with self._lock:
            self._catch_up()
            if self._images is None:
                self._images = ImagePages(self.labels, self.index, self.suspects, self._answers)
            among = self._about.rows(search.text, search.column) if search.text else None
            if search.mine and reviewer in self._assignment.parts:
                mine = np.flatnonzero(self._assignment.mine(reviewer, None, self._dealt))
                among = mine if among is None else np.intersect1d(among, mine)
            page = self._images.page(place, reviewer, among=among)
            page["about"] = self._about.of(page["row"])
            page["picture"] = self.pictures is not None and page["row"] in self.pictures
            return page

    def record(self, reviewer: str, raw: Any, *, late: str | None = None) -> dict[str, Any]:
        """Store events; when this returns they are on disk.

        Args:
            reviewer: Whose they are.
            raw: What the page sent.
            late: When the device that sent them handed its name over to another one, if it did: an
                answer that was given there since stays the last one.

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
                raw,
                reviewer=name,
                time=lambda _: time,
                row_of=self._row_of,
                may_rule=self.may_rule(name),
            )
            if late is not None:
                events += self._newer(events, name, late)
            about = {one.class_name for one in events if isinstance(one, Answer | Comment)}
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
                "classes": [self._of_class(column, name) for column in numbers],
                "disputes": self._open_disputes(),
                "others": [
                    {
                        "class": event.class_name,
                        "image": event.image,
                        "others": others(self._votes(event), name),
                        "comments": shown_comments(
                            self._answers, event.class_name, event.image, name, True
                        ),
                    }
                    for event in events
                    if isinstance(event, Answer)
                ],
            }

    def _newer(self, events: Sequence[Event], name: str, since: str) -> list[Answer]:
        """What was answered elsewhere since, once more behind what comes late."""
        found = []
        for event in events:
            if isinstance(event, Answer):
                now = self._answers.votes(event.class_name, event.image).get(name)
                if now is not None and now.time > since:
                    found.append(replace(now, id=f"again-{event.id}"[:80]))
        return found

    # ---- people --------------------------------------------------------------------------------

    def may_rule(self, reviewer: str) -> bool:
        """Whether somebody may decide where answers differ."""
        return not self._adjudicators or reviewer in self._adjudicators

    def team(self, reviewer: str) -> dict[str, Any]:
        """Return who did what, how far people agree, and who is asked about what.

        How often gold questions are answered right is kept from the person itself.
        """
        with self._lock:
            self._catch_up()
            people, gold = work(self._answers, self._gold.pairs), self._gold.pairs
            agreed = agreement(self._answers, gold)
            plan = self._assignment.as_dict()
        for one in people:
            if one["name"] == reviewer or not self.may_rule(reviewer):
                one["gold"] = None
        names = {one["name"] for one in people}
        idle = {"answers": 0, "words": {}, "classes": 0, "minutes": 0.0}
        none = {"per_minute": None, "last": None, "gold": None}
        people += [
            {"name": name, **idle, **none} for name in sorted({*plan["people"], reviewer} - names)
        ]
        return {
            "people": people,
            "agreement": [asdict(one) for one in agreed],
            "plan": plan,
            "may_assign": self.may_rule(reviewer),
        }

    def assign(self, reviewer: str, content: Any) -> dict[str, Any]:
        """Store who is asked about what; on disk when this returns."""
        if not self.may_rule(reviewer):
            raise ArgumentError("Only an adjudicator may assign work.")
        Assignment.parse(content, self.labels.classes).keep(self.store, check_reviewer(reviewer))
        return self.team(reviewer)

    def disputes(self, *, start: int | None, count: int, reviewer: str) -> dict[str, Any]:
        """Return pairs of all classes that reviewers disagree on, class by class.

        What was decided stays in its place.

        Args:
            start: Number of the first pair; None for the page with the first one to decide.
            count: How many.
            reviewer: Whose answers to show.
        """
        with self._lock:
            self._catch_up()
            column_of = {name: column for column, name in enumerate(self.labels.classes)}
            known = [
                (column_of[name], image)
                for name, image in self._contested
                if name in column_of and self._rows.get(image, -1) >= 0
            ]
            known.sort()
            still = [self._is_open(self.labels.classes[at], image) for at, image in known]
            if start is None:
                start = (still.index(True) if True in still else 0) // count * count
            chosen = known[start : start + min(count, MOST_PAIRS)]
            pairs = [self._dispute(at, reviewer, image) for at, image in chosen]
        return {
            "view": "disputed",
            "start": start,
            "total": len(known),
            "open": sum(still),
            "pairs": pairs,
            "may_rule": self.may_rule(reviewer),
            "adjudicators": sorted(self._adjudicators),
        }

    def _dispute(self, column: int, reviewer: str, image: str) -> dict[str, Any]:
        """A pair with everybody's answer; an adjudicator's own one is the ruling."""
        name = self.labels.classes[column]
        pair = self._pair(column, "planned", reviewer, self._rows[image], 0.0)
        votes = self._answers.votes(name, image, rulings=False)
        rulings = [one for one in self._answers.votes(name, image).values() if one.mode == "ruling"]
        last = max(rulings, key=lambda one: one.time, default=None)
        mine = last if self.may_rule(reviewer) else votes.get(reviewer)
        return pair | {
            "class": name,
            "answer": None if mine is None else mine.answer,
            "others": others(votes, ""),
            "comments": shown_comments(self._answers, name, image, reviewer, True),
            "ruling": None if last is None else {"reviewer": last.reviewer, "answer": last.answer},
        }

    def _is_open(self, name: str, image: str) -> bool:
        return differ(self._answers.votes(name, image).values())

    def _open_disputes(self) -> int:
        return sum(self._is_open(*pair) for pair in self._contested)

    def _of_class(self, column: int, reviewer: str) -> dict[str, Any]:
        found = self._summary(column, reviewer)
        found["part"] = self._assignment.has_class(reviewer, self.labels.classes[column])
        return found

    def export(self, what: str) -> tuple[str, bytes]:
        """Return the name and the content of a file: all answers, or the corrected labels.

        Raises:
            ArgumentError: The labels cannot be written.
        """
        check_choice("what", what, ("answers", "labels"))
        if what == "answers":
            return "answers.csv", export_answers(read_answers(self.folder)).encode()
        try:
            return "corrected.zip", corrected_archive(self.folder)
        except DataError as error:  # the remedy is a person's, so trying again does not help
            raise ArgumentError(str(error)) from None

    def take_file(self, name: str, text: str, *, force: bool) -> dict[str, Any]:
        """Take in a file of answers that was dropped onto the page.

        Raises:
            ArgumentError: It is no such file, or of another audit; then nothing is stored.
        """
        try:
            return asdict(import_file(self.folder, Path(name).name, text, self.store, force=force))
        except OtherAuditError as error:  # the page asks whether to take it in all the same
            return {"other_audit": str(error)}
        except DataError as error:
            raise ArgumentError(str(error)) from None

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
        plan = self._answers.assigned
        touched = self._answers.catch_up(self.store)
        if self._answers.assigned != plan:
            self._assignment = Assignment.load(self._answers.assigned, self.labels.classes)
        unknown = sorted({image for _, image in touched if image not in self._rows})
        if unknown:
            self._rows |= zip(unknown, self._find(unknown), strict=True)
        for name, image in touched - self._gold.pairs.keys():
            self._summaries.update(self._answers, name, image, self._rows[image])
            votes = self._answers.votes(name, image).values()
            if differ(votes) or any(vote.mode == "ruling" for vote in votes):
                self._contested[name, image] = None
            else:
                self._contested.pop((name, image), None)
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
            "others": others(votes, reviewer) if mine else None,
            "other_count": len(votes) - (mine is not None),
            "comments": shown_comments(
                self._answers,
                self.labels.classes[column],
                image,
                reviewer,
                mine is not None,
            ),
            "about": self._about.of(row),
        }
