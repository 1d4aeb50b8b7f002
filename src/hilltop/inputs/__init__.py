"""What a model sees: images, features, backbones that make features, and drawn pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilltop.doors import open_doors

if TYPE_CHECKING:
    from hilltop.inputs.backbone import Backbone, extract_features, write_features
    from hilltop.inputs.descriptor import describe_files
    from hilltop.inputs.features import FeatureInputs, Features, read_features
    from hilltop.inputs.image_files import find_images, list_images
    from hilltop.inputs.images import ImageInputs
    from hilltop.inputs.synthetic import write_dataset

__all__ = [
    "Backbone",
    "FeatureInputs",
    "Features",
    "ImageInputs",
    "describe_files",
    "extract_features",
    "find_images",
    "list_images",
    "read_features",
    "write_dataset",
    "write_features",
]

_HOMES = {
    "Backbone": "backbone",
    "FeatureInputs": "features",
    "Features": "features",
    "ImageInputs": "images",
    "describe_files": "descriptor",
    "extract_features": "backbone",
    "find_images": "image_files",
    "list_images": "image_files",
    "read_features": "features",
    "write_dataset": "synthetic",
    "write_features": "backbone",
}
__getattr__, __dir__ = open_doors(__name__, _HOMES)
