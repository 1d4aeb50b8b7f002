"""HilltopClassifier: what it says of options and labels that cannot be meant."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from hilltop.errors import ArgumentError, ArgumentTypeError
from hilltop.integrations import HilltopClassifier
from hilltop.losses import hill
from tests.integrations.conftest import Generated

Quick = partial(HilltopClassifier, epochs=2, random_state=0)


@pytest.mark.parametrize(
    ("options", "labels", "message"),
    [
        ({"loss": "hil"}, None, "Unknown loss 'hil'. Did you mean 'hill'?"),
        ({"loss": hill(), "loss_options": {"lam": 2}}, None, "loss_options belong to a loss that"),
        ({"unlisted": "missing"}, None, "unlisted must be one of 'unknown', 'absent'"),
        ({"epochs": 0}, None, "epochs must be at least 1, but got 0"),
        ({"early_stopping": True, "validation_fraction": 0.001}, None, "leaves nothing to learn"),
        ({}, -1, "A matrix y must hold 1 .present., 0 .*but got -1"),
        ({}, 0.5, "but got 0.5"),
        ({}, np.inf, "but got inf"),
    ],
)
def test_mistakes_are_named(
    small: Generated, options: dict[str, Any], labels: float | None, message: str
) -> None:
    given = small.Y.astype(float)
    if labels is not None:
        given[3, 1] = labels
    with pytest.raises(ArgumentError, match=message):
        Quick(**options).fit(small.X, given)


def test_lists_of_names_are_told_how_to_become_a_matrix(small: Generated) -> None:
    lists = [["cat", "dog"][: row % 3] for row in range(len(small.X))]
    with pytest.raises(ArgumentError, match="MultiLabelBinarizer"):
        Quick().fit(small.X, lists)


def test_a_matrix_without_a_zero_is_refused(small: Generated) -> None:
    with pytest.raises(ArgumentError, match="give 0, not NaN, where no label was written down"):
        Quick().fit(small.X, np.where(small.Y == 1, 1.0, np.nan))


def test_an_unknown_option_of_a_loss_is_a_type_error(small: Generated) -> None:
    with pytest.raises(ArgumentTypeError, match="The loss 'hill' has no option 'tau'"):
        Quick("hill", loss_options={"tau": 1}).fit(small.X, small.Y)
