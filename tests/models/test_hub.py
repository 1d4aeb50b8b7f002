"""Without a network the hub is asked once, and says nothing by itself."""

from __future__ import annotations

import logging

import pytest

from hilltop.models.hub import calm_hub, reachable

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
