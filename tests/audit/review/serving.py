"""A real review server in a process of its own, on loopback, stopped by its id."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from hilltop.audit.decisions.store import DecisionStore
from hilltop.audit.folder import AuditFolder
from tests.processes import HANGING_S


@dataclass
class Server:
    """A running server and how to talk to it."""

    process: subprocess.Popen[str]
    address: str
    cookie: str = ""

    def open_session(self) -> str:
        """Open the printed address as a new browser does, and return its cookie."""
        parts = urlsplit(self.address)
        status, headers, _ = self.request("GET", f"/?{parts.query}", headers={"Cookie": ""})
        assert status == 200
        return headers["set-cookie"].partition(";")[0]

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(HANGING_S)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANGING_S)
        try:
            connection.putrequest(method, path, skip_host=True)
            sent = {"Host": self.host, "Cookie": self.cookie, **(headers or {})}
            if body is not None:
                sent["Content-Length"] = str(len(body))
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            kept = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, kept, answer.read()
        finally:
            connection.close()

    def get(self, path: str, **asked: Any) -> Any:
        status, _, body = self.request("GET", f"{path}?{urlencode(asked)}")
        assert status == 200, body
        return json.loads(body)

    def post(self, reviewer: str, events: list[dict[str, Any]]) -> tuple[int, Any]:
        status, _, body = self.request(
            "POST",
            "/api/events",
            body=json.dumps({"reviewer": reviewer, "events": events}).encode(),
            headers={"Content-Type": "application/json", "Origin": f"http://{self.host}"},
        )
        return status, json.loads(body)


@contextmanager
def serving(folder: Path, *words: str, port: int = 0) -> Iterator[Server]:
    command = [sys.executable, "-m", "hilltop", "review", str(folder), "--port", str(port), *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    # A test that hangs must not leave a server behind.
    stopper = threading.Timer(HANGING_S, process.kill)
    stopper.start()
    try:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if "http://" in line:
                break
        else:
            raise AssertionError(f"the server did not start: {said}")
        server = Server(process, line.split("Review at ")[1].split()[0])
        server.cookie = server.open_session()
        yield server
    finally:
        stopper.cancel()
        if process.poll() is None:
            process.kill()
        process.wait(HANGING_S)
        assert process.stdout is not None
        process.stdout.close()


def answer_event(
    number: int | str, pair: Mapping[str, Any], name: str, word: str
) -> dict[str, Any]:
    """An answer as the page sends it."""
    return {
        "id": f"event-{number}",
        "action": f"action-{number}",
        "image": pair["image"],
        "row": pair["row"],
        "class": name,
        "answer": word,
        "mode": "ranked",
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def stored(folder: AuditFolder) -> list[Any]:
    store = DecisionStore(folder.decisions)
    events = [event for _, event in store.read()]
    store.close()
    return events
