"""finetune.py DATASET [--epochs N] [--checkpoint FILE] - trains a small network on a dataset of labelled images.

Shows the whole of a training program: two loaders, an epoch per `for`, a checkpoint with the loader's state, from which
the same command continues where it was stopped, even in the middle of an epoch.
"""

from __future__ import annotations

import argparse
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

import millrace


def make_model(classes: int) -> nn.Module:
    layers: list[nn.Module] = []
    channels = 3
    for width in (32, 64, 128, 192):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


@torch.no_grad()
def measure_accuracy(model: nn.Module, loader: millrace.Loader) -> float:
    model.eval()
    right = sum(int((model(images).argmax(1) == labels).sum()) for images, labels in loader)
    model.train()
    return right / len(loader.dataset)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--checkpoint")
    chosen = parser.parse_args()

    torch.manual_seed(0)
    dataset = millrace.Dataset(chosen.dataset)
    view = millrace.Crop(chosen.size, scale=(0.7, 1.0))
    train = dataset.loader("train", chosen.batch, shuffle=True, drop_last=True, view=view)
    val = dataset.loader("val", 64, view=millrace.Square(chosen.size))
    model = make_model(len(dataset.classes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=chosen.epochs * len(train) + 1)

    parts = {"model": model, "optimizer": optimizer, "schedule": schedule, "loader": train}
    if chosen.checkpoint and os.path.exists(chosen.checkpoint):
        saved = torch.load(chosen.checkpoint, weights_only=True)
        for name, part in parts.items():
            part.load_state_dict(saved[name])  # type: ignore[attr-defined]

    started = time.monotonic()
    while train.epoch < chosen.epochs:
        epoch, total = train.epoch, 0.0
        for step, (images, labels) in enumerate(train):
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
            if chosen.checkpoint and step % 20 == 19:
                torch.save({name: part.state_dict() for name, part in parts.items()}, chosen.checkpoint)  # type: ignore[attr-defined]
        accuracy = measure_accuracy(model, val)
        spent = time.monotonic() - started
        print(f"epoch {epoch + 1}: loss {total / (step + 1):.3f}, accuracy {accuracy:.3f}, {spent:.0f} s", flush=True)
    if chosen.checkpoint:
        torch.save({name: part.state_dict() for name, part in parts.items()}, chosen.checkpoint)  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
