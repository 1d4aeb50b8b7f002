"""Serve an exported model of images: POST a picture, get its tags. Hilltop is not needed.

Run it with: MODEL=model.onnx uvicorn --app-dir examples serve_onnx:app
"""

import io
import json
import os

import numpy as np
import onnxruntime
from PIL import Image
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

session = onnxruntime.InferenceSession(os.environ["MODEL"], providers=["CPUExecutionProvider"])
size = session.get_inputs()[0].shape[-1]
about = session.get_modelmeta().custom_metadata_map
classes = json.loads(about["classes"])
thresholds = json.loads(about.get("thresholds", "null")) or [0.5] * len(classes)


def tags(content: bytes) -> dict[str, float]:
    """The classes of one picture whose score exceeds the threshold, with their scores."""
    image = Image.open(io.BytesIO(content)).convert("RGB")
    squashed = image.resize((size, size), Image.Resampling.BILINEAR)
    inputs = np.asarray(squashed, dtype=np.float32).transpose(2, 0, 1)[None] / 255
    scores = session.run(None, {"inputs": inputs})[0][0].tolist()
    found = zip(classes, scores, thresholds, strict=True)
    return {name: round(score, 4) for name, score, limit in found if score > limit}


async def predict(request: Request) -> JSONResponse:
    """Answer one request; what is no picture is refused."""
    try:
        return JSONResponse({"tags": await run_in_threadpool(tags, await request.body())})
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        return JSONResponse({"error": f"Expected a picture: {error}"}, status_code=422)


app = Starlette(routes=[Route("/predict", predict, methods=["POST"])])
