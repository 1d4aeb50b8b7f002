from __future__ import annotations

import numpy as np
import pytest
import torch

from hilltop.inputs.transforms import AUGMENTATIONS, evaluation_pixels, training_pixels
from tests.data.conftest import picture


def pixels_of(row: int, augment: str) -> np.ndarray:
    image = torch.from_numpy(np.array(picture(0))).permute(2, 0, 1)
    return training_pixels(image, 28, augment=augment, seed=0, epoch=0, row=row).numpy()


def test_light_crops_the_squashed_picture_and_mirrors_half_of_them() -> None:
    image = torch.from_numpy(np.array(picture(0))).permute(2, 0, 1)
    whole = evaluation_pixels(image, 32).numpy()
    places = {
        whole[top : top + 28, left : left + 28][:, ::step].tobytes(): (top, left, step)
        for top in range(5)
        for left in range(5)
        for step in (1, -1)
    }
    found = [places[pixels_of(row, "light").tobytes()] for row in range(400)]
    assert set(found) == set(places.values())
    assert 150 < sum(step == 1 for _, _, step in found) < 250


@pytest.mark.parametrize("augment", AUGMENTATIONS)
def test_pixels_have_the_size_of_the_model_and_lie_in_order(augment: str) -> None:
    pixels = pixels_of(3, augment)
    assert pixels.shape == (28, 28, 3)
    assert pixels.flags["C_CONTIGUOUS"]
