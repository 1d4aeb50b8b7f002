"""Answers on their way in, from the page or from a file: checked in full before any is stored."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from hilltop.audit.decisions.answers import Answers
from hilltop.audit.decisions.store import (
    ANSWERS,
    MODES,
    Answer,
    Comment,
    DecisionStore,
    Event,
    Undo,
    now,
)
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.audit.folder import AuditFolder
from hilltop.checks import check_choice, did_you_mean
from hilltop.data import LabelTable
from hilltop.data.data_errors import data_error, unknown_class
from hilltop.data.review_record import AnswerWord, Mode
from hilltop.data.small_files import parse_rows
from hilltop.errors import ArgumentError, DataError

_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_LONGEST_NAME = 60
MOST_EVENTS = 2_000
"""Events in one request; the page sends more in several."""
LONGEST_COMMENT = 2_000
FILE_KIND = "hilltop answers"
_IN_PAGE = re.compile(r'id="review-answers">(.*?)</script>', re.DOTALL)


def check_reviewer(name: Any) -> str:
    """Return the name of a reviewer without outer blanks, if it can be one."""
    if not isinstance(name, str) or not name.strip():
        raise ArgumentError("A reviewer needs a name.")
    word = unicodedata.normalize("NFC", name.strip())
    if len(word) > _LONGEST_NAME or not word.isprintable():
        raise ArgumentError(
            f"The name of a reviewer must have at most {_LONGEST_NAME} printable characters."
        )
    return word


class Incoming:
    """Turns what arrived as JSON into events about pairs that are candidates."""

    def __init__(
        self,
        labels: LabelTable,
        index: CandidateIndex,
        answers: Answers,
        suspects: CandidateIndex | None = None,
    ) -> None:
        """Know the pairs, candidates and labels that may be wrong, and the answers so far."""
        self._column_of = {name: column for column, name in enumerate(labels.classes)}
        self._labels = labels
        self._indices = [index] if suspects is None else [index, suspects]
        self._answers = answers

    def events(
        self,
        raw: Any,
        *,
        reviewer: str,
        time: Callable[[Mapping[str, Any]], str],
        row_of: Callable[[Mapping[str, Any]], int | None],
        may_rule: bool = False,
    ) -> list[Event]:
        """Check events and return them.

        Args:
            raw: What arrived: a list of objects with ``id``, ``action`` and either ``undo: true``
                or ``image``, ``class`` and either ``comment`` or ``answer`` and ``mode``; with
                ``by_name: true`` the pair need not be a candidate.
            reviewer: Whose they are.
            time: When an event happened.
            row_of: The image number of an event, None if there is no such image.
            may_rule: Whether the reviewer is an adjudicator.

        Raises:
            ArgumentError: One of them cannot be taken; then none is.
        """
        if not isinstance(raw, list):
            raise ArgumentError("Expected a list of events.")
        found: list[Event] = []
        for one in raw:
            if not isinstance(one, dict):
                raise ArgumentError("An event must be an object.")
            own, action = _word(one, "id"), _word(one, "action")
            self._check_owner(action, reviewer)
            who = (own, action, reviewer, time(one))
            # An undo of what is gone already is no error: it was sent again for want of a reply.
            if one.get("undo") is True:
                found.append(Undo(*who))
            elif "comment" in one:
                found.append(self._comment(one, who, row_of(one)))
            else:
                found.append(self._answer(one, who, row_of(one), may_rule=may_rule))
        return found

    def _comment(
        self, one: Mapping[str, Any], who: tuple[str, str, str, str], row: int | None
    ) -> Comment:
        column, text = self._column_of.get(str(one.get("class"))), one.get("comment")
        if column is None or row is None:
            raise ArgumentError(_foreign(one))
        if not isinstance(text, str) or len(text) > LONGEST_COMMENT:
            raise ArgumentError(f"A comment is a text of at most {LONGEST_COMMENT} characters.")
        plain = "".join(sign if sign.isprintable() else " " for sign in text).strip()
        image = self._labels.images[row].as_py()
        return Comment(*who, image=image, class_name=self._labels.classes[column], text=plain)

    def _answer(
        self,
        one: Mapping[str, Any],
        who: tuple[str, str, str, str],
        row: int | None,
        *,
        may_rule: bool,
    ) -> Answer:
        column = self._column_of.get(str(one.get("class")))
        probability = None if column is None or row is None else self._probability(column, row)
        # Image by image, a person may name any class; elsewhere the page shows candidates alone.
        by_name = one.get("by_name") is True
        if column is None or row is None or (probability is None and not by_name):
            raise ArgumentError(_foreign(one))
        mode = cast(Mode, check_choice("mode", one.get("mode", ""), MODES))
        if mode == "ruling" and not may_rule:
            raise ArgumentError("Only an adjudicator may decide where answers differ.")
        return Answer(
            *who,
            image=self._labels.images[row].as_py(),
            class_name=self._labels.classes[column],
            answer=cast(AnswerWord, check_choice("answer", one.get("answer", ""), ANSWERS)),
            mode=mode,
            probability=probability,
        )

    def _probability(self, column: int, row: int) -> float | None:
        """What the audit thought of a pair; None if it is not among those it lists."""
        for index in self._indices:
            place = index.place(column, row)
            if place is not None:
                return float(index.class_probabilities(column)[place])
        return None

    def knows(self, one: Mapping[str, Any], row: int | None) -> bool:
        """Whether the pair of an event is one of this audit; an undo is about none."""
        column = self._column_of.get(str(one.get("class")))
        if one.get("undo") is True:
            return True
        if row is None or column is None:
            return False
        return one.get("by_name") is True or self._probability(column, row) is not None

    def _check_owner(self, action: str, reviewer: str) -> None:
        if any(answer.reviewer != reviewer for answer in self._answers.action(action)):
            raise ArgumentError("This action belongs to another reviewer.")


class OtherAuditError(DataError):
    """A file of answers is about another audit; it can be taken in all the same."""


@dataclass(frozen=True)
class Imported:
    """What became of a file of answers: how many events were new, and how many left out."""

    new: int
    foreign: int = 0


def import_file(
    folder: AuditFolder, name: str, text: str, store: DecisionStore, *, force: bool = False
) -> Imported:
    """Take in a file of answers: a CSV table, what a page without a server saved, or the page.

    Args:
        folder: The audit.
        name: What the file is called, as messages name it.
        text: Its content.
        store: Where the answers go.
        force: Take answers of another audit, too.
    """
    labels = folder.table()
    index = CandidateIndex.read(folder, labels)
    if name.lower().endswith(".csv"):
        return import_answer_table(Path(name), text, labels, index, store)
    suspects = None
    if folder.suspects.is_file():
        suspects = CandidateIndex.read_file(folder.suspects, labels)
    audits = None if force else [folder.created, *folder.earlier]
    return import_answers(name, text, labels, index, store, audits=audits, suspects=suspects)


def import_answers(
    name: str,
    text: str,
    labels: LabelTable,
    index: CandidateIndex,
    store: DecisionStore,
    *,
    audits: Sequence[str] | None = None,
    suspects: CandidateIndex | None = None,
) -> Imported:
    """Take in what the page without a server saves: its answers, or the whole page with them.

    Events that are there already are left alone, so that a file may be taken in twice.

    Args:
        name: What the file is called.
        text: Its content.
        labels: The audited labels.
        index: The candidates of the audit.
        store: Where the events go.
        audits: When the audit was made, and the earlier ones that it replaced: of the answers to
            these, those to pairs that are still known are taken. None for any audit.
        suspects: Labels that may be wrong, which a page may ask about, too.

    Raises:
        DataError: This is not such a file, or it is about another audit.
    """
    content = _content(name, text)
    audit = content.get("audit")
    if audits is not None and audit not in audits:
        raise OtherAuditError(
            f"{name}: these answers are of the audit of {audit!s:.40}, but this one is of"
            f" {audits[0]}. If both are of the same images, take them in with --force."
        )
    incoming = Incoming(labels, index, Answers.of(store), suspects)
    before, foreign = len(store.read()), 0
    try:
        events, row_of = content.get("events"), _by_name(labels, content)
        if isinstance(events, list) and audits is not None and audit != audits[0]:
            known = [
                one
                for one in events
                if not isinstance(one, dict) or incoming.knows(one, row_of(one))
            ]
            events, foreign = known, len(events) - len(known)
        reviewer = check_reviewer(content.get("reviewer"))
        store.add(incoming.events(events, reviewer=reviewer, time=_time, row_of=row_of))
    except ArgumentError as error:
        raise DataError(f"{name}: {error}") from None
    return Imported(len(store.read()) - before, foreign)


def _content(name: str, text: str) -> dict[str, Any]:
    if text.lstrip()[:9].lower() == "<!doctype":
        inside = _IN_PAGE.search(text)
        if inside is None or not inside[1].strip():
            raise DataError(
                f"{name}: this page holds no answers. Press `Save answers` in it, and take in the"
                " file that it saves."
            )
        text = inside[1]
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(
            f"{name}: this is not a JSON file of answers. Save it from the page again."
        ) from None
    if not isinstance(content, dict) or content.get("kind") != FILE_KIND:
        raise DataError(f"{name}: this is not a file of answers saved by the review page.")
    return content


def _foreign(one: Mapping[str, Any]) -> str:
    return (
        f"Class {one.get('class')!r} of image {one.get('image')!r} is not a candidate of this"
        " audit. Was the audit made anew? Reload the page."
    )


def _word(one: Mapping[str, Any], key: str) -> str:
    value = one.get(key)
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ArgumentError(f"An event needs {key!r}: letters, digits, - and _, at most 80.")
    return value


def _time(one: Mapping[str, Any]) -> str:
    value = one.get("time")
    try:
        return datetime.fromisoformat(str(value)).astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        raise ArgumentError(f"An event needs a 'time' in ISO format, but got {value!r}.") from None


def _by_name(
    labels: LabelTable, content: Mapping[str, Any]
) -> Callable[[Mapping[str, Any]], int | None]:
    events = content.get("events")
    found = events if isinstance(events, list) else []
    named = [one.get("image") for one in found if isinstance(one, dict)]
    names = sorted({name for name in named if isinstance(name, str)})
    found_rows = pc.index_in(pa.array(names, pa.string()), value_set=labels.images)
    rows = dict(zip(names, found_rows.to_pylist(), strict=True))
    return lambda one: rows.get(str(one.get("image")))


NEEDED = ("image", "class", "answer")
WORDS: dict[str, AnswerWord] = {"yes": "present", "no": "absent", "unsure": "unsure"}
"""What a cell may say: whether the class is in the image."""


def import_answer_table(
    path: Path, text: str, labels: LabelTable, index: CandidateIndex, store: DecisionStore
) -> Imported:
    """Take in a CSV file with the columns image, class and answer; return how many were new.

    Cells without an answer are passed over. A file may be taken in twice.

    Args:
        path: The file; a column ``reviewer`` says who answered, else the file's name does.
        text: Its content.
        labels: The labels that were audited; a pair may be a candidate or one of them.
        index: The candidates.
        store: Where answers are kept.

    Raises:
        DataError: The file is not such a table, or is about another audit; then nothing is stored.
    """
    found = _Reader(path, text, labels, index).answers()
    before = len(store.read())
    store.add(found)
    return Imported(len(store.read()) - before)


class _Reader:
    """Turns lines into answers."""

    def __init__(self, path: Path, text: str, labels: LabelTable, index: CandidateIndex) -> None:
        self._path, self._labels, self._index = path, labels, index
        self._column_of = {name: column for column, name in enumerate(labels.classes)}
        rows = parse_rows(path, text, NEEDED)
        self._lines = [(line, cells) for line, cells in rows if cells["answer"]]
        self._digest = hashlib.sha256(text.encode()).hexdigest()[:24]
        self._time = now()

    def answers(self) -> list[Answer]:
        row_of = {name: row for row, name in enumerate(self._labels.images.to_pylist())}
        for line, cells in self._lines:
            if cells["image"] not in row_of:
                raise data_error(
                    self._path, f"image {cells['image']!r} is not in this audit.", line=line
                )
        return [self._answer(line, cells, row_of[cells["image"]]) for line, cells in self._lines]

    def _answer(self, line: int, cells: dict[str, str], row: int) -> Answer:
        name, word = cells["class"], cells["answer"].strip().lower()
        if name not in self._column_of:
            raise data_error(self._path, unknown_class(name, self._column_of), line=line)
        if word not in WORDS:
            raise data_error(
                self._path,
                f"answer must be yes, no or unsure, but got {cells['answer']!r}."
                f"{did_you_mean(word, WORDS)}",
                line=line,
            )
        place = self._index.place(self._column_of[name], row)
        if place is None and name not in self._labels.labels_of(row):
            raise data_error(
                self._path,
                f"class {name!r} of image {cells['image']!r} is neither a label nor a candidate of"
                " this audit. Was the audit made anew? Write the queue again.",
                line=line,
            )
        try:
            reviewer = check_reviewer(cells.get("reviewer") or self._path.stem)
        except ArgumentError as error:
            raise data_error(self._path, str(error), line=line) from None
        probs = self._index.class_probabilities(self._column_of[name])
        return Answer(
            id=f"{self._digest}-{line}",
            action=f"{self._digest}-{line}",
            reviewer=reviewer,
            time=self._time,
            image=cells["image"],
            class_name=name,
            answer=WORDS[word],
            mode="ranked",
            probability=None if place is None else float(probs[place]),
        )
