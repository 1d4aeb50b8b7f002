"""Round trips with the programs that own the formats: they read what is written and patched."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hilltop.data import LabelTable, ReadOptions, State, read_labels, write_labels
from tests.data.patched import patched_file

A, P, U = State.ABSENT, State.PRESENT, State.UNKNOWN
UNKNOWN = ReadOptions(unlisted="unknown")
IMAGES = ["b.jpg", "a.jpg", "Größe.png"]
CLASSES = ["red fox", "cat", "dog"]
LABELS = [["cat", "dog"], [], ["red fox"]]
ANSWERS = [("a.jpg", "dog", P), ("b.jpg", "cat", A)]
AFTER = {"b.jpg": {"dog"}, "a.jpg": {"dog"}, "Größe.png": {"red fox"}}


@pytest.fixture
def table() -> LabelTable:
    return LabelTable.from_lists(IMAGES, LABELS, CLASSES)


def said(table: LabelTable) -> dict[str, set[str]]:
    images = table.images.to_pylist()
    return {image: set(table.labels_of(row)) for row, image in enumerate(images)}


def patch_in_place(path: Path, options: ReadOptions = UNKNOWN) -> None:
    """Change two labels of a file, as `hilltop apply` does."""
    path.write_bytes(patched_file(path, ANSWERS, options).files[""])


def coco_labels(path: Path) -> dict[str, set[str]]:
    """What pycocotools finds in a file."""
    from pycocotools.coco import COCO

    coco = COCO(str(path))
    return {
        image["file_name"]: {
            coco.cats[one["category_id"]]["name"]
            for one in coco.loadAnns(coco.getAnnIds(imgIds=image["id"]))
        }
        for image in coco.loadImgs(coco.getImgIds())
    }


def test_pycocotools_reads_what_is_written_and_patched(table: LabelTable, tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    write_labels(table, path, format="coco")
    assert coco_labels(path) == said(table)
    patch_in_place(path)
    assert coco_labels(path) == AFTER
    assert said(read_labels(path, options=UNKNOWN)) == AFTER


def test_pycocotools_evaluates_against_what_is_written(table: LabelTable, tmp_path: Path) -> None:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    path = tmp_path / "labels.json"
    write_labels(table, path, format="coco")
    truth = COCO(str(path))
    box = {"image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], "score": 0.5}
    evaluation = COCOeval(truth, truth.loadRes([box]), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    assert evaluation.eval is not None


def lvis_labels(path: Path) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Present and absent classes of every image, as LVIS's own interface finds them."""
    # Its drawing needs a graphics library, which a bare machine may lack.
    found = pytest.importorskip("lvis", exc_type=ImportError).LVIS(str(path))
    names = {key: one["name"] for key, one in found.cats.items()}
    present: dict[str, set[str]] = {}
    absent: dict[str, set[str]] = {}
    for key, image in found.imgs.items():
        records = found.load_anns(found.get_ann_ids(img_ids=[key]))
        present[image["file_name"]] = {names[one["category_id"]] for one in records}
        absent[image["file_name"]] = {names[one] for one in image["neg_category_ids"]}
    return present, absent


def test_lvis_reads_what_is_written_and_patched(table: LabelTable, tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    write_labels(table, path, format="lvis")
    assert lvis_labels(path) == (said(table), {image: set() for image in IMAGES})
    patch_in_place(path, ReadOptions())
    present, absent = lvis_labels(path)
    assert present == AFTER
    assert absent == {"b.jpg": {"cat"}, "a.jpg": set(), "Größe.png": set()}


def dataset_labels(rows: Any, image: str, names: Sequence[str] | None) -> dict[str, set[str]]:
    return {
        row[image]: {one if names is None else names[one] for one in row["labels"]} for row in rows
    }


def test_datasets_reads_parquet_with_the_names_of_the_classes(
    table: LabelTable, tmp_path: Path
) -> None:
    from datasets import Dataset

    path = tmp_path / "labels.parquet"
    write_labels(table, path, format="huggingface")
    for expected in (said(table), AFTER):
        found = Dataset.from_parquet(str(path), cache_dir=str(tmp_path / "cache"))
        names = found.features["labels"].feature.names
        assert names == CLASSES
        assert dataset_labels(found, "image", names) == expected
        patch_in_place(path)


def test_datasets_reads_an_image_folder_with_our_metadata(
    table: LabelTable, tmp_path: Path
) -> None:
    from datasets import load_dataset
    from PIL import Image

    folder = tmp_path / "train"
    folder.mkdir()
    for name in IMAGES:
        Image.new("RGB", (4, 4)).save(folder / name)
    write_labels(table, folder, format="huggingface")
    for expected in (said(table), AFTER):
        cache = str(tmp_path / "cache" / str(len(expected["a.jpg"])))
        found = load_dataset("imagefolder", data_dir=str(folder), cache_dir=cache)["train"]
        files = [Path(row["path"]).name for row in found.cast_column("image", no_pixels())["image"]]
        assert dict(zip(files, map(set, found["labels"]), strict=True)) == expected
        patch_in_place(folder / "metadata.jsonl")


def no_pixels() -> Any:
    from datasets import Image

    return Image(decode=False)


def test_what_datasets_saved_is_read(table: LabelTable, tmp_path: Path) -> None:
    from datasets import ClassLabel, Dataset, Features, List, Value

    features = Features({"file": Value("string"), "labels": List(ClassLabel(names=CLASSES))})
    numbers = [[CLASSES.index(name) for name in names] for names in LABELS]
    Dataset.from_dict({"file": IMAGES, "labels": numbers}, features).save_to_disk(tmp_path / "set")
    assert read_labels(tmp_path / "set", options=UNKNOWN) == table


def test_label_studio_converts_what_is_written_and_back(table: LabelTable, tmp_path: Path) -> None:
    reason = "label-studio-sdk holds numpy back, so it is not in the dev extra"
    converter = pytest.importorskip("label_studio_sdk.converter", reason=reason)
    tasks, minimal = tmp_path / "tasks.json", tmp_path / "minimal"
    write_labels(table, tasks, format="label_studio")
    setup = (
        '<View><Image name="image" value="$image"/><Choices name="choice" toName="image">'
        + "".join(f'<Choice value="{name}"/>' for name in CLASSES)
        + "</Choices></View>"
    )
    converter.Converter(setup, str(tmp_path)).convert_to_json_min(
        str(tasks), str(minimal), is_dir=False
    )
    found = json.loads((minimal / "result.json").read_text(encoding="utf-8"))
    assert {Path(one["image"]).name for one in found} == set(IMAGES)
    again = read_labels(minimal / "result.json", format="label_studio", unlisted="unknown")
    assert said(again) == said(table)
    patch_in_place(tasks)
    assert said(read_labels(tasks, options=UNKNOWN)) == AFTER


def test_fiftyone_imports_what_is_written(table: LabelTable, tmp_path: Path) -> None:
    reason = "fiftyone brings a database, so it is not in the dev extra"
    importers = pytest.importorskip("fiftyone.utils.data.importers", reason=reason)
    from PIL import Image

    (tmp_path / "data").mkdir()
    for name in IMAGES:
        Image.new("RGB", (4, 4)).save(tmp_path / "data" / name)
    write_labels(table, tmp_path / "labels.json", format="fiftyone")
    for expected in (said(table), AFTER):
        importer = importers.FiftyOneImageClassificationDatasetImporter(str(tmp_path))
        with importer:
            found = {
                Path(file).name: {one.label for one in (label.classifications if label else ())}
                for file, _, label in importer
            }
        assert found == expected
        patch_in_place(tmp_path / "labels.json")
