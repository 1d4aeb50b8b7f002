"""What a model sees: images, features, backbones that make features, and drawn pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilltop.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from hilltop.inputs.backbone import (
        Backbone,
        FeatureExtractor,
        extract_features,
        write_features,
    )
    from hilltop.inputs.descriptor import describe_files
    from hilltop.inputs.features import FeatureInputs, Features, read_features
    from hilltop.inputs.image_files import find_images, list_images
    from hilltop.inputs.images import ImageInputs
    from hilltop.inputs.outputs import OutputInputs, Window
    from hilltop.inputs.ranks import Ranks, joined_ranks
    from hilltop.inputs.shards import FeatureShards, shared_features
    from hilltop.inputs.synthetic import write_dataset

__all__ = [
    "Backbone",
    "FeatureExtractor",
    "FeatureInputs",
    "FeatureShards",
    "Features",
    "ImageInputs",
    "OutputInputs",
    "Ranks",
    "Window",
    "describe_files",
    "extract_features",
    "find_images",
    "joined_ranks",
    "list_images",
    "read_features",
    "shared_features",
    "write_dataset",
    "write_features",
]

_MODULES = {
    "Backbone": "backbone",
    "FeatureExtractor": "backbone",
    "FeatureInputs": "features",
    "FeatureShards": "shards",
    "Features": "features",
    "ImageInputs": "images",
    "OutputInputs": "outputs",
    "Window": "outputs",
    "Ranks": "ranks",
    "describe_files": "descriptor",
    "extract_features": "backbone",
    "find_images": "image_files",
    "joined_ranks": "ranks",
    "list_images": "image_files",
    "read_features": "features",
    "shared_features": "shards",
    "write_dataset": "synthetic",
    "write_features": "backbone",
}
__getattr__, __dir__ = lazy_imports(__name__, _MODULES)
