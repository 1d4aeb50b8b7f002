"""A page on its own: one HTML file with its pictures and style in it, from a template beside it.

Everything that comes in as text is escaped by jinja2.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hilltop.checks import pluralize
from hilltop.data.files import atomic_write

_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}
_THUMBNAIL = 320


@dataclass(frozen=True)
class Tag:
    """A label beside a picture: its text, and a kind that decides colour and border."""

    text: str
    kind: str


@dataclass(frozen=True)
class Picture:
    """A picture as it stands in a page: its name, what kind of file it is, and its bytes."""

    name: str
    kind: str
    content: bytes

    @classmethod
    def whole(cls, path: Path) -> Picture:
        """A file as it is."""
        return cls(path.name, _TYPES[path.suffix.lower()], path.read_bytes())

    @classmethod
    def thumbnail(cls, path: Path) -> Picture | None:
        """A file made small; None if it cannot be read."""
        from PIL import Image, ImageOps

        target = io.BytesIO()
        try:
            with Image.open(path) as image:
                small = ImageOps.exif_transpose(image).convert("RGB")
                small.thumbnail((_THUMBNAIL, _THUMBNAIL))
                small.save(target, "JPEG", quality=82)
        except (OSError, ValueError, Image.DecompressionBombError):
            return None
        return cls(path.name, "image/jpeg", target.getvalue())


def environment() -> Environment:
    """What templates of this folder are rendered with."""
    made = Environment(
        autoescape=True,
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    made.filters |= {
        "base64": lambda content: base64.b64encode(content).decode(),
        "counted": pluralize,
        "percent": percent,
    }
    return made


def write_page(path: Path, template: str, **values: Any) -> None:
    """Write a page; an older one is replaced as a whole.

    Args:
        path: The HTML file.
        template: Name of a file in this folder.
        **values: What the template names.
    """
    page = environment().get_template(template).render(values)
    atomic_write(path, page.rstrip() + "\n")


def percent(share: float) -> str:
    """A share as a whole percentage, with a true minus sign and none for what rounds to 0."""
    number = round(100 * share)
    sign = "\N{MINUS SIGN}" if number < 0 else ""
    return f"{sign}{abs(number)}%"
