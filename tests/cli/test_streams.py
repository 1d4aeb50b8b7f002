"""Standard streams as a caller may leave them: closed, full, or in an encoding of few letters."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path

import pytest

from hilltop.cli.main import main


class Full(io.StringIO):
    """A stream on a disk without room."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text("image,labels\na.jpg,Tür;cat\nb.jpg,cat\n", encoding="utf-8")
    return path


def test_names_are_printed_in_any_encoding(labels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert main(["inspect", str(labels), "--unlisted", "unknown"]) == 0
    sys.stdout.flush()
    assert rb"T\xfcr" in written.getvalue()


@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_a_closed_stream_does_not_matter(
    stream: str, labels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, stream, None)
    assert main(["inspect", str(labels), "--unlisted", "unknown"]) == 0
    getattr(sys, stream).close()


def test_labels_from_a_closed_input_are_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["inspect", "-"]) == 1
    sys.stdin.close()
    assert "the file is empty" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--help"], ["--version"], ["inspect", "--help"]])
def test_help_on_a_full_disk_is_a_sentence(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Full())
    assert main(words) == 1
    assert "No space left on device. Make room on the disk." in capsys.readouterr().err
