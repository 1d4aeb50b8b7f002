"""What a page shows that can be run: Python, commands, and words in the running text."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "docs").rglob("*.md"))
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"^ {4}((?:hilltop|torchrun|make) .*)$", re.MULTILINE)
_BROKEN = re.compile(r" *\\\n *")
_INLINE = re.compile(r"`((?:hilltop|torchrun) [^`]+)`")


def blocks(text: str, language: str) -> list[str]:
    """Fenced code of one language."""
    return [body for name, body in _FENCE.findall(text) if name == language]


def commands(text: str) -> list[str]:
    """Lines of shell, in fences and indented, without remarks and with broken lines joined."""
    text = _BROKEN.sub(" ", text)
    shown = "\n".join(blocks(text, "sh")).splitlines()
    outside = _FENCE.sub("", text)
    lines = [*shown, *_INDENTED.findall(outside)]
    return [line.partition("  ")[0].strip() for line in lines if line.strip()]


def mentions(text: str) -> list[str]:
    """Commands in the running text."""
    return _INLINE.findall(_FENCE.sub("", text))


def name(path: Path) -> str:
    """What to call a page."""
    return str(path.relative_to(ROOT))
