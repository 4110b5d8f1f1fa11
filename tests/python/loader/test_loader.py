"""Loader: epochs, ranks, arrays, options."""

import itertools
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import millrace

SMALL: dict[str, Any] = {"view": millrace.Crop(32), "array": "numpy", "threads": 1}


def labels(loader: millrace.Loader) -> list[list[int]]:
    return [label.tolist() for _, label in loader]


def test_one_for_is_one_epoch(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 16, shuffle=True, **SMALL)
    first, second = labels(loader), labels(loader)
    assert len(loader) == len(first) == len(second) == 6 and first != second
    assert sorted(itertools.chain(*first)) == sorted(itertools.chain(*second)) == sorted(dataset["train"].labels.tolist())
    loader.set_epoch(0)
    assert labels(loader) == first
    assert labels(dataset.loader("train", 16, shuffle=True, seed=1, **SMALL)) != first


def test_without_shuffle_it_is_the_datasets_order(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 16, **SMALL)
    assert list(itertools.chain(*labels(loader))) == dataset["train"].labels.tolist()
    assert labels(loader) == labels(loader)


def test_a_pass_left_in_the_middle_is_over(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 16, shuffle=True, **SMALL)
    whole = labels(loader), labels(loader)
    loader.set_epoch(0)
    for _ in loader:
        break
    assert loader.epoch == 0 and labels(loader) == whole[1] and loader.epoch == 2


def test_a_later_pass_ends_the_earlier_one(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 16, **SMALL)
    first = iter(loader)
    next(first)
    next(iter(loader))
    with pytest.raises(millrace.MisuseError, match="a loader for each"):
        next(first)


def test_an_exception_in_the_loop_and_a_dropped_generator(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 16, **SMALL)
    with pytest.raises(ZeroDivisionError):
        for _ in loader:
            1 // 0

    def images() -> Any:
        for image, _ in loader:
            yield image

    generator = images()
    next(generator)
    del generator
    assert len(labels(loader)) == 6


@pytest.mark.parametrize("tail, counts", [("drop", [16] * 5), ("pad", [16] * 6), ("partial", [16] * 5 + [4])])
def test_tails(dataset: millrace.Dataset, tail: Any, counts: list[int]) -> None:
    loader = dataset.loader("train", 16, tail=tail, fields=("label", "weight"), **SMALL)
    batches = list(loader)
    assert [len(label) for label, _ in batches] == counts and len(loader) == len(counts)
    assert sum(weight.sum() for _, weight in batches) == (80 if tail == "drop" else 84)
    assert len(dataset.loader("train", 16, drop_last=True, **SMALL)) == 5


def test_ranks_are_the_whole(dataset: millrace.Dataset) -> None:
    def images(batch_size: int, rank: int, world: int) -> list[Any]:
        loader = dataset.loader("train", batch_size, shuffle=True, rank=rank, world=world, **SMALL)
        return [image for image, _ in loader]

    whole = images(16, 0, 1)[:5]
    halves = [images(8, rank, 2) for rank in range(2)]
    assert len(halves[0]) == len(halves[1]) == 6  # the last step is padded
    for one, *parts in zip(whole, *halves):
        assert (one == np.concatenate(parts)).all()


def test_threads_change_nothing(dataset: millrace.Dataset) -> None:
    runs = [
        [image for image, _ in dataset.loader("train", 16, shuffle=True, **{**SMALL, "threads": threads})]
        for threads in (0, 1, 3)
    ]
    assert all((a == b).all() and (a == c).all() for a, b, c in zip(*runs))


def test_outputs(dataset: millrace.Dataset) -> None:
    def first(output: Any, **options: Any) -> Any:
        return next(iter(dataset.loader("val", 8, view=millrace.Square(32), array="numpy", output=output, **options)))[0]

    pixels, floats = first("uint8"), first("float32")
    assert pixels.shape == (8, 32, 32, 3) and pixels.dtype == np.uint8
    assert floats.shape == (8, 3, 32, 32) and floats.dtype == np.float32
    assert np.allclose((pixels / 255 - 0.5) / 0.5, floats.transpose(0, 2, 3, 1), atol=1e-6)
    colours = first("float32", mean=(0.1, 0.2, 0.3), std=(1, 2, 4))
    assert np.allclose((pixels / 255 - [0.1, 0.2, 0.3]) / [1, 2, 4], colours.transpose(0, 2, 3, 1), atol=1e-6)
    encoded = first("encoded")
    assert [image.tobytes() for image in encoded] == [sample["image"] for sample in dataset["val"][:8]]
    wide = memoryview(next(iter(dataset.loader("val", 8, view=millrace.Square(32), array="raw", output="bfloat16"))))
    upper = np.asarray(wide).astype(np.uint32) << 16
    assert np.allclose(upper.view(np.float32), floats, rtol=2**-8)


def test_fields_and_dicts(dataset: millrace.Dataset) -> None:
    fields = ("label", "sample", "meta", "width", "image", "weight", "flip")
    batch = next(iter(dataset.loader("train", 8, shuffle=True, fields=fields, as_dict=True, **SMALL)))
    assert tuple(batch) == fields
    for i, sample in enumerate(batch["sample"]):
        expected = dataset["train"][int(sample)]
        assert batch["meta"][i] == expected["meta"] and batch["width"][i] == expected["width"]
        assert batch["label"][i] == expected["label"]
    with pytest.raises(millrace.MisuseError, match="fields"):
        dataset.loader("train", 8, fields=("picture",))


def test_transform_gets_whole_batches(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 84, transform=lambda batch: batch[1].sum(), **SMALL)
    assert list(loader) == [dataset["train"].labels.sum()]


def test_items(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 4, items=np.array([5, 80, 5, 0, 7]), fields=("sample", "item"), **SMALL)
    assert [(s.tolist(), i.tolist()) for s, i in loader] == [([5, 80, 5, 0], [0, 1, 2, 3]), ([7], [4])]
    chosen: Any
    for chosen in (range(5, 8), np.arange(5, 8, dtype=np.uint16), [np.int64(5), 6, 7]):
        loader = dataset.loader("train", 4, items=chosen, fields=("sample",), as_dict=True, **SMALL)
        assert [batch["sample"].tolist() for batch in loader] == [[5, 6, 7]]
    mask = np.zeros(84, bool)
    mask[[3, 70]] = True
    for given in (mask, mask.tolist()):
        loader = dataset.loader("train", 4, items=given, fields=("sample",), as_dict=True, **SMALL)
        assert [batch["sample"].tolist() for batch in loader] == [[3, 70]]
    with pytest.raises(millrace.MisuseError, match="items: a mask of 3 samples, and the split has 84"):
        dataset.loader("train", 4, items=[True, False, True])
    wrong: Any
    for wrong in ([1.9, 2.5], "12", np.array([1.0])):
        with pytest.raises(millrace.MisuseError, match="items: sample numbers must be integers"):
            dataset.loader("train", 4, items=wrong)
    with pytest.raises(millrace.MisuseError, match="item 0 is sample 84"):
        dataset.loader("train", 4, items=[84])
    with pytest.raises(millrace.MisuseError, match="items"):
        dataset.loader("train", 4, items=[-1])


@pytest.mark.parametrize(
    "options, words",
    [
        ({"batch_size": 0}, "batch"),
        ({"view": millrace.Crop(scale=(2, 1))}, "scale"),
        ({"shuffle": "all"}, "shuffle"),
        ({"tail": "some"}, "tail"),
        ({"output": "int8"}, "output"),
        ({"on_bad": "ignore"}, "on_bad"),
        ({"array": "tf"}, "array"),
        ({"rank": 2, "world": 2}, "rank"),
        ({"rank": 0}, "rank and world"),
        ({"mean": (1, 2)}, "three numbers"),
        ({"std": (0, 0, 1)}, "std"),
        ({"std": (58.4, 57.1, 57.4)}, "std: .*for pixels from 0 to 1"),
        ({"mean": (123.7, 116.3, 103.5)}, "mean: .*for pixels from 0 to 1"),
        ({"mean": 0.5}, "mean: 0.5"),
        ({"batch_size": 2.0}, "batch_size: 2.0 is not an integer"),
        ({"batch_size": None}, "batch_size: None is not an integer"),
        ({"seed": None}, "seed: None is not an integer"),
        ({"seed": -1}, "seed: -1 is less than 0"),
        ({"threads": -1}, "threads: -1 is less than 0"),
        ({"prefetch": -1}, "prefetch: -1 is less than 1"),
        ({"max_bad": -1}, "max_bad: -1 is less than 0"),
        ({"view": 224}, "view: 224; pass Crop"),
        ({"view": millrace.Crop}, "view: .*; pass Crop"),
        ({"view": millrace.View(64)}, "view: .*; pass Crop"),
        ({"drop_last": True, "tail": "partial"}, "drop_last and tail='partial'"),
    ],
)
def test_wrong_options_are_value_errors_that_name_them(dataset: millrace.Dataset, options: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        dataset.loader("train", **{"batch_size": 8, **options})
    with pytest.raises(TypeError):
        dataset.loader("train", 8, bogus=1)  # type: ignore[call-arg]


def test_what_is_no_split_is_refused(dataset: millrace.Dataset) -> None:
    wrong: Any
    for wrong in (dataset, dataset.path, [1, 2]):
        with pytest.raises(millrace.MisuseError, match="dataset: .* is not a split; pass"):
            millrace.Loader(wrong, 8)


def test_numbers_of_numpy_and_windows(dataset: millrace.Dataset) -> None:
    size: Any = np.int64(16)
    seed: Any = np.uint8(3)
    loader = dataset.loader("train", size, seed=seed, shuffle="window", **SMALL)
    assert sum(len(labels) for _, labels in loader) == 84


def test_arrays_are_writable_views_that_stay(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 16, **SMALL)
    clean = [image.copy() for image, _ in loader]
    for image, label in loader:
        assert image.flags.writeable and label.flags.writeable and not image.flags.owndata
        image[:] = 7
        label[:] = 7
    loader.set_epoch(0)
    assert all((a == b).all() for a, (b, _) in zip(clean, loader))


def test_threads_share_one_pass(dataset: millrace.Dataset) -> None:
    steps: list[int] = []
    it = iter(dataset.loader("train", 4, array="raw", view=millrace.Square(16), threads=2))
    lock = threading.Lock()

    def take() -> None:
        while True:
            with lock:
                batch = next(it, None)
            if batch is None:
                return
            steps.append(batch.step)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(steps) == list(range(21))


def test_damage(damaged: millrace.Dataset) -> None:
    with pytest.raises(millrace.BadSampleError) as caught:
        list(damaged.loader("train", 16, **SMALL))
    assert caught.value.sample == 40 and caught.value.shard == "train-00000" and "n0" in caught.value.source
    masked = list(damaged.loader("train", 16, on_bad="mask", fields=("sample", "weight"), **SMALL))
    assert sum(int((weight == 0).sum()) for _, weight in masked) == 1
    raw = list(damaged.loader("train", 16, on_bad="replace", view=millrace.Square(16), array="raw"))
    (bad,) = itertools.chain(*(batch.bad for batch in raw))
    assert sum(batch.replaced for batch in raw) == 1 and isinstance(bad, millrace.BadSampleError) and bad.sample == 40
    assert damaged.loader("train", 16, on_bad="replace", **SMALL).stats()["replaced"] == 0


def test_large_pictures_are_damage(dataset: millrace.Dataset) -> None:
    with pytest.raises(millrace.BadSampleError, match="max-pixels"):
        list(dataset.loader("train", 16, max_pixels=1000, **SMALL))


def test_stats_and_close(dataset: millrace.Dataset) -> None:
    with dataset.loader("train", 16, **SMALL) as loader:
        kept = [image for image, _ in loader]
        stats = loader.stats()
        assert stats["batches"] == 6 and stats["samples"] == 84 and stats["decoding"] > 0
    assert len(kept) == 6 and kept[0].shape == (16, 3, 32, 32)
    with pytest.raises(millrace.MisuseError, match="closed"):
        next(iter(loader))
    loader.close()


def test_pickled_loaders_go_on_where_they_were(dataset: millrace.Dataset) -> None:
    loader = dataset.loader("train", 16, shuffle=True, **SMALL)
    labels(loader)
    again = pickle.loads(pickle.dumps(loader))
    assert labels(again) == labels(loader)
