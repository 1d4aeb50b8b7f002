"""Is any way of computing Hill slower than its plain formula?

Each path runs in turn with the three-line formula, on one thread, by processor time: the compiled
CPU kernel, torch without it, float64, and ``torch.compile`` of the loss against ``torch.compile``
of the formula.
Also compared: ``BCEWithLogitsLoss``. Run it with: python benchmarks/paths.py [--quick]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from hilltop.losses import hill
from hilltop.losses.engine import kernel
from timing import Work, compare

Loss = Callable[[Tensor, Tensor], Tensor]
SIZES = ((128, 80), (256, 9605))


def formula(logits: Tensor, targets: Tensor) -> Tensor:
    """Hill as anybody would write it, finite at every logit."""
    probs, shifted = torch.sigmoid(logits), 1.0 - logits
    positive = torch.sigmoid(shifted) ** 2 * F.softplus(shifted)
    return (targets * positive + (1 - targets) * (1.5 - probs) * probs**2).mean()


def step(loss: Loss, logits: Tensor, targets: Tensor) -> Work:
    """Return value and gradient as one call."""

    def work() -> None:
        logits.grad = None
        loss(logits, targets).backward()

    return work


def main() -> None:
    """Print one line for each path and size."""
    torch.set_num_threads(1)
    rounds = 11 if "--quick" in sys.argv else 101
    for rows, classes in SIZES:
        torch.manual_seed(0)
        logits = (2 * torch.randn(rows, classes) - 4).requires_grad_()
        targets = (torch.rand(rows, classes) < 3 / classes).float()
        exact = logits.detach().double().requires_grad_()
        loss = hill(safe_start=False)
        plain_compiled, compiled = torch.compile(formula), torch.compile(loss, fullgraph=True)
        pairs: list[tuple[str, Work, str, Work]] = [
            ("kernel", step(loss, logits, targets), "BCEWithLogitsLoss",
             step(nn.BCEWithLogitsLoss(), logits, targets)),
            ("kernel", step(loss, logits, targets), "formula", step(formula, logits, targets)),
            ("no kernel", step(loss, logits, targets), "formula",
             step(formula, logits, targets)),
            ("float64", step(loss, exact, targets.double()), "formula, float64",
             step(formula, exact, targets.double())),
            ("compiled", step(compiled, logits, targets), "formula, compiled",
             step(plain_compiled, logits, targets)),
        ]  # fmt: skip
        for name, work, baseline, reference in pairs:
            library = kernel.library
            if name == "no kernel":  # as where nothing was compiled at installation
                kernel.library = lambda: None  # type: ignore[assignment]
            for _ in range(5):
                work(), reference()
            found = compare(
                "paths", f"{rows}x{classes}", {baseline: reference, name: work}, baseline,
                rounds=rounds, seconds=30, clock=time.process_time,
            )  # fmt: skip
            kernel.library = library
            row = next(one for one in found if one.contender == name)
            print(
                f"{row.size:9s} {name:10s} {row.contender_ms:8.3f} ms  {row.ratio:5.2f} of"
                f" {baseline} ({row.ratio_low:.2f} to {row.ratio_high:.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
