"""Patches of Label Studio's tasks: choices are added, all else stays as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.data.formats.patched import PatchCase, check_patch

PATCHED_TASKS = """[
 {
  "id": 5,
  "data": {
   "image": "b.jpg",
   "photographer": "Ü"
  },
  "annotations": [
   {
    "result": [
     {
      "value": {
       "choices": [
        "cow"
       ]
      },
      "from_name": "what",
      "to_name": "img",
      "type": "choices"
     }
    ]
   }
  ]
 },
 {"id": 6, "data": {"image": "a.jpg"}, "annotations": [{"result": [{"value": {"choices": ["dog"]},
   "from_name": "what", "to_name": "img", "type": "choices"}]}]}
]
"""
PATCHES = [
    PatchCase("label studio", "label_studio", PATCHED_TASKS, [
            '-         "cow"\n', '+         "cow",\n', '+         "dog"\n',
        ], absents=False, file="labels.json"),
]  # fmt: skip


@pytest.mark.parametrize("case", PATCHES, ids=lambda case: case.name)
def test_a_patch_changes_only_what_was_answered(case: PatchCase, tmp_path: Path) -> None:
    check_patch(case, tmp_path)
