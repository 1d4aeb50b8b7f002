"""Class activations boosted before they are pooled (BoostLU)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from hilltop.checks import check_number
from hilltop.errors import ArgumentError


class BoostedLinear(nn.Linear):
    r"""A classifier of maps that boosts what speaks for a class before the mean is taken.

    .. math:: x_c = b_c + \frac{1}{HW} \sum_{hw} \max(a_{chw}, \alpha\,a_{chw}),
        \qquad a_{chw} = w_c \cdot f_{hw}

    A network that learned missing labels as negatives still activates where the object is, only
    less: boosting what is above 0 brings back what a network on complete labels would say.

    Args:
        features: Number of channels.
        classes: Number of classes.
        alpha: The factor; 1 is a linear classifier of the pooled map.

    Shape:
        ``(N, features, H, W)`` to ``(N, classes)``.

    Example:
        >>> classifier = BoostedLinear(1, 1, alpha=5.0)
        >>> _ = nn.init.ones_(classifier.weight), nn.init.zeros_(classifier.bias)
        >>> classifier(torch.tensor([[[[2.0, -2.0]]]])).item()  # (5 * 2 - 2) / 2
        4.0

    Reference:
        Kim et al., Bridging the gap between model explanations in partially annotated multi-label
        classification, CVPR 2023.

    Note:
        The bias is added behind the mean, so that it can start where the loss is least.
    """

    def __init__(self, features: int, classes: int, *, alpha: float) -> None:
        """Check and keep the factor."""
        super().__init__(features, classes)
        self.alpha = check_number("boost", alpha, low=1)

    def forward(self, maps: Tensor) -> Tensor:
        """Return the logits."""
        activations = functional.conv2d(maps, self.weight[:, :, None, None])
        boosted = torch.maximum(activations, self.alpha * activations)
        return boosted.mean(dim=(2, 3)) + self.bias

    def extra_repr(self) -> str:
        """Show the factor."""
        return f"{super().extra_repr()}, alpha={self.alpha:g}"


def boost_activations(model: nn.Module, alpha: float, *, size: int) -> None:
    """Put a boosted classifier in the place of pooling and linear classifier, weights and all.

    Args:
        model: A timm model that pools its last map and classifies the mean.
        alpha: See :class:`BoostedLinear`.
        size: Side of its images.

    Raises:
        ArgumentError: The model ends in another way.
    """
    check_number("boost", alpha, low=1)
    classifier = model.get_classifier()  # type: ignore[operator]
    names = [name for name, module in model.named_children() if module is classifier]
    pools = isinstance(getattr(model, "global_pool", None), nn.Module)
    if not (names and pools and isinstance(classifier, nn.Linear)):
        raise _other_end(model)
    training, pixels = model.training, torch.zeros(2, 3, size, size)
    with torch.no_grad():
        expected = model.eval()(pixels)
        boosted = BoostedLinear(classifier.in_features, classifier.out_features, alpha=1.0)
        boosted.load_state_dict(classifier.state_dict())
        model.global_pool = nn.Identity()
        setattr(model, names[0], boosted)
        try:
            actual = model(pixels)
        except (RuntimeError, TypeError):
            raise _other_end(model) from None
    if actual.shape != expected.shape or not torch.allclose(actual, expected, atol=1e-4):
        raise _other_end(model)
    boosted.alpha = alpha
    model.train(training)


def _other_end(model: nn.Module) -> ArgumentError:
    return ArgumentError(
        f"boost needs a model that pools its last map and classifies the mean, such as ResNet or"
        f" EfficientNet, and {type(model).__name__} does something else. Leave it at 1."
    )
