"""For all tests: a fixed seed, and names that examples in docstrings use without importing."""

import importlib.util
from typing import Any

import pytest
import torch

import hilltop.losses

# The plugin imports FiftyOne, which the tests of other parts do without.
collect_ignore = (
    [] if importlib.util.find_spec("fiftyone") else ["src/hilltop/integrations/fiftyone_plugin.py"]
)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _names_for_examples(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace["torch"] = torch
    doctest_namespace |= vars(hilltop.losses)
