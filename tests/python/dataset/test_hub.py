"""write() of Hugging Face's datasets: images byte for byte, classes, objects, several labels, and what is refused."""

import io
import pathlib
from typing import Any

import numpy as np
import pytest

import millrace

datasets = pytest.importorskip("datasets")
Image = pytest.importorskip("PIL.Image")


def png(shade: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (40, 30), (shade, 0, 99)).save(out, "PNG")
    return out.getvalue()


def rows(count: int, **columns: Any) -> list[dict[str, Any]]:
    return [{"image": {"bytes": png(i), "path": None}, **{n: f(i) for n, f in columns.items()}} for i in range(count)]


def make(count: int, features: dict[str, Any], **columns: Any) -> Any:
    return datasets.Dataset.from_list(
        rows(count, **columns), features=datasets.Features({"image": datasets.Image(), **features}), split="validation"
    )


def test_classes_images_and_columns(tmp_path: pathlib.Path) -> None:
    names = datasets.ClassLabel(names=["zebra", "ant", "bee"])
    source = make(9, {"label": names, "n": datasets.Value("int64")}, label=lambda i: i % 4 - 1, n=lambda i: i)
    written = millrace.write(source, tmp_path / "d")
    assert written.classes == ["zebra", "ant", "bee"] and list(written) == ["val"]
    assert written["val"].labels.tolist() == [i % 4 - 1 for i in range(9)]
    assert [s["image"] for s in written["val"]] == [png(i) for i in range(9)]
    assert written["val"].meta(3)["columns"] == {"n": 3}


def test_a_dict_of_splits_and_a_folder_of_save_to_disk(tmp_path: pathlib.Path) -> None:
    names = datasets.ClassLabel(names=["a", "b"])
    splits = datasets.DatasetDict({n: make(4, {"label": names}, label=lambda i: i % 2) for n in ("train", "test")})
    splits.save_to_disk(tmp_path / "saved")
    with pytest.raises(millrace.BadDataError, match="is an Arrow file.*load_from_disk"):
        millrace.ingest(tmp_path / "saved", to=tmp_path / "d")
    written = millrace.write(datasets.load_from_disk(tmp_path / "saved"), tmp_path / "d")
    assert {name: len(split) for name, split in written.items()} == {"train": 4, "test": 4}


def test_files_keep_their_bytes(made: pathlib.Path, tmp_path: pathlib.Path) -> None:
    paths = sorted((made / "source").rglob("*.JPEG"))[:5]
    source = datasets.Dataset.from_dict({"image": [str(path) for path in paths]}).cast_column("image", datasets.Image())
    written = millrace.write(source, tmp_path / "d")
    assert [s["image"] for s in written["train"]] == [path.read_bytes() for path in paths]
    assert written["train"].meta(0)["columns"] == {"source": str(paths[0])}


def test_arrays_become_png(tmp_path: pathlib.Path) -> None:
    pixels = np.arange(48, dtype="uint8").reshape(4, 4, 3)
    source = datasets.Dataset.from_dict({"image": [Image.fromarray(pixels)], "label": ["cat"]})
    written = millrace.write(source, tmp_path / "d")
    assert written.classes == ["cat"]
    assert (np.asarray(Image.open(io.BytesIO(written["train"][0]["image"]))) == pixels).all()


def test_objects(tmp_path: pathlib.Path) -> None:
    category = datasets.ClassLabel(names=["dog", "cat"])
    members = {"bbox": datasets.Sequence(datasets.Sequence(datasets.Value("float32"))), "category": datasets.Sequence(category)}
    given = {"bbox": [[1.0, 2.0, 3.0, 4.5], [0.0, 0.0, 9.0, 9.0]], "category": [1, -1]}
    for features in ({"objects": members}, {"objects": [{"bbox": members["bbox"].feature, "category": category}]}):
        value = given if features["objects"] is members else [dict(zip(given, pair)) for pair in zip(*given.values())]
        written = millrace.write(make(2, features, objects=lambda i: value), tmp_path / "d", force=True)
        assert written.classes == ["dog", "cat"]
        assert written["val"].meta(0)["objects"] == [
            {"label": 1, "class": "cat", "box": [1, 2, 3, 4.5]}, {"box": [0, 0, 9, 9]}
        ]  # fmt: skip
        assert written["val"].meta(0)["columns"]["objects"] == value


def test_several_labels(tmp_path: pathlib.Path) -> None:
    names = datasets.Sequence(datasets.ClassLabel(names=["a", "b", "c"]))
    written = millrace.write(make(3, {"labels": names}, labels=lambda i: list(range(i))), tmp_path / "d")
    assert [written["val"].meta(i)["labels"] for i in range(3)] == [[], [0], [0, 1]]


def test_what_is_refused(tmp_path: pathlib.Path) -> None:
    one, two = datasets.ClassLabel(names=["a"]), datasets.ClassLabel(names=["b"])
    mask: Any = make(1, {"mask": datasets.Image()}, mask=lambda i: {"bytes": png(9), "path": None})
    wrong = [
        (datasets.Dataset.from_dict({"picture": ["x"]}), "no column of the dataset is an Image; it has picture"),
        (mask, r"several images a row \(image, mask\); keep one with remove_columns"),
        (make(1, {"fine": one, "coarse": two}, fine=lambda i: 0, coarse=lambda i: 0), "which column is the label: fine, coarse"),
        (datasets.Dataset.from_list([{"image": None}], features=datasets.Features({"image": datasets.Image()})), "has no image"),
    ]
    for source, message in wrong:
        with pytest.raises(millrace.MisuseError, match=message):
            millrace.write(source, tmp_path / "d")
        assert not list(tmp_path.iterdir())


def test_streamed(tmp_path: pathlib.Path) -> None:
    source = make(5, {"label": datasets.ClassLabel(names=["a", "b"])}, label=lambda i: i % 2).to_iterable_dataset()
    written = millrace.write(source, tmp_path / "d")
    assert sum(len(split) for split in written.values()) == 5 and written.classes == ["a", "b"]


def test_a_bar_for_each_step(made: pathlib.Path, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    millrace.ingest(made / "source", to=tmp_path / "d", progress=True)
    drawn = capsys.readouterr().err
    assert "checking: 100%" in drawn and "writing: 100%" in drawn and "120/120" in drawn
