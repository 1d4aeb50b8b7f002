"""Models of many kinds, cut below a block: the same logits, and clear words where it cannot be."""

from __future__ import annotations

import copy

import pytest
import torch

from hilltop.errors import ArgumentError
from hilltop.models import block_names, build_image_model, cut_below, outputs_below

CUTS = [
    ("test_resnet", 32, "layer3"),
    ("test_resnet", 32, "fc"),
    ("test_efficientnet", 32, "blocks.4"),
    ("mobilenetv3_small_050", 64, "blocks.3.1"),
    ("test_vit", 64, "blocks.3"),
    ("test_convnext", 64, "stages.2"),
    ("swin_tiny_patch4_window7_224", 224, "layers.3"),
]


@pytest.mark.parametrize(("name", "size", "block"), CUTS)
def test_a_cut_model_gives_the_logits_of_the_whole_one(name: str, size: int, block: str) -> None:
    model = build_image_model(name, 5, weights="none", image_size=size, normalise=True).eval()
    pixels = torch.rand(3, 3, size, size)
    with torch.no_grad():
        expected, given = model(pixels), outputs_below(model, block, pixels)
    state = {key: value.clone() for key, value in model.state_dict().items()}
    assert block in block_names(model, size)
    cut_below(model, block, size)
    copied = copy.deepcopy(model)
    with torch.no_grad():
        torch.testing.assert_close(model(given), expected)
        torch.testing.assert_close(copied(given), expected)
    assert list(model.state_dict()) == list(state)
    assert 0 < sum(parameter.requires_grad for parameter in model.parameters()) < len(state)


def test_a_copy_goes_its_own_way() -> None:
    """The moving average is a copy: what it is given must not go through the model."""
    model = build_image_model("test_resnet", 5, weights="none", silent=False).eval()
    given = outputs_below(model, "layer3", torch.rand(2, 3, 32, 32))
    cut_below(model, "layer3", 32)
    copied = copy.deepcopy(model)
    before = copied(given)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    torch.testing.assert_close(copied(given), before)
    assert not torch.equal(model(given), before)


def test_a_block_inside_a_branch_is_refused() -> None:
    model = build_image_model("test_resnet", 5, weights="none", silent=False)
    with pytest.raises(ArgumentError, match=r"cannot be trained from 'layer4.0.conv2', which is"):
        cut_below(model, "layer4.0.conv2", 32)
