"""Value and gradient of 64 x 100,000 pairs, in passes over memory: how near is a loss to its bound?

By processor time on one thread, so that other people's work on the machine counts as little as it
can; the lower quartile of rounds in turn. Each loss has a second line, without a gradient. With
--small: steps on 128 x 80 pairs instead, in random order, against BCEWithLogitsLoss.
Run it with: python benchmarks/passes.py [--rounds 41] [--small]
"""

from __future__ import annotations

import argparse
import random
import statistics
import time

import torch

from hilltop.losses import asl_released, bce, focal, hill, splc_released
from timing import Work

ROWS, CLASSES, LABELS = 64, 100_000, 5.0
STEPS = 20  # of a small batch in a turn: a clock cannot tell one


def works() -> dict[str, Work]:
    """One pass (two tensors read, one written that is there), and every loss in both ways."""
    torch.manual_seed(0)
    logits = (2 * torch.randn(ROWS, CLASSES) - 3).requires_grad_()
    targets = (torch.rand(ROWS, CLASSES) < LABELS / CLASSES).float()
    given, written = logits.detach(), torch.empty(ROWS, CLASSES)
    splc = splc_released(reduction="sum")
    splc.set_epoch(1)
    losses = {"hill": hill(), "bce": bce(), "focal": focal(), "asl_released": asl_released()}

    def step(loss: torch.nn.Module) -> None:
        logits.grad = None
        loss(logits, targets).backward()

    made: dict[str, Work] = {"one pass": lambda: torch.add(given, targets, out=written)}
    for name, loss in {**losses, "splc_released": splc}.items():
        made[name] = lambda loss=loss: step(loss)  # type: ignore[misc]
        made[f"{name}, value"] = lambda loss=loss: loss(given, targets)  # type: ignore[misc]
    return made


def measure(rounds: int) -> dict[str, float]:
    """Milliseconds of processor time of each, the lower quartile of all rounds."""
    contenders = works()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 3):
        for name, work in contenders.items():
            before = time.process_time()
            work()
            if turn >= 3:
                times[name].append(1e3 * (time.process_time() - before))
    return {name: statistics.quantiles(found, n=4)[0] for name, found in times.items()}


def measure_small(rounds: int) -> dict[str, float]:
    """As :func:`measure`, a step on 128 x 80 pairs; the first one is torch's own loss."""
    torch.manual_seed(0)
    logits = (2 * torch.randn(128, 80) - 3).requires_grad_()
    targets = (torch.rand(128, 80) < LABELS / 80).float()
    losses = {
        "BCEWithLogitsLoss": torch.nn.BCEWithLogitsLoss(),
        "hill": hill(safe_start=False),
        "bce": bce(),
    }
    times: dict[str, list[float]] = {name: [] for name in losses}
    order = list(losses)
    for _ in range(rounds):
        random.shuffle(order)  # what ran before leaves caches as it likes them
        for name in order:
            before = time.process_time()
            for _ in range(STEPS):
                logits.grad = None
                losses[name](logits, targets).backward()
            times[name].append(1e3 * (time.process_time() - before) / STEPS)
    return {name: statistics.quantiles(found, n=4)[0] for name, found in times.items()}


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--rounds", type=int, default=41)
    asked.add_argument("--small", action="store_true", help="128 x 80 pairs, not 64 x 100,000")
    options = asked.parse_args()
    torch.set_num_threads(1)
    if options.small:
        small = measure_small(options.rounds)
        for name, taken in small.items():
            print(f"{name:22} {taken:6.4f} ms  {taken / small['BCEWithLogitsLoss']:.2f}")
        return
    found = measure(options.rounds)
    once = found.pop("one pass")
    print(f"one pass {once:.2f} ms")
    for name, taken in found.items():
        print(f"{name:22} {taken:6.2f} ms  {taken / once:.2f} passes")


if __name__ == "__main__":
    main()
