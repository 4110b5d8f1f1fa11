"""Loaders and splits in other processes: fork, spawn, forkserver, torch's workers."""

import multiprocessing
import os
import sys
from typing import Any

import pytest
from conftest import FORKS_BESIDE_THREADS

import millrace

SMALL: dict[str, Any] = {"view": millrace.Square(16), "array": "raw", "threads": 1}


def count(split: millrace.Split) -> tuple[int, int]:
    total = sum(batch.count for batch in millrace.Loader(split, 16, **SMALL))
    return total, split[7]["label"]


@pytest.mark.parametrize("method", [pytest.param("fork", marks=FORKS_BESIDE_THREADS), "spawn", "forkserver"])
def test_a_split_goes_to_other_processes(dataset: millrace.Dataset, method: str) -> None:
    split = dataset["train"]
    next(iter(millrace.Loader(split, 16, **SMALL)))  # threads are running when it forks
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(count, [split] * 4) == [(84, split[7]["label"])] * 4


@FORKS_BESIDE_THREADS
def test_a_loader_in_a_child_of_fork_goes_on_there(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 16, **SMALL)
    it = iter(loader)
    next(it)
    child = os.fork()
    if child == 0:
        try:
            next(it)
        except millrace.MisuseError:
            os._exit(0 if sum(batch.count for batch in loader) == 84 - 16 else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert next(it).count == 16


def test_torch_workers(dataset: millrace.Dataset) -> None:
    torch = pytest.importorskip("torch.utils.data")
    split = dataset["train"].with_transform(label_of)
    for method in ("fork", "spawn"):
        loader = torch.DataLoader(split, batch_size=10, num_workers=2, multiprocessing_context=method)
        assert [int(x) for batch in loader for x in batch] == dataset["train"].labels.tolist()


def label_of(sample: millrace.Sample) -> int:
    return sample["label"]


def test_sub_interpreters_have_modules_of_their_own(dataset: millrace.Dataset) -> None:
    interpreters = pytest.importorskip("_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters")
    one = interpreters.create()
    script = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import millrace\n"
        f"assert len(millrace.Dataset({dataset.path!r})['train']) == 84\n"
    )
    assert not interpreters.run_string(one, script)
    interpreters.destroy(one)
    assert len(dataset["train"]) == 84
