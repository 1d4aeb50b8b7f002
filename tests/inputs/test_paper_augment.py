"""RandAugment of the released code: its operations, how often and how strong, and its pixels."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from hilltop.inputs.augment import PAPER_OPERATIONS, cutout, paper_rand_augment
from hilltop.inputs.transforms import training_pixels
from tests.data.conftest import picture

SIDE = 96
DRAWS = 600


def pixels(seed: int = 3) -> Tensor:
    return torch.from_numpy(np.array(picture(seed, SIDE, SIDE)))


def test_the_operations_and_the_ends_of_their_ranges_are_those_of_the_package() -> None:
    ends = {name: (values[0], values[-1]) for name, (_, values) in PAPER_OPERATIONS.items()}
    nothing = dict.fromkeys(("Invert", "AutoContrast", "Equalize"), (0, 0))
    enhanced = dict.fromkeys(("Sharpness", "Contrast", "Color", "Brightness"), (0.1, 0.9))
    moved = {
        "ShearX": (0.1 / 3, 0.3), "ShearY": (0.1 / 3, 0.3), "Rotate": (10 / 3, 30),
        "TranslateX": (50 / 993, 150 / 331), "TranslateY": (50 / 993, 150 / 331),
    }  # fmt: skip
    others = {"Cutout": (2, 20), "Posterize": (8, 4), "Solarize": (2048 / 9, 0)}
    expected = {**nothing, **enhanced, **moved, **others}
    assert set(ends) == set(expected)
    for name, values in ends.items():
        assert values == pytest.approx(expected[name]), name
    assert {len(values) for _, values in PAPER_OPERATIONS.values()} == {9}


def test_about_three_in_ten_images_stay_as_they_are() -> None:
    image, generator = pixels(), np.random.default_rng(0)
    same = sum(torch.equal(paper_rand_augment(image, generator), image) for _ in range(DRAWS))
    # A quarter skips both; posterising to 8 bits and squares over nothing new add some.
    assert 0.23 < same / DRAWS < 0.35


def test_the_given_image_is_not_changed_and_all_depends_on_the_generator() -> None:
    image, before = pixels(), pixels()
    first, second = np.random.default_rng(7), np.random.default_rng(7)
    for _ in range(60):
        assert torch.equal(paper_rand_augment(image, first), paper_rand_augment(image, second))
    assert torch.equal(image, before)


def test_moving_pixels_uncovers_grey_and_small_squares_have_their_colour() -> None:
    image, generator = Image.new("RGB", (40, 40)), np.random.default_rng(0)
    for name in ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate"):
        operation, magnitudes = PAPER_OPERATIONS[name]
        moved = np.asarray(operation(image, magnitudes[-1], generator))
        assert (moved == 128).all(2).any(), name
    operation, magnitudes = PAPER_OPERATIONS["Cutout"]
    places = [np.asarray(operation(image, magnitudes[-1], generator)) for _ in range(50)]
    sizes = {int((place[..., 0] == 125).sum()) for place in places}
    assert max(sizes) == 400
    assert {tuple(colour) for p in places for colour in p.reshape(-1, 3).tolist()} == {
        (0, 0, 0),
        (125, 122, 113),
    }


def test_cutout_has_both_ends_of_the_released_rectangle() -> None:
    image = torch.zeros((448, 448, 3), dtype=torch.uint8)
    generator = np.random.default_rng(0)
    heights = {int((cutout(image.clone(), generator) > 0).any(2).any(1).sum()) for _ in range(40)}
    assert max(heights) == 225
    assert min(heights) >= 113


def test_training_pixels_take_paper_as_a_mode() -> None:
    image = pixels().permute(2, 0, 1)
    shown = [
        training_pixels(image, 32, augment="paper", seed=0, epoch=0, row=row) for row in range(8)
    ]
    assert len({array.numpy().tobytes() for array in shown}) == 8, "every one has a square"


# Against the package itself, where it is installed.


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package; it was written for a numpy that still had ``np.int``."""
    module = pytest.importorskip(
        "randaugment.randaugment", reason="the package randaugment is not installed"
    )
    monkeypatch.setattr(np, "int", int, raising=False)
    return module


SIGNED = ("Sharpness", "ShearX", "ShearY", "TranslateX", "TranslateY", "Contrast", "Color",
          "Brightness")  # fmt: skip


@pytest.mark.parametrize("level", [1, 4, 9])
@pytest.mark.parametrize("name", [name for name in PAPER_OPERATIONS if name != "Cutout"])
def test_each_operation_agrees_with_the_package(
    package: Any, name: str, level: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation, magnitudes = PAPER_OPERATIONS[name]
    policy = package.SubPolicy(1.0, name, level, 0.0, "Invert", 1)
    found = []
    for sign in (1, -1) if name in SIGNED else (1,):
        monkeypatch.setattr(
            package.random,
            "choice",
            lambda _, sign=sign: sign,
        )
        theirs = np.asarray(policy(picture(3, SIDE, SIDE))).astype(int)
        ours = {
            operation(
                picture(3, SIDE, SIDE), magnitudes[level - 1], np.random.default_rng(seed)
            ).tobytes()
            for seed in range(8)
        }
        apart = [np.abs(np.frombuffer(one, np.uint8).astype(int) - theirs.flatten()).max()
                 for one in ours]  # fmt: skip
        found.append(min(apart))
    assert max(found) <= 1, "at most one grey level of rounding"


def test_the_share_of_unchanged_images_is_that_of_the_package(package: Any) -> None:
    package.random.seed(0)
    image, drawn = picture(3, SIDE, SIDE), package.RandAugment()
    before = np.asarray(image)
    theirs = sum(np.array_equal(np.asarray(drawn(image.copy())), before) for _ in range(DRAWS))
    generator = np.random.default_rng(1)
    ours = sum(torch.equal(paper_rand_augment(pixels(), generator), pixels()) for _ in range(DRAWS))
    assert abs(theirs - ours) / DRAWS < 0.08, "three standard errors of the difference"


def test_pixels_change_as_much_as_in_the_package(package: Any) -> None:
    """The mean change of an image, in bins: the same distribution from both sides."""
    package.random.seed(1)
    np.random.seed(1)  # the package draws from the global state
    image, drawn = picture(5, SIDE, SIDE), package.RandAugment()
    before = np.asarray(image).astype(int)
    generator = np.random.default_rng(2)
    theirs = [np.abs(np.asarray(drawn(image.copy())).astype(int) - before).mean()
              for _ in range(DRAWS)]  # fmt: skip
    ours = [np.abs(paper_rand_augment(pixels(5), generator).numpy().astype(int) - before).mean()
            for _ in range(DRAWS)]  # fmt: skip
    edges = [0.01, 1, 5, 15, 40, 80]
    counts = [Counter(np.digitize(values, edges).tolist()) for values in (theirs, ours)]
    for place in range(len(edges) + 1):
        assert abs(counts[0][place] - counts[1][place]) / DRAWS < 0.08, place
