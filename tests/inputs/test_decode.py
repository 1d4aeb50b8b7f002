from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from hilltop.errors import DataError
from hilltop.inputs import decode
from hilltop.inputs.decode import read_image
from tests.data.conftest import picture


@pytest.mark.parametrize("progressive", [False, True])
def test_a_jpeg_cut_anywhere_is_noticed(tmp_path: Path, progressive: bool) -> None:
    path = tmp_path / "a.jpg"
    picture(width=100, height=80).save(path, progressive=progressive)
    content = path.read_bytes()
    for length in range(1, len(content), 37):
        path.write_bytes(content[:length])
        with pytest.raises(DataError):
            read_image(path)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp"])
def test_exif_orientation_is_applied(tmp_path: Path, name: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    corner = Image.new("RGB", (64, 32), "black")
    corner.paste((255, 255, 255), (0, 0, 16, 16))
    corner.save(tmp_path / name, exif=exif)
    image = read_image(tmp_path / name).float().mean(0)
    top = orientation in (1, 2, 5, 6)
    left = orientation in (1, 4, 5, 8)
    assert tuple(image.shape) == ((32, 64) if orientation < 5 else (64, 32))
    assert image[4 if top else -5, 4 if left else -5] > 200
    assert image[-5 if top else 4, -5 if left else 4] < 50


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        ("CMYK", "a.jpg"),
        ("L", "a.jpg"),
        ("P", "a.png"),
        ("RGBA", "a.png"),
        ("LA", "a.png"),
        ("P", "a.gif"),
        ("RGB", "a.bmp"),
        ("RGB", "a.tiff"),
    ],
)
def test_every_kind_of_image_becomes_rgb(tmp_path: Path, mode: str, name: str) -> None:
    image = picture().convert(mode)
    image.save(tmp_path / name)
    pixels = read_image(tmp_path / name)
    expected = np.asarray(image.convert("RGB")).transpose(2, 0, 1).astype(float)
    assert pixels.dtype == torch.uint8
    assert np.abs(pixels.numpy() - expected).mean() < 8


@pytest.mark.parametrize("name", ["a.png", "a.tiff"])
def test_sixteen_bits_are_scaled_and_not_cut_off(tmp_path: Path, name: str) -> None:
    grey = np.asarray(picture().convert("L"))
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / name)
    np.testing.assert_array_equal(read_image(tmp_path / name).numpy(), np.stack([grey] * 3))


def test_pixels_without_a_known_range_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.full((4, 4), 0.5, np.float32)).save(tmp_path / "a.tiff")
    with pytest.raises(DataError, match=r"its pixels \(F\) have no known range"):
        read_image(tmp_path / "a.tiff")


def test_more_pixels_than_fit_are_refused_before_they_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a megabyte of PNG becomes three gigabytes; torchvision has no bound, PIL has one."""
    monkeypatch.setattr(decode, "MOST_PIXELS", 2 * 5000)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 5000)
    for name in ("a.png", "a.jpg"):
        picture(width=200, height=100).save(tmp_path / name)
        with pytest.raises(DataError, match=r"a\.(png|jpg): .*20000 pixels. exceeds limit"):
            read_image(tmp_path / name)
    picture(width=50, height=100).save(tmp_path / "small.png")
    assert read_image(tmp_path / "small.png").shape == (3, 100, 50)


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "zero.jpg").symlink_to("/dev/zero")
    for name in ("pipe.jpg", "zero.jpg"):
        with pytest.raises(DataError, match=rf"{name}: .* it is not a regular file"):
            read_image(tmp_path / name)
