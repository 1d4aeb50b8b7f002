"""The page on the command line: what the commands say of themselves."""

from __future__ import annotations

from typing import Any

from hilltop.cli.main import COMMANDS, START, load_command
from hilltop.cli.parser import render_help

WIDTH = 100


def page() -> str:
    """All help texts, one heading for each command."""
    parts = ["# The command line", f"```console\n{START}```"]
    for name in COMMANDS:
        text = render_help(load_command(name), name, width=WIDTH)
        parts.append(f"## hilltop {name}\n\n```console\n{text}```")
    labels = render_help(load_command("inspect"), "inspect", labels=True, width=WIDTH)
    parts.append(f"## How label files are read (--help-labels)\n\n```console\n{labels}```")
    return "\n\n".join(parts) + "\n"


def on_files(files: Any, config: Any) -> Any:
    """Write the page."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "reference/commands.md", content=page()))
    return files
