"""The page on the command line: what the commands say of themselves."""

from __future__ import annotations

from typing import Any

from hilltop.cli.help import render_help
from hilltop.cli.main import COMMANDS, START, load_command

WIDTH = 84


def page() -> str:
    """All help texts, one heading for each command."""
    parts = ["# The command line", f"```text\n{START}```"]
    for name in COMMANDS:
        text = render_help(name, load_command(name), width=WIDTH)
        parts.append(f"## hilltop {name}\n\n```text\n{text}```")
    return "\n\n".join(parts) + "\n"


def on_files(files: Any, config: Any) -> Any:
    """Write the page."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "reference/commands.md", content=page()))
    return files
