"""Any timm backbone on images, and where its weights start. timm is imported when one is built."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hilltop.checks import check_number, did_you_mean
from hilltop.errors import ArgumentError, DataError, HilltopWarning
from hilltop.models.boosted import boost_activations
from hilltop.models.hub import calm_hub
from hilltop.models.weights import find_weights, misfits, read_weights, renamed_in_order

_USUAL_SIZE = 224


class NormalisedInput(nn.Module):
    """A backbone that shifts and scales pixels in [0, 1] as its weights expect.

    Args:
        backbone: A timm model.

    Shape:
        ``(N, 3, size, size)`` to logits ``(N, classes)``.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, backbone: nn.Module) -> None:
        """Take mean and deviation from what timm knows of the backbone."""
        super().__init__()
        known = getattr(backbone, "pretrained_cfg", {})
        for name in ("mean", "std"):
            values = torch.tensor(known.get(name, (0.5, 0.5, 0.5)))
            self.register_buffer(name, values.reshape(1, -1, 1, 1))
        self.backbone = backbone

    def forward(self, pixels: Tensor) -> Tensor:
        """Return the logits."""
        logits: Tensor = self.backbone((pixels - self.mean) / self.std)
        return logits

    def get_classifier(self) -> nn.Module:
        """Return the backbone's classifier, by the name that timm gives this method."""
        classifier: nn.Module = self.backbone.get_classifier()  # type: ignore[operator]
        return classifier


def build_image_model(
    name: str,
    classes: int,
    *,
    weights: str,
    image_size: int | None = None,
    normalise: bool = False,
    silent: bool = True,
    boost: float = 1.0,
) -> nn.Module:
    """Build a timm backbone with a new classifier.

    Args:
        name: Name that timm knows, for example ``resnet50``.
        classes: Number of classes.
        weights: ``none``; ``timm`` for its pretrained weights, which asks the hub unless they are
            cached; a local ``.safetensors``, ``.pth``, ``.pt`` or ``.bin`` file; or the name of an
            installed package that holds one.
        image_size: Side of the images, for backbones built for one size (Swin, ViT).
        normalise: Shift and scale pixels as timm's weights for this backbone expect.
        silent: Let a new classifier on pretrained weights start at 0, not at random.
        boost: Factor on class activations above 0 before they are pooled, see
            :class:`~hilltop.models.boosted.BoostedLinear`; 1 leaves the classifier as it is.

    Raises:
        ArgumentError: timm has no such model.
        DataError: The weights cannot be had or do not fit.

    Note:
        A classifier of another size in a local file is left out, with a warning that says so. All
        other weights must fit exactly.
    """
    import timm

    check_number("classes", classes, low=1)
    if not timm.is_model(name):
        known = timm.list_models()
        raise ArgumentError(
            f"timm has no model {name!r}.{did_you_mean(name, known)}"
            f" It has {len(known)}; list them with timm.list_models()."
        )
    if weights == "timm":
        model = _pretrained(name, classes, image_size)
        if silent:
            _silence(model, _classifier_keys(model))
    else:
        model = _create(name, classes, image_size, pretrained=False)
        if weights != "none":
            _load_backbone(model, find_weights(weights), silent=silent)
    if boost != 1:
        boost_activations(model, boost, size=image_size or _USUAL_SIZE)
    return NormalisedInput(model) if normalise else model


def backbone_of(model: nn.Module) -> nn.Module:
    """The timm model itself."""
    return model.backbone if isinstance(model, NormalisedInput) else model


def classifier_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Parameters of the classifier of an image model; none if it has no such part."""
    backbone = backbone_of(model)
    keys = _classifier_keys(backbone)
    return [parameter for key, parameter in backbone.named_parameters() if key in keys]


def hold_statistics(model: nn.Module) -> None:
    """Let batch norms use the statistics they have, and leave them, until the next ``train()``.

    Their scale and shift go on learning. Statistics of small batches of other images at another
    size undo much of what pretrained weights know before the weights can follow.
    """
    for part in model.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            part.eval()


def count_parameters(model: nn.Module) -> int:
    """Number of trainable parameters.

    Example:
        >>> from hilltop.models import FeatureHead
        >>> count_parameters(FeatureHead(4, 3, hidden=None))
        15
    """
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def _create(name: str, classes: int, image_size: int | None, *, pretrained: bool) -> nn.Module:
    """Create a model; one that is built for a single image size is told which one."""
    import timm

    settings = timm.get_pretrained_cfg(name)
    fixed = settings is not None and settings.fixed_input_size
    options: dict[str, Any] = {"img_size": image_size} if fixed and image_size is not None else {}
    try:
        model: nn.Module = timm.create_model(
            name, pretrained=pretrained, num_classes=classes, **options
        )
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        if settings is None or not options:
            raise
        size = settings.input_size[-1]
        raise ArgumentError(
            f"{name!r} cannot be built for images of {image_size} px ({error}); use {size}."
        ) from None
    return model


def _pretrained(name: str, classes: int, image_size: int | None) -> nn.Module:
    import timm

    settings = timm.get_pretrained_cfg(name)
    if settings is None or not settings.has_weights:
        raise DataError(f"timm has no pretrained weights for {name!r}; use weights none or a file.")
    there = True
    try:
        with calm_hub() as there:
            return _create(name, classes, image_size, pretrained=True)
    except OSError as error:  # so do all errors of the hub and of the connection descend from it
        reason = str(error).partition("\n")[0].rstrip(".")
        reason = reason if there else "the hub cannot be reached from here"
        raise DataError(
            f"The pretrained weights of {name!r} could not be fetched ({reason}); connect to the"
            " network, pass a local .safetensors or .pth file as weights, or use none."
        ) from None


def _load_backbone(model: nn.Module, path: Path, *, silent: bool) -> None:
    """Load all weights but a classifier of another size, and name whatever does not fit."""
    wanted = model.state_dict()
    head = _classifier_keys(model)
    given = renamed_in_order(read_weights(path), wanted, head)
    left_out = sorted(key for key in head if key in given and given[key].shape != wanted[key].shape)
    new = sorted(head - set(given)) + left_out
    faults = misfits(
        {key: value for key, value in wanted.items() if key not in new},
        {key: value for key, value in given.items() if key not in left_out},
    )
    if faults:
        raise DataError(f"{path}: the weights do not fit this model: {'; '.join(faults)}.")
    model.load_state_dict({**given, **{key: wanted[key] for key in new}}, strict=False)
    if silent:
        _silence(model, set(new))
    if new:
        warnings.warn(
            f"{path}: the classifier ({', '.join(new)}) is missing or has another size, so it"
            " starts anew; all other weights were loaded.",
            HilltopWarning,
            stacklevel=3,
        )


@torch.no_grad()
def _silence(model: nn.Module, keys: set[str]) -> None:
    """Start a new classifier at 0: random weights would first pull at what the others know."""
    for key, parameter in model.named_parameters():
        if key in keys:
            parameter.zero_()


def _classifier_keys(model: nn.Module) -> set[str]:
    """Names of the weights of the last layer or layers."""
    names = getattr(model, "pretrained_cfg", {}).get("classifier") or ()
    prefixes = (names,) if isinstance(names, str) else tuple(names)
    return {
        key for key in model.state_dict() if key.startswith(tuple(f"{name}." for name in prefixes))
    }
