"""Label Studio exports: tasks, flat records, CSV; one tag is a bare string, none is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from hilltop.data.annotations import label_studio
from hilltop.data.content import Source
from hilltop.errors import AmbiguousInputError, DataError
from tests.data.fuzz import survives
from tests.data.patched import found_format

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
UNKNOWN, ABSENT = ReadOptions(unlisted="unknown"), ReadOptions(unlisted="absent")
IMAGES = ["/data/upload/1/ab-one.jpg", "s3://bucket/two", "/data/upload/1/ef-three.jpg"]
STAMPS = {"created_at": "2024-05-01T10:00:00Z", "updated_at": "2024-05-01T10:00:00Z"}


def choices(*names: str, control: str = "choice") -> dict[str, Any]:
    return {
        "id": "x1",
        "from_name": control,
        "to_name": "image",
        "type": "choices",
        "value": {"choices": list(names)},
    }


def annotation(*results: dict[str, Any], skipped: bool = False) -> dict[str, Any]:
    return {"id": 5, "completed_by": 1, "result": list(results), "was_cancelled": skipped, **STAMPS}


def task(number: int, *annotations: dict[str, Any], **data: Any) -> dict[str, Any]:
    return {
        "id": 100 + number,
        "data": {"image": IMAGES[number], **data},
        "annotations": list(annotations),
        "predictions": [{"result": [choices("guess")]}],
    }


def flat(number: int, **more: Any) -> dict[str, Any]:
    system = {"id": 100 + number, "annotator": 1, "annotation_id": 5, "lead_time": 2.5, **STAMPS}
    return {"image": IMAGES[number], **system, **more}


TASKS = [task(0, annotation(choices("dog"))), task(1, annotation(choices("cat", "dog")))]
TASKS.append(task(2, annotation()))
FLAT = [flat(0, choice="dog"), flat(1, choice={"choices": ["cat", "dog"]}), flat(2)]
CSV = (
    "image,id,choice,annotator,annotation_id,created_at,updated_at,lead_time\n"
    f"{IMAGES[0]},100,dog,1,5,x,y,2.5\n"
    f'{IMAGES[1]},101,"{{""choices"": [""cat"", ""dog""]}}",1,6,x,y,2.5\n'
    f"{IMAGES[2]},102,,1,7,x,y,2.5\n"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "export.json"


def put(path: Path, content: Any) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("content", [TASKS, FLAT, CSV], ids=["json", "json_min", "csv"])
def test_the_three_exports_say_the_same(path: Path, content: Any) -> None:
    path = path.with_suffix(".csv") if content is CSV else path
    put(path, content)
    assert found_format(path) == "label_studio"
    table = read_labels(path, options=UNKNOWN)
    assert table.images.to_pylist() == IMAGES
    assert table.classes == ("cat", "dog")
    assert table.dense().tolist() == [[U, P], [P, P], [U, U]]
    assert table.notes == ()
    assert read_labels(path, options=ABSENT).count(A) == 3


@pytest.mark.parametrize("content", [TASKS, FLAT], ids=["json", "json_min"])
def test_choices_not_made_are_never_guessed(path: Path, content: Any) -> None:
    with pytest.raises(AmbiguousInputError, match="what choices that were not made mean"):
        read_labels(put(path, content))


def test_tasks_without_an_annotation_are_left_out_and_counted(path: Path) -> None:
    skipped = task(1, annotation(choices("cat"), skipped=True))
    table = read_labels(put(path, [TASKS[0], skipped, task(2)]), options=UNKNOWN)
    assert table.images.to_pylist() == IMAGES[:1]
    assert table.classes == ("dog",)
    assert table.notes == ("2 tasks without an annotation are left out.",)


def test_annotations_of_one_task_may_repeat_but_not_disagree(path: Path) -> None:
    same = task(0, annotation(choices("cat", "dog")), annotation(choices("dog"), choices("cat")))
    table = read_labels(put(path, [same]), options=UNKNOWN)
    assert table.dense().tolist() == [[P, P]]
    assert table.notes == ()
    other = task(0, annotation(choices("cat")), annotation(choices("dog")))
    with pytest.raises(DataError, match=r"task 100 has annotations that disagree: \['cat'\] and"):
        read_labels(put(path, [other]), options=UNKNOWN)
    with pytest.raises(DataError, match="task 100 has annotations that disagree"):
        read_labels(put(path, [flat(0, choice="cat"), flat(0, choice="dog")]), options=UNKNOWN)


def test_disagreeing_rows_of_a_csv_are_named_by_line(path: Path) -> None:
    again = CSV + f"{IMAGES[0]},100,cat,2,9,x,y,1\n"
    with pytest.raises(DataError, match=r"export.csv: task 100 has annotations that disa"):
        read_labels(put(path.with_suffix(".csv"), again), options=UNKNOWN)


def test_one_image_in_two_tasks_is_merged_and_noted(path: Path) -> None:
    again = {**task(0, annotation(choices("cat"))), "id": 999}
    table = read_labels(put(path, [TASKS[0], again]), options=UNKNOWN)
    assert table.dense().tolist() == [[P, P]]
    assert len(table.notes) == 1
    assert table.notes[0].startswith("1 image name is in several rows; the labels")
    assert "1 of them has different labels there; the first is" in table.notes[0]


def test_the_only_reference_is_the_image(path: Path) -> None:
    tasks = [task(0, annotation(choices("dog")), text="a dog", width=640)]
    table = read_labels(put(path, tasks), options=UNKNOWN)
    assert table.images.to_pylist() == IMAGES[:1]


def test_two_references_are_asked_about(path: Path) -> None:
    put(path, [task(0, annotation(choices("dog")), thumb="https://x.org/t.png")])
    with pytest.raises(AmbiguousInputError, match="--image-column with one of image, thumb"):
        read_labels(path, options=UNKNOWN)
    options = ReadOptions(unlisted="unknown", image_column="thumb")
    assert read_labels(path, options=options).images.to_pylist() == ["https://x.org/t.png"]


def test_two_controls_are_asked_about(path: Path) -> None:
    put(path, [task(0, annotation(choices("dog"), choices("good", control="quality")))])
    with pytest.raises(AmbiguousInputError, match="--label-columns with one of choice, quality"):
        read_labels(path, options=UNKNOWN)
    options = ReadOptions(unlisted="unknown", label_columns="quality")
    assert read_labels(path, options=options).classes == ("good",)
    put(path, [flat(0, choice="dog", quality="good")])
    with pytest.raises(AmbiguousInputError, match="--label-columns with one of choice, quality"):
        read_labels(path, options=UNKNOWN)
    assert read_labels(path, options=options).classes == ("good",)


@pytest.mark.parametrize("content", [TASKS, FLAT], ids=["json", "json_min"])
def test_a_wrong_control_is_a_fault(path: Path, content: Any) -> None:
    options = ReadOptions(unlisted="unknown", label_columns="chioce")
    with pytest.raises(DataError, match=r"'chioce'. Did you mean 'choice'\?"):
        read_labels(put(path, content), options=options)


def test_other_results_are_counted_but_not_read(path: Path) -> None:
    box = {**choices(), "type": "rectanglelabels", "value": {"rectanglelabels": ["car"]}}
    table = read_labels(put(path, [task(0, annotation(choices("dog"), box))]), options=UNKNOWN)
    assert table.classes == ("dog",)
    assert table.notes == ("1 result of type rectanglelabels are not read.",)
    alone = read_labels(put(path, [task(0, annotation(box))]), options=UNKNOWN)
    assert alone.classes == ("car",), "where nothing was chosen, labels of shapes count"


def test_choices_made_for_several_regions_are_joined(path: Path) -> None:
    table = read_labels(put(path, [flat(0, choice=["cat", {"choices": ["dog"]}])]), options=UNKNOWN)
    assert table.dense().tolist() == [[P, P]]


def test_a_class_list_closes_the_classes(path: Path) -> None:
    names = put(path.with_name("names.txt"), "dog\n")
    options = ReadOptions(unlisted="unknown", classes=names)
    with pytest.raises(DataError, match="class 'cat' is not in the class list"):
        read_labels(put(path, TASKS), options=options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([TASKS[0], 7], "record 2 is not a task: it has no 'data'"),
        ([TASKS[0], {"data": {}}], "record 2 is not a task: it has no list of 'annotations'"),
        ([task(0, {"result": None})], "record 1 is not a task: an annotation has no list"),
        ([task(0, annotation({**choices(), "value": {}}))], "task 100: its choices are not a list"),
        ([task(0, annotation(choices("\ud800")))], "task 100: a name holds half a character"),
        ([TASKS[0], task(1, annotation(), image=None)], "task 101: the image reference is missing"),
        ([FLAT[0], {"a": 1}], "record 2 is neither a task"),
        ([FLAT[0], flat(1, choice=7)], "record 2: 'choice' must be a name or"),
        ([FLAT[0], flat(1, choice=[["a"]])], "record 2: 'choice' must be a name or"),
        ([task(0, annotation(choices("")))], "a class name is empty"),
        ({"a": 1}, "expected a JSON list of tasks"),
        ("[{", "this is not complete JSON"),
    ],
)
def test_broken_exports_are_faults(path: Path, content: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_labels(put(path, content), format="label_studio", options=UNKNOWN)


def test_broken_json_in_a_csv_cell_is_a_fault(path: Path) -> None:
    broken = CSV.replace("]}", "")
    with pytest.raises(DataError, match=r"record 2: 'choice' must be a name or"):
        read_labels(put(path.with_suffix(".csv"), broken), options=UNKNOWN)


def test_a_csv_without_the_columns_of_an_export_is_a_fault(path: Path) -> None:
    with pytest.raises(DataError, match="line 1: expected columns 'annotation_id' and 'annotator'"):
        read_labels(put(path.with_suffix(".csv"), "a,b\n1,2\n"), format="label_studio")


def test_one_task_with_two_images_is_a_fault(path: Path) -> None:
    put(path, [flat(0, choice="cat"), {**flat(1, choice="cat"), "id": 100}])
    with pytest.raises(DataError, match="task 100 has two images"):
        read_labels(path, options=UNKNOWN)


def test_an_export_without_tasks_is_an_empty_table(path: Path) -> None:
    assert len(read_labels(put(path, "[]"), format="label_studio", options=UNKNOWN)) == 0


@pytest.mark.parametrize("unlisted", [U, A])
def test_round_trip(path: Path, unlisted: State) -> None:
    table = LabelTable.from_coo(
        ["a.jpg", "b", 'c"<x>.png'], ["cat", "dög"], [0, 0, 1], [0, 1, 1], P, unlisted=unlisted
    )
    write_labels(table, path, format="label_studio")
    options = UNKNOWN if unlisted == U else ABSENT
    assert found_format(path) == "label_studio"
    assert read_labels(path, options=options) == table


def test_written_tasks_have_what_an_import_needs(path: Path) -> None:
    write_labels(
        LabelTable.from_coo(["a.jpg"], ["cat"], [0], [0], P, unlisted=U),
        path,
        format="label_studio",
    )
    (written,) = json.loads(path.read_text(encoding="utf-8"))
    assert written["data"] == {"image": "a.jpg"}
    assert written["annotations"][0]["result"] == [
        {
            "from_name": "choice",
            "to_name": "image",
            "type": "choices",
            "value": {"choices": ["cat"]},
        }
    ]


def test_confirmed_absents_cannot_be_written(small: LabelTable, path: Path) -> None:
    with pytest.raises(DataError, match="cannot express 1 pair that is absent"):
        write_labels(small, path, format="label_studio")
    write_labels(small, path, format="label_studio", lossy=True)
    assert read_labels(path, options=UNKNOWN).count(P) == small.count(P)


@pytest.mark.parametrize("text", ["", "[", "[]", "[1]", '[{"data": 1}]', "image,class\n", "\x00"])
def test_other_content_does_not_fit(path: Path, text: str) -> None:
    assert not label_studio.matches(Source(put(path, text)))
    assert not label_studio.matches(Source(path.parent))


def test_an_export_that_was_cut_off_still_fits(path: Path) -> None:
    put(path, json.dumps(TASKS)[:400])
    with pytest.raises(DataError, match="line 1: this is not complete JSON"):
        read_labels(path, options=UNKNOWN)


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "content"),
    [("t.json", json.dumps(TASKS, indent=1)), ("t.json", json.dumps(FLAT)), ("t.csv", CSV)],
    ids=["json", "json_min", "csv"],
)
def test_damaged_files_end_in_a_table_or_in_words(
    tmp_path: Path, count: int, name: str, content: str
) -> None:
    tables, faults = survives(put(tmp_path / name, content), count, "label_studio", UNKNOWN)
    assert tables + faults == count
    assert tables
    assert faults
