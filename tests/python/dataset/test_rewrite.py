"""Datasets written again: objects, captions, masks and several labels come back, and objects can be written from scratch."""

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import millrace

LAYOUTS = [("imagenette", ()), ("roboflow", ("--variant", "multi-class")), ("roboflow", ()), ("coco", ()), ("newyorker", ())]
BOXES: list[dict[str, Any]] = [
    {"class": "dog", "box": [1, 2, 30.5, 40], "crowd": True, "id": 7},
    {"label": 0, "box": np.array([0.12345, 0, 3, 4], "float32"), "polygons": [[1, 2, 3, 4, 5, 6.5]]},
    {"keypoints": [[1, 2, 2], (0, 0, 0)], "oriented_box": range(8), "crowd": False},
]


def make(folder: pathlib.Path, layout: str, words: tuple[str, ...]) -> millrace.Dataset:
    assert millrace.cli("sample", str(folder / "source"), "--layout", layout, *words, "--images", "20", "-q") == 0
    return millrace.ingest(folder / "source", to=folder / "first")


def without_origin(meta: dict[str, Any]) -> dict[str, Any]:
    """What a meta says beside where its file was."""
    rest = {name: value for name, value in meta.items() if name not in ("source", "image_of")}
    if isinstance(rest.get("columns"), dict):
        rest["columns"] = {name: value for name, value in rest["columns"].items() if name != "source"}
    return {name: value for name, value in rest.items() if value != {}}


@pytest.mark.parametrize("layout, words", LAYOUTS)
def test_a_dataset_written_again_says_the_same(tmp_path: pathlib.Path, layout: str, words: tuple[str, ...]) -> None:
    first = make(tmp_path, layout, words)
    samples: Any = (
        {"split": name, "image": s["image"], "label": s["label"], "meta": s["meta"]} for name in first for s in first[name]
    )
    again = millrace.write(samples, tmp_path / "again", classes=first.classes)
    assert again.classes == first.classes and {n: len(s) for n, s in again.items()} == {n: len(s) for n, s in first.items()}
    for name in first:
        for before, after in zip(first[name], again[name], strict=True):
            assert after["image"] == before["image"] and after["label"] == before["label"]
            assert without_origin(after["meta"]) == without_origin(before["meta"])
            columns = after["meta"].get("columns", {})
            assert not isinstance(columns, dict) or columns["source"] == before["meta"]["source"]
    assert millrace.verify(again.path, level="deep")["ok"]


def test_objects_come_back_and_are_exported(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    images = [sample["image"] for sample in dataset["train"]]
    samples: list[Any] = [{"split": "train", "image": images[0], "objects": BOXES, "meta": {"by": "hand"}}]
    samples += [{"split": "train", "image": images[1], "objects": []}, {"split": "val", "image": images[2]}]
    written = millrace.write(samples, tmp_path / "d", classes=["cat", "dog", "a\\b"])
    meta = written["train"].meta(0)
    assert meta["columns"] == {"by": "hand"} and meta["objects"] == [
        {"label": 1, "class": "dog", "box": [1, 2, 30.5, 40], "crowd": True, "id": 7},
        {"label": 0, "class": "cat", "box": [0.123, 0, 3, 4], "polygons": [[1, 2, 3, 4, 5, 6.5]]},
        {"oriented_box": [0, 1, 2, 3, 4, 5, 6, 7], "keypoints": [[1, 2, 2], [0, 0, 0]]},
    ]
    assert written["train"].meta(1)["objects"] == [] and "objects" not in written["val"].meta(0)
    (classes,) = next(iter(written.loader("train", 2, fields=["classes"], array="numpy", view=millrace.Square(8))))
    assert classes[0].tolist() == [1]  # the others are less than a pixel there, or have no class
    millrace.export(written.path, tmp_path / "coco", to="coco")
    instances = json.loads((tmp_path / "coco/annotations/instances_train.json").read_text())
    assert len(instances["annotations"]) == 2 and instances["annotations"][0]["iscrowd"] == 1  # what has neither is left out
    back = millrace.ingest(tmp_path / "coco", to=tmp_path / "back")
    assert [o["box"] for o in back["train"].meta(0)["objects"]] == [[1, 2, 30.5, 40], [0.123, 0, 3, 4]]


def test_classes_are_found_by_name_in_another_order(tmp_path: pathlib.Path) -> None:
    first = make(tmp_path, "coco", ())
    classes = [*reversed(first.classes), "new"]
    samples: Any = ({"split": "train", "image": s["image"], "meta": s["meta"]} for s in first["train"])
    again = millrace.write(samples, tmp_path / "again", classes=classes)
    for before, after in zip(first["train"], again["train"]):
        named = [o["class"] for o in before["meta"]["objects"]]
        assert [o["class"] for o in after["meta"]["objects"]] == named
        assert [classes[o["label"]] for o in after["meta"]["objects"]] == named


def test_a_changed_meta_keeps_its_objects(tmp_path: pathlib.Path) -> None:
    first = make(tmp_path, "coco", ())["train"]
    meta = {**first.meta(0), "quality": 3}
    sample: Any = {"split": "train", "image": first[0]["image"], "meta": meta}
    again = millrace.write([sample], tmp_path / "again", classes=first.dataset.classes)["train"].meta(0)
    assert again["objects"] == meta["objects"] and again["columns"]["quality"] == 3
    theirs = {"objects": {"bbox": [[1, 2, 3, 4]], "categories": [0]}}  # of another tool: a column
    other: Any = {**sample, "meta": theirs}
    kept = millrace.write([other], tmp_path / "theirs")["train"].meta(0)
    assert kept["columns"] == theirs and "objects" not in kept


def test_several_labels(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    image = dataset["train"][0]["image"]
    samples: list[Any] = [{"split": "a", "image": image, "labels": labels} for labels in ([2, "x", 2], [], ["z"])]
    written = millrace.write(samples, tmp_path / "d", classes=["x", "y", "z"])
    assert [written["a"].meta(i)["labels"] for i in range(3)] == [[0, 2], [], [2]]
    assert written["a"].labels.tolist() == [-1, -1, -1] and millrace.verify(written.path, level="deep")["ok"]
    both: Any = {**samples[0], "label": 1}
    with pytest.raises(millrace.MisuseError, match="label and labels"):
        millrace.write([both], tmp_path / "e", classes=["x", "y", "z"])


@pytest.mark.parametrize(
    "objects, message",
    [
        ([{"bbox": [1, 2, 3, 4]}], "objects: 'bbox' is not one of class, label, box"),
        ([{"box": [1, 2, 3]}], r"objects: box: \[1, 2, 3\] is not valid"),
        ([{"box": [1, 2, 3, float("nan")]}], "objects: box: .* is not valid"),
        ([{"box": [1, 2, 3, 2e6]}], "objects: box: .* is not valid"),
        ([{"polygons": [[1, 2, 3, 4]]}], "objects: polygons: .* is not valid"),
        ([{"keypoints": [[1, 2, 3]]}], "objects: keypoints: .* is not valid"),
        ([{"class": "bird"}], "objects: 'bird' is not one of the 2 classes"),
        ([{"label": 2}], "objects: 2 is not one of the 2 classes"),
        ([{"label": 0.5}], "objects: 0.5 is not one of the 2 classes"),
        ([[1, 2, 3, 4]], r"objects: \[1, 2, 3, 4\] is not a dict"),
    ],
)
def test_objects_that_are_refused(dataset: millrace.Dataset, tmp_path: pathlib.Path, objects: Any, message: str) -> None:
    sample: Any = {"split": "a", "image": dataset["train"][0]["image"], "objects": objects}
    with pytest.raises(millrace.MisuseError, match=message):
        millrace.write([sample], tmp_path / "d", classes=["cat", "dog"])
    assert not list(tmp_path.iterdir())


def test_objects_with_classes_need_their_names(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    image = dataset["train"][0]["image"]
    wrong: list[Any] = [{"objects": [{"label": 0}]}, {"labels": [0]}]
    for more in wrong:
        samples: Any = [{"split": "a", "image": image, **more}]
        with pytest.raises(millrace.MisuseError, match="of which classes.* pass classes=, the names in the order"):
            millrace.write(samples, tmp_path / "d")
    box: Any = {"split": "a", "image": image, "objects": [{"box": [0, 0, 1, 1]}]}
    assert millrace.write([box], tmp_path / "d")["a"].meta(0)["objects"] == [{"box": [0, 0, 1, 1]}]
