"""Writer and write(): datasets from what a program makes."""

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import millrace
from conftest import UNDER_ASAN


def test_what_is_written_comes_back(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    source = dataset["train"]
    with millrace.Writer(tmp_path / "d") as writer:
        for i, sample in enumerate(source):
            meta = {"number": i, "text": "Grüße", "list": [1, {"a": None}]}
            name = dataset.classes[sample["label"]]
            writer.add("val" if i % 5 == 0 else "train", sample["image"], label=name, meta=meta, source=f"from/{i}")
    written = writer.dataset
    assert written.layout == "webdataset" and sorted(written) == ["train", "val"] and written.classes == dataset.classes
    found = {s["meta"]["columns"]["number"]: s for split in written.values() for s in split}
    for i, sample in enumerate(source):
        assert found[i]["image"] == sample["image"] and found[i]["label"] == sample["label"]
        assert found[i]["meta"]["columns"] == {
            "number": i, "text": "Grüße", "list": [1, {"a": None}], "source": f"from/{i}"
        }  # fmt: skip
    assert millrace.verify(written.path, level="decode")["ok"]


def test_numbers_names_and_no_labels(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    image = dataset["train"][0]["image"]
    numbers = millrace.write([{"split": "a", "image": image, "label": n} for n in (3, 0, 2)], tmp_path / "n")
    assert numbers["a"].labels.tolist() == [3, 0, 2] and len(numbers.classes) == 4
    none = millrace.write([{"split": "a", "image": image}], tmp_path / "none")
    assert none["a"].labels.tolist() == [-1] and none.classes == []


def test_labels_as_millrace_and_tables_give_them(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    """-1 and NaN are not labels, and whole floats are numbers: nothing becomes a class that changes the numbers of others."""
    image = dataset["train"][0]["image"]
    given: Any = [0, 1.0, np.int64(2), np.float32(10), -1, float("nan"), None, np.float64("nan")]
    samples: Any = [{"split": "a", "image": image, "label": label} for label in given]
    assert millrace.write(samples, tmp_path / "d")["a"].labels.tolist() == [0, 1, 2, 10, -1, -1, -1, -1]
    named = millrace.write(samples, tmp_path / "n", classes=[str(n) for n in range(11)])
    assert named["a"].labels.tolist() == [0, 1, 2, 10, -1, -1, -1, -1]
    refused: Any = (0.7, True, -2, b"rose", [1])
    for wrong in refused:
        with pytest.raises(millrace.MisuseError, match="neither a class number nor a name"):
            millrace.write([{"split": "a", "image": image, "label": wrong}], tmp_path / "w")
    rewritten: Any = ({"split": "a", "image": s["image"], "label": s["label"]} for s in dataset["train"])
    copy = millrace.write(rewritten, tmp_path / "c", classes=dataset.classes)
    assert copy.classes == dataset.classes and copy["a"].labels.tolist() == dataset["train"].labels.tolist()


def test_classes_in_a_given_order(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    image = dataset["train"][0]["image"]
    names = ["zebra", "ant", "not used é", "9"]
    samples: Any = [{"split": "a", "image": image, "label": label} for label in ("ant", "zebra", 1, "9")]
    written = millrace.write(samples, tmp_path / "d", classes=names)
    assert written.classes == names and written["a"].labels.tolist() == [1, 0, 1, 3]
    for unknown in (4, "cat"):
        with pytest.raises(millrace.MisuseError, match="not one of the 4 classes"):
            millrace.write([{"split": "a", "image": image, "label": unknown}], tmp_path / "e", classes=names)
    refused: Any = (["a", "a"], ["a\nb"], [""], [0, 1], "ab", {"a", "b"}, {"a": 1, "b": 2}, {"a": 0, "b": 0})
    for wrong in refused:
        with pytest.raises(millrace.MisuseError, match="classes"):
            millrace.Writer(tmp_path / "e", classes=wrong)
    assert os.listdir(tmp_path) == ["d"]
    by_name = {"ant": 1, "zebra": 0}  # as torchvision's class_to_idx, in any order
    assert millrace.write(samples[:3], tmp_path / "f", classes=by_name).classes == ["zebra", "ant"]


def test_an_exception_leaves_nothing(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    def samples() -> Iterator[Any]:
        yield {"split": "train", "image": dataset["train"][0]["image"]}
        raise LookupError("the source broke")

    with pytest.raises(LookupError):
        millrace.write(samples(), tmp_path / "d")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "sample, error",
    [
        ({"split": "train", "image": b"GIF89a"}, millrace.MisuseError),
        ({"split": "train", "image": b"\xff\xd8\xff\xe0 cut short"}, millrace.BadDataError),
        ({"split": "../up", "image": b"\xff\xd8\xff"}, millrace.MisuseError),
        ({"split": "", "image": b"\xff\xd8\xff"}, millrace.MisuseError),
        ({"split": 1, "image": b"\xff\xd8\xff"}, millrace.MisuseError),
        ({"split": "a", "image": "a.jpg"}, millrace.MisuseError),
        ({"split": "a", "image": object()}, millrace.MisuseError),
        ({"split": "a", "image": np.zeros((8, 8, 3), np.uint8)}, millrace.MisuseError),
        ({"split": "a", "image": b"\xff\xd8\xff", "labels": "ab"}, millrace.MisuseError),
        ({"split": "a", "image": b"\xff\xd8\xff", "objects": [{"box": [9, 9, -5, 5]}]}, millrace.MisuseError),
    ],
)
def test_wrong_samples(tmp_path: pathlib.Path, sample: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        millrace.write([sample], tmp_path / "d")
    assert os.listdir(tmp_path) == []


def test_odd_objects_are_a_warning(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    """Corners in the place of x, y, width and height extend beyond the image."""
    image = dataset["train"][0]["image"]
    corners: Any = {"split": "train", "image": bytearray(image), "objects": [{"class": "a", "box": [40, 40, 5000, 5000]}]}
    with pytest.warns(UserWarning, match="beyond their image: 1 in 1 image") as said:
        written = millrace.write([corners], tmp_path / "d", classes=["a"])
    assert said[0].filename == __file__ and written.report["objects"]["leave_picture"] == 1
    with pytest.warns(UserWarning, match="1 remark ") as said, millrace.Writer(tmp_path / "e", classes=["a"]) as writer:
        writer.add(**corners)
    assert said[0].filename == __file__


def test_the_programs_message_arrives_however_much_was_sent(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    image = dataset["train"][0]["image"]
    (tmp_path / "d").write_text("in the way")
    with pytest.raises(millrace.MisuseError, match="d"):
        with millrace.Writer(tmp_path / "d") as writer:
            while True:
                writer.add("train", image)
    with pytest.raises(millrace.MisuseError, match="closed"):
        writer.add("train", image)


def test_memory_does_not_grow(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    import resource

    image = dataset["train"][0]["image"]
    with millrace.Writer(tmp_path / "d") as writer:
        for _ in range(200):
            writer.add("train", image)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(20_000):
            writer.add("train", image, label=0)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        writer.abort()
        with pytest.raises(millrace.MisuseError):
            writer.add("train", image)
        writer.close = lambda: dataset  # type: ignore[method-assign] # there is nothing to publish
    assert grown < 5000 or UNDER_ASAN  # kB, of 250 MB sent
