# ruff: noqa: E501 (lines of files as they are)
"""Patches of label files: labels come and go, and everything else keeps its bytes."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hilltop.data import FORMATS, ReadOptions, State, read_labels
from hilltop.data.format import FilePatch, Patched
from hilltop.errors import DataError
from tests.data.patched import PatchCase, check_patch, diff, patched_file

UNKNOWN = ReadOptions(unlisted="unknown")
STRIKE = [("a.jpg", "dog", State.ABSENT)]
BOTH = [("b.jpg", "dog", State.PRESENT), ("a.jpg", "dog", State.ABSENT)]
STRUCK = [("b.jpg", "dog", State.PRESENT), ("a.jpg", "cow", State.ABSENT)]
COCO = """{
  "info": {"year": 2014, "description": "Größe"},
  "images": [
    {"id": 7, "file_name": "a.jpg", "width": 640, "height": 1e2},
    {"id": 9, "file_name": "b.jpg", "flickr_url": "x"}
  ],
  "annotations": [
    {"id": 3, "image_id": 7, "category_id": 18, "bbox": [1.50, 2, 3, 4], "area": 12.0},
    {"id": 40, "image_id": 9, "category_id": 21, "bbox": [5, 6, 7, 8]}
  ],
  "categories": [{"id": 18, "name": "dog"}, {"id": 21, "name": "cow"}]
}
"""
NEW = (
    '{"id": 41, "image_id": 9, "category_id": 18, "iscrowd": 1, "area": 0,'
    ' "bbox": [0, 0, 0, 0], "segmentation": []}'
)
OLD = '{"id": 40, "image_id": 9, "category_id": 21, "bbox": [5, 6, 7, 8]}'
LVIS = COCO.replace('"width": 640', '"neg_category_ids": [], "width": 640').replace(
    '"flickr_url"', '"neg_category_ids": [], "flickr_url"'
)
CASES = [
    PatchCase("wide", "wide", "image,cow,dog\n'a.jpg,0,0\na.jpg,0,1\nb.jpg,1,0\n",
        ["- a.jpg,0,1\n", "+ a.jpg,-1,1\n", "- b.jpg,1,0\n", "+ b.jpg,1,1\n"]),
    PatchCase("wide with 1, 0, -1 and empty cells", "wide",
        "image,cow,dog,fox\na.jpg,,1.0,0.0\nb.jpg,1.0,-1.0,\n",
        ["- a.jpg,,1.0,0.0\n", "+ a.jpg,0.0,1.0,0.0\n", "- b.jpg,1.0,-1.0,\n",
         "+ b.jpg,1.0,1.0,\n"],
        options=ReadOptions(zero="absent", empty="unknown", minus_one="unknown")),
    PatchCase("wide where 0 and -1 both mean unknown", "wide",
        "image,cow,dog\na.jpg,-1,1\nb.jpg,1,0\n", ["- b.jpg,1,0\n", "+ b.jpg,1,1\n"],
        options=ReadOptions(zero="unknown", minus_one="unknown"), absents=False),
    PatchCase("wide with semicolons, a comment and a column that is no class", "wide",
        "# by hand\nimage;sex;cow;dog\na.jpg; M ;;1\nb.jpg;\"F\";1; 0\n",
        ["- a.jpg; M ;;1\n", "+ a.jpg; M ;0;1\n", '- b.jpg;"F";1; 0\n', '+ b.jpg;"F";1; 1\n'],
        options=ReadOptions(zero="absent", empty="unknown")),
    PatchCase("wide with x marks, a strike", "wide",
        "Datei;Kuh;Hund;dog\r\na.jpg;x;;X\r\nb.jpg;;x;\r\n",
        ["- a.jpg;x;;X\r\n", "+ a.jpg;x;;-1\r\n", "- b.jpg;;x;\r\n", "+ b.jpg;;x;x\r\n"],
        answers=BOTH),
    PatchCase("list with an absent column", "list_column",
        'image,labels,note,absent\na.jpg,dog; pig,"x, y",\nb.jpg,cow,z,pig\n',
        ['- a.jpg,dog; pig,"x, y",\n', '+ a.jpg,dog; pig,"x, y",cow\n',
         "- b.jpg,cow,z,pig\n", "+ b.jpg,cow;dog,z,pig\n"]),
    PatchCase("list, a strike keeps columns, quotes and delimiter", "list_column",
        'id,image,tags,note\n1,a.jpg,"cow, dog, pig","x ""y"""\n2,"b.jpg",cow,\n',
        ["- id,image,tags,note\n", "+ id,image,tags,note,absent\n",
         '- 1,a.jpg,"cow, dog, pig","x ""y"""\n', '+ 1,a.jpg,"cow, pig","x ""y""",dog\n',
         '- 2,"b.jpg",cow,\n', '+ 2,"b.jpg","cow,dog",,\n'], answers=BOTH),
    PatchCase("quotes before the changed cell", "list_column",
        'image,note,tags\na.jpg,"x ""y"", z",dog;cow\nb.jpg,,cow\n',
        ['- a.jpg,"x ""y"", z",dog;cow\n', '+ a.jpg,"x ""y"", z",cow\n'],
        options=ReadOptions(unlisted="absent"), answers=STRIKE),
    PatchCase("list where unlisted is absent, a strike", "list_column",
        "image,tags\na.jpg,dog|cow\nb.jpg,cow\n", ["- a.jpg,dog|cow\n", "+ a.jpg,cow\n"],
        options=ReadOptions(unlisted="absent"), answers=STRIKE),
    PatchCase("list as JSON text", "list_column",
        'image,labels,absent\na.jpg,"[""dog""]",\nb.jpg,"[""cow""]",\n',
        ['- a.jpg,"[""dog""]",\n', '+ a.jpg,"[""dog""]","[""cow""]"\n',
         '- b.jpg,"[""cow""]",\n', '+ b.jpg,"[""cow"", ""dog""]",\n']),
    PatchCase("lines of JSON", "list_column",
        '{"image":"a.jpg","labels":["dog"],"note":1.50}\n{"image": "b.jpg", "labels": ["cow"]}\n'
        '{"image":"c.jpg","labels":[]}\n',
        ['- {"image":"a.jpg","labels":["dog"],"note":1.50}\n',
         '+ {"image":"a.jpg","labels":["dog"],"note":1.50,"absent":["cow"]}\n',
         '- {"image": "b.jpg", "labels": ["cow"]}\n',
         '+ {"image": "b.jpg", "labels": ["cow", "dog"]}\n'], file="labels.jsonl"),
    PatchCase("several label columns", "list_column",
        "image,label1,label2\na.jpg,dog,cow\nb.jpg,cow,\n",
        ["- a.jpg,dog,cow\n", "+ a.jpg,,cow\n", "- b.jpg,cow,\n", "+ b.jpg,cow,dog\n"],
        answers=BOTH, absents=False),
    PatchCase("long with states, a strike", "long",
        'image,class,state,by\na.jpg,dog,present,Ann\n"b.jpg",cow,present,Ben\n',
        ["- a.jpg,dog,present,Ann\n", "+ a.jpg,dog,absent,Ann\n", "+ b.jpg,dog,present,\n"],
        answers=BOTH),
    PatchCase("long without states, a strike", "long", "image,class\na.jpg,dog\na.jpg,cow\nb.jpg,cow\n",
        ["- a.jpg,dog\n", "+ a.jpg,\n", "+ b.jpg,dog\n"], answers=BOTH, absents=False),
    PatchCase("COCO", "coco", COCO, [f"-     {OLD}\n", f"+     {OLD},\n", f"+     {NEW}\n"],
        absents=False, file="labels.json"),
    PatchCase("COCO, a strike", "coco", COCO,
        ['-     {"id": 3, "image_id": 7, "category_id": 18, "bbox": [1.50, 2, 3, 4],'
         ' "area": 12.0},\n', f"-     {OLD}\n", f"+     {OLD},\n", f"+     {NEW}\n"],
        absents=False, file="labels.json", answers=BOTH),
    PatchCase("LVIS", "lvis", LVIS,
        ['-     {"id": 7, "file_name": "a.jpg", "neg_category_ids": [], "width": 640,'
         ' "height": 1e2},\n',
         '+     {"id": 7, "file_name": "a.jpg", "neg_category_ids": [21], "width": 640,'
         ' "height": 1e2},\n', f"-     {OLD}\n", f"+     {OLD},\n", f"+     {NEW}\n"],
        options=ReadOptions(), file="labels.json"),
    PatchCase("FiftyOne", "fiftyone",
        '{"classes": ["cow", "dog"],\n "labels": {\n  "a.jpg": ["dog", "cow"],\n'
        '  "b.jpg": [{"label": "cow", "x": 1.50}]\n }\n}\n',
        ['-   "a.jpg": ["dog", "cow"],\n', '+   "a.jpg": ["cow"],\n',
         '-   "b.jpg": [{"label": "cow", "x": 1.50}]\n',
         '+   "b.jpg": [{"label": "cow", "x": 1.50}, {"label": "dog", "confidence": 1.0,'
         ' "attributes": {"missing": false}}]\n'],
        absents=False, file="labels.json", answers=BOTH),
    PatchCase("CVAT, a strike keeps other shapes", "cvat",
        '<?xml version="1.0"?>\n<annotations>\n<image id="0" name="a.jpg">\n'
        '  <box label="dog" xtl="1"></box>\n  <box label="cow" xtl="2"></box>\n'
        '  <polygon label="dog" points="1,2"/>\n</image>\n<image id="1" name="b.jpg">\n</image>\n'
        "</annotations>\n",
        ['-   <box label="dog" xtl="1"></box>\n', '-   <polygon label="dog" points="1,2"/>\n',
         '+ <tag label="dog" source="manual"></tag>\n'],
        absents=False, file="labels.xml", answers=BOTH),
    PatchCase("the paper's list", "paper_list", "a.jpg, 0 2\nb.jpg,2\nc.jpg,1\n",
        ["- a.jpg, 0 2\n", "+ a.jpg, 2\n", "- b.jpg,2\n", "+ b.jpg,0 2\n"],
        options=ReadOptions(), absents=False, file="labels.txt",
        answers=[("a.jpg", "0", State.ABSENT), ("b.jpg", "0", State.PRESENT)]),
    PatchCase("carriage returns alone at the ends of lines", "wide",
        "image,cow,dog\ra.jpg,1,1\rb.jpg,1,0", ["- a.jpg,1,1\r", "+ a.jpg,0,1\r", "- b.jpg,1,0", "+ b.jpg,1,1"],
        options=ReadOptions(zero="absent"), answers=STRUCK),
    PatchCase("cells with spaces between", "wide", "image cow dog\na.jpg 1 1\nb.jpg  1 0\n",
        ["- a.jpg 1 1\n", "+ a.jpg 0 1\n", "- b.jpg  1 0\n", "+ b.jpg  1 1\n"],
        options=ReadOptions(zero="absent", separator="space"), answers=STRUCK),
    PatchCase("true and false in lines of JSON", "wide",
        '{"image":"a.jpg","cow":true,"dog":1.0}\n{"image":"b.jpg","cow":false,"dog":0.0}\n',
        ['- {"image":"a.jpg","cow":true,"dog":1.0}\n', '+ {"image":"a.jpg","cow":false,"dog":1.0}\n',
         '- {"image":"b.jpg","cow":false,"dog":0.0}\n', '+ {"image":"b.jpg","cow":false,"dog":1.0}\n'],
        options=ReadOptions(zero="absent"), file="labels.jsonl", answers=STRUCK),
    PatchCase("a second label where each cell held one", "list_column",
        "image,labels,n\na.jpg,dog,1\nb.jpg,cow,2\n", ["- b.jpg,cow,2\n", "+ b.jpg,cow;dog,2\n"],
        options=UNKNOWN, answers=[("b.jpg", "dog", State.PRESENT)]),
    PatchCase("Open Images", "openimages",
        "ImageID,Source,LabelName,Confidence\na.jpg,human,dog,1\nb.jpg,human,cow,1\n",
        ["- a.jpg,human,dog,1\n", "+ a.jpg,human,dog,0\n", "+ b.jpg,verification,dog,1\n"],
        options=ReadOptions(), answers=BOTH),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_patch_changes_only_what_was_answered(case: PatchCase, tmp_path: Path) -> None:
    check_patch(case, tmp_path)


def test_one_strike_leaves_the_other_117_boxes_alone(tmp_path: Path) -> None:
    content: dict[str, Any] = {
        "info": {"contributor": "us"},
        "images": [
            {"id": n, "file_name": f"{n}.jpg", "width": 640, "height": 480} for n in range(60)
        ],
        "annotations": [
            {"id": n, "image_id": n % 60, "category_id": 1 + n % 2, "bbox": [n, 2, 3, 4.5]}
            for n in range(118)
        ],
        "categories": [{"id": 1, "name": "dog"}, {"id": 2, "name": "cow"}],
    }
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(content, indent=1))
    new = patched_file(path, [("5.jpg", "cow", State.ABSENT)], UNKNOWN)
    after = json.loads(new.files[""])
    kept = [
        one for one in content["annotations"] if (one["image_id"], one["category_id"]) != (5, 2)
    ]
    assert after == {**content, "annotations": kept}


def test_a_workbook_keeps_its_header_order_formats_and_other_columns(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "May"
    for row in (["Photos of May"], ["File", "Who", "dog", "cow"], ["a.jpg", "Ann", 1, 0],
                ["b.jpg", "Ben", 0, 1]):  # fmt: skip
        sheet.append(row)
    sheet["B3"].font = openpyxl.styles.Font(bold=True)
    book.create_sheet("Notes").append(["left alone"])
    path = tmp_path / "labels.xlsx"
    book.save(path)
    options = ReadOptions(zero="absent")
    new = patched_file(
        path, [("a.jpg", "dog", State.ABSENT), ("b.jpg", "dog", State.PRESENT)], options
    )
    after = openpyxl.load_workbook(io.BytesIO(new.files[""]))
    rows = [[cell.value for cell in row] for row in after["May"]]
    assert rows[1:] == [
        ["File", "Who", "dog", "cow"],
        ["a.jpg", "Ann", 0, 0],
        ["b.jpg", "Ben", 1, 1],
    ]
    assert rows[0][0] == "Photos of May"
    assert after["May"]["B3"].font.bold
    assert after["Notes"]["A1"].value == "left alone"


def test_parquet_keeps_other_columns_and_types(tmp_path: Path) -> None:
    path = tmp_path / "labels.parquet"
    table = pa.table(
        {"image": ["a.jpg", "b.jpg"], "labels": [["dog", "cow"], ["cow"]], "n": [1.5, 2]}
    )
    pq.write_table(table.replace_schema_metadata({"made by": "us"}), path)
    new = patched_file(path, BOTH, ReadOptions(unlisted="absent"))
    after = pq.read_table(io.BytesIO(new.files[""]))
    assert after.to_pylist() == [
        {"image": "a.jpg", "labels": ["cow"], "n": 1.5},
        {"image": "b.jpg", "labels": ["cow", "dog"], "n": 2.0},
    ]
    assert after.schema.metadata[b"made by"] == b"us"


VOC_XML = """<annotation>
\t<filename>{0}.jpg</filename>
\t<size><width>500</width><height>375</height></size>
\t<object>
\t\t<name>dog</name><bndbox><xmin>1</xmin></bndbox>
\t</object>
\t<object>
\t\t<name>cow</name><bndbox><xmin>2.50</xmin></bndbox>
\t</object>
</annotation>
"""


def test_voc_xml_keeps_other_boxes(tmp_path: Path) -> None:
    folder = tmp_path / "xml"
    folder.mkdir()
    (folder / "a.xml").write_text(VOC_XML.format("a"))
    (folder / "b.xml").write_text(VOC_XML.format("b").replace("dog", "cow"))
    (folder / "c.xml").write_text(VOC_XML.format("c"))
    new = patched_file(folder, BOTH, UNKNOWN)
    assert sorted(diff(VOC_XML.format("a"), new.files["a.xml"].decode())) == [
        "- \t\t<name>dog</name><bndbox><xmin>1</xmin></bndbox>\n",
        "- \t</object>\n",
        "- \t<object>\n",
    ]
    assert "<xmax>500</xmax><ymax>375</ymax>" in new.files["b.xml"].decode()
    assert new.files["c.xml"] == (folder / "c.xml").read_bytes()


def test_voc_image_sets_change_one_value(tmp_path: Path) -> None:
    sets = tmp_path / "VOC" / "ImageSets" / "Main"
    sets.mkdir(parents=True)
    (sets / "dog_train.txt").write_text("a.jpg  1\nb.jpg -1\nc.jpg  0\n")
    (sets / "cow_train.txt").write_text("a.jpg -1\nb.jpg  1\nc.jpg  1\n")
    (sets / "train.txt").write_text("a.jpg\nb.jpg\nc.jpg\n")
    new = patched_file(tmp_path / "VOC", BOTH, ReadOptions())
    assert new.files["ImageSets/Main/dog_train.txt"] == b"a.jpg -1\nb.jpg  1\nc.jpg  0\n"
    assert new.files["ImageSets/Main/cow_train.txt"] == (sets / "cow_train.txt").read_bytes()


def test_sidecar_files_take_and_lose_labels(tmp_path: Path) -> None:
    folder = tmp_path / "tags"
    folder.mkdir()
    for name, tags in (("a", "dog, long hair"), ("b", "cow")):
        (folder / f"{name}.jpg").write_bytes(b"")
        (folder / f"{name}.txt").write_text(f"{tags}\n")
    new = patched_file(folder, BOTH, UNKNOWN)
    assert new.files == {"a.txt": b"long hair\n", "b.txt": b"cow, dog\n"}


def test_what_cannot_be_changed_is_refused_with_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("image,label1,label2\na.jpg,dog,cow\nb.jpg,cow,pig\n")
    with pytest.raises(DataError, match="row 3 has no empty cell for 'dog'"):
        patched_file(path, [("b.jpg", "dog", State.PRESENT)], UNKNOWN)
    for name, tag in (("cat", "x"), ("dog", "x")):
        (tmp_path / "classes" / name).mkdir(parents=True)
        (tmp_path / "classes" / name / f"{tag}.jpg").write_bytes(b"")
    with pytest.raises(DataError, match="read, but not changed"):
        patched_file(tmp_path / "classes", [("x.jpg", "cat", State.ABSENT)], UNKNOWN)
    path = tmp_path / "labels.csv.gz"
    import gzip

    path.write_bytes(gzip.compress(b"image,tags\na.jpg,dog;cow\n"))
    assert len(read_labels(path, unlisted="unknown")) == 1
    with pytest.raises(DataError, match="a compressed file cannot be changed"):
        patched_file(path, STRIKE, UNKNOWN)


def test_every_format_that_is_written_can_be_changed() -> None:
    assert [name for name, one in FORMATS.items() if one.writes and one.patch is None] == []


def test_a_patch_that_does_not_read_back_equal_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgetful(asked: FilePatch) -> Patched:
        return asked.patched(asked.source.raw)

    wide = replace(FORMATS["wide"], patch=forgetful)
    monkeypatch.setitem(FORMATS, "wide", wide)
    path = tmp_path / "labels.csv"
    path.write_text("image,dog,cow\na.jpg,1,0\nb.jpg,0,1\n")
    with pytest.raises(DataError, match="could not be changed without disturbing others"):
        patched_file(path, BOTH, ReadOptions(zero="absent"))
