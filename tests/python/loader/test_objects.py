"""Boxes, classes, polygons and keypoints in batches, moved with the picture."""

import gc
import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import millrace

FIELDS = ("image", "boxes", "classes", "polygons", "keypoints", "number", "crowd", "meta", "left", "top", "crop_width", "crop_height",
          "flip")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> millrace.Split:
    folder = tmp_path_factory.mktemp("scenes")
    program = os.environ["MILLRACE_BIN"]
    subprocess.run([program, "sample", folder / "source", "--layout", "coco", "--images", "40", "-q"], check=True)
    dataset = millrace.ingest(folder / "source", to=folder / "scenes")
    return dataset["train"]


def batches(split: millrace.Split, array: Any = "numpy", **options: Any) -> list[dict[str, Any]]:
    options = {"view": millrace.Crop(96), "shuffle": True, "threads": 2, **options}
    return list(millrace.Loader(split, 8, fields=FIELDS, as_dict=True, array=array, **options))


def moved(box: list[float], batch: dict[str, Any], i: int, size: int) -> np.ndarray[Any, Any]:
    """In plain arithmetic: cut, resized, mirrored, clipped."""
    left, top, width, height = (float(batch[name][i]) for name in ("left", "top", "crop_width", "crop_height"))
    x = (np.array([box[0], box[0] + box[2]]) - left) * size / width
    y = (np.array([box[1], box[1] + box[3]]) - top) * size / height
    if batch["flip"][i]:
        x = size - x[::-1]
    x, y = x.clip(0, size), y.clip(0, size)
    return np.array([x[0], y[0], x[1], y[1]])


def test_boxes_are_where_the_picture_is(scenes: millrace.Split) -> None:
    kept = lost = 0
    for batch in batches(scenes):
        assert len(batch["boxes"]) == len(batch["image"]) and batch["boxes"].values.dtype == np.float32
        for i, meta in enumerate(batch["meta"]):
            want = {}
            for number, thing in enumerate(meta["objects"]):
                box = moved(thing["box"], batch, i, 96)
                if min(box[2:] - box[:2]) >= 1.001:
                    want[number] = (box, thing["label"])
                elif min(box[2:] - box[:2]) < 0.999:
                    assert number not in batch["number"][i]
                    lost += 1
            assert set(want) <= set(batch["number"][i].tolist())
            for number, box, label in zip(batch["number"][i], batch["boxes"][i], batch["classes"][i]):
                if int(number) in want:
                    np.testing.assert_allclose(box, want[int(number)][0], atol=1e-3)
                    assert label == want[int(number)][1]
                    kept += 1
    assert kept > 20 and lost > 0


def test_polygons_are_in_their_boxes(scenes: millrace.Split) -> None:
    polygons = 0
    for batch in batches(scenes, view=millrace.Crop(96, scale=(0.5, 1.0))):
        for boxes, things in zip(batch["boxes"], batch["polygons"]):
            assert len(boxes) == len(things)
            for box, rings in zip(boxes, things):
                for ring in rings:
                    assert ring.shape[0] >= 3 and ring.shape[1] == 2
                    assert (ring.min(0) >= box[:2] - 0.05).all() and (ring.max(0) <= box[2:] + 0.05).all()
                    polygons += 1
    assert polygons > 5


def test_masks_are_the_polygons(scenes: millrace.Split) -> None:
    fields = ("mask", "boxes", "classes", "polygons")
    seen = 0
    for masks, boxes, classes, polygons in millrace.Loader(scenes, 8, view=millrace.Square(96), fields=fields, array="numpy"):
        assert masks.dtype == np.uint8 and masks.shape[1:] == (96, 96) and masks.flags.writeable
        for mask, rows, labels, things in zip(masks, boxes, classes, polygons):
            shown = {int(label) + 1 for label, rings in zip(labels, things) if len(rings)}
            assert set(np.unique(mask).tolist()) <= shown | {0, 255}
            if len(rows) == 1 and len(things[0]):
                y, x = np.nonzero(mask)
                left, top, right, bottom = rows[0]
                assert abs(x.min() - left) < 2 and abs(x.max() + 1 - right) < 2
                assert abs(y.min() - top) < 2 and abs(y.max() + 1 - bottom) < 2
                seen += 1
    assert seen > 0


def test_masks_are_the_memory_of_their_batch(scenes: millrace.Split) -> None:
    loader = millrace.Loader(scenes, 4, view=millrace.Square(64), fields=("mask", "sample"), array="numpy", shuffle=True)
    first = [(mask, mask.copy(), sample) for mask, sample in loader]
    loader.close()
    del loader
    gc.collect()
    assert all(np.array_equal(mask, copy) for mask, copy, _ in first)
    (raw,) = next(iter(millrace.Loader(scenes, 4, view=millrace.Square(64), fields=("mask",), array="raw", shuffle=True)))
    assert raw.shape == (4, 64, 64) and raw.tobytes() == first[0][1].tobytes()


def test_rules_say_what_is_left_out(scenes: millrace.Split) -> None:
    def boxes(**options: Any) -> np.ndarray[Any, Any]:
        return np.concatenate([batch["boxes"].values for batch in batches(scenes, **options)])

    every, large = boxes(), boxes(object_side=12)
    sides = np.minimum(every[:, 2] - every[:, 0], every[:, 3] - every[:, 1])
    assert 0 < len(large) == (sides >= 12).sum() < len(every)
    assert 0 < len(boxes(object_visible=0.9)) < len(every)
    with pytest.raises(millrace.MisuseError, match="object_visible: 2"):
        batches(scenes, object_visible=2)
    with pytest.raises(millrace.MisuseError, match="object_side"):
        batches(scenes, object_side=0)


def test_any_array_and_any_number_of_threads(scenes: millrace.Split) -> None:
    for one, raw in zip(batches(scenes), batches(scenes, array="raw", threads=0)):
        for name in ("boxes", "classes", "number", "crowd"):
            assert one[name].values.tolist() == raw[name].values.tolist()
            assert one[name].offsets.tolist() == raw[name].offsets.tolist()
        assert one["polygons"][0:2][1].offsets.tolist() == raw["polygons"][1].offsets.tolist()


def test_they_may_be_changed_kept_and_pickled(scenes: millrace.Split) -> None:
    held = batches(scenes)
    before = pickle.loads(pickle.dumps(held[0]["boxes"]))
    held[0]["boxes"].values[:] = 0
    assert before.values.any() and len(before) == len(held[0]["boxes"])
    assert batches(scenes)[0]["boxes"].values.tolist() == before.values.tolist()


def test_rows_of_a_ragged() -> None:
    rows = millrace.Ragged(np.arange(6), np.array([0, 2, 2, 6]))
    assert [row.tolist() for row in rows] == [[0, 1], [], [2, 3, 4, 5]]
    assert rows[-1].tolist() == [2, 3, 4, 5] and [row.tolist() for row in rows[1:]] == [[], [2, 3, 4, 5]]
    with pytest.raises(IndexError, match="row 3 of a Ragged of 3"):
        rows[3]


def test_without_objects_every_row_is_empty(dataset: millrace.Dataset) -> None:
    boxes, keypoints = next(iter(dataset.loader("train", 4, fields=("boxes", "keypoints"), array="numpy")))
    assert [len(row) for row in boxes] == [0] * 4 and boxes.values.shape == (0, 4) and len(keypoints) == 4


def test_equal_to_torchvision(scenes: millrace.Split) -> None:
    torch = pytest.importorskip("torch")
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    v2 = pytest.importorskip("torchvision.transforms.v2")

    compared = 0
    for batch in batches(scenes, array="torch"):
        for i, meta in enumerate(batch["meta"]):
            place = [int(batch[name][i]) for name in ("top", "left", "crop_height", "crop_width")]
            boxes: Any = tv_tensors.BoundingBoxes(
                torch.tensor([thing["box"] for thing in meta["objects"]], dtype=torch.float32).view(-1, 4),
                format="XYWH", canvas_size=(meta["height"], meta["width"]) if "height" in meta else (4096, 4096),
            )
            boxes = v2.functional.convert_bounding_box_format(boxes, new_format=tv_tensors.BoundingBoxFormat.XYXY)
            boxes = v2.functional.resized_crop(boxes, *place, size=[96, 96])
            if batch["flip"][i]:
                boxes = v2.functional.horizontal_flip(boxes)
            boxes = v2.functional.clamp_bounding_boxes(boxes)
            for number, box in zip(batch["number"][i].tolist(), batch["boxes"][i]):
                torch.testing.assert_close(box, boxes[number].as_subclass(torch.Tensor), atol=1e-2, rtol=1e-4)
                compared += 1
    assert compared > 20
    assert "torch" in sys.modules and isinstance(batches(scenes, array="torch")[0]["boxes"].offsets, torch.Tensor)


def test_rows_are_what_torchvision_takes(scenes: millrace.Split) -> None:
    torch = pytest.importorskip("torch")
    detection = pytest.importorskip("torchvision.models.detection")
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    fields = ("image", "boxes", "classes")
    loader = millrace.Loader(scenes, 2, view=millrace.Square(64), fields=fields, array="torch", output="uint8")
    images, boxes, classes = next(iter(loader))
    pictures = images.permute(0, 3, 1, 2)
    assert pictures.is_contiguous(memory_format=torch.channels_last) and pictures.data_ptr() == images.data_ptr()
    targets = [{"boxes": box, "labels": label.long() + 1} for box, label in zip(boxes, classes)]
    assert len(targets) == 2 and all(len(target["boxes"]) for target in targets)
    box = tv_tensors.BoundingBoxes(boxes[0], format="XYXY", canvas_size=pictures.shape[-2:])
    assert box.canvas_size == (64, 64) and box.shape[1] == 4
    model = detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=91)
    losses = model(list(pictures.float() / 255), targets)
    assert all(torch.isfinite(loss) for loss in losses.values())


def test_targets_of_torchvision(scenes: millrace.Split) -> None:
    torch = pytest.importorskip("torch")
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    from torchvision.transforms import v2

    fields = ["image", "targets", "boxes", "classes", "crowd", "sample"]
    loader = millrace.Loader(scenes, 5, shuffle=True, view=millrace.Crop((48, 64)), fields=fields, array="torch")
    for images, targets, *columns in loader:
        for image, target, box, label, crowd, sample in zip(images, targets, *columns):
            assert isinstance(target["boxes"], tv_tensors.BoundingBoxes) and target["boxes"].canvas_size == (48, 64)
            assert torch.equal(target["boxes"].as_subclass(torch.Tensor), box) and target["image_id"] == sample
            assert torch.equal(target["labels"], label.long()) and torch.equal(target["iscrowd"], crowd)
            _, mirrored = v2.RandomHorizontalFlip(1.0)(tv_tensors.Image(image), target)
            assert torch.equal(mirrored["boxes"][:, 0], 64 - box[:, 2])
    with pytest.raises(millrace.MisuseError, match="'targets' are torch tensors; array='numpy'"):
        millrace.Loader(scenes, 5, fields=["targets"], array="numpy")
