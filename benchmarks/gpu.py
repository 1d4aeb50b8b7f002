"""How long do value and gradient of a loss take on this GPU, and how much memory?

Each loss by our kernels, by the same formula in torch operators, and by torch.compile of it, beside
torch's own BCE. It fills in what docs/gpu.md could only compute. Run it on a machine with a GPU:

    python benchmarks/gpu.py [--shape 1024 1000] [--losses hill bce ...] [--dtype bfloat16]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from hilltop.losses import build
from hilltop.losses.engine import device

Step = Callable[[Tensor, Tensor], Tensor]
REPEATS = 100


def contenders(name: str, classes: int) -> dict[str, Step]:
    """A loss in its ways of being computed."""
    loss = build(name, watch=False)
    loss.set_epoch(3)
    loss = loss.cuda()

    def formula(logits: Tensor, targets: Tensor) -> Tensor:
        return loss.entries(loss.batch(logits, targets)).mean()

    made: dict[str, Step] = {f"{name}, kernel": loss, f"{name}, torch operators": formula}
    if not loss.counts_labels:  # compiled, it would have to allow for every possible count
        made[f"{name}, torch.compile"] = torch.compile(formula)
    return made


def milliseconds(step: Step, logits: Tensor, targets: Tensor) -> float:
    """Median time of forward and backward on the device, after ten to get warm."""
    times = []
    for number in range(REPEATS + 10):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        logits.grad = None
        start.record()
        step(logits, targets).backward()
        end.record()
        torch.cuda.synchronize()
        if number >= 10:
            times.append(start.elapsed_time(end))
    return statistics.median(times)


def extra_mib(step: Step, logits: Tensor, targets: Tensor) -> float:
    """Memory of a step beyond its inputs, at its peak."""
    logits.grad = None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    step(logits, targets).backward()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def arguments() -> argparse.Namespace:
    """Read the command line."""
    given = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    given.add_argument("--shape", nargs=2, type=int, default=[1024, 1000])
    given.add_argument("--losses", nargs="+", default=["bce", "hill", "splc_released", "asl"])
    given.add_argument("--dtype", default="float32", choices=["float32", "float16", "bfloat16"])
    return given.parse_args()


def main() -> None:
    """Print a line for each contender."""
    options = arguments()
    if not torch.cuda.is_available():
        sys.exit("There is no GPU that torch can use, so nothing was measured.")
    generator = torch.Generator("cuda").manual_seed(0)
    draw = partial(torch.randn, *options.shape, device="cuda", generator=generator)
    logits = (3 * draw() - 3).to(getattr(torch, options.dtype)).requires_grad_()
    targets = (draw() > 2).float()
    if not device.runs_on(logits):
        print("The kernels do not run on this GPU; torch computes every loss.")
    steps: dict[str, Step] = {"torch's BCEWithLogitsLoss": nn.BCEWithLogitsLoss()}
    for name in options.losses:
        steps |= contenders(name, options.shape[1])
    print(f"{torch.cuda.get_device_name()}, {options.shape}, {options.dtype}, {torch.__version__}")
    for name, step in steps.items():
        took, size = milliseconds(step, logits, targets), extra_mib(step, logits, targets)
        print(f"{name:<36}{took:8.3f} ms{size:10.1f} MiB")


if __name__ == "__main__":
    main()
