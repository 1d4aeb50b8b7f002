"""The paper's data sets as they come: what is found, read and named as missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import LabelTable, State, read_labels
from hilltop.errors import DataError
from hilltop.studies import reproduce
from hilltop.studies.reproduce import DATA_SETS, Source, find_data, official_sources
from hilltop.training import TrainConfig
from tests.studies.reproduce import official_fakes as fakes


def source_of(data: str, root: Path) -> Source:
    return official_sources([[data]], root, root.parent / "out", TrainConfig())[data]


def tables(source: Source) -> tuple[LabelTable, LabelTable]:
    assert source.base.val_labels is not None
    return read_labels(source.base.labels), read_labels(source.base.val_labels)


def labels(table: LabelTable) -> dict[str, tuple[str, ...]]:
    return {name: table.labels_of(row) for row, name in enumerate(table.images.to_pylist())}


@pytest.mark.parametrize("inside", ["", "coco"])
def test_coco_is_read_without_the_images_that_have_no_annotation(
    tmp_path: Path, inside: str
) -> None:
    fakes.coco(tmp_path / "data" / inside)
    source = source_of("coco", tmp_path / "data")
    train, val = tables(source)
    assert (len(train), len(val)) == (6, 4)
    assert labels(train)["train2014/COCO_train2014_000000000011.jpg"] == ("person", "car", "dog")
    assert labels(val)["val2014/COCO_val2014_000000000009.jpg"] == ("person", "dog")
    assert train.unlisted == State.ABSENT
    assert source.base.images == tmp_path / "data" / inside
    assert "1 image of training and 1 image of test" in source.about


def test_released_lists_get_the_names_of_coco_and_give_the_levels(tmp_path: Path) -> None:
    fakes.coco(tmp_path / "data", train_json=False, lists=True)
    source = source_of("coco", tmp_path / "data")
    train, _ = tables(source)
    assert train.classes == ("person", "car", "dog")
    assert labels(train)["train2014/COCO_train2014_000000000009.jpg"] == ("person", "car")
    assert set(source.reduced) == {"0.75", "0.4", "single"}
    left = source.labels_at(source.level("0.4"), seed=3)
    assert left.count(State.PRESENT) == 6
    assert left.unlisted == State.UNKNOWN
    assert labels(left)["train2014/COCO_train2014_000000000011.jpg"] == ("person",)


def test_a_number_that_coco_has_no_class_for_is_told(tmp_path: Path) -> None:
    fakes.coco(tmp_path / "data", lists=True)
    path = tmp_path / "data" / "dataset" / "coco_train_full.txt"
    path.write_text(path.read_text() + "\nx.jpg,3")
    with pytest.raises(DataError, match=r"coco_train_full.txt, line 7: class number 3 is too high"):
        source_of("coco", tmp_path / "data")


@pytest.mark.parametrize("content", ['{"images": [{"id"', '{"images": []}', "[]", "\udcff"])
def test_a_broken_file_that_names_the_classes_is_told(tmp_path: Path, content: str) -> None:
    fakes.coco(tmp_path / "data", train_json=False, lists=True)
    path = tmp_path / "data" / "annotations" / "instances_val2014.json"
    path.write_text(content, errors="surrogateescape")
    with pytest.raises(DataError, match="instances_val2014"):
        source_of("coco", tmp_path / "data")


def test_difficult_objects_of_voc_are_neither_labels_nor_judged(tmp_path: Path) -> None:
    fakes.voc(tmp_path / "data")
    train, val = tables(source_of("voc", tmp_path / "data"))
    assert (len(train), len(val)) == (5, 3)
    row = train.images.to_pylist().index("2008_000007")
    assert train.labels_of(row) == ("cat",)
    assert train.labels_of(row, State.UNKNOWN) == ("person",)
    assert train.count(State.PRESENT) == 7


def test_backslashes_of_nus_lead_into_its_folders(tmp_path: Path) -> None:
    fakes.nus(tmp_path / "data")
    source = source_of("nus", tmp_path / "data")
    train, val = tables(source)
    assert train.images.to_pylist()[0] == "actor/0001_2124494179.jpg"
    assert labels(train)["zebra/0003_2038.jpg"] == ("animal", "sky")
    assert (len(train), len(val)) == (5, 3), "images without a label take no part"
    assert source.base.images == tmp_path / "data" / "NUS-WIDE" / "Flickr"


def test_released_lists_of_nus_have_81_numbered_classes(tmp_path: Path) -> None:
    fakes.released_nus(tmp_path / "data")
    source = source_of("nus", tmp_path / "data")
    train, val = tables(source)
    assert len(train.classes) == len(val.classes) == 81
    assert labels(val) == {"123940_115_m.jpg": ("42", "60", "79"), "7_8_m.jpg": ("1", "8")}
    assert source.labels_at(source.level("single"), seed=0).count(State.PRESENT) == 3


def test_open_images_keeps_what_could_be_had_and_classes_that_both_parts_have(
    tmp_path: Path,
) -> None:
    fakes.openimages(tmp_path / "data")
    source = source_of("openimages", tmp_path / "data")
    train, val = tables(source)
    assert train.classes == val.classes == ("Person", "Car", "Dog")
    assert "train/gone" not in train.images.to_pylist()
    assert labels(val)["validation/111b"] == ("Car", "Dog")
    assert "Not there and left out: 1 image of training and 1 image of test." in source.about


@pytest.mark.parametrize("data", DATA_SETS)
def test_everything_that_is_missing_is_named_at_once(tmp_path: Path, data: str) -> None:
    search = find_data(data, tmp_path)
    assert search.layout is None
    assert not search.begun
    assert len(search.missing) >= 3
    for sentence in search.missing:
        assert "there is no f" in sentence
        assert "http" not in sentence
    with pytest.raises(DataError) as caught:
        source_of(data, tmp_path)
    assert all(sentence in str(caught.value) for sentence in search.missing)


def test_missing_parts_of_several_data_sets_stand_in_one_message(tmp_path: Path) -> None:
    fakes.voc(tmp_path)
    (tmp_path / "VOCdevkit" / "VOC2012" / "ImageSets" / "Main" / "val.txt").unlink()
    fakes.coco(tmp_path / "coco", train_json=False)
    with pytest.raises(DataError) as caught:
        official_sources([["coco"], ["voc", "nus"]], tmp_path, tmp_path / "out", TrainConfig())
    message = str(caught.value)
    assert "val.txt': part of the training and validation archive of PASCAL VOC 2012" in message
    assert "instances_train2014.json" in message
    assert "coco_train_full.txt, one of the label lists" in message
    assert "NUS-WIDE" in message, "nothing of what the table needs is there"


def test_missing_images_are_counted_before_anything_is_trained(tmp_path: Path) -> None:
    fakes.coco(tmp_path / "data")
    for path in (tmp_path / "data" / "train2014").glob("*10.jpg"):
        path.unlink()
    with pytest.raises(DataError, match=r"1 of 6 images is not there.*000000000010\.jpg"):
        source_of("coco", tmp_path / "data")


def test_one_of_two_data_sets_is_enough(tmp_path: Path) -> None:
    fakes.voc(tmp_path / "data")
    found = official_sources([["voc", "nus"]], tmp_path / "data", tmp_path / "out", TrainConfig())
    assert list(found) == ["voc"]


def test_lists_may_lie_beside_the_data_in_a_clone_of_the_released_code(tmp_path: Path) -> None:
    root = tmp_path / "data"
    fakes.coco(root / "coco", train_json=False, lists=True)
    fakes.released_nus(root / "nus")
    (root / "released" / "dataset").mkdir(parents=True)
    for path in [*root.glob("coco/dataset/*"), *root.glob("nus/dataset/*")]:
        path.rename(root / "released" / "dataset" / path.name)
    coco, nus = (source_of(data, root) for data in ("coco", "nus"))
    assert (coco.base.images, nus.base.images) == (root / "coco", root / "nus" / "images")
    assert set(coco.reduced) == {"0.75", "0.4", "single"}
    assert set(nus.reduced) == {"single"}


def test_lists_of_nus_without_its_images_do_not_hold_up_voc(tmp_path: Path) -> None:
    root = tmp_path / "data"
    fakes.voc(root)
    fakes.released_nus(root)
    (root / "images").rename(tmp_path / "elsewhere")
    found = official_sources([["voc", "nus"]], root, tmp_path / "out", TrainConfig())
    assert list(found) == ["voc"]
    with pytest.raises(DataError, match="images': the images that the released lists name"):
        official_sources([["nus"]], root, tmp_path / "out", TrainConfig())


def test_labels_are_read_again_when_their_file_changes(tmp_path: Path) -> None:
    fakes.coco(tmp_path / "data", lists=True)
    source_of("coco", tmp_path / "data")
    path = tmp_path / "data" / "dataset" / "coco_train_full.txt"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]))
    assert len(tables(source_of("coco", tmp_path / "data"))[0]) == 5


def test_labels_that_a_plan_left_do_not_stand_for_the_data_set(tmp_path: Path) -> None:
    fakes.coco(tmp_path / "data")
    source_of("coco", tmp_path / "data")
    (tmp_path / "data").rename(tmp_path / "gone")
    (tmp_path / "data").mkdir()
    with pytest.raises(DataError, match="COCO: there is no folder"):
        source_of("coco", tmp_path / "data")
    (tmp_path / "out" / "coco" / "runs").mkdir()
    assert source_of("coco", tmp_path / "data").only_read


def test_the_old_name_of_dataset_files_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="DatasetFiles"):
        assert reproduce.Layout is reproduce.DatasetFiles
