"""Features by ONNX Runtime are those of torch, or torch computes them and a sentence says why."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from hilltop.cli.main import main
from hilltop.inputs import onnx_backbone as ours
from hilltop.inputs.features import read_features
from tests.data.conftest import picture


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "hilltop" / "onnx"


@pytest.fixture(scope="module")
def network() -> nn.Module:
    torch.manual_seed(0)
    return timm.create_model("resnet10t", num_classes=0).eval()


def test_the_command_has_the_same_features_from_either(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, network: nn.Module
) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(5):
        picture(number).save(folder / f"{number}.png")
    save_file(timm.create_model("resnet10t").state_dict(), tmp_path / "w.safetensors")
    words = ["features", str(folder), "--backbone", "resnet10t", "--image-size", "32"]
    words += ["--weights", str(tmp_path / "w.safetensors"), "--workers", "0", "--out"]
    assert main([*words, str(tmp_path / "torch.npz")]) == 0
    assert not cache.exists(), "few images are not worth an export"
    monkeypatch.setattr("hilltop.inputs.backbone.LEAST_IMAGES", 1)
    assert main([*words, str(tmp_path / "onnx.npz")]) == 0
    assert len(list(cache.iterdir())) == 1
    one, other = (read_features(tmp_path / f"{name}.npz").values for name in ("torch", "onnx"))
    np.testing.assert_allclose(one, other, atol=1e-4 * np.abs(one).max())


def test_a_network_is_exported_once_and_other_weights_anew(
    network: nn.Module, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    pixels = torch.rand(3, 3, 32, 32)
    with torch.inference_mode():
        run = ours.onnx_backbone(lambda: network, "", 32, said.append)
        np.testing.assert_allclose(run(pixels), network(pixels), atol=1e-4)
        assert run(pixels[:1]).shape == (1, 512)
        (kept,) = cache.iterdir()
        assert ours._digest("", 32, network) == ours._digest("", 32, network)
        other = timm.create_model("resnet10t", num_classes=0).eval()
        assert ours._digest("", 32, network) != ours._digest("", 32, other)
        assert ours._digest("one", 32, None) != ours._digest("other", 32, None)
        monkeypatch.setattr(ours, "_export", None)  # would raise
        assert ours.onnx_backbone(lambda: network, "", 32, said.append) is not network
    assert kept.suffix == ".onnx"
    assert said == []


def test_a_network_whose_weights_are_known_is_built_for_its_export_alone(
    network: nn.Module, cache: Path
) -> None:
    said: list[str] = []
    pixels = torch.rand(3, 3, 32, 32)

    def never() -> nn.Module:
        raise AssertionError("its export is there")

    with torch.inference_mode():
        ours.onnx_backbone(lambda: network, "resnet10t abc", 32, said.append)
        run = ours.onnx_backbone(never, "resnet10t abc", 32, said.append)
        np.testing.assert_allclose(run(pixels), network(pixels), atol=1e-4)
        (kept,) = cache.iterdir()
        kept.write_bytes(b"cut")  # damaged: torch does it, and says so
        assert ours.onnx_backbone(lambda: network, "resnet10t abc", 32, said.append) is network
    assert len(said) == 1
    assert "ONNX Runtime cannot" in said[0]


class Odd(nn.Module):
    """Gives one thing here and another elsewhere."""

    def forward(self, pixels: Tensor) -> Tensor:
        return pixels.mean((2, 3)) * (1 if torch.compiler.is_exporting() else 2)


class Unusual(nn.Module):
    """Cannot be exported."""

    def forward(self, pixels: Tensor) -> Tensor:
        return torch.from_numpy(np.array(pixels.tolist())).mean((2, 3)).float()


@pytest.mark.parametrize(("model", "told"), [(Odd(), "differ"), (Unusual(), "cannot")])
def test_what_onnx_runtime_does_otherwise_or_not_at_all_torch_does(
    model: nn.Module, told: str, cache: Path
) -> None:
    said: list[str] = []
    with torch.inference_mode():
        assert ours.onnx_backbone(model.eval, "", 8, said.append) is model
    assert len(said) == 1
    assert told in said[0]
    assert not list(cache.iterdir()), "nothing that differs is kept"


def test_without_onnx_runtime_torch_does_it(
    network: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    said: list[str] = []
    assert ours.onnx_backbone(lambda: network, "", 32, said.append) is network
    assert "[onnx]" in said[0]


def test_a_cache_that_cannot_be_written_does_not_stop_it(
    network: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    said: list[str] = []
    with torch.inference_mode():
        assert ours.onnx_backbone(lambda: network, "", 32, said.append) is network
    assert len(said) == 1
