"""Answers on their way in, from the page or from a file: checked in full before any is stored."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from hilltop.audit.decisions.answers import Answers, same_name
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
from hilltop.audit.folder import AuditFolder
from hilltop.audit.pairs import AuditPairs
from hilltop.checks import check_choice, did_you_mean
from hilltop.data.data_errors import data_error, unknown_class
from hilltop.data.review_record import AnswerWord, Mode
from hilltop.data.small_files import parse_json, parse_rows
from hilltop.errors import ArgumentError, DataError

_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
_LONGEST_NAME = 60
MOST_EVENTS = 2_000
"""Events in one request; the page sends more in several."""
LONGEST_COMMENT = 2_000
Who = tuple[str, str, str, str]
"""Id, action, reviewer and time of an event."""
FILE_KIND = "hilltop answers"
_IN_PAGE = re.compile(r'id="review-answers">(.*?)</script>', re.DOTALL)


def check_reviewer(name: Any) -> str:
    """Return the name of a reviewer with single spaces between its words, if it can be one."""
    if not isinstance(name, str) or not name.strip():
        raise ArgumentError("A reviewer needs a name.")
    word = unicodedata.normalize("NFC", " ".join(name.split()))
    if len(word) > _LONGEST_NAME or not word.isprintable():
        raise ArgumentError(
            f"The name of a reviewer must have at most {_LONGEST_NAME} printable characters."
        )
    return word


class Incoming:
    """Turns what arrived as JSON into events about pairs that the audit lists."""

    def __init__(self, pairs: AuditPairs, answers: Answers) -> None:
        """Know the pairs, and the answers so far."""
        self._pairs, self._answers = pairs, answers

    def events(
        self, raw: Any, *, reviewer: str, time: str | None = None, may_rule: bool = False
    ) -> list[Event]:
        """Check events and return them.

        Args:
            raw: What arrived: a list of objects with ``id``, ``action`` and either ``undo: true``
                or ``image``, ``class`` and either ``comment`` or ``answer`` and ``mode``; with
                ``by_name: true`` the pair need not be a candidate. A ``row`` must be the number of
                the image.
            reviewer: Whose they are.
            time: When they happened; None if each one says so itself.
            may_rule: Whether the reviewer is an adjudicator.

        Raises:
            ArgumentError: One of them cannot be taken; then none is.
        """
        if not isinstance(raw, list):
            raise ArgumentError("Expected a list of events.")
        return [self.event(one, reviewer, time=time, may_rule=may_rule) for one in raw]

    def event(
        self, one: Any, reviewer: str, *, time: str | None = None, may_rule: bool = False
    ) -> Event:
        """Check one event and return it."""
        if not isinstance(one, dict):
            raise ArgumentError("An event must be an object.")
        own, action = _word(one, "id"), _word(one, "action")
        if any(answer.reviewer != reviewer for answer in self._answers.action(action)):
            raise ArgumentError("This action belongs to another reviewer.")
        who = (own, action, reviewer, time or _time(one))
        # An undo of what is gone already is no error: it was sent again for want of a reply.
        if one.get("undo") is True:
            return Undo(*who)
        if "comment" in one:
            return self._comment(one, who)
        return self._answer(one, who, may_rule=may_rule)

    def _comment(self, one: Mapping[str, Any], who: Who) -> Comment:
        self._place(one)
        text = one.get("comment")
        if not isinstance(text, str) or len(text) > LONGEST_COMMENT:
            raise ArgumentError(
                f"A comment is a text of at most {LONGEST_COMMENT:,} characters"
                + (f", but this one has {len(text):,}." if isinstance(text, str) else ".")
            )
        plain = "".join(sign if sign.isprintable() else " " for sign in text).strip()
        return Comment(*who, image=one["image"], class_name=one["class"], text=plain)

    def _answer(self, one: Mapping[str, Any], who: Who, *, may_rule: bool) -> Answer:
        column, row = self._place(one)
        probability = self._pairs.probability(column, row)
        # Image by image, a person may name any class; elsewhere the page shows candidates alone.
        if probability is None and one.get("by_name") is not True:
            raise ArgumentError(_foreign(one))
        mode = cast(Mode, check_choice("mode", one.get("mode", ""), MODES))
        if mode == "ruling" and not may_rule:
            raise ArgumentError("Only an adjudicator may decide where answers differ.")
        return Answer(
            *who,
            image=one["image"],
            class_name=one["class"],
            answer=cast(AnswerWord, check_choice("answer", one.get("answer", ""), ANSWERS)),
            mode=mode,
            probability=probability,
        )

    def _place(self, one: Mapping[str, Any]) -> tuple[int, int]:
        """Numbers of the class and of the image that an event is about."""
        column = self._pairs.column_of.get(str(one.get("class")))
        row = self._pairs.row_of(one.get("image"), said=one.get("row"))
        if column is None or row is None:
            raise ArgumentError(_foreign(one))
        return column, row

    def knows(self, one: Any) -> bool:
        """Whether the pair of an event is one of this audit; an undo is about none."""
        if not isinstance(one, dict) or one.get("undo") is True:
            return True
        try:
            place = self._place(one)
        except ArgumentError:
            return False
        return one.get("by_name") is True or self._pairs.probability(*place) is not None


class OtherAuditError(DataError):
    """A file of answers is about another audit; it can be taken in all the same."""


@dataclass(frozen=True)
class Imported:
    """What became of a file of answers: how many events were new, and how many left out."""

    new: int
    foreign: int = 0


def import_file(
    folder: AuditFolder,
    name: str,
    text: str,
    store: DecisionStore,
    *,
    pairs: AuditPairs,
    force: bool = False,
    may_rule: bool = False,
) -> Imported:
    """Take in a file of answers: a CSV table, what a page without a server saved, or the page.

    Events that are there already are left alone, so that a file may be taken in twice. What the
    same people answered later stays as it is. Of answers to an earlier audit that this one
    replaced, those to pairs that are still known are taken.

    Args:
        folder: The audit.
        name: What the file is called, as messages name it.
        text: Its content.
        store: Where the answers go.
        pairs: Those of the audit.
        force: Take answers of another audit, too.
        may_rule: Take decisions of adjudicators, which a table of answers may hold.

    Raises:
        DataError: This is not such a file, or it is about another audit; then nothing is stored.
    """
    answers = Answers.of(store)
    incoming, foreign = Incoming(pairs, answers), 0
    if name.lower().endswith(".csv"):
        events = _table_events(Path(name), text, pairs, answers, may_rule=may_rule)
    else:
        content = _content(name, text)
        audit, raw = content.get("audit"), content.get("events")
        if not force and audit not in (folder.created, *folder.earlier):
            raise OtherAuditError(
                f"{name}: these answers are of the audit of {audit!s:.40}, but this one is of"
                f" {folder.created}. If both are of the same images, take them in with --force."
            )
        if isinstance(raw, list):
            pairs.rows_of(
                one["image"]
                for one in raw
                if isinstance(one, dict) and isinstance(one.get("image"), str)
            )  # all at once, which is faster
            raw = [{**one, "row": None} if isinstance(one, dict) else one for one in raw]
            if not force and audit != folder.created:
                known = [one for one in raw if incoming.knows(one)]
                raw, foreign = known, len(raw) - len(known)
        try:
            who = same_name(check_reviewer(content.get("reviewer")), answers.names)
            events = incoming.events(raw, reviewer=who, may_rule=may_rule)
        except ArgumentError as error:
            raise DataError(f"{name}: {error}") from None
    before = len(store)
    store.add(events)
    return Imported(len(store) - before, foreign)


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
        content = parse_json(text)
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
    """When an event happened by its own account, and not later than now: a clock may be wrong."""
    value = one.get("time")
    try:
        given = datetime.fromisoformat(str(value)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ArgumentError(f"An event needs a 'time' in ISO format, but got {value!r}.") from None
    return min(given.isoformat(timespec="milliseconds"), now())


NEEDED = ("image", "class", "answer")
WORDS: dict[str, AnswerWord] = {"yes": "present", "no": "absent", "unsure": "unsure"}
"""What a cell may say: whether the class is in the image."""


def _table_events(
    path: Path, text: str, pairs: AuditPairs, answers: Answers, *, may_rule: bool
) -> list[Event]:
    """The answers and comments of a CSV file with the columns image, class and answer.

    Rows without either are passed over. Further columns are those that the page exports:
    ``reviewer`` (else the name of the file says who answered), ``time`` (else now), ``mode`` and
    ``comment``.
    """
    lines = parse_rows(path, text, NEEDED)
    pairs.rows_of(cells["image"] for _, cells in lines)  # all at once, which is faster
    digest, incoming = hashlib.sha256(text.encode()).hexdigest(), Incoming(pairs, answers)
    found: list[Event] = []
    for line, cells in lines:
        try:
            who = same_name(check_reviewer(cells.get("reviewer") or path.stem), answers.names)
            for event in _row_events(cells, f"{digest}-{line}", pairs):
                one = incoming.event(event, who, may_rule=may_rule)
                if not answers.holds(one):
                    found.append(one)
        except ArgumentError as error:
            raise data_error(path, str(error), line=line) from None
    return found


def _row_events(cells: Mapping[str, str], line: str, pairs: AuditPairs) -> Iterator[dict[str, Any]]:
    """What a row says, in the form of the page; ids follow from it, so that it is taken once."""
    word, comment = cells["answer"].strip().lower(), cells.get("comment", "").strip()
    if not (word or comment):
        return
    image, name = cells["image"], cells["class"]
    row = pairs.row_of(image)
    if row is None:
        raise ArgumentError(f"image {image!r} is not in this audit.")
    if name not in pairs.column_of:
        raise ArgumentError(unknown_class(name, pairs.column_of))
    if word and word not in WORDS:
        given = f"{cells['answer']!r}.{did_you_mean(word, WORDS)}"
        raise ArgumentError(f"answer must be yes, no or unsure, but got {given}")
    time, mode = cells.get("time") or now(), cells.get("mode") or "ranked"
    # A class that was added by name is no candidate; where no mode is named, that is a mistake.
    by_name = "mode" in cells or name in pairs.labels.labels_of(row)
    if word and not by_name and pairs.probability(pairs.column_of[name], row) is None:
        raise ArgumentError(
            f"class {name!r} of image {image!r} is neither a label nor a candidate of this"
            " audit. Was the audit made anew? Write the queue again."
        )
    about = {"image": image, "class": name, "time": time, "mode": mode, "by_name": by_name}
    for kind, what in (("answer", WORDS.get(word)), ("comment", comment)):
        if what:
            said = (
                [kind, what, cells.get("reviewer"), *about.values()] if cells.get("time") else line
            )
            own = hashlib.sha256(f"{kind} {said}".encode()).hexdigest()[:32]
            yield {"id": own, "action": own, **about, kind: what}
