"""The state of a run: rng_state goes on where it stopped, on every rank."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from hilltop.training.checkpoint import Progress, load_state, rng_state, save_state


def test_every_rank_gets_its_own_chance_back(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    states, drawn = [], []
    with torch.random.fork_rng():
        for seed in (1, 2):
            torch.manual_seed(seed)
            torch.rand(5)
            states.append(rng_state()["cpu"])
            drawn.append(torch.rand(3))
        save_state(
            tmp_path / "state",
            {"model": model},
            optimizer,
            {},
            Progress(epoch=3),
            {"cpu": torch.stack(states)},
        )
        for rank, expected in enumerate(drawn):
            progress = load_state(tmp_path / "state", {"model": model}, optimizer, {}, rank)
            assert progress == Progress(epoch=3)
            assert torch.equal(torch.rand(3), expected)
