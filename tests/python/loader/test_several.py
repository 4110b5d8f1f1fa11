"""Several views of each sample, and ratios of crops."""

import pickle
from typing import Any

import numpy as np
import pytest

import millrace
from millrace import Crop, Square

TWO: list[millrace.View] = [Crop(24), Crop(24), Crop(16, scale=(0.05, 0.3)), Square(8)]


def batches(dataset: millrace.Dataset, **options: Any) -> list[Any]:
    common: dict[str, Any] = {"shuffle": True, "seed": 5, "output": "uint8", "array": "numpy", "fields": ["image", "sample"]}
    with dataset.loader("train", 12, **{**common, **options}) as loader:
        return list(loader)


def test_views_are_of_the_same_samples(dataset: millrace.Dataset) -> None:
    several = batches(dataset, views=TWO)
    alone = batches(dataset, view=TWO[0])
    whole = batches(dataset, view=TWO[3])
    for (images, samples), (one, same), (square, _) in zip(several, alone, whole, strict=True):
        assert [image.shape[1:] for image in images] == [(24, 24, 3), (24, 24, 3), (16, 16, 3), (8, 8, 3)]
        assert samples.tolist() == same.tolist()
        np.testing.assert_array_equal(images[0], one)  # as with this view alone
        np.testing.assert_array_equal(images[3], square)
        assert (images[0] != images[1]).any(axis=(1, 2, 3)).all()


@pytest.mark.parametrize("threads", [0, 3])
def test_resume_ranks_and_augmentations(dataset: millrace.Dataset, threads: int) -> None:
    options: dict[str, Any] = {"views": TWO, "augment": millrace.Augment(brightness=0.5, blur=0.5), "threads": threads}
    whole = batches(dataset, **options)
    common: dict[str, Any] = {"shuffle": True, "seed": 5, "output": "uint8", "array": "numpy", "fields": ["image", "sample"]}
    loader = dataset.loader("train", 12, **common, **options)
    it = iter(loader)
    next(it)
    again = pickle.loads(pickle.dumps(dataset.loader("train", 12, **common, **options)))
    again.load_state_dict(loader.state_dict())
    rest = list(again)
    ranks = [list(dataset.loader("train", 6, rank=rank, world=2, **common, **options)) for rank in range(2)]
    assert len(rest) == 6 and loader.stats()["samples"] == 12
    for i, (images, samples) in enumerate(whole):
        for view in range(4):
            if i:
                np.testing.assert_array_equal(rest[i - 1][0][view], images[view])
            parts = np.concatenate([rank[i][0][view] for rank in ranks])
            np.testing.assert_array_equal(parts[: len(samples)], images[view])


def test_a_map_gets_all_views(dataset: millrace.Dataset) -> None:
    shapes = dataset.loader("train", 4, views=TWO, array="numpy", map=lambda s: [image.shape for image in s["image"]], collate=list)
    assert next(iter(shapes)) == [[(3, 24, 24), (3, 24, 24), (3, 16, 16), (3, 8, 8)]] * 4


def test_ratios(dataset: millrace.Dataset) -> None:
    fields = ["crop_width", "crop_height"]
    for ratio, low, high in (((1.0, 1.0), 0.95, 1.06), ((2.0, 3.0), 1.8, 3.2)):
        view = Crop(16, ratio=ratio, scale=(0.1, 0.2))
        for width, height in dataset.loader("train", 12, view=view, fields=fields, array="numpy"):
            assert (low < width / height).all() and (width / height < high).all()
    usual = batches(dataset, view=Crop(16))
    same = batches(dataset, view=Crop(16, ratio=(3 / 4, 4 / 3)))
    assert all((a[0] == b[0]).all() for a, b in zip(usual, same))


def test_what_is_refused(dataset: millrace.Dataset) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"views": TWO, "view": Square(8)}, "view and views: pass one of them"),
        ({"views": []}, r"views: \[\]; pass a list"),
        ({"views": Square(8)}, "views: Square.*; pass a list"),
        ({"views": [Square(8), None]}, "pass a list"),
        ({"views": [Square(8), 3]}, "view: 3; pass"),
        ({"views": TWO, "output": "encoded"}, "output='encoded' has none"),
        ({"views": TWO, "device": "cuda"}, "device: batches of several views"),
        ({"view": Crop(8, ratio=(2, 1))}, "ratio 2 to 1; give a range"),
        ({"view": Crop(8, ratio=(0.001, 1))}, "ratio 0.001 to 1; give a range"),
    ]
    for options, message in wrong:
        with pytest.raises(millrace.MisuseError, match=message):
            batches(dataset, **options)
