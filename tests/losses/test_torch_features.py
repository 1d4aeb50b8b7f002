"""Losses under autocast, compilation, function transforms, custom terms and many processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.torch_version import TorchVersion

from hilltop.errors import ArgumentError
from hilltop.losses import (
    FocalPositive,
    LogPositive,
    MultiLabelLoss,
    NegativeTerm,
    build,
    hill,
)
from tests.forked import run_forked
from tests.losses.conftest import batch, label_stats, sees_whole_batch
from tests.sample import of_losses

Make = Callable[..., MultiLabelLoss]


def gradient(loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, targets: Tensor) -> Tensor:
    leaf = logits.clone().requires_grad_()
    loss(leaf, targets).backward()
    assert leaf.grad is not None
    return leaf.grad


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast_the_loss_is_computed_in_float32(make: Make, dtype: torch.dtype) -> None:
    head = nn.Linear(4, 5)
    inputs, (_, targets) = torch.randn(7, 4), batch()
    with torch.autocast("cpu", dtype=dtype):
        logits = head(inputs)
        value = make()(logits, targets)
    assert logits.dtype == dtype
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, make()(logits.float(), targets))
    value.backward()
    assert head.weight.grad is not None
    assert head.weight.grad.isfinite().all()


@pytest.mark.parametrize("loss_name", of_losses(("hill", "splc", "role", "gr")))
def test_compiles_to_one_graph_and_sees_the_epoch_change_without_recompiling(
    loss_name: str,
) -> None:
    from torch._dynamo.testing import CompileCounterWithBackend

    torch.compiler.reset()
    counter = CompileCounterWithBackend("aot_eager")
    loss, eager = build(loss_name), build(loss_name)
    loss.prepare(label_stats(5)), eager.prepare(label_stats(5))
    logits, targets = batch()
    rows = {"index": torch.arange(len(logits))}
    compiled = partial(torch.compile(loss, fullgraph=True, backend=counter), **rows)
    eager = partial(eager, **rows)
    targets[0, 0] = float("nan")
    for epoch in (0, 1, 2):
        loss.set_epoch(epoch)
        eager.func.set_epoch(epoch)
        torch.testing.assert_close(compiled(logits, targets), eager(logits, targets))
        torch.testing.assert_close(
            gradient(compiled, logits, targets), gradient(eager, logits, targets)
        )
    graphs = 2  # one without gradients, one with
    if loss.can_saturate and loss.safe_start is not None:
        graphs += 2  # the same during the safe start
    assert counter.frame_count <= graphs


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
@pytest.mark.parametrize("name", ["hill", pytest.param("splc", marks=pytest.mark.slow)])
def test_inductor_gives_the_same_loss(name: str) -> None:
    torch.compiler.reset()
    loss = build(name, safe_start=False)
    loss.set_epoch(1)
    compiled = torch.compile(loss, fullgraph=True)
    logits, targets = batch()
    torch.testing.assert_close(
        gradient(compiled, logits, targets), gradient(loss, logits, targets), rtol=1e-4, atol=1e-6
    )
    if TorchVersion(torch.__version__) < "2.7":
        return  # its inductor leaves assertions out
    targets[0, 0] = -1
    with pytest.raises(RuntimeError, match="A target is out of range"):
        torch.compile(build(name, check=True), fullgraph=True)(logits, targets)


def plain_hill(logits: Tensor, targets: Tensor) -> Tensor:
    """The formula as anybody would write it."""
    probs, shifted = torch.sigmoid(logits), 1.0 - logits
    positive = torch.sigmoid(shifted) ** 2 * nn.functional.softplus(shifted)
    return (targets * positive + (1 - targets) * (1.5 - probs) * probs**2).mean()


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_compiling_the_loss_generates_no_more_kernels_than_the_formula() -> None:
    from torch._inductor import metrics

    logits, targets = batch(64, 40)
    generated = []
    for loss in (plain_hill, hill(safe_start=False)):
        torch.compiler.reset()
        metrics.reset()
        gradient(torch.compile(loss, fullgraph=True), logits, targets)
        generated.append(metrics.generated_kernel_count)
    assert generated[1] <= generated[0]


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # inside torch.func.hessian
def test_torch_func_transforms_and_second_derivatives(make: Make) -> None:
    logits, targets = batch()
    loss = make(reduction="sum")
    gradient(loss, logits, targets)  # something to remember, to which a transform adds nothing
    loss.eval()
    torch.testing.assert_close(
        torch.func.grad(loss)(logits, targets), gradient(loss, logits, targets)
    )
    rows = torch.func.vmap(torch.func.grad(loss))(logits, targets)
    if sees_whole_batch(loss):
        looped = [torch.func.grad(loss)(*pair) for pair in zip(logits, targets, strict=True)]
        torch.testing.assert_close(rows, torch.stack(looped))
    else:
        torch.testing.assert_close(rows, gradient(loss, logits, targets))
    curvature = torch.func.hessian(lambda row: loss(row, targets[0]))(logits[0].double())
    assert curvature.isfinite().all()
    assert curvature.diagonal().abs().sum() > 0
    wrong = targets.clone()
    wrong[0, 0] = -1
    with pytest.raises(ArgumentError, match="a person said"):
        torch.func.vmap(torch.func.grad(loss))(logits, wrong)


def test_vmap_over_seeds_without_gradients(make: Make) -> None:
    logits, targets = batch(6, 5)
    loss = make()
    stacked = torch.func.vmap(loss)(logits.view(2, 3, 5), targets.view(2, 3, 5))
    separate = [loss(*pair) for pair in zip(logits.split(3), targets.split(3), strict=True)]
    torch.testing.assert_close(stacked, torch.stack(separate))


class LearnedNegative(NegativeTerm):
    """A user's term with a weight of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(0.5))

    def forward(self, logits: Tensor) -> Tensor:
        return self.weight * torch.sigmoid(logits)


def test_a_term_needs_forward_alone_and_its_parameters_learn() -> None:
    logits, targets = batch()
    loss = MultiLabelLoss(positive=LogPositive(), negative=LearnedNegative(), reduction="sum")
    logits.requires_grad_()
    loss(logits, targets).backward()
    probs = torch.sigmoid(logits.detach())
    torch.testing.assert_close(loss.negative.weight.grad, ((1 - targets) * probs).sum())
    assert logits.grad is not None


def test_grad_scaler_and_accumulation_scale_the_gradient() -> None:
    logits, targets = batch()
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scaled = gradient(lambda *pair: scaler.scale(hill()(*pair)), logits, targets)
    torch.testing.assert_close(scaled, 1024 * gradient(hill(), logits, targets))


def test_a_gamma_that_the_kernel_does_not_know_still_works() -> None:
    logits, targets = batch()
    for gamma in (0.5, 2.5, 12.0):
        loss = MultiLabelLoss(positive=FocalPositive(gamma=gamma), negative=build("hill").negative)
        exact = gradient(loss, logits.double(), targets.double()).float()
        torch.testing.assert_close(gradient(loss, logits, targets), exact, rtol=1e-4, atol=1e-7)


def test_losses_import_with_torch_alone() -> None:
    """Neither numpy nor anything else that an extra brings may be needed."""
    code = (
        "import sys\n"
        "for name in ('numpy', 'sklearn', 'matplotlib', 'pyarrow'): sys.modules[name] = None\n"
        "import hilltop.losses, torch\n"
        "loss = hilltop.losses.hill()(torch.zeros(2, 3), torch.zeros(2, 3))\n"
        "assert abs(loss.item() - 0.25) < 1e-6\n"
        "reject = hilltop.losses.ll_r()\n"
        "reject.set_epoch(1)\n"
        "assert reject(torch.zeros(2, 3), torch.zeros(2, 3)).item() == 0\n"  # all are the largest
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


WORKER = Path(__file__).with_name("ddp_worker.py")


@pytest.mark.distributed
def test_distributed_data_parallel_gives_the_gradient_of_the_whole_batch(tmp_path: Path) -> None:
    out = tmp_path / "gradient.pt"
    run_forked(WORKER, out, processes=2)
    from tests.losses.ddp_worker import full_batch_gradient

    torch.testing.assert_close(torch.load(out), full_batch_gradient())
