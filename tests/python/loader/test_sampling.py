"""Weights, balance and a list for each epoch: exact counts, the same on any ranks, and exact resume."""

import pickle
import random
from typing import Any

import numpy as np
import pytest

import millrace

SMALL: dict[str, Any] = {"view": millrace.Square(8), "array": "numpy", "fields": ["sample"], "output": "uint8"}


def epoch_of(loader: millrace.Loader) -> list[int]:
    return [int(n) for batch in loader for n in batch[0]]


def test_counts_are_those_of_the_weights(dataset: millrace.Dataset) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    weights = np.random.default_rng(seed).random(84) ** 3
    weights[[0, 40, 83]] = 0
    size, epochs = 100, 50
    loader = dataset.loader("train", 10, shuffle=True, seed=seed, weights=weights, epoch_size=size, **SMALL)
    expected = weights * size / weights.sum()
    total = np.zeros(84)
    orders = []
    for _ in range(epochs):
        numbers = epoch_of(loader)
        counts = np.bincount(numbers, minlength=84)
        assert len(numbers) == size and (abs(counts - expected) < 1 + 1e-9).all()
        total += counts
        orders.append(numbers)
    assert orders[0] != orders[1] and not total[[0, 40, 83]].any()
    # A sample's count of an epoch is a coin with the fraction of its expected count, drawn by the epoch.
    assert (abs(total - epochs * expected) < 5 * np.sqrt(epochs) / 2).all()


def test_classes_are_balanced(dataset: millrace.Dataset) -> None:
    labels = dataset["train"].labels
    rare = dataset["train"].select(np.concatenate([np.flatnonzero(labels == 0), np.flatnonzero(labels == 1)[:1]]))
    loader = millrace.Loader(rare, 2, shuffle=True, weights="class", epoch_size=40, **SMALL)
    counts = np.bincount(labels[epoch_of(loader)])
    assert counts.tolist() == [20, 20]


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_agree(dataset: millrace.Dataset, world: int) -> None:
    weights = np.arange(84.0)
    common: dict[str, Any] = {"shuffle": True, "weights": weights, "epoch_size": 60, "tail": "drop", **SMALL}
    one = epoch_of(dataset.loader("train", 6, **common))
    ranks = [list(dataset.loader("train", 6 // world, rank=rank, world=world, **common)) for rank in range(world)]
    assert [int(n) for step in zip(*ranks, strict=True) for batch in step for n in batch[0]] == one


@pytest.mark.parametrize("sampling", ["weights", "items"])
def test_resume(dataset: millrace.Dataset, sampling: str) -> None:
    def list_of(epoch: int) -> range:
        return range(epoch, 40 + 7 * epoch, epoch + 1)

    def make(**other: Any) -> millrace.Loader:
        chosen: dict[str, Any] = {"weights": np.arange(84.0)} if sampling == "weights" else {"items": list_of}
        return dataset.loader("train", 8, shuffle=True, **{**chosen, **SMALL, **other})

    loader, epochs = make(), []
    for _ in range(4):
        length = len(loader)
        epochs.append([list(map(int, batch[0])) for batch in loader])
        assert len(epochs[-1]) == length
    if sampling == "items":
        assert [sorted(sum(batches, [])) for batches in epochs] == [list(list_of(epoch)) for epoch in range(4)]
    for epoch, taken in ((0, 0), (1, 2), (2, len(epochs[2])), (3, 1)):
        first = make()
        first.set_epoch(epoch)
        it = iter(first)
        for _ in range(taken):
            next(it)
        again = make()
        again.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
        whole = taken == len(epochs[epoch])
        rest = epochs[epoch + 1] if whole else epochs[epoch][taken:]
        assert [list(map(int, batch[0])) for batch in again] == rest
    state = make().state_dict()
    other = make(weights=np.ones(84)) if sampling == "weights" else make(items=lambda epoch: range(41))
    with pytest.raises(millrace.MisuseError, match="its items is"):
        other.load_state_dict(state)


def test_a_selection_has_its_weights(dataset: millrace.Dataset) -> None:
    part = dataset["train"].select([70, 5, 33])
    numbers = epoch_of(millrace.Loader(part, 4, weights=[1, 0, 3], epoch_size=8, **SMALL))
    assert sorted(numbers) == [33] * 6 + [70] * 2
    assert epoch_of(millrace.Loader(part, 2, items=lambda epoch: [2, 2, 0], **SMALL)) == [33, 33, 70]


def test_stats_are_of_the_pass(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 8, items=lambda epoch: range(16 + epoch), **SMALL)
    assert len(epoch_of(loader)) == 16 and loader.stats()["samples"] == 16


def test_what_is_refused(dataset: millrace.Dataset) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        (r"weights: shape \(3,\); the split has 84 samples", {"weights": [1, 2, 3]}),
        ("weights: must be finite and at least 0", {"weights": [-1.0] * 84}),
        ("weights: must be finite and at least 0", {"weights": [float("nan")] * 84}),
        ("and not all 0", {"weights": [0] * 84}),
        ("weights: 'labels'; a number for each sample, or 'class'", {"weights": "labels"}),
        ("weights: must be a number for each", {"weights": ["a"] * 84}),
        ("items and weights: pass one of them", {"weights": "class", "items": [1]}),
        ("epoch_size: how many samples weights draw", {"epoch_size": 5}),
        ("epoch_size: ", {"weights": "class", "epoch_size": 0}),
        ("items: sample numbers must be integers", {"items": lambda epoch: ["a"]}),
    ]
    for message, options in wrong:
        with pytest.raises(millrace.MisuseError, match=message):
            dataset.loader("train", 8, **options, **SMALL)
    unlabelled = dataset["train"].select([])
    with pytest.raises(millrace.MisuseError, match="'class' needs a label for each sample"):
        millrace.Loader(unlabelled, 8, weights="class", **SMALL)
