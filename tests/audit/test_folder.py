"""The folder of an audit, and what is said when it is not one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hilltop.audit.folder import AuditFolder
from hilltop.data import ReadOptions
from hilltop.errors import DataError

MISSING = {"value": 5.0, "low": 4.0, "high": 6.0}


def test_what_is_written_is_read_again_wherever_one_stands(
    audit: AuditFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ReadOptions(unlisted="absent", minus_one="unknown", classes=Path("names.txt"))
    written = AuditFolder(
        audit.path, Path("a b.csv"), "wide", options, Path("pictures"), 7, MISSING, "today"
    )
    written.write()
    here = Path.cwd()
    monkeypatch.chdir(tmp_path)
    assert AuditFolder.read(audit.path) == replace(
        written,
        labels=here / "a b.csv",
        images=here / "pictures",
        reading=replace(options, classes=here / "names.txt"),
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "version 2, but this hilltop reads 1"),
        ({"format": "word"}, "'format' must be one of hilltop"),
        ({"format": []}, "'format' must be one of hilltop"),
        ({"summary": "\ud800"}, "this is not valid JSON"),
        ({"labels": 3}, "'labels' must be a path, but got 3"),
        ({"images": ""}, "'images' must be a path"),
        ({"images": "a\0b"}, "'images' must be a path"),
        ({"reading": {"speed": 3}}, "'reading' must hold options among background_class"),
        ({"reading": {"classes": 5}}, "reading.classes cannot be 5; expected Path or nothing"),
        ({"reading": {"unlisted": "all"}}, "reading.unlisted cannot be 'all'"),
        ({"images_total": "many"}, "'images_total' must be a number of images, but got 'many'"),
        ({"images_total": 1e400}, "'images_total' must be a number of images, but got inf"),
        (
            {"missing": {**MISSING, "low": "x"}},
            "'missing' must be an object with the numbers value, low and high",
        ),
        (
            {"missing": 7},
            "'missing' must be an object with the numbers value, low and high, but got 7",
        ),
    ],
)
def test_faults_are_said_in_words(audit: AuditFolder, change: dict[str, object], said: str) -> None:
    about = audit.path / "audit.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), **change}))
    with pytest.raises(DataError, match=said) as caught:
        AuditFolder.read(audit.path)
    assert str(about) in str(caught.value)


def test_other_folders_are_told_apart(audit: AuditFolder, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such folder"):
        AuditFolder.read(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"holds no audit\.json"):
        AuditFolder.read(tmp_path)
    audit.candidates.unlink()
    with pytest.raises(DataError, match=r"candidates\.parquet is missing. Run `hilltop audit`"):
        AuditFolder.read(audit.path)
    (audit.path / "audit.json").write_text("{")
    with pytest.raises(DataError, match="not valid JSON"):
        AuditFolder.read(audit.path)
