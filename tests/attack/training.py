"""Attacks on runs: kills at any file, and checkpoints that were changed."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from tests.attack.outcome import Outcome
from tests.attack.quiet import quietly
from tests.feature_problem import write_problem
from tests.forked import fork
from tests.training.conftest import STOPPED, command
from tests.training.test_damaged_state import crafted

EPOCHS = ("--epochs", "3", "--loss", "splc", "--ema", "0.9")


def make_problem(folder: Path) -> Path:
    """Features, and labels to train and validate on."""
    return write_problem(folder, "abcd", train=120, val=40, features=8, above=1, seed=0)


def killed_runs(folder: Path, tries: int) -> Outcome:
    """Kill a run at some file that it writes, resume it, and compare with one never stopped."""
    found = Outcome("killed runs resume to the same bits")
    problem = make_problem(folder)
    whole = folder / "whole"
    assert quietly(command(problem, whole, *EPOCHS)) == 0
    chance = random.Random(0)
    for turn in range(tries):
        out = folder / f"killed-{turn}"
        words = command(problem, out, *EPOCHS)
        fork(STOPPED, "SIGKILL", chance.randrange(1, 150), chance.randrange(1, 40), *words)
        again = ["resume", str(out)] if (out / "config.yaml").is_file() else words
        code = quietly(again)
        same = code == 0 and all(
            (whole / name).read_bytes() == (out / name).read_bytes()
            for name in ("metrics.csv", "last.safetensors", "best.safetensors", "val_scores.npy")
        )
        found.expect(same, f"run {turn}: code {code}")
        shutil.rmtree(out, ignore_errors=True)
    return found


def changed_checkpoints(folder: Path, tries: int) -> Outcome:
    """Change tensors, notes and bits of a state; the process must say so and live."""
    found = Outcome("changed checkpoints are refused in words")
    problem = make_problem(folder)
    run = folder / "run"
    assert quietly(command(problem, run, *EPOCHS)) == 0
    state = run / "resume.safetensors"
    whole, chance = state.read_bytes(), random.Random(0)
    for turn in range(tries):
        if turn % 2:
            content = bytearray(whole)
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            state.write_bytes(content)
        else:
            state.write_bytes(whole)
            crafted(state, lambda tensors, _: tensors.update(_cut_one(tensors, chance)))
        code = quietly(["resume", str(run)])
        found.expect(code in (1, 2), f"change {turn}: {code}")
    return found


def _cut_one(tensors: dict, chance: random.Random) -> dict:  # type: ignore[type-arg]
    """One tensor of the optimiser or the model with another shape or NaN in it."""
    import torch

    names = [name for name in sorted(tensors) if name.startswith(("optimizer", "model"))]
    name = chance.choice([one for one in names if tensors[one].numel() > 1])
    if chance.random() < 0.5 and name.startswith("model") and tensors[name].is_floating_point():
        return {name: torch.full_like(tensors[name], torch.nan)}
    return {name: torch.zeros(1)}
