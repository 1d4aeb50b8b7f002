from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from PIL import Image
from torchvision import transforms as v1
from torchvision.transforms.v2 import functional

from hilltop.errors import ArgumentError, DataError
from hilltop.inputs.image_files import list_images
from hilltop.inputs.images import ImageInputs
from tests.data.conftest import SHARED, picture


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(7):
        picture(number).save(tmp_path / f"{number}.png")
    return tmp_path


def inputs_of(folder: Path, ids: list[str] | None = None, **options: object) -> ImageInputs:
    settings: dict[str, object] = {
        "size": 32,
        "augment": "strong",
        "seed": 0,
        "workers": 0,
        "skip_broken": False,
        **options,
    }
    names = ids if ids is not None else [f"{number}.png" for number in range(7)]
    return ImageInputs(folder, pa.array(names, pa.string()), **settings)  # type: ignore[arg-type]


def by_row(inputs: ImageInputs, plan: list[list[int]], epoch: int | None) -> dict[int, np.ndarray]:
    batches = list(inputs.loader(plan, epoch))
    return {
        int(row): image.numpy()
        for rows, batch in batches
        for row, image in zip(rows, batch, strict=True)
    }


def test_evaluation_squashes_the_whole_image_and_scales_to_one(folder: Path) -> None:
    ((rows, batch),) = inputs_of(folder).loader([[2, 0]], None)
    expected = v1.ToTensor()(v1.Resize((32, 32))(picture(2)))
    assert rows.tolist() == [2, 0]
    assert batch.shape == (2, 3, 32, 32)
    assert batch.dtype == torch.float32
    torch.testing.assert_close(batch[0], expected, atol=1.01 / 255, rtol=0)
    assert batch.is_contiguous(memory_format=torch.channels_last)


def test_white_is_exactly_one_and_black_zero(tmp_path: Path) -> None:
    Image.new("RGB", (9, 5), "white").save(tmp_path / "w.png")
    Image.new("RGB", (9, 5), "black").save(tmp_path / "b.png")
    ((_, batch),) = inputs_of(tmp_path, ["w", "b"]).loader([[0, 1]], None)
    assert batch[0].unique().tolist() == [1.0]
    assert batch[1].unique().tolist() == [0.0]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_come_in_the_order_of_the_plan(folder: Path, workers: int) -> None:
    plan = [[3, 1], [0], [6, 5, 4], [2]]
    batches = list(inputs_of(folder, workers=workers).loader(plan, 0))
    assert [rows.tolist() for rows, _ in batches] == plan
    assert all(rows.dtype == np.int64 for rows, _ in batches)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be taken away here")
def test_one_core_is_not_asked_for_more_workers(folder: Path) -> None:
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:  # torch warns of more workers than cores, and a warning is an error here
        assert len(list(inputs_of(folder, workers=2).loader([[0], [1], [2]], None))) == 3
    finally:
        os.sched_setaffinity(0, cores)


def test_pixels_depend_on_seed_epoch_and_row_only(folder: Path) -> None:
    one = by_row(inputs_of(folder), [[0, 1, 2], [3, 4, 5, 6]], 4)
    other = by_row(inputs_of(folder, workers=2), [[6, 3], [5, 4], [0, 2], [1]], 4)
    assert one.keys() == other.keys()
    for row, image in one.items():
        np.testing.assert_array_equal(image, other[row])


@pytest.mark.parametrize("change", ["seed", "epoch"])
def test_another_seed_or_epoch_gives_other_pixels(folder: Path, change: str) -> None:
    plan = [list(range(7))]
    one = by_row(inputs_of(folder, seed=1), plan, 0)
    other = by_row(
        inputs_of(folder, seed=2 if change == "seed" else 1), plan, int(change != "seed")
    )
    assert all(not np.array_equal(one[row], other[row]) for row in one)


def test_the_same_image_in_two_rows_is_augmented_differently(folder: Path) -> None:
    Image.open(folder / "0.png").save(folder / "again.png")
    images = by_row(inputs_of(folder, ["0.png", "again.png"]), [[0, 1]], 0)
    assert not np.array_equal(images[0], images[1])


def test_without_augmentation_training_sees_evaluation_pixels(folder: Path) -> None:
    inputs = inputs_of(folder, augment="none")
    np.testing.assert_array_equal(by_row(inputs, [[1]], 3)[1], by_row(inputs, [[1]], None)[1])


@pytest.mark.parametrize("workers", [0, 1])
def test_reading_leaves_global_random_state_alone(folder: Path, workers: int) -> None:
    torch_before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()
    list(inputs_of(folder, workers=workers).loader([[0, 1], [2]], 0))
    assert torch.equal(torch.get_rng_state(), torch_before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)


def test_ids_find_files_with_and_without_ending_and_in_subfolders(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for name in ("a.JPG", "b.c.jpeg", "deep/er/d.webp", "e.bmp", "f"):
        picture().save(tmp_path / name, format="PNG")
    ids = ["a", "a.JPG", "b.c", "deep/er/d", "e.bmp", "f"]
    ((rows, _),) = inputs_of(tmp_path, ids).loader([list(range(6))], None)
    assert rows.tolist() == list(range(6))


def test_an_exact_name_beats_one_with_an_ending(tmp_path: Path) -> None:
    Image.new("RGB", (4, 4), "white").save(tmp_path / "a", format="PNG")
    Image.new("RGB", (4, 4), "black").save(tmp_path / "a.png")
    assert by_row(inputs_of(tmp_path, ["a"]), [[0]], None)[0].min() == 1.0


def test_two_files_for_one_id_are_an_error_that_names_both(tmp_path: Path) -> None:
    for name in ("a.png", "a.jpg"):
        picture().save(tmp_path / name)
    with pytest.raises(DataError, match=r"'a' fits 'a.jpg' and 'a.png'; give ids with"):
        inputs_of(tmp_path, ["a"])


@pytest.mark.parametrize("name", ["../secret.png", "/etc/passwd", "a/../../secret.png"])
@pytest.mark.parametrize("skip_broken", [False, True])
def test_ids_cannot_leave_the_folder(folder: Path, name: str, skip_broken: bool) -> None:
    picture().save(folder.parent / "secret.png")
    with pytest.raises(DataError, match=r"leads out of the folder"):
        inputs_of(folder, ["0.png", name], skip_broken=skip_broken)


def test_all_missing_files_are_found_first_and_twenty_named(folder: Path) -> None:
    ids = ["0.png", *(f"no{number:02}.jpg" for number in range(23))]
    with pytest.raises(DataError) as caught:
        inputs_of(folder, ids)
    message = str(caught.value)
    assert message.startswith(f"{folder}: 23 of 24 images are not there: 'no00.jpg', ")
    assert "'no19.jpg' and 3 more; a file must be named like the id" in message
    assert "no20" not in message


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: there is no such folder of images\."):
        inputs_of(tmp_path / "nowhere", ["a"])


def test_skip_broken_records_missing_files_but_not_a_wrong_folder(folder: Path) -> None:
    inputs = inputs_of(folder, ["0.png", "gone"], skip_broken=True)
    ((rows, batch),) = inputs.loader([[0, 1]], None)
    assert rows.tolist() == [0]
    assert len(batch) == 1
    assert inputs.broken == [("gone", f"{folder / 'gone'}: there is no such file.")]
    with pytest.raises(DataError, match=r"1 of 1 image is not there"):
        inputs_of(folder, ["gone"], skip_broken=True)


def spoil(path: Path, kind: str) -> None:
    content = io.BytesIO()
    picture(width=200, height=200).save(content, format="JPEG" if path.suffix == ".jpg" else "PNG")
    spoiled = {
        "cut": content.getvalue()[: len(content.getvalue()) // 2],
        "empty": b"",
        "text": b"404 not found",
    }
    path.write_bytes(spoiled[kind])


@pytest.mark.parametrize("name", ["bad.jpg", "bad.png"])
@pytest.mark.parametrize("kind", ["cut", "empty", "text"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_image_stops_with_its_path(
    folder: Path, name: str, kind: str, workers: int
) -> None:
    spoil(folder / name, kind)
    with pytest.raises(DataError) as caught:
        list(inputs_of(folder, ["0.png", name], workers=workers).loader([[0, 1], [0]], 0))
    message = str(caught.value)
    assert message.startswith(f"{folder / name}: ")
    assert message.endswith("(--skip-broken).")
    assert "\n" not in message


@pytest.mark.parametrize("workers", [0, 2])
def test_broken_images_are_left_out_and_listed_once(folder: Path, workers: int) -> None:
    spoil(folder / "z.jpg", "cut")
    spoil(folder / "y.png", "text")
    inputs = inputs_of(
        folder, ["0.png", "z.jpg", "1.png", "y.png"], workers=workers, skip_broken=True
    )
    for epoch in (0, 1):
        batches = list(inputs.loader([[0, 1], [3, 2], [1, 3]], epoch))
        assert [rows.tolist() for rows, _ in batches] == [[0], [2], []]
        assert [len(batch) for _, batch in batches] == [1, 1, 0]
    assert batches[2][1].shape == (0, 3, 32, 32)
    assert [name for name, _ in inputs.broken] == ["y.png", "z.jpg"]
    assert "truncated" in inputs.broken[1][1]


@pytest.mark.parametrize(("name", "value"), [("size", 0), ("workers", -1), ("seed", -1)])
def test_values_out_of_range_are_named(folder: Path, name: str, value: int) -> None:
    with pytest.raises(ArgumentError, match=f"{name} must be at least"):
        inputs_of(folder, **{name: value})


@pytest.mark.slow
def test_real_photographs_are_read_like_pil_reads_them(tmp_path: Path) -> None:
    archive = SHARED / "coco5k_images.tar"
    if not archive.exists():
        pytest.skip(f"the real images are not there: {archive}")
    with tarfile.open(archive) as content:
        members = [member for member in content if member.name.endswith(".jpg")][:100]
        content.extractall(tmp_path, members, filter="data")
    ids = [member.name.removesuffix(".jpg") for member in members]
    images = by_row(inputs_of(tmp_path, ids, size=448, workers=2), [list(range(100))], None)
    for row, member in enumerate(members):
        opened = Image.open(tmp_path / member.name).convert("RGB")
        expected = functional.to_dtype(
            functional.pil_to_tensor(v1.Resize((448, 448))(opened)), torch.float32, scale=True
        )
        assert np.abs(images[row] - expected.numpy()).max() <= 2.01 / 255


def test_a_file_name_that_is_no_text_is_said(folder: Path) -> None:
    (folder / "below").mkdir()
    picture(1).save(folder / "below" / "a.png")
    os.rename(folder / "below", os.fsencode(folder) + b"/\xff")
    said = r"the name of the file b'\\xff/a\.png' is not UTF-8\. Rename it\."
    with pytest.raises(DataError, match=said):
        list_images(folder)
    with pytest.raises(DataError, match=said):
        inputs_of(folder, ["a.png"])
