"""Asking the hub for weights: at once where it cannot be reached, and without its own log."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


@contextmanager
def calm_hub() -> Iterator[bool]:
    """Ask the hub without its retries and warnings; give whether it can be reached.

    Where its name is unknown, as without a network, only what was fetched before is looked for,
    instead of five attempts for every file.
    """
    from huggingface_hub import constants

    noisy, offline = logging.getLogger("huggingface_hub"), constants.HF_HUB_OFFLINE
    level, there = noisy.level, not offline and reachable(constants.ENDPOINT)
    noisy.setLevel(logging.ERROR)
    constants.HF_HUB_OFFLINE = not there
    try:
        yield there
    finally:
        noisy.setLevel(level)
        constants.HF_HUB_OFFLINE = offline


def reachable(address: str) -> bool:
    """Return whether the name of a host is known here; a proxy knows names by itself."""
    if any(os.environ.get(name) for name in _PROXIES):
        return True
    try:
        socket.getaddrinfo(urlsplit(address).hostname, 443)
    except OSError:
        return False
    return True
