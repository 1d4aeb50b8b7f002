"""The notebook of the site: whole, shown as a page, and executed."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from hilltop.cli.main import COMMANDS, parse
from tests.docs.hooks import load_hook

hook = load_hook("notebook")
NOTEBOOK = hook.read()
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]

LINES = [line for cell in CODE for line in "".join(cell["source"]).splitlines()]
COMMAND_LINES = [line for line in LINES if line.startswith("!hilltop ")]


def test_it_is_kept_as_it_was_executed() -> None:
    assert [cell["execution_count"] for cell in CODE] == list(range(1, len(CODE) + 1))
    assert sum(bool(cell["outputs"]) for cell in CODE) > len(CODE) / 2


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_its_commands_exist(line: str) -> None:
    words = [word for word in shlex.split(line)[1:] if word != "--quiet"]
    assert words[0] in COMMANDS
    parse(words)


def test_the_page_has_its_pictures_and_what_was_printed() -> None:
    shown = hook.page(NOTEBOOK)
    assert shown.count("data:image/png;base64,") >= 2
    assert all(text.strip() in shown for text in hook.printed(NOTEBOOK))


def maps(notebook: dict[str, Any]) -> list[float]:
    last = hook.printed(notebook)[-1]
    return [float(number) for number in re.findall(r"mAP (\d+\.\d)  OF1", last)]


@pytest.mark.slow
def test_it_runs_and_says_what_it_said() -> None:
    assert maps(hook.execute(NOTEBOOK)) == pytest.approx(maps(NOTEBOOK), abs=1.5)
