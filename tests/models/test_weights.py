"""Files of weights: found in packages, and matched by order where names differ."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import torch
from torch import Tensor

from hilltop.errors import DataError, HilltopWarning
from hilltop.models.weights import find_weights, renamed_in_order

WANTED = {
    "stem.weight": torch.zeros(4, 3, 3, 3),
    "bn.weight": torch.zeros(4),
    "bn.num_batches_tracked": torch.zeros(()),
    "head.weight": torch.zeros(5, 4),
    "head.bias": torch.zeros(5),
}
HEAD = {"head.weight", "head.bias"}


def saved(**changes: Tensor) -> dict[str, Tensor]:
    """The same network under other names, with a classifier of 1,000 classes."""
    names = ("_conv.weight", "_bn0.weight", "_fc.weight", "_fc.bias")
    shapes = ((4, 3, 3, 3), (4,), (1000, 4), (1000,))
    made = {name: torch.randn(shape) for name, shape in zip(names, shapes, strict=True)}
    return made | changes


def test_weights_under_other_names_are_matched_by_order_and_shape() -> None:
    given = saved()
    found = renamed_in_order(given, WANTED, HEAD)
    assert torch.equal(found["stem.weight"], given["_conv.weight"])
    assert torch.equal(found["bn.weight"], given["_bn0.weight"])
    assert set(found) == set(WANTED) - HEAD


@pytest.mark.parametrize(
    "given",
    [
        saved(**{"_bn0.weight": torch.zeros(5)}),
        {"_conv.weight": torch.zeros(4, 3, 3, 3)},
        saved(**{"_more.weight": torch.zeros(4, 4, 3, 3)}),
        {"stem.weight": torch.zeros(4, 3, 3, 3), "other": torch.zeros(4)},
    ],
)
def test_what_does_not_fit_in_order_is_left_as_it_is(given: dict[str, Tensor]) -> None:
    assert renamed_in_order(given, WANTED, HEAD) is given


def test_a_backbone_takes_weights_that_were_saved_under_other_names(tmp_path: Path) -> None:
    timm = pytest.importorskip("timm")
    from hilltop.models import build_image_model

    torch.manual_seed(0)
    other = timm.create_model("test_resnet", num_classes=7)
    for parameter in other.parameters():
        torch.nn.init.normal_(parameter)
    renamed = {f"net_{key}": value for key, value in other.state_dict().items()}
    torch.save(renamed, tmp_path / "same.pth")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HilltopWarning)
        model = build_image_model("test_resnet", 3, weights=str(tmp_path / "same.pth"))
    head = {key for key in other.state_dict() if key.startswith("fc.")}
    assert len(head) == 2
    for key, value in model.state_dict().items():
        if key not in head:
            assert torch.equal(value, other.state_dict()[key]), key


def test_weights_are_found_in_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "some_weights_package"
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "models" / "net.pth").write_bytes(b"")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_weights("some_weights_package") == package / "models" / "net.pth"
    (package / "models" / "other.pth").write_bytes(b"")
    with pytest.raises(DataError, match="holds 2 files of weights"):
        find_weights("some_weights_package")
    assert find_weights("no_such_package_anywhere") == Path("no_such_package_anywhere")
