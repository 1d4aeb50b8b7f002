"""How labels were lost, on real features and the reduced lists released with the paper."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from hilltop.data import LabelTable, State
from hilltop.losses import CountLikelihood
from hilltop.studies.advise import simulation_of

COCO = Path(__file__).parents[4] / "shared" / "data" / "coco16k_lite0.npz"


@pytest.mark.slow
@pytest.mark.skipif(not COCO.is_file(), reason="the COCO features are not here")
@pytest.mark.parametrize(("name", "r"), [("Y_075left", "1/2"), ("Y_04left", "4/5")])
def test_rule_and_share_of_the_lists_of_the_paper_are_found_out(name: str, r: str) -> None:
    content = np.load(COCO)
    rows = slice(0, 3000)  # of the training part
    reduced, full = content[name][rows], content["Y_full"][rows]
    table = LabelTable.from_coo(
        [str(row) for row in range(3000)],
        [str(column) for column in range(80)],
        *np.nonzero(reduced),
        State.PRESENT,
        unlisted=State.UNKNOWN,
    )
    found = simulation_of(table, torch.from_numpy(content["X"][rows]), seed=0)
    assert isinstance(found.loss, CountLikelihood)
    assert 1 - found.loss.rule.left_ratio == Fraction(r)
    assert found.share == pytest.approx(reduced.sum() / full.sum(), abs=0.04)
