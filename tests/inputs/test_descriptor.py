"""The fixed description of pictures: what it ignores and what it does not."""

from __future__ import annotations

import pytest
import torch

from hilltop.errors import ArgumentError
from hilltop.inputs.descriptor import describe, patch_filters


@pytest.fixture(scope="module")
def filters() -> torch.Tensor:
    pictures = torch.rand(4, 3, 20, 20, generator=torch.Generator().manual_seed(1))
    return patch_filters(pictures, count=6, side=5, seed=0)


def picture(top: int, left: int, *, seed: int = 2, light: float = 0.0) -> torch.Tensor:
    """A coloured spot on an even ground."""
    spot = 0.5 * torch.rand(6, 6, generator=torch.Generator().manual_seed(seed))
    canvas = torch.full((1, 3, 24, 24), 0.2)
    canvas[:, :, top : top + 6, left : left + 6] = spot
    return canvas + light


def test_a_description_does_not_depend_on_where_things_are(filters: torch.Tensor) -> None:
    one, other = describe(picture(6, 7), filters), describe(picture(9, 11), filters)
    assert one.shape == (1, 36)
    torch.testing.assert_close(one, other)


def test_a_description_does_not_depend_on_brightness(filters: torch.Tensor) -> None:
    torch.testing.assert_close(
        describe(picture(6, 7), filters),
        describe(picture(6, 7, light=0.3), filters),
        atol=1e-5,
        rtol=1e-4,
    )


def test_other_things_have_other_descriptions(filters: torch.Tensor) -> None:
    one, other = describe(picture(6, 7), filters), describe(picture(6, 7, seed=3), filters)
    assert (one - other).abs().max() > 0.1


def test_an_even_picture_fires_nothing(filters: torch.Tensor) -> None:
    assert describe(torch.full((1, 3, 24, 24), 0.7), filters).abs().max() < 1e-4


def test_filters_depend_on_nothing_but_pictures_and_seed() -> None:
    pictures = torch.rand(4, 3, 20, 20)
    one, same, other = (patch_filters(pictures, count=6, side=5, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_more_filters_than_patches_is_an_error() -> None:
    with pytest.raises(ArgumentError, match="There are 16 patches, but count is 17"):
        patch_filters(torch.rand(1, 3, 14, 14), count=17, side=5, seed=0)
