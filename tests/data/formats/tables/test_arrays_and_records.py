"""Files of arrays (.mat, .npz), TFRecords and XMP files: found, counted, never a traceback."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilltop.data import ReadOptions, State, read_labels
from hilltop.data.formats import LabelSource, recognise
from hilltop.data.label_table import LabelTable
from hilltop.errors import DataError, OptionNeeded
from tests.data.formats.fuzz import survives

OPEN = ReadOptions(unlisted="unknown", zero="unknown", minus_one="absent")
LABELS = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0], [0, 1, 0]])


def counts(table: LabelTable) -> tuple[int, int, int]:
    return len(table), len(table.classes), table.count(State.PRESENT)


def test_an_npz_file_with_names_is_read_under_these_names(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    names = {"classes": np.array(["cat", "dog", "eel"]), "ids": np.array(list("abcd"))}
    np.savez(path, X=np.random.default_rng(0).normal(size=(4, 7)), Y=LABELS, **names)
    table = read_labels(path, options=OPEN)
    assert table.classes == ("cat", "dog", "eel")
    assert table.images.to_pylist() == list("abcd")
    assert counts(table) == (4, 3, 6)
    survives(path, 25, "named_arrays", OPEN)


def test_several_matrices_of_labels_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, train_label=LABELS, test_label=LABELS[:2])
    with pytest.raises(OptionNeeded, match=r"one of train_label, test_label, .*train_label$"):
        read_labels(path)
    chosen = ReadOptions(unlisted="unknown", label_column="test_label")
    assert counts(read_labels(path, options=chosen)) == (2, 3, 3)


def test_a_file_without_labels_names_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, X=np.arange(12.0).reshape(4, 3))
    with pytest.raises(DataError, match=r"There are: X \(4, 3\)"):
        read_labels(path)


@pytest.mark.parametrize("turned", [False, True])
def test_matlab_files_are_read_either_way_round(turned: bool, tmp_path: Path) -> None:
    scipy_io = pytest.importorskip("scipy.io")
    path = tmp_path / "a.mat"
    target = 2 * LABELS - 1
    content = {"data": np.random.default_rng(0).normal(size=(4, 9)), "target": target}
    scipy_io.savemat(path, {**content, "target": target.T if turned else target})
    table = read_labels(path, options=OPEN)
    assert counts(table) == (4, 3, 6)
    assert any("classes" in note for note in table.notes) == turned
    survives(path, 25, "named_arrays", OPEN)


def test_names_in_cell_arrays_and_structs_are_found(tmp_path: Path) -> None:
    scipy_io = pytest.importorskip("scipy.io")
    path = tmp_path / "a.mat"
    images = np.array([["1.jpg"], ["2.jpg"], ["3.jpg"], ["4.jpg"]], dtype=object)
    attributes = np.array([["Hat"], ["Bag"], ["Age over 60"]], dtype=object)
    inner = {"train_label": LABELS, "train_images_name": images, "attributes": attributes}
    scipy_io.savemat(path, {"set": inner})
    table = read_labels(path, options=OPEN)
    assert table.classes == ("Hat", "Bag", "Age over 60")
    assert table.images.to_pylist() == ["1.jpg", "2.jpg", "3.jpg", "4.jpg"]


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2, len(content)]) + content


def example(**features: Any) -> bytes:
    """An example of TensorFlow: texts or whole numbers by name."""
    entries = b""
    for name, values in features.items():
        if isinstance(values[0], str):
            kind, inner = 1, b"".join(field(1, value.encode()) for value in values)
        else:
            kind, inner = 3, field(1, bytes(values))
        entries += field(
            1, field(1, name.replace("__", "/").encode()) + field(2, field(kind, inner))
        )
    content = field(1, entries)
    return struct.pack("<Q", len(content)) + b"\0" * 4 + content + b"\0" * 4


RECORDS = example(image__filename=["1.jpg"], image__object__class__text=["cat", "dog", "cat"])
MORE = example(image__filename=["2.jpg"], image__object__class__text=["dog"])


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_tfrecord_of_objects_is_read(pack: Any, tmp_path: Path) -> None:
    path = tmp_path / "train.tfrecord"
    path.write_bytes(pack(RECORDS + MORE))
    assert recognise(LabelSource(path)).name == "tfrecord"
    assert counts(read_labels(path, options=OPEN)) == (2, 2, 3)
    survives(path, 25, "tfrecord", OPEN)


def test_numbers_in_a_tfrecord_are_classes_or_values(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(example(id=["x"], labels=[3, 17]) + example(id=["y"], labels=[3]))
    assert read_labels(path, options=OPEN).classes == ("3", "17")
    path.write_bytes(example(id=["x"], labels=[0, 1, 1]) + example(id=["y"], labels=[0, 0, 1]))
    assert counts(read_labels(path, options=OPEN)) == (2, 3, 3)


def test_a_tfrecord_that_is_cut_is_said_and_unknown_features_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes((RECORDS + MORE)[:-9])
    with pytest.raises(DataError, match="record 2: a record is cut off"):
        read_labels(path)
    path.write_bytes(example(height=[5], what=["cat"]))
    with pytest.raises(OptionNeeded, match=r"one of height, what"):
        read_labels(path)
    said = ReadOptions(label_column="what")
    with pytest.raises(OptionNeeded, match=r"--unlisted unknown --label-column what$"):
        read_labels(path, options=said)


XMP = """<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:subject><rdf:Bag>
<rdf:li>beach</rdf:li><rdf:li>{}</rdf:li></rdf:Bag></dc:subject></rdf:Description></rdf:RDF>
</x:xmpmeta>
<?xpacket end="w"?>"""


def test_xmp_files_name_the_pictures_beside_them(tmp_path: Path) -> None:
    for number, word in enumerate(("sun", "beach", "sea")):
        (tmp_path / f"{number}.xmp").write_text(XMP.format(word))
    (tmp_path / "0.jpg").write_bytes(b"")
    table = read_labels(tmp_path, options=OPEN)
    assert table.images.to_pylist() == ["0.jpg", "1", "2"]
    assert counts(table) == (3, 3, 5)
    assert counts(read_labels(tmp_path / "1.xmp", options=OPEN)) == (1, 1, 1)
    survives(tmp_path, 25, "xmp_files", OPEN, file=tmp_path / "2.xmp")
