"""Loaders that threads share: each batch goes to one of them, and close() from anywhere ends all waiting with an error."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from conftest import FORKS_BESIDE_THREADS

import millrace

SMALL: dict[str, Any] = {"view": millrace.Square(8), "array": "raw"}
BOTH = pytest.mark.parametrize("threads", [0, 2])


def run(work: Callable[[], None], count: int) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(600)
        assert not thread.is_alive()


def long_loader(dataset: millrace.Dataset, threads: int) -> millrace.Loader:
    """Its first batch takes far longer than a test."""
    items = list(range(84)) * 1000
    return dataset.loader("train", len(items), items=items, threads=threads, output="uint8", **SMALL)


@BOTH
def test_each_batch_goes_to_one_thread_and_the_pass_ends_for_all(dataset: millrace.Dataset, threads: int) -> None:
    loader = dataset.loader("train", 2, threads=threads, **SMALL)
    for epoch in range(10):
        it = iter(loader)
        seen: list[tuple[int, int]] = []
        ended: list[int] = []

        def take() -> None:
            for batch in it:
                seen.append((batch.epoch, batch.step))
            ended.append(len(list(it)))

        join(run(take, 4))
        assert sorted(seen) == [(epoch, step) for step in range(42)]
        assert ended == [0] * 4 and loader.state_dict()["position"] == 0 and loader.epoch == epoch + 1


@BOTH
def test_threads_that_wait_are_told_of_close(dataset: millrace.Dataset, threads: int) -> None:
    for readers in (1, 5):
        loader = long_loader(dataset, threads)
        it = iter(loader)
        said: list[str] = []
        begun = threading.Semaphore(0)

        def wait() -> None:
            begun.release()
            with pytest.raises(millrace.MisuseError) as caught:
                next(it)
            said.append(str(caught.value))

        waiting = run(wait, readers)
        for _ in waiting:
            begun.acquire()
        closers = run(loader.close, 2)
        join(waiting + closers)
        assert len(said) == readers and all("closed" in text for text in said)
        with pytest.raises(millrace.MisuseError, match="closed"):
            next(it)


@BOTH
def test_close_at_any_moment(dataset: millrace.Dataset, threads: int) -> None:
    first = bytes(memoryview(next(iter(dataset.loader("train", 4, **SMALL)))).cast("B"))
    for moment in range(30):
        loader = dataset.loader("train", 4, threads=threads, **SMALL)
        it = iter(loader)
        kept: list[Any] = []
        errors: list[BaseException] = []

        def take() -> None:
            try:
                while True:
                    for batch in it:
                        kept.append(batch)
                    return
            except millrace.MisuseError as error:
                errors.append(error)

        readers = run(take, 3)
        while len(kept) < moment % 20 and any(reader.is_alive() for reader in readers):
            time.sleep(0.0001)
        loader.close()
        join(readers)
        assert all("closed" in str(error) for error in errors) and len(errors) in (0, 3) or len(kept) == 21
        for batch in kept:
            assert len(bytes(memoryview(batch))) == len(first)
            assert batch.step or bytes(memoryview(batch).cast("B")) == first
        del kept[:]
        gc.collect()


@BOTH
def test_the_extension_alone_closes_while_threads_read(dataset: millrace.Dataset, threads: int) -> None:
    """Without the lock of millrace.Loader, so that several threads are in the call."""
    options = {"global_batch": 1, "threads": threads, "size": 8, "kind": 1, "deliver": 1, "epochs": 1000, "prefetch": 2}
    for moment in range(20):
        handle = millrace._millrace.Loader(dataset._handle, "train", options)
        kept: list[Any] = []
        errors: list[str] = []

        def take() -> None:
            try:
                for batch in handle:
                    kept.append(batch)
            except millrace.MisuseError as error:
                errors.append(str(error))

        readers = run(take, 4)
        while len(kept) < moment:
            time.sleep(0.0001)
        join(run(handle.close, 2))
        join(readers)
        assert len(errors) == 4 and all("closed" in error for error in errors)
        assert sum(len(memoryview(batch).cast("B")) for batch in kept) == len(kept) * 8 * 8 * 3


def test_a_consumer_that_raises_leaves_the_rest_to_others(dataset: millrace.Dataset) -> None:
    it = iter(dataset.loader("train", 4, threads=1, **SMALL))
    steps: list[int] = []
    raised: list[BaseException] = []

    def take() -> None:
        try:
            for batch in it:
                steps.append(batch.step)
                if batch.step % 10 == 3:
                    raise ZeroDivisionError
        except ZeroDivisionError as error:
            raised.append(error)

    join(run(take, 4))
    assert sorted(steps) == list(range(21)) and len(raised) == 2


def test_a_transform_that_closes_its_loader(dataset: millrace.Dataset) -> None:
    loaders: list[millrace.Loader] = []

    def close(batch: Any) -> Any:
        loaders[0].close()
        return batch

    loaders.append(dataset.loader("train", 4, threads=1, transform=close, **SMALL))
    it = iter(loaders[0])
    assert next(it).count == 4
    with pytest.raises(millrace.MisuseError, match="closed"):
        next(it)


@BOTH
def test_a_signal_handler_that_closes(dataset: millrace.Dataset, threads: int) -> None:
    loader = long_loader(dataset, threads)
    before = signal.signal(signal.SIGUSR1, lambda *unused: loader.close())
    try:
        main = threading.main_thread().ident
        assert main is not None
        sender = threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGUSR1))
        sender.start()
        with pytest.raises(millrace.MisuseError, match="closed"):
            next(iter(loader))
        sender.join()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_loader_that_nobody_else_holds(dataset: millrace.Dataset) -> None:
    """The loader, its batches and its dataset are dropped in the middle of calls, in cycles that only gc finds."""

    def take() -> None:
        for n in range(12):
            holder: list[Any] = [dataset.loader("train", 8, threads=n % 3, **SMALL)]
            holder.append(holder)
            assert next(iter(holder[0])).count == 8

    readers = run(take, 3)
    while any(reader.is_alive() for reader in readers):
        gc.collect()
    join(readers)


def test_a_batch_in_use_is_not_released_by_another_thread(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 84, threads=1, fields=("image", "meta"), **SMALL)
    _, metas = next(iter(loader))
    handle = millrace._millrace.Loader(
        dataset._handle, "train", {"global_batch": 84, "with_meta": 1, "size": 8, "deliver": 1, "epochs": 1000}
    )
    stop = threading.Event()
    held: list[Any] = [next(handle)]

    def release() -> None:
        while not stop.is_set():
            try:
                held[0].release()
            except BufferError:
                pass

    releaser = run(release, 1)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(25):
            try:
                assert len(held[0].metas()) == len(metas)
            except millrace.MisuseError:
                pass
            held[0] = next(handle)
    finally:
        sys.setswitchinterval(before)
        stop.set()
        join(releaser)


@FORKS_BESIDE_THREADS
@BOTH
def test_forks_while_threads_read(dataset: millrace.Dataset, threads: int) -> None:
    loader = dataset.loader("train", 4, threads=threads, **SMALL)
    stop = threading.Event()

    def take() -> None:
        while not stop.is_set():
            try:
                for _ in loader:
                    pass
            except millrace.MisuseError as error:
                assert "later pass" in str(error)

    readers = run(take, 3)
    try:
        for _ in range(6):
            child = os.fork()
            if child == 0:
                signal.alarm(120)
                loader.set_epoch(1_000_000)  # not where the parent is: the rest of that epoch would be left
                count = sum(batch.count for batch in loader)
                loader.close()
                os._exit(0 if count == 84 else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        join(readers)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_the_interpreter_ends_while_daemon_threads_wait(dataset: millrace.Dataset, threads: int) -> None:
    script = (
        "import sys, threading, millrace\n"
        "items = list(range(84)) * 1000\n"
        "split = millrace.Dataset(sys.argv[1])['train']\n"
        "options = dict(threads=int(sys.argv[2]), array='raw', view=millrace.Square(8), output='uint8')\n"
        "slow = iter(millrace.Loader(split, len(items), items=items, **options))\n"
        "quick = iter(millrace.Loader(split, 4, **options))\n"
        "begun = threading.Semaphore(0)\n"
        "def wait():\n"
        "    begun.release()\n"
        "    try:\n"
        "        next(slow)\n"
        "    except millrace.MisuseError:\n"
        "        pass\n"
        "for _ in range(3):\n"
        "    threading.Thread(target=wait, daemon=True).start()\n"
        "    begun.acquire()\n"
        "kept = next(quick)\n"
    )
    command = [sys.executable, "-c", script, dataset.path, str(threads)]
    done = subprocess.run(command, capture_output=True, env=os.environ, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
