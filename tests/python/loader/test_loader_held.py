"""Held batches: nothing hangs and nothing changes, however many are kept and for however long."""

import gc
import os
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import millrace
from conftest import UNDER_ASAN

SMALL: dict[str, Any] = {"view": millrace.Square(32), "threads": 1}


def test_list_of_a_loader(dataset: millrace.Dataset) -> None:
    for threads in (0, 2):
        loader = dataset.loader("train", 4, array="numpy", **{**SMALL, "threads": threads})
        kept = list(loader)
        assert len(kept) == 21
        assert all((x == y).all() for (x, _), (y, _) in zip(kept, loader))


def test_two_loaders_zipped_and_many_at_once(dataset: millrace.Dataset) -> None:
    one, two = (dataset.loader("train", 8, array="numpy", **SMALL) for _ in range(2))
    assert all((x == y).all() for (x, _), (y, _) in zip(one, two))
    loaders = [iter(dataset.loader("train", 8, array="numpy", **SMALL)) for _ in range(20)]
    first = [next(loader)[0] for loader in loaders]
    assert all((image == first[0]).all() for image in first)


def test_a_batch_outlives_everything(dataset: millrace.Dataset) -> None:
    opened = millrace.Dataset(dataset.path)
    image, _ = next(iter(opened.loader("train", 8, array="numpy", **SMALL)))
    total = image.sum()
    del opened
    gc.collect()
    assert image.sum() == total


def test_batches_that_are_held_when_the_loader_closes(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 8, array="raw", **SMALL)
    batch = next(iter(loader))
    before, lent = bytes(memoryview(batch).cast("B")), batch.lent
    loader.close()
    assert lent and not batch.lent and bytes(memoryview(batch).cast("B")) == before


def test_release(dataset: millrace.Dataset) -> None:
    batch = next(iter(dataset.loader("train", 8, array="raw", **SMALL)))
    view = np.asarray(batch)
    assert repr(batch) == "<millrace.Batch, epoch 0, step 0, 8 samples>"
    with pytest.raises(BufferError, match="1 arrays share"):
        batch.release()
    del view
    batch.release()
    batch.release()
    assert repr(batch) == "<millrace.Batch, released>"
    with pytest.raises(millrace.MisuseError, match="released"):
        batch.column("label")
    with pytest.raises(BufferError, match="released"):
        memoryview(batch)


def test_columns(dataset: millrace.Dataset) -> None:
    batch = next(iter(dataset.loader("train", 8, array="raw", **SMALL)))
    assert (batch.epoch, batch.step, batch.count, batch.replaced, batch.bad) == (0, 0, 8, 0, [])
    assert batch.column("label").tolist() == dataset["train"].labels[:8].tolist()
    assert batch.column("weight").format == "f" and batch.column("weight").tolist() == [1.0] * 8
    with pytest.raises(KeyError):
        batch.column("colour")
    with pytest.raises(KeyError):
        batch.column_dlpack("colour")
    batch.column_dlpack("label")

    class Labels:
        def __dlpack__(self, **unused: object) -> Any:
            return batch.column_dlpack("label")

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    labels = np.from_dlpack(Labels())
    batch.release()
    assert labels.tolist() == dataset["train"].labels[:8].tolist()


def test_dlpack_capsules(dataset: millrace.Dataset) -> None:
    batch = next(iter(dataset.loader("train", 8, array="raw", **SMALL)))
    assert batch.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(batch.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(batch.__dlpack__())
    with pytest.raises(BufferError):
        batch.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):
        batch.__dlpack__(copy=True)
    array = np.from_dlpack(batch)
    assert array.shape == (8, 3, 32, 32) and (array == np.asarray(batch)).all()
    alive = weakref.ref(array)
    del array
    gc.collect()
    assert alive() is None
    batch.release()


def test_ten_thousand_batches_leak_nothing(dataset: millrace.Dataset) -> None:
    import resource

    def run(batches: int) -> None:
        loader = dataset.loader("train", 1, view=millrace.Square(8), array="numpy", threads=1)
        kept: list[Any] = []
        for n in range(batches // 84 + 1):
            for image, label in loader:
                kept = kept[-5:] + [image]
            assert label[0] >= 0

    run(500)
    gc.collect()
    before, objects = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, sys.getallocatedblocks()
    run(10_000)
    gc.collect()
    assert sys.getallocatedblocks() - objects < 500
    # kB; a leak of the images alone would be 7,680.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 7000 or UNDER_ASAN


def test_the_interpreter_ends_with_live_loaders(dataset: millrace.Dataset) -> None:
    script = (
        "import sys, millrace\n"
        "loader = millrace.Dataset(sys.argv[1]).loader('train', 8, threads=2, array='raw')\n"
        "it = iter(loader)\n"
        "kept = next(it), memoryview(next(it))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, dataset.path], capture_output=True, env=os.environ, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
