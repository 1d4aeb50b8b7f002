"""The reviewers' answers: an append-only SQLite file, on disk before anything is acknowledged.

What the answers add up to is worked out in ``answers.py``; nothing here is ever changed or removed.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from hilltop.data.data_errors import data_error
from hilltop.data.review_record import AnswerWord, Mode
from hilltop.errors import ArgumentError

ANSWERS: tuple[str, ...] = get_args(AnswerWord)
MODES: tuple[str, ...] = get_args(Mode)

WAIT_S = 10.0
"""For another process that holds the file; shorter than a page waits for the server."""
_APPLICATION = 0x48494C4C  # "HILL", so that another program's database is not taken for ours
_VERSION = 2
_SCHEMA = (
    """
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('answer', 'undo', 'comment', 'assign')),
    action TEXT NOT NULL,
    reviewer TEXT NOT NULL,
    time TEXT NOT NULL,
    image TEXT, class TEXT,
    answer TEXT CHECK (answer IN ('present', 'absent', 'unsure')),
    mode TEXT CHECK (mode IN ('ranked', 'random', 'ruling')),
    probability REAL,
    text TEXT,
    CHECK ((kind = 'answer') = (answer IS NOT NULL)),
    CHECK ((kind = 'answer') = (mode IS NOT NULL)),
    CHECK ((kind IN ('answer', 'comment')) = (image IS NOT NULL)),
    CHECK ((kind IN ('answer', 'comment')) = (class IS NOT NULL)),
    CHECK ((kind IN ('comment', 'assign')) = (text IS NOT NULL))
)""",
    "CREATE INDEX by_action ON events (action)",
    "CREATE TRIGGER never_changed BEFORE UPDATE ON events"
    " BEGIN SELECT RAISE(ABORT, 'answers are never changed'); END",
    "CREATE TRIGGER never_removed BEFORE DELETE ON events"
    " BEGIN SELECT RAISE(ABORT, 'answers are never removed'); END",
)
_UPGRADE = (
    "DROP TRIGGER never_changed",
    "DROP TRIGGER never_removed",
    "DROP INDEX by_action",
    "ALTER TABLE events RENAME TO version_1",
    *_SCHEMA,
    "INSERT INTO events SELECT *, NULL FROM version_1",
    "DROP TABLE version_1",
)
"""From version 1, which had neither comments nor assignments nor rulings."""


@dataclass(frozen=True)
class Event:
    """What one reviewer did.

    Attributes:
        id: Unique; an event that arrives twice with the same id is stored once.
        action: Groups the answers of one keystroke, which are undone together.
        reviewer: Who.
        time: When, in ISO format, UTC.
    """

    id: str
    action: str
    reviewer: str
    time: str


@dataclass(frozen=True)
class Answer(Event):
    """What one reviewer said of one pair.

    Attributes:
        image: Image id.
        class_name: Class.
        answer: Whether the class is present.
        mode: Whether the pair was shown by rank, or as one of a random sample, or whether the
            answer is an adjudicator's ruling, which decides over all others.
        probability: What the audit thought of it.
    """

    image: str
    class_name: str
    answer: AnswerWord
    mode: Mode
    probability: float | None


@dataclass(frozen=True)
class Undo(Event):
    """A reviewer takes back all answers of one action."""


@dataclass(frozen=True)
class Comment(Event):
    """What a reviewer wrote about one pair; the last one holds, and an empty one takes it back."""

    image: str
    class_name: str
    text: str


@dataclass(frozen=True)
class Assign(Event):
    """Who is asked about what, as JSON of all people; the last one holds."""

    text: str


class DecisionStore:
    """The file of answers.

    Several threads and several processes may use one file at the same time.

    Example:
        >>> import tempfile
        >>> store = DecisionStore(Path(tempfile.mkdtemp()) / "decisions.sqlite")
        >>> said = Answer("1", "1", "Ann", now(), "a.jpg", "dog", "present", "ranked", 0.9)
        >>> store.add([said, Undo("2", "1", "Ann", now())])
        >>> [number for number, event in store.read()]
        [1, 2]
        >>> store.close()
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or create it.

        Raises:
            DataError: The file is damaged or is not a file of answers.
        """
        self.path = path
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(
                path, timeout=WAIT_S, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise data_error(
                path, f"the file of answers cannot be opened: {error}.{_hint(error)}"
            ) from None
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._connection.close()
            hint = _hint(error)
            raise data_error(
                path, f"this is not a usable file of answers: {error}.{hint}"
            ) from None
        self._identity = _identity(path)

    def _prepare(self) -> None:
        run = self._connection.execute
        tables = run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application, version = (
            run(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if tables and (application != _APPLICATION or version not in (1, _VERSION)):
            raise sqlite3.DatabaseError("another program or version of hilltop wrote it")
        run("PRAGMA journal_mode = WAL")
        # NORMAL, usual with WAL, does not wait for the disk: a power cut could lose answers.
        run("PRAGMA synchronous = FULL")
        if version == _VERSION:
            return
        run("BEGIN IMMEDIATE")
        try:
            if run("PRAGMA user_version").fetchone()[0] != _VERSION:  # another may have been faster
                for statement in _UPGRADE if tables else _SCHEMA:
                    run(statement)
                run(f"PRAGMA application_id = {_APPLICATION}")
                run(f"PRAGMA user_version = {_VERSION}")
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise

    def add(self, events: Sequence[Event]) -> None:
        """Append events, all or none; they are on disk when this returns.

        Raises:
            ArgumentError: An id was used before, for something else.
            DataError: The file is locked, full, read-only or gone.
        """
        rows = [_row(event) for event in events]
        try:
            with self._lock:
                self._check_there()
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    self._insert(rows)
                    self._connection.execute("COMMIT")
                except BaseException:
                    if self._connection.in_transaction:  # a full disk has ended it already
                        self._connection.execute("ROLLBACK")
                    raise
                self._check_there()
        except sqlite3.IntegrityError:
            raise  # an event that none of our own would make
        except sqlite3.Error as error:
            hint = _hint(error)
            raise data_error(self.path, f"answers could not be stored: {error}.{hint}") from None

    def _insert(self, rows: Sequence[Row]) -> None:
        # Not INSERT OR IGNORE, which would also pass over rows that break a check.
        before = self._connection.total_changes
        self._connection.executemany(
            f"INSERT INTO events ({_NAMES}) VALUES ({', '.join('?' * len(_COLUMNS))})"
            " ON CONFLICT (id) DO NOTHING",
            rows,
        )
        if self._connection.total_changes - before < len(rows):
            self._check_repeated(rows)

    def _check_repeated(self, rows: Sequence[Row]) -> None:
        """Raise if an id was there already for something else; time and probability may differ."""
        for row in rows:
            found = self._connection.execute(
                f"SELECT {_NAMES} FROM events WHERE id = ?", (row[0],)
            ).fetchone()
            if [found[at] for at in _SAME] != [row[at] for at in _SAME]:
                raise ArgumentError(
                    f"The id {row[0]!r} was used before, for another answer. Reload the page."
                )

    def _check_there(self) -> None:
        """Raise if the file was removed or replaced, so that answers would go nowhere."""
        if _identity(self.path) != self._identity:
            raise data_error(
                self.path,
                "the file of answers was removed or replaced. Put it back, or start the review"
                " again.",
            )

    def read(self, *, after: int = 0) -> list[tuple[int, Event]]:
        """Return the events behind number ``after``, with their numbers.

        Raises:
            DataError: The file is damaged.
        """
        try:
            with self._lock:
                rows = self._connection.execute(
                    f"SELECT number, {_NAMES} FROM events WHERE number > ? ORDER BY number",
                    (after,),
                ).fetchall()
        except sqlite3.Error as error:
            hint = _hint(error) or " Restore it from a copy, or move it away to begin anew."
            raise data_error(self.path, f"answers could not be read: {error}.{hint}") from None
        found = []
        for number, *cells in rows:
            try:
                found.append((number, _event(cells)))
            except (TypeError, ValueError):
                problem = f"event {number} is not one that hilltop wrote. Restore it from a copy."
                raise data_error(self.path, problem) from None
        return found

    def __len__(self) -> int:
        """Number of events."""
        with self._lock:
            return int(self._connection.execute("SELECT count(*) FROM events").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()


Row = tuple[str | float | None, ...]
_COLUMNS = (
    "id",
    "kind",
    "action",
    "reviewer",
    "time",
    "image",
    "class",
    "answer",
    "mode",
    "probability",
    "text",
)
_NAMES = ", ".join(_COLUMNS)
_SAME = [at for at, name in enumerate(_COLUMNS) if name not in ("id", "time", "probability")]
_HINTS = {
    "SQLITE_BUSY": " Another program holds it: close that one.",
    "SQLITE_LOCKED": " Another program holds it: close that one.",
    "SQLITE_READONLY": " Make the file and its folder writable.",
    "SQLITE_CANTOPEN": " Make the file and its folder writable.",
    "SQLITE_FULL": " Make room on the disk.",
}
"""What to do, by the name of the error."""


def _hint(error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    return next((hint for start, hint in _HINTS.items() if name.startswith(start)), "")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def now() -> str:
    """The time in ISO format, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


_KINDS: dict[str, type[Event]] = {
    "answer": Answer,
    "undo": Undo,
    "comment": Comment,
    "assign": Assign,
}


def _row(event: Event) -> Row:
    """The cells of an event; what it does not have is empty."""
    kind = next(kind for kind, made in _KINDS.items() if type(event) is made)
    cells = {**vars(event), "kind": kind, "class": vars(event).get("class_name")}
    if cells.get("probability") is not None:
        cells["probability"] = float(cells["probability"])
    return tuple(cells.get(name) for name in _COLUMNS)


def _event(cells: Sequence[Any]) -> Event:
    """The event of a row; ValueError if somebody else wrote it."""
    known = dict(zip(_COLUMNS, cells, strict=True))
    made = _KINDS[known["kind"]]
    if made is Answer:
        datetime.fromisoformat(known["time"])  # by which speed is measured
    known["class_name"] = known["class"]
    return made(**{one.name: known[one.name] for one in fields(made)})
