"""Names of the release before: they work, and warn with the new name."""

from __future__ import annotations

import pytest
import torch

import hilltop.losses
from hilltop.losses import (
    LOSSES,
    HillNegative,
    LogNegative,
    LogPositive,
    MultiLabelLoss,
    build,
    hill,
    init_head,
    init_head_prior,
    scar_likelihood,
)
from tests.losses.conftest import batch


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kept_independently", "scar_likelihood"),
        ("kept_by_count", "count_likelihood"),
        ("KeptIndependently", "ScarLikelihood"),
        ("KeptByCount", "CountLikelihood"),
        ("KeptPositive", "ScarPositive"),
        ("KeptNegative", "ScarNegative"),
        ("KeepRate", "LabelFrequency"),
        ("JudgedCorrection", "EmaTeacher"),
    ],
)
def test_an_old_name_is_the_new_thing_and_warns(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"'{old}' is deprecated .* Use '{new}'"):
        found = getattr(hilltop.losses, old)
    assert found is getattr(hilltop.losses, new)
    assert old not in hilltop.losses.__all__


def test_old_losses_and_options_can_be_built_by_name() -> None:
    with pytest.warns(DeprecationWarning, match="is deprecated") as caught:
        loss = build("kept_independently", keep=0.3)
    said = {str(one.message) for one in caught}
    assert any("'kept_independently'" in message for message in said)
    assert any("'keep'" in message and "'label_frequency'" in message for message in said)
    assert repr(loss) == repr(scar_likelihood(label_frequency=0.3))
    assert "kept_by_count" in LOSSES
    assert "kept_by_count" not in list(LOSSES)


def test_old_arguments_are_passed_on() -> None:
    logits, targets = batch()
    mark = torch.rand(targets.shape) < 0.5
    loss = build("splc")
    loss.set_epoch(2)
    with pytest.warns(DeprecationWarning, match="'observed' is deprecated"):
        old = loss(logits, targets, observed=mark)
    assert torch.equal(old, loss(logits, targets, verified=mark))
    likelihood = scar_likelihood()
    with pytest.warns(DeprecationWarning, match="'observed'"):
        posterior = likelihood.posterior(logits, targets, observed=mark)
    assert torch.equal(posterior, likelihood.posterior(logits, targets, verified=mark))
    head = torch.nn.Linear(3, 5)
    with pytest.warns(DeprecationWarning, match="'observed'"):
        init_head(head, hill(), targets, observed=mark)
    with pytest.warns(DeprecationWarning, match="'keep'"):
        init_head_prior(head, targets, keep=0.5)
    with pytest.warns(DeprecationWarning, match="'confirmed'"):
        parts = MultiLabelLoss(
            positive=LogPositive(), negative=HillNegative(), confirmed=LogNegative()
        )
    assert isinstance(parts.verified_negative, LogNegative)


def test_a_name_that_never_was_is_an_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'hull'"):
        hilltop.losses.hull  # noqa: B018
