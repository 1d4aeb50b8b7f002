"""Labels that reviewers call wrong are gone from the corrected file, in whatever format."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hilltop.audit.decisions.apply import apply_decisions
from hilltop.cli.main import main
from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.data.review_record import read_provenance
from tests.audit.decisions.test_apply import answer
from tests.audit.made_up import write_audit

FORMATS = ("hilltop", "list_column", "wide", "long", "coco", "paper_list", "cvat")


@pytest.mark.parametrize("unlisted", [State.UNKNOWN, State.ABSENT], ids=["unknown", "absent"])
@pytest.mark.parametrize("format", FORMATS)
def test_a_wrong_label_goes_and_a_missing_one_comes(
    tmp_path: Path, format: str, unlisted: State
) -> None:
    table = LabelTable.from_coo(
        ["a.jpg", "b.jpg"],
        ["cat", "cow", "dog"],
        [0, 0, 1],
        [0, 2, 1],
        State.PRESENT,
        unlisted=unlisted,
    )
    suffix = {"hilltop": ".parquet", "coco": ".json", "paper_list": ".txt", "cvat": ".xml"}
    labels = tmp_path / f"labels{suffix.get(format, '.csv')}"
    write_labels(table, labels, format=format, lossy=True)
    reading = ReadOptions(unlisted="unknown" if unlisted == State.UNKNOWN else "absent")
    folder = write_audit(tmp_path / "audit", labels, format=format, options=reading, pairs=[])
    answer(folder, [("a.jpg", "dog", "absent"), ("b.jpg", "cow", "present")])
    answer(folder, [("b.jpg", "dog", "present")], who="Ben")
    out = tmp_path / f"new{labels.suffix}"
    done = apply_decisions(folder, out, lossy=format == "paper_list")
    assert (done.added, done.struck, done.absent, done.unsaid) == (1, 1, 0, 0)
    after = read_labels(out, format=format, options=replace(reading, minus_one="absent"))
    assert after.images.to_pylist() == ["a.jpg", "b.jpg"]
    assert after.labels_of(0) == ("cat",)
    assert set(after.labels_of(1)) == {"cow", "dog"}
    struck = [one for one in read_provenance(out) if one.class_name == "dog"]
    assert {(one.image, one.answer) for one in struck} == {
        ("a.jpg", "absent"),
        ("b.jpg", "present"),
    }


def test_the_command_counts_what_was_struck(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("image,labels\na.jpg,cat|dog\nb.jpg,cow\n")
    folder = write_audit(tmp_path / "audit", labels, format="list_column", pairs=[])
    answer(folder, [("a.jpg", "dog", "absent"), ("a.jpg", "cow", "absent")])
    assert main(["apply", str(folder.path), "--out", str(tmp_path / "new.csv")]) == 0
    said = capsys.readouterr().out
    assert "0 labels added, 1 wrong one struck, 1 confirmed absent" in said
