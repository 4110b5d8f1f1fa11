"""Lightning: fit with validation, validate, test, predict; resume from any checkpoint; ranks that Lightning starts itself."""

import pathlib
import warnings
from typing import Any

import pytest

import millrace

lightning = pytest.importorskip("lightning")
torch = pytest.importorskip("torch")

FIELDS = ("image", "label", "sample")


class Model(lightning.LightningModule):  # type: ignore[name-defined,misc]
    """Remembers the samples of its steps; in several processes they are written to a folder."""

    def __init__(self, folder: pathlib.Path | None = None) -> None:
        super().__init__()
        self.network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 10))
        self.seen: list[list[int]] = []
        self.looked_at = 0
        self.folder = folder

    def training_step(self, batch: Any, index: int) -> Any:
        images, labels, samples = batch
        self.seen.append(samples.tolist())
        if self.folder is not None:
            with open(self.folder / f"rank{self.global_rank}", "a") as file:
                file.write("".join(f"{i}\n" for i in samples.tolist()))
        return torch.nn.functional.cross_entropy(self.network(images), labels)

    def validation_step(self, batch: Any, index: int) -> None:
        self.looked_at += len(batch[1])

    test_step = validation_step

    def predict_step(self, batch: Any, index: int) -> int:
        return len(batch[1])

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=1e-3)


def train_loader(dataset: millrace.Dataset) -> millrace.Loader:
    return dataset.loader("train", 16, shuffle=True, view=millrace.Crop(16), fields=FIELDS, array="torch")


def val_loader(dataset: millrace.Dataset) -> millrace.Loader:
    return dataset.loader("val", 16, view=millrace.Square(16), fields=FIELDS, array="torch")


def trainer(folder: pathlib.Path, **options: Any) -> Any:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    options.setdefault("enable_checkpointing", "callbacks" in options)
    return lightning.Trainer(default_root_dir=folder, num_sanity_val_steps=0, **quiet, **options)


@pytest.fixture(autouse=True)
def no_advice() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_every_way_through_a_loader(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    model = Model()
    trainer(tmp_path, max_epochs=2).fit(model, train_loader(dataset), val_loader(dataset))
    assert len(model.seen) == 12 and model.looked_at == 2 * 36
    first, second = (sorted(i for batch in model.seen[a : a + 6] for i in batch) for a in (0, 6))
    assert first == second == list(range(84)) and model.seen[:6] != model.seen[6:]
    for way in ("validate", "test"):
        model = Model()
        getattr(trainer(tmp_path), way)(model, val_loader(dataset), verbose=False)
        assert model.looked_at == 36
    assert sum(trainer(tmp_path).predict(Model(), val_loader(dataset))) == 36


@pytest.mark.parametrize(
    "every, options",
    [
        ({"every_n_epochs": 1}, {}),
        ({"every_n_train_steps": 4}, {}),
        ({"every_n_train_steps": 2}, {"accumulate_grad_batches": 2}),
        ({"every_n_train_steps": 2}, {"limit_train_batches": 5}),
        ({"every_n_epochs": 1}, {"limit_train_batches": 5}),
    ],
)
def test_a_resumed_run_sees_what_the_whole_one_saw(
    dataset: millrace.Dataset, tmp_path: pathlib.Path, every: dict[str, int], options: dict[str, int]
) -> None:
    from lightning.pytorch.callbacks import ModelCheckpoint

    def saver(name: str) -> Any:
        return ModelCheckpoint(dirpath=tmp_path / name, filename="{step}", save_top_k=-1, **every)

    whole = Model()
    trainer(tmp_path, max_epochs=3, callbacks=[saver("whole")], **options).fit(whole, train_loader(dataset))
    checkpoints = sorted((tmp_path / "whole").glob("*.ckpt"), key=lambda path: int(path.stem.split("=")[1]))
    assert len(checkpoints) > 2
    for checkpoint in checkpoints[:-1]:
        done = int(checkpoint.stem.split("=")[1]) * options.get("accumulate_grad_batches", 1)
        rest = Model()
        trainer(tmp_path, max_epochs=3, callbacks=[saver(f"after{done}")], **options).fit(
            rest, train_loader(dataset), ckpt_path=checkpoint, weights_only=False
        )
        assert rest.seen == whole.seen[done:], checkpoint


@pytest.mark.parametrize("strategy", ["ddp_spawn", "ddp_fork"])
def test_a_loader_made_before_its_ranks(dataset: millrace.Dataset, tmp_path: pathlib.Path, strategy: str) -> None:
    model = Model(tmp_path)
    trainer(tmp_path, max_epochs=1, devices=2, strategy=strategy).fit(model, train_loader(dataset))
    ranks = [[int(i) for i in (tmp_path / f"rank{rank}").read_text().split()] for rank in range(2)]
    assert set(ranks[0]) | set(ranks[1]) == set(range(84))
    assert len(ranks[0]) == len(ranks[1]) == 3 * 16  # 6 global steps of 32, the last one padded
    assert len(set(ranks[0]) & set(ranks[1])) <= 96 - 84
