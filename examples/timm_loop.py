"""A timm model, timm's optimiser, schedule and average, and Mixup, on incomplete labels.

timm calls its loss as ``loss_fn(output, target)``, as ours are called. ``timm.data.Mixup`` mixes
single class numbers; torchvision's MixUp and CutMix mix rows of many labels, as here.

Run it with: python examples/timm_loop.py
"""

import timm
import torch
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3
from torchvision.transforms import v2

from hilltop.losses import hill, init_head
from hilltop.metrics import mean_average_precision

SIZE, CLASSES = 32, 8


def draw(images: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw pictures with coloured patches; every class is a colour, and a picture has some."""
    colours = torch.tensor([[c & 1, c >> 1 & 1, c >> 2 & 1] for c in range(CLASSES)]).float()
    labels = (torch.rand(images, CLASSES) < 0.25).float()
    pictures = 0.5 + 0.1 * torch.randn(images, 3, SIZE, SIZE)
    for row, column in labels.nonzero().tolist():
        top, left = torch.randint(SIZE - 10, (2,)).tolist()
        pictures[row, :, top : top + 10, left : left + 10] = colours[column].view(3, 1, 1)
    return pictures.contiguous(memory_format=torch.channels_last), labels


def main() -> None:
    """Train on 60% of the labels and print mAP on complete ones."""
    torch.manual_seed(0)
    pictures, labels = draw(1200)
    kept = labels[:900] * (torch.rand(900, CLASSES) < 0.6)
    model = timm.create_model("test_resnet", num_classes=CLASSES)
    model = model.to(memory_format=torch.channels_last)
    loss_fn = hill()  # <- was timm.loss.BinaryCrossEntropy()
    init_head(model, loss_fn, kept)
    mix = v2.RandomChoice([v2.MixUp(alpha=0.2), v2.CutMix(alpha=0.2)])
    optimizer = create_optimizer_v2(model, opt="adamw", lr=3e-3, weight_decay=0.05)
    scheduler = CosineLRScheduler(optimizer, t_initial=8)
    average = ModelEmaV3(model, decay=0.95)
    for epoch in range(8):
        loss_fn.set_epoch(epoch)
        for rows in torch.randperm(900).split(50):
            inputs, target = mix(pictures[rows], kept[rows])
            output = model(inputs)
            loss = loss_fn(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
        scheduler.step(epoch + 1)
    average.eval()
    with torch.no_grad():
        scores = average(pictures[900:])
    print(f"hill mAP {100 * mean_average_precision(scores, labels[900:]):.2f}")


if __name__ == "__main__":
    main()
