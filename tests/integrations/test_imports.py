"""Importing is cheap, and what is not installed is named with its extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hilltop.integrations
from hilltop.errors import install_command


def python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_package_imports_no_other_library() -> None:
    done = python(
        "import sys, hilltop.integrations\n"
        "libraries = ('torch', 'sklearn', 'scipy', 'transformers', 'lightning', 'skorch')\n"
        "print([name for name in libraries if name in sys.modules])\n"
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_the_estimator_needs_no_library_but_scikit_learn_and_hf_loss_not_even_that() -> None:
    absent = (
        *("pyarrow", "yaml", "cyclopts", "timm", "torchvision"),
        *("lightning_fabric", "transformers"),
    )
    done = python(
        f"import sys\nfor name in {absent}: sys.modules[name] = None\n"
        "from hilltop.integrations import HilltopClassifier\n"
        "HilltopClassifier(epochs=1).fit([[0.0], [1.0]], [[0, 1], [1, 0]])\n"
    )
    assert done.returncode == 0, done.stderr
    done = python(
        "import sys\nfor name in ('sklearn', 'transformers', 'numpy'): sys.modules[name] = None\n"
        "import torch\n"
        "from hilltop.integrations import hf_loss\n"
        "from hilltop.losses import hill\n"
        "hf_loss(hill())((torch.zeros(1, 2),), torch.zeros(1, 2))\n"
    )
    assert done.returncode == 0, done.stderr


def test_fabric_is_imported_without_torchmetrics() -> None:
    """It costs three times as much as torch where transformers and torchvision are installed."""
    done = python(
        "import sys; from hilltop.training.distributed import launch\n"
        "print(launch('32').world_size, 'torchmetrics' in sys.modules)\n"
    )
    assert done.stdout.split() == ["1", "False"], done.stderr


@pytest.mark.parametrize(
    ("absent", "code", "sentence"),
    [
        (
            "sklearn",
            "from hilltop.integrations import HilltopClassifier",
            "hilltop.integrations.HilltopClassifier needs the package 'sklearn'."
            f" Install it with: {install_command('sklearn')}",
        ),
        (
            "transformers",
            "from hilltop.integrations import hf_epochs; import hilltop.losses as losses;"
            " hf_epochs(losses.splc())",
            f"hf_epochs needs the package 'transformers'. Install it with: {install_command('hf')}",
        ),
    ],
)
def test_an_absent_library_is_named_with_its_extra(absent: str, code: str, sentence: str) -> None:
    done = python(
        f"import sys; sys.modules[{absent!r}] = None\n"
        f"try:\n    {code}\nexcept ImportError as error:\n    print(error)\n"
    )
    assert done.stdout.strip() == sentence, done.stderr


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("from hilltop.missing import Calibrator", "data"),
        ("from hilltop.training import train", "train"),
    ],
)
def test_a_door_that_needs_more_than_torch_says_what_to_install(line: str, extra: str) -> None:
    done = python(
        "import sys; sys.modules['numpy'] = sys.modules['pyarrow'] = None\n"
        f"try:\n    {line}\nexcept ImportError as error:\n    print(error)\n"
    )
    assert "needs the package '" in done.stdout, done.stderr
    assert done.stdout.strip().endswith(install_command(extra))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'HiltopClassifier'"):
        _ = hilltop.integrations.HiltopClassifier
