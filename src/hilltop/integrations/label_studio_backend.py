"""Label Studio ML backend: the labels that an audit expects, and the order of tasks.

``python -m hilltop.integrations.label_studio_backend AUDIT`` serves it.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from hilltop.audit.folder import AuditFolder
from hilltop.audit.pairs import AuditPairs
from hilltop.audit.review.queues import WholeImages
from hilltop.audit.review.server import LAST_PORT
from hilltop.checks import check_number
from hilltop.data.annotations.label_studio import CHOICES, IMAGE_ID
from hilltop.errors import ArgumentError, HilltopError

_UPLOADED = re.compile(r"[0-9a-f]{8}-(.+)")
"""Files that were uploaded into Label Studio have eight signs before their name."""


class Predictions:
    """What an audit says of each task."""

    def __init__(self, folder: AuditFolder, *, threshold: float = 0.5) -> None:
        """Read an audit.

        Args:
            folder: The audit.
            threshold: Missing labels of this probability or more are chosen.
        """
        self._threshold = check_number("threshold", threshold, low=0, high=1)
        pairs = AuditPairs.read(folder)
        self._labels, self._images = pairs.labels, WholeImages(pairs)
        self._row_of = {name: row for row, name in enumerate(self._labels.images.to_pylist())}
        self.version = f"hilltop {folder.created}"

    def of(self, task: Mapping[str, Any], setup: str) -> dict[str, Any]:
        """A prediction in Label Studio's form.

        Its score is the probability that the labels of the image are complete: with uncertainty
        sampling, which shows the lowest score first, the images that lack labels come first.
        An image that the audit does not know has nothing chosen and the score 1.

        Args:
            task: A task with its ``data``.
            setup: The labelling setup of the project.
        """
        control, shown, key = _controls(setup)
        row = self._row(task.get("data") or {}, key)
        known = [] if row is None else self._labels.labels_of(row)
        likely = [] if row is None else self._images.candidates(row)
        chosen = [
            self._labels.classes[one.column]
            for one in likely
            if one.probability is not None and one.probability >= self._threshold
        ]
        value = {"choices": [*known, *chosen]}
        choices = {"from_name": control, "to_name": shown, "type": CHOICES, "value": value}
        return {
            "result": [choices] if value["choices"] else [],
            "score": 1.0 if row is None else round(self._images.prob_complete(row), 6),
            "model_version": self.version,
        }

    def _row(self, data: Mapping[str, Any], key: str) -> int | None:
        """Number of the image of a task; None if the audit does not have it."""
        if IMAGE_ID in data:
            return self._row_of.get(str(data[IMAGE_ID]))
        return next(
            (self._row_of[name] for name in _names(str(data.get(key, ""))) if name in self._row_of),
            None,
        )


def _names(address: str) -> Iterator[str]:
    """What an image may be called by its address, the longest name first."""
    yield address
    path = address.partition("?d=")[2] or address.partition("?")[0]
    parts = [part for part in unquote(path).split("/") if part]
    yield from ("/".join(parts[at:]) for at in range(len(parts)))
    uploaded = _UPLOADED.fullmatch(parts[-1]) if parts else None
    if uploaded is not None:
        yield uploaded[1]


def _controls(setup: str) -> tuple[str, str, str]:
    """Names of the choices and of what they are about, and the key of its address."""
    try:
        tree = ElementTree.fromstring(setup)
    except ElementTree.ParseError:
        raise ArgumentError("The labelling setup is not valid XML.") from None
    for control in tree.iter("Choices"):
        name, shown = control.get("name", ""), control.get("toName", "")
        for one in tree.iter():
            if one.get("name") == shown and one.get("value", "").startswith("$"):
                return name, shown, one.get("value", "")[1:]
    raise ArgumentError("The labelling setup has no <Choices> about an object with a value.")


def build_backend(predictions: Predictions) -> Starlette:
    """The application that Label Studio asks."""

    def always(path: str, reply: Mapping[str, Any], method: str = "POST") -> Route:
        return Route(path, lambda _: JSONResponse(reply), methods=[method])

    async def predict(request: Request) -> JSONResponse:
        asked = await request.json()
        tasks: Sequence[Mapping[str, Any]] = asked["tasks"]
        results = [predictions.of(task, asked["label_config"]) for task in tasks]
        return JSONResponse({"results": results, "model_version": predictions.version})

    def refused(request: Request, error: Exception) -> JSONResponse:
        return JSONResponse({"error": str(error)}, status_code=400)

    routes = [
        Route("/predict", predict, methods=["POST"]),
        always("/health", {"status": "UP", "model_class": "Hilltop"}, "GET"),
        always("/versions", {"versions": [predictions.version]}, "GET"),
        always("/setup", {"model_version": predictions.version}),
        always("/train", {}),
        always("/webhook", {}),
    ]
    refusals = {ArgumentError: refused, KeyError: refused, ValueError: refused}
    return Starlette(routes=routes, exception_handlers=refusals)


def main() -> None:
    """Serve an audit to Label Studio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("audit", type=Path, help="the folder that hilltop audit wrote")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9090)
    parser.add_argument("--threshold", type=float, default=0.5)
    asked = parser.parse_args()
    try:
        check_number("--port", asked.port, low=0, high=LAST_PORT)
        predictions = Predictions(AuditFolder.read(asked.audit), threshold=asked.threshold)
    except HilltopError as error:
        parser.error(str(error))
    uvicorn.run(build_backend(predictions), host=asked.host, port=asked.port, log_level="warning")


if __name__ == "__main__":
    main()
