from __future__ import annotations

import numpy as np
import torch
from torchvision.transforms import v2

from hilltop.inputs.augment import cutout, rand_augment
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


def test_rand_augment_is_that_of_torchvision_and_leaves_the_global_state_alone() -> None:
    image = picture(3, 96, 96)
    pixels, before = torch.from_numpy(np.array(image)), torch.random.get_rng_state()
    seed = int(np.random.default_rng(5).integers(1 << 62))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        expected = v2.RandAugment()(image)
    found = rand_augment(pixels, np.random.default_rng(5))
    assert np.array_equal(found.numpy(), np.asarray(expected))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_rand_augment_draws_two_of_all_operations() -> None:
    image = torch.from_numpy(np.array(picture(3, 32, 32)))
    generator = np.random.default_rng(0)
    results = {rand_augment(image, generator).numpy().tobytes() for _ in range(1000)}
    # Two of 14 operations, nine of them in two directions: far more results than one would give.
    assert len(results) > 150
