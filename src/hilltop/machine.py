"""What this machine lets a process have."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Return how many cores this process may use: those of the machine, or of its share of it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
