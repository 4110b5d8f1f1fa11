"""with_transformers.py DATASET - Hugging Face's Trainer fine-tunes a tiny ViT, fed by a Loader.

The Trainer asks get_train_dataloader() for its batches: dicts with the model's own names.
"""

from __future__ import annotations

import sys
from typing import Any

from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

import millrace


def as_inputs(batch: dict[str, Any]) -> dict[str, Any]:
    return {"pixel_values": batch["image"], "labels": batch["label"]}


class LoaderTrainer(Trainer):  # type: ignore[misc]
    """A Trainer whose batches come from two millrace loaders."""

    def __init__(self, *, train: millrace.Loader, evaluate: millrace.Loader, **options: Any) -> None:
        super().__init__(**options)
        self._train, self._evaluate = train, evaluate

    def get_train_dataloader(self) -> Any:
        return self._train

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        return self._evaluate


def main(path: str, folder: str = "vit", steps: int = 20) -> dict[str, float]:
    dataset = millrace.Dataset(path)
    options: dict[str, Any] = {"as_dict": True, "transform": as_inputs, "array": "torch"}
    train = dataset.loader("train", 16, shuffle=True, view=millrace.Crop(32), **options)
    val = dataset.loader("val", 36, view=millrace.Square(32), **options)
    config = ViTConfig(
        image_size=32, patch_size=8, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        num_labels=len(dataset.classes),
    )  # fmt: skip
    arguments = TrainingArguments(
        folder, max_steps=steps, use_cpu=True, report_to=[], save_strategy="no", learning_rate=2e-3, disable_tqdm=True,
        logging_steps=10,
    )  # fmt: skip
    trainer = LoaderTrainer(train=train, evaluate=val, model=ViTForImageClassification(config), args=arguments)
    trainer.train()
    measured: dict[str, float] = trainer.evaluate(val)
    return measured


if __name__ == "__main__":
    print(main(sys.argv[1]))
