"""One self-contained HTML page from text, tables and pictures; whatever comes in is escaped."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from hilltop.data.files import atomic_write

_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg"}

_THUMBNAIL = 320
_DENSE, _TIGHT = 8, 9  # tables with more columns are set in small and in smaller type

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
$style</style>
</head>
<body>
<main>
<header>
<h1>$title</h1>
<p class="lead">$lead</p>
</header>
$body
</main>
</body>
</html>
""")


@dataclass(frozen=True)
class Html:
    """Markup that is finished and safe; everything else is text and gets escaped."""

    text: str

    def __add__(self, other: Html) -> Html:
        """Return both, one after the other."""
        return Html(f"{self.text}\n{other.text}")


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


def write_page(path: Path, *, title: str, lead: str, sections: Sequence[Html]) -> None:
    """Write the page; an older one is replaced as a whole."""
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    body = "\n".join(section.text for section in sections)
    page = _PAGE.substitute(title=escape(title), lead=escape(lead), style=style, body=body)
    atomic_write(path, page)


def section(heading: str, *parts: Html) -> Html:
    """A heading and what belongs to it."""
    inner = "\n".join(part.text for part in parts)
    return Html(f"<section>\n<h2>{escape(heading)}</h2>\n{inner}\n</section>")


def paragraph(text: str) -> Html:
    """Running text."""
    return Html(f"<p>{escape(text)}</p>")


def key_numbers(numbers: Sequence[tuple[str, str]]) -> Html:
    """A row of large numbers, each with a caption."""
    cells = (
        f"<div><dt>{escape(caption)}</dt><dd>{escape(number)}</dd></div>"
        for caption, number in numbers
    )
    return Html(f'<dl class="numbers">{"".join(cells)}</dl>')


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str | Html]],
    *,
    strong: Sequence[int] = (),
    text_columns: int = 1,
) -> Html:
    """A table; rows named in ``strong`` stand out, columns after the first ones are numbers."""

    def cell(kind: str, column: int, content: str | Html) -> str:
        align = "" if column < text_columns else ' class="number"'
        inner = content.text if isinstance(content, Html) else escape(content)
        return f"<{kind}{align}>{inner}</{kind}>"

    lines = ["<tr>" + "".join(cell("th", at, name) for at, name in enumerate(head)) + "</tr>"]
    for number, row in enumerate(rows):
        mark = ' class="strong"' if number in strong else ""
        inner = "".join(cell("td", at, content) for at, content in enumerate(row))
        lines.append(f"<tr{mark}>{inner}</tr>")
    body = "\n".join(lines[1:])
    kind = "scroll" + " dense" * (len(head) > _DENSE) + " tight" * (len(head) > _TIGHT)
    return Html(
        f'<div class="{kind}"><table>\n<thead>{lines[0]}</thead>\n<tbody>\n{body}\n</tbody>\n'
        "</table></div>"
    )


def code(command: str) -> Html:
    """A command to copy."""
    return Html(f"<code>{escape(command)}</code>")


def bar(share: float) -> Html:
    """A percentage with a bar behind it; below 0 and above 100 the bar stays at its end."""
    width = 100 * min(1.0, max(0.0, share))
    return Html(
        f'<span class="bar"><i style="width:{width:.1f}%"></i><b>{percent(share)}</b></span>'
    )


def with_interval(value: float, low: float, high: float) -> Html:
    """A percentage, and below it its interval, in small.

    Example:
        >>> with_interval(0.56, 0.42, 0.95).text.startswith("56%<small>42")
        True
    """
    ends = f"{percent(low)[:-1]}\N{EN DASH}{percent(high)}"
    return Html(f"{percent(value)}<small>{ends}</small>")


def percent(share: float) -> str:
    """A share as a whole percentage, with a true minus sign and none for what rounds to 0."""
    number = round(100 * share)
    sign = "\N{MINUS SIGN}" if number < 0 else ""
    return f"{sign}{abs(number)}%"


def figure(png: bytes, *, alt: str, caption: str = "", wide: bool = False) -> Html:
    """A picture in the page itself; a ``wide`` one takes the whole width of the page."""
    kind = ' class="wide"' if wide else ""
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return Html(f'<figure{kind}><img src="{source}" alt="{escape(alt)}">{below}</figure>')


def side_by_side(*parts: Html) -> Html:
    """Pictures in two columns, or below each other where the page is narrow."""
    return Html(f'<div class="panels">{"".join(part.text for part in parts)}</div>')


def gallery(cards: Sequence[tuple[Picture, Sequence[Tag]]]) -> Html:
    """Pictures side by side, each with its tags below."""
    items = []
    for picture, tags in cards:
        source = f"data:{picture.kind};base64,{base64.b64encode(picture.content).decode()}"
        shown = f'<img src="{source}" alt="{escape(picture.name)}">'
        items.append(f"<li>{shown}<p>{_tags(tags)}</p></li>")
    return Html(f'<ul class="gallery">{"".join(items)}</ul>')


def legend(tags: Sequence[Tag]) -> Html:
    """What the kinds of tags mean."""
    return Html(f'<p class="legend">{_tags(tags)}</p>')


def details(summary: str, inner: Html) -> Html:
    """Something that is folded away until it is asked for."""
    return Html(f"<details><summary>{escape(summary)}</summary>\n{inner.text}\n</details>")


def _tags(tags: Sequence[Tag]) -> str:
    return " ".join(
        f'<span class="tag {escape(tag.kind)}">{escape(tag.text)}</span>' for tag in tags
    )
