"""Attack on ``start``: kills at any file that it opens, renames or removes in its folder."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import timm
import torch

from hilltop.data import drop_positives, read_labels, write_labels
from hilltop.inputs.synthetic import write_dataset
from tests.attack.outcome import Outcome
from tests.attack.quiet import quietly
from tests.forked import fork
from tests.training.conftest import STOPPED

FILES = 300
"""About as many files are touched by one start."""


def killed_starts(folder: Path, tries: int) -> Outcome:
    """Kill the command, give it again, and compare with one that was never stopped."""
    found = Outcome("killed starts come to the same tags")
    write_dataset(folder / "drawn", images=60, size=32, seed=0)
    torch.manual_seed(0)
    torch.save(timm.create_model("test_resnet").state_dict(), folder / "weights.pt")
    left = folder / "left.parquet"
    whole = read_labels(folder / "drawn" / "labels.parquet")
    write_labels(drop_positives(whole, "0.5", seed=0).table, left)
    words = ["start", str(folder / "drawn" / "images"), str(left)]
    words += ["--weights", str(folder / "weights.pt"), "--backbone", "test_resnet", "--out"]
    assert quietly([*words, str(folder / "whole")]) == 0
    chance = random.Random(0)
    for turn in range(tries):
        out = folder / f"killed-{turn}"
        fork(STOPPED, "SIGKILL", 0, chance.randrange(1, FILES), *words, out)
        code = quietly([*words, str(out)])
        same = code == 0 and all(
            (folder / "whole" / name).read_bytes() == (out / name).read_bytes()
            for name in ("tags.csv", "audit/candidates.csv", "run/last.safetensors")
        )
        found.expect(same, f"start {turn}: code {code}")
        shutil.rmtree(out, ignore_errors=True)
    return found
