"""with_lightning.py DATASET - Lightning: the loader is passed to Trainer.fit() as it is.

Lightning saves the loader's state in its checkpoints and restores it from there, so that ckpt_path= continues in the middle
of an epoch with the samples that come next.
"""

from __future__ import annotations

import sys
from typing import Any

import lightning
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint

import millrace


class Classifier(lightning.LightningModule):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, classes))
        self.seen: list[list[int]] = []

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        images, labels, samples = batch
        self.seen.append(samples.tolist())
        return F.cross_entropy(self.network(images), labels)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def fit(dataset: millrace.Dataset, folder: str, **options: Any) -> Classifier:
    """Trains; returns the model, which remembers the samples of its steps."""
    fields = ("image", "label", "sample")
    train = dataset.loader("train", 16, shuffle=True, view=millrace.Crop(32), fields=fields)
    model = Classifier(len(dataset.classes))
    saver = ModelCheckpoint(dirpath=folder, filename="{step}", every_n_train_steps=4, save_top_k=-1)
    ckpt_path = options.pop("ckpt_path", None)
    trainer = lightning.Trainer(
        default_root_dir=folder, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
        callbacks=[saver], **options,
    )  # fmt: skip
    trainer.fit(model, train, ckpt_path=ckpt_path)
    return model


if __name__ == "__main__":
    trained = fit(millrace.Dataset(sys.argv[1]), "checkpoints", max_epochs=2)
    print(f"{len(trained.seen)} steps")
