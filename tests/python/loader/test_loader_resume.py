"""state_dict and load_state_dict: exact resume, on any rank and with any number of threads."""

import json
import random
from typing import Any

import numpy as np
import pytest

import millrace

SMALL: dict[str, Any] = {"view": millrace.Crop(24), "array": "numpy"}


def take(loader: millrace.Loader, count: int) -> list[Any]:
    """The images of this many batches, over the ends of epochs."""
    out: list[Any] = []
    while len(out) < count:
        for image, _ in loader:
            out.append(image)
            if len(out) == count:
                break
    return out


def test_resume_anywhere(dataset: millrace.Dataset) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    for _ in range(8):
        options: dict[str, Any] = {"shuffle": chosen.choice([True, False, "window"]), "window_bytes": 100_000, "seed": seed % 100}
        size, steps = chosen.choice([5, 16, 84]), chosen.randrange(20)
        whole = take(dataset.loader("train", size, **options, **SMALL), 30)
        first = dataset.loader("train", size, threads=chosen.randrange(3), **options, **SMALL)
        got = take(first, steps)
        state = json.loads(json.dumps(first.state_dict()))
        second = dataset.loader("train", size, threads=chosen.randrange(3), **options, **SMALL)
        second.load_state_dict(state)
        got += take(second, 30 - steps)
        assert all((a == b).all() for a, b in zip(whole, got)), (options, size, steps)


def test_resume_on_another_world(dataset: millrace.Dataset) -> None:
    whole = take(dataset.loader("train", 16, shuffle=True, **SMALL), 4)
    state: Any = None
    for rank in range(2):
        half = dataset.loader("train", 8, shuffle=True, rank=rank, world=2, tail="partial", **SMALL)
        take(half, 2)
        assert state is None or state == half.state_dict()
        state = half.state_dict()
    parts = []
    for rank in range(4):
        quarter = dataset.loader("train", 4, shuffle=True, rank=rank, world=4, tail="partial", **SMALL)
        quarter.load_state_dict(state)
        parts.append(take(quarter, 2))
    for i in range(2):
        assert (np.concatenate([part[i] for part in parts]) == whole[2 + i]).all()


def test_set_epoch_of_the_same_epoch_keeps_the_place(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 16, shuffle=True, **SMALL)
    take(loader, 2)
    again = dataset.loader("train", 16, shuffle=True, **SMALL)
    again.load_state_dict(loader.state_dict())
    again.sampler.set_epoch(0)  # as Lightning does after it has restored the state
    assert len(list(again)) == 4
    again.set_epoch(0)
    assert len(list(again)) == 6


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"shuffle": False}, {"batch_size": 8}, {"tail": "drop"}, {"tail": "pad"}, {"split": "val"}, {"version": 2}]
)
def test_the_state_of_another_run_is_refused(dataset: millrace.Dataset, change: dict[str, Any]) -> None:
    options: dict[str, Any] = {"split": "train", "batch_size": 16, "shuffle": True, **SMALL}
    state = dataset.loader(**options).state_dict()
    if "version" in change:
        state["version"] = 2
        change = {}
    with pytest.raises(millrace.MisuseError, match="state"):
        dataset.loader(**{**options, **change}).load_state_dict(state)


def test_epochs_are_decided_by_the_first_batch(dataset: millrace.Dataset) -> None:
    """Lightning calls iter() before set_epoch(); samplers of torch look at the epoch when they are asked for an index."""
    fields: Any = {"fields": ("sample",), "as_dict": True}
    want = [[b["sample"].tolist() for b in dataset.loader("train", 16, shuffle=True, **fields, **SMALL)]]
    loader = dataset.loader("train", 16, shuffle=True, **fields, **SMALL)
    loader.set_epoch(2)
    want.append([b["sample"].tolist() for b in loader])
    assert want[0] != want[1]
    loader = dataset.loader("train", 16, shuffle=True, **fields, **SMALL)
    it = iter(loader)
    loader.set_epoch(2)
    assert [b["sample"].tolist() for b in it] == want[1]
    saved = loader.state_dict()
    assert (saved["epoch"], saved["position"]) == (3, 0)
    with pytest.raises(millrace.MisuseError, match="epoch: -1 is less than 0"):
        loader.set_epoch(-1)


def test_one_rank_and_several_read_each_others_states(dataset: millrace.Dataset) -> None:
    one = dataset.loader("train", 16, shuffle=True, **SMALL)
    take(one, 3)
    for world in (2, 4):
        many = dataset.loader("train", 16 // world, shuffle=True, rank=world - 1, world=world, **SMALL)
        many.load_state_dict(one.state_dict())
        assert len(list(many)) == 3
        take(many, 2)
        again = dataset.loader("train", 16, shuffle=True, **SMALL)
        again.load_state_dict(many.state_dict())
        assert len(list(again)) == 4
    old = {**one.state_dict(), "tail": 1}  # as versions that had two defaults wrote it
    dataset.loader("train", 16, shuffle=True, **SMALL).load_state_dict(old)


def test_items_are_part_of_the_state(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 8, items=range(40), **SMALL)
    take(loader, 2)
    state = loader.state_dict()
    same = dataset.loader("train", 8, items=np.arange(40), **SMALL)
    same.load_state_dict(state)
    assert len(list(same)) == 3
    others: tuple[dict[str, Any], ...] = ({}, {"items": range(1, 41)})
    for other in others:
        refusing = dataset.loader("train", 8, **other, **SMALL)
        with pytest.raises(millrace.MisuseError, match="its items is"):
            refusing.load_state_dict(state)


def test_a_refused_state_leaves_the_loader_where_it_is(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 16, shuffle=True, **SMALL)
    state = loader.state_dict()
    for change in ({"position": 3}, {"epoch": -1}, {"epoch": 1.5}):
        with pytest.raises(millrace.MisuseError):
            loader.load_state_dict({**state, **change})
        assert loader.state_dict() == state
    assert len(list(loader)) == 6
