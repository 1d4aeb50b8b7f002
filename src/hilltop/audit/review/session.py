"""What the review page asks for: classes, pages of pairs, and the recording of answers.

It knows nothing of HTTP. Everything it returns is plain data, ready for JSON.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from hilltop.audit.decisions.answers import Answers, Pair, Votes, differ, resolve, same_name
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
from hilltop.audit.pairs import AuditPairs
from hilltop.audit.review.people import Assignment, agreement, deal, neighbours, read_metadata, work
from hilltop.audit.review.queues import ImageItem, WholeImages, planned_places
from hilltop.audit.review.ranking import LiveRanking
from hilltop.audit.review.summaries import Expectations, Summaries
from hilltop.audit.review.thumbnails import ImageStore
from hilltop.checks import check_choice
from hilltop.data import State
from hilltop.data.review_record import Mode
from hilltop.errors import ArgumentError, DataError

View = Literal["ranked", "random", "planned", "wrong"]
VIEWS: tuple[View, ...] = get_args(View)
IMAGE_VIEW = "image"
"""What the page calls the view that shows one image with all its classes."""
MOST_PAIRS = 200
MOST_EXAMPLES = 6
_UNDOABLE = 50
_PAUSE = timedelta(minutes=30)
"""After a longer pause a reviewer does not remember what an undo would take back."""


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
        self._adjudicators = sorted(map(check_reviewer, adjudicators))
        self.folder = folder
        self.pairs = AuditPairs.read(folder)
        self.labels = labels = self.pairs.labels
        self.index = index = self.pairs.candidates
        where = images or folder.images
        # Labelled images too: they are shown as examples.
        shown = np.union1d(index.images(), np.flatnonzero(np.diff(labels.indptr)))
        self.pictures = None if where is None else ImageStore(where, labels, shown)
        self.store = DecisionStore(folder.decisions)
        self._lock = threading.Lock()
        self._answers = Answers()
        self._incoming = Incoming(self.pairs, self._answers)
        self.ranking = LiveRanking(index, read_pca(folder.directions, len(labels)), self._known)
        self._planned = planned_places(folder, self.pairs) if folder.plans else None
        said = Expectations.read(folder, labels, index)
        self._summaries = Summaries(self.pairs, self.ranking, said)
        self._gold = GoldMixer(read_gold(folder))
        self._about = read_metadata(metadata, self.pairs)
        self._assignment = Assignment()
        self._contested: dict[Pair, bool] = {}
        """Pairs that people differ on, or did: whether somebody has to decide yet."""
        self._examples = lru_cache(maxsize=64)(self._labelled_examples)
        self._sample_order = lru_cache(maxsize=8)(index.sample_order)

    def close(self) -> None:
        """Close the file of answers."""
        self.ranking.close()
        self.store.close()

    def start(self, reviewer: str) -> dict[str, Any]:
        """Return all classes with their counts, and what the reviewer can undo."""
        with self._lock:
            self._catch_up()
            columns = range(len(self.labels.classes))
            for column in columns:
                self.ranking.answered(column, self._summaries.decided(column))
            last = _this_session(self._answers.last_actions(reviewer, _UNDOABLE))
            needed = {"wrong": self.pairs.suspects, "planned": self._planned}
            views = [view for view in VIEWS if view not in needed or needed[view] is not None]
            return {
                "audit": self.folder.created,
                "reviewer": reviewer,
                "labels": self.folder.labels.name,
                "summary": self.folder.summary,
                "views": [*views, "disputed", IMAGE_VIEW],
                "names": self.labels.classes,
                "classes": [self._of_class(at, reviewer) for at in columns if self.index.count(at)],
                "undoable": [
                    {
                        "action": answers[0].action,
                        "class": answers[0].class_name,
                        "images": [answer.image for answer in answers],
                    }
                    for answers in last
                ],
                "columns": self._about.names,
                "alike": self.ranking.directions is not None,
                "disputes": sum(self._contested.values()),
                "part": reviewer in self._assignment.parts,
                "adjudicator": self.may_rule(reviewer),
            }

    # ---- pages ---------------------------------------------------------------------------------

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
        _check_count(count)
        with self._lock:
            self._catch_up()
            places = self._places(column, view, reviewer, search)
            if start is None:
                first = self._first_open(column, view, places, reviewer)
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

    def _index_of(self, view: View) -> CandidateIndex:
        suspects = self.pairs.suspects
        return suspects if view == "wrong" and suspects is not None else self.index

    def _places(self, column: int, view: View, reviewer: str, search: Search) -> Ints:
        """Places of a class in the order of a view, narrowed to what is looked for."""
        index = self._index_of(view)
        if search.like is not None:
            if not 0 <= search.like < len(self.labels):
                raise ArgumentError(f"There is no image number {search.like}.")
            places = neighbours(self.ranking.directions, index, column, search.like)
        elif view == "ranked":
            places = self.ranking.order(column)
        elif view == "random":
            places = self._sample_order(column)
        elif view == "wrong":
            places = np.arange(0 if self.pairs.suspects is None else index.count(column))
        else:
            places = np.zeros(0, np.int64) if self._planned is None else self._planned[column]
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

    def _first_open(self, column: int, view: View, places: Ints, reviewer: str) -> int:
        """Number of the first pair that the reviewer has not answered; behind all if none."""
        mode: Mode | None = "random" if view == "random" else None
        pairs = self._answers.pairs(self.labels.classes[column], mode=mode)
        rows = self.pairs.rows_of(image for image, votes in pairs if reviewer in votes)
        still_open = ~np.isin(self._index_of(view).class_rows(column)[places], rows)
        return int(np.argmax(still_open)) if still_open.any() else len(places)

    def _pairs(self, column: int, view: View, places: Ints, reviewer: str) -> list[dict[str, Any]]:
        index = self._index_of(view)
        probs = (
            self.ranking.probabilities(column)
            if index is self.index
            else index.class_probabilities(column)
        )
        rows = index.class_rows(column)[places].tolist()
        pairs = [
            self._pair(column, view, reviewer, row, prob)
            for row, prob in zip(rows, probs[places].tolist(), strict=True)
        ]
        if view == "ranked":
            leaders = self.ranking.leaders(column)[places].tolist()
            for pair, leader in zip(pairs, leaders, strict=True):
                pair["alike"] = leader
        return pairs

    def _mix_gold(
        self, pairs: list[dict[str, Any]], column: int, start: int, reviewer: str
    ) -> None:
        """Put known pairs between others."""
        name = self.labels.classes[column]
        rows = self.pairs.rows_of(self._gold.images(name, start, len(pairs)))
        known = [self._pair(column, "ranked", reviewer, row, 0.0) for row in rows if row >= 0]
        self._gold.mix(name, pairs, known)

    def _pair(
        self, column: int, view: View, reviewer: str, row: int, probability: float
    ) -> dict[str, Any]:
        name, image = self.labels.classes[column], self.labels.images[row].as_py()
        votes = self._answers.votes(name, image, mode="random" if view == "random" else None)
        return {
            "row": row,
            "image": image,
            # In samples neither rank nor probability is shown: both would sway the reviewer.
            "probability": None if view in ("random", "planned") else round(probability, 4),
            "labels": self.labels.labels_of(row),
            "picture": self._has_picture(row),
            "other_count": len(votes) - (reviewer in votes),
            "about": self._about.of(row),
            **self._said(name, image, votes, reviewer),
        }

    def _has_picture(self, row: int) -> bool:
        return self.pictures is not None and row in self.pictures

    def _said(self, name: str, image: str, votes: Votes, reviewer: str) -> dict[str, Any]:
        """A reviewer's answer to a pair; what others say of it waits until there is one."""
        mine = votes.get(reviewer)
        return {
            "answer": None if mine is None else mine.answer,
            "others": None if mine is None else _others(votes, reviewer),
            "comments": self._comments(name, image, None if mine else reviewer),
        }

    def _comments(self, name: str, image: str, only: str | None = None) -> list[dict[str, str]]:
        found = sorted(self._answers.comments(name, image).items())
        return [{"reviewer": who, "text": text} for who, text in found if only in (None, who)]

    def _labelled_examples(self, column: int) -> list[dict[str, Any]]:
        """Images with a label and a picture, evenly from the surer half of a class.

        The surest alone would all look the same.
        """
        labels, suspects = self.labels, self.pairs.suspects
        if suspects is not None and suspects.count(column):
            rows = suspects.class_rows(column)[::-1].astype(np.int64)
        else:
            entries = np.flatnonzero((labels.columns == column) & (labels.states == State.PRESENT))
            rows = np.searchsorted(labels.indptr, entries, side="right") - 1
        surer = rows[: max(MOST_EXAMPLES, len(rows) // 2)]
        places = np.linspace(0, len(surer) - 1, min(MOST_EXAMPLES, len(surer))).astype(int)
        return [
            {"row": row, "image": labels.images[row].as_py()}
            for row in surer[places].tolist()
            if self._has_picture(row)
        ]

    # ---- image by image ------------------------------------------------------------------------

    @cached_property
    def _images(self) -> WholeImages:
        return WholeImages(self.pairs)

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
            order = self._images.order
            if search.text:
                order = order[np.isin(order, self._about.rows(search.text, search.column))]
            if search.mine and reviewer in self._assignment.parts:
                order = order[self._assignment.mine(reviewer, None, self._dealt[order])]
            if not len(order):
                raise ArgumentError("No picture with candidates fits this search.")
            if place is None:
                still_open = (at for at, row in enumerate(order) if self._is_open(row, reviewer))
                place = next(still_open, len(order) - 1)
            if not 0 <= place < len(order):
                raise ArgumentError(f"There is no image number {place} to ask about.")
            row = int(order[place])
            return {
                "place": place,
                "total": len(order),
                "row": row,
                "image": self.labels.images[row].as_py(),
                "items": self._items(row, reviewer),
                "about": self._about.of(row),
                "picture": self._has_picture(row),
            }

    def _is_open(self, row: int, reviewer: str) -> bool:
        """Whether a reviewer has left a candidate of an image without an answer."""
        image = self.labels.images[int(row)].as_py()
        names = (self.labels.classes[one.column] for one in self._images.candidates(int(row)))
        return any(reviewer not in self._answers.votes(name, image) for name in names)

    def _items(self, row: int, reviewer: str) -> list[dict[str, Any]]:
        """Labels of an image, what it may lack, and what people added by name."""
        image, known = self.labels.images[row].as_py(), self._images.labels(row)
        asked = [*known, *self._images.candidates(row)]
        listed = {one.column for one in asked}
        asked += [
            ImageItem(column, None)
            for column, name in enumerate(self.labels.classes)
            if column not in listed and self._answers.votes(name, image)
        ]
        found = []
        for at, one in enumerate(asked):
            name, prob = self.labels.classes[one.column], one.probability
            said = self._said(name, image, self._answers.votes(name, image), reviewer)
            prob = None if prob is None else round(prob, 4)
            found.append({"class": name, "label": at < len(known), "probability": prob, **said})
        return found

    # ---- answers -------------------------------------------------------------------------------

    def record(self, reviewer: str, raw: Any, *, late: str | None = None) -> dict[str, Any]:
        """Store events; when this returns they are on disk.

        Args:
            reviewer: Whose they are.
            raw: What the page sent.
            late: When the device that sent them handed its name over to another one, if it did:
                they count as given then, so that an answer that was given there since holds.

        Raises:
            ArgumentError: An event cannot be taken; then none is stored.
        """
        name = check_reviewer(reviewer)
        if isinstance(raw, list) and len(raw) > MOST_EVENTS:
            raise ArgumentError(f"At most {MOST_EVENTS} events at once, but got {len(raw)}.")
        with self._lock:
            self._catch_up()
            events = self._incoming.events(
                raw, reviewer=name, time=late or now(), may_rule=self.may_rule(name)
            )
            if late is None:
                events = [self._last(event) for event in events]
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
                "disputes": sum(self._contested.values()),
                "others": [
                    {
                        "class": event.class_name,
                        "image": event.image,
                        "others": _others(self._votes(event), name),
                        "comments": self._comments(event.class_name, event.image),
                    }
                    for event in events
                    if isinstance(event, Answer)
                ],
            }

    def _last(self, event: Event) -> Event:
        """An answer that comes after those of before, even if a clock was set back meanwhile."""
        if not isinstance(event, Answer):
            return event
        before = self._answers.votes(event.class_name, event.image).get(event.reviewer)
        return event if before is None else replace(event, time=max(event.time, before.time))

    def _votes(self, event: Answer) -> Votes:
        mode = event.mode if event.mode == "random" else None
        return self._answers.votes(event.class_name, event.image, mode=mode)

    def _catch_up(self) -> set[str]:
        """Take in new events, and return the classes they are about."""
        plan = self._answers.assigned
        touched = self._answers.catch_up(self.store)
        if self._answers.assigned != plan:
            self._assignment = Assignment.load(
                self._answers.assigned,
                self.labels.classes,
                names=[*self._answers.names, *self.adjudicators],
            )
        self.pairs.rows_of(image for _, image in touched)  # all at once, which is faster
        for name, image in touched - self._gold.pairs.keys():
            self._summaries.update(self._answers, name, image)
            votes = self._answers.votes(name, image).values()
            still = differ(votes)
            if still or any(vote.mode == "ruling" for vote in votes):
                self._contested[name, image] = still
            else:
                self._contested.pop((name, image), None)
        return {name for name, _ in touched}

    def _known(self, column: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Places of candidates that are present or absent by now, and which of them."""
        with self._lock:
            outcomes = {
                image: resolve(votes.values())
                for image, votes in self._answers.pairs(self.labels.classes[column])
            }
            row_of = dict(zip(outcomes, self.pairs.rows_of(outcomes), strict=True))
        present = {
            row_of[image]: outcome == "present"
            for image, outcome in outcomes.items()
            if outcome in ("present", "absent")
        }
        rows = self.index.class_rows(column)
        places = np.flatnonzero(np.isin(rows, np.array(list(present), dtype=np.int32)))
        return places, np.array([present[row] for row in rows[places].tolist()], dtype=bool)

    def _of_class(self, column: int, reviewer: str) -> dict[str, Any]:
        part = self._assignment.has_class(reviewer, self.labels.classes[column])
        return {**self._summaries.of(column, reviewer), "part": part}

    # ---- people --------------------------------------------------------------------------------

    def spelled(self, name: str, known: Iterable[str] = ()) -> str:
        """A name as it was spelled first: ``ann`` is no other person than ``Ann``.

        Args:
            name: As somebody typed it.
            known: Further names, beside those of people who answered or are named for this review.
        """
        with self._lock:
            self._catch_up()
            named = (*self.adjudicators, *self._assignment.parts)
            return same_name(name, [*self._answers.names, *named, *known])

    @property
    def adjudicators(self) -> list[str]:
        """Who alone may decide where answers differ; everybody without any."""
        return [same_name(one, self._answers.names) for one in self._adjudicators]

    def may_rule(self, reviewer: str) -> bool:
        """Whether somebody may decide where answers differ."""
        return not self._adjudicators or reviewer in self.adjudicators

    def team(self, reviewer: str) -> dict[str, Any]:
        """Return who did what, how far people agree, and who is asked about what.

        How often gold questions are answered right is kept from the person itself.
        """
        with self._lock:
            self._catch_up()
            plan = self._assignment.as_dict()
            people = work(self._answers, self._gold.pairs, {*plan["people"], reviewer})
            agreed = agreement(self._answers, self._gold.pairs)
        for one in people:
            if one["name"] == reviewer or not self.may_rule(reviewer):
                one["gold"] = None
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
        _check_count(count)
        with self._lock:
            self._catch_up()
            known = sorted(
                (self.pairs.column_of[name], image)
                for name, image in self._contested
                if name in self.pairs.column_of and self.pairs.row_of(image) is not None
            )
            still = [self._contested[self.labels.classes[at], image] for at, image in known]
            if start is None:
                start = (still.index(True) if True in still else 0) // count * count
            chosen = known[start : start + count]
            pairs = [self._dispute(at, image, reviewer) for at, image in chosen]
        return {
            "view": "disputed",
            "start": start,
            "total": len(known),
            "open": sum(still),
            "pairs": pairs,
            "may_rule": self.may_rule(reviewer),
            "adjudicators": self.adjudicators,
        }

    def _dispute(self, column: int, image: str, reviewer: str) -> dict[str, Any]:
        """A pair with everybody's answer; an adjudicator's own one is the ruling."""
        name, (row,) = self.labels.classes[column], self.pairs.rows_of([image])
        votes = self._answers.votes(name, image, rulings=False)
        rulings = [one for one in self._answers.votes(name, image).values() if one.mode == "ruling"]
        last = max(rulings, key=lambda one: one.time, default=None)
        mine = last if self.may_rule(reviewer) else votes.get(reviewer)
        return self._pair(column, "planned", reviewer, row, 0.0) | {
            "class": name,
            "answer": None if mine is None else mine.answer,
            "others": _others(votes, ""),
            "comments": self._comments(name, image),
            "ruling": None if last is None else {"reviewer": last.reviewer, "answer": last.answer},
        }

    # ---- files ---------------------------------------------------------------------------------

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

    def take_file(self, reviewer: str, name: str, text: str, *, force: bool) -> dict[str, Any]:
        """Take in a file of answers that a reviewer dropped onto the page.

        Raises:
            ArgumentError: It is no such file, or of another audit; then nothing is stored.
        """
        try:
            done = import_file(
                self.folder,
                Path(name).name,
                text,
                self.store,
                pairs=self.pairs,
                force=force,
                may_rule=self.may_rule(reviewer),
            )
            return asdict(done)
        except OtherAuditError as error:  # the page asks whether to take it in all the same
            return {"other_audit": str(error)}
        except DataError as error:
            raise ArgumentError(str(error)) from None


def _check_count(count: int) -> None:
    if not 1 <= count <= MOST_PAIRS:
        raise ArgumentError(f"count must lie between 1 and {MOST_PAIRS}, but got {count}.")


def _others(votes: Votes, reviewer: str) -> list[dict[str, str]]:
    """The answers of other reviewers to a pair."""
    return [
        {"reviewer": name, "answer": vote.answer}
        for name, vote in sorted(votes.items())
        if name != reviewer
    ]


def _this_session(actions: list[list[Answer]]) -> list[list[Answer]]:
    """The last actions without a long pause between them, or since."""
    after = datetime.now(UTC)
    for place in range(len(actions) - 1, -1, -1):
        time = datetime.fromisoformat(actions[place][0].time)
        if after - time > _PAUSE:
            return actions[place + 1 :]
        after = time
    return actions
