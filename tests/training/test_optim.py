"""Learning rates of model and loss."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hilltop.losses import Loss, build
from hilltop.models import FeatureHead
from hilltop.training.learner import RowAdamW, build_optimizer, build_schedule
from tests.losses.conftest import label_stats


def prepared(name: str, **options: object) -> Loss:
    loss = build(name, **options)
    loss.prepare(label_stats(3, images=20))
    return loss


def test_estimates_of_role_learn_ten_times_faster_through_the_whole_cycle() -> None:
    model, loss = nn.Linear(4, 3), prepared("role")
    optimizer = build_optimizer(model, loss, learning_rate=0.01, weight_decay=0.1)
    schedule = build_schedule(optimizer, steps=20, warmup=0.2)
    groups = optimizer.param_groups
    assert [len(group["params"]) for group in groups] == [1, 1, 1]
    assert groups[2]["params"][0] is loss.moved
    assert groups[2]["weight_decay"] == 0
    rates = []
    for _ in range(20):
        rates.append(groups[0]["lr"])
        assert groups[2]["lr"] == pytest.approx(10 * groups[0]["lr"])
        optimizer.step(), schedule.step()
    assert max(rates) == pytest.approx(0.01)


@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.2, 0.25, 0.5, 1.0])
def test_a_cycle_may_have_any_number_of_steps(warmup: float) -> None:
    for steps in range(1, 21):
        optimizer = torch.optim.AdamW([nn.Parameter(torch.zeros(1))], lr=0.01)
        schedule, rates = build_schedule(optimizer, steps=steps, warmup=warmup), []
        for _ in range(steps):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step(), schedule.step() if len(rates) < steps else None
        assert 0 < max(rates) <= 0.01 + 1e-9


def test_a_loss_without_parameters_adds_no_group() -> None:
    optimizer = build_optimizer(
        nn.Linear(4, 3), build("hill"), learning_rate=0.01, weight_decay=0.1
    )
    assert len(optimizer.param_groups) == 2


def test_a_learned_label_frequency_learns_at_the_rate_of_the_model() -> None:
    loss = build("scar_likelihood", label_frequency=None)
    optimizer = build_optimizer(nn.Linear(4, 3), loss, learning_rate=0.01, weight_decay=0.1)
    assert optimizer.param_groups[2]["lr"] == 0.01
    assert optimizer.param_groups[2]["params"] == list(loss.parameters())


def test_between_two_visits_an_estimate_is_moved_by_its_own_gradient_alone() -> None:
    """Adam goes on moving a row after its batch, in one direction; a row never seen stays."""
    model, loss = nn.Linear(4, 3), prepared("role", labels_per_image=1.0)
    optimizer = build_optimizer(model, loss, learning_rate=0.01, weight_decay=0.0)
    inputs, targets = torch.randn(20, 4), torch.zeros(20, 3)
    first, rest = torch.arange(5), torch.arange(5, 15)
    path = []
    for rows in (first, *rest.split(1)):
        loss(model(inputs[rows]), targets[rows], index=rows).backward()
        optimizer.step(), optimizer.zero_grad()
        path.append(loss.moved.detach()[first].clone())
    steps = torch.stack(path).diff(dim=0)
    assert (steps.sign() == path[0].sign()).all()
    assert (steps.abs().diff(dim=0) < 0).all(), "it fades"
    assert not loss.moved[15:].any()


def test_a_head_learns_faster_through_the_whole_cycle_with_the_same_penalty() -> None:
    backbone, head = nn.Linear(4, 6), nn.Linear(6, 3)
    optimizer = build_optimizer(
        nn.Sequential(backbone, head),
        build("hill"),
        learning_rate=0.01,
        weight_decay=0.1,
        head=list(head.parameters()),
        head_rate=10,
    )
    schedule = build_schedule(optimizer, steps=20, warmup=0.2)
    groups = optimizer.param_groups
    assert [group["params"][0] for group in groups] == [*backbone.parameters(), *head.parameters()]
    assert [group["weight_decay"] for group in groups] == [0.1, 0, 0.1, 0]
    for _ in range(20):
        slow, _, fast, fast_bias = (group["lr"] for group in groups)
        assert fast == fast_bias == pytest.approx(10 * slow)
        optimizer.step(), schedule.step()


def test_with_sizes_by_row_all_weights_of_a_class_move_in_proportion_to_their_gradients() -> None:
    weight = nn.Parameter(torch.zeros(2, 3))
    optimizer = RowAdamW([{"params": [weight], "rows": True}], lr=0.1)
    weight.grad = torch.tensor([[1.0, 2.0, 4.0], [1e-3, 0.0, -1e-3]])
    optimizer.step()
    size = weight.grad.square().mean(dim=1, keepdim=True).sqrt()
    torch.testing.assert_close(weight.detach(), -0.1 * weight.grad / size, rtol=1e-4, atol=0)


def test_without_rows_it_is_adamw() -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(4, 3, generator=generator)
    mine, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    both = (
        (mine, RowAdamW([mine], lr=0.05, weight_decay=0.3)),
        (theirs, torch.optim.AdamW([theirs], lr=0.05, weight_decay=0.3)),
    )
    for _ in range(7):
        grad = torch.randn(4, 3, generator=generator)
        for parameter, optimizer in both:
            parameter.grad = grad.clone()
            optimizer.step()
    torch.testing.assert_close(mine, theirs)


def test_a_head_on_features_has_sizes_by_class_and_a_network_has_not() -> None:
    head = FeatureHead(4, 3, hidden=5)
    optimizer = build_optimizer(head, build("bce"), learning_rate=0.01, weight_decay=0.1)
    assert isinstance(optimizer, RowAdamW)
    by_row = [group["params"] for group in optimizer.param_groups if group["rows"]]
    assert len(by_row) == 1
    assert by_row[0][0] is head.last.weight
    learning = {id(item) for group in optimizer.param_groups for item in group["params"]}
    assert learning == {id(item) for item in head.parameters()}
    network = build_optimizer(nn.Linear(4, 3), build("bce"), learning_rate=0.01, weight_decay=0.1)
    assert isinstance(network, torch.optim.Adam)
