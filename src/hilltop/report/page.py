"""One self-contained HTML page from text, tables and pictures, by the template ``page.html``.

Everything that comes in as text is escaped by jinja2; what these functions return is markup.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from hilltop.data.files import atomic_write

Html = Markup

_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}
_THUMBNAIL = 320
_DENSE, _TIGHT = 8, 9  # tables with more columns are set in small and in smaller type


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

    @property
    def encoded(self) -> str:
        """The bytes as text."""
        return base64.b64encode(self.content).decode()

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


def write_page(path: Path, *, title: str, lead: str, sections: Sequence[Html]) -> None:
    """Write the page; an older one is replaced as a whole."""
    style = Markup(Path(__file__).with_name("page.css").read_text(encoding="utf-8"))
    page = _template().render(title=title, lead=lead, style=style, sections=sections)
    atomic_write(path, page.rstrip() + "\n")


@cache
def _template() -> Template:
    loader = FileSystemLoader(Path(__file__).parent)
    made = Environment(autoescape=True, loader=loader, undefined=StrictUndefined, trim_blocks=True)
    return made.get_template("page.html")


@cache
def _macros() -> Any:
    return _template().make_module({"title": "", "lead": "", "style": "", "sections": ()})


def section(heading: str, *parts: Html) -> Html:
    """A heading and what belongs to it."""
    return Html(_macros().section(heading, parts))


def paragraph(text: str) -> Html:
    """Running text."""
    return Html("<p>{}</p>").format(text)


def key_numbers(numbers: Sequence[tuple[str, str]]) -> Html:
    """A row of large numbers, each with a caption."""
    return Html(_macros().key_numbers(numbers))


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str | Html]],
    *,
    strong: Sequence[int] = (),
    text_columns: int = 1,
) -> Html:
    """A table; rows named in ``strong`` stand out, columns after the first ones are numbers."""
    kind = "scroll" + " dense" * (len(head) > _DENSE) + " tight" * (len(head) > _TIGHT)
    return Html(_macros().table(head, rows, strong, text_columns, kind))


def code(command: str) -> Html:
    """A command to copy."""
    return Html("<code>{}</code>").format(command)


def bar(share: float) -> Html:
    """A percentage with a bar behind it; below 0 and above 100 the bar stays at its end."""
    width = 100 * min(1.0, max(0.0, share))
    inner = Html('<span class="bar"><i style="width:{:.1f}%"></i><b>{}</b></span>')
    return inner.format(width, percent(share))


def with_interval(value: float, low: float, high: float) -> Html:
    """A percentage, and below it its interval, in small.

    Example:
        >>> with_interval(0.56, 0.42, 0.95).startswith("56%<small>42")
        True
    """
    ends = f"{percent(low)[:-1]}\N{EN DASH}{percent(high)}"
    return Html("{}<small>{}</small>").format(percent(value), ends)


def percent(share: float) -> str:
    """A share as a whole percentage, with a true minus sign and none for what rounds to 0."""
    number = round(100 * share)
    sign = "\N{MINUS SIGN}" if number < 0 else ""
    return f"{sign}{abs(number)}%"


def figure(png: bytes, *, alt: str, caption: str = "", wide: bool = False) -> Html:
    """A picture in the page itself; a ``wide`` one takes the whole width of the page."""
    return Html(_macros().figure(base64.b64encode(png).decode(), alt, caption, wide))


def side_by_side(*parts: Html) -> Html:
    """Pictures in two columns, or below each other where the page is narrow."""
    return Html('<div class="panels">{}</div>').format(Html("").join(parts))


def gallery(cards: Sequence[tuple[Picture, Sequence[Tag]]]) -> Html:
    """Pictures side by side, each with its tags below."""
    return Html(_macros().gallery(cards))


def legend(tags: Sequence[Tag]) -> Html:
    """What the kinds of tags mean."""
    return Html('<p class="legend">{}</p>').format(_macros().tags(tags))


def details(summary: str, inner: Html) -> Html:
    """Something that is folded away until it is asked for."""
    return Html("<details><summary>{}</summary>\n{}\n</details>").format(summary, inner)
