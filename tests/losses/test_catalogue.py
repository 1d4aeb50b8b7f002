"""The losses by name: one set of options by every way, and nothing imported that is not needed."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import typing

import pytest
import torch

import hilltop.losses
from hilltop.losses import LOSSES, build
from hilltop.losses.catalogue import Common
from tests.losses.conftest import REMEMBERING, batch

VALUES = {
    "reduction": "sum",
    "class_weight": [1.0, 2.0, 0.5, 1.0, 3.0],
    "pos_weight": 2.0,
    "watch": False,
    "check": True,
    "safe_start": False,
    "label_smoothing": 0.1,
}


@pytest.mark.parametrize("option", sorted(VALUES))
@pytest.mark.parametrize("name", list(LOSSES))
def test_a_preset_takes_the_same_options_called_and_built_by_name(name: str, option: str) -> None:
    given = {option: VALUES[option]}
    if option not in LOSSES.options(name):
        for make in (LOSSES.builder(name), lambda **options: build(name, **options)):
            with pytest.raises(TypeError, match=option):
                make(**given)
        return
    called, built = LOSSES.builder(name)(**given), build(name, **given)
    assert repr(called) == repr(built)
    if name not in (*REMEMBERING, "gr"):  # these have to be prepared
        torch.testing.assert_close(called(*batch()), built(*batch()))


def test_every_common_option_is_tried() -> None:
    assert set(VALUES) == set(typing.get_type_hints(Common)) == set(LOSSES.options("bce"))


def test_label_smoothing_by_name_smooths() -> None:
    logits, targets = batch()
    smooth = build("hill", label_smoothing=0.1, reduction="none")(logits, targets)
    soft = build("hill", reduction="none")(logits, targets * 0.8 + 0.1)
    torch.testing.assert_close(smooth, soft)


def test_every_loss_is_public_under_its_name() -> None:
    for name in LOSSES:
        assert getattr(hilltop.losses, name) is LOSSES.builder(name)
        assert name in hilltop.losses.__all__
    assert len(set(hilltop.losses.__all__)) == len(hilltop.losses.__all__)
    assert all(hasattr(hilltop.losses, name) for name in hilltop.losses.__all__)


def test_every_loss_says_what_it_assumes_and_when_to_use_it() -> None:
    for name in LOSSES:
        said = inspect.getdoc(LOSSES.builder(name)) or ""
        assert re.search(r"^Assumption:\n    .*unlabelled", said, re.M | re.I), name
        assert re.search(r"^When to use:\n    \S", said, re.M), name


def test_importing_the_losses_does_not_import_the_compiler_of_torch() -> None:
    code = (
        "import sys, torch; before = set(sys.modules); import hilltop.losses;"
        " new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        " assert 'torch._dynamo' not in sys.modules, 'dynamo';"
        " assert not new & {'sympy', 'triton', 'numpy', 'pandas', 'sklearn', 'timm'}, new"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
