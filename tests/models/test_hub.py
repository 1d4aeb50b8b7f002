"""Without a network the hub is asked once, and says nothing by itself."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

from hilltop.models.hub import calm_hub, reachable
from hilltop.models.images import build_image_model

constants = pytest.importorskip("huggingface_hub.constants")


def unknown(*_: object) -> None:
    raise OSError("no such name")


def test_a_host_of_unknown_name_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("socket.getaddrinfo", unknown)
    assert not reachable("https://hub.invalid")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert reachable("https://hub.invalid")


def test_only_what_was_fetched_is_looked_for_and_all_is_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hilltop.models.hub.reachable", lambda _: False)
    log = logging.getLogger("huggingface_hub")
    before = constants.HF_HUB_OFFLINE, log.level
    with calm_hub() as there:
        assert not there
        assert constants.HF_HUB_OFFLINE
        assert log.level == logging.ERROR
    assert (constants.HF_HUB_OFFLINE, log.level) == before


def test_weights_of_the_hub_that_lie_on_this_machine_are_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name, commit = "test_resnet.r160_in1k", "a" * 40
    weights = pytest.importorskip("timm").create_model(name).state_dict()
    cached = tmp_path / f"models--timm--{name}"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text(commit)
    (cached / "snapshots" / commit).mkdir(parents=True)
    pytest.importorskip("safetensors.torch").save_file(
        weights, cached / "snapshots" / commit / "model.safetensors"
    )
    monkeypatch.setattr("hilltop.models.hub.reachable", lambda _: False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    model = build_image_model(name, 3, weights="timm")
    found = model.state_dict()
    kept = [key for key in weights if not key.startswith("fc.")]
    assert len(kept) > 10
    assert all(torch.equal(found[key], weights[key]) for key in kept)
