"""Formulas, references and sessions in docstrings, made ready for a browser without a script.

LaTeX becomes outlines of letters (SVG) while the site is built: in docstrings ``.. math::`` and
``:math:``, on pages fences named math, and what stands between a dollar sign with a backtick and
its mirror image. MathML would be shorter, but looks poor on machines without a mathematical font.
"""

from __future__ import annotations

import html
import re
import textwrap
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from hilltop.losses import LOSSES

BLOCK = re.compile(
    r"^(?P<indent> *)\.\. math::(?P<first>[^\n]*)(?P<rest>(?:\n(?P=indent) +[^\n]*)*)", re.MULTILINE
)
FENCE = re.compile(r"^```math\n(?P<tex>.*?)\n```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r":math:`([^`]+)`|\$`([^`]+)`\$")
DOCTEST = re.compile(r"^(?P<indent> *)>>> [^\n]*(?:\n *\S[^\n]*)*", re.MULTILINE)
ROLE = re.compile(r":(?:class|func|meth|attr|mod):`([^`]+)`")
# Letters of the size of the text around them, which is 1 em; outlines in units of 1/100 em.
_SIZE, _UNITS = 1.05, 100.0
_FONT = FontProperties(size=_UNITS, math_fontfamily="stix")  # type: ignore[arg-type]
_COMMANDS = {
    Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C", Path.CLOSEPOLY: "Z",
}  # fmt: skip
# What TeX knows and matplotlib has to be told in more letters: names, and room around signs.
_LONGER = {
    r"\^([+-])": r"^{\1}",
    r"\\sum(_(\{[^}]*\}|\w))?": r"\g<0>\\,",
    r"\\tfrac(\w)(\w)": r"\\frac{\1}{\2}",
    r"\\tfrac\{": r"\\frac{",
    r"\\le\b": r"\\leq",
    r"\\ge\b": r"\\geq",
    r"\\ne\b": r"\\neq",
}


def to_svg(tex: str, *, block: bool) -> str:
    """Return a formula as outlines that take the colour and size of the text around them."""
    tex = " ".join(tex.split())
    drawn = tex
    for short, longer in _LONGER.items():
        drawn = re.sub(short, longer, drawn)
    written = f"${drawn}$".replace(r"\frac", r"\dfrac" if block else r"\frac")
    width, height, depth, *_ = MathTextParser("path").parse(written, prop=_FONT)
    outline = TextPath((0, 0), written, prop=_FONT)
    pieces = []
    for points, code in outline.iter_segments(simplify=False, curves=True):
        turned = [f"{-n if at % 2 else n:.4g}" for at, n in enumerate(points)]
        pieces.append(_COMMANDS[code] + ("" if code == Path.CLOSEPOLY else " ".join(turned)))
    em = _SIZE / _UNITS
    style = (
        f"width:{width * em:.2f}em;height:{height * em:.2f}em;vertical-align:{-depth * em:.2f}em"
    )
    box = f"0 {depth - height:.4g} {width:.4g} {height:.4g}"
    picture = (
        f'<svg class="formula" role="img" aria-label="{html.escape(tex)}" viewBox="{box}"'
        f' style="{style}"><path fill="currentColor" d="{"".join(pieces)}"/></svg>'
    )
    return f'<div class="formula">{picture}</div>' if block else picture


def reference(target: str) -> str:
    """Return a name as code, linked where the site describes it."""
    name = target.rpartition(".")[2] if target.startswith("~") else target
    path = target.lstrip("~.")
    if path in LOSSES:
        path = f"method-{path}"
    elif not path.startswith("hilltop."):
        path = f"hilltop.losses.{path}"
    return f'<autoref identifier="{path}" optional><code>{html.escape(name)}</code></autoref>'


class Formulas(Preprocessor):
    """Replaces formulas and roles before Markdown could take them for emphasis."""

    def run(self, lines: list[str]) -> list[str]:
        """Replace in all lines of a text."""
        text = BLOCK.sub(
            lambda found: self._block(
                f"{found['first']}\n{textwrap.dedent(found['rest'])}", found["indent"]
            ),
            "\n".join(lines),
        )
        text = INLINE.sub(lambda found: self._keep(to_svg(found[1] or found[2], block=False)), text)
        return ROLE.sub(lambda found: self._keep(reference(found[1])), text).split("\n")

    def _block(self, tex: str, indent: str) -> str:
        return f"\n{indent}{self._keep(to_svg(tex, block=True))}\n"

    def _keep(self, text: str) -> str:
        return self.md.htmlStash.store(text)


class Fences(Preprocessor):
    """Draws fenced formulas, and fences sessions, which Markdown would take for quotations."""

    def run(self, lines: list[str]) -> list[str]:
        """Replace both kinds; a session ends with the next blank line."""
        text = FENCE.sub(lambda found: self._drawn(found["tex"]), "\n".join(lines))
        return DOCTEST.sub(self._fenced, text).split("\n")

    def _drawn(self, tex: str) -> str:
        return f"\n{self.md.htmlStash.store(to_svg(tex, block=True))}\n"

    def _fenced(self, found: re.Match[str]) -> str:
        fence = found["indent"] + "```"
        return f"{fence}pycon\n{found[0]}\n{fence}"


class FormulasExtension(Extension):
    """Markdown with formulas, roles and sessions of docstrings."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (Markdown's own name)
        """Register around fenced code (25): formulas in shown code stay as they are."""
        md.preprocessors.register(Fences(md), "fences_of_docstrings", 26)
        md.preprocessors.register(Formulas(md), "formulas", 24)


def on_config(config: Any) -> Any:
    """Add the extension to pages and docstrings alike."""
    config["markdown_extensions"].append(FormulasExtension())
    return config
