from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from hilltop.errors import ArgumentError, DataError, HilltopWarning
from hilltop.losses import hill
from hilltop.models import (
    FeatureHead,
    NormalisedInput,
    Scaling,
    build_image_model,
    count_parameters,
)

SMALL = "mobilenetv3_small_050"  # the quickest to build


@pytest.fixture(scope="module")
def trained() -> nn.Module:
    """A backbone for 5 classes whose weights differ from any fresh one."""
    return build_image_model(SMALL, 5, weights="none")


def take_a_step(model: nn.Module, batch: torch.Tensor) -> None:
    """Train one step and check that it reaches from the last layer to the first."""
    weights = list(model.parameters())
    before = [weight.detach().clone() for weight in weights]
    optimiser = torch.optim.SGD(weights, lr=1.0)
    loss = hill(reduction="sum")(model(batch), torch.eye(3)[: len(batch)])
    loss.backward()
    assert torch.isfinite(loss)
    assert all(w.grad is not None and torch.isfinite(w.grad).all() for w in weights)
    optimiser.step()
    assert not torch.equal(weights[0], before[0])
    assert not torch.equal(weights[-1], before[-1])


def test_features_are_standardised_by_the_training_features() -> None:
    features = 5 + 3 * torch.randn(500, 4, generator=torch.Generator().manual_seed(0))
    head = FeatureHead(4, 3, hidden=None)
    head.fit_scale(features)
    layer = head.layers[0]
    assert isinstance(layer, nn.Linear)
    scaled = (features - features.mean(0)) / features.std(0, correction=0)
    torch.testing.assert_close(head(features), layer(scaled))
    assert {"mean", "std"} <= set(head.state_dict())


def test_a_constant_feature_gives_finite_logits() -> None:
    features = torch.randn(50, 3)
    features[:, 1] = 0.1
    features[:, 2] = 0.0
    head = FeatureHead(3, 2, hidden=8)
    head.fit_scale(features)
    assert head.std[1:].tolist() == [1.0, 1.0]
    assert torch.isfinite(head(features)).all()


@pytest.mark.parametrize(("hidden", "expected"), [(None, 4 * 3 + 3), (7, 4 * 7 + 7 + 7 * 3 + 3)])
def test_heads_have_the_expected_number_of_parameters(hidden: int | None, expected: int) -> None:
    head = FeatureHead(4, 3, hidden=hidden)
    assert count_parameters(head) == expected
    take_a_step(head, torch.randn(3, 4))


def test_features_of_another_width_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"X must have shape \(images, 4\), but got \(9, 5\)\."):
        FeatureHead(4, 3, hidden=None).fit_scale(torch.zeros(9, 5))


def test_feature_heads_need_no_timm() -> None:
    script = (
        "import sys; from hilltop.models import FeatureHead;"
        " FeatureHead(2, 2, hidden=3); sys.exit('timm' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("resnet50", 23.5),
        ("resnet101", 42.5),
        ("mobilenetv3_large_100", 4.2),
        ("swin_small_patch4_window7_224", 48.8),
    ],
)
def test_backbones_of_the_paper_take_a_training_step(name: str, millions: float) -> None:
    model = build_image_model(name, 3, weights="none", image_size=64).train()
    assert count_parameters(model) / 1e6 == pytest.approx(millions, abs=0.1)
    batch = torch.rand(3, 3, 64, 64).to(memory_format=torch.channels_last)
    take_a_step(model, batch)


def test_an_unknown_backbone_gets_a_suggestion() -> None:
    with pytest.raises(ArgumentError, match=r"no model 'resnet5O'\. Did you mean 'resnet50'\?"):
        build_image_model("resnet5O", 3, weights="none")


def test_a_size_that_a_backbone_cannot_take_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"cannot be built for images of 100 px .*; use 224\."):
        build_image_model("xcit_nano_12_p16_224", 3, weights="none", image_size=100)


def test_an_unreachable_hub_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(DataError) as caught:
        build_image_model("resnet18", 3, weights="timm")
    message = str(caught.value)
    assert message.startswith("The pretrained weights of 'resnet18' could not be fetched (")
    assert "pass a local .safetensors or .pth file as weights, or use none." in message
    assert "\n" not in message


def test_a_backbone_without_pretrained_weights_is_said() -> None:
    with pytest.raises(DataError, match=r"no pretrained weights for 'resnet200'"):
        build_image_model("resnet200", 3, weights="timm")


@pytest.mark.parametrize("name", ["w.safetensors", "w.pth", "w.bin"])
def test_a_local_file_gives_its_weights(tmp_path: Path, trained: nn.Module, name: str) -> None:
    path = tmp_path / name
    weights = trained.state_dict()
    save_file(weights, path) if path.suffix == ".safetensors" else torch.save(weights, path)
    model = build_image_model(SMALL, 5, weights=str(path))
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())


def test_wrapped_checkpoints_are_unwrapped(tmp_path: Path, trained: nn.Module) -> None:
    weights = {f"module.{key}": value for key, value in trained.state_dict().items()}
    torch.save({"epoch": 3, "state_dict": weights}, tmp_path / "w.pth")
    model = build_image_model(SMALL, 5, weights=str(tmp_path / "w.pth"))
    assert torch.equal(model.state_dict()["conv_stem.weight"], weights["module.conv_stem.weight"])


@pytest.mark.parametrize("has_head", [True, False])
def test_a_classifier_of_another_size_is_dropped_and_said(
    tmp_path: Path, trained: nn.Module, has_head: bool
) -> None:
    path = tmp_path / "w.safetensors"
    weights = trained.state_dict()
    kept = {k: v for k, v in weights.items() if has_head or not k.startswith("classifier.")}
    save_file(kept, path)
    with pytest.warns(HilltopWarning, match=r"classifier \(classifier.bias, classifier.weight\)"):
        model = build_image_model(SMALL, 9, weights=str(path))
    logits = model.eval()(torch.randn(2, 3, 32, 32))
    assert torch.equal(logits, torch.zeros(2, 9))  # it pulls at nothing until it has learnt
    assert torch.equal(model.state_dict()["conv_head.weight"], weights["conv_head.weight"])


def test_weights_that_do_not_fit_are_named(tmp_path: Path, trained: nn.Module) -> None:
    weights = dict(trained.state_dict())
    weights["stem.weight"] = weights.pop("conv_stem.weight")
    weights["bn1.bias"] = torch.zeros(3)
    save_file(weights, tmp_path / "w.safetensors")
    with pytest.raises(DataError) as caught:
        build_image_model(SMALL, 5, weights=str(tmp_path / "w.safetensors"))
    message = str(caught.value)
    assert "1 missing (conv_stem.weight); 1 unknown (stem.weight)" in message
    assert "1 of another shape (bn1.bias has shape (3,) instead of (16,))" in message


def test_code_in_a_pickle_is_not_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return (Path.touch, (tmp_path / "ran",))

    torch.save({"a": Evil()}, tmp_path / "w.pth")
    with pytest.raises(DataError, match=r"nothing else is unpickled"):
        build_image_model(SMALL, 5, weights=str(tmp_path / "w.pth"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["w.safetensors", "w.pth"])
def test_a_broken_file_of_weights_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PK\x03\x04 not weights")
    with pytest.raises(DataError, match=rf"{name}: "):
        build_image_model(SMALL, 5, weights=str(tmp_path / name))


def test_a_missing_file_of_weights_is_named() -> None:
    with pytest.raises(DataError, match=r"'none', 'timm' or a file, but there is no file 'tim'"):
        build_image_model(SMALL, 5, weights="tim")


def test_normalised_input_gives_the_backbone_what_its_weights_expect() -> None:
    model = build_image_model("resnet10t", 3, weights="none", normalise=True)
    assert isinstance(model, NormalisedInput)
    pixels = torch.rand(2, 3, 32, 32)
    mean = torch.tensor([0.485, 0.456, 0.406]).reshape(1, 3, 1, 1)  # timm's values for this model
    std = torch.tensor([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1)
    model.eval()
    torch.testing.assert_close(model(pixels), model.backbone((pixels - mean) / std))
    assert model.get_classifier().out_features == 3


def test_many_features_are_scaled_to_the_same_length_and_few_are_not() -> None:
    many, few = FeatureHead(64, 1, hidden=None), FeatureHead(2, 1, hidden=None)
    for head in (many, few):
        nn.init.ones_(head.layers[-1].weight)
        nn.init.zeros_(head.layers[-1].bias)
    row = torch.rand(1, 64) + 1
    torch.testing.assert_close(many(row), many(5 * row))
    assert many(row).item() == pytest.approx(8 * row.sum().item() / row.norm().item(), rel=1e-5)
    spread = torch.randn(500, 64) * torch.rand(500, 1)
    many.fit_scale(spread)
    assert many.scaled(spread).mean(dim=0).abs().max() < 1e-5
    assert many.scaled(spread).square().mean().item() == pytest.approx(1, abs=1e-5)
    assert few(torch.tensor([[10.0, 0.0]])).item() == pytest.approx(10)
    assert torch.isfinite(many(torch.zeros(1, 64))).all()


def test_a_linear_head_starts_without_noise() -> None:
    assert not FeatureHead(4, 3, hidden=None).layers[-1].weight.any()


def test_mostly_empty_columns_keep_their_zeros_and_stay_small_where_they_are_rare() -> None:
    generator = torch.Generator().manual_seed(0)
    words = (torch.rand(400, 100, generator=generator) < torch.linspace(0.01, 0.4, 100)).float()
    head = FeatureHead(100, 1, hidden=None)
    head.fit_scale(7 * words)
    assert not head.mean.any()
    torch.testing.assert_close(head.std, torch.full((100,), 7.0))
    spread = head.scaled(7 * words).std(dim=0)
    assert spread[:10].max() < 0.5 * spread[-10:].min(), "a rare word is not blown up"


def test_the_size_of_features_does_not_matter_and_constant_ones_carry_nothing() -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(300, 5, generator=generator, dtype=torch.float64)
    sized = drawn * torch.tensor([1e-6, 1.0, 1e3, 1e6, 1.0]).double()
    sized[:, 4] = 1e6
    head = FeatureHead(5, 1, hidden=None).double()
    head.fit_scale(sized)
    scaled = head.scaled(sized)
    assert scaled[:, 4].abs().max() < 1e-6
    correlated = torch.corrcoef(torch.cat([scaled[:, :4], drawn[:, :4]], dim=1).T)
    torch.testing.assert_close(correlated[:4, 4:].diagonal(), torch.ones(4).double())
    assert scaled[:, :4].std(dim=0).max() / scaled[:, :4].std(dim=0).min() < 1.01


def test_features_that_differ_beyond_single_precision_are_told_apart() -> None:
    seconds = 1.7e9 + torch.linspace(0.0, 10.0, 50, dtype=torch.float64).unsqueeze(1)
    head = FeatureHead(1, 1, hidden=None)
    head.fit_scale(seconds)
    scaled = head.scaled(seconds)
    assert scaled.dtype == torch.float32
    assert torch.allclose(scaled[:, 0], torch.linspace(-1.7, 1.7, 50), atol=0.05)
    head.fit_scale(torch.full((50, 1), 0.1, dtype=torch.float64))  # constant but for rounding
    assert float(head.std) == 1.0


def test_a_scaling_is_kept_with_the_weights() -> None:
    features = torch.randn(40, 80, generator=torch.Generator().manual_seed(0)).clamp(min=0)
    head = FeatureHead(80, 2, hidden=None)
    head.fit_scale(features, scaling=Scaling(same_length=False, keep_zeros=False))
    nn.init.normal_(head.last.weight)
    other = FeatureHead(80, 2, hidden=None)
    other.load_state_dict(head.state_dict())
    assert not other.same_length
    assert torch.equal(other(features), head(features))
    assert torch.allclose(head.scaled(features).mean(dim=0), torch.zeros(80), atol=1e-5)


def test_weights_of_an_earlier_version_keep_rows_of_one_length() -> None:
    head, other = FeatureHead(80, 2, hidden=None), FeatureHead(80, 2, hidden=None)
    state = head.state_dict()
    del state["length_power"]
    other.load_state_dict(state)
    assert other.same_length
