"""Every table and figure of the paper, from recipes, beside the numbers that it prints."""

from hilltop.studies.reproduce.embedded import EmbeddedSize, embedded_source
from hilltop.studies.reproduce.layouts import DATA_SETS, find_data
from hilltop.studies.reproduce.official import official_sources
from hilltop.studies.reproduce.paper_values import PaperValue, PaperValues, read_paper_values
from hilltop.studies.reproduce.places import Layout
from hilltop.studies.reproduce.recipe import Recipe, choose_recipes, read_recipes
from hilltop.studies.reproduce.report import write_reproduction_report
from hilltop.studies.reproduce.run import Reproduction, reproduce
from hilltop.studies.reproduce.source import EVERY, Source, given_source

__all__ = [
    "DATA_SETS",
    "EVERY",
    "EmbeddedSize",
    "Layout",
    "PaperValue",
    "PaperValues",
    "Recipe",
    "Reproduction",
    "Source",
    "choose_recipes",
    "embedded_source",
    "find_data",
    "given_source",
    "official_sources",
    "read_paper_values",
    "read_recipes",
    "reproduce",
    "write_reproduction_report",
]
