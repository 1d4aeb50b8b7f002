"""Files are written completely or not at all, and never over what they were made from."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hilltop.data import FORMATS, LabelTable, State, files, write_labels
from hilltop.data.files import atomic_write, check_outputs, replacing, replacing_folder
from hilltop.data.scores import ScoreTable
from hilltop.errors import ArgumentError, DataError
from tests.processes import start, wait_until

NOT_FILES = {
    *(
        "class_folders",
        "libsvm",
        "mulan",
        "nus",
        "openimages",
        "celeba",
        "audioset",
        "sidecar",
        "voc",
        "voc_xml",
        "yolo",
    ),
}
"""Formats that are written as a folder, or not at all."""
NAMES = {"huggingface": "metadata.csv"}
"""What a file must be called."""


def small_table() -> LabelTable:
    return LabelTable.from_coo(
        ["a.jpg", "b.jpg"], ["cat", "dog"], [0, 1], [0, 1], State.PRESENT, unlisted=State.ABSENT
    )


FULL = r"could not be written: No space left on device\. Make room on the disk\."


def disk_is_full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_fault_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    atomic_write(path, "old")

    def write_half() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half of the n")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in NOT_FILES])
def test_every_format_keeps_the_old_file_when_the_disk_is_full(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / NAMES.get(name, "labels.csv")
    path.write_text("precious")
    monkeypatch.setattr(os, "fsync", disk_is_full)
    with pytest.raises(DataError, match=FULL):
        write_labels(small_table(), path, format=name, lossy=True)
    assert path.read_text() == "precious"


@pytest.mark.parametrize("name", [name for name, one in FORMATS.items() if one.folders])
def test_a_folder_of_labels_is_there_completely_or_not_at_all(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "replace", disk_is_full)
    path = tmp_path / "labels"
    with pytest.raises((OSError, DataError)):
        write_labels(small_table(), path, format=name, lossy=True)
    assert not path.exists()


def test_scores_are_replaced_with_their_names_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = ScoreTable(pa.array(["a"]), ("cat",), np.zeros((1, 1)))
    old.save(tmp_path / "scores.npy")
    monkeypatch.setattr(os, "fsync", disk_is_full)
    with pytest.raises(DataError, match=FULL):
        ScoreTable(pa.array(["b", "c"]), ("cat",), np.ones((2, 1))).save(tmp_path / "scores.npy")
    assert ScoreTable.load(tmp_path / "scores.npy").images.to_pylist() == ["a"]


def test_what_a_killed_writer_left_is_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "STALE_S", 0.0)
    code = (
        "import sys, time; from pathlib import Path; from hilltop.data.files import replacing\n"
        "with replacing(Path(sys.argv[1])) as file:\n file.write_text('half')\n time.sleep(3600)"
    )
    path = tmp_path / "a.txt"
    process = start("-c", code, path)
    wait_until(lambda: any(tmp_path.glob(".a.txt.*/new.txt")), process)
    atomic_write(path, "of another process")  # does not disturb one that is alive
    assert any(tmp_path.glob(".a.txt.*"))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    atomic_write(path, "new")
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "new"


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "a.txt", tmp_path / "link.txt"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    atomic_write(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_pipe_can_be_written_to() -> None:
    atomic_write(Path(os.devnull), "gone")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there/a\.txt: its folder does not exist\."):
        atomic_write(tmp_path / "there" / "a.txt", "")


def test_a_folder_is_not_taken_for_a_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"this is a folder\. Name a file\."):
        atomic_write(tmp_path, "new")


def test_an_empty_folder_keeps_its_permissions(tmp_path: Path) -> None:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    with replacing_folder(folder) as new:
        (new / "labels.txt").write_text("new")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "labels.txt").is_file()


def test_the_folder_one_stands_in_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for here in (Path(), tmp_path):
        with (
            pytest.raises(DataError, match="this folder is in use and cannot be replaced"),
            replacing_folder(here),
        ):
            pass
    assert Path.cwd().is_dir()


def test_a_place_that_cannot_be_written_to_is_said_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.os, "access", lambda path, _: Path(path) != tmp_path)
    for out in (tmp_path / "a.csv", tmp_path / "new" / "deep" / "a.csv"):
        with pytest.raises(DataError, match=r"a\.csv: the folder .* cannot be written to\."):
            check_outputs([out], [], force=False)
    check_outputs([Path(os.devnull)], [], force=True)


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_an_input_is_known_by_what_it_is(link: str, tmp_path: Path) -> None:
    read, other = tmp_path / "labels.csv", tmp_path / "other.csv"
    read.write_text("labels")
    getattr(other, link)(read)
    for force in (False, True):
        with pytest.raises(ArgumentError, match=r"other\.csv: this file is what the command reads"):
            check_outputs([other], [read], force=force)


def test_another_file_is_replaced_only_when_asked(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    check_outputs([out], [], force=False)
    out.write_text("something")
    with pytest.raises(ArgumentError, match="pass --force to replace it"):
        check_outputs([out], [], force=False)
    check_outputs([out], [], force=True)


def test_scores_never_stand_beside_names_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, values = tmp_path / "s.npy", np.ones((2, 1), dtype=np.float32)
    ScoreTable(pa.array(["a", "b"]), ("cat",), values).save(path)
    replace, moved = os.replace, []

    def killed_at_the_second(source: object, target: Path) -> None:
        moved.append(target)
        if len(moved) == 2:
            raise SystemExit
        replace(source, target)  # type: ignore[call-overload]

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", killed_at_the_second)
        with pytest.raises(SystemExit):
            ScoreTable(pa.array(["c", "d"]), ("cat",), 0 * values).save(path)
    with pytest.raises(DataError, match="there are no names beside"):
        ScoreTable.load(path)


def test_a_name_that_is_no_text_is_said_before_anything_is_computed(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"xff\.csv': the name of this file is not UTF-8"):
        check_outputs([tmp_path / os.fsdecode(b"\xff.csv")], [], force=False)
