"""The notebook of the site: executed here, kept with its outputs, shown as a page.

``python docs/hooks/notebook.py`` executes ``docs/journey.ipynb`` and keeps its outputs in it; with
``--check`` it is executed only. A line that begins with ``!hilltop`` runs that command, as it does
in Jupyter, which is not needed here.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "journey.ipynb"
Cell = dict[str, Any]


def read(path: Path = NOTEBOOK) -> dict[str, Any]:
    """Return the notebook."""
    return dict(json.loads(path.read_text(encoding="utf-8")))


def execute(notebook: dict[str, Any]) -> dict[str, Any]:
    """Run all cells of code in an empty folder, and return the notebook with their outputs."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    here, count, cells = Path.cwd(), 0, []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":
                    count += 1
                    cell = {**cell, "execution_count": count, "outputs": list(_run(cell, names))}
                cells.append(cell)
        finally:
            os.chdir(here)
    return {**notebook, "cells": cells}


def _run(cell: Cell, names: dict[str, Any]) -> Iterator[Cell]:
    """Execute a cell; give what it printed, and its figures."""
    from matplotlib import pyplot

    printed = io.StringIO()
    source = "".join(cell["source"])
    code = "\n".join(_python(line) for line in source.splitlines())
    with contextlib.redirect_stdout(printed):
        exec(compile(code, f"<cell {source.splitlines()[0]!r}>", "exec"), names)
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        yield {"output_type": "stream", "name": "stdout", "text": text}
    for number in pyplot.get_fignums():
        picture = io.BytesIO()
        pyplot.figure(number).savefig(picture, format="png", dpi=70, bbox_inches="tight")
        data = {"image/png": base64.b64encode(picture.getvalue()).decode()}
        yield {"output_type": "display_data", "data": data, "metadata": {}}
    pyplot.close("all")


def _python(line: str) -> str:
    if not line.startswith("!hilltop "):
        return line
    words = shlex.split(line)[1:]
    return f"from hilltop.cli.main import main as _main; assert _main({words!r}) == 0"


def page(notebook: dict[str, Any]) -> str:
    """The notebook as a page, with its pictures inside."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        shell = source.startswith("!")
        language, text = ("sh", source.replace("!hilltop", "hilltop")) if shell else ("py", source)
        parts.append(f"```{language}\n{text}\n```")
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                parts.append(f"```text\n{''.join(output['text']).rstrip()}\n```")
            else:
                parts.append(f"![Pictures](data:image/png;base64,{output['data']['image/png']})")
    return "\n\n".join(parts) + "\n"


def printed(notebook: dict[str, Any]) -> list[str]:
    """What each cell of code printed."""
    return [
        "".join("".join(one["text"]) for one in cell["outputs"] if one["output_type"] == "stream")
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def on_files(files: Any, config: Any) -> Any:
    """Write the page."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "journey.md", content=page(read())))
    return files


if __name__ == "__main__":
    made = execute(read())
    if "--check" in sys.argv:  # that it runs is all that is asked
        sys.exit(0)
    NOTEBOOK.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.stdout.write(f"{NOTEBOOK}: {len(made['cells'])} cells\n")
