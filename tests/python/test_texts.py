"""Fields of a batch that come from metas: captions, and the classes of samples with several labels."""

import pathlib
from typing import Any

import numpy as np
import pytest

import millrace

VIEW: dict[str, Any] = {"view": millrace.Square(8), "output": "uint8"}


def make(folder: pathlib.Path, layout: str, *words: str) -> millrace.Dataset:
    assert millrace.cli("sample", str(folder / layout), "--layout", layout, *words, "--images", "30", "-q") == 0
    return millrace.ingest(folder / layout, to=folder / f"{layout}.d")


def test_captions(tmp_path: pathlib.Path) -> None:
    coco = make(tmp_path, "coco")
    for captions, metas in coco.loader("train", 5, fields=["captions", "meta"], **VIEW):
        assert captions == [[c["caption"] for c in meta["captions"]] for meta in metas]
        assert any(captions)
    contest = make(tmp_path, "newyorker")
    captions, metas = next(iter(contest.loader("train", 4, fields=["captions", "meta"], **VIEW)))
    assert captions == [[meta["columns"]["image_description"]] for meta in metas]
    options: dict[str, Any] = {**VIEW, "fields": ["captions", "meta"], "text_column": "caption_choices"}
    captions, metas = next(iter(contest.loader("train", 4, **options)))
    assert captions == [meta["columns"]["caption_choices"] for meta in metas]


def test_none(dataset: millrace.Dataset) -> None:
    (captions,) = next(iter(dataset.loader("train", 4, fields=["captions"], **VIEW)))
    assert captions == [[]] * 4


@pytest.mark.parametrize("array", ["numpy", "torch", "jax", "raw"])
def test_several_labels(dataset: millrace.Dataset, tmp_path: pathlib.Path, array: Any) -> None:
    if array in ("torch", "jax"):
        pytest.importorskip(array)
    image = dataset["train"][0]["image"]
    given: list[Any] = [{"labels": [2, 0]}, {"labels": []}, {"label": 1}, {}]
    samples: list[Any] = [{"split": "a", "image": image, **labels} for labels in given]
    written = millrace.write(samples, tmp_path / "d", classes=["x", "y", "z"])
    labels = next(iter(written.loader("a", 4, fields=["labels", "label"], array=array, **VIEW)))[0]
    if array == "raw":
        assert labels.shape == (4, 3) and labels.format == "f"
        labels = labels.tolist()
    found = np.asarray(labels)
    assert found.shape == (4, 3) and found[:3].tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]] and np.isnan(found[3]).all()


def test_of_a_roboflow_export(tmp_path: pathlib.Path) -> None:
    signs = make(tmp_path, "roboflow", "--variant", "multi-class")
    rows = np.concatenate([labels for labels, in signs.loader("train", 4, fields=["labels"], array="numpy", **VIEW)])
    assert rows.shape == (len(signs["train"]), len(signs.classes)) and rows.dtype == np.float32
    assert [np.flatnonzero(row).tolist() for row in rows] == [signs["train"].meta(i)["labels"] for i in range(len(rows))]
