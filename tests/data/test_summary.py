"""What inspect shows, and the mistakes it points at."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hilltop.data import LabelTable, State, Step, read_labels
from hilltop.data.summary import likely_mistakes, statistics_row, summarise


def table_of(counts: dict[str, int], step: Step | None = None) -> LabelTable:
    """One label an image, as many of each class as ``counts`` says."""
    columns = np.repeat(np.arange(len(counts)), list(counts.values()))
    images = [f"{i}.jpg" for i in range(len(columns))]
    return LabelTable.from_coo(
        images, list(counts), np.arange(len(columns)), columns, State.PRESENT,
        unlisted=State.UNKNOWN, step=step,
    )  # fmt: skip


def test_summary_counts(small: LabelTable) -> None:
    summary = summarise(small)
    assert (summary.images, summary.classes) == (4, 3)
    assert (summary.present, summary.absent, summary.unknown) == (4, 1, 7)
    assert summary.labels_per_image == {"mean": 1.0, "median": 1.0, "max": 2.0}
    assert summary.images_by_labels == {"0": 1, "1": 2, "2": 1}
    assert summary.images_without_label == 1
    assert summary.first_without_label == ["c.jpg"]
    assert next(iter(summary.commonest.items())) == ("red fox", 2)
    assert json.loads(json.dumps(summary.as_dict()))["present"] == 4
    assert "pairs that are not listed are unknown" in str(summary)


def test_an_empty_table_can_be_summarised() -> None:
    table = LabelTable.from_coo([], [], [], [], State.PRESENT, unlisted=State.UNKNOWN)
    assert summarise(table).labels_per_image["mean"] == 0
    assert statistics_row(table)["avg.label/img"] == 0


def test_statistics_row(small: LabelTable) -> None:
    expected = {"samples": 4, "classes": 3, "labels": 4, "avg.label/img": 1.0}
    assert statistics_row(small) == expected


@pytest.mark.parametrize(
    "typo", ["elefant", "elepant", "elephnat", "Elephant", "ele phant", "elephants"]
)
def test_a_rare_class_with_a_near_name_is_a_likely_typo(typo: str) -> None:
    common = "elephant"
    said = likely_mistakes(table_of({common: 100, "giraffe": 90, typo: 2}))
    expected = typo != "elefant"  # two letters away
    assert bool(said) == expected
    if expected:
        (sentence,) = said
        assert sentence.startswith(
            f"class {typo!r} (2 labels) looks like a misspelling of {common!r}"
        )


def test_many_names_that_differ_in_case_are_one_sentence() -> None:
    names = ["cat", "dog", "emu", "fox", "gnu"]
    (said,) = likely_mistakes(table_of({one: 9 for name in names for one in (name, name.title())}))
    assert said.startswith("5 classes are written in several ways, such as ")
    assert "--merge-names" in said


def test_names_that_differ_for_good_reasons_are_left_alone() -> None:
    fine = {"cat": 100, "car": 3, "class 1": 100, "class 2": 2, "tennis": 50, "tenses": 40}
    assert likely_mistakes(table_of(fine)) == []


@pytest.mark.parametrize(
    ("raw", "minus_one", "warned"),
    [
        ({"1": 80, "0": 10, "-1": 900}, "unknown", True),  # VOC read the wrong way
        ({"1": 80, "0": 10, "-1": 900}, "absent", False),
        ({"1": 300, "0": 600, "-1": 50}, "absent", True),  # CheXpert read the wrong way
        ({"1": 300, "0": 600, "-1": 50}, "unknown", False),
    ],
)
def test_a_convention_that_looks_inverted(
    raw: dict[str, int], minus_one: str, warned: bool
) -> None:
    step = Step("read", {"raw_values": raw, "minus_one": minus_one})
    said = likely_mistakes(table_of({"a": 1, "b": 1, "c": 1, "d": 1}, step))
    assert any("but" in line and "-1" in line for line in said) == warned


def test_more_present_than_not_is_suspicious() -> None:
    full = LabelTable.from_coo(
        ["i"], list("abc"), [0, 0], [0, 1], State.PRESENT, unlisted=State.ABSENT
    )
    assert likely_mistakes(full) == [
        "66% of all pairs are present. Are 0 and 1 the wrong way round?"
    ]


def test_lists_of_labels_have_no_0_and_1_that_could_be_swapped(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("image,labels\ni,ape;bee;cow\nj,bee;cow\n")
    assert likely_mistakes(read_labels(path, unlisted="unknown")) == []


def test_ids_that_differ_in_case() -> None:
    table = LabelTable.from_coo(
        ["A.jpg", "a.jpg", "b.jpg"], ["x"], [], [], State.PRESENT, unlisted=State.UNKNOWN
    )
    assert likely_mistakes(table) == ["1 image id differs from another one only in case."]
