"""Names of the packages before: they work for one release and name what replaces them."""

from __future__ import annotations

import importlib

import pytest

from hilltop import missing


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("hilltop.calibration", "TruthCalibrator", "Calibrator"),
        ("hilltop.calibration", "TruthModel", "MissingLabelModel"),
        ("hilltop.calibration", "binomial_interval", "proportion_interval"),
        ("hilltop.metrics.incomplete", "IncompleteTest", "Evaluation"),
        ("hilltop.metrics.incomplete", "MetricEstimate", "Interval"),
    ],
)
def test_an_old_name_is_the_new_thing_and_warns(module: str, old: str, new: str) -> None:
    room = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=f"{old}.*hilltop.missing.{new}"):
        found = getattr(room, old)
    assert found is getattr(missing, new)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = room.nothing
