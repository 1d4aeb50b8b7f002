"""A loss that stands for another passes the whole protocol on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from hilltop.losses import Auto, LabelStats, Loss, LossWrapper, RowWeighted, role
from hilltop.losses.base import PairBatch
from hilltop.losses.capabilities import Capabilities
from tests.losses.conftest import label_stats

# What a loss does with its own watch and its own options; a wrapper has neither.
OWN = {"start_watch", "by_autograd", "one_pass"}
PROTOCOL = sorted(
    name for name, value in vars(Loss).items() if callable(value) and not name.startswith("_")
)
ASKED = sorted(set(PROTOCOL) - OWN)


def wrappers() -> list[type[LossWrapper]]:
    found = [LossWrapper]
    for kind in found:
        found += kind.__subclasses__()
    return [kind for kind in found if kind.__module__.startswith("hilltop.")]


class Answers(Loss):
    """Every method answers in a way that no other loss does, and remembers that it was asked."""

    def __init__(self) -> None:
        super().__init__(reduction="none")
        self.asked: list[str] = []
        self.own = nn.Parameter(torch.zeros(1))


def _answer(name: str) -> Callable[..., object]:
    def method(self: Answers, *args: object, **options: object) -> object:
        self.asked.append(name)
        if name == "init_loss":
            return self
        return torch.full((2, 3), 7.0) if name == "forward" else f"{name} of the inner loss"

    return method


for _name in ASKED:
    setattr(Answers, _name, _answer(_name))


def arguments(name: str) -> tuple[object, ...]:
    pair = torch.zeros(2, 3), torch.zeros(2, 3)
    return {
        "forward": pair,
        "pseudo_labels": pair,
        "batch": pair,
        "set_epoch": (3,),
        "prepare": (label_stats(3),),
        "decision_threshold": (torch.zeros(2, 3),),
        "check_targets": pair[1:],
        **dict.fromkeys(
            ("entries", "evaluate", "kernel", "find_pseudo_labels"), (PairBatch(*pair),)
        ),
    }.get(name, ())


def wrapped(kind: type[LossWrapper], inner: Loss) -> LossWrapper:
    if kind is RowWeighted:
        return RowWeighted(inner, torch.ones(2))
    wrapper = Auto() if kind is Auto else kind(inner, reduction="sum")
    wrapper.wrap(inner)
    return wrapper


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("kind", wrappers(), ids=lambda kind: kind.__name__)
def test_every_method_of_the_protocol_reaches_the_loss_within(
    kind: type[LossWrapper], name: str
) -> None:
    if kind is Auto and name in ("describe", "prepare"):  # it chooses, and says what
        return
    inner = Answers()
    wrapper = wrapped(kind, inner)
    options = {"index": torch.arange(2)} if name in ("forward", "pseudo_labels") else {}
    getattr(wrapper, name)(*arguments(name), **options)
    assert inner.asked == [name]


@pytest.mark.parametrize("kind", wrappers(), ids=lambda kind: kind.__name__)
def test_a_wrapper_declares_what_the_loss_within_declares(kind: type[LossWrapper]) -> None:
    for name in Capabilities.__annotations__:
        inner = Answers()
        assert getattr(wrapped(kind, inner), name) == getattr(kind, name)
        setattr(inner, name, True)
        assert getattr(wrapped(kind, inner), name)


def test_the_state_of_the_loss_within_is_that_of_the_wrapper() -> None:
    loss, other = (RowWeighted(role(reduction="none"), torch.ones(4)) for _ in range(2))
    stats = LabelStats.of(torch.eye(4))
    loss.prepare(stats), other.prepare(stats)
    with torch.no_grad():
        loss.inner.moved.normal_()
    other.load_state_dict(loss.state_dict())
    torch.testing.assert_close(other.inner.moved, loss.inner.moved)


def test_weights_for_rows_leave_the_learning_rate_of_estimates_as_it_was() -> None:
    loss = role(reduction="none")
    weighted = RowWeighted(loss, torch.ones(4))
    weighted.prepare(LabelStats.of(torch.eye(4)))
    ((parameters, factor),) = weighted.parameter_groups()
    assert factor == 10.0
    assert parameters[0] is loss.moved
    scores = torch.tensor([[0.2, 0.9]])
    assert weighted.decision_threshold(scores) == pytest.approx(0.6)


def test_estimates_start_from_the_same_place_with_row_weights_of_one() -> None:
    def train(loss: Loss, estimates: Loss) -> Tensor:
        logits, targets, rows = torch.zeros(4, 4), torch.eye(4), torch.arange(4)
        loss.prepare(LabelStats.of(targets))
        groups = [{"params": own, "lr": 0.01 * rate} for own, rate in loss.parameter_groups()]
        optimizer = torch.optim.Adam(groups)
        for _ in range(5):
            optimizer.zero_grad()
            loss(logits.requires_grad_(), targets, index=rows).backward()
            optimizer.step()
        return estimates.moved.detach()

    plain, entries = role(reduction="sum"), role(reduction="none")
    expected = train(plain, plain)
    torch.testing.assert_close(train(RowWeighted(entries, torch.ones(4)), entries), expected)
