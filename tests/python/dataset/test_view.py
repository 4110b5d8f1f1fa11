"""view(): the conditions by keyword, lists of samples, several datasets."""

import pathlib
import pickle
from typing import Any

import numpy
import pytest

import millrace


def test_samples_by_a_list(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    numbers = [1, 2, 3, 7, 11]
    for samples in (numbers, numpy.array(numbers), {11, 7, 3, 2, 1}, iter(numbers)):
        seen = millrace.view(tmp_path / "v.view", f"{dataset.path}:train", samples=samples, force=True)
        assert len(seen["train"]) == 5 and list(seen) == ["train"]
        assert [seen["train"][i]["image"] for i in range(5)] == [dataset["train"][n]["image"] for n in numbers]
    many = millrace.view(tmp_path / "many.view", f"{dataset.path}:train", samples=range(0, len(dataset["train"]), 2))
    assert len(many["train"]) == (len(dataset["train"]) + 1) // 2
    assert pickle.loads(pickle.dumps(many)) == many
    with pytest.raises(millrace.MisuseError, match="exists already"):
        millrace.view(tmp_path / "many.view", dataset)


def test_conditions_by_keyword(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    name = dataset.classes[1]
    one = millrace.view(tmp_path / "one.view", dataset, classes=[name], split={"train": "val"})
    assert list(one) == ["train"] and set(one["train"].labels) == {1}
    other = millrace.view(tmp_path / "other.view", one, first=3, rename_class={name: "renamed"})
    assert other.classes[1] == "renamed" and len(other["train"]) == 6  # of each part
    weighed = millrace.view(tmp_path / "weighed.view", f"{dataset.path}:train", weight={dataset.path: 2.5})
    loader = weighed.loader("train", 8, shuffle=True, output="encoded", tail="partial")
    assert sum(len(labels) for _, labels in loader) == round(2.5 * len(dataset["train"]))
    assert one.manifest["millrace_view"] == 1
    with pytest.raises(millrace.MisuseError, match="each of its datasets has a report"):
        one.report
    with pytest.raises(millrace.MisuseError, match="not a class of the dataset"):
        millrace.view(tmp_path / "none.view", dataset, classes=["nothing"])


def test_a_view_becomes_a_dataset(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    view = millrace.view(tmp_path / "v.view", f"{dataset.path}:train", samples=range(9))
    solid = millrace.ingest(view.path, to=tmp_path / "solid")
    assert len(solid["train"]) == 9 and solid["train"][4]["image"] == dataset["train"][4]["image"]


def test_classes_with_commas_and_backslashes(dataset: millrace.Dataset, tmp_path: pathlib.Path) -> None:
    names = ["a", "b", "a,b", "b,", "c\\", "c\\,d", "tench, Tinca tinca"]
    image = dataset["train"][0]["image"]
    samples: Any = ({"split": "train", "image": image, "label": n} for n in range(len(names)))
    written = millrace.write(samples, tmp_path / "d", classes=names)
    for chosen in [[name] for name in names] + [["a,b", "b"], ["c\\", "a"], names]:
        view = millrace.view(tmp_path / "v", written, classes=chosen, force=True)
        assert sorted(view["train"].labels.tolist()) == sorted(names.index(name) for name in chosen)
    assert len(millrace.view(tmp_path / "v", written, classes="tench, Tinca tinca", force=True)["train"]) == 1
    odd: Any = (({"classes": "tench"}, r"commas in names are written \\,: 'tench\\, Tinca tinca'"), ({"column": "x"}, "column"))
    for options, message in odd:
        with pytest.raises(millrace.MisuseError, match=message):
            millrace.view(tmp_path / "v", written, force=True, **options)
