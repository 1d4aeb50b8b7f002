"""Tables as people have them: other separators, comments, blanks, encodings, Excel, no header."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hilltop.data import LabelTable, ReadOptions, read_labels
from hilltop.data.formats.text.dialect import Dialect, sniff
from hilltop.errors import DataError, MissingExtra
from tests.data.formats.fuzz import survives

UNKNOWN = ReadOptions(unlisted="unknown")
PLAIN = "image,cat,dog\na.jpg,1,0\nb.jpg,1,1\n"


def labels(table: LabelTable) -> dict[str, tuple[str, ...]]:
    return {name: table.labels_of(row) for row, name in enumerate(table.images.to_pylist())}


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("image,labels\na.jpg,cat;dog\n", Dialect()),
        ("image;labels\na.jpg;cat, dog\nb.jpg;cat\n", Dialect(";")),
        ("image\tlabels\na.jpg\tcat, dog; emu|x\n", Dialect("\t")),
        ("id|labels\n1|cat,dog\n", Dialect("|")),
        ('# by hand\n# twice\nid, labels\n1, "a,b"\n', Dialect(",", 2, True)),
        ("a.jpg,1,0\nb.jpg,0,1\n", Dialect(header=False)),
        ("Nice, is it not?\t27\tee1\nNo.\t2,3\tee2\n", Dialect("\t", header=False)),
        ("image,0,1\na,0,1\n", Dialect()),
        ("", Dialect()),
    ],
)
def test_how_a_file_is_written_is_seen_from_its_first_lines(head: str, expected: Dialect) -> None:
    assert sniff(head) == expected


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode(),
        b"\xef\xbb\xbf" + PLAIN.encode(),
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.replace(",", "\t").encode(),
        PLAIN.replace(",", ";").encode(),
        PLAIN.replace(",", ", ").encode(),
        PLAIN.replace("\n", ",\n").encode(),
        PLAIN.replace("\n", ",\n").replace("dog,", "dog").encode(),
        b"# made on Monday, by Ann\n\n" + PLAIN.encode(),
        gzip.compress(PLAIN.encode()),
        PLAIN.encode("utf-16"),
        b",image,cat,dog\n0,a.jpg,1,0\n1,b.jpg,1,1\n",
        b'image, "cat", "dog"\n"a.jpg", "1", "0"\n"b.jpg", "1", "1"\n',
    ],
)
def test_a_wide_table_is_the_same_however_it_is_written(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    table = read_labels(path, options=UNKNOWN)
    assert labels(table) == {"a.jpg": ("cat",), "b.jpg": ("cat", "dog")}


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        (  # European Excel
            "Bild;labels\na.jpg;cat, dog\nb.jpg;dog\n",
            ReadOptions(unlisted="unknown", delimiter=","),
            {"a.jpg": ("cat", "dog"), "b.jpg": ("dog",)},
        ),
        (  # chest X-rays: bars, names with commas in the header, separators at the end
            "Image Index,Finding Labels,Follow-up #,Patient Gender,Size[Width,Height],\n"
            "1.png,Mass|Edema,0,M,20,30,\n2.png,No Finding,1,F,20,30,\n",
            UNKNOWN,
            {"1.png": ("Edema", "Mass"), "2.png": ("No Finding",)},
        ),
        (  # films
            'movieId,title,genres\n1,"Toys, the (1995)",Comedy|Drama\n2,Rain (1996),Drama\n',
            UNKNOWN,
            {"1": ("Comedy", "Drama"), "2": ("Drama",)},
        ),
        (  # comments with line ends in them
            'id,comment_text,toxic,threat\nx1,"Why?\nNow, ""you"".",0,1\nx2,Hm,1,0\nx3,Oh,0,0\n',
            UNKNOWN,
            {"x1": ("threat",), "x2": ("toxic",), "x3": ()},
        ),
        (  # art: numbers with blanks between them
            "id,attribute_ids\n1000,147 616 813\n1001,51\n",
            UNKNOWN,
            {"1000": ("147", "616", "813"), "1001": ("51",)},
        ),
        (  # sentences, numbers, ids, no header
            "Nice, is it?\t27\tee1\nNo, it is not.\t2,27\tee2\n",
            UNKNOWN,
            {"ee1": ("27",), "ee2": ("2", "27")},
        ),
        (  # documents
            "doc_id,topics\n2286,E11 ECAT\n2287,C24\n",
            ReadOptions(unlisted="unknown", delimiter=" "),
            {"2286": ("E11", "ECAT"), "2287": ("C24",)},
        ),
        (  # columns named by the user
            "speaker\tvalue\nid1\tNorway\nid2\tUK\n",
            ReadOptions(unlisted="unknown", image_column="speaker", label_column="1"),
            {"id1": ("Norway",), "id2": ("UK",)},
        ),
    ],
)
def test_public_label_files_of_many_shapes(
    tmp_path: Path, text: str, options: ReadOptions, expected: dict[str, tuple[str, ...]]
) -> None:
    path = tmp_path / "train.csv"
    path.write_text(text)
    assert labels(read_labels(path, options=options)) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("cat\ndog\nemu\n", ("cat", "emu")),
        ("number,name\n0,cat\n1,dog\n2,emu\n", ("cat", "emu")),
        ("0\tcat\n2\temu\n", ("cat", "emu")),
    ],
)
def test_numbers_become_names(tmp_path: Path, names: str, expected: tuple[str, ...]) -> None:
    classes = tmp_path / "names.txt"
    classes.write_text(names)
    options = ReadOptions(unlisted="unknown", classes=classes)
    for text in ("Id,Target\na,2 0\n", "image,class\na,0\na,2\n", "a.jpg,2 0\n"):
        path = tmp_path / "train.csv"
        path.write_text(text)
        if "\t" not in names or "a.jpg" not in text:
            assert read_labels(path, options=options).labels_of(0) == expected


def test_a_damaged_archive_is_an_error_in_words(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv.gz"
    path.write_bytes(gzip.compress(PLAIN.encode())[:-6])
    with pytest.raises(DataError, match="this gzip file is damaged"):
        read_labels(path, format="wide", options=UNKNOWN)


def test_a_spreadsheet_is_read_as_a_table(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra xlsx is not installed")
    book = openpyxl.Workbook()
    for row in (["image", "sex", "cat", "dog"], ["a.jpg", "F", 1, 0.0], ["b.jpg", "M", True, 1]):
        book.active.append(row)
    path = tmp_path / "labels.xlsx"
    book.save(path)
    table = read_labels(path, options=UNKNOWN)
    assert labels(table) == {"a.jpg": ("cat",), "b.jpg": ("cat", "dog")}
    book.active.append(["c.jpg", "M", "maybe", 1])
    book.save(path)
    with pytest.raises(DataError, match=r"labels.xlsx, line 4: column 'cat' holds 'maybe'"):
        read_labels(path, options=UNKNOWN)
    tables, faults = survives(path, 100, "wide", UNKNOWN)
    assert tables + faults == 100


def test_a_spreadsheet_without_the_extra_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    path = tmp_path / "labels.xlsx"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(MissingExtra, match=r"pip install .*\[xlsx\]'"):
        read_labels(path)


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("list_column", '# a\nId, Target\n1, "2, 3"\n2, "4"\n'),
        ("list_column", "Bild;labels;\na.jpg;cat, dog;\nb.jpg;dog;\n"),
        ("list_column", "Nice, is it?\t27\tee1\nNo, it is not.\t2,27\tee2\n"),
        ("long", "image\tclass\tstate\na\tcat\t1\na\tdog\t0\n"),
    ],
)
def test_damaged_files_end_in_a_table_or_in_words(
    tmp_path: Path, count: int, format: str, text: str
) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(text)
    options = ReadOptions(unlisted="unknown", minus_one="unknown", delimiter=",")
    tables, faults = survives(path, count, format, options)
    assert tables + faults == count
    assert tables
