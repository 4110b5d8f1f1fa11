"""Buckets: samples go to the view of the nearest ratio; order, ranks, resume, and what a batch has."""

import json
import pickle
from typing import Any

import numpy as np
import pytest

import millrace
from millrace import Crop, Square

VIEWS: list[millrace.View] = [Square((32, 32)), Square((24, 40)), Square((40, 24))]
COMMON: dict[str, Any] = {"seed": 5, "output": "uint8", "array": "numpy", "fields": ["image", "sample", "width", "height", "weight"]}


def batches(dataset: millrace.Dataset, size: int = 6, **options: Any) -> list[Any]:
    with dataset.loader("train", size, **{"buckets": VIEWS, "shuffle": True, **COMMON, **options}) as loader:
        return list(loader)


def nearest(width: int, height: int) -> tuple[int, int]:
    """Height and width of the view."""
    ratio = width / height
    sizes = [(32, 32), (24, 40), (40, 24)]
    return min(sizes, key=lambda size: max(ratio / (size[1] / size[0]), size[1] / size[0] / ratio))


def test_each_sample_is_seen_once_by_the_view_nearest_to_it(dataset: millrace.Dataset) -> None:
    split, seen, shapes = dataset["train"], [], []
    for images, samples, widths, heights, _ in batches(dataset):
        shapes.append(images.shape[1:3])
        seen += samples.tolist()
        for image, number, width, height in zip(images, samples, widths, heights):
            assert image.shape[:2] == nearest(int(width), int(height))
            np.testing.assert_array_equal(image, split.array(int(number), Square(image.shape[:2])))
    assert sorted(seen) == list(range(84))
    assert len(set(shapes)) == 3 and shapes != sorted(shapes)
    sizes = split.sizes()
    assert sizes.tolist() == [[split[n]["width"], split[n]["height"]] for n in range(84)]
    np.testing.assert_array_equal(split.select([5, 3]).sizes(), sizes[[5, 3]])


def test_epochs_differ_and_the_dataset_s_order_is_kept_without_shuffle(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 6, buckets=VIEWS, shuffle=True, **COMMON)
    first, second = ([batch[1].tolist() for batch in loader] for _ in range(2))
    assert first != second and sorted(sum(first, [])) == sorted(sum(second, []))
    loader.set_epoch(1)
    assert [batch[1].tolist() for batch in loader] == second
    plain = batches(dataset, shuffle=False)
    assert [batch[0].shape[1:3] for batch in plain] == sorted((batch[0].shape[1:3] for batch in plain), key=[(32, 32), (24, 40), (40, 24)].index)
    for shape in ((32, 32), (24, 40), (40, 24)):
        of_it: list[int] = sum((batch[1].tolist() for batch in plain if batch[0].shape[1:3] == shape), [])
        assert of_it == sorted(of_it)


@pytest.mark.parametrize("threads", [0, 3])
@pytest.mark.parametrize("tail", ["pad", "drop"])
def test_ranks_have_the_same_shapes_and_the_same_samples(dataset: millrace.Dataset, threads: int, tail: str) -> None:
    whole = batches(dataset, 6, tail=tail, threads=threads)
    ranks = [batches(dataset, 3, tail=tail, threads=threads, rank=rank, world=2) for rank in range(2)]
    assert len(whole) == len(ranks[0]) == len(ranks[1])
    for one, *parts in zip(whole, *ranks):
        for member in range(5):
            np.testing.assert_array_equal(np.concatenate([part[member] for part in parts]), one[member])


def test_it_resumes_at_every_step(dataset: millrace.Dataset) -> None:
    views = [Crop((32, 32), ratio=(1, 1)), Crop((24, 40), ratio=(5 / 3, 5 / 3))]
    options: dict[str, Any] = {"buckets": views, "augment": millrace.Augment(brightness=0.5), **COMMON}
    loader = dataset.loader("train", 8, shuffle=True, **options)
    states, whole = [], []
    for epoch in range(2):
        for batch in loader:
            whole.append(batch)
            states.append(json.loads(json.dumps(loader.state_dict())))
    assert len(loader) * 2 == len(whole)
    for at in range(len(whole)):
        again = pickle.loads(pickle.dumps(dataset.loader("train", 8, shuffle=True, **options)))
        again.load_state_dict(states[at])
        rest = next(iter(again)) if at + 1 < len(whole) else None
        if rest is not None:
            for one, other in zip(rest, whole[at + 1]):
                np.testing.assert_array_equal(one, other)
    with pytest.raises(millrace.MisuseError, match="its buckets is"):
        dataset.loader("train", 8, shuffle=True, **COMMON).load_state_dict(states[0])


def test_with_lists_weights_and_maps(dataset: millrace.Dataset) -> None:
    chosen = [3, 3, 80, 10]
    assert sorted(sum((batch[1].tolist() for batch in batches(dataset, items=chosen)), [])) == sorted(chosen)
    balanced = batches(dataset, weights="class", epoch_size=50)
    assert sum(len(batch[1]) for batch in balanced) == 50
    shapes = dataset.loader("train", 6, buckets=VIEWS, array="numpy", map=lambda sample: sample["image"].shape, collate=set)
    assert all(len(shape) == 1 for shape in shapes)
    loader = dataset.loader("train", 6, buckets=VIEWS, **COMMON)
    assert len(list(loader)) == len(loader) and loader.stats()["samples"] == 84


def test_what_is_refused(dataset: millrace.Dataset) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"view": Square(8)}, "view and buckets: pass one of them"),
        ({"views": VIEWS}, "views and buckets: pass one of them"),
        ({"buckets": []}, r"buckets: \[\]; pass a list"),
        ({"output": "encoded"}, "buckets: are of pixels; output='encoded' has none"),
    ]
    for options, message in wrong:
        with pytest.raises(millrace.MisuseError, match=message):
            batches(dataset, **options)
