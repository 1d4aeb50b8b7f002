"""PASCAL VOC: XML files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.annotations.voc_devkit import annotation, message

Unlisted = Literal["unknown", "absent"]
A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
XML = ReadOptions(split="train", unlisted="absent")


def test_a_bare_folder_of_xml_is_open_about_unlisted_pairs(bare: Path) -> None:
    with pytest.raises(AmbiguousInputError, match="--unlisted"):
        read_labels(bare)
    table = read_labels(bare, options=ReadOptions(unlisted="absent"))
    assert table.images.to_pylist() == ["2008_01.jpg", "2008_02.jpg", "2008_03.jpg"]
    assert table.classes == ("dog", "train")
    assert table.dense().tolist() == [[A, U], [P, A], [U, P]]


BOMB = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;">]>' + annotation("x", [("&c;", "0")])
FILE_ENTITY = '<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]>' + annotation(
    "x", [("&f;", "0")]
)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (BOMB, "it has a document type, which could hide entities"),
        (FILE_ENTITY, "it has a document type, which could hide entities"),
        ("<annotation>\n<object>", "2008_02.xml, line 2: this is not valid XML: no element found"),
        ("", "this is not valid XML: no element found"),
        ("<html/>", "expected the element 'annotation', but got 'html'"),
        (annotation("x", [("", "0")]), "object 1 has no name"),
        (annotation("x", [("a", "0"), ("b", "hard")]), "object 2: difficult must be 0 or 1"),
        (annotation("2008_01", []), "image '2008_01.jpg' is described in 2008_01.xml already"),
        ('<?xml version="1.0" encoding="utf-99"?><annotation/>', "cannot be read: unknown enc"),
    ],
)
def test_faulty_xml_is_named(bare: Path, content: str, text: str) -> None:
    (bare / "2008_02.xml").write_text(content)
    found = message(bare, "voc_xml", XML)
    assert text in found
    assert "2008_02.xml" in found


def test_faults_of_many_xml_files_are_told_together_and_at_most_20(bare: Path) -> None:
    for number in range(30):
        (bare / f"{number:02d}.xml").write_text("<")
    assert len(message(bare, "voc_xml", XML).splitlines()) == 21


def test_an_image_of_the_split_without_xml_is_a_fault(devkit: Path, main: Path) -> None:
    (main / "train.txt").write_text("2008_01\n../Annotations/2008_02\n")
    text = "train.txt, line 2: there is no XML file for image '../Annotations/2008_02'"
    assert text in message(devkit, "voc_xml", XML)


@pytest.mark.parametrize("unlisted", ["unknown", "absent"])
def test_xml_round_trip(bare: Path, tmp_path: Path, unlisted: Unlisted) -> None:
    options = ReadOptions(unlisted=unlisted)
    table = read_labels(bare, options=options)
    write_labels(table, tmp_path / "again", format="voc_xml")
    assert read_labels(tmp_path / "again", options=options) == table
    assert (tmp_path / "again" / "2008_01.xml").exists()


@pytest.mark.parametrize("images", [["a-b.jpg", "a.jpg"], ["a", "a-b"], ["a.jpg", "a.png"]])
def test_written_xml_keeps_the_order_of_images(tmp_path: Path, images: list[str]) -> None:
    table = LabelTable.from_coo(images, ["x"], [0, 1], [0, 0], P, unlisted=A)
    write_labels(table, tmp_path / "out", format="voc_xml")
    assert read_labels(tmp_path / "out", options=ReadOptions(unlisted="absent")) == table


def test_names_never_become_markup_or_paths(tmp_path: Path) -> None:
    table = LabelTable.from_coo(
        ["../z.jpg", "a/<b>&amp;.jpg"], ["<x>&'\"", "y/z"], [0, 1], [0, 1], P, unlisted=U
    )
    write_labels(table, tmp_path / "xml", format="voc_xml")
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "00000001.xml",
        "00000002.xml",
        "xml",
    ]
    assert read_labels(tmp_path / "xml", options=ReadOptions(unlisted="unknown")) == table
    with pytest.raises(DataError, match="the class name 'y/z'"):
        write_labels(table, tmp_path / "sets", format="voc", lossy=True)
