"""Frameworks that are stopped and go on: each of them, alone and on two ranks, in the middle of an epoch and at its end.

The test runs this file as a program, by each launcher: `test_stops.py FRAMEWORK LAUNCHER DATASET FOLDER RUN`. RUN is "whole", or
"rest": the runs that go on from the whole one's checkpoints. What a rank is given is written to FOLDER/RUN-rankN.
"""

import importlib
import importlib.util
import os
import pathlib
import socket
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import millrace

EPOCHS, STEPS, GLOBAL_BATCH = 2, 6, 16
STOPS = (4, 6)  # after this many steps
LAUNCHERS = {"alone": 1, "torchrun": 2, "spawn": 2}
EXAMPLES = pathlib.Path(__file__).parents[3] / "python" / "examples"


class Run:
    """A run of a rank: what it is given, and where it saves."""

    def __init__(self, dataset: str, folder: pathlib.Path, name: str, resume: int, launcher: str) -> None:
        self.dataset, self.folder, self.name, self.resume, self.launcher = dataset, folder, name, resume, launcher

    def loader(self, **options: Any) -> millrace.Loader:
        common: dict[str, Any] = {"view": millrace.Crop(16), "threads": 1, "array": "torch", "seed": 3, "shuffle": True}
        size = GLOBAL_BATCH // LAUNCHERS[self.launcher]
        return millrace.Dataset(self.dataset).loader("train", size, fields=("image", "label", "sample"), **common, **options)

    def note(self, rank: int, samples: Any) -> None:
        with open(self.folder / f"{self.name}-rank{rank}", "a") as file:
            file.write(" ".join(str(int(i)) for i in samples) + "\n")

    def place(self, step: int) -> pathlib.Path:
        return self.folder / f"step{step}"


def network() -> Any:
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 10))


def with_torch(run: Run) -> None:
    import torch

    rank, several = int(os.environ.get("RANK", 0)), LAUNCHERS[run.launcher] > 1
    if several:
        torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(network()) if several else network()
    optimizer, loader = torch.optim.SGD(model.parameters(), lr=1e-3), run.loader()
    if run.resume:
        kept = torch.load(run.place(run.resume), weights_only=True)
        model.load_state_dict(kept["model"])
        loader.load_state_dict(kept["loader"])
    step = run.resume
    for _ in range(loader.epoch, EPOCHS):
        for images, labels, samples in loader:
            run.note(rank, samples)
            torch.nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            step += 1
            if step in STOPS and rank == 0 and not run.resume:
                torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, run.place(step))
    if several:
        torch.distributed.destroy_process_group()


def with_lightning(run: Run) -> None:
    import lightning
    import torch
    from lightning.pytorch.callbacks import ModelCheckpoint

    class Model(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network()

        def training_step(self, batch: Any, index: int) -> Any:
            images, labels, samples = batch
            run.note(self.global_rank, samples)
            return torch.nn.functional.cross_entropy(self.network(images), labels)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    saver = ModelCheckpoint(run.folder / ("again" if run.resume else ""), filename="step{step}", auto_insert_metric_name=False,
                            every_n_train_steps=2, save_top_k=-1)  # fmt: skip
    trainer = lightning.Trainer(
        default_root_dir=run.folder, accelerator="cpu", devices=LAUNCHERS[run.launcher], max_epochs=EPOCHS, callbacks=[saver],
        strategy={"alone": "auto", "torchrun": "ddp", "spawn": "ddp_fork"}[run.launcher],
        logger=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    resume = {"ckpt_path": f"{run.place(run.resume)}.ckpt", "weights_only": False} if run.resume else {}
    trainer.fit(Model(), run.loader(), **resume)


def with_fabric(run: Run) -> None:
    import lightning
    import torch

    def train(fabric: Any) -> None:
        net, loader = network(), run.loader()
        model, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=1e-3))
        state: dict[str, Any] = {"model": model, "loader": loader, "step": 0}
        if run.resume:
            state.update(fabric.load(run.place(run.resume), {"model": model}, weights_only=False))
            loader.load_state_dict(state["loader"])
        for _ in range(loader.epoch, EPOCHS):
            for images, labels, samples in loader:
                run.note(fabric.global_rank, samples)
                fabric.backward(torch.nn.functional.cross_entropy(model(images), labels))
                optimizer.step()
                state["step"] += 1
                if state["step"] in STOPS and not run.resume:
                    fabric.save(run.place(state["step"]), {**state, "loader": loader.state_dict()})

    strategy = {"alone": "auto", "torchrun": "ddp", "spawn": "ddp_fork"}[run.launcher]
    fabric = lightning.Fabric(accelerator="cpu", devices=LAUNCHERS[run.launcher], strategy=strategy)
    fabric.launch(train)


def with_transformers(run: Run) -> None:
    import transformers

    sys.path.insert(0, str(EXAMPLES))
    example = importlib.import_module("with_transformers")
    integrations = importlib.import_module("millrace.integrations")
    rank = int(os.environ.get("RANK", 0))

    def as_inputs(batch: dict[str, Any]) -> dict[str, Any]:
        run.note(rank, batch["sample"])
        return {"pixel_values": batch["image"], "labels": batch["label"]}

    loader = run.loader(as_dict=True, transform=as_inputs)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "num_labels": 10}
    model = transformers.ViTForImageClassification(transformers.ViTConfig(image_size=16, patch_size=8, **sizes))
    arguments = transformers.TrainingArguments(
        str(run.folder / ("again" if run.resume else "")), num_train_epochs=EPOCHS, use_cpu=True, report_to=[], save_steps=2,
        disable_tqdm=True, **({"ddp_backend": "gloo"} if LAUNCHERS[run.launcher] > 1 else {}),
    )  # fmt: skip
    trainer = example.LoaderTrainer(
        train=loader, evaluate=loader, model=model, args=arguments, callbacks=[integrations.ResumeCallback(loader)]
    )
    trainer.train(resume_from_checkpoint=str(run.folder / f"checkpoint-{run.resume}") if run.resume else None)


def with_accelerate(run: Run) -> None:
    import accelerate
    import torch

    accelerator = accelerate.Accelerator(cpu=True)
    net, loader = network(), run.loader()
    model, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=1e-3))
    accelerator.register_for_checkpointing(loader)
    if run.resume:
        accelerator.load_state(str(run.place(run.resume)))
    step = run.resume
    for _ in range(loader.epoch, EPOCHS):
        for images, labels, samples in loader:
            run.note(accelerator.process_index, samples)
            accelerator.backward(torch.nn.functional.cross_entropy(model(images), labels))
            optimizer.step()
            step += 1
            if step in STOPS and not run.resume:
                accelerator.save_state(str(run.place(step)))


FRAMEWORKS: dict[str, Callable[[Run], None]] = {
    "torch": with_torch,
    "lightning": with_lightning,
    "fabric": with_fabric,
    "transformers": with_transformers,
    "accelerate": with_accelerate,
}


def one_rank(rank: int | None, port: int, framework: str, run: Run) -> None:
    """`rank`: of processes that this program has spawned; None: the launcher has said it, or the framework will."""
    warnings.simplefilter("ignore")
    if rank is not None:
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        os.environ.update({name: str(value) for name, value in place.items()})
    FRAMEWORKS[framework](run)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(framework: str, launcher: str, dataset: str, folder: str, name: str) -> None:
    for resume in (0,) if name == "whole" else STOPS:
        run = Run(dataset, pathlib.Path(folder), f"{name}{resume}" if resume else name, resume, launcher)
        if launcher == "spawn" and framework not in ("lightning", "fabric"):  # they start ranks themselves
            import torch

            torch.multiprocessing.spawn(one_rank, (free_port(), framework, run), nprocs=2)
        else:
            one_rank(None, 0, framework, run)


def start(launcher: str, *words: object) -> None:
    python = [sys.executable] + (["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"] if launcher == "torchrun" else [])
    done = subprocess.run([*python, __file__, *map(str, words)], capture_output=True, text=True, timeout=900,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]


def given_to(folder: pathlib.Path, name: str, launcher: str) -> list[list[list[int]]]:
    """The samples of each step, by rank."""
    files = [folder / f"{name}-rank{rank}" for rank in range(LAUNCHERS[launcher])]
    return [[[int(i) for i in line.split()] for line in file.read_text().splitlines()] for file in files]


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_stopped_run_goes_on_where_it_was(dataset: millrace.Dataset, tmp_path: pathlib.Path, framework: str, launcher: str) -> None:
    pytest.importorskip("torch")
    needed = {"fabric": ["lightning"], "transformers": ["transformers", "accelerate"]}.get(framework, [framework])
    for module in needed:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"no {module}")
    start(launcher, framework, launcher, dataset.path, tmp_path, "whole")
    whole = given_to(tmp_path, "whole", launcher)
    plain = [batch.column("sample").tolist() for batch in _passes(dataset)]
    assert [sum((rank[step] for rank in whole), [])[: len(plain[step])] for step in range(EPOCHS * STEPS)] == plain
    start(launcher, framework, launcher, dataset.path, tmp_path, "rest")
    for stop in STOPS:
        assert given_to(tmp_path, f"rest{stop}", launcher) == [rank[stop:] for rank in whole], stop


def _passes(dataset: millrace.Dataset) -> Any:
    loader = dataset.loader("train", GLOBAL_BATCH, shuffle=True, seed=3, view=millrace.Crop(16), array="raw")
    for _ in range(EPOCHS):
        yield from loader


if __name__ == "__main__":
    main(*sys.argv[1:])
