"""Every table and figure of the paper, from recipes, beside the numbers that it prints."""

from hilltop.reproduce.embedded import EmbeddedSize, embedded_source
from hilltop.reproduce.paper_values import PaperValue, PaperValues, read_paper_values
from hilltop.reproduce.recipe import Recipe, choose_recipes, read_recipes
from hilltop.reproduce.report import write_reproduction_report
from hilltop.reproduce.run import Reproduction, reproduce
from hilltop.reproduce.source import Source, given_source

__all__ = [
    "EmbeddedSize",
    "PaperValue",
    "PaperValues",
    "Recipe",
    "Reproduction",
    "Source",
    "choose_recipes",
    "embedded_source",
    "given_source",
    "read_paper_values",
    "read_recipes",
    "reproduce",
    "write_reproduction_report",
]
