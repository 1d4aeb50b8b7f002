"""For all tests: a fixed seed, and names that examples in docstrings use without importing."""

import os
from typing import Any

import pytest
import torch

import hilltop.losses

if (
    not torch.cuda.is_available()
):  # kernels for a GPU run on the CPU; Triton asks when it is imported
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _names_for_examples(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["torch"] = torch
    doctest_namespace |= vars(hilltop.losses)
