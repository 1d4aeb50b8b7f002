"""Which classes the sources of a joined table looked for: what tells absent from not asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Scopes:
    """What was looked for in each image, immutable.

    Images with the same sources share a scope, so memory grows with images plus scopes x classes.

    Attributes:
        names: Name of each scope: its sources.
        of_image: Scope of each image.
        looked_for: Whether a scope holds a class ``(scopes, classes)``.
    """

    names: tuple[str, ...]
    of_image: npt.NDArray[np.int32]
    looked_for: Mask

    def __post_init__(self) -> None:
        """Protect the arrays from being written to."""
        for array in (self.of_image, self.looked_for):
            array.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        """Whether both say that the same was looked for."""
        if not isinstance(other, Scopes):
            return NotImplemented
        return (
            self.names == other.names
            and np.array_equal(self.of_image, other.of_image)
            and np.array_equal(self.looked_for, other.looked_for)
        )

    __hash__ = None  # type: ignore[assignment]

    def images_by_class(self) -> Ints:
        """Number of images in which each class was looked for."""
        images = np.bincount(self.of_image, minlength=len(self.names))
        return np.asarray(images @ self.looked_for, dtype=np.int64)

    def select(self, rows: Ints) -> Scopes:
        """Return the scopes of some images."""
        return Scopes(self.names, self.of_image[rows], self.looked_for)

    def with_columns(self, columns: Ints, classes: int) -> Scopes:
        """Return the scopes under another list of classes; those that are new were not looked for.

        Args:
            columns: New number of each class.
            classes: How many there are now.
        """
        looked_for = np.zeros((len(self.names), classes), dtype=bool)
        looked_for[:, columns] = self.looked_for
        return Scopes(self.names, self.of_image, looked_for)


def merge_scopes(names: Sequence[str], members: Mask, looked_for: Mask) -> Scopes:
    """Return the scopes of images that several sources hold: what any of them looked for.

    Args:
        names: Name of each source.
        members: Whether an image is in a source ``(images, sources)``.
        looked_for: Whether a source looked for a class ``(sources, classes)``.

    Example:
        >>> merged = merge_scopes(["a", "b"], np.array([[True, False], [True, True]]),
        ...                       np.array([[True, False], [False, True]]))
        >>> merged.names, merged.images_by_class()
        (('a', 'a + b'), array([2, 1]))
    """
    # Turned round, single sources come first, in their order.
    kinds, of_image = np.unique(members[:, ::-1], axis=0, return_inverse=True)
    together = kinds[:, ::-1]
    return Scopes(
        names=tuple(" + ".join(np.array(names)[kind]) for kind in together),
        of_image=of_image.reshape(-1).astype(np.int32),
        looked_for=together @ looked_for,
    )
