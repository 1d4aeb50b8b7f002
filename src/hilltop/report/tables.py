"""A table of text, and how it looks in Markdown, LaTeX and a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from hilltop.data.files import atomic_write
from hilltop.data.small_files import format_rows
from hilltop.errors import ArgumentError

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$",
    "τ": r"$\tau$", "⁺": r"$^+$", "⁻": r"$^-$", "\N{MINUS SIGN}": "$-$",
}  # fmt: skip

_ONE_COLUMN = 6  # columns of a table that still fits beside another column of text
_ENDLESS = 1000  # characters of a line that nothing breaks


@dataclass(frozen=True)
class Sheet:
    """A table whose cells are text already; numbers are formatted where they are known.

    Attributes:
        title: Its caption.
        head: Names of the columns; the first columns are text, the others numbers.
        rows: Cells; every row is as long as the head. A blank cell is an empty text.
        notes: Sentences below the table.
        strong: Row and column of cells that stand out.
        text_columns: How many of the first columns are text.

    Example:
        >>> print(Sheet("Ants", ("", "mAP"), (("BCE", "50.1"), ("Hill", "")), strong={(0, 1)}))
        **Ants**
        <BLANKLINE>
        |  | mAP |
        |---|---:|
        | BCE | **50.1** |
        | Hill |  |
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    strong: frozenset[tuple[int, int]] | set[tuple[int, int]] = frozenset()
    text_columns: int = 1

    def __post_init__(self) -> None:
        """Check that every row fits the head."""
        for row in self.rows:
            if len(row) != len(self.head):
                raise ArgumentError(
                    f"Every row must have {len(self.head)} cells, but {row!r} has {len(row)}."
                )

    def __str__(self) -> str:
        """Return Markdown."""
        lines = [f"**{self.title}**", "", _markdown_row(self.head)]
        texts = min(self.text_columns, len(self.head))
        lines.append("|" + "---|" * texts + "---:|" * (len(self.head) - texts))
        for number, row in enumerate(self.rows):
            marked = [
                f"**{cell}**" if cell and (number, column) in self.strong else cell
                for column, cell in enumerate(row)
            ]
            lines.append(_markdown_row(marked))
        lines += [line for note in self.notes for line in ("", note)]
        return "\n".join(lines)

    def latex(self, label: str) -> str:
        """Return a table environment; it needs the package booktabs."""
        texts = min(self.text_columns, len(self.head))
        wide = len(self.head) > _ONE_COLUMN  # both columns of a page, in small type
        kind = "table*" if wide else "table"
        lines = [
            rf"\begin{{{kind}}}[t]",
            rf"\caption{{{escape_latex(self.title)}}}",
            rf"\label{{{label}}}",
            r"\centering",
            *([r"\footnotesize", r"\setlength{\tabcolsep}{3pt}"] if wide else []),
            rf"\begin{{tabular}}{{{'l' * texts}{'r' * (len(self.head) - texts)}}}",
            r"\toprule",
            " & ".join(escape_latex(name) for name in self.head) + r" \\",
            r"\midrule",
        ]
        for number, row in enumerate(self.rows):
            cells = [
                rf"\textbf{{{escape_latex(cell)}}}"
                if cell and (number, column) in self.strong
                else escape_latex(cell)
                for column, cell in enumerate(row)
            ]
            lines.append(" & ".join(cells) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}"]
        lines += [rf"\par\footnotesize {escape_latex(note)}" for note in self.notes]
        return "\n".join([*lines, rf"\end{{{kind}}}", ""])

    def rich(self) -> RichTable:
        """Return the table for a terminal."""
        shown = RichTable(title=self.title, box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
        shown.title_justify = shown.caption_justify = "left"
        for column, name in enumerate(self.head):
            text = column < self.text_columns
            # In a narrow terminal numbers break at their spaces before names do.
            shown.add_column(name, justify="left" if text else "right", no_wrap=text)
        for number, row in enumerate(self.rows):
            shown.add_row(
                *(
                    Text(cell, style="bold" if (number, column) in self.strong else "")
                    for column, cell in enumerate(row)
                )
            )
        shown.caption = "\n".join(self.notes)
        return shown

    def print(self) -> None:
        """Print the table; what is no terminal, such as a log, gets lines as long as it takes."""
        console, shown = Console(), self.rich()
        if not console.is_terminal:
            wide = console.options.update(width=_ENDLESS)
            console.width = max(console.width, Measurement.get(console, wide, shown).maximum)
        console.print(shown)


def write_sheets(sheets: Sequence[Sheet], stem: Path) -> None:
    """Write ``stem.md`` and ``stem.tex`` with all sheets."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(_beside(stem, ".md"), "\n\n".join(str(sheet) for sheet in sheets) + "\n")
    several = len(sheets) > 1
    labels = [f"tab:{stem.name}{f'-{at}' if several else ''}" for at in range(1, len(sheets) + 1)]
    text = "\n".join(sheet.latex(label) for sheet, label in zip(sheets, labels, strict=True))
    atomic_write(_beside(stem, ".tex"), text)


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write CSV, with the columns of the first row; None is a blank cell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(rows[0]) if rows else []
    atomic_write(path, format_rows(columns, [[row.get(name) for name in columns] for row in rows]))


def escape_latex(text: str) -> str:
    r"""Write a text so that LaTeX prints it as it is.

    Example:
        >>> print(escape_latex("40% left, hill_neg"))
        40\% left, hill\_neg
    """
    return "".join(_LATEX.get(letter, letter) for letter in text)


def _beside(stem: Path, ending: str) -> Path:
    return stem.with_name(stem.name + ending)  # a stem such as "0.4" must not lose its ".4"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
