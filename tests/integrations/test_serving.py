"""The served example answers as the run does, in a process without Hilltop."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from hilltop.cli.main import main
from hilltop.data import LabelTable, State, write_labels
from hilltop.training.predict import load_run
from tests.audit.review.serving import free_port
from tests.processes import HANGING_S

EXAMPLES = Path(__file__).parents[2] / "examples"
CLASSES = ("boat", "car", "dog")
ROWS = 240


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on images whose colour channels are their labels, exported."""
    folder = tmp_path_factory.mktemp("served")
    rng = np.random.default_rng(0)
    truth = rng.random((ROWS, len(CLASSES))) < 0.5
    (folder / "images").mkdir()
    names = [f"{row}.png" for row in range(ROWS)]
    for name, row in zip(names, truth, strict=True):
        pixels = np.where(row, 220, 30) + rng.integers(-20, 20, (40, 48, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(folder / "images" / name)
    table = LabelTable.from_coo(
        names, CLASSES, *np.nonzero(truth), State.PRESENT, unlisted=State.UNKNOWN
    )
    write_labels(table, folder / "labels.parquet")
    images = ["--images", str(folder / "images")]
    words = ["--labels", str(folder / "labels.parquet"), *images, "--image-size", "64"]
    words += ["--weights", "none", "--model", "resnet10t", "--epochs", "2", "--seed", "1"]
    run, exported = str(folder / "run"), str(folder / "model.onnx")
    assert main(["train", *words, "--out", run, "--quiet"]) == 0
    assert main(["export", run, "--to", "onnx", "--out", exported]) == 0
    return folder


@pytest.fixture
def port(model: Path) -> Iterator[int]:
    number = free_port()
    blocked = "import sys; sys.modules['hilltop'] = None; import uvicorn; "
    served = f"uvicorn.run('serve_onnx:app', port={number}, log_level='error')"
    process = subprocess.Popen(
        [sys.executable, "-c", blocked + served],
        cwd=EXAMPLES,
        env={**os.environ, "MODEL": str(model / "model.onnx")},
    )
    try:
        given_up = time.monotonic() + HANGING_S
        while True:
            try:
                post(number, b"no picture")
                break
            except OSError:
                assert process.poll() is None
                assert time.monotonic() < given_up
                time.sleep(0.1)
        yield number
    finally:
        process.terminate()
        process.wait(HANGING_S)


def post(port: int, body: bytes) -> tuple[int, dict[str, object]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=HANGING_S)
    try:
        connection.request("POST", "/predict", body)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_tags_are_those_of_the_run(model: Path, port: int) -> None:
    trained = load_run(model / "run")
    assert trained.truth is not None
    limits = torch.as_tensor(trained.truth.thresholds().thresholds)
    for name in ("3.png", "4.png", "5.png"):
        file = model / "images" / name
        squashed = Image.open(file).resize((64, 64), Image.Resampling.BILINEAR)
        pixels = torch.from_numpy(np.asarray(squashed, dtype=np.float32) / 255).permute(2, 0, 1)
        with torch.no_grad():
            probs = trained.truth.probs(trained.model(pixels[None]))[0]
        wanted = {
            one: pytest.approx(float(prob), abs=1e-3)
            for one, prob, limit in zip(CLASSES, probs, limits, strict=True)
            if prob > limit
        }
        assert post(port, file.read_bytes()) == (200, {"tags": wanted})


def test_what_is_no_picture_is_refused(port: int) -> None:
    status, content = post(port, b"no picture")
    assert status == 422
    assert "picture" in str(content["error"])
