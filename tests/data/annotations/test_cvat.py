"""CVAT for images 1.1."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.conftest import write
from tests.data.fuzz import survives
from tests.data.patched import PatchCase, check_patch, found_format

P, U = State.PRESENT, State.UNKNOWN
UNKNOWN = ReadOptions(unlisted="unknown")
CONTENT = """<?xml version="1.0" encoding="utf-8"?>
<annotations>
  <version>1.1</version>
  <meta>
    <task>
      <name>animals</name>
      <labels>
        <label><name>cat</name><color>#fa3253</color><attributes></attributes></label>
        <label><name>cow</name></label>
        <label><name>dog</name></label>
      </labels>
    </task>
  </meta>
  <image id="0" name="a.jpg" subset="Train" width="640" height="480">
    <box label="cat" source="manual" occluded="0" xtl="1" ytl="2" xbr="3" ybr="4" z_order="0">
      <attribute name="age">old</attribute>
    </box>
    <polygon label="cat" points="1.0,2.0;3.0,4.0" z_order="0"></polygon>
  </image>
  <image id="1" name="b.jpg" subset="Val" width="640" height="480"/>
  <image id="2" name="d/c.jpg" width="640" height="480">
    <tag label="dog" source="manual"></tag>
  </image>
</annotations>
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "annotations.xml", CONTENT)


def message(path: Path, options: ReadOptions = UNKNOWN) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, format="cvat", options=options)
    return str(caught.value)


def test_tags_and_shapes_are_labels_and_the_task_lists_the_classes(file: Path) -> None:
    assert found_format(file) == "cvat"
    table = read_labels(file, options=UNKNOWN)
    assert table.classes == ("cat", "cow", "dog")
    assert table.images.to_pylist() == ["a.jpg", "b.jpg", "d/c.jpg"]
    assert table.dense().tolist() == [[P, U, U], [U, U, U], [U, U, P]]
    with pytest.raises(AmbiguousInputError, match="--unlisted"):
        read_labels(file)


def test_a_subset_is_a_split(file: Path) -> None:
    table = read_labels(file, options=ReadOptions(unlisted="unknown", split="Train"))
    assert table.images.to_pylist() == ["a.jpg"]
    assert "no split 'train'" in message(file, ReadOptions(unlisted="unknown", split="train"))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("<annotations>", "<!DOCTYPE a [<!ENTITY b 'x'>]><annotations>", "it has a document type"),
        ('label="dog" ', 'label="fox" ', "class 'fox' is not in the class list (3 names)"),
        ('name="b.jpg"', "", "image 2 has no name"),
        ('tag label="dog"', "tag", "image 'd/c.jpg': a 'tag' has no label"),
        ("</annotations>", "", "this is not valid XML"),
    ],
)
def test_faults_are_named(file: Path, old: str, new: str, text: str) -> None:
    file.write_text(CONTENT.replace(old, new, 1))
    assert text in message(file)


def test_round_trip(tmp_path: Path) -> None:
    images = ["b.jpg", "x/<a>&.png"]
    table = LabelTable.from_coo(
        images, ["dog", "<cat> & 'x'", "cow"], [0, 1], [1, 0], P, unlisted=U
    )
    write_labels(table, tmp_path / "out.xml", format="cvat")
    assert read_labels(tmp_path / "out.xml", options=UNKNOWN) == table


def test_what_cannot_be_written_is_said(small: LabelTable, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 pair that is absent"):
        write_labels(small, tmp_path / "out.xml", format="cvat")


@pytest.mark.parametrize("closed", [True, False])
def test_a_patch_adds_tags_and_keeps_shapes(tmp_path: Path, closed: bool) -> None:
    empty = '  <image id="1" name="b.jpg" subset="Val" width="640" height="480"/>\n'
    tag = '<tag label="dog" source="manual"></tag>\n'
    lines = [f"- {empty}", f"+ {empty[:-3]}>\n", f"+ {tag}", "+ </image>\n"]
    text = CONTENT
    if closed:
        text = CONTENT.replace('height="480"/>', 'height="480"></image>')
        opened = empty.replace("/>", ">")
        lines = [f"- {opened[:-1]}</image>\n", f"+ {opened[:-1]}{tag}", "+ </image>\n"]
    check_patch(PatchCase("shapes", "cvat", text, lines, absents=False), tmp_path)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_files_end_in_a_table_or_in_words(file: Path, count: int) -> None:
    tables, faults = survives(file, count, "cvat", UNKNOWN)
    assert tables > 0
    assert faults > 0
