"""The safe start: when it begins and ends, what it computes, and that a swap does not hurt."""

from __future__ import annotations

import copy
import io
import math
import warnings
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from hilltop.errors import HilltopWarning
from hilltop.losses import (
    LOSSES,
    LabelStats,
    Loss,
    SafeStart,
    best_constant,
    build,
    hill,
    init_head,
    scar_likelihood,
)
from hilltop.metrics import mean_average_precision
from tests.forked import run_forked
from tests.losses.conftest import label_stats

SATURATING = [name for name in LOSSES if build(name).can_saturate]
RELEASED = {"asl_released", "splc_released"}
NEVER = {"asl", "asl_released"}  # they weigh confident negatives more than cross-entropy does


def sample(rows: int = 64, classes: int = 20, *, mean: float = 0.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = mean + torch.randn(rows, classes, generator=generator)
    return logits, (torch.rand(rows, classes, generator=generator) < 0.02).float()


def gradient(loss: nn.Module, logits: Tensor, targets: Tensor, **options: Tensor) -> Tensor:
    leaf = logits.clone().requires_grad_()
    loss(leaf, targets, **options).sum().backward()
    assert leaf.grad is not None
    return leaf.grad


def finish(loss: Loss, logits: Tensor, targets: Tensor, **options: Tensor) -> int:
    """Train on logits until the safe start is over, and return how many steps it took."""
    assert loss.safe_start is not None
    for step in range(1, 200):
        gradient(loss, logits, targets, **options)
        if loss.safe_start.over:
            return step
    raise AssertionError("The safe start does not end.")


def trained(name: str, **options: object) -> Loss:
    loss = build(name, **options)
    loss.prepare(label_stats(20))
    return loss


def test_losses_that_can_saturate_have_it_except_released_forms() -> None:
    for name in LOSSES:
        expected = name in SATURATING and name not in RELEASED
        assert isinstance(build(name).safe_start, SafeStart) == expected, name
        assert build(name, safe_start=False).safe_start is None, name
    for name in RELEASED:
        assert isinstance(build(name, safe_start=True).safe_start, SafeStart)


@pytest.mark.parametrize("reduction", ["mean", "sum", "batchmean", "none"])
@pytest.mark.parametrize("name", SATURATING)
def test_it_is_cross_entropy_and_in_a_slow_loop_that_of_shifted_logits_and_a_push(
    name: str, reduction: str
) -> None:
    """Written anew from the equation of SafeStart, entry by entry."""
    logits, targets = sample()
    targets[3, 4] = targets[5, :7] = torch.nan
    known, labels = ~targets.isnan(), targets.nan_to_num()
    loss = trained(name, reduction=reduction, safe_start=True, watch=False)
    count = {"mean": known.sum(), "batchmean": len(logits)}.get(reduction, 1)

    def check(shift: float, push: float, end: float) -> None:
        leaf = logits.clone().requires_grad_()
        value = loss(leaf, targets)
        value.sum().backward()
        entries = F.binary_cross_entropy_with_logits(logits - shift, labels, reduction="none")
        entries = torch.where(known, entries + push * (logits[known].mean() - end), 0.0)
        slopes = torch.where(known, torch.sigmoid(logits - shift) - labels + push, 0.0)
        expected = entries if reduction == "none" else entries.sum() / count
        torch.testing.assert_close(value.detach(), expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(leaf.grad, slopes / count, rtol=1e-4, atol=1e-6)

    for _ in range(50):
        check(0.0, 0.0, 0.0)
    rate = float(targets[known].mean())
    end, low, high = math.log(rate / (1 - rate)), 0.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        above = torch.sigmoid(logits[known].double() - middle).mean() > rate
        low, high = (middle, high) if above else (low, middle)
    check(low, min(1 / (1 + math.exp(-end - low)) - rate, 3 * rate), end)


def informed(labelled: int = 3, *, above_half: int = 0, top: float = 0.5) -> tuple[Tensor, Tensor]:
    """Logits at the label rate; of the six most confident some are labelled."""
    logits, targets = sample(mean=-4.6)
    flat, labels = logits.view(-1), targets.view(-1)
    flat[labels.nonzero()[:labelled, 0]] = top
    unlabelled = (labels == 0).nonzero()[:, 0]
    flat[unlabelled[: 6 - labelled]] = top
    flat[unlabelled[6 : 6 + above_half]] = 0.2
    return logits, targets


@pytest.mark.parametrize("prepared", [False, True])
def test_another_training_with_the_same_loss_begins_anew(prepared: bool) -> None:
    loss = hill()
    assert loss.safe_start is not None
    assert loss.watch is not None
    if prepared:  # the head of both trainings is at the label rate
        loss.safe_start.skip()
    else:
        finish(loss, *informed())
    loss.set_epoch(0)
    loss.set_epoch(7)
    assert loss.safe_start.over, "epochs that follow change nothing"
    loss.set_epoch(0)
    assert loss.safe_start.over == prepared
    logits, targets = sample()
    slopes = gradient(loss, logits, targets)
    assert loss.watch.steps == 1
    expected = gradient(hill(safe_start=False) if prepared else nn.BCEWithLogitsLoss(), *sample())
    assert torch.equal(slopes, expected)
    resumed = hill()
    resumed.load_state_dict(loss.state_dict())
    resumed.set_epoch(0)
    assert resumed.safe_start.over == prepared


@pytest.mark.parametrize("name", sorted(set(SATURATING) - NEVER))
def test_where_labels_are_missing_the_loss_becomes_its_equation_to_the_bit(name: str) -> None:
    loss, equation = (trained(name, safe_start=choice, watch=False) for choice in (True, False))
    logits, targets = informed()
    for each in (loss, equation):
        each.set_epoch(1)
    rows = {"index": torch.arange(len(logits))}
    high = logits + 4
    assert not torch.equal(gradient(loss, high, targets, **rows), gradient(equation, high, targets))
    finish(loss, logits, targets, **rows)
    for seen in (logits, high):
        assert torch.equal(gradient(loss, seen, targets), gradient(equation, seen, targets))


def test_a_correction_is_waited_for_where_the_negative_term_forgives_nothing() -> None:
    loss, (logits, targets) = build("splc"), informed()
    assert loss.safe_start is not None
    for _ in range(70):
        gradient(loss, logits, targets)
    assert int(loss.safe_start.stage) == 0
    loss.set_epoch(1)
    assert finish(loss, logits, targets) == 1


def test_it_goes_on_while_many_unlabelled_entries_are_above_one_half() -> None:
    loss = hill()
    assert loss.safe_start is not None
    for _ in range(60):
        gradient(loss, *informed(above_half=200))
    assert int(loss.safe_start.stage) == 0
    assert finish(loss, *informed()) > 1


def test_nothing_is_decided_in_the_first_50_steps() -> None:
    assert finish(hill(), *informed()) == 51


@pytest.mark.parametrize(
    ("labelled", "above_half", "stage"), [(3, 700, 1), (6, 700, 0), (3, 200, 0)]
)
def test_logits_are_shifted_in_slow_loops_that_have_not_learned_the_labels(
    labelled: int, above_half: int, stage: int
) -> None:
    loss, (logits, targets) = hill(watch=False), informed(labelled, above_half=above_half)
    cross_entropy = nn.BCEWithLogitsLoss()
    for step in range(70):
        same = torch.equal(
            gradient(loss, logits, targets), gradient(cross_entropy, logits, targets)
        )
        assert same == (step < 50 or stage == 0)
    assert loss.safe_start is not None
    assert int(loss.safe_start.stage) == stage


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize(
    ("name", "labelled"),
    [*((name, count) for name in SATURATING for count in (6, 0)), *((name, 3) for name in NEVER)],
)
def test_with_complete_labels_or_without_knowledge_it_is_cross_entropy(
    name: str, labelled: int, reduction: str, caplog: pytest.LogCaptureFixture
) -> None:
    loss = trained(name, safe_start=True, reduction=reduction)
    cross_entropy = nn.BCEWithLogitsLoss(reduction=reduction)
    logits, targets = informed(labelled)
    for _ in range(52):
        assert torch.equal(
            gradient(loss, logits, targets), gradient(cross_entropy, logits, targets)
        )
    assert "stays with cross-entropy" in caplog.text
    for seen in (logits, logits + 4, logits - 2):
        torch.testing.assert_close(
            gradient(loss, seen, targets), gradient(cross_entropy, seen, targets)
        )
    resumed = trained(name, safe_start=True, reduction=reduction)
    resumed.load_state_dict(loss.state_dict())
    assert torch.equal(gradient(resumed, logits, targets), gradient(loss, logits, targets))


def test_a_model_that_is_surer_than_it_is_right_is_not_trusted() -> None:
    loss, (logits, targets) = hill(), informed(top=3.0)
    for _ in range(52):
        gradient(loss, logits, targets)
    assert loss.safe_start is not None
    assert int(loss.safe_start.stage) == 3


@pytest.mark.parametrize("watch", [True, False])
def test_an_equation_that_saturates_hands_back_unless_init_head_was_called(watch: bool) -> None:
    logits, targets = informed()
    loss, prepared = hill(watch=watch), hill(watch=watch)
    assert loss.safe_start is not None
    assert prepared.safe_start is not None
    init_head(nn.Linear(8, 20), prepared, targets)
    finish(loss, logits, targets)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for each in (loss, prepared):
            for _ in range(60):
                gradient(each, logits + 9, targets)
    assert len(caught) == 2 * watch
    seen = gradient(loss, logits, targets)
    torch.testing.assert_close(seen, gradient(nn.BCEWithLogitsLoss(), logits, targets))
    assert prepared.safe_start.over


def test_a_head_that_was_initialised_needs_none() -> None:
    _, targets = sample()
    for name in sorted(set(SATURATING) - {"gr"}):
        loss = trained(name, safe_start=True)
        torch.manual_seed(0)
        head = init_head(nn.Linear(8, 20), loss, targets)
        features = torch.randn(64, 8)
        equation = trained(name, safe_start=False)
        logits = head(features).detach()
        assert torch.equal(gradient(loss, logits, targets), gradient(equation, logits, targets)), (
            name
        )


def test_a_start_near_the_constant_of_the_loss_alone_is_no_reason_to_leave_it_out() -> None:
    """At a sixth of labels Hill is least near logit 0, where torch's own start may be by chance."""
    logits, _ = sample(mean=-0.6)
    targets = (torch.rand(logits.shape, generator=torch.Generator().manual_seed(1)) < 1 / 6).float()
    assert logits.mean() < best_constant(hill(), targets)
    loss = hill()
    gradient(loss, logits, targets)
    assert loss.safe_start is not None
    assert not loss.safe_start.over


def test_what_init_head_left_out_stays_left_out_when_a_run_is_prepared() -> None:
    _, targets = sample()
    loss = hill()
    init_head(nn.Linear(8, 20), loss, targets)
    loss.prepare(LabelStats.of(targets))
    assert loss.safe_start is not None
    assert loss.safe_start.over


def test_only_training_steps_begin_or_end_it() -> None:
    loss, (logits, targets) = hill(), sample()
    equation = hill(safe_start=False)
    with torch.no_grad():
        assert torch.equal(loss(logits, targets), equation(logits, targets))
    torch.testing.assert_close(
        torch.func.grad(loss)(logits, targets), torch.func.grad(equation)(logits, targets)
    )
    assert torch.equal(gradient(loss.eval(), logits, targets), gradient(equation, logits, targets))
    assert loss.safe_start is not None
    assert not loss.safe_start.sums.any()
    gradient(loss.train(), logits, targets)
    assert loss.safe_start.sums.any()


def test_the_equation_can_be_asked_for_at_any_time() -> None:
    loss, (logits, targets) = hill(), sample()
    leaf = logits.clone().requires_grad_()
    loss.evaluate(loss.batch(leaf, targets)).backward()
    assert leaf.grad is not None
    assert torch.equal(leaf.grad, gradient(hill(safe_start=False), logits, targets))


def test_it_is_saved_resumed_and_copied() -> None:
    high, targets = sample()
    running, over = hill(), hill()
    for _ in range(3):
        gradient(running, high, targets)
    gradient(over, high - 5, targets)
    for loss in (running, over):
        stored = io.BytesIO()
        torch.save(loss.state_dict(), stored)
        stored.seek(0)
        resumed = hill()
        resumed.load_state_dict(torch.load(stored))
        for other in (resumed, copy.deepcopy(loss)):
            assert torch.equal(
                gradient(other, high, targets), gradient(copy.deepcopy(loss), high, targets)
            )


def test_a_state_of_the_release_before_is_past_it_and_other_losses_load_its_state() -> None:
    loss = hill()
    loss.load_state_dict({"epoch": torch.tensor(4)})
    assert loss.safe_start is not None
    assert loss.safe_start.over
    build("bce").load_state_dict(hill().state_dict())


def test_another_run_begins_anew() -> None:
    loss, (logits, targets) = hill(), sample()
    finish(loss, *informed())
    assert loss.safe_start is not None
    loss.prepare(LabelStats.of(targets))
    gradient(loss, logits, targets)
    assert not loss.safe_start.over


def test_compiled_code_begins_and_ends_as_eager_code_does() -> None:
    torch.compiler.reset()
    eager, loss = hill(), hill()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for logits, targets in (sample(), *[informed()] * 55, sample()):
        torch.testing.assert_close(
            gradient(compiled, logits, targets), gradient(eager, logits, targets)
        )
    assert eager.safe_start is not None
    assert loss.safe_start is not None
    assert eager.safe_start.over
    assert not loss.safe_start.over  # compiled code does not wait to know
    loss.set_epoch(1)
    assert loss.safe_start.over


def test_a_head_that_is_slow_to_start_is_told_of_init_head() -> None:
    loss, (logits, targets) = hill(), sample()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(99):
            gradient(loss, logits, targets)
    with pytest.warns(HilltopWarning, match=r"The head starts slowly: after 100 steps .*init_head"):
        gradient(loss, logits, targets)


def test_weights_of_the_loss_count_during_it() -> None:
    logits, targets = sample()
    weight = torch.rand(20)
    plain, weighted = hill(reduction="none"), hill(reduction="none", class_weight=weight)
    entries = [loss(logits.clone().requires_grad_(), targets) for loss in (plain, weighted)]
    torch.testing.assert_close(entries[1], weight * entries[0], rtol=1e-4, atol=1e-5)


def learned(loss: nn.Module, rate: float, *, start: bool = False) -> float:
    """Train a linear head on drawn features with 40% of the labels, and return its mAP."""
    generator = torch.Generator().manual_seed(1)
    directions = torch.randn(30, 200, generator=generator)
    true = torch.rand(1600, 30, generator=generator) < 0.06
    noise = torch.randn(1600, 200, generator=generator)
    features = true.float() @ directions * 0.5 + noise
    features = (features - features.mean(dim=0)) / features.std(dim=0)
    left = (true & (torch.rand(true.shape, generator=generator) < 0.4)).float()
    torch.manual_seed(0)
    head = nn.Linear(200, 30)
    if start:
        assert isinstance(loss, Loss)
        init_head(head, loss, left[:1000])
    optimizer = torch.optim.Adam(head.parameters(), lr=rate)
    for _ in range(8):
        for rows in torch.randperm(1000).split(50):
            optimizer.zero_grad()
            loss(head(features[rows]), left[rows]).backward()
            optimizer.step()
    with torch.no_grad():
        scores = head(features[1000:])
    return 100 * mean_average_precision(scores.numpy(), true[1000:].numpy())


@pytest.mark.parametrize("rate", [3e-3, 1e-3, 3e-4])
def test_a_swap_of_one_line_does_not_hurt(rate: float) -> None:
    before = learned(nn.BCEWithLogitsLoss(), rate)
    for make in (hill, scar_likelihood):
        after = learned(make(watch=False), rate)
        assert after > before - 0.5, make.__name__


@pytest.mark.distributed
def test_processes_decide_alike_from_different_batches(tmp_path: Path) -> None:
    run_forked(Path(__file__).with_name("safe_start_worker.py"), tmp_path, processes=2)
    states = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    assert len({tuple(stages) for stages, _ in states}) == 1
    assert states[0][0][-1] == 2
    assert torch.equal(states[0][1], states[1][1])
