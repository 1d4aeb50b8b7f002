"""ARFF files with features and labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.errors import AmbiguousInputError, DataError
from hilltop.inputs.features import read_features
from tests.data.conftest import write
from tests.data.fuzz import survives
from tests.data.patched import found_format

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
UNKNOWN = ReadOptions(unlisted="unknown")
HEADER = """% made up
@RELATION animals

@attribute size numeric
@attribute 'cat''s' {0,1}
@attribute colour {red, 'dark blue'}
@attribute "red fox" {0, 1}
@attribute dog {0,1}
@data
""".replace("''s", "\\'s")
DENSE = HEADER + "0.5,1,red,0,0\n% none\n-1e-3, 0, 'dark blue', ?, 1\r\n2,0,red,0,0\n"
SPARSE = HEADER + "{0 0.5,1 1}\n\n{0 -1e-3, 2 'dark blue', 3 ?, 4 1}\n{0 2}\n"
XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="dog"><label name="cat's"></label></label><label name="red fox"/>
</labels>
"""


@pytest.fixture(params=[DENSE, SPARSE], ids=["dense", "sparse"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write(tmp_path / "animals.xml", XML)
    return write(tmp_path / "animals-train.arff", request.param)


def message(path: Path, options: ReadOptions = UNKNOWN) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, format="mulan", options=options)
    return str(caught.value)


def test_labels_are_the_attributes_that_the_xml_names(file: Path) -> None:
    table = read_labels(file, options=ReadOptions(unlisted="absent"))
    assert table.classes == ("dog", "cat's", "red fox")
    assert table.images.to_pylist() == ["0", "1", "2"]
    assert table.dense().tolist() == [[A, P, A], [P, A, U], [A, A, A]]
    with pytest.raises(AmbiguousInputError, match="'0' is in"):
        read_labels(file)


def test_the_other_attributes_are_features_under_the_same_ids(file: Path) -> None:
    features = read_features(file)
    assert features.images.equals(read_labels(file, options=UNKNOWN).images)
    expected = [[0.5, 0], [-1e-3, 1], [2, 0]]
    assert features.values == pytest.approx(np.array(expected))


@pytest.mark.parametrize(
    ("relation", "classes"),
    [
        ("'animals: -C 2'", ("size", "cat's")),
        ("'animals: -C -2 -split 3'", ("red fox", "dog")),
    ],
)
def test_meka_counts_the_labels_in_the_relation(
    tmp_path: Path, relation: str, classes: tuple[str, ...]
) -> None:
    text = HEADER.replace("animals", relation) + "1,0,red,1,0\n"
    table = read_labels(write(tmp_path / "a.arff", text), options=UNKNOWN)
    assert table.classes == classes
    assert table.count(P) == 1


def test_without_names_of_labels_the_user_is_asked(file: Path, tmp_path: Path) -> None:
    (tmp_path / "animals.xml").unlink()
    with pytest.raises(AmbiguousInputError, match=r"animals-train\.xml, or pass --class-columns"):
        read_labels(file)
    names = write(tmp_path / "names.txt", "dog\n")
    options = ReadOptions(unlisted="unknown", classes=names)
    assert read_labels(file, options=options).classes == ("dog",)
    names.write_text("cow\n")
    assert "there is no attribute for label 'cow'" in message(file, options)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("@relation x\n", "there is no line @data"),
        ("@relation x\n@data\n1\n", "there are no attributes"),
        ("@relation x\n@attribute dog {0,1}\n@attribute dog {0,1}\n@data\n", "'dog' stands twice"),
        (
            "@relation x\nsize numeric\n@attribute a {0,1}\n@data\n",
            "line 2: expected @relation",
        ),
        (HEADER + "0.5,1,red,0\n", "line 10: expected 5 values, one for each attribute, but got 4"),
        (HEADER + "{9 1}\n", "line 10: attribute number 9 is too high"),
        (HEADER + "{1 1, 1 0}\n", "line 10: this row is not valid ARFF"),
        (HEADER + "{1 1\n", "line 10: this row is not valid ARFF"),
        (HEADER + "0.5,2,red,0,0\n", "label \"cat's\" must be 0 or 1, but is '2'"),
    ],
)
def test_faults_are_named(tmp_path: Path, content: str, text: str) -> None:
    write(tmp_path / "animals.xml", XML)
    assert text in message(write(tmp_path / "animals.arff", content))


def test_faulty_features_are_named(tmp_path: Path) -> None:
    write(tmp_path / "a.xml", XML)
    path = write(tmp_path / "a.arff", HEADER + "?,0,green,0,0\n")
    with pytest.raises(DataError) as caught:
        read_features(path)
    assert "line 10: feature 'size' must be a number, but is '?'" in str(caught.value)
    assert "line 10: feature 'colour' must be a number, but is 'green'" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<!DOCTYPE a [<!ENTITY b 'x'>]><labels/>", "it has a document type"),
        ("<labels/>", "expected elements 'label' with names that differ"),
        ("<html/>", "expected the element 'labels', but got 'html'"),
    ],
)
def test_faulty_xml_is_named(file: Path, content: str, text: str) -> None:
    (file.parent / "animals.xml").write_text(content)
    found = message(file)
    assert text in found
    assert "animals.xml" in found


def test_writing_says_why_not(small: LabelTable, file: Path) -> None:
    assert found_format(file) == "mulan"
    with pytest.raises(DataError, match="read, but not written"):
        write_labels(small, file.with_name("x.arff"), format="mulan", lossy=True)


@pytest.mark.parametrize("count", [300, pytest.param(5_000, marks=pytest.mark.slow)])
def test_damaged_files_end_in_a_table_or_in_words(file: Path, count: int) -> None:
    tables, faults = survives(file, count, "mulan", UNKNOWN)
    assert tables > 0
    assert faults > 0


def test_damaged_xml_ends_in_a_table_or_in_words(file: Path) -> None:
    xml = file.parent / "animals.xml"
    tables, faults = survives(file, 200, "mulan", UNKNOWN, file=xml)
    assert tables > 0
    assert faults > 0
