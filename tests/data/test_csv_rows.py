"""Tables for people: no formulas come out, and what comes back is a table or a sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hilltop.audit.decisions.store import DecisionStore
from hilltop.audit.find.candidates import Candidates, write_candidates
from hilltop.audit.find.estimate import Estimate, read_estimates, write_estimates
from hilltop.audit.find.pca import read_pca
from hilltop.audit.review.queues import Queue, write_queue
from hilltop.cli.main import main
from hilltop.data import LabelTable
from hilltop.data.class_names import read_class_map, write_class_map
from hilltop.data.scores import ScoreTable
from hilltop.data.small_files import FORMULA_PATTERN, format_rows, mark_cell, read_rows, unmark_cell
from hilltop.data.tags import choose_tags, write_tags
from hilltop.errors import DataError
from hilltop.inputs.extra_scores import read_extra_scores, read_names
from hilltop.missing import Interval
from hilltop.report.tables import write_rows
from hilltop.training.config import TrainConfig

EVIL = "=cmd|' /C calc'!A0"
STARTS = ("=", "+", "-", "@", "\t", "\r", "'")


@pytest.fixture
def table() -> LabelTable:
    return LabelTable.from_lists(["@a.jpg", "b.jpg"], [[EVIL], []], [EVIL, "cat"])


def cells_of(path: Path) -> list[str]:
    return [cell for line in path.read_text().splitlines() for cell in line.split(",")]


def test_marks_are_put_on_and_taken_off() -> None:
    for cell in (*STARTS, EVIL, "'=x", "''", "cat", "", "1-2"):
        marked = mark_cell(cell)
        assert not marked.startswith(tuple(start for start in STARTS if start != "'"))
        assert unmark_cell(marked) == cell
        assert pa.compute.match_substring_regex(cell, FORMULA_PATTERN).as_py() == (marked != cell)


def test_no_table_for_people_holds_a_formula(table: LabelTable, tmp_path: Path) -> None:
    probs = ScoreTable(table.images, table.classes, np.full((2, 2), 0.75))
    write_tags(tmp_path / "tags.csv", probs, choose_tags(probs, 0.5))
    queue = Queue(np.array([0]), np.array([0]), np.array([0.5], dtype=np.float32))
    write_queue(queue, table, tmp_path / "queue.csv")
    write_class_map(table, tmp_path / "renames.csv", {"cat": EVIL})
    write_estimates(
        [Estimate(EVIL, 1, Interval(2.0, 1.0, 3.0), "model")], tmp_path / "estimates.csv"
    )
    keys = np.array([np.uint64(0)], dtype=np.uint64)
    write_candidates(Candidates(keys, 2), table, tmp_path)
    write_rows(tmp_path / "rows.csv", [{"method": EVIL, "mAP": -0.5}])
    files = sorted(tmp_path.glob("*.csv"))
    assert len(files) == 6
    for path in files:
        text = path.read_text()
        assert f"'{EVIL}" in text, path.name
        assert not [cell for cell in cells_of(path) if cell.strip('"')[:1] in ("=", "@")], path.name
    assert read_class_map(tmp_path / "renames.csv") == {"cat": EVIL}
    assert read_estimates(tmp_path / "estimates.csv")[0].class_name == EVIL
    ((_, row),) = read_rows(tmp_path / "queue.csv", ("image", "class"))
    assert (row["image"], row["class"]) == ("@a.jpg", EVIL)


DAMAGE = {
    "latin1": b"class,rename,keep,image,answer\n\xe4,b,1,c,yes\n",
    "endless cell": b"class,rename,keep,image,answer\n" + b"x" * 200_000,
    "bytes": b"\xff\xfe\x00\xd8",
}


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE)
def test_a_table_that_is_none_gives_a_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    for read in (read_class_map, read_names, lambda path: read_rows(path, ["class"])):
        with pytest.raises(DataError, match=r"table.csv: this is not"):
            read(path)


def test_a_short_line_has_empty_cells(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(format_rows(["a", "b"], [[1], [1, 2]]))
    assert read_rows(path, ["a"]) == [(2, {"a": "1", "b": ""}), (3, {"a": "1", "b": "2"})]


def test_a_keep_file_names_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels, keep = tmp_path / "labels.csv", tmp_path / "keep.csv"
    labels.write_text("image,class\na.jpg,cat\n")
    keep.write_text("class,keep\ncat,often\n")
    words = ["simulate", labels, "--keep", keep, "--out", tmp_path / "o.csv", "--to", "long"]
    assert main([*map(str, words)]) == 1
    assert "keep.csv, line 2: expected a number in the column keep" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"nothing"])
def test_damaged_archives_of_an_audit_give_a_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "some.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="cut or damaged"):
        read_pca(path, 3)
    with pytest.raises(DataError, match="cut or damaged"):
        read_extra_scores(path, pa.array(["a"]), ("cat",), names={})


@pytest.mark.parametrize("rows", [np.array([7]), np.array([-1]), np.array([0.5]), np.array([[0]])])
def test_directions_of_other_images_are_refused(rows: np.ndarray, tmp_path: Path) -> None:  # type: ignore[type-arg]
    path = tmp_path / "directions.npz"
    np.savez(path, rows=rows, values=np.zeros((1, 2), dtype=np.float16))
    with pytest.raises(DataError, match="this file is damaged"):
        read_pca(path, 3)


def test_answers_with_a_damaged_page_give_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "decisions.sqlite"
    store = DecisionStore(path)
    store._connection.execute(
        "INSERT INTO events (id, kind, action, reviewer, time, image, class, answer, mode)"
        " VALUES ('1', 'answer', '1', 'Ann', 'now', CAST(X'FF' AS TEXT), 'c', 'absent', 'ranked')"
    )
    with pytest.raises(DataError, match=r"decisions.sqlite: answers could not be read"):
        store.read()
    store.close()


def test_a_configuration_of_brackets_gives_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("[" * 50_000)
    with pytest.raises(Exception, match=r"config.yaml: this is not YAML"):
        TrainConfig.from_file(path)


def test_a_device_that_never_ends_is_not_read() -> None:
    with pytest.raises(DataError, match=r"/dev/zero: this is a device\. Name a file"):
        read_rows(Path("/dev/zero"), ["image"])


def test_cells_behind_the_last_column_are_not_left_out_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("image,comment\na.jpg,a toy, see page 3\n")
    with pytest.raises(DataError, match=r"line 2.*' see page 3' stands behind the last column"):
        read_rows(path, ["image"])
    path.write_text("image,comment\na.jpg,a toy,,\n")  # as spreadsheets fill lines up
    assert read_rows(path, ["image"]) == [(2, {"image": "a.jpg", "comment": "a toy"})]


def test_a_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("image,answer,answer,,\na.jpg,yes,no,,\n")
    with pytest.raises(DataError, match="the column 'answer' stands twice"):
        read_rows(path, ["image"])
