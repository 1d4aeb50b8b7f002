"""FusedLinearLoss under autocast, transforms, many processes, and what it keeps in memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hilltop.errors import HilltopError, HilltopWarning
from hilltop.losses import FusedLinearLoss, hill
from hilltop.losses.engine import linear_parts
from tests.forked import run_forked
from tests.losses.engine.fused_head import (
    CLASSES,
    INPUTS,
    ROWS,
    as_a_whole,
    gradients,
    head,
    inputs,
)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three classes at a time, so that the last part is smaller than the others."""
    monkeypatch.setattr(linear_parts, "_ENTRIES", 3 * ROWS)


def test_gradcheck() -> None:
    fused = head(hill())
    features, targets = inputs()
    parameters = dict(fused.named_parameters())

    def value(features: Tensor, *numbers: Tensor) -> Tensor:
        given = dict(zip(parameters, numbers, strict=True))
        return torch.func.functional_call(fused, given, (features, targets))

    assert torch.autograd.gradcheck(value, (features, *parameters.values()))


def test_backward_can_be_called_again_and_scaled() -> None:
    fused, (features, targets) = head(hill()), inputs()
    loss = fused(features, targets)
    once = gradients(fused(features, targets), fused, features)
    thrice = torch.autograd.grad(3 * loss, fused.linear.weight, retain_graph=True)[0]
    again = torch.autograd.grad(loss, fused.linear.weight)[0]
    torch.testing.assert_close(again, once[1])
    torch.testing.assert_close(thrice, 3 * once[1])
    for _ in range(2):  # accumulation
        (fused(features, targets) / 2).backward()
    torch.testing.assert_close(fused.linear.weight.grad, once[1])


def test_second_derivatives_are_refused() -> None:
    fused, (features, targets) = head(hill()), inputs()
    (grad,) = torch.autograd.grad(fused(features, targets), features, create_graph=True)
    with pytest.raises(HilltopError, match="keeps only its first derivative"):
        grad.sum().backward()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 2e-2), (torch.float16, 3e-3)])
def test_autocast_gives_what_linear_and_loss_give(dtype: torch.dtype, tolerance: float) -> None:
    fused = head(hill(reduction="sum"), torch.float32)
    features, targets = inputs(torch.float32)
    with torch.autocast("cpu", dtype=dtype):
        actual, expected = fused(features, targets), as_a_whole(fused, features, targets)
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=0)
    exact = gradients(as_a_whole(fused, features, targets), fused, features)
    for one, other in zip(gradients(actual, fused, features), exact, strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() < tolerance * other.norm()


def test_float16_keeps_gradients_that_are_too_small_for_it() -> None:
    fused = head(hill(reduction="sum"), torch.float32)
    with torch.no_grad():
        fused.linear.bias.fill_(-11.0)  # grads near 1e-9
        fused.linear.weight.mul_(0.1)
    features, _ = inputs(torch.float32)
    nothing = torch.zeros(ROWS, CLASSES)
    with torch.autocast("cpu", dtype=torch.float16):
        actual = gradients(fused(features, nothing), fused, features)
    exact = gradients(as_a_whole(fused, features, nothing), fused, features)
    for one, other in zip(actual, exact, strict=True):
        assert (one - other).norm() < 0.02 * other.norm()


def test_a_model_in_bfloat16_gets_gradients_of_its_own_dtype() -> None:
    fused = head(hill(reduction="sum"), torch.bfloat16)
    features, targets = inputs(torch.bfloat16)
    found = gradients(fused(features, targets), fused, features)
    exact = head(hill(reduction="sum"))
    exact.load_state_dict(fused.state_dict())
    wide = features.detach().double().requires_grad_()
    wanted = gradients(exact(wide, targets), exact, wide)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == torch.bfloat16
        assert (one - other).norm() < 0.03 * other.norm()


class Storages(TorchDispatchMode):
    """Notes the size and the place of every tensor that an operation returns."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[int, set[int]] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        for one in result if isinstance(result, tuple | list) else [result]:
            if isinstance(one, Tensor):
                storage = one.untyped_storage()
                self.places.setdefault(storage.nbytes() // 4, set()).add(storage.data_ptr())
        return result


def test_logits_are_never_there_and_the_weights_gradient_is_made_once() -> None:
    classes = 900
    fused = FusedLinearLoss(INPUTS, classes, loss=hill())
    features = torch.randn(ROWS, INPUTS, requires_grad=True)
    with Storages() as storages:
        fused(features, [[number] for number in range(ROWS)]).backward()
    weight = storages.places.pop(fused.linear.weight.numel())
    assert fused.linear.weight.grad is not None
    assert weight == {fused.linear.weight.data_ptr(), fused.linear.weight.grad.data_ptr()}
    assert max(storages.places) == classes  # the bias; logits would be 6,300


def test_the_watch_counts_one_step_a_batch_and_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    fused = head(hill())
    with torch.no_grad():
        fused.linear.bias.fill_(6.0)
    many = torch.randn(100, INPUTS, dtype=torch.float64)  # enough pairs in one part
    nothing: list[list[int]] = [[] for _ in range(100)]
    monkeypatch.setattr(linear_parts, "_ENTRIES", 1000)
    for _ in range(9):
        fused(many, nothing)
    assert fused.loss.watch is not None
    assert fused.loss.watch.steps == 9
    with pytest.warns(HilltopWarning, match="Training is going flat: after 10 steps"):
        fused(many, nothing)


def test_torch_func_sees_the_same_gradient() -> None:
    fused, (features, targets) = head(hill()), inputs()
    parameters = dict(fused.named_parameters())

    def value(given: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(fused, given, (features.detach(), targets))

    found = torch.func.grad(value)({name: tensor.detach() for name, tensor in parameters.items()})
    expected = gradients(fused(features, targets), fused, features)[1:]
    torch.testing.assert_close(list(found.values()), expected)


WORKER = Path(__file__).with_name("fused_ddp_worker.py")


@pytest.mark.slow
@pytest.mark.distributed
def test_distributed_data_parallel_gives_the_gradient_of_the_whole_batch(tmp_path: Path) -> None:
    out = tmp_path / "gradient.pt"
    run_forked(WORKER, out, processes=2)
    from tests.losses.engine.fused_ddp_worker import full_batch_gradients

    torch.testing.assert_close(torch.load(out), full_batch_gradients())


def test_a_compiled_model_goes_through_the_head_and_gives_the_same() -> None:
    torch.compiler.reset()
    fused, (features, targets) = head(hill()), inputs()
    model = torch.compile(fused, backend="aot_eager")
    torch.testing.assert_close(
        gradients(model(features, targets), fused, features),
        gradients(fused(features, targets), fused, features),
    )
