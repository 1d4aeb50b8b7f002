"""Every table and figure of the paper, from recipes, beside the numbers that it prints."""

from hilltop.deprecation import renamed_attributes
from hilltop.studies.reproduce.dataset_files import DATA_SETS, DatasetFiles, find_data
from hilltop.studies.reproduce.official import official_sources
from hilltop.studies.reproduce.recipe import (
    PaperValue,
    PaperValues,
    Recipe,
    choose_recipes,
    read_paper_values,
    read_recipes,
)
from hilltop.studies.reproduce.report import write_reproduction_report
from hilltop.studies.reproduce.run import Reproduction, reproduce
from hilltop.studies.reproduce.source import (
    EVERY,
    EmbeddedSize,
    Source,
    embedded_source,
    given_source,
)

__all__ = [
    "DATA_SETS",
    "EVERY",
    "DatasetFiles",
    "EmbeddedSize",
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

__getattr__ = renamed_attributes(__name__, {"Layout": "DatasetFiles"})
