# ruff: noqa: E501 (lines of files as they are)
"""Sheets as people make them: read as the first answers tell, with every label counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hilltop.data import FORMATS, ReadOptions, State, read_labels
from hilltop.data.formats import Change, Original
from hilltop.errors import DataError
from tests.data.formats.shapes import Counts, counts_of, read_as_told

NAMES = ["image", "cat", "dog", "emu"]
SHEETS: dict[str, tuple[str, Counts, int]] = {
    "what pandas writes for nothing": ("image,labels\na.jpg,cat|dog\nb.jpg,nan\nc.jpg,dog\n", (3, 2, 3), 1),
    "flags in a cell": ('image,labels\na.jpg,"{""cat"": true, ""dog"": false}"\nb.jpg,"{""cat"": true, ""dog"": true}"\n', (2, 2, 3), 1),
    "lists of a database": ('image,labels\na.jpg,"{cat,dog}"\nb.jpg,{dog}\nc.jpg,{}\n', (3, 2, 3), 1),
    "marks": ("image,cat,dog\na.jpg,\u2713,\u2717\nb.jpg,\u2713,\u2713\n", (2, 2, 3), 1),
    "Spanish": ("Imagen;gato;perro\na.jpg;s\u00ed;no\nb.jpg;s\u00ed;s\u00ed\n", (2, 2, 3), 1),
    "Portuguese": ("imagem;gato;ave\na.jpg;sim;n\u00e3o\nb.jpg;sim;sim\n", (2, 2, 3), 1),
    "French": ("fichier;chat;chien\na.jpg;VRAI;FAUX\nb.jpg;VRAI;VRAI\n", (2, 2, 3), 1),
    "German": ("Datei;Katze;Hund\na.jpg;WAHR;FALSCH\nb.jpg;WAHR;WAHR\n", (2, 2, 3), 1),
    "letters": ("image,cat,dog\na.jpg,T,F\nb.jpg,T,T\n", (2, 2, 3), 1),
    "our own words": ("image,cat,dog\na.jpg,present,absent\nb.jpg,present,present\n", (2, 2, 3), 0),
    "rows and columns of nothing": ("image;cat;dog;;\na.jpg;1;0;;\nb.jpg;1;1;;\n;;;;\n;;;;\n", (2, 2, 3), 1),
    "sums, then a remark": ("image,cat,dog,note\na.jpg,1,1,dark\nb.jpg,1,0,\nTotal:,2,1,\n,,,\n* by Ann in May,,,\n", (2, 2, 3), 1),
    "shares with commas": ("image;cat;dog\na.jpg;0,98;0,10\nb.jpg;0,05;0,77\nc.jpg;0,66;0,5\n", (3, 2, 4), 1),
    "a confidence a row": ("image,tag,confidence\na.jpg,cat,0.98\na.jpg,dog,0.12\nb.jpg,dog,0.77\n", (2, 2, 2), 2),
    "a value a row": ("image,tag,value\na.jpg,cat,1\na.jpg,dog,0\nb.jpg,dog,1\n", (2, 2, 2), 1),
    "a vote a row": ("id,class,label\n7,cat,1\n7,dog,0\n8,cat,1\n8,dog,1\n", (2, 2, 3), 1),
    "ticked answers": ("image,Q1 - Cat,Q1 - Dog\na.jpg,Cat,\nb.jpg,,Dog\nc.jpg,Cat,Dog\n", (3, 2, 4), 1),
    "a form": ("Timestamp,Email,Image name,What is there?\n2023/05/01 10:11,a@b.c,i1,\"Cat, Dog\"\n2023/05/01 10:12,a@b.c,i2,Dog\n2023/05/01 10:13,a@b.c,i3,\"Cat, Emu\"\n2023/05/01 10:14,a@b.c,i4,Emu\n2023/05/01 10:15,a@b.c,i5,Cat\n", (5, 3, 7), 1),
    "strokes": ("image,labels\na.jpg,cat/dog\nb.jpg,dog\nc.jpg,cat/emu\nd.jpg,emu/dog/cat\n", (4, 3, 8), 1),
    "strokes within names": ("image,labels\na.jpg,person/child\nb.jpg,vehicle/car\nc.jpg,person/adult\nd.jpg,vehicle/bus\n", (4, 4, 4), 1),
    "plus signs": ("image,labels\na.jpg,cat+dog\nb.jpg,dog\nc.jpg,cat+emu\nd.jpg,emu+dog+cat\n", (4, 3, 8), 1),
    "and": ("image,labels\na.jpg,cat & dog\nb.jpg,dog\nc.jpg,cat & emu\nd.jpg,emu & dog & cat\n", (4, 3, 8), 1),
    "hashes": ("image,tags\na.jpg,#cat #dog\nb.jpg,#dog\nc.jpg,#cat #night_sky\n", (3, 3, 5), 1),
    "hashes without blanks": ("image,tags\na.jpg,#cat#dog\nb.jpg,#dog\nc.jpg,#cat #night sky\n", (3, 3, 5), 1),
    "hashes between names": ("image,tags\na.jpg,cat#red fox\nb.jpg,cat\nc.jpg,dog#cat\nd.jpg,red fox#dog\n", (4, 3, 7), 1),
    "names of two words": ("image,tag\n" + "".join(f"{at}.jpg,{name}\n" for at, name in enumerate([*"abcdefghij", "hot a", "red fox", "polar bear"])), (13, 13, 13), 1),
    "lists without a header": ('a.jpg,"cat, red fox"\nb.jpg,\nc.jpg,cat\nd.jpg,"dog, cat"\ne.jpg,"red fox, dog"\nf.jpg,dog\n', (6, 3, 8), 1),
    "a title and a line of nothing above two columns": ("Photos of 2014\n\nPicture,Tags\na.jpg,cat;dog\nb.jpg,\nc.jpg,cat\n", (3, 2, 3), 1),
    "lines in cells": ('image,labels\na.jpg,"cat\ndog"\nb.jpg,dog\nc.jpg,"cat\nemu"\n', (3, 3, 5), 1),
}  # fmt: skip


@pytest.mark.parametrize("sheet", SHEETS)
def test_a_sheet_is_read_as_its_answers_tell(sheet: str, tmp_path: Path) -> None:
    content, expected, answers = SHEETS[sheet]
    path = tmp_path / "labels.csv"
    path.write_text(content)
    table, said = read_as_told(path)
    assert (counts_of(table), len(said)) == (expected, answers)


def workbook(path: Path, **sheets: Sequence[Sequence[Any]]) -> Path:
    """Write a workbook."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_the_first_sheet_with_a_table_is_read_and_the_others_are_named(tmp_path: Path) -> None:
    rows = [NAMES, ["a.jpg", "x", None, "x"], ["b.jpg", None, "x", None]]
    about = [["How to fill this in"], ["Put an x"]]
    path = workbook(tmp_path / "a.xlsx", About=about, Labels=rows, More=[["a", "b"], [1, 2]])
    table, _ = read_as_told(path)
    assert counts_of(table) == (2, 3, 3)
    assert "read: 'Labels'; not read: 'About', 'More'. --sheet chooses." in table.notes
    with pytest.raises(DataError, match=r"no sheet 'Label'.*'Labels'.* sheets are About, Labels"):
        read_labels(path, options=ReadOptions(sheet="Label"))


def test_sheets_of_one_header_are_read_one_by_one_or_together(tmp_path: Path) -> None:
    first = [["Week 1"], NAMES, ["a.jpg", 1, 0, 1], ["b.jpg", 0, 1, 0]]
    second = [NAMES, ["c.jpg", 1, 1, 1]]
    path = workbook(tmp_path / "a.xlsx", One=first, Two=second)
    table, said = read_as_told(path)
    assert "2 sheets have the same columns: 'One' (2 rows), 'Two' (1 row)." in said[0]
    assert counts_of(table) == (3, 3, 6)
    one = read_labels(path, options=ReadOptions(sheet="One", unlisted="unknown"))
    assert counts_of(one) == (2, 3, 3)


def test_sums_above_the_header_and_links_are_seen_for_what_they_are(tmp_path: Path) -> None:
    link = '=HYPERLINK("C:\\photos\\{0}", "{0}")'
    rows = [["", 1, 1, 2], NAMES, [link.format("a.jpg"), 1, 0, 1], [link.format("b.jpg"), 0, 1, 1]]
    table, _ = read_as_told(workbook(tmp_path / "a.xlsx", Labels=rows))
    assert (counts_of(table), table.images.to_pylist()) == ((2, 3, 4), ["a.jpg", "b.jpg"])


def test_a_table_of_two_columns_may_begin_anywhere_in_a_sheet(tmp_path: Path) -> None:
    rows = [[None], [None, "Tags of Ann"], [None, "Photo", "Tags"], [None, "a.jpg", "cat;dog"]]
    path = workbook(
        tmp_path / "a.xlsx", Tags=[*rows, [None, "b.jpg", None], [None, "c.jpg", "cat"]]
    )
    table, _ = read_as_told(path)
    assert (counts_of(table), table.images[0].as_py()) == ((3, 2, 3), "a.jpg")


def test_a_merged_cell_holds_for_all_rows_that_it_spans(tmp_path: Path) -> None:
    rows = [["Photo", "Tag"], ["a.jpg", "cat"], [None, "dog"], ["b.jpg", "dog"]]
    path = workbook(tmp_path / "a.xlsx", Tags=rows)
    book = pytest.importorskip("openpyxl").load_workbook(path)
    book["Tags"].merge_cells("A2:A3")
    book["Tags"].merge_cells("E8:E9")
    book.save(path)
    table, _ = read_as_told(path)
    assert table.labels_of(0) == ("cat", "dog")
    assert counts_of(table) == (2, 2, 3)


def test_a_missing_quote_is_still_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('image,labels\n1,"cat\n2,dog\n3,"emu"\n')
    with pytest.raises(DataError):
        read_labels(path, format="list_column", options=ReadOptions(unlisted="unknown"))


def test_zeros_of_rows_and_pairs_without_a_row_are_asked_for_together(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(SHEETS["a value a row"][0])
    table, said = read_as_told(path)
    assert "0 stands in 1 row, 1 pair has no row" in said[0]
    assert said[0].endswith("--zero absent --unlisted unknown")
    assert table.count(State.ABSENT) == 1


def test_an_answer_becomes_a_row_of_a_table_of_values(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(SHEETS["a value a row"][0])
    options = ReadOptions(zero="absent", unlisted="unknown")
    original = Original(path, options, read_labels(path, options=options))
    patch = FORMATS["long_values"].patch
    assert patch is not None
    patched = next(iter(patch(original, [Change(1, 0, "b.jpg", "cat", State.ABSENT)])))
    path.write_bytes(patched.content)
    assert read_labels(path, options=options).count(State.ABSENT) == 2


def test_the_question_about_separators_counts_both_readings(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("image,labels\na.jpg,math.CO cs.CG\nb.jpg,math.CO\nc.jpg,hep-ph\n")
    table, said = read_as_told(path)
    assert "there are 3 classes if blanks do, and 3 if every cell is a single name" in said[0]
    assert counts_of(table) == (3, 3, 4)
