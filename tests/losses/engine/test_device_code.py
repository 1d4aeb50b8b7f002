"""The code of the GPU kernels, compiled for devices that are not here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from hilltop.losses.engine.count_device import MOST_CLASSES, lanes_can_be_read
from tests.processes import HANGING_S, run, start

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "gpu_code.py"
COUNTING = SCRIPT.with_name("gpu_count_code.py")
pytest.importorskip("triton", "3.3")  # whose compiler takes what the scripts give it


def examined(scratch: Path, *arguments: str, script: Path = SCRIPT) -> list[dict[str, Any]]:
    """What a script says, which compiles in a process without Triton's interpreter."""
    printed = run(script, "--json", "--cache", scratch, *arguments)
    return [json.loads(line) for line in printed.splitlines()]


def check(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["spilled"] == 0, row
        if row["arch"].startswith("gfx"):
            continue
        assert row["loaded"] <= row["least"][0], row  # less, if a loss does not ask who confirmed
        assert row["stored"] == row["least"][1], row
        assert row["registers"] <= 168, row  # three blocks of 128 threads share a processor


def test_compiled_code_reads_and_writes_no_byte_twice_and_spills_none(tmp_path: Path) -> None:
    rows = examined(tmp_path, "--losses", "hill", "splc_released", "--arch", "80", "90")
    assert len(rows) == 8
    check(rows)


NO_GATHER = pytest.mark.skipif(not lanes_can_be_read(), reason="this Triton has no gather")


def check_counting(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["spilled"] == 0, row
        assert row["registers"] <= 255, row
        if row["classes"] >= 128:  # below, threads stand idle and pairs are not read in fours
            assert [row["loaded"], row["stored"]] == row["least"], row


@NO_GATHER
def test_the_count_kernel_compiles_and_spills_nothing(tmp_path: Path) -> None:
    rows = examined(tmp_path, "--classes", "128", "--arch", "80", script=COUNTING)
    assert len(rows) == 1
    check_counting(rows)


@NO_GATHER
@pytest.mark.slow
def test_the_count_kernel_compiles_for_every_rule_dtype_and_size(tmp_path: Path) -> None:
    rows = examined(tmp_path, "--all", "--arch", "80", "90", script=COUNTING)
    assert len(rows) == 2 * (7 + 6)
    assert max(row["classes"] for row in rows) == MOST_CLASSES
    check_counting(rows)


@pytest.mark.slow
def test_every_specialisation_compiles_for_every_device(tmp_path: Path) -> None:
    rows = examined(tmp_path, "--all", "--arch", "80", "90", "gfx942")
    assert {row["arch"] for row in rows} == {"80", "90", "gfx942"}
    assert len(rows) > 500
    check(rows)


@pytest.mark.slow
def test_the_table_of_the_page_is_what_the_script_prints() -> None:
    page = (SCRIPT.parents[1] / "docs" / "gpu.md").read_text()
    versions = torch.__version__.partition("+")[0]
    if versions != "2.15.0":
        pytest.skip("the table is of the Triton that torch 2.15.0 brings")
    assert run(SCRIPT, "--table").strip() in page


def test_without_a_gpu_the_benchmark_says_that_nothing_was_measured() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    process = start(SCRIPT.with_name("gpu.py"))
    _, errors = process.communicate(timeout=HANGING_S)
    assert process.returncode == 1
    assert errors == "There is no GPU that torch can use, so nothing was measured.\n"
