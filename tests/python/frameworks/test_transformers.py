"""Hugging Face's Trainer: resume from any checkpoint, in the middle of an epoch and at its end, with accumulation."""

import importlib
import json
import pathlib
import sys
from typing import Any

import pytest

import millrace

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")  # what the Trainer needs

EXAMPLES = pathlib.Path(__file__).parents[3] / "python" / "examples"


def run(dataset: millrace.Dataset, folder: pathlib.Path, resume: Any, **options: Any) -> list[list[int]]:
    """The samples of the batches that the Trainer got."""
    sys.path.insert(0, str(EXAMPLES))
    example = importlib.import_module("with_transformers")
    integrations = importlib.import_module("millrace.integrations")
    seen: list[list[int]] = []

    def as_inputs(batch: dict[str, Any]) -> dict[str, Any]:
        seen.append(batch["sample"].tolist())
        return {"pixel_values": batch["image"], "labels": batch["label"]}

    fields = ("image", "label", "sample")
    common: dict[str, Any] = {"as_dict": True, "transform": as_inputs, "array": "torch", "fields": fields}
    train = dataset.loader("train", 16, shuffle=True, view=millrace.Crop(16), **common)
    config = transformers.ViTConfig(
        image_size=16, patch_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        num_labels=len(dataset.classes),
    )  # fmt: skip
    arguments = transformers.TrainingArguments(
        str(folder), num_train_epochs=3, use_cpu=True, report_to=[], save_strategy="steps", disable_tqdm=True, **options
    )
    trainer = example.LoaderTrainer(
        train=train, evaluate=train, model=transformers.ViTForImageClassification(config), args=arguments,
        callbacks=[integrations.ResumeCallback(train)],
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=resume)
    return seen


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_resumed_run_sees_what_the_whole_one_saw(dataset: millrace.Dataset, tmp_path: pathlib.Path, accumulate: int) -> None:
    options = {"save_steps": 4 // accumulate, "gradient_accumulation_steps": accumulate}
    whole = run(dataset, tmp_path, None, **options)
    assert len(whole) == 18
    for step in (4, 8, 12, 16):
        checkpoint = tmp_path / f"checkpoint-{step // accumulate}"
        assert run(dataset, tmp_path, str(checkpoint), **options) == whole[step:], step
    moved = (tmp_path / f"checkpoint-{4 // accumulate}").rename(tmp_path / "elsewhere")
    assert run(dataset, tmp_path / "again", str(moved), **options) == whole[4:]
    state = json.loads((moved / "trainer_state.json").read_text())
    del state["stateful_callbacks"]["millrace.Loader"]
    (moved / "trainer_state.json").write_text(json.dumps(state))
    with pytest.raises(millrace.MisuseError, match="written without ResumeCallback"):
        run(dataset, tmp_path / "again", str(moved), **options)
