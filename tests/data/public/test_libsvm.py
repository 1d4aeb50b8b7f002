"""LIBSVM and extreme-classification files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.data.content import Source
from hilltop.data.layout import Layout
from hilltop.data.public import features
from hilltop.errors import AmbiguousInputError, DataError
from hilltop.inputs.features import read_features
from tests.data.conftest import write
from tests.data.fuzz import survives
from tests.data.patched import found_format

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
UNKNOWN = ReadOptions(unlisted="unknown")
EXTREME = "3 5 4\n3,0 0:0.5 4:1\n 1:2\n2 3:-1e-2\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "train.txt", EXTREME)


def message(path: Path, options: ReadOptions = UNKNOWN) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, format="libsvm", options=options)
    return str(caught.value)


def test_labels_and_features_of_a_file_with_a_header(file: Path) -> None:
    assert found_format(file) == "libsvm"
    table = read_labels(file, options=UNKNOWN)
    assert table.classes == ("0", "1", "2", "3")
    assert table.dense().tolist() == [[P, U, U, P], [U, U, U, U], [U, U, P, U]]
    beside = read_features(file)
    assert beside.images.equals(table.images)
    expected = [[0.5, 0, 0, 0, 1], [0, 2, 0, 0, 0], [0, 0, 0, -0.01, 0]]
    assert beside.values == pytest.approx(np.array(expected))
    with pytest.raises(AmbiguousInputError, match="--unlisted"):
        read_labels(file)


@pytest.mark.parametrize("zero_based", [True, False])
def test_files_of_scikit_learn_are_read_as_it_reads_them(tmp_path: Path, zero_based: bool) -> None:
    rng = np.random.default_rng(0)
    values = np.round(rng.standard_normal((20, 6)) * (rng.random((20, 6)) < 0.6), 3)
    values[0] = 1
    labels = (rng.random((20, 4)) < 0.4).astype(int)
    labels[0] = 1
    path = tmp_path / "data.svm"
    dump_svmlight_file(values, labels, str(path), zero_based=zero_based, multilabel=True)
    table = read_labels(path, options=UNKNOWN)
    assert ((table.dense() == P) == labels).all()
    theirs = load_svmlight_file(str(path), multilabel=True)[0].toarray()
    assert read_features(path).values == pytest.approx(theirs)


def test_names_come_from_the_class_list(file: Path, tmp_path: Path) -> None:
    names = write(tmp_path / "names.txt", "cat\ncow\ndog\nfox\n")
    options = ReadOptions(unlisted="unknown", classes=names)
    assert read_labels(file, options=options).labels_of(0) == ("cat", "fox")
    names.write_text("cat\n")
    assert "line 2: label number 3 is too high" in message(file, options)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "the file is empty"),
        ("4 5 4\n0 1:1\n", "line 1: the header says 4 rows, but there are 1"),
        ("0 1:1\n1 2:x\n", "line 2: expected labels and features"),
        ("0 1:1\n1 cat\n", "line 2: expected labels and features"),
        ("0 1:nan\n", "line 1: expected labels and features"),
        ("1 5 4\n7 1:1\n", "line 2: label number 7 is too high"),
        ("1 5 999999999\n7 1:1\n", "more than 4,000,000 classes"),
    ],
)
def test_faults_are_named(file: Path, content: str, text: str) -> None:
    file.write_text(content)
    assert text in message(file)


def test_features_that_do_not_fit_are_refused_in_words(file: Path) -> None:
    for content, text in (
        ("1 3 2\n0 7:1\n", "feature number 7 is too high: the header says 3"),
        ("0 999999999:1\n" * 3, "would take 11.2 GiB of memory"),
        ("0,1\n", "there are no features beside the labels"),
    ):
        file.write_text(content)
        with pytest.raises(DataError, match=text):
            read_features(file) if ":" in content else features.features_libsvm(
                Source(file), Layout("libsvm")
            )


def test_other_files_hold_no_features(tmp_path: Path) -> None:
    path = write(tmp_path / "labels.csv", "image,labels\na.jpg,cat\n")
    with pytest.raises(DataError, match=r"files that hold them too \(mulan, libsvm\)"):
        read_features(path)


@pytest.mark.parametrize("content", ["", "a.jpg,1\n", "3 5 2\n", "12:30 noon\n", "a:1 b:2\n"])
def test_other_content_does_not_fit(tmp_path: Path, content: str) -> None:
    assert not features.matches_libsvm(Source(write(tmp_path / "other.txt", content)))


def test_writing_says_why_not(small: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="read, but not written"):
        write_labels(small, tmp_path / "x.svm", format="libsvm", lossy=True)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_files_end_in_a_table_or_in_words(file: Path, count: int) -> None:
    tables, faults = survives(file, count, "libsvm", UNKNOWN)
    assert tables > 0
    assert faults > 0
