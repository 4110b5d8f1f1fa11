"""Augment: colours changed in the loader's threads."""

import pickle
from typing import Any

import numpy as np
import pytest

import millrace

Pictures = np.ndarray[Any, Any]


def pictures(split: millrace.Split, augment: millrace.Augment | None = None, **options: Any) -> Pictures:
    """An epoch of uint8 pictures, 12 at a time."""
    options = {"view": millrace.Square(64), "output": "uint8", "array": "numpy", "threads": 2, **options}
    return np.concatenate([images for images, _ in millrace.Loader(split, 12, augment=augment, **options)])


def test_equal_to_torchvision(dataset: millrace.Dataset) -> None:
    torch = pytest.importorskip("torch")
    v2 = pytest.importorskip("torchvision.transforms.v2").functional
    split = dataset["train"]
    plain = torch.from_numpy(pictures(split)).permute(0, 3, 1, 2)
    functions = {
        "brightness": (v2.adjust_brightness, (0.4, 1.0, 1.6)),
        "contrast": (v2.adjust_contrast, (0.4, 1.0, 1.6)),
        "saturation": (v2.adjust_saturation, (0.4, 1.0, 1.6)),
        "hue": (v2.adjust_hue, (-0.5, -0.13, 0.3)),
    }
    for name, (function, amounts) in functions.items():
        for amount in amounts:
            options: dict[str, Any] = {name: (amount, amount)}
            ours = pictures(split, millrace.Augment(**options)).transpose(0, 3, 1, 2)
            off = np.abs(ours.astype(int) - function(plain, amount).numpy().astype(int))
            assert off.max() <= 1 and (off > 0).mean() < 0.05, (name, amount, off.max(), (off > 0).mean())
    ours = pictures(split, millrace.Augment(grey=1)).transpose(0, 3, 1, 2)
    assert np.abs(ours.astype(int) - v2.rgb_to_grayscale(plain, num_output_channels=3).numpy().astype(int)).max() <= 1


def test_each_epoch_is_another_and_each_run_the_same(dataset: millrace.Dataset) -> None:
    strong = millrace.Augment(brightness=0.5, contrast=0.5, saturation=0.5, hue=0.2, grey=0.2, erase=0.3)
    loader = millrace.Loader(dataset["train"], 12, view=millrace.Square(32), output="uint8", array="numpy", augment=strong)
    first, second = list(loader), list(loader)
    assert all((a[0] != b[0]).any() for a, b in zip(first, second))
    loader.set_epoch(1)
    steps = iter(loader)
    next(steps)
    state = loader.state_dict()
    again = pickle.loads(pickle.dumps(loader))
    again.load_state_dict(state)
    for (images, _), (wanted, _) in zip(again, second[1:]):
        np.testing.assert_array_equal(images, wanted)


def test_erased_parts_have_the_mean_colour(dataset: millrace.Dataset) -> None:
    mean = (0.1, 0.5, 0.9)
    plain = pictures(dataset["train"], mean=mean, std=(1, 1, 1))
    erased = pictures(dataset["train"], millrace.Augment(erase=1), mean=mean, std=(1, 1, 1))
    for before, after in zip(plain, erased):
        other = (before != after).any(2)
        assert (after[other] == [26, 128, 230]).all() and 0 < other.mean() <= 0.34


def test_what_it_refuses(dataset: millrace.Dataset) -> None:
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (millrace.Augment(hue=0.6), {}, "hue"),
        (millrace.Augment(brightness=-1), {}, "brightness"),
        (millrace.Augment(contrast="much"), {}, "contrast"),  # type: ignore[arg-type]
        (millrace.Augment(grey=1), {"output": "encoded"}, "augment"),
        ("grey", {}, "augment"),
    ]
    for augment, options, word in wrong:
        with pytest.raises(millrace.MisuseError, match=word):
            pictures(dataset["train"], augment, **options)
