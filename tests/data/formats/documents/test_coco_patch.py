"""Patches of COCO and LVIS files: boxes, numbers and layout stay as they were."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilltop.data import ReadOptions
from tests.data.formats.patched import PatchCase, check_patch

PATCHED_COCO = """{
  "info": {"year": 2014, "description": "Größe"},
  "images": [
    {"id": 7, "file_name": "a.jpg", "width": 640, "height": 1e2},
    {"id": 9, "file_name": "b.jpg", "flickr_url": "x"}
  ],
  "annotations": [
    {"id": 3, "image_id": 7, "category_id": 18, "bbox": [1.50, 2, 3, 4], "area": 12.0},
    {"id": 40, "image_id": 9, "category_id": 21, "bbox": [5, 6, 7, 8]}
  ],
  "categories": [{"id": 18, "name": "dog"}, {"id": 21, "name": "cow"}]
}
"""
NEW_ANNOTATION = (
    '{"id": 41, "image_id": 9, "category_id": 18, "iscrowd": 1, "area": 0,'
    ' "bbox": [0, 0, 0, 0], "segmentation": []}'
)
PATCHED_LVIS = PATCHED_COCO.replace('"width": 640', '"neg_category_ids": [], "width": 640').replace(
    '"flickr_url"', '"neg_category_ids": [], "flickr_url"'
)
PATCHES = [
    PatchCase("coco", "coco", PATCHED_COCO, [
            '-     {"id": 40, "image_id": 9, "category_id": 21, "bbox": [5, 6, 7, 8]}\n',
            '+     {"id": 40, "image_id": 9, "category_id": 21, "bbox": [5, 6, 7, 8]},\n',
            f"+     {NEW_ANNOTATION}\n",
        ], absents=False, file="labels.json"),
    PatchCase("lvis", "lvis", PATCHED_LVIS, [
            '-     {"id": 7, "file_name": "a.jpg", "neg_category_ids": [], "width": 640,'
            ' "height": 1e2},\n',
            '+     {"id": 7, "file_name": "a.jpg", "neg_category_ids": [21], "width": 640,'
            ' "height": 1e2},\n',
            '-     {"id": 40, "image_id": 9, "category_id": 21, "bbox": [5, 6, 7, 8]}\n',
            '+     {"id": 40, "image_id": 9, "category_id": 21, "bbox": [5, 6, 7, 8]},\n',
            f"+     {NEW_ANNOTATION}\n",
        ], options=ReadOptions(), file="labels.json"),
]  # fmt: skip


@pytest.mark.parametrize("case", PATCHES, ids=lambda case: case.name)
def test_a_patch_changes_only_what_was_answered(case: PatchCase, tmp_path: Path) -> None:
    check_patch(case, tmp_path)
