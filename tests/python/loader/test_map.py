"""A function on each sample: results in order, exact resume, errors that name the sample, ranks, and what is refused."""

import io
import os
import pickle
import random
import threading
import time
from typing import Any

import numpy as np
import pytest
from conftest import FORKS_BESIDE_THREADS

import millrace

SMALL: dict[str, Any] = {"view": millrace.Square(8), "array": "numpy", "fields": ["image", "label", "sample"]}


def number_of(sample: dict[str, Any]) -> int:
    time.sleep(random.random() / 1000)  # so that the threads end out of order
    return int(sample["sample"])


def numbers_of(batches: Any) -> list[list[int]]:
    return [list(map(int, batch)) for batch in batches]


def without_map(dataset: millrace.Dataset, **options: Any) -> list[list[int]]:
    with dataset.loader("train", 8, **SMALL, **options) as loader:
        return [list(map(int, batch[2])) for batch in loader]


@pytest.mark.parametrize("map_threads", [1, 7])
def test_order_is_that_of_the_loader(dataset: millrace.Dataset, map_threads: int) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    loader = dataset.loader("train", 8, shuffle=True, seed=seed, map=number_of, map_threads=map_threads, **SMALL)
    first = numbers_of(loader)
    assert first == without_map(dataset, shuffle=True, seed=seed)
    assert numbers_of(loader) != first and loader.epoch == 2


def test_samples_are_what_the_fields_say(dataset: millrace.Dataset) -> None:
    fields = ["image", "label", "meta", "boxes", "sample"]
    loader = dataset.loader("train", 4, view=millrace.Square(8), array="numpy", fields=fields, map=dict, collate=list)
    for batch in loader:
        for sample in batch:
            assert list(sample) == fields and sample["image"].shape == (3, 8, 8) and type(sample["label"]) is int
            assert sample["meta"] == dataset["train"].meta(sample["sample"]) and sample["boxes"].shape == (0, 4)
    raw = dataset.loader("train", 4, output="encoded", array="numpy", map=lambda sample: sample["image"], collate=list)
    assert sum(raw, []) == [sample["image"] for sample in dataset["train"]]


def test_a_split_with_a_transform(dataset: millrace.Dataset) -> None:
    def look(sample: Any) -> tuple[int, int]:
        assert isinstance(sample["image"], bytes)
        return len(sample["image"]), sample["label"]

    split = dataset["train"].with_transform(look)
    batches = list(millrace.Loader(split, 10, array="numpy"))
    assert len(batches) == 9 and batches[0][0].shape == (10,)
    whole: list[Any] = list(split)
    assert [tuple(pair) for lengths, labels in batches for pair in zip(lengths, labels)] == whole
    part = split.select([5, 3])
    assert [tuple(map(int, pair)) for pair in zip(*next(iter(millrace.Loader(part, 2, array="numpy"))))] == [split[5], split[3]]


def test_results_become_batches(dataset: millrace.Dataset) -> None:
    results: list[tuple[Any, Any]] = [
        (lambda s: s["image"], (4, 3, 8, 8)),
        (lambda s: {"x": s["image"], "y": s["label"]}, {"x": (4, 3, 8, 8), "y": (4,)}),
        (lambda s: (s["label"], s["image"].mean()), ((4,), (4,))),
    ]
    for function, shape in results:
        batch = next(iter(dataset.loader("train", 4, map=function, **SMALL)))
        if isinstance(shape, dict):
            assert {name: value.shape for name, value in batch.items()} == shape
        else:
            assert (tuple(value.shape for value in batch) if isinstance(batch, tuple) else batch.shape) == shape
    words = next(iter(dataset.loader("train", 4, map=lambda s: "abc", **SMALL)))
    assert words == ["abc"] * 4
    doubled = dataset.loader("train", 4, map=lambda s: s["label"], transform=lambda batch: batch * 2, **SMALL)
    assert np.concatenate(list(doubled)).tolist() == (dataset["train"].labels * 2).tolist()


def test_torch_collates(dataset: millrace.Dataset) -> None:
    torch = pytest.importorskip("torch")
    options = {**SMALL, "array": "torch"}
    batch = next(iter(dataset.loader("train", 4, map=lambda s: {"x": s["image"], "y": s["label"]}, **options)))
    assert batch["x"].shape == (4, 3, 8, 8) and batch["y"].dtype == torch.int64


@pytest.mark.parametrize("taken", [0, 1, 4, 10])
def test_a_state_counts_what_was_handed_out(dataset: millrace.Dataset, taken: int) -> None:
    def make() -> millrace.Loader:
        return dataset.loader("train", 8, shuffle=True, seed=3, map=number_of, prefetch=3, **SMALL)

    whole = numbers_of(make())
    loader = make()
    it = iter(loader)
    assert numbers_of(next(it) for _ in range(taken)) == whole[:taken]
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    again = make()
    again.load_state_dict(state)
    assert numbers_of(again) == whole[taken:]
    assert numbers_of(it) == whole[taken:]


def test_ranks_share_the_epoch(dataset: millrace.Dataset) -> None:
    ranks = [
        numbers_of(dataset.loader("train", 4, shuffle=True, rank=rank, world=2, tail="drop", map=number_of, **SMALL))
        for rank in range(2)
    ]
    joined = [a + b for a, b in zip(*ranks, strict=True)]
    assert joined == without_map(dataset, shuffle=True, tail="drop")


def test_an_error_names_the_sample_and_stays(dataset: millrace.Dataset) -> None:
    failing = [True]

    def fail(sample: dict[str, Any]) -> int:
        if sample["sample"] == 17 and failing:
            raise ZeroDivisionError("seventeen")
        return int(sample["sample"])

    loader = dataset.loader("train", 8, map=fail, **SMALL)
    it = iter(loader)
    assert numbers_of([next(it), next(it)]) == [list(range(8)), list(range(8, 16))]
    with pytest.raises(ZeroDivisionError, match="seventeen") as caught:
        next(it)
    assert "map was called with sample 17 of millrace.Split(" in caught.value.__notes__[0]
    failing.clear()
    again = dataset.loader("train", 8, map=fail, **SMALL)
    again.load_state_dict(loader.state_dict())
    assert numbers_of(again)[0] == list(range(16, 24))


def test_a_later_pass_ends_an_earlier_one(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 8, map=number_of, **SMALL)
    first = iter(loader)
    next(first)
    assert len(numbers_of(loader)) == 11
    with pytest.raises(millrace.MisuseError, match="a later pass"):
        next(first)


def test_close_ends_what_waits(dataset: millrace.Dataset) -> None:
    begun, go = threading.Event(), threading.Event()

    def wait(sample: dict[str, Any]) -> int:
        begun.set()
        go.wait(600)
        return int(sample["sample"])

    loader = dataset.loader("train", 8, map=wait, map_threads=1, **SMALL)
    errors: list[BaseException] = []

    def take() -> None:
        try:
            next(iter(loader))
        except millrace.MisuseError as error:
            errors.append(error)

    thread = threading.Thread(target=take)
    thread.start()
    assert begun.wait(600)
    loader.close()
    go.set()
    thread.join(600)
    assert len(errors) == 1 and "closed" in str(errors[0])


@FORKS_BESIDE_THREADS
def test_fork_in_a_pass(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 8, shuffle=True, map=number_of, **SMALL)
    whole = numbers_of(dataset.loader("train", 8, shuffle=True, map=number_of, **SMALL))
    it = iter(loader)
    next(it)
    child = os.fork()
    if not child:
        good = False
        try:
            try:
                next(it)
            except millrace.MisuseError as error:
                good = "another process" in str(error) and numbers_of(loader) == whole[1:]
        finally:
            os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert numbers_of(it) == whole[1:]


def test_a_loader_with_a_map_is_pickled(dataset: millrace.Dataset) -> None:
    loader = pickle.loads(pickle.dumps(dataset.loader("train", 8, map=number_of, **SMALL)))
    assert numbers_of(loader) == without_map(dataset)


def test_pillow_on_encoded_files(dataset: millrace.Dataset) -> None:
    image = pytest.importorskip("PIL.Image")

    def decode(sample: dict[str, Any]) -> tuple[int, int]:
        return image.open(io.BytesIO(sample["image"])).convert("RGB").size  # type: ignore[no-any-return]

    split = dataset["train"]
    loader = millrace.Loader(split, 84, output="encoded", array="numpy", map=decode)
    widths, heights = next(iter(loader))
    assert [(w, h) for w, h in zip(widths, heights)] == [(sample["width"], sample["height"]) for sample in split]


def test_what_is_refused(dataset: millrace.Dataset) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("map: 3 cannot be called", {"map": 3}),
        ("map: array='raw'; a function gets samples as torch or numpy", {"map": dict, "array": "raw"}),
        ("map_threads: ", {"map": dict, "map_threads": -1}),
        ("collate: joins what map returns", {"collate": list}),
        ("device: what map returns", {"map": dict, "device": "cuda"}),
    ]
    for message, options in wrong:
        with pytest.raises(millrace.MisuseError, match=message):
            dataset.loader("train", 8, **{**SMALL, **options})
    with pytest.raises(millrace.MisuseError, match="the split has a transform of its own"):
        millrace.Loader(dataset["train"].with_transform(len), 8, map=dict)
