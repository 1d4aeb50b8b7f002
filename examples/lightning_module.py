"""A LightningModule whose labels are incomplete; inputs and labels are generated.

Run it with: python examples/lightning_module.py
"""

import lightning as L  # noqa: N812 (the name its documentation uses)
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from hilltop.losses import init_head, splc
from hilltop.metrics import ReportAccumulator


class Tagger(L.LightningModule):
    """A linear classifier of tags."""

    def __init__(self, features: int, labels: Tensor) -> None:
        """Start the head where the loss is least on these labels."""
        super().__init__()
        self.criterion = splc()  # <- was nn.BCEWithLogitsLoss()
        self.model = nn.Linear(features, labels.shape[1])
        nn.init.zeros_(self.model.weight)
        init_head(self.model, self.criterion, labels)
        self.report = ReportAccumulator()

    def on_train_epoch_start(self) -> None:
        """Tell the loss which epoch begins: splc corrects from the second one on."""
        self.criterion.set_epoch(self.current_epoch)

    def training_step(self, batch: list[Tensor]) -> Tensor:
        """Return the loss of a batch."""
        inputs, targets = batch
        return self.criterion(self.model(inputs), targets)

    def validation_step(self, batch: list[Tensor]) -> None:
        """Collect scores."""
        inputs, targets = batch
        self.report.update(torch.sigmoid(self.model(inputs)), targets)

    def on_validation_epoch_end(self) -> None:
        """Log mAP."""
        self.log("mAP", self.report.compute().mAP)
        self.report.reset()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Train the loss too, if it has anything to learn: it is a part of this module."""
        return torch.optim.Adam(self.parameters(), lr=1e-2)


def main() -> None:
    """Train on 40% of the labels and print mAP on complete ones."""
    torch.manual_seed(0)
    inputs, directions = torch.randn(3000, 32), torch.randn(32, 20)
    labels = (inputs @ directions / 5.7 + 0.5 * torch.randn(3000, 20) > 1.7).float()
    kept = labels[:2000] * (torch.rand(2000, 20) < 0.4)
    train = DataLoader(TensorDataset(inputs[:2000], kept), batch_size=100, shuffle=True)
    val = DataLoader(TensorDataset(inputs[2000:], labels[2000:]), batch_size=500)
    trainer = L.Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Tagger(32, kept), train, val)
    print(f"splc mAP {100 * trainer.callback_metrics['mAP']:.2f}")


if __name__ == "__main__":
    main()
