"""Views that are not square: pixels, boxes and masks."""

import pathlib
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
    with pytest.raises(millrace.MisuseError, match="only squares"):
        batch_of(dataset["train"], millrace.Center((HEIGHT, WIDTH)))
    with pytest.raises(millrace.MisuseError, match="height"):
        batch_of(dataset["train"], millrace.Square((100000, WIDTH)))


def letterboxed(width: int, height: int, box: tuple[int, int]) -> tuple[int, int, int, int]:
    """Where a picture of this size is in (height, width)."""
    scale = min(box[1] / width, box[0] / height)
    inner = max(round(width * scale), 1), max(round(height * scale), 1)
    return (box[1] - inner[0]) // 2, (box[0] - inner[1]) // 2, *inner


@pytest.mark.parametrize("size", [(64, 64), (40, 96), (96, 40)])
def test_letterboxes_keep_the_ratio(dataset: millrace.Dataset, size: tuple[int, int]) -> None:
    split = dataset["train"]
    for n in range(12):
        sample: Any = split[n]
        left, top, width, height = letterboxed(sample["width"], sample["height"], size)
        options: dict[str, Any] = {"items": [n], "output": "uint8", "array": "numpy", "fields": ("image",), "mean": (0.2, 0.4, 1.0)}
        (whole,) = next(iter(millrace.Loader(split, 1, view=millrace.Letterbox(size), **options)))
        (inner,) = next(iter(millrace.Loader(split, 1, view=millrace.Square((height, width)), **options)))
        assert whole.shape == (1, *size, 3)
        np.testing.assert_array_equal(whole[:, top : top + height, left : left + width], inner)
        whole[:, top : top + height, left : left + width] = (51, 102, 255)
        assert (whole == (51, 102, 255)).all()
    with pytest.raises(millrace.MisuseError, match="letterbox"):
        millrace.Loader(split, 1, view=millrace.Letterbox(32, unrounded=True))


def test_floats_of_a_letterbox_are_its_bytes(dataset: millrace.Dataset) -> None:
    common: dict[str, Any] = {"view": millrace.Letterbox(48), "array": "numpy", "fields": ("image",)}
    for (bytes_,), (floats,) in zip(
        millrace.Loader(dataset["train"], 12, output="uint8", **common), millrace.Loader(dataset["train"], 12, **common)
    ):
        wanted = (bytes_.transpose(0, 3, 1, 2).astype("float32") / 255 - 0.5) / 0.5
        np.testing.assert_allclose(floats, wanted, atol=1e-6)


def test_boxes_move_into_a_letterbox(tmp_path: pathlib.Path) -> None:
    assert millrace.cli("sample", str(tmp_path / "s"), "--layout", "coco", "--images", "20", "-q") == 0
    scenes = millrace.ingest(tmp_path / "s", to=tmp_path / "d")["train"]
    options: dict[str, Any] = {"view": millrace.Letterbox((80, 120)), "array": "numpy", "fields": ("boxes", "number", "mask")}
    for n in range(len(scenes)):
        boxes, numbers, mask = next(iter(millrace.Loader(scenes, 1, items=[n], object_side=0.001, **options)))
        sample: Any = scenes[n]
        left, top, width, height = letterboxed(sample["width"], sample["height"], (80, 120))
        for box, number in zip(boxes[0], numbers[0]):
            x, y, w, h = sample["meta"]["objects"][int(number)]["box"]
            across, down = width / sample["width"], height / sample["height"]
            wanted = [left + x * across, top + y * down, left + (x + w) * across, top + (y + h) * down]
            np.testing.assert_allclose(box, np.clip(wanted, 0, [120, 80] * 2), atol=0.01)
        assert not mask[0, :top].any() and not mask[0, :, :left].any()


@pytest.mark.parametrize(("size", "padding"), [(24, 4), ((40, 64), 0), ((16, 700), 15)])
def test_random_crops_at_the_images_own_scale(dataset: millrace.Dataset, size: int | tuple[int, int], padding: int) -> None:
    split = dataset["train"]
    height, width = (size, size) if isinstance(size, int) else size
    seen = set()
    view, fill = millrace.RandomCrop(size, padding=padding), (51, 102, 255)
    for epoch in range(3):
        loader = millrace.Loader(split, 12, view=view, output="uint8", array="numpy", fields=FACTS, mean=(0.2, 0.4, 1.0))
        loader.set_epoch(epoch)
        images, numbers, lefts, tops, widths, heights, flips = next(iter(loader))
        for image, n, *box, flip in zip(images, numbers, lefts, tops, widths, heights, flips):
            left, top, across, down = map(int, box)
            stored = whole(split, int(n))
            h, w, _ = stored.shape
            if flip:
                image = image[:, ::-1]
            part = stored[top : top + down, left : left + across]
            wanted = np.empty_like(image)
            for x, y in [(x, y) for x in range(width - across + 1) for y in range(height - down + 1)]:
                wanted[:] = fill
                wanted[y : y + down, x : x + across] = part
                if (wanted == image).all():
                    break
            else:
                raise AssertionError(f"sample {n}: {box} is not there")
            for at, start, count, side, whole_side in ((x, left, across, width, w), (y, top, down, height, h)):
                if whole_side + 2 * padding < side:
                    assert at == (side - whole_side) // 2 and count == whole_side
                else:
                    assert (at == 0 or start == 0) and at <= padding and side - at - count <= padding
                    assert side == count or at or start + count == whole_side
            seen.add((left, top, bool(flip)))
    assert len(seen) > 4


def test_random_crops_move_their_boxes(tmp_path: pathlib.Path) -> None:
    assert millrace.cli("sample", str(tmp_path / "s"), "--layout", "coco", "--images", "20", "-q") == 0
    scenes = millrace.ingest(tmp_path / "s", to=tmp_path / "d")["train"]
    options: dict[str, Any] = {"array": "numpy", "fields": ("image", "boxes", "mask", "flip"), "output": "uint8", "mean": (0.0, 0.0, 0.0)}
    plain, mirrored = (millrace.RandomCrop(600, flip=flip) for flip in (0.0, 1.0))  # no image is as large
    for one, other in zip(millrace.Loader(scenes, 5, view=plain, **options), millrace.Loader(scenes, 5, view=mirrored, **options)):
        np.testing.assert_array_equal(one[0], other[0][:, :, ::-1])
        np.testing.assert_allclose(one[1].values[:, [0, 2]], 600 - other[1].values[:, [2, 0]], atol=1e-3)
        np.testing.assert_array_equal(one[2][0].any(axis=0), other[2][0].any(axis=0)[::-1])
        for mask, image in zip(one[2], one[0]):
            assert image[mask > 0].any() or not mask.any()


def test_random_crops_that_are_refused(dataset: millrace.Dataset) -> None:
    for view, message in (
        (millrace.RandomCrop(32, padding=32), "padding of 32 pixels around a patch of 32 x 32; give fewer"),
        (millrace.RandomCrop((8, 32), padding=8), "padding of 8 pixels around a patch of 32 x 8; give fewer"),
        (millrace.RandomCrop(32, unrounded=True), "a letterbox or patch is made of bytes"),
    ):
        with pytest.raises(millrace.MisuseError, match=message):
            millrace.Loader(dataset["train"], 1, view=view)
