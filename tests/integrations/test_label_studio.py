"""The backend: what it answers, and inside a real Label Studio server where one is installed."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from hilltop.audit.folder import AuditFolder
from hilltop.cli.main import main
from hilltop.data import LabelTable, State, write_labels
from hilltop.errors import ArgumentError
from hilltop.integrations.label_studio_backend import Predictions
from hilltop.integrations.label_studio_backend import main as serve_backend
from tests.audit.review.serving import free_port
from tests.processes import HANGING_S

CLASSES = ("boat", "car", "dog")
ROWS = 300
SETUP = """<View><Image name="photo" value="$file"/>
<Choices name="tags" toName="photo" choice="multiple">
<Choice value="boat"/><Choice value="car"/><Choice value="dog"/></Choices></View>"""
LABEL_STUDIO = os.environ.get("HILLTOP_LABEL_STUDIO") or shutil.which("label-studio")
"""The program; ``make test-tools`` installs it in an environment of its own."""
TOKEN = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> AuditFolder:
    """An audit of labels of which a third was forgotten."""
    folder = tmp_path_factory.mktemp("label_studio")
    rng = np.random.default_rng(0)
    truth = rng.random((ROWS, len(CLASSES))) < 0.4
    labels = truth & (rng.random(truth.shape) < 0.65)
    names = [f"day 1/{row:03}.jpg" for row in range(ROWS)]
    table = LabelTable.from_coo(
        names, CLASSES, *np.nonzero(labels), State.PRESENT, unlisted=State.UNKNOWN
    )
    write_labels(table, folder / "labels.parquet")
    vectors = truth @ rng.standard_normal((3, 16)) + 0.5 * rng.standard_normal((ROWS, 16))
    np.savez(folder / "features.npz", X=vectors.astype(np.float32), ids=np.array(names))
    words = ["--labels", str(folder / "labels.parquet"), "--features", str(folder / "features.npz")]
    assert main(["audit", *words, "--out", str(folder / "audit"), "--quiet"]) == 0
    return AuditFolder.read(folder / "audit")


@pytest.mark.parametrize(
    "data",
    [
        {"file": "day 1/007.jpg"},
        {"file": "https://example.org/all/day%201/007.jpg?size=2"},
        {"file": "/data/local-files/?d=photos/day%201/007.jpg"},
        {"file": "elsewhere", "hilltop_image": "day 1/007.jpg"},
    ],
    ids=["name", "address", "local file", "handed over"],
)
def test_a_task_is_found_by_its_image(audited: AuditFolder, data: dict[str, str]) -> None:
    found = Predictions(audited).of({"data": data}, SETUP)
    known = list(audited.table().labels_of(7))
    (choices,) = found["result"]
    assert (choices["from_name"], choices["to_name"]) == ("tags", "photo")
    assert choices["value"]["choices"][: len(known)] == known
    assert 0 <= found["score"] < 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["/nowhere"], "there is no such folder"),
        (["AUDIT", "--port", "80000"], "--port must be at least 0 and at most 65535"),
        (["AUDIT", "--threshold", "7"], "threshold must be at least 0 and at most 1"),
    ],
)
def test_wrong_usage_is_a_sentence(
    audited: AuditFolder,
    words: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [str(audited.path) if word == "AUDIT" else word for word in words]
    monkeypatch.setattr(sys, "argv", ["backend", *given])
    with pytest.raises(SystemExit) as ended:
        serve_backend()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_strange_image_or_setup_has_no_prediction(audited: AuditFolder) -> None:
    strange = Predictions(audited).of({"data": {"file": "008.png"}}, SETUP)
    assert (strange["result"], strange["score"]) == ([], 1.0)
    with pytest.raises(ArgumentError, match="Choices"):
        Predictions(audited).of({"data": {}}, "<View/>")
    with pytest.raises(ArgumentError, match="XML"):
        Predictions(audited).of({"data": {}}, "no markup")


def is_healthy(address: str) -> bool:
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=HANGING_S)
    try:
        connection.request("GET", "/health")
        reply = connection.getresponse()
        reply.read()
        return reply.status == 200
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def running(command: list[str], address: str, **options: Any) -> Iterator[None]:
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
    )
    try:
        given_up = time.monotonic() + HANGING_S
        while not is_healthy(address):
            assert process.poll() is None, f"{command} ended"
            assert time.monotonic() < given_up, f"{command} did not start"
            time.sleep(0.5)
        yield
    finally:
        process.terminate()
        process.wait(HANGING_S)


@contextmanager
def backend(folder: AuditFolder) -> Iterator[str]:
    port = free_port()
    module = "hilltop.integrations.label_studio_backend"
    command = [sys.executable, "-m", module, str(folder.path), "--port", str(port)]
    with running(command, f"http://127.0.0.1:{port}"):
        yield f"http://127.0.0.1:{port}"


def ask(address: str, content: Any = None, *, token: str = "", method: str | None = None) -> Any:
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Token {token}"
    body = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(address, body, headers, method=method)
    with urllib.request.urlopen(request, timeout=HANGING_S) as reply:
        return json.loads(reply.read() or "null")


def test_the_backend_speaks_the_protocol_and_refuses_nonsense(audited: AuditFolder) -> None:
    with backend(audited) as address:
        assert ask(f"{address}/setup", {})["model_version"].startswith("hilltop")
        tasks = [{"id": 1, "data": {"file": "day 1/003.jpg"}}]
        (one,) = ask(f"{address}/predict", {"tasks": tasks, "label_config": SETUP})["results"]
        assert one == Predictions(audited).of(tasks[0], SETUP)
        for wrong in ({}, {"tasks": tasks, "label_config": "<"}):
            with pytest.raises(urllib.error.HTTPError) as refused:
                ask(f"{address}/predict", wrong)
            refused.value.close()
            assert refused.value.code == 400


@pytest.mark.skipif(LABEL_STUDIO is None, reason="label-studio is not installed")
def test_label_studio_shows_predictions_and_asks_for_what_lacks_most_first(
    audited: AuditFolder, tmp_path: Path
) -> None:
    port = free_port()
    server = f"http://127.0.0.1:{port}"
    command = [str(LABEL_STUDIO), "start", "--no-browser", "--port", str(port)]
    command += ["--username", "a@example.org", "--password", "secret-123456", "--user-token", TOKEN]
    settings = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(tmp_path),
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "USE_DEFAULT_BANNED_SUBNETS": "false",  # it asks a backend on this machine
        "COLLECT_ANALYTICS": "false",
    }
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with backend(audited) as address, running(command, server, env={**alone, **settings}):

        def api(path: str, content: Any = None, method: str | None = None) -> Any:
            return ask(f"{server}/api/{path}", content, token=TOKEN, method=method)

        project = api(
            "projects/",
            {"title": "photos", "label_config": SETUP, "sampling": "Uncertainty sampling"},
        )["id"]
        names = audited.table().images.to_pylist()
        api(f"projects/{project}/import", [{"file": f"http://example.org/{one}"} for one in names])
        api("ml/", {"url": address, "project": project, "title": "Hilltop"})
        everything = {"selectedItems": {"all": True}}
        api(f"dm/actions?id=retrieve_tasks_predictions&project={project}", everything)
        found = api(f"predictions/?project={project}")
        assert len(found) == len(names)
        lowest = min(found, key=lambda one: one["score"])
        predictions = Predictions(audited)
        scores = [predictions.of({"data": {"file": one}}, SETUP)["score"] for one in names]
        assert lowest["score"] == pytest.approx(min(scores), abs=1e-6)
        api(f"projects/{project}/", {"model_version": predictions.version}, "PATCH")
        first = api(f"projects/{project}/next")["data"]["file"]
        assert first == f"http://example.org/{names[int(np.argmin(scores))]}"
