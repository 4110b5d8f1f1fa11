"""The programs of python/examples, where the packages that they use are installed."""

import importlib
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

import millrace

EXAMPLES = pathlib.Path(__file__).parents[3] / "python" / "examples"


@pytest.fixture(autouse=True)
def find_examples(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.chdir(tmp_path)


def run(*words: Any) -> str:
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_finetune_learns_the_drawn_set(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    program = os.environ["MILLRACE_BIN"]
    subprocess.run([program, "sample", "source", "--layout", "imagenette", "--images", "3000", "--simple", "--size", "32", "-q"], check=True)
    millrace.ingest("source", to="drawn")
    words = [EXAMPLES / "finetune.py", "drawn", "--size", "32", "--epochs", "6", "--checkpoint", "last.pt"]
    printed = run(*words)
    accuracies = [float(a) for a in re.findall(r"accuracy ([\d.]+)", printed)]
    print(printed)
    assert len(accuracies) == 6 and accuracies[-1] > 0.9
    assert run(*words) == ""  # it is complete


def test_distributed(dataset: millrace.Dataset) -> None:
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available():
        pytest.skip("torch without torch.distributed")
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    printed = run(*words, EXAMPLES / "distributed.py", dataset.path)
    ranks = sorted(re.findall(r"rank (\d) of 2: (\d+) steps per epoch, (\d+) samples", printed))
    assert [rank for rank, _, _ in ranks] == ["0", "1"] and ranks[0][1] == ranks[1][1] == "6"
    assert sum(int(samples) for _, _, samples in ranks) == 2 * 84


def test_lightning_saves_and_restores_the_loader(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("lightning")
    recipe = importlib.import_module("with_lightning")
    whole = recipe.fit(dataset, str(tmp_path), max_epochs=2).seen
    assert len(whole) == 12
    for step in (4, 8):  # in the middle of the first and of the second epoch
        rest = recipe.fit(dataset, str(tmp_path / "again"), max_epochs=2, ckpt_path=f"{tmp_path}/step={step}.ckpt").seen
        assert rest == whole[step:]


def test_transformers(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    measured = importlib.import_module("with_transformers").main(dataset.path, str(tmp_path), 12)
    assert measured["eval_loss"] < 3


def test_jax(dataset: millrace.Dataset) -> None:
    pytest.importorskip("jax")
    losses = importlib.import_module("with_jax").main(dataset.path)
    assert len(losses) == 15 and sum(losses[-5:]) < sum(losses[:5])
