"""Answers that cannot be stored are never acknowledged, and the reason is a sentence."""

from __future__ import annotations

import csv
import json
import socket
import sqlite3
from pathlib import Path

import pytest

from hilltop.audit.decisions import store as store_module
from hilltop.audit.decisions.store import DecisionStore
from hilltop.audit.folder import AuditFolder
from hilltop.cli.main import main
from hilltop.data.review_record import (
    ReviewRecord,
    provenance_path,
    read_provenance,
    write_provenance,
)
from hilltop.errors import ArgumentError, DataError
from tests.audit.decisions.test_store import said
from tests.audit.review.serving import answer_event, serving, stored


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "decisions.sqlite"


MOST_TRIES = 2000
"""Requests until a server must have noticed that connections came or went."""


def test_a_removed_file_of_answers_takes_no_more(path: Path) -> None:
    store = DecisionStore(path)
    store.add([said(1, "present")])
    path.unlink()
    for _ in range(2):
        with pytest.raises(DataError, match=r"decisions\.sqlite: the file of answers was removed"):
            store.add([said(2, "present")])
    DecisionStore(path).close()  # another one of the same name is not the same
    with pytest.raises(DataError, match="was removed or replaced"):
        store.add([said(3, "present")])
    store.close()


def test_the_page_keeps_answers_that_went_nowhere(audit: AuditFolder) -> None:
    with serving(audit.path) as server:
        one = server.get("/api/start", reviewer="Ann")["classes"][0]
        pair = server.get("/api/pairs", **{"class": one["number"], "count": 1})["pairs"][0]
        audit.decisions.unlink()
        status, reply = server.post("Ann", [answer_event(1, pair, one["name"], "present")])
    assert status == 503  # which the page takes for "try again"
    assert "was removed or replaced" in reply["error"]


def test_a_locked_file_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "WAIT_S", 0.0)
    store = DecisionStore(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(DataError, match=r"database is locked\. Another program holds it: close"):
        store.add([said(1, "present")])
    other.execute("ROLLBACK")
    store.add([said(1, "present")])
    assert len(store.read()) == 1
    other.close()
    store.close()


def test_a_file_that_cannot_be_written_is_said(path: Path) -> None:
    DecisionStore(path).close()
    store = DecisionStore(path)
    store._connection.execute("PRAGMA query_only = 1")
    with pytest.raises(DataError, match=r"Make the file and its folder writable"):
        store.add([said(1, "present")])
    store.close()


def test_a_full_disk_is_said_and_takes_answers_again_when_there_is_room(path: Path) -> None:
    store = DecisionStore(path)
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    answers = [said(number, "present") for number in range(1, 200)]
    with pytest.raises(DataError, match=r"disk is full\. Make room on the disk\."):
        store.add(answers)
    store._connection.execute("PRAGMA max_page_count = 10000")
    store.add(answers)
    assert len(store.read()) == len(answers)
    store.close()


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Make the file and its folder writable"):
        DecisionStore(tmp_path / "gone" / "decisions.sqlite")


def test_an_id_is_not_used_twice_for_different_answers(path: Path) -> None:
    store = DecisionStore(path)
    store.add([said(1, "present")])
    store.add([said(1, "present"), said(2, "absent")])  # sent again for want of a reply
    with pytest.raises(ArgumentError, match="The id 'e1' was used before, for another answer"):
        store.add([said(3, "present"), said(1, "absent")])
    assert [event.id for _, event in store.read()] == ["e1", "e2"]
    store.close()


def answers_file(path: Path, audit: AuditFolder, *, made: str) -> Path:
    table = audit.table()
    row = next(row for row in range(len(table)) if len(table.labels_of(row)) < len(table.classes))
    name = next(name for name in table.classes if name not in table.labels_of(row))
    event = {
        "id": "1", "action": "1", "time": "2026-01-31T12:00:00Z", "mode": "ranked",
        "image": table.images[row].as_py(), "class": name, "answer": "present",
    }  # fmt: skip
    content = {"kind": "hilltop answers", "audit": made, "reviewer": "A", "events": [event]}
    path.write_text(json.dumps(content))
    return path


def test_answers_of_another_audit_are_taken_in_when_asked_alone(
    audit: AuditFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = answers_file(tmp_path / "answers.json", audit, made="another day")
    words = ["review", str(audit.path), "--import", str(file)]
    assert main(words) == 1
    message = capsys.readouterr().err
    assert f"{file}: these answers are of the audit of another day" in message
    assert "take them in with --force" in message
    assert stored(audit) == []
    assert main([*words, "--force"]) == 0
    assert len(stored(audit)) == 1
    answers_file(file, audit, made=audit.created)
    assert main(words) == 0


def test_a_file_of_answers_that_is_not_there_is_named(
    audit: AuditFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["review", str(audit.path), "--import", str(tmp_path / "gone.json")]) == 1
    assert "gone.json: there is no such file." in capsys.readouterr().err


FORMULAS = ("=cmd|' /C calc'!A0", "+1", "-2+3", "@SUM(A1)", "\tx", "'=1", "'plain")


def test_a_name_that_is_a_formula_is_no_formula_for_a_spreadsheet(tmp_path: Path) -> None:
    records = [
        ReviewRecord(name, name, "present", name, "2026-01-31", 0.5, "ranked", "present")
        for name in FORMULAS
    ]
    labels = tmp_path / "labels.csv"
    provenance_path(labels).write_text(write_provenance(records))
    with provenance_path(labels).open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert {record.image for record in read_provenance(labels)} == set(FORMULAS)


def test_connections_beyond_the_bound_are_told_to_come_back(audit: AuditFolder) -> None:
    from hilltop.audit.review.server import MOST_CONNECTIONS

    with serving(audit.path) as server:
        held = [
            socket.create_connection(("127.0.0.1", server.port)) for _ in range(MOST_CONNECTIONS)
        ]
        statuses = set()
        for _ in range(MOST_TRIES):  # the last of them may still be on their way
            statuses.add(server.request("GET", "/api/start")[0])
            if 503 in statuses:
                break
        for one in held:
            one.close()
        again = (server.request("GET", "/api/start")[0] for _ in range(MOST_TRIES))
        assert 200 in again, "a place is free again"
    assert 503 in statuses
    assert statuses <= {200, 503}
