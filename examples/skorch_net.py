"""A skorch net on incomplete labels, in a search over a setting of the loss; data are generated.

Run it with: python examples/skorch_net.py
"""

from typing import Any

import numpy as np
import torch
from sklearn.model_selection import GridSearchCV
from skorch import NeuralNet
from skorch.callbacks import Callback
from torch import nn

from hilltop.losses import hill, init_head
from hilltop.metrics import mean_average_precision


class Epochs(Callback):
    """Tells the loss which epoch begins, for losses that change over time."""

    def on_epoch_begin(self, net: NeuralNet, **_: Any) -> None:
        """Count from 0."""
        net.criterion_.set_epoch(len(net.history) - 1)


class Start(Callback):
    """Starts the head where the loss is least on the labels."""

    def on_train_begin(self, net: NeuralNet, X: Any, y: Any) -> None:  # noqa: N803 (theirs)
        """Look at the labels."""
        init_head(net.module_, net.criterion_, torch.from_numpy(y))


def score(net: NeuralNet, inputs: np.ndarray, labels: np.ndarray) -> float:
    """Return mAP."""
    return mean_average_precision(net.predict_proba(inputs), labels)


def main() -> None:
    """Train on 40% of the labels and print mAP on complete ones."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((2500, 32)).astype(np.float32)
    logits = inputs @ rng.standard_normal((32, 20)) / 5.7
    labels = (logits + 0.5 * rng.standard_normal((2500, 20)) > 1.7).astype(np.float32)
    kept = labels[:1500] * (rng.random((1500, 20)) < 0.4).astype(np.float32)
    torch.manual_seed(0)
    net = NeuralNet(
        nn.Linear,
        module__in_features=32,
        module__out_features=20,
        criterion=hill,  # <- was nn.BCEWithLogitsLoss
        predict_nonlinearity=torch.sigmoid,  # <- skorch does not guess it for other losses
        optimizer=torch.optim.Adam,
        lr=1e-2,
        max_epochs=5,
        callbacks=[Start(), Epochs()],
        train_split=None,
        verbose=0,
    )
    search = GridSearchCV(net, {"criterion__margin": [0.5, 1.0]}, scoring=score, cv=2)
    search.fit(inputs[:1500], kept)
    scores = search.best_estimator_.predict_proba(inputs[1500:])
    print(f"best margin {search.best_params_['criterion__margin']}")
    print(f"hill mAP {100 * mean_average_precision(scores, labels[1500:]):.2f}")


if __name__ == "__main__":
    main()
