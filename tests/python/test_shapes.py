"""Views that are not square: pixels, boxes and masks."""

from typing import Any

import numpy as np
import pytest

import millrace

HEIGHT, WIDTH = 40, 64
FACTS = ("image", "sample", "left", "top", "crop_width", "crop_height", "flip")


def batch_of(split: millrace.Split, view: millrace.View, **options: Any) -> dict[str, Any]:
    options = {"array": "numpy", "threads": 1, "fields": FACTS, "as_dict": True, "output": "uint8", **options}
    batch: dict[str, Any] = next(iter(millrace.Loader(split, 12, view=view, **options)))
    return batch


def whole(split: millrace.Split, n: int) -> Any:
    """The picture itself: a view of its own size, which resizes nothing."""
    sample = split[n]
    view = millrace.Square((sample["height"], sample["width"]))
    return next(iter(millrace.Loader(split, 1, view=view, items=[n], output="uint8", array="numpy", fields=("image",))))[0][0]


def test_shapes_of_every_output(dataset: millrace.Dataset) -> None:
    shapes = {"uint8": (12, HEIGHT, WIDTH, 3), "float32": (12, 3, HEIGHT, WIDTH)}
    for output, shape in shapes.items():
        images = batch_of(dataset["train"], millrace.Crop((HEIGHT, WIDTH)), output=output)["image"]
        assert images.shape == shape
    raw = next(iter(dataset.loader("train", 12, view=millrace.Square((HEIGHT, WIDTH)), output="bfloat16", array="raw")))
    assert memoryview(raw).shape == (12, 3, HEIGHT, WIDTH) and (raw.height, raw.width) == (HEIGHT, WIDTH)
    square, pair = (batch_of(dataset["train"], millrace.Crop(size))["image"] for size in (48, (48, 48)))
    np.testing.assert_array_equal(square, pair)


def test_floats_are_the_bytes(dataset: millrace.Dataset) -> None:
    view = millrace.Crop((HEIGHT, WIDTH))
    augment = millrace.Augment(hue=0.2, erase=1)
    for change in (None, augment):
        images = batch_of(dataset["train"], view, augment=change)["image"]
        floats = batch_of(dataset["train"], view, augment=change, output="float32")["image"]
        np.testing.assert_allclose(floats.transpose(0, 2, 3, 1), (images / 255 - 0.5) / 0.5, atol=1e-6)


def test_equal_to_torchvision(dataset: millrace.Dataset) -> None:
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchvision.transforms.v2").functional
    split = dataset["train"]
    for view in (millrace.Square((HEIGHT, WIDTH)), millrace.Crop((HEIGHT, WIDTH)), millrace.Crop((WIDTH, HEIGHT), bicubic=True)):
        batch = batch_of(split, view)
        for i, n in enumerate(batch["sample"].tolist()):
            place = [int(batch[name][i]) for name in ("top", "left", "crop_height", "crop_width")]
            picture = torch.from_numpy(whole(split, n)).permute(2, 0, 1)
            method = functional.InterpolationMode.BICUBIC if view.bicubic else functional.InterpolationMode.BILINEAR
            want = functional.resized_crop(picture, *place, size=view.size, interpolation=method, antialias=True)
            want = functional.horizontal_flip(want) if batch["flip"][i] else want
            off = np.abs(batch["image"][i].transpose(2, 0, 1).astype(int) - want.numpy().astype(int))
            assert off.max() <= 2 and off.mean() < 0.3


def test_what_it_refuses(dataset: millrace.Dataset) -> None:
    with pytest.raises(millrace.MisuseError, match="squares only"):
        batch_of(dataset["train"], millrace.Center((HEIGHT, WIDTH)))
    with pytest.raises(millrace.MisuseError, match="height"):
        batch_of(dataset["train"], millrace.Square((100000, WIDTH)))
