from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms as v1
from torchvision.transforms.autoaugment import _apply_op

from hilltop.inputs.augment import OPERATIONS, cutout, rand_augment
from tests.data.conftest import picture


def test_cutout_hides_a_square_of_half_the_side_in_one_colour() -> None:
    generator = np.random.default_rng(0)
    sizes = set()
    for _ in range(200):
        image = torch.full((64, 64, 3), 7, dtype=torch.uint8)
        hidden = (cutout(image, generator) != 7).any(2)
        rows, columns = hidden.any(1).sum().item(), hidden.any(0).sum().item()
        assert hidden.sum() == rows * columns
        assert len(image[hidden].unique(dim=0)) == 1
        assert 16 <= min(rows, columns) <= max(rows, columns) <= 33
        sizes.add((rows, columns))
    assert (33, 33) in sizes, "both ends of the released rectangle"
    assert min(sizes)[0] < 20


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_agree_with_torchvision_on_pil_images(name: str, sign: int) -> None:
    """Magnitudes come from torchvision's own table; at most one grey level of rounding apart."""
    image = picture(3, 96, 96)
    reference = v1.RandAugment()
    magnitudes, signed = reference._augmentation_space(31, (96, 96))[name]
    magnitude = float(magnitudes[9]) if magnitudes.ndim else 0.0
    expected = _torchvision(image, name, sign * magnitude if signed else magnitude)
    operation, ours = OPERATIONS[name]
    found = operation(torch.from_numpy(np.array(image)), sign * ours)
    assert found.dtype == torch.uint8
    assert np.abs(found.numpy().astype(int) - np.asarray(expected)).max() <= 1


def _torchvision(image: Image.Image, name: str, magnitude: float) -> Image.Image:
    nearest = v1.InterpolationMode.NEAREST
    return _apply_op(image, name, magnitude, nearest, None)


def test_auto_contrast_leaves_a_flat_image_as_it_is() -> None:
    image = torch.full((8, 8, 3), 90, dtype=torch.uint8)
    assert torch.equal(OPERATIONS["AutoContrast"][0](image, 0.0), image)


def test_rand_augment_draws_two_of_all_operations() -> None:
    image = torch.from_numpy(np.array(picture(3, 32, 32)))
    generator = np.random.default_rng(0)
    results = {rand_augment(image, generator).numpy().tobytes() for _ in range(1000)}
    # Two of 14 operations, nine of them in two directions: far more results than one would give.
    assert len(results) > 150
