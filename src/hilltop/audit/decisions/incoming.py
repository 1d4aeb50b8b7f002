"""Answers on their way in, from the page or from a file: checked in full before any is stored."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from hilltop.audit.decisions.answers import Answers
from hilltop.audit.decisions.store import (
    ANSWERS,
    MODES,
    Answer,
    DecisionStore,
    Event,
    Undo,
)
from hilltop.audit.find.candidate_index import CandidateIndex
from hilltop.checks import check_choice
from hilltop.data import LabelTable
from hilltop.data.data_errors import data_error
from hilltop.data.review_record import AnswerWord, Mode
from hilltop.errors import ArgumentError, DataError

_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_LONGEST_NAME = 60
MOST_EVENTS = 2_000
"""Events in one request; the page sends more in several."""
FILE_KIND = "hilltop answers"


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
    ) -> list[Event]:
        """Check events and return them.

        Args:
            raw: What arrived: a list of objects with ``id``, ``action`` and either ``undo: true``
                or ``image``, ``class``, ``answer`` and ``mode``; with ``by_name: true`` the pair
                need not be a candidate.
            reviewer: Whose they are.
            time: When an event happened.
            row_of: The image number of an event, None if there is no such image.

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
            undo = one.get("undo") is True
            found.append(Undo(*who) if undo else self._answer(one, who, row_of(one)))
        return found

    def _answer(
        self, one: Mapping[str, Any], who: tuple[str, str, str, str], row: int | None
    ) -> Answer:
        column = self._column_of.get(str(one.get("class")))
        probability = None if column is None or row is None else self._probability(column, row)
        # Image by image, a person may name any class; elsewhere the page shows candidates alone.
        by_name = one.get("by_name") is True
        if column is None or row is None or (probability is None and not by_name):
            raise ArgumentError(
                f"Class {one.get('class')!r} of image {one.get('image')!r} is not a candidate of"
                " this audit. Was the audit made anew? Reload the page."
            )
        return Answer(
            *who,
            image=self._labels.images[row].as_py(),
            class_name=self._labels.classes[column],
            answer=cast(AnswerWord, check_choice("answer", one.get("answer", ""), ANSWERS)),
            mode=cast(Mode, check_choice("mode", one.get("mode", ""), MODES)),
            probability=probability,
        )

    def _probability(self, column: int, row: int) -> float | None:
        """What the audit thought of a pair; None if it is not among those it lists."""
        for index in self._indices:
            place = index.place(column, row)
            if place is not None:
                return float(index.class_probabilities(column)[place])
        return None

    def _check_owner(self, action: str, reviewer: str) -> None:
        if any(answer.reviewer != reviewer for answer in self._answers.action(action)):
            raise ArgumentError("This action belongs to another reviewer.")


def import_answers(
    path: Path,
    labels: LabelTable,
    index: CandidateIndex,
    store: DecisionStore,
    *,
    audit: str | None = None,
) -> int:
    """Take in the file that the page without a server saves; return the number of new events.

    Events that are there already are left alone, so that a file may be taken in twice.

    Args:
        path: The file.
        labels: The audited labels.
        index: The candidates of the audit.
        store: Where the events go.
        audit: When the audit was made that the answers must be of; None for any.

    Raises:
        DataError: The file is not such a file, or is about another audit.
    """
    if not path.is_file():
        raise data_error(path, "there is no such file.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise data_error(
            path, "this is not a JSON file of answers. Save it from the page again."
        ) from None
    if not isinstance(content, dict) or content.get("kind") != FILE_KIND:
        raise data_error(path, "this is not a file of answers saved by the review page.")
    if audit is not None and content.get("audit") != audit:
        raise data_error(
            path,
            f"these answers are of the audit of {content.get('audit')!s:.40}, but this one is of"
            f" {audit}. If both are of the same images, take them in with --force.",
        )
    answers = Answers.of(store)
    before = len(store.read())
    try:
        reviewer = check_reviewer(content.get("reviewer"))
        events = Incoming(labels, index, answers).events(
            content.get("events"), reviewer=reviewer, time=_time, row_of=_by_name(labels, content)
        )
        store.add(events)
    except ArgumentError as error:
        raise DataError(f"{path}: {error}") from None
    return len(store.read()) - before


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
    try:
        rows = dict(zip(names, labels.find(names).tolist(), strict=True)) if names else {}
    except DataError as error:
        raise ArgumentError(str(error)) from None
    return lambda one: rows.get(str(one.get("image")))
