"""Corrected label files: the right labels, and nothing else changed."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from hilltop.audit.decisions.apply import Applied, apply_decisions
from hilltop.audit.decisions.store import Answer, DecisionStore
from hilltop.audit.folder import AuditFolder
from hilltop.cli.main import main
from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.data.review_record import AnswerWord
from hilltop.errors import ArgumentError, DataError
from tests.audit.made_up import corrected_table, write_audit
from tests.data.patched import ANSWERS as ANSWERED
from tests.data.patched import PatchCase, diff
from tests.data.test_patches import CASES as PATCHES

Said = tuple[str, str, AnswerWord]
ANSWERS: list[Said] = [("b.jpg", "dog", "present"), ("a.jpg", "cow", "absent")]


def answer(folder: AuditFolder, answers: list[Said], *, who: str = "Ann") -> None:
    store = DecisionStore(folder.decisions)
    store.add(
        [
            Answer(f"{who}{n}", f"{who}{n}", who, f"2026-01-31T12:00:{n:02d}+00:00", image, name,
                   word, "ranked", 0.75)
            for n, (image, name, word) in enumerate(answers)
        ]
    )  # fmt: skip
    store.close()


CASES = [case for case in PATCHES if case.answers is ANSWERED]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_only_what_was_answered_changes(case: PatchCase, tmp_path: Path) -> None:
    labels, out = tmp_path / case.file, tmp_path / f"corrected{Path(case.file).suffix}"
    labels.write_bytes(case.text.encode())
    folder = write_audit(
        tmp_path / "audit", labels, format=case.format, options=case.options, pairs=[]
    )
    answer(folder, ANSWERS)
    done = apply_decisions(folder, out)
    changed = diff(case.text, out.read_bytes().decode())
    assert sorted(line for line in changed) == sorted(case.lines)
    assert labels.read_bytes() == case.text.encode()
    assert (done.patched, done.added, done.absent, done.unsaid) == (
        True, 1, int(case.absents), int(not case.absents),
    )  # fmt: skip


def test_the_papers_lists_keep_their_order_and_their_names(tmp_path: Path) -> None:
    labels, out = tmp_path / "list.txt", tmp_path / "new.txt"
    labels.write_text("a.jpg, 0 2\nb.jpg,2 0\nc.jpg,\n")
    Path(f"{labels}.classes.txt").write_text("dog\ncow\npig\n")
    folder = write_audit(tmp_path / "audit", labels, format="paper_list", options=ReadOptions())
    answer(
        folder,
        [("a.jpg", "cow", "present"), ("b.jpg", "cow", "present"), ("c.jpg", "dog", "present"),
         ("c.jpg", "pig", "absent")],
    )  # fmt: skip
    done = apply_decisions(folder, out)
    assert out.read_text() == "a.jpg, 0 1 2\nb.jpg,2 0 1\nc.jpg,0\n"
    assert read_labels(out).classes == ("dog", "cow", "pig")
    assert (done.added, done.absent, done.unsaid) == (3, 0, 1)
    assert "1 confirmed absent stands in new.txt.provenance.csv only" in done.notes[0]


def small_audit(tmp_path: Path, *, unlisted: State = State.UNKNOWN) -> AuditFolder:
    table = LabelTable.from_coo(
        ["a.jpg", "b.jpg"], ["dog", "cow"], [0, 1], [0, 1], State.PRESENT, unlisted=unlisted
    )
    labels = tmp_path / "labels.parquet"
    write_labels(table, labels, format="hilltop")
    return write_audit(tmp_path / "audit", labels, format="hilltop", pairs=[])


def test_our_own_format_keeps_absents_and_history(tmp_path: Path) -> None:
    folder = small_audit(tmp_path)
    answer(folder, ANSWERS)
    done = apply_decisions(folder, tmp_path / "new.parquet")
    table = read_labels(tmp_path / "new.parquet")
    assert table == corrected_table(folder)
    assert table.dense().tolist() == [[1, 0], [1, 1]]
    assert table.history[-1].name == "review"
    assert (done.added, done.absent, done.patched) == (1, 1, True)


def test_where_unlisted_means_absent_a_rejection_changes_nothing(tmp_path: Path) -> None:
    folder = small_audit(tmp_path, unlisted=State.ABSENT)
    answer(folder, ANSWERS)
    done = apply_decisions(folder, tmp_path / "new.parquet")
    assert (done.added, done.absent, done.unsaid) == (1, 0, 0)


def test_provenance_names_every_answer_that_holds(tmp_path: Path) -> None:
    folder = small_audit(tmp_path)
    answer(folder, [*ANSWERS, ("a.jpg", "cow", "present")])
    answer(folder, [("a.jpg", "cow", "absent"), ("b.jpg", "dog", "unsure")], who="Ben")
    done = apply_decisions(folder, tmp_path / "new.parquet")
    with done.provenance.open(newline="") as file:
        rows = [dict(row) for row in csv.DictReader(file)]
    assert [(row["image"], row["class"], row["answer"], row["reviewer"]) for row in rows] == [
        ("a.jpg", "cow", "absent", "Ben"),
        ("a.jpg", "cow", "present", "Ann"),
        ("b.jpg", "dog", "present", "Ann"),
        ("b.jpg", "dog", "unsure", "Ben"),
    ]
    assert [row["outcome"] for row in rows] == ["disputed", "disputed", "present", "present"]
    assert rows[0]["time"] == "2026-01-31T12:00:00+00:00"
    assert rows[0]["probability"] == "0.75"
    assert (done.added, done.absent, done.disputed) == (1, 0, 1)


def test_other_formats_are_written_when_named(tmp_path: Path) -> None:
    folder = small_audit(tmp_path)
    answer(folder, ANSWERS)
    done = apply_decisions(folder, tmp_path / "new.json", format="coco")
    content = json.loads((tmp_path / "new.json").read_text())
    assert len(content["annotations"]) == 3
    assert (done.absent, done.unsaid) == (0, 1)


def test_a_label_file_that_changed_since_is_not_touched(tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("image,class\na.jpg,dog\nb.jpg,cow\n")
    folder = write_audit(tmp_path / "audit", labels, format="long", pairs=[])
    with pytest.raises(DataError, match="there are no answers yet"):
        apply_decisions(folder, tmp_path / "new.csv")
    answer(folder, ANSWERS)
    with pytest.raises(ArgumentError, match="this file is what the command reads"):
        apply_decisions(folder, labels)
    moved = labels.rename(tmp_path / "moved.csv")
    with pytest.raises(DataError, match="Say where with --labels"):
        apply_decisions(folder, tmp_path / "new.csv")
    assert apply_decisions(folder, tmp_path / "new.csv", labels=moved).added == 1
    moved.write_text("image,class\na.jpg,dog\na.jpg,cow\n")
    with pytest.raises(DataError, match="its labels are not those that were audited"):
        apply_decisions(folder, tmp_path / "newer.csv", labels=moved)
    assert not (tmp_path / "newer.csv").exists()


def test_answers_of_an_earlier_audit_are_counted_not_applied(tmp_path: Path) -> None:
    folder = small_audit(tmp_path)
    answer(folder, [("gone.jpg", "dog", "present"), ("a.jpg", "unicorn", "present")])
    done: Applied = apply_decisions(folder, tmp_path / "new.parquet")
    assert done.added == 0
    assert "2 answers are about pairs that this audit does not have." in done.notes


def test_the_command_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = small_audit(tmp_path)
    answer(folder, [*ANSWERS, ("a.jpg", "cow", "unsure")])
    out = tmp_path / "new.parquet"
    assert main(["apply", str(folder.path), "--out", str(out)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == [
        f"{out}: 1 label added",
        "left as they were: 1 unsure, 0 disputed",
        f"{out}.provenance.csv: who answered what",
    ]
    assert main(["apply", str(tmp_path), "--out", str(out)]) == 1
    assert "this is not the folder of an audit" in capsys.readouterr().err


def test_the_name_must_end_like_that_of_the_labels(tmp_path: Path) -> None:
    folder = small_audit(tmp_path)
    answer(folder, ANSWERS)
    with pytest.raises(ArgumentError, match=r"must end with '\.parquet'.*--format"):
        apply_decisions(folder, tmp_path / "new.csv")


def test_what_cannot_be_changed_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    labels, out = tmp_path / "labels.csv", tmp_path / "new.csv"
    labels.write_text("image,label1,label2\na.jpg,dog,cow\nb.jpg,cow,pig\n")
    folder = write_audit(tmp_path / "audit", labels, format="list_column", pairs=[])
    answer(folder, [("b.jpg", "dog", "present")])
    with pytest.raises(DataError, match="has no empty cell for 'dog'"):
        apply_decisions(folder, out)
    assert not out.exists()
    assert not Path(f"{out}.provenance.csv").exists()


def test_merged_spellings_are_struck_in_all_their_spellings(tmp_path: Path) -> None:
    labels, out = tmp_path / "labels.csv", tmp_path / "new.csv"
    labels.write_text("image,tags\na.jpg,dog;DOG;cow\nb.jpg,Dog\nc.jpg,dog\n")
    options = ReadOptions(unlisted="absent", merge_names=True)
    folder = write_audit(
        tmp_path / "audit", labels, format="list_column", options=options, pairs=[]
    )
    answer(folder, [("a.jpg", "dog", "absent"), ("b.jpg", "cow", "present")])
    apply_decisions(folder, out)
    assert out.read_text() == "image,tags\na.jpg,cow\nb.jpg,Dog;cow\nc.jpg,dog\n"


def test_an_openimages_class_is_written_by_its_code(tmp_path: Path) -> None:
    labels, names = tmp_path / "labels.csv", tmp_path / "names.csv"
    labels.write_text("ImageID,Source,LabelName,Confidence\na,human,/m/1,1\nb,human,/m/2,0\n")
    names.write_text("/m/1,Dog\n/m/2,Cow\n")
    options = ReadOptions(classes=names)
    folder = write_audit(tmp_path / "audit", labels, format="openimages", options=options, pairs=[])
    answer(folder, [("b", "Dog", "present")])
    apply_decisions(folder, tmp_path / "new.csv")
    added: list[Any] = (tmp_path / "new.csv").read_text().splitlines()[3:]
    assert added == ["b,verification,/m/1,1"]
