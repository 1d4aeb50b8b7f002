"""Patches: label files with some pairs changed and everything else left as it was."""

from hilltop.data.patches.base import Change, Original, Patch, Patched
from hilltop.data.patches.lists import patch_list_column, patch_paper_list
from hilltop.data.patches.records import patch_coco, patch_label_studio, patch_lvis
from hilltop.data.patches.tables import patch_long, patch_openimages, patch_wide

PATCHES: dict[str, Patch] = {
    "long": patch_long,
    "openimages": patch_openimages,
    "wide": patch_wide,
    "list_column": patch_list_column,
    "huggingface": patch_list_column,
    "paper_list": patch_paper_list,
    "coco": patch_coco,
    "lvis": patch_lvis,
    "label_studio": patch_label_studio,
}
"""By format. The others are written anew from the table, in the same order."""

__all__ = ["PATCHES", "Change", "Original", "Patch", "Patched"]
