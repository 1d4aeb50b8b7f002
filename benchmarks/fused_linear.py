"""What does a head with very many classes take, if its logits are never there as a whole?

FusedLinearLoss against ``nn.Linear`` with the released eager Hill, and with ours; features of
length 512, batches of 64, five labels an image. Memory is what torch allocates beyond parameters
and their gradients; with --resident N, what the process has. Run it with:
python benchmarks/fused_linear.py [--quick] [--save] [--resident N [--steps N] [--fused]]
"""

from __future__ import annotations

import resource
import time
from dataclasses import replace

import torch
from torch import Tensor

from eager import eager_hill
from hilltop.losses import FusedLinearLoss, FusedSgd, hill
from memory import MIB, torch_peak_mib
from results import finish, parser
from timing import Row, Work, compare

INPUTS, IMAGES, LABELS = 512, 64, 5


def measure(classes: int, seconds: float) -> list[Row]:
    """Compare at one number of classes, forward and backward, on the same head and labels."""
    torch.manual_seed(0)
    labels = [torch.randint(classes, (LABELS,)) for _ in range(IMAGES)]
    targets = torch.zeros(IMAGES, classes)
    for row, columns in zip(targets, labels, strict=True):
        row[columns] = 1
    criterion = hill(reduction="sum")
    head = FusedLinearLoss(INPUTS, classes, criterion, labels=labels)
    features = torch.randn(IMAGES, INPUTS, requires_grad=True)
    forwards = {
        "nn.Linear + eager Hill": lambda: eager_hill(head.linear(features), targets),
        "nn.Linear + hilltop hill": lambda: criterion(head.linear(features), targets),
        "FusedLinearLoss": lambda: head(features, labels),
    }

    def work(name: str) -> Work:
        def step() -> Tensor:
            head.zero_grad()
            features.grad = None
            loss = forwards[name]()
            loss.backward()
            return loss

        return step

    works = {name: work(name) for name in forwards}
    baseline = "nn.Linear + eager Hill"
    rows = compare("head and loss", str(classes), works, baseline, seconds=seconds)
    gradients = 4 * (head.linear.weight.numel() + head.linear.bias.numel() + features.numel()) / MIB
    measured = []
    for row in rows:
        head.zero_grad()
        features.grad = None
        beyond = torch_peak_mib(works[row.contender]) - gradients
        measured.append(replace(row, peak_mib=round(beyond, 2)))
    return measured


def resident(classes: int, steps: int, *, fused: bool) -> tuple[float, list[float]]:
    """GiB that a process has at most, until the last step; processor seconds of each step."""
    torch.manual_seed(0)
    labels = [torch.randint(classes, (LABELS,)) for _ in range(IMAGES)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    step = FusedSgd(learning_rate=1e-3) if fused else None
    head = FusedLinearLoss(INPUTS, classes, hill(reduction="sum"), labels=labels, step=step)
    seconds = []
    for _ in range(steps):
        features = torch.randn(IMAGES, INPUTS, requires_grad=True)
        head.zero_grad()
        began = time.process_time()
        head(features, labels).backward()
        seconds.append(time.process_time() - began)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20, seconds


def main() -> None:
    """Measure at a thousand to half a million classes."""
    asked = parser(__doc__)
    asked.add_argument("--resident", type=int, help="only the memory of steps of so many classes")
    asked.add_argument("--steps", type=int, default=1, help="how many, with --resident")
    asked.add_argument("--fused", action="store_true", help="with FusedSgd, and so no gradient")
    options = asked.parse_args()
    if options.resident:
        most, seconds = resident(options.resident, options.steps, fused=options.fused)
        print(f"{options.resident:,} x {INPUTS}: {most:.2f} GiB more at most")
        print("processor seconds of each step:", *(f"{one:.1f}" for one in seconds))
        return
    sizes = [500, 5_000] if options.quick else [500, 5_000, 50_000, 500_000]
    rows = []
    for classes in sizes:
        rows += measure(classes, seconds=1.0 if options.quick else 25.0)
    finish(rows, options, ["torch"])


if __name__ == "__main__":
    main()
