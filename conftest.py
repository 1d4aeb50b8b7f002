"""For all tests: a fixed seed, and names that examples in docstrings use without importing."""

from typing import Any

import pytest
import torch

import hilltop.losses


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _names_for_examples(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["torch"] = torch
    doctest_namespace |= vars(hilltop.losses)
