"""Masks that the source has beside its images, as a field of a batch."""

import base64
import pathlib
import struct
import zlib
from typing import Any

import numpy as np
import pytest

import millrace


def png(numbers: Any, colour: int = 0) -> bytes:
    """A grey (0) or palette (3) image of bytes, or of three channels (2)."""
    height, width = numbers.shape[:2]

    def chunk(tag: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + tag + body + struct.pack(">I", zlib.crc32(tag + body))

    rows = b"".join(b"\0" + row.tobytes() for row in numbers)
    palette = chunk(b"PLTE", bytes(range(256)) * 3) if colour == 3 else b""
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + palette + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def meta(**masks: bytes) -> millrace.Meta:
    return millrace.Meta({"masks": {name: {"source": f"{name}.png", "png": base64.b64encode(mask).decode()} for name, mask in masks.items()}})


@pytest.fixture(scope="module")
def masked(dataset: millrace.Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[millrace.Dataset, list[Any]]:
    """A dataset of 20 images; numbers from 0 to 20 in blocks; the last two have no such mask."""
    random = np.random.default_rng(5)
    masks, samples = [], []
    for n in range(20):
        sample: Any = dataset["train"][n]
        blocks = random.integers(0, 21, (sample["height"] // 7 + 1, sample["width"] // 7 + 1), dtype=np.uint8)
        masks.append(blocks.repeat(7, 0).repeat(7, 1)[: sample["height"], : sample["width"]].copy())
        named = {"SegmentationClass": png(masks[-1], 3 * (n % 2))} if n < 18 else {"other": png(masks[-1])}
        samples.append({"split": "train", "image": sample["image"], "meta": meta(**named, panoptic=png(np.stack([masks[-1]] * 3, -1), 2))})
    return millrace.write(samples, tmp_path_factory.mktemp("masked") / "d"), masks


FIELDS = ("mask", "sample", "left", "top", "crop_width", "crop_height", "flip")


def seen(mask: Any, box: Any, size: tuple[int, int], flip: bool) -> Any:
    left, top, width, height = map(int, box)
    rows = top + np.arange(size[0]) * height // size[0]
    columns = left + np.arange(size[1]) * width // size[1]
    part = mask[rows][:, columns]
    return part[:, ::-1] if flip else part


@pytest.mark.parametrize("array", ["numpy", "torch"])
def test_a_mask_moves_with_its_image(masked: tuple[millrace.Dataset, list[Any]], array: Any) -> None:
    if array == "torch":
        pytest.importorskip("torch")
    written, masks = masked
    for view in (millrace.Crop((40, 56)), millrace.Square(33), millrace.Square((90, 300))):
        size = (view.size, view.size) if isinstance(view.size, int) else view.size
        loader = written.loader("train", 5, shuffle=True, view=view, mask="SegmentationClass", fields=FIELDS, array=array)
        for batch, numbers, *boxes, flips in loader:
            assert tuple(batch.shape[1:]) == size
            for mask, n, *box, flip in zip(batch, numbers, *boxes, flips):
                wanted = seen(masks[int(n)], box, size, bool(flip)) if int(n) < 18 else np.full(size, 255)
                np.testing.assert_array_equal(np.asarray(mask), wanted)


def test_orientation_and_frames(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    turns: dict[int, Any] = {
        1: lambda a: a, 2: np.fliplr, 3: lambda a: np.rot90(a, 2), 4: np.flipud,
        5: lambda a: a.T, 6: lambda a: np.rot90(a, -1), 7: lambda a: np.rot90(a, 2).T, 8: np.rot90,
    }  # fmt: skip
    sample: Any = dataset["train"][0]
    mask = np.random.default_rng(1).integers(0, 200, (sample["height"], sample["width"]), dtype=np.uint8)
    samples = []
    for orientation in turns:
        exif = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01" + struct.pack(">HHI", orientation, 0, 0)
        image = sample["image"][:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + sample["image"][2:]
        samples.append({"split": "train", "image": image, "meta": meta(labels=png(mask))})
    turned = millrace.write(samples, tmp_path / "d")["train"]
    for n, turn in enumerate(turns.values()):
        wanted = turn(mask)
        view = millrace.Square(wanted.shape, apply_orientation=True)
        (found,) = next(iter(millrace.Loader(turned, 1, items=[n], view=view, mask="labels", fields=["mask"], array="numpy")))
        np.testing.assert_array_equal(found[0], wanted)
    framed = millrace.Letterbox((sample["height"] + 10, sample["width"]))
    (found,) = next(iter(millrace.Loader(turned, 1, view=framed, mask="labels", fields=["mask"], array="numpy")))
    np.testing.assert_array_equal(found[0, 5:-5], mask)
    assert (found[0, :5] == 255).all() and (found[0, -5:] == 255).all()


def test_as_torchvision(masked: tuple[millrace.Dataset, list[Any]]) -> None:
    torch = pytest.importorskip("torch")
    v2 = pytest.importorskip("torchvision.transforms.v2.functional")
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    written, masks = masked
    loader = written.loader("train", 6, view=millrace.Crop(48), mask="SegmentationClass", fields=FIELDS, array="torch", items=range(18))
    for batch, numbers, lefts, tops, widths, heights, flips in loader:
        for mask, n, left, top, width, height, flip in zip(batch, numbers, lefts, tops, widths, heights, flips):
            theirs = v2.resized_crop(tv_tensors.Mask(torch.from_numpy(masks[int(n)])), int(top), int(left), int(height), int(width), [48, 48])
            theirs = v2.horizontal_flip(theirs) if flip else theirs
            assert (theirs != mask).float().mean() < 0.01  # it computes places in float32


def test_what_is_refused(masked: tuple[millrace.Dataset, list[Any]], dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    written, masks = masked
    with pytest.raises(millrace.BadSampleError, match="its mask panoptic: it is in colour"):
        next(iter(written.loader("train", 2, mask="panoptic", fields=["mask"])))
    for name in ("", "x" * 64, 3):
        with pytest.raises(millrace.MisuseError, match="mask: .* a name, of at most 63 bytes"):
            written.loader("train", 2, mask=name, fields=["mask"])  # type: ignore[arg-type]
    with pytest.raises(millrace.MisuseError, match="mask: 'panoptic' is what the field 'mask' shows"):
        written.loader("train", 2, mask="panoptic")
    with pytest.raises(millrace.BadSampleError, match="pixels"):
        next(iter(written.loader("train", 2, mask="SegmentationClass", fields=["mask"], max_pixels=100, output="encoded")))
    sample: Any = dataset["train"][0]
    wrong = {"size": png(masks[1][:5]), "cut": png(masks[0])[:-30]}
    samples: list[Any] = [{"split": "train", "image": sample["image"], "meta": meta(m=mask)} for mask in wrong.values()]
    damaged = millrace.write(samples, tmp_path / "d")
    for item, message in enumerate((r"its mask m: .* pixels, and the image has", "its mask m: PNG cannot be decoded")):
        with pytest.raises(millrace.BadSampleError, match=message):
            next(iter(damaged.loader("train", 1, mask="m", fields=["mask"], items=[item])))
    masked_out, weight = next(iter(damaged.loader("train", 2, mask="m", fields=["mask", "weight"], on_bad="mask", array="numpy")))
    assert not weight.any() and not masked_out.any()
