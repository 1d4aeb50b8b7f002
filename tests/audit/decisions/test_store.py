"""The file of answers: append-only, safe against being killed, and what the answers add up to."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hilltop.audit.decisions.answers import Answers, Sample, resolve
from hilltop.audit.decisions.store import Answer, DecisionStore, Undo
from hilltop.data.review_record import AnswerWord, Mode
from hilltop.errors import DataError
from tests.processes import HANGING_S


def said(
    number: int,
    answer: AnswerWord,
    *,
    who: str = "Ann",
    image: str = "a.jpg",
    name: str = "dog",
    mode: Mode = "ranked",
) -> Answer:
    time = f"2026-01-31T12:00:{number // 60:02d}.{number % 60:03d}+00:00"
    return Answer(f"e{number}", f"a{number}", who, time, image, name, answer, mode, 0.25)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "decisions.sqlite"


def test_events_come_back_as_they_went_in_after_reopening(path: Path) -> None:
    events = [said(1, "present"), said(2, "unsure", image="ü\n<b>"), Undo("u", "a1", "Ann", "now")]
    store = DecisionStore(path)
    store.add(events)
    store.close()
    again = DecisionStore(path)
    assert again.read() == [(1, events[0]), (2, events[1]), (3, events[2])]
    assert again.read(after=2) == [(3, events[2])]
    again.close()


def test_an_event_that_arrives_twice_is_stored_once(path: Path) -> None:
    store = DecisionStore(path)
    store.add([said(1, "present")])
    store.add([said(1, "present"), said(2, "absent")])
    assert [event.id for _, event in store.read()] == ["e1", "e2"]
    store.close()


def test_a_batch_with_a_broken_event_stores_nothing(path: Path) -> None:
    store = DecisionStore(path)
    with pytest.raises(sqlite3.IntegrityError):
        store.add([said(1, "present"), said(2, "perhaps")])  # type: ignore[arg-type]
    assert store.read() == []
    store.add([said(3, "absent")])
    assert len(store.read()) == 1
    store.close()


def test_answers_cannot_be_changed_or_removed(path: Path) -> None:
    store = DecisionStore(path)
    store.add([said(1, "present")])
    store.close()
    connection = sqlite3.connect(path)
    for command in ("UPDATE events SET answer = 'absent'", "DELETE FROM events"):
        with pytest.raises(sqlite3.IntegrityError, match="answers are never"):
            connection.execute(command)
    connection.close()


def test_every_commit_waits_for_the_disk(path: Path) -> None:
    store = DecisionStore(path)
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


def test_another_file_is_not_taken_for_answers(path: Path) -> None:
    path.write_bytes(b"no database" * 100)
    with pytest.raises(DataError, match=r"decisions\.sqlite: this is not a usable file of answers"):
        DecisionStore(path)
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(DataError, match="another program or version of hilltop wrote it"):
        DecisionStore(path)


def test_two_processes_and_threads_lose_nothing(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hilltop.audit.decisions.store import *\n"
        "store = DecisionStore(Path(sys.argv[1]))\n"
        "for n in range(100): store.add([Undo(f'other{n}', 'x', 'Ben', now())])\n"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(path)])
    store = DecisionStore(path)

    def hammer(start: int) -> None:
        for number in range(start, start + 50):
            store.add([said(number, "absent")])

    threads = [threading.Thread(target=hammer, args=(start,)) for start in (0, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert other.wait(HANGING_S) == 0
    found = {event.id for _, event in store.read()}
    assert found == {f"e{n}" for n in range(100)} | {f"other{n}" for n in range(100)}
    store.close()


def fold(*events: Answer | Undo) -> Answers:
    answers = Answers()
    for event in events:
        answers.take(event)
    return answers


def test_the_last_answer_of_a_reviewer_counts_and_undo_brings_back_the_one_before() -> None:
    first, second = said(1, "present"), said(2, "absent")
    assert fold(first, second).votes("dog", "a.jpg") == {"Ann": second}
    undone = fold(first, second, Undo("u", "a2", "Ann", ""))
    assert undone.votes("dog", "a.jpg") == {"Ann": first}
    assert list(fold(first, Undo("u", "a1", "Ann", "")).all()) == []
    assert list(fold(first, *[Undo(f"u{n}", "a1", "Ann", "") for n in range(2)]).all()) == []


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        (["present"], "present"),
        (["unsure"], "unsure"),
        (["unsure", "absent"], "absent"),
        (["present", "absent"], "disputed"),
        (["present", "absent", "unsure"], "disputed"),
        (["present", "absent", "present"], "present"),
        (["absent", "absent", "present"], "absent"),
    ],
)
def test_the_majority_decides_and_unsure_abstains(words: list[AnswerWord], outcome: str) -> None:
    votes = [said(n, word, who=f"reviewer {n}") for n, word in enumerate(words)]
    assert resolve(votes) == outcome


def test_the_sample_counts_pairs_answered_in_random_mode_only() -> None:
    answers = fold(
        said(1, "present", mode="random"),
        said(2, "absent", image="b.jpg", mode="random"),
        said(3, "unsure", image="c.jpg", mode="random"),
        said(4, "present", image="d.jpg"),
    )
    assert answers.sample("dog") == Sample(present=1, absent=1, open=1)
    # A later answer by rank to a pair of the sample is the better one, and still counts once.
    answers.take(said(5, "present", image="b.jpg"))
    assert answers.sample("dog") == Sample(present=2, absent=0, open=1)
