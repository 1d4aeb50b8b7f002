"""COCO and LVIS files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.data.annotations import coco
from hilltop.data.content import Source
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.fuzz import survives
from tests.data.patched import found_format

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
UNKNOWN, ABSENT = ReadOptions(unlisted="unknown"), ReadOptions(unlisted="absent")


def coco_content() -> dict[str, Any]:
    return {
        "info": {"year": 2017},
        "images": [
            {"id": 9, "file_name": "val/a.jpg", "width": 4, "height": 3},
            {"id": 3, "file_name": "b.jpg"},
            {"id": 57},
        ],
        "annotations": [
            {"id": 1, "image_id": 9, "category_id": 18, "iscrowd": 0, "bbox": [0, 0, 1, 1]},
            {"id": 2, "image_id": 9, "category_id": 18, "iscrowd": 1},
            {"id": 3, "image_id": 9, "category_id": 1},
            {"id": 4, "image_id": 57, "category_id": 18},
        ],
        "categories": [
            {"id": 18, "name": "dog", "supercategory": "animal"},
            {"id": 1, "name": "person"},
            {"id": 2, "name": "bicycle"},
        ],
    }


def lvis_content() -> dict[str, Any]:
    url = "http://images.cocodataset.org/train2017/000000000009.jpg"
    return {
        "images": [
            {
                "id": 9,
                "coco_url": url,
                "neg_category_ids": [2, 3],
                "not_exhaustive_category_ids": [],
            },
            {"id": 3, "neg_category_ids": [], "not_exhaustive_category_ids": [1], "file_name": "b"},
        ],
        "annotations": [
            {"id": 1, "image_id": 9, "category_id": 1},
            {"id": 2, "image_id": 3, "category_id": 1},
            {"id": 3, "image_id": 3, "category_id": 3},
        ],
        "categories": [{"id": number, "name": name} for number, name in enumerate("xyz", 1)],
    }


def save(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def coco_file(tmp_path: Path) -> Path:
    return save(tmp_path / "coco.json", coco_content())


@pytest.fixture
def lvis_file(tmp_path: Path) -> Path:
    return save(tmp_path / "lvis.json", lvis_content())


def message(path: Path, options: ReadOptions = UNKNOWN, format: str | None = None) -> str:
    with pytest.raises(DataError) as caught:
        read_labels(path, format=format, options=options)
    return str(caught.value)


def test_any_annotation_of_a_class_makes_it_present_once(coco_file: Path) -> None:
    table = read_labels(coco_file, options=UNKNOWN)
    assert table.images.to_pylist() == ["val/a.jpg", "b.jpg", "57"]
    assert table.classes == ("dog", "person", "bicycle")
    assert table.dense().tolist() == [[P, P, U], [U, U, U], [P, U, U]]


def test_coco_leaves_unlisted_pairs_open(coco_file: Path) -> None:
    with pytest.raises(AmbiguousInputError, match="--unlisted"):
        read_labels(coco_file)
    assert read_labels(coco_file, options=ABSENT).count(A) == 6


def test_lvis_negatives_are_absent_and_the_rest_is_unknown(lvis_file: Path) -> None:
    table = read_labels(lvis_file)
    assert table.images.to_pylist() == ["000000000009.jpg", "b"]
    assert table.dense().tolist() == [[P, A, A], [P, U, P]]


def test_confirmed_absents_make_a_coco_file_an_lvis_file(coco_file: Path, lvis_file: Path) -> None:
    assert found_format(coco_file) == "coco"
    assert not coco.LVIS.matches(Source(coco_file))
    assert found_format(lvis_file) == "lvis"


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"images": 3}', b"\xff\xfe\x00", b"null"])
def test_other_content_fits_neither(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(content)
    assert not coco.FORMAT.matches(Source(path))
    assert not coco.LVIS.matches(Source(path))
    assert not coco.FORMAT.matches(Source(tmp_path))


def test_lvis_read_as_coco_notes_what_was_not_read(lvis_file: Path) -> None:
    table = read_labels(lvis_file, format="coco", options=ABSENT)
    assert table.notes == ("2 images have neg_category_ids, which only the format lvis reads.",)


def test_a_file_that_was_cut_off_is_recognised_and_the_line_named(coco_file: Path) -> None:
    coco_file.write_text(json.dumps(coco_content(), indent=1)[:-40])
    assert "coco.json, line 6" in message(coco_file)
    assert "cut off" in message(coco_file)


def test_a_class_list_gives_the_order_and_is_closed(coco_file: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("bicycle\nperson\ncar\ndog\n")
    table = read_labels(coco_file, options=ReadOptions(unlisted="unknown", classes=names))
    assert table.classes == ("bicycle", "person", "car", "dog")
    assert table.labels_of(0) == ("person", "dog")
    names.write_text("dog\n")
    text = message(coco_file, ReadOptions(unlisted="unknown", classes=names))
    assert "class 'person' is not in the class list (1 name)" in text


DAMAGE: list[tuple[str, int, dict[str, Any], str]] = [
    ("annotations", 1, {"image_id": 8}, "record 2 of 'annotations': image_id 8 is not among the 3"),
    ("annotations", 1, {"image_id": None}, "image_id None is not among"),
    ("annotations", 1, {"image_id": [9]}, "image_id [9] is not among"),
    ("annotations", 2, {"category_id": 7}, "record 3 of 'annotations': category_id 7 is not among"),
    ("annotations", 2, {"category_id": True}, "category_id True is not among"),
    ("annotations", 3, {"id": 1}, "record 4 of 'annotations': id 1 is not a number or is used"),
    ("images", 1, {"id": 9}, "record 2 of 'images': id 9 is used before"),
    ("images", 1, {"id": 1.5}, "record 2 of 'images': id must be a number, but got 1.5"),
    ("images", 1, {"file_name": "val/a.jpg"}, "'val/a.jpg' stands in record 1 already"),
    ("images", 1, {"file_name": 3}, "its name must be text, but got 3"),
    ("images", 1, {"file_name": ""}, "its name must be text, but got ''"),
    ("images", 1, {"file_name": "\ud800"}, "its name must be text, but got '\\ud800'"),
    (
        "categories",
        1,
        {"name": "dog"},
        "record 2 of 'categories': the name 'dog' stands in record 1",
    ),
]


@pytest.mark.parametrize(("part", "at", "change", "text"), DAMAGE)
def test_a_wrong_value_is_named_with_its_record(
    tmp_path: Path, part: str, at: int, change: dict[str, Any], text: str
) -> None:
    content = coco_content()
    content[part][at].update(change)
    found = message(save(tmp_path / "bad.json", content))
    assert text in found
    assert "bad.json: record" in found


@pytest.mark.parametrize(
    ("part", "key"),
    [("images", "id"), ("categories", "name"), ("annotations", "image_id")],
)
def test_a_missing_key_is_named(tmp_path: Path, part: str, key: str) -> None:
    content = coco_content()
    del content[part][0][key]
    text = message(save(tmp_path / "bad.json", content))
    assert f"record 1 of {part!r} has no key {key!r}" in text


def test_wrong_shapes_are_faults(tmp_path: Path) -> None:
    content = coco_content()
    content["images"][0] = "a.jpg"
    path = save(tmp_path / "bad.json", content)
    assert "record 1 of 'images' must be an object, but got 'a.jpg'" in message(path)
    save(path, {"images": {}, "categories": []})
    text = message(path, format="coco")
    assert "there is no list 'images'" in text
    assert "there is no list 'annotations'" in text
    save(path, [1, 2])
    assert "expected a JSON object" in message(path, format="coco")


def test_a_number_without_end_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    path.write_text('{"images": [], "annotations": [], "categories": ' + "1" * 5000 + "}")
    assert "too long" in message(path, format="coco")
    assert coco.FORMAT.matches(Source(path))


def test_at_most_20_faults_are_told(tmp_path: Path) -> None:
    content = coco_content()
    content["annotations"] = [{"id": n, "image_id": -n, "category_id": 1} for n in range(1, 99)]
    text = message(save(tmp_path / "bad.json", content))
    assert len(text.splitlines()) == 21


def test_lvis_faults_name_the_record(tmp_path: Path) -> None:
    content = lvis_content()
    content["images"][0]["neg_category_ids"] = [2, 77]
    del content["images"][1]["neg_category_ids"]
    text = message(save(tmp_path / "bad.json", content))
    assert "record 1 of 'images': 77 in 'neg_category_ids' is not among the 3 categories" in text
    assert "record 2 of 'images' must have a list 'neg_category_ids'" in text


def test_lvis_class_both_annotated_and_negative_is_a_fault(tmp_path: Path) -> None:
    content = lvis_content()
    content["images"][0]["neg_category_ids"] = [1]
    text = message(save(tmp_path / "bad.json", content))
    assert "image '000000000009.jpg' has class 'x' both absent and present" in text


@pytest.mark.parametrize("options", [UNKNOWN, ABSENT])
def test_coco_round_trip(coco_file: Path, tmp_path: Path, options: ReadOptions) -> None:
    table = read_labels(coco_file, options=options)
    write_labels(table, tmp_path / "again.json", format="coco")
    assert read_labels(tmp_path / "again.json", options=options) == table


def test_lvis_round_trip(small: LabelTable, tmp_path: Path) -> None:
    write_labels(small, tmp_path / "again.json", format="lvis")
    assert read_labels(tmp_path / "again.json") == small


def test_written_coco_has_the_keys_that_other_readers_look_up(
    coco_file: Path, tmp_path: Path
) -> None:
    write_labels(read_labels(coco_file, options=UNKNOWN), tmp_path / "again.json", format="coco")
    content = json.loads((tmp_path / "again.json").read_text())
    assert content["images"][0] == {"id": 1, "file_name": "val/a.jpg", "width": 0, "height": 0}
    assert content["categories"][0] == {"id": 1, "name": "dog", "supercategory": ""}
    assert content["annotations"][0] == {
        "id": 1,
        "image_id": 1,
        "category_id": 1,
        "iscrowd": 1,
        "area": 0,
        "bbox": [0, 0, 0, 0],
        "segmentation": [],
    }


def test_coco_cannot_express_absents_unless_lossy(small: LabelTable, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    with pytest.raises(DataError, match="1 pair that is absent"):
        write_labels(small, path, format="coco")
    write_labels(small, path, format="coco", lossy=True)
    assert read_labels(path, options=UNKNOWN).count(P) == small.count(P)


@pytest.mark.parametrize("format", ["lvis"])
def test_unlisted_absents_are_listed_where_unlisted_means_unknown(
    tmp_path: Path, format: str
) -> None:
    table = LabelTable.from_coo(["a", "b"], ["x", "y"], [0, 1], [0, 1], [P, U], unlisted=A)
    path = tmp_path / "out"
    write_labels(table, path, format=format)
    again = read_labels(path, format=format)
    assert again.dense().tolist() == [[P, A], [A, U]]
    assert again.unlisted == U


def test_lvis_categories_carry_frequency_groups(tmp_path: Path) -> None:
    images = [f"{number}.jpg" for number in range(101)]
    rows = [*range(10), *range(11), *range(101)]
    columns = [0] * 10 + [1] * 11 + [2] * 101
    table = LabelTable.from_coo(
        images, ["rare", "common", "frequent"], rows, columns, P, unlisted=U
    )
    write_labels(table, tmp_path / "out.json", format="lvis")
    categories = json.loads((tmp_path / "out.json").read_text())["categories"]
    assert [category["frequency"] for category in categories] == ["r", "c", "f"]
    assert [category["image_count"] for category in categories] == [10, 11, 101]


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("format", ["coco", "lvis"])
def test_damaged_files_end_in_a_table_or_in_words(tmp_path: Path, format: str, count: int) -> None:
    content = coco_content() if format == "coco" else lvis_content()
    path = tmp_path / "fuzz.json"
    path.write_text(json.dumps(content, indent=1))
    tables, faults = survives(path, count, format, UNKNOWN)
    assert tables > 0
    assert faults > 0
