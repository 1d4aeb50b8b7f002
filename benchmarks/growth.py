"""How does time grow with size, where no other benchmark measures it?

A loss over 50,000 to 50 million pairs, two epochs of a head over 200 to 200,000 images, and a
promise of a recall over 10,000 to 10 million pairs, with its memory.
Run it with: python benchmarks/growth.py [--quick] [--save]
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from eager import eager_hill
from hilltop.losses import hill
from hilltop.metrics import average_precision
from hilltop.missing import PromiseTest
from hilltop.training import TrainConfig, train
from memory import extra_mib
from results import finish, parser
from timing import Row, Work, compare
from training import Problem, generate

IMAGES = 100


def of_losses(pairs: int, seconds: float) -> list[Row]:
    """Value and gradient of Hill, and of BCE."""
    torch.manual_seed(0)
    logits = (2 * torch.randn(IMAGES, pairs // IMAGES) - 3).requires_grad_()
    targets = (torch.rand(logits.shape) < 0.01).float()
    losses = {
        "eager Hill": eager_hill,
        "BCEWithLogitsLoss": nn.BCEWithLogitsLoss(reduction="sum"),
        "hilltop hill": hill(reduction="sum", safe_start=False),
    }

    def work(name: str) -> Work:
        def step() -> Tensor:
            logits.grad = None
            loss = losses[name](logits, targets)
            loss.backward()
            return loss

        return step

    works = {name: work(name) for name in losses}
    return compare("loss by pairs", str(pairs), works, "eager Hill", seconds=seconds)


def of_training(images: int, seconds: float) -> list[Row]:
    """Two epochs over 64 features and 20 classes; ours keeps a run folder, the loop nothing."""
    with tempfile.TemporaryDirectory() as folder:
        task = generate(Path(folder), images * 4 // 3, 64, 20)
        works: dict[str, Work] = {
            "PyTorch loop, BCE": lambda: plain_epochs(task),
            "hilltop train": lambda: our_epochs(task),
        }
        name, base = "two epochs by images", "PyTorch loop, BCE"
        return compare(name, str(images), works, base, rounds=5, seconds=seconds)


def of_promises(pairs: int, seconds: float) -> list[Row]:
    """From scores to 500 questions, and from their answers to a promise; 80 classes."""
    rng = np.random.default_rng(0)
    probs = rng.beta(0.1, 2, (pairs // 80, 80)).astype(np.float32)
    true = rng.random(probs.shape, dtype=np.float32) < probs
    labels = true & (rng.random(probs.shape, dtype=np.float32) < 0.4)

    def promise() -> None:
        test = PromiseTest(probs, labels, probs=probs, plan_for=("recall", 0.9))
        ask = test.plan(500)
        answers = ask.answered(true[ask.rows, ask.columns])
        found = test.promise("recall", 0.9, answers)
        assert found.threshold is not None

    works: dict[str, Work] = {
        "numpy sort of the scores": lambda: np.sort(probs, axis=None),
        "hilltop promise": promise,
    }
    peak, base = round(extra_mib(promise), 1), "numpy sort of the scores"
    sort, ours = compare("promise by pairs", str(pairs), works, base, rounds=5, seconds=seconds)
    return [sort, dataclasses.replace(ours, peak_mib=peak)]


def plain_epochs(task: Problem) -> None:
    """Two epochs, and the scores of the held-out images after each."""
    inputs, targets = torch.from_numpy(task.inputs), torch.from_numpy(task.targets).float()
    head, criterion = nn.Linear(inputs.shape[1], targets.shape[1]), nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
    for _ in range(2):
        for rows in torch.randperm(len(inputs)).split(128):
            optimizer.zero_grad()
            criterion(head(inputs[rows]), targets[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            scores = head(torch.from_numpy(task.val_inputs)).numpy()
        some = task.val_targets.any(axis=0)
        average_precision(scores[:, some], task.val_targets[:, some].astype(np.uint8))


def our_epochs(task: Problem) -> None:
    """The same by ``hilltop train``: files in, a run folder out."""
    config = TrainConfig(
        labels=task.labels,
        val_labels=task.val_labels,
        features=task.features,
        epochs=2,
        report=False,
    )
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        train(config, Path(folder, "run"))


def main() -> None:
    """Measure over three decades each."""
    options = parser(__doc__).parse_args()
    decades = (0, 1) if options.quick else (0, 1, 2, 3)
    seconds = 0.5 if options.quick else 6.0
    rows = []
    for decade in decades:
        rows += of_losses(50_000 * 10**decade, seconds)
        rows += of_training(200 * 10**decade, seconds)
        rows += of_promises(10_000 * 10**decade, seconds)
    finish(rows, options, ["torch"])


if __name__ == "__main__":
    main()
