"""From images or features to scores: training that a person can trust."""

from hilltop.training.config import ModelConfig, TrainConfig
from hilltop.training.stages import resume, train

__all__ = ["ModelConfig", "TrainConfig", "resume", "train"]
