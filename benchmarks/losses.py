"""How long do value and gradient of a loss take, and how much memory?

Compared with the released eager formulations, torch's own BCE, and the losses of timm, torchvision
and mlcpl. "One pass" reads logits and targets and writes a tensor of their size: no loss with a
gradient can do with less. Run it with:
python benchmarks/losses.py [--quick] [--save] [--families "eager Hill" ...]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn

from eager import eager_asl, eager_focal, eager_hill, eager_rejection, eager_splc
from hilltop.losses import (
    asl_released,
    bce,
    focal,
    focal_released,
    hill,
    ll_r,
    splc_released,
)
from hilltop.losses.engine import kernel
from memory import saved_mib, torch_peak_mib
from results import finish, installed, parser
from timing import Row, Work, compare

Loss = Callable[[Tensor, Tensor], Tensor]
QUESTION = "loss and gradient"
PASS = "one pass over memory"


def families() -> dict[str, dict[str, Loss]]:
    """The losses that compute the same thing, the released form of each first."""
    splc, rejection = splc_released(reduction="sum"), ll_r(reduction="sum")
    splc.set_epoch(1), rejection.set_epoch(1)
    plain = nn.BCEWithLogitsLoss(reduction="sum")
    made: dict[str, dict[str, Loss]] = {
        "eager Hill": {
            "eager Hill": eager_hill,
            "BCEWithLogitsLoss": plain,  # as a mark: how fast a single call into C++ is
            "hilltop hill": hill(reduction="sum", safe_start=False),
        },
        "eager SPLC": {"eager SPLC": eager_splc, "hilltop splc_released": splc},
        "eager Focal": {
            "eager Focal": eager_focal,
            "hilltop focal_released": focal_released(reduction="sum"),
            "hilltop focal": focal(reduction="sum"),
        },
        "eager ASL": {
            "eager ASL": eager_asl,
            "hilltop asl_released": asl_released(reduction="sum"),
        },
        "BCEWithLogitsLoss": {"BCEWithLogitsLoss": plain, "hilltop bce": bce(reduction="sum")},
        "BCEWithLogitsLoss, mean": {
            "BCEWithLogitsLoss, mean": nn.BCEWithLogitsLoss(),
            "hilltop hill, mean": hill(safe_start=False),
        },
        "eager LL-R": {"eager LL-R": eager_rejection, "hilltop ll_r": rejection},
    }
    add_timm(made)
    add_torchvision(made)
    add_mlcpl(made)
    return made


def add_timm(made: dict[str, dict[str, Loss]]) -> None:
    """ASL of timm, which sums."""
    if installed("timm"):
        from timm.loss import AsymmetricLossMultiLabel

        made["eager ASL"]["timm ASL"] = AsymmetricLossMultiLabel(gamma_neg=4, gamma_pos=0)


def add_torchvision(made: dict[str, dict[str, Loss]]) -> None:
    """Focal loss of torchvision without class balance; the gradient flows through its weight."""
    if installed("torchvision"):
        from torchvision.ops import sigmoid_focal_loss

        made["eager Focal"]["torchvision focal"] = lambda logits, targets: sigmoid_focal_loss(
            logits, targets, alpha=-1, gamma=2, reduction="sum"
        )


def add_mlcpl(made: dict[str, dict[str, Loss]]) -> None:
    """Losses of mlcpl for partial labels; large loss wants unlabelled pairs as NaN."""
    if not installed("mlcpl"):
        return
    from mlcpl import losses as peers

    made["eager Focal"]["mlcpl focal"] = peers.PartialNegativeFocalWithLogitLoss(
        gamma=2, reduction="sum"
    )
    made["eager ASL"]["mlcpl ASL"] = peers.PartialNegativeAsymmetricWithLogitLoss(
        clip=0.05, gamma_pos=0, gamma_neg=4, reduction="sum"
    )
    made["BCEWithLogitsLoss"]["mlcpl BCE"] = peers.PartialNegativeBCEWithLogitLoss(reduction="sum")
    rejection = peers.LargeLossRejection(delta_rel=0.2, reduction="sum")

    def reject(logits: Tensor, targets: Tensor) -> Tensor:
        return rejection(logits, torch.where(targets == 0, torch.nan, targets), 1)

    made["eager LL-R"]["mlcpl LL-R"] = reject


def measure(
    rows: int, classes: int, labels_per_image: float, seconds: float, only: list[str] | None
) -> list[Row]:
    """Compare all losses, or some, at one size, on logits like those of a trained model."""
    torch.manual_seed(0)
    logits = (2 * torch.randn(rows, classes) - 3).requires_grad_()
    targets = (torch.rand(rows, classes) < labels_per_image / classes).float()
    given, written = logits.detach(), torch.empty(rows, classes)

    def work(loss: Loss) -> Work:
        def step() -> None:
            logits.grad = None
            loss(logits, targets).backward()

        return step

    measured = []
    for baseline, losses in families().items():
        if only and baseline not in only:
            continue
        works = {name: work(loss) for name, loss in losses.items()}
        works[PASS] = lambda: torch.add(given, targets, out=written)
        found = compare(QUESTION, f"{rows}x{classes}", works, baseline, rounds=41, seconds=seconds)
        one_pass = found[-1].contender_ms
        for row in found[:-1]:
            loss = losses[row.contender]
            logits.grad = None
            measured.append(
                replace(
                    row,
                    passes=round(row.contender_ms / one_pass, 2),
                    saved_mib=round(saved_mib(lambda: loss(logits, targets), logits, targets), 3),  # noqa: B023 (called at once)
                    peak_mib=round(torch_peak_mib(works[row.contender]), 3),
                )
            )
    return measured


def main() -> None:
    """Measure at the size of COCO, of Open Images, of a tag vocabulary and of a huge one."""
    asked = parser(__doc__)
    asked.add_argument("--families", nargs="+", choices=list(families()), help="only these")
    options = asked.parse_args()
    print("compiled kernel:", "yes" if kernel.library() else "no", flush=True)
    sizes = [(128, 80, 2.9), (128, 567, 2.5)]
    if not options.quick:
        sizes += [(256, 9605, 5.0), (64, 100_000, 5.0)]
    rows = []
    for size in sizes:
        rows += measure(*size, seconds=0.5 if options.quick else 8.0, only=options.families)
    finish(rows, options, ["torch", "timm", "torchvision", "mlcpl"])


if __name__ == "__main__":
    main()
