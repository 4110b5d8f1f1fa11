"""Ctrl-C while next() waits: KeyboardInterrupt soon, and the loader can be used afterwards."""

import os
import signal
import threading
import time
from typing import Any

import pytest

import millrace


@pytest.mark.parametrize("threads", [0, 1])
def test_an_interrupt_comes_before_the_batch(dataset: millrace.Dataset, threads: int) -> None:
    # A batch that takes seconds: the interrupt is sent while it is made, and arrives before it is complete.
    items = list(range(84)) * 20
    loader = dataset.loader("train", len(items), items=items, threads=threads, array="raw", view=millrace.Square(224))
    it = iter(loader)
    sent: list[float] = []

    def interrupt() -> None:
        time.sleep(0.05)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sender.start()
        next(it)
    waited, all_of_it = time.monotonic() - sent[0], time.monotonic()
    sender.join()
    print(f"threads {threads}: KeyboardInterrupt after {waited * 1000:.0f} ms")
    batch: Any = next(it)
    whole = time.monotonic() - started
    assert batch.count == len(items) and all_of_it - started < whole


def test_an_interrupt_ends_the_program(dataset: millrace.Dataset, tmp_path: Any) -> None:
    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    reached = False
    with pytest.raises(KeyboardInterrupt):
        with millrace.Writer(tmp_path / "never") as writer:
            image = dataset["train"][0]["image"]
            while True:
                writer.add("train", image)
                reached = True
    assert reached and os.listdir(tmp_path) == []
