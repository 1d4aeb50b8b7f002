"""Repeats the table of attacks: ``make attack``, or ``python -m tests.attack --scale 10``.

Everything runs on this machine, on loopback and in a folder of its own, and ends by itself; with
the usual scale in a few minutes. The exit code is 1 if anything did not hold.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.attack.files import damaged_arrays, damaged_labels
from tests.attack.options import odd_options
from tests.attack.outcome import Outcome
from tests.attack.overwriting import overwriting
from tests.attack.server import killed_servers, odd_images, strangers
from tests.attack.small_disk import small_disks
from tests.attack.starting import killed_starts
from tests.attack.training import changed_checkpoints, killed_runs

ATTACKS: dict[Callable[[Path, int], Outcome], int] = {
    killed_servers: 5,
    strangers: 300,
    odd_images: 30,
    killed_runs: 5,
    changed_checkpoints: 20,
    killed_starts: 5,
    damaged_labels: 2000,
    damaged_arrays: 500,
    overwriting: 200,
    odd_options: 300,
    small_disks: 100,
}
"""Every attack, and how often it is tried at a scale of 1."""


def attack(scale: float, *, only: str = "") -> list[Outcome]:
    """Run the attacks, each in a folder of its own, and print their rows."""
    outcomes = []
    print("| what was tried | tries | | |\n| --- | --- | --- | --- |")
    for run, tries in ATTACKS.items():
        if only not in run.__name__:
            continue
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            found = run(Path(folder), max(1, round(scale * tries)))
        found.remark = ", ".join(part for part in (found.remark, _seconds(began)) if part)
        print(found.line(), flush=True)
        for message in found.broken[:5]:
            print(f"    {message}")
        outcomes.append(found)
    return outcomes


def _seconds(began: float) -> str:
    return f"{time.perf_counter() - began:.0f} s"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="how often, times the usual")
    parser.add_argument("--only", default="", help="a part of the name of the attacks to run")
    given = parser.parse_args()
    sys.exit(any(one.broken for one in attack(given.scale, only=given.only)))
