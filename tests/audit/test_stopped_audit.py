"""Audits that were stopped while they wrote, and two in one folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.audit.folder import AuditFolder
from hilltop.cli.main import main
from hilltop.data.files import holding
from hilltop.errors import DataError
from tests.feature_problem import write_problem


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    write_problem(tmp_path, "abcd", train=60, val=20, features=8, above=1, seed=0)
    assert (
        main(["simulate", "train.parquet", "--missing-ratio", "0.5", "--out", "left.parquet"]) == 0
    )
    return ["audit", "--labels=left.parquet", "--features=features.npz", "--out=audit", "--folds=2"]


@pytest.mark.parametrize("again", [False, True])
def test_files_of_two_audits_are_never_taken_for_one(
    again: bool, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if again:
        assert main(words) == 0

    def full(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr("hilltop.audit.run.write_estimates", full)
        assert main(words) == 130
    if again:
        with pytest.raises(DataError, match="an audit was stopped while it wrote"):
            AuditFolder.read(Path("audit"))
    assert main(words) == 0  # the folder is its own, though it was not finished
    assert AuditFolder.read(Path("audit")).images_total == 60


def test_two_audits_at_once_do_not_meet_in_a_folder(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("audit").mkdir()
    with holding(Path("audit")):
        assert main(words) == 1
    assert "another `hilltop audit` writes this folder" in capsys.readouterr().err
    assert Path("audit").is_dir()  # it is the other one's
    assert not list(Path("audit").iterdir())


def test_an_audit_that_cannot_begin_leaves_no_folder(words: list[str]) -> None:
    Path("features.npz").write_bytes(b"cut")
    assert main(words) == 1
    assert not Path("audit").exists()
